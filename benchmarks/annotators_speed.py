"""How fast crowd models are fitted beside crowd-kit, and how many annotations fit into memory, streamed from Parquet.

`python -m benchmarks annotators_speed [--peer PYTHON] [--annotations N] [--large N]`. The annotations are simulated
from the Dawid-Skene model with five of them an item, and written to Parquet files. Every measurement runs in a process
of its own, and only CPU seconds are compared: wall seconds depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.recording import Recording
from benchmarks.speed import last_line, peak_memory_mb, seconds_of_children, timed

_PER_ITEM, _NUM_ANNOTATORS = 5, 1000
_PREVALENCE = (0.35, 0.25, 0.2, 0.12, 0.08)
_ROW_GROUP = 1 << 20

# Three codes and a weight.
_BYTES = 20

# Of MPA there are several decisions an annotation.
_MOST_OF_MPA = 10_000_000


class Race(NamedTuple):
    """A member with a method, the peer that estimates the same or nearly so, and how much of the peer is run.

    Parameters
    ----------
    peer : class of crowd-kit.
    restarts : how often the peer starts anew by its own default; one start is run, and the others count as much.
    """

    name: str
    member: str
    method: str
    peer: str
    restarts: int


RACES = (
    Race("Dawid-Skene, EM", "dawid-skene", "em", "DawidSkene", 1),
    Race("Dawid-Skene, CAVI", "dawid-skene", "cavi", "DawidSkene", 1),
    Race("MACE, CAVI", "mace", "cavi", "MACE", 10),
)

# What the other interpreter runs: DawidSkene for a given number of iterations, with the number after which its own rule
# would have ended it; MACE with one start instead of ten, since each start costs as much.
_PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy, pandas
from crowdkit.aggregation import MACE, DawidSkene
source, name, steps, target = sys.argv[1:]
frame = pandas.read_csv(source, dtype=str)
if name == "DawidSkene":
    model, steps = DawidSkene(n_iter=int(steps), tol=-numpy.inf), int(steps)
else:
    model, steps = MACE(n_restarts=1, random_state=0), 50
began = time.process_time()
labels = model.fit_predict(frame)
seconds = time.process_time() - began
own = steps
if name == "DawidSkene":
    (below,) = numpy.nonzero(numpy.diff(model.loss_history_) < DawidSkene().tol)
    own = int(below[0]) + 2 if len(below) else steps
labels.to_csv(target)
print(json.dumps({"seconds": seconds, "steps": steps, "own steps": own}))
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--peer", metavar="PYTHON", help="a Python interpreter that has crowd-kit; none by default")
    parser.add_argument("--annotations", type=int, default=1_000_000, metavar="N", help="of the race (1000000)")
    parser.add_argument(
        "--large", type=int, nargs="*", default=[1_000_000, 10_000_000, 100_000_000], metavar="N",
        help="how many to stream from Parquet (1000000 10000000 100000000); none for none of it",
    )  # fmt: skip
    parser.add_argument(
        "--java", metavar="COMMAND", nargs="+",
        help="the author's program for MPA, with the mentions (CSV) that it reads as its last word",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    record = Recording("annotators-speed", "Speed of crowd models", arguments.command, arguments.output)
    record.say(
        f"Simulated annotations: {_PER_ITEM} an item, {_NUM_ANNOTATORS:,} annotators with a confusion matrix each, "
        f"{len(_PREVALENCE)} labels, ids as text, in random order. Each row is one fresh process. Other work may have "
        "run on the machine: read CPU seconds, which count all cores."
    )
    with tempfile.TemporaryDirectory() as folder:
        _race(record, arguments.annotations, arguments.peer, Path(folder))
        if arguments.java:
            _against_java(record, arguments.java)
        if arguments.large:
            _large(record, arguments.large, Path(folder))
    record.write()


def _race(record: Recording, number: int, peer: str | None, folder: Path) -> None:
    record.section(f"{number:,} annotations" + (", beside crowd-kit" if peer else ""))
    record.say(
        "'Cold' is the first fit in its process, with compilation, and 'warm' the second, both from the annotations in "
        "memory to the labels, diagnostics included. Ours ends when 20 steps gain less than 1e-7 of the objective. "
        "crowd-kit's DawidSkene runs as many iterations as our EM or CAVI; its 'own steps' are those after which its "
        "own rule (a gain below 1e-5 an annotation) would have ended it, from which its 'own CPU s' are computed. Its "
        "MACE runs 50 iterations from one start; its own CPU seconds are ten times as many, because it starts ten "
        "times by default. Ratios are over our warm fit: 'ratio' with its own rules, 'ratio of a step' by CPU seconds "
        "over steps."
    )
    truth = _simulated(folder, number)
    rows = [_raced(one, truth, peer, folder) for one in RACES]
    record.table("race", rows, digits=4)


def _raced(one: Race, truth: np.ndarray, peer: str | None, folder: Path) -> dict[str, Any]:
    ours = _in_own_process("race", one.member, one.method, str(folder))
    labels = _labels(folder / "ours.csv")
    row = {
        "model": one.name, "cold, CPU s": ours["cold, CPU s"], "warm, CPU s": ours["warm, CPU s"],
        "warm, wall s": ours["warm, wall s"], "steps": ours["steps"], "accuracy": _accuracy(labels, truth),
    }  # fmt: skip
    if peer is None:
        return row
    words = (str(folder / "annotations.csv"), one.peer, str(ours["steps"]), str(folder / "theirs.csv"))
    theirs = last_line([peer, "-W", "ignore", "-c", _PEER, *words])
    of_step = theirs["seconds"] / theirs["steps"]
    own = of_step * theirs["own steps"] * one.restarts
    other = _labels(folder / "theirs.csv")
    return {
        **row, "crowd-kit": one.peer, "its CPU s": theirs["seconds"], "its steps": theirs["steps"],
        "own steps": theirs["own steps"] * one.restarts, "own CPU s": own,
        "its accuracy": _accuracy(other, truth), "labels equal": float((labels == other).mean()),
        "ratio": own / ours["warm, CPU s"], "ratio of a step": of_step * ours["steps"] / ours["warm, CPU s"],
    }  # fmt: skip


def _against_java(record: Recording, command: list[str]) -> None:
    """Time the author's program beside ours, by its rules and in double precision: both make the same sweeps."""
    record.section("MPA beside the author's program")
    mentions = command[-1]
    before = seconds_of_children()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    theirs = seconds_of_children() - before
    ours = _in_own_process("java", mentions)
    each = ours["sweeps"] * ours["decisions"] / 1e9
    record.say(
        "CPU seconds of whole programs: of the author's with its start and reading, of ours a fit without compilation. "
        "'ns' are nanoseconds for each sweep and decision."
    )
    rows = [
        {"program": "the author's", "CPU s": theirs, "sweeps": ours["sweeps"], "ns": theirs / each},
        {"program": "ours", "CPU s": ours["CPU s"], "sweeps": ours["sweeps"], "ns": ours["CPU s"] / each},
    ]
    record.table("java", rows)


