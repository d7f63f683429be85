"""CPU seconds of crowd models beside crowd-kit: part of the benchmark `crowd`.

Every row is measured in processes of its own, without a stored compilation: what a user's first call takes ('cold') and
what later calls on new data of the same size take ('warm'), imports apart; and whole programs, with imports. Only CPU
seconds, user and system, are compared: wall seconds depend on what else the machine does.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.recording import Kept, Recording
from benchmarks.speed import last_line, peak_memory_mb, seconds_of_children, timed

_PER_ITEM, _LABELS, _FEWEST, _MOST = 5, 4, 100, 1000
_REPEATS = 3


class Race(NamedTuple):
    """What is measured.

    Parameters
    ----------
    name : of the row.
    member, options : of `fit`.
    rows : how many annotations.
    cold, warm : bars in CPU seconds; None where there is none.
    peer : class of crowd-kit that is nearest, with its own defaults.
    noise : whether the labels say nothing of the items, so that the gate fires.
    everything : whether the tables and all findings are asked for, and not the labels alone.
    """

    name: str
    member: str
    rows: int
    options: dict[str, Any] = {}
    cold: float | None = None
    warm: float | None = None
    peer: str | None = None
    noise: bool = False
    everything: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        """What no other race has."""
        return self.member, self.name, self.rows


_GIBBS = {"method": "gibbs", "chains": 4, "draws": 200, "warmup": 50}
RACES = (
    Race("default", "dawid-skene", 10**4, cold=1.0, warm=0.1, peer="DawidSkene"),
    Race("default, the gate fires", "dawid-skene", 10**4, warm=2.0, noise=True),
    Race("Gibbs, 4 chains of 250 sweeps", "dawid-skene", 10**4, _GIBBS, cold=2.0, warm=1.5),
    Race("default", "glad", 10**4, warm=1.5, peer="GLAD"),
    Race("default", "mace", 10**4, warm=0.5, peer="MACE"),
    Race("default", "one-coin", 10**5, warm=0.6, peer="OneCoinDawidSkene"),
    Race("default", "dawid-skene", 10**5, warm=0.6, peer="DawidSkene"),
    Race("default", "dawid-skene", 10**6, warm=2.5, peer="DawidSkene"),
    Race("default, with tables and findings", "dawid-skene", 10**6, cold=30.0, everything=True),
)

COMMAND_ROWS, COMMAND_BAR = 10**4, 5.0

FIRST_COMMAND = "consilience fit, nothing compiled before"
"""The row of the command as a user meets it who has never run it: later runs find what it has compiled."""

# What the other interpreter runs: the CPU seconds of the import and of two fits, printed.
_PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
began = time.process_time()
import pandas
from crowdkit import aggregation
seconds = [time.process_time() - began]
frame = pandas.read_csv(sys.argv[1], dtype=str)
for _ in range(2):
    began = time.process_time()
    getattr(aggregation, sys.argv[2])().fit_predict_proba(frame)
    seconds.append(time.process_time() - began)
print(json.dumps(dict(zip(("import", "cold", "warm"), seconds))))
"""

# The whole program that the command is compared with: read a file, aggregate, write the labels.
_PEER_PROGRAM = """
import sys
import pandas
from crowdkit.aggregation import DawidSkene
frame = pandas.read_csv(sys.argv[1], dtype=str)
DawidSkene().fit_predict(frame).to_csv(sys.argv[2])
"""


