"""The one place that turns what a user brings into named columns, and that says what is wrong with it.

A *source* is a path (``.csv``, ``.tsv``, ``.json``, ``.jsonl``/``.ndjson``, each also with ``.gz``, or ``.parquet``), a
data frame (pandas; any that Narwhals knows, such as Polars, PyArrow and DuckDB, or that speaks Arrow; a data set of
Hugging Face), a dict of columns, a list of dicts, one for each row, or an open text file, in CSV or JSON lines.

Every column becomes codes into its distinct values, in the order of their first appearance: a check or a conversion
then runs once per distinct value, and 10^7 rows cost a few C loops instead of 10^7 Python calls.

What counts as what:

* Ids, labels and classes are **text**. In text files they stay as written ("01" is not "1"; "NA", "null" and "None" are
  labels like any other), without the white space around them. Nothing else is normalised. Numbers from data frames and
  JSON become their text; whole numbers are written without a decimal point, because pandas turns integers into floats
  as soon as one is missing.
* An apostrophe before a text that a spreadsheet would run, ``'=1+1``, is not part of it: our own files have it; see
  `consilience.spreadsheets`.
* Only an **empty cell** is missing; in data frames and JSON also ``None``, NaN and pandas' ``NA``.
* A CSV file is comma-separated; where the first line has no comma but semicolons (or tabs), those separate. It is
  UTF-8, with or without a byte order mark, and its first row names the columns. Blank lines are skipped.
* Columns are found by name, in any order and case, under the name or an alias that the contract declares; other columns
  are ignored.
* Problems are collected and raised together. They name the **line** of a text file as an editor shows it (the header is
  line 1), the **record** of a JSON array counted from 1, or the **row** of a data frame counted from 0.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import itertools
import operator
import os
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from consilience.data.cells import Cells, Encoder, Table, from_series, from_values
from consilience.data.columns import Choose, check_names
from consilience.data.files import delimiter_of, find_file, open_bytes, parse_json, read_json, read_text, unchanged
from consilience.data.problems import KEPT_PER_KIND, Problems, shorten
from consilience.errors import InputError
from consilience.piped import is_open_file, kept, kept_inputs
from consilience.spreadsheets import as_read, may_be_run

_TEXT_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_CHUNK_ROWS = 65536
_BLOCK_BYTES = 1 << 22
_LARGE_BYTES = 1 << 20  # of a file that is worth the import of Arrow
_LINE_BREAK = re.compile("\r\n|\r|\n")
_FROM_ZERO = "row {} (counted from 0)"


def read_table(source: Any, choose: Choose, units: tuple[str, str] | None = None) -> Table:
    """Read the wanted columns of a source.

    Parameters
    ----------
    source : a path, a data frame, a dict of columns or a list of rows; see the head of this file.
    choose : finds the wanted columns among the names: `choose_columns` or `all_columns`.
    units : columns of a JSON object of thing -> value, where it may be one.

    Returns
    -------
    table : its ``problems`` may hold problems of single rows, which the reader raises together with its own.
    """
    if is_open_file(source):
        with kept_inputs():
            return read_table(kept(source), choose, units)
    if isinstance(source, str | os.PathLike):
        path, ending = find_file(source, (*_TEXT_ENDINGS, ".parquet"))
        piped = kept(source)
        problems = Problems(str(path) if piped is None else piped.name)
        with unchanged(path, problems):
            if ending == ".parquet":
                table = _read_parquet(path, choose, problems)
            elif ending in (".csv", ".tsv"):
                table = _read_delimited(path, ending, choose, problems)
            else:
                table = _read_records(path, ending, choose, problems, units)
    elif is_rows(source):
        table = _records_table(list(enumerate(source)), _FROM_ZERO, choose, Problems("the list of rows"))
    elif isinstance(source, Mapping):
        table = _read_mapping(source, choose, Problems("the dict of columns"))
    else:
        table = _read_frame(source, choose, Problems("the data frame"))
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


# ---- text files ----


def _read_delimited(path: Path, ending: str, choose: Choose, problems: Problems) -> Table:
    if path.stat().st_size >= _LARGE_BYTES and (table := _read_plain(path, ending, choose, problems)):
        return table

    def parse(stream: IO[str]) -> Table:
        first = stream.readline()
        if "\0" in first:
            raise problems.fail("this is not a text file", "export the table as CSV", row="line 1")
        reader = csv.reader(itertools.chain([first], stream), delimiter=delimiter_of(first, ending), strict=True)
        chunks = _chunks(reader, problems)
        lines, rows = next(chunks, (np.empty(0, np.int64), []))
        if not rows:
            raise problems.fail("the file is empty", "check that this is the file you meant")
        names = check_names(map(as_read, rows[0]), problems)
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
    encoders = {role: Encoder() for role in chosen}
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
    columns = {role: _as_read(encoders[role].column(names[position])) for role, position in chosen.items()}
    lines_of_rows = np.concatenate(numbers)
    return Table(columns, len(lines_of_rows), problems, "line {}", lines_of_rows)


def _as_read(cells: Cells) -> Cells:
    """Take away the apostrophes that keep a spreadsheet from running the cells."""
    if not may_be_run(cells.values):
        return cells
    texts = from_values(cells.name, map(as_read, cells.values))
    return Cells(cells.name, np.append(texts.codes, np.int32(-1))[cells.codes], texts.values)


def _ragged(row: list[str], expected: int, line: int, problems: Problems) -> None:
    problems.add(
        f"the row has {len(row)} cells where the header has {expected}",
        "add or remove separators; quote cells that contain the separator",
        row=f"line {line}",
        value=",".join(row),
    )


class _Doubt(Exception):
    """A file may mean something else to another reader."""


def _read_plain(path: Path, ending: str, choose: Choose, problems: Problems) -> Table | None:
    """Read by Arrow what it surely reads as `_read_delimited` would; None for all else, and where there is no Arrow.

    Sure is what has no blank lines, and quotes around whole cells alone. That something is wrong, and where, is for the
    other one to find.
    """
    try:
        import pyarrow.csv
    except ImportError:
        return None
    doubts = (_Doubt, _Names, InputError, csv.Error, pyarrow.ArrowException, UnicodeDecodeError)
    try:
        with open_bytes(path) as raw:
            first = raw.readline().decode("utf-8-sig")
            delimiter = delimiter_of(first, ending)
            rows = list(csv.reader([first], delimiter=delimiter, strict=True))
            if "\0" in first or "\r" in first.rstrip("\r\n") or not any(rows):
                raise _Doubt
            names = check_names(map(as_read, rows[0]), Problems(None))
            chosen = choose(names, Problems(None))
            batches = _arrow_batches(pyarrow, raw, delimiter, len(names), chosen.values())
        columns = {role: _as_read(_from_batches(pyarrow, names[at], batches.pop(0))) for role, at in chosen.items()}
    except (*doubts, EOFError, OSError, zlib.error):
        return None
    pyarrow.default_memory_pool().release_unused()
    num_rows = max((len(cells.codes) for cells in columns.values()), default=0)
    return Table(columns, num_rows, problems, "line {}", range(2, num_rows + 2)) if num_rows else None


def _arrow_batches(
    pyarrow: Any, raw: IO[bytes], delimiter: str, width: int, positions: Collection[int]
) -> list[list[Any]]:
    """Return the codes of the cells of each of these columns, block by block, from lines that are plain.

    Raises
    ------
    _Doubt, ArrowException, UnicodeDecodeError : they are not, or no column is wanted.
    """
    if not positions:
        raise _Doubt
    # Columns go by their positions: there may be several without a name.
    kinds = {str(position): pyarrow.dictionary(pyarrow.int32(), pyarrow.large_string()) for position in positions}
    names = list(map(str, range(width)))
    reading = pyarrow.csv.ReadOptions(use_threads=False, column_names=names, block_size=2 * _BLOCK_BYTES)
    parsing = {
        quotes: pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char='"' if quotes else False, double_quote=False)
        for quotes in (False, True)
    }
    converting = pyarrow.csv.ConvertOptions(check_utf8=False, column_types=kinds, include_columns=list(kinds))
    batches: list[list[Any]] = [[] for _ in kinds]
    longest = csv.field_size_limit()
    while block := raw.read(_BLOCK_BYTES) + raw.readline(longest):
        _check_plain(block, longest)
        quotes = b'"' in block
        if quotes:
            _check_quotes(np.frombuffer(block, np.uint8), ord(delimiter))
        table = pyarrow.csv.read_csv(pyarrow.BufferReader(block), reading, parsing[quotes], converting)
        if len(table) != block.count(b"\n") + (not block.endswith(b"\n")):
            raise _Doubt  # Arrow leaves out blank lines, which count where lines are named.
        for parts, column in zip(batches, table.columns, strict=True):
            parts += column.chunks
    return batches


def _check_plain(block: bytes, longest: int) -> None:
    """Raise where lines end in more than one way, are too long for the module csv, or are no text.

    A byte order mark at the beginning would be left out by Arrow, which takes each block for a file.
    """
    mixed = b"\r" in block and block.count(b"\r") != block.count(b"\r\n")
    if mixed or b"\0" in block or block.startswith(codecs.BOM_UTF8):
        raise _Doubt
    begin = 0
    while len(block) - begin >= longest:
        begin = block.rfind(b"\n", begin, begin + longest) + 1
        if not begin:
            raise _Doubt
    if not block.isascii():
        block.decode()


def _check_quotes(block: np.ndarray, delimiter: int) -> None:
    """Raise where quotes are anything else than the first and the last character of a cell."""
    at = np.flatnonzero(block == ord('"'))
    if len(at) % 2:
        raise _Doubt
    opening, closing = at[::2], at[1::2]
    ends = np.array([delimiter, ord("\n"), ord("\r")], np.uint8)
    around = np.append(block, ends[1])  # before the first character, and after the last one
    if not (np.isin(around[opening - 1], ends).all() and np.isin(around[closing + 1], ends).all()):
        raise _Doubt
    lines = np.flatnonzero(block == ends[1])
    if (np.searchsorted(lines, opening) != np.searchsorted(lines, closing)).any():
        raise _Doubt


def _read_records(
    path: Path, ending: str, choose: Choose, problems: Problems, units: tuple[str, str] | None
) -> Table:
    if ending == ".json":
        content = read_json(path, problems)
        if units is not None and isinstance(content, dict) and not set(map(type, content.values())) & {dict, list}:
            content = [dict(zip(units, pair, strict=True)) for pair in content.items()]
        if not isinstance(content, list):
            remedy = "write the table as an array of objects (pandas: orient='records'), or as JSON lines, one a line"
            raise problems.fail("an array of objects is expected", remedy)
        numbered = list(enumerate(content, start=1))
        return _records_table(numbered, "record {}", choose, problems)
    lines = read_text(path, problems, lambda stream: stream.read()).split("\n")
    numbered = []
    for line, text in enumerate(lines, start=1):
        if text.strip():
            record, parsed = parse_json(text, problems, line)
            numbered += [(line, record)] if parsed else []
    return _records_table(numbered, "line {}", choose, problems)


_LABEL_STUDIO = (
    "export them as CSV there, or convert them to JSON with a row for each annotation, as in "
    '{"item": "a", "annotator": "ann", "label": "yes"}'
)


def _records_table(numbered: list[tuple[int, Any]], unit: str, choose: Choose, problems: Problems) -> Table:
    for place, record in numbered:
        if not isinstance(record, dict):
            remedy = 'write each row as {"column": value, …}'
            problems.add("an object is expected", remedy, row=unit.format(place), value=record)
    kept = [(place, record) for place, record in numbered if isinstance(record, dict)]
    if not kept:
        raise problems.fail("the table has no rows", "check that this is the file you meant")
    first = kept[0][1]
    if isinstance(first.get("annotations", first.get("completions")), list) and isinstance(first.get("data"), dict):
        raise problems.fail("these are tasks of Label Studio, each with its annotations within", _LABEL_STUDIO)
    keys = list(dict.fromkeys(itertools.chain.from_iterable(record for _, record in kept)))

    def encode(name: str, position: int) -> Cells:
        return from_values(name, [record.get(keys[position]) for _, record in kept])

    try:
        columns = _chosen_columns(keys, encode, choose, problems)
    except InputError:
        if nested := [repr(name) for name, value in first.items() if isinstance(value, list | dict)]:
            message = f"{', '.join(nested)} of the first row hold lists or objects, which are not read"
            raise problems.fail(message, "write flat rows, with a text or a number in each column") from None
        raise
    return Table(columns, len(kept), problems, unit, np.array([place for place, _ in kept], np.int64))


# ---- what is in memory ----


def _chosen_columns(
    names: Iterable[Any], encode: Callable[[str, int], Cells], choose: Choose, problems: Problems
) -> dict[str, Cells]:
    """Return the wanted columns by role; ``encode`` makes one of its checked name and position."""
    checked = check_names(names, problems)
    return {role: encode(checked[position], position) for role, position in choose(checked, problems).items()}


def _read_mapping(source: Mapping, choose: Choose, problems: Problems) -> Table:
    columns = list(source.values())
    lengths = {}
    for name, values in zip(check_names(source, problems), columns, strict=True):
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
    encoded = _chosen_columns(source, lambda name, position: from_series(name, columns[position]), choose, problems)
    return Table(encoded, num_rows, problems, _FROM_ZERO, range(num_rows))


def _read_frame(frame: Any, choose: Choose, problems: Problems) -> Table:
    if is_data_set(frame):
        frame = frame.to_pandas()
    pandas = sys.modules.get("pandas")
    encode: Callable[[str, int], Cells]
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        names, number, encode = frame.columns, len(frame), lambda name, at: from_series(name, frame.iloc[:, at])
    else:
        found = _by_narwhals(frame, problems)
        names, number, encode = found.columns, len(found), lambda name, at: _from_narwhals(name, found[:, at])
    return Table(_chosen_columns(names, encode, choose, problems), number, problems, _FROM_ZERO, range(number))


def is_data_set(source: Any) -> bool:
    """Return whether this is a data set of Hugging Face."""
    return hasattr(source, "column_names") and hasattr(source, "to_pandas") and not hasattr(source, "columns")


def _by_narwhals(frame: Any, problems: Problems) -> Any:
    """Return a frame as Narwhals shows it, which is imported only where a frame comes that is not pandas'."""
    import narwhals

    found = narwhals.from_native(frame, pass_through=True)
    if isinstance(found, narwhals.LazyFrame):
        return found.collect()
    if isinstance(found, narwhals.DataFrame):
        return found
    if hasattr(frame, "__arrow_c_stream__"):
        pyarrow = _pyarrow(problems)
        with contextlib.suppress(pyarrow.ArrowInvalid):  # a stream of a column, and not of a table
            return narwhals.from_native(pyarrow.table(frame))
    raise problems.fail(
        f"a {type(frame).__name__} cannot be read as a table",
        "pass a path, a data frame, or a dict of equally long columns",
    )


