"""Linkage on real data, by default, and engines beside each other: the bars of the fifth issue, row by row.

`python -m benchmarks linkage_bars [--data FOLDER] [--splink PYTHON] [--spark PYTHON] [--only PART …] [--again]`. The
folder holds `cora.csv` (`entity` by the 64,578 published pairs, `entity_update` by the later list), `RLdata10000.csv`,
and `febrl3.csv`; rows whose file is not there are left out, and the record says so. Every row is a process of its own.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.linkage import SIMULATED, write_parquet
from benchmarks.linkage_data import entities, run_splink, write_simulated
from benchmarks.recording import Bar, Kept, Recording, at_least, at_most, between, run_parts, tell_bars, tell_commits
from benchmarks.speed import last_line

PARTS = ("repeated", "formats", "public", "coverage", "candidates", "million", "memory", "command", "ten-million")
_MILLION, _TEN_MILLION = 10**6, 10**7
_CANDIDATES = {100_000: 68_350, 300_000: None}  # of so many records so many pairs, where the specification says it
_MB = {"memory": 1300, "ten-million": 4000}

_CORA = ("cora.csv", "id", "entity", "entity_update")
_UPDATE = ("cora.csv", "id", "entity_update", "entity")
_RLDATA = ("RLdata10000.csv", "rec_id", "ent_id", "")
_SIX = ("cora-six-fields.csv", *_CORA[1:])
_NINE = "soc_sec_id"
PUBLIC: dict[str, tuple[tuple[str, str, str, str], dict[str, Any]]] = {
    "cora": (_CORA, {}),
    "cora, update list": (_UPDATE, {}),
    "cora, six fields, closure": (_SIX, {"decision": "closure"}),
    "cora, six fields, weighted": (_SIX, {"decision": "posterior", "weights": "auto"}),
    "cora, six fields, weighted, copies": (
        _SIX, {"decision": "posterior", "weights": "auto", "likelihood": "copies"}
    ),
    "febrl3 without the number": (("febrl3.csv", "rec_id", "entity", _NINE), {}),
    "febrl3, four similar fields": (
        ("febrl3.csv", "rec_id", "entity", _NINE),
        {"similar": dict.fromkeys(("given_name", "surname", "address_1", "suburb"), "string")},
    ),
    "RLdata10000, five fields": ((*_RLDATA[:3], "fname_c2,lname_c2"), {}),
    "RLdata10000, seven fields": (_RLDATA, {}),
    "RLdata10000, similar names": (_RLDATA, {"similar": dict.fromkeys(("fname_c1", "lname_c1"), "string")}),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where the public lists are, as CSV files")
    parser.add_argument("--splink", metavar="PYTHON", help="an interpreter with splink")
    parser.add_argument("--spark", metavar="PYTHON", help="an interpreter with this library's needs and pyspark")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--again", action="store_true", help="measure anew what is kept of earlier runs")


def run(arguments: argparse.Namespace) -> None:
    """Measure the parts that are asked for, and record all that is kept."""

    def measures(kept: Kept) -> dict[str, Callable[[], Any]]:
        return {name: functools.partial(_measure, name, kept, arguments) for name in PARTS}

    run_parts("linkage-bars", "Linkage on real data, from a laptop to a cluster", arguments, measures, _tell)


def _measure(part: str, kept: Kept, arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if part == "million":
            _measure_million(kept, Path(folder), arguments)
            return
        for key, words in _words(part, Path(folder), arguments).items():
            python = arguments.spark if "spark" in key else sys.executable
            kept.row(part, key, functools.partial(_once, *words, python=python))


def _words(part: str, folder: Path, arguments: argparse.Namespace) -> dict[tuple[Any, ...], list[str]]:
    """Return the rows of a part, with the words of their processes."""
    if part == "repeated":
        return {(f"distortion {own}",): [part, own, "{}"] for own in ("0", "0.05")}
    if part == "formats":
        return {("two tables of 300 people",): [part]}
    if part == "public":
        rows: dict[tuple[Any, ...], list[str]] = {}
        for name, ((file, *columns), settings) in PUBLIC.items():
            if arguments.data is None:
                continue
            if file == _SIX[0] and (arguments.data / _CORA[0]).is_file():
                write_six_fields(arguments.data / _CORA[0], folder / file)
            for path in (arguments.data / file, folder / file):
                if path.is_file():
                    rows[(name,)] = ["link", str(path), *columns, json.dumps(settings)]
        return rows
    if part == "coverage":
        return {
            ("Gibbs after EM, seeds 900 to 919",): [part, "900", "920", "2000", "hit-miss"],
            ("the same, likelihood chosen",): [part, "900", "920", "2000", ""],
            ("100,000 records, seeds 900 to 904",): [part, "900", "905", "100000", ""],
        }
    if part == "candidates":
        rows = {}
        for number in _CANDIDATES:
            for engine, settings in (("duckdb", {"memory": "1GB"}), ("spark", {"partitions": 8})):
                if engine != "spark" or arguments.spark is not None:
                    rows[engine, number] = [part, str(number), engine, json.dumps(settings)]
        return rows
    if part == "command":
        write_simulated(folder / "records.csv", _MILLION, SIMULATED, seed=7)
        return {("consilience link, CSV", _MILLION): [part, str(folder / "records.csv"), "--entity", "entity"]}
    number, settings = (_MILLION, {"memory": "1GB"}) if part == "memory" else (_TEN_MILLION, {"memory": "2GB"})
    write_parquet(folder / "records.parquet", number)
    return {("duckdb", number): ["whole", str(folder / "records.parquet"), "duckdb", json.dumps(settings)]}


def write_six_fields(source: Path, target: Path) -> None:
    """Write cora's title, authors, venue, year, first two numbers of pages, and first number of the volume."""
    import pandas

    frame = pandas.read_csv(source, dtype=str, keep_default_na=False)

    def found(column: str, pattern: str, most: int) -> Any:
        return frame[column].map(lambda text: " ".join(re.findall(pattern, text)[:most]))

    year = found("year", r"(?:19|20)\d\d", 1)
    frame["year"] = year.where(year != "", found("date", r"(?:19|20)\d\d", 1))
    frame["venue"] = frame["journal"].where(frame["journal"] != "", frame["book_title"])
    frame["pages"], frame["volume"] = found("pages", r"\d+", 2), found("volume", r"\d+", 1)
    kept = ["id", "title", "authors", "venue", "year", "pages", "volume", "entity", "entity_update"]
    frame[kept].to_csv(target, index=False)


