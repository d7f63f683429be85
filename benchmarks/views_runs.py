"""Parts of `benchmarks views` of their own: restarts, intervals of the experts' accuracies, scale.

Each returns rows for a table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
from scipy import optimize, special, stats

from benchmarks.speed import peak_memory_mb
from benchmarks.views_data import load
from benchmarks.views_experts import simulate_experts
from benchmarks.views_scores import fitted
from consilience.data import Constraints
from consilience.evaluation.partitions import contingency, score
from consilience.models.expert_views import MODEL, PAPER_PRIORS, Priors, simulate
from consilience.models.expert_views.cavi import CAVI, WARM_UP_STEPS
from consilience.models.expert_views.updates import sweep

RESTARTS = (
    ("three-clusters", "group", 300), ("three-clusters", "all", 300), ("three-clusters", "own", 60),
    ("three-clusters", "own", 25), ("k-views", "own", 300),
)  # fmt: skip
"""Data, protocol, and pairs of either kind of an expert."""

_LEARNING_ROUNDS = 4

_OWN: Any = Priors()

_ASCENT = "coordinate ascent"

_CHAINS = {"chains": 2, "warmup": 500, "draws": 500}

_Intervals = tuple[np.ndarray, Callable[[float], Any]]
"""Means of all accuracies, and what returns bounds for a level."""


def restarts(number: int = 40) -> Iterator[dict[str, Any]]:
    """Yield for each setting and each warm-up how many restarts come near the best bound, and what finding it costs.

    The expected CPU seconds are those of one restart, without compilation, over the share of restarts within 1 nat.
    """
    for name, protocol, pairs in RESTARTS:
        known = load(name)
        data, experts = simulate_experts(
            known.label, known.feature, protocol=protocol, num_together=pairs, num_apart=pairs
        )
        for _ in range(2):  # the first one compiles
            fit, seconds = fitted(data, max(known.clusters), restarts=number)
        bound = np.asarray(fit.posterior.restart_bound, float)
        group = np.asarray(fit.posterior.restart_view_probability).argmax(axis=2)
        right = score(contingency(group, experts.view_of_expert[None]), "ari") == 1
        tied = np.arange(number) < number // 2
        for warm_up, own in (("tied", tied), ("pairs", ~tied), ("both", tied | ~tied)):
            near = float((bound[own] > bound.max() - 1).mean())
            yield {
                "data": name, "protocol": protocol, "pairs": 2 * pairs, "warm-up": warm_up, "restarts": int(own.sum()),
                "best bound": float(bound[own].max()), "median": float(np.median(bound[own])), "within 1 nat": near,
                "within 10": float((bound[own] > bound.max() - 10).mean()), "grouping right": float(right[own].mean()),
                "CPU s a restart": seconds / number,
                "expected s": seconds / number / near if near else float("nan"),
            }  # fmt: skip


# Intervals ------------------------------------------------------------------------------------------------------------


def coverage(seeds: int, numbers: tuple[int, ...] = (300, 60, 25)) -> Iterator[dict[str, Any]]:
    """Yield how often intervals hold the accuracies, for each number of pairs of either kind.

    Of accuracies that are given, by coordinate ascent under the prior of `Priors`, the paper's, and one that is
    learned: the Beta distribution that makes the answers of all experts most probable, given who says what of pairs as
    the fit before has it; a handful of fits in turn. Of accuracies that are drawn from the prior of `Priors`, with the
    same views, and of data of which everything is drawn from the prior: under that prior. And by Gibbs sampling.
    """
    for number in numbers:
        rows: dict[tuple[str, str, str], list[dict[str, float]]] = {}
        for seed in range(seeds):
            for *setting, covered in _fits_of_accuracies(seed, number):
                rows.setdefault(tuple(setting), []).append(covered)
            # Every data set has programs of its own, and the memory for machine code is not without end.
            jax.clear_caches()
            print(f"{2 * number} pairs an expert, set {seed}", flush=True)
        for (drawn, prior, method), found in rows.items():
            means = {key: float(np.mean([row[key] for row in found])) for key in found[0]}
            yield {
                "pairs": 2 * number, "drawn": drawn, "prior": prior, "method": method, "intervals": 20 * seeds, **means,
            }  # fmt: skip


def _fits_of_accuracies(seed: int, number: int) -> Iterator[tuple[str, str, str, dict[str, float]]]:
    """Yield what was drawn, the prior, the method, and what `_covered` returns."""
    given = _judged(seed, number)
    paper, _ = fitted(given[0], 3, priors=PAPER_PRIORS)
    yield "answers", "Beta(10, 1), the paper's", _ASCENT, _covered(_factor_intervals(paper), given[1])
    learned = _with_learned_priors(paper, given[0])
    yield "answers", "learned", _ASCENT, _covered(_factor_intervals(learned), given[1])
    for drawn, (data, truth) in (
        ("answers", given),
        ("accuracies and answers", _judged(seed, number, *_drawn_accuracies(seed))),
        ("everything", _drawn_from_the_prior(seed, number)),
    ):
        fit, _ = fitted(data, 3)
        yield drawn, "default", _ASCENT, _covered(_factor_intervals(fit), truth)
        fit, _ = fitted(data, 3, method="gibbs", **_CHAINS)
        yield drawn, "default", "Gibbs sampling", _covered(_drawn_intervals(fit), truth)


def _judged(seed: int, number: int, sensitivity: Any = None, specificity: Any = None) -> tuple[Constraints, np.ndarray]:
    """Return answers, and sensitivities and specificities of all experts."""
    known = load("three-clusters", seed)
    view = None if sensitivity is None else np.repeat([0, 1], len(sensitivity) // 2).tolist()
    data, experts = simulate_experts(
        known.label, known.feature, protocol="own", num_together=number, num_apart=number, seed=seed,
        view_of_expert=view, sensitivity=sensitivity, specificity=specificity,
    )  # fmt: skip
    return data, np.concatenate([experts.sensitivity, experts.specificity])


def _drawn_accuracies(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return accuracies of ten experts, drawn from the prior of a fit."""
    random = np.random.default_rng(seed)
    sensitivity, specificity = (random.beta(prior.a, prior.b, 10) for prior in (_OWN.sensitivity, _OWN.specificity))
    return sensitivity, specificity


