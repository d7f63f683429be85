"""Crowd models against what is published of them: Table 7 of Paun et al. (2018), late steps of EM, labels of mentions.

`python -m benchmarks annotators [--peer PYTHON]`. PYTHON is an interpreter that has crowd-kit, which is no longer
maintained and wants an environment of its own; each data set is handed to it as a file. Whether the certainty of these
models can be believed is the benchmark `crowd`, and how fast they are `annotators_speed` and `crowd`.

Data: RTE, TEMP and WSD of Snow et al. (2008), on which Paun et al. (2018) print accuracies in their Table 7; the sets
of the active crowd toolkit; and, where CONSILIENCE_ORACLES names a folder that has them, simulated annotations of the
mentions of twelve LitBank documents.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import consilience as cs
from benchmarks.annotators_speed import write_csv
from benchmarks.crowd_public import SETS, probabilities, scores
from benchmarks.recording import Recording
from benchmarks.speed import last_line
from consilience import models
from consilience.data import Annotations, Mentions

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

# What the other interpreter runs: read the annotations, aggregate, print labels by item.
_PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import pandas
from crowdkit import aggregation
frame = pandas.read_csv(sys.argv[1], dtype=str)
found = {}
for name in sys.argv[2:]:
    found[name] = {"labels": getattr(aggregation, name)().fit_predict(frame).to_dict()}
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
    record = Recording("annotators", "Crowd models against what is published", arguments.command, arguments.output)
    chosen = [one for one in RUNS if one.member in models.names()]
    record.say(
        "Accuracy against the gold labels, ties of majority vote in expectation; 'labels equal' is the share of items "
        "that crowd-kit gives the same label, of tied ones one of them. Annotators who label an item again keep all "
        "rows, as in the paper. Certainty and calibration of the same models are in the benchmark `crowd`."
    )
    rows: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    for name in arguments.sets:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = cs.load(name)
        peers = _peers(arguments.peer, data, [one.peer for one in chosen if one.peer])
        rows += [_measured(one, name, data, peers.get(one.peer or "")) for one in chosen]
        if peers:
            late.append({"data": name, **_late_in_em(data, peers["DawidSkene"]["late"])})
    record.section("The paper's Table 7")
    record.say("Accuracy in per cent on the sets that the paper prints, its figures in brackets.")
    record.table("table-7", _table_7(rows))
    record.section("Accuracy, beside crowd-kit")
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
        _tell_mentions(record, mentions)
    record.write()


def _tell_mentions(record: Recording, mentions: Mentions) -> None:
    record.section("Mentions")
    record.say(
        "3,327 mentions, ten annotations each, simulated as in Paun et al. (2018): annotators of five profiles, errors "
        "spread evenly. The author's program has 2,989 of them right (89.84 %). Scores as in the benchmark `crowd`."
    )
    annotations = mentions.to_annotations()
    gold, rows = np.asarray(annotations.gold), []
    for one in MENTION_RUNS:
        fit = _fitted(one, annotations if one.member == "majority-vote" else mentions)
        found = scores(probabilities(fit.truth), gold)
        rows.append({"model": one.name} | {name: value for name, value in found.items() if name != "bins"})
    record.table("mentions", rows, digits=4)


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


def _measured(one: Run, name: str, data: Annotations, peer: dict[str, Any] | None) -> dict[str, Any]:
    """Return a row of the table."""
    probability, gold = probabilities(_fitted(one, data).truth), np.asarray(data.gold)
    row = {
        "data": name, "model": one.name, "accuracy": scores(probability, gold)["right"], "crowd-kit": one.peer or "",
        "its accuracy": float("nan"), "labels equal": float("nan"),
    }  # fmt: skip
    if peer is not None:
        codes = {str(label): code for code, label in enumerate(data.labels)}
        theirs = np.array([codes[peer["labels"][str(item)]] for item in data.items])
        best = probability >= probability.max(axis=1, keepdims=True) * (1 - 1e-9)
        row["its accuracy"] = float((theirs == gold)[gold >= 0].mean())
        row["labels equal"] = float(best[np.arange(len(theirs)), theirs].mean())
    return row


def _fitted(one: Run, data: Annotations | Mentions) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cs.fit(one.member, data, method=one.method, **one.options)


def _peers(python: str | None, data: Annotations, names: list[str]) -> dict[str, Any]:
    if python is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "annotations.csv"
        write_csv(data, path)
        return last_line([python, "-W", "ignore", "-c", _PEER, str(path), *names])


def _table_7(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    members = {one.name: one.member for one in RUNS}
    table = []
    for name, published in TABLE_7.items():
        own = [row for row in rows if row["data"] == name]
        printed = {row["model"]: f"{100 * row['accuracy']:.1f} ({published[members[row['model']]]})" for row in own}
        table += [{"data": name, **printed}] if own else []
    return table or [{"data": "none of them was asked for"}]
