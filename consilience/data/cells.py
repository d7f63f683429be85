"""The cells of tables as codes into their distinct values, and what counts as a text, a number or nothing.

A check or a conversion runs once per distinct value, so that 10^7 rows cost a few C loops instead of 10^7 Python calls.
"""

from __future__ import annotations

import collections
import datetime
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.data.problems import KEPT_PER_KIND, Problems
from consilience.notes import Remedy

_FEW_REFUSED = 3            # values that are no numbers are each listed, whatever the others are
_LOOKED_AT = 1000           # rows that tell whether a column may be one of distinct texts
_MOST_WHOLE = 2**64         # Python refuses to write those of thousands of digits


@dataclass(frozen=True)
class Cells:
    """The cells of one column as codes into its distinct values.

    Parameters
    ----------
    name : the name in the source.
    codes : int32, shape ``(row,)``; index into ``values``, -1 where a data frame has no value.
    values : the distinct values as they came: text, or numbers from JSON and data frames.
    """

    name: str
    codes: np.ndarray
    values: list[Any]


@dataclass
class Table:
    """The wanted columns of one source.

    Parameters
    ----------
    columns : role (such as "item") to column.
    num_rows : number of usable rows.
    problems : what was wrong so far; the reader adds to it and raises.
    unit : how a row is called in messages, with a place for its number.
    numbers_of_rows : shape ``(row,)``; the number of each row in that unit.
    """

    columns: dict[str, Cells]
    num_rows: int
    problems: Problems
    unit: str
    numbers_of_rows: np.ndarray | range

    def place(self, row: int) -> str:
        """Return what to call a row in a message."""
        return self.unit.format(self.numbers_of_rows[row])

    def flag(self, rows: np.ndarray, role: str, message: str, remedy: str, *remedies: Remedy) -> None:
        """Note the same problem for every row of a mask, with the value that stands there in the column of ``role``."""
        column = self.columns[role]
        for row in np.flatnonzero(rows)[:KEPT_PER_KIND].tolist():
            code = int(column.codes[row])
            value = column.values[code] if code >= 0 else None
            self.problems.add(message, remedy, *remedies, row=self.place(row), column=column.name, value=value)
        if (more := int(rows.sum()) - KEPT_PER_KIND) > 0:
            self.problems.add(f"{message}: {more:,} further rows", remedy, *remedies, column=column.name)

    def texts(self, role: str, *, required: bool = False) -> tuple[np.ndarray, list[str]]:
        """Read a column as text.

        Parameters
        ----------
        role : which column.
        required : whether an empty cell is a problem.

        Returns
        -------
        codes : int32, shape ``(row,)``; -1 where the cell is empty.
        names : distinct texts in order of first appearance.
        """
        column = self.columns[role]
        codes, names = column.codes, _distinct_names(column.values)
        refused: dict[str, list[int]] = {}
        if names is None:  # Ids are mostly distinct texts already, which need not be looked up.
            lookup: dict[str, int] = {}
            recoded = np.full(len(column.values) + 1, -1, np.int32)
            for code, (text, complaint) in enumerate(cell_texts(column.values)):
                if complaint:
                    refused.setdefault(complaint, []).append(code)
                elif text:
                    recoded[code] = lookup.setdefault(text, len(lookup))
            for complaint, bad in refused.items():
                self.flag(np.isin(column.codes, bad), role, complaint, "write a plain text or number there")
            codes, names = recoded[column.codes], list(lookup)
        if required:
            known_bad = np.isin(column.codes, [code for bad in refused.values() for code in bad])
            self.flag((codes < 0) & ~known_bad, role, f"the {role} is empty", "fill it in or delete the row")
        return codes, names

    def numbers(self, role: str, *, what: str = "a number") -> np.ndarray:
        """Read a column as finite numbers.

        Parameters
        ----------
        role : which column.
        what : what is expected, for the message.

        Returns
        -------
        values : float64, shape ``(row,)``; NaN where the cell is empty or was refused (which is noted as a problem).
        """
        column = self.columns[role]
        values = np.full(len(column.values) + 1, np.nan)
        bad = np.zeros(len(column.values) + 1, bool)
        for code, value in enumerate(column.values):
            if is_missing(value):
                continue
            values[code] = number(value)
            bad[code] = not np.isfinite(values[code])
        values[bad] = np.nan
        remedy = "write a finite number with a decimal point, such as 0.5"
        refused = bad[column.codes]
        if refused.sum() > _FEW_REFUSED and not np.isfinite(values[column.codes]).any():
            # A column of something else, of which one line says as much as many.
            self.problems.add(
                f"{what} is expected, and in this column there is none", remedy,
                row=self.place(int(refused.argmax())), column=column.name, value=column.values[np.flatnonzero(bad)[0]],
            )  # fmt: skip
        else:
            self.flag(refused, role, f"{what} is expected", remedy)
        return values[column.codes]

    def empty(self, role: str) -> np.ndarray:
        """Return where a column has no value: bool, shape ``(row,)``."""
        column = self.columns[role]
        return np.array([*map(is_missing, column.values), True])[column.codes]


# ---- what a cell holds ----


def number(value: Any) -> float:
    """Return a value as a float, NaN where it is none. Python's ``1_000`` is not taken for a number."""
    if isinstance(value, _TRUTH_VALUES) or (isinstance(value, str) and "_" in value):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


class _Nested(str):
    """Stands for a list or an object in a cell."""


_FLOATS = (float, np.floating)
_TRUTH_VALUES = (bool, np.bool_)
_TIMES = (datetime.date, np.datetime64)  # times of day are none of them, pandas' Timestamp is
_COMPOUND = (_Nested, list, tuple, dict, set, frozenset, bytes, bytearray)


