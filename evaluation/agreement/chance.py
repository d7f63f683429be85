r"""Agreement beyond chance, :math:`(P_a - P_e) / (1 - P_e)`, where chance is estimated from label counts.

:math:`P_a` is how often annotators agree, :math:`P_e` how often they would if labels had nothing to do with items. The
coefficients of this family differ in :math:`P_e` alone.

The paper leaves a chance correction of SPA open. With :math:`n_{ic}` annotations of class c for item i,
:math:`n_i = \sum_c n_{ic}`, :math:`N_c = \sum_i n_{ic}` and :math:`M = \sum_c N_c`, the chance that two annotations of
*different* items agree is estimated without bias by

.. math:: P_e^U = \frac{\sum_c N_c^2 - \sum_i \sum_c n_{ic}^2}{M^2 - \sum_i n_i^2}.

The usual :math:`\sum_c (N_c / M)^2` also counts pairs of an annotation with itself and pairs within an item, which
agree more often than by chance: it is too large, and kappa too small, by the more the fewer items there are.

Three conventions of Fleiss' kappa exist where items are annotated unequally often, and agree where they are not:
the class shares are those of all annotations (`pooled`), the mean of the items' shares (`item-mean`), or those of the
annotations of items with two or more (`pairable`).

Standard errors are jackknives of the whole ratio over the items that take part in it: an item with a single annotation
takes part in :math:`P_e` of all but `pairable`. Intervals (`bayesian_bootstrap`) are of the coefficient of the
population of items, where P_e is the sum of the squared class shares.

References
----------
J. Nørregaard and L. Derczynski. Sparse probability of agreement. arXiv:2208.06161 (2022).
J. L. Fleiss. Measuring nominal scale agreement among many raters. Psychological Bulletin 76 (1971).
K. L. Gwet. Computing inter-rater reliability and its variance in the presence of high agreement. British Journal of
Mathematical and Statistical Psychology 61 (2008).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from consilience.arrays import Array, Bool, Float
from consilience.data.codes import places
from consilience.errors import UnknownName
from consilience.evaluation.agreement.bayesian_bootstrap import Draws, bootstrap_interval
from consilience.evaluation.agreement.counts import Entries, LabelCounts
from consilience.evaluation.agreement.jackknife import jackknife_sd, jackknife_value, ratio
from consilience.evaluation.agreement.sparse_probability import left_out, sparse_agreement, terms
from consilience.evaluation.agreement.weighting import WeightFunction, weight_function

FLEISS_CONVENTIONS = ("pooled", "item-mean", "pairable")
"""Whose class shares Fleiss' kappa takes; see the module."""

# Below this a chance of disagreement is rounding: one annotation in M of another class gives about 2 / M.
_LEAST_DISAGREEMENT = 1e-12

# What counts annotations or items, up to rounding, is none below this.
_NONE = 0.5

WithoutEach = tuple[float, np.ndarray]
"""A number, and the same without each item, shape ``(item,)``."""


class Coefficient(NamedTuple):
    """An estimated coefficient of agreement.

    Parameters
    ----------
    name : as people call it.
    convention : which of its variants, or "".
    value : NaN where it is not defined, as with a single class.
    sd : jackknife standard error over items.
    lower, upper : interval, by the Bayesian bootstrap; Wilson's for percent agreement. It holds the value, and has a
        width also where all items agree, or where the value is not defined because one of several classes occurs
        alone. NaN where no item has two annotations, or a single class is declared.
    observed, expected : P_a and P_e, so that value = (P_a - P_e) / (1 - P_e); NaN where nothing is corrected for.
    """

    name: str
    convention: str
    value: float
    sd: float
    lower: float
    upper: float
    observed: float
    expected: float


