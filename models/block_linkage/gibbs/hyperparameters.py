"""Hyperparameters given who is together, compiled, as `hit-miss` draws them; `conjugate` draws those of block-linkage.

Of a field of a cluster that two records or more show, the true value and the distortions are drawn: "copy v" has the
weight θ_v (r_v^n_v - 1) for each value v that is there, with r_v = 1 + (1 - b) / (b θ_v) and n_v records that show it,
and "free" the weight 1; free, the true value is any, in the shares θ, and it may be one that is there. That is exact,
because the two ways to a value add up to θ_v r_v^n_v. Of a field that one record of a cluster shows all of this stays
summed out: its value counts once for θ and says nothing of b, which mixes several times as fast.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.models.random import log_gamma


class Counts(NamedTuple):
    """What true values and distortions add to the parameters of the priors.

    Parameters
    ----------
    value : shape ``(value,)``; how often each was drawn in the shares θ: as true value, by distortion, or as the only
        one of a cluster.
    distorted : shape ``(field, 2)``; how many records of the others are distorted, and how many are not.
    """

    value: Float[Array, " value"]
    distorted: Float[Array, "field 2"]


def log_copy_ratio(
    value_share: Float[Array, " value"], distortion: Float[Array, " field"], field: Int[Array, " value"]
) -> Float[Array, " value"]:
    """Return log r: how much more probable it is that a record shows the true value than if it told nothing of it."""
    own = distortion[field]
    return jnp.log1p((1 - own) / (own * value_share))


def copy_log_weight(
    log_share: Float[Array, "*#axes"], log_ratio: Float[Array, "*#axes"], number: Array
) -> Array:
    """Return log θ (r^n - 1), minus infinity where no record shows the value.

    Parameters
    ----------
    log_share, log_ratio : log θ and log r of values.
    number : how many records show each, of the same shape or one that broadcasts.
    """
    exponent = number * log_ratio
    return log_share + exponent + jnp.log1p(-jnp.exp(-exponent))


def members_of_several(cluster: Int[Array, " record"], largest: int) -> Int[Array, "cluster member"]:
    """Return the records of the clusters of two or more, -1 where there are none.

    Parameters
    ----------
    cluster : each named by its first record.
    largest : most records of a cluster.

    Returns
    -------
    int32, shape ``(record // 2, largest)``: no more clusters have several records.
    """
    number = len(cluster)
    record, name, place, size = _in_clusters(cluster)
    row = jnp.where(size[name] > 1, jnp.cumsum(size > 1)[name] - 1, number)
    return jnp.full((number // 2, largest), -1, jnp.int32).at[row, place].set(record, mode="drop")


def _in_clusters(cluster: Int[Array, " record"]) -> tuple[Array, Array, Array, Array]:
    """Return the records by cluster, the cluster of each of them and its place there; and the size of each cluster."""
    number = len(cluster)
    size = jnp.zeros(number, jnp.int32).at[cluster].add(1)
    record = jnp.argsort(cluster, stable=True).astype(jnp.int32)
    name = cluster[record]
    return record, name, jnp.arange(number) - (jnp.cumsum(size) - size)[name], size


def draw_counts(
    key: Key,
    cluster: Int[Array, " record"],
    value_share: Float[Array, " value"],
    distortion: Float[Array, " field"],
    value: Int[Array, "record field"],
    field: Int[Array, " value"],
    *,
    largest: int,
) -> Counts:
    """Draw true values and distortions, and count them.

    Parameters
    ----------
    cluster : each named by its first record.
    value_share, distortion : θ and b.
    value : codes into the values of all fields, -1 where missing.
    field : the field of each value, increasing.
    largest : most records of a cluster.
    """
    key_choice, key_free, key_miss = jax.random.split(key, 3)
    num_fields, num_values = len(distortion), len(value_share)
    members = members_of_several(cluster, largest)
    own = jnp.where((members >= 0)[..., None], value[members], -1)
    there = own >= 0
    known = there.sum(axis=1, keepdims=True) > 1

    # Logarithms and random numbers are made once for each value and each record: members have room for many more.
    of_several = jnp.arange(1, largest + 1, dtype=value_share.dtype)
    log_share, log_ratio = jnp.log(value_share), log_copy_ratio(value_share, distortion, field)
    # A value that several records show is a choice of each of them, with its part of the weight.
    part = copy_log_weight(log_share[:, None], log_ratio[:, None], of_several) - jnp.log(of_several)
    number = (own[:, :, None] == own[:, None]).sum(axis=2)
    weight = jnp.where(there, part[own, number - 1], -jnp.inf)
    weight = jnp.concatenate([weight, jnp.zeros_like(weight[:, :1])], axis=1)
    chosen = choose(key_choice, jnp.moveaxis(weight, 1, 0))
    free = _draw_values(key_free, value_share, field, (len(members), num_fields))
    true = jnp.take_along_axis(jnp.concatenate([own, free[:, None]], axis=1), chosen[:, None], axis=1)

    miss = distortion * value_share[value]
    by_chance = jax.random.uniform(key_miss, value.shape, miss.dtype) * (miss + 1 - distortion) < miss
    distorted = known & there & ((own != true) | by_chance[members])

    shown = value >= 0
    place = jnp.where(members >= 0, members, len(cluster))
    alone = jnp.ones(value.shape, bool).at[place].set(~known & there, mode="drop")
    one = jnp.zeros(num_values, value_share.dtype)
    for drawn, counted in ((value, alone & shown), (true, known), (own, distorted)):
        one = one.at[jnp.where(counted, drawn, num_values)].add(1, mode="drop")
    missed, hit = distorted.sum(axis=(0, 1)), (known & there & ~distorted).sum(axis=(0, 1))
    return Counts(one, jnp.stack([missed, hit], axis=1).astype(value_share.dtype))


def choose(key: Key, log_weight: Float[Array, " choice *axes"]) -> Int[Array, "*axes"]:
    """Draw a choice in proportion to its weight, with one uniform number for each."""
    highest = jnp.maximum(log_weight.max(axis=0), jnp.finfo(log_weight.dtype).min)     # of no cluster all are zero
    end = jnp.cumsum(jnp.exp(log_weight - highest), axis=0)
    uniform = jax.random.uniform(key, end.shape[1:], end.dtype)
    return jnp.minimum((uniform * end[-1] >= end).sum(axis=0), len(end) - 1)


def _draw_values(
    key: Key, value_share: Float[Array, " value"], field: Int[Array, " value"], shape: tuple[int, int]
) -> Int[Array, "cluster field"]:
    """Draw a value of each field, in the shares θ."""
    end = jnp.cumsum(value_share)
    of_field = jnp.arange(shape[1])
    first, last = jnp.searchsorted(field, of_field), jnp.searchsorted(field, of_field, side="right") - 1
    before = end[first] - value_share[first]
    uniform = before + jax.random.uniform(key, shape, end.dtype) * (end[last] - before)
    return jnp.clip(jnp.searchsorted(end, uniform, side="right"), first, last)


def draw_fields(
    key: Key,
    counts: Counts,
    field: Int[Array, " value"],
    value_concentration: Array,
    distortion: Float[Array, "field 2"],
) -> tuple[Float[Array, " value"], Float[Array, " field"]]:
    """Draw θ from its Dirichlet and b from its Beta distributions.

    Parameters
    ----------
    value_concentration : parameters of the Dirichlet priors, one for all values or one for each.
    distortion : parameters of the Beta priors.
    """
    log_gammas = log_gamma(key, _field_shapes(counts, value_concentration, distortion))
    return _fields(log_gammas, field, len(distortion))


def _field_shapes(counts: Counts, value_concentration: Array, distortion: Float[Array, "field 2"]) -> Array:
    return jnp.concatenate([value_concentration + counts.value, (distortion + counts.distorted).ravel()])


def _fields(
    log_gammas: Float[Array, " number"], field: Int[Array, " value"], num_fields: int
) -> tuple[Float[Array, " value"], Float[Array, " field"]]:
    """Return θ and b from logarithms of Gamma variables, as `_field_shapes` orders them."""
    of_value, of_field = log_gammas[: len(field)], log_gammas[len(field) :].reshape(num_fields, 2)
    value_share = shares_within_fields(of_value, field, num_fields)
    own = jax.nn.sigmoid(of_field[:, 0] - of_field[:, 1])
    # Neither may be zero, nor may all records be distorted: a copy must stay possible, and logarithms finite.
    limits = jnp.finfo(own.dtype)
    return jnp.maximum(value_share, limits.tiny), jnp.clip(own, limits.tiny, 1 - limits.eps)


def shares_within_fields(
    log_weight: Float[Array, " value"], field: Int[Array, " value"], num_fields: int
) -> Float[Array, " value"]:
    """Return the weights as shares of those of the same field; padding is of the field after the last one."""
    weight = jnp.exp(log_weight - jax.ops.segment_max(log_weight, field, num_fields + 1)[field])
    return weight / jax.ops.segment_sum(weight, field, num_fields + 1)[field]


def draw_sizes(
    key: Key, cluster: Int[Array, " record"], size_share: Float[Array, " size"], intensity: Float[Array, " 2"]
) -> tuple[Float[Array, " size"], Float[Array, ""]]:
    """Draw μ from its Dirichlet and m from its Gamma distribution.

    Parameters
    ----------
    cluster : each named by its first record.
    size_share : parameters of the Dirichlet prior.
    intensity : shape and rate of the Gamma prior.
    """
    return _sizes(log_gamma(key, _size_shapes(cluster, size_share, intensity)), intensity)


def _size_shapes(
    cluster: Int[Array, " record"], size_share: Float[Array, " size"], intensity: Float[Array, " 2"]
) -> Array:
    size = jnp.zeros(len(cluster), jnp.int32).at[cluster].add(1)
    by_size = (size[:, None] == np.arange(1, len(size_share) + 1)).sum(axis=0)
    return jnp.append(size_share + by_size, intensity[0] + by_size.sum())


def _sizes(
    log_gammas: Float[Array, " number"], intensity: Float[Array, " 2"]
) -> tuple[Float[Array, " size"], Float[Array, ""]]:
    """Return μ and m from logarithms of Gamma variables, as `_size_shapes` orders them."""
    return _shares(log_gammas[:-1]), jnp.exp(log_gammas[-1]) / (intensity[1] + 1)


def _shares(log_gammas: Float[Array, " number"]) -> Float[Array, " number"]:
    # Of what there is nothing the share may underflow; ratios of shares must stay numbers.
    return jnp.maximum(jax.nn.softmax(log_gammas), jnp.finfo(log_gammas.dtype).tiny)