def _large(record: Recording, numbers: list[int], folder: Path) -> None:
    record.section("Streamed from Parquet")
    record.say(
        "'Read' is `cs.read_annotations` of the file. 'Fit' is the second call, without compilation; a sweep is the "
        "wall time of its ascent over its steps; 'ns' are nanoseconds of a sweep for each decision. Under MPA an "
        "annotation decides on each label that its item got, under Dawid-Skene it is one decision. 'Table' is what the "
        f"annotations take as arrays: {_BYTES} bytes each. Peak memory is of the whole process, with interpreter and "
        f"imports. MPA up to {_MOST_OF_MPA:,} annotations."
    )
    rows = []
    for number in numbers:
        truth = _simulated(folder, number)
        np.save(folder / "truth.npy", truth)
        members = ["dawid-skene", "mpa"] if number <= _MOST_OF_MPA else ["dawid-skene"]
        for member in members:
            rows.append({"annotations": number, "model": member, **_in_own_process("large", member, str(folder))})
            print(json.dumps(rows[-1]), flush=True)
    record.table("large", rows, digits=3)


# ---- data ----


def simulate(path: Path, number: int, seed: int = 0) -> np.ndarray:
    """Write simulated annotations to a Parquet file, row group by row group.

    Parameters
    ----------
    path : of the file to write.
    number : of annotations; a multiple of five.
    seed : of the random numbers.

    Returns
    -------
    truth : int8, shape ``(item,)``; the true label of each item; item ``i7`` is at position 7.
    """
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    random = np.random.default_rng(seed)
    num_items, num_labels = number // _PER_ITEM, len(_PREVALENCE)
    truth = random.choice(num_labels, num_items, p=_PREVALENCE).astype(np.int8)
    accuracy = random.beta(4, 2, (_NUM_ANNOTATORS, num_labels, 1))
    wrong = random.dirichlet(np.ones(num_labels), (_NUM_ANNOTATORS, num_labels))
    confusion = (accuracy * np.eye(num_labels) + (1 - accuracy) * wrong).cumsum(axis=-1)
    sizes = {"item": num_items, "annotator": _NUM_ANNOTATORS, "label": num_labels}
    names = {role: pyarrow.array([f"{role[0]}{code}" for code in range(size)]) for role, size in sizes.items()}
    share = _NUM_ANNOTATORS // _PER_ITEM
    with ParquetWriter(path, pyarrow.schema([(role, pyarrow.string()) for role in names])) as writer:
        for turn in range(_PER_ITEM):
            order = random.permutation(num_items)
            for start in range(0, num_items, _ROW_GROUP):
                item = order[start : start + _ROW_GROUP]
                # Each turn has annotators of its own, so that none labels an item twice.
                annotator = turn * share + random.integers(0, share, len(item))
                label = (random.random((len(item), 1)) > confusion[annotator, truth[item], :-1]).sum(axis=1)
                codes = {"item": item, "annotator": annotator, "label": label}
                writer.write_table(
                    pyarrow.table({role: names[role].take(pyarrow.array(codes[role])) for role in names})
                )
    return truth


