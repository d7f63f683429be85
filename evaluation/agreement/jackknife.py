"""One engine for standard errors, and one interval for shares.

The jackknife leaves one item (annotator, annotation) out at a time and looks at how the estimate scatters. It needs no
formula for each coefficient, and for coefficients made of sums over items it costs no more than the estimate itself.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from consilience.arrays import Array, Float


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


def jackknife_value(
    value: float, left_out: Float[Array, " unit"], multiplicity: Float[Array, " unit"] | None = None
) -> float:
    """Return the estimate with the jackknife's correction of its bias: I value - (I - 1) mean of the left-out ones."""
    count = np.ones(len(left_out)) if multiplicity is None else multiplicity
    number = count.sum()
    return float(number * value - (number - 1) * (count * left_out).sum() / number) if number >= 2 else float("nan")


def wilson_interval(value: float, sd: float, effective: float | int, level: float = 0.95) -> tuple[float, float]:
    """Return the Wilson interval of a share at its effective sample size :math:`n^* = S (1 - S) / SE^2`.

    Parameters
    ----------
    value : S, the share.
    sd : its standard error.
    effective : Kish's effective number of units, (Σk)² / Σk²; it stands for n* where ``sd`` is zero, and gives the
        degrees of freedom.
    level : of the interval.

    Returns
    -------
    Lower and upper end, in [0, 1]; NaN where there is no standard error.
    """
    if not (np.isfinite(value) and np.isfinite(sd) and effective > 1):
        return float("nan"), float("nan")
    # Equal items leave a standard error of rounding alone.
    number = value * (1 - value) / sd**2 if sd > 1e-12 and 0 < value < 1 else effective
    z = special.stdtrit(effective - 1, (1 + level) / 2)
    centre = (value + z**2 / (2 * number)) / (1 + z**2 / number)
    half = z / (1 + z**2 / number) * np.sqrt(value * (1 - value) / number + z**2 / (4 * number**2))
    return float(max(0.0, centre - half)), float(min(1.0, centre + half))


def t_interval(value: float, sd: float, number: float | int, level: float = 0.95) -> tuple[float, float]:
    """Return value ± t sd with ``number - 1`` degrees of freedom, cut at 1, above which no coefficient can be."""
    if not (np.isfinite(value) and np.isfinite(sd) and number > 1):
        return float("nan"), float("nan")
    half = special.stdtrit(number - 1, (1 + level) / 2) * sd
    return float(value - half), float(min(1.0, value + half))
