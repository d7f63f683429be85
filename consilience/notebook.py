"""What a notebook shows of a value: one line of what it is, what is said of it, its first rows; escaped, no script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

SHOWN = 5
"""Rows of a table."""


def html(line: str, said: Iterable[str] = (), columns: Mapping[str, Any] | None = None, others: str = "") -> str:
    """Return a value as HTML.

    Parameters
    ----------
    line : what it is; line breaks are kept.
    said : of it, a paragraph each.
    columns : of its table, of which the first rows are shown; or a data frame.
    others : what else it has.
    """
    first, *more = map(escape, line.split("\n"))
    parts = [f"<p>{'<br>'.join([f'<b>{first}</b>', *more])}</p>", *(f"<p>{escape(one)}</p>" for one in said)]
    if columns is not None and len(columns):
        head = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
        listed = [[_cell(value) for value in list(columns[name][:SHOWN])] for name in columns]
        rows = "".join(f"<tr>{''.join(f'<td>{one}</td>' for one in row)}</tr>" for row in zip(*listed, strict=True))
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    return "".join([*parts, f"<p>{escape(others)}</p>" if others else ""])


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    is_float = isinstance(value, float) or (hasattr(value, "dtype") and value.dtype.kind == "f")
    return f"{value:.4g}" if is_float else escape(str(value))
