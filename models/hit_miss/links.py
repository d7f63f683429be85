r"""Numbers of links: what couples components under the paper's prior, which is 1 / d! in the number d of all links.

The partitions of a component are grouped by how many links they have. Then two draws are exact: that of each component
given the links of all others, one component after the other, where a step is no more than a few numbers; and that of
all components together, by the distribution of the sum, for draws that no chain came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from consilience.arrays import Array, Float, Int, Key
from consilience.models.block_linkage.enumeration import Enumerated, links_of_partitions


def link_log_weights(found: Sequence[Enumerated]) -> Float[Array, "component link"]:
    """Return the log weight of having 0, 1, … links for every component, those of one size after another.

    Parameters
    ----------
    found : of components of each size, with clusters that have the weight one.

    Returns
    -------
    Relative to all records apart; minus infinity for more links than records allow. The columns are those that the
    largest component needs.
    """
    sizes = [len(one.sizes) for one in found]
    rows = []
    for size, one in zip(sizes, found, strict=True):
        kinds = (links_of_partitions(size) == np.arange(max(sizes))[:, None]).astype(one.partition.dtype)
        weight = jnp.einsum("lp,pc->cl", kinds, one.partition, precision="highest")
        log_weight = jnp.where(weight > 0, jnp.log(jnp.where(weight > 0, weight, 1)), -jnp.inf)
        rows.append(log_weight + one.log_evidence[:, None])
    return jnp.concatenate(rows)


def draw_links(
    key: Key, links: Int[Array, " component"], log_weight: Float[Array, "component link"]
) -> Int[Array, " component"]:
    """Draw the number of links of one component after another, given those of all others.

    Parameters
    ----------
    links : of each component before.
    log_weight : as `link_log_weights` returns them.
    """
    noise = jax.random.gumbel(key, log_weight.shape, log_weight.dtype)
    added = jnp.arange(1, log_weight.shape[1])

    def one(total: Any, given: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        before, log_weight, noise = given
        others = total - before
        # The logarithm of others! / (others + links)!, whose difference of large numbers would not be exact.
        factor = -jnp.cumsum(jnp.log((others + added).astype(log_weight.dtype)))
        drawn = jnp.argmax(log_weight + noise + jnp.append(0, factor)).astype(links.dtype)
        return others + drawn, drawn

    return jax.lax.scan(one, links.sum(), (links, log_weight, noise))[1]


def _sums(log_weight: Float[Array, "component link"], most: int) -> tuple[Array, Array]:
    """Return the log weights of the sums of links, 0 to ``most``: of all components, and of those before each."""

    def add(before: Any, own: Any) -> tuple[Any, Any]:
        shifted = jnp.stack([_moved(before, links) + own[links] for links in range(len(own))])
        # Rows that are minus infinity throughout have no gradient.
        some = (shifted > -jnp.inf).any(axis=0)
        total = logsumexp(jnp.where(some, shifted, 0), axis=0)
        return jnp.where(some, total, -jnp.inf), before

    return jax.lax.scan(add, jnp.full(most + 1, -jnp.inf, log_weight.dtype).at[0].set(0), log_weight)


def _moved(values: Float[Array, " number"], places: int) -> Float[Array, " number"]:
    """Return values so many places further on."""
    return jnp.concatenate([jnp.full(places, -jnp.inf, values.dtype), values])[: len(values)]


def log_sum_over_links(log_weight: Float[Array, "component link"], most: int) -> Float[Array, ""]:
    """Return the log of the sum over all partitions, weighted by 1 / d! in their number of links; differentiable.

    Parameters
    ----------
    most : the most links that components may have together.
    """
    total, _ = _sums(log_weight, most)
    return logsumexp(total - gammaln(jnp.arange(1, most + 2, dtype=total.dtype)))


def draw_all_links(key: Key, log_weight: Float[Array, "component link"], most: int) -> Int[Array, " component"]:
    """Draw the numbers of links of all components together: first the sum, then what each has of it, from the last."""
    total, before = _sums(log_weight, most)
    key_sum, key_parts = jax.random.split(key)
    number = jax.random.categorical(key_sum, total - gammaln(jnp.arange(1, most + 2, dtype=total.dtype)))
    noise = jax.random.gumbel(key_parts, log_weight.shape, log_weight.dtype)
    own = jnp.arange(log_weight.shape[1])

    def one(left: Any, given: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        before, log_weight, noise = given
        rest = jnp.where(left >= own, before[jnp.maximum(left - own, 0)], -jnp.inf)
        drawn = jnp.argmax(log_weight + rest + noise)
        return left - drawn, drawn

    return jax.lax.scan(one, number, (before, log_weight, noise), reverse=True)[1]
