"""Cells of CSV files that a spreadsheet would run: written with an apostrophe before them, and read without it.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, also from a CSV file, and quotes
do not keep it from that: https://owasp.org/www-community/attacks/CSV_Injection. Texts that begin so, perhaps after
white space, and go on with a letter or a digit, get an apostrophe. Numbers stay, as do labels such as ``+`` and ``--``.
A text that already has apostrophes before such a beginning gets one more, so that `as_read` gives back any text.

This holds for spreadsheets that split at the commas, as the file is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LEAD = "=+-@＝＋－＠"
_FIRST = {"'", *_LEAD}
_FORMULA = re.compile(rf"'*\s*[{re.escape(_LEAD)}].*\w", re.DOTALL)
WRITTEN = rf"(?s)^'+[\s\pZ]*[{re.escape(_LEAD)}].*[\pL\pN_]"
"""What `as_read` changes, as DuckDB writes regular expressions."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def as_written(text: str) -> str:
    """Return a text as a cell that no spreadsheet runs.

    >>> [as_written(text) for text in ("=1+1", "-1.5", "@ann", "--", "'=x", "it's")]
    ["'=1+1", '-1.5', "'@ann", '--', "''=x", "it's"]
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def as_read(cell: str) -> str:
    """Return the text of a cell that `as_written` made; other cells as they are."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def may_be_run(texts: Iterable[str]) -> bool:
    """Return whether `as_written` or `as_read` might change any of the texts; quicker than to ask for each."""
    firsts = {text[:1] for text in texts}
    return not firsts.isdisjoint(_FIRST) or any(map(str.isspace, firsts))
