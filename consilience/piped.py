"""Inputs that can be read only once: standard input, FIFOs and open files. A copy is kept, which readers open again."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Piped(os.PathLike):
    """A copy of what can be read once.

    Parameters
    ----------
    path : of the copy; it ends in ``.jsonl`` where the first character is ``{``, else in ``.csv``.
    name : what messages call it.
    """

    path: Path
    name: str

    def __fspath__(self) -> str:
        return str(self.path)


@dataclass
class _Copies:
    folder: Path
    standard_input: BinaryIO | None
    by_name: dict[str, Piped] = field(default_factory=dict)

    def keep(self, name: str, called: str, stream: IO[Any]) -> Piped:
        """Copy a stream to the end; of what is text, as UTF-8."""
        copy = self.folder / f"{len(self.by_name)}.csv"
        first = stream.read(1)
        with copy.open("w", encoding="utf-8", newline="") if isinstance(first, str) else copy.open("wb") as file:
            file.write(first)
            shutil.copyfileobj(stream, file)
        if first in ("{", b"{"):
            copy = copy.rename(copy.with_suffix(".jsonl"))
        return self.by_name.setdefault(name, Piped(copy, called))


_copies: ContextVar[_Copies | None] = ContextVar("copies", default=None)


@contextlib.contextmanager
def kept_inputs(standard_input: BinaryIO | None = None) -> Iterator[None]:
    """Keep copies of inputs that can be read once, for as long as this lasts; inside another one that one keeps them.

    Parameters
    ----------
    standard_input : what is called ``-``; without it that is a file name.
    """
    if _copies.get() is not None:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        before = _copies.set(_Copies(Path(folder), standard_input))
        try:
            yield
        finally:
            _copies.reset(before)


def kept(source: Any) -> Piped | None:
    """Return the copy of an input that can be read once; None of all else, and where no copies are kept."""
    copies = _copies.get()
    if isinstance(source, Piped) or copies is None:
        return source if isinstance(source, Piped) else None
    if is_open_file(source):
        name = getattr(source, "name", None)
        return copies.keep(f"#{len(copies.by_name)}", name if isinstance(name, str) else "the open file", source)
    name = os.fspath(source)
    if name in copies.by_name:
        return copies.by_name[name]
    if name == STANDARD_INPUT and copies.standard_input is not None:
        return copies.keep(name, "standard input", copies.standard_input)
    if is_fifo(name):
        with open(name, "rb") as stream:
            return copies.keep(name, name, stream)
    return None


def is_open_file(source: Any) -> bool:
    """Return whether a source is a file that is open for reading, of texts or of bytes."""
    return hasattr(source, "read") and hasattr(source, "readline")


def is_fifo(path: str | os.PathLike) -> bool:
    """Return whether something at a path can be read only once."""
    with contextlib.suppress(OSError, ValueError):
        return stat.S_ISFIFO(os.stat(path).st_mode)
    return False
