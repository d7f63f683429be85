"""The one place that turns what a user brings into named columns, and that says what is wrong with it.

A *source* is a path (``.csv``, ``.tsv``, ``.json``, ``.jsonl``/``.ndjson``, each also with ``.gz``, or ``.parquet``), a
data frame (pandas; anything that speaks Arrow; anything with ``to_pandas()``), a dict of columns, or a list of dicts,
one for each row. Every column becomes codes into its distinct values, in the order of their first appearance: a check
or a conversion then runs once per distinct value, and 10^7 rows cost a few C loops instead of 10^7 Python calls.

What counts as what:

* Ids, labels and classes are **text**. In text files they stay as written ("01" is not "1"; "NA", "null" and "None" are
  labels like any other), without the white space around them. Nothing else is normalised. Numbers from data frames and
  JSON become their text; whole numbers are written without a decimal point, because pandas turns integers into floats
  as soon as one is missing.
* Only an **empty cell** is missing; in data frames and JSON also ``None``, NaN and pandas' ``NA``.
* A CSV file is comma-separated; where the first line has no comma but semicolons (or tabs), those separate. It is
  UTF-8, with or without a byte order mark, and its first row names the columns. Blank lines are skipped.
* Columns are found by name, in any order and case, under the name or an alias that the contract declares; other columns
  are ignored.
* Problems are collected and raised together. They name the **line** of a text file as an editor shows it (the header is
  line 1), the **record** of a JSON array counted from 1, or the **row** of a data frame counted from 0.
"""

from __future__ import annotations

import collections
import contextlib
import csv
import gzip
import io
import itertools
import json
import operator
import os
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from consilience.data.columns import Column
from consilience.errors import InputError, InputProblem, InputWarning, UnknownName
from consilience.notes import Remedy
from consilience.standard_input import kept_standard_input

_TEXT_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
KEPT_PER_KIND = 1000       # problem records kept for one kind; the rest is counted
_CHUNK_ROWS = 65536
_FEW_REFUSED = 3            # values that are no numbers are each listed, whatever the others are
_LOOKED_AT = 1000           # rows that tell whether a column may be one of distinct texts
_LINE_BREAK = re.compile("\r\n|\r|\n")
_MOST_WHOLE = 2**64         # Python refuses to write those of thousands of digits

Choose = Callable[[list[str], "Problems"], dict[str, int]]


# ---- problems ----


@dataclass
class Problems:
    """Collects what is wrong with one input, to be raised together.

    Parameters
    ----------
    file : what to call the input: its path, or "the data frame".
    """

    file: str | None
    found: list[InputProblem] = field(default_factory=list)

    def add(
        self, message: str, remedy: str, *remedies: Remedy, row: str | None = None, column: str | None = None,
        value: object = None,
    ) -> None:  # fmt: skip
        """Note one problem; ``remedies`` are the arguments that its texts name in braces."""
        self.found.append(InputProblem(message, remedy, self.file, row, column, _shown(value), remedies))

    def fail(self, message: str, remedy: str, *remedies: Remedy, **where: Any) -> InputError:
        """Note a problem after which reading cannot go on; the caller raises what this returns."""
        self.add(message, remedy, *remedies, **where)
        return InputError(self.found)

    def raise_any(self) -> None:
        """Raise `InputError` with all problems, if there are any."""
        if self.found:
            raise InputError(self.found)


def _shown(value: object) -> str | None:
    """Return a value as a message can print it."""
    if value is None:
        return None
    try:
        return _shorten(str(value).encode("utf-8", "backslashreplace").decode())
    except ValueError:
        return "an integer of thousands of digits"