def kappa(counts: LabelCounts, weight: WeightFunction, level: float = 0.95) -> tuple[Coefficient, Coefficient]:
    """Estimate SPA beyond chance, with chance from pairs of annotations of different items.

    Parameters
    ----------
    counts : items with a single annotation take part in P_e, and in the jackknife.
    weight : k(n) of SPA; see `weight_function`. It is held fixed while items are left out.
    level : of the interval. Simulated 95 % intervals cover a kappa of 0.5 in 95 % of samples of 20 items, and one of
        0.83 in 97 %, with two classes of equal shares; where one of them has 5 % of the labels, in 94 to 100 %.

    Returns
    -------
    The plain ratio, and the same with the jackknife's correction of its bias: a ratio of unbiased estimates is biased
    by order 1 / items, and what is left is smaller, not zero. NaN with one item or one class; the standard error also
    where leaving out some item would leave one class.
    """
    annotated = counts.size > 0
    expected = _different_items(counts)
    interval = pooled_interval(counts, weight, counts.entries.number, annotated, level)
    plain, left = _against_chance(counts, weight, "kappa", "different items", expected, annotated, interval)
    value = jackknife_value(plain.value, left)
    lower, upper = _holding(value, interval)
    return plain, plain._replace(convention="different items, bias-reduced", value=value, lower=lower, upper=upper)


def fleiss_kappa(counts: LabelCounts, convention: str = "pooled", level: float = 0.95) -> Coefficient:
    """Estimate Fleiss' kappa: SPA with flat weights against the agreement of labels drawn by their shares.

    Parameters
    ----------
    convention : one of `FLEISS_CONVENTIONS`; whose shares.
    level : of the interval.

    Raises
    ------
    UnknownName : for another convention.
    """
    item, _, number = counts.entries
    size = counts.size[item]
    if convention == "pooled":
        amount = number
    elif convention == "item-mean":
        amount = number / size
    elif convention == "pairable":
        amount = np.where(size >= 2, number, 0.0)
    else:
        raise UnknownName(f"no convention is called {convention!r}; choose one of {', '.join(FLEISS_CONVENTIONS)}")
    taking_part = counts.size >= (2 if convention == "pairable" else 1)
    interval = pooled_interval(counts, weight_function("flat", counts), amount, taking_part, level)
    return against_flat(counts, "Fleiss' kappa", convention, _squared_shares(counts, amount), taking_part, interval)


def gwet_ac1(counts: LabelCounts, level: float = 0.95) -> Coefficient:
    """Estimate Gwet's AC1, whose chance agreement is small where one class prevails.

    Its number of classes is the declared one, ``counts.num_labels``, with those never used. NaN if that is one.
    """
    item, _, number = counts.entries
    amount, flat, annotated = number / counts.size[item], weight_function("flat", counts), counts.size > 0
    squares, left_squares = _squared_shares(counts, amount)
    others = counts.num_labels - 1 if counts.num_labels > 1 else float("nan")
    expected = (1 - squares) / others, (1 - left_squares) / others
    interval = pooled_interval(counts, flat, amount, annotated, level, lambda squares: (1 - squares) / others)
    return against_flat(counts, "Gwet's AC1", "", expected, annotated, interval)


# ---- parts ----


def beyond_chance(observed: float | Float[Array, " *unit"], expected: float | Float[Array, " *unit"]) -> np.ndarray:
    """Return (P_a - P_e) / (1 - P_e), elementwise; NaN where P_e = 1."""
    return ratio(observed - expected, 1 - expected, _LEAST_DISAGREEMENT)


def with_jackknife(
    name: str,
    convention: str,
    value: float,
    left_out: Float[Array, " unit"],
    observed: float,
    expected: float,
    interval: tuple[float, float],
) -> Coefficient:
    """Return a coefficient with its standard error from the values without one unit each."""
    numbers = float(value), jackknife_sd(left_out), *_holding(value, interval), float(observed), float(expected)
    return Coefficient(name, convention, *numbers)


def _holding(value: float, interval: tuple[float, float]) -> tuple[float, float]:
    """Widen an interval up to the value, at most to 1: draws stay below 1, and are not freed of bias."""
    if np.isnan(value):
        return interval
    return float(np.minimum(interval[0], value)), float(np.minimum(1, np.maximum(interval[1], value)))


