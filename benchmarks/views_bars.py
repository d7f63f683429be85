"""Whether groupings of experts are honest by default: the tempered sampler of `expert-views`, bar by bar.

`python -m benchmarks views_bars [--only PART …] [--sets N] [--again]`. Every row is kept as soon as it is measured.

* exact: the worked example, whose posterior and evidence are known.
* groupings: 200 items in two views of three clusters, ten experts with 120 pairs each; accuracies of .85, one expert
  who guesses, or .6.
* prior: data drawn from the model, 60 items, six experts with 50 pairs each, three views of three clusters.
* ascent: a quarter of the same sets by coordinate ascent, for comparison.
* items: 40 items in two views of three clusters, five experts with 110 pairs each; how often the cluster of an item is
  right, by its probability, and how often intervals of sizes hold.
* clusters: log evidence of 2, 3 and 5 clusters where three are true, and its standard error against its spread.
* time: CPU seconds of whole processes, without and with what is kept of compilation, and beside coordinate ascent.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import Bar, Kept, Recording, at_least, at_most, between, run_parts, tell_bars, tell_commits

PARTS = ("exact", "groupings", "prior", "ascent", "items", "clusters", "time")
_ACCURACY, _GUESSER, _SECOND = "accuracy .85", "a guesser", "accuracy .6, second set"
_GUESSERS, _CLUSTER_SETS, _SPREAD = (6, 7, 8, 9, 10), (0, 20, 21, 22, 23), (0, 1, 2, 3, 4)
_LEVEL, _LEAST_IN_BIN = 0.9, 100
_ITEM_SETS, _ITEM_ACCURACY = 30, (0.9, 0.85, 0.9, 0.85, 0.6)
_CERTAIN = (0.0, 0.5, 0.7, 0.9, 0.99, 1.0)
_ONE_FIT = """
import json, sys, time, numpy as np
began = time.process_time()
import consilience as cs
from benchmarks.views_bars import of_section
data, _ = of_section(np.full(10, 0.85), 0)
ready = time.process_time()
cs.fit("expert-views", data, clusters=3, progress=False)
first = time.process_time()
cs.fit("expert-views", data, clusters=3, progress=False, seed=1)
print(json.dumps({"first": first, "first fit": first - ready, "second fit": time.process_time() - first}))
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--sets", type=int, default=100, metavar="N", help="data sets drawn from the prior (100)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--again", action="store_true", help="measure anew what is kept of earlier runs")


