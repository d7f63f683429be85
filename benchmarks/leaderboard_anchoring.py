"""Systems ranked by judges and some gold labels, on simulated verdicts: coverage, width, error, beside two peers.

Ten systems answer 1,000 items. The difficulty of an item is shared by systems and judges, so that judges err together.
A judge's sensitivity and specificity are logistic, with a bias N(0, 1/2) to each system, and the first judge favours
the first system by 3/2 more, as judges favour their own kind. The truth is the probability that a system is right, in
the population of items. Peers run in an interpreter of their own, on the same sets: ``ppi-python`` (prediction-powered
inference with a tuned λ for each system alone) and ``truescore`` (Rogan and Gladen's correction; of one judge).

Rogan and Gladen (1978), Estimating prevalence from the results of a screening test, American Journal of Epidemiology
107; Lee et al. (2025), arXiv:2511.21140.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.data import Verdicts
from consilience.evaluation.anchoring import anchored, compare_anchored, compare_verdicts, not_random
from consilience.evaluation.leaderboard import Comparison
from consilience.models.intervals import ends

_SYSTEMS, _ITEMS, _DIFFICULTY = 10, 1000, 0.8

# What the other interpreter runs: intervals of every set, system and method, from the arrays in a file.
_PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from ppi_py import ppi_mean_ci
from truescore.correct import rogan_gladen_estimate
given = np.load(sys.argv[1])
found = {"ppi-python": [], "truescore, Rogan-Gladen": []}
for y, verdicts, gold in zip(given["y"], given["verdicts"], given["gold"]):
    share, rest = verdicts.mean(axis=0), np.setdiff1d(np.arange(y.shape[1]), gold)
    rows = [ppi_mean_ci(own[gold].astype(float), p[gold], p[rest], alpha=0.05) for own, p in zip(y, share)]
    found["ppi-python"].append([[float(np.ravel(low)[0]), float(np.ravel(high)[0])] for low, high in rows])
    if len(verdicts) > 1:
        continue
    rows = []
    for own, said in zip(y, verdicts[0]):
        try:
            one = rogan_gladen_estimate(said, own[gold], gold)
            rows.append([float(one.low), float(one.high)])
        except Exception:
            rows.append([float("nan")] * 2)
    found["truescore, Rogan-Gladen"].append(rows)
print(json.dumps({name: rows for name, rows in found.items() if rows}))
"""


class Setting(NamedTuple):
    """How many judges and gold items there are, and between what the accuracies of systems lie."""

    judges: int
    gold: int
    low: float
    high: float


SETTINGS = (
    Setting(1, 100, 0.5, 0.9), Setting(3, 100, 0.5, 0.9), Setting(1, 50, 0.5, 0.9), Setting(3, 50, 0.5, 0.9),
    Setting(3, 300, 0.5, 0.9), Setting(1, 100, 0.85, 0.97), Setting(3, 100, 0.85, 0.97),
)  # fmt: skip


class Simulated(NamedTuple):
    """One simulated set.

    Parameters
    ----------
    y : shape ``(system, item)``; whether each answer is right.
    verdicts : shape ``(judge, system, item)``; whether a judge says so.
    gold : the items whose answers are known.
    population : shape ``(system,)``; the probability that a system is right.
    """

    y: np.ndarray
    verdicts: np.ndarray
    gold: np.ndarray
    population: np.ndarray


def simulate(setting: Setting, random: np.random.Generator) -> Simulated:
    """Draw a set."""
    scale = np.sqrt(1 + _DIFFICULTY**2)
    population, difficulty = random.uniform(setting.low, setting.high, _SYSTEMS), random.normal(size=_ITEMS)
    ability = random.normal(size=(_SYSTEMS, _ITEMS)) - _DIFFICULTY * difficulty
    y = (ability > scale * special.ndtri(1 - population)[:, None]).astype(int)
    bias = random.normal(0, 0.5, (setting.judges, _SYSTEMS))
    bias[0, 0] += 1.5
    sensitivity, specificity = random.uniform(1, 2.2, setting.judges), random.uniform(0.7, 2, setting.judges)
    logit = np.where(y == 1, sensitivity[:, None, None], -specificity[:, None, None]) + bias[:, :, None]
    logit = logit + 0.5 * difficulty * np.where(y == 1, -1, 1)
    verdicts = (random.random(logit.shape) < special.expit(logit)).astype(int)
    return Simulated(y, verdicts, random.permutation(_ITEMS)[: setting.gold], population)


