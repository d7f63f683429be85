"""Simulated records as files, and splink run on them, for the benchmarks `linkage` and `linkage_strings`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed import last_line
from consilience.arrays import Int

THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99)
"""Of the probability of a pair: clusters are made at each, and the best F1 is that of the best of them."""

PEERS = Path(__file__).with_name("linkage_peers.py")
"""What other interpreters run."""


def write_simulated(path: Path, number: int, simulated: Mapping[str, Any], seed: int = 0) -> None:
    """Write simulated records as a CSV file with the columns ``id``, the fields, and ``entity``.

    Parameters
    ----------
    path : of the file.
    number : of records.
    simulated : further settings of the simulation.
    seed : of the random numbers.
    """
    import pandas

    from consilience.models.block_linkage import simulate

    data, _ = simulate(seed, num_records=number, **simulated)
    columns = {"id": data.records, **{field: data.column(field) for field in data.fields}}
    pandas.DataFrame({**columns, "entity": data.entities[data.entity]}).to_csv(path, index=False)


def entities(path: Path) -> Int[np.ndarray, " record"]:
    """Return the true entities of the records of such a file, as codes."""
    import pandas

    return pandas.factorize(pandas.read_csv(path, dtype=str, usecols=["entity"])["entity"])[0]


def calibration_rows(pairs: Any, entity: Int[np.ndarray, " record"]) -> list[dict[str, Any]]:
    """Return how often pairs of about the same probability are of one entity, as `benchmarks` records it.

    Parameters
    ----------
    pairs : first record, second record and probability of each.
    entity : of each record.
    """
    from consilience.evaluation.reliability import reliability_of_pairs

    names = {"items": "pairs", "certainty": "predicted", "right": "observed"}
    return list(reliability_of_pairs(pairs, entity).rename(columns=names)[list(names.values())].to_dict("records"))


def run_splink(python: str, path: Path, *words: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Link a file with splink.

    Parameters
    ----------
    python : an interpreter that has it.
    path : of the file.
    words : what of `linkage_peers` is run.

    Returns
    -------
    what it prints, and by name what it writes: the clusters at each threshold, and pairs where words ask for these.

    Raises
    ------
    subprocess.CalledProcessError : it failed.
    """
    target = path.with_suffix(".npz")
    row = last_line([python, "-I", str(PEERS), *words, str(path), str(target), *map(str, THRESHOLDS)], echo=True)
    with np.load(target) as found:
        return row, dict(found)
