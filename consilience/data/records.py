"""Records: rows of one or several files that describe entities, for linking those that describe the same one."""

from __future__ import annotations

import collections
import csv
import dataclasses
import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from consilience.data.cells import Table
from consilience.data.codes import object_array, recode, repeated, text_array
from consilience.data.column_names import known_as, meant, name_columns
from consilience.data.columns import Column, all_columns
from consilience.data.contract import Contract, array, ids, of_file, per, size
from consilience.data.files import name_of
from consilience.data.pair_labels import named_columns, pair_codes, read_pair_labels
from consilience.data.problems import Problems, warn_input
from consilience.data.tables import is_rows, read_table
from consilience.errors import InputError, UnsupportedRequest
from consilience.notes import Remedy
from consilience.output import STANDARD_OUTPUT, text_stream, write_folder, write_output
from consilience.spreadsheets import as_written

_ROW = "row"  # the id that numbers the rows, where no column has that name
_FIELDS = Remedy("fields")


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Records(Contract):
    """Records with categorical or textual fields, as codes; made by `read_records`.

    Parameters
    ----------
    value : int32, shape ``(field, record)``
        Code into the field's own `vocabulary`, -1 where missing.
    source : int32, shape ``(record,)``
        Code into ``sources``. Records are in the order of the files.
    first_value : int32, shape ``(field + 1,)``
        Where the vocabulary of each field begins in ``values``.
    entity : int32, shape ``(record,)``
        The known entity of a record or -1; ``None`` where the input has no such column.
    candidate : int32, shape ``(pair, 2)``
        The pairs of records that may be linked, the lower code first, sorted; where the user gave them
        (`with_candidates`), else ``None``.
    labelled, label_log_odds : int32, shape ``(label, 2)``
        And float64, shape ``(label,)``; pairs of records to which there are answers (`with_labels`), the lower code
        first, sorted, each once; and by how much the answers raise the log odds that the pair is one entity, ±∞ if
        sure; else ``None``.
    similar : dict, optional
        int8, shape ``(field,)``; 1 for fields that are compared by similarity, 2 for those of texts, 0 for the others;
        ``None`` where there is none. See `consilience.similarity`.
    near, distance : int32, shape ``(near, 2)``
        And float64, shape ``(near,)``; the pairs of values of these fields that are near, as places in ``values``, the
        lower one first, sorted, and how far apart they are; else ``None``.
    num_records, num_fields, num_sources, num_values : int
        Sizes; ``num_values`` is that of all vocabularies together.
    fields, sources, values : sequence, optional
        Object arrays of the user's own ids and texts, in code order; ``None`` in a copy that went through JAX.
    records, entities : sequence, optional
        Ids as these, arrays of NumPy's texts (`numpy.dtypes.StringDType`), as there may be millions.

    Examples
    --------
    >>> import consilience as cs
    >>> table = {"id": ["r1", "r2", "r3"], "name": ["Ann", "Bob", "Ann"], "town": ["Ulm", "Bonn", ""]}
    >>> records = cs.read_records(table)
    >>> records.fields.tolist()
    ['name', 'town']
    >>> records.value.tolist()
    [[0, 1, 0], [0, 1, -1]]
    """

    columns = (Column("id", ("record_id", "rec_id"), "record", "the record, unique within its source"),)
    other_columns = "fields, in columns of any name"
    reader = "read_records"
    command = "table"
    rows = "record"
    unit = "record"
    value: Any = per("field", "record", codes="num_values", missing=True)
    source: Any = per("record", codes="file")
    first_value: Any = array(shape=(-1,))
    entity: Any = per("record", codes="known_entity", missing=True, default=None)
    candidate: Any = per(-1, 2, codes="record", default=None)
    labelled: Any = per(-1, 2, codes="record", default=None, later=True)
    label_log_odds: Any = array(shape=(-1,), default=None, later=True)
    similar: Any = per("field", default=None, later=True)
    near: Any = array(shape=(-1, 2), codes="num_values", default=None, later=True)
    distance: Any = array(shape=(-1,), default=None, later=True)
    num_records: int = size()
    num_fields: int = size()
    num_sources: int = size()
    num_values: int = size()
    records: Any = ids("record")
    fields: Any = ids("field")
    sources: Any = ids("file")
    values: Any = ids()  # the texts of all vocabularies, which name nothing without their field
    entities: Any = ids("known_entity")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("records", "entities"):
            if (texts := getattr(self, name)) is not None:
                object.__setattr__(self, name, text_array(texts))

    def problem(self) -> str | None:
        """Return in words what no reader makes; see `Contract.problem`."""
        if found := super().problem():
            return found
        first, value = np.asarray(self.first_value, np.int64), np.asarray(self.value)
        sizes = np.diff(first)
        if len(first) != self.num_fields + 1 or first[0] != 0 or first[-1] != self.num_values or (sizes < 0).any():
            return "'first_value' does not divide the values among the fields"
        if (value >= sizes[:, None]).any():
            return "'value' has codes outside the vocabulary of the field"
        return None

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the files, where there are several."""
        return tuple(map(str, self.sources)) if self.num_sources > 1 and self.sources is not None else ()

    @property
    def read_from(self) -> str:
        """How the call of its reader is written; see `Contract.read_from`."""
        sources = ", ".join(f"{str(name)!r}: …" for name in self.sources)
        fields = [str(field) for field in self.fields]
        return f"{{{sources}}}, fields={fields}{'' if self.entity is None else ', entity=…'}"

    def vocabulary(self, field: str) -> np.ndarray:
        """Return the distinct texts of a field, in code order."""
        position = self._position(field)
        return self.values[self.first_value[position] : self.first_value[position + 1]]

    def column(self, field: str) -> np.ndarray:
        """Return a field as texts: object, shape ``(record,)``, ``None`` where missing."""
        return np.append(self.vocabulary(field), [None])[self.value[self._position(field)]]

    def of_fields(self, fields: Sequence[str]) -> Self:
        """Return the records with these fields alone, in this order."""
        self._check_values_are_free()
        positions = [self._position(field) for field in fields]
        vocabularies = [self.vocabulary(field) for field in fields]
        return self.replace(
            value=self.value[positions], num_fields=len(positions), fields=object_array(fields),
            **_joined_vocabularies(vocabularies),
        )  # fmt: skip

    def with_candidates(self, pairs: Any) -> Self:
        """Return the records with the pairs that may be linked, in the place of those that a model finds.

        Parameters
        ----------
        pairs : path, data frame or dict of columns
            A table with the columns ``record_a`` and ``record_b``, ids of records.

        Raises
        ------
        InputError : naming the rows whose ids are no records, or twice the same one.
        """
        table = read_table(pairs, named_columns(("record_a", "record_b")))
        sides = pair_codes(table, self.records, self.sources)
        table.problems.raise_any()
        ordered = np.sort(np.stack(sides, axis=1).reshape(-1, 2).astype(np.int64), axis=1)
        code = np.sort(ordered[:, 0] * self.num_records + ordered[:, 1])
        code = code[np.diff(code, prepend=-1) > 0]
        return self.replace(candidate=np.stack(np.divmod(code, self.num_records), axis=1).astype(np.int32))

    def with_labels(self, labels: Any) -> Self:
        """Return the records with what a person says of pairs of them; it takes the place of earlier labels.

        Parameters
        ----------
        labels : path, data frame or dict of columns
            A table with the columns ``record_a``, ``record_b`` and ``answer``, perhaps ``error``; see
            `consilience.data.pair_labels.read_pair_labels`. Several unsure answers to a pair add up.

        Raises
        ------
        InputError : with every problem of the table; among them sure answers that contradict each other.
        """
        found = read_pair_labels(labels, self.records, self.sources)
        code = found.first.astype(np.int64) * self.num_records + found.second
        pair, place = np.unique(code, return_inverse=True)
        if not len(pair):
            return self.replace(labelled=None, label_log_odds=None)
        log_odds = np.bincount(place, found.log_odds)
        pairs = np.stack(np.divmod(pair, self.num_records), axis=1).astype(np.int32)
        return self.replace(labelled=pairs, label_log_odds=log_odds)

    def with_values(self, codes: Sequence[np.ndarray], vocabularies: Sequence[Sequence[str]]) -> Self:
        """Return the records with other values of all fields.

        Parameters
        ----------
        codes : sequence of numpy.ndarray
            Of each field, shape ``(record,)``, into its vocabulary; -1 where missing.
        vocabularies : sequence[sequence of str]
            Of each field its distinct texts, in code order.
        """
        self._check_values_are_free()
        return self.replace(value=np.stack(codes).astype(np.int32), **_joined_vocabularies(vocabularies))

    def _moved(self, dimension: str, permutation: np.ndarray) -> Self:
        if dimension == "field":  # the vocabularies move too
            return self.of_fields(self.fields[np.argsort(permutation)])
        return super()._moved(dimension, permutation)

    def _settled(self) -> Self:
        """Return the records in the order of their files, and the pairs in theirs."""
        order = np.argsort(self.source, kind="stable")
        records = self if (np.diff(order) > 0).all() else super()._moved("record", np.argsort(order))
        if records.labelled is not None:
            pairs = np.sort(records.labelled, axis=1)
            order = np.lexsort(pairs.T[::-1])
            records = records.replace(labelled=pairs[order], label_log_odds=records.label_log_odds[order])
        if records.candidate is None:
            return records
        pairs = np.unique(np.sort(records.candidate, axis=1), axis=0)
        return records.replace(candidate=pairs)

    def repeated(self, number: int) -> Self:
        """Return the records so many times each, the copies with ids of their own.

        Raises
        ------
        UnsupportedRequest : where pairs that may be linked, or labels, are given, which say nothing of copies.
        """
        if self.candidate is not None or self.labelled is not None:
            raise UnsupportedRequest("give the pairs that may be linked, and labels, after repeating the records")
        copies = super().repeated(number)
        names = (f"{name} ({copy + 1})" if copy else name for copy in range(number) for name in self.records)
        return copies.replace(records=object_array(names))._settled()

    def _check_values_are_free(self) -> None:
        if self.near is not None:
            raise UnsupportedRequest("choose fields and equal values before saying which values are similar")

    def _position(self, field: str) -> int:
        found = np.flatnonzero(self.fields == field)
        if not len(found):
            problem = f"there is no field {field!r}; the records have {', '.join(self.fields)}"
            raise Problems(None).fail(problem, "name one of them")
        return int(found[0])

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        found = {"id": self._called(np.arange(self.num_records)[rows], "record")}
        found |= {field: self.column(field)[rows] for field in self.fields}
        if self.num_sources > 1:
            found["source"] = self._called(np.asarray(self.source)[rows], "file")
        return found if self.entity is None else {**found, "entity": self._called(self.entity[rows], "known_entity")}

    @classmethod
    @of_file
    def read(
        cls, sources: Any, *, id: str | None = None, entity: str | None = None, fields: Sequence[str] | None = None,
        missing_values: Sequence[str] = (), columns: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Records:  # fmt: skip
        """Read records that are to be linked.

        Parameters
        ----------
        sources : path, data frame, dict, list of rows, or a list or dict of these
            One source (a path, a data frame or a dict of columns), a list of sources, or a dict ``{name: source}`` of
            paths, data frames or dicts of columns. A record may repeat within a source and across sources.
        id : str, optional
            The column that names each record, unique within a source; by default ``id``, ``record_id`` or ``rec_id``.
            With "row", where no column has that name, the rows are numbered from 1.
        entity : str, optional
            A column with the known entity, for evaluation; it is no field.
        fields : sequence of str, optional
            The columns to compare, in order; by default all others. A source that lacks one has it missing.
        missing_values : sequence of str, optional
            Texts that stand for a missing value besides the empty cell, such as "NA".
        columns : dict, optional
            Other names of columns, ``{source: {column: name}}``. Names that differ in case, blanks, - and _ alone are
            one in any case.

        Returns
        -------
        records
            In the order of the sources. An id that occurs in several sources is written ``source:id``.

        Warns
        -----
        InputWarning : of fields that are empty, or have one value alone, which are kept and carry nothing; and of
            columns of several names that are taken for one.

        Raises
        ------
        InputError : with every problem of all sources. Among them are ids that are empty or occur twice in a source,
            columns that no source has, and records without any value.

        Examples
        --------
        >>> import consilience as cs
        >>> clinic = {"id": ["c1", "c2"], "name": ["Ann", "Bob"], "town": ["Ulm", "Bonn"]}
        >>> register = {"id": ["r1"], "name": ["Ann"], "town": ["Ulm"]}
        >>> records = cs.read_records({"clinic": clinic, "register": register})
        >>> records
        Records(records=3, fields=2, sources=2, values=4)
        >>> records.records.tolist()
        ['c1', 'c2', 'r1']
        """
        return records_and_ids(
            sources, id=id, entity=entity, fields=fields, missing_values=missing_values, columns=columns
        )[0]


read_records = Records.read


def records_and_ids(
    sources: Any, *, id: str | None = None, entity: str | None = None, fields: Sequence[str] | None = None,
    missing_values: Sequence[str] = (), columns: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[Records, dict[str, str]]:  # fmt: skip
    """Read records as `read_records` does; return also the column of each source that named them."""
    named = named_sources(sources)
    tables = {name: read_table(source, all_columns) for name, source in named.items()}
    every = name_columns(tables, columns)
    id_columns = {name: _id_column(table, id) for name, table in tables.items()}
    entity = entity if entity is None else known_as(entity, every)
    if fields is None:
        fields = [column for column in every if column not in {*id_columns.values(), entity}]
    fields = [known_as(field, every) for field in fields]
    _check_fields(tables, fields, entity)
    records = [_record_ids(table, id_columns[name]) for name, table in tables.items()]
    joined = [_join(tables, field, missing_values) for field in fields]
    entities = None if entity is None else _join(tables, entity, ())
    _raise_any(tables)
    _check_values(tables, fields, joined)
    lengths = [table.num_rows for table in tables.values()]
    read = Records(
        value=np.stack([codes for codes, _ in joined]),
        source=np.repeat(np.arange(len(tables), dtype=np.int32), lengths),
        entity=None if entities is None else entities[0],
        num_records=sum(lengths), num_fields=len(joined), num_sources=len(tables),
        records=text_array(_across_sources(records, list(tables))),
        fields=object_array(fields), sources=object_array(tables),
        entities=None if entities is None else text_array(entities[1]),
        **_joined_vocabularies([names for _, names in joined]),
    )  # fmt: skip
    return read, id_columns


def _joined_vocabularies(vocabularies: Sequence[Any]) -> dict[str, Any]:
    """Return the texts of all fields in a row, and where those of each begin."""
    return {
        "first_value": np.cumsum([0, *map(len, vocabularies)]).astype(np.int32),
        "num_values": sum(map(len, vocabularies)),
        "values": object_array(itertools.chain.from_iterable(vocabularies)),
    }


def named_sources(sources: Any) -> dict[str, Any]:
    """Return tables of records by name: as given, or else as their files are called, or by number.

    Raises
    ------
    InputError : there is none.
    """
    if is_rows(sources):
        sources = [sources]
    if isinstance(sources, Mapping) and all(
        isinstance(value, str | os.PathLike | Mapping) or hasattr(value, "columns") for value in sources.values()
    ):
        named = {str(name): source for name, source in sources.items()}
    else:
        listed = list(sources) if isinstance(sources, list | tuple) else [sources]
        stems = [name_of(one) or "" for one in listed]
        distinct = len(set(stems)) == len(stems) and all(stems)
        named = dict(zip(stems if distinct else map(str, range(len(listed))), listed, strict=True))
    if not named:
        raise Problems(None).fail("there is no source of records", "pass at least one file or data frame")
    return named


def _id_column(table: Table, given: str | None) -> str:
    wanted = ("id", *Records.columns[0].aliases) if given is None else (given.strip(),)
    for name in wanted:
        if (column := known_as(name, table.columns)) in table.columns:
            return column
    if given is not None and given.strip().casefold() == _ROW:
        return _ROW
    listed = ", ".join(map(repr, table.columns))
    message = f"there is no column {' or '.join(map(repr, wanted))}; the table has {listed}"
    remedy = "say which column names the records, as in {id}, or number the rows with {id}"
    remedy = meant(given or "id", table.columns) or remedy
    raise table.problems.fail(message, remedy, Remedy("id", "person"), Remedy("id", _ROW), column=given or "id")


def _check_fields(tables: dict[str, Table], fields: Sequence[str], entity: str | None) -> None:
    problems = Problems(_files(tables))
    known = dict.fromkeys(column for table in tables.values() for column in table.columns)
    for field in (*fields, *([] if entity is None else [entity])):
        if field not in known:
            listed = ", ".join(map(repr, known))
            remedy = meant(field, known) or "correct the name"
            problems.add(f"no source has this column; there are {listed}", remedy, column=field)
    if entity in fields:
        problems.add("the known entity would tell the answer", "leave it out of {fields}", _FIELDS, column=entity)
    if len(set(fields)) != len(fields) or not fields:
        problems.add("at least one field is expected, each once", "name the columns to compare in {fields}", _FIELDS)
    problems.raise_any()


def _files(tables: dict[str, Table]) -> str:
    return ", ".join(str(table.problems.file) for table in tables.values())


def _raise_any(tables: dict[str, Table]) -> None:
    """Raise what is wrong with all sources together."""
    found = [problem for table in tables.values() for problem in table.problems.found]
    if found:
        raise InputError(found)


def _check_values(
    tables: dict[str, Table], fields: Sequence[str], columns: Sequence[tuple[np.ndarray, list[str]]]
) -> None:
    """Refuse records without any value, and warn of fields that tell no two records apart."""
    if not any(names for _, names in columns):
        remedy = "name other columns in {fields}, or check {missing_values}"
        message = f"every value of {', '.join(fields)} is missing"
        raise Problems(_files(tables)).fail(message, remedy, _FIELDS, Remedy("missing_values"))
    if len(columns[0][0]) == 1:
        return
    for field, (_, names) in zip(fields, columns, strict=True):
        if len(names) < 2:
            only = f"has no other value than {names[0]!r}" if names else "is empty in every record"
            text = f"the field '{field}' {only}: it carries nothing, and may be left out of {{fields}}"
            warn_input(text, _FIELDS)


def _record_ids(table: Table, id_column: str) -> list[str]:
    if id_column not in table.columns:
        return [str(number) for number in range(1, table.num_rows + 1)]
    codes, names = table.texts(id_column, required=True)
    if len(names) == table.num_rows:  # all differ and none is missing, so they are in the order of the rows
        return names
    again = repeated(codes) & (codes >= 0)
    table.flag(again, id_column, "an earlier record of this source has the same id", "give every record its own id")
    return np.append(object_array(names), [""])[codes].tolist()


def _across_sources(records: Sequence[list[str]], names: Sequence[str]) -> list[str]:
    """Return the ids of all records; one that several sources have is written ``source:id``."""
    if len(records) == 1:
        return records[0]
    joined = list(itertools.chain.from_iterable(records))
    if len(set(joined)) == len(joined):
        return joined
    counts = collections.Counter(joined)
    return [
        record if counts[record] == 1 else f"{name}:{record}"
        for name, own in zip(names, records, strict=True)
        for record in own
    ]


def _join(tables: dict[str, Table], field: str, missing_values: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return one field of all sources as codes into one vocabulary."""
    empty = np.empty(0, np.int32)
    parts = [
        table.texts(field) if field in table.columns else (np.full(table.num_rows, -1, np.int32), [])
        for table in tables.values()
    ]
    if len(parts) == 1 and not any(text in parts[0][1] for text in missing_values):
        return parts[0]
    found = dict.fromkeys(name for _, names in parts for name in names)
    vocabulary = [name for name in found if name not in missing_values]
    joined = np.concatenate([empty, *(recode(codes, names, vocabulary) for codes, names in parts)])
    return np.maximum(joined, -1), vocabulary


