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

from consilience.arrays import Array, Float, Int
from consilience.data.annotations import Annotations
from consilience.errors import TooLarge, UnsupportedRequest
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.jackknife import jackknife_sd
from consilience.evaluation.agreement.sparse_probability import left_out_items
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


def _label_totals(counts: LabelCounts, item: np.ndarray, label: np.ndarray) -> Float[np.ndarray, " entry"]:
    """Return how many annotations an item has of a label, by anybody."""
    entries = counts.entries
    place = np.searchsorted(entries.item * counts.num_labels + entries.label, item * counts.num_labels + label)
    return entries.number[place]


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
    left_out = _left_out_annotators(counts, annotations, weight)
    item_sd = jackknife_sd(left_out_items(counts.patterns, weight), counts.patterns.multiplicity)
    annotator_sd, cell_sd = jackknife_sd(left_out), _cell_sd(counts, weight)
    variance = item_sd**2 + annotator_sd**2 - cell_sd**2
    return TwoWay(float(np.sqrt(np.maximum(variance, item_sd**2))), item_sd, annotator_sd, cell_sd, len(left_out))


def _terms(size: np.ndarray, pairs: np.ndarray, weight: WeightFunction) -> tuple[np.ndarray, np.ndarray]:
    """Return what items add to Σk and to ΣkP."""
    k = weight(size)
    return k, k * pairs / np.maximum(size * (size - 1), 1)


def _left_out(
    change: tuple[np.ndarray, np.ndarray], counts: LabelCounts, weight: WeightFunction
) -> Float[np.ndarray, " unit"]:
    """Return SPA after changes of Σk and of ΣkP; NaN where nothing is left."""
    patterns = counts.patterns
    k, agreeing = (patterns.multiplicity @ term for term in _terms(patterns.size, patterns.pairs, weight))
    rest = k + change[0]
    return np.divide(agreeing + change[1], rest, out=np.full(len(rest), np.nan), where=rest > 1e-12 * k)


def _left_out_annotators(
    counts: LabelCounts, annotations: Annotations, weight: WeightFunction
) -> Float[np.ndarray, " annotator"]:
    """Return SPA without each annotator who counts. Only the items of an annotator change."""
    item, annotator, cell, label, number = count_cells(annotations)
    total = _label_totals(counts, item[cell], label)
    size, pairs = counts.size[item].astype(float), counts.pairs[item].astype(float)
    left_size = size - np.bincount(cell, number, len(item))
    # (n - q)(n - q - 1) = n (n - 1) + q (q + 1 - 2 n), for q of the n annotations of a label.
    left_pairs = pairs + np.bincount(cell, number * (number + 1 - 2 * total), len(item))
    before, after = _terms(size, pairs, weight), _terms(left_size, left_pairs, weight)
    k, agreeing = (
        np.bincount(annotator, new - old, annotations.num_annotators) for old, new in zip(before, after, strict=True)
    )
    counted = np.bincount(annotator, size >= 2, annotations.num_annotators) > 0
    return _left_out((k[counted], agreeing[counted]), counts, weight)


def _cell_sd(counts: LabelCounts, weight: WeightFunction) -> float:
    """Return the jackknife over single annotations; those of one label and item are alike."""
    item, _, number = counts.entries
    usable = counts.size[item] >= 2
    item, number = item[usable], number[usable]
    size, pairs = counts.size[item].astype(float), counts.pairs[item].astype(float)
    before, after = _terms(size, pairs, weight), _terms(size - 1, pairs - 2 * (number - 1), weight)
    return jackknife_sd(_left_out((after[0] - before[0], after[1] - before[1]), counts, weight), number)


# ---- tables ----


def annotator_table(counts: LabelCounts, annotations: Annotations, level: float = 0.95) -> dict[str, np.ndarray]:
    r"""Estimate for each annotator how often other annotators of the same items agree.

    .. math:: \sum (n_{i,x} - 1) \Big/ \sum (n_i - 1)

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
    agreeing = np.bincount(cell, number * (_label_totals(counts, item[cell], label) - number), len(item))
    pairs = own * (counts.size[item] - own)
    total, agreed, squares = (np.bincount(annotator, column, num_annotators) for column in (pairs, agreeing, pairs**2))
    value = _ratio(agreed, total)
    met = pairs > 0
    sd = _ratio_sd(value, total, annotator[met], agreeing[met], pairs[met])
    effective = _ratio(total**2, squares)
    number_of_items = np.where(sd > 0, _ratio(value * (1 - value), sd**2), effective)
    lower, upper = _wilson(value, number_of_items, special.stdtrit(effective - 1, (1 + level) / 2))
    unknown = np.isnan(sd)
    return {
        "annotator": np.arange(num_annotators),
        "annotations": np.rint(np.bincount(annotator, own, num_annotators)).astype(np.int64),
        "pairs": np.rint(total).astype(np.int64), "agreement": value, "sd": sd,
        "lower": np.where(unknown, np.nan, lower), "upper": np.where(unknown, np.nan, upper),
    }  # fmt: skip


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.full(np.shape(denominator), np.nan), where=denominator > 0)


def _ratio_sd(
    value: np.ndarray, total: np.ndarray, group: np.ndarray, numerator: np.ndarray, denominator: np.ndarray
) -> Float[np.ndarray, " group"]:
    """Return the jackknife standard error of Σ numerator / Σ denominator in each group."""
    units = np.bincount(group, minlength=len(total))
    rest = total[group] - denominator
    # The estimate without a unit, less the estimate.
    deviation = _ratio(value[group] * denominator - numerator, rest)
    mean = _ratio(np.bincount(group, deviation, len(total)), units)
    scatter = np.bincount(group, (deviation - mean[group]) ** 2, len(total))
    sd = np.sqrt(scatter * _ratio(units - 1.0, units))
    # What rounding leaves of a standard error of zero would make an interval without width.
    return np.where(units > 1, np.where(sd > 1e-12, sd, 0.0), np.nan)


def _wilson(value: np.ndarray, number: np.ndarray, quantile: Array | float) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson intervals of shares among so many units; NaN where there are none."""
    number = np.where(number > 0, number, np.nan)
    square = quantile**2 / number
    centre = (value + square / 2) / (1 + square)
    half = np.sqrt(square * value * (1 - value) + square**2 / 4) / (1 + square)
    return np.maximum(0.0, centre - half), np.minimum(1.0, centre + half)


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
    lower, upper = _wilson(agreement, items, special.ndtri((1 + level) / 2))
    return {
        "annotator_a": keys // max(1, shape[0]), "annotator_b": keys % max(1, shape[0]),
        "items": np.rint(items).astype(np.int64), "agreement": agreement, "lower": lower, "upper": upper,
        "cohen_kappa": _corrected(agreement, cohen / items**2), "scott_pi": _corrected(agreement, scott / items**2),
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


def _corrected(agreement: np.ndarray, expected: np.ndarray) -> np.ndarray:
    rest = 1 - expected
    return np.divide(agreement - expected, rest, out=np.full(len(rest), np.nan), where=rest > 1e-12)
