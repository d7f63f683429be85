"""Where tables are read from that are called ``-``: the command keeps a copy of its standard input."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

STANDARD_INPUT = "-"

_copy: ContextVar[Path | None] = ContextVar("standard_input", default=None)


@contextlib.contextmanager
def standard_input_from(copy: Path) -> Iterator[None]:
    """Let ``-`` be read from a CSV file, for which a copy of standard input was made."""
    before = _copy.set(copy)
    try:
        yield
    finally:
        _copy.reset(before)


def kept_standard_input(source: object) -> Path | None:
    """Return the copy of standard input if a source is that; else None."""
    return _copy.get() if str(source) == STANDARD_INPUT else None
