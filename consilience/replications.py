"""Replications of members whose items share parameters: thousands of small data sets, each a chain of its own.

All data sets have the shapes of one that the member simulates. Parameters are drawn from the prior of the NumPyro
model, data by the sampler's ``redraw``, and sweeps run under ``vmap``. Samplers on the host go through the data sets
one by one, from parameters that the simulation draws. `consilience.checking` puts them to its tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from consilience.arrays import Array, Key
from consilience.errors import UnsupportedRequest
from consilience.inference.generic import latent_values
from consilience.models.interface import Gibbs, Model

SIZES = {"num_items": 8, "num_annotators": 4, "num_labels": 3}
"""So small that ten thousands of them fit, and that the chains mix."""

# Scalars of each site that are looked at, spread over its cells.
_SCALARS = 3


class Skipped(Exception):
    """A test that a member does not allow; the text says why."""


class Chain(NamedTuple):
    """The state of the sampler and the problem that it reads; all arrays have the replication as first axis."""

    state: Any
    problem: Any


@dataclass(frozen=True, kw_only=True)
class Replications:
    """The functions of all replications at once, compiled where the sampler is; keys are split among them.

    Parameters
    ----------
    start : ``start(keys)`` -> chains at draws of the prior, with data of their own.
    redraw : ``redraw(keys, chains)`` -> chains with data drawn anew.
    sweep : ``sweep(keys, chains)`` -> chains after some sweeps.
    quantities : ``quantities(chains)`` -> dict of ``(replication,)``: scalars of the sites, and the log likelihood.
    posterior : ``posterior(keys, chains)`` -> dict of ``(replication, draw)``: the same of draws of the posterior by
        chains that start anew.
    """

    start: Callable[[Key], Chain]
    redraw: Callable[[Key, Chain], Chain]
    sweep: Callable[[Key, Chain], Chain]
    quantities: Callable[[Chain], dict[str, Array]]
    posterior: Callable[[Key, Chain], dict[str, Array]]


def replications_of(
    member: Model, priors: Any, settings: Mapping[str, Any], *, key: Key, sweeps: int, warmup: int, draws: int,
    thinning: int,
) -> Replications:  # fmt: skip
    """Prepare the replications of a member whose sampler can draw data anew.

    Parameters
    ----------
    key : of the data set that gives the shapes.
    sweeps : of one call of ``sweep``.
    warmup, draws, thinning : of ``posterior``: sweeps before the first draw, draws, and sweeps from one to the next.

    Raises
    ------
    UnsupportedRequest : the simulated rows have weights other than one, which data drawn anew do not follow.
    """
    gibbs: Any = member.engine("gibbs")
    simulation: Any = member.simulation
    sizes = {name: size for name, size in SIZES.items() if name in simulation.sizes}
    data, _ = member.simulate(key, priors, **sizes, **settings)
    if np.any(np.asarray(getattr(data, "weight", 1)) != 1):
        raise UnsupportedRequest(f"'{member.name}' simulates rows with weights; data are drawn anew of weight one only")
    resolved = member.resolve(data, priors, settings)
    if gibbs.host:
        template = gibbs.prepare(resolved)

        def begin(random: np.random.Generator) -> Chain:
            _, values = member.simulate(jax.random.key(int(random.integers(1 << 62))), priors, **sizes, **settings)
            return Chain(*gibbs.redraw(random, gibbs.at(values, resolved, template), template))

        return _on_host(gibbs, begin, sweeps=sweeps, warmup=warmup, draws=draws, thinning=thinning)
    template = jax.tree.map(jnp.asarray, gibbs.prepare(resolved))
    real = gibbs.lengths(template) if gibbs.lengths else {}
    density: Any = member.density

    def start(key: Key) -> Chain:
        key_values, key_data = jax.random.split(key)
        values = latent_values(handlers.trace(handlers.seed(density, key_values)).get_trace(resolved))
        return Chain(*gibbs.redraw(key_data, gibbs.at(values, resolved, template), template))

    def redraw(key: Key, chain: Chain) -> Chain:
        return Chain(*gibbs.redraw(key, chain.state, chain.problem))

    def sweep(key: Key, chain: Chain) -> Chain:
        return chain._replace(state=_swept(gibbs, key, chain, sweeps))

    def quantities(chain: Chain) -> dict[str, Array]:
        return _quantities(gibbs, chain.state, chain.problem, real)

    def posterior(key: Key, chain: Chain) -> dict[str, Array]:
        key_start, key_warmup, key_draws = jax.random.split(key, 3)
        begun = chain._replace(state=gibbs.start(key_start, chain.problem))
        warm = _swept(gibbs, key_warmup, begun, warmup)

        def one(state: Any, number: Array) -> tuple[Any, dict[str, Array]]:
            state = _swept(gibbs, jax.random.fold_in(key_draws, number), chain._replace(state=state), thinning)
            return state, _quantities(gibbs, state, chain.problem, real)

        return jax.lax.scan(one, warm, jnp.arange(draws))[1]

    functions = (start, redraw, sweep, quantities, posterior)
    return Replications(**{function.__name__: jax.jit(jax.vmap(function)) for function in functions})


def _swept(gibbs: Gibbs, key: Key, chain: Chain, number: int) -> Any:
    def body(step: Any, state: Any) -> Any:
        return gibbs.sweep(jax.random.fold_in(key, step), state, chain.problem)

    return jax.lax.fori_loop(0, number, body, chain.state)


def _on_host(
    gibbs: Any, begin: Callable[[np.random.Generator], Chain], *, sweeps: int, warmup: int, draws: int, thinning: int
) -> Replications:
    """Return the same of a sampler on the host, whose chains are a list.

    Parameters
    ----------
    begin : ``begin(random)`` -> a chain at draws of the prior, with data of its own.
    """

    def generators(keys: Key) -> list[np.random.Generator]:
        return [np.random.default_rng(seed) for seed in np.asarray(jax.random.key_data(keys)).tolist()]

    def swept(random: np.random.Generator, chain: Chain, number: int) -> Chain:
        for _ in range(number):
            chain = chain._replace(state=gibbs.sweep(random, chain.state, chain.problem))
        return chain

    def drawn(random: np.random.Generator, chain: Chain) -> dict[str, Array]:
        chain, found = swept(random, chain._replace(state=gibbs.start(random, chain.problem)), warmup), []
        for _ in range(draws):
            chain = swept(random, chain, thinning)
            found.append(_quantities(gibbs, *chain))
        return _stacked(found)

    def of_each(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda keys, *chains: [function(*each) for each in zip(generators(keys), *chains, strict=True)]

    posterior = of_each(drawn)
    return Replications(
        start=of_each(begin), redraw=of_each(lambda random, chain: Chain(*gibbs.redraw(random, *chain))),
        sweep=of_each(lambda random, chain: swept(random, chain, sweeps)),
        quantities=lambda chains: _stacked([_quantities(gibbs, *chain) for chain in chains]),
        posterior=lambda keys, chains: _stacked(posterior(keys, chains)),
    )  # fmt: skip


def _stacked(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def _quantities(gibbs: Any, state: Any, problem: Any, real: Mapping[str, int] = {}) -> dict[str, Array]:  # noqa: B006
    """Return a few scalars of each site, without what pads its first axis beyond so many, and the log likelihood."""
    found = {}
    for site, values in gibbs.sites(state, problem).items():
        values = values[: real[site]] if site in real else values
        for place in _places(values.shape):
            found[f"{site} {' '.join(map(str, place))}".rstrip()] = values[place]
    return found if gibbs.log_likelihood is None else found | {"log likelihood": gibbs.log_likelihood(state, problem)}


@functools.cache
def _places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return a few cells of an array, spread so that they differ in every index where they can."""
    if not shape:
        return [()]
    size = int(np.prod(shape))
    flat = np.unique(np.linspace(0, size - 1, _SCALARS).round().astype(int) if size > _SCALARS else np.arange(size))
    return [tuple(int(index) for index in place) for place in zip(*np.unravel_index(flat, shape), strict=True)]


def autocorrelation(draws: np.ndarray) -> np.ndarray:
    """Return the correlation of successive draws, over all replications together, ``(quantity,)``."""
    centred = draws - draws.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=(0, 1))
    covariance = (centred[:, 1:] * centred[:, :-1]).mean(axis=(0, 1))
    return np.divide(covariance, variance, out=np.zeros_like(variance), where=variance > 0)
