"""Can a leaderboard be believed? Every bar that was set for it, with the peers beside it.

`python -m benchmarks leaderboard [--peer PYTHON] [--only PART …]`. PYTHON is an interpreter that has ppi-python and
truescore, which want an environment of their own.

| part | what it measures | where |
|---|---|---|
| `sums` | coverage and P(best) where the truth and where systems come from are as modelled | `leaderboard_sums` |
| `provenance` | the readings of a system, with where it comes from stated, and not | `leaderboard_provenance` |
| `refits` | a system as one more annotator, through the crowd models themselves | `leaderboard_provenance` |
| `preferences` | ranked items, by annotators who repeat errors, or not | `leaderboard_preferences` |
| `public` | intervals beside the gold labels of nine public crowds | `leaderboard_public` |
| `anchoring` | judges and some gold labels, beside two peers | `leaderboard_anchoring` |
| `coefficients` | intervals of agreement coefficients | `leaderboard_coefficients` |
| `conformal` | what conformal sets hold | `leaderboard_conformal` |
| `speed` | CPU seconds and memory of `compare` | here |

Every row is kept in ``rows.jsonl`` as soon as it is measured, and a later run goes on from there; ``--again`` measures
what is asked for anew.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import (
    leaderboard_anchoring,
    leaderboard_coefficients,
    leaderboard_conformal,
    leaderboard_preferences,
    leaderboard_provenance,
    leaderboard_public,
    leaderboard_sums,
)
from benchmarks.recording import Bar, Kept, Recording, at_least, at_most, between, run_parts, tell_bars, tell_commits

PARTS = (
    "sums", "provenance", "refits", "preferences", "public", "anchoring", "coefficients", "conformal", "speed",
)  # fmt: skip

_REFITS = {"dawid-skene": 100, "mace": 50, "one-coin": 50}
_SPEED = ((10, 25_000, 1000, "annotations"), (10, 50_000, 1000, "annotations"), (10, 100_000, 1000, "annotations"),
          (2, 100_000, 1000, "unknown"))  # fmt: skip

# One comparison in a process of its own: seconds of the second call, and what memory the first one took at most.
_COMPARE = """
import json, resource, sys, time
import numpy as np
import consilience as cs
from consilience.models.truth import LabelDraws
systems, items, draws, provenance = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random = np.random.default_rng(0)
labels = random.integers(0, 5, items)
drawn = np.where(random.random((draws, items), np.float32) < 0.8, labels, 4 - labels).astype(np.int8)
names = list("abcde")
codes = np.where(random.random((systems, items)) < 0.7, labels, random.integers(0, 5, (systems, items)))
given = {f"system {k}": cs.Predictions.from_scores(np.eye(5)[own], classes=names) for k, own in enumerate(codes)}
truth = LabelDraws(drawn, 5)
truth.ids = {"class": np.array(names, object)}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
cs.compare(truth, given, provenance=provenance)
peak, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
cs.compare(truth, given, provenance=provenance)
print(json.dumps({"CPU s": time.process_time() - start, "memory before, MiB": before / 1024, "peak, MiB": peak / 1024}))
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with ppi-python and truescore")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--share", type=float, default=1.0, metavar="X", help="of the simulated sets (1)")
    parser.add_argument("--again", action="store_true", help="measure anew what is kept")


def run(arguments: argparse.Namespace) -> None:
    """Measure what is asked for and not kept, and write the report from all that is kept."""

    def measures(kept: Kept) -> dict[str, Callable[[], Any]]:
        share = arguments.share
        return {
            "sums": lambda: leaderboard_sums.measure_sums(kept, share),
            "provenance": lambda: _provenance(kept, share),
            "refits": lambda: _refits(kept, share),
            "preferences": lambda: _preferences(kept, share),
            "public": lambda: leaderboard_public.measure_public_sets(kept),
            "anchoring": lambda: _anchoring(kept, share, arguments.peer),
            "coefficients": lambda: _coefficients(kept, share),
            "conformal": lambda: _conformal(kept, share),
            "speed": lambda: _speed(kept),
        }

    run_parts("leaderboard", "Can a leaderboard be believed?", arguments, measures, tell)


