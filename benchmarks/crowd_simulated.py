"""Crowd models on simulated annotations: part of the benchmark `crowd`.

**Noise**: 27 cells (2, 3, 5 labels; 3, 5, 10 annotators who label every item; 60, 200, 1000 items). Every annotator is
right with probability 1/K + delta, independently of all others: with delta 0 the labels say nothing of the items, and a
fit should say so. **Intervals**: whether nominal 90 % intervals hold the accuracy of an annotator, which is known.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import consilience as cs
from benchmarks.crowd_public import SETS, loaded, probabilities, scores
from benchmarks.recording import Kept, Recording, grouped
from consilience import models
from consilience.data import Annotations
from consilience.errors import DiagnosticWarning
from consilience.models.crowd.gate import signal
from consilience.models.gold import gold_record
from consilience.notes import Level

CELLS = tuple(itertools.product((2, 3, 5), (3, 5, 10), (60, 200, 1000)))
"""Labels, annotators, items."""

DELTAS = (0.0, 0.15, 0.3, 0.45)
MEMBERS = ("dawid-skene", "mace", "one-coin", "glad", "mpa")
CROWDS = (
    "as modelled", "one coin", "a quarter hard", *(f"one coin, {number} labels" for number in (2, 5, 10)),
    "eight, .25 to .92, 4 labels",
)  # fmt: skip
"""Of the simulation of intervals; of three labels where nothing else is said."""

LEVEL = 0.9

_SEED = 11
# Of the simulation of intervals.
_ITEMS, _ANNOTATORS, _PER_ITEM = 200, 20, 3
_DIAGONAL, _COIN, _HARD = 3.0, (8.0, 3.0), 0.25
_EIGHT, _ITEMS_OF_EIGHT = np.array([0.92, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.25]), 500
_GIBBS = {"method": "gibbs", "draws": 250, "chains": 4, "warmup": 250, "dependence": 0.0}
_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "CAVI, imputed": ("dawid-skene", {"method": "cavi", "dependence": 0.0}), "Gibbs": ("dawid-skene", _GIBBS),
    "one-coin, Gibbs": ("one-coin", _GIBBS), "default": ("dawid-skene", {}),
}
_FEWEST_ROWS = 10


# ---- noise ----


def noise(num_labels: int, num_annotators: int, num_items: int, delta: float) -> tuple[Annotations, np.ndarray]:
    """Simulate annotators who are right with probability 1 / num_labels + delta.

    Returns
    -------
    annotations : item by item, without gold labels.
    truth : int64, shape ``(item,)``; the labels, all equally probable.
    """
    random = np.random.default_rng([_SEED, num_labels, num_annotators, num_items, round(100 * delta)])
    truth = random.integers(0, num_labels, num_items)
    shape = num_items, num_annotators
    right = random.random(shape) < 1 / num_labels + delta
    other = (truth[:, None] + random.integers(1, num_labels, shape)) % num_labels
    label = np.where(right, truth[:, None], other)
    item, annotator = np.indices(shape).reshape(2, -1)
    sizes: dict[str, Any] = {"num_items": num_items, "num_annotators": num_annotators, "num_labels": num_labels}
    return Annotations.from_codes(item, annotator, label.ravel(), **sizes), truth


def measure_noise(kept: Kept, cells: Sequence[tuple[int, int, int]], members: Sequence[str]) -> None:
    """Fit every member to every cell; the four crowds of a cell have one shape, and one program is compiled for it."""
    for member, cell in itertools.product(MEMBERS, cells):
        for delta in DELTAS if member in members and member in models.names() else ():
            kept.row("noise", (member, delta, *cell), functools.partial(_fitted, member, delta, cell))
        jax.clear_caches()  # the next cell has programs of its own, and hundreds of them exhaust the address space


def _fitted(member: str, delta: float, cell: tuple[int, int, int]) -> dict[str, Any]:
    data, truth = noise(*cell, delta)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = cs.fit(member, data, progress=False)
        probability = probabilities(fit.truth)
    said = [note.words() for note in fit.findings() if note.level == Level.error]
    gate = signal(data)
    return {
        **{name: value for name, value in scores(probability, truth).items() if name != "bins"},
        "method": fit.method, "z": gate.z, "gate": gate.fires, "pair": gate.rests_on_pair, "alert": bool(said),
        "warned": any(issubclass(one.category, DiagnosticWarning) for one in caught), "said": said,
    }  # fmt: skip


def noise_means(rows: dict[tuple[Any, ...], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return means over cells, a row for each member and delta."""
    listed = [{"model": member, "delta": delta, **row} for (member, delta, *_), row in rows.items()]
    table = []
    for (member, delta), own in grouped(sorted(listed, key=lambda row: MEMBERS.index(row["model"])),
                                        ("model", "delta")).items():  # fmt: skip
        certainty = [row["certainty"] for row in own]
        table.append({
            "model": member, "delta": delta, "cells": len(own), "gate fires": sum(row["gate"] for row in own),
            "alerts": sum(row["alert"] for row in own), "warnings": sum(row["warned"] for row in own),
            "alert or certainty below .54": sum(row["alert"] or row["certainty"] < 0.54 for row in own),
            "certainty": float(np.mean(certainty)), "largest": float(np.max(certainty)),
            "right": float(np.mean([row["right"] for row in own])), "ECE": float(np.mean([row["ECE"] for row in own])),
        })  # fmt: skip
    return table


