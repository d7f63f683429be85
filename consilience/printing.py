"""How the command shows tables: aligned text for people, JSON for programs, CSV for spreadsheets.

A table is a list of rows, each a dict of column name to value; `rows_of` makes one of a data frame. Text shows four
significant digits and the first rows; JSON and CSV hold everything. What is not a number, or not known, is null in
JSON and empty elsewhere.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Rows", "json_text", "rows_of", "table_text", "write_columns", "write_csv"]

Rows = Sequence[Mapping[str, Any]]

_ROWS = 65_536  # of a large table that are written at a time


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a data frame."""
    return frame.to_dict("records")


def table_text(
    rows: Rows, limit: int | None = 20, hint: str = "use --json", widest: int | None = 60, number: int | None = None
) -> str:
    """Lay out a table: texts to the left, numbers to the right, columns without any value left out.

    Parameters
    ----------
    rows : of equal columns.
    limit : show so many rows; all where None.
    hint : how to see the others.
    widest : longer cells are cut; none where None.
    number : of all rows, where ``rows`` are only the first of them.
    """
    if not rows:
        return "(no rows)"
    shown = rows[:limit]
    columns = []
    for name in shown[0]:
        values = [_plain(row[name]) for row in shown]
        if all(value is None for value in values):
            continue
        cells = [name, *(_cut(_cell(value), widest) for value in values)]
        width = max(map(len, cells))
        to_the_left = any(isinstance(value, str) for value in values)
        columns.append([cell.ljust(width) if to_the_left else cell.rjust(width) for cell in cells])
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    number = len(rows) if number is None else number
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
    return str(value)


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


def write_csv(rows: Rows, path: str | Path) -> None:
    """Write a table to a CSV file, in place of an earlier one."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows([_plain(row) for row in rows])


def write_columns(columns: Mapping[str, Any], path: str | Path) -> None:
    """Write arrays of equal length to a CSV file as `write_csv` writes rows: for tables of many rows.

    Some rows at a time are Python's own objects, which take ten times the memory of the arrays.
    """
    number = len(next(iter(columns.values()), ()))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for start in range(0, number, _ROWS):
            part = (_plain_column(values[start : start + _ROWS]) for values in columns.values())
            writer.writerows(zip(*part, strict=True))


def _plain_column(values: Any) -> list[Any]:
    import numpy as np

    listed: list[Any] = values.tolist()
    if values.dtype.kind in "iub" or (values.dtype.kind == "f" and np.isfinite(values).all()):
        return listed
    return listed if set(map(type, listed)) <= {str, int, bool} else list(map(_plain, listed))
