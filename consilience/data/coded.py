"""Annotations that `code` put into a folder of parts: read whole, or by each of several processes its own parts."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from consilience.data.annotations import Annotations
from consilience.data.codes import object_array, ones
from consilience.data.coding import FORMAT, imported_duckdb
from consilience.data.files import MANIFEST, digest
from consilience.data.problems import Problems
from consilience.errors import UnsupportedRequest


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ShardedAnnotations(Annotations):
    """The annotations of one process of several: its own items, and the annotators and labels of all; by `shards`.

    Parameters
    ----------
    folder : that they were read from.
    sha256 : of its manifest, the same in all processes.
    """

    is_whole: ClassVar[bool] = False
    folder: str = ""
    sha256: str = ""

    def total(self, values: Any) -> np.ndarray:
        """Return the sum of what each process counted; all have to call."""
        return over_processes(values).sum(axis=0)

    def fingerprint(self) -> str:
        """Return what stands for the data of all processes."""
        return self.sha256


def over_processes(values: Any) -> np.ndarray:
    """Return what each process has, ``(process, …)``, in all digits; all processes have to call."""
    import jax
    from jax.experimental import multihost_utils

    own = np.asarray(values)
    # As bytes: JAX would round float64 where it is not switched on.
    found = np.asarray(multihost_utils.process_allgather(np.frombuffer(own.tobytes(), np.uint8)))
    return found.reshape(jax.process_count(), -1).view(own.dtype).reshape(-1, *own.shape)


def shards(folder: str | os.PathLike) -> Annotations:
    r"""Read this process's parts of a folder that `code` wrote, after ``jax.distributed.initialize``.

    Of R processes, process r reads the parts r, r + R, …, and no other. What it reads goes to `consilience.fit`, which
    all processes call. One process alone reads all.

    Parameters
    ----------
    folder : str or path
        The same in all processes; each needs ``manifest.json``, ``annotators.parquet``, ``labels.parquet`` and its own
        parts of it.

    Returns
    -------
    annotations
        The items of the process, and the annotators and labels of all.

    Raises
    ------
    InputError : the folder is torn, or no such folder.
    UnsupportedRequest : there are more processes than parts, or DuckDB is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "crowd.csv")
    ...     _ = table.write_text("item,annotator,label\na,Ann,yes\na,Bob,yes\nb,Ann,no\n")
    ...     cs.shards(cs.code(table, Path(folder, "coded"), shards=2))
    Annotations(annotations=3, items=2, annotators=2, labels=2)
    """
    import jax

    process, number = jax.process_index(), jax.process_count()
    if number == 1:
        return read_coded(folder)
    text, sha256 = _manifest(Path(folder))
    if number > (there := len(text["shards"])):
        raise UnsupportedRequest(f"{folder} has {there} parts for {number} processes; code the tables into more parts")
    fields = _read(Path(folder), text, range(process, there, number))
    return ShardedAnnotations(**fields, folder=str(Path(folder).resolve()), sha256=sha256)


def read_coded(folder: str | os.PathLike, sha256: str | None = None) -> Annotations:
    """Read all parts, as the tables they were made of would be read.

    Parameters
    ----------
    folder : that `code` wrote.
    sha256 : that its manifest must have; None for any.

    Raises
    ------
    InputError : the folder is torn or another one.
    UnsupportedRequest : DuckDB is not installed.
    """
    text, found = _manifest(Path(folder))
    if sha256 not in (None, found):
        raise Problems(str(folder)).fail("this folder holds other annotations", "code the same tables again")
    return Annotations(**_read(Path(folder), text, range(len(text["shards"]))))


def places_of(folder: str | os.PathLike, process: int, number: int) -> np.ndarray:
    """Return which items one of so many processes has, as codes into those of all, in its own order.

    Raises
    ------
    InputError : the folder is torn.
    """
    sizes = [part["items"] for part in _manifest(Path(folder))[0]["shards"]]
    begin = np.cumsum([0, *sizes])
    return np.concatenate([np.arange(begin[part], begin[part + 1]) for part in range(process, len(sizes), number)])


def _manifest(folder: Path) -> tuple[dict[str, Any], str]:
    problems = Problems(str(folder / MANIFEST))
    try:
        content = (folder / MANIFEST).read_bytes()
        text = json.loads(content)
        version = text["format"]
    except OSError as error:
        remedy = "give the folder that `consilience code` wrote"
        raise problems.fail(f"the file cannot be read ({error.strerror})", remedy) from None
    except (ValueError, KeyError, TypeError):
        raise problems.fail("this is no manifest of coded annotations", "code the tables again") from None
    if version != FORMAT:
        raise problems.fail(f"the folder has format {version}; this version reads {FORMAT}", "code the tables again")
    return text, hashlib.sha256(content).hexdigest()


def _read(folder: Path, text: dict[str, Any], parts: Iterable[int]) -> dict[str, Any]:
    """Return the fields of annotations of some parts: items in the order of the parts, rows in that of the source."""
    duckdb = imported_duckdb()

    def columns(name: str) -> dict[str, np.ndarray]:
        path, problems = folder / name, Problems(str(folder / name))
        try:
            same = digest(path) == text["sha256"][name]
        except OSError as error:
            remedy = "copy it here, or code the tables again"
            raise problems.fail(f"the file cannot be read ({error.strerror})", remedy) from None
        if not same:
            raise problems.fail("the file was changed or torn after it was written", "code the tables again")
        with duckdb.connect() as database:
            found = database.execute("SELECT * FROM read_parquet($1)", [str(path)]).fetchnumpy()
        return {column: np.asarray(values) for column, values in found.items()}

    annotators, labels = columns("annotators.parquet"), columns("labels.parquet")["id"]
    items = [columns(f"items-{part}.parquet") for part in parts]
    begin = np.cumsum([0, *(len(one["id"]) for one in items)])
    found = [columns(f"part-{part}.parquet") for part in parts]
    for own, first in zip(found, begin, strict=False):
        own["item"] = (own["item"] + first).astype(np.int32)
    rows = {name: np.concatenate([own.pop(name) for own in found]) for name in list(found[0])}
    order = np.argsort(rows.pop("row"), kind="stable")
    rows = {name: values[order] for name, values in rows.items()}
    gold = np.concatenate([one["gold"] for one in items]).astype(np.int32) if text["gold"] else None
    groups, group = text["groups"], None
    if groups is not None:
        code = {name: number for number, name in enumerate(groups)}
        group = np.array([code.get(name, -1) for name in annotators["group"]], np.int32)
    return {
        **rows, "weight": rows.get("weight", ones(len(order))), "gold": gold, "group": group,
        "num_annotations": len(order), "num_items": int(begin[-1]), "num_annotators": len(annotators["id"]),
        "num_labels": len(labels), "items": object_array(np.concatenate([one["id"] for one in items]).tolist()),
        "annotators": object_array(annotators["id"].tolist()), "labels": object_array(labels.tolist()),
        "groups": None if groups is None else object_array(groups),
    }  # fmt: skip
