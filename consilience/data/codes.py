"""Ids to codes and back: names that people gave become whole numbers from 0, checked once, here."""

from __future__ import annotations

import collections
import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consilience.data.cells import are_plain, cell_texts
from consilience.data.files import read_lines
from consilience.data.problems import Problems
from consilience.errors import UnknownName

Names = Sequence[Any] | np.ndarray

_DIGITS = (1 << 20) - 1

# A table of all codes is faster than sorting, up to this size.
_CODES_PER_ROW, _FEW_CODES = 8, 1 << 19


def written_alike(names: Iterable[str]) -> dict[str, str]:
    """Return the names that differ from an earlier one in case and blanks alone, each with that one."""
    first: dict[str, str] = {}
    folded = ((name, " ".join(name.casefold().split())) for name in names)
    return {name: own for name, key in folded if (own := first.setdefault(key, name)) != name}


def sorted_names(names: Iterable[str]) -> list[str]:
    """Sort names: by value where all are whole numbers, else as text."""
    listed = list(names)
    try:
        return sorted(listed, key=lambda name: (int(name), name))
    except ValueError:
        return sorted(listed)


def as_names(values: Any, what: str) -> list[str]:
    """Return a list of ids that a user passed (names, or a path to a text file with one per line) as distinct texts.

    Raises
    ------
    InputError : it is no list and no text file, is empty, or has an entry that is empty, no text or there twice.
    """
    problems = Problems(None)
    if isinstance(values, str | os.PathLike):
        problems = Problems(str(values))
        values = read_lines(values)
    if not isinstance(values, Iterable):
        raise problems.fail(f"{what} has to be a list of names", "pass a list, or a path to a text file", value=values)
    given = list(values)
    if given and are_plain(given) and len(set(given)) == len(given):
        return given
    names = []
    for position, (text, complaint) in enumerate(cell_texts(given)):
        if complaint or not text:
            remedy = f"pass {what} as distinct texts"
            message = complaint or f"an entry of {what} is empty"
            problems.add(message, remedy, row=f"entry {position}", value=given[position])
        names.append(text)
    if len(set(names)) < len(names):
        for name, count in collections.Counter(names).items():
            if name and count > 1:
                problems.add(f"{what} lists a name {count} times", "list each name once", value=name)
    if not names:
        problems.add(f"{what} is empty", f"list at least one of the {what}")
    problems.raise_any()
    return names


def object_array(names: Iterable[str]) -> np.ndarray:
    """Return names as a one-dimensional object array."""
    listed = list(names)
    result = np.empty(len(listed), dtype=object)
    result[:] = listed
    return result


def text_array(names: Any) -> np.ndarray:
    """Return texts as an array of NumPy's own: 16 bytes for one of up to 15, where Python's takes 60 and more."""
    return np.asarray(names, np.dtypes.StringDType())


def named(values: np.ndarray, ids: Any) -> np.ndarray:
    """Put ids in the place of codes; what is text already stays."""
    return values if ids is None or np.asarray(values).dtype.kind not in "iu" else np.asarray(ids, object)[values]


def recode(codes: np.ndarray, names: Names, order: Names) -> np.ndarray:
    """Translate codes into ``names`` to codes into ``order``; -1 stays, -2 stands for a name that ``order`` lacks."""
    position = {name: code for code, name in enumerate(order)}
    table = np.array([*(position.get(name, -2) for name in names), -1], np.int32)
    return table[codes]


def compact(codes: np.ndarray, names: Names) -> tuple[np.ndarray, np.ndarray]:
    """Leave out names that no row uses any more; returns int32 codes and an object array of names, order kept."""
    used = np.zeros(len(names), bool)
    used[codes] = True
    if used.all():
        return codes, object_array(names)
    position = (np.cumsum(used) - 1).astype(np.int32)
    return position[codes], object_array(itertools.compress(names, used))


def ones(number: int) -> np.ndarray:
    """Return so many weights of one, as a view of a single number; nobody writes to data."""
    return np.broadcast_to(1.0, number)