def write_records(records: Records, path: str | os.PathLike, *, force: bool = False) -> dict[str, Path]:
    """Write records as CSV files that `read_records` reads.

    The columns are ``id``, the fields, and ``entity`` where entities are known; a missing value is an empty cell.

    Parameters
    ----------
    records : Records
        Of one or several sources.
    path : str or path
        A folder, in which every source becomes ``source.csv``; or, for records of one source, a file ending in
        ``.csv``, or ``-`` for standard output. Files appear when all are complete.
    force : bool, default False
        Replace files that exist.

    Returns
    -------
    paths
        The file of each source, by the source's name: ``read_records(paths, entity="entity")`` gives the records back,
        with codes in the order of their first appearance.

    Raises
    ------
    UnsupportedRequest : where names of fields or sources cannot stand in such files.
    OutputRefused : where a file must not be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> records = cs.read_records({"id": ["r1", "r2"], "name": ["Ann", "Bob"], "town": ["Ulm", "Bonn"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = cs.write_records(records, path)
    ...     print(path.read_text().strip())
    id,name,town
    r1,Ann,Ulm
    r2,Bob,Bonn
    """
    to_file = os.fspath(path) == STANDARD_OUTPUT or Path(path).suffix.lower() == ".csv"
    _check_names(records, to_file)
    columns = {"id": records.records, **{field: records.column(field) for field in records.fields}}
    if records.entity is not None:
        columns["entity"] = np.append(np.asarray(records.entities, object), [None])[records.entity]
    first = np.searchsorted(records.source, np.arange(records.num_sources + 1))

    def write(stream: BinaryIO, code: int) -> None:
        rows = slice(first[code], first[code + 1])
        with text_stream(stream) as text:
            writer = csv.writer(text)
            writer.writerow(map(as_written, columns))
            cells = ([one and as_written(one) for one in column[rows].tolist()] for column in columns.values())
            writer.writerows(zip(*cells, strict=True))

    if to_file:
        return {records.sources[0]: write_output(path, functools.partial(write, code=0), force=force)}
    files = {f"{name}.csv": functools.partial(write, code=code) for code, name in enumerate(records.sources)}
    return {name.removesuffix(".csv"): one for name, one in write_folder(path, files, force=force).items()}


def _check_names(records: Records, to_file: bool) -> None:
    if records.records is None:
        raise UnsupportedRequest("these records went through JAX and have no names; write those that were read")
    if to_file and records.num_sources > 1:
        raise UnsupportedRequest(f"there are {records.num_sources} sources; give a folder, not one file")
    reserved = {"id"} | ({"entity"} if records.entity is not None else set())
    for field in records.fields:
        if field.casefold() in reserved:
            raise UnsupportedRequest(f"a field is called {field!r}, as a column that is not one; rename it")
    for name in () if to_file else records.sources:
        if not name or Path(name).name != name:
            raise UnsupportedRequest(f"the source {name!r} cannot name a file; read the sources under other names")
