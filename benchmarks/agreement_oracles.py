"""Coefficients of agreement against the packages that compute some of them, on small, simulated and public data.

The packages are no dependency of this one: they run in interpreters of their own, which ``--peers`` and ``--peers-irr``
name, on the same rows. Install them there with ``pip install krippendorff nltk statsmodels`` and, apart because it
pins an older SciPy, ``pip install irrCAC "coverage<7"``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import consilience as cs
from benchmarks.recording import Recording
from consilience.data import Annotations
from consilience.data.codes import repeated
from consilience.evaluation.agreement.coefficients import Coefficient, coefficients
from consilience.evaluation.agreement.counts import LabelCounts

CROWDS = ("crowd-cf", "crowd-cf-amt", "crowd-ms", "crowd-sp", "crowd-sp-amt", "crowd-zencrowd-in")

# Krippendorff's reliability data: one line a coder, one column a unit, 0 where a coder did not look.
CODERS = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
])  # fmt: skip

_SIMULATIONS, _SIMULATED_ITEMS, _RESAMPLES = 4000, 100, 400

# What a peer has for one number.
_SECONDS = 10

# What a peer's number is compared with here, by package and what it is called there; ", pa" is its observed agreement.
OURS = {
    ("krippendorff", "nominal"): ("Krippendorff's alpha", "nominal"),
    ("krippendorff", "ordinal"): ("Krippendorff's alpha", "ordinal"),
    ("krippendorff", "interval"): ("Krippendorff's alpha", "interval"),
    ("krippendorff", "ratio"): ("Krippendorff's alpha", "ratio"),
    ("nltk", "alpha"): ("Krippendorff's alpha", "nominal"),
    ("nltk", "avg_Ao"): ("percent agreement", ""),
    ("nltk", "pi"): ("Fleiss' kappa", "pooled"),
    ("nltk", "multi_kappa"): ("Conger's kappa", ""),
    ("statsmodels", "fleiss_kappa"): ("Fleiss' kappa", "pooled"),
    ("irrCAC", "fleiss"): ("Fleiss' kappa", "item-mean"),
    ("irrCAC", "gwet"): ("Gwet's AC1", ""),
    ("irrCAC", "conger"): ("Conger's kappa", ""),
    ("irrCAC", "krippendorff"): ("Krippendorff's alpha", "nominal"),
}

# Each script reads the folder of its first argument and prints one line of JSON for each number.
_SHARED = """
import json, pathlib, signal, sys, warnings
from importlib.metadata import version
import numpy as np
warnings.simplefilter("ignore")

def give_up(*_):
    raise TimeoutError

signal.signal(signal.SIGALRM, give_up)

def columns(path):
    with np.load(path) as stored:
        return stored["item"], stored["annotator"], stored["label"], int(stored["num_labels"])

def number(data, package, called, compute):
    row = {"data": data, "package": package, "version": version(package), "called": called}
    signal.alarm(int(sys.argv[2]))
    try:
        row["value"], row["sd"] = compute()
    except Exception as error:
        row["error"] = type(error).__name__
    signal.alarm(0)
    print(json.dumps(row), flush=True)
"""

_PEERS = (
    _SHARED
    + """
import krippendorff
from nltk.metrics.agreement import AnnotationTask
from statsmodels.stats.inter_rater import fleiss_kappa

def table_of(item, label, num_labels):
    table = np.zeros((item.max() + 1, num_labels), int)
    np.add.at(table, (item, label), 1)
    return table

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.npz")):
    item, annotator, label, num_labels = columns(path)
    table = table_of(item, label, num_labels)
    domain = np.arange(1.0, num_labels + 1)
    for level in ("nominal", "ordinal", "interval", "ratio"):
        number(path.stem, "krippendorff", level, lambda: (float(krippendorff.alpha(
            value_counts=table, value_domain=domain, level_of_measurement=level)), None))
    task = AnnotationTask(data=[tuple(map(int, row)) for row in zip(annotator, item, label)])
    for called in ("alpha", "avg_Ao", "pi", "multi_kappa"):
        number(path.stem, "nltk", called, lambda: (float(getattr(task, called)()), None))
    number(path.stem, "statsmodels", "fleiss_kappa", lambda: (float(fleiss_kappa(table)), None))
