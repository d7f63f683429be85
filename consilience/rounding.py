"""Numbers with as many digits as what is known of them is worth."""

from __future__ import annotations

import math


def decimals(low: float, high: float, most: int = 4) -> int:
    """Return how many digits after the point an interval is worth: two of its half width, three where there is none.

    Examples
    --------
    >>> decimals(0.66, 1.0), decimals(0.5401, 0.6381), decimals(74.6, 89.2)
    (2, 3, 1)
    """
    half = (high - low) / 2
    return min(max(1 - math.floor(math.log10(half)), 0), most) if math.isfinite(half) and half > 0 else min(3, most)


def within(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Write a number and the ends of its interval, with as many digits as the interval is worth.

    Examples
    --------
    >>> within(0.85832, 0.66381, 1.0)
    ('0.86', '0.66', '1.00')
    """
    digits = decimals(low, high)
    return f"{value:,.{digits}f}", f"{low:,.{digits}f}", f"{high:,.{digits}f}"


def probability(value: float, digits: int = 3) -> str:
    """Write a probability, without claiming what so many digits cannot show.

    Examples
    --------
    >>> probability(0.5), probability(0.99996), probability(1.0, 2)
    ('0.500', '> 0.999', '> 0.99')
    """
    # Halves are rounded up, so that 0.065 and 1 − 0.935 are one number.
    least, text = 10.0**-digits, f"{value + 1e-9:.{digits}f}"
    return {f"{1:.{digits}f}": f"> {1 - least:.{digits}f}", f"{0:.{digits}f}": f"< {least:.{digits}f}"}.get(text, text)
