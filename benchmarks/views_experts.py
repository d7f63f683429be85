"""Clusters of known shape, and experts of known accuracy who judge pairs.

`three_clusters` and `k_views` make items that fall into clusters in several ways at once, each in features of its own;
`simulate_experts` lets experts judge pairs of them. Which pairs an expert gets to judge matters, because it may tell
which view is his:

* ``group``: the experts of a view judge the same pairs, half of them together in that view. No two experts of different
  views share more than a few, so that the pairs alone tell who belongs with whom.
* ``own``: every expert judges pairs of his own, half of them together in his view.
* ``all``: everybody judges the same pairs, drawn at random. Only here the pairs tell nothing.

References
----------
Chang, Chen, Cho, Castaldi, Silverman and Dy (2017), ICML: the protocol ``group``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.constraints import Constraints
from consilience.errors import UnsupportedRequest
from consilience.models.expert_views.simulation import constraints_of

PROTOCOLS = ("group", "own", "all")
"""Who judges which pairs."""

ACCURACIES = (0.9, 0.85, 0.8, 0.75, 0.7)
"""Of the experts of the first view, the third and so on; those of the others have them in reverse."""


def standardised(feature: Float[np.ndarray, "item feature"]) -> Float[np.ndarray, "item feature"]:
    """Bring the columns to mean 0 and standard deviation 1; constant ones are left out."""
    feature = feature[:, feature.std(axis=0) > 0]
    return (feature - feature.mean(axis=0)) / feature.std(axis=0)


class Clusterings(NamedTuple):
    """Items that fall into clusters in several ways.

    Parameters
    ----------
    label : the cluster of each item in each view.
    feature : standardised.
    """

    label: Int[np.ndarray, "view item"]
    feature: Float[np.ndarray, "item feature"]


class Experts(NamedTuple):
    """What is true of the experts.

    Parameters
    ----------
    view_of_expert : the view in which each one judges.
    sensitivity : how probably he says together of items that are.
    specificity : how probably he says apart of items that are.
    """

    view_of_expert: Int[np.ndarray, " expert"]
    sensitivity: Float[np.ndarray, " expert"]
    specificity: Float[np.ndarray, " expert"]


# Clusters of known shape ----------------------------------------------------------------------------------------------


def three_clusters(num_items: int = 600, *, spread: float = 0.5, num_noise: int = 2, seed: int = 0) -> Clusterings:
    """Make items with two independent views, three round clusters in two features each.

    Parameters
    ----------
    spread : standard deviation of a feature within its cluster; the centres are about 2 apart.
    num_noise : further features, which say nothing.
    seed : of `numpy.random.RandomState`, whose numbers are the same in every version.
    """
    random = np.random.RandomState(seed)
    first = np.arange(num_items) % 3
    label = np.stack([first, random.permutation(first)])
    centre = np.array([[1.0, 1.0], [3.0, 1.0], [2.0, 2.5]])
    blocks = [centre[of_view] + spread * random.randn(num_items, 2) for of_view in label]
    noise = random.randn(num_items, num_noise)
    return Clusterings(label, standardised(np.concatenate([*blocks, noise], axis=1)))


def k_views(
    num_items: int = 900, *, num_views: int = 3, num_clusters: int = 4, num_noise: int = 4, separation: float = 3.0,
    seed: int = 0,
) -> Clusterings:  # fmt: skip
    """Make items with independent views, clusters of three features each that overlap.

    Parameters
    ----------
    num_noise : further features, which say nothing.
    separation : how far from zero the centres are; features have standard deviation 1 within a cluster.
    seed : as in `three_clusters`.
    """
    random = np.random.RandomState(seed)
    label = random.randint(num_clusters, size=(num_views, num_items))
    direction = random.randn(num_views, num_clusters, 3)
    centre = separation * direction / np.linalg.norm(direction, axis=-1, keepdims=True)
    blocks = centre[np.arange(num_views)[:, None], label] + random.randn(num_views, num_items, 3)
    noise = random.randn(num_items, num_noise)
    return Clusterings(label, standardised(np.concatenate([*blocks, noise], axis=1)))



# Experts of known accuracy --------------------------------------------------------------------------------------------


def simulate_experts(
    label: Int[np.ndarray, "view item"], feature: Float[np.ndarray, "item feature"], *,
    view_of_expert: Sequence[int] | None = None, sensitivity: Sequence[float] | float | None = None,
    specificity: Sequence[float] | float | None = None, num_together: int = 300, num_apart: int = 300,
    protocol: str = "group", seed: int = 0,
) -> tuple[Constraints, Experts]:  # fmt: skip
    """Let experts judge pairs of items whose clusters are known.

    All pairs of items are listed, so that some thousands of items are the most; `draw_data` has no such limit.

    Parameters
    ----------
    view_of_expert : shape ``(expert,)``; five experts of each view by default.
    sensitivity : for all experts or for each; by default the experts of a view have `ACCURACIES`, reversed in every
        other view.
    specificity : as the sensitivity by default.
    num_together, num_apart : pairs of an expert that are together in his view, and that are apart. The pairs of the
        protocol ``all`` are as many, whichever they are.
    protocol : who judges which pairs; see the module.
    seed : of `numpy.random.RandomState`.

    Returns
    -------
    data : the judgements, expert by expert.
    experts : the truth about them.

    Raises
    ------
    UnsupportedRequest : another protocol, too few pairs of a kind, or numbers of experts that do not agree.
    """
    if protocol not in PROTOCOLS:
        raise UnsupportedRequest(f"protocol is {protocol!r}; choose one of {', '.join(map(repr, PROTOCOLS))}")
    experts = _experts(len(label), view_of_expert, sensitivity, specificity)
    random = np.random.RandomState(seed)
    first, second = np.triu_indices(label.shape[1], 1)
    judged: dict[int, np.ndarray] = {}
    pairs, answers = [], []
    # One expert after the other: what the seed draws for one depends on those before, as in the recorded figures.
    for expert, view in enumerate(experts.view_of_expert):
        together = label[view, first] == label[view, second]
        group = {"group": int(view), "own": expert, "all": 0}[protocol]
        if group not in judged:
            judged[group] = _chosen(random, together, num_together, num_apart, protocol)
        pair = judged[group]
        share = np.where(together[pair], experts.sensitivity[expert], 1 - experts.specificity[expert])
        pairs.append(pair)
        answers.append(random.rand(len(pair)) < share)
    chosen = np.concatenate(pairs)
    expert_code = np.repeat(np.arange(len(pairs)), num_together + num_apart)
    data = constraints_of(expert_code, first[chosen], second[chosen], np.concatenate(answers), feature, len(pairs))
    return data, experts


def _experts(num_views: int, view_of_expert: Any, sensitivity: Any, specificity: Any) -> Experts:
    size = len(ACCURACIES)
    view = np.repeat(np.arange(num_views), size) if view_of_expert is None else np.asarray(view_of_expert)
    if view.ndim != 1 or not len(view) or view.min() < 0 or view.max() >= num_views:
        raise UnsupportedRequest(f"view_of_expert is {view_of_expert}; give one of the {num_views} views per expert")
    if sensitivity is None:
        place = np.arange(len(view)) - np.searchsorted(view, view)
        if (np.diff(view) < 0).any() or place.max() >= size:
            raise UnsupportedRequest(f"give the sensitivity of experts unless there are up to {size} a view, in order")
        sensitivity = np.asarray(ACCURACIES)[np.where(view % 2 == 0, place, size - 1 - place)]
    specificity = sensitivity if specificity is None else specificity
    accuracies = [np.asarray(given, float) for given in (sensitivity, specificity)]
    if any(given.shape not in ((), view.shape) for given in accuracies):
        raise UnsupportedRequest(f"give one sensitivity and specificity, or one for each of the {len(view)} experts")
    return Experts(view, *(np.broadcast_to(given, view.shape).copy() for given in accuracies))


def _chosen(
    random: np.random.RandomState, together: np.ndarray, num_together: int, num_apart: int, protocol: str
) -> Int[np.ndarray, " pair"]:
    """Return the pairs that somebody judges: those together first, or without regard to that."""
    kinds = [np.flatnonzero(together), np.flatnonzero(~together)]
    wanted = [num_together, num_apart]
    if protocol == "all":
        kinds, wanted = [np.arange(len(together))], [num_together + num_apart]
    if any(len(kind) < number for kind, number in zip(kinds, wanted, strict=True)):
        raise UnsupportedRequest(f"there are {[len(kind) for kind in kinds]} pairs to choose {wanted} from; ask less")
    return np.concatenate([
        random.choice(kind, number, replace=False) for kind, number in zip(kinds, wanted, strict=True)
    ])  # fmt: skip
