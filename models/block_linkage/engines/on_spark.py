"""Spark as an engine: what is to be done is divided among the executors of a cluster."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from consilience.errors import NotInstalled

_BYTES = 340            # of a record that are shuffled, in all (keys 180, pairs 46, values of both ends 110)
_PARTITION = 128 << 20  # bytes, a usual size
_BATCH = 65_536


class Spark:
    """Spark as an `Engine`; ``Rows`` are its data frames.

    Parameters
    ----------
    session, partitions : see `consilience.engines.spark`.

    Raises
    ------
    NotInstalled : the Python of the executors lacks pyarrow or Consilience.
    """

    name = "spark"

    def __init__(self, session: Any, partitions: int | None) -> None:
        self._session = session or SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        self._partitions, self._number = partitions, itertools.count()
        self._session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _BATCH)
        self._session.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
        # Spark takes the keys for as few as the records, and would broadcast what does not fit its memory.
        self._session.conf.set("spark.sql.autoBroadcastJoinThreshold", -1)
        self._check_executors()

    def _check_executors(self) -> None:
        """Run a job of one row: what Spark says of a missing package names no remedy."""
        try:
            self._session.range(1, numPartitions=1).mapInArrow(_unchanged, "id long").collect()
        except Exception as problem:
            missing = re.search(r"No module named '(\w+)", str(problem))
            if missing is None:
                raise
            raise NotInstalled(
                f"the Python of Spark's executors has no {missing[1]}: set PYSPARK_PYTHON to an interpreter that has "
                "pyarrow and consilience, before the session starts"
            ) from problem

    def table(self, table: Any) -> Any:
        """Return rows of a `pyarrow.Table`, or of a `pyarrow.RecordBatchReader`, which is read now."""
        table = table.read_all() if hasattr(table, "read_all") else table
        partitions = self._partitions or max(-(-table.num_rows * _BYTES // _PARTITION), 2)
        self._session.conf.set("spark.sql.shuffle.partitions", partitions)
        return self._session.createDataFrame(table).repartition(partitions)

    def map(self, rows: Any, function: Callable[[Any], Iterable[Any]], schema: Any) -> Any:
        """Return the rows of the batches that a function of a `pyarrow.RecordBatch` yields; it travels by broadcast."""
        from pyspark.sql.pandas.types import from_arrow_schema

        sent = self._session.sparkContext.broadcast(function)
        return rows.mapInArrow(functools.partial(_of_batches, sent=sent), from_arrow_schema(schema))

    def sql(self, statement: str, **rows: Any) -> Any:
        """Return the rows of a SELECT in which ``{name}`` stands for those given under this name."""
        names = {name: f"consilience_rows{next(self._number)}" for name in rows}
        for name, view in names.items():
            rows[name].createOrReplaceTempView(view)
        try:
            return self._session.sql(statement.format(**names))
        finally:
            for view in names.values():
                self._session.catalog.dropTempView(view)

    def persist(self, rows: Any) -> Any:
        """Return the same rows, computed once; the plan that made them is forgotten."""
        return rows.localCheckpoint()

    def collect(self, rows: Any, order: Sequence[str]) -> Any:
        """Return a `pyarrow.Table` of rows, in increasing order of integer columns."""
        found = rows.toArrow()
        return found.take(np.lexsort([found[name].to_numpy() for name in reversed(order)]))

    def own(self, rows: Any) -> Any:
        """Return rows as they are, a data frame."""
        return rows


def _of_batches(batches: Iterator[Any], *, sent: Any) -> Iterator[Any]:
    """Go through batches, in an executor, by the function that was sent there."""
    for batch in batches:
        yield from sent.value(batch)


def _unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    """Return batches as they came: an executor has to import this module and pyarrow to do so."""
    yield from batches
