"""Crowd models on public data: accuracy, Brier score and reliability of their certainty, beside crowd-kit's.

`python -m benchmarks annotators [--peer PYTHON]`. PYTHON is an interpreter that has crowd-kit, which is no longer
maintained and wants an environment of its own; each data set is handed to it as a file, and both are timed in this run.

Data: RTE, TEMP and WSD of Snow et al. (2008), on which Paun et al. (2018) print accuracies in their Table 7; the sets
of the active crowd toolkit; and, where CONSILIENCE_ORACLES names a folder that has them, simulated annotations of the
mentions of twelve LitBank documents.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import consilience as cs
from benchmarks.annotators_speed import write_csv
from benchmarks.recording import Recording, panels
from benchmarks.speed import last_line
from consilience import models
from consilience.data import Annotations, Mentions
from consilience.drawing import GRID, colours_of, styled
from consilience.models.truth.classes import ClassTruth, marginals

SETS = ("snow2008-rte", "snow2008-temporal", "snow2008-wsd", "crowd-cf", "crowd-cf-amt", "crowd-ms", "crowd-sp",
        "crowd-sp-amt", "crowd-zencrowd-in")  # fmt: skip

TABLE_7 = {
    "snow2008-rte": {"majority-vote": 90, "mace": 93, "dawid-skene": 93, "mpa": 93},
    "snow2008-temporal": {"majority-vote": 93, "mace": 94, "dawid-skene": 94, "mpa": 94},
    "snow2008-wsd": {"majority-vote": 99, "mace": 99, "dawid-skene": 99, "mpa": 99},
}
"""Accuracies in per cent that Paun et al. (2018) print; those of majority vote are the best of ten rounds."""


class Run(NamedTuple):
    """A member with a method and options, and the estimator of crowd-kit that is the same or nearest to it."""

    name: str
    member: str
    method: str
    options: dict[str, Any]
    peer: str | None = None


RUNS = (
    Run("majority vote", "majority-vote", "exact", {}, "MajorityVote"),
    Run("Dawid-Skene, EM", "dawid-skene", "em", {}, "DawidSkene"),
    Run("Dawid-Skene, CAVI", "dawid-skene", "cavi", {}),
    Run("MACE, CAVI", "mace", "cavi", {}, "MACE"),
    Run("MPA, labels seen", "mpa", "cavi", {"candidates": "observed"}),
    Run("MPA, all labels", "mpa", "cavi", {"candidates": "closed"}),
)

MENTION_RUNS = (
    Run("majority vote", "majority-vote", "exact", {}),
    Run("MPA", "mpa", "cavi", {}),
    Run("MPA, hyperparameters learned", "mpa", "cavi", {"hyperparameters": "learned"}),
)
"""What is run on mentions, whose labels are an open list."""

_BINS = np.linspace(0, 1, 11)

# What the other interpreter runs: read the annotations, aggregate, print labels by item with the CPU seconds.
_PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import pandas
from crowdkit import aggregation
frame = pandas.read_csv(sys.argv[1], dtype=str)
found = {}
for name in sys.argv[2:]:
    began = time.process_time()
    labels = getattr(aggregation, name)().fit_predict(frame)
    found[name] = {"seconds": time.process_time() - began, "labels": labels.to_dict()}
late = aggregation.DawidSkene(n_iter=500, tol=-float("inf")).fit_predict_proba(frame)
found["DawidSkene"]["late"] = {label: column.to_dict() for label, column in late.items()}
print(json.dumps(found))
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with crowd-kit; without it ours stand alone")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="NAME", help="of public data")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    record = Recording("annotators", "Crowd models on public data", arguments.command, arguments.output)
    chosen = [one for one in RUNS if one.member in models.names()]
    record.say(
        "Accuracy against the gold labels, ties of majority vote in expectation. Brier: mean squared distance of the "
        "label probabilities from the gold label, summed over labels. CPU seconds: the second of two fits, without "
        "compilation, diagnostics included; crowd-kit in an interpreter of its own. Annotators who label an item again "
        "keep all rows."
    )
    rows: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    reliability: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {one.name: [] for one in chosen}
    for name in arguments.sets:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = cs.load(name)
        peers = _peers(arguments.peer, data, [one.peer for one in chosen if one.peer])
        for one in chosen:
            row, certainty, right = _measured(one, name, data, peers.get(one.peer or ""))
            rows.append(row)
            reliability[one.name].append((certainty, right))
        if peers:
            late.append({"data": name, **_late_in_em(data, peers["DawidSkene"]["late"])})
    record.section("Accuracy, Brier score, seconds")
    record.table("models", rows)
    if late:
        record.section("Late in EM")
        record.say(
            "Dawid-Skene after 500 steps of EM in double precision, ours and crowd-kit's, both from the shares of the "
            "votes: the largest difference of any label's probability, and how many items have one above 1e-4. Here a "
            "probability of zero is final, as in 1979; crowd-kit puts 1e-10 in its place, from which late steps may "
            "lead elsewhere where annotators gave few labels."
        )
        record.table("late", late, digits=6)
    mentions = _mentions()
    if mentions is not None:
        record.section("Mentions")
        record.say(
            "3,327 mentions, ten annotations each, simulated as in Paun et al. (2018): annotators of five profiles, "
            "errors spread evenly. The author's program has 2,989 of them right (89.84 %)."
        )
        annotations = mentions.to_annotations()
        runs = [
            _measured(one, "mentions", annotations if one.member == "majority-vote" else mentions, None, annotations)[0]
            for one in MENTION_RUNS
        ]
        keep = ("model", "accuracy", "Brier", "mean certainty", "CPU s")
        record.table("mentions", [{name: row[name] for name in keep} for row in runs], digits=4)
    record.section("Is the certainty right?")
    record.say(
        "Items of all sets by the probability of their most probable label: how many there are, their mean probability "
        "and how many of them are right. A model that knows what it does not know has equal numbers in both."
    )
    record.table("reliability", _curves(reliability))
    record.figure("reliability", _figure(reliability), "Share of right labels by the probability that is given them")
    record.section("The paper's Table 7")
    record.say("Accuracy in per cent on the sets that the paper prints, its figures in brackets.")
    record.table("table-7", _table_7(rows))
    record.write()


def probabilities(truth: ClassTruth) -> np.ndarray:
    """Return the probability of each label, ``(item, class)``: exact where it is known, else the share of draws."""
    found, dense = marginals(truth), np.zeros((truth.num_units, truth.num_classes))
    dense[found.unit, found.code] = found.probability
    return dense


def _mentions() -> Mentions | None:
    folder = os.environ.get("CONSILIENCE_ORACLES")
    path = Path(folder or "") / "mpa_java" / "annotations.csv"
    return cs.read_mentions(path) if folder and path.is_file() else None


def _late_in_em(data: Annotations, theirs: dict[str, dict[str, float]]) -> dict[str, Any]:
    with warnings.catch_warnings(), jax.enable_x64(True):
        warnings.simplefilter("ignore")
        fit = cs.fit("dawid-skene", data, method="em", tolerance=0.0, max_steps=500)
    ours = probabilities(fit.truth)
    other = np.array([[theirs[str(label)][str(item)] for label in data.labels] for item in data.items])
    farthest = np.abs(ours - other).max(axis=1)
    return {
        "items": len(farthest), "steps": len(fit.elbo), "largest difference": float(farthest.max()),
        "above 1e-4": int((farthest > 1e-4).sum()),
    }  # fmt: skip


def _measured(
    one: Run, name: str, data: Any, peer: dict[str, Any] | None, known_of: Annotations | None = None
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Return a row of the table, and of the items with a gold label how certain their label is and whether it is right.

    The gold labels are those of ``known_of``, or of the data.
    """
    fit, seconds = _timed(one, data)
    probability = probabilities(fit.truth)
    data = data if known_of is None else known_of
    gold = np.asarray(data.gold)
    known = gold >= 0
    highest = probability.max(axis=1, keepdims=True)
    best = probability >= highest * (1 - 1e-9)
    right = (best[np.arange(len(gold)), gold] / best.sum(axis=1))[known]
    target = np.eye(data.num_labels)[np.maximum(gold, 0)]
    row = {
        "data": name, "model": one.name, "accuracy": float(right.mean()),
        "Brier": float(((probability - target) ** 2).sum(axis=1)[known].mean()),
        "mean certainty": float(highest[known].mean()), "CPU s": seconds,
        "crowd-kit": one.peer or "", "its accuracy": float("nan"), "its CPU s": float("nan"),
        "labels equal": float("nan"),
    }  # fmt: skip
    if peer is not None:
        codes = {str(label): code for code, label in enumerate(data.labels)}
        theirs = np.array([codes[peer["labels"][str(item)]] for item in data.items])
        row |= {
            "its accuracy": float((theirs == gold)[known].mean()), "its CPU s": peer["seconds"],
            "labels equal": float(best[np.arange(len(theirs)), theirs].mean()),
        }  # fmt: skip
    return row, highest[known, 0], right


