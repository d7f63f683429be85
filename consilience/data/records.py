"""Records: rows of one or several files that describe entities, for linking those that describe the same one."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from consilience.data.codes import object_array, recode, repeated
from consilience.data.contract import Contract, array, ids, size
from consilience.data.tables import ALIASES, Problems, Table, all_columns, choose_columns, read_table

__all__ = ["Records", "read_records"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Records(Contract):
    """Records with categorical or textual fields, as codes; made by `read_records`.

    Parameters
    ----------
    value : int32, shape ``(field, record)``; code into the field's own `vocabulary`, -1 where missing.
    source : int32, shape ``(record,)``; code into ``sources``. Records are in the order of the files.
    first_value : int32, shape ``(field + 1,)``; where the vocabulary of each field begins in ``values``.
    entity : int32, shape ``(record,)``, the known entity of a record or -1; ``None`` where the input has no such
        column.
    candidate : int32, shape ``(pair, 2)``; the pairs of records that may be linked, the lower code first, sorted; where
        the user gave them (`with_candidates`), else ``None``.
    num_records, num_fields, num_sources, num_values : sizes; ``num_values`` is that of all vocabularies together.
    records, fields, sources, values, entities : object arrays of the user's own ids and texts, in code order;
        ``None`` in a copy that went through JAX.
    """

    value: Any = array()
    source: Any = array()
    first_value: Any = array()
    entity: Any = array(default=None)
    candidate: Any = array(default=None)
    num_records: int = size()
    num_fields: int = size()
    num_sources: int = size()
    num_values: int = size()
    records: Any = ids()
    fields: Any = ids()
    sources: Any = ids()
    values: Any = ids()
    entities: Any = ids()

    def vocabulary(self, field: str) -> np.ndarray:
        """Return the distinct texts of a field, in code order."""
        position = self._position(field)
        return self.values[self.first_value[position] : self.first_value[position + 1]]

    def column(self, field: str) -> np.ndarray:
        """Return a field as texts: object, shape ``(record,)``, ``None`` where missing."""
        return np.append(self.vocabulary(field), [None])[self.value[self._position(field)]]

    def of_fields(self, fields: Sequence[str]) -> Self:
        """Return the records with these fields alone, in this order."""
        positions = [self._position(field) for field in fields]
        vocabularies = [self.vocabulary(field) for field in fields]
        return self.replace(
            value=self.value[positions],
            first_value=np.cumsum([0, *map(len, vocabularies)]).astype(np.int32),
            num_fields=len(positions),
            num_values=sum(map(len, vocabularies)),
            fields=object_array(fields),
            values=object_array(text for own in vocabularies for text in own),
        )

    def with_candidates(self, pairs: Any) -> Self:
        """Return the records with the pairs that may be linked, in the place of those that a model finds.

        Parameters
        ----------
        pairs : a table with the columns ``record_a`` and ``record_b``, ids of records.

        Raises
        ------
        InputError : naming the rows whose ids are no records, or twice the same one.
        """
        table = read_table(pairs, choose_columns(("record_a", "record_b"), (), None))
        sides = []
        for role in ("record_a", "record_b"):
            codes, names = table.texts(role, required=True)
            known = np.append(recode(np.arange(len(names)), names, self.records), -1)
            table.flag((known[codes] < 0) & (codes >= 0), role, "there is no such record", "correct the id")
            sides.append(known[codes])
        same = (sides[0] == sides[1]) & (sides[0] >= 0)
        table.flag(same, "record_b", "a record cannot be linked to itself", "delete the row")
        table.problems.raise_any()
        ordered = np.sort(np.stack(sides, axis=1).reshape(-1, 2).astype(np.int64), axis=1)
        code = np.sort(ordered[:, 0] * self.num_records + ordered[:, 1])
        code = code[np.diff(code, prepend=-1) > 0]
        return self.replace(candidate=np.stack(np.divmod(code, self.num_records), axis=1).astype(np.int32))

    def _position(self, field: str) -> int:
        found = np.flatnonzero(self.fields == field)
        if not len(found):
            problem = f"there is no field {field!r}; the records have {', '.join(self.fields)}"
            raise Problems(None).fail(problem, "name one of them")
        return int(found[0])


def read_records(
    sources: Any,
    *,
    id: str | None = None,
    entity: str | None = None,
    fields: Sequence[str] | None = None,
    missing_values: Sequence[str] = (),
) -> Records:
    """Read records that are to be linked.

    Parameters
    ----------
    sources : one source (a path, a data frame or a dict of columns), a list of sources, or a dict ``{name: source}`` of
        paths or data frames. A record may repeat within a source and across sources.
    id : the column that names each record, unique within a source; by default ``id``, ``record_id`` or ``rec_id``.
    entity : a column with the known entity, for evaluation; it is no field.
    fields : the columns to compare, in order; by default all others. A source that lacks one has it missing.
    missing_values : texts that stand for a missing value besides the empty cell, such as "NA".

    Returns
    -------
    records : in the order of the sources. An id that occurs in several sources is written ``source:id``.
    """
    named = _named_sources(sources)
    tables = {name: read_table(source, all_columns) for name, source in named.items()}
    id_columns = {name: _id_column(table, id) for name, table in tables.items()}
    if fields is None:
        every = dict.fromkeys(column for table in tables.values() for column in table.columns)
        fields = [column for column in every if column not in {*id_columns.values(), entity}]
    _check_fields(tables, fields, entity)
    records = [_record_ids(table, id_columns[name]) for name, table in tables.items()]
    counts = collections.Counter(record for own in records for record in own)
    columns = [_join(tables, field, missing_values) for field in fields]
    entities = None if entity is None else _join(tables, entity, ())
    for table in tables.values():
        table.problems.raise_any()
    lengths = [table.num_rows for table in tables.values()]
    vocabulary = [names for _, names in columns]
    return Records(
        value=np.stack([codes for codes, _ in columns]),
        source=np.repeat(np.arange(len(tables), dtype=np.int32), lengths),
        first_value=np.concatenate([[0], np.cumsum([len(names) for names in vocabulary])]).astype(np.int32),
        entity=None if entities is None else entities[0],
        num_records=sum(lengths),
        num_fields=len(columns),
        num_sources=len(tables),
        num_values=sum(map(len, vocabulary)),
        records=object_array(
            record if counts[record] == 1 else f"{name}:{record}"
            for name, own in zip(tables, records, strict=True)
            for record in own
        ),
        fields=object_array(fields),
        sources=object_array(tables),
        values=object_array(text for names in vocabulary for text in names),
        entities=None if entities is None else object_array(entities[1]),
    )


def _named_sources(sources: Any) -> dict[str, Any]:
    if isinstance(sources, Mapping) and all(
        isinstance(value, str | os.PathLike) or hasattr(value, "columns") for value in sources.values()
    ):
        named = {str(name): source for name, source in sources.items()}
    else:
        listed = list(sources) if isinstance(sources, list | tuple) else [sources]
        stems = [Path(one).name.split(".")[0] if isinstance(one, str | os.PathLike) else "" for one in listed]
        distinct = len(set(stems)) == len(stems) and all(stems)
        named = dict(zip(stems if distinct else map(str, range(len(listed))), listed, strict=True))
    if not named:
        raise Problems(None).fail("there is no source of records", "pass at least one file or data frame")
    return named


def _id_column(table: Table, given: str | None) -> str:
    names = {column.casefold(): column for column in table.columns}
    wanted = ("id", *ALIASES["id"]) if given is None else (given.strip().casefold(),)
    for name in wanted:
        if name in names:
            return names[name]
    listed = ", ".join(map(repr, table.columns))
    message = f"there is no column {' or '.join(map(repr, wanted))}; the table has {listed}"
    raise table.problems.fail(message, "say which column names the records, as in id='person'", column=given or "id")


def _check_fields(tables: dict[str, Table], fields: Sequence[str], entity: str | None) -> None:
    problems = Problems(None)
    for field in (*fields, *([] if entity is None else [entity])):
        if not any(field in table.columns for table in tables.values()):
            problems.add("no source has this column", "correct the name", column=field)
    if len(set(fields)) != len(fields) or not fields:
        problems.add("at least one field is expected, each once", "name the columns to compare in fields=")
    problems.raise_any()


def _record_ids(table: Table, id_column: str) -> list[str]:
    codes, names = table.texts(id_column, required=True)
    again = repeated(codes) & (codes >= 0)
    table.flag(again, id_column, "an earlier record of this source has the same id", "give every record its own id")
    return [names[code] if code >= 0 else "" for code in codes.tolist()]


def _join(tables: dict[str, Table], field: str, missing_values: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return one field of all sources as codes into one vocabulary."""
    empty = np.empty(0, np.int32)
    parts = [
        table.texts(field) if field in table.columns else (np.full(table.num_rows, -1, np.int32), [])
        for table in tables.values()
    ]
    found = dict.fromkeys(name for _, names in parts for name in names)
    vocabulary = [name for name in found if name not in missing_values]
    joined = np.concatenate([empty, *(recode(codes, names, vocabulary) for codes, names in parts)])
    return np.maximum(joined, -1), vocabulary
