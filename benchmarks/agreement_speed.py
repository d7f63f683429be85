"""How fast agreement of many annotations is measured, and in how much memory, beside Krippendorff's alpha of a peer.

Every measurement runs in a process of its own. The columns are simulated and written to files by another process, so
that neither the time nor the memory of making them counts. The peer is the package `krippendorff`, in an interpreter of
its own that you supply with ``--peers``, because its licence is not ours. Only CPU seconds are compared: wall seconds
depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import Recording
from benchmarks.speed import last_line, peak_memory_mb, timed
from consilience.errors import UnsupportedRequest

_PER_ITEM, _NUM_LABELS = 5, 5
_DESIGNS = ("equal", "ragged")

# Items that are simulated together.
_BLOCK = 1 << 20

_MOST_DENSE = 10_000_000
_PEER_METHODS = ("alpha of value counts", "alpha of a dense matrix")
_PEER_GB = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--annotations", type=int, nargs="+", default=[1_000_000, 10_000_000, 100_000_000], metavar="N",
        help="how many to simulate (1000000 10000000 100000000)",
    )  # fmt: skip
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter with krippendorff and NumPy; none by default")
    parser.add_argument("--repeats", type=int, default=3, help="processes of each kind; the median counts (3)")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    if arguments.peers:
        _check_peers(arguments.peers)
    record = Recording("agreement-speed", "Speed of agreement", arguments.command, arguments.output)
    record.say(
        f"Simulated columns in memory, item as int32 and label as int8: {_PER_ITEM} annotations an item, "
        f"{_NUM_LABELS} labels, a class distribution of its own for each item (uniform over all of them), rows in "
        f"random order. 'Equal': each item has {_PER_ITEM}. 'Ragged': each annotation is of a random item, so that "
        "sizes differ and some items have one or none. Each row is the median of "
        f"{arguments.repeats} fresh processes, ours and the peer's in turn; 'least' is the fastest of them. Peak "
        "memory is the largest, of the whole process, with interpreter, imports and the columns. Other work ran on the "
        "machine's cores and shared its caches: read CPU seconds, which count all cores, and mind that they vary."
    )
    rows: list[dict[str, Any]] = []
    for number in arguments.annotations:
        for design in _DESIGNS:
            with tempfile.TemporaryDirectory() as folder:
                _in_own_process(sys.executable, "simulate", design, str(number), folder)
                measured = _interleaved(_interpreters(number, arguments.peers), arguments.repeats, folder)
            rows += [{"annotations": number, "design": design, **row} for row in measured]
    ours = [row for row in rows if row["what"] == "ours"]
    theirs = [row for row in rows if row["what"] != "ours"]
    _ours(record, ours)
    if theirs:
        _against(record, ours, theirs)
    record.write()


def _ours(record: Recording, rows: list[dict[str, Any]]) -> None:
    record.section("Six schemes with intervals, and the diagnostic")
    record.say(
        "'Count': `LabelCounts.of_codes` and the patterns of sizes and agreeing pairs. 'Schemes': SPA, its jackknife "
        "standard error and interval under the paper's six schemes. 'Diagnostic': whether the number of annotations "
        "depends on the agreement (`dependence`), with the comparison of the labels of items with one annotation, "
        "which looks at a million items of each kind at most."
    )
    columns = ("annotations", "design", "count, CPU s", "schemes, CPU s", "diagnostic, CPU s", "all, CPU s",
               "least, CPU s", "all, wall s", "columns, MB", "peak, MB")  # fmt: skip
    record.table("ours", [{column: row[column] for column in columns} for row in rows], digits=2)
    record.data("ours-all", rows)


def _against(record: Recording, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    record.section("Against a peer")
    record.say(
        f"The package krippendorff {theirs[0]['version']} (NumPy {theirs[0]['numpy']}), nominal alpha, the fastest of "
        "the packages known to us. It gives *one number, without an interval*, where the above gives six with "
        "intervals and a diagnostic. From value counts: `numpy.bincount` of item × labels + label, then `alpha`. From "
        "a dense matrix (coder × item), for which the columns are sorted by item first, with the n-th annotation of "
        "an item in the n-th row, since nominal alpha does not ask who gave a label; a row for each person would be "
        f"far larger. Up to {_MOST_DENSE:,} annotations. A peer "
        f"may take {_PEER_GB} GB; '–' is one that did not fit. Ratio: its CPU seconds over ours for everything, and "
        "over ours for counting and the six schemes without the diagnostic."
    )
    own = {(row["annotations"], row["design"]): row for row in ours}
    rows = []
    for row in theirs:
        mine = own[row["annotations"], row["design"]]
        without = mine["count, CPU s"] + mine["schemes, CPU s"]
        rows.append({
            "annotations": row["annotations"], "design": row["design"], "peer": row["what"],
            "CPU s": row["all, CPU s"], "least": row["least, CPU s"], "peak, MB": row["peak, MB"],
            "ours, CPU s": mine["all, CPU s"], "ours, least": mine["least, CPU s"],
            "ratio": row["all, CPU s"] / mine["all, CPU s"],
            "ratio of the least": row["least, CPU s"] / mine["least, CPU s"],
            "ratio without diagnostic": row["all, CPU s"] / without,
        })  # fmt: skip
    record.table("peers", rows, digits=2)
    record.data("peers-all", theirs)


# ---- processes ----


def _check_peers(python: str) -> None:
    try:
        subprocess.run([python, "-c", "import krippendorff, numpy"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnsupportedRequest(
            f"{python} cannot import krippendorff and numpy; give --peers the interpreter of an environment in which "
            "both are installed"
        ) from error


def _interpreters(number: int, peers: str | None) -> dict[str, str]:
    """Return what to measure, and the interpreter of each."""
    methods = [method for method in _PEER_METHODS if method == _PEER_METHODS[0] or number <= _MOST_DENSE]
    return {"ours": sys.executable, **({method: peers for method in methods} if peers else {})}


def _interleaved(interpreters: dict[str, str], repeats: int, folder: str) -> list[dict[str, Any]]:
    """Measure each thing in fresh processes, in turn, so that what else the machine does hits all of them."""
    runs: dict[str, list[dict[str, Any]]] = {what: [] for what in interpreters}
    for _ in range(repeats):
        for what, python in interpreters.items():
            runs[what].append(_in_own_process(python, what, folder))
            print(what, json.dumps(runs[what][-1]), flush=True)
    return [{"what": what, **_summary(measured)} for what, measured in runs.items()]


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians of seconds, the least of all of them, and the largest memory."""
    row = {}
    for name, value in runs[0].items():
        values = [measured[name] for measured in runs]
        if not isinstance(value, float):
            row[name] = value
        else:
            row[name] = float(max(values) if name.endswith("MB") else np.median(values))
    return {**row, "least, CPU s": min(measured["all, CPU s"] for measured in runs)}


