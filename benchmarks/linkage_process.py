"""What the benchmark `linkage` measures of this library in a fresh process: `python -m benchmarks.linkage_process …`.

`small RECORDS LIKELIHOOD` links a CSV file, and prints seconds by stage, memory, scores and the calibration of pairs.
`large RECORDS FOLDER PROCESSES` links a Parquet file and writes all that `consilience link` writes. `missing RECORDS
EXACT` links a Parquet file whose values are missing, with the join that finds every pair (1) or the quick one (0).
`method RECORDS MODEL OPTIONS` fits any model of records to a CSV file.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import math
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.linkage_data import calibration_rows, entities
from benchmarks.speed import last_line, peak_memory_mb, timed

_SHORT = {"P": "precision", "R": "recall", "F1": "f1"}


def run_process(*words: Any) -> dict[str, Any]:
    """Return what this module measures in a fresh process.

    Parameters
    ----------
    words : what to do, and with what; see the module.
    """
    return last_line([sys.executable, "-m", "benchmarks.linkage_process", *map(str, words)], echo=True)


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
    return row | _quality(made, entities(Path(path)))


def _quality(made: dict[str, Any], entity: Any) -> dict[str, Any]:
    import consilience as cs

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
        "calibration": calibration_rows(made["fit"].truth.pairs(), entity),
    }  # fmt: skip


def _large(path: str, folder: str, engine: str) -> dict[str, Any]:
    """Do what the command does with a file, and time its stages."""
    began, began_cpu = time.perf_counter(), _cpu_seconds()
    import consilience as cs
    from consilience.models import member
    from consilience.printing import write_columns
    from consilience.reporting import report

    (cs.read_records, cs.fit, member("block-linkage"))  # imported when they are first used: here
    target, made = Path(folder), dict[str, Any]()
    target.mkdir()
    row: dict[str, Any] = {"import, CPU s": _cpu_seconds() - began_cpu}
    stages: dict[str, Callable[[], Any]] = {
        "read": lambda: made.update(records=cs.read_records(path, entity="entity")),
        "fit": lambda: made.update(fit=cs.fit("block-linkage", made["records"], engine=engine)),
        "tables": lambda: [
            write_columns(made["fit"].table_columns(name), target / f"{name}.csv") for name in ("entities", "pairs")
        ],
        "save": lambda: made["fit"].save(target / "fit"),
        "page": lambda: report(made["fit"], path=target / "report.html"),
    }
    for stage, call in stages.items():
        wall, cpu = time.perf_counter(), _cpu_seconds()
        call()
        row |= {f"{stage}, s": time.perf_counter() - wall, f"{stage}, CPU s": _cpu_seconds() - cpu}
        row[f"peak after {stage}, MB"] = peak_memory_mb()
    row |= {"wall s": time.perf_counter() - began, "CPU s": _cpu_seconds() - began_cpu}
    row |= {f"{name}, MB": _megabytes(target / name) for name in ("entities.csv", "pairs.csv", "fit")}
    row["page, kB"] = 1000 * _megabytes(target / "report.html")
    from consilience.inference.stored_posterior import posterior_arrays

    answer = b"".join(values.tobytes() for values in posterior_arrays(made["fit"].posterior).values())
    row["answer"] = hashlib.sha256(answer).hexdigest()
    return row | _found(made["fit"], made["records"])


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def _found(fit: Any, records: Any) -> dict[str, Any]:
    import consilience as cs

    scores, posterior = cs.score_partition(fit, records), fit.posterior
    mean, _ = fit.truth.num_clusters_moments()
    return {
        "records": records.num_records, "F1": scores.values["pairwise-f1"], "MAP": scores.predicted_entities,
        "mean": mean, "corrected": fit.truth.corrected_num_clusters(), "true": scores.true_entities,
        "found share": float(posterior.found_share), "completed": bool(posterior.completed),
        "disagreement": float(posterior.disagreement),
    }  # fmt: skip


def _missing(path: str, exact: str) -> dict[str, Any]:
    import consilience as cs
    from consilience.models.block_linkage import hidden_links as hidden
    from consilience.models.block_linkage import join as module
    from consilience.models.block_linkage.linking import SLACK
    from consilience.models.block_linkage.starting import starting_parameters

    em = importlib.import_module("consilience.models.block_linkage.em")
    records, made = cs.read_records(path, entity="entity"), dict[str, Any]()
    parameters = starting_parameters(records, 6)
    given = {"threshold": 4.0 + SLACK, "exact": bool(int(exact))}

    def join() -> None:
        made["pairs"] = module.join(records, parameters, em.LIKELIHOODS["hit-miss"], **given)

    _, cpu = timed(join)
    # A fit chooses between the two joins by itself: here it is told.
    em.join, hidden.join_rule = (
        functools.partial(call, exact=given["exact"]) for call in (module.join, module.join_rule)
    )
    _, fit_cpu = timed(lambda: made.update(fit=cs.fit("block-linkage", records)))
    return {
        "candidates": len(made["pairs"].first), "join, CPU s": cpu, "fit, CPU s": fit_cpu, "peak, MB": peak_memory_mb(),
        **_found(made["fit"], records),
    }  # fmt: skip


def _method(path: str, model: str, options: str) -> dict[str, Any]:
    """Fit a model with options (JSON); ``similar`` among them says which fields are compared by similarity."""
    import consilience as cs
    from consilience.similarity import with_similar

    settings = json.loads(options)
    records = with_similar(cs.read_records(path, id="id", entity="entity"), settings.pop("similar", {}))
    made: dict[str, Any] = {}
    _, cpu = timed(lambda: made.update(fit=cs.fit(model, records, progress=False, **settings)))
    fit = made["fit"]
    scores, interval = cs.score_partition(fit, records), (math.nan, math.nan)
    mean = number = evidence = math.nan
    if model != "dirichlet-entity":
        count = cs.num_entities(fit)
        mean, interval = count.value, count.interval
    if fit.method == "gibbs":
        number = float(fit.summary().set_index("quantity").loc["num_entities", "ess_bulk"])
    elif fit.method == "em":
        evidence = float(fit.elbo[-1])
    return {
        **{short: scores.values[f"pairwise-{name}"] for short, name in _SHORT.items()},
        "MAP": scores.predicted_entities, "mean": mean, "2.5 %": float(interval[0]), "97.5 %": float(interval[1]),
        "true": scores.true_entities, "log evidence": evidence, "CPU s": cpu, "peak, MB": peak_memory_mb(),
        "ESS": number, "CPU s for 1,000 effective draws": 1000 * cpu / number,
    }  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    kinds: dict[str, Callable[..., dict[str, Any]]] = {
        "small": _measure, "large": _large, "missing": _missing, "method": _method,
    }  # fmt: skip
    print(json.dumps(kinds[sys.argv[1]](*sys.argv[2:])))
