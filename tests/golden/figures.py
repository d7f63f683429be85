"""Compact figures: what a number, an array or a column of a table was, and by how much it differs now.

Of many numbers a figure keeps their sum, the sum of their squares and some of them, with a check sum that tells whether
all are equal to the bit. A single number has no shape. `spread` is the standard deviation of each kept number over runs
with other seeds: the Monte Carlo error of this very number, of draws, tables and scores alike, and absent where nothing
is left to chance.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Difference", "Figure", "compact", "difference", "flat", "with_spread"]

_KEPT = 8
_TOLERANCE, _MOST_ERRORS = 1e-6, 5.0
# Numbers that differ by less than 1e-6 of this are both zero, up to rounding.
_SMALLEST = 1e-6

Figure = dict[str, Any]


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """Take apart tables, named tuples and mappings; what is neither number nor text is left out."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        parts = {str(column): value[column].to_numpy() for column in value.columns}
    elif isinstance(value, Mapping):
        parts = dict(value)
    elif hasattr(value, "_asdict"):
        parts = value._asdict()
    else:
        return {name: value} if value is not None and np.asarray(value).dtype.kind in "biufUO" else {}
    found: dict[str, Any] = {}
    for part, inner in parts.items():
        found |= flat(inner, f"{name}.{part}" if name else part)
    return found


def compact(value: Any) -> Figure:
    """Return the figure of an array, a number, texts, or ids of any kind."""
    array = np.asarray(value)
    if array.dtype.kind == "O":
        try:
            array = array.astype(float)
        except (TypeError, ValueError):
            array = array.astype(str)
    shape: Figure = {"shape": list(array.shape)} if array.ndim else {}
    array = array.ravel()
    places = np.unique(np.linspace(0, max(len(array) - 1, 0), _KEPT).round().astype(int))[: len(array)]
    if array.dtype.kind not in "biuf":
        return {**shape, "texts": array[places].tolist(), "bits": zlib.crc32("\n".join(array).encode())}
    numbers = array.astype(np.float64) + 0.0  # no negative zeros
    with np.errstate(over="ignore", invalid="ignore"):
        totals = [np.nansum(numbers), np.nansum(numbers**2)] if len(numbers) > 1 else []
    kept = [float(f"{number:.9g}") for number in (*totals, *numbers[places])]
    return {**shape, "values": kept, "bits": zlib.crc32(numbers.tobytes())}


def with_spread(figure: Figure, others: Sequence[Figure | None]) -> Figure:
    """Add the spread over runs with other seeds, where all have the same shape and the runs differ."""
    runs = [figure, *(other for other in others if other is not None)]
    if "values" not in figure or len(runs) < 3 or any(one.get("shape") != figure.get("shape") for one in runs):
        return figure
    with np.errstate(invalid="ignore"):
        spread = np.std([one["values"] for one in runs], axis=0, ddof=1)
    if not (spread > 0).any():
        return figure
    return {**figure, "spread": [float(f"{number:.1g}") for number in spread]}


class Difference(NamedTuple):
    """How a figure differs from what was recorded.

    Parameters
    ----------
    verdict : ``bits`` (all equal), ``close`` (within 1e-6), ``noise`` (within five Monte Carlo errors), ``answers``
        (what was refused is answered now) or ``beyond``.
    words : by how much.
    """

    verdict: str
    words: str = ""


def difference(recorded: Figure, now: Figure | None) -> Difference:
    """Compare a figure with the recorded one."""
    if now is None:
        return Difference("beyond", "there is no such figure any more")
    if "refused" in recorded or "refused" in now:
        if recorded.get("refused") == now.get("refused"):
            return Difference("bits")
        if "refused" not in now:
            return Difference("answers", f"was refused ({recorded['refused']}), is answered now")
        return Difference("beyond", f"was {recorded.get('refused', 'answered')}, is refused now ({now['refused']})")
    if recorded.get("shape") != now.get("shape") or ("texts" in recorded) != ("texts" in now):
        return Difference("beyond", f"shape was {recorded.get('shape')}, is {now.get('shape')}")
    if recorded["bits"] == now["bits"]:
        return Difference("bits")
    if "texts" in recorded:
        changed = [f"{one!r}, now {other!r}" for one, other in zip(recorded["texts"], now["texts"], strict=True)
                   if one != other]  # fmt: skip
        return Difference("beyond", f"other texts: {'; '.join(changed[:3]) or 'beyond those that were kept'}")
    return _of_numbers(recorded, now)


def _of_numbers(recorded: Figure, now: Figure) -> Difference:
    one, other = np.array(recorded["values"], float), np.array(now["values"], float)
    if (np.isnan(one) != np.isnan(other)).any():
        return Difference("beyond", "not a number in other places")
    one, other = np.nan_to_num(one), np.nan_to_num(other)
    size = np.maximum(np.maximum(abs(one), abs(other)), _scale(one, recorded.get("shape", ())))
    relative = abs(one - other) / size if len(one) else np.zeros(1)
    words = f"{one[relative.argmax()]:.7g}, now {other[relative.argmax()]:.7g}; relative {relative.max():.2g}"
    if relative.max() <= _TOLERANCE:
        return Difference("close", words)
    if "spread" not in recorded:
        return Difference("beyond", f"{words}, and no Monte Carlo error")
    # The spread of few runs is itself uncertain; that of an array's numbers is no less than half of their usual one.
    spread = np.nan_to_num(np.array(recorded["spread"], float))
    chosen = spread[2:] if len(spread) > 2 else spread
    error = np.maximum(spread, np.where(np.arange(len(spread)) < len(spread) - len(chosen), 0, np.median(chosen) / 2))
    errors = np.divide(abs(one - other), error, out=np.full(len(one), np.inf), where=error > 0)
    errors[relative <= _TOLERANCE] = 0
    verdict = "noise" if errors.max() <= _MOST_ERRORS else "beyond"
    return Difference(verdict, f"{words}; {errors.max():.2g} Monte Carlo errors")


def _scale(values: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return below which size a number counts as rounding: a thousandth of the usual one; of a sum, that of its terms.

    A single number is its own scale.
    """
    number = int(np.prod(shape))
    if number <= 1:
        return np.full(len(values), _SMALLEST)
    usual = np.sqrt(values[1] / number)
    return np.maximum([usual * number, 0.0] + [usual / 1000] * (len(values) - 2), _SMALLEST)
