"""Hit-miss as a NumPyro model: values and distortions are sampled, the linkage is summed out.

All partitions of up to eight records are summed. Of more, those that join candidate pairs only, component by component,
as in `consilience.models.block_linkage.model`, with which the candidates are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro

from consilience.arrays import Array, Float, Int, Key
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.gibbs.problem import State
from consilience.models.block_linkage.model import (
    Linkable,
    log_density,
    sample_size_share,
    sample_value_share,
    with_components,
)
from consilience.models.hit_miss.blocks import draw_blocks_anew, enumerated, most_links
from consilience.models.hit_miss.links import link_log_weights, log_sum_over_links
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
    ``size_log_odds``, and ``intensity``.

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
    numpyro.factor("records", log_records(data, value_share, distortion, size_share, intensity, prior=prior))


def log_records(
    data: Linkable, value_share: Float[Array, " value"], distortion: Float[Array, " field"],
    size_share: Float[Array, " size"], intensity: Float[Array, ""], *, prior: str,
) -> Float[Array, ""]:  # fmt: skip
    """Return the log probability of the records, summed over partitions, up to a constant; differentiable.

    Parameters
    ----------
    value_share, distortion : θ and b.
    size_share, intensity : μ and m; of priors that have none, those under which all clusters have the weight one.
    prior : of the partition.
    """
    if prior == "entities":
        return log_density(data, value_share, distortion, size_share, intensity)
    apart = jnp.sum(data.number * jnp.log(value_share))
    found = enumerated(data, value_share, distortion, size_share, intensity)
    if prior == "partitions" or not found:
        return apart + sum(one.log_evidence.sum() for one in found)
    return apart + log_sum_over_links(link_log_weights(found), most_links(data))


def drawn_clusters(
    data: Linkable, sites: Mapping[str, Any], *, key: Key, prior: str, largest: int
) -> Int[np.ndarray, "draw record"]:
    """Draw a partition given each draw of the hyperparameters.

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
    size_share = sites.get("size_share", np.broadcast_to(equal_sizes(largest), (number, largest)))
    intensity = sites.get("intensity", np.ones(number))
    given = [
        jnp.asarray(values, jnp.result_type(float))
        for values in (sites["value_share"], sites["distortion"], intensity, size_share)
    ]
    return np.asarray(_drawn(jax.random.split(key, number), given, data, prior))


@jax.jit(static_argnames="prior")
def _drawn(keys: Key, given: list[Array], data: Linkable, prior: str) -> Int[Array, "draw record"]:
    """Draw the partition of each draw of the hyperparameters."""
    alone = jnp.arange(data.num_records, dtype=jnp.int32)

    def one(draw: tuple[Key, list[Array]]) -> Array:
        key, hyperparameters = draw
        return draw_blocks_anew(key, State(alone, *hyperparameters), data, prior=prior)

    return jax.lax.map(one, (keys, given))
