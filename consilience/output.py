"""The one way to the disk: a file that is written is whole or absent, and replaces none that Consilience did not make.

Every file that a user asks for goes through `write_output` or, where several belong together, `write_folder`; saved
fits and checkpoints are written file by file with it. What is refused, in this order: a path without its folder; an
input of the same command, by whatever name; a link, a device, a FIFO, a folder; a file that exists and does not bear
our mark, unless ``force=True``. `check_output` asks the same before any work is done.

``-`` is standard output.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from consilience._version import __version__
from consilience.errors import OutputRefused
from consilience.notes import Remedy

Write = Callable[[BinaryIO], Any]

STANDARD_OUTPUT = "-"
GENERATOR = f"consilience {__version__}"
"""What our pages and saved fits say of who made them."""

_MARK = re.compile(rb'<!DOCTYPE html>.*<meta name="generator" content="consilience ', re.DOTALL)
_MOST_OF_HEAD = 1024  # bytes of a page that hold its mark
_PARTIAL = re.compile(r"\.(.+)\.[0-9a-f]{8}\.part", re.DOTALL)
# Of 60 characters, at most four bytes each, so that the name with its ending has no more than the usual 255.
_MOST_OF_NAME = 60

_standard_output: ContextVar[TextIO | None] = ContextVar("standard_output", default=None)


def write_output(
    path: str | os.PathLike, write: Write, *, force: bool = False, inputs: Iterable[str | os.PathLike] = ()
) -> Path:
    """Write a file, which appears when it is complete.

    Parameters
    ----------
    path : of the file; ``-`` is standard output.
    write : is given the binary stream to write to.
    force : replace a file that exists, whoever made it.
    inputs : files, and folders with all that is in them, that must stay as they are, also with ``force``.

    Returns
    -------
    The path.

    Raises
    ------
    OutputRefused : see the module; nothing was written.
    OSError : the system could not write; what was there before is still there.
    """
    if os.fspath(path) == STANDARD_OUTPUT:
        _write_to_standard_output(write)
    else:
        _write_all({Path(path): write}, force, inputs)
    return Path(path)


def write_folder(
    folder: str | os.PathLike, files: Mapping[str, Write], *, force: bool = False,
    inputs: Iterable[str | os.PathLike] = (),
) -> dict[str, Path]:  # fmt: skip
    """Write files to a folder, which is made where there is none; they get their names when all are complete.

    Parameters
    ----------
    folder : other files in it stay.
    files : name of each file, and what writes it to a binary stream.
    force, inputs : see `write_output`.

    Returns
    -------
    The path of each file, by its name.

    Raises
    ------
    OutputRefused : see the module; nothing was written.
    OSError : the system could not write.
    """
    check_folder(folder)
    paths = {name: Path(folder) / name for name in files}
    made = not Path(folder).exists()
    Path(folder).mkdir(exist_ok=True)
    try:
        _write_all({paths[name]: write for name, write in files.items()}, force, inputs)
    except BaseException:
        if made:
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
        raise
    return paths


def check_output(path: str | os.PathLike, *, force: bool = False, inputs: Iterable[str | os.PathLike] = ()) -> None:
    """Raise what `write_output` would raise of a path, before the work that goes into the file."""
    if os.fspath(path) == STANDARD_OUTPUT:
        return
    path = Path(path)
    found = _found(path)
    if found is None:
        return
    if is_input(path, inputs):
        raise OutputRefused(f"{path} is an input of this command; give another path")
    if not stat.S_ISREG(found.st_mode):
        raise OutputRefused(f"{path} is not a regular file; give another path, or - for standard output")
    if not (force or _is_our_page(path)):
        raise _exists(path)


def check_folder(folder: str | os.PathLike) -> None:
    """Raise where a folder can neither be made nor written to: its own folder is missing, or it is something else.

    Raises
    ------
    OutputRefused : with the reason.
    """
    if os.fspath(folder) == STANDARD_OUTPUT:
        raise OutputRefused("a folder cannot go to standard output; give the path of a folder")
    found = _found(Path(folder))
    if found is not None and not stat.S_ISDIR(found.st_mode):
        raise OutputRefused(f"{folder} is not a folder; give another path")


def made_for(name: str) -> str | None:
    """Return of which file a name is that of a part which a kill left behind; None for all other names."""
    match = _PARTIAL.fullmatch(name)
    return match and match[1]


@contextlib.contextmanager
def text_stream(stream: BinaryIO) -> Iterator[TextIO]:
    """Let text, its line ends kept, go to a binary stream as UTF-8."""
    text = io.TextIOWrapper(stream, "utf-8", newline="")
    yield text
    text.detach()  # flushed, and not closed: the stream is another's


@contextlib.contextmanager
def standard_output_for_files() -> Iterator[None]:
    """Keep standard output for what goes to ``-``; what is printed meanwhile goes to standard error."""
    before = _standard_output.set(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _standard_output.reset(before)


def _write_to_standard_output(write: Write) -> None:
    text = _standard_output.get() or sys.stdout
    text.flush()
    stream = getattr(text, "buffer", None)
    if stream is None:  # in a notebook, where there is but text
        stream = io.BytesIO()
        write(stream)
        text.write(stream.getvalue().decode())
    else:
        write(stream)
        stream.flush()


def _write_all(contents: Mapping[Path, Write], force: bool, inputs: Iterable[str | os.PathLike]) -> None:
    """Write all files under other names beside their own, then give all of them their names."""
    inputs = tuple(inputs)
    for path in contents:
        check_output(path, force=force, inputs=inputs)
    partial = {
        path: path.with_name(f".{path.name[:_MOST_OF_NAME]}.{secrets.token_hex(4)}.part") for path in contents
    }
    try:
        for path, write in contents.items():
            with open(partial[path], "xb") as stream:  # new, and no link, with the permissions that the umask leaves
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
        for path in contents:  # again: writing may have taken long
            check_output(path, force=force, inputs=inputs)
        for path, written in partial.items():
            _give_name(written, path, force)
    finally:
        for written in partial.values():
            written.unlink(missing_ok=True)
    for folder in {path.parent for path in contents}:
        _flush_folder(folder)


def _give_name(written: Path, path: Path, force: bool) -> None:
    """Give a complete file its name; where no file may be replaced, in a way that fails where somebody was quicker."""
    if force or path.exists():  # a page of ours
        os.replace(written, path)
        return
    try:
        try:
            os.link(written, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            open(path, "xb").close()
            os.replace(written, path)
    except FileExistsError:
        raise _exists(path) from None


def _found(path: Path) -> os.stat_result | None:
    """Return what is at a path, links not followed; refuse a path where nothing can be."""
    if "\0" in str(path):
        raise OutputRefused(f"{str(path)!r} has a NUL character; give another path")
    if not path.parent.is_dir():
        raise OutputRefused(f"{path} cannot be written, because {path.parent} is not a folder; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OutputRefused(f"{path} cannot be written, because {path.parent} is not yours to write to")
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputRefused(f"{path} cannot be written ({error.strerror}); give another path") from None


def is_input(path: str | os.PathLike, inputs: Iterable[str | os.PathLike]) -> bool:
    """Return whether a path leads to one of the inputs, or into it: by its own name, a link, or another name."""
    parents = Path(os.path.realpath(path)).parents  # of a loop of links, too, which `resolve` refuses
    for one in inputs:
        with contextlib.suppress(OSError, ValueError):
            if os.path.samefile(path, one) or (os.path.isdir(one) and Path(os.path.realpath(one)) in parents):
                return True
    return False


def _is_our_page(path: Path) -> bool:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return _MARK.match(file.read(_MOST_OF_HEAD)) is not None
    return False


def _flush_folder(folder: Path) -> None:
    """Let the new names last."""
    with contextlib.suppress(PermissionError):  # Windows opens no folders, and makes renames last by itself
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _exists(path: str | os.PathLike) -> OutputRefused:
    return OutputRefused(f"{path} exists; give another path, or {{force}} to replace it", Remedy("force", True))