def _shorten(text: str, longest: int = 80) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def check_option(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise `UnknownName` unless an option has one of its documented values."""
    if value not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise UnknownName(f"{{{name}}} is not an option; pass one of {listed}", Remedy(name, value))


def warn_input(text: str, *remedies: Remedy, stacklevel: int = 4) -> None:
    """Warn that a documented policy repaired or left out something, at the line of the user so many calls above."""
    warnings.warn(InputWarning(text, *remedies), stacklevel=stacklevel)


# ---- columns and tables ----


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
        offending = np.flatnonzero(rows)
        column = self.columns[role]
        for row in offending[:KEPT_PER_KIND].tolist():
            code = int(column.codes[row])
            value = column.values[code] if code >= 0 else None
            self.problems.add(message, remedy, *remedies, row=self.place(row), column=column.name, value=value)
        if len(offending) > KEPT_PER_KIND:
            more = len(offending) - KEPT_PER_KIND
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
        names = _distinct_names(column.values)
        if names is not None:
            # Ids are mostly distinct texts already: nothing has to be looked up.
            if required:
                self._require(column.codes >= 0, role, {})
            return column.codes, names
        lookup: dict[str, int] = {}
        recoded = np.full(len(column.values) + 1, -1, np.int32)
        refused: dict[str, list[int]] = {}
        for code, (text, complaint) in enumerate(cell_texts(column.values)):
            if complaint:
                refused.setdefault(complaint, []).append(code)
            elif text:
                recoded[code] = lookup.setdefault(text, len(lookup))
        for complaint, bad in refused.items():
            self.flag(np.isin(column.codes, bad), role, complaint, "write a plain text or number there")
        codes = recoded[column.codes]
        if required:
            self._require(codes >= 0, role, refused)
        return codes, list(lookup)

    def _require(self, filled: np.ndarray, role: str, refused: dict[str, list[int]]) -> None:
        known_bad = np.isin(self.columns[role].codes, [code for bad in refused.values() for code in bad])
        self.flag(~filled & ~known_bad, role, f"the {role} is empty", "fill it in or delete the row")

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
            if _is_missing(value):
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
        return np.array([*map(_is_missing, column.values), True])[column.codes]


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
_COMPOUND = (_Nested, list, tuple, dict, set, frozenset, bytes, bytearray)


def _is_missing(value: Any) -> bool:
    if type(value) is str:
        return not value or value.isspace()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, _FLOATS) and value != value


def cell_text(value: Any) -> tuple[str, str | None]:
    """Return the text of a cell ("" where it is missing) and, where it cannot be an id, the complaint."""
    if _is_missing(value):
        return "", None
    if isinstance(value, _FLOATS):
        return _float_text(value)
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
    return values if _are_plain(values) else None


def _are_plain(values: list[Any]) -> bool:
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


# ---- which columns ----


def choose_columns(declared: Sequence[Column], columns: Mapping[str, str] | None = None) -> Choose:
    """Return a function that finds the columns of a contract among the names of a table.

    Parameters
    ----------
    declared : the columns; their names are the roles.
    columns : role to column name, for tables with other names than are declared.

    Raises
    ------
    UnknownName : a role is not among the columns.
    InputError : of the function that is returned, where a column is absent or several could be it.
    """
    given = {} if columns is None else dict(columns)
    known = {column.name: column for column in declared}
    required = [column.name for column in declared if not column.optional]
    unknown = [role for role in given if role not in known]
    if unknown:
        listed = ", ".join(map(repr, unknown))
        raise UnknownName(
            f"{{columns}} names {listed}; what can be named are the columns for {', '.join(known)}", Remedy("columns")
        )

    def choose(names: list[str], problems: Problems) -> dict[str, int]:
        chosen: dict[str, int] = {}
        for role in sorted(known, key=lambda role: role not in given):
            free = {position: name for position, name in enumerate(names) if position not in chosen.values()}
            found = _find(known[role], given.get(role), free)
            if len(found) == 1:
                chosen[role] = found[0]
            elif found:
                listed = ", ".join(repr(names[position]) for position in found)
                named = Remedy("columns", {role: ...})
                problems.add(f"several columns could be '{role}': {listed}", "pass {columns}", named, column=role)
            elif role in required or role in given:
                absent = _absent(role, given.get(role), names, required)
                problems.add(*absent, Remedy("columns", {role: ...}), column=given.get(role, role))
        problems.raise_any()
        return chosen

    return choose


def _find(column: Column, given: str | None, names: dict[int, str]) -> list[int]:
    """Return the positions that fit best: the given name, the column's own name, or its aliases."""
    if given is not None:
        exact = [position for position, name in names.items() if name == str(given).strip()]
        return exact or [p for p, name in names.items() if name.casefold() == str(given).strip().casefold()]
    own = [position for position, name in names.items() if name.casefold() == column.name]
    return own or [position for position, name in names.items() if name.casefold() in column.aliases]


def _absent(role: str, given: str | None, names: list[str], required: Sequence[str]) -> tuple[str, str]:
    listed = ", ".join(repr(_shorten(name)) for name in names[:12]) + (", …" if len(names) > 12 else "")
    wanted = f"'{role}'" if given is None else f"'{given}' (given for '{role}')"
    remedy = f"pass {{columns}}, or begin the file with a header line {','.join(required)}"
    return f"there is no column {wanted}; the table has {listed or 'no columns'}", remedy


def all_columns(names: list[str], problems: Problems) -> dict[str, int]:
    """Choose every column that has a name, under its own name."""
    return {name: position for position, name in enumerate(names) if name}


def _check_names(names: Iterable[Any], problems: Problems) -> list[str]:
    stripped = ["" if _is_missing(name) else str(name).strip() for name in names]
    for name, count in collections.Counter(stripped).items():
        if name and count > 1:
            problems.add(f"{count} columns have the same name", "rename or delete all but one", column=name)
    problems.raise_any()
    return stripped


# ---- sources ----


def read_table(source: Any, choose: Choose) -> Table:
    """Read the wanted columns of a source.

    Parameters
    ----------
    source : a path, a data frame, a dict of columns or a list of rows; see the head of this file.
    choose : finds the wanted columns among the names: `choose_columns` or `all_columns`.

    Returns
    -------
    table : its ``problems`` may hold problems of single rows, which the reader raises together with its own.
    """
    if isinstance(source, str | os.PathLike):
        path, ending = find_file(source, (*_TEXT_ENDINGS, ".parquet"))
        problems = Problems("standard input" if kept_standard_input(source) else str(path))
        if ending == ".parquet":
            table = _read_parquet(path, choose, problems)
        elif ending in (".csv", ".tsv"):
            table = _read_delimited(path, ending, choose, problems)
        else:
            table = _read_records(path, ending, choose, problems)
    elif is_rows(source):
        numbered = list(enumerate(source))
        table = _records_table(numbered, "row {} (counted from 0)", choose, Problems("the list of rows"))
    elif isinstance(source, Mapping):
        table = _read_mapping(source, choose, Problems("the dict of columns"))
    else:
        problems = Problems("the data frame")
        table = _read_frame(_as_pandas(source, problems), choose, problems)
    if not table.num_rows and not table.problems.found:
        raise table.problems.fail("the table has no rows", "check that this is the file you meant")
    return table


def is_rows(source: Any) -> bool:
    """Return whether a source is a list of rows, each a dict of plain values: not of columns, as a table is."""
    return (
        isinstance(source, list | tuple)
        and bool(source)
        and all(isinstance(row, dict) for row in source)
        and not any(isinstance(value, list | tuple) or getattr(value, "ndim", 0) for value in source[0].values())
    )


class _Names(Exception):
    """Ends the reading of a source once the names of its columns are known."""


def column_names(source: Any) -> list[str]:
    """Return the names of the columns of a source, and read no further than that takes.

    Raises
    ------
    InputError : the source cannot be read.
    """

    def stop(names: list[str], problems: Problems) -> dict[str, int]:
        raise _Names(names)

    try:
        read_table(source, stop)
    except _Names as found:
        return list(found.args[0])
    return []


def find_file(source: str | os.PathLike, endings: Sequence[str]) -> tuple[Path, str]:
    """Return the path of an existing file and its ending without ``.gz``.

    Raises
    ------
    InputError : there is no such file, it is a folder, cannot be opened, or has another ending.
    """
    if kept := kept_standard_input(source):
        if ".csv" not in endings:
            text = f"a file ending in {', '.join(endings)} is expected; standard input is read as a table in CSV"
            raise Problems("standard input").fail(text, "give the path of a file")
        return kept, ".csv"
    path = Path(source)
    problems = Problems(_shorten(str(path), 1000))
    try:
        if path.is_dir():
            raise problems.fail("this is a folder; a file is expected", "give the path of one file")
        if not path.exists():
            raise problems.fail("there is no such file", "check the path")
    except (OSError, ValueError) as error:
        raise problems.fail(f"this path cannot be opened ({error})", "check the path") from None
    suffixes = [suffix.lower() for suffix in path.suffixes]
    ending = (suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])) or ""
    if ending not in endings:
        raise problems.fail(
            f"files ending in '{ending}' cannot be read here",
            f"give a file ending in {', '.join(endings)}, or read it yourself and pass a data frame",
        )
    return path, ending


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def read_text(path: Path, problems: Problems, parse: Callable[[IO[str]], Any]) -> Any:
    """Run a parser over a text file; whatever is wrong with the bytes becomes a problem.

    Raises
    ------
    InputError : the file cannot be read, is damaged, or is no UTF-8.
    """
    try:
        with _open(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as stream:
            return parse(stream)
    except UnicodeDecodeError:
        raise _wrong_encoding(path, problems) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        remedy = "copy or compress it again"
        raise problems.fail(f"the compressed file is damaged or incomplete ({error})", remedy) from None
    except OSError as error:
        raise problems.fail(f"the file cannot be read ({error.strerror or error})", "check its permissions") from None


def _wrong_encoding(path: Path, problems: Problems) -> InputError:
    """Say which byte of which line is not UTF-8."""
    # Damaged compression may come to light before the line is reached again.
    with contextlib.suppress(EOFError, OSError, zlib.error), _open(path) as raw:
        for line, content in enumerate(raw, start=1):
            try:
                content.decode()
            except UnicodeDecodeError as error:
                return problems.fail(
                    f"byte {error.start + 1} of the line is not UTF-8 text",
                    "save the file as UTF-8 (a spreadsheet has to be exported as CSV first)",
                    row=f"line {line}",
                    value=f"0x{content[error.start]:02x}",
                )
    return problems.fail("the file is not UTF-8 text", "save the file as UTF-8")


class _Encoder:
    """Turns values into codes in order of first appearance, chunk by chunk."""

    def __init__(self) -> None:
        self._lookup: dict[Any, int] = collections.defaultdict(itertools.count().__next__)
        self._parts: list[np.ndarray] = [np.empty(0, np.int32)]

    def extend(self, values: Iterable[Any], count: int) -> None:
        self._parts.append(np.fromiter(map(self._lookup.__getitem__, values), np.int32, count))

    def column(self, name: str) -> Cells:
        return Cells(name, np.concatenate(self._parts), list(self._lookup))


def _read_delimited(path: Path, ending: str, choose: Choose, problems: Problems) -> Table:
    def parse(stream: IO[str]) -> Table:
        first = stream.readline()
        if "\0" in first:
            raise problems.fail("this is not a text file", "export the table as CSV", row="line 1")
        delimiter = "\t" if ending == ".tsv" else next((mark for mark in ",;\t" if mark in first), ",")
        reader = csv.reader(itertools.chain([first], stream), delimiter=delimiter, strict=True)
        chunks = _chunks(reader, problems)
        lines, rows = next(chunks, (np.empty(0, np.int64), []))
        if not rows:
            raise problems.fail("the file is empty", "check that this is the file you meant")
        names = _check_names(rows[0], problems)
        rest = itertools.chain([(lines[1:], rows[1:])], chunks)
        return _encode_rows(rest, names, choose(names, problems), problems)

    return read_text(path, problems, parse)


def _chunks(reader: Any, problems: Problems) -> Iterator[tuple[np.ndarray, list[list[str]]]]:
    """Yield rows that are not blank, many at a time, with the number of the line on which each begins."""
    before = 0
    while True:
        rows: list[list[str]] = []
        try:
            # extend keeps the rows before an error, which tell the line on which the bad row begins.
            rows.extend(itertools.islice(reader, _CHUNK_ROWS))
        except csv.Error as error:
            raise problems.fail(
                f"the row that begins here cannot be split into cells ({error})",
                'close every quotation mark, and write one inside a quoted cell twice ("")',
                row=f"line {before + _count_lines(rows).sum() + 1}",
            ) from None
        if not rows:
            return
        spans = np.ones(len(rows), np.int64) if reader.line_num - before == len(rows) else _count_lines(rows)
        lines = before + np.cumsum(spans) - spans + 1
        before = reader.line_num
        filled = np.fromiter(map(bool, rows), bool, len(rows))
        if filled.any():
            yield lines[filled], rows if filled.all() else list(itertools.compress(rows, filled))


def _count_lines(rows: list[list[str]]) -> np.ndarray:
    """Return how many lines of the file each row spans; a quoted cell may hold line breaks."""
    spans = (1 + sum(len(_LINE_BREAK.findall(cell)) for cell in row) for row in rows)
    return np.fromiter(spans, np.int64, len(rows))


def _encode_rows(
    chunks: Iterable[tuple[np.ndarray, list[list[str]]]], names: list[str], chosen: dict[str, int], problems: Problems
) -> Table:
    encoders = {role: _Encoder() for role in chosen}
    numbers = [np.empty(0, np.int64)]
    for lines, rows in chunks:
        widths = np.fromiter(map(len, rows), np.int64, len(rows))
        whole = widths == len(names)
        for index in np.flatnonzero(~whole)[:KEPT_PER_KIND].tolist():
            _ragged(rows[index], len(names), int(lines[index]), problems)
        kept = rows if whole.all() else list(itertools.compress(rows, whole))
        numbers.append(lines[whole])
        for role, position in chosen.items():
            encoders[role].extend(map(operator.itemgetter(position), kept), len(kept))
    columns = {role: encoders[role].column(names[position]) for role, position in chosen.items()}
    lines_of_rows = np.concatenate(numbers)
    return Table(columns, len(lines_of_rows), problems, "line {}", lines_of_rows)


def _ragged(row: list[str], expected: int, line: int, problems: Problems) -> None:
    problems.add(
        f"the row has {len(row)} cells where the header has {expected}",
        "add or remove separators; quote cells that contain the separator",
        row=f"line {line}",
        value=",".join(row),
    )


class _Duplicate(ValueError):
    """A JSON object names a key twice."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        repeated_key = collections.Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _Duplicate(f"an object has the key {_shorten(repeated_key)!r} twice")
    return record


def _parse_json(text: str, problems: Problems, line: int | None) -> tuple[Any, bool]:
    """Return the parsed value and whether parsing succeeded; where not, the problem is noted."""
    try:
        return json.loads(text, object_pairs_hook=_unique_keys), True
    except json.JSONDecodeError as error:
        place = f"line {line or error.lineno}"
        problems.add(f"this is not JSON: {error.msg} at character {error.colno}", "check it in an editor", row=place)
    except RecursionError:
        problems.add("this JSON is nested too deeply", "check that this is the file you meant")
    except ValueError as error:
        problems.add(f"this JSON cannot be used: {error}", "correct it", row=None if line is None else f"line {line}")
    return None, False


def read_json(path: Path, problems: Problems) -> Any:
    """Return the content of a JSON file, or raise what is wrong with it."""
    value, _ = _parse_json(read_text(path, problems, lambda stream: stream.read()), problems, None)
    problems.raise_any()
    return value


def _read_records(path: Path, ending: str, choose: Choose, problems: Problems) -> Table:
    if ending == ".json":
        content = read_json(path, problems)
        if not isinstance(content, list):
            remedy = "write the table as an array of objects (pandas: orient='records')"
            raise problems.fail("an array of objects is expected", remedy)
        numbered = list(enumerate(content, start=1))
        return _records_table(numbered, "record {}", choose, problems)
    lines = read_text(path, problems, lambda stream: stream.read()).split("\n")
    numbered = []
    for line, text in enumerate(lines, start=1):
        if text.strip():
            record, parsed = _parse_json(text, problems, line)
            numbered += [(line, record)] if parsed else []
    return _records_table(numbered, "line {}", choose, problems)


def _records_table(numbered: list[tuple[int, Any]], unit: str, choose: Choose, problems: Problems) -> Table:
    for place, record in numbered:
        if not isinstance(record, dict):
            remedy = 'write each row as {"column": value, …}'
            problems.add("an object is expected", remedy, row=unit.format(place), value=record)
    kept = [(place, record) for place, record in numbered if isinstance(record, dict)]
    if not kept:
        raise problems.fail("the table has no rows", "check that this is the file you meant")
    keys = list(dict.fromkeys(itertools.chain.from_iterable(record for _, record in kept)))
    names = _check_names(keys, problems)
    chosen = choose(names, problems)
    columns = {
        role: _from_values(names[position], [record.get(keys[position]) for _, record in kept])
        for role, position in chosen.items()
    }
    return Table(columns, len(kept), problems, unit, np.array([place for place, _ in kept], np.int64))


def _from_values(name: str, values: Iterable[Any]) -> Cells:
    """Encode Python values."""
    cells = list(values)
    kinds = set(map(type, cells))
    if bool in kinds and len(kinds) > 1:
        cells = [str(cell) if isinstance(cell, bool) else cell for cell in cells]  # True == 1, but is another label
    encoder = _Encoder()
    try:
        encoder.extend(cells, len(cells))
    except TypeError:
        encoder = _Encoder()
        encoder.extend([cell if _hashable(cell) else _Nested(repr(cell)) for cell in cells], len(cells))
    return encoder.column(name)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _read_mapping(source: Mapping, choose: Choose, problems: Problems) -> Table:
    names = _check_names(source, problems)
    columns = dict(zip(names, source.values(), strict=True))
    lengths = {}
    for name, values in columns.items():
        is_list = hasattr(values, "__len__") and not isinstance(values, str | bytes | Mapping)
        if not is_list or getattr(values, "ndim", 1) != 1:
            problems.add("a column of values is expected", "pass a list or a one-dimensional array", column=name)
        else:
            lengths[name] = len(values)
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r}: {length}" for name, length in lengths.items())
        problems.add(f"the columns have different lengths ({listed})", "make them equally long")
    problems.raise_any()
    num_rows = next(iter(lengths.values()), 0)
    encoded = {
        role: _from_series(names[position], columns[names[position]])
        for role, position in choose(names, problems).items()
    }
    return Table(encoded, num_rows, problems, "row {} (counted from 0)", range(num_rows))


def _from_series(name: str, values: Any) -> Cells:
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
    # Of floats of less than 64 bits the type tells how exact they are.
    plain = isinstance(values, np.ndarray) and values.dtype.char not in "ef"
    return _from_values(name, values.tolist() if plain else values)


def _distinct_texts(values: Any) -> list[str] | None:
    """Return a pandas column of texts that all differ, as ids do, which saves encoding it; None of any other."""
    for number in (_LOOKED_AT, len(values)):
        texts = getattr(values, "array", values)[:number].to_numpy(dtype=object).tolist()
        if len(set(texts)) < len(texts) or not set(map(type, texts)) <= {str}:
            return None
    return texts


def _read_frame(frame: Any, choose: Choose, problems: Problems) -> Table:
    names = _check_names(frame.columns, problems)
    columns = {
        role: _from_series(names[position], frame.iloc[:, position])
        for role, position in choose(names, problems).items()
    }
    return Table(columns, len(frame), problems, "row {} (counted from 0)", range(len(frame)))


def _as_pandas(source: Any, problems: Problems) -> Any:
    """Return a pandas frame; pandas itself is imported only by who brings a frame."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return source
    if hasattr(source, "columns") and hasattr(source, "__arrow_c_stream__"):
        return _pyarrow(problems).table(source).to_pandas(integer_object_nulls=True)
    if hasattr(source, "columns") and hasattr(source, "to_pandas"):
        return source.to_pandas()
    raise problems.fail(
        f"a {type(source).__name__} cannot be read as a table",
        "pass a path, a data frame, or a dict of equally long columns",
    )


def _pyarrow(problems: Problems) -> Any:
    try:
        import pyarrow
    except ImportError:
        remedy = "install it with: pip install 'consilience[parquet]'"
        raise problems.fail("reading this needs the package pyarrow, which is not installed", remedy) from None
    return pyarrow


def _read_parquet(path: Path, choose: Choose, problems: Problems) -> Table:
    """Read the chosen columns one after the other, batch by batch."""
    pyarrow = _pyarrow(problems)
    from pyarrow.parquet import ParquetFile

    with _parquet_errors(pyarrow, problems):
        # Not pyarrow's read_table, which takes folder names such as a=1/ for columns.
        file = ParquetFile(path)
        written = file.schema_arrow.names
    names = _check_names(written, problems)
    columns = {}
    for role, position in choose(names, problems).items():
        with _parquet_errors(pyarrow, problems):
            batches = file.iter_batches(_CHUNK_ROWS, columns=[written[position]])
            # A name with a dot may bring another column along.
            values = (batch.column(batch.schema.names.index(written[position])) for batch in batches)
            columns[role] = _from_batches(pyarrow, names[position], [_encode_batch(pyarrow, each) for each in values])
        pyarrow.default_memory_pool().release_unused()
    num_rows = file.metadata.num_rows
    return Table(columns, num_rows, problems, "row {} (counted from 0)", range(num_rows))


@contextlib.contextmanager
def _parquet_errors(pyarrow: Any, problems: Problems) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = _shorten(str(error).split("\n")[0])
        raise problems.fail(f"this is not a readable Parquet file ({reason})", "write the file again") from None


def _encode_batch(pyarrow: Any, values: Any) -> Any:
    """Return an Arrow array as codes into its distinct values, or as it is where Arrow cannot do that."""
    kinds = pyarrow.types
    if kinds.is_dictionary(values.type):
        # Encoded anew, because a dictionary of the file's own may be in any order and have values that no row uses.
        values = values.dictionary_decode()
    if kinds.is_string(values.type):
        # The distinct texts of all batches together may be longer than the offsets of the other type can count.
        values = values.cast(pyarrow.large_string())
    # Arrow 26 encodes half floats wrongly.
    refused = (kinds.is_nested, kinds.is_null, kinds.is_float16)
    if isinstance(values, pyarrow.ExtensionArray) or any(is_refused(values.type) for is_refused in refused):
        return values
    return values.dictionary_encode()


def _from_batches(pyarrow: Any, name: str, batches: list[Any]) -> Cells:
    """Join the batches of one column; Arrow unites their distinct values, in order of first appearance."""
    if not batches:
        return Cells(name, np.empty(0, np.int32), [])
    whole = pyarrow.chunked_array(batches)
    if not pyarrow.types.is_dictionary(whole.type):
        return _from_series(name, whole.to_pandas(integer_object_nulls=True))
    whole = whole.unify_dictionaries()
    distinct = _from_arrow(name, whole.chunk(0).dictionary)
    recoded = np.append(distinct.codes, np.int32(-1))
    parts = [recoded[part.indices.fill_null(-1).to_numpy()] for part in whole.chunks]
    return Cells(name, np.concatenate(parts), distinct.values)


def _from_arrow(name: str, distinct: Any) -> Cells:
    """Encode an Arrow array of distinct values; its numbers may hold NaN, and two zeros."""
    if str(distinct.type) == "large_string":
        return Cells(name, np.arange(len(distinct), dtype=np.int32), distinct.to_pylist())
    return _from_series(name, distinct.to_pandas())


def read_lines(path: str | os.PathLike) -> list[str]:
    """Return the lines of a ``.txt`` file, stripped; a blank line inside the file is an error.

    Raises
    ------
    InputError : there is no such file, it cannot be read or is empty, or a line is blank or no text.
    """
    found, _ = find_file(path, (".txt",))
    problems = Problems(str(found))
    lines = [line.strip() for line in read_text(found, problems, lambda stream: stream.read()).splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    for number_of_line, line in enumerate(lines, start=1):
        if not line:
            problems.add("the line is blank", "write one name per line", row=f"line {number_of_line}")
        elif "\0" in line:
            problems.add("the text holds a NUL character", "save it as plain text", row=f"line {number_of_line}")
    if not lines:
        raise problems.fail("the file is empty", "write one name per line")
    problems.raise_any()
    return lines