def simulated(number: int, *, noise: bool = False, seed: int = 0) -> Any:
    """Simulate five annotations an item, of four labels, by 100 to 1,000 annotators with 100 rows or more each.

    Parameters
    ----------
    number : of annotations; a multiple of five.
    noise : whether annotators label without a look at the items; else each is right with probability .5 to .95.
    seed : of the random numbers.
    """
    from consilience.data import Annotations

    random = np.random.default_rng([seed, number])
    annotators = int(np.clip(number // _FEWEST, _FEWEST, _MOST))
    item = np.repeat(np.arange(number // _PER_ITEM), _PER_ITEM)
    # Each turn has annotators of its own, so that none labels an item twice.
    share = annotators // _PER_ITEM
    annotator = np.tile(np.arange(_PER_ITEM), number // _PER_ITEM) * share + random.integers(0, share, len(item))
    truth = random.integers(0, _LABELS, number // _PER_ITEM)
    right = random.random(len(item)) < random.uniform(0.5, 0.95, annotators)[annotator]
    drawn = random.integers(0, _LABELS, len(item))
    label = drawn if noise else np.where(right, truth[item], drawn)
    return Annotations.from_codes(item, annotator, label, num_annotators=annotators, num_labels=_LABELS)


def measure_speed(kept: Kept, largest: int, members: Sequence[str], peer: str | None) -> None:
    """Measure every race of no more annotations than ``largest``, and the command."""
    from consilience import models

    with tempfile.TemporaryDirectory() as folder:
        for place, race in enumerate(RACES):
            if race.rows <= largest and race.member in members and race.member in models.names():
                kept.row("speed", race.key, functools.partial(_own, place))
                if peer and race.peer:
                    measure = functools.partial(_of_peer, race, peer, Path(folder))
                    kept.row("speed of crowd-kit", race.key, measure)
        if "dawid-skene" in members:
            kept.row("commands", (FIRST_COMMAND,), functools.partial(_command, Path(folder), compiled=False))
            kept.row("commands", ("consilience fit",), functools.partial(_command, Path(folder)))
            tables = functools.partial(_command, Path(folder), tables=True)
            kept.row("commands", ("consilience fit, consilience table labels",), tables)
            if peer:
                kept.row("commands", ("script with crowd-kit",), functools.partial(_peer_program, Path(folder), peer))


def _own(place: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.crowd_speed", str(place)]
    return _medians([last_line(command, environment=_environment()) for _ in range(_repeats(RACES[place].rows))])


def _of_peer(race: Race, peer: str, folder: Path) -> dict[str, Any]:
    command = [peer, "-W", "ignore", "-c", _PEER, str(_file(race.rows, folder, race.noise)), race.peer or ""]
    return _medians([last_line(command) for _ in range(_repeats(race.rows))])


def _command(folder: Path, *, tables: bool = False, compiled: bool = True) -> dict[str, Any]:
    path, target = _file(COMMAND_ROWS, folder), folder / "run"
    columns = "item=task,annotator=worker"
    fit = ["fit", "dawid-skene", str(path), "--columns", columns, "--quiet", "--force", "-o", str(target)]
    table = ["table", str(target), "labels", "--force", "--csv", str(folder / "labels.csv")]
    programs = [fit, table] if tables else [fit]
    cache = {} if compiled else {"CONSILIENCE_COMPILATION_CACHE": "off"}
    return _program([[sys.executable, "-m", "consilience", *words] for words in programs], cache)


def _peer_program(folder: Path, peer: str) -> dict[str, Any]:
    target = folder / "theirs.csv"
    return _program([[peer, "-W", "ignore", "-c", _PEER_PROGRAM, str(_file(COMMAND_ROWS, folder)), str(target)]], {})


def _program(commands: list[list[str]], variables: dict[str, str]) -> dict[str, Any]:
    """Return the median CPU seconds of the processes of some commands, one after the other, under these variables."""
    seconds, environment = [], {**_environment(), **variables}
    # The first run may compile Python's own files.
    for _ in range(_REPEATS + 1):
        before = seconds_of_children()
        for command in commands:
            subprocess.run(command, check=True, capture_output=True, env=environment, cwd=Path(__file__).parents[1])
        seconds.append(seconds_of_children() - before)
    return {"CPU s": statistics.median(seconds[1:])}


def _environment() -> dict[str, str]:
    """Return the variables of a process that finds no compiled program of an earlier one."""
    return {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}


def _repeats(rows: int) -> int:
    return _REPEATS if rows <= 10**5 else 1


def _medians(measured: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of numbers; texts are those of the first."""
    return {
        name: first if isinstance(first, str) else statistics.median(one[name] for one in measured)
        for name, first in measured[0].items()
    }


def _file(number: int, folder: Path, noise: bool = False) -> Path:
    """Write the annotations as crowd-kit reads them, once."""
    import pandas

    path = folder / f"{number}{'-noise' if noise else ''}.csv"
    if not path.exists():
        data = simulated(number, noise=noise)
        columns = {"task": data.items[data.item], "worker": data.annotators[data.annotator]}
        pandas.DataFrame({**columns, "label": data.labels[data.label]}).to_csv(path, index=False)
    return path


def speed_rows(
    rows: dict[tuple[Any, ...], dict[str, Any]], peers: dict[tuple[Any, ...], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return what was measured of each race beside its bars and its peer."""
    table = []
    for race in RACES:
        if race.key not in rows:
            continue
        own, other = rows[race.key], peers.get(race.key, {})
        table.append({
            "what": race.name, "model": race.member, "annotations": race.rows, "method": own["method"],
            "cold, CPU s": own["cold"], "cold, bar": race.cold, "warm, CPU s": own["warm"], "warm, bar": race.warm,
            "crowd-kit": race.peer or "", "its first, CPU s": other.get("cold"), "its second, CPU s": other.get("warm"),
            "ratio, cold": other["cold"] / own["cold"] if other else None,
            "ratio, warm": other["warm"] / own["warm"] if other else None, "peak, MB": own["peak"],
        })  # fmt: skip
    return table


def tell_speed(record: Recording, kept: Kept) -> None:
    """Record the races and the commands."""
    record.say(
        f"Simulated annotations, {_PER_ITEM} an item, of {_LABELS} labels. 'Cold' is the first fit in its process, "
        "with compilation and without imports; 'warm' the median of later ones, each on a data object that the "
        "process has not seen, so that gate and dependence are computed each time. Both end with the labels. crowd-kit "
        "has its own defaults and ends with the probabilities of the labels. Medians of three processes, above 10⁵ "
        "annotations of one. Ratios are its CPU seconds over ours in this run."
    )
    rows = speed_rows(kept.rows("speed"), kept.rows("speed of crowd-kit"))
    record.table("speed", rows or [{"what": "nothing was measured"}])
    commands = {key[0]: row["CPU s"] for key, row in kept.rows("commands").items()}
    record.say(
        f"Whole programs on a CSV file of {COMMAND_ROWS:,} annotations, with start and imports: the command where "
        "nothing was compiled before, the command as later runs find it, that and a table of labels, and a script that "
        "reads the file, aggregates by crowd-kit's DawidSkene and writes the labels."
    )
    peer = commands.get("script with crowd-kit")
    table = [{"program": name, "CPU s": seconds, "ratio": None if peer is None else peer / seconds}
             for name, seconds in commands.items()]  # fmt: skip
    record.table("commands", table or [{"program": "none was measured"}])


def _main(place: int) -> None:
    import consilience as cs

    warnings.simplefilter("ignore")
    race = RACES[place]
    data = simulated(race.rows, noise=race.noise)
    made: dict[str, Any] = {}

    def call() -> None:
        fit = made["fit"] = cs.fit(race.member, made["data"], progress=False, **race.options)
        fit.labels()
        if race.everything:
            fit.annotators(), fit.confusion(), fit.crowd(), fit.findings()

    seconds = []
    # Imports that happen on the way belong to none of them.
    cs.fit("majority-vote", simulated(100)).labels()
    for _ in range(1 + _REPEATS):
        made["data"] = dataclasses.replace(data)
        seconds.append(timed(call)[1])
    found = {"cold": seconds[0], "warm": statistics.median(seconds[1:]), "peak": peak_memory_mb()}
    print(json.dumps({**found, "method": made["fit"].method}))


if __name__ == "__main__":
    _main(int(sys.argv[1]))
