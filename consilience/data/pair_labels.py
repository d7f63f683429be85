"""Labels of pairs of records: what a person says of two records, whether they are of one entity."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.data.cells import Table
from consilience.data.codes import recode
from consilience.data.columns import Choose
from consilience.data.constraints import ANSWERS
from consilience.data.problems import Problems
from consilience.data.tables import read_table
from consilience.errors import UnsupportedRequest

_PAIR = ("record_a", "record_b")
_OPTIONAL = ("error", "sampled", "weight")
_YES = ("true", "yes", "1")


class PairLabels(NamedTuple):
    """Answers to pairs of records, a row each; rows without an answer are left out.

    Parameters
    ----------
    first, second : int32, shape ``(label,)``; codes of records, the first one lower.
    together : bool, shape ``(label,)``; whether the answer is that they are one entity.
    error : float64, shape ``(label,)``; how probably the answer is wrong, from 0 (sure) to less than 0.5.
    sampled : bool, shape ``(label,)``; whether the pair was drawn at random, whatever its probability; ``None`` where
        the table does not say.
    weight : float64, shape ``(label,)``; for how many candidates the pair stands.
    """

    first: np.ndarray
    second: np.ndarray
    together: np.ndarray
    error: np.ndarray
    sampled: np.ndarray | None
    weight: np.ndarray

    @property
    def log_odds(self) -> np.ndarray:
        """How much more probable the answer is of one entity than of two, ln((1 - e) / e) or less that: ±∞ if sure."""
        with np.errstate(divide="ignore"):
            return np.where(self.together, 1, -1) * np.log((1 - self.error) / self.error)

    def check_as_test(self, used: np.ndarray | None) -> None:
        """Refuse labels that say nothing of how right a fit is: used by it, or all chosen because it was uncertain.

        Parameters
        ----------
        used : shape ``(pair, 2)``; the pairs whose labels the fit used, the lower code first; ``None`` for none.

        Raises
        ------
        UnsupportedRequest : they are such; or there is no label.
        """
        if not len(self.first):
            raise UnsupportedRequest("no pair has an answer yet; fill in the column answer")
        if self.sampled is not None and not self.sampled.any():
            raise UnsupportedRequest(
                "all of these labels are of pairs that were chosen because they were uncertain, which say nothing of "
                "the others; answer the rows of review() that are sampled, too"
            )
        known = set() if used is None else set(map(tuple, used.tolist()))
        if number := sum(pair in known for pair in zip(self.first.tolist(), self.second.tolist(), strict=True)):
            raise UnsupportedRequest(
                f"the fit used {number} of these labels, and cannot be tested with them; ask a fit without labels, or "
                "give other ones"
            )


def read_pair_labels(source: Any, records: Sequence[str], sources: Sequence[str]) -> PairLabels:
    """Read what a person says of pairs of records.

    Parameters
    ----------
    source : a table with the columns ``record_a`` and ``record_b``, ids of records, and ``answer``: together, same,
        must or 1; apart, different, cannot or 0. A row with an empty answer is left out. A column ``error`` says how
        probably an answer is wrong (0, sure, where it is empty); ``sampled`` and ``weight`` are those of ``review()``.
    records, sources : ids of all records, and names of the files that they come from.

    Raises
    ------
    InputError : with every problem: ids that are no records, other answers, errors outside of [0, 0.5), and sure
        answers that contradict each other, with the rows that do.
    """
    table = read_table(source, named_columns((*_PAIR, "answer"), _OPTIONAL))
    first, second = pair_codes(table, records, sources)
    code, texts = table.texts("answer")
    together = np.array([*(ANSWERS.get(text.casefold(), -1) for text in texts), -2], np.int32)[code]
    table.flag(together == -1, "answer", "the answer is neither 'same' nor 'different'", "write one of the two")
    error = _numbers(table, "error", 0.0)
    remedy = "write how probably the answer is wrong: 0 for a sure one, and less than 0.5"
    _flag(table, (error < 0) | (error >= 0.5), "error", "the error is not in [0, 0.5)", remedy)
    weight = _numbers(table, "weight", 1.0)
    _flag(table, weight <= 0, "weight", "the weight is not above 0", "leave the weights of review() as they are")
    table.problems.raise_any()
    _check_agreement(table, first, second, np.where(error == 0, together, -2), records)
    sampled = None
    if "sampled" in table.columns:
        code, texts = table.texts("sampled")
        sampled = np.array([*(text.casefold() in _YES for text in texts), False])[code]
    answered = together >= 0
    return PairLabels(
        np.minimum(first, second)[answered], np.maximum(first, second)[answered], together[answered] == 1,
        error[answered], None if sampled is None else sampled[answered], weight[answered],
    )  # fmt: skip


def named_columns(required: Sequence[str], optional: Sequence[str] = ()) -> Choose:
    """Return a function that finds columns of just these names among those of a table."""

    def choose(names: list[str], problems: Problems) -> dict[str, int]:
        folded = [name.casefold() for name in names]
        for role in required:
            if folded.count(role) != 1:
                listed = ", ".join(map(repr, names)) or "none"
                also = "" if len(required) == len(_PAIR) else f", and the others to {', '.join(required[len(_PAIR):])}"
                remedy = f"rename the two columns with ids of records to record_a and record_b{also}"
                problems.add(f"there is no column '{role}'; there are {listed}", remedy, column=role)
        problems.raise_any()
        return {role: folded.index(role) for role in (*required, *optional) if role in folded}

    return choose


def pair_codes(table: Table, records: Sequence[str], sources: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of the records of each row; what is wrong with them is added to the problems of the table."""
    sides = []
    for role in _PAIR:
        codes, names = table.texts(role, required=True)
        known = np.append(recode(np.arange(len(names)), names, records), -1)
        unknown = [name for name, place in zip(names, known[:-1].tolist(), strict=True) if place < 0]
        remedy = "correct the id"
        if shared := _of_several_sources(unknown, records, sources):
            remedy = f"sources share ids: write {shared!r}, as the table of entities has it, or correct the id"
        table.flag((known[codes] < 0) & (codes >= 0), role, "there is no such record", remedy)
        sides.append(known[codes])
    same = (sides[0] == sides[1]) & (sides[0] >= 0)
    table.flag(same, "record_b", "a record cannot be linked to itself", "delete the row")
    return sides[0], sides[1]


