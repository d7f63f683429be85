"""Parts of `benchmarks views` of their own: restarts, intervals of the experts' accuracies, scale.

Each returns rows for a table.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
from scipy import optimize, special

from benchmarks.views_data import load
from benchmarks.views_scores import fitted
from consilience.data import Constraints
from consilience.evaluation import views
from consilience.evaluation.partitions import contingency, score
from consilience.models.expert_views.bound import pruned_bound
from consilience.models.expert_views.cavi import CAVI
from consilience.models.expert_views.priors import Priors
from consilience.models.expert_views.simulation import simulate, simulate_experts
from consilience.models.expert_views.updates import sweep

__all__ = ["coverage", "restarts", "scale"]

RESTARTS = (
    ("three-clusters", "group", 300), ("three-clusters", "all", 300), ("three-clusters", "own", 60),
    ("three-clusters", "own", 25), ("k-views", "own", 300),
)  # fmt: skip
"""Data, protocol, and pairs of either kind of an expert."""

_LEARNING_ROUNDS = 4


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
    """Yield how often 95 % intervals hold the accuracies, under three priors, for each number of pairs of either kind.

    Learned is the Beta distribution that makes the answers of all experts most probable, given who says what of pairs
    as the fit before has it; a handful of fits in turn.
    """
    for number in numbers:
        rows: dict[str, list[dict[str, float]]] = {"Beta(10, 1)": [], "Beta(2, 1)": [], "learned": []}
        for seed in range(seeds):
            known = load("three-clusters", seed)
            data, experts = simulate_experts(
                known.label, known.feature, protocol="own", num_together=number, num_apart=number, seed=seed
            )
            truth = np.concatenate([experts.sensitivity, experts.specificity])
            for name, priors in (("Beta(10, 1)", Priors()), ("Beta(2, 1)", _priors([2.0, 1.0], [2.0, 1.0]))):
                fit, _ = fitted(data, 3, priors=priors)
                rows[name].append(_covered(fit, truth))
                if name == "Beta(10, 1)":
                    first = fit
            rows["learned"].append(_covered(_with_learned_priors(first, data), truth))
        for name, found in rows.items():
            means = {key: float(np.mean([row[key] for row in found])) for key in found[0]}
            yield {"pairs": 2 * number, "prior": name, "intervals": 20 * seeds, **means}


def _priors(sensitivity: Any, specificity: Any) -> Priors:
    return Priors(sensitivity=dist.Beta(*sensitivity), specificity=dist.Beta(*specificity))


def _covered(fit: Any, truth: np.ndarray) -> dict[str, float]:
    parameters = _beta_parameters(fit)
    found = views.interval_coverage(*views.beta_interval(parameters), truth)
    bias = parameters[:, 0] / parameters.sum(axis=1) - truth
    return {
        "coverage": float(found.covered.mean()), "bias": float(bias.mean()), "mean width": float(found.width.mean())
    }


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


def scale(num_items: int = 100_000, num_pairs: int = 10_000, num_experts: int = 100) -> Iterator[dict[str, Any]]:
    """Yield seconds and memory of a sweep over many items, in single and double precision.

    Parameters
    ----------
    num_pairs : that each expert judges.
    """
    size = {"num_items": num_items, "num_experts": num_experts, "num_pairs": num_pairs}
    data, _ = simulate(jax.random.key(0), **size, num_features=20, clusters=5, views=10)
    for double in (False, True):
        with jax.enable_x64(double):
            began = time.perf_counter()
            problem = CAVI.prepare(data, Priors(), clusters=5, views=10, restarts=1)
            prepared = time.perf_counter() - began
            state = jax.jit(CAVI.start)(jax.random.key(0), problem)

            @jax.jit
            def step(q: Any, problem: Any) -> Any:
                q, found = sweep(q, problem)
                return q, pruned_bound(q, found, problem)

            wall, cpu, bounds, q = [], [], [], state.q
            for _ in range(4):  # the first one compiles
                began, began_cpu = time.perf_counter(), time.process_time()
                q, bound = jax.block_until_ready(step(q, problem))
                wall.append(time.perf_counter() - began)
                cpu.append(time.process_time() - began_cpu)
                bounds.append(float(bound[0]))
        yield {
            "items": num_items, "judged": int(problem.feature.shape[0]), "pairs": int(problem.first.shape[0]),
            "answers": data.num_constraints, "experts": num_experts, "precision": "double" if double else "single",
            "preparation, s": prepared, "first sweep, s": wall[0], "sweep, s": float(np.median(wall[1:])),
            "sweep, CPU s": float(np.median(cpu[1:])), "bound rose by": bounds[-1] - bounds[0],
            "peak memory, GiB": _peak_memory(),
        }  # fmt: skip


def _peak_memory() -> float:
    """Return the most memory that this process has had so far, in GiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30

