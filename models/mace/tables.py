"""Tables of MACE: the labels, who knows how often, and what is said in guesses; with central 95 % intervals.

An estimate by EM has no intervals: they are NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.arrays import Float, Int
from consilience.models.crowds import INTERVAL, LABELS, PROBABILITIES, annotation_counts
from consilience.models.interface import Column, Table
from consilience.models.posterior import Interval, Posterior, beta_of_moments
from consilience.models.sites import Resolved
from consilience.models.truth.labels import LabelTruth


def annotators(posterior: Posterior, resolved: Resolved, truth: LabelTruth) -> dict[str, np.ndarray]:
    """Return the annotators.

    ``annotations`` is how many there are, ``accuracy`` the probability of being right on an item whose label is drawn
    as often as the items are believed to have it, ``competence`` that of knowing.
    """
    data, prevalence = resolved.data, _prevalence(truth)
    if posterior.form == "closed":
        accuracy = _accuracy(posterior, prevalence)
    else:
        accuracy = posterior.summary(lambda draws: _accuracy_of_draws(draws, prevalence))
    competence = posterior.summary("competence")
    return {
        "annotator": np.arange(data.num_annotators), "annotations": annotation_counts(data),
        "accuracy": accuracy.mean, "lower": accuracy.lower, "upper": accuracy.upper,
        "competence": competence.mean, "competence_lower": competence.lower, "competence_upper": competence.upper,
    }  # fmt: skip


def guesses(
    posterior: Posterior, resolved: Resolved, truth: LabelTruth, annotators: Int[np.ndarray, " chosen"] | None = None
) -> dict[str, np.ndarray]:
    """Return what each annotator says when it guesses, one row for each label.

    Parameters
    ----------
    annotators : codes of those to tabulate; all by default.
    """
    data = resolved.data
    chosen = np.arange(data.num_annotators) if annotators is None else np.asarray(annotators)
    place, label = np.indices((len(chosen), data.num_labels)).reshape(2, -1)
    found = posterior.summary("guess", where=chosen)
    values = {"probability": found.mean, "lower": found.lower, "upper": found.upper}
    return {"annotator": chosen[place], "label": label, **{name: column.ravel() for name, column in values.items()}}


def _prevalence(truth: LabelTruth) -> Float[np.ndarray, " label"]:
    """Return how frequent each label is among the items."""
    found = truth.label_probabilities()
    return np.bincount(found.code, found.probability, truth.num_classes) / truth.num_units


def _accuracy_of_draws(
    draws: Mapping[str, Any], prevalence: Float[np.ndarray, " label"]
) -> Float[np.ndarray, "draw annotator"]:
    knowing = np.asarray(draws["competence"], float)
    return knowing + (1 - knowing) * (np.asarray(draws["guess"], float) @ prevalence)


def _accuracy(posterior: Posterior, prevalence: Float[np.ndarray, " label"]) -> Interval:
    r"""Return mean and interval of :math:`1 - (1 - \theta_j)(1 - \sum_t p_t \xi_{jt})`.

    Mean and variance are exact, since competence and guesses are independent; the interval is that of the Beta
    distribution that has them.
    """
    knows, guesses = np.asarray(posterior.competence, float).T
    guess = np.asarray(posterior.guess, float)
    total, share = guess.sum(axis=1), guess / guess.sum(axis=1, keepdims=True)
    guessing, luck = guesses / (knows + guesses), share @ prevalence
    guessing_square = guessing * (guesses + 1) / (knows + guesses + 1)
    luck_variance = (share @ prevalence**2 - luck**2) / (total + 1)
    wrong = guessing * (1 - luck)
    return beta_of_moments(1 - wrong, guessing_square * ((1 - luck) ** 2 + luck_variance) - wrong**2)


TABLES = (
    LABELS,
    PROBABILITIES,
    Table(
        name="annotators", help="How often each annotator is right, and how often she knows the label.",
        make=annotators,
        columns=(
            Column("annotator", "annotator"), Column("annotations", help="sum of weights"),
            Column("accuracy", help="share of right labels"), *INTERVAL,
            Column("competence", help="probability of knowing the label"),
            Column("competence_lower", help="end of its central 95 % interval"),
            Column("competence_upper", help="its other end"),
        ),
    ),
    Table(
        name="guesses", help="What each annotator says when she guesses.", make=guesses,
        columns=(
            Column("annotator", "annotator"), Column("label", "class"),
            Column("probability", help="of the label, of a guess"), *INTERVAL,
        ),
    ),
)  # fmt: skip
