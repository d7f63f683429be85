# mypy: allow-untyped-defs
r"""How probable partitions are before any annotation: entities grow by their size, and by how recent they are.

.. math::

    p(\text{partition}) \propto \prod_e ((n_e - 1)!)^a \prod_{i\ \text{old}} (i - p(i))^{-b} \prod_{k=1}^{K-1} e^c k^s

in each document, with :math:`n_e` the size of entity e, p(i) the link of mention i, and K entities. A mention that is
put between u and w of an entity with n other members has the weight

.. math:: n^a (i - u)^{-b} (w - i)^{-b} (w - u)^b ,

at an end of the entity without the factors that are missing; a new entity has :math:`e^c K^s`, where K counts the
others. A mention that does not refer, or is a property, has weights of its own.

The normaliser is not known. The parameters are therefore not drawn: they are the ones under which the places of
mentions, each given those of all others, are most probable (pseudo-likelihood, Besag 1975), averaged over partitions
that the sampler visits in its warm-up, and do not change afterwards. Their own uncertainty is in no interval.
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import Float, Int
from consilience.models.mpa.partition.state import Texts, kind_of
from consilience.models.rows import ranges
from consilience.models.truth.chains import NEW

START = np.array([0.5, 1.0, 0.2, 0.3, -2.0, -2.0])
FREE = 2.0  # standard deviation around the start: what documents of a few mentions leave open stays finite
_STEPS = 12  # of Newton's method: the objective is concave
_MENTIONS = 800


def size_terms(value: Float[np.ndarray, " parameter"], longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what sizes 0, 1, … of an entity, and numbers 0, 1, … of entities, add to the logarithm above."""
    whole = np.log(np.maximum(np.arange(longest + 1), 1))
    by_size = np.append([0.0, 0.0], value[0] * np.cumsum(whole[1:]))
    by_number = np.append([0.0, 0.0], np.cumsum(value[2] + value[3] * whole[1:]))
    return by_size, by_number


def estimated(
    random: np.random.Generator, value: Float[np.ndarray, " parameter"], place: np.ndarray, texts: Texts
) -> Float[np.ndarray, " parameter"]:
    """Return the parameters of the largest pseudo-likelihood of a partition.

    Parameters
    ----------
    random : chooses the mentions, 800 at most.
    value : to begin with.
    place : records `state.PLACE`, shape ``(mention,)``.
    """
    chosen = random.choice(len(place), min(_MENTIONS, len(place)), replace=False)
    return _most_probable(value, *_choices(chosen, place, texts, 3 if (texts.target < NEW).any() else 1))


def _choices(
    chosen: Int[np.ndarray, " mention"], place: np.ndarray, texts: Texts, others: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the features of all places that chosen mentions could have, where those of each begin, and its own.

    Beside the entities of the document there are so many ``others``: a new one, to be nothing, or a property.
    """
    link, entity, low = place["link"], place["entity"].astype(int), texts.mention["low"][chosen]
    sizes, size = texts.mention["high"][chosen] - low, len(place)
    which, one = np.repeat(np.arange(len(chosen)), sizes), np.repeat(low, sizes) + ranges(sizes)
    kept = (one != chosen[which]) & (link[one] >= NEW)
    which, one = which[kept], one[kept]
    key, its, count = np.unique(which * size + entity[one], return_inverse=True, return_counts=True)
    before, after, earlier = np.full(len(key), -1), np.full(len(key), -1), one < chosen[which]
    before[its[earlier]] = one[earlier]                     # the last one stands
    after[its[~earlier][::-1]] = one[~earlier][::-1]
    which, number = key // size, np.bincount(key // size, minlength=len(chosen))
    begin = np.cumsum(number + others) - number - others
    at, new, mention = np.arange(len(key)) + others * which, begin + number, chosen[which]
    features = np.zeros((len(key) + others * len(chosen), len(START)))
    features[at, 0] = np.log(count)
    features[at, 1] = _log_gap(before, after) - _log_gap(before, mention) - _log_gap(mention, after)
    features[new, 2], features[new, 3] = number > 0, np.log(np.maximum(number, 1))
    for apart in range(1, others):
        features[new + apart, 3 + apart] = 1
    own = np.arange(len(chosen)) * size + entity[chosen]
    place_of = np.append(at, 0)[np.searchsorted(key, own)]
    return features, begin, np.where(np.isin(own, key), place_of, new + np.maximum(kind_of(link[chosen]) - 1, 0))


def _log_gap(one: Int[np.ndarray, " choice"], other: Int[np.ndarray, " choice"]) -> Float[np.ndarray, " choice"]:
    """Return the logarithms of how far mentions are apart, 0 where there is none."""
    return np.where((one >= 0) & (other >= 0), np.log(np.maximum(other - one, 1)), 0.0)


def _most_probable(
    value: Float[np.ndarray, " parameter"], features: Float[np.ndarray, "choice parameter"],
    begin: Int[np.ndarray, " mention"], own: Int[np.ndarray, " mention"],
) -> Float[np.ndarray, " parameter"]:  # fmt: skip
    """Return the weights of features of the largest conditional likelihood."""
    sizes = np.diff(np.append(begin, len(features)))
    for _ in range(_STEPS):
        score = features @ value
        weight = np.exp(score - np.repeat(np.maximum.reduceat(score, begin), sizes))
        weight /= np.repeat(np.add.reduceat(weight, begin), sizes)
        mean = np.add.reduceat(weight[:, None] * features, begin)
        gradient = (features[own] - mean).sum(axis=0) - (value - START) / FREE**2
        curvature = (weight[:, None] * features).T @ features - mean.T @ mean + np.eye(len(value)) / FREE**2
        step = np.linalg.solve(curvature, gradient)
        value = value + step / max(1.0, float(np.abs(step).max()))
    return value