def _of_several_sources(unknown: Sequence[str], records: Sequence[str], sources: Sequence[str]) -> str:
    """Return how the first of these ids is written that several sources have; empty where there is none."""
    known = set(records) if unknown else set()
    written = (f"{source}:{name}" for name in unknown for source in sources)
    return next((name for name in written if name in known), "")


def _numbers(table: Table, role: str, default: float) -> np.ndarray:
    """Return the numbers of an optional column; the default where there is none."""
    if role not in table.columns:
        return np.full(table.num_rows, default)
    return np.where(table.empty(role), default, table.numbers(role))


def _flag(table: Table, rows: np.ndarray, role: str, message: str, remedy: str) -> None:
    """Note a problem with an optional column; where there is none, no row has it."""
    if rows.any():
        table.flag(rows, role, message, remedy)


def _check_agreement(
    table: Table, first: np.ndarray, second: np.ndarray, answer: np.ndarray, records: Sequence[str]
) -> None:
    """Refuse sure answers that contradict each other, with the chain of rows that does.

    Parameters
    ----------
    answer : 1 for the same, 0 for different, another number where it is not sure or there is none.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    same, different = np.flatnonzero(answer == 1), np.flatnonzero(answer == 0)
    number = len(records)
    graph = coo_array((np.ones(len(same), np.int8), (first[same], second[same])), shape=(number, number))
    part = connected_components(graph, directed=False)[1]
    for row in different[part[first[different]] == part[second[different]]].tolist():
        chain = _chain(first, second, same, int(first[row]), int(second[row]))
        steps = ", ".join(f"{table.place(one)} ({records[first[one]]} – {records[second[one]]})" for one in chain)
        table.problems.add(
            f"{records[first[row]]} and {records[second[row]]} are said to be different, and the same by {steps}",
            "correct one of these answers, or give those that may be wrong an error", row=table.place(row),
            column="answer",
        )  # fmt: skip
    table.problems.raise_any()


def _chain(first: np.ndarray, second: np.ndarray, same: np.ndarray, start: int, end: int) -> list[int]:
    """Return the shortest chain of rows from one record to another."""
    beside: dict[int, list[tuple[int, int]]] = {}
    for row in same.tolist():
        one, other = int(first[row]), int(second[row])
        beside.setdefault(one, []).append((other, row))
        beside.setdefault(other, []).append((one, row))
    came: dict[int, tuple[int, int]] = {start: (start, -1)}
    ahead = deque([start])
    while end not in came:
        one = ahead.popleft()
        for other, row in beside[one]:
            if other not in came:
                came[other] = (one, row)
                ahead.append(other)
    rows, one = [], end
    while one != start:
        one, row = came[one]
        rows.append(row)
    return rows[::-1]