def _in_own_process(python: str, *words: str) -> dict[str, Any]:
    return last_line([python, "-m", "benchmarks.agreement_speed", *words])


# ---- what runs in processes of its own ----


def simulate(design: str, number: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Simulate item and label columns, in random order.

    Parameters
    ----------
    design : "equal" for the same number of annotations of each item, "ragged" for random items.
    number : of annotations; a multiple of five.
    """
    random = np.random.default_rng(seed)
    num_items = number // _PER_ITEM
    item = np.empty(number, np.int32)
    label = np.empty(number, np.int8)
    sizes = np.bincount(random.integers(0, num_items, number), minlength=num_items) if design == "ragged" else None
    filled = 0
    for start in range(0, num_items, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, num_items))
        size = np.full(len(block), _PER_ITEM) if sizes is None else sizes[block]
        shares = random.dirichlet(np.ones(_NUM_LABELS), len(block)).cumsum(axis=1)
        rows = slice(filled, filled + int(size.sum()))
        item[rows] = np.repeat(block, size)
        uniform = random.random(int(size.sum()))
        # Rounding may leave the last cumulative share a little below one.
        label[rows] = (uniform[:, None] > np.repeat(shares[:, :-1], size, axis=0)).sum(axis=1)
        filled = rows.stop
    return _shuffled(item, label, random)


def _shuffled(item: np.ndarray, label: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Shuffle two columns as one."""
    cell = item.astype(np.int64) * _NUM_LABELS + label
    random.shuffle(cell)
    return (cell // _NUM_LABELS).astype(np.int32), (cell % _NUM_LABELS).astype(np.int8)


def _write_columns(design: str, number: int, folder: Path) -> dict[str, Any]:
    item, label = simulate(design, number)
    np.save(folder / "item.npy", item)
    np.save(folder / "label.npy", label)
    return {}


def _measure_ours(item: np.ndarray, label: np.ndarray) -> dict[str, Any]:
    from consilience.evaluation.agreement.counts import LabelCounts
    from consilience.evaluation.agreement.sparse_probability import dependence, sparse_agreement
    from consilience.evaluation.agreement.weighting import PAPER_SCHEMES, weight_function

    before = peak_memory_mb()
    made: dict[str, Any] = {}

    def count() -> None:
        made["counts"] = LabelCounts.of_codes(item, label)
        made["patterns"] = made["counts"].patterns

    def schemes() -> None:
        for scheme in PAPER_SCHEMES:
            made[scheme] = sparse_agreement(made["patterns"], weight_function(scheme, made["counts"]))

    def diagnostic() -> None:
        made["dependence"] = dependence(made["counts"])

    row = _timed_parts({"count": count, "schemes": schemes, "diagnostic": diagnostic})
    return {
        **row, "columns, MB": (item.nbytes + label.nbytes) / 1e6, "before, MB": before, "peak, MB": peak_memory_mb(),
        "annotations_m1": made["annotations_m1"].value, "sd": made["annotations_m1"].sd, "z": made["dependence"].z,
        "p of single items": made["dependence"].single_p,
    }  # fmt: skip


def _timed_parts(parts: dict[str, Callable[[], None]]) -> dict[str, float]:
    row, seconds = {}, []
    for name, call in parts.items():
        wall, cpu = timed(call)
        row[f"{name}, CPU s"] = cpu
        seconds.append((wall, cpu))
    wall, cpu = np.sum(seconds, axis=0)
    return {**row, "all, CPU s": float(cpu), "all, wall s": float(wall)}


def _measure_peer(method: str, item: np.ndarray, label: np.ndarray) -> dict[str, Any]:
    import krippendorff

    # Ends in a MemoryError, not in the machine's memory.
    resource.setrlimit(resource.RLIMIT_AS, (_PEER_GB * 10**9, _PEER_GB * 10**9))
    found: list[float] = []

    def of_counts() -> None:
        num_items = int(item.max()) + 1
        cell = item * np.int32(_NUM_LABELS) + label
        counts = np.bincount(cell, minlength=num_items * _NUM_LABELS).reshape(num_items, _NUM_LABELS)
        found.append(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))

    def of_matrix() -> None:
        order = np.argsort(item, kind="stable")
        sizes = np.bincount(item)
        coder = np.arange(len(item)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        matrix = np.full((int(sizes.max()), len(sizes)), np.nan)
        matrix[coder, item[order]] = label[order]
        found.append(krippendorff.alpha(reliability_data=matrix, level_of_measurement="nominal"))

    described = {"version": _version("krippendorff"), "numpy": np.__version__}
    try:
        row = _timed_parts({"alpha": of_counts if method == _PEER_METHODS[0] else of_matrix})
    except MemoryError:
        nothing = float("nan")
        return {**described, "all, CPU s": nothing, "all, wall s": nothing, "peak, MB": nothing, "alpha": nothing}
    return {**described, **row, "peak, MB": peak_memory_mb(), "alpha": float(found[0])}


def _version(package: str) -> str:
    import importlib.metadata

    return importlib.metadata.version(package)


def _main(what: str, *words: str) -> None:
    if what == "simulate":
        design, number, folder = words
        measured = _write_columns(design, int(number), Path(folder))
    else:
        item, label = (np.load(Path(words[0]) / f"{name}.npy") for name in ("item", "label"))
        measured = _measure_ours(item, label) if what == "ours" else _measure_peer(what, item, label)
    print(json.dumps(measured))


if __name__ == "__main__":
    _main(*sys.argv[1:])
