"""What is done with rows of a table that are empty, unknown or repeated: refused, or left out with a warning.

Every option of a reader that says so, such as ``missing``, is carried out here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from consilience.data.cells import Table
from consilience.data.codes import repeated, written_alike
from consilience.data.problems import first_of, warn_input
from consilience.notes import Remedy


def flag_or_warn(
    table: Table, rows: np.ndarray, role: str, policy: str, message: str, remedy: str, done: str, *remedies: Remedy
) -> None:
    """Note the same problem for every row of a mask where the policy is "error"; else warn how many there are."""
    if policy == "error":
        table.flag(rows, role, message, remedy, *remedies)
    elif rows.any():
        warn_input(f"{rows.sum():,} {done}", *remedies)


def filled_rows(table: Table, role: str, missing: str) -> np.ndarray:
    """Apply the policy for empty cells ("error" or "drop") and return which rows have a value."""
    empty = table.empty(role)
    flag_or_warn(
        table, empty, role, missing, f"the {role} is empty", "fill it in, or pass {missing} to leave such rows out",
        f"rows without {'an' if role[0] in 'aeiou' else 'a'} {role} were left out ({{missing}})",
        Remedy("missing", "drop"),
    )  # fmt: skip
    return ~empty


def known_rows(table: Table, role: str, codes: np.ndarray, unknown: str, closed: str) -> np.ndarray:
    """Apply the policy for texts outside of a closed list ("error" or "drop") and return which rows have a code.

    Parameters
    ----------
    codes : as `consilience.data.codes.recode` returns them: -2 stands for a text that is not in the list.
    closed : the argument that is the list.
    """
    flag_or_warn(
        table, codes == -2, role, unknown, f"this {role} is not in {{{closed}}}",
        "correct it, add it to the list, or pass {unknown} to leave such rows out",
        f"rows with a {role} outside {{{closed}}} were left out ({{unknown}})",
        Remedy(closed), Remedy("unknown", "drop"),
    )  # fmt: skip
    return codes >= 0


def keep_repeated(
    table: Table, usable: np.ndarray, codes: tuple[np.ndarray, ...], duplicates: str, what: str
) -> np.ndarray:
    """Apply the policy for repeated rows and return which rows stay.

    Parameters
    ----------
    table : for messages.
    usable : bool, shape ``(row,)``; only these rows are looked at.
    codes : what must not repeat together, each of shape ``(row,)``.
    duplicates : "keep" (warn), "first" (warn and drop) or "error".
    what : what ``codes`` stand for, for the message.
    """
    for column in codes:
        usable = usable & (column >= 0)
    again = np.zeros(table.num_rows, bool)
    again[usable] = repeated(*(column if usable.all() else column[usable] for column in codes))
    if duplicates == "error":
        remedy, message = "delete all but one row, or pass {duplicates}", f"an earlier row has the same {what}"
        table.flag(again, next(iter(table.columns)), message, remedy, Remedy("duplicates", "first"))
    elif again.any() and not table.problems.found:
        done = "all were counted" if duplicates == "keep" else "the first of each was kept"
        text = f"{again.sum():,} rows have the same {what} as an earlier row; {done} ({{duplicates}})"
        warn_input(text, Remedy("duplicates", duplicates))
    return np.ones(table.num_rows, bool) if duplicates == "keep" else ~again


def check_writing(table: Table, labels: list[str], golds: list[str]) -> None:
    """Refuse gold labels that annotators gave in other writing alone; warn of labels that they gave in both."""
    warn_of_writing(labels)
    given = set(labels)
    for name, own in written_alike([*labels, *(gold for gold in golds if gold not in given)]).items():
        if name not in given:
            message = f"no annotator gave this gold label; did you mean {own!r}?"
            remedy = "write it as the annotators do, or pass {labels} with both if they are two"
            table.problems.add(message, remedy, Remedy("labels"), column=table.columns["gold"].name, value=name)


def warn_of_writing(labels: Iterable[str], known: Collection[str] = ()) -> None:
    """Warn of labels that differ in case and blanks alone, other than pairs that are known."""
    pairs = [f"{own!r} and {name!r}" for name, own in written_alike(labels).items() if not {name, own} <= set(known)]
    if pairs:
        warn_input(f"labels that differ in case or blanks alone are counted as different ones: {first_of(pairs)}")


def require_rows(table: Table, keep: np.ndarray) -> None:
    """Raise unless a row is left."""
    if not keep.any():
        remedy = "check the file and the policies for missing and unknown values"
        raise table.problems.fail("no usable row is left", remedy)


def said_first(
    said: np.ndarray, known: np.ndarray, thing: np.ndarray, num_things: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what the first row about each thing says, and which later rows say something else.

    Parameters
    ----------
    said : whole numbers, shape ``(row,)``, or ``(part, row)`` where a row says several at once.
    known : bool, shape ``(row,)``; the others say nothing.
    thing : shape ``(row,)``; what the row is about.

    Returns
    -------
    first : int32, the shape of ``said`` with things in the place of rows; -1 where no row says anything.
    differs : bool, shape ``(row,)``.
    """
    rows = np.flatnonzero(known)
    first = np.full((*said.shape[:-1], num_things), -1, np.int32)
    # Written backwards, so that the first row has the last word.
    first[..., thing[rows[::-1]]] = said[..., rows[::-1]]
    differs = np.zeros(len(thing), bool)
    differs[rows] = np.atleast_2d(first[..., thing[rows]] != said[..., rows]).any(axis=0)
    return first, differs
