"""What a user waits for before and after the kernels run, each row in a process of its own.

Rows are CPU seconds over those of something that ran beside it: the fit that a call follows, the first fit of a
process, crowd-kit's script, or another checkout (``--against``), which is run in turn with this one, three times.
Seconds depend on what else the machine does, ratios hardly. ``growth`` is the power of the number of rows with which
the time of a second equal call grows, from n to 8 n: 1 is proportional, and less than 1 is a cost that every call has.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.recording import Bar, Kept, Recording, at_most, between, run_parts, tell_bars, tell_commits
from benchmarks.speed import last_line, seconds_of_children
from benchmarks.waiting_rows import LABELS, drawn_columns

PARTS = (
    "after", "second", "padding", "update", "first", "plackett-luce", "reliabilities", "csv", "devices", "memory",
    "growth",
)  # fmt: skip
_REPEATS = 3
_ROWS = Path(__file__).with_name("waiting_rows.py")

_AFTER = {"certainty": 0.05, "report": 0.5}
_SECOND = (("dawid-skene", "cavi"), ("mace", "cavi"), ("dawid-skene", "gibbs"), ("glad", "cavi"), ("mpa", "cavi"))
_RELIABILITIES = {10: 0.4, 3: 1.0, 1: 1.0}  # with the bar beside the commit before this record
_IN_A_ROW = (1, 2, 3, 5, 10)
_ABOVE_A_SIZE = 196_700  # items, as padded 212,992
_OF_FIRST, _OF_CSV = 10_000, (10**6, 200_000, 1000)

# What grows, and the smaller of its two sizes.
GROWTH = {
    "certainty": 200_000, "compare": 100_000, "report": 200_000, "save": 200_000, "majority-vote exact": 200_000,
    "dirichlet exact": 200_000, "dawid-skene cavi": 200_000, "dawid-skene em": 200_000, "dawid-skene gibbs": 100_000,
    "mace cavi": 200_000, "mace gibbs": 100_000, "one-coin cavi": 200_000, "glad cavi": 50_000, "mpa cavi": 50_000,
    "mpa gibbs": 50_000, "normal-inverse-gamma exact": 20_000, "irn exact": 100_000, "prirn exact": 100_000,
    "plackett-luce gibbs": 2_000, "plackett-luce em": 2_000, "block-linkage em": 100_000,
    "dirichlet-entity cavi": 4_000,
    "hit-miss gibbs": 4_000, "expert-views cavi": 2_000, "expert-views gibbs": 100,
}  # fmt: skip

_CROWD_KIT = """
import sys
import pandas
from crowdkit.aggregation import DawidSkene
table = pandas.read_csv(sys.argv[1], dtype=str)
table = table.rename(columns={"item": "task", "annotator": "worker"})
DawidSkene(n_iter=100).fit_predict(table)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--annotations", type=int, nargs="+", default=[100_000, 1_000_000], metavar="N")
    parser.add_argument("--in-memory", type=int, default=10**7, metavar="N", help="annotations of the part memory")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--again", action="store_true", help="measure anew what is kept of earlier runs")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout, run in turn with this one")
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with crowd-kit")


def run(arguments: argparse.Namespace) -> None:
    """Measure the parts that are asked for, and record all that is kept."""

    def measures(kept: Kept) -> dict[str, Callable[[], Any]]:
        return {name: functools.partial(_measure_part, name, kept, arguments) for name in PARTS}

    run_parts("waiting", "What a user waits for", arguments, measures, _tell)


def _measure_part(part: str, kept: Kept, arguments: argparse.Namespace) -> None:
    against = None if arguments.against is None else arguments.against.resolve()
    with tempfile.TemporaryDirectory() as folder:
        if part == "first":
            _measure_first(kept, Path(folder), against, arguments.peer)
            return
        for key, words in _words(part, Path(folder), arguments).items():
            # Another checkout may lack what these rows ask for.
            alone = part in ("padding", "update", "reliabilities")
            measure, more = (_growth, ()) if part == "growth" else (_beside, (None if alone else against,))
            kept.row(part, key, functools.partial(measure, words, *more))


