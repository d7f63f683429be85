"""Anything in: what a user brings becomes the contract whose columns it has.

A *source* is a path, an open text file, a data frame, a dict of columns or a list of rows; see
`consilience.data.tables`. Of what has one value for each thing, as predictions of a class for each item, also a
``Series`` whose index names the things, or a dict of thing -> value.
"""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from consilience.data.annotations import Annotations
from consilience.data.cells import cell_text
from consilience.data.classes import ClassMap
from consilience.data.columns import Column, choose_columns
from consilience.data.conll import Chains
from consilience.data.constraints import Constraints
from consilience.data.contract import Contract
from consilience.data.mentions import Mentions
from consilience.data.partitions import Partition
from consilience.data.predictions import Predictions
from consilience.data.problems import Problems
from consilience.data.rankings import Rankings
from consilience.data.ratings import Ratings
from consilience.data.records import Records
from consilience.data.tables import column_names, is_data_set, is_rows, read_table
from consilience.errors import InputError, InputProblem, UnknownName, UnsupportedRequest, WrongKind, no_such
from consilience.notes import Remedy
from consilience.piped import is_open_file, kept, kept_inputs

_OF_UNITS: dict[type[Contract], tuple[str, str]] = {
    Predictions: ("item", "class"), Partition: ("record", "entity"), ClassMap: ("class", "group"),
}
"""What has one value for each thing: the columns of the things and of their values."""

DATA: tuple[type[Contract], ...] = (Annotations, Ratings, Rankings, Mentions, Records, Constraints)
"""What reports of a truth come as."""


def as_contract(
    source: Any, *contracts: type[Contract], whose: str = "this", read: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None, **reading: Any,
) -> Any:  # fmt: skip
    """Return data as one of several contracts, read where they are not one yet.

    Parameters
    ----------
    source : such a contract, which is returned as it is; or a source of which it is read.
    contracts : what is taken. `Contract` itself stands for all of `DATA`.
    whose : what takes it, for the message.
    read, columns : how it is read, as the reader takes it, such as policies and names of columns; neither of data that
        are read.
    reading : the same, which is of no account where the data are read.

    Raises
    ------
    InputError : the columns are those of several of the contracts, or of none; or what the reader finds.
    UnknownName : the reader has no such option.
    UnsupportedRequest : ``read`` or ``columns`` are given for what is read.
    WrongKind : it is another contract, or nothing that can be read.
    """
    if columns is not None:
        read = {**(read or {}), "columns": columns}
    if isinstance(source, contracts):
        if read:
            which = "read=" if columns is None else "columns="
            raise UnsupportedRequest(f"{which} says how data are read, and these are read; leave it out")
        return source
    reading |= read or {}
    taken = DATA if Contract in contracts else contracts
    if not is_source(source) and not isinstance(source, list | tuple):
        readers = " or ".join(contract.reader for contract in taken if contract.reader)
        hint = f", as {readers} returns them" if readers else ""
        named = " or ".join(contract.__name__ for contract in taken)
        none = "" if isinstance(source, Contract) else ", and no path, data frame, dict of columns or list of rows"
        raise WrongKind(f"{whose} takes {named}{hint}; this is {type(source).__name__}{none}")
    with kept_inputs():  # a FIFO or an open file is looked at more than once
        source = kept(source) if is_open_file(source) else _columns_of_units(source, taken)
        chosen: Any = choose_contract(source, taken, reading.get("columns"), reading.get("layout", "long"))
        known = list(inspect.signature(chosen.read).parameters)[1:]
        for name in reading:
            if name not in known:
                options = f"its options are {', '.join(known)}"
                raise no_such(f"the reader of {chosen.__name__} has no option '{name}'", name, known, options)
        return chosen.read(source, **reading)


def is_source(source: Any) -> bool:
    """Return whether this is a path, an open file, a data frame, a Series, a dict or a list of rows."""
    if isinstance(source, str | os.PathLike | Mapping) or is_rows(source):
        return True
    # First of the type: Polars warns who asks one of its lazy frames.
    is_frame = hasattr(type(source), "columns") or hasattr(source, "columns") or is_data_set(source)
    return not isinstance(source, Contract) and (is_frame or is_open_file(source) or _is_series(source))


def _is_series(source: Any) -> bool:
    return hasattr(source, "index") and hasattr(source, "to_frame") and not hasattr(source, "columns")


def _has_column(source: Mapping, column: Column) -> bool:
    return any(str(name).strip().casefold() in (column.name, *column.aliases) for name in source)


def _are_values(source: Mapping) -> bool:
    """Return whether all values of a dict may be those of single things: texts and numbers."""
    return all(
        value is None or isinstance(value, str | int | float | np.generic | datetime.date) for value in source.values()
    )