def as_verdicts(data: Simulated) -> Verdicts:
    """Return a set as the library takes it."""
    judge, system, item = (axis.ravel() for axis in np.indices(data.verdicts.shape))
    gold = np.full(data.y.shape, np.nan)
    gold[:, data.gold] = data.y[:, data.gold]
    return Verdicts.from_codes(item, system, judge, data.verdicts.ravel(), gold=gold)


def measure(setting: Setting, number: int = 40, peer: str | None = None, seed: int = 11) -> list[dict[str, Any]]:
    """Return a row for each method: coverage, mean width, RMSE, bias of the favoured system and what gold is worth.

    In how many sets the gold items were said to be no random sample, which they are, is in the column ``alarms``.

    Parameters
    ----------
    setting, number, seed : of the sets, and how many.
    peer : an interpreter that has ppi-python and truescore.
    """
    random = np.random.default_rng([seed, *(int(100 * part) for part in setting)])
    sets = [simulate(setting, random) for _ in range(number)]
    population = np.stack([one.population for one in sets])
    ours: dict[str, list[np.ndarray]] = {}
    worth: dict[str, list[float]] = {}
    alarms = 0
    for one in sets:
        verdicts = as_verdicts(one)
        has_gold = np.isfinite(verdicts.gold)
        alarms += not_random(one.verdicts.mean(axis=0), has_gold)
        for name, p, comparison in _compared(verdicts, setting.judges):
            lower, upper = np.quantile(comparison.draws, ends(), axis=1)
            ours.setdefault(name, []).append(np.stack([lower, upper, comparison.values], axis=1))
            if p is not None:
                worth.setdefault(name, []).append(anchored(verdicts.gold, p, has_gold).worth)
    theirs = {} if peer is None else _of_peer(sets, peer)
    rows = []
    for name, found in {**{name: np.stack(each) for name, each in ours.items()}, **theirs}.items():
        lower, upper, value = np.moveaxis(found, 2, 0)
        error = value - population
        rows.append({
            "judges": setting.judges, "gold": setting.gold, "accuracy": f"{setting.low:g}–{setting.high:g}",
            "method": name, "coverage": float(((lower <= population) & (population <= upper)).mean()),
            "width": float(np.nanmean(upper - lower)), "RMSE": float(np.sqrt(np.nanmean(error**2))),
            "bias, favoured": float(np.nanmean(error[:, 0])),
            "as good as gold": float(np.mean(worth.get(name, np.nan))), "alarms": alarms,
        })  # fmt: skip
    return rows


def _compared(verdicts: Verdicts, judges: int) -> Iterator[tuple[str, np.ndarray | None, Comparison]]:
    """Yield each method of ours, what it takes beside gold labels, and what it says."""
    names, has_gold = tuple(map(str, verdicts.systems)), np.isfinite(verdicts.gold)
    none = np.zeros(has_gold.shape)
    yield "gold only", None, compare_anchored(verdicts.gold, none, has_gold, systems=names, title="")
    share = np.zeros(has_gold.shape)
    np.add.at(share, (verdicts.system, verdicts.item), verdicts.label / judges)
    yield "anchored", share, compare_verdicts(verdicts, gold="use")
    if judges > 1:
        yield "anchored, latent class", None, compare_verdicts(verdicts, gold="use", anchor="latent-class")
    yield "judges alone", None, compare_verdicts(verdicts)


def _of_peer(sets: list[Simulated], python: str) -> dict[str, np.ndarray]:
    """Return the intervals of the peers, and their middle, ``(set, system, 3)``."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sets.npz"
        np.savez(file, **{name: np.stack([getattr(one, name) for one in sets]) for name in ("y", "verdicts", "gold")})
        done = subprocess.run([python, "-c", _PEER, str(file)], capture_output=True, text=True, check=True)
    found = {name: np.array(rows, float) for name, rows in json.loads(done.stdout.splitlines()[-1]).items()}
    return {name: np.concatenate([ends_, ends_.mean(axis=2, keepdims=True)], axis=2) for name, ends_ in found.items()}
