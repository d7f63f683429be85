"""Every error that Consilience raises on purpose, each with a name that a caller can catch.

A message says what came, what was expected and what to do about it. Arguments that help stand in it as remedies, by
name in braces: ``UnsupportedRequest("give {fields}", Remedy("fields"))``. ``str(error)`` speaks Python, and
``error.words("flags")`` the command line. Problems of a file are collected and shown together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from consilience.notes import Remedy, Voice, phrased

__all__ = [
    "ConsilienceDeprecationWarning",
    "ConsilienceError",
    "ConsilienceWarning",
    "DataUnavailable",
    "DiagnosticWarning",
    "InputError",
    "InputProblem",
    "InputWarning",
    "InvalidCheckpoint",
    "InvalidFit",
    "InvalidPrior",
    "NonFinite",
    "NotConjugate",
    "NotInstalled",
    "OutputRefused",
    "TooLarge",
    "UnknownName",
    "UnsupportedRequest",
    "WrongKind",
]

_SHOWN_PER_KIND, _SHOWN_OF_MORE = 10, 3  # more mostly have one cause
_NEAR, _PART = 0.65, 3  # likeness of a misspelt name; letters of a part that is taken for the whole


def meant(name: str, known: Iterable[str]) -> str:
    """Ask whether the nearest of the known names was meant; empty where none is near."""
    listed = list(known)
    close = difflib.get_close_matches(name, listed, n=1, cutoff=_NEAR)
    close = close or [one for one in listed if len(name) >= _PART and name in one]
    return f"did you mean {close[0]!r}?" if close else ""


def no_such(text: str, name: str, known: Iterable[str], listed: str) -> UnknownName:
    """Return the error of a name that does not exist: what was looked for, the nearest name, and all there are."""
    hint = meant(name, known)
    return UnknownName(f"{text}; {hint} {listed[0].upper()}{listed[1:]}" if hint else f"{text}; {listed}")


class _Spoken(Exception):
    """Base of what is raised or warned of with remedies.

    Parameters
    ----------
    text : the message, with remedies in it by name.
    remedies : the arguments in the text.
    """

    def __init__(self, text: object = "", *remedies: Remedy) -> None:
        super().__init__(text, *remedies)  # all of them, so that copies and pickles have them
        self.text = str(text)
        self.remedies = remedies

    def words(self, voice: Voice = "python") -> str:
        """Return the message with its remedies as arguments of Python, or as flags of the command."""
        return phrased(self.text, self.remedies, voice)

    def __str__(self) -> str:
        return self.words()


class ConsilienceError(_Spoken):
    """Base of every error raised on purpose; the command line prints it without a traceback."""


class ConsilienceWarning(_Spoken, UserWarning):
    """Base of every warning."""


class ConsilienceDeprecationWarning(ConsilienceWarning, FutureWarning):
    """A name was used that was given up; the text says which one took its place, and until when the old one works."""


class InputWarning(ConsilienceWarning):
    """Something in the input was repaired or left out, as a documented policy says; the text counts what."""


class DiagnosticWarning(ConsilienceWarning):
    """A fit finished but its diagnostics are poor; the text says in words what that means."""


@dataclass(frozen=True)
class InputProblem:
    """One thing that is wrong with an input.

    Parameters
    ----------
    message : what is wrong and what was expected.
    remedy : what to do about it.
    file : path or name of the table, where there is one.
    row : 1-based line of the file (the header is line 1), or the 0-based row of a data frame, as the reader states.
    column : name of the column.
    value : the offending value as it stood in the input.
    remedies : the arguments that the message and the remedy name in braces.
    """

    message: str
    remedy: str
    file: str | None = None
    row: int | str | None = None
    column: str | None = None
    value: str | None = None
    remedies: tuple[Remedy, ...] = ()

    def words(self, voice: Voice = "python") -> str:
        """Return the problem in a line, with its remedies as arguments of Python, or as flags of the command."""
        place = ", ".join(
            part
            for part in (
                self.file,
                None if self.row is None else (f"row {self.row}" if isinstance(self.row, int) else self.row),
                None if self.column is None else f"column '{self.column}'",
            )
            if part
        )
        value = "" if self.value is None else f" (value {self.value!r})"
        message, remedy = (phrased(text, self.remedies, voice) for text in (self.message, self.remedy))
        return f"{place + ': ' if place else ''}{message}{value}; {remedy}"

    def __str__(self) -> str:
        return self.words()


class InputError(ConsilienceError):
    """An input cannot be used; ``problems`` holds every problem that was found, not only the first.

    Parameters
    ----------
    problems : the problems, in the order of the file. Of more than ten of a kind three are printed; all are kept.
    """

    def __init__(self, problems: Sequence[InputProblem] | InputProblem) -> None:
        self.problems: tuple[InputProblem, ...] = (
            (problems,) if isinstance(problems, InputProblem) else tuple(problems)
        )
        super().__init__(problems)

    def words(self, voice: Voice = "python") -> str:
        """Return the problems, a line each."""
        kinds: dict[tuple[str | None, str, str], list[InputProblem]] = {}
        for problem in self.problems:
            kinds.setdefault((problem.column, problem.message, problem.remedy), []).append(problem)
        lines = [f"{len(self.problems)} problem{'s' if len(self.problems) != 1 else ''} in the input:"]
        for group in kinds.values():
            shown = group if len(group) <= _SHOWN_PER_KIND else group[:_SHOWN_OF_MORE]
            lines += [f"  {problem.words(voice)}" for problem in shown]
            if len(group) > len(shown):
                lines.append(f"  … and {len(group) - len(shown):,} more of this kind")
        return "\n".join(lines)


class UnknownName(ConsilienceError, LookupError):
    """A model, metric, method, option or data set of this name does not exist; the text lists those that do."""


class UnsupportedRequest(ConsilienceError):
    """The request is understood but this member, truth or data cannot answer it; the text says what can."""


class TooLarge(UnsupportedRequest):
    """The answer would take more numbers or steps than are looked at; the text says how many, and what is smaller."""


class NotInstalled(UnsupportedRequest):
    """The request needs a package that is not installed; the text says which one."""


class WrongKind(UnsupportedRequest):
    """The data, the truth or the system is of another kind than the one that is asked for; the text names both."""


class OutputRefused(UnsupportedRequest):
    """A file or folder is not written, because something is there that must stay, or nothing can be there."""


class InvalidPrior(ConsilienceError):
    """A prior does not fit its site: the text names the site, the event shape that came and the one expected."""


class NotConjugate(ConsilienceError):
    """The hand-derived update needs a conjugate prior at this site; `fit` then takes the generic path and says so."""


class NonFinite(ConsilienceError):
    """Numbers that are not finite where inference needs finite ones."""


class InvalidFit(ConsilienceError):
    """A saved fit is torn, corrupt, of another version, or belongs to other data; it is refused with the reason."""


class InvalidCheckpoint(ConsilienceError):
    """A checkpoint is torn, in use, of another run, or not to be gone on from; it is refused with the reason."""


class DataUnavailable(ConsilienceError):
    """A public data set is neither stored nor reachable, or its checksum differs."""
