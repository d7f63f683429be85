"""The Gibbs driver: any member's hand-written sampler, all chains at once, in chunks of sweeps.

A member states its sampler as a `consilience.models.interface.Gibbs`: pure functions of one chain. Here they become two
compiled programs, kept per sampler, so that a second fit whose problem has equal shapes compiles nothing. A sampler of
plain NumPy functions is called on the host, chain by chain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Key
from consilience.inference.chain_devices import ALL, CHAINS, STEPS, chain_mesh, on_chains, put
from consilience.inference.checkpoints import Checkpoint
from consilience.inference.compilation import RUN_ONCE, quick_options
from consilience.inference.generic import DrawStore, GenericRun
from consilience.inference.loop import Progress, run_chunks, scan_steps, strongly_typed
from consilience.models.interface import Gibbs
from consilience.models.keys import any_key, split_key

# Numbers that the draws of one chunk may hold on the device: 2^24 in float32 are 64 MiB.
_CHUNK_NUMBERS = 1 << 24
_MOST_STEPS_PER_CHUNK = 200


def run_gibbs(
    sampler: Gibbs,
    problem: Any,
    *,
    key: Key,
    draws: int = 1000,
    chains: int = 4,
    warmup: int = 500,
    devices: int = 1,
    progress: Progress = None,
    time_limit: float | None = None,
    checkpoint: Checkpoint | None = None,
) -> GenericRun:
    """Draw from a posterior with a member's Gibbs sampler.

    Parameters
    ----------
    sampler : the member's functions.
    problem : what ``sampler.prepare`` returned.
    key : random key. Equal keys give equal bits, however the run is cut into chunks.
    draws, chains, warmup : draws kept per chain, chains, and sweeps before the first draw.
    devices : among how many devices the chains are divided; of no meaning where the sampler runs on the host.
    progress, time_limit, checkpoint : see `run_chunks`.

    Returns
    -------
    `GenericRun` with the sites that the sampler keeps; it has no stats.

    Raises
    ------
    UnsupportedRequest : there are fewer devices, or the chains cannot be divided among them.
    """
    real = {} if sampler.lengths is None else sampler.lengths(problem)
    if sampler.host:
        state, advance, length, shapes = _on_host(sampler, problem, key, chains, warmup)
    else:
        state, advance, length, shapes = _compiled(sampler, problem, key, chains, devices)
    store = DrawStore(draws, skip=warmup)
    outcome = run_chunks(
        advance,
        state,
        num_steps=warmup + draws,
        chunk_size=length,
        finite=lambda output: output["finite"].all(axis=1),
        keep=lambda output: output["sites"],
        collect=store,
        progress=progress,
        time_limit=time_limit,
        checkpoint=checkpoint,
        skip=warmup,
        label="Gibbs",
    )
    kept = store.finished(outcome.steps, lambda: _empty(shapes, chains))
    kept |= {site: kept[site][:, :, :length] for site, length in real.items()}
    return GenericRun(kept, {}, outcome.result, outcome.steps, outcome.seconds, outcome.message)


def real_sites(sampler: Gibbs, state: Any, problem: Any) -> dict[str, Any]:
    """Return the sites of one chain in a state, without what pads them."""
    real = {} if sampler.lengths is None else sampler.lengths(problem)
    return {site: values[: real.get(site)] for site, values in sampler.sites(state, problem).items()}


def _steps_per_chunk(shapes: Any, chains: int) -> int:
    numbers = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(shapes)) * chains
    return int(np.clip(_CHUNK_NUMBERS // max(numbers, 1), 1, _MOST_STEPS_PER_CHUNK))


def _empty(shapes: Any, chains: int) -> Any:
    return jax.tree.map(lambda leaf: np.empty((0, chains, *leaf.shape), leaf.dtype), shapes)


Begun = tuple[Any, Callable[[Any, int, int], tuple[Any, Any]], int, Any]
"""State of all chains, ``advance(state, start, stop)``, the most steps of a chunk, shapes of the sites of one draw."""


def _compiled(sampler: Gibbs, problem: Any, key: Key, chains: int, devices: int) -> Begun:
    """Begin chains that run as one compiled program."""
    mesh = chain_mesh(devices, chains)
    problem = put(problem, mesh, ALL)
    shapes = jax.eval_shape(lambda problem: sampler.sites(sampler.start(any_key(), problem), problem), problem)
    length = _steps_per_chunk(shapes, chains)
    start, advance = _programs(sampler, length, mesh)
    keys, numbers = put((split_key(key, chains), np.arange(chains)), mesh, CHAINS)
    state = start(keys, numbers, problem)
    return state, lambda state, start, stop: advance(state, keys, problem, start, stop), length, shapes


@functools.lru_cache(maxsize=32)
def _programs(sampler: Gibbs, length: int, mesh: Any) -> tuple[Callable, Callable]:
    """Return the compiled ``start(keys, numbers, problem)`` and ``advance(state, keys, problem, start, stop)``."""

    def start_chain(key: Key, chain: Any, problem: Any) -> Any:
        own = () if sampler.starts is None else (chain,)
        return sampler.start(jax.random.fold_in(key, 0), problem, *own)

    def step_chain(state: Any, key: Key, problem: Any, index: Any) -> tuple[Any, dict]:
        state = sampler.sweep(jax.random.fold_in(key, index + 1), state, problem)
        sites = sampler.sites(state, problem)
        finite = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(sites)]).all()
        return state, {"sites": sites, "finite": finite}

    def start(keys: Key, numbers: Any, problem: Any) -> Any:
        return strongly_typed(jax.vmap(start_chain, (0, 0, None))(keys, numbers, problem))

    step = jax.jit(jax.vmap(step_chain, (0, 0, None, None)))  # so that it is traced once

    def advance(state: Any, keys: Key, problem: Any, start: Any, stop: Any) -> tuple[Any, dict]:
        return scan_steps(lambda state, index: step(state, keys, problem, index), state, start, stop, length=length)

    return (
        on_chains(start, mesh, (CHAINS, CHAINS, ALL), CHAINS, quick_options() | RUN_ONCE),
        on_chains(advance, mesh, (CHAINS, CHAINS, ALL, ALL, ALL), (CHAINS, STEPS)),
    )


def _on_host(sampler: Gibbs, problem: Any, key: Key, chains: int, warmup: int) -> Begun:
    """Begin chains whose sweeps are functions of NumPy arrays; the random numbers of a sweep depend on its number."""
    seed = np.asarray(jax.random.key_data(key)).tolist()

    def random(chain: int, index: int) -> np.random.Generator:
        return np.random.default_rng([*seed, chain, index])

    def begun(chain: int) -> Any:
        return sampler.start(random(chain, 0), problem, *() if sampler.starts is None else (chain,))

    def swept(chain: int, state: Any, index: int) -> Any:
        state = sampler.sweep(random(chain, index + 1), state, problem)
        warming = sampler.warmed is not None and index < warmup
        return sampler.warmed(state, problem, index + 1, warmup) if warming else state  # type: ignore[misc]

    state = [begun(chain) for chain in range(chains)]
    shapes = jax.tree.map(np.asarray, sampler.sites(state[0], problem))

    def advance(state: list[Any], start: int, stop: int) -> tuple[list[Any], dict]:
        rows = []
        for index in range(start, stop):
            state = [swept(chain, one, index) for chain, one in enumerate(state)]
            sites = [sampler.sites(one, problem) for one in state]
            finite = [all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(own)) for own in sites]
            rows.append({"sites": _stacked(sites), "finite": np.array(finite)})
        return state, _stacked(rows)

    return state, advance, _steps_per_chunk(shapes, chains), shapes


def _stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
