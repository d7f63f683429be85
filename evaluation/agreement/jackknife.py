"""One engine for standard errors, one interval for shares, and ratios that may be undefined.

The jackknife leaves one item (annotator, annotation) out at a time and looks at how the estimate scatters. It needs no
formula for each coefficient, and for coefficients made of sums over items it costs no more than the estimate itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from consilience.arrays import Array, Float, Int
from consilience.errors import UnsupportedRequest
from consilience.models.intervals import ends

# A standard error that is not above this is that of units that are all alike.
_ROUNDING = 1e-12


def check_level(level: float) -> None:
    """Refuse what is no level of an interval.

    Raises
    ------
    UnsupportedRequest : it is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise UnsupportedRequest(f"level is {level}; give a number between 0 and 1, such as 0.95")


def ratio(numerator: Any, denominator: Any, least: Any = 0.0) -> np.ndarray:
    """Return a quotient, elementwise; NaN where the denominator is not above ``least``."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    return np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > least)


def jackknife_sd(left_out: Float[Array, " unit"], multiplicity: Float[Array, " unit"] | None = None) -> float:
    """Return the jackknife standard error.

    Parameters
    ----------
    left_out : shape ``(unit,)``; the estimate without that unit.
    multiplicity : shape ``(unit,)``; how many equal units an entry stands for, one by default.

    Returns
    -------
    NaN with fewer than two units, or where an estimate without a unit does not exist.
    """
    count = np.ones(len(left_out)) if multiplicity is None else multiplicity
    number = count.sum()
    if number < 2:
        return float("nan")
    deviation = left_out - (count * left_out).sum() / number
    return float(np.sqrt((number - 1) / number * (count * deviation**2).sum()))


def jackknife_value(value: float, left_out: Float[Array, " unit"]) -> float:
    """Return the estimate with the jackknife's correction of its bias: I value - (I - 1) mean of the left-out ones."""
    number = len(left_out)
    return float(number * value - (number - 1) * left_out.mean()) if number >= 2 else float("nan")


def jackknife_of_ratios(
    group: Int[Array, " unit"],
    numerator: Float[Array, " unit"],
    denominator: Float[Array, " unit"],
    num_groups: int,
    num_units: int | None = None,
) -> tuple[Float[np.ndarray, " group"], Float[np.ndarray, " group"]]:
    """Return Σ numerator / Σ denominator of each group, and its jackknife standard error.

    Parameters
    ----------
    group, numerator, denominator : shape ``(unit,)``.
    num_groups : how many groups there are.
    num_units : of each group, those included that have no part in it and leave it as it is; its own units by default.

    Returns
    -------
    Both float64, shape ``(group,)``. The value is NaN where nothing is divided by, the standard error with fewer than
    two units, or where all is one unit's.
    """
    top, total, own = (np.bincount(group, part, num_groups) for part in (numerator, denominator, np.ones(len(group))))
    value, number = ratio(top, total), own if num_units is None else np.full(num_groups, float(num_units))
    # The estimate without a unit, less the estimate.
    rest = total[group] - denominator
    deviation = np.where(rest > 1e-12 * denominator, ratio(value[group] * denominator - numerator, rest), np.nan)
    mean = ratio(np.bincount(group, deviation, num_groups), number)
    scatter = np.bincount(group, (deviation - mean[group]) ** 2, num_groups) + (number - own) * mean**2
    sd = np.where((number > 1) & np.isfinite(value), np.sqrt(scatter * ratio(number - 1, number)), np.nan)
    # What rounding leaves of a standard error of zero would make an interval without width.
    return value, np.where(sd <= _ROUNDING, 0.0, sd)


def wilson(value: Any, number: Any, quantile: Any = None) -> tuple[Any, Any]:
    """Return Wilson intervals of shares of so many units, at a quantile of the normal or the t distribution.

    The quantile is that of 95 % and the normal by default.
    """
    quantile = special.ndtri(ends()[1]) if quantile is None else quantile
    square = np.square(quantile) / number
    centre = (value + square / 2) / (1 + square)
    half = np.sqrt(square * value * (1 - value) + square**2 / 4) / (1 + square)
    return np.maximum(0.0, centre - half), np.minimum(1.0, centre + half)


def wilson_interval(value: Any, sd: Any, effective: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Return the Wilson interval of a share at its effective sample size :math:`n^* = S (1 - S) / SE^2`.

    Parameters
    ----------
    value : S, the share, or an array of shares.
    sd : its standard error.
    effective : Kish's effective number of units, (Σk)² / Σk²; it stands for n* where ``sd`` is zero, and gives the
        degrees of freedom.
    level : of the interval.

    Returns
    -------
    Lower and upper end, in [0, 1]; NaN where there is no standard error.
    """
    value, sd, effective = (np.asarray(one, float) for one in (value, sd, effective))
    known = np.isfinite(value) & np.isfinite(sd) & (effective > 1)
    # Equal items leave a standard error of rounding alone.
    scattered = (sd > _ROUNDING) & (value > 0) & (value < 1)
    number = np.where(scattered, ratio(value * (1 - value), sd**2), np.where(known, effective, np.nan))
    quantile = special.stdtrit(np.where(known, effective - 1, np.nan), (1 + level) / 2)
    lower, upper = wilson(value, number, quantile)
    return (lower, upper) if value.ndim else (float(lower), float(upper))
