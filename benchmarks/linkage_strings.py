"""Linkage of records with misspelt names: by similarity and by equality, beside splink with Jaro–Winkler comparisons.

`python -m benchmarks linkage_strings [--splink PYTHON] [--simulated N …] [--large]`. Every system links the same CSV
files, each in a fresh process, and is scored alike: pairs at its own threshold and at the best one, calibration,
seconds and memory.

`python -m benchmarks.linkage_strings RECORDS MODE` measures this library in such a process.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.linkage_data import THRESHOLDS, calibration_rows, entities, run_splink, write_simulated
from benchmarks.recording import Recording
from benchmarks.speed import last_line, peak_memory_mb, timed

SIMULATED = {
    "num_values": (20_000, 50_000, 90, 12, 28, 500), "exponent": (1.0, 0.9, 0.1, 0.0, 0.0, 0.8),
    "size_share": (0.75, 0.19, 0.06), "distortion": 0.05, "typos": (True, True, False, False, False, False),
}  # fmt: skip
_MILLION = 1_000_000
_NAMES = ("field_1", "field_2")

_OF_SPLINK = 0.95  # at which its tutorials make clusters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--splink", metavar="PYTHON", help="an interpreter with splink; none by default")
    parser.add_argument(
        "--simulated", type=int, nargs="*", default=[10_000, 100_000], metavar="N", help="records (10000 100000)"
    )
    parser.add_argument("--large", action="store_true", help="a million records as well")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    title = "Linkage of records with misspelt names"
    record = Recording("linkage-strings", title, arguments.command, arguments.output)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in [*arguments.simulated, *[_MILLION] * arguments.large]:
            path = Path(folder) / f"{number}.csv"
            write_simulated(path, number, SIMULATED)
            for mode in ("typo", "string", "equality"):
                command_line = [sys.executable, "-m", "benchmarks.linkage_strings", str(path), mode]
                row = last_line(command_line, echo=True)
                rows.append({"records": number, "system": f"block-linkage, {mode}", **row})
            if arguments.splink:
                rows.append({"records": number, "system": "splink, Jaro–Winkler", **_splink(arguments.splink, path)})
    _write(record, rows)


# ---- the systems ----


def _measure(path: str, mode: str) -> dict[str, Any]:
    """Link a CSV file, the names compared by a kind of similarity or for equality; in a process of its own."""
    began, began_cpu = time.perf_counter(), time.process_time()
    import pandas

    import consilience as cs
    from consilience.models import member
    from consilience.similarity import with_similar

    member("block-linkage")  # imported when it is first used: here, so that no stage below counts it
    made: dict[str, Any] = {}
    frame = pandas.read_csv(path, dtype=str, usecols=lambda column: column != "entity")
    stages = {
        "read": lambda: made.update(records=cs.read_records(frame)),
        "near names": lambda: made.update(records=with_similar(made["records"], dict.fromkeys(_NAMES, mode))),
        "fit": lambda: made.update(fit=cs.fit("block-linkage", made["records"])),
        "outputs": lambda: made.update(pairs=made["fit"].truth.pairs(), estimate=made["fit"].truth.estimate()),
    }
    if mode == "equality":
        del stages["near names"]
    row: dict[str, Any] = {}
    for stage, call in stages.items():
        row[f"{stage}, wall s"], row[f"{stage}, CPU s"] = timed(call)
    row |= {unit: sum(row[f"{stage}, {unit}"] for stage in stages) for unit in ("wall s", "CPU s")}
    row |= {"process, wall s": time.perf_counter() - began, "process, CPU s": time.process_time() - began_cpu}
    row["peak, MB"] = peak_memory_mb()
    entity = entities(Path(path))
    pairs = made["pairs"]
    posterior = made["fit"].posterior
    return row | {
        **_scores("own", made["estimate"], entity), **_best(_by_threshold(pairs, len(entity)), entity),
        "candidates": len(pairs.first), "found, expected": float(posterior.found_share),
        "found": _share_found(pairs, entity), "calibration": calibration_rows(pairs, entity),
        "near names": 0 if made["records"].near is None else len(made["records"].near),
        "log evidence": float(posterior.evidence[-1]),
    }  # fmt: skip


def _splink(python: str, path: Path) -> dict[str, Any]:
    """Run splink and score its clusters."""
    row, found = run_splink(python, path, "splink-names", str(len(_NAMES)))
    entity, by_threshold = entities(path), {threshold: found[str(threshold)] for threshold in THRESHOLDS}
    pairs = found["first"].astype(int), found["second"].astype(int), found["probability"]
    return row | {
        **_scores("own", by_threshold[_OF_SPLINK], entity), **_best(by_threshold, entity),
        "candidates": len(pairs[0]), "calibration": calibration_rows(pairs, entity),
    }  # fmt: skip


# ---- what they found ----


def _by_threshold(pairs: Any, num_records: int) -> dict[float, np.ndarray]:
    """Return the clusters that pairs above each threshold connect, as splink makes them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    clusters = {}
    for threshold in THRESHOLDS:
        above = pairs.probability >= threshold
        index = pairs.first[above], pairs.second[above]
        graph = coo_array((np.ones(above.sum(), np.int8), index), shape=(num_records, num_records))
        clusters[threshold] = connected_components(graph, directed=False)[1]
    return clusters


