"""What the benchmark `linkage` measures of this library in a fresh process: `python -m benchmarks.linkage_process …`.

RECORDS LIKELIHOOD: links a CSV file, and prints seconds by stage, memory, scores and the calibration of pairs.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

from benchmarks.speed import peak_memory_mb, timed

__all__: list[str] = []


def _measure(path: str, likelihood: str) -> dict[str, Any]:
    began, began_cpu = time.perf_counter(), time.process_time()
    import pandas

    import consilience as cs
    from consilience.models import member

    # Imported when they are first used: here, so that no stage below counts it.
    (cs.read_records, cs.fit, cs.num_entities, member("block-linkage"))
    made: dict[str, Any] = {}
    row: dict[str, Any] = {"import, s": time.perf_counter() - began}
    frame = pandas.read_csv(path, dtype=str, usecols=lambda column: column != "entity")
    stages = {
        "read": lambda: made.update(records=cs.read_records(frame)),
        "fit": lambda: made.update(fit=cs.fit("block-linkage", made["records"], likelihood=likelihood)),
        "outputs": lambda: made.update(pairs=made["fit"].truth.pairs(), estimate=made["fit"].truth.estimate()),
    }
    for stage, call in stages.items():
        row[f"{stage}, s"], row[f"{stage}, CPU s"] = timed(call)
    row["wall s"], row["CPU s"] = (sum(row[f"{stage}, {unit}"] for stage in stages) for unit in ("s", "CPU s"))
    row |= {"process, wall s": time.perf_counter() - began, "process, CPU s": time.process_time() - began_cpu}
    row["peak, MB"] = peak_memory_mb()
    row["draws, s"], _ = timed(lambda: made.update(count=cs.num_entities(made["fit"])))
    row["peak with draws, MB"] = peak_memory_mb()
    entity = pandas.read_csv(path, dtype=str, usecols=["entity"])["entity"]
    return row | _quality(made, pandas.factorize(entity)[0])


def _quality(made: dict[str, Any], entity: Any) -> dict[str, Any]:
    import consilience as cs
    from consilience.linkage_page import calibration_table

    posterior, count = made["fit"].posterior, made["count"]
    scores = cs.score_partition(made["estimate"], entity)
    low, high = count.interval
    components, records, largest, pairs, _ = posterior.cut.tolist()
    return {
        **{name: scores.values[f"pairwise-{name}"] for name in ("precision", "recall", "f1")},
        "records": len(entity), "true": scores.true_entities, "MAP": int(count.point), "mean": count.value,
        "low": float(low), "high": float(high), "corrected": made["fit"].truth.corrected_num_clusters(),
        "disagreement": float(posterior.disagreement), "found": float(posterior.found_share),
        "distortion": float(posterior.distortion.mean()), "candidates": len(made["pairs"].first),
        "too large": int(components), "in them": int(records), "the largest": int(largest), "pairs cut": int(pairs),
        "calibration": calibration_table(made["fit"].truth, entity).to_dict("records"),
    }  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(_measure(*sys.argv[1:])))