def _drawn_from_the_prior(seed: int, number: int) -> tuple[Constraints, np.ndarray]:
    """Return answers of ten experts of whom, and of views and clusters, everything is drawn, and their accuracies."""
    data, values = simulate(
        jax.random.key(seed), num_items=600, num_experts=10, num_pairs=2 * number, num_features=6, clusters=3
    )
    return data, np.concatenate([values["sensitivity"], values["specificity"]])


def _priors(sensitivity: Any, specificity: Any) -> Priors:
    return Priors(sensitivity=dist.Beta(*sensitivity), specificity=dist.Beta(*specificity))


def _covered(intervals: _Intervals, truth: np.ndarray) -> dict[str, float]:
    mean, interval_at = intervals
    held = {}
    for level in (0.9, 0.95):
        low, high = interval_at(level)
        held[f"{level:.0%} hold"] = float(((low <= truth) & (truth <= high)).mean())
    low, high = interval_at(0.9)
    return {**held, "90% width": float((high - low).mean()), "bias": float((mean - truth).mean())}


def _factor_intervals(fit: Any) -> _Intervals:
    factors = stats.beta(*_beta_parameters(fit).T)
    return factors.mean(), factors.interval


def _drawn_intervals(fit: Any) -> _Intervals:
    samples = fit.samples()
    draws = np.concatenate([samples[site] for site in ("sensitivity", "specificity")], axis=2).reshape(-1, 20)
    return draws.mean(axis=0), lambda level: np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)


def _beta_parameters(fit: Any) -> np.ndarray:
    return np.concatenate([np.asarray(part, float) for part in (fit.posterior.sensitivity, fit.posterior.specificity)])


def _with_learned_priors(fit: Any, data: Constraints) -> Any:
    prior = np.array([[10.0, 1.0], [10.0, 1.0]])
    for _ in range(_LEARNING_ROUNDS):
        counts = _beta_parameters(fit).reshape(2, -1, 2) - prior[:, None]
        prior = np.array([_most_probable_beta(np.maximum(of_site, 0)) for of_site in counts])
        fit, _ = fitted(data, 3, priors=_priors(*prior.tolist()))
    return fit


def _most_probable_beta(counts: np.ndarray) -> np.ndarray:
    """Return (a, b) under which counts ``(expert, 2)`` of right and wrong answers are most probable."""

    def loss(log_prior: np.ndarray) -> float:
        a, b = np.exp(log_prior)
        return -float((special.betaln(a + counts[:, 0], b + counts[:, 1]) - special.betaln(a, b)).sum())

    bounds = [(np.log(0.2), np.log(200.0))] * 2
    return np.exp(optimize.minimize(loss, np.log([4.0, 1.0]), method="L-BFGS-B", bounds=bounds).x)


# Scale ----------------------------------------------------------------------------------------------------------------


_SIZES = (1_000, 3_000, 10_000)
"""Pairs that each expert judges."""

_SWEEPS = 40


def scale(
    restarts: Sequence[int], sizes: Sequence[int] = _SIZES, num_items: int = 100_000, num_experts: int = 100
) -> Iterator[dict[str, Any]]:
    """Yield seconds and memory of fits of many items; the peak is that of all rows so far.

    Several restarts are made at the largest size only. One restart has the slower warm-up of the two.
    """
    runs = [(num_pairs, number) for number in restarts for num_pairs in (sizes if number == 1 else sizes[-1:])]
    for num_pairs, number in runs:
        data, _ = simulate(
            jax.random.key(0), num_items=num_items, num_experts=num_experts, num_pairs=num_pairs, num_features=20,
            clusters=5, views=10,
        )  # fmt: skip
        with jax.enable_x64(False):
            began = time.perf_counter()
            # What does not converge within so few sweeps is no news here.
            fit, cpu = fitted(data, 5, views=10, restarts=number, max_steps=WARM_UP_STEPS + _SWEEPS)
            wall = time.perf_counter() - began
            sweep_seconds = _seconds_of_a_sweep(data, number)
        yield {
            "items": num_items, "answers": data.num_constraints, "experts": num_experts, "restarts": number,
            "wall s": wall, "CPU s": cpu, "a sweep, wall s": sweep_seconds, "bound rose by": float(np.ptp(fit.elbo)),
            "peak memory, GiB": peak_memory_mb() * 1e6 / 2**30,
        }  # fmt: skip
        print(f"{data.num_constraints:,} answers, {number} restarts: {wall:.0f} s", flush=True)


def _seconds_of_a_sweep(data: Constraints, number: int) -> float:
    chosen = {"clusters": 5, "views": 10, "restarts": number}
    problem = jax.device_put(CAVI.prepare(MODEL.resolve(data, None, chosen)))
    q = jax.jit(CAVI.start)(jax.random.key(0), problem).q
    step = jax.jit(lambda q, problem: sweep(q, problem)[0])
    seconds = []
    for _ in range(3):  # the first one compiles
        began = time.perf_counter()
        q = jax.block_until_ready(step(q, problem))
        seconds.append(time.perf_counter() - began)
    return min(seconds[1:])

