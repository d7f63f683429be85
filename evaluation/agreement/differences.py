"""Whether the lowest of several agreements on the same items is lower than the others beyond chance.

Intervals of two that overlap tell little: both are of the same items, and each interval is wider than that of their
difference needs. Here items are left out one at a time (jackknife) of the difference itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from consilience.data.annotations import Annotations
from consilience.evaluation.agreement.annotators import count_cells
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.weighting import WeightFunction

_FEWEST = 10
"""Items of two, below which their difference is not tested."""


class Lowest(NamedTuple):
    """The lowest of several shares.

    Parameters
    ----------
    group : the code of the one that is lowest.
    below : the codes of those that it is lower than, beyond chance.
    others : how many others there are.
    """

    group: int
    below: tuple[int, ...]
    others: int


def lowest_annotator(counts: LabelCounts, annotations: Annotations, level: float = 0.95) -> Lowest | None:
    """Say than which others the annotator agrees less who agrees least; None where fewer than two can be compared.

    Parameters
    ----------
    counts : of these annotations.
    annotations : with known annotators.
    level : one minus how often any annotator is called lower than another by chance alone, at most.
    """
    item, annotator, cell, label, number = count_cells(annotations)
    own = np.bincount(cell, number, len(item))
    agreeing = np.bincount(cell, number * (counts.at(item[cell], label) - number), len(item))
    pairs = own * (counts.size[item] - own)
    return _lowest(annotator, item, agreeing, pairs, (annotations.num_annotators, annotations.num_items), level)


def lowest_label(counts: LabelCounts, weight: WeightFunction, level: float = 0.95) -> Lowest | None:
    """Say than which others the label agrees less on which annotators agree least.

    Parameters
    ----------
    counts : of annotations.
    weight : k(n); see `weight_function`.
    level : as of `lowest_annotator`.
    """
    item, label, number = counts.entries
    size = counts.size[item].astype(float)
    usable = size >= 2
    item, label, number, size = item[usable], label[usable], number[usable], size[usable]
    by_pair = weight(size) / (size * (size - 1))
    agreeing, pairs = number * (number - 1) * by_pair, number * (size - 1) * by_pair
    return _lowest(label, item, agreeing, pairs, (counts.num_labels, len(counts.size)), level)


def _lowest(
    group: np.ndarray, item: np.ndarray, agreeing: np.ndarray, pairs: np.ndarray, shape: tuple[int, int], level: float
) -> Lowest | None:  # fmt: skip
    """Compare the lowest Σ agreeing / Σ pairs with each other one, by a t test of their difference over the items.

    Which one is lowest is seen in the data, so that all pairs of groups count as tested (Bonferroni): of 400 simulated
    crowds of 12 annotators who are all alike, 8 had one called lower, and 59 had if only the others were counted.

    Parameters
    ----------
    group, item, agreeing, pairs : shape ``(cell,)``; whose, of which item, and the parts of the share.
    shape : how many groups and items there are.
    level : as of `lowest_annotator`.
    """
    met = pairs > 0
    place = group[met], item[met]
    top, bottom = (sparse.coo_array((part[met], place), shape).tocsr() for part in (agreeing, pairs))
    groups = np.flatnonzero(np.diff(bottom.indptr) > 1)
    if len(groups) < 2:
        return None
    shares = (top.sum(axis=1) / np.maximum(bottom.sum(axis=1), 1e-300))[groups]
    least = int(groups[shares.argmin()])
    most, below = (1 - level) / (len(groups) * (len(groups) - 1) / 2), []
    for other, share in zip(groups.tolist(), shares.tolist(), strict=True):
        units = np.union1d(_items(bottom, least), _items(bottom, other))
        if other == least or (number := len(units)) < _FEWEST:
            continue
        moved = _without_each(top, bottom, other, units) - _without_each(top, bottom, least, units)
        sd = np.sqrt((number - 1) / number * np.square(moved - moved.mean()).sum())
        statistic = (share - shares.min()) / sd if sd > 0 else 0.0
        below += [other] * bool(2 * special.stdtr(number - 1, -statistic) <= most)
    return Lowest(least, tuple(below), len(groups) - 1)


def _items(cells: sparse.csr_array, group: int) -> np.ndarray:
    """Return the items of a group."""
    return cells.indices[cells.indptr[group] : cells.indptr[group + 1]]


def _without_each(top: sparse.csr_array, bottom: sparse.csr_array, group: int, units: np.ndarray) -> np.ndarray:
    """Return the share of a group without each of some items, all that it has among them."""
    left = []
    for cells in (top, bottom):
        own = np.zeros(len(units))
        own[np.searchsorted(units, _items(cells, group))] = cells.data[cells.indptr[group] : cells.indptr[group + 1]]
        left.append(own.sum() - own)
    return left[0] / left[1]