def _words(part: str, folder: Path, arguments: argparse.Namespace) -> dict[tuple[Any, ...], list[str]]:
    """Return the rows of a part, with the words of their processes."""
    if part == "after":
        return {(name, size): [part, name, str(size)] for size in arguments.annotations for name in _AFTER}
    if part == "second":
        return {key: [part, *key] for key in _SECOND}
    if part == "plackett-luce":
        return {(own,): [part, str(own), str(own + 1)] for own in _RELIABILITIES}
    if part == "padding":
        return {("dawid-skene", _ABOVE_A_SIZE): [part, "dawid-skene", str(_ABOVE_A_SIZE)]}
    if part == "update":
        return {("dawid-skene", method, 10**6): [part, method, str(10**6)] for method in ("em", "cavi")}
    if part == "reliabilities":
        return {_IN_A_ROW: [part, *map(str, _IN_A_ROW)]}
    if part == "csv":
        return {_OF_CSV: [part, str(_csv(folder, *_OF_CSV))]}
    if part == "devices":
        return {("mace", method): [part, "10000", method] for method in ("em", "cavi")}
    if part == "memory":
        size = arguments.in_memory
        return {(size,): [part, str(_parquet(folder, size)), str(size)]}
    return {(name, size): [part, name, str(size)] for name, size in GROWTH.items()}


def _growth(words: Sequence[str]) -> dict[str, Any]:
    """Measure a row at its size and at eight times that."""
    part, name, size = words
    small, large = (_once(None, [part, name, str(number)])["CPU s"] for number in (int(size), 8 * int(size)))
    return {"n, CPU s": small, "8 n, CPU s": large, "power": math.log(large / small, 8)}


def _beside(words: Sequence[str], against: Path | None) -> dict[str, Any]:
    """Measure a row, in turn with another checkout where one is given; medians, and the ratio of CPU seconds."""
    if against is None:
        return _once(None, words)
    both = [[_once(checkout, words) for checkout in (None, against)] for _ in range(_REPEATS)]
    own, other = (
        {name: statistics.median(one[name] for one in measured) for name in measured[0]}
        for measured in zip(*both, strict=True)
    )
    ratios = {f"{name}, beside": own[name] / other[name] for name in own if "CPU" in name and other[name] > 0}
    return own | {f"{name}, other checkout": other[name] for name in other} | ratios


def _once(checkout: Path | None, words: Sequence[str], **more: str) -> dict[str, Any]:
    """Measure a row in a fresh process of a checkout; this one by default."""
    root = checkout or Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root), **more}
    return last_line([sys.executable, str(_ROWS), *words], environment=environment)


