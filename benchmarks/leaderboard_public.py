"""Do the intervals of a leaderboard hold the accuracy against gold labels? Part of the benchmark `leaderboard`.

Nine public crowds, whose gold labels a fit of `dawid-skene` does not see. Two systems are made of the annotations: the
majority, ties broken at random, and the labels of the fit; a third is right as often as an independent look would
be: the gold label with probability .7, else a class drawn at random.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np

import consilience as cs
from benchmarks.crowd_public import SETS, loaded
from benchmarks.recording import Kept, Recording
from consilience.data import Predictions
from consilience.errors import ConsilienceWarning

_KNOWS = 0.7


def public_set(name: str) -> dict[str, Any]:
    """Compare the three systems, and say whether their intervals hold what the gold labels say."""
    data = loaded(name)
    gold, number = np.asarray(data.gold), data.num_items
    random = np.random.default_rng(0)
    counts = np.zeros((number, data.num_labels))
    np.add.at(counts, (np.asarray(data.item), np.asarray(data.label)), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsilienceWarning)
        fit = cs.fit("dawid-skene", dataclasses.replace(data, gold=np.full_like(gold, -1)))
    known = np.flatnonzero(gold >= 0)
    guess = random.integers(0, data.num_labels, number)
    codes = {
        "majority": (counts + random.random(counts.shape) / 2).argmax(axis=1), "labels": fit.truth.estimate(),
        "independent": np.where(random.random(number) < _KNOWS, gold, guess),
    }  # fmt: skip
    items, classes = [data.items[k] for k in known], list(data.labels)
    systems = {
        system: Predictions.from_lists([[classes[k]] for k in own[known]], items=items, classes=classes)
        for system, own in codes.items()
    }
    provenance = {"majority": "annotations", "labels": "annotations", "independent": "independent"}
    row: dict[str, Any] = {"set": name, "rho": fit.truth.dependence.rho}
    for way, stated in (("stated", provenance), ("unknown", "unknown")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConsilienceWarning)
            table = cs.compare(fit, systems, provenance=stated, missing="drop").table.set_index("system")
        for system, own in codes.items():
            right = float((own == gold)[known].mean())
            low, high = (float(table.loc[system, end]) for end in ("lower", "upper"))
            row |= {f"{system}, right": right, f"{system}, {way}": [low, high]}
            row[f"{system}, {way}, held"] = low <= right <= high
    return row


def measure_public_sets(kept: Kept, sets: int = len(SETS)) -> None:
    """Measure what is not kept."""
    for name in SETS[:sets]:
        kept.row("public", (name,), lambda name=name: public_set(name))


def tell_public_sets(record: Recording, rows: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """Record one row a set and system, and how many hold."""
    found, held = [], {}
    for row in rows.values():
        for system in ("majority", "labels", "independent"):
            told = {"set": row["set"], "system": system, "right by gold": row[f"{system}, right"]}
            for way in ("stated", "unknown"):
                low, high = row[f"{system}, {way}"]
                told[f"95 %, {way}"] = f"{low:.3f} to {high:.3f}"
                held.setdefault((system, way), []).append(row[f"{system}, {way}, held"])
            found.append(told)
    record.table("public", found)
    record.table("public held", [{"system": system, "provenance": way, "hold": f"{sum(own)} of {len(own)}"}
                                 for (system, way), own in held.items()])  # fmt: skip