def _from_narwhals(name: str, column: Any) -> Cells:
    """Encode a column; of floats the type tells how exact they are, which Python's own do not."""
    return from_values(name, column.to_numpy() if str(column.dtype) == "Float32" else column.to_list())


# ---- Parquet ----


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

    def encode(name: str, position: int) -> Cells:
        with _parquet_errors(pyarrow, problems):
            batches = file.iter_batches(_CHUNK_ROWS, columns=[written[position]], use_threads=False)
            # A name with a dot may bring another column along.
            values = (batch.column(batch.schema.names.index(written[position])) for batch in batches)
            cells = _from_batches(pyarrow, name, [_encode_batch(pyarrow, each) for each in values])
        pyarrow.default_memory_pool().release_unused()
        return cells

    columns = _chosen_columns(written, encode, choose, problems)
    return Table(columns, file.metadata.num_rows, problems, _FROM_ZERO, range(file.metadata.num_rows))


@contextlib.contextmanager
def _parquet_errors(pyarrow: Any, problems: Problems) -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = shorten(str(error).split("\n")[0])
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
    batches.clear()  # or they would be kept beside what is made of them
    if not pyarrow.types.is_dictionary(whole.type):
        return from_series(name, whole.to_pandas(integer_object_nulls=True))
    whole = whole.unify_dictionaries()
    distinct = _from_arrow(name, whole.chunk(0).dictionary)
    recoded = np.append(distinct.codes, np.int32(-1))
    indices = (part.indices.fill_null(-1) if part.null_count else part.indices for part in whole.chunks)
    codes, start = np.empty(len(whole), np.int32), 0
    for part in indices:
        # Arrow's own to_numpy imports pandas, which takes longer than to read half a million rows.
        codes[start : start + len(part)] = recoded[np.from_dlpack(part)]
        start += len(part)
    return Cells(name, codes, distinct.values)


def _from_arrow(name: str, distinct: Any) -> Cells:
    """Encode an Arrow array of distinct values; its numbers may hold NaN, and two zeros."""
    if str(distinct.type) == "large_string":
        return Cells(name, np.arange(len(distinct), dtype=np.int32), distinct.to_pylist())
    return from_series(name, distinct.to_pandas())
