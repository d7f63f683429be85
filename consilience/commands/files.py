"""What a command reads and writes, by its arguments: outputs are checked before any work."""

from __future__ import annotations

import contextlib
import sys
from argparse import Namespace as Arguments
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from consilience.errors import UnsupportedRequest
from consilience.inference.run_folder import ARRAYS, FIT_TEXT, fit_folder, holds_fit
from consilience.output import STANDARD_OUTPUT, check_output, standard_output_for_files
from consilience.piped import STANDARD_INPUT, kept_inputs
from consilience.printing import write_columns

# Arguments that name files to read; some may name public data in their place.
_INPUTS = (
    "file", "files", "folder", "predictions", "key", "response", "template", "profiles", "features", "classes",
    "class_groups", "pairs", "labels",
)  # fmt: skip


def inputs_of(arguments: Arguments) -> list[Path]:
    """Return the files and folders that a command reads; an output must replace none of them."""
    inputs: list[Path] = []
    for one in map(Path, set(_named(arguments)) - {STANDARD_INPUT}):
        inputs += _files_of_fit(fit_folder(one)) if holds_fit(fit_folder(one)) else [one]
    return inputs


def _named(arguments: Arguments) -> list[str]:
    """Return the inputs as they were given."""
    given = [getattr(arguments, name, None) or () for name in _INPUTS]
    return [one for each in given for one in ([each] if isinstance(each, str) else each)]


def _files_of_fit(folder: Path) -> list[Path]:
    """Return the files of a fit; the pages and tables beside them are none of them."""
    return [file for file in folder.iterdir() if file.name == FIT_TEXT or ARRAYS.fullmatch(file.name)]


def write_csv(table: Any, arguments: Arguments) -> None:
    """Write columns, or a data frame, to the CSV file that is asked for, if one is."""
    if arguments.csv:
        write_columns(table, arguments.csv, force=arguments.force)


@contextlib.contextmanager
def piped_inputs(arguments: Arguments) -> Iterator[None]:
    """Let ``-``, if there is one, be read from standard input, and FIFOs once, as CSV or JSON lines.

    Raises
    ------
    UnsupportedRequest : where several are: what was read is gone.
    """
    number = _named(arguments).count(STANDARD_INPUT)
    if number > 1:
        raise UnsupportedRequest("- is standard input, which holds one table; give files in the place of the others")
    with kept_inputs(sys.stdin.buffer if number else None):
        yield


@contextlib.contextmanager
def checked_outputs(arguments: Arguments) -> Iterator[None]:
    """Check the files that a command is to write, before its work; let one of them go to standard output.

    What may be a folder is checked by the command itself.

    Raises
    ------
    OutputRefused : where one must not be written.
    UnsupportedRequest : where two are the same.
    """
    table, other = getattr(arguments, "csv", None), getattr(arguments, "output", None)
    given = [output for output in (table, other) if output is not None]
    if len(set(given)) < len(given):
        raise UnsupportedRequest(f"{given[0]} cannot hold two outputs; give each its own path")
    for output in given if getattr(arguments, "output_is_file", False) else given[: table is not None]:
        check_output(output, force=arguments.force, inputs=inputs_of(arguments))
    with standard_output_for_files() if STANDARD_OUTPUT in given else contextlib.nullcontext():
        yield
