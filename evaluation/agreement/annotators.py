r"""Annotators: the standard error of agreement when they are random too, and who agrees with whom.

The standard error over items says how agreement would scatter with *these annotators* and other items like these.
With annotators like these, too, it is often several times as large. Both sources at once:

.. math:: V = V_\text{item} + V_\text{annotator} - V_\text{cell},

each a jackknife: without one item, without one annotator, without one annotation. The last, counted in both of the
others, is taken off once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from consilience.arrays import Float, Int
from consilience.data.annotations import Annotations
from consilience.errors import TooLarge, UnsupportedRequest
from consilience.evaluation.agreement.chance import beyond_chance
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.jackknife import (
    jackknife_of_ratios,
    jackknife_sd,
    ratio,
    wilson,
    wilson_interval,
)
from consilience.evaluation.agreement.sparse_probability import left_out, left_out_items, terms
from consilience.evaluation.agreement.weighting import WeightFunction

# Pairs of annotators that a table may have; at its largest it needs about a gigabyte.
_MOST_PAIRS = 5_000_000


class Cells(NamedTuple):
    """Who said what: a cell is an item and an annotator of it, an entry a label in a cell."""

    item: np.ndarray
    annotator: np.ndarray
    cell: np.ndarray
    label: np.ndarray
    number: np.ndarray


def count_cells(annotations: Annotations) -> Cells:
    """Count who said what, sorted by item, annotator and label.

    Raises
    ------
    UnsupportedRequest : where annotators are unknown.
    """
    given = np.asarray(annotations.weight) > 0
    item, annotator, label = (
        np.asarray(codes)[given].astype(np.int64)
        for codes in (annotations.item, annotations.annotator, annotations.label)
    )
    if (annotator < 0).any():
        raise UnsupportedRequest(
            "nobody knows who gave these annotations (there are only counts); give a table with a column of annotators"
        )
    num_annotators, num_labels = max(1, annotations.num_annotators), max(1, annotations.num_labels)
    # A matrix of rows sorts by counting and sums what stands in one place.
    shape = (annotations.num_items, num_annotators * num_labels)
    weight = np.asarray(annotations.weight, float)[given]
    said = sparse.coo_array((weight, (item, annotator * num_labels + label)), shape).tocsr()
    item, annotator = np.arange(shape[0]).repeat(np.diff(said.indptr)), said.indices // num_labels
    first = np.ones(len(item), bool)
    first[1:] = (item[1:] != item[:-1]) | (annotator[1:] != annotator[:-1])
    annotator = annotator.astype(np.int64)
    return Cells(item[first], annotator[first], np.cumsum(first) - 1, said.indices % num_labels, said.data)


# ---- annotators as a second source of randomness ----


class TwoWay(NamedTuple):
    """Standard errors of SPA.

    Parameters
    ----------
    sd : for items like these and annotators like these. Where noise puts it below ``item_sd``, that is given.
    item_sd : for items like these and these annotators.
    annotator_sd : for annotators like these and these items; itself rough with fewer than about ten annotators.
    cell_sd : jackknife over single annotations.
    num_annotators : annotators who count: those with an annotation of an item that has two.
    """

    sd: float
    item_sd: float
    annotator_sd: float
    cell_sd: float
    num_annotators: int


def two_way_sd(counts: LabelCounts, annotations: Annotations, weight: WeightFunction) -> TwoWay:
    """Estimate the standard error of SPA with items and annotators random.

    An annotator is left out with all of their annotations, also with several for one item. A row of weight w is w
    annotations by its annotator.

    Parameters
    ----------
    counts : of these annotations.
    annotations : with known annotators.
    weight : k(n); see `weight_function`.

    Returns
    -------
    NaN where something cannot be left out, as with fewer than two usable items, or where one annotator is part of every
    usable pair.

    Raises
    ------
    UnsupportedRequest : where annotators are unknown.
    """
    without = _left_out_annotators(counts, annotations, weight)
    item_sd = jackknife_sd(left_out_items(counts.patterns, weight), counts.patterns.multiplicity)
    annotator_sd, cell_sd = jackknife_sd(without), _cell_sd(counts, weight)
    variance = item_sd**2 + annotator_sd**2 - cell_sd**2
    return TwoWay(float(np.sqrt(np.maximum(variance, item_sd**2))), item_sd, annotator_sd, cell_sd, len(without))


def _left_out_annotators(
    counts: LabelCounts, annotations: Annotations, weight: WeightFunction
) -> Float[np.ndarray, " annotator"]:
    """Return SPA without each annotator who counts. Only the items of an annotator change."""
    item, annotator, cell, label, number = count_cells(annotations)
    total = counts.at(item[cell], label)
    size, pairs = counts.size[item].astype(float), counts.pairs[item].astype(float)
    left_size = size - np.bincount(cell, number, len(item))
    # (n - q)(n - q - 1) = n (n - 1) + q (q + 1 - 2 n), for q of the n annotations of a label.
    left_pairs = pairs + np.bincount(cell, number * (number + 1 - 2 * total), len(item))
    gone = _gone((size, pairs), (left_size, left_pairs), weight)
    k, agreeing = (np.bincount(annotator, part, annotations.num_annotators) for part in gone)
    counted = np.bincount(annotator, size >= 2, annotations.num_annotators) > 0
    return left_out(counts.patterns, weight, k[counted], agreeing[counted])


def _cell_sd(counts: LabelCounts, weight: WeightFunction) -> float:
    """Return the jackknife over single annotations; those of one label and item are alike."""
    item, _, number = counts.entries
    usable = counts.size[item] >= 2
    item, number = item[usable], number[usable]
    size, pairs = counts.size[item].astype(float), counts.pairs[item].astype(float)
    gone = _gone((size, pairs), (size - 1, pairs - 2 * (number - 1)), weight)
    return jackknife_sd(left_out(counts.patterns, weight, *gone), number)


def _gone(
    before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray], weight: WeightFunction
) -> list[np.ndarray]:
    """Return by how much Σk and ΣkP go down where items of such sizes and pairs become others."""
    return [old - new for old, new in zip(terms(*before, weight), terms(*after, weight), strict=True)]


# ---- tables ----


def annotator_table(counts: LabelCounts, annotations: Annotations, level: float = 0.95) -> dict[str, np.ndarray]:
    r"""Estimate for each annotator how often other annotators of the same items agree.

    .. math:: \sum (n_{i,x} - 1) / \sum (n_i - 1)

    over the annotations (label x of item i) of the annotator: a pair is one annotation by them and one by somebody
    else. Several annotations of an item by one annotator are each paired with those of the others, not with each
    other.

    Parameters
    ----------
    counts : of these annotations.
    annotations : with known annotators; a row of weight w is w annotations.
    level : of the intervals.

    Returns
    -------
    Columns of a table with one row an annotator: ``annotator`` (code), ``annotations``, ``pairs``, ``agreement``,
    ``sd`` (jackknife over the annotator's items), ``lower``, ``upper`` (Wilson, at the effective sample size); NaN
    where there is nobody to compare with, or a single item.

    Raises
    ------
    UnsupportedRequest : where annotators are unknown.
    """
    item, annotator, cell, label, number = count_cells(annotations)
    num_annotators = annotations.num_annotators
    own = np.bincount(cell, number, len(item))
    agreeing = np.bincount(cell, number * (counts.at(item[cell], label) - number), len(item))
    pairs = own * (counts.size[item] - own)
    total, squares = (np.bincount(annotator, column, num_annotators) for column in (pairs, pairs**2))
    met = pairs > 0
    value, sd = jackknife_of_ratios(annotator[met], agreeing[met], pairs[met], num_annotators)
    lower, upper = wilson_interval(value, sd, ratio(total**2, squares), level)
    return {
        "annotator": np.arange(num_annotators),
        "annotations": np.rint(np.bincount(annotator, own, num_annotators)).astype(np.int64),
        "pairs": np.rint(total).astype(np.int64), "agreement": value, "sd": sd, "lower": lower, "upper": upper,
    }  # fmt: skip


def pair_table(annotations: Annotations, level: float = 0.95) -> dict[str, np.ndarray]:
    r"""Compare every two annotators on the items that both labelled.

    An annotator who labelled an item several times counts once, with the shares of their labels: agreement is then the
    chance that one of their annotations, and one of the other's, agree. Annotators are not compared with themselves.
    Without such repetitions the agreement over all pairs, weighted by common items, is SPA with `edge` weights.

    Cohen's kappa and Scott's pi are :math:`(P_a - P_e) / (1 - P_e)` with :math:`P_e = \sum_c p_{1c} p_{2c}` and
    :math:`\sum_c ((p_{1c} + p_{2c}) / 2)^2`, the p being class shares on the common items.

    Parameters
    ----------
    annotations : with known annotators.
    level : of the intervals.

    Returns
    -------
    Columns of a table with one row a pair with common items: ``annotator_a``, ``annotator_b`` (codes, the smaller
    first), ``items`` (in common), ``agreement``, ``lower``, ``upper`` (Wilson on the number of items),
    ``cohen_kappa``, ``scott_pi`` (NaN where P_e is one).

    Raises
    ------
    UnsupportedRequest : where annotators are unknown, or where there may be more than five million pairs.
    """
    cells = count_cells(annotations)
    _check_pairs(cells, annotations)
    shape = (annotations.num_annotators, annotations.num_items)
    labelled = sparse.csr_array((np.ones(len(cells.item)), (cells.annotator, cells.item)), shape)
    share = cells.number / np.bincount(cells.cell, cells.number)[cells.cell]
    keys, items = _upper(labelled @ labelled.T)
    order = np.argsort(keys)
    keys, items = keys[order], items[order]
    agreement = _values_at(keys, _same_labels(cells, share, shape[0])) / items
    cohen, scott = np.zeros(len(keys)), np.zeros(len(keys))
    for given in _label_matrices(cells, share, shape):
        margin = given @ labelled.T
        first, second = _values_at(keys, margin), _values_at(keys, margin.T)
        cohen += first * second
        scott += ((first + second) / 2) ** 2
    lower, upper = wilson(agreement, items, special.ndtri((1 + level) / 2))
    return {
        "annotator_a": keys // max(1, shape[0]), "annotator_b": keys % max(1, shape[0]),
        "items": np.rint(items).astype(np.int64), "agreement": agreement, "lower": lower, "upper": upper,
        "cohen_kappa": beyond_chance(agreement, cohen / items**2),
        "scott_pi": beyond_chance(agreement, scott / items**2),
    }  # fmt: skip


def sharing_most(annotations: Annotations, number: int) -> tuple[Int[np.ndarray, " chosen"], int]:
    """Return the codes of the annotators who share most items with others, and how many share any.

    An item counts once for each annotator with whom it is shared.

    Parameters
    ----------
    annotations : with known annotators.
    number : how many to return at most, in the order of their codes.
    """
    item, annotator, *_ = count_cells(annotations)
    others = np.bincount(item, minlength=annotations.num_items)[item] - 1
    shared = np.bincount(annotator, others, annotations.num_annotators)
    chosen = np.sort(np.argsort(-shared, kind="stable")[:number])
    return chosen[shared[chosen] > 0], int(np.count_nonzero(shared))


def _check_pairs(cells: Cells, annotations: Annotations) -> None:
    together = np.bincount(cells.item, minlength=1).astype(float)
    everybody = float(annotations.num_annotators)
    most = min(everybody * (everybody - 1) / 2, (together * (together - 1) / 2).sum())
    if most > _MOST_PAIRS:
        raise TooLarge(
            f"there may be {most:,.0f} pairs of annotators, and a table has room for {_MOST_PAIRS:,}; leave out the "
            "annotators with few annotations, or take a sample of the items"
        )


def _same_labels(cells: Cells, share: np.ndarray, num_annotators: int) -> sparse.csr_array:
    """Return on how many items annotators agree, shape (annotator, annotator)."""
    num_labels = cells.label.max(initial=0) + 1
    said, column = np.unique(cells.item[cells.cell] * num_labels + cells.label, return_inverse=True)
    shares = sparse.csr_array((share, (cells.annotator[cells.cell], column)), (num_annotators, len(said)))
    return shares @ shares.T


def _label_matrices(cells: Cells, share: np.ndarray, shape: tuple[int, int]) -> Iterator[sparse.csr_array]:
    """Yield for each label which share of an annotator's annotations of an item it is, shape (annotator, item)."""
    by_label = np.argsort(cells.label, kind="stable")
    starts = np.flatnonzero(np.diff(cells.label[by_label], prepend=-1))
    for entry in np.split(by_label, starts[1:]):
        place = (cells.annotator[cells.cell[entry]], cells.item[cells.cell[entry]])
        yield sparse.csr_array((share[entry], place), shape)


def _upper(product: sparse.sparray) -> tuple[Int[np.ndarray, " pair"], Float[np.ndarray, " pair"]]:
    """Return the places above the diagonal, row × columns + column, and what is there."""
    entries = product.tocoo()
    above = entries.row < entries.col
    return entries.row[above].astype(np.int64) * product.shape[1] + entries.col[above], entries.data[above]


def _values_at(keys: np.ndarray, product: sparse.sparray) -> Float[np.ndarray, " pair"]:
    """Return what a product has at these places, zero where it has nothing."""
    place, data = _upper(product)
    values = np.zeros(len(keys))
    values[np.searchsorted(keys, place)] = data
    return values
