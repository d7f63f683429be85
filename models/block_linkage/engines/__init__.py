"""Engines: what goes through tables of records, keys, pairs and parts where memory or one machine would not do.

NumPy alone is ``local``, the default: `consilience.models.block_linkage.keys`, `parts` and `em` on arrays. DuckDB keeps
what does not fit memory on disk, and Spark divides it among machines. Both run the statements of `stages`, one text,
and hand batches of rows to the same functions of arrays; so all find the same pairs, parts and probabilities. On the
driver are in any case the codes of the records, the candidates with their log odds, and the outcome.

| file | what it holds |
|---|---|
| `stages` | what an engine is asked for: keys, pairs that share one, their log odds, parts, all partitions of a part |
| `on_duckdb`, `on_spark` | the two engines |
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from consilience.errors import NotInstalled, UnknownName, UnsupportedRequest
from consilience.notes import Remedy

_MANY = 200_000_000  # values, from which memory would not do


@runtime_checkable
class Engine(Protocol):
    """What linkage asks of an engine; ``Rows`` are the engine's own lazy table, batches and tables those of pyarrow.

    Keys of 64 bits are signed, with the same bits, as Spark knows no unsigned type.
    """

    name: str

    def table(self, table: Any) -> Any:
        """Return rows of a `pyarrow.Table`, or of a `pyarrow.RecordBatchReader`, which is read now."""

    def map(self, rows: Any, function: Callable[[Any], Iterable[Any]], schema: Any) -> Any:
        """Return the rows of the batches that a function of a `pyarrow.RecordBatch` yields; it can be pickled."""

    def sql(self, statement: str, **rows: Any) -> Any:
        """Return the rows of a SELECT in which ``{name}`` stands for those given under this name."""

    def persist(self, rows: Any) -> Any:
        """Return the same rows, computed once."""

    def collect(self, rows: Any, order: Sequence[str]) -> Any:
        """Return a `pyarrow.Table` of rows, in increasing order of integer columns."""

    def own(self, rows: Any) -> Any:
        """Return rows as users of the engine know them."""


class Kept:
    """A table of a fit that its engine keeps.

    Parameters
    ----------
    engine : that keeps it.
    rows : the engine's own, with a column ``row`` of whole numbers in the order of the table.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.link(cs.simulate_records(1000, seed=1), engine="duckdb")
    >>> fit.entities()
    Kept(1,000 rows in duckdb: row, record, entity, certainty, file, original_id)
    >>> len(fit.entities().rows.filter("certainty < .9").fetchall()) < 500
    True
    >>> fit.entities().to_arrow().num_rows
    1000
    """

    def __init__(self, engine: Engine, rows: Any) -> None:
        self._engine, self._rows = engine, rows

    @property
    def rows(self) -> Any:
        """A `duckdb.DuckDBPyRelation`, which is there as long as the fit is, or a `pyspark.sql.DataFrame`."""
        return self._engine.own(self._rows)

    def to_arrow(self) -> Any:
        """Return the table, in memory, as a `pyarrow.Table`."""
        return self._engine.collect(self._rows, ["row"]).drop_columns("row")

    def __repr__(self) -> str:
        number = self._engine.sql("SELECT count(*) AS number FROM {rows}", rows=self._rows)
        number = self._engine.collect(number, ["number"])["number"][0].as_py()
        return f"Kept({number:,} rows in {self._engine.name}: {', '.join(self.rows.columns)})"


def duckdb(memory: str = "8GB", threads: int | None = None, folder: str | os.PathLike | None = None) -> Engine:
    """Return DuckDB as an engine: one machine, tables beyond its memory.

    Parameters
    ----------
    memory : of the tables, such as "8GB"; the arrays of the driver come on top (`docs/guides/linkage.md`).
    threads : all cores by default.
    folder : for what does not fit memory; a temporary one by default, where Python's `tempfile` makes it.

    Raises
    ------
    NotInstalled : DuckDB or pyarrow is missing; the text says how to install it.
    UnsupportedRequest : the memory is not written as a number and a unit.

    Examples
    --------
    >>> import consilience as cs
    >>> records = cs.simulate_records(1000, seed=1)
    >>> fit = cs.link(records, engine=cs.engines.duckdb(memory="1GB"))
    >>> fit.entities().to_arrow()["entity"].to_pylist() == cs.link(records).entities()["entity"].tolist()
    True
    """
    _check_installed("duckdb", "duckdb", "pyarrow")
    from consilience.models.block_linkage.engines.on_duckdb import DuckDB

    return DuckDB(memory, threads, folder)


def spark(session: Any = None, partitions: int | None = None) -> Engine:
    """Return Spark as an engine: a cluster, or a test of one on this machine.

    Parameters
    ----------
    session : a ``SparkSession``; by default the active one, or a new one.
    partitions : of what is shuffled; by default one for each 128 MB, at 340 bytes a record.

    Raises
    ------
    NotInstalled : pyspark or pyarrow is missing, here or in the Python of the executors; the text says what to do.
    """
    _check_installed("spark", "pyspark", "pyarrow")
    from consilience.models.block_linkage.engines.on_spark import Spark

    return Spark(session, partitions)


def engine_of(engine: Any, num_values: int) -> Engine | None:
    """Return the engine of a name or the object itself; None stands for arrays in memory.

    Parameters
    ----------
    engine : "auto", "local", "duckdb", "spark", an engine, or None, which is auto.
    num_values : of the records, those of all fields.

    Raises
    ------
    UnknownName : there is no such engine.
    UnsupportedRequest : what was given is no engine.
    NotInstalled : the engine's package is missing.
    """
    if engine is None or engine == "auto":
        large = num_values > _MANY and all(map(importlib.util.find_spec, ("duckdb", "pyarrow")))
        return duckdb() if large else None
    if engine == "local":
        return None
    if isinstance(engine, str):
        if engine not in ("duckdb", "spark"):
            raise UnknownName(f"no engine is called {engine!r}; give auto, local, duckdb or spark")
        return duckdb() if engine == "duckdb" else spark()
    if not isinstance(engine, Engine):
        text = f"{{engine}} is a {type(engine).__name__}; give a name, cs.engines.duckdb(…) or cs.engines.spark(…)"
        raise UnsupportedRequest(text, Remedy("engine"))
    return engine


def _check_installed(extra: str, *packages: str) -> None:
    """Refuse an engine whose packages are missing."""
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise NotInstalled(f"{' and '.join(missing)} is not installed: pip install 'consilience[{extra}]'")
