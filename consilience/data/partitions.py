"""Partitions: which records a system, or a person, says are of one entity."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consilience.data.codes import Names, as_names, check_codes, names_or_codes, object_array, recode, repeated
from consilience.data.columns import Column, choose_columns
from consilience.data.contract import Contract, array, ids, of_file, size
from consilience.data.files import name_of
from consilience.data.problems import Problems, check_option, counted, warn_input
from consilience.data.tables import read_table
from consilience.notes import Remedy


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Partition(Contract):
    """The entity of each record; made by `read_partition` or `from_codes`.

    Parameters
    ----------
    entity : int32, shape ``(record,)``
        Code into ``entities``, equal where records are together; -1 where unknown.
    num_records, num_entities : int
        sizes.
    records, entities : sequence, optional
        Object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.
    name : str, optional
        What to call the partition in tables.

    Examples
    --------
    >>> import consilience as cs
    >>> partition = cs.Partition.from_codes([0, 0, 1], records=["r1", "r2", "r3"], name="by hand")
    >>> partition
    Partition(records=3, entities=2)
    >>> partition.entity.tolist()
    [0, 0, 1]
    """

    columns = (
        Column("record", ("id", "record_id", "rec_id"), "record", "the record"),
        Column("entity", ("cluster", "entity_id", "cluster_id"), "entity", "equal where records are together"),
    )
    reader = "read_partition"
    kind: ClassVar[str] = "partition"

    entity: Any = array()
    num_records: int = size()
    num_entities: int = size()
    records: Any = ids("record")
    entities: Any = ids("entity")
    name: Any = ids()

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        codes = {"record": np.arange(self.num_records), "entity": np.asarray(self.entity)}
        return {name: self._called(values[rows], name) for name, values in codes.items()}

    @classmethod
    def from_codes(
        cls, entity: ArrayLike, *, records: Names | None = None, name: str | None = None, checked: bool = False
    ) -> Self:
        """Take whole numbers that are equal where records are together.

        Parameters
        ----------
        entity : shape ``(record,)``
            -1 where the entity of a record is unknown.
        records : Names, optional
            Ids in order; the positions as texts where absent.
        name : str, optional
            What to call the partition.
        checked : bool, default False
            Whether the ids are those of a contract, distinct texts in an object array.
        """
        problems = Problems("the partition")
        codes = check_codes(problems, "entity", entity, None, lowest=-1)
        if records is not None and len(records) != len(codes):
            problems.add(f"there are {len(codes)} entries but {len(records)} ids of records", "make them agree")
        problems.raise_any()
        rank, used = _ranked(codes)
        return cls(
            entity=rank,
            num_records=len(codes),
            num_entities=len(used),
            records=records if checked and records is not None else names_or_codes(records, len(codes), "records"),
            entities=object_array(map(str, used.tolist())),
            name="partition" if name is None else str(name),
        )

    def align(self, records: Names, *, missing: str = "error", unknown: str = "error") -> np.ndarray:
        """Return the entities of the records of a data set. Ids are compared as texts.

        Parameters
        ----------
        records : Names
            The ids of the data set, in code order.
        missing : str, default "error"
            "error", or "drop" where records of the data set without an entity are not to be evaluated.
        unknown : str, default "error"
            "error" (a guard against typing errors), or "keep": records that the data set does not have are left out
            with a warning.

        Returns
        -------
        entity
            int32, shape ``(record,)``; -1 where it is missing.
        """
        check_option("missing", missing, ("error", "drop"))
        check_option("unknown", unknown, ("error", "keep"))
        problems = Problems(f"partition '{self.name}'")
        foreign: list[str] = []
        if len(records) == self.num_records and np.all(np.asarray(records) == self.records):  # as of a fit's own data
            names, entity = self.records, np.asarray(self.entity)
        else:
            names = object_array(as_names(records, "records"))
            place = recode(np.arange(len(names)), names, self.records)
            entity = np.append(self.entity, -1)[np.maximum(place, -1)]
            known = set(names)
            foreign = [name for name in self.records if name not in known]
        absent = names[entity < 0].tolist()
        if missing == "error" and absent:
            remedy = "pass {missing} to leave them out"
            problems.add(counted("records of the data have no entity", absent), remedy, Remedy("missing", "drop"))
        if unknown == "error" and foreign:
            remedy = "correct them, or pass {unknown} to leave them out"
            problems.add(counted("records are not in the data", foreign), remedy, Remedy("unknown", "keep"))
        if len(absent) == len(names):
            problems.add("no record of the data has an entity", "check that the ids of the records agree")
        problems.raise_any()
        if foreign:
            warn_input(counted("records are not in the data and were left out", foreign))
        return entity

    @classmethod
    @of_file
    def read(
        cls,
        source: Any, *, columns: Mapping[str, str] | None = None, name: str | None = None, missing: str = "error"
    ) -> Partition:
        """Read which records a system says are of one entity.

        Parameters
        ----------
        source : path, data frame, dict of columns or list of rows
            A path (CSV, TSV, JSON, JSON lines, Parquet), a data frame or a dict of columns, with the columns record (or
            id) and entity (or cluster), and one row a record.
        columns : dict of str to str, optional
            Column names for "record" and "entity" where the table has names of its own.
        name : str, optional
            What to call the partition; by default the name of the file without its ending.
        missing : str, default "error"
            "error", or "drop" to take rows with an empty entity for records of which nothing is said.

        Returns
        -------
        partition
            Records and entities in the order of their first appearance.

        Examples
        --------
        >>> import consilience as cs
        >>> partition = cs.read_partition({"record": ["r1", "r2", "r3"], "entity": ["Ann", "Ann", "Bob"]})
        >>> partition
        Partition(records=3, entities=2)
        >>> partition.entity.tolist()
        [0, 0, 1]
        """
        check_option("missing", missing, ("error", "drop"))
        table = read_table(source, choose_columns(Partition.columns, columns), units=("record", "entity"))
        record, records = table.texts("record", required=True)
        entity, entities = table.texts("entity")
        again = repeated(record) & (record >= 0)
        table.flag(again, "record", "an earlier row has the same record", "give every record one entity")
        empty = table.empty("entity")
        if missing == "error":
            remedy = "fill it in (an entity of its own where it is alone), or pass {missing}"
            table.flag(empty, "entity", "the entity is empty", remedy, Remedy("missing", "drop"))
        table.problems.raise_any()
        if empty.any():
            text = f"{empty.sum():,} rows without an entity were taken for unknown ({{missing}})"
            warn_input(text, Remedy("missing", "drop"))
        name = name_of(source) if name is None else name
        return Partition(
            entity=entity, num_records=len(records), num_entities=len(entities), records=object_array(records),
            entities=object_array(entities), name="partition" if name is None else str(name),
        )  # fmt: skip


read_partition = Partition.read


def _ranked(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank of each code among those that occur, int32, -1 where it is -1; and these codes, increasing."""
    if codes.max(initial=-1) > 2 * len(codes):
        used = np.unique(codes[codes >= 0])
        return np.where(codes >= 0, np.searchsorted(used, codes), -1).astype(np.int32), used
    # A table in the place of a sort.
    occurs = np.bincount(codes + 1, minlength=1)[1:] > 0
    rank = np.append(np.cumsum(occurs, dtype=np.int32) - 1, np.int32(-1))
    return rank[codes], np.flatnonzero(occurs)
