"""Columns of the tables of pages: the two ends of an interval are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def are_ends(low: Any, high: Any) -> bool:
    """Return whether two columns are the ends of an interval, by their names."""
    return str(low.name).endswith(" from") and str(high.name).strip() == "to"


def in_one(columns: Sequence[Any], texts: Sequence[Any], numeric: Sequence[bool]) -> tuple[list[Any], ...]:
    """Return columns, their texts and whether they are numbers, the two ends of an interval in one: a phone parts them.

    It sorts by the lower end.
    """
    found: tuple[list[Any], ...] = ([], [], [])
    place = 0
    while place < len(columns):
        column, own = columns[place], texts[place]
        if place + 1 < len(columns) and are_ends(column, columns[place + 1]):
            column = column.rename(str(column.name).removesuffix(" from").removesuffix(","))
            own = [low if {low, high} <= {"", "–"} else f"{low.removesuffix(' %')} to {high}"
                   for low, high in zip(own, texts[place + 1], strict=True)]  # fmt: skip
            place += 1
        for kept, one in zip(found, (column, own, numeric[place]), strict=True):
            kept.append(one)
        place += 1
    return found
