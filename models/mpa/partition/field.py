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

import math

import numpy as np

from consilience.arrays import Float, Int
from consilience.models.machine_code import machine_code
from consilience.models.mpa.partition.state import State, Texts
from consilience.models.truth.chains import NEW

START = np.array([0.5, 1.0, 0.2, 0.3, -2.0, -2.0])
_FREE = 2.0  # standard deviation around the start: what documents of a few mentions leave open stays finite
_STEPS = 12  # of Newton's method: the objective is concave
_MENTIONS = 800


def size_terms(value: Float[np.ndarray, " parameter"], longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what sizes 0, 1, … of an entity, and numbers 0, 1, … of entities, add to the logarithm above."""
    whole = np.log(np.maximum(np.arange(longest + 1), 1))
    by_size = np.append([0.0, 0.0], value[0] * np.cumsum(whole[1:]))
    by_number = np.append([0.0, 0.0], np.cumsum(value[2] + value[3] * whole[1:]))
    return by_size, by_number


def estimated(
    random: np.random.Generator, value: Float[np.ndarray, " parameter"], state: State, texts: Texts
) -> Float[np.ndarray, " parameter"]:
    """Return the parameters of the largest pseudo-likelihood of a partition, that of the first rung.

    Parameters
    ----------
    random : chooses the mentions, 800 at most.
    value : to begin with.
    """
    number, place = len(texts.mention), state.place[0]
    chosen = random.choice(number, min(_MENTIONS, number), replace=False)
    longest = int(np.diff(texts.first).max(initial=0))
    link, entity = place["link"].astype(int), place["entity"].astype(int)
    features, begin, own = _choices(
        chosen, link, entity, texts.first, texts.mention["document"], longest + 3, bool((texts.target < NEW).any())
    )
    return _most_probable(value, features, begin, own)


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
        gradient = (features[own] - mean).sum(axis=0) - (value - START) / _FREE**2
        curvature = (weight[:, None] * features).T @ features - mean.T @ mean + np.eye(len(value)) / _FREE**2
        step = np.linalg.solve(curvature, gradient)
        value = value + step / max(1.0, float(np.abs(step).max()))
    return value


@machine_code
def _choices(chosen, links, entities, firsts, documents, most, apart):
    """Return the features of all places that chosen mentions could have, where those of each begin, and its own."""
    features = np.zeros((len(chosen) * most, 6))
    begin, own, at = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64), 0
    place, count = np.full(len(links), -1), np.zeros(most)
    before, after = np.zeros(most, np.int64), np.zeros(most, np.int64)
    for which in range(len(chosen)):
        mention, number = chosen[which], 0
        low, high = firsts[documents[mention]], firsts[documents[mention] + 1]
        begin[which] = at
        for one in range(low, high):
            if one == mention or links[one] < -1:
                continue
            entity = entities[one]
            if place[entity] < 0:
                place[entity] = number
                count[number], before[number], after[number] = 0, -1, -1
                number += 1
            its = place[entity]
            count[its] += 1
            if one < mention:
                before[its] = one
            elif after[its] < 0:
                after[its] = one
        for its in range(number):
            features[at + its, 0] = math.log(count[its])
            if before[its] >= 0:
                features[at + its, 1] -= math.log(mention - before[its])
            if after[its] >= 0:
                features[at + its, 1] -= math.log(after[its] - mention)
                if before[its] >= 0:
                    features[at + its, 1] += math.log(after[its] - before[its])
        features[at + number, 2] = 1 if number > 0 else 0
        features[at + number, 3] = math.log(max(number, 1))
        if apart:
            features[at + number + 1, 4] = features[at + number + 2, 5] = 1
        if links[mention] < -1:
            own[which] = at + number + (1 if links[mention] == -2 else 2)
        elif place[entities[mention]] >= 0:
            own[which] = at + place[entities[mention]]
        else:
            own[which] = at + number
        for one in range(low, high):
            place[entities[one]] = -1
        at += number + (3 if apart else 1)
    return features[:at], begin, own
