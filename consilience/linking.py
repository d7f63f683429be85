"""`link`: several tables in, who is the same person out; with sensible defaults, which it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.comparison import FIELD_TYPES, Compared, as_compared
from consilience.data.problems import warn_input
from consilience.data.records import Records, records_and_ids
from consilience.errors import InputError, InputProblem, UnknownName, UnsupportedRequest
from consilience.inference.fitting import Fit, fit
from consilience.models.block_linkage import MODEL
from consilience.models.block_linkage.repeats import repeats_by_chance
from consilience.notes import Remedy
from consilience.similarity import check_kinds, with_similar

_MANY_ALIKE = 100  # So many records with equal values are nothing that linkage is for.
_ENTITY_NAMES = (
    "entity", "entity_id", "ent_id", "entid", "cluster", "cluster_id", "true_id", "true_entity", "true_cluster",
    "person_id", "truth", "gold", "ground_truth", "unique_entity",
)  # fmt: skip


class ChosenField(NamedTuple):
    """A column, and whether it is compared.

    Parameters
    ----------
    field : its name.
    type : one of `consilience.comparison.FIELD_TYPES`.
    values, missing : how many distinct values it has, and in how many records it is missing.
    left_out : why it is not compared; empty where it is.
    """

    field: str
    type: str
    values: int
    missing: int
    left_out: str


def link(
    sources: Any,
    *,
    id: str | None = None,
    fields: Sequence[str] | Mapping[str, str] | None = None,
    similar: Mapping[str, str] | None = None,
    entity: str | None = None,
    missing_values: Sequence[str] = (),
    pairs: Any = None,
    priors: Any = None,
    method: str = "auto",
    draws: int = 1000,
    seed: int = 0,
    engine: Any = "auto",
    **settings: Any,
) -> Fit:
    """Find the records that describe the same entity, in one table or between several.

    Parameters
    ----------
    sources : a path, a data frame, a dict of columns or a list of rows; a list of such tables; or a dict ``{name:
        source}``. `Records` that were read are taken as they are.
    id : the column that names each record; by default ``id``, ``record_id`` or ``rec_id``. "row" numbers the rows of
        tables that have no such column.
    fields : the columns to compare, or a dict of column to type: "string", "date", "number" or "category". By default
        all that can tell entities apart: left out is a column that is constant, always missing or different in every
        record, or nearly so, where records that share a value agree in nothing else. Fields are compared for equality:
        of numbers, of dates in whatever unambiguous form, and of texts in any case.
    similar : a dict of the columns in which two values may be nearly equal, and by what: "string" (typing errors; needs
        ``pip install 'consilience[strings]'``), "typo" (and hardly any other errors), "number" or "date"; for example
        ``{"name": "string"}``.
    entity : a column with the known entity, for evaluation; it is not compared.
    missing_values : texts that stand for a missing value besides the empty cell, such as "NA".
    pairs : a table of the pairs of records that may be linked, with the columns ``record_a`` and ``record_b``, in the
        place of those that the model itself can care about; of splink's or any other blocking.
    priors : `consilience.models.block_linkage.Priors`, of the hyperparameters; for example, of fields that are more or
        less often distorted, ``Priors(distortion=RareDistortion(a=[1, 1, 5], b=[99, 9, 5]))``, one number for each
        field that is compared, in the order of ``fields``.
    method : ``auto``, ``em``, ``nuts`` or ``gibbs``. The interval of the number of entities by EM is that of the links
        alone, too narrow; that of Gibbs sampling holds if the model does.
    draws, seed : of the partitions that are drawn.
    engine : what goes through the records by EM: "local", in memory; "duckdb", on one machine beyond memory; "spark",
        on a cluster; or an engine with settings of its own, ``cs.engines.duckdb(memory="8GB")`` or
        ``cs.engines.spark(session)``. "auto" is DuckDB where there are more than 2·10⁸ values and it is installed, and
        local else. The answer is the same.
    settings : of the model `block-linkage`: likelihood, restriction, threshold, largest, wide; and what bounds a run:
        ``devices``, ``chains``, ``warmup``, ``checkpoint``, ``resume`` and ``progress`` of `fit`.

    Returns
    -------
    Fit : with the tables ``entities()``, ``pairs()``, ``review()``, ``canonical()``, ``patterns()`` and the number of
        entities, ``num_entities()``.

    Raises
    ------
    InputError : the tables cannot be read, or have nothing in common; the message says where.
    UnknownName : a type of field, or a kind of similarity, that does not exist.
    UnsupportedRequest : rapidfuzz, which compares texts, is not installed; no column can tell entities apart; or
        ``restriction="across"`` and a single table.
    InvalidPrior : a prior for another number of fields.

    Examples
    --------
    >>> import consilience as cs
    >>> people = {
    ...     "id": list("abcdefgh"),
    ...     "name": ["Ann", "Ann", "Bob", "Bob", "Cid", "Dan", "Eve", "Fay"],
    ...     "born": [1980, 1980, 1975, 1975, 1990, 1991, 1960, 1944],
    ...     "town": ["Ulm", "Ulm", "Bonn", "Bonn", "Ulm", "Bonn", "Ulm", "Bonn"],
    ... }
    >>> fit = cs.link(people)
    >>> fit.entities()["entity"].tolist()
    ['a', 'a', 'c', 'c', 'e', 'f', 'g', 'h']
    """
    types = dict(fields) if isinstance(fields, Mapping) else {}
    for name, type_ in types.items():
        if type_ not in FIELD_TYPES:
            raise UnknownName(f"the type of field {name!r} is {type_!r}; give one of {', '.join(FIELD_TYPES)}")
    if "processes" in settings:
        text = 'processes= is gone; give engine="duckdb" to use all cores of one machine, or engine="spark"'
        raise UnsupportedRequest(text, Remedy("engine", "duckdb"))
    names = None if fields is None else list(fields)
    similar = dict(similar or {})
    check_kinds(similar)
    _check_priors(priors)
    records, id_columns = _read(sources, id=id, entity=entity, fields=names, missing_values=missing_values)
    if records.num_records == 1:
        problem = InputProblem("there is one record only, and none to link it with", "give at least two records")
        raise InputError(problem)
    if settings.get("restriction") == "across" and records.num_sources == 1:
        text = "{restriction} links records of different files, and there is only one"
        raise UnsupportedRequest(text, Remedy("restriction", "across"))
    as_types = as_compared(records, types)
    records = as_types.records
    _warn_of_types(as_types, types)
    chosen = chosen_fields(records, as_types.types)
    compared = [one.field for one in chosen if names is not None or not one.left_out]
    if not compared:
        raise UnsupportedRequest(
            "no column can tell entities apart: each is constant, always missing, or different in every record; "
            "name those to compare in {fields}", Remedy("fields"),
        )  # fmt: skip
    records = records.of_fields(compared)
    if similar:
        records = with_similar(records, _compared(similar, compared, chosen))
    if settings.get("restriction") != "within":
        _check_files(records)
    if names is None:
        _warn_of_entities(compared)
    _warn_of_copies(records)
    if pairs is not None:
        records = records.with_candidates(pairs)
    found = fit(MODEL, records, priors, method=method, draws=draws, seed=seed, engine=engine, **settings)
    found.attributes["id"] = ", ".join(dict.fromkeys(id_columns.values())) or "id"
    found.attributes["fields"] = ", ".join(f"{one.field} ({one.type})" for one in chosen if one.field in compared)
    if similar:
        found.attributes["similar"] = ", ".join(f"{field} ({kind})" for field, kind in similar.items())
    left = [f"{one.field}: {one.left_out}" for one in chosen if one.field not in compared]
    if left:
        found.attributes["left_out"] = "; ".join(left)
        warn_input(f"columns that are not compared: {found.attributes['left_out']}")
    return found


def _read(sources: Any, *, fields: Sequence[str] | None, **reading: Any) -> tuple[Records, dict[str, str]]:
    """Return records, and the column of each source that names them; those that were read have none."""
    if not isinstance(sources, Records):
        return records_and_ids(sources, fields=fields, **reading)
    if given := [name for name, value in reading.items() if value]:
        text = f"{', '.join(f'{{{name}}}' for name in given)} says how tables are read, and these records are read"
        raise UnsupportedRequest(text, *map(Remedy, given))
    return sources if fields is None else sources.of_fields(fields), {}


def _compared(
    similar: dict[str, str], compared: Sequence[str], chosen: Sequence[ChosenField]
) -> dict[str, str]:
    """Refuse what is similar, but not compared."""
    why = {one.field: f"it is {one.left_out}" for one in chosen if one.left_out}
    for field in similar:
        if field not in compared:
            reason = why.get(field, f"there are {', '.join(compared)}")
            problem = f"{{similar}} names {field!r}, which is not compared: {reason}"
            remedy = "correct the name, or name the column in {fields} too"
            raise InputError(InputProblem(problem, remedy, remedies=(Remedy("similar"), Remedy("fields"))))
    return similar


def _warn_of_copies(records: Records) -> None:
    """Warn of many records that nothing tells apart: they are no entity, and hide one."""
    # A number of 64 bits stands for what a record shows: sorting these takes a fifth of the time of sorting rows.
    words = np.random.default_rng(0).integers(2**64, size=records.num_values + records.num_fields, dtype=np.uint64)
    key = np.zeros(records.num_records, np.uint64)
    for place, column in enumerate(np.asarray(records.value)):
        first, last = records.first_value[place : place + 2]
        # The last place is that of a missing value, whose code is -1.
        key += np.append(words[first:last], words[records.num_values + place])[column]
    key.sort()
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1], [True]]))
    if (most := int(np.diff(starts).max())) > _MANY_ALIKE:
        warn_input(
            f"{most:,} records have the same value in every field that is compared: they cannot be told apart, and are "
            "taken for different entities or cut into small ones. Keep one of each, or compare more fields"
        )


def _check_priors(priors: Any) -> None:
    from consilience.models.block_linkage import Priors

    if priors is not None and not isinstance(priors, Priors):
        raise UnsupportedRequest(
            f"priors= is a {type(priors).__name__}; give the priors of the model, such as "
            "Priors(distortion=RareDistortion(a=1, b=99)), both from consilience.models.block_linkage"
        )


def _warn_of_types(compared: Compared, asked: Mapping[str, str]) -> None:
    """Warn of fields that are mostly not of the type that was asked for."""
    for field, share in compared.unread.items():
        if share > 0.5:
            warn_input(
                f"of the values of {field!r}, {share:.0%} cannot be read as a {asked[field]} and are compared as text; "
                "dates are read as 1951-02-03, 1951/02/03, 19510203 or 03.02.1951"
            )


def _warn_of_entities(compared: Sequence[str]) -> None:
    """Warn of columns that are called as the answer is."""
    for field in compared:
        if field.strip().casefold().replace(" ", "_") in _ENTITY_NAMES:
            warn_input(
                f"the column {field!r} is compared as a field, but called as known entities are: if it is the answer, "
                "give {entity}, else name the columns to compare in {fields}",
                Remedy("entity", field), Remedy("fields"),
            )  # fmt: skip


def _check_files(records: Records) -> None:
    """Refuse files that nothing connects, and warn of fields that one of several files has."""
    if records.num_sources == 1:
        return
    value, source = np.asarray(records.value), np.asarray(records.source)
    has = np.stack([np.bincount(source[row >= 0], minlength=records.num_sources) > 0 for row in value])
    shared = has.sum(axis=1) > 1
    fields = np.asarray(records.fields, object)
    for place in np.flatnonzero(~(has & shared[:, None]).any(axis=0)):
        own = "; ".join(
            f"{name} has {', '.join(fields[has[:, one]]) or 'none'}" for one, name in enumerate(records.sources)
        )
        problem = f"no field that is compared is in {records.sources[place]} and in another file: {own}"
        raise InputError(InputProblem(problem, "rename columns, so that the same one has the same name in all files"))
    single = [str(field) for field in fields[~shared]]
    if single:
        warn_input(
            f"only one file has {', '.join(single)}, which cannot link it with others; if others call it something "
            "else, rename it there"
        )


def chosen_fields(records: Records, types: Mapping[str, str]) -> list[ChosenField]:
    """Tell which fields can tell entities apart.

    Parameters
    ----------
    types : of the fields.
    """
    found = []
    by_chance = repeats_by_chance(records)
    for place, field in enumerate(records.fields):
        codes = np.asarray(records.value[place])
        missing, values = int(np.sum(codes < 0)), len(np.unique(codes[codes >= 0]))
        reason = ""
        if values == 0:
            reason = "always missing"
        elif values == 1:
            reason = "the same in every record"
        elif values == len(codes) - missing > 2:
            reason = "different in every record"
        elif by_chance[place]:
            reason = "different in nearly every record, and the records that share a value agree in nothing else"
        found.append(ChosenField(str(field), types[str(field)], values, missing, reason))
    return found
