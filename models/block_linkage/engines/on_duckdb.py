"""DuckDB as an engine: what does not fit its memory goes to temporary files; functions see one batch at a time."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from consilience.errors import UnsupportedRequest
from consilience.notes import Remedy

_BATCH = 65_536
_SHARE = 0.65   # of the memory, as its limit: batches in Arrow come on top, and it goes beyond for a while


class _Rows:
    """A table of DuckDB, or a SELECT of others, which stay as long as it is needed."""

    def __init__(self, text: str, *others: _Rows) -> None:
        self.text, self.others = text, others


class DuckDB:
    """DuckDB as an `Engine`.

    Parameters
    ----------
    memory, threads, folder : see `consilience.engines.duckdb`.

    Raises
    ------
    UnsupportedRequest : the memory is not written as a number and a unit.
    """

    name = "duckdb"

    def __init__(self, memory: str, threads: int | None, folder: str | os.PathLike | None) -> None:
        size = re.fullmatch(r"\s*(\d+\.?\d*)\s*([KMGT]i?B)\s*", memory)
        if size is None:
            text = f"{{memory}} is {memory!r}; give a number and a unit, such as 8GB"
            raise UnsupportedRequest(text, Remedy("memory"))
        path = tempfile.mkdtemp(prefix="consilience-", dir=folder)
        weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
        limit = f"{_SHARE * float(size[1]):.3f}{size[2]}"
        own: dict[str, Any] = {} if threads is None else {"threads": threads}
        config = {"memory_limit": limit, "temp_directory": path, "preserve_insertion_order": False, **own}
        self._connection = duckdb.connect(config=config)
        self._number = itertools.count()

    def table(self, table: Any) -> Any:
        """Return rows of a `pyarrow.Table`, or of a `pyarrow.RecordBatchReader`, which is read now."""
        return self._stored(table)

    def map(self, rows: Any, function: Callable[[Any], Iterable[Any]], schema: Any) -> Any:
        """Return the rows of the batches that a function of a `pyarrow.RecordBatch` yields; they are computed now."""
        read = self._cursor(f"FROM {rows.text}").to_arrow_reader(_BATCH)
        batches = (found for batch in read for found in function(batch))
        return self._stored(pa.RecordBatchReader.from_batches(schema, batches))

    def sql(self, statement: str, **rows: Any) -> Any:
        """Return the rows of a SELECT in which ``{name}`` stands for those given under this name."""
        return _Rows(f"({statement.format(**{name: own.text for name, own in rows.items()})})", *rows.values())

    def persist(self, rows: Any) -> Any:
        """Return the same rows, computed once."""
        return self._created(f"FROM {rows.text}") if rows.text.startswith("(") else rows

    def collect(self, rows: Any, order: Sequence[str]) -> Any:
        """Return a `pyarrow.Table` of rows, in increasing order of integer columns."""
        found = self._cursor(f"FROM {rows.text}").to_arrow_table()
        # Not by the engine: once, rows of an ORDER BY came through Arrow in another order.
        return found.take(np.lexsort([found[name].to_numpy() for name in reversed(order)]))

    def own(self, rows: Any) -> Any:
        """Return rows as a relation."""
        return self._cursor(f"FROM {rows.text}")

    def _stored(self, source: Any) -> _Rows:
        return self._created("FROM source", source)

    def _created(self, select: str, source: Any = None) -> _Rows:
        """Make a table; it is dropped when nobody has it any longer."""
        name = f"rows{next(self._number)}"
        cursor = self._connection.cursor()
        if source is not None:
            cursor.register("source", source)
        cursor.execute(f"CREATE TABLE {name} AS {select}").fetchall()
        cursor.close()
        rows = _Rows(name)
        weakref.finalize(rows, _drop, self._connection, name)
        return rows

    def _cursor(self, select: str) -> Any:
        # A reader of its own: DuckDB refuses a second statement while a result is unread.
        return self._connection.cursor().sql(select)


def _drop(connection: Any, name: str) -> None:
    cursor = connection.cursor()
    cursor.execute(f"DROP TABLE {name}").fetchall()
    cursor.close()
