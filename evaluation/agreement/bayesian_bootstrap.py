r"""Intervals of coefficients: the Bayesian bootstrap over items, with one pseudo-item.

Every coefficient is a function g of sums over items, such as agreeing pairs and class totals. A draw is

.. math:: g \left( \sum_i E_i x_i + \gamma x_0 \right), \qquad E_i, \gamma \sim \text{Exponential}(1),

with what an item adds to the sums in :math:`x_i` (Rubin 1981). Items that all agree would give draws that are all
alike. The pseudo-item prevents it: a mixture of pairs of labels from a Dirichlet process of concentration 1, whose base
is a pair that agrees with probability 1/2. For a share it is the prior of Jeffreys, Beta(1/2, 1/2).

Items with equal counts are one unit, whose weight is a Gamma variable of their number. Where there are more than 4,096
kinds of items, items are put into as many bags at random, and bags get the weights: intervals stay right up to 1 %.

References
----------
D. B. Rubin. The Bayesian bootstrap. Annals of Statistics 9 (1981).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from consilience.arrays import Float, Int
from consilience.evaluation.agreement.counts import Entries
from consilience.evaluation.agreement.jackknife import ratio
from consilience.evaluation.unit_sums import STICKS, stick_shares
from consilience.models.intervals import ends

NUM_DRAWS = 2000
_SEED, _MOST_UNITS = 0, 4096

# Sums that are looked at together: 2 MB, which stay in the cache of a core.
_CELLS = 1 << 18


class Draws(NamedTuple):
    """Sums of some draws.

    Parameters
    ----------
    own, counted : shape ``(draw, part)`` and ``(draw, column)``; sums over items.
    weight, first, second : shape ``(draw, stick)``; the pairs of labels of the pseudo-item, and their weights.
    used : shape ``(label,)``, increasing; the labels of columns and of pairs.
    place : shape ``(column,)``; where among these the label of a column is.
    """

    own: np.ndarray
    counted: np.ndarray
    weight: np.ndarray
    first: np.ndarray
    second: np.ndarray
    used: np.ndarray
    place: np.ndarray

    def pseudo(self, distance: Any) -> Float[np.ndarray, " draw"]:
        """Sum numbers of shape ``(draw, stick)`` over the pseudo-item."""
        return (self.weight * distance).sum(axis=1)

    def said(self, label: Int[np.ndarray, "draw stick"]) -> Float[np.ndarray, "draw label"]:
        """Return the weight of each label among the first, or the second, of the pairs."""
        cell = np.arange(len(label))[:, None] * len(self.used) + np.searchsorted(self.used, label)
        return np.bincount(cell.ravel(), self.weight.ravel(), len(label) * len(self.used)).reshape(len(label), -1)

    def agreement(self) -> Float[np.ndarray, " draw"]:
        """Return ΣkP / Σk, where k and kP are the parts of items."""
        return ratio(self.own[:, 1] + self.pseudo(self.first == self.second), self.own[:, 0] + self.pseudo(1))

    def totals(self, mean: float) -> Float[np.ndarray, "draw label"]:
        """Return class totals where columns are labels, and a pair counts as the mean number of labels of an item."""
        total = mean / 2 * (self.said(self.first) + self.said(self.second))
        total[:, self.place] += self.counted
        return total


def bootstrap_interval(
    entries: Entries, own: Any, amount: Float[np.ndarray, " entry"], label: Int[np.ndarray, " column"],
    coefficient: Callable[[Draws], Float[np.ndarray, " draw"]], num_labels: int, level: float,
) -> tuple[float, float]:  # fmt: skip
    """Return the interval of a coefficient.

    Parameters
    ----------
    entries : the items that take part; those with equal entries are equal.
    own : shape ``(item, part)``, dense or sparse; what items add to sums.
    amount : what an entry adds to the sum of its label, which is a column here.
    label : the label of each column.

    Returns
    -------
    Quantiles of the draws; NaN where the coefficient is defined in none, or no item takes part.
    """
    random, shape = np.random.default_rng([_SEED, 0]), (NUM_DRAWS, STICKS)
    share = stick_shares(random.random(shape).T).T
    first, further = random.integers(0, max(1, num_labels), shape), random.integers(1, max(2, num_labels), shape)
    second = np.where(random.random(shape) < 0.5, first, (first + further) % max(1, num_labels))
    pairs = share * random.standard_exponential((NUM_DRAWS, 1)), first, second
    used = np.flatnonzero(np.bincount(np.concatenate([first.ravel(), second.ravel(), label])))
    place, size = np.searchsorted(used, label), (own.shape[0], len(label))
    counted = sparse.csr_array((amount, (entries.item, entries.label)), size)
    units, number = _units(entries, sparse.hstack([sparse.csr_array(own), counted], format="csr"))
    step, found = max(1, _CELLS // max(*units.shape, len(used))), []
    for start in range(0, NUM_DRAWS, step):
        weight, one, other = (part[start : start + step] for part in pairs)
        sums = random.standard_gamma(number, (len(weight), len(number))) @ units
        items = sums[:, : own.shape[1]], sums[:, own.shape[1] :]
        found.append(coefficient(Draws(*items, weight, one, other, used, place)))
    draws = np.concatenate(found)
    known = draws[np.isfinite(draws)] if len(number) else draws[:0]
    lower, upper = np.quantile(known, ends(level)) if len(known) else (np.nan, np.nan)
    return float(lower), float(upper)


def _units(entries: Entries, parts: sparse.csr_array) -> tuple[sparse.csr_array, Int[np.ndarray, " unit"]]:
    """Return the parts of each unit, and the number of items that one stands for."""
    item, column, number = entries
    random, starts = np.random.default_rng([_SEED, 1]), np.flatnonzero(np.diff(item, prepend=-1))
    # Sums of random multiples of 64 bits: as good as never equal for items that differ, and the same in any order.
    factor = random.integers(0, 2**64, column.max(initial=0) + 1, dtype=np.uint64)
    keys = np.add.reduceat(factor[column] * number.astype(np.uint64), starts) if len(starts) else factor[:0]
    _, first, multiplicity = np.unique(keys, return_index=True, return_counts=True)
    if len(first) <= _MOST_UNITS:
        return parts[item[starts[first]]], multiplicity
    place = random.integers(0, _MOST_UNITS, len(starts)), item[starts[np.argsort(keys, kind="stable")]]
    bags = sparse.csr_array((np.ones(len(starts)), place), (_MOST_UNITS, parts.shape[0]))
    return bags @ parts, np.ones(_MOST_UNITS, np.int64)
