"""How often conformal sets hold the truth, where the truth behind their masses is uncertain: pure functions.

Items of five classes have plausibilities from Dirichlet(1/2, …, 1/2), and five labels each; the model is right. Sets
are to hold the label that an item's plausibilities give with probability 0.9. A system either is made from the labels
of an item, with noise, or has looked at the item itself: only the first is what the guarantee is about. Sets from voted
labels are what one has without a model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import consilience as cs
from consilience.data import Predictions
from consilience.evaluation.conformal_sets import nonconformity
from consilience.models.truth import LabelDraws

SYSTEMS = ("made from the labels", "own look", "own look, voted labels")
"""What is measured: how a system came by its predictions, and what stands for the truth of the items."""

_CLASSES, _LABELS, _PRIOR, _LEVEL, _NEW_ITEMS = 5, 5, 0.5, 0.9, 20_000


class World(NamedTuple):
    """Items, and what annotators and a system say of them.

    Parameters
    ----------
    plausibility : shape ``(item, class)``.
    votes : whole numbers, shape ``(item, class)``.
    system : probabilities.
    """

    plausibility: np.ndarray
    votes: np.ndarray
    system: Predictions


def world(random: np.random.Generator, num_items: int, *, own_look: bool) -> World:
    """Simulate items; a system sees their plausibilities, or the posterior mean of these given the labels."""
    weight = random.standard_gamma(np.full((num_items, _CLASSES), _PRIOR)) + 1e-12
    plausibility = weight / weight.sum(axis=1, keepdims=True)
    votes = random.multinomial(_LABELS, plausibility)
    mean = (votes + _PRIOR) / (_LABELS + _PRIOR * _CLASSES)
    seen = 0.8 * np.log(plausibility) if own_look else np.log(mean)
    score = seen + 0.7 * random.gumbel(size=seen.shape)
    q = np.exp(score - score.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    return World(plausibility, votes, Predictions.from_scores(q, probabilities=True))


def truth_of_votes(random: np.random.Generator, votes: np.ndarray) -> LabelDraws:
    """Return the labels with most votes, ties broken at random, as if they were known."""
    return LabelDraws((votes + random.random(votes.shape)).argmax(axis=1)[None], _CLASSES)


def real_coverage(system: str, num_items: int, *, sets: int = 400, seed: int = 0) -> dict[str, Any]:
    """Return how often sets from so many items hold the true label of new ones.

    Parameters
    ----------
    system : one of `SYSTEMS`.
    num_items : with labels.
    sets : data sets; each meets the same new items.
    seed : of all of them.

    Returns
    -------
    Row with the mean coverage, its standard error over data sets (the 20,000 new items, which all of them meet, add
    about 0.002), and the mean size of a set.
    """
    random = np.random.default_rng([seed, num_items, SYSTEMS.index(system)])
    own_look = system != SYSTEMS[0]
    new = world(random, _NEW_ITEMS, own_look=own_look)
    found = nonconformity(new.system, "threshold")
    covered, size = np.empty(sets), np.empty(sets)
    for number in range(sets):
        known = world(random, num_items, own_look=own_look)
        truth: Any = truth_of_votes(random, known.votes)
        if system != SYSTEMS[2]:
            labels = [str(code) for code in range(_CLASSES)]
            annotations = cs.Annotations.from_counts(known.votes, labels=labels)
            truth = cs.fit("dirichlet", annotations, alpha=_PRIOR, draws=1)
        held = found <= cs.conformal(truth, known.system, level=_LEVEL).threshold
        covered[number] = (new.plausibility * held).sum(axis=1).mean()
        size[number] = held.sum(axis=1).mean()
    return {
        "system": system, "items": num_items, "sets": sets, "coverage": float(covered.mean()),
        "SE": float(covered.std(ddof=1) / np.sqrt(sets)), "size": float(size.mean()),
    }  # fmt: skip
