r"""Experts who judge pairs of items: the prior predictive, and clusters of known shape with experts of known accuracy.

`draw_data` draws everything from the model. `three_clusters` and `k_views` make items that fall into clusters in
several ways at once, each in features of its own; `simulate_experts` lets experts judge pairs of them. Which pairs an
expert gets to judge matters, because it may tell which view is his:

* ``group``: the experts of a view judge the same pairs, half of them together in that view. No two experts of different
  views share more than a few, so that the pairs alone tell who belongs with whom.
* ``own``: every expert judges pairs of his own, half of them together in his view.
* ``all``: everybody judges the same pairs, drawn at random. Only here the pairs tell nothing.

References
----------
Chang, Chen, Cho, Castaldi, Silverman and Dy (2017), ICML: the model, and the protocol ``group``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from consilience.arrays import Array, Float, Int, Key
from consilience.data.codes import names_or_codes
from consilience.data.constraints import Constraints
from consilience.errors import UnsupportedRequest
from consilience.models.expert_views.canonical import view_weights
from consilience.models.expert_views.likelihood import answer_table, answering, own_view
from consilience.models.expert_views.priors import link_of, weight_prior
from consilience.models.sites import Resolved

PROTOCOLS = ("group", "own", "all")
"""Who judges which pairs."""

ACCURACIES = (0.9, 0.85, 0.8, 0.75, 0.7)
"""Of the experts of the first view, the third and so on; those of the others have them in reverse."""


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
    return Clusterings(label, _standardised(np.concatenate([*blocks, noise], axis=1)))


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
    return Clusterings(label, _standardised(np.concatenate([*blocks, noise], axis=1)))


def _standardised(feature: Float[np.ndarray, "item feature"]) -> Float[np.ndarray, "item feature"]:
    spread = feature.std(axis=0)
    return (feature - feature.mean(axis=0)) / np.where(spread > 0, spread, 1)


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


def constraints_of(
    expert: np.ndarray, item_a: np.ndarray, item_b: np.ndarray, together: np.ndarray, feature: np.ndarray,
    num_experts: int, **answers: Any,
) -> Constraints:  # fmt: skip
    """Return answers and features as constraints, with numbers as ids.

    Parameters
    ----------
    answers : ``num_grades``, ``num_blanks`` and ``order`` of `Constraints`, where answers are not yes and no.
    """
    num_items, num_features = feature.shape
    return Constraints(
        expert=np.asarray(expert, np.int32), item_a=np.asarray(item_a, np.int32), item_b=np.asarray(item_b, np.int32),
        together=np.asarray(together, np.int32), feature=np.asarray(feature, float), num_constraints=len(expert),
        num_experts=num_experts, num_items=num_items, num_features=num_features,
        experts=names_or_codes(None, num_experts, "experts"), items=names_or_codes(None, num_items, "items"),
        features=names_or_codes(None, num_features, "features"), **answers,
    )  # fmt: skip


# The prior predictive -------------------------------------------------------------------------------------------------


def draw_data(
    key: Key, resolved: Resolved, sizes: Mapping[str, Any], values: Mapping[str, Any] | None = None
) -> tuple[Constraints, dict[str, np.ndarray]]:
    """Draw views, clusters, experts and their answers from the prior, for random features and pairs.

    Every expert judges pairs of his own.

    Parameters
    ----------
    sizes : ``num_items, num_experts, num_features``, and ``num_pairs`` that an expert judges, each once; no more than
        there are. ``num_grades`` (2), ``num_blanks`` (1 where an expert may not know), and in how many ways pairs are
        shown, ``num_orders`` (1).
    values : true values as this function returns them: keep them, and draw the answers alone anew.

    Returns
    -------
    data : with features that are standardised.
    values : ``stick`` ``(view - 1,)``, ``view_of_expert`` ``(expert,)``, what experts of this kind have, such as
        ``sensitivity`` and ``specificity`` ``(expert,)`` or ``(expert, view)``, ``weight`` ``(view, …)``, ``cluster``
        ``(view, item)``; and what is given: ``feature`` ``(item, feature)``, ``item_a``, ``item_b`` ``(expert, pair)``
        and, of pairs shown in two ways, ``order``.
    """
    key_values, key_priors, key_answers = jax.random.split(key, 3)
    if values is None:
        random = _generator(key_values)
        feature = _standardised(random.standard_normal((sizes["num_items"], sizes["num_features"])))
        item_a, item_b = _random_pairs(random, sizes["num_items"], sizes["num_experts"], sizes["num_pairs"])
        order = random.integers(2, size=item_a.shape) if sizes["num_orders"] > 1 else None
        given = constraints_of(
            np.empty(0), item_a[:0, 0], item_b[:0, 0], np.empty(0), feature, sizes["num_experts"],
            **_answers(sizes, order if order is None else order[:0, 0]),
        )  # fmt: skip
        drawn = _from_the_prior(random, key_priors, resolved.replace(data=given))
        values = {**drawn, "feature": feature, "item_a": item_a, "item_b": item_b}
        values |= {} if order is None else {"order": order}
    values = {name: np.asarray(value) for name, value in values.items()}
    view, cluster = values["view_of_expert"], values["cluster"]
    size = values["item_a"].shape[1]
    expert = np.repeat(np.arange(len(view)), size)
    item_a, item_b = values["item_a"].ravel(), values["item_b"].ravel()
    together = cluster[view[expert], item_a] == cluster[view[expert], item_b]
    answers = _answers(sizes, values["order"].ravel() if "order" in values else None)
    data = constraints_of(expert, item_a, item_b, together, values["feature"], len(view), **answers)
    apart, so = (own_view(part, view)[expert] for part in answering(values, resolved.replace(data=data), np))
    probability = np.exp(np.where(together[:, None], so, apart))
    shape = (len(expert), data.num_orders, data.num_answers)
    of_order = probability.reshape(shape)[np.arange(len(expert)), 0 if data.order is None else data.order]
    uniform = _generator(key_answers).random((len(expert), 1))
    # From the last answer down, as yes and no are drawn: yes where the number is below its probability.
    answer = data.num_answers - 1 - (uniform >= of_order[:, :0:-1].cumsum(axis=1)).sum(axis=1)
    return data.replace(together=answer.astype(np.int32)), values


def _answers(sizes: Mapping[str, Any], order: Any) -> dict[str, Any]:
    """Return of which kind the answers are, as `Constraints` has it."""
    grades, blanks = sizes["num_grades"], sizes["num_blanks"]
    known = {} if (grades, blanks) == (2, 0) else {"num_grades": grades, "num_blanks": blanks}
    return known | ({} if order is None else {"order": np.asarray(order, np.int32)})


def _generator(key: Key) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def _from_the_prior(random: np.random.Generator, key: Key, resolved: Resolved) -> dict[str, np.ndarray]:
    """Draw the sites of the model; the data say how many experts there are, and have the features."""
    data, given, views = resolved.data, resolved.given, resolved.size("view")
    stick = random.beta(1.0, given.concentration, views - 1)
    view = random.choice(views, data.num_experts, p=view_weights(stick))
    drawn, logits = jax.tree.map(np.asarray, _experts_and_weights(key, resolved))
    cluster = (logits + random.gumbel(size=logits.shape)).argmax(axis=-1)
    return {"stick": stick, "view_of_expert": view, **drawn, "cluster": cluster}


@jax.jit
def _experts_and_weights(key: Key, resolved: Resolved) -> tuple[dict[str, Array], Float[Array, "view item cluster"]]:
    """Draw what is true of experts, and the weights; return them, and the logits of the clusters."""
    data, by_view, views = resolved.data, resolved.settings.experts == "per-view", resolved.size("view")
    names = answer_table(resolved).sites
    key_weight, *keys = jax.random.split(key, max(3, 1 + len(names)))
    shape = (views, data.num_experts) if by_view else (data.num_experts,)
    drawn = {}
    for site, key_site in zip(names, keys, strict=False):
        key_prior, key_draw = jax.random.split(key_site)
        with handlers.seed(rng_seed=key_prior):  # priors may draw parameters of their own
            prior = resolved.prior(site)
        value = prior.expand(shape).sample(key_draw)
        drawn[site] = value.swapaxes(0, 1) if by_view else value
    inputs = jnp.concatenate([jnp.asarray(data.feature), jnp.ones((data.num_items, 1))], axis=1)
    drawn["weight"] = weight_prior(resolved, inputs.shape[1]).sample(key_weight, (views,))
    return drawn, jax.vmap(link_of(resolved.given), (0, None))(drawn["weight"], inputs)


def _random_pairs(
    random: np.random.Generator, num_items: int, num_experts: int, num_pairs: int
) -> tuple[Int[np.ndarray, "expert pair"], Int[np.ndarray, "expert pair"]]:
    """Return the items of the pairs that each expert judges, all sets being as likely."""
    total = num_items * (num_items - 1) // 2
    pair = _different(random, num_experts, min(num_pairs, total), total)
    # Pair p of the list (0, 1), (0, 2), (1, 2), (0, 3), … has the second item that p >= second (second - 1) / 2 says.
    second = np.floor((1 + np.sqrt(1 + 8.0 * pair)) / 2).astype(np.int64)
    second -= pair < second * (second - 1) // 2
    first = pair - second * (second - 1) // 2
    return first, second


def _different(random: np.random.Generator, rows: int, size: int, total: int) -> Int[np.ndarray, "row number"]:
    """Draw different numbers below ``total`` in each row, without listing all."""
    chosen = np.empty(0, np.int64)
    while len(chosen) < rows * size:
        missing = size - np.bincount(chosen // total, minlength=rows)
        row = np.repeat(np.arange(rows), missing)
        chosen = np.union1d(chosen, row * total + random.integers(total, size=len(row)))
    return chosen.reshape(rows, size) % total
