"""Intervals of a system that looked at ranked items, where annotators prefer some classes on every item, or do not.

The log worth of a class is normal, with standard deviation 1.5 over items; one who prefers adds to it a normal number
of standard deviation 1, the same on every item. Three to five annotators of each item rank their first three of five
classes, with Gumbel errors. Errors that an annotator repeats are not in the posterior of `prirn`: `compare` finds them
by a jackknife if it is known who gave which ranking, so that the same rankings as mere lists show what intervals hold
without it.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

import consilience as cs
from benchmarks.leaderboard_sums import predictions
from consilience.errors import ConsilienceWarning

_CLASSES, _RANKED, _FEWEST, _MOST = 5, 3, 3, 5
_PARTS = (0.8, 0.7)  # of the items that each of two systems knows; the class of the others is a guess


class Setting(NamedTuple):
    """What is simulated: how many items and annotators, and the standard deviation of preferences."""

    items: int
    annotators: int
    preference: float


SETTINGS = tuple(
    Setting(items, annotators, preference)
    for items, annotators in ((100, 6), (100, 12), (1_000, 6)) for preference in (0.0, 1.0)
)  # fmt: skip


def simulate(setting: Setting, random: np.random.Generator, *, named: bool = True) -> tuple[cs.Rankings, np.ndarray]:
    """Return rankings, by annotators with names or as mere lists, and the most plausible class of each item."""
    worth = random.normal(0, 1.5, (setting.items, _CLASSES))
    liked = random.normal(0, setting.preference, (setting.annotators, _CLASSES))
    number = random.integers(_FEWEST, _MOST + 1, setting.items)
    item = np.repeat(np.arange(setting.items), number)
    who = np.concatenate([random.choice(setting.annotators, one, replace=False) for one in number])
    said = worth[item] + liked[who] + random.gumbel(size=(len(item), _CLASSES))
    ranked = np.argsort(-said, axis=1)[:, :_RANKED]
    names: list[str] | None = [f"annotator {one}" for one in range(setting.annotators)]
    if not named:
        who, names = np.concatenate([np.arange(one) for one in number]), None
    rankings = cs.Rankings.from_codes(
        item, who, np.repeat(np.arange(len(item)), _RANKED), np.tile(np.arange(_RANKED), len(item)), ranked.ravel(),
        num_items=setting.items, num_classes=_CLASSES, annotators=names,
    )  # fmt: skip
    return rankings, worth.argmax(axis=1)


def _one(setting: Setting, seed: int) -> dict[str, float]:
    """Return what is held, and how wide intervals are, with the jackknife and without."""
    score = [part + (1 - part) / _CLASSES for part in _PARTS]
    found: dict[str, float] = {}
    for words, named in (("with", True), ("without", False)):
        random = np.random.default_rng([seed, 0])
        rankings, true = simulate(setting, random, named=named)
        systems = {
            f"system {number}": predictions(
                np.where(random.random(setting.items) < part, true, random.integers(0, _CLASSES, setting.items)),
                _CLASSES,
            )
            for number, part in enumerate(_PARTS)
        }  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConsilienceWarning)
            fit = cs.fit("prirn", rankings, seed=seed)
            comparison = cs.compare(fit, systems, provenance="independent", seed=seed)
        row, pair = comparison.table.set_index("system").loc["system 0"], comparison.pairs.iloc[0]
        lead = (score[0] - score[1]) * (1 if pair["a"] == "system 0" else -1)
        found |= {
            f"{words}: holds": row["lower"] <= score[0] <= row["upper"],
            f"{words}: lead holds": pair["lower"] <= lead <= pair["upper"],
            f"{words}: width": row["upper"] - row["lower"],
        }
    return found


def preferences(setting: Setting, sets: int, seed: int = 0) -> dict[str, Any]:
    """Return the means over data sets of one setting."""
    rows = [_one(setting, seed + number) for number in range(sets)]
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return {**setting._asdict(), "sets": sets, **means}
