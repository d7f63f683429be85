"""How often annotators are right, by the labels that they gave and how probable each of them is.

`realised_accuracy` is of those labels, and `counted_accuracy` of further ones. The latter is a hierarchical model of
its own: an annotator's accuracy is Beta(a, b), with a and b learned from all annotators, and how many of her labels are
right is known as well as the labels of her items are. It stands in for rows of confusion matrices that are mostly
their prior, which takes rows for independent: of K labels it knows an accuracy K times as well as a row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
from scipy import special

from consilience.arrays import Float
from consilience.data.annotations import Annotations
from consilience.models.beta_priors import LearnedBeta
from consilience.models.crowd.agreement import annotation_counts
from consilience.models.intervals import LEVEL, ends
from consilience.models.posterior import Interval, beta_of_moments
from consilience.models.truth.labels import LabelTruth
from consilience.models.truth.truth import Marginals, Ranked

# Draws of labels that the realised accuracy looks at; a table is no place for all of them.
_MOST_LABEL_DRAWS = 200


def counted_accuracy(
    probability: Float[np.ndarray, "item class"], data: Annotations, level: float = LEVEL
) -> Interval:
    """Return how probably another label of each annotator is right, with mean and variance exact given a and b.

    Parameters
    ----------
    probability : of the labels of the items, which are taken for independent.
    data : the annotations.
    level : of the intervals, which are those of the Beta distribution that has this mean and variance.
    """
    ((right, variance),) = _moments_of_right(data, [probability])
    number = annotation_counts(data)
    a, b = LearnedBeta().most_probable(right, number - right)
    total = number + a + b
    mean = (right + a) / total
    given_right = (mean * (1 - mean) - variance / total**2) / (total + 1)  # its mean over how many are right
    return beta_of_moments(mean, given_right + variance / total**2, level)


def realised_accuracy(
    truth: LabelTruth, data: Annotations, level: float = LEVEL
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which share of each annotator's own labels equals the truth, with the central interval.

    Of labels that are independent given what is known, mean and variance are exact and the interval is that of the Beta
    distribution that has them, half an annotation wider at both ends since annotations are whole; else it is of label
    draws. Where nobody knows how far annotators err together, the interval holds those of both ends of what that may be
    and, if no gold labels tell, of independent errors too. NaN of an annotator without annotations.
    """
    number, found = annotation_counts(data), truth.exact(Ranked(1))
    known = np.where(number > 0, number, np.nan)
    shares = [] if found is not None else [_share_of_draws(truth, data, known, level)]
    readings = itertools.chain([] if found is None else [_dense(truth, found)], _if_otherwise(truth))
    for mean, variance in _moments_of_right(data, readings):
        own, step = beta_of_moments(mean / known, variance / known**2, level), 0.5 / known
        shares.append((own.mean, np.maximum(own.lower - step, 0.0), np.minimum(own.upper + step, 1.0)))
    means, lower, upper = zip(*shares, strict=True)
    return means[0], np.min(lower, axis=0), np.max(upper, axis=0)


def _share_of_draws(
    truth: LabelTruth, data: Annotations, known: Float[np.ndarray, " annotator"], level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same by draws of the labels, of so many annotations."""
    columns = (np.asarray(column) for column in (data.item, data.annotator, data.label, data.weight))
    item, annotator, label, weight = columns
    chosen = np.linspace(0, truth.num_draws - 1, min(truth.num_draws, _MOST_LABEL_DRAWS)).astype(int)
    shares = [
        np.bincount(annotator, weight * (own[item] == label), data.num_annotators) / known
        for own in truth.labels_of(chosen)
    ]
    return np.mean(shares, axis=0), *np.quantile(shares, ends(level), axis=0)


def _if_otherwise(truth: LabelTruth) -> Iterator[Float[np.ndarray, "item class"]]:
    """Yield the probabilities of the labels, were the dependence of annotators otherwise than it is taken to be."""
    if truth.probabilities_at is None or truth.dependence is None:
        return
    for z in special.ndtri(ends()):
        yield _dense(truth, truth.probabilities_at(float(z)))
    if truth.dependence.source == "default":
        yield np.asarray(truth.untempered)


def _dense(truth: LabelTruth, found: Marginals) -> Float[np.ndarray, "item class"]:
    dense = np.zeros((truth.num_units, truth.num_classes))
    dense[found.unit, found.code] = found.probability
    return dense


def _moments_of_right(
    data: Annotations, probabilities: Iterable[Float[np.ndarray, "item class"]]
) -> Iterator[tuple[Float[np.ndarray, " annotator"], Float[np.ndarray, " annotator"]]]:
    """Yield mean and variance of the number of right labels; of one item at most one of several labels is right."""
    columns = (np.asarray(column) for column in (data.item, data.annotator, data.label, data.weight))
    item, annotator, label, weight = columns
    pair = annotator.astype(np.int64) * data.num_items + item
    cell, place = np.unique(pair * data.num_labels + label, return_inverse=True)
    number = np.bincount(place, weight, len(cell))
    owners, owner = np.unique(cell // data.num_labels, return_inverse=True)
    annotators, items = np.divmod(owners, data.num_items)
    for probability in probabilities:
        right = probability[items[owner], cell % data.num_labels]
        expected = np.bincount(owner, number * right, len(owners))
        square = np.bincount(owner, number**2 * right, len(owners))
        mean = np.bincount(annotators, expected, data.num_annotators)
        yield mean, np.bincount(annotators, np.maximum(square - expected**2, 0.0), data.num_annotators)
