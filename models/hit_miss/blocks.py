"""Blocks: the partition of every component is drawn anew, whatever it was, true values and distortions summed out.

All partitions of every component are enumerated, and one is drawn for each in proportion to its weight (largest of
weights with Gumbel noise), components of one size at a time. Under the paper's prior the numbers of links are drawn
first; see `links`.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Int, Key
from consilience.models.block_linkage.enumeration import Enumerated, first_places, links_of_partitions
from consilience.models.block_linkage.gibbs.problem import State
from consilience.models.block_linkage.model import Linkable, enumerate_linkable, members_by_size
from consilience.models.hit_miss.links import draw_all_links, draw_links, link_log_weights


def enumerated(
    data: Linkable, value_share: Array, distortion: Array, size_share: Array, intensity: Array
) -> list[Enumerated]:
    """Enumerate the components of each size under hit-miss; nothing of sizes that none has."""
    return enumerate_linkable(data, value_share, distortion, size_share, intensity, "hit-miss")


def most_links(data: Linkable) -> int:
    """Return how many links components may have together."""
    return sum((size + 1) * number for size, number in enumerate(data.num_components))


def draw_blocks(key: Key, state: State, data: Linkable, *, prior: str) -> Int[Array, " record"]:
    """Draw the partition given θ, b, μ and m; under "labels" given the links of the other components, in turn.

    Parameters
    ----------
    prior : of the partition, a name in `PARTITION_PRIORS`.

    Returns
    -------
    int32: clusters, each named by its first record.
    """
    found = enumerated(data, state.value_share, state.distortion, state.size_share, state.intensity)
    if not found:
        return state.cluster
    key_links, key_partitions = jax.random.split(key)
    links = None
    if prior == "labels":
        before = [(state.cluster[own] != own).sum(axis=1) for own in members_by_size(data) if len(own)]
        links = draw_links(key_links, jnp.concatenate(before).astype(jnp.int32), link_log_weights(found))
    return _drawn(key_partitions, found, data, links)


def draw_blocks_anew(key: Key, state: State, data: Linkable, *, prior: str) -> Int[Array, " record"]:
    """Draw the partition given θ, b, μ and m, whatever it was before; ``state.cluster`` is not looked at."""
    found = enumerated(data, state.value_share, state.distortion, state.size_share, state.intensity)
    alone = jnp.arange(data.num_records, dtype=jnp.int32)
    if not found:
        return alone
    key_links, key_partitions = jax.random.split(key)
    links = draw_all_links(key_links, link_log_weights(found), most_links(data)) if prior == "labels" else None
    return _drawn(key_partitions, found, data, links)


def _drawn(
    key: Key, found: Sequence[Enumerated], data: Linkable, links: Int[Array, " component"] | None
) -> Int[Array, " record"]:
    """Draw a partition of each component, among those with so many links where these are given."""
    cluster = jnp.arange(data.num_records, dtype=jnp.int32)
    members = [own for own in members_by_size(data) if len(own)]
    ends = np.cumsum([len(own) for own in members])
    for number, (own, one) in enumerate(zip(members, found, strict=True)):
        log_weight = jnp.log(one.partition)
        if links is not None:
            wanted = links[ends[number] - len(own) : ends[number]]
            kind = links_of_partitions(own.shape[1])
            log_weight = jnp.where(kind[:, None] == wanted, log_weight, -jnp.inf)
        chosen = jax.random.categorical(jax.random.fold_in(key, number), log_weight, axis=0)
        place = jnp.asarray(first_places(own.shape[1]))[chosen]
        cluster = cluster.at[own].set(jnp.take_along_axis(jnp.asarray(own, jnp.int32), place, axis=1))
    return cluster
