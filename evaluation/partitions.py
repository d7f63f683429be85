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

__all__ = ["METRIC_FORMS", "Contingency", "contingency", "record_f1", "score"]

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


def score(found: Contingency, metric: str) -> Float[np.ndarray, " draw"]:
    """Return one of the scores of `METRIC_FORMS` for every draw; NaN where it is undefined.

    Raises
    ------
    KeyError : there is no such score.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return _SCORES[metric](found)


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


def _over_cells(found: Contingency, values: np.ndarray) -> Float[np.ndarray, " draw"]:
    return np.bincount(found.predicted_draw[found.predicted], values, len(found.num_records)).astype(float)


def _over_predicted(found: Contingency, values: np.ndarray) -> Float[np.ndarray, " draw"]:
    return np.bincount(found.predicted_draw, values, len(found.num_records)).astype(float)


def _over_true(found: Contingency, values: np.ndarray) -> Float[np.ndarray, " draw"]:
    return np.bincount(found.true_draw, values, len(found.num_records)).astype(float)


class _Sums(NamedTuple):
    """Sums of some function of the sizes of intersections, predicted clusters and true clusters, each ``(draw,)``."""

    both: Any
    predicted: Any
    true: Any


def _sums(found: Contingency, of_size: Callable[[np.ndarray], np.ndarray]) -> _Sums:
    return _Sums(
        _over_cells(found, of_size(found.common)),
        _over_predicted(found, of_size(found.predicted_size)),
        _over_true(found, of_size(found.true_size)),
    )


def _one(size: np.ndarray) -> np.ndarray:
    return np.ones_like(size)


def _pairs(size: np.ndarray) -> np.ndarray:
    return size * (size - 1) // 2


def _size_log_size(size: np.ndarray) -> np.ndarray:
    return size * np.log(np.maximum(size, 1))


# Scores ---------------------------------------------------------------------------------------------------------------


def _precision(sums: _Sums) -> np.ndarray:
    return sums.both / sums.predicted


def _recall(sums: _Sums) -> np.ndarray:
    return sums.both / sums.true


def _f1(sums: _Sums) -> np.ndarray:
    """Return the F1 of counts; 0 where there is nothing to count."""
    return 2 * sums.both / np.maximum(sums.predicted + sums.true, 1)


def _pairwise(found: Contingency) -> _Sums:
    return _sums(found, _pairs)


def _exact(found: Contingency) -> _Sums:
    equal = (found.common == found.predicted_size[found.predicted]) & (found.common == found.true_size[found.true])
    return _sums(found, _one)._replace(both=_over_cells(found, equal))


def _b3_precision(found: Contingency) -> np.ndarray:
    return _over_cells(found, found.common**2 / found.predicted_size[found.predicted]) / found.num_records


def _b3_recall(found: Contingency) -> np.ndarray:
    return _over_cells(found, found.common**2 / found.true_size[found.true]) / found.num_records


def _b3_f1(found: Contingency) -> np.ndarray:
    precision, recall = _b3_precision(found), _b3_recall(found)
    return 2 * precision * recall / (precision + recall)


def _ari(found: Contingency) -> np.ndarray:
    sums = _pairwise(found)
    chance = sums.predicted * sums.true / np.maximum(_pairs(found.num_records), 1)
    best = (sums.predicted + sums.true) / 2
    # The best is what chance expects only where both have no pair, or both have all: they are equal.
    return np.where(best == chance, 1.0, (sums.both - chance) / (best - chance))


def _entropies(found: Contingency) -> _Sums:
    """Return the entropy of the intersections, and of the clusters of either side, in nats."""
    number = found.num_records
    return _Sums(*((_size_log_size(number) - each) / number for each in _sums(found, _size_log_size)))


def _nmi(found: Contingency) -> np.ndarray:
    entropy = _entropies(found)
    total = entropy.predicted + entropy.true
    return np.where(total == 0, 1.0, np.clip(2 * (total - entropy.both) / total, 0, 1))


def _wrong_pairs(found: Contingency) -> np.ndarray:
    sums = _pairwise(found)
    return sums.predicted + sums.true - 2 * sums.both


def _moves(found: Contingency) -> np.ndarray:
    sums = _sums(found, _one)
    return 2 * sums.both - sums.predicted - sums.true


def _variation(found: Contingency) -> np.ndarray:
    entropy = _entropies(found)
    return np.maximum(2 * entropy.both - entropy.predicted - entropy.true, 0)


_SCORES: dict[str, Callable[[Contingency], np.ndarray]] = {
    "pairwise-f1": lambda found: _f1(_pairwise(found)),
    "pairwise-precision": lambda found: _precision(_pairwise(found)),
    "pairwise-recall": lambda found: _recall(_pairwise(found)),
    "cluster-f1": lambda found: _f1(_exact(found)),
    "cluster-precision": lambda found: _precision(_exact(found)),
    "cluster-recall": lambda found: _recall(_exact(found)),
    "b3-f1": _b3_f1,
    "b3-precision": _b3_precision,
    "b3-recall": _b3_recall,
    "ari": _ari,
    "nmi": _nmi,
    "merge-moves": _moves,
    "merge-pairs": _wrong_pairs,
    "variation-of-information": _variation,
}