def pooled_interval(
    counts: LabelCounts, weight: WeightFunction, amount: Float[np.ndarray, " entry"],
    taking_part: Bool[np.ndarray, " item"], level: float, chance: Callable[[np.ndarray], np.ndarray] = np.positive,
) -> tuple[float, float]:  # fmt: skip
    """Return the interval of a coefficient whose P_e follows from Σ (share of c)², entries counting by an amount."""
    kept = taking_part[counts.entries.item]
    item, label, number = (column[kept] for column in counts.entries)
    labels, column = places(label)
    own = np.column_stack(terms(counts.size, counts.pairs, weight))
    # A pseudo-item has the mean weight of items.
    own, mean = own / ratio(own[:, 0].sum(), (own[:, 0] > 0).sum()), float(ratio(amount[kept].sum(), taking_part.sum()))

    def coefficient(draws: Draws) -> np.ndarray:
        totals = draws.totals(mean)
        squares = ratio((totals**2).sum(axis=1), totals.sum(axis=1) ** 2)
        return beyond_chance(draws.agreement(), chance(squares))

    entries = Entries(item, column, number)
    return bootstrap_interval(entries, own, amount[kept], labels, coefficient, counts.num_labels, level)


def against_flat(
    counts: LabelCounts, name: str, convention: str, expected: WithoutEach, taking_part: Bool[np.ndarray, " item"],
    interval: tuple[float, float],
) -> Coefficient:  # fmt: skip
    """Return a coefficient that sets SPA with flat weights against chance.

    Parameters
    ----------
    expected : P_e, and P_e without each item.
    taking_part : shape ``(item,)``; the items that the jackknife leaves out.
    """
    flat = weight_function("flat", counts)
    return _against_chance(counts, flat, name, convention, expected, taking_part, interval)[0]


def _against_chance(
    counts: LabelCounts, weight: WeightFunction, name: str, convention: str, expected: WithoutEach,
    taking_part: np.ndarray, interval: tuple[float, float],
) -> tuple[Coefficient, np.ndarray]:  # fmt: skip
    """Return a coefficient, and its values without each of the items that take part."""
    observed = sparse_agreement(counts.patterns, weight).value
    left_observed = left_out(counts.patterns, weight, *terms(counts.size, counts.pairs, weight))[taking_part]
    left = beyond_chance(left_observed, expected[1][taking_part])
    value = float(beyond_chance(observed, expected[0]))
    return with_jackknife(name, convention, value, left, observed, expected[0], interval), left


def _different_items(counts: LabelCounts) -> WithoutEach:
    """Return P_e from pairs of different items, and that without each item."""
    item, label, number = counts.entries
    size, totals = counts.size.astype(float), counts.label_totals.astype(float)
    squares = counts.pairs + size
    shared = np.bincount(item, totals[label] * number, counts.num_items)
    agreeing = (totals**2).sum() - squares.sum()
    possible = size.sum() ** 2 - (size**2).sum()
    # Without item i the totals are N_c - n_ic; what it had in common with the others goes, once for either order.
    left_agreeing = agreeing - 2 * (shared - squares)
    left_possible = possible - 2 * size * (size.sum() - size)
    return float(ratio(agreeing, possible)), ratio(left_agreeing, left_possible, _NONE)


def _squared_shares(counts: LabelCounts, amount: np.ndarray) -> WithoutEach:
    """Return the sum of the squared class shares where an entry counts by an amount, and that without each item."""
    item, label, _ = counts.entries
    # Of no entries at all, `bincount` makes whole numbers.
    totals = np.bincount(label, amount, counts.num_labels).astype(float)
    own, shared, squares = (
        np.bincount(item, values, counts.num_items) for values in (amount, totals[label] * amount, amount**2)
    )
    total, agreeing = totals.sum(), (totals**2).sum()
    return float(ratio(agreeing, total**2)), ratio(agreeing - 2 * shared + squares, (total - own) ** 2, _NONE)
