"""Whether intervals for the number of entities hold it: `python -m benchmarks coverage`.

Records with known entities are simulated again and again and linked. A nominal 95 % interval should hold the true
number in 95 % of the sets, and the true number should lie anywhere among the draws with equal probability. `gibbs` is
beside the interval of EM, which takes its hyperparameters for known and its candidates for all there are. Some records
break the model: there no interval is honest that does not know it, and the predictive check should say so. Each
likelihood (``--likelihoods``) is the model of some of the records, and wrong for others.

A set takes seconds. Each is kept in ``sets.jsonl`` as soon as it is done, and the sets of the same commit that are
there are not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.recording import RESULTS, Recording, machine

_FIVE = {"num_values": (200, 400, 80, 12, 28), "exponent": (1.0, 0.9, 0.1, 0.0, 0.0)}
_SIX = {"num_values": (300, 800, 90, 12, 28, 100), "exponent": (1.0, 0.9, 0.1, 0.0, 0.0, 0.6)}
_SIZES = {"size_share": (0.75, 0.19, 0.06), "distortion": 0.05}

SETTINGS: dict[str, dict[str, Any]] = {
    "five fields": {**_FIVE, **_SIZES},
    "six fields": {**_SIX, **_SIZES},
    "five fields, 5 % missing": {**_FIVE, **_SIZES, "missing": 0.05},
    "six fields, 5 % missing": {**_SIX, **_SIZES, "missing": 0.05},
    "one error in every duplicate": {**_FIVE, "size_share": (0.9, 0.1), "distortion": 0.05, "errors": "one"},
    "a quarter moves": {**_FIVE, **_SIZES, "moves": 0.25, "moving_fields": ("field_4", "field_5")},
}
"""Options of `simulate_records`. The last two break the model: errors that exclude, or that come with, each other.
Of hit-miss, that is; where every duplicate has one error, it is the likelihood of error classes that holds."""

LIKELIHOODS = ("hit-miss", "error-classes")

_LEVEL = 0.95
_CHAINS, _WARMUP = 2, 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--sets", type=int, default=100, metavar="N", help="data sets of each kind (100)")
    parser.add_argument("--records", type=int, default=2000, metavar="N", help="records of a data set (2000)")
    parser.add_argument("--draws", type=int, default=700, metavar="N", help=f"of each of {_CHAINS} chains (700)")
    parser.add_argument("--kinds", nargs="+", choices=SETTINGS, default=list(SETTINGS), metavar="KIND")
    parser.add_argument(
        "--likelihoods", nargs="+", choices=LIKELIHOODS, default=list(LIKELIHOODS), metavar="NAME",
        help=f"of the fits: {', '.join(LIKELIHOODS)}; both",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    record = Recording("coverage", "Intervals for the number of entities", arguments.command, arguments.output)
    folder = arguments.output or RESULTS / "coverage"
    rows = list(_rows(folder / "sets.jsonl", arguments))
    record.say(
        f"Simulated records, {arguments.records:,} a set; nominal {_LEVEL:.0%} intervals. 'hold' is the share of sets "
        "whose closed interval holds the true number, 'error' the mean of the draws less that number with its standard "
        "error, 'uniform' the p-value of a Kolmogorov-Smirnov test that the true number is anywhere among the draws, "
        "'outside' how many links the model expects among pairs that could not be linked, 'model refused' the share of "
        f"sets in which the misfit check says that the model does not hold. Gibbs: {_CHAINS} chains of "
        f"{arguments.draws} draws after {_WARMUP} sweeps; 'ESS' is the effective number of draws of the number of "
        "entities, and CPU seconds include compilation where a set has a new shape."
    )
    found = [(kind, likelihood, _of(rows, kind, likelihood)) for kind, likelihood in _pairs(arguments)]
    record.table("summary", [summary(kind, likelihood, own) for kind, likelihood, own in found if own])
    record.write()


def measure(
    kind: str, seed: int, *, likelihood: str = "hit-miss", records: int = 2000, draws: int = 700
) -> dict[str, Any]:
    """Simulate and link one data set.

    Parameters
    ----------
    kind : a name in `SETTINGS`.
    seed : of the records, and of the draws.
    likelihood : of the fits, a name in `LIKELIHOODS`.
    records, draws : how many records, and how many draws of each chain.

    Returns
    -------
    Row with the true number of entities and what Gibbs sampling and EM say of it.
    """
    import consilience as cs

    data = cs.simulate_records(records, seed=seed, **SETTINGS[kind])
    true = int(np.asarray(data.entity).max()) + 1
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cs.fit(
            "block-linkage", data, method="gibbs", likelihood=likelihood, draws=draws, chains=_CHAINS, warmup=_WARMUP,
            seed=seed, progress=False,
        )  # fmt: skip
        seconds = time.process_time() - began
        plug_in = cs.fit("block-linkage", data, method="em", likelihood=likelihood, seed=seed)
    count, by_em = fit.num_entities(), plug_in.num_entities()
    drawn = np.asarray(count.draws)
    random = np.random.default_rng(seed)
    rank = (np.sum(drawn < true) + random.random() * (1 + np.sum(drawn == true))) / (len(drawn) + 1)
    low, high = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    mixing = fit.summary().set_index("quantity").loc["num_entities"]
    return {
        "kind": kind, "likelihood": likelihood, "seed": seed, "true": true,
        "mean": float(drawn.mean()), "sd": float(drawn.std()),
        "low": float(low), "high": float(high), "rank": float(rank),
        "ESS": float(mixing["ess_bulk"]), "R-hat": float(mixing["r_hat"]),
        "outside": float(fit.truth.links_outside), "refused": float(bool(fit.truth.doubt)),
        "CPU s": seconds,
        "EM mean": float(by_em.value), "EM low": float(by_em.interval[0]), "EM high": float(by_em.interval[1]),
    }  # fmt: skip


def summary(kind: str, likelihood: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how often the intervals of a kind of data hold under a likelihood, and how they err, from their rows."""
    of = {name: np.array([row[name] for row in rows]) for name in rows[0] if name not in ("kind", "likelihood")}
    error = of["mean"] - of["true"]
    return {
        "data": kind, "likelihood": likelihood, "sets": len(error),
        "Gibbs: hold": _held(of, ""), "error": _with_error(error), "sd of the error": float(error.std(ddof=1)),
        "mean sd": float(of["sd"].mean()), "uniform": float(stats.kstest(of["rank"], "uniform").pvalue),
        "outside": float(of["outside"].mean()), "model refused": float(of["refused"].mean()),
        "ESS": float(of["ESS"].mean()), "CPU s": float(of["CPU s"].mean()),
        "EM: hold": _held(of, "EM "), "EM: error": _with_error(of["EM mean"] - of["true"]),
    }  # fmt: skip