def _timed(one: Run, data: Any) -> tuple[Any, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            began = time.process_time()
            fit = cs.fit(one.member, data, method=one.method, **one.options)
            fit.labels()
            seconds = time.process_time() - began
    return fit, seconds


def _peers(python: str | None, data: Annotations, names: list[str]) -> dict[str, Any]:
    if python is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "annotations.csv"
        write_csv(data, path)
        return last_line([python, "-W", "ignore", "-c", _PEER, str(path), *names])


def _curves(reliability: dict[str, list[tuple[np.ndarray, np.ndarray]]]) -> list[dict[str, Any]]:
    rows = []
    for model, parts in reliability.items():
        certainty, right = (np.concatenate(column) for column in zip(*parts, strict=True))
        for place in np.unique(_bins(certainty)):
            here = _bins(certainty) == place
            rows.append({
                "model": model, "probability": f"{_BINS[place]:.1f} to {_BINS[place + 1]:.1f}",
                "items": int(here.sum()), "mean probability": float(certainty[here].mean()),
                "right": float(right[here].mean()),
            })  # fmt: skip
    return rows


def _bins(certainty: np.ndarray) -> np.ndarray:
    return np.clip(np.searchsorted(_BINS, certainty, side="right") - 1, 0, len(_BINS) - 2)


@styled
def _figure(reliability: dict[str, list[tuple[np.ndarray, np.ndarray]]]) -> Any:
    figure, ((ax,),) = panels(1, width=5.2, height=4.4)
    ax.plot([0, 1], [0, 1], color=GRID, linewidth=1)
    rows = _curves(reliability)
    for model, colour in zip(reliability, colours_of(len(reliability)), strict=True):
        own = [row for row in rows if row["model"] == model and row["items"] >= 20]
        x, y = ([row[name] for row in own] for name in ("mean probability", "right"))
        ax.plot(x, y, "o-", color=colour, markersize=4, label=model)
    ax.set(xlabel="probability of the most probable label", ylabel="share that is right", aspect="equal")
    ax.set(title="All sets together, bins with 20 items or more", xlim=(0, 1.01), ylim=(0, 1.01))
    ax.legend(loc="upper left")
    return figure


def _table_7(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    members = {one.name: one.member for one in RUNS}
    table = []
    for name, published in TABLE_7.items():
        own = [row for row in rows if row["data"] == name]
        printed = {row["model"]: f"{100 * row['accuracy']:.1f} ({published[members[row['model']]]})" for row in own}
        table += [{"data": name, **printed}] if own else []
    return table or [{"data": "none of them was asked for"}]