def _measure_million(kept: Kept, folder: Path, arguments: argparse.Namespace) -> None:
    """Measure engines, and splink, on the same records."""
    table, parquet = folder / "records.csv", folder / "records.parquet"
    write_simulated(table, _MILLION, SIMULATED)
    write_parquet(parquet, _MILLION)
    for engine in ("local", "duckdb", "spark"):
        python = arguments.spark if engine == "spark" else sys.executable
        settings = {"partitions": 8} if engine == "spark" else {}
        if python is not None:
            words = ("whole", str(parquet), engine, json.dumps(settings))
            kept.row("million", (engine,), functools.partial(_once, *words, python=python))
    if arguments.splink is not None:

        def of_splink() -> dict[str, Any]:
            import consilience as cs

            row, clusters = run_splink(arguments.splink, table, "splink")
            f1 = {name: cs.score_partition(own, entities(table)).values["pairwise-f1"]
                  for name, own in clusters.items()}  # fmt: skip
            return {
                "whole, CPU s": row["process, CPU s"], "whole, wall s": row["process, wall s"], "CPU s": row["CPU s"],
                "wall s": row["wall s"], "peak, MB": row["peak, MB"], "F1": f1["0.5"], "best F1": max(f1.values()),
            }  # fmt: skip

        kept.row("million", ("splink",), of_splink)


