"""How fast the Plackett-Luce sampler is: against the authors' published one, and on 100,000 simulated cases.

Everything is timed in processes of its own, so that imports, compilation and memory are told apart. The peer is the
sampler of github.com/google-deepmind/uncertain_ground_truth, run from a checkout that you supply with ``--peer``, on
as many random cases as it manages in the seconds that it is given; the rest is extrapolated. CPU seconds count every
core. The same command measures a GPU where JAX finds one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import Recording
from benchmarks.speed import peak_memory_mb, timed
from consilience.errors import InputError, InputProblem

_WARMUP, _DRAWS, _REPEATS = 500, 1000, 3
_RELIABILITIES = (1, 3, 10)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--peer", type=Path, metavar="CHECKOUT", help="of the authors' repository; none by default")
    parser.add_argument("--peer-seconds", type=float, default=150, help="for each reliability of the peer (150)")
    parser.add_argument("--simulated", type=int, default=100_000, help="simulated cases; 0 leaves them out (100000)")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    if arguments.peer is not None and not (arguments.peer / "pl_samplers.py").is_file():
        problem = InputProblem(
            "this is no checkout of google-deepmind/uncertain_ground_truth", "it has pl_samplers.py",
            file=str(arguments.peer),
        )  # fmt: skip
        raise InputError(problem)
    record = Recording("plackett-luce", "Speed of the Plackett-Luce sampler", arguments.command, arguments.output)
    record.say(
        f"One chain of {_WARMUP} + {_DRAWS} sweeps, as in the paper, over the 1,947 released cases (9,602 differential "
        "diagnoses, 419 conditions); also four chains of 500 + 250. 'Cold' is the first call in a process, with "
        f"compilation and without import; 'warm' the median of {_REPEATS} later calls. 'Fit' is `consilience.fit` with "
        "the layout of the data and R-hat, effective sizes and errors of every class; 'sweeps' is its sampler alone."
    )
    ours = _in_own_process("ours", [])
    record.say(f"Backend: {ours[0]['backend']}.")
    record.table("ours", ours, digits=2)
    if arguments.peer is not None:
        _peer(record, arguments, ours)
    if arguments.simulated:
        record.section(f"{arguments.simulated:,} simulated cases")
        record.say(
            "Five annotators a case, six conditions, ties of two and three; two chains of 500 + 250 sweeps at "
            "reliability 1, the first call in its process."
        )
        record.table("simulated", _in_own_process("simulated", [str(arguments.simulated)]), digits=1)
    record.write()


def _in_own_process(what: str, words: list[str]) -> list[dict[str, Any]]:
    """Run one of the measurements below in a fresh process; every line that it prints is a row."""
    command = [sys.executable, "-m", "benchmarks.plackett_luce", what, *words]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _peer(record: Recording, arguments: argparse.Namespace, ours: list[dict[str, Any]]) -> None:
    record.section("Against the published sampler")
    record.say(
        f"`GibbsSamplerPlackettLuce(jit_strategy='jit_per_iteration').sample_from_ranked_classes`, {_WARMUP} + "
        f"{_DRAWS} iterations a case with shape and rate 1 and one class for all unranked ones, cases in a random "
        "order, one sampler object for all of them so that it compiles as seldom as it can. Compilation is included, "
        "since nearly every case has a block structure of its own. 'Ratio' is the extrapolated time for all cases over "
        "ours, one chain warm (and cold). As a check, the posterior means of the same cases are compared: the largest "
        "difference over all conditions of a case, averaged over cases, beside what two of our own runs differ by."
    )
    rows = []
    for reliability in _RELIABILITIES:
        words = [str(arguments.peer.resolve()), str(arguments.peer_seconds), str(reliability)]
        (peer,) = _in_own_process("peer", words)
        own = next(row for row in ours if row["reliability"] == reliability and row["chains"] == 1)
        hours = peer["CPU s per case"] * 1947 / 3600
        rows.append({
            "reliability": reliability, **peer, "all cases, h": hours,
            "ratio warm": hours * 3600 / own["fit warm, CPU s"], "ratio cold": hours * 3600 / own["fit cold, CPU s"],
        })  # fmt: skip
    record.table("peer", rows, digits=3)


# ---- what runs in processes of its own ----


def _measure_ours() -> None:
    import jax

    import consilience as cs

    cases = cs.load("dermatology-ddx")
    for reliability in _RELIABILITIES:
        for chains, draws in ((1, _DRAWS), (4, _DRAWS // 4)):
            settings = {"reliability": reliability, "warmup": _WARMUP, "chains": chains, "draws": draws}
            jax.clear_caches()
            cold_wall, cold = timed(lambda settings=settings: cs.fit("plackett-luce", cases, **settings))
            warm, seconds = [], []
            for seed in range(1, _REPEATS + 1):
                began = time.process_time()
                fit = cs.fit("plackett-luce", cases, seed=seed, **settings)
                warm.append(time.process_time() - began)
                seconds.append(fit.run.seconds)
            row = {
                "reliability": reliability, "chains": chains, "draws": chains * draws,
                "fit cold, CPU s": cold, "fit cold, wall s": cold_wall, "fit warm, CPU s": float(np.median(warm)),
                "sweeps warm, wall s": float(np.median(seconds)), "peak memory, MB": peak_memory_mb(),
                "backend": f"{jax.default_backend()}, {jax.devices()[0].device_kind}",
            }  # fmt: skip
            print(json.dumps(row), flush=True)


def _measure_simulated(num_cases: int) -> None:
    import jax

    import consilience as cs
    from consilience.models.plackett_luce import simulate

    made: list[Any] = []
    simulating, _ = timed(lambda: made.append(simulate(jax.random.key(0), num_items=num_cases)[0]))
    settings = {"warmup": _WARMUP, "chains": 2, "draws": 250}
    fits: list[Any] = []
    wall, cpu = timed(lambda: fits.append(cs.fit("plackett-luce", made[0], **settings)))
    certainty_wall, _ = timed(lambda: cs.certainty(fits[0], top=(1, 2, 3), exact=False))
    row = {
        "cases": num_cases, "reports": made[0].num_reports, "entries": made[0].num_entries,
        "simulate, wall s": simulating, "fit, wall s": wall, "fit, CPU s": cpu,
        "sweeps, wall s": fits[0].run.seconds, "certainty, wall s": certainty_wall,
        "peak memory, MB": peak_memory_mb(),
    }  # fmt: skip
    print(json.dumps(row), flush=True)


def _measure_peer(checkout: str, limit: float, reliability: int) -> None:
    sys.path.insert(0, checkout)
    import jax
    import pl_samplers

    import consilience as cs

    cases = cs.load("dermatology-ddx")
    sampler = pl_samplers.GibbsSamplerPlackettLuce(jit_strategy="jit_per_iteration")
    order = np.random.default_rng(0).permutation(cases.num_items)
    means: dict[int, np.ndarray] = {}
    began, began_wall = time.process_time(), time.perf_counter()
    for case in order:
        draws = sampler.sample_from_ranked_classes(
            jax.random.PRNGKey(int(case)), _selectors(cases, case) * reliability, 1.0, 1.0, cases.num_classes,
            num_iterations=_WARMUP + _DRAWS,
        )  # fmt: skip
        weights = np.asarray(draws, float)[_WARMUP:]
        means[int(case)] = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
        if time.perf_counter() - began_wall > limit:
            break
    seconds = time.process_time() - began
    compared = [_posterior_means(cases, list(means), reliability, seed) for seed in (0, 1)]
    theirs = np.stack(list(means.values()))
    row = {
        "cases run": len(means), "CPU s per case": seconds / len(means),
        "difference of means": float(np.abs(theirs - compared[0]).max(axis=1).mean()),
        "of two runs of ours": float(np.abs(compared[1] - compared[0]).max(axis=1).mean()),
    }  # fmt: skip
    print(json.dumps(row), flush=True)


def _selectors(cases: Any, case: int) -> list[list[list[int]]]:
    """Return a case as the peer takes it: annotator > block > class codes."""
    reports = []
    for report in np.flatnonzero(cases.report_item == case):
        rows = np.flatnonzero(cases.report == report)
        blocks = np.split(rows, np.flatnonzero(np.diff(cases.block[rows])) + 1)
        reports.append([cases.entry_class[cases.entry[block]].tolist() for block in blocks])
    return reports


def _posterior_means(cases: Any, chosen: list[int], reliability: int, seed: int) -> np.ndarray:
    """Return our posterior means of the chosen cases over all classes, ``(case, class)``; `other` split evenly."""
    import consilience as cs

    fit = cs.fit("plackett-luce", cases, reliability=reliability, chains=1, draws=_DRAWS, seed=seed)
    dense = np.full((cases.num_items, cases.num_classes), -1.0)
    dense[cases.entry_item, cases.entry_class] = fit.posterior.plausibility.mean(axis=0, dtype=float)
    unnamed = dense < 0
    share = fit.posterior.other.mean(axis=0, dtype=float) / np.maximum(unnamed.sum(axis=1), 1)
    return np.where(unnamed, share[:, None], dense)[chosen]


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "ours":
        _measure_ours()
    elif what == "simulated":
        _measure_simulated(int(words[0]))
    else:
        _measure_peer(words[0], float(words[1]), int(words[2]))