def _provenance(kept: Kept, share: float) -> None:
    sets = max(round(100 * share), 1)
    for setting in leaderboard_provenance.SETTINGS:
        kept.row("provenance", (setting.name, sets), lambda setting=setting: leaderboard_provenance.coverage(
            sets, (setting,)
        ).iloc[0].to_dict())  # fmt: skip
    for row in leaderboard_provenance.worst_case().to_dict("records"):
        kept.row("worst case", (row["provenance"], row["system"]), lambda row=row: row)


def _refits(kept: Kept, share: float) -> None:
    for model, sets in _REFITS.items():
        number = max(round(sets * share), 1)
        kept.row("refits", (model, number), lambda model=model, number=number: leaderboard_provenance.refits(
            number, model
        ))  # fmt: skip


def _preferences(kept: Kept, share: float) -> None:
    sets = max(round(100 * share), 1)
    for setting in leaderboard_preferences.SETTINGS:
        kept.row("preferences", (*setting, sets), lambda setting=setting: leaderboard_preferences.preferences(
            setting, sets
        ))  # fmt: skip


def _anchoring(kept: Kept, share: float, peer: str | None) -> None:
    for setting in leaderboard_anchoring.SETTINGS:
        sets = max(round(40 * share), 1)
        for row in leaderboard_anchoring.measure(setting, sets, peer):
            kept.row("anchoring", (*map(str, setting), row["method"]), lambda row=row: row)


def _coefficients(kept: Kept, share: float) -> None:
    for setting in leaderboard_coefficients.SETTINGS:
        for row in leaderboard_coefficients.coefficient_coverage((setting,), max(round(100 * share), 2)):
            kept.row("coefficients", (str(setting), row["coefficient"]), lambda row=row: row)


def _conformal(kept: Kept, share: float) -> None:
    for system in leaderboard_conformal.SYSTEMS:
        for items in (50, 200):
            kept.row("conformal", (system, items), lambda system=system, items=items: (
                leaderboard_conformal.real_coverage(system, items, sets=max(round(400 * share), 2))
            ))  # fmt: skip


def _speed(kept: Kept) -> None:
    for case in _SPEED:
        words = [sys.executable, "-c", _COMPARE, *map(str, case)]
        row = dict(zip(("systems", "items", "draws", "provenance"), case, strict=True))
        kept.row("speed", case, lambda words=words, row=row: row | json.loads(
            subprocess.run(words, capture_output=True, text=True, check=True).stdout
        ))  # fmt: skip


def tell(record: Recording, kept: Kept) -> None:
    """Record every part of which there are rows."""
    record.say("Intervals are nominal 95 % unless something else is said. 'Holds' is the share of them that do.")
    tell_bars(record, list(bars(kept)))
    tell_commits(record, kept, ("shared", "independent", "few", "provenance", "worst case", "refits", *PARTS[3:]))
    if kept.rows("shared"):
        record.section("As modelled")
        leaderboard_sums.tell_sums(record, kept)
    if kept.rows("provenance"):
        record.section("Where predictions come from")
        record.say(
            "Systems made from the labels, raters of ambiguous items, systems that know the truth or guess, and such "
            "with errors by class beside a constant one. Columns are shares of intervals that hold, and biases."
        )
        record.table("provenance", _rounded(kept.rows("provenance")))
        record.say("2,000 items of five ambiguous labels each: the truth itself, and the majority of the labels.")
        record.table("worst case", _rounded(kept.rows("worst case")))
    _tell_part(
        record, kept, "refits", "A system as one more annotator",
        "300 items, ten annotators of which three label each; the system knows with .5 to .95, or guesses.",
    )  # fmt: skip
    _tell_part(
        record, kept, "preferences", "Ranked items, by annotators with preferences",
        "Systems looked at the items, whose plausibilities are inferred by `prirn`. 'With' is the jackknife over "
        "annotators; 'without', the same rankings as lists that do not say who gave them.",
    )  # fmt: skip
    if kept.rows("public"):
        record.section("Nine public crowds, beside their gold labels")
        leaderboard_public.tell_public_sets(record, kept.rows("public"))
    for part, title in (
        ("anchoring", "Judges and some gold labels"), ("coefficients", "Agreement coefficients"),
        ("conformal", "Conformal sets, level .9"), ("speed", "Speed"),
    ):  # fmt: skip
        _tell_part(record, kept, part, title)


def _tell_part(record: Recording, kept: Kept, part: str, title: str, words: str = "") -> None:
    """Record the rows of a part as a table, in a section of its own; nothing where there are none."""
    if kept.rows(part):
        record.section(title)
        if words:
            record.say(words)
        record.table(part, _rounded(kept.rows(part)))


