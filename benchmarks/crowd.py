"""Can the certainty of crowd models be believed? Every bar that was set for them, with the peers beside it.

`python -m benchmarks crowd [--peer PYTHON] [--only PART …]`. PYTHON is an interpreter that has crowd-kit, which is no
longer maintained and wants an environment of its own; each data set is handed to it as a file.

| part | what it measures | where |
|---|---|---|
| `public` | accuracy and calibration on nine sets with gold labels | `crowd_public` |
| `left-out` | the same with rho chosen on the eight other sets | `crowd_public` |
| `noise` | alerts and certainty where annotators guess, or nearly so | `crowd_simulated` |
| `intervals` | whether intervals of annotators hold what they are of | `crowd_simulated` |
| `speed` | CPU seconds of fits and of the command | `crowd_speed` |

Every row is kept in ``rows.jsonl`` as soon as it is measured, and a later run goes on from there: parts can be run one
by one, and interrupted. The report is written from all rows that are kept, and says at which commit they were
measured; ``--again`` measures what is asked for anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import crowd_public, crowd_simulated, crowd_speed
from benchmarks.recording import Bar, Kept, Recording, at_least, at_most, run_parts, tell_bars, tell_commits

PARTS = ("public", "left-out", "noise", "intervals", "speed")

MEMBERS = ("majority-vote", "dawid-skene", "mace", "one-coin", "glad", "mpa")

_FEWEST_CROWDS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with crowd-kit; without it ours stand alone")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--members", nargs="+", choices=MEMBERS, default=list(MEMBERS), metavar="NAME")
    parser.add_argument("--sets", type=int, default=len(crowd_public.SETS), metavar="N", help="the first N public sets")
    parser.add_argument(
        "--cells", type=int, default=len(crowd_simulated.CELLS), metavar="N", help="the first N cells of noise"
    )
    parser.add_argument("--simulated", type=int, default=100, metavar="N", help="crowds of each kind for intervals")
    parser.add_argument("--largest", type=int, default=10**6, metavar="N", help="annotations of the speed races, most")
    parser.add_argument("--again", action="store_true", help="measure anew what is kept")


def run(arguments: argparse.Namespace) -> None:
    """Measure what is asked for and not kept, and write the report from all that is kept."""
    sets, members = crowd_public.SETS[: arguments.sets], arguments.members

    def measures(kept: Kept) -> dict[str, Callable[[], Any]]:
        cells = crowd_simulated.CELLS[: arguments.cells]
        return {
            "public": lambda: crowd_public.measure_public(kept, sets, members, arguments.peer),
            "left-out": lambda: crowd_public.measure_left_out(kept, sets, members),
            "noise": lambda: crowd_simulated.measure_noise(kept, cells, members),
            "intervals": lambda: crowd_simulated.measure_intervals(kept, arguments.simulated, sets, members),
            "speed": lambda: crowd_speed.measure_speed(kept, arguments.largest, members, arguments.peer),
        }

    run_parts("crowd", "Can the certainty of crowd models be believed?", arguments, measures, tell)


def tell(record: Recording, kept: Kept) -> None:
    """Record the bars, and then every part of which there are rows."""
    record.say(
        "The bars first, whether they are met or not; then what they are made of. 'Right' is the share of gold labels "
        "that are hit, 'certainty' the mean probability of the most probable label: where the certainty can be "
        "believed the two are equal."
    )
    tell_bars(record, list(bars(kept)))
    parts = ("public", "left-out", "noise", "intervals", "realised", "speed", "speed of crowd-kit", "commands")
    commits = {part: kept.commits(part) for part in parts}
    tell_commits(record, kept, parts)
    if commits["public"]:
        record.section("Nine public sets")
        crowd_public.tell_public(record, kept.rows("public"))
    if commits["left-out"]:
        record.section("Rho chosen on eight sets, scored on the ninth")
        crowd_public.tell_left_out(record, kept.rows("left-out"))
    if commits["noise"]:
        record.section("Noise and weak signal")
        crowd_simulated.tell_noise(record, kept.rows("noise"))
    if commits["intervals"] or commits["realised"]:
        record.section("Intervals of annotators")
        crowd_simulated.tell_intervals(record, kept.rows("intervals"), kept.rows("realised"))
    if commits["speed"] or commits["commands"]:
        record.section("Speed")
        crowd_speed.tell_speed(record, kept)


# ---- bars ----


def bars(kept: Kept) -> Iterator[Bar]:
    """Yield every bar with what the rows say of it.

    A bar on nine sets is measured when all nine are, one on 27 cells when all cells are, and one on intervals when 100
    crowds are.
    """
    yield from _public_bars(kept)
    yield from _noise_bars(kept)
    coverage = {(row["crowd"], row["method"]): row["held"]
                for row in crowd_simulated.coverage_of_crowds(kept.rows("intervals"))
                if row["sets"] >= _FEWEST_CROWDS}  # fmt: skip
    for method, least in (("CAVI, imputed", 0.8), ("Gibbs", 0.87)):
        name = f"90 % intervals that hold the accuracy, as modelled, {method}"
        yield at_least(name, least, coverage.get(("as modelled", method)))
    for crowd in crowd_simulated.CROWDS:
        name = f"90 % intervals that hold the accuracy, {crowd}, default"
        yield at_least(name, 0.8, coverage.get((crowd, "default")))
    yield from _speed_bars(kept)


def _public_bars(kept: Kept) -> Iterator[Bar]:
    rows = kept.rows("public")
    means = crowd_public.public_means(rows)
    nine = {name: row for name, row in means.items() if row["sets"] == len(crowd_public.SETS)}
    found = nine.get("dawid-skene, rho 0.3", {})
    yield at_most("dawid-skene, rho .3, nine sets: mean ECE", 0.055, found.get("ECE"), 3)
    yield at_most("dawid-skene, rho .3, nine sets: mean NLL", 0.4, found.get("NLL"), 3)
    yield at_least("dawid-skene, rho .3, nine sets: mean right", 0.888, found.get("right"), 3)
    own = crowd_public.left_out_of(kept.rows("left-out"), "dawid-skene")
    mean = own[-1] if len(own) == len(crowd_public.SETS) + 1 else {}
    yield at_most("dawid-skene, rho of eight sets on the ninth: mean ECE", 0.055, mean.get("ECE, chosen"), 3)
    yield at_most("dawid-skene, rho of eight sets on the ninth: mean NLL", 0.4, mean.get("NLL, chosen"), 3)
    zencrowd = rows.get(("crowd-zencrowd-in", "mace, rho 0.3"), {})
    yield at_least("mace, ZenCrowd: right", 0.775, zencrowd.get("right"), 3)


def _noise_bars(kept: Kept) -> Iterator[Bar]:
    cells = len(crowd_simulated.CELLS)
    found = {row["model"]: row for row in crowd_simulated.noise_means(kept.rows("noise"))
             if row["delta"] == 0 and row["cells"] == cells}  # fmt: skip
    for member in crowd_simulated.MEMBERS:
        row = found.get(member, {})
        yield at_least(f"{member}, noise, 27 cells: alerts", 26, row.get("alerts"), 0)
        name = "alert or certainty below .54"
        yield at_least(f"{member}, noise, 27 cells: {name}", 27, row.get(name), 0)
        # What is not tempered has only the alert.
        if member != "mpa":
            yield at_most(f"{member}, noise, 27 cells: mean certainty", 0.47, row.get("certainty"))
            yield at_most(f"{member}, noise, 27 cells: largest certainty", 0.7, row.get("largest"))


def _speed_bars(kept: Kept) -> Iterator[Bar]:
    rows = kept.rows("speed")
    for race in crowd_speed.RACES:
        own = rows.get(race.key, {})
        for name, bar in (("cold", race.cold), ("warm", race.warm)):
            if bar is not None:
                label = f"{race.member}, {race.name}, {race.rows:,} annotations, {name}: CPU s"
                yield at_most(label, bar, own.get(name))
    command = kept.rows("commands").get((crowd_speed.FIRST_COMMAND,), {})
    name = f"the command, {crowd_speed.COMMAND_ROWS:,} annotations, cold: CPU s"
    yield at_most(name, crowd_speed.COMMAND_BAR, command.get("CPU s"))
