"""Crowd models on nine public sets with gold labels: part of the benchmark `crowd`.

What is scored is the certainty: that of the most probable label beside how often it is right. The intra-item
correlation rho of .3 that the library assumes was chosen on these nine sets, so that its figures here are in-sample;
`left_out` chooses rho on eight of them and scores the ninth, and the default learns it from the gold labels of each
set, in five folds.
"""

from __future__ import annotations

import dataclasses
import functools
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import consilience as cs
from benchmarks.annotators_speed import write_csv
from benchmarks.recording import Kept, Recording, panels
from benchmarks.speed import last_line
from consilience import models
from consilience.data import Annotations
from consilience.drawing import GRID, colours_of, styled
from consilience.models.crowd.dependence import exponents, tempered
from consilience.models.truth.classes import ClassTruth, marginals
from consilience.models.truth.truth import Marginals

SETS = ("snow2008-rte", "snow2008-temporal", "snow2008-wsd", "crowd-cf", "crowd-cf-amt", "crowd-ms", "crowd-sp",
        "crowd-sp-amt", "crowd-zencrowd-in")  # fmt: skip


class Run(NamedTuple):
    """A member with options of `fit`; ``folds`` where rho is learned from gold labels and scored on others."""

    name: str
    member: str
    options: dict[str, Any]
    folds: bool = False


def _runs() -> tuple[Run, ...]:
    """Return what is run: every member with rho 0, with the rho that it assumes, and with what gold labels teach it."""
    assumed = {"dawid-skene": (0.0, 0.3), "one-coin": (0.0, 0.3), "mace": (0.0, 0.3), "glad": (0.0, 0.15, 0.3)}
    found = [Run("majority-vote, shares", "majority-vote", {"uncertainty": "shares"})]
    for member, every in assumed.items():
        found += [Run(f"{member}, rho {rho:g}", member, {"dependence": rho}) for rho in every]
        found.append(Run(f"{member}, rho from gold", member, {}, folds=True))
    flat = {"diagonal": 1.0, "dependence": 0.0, "method": "cavi"}
    uniform = {"prevalence": "uniform", "dependence": 0.0, "method": "cavi"}
    found += [
        Run("mpa", "mpa", {}), Run("dawid-skene, flat, rho 0 (before)", "dawid-skene", flat),
        Run("mace, equal shares, rho 0 (before)", "mace", uniform),
    ]  # fmt: skip
    return tuple(found)


RUNS = _runs()
ESTIMATORS = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "GLAD", "MACE")
"""Of crowd-kit, with its own defaults."""

TEMPERED = ("dawid-skene", "one-coin", "mace")
"""Members whose rho is chosen with one set left out."""

RHOS = (0.0, *np.geomspace(0.02, 4, 24).round(4).tolist())

_LEAST = 1e-6    # a probability of zero counts as this in the log score
_EDGES, _ROUNDING = np.linspace(0, 1, 11), 1e-9

# What the other interpreter runs: read the annotations, and print the probabilities of the labels by item.
_PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import pandas
from crowdkit import aggregation
frame = pandas.read_csv(sys.argv[1], dtype=str)
found = getattr(aggregation, sys.argv[2])().fit_predict_proba(frame)
print(json.dumps({label: column.to_dict() for label, column in found.fillna(0.0).items()}))
"""


# ---- data and scores ----


@functools.lru_cache(maxsize=1)
def loaded(name: str) -> Annotations:
    """Return a public set; of the rows of one annotator on one item the first is kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return first_kept(cs.load(name))


def first_kept(data: Annotations) -> Annotations:
    """Return annotations without the rows in which an annotator labels an item again."""
    pair = np.asarray(data.item, np.int64) * max(data.num_annotators, 1) + np.asarray(data.annotator)
    kept = np.sort(np.unique(pair, return_index=True)[1])
    columns: dict[str, Any] = {
        name: np.asarray(getattr(data, name))[kept] for name in ("item", "annotator", "label", "weight")
    }
    return dataclasses.replace(data, **columns, num_annotations=len(kept))


def probabilities(truth: ClassTruth) -> np.ndarray:
    """Return the probability of each label, ``(item, class)``: exact where it is known, else the share of draws."""
    return _dense(marginals(truth), truth.num_units, truth.num_classes)


def _dense(found: Marginals, num_items: int, num_classes: int) -> np.ndarray:
    dense = np.zeros((num_items, num_classes))
    dense[found.unit, found.code] = found.probability
    return dense


