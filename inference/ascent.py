"""The driver of ascents: steps that raise an objective until it stands still, such as EM.

A member states its steps as a `consilience.models.interface.Ascent`. The objective is summed on the host in float64,
from whatever terms the member returns, because float32 cannot carry the sum over many items.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Key
from consilience.inference.checkpoints import Checkpoint
from consilience.inference.generic import GenericRun
from consilience.inference.loop import Progress, run_chunks, scan_steps, strongly_typed
from consilience.models.interface import Ascent

__all__ = ["run_ascent"]

_CHUNK = 20


def run_ascent(
    ascent: Ascent,
    problem: Any,
    *,
    key: Key,
    max_steps: int = 10_000,
    tolerance: float = 1e-7,
    progress: Progress = None,
    time_limit: float | None = None,
    checkpoint: Checkpoint | None = None,
    label: str = "EM",
) -> GenericRun:
    """Raise the objective until a chunk of steps gains next to nothing.

    Parameters
    ----------
    ascent : the member's functions.
    problem : what ``ascent.prepare`` returned.
    key : random key of the start.
    max_steps : the most steps.
    tolerance : the run has converged when 20 steps raise the objective by less than this, relative to its size plus
        the number of its terms: an objective may well have the maximum zero. Where the member has a rule of its own
        for the problem (`Ascent.settled`), that alone decides.
    progress, time_limit, checkpoint : see `run_chunks`.
    label : name of the method, for the progress bar and messages.

    Returns
    -------
    `GenericRun` with one chain of one draw, the estimate, and the objective at every step as ``elbo``.
    """
    problem = jax.device_put(problem)
    start, advance, sites = _programs(ascent)
    objective: list[np.ndarray] = [np.empty(0)]

    def stands_still(output: dict[str, Any]) -> bool:
        if "idle" in output:
            return bool(output["idle"].any())
        values = _objective(output)
        scale = abs(values[-1]) + output["terms"][0].size
        return len(values) > 1 and bool(values[-1] - values[0] <= tolerance * scale)

    outcome = run_chunks(
        lambda state, start, stop: advance(state, problem, start, stop),
        start(key, problem),
        num_steps=max_steps,
        chunk_size=_CHUNK,
        finite=lambda output: np.isfinite(_objective(output)) | output.get("idle", False),
        converged=stands_still,
        keep=_objective,
        collect=lambda values, start: objective.append(values),
        progress=progress,
        time_limit=time_limit,
        checkpoint=checkpoint,
        label=label,
    )
    estimate = {site: np.asarray(values)[None, None] for site, values in sites(outcome.state, problem).items()}
    elbo = np.concatenate(objective)[: outcome.steps]
    elbo = elbo[np.isfinite(elbo)]  # without the idle steps
    return GenericRun(estimate, {}, outcome.result, len(elbo), outcome.seconds, outcome.message, elbo)


def _objective(output: dict[str, Any]) -> np.ndarray:
    """Sum the terms of each step, float64, shape ``(step,)``; NaN at idle steps."""
    values = np.asarray(output["terms"], np.float64)
    values = values.sum(axis=tuple(range(1, values.ndim)))
    return np.where(output["idle"], np.nan, values) if "idle" in output else values


@functools.lru_cache(maxsize=32)
def _programs(ascent: Ascent) -> tuple[Callable, Callable, Callable]:
    """Return the compiled ``start(key, problem)``, ``advance(state, problem, start, stop)`` and ``sites``."""

    @jax.jit
    def start(key: Key, problem: Any) -> Any:
        return strongly_typed(ascent.start(key, problem))

    @jax.jit
    def advance(state: Any, problem: Any, start: Any, stop: Any) -> tuple[Any, Any]:
        return scan_steps(lambda state, index: _step(ascent, state, problem), state, start, stop, length=_CHUNK)

    return start, advance, jax.jit(ascent.sites)


def _step(ascent: Ascent, state: Any, problem: Any) -> tuple[Any, dict[str, Any]]:
    """Take a step, and return its terms; a state that has settled idles until its chunk is over."""
    settled = None if ascent.settled is None else ascent.settled(state, problem)
    moved, terms = ascent.step(state, problem)
    if settled is None:
        return moved, {"terms": terms}
    kept = jax.tree.map(lambda old, new: jnp.where(settled, old, new), state, moved)
    return kept, {"terms": terms, "idle": settled}