def _simulated(folder: Path, number: int) -> np.ndarray:
    return simulate(folder / "annotations.parquet", number)


def _labels(path: Path) -> np.ndarray:
    """Return the labels of a file with items and labels in the order of the items: int, shape ``(item,)``."""
    import pandas

    frame = pandas.read_csv(path, dtype=str)
    item, label = (frame[column].str[1:].astype(int).to_numpy() for column in frame.columns[:2])
    return label[np.argsort(item)]


def _accuracy(labels: np.ndarray, truth: np.ndarray) -> float:
    return float((labels == truth).mean())


# ---- processes ----


def _in_own_process(*words: str) -> dict[str, Any]:
    return last_line([sys.executable, "-m", "benchmarks.annotators_speed", *words])


def _measure_race(member: str, method: str, folder: Path) -> dict[str, Any]:
    import consilience as cs

    data = cs.read_annotations(folder / "annotations.parquet")
    made: dict[str, Any] = {}

    def fit() -> None:
        made["fit"] = cs.fit(member, data, method=method)
        made["labels"] = made["fit"].labels()

    _, cold = timed(fit)
    wall, warm = timed(fit)
    made["labels"][["item", "label"]].to_csv(folder / "ours.csv", index=False)
    if not (folder / "annotations.csv").exists():
        write_csv(data, folder / "annotations.csv")
    return {
        "cold, CPU s": cold, "warm, CPU s": warm, "warm, wall s": wall, "steps": len(made["fit"].elbo),
    }  # fmt: skip


def write_csv(data: Any, path: Path) -> None:
    """Write annotations as crowd-kit reads them."""
    import pandas

    columns = {"task": data.items[data.item], "worker": data.annotators[data.annotator]}
    pandas.DataFrame({**columns, "label": data.labels[data.label]}).to_csv(path, index=False)


def _measure_large(member: str, folder: Path) -> dict[str, Any]:
    import consilience as cs

    made: dict[str, Any] = {}

    def read() -> None:
        made["data"] = cs.read_annotations(folder / "annotations.parquet")

    def fit() -> None:
        made["fit"] = cs.fit(member, made["data"], method="cavi")

    read_wall, read_cpu = timed(read)
    after_reading = peak_memory_mb()
    # Compiles, so that the seconds of the ascent below are those of its steps.
    cs.fit(member, made["data"], method="cavi", max_steps=1)
    fit_wall, fit_cpu = timed(fit)
    steps, number = len(made["fit"].elbo), made["data"].num_annotations
    sweep = made["fit"].run.seconds / steps
    decisions = _decisions(made["data"]) if member == "mpa" else number
    peak = peak_memory_mb()
    truth = np.load(folder / "truth.npy")
    of_items = truth[[int(name[1:]) for name in made["data"].items]]
    return {
        "read, wall s": read_wall, "read, CPU s": read_cpu, "fit, wall s": fit_wall, "fit, CPU s": fit_cpu,
        "steps": steps, "decisions": decisions, "sweep, s": sweep, "ns": sweep / decisions * 1e9,
        "table, MB": number * _BYTES / 1e6, "peak of reading, MB": after_reading, "peak, MB": peak,
        "accuracy": _accuracy(made["fit"].truth.estimate(), of_items),
    }  # fmt: skip


def _measure_java(mentions: Path) -> dict[str, Any]:
    import jax

    import consilience as cs
    from consilience.models.mpa.candidates import candidates_of

    made: dict[str, Any] = {}
    with jax.enable_x64(True):
        data = cs.read_mentions(mentions)
        for _ in range(2):
            _, seconds = timed(lambda: made.update(fit=cs.fit("mpa", data, author=1)))
    tables = candidates_of(data).tables
    decisions = int(tables.yes.sum() + tables.no.sum())
    return {"CPU s": seconds, "sweeps": len(made["fit"].elbo), "decisions": decisions}


def _decisions(data: Any) -> int:
    """Return the number of pairs of an annotation and a label that its item got."""
    shape = (data.num_items, data.num_labels)
    counts = np.bincount(np.ravel_multi_index((data.item, data.label), shape), minlength=shape[0] * shape[1])
    counts = counts.reshape(shape)
    return int(counts.sum(axis=1) @ (counts > 0).sum(axis=1))


def _main(what: str, *words: str) -> None:
    warnings.simplefilter("ignore")
    *names, folder = words
    measure = {"race": _measure_race, "large": _measure_large, "java": _measure_java}[what]
    print(json.dumps(measure(*names, Path(folder))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
