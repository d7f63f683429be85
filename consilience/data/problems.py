"""What is wrong with what a user brings: collected, to be raised together, or said in warnings."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from consilience.errors import InputError, InputProblem, InputWarning, UnknownName
from consilience.notes import Remedy

KEPT_PER_KIND = 1000  # problem records kept for one kind; the rest is counted


@dataclass
class Problems:
    """Collects what is wrong with one input, to be raised together.

    Parameters
    ----------
    file : what to call the input: its path, or "the data frame".
    """

    file: str | None
    found: list[InputProblem] = field(default_factory=list)

    def add(
        self, message: str, remedy: str, *remedies: Remedy, row: str | None = None, column: str | None = None,
        value: object = None,
    ) -> None:  # fmt: skip
        """Note one problem; ``remedies`` are the arguments that its texts name in braces."""
        self.found.append(InputProblem(message, remedy, self.file, row, column, _shown(value), remedies))

    def fail(self, message: str, remedy: str, *remedies: Remedy, **where: Any) -> InputError:
        """Note a problem after which reading cannot go on; the caller raises what this returns."""
        self.add(message, remedy, *remedies, **where)
        return InputError(self.found)

    def add_each(
        self, wrong: np.ndarray, message: str, remedy: str, *remedies: Remedy, column: str | None = None,
        place: Callable[[int], str] = "position {}".format, values: Sequence[Any] | np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Note the same problem wherever it is marked, with the place and the value of each, up to `KEPT_PER_KIND`."""
        for index in np.flatnonzero(wrong)[:KEPT_PER_KIND].tolist():
            value = None if values is None else values[index]
            self.add(message, remedy, *remedies, row=place(index), column=column, value=value)

    def raise_any(self) -> None:
        """Raise `InputError` with all problems, if there are any."""
        if self.found:
            raise InputError(self.found)


def _shown(value: object) -> str | None:
    """Return a value as a message can print it."""
    if value is None:
        return None
    try:
        return shorten(str(value).encode("utf-8", "backslashreplace").decode())
    except ValueError:
        return "an integer of thousands of digits"


def shorten(text: str, longest: int = 80) -> str:
    """Return a text, the end of a long one left out."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def first_of(texts: Iterable[str], most: int = 10) -> str:
    """Return the first few texts in a line, and whether there are more."""
    listed = list(itertools.islice(texts, most + 1))
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")


def counted(what: str, names: Sequence[str]) -> str:
    """Return how many things of this kind there are, and the names of the first few."""
    return f"{len(names):,} {what}: {first_of(map(repr, names))}"


def check_option(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise `UnknownName` unless an option has one of its documented values."""
    if value not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise UnknownName(f"{{{name}}} is not an option; pass one of {listed}", Remedy(name, value))


def warn_input(text: str, *remedies: Remedy) -> None:
    """Warn that a documented policy repaired or left out something, at the line that called the library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("consilience."):
        frame, level = frame.f_back, level + 1
    warnings.warn(InputWarning(text, *remedies), stacklevel=level)