def _once(*words: str, python: str = sys.executable) -> dict[str, Any]:
    """Measure a row in a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYSPARK_PYTHON": python}
    return last_line([python, "-m", "benchmarks.linkage_bars_rows", *words], echo=True, environment=environment)


def _tell(record: Recording, kept: Kept) -> None:
    record.say(
        "All by `cs.link` with nothing tuned, unless a row says otherwise. CPU seconds are of the process and of all "
        "that it starts; 'whole' is with imports, and of Spark with its start. Simulated: "
        + "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in SIMULATED.items()) + "."
    )  # fmt: skip
    for part in PARTS:
        rows = [{"row": " ".join(map(str, key))} | columns for key, columns in kept.rows(part).items()]
        if not rows:
            record.say(f"Not measured: {part}.")
            continue
        record.section(part)
        names = dict.fromkeys(name for row in rows for name in row if name not in ("said", "warnings"))
        record.table(part, [{name: row.get(name) for name in names} for row in rows])
        for row in rows:
            if "said" in row:
                said = [f"* {row['row']}: {row['said']}", *(f"  * {own}" for own in row.get("warnings", []))]
                record.say("\n".join(said))
    tell_bars(record, _bars({part: kept.rows(part) for part in PARTS}))
    record.section("Commits")
    tell_commits(record, kept, PARTS)


def _bars(rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]]) -> list[Bar]:
    found: list[Bar] = []
    for (name,), row in rows["repeated"].items():
        if name == "distortion 0":
            found += [between("a record 40 times for 30 people: entities", 30, 30, row["clusters"], 0),
                      at_most("… CPU s", 1, row["first, CPU s"])]  # fmt: skip
        else:
            found += [at_least("… with errors: F1", 0.98, row["F1"], 3),
                      between("… entities", 28, 36, row["clusters"], 0),
                      at_most("… CPU s after compilation", 3, row["second, CPU s"])]  # fmt: skip
    for row in rows["formats"].values():
        found += [at_least("formats: links of 100", 95, row["links of 100"], 0), at_most("… wrong", 2, row["wrong"], 0)]
    asked = {"cora": 0.80, "cora, six fields, closure": 0.85, "cora, six fields, weighted": 0.80,
             "febrl3 without the number": 0.99}  # fmt: skip
    for (name,), row in rows["public"].items():
        if name in asked:
            found.append(at_least(f"{name}: F1", asked[name], row["F1"], 3))
        if name.startswith(("RLdata", "febrl3, four")):
            held = row["low"] is not None and row["low"] <= row["true"] <= row["high"]
            warned = "does not hold" in row["said"]
            text = f"[{row['low']:.0f}, {row['high']:.0f}] of {row['true']}" + (", warned" if warned else "")
            found.append(Bar(f"{name}: interval holds, or a warning", "either", text, held or warned))
    for (name,), row in rows["coverage"].items():
        if row["sets"] == 20:
            found += [at_least(f"{name}: held of 20", 18, row["held"], 0), between("… bias", -2, 2, row["bias"]),
                      at_most("… CPU s a set", 5, row["CPU s, later"])]  # fmt: skip
        else:
            found.append(at_least(f"{name}: held of 5", 4, row["held"], 0))
    for (engine, number), row in rows["candidates"].items():
        found.append(Bar(f"candidates of {number:,} records, {engine}: those of NumPy", f"{row['of NumPy']:,}",
                         f"{row['pairs']:,}" + ("" if row["same"] else ", others"), row["same"]))  # fmt: skip
        found.append(at_most("… log odds apart", 1e-12, row["log odds apart"]))
        if (expected := _CANDIDATES[number]) is not None:
            found.append(between("… as specified", expected, expected, row["pairs"], 0))
    million = {key[0]: row for key, row in rows["million"].items()}
    if "local" in million:
        found.append(at_least("a million records, local: F1", 0.918, million["local"]["F1"], 3))
    for row in rows["memory"].values():
        found.append(at_most("a million, duckdb with 1 GB: peak, MB", _MB["memory"], row["peak, MB"], 0))
        if "local" in million:
            found.append(at_most("… CPU of local's", 6, row["CPU s"] / million["local"]["CPU s"]))
    found += [at_most("a million, CSV, the command: CPU s", 15, row["CPU s"]) for row in rows["command"].values()]
    found += [at_most("ten million, duckdb: peak, MB", _MB["ten-million"], row["peak, MB"], 0)
              for row in rows["ten-million"].values()]  # fmt: skip
    return found