def scores(probability: np.ndarray, gold: np.ndarray) -> dict[str, Any]:
    """Score probabilities of labels against gold labels.

    Parameters
    ----------
    probability : shape ``(item, class)``.
    gold : shape ``(item,)``; the known label or -1.

    Returns
    -------
    items : how many have gold, over which all the others are means.
    right : how many labels are right, ties in expectation.
    certainty : probability of the most probable label.
    ECE : mean distance of certainty and right over ten equal bins of the certainty, weighted by items.
    NLL : minus the log probability of the gold label, which counts as 1e-6 at least.
    Brier : squared distance of the probabilities from the gold label, summed over labels.
    bins : of each bin the number of items, and the sums of certainty and right.
    """
    known = np.flatnonzero(gold >= 0)
    probability, gold = probability[known], gold[known]
    certainty = probability.max(axis=1)
    best = probability >= certainty[:, None] * (1 - 1e-9)
    right = best[np.arange(len(gold)), gold] / best.sum(axis=1)
    # A share such as 7 / 10 is on an edge that is 7 * .1 in floating point, and belongs above it.
    place = np.clip(np.searchsorted(_EDGES, certainty + _ROUNDING, side="right") - 1, 0, len(_EDGES) - 2)
    bins = [np.bincount(place, of, len(_EDGES) - 1) for of in (np.ones(len(gold)), certainty, right)]
    target = np.eye(probability.shape[1])[gold]
    return {
        "items": len(gold), "right": float(right.mean()), "certainty": float(certainty.mean()),
        "ECE": float(np.abs(bins[1] - bins[2]).sum() / len(gold)),
        "NLL": float(-np.log(np.maximum(probability[np.arange(len(gold)), gold], _LEAST)).mean()),
        "Brier": float(((probability - target) ** 2).sum(axis=1).mean()), "bins": np.stack(bins, axis=1).tolist(),
    }  # fmt: skip


# ---- public sets ----


def measure_public(kept: Kept, sets: Sequence[str], members: Sequence[str], peer: str | None) -> None:
    """Fit what there is of `RUNS` and `ESTIMATORS` to each set."""
    for name in sets:
        for one in RUNS:
            if one.member in members and one.member in models.names():
                kept.row("public", (name, one.name), functools.partial(_fitted, name, one))
        for estimator in ESTIMATORS if peer else ():
            measure = functools.partial(_of_peer, name, estimator, peer or "")
            kept.row("public", (name, f"crowd-kit {estimator}"), measure)


