"""The Gibbs sampler of hit-miss: links, then true values and distortions, then how common values are and how distorted.

One sweep, with b and θ those of the sweep before:

1. the partition, with true values and distortions summed out, by `blocks` or by `split_merge`;
2. the true values of the clusters of two records and more, and the distortions of these records; what one record of a
   cluster shows says nothing of b, and stays summed out, which mixes several times as fast;
3. θ, b, and under the prior "entities" μ and m, from their conjugate conditionals.

Steps 2 and 3 are those of block-linkage; see `consilience.models.block_linkage.gibbs.hyperparameters`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Float, Key
from consilience.errors import TooLarge
from consilience.models.block_linkage.gibbs.hyperparameters import (
    draw_counts,
    draw_fields,
    draw_sizes,
    members_of_several,
    shares_within_fields,
)
from consilience.models.block_linkage.gibbs.problem import State
from consilience.models.block_linkage.model import Linkable
from consilience.models.hit_miss.blocks import draw_blocks
from consilience.models.hit_miss.marginal import Shown, log_marginals, shown
from consilience.models.hit_miss.model import prepared
from consilience.models.hit_miss.priors import equal_sizes, hyperpriors
from consilience.models.hit_miss.simulation import draw_prior_clusters, draw_values
from consilience.models.hit_miss.split_merge import draw_split_merge
from consilience.models.interface import Gibbs
from consilience.models.sites import Resolved

MOVES = {"blocks": draw_blocks, "split-merge": draw_split_merge}
"""How the partition is drawn."""

_MOST_VALUES = 100_000
_FIRST_DISTORTIONS = (0.02, 0.2)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Problem:
    """What a sweep reads. Many problems side by side have arrays with more axes.

    Parameters
    ----------
    data : the records and the components of their candidates.
    value_concentration : shape ``()``; of the Dirichlet priors of values.
    distortion : shape ``(field, 2)``; parameters of Beta priors.
    intensity : shape ``(2,)``; shape and rate of a Gamma prior.
    size_share : shape ``(size,)``; parameters of a Dirichlet prior.
    prior, moves : of the partition, and how it is drawn; static.
    """

    data: Linkable
    value_concentration: Array
    distortion: Array
    intensity: Array
    size_share: Array
    prior: str = dataclasses.field(metadata={"static": True})
    moves: str = dataclasses.field(metadata={"static": True})


def prepare(resolved: Resolved) -> Problem:
    """Find the components, and return them with the parameters of the priors.

    Raises
    ------
    NotConjugate : a prior is not a Beta, a Dirichlet or a Gamma distribution.
    UnsupportedRequest : there are so many different values that draws of their shares would fill the memory.
    """
    data, settings = resolved.data, resolved.settings
    if data.num_values > _MOST_VALUES:
        raise TooLarge(
            f"the fields have {data.num_values:,} different values, and how common each is would be drawn; at most "
            f"{_MOST_VALUES:,} are allowed: leave out fields that differ in nearly every record, or use block-linkage"
        )
    own, dtype = hyperpriors(resolved), jnp.result_type(float)
    return Problem(
        data=prepared(resolved).data, value_concentration=jnp.asarray(resolved.given.value_share, dtype),
        distortion=jnp.asarray(own.distortion, dtype), intensity=jnp.asarray(own.intensity, dtype),
        size_share=jnp.asarray(own.size_share, dtype), prior=settings.prior, moves=settings.moves,
    )  # fmt: skip


def start(key: Key, problem: Problem) -> State:
    """Return a chain with all records apart, the values as common as they are, and distortions at random."""
    key_values, key_distortion = jax.random.split(key)
    data = problem.data
    num_fields, dtype = data.num_fields, problem.distortion.dtype
    log_weight = jnp.log(jax.random.gamma(key_values, problem.value_concentration + data.number, dtype=dtype))
    share = shares_within_fields(log_weight, data.field, num_fields)
    low, high = _FIRST_DISTORTIONS
    distortion = jax.random.uniform(key_distortion, (num_fields,), dtype, low, high)
    alone = jnp.arange(data.num_records, dtype=jnp.int32)
    intensity, size_share = _first_sizes(problem)
    return State(alone, jnp.maximum(share, jnp.finfo(dtype).tiny), distortion, intensity, size_share)


def _first_sizes(problem: Problem) -> tuple[Array, Array]:
    """Return m and μ to start with; of priors that have none, those under which all clusters have the weight one."""
    dtype = problem.distortion.dtype
    if problem.prior != "entities":
        return jnp.ones((), dtype), jnp.asarray(equal_sizes(len(problem.size_share)), dtype)
    return jnp.asarray(problem.data.num_records, dtype), problem.size_share / problem.size_share.sum()


def sweep(key: Key, state: State, problem: Problem) -> State:
    """Draw the partition, what is true and distorted, and the parameters."""
    key_links, key_counts, key_fields, key_sizes = jax.random.split(key, 4)
    data = problem.data
    cluster = MOVES[problem.moves](key_links, state, data, prior=problem.prior)
    counts = draw_counts(
        key_counts, cluster, state.value_share, state.distortion, jnp.asarray(data.value).T, jnp.asarray(data.field),
        largest=len(problem.size_share),
    )  # fmt: skip
    value_share, distortion = draw_fields(
        key_fields, counts, jnp.asarray(data.field), problem.value_concentration, problem.distortion
    )
    state = State(cluster, value_share, distortion, state.intensity, state.size_share)
    if problem.prior != "entities":
        return state
    size_share, intensity = draw_sizes(key_sizes, cluster, problem.size_share, problem.intensity)
    return state._replace(size_share=size_share, intensity=intensity)


def sites(state: State, problem: Problem) -> dict[str, Array]:
    """Return the sites of the NumPyro model, and the partition."""
    found = {"distortion": state.distortion, "value_share": state.value_share, "cluster": state.cluster}
    if problem.prior != "entities":
        return found
    return found | {"size_share": state.size_share, "intensity": state.intensity}


def state_at(values: Mapping[str, Any], resolved: Resolved, problem: Problem) -> State:
    """Return the state at true values; without a partition all records are apart, until `redraw` draws one."""
    dtype = problem.distortion.dtype
    intensity, size_share = _first_sizes(problem)
    alone = jnp.arange(problem.data.num_records, dtype=jnp.int32)
    limits = jnp.finfo(dtype)
    return State(
        jnp.asarray(values.get("cluster", alone), jnp.int32),
        jnp.maximum(jnp.asarray(values["value_share"], dtype), limits.tiny),
        jnp.clip(jnp.asarray(values["distortion"], dtype), limits.tiny, 1 - limits.eps),
        jnp.asarray(values.get("intensity", intensity), dtype),
        jnp.asarray(values.get("size_share", size_share), dtype),
    )  # fmt: skip


def redraw(key: Key, state: State, problem: Problem) -> tuple[State, Problem]:
    """Return state and problem with a partition from its prior, and records drawn anew given it; what misses does so.

    The components stay as they are, and allow the same partitions.

    Raises
    ------
    UnsupportedRequest : there are more than eight records, of which not all partitions are listed.
    """
    key_cluster, key_values = jax.random.split(key)
    data = problem.data
    cluster = draw_prior_clusters(
        key_cluster, data, prior=problem.prior, size_share=state.size_share, intensity=state.intensity
    )
    value = draw_values(key_values, cluster, data.value, state.value_share, state.distortion, data.field)
    number = jnp.zeros_like(data.number).at[jnp.where(value >= 0, value, len(data.number))].add(1, mode="drop")
    return state._replace(cluster=cluster), dataclasses.replace(problem, data=data.replace(value=value, number=number))


def log_likelihood(state: State, problem: Problem) -> Float[Array, ""]:
    """Return the log probability of the records given the partition, true values and distortions summed out."""
    data = problem.data
    members = members_of_several(state.cluster, len(problem.size_share))
    value = jnp.where(members[..., None] >= 0, jnp.asarray(data.value).T[members], -1)
    records = shown(value, state.value_share, state.distortion, jnp.asarray(data.field))

    def of_cluster(value: Array, log_share: Array, log_ratio: Array) -> Array:
        own = Shown(value, log_share, log_ratio, records.log_distortion)
        return log_marginals(jnp.ones(len(value), bool), own)

    relative = jax.vmap(of_cluster)(records.value, records.log_share, records.log_ratio).sum()
    return relative + jnp.sum(data.number * jnp.log(state.value_share))


GIBBS = Gibbs(
    prepare=prepare, start=start, sweep=sweep, sites=sites, at=state_at, redraw=redraw,
    log_likelihood=log_likelihood,
)  # fmt: skip
"""The sampler, for the driver."""
