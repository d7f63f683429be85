"""Names of columns of several sources: which are one, what a source's own are to be called, and which was meant."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Mapping

from consilience.data.cells import Table
from consilience.data.problems import Problems, first_of, warn_input
from consilience.errors import InputError, meant
from consilience.notes import Remedy

_COLUMNS = Remedy("columns")


def folded(name: str) -> str:
    """Return a name without case, blanks, - and _."""
    return re.sub(r"[\s_-]", "", name.casefold()) or name


def known_as(name: str, known: Iterable[str]) -> str:
    """Return which of the known names is this one, or alone differs from it in case, blanks, - and _; else the name."""
    names = list(known)
    if name in names:
        return name
    key = folded(name)
    alike = [one for one in names if folded(one) == key]
    return alike[0] if len(alike) == 1 else name


def name_columns(tables: Mapping[str, Table], columns: Mapping[str, Mapping[str, str]] | None) -> list[str]:
    """Give columns the names that were asked for, and those of one name in other writing the name that was first.

    Parameters
    ----------
    tables : by source; their columns are named anew.
    columns : ``{source: {column: name}}``.

    Returns
    -------
    names : of all columns of all tables, each once.

    Raises
    ------
    InputError : a source or column does not exist, or two columns of a source would have one name.
    """
    for source, names in (columns or {}).items():
        if source not in tables:
            raise _unknown("source", source, tables)
        _rename(source, tables[source], names)
    # Two columns of one table are two, however alike they are called.
    twice = {
        key for table in tables.values() for key, number in collections.Counter(map(folded, table.columns)).items()
        if number > 1
    }  # fmt: skip
    first: dict[str, str] = {}
    taken = []
    for source, table in tables.items():
        for name in list(table.columns):
            own = first.setdefault(folded(name), name)
            if own != name and folded(name) not in twice:
                taken.append(f"{name!r} of {source} is {own!r}")
                table.columns = {own if one == name else one: cells for one, cells in table.columns.items()}
    if taken:
        warn_input(f"columns that are called nearly alike are taken for one: {first_of(taken)}")
    return list(dict.fromkeys(name for table in tables.values() for name in table.columns))


def _rename(source: str, table: Table, names: Mapping[str, str]) -> None:
    own = {known_as(column, table.columns): name for column, name in names.items()}
    for column in own:
        if column not in table.columns:
            raise _unknown(f"column of {source}", column, table.columns)
    renamed = [own.get(column, column) for column in table.columns]
    for name, number in collections.Counter(renamed).items():
        if number > 1:
            problem = f"{{columns}} makes {number} columns of {source} {name!r}"
            raise Problems(None).fail(problem, "choose another name, or rename both", _COLUMNS)
    table.columns = dict(zip(renamed, table.columns.values(), strict=True))


def _unknown(what: str, name: str, known: Iterable[str]) -> InputError:
    listed = list(known)
    remedy = meant(name, listed) or f"there are {first_of(map(repr, listed))}"
    return Problems(None).fail(f"{{columns}} names the {what} {name!r}", remedy, _COLUMNS)