def _fitted(name: str, one: Run) -> dict[str, Any]:
    data = loaded(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cs.fit(one.member, data, progress=False, **one.options)
    truth = fit.truth
    found = truth.held_out if one.folds else marginals(truth)
    row = scores(_dense(found, data.num_items, data.num_labels), np.asarray(data.gold))
    rho = getattr(getattr(truth, "dependence", None), "rho", None)
    return {**row, "method": fit.method, "rho": rho}


def _of_peer(name: str, estimator: str, peer: str) -> dict[str, Any]:
    data = loaded(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "annotations.csv"
        write_csv(data, path)
        found = last_line([peer, "-W", "ignore", "-c", _PEER, str(path), estimator])
    items = [str(item) for item in data.items]
    dense = [[found.get(str(label), {}).get(item, 0.0) for label in data.labels] for item in items]
    return {**scores(np.array(dense), np.asarray(data.gold)), "method": "crowd-kit", "rho": None}


def public_means(rows: dict[tuple[Any, ...], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return of every model the means over its sets, and the medians of rho."""
    table: dict[str, dict[str, Any]] = {}
    for model in [one.name for one in RUNS] + [f"crowd-kit {name}" for name in ESTIMATORS]:
        own = [row for (_, name), row in rows.items() if name == model]
        if own:
            means = {name: float(np.mean([row[name] for row in own])) for name in _SCORES}
            rhos = [row["rho"] for row in own if row["rho"] is not None]
            table[model] = {"sets": len(own), **means, "rho, median": float(np.median(rhos)) if rhos else np.nan}
    return table


_SCORES = ("right", "certainty", "ECE", "NLL", "Brier")


def tell_public(record: Recording, rows: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """Record means over sets, every set, and the reliability of every model."""
    record.say(
        "Gold labels only score, but for 'rho from gold', the default: rho is learned from four fifths of the gold "
        "labels and scored on the fifth. **rho .3, and .15 of glad, was chosen on these nine sets**: its rows are "
        "in-sample; the next section is not. Of the rows of one annotator on one item the first is kept. 'Right' "
        "counts ties in expectation; ECE has ten equal bins of the certainty, weighted by items; NLL counts "
        f"probabilities below {_LEAST:g} as that; Brier is summed over labels. '(before)' is what the library did "
        "before it knew of dependence. All means are over sets, each counted once."
    )
    record.table("public-means", [{"model": model, **row} for model, row in public_means(rows).items()])
    record.say("Every set:")
    order = {name: place for place, name in enumerate(SETS)}
    every = sorted(rows.items(), key=lambda one: order[one[0][0]])
    columns = ("items", "method", "rho", *_SCORES)
    record.table("public", [{"data": key[0], "model": key[1]} | {name: row[name] for name in columns}
                            for key, row in every])  # fmt: skip
    record.say("Items of all sets by their certainty, with how many of them are right:")
    record.table("reliability", _reliability(rows))
    record.figure("reliability", _figure(rows), "Share of right labels by the certainty that they are given")


def _reliability(rows: dict[tuple[Any, ...], dict[str, Any]]) -> list[dict[str, Any]]:
    table = []
    for model in public_means(rows):
        total = np.sum([row["bins"] for (_, name), row in rows.items() if name == model], axis=0)
        for place, (items, certainty, right) in enumerate(total):
            if items:
                table.append({
                    "model": model, "certainty": f"{_EDGES[place]:.1f} to {_EDGES[place + 1]:.1f}",
                    "items": int(items), "mean certainty": certainty / items, "right": right / items,
                })  # fmt: skip
    return table


@styled
def _figure(rows: dict[tuple[Any, ...], dict[str, Any]]) -> Any:
    """Draw ours that are a default or were one, and crowd-kit's, in two panels."""
    figure, (axes,) = panels(2, width=5.2, height=4.4)
    ours = [one.name for one in RUNS if one.options.get("dependence") != 0.0 or "before" in one.name]
    table = _reliability(rows)
    for ax, title, names in (
        (axes[0], "Ours", ours), (axes[1], "crowd-kit", [f"crowd-kit {name}" for name in ESTIMATORS]),
    ):  # fmt: skip
        names = [name for name in names if any(row["model"] == name for row in table)]
        ax.plot([0, 1], [0, 1], color=GRID, linewidth=1)
        for name, colour in zip(names, colours_of(len(names)), strict=True):
            own = [row for row in table if row["model"] == name and row["items"] >= 20]
            x, y = ([row[column] for row in own] for column in ("mean certainty", "right"))
            ax.plot(x, y, "o-", color=colour, markersize=3, linewidth=1, label=name)
        ax.set(xlabel="probability of the most probable label", ylabel="share that is right", aspect="equal")
        ax.set(title=f"{title}: all sets, bins with 20 items or more", xlim=(0, 1.01), ylim=(0, 1.01))
        if names:
            ax.legend(loc="upper left", fontsize=6)
    return figure


# ---- one set left out ----


def measure_left_out(kept: Kept, sets: Sequence[str], members: Sequence[str]) -> None:
    """Score each set under every rho of `RHOS`."""
    for name in sets:
        for member in TEMPERED:
            if member in members and member in models.names():
                kept.row("left-out", (name, member), functools.partial(_of_rhos, name, member))


def _of_rhos(name: str, member: str) -> dict[str, Any]:
    data, options = loaded(name), {"dependence": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probability = probabilities(cs.fit(member, data, progress=False, **options).truth)
    number = np.bincount(np.asarray(data.item), np.asarray(data.weight, float), data.num_items)
    gold = np.asarray(data.gold)
    found = [scores(tempered(probability, exponents(number, rho)), gold) for rho in RHOS]
    return {"rho": RHOS} | {name: [row[name] for row in found] for name in _SCORES}


def left_out(rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Choose rho for each set by the mean NLL of the others, and score the set with it.

    Parameters
    ----------
    rows : by set: ``rho`` and the scores, a list each.

    Returns
    -------
    A row for each set, and their mean: the scores with rho 0, with the chosen rho, and with the best of the set itself,
    which nobody knows without its gold labels.
    """
    table = []
    for name, own in rows.items():
        others = [row["NLL"] for other, row in rows.items() if other != name]
        if not others:
            continue
        chosen, best = int(np.mean(others, axis=0).argmin()), int(np.argmin(own["NLL"]))
        row: dict[str, Any] = {"data": name, "chosen rho": own["rho"][chosen], "best rho": own["rho"][best]}
        places = {"rho 0": 0, "chosen": chosen, "best": best}
        row["right"], row["certainty, chosen"] = own["right"][chosen], own["certainty"][chosen]
        for score in ("ECE", "NLL"):
            row |= {f"{score}, {which}": own[score][place] for which, place in places.items()}
        table.append(row)
    if table:
        mean = {name: float(np.mean([row[name] for row in table])) for name in list(table[0])[1:]}
        table.append({"data": "mean", **mean})
    return table


def left_out_of(rows: dict[tuple[Any, ...], dict[str, Any]], member: str) -> list[dict[str, Any]]:
    """Return `left_out` of one member."""
    return left_out({name: rows[name, member] for name in SETS if (name, member) in rows})


def tell_left_out(record: Recording, rows: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """Record the scores of each set with a rho that was chosen on the others."""
    record.say(
        f"For each set rho is the one of 0 and 24 values from {RHOS[1]:g} to {RHOS[-1]:g} with the lowest mean NLL of "
        "the other sets, and is scored on the set. 'Best' is chosen on the set itself, and only shows what there was "
        "to gain. This is how far a rho of other crowds carries: the rho of .3 that is assumed came from all nine."
    )
    table = [{"model": member, **row} for member in TEMPERED for row in left_out_of(rows, member)]
    record.table("left-out", table or [{"model": "fewer than two sets were measured"}])
    for (name, member), row in rows.items():
        of_rho = zip(*(row[column] for column in ("rho", *_SCORES)), strict=True)
        lines = [dict(zip(("rho", *_SCORES), one, strict=True)) for one in of_rho]
        record.data(f"left-out, {name}, {member}", lines)