def _pairs(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the kinds of data, each with all likelihoods."""
    return [(kind, likelihood) for kind in arguments.kinds for likelihood in arguments.likelihoods]


def _of(rows: list[dict[str, Any]], kind: str, likelihood: str) -> list[dict[str, Any]]:
    return [row for row in rows if (row["kind"], row["likelihood"]) == (kind, likelihood)]


def _held(of: dict[str, np.ndarray], method: str) -> float:
    return float(((of[f"{method}low"] <= of["true"]) & (of["true"] <= of[f"{method}high"])).mean())


def _with_error(values: np.ndarray) -> str:
    return f"{values.mean():+.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}"


def _rows(path: Path, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row for each data set; those that are in the file already are taken from there."""
    made_by = {"records": arguments.records, "draws": arguments.draws, "commit": machine()["commit"]}
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    # Sets that were recorded before there was a choice are of hit-miss.
    done = [{"likelihood": "hit-miss"} | row for row in map(json.loads, lines)]
    known = {(row["kind"], row["likelihood"], row["seed"]): row for row in done if made_by.items() <= row.items()}
    with path.open("a", encoding="utf-8") as stream:
        for kind, likelihood in _pairs(arguments):
            for seed in range(arguments.sets):
                own = kind, likelihood, seed
                if own not in known:
                    row = measure(
                        kind, seed, likelihood=likelihood, records=arguments.records, draws=arguments.draws
                    ) | made_by
                    stream.write(json.dumps(row) + "\n")
                    stream.flush()
                    print(
                        f"{kind}, {likelihood}, set {seed}: {row['true']:,} in [{row['low']:,.0f}, "
                        f"{row['high']:,.0f}], {row['CPU s']:.1f} CPU s", flush=True,
                    )  # fmt: skip
                    known[own] = row
                yield known[own]
