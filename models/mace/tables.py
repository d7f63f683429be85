"""Tables of MACE: the labels, who knows how often, and what is said in guesses; with central 95 % intervals.

An estimate by EM has no intervals: they are NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from consilience.arrays import Float, Int
from consilience.data.annotations import Annotations
from consilience.models.mace.cavi import Posterior
from consilience.models.mace.skills import annotation_counts
from consilience.models.truth import LabelDraws, LabelProbabilities, Truth

__all__ = ["annotators", "guesses", "labels", "probabilities"]

_TAIL = 0.025


def labels(posterior: Any, data: Annotations, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the most probable label of each item."""
    return truth.leading()


def probabilities(posterior: Any, data: Annotations, truth: Any) -> dict[str, np.ndarray]:
    """Table of how probable each label of each item is; of a sampler's fit, those labels that were drawn."""
    entries, probability = truth.label_probabilities()
    return {"item": entries.item, "label": entries.class_, "probability": probability}


def annotators(posterior: Any, data: Annotations, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the annotators.

    ``annotations`` is how many there are, ``accuracy`` the probability of being right on an item whose label is drawn
    as often as the items are believed to have it, ``competence`` that of knowing.
    """
    if isinstance(posterior, Posterior):
        knows, guesses = (np.asarray(values, float) for values in (posterior.knows, posterior.guesses))
        accuracy = _accuracy(posterior, _prevalence(truth))
        competence = _described(knows / (knows + guesses), knows, guesses)
    else:
        knowing = np.asarray(posterior["competence"], float)
        luck = np.asarray(posterior["guess"], float) @ _prevalence(truth)
        accuracy, competence = _of_draws(knowing + (1 - knowing) * luck), _of_draws(knowing)
    columns = {"annotator": np.arange(data.num_annotators), "annotations": annotation_counts(data)}
    named = zip(("competence", "competence_lower", "competence_upper"), competence, strict=True)
    return columns | dict(zip(("accuracy", "lower", "upper"), accuracy, strict=True)) | dict(named)


def guesses(
    posterior: Any, data: Annotations, truth: Truth, annotators: Int[np.ndarray, " chosen"] | None = None
) -> dict[str, np.ndarray]:
    """Table of what each annotator says when it guesses, one row for each label.

    Parameters
    ----------
    annotators : codes of those to tabulate; all by default.
    """
    chosen = np.arange(data.num_annotators) if annotators is None else np.asarray(annotators)
    place, label = np.indices((len(chosen), data.num_labels)).reshape(2, -1)
    if isinstance(posterior, Posterior):
        one = np.asarray(posterior.guess, float)[chosen]
        total = one.sum(axis=1, keepdims=True)
        values = _described(one / total, one, total - one)
    else:
        values = _of_draws(np.asarray(posterior["guess"], float)[:, chosen])
    named = zip(("probability", "lower", "upper"), values, strict=True)
    return {"annotator": chosen[place], "label": label, **{name: column.ravel() for name, column in named}}


def _prevalence(truth: Truth) -> Float[np.ndarray, " label"]:
    """Return how frequent each label is among the items."""
    assert isinstance(truth, LabelProbabilities | LabelDraws)
    entries, probability = truth.label_probabilities()
    return np.bincount(entries.class_, probability, truth.num_classes) / truth.num_items


def _accuracy(posterior: Posterior, prevalence: Float[np.ndarray, " label"]) -> tuple[np.ndarray, ...]:
    r"""Return mean and interval of :math:`1 - (1 - \theta_j)(1 - \sum_t p_t \xi_{jt})`.

    Mean and variance are exact, since competence and guesses are independent; the interval is that of the Beta
    distribution that has them.
    """
    knows, guesses = (np.asarray(values, float) for values in (posterior.knows, posterior.guesses))
    guess = np.asarray(posterior.guess, float)
    total, share = guess.sum(axis=1), guess / guess.sum(axis=1, keepdims=True)
    guessing, luck = guesses / (knows + guesses), share @ prevalence
    guessing_square = guessing * (guesses + 1) / (knows + guesses + 1)
    luck_variance = (share @ prevalence**2 - luck**2) / (total + 1)
    wrong = guessing * (1 - luck)
    variance = guessing_square * ((1 - luck) ** 2 + luck_variance) - wrong**2
    size = wrong * (1 - wrong) / np.maximum(variance, np.finfo(float).tiny) - 1
    return _described(1 - wrong, (1 - wrong) * size, wrong * size)


def _described(mean: np.ndarray, one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return a mean and the interval of Beta(one, other); where one of them is zero nothing is uncertain."""
    proper = (one > 0) & (other > 0)
    one, other = np.where(proper, one, 1.0), np.where(proper, other, 1.0)
    bounds = (np.where(proper, special.betaincinv(one, other, level), mean) for level in (_TAIL, 1 - _TAIL))
    return mean, *bounds


def _of_draws(draws: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return mean and interval of draws; of a single one, an estimate, no interval is known."""
    unknown = np.full((2, *draws.shape[1:]), np.nan)
    lower, upper = np.quantile(draws, [_TAIL, 1 - _TAIL], axis=0) if len(draws) > 1 else unknown
    return draws.mean(axis=0), lower, upper
