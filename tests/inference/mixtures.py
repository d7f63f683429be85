"""EM for the shares of a mixture whose components are known: a concave objective, a maximum that is known, slow steps.

The data are the mixture itself: place x of a line has the weight Σ π_k f_k(x) of the true shares, so that these are the
maximum. Components that overlap make EM slow.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from consilience.models.interface import Ascent, Shards, Terms, unsharded
from consilience.models.posterior import Estimate

SHARES = np.array([0.5, 0.3, 0.2, 0.0])
"""True shares; of the last component, which no place has, a step makes the share zero."""


class Problem(NamedTuple):
    """Weight ``(place,)`` and density ``(place, component)``; one row of a place that pads."""

    weight: Any
    density: Any


class State(NamedTuple):
    """Parameters by name, and the responsibilities ``(place, component)`` of the step before."""

    tree: dict[str, Any]
    q: Any


def problem(num_places=103, *, apart=0.7, size=1000.0):
    """Return the problem in JAX's default float type; the means of the components lie `apart`, their sd is one."""
    place = np.linspace(-5, 5, num_places)
    density = np.exp(-0.5 * (place[:, None] - apart * np.array([-1, 0, 1])) ** 2)
    density = np.concatenate([density, np.zeros((num_places, 1))], axis=1)
    weight = density @ (SHARES / np.maximum(density.sum(axis=0), 1e-300))
    density /= np.maximum(density.sum(axis=0), 1e-300)
    dtype = jnp.result_type(float)
    return Problem((size * weight).astype(dtype), density.astype(dtype))


def start(key, problem, total=unsharded):
    classes = problem.density.shape[1]
    return State({"share": jnp.full(classes, 1 / classes)}, jnp.zeros_like(problem.density))


def step(state, problem, total=unsharded):
    joint = problem.density * state.tree["share"]
    evidence = joint.sum(axis=1)
    q = joint / jnp.maximum(evidence, jnp.finfo(joint.dtype).tiny)[:, None]
    counts = total((problem.weight[:, None] * q).sum(axis=0))
    # A place that pads has the weight zero.
    terms = problem.weight * jnp.log(jnp.where(problem.weight > 0, evidence, 1.0))
    return State({"share": counts / counts.sum()}, q), Terms(terms, jnp.zeros(0, terms.dtype))


def sites(state, problem, total=unsharded):
    return {**state.tree, "q": state.q}


def shard(problem, number):
    lengths = np.full(number, len(problem.weight) // number)
    lengths[: len(problem.weight) % number] += 1
    ends = np.cumsum(lengths)

    def divided(values):
        parts = [values[end - length : end] for end, length in zip(ends, lengths, strict=True)]
        most = max(lengths)
        return np.stack([np.pad(part, [(0, most - len(part))] + [(0, 0)] * (part.ndim - 1)) for part in parts])

    return Shards(Problem(divided(problem.weight), divided(problem.density)), {"q": lengths})


def moved(before, after):
    return jnp.abs(after.q - before.q).max()


def coordinates(state):
    return {name: jnp.log(values) for name, values in state.tree.items()}


def at(coordinates, state):
    share = jnp.exp(coordinates["share"])
    return state._replace(tree={"share": share / share.sum()})


EM = Ascent(
    name="em", prepare=lambda resolved: resolved.data, start=start, step=step, sites=sites,
    finish=lambda values, resolved: Estimate(values), shard=shard, moved=moved, coordinates=coordinates, at=at,
)  # fmt: skip
