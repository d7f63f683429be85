r"""Scores of partitions: how well predicted clusters of records agree with the true ones.

Either side may be many draws of a partition ``(draw, record)``: all draws are scored at once, from the numbers
:math:`n_{ab}` of records that predicted cluster a and true cluster b have in common. With :math:`\binom{n}{2}` pairs
among n records, of which R are together in the prediction, S in truth and B in both:

* pairwise: precision :math:`B / R`, recall :math:`B / S`;
* cluster: the share of the predicted clusters that are true ones exactly, and of the true clusters that are found
  exactly. Records left alone count as clusters: leaving every record alone scores high where most are alone in truth;
* B³: the mean over records of the share of its predicted cluster that truly belongs with it, and of its true cluster
  that was found;
* ARI: :math:`(B - E) / ((R + S)/2 - E)`, where chance expects :math:`E = R S / \binom{n}{2}` pairs in both;
* NMI: the information that the two have in common over the mean of their entropies;
* merge distances: what it takes to split and merge the predicted clusters into the true ones, counted in moves, in
  pairs parted or joined, or in nats a record, which is the variation of information. Zero is best.

F1 is the harmonic mean of precision and recall. A share of nothing is undefined, NaN: there is no pairwise precision
where no pair is predicted, and pairwise F1 is then 0, though nothing may be wrong: pairs say nothing of records that
are alone. Two equal partitions have ARI and NMI 1, those without pairs or of one cluster too.

References
----------
Bagga and Baldwin (1998), LREC: B³. Hubert and Arabie (1985), Journal of Classification 2: ARI. Meilă (2007), Journal of
Multivariate Analysis 98: variation of information. Menestrina, Whang and Garcia-Molina (2010), VLDB: generalised merge
distance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Bool, Float, Int

__all__ = [
    "DISTANCES",
    "METRIC_FORMS",
    "Contingency",
    "Sums",
    "contingency",
    "group_sums",
    "record_f1",
    "score",
    "value_of",
]

METRIC_FORMS = {
    "pairwise-f1": "F1 of pairs that belong together",
    "pairwise-precision": "share of the predicted pairs that are true",
    "pairwise-recall": "share of the true pairs that are predicted",
    "cluster-f1": "F1 of clusters that are exactly right",
    "cluster-precision": "share of the predicted clusters that are exactly right",
    "cluster-recall": "share of the true clusters that are found exactly",
    "b3-f1": "F1 of B³",
    "b3-precision": "mean share of a record's predicted cluster that belongs with it",
    "b3-recall": "mean share of a record's true cluster that is with it",
    "ari": "adjusted Rand index",
    "nmi": "mutual information over mean entropy",
    "merge-moves": "splits and merges to the true clusters",
    "merge-pairs": "pairs wrongly joined or parted",
    "variation-of-information": "variation of information, in nats",
}
"""Names of the scores, and what they are in words."""

DISTANCES = ("merge-moves", "merge-pairs", "variation-of-information")
"""Those of which less is better."""


class Contingency(NamedTuple):
    """Which predicted and true clusters have records in common, in all draws.

    Parameters
    ----------
    num_records : shape ``(draw,)``; records that have a cluster on both sides. The others are left out.
    predicted_size, true_size : records of each cluster.
    predicted_draw, true_draw : the draw of each cluster.
    predicted, true, common : of pairs of clusters that have records in common: which clusters, and how many records.
    cell : shape ``(draw, record)``; the pair of clusters that a record is in, -1 where it is left out.
    """

    num_records: Int[np.ndarray, " draw"]
    predicted_size: Int[np.ndarray, " predicted_cluster"]
    true_size: Int[np.ndarray, " true_cluster"]
    predicted_draw: Int[np.ndarray, " predicted_cluster"]
    true_draw: Int[np.ndarray, " true_cluster"]
    predicted: Int[np.ndarray, " cell"]
    true: Int[np.ndarray, " cell"]
    common: Int[np.ndarray, " cell"]
    cell: Int[np.ndarray, "draw record"]


def contingency(
    predicted: Int[np.ndarray, "draws record"], truth: Int[np.ndarray, "other_draws record"]
) -> Contingency:
    """Count what clusters have in common.

    Parameters
    ----------
    predicted, truth : shape ``(draw, record)``, or ``(1, record)`` where it is the same in all draws; numbers that are
        equal where records are together, -1 where the cluster of a record is unknown.

    Raises
    ------
    ValueError : for unequal numbers of draws, neither of which is one.
    """
    num_draws = max(len(predicted), len(truth))
    if {len(predicted), len(truth)} - {1, num_draws}:
        given = f"{len(predicted)} draws of the prediction and {len(truth)} of the truth"
        raise ValueError(f"{given}; give equal numbers, or one")
    kept = np.broadcast_to((predicted >= 0) & (truth >= 0), (num_draws, predicted.shape[1]))
    of_predicted, predicted_size, predicted_draw = _clusters(predicted, kept)
    of_true, true_size, true_draw = _clusters(truth, kept)
    width = max(len(true_size), 1)
    both, place, common = np.unique(of_predicted * width + of_true, return_inverse=True, return_counts=True)
    cell = np.full(kept.shape, -1)
    cell[kept] = place
    return Contingency(
        kept.sum(axis=1), predicted_size, true_size, predicted_draw, true_draw, *np.divmod(both, width), common, cell
    )


class Sums(NamedTuple):
    """What a score is made of, added up over clusters; shape ``(draw,)``, or that of what is not added up.

    Parameters
    ----------
    records : how many.
    both, predicted, true : of intersections, predicted clusters and true clusters, something that the score counts.
    """

    records: Any
    both: Any
    predicted: Any
    true: Any


def score(
    found: Contingency, metric: str, weight: Float[np.ndarray, "draw record"] | None = None
) -> Float[np.ndarray, " draw"]:
    """Return one of the scores of `METRIC_FORMS` for every draw; NaN where it is undefined.

    Parameters
    ----------
    weight : how often a record counts, with all of its predicted and true cluster, which have the same weight. Clusters
        of weight two count as two clusters.

    Raises
    ------
    KeyError : there is no such score.
    """
    parts = _SCORES[metric].parts(found)
    of_cell = found.predicted_draw[found.predicted]
    places = Sums(of_cell, of_cell, found.predicted_draw, found.true_draw)
    weights = Sums(1, 1, 1, 1) if weight is None else _over_parts(found, weight)
    return value_of(metric, _added(parts, places, weights, len(found.num_records)))


def group_sums(
    found: Contingency, metric: str, group: Int[np.ndarray, " record"], num_groups: int
) -> Float[np.ndarray, "part group"]:
    """Return what a score is made of, added up over all draws but not over groups: the four parts of `Sums`.

    Parameters
    ----------
    group : of each record; those of a predicted or true cluster are of one group.
    """
    return np.stack(_added(_SCORES[metric].parts(found), _over_parts(found, group[None]), Sums(1, 1, 1, 1), num_groups))


def value_of(metric: str, sums: Sums) -> Float[np.ndarray, " draw"]:
    """Return a score from its sums; NaN where it is undefined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return _SCORES[metric].value(sums)


