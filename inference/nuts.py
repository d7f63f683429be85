"""The No-U-Turn sampler for any NumPyro model, driven by our own loop.

NumPyro's ``MCMC`` compiles anew for every instance and runs all draws in one program. Here its kernel and its warm-up
adaptation (Hoffman & Gelman 2014; Stan's windows) are used through the functional interface `numpyro.infer.hmc.hmc`, in
two jitted programs that are kept per model: one finds a start, one advances all chains by a chunk of steps. Chains are
a ``vmap``. Warm-up and sampling are the same program; the step counter in NumPyro's state tells them apart.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.infer import init_to_uniform, init_to_value
from numpyro.infer.hmc import HMCState, hmc
from numpyro.infer.util import ParamInfo, constrain_fn, initialize_model, potential_energy

from consilience.arrays import Key
from consilience.inference.chain_devices import ALL, CHAINS, STEPS, chain_mesh, on_chains, put
from consilience.inference.checkpoints import Checkpoint
from consilience.inference.generic import DrawStore, GenericRun, check_sites, name_of, nonfinite_start
from consilience.inference.loop import Progress, run_chunks, scan_steps, strongly_typed


def run_nuts(
    model: Callable,
    data: Any,
    *,
    key: Key,
    draws: int = 1000,
    chains: int = 4,
    warmup: int = 1000,
    target_accept: float = 0.8,
    init_strategy: Callable = init_to_uniform,
    start_values: Mapping[str, Any] | None = None,
    chunk_size: int = 100,
    devices: int = 1,
    progress: Progress = None,
    time_limit: float | None = None,
    checkpoint: Checkpoint | None = None,
) -> GenericRun:
    """Draw from the posterior of a NumPyro model with NUTS.

    Parameters
    ----------
    model : NumPyro function ``model(data)``, hashable. Discrete latent variables must be summed out.
    data : PyTree of arrays, such as a `Resolved` or a data contract.
    key : random key. Equal keys give equal bits, however the run is cut into chunks.
    draws, chains, warmup : draws kept per chain, chains, and steps of adaptation before the first draw.
    target_accept : acceptance probability that the step size is adapted to.
    init_strategy : NumPyro's per-site strategy for the start (`numpyro.infer.init_to_uniform`, `init_to_median`, …).
    start_values : where the chains start, ``(chain, …)`` by site, inside the sites' supports; in the place of
        `init_strategy`, to which it leaves the sites that it does not name.
    chunk_size : the most steps per call of the compiled program; bounds the draws that are on the device at a time.
    devices : among how many devices the chains are divided.
    progress, time_limit, checkpoint : see `run_chunks`.

    Returns
    -------
    `GenericRun` with stats ``lp`` (log density in the unconstrained space), ``accept_prob``, ``num_steps`` (leapfrog
    steps) and ``diverging``.

    Raises
    ------
    UnsupportedRequest
        the model has a discrete latent site, or nothing to infer; or the chains cannot be divided among the devices.
    NonFinite
        no start with a finite density was found.

    References
    ----------
    Hoffman & Gelman (2014), The No-U-Turn Sampler, JMLR 15.
    """
    mesh = chain_mesh(devices, chains)
    init, advance = _programs(model, warmup, target_accept, init_strategy, chunk_size, mesh)
    data = put(data, mesh, ALL)
    state, start = init(*put((jax.random.split(key, chains), dict(start_values or {})), mesh, CHAINS), data)
    _check_start(model, data, start)
    store = DrawStore(draws, skip=warmup)
    outcome = run_chunks(
        lambda state, start, stop: advance(state, data, start, stop),
        state,
        num_steps=warmup + draws,
        chunk_size=chunk_size,
        finite=lambda output: np.isfinite(output["stats"]["lp"]).all(axis=1),
        collect=store,
        progress=progress,
        time_limit=time_limit,
        checkpoint=checkpoint,
        skip=warmup,
        label="NUTS",
    )
    kept = store.finished(outcome.steps, lambda: jax.eval_shape(advance, state, data, 0, 0)[1])
    return GenericRun(kept["samples"], kept["stats"], outcome.result, outcome.steps, outcome.seconds, outcome.message)


@functools.lru_cache(maxsize=32)
def _programs(
    bound: Callable, warmup: int, target_accept: float, init_strategy: Callable, length: int, mesh: Any = None
) -> tuple[Callable, Callable]:
    """Return the compiled ``init(keys, values, data)`` and ``advance(state, data, start, stop)`` of a model."""

    def model(data: Any) -> Any:
        return handlers.seed(bound, 0)(data)  # a fixed key, for models that ask for one; no latent site draws from it

    def kernel(key: Key, start: ParamInfo, data: Any) -> tuple[HMCState, Callable]:
        # NumPyro's kernel is a pair of closures that must be set up in every program that uses them; nothing of the
        # set-up but the adaptation schedule survives compilation.
        init_kernel, sample_kernel = hmc(functools.partial(potential_energy, model, (data,), {}), algo="NUTS")
        state = init_kernel(start, warmup, target_accept_prob=target_accept, trajectory_length=None, rng_key=key)
        return state, sample_kernel

    def init_chain(key: Key, data: Any, values: dict[str, Any]) -> tuple[HMCState, dict]:
        key_start, key_chain = jax.random.split(key)
        check_sites(handlers.trace(handlers.seed(bound, key_start)).get_trace(data), name_of(bound))
        strategy = init_to_value(values=values) if values else init_strategy
        start = initialize_model(key_start, bound, init_strategy=strategy, model_args=(data,)).param_info
        state, _ = kernel(key_chain, start, data)
        gradient = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(start.z_grad)])
        valid = jnp.isfinite(start.potential_energy) & gradient.all()
        values = constrain_fn(model, (data,), {}, start.z)
        return strongly_typed(state._replace(rng_key=key_chain)), {"valid": valid, "values": values}

    def step_chain(state: HMCState, data: Any, index: Any) -> tuple[HMCState, dict]:
        start = ParamInfo(state.z, state.potential_energy, state.z_grad)
        _, sample_kernel = kernel(state.rng_key, start, data)
        new = sample_kernel(state._replace(rng_key=jax.random.fold_in(state.rng_key, index)))
        samples = constrain_fn(model, (data,), {}, new.z, return_deterministic=True)
        stats = {
            "lp": -new.potential_energy,
            "accept_prob": new.accept_prob,
            "num_steps": new.num_steps,
            "diverging": new.diverging,
        }
        return new._replace(rng_key=state.rng_key), {"samples": samples, "stats": stats}

    def init(keys: Key, values: dict[str, Any], data: Any) -> tuple[HMCState, dict]:
        return jax.vmap(init_chain, (0, None, 0))(keys, data, values)

    def advance(state: HMCState, data: Any, start: Any, stop: Any) -> tuple[HMCState, dict]:
        step = jax.vmap(step_chain, (0, None, None))
        return scan_steps(lambda state, index: step(state, data, index), state, start, stop, length=length)

    return (
        on_chains(init, mesh, (CHAINS, CHAINS, ALL), CHAINS),
        on_chains(advance, mesh, (CHAINS, ALL, ALL, ALL), (CHAINS, STEPS)),
    )


def _check_start(bound: Callable, data: Any, start: Mapping[str, Any]) -> None:
    valid = np.asarray(start["valid"])
    if not valid.all():
        raise nonfinite_start(bound, data, jax.tree.map(lambda values: values[int(valid.argmin())], start["values"]))
