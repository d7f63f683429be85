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
takes part in :math:`P_e` of all but `pairable`.

References
----------
J. Nørregaard and L. Derczynski. Sparse probability of agreement. arXiv:2208.06161 (2022).
J. L. Fleiss. Measuring nominal scale agreement among many raters. Psychological Bulletin 76 (1971).
K. L. Gwet. Computing inter-rater reliability and its variance in the presence of high agreement. British Journal of
Mathematical and Statistical Psychology 61 (2008).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.arrays import Array, Bool, Float
from consilience.errors import UnknownName
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.jackknife import jackknife_sd, jackknife_value, t_interval
from consilience.evaluation.agreement.weighting import WeightFunction, weight_function

FLEISS_CONVENTIONS = ("pooled", "item-mean", "pairable")
"""Whose class shares Fleiss' kappa takes; see the module."""

# Below this a chance of disagreement is rounding: one annotation in M of another class gives about 2 / M.
_LEAST_DISAGREEMENT = 1e-12


class Coefficient(NamedTuple):
    """An estimated coefficient of agreement.

    Parameters
    ----------
    name : as people call it.
    convention : which of its variants, or "".
    value : NaN where it is not defined, as with a single class.
    sd : jackknife standard error over items.
    lower, upper : interval; a t interval but for percent agreement, which has Wilson's. No width where all items agree:
        then the data say nothing about how much they scatter.
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


class Kappa(NamedTuple):
    """SPA beyond chance.

    Parameters
    ----------
    value : (SPA - P_e) / (1 - P_e).
    bias_reduced : the same with the jackknife's correction of its bias. A ratio of unbiased estimates is biased by
        order 1 / items; what is left is smaller, not zero.
    sd : jackknife standard error over items.
    lower, upper : t interval around ``bias_reduced``.
    observed, expected : SPA and P_e.
    """

    value: float
    bias_reduced: float
    sd: float
    lower: float
    upper: float
    observed: float
    expected: float


def expected_agreement(counts: LabelCounts) -> float:
    """Return P_e from pairs of annotations of different items; NaN where there is only one item."""
    return _different_items(counts)[0]


def kappa(counts: LabelCounts, weight: WeightFunction, level: float = 0.95) -> Kappa:
    """Estimate SPA beyond chance, with chance from pairs of annotations of different items.

    Parameters
    ----------
    counts : items with a single annotation take part in P_e, and in the jackknife.
    weight : k(n) of SPA; see `weight_function`. It is held fixed while items are left out.
    level : of the interval. Simulated 95 % intervals cover a kappa of 0.5 in 92, 94 and 96 % of samples of 10, 20 and
        50 items, and one of 0.87 in 86 % of samples of 20.

    Returns
    -------
    NaN with one item or one class; the standard error also where leaving out some item would leave one class.
    """
    annotated = counts.size > 0
    observed, left_observed = left_out_agreement(counts, weight, annotated)
    expected, left_expected = _different_items(counts)
    value = float(beyond_chance(observed, expected))
    left_out = beyond_chance(left_observed, left_expected[annotated])
    bias_reduced, sd = jackknife_value(value, left_out), jackknife_sd(left_out)
    interval = t_interval(bias_reduced, sd, float(len(left_out)), level)
    return Kappa(value, bias_reduced, sd, *interval, observed, expected)


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
    expected, left_expected = _squared_shares(counts, amount)
    return _against_flat(counts, "Fleiss' kappa", convention, expected, left_expected, taking_part, level)


def gwet_ac1(counts: LabelCounts, level: float = 0.95) -> Coefficient:
    """Estimate Gwet's AC1, whose chance agreement is small where one class prevails.

    Its number of classes is the declared one, ``counts.num_labels``, with those never used. NaN if that is one.
    """
    item, _, number = counts.entries
    squares, left_squares = _squared_shares(counts, number / counts.size[item])
    others = counts.num_labels - 1 if counts.num_labels > 1 else float("nan")
    expected, left_expected = (1 - squares) / others, (1 - left_squares) / others
    return _against_flat(counts, "Gwet's AC1", "", expected, left_expected, counts.size > 0, level)


# ---- parts ----


def beyond_chance(observed: float | Float[Array, " *unit"], expected: float | Float[Array, " *unit"]) -> np.ndarray:
    """Return (P_a - P_e) / (1 - P_e), elementwise; NaN where P_e = 1."""
    rest = 1 - np.asarray(expected, float)
    return np.divide(observed - expected, rest, out=np.full(rest.shape, np.nan), where=rest > _LEAST_DISAGREEMENT)


def with_jackknife(
    name: str,
    convention: str,
    value: float,
    left_out: Float[Array, " unit"],
    observed: float,
    expected: float,
    level: float,
) -> Coefficient:
    """Return a coefficient with its standard error and t interval from the values without one unit each."""
    sd = jackknife_sd(left_out)
    interval = t_interval(value, sd, float(len(left_out)), level)
    return Coefficient(name, convention, float(value), sd, *interval, float(observed), float(expected))


def left_out_agreement(
    counts: LabelCounts, weight: WeightFunction, taking_part: Bool[Array, " item"]
) -> tuple[float, Float[np.ndarray, " unit"]]:
    """Return SPA, and SPA without each of the items that take part."""
    size = counts.size.astype(float)
    k = weight(size)
    agreeing = k * np.divide(counts.pairs, size * (size - 1), out=np.zeros(len(size)), where=size >= 2)
    rest = k.sum() - k
    left_out = np.divide(agreeing.sum() - agreeing, rest, out=np.full(len(k), np.nan), where=rest > 1e-12 * k)
    return _divide(agreeing.sum(), k.sum()), left_out[taking_part]


def _against_flat(
    counts: LabelCounts,
    name: str,
    convention: str,
    expected: float,
    left_expected: np.ndarray,
    taking_part: np.ndarray,
    level: float,
) -> Coefficient:
    observed, left_observed = left_out_agreement(counts, weight_function("flat", counts), taking_part)
    left_out = beyond_chance(left_observed, left_expected[taking_part])
    value = float(beyond_chance(observed, expected))
    return with_jackknife(name, convention, value, left_out, observed, expected, level)


def _different_items(counts: LabelCounts) -> tuple[float, np.ndarray]:
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
    return _divide(agreeing, possible), _ratio(left_agreeing, left_possible)


def _squared_shares(counts: LabelCounts, amount: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the sum of the squared class shares where an entry counts by an amount, and that without each item."""
    item, label, _ = counts.entries
    # Of no entries at all, `bincount` makes whole numbers.
    totals = np.bincount(label, amount, counts.num_labels).astype(float)
    own, shared, squares = (
        np.bincount(item, values, counts.num_items) for values in (amount, totals[label] * amount, amount**2)
    )
    total, agreeing = totals.sum(), (totals**2).sum()
    return _divide(agreeing, total**2), _ratio(agreeing - 2 * shared + squares, (total - own) ** 2)


def _divide(numerator: float, denominator: float) -> float:
    return float(numerator / denominator) if denominator > 0 else float("nan")


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    # The denominators count annotations or items, up to rounding: below one half there are none.
    return np.divide(numerator, denominator, out=np.full(len(denominator), np.nan), where=denominator > 0.5)