def run(arguments: argparse.Namespace) -> None:
    """Measure the parts that are asked for, and record all that is kept."""
    warnings.simplefilter("ignore")

    def measures(kept: Kept) -> dict[str, Callable[[], Any]]:
        return {
            "exact": lambda: kept.row("exact", ("13.1",), _exact),
            "groupings": lambda: _groupings(kept),
            "prior": lambda: [kept.row("prior", (seed,), functools.partial(_prior, seed))
                              for seed in range(arguments.sets)],
            "ascent": lambda: [kept.row("ascent", (seed,), functools.partial(_prior, seed, "cavi"))
                               for seed in range(arguments.sets // 4)],
            "items": lambda: [kept.row("items", (seed,), functools.partial(_items, seed))
                              for seed in range(_ITEM_SETS)],
            "clusters": lambda: _clusters(kept),
            "time": lambda: kept.row("time", ("accuracy .85 and 600 items",), _time),
        }  # fmt: skip

    run_parts("views-bars", "Groupings of experts that are honest by default", arguments, measures, _tell)


def of_section(accuracy: Any, seed: int) -> tuple[Any, np.ndarray]:
    """Return 200 items in two views of three clusters, judged by ten experts, and the true clusters.

    Parameters
    ----------
    accuracy : ``(10,)``; five experts of the one view, then five of the other.
    seed : of clusters, features and errors; who judges which pairs is the same for all.
    """
    from consilience.models.expert_views.simulation import constraints_of

    pairs, every = np.random.default_rng(5), np.array([(a, b) for a in range(200) for b in range(a)])
    judged = [every[pairs.choice(len(every), 120, replace=False)] for _ in range(10)]
    random = np.random.default_rng(seed)
    label = random.integers(0, 3, (2, 200))
    centre = np.array([(0, 0), (3, 0), (1.5, 2.6)])
    feature = np.concatenate([centre[one] for one in label], axis=1) + random.normal(0, 0.8, (200, 4))
    right = np.concatenate([random.random(120) < own for own in accuracy])
    expert, (later, earlier) = np.repeat(np.arange(10), 120), np.concatenate(judged).T
    view = expert // 5
    same = label[view, later] == label[view, earlier]
    return constraints_of(expert, earlier, later, np.where(right, same, ~same).astype(int), feature, 10), label


def _fitted(data: Any, seed: int, clusters: int = 3, **settings: Any) -> tuple[Any, float]:
    import consilience as cs

    began = time.process_time()
    fit = cs.fit("expert-views", data, clusters=clusters, seed=seed, progress=False, **settings)
    return fit, time.process_time() - began


def _exact() -> dict[str, Any]:
    from consilience.models.expert_views import PAPER_PRIORS
    from tests.models.expert_views.worked import DATA, LOG_EVIDENCE, OPTIONS, SAME_VIEW

    fit, seconds = _fitted(DATA, 0, OPTIONS["clusters"], priors=PAPER_PRIORS, rungs=12, draws=4000, views=2,
                           standardize=0)  # fmt: skip
    view = fit.posterior.chains["view_of_expert"]
    same = (view[..., 0] == view[..., 1]).reshape(80, -1).mean(axis=1)
    row = fit.evidence().iloc[0]
    return {
        "same view": same.mean(), "true": SAME_VIEW, "MCSE": same.std(ddof=1) / 80**0.5,
        "log evidence": row["log_evidence"], "true log evidence": LOG_EVIDENCE, "standard error": row["standard_error"],
        "CPU s": seconds,
    }  # fmt: skip


def _groupings(kept: Kept) -> None:
    guesser = np.append(0.5, np.full(9, 0.85))
    sets = [(_ACCURACY, np.full(10, 0.85), 0), *((_GUESSER, guesser, seed) for seed in _GUESSERS),
            ("accuracy .6, first set", np.full(10, 0.6), 1), (_SECOND, np.full(10, 0.6), 2)]  # fmt: skip
    for name, accuracy, seed in sets:
        kept.row("groupings", (name, seed), functools.partial(_grouping, accuracy, seed))


def _grouping(accuracy: np.ndarray, seed: int) -> dict[str, Any]:
    fit, seconds = _fitted(of_section(accuracy, seed)[0], seed)
    view = fit.posterior.chains["view_of_expert"]
    number = np.array([np.bincount([len(np.unique(one)) for one in chain], minlength=11)[1:] for chain in view])
    same = (view[..., :, None] == view[..., None, :]).mean(axis=(0, 1))
    right = (view[..., :1] == view[..., 1:5]).all(axis=-1) & (view[..., 5:6] == view[..., 6:]).all(axis=-1)
    right &= view[..., 0] != view[..., 5]
    of_first = np.append(same[0, 1:5].mean(), same[0, 5:].mean())
    return {
        "P(views)": (number / view.shape[1]).round(3).tolist(), "right grouping": right.mean(axis=1).round(3).tolist(),
        "within": np.mean([same[a, b] for part in (range(5), range(5, 10)) for a in part for b in part if a < b]),
        "across": same[:5, 5:].mean(), "expert 0 with his own, with the others": of_first.round(3).tolist(),
        "largest P of his view": fit.experts()["probability"].iloc[0],
        "round trips": fit.posterior.ladder_trips.tolist(), "rungs": (~np.isnan(fit.posterior.ladder_exponent)).sum(1),
        "CPU s": seconds,
    }  # fmt: skip


def _prior(seed: int, method: str = "gibbs") -> dict[str, Any]:
    import jax

    from consilience.models.expert_views import simulate

    sizes = {"num_items": 60, "num_experts": 6, "num_features": 3, "num_pairs": 50}
    data, values = simulate(jax.random.key(seed), **sizes, clusters=3, views=3)
    fit, seconds = _fitted(data, seed, views=3, method=method)
    held = 0
    for site in ("sensitivity", "specificity"):
        _, _, low, high = fit.posterior.summary(site, level=_LEVEL)
        held += int(((low <= values[site]) & (values[site] <= high)).sum())
    one, other = np.triu_indices(6, 1)
    view = np.asarray(values["view_of_expert"])
    return {
        "held": held, "accuracies": 12, "same view, said": fit.same_view()["probability"].round(4).tolist(),
        "same view, true": (view[one] == view[other]).astype(int).tolist(),
        "round trips": int(sum(fit.posterior.hidden.get("ladder_trips", ()))), "CPU s": seconds,
    }  # fmt: skip


def _items(seed: int) -> dict[str, Any]:
    """Measure the clusters of the views of experts 0 and 2, each matched to the true ones that they share most with."""
    from scipy.optimize import linear_sum_assignment

    from consilience.models.expert_views.simulation import constraints_of

    random = np.random.default_rng(seed)
    label = random.integers(0, 3, (2, 40))
    expert, view = np.repeat(np.arange(5), 110), np.repeat([0, 0, 1, 1, 0], 110)
    every = np.stack(np.triu_indices(40, 1), axis=1)
    a, b = np.concatenate([every[random.choice(len(every), 110, replace=False)] for _ in range(5)]).T
    same, right = label[view, a] == label[view, b], random.random(550) < np.array(_ITEM_ACCURACY)[expert]
    together = np.where(right, same, ~same).astype(int)
    fit, seconds = _fitted(constraints_of(expert, a, b, together, np.empty((40, 0)), 5), seed)
    row: dict[str, Any] = {"said": [], "right": [], "sizes": 0, "held": 0, "CPU s": seconds}
    for own, judge in zip(label, (0, 2), strict=True):
        found = int(fit.truth.view_probability[judge].argmax())
        probability, best = fit.truth.cluster_probability[:, found], fit.truth.consensus(found)
        shared = (best[:, None, None] == np.arange(3)[:, None]) & (own[:, None, None] == np.arange(3))
        true = linear_sum_assignment(-shared.sum(axis=0))[1]
        size = (fit.truth.clusters(found)[:, :, None] == np.arange(3)).sum(axis=1)
        low, high = np.quantile(size, (0.025, 0.975), axis=0)
        known = np.bincount(own, minlength=3)[true]
        row["said"] += probability.max(axis=1).round(4).tolist()
        row["right"] += (true[best] == own).astype(int).tolist()
        row["sizes"] += 3
        row["held"] += int(((low <= known) & (known <= high)).sum())
    return row


def _clusters(kept: Kept) -> None:
    def once(data_seed: int, clusters: int, seed: int) -> dict[str, Any]:
        fit, seconds = _fitted(of_section(np.full(10, 0.85), data_seed)[0], seed, clusters)
        row = fit.evidence().iloc[0]
        return {"log evidence": row["log_evidence"], "standard error": row["standard_error"], "CPU s": seconds}

    for data_seed in _CLUSTER_SETS:
        for clusters in (2, 3, 5):
            kept.row("clusters", (data_seed, clusters, 0), functools.partial(once, data_seed, clusters, 0))
    for seed in _SPREAD:
        kept.row("clusters", (0, 3, seed), functools.partial(once, 0, 3, seed))


def _time() -> dict[str, Any]:
    from benchmarks.views_experts import simulate_experts, three_clusters

    row: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax"}
        for name in ("without", "filled"):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([sys.executable, "-c", _ONE_FIT], env=environment, capture_output=True, text=True,
                                  check=True, cwd=Path(__file__).parents[1])  # fmt: skip
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found = json.loads(done.stdout.splitlines()[-1])
            whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            row |= {f"{name}, first fit ends": found["first"], f"{name}, second fit":
                    found["second fit"], f"{name}, process with both": whole}  # fmt: skip
    data, _ = simulate_experts(*three_clusters(), protocol="own")
    for _ in range(2):  # the second one is warm
        _, row["600 items, cavi"] = _fitted(data, 0, method="cavi", views=5)
    _, row["600 items, gibbs"] = _fitted(data, 0)
    return row


# ---- the record ----


def _tell(record: Recording, kept: Kept) -> None:
    record.say("By the default method, with nothing tuned; CPU seconds of one thread.")
    for part in PARTS:
        rows = [{"row": " ".join(map(str, key))} | columns for key, columns in kept.rows(part).items()]
        record.section(part)
        if not rows:
            record.say("Not measured.")
        elif part == "items":
            record.data(part, rows)
            sizes, held = (sum(row[name] for row in rows) for name in ("sizes", "held"))
            record.say(f"{held:,} of {sizes:,} sizes were in their 95 % intervals. "
                       "Items by how probable their cluster is:")  # fmt: skip
            record.table(part, _by_certainty(rows))
        elif part in ("prior", "ascent"):
            record.data(part, rows)
            held, number = (sum(row[name] for row in rows) for name in ("held", "accuracies"))
            record.say(f"{held:,} of {number:,} accuracies were in their 90 % intervals ({held / number:.3f}).")
            record.table(f"same view, {part}", _bins(rows))
        else:
            record.table(part, [{name: row.get(name) for name in rows[0]} for row in rows])
    tell_bars(record, _bars({part: kept.rows(part) for part in PARTS}))
    record.section("Commits")
    tell_commits(record, kept, PARTS)


def _bins(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how often pairs of experts have one view, by what was said of them."""
    said, true = (np.concatenate([row[f"same view, {name}"] for row in rows]) for name in ("said", "true"))
    place = np.minimum((said * 5).astype(int), 4)
    return [
        {"said": f"{number / 5:.1f} to {(number + 1) / 5:.1f}", "pairs": int(own.sum()),
         "mean said": float(said[own].mean()), "true": float(true[own].mean())}
        for number in range(5) if (own := place == number).any()
    ]  # fmt: skip


def _by_certainty(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how often items are in the cluster that was said, by its probability."""
    said, right = (np.concatenate([row[name] for row in rows]) for name in ("said", "right"))
    return [
        {"said": f"{low} to {high}", "items": int(own.sum()), "mean said": float(said[own].mean()),
         "right": int(right[own].sum())}
        for low, high in itertools.pairwise(_CERTAIN) if (own := (low <= said) & (said < high + (high == 1))).any()
    ]  # fmt: skip


def _bars(rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]]) -> list[Bar]:
    found: list[Bar] = []
    for row in rows["exact"].values():
        error = abs(row["log evidence"] - row["true log evidence"])
        found += [at_most("A1 P(same view), errors in MCSE", 4, abs(row["same view"] - row["true"]) / row["MCSE"]),
                  at_most("A1 error of the log evidence", 0.15, error, 3)]  # fmt: skip
    of_set = rows["groupings"]
    for (name, _), row in of_set.items():
        if name == _ACCURACY:
            found += [at_least("A2 .85, from the prior: P(two views)", 0.95, row["P(views)"][0][1]),
                      at_least("A2 … P(right grouping)", 0.95, row["right grouping"][0])]  # fmt: skip
        if name == _SECOND:
            number = np.array(row["P(views)"])
            found += [at_most("A2 .6: largest P of a number of views", 0.7, number.mean(axis=0).max()),
                      at_most("A2 … the ladders differ", 0.15, np.ptp(number, axis=0).max())]  # fmt: skip
    of_guessers = [row["largest P of his view"] for (name, _), row in of_set.items() if name == _GUESSER]
    if of_guessers:
        inside = sum(0.3 <= value <= 0.85 for value in of_guessers)
        found.append(at_least(f"A2 guesser: P in .3 to .85, of {len(of_guessers)}", 4, inside, 0))
    if rows["prior"]:
        of_prior = list(rows["prior"].values())
        share = sum(row["held"] for row in of_prior) / sum(row["accuracies"] for row in of_prior)
        found.append(between(f"A3 intervals of 90 % held, {len(of_prior)} sets", 0.86, 0.94, share, 3))
        off = [abs(one["mean said"] - one["true"]) for one in _bins(of_prior) if one["pairs"] >= _LEAST_IN_BIN]
        found.append(at_most(f"A3 … same view, largest error of {len(off)} bins", 0.08, max(off, default=None), 3))
    of_clusters = rows["clusters"]
    if of_clusters:
        value = {key: row["log evidence"] for key, row in of_clusters.items()}
        sets = [one for one in _CLUSTER_SETS if all((one, number, 0) in value for number in (2, 3, 5))]
        right = sum(value[one, 3, 0] > max(value[one, 2, 0], value[one, 5, 0]) for one in sets)
        again = [row for key, row in of_clusters.items() if key[:2] == (0, 3)]
        spread = np.std([row["log evidence"] for row in again], ddof=1)
        ratio = spread / np.mean([row["standard error"] for row in again])
        found += [at_least(f"A4 three clusters before two and five, of {len(sets)}", len(sets), right, 0),
                  between("A4 spread of the log evidence over its error", 0.5, 2, ratio)]  # fmt: skip
    for row in rows["time"].values():
        found += [at_most("A5 first fit, nothing compiled: CPU s", 15, row["without, first fit ends"]),
                  at_most("A5 first fit, filled cache: CPU s", 5, row["filled, first fit ends"]),
                  at_most("A5 default fit of 600 items over warm coordinate ascent", 3,
                          row["600 items, gibbs"] / row["600 items, cavi"])]  # fmt: skip
    return found