def _scores(name: str, clusters: np.ndarray, entity: np.ndarray) -> dict[str, float]:
    import consilience as cs

    values = cs.score_partition(clusters, entity).values
    letters = {"P": "precision", "R": "recall", "F1": "f1"}
    return {f"{letter}, {name}": values[f"pairwise-{measure}"] for letter, measure in letters.items()}


def _best(by_threshold: dict[float, np.ndarray], entity: np.ndarray) -> dict[str, float]:
    """Return the scores at the threshold with the best F1, and at 0.5."""
    scores = {threshold: _scores("best", clusters, entity) for threshold, clusters in by_threshold.items()}
    best = max(scores, key=lambda threshold: scores[threshold]["F1, best"])
    return {"best threshold": best, **scores[best], "F1 at 0.5": scores[0.5]["F1, best"]}


def _share_found(pairs: Any, entity: np.ndarray) -> float:
    """Return the share of true links that are among the pairs of components."""
    size = np.bincount(entity)
    return float(np.count_nonzero(entity[pairs.first] == entity[pairs.second]) / (size * (size - 1) // 2).sum())


def _write(record: Recording, rows: list[dict[str, Any]]) -> None:
    record.say(
        "Simulated: "
        + "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in SIMULATED.items())
        + ". Two names that are misspelt by one letter where they are distorted, a year, a month, a day and a place "
        "that are then another one. Errors are independent. `block-linkage, typo` compares the names as "
        "`similar={…: 'typo'}` does, for errors that are hardly anything but typing errors, `string` as "
        "`similar={…: 'string'}`; `equality` compares all fields for equality. The evidence says which fits."
    )
    versions = sorted({row["version"] for row in rows if "version" in row})
    if versions:
        record.say(
            f"splink {', '.join(versions)} on DuckDB: `NameComparison` of the names (Jaro–Winkler similarity above "
            "0.92, 0.88 and 0.7), other fields for equality, all with adjustment for the frequencies of values; up to "
            "twelve blocking keys, those sets of fields that find most pairs while each has no more pairs than there "
            "are records; trained as its documentation advises. Its authors did not tune it, and pairs below a "
            "probability of 0.01 are left out."
        )
    record.section("Entities found")
    record.say(
        "Precision, recall and F1 of pairs of records. 'Own': the most probable partition of `block-linkage`; clusters "
        f"at {_OF_SPLINK} of splink, as in its tutorials. 'Best': clusters of pairs above the best of the thresholds "
        f"{', '.join(map(str, THRESHOLDS))}, made alike for all, which only those know who know the entities."
    )
    names = [f"{letter}, {which}" for which in ("own", "best") for letter in ("P", "R", "F1")]
    keys = ("records", "system")
    record.table(
        "scores", [{key: row[key] for key in (*keys, *names, "best threshold", "F1 at 0.5")} for row in rows], digits=4
    )
    record.section("Seconds and memory")
    record.say(
        "Each row is a fresh process. 'Wall' and 'CPU' are from text columns in a data frame to clusters and "
        "probabilities; 'process' counts imports and the reading of the file too. Other work may have run on the "
        "machine: read CPU seconds. 'Candidates' are pairs with a probability."
    )
    costs = ("wall s", "CPU s", "process, wall s", "process, CPU s", "peak, MB", "candidates")
    record.table("costs", [{key: row[key] for key in (*keys, *costs)} for row in rows], digits=1)
    ours = [row for row in rows if "fit, CPU s" in row]
    stages = ("read", "near names", "fit", "outputs")
    record.table(
        "stages",
        [
            {**{key: row[key] for key in keys}, **{f"{one}, CPU s": row.get(f"{one}, CPU s", 0.0) for one in stages}}
            for row in ours
        ],
        digits=2,
    )
    record.section("Links among the candidates")
    record.say(
        "The share of links that `block-linkage` expects among its candidates, the share that is in its components, "
        "and the log evidence, by which one would choose."
    )
    found = ("near names", "found, expected", "found", "log evidence")
    record.table("found", [{key: row[key] for key in (*keys, *found)} for row in ours], digits=4)
    record.section("Calibration of pairs")
    record.say("Pairs by their probability: how many, its mean, and the share that is of one entity.")
    lines = [{**{key: row[key] for key in keys}, **line} for row in rows for line in row["calibration"]]
    record.table("calibration", lines)
    theirs = [row for row in rows if "keys" in row]
    record.data("splink keys", [{"records": row["records"], "keys": "; ".join(row["keys"])} for row in theirs])
    record.write()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(_measure(*sys.argv[1:])))