def is_missing(value: Any) -> bool:
    """Return whether a cell holds no value: nothing but white space, ``None``, NaN or pandas' ``NA``."""
    if type(value) is str:
        return not value or value.isspace()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (*_FLOATS, np.datetime64)) and bool(value != value)


def cell_text(value: Any) -> tuple[str, str | None]:
    """Return the text of a cell ("" where it is missing) and, where it cannot be an id, the complaint."""
    if is_missing(value):
        return "", None
    if isinstance(value, _FLOATS):
        return _float_text(value)
    if isinstance(value, _TIMES):
        return _time_text(value), None
    if isinstance(value, _COMPOUND):
        return "", "one value is expected, not a list, an object or bytes"
    try:
        text = str(value).strip()
        if not text.isascii():
            text.encode()
    except ValueError:  # a lone surrogate, or an integer of thousands of digits
        return "", "this is no text that could be written to a file"
    return ("", "the text holds a NUL character") if "\0" in text else (text, None)


def cell_texts(values: Sequence[Any]) -> Iterable[tuple[str, str | None]]:
    """Return `cell_text` of every value; where all are plain texts, the checks are made on all of them at once."""
    if _are_texts(values):
        return zip(map(str.strip, values), itertools.repeat(None), strict=False)
    return map(cell_text, values)


def _are_texts(values: Sequence[Any]) -> bool:
    """Return whether all are texts that `cell_text` would only strip."""
    if not set(map(type, values)) <= {str}:
        return False
    joined = "".join(values)
    return joined.isascii() and "\0" not in joined


def _distinct_names(values: list[Any]) -> list[str] | None:
    """Return the texts of distinct values where these are plain, or whole numbers, and so differ; else None."""
    if set(map(type, values)) == {int} and -_MOST_WHOLE < min(values) and max(values) < _MOST_WHOLE:
        return list(map(str, values))
    return values if are_plain(values) else None


def are_plain(values: list[Any]) -> bool:
    """Return whether `cell_text` would leave all as they are: texts without white space around them, none empty."""
    return _are_texts(values) and "" not in values and list(map(str.strip, values)) == values


def _float_text(value: Any) -> tuple[str, str | None]:
    if not np.isfinite(value):
        return "", "infinity cannot name anything"
    if value != int(value):
        return str(value), None
    # From there on a float may stand for several whole numbers: 2**53 for those of 64 bits.
    if abs(value) >= 2.0 ** (np.finfo(type(value)).nmant + 1):
        return "", "this whole number is too large for a float column and may have lost digits"
    return str(int(value)), None


def _time_text(value: Any) -> str:
    """Return a date, or a date with its time, in ISO 8601; midnight without a zone is the date alone."""
    text = str(value) if isinstance(value, np.datetime64) else value.isoformat()
    return re.sub(r"(T00:00:00)?(\.0+)?$", "", text)


# ---- values into codes ----


class Encoder:
    """Turns values into codes in order of first appearance, chunk by chunk."""

    def __init__(self) -> None:
        self._lookup: dict[Any, int] = collections.defaultdict(itertools.count().__next__)
        self._parts: list[np.ndarray] = [np.empty(0, np.int32)]

    def extend(self, values: Iterable[Any], count: int) -> None:
        """Add the values of so many rows."""
        self._parts.append(np.fromiter(map(self._lookup.__getitem__, values), np.int32, count))

    def column(self, name: str) -> Cells:
        """Return all rows as a column of this name."""
        return Cells(name, np.concatenate(self._parts), list(self._lookup))


def from_values(name: str, values: Iterable[Any]) -> Cells:
    """Encode Python values."""
    cells = list(values)
    kinds = set(map(type, cells))
    if bool in kinds and len(kinds) > 1:
        cells = [str(cell) if isinstance(cell, bool) else cell for cell in cells]  # True == 1, but is another label
    encoder = Encoder()
    try:
        encoder.extend(cells, len(cells))
    except TypeError:
        encoder = Encoder()
        encoder.extend([cell if _hashable(cell) else _Nested(repr(cell)) for cell in cells], len(cells))
    return encoder.column(name)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def from_series(name: str, values: Any) -> Cells:
    """Encode a pandas column by pandas itself, anything else value by value."""
    kind = str(getattr(values, "dtype", ""))
    if kind in ("str", "string") and (texts := _distinct_texts(values)) is not None:
        return Cells(name, np.arange(len(texts), dtype=np.int32), texts)
    mixed = kind == "object" and bool in set(map(type, np.asarray(values)))
    if hasattr(values, "factorize") and not mixed:
        try:
            codes, distinct = values.factorize()
            if str(distinct.dtype) in ("str", "string"):
                distinct = distinct.to_numpy(dtype=object)  # a list of Arrow's texts is slow to make
            at_once = getattr(distinct.dtype, "kind", "") in "iuO"
            return Cells(name, codes.astype(np.int32), distinct.tolist() if at_once else list(distinct))
        except TypeError:
            pass
    # Of floats of less than 64 bits the type tells how exact they are; of times NumPy makes numbers.
    plain = isinstance(values, np.ndarray) and values.dtype.char not in "efM"
    return from_values(name, values.tolist() if plain else values)


def _distinct_texts(values: Any) -> list[str] | None:
    """Return a pandas column of texts that all differ, as ids do, which saves encoding it; None of any other."""
    for number in (_LOOKED_AT, len(values)):
        texts = getattr(values, "array", values)[:number].to_numpy(dtype=object).tolist()
        if len(set(texts)) < len(texts) or not set(map(type, texts)) <= {str}:
            return None
    return texts
