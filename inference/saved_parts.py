"""Fits of data that several processes share: each writes the labels of its own items, and the first one the rest.

A process writes ``labels-r.parquet``: ids of its items, and a column for each class of what is known of them.
``fit.json`` names the folder of the annotations, which stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from consilience.data.coded import over_processes, places_of, read_coded
from consilience.data.coding import imported_duckdb
from consilience.data.contract import Contract
from consilience.data.files import digest
from consilience.errors import InputError, InvalidFit, OutputRefused
from consilience.inference.processes import agreed, is_first
from consilience.inference.run_folder import labels_file

_FAILED = b" " * 64


def save_parts(fit: Any, target: Path, prepare: Callable[[], None], finish: Callable[[dict[str, Any]], None]) -> None:
    """Write a fit; all processes have to call.

    Parameters
    ----------
    fit : of `ShardedAnnotations`.
    target : the folder.
    prepare : makes it, in the first process.
    finish : writes all else, in the first process, with these further entries of ``fit.json``.

    Raises
    ------
    OutputRefused : the folder cannot be made, or a process cannot write to it.
    """
    _in_first(prepare, f"{target} cannot be made; the first process says why")
    problem, own = None, _FAILED
    try:
        own = _write_labels(fit, target).encode()
    except Exception as error:  # told to the others, which wait
        problem = error
    digests = [bytes(one) for one in over_processes(np.frombuffer(own, np.uint8))]
    if _FAILED in digests:
        text = f"process {digests.index(_FAILED)} could not write to {target}; all need the same folder"
        raise OutputRefused(text) from problem
    shards = {"folder": fit.data.folder, "sha256": fit.data.sha256}
    entries = {"shards": shards, "labels_sha256": [one.decode() for one in digests]}
    _in_first(lambda: finish(entries), f"{target} could not be written; the first process says why")


def _in_first(work: Callable[[], None], refused: str) -> None:
    """Let the first process work, while the others wait; all raise where it does."""
    problem: Exception | None = None
    if is_first():
        try:
            work()
        except Exception as error:
            problem = error
    fine = agreed(problem is None)
    if problem is not None:
        raise problem
    if not fine:
        raise OutputRefused(refused)


def _write_labels(fit: Any, target: Path) -> str:
    """Write what the posterior knows of this process's items, and return the SHA-256 of the file."""
    import jax
    import pandas

    columns: dict[str, Any] = {"id": fit.data.items}
    for name, values in fit.hidden_of_items.items():
        columns |= {f"{name}.{place}": values[:, place] for place in range(values.shape[1])}
    path = target / labels_file(jax.process_index())
    with imported_duckdb().connect() as database:
        database.register("labels", pandas.DataFrame(columns))
        database.execute(f"COPY labels TO '{str(path).replace(chr(39), 2 * chr(39))}' (FORMAT parquet)")
    return digest(path)


def joined(folder: Path, text: Mapping[str, Any]) -> tuple[Contract, dict[str, np.ndarray]]:
    """Return the annotations of all processes, and what the posterior knows of the items, by name.

    Raises
    ------
    InvalidFit : files are missing or were changed, or the annotations are gone.
    """
    shards, digests = text["shards"], text["labels_sha256"]
    try:
        data = read_coded(shards["folder"], shards["sha256"])
        places = [places_of(shards["folder"], process, len(digests)) for process in range(len(digests))]
    except InputError as problem:
        raise InvalidFit(f"{folder}: the annotations of this fit cannot be read: {problem}") from None
    found: dict[str, np.ndarray] = {}
    for process, (place, sha256) in enumerate(zip(places, digests, strict=True)):
        path = folder / labels_file(process)
        if not path.is_file() or digest(path) != sha256:
            raise InvalidFit(f"{path} is missing, or was changed after it was written; fit again")
        with imported_duckdb().connect() as database:
            own = database.execute("SELECT * EXCLUDE (id) FROM read_parquet($1)", [str(path)]).fetchnumpy()
        for name in dict.fromkeys(column.rpartition(".")[0] for column in own):
            values = np.stack([own[column] for column in own if column.rpartition(".")[0] == name], axis=1)
            whole = found.setdefault(name, np.empty((data.num_items, values.shape[1]), values.dtype))
            whole[place] = values
    return data, found