"""
)

_PEERS_IRR = (
    _SHARED
    + """
import pandas
from irrCAC.raw import CAC

def ratings(item, annotator, label):
    frame = pandas.DataFrame({"item": item, "annotator": annotator, "label": label.astype(float)})
    return frame.pivot(index="item", columns="annotator", values="label")

def estimate(make, called):
    found = getattr(make(), called)()["est"]
    return float(found["coefficient_value"]), float(found["se"]), float(found["pa"])

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.npz")):
    item, annotator, label, num_labels = columns(path)
    make = lambda: CAC(ratings(item, annotator, label), categories=list(map(float, range(num_labels))), digits=15)
    for called in ("fleiss", "gwet", "conger", "krippendorff"):
        number(path.stem, "irrCAC", called, lambda: estimate(make, called)[:2])
        number(path.stem, "irrCAC", called + ", pa", lambda: (estimate(make, called)[2], None))
"""
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    packages = "krippendorff, nltk and statsmodels"
    parser.add_argument("--peers", metavar="PYTHON", required=True, help=f"interpreter that has {packages}")
    parser.add_argument("--peers-irr", metavar="PYTHON", help="interpreter that has irrCAC; left out by default")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    peers = [(arguments.peers, _PEERS)]
    if arguments.peers_irr is not None:
        peers.append((arguments.peers_irr, _PEERS_IRR))
    title = "Coefficients of agreement, ours and others'"
    record = Recording("agreement-oracles", title, arguments.command, arguments.output)
    _compare(record, peers)
    _odd(record, peers)
    if arguments.peers_irr is not None:
        _standard_errors(record, arguments.peers_irr)
    record.write()


def _compare(record: Recording, peers: list[tuple[str, str]]) -> None:
    data = {"example": _example(), "simulated": _simulated_table(), **{name: _crowd(name) for name in CROWDS}}
    ours = {name: _ours(annotations) for name, annotations in data.items()}
    record.say(
        "Data: Krippendorff's example of four coders and twelve units; a simulated table of 500 items that all four "
        "annotators labelled; six public crowds. Values of the classes are 1, 2, … in the order of the labels, which "
        "means nothing for most of the crowds, but is the same for everyone. Where an annotator labelled an item "
        "again, the first label counts."
    )
    record.table("data", [_described(name, annotations) for name, annotations in data.items()])
    rows = [_row(peer, ours[peer["data"]]) for peer in _ask(peers, data)]
    record.section("The same coefficients")
    record.say(
        "Differences are theirs minus ours. irrCAC, which rounds to five digits, was asked for fifteen. An error "
        "stands where a package refuses: nltk (but for alpha) and statsmodels want every item annotated equally often. "
        f"TimeoutError stands after {_SECONDS} s."
    )
    record.table("coefficients", rows, digits=6)
    record.section("Largest differences")
    record.say("Over the data sets on which a package gave a number.")
    record.table("largest", _largest(rows), digits=6)
    record.section("All of ours")
    record.table("ours", [
        {"data": name, **estimate._asdict()} for name, estimates in ours.items() for estimate in estimates
    ], digits=6)  # fmt: skip


def _odd(record: Recording, peers: list[tuple[str, str]]) -> None:
    data = {
        "one class": Annotations.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0], num_labels=2),
        "labelled again": Annotations.from_codes([0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 1, 0, 0]),
    }
    record.section("Where they differ")
    record.say(
        "- **One class only**: what is beyond chance is not defined; ours is NaN, never 0 or 1. AC1 is 1, since its "
        "chance agreement is 0 as long as two classes are declared.\n"
        "- **Labelled again**: the first of two annotators gave the first of three items both labels. Ours counts "
        "every row as an annotation.\n"
        "- nltk's `multi_kappa` is Conger's kappa, not Fleiss'; its `pi` is Fleiss'.\n"
        "- irrCAC's Fleiss takes the mean of the items' class shares, ours does under the convention `item-mean`; what "
        "its alpha calls `pa` is (1 - 1/m) P_a + 1/m with the m annotations of items that have two, so that alpha "
        "comes out all the same."
    )
    rows = [_row(peer, _ours(data[peer["data"]])) for peer in _ask(peers, data)]
    record.table("odd", rows, digits=6)


def _standard_errors(record: Recording, python: str) -> None:
    """Compare standard errors with the scatter of the estimates, where a third of the items has one annotation."""
    ours = [_ours(_sparse_table(seed)) for seed in range(_SIMULATIONS)]
    some = {f"{seed:03}": _sparse_table(seed) for seed in range(_SIMULATIONS // 10)}
    found = _ask([(python, _PEERS_IRR)], some)
    rows = []
    for called in ("fleiss", "gwet", "conger"):
        own = [_pick(estimates, OURS["irrCAC", called]) for estimates in ours]
        scatter = np.std([estimate.value for estimate in own], ddof=1)
        theirs = [row["sd"] for row in found if row["called"] == called]
        rows.append({
            "coefficient": f"{own[0].name} {own[0].convention}".strip(),
            "standard deviation": scatter, "its error": scatter / np.sqrt(2 * len(own)),
            "our standard error": np.sqrt(np.mean([estimate.sd**2 for estimate in own])),
            "irrCAC's": np.sqrt(np.mean(np.square(theirs))),
        })  # fmt: skip
    record.section("Whose standard errors are right")
    record.say(
        f"{_SIMULATIONS:,} simulated tables of {_SIMULATED_ITEMS} items with one, two or three annotations by three "
        "annotators, class distributions of items from a Dirichlet distribution with an intraclass correlation of "
        "1/2: the standard deviation of the estimates, with its error, beside the root mean square of the standard "
        f"errors (irrCAC's of the first {len(some)}). Items with a single annotation have no agreement; irrCAC's "
        "variance takes it for chance agreement, and so is too large."
    )
    record.table("standard errors", rows, digits=4)
    crowd = _crowd("crowd-zencrowd-in")
    again = [_pick(_ours(_resampled(crowd, seed)), OURS["irrCAC", "conger"]).value for seed in range(_RESAMPLES)]
    scatter = np.std(again, ddof=1)
    few = int((np.bincount(crowd.annotator) <= 15).sum())
    record.say(
        f"Conger's kappa on crowd-zencrowd-in, where {few} of {crowd.num_annotators} annotators labelled at most 15 "
        f"items and count as much as all others: {_RESAMPLES} bootstrap samples of the items scatter by "
        f"{scatter:.4f} ± {scatter / np.sqrt(2 * _RESAMPLES):.4f}."
    )


def _resampled(data: Annotations, seed: int) -> Annotations:
    """Draw items with replacement, each time as a new item."""
    drawn = np.random.default_rng(seed).integers(0, data.num_items, data.num_items)
    times = np.bincount(drawn, minlength=data.num_items)
    copies = np.repeat(np.arange(len(data.item)), times[data.item])
    first = np.cumsum(times) - times
    copy = np.arange(len(copies)) - np.searchsorted(copies, copies)
    return Annotations.from_codes(
        first[data.item[copies]] + copy, data.annotator[copies], data.label[copies],
        num_annotators=data.num_annotators, num_labels=data.num_labels,
    )  # fmt: skip


# ---- data ----


def _example() -> Annotations:
    annotator, item = np.nonzero(CODERS)
    return Annotations.from_codes(item, annotator, CODERS[annotator, item] - 1, num_labels=5)


def _simulated_table() -> Annotations:
    random = np.random.default_rng(0)
    truth, item = random.integers(0, 4, 500), np.repeat(np.arange(500), 4)
    accuracy = np.array([0.9, 0.8, 0.7, 0.6])
    right = random.random(2000) < np.tile(accuracy, 500)
    label = np.where(right, truth[item], random.choice(4, 2000, p=[0.4, 0.3, 0.2, 0.1]))
    return Annotations.from_codes(item, np.tile(np.arange(4), 500), label, num_labels=4)


def _sparse_table(seed: int) -> Annotations:
    random = np.random.default_rng(seed)
    truth = random.dirichlet(np.array([0.5, 0.3, 0.2]), _SIMULATED_ITEMS)
    annotator, item = np.nonzero(np.arange(3)[:, None] < random.integers(1, 4, _SIMULATED_ITEMS))
    label = (random.random(len(item))[:, None] > truth[item].cumsum(axis=1)[:, :2]).sum(axis=1)
    # Who annotates an item is drawn anew for each.
    annotator = np.argsort(random.random((_SIMULATED_ITEMS, 3)), axis=1)[item, annotator]
    return Annotations.from_codes(item, annotator, label, num_labels=3)


def _crowd(name: str) -> Annotations:
    crowd = cs.load(name)
    first = ~repeated(crowd.item, crowd.annotator)
    return Annotations.from_codes(
        crowd.item[first], crowd.annotator[first], crowd.label[first], num_items=crowd.num_items,
        num_annotators=crowd.num_annotators, num_labels=crowd.num_labels,
    )  # fmt: skip


def _described(name: str, data: Annotations) -> dict[str, Any]:
    size = np.bincount(data.item)
    return {
        "data": name, "items": data.num_items, "annotations": data.num_annotations, "fewest an item": int(size.min()),
        "most an item": int(size.max()), "classes": data.num_labels, "annotators": data.num_annotators,
    }  # fmt: skip


# ---- both sides ----


def _ours(data: Annotations) -> list[Coefficient]:
    return coefficients(LabelCounts.of_annotations(data), data, np.arange(1.0, data.num_labels + 1))


def _pick(estimates: list[Coefficient], which: tuple[str, str]) -> Coefficient:
    return next(estimate for estimate in estimates if estimate[:2] == which)


def _ask(peers: list[tuple[str, str]], data: dict[str, Annotations]) -> list[dict[str, Any]]:
    """Run each peer's script in its interpreter on all data; every line that it prints is a row."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, annotations in data.items():
            np.savez(
                Path(folder) / f"{name}.npz", item=annotations.item, annotator=annotations.annotator,
                label=annotations.label, num_labels=annotations.num_labels,
            )  # fmt: skip
        for python, script in peers:
            command = [python, "-c", script, folder, str(_SECONDS)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows += [json.loads(line) for line in done.stdout.splitlines()]
    order = list(data)
    return sorted(rows, key=lambda row: order.index(row["data"]))


def _row(peer: dict[str, Any], ours: list[Coefficient]) -> dict[str, Any]:
    called, _, observed = peer["called"].partition(", ")
    own = _pick(ours, OURS[peer["package"], called])
    mine = own.observed if observed else own.value
    value, error = peer.get("value"), peer.get("error", "")
    if value is not None and np.isnan(value):
        value, error = None, "NaN"
    return {
        "data": peer["data"], "package": f"{peer['package']} {peer['version']}", "called": peer["called"],
        "coefficient": f"{own.name} {own.convention}".strip(), "ours": mine, "theirs": value,
        "difference": "" if value is None or np.isnan(mine) else f"{value - mine:+.1e}",
        "our sd": float("nan") if observed else own.sd, "their sd": peer.get("sd"), "error": error,
    }  # fmt: skip


def _largest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    largest = []
    for package, called, coefficient in dict.fromkeys((r["package"], r["called"], r["coefficient"]) for r in rows):
        found = [r for r in rows if (r["package"], r["called"]) == (package, called) and r["theirs"] is not None]
        errors = [r["data"] for r in rows if (r["package"], r["called"]) == (package, called) and r["theirs"] is None]
        gaps = [abs(r["theirs"] - r["ours"]) for r in found]
        ratios = [r["their sd"] / r["our sd"] for r in found if r["their sd"] is not None]
        largest.append({
            "package": package, "called": called, "coefficient": coefficient, "data sets": len(found),
            "largest difference": f"{max(gaps):.1e}" if gaps else "", "refused": len(errors),
            "their sd / ours": f"{min(ratios):.4f} to {max(ratios):.4f}" if ratios else "",
        })  # fmt: skip
    return largest