def _columns_of_units(source: Any, contracts: Sequence[type[Contract]]) -> Any:
    """Return a Series, or a dict of thing -> value, as the columns that it stands for; all else as it is."""
    contract = next((one for one in contracts if one in _OF_UNITS), None)
    if contract is None or not (_is_series(source) or isinstance(source, Mapping)):
        return source
    first, second = (next(one for one in contract.columns if one.name == name) for name in _OF_UNITS[contract])
    if _is_series(source):
        return {first.name: source.index, second.name: source.to_numpy()}
    if not _are_values(source) or _has_column(source, first):
        return source
    return {first.name: list(source), second.name: list(source.values())}


def choose_contract(
    source: Any, contracts: Sequence[type[Contract]], columns: Mapping[str, str] | None = None, layout: str = "long"
) -> type[Contract]:
    """Return the one contract to which the columns of a source belong, or which alone has its form or this layout.

    Where there is but one it is returned as it is: its reader knows best what is wrong.

    Raises
    ------
    InputError : the columns belong to none of the contracts or to several, or cannot be read.
    """
    of_layouts: list[Any] = [one for one in contracts if "layout" in inspect.signature(cast(Any, one).read).parameters]
    contracts = contracts if layout == "long" else of_layouts or contracts
    if len(contracts) == 1:
        return contracts[0]
    recognised = [contract for contract in contracts if contract.recognises(source)]
    if len(recognised) == 1:
        return recognised[0]
    names = column_names(source)
    found = [contract for contract in contracts if _has_columns(names, contract, columns)]
    if len(found) == 1:
        return found[0]
    listed = "; ".join(f"{', '.join(_required(contract))} ({contract.__name__})" for contract in contracts)
    others = [one.__name__ for one in DATA if one not in contracts and _has_columns(names, one, columns)]
    problem = f"are those of {' or '.join(others)}, which are not taken here" if others else _NO_KIND
    problem = "are those of several kinds of data" if found else problem
    raise InputError(
        InputProblem(
            f"the columns {', '.join(map(repr, names))} {problem}",
            f"give the columns {listed}, or say with {{columns}} which they are{_OR_WIDE if of_layouts else ''}",
            file=str(source) if isinstance(source, str | os.PathLike) else None,
            remedies=(Remedy("columns", {_lacking(names, contracts[0]): ...}), Remedy("layout", "wide")),
        )
    )


_NO_KIND = "are of no kind of data that is taken here"
_OR_WIDE = ", or with {layout} that a column holds the labels of one annotator"


def _required(contract: type[Contract]) -> list[str]:
    return [column.name for column in contract.columns if not column.optional] or [f"as {contract.reader} reads them"]


def _lacking(names: list[str], contract: type[Contract]) -> str:
    """Return the first column that a contract needs and that is not among the names; any where all are."""
    own = {name.casefold() for name in names}
    absent = [one.name for one in contract.columns if not (one.optional or own & {one.name, *one.aliases})]
    return next(iter(absent), _required(contract)[0])


def _has_columns(names: list[str], contract: type[Contract], columns: Mapping[str, str] | None) -> bool:
    if not contract.columns:
        return False
    try:
        choose_columns(contract.columns, columns)(names, Problems(None))
    except (InputError, UnknownName):
        return False
    return True


def own_ids(source: Any, data: Contract) -> dict[str, list[Any]]:
    """Return the ids of data by dimension, in code order, as the values that stand in the source: 1 and not "1".

    Where several values have one text it is the first of them. A file has texts alone.

    Parameters
    ----------
    source : of which the data were read without further words; or the data, whose ids are what they are.
    data : what was read.

    Examples
    --------
    >>> rows = {"item": [7, 7], "annotator": ["x", "y"], "label": [True, False]}
    >>> own_ids(rows, Annotations.read(rows))["label"]
    [False, True]
    """
    own: dict[str, dict[str, Any]] = {dimension: {} for dimension in data.ids}
    if is_source(source) and not isinstance(source, str | os.PathLike) and not is_open_file(source):
        table = read_table(source, choose_columns(data.columns))
        for column in data.columns:
            if column.codes and column.name in table.columns:
                for value in table.columns[column.name].values:
                    own[column.codes].setdefault(cell_text(value)[0], value)
    return {dimension: [own[dimension].get(text, text) for text in ids] for dimension, ids in data.ids.items()}


def lists_groups(source: Any) -> bool:
    """Return whether a source is a text file with one group a line: only a fit knows the classes, in their order."""
    return isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith((".txt", ".txt.gz"))