def places(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which codes from 0 occur, and the place of each row's code among these.

    That is `np.unique`, without sorting as long as codes are not much larger than the number of rows.
    """
    size = int(codes.max(initial=-1)) + 1
    if size > _CODES_PER_ROW * len(codes) + _FEW_CODES:
        return np.unique(codes, return_inverse=True)
    occurs = np.zeros(size, bool)
    occurs[codes] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def repeated(*codes: np.ndarray) -> np.ndarray:
    """Mark rows whose combination of codes occurred in an earlier row: bool, shape ``(row,)``."""
    combined = codes[0].astype(np.int64) + 1
    for column in codes[1:]:
        combined = _paired(combined, column)
    combined = combined.astype(np.result_type(np.min_scalar_type(combined.max(initial=0)), np.uint32))
    # Sorting the values takes a fraction of the time and memory of sorting rows, of which few are repeated.
    ordered = np.sort(combined)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    marked = np.zeros(len(combined), bool)
    if len(twice):
        # The last digits tell of most rows that they are not among them.
        low = np.zeros(_DIGITS + 1, bool)
        low[twice & _DIGITS] = True
        rows = np.flatnonzero(low[combined & _DIGITS])
        rows = rows[twice[np.searchsorted(twice[:-1], combined[rows])] == combined[rows]]
        order = rows[np.argsort(combined[rows], kind="stable")]
        marked[order[1:]] = combined[order[1:]] == combined[order[:-1]]
    return marked


def _paired(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return whole numbers from 0 that are equal where both columns are, of which the first has no -1; int64."""
    width = int(second.max(initial=-1)) + 2
    if (int(first.max(initial=-1)) + 2) * width > np.iinfo(np.int64).max:
        first = np.unique(first, return_inverse=True)[1]
    found = first * width
    found += second
    found += 1
    return found


def as_array(problems: Problems, values: Any, *, column: str | None = None) -> np.ndarray:
    """Return an array, or raise where lists have unequal lengths."""
    try:
        return np.asarray(values)
    except (ValueError, OverflowError):
        remedy = "pass an array, or lists of equal length"
        raise problems.fail("an array of numbers is expected, not a ragged list", remedy, column=column) from None


def as_numbers(problems: Problems, values: Any, column: str) -> np.ndarray:
    """Return values as float64, or raise where they are no numbers."""
    numbers = as_array(problems, values, column=column)
    if numbers.dtype.kind not in "iuf" and numbers.size:
        message = f"an array of numbers is expected, not {numbers.dtype} of shape {numbers.shape}"
        raise problems.fail(message, "pass numbers", column=column)
    return numbers.astype(np.float64)


def check_codes(problems: Problems, name: str, codes: Any, size: int | None, *, lowest: int = 0) -> np.ndarray:
    """Return codes as int32 after checking that they are one-dimensional whole numbers within ``lowest..size-1``.

    Raises
    ------
    InputError : the codes are no one-dimensional array of whole numbers. Codes outside are added to the problems.
    """
    values = as_array(problems, codes, column=name)
    if values.ndim != 1 or (values.dtype.kind not in "iu" and values.size):
        message = f"a one-dimensional integer array is expected, not {values.dtype} of shape {values.shape}"
        raise problems.fail(message, "pass integer codes", column=name)
    upper = np.iinfo(np.int32).max if size is None else size
    outside = (values < lowest) | (values >= upper)
    remedy = f"correct the {outside.sum():,} codes outside, or pass larger sizes"
    problems.add_each(outside, f"codes from {lowest} to {upper - 1} are expected", remedy, column=name, values=values)
    return values.astype(np.int32)


def check_lengths(problems: Problems, remedy: str, **columns: np.ndarray) -> None:
    """Raise unless all columns have the same shape."""
    if len({column.shape for column in columns.values()}) > 1:
        shapes = ", ".join(f"{name} {column.shape}" for name, column in columns.items())
        raise problems.fail(f"columns of equal length are expected, not {shapes}", remedy)


def sized(
    problems: Problems, name: str, codes: ArrayLike, names: Names | None, size: int | None
) -> tuple[np.ndarray, int]:
    """Return checked codes and the number of things that they can name."""
    if names is not None:
        if size is not None and size != len(names):
            problems.add(f"there are {len(names)} ids but num_{name}s is {size}", "make them agree", column=name)
        size = len(names)
    checked = check_codes(problems, name, codes, size)
    return checked, int(checked.max(initial=-1)) + 1 if size is None else int(size)


def names_or_codes(names: Names | None, size: int, what: str) -> np.ndarray:
    """Return given ids as an object array of texts, or the codes as texts."""
    if names is None:
        return object_array(map(str, range(size)))
    return object_array(as_names(names, what) if len(names) else [])


def codes_of(asked: Any, names: Names | None, size: int, what: str) -> np.ndarray:
    """Return the codes of one or many ids; whole numbers are codes already, unless ids are whole numbers themselves.

    Parameters
    ----------
    asked : ids, or codes in the order of ``names``.
    names, size, what : ids that there are, or None; how many; of what.

    Raises
    ------
    UnknownName : there is no such id or code.
    """
    given = np.atleast_1d(np.asarray(asked, None if np.asarray(asked).dtype.kind in "iu" else object))
    if given.dtype.kind in "iu" and (names is None or not any(str(name).lstrip("-").isdecimal() for name in names)):
        if outside := given[(given < 0) | (given >= size)].tolist():
            listed = ", ".join(map(str, outside[:10]))
            raise UnknownName(f"there is no {what} {listed}; codes are 0 to {size - 1}")
        return given
    # Ids that are read from a file are texts.
    code = {name: place for place, name in enumerate(names_or_codes(names, size, what))}
    texts = [str(one) for one in given.tolist()]
    if unknown := [one for one in texts if one not in code]:
        raise UnknownName(f"the data have no {what} {', '.join(map(repr, unknown[:10]))}")
    return np.array([code[one] for one in texts], int)
