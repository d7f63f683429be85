"""Numbers with as many digits as what is known of them is worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

_NEXT_TO = 1e-9  # of a probability


def decimals(low: float, high: float, most: int = 4) -> int:
    """Return how many digits after the point an interval is worth: two of its half width, three where there is none.

    Examples
    --------
    >>> decimals(0.66, 1.0), decimals(0.5401, 0.6381), decimals(74.6, 89.2)
    (2, 3, 1)
    """
    half = (high - low) / 2
    return min(max(1 - math.floor(math.log10(half)), 0), most) if math.isfinite(half) and half > 0 else min(3, most)


def reaches(values: Any, bound: float) -> Any:
    """Return which values reach a bound, as they are and not as they are written; sums of floats may be next to it.

    Examples
    --------
    >>> reaches(np.array([0.89999, 0.9, 0.6 + 0.3]), 0.9).tolist()
    [False, True, True]
    """
    return np.asarray(values) >= bound - _NEXT_TO


def within(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Write a number and the ends of its interval, with as many digits as the interval is worth.

    Examples
    --------
    >>> within(0.85832, 0.66381, 1.0)
    ('0.86', '0.66', '1.00')
    """
    digits = decimals(low, high)
    texts = (written(one, f"z,.{digits}f") for one in (value, low, high))
    return next(texts), next(texts), next(texts)


def written(value: Any, form: str) -> str:
    """Write a number by a format of Python's, with a minus sign and not a hyphen.

    Examples
    --------
    >>> written(-1234.5, ",.1f"), written(2, "+g")
    ('−1,234.5', '+2')
    """
    return format(value, form).replace("-", "\N{MINUS SIGN}")


def at_least(value: float, digits: int) -> str:
    """Write a number rounded down, for what is so much "or more".

    Parameters
    ----------
    value : the least one.
    digits : after the point.

    Examples
    --------
    >>> at_least(0.9788, 2), at_least(0.98, 2), at_least(1.0, 2)
    ('0.97', '0.98', '1.00')
    """
    return _cut(math.floor, value, digits)


def at_most(value: float, digits: int) -> str:
    """Write a number rounded up, for what is "at most" or "up to" so much.

    Parameters
    ----------
    value : the largest one.
    digits : after the point.

    Examples
    --------
    >>> at_most(0.0312, 3), at_most(0.031, 3)
    ('0.032', '0.031')
    """
    return _cut(math.ceil, value, digits)


def _cut(towards: Callable[[float], int], value: float, digits: int) -> str:
    """Write a number cut down or up; what binary fractions add or take is not cut."""
    return written(towards(round(value * 10**digits, 6)) / 10**digits, f".{digits}f")


def span(low: float, high: float, digits: int) -> str:
    """Write a range with so many digits after the point; one number where both ends are that.

    Examples
    --------
    >>> span(0.7656, 0.9534, 2), span(0.951, 0.949, 2)
    ('0.77–0.95', '0.95')
    """
    return "–".join(dict.fromkeys(written(end, f"z.{digits}f") for end in (low, high)))


def probability(value: float, digits: int = 3, draws: float = math.inf) -> str:
    """Write a probability, without claiming what so many digits, or so many draws, cannot show.

    Where all of n draws say the same, 95 % hold no more than that it is above 1 − 3 / n (the rule of three, Hanley and
    Lippman-Hand 1983): nothing beyond that is written.

    Parameters
    ----------
    value : from 0 to 1.
    digits : after the point.
    draws : independent (effective) ones among which it was counted; not finite where it was not.

    Examples
    --------
    >>> probability(0.5), probability(0.99996), probability(1.0, 2)
    ('0.500', '> 0.999', '> 0.99')
    >>> probability(1.0, 2, draws=100), probability(0.0, 2, draws=34)
    ('> 0.97', '< 0.09')
    """
    # Halves are rounded up, so that 0.065 and 1 − 0.935 are one number.
    rare, least, text = min(value, 1 - value), 10.0**-digits, f"{value + 1e-9:.{digits}f}"
    bound = min(max(math.ceil(round(3 / draws / least, 6)), 1) * least, 0.5)
    if float(text) not in (0, 1) and rare * draws >= 3:
        return text
    return f"> {1 - bound:.{digits}f}" if value > rare else f"< {bound:.{digits}f}"


def p_value(value: float, digits: int = 3) -> str:
    """Write a p value as an equation.

    Examples
    --------
    >>> p_value(0.0412), p_value(0.0412, 2), p_value(1e-5)
    ('p = 0.041', 'p = 0.04', 'p < 0.001')
    """
    text = probability(value, digits)
    return f"p {text}" if text[0] in "<>" else f"p = {text}"