def as_class_map(fit: Any, given: Any) -> ClassMap | None:
    """Return groups of classes, read where they are not read yet; None stays.

    Parameters
    ----------
    fit : a fit, or a truth; a text file with one group a line is for its classes, in their order.
    given : a `ClassMap`; or a source, see `as_contract`.

    Raises
    ------
    InputError : the groups cannot be read.
    WrongKind : it is something else.
    """
    if given is None:
        return None
    reading = {"classes": getattr(fit, "truth", fit).ids.get("class")} if lists_groups(given) else {}
    found: ClassMap = as_contract(given, ClassMap, whose="this", **reading)
    return found


# ---- systems ----

_SYSTEMS: dict[str, type[Contract]] = {"classes": Predictions, "partition": Partition, "chains": Chains}
"""What a system of each kind of truth is read as."""


def as_system(fit: Any, given: Any, columns: Mapping[str, str] | None = None) -> Any:
    """Return what a system says, read where it is not read yet; its ``kind`` says what it is.

    Parameters
    ----------
    fit : a fit, or a truth, which says of which kinds systems may be.
    given : a contract of a system; what can be made into chains; or a source, see `as_contract`.
    columns : names of its columns.

    Raises
    ------
    UnsupportedRequest : it is something else.
    """
    if hasattr(given, "to_chains"):
        given = given.to_chains()
    if is_source(given) or columns is not None:
        given = as_contract(given, *_systems_of(fit), columns=columns)
    if not hasattr(given, "kind"):
        raise UnsupportedRequest(
            "a system is expected, as read_predictions, read_conll or read_partition return it, or "
            f"Predictions.from_scores makes it of an array of scores (item, class); this is {type(given).__name__}"
        )
    return given


def _systems_of(fit: Any) -> list[type[Contract]]:
    return [_SYSTEMS[kind] for kind in getattr(fit, "truth", fit).systems]


def _is_one_system(fit: Any, given: Mapping) -> bool:
    """Return whether a dict is one system, by columns or by what it names, and not several by name."""
    of_units = [one for one in _systems_of(fit) if one in _OF_UNITS]
    if any(_has_column(given, one.columns[0]) for one in of_units):
        return True
    if not _are_values(given):
        return False
    ids = getattr(fit, "truth", fit).ids.get(_OF_UNITS[of_units[0]][0], ()) if of_units else ()
    return not {cell_text(name)[0] for name in given}.isdisjoint(ids)


def as_systems(fit: Any, systems: Any, columns: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return systems by name, each as `as_system` returns it; of one system alone, under its own name.

    Raises
    ------
    UnsupportedRequest : it is no mapping of names to systems, or it is empty.
    """
    if not isinstance(systems, Mapping) or not systems:
        raise UnsupportedRequest("there is no system to compare; give a dict of name: predictions")
    if _is_one_system(fit, systems):
        return named_system(as_system(fit, systems, columns))
    return {name: _renamed(as_system(fit, system, columns), name) for name, system in systems.items()}


def _renamed(system: Any, name: Any) -> Any:
    """Return a system under the name that the user calls it by, so that messages use it too."""
    named = isinstance(system, Predictions | Partition) and system.name != str(name)
    return dataclasses.replace(system, name=str(name)) if named else system


def named_systems(fit: Any, given: Any) -> dict[str, Any]:
    """Return systems by name where there may be none, or one by itself, which has a name of its own."""
    if given is None or (isinstance(given, Mapping) and not given):
        return {}
    if isinstance(given, Mapping):
        return as_systems(fit, given)
    return named_system(as_system(fit, given))


def named_system(system: Any) -> dict[str, Any]:
    """Return a system by the name that it has."""
    return {getattr(system, "name", None) or "response": system}


def as_partition(given: Any) -> Partition | None:
    """Return a partition: as it is, of records whose entities are known, of a source, or of whole numbers; else None.

    Raises
    ------
    UnsupportedRequest : the entities of the records are unknown.
    """
    if is_source(given):
        given = as_contract(given, Partition)
    if isinstance(given, Partition):
        return given
    if isinstance(given, Records):
        if given.entity is None:
            text = "the entities of these records are unknown; read them with {entity}, the column"
            raise UnsupportedRequest(text, Remedy("entity"))
        return Partition(
            entity=given.entity, num_records=given.num_records, num_entities=int(np.max(given.entity)) + 1,
            records=given.records, entities=given.entities, name="records",
        )  # fmt: skip
    return Partition.from_codes(given) if is_numbers(given) else None


def is_numbers(given: Any) -> bool:
    """Return whether whole numbers are given, in a list or an array."""
    return not is_source(given) and (isinstance(given, Sequence) or hasattr(given, "__array__"))
