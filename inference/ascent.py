"""The driver of ascents: steps that raise an objective until it stands still, such as EM.

A member states its steps as a `consilience.models.interface.Ascent`. The objective is summed in blocks on the device,
and from those on the host in float64, because float32 cannot carry the sum over many items. Where the ascent allows it
the items are divided among devices, which exchange nothing but the sums that all of them need (see
`consilience.inference.sharding`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Key
from consilience.errors import UnsupportedRequest
from consilience.inference.checkpoints import Checkpoint
from consilience.inference.generic import GenericRun
from consilience.inference.loop import Progress, run_chunks, scan_steps, strongly_typed
from consilience.inference.sharding import AXIS, Mesh, item_mesh, on_each, place, total_over, whole
from consilience.models.interface import Ascent, Terms, unsharded

_CHUNK = 20

# So many terms of the objective are summed on the device: few enough for float32, and enough that what goes to the host
# is small.
_SUMMED = 64


def run_ascent(
    ascent: Ascent,
    problem: Any,
    *,
    key: Key,
    max_steps: int = 10_000,
    tolerance: float = 1e-7,
    devices: int = 1,
    progress: Progress = None,
    time_limit: float | None = None,
    checkpoint: Checkpoint | None = None,
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
    devices : among how many devices the items are divided.
    progress, time_limit, checkpoint : see `run_chunks`.

    Returns
    -------
    `GenericRun` with the arrays of ``ascent.sites`` as one chain of one draw, and the objective at every step as
    ``elbo``.

    Raises
    ------
    UnsupportedRequest : the ascent cannot be divided, or there are fewer devices.
    """
    label = ascent.name.upper()
    real = {} if ascent.lengths is None else ascent.lengths(problem)
    problem, lengths, mesh = _placed(ascent, problem, devices, label)
    start, advance, sites = _programs(ascent, mesh)
    objective: list[np.ndarray] = [np.empty(0)]

    def stands_still(output: dict[str, Any]) -> bool:
        if "idle" in output:
            return bool(output["idle"].any())
        values = _objective(output)
        scale = abs(values[-1]) + output["number"][0]
        # Of a last chunk that is shorter nothing can be said: a single step may gain little.
        return len(values) == _CHUNK and bool(values[-1] - values[0] <= tolerance * scale)

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
        shared=mesh is not None and jax.process_count() > 1,
        label=label,
    )
    found = whole(sites(outcome.state, problem), lengths, mesh)
    found |= {site: found[site][:length] for site, length in real.items()}
    estimate = {site: values[None, None] for site, values in found.items()}
    elbo = np.concatenate(objective)[: outcome.steps]
    elbo = elbo[np.isfinite(elbo)]  # without the idle steps
    return GenericRun(estimate, {}, outcome.result, len(elbo), outcome.seconds, outcome.message, elbo)


def _placed(ascent: Ascent, problem: Any, devices: int, label: str) -> tuple[Any, Any, Mesh | None]:
    """Put the problem on its devices; return it with the lengths of its parts and the mesh, None where it is whole."""
    if devices == 1:
        return jax.device_put(problem), {}, None
    if ascent.shard is None:
        raise UnsupportedRequest(f"this {label} runs on one device; leave out devices=")
    mesh = item_mesh(devices)
    shards = ascent.shard(problem, devices)
    return place(shards.problem, mesh), shards.lengths, mesh


def _objective(output: dict[str, Any]) -> np.ndarray:
    """Sum the terms of each step, float64, shape ``(step,)``; NaN at idle steps."""
    values = np.asarray(output["terms"], np.float64).sum(axis=1)
    return np.where(output["idle"], np.nan, values) if "idle" in output else values


@functools.lru_cache(maxsize=32)
def _programs(ascent: Ascent, mesh: Mesh | None) -> tuple[Callable, Callable, Callable]:
    """Return the compiled ``start(key, problem)``, ``advance(state, problem, start, stop)`` and ``sites``."""
    total = {} if ascent.shard is None else {"total": unsharded if mesh is None else total_over(AXIS)}

    def start(key: Key, problem: Any) -> Any:
        return strongly_typed(ascent.start(key, problem, **total))

    def advance(state: Any, problem: Any, start: Any, stop: Any) -> tuple[Any, Any]:
        return scan_steps(lambda state, index: _step(ascent, state, problem, total), state, start, stop, length=_CHUNK)

    def sites(state: Any, problem: Any) -> Any:
        return ascent.sites(state, problem, **total)

    if mesh is None:
        return jax.jit(start), jax.jit(advance), jax.jit(sites)
    return (
        on_each(start, mesh, divided=(False, True), results=True),
        on_each(advance, mesh, divided=(True, True, False, False), results=(True, False)),
        on_each(sites, mesh, divided=(True, True), results=True),
    )


def _step(ascent: Ascent, state: Any, problem: Any, total: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Take a step, and sum its terms in blocks; a state that has settled idles until its chunk is over."""
    settled = None if ascent.settled is None else ascent.settled(state, problem)
    moved, terms = ascent.step(state, problem, **total)
    terms = terms if isinstance(terms, Terms) else Terms(terms, jnp.zeros(0, terms.dtype))
    over_shards = total.get("total", unsharded)
    sums = jnp.concatenate([over_shards(_in_blocks(terms.items)), _in_blocks(terms.shared)])
    output = {"terms": sums, "number": over_shards(jnp.asarray(terms.items.size)) + terms.shared.size}
    if settled is None:
        return moved, output
    kept = jax.tree.map(lambda old, new: jnp.where(settled, old, new), state, moved)
    return kept, {**output, "idle": settled}


def _in_blocks(terms: Array) -> Array:
    flat = jnp.ravel(terms)
    padded = jnp.pad(flat, (0, -flat.size % _SUMMED))
    return padded.reshape(-1, _SUMMED).sum(axis=1)
