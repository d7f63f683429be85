r"""Intervals of coefficients: the Bayesian bootstrap over items, with one pseudo-item.

Every coefficient is a function g of sums over items, such as agreeing pairs and class totals. A draw is

.. math:: g \Big( \sum_i E_i x_i + \gamma x_0 \Big), \qquad E_i, \gamma \sim \text{Exponential}(1),

with what an item adds to the sums in :math:`x_i` (Rubin 1981). Items that all agree would give draws that are all
alike. The pseudo-item :math:`x_0` prevents it: a mixture of pairs of labels from a Dirichlet process of
concentration 1, whose base pair agrees with probability 1/2. It is the prior of Jeffreys for a share, Beta(1/2, 1/2).

Items with equal counts are one unit, whose weight is a Gamma variable of their number. Where more than 4,096 kinds of
items occur, items are put into as many bags at random, and bags get the weights: the variance stays right up to its own
error, 2 %.

References
----------
D. B. Rubin. The Bayesian bootstrap. Annals of Statistics 9 (1981).
J. Sethuraman. A constructive definition of Dirichlet priors. Statistica Sinica 4 (1994).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from consilience.arrays import Float, Int
from consilience.evaluation.agreement.counts import Entries
from consilience.models.intervals import ends

NUM_DRAWS = 2000
_NUM_STICKS, _SEED, _MOST_UNITS = 12, 0, 4096

# Sums that are looked at together: 32 MB.
_CELLS = 1 << 22


class PseudoItems(NamedTuple):
    """The pseudo-item of each draw, as pairs of labels.

    Parameters
    ----------
    weight : float64, shape ``(draw, stick)``; γ, broken into the weights of the pairs.
    first, second : shape ``(draw, stick)``; codes of the labels.
    num_labels : how many labels have codes.
    """

    weight: np.ndarray
    first: np.ndarray
    second: np.ndarray
    num_labels: int

    def totals(self, code: Int[np.ndarray, "draw stick"], number: int) -> Float[np.ndarray, "draw code"]:
        """Return the weight of each code, such as that of the ``first`` label."""
        cell = np.arange(len(code))[:, None] * number + code
        return np.bincount(cell.ravel(), self.weight.ravel(), len(code) * number).reshape(len(code), number)


def pseudo_items(num_labels: int, seen: Int[np.ndarray, " entry"]) -> tuple[PseudoItems, Int[np.ndarray, " label"]]:
    """Draw the pseudo-items, and give new codes to the labels of these or of what was ``seen``, in their order.

    Returns
    -------
    They, and the labels that have new codes.
    """
    random, shape = np.random.default_rng([_SEED, 0]), (NUM_DRAWS, _NUM_STICKS)
    stick = random.random(shape)
    stick[:, -1] = 1
    left = np.column_stack([np.ones(NUM_DRAWS), np.cumprod(1 - stick[:, :-1], axis=1)])
    first, further = random.integers(0, max(1, num_labels), shape), random.integers(1, max(2, num_labels), shape)
    second = np.where(random.random(shape) < 0.5, first, (first + further) % max(1, num_labels))
    kept = np.bincount(np.concatenate([first.ravel(), second.ravel(), seen])) > 0
    code, weight = np.cumsum(kept) - 1, stick * left * random.standard_exponential((NUM_DRAWS, 1))
    return PseudoItems(weight, code[first], code[second], int(kept.sum())), np.flatnonzero(kept)


def bootstrap_interval(
    entries: Entries,
    parts: sparse.csr_array,
    items: PseudoItems,
    pseudo_parts: Callable[[PseudoItems], Float[np.ndarray, "draw part"]],
    coefficient: Callable[[Float[np.ndarray, "draw part"]], Float[np.ndarray, " draw"]],
    level: float,
) -> tuple[float, float]:
    """Return the interval of a coefficient, a function of sums of parts.

    Parameters
    ----------
    entries : the items that take part; those with equal entries have equal parts.
    parts : shape ``(item, part)``; what an item adds to the sums.
    items, pseudo_parts : the pseudo-items, and what some of them add.

    Returns
    -------
    Quantiles of the draws; NaN where the coefficient is defined in none, or no item takes part.
    """
    units, number = _units(entries, parts)
    random, step, found = np.random.default_rng([_SEED, 1]), max(1, _CELLS // max(*units.shape, 1)), []
    for start in range(0, NUM_DRAWS, step):
        block = items._replace(**{name: getattr(items, name)[start : start + step] for name in items._fields[:3]})
        weight = random.standard_gamma(number, (len(block.weight), len(number)))
        found.append(coefficient(weight @ units + pseudo_parts(block)))
    draws = np.concatenate(found)
    draws = draws[np.isfinite(draws)]
    if not len(draws) or not len(number):
        return float("nan"), float("nan")
    lower, upper = np.quantile(draws, ends(level))
    return float(lower), float(upper)


def _units(entries: Entries, parts: sparse.csr_array) -> tuple[sparse.csr_array, Int[np.ndarray, " unit"]]:
    """Return the parts of each unit, and the number of items that one stands for."""
    item, label, number = entries
    random, starts = np.random.default_rng([_SEED, 2]), np.flatnonzero(np.diff(item, prepend=-1))
    # Sums of random multiples of 64 bits: as good as never equal for items that differ, and the same in any order.
    factor = random.integers(0, 2**64, label.max(initial=0) + 1, dtype=np.uint64)
    keys = np.add.reduceat(factor[label] * number.astype(np.uint64), starts) if len(starts) else factor[:0]
    _, first, multiplicity = np.unique(keys, return_index=True, return_counts=True)
    if len(first) <= _MOST_UNITS:
        return parts[item[starts[first]]], multiplicity
    bag = random.integers(0, _MOST_UNITS, len(starts))
    place = (bag, item[starts[np.argsort(keys, kind="stable")]])
    bags = sparse.csr_array((np.ones(len(bag)), place), (_MOST_UNITS, parts.shape[0])) @ parts
    return bags, np.ones(_MOST_UNITS, np.int64)