# ---- bars ----

def bars(kept: Kept) -> Iterator[Bar]:
    """Yield every bar of which there are rows: its name, what was asked for and measured, and whether it is met."""
    for row in leaderboard_sums.coverage(kept.rows("shared"), ("items", "annotators")):
        name = f"shared accuracy, {row['items']} items, {row['annotators']} annotators"
        for column in ("interval holds", "difference holds"):
            yield between(f"{name}: {column}", 0.92, 0.98, row[column], 3)
    bins = leaderboard_sums.best_as_said(kept.rows("shared"), ("items", "annotators"))
    apart = [abs(row["P(best) said"] - row["was best"]) for row in bins if row["cases"] >= 100]
    if apart:
        yield at_most(f"P(best) and share of best, {len(apart)} bins of 100 cases: furthest apart", 0.05, max(apart), 3)
    for row in leaderboard_sums.coverage(kept.rows("independent"), ("of",)):
        name = f"independent truths, certainty {row['of']}: interval holds"
        yield between(name, 0.93, 0.98, row["interval holds"], 3)
    stated = [row["as stated"] for row in kept.rows("provenance").values()]
    if stated:
        for row in kept.rows("provenance").values():
            yield at_least(f"provenance stated, {row['setting']}", 0.9, row["as stated"], 3)
        yield between("provenance stated, mean of settings", 0.92, 0.98, float(np.mean(stated)), 3)
        least = min(row["unknown"] for row in kept.rows("provenance").values())
        yield at_least("provenance unknown, every setting", 0.93, least, 3)
    for row in kept.rows("refits").values():
        name = f"a system as one more annotator, {row['model']}, {row['sets']} sets"
        yield at_least(name, 0.9, row["refit holds"], 3)
    for row in kept.rows("preferences").values():
        name = f"rankings, {row['items']:,} items, {row['annotators']} annotators, preferences {row['preference']:g}"
        for what in ("holds", "lead holds"):
            yield at_least(f"{name}: {what}", 0.93, row[f"with: {what}"], 3)
    worst = kept.rows("worst case")
    if worst:
        truth = worst["stated", "truth"]
        yield at_least("the truth itself, provenance stated: P(best)", 0.95, truth["p_best_lower"], 3)
        low, high = (worst["unknown", "truth"][f"p_best_{end}"] for end in ("lower", "upper"))
        told = f"{low:.2f} to {high:.2f}"
        name = "the truth itself, unknown: P(best) is a range over .05 to .95"
        yield Bar(name, "yes", told, low <= 0.05 and high >= 0.95)
    yield from _anchoring_bars(kept)
    for row in kept.rows("coefficients").values():
        low = 0.9 if row["coefficient"] == "Gwet's AC1" else 0.88 if row["shares"] == [0.5, 0.5] else 0.8
        if row["covered"] < low:
            yield at_least(f"{row['coefficient']}, {row['items']} items, {row['shares']}", low, row["covered"], 3)
    if kept.rows("coefficients"):
        widths = [row["least width"] for row in kept.rows("coefficients").values()]
        yield at_least("intervals of coefficients: least width of all", 1e-6, min(widths), 3)


def _anchoring_bars(kept: Kept) -> Iterator[Bar]:
    rows = kept.rows("anchoring")
    ours = {key[:-1]: row for key, row in rows.items() if key[-1] == "anchored"}
    for key, row in ours.items():
        name = f"{row['judges']} judges, {row['gold']} gold labels, accuracies {row['accuracy']}"
        yield between(f"{name}: interval holds", 0.92, 0.97, row["coverage"], 3)
        yield at_most(f"{name}: bias of the favoured system", 0.015, abs(row["bias, favoured"]), 3)
        if peer := rows.get((*key, "ppi-python")):
            yield at_most(f"{name}: width beside ppi-python", 1.05, row["width"] / peer["width"], 3)
    if ours:
        mean = float(np.mean([row["coverage"] for row in ours.values()]))
        yield between("judges and gold labels, mean of settings: interval holds", 0.935, 0.96, mean, 3)


def _rounded(rows: dict[tuple[Any, ...], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with all columns that any of them has."""
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    return [{name: np.nan if row.get(name) is None else row[name] for name in names} for row in rows.values()]
