r"""Nominal alpha for annotators like these: its standard error where the annotators are random too.

As of SPA (`annotators`), :math:`V = V_\text{item} + V_\text{annotator} - V_\text{cell}`, each a jackknife: without one
item, without one annotator, without one annotation. What leaves an item with a single annotation takes that out too.
With :math:`n_{ic}` annotations of class c among the :math:`n_i \ge 2` of item i, alpha follows from three sums,

.. math:: O = \sum_i \sum_c \frac{n_{ic} (n_{ic} - 1)}{n_i - 1}, \quad m = \sum_i n_i, \quad
          S = \sum_c m_c (m_c - 1), \qquad \alpha = \frac{O / m - S / (m (m - 1))}{1 - S / (m (m - 1))} .
"""

from __future__ import annotations

import numpy as np
from scipy import sparse, special

from consilience.arrays import Float, Int
from consilience.data.annotations import Annotations
from consilience.evaluation.agreement.annotators import TwoWay, count_cells
from consilience.evaluation.agreement.chance import beyond_chance
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.jackknife import jackknife_sd, ratio


def alpha_two_way_sd(counts: LabelCounts, annotations: Annotations) -> TwoWay:
    """Estimate the standard error of nominal alpha with items and annotators random.

    Parameters
    ----------
    counts : of these annotations.
    annotations : with known annotators; one is left out with all of their annotations.

    Returns
    -------
    As `annotators.two_way_sd`.

    Raises
    ------
    UnsupportedRequest : where annotators are unknown.
    """
    item, label, number = counts.entries
    usable = counts.size >= 2
    whole = _table(item, label, number, counts)
    single = sparse.csr_array((np.ones(len(item)), (np.arange(len(item)), label)), (len(item), counts.num_labels))
    items = np.flatnonzero(usable)
    of_items = alpha_without_each(counts, np.arange(len(items)), items, whole[items])
    kept = usable[item]
    of_cells = alpha_without_each(counts, np.arange(kept.sum()), item[kept], single[np.flatnonzero(kept)])
    cells = count_cells(annotations)
    said = sparse.csr_array((cells.number, (cells.cell, cells.label)), (len(cells.item), counts.num_labels))
    own = np.flatnonzero(usable[cells.item])
    present, unit = np.unique(cells.annotator[own], return_inverse=True)
    of_annotators = alpha_without_each(counts, unit, cells.item[own], said[own])
    item_sd, annotator_sd = jackknife_sd(of_items), jackknife_sd(of_annotators)
    cell_sd = jackknife_sd(of_cells, number[kept])
    variance = item_sd**2 + annotator_sd**2 - cell_sd**2
    return TwoWay(float(np.sqrt(np.maximum(variance, item_sd**2))), item_sd, annotator_sd, cell_sd, len(present))


def alpha_interval(value: float, sd: float, units: int, level: float) -> tuple[float, float]:
    """Return the interval of alpha by its standard error, at most 1.

    Parameters
    ----------
    value, sd : alpha, and its standard error.
    units : how many items or annotators the standard error was learned from, the fewer of them.
    level : of the interval. In 400 simulated crowds each of 5, 12 and 30 annotators, who are right with a probability
        between 0.5 and 0.95, intervals of 95 % held the alpha of a large crowd in 93 to 94 %.
    """
    if not np.isfinite(sd) or units < 2:
        return float("nan"), float("nan")
    half = special.stdtrit(units - 1, (1 + level) / 2) * sd
    return float(value - half), float(min(value + half, 1.0))


def alpha_without_each(
    counts: LabelCounts, unit: Int[np.ndarray, " part"], item: Int[np.ndarray, " part"], gone: sparse.csr_array
) -> Float[np.ndarray, " unit"]:
    """Return nominal alpha without each of some units; NaN where it is not defined.

    Parameters
    ----------
    counts : of all.
    unit : 0, 1, …; whose part it is.
    item : the item of the part, with two annotations or more; a unit has one part of an item at most.
    gone : shape ``(part, label)``; how many annotations of each label go.
    """
    whole = _table(*counts.entries, counts)
    before = whole[item]
    after = before - gone
    size, left = counts.size[item].astype(float), counts.size[item] - _sums(gone)
    stays = left >= 2
    agreeing = (_sums(after.power(2)) - left) * stays / np.maximum(left - 1, 1)
    own = counts.pairs[item] / (size - 1) - agreeing
    # Of an item of which one annotation would be left all go.
    lost = sparse.diags_array(stays * 1.0) @ gone + sparse.diags_array(~stays * 1.0) @ before
    number = unit.max(initial=-1) + 1
    by_unit = sparse.csr_array((np.ones(len(unit)), (unit, np.arange(len(unit)))), (number, len(unit))) @ lost
    usable = counts.size >= 2
    observed = float((counts.pairs[usable] / (counts.size[usable] - 1)).sum())
    margins = _sums(whole[np.flatnonzero(usable)].T)
    squares = (margins**2).sum() - 2 * (by_unit @ margins) + _sums(by_unit.power(2))
    total = margins.sum() - _sums(by_unit)
    expected = ratio(squares - total, total * (total - 1))
    return beyond_chance(ratio(observed - np.bincount(unit, own, number), total), expected)


def _table(item: np.ndarray, label: np.ndarray, number: np.ndarray, counts: LabelCounts) -> sparse.csr_array:
    """Return the counts of labels, shape ``(item, label)``."""
    return sparse.csr_array((np.asarray(number, float), (item, label)), (counts.num_items, counts.num_labels))


def _sums(rows: sparse.sparray) -> np.ndarray:
    """Return the sum of each row."""
    return np.asarray(rows.sum(axis=1), float)
