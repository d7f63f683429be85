"""Sentences of the demonstration that depend on what its studies found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from consilience.printing import percent
from consilience.rounding import probability


def in_turn(numbers: Mapping[float, int]) -> str:
    """Say how many grades would be certain at each dependence."""
    words = {value: f"{value:g}{'' if value else ' (independent looks)'}" for value in numbers}
    *first, last = (f"{number} at {words[value]}" for value, number in numbers.items())
    return f"it would be {', '.join(first)} and {last}"


def who_is_first(table: Any, columns: Sequence[str]) -> str:
    """Say in which cases the system with the higher score is another one by the other of two weights."""
    program, equation = (table.loc[table.groupby("case")[of].idxmax()].set_index("case")["system"] for of in columns)
    changed = program.index[program != equation].tolist()
    if not changed:
        return f"Here they would not: in each of {len(program)} cases the same of two systems is ahead by both weights."
    return f"Here they would in {len(changed)} of {len(program)} cases: {', '.join(changed)}."


def sure_of_another(labels: Sequence[str], votes: np.ndarray, table: Any, most: str) -> str:
    """Say where most votes are for another condition than the one that is on top in truth, and how sure it becomes.

    Parameters
    ----------
    labels : of the conditions.
    votes : of each row of the table, shape ``(row, condition)``.
    table : with the columns ``example``, ``truly on top`` and the certainty at each reliability.
    most : the column of the largest reliability.
    """
    wrong = [
        f"{row['example'].partition(' ')[0]} most say {label}, which is given {probability(row[most])} at {most}, but "
        f"{row['truly on top']} is the most plausible in truth"
        for row, label in ((row, _leader(labels, own)) for (_, row), own in zip(table.iterrows(), votes, strict=True))
        if label not in ("", row["truly on top"])
    ]
    return f"Trust makes sure and not right: in example {'; in '.join(wrong)}. " if wrong else ""


def _leader(labels: Sequence[str], votes: np.ndarray) -> str:
    """Return the condition with most votes; nothing where several have as many."""
    return labels[int(votes.argmax())] if (votes == votes.max()).sum() == 1 else ""


def truth_among(known: int, count: Any) -> str:
    """Say where the true number of people lies in its interval, and what one data set does not show."""
    low, high = count.interval
    more, fewer = (count.draws > known).mean(), (count.draws < known).mean()
    apart = "more people than in truth: too few links are found" if more > fewer else "fewer people than in truth"
    return (
        f"The true number lies {'inside' if low <= known <= high else 'outside'} the interval, but "
        f"{percent(max(more, fewer))} of the draws have {apart}. One data set does not show whether such intervals "
        "hold as often as they say."
    )