def _measure_first(kept: Kept, folder: Path, against: Path | None, peer: str | None) -> None:
    path = _csv(folder, _OF_FIRST, _OF_FIRST // 5, 40)
    kept.row("first", ("cold",), functools.partial(_beside, ["first", str(path)], against))

    def with_kept() -> dict[str, Any]:
        folder_of_programs = folder / "programs"
        folder_of_programs.mkdir(mode=0o700)
        for _ in range(2):
            found = _once(None, ["first", str(path)], KEPT=str(folder_of_programs))
        return found

    kept.row("first", ("programs kept",), with_kept)
    if peer is not None:

        def of_peer() -> dict[str, Any]:
            before = seconds_of_children()
            subprocess.run([peer, "-W", "ignore", "-c", _CROWD_KIT, str(path)], check=True)
            return {"imports, CPU s": None, "script, CPU s": seconds_of_children() - before}

        kept.row("first", ("crowd-kit",), of_peer)


def _frame(number: int, items: int, annotators: int) -> Any:
    import pandas

    item, annotator, label = drawn_columns(items, annotators, number, LABELS)
    named = {"item": "item", "annotator": "annotator", "label": "label"}
    codes = dict(zip(named, (item, annotator, label), strict=True))
    return pandas.DataFrame({name: pandas.Series(own).astype(str).radd(f"{name}-") for name, own in codes.items()})


def _csv(folder: Path, number: int, items: int, annotators: int) -> Path:
    _frame(number, items, annotators).to_csv(folder / "annotations.csv", index=False)
    return folder / "annotations.csv"


def _parquet(folder: Path, number: int) -> Path:
    _frame(number, number // 5, 1000).to_parquet(folder / "annotations.parquet", index=False)
    return folder / "annotations.parquet"


_KEYS = {
    "after": ("call", "annotations"), "second": ("member", "method"), "first": ("script",),
    "plackett-luce": ("reliability",), "csv": ("rows", "items", "annotators"), "devices": ("member", "method"),
    "memory": ("annotations",), "growth": ("what", "n"), "padding": ("member", "items"),
    "update": ("member", "method", "annotations"), "reliabilities": tuple(f"value {n}" for n in range(1, 6)),
}  # fmt: skip


def _tell(record: Recording, kept: Kept) -> None:
    for part in PARTS:
        rows = [dict(zip(_KEYS[part], key, strict=True)) | columns for key, columns in kept.rows(part).items()]
        if rows:
            record.section(part)
            for columns in dict.fromkeys(tuple(row) for row in rows):
                record.table(f"{part} {len(columns)}", [row for row in rows if tuple(row) == columns])
    tell_bars(record, _bars(kept))
    record.section("Commits")
    tell_commits(record, kept, PARTS)


def _bars(kept: Kept) -> list[Bar]:
    rows = {part: kept.rows(part) for part in PARTS}
    found = [
        at_most(f"{name} of the fit, {size:,} annotations", _AFTER[name], row["of the fit"], 3)
        for (name, size), row in rows["after"].items()
    ]
    for key, row in rows["second"].items():
        found.append(at_most(f"second data set, {' '.join(key)}: of the first", 0.05, row["of the first"], 3))
        found.append(at_most(f"second data set, {' '.join(key)}: programs", 0, row["second, programs"], 0))
    scripts = {key: row["script, CPU s"] for (key,), row in rows["first"].items()}
    for name, bar in (("cold", 1.6), ("programs kept", 1.0)):
        if {name, "crowd-kit"} <= set(scripts):
            found.append(at_most(f"script, {name}: of crowd-kit's", bar, scripts[name] / scripts["crowd-kit"]))
    for (own,), row in rows["plackett-luce"].items():
        beside = row.get("warm, CPU s, beside")
        found.append(at_most(f"Plackett-Luce, reliability {own}: beside", _RELIABILITIES[own], beside))
        programs = row["another reliability, programs"]
        found.append(at_most(f"Plackett-Luce, from reliability {own} to another: programs", 0, programs, 0))
    for (name, _), row in rows["padding"].items():
        found.append(at_most(f"{name}, a step just above a padded size: of the exact", 1.15, row["of the exact"]))
    for (name, method, _), row in rows["update"].items():
        found.append(at_most(f"{name} {method}, 1 % more rows: steps of a fresh fit's", 0.3, row["of the fresh"]))
        # The fresh fit may be the higher one.
        found.append(at_most(f"{name} {method}, 1 % more rows: objective below the fresh fit's by", 1e-6,
                             max(-row["objective, above the fresh by"], 0.0), 9))  # fmt: skip
    for row in rows["reliabilities"].values():
        found.append(at_most("five reliabilities: programs after the first", 0, row["programs, all others"], 0))
        found.append(at_most("sweep over five reliabilities: of warm fits", 1.3, row["of the fits"]))
    for row in rows["csv"].values():
        for words in ("first read", "second read"):
            found.append(at_most(f"CSV, {words}: beside", 0.25, row.get(f"{words}, CPU s, beside")))
    for key, row in rows["devices"].items():
        name = f"{' '.join(key)} on four devices"
        found.append(at_most(f"{name}: steps apart", 0, abs(row["steps, one device"] - row["steps, four"]), 0))
        found.append(at_most(f"{name}: probabilities apart", 1e-9, row["probabilities apart"], 12))
    found += [at_most("peak, B an annotation", 84, row["peak, B an annotation"]) for row in rows["memory"].values()]
    found += [between(f"growth of {name}", 0.9, 1.1, row["power"]) for (name, _), row in rows["growth"].items()]
    return found
