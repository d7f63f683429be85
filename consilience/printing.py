"""How the command shows tables: aligned text for people, JSON for programs, CSV for spreadsheets.

A table is a mapping of column name to array; a short one may be a list of rows, each a dict. `columns_of` makes one of
a data frame, and `rows_of` rows of either. Text shows four significant digits and the first rows, and is made of these
alone; JSON and CSV hold everything. What is not a number, or not known, is null in
JSON and empty elsewhere.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from consilience.notes import Level, Note
from consilience.output import text_stream, write_output
from consilience.spreadsheets import as_written, may_be_run

Rows = Sequence[Mapping[str, Any]]

Columns = Mapping[str, Any]

# With those that turn the direction of writing; the line ends of our own texts stay.
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_ROWS = 65_536  # of a large table that are written at a time


def counted(size: int, plural: str) -> str:
    """Return how many there are in words: 1 class, 1 entity, 2,000 items."""
    singular = plural.removesuffix("es") if plural.endswith("sses") else plural.removesuffix("s")
    singular = f"{plural[:-3]}y" if plural.endswith("ies") else singular
    return f"{size:,} {singular if size == 1 else plural}"


def article(noun: str) -> str:
    """Return the article of a noun: an item, a mention."""
    return "an" if noun[0] in "aeiou" else "a"


def joined(names: Iterable[str]) -> str:
    """Return names as a list in words.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def numbered(code: Any) -> Any:
    """Return the numbers of views or clusters as people read them, from 1; tables in Python have codes, from 0."""
    return code + 1


def percent(share: float) -> str:
    """Write a share in per cent.

    Examples
    --------
    >>> percent(0.9551), percent(0.99), percent(1.0)
    ('95.5 %', '99.0 %', '100 %')
    """
    written = f"{100 * share:.1f}"
    return f"{ {'100.0': '100', '0.0': '0'}.get(written, written)} %" if math.isfinite(share) else "unknown"


def percents(low: float, high: float) -> str:
    """Write the ends of an interval of a share in per cent.

    Examples
    --------
    >>> percents(0.884, 1.0)
    '88.4 to 100 %'
    """
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def print_notes(notes: Iterable[Note]) -> None:
    """Print what a reader should know of a fit; what is worse was said as a warning."""
    for note in notes:
        if note.level is Level.note:
            print(f"note     {note.words('flags')}")


def columns_of(frame: Any) -> dict[str, Any]:
    """Return the columns of a data frame as arrays."""
    return {str(name): frame[name].to_numpy() for name in frame}


def rows_of(table: Any, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the rows, or the first of them, of a data frame or of columns."""
    columns = table if isinstance(table, Mapping) else columns_of(table)
    listed = [_plain_column(_array(values)[:limit]) for values in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*listed, strict=True)]


def _array(values: Any) -> Any:
    import numpy as np

    return np.asarray(values)


def table_text(
    table: Rows | Columns, limit: int | None = 20, hint: str = "use --json", widest: int | None = 60,
    number: int | None = None,
) -> str:  # fmt: skip
    """Lay out a table: texts to the left, numbers to the right, columns without any value left out.

    Parameters
    ----------
    table : columns of equal length, or rows of equal columns.
    limit : show so many rows; all where None.
    hint : how to see the others.
    widest : longer cells are cut; none where None.
    number : of all rows, where these are only the first of them.
    """
    rows = table if not isinstance(table, Mapping) else rows_of(table, limit)
    if number is None:
        number = len(next(iter(table.values()), ())) if isinstance(table, Mapping) else len(table)
    if not rows:
        return "(no rows)"
    shown = rows[:limit]
    columns = []
    for name in shown[0]:
        values = [_plain(row[name]) for row in shown]
        if all(value is None for value in values):
            continue
        cells = [printable(name), *(_cut(_cell(value), widest) for value in values)]
        width = max(map(len, cells))
        to_the_left = any(isinstance(value, str) for value in values)
        columns.append([cell.ljust(width) if to_the_left else cell.rjust(width) for cell in cells])
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    if number > len(shown):
        lines.append(f"… and {number - len(shown):,} more ({hint})")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if 9999.5 <= abs(value) < 1e12 else f"{value:.4g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_cell, value))}]"
    return printable(str(value))


def printable(text: str) -> str:
    r"""Return a text that does nothing to a terminal: control characters are written as Python writes them.

    >>> printable("red\x1b[31m")
    'red\\x1b[31m'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _cut(text: str, widest: int | None) -> str:
    return text if widest is None or len(text) <= widest else text[: widest - 1] + "…"


def json_text(value: Any) -> str:
    """Write rows, or a dict of them, as JSON; what is not finite becomes null."""
    return json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return plain Python values, None in place of numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


def write_columns(table: Any, path: str | os.PathLike, *, force: bool = False) -> None:
    """Write columns, or a data frame, to a CSV file, or to Parquet where the path ends in ``.parquet``.

    For ``path`` and ``force`` see `consilience.output.write_output`. Of a CSV file some rows at a time are Python's own
    objects, which take ten times the memory of the arrays. Texts that a spreadsheet would run are written as
    `consilience.spreadsheets` says.
    """
    columns = table if isinstance(table, Mapping) else columns_of(table)
    number = len(next(iter(columns.values()), ()))

    def write(stream: BinaryIO) -> None:
        if os.fspath(path).endswith(".parquet"):
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.table(dict(columns)), stream)
            return
        with text_stream(stream) as file:
            writer = csv.writer(file)
            writer.writerow(map(as_written, columns))
            for start in range(0, number, _ROWS):
                part = [_array(values[start : start + _ROWS]) for values in columns.values()]
                cells = [] if len(part) == 1 else list(map(_unquoted, part))
                if cells and None not in cells:
                    file.write("\r\n".join([*map(",".join, zip(*cells, strict=True)), ""]))
                else:
                    writer.writerows(zip(*map(_safe_column, part), strict=True))

    write_output(path, write, force=force)


def _unquoted(values: Any) -> list[str] | None:
    """Return the cells of a column as `csv` writes them; None where some may need quotes, which it looks at slowly."""
    import numpy as np

    listed = values.tolist()
    if values.dtype.kind in "iu" or (values.dtype.kind == "f" and np.isfinite(values).all()):
        return list(map(repr, listed))
    try:  # to ask each cell for its type takes longer
        joined = "".join(listed)
    except TypeError:
        return None
    return None if any(mark in joined for mark in ',"\r\n') or may_be_run(listed) else listed


def _plain_column(values: Any) -> list[Any]:
    import numpy as np

    listed: list[Any] = values.tolist()
    if values.dtype.kind in "iub" or (values.dtype.kind == "f" and np.isfinite(values).all()):
        return listed
    return listed if set(map(type, listed)) <= {str, int, bool} else list(map(_plain, listed))


def _safe_column(values: Any) -> list[Any]:
    return [as_written(cell) if isinstance(cell, str) else cell for cell in _plain_column(values)]
