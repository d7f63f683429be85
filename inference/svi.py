"""Stochastic variational inference for any NumPyro model: a guide is fitted by gradient steps on noisy ELBO estimates.

The default guide is NumPyro's `AutoNormal`: independent normals in the unconstrained space, pushed through each site's
transform. Steps are Adam's (Kingma & Ba 2015). Noise keeps such steps from settling, so the step size falls in
stages, each held until the ELBO no longer rises, and the fit has converged when a smaller step no longer buys
anything (a simplification of Welandawe et al. 2022). In detail, with windows of `_WINDOW` steps:

1. the ELBO stands still when the mean of a window exceeds that of the window before it, at the same step size, by no
   more than two standard errors of the difference, or by no more than ``tolerance * |ELBO|``;
2. then a stage ends, and the step size is multiplied by `_DECAY`;
3. the fit has converged when `_IDLE_STAGES` stages in a row ended at an ELBO that does not exceed the best of those
   before by more than the same two bounds.

The tolerance is relative to the ELBO, which is a sum over observations: it is a tolerance per observation, and a data
set ten times as long asks for no more steps. What the last stage gained is about what is left to gain beyond it.

All of this is part of the compiled step, so that the outcome does not depend on where chunks begin.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpyro import handlers
from numpyro.distributions import biject_to, constraints
from numpyro.infer import Trace_ELBO, init_to_uniform
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import log_density, transform_fn

from consilience.arrays import Array, Key
from consilience.inference.checkpoints import Checkpoint
from consilience.inference.generic import DrawStore, GenericRun, check_sites, latent_values, name_of, nonfinite_start
from consilience.inference.loop import LoopOutcome, Progress, run_chunks, scan_steps, strongly_typed
from consilience.inference.posterior import k_hat
from consilience.inference.results import Result

_WINDOW = 250
_DECAY = 0.3
_IDLE_STAGES = 2
_CHUNK_OF_DRAWS = 100


class _Window(NamedTuple):
    """Running mean of the ELBO estimates of one window; ``squares`` is the sum of squared deviations."""

    mean: Array
    squares: Array


class _State(NamedTuple):
    """All that the next step needs.

    ``stood`` is the window in which the last stage that gained stood still; ``idle`` counts the stages since.
    """

    key: Key
    parameters: dict[str, Array]
    moments: Any
    step_size: Array
    window: _Window
    previous: _Window
    stood: _Window
    idle: Array


def run_svi(
    model: Callable,
    data: Any,
    *,
    key: Key,
    draws: int = 1000,
    max_steps: int = 20_000,
    tolerance: float = 1e-6,
    learning_rate: float = 0.05,
    guide: Callable = AutoNormal,
    init_strategy: Callable = init_to_uniform,
    progress: Progress = None,
    time_limit: float | None = None,
    checkpoint: Checkpoint | None = None,
) -> GenericRun:
    """Fit a guide to the posterior of a NumPyro model, and draw from the guide.

    Parameters
    ----------
    model : NumPyro function ``model(data)``, hashable. Discrete latent variables must be summed out.
    data : PyTree of arrays, such as a `Resolved` or a data contract.
    key : random key. Equal keys give equal bits.
    draws : draws from the fitted guide, in one chain.
    max_steps : the most gradient steps.
    tolerance : what counts as no gain of the ELBO, relative to the ELBO; see the top of this file.
    learning_rate : Adam's first step size, in the unconstrained space.
    guide : one of NumPyro's automatic guides, called as ``guide(model, init_loc_fn=...)``.
    init_strategy : NumPyro's per-site strategy for the start.
    progress, time_limit, checkpoint : see `run_chunks`. The draws from the guide are not stored: they are made again.

    Returns
    -------
    `GenericRun` with one chain of independent draws from the guide; stats ``lp`` (log joint density) and
    ``log_weight`` (log joint minus log guide); the ELBO estimate of every step; and the Pareto k-hat of the weights,
    which above 0.7 means that the guide is far from the posterior (Yao et al. 2018). After a non-finite step the
    guide is that of the last finite window.

    Raises
    ------
    UnsupportedRequest
        the model has a discrete latent site, or nothing to infer.
    NonFinite
        no start with a finite ELBO was found.

    References
    ----------
    Kucukelbir et al. (2017), Automatic Differentiation Variational Inference, JMLR 18. Welandawe et al. (2022), Robust,
    Automated, and Accurate Black-box Variational Inference. Yao et al. (2018), Yes, but Did It Work?, ICML.
    """
    init, advance, draw = _programs(model, guide, init_strategy, tolerance)
    data = jax.device_put(data)
    key_fit, key_draws = jax.random.split(key)
    state, start = init(key_fit, data, learning_rate)
    if not np.isfinite(start["elbo"]):
        raise nonfinite_start(model, data, start["values"])
    elbo: list[np.ndarray] = [np.empty(0)]
    outcome = run_chunks(
        lambda state, start, stop: advance(state, data, start, stop),
        state,
        num_steps=max_steps,
        chunk_size=_WINDOW,
        finite=lambda output: np.isfinite(output["elbo"]),
        converged=lambda output: bool(output["converged"].any()),
        keep=lambda output: output["elbo"].astype(np.float64),
        collect=lambda values, start: elbo.append(values),
        progress=progress,
        time_limit=time_limit,
        checkpoint=checkpoint,
        label="SVI",
    )
    kept, drawn = _draw(draw, outcome.state.parameters, data, key_draws, draws)
    stats = kept["stats"]
    interrupted = drawn.result is Result.interrupted
    return GenericRun(
        samples=kept["samples"],
        stats=stats,
        result=drawn.result if interrupted else outcome.result,
        steps=outcome.steps,
        seconds=outcome.seconds + drawn.seconds,
        message=drawn.message if interrupted else outcome.message,
        elbo=np.concatenate(elbo)[: outcome.steps],
        k_hat=k_hat(stats["log_weight"]),
    )


def _draw(
    draw: Callable, parameters: dict[str, Array], data: Any, key: Key, num_draws: int
) -> tuple[dict[str, Any], LoopOutcome]:
    """Draw from the fitted guide, in chunks, so that draws of large sites leave the device as they come."""
    store = DrawStore(num_draws)
    outcome = run_chunks(
        lambda key, start, stop: draw(key, parameters, data, start, stop),
        key,
        num_steps=num_draws,
        chunk_size=_CHUNK_OF_DRAWS,
        # A draw of density zero is a fact, not a fault.
        finite=lambda output: np.ones(len(output["stats"]["lp"]), bool),
        collect=store,
        progress=False,
        label="draws from the guide",
    )
    return store.finished(outcome.steps, lambda: jax.eval_shape(draw, key, parameters, data, 0, 0)[1]), outcome


@functools.lru_cache(maxsize=32)
def _programs(
    bound: Callable, make_guide: Callable, init_strategy: Callable, tolerance: float
) -> tuple[Callable, Callable, Callable]:
    """Return the compiled programs of a model: ``init``, ``advance`` and ``draw``."""
    objective = Trace_ELBO()
    # Adam must forget the larger gradients of the stage before within a window: with the usual 0.999 it takes four.
    adam = optax.scale_by_adam(b2=0.99)

    def fresh_guide(key: Key, data: Any) -> tuple[Callable, dict[str, Any], Callable]:
        # A guide remembers the trace it was first called with, so every program needs its own; only its first
        # parameters cost anything, and compilation drops them where they are not used.
        guide = make_guide(bound, init_loc_fn=init_strategy)
        trace = handlers.trace(handlers.seed(guide, key)).get_trace(data)
        sites = {name: site for name, site in trace.items() if site["type"] == "param"}
        transforms = {
            name: biject_to(site["kwargs"].get("constraint", constraints.real)) for name, site in sites.items()
        }
        first = {name: jnp.asarray(transforms[name].inv(site["value"])) for name, site in sites.items()}
        constrain: Callable = functools.partial(transform_fn, transforms)
        return guide, first, constrain

    @jax.jit
    def init(key: Key, data: Any, learning_rate: Any) -> tuple[_State, dict[str, Any]]:
        key_start, key_elbo, key_steps = jax.random.split(key, 3)
        check_sites(handlers.trace(handlers.seed(bound, key_start)).get_trace(data), name_of(bound))
        guide, parameters, constrain = fresh_guide(key_start, data)
        elbo = -objective.loss(key_elbo, constrain(parameters), bound, guide, data)
        values = latent_values(handlers.trace(handlers.seed(guide, key_elbo)).get_trace(data))
        zero = jnp.zeros_like(elbo)
        window, never = _Window(zero, zero), _Window(zero - jnp.inf, zero)
        step_size = jnp.asarray(learning_rate, elbo.dtype)
        state = _State(
            key_steps, parameters, adam.init(parameters), step_size, window, never, never, jnp.zeros((), jnp.int32)
        )
        return strongly_typed(state), {"elbo": elbo, "values": values}

    @jax.jit
    def advance(state: _State, data: Any, start: Any, stop: Any) -> tuple[_State, dict[str, Array]]:
        guide, _, constrain = fresh_guide(state.key, data)

        def loss(parameters: dict[str, Array], key: Key) -> Array:
            return objective.loss(key, constrain(parameters), bound, guide, data)

        def step(state: _State, index: Any) -> tuple[_State, dict[str, Array]]:
            value, gradient = jax.value_and_grad(loss)(state.parameters, jax.random.fold_in(state.key, index))
            direction, moments = adam.update(gradient, state.moments)
            parameters = jax.tree.map(lambda old, new: old - state.step_size * new, state.parameters, direction)
            state = state._replace(parameters=parameters, moments=moments)
            state, converged = _judge(state, -value, index, tolerance)
            return state, {"elbo": -value, "converged": converged}

        return scan_steps(step, state, start, stop, length=_WINDOW)

    @jax.jit
    def draw(
        key: Key, parameters: dict[str, Array], data: Any, start: Any, stop: Any
    ) -> tuple[Key, dict[str, dict[str, Array]]]:
        guide, _, constrain = fresh_guide(key, data)

        def one(key: Key, index: Any) -> tuple[Key, dict[str, dict[str, Array]]]:
            key_guide, key_model = jax.random.split(jax.random.fold_in(key, index))
            seeded = handlers.seed(guide, key_guide)
            log_guide, guide_trace = log_density(seeded, (data,), {}, constrain(parameters))
            replayed = handlers.replay(handlers.seed(bound, key_model), guide_trace)
            log_joint, trace = log_density(replayed, (data,), {}, {})
            stats = {"lp": log_joint, "log_weight": log_joint - log_guide}
            one_chain = jax.tree.map(
                lambda leaf: jnp.asarray(leaf)[None], {"samples": latent_values(trace), "stats": stats}
            )
            return key, one_chain

        return scan_steps(one, key, start, stop, length=_CHUNK_OF_DRAWS)

    return init, advance, draw


def _judge(state: _State, elbo: Array, index: Any, tolerance: float) -> tuple[_State, Array]:
    """Add one ELBO estimate to the window; at the window's end, lower the step size or call the fit converged."""
    place = index % _WINDOW
    window = _add(state.window, elbo, place)
    at_end = place == _WINDOW - 1
    still = at_end & ~_rises(state.previous, window, tolerance)
    gains = _rises(state.stood, window, tolerance)
    idle = jnp.where(still, jnp.where(gains, 0, state.idle + 1), state.idle)
    nothing = jax.tree.map(jnp.zeros_like, window)
    never = nothing._replace(mean=nothing.mean - jnp.inf)
    state = state._replace(
        step_size=jnp.where(still, _DECAY * state.step_size, state.step_size),
        window=_choose(at_end, nothing, window),
        previous=_choose(at_end, _choose(still, never, window), state.previous),
        stood=_choose(still & gains, window, state.stood),
        idle=idle,
    )
    return state, still & (idle >= _IDLE_STAGES)


def _add(window: _Window, value: Array, place: Any) -> _Window:
    """Welford's update: the sum of squares of a large ELBO would lose its variance to rounding."""
    deviation = value - window.mean
    mean = window.mean + deviation / (place + 1)
    return _Window(mean, window.squares + deviation * (value - mean))


def _rises(before: _Window, after: _Window, tolerance: float) -> Array:
    error = jnp.sqrt((before.squares + after.squares) / (_WINDOW * (_WINDOW - 1)))
    return after.mean - before.mean > jnp.maximum(2 * error, tolerance * jnp.abs(after.mean))


def _choose(condition: Array, true: Any, false: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), true, false)
