"""Files that users bring: found, opened and decoded; what is wrong with their bytes is said by line."""

from __future__ import annotations

import collections
import contextlib
import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from consilience.data.problems import Problems, shorten
from consilience.errors import InputError
from consilience.piped import Piped, kept
from consilience.progress import Steps, steps

_BUFFER = 1 << 17
MANIFEST = "manifest.json"
"""Name of the file that tells a folder of coded annotations from others."""


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def delimiter_of(first: str, ending: str) -> str:
    """Return what separates the cells of a text file of this ending, as its first line has it."""
    return "\t" if ending == ".tsv" else next((mark for mark in ",;\t" if mark in first), ",")


def holds_coded(source: Any) -> bool:
    """Return whether a source is a folder of parts that `code` wrote."""
    return isinstance(source, str | os.PathLike) and os.path.isfile(Path(source, MANIFEST))  # False of a bad name


def find_file(source: str | os.PathLike, endings: Sequence[str]) -> tuple[Path, str]:
    """Return the path of an existing file and its ending without ``.gz``.

    Raises
    ------
    InputError : there is no such file, it is a folder, cannot be opened, or has another ending.
    """
    if (piped := kept(source)) is not None:
        if piped.path.suffix not in endings:
            text = f"a file ending in {', '.join(endings)} is expected; this is read as a table, in CSV or JSON lines"
            raise Problems(piped.name).fail(text, "give the path of a file")
        return piped.path, piped.path.suffix
    path = Path(source)
    problems = Problems(shorten(str(path), 1000))
    try:
        if path.is_dir():
            raise problems.fail("this is a folder; a file is expected", "give the path of one file")
        if not path.exists():
            raise problems.fail("there is no such file", "check the path")
        if not path.is_file():
            raise problems.fail("this is no regular file, and may never end", "copy it to a file, or give - and a pipe")
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


@contextlib.contextmanager
def unchanged(path: Path, problems: Problems) -> Iterator[None]:
    """Refuse what was read of a file that somebody wrote to meanwhile: it may be half of one and half of another.

    Raises
    ------
    InputError : the file, its size or its time is another than it was.
    """
    before = _standing(path)
    yield
    if _standing(path) != before:
        raise problems.fail("the file changed while it was read", "read it when it is complete")


def _standing(path: Path) -> tuple[int, ...] | None:
    try:
        known = path.stat()
    except OSError:
        return None  # it is gone, or whoever opens it says what is wrong
    return known.st_ino, known.st_size, known.st_mtime_ns


def name_of(source: Any) -> str | None:
    """Return what a path calls its file, without endings; None of what is no path."""
    path = source.name if isinstance(source, Piped) else source
    return Path(path).name.split(".")[0] if isinstance(path, str | os.PathLike) else None


class _Counted(io.FileIO):
    """A file that tells a bar how many of its bytes were read."""

    def __init__(self, path: Path, bar: Steps) -> None:
        super().__init__(path)
        self.bar = bar

    def readinto(self, buffer: Any) -> int | None:
        """Read the next bytes."""
        number = super().readinto(buffer)
        self.bar.to(self.tell())
        return number


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, one that ends in .gz as what was compressed; of one that takes long there is a bar."""
    with steps(path.stat().st_size, f"reading {path.name}", "B") as bar:
        with io.BufferedReader(_Counted(path, bar), _BUFFER) as stored:
            if path.suffix.lower() != ".gz":
                yield stored
            else:
                with gzip.GzipFile(fileobj=stored) as stream:
                    yield stream  # type: ignore[misc]


def read_text(path: Path, problems: Problems, parse: Callable[[IO[str]], Any]) -> Any:
    """Run a parser over a text file; whatever is wrong with the bytes becomes a problem.

    Raises
    ------
    InputError : the file cannot be read, is damaged, or is no UTF-8.
    """
    try:
        with unchanged(path, problems), open_bytes(path) as raw:
            with io.TextIOWrapper(raw, "utf-8-sig", newline="") as stream:
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
    with contextlib.suppress(EOFError, OSError, zlib.error), open_bytes(path) as raw:
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


def read_json(path: Path, problems: Problems) -> Any:
    """Return the content of a JSON file, or raise what is wrong with it."""
    value, _ = parse_json(read_text(path, problems, lambda stream: stream.read()), problems, None)
    problems.raise_any()
    return value


def parse_json(text: str, problems: Problems, line: int | None) -> tuple[Any, bool]:
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


class _Duplicate(ValueError):
    """A JSON object names a key twice."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        repeated_key = collections.Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _Duplicate(f"an object has the key {shorten(repeated_key)!r} twice")
    return record