def record_f1(found: Contingency) -> Float[np.ndarray, "draw record"]:
    """Return how well the predicted and the true cluster of each record agree, as F1; NaN for records left out."""
    size = found.predicted_size[found.predicted] + found.true_size[found.true]
    # The last one stands for records that are left out, whose cell is -1.
    return np.append(2 * found.common / size, np.nan)[found.cell]


# Clusters -------------------------------------------------------------------------------------------------------------


def _clusters(side: np.ndarray, kept: Bool[np.ndarray, "draw record"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a number for the cluster of each kept record, over all draws; sizes of the clusters; and their draws."""
    if side.max(initial=-1) >= side.shape[1]:  # labels of another kind than codes of records: take their ranks
        side = np.unique(side, return_inverse=True)[1].reshape(side.shape)
    width = max(int(side.max(initial=-1)) + 1, 1)
    of_record = (np.arange(len(kept))[:, None] * width + side)[kept]
    number = np.bincount(of_record, minlength=len(kept) * width)
    used = number > 0
    return (np.cumsum(used) - 1)[of_record], number[used], np.flatnonzero(used) // width


def _over_parts(found: Contingency, of_record: np.ndarray) -> Sums:
    """Return what is the same for all records of a cluster, for each intersection, predicted and true cluster."""
    kept = found.cell >= 0
    of_cell = np.zeros(len(found.common), of_record.dtype)
    of_cell[found.cell[kept]] = np.broadcast_to(of_record, found.cell.shape)[kept]
    predicted, true = np.zeros(len(found.predicted_size), of_cell.dtype), np.zeros(len(found.true_size), of_cell.dtype)
    predicted[found.predicted], true[found.true] = of_cell, of_cell
    return Sums(of_cell, of_cell, predicted, true)


def _added(parts: Sums, places: Sums, weights: Sums, length: int) -> Sums:
    """Add up each part, weighted, by places."""
    terms = zip(parts, places, weights, strict=True)
    return Sums(*(np.bincount(place, part * weight, length).astype(float) for part, place, weight in terms))


# Scores ---------------------------------------------------------------------------------------------------------------


class _Score(NamedTuple):
    """A score: what is counted of each intersection, predicted and true cluster; and its value from the sums."""

    parts: Callable[[Contingency], Sums]
    value: Callable[[Sums], np.ndarray]


def _of_sizes(of_size: Callable[[np.ndarray], np.ndarray]) -> Callable[[Contingency], Sums]:
    """Count some function of the sizes."""

    def parts(found: Contingency) -> Sums:
        sizes = (found.common, found.predicted_size, found.true_size)
        return Sums(found.common, *(of_size(size) for size in sizes))

    return parts


def _pairs(size: Any) -> Any:
    return size * (size - 1) / 2


def _size_log_size(size: Any) -> Any:
    return size * np.log(np.maximum(size, 1))


def _exact(found: Contingency) -> Sums:
    """Count clusters, and of the intersections those that are a predicted and a true cluster."""
    equal = (found.common == found.predicted_size[found.predicted]) & (found.common == found.true_size[found.true])
    return Sums(found.common, equal, np.ones(len(found.predicted_size)), np.ones(len(found.true_size)))


def _b3(found: Contingency) -> Sums:
    """Count, for the records of each cluster, the shares of it that they have in common."""
    square = found.common**2
    predicted = np.bincount(found.predicted, square, len(found.predicted_size)) / found.predicted_size
    true = np.bincount(found.true, square, len(found.true_size)) / found.true_size
    return Sums(found.common, np.zeros(len(found.common)), predicted, true)


def _precision(sums: Sums) -> np.ndarray:
    return sums.both / sums.predicted


def _recall(sums: Sums) -> np.ndarray:
    return sums.both / sums.true


def _f1(sums: Sums) -> np.ndarray:
    """Return the F1 of counts; 0 where there is nothing to count."""
    total = sums.predicted + sums.true
    return np.where(total > 0, 2 * sums.both / total, 0.0)


def _b3_precision(sums: Sums) -> np.ndarray:
    return sums.predicted / sums.records


def _b3_recall(sums: Sums) -> np.ndarray:
    return sums.true / sums.records


def _b3_f1(sums: Sums) -> np.ndarray:
    precision, recall = _b3_precision(sums), _b3_recall(sums)
    return 2 * precision * recall / (precision + recall)


def _ari(sums: Sums) -> np.ndarray:
    every = _pairs(sums.records)
    chance = sums.predicted * sums.true / np.where(every > 0, every, 1)
    best = (sums.predicted + sums.true) / 2
    # The best is what chance expects only where both have no pair, or both have all: they are equal.
    return np.where(best == chance, 1.0, (sums.both - chance) / (best - chance))


def _entropies(sums: Sums) -> Sums:
    """Return the entropy of the intersections, and of the clusters of either side, in nats."""
    number = sums.records
    return Sums(number, *((_size_log_size(number) - each) / number for each in sums[1:]))


def _nmi(sums: Sums) -> np.ndarray:
    entropy = _entropies(sums)
    total = entropy.predicted + entropy.true
    return np.where(total == 0, 1.0, np.clip(2 * (total - entropy.both) / total, 0, 1))


def _wrong_pairs(sums: Sums) -> np.ndarray:
    return sums.predicted + sums.true - 2 * sums.both


def _moves(sums: Sums) -> np.ndarray:
    return 2 * sums.both - sums.predicted - sums.true


def _variation(sums: Sums) -> np.ndarray:
    entropy = _entropies(sums)
    return np.maximum(2 * entropy.both - entropy.predicted - entropy.true, 0)


_IN_PAIRS, _IN_CLUSTERS, _IN_NATS = _of_sizes(_pairs), _of_sizes(np.ones_like), _of_sizes(_size_log_size)

_SCORES = {
    "pairwise-f1": _Score(_IN_PAIRS, _f1),
    "pairwise-precision": _Score(_IN_PAIRS, _precision),
    "pairwise-recall": _Score(_IN_PAIRS, _recall),
    "cluster-f1": _Score(_exact, _f1),
    "cluster-precision": _Score(_exact, _precision),
    "cluster-recall": _Score(_exact, _recall),
    "b3-f1": _Score(_b3, _b3_f1),
    "b3-precision": _Score(_b3, _b3_precision),
    "b3-recall": _Score(_b3, _b3_recall),
    "ari": _Score(_IN_PAIRS, _ari),
    "nmi": _Score(_IN_NATS, _nmi),
    "merge-moves": _Score(_IN_CLUSTERS, _moves),
    "merge-pairs": _Score(_IN_PAIRS, _wrong_pairs),
    "variation-of-information": _Score(_IN_NATS, _variation),
}
