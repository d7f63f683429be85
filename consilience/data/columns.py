"""The columns of tables, as contracts declare them: readers, commands, help and error texts follow from these."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from consilience.data.cells import is_missing
from consilience.data.problems import Problems, first_of, shorten, warn_input
from consilience.errors import InputError, UnknownName
from consilience.notes import Remedy

_HEADLESS = re.compile(r"\.(json|jsonl|ndjson|parquet)(\.gz)?$", re.IGNORECASE)  # files without a header line

Choose = Callable[[list[str], Problems], dict[str, int]]
"""Finds the wanted columns among the names of a table: role to position."""


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of the tables that a contract is read from.

    Parameters
    ----------
    name : what it is called; in any case, and in any place among the columns.
    aliases : what else it may be called, in lower case.
    codes : the dimension of the ids that stand in it, such as ``item``; empty where it holds something else.
    help : what stands in it.
    optional : whether a table may lack it.
    """

    name: str
    aliases: tuple[str, ...] = ()
    codes: str = ""
    help: str = ""
    optional: bool = False


ITEM = Column("item", ("task", "question", "example", "sample", "case"), "item", "what was judged")
ANNOTATOR = Column(
    "annotator", ("worker", "rater", "reader", "coder", "user", "performer"), "annotator", "who judged it"
)
CLASS = Column("class", ("condition", "diagnosis", "label", "agg_label"), "class", "the class")


def choose_columns(declared: Sequence[Column], columns: Mapping[str, str] | None = None) -> Choose:
    """Return a function that finds the columns of a contract among the names of a table.

    Parameters
    ----------
    declared : the columns; their names are the roles.
    columns : role to column name, for tables with other names than are declared.

    Raises
    ------
    UnknownName : a role is not among the columns.
    InputError : of the function that is returned, where a column is absent or several could be it.
    """
    given = {} if columns is None else dict(columns)
    known = {column.name: column for column in declared}
    required = [column.name for column in declared if not column.optional]
    unknown = [role for role in given if role not in known]
    if unknown:
        listed = ", ".join(map(repr, unknown))
        raise UnknownName(
            f"{{columns}} names {listed}; what can be named are the columns for {', '.join(known)}", Remedy("columns")
        )

    def choose(names: list[str], problems: Problems) -> dict[str, int]:
        chosen: dict[str, int] = {}
        for role in sorted(known, key=lambda role: role not in given):
            free = {position: name for position, name in enumerate(names) if position not in chosen.values()}
            found = _find(known[role], given.get(role), free)
            if len(found) == 1:
                chosen[role] = found[0]
            elif found:
                listed = ", ".join(repr(names[position]) for position in found)
                named = Remedy("columns", {role: ...})
                problems.add(f"several columns could be '{role}': {listed}", "pass {columns}", named, column=role)
            elif role in given and (other := _taken(given[role], names, chosen)):
                name = given[role]
                text = f"column '{name}' is given for '{other}' and for '{role}'; one column cannot have two roles"
                problems.add(text, "pass {columns}", Remedy("columns", {role: ...}), column=name)
            elif role in required or role in given:
                absent = _absent(role, given.get(role), names)
                remedy = f"pass {{columns}}, or {_naming(problems.file)} {','.join(required)}"
                problems.add(absent, remedy, Remedy("columns", {role: ...}), column=given.get(role, role))
        problems.raise_any()
        return chosen

    return choose


def _taken(given: str, names: list[str], chosen: Mapping[str, int]) -> str | None:
    """Return the role that the column of a given name has already; None where there is no such column."""
    wanted = str(given).strip().casefold()
    return next((role for role, position in chosen.items() if names[position].casefold() == wanted), None)


def _find(column: Column, given: str | None, names: dict[int, str]) -> list[int]:
    """Return the positions that fit best: the given name, the column's own name, or its aliases."""
    if given is not None:
        exact = [position for position, name in names.items() if name == str(given).strip()]
        return exact or [p for p, name in names.items() if name.casefold() == str(given).strip().casefold()]
    own = [position for position, name in names.items() if name.casefold() == column.name]
    return own or [position for position, name in names.items() if name.casefold() in column.aliases]


def _absent(role: str, given: str | None, names: list[str]) -> str:
    listed = first_of((repr(shorten(name)) for name in names), 12)
    wanted = f"'{role}'" if given is None else f"'{given}' (given for '{role}')"
    return f"there is no column {wanted}; the table has {listed or 'no columns'}"


def _naming(source: str | None) -> str:
    """Say how columns of a source get their names: in a header line, or otherwise."""
    headless = source is not None and (source.startswith("the ") or _HEADLESS.search(source))
    return "name the columns" if headless else "begin the file with a header line"


def all_columns(names: list[str], problems: Problems) -> dict[str, int]:
    """Choose every column that has a name, under its own name."""
    return {name: position for position, name in enumerate(names) if name}


def check_names(names: Iterable[Any], problems: Problems) -> list[str]:
    """Return the names of columns as texts without white space around them; raise where two are the same."""
    stripped = ["" if is_missing(name) else str(name).strip() for name in names]
    for name, count in collections.Counter(stripped).items():
        if name and count > 1:
            problems.add(f"{count} columns have the same name", "rename or delete all but one", column=name)
    problems.raise_any()
    return stripped


def say_what_is_ignored(names: Sequence[str], used: Mapping[str, str]) -> None:
    """Say that a column of counts, which may be of anything, is none of weights unless it is named.

    Parameters
    ----------
    names : of all columns.
    used : role -> name of those that are read.
    """
    for name in names:
        if name.casefold() == "count" and name not in used.values() and "weight" not in used:
            text = f"column {name!r} is ignored; {{columns}} takes it as weights"
            warn_input(text, Remedy("columns", {"weight": name}))


def choose_columns_or_layout(declared: Sequence[Column], columns: Mapping[str, str] | None) -> Choose:
    """Return what finds the columns; where neither annotators nor labels have one the table may have another layout.

    Raises
    ------
    InputError : from what is returned, as that of `choose_columns` does, with a word about layouts.
    """
    among = choose_columns(declared, columns)

    def choose(names: list[str], problems: Problems) -> dict[str, int]:
        try:
            return among(names, problems)
        except InputError:
            if {"annotator", "label"} <= {problem.column for problem in problems.found}:
                layouts = Remedy("layout", "wide"), Remedy("layout", "counts")
                problems.add("a row may be an item, and a column an annotator, or a label", _LAYOUTS, *layouts)
            raise InputError(problems.found) from None

    return choose


_LAYOUTS = "pass {layout} where cells hold the annotators' labels, {layout} where they count labels"
