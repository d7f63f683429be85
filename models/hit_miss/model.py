"""Hit-miss as a NumPyro model: values and distortions are sampled, the linkage is summed out.

All partitions of up to eight records are summed. Of more, those that join candidate pairs only, component by component,
as in `consilience.models.block_linkage.model`, with which the candidates are shared. What couples components under the
paper's prior, 1 / d! in the number d of all links, is summed by the distribution of d.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax.scipy.special import gammaln, logsumexp
from scipy import special

from consilience.arrays import Array, Float, Int, Key
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.enumeration import Enumerated, links_of_partitions
from consilience.models.block_linkage.model import (
    Linkable,
    enumerate_linkable,
    log_density,
    sample_size_share,
    sample_source_share,
    sample_value_share,
    with_components,
)
from consilience.models.block_linkage.truth import drawn_partitions
from consilience.models.hit_miss.priors import equal_sizes
from consilience.models.sites import Resolved
from consilience.notes import Remedy


def prepared(resolved: Resolved) -> Resolved:
    """Return it with the components of candidates beside the records, which the density needs beforehand.

    Raises
    ------
    UnsupportedRequest : fields are to be compared by similarity.
    """
    similar = resolved.data.similar
    if similar is not None and np.any(similar):
        raise UnsupportedRequest(
            "hit-miss compares fields for equality; leave out {similar}, or link the records by block-linkage",
            Remedy("similar"),
        )
    return with_components(resolved)


def density(resolved: Resolved) -> None:
    """Sample how common values are and how often fields are distorted; the linkage is summed out.

    Sites are ``distortion`` (field,) and ``value_share`` (value,), which is sampled by ``value_log_weight``, logarithms
    of Gamma weights; where the prior of the partition is "entities" also ``size_share`` (size,), sampled by
    ``size_log_odds``, ``intensity``, and ``source_share`` (source,) where records of one source are apart.

    Parameters
    ----------
    resolved : of `prepared` records.
    """
    data, prior, largest = resolved.data, resolved.settings.prior, resolved.settings.largest
    with numpyro.plate("field", data.num_fields):
        distortion = numpyro.sample("distortion", resolved.prior("distortion"))
    value_share = sample_value_share(resolved.given.value_share, data)
    if prior == "entities":
        size_share = sample_size_share(resolved.prior("size_share"))
        intensity = numpyro.sample("intensity", resolved.prior("intensity"))
    else:
        size_share, intensity = jnp.asarray(equal_sizes(largest), value_share.dtype), jnp.ones((), value_share.dtype)
    source_share = sample_source_share(data) if prior == "entities" else None
    log_joint = log_records(data, value_share, distortion, size_share, intensity, source_share, prior=prior)
    numpyro.factor("records", log_joint)


def log_records(
    data: Linkable, value_share: Float[Array, " value"], distortion: Float[Array, " field"],
    size_share: Float[Array, " size"], intensity: Float[Array, ""],
    source_share: Float[Array, " source"] | None = None, *, prior: str,
) -> Float[Array, ""]:  # fmt: skip
    """Return the log probability of the records, summed over partitions, up to a constant; differentiable.

    Parameters
    ----------
    value_share, distortion : θ and b.
    size_share, intensity : μ and m; of priors that have none, those under which all clusters have the weight one.
    source_share : φ, under the prior "entities" where records of one source are apart.
    prior : of the partition.
    """
    if prior == "entities":
        return log_density(data, value_share, distortion, size_share, intensity, source_share=source_share)
    apart = jnp.sum(data.number * jnp.log(value_share))
    found = enumerate_linkable(data, value_share, distortion, size_share, intensity, "hit-miss")
    if prior == "partitions" or not found:
        return apart + sum(one.log_evidence.sum() for one in found)
    most_links = sum((size + 1) * number for size, number in enumerate(data.num_components))
    return apart + log_sum_over_links(link_log_weights(found), most_links)


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


def log_sum_over_links(log_weight: Float[Array, "component link"], most: int) -> Float[Array, ""]:
    """Return the log of the sum over all partitions, weighted by 1 / d! in their number of links; differentiable.

    Parameters
    ----------
    most : the most links that components may have together.
    """

    def add(before: Any, own: Any) -> tuple[Any, None]:
        moved = [jnp.pad(before, (links, 0), constant_values=-jnp.inf)[: most + 1] for links in range(len(own))]
        shifted = jnp.stack(moved) + own[:, None]
        # Rows that are minus infinity throughout have no gradient.
        some = (shifted > -jnp.inf).any(axis=0)
        return jnp.where(some, logsumexp(jnp.where(some, shifted, 0), axis=0), -jnp.inf), None

    total, _ = jax.lax.scan(add, jnp.full(most + 1, -jnp.inf, log_weight.dtype).at[0].set(0), log_weight)
    return logsumexp(total - gammaln(jnp.arange(1, most + 2, dtype=total.dtype)))


def drawn_clusters(
    data: Linkable, sites: Mapping[str, Any], *, key: Key, prior: str, largest: int
) -> Int[np.ndarray, "draw record"]:
    """Draw a partition given each draw of the hyperparameters.

    With m = λ and clusters that else weigh the same, d links have the weight λ^-d. Under the paper's prior partitions
    are drawn so, and kept with a probability in proportion to λ^d / d!: exactly, for any λ, and often where λ is near
    the number of links. So the next try takes one near those of the last.

    Parameters
    ----------
    data : the records with their components.
    sites : draws ``(draw, …)`` of the model's sites.
    key : of the draws.
    prior : of the partition.
    largest : most records of an entity.

    Returns
    -------
    Clusters, each the code of its first record.
    """
    number = len(sites["distortion"])
    if prior == "entities":
        return drawn_partitions(data, sites, likelihood="hit-miss", key=key)
    sites = {**sites, "size_share": np.broadcast_to(equal_sizes(largest), (number, largest))}
    if prior == "partitions":
        return drawn_partitions(data, {**sites, "intensity": np.ones(number)}, likelihood="hit-miss", key=key)
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    cluster, left = np.empty((number, data.num_records), np.int32), np.ones(number, bool)
    rate = np.full(number, max(data.num_records / np.e, 1.0))
    while left.any():
        key, own = jax.random.split(key)
        drawn = drawn_partitions(data, {**sites, "intensity": rate}, likelihood="hit-miss", key=own)
        links, most_probable = (drawn != np.arange(data.num_records)).sum(axis=1), np.floor(rate)
        log_kept = (links - most_probable) * np.log(rate)
        log_kept += special.gammaln(1 + most_probable) - special.gammaln(1 + links)
        kept = left & (np.log(random.random(number)) < log_kept)
        cluster[kept], left = drawn[kept], left & ~kept
        rate = np.maximum((rate + links) / 2, 1.0)
    return cluster