def tell_noise(record: Recording, rows: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """Record noise and weak signal: means over cells, and the cells of noise."""
    record.say(
        "Defaults of `fit`, nothing given. An 'alert' is any finding that is an error, for which the command ends with "
        "status 3; 'warnings' are fits that gave a `DiagnosticWarning`. 'Gate fires' is where annotators agree no more "
        "than chance would have them (z below 3, or not defined). 'Right' in noise is what guessing gives. mpa is not "
        "tempered: an annotation is there a decision on several labels, for which no rho is known. What is asked of it "
        "in noise is the alert. Errors of these annotators are independent, so that where there is signal the "
        "default is less certain than it could be: that is its price."
    )
    record.table("noise-means", noise_means(rows))
    record.say("Noise, cell by cell:")
    table = [
        {"model": key[0], "labels": key[2], "annotators": key[3], "items": key[4]}
        | {name: row[name] for name in ("method", "z", "alert", "certainty", "right", "ECE")}
        for key, row in rows.items() if key[1] == 0
    ]  # fmt: skip
    record.table("noise", table)
    names = ("model", "delta", "labels", "annotators", "items")
    record.data("noise-cells", [dict(zip(names, key, strict=True)) | row for key, row in rows.items()])


# ---- intervals ----


def crowd(kind: str, seed: int) -> tuple[Annotations, np.ndarray, np.ndarray]:
    """Simulate 20 annotators, three of whom label each of 200 items.

    Parameters
    ----------
    kind : one of `CROWDS`. 'As modelled': rows of confusion matrices are Dirichlet with 3 for the right label and 1 for
        others. 'One coin': accuracies are Beta(8, 3), errors uniform. 'A quarter hard': as modelled, but one item in
        four is such that everybody guesses. 'Eight': as many annotators with these accuracies label 500 items.
    seed : of the random numbers.

    Returns
    -------
    annotations : item by item, without gold labels.
    truth : int64, shape ``(item,)``.
    accuracy : float64, shape ``(annotator,)``; how probably the annotator is right on a new item.
    """
    random = np.random.default_rng([_SEED, CROWDS.index(kind), seed])
    labels = num_labels(kind)
    eye = np.eye(labels)
    annotators, items = (8, _ITEMS_OF_EIGHT) if kind.startswith("eight") else (_ANNOTATORS, _ITEMS)
    prevalence = random.dirichlet(np.ones(labels))
    rows = [random.dirichlet(1 + (_DIAGONAL - 1) * row, annotators) for row in eye]
    confusion = np.stack(rows, axis=1)
    if kind.startswith(("one coin", "eight")):
        coin = (_EIGHT if kind.startswith("eight") else random.beta(*_COIN, annotators))[:, None, None]
        confusion = coin * eye + (1 - coin) * (1 - eye) / (labels - 1)
    hard = random.random(items) < (_HARD if kind == "a quarter hard" else 0.0)
    truth = random.choice(labels, items, p=prevalence)
    item = np.repeat(np.arange(items), _PER_ITEM)
    annotator = random.permuted(np.tile(np.arange(annotators), (items, 1)), axis=1)[:, :_PER_ITEM].ravel()
    chance = np.where(hard[item, None], 1 / labels, confusion[annotator, truth[item]])
    label = np.minimum((random.random((len(item), 1)) > chance.cumsum(axis=1)).sum(axis=1), labels - 1)
    accuracy = np.einsum("t,jtt->j", prevalence, confusion)
    if kind == "a quarter hard":
        accuracy = (1 - _HARD) * accuracy + _HARD / labels
    sizes: dict[str, Any] = {"num_items": items, "num_annotators": annotators, "num_labels": labels}
    return Annotations.from_codes(item, annotator, label, **sizes), truth, accuracy


def num_labels(kind: str) -> int:
    """Return how many labels a crowd has."""
    return int(kind.split()[-2]) if kind.endswith("labels") else 3


def measure_intervals(kept: Kept, number: int, sets: Sequence[str], members: Sequence[str]) -> None:
    """Take intervals of annotators in simulated crowds, and of their realised accuracy on public sets."""
    for kind, seed, method in itertools.product(CROWDS, range(number), _METHODS):
        if _METHODS[method][0] == "dawid-skene" or kind.startswith(("one coin", "eight")):
            kept.row("intervals", (kind, seed, method), functools.partial(_intervals, kind, seed, method))
    for name, member, rho in itertools.product(sets, ("dawid-skene", "one-coin", "mace"), (0.0, "default")):
        if member in members and member in models.names():
            kept.row("realised", (name, member, rho), functools.partial(_realised, name, member, rho))


def _intervals(kind: str, seed: int, method: str) -> dict[str, Any]:
    data, truth, accuracy = crowd(kind, seed)
    member, options = _METHODS[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cs.fit(member, data, seed=seed, progress=False, **options)
        table = fit.table_columns("annotators", codes=True, level=LEVEL)
    rows, right = (np.bincount(np.asarray(data.annotator), of, data.num_annotators)
                   for of in (None, np.asarray(data.label) == truth[np.asarray(data.item)]))  # fmt: skip
    share = right / np.maximum(rows, 1)
    best = [int(np.argmax(accuracy))]
    return {
        "held": _held(table["lower"], accuracy, table["upper"]),
        "best held": _held(table["lower"][best], accuracy[best], table["upper"][best]),
        "width": float(np.mean(table["upper"] - table["lower"])),
        "realised held": _held(table["share_lower"], share, table["share_upper"]),
        "certainty": float(probabilities(fit.truth).max(axis=1).mean()),
        "right": scores(probabilities(fit.truth), truth)["right"],
    }  # fmt: skip


def _held(lower: np.ndarray, value: np.ndarray, upper: np.ndarray) -> float:
    """Return how many closed intervals hold their value; a share is compared up to rounding."""
    return float(np.mean((lower <= value + 1e-6) & (value <= upper + 1e-6)))


def _realised(name: str, member: str, rho: float | str) -> dict[str, Any]:
    """Fit a public set without its gold labels, and return how many intervals hold what these say."""
    data, options = loaded(name), {} if rho == "default" else {"dependence": rho}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cs.fit(member, data.replace(gold=None), progress=False, **options)
        table = fit.table_columns("annotators", codes=True, level=LEVEL) | gold_record(data)
    some = table["gold_items"] >= _FEWEST_ROWS
    found = {column: np.asarray(values)[some] for column, values in table.items()}
    right = found["gold_right"] / found["gold_items"]
    return {
        "annotators": int(some.sum()), "held": _held(found["share_lower"], right, found["share_upper"]),
        "width": float(np.mean(found["share_upper"] - found["share_lower"])),
    }  # fmt: skip


def coverage_of_crowds(rows: dict[tuple[Any, ...], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how often intervals hold, with standard errors over sets; a row for each crowd and method."""
    listed = [{"crowd": kind, "method": method, **row} for (kind, _, method), row in rows.items()]
    table = []
    for (kind, method), own in grouped(listed, ("crowd", "method")).items():
        held = np.array([row["held"] for row in own])
        error = float(held.std(ddof=1) / np.sqrt(len(held))) if len(held) > 1 else float("nan")
        means = {name: float(np.mean([row[name] for row in own]))
                 for name in ("best held", "width", "realised held", "certainty", "right")}  # fmt: skip
        table.append({
            "crowd": kind, "method": method, "sets": len(own), "held": float(held.mean()), "standard error": error,
            **means,
        })  # fmt: skip
    return table


def tell_intervals(
    record: Recording, rows: dict[tuple[Any, ...], dict[str, Any]], real: dict[tuple[Any, ...], dict[str, Any]]
) -> None:
    """Record how often the intervals of annotators hold what they are of."""
    record.say(
        f"Nominal {LEVEL:.0%} intervals of accuracy: {_ANNOTATORS} annotators, {_ITEMS} items, {_PER_ITEM} labels an "
        "item, 3 labels unless said, errors independent, `dawid-skene` unless said, `dependence=0` but by 'default'. "
        "'Held' is the share of annotators whose interval holds the true accuracy on items by the prevalence, 'best "
        "held' the same of the best annotator of each set, 'realised held' whose `share_lower` and `share_upper` hold "
        "the share of their own labels that are right. Gibbs: 4 chains of 250 draws after 250 sweeps. 'A quarter "
        "hard': everybody guesses on one item in four, which the model does not know, and the true accuracy counts "
        f"these. 'Eight': annotators who are right on {_EIGHT.min():g} to {_EIGHT.max():g} of {_ITEMS_OF_EIGHT} items."
    )
    record.table("intervals", coverage_of_crowds(rows) or [{"crowd": "none was measured"}])
    record.say(
        f"Realised accuracy on public sets: annotators with {_FEWEST_ROWS} labels of items with gold or more, nominal "
        f"{LEVEL:.0%}; fitted without these gold labels. By default, rho is not known, and intervals hold those of all "
        "that it may be. Not what is promised on every set."
    )
    order = {name: place for place, name in enumerate(SETS)}
    every = sorted(real.items(), key=lambda one: (one[0][1], order[one[0][0]], str(one[0][2])))
    table = []
    for (member, name), own in grouped([{"model": key[1], "data": key[0], "rho": key[2], **row} for key, row in every],
                                       ("model", "data")).items():  # fmt: skip
        line: dict[str, Any] = {"model": member, "data": name, "annotators": own[0]["annotators"]}
        for row in own:
            which = "default" if row["rho"] == "default" else f"rho {row['rho']:g}"
            line |= {f"held, {which}": row["held"], f"width, {which}": row["width"]}
        table.append(line)
    record.table("realised", table or [{"model": "none was measured"}])
