"""What a fit, an error or a warning says: a text with remedies, phrased by whoever shows it.

A remedy stands in the text by the name of its argument, in braces. Python reads it as an argument, the command line as
a flag:

>>> note = Note(Level.note, "the prior is flat; {diagonal} expects right labels", (Remedy("diagonal", 3),))
>>> note.words()
'the prior is flat; diagonal=3 expects right labels'
>>> note.words("flags")
'the prior is flat; --diagonal 3 expects right labels'
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

__all__ = ["Level", "Note", "Remedy", "Voice", "phrased"]

Voice = Literal["python", "flags"]


class Level(IntEnum):
    """How grave it is.

    A ``note`` is what a reader should know, and no fault of the fit. A ``warning`` is said as one, by `fit` and on the
    page, and changes no exit code. An ``error`` says that the fit is poor: red and first on its page, a
    `DiagnosticWarning` of `fit`, and exit code 3 of the command. What the diagnostics of a run find poor, and what a
    member finds wrong with an outcome, is an error.
    """

    note = 0
    warning = 1
    error = 2


@dataclass(frozen=True)
class Remedy:
    """An argument that helps, as a text may suggest it.

    Parameters
    ----------
    argument : its name in Python; that of the flag is the same, with dashes.
    value : what to give; left out where the user chooses. A dict may have ``...`` for values that the user chooses.
    """

    argument: str
    value: Any = ...

    def words(self, voice: Voice = "python") -> str:
        """Return the remedy as it is typed in Python, or in the shell."""
        if voice == "python":
            return f"{self.argument}={'' if self.value is ... else _python(self.value)}"
        flag = f"--{self.argument.replace('_', '-')}"
        return flag if self.value is ... or self.value is True else f"{flag} {_typed(self.value)}"


IN_DETAILS = "details"
"""What a note is about that is for those who ask how it was computed."""


@dataclass(frozen=True)
class Note:
    """One thing that a fit says.

    Parameters
    ----------
    level : how grave it is.
    text : a sentence without capital and full stop, with remedies in it by name: ``{diagonal}``.
    remedies : the arguments in the text. Where it names one several times, its remedies take turns, in order.
    title : of pages: a heading. With one, a note too is a box of its own.
    model : another one that has not this fault; pages offer to fit it.
    about : what it is about, if several may say of one cause what follows: pages make one box of these; `IN_DETAILS`
        of a note that pages have in the section on what was run alone.
    """

    level: Level
    text: str
    remedies: tuple[Remedy, ...] = ()
    title: str = ""
    model: str = ""
    about: str = ""

    def words(self, voice: Voice = "python") -> str:
        """Return the text with its remedies as arguments of Python, or as flags of the command."""
        return phrased(self.text, self.remedies, voice)

    @property
    def heading(self) -> str:
        """The title; of a note without one the words in front of the first colon."""
        words = self.words().partition(":")[0]
        return self.title or f"{words[:1].upper()}{words[1:]}."

    def __str__(self) -> str:
        return self.words()


def phrased(text: str, remedies: Iterable[Remedy], voice: Voice = "python") -> str:
    """Put remedies into a text; braces that name none of them, such as those of a user's own data, stay."""
    words: dict[str, list[str]] = {}
    for remedy in remedies:
        words.setdefault(remedy.argument, []).append(remedy.words(voice))

    def put(found: re.Match[str]) -> str:
        known = words.get(found[1])
        if known is None:
            return found[0]
        return known.pop(0) if len(known) > 1 else known[0]

    return re.sub(r"\{(\w+)\}", put, text)


def _python(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{key!r}: {'…' if own is ... else repr(own)}" for key, own in value.items())
        return f"{{{pairs}}}"
    return repr(value)


def _typed(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={'…' if own is ... else shlex.quote(str(own))}" for key, own in value.items())
    if isinstance(value, list | tuple):
        return shlex.quote(",".join(map(str, value)))
    return shlex.quote(str(value))
