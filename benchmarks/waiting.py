"""What a user waits for after a fit: each row in a process of its own, as a share of the fit that it follows.

Annotations are simulated: five to an item, of five labels, by a thousand annotators, and fitted by CAVI of
`dawid-skene`. What is told is the CPU time of a row over that of the fit in the same process: seconds depend on
what else the machine does, the ratio hardly. With ``--against CHECKOUT`` another checkout is run in turn with this
one, three times, and the ratio of the medians is told. ``growth`` is how the time of `certainty` grows with the
number of items, the median of several processes that have all called it before, for a small fit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import Recording
from benchmarks.speed import peak_memory_mb, timed

ROWS = ("certainty", "report", "growth")

_LABELS, _PER_ITEM, _ANNOTATORS, _DRAWS = 5, 5, 1000, 1000
_REPEATS = 3

# Sizes by which growth is measured, and that of the small fit.
_GROWTH_ITEMS, _SMALL = (50_000, 100_000, 200_000), 5_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--annotations", type=int, nargs="+", default=[100_000, 1_000_000], metavar="N")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout, run in turn with this one")


def run(arguments: argparse.Namespace) -> None:
    """Measure all rows at all sizes, and record them."""
    here = Path(__file__).parents[1]
    record = Recording("waiting", "What a user waits for", arguments.command, arguments.output)
    for row in arguments.rows:
        if row == "growth":
            _grow(record, here)
            continue
        found = []
        for number in arguments.annotations:
            checkouts = [here] if arguments.against is None else [here, arguments.against.resolve()] * _REPEATS
            measured = [_measure(checkout, row, number) for checkout in checkouts]
            own = measured[:: 1 if arguments.against is None else 2]
            line: dict[str, Any] = {"annotations": number, **_medians(own)}
            if arguments.against is not None:
                other = _medians(measured[1::2])
                line |= {f"{name}, other checkout": value for name, value in other.items() if "CPU" in name}
                line["ratio"] = line[f"{row}, CPU s"] / other[f"{row}, CPU s"]
            found.append(line)
        record.section(row)
        record.table(row, found)
    record.write()


def _grow(record: Recording, here: Path) -> None:
    """Measure how `certainty` grows, and record it."""
    found: list[dict[str, Any]] = []
    for items in _GROWTH_ITEMS:
        measured = _medians([_measure(here, "growth", items * _PER_ITEM) for _ in range(_REPEATS)])
        line = {"items": items, "certainty, CPU s": measured["growth, CPU s"], "of the fit": measured["of the fit"]}
        found.append(line | {"times the first": measured["growth, CPU s"] / (found or [line])[0]["certainty, CPU s"]})
    record.section("growth")
    record.table("growth", found)


def _medians(measured: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(one[name] for one in measured) for name in measured[0]}


def _measure(checkout: Path, row: str, number: int) -> dict[str, float]:
    """Measure a row in a fresh process of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, str(Path(__file__).resolve()), row, str(number)]
    done = subprocess.run(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _annotations(number: int) -> Any:
    """Simulate annotators who are right with a probability of their own, between .5 and .95."""
    import consilience as cs

    random = np.random.default_rng(0)
    item = np.repeat(np.arange(number // _PER_ITEM), _PER_ITEM)
    annotator = random.integers(0, _ANNOTATORS, len(item))
    truth = random.integers(0, _LABELS, number // _PER_ITEM)
    right = random.random(len(item)) < random.uniform(0.5, 0.95, _ANNOTATORS)[annotator]
    label = np.where(right, truth[item], random.integers(0, _LABELS, len(item)))
    return cs.Annotations.from_codes(item, annotator, label, num_annotators=_ANNOTATORS, num_labels=_LABELS)


def _main(row: str, number: int) -> None:
    import consilience as cs

    data, made = _annotations(number), {}
    settings = {"method": "cavi", "draws": _DRAWS, "progress": False}

    def fit() -> None:
        made["fit"] = cs.fit("dawid-skene", data, **settings)

    wall, cpu = timed(fit)
    measured = {"fit, CPU s": cpu, "fit, wall s": wall}
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        call = {"certainty": lambda: cs.certainty(made["fit"]), "report": lambda: cs.report(made["fit"], path=page)}
        if row == "growth":
            cs.certainty(cs.fit("dawid-skene", _annotations(_SMALL), **settings))
        wall, cpu = timed(call["certainty" if row == "growth" else row])
    measured |= {f"{row}, CPU s": cpu, f"{row}, wall s": wall, "of the fit": cpu / measured["fit, CPU s"]}
    print(json.dumps(measured | {"peak, MB": peak_memory_mb()}))


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
