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
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.gibbs.problem import State
from consilience.models.block_linkage.model import (
    Linkable,
    linkable,
    log_density,
    log_shares,
    sample_size_share,
)
from consilience.models.block_linkage.priors import site_priors
from consilience.models.hit_miss.blocks import draw_blocks_anew, enumerated, most_links
from consilience.models.hit_miss.links import link_log_weights, log_sum_over_links
from consilience.models.hit_miss.priors import Priors, equal_sizes
from consilience.models.unbounded import LogGamma

__all__ = ["drawn_clusters", "log_records", "model", "prepared"]


def prepared(data: Records, *, restriction: str, threshold: float, largest: int, **options: Any) -> Linkable:
    """Return the records with the components of their candidates, which the NumPyro function needs beforehand.

    Raises
    ------
    UnsupportedRequest : fields are to be compared by similarity.
    """
    if getattr(data, "similar", None) is not None and np.any(data.similar):
        raise UnsupportedRequest(
            "hit-miss compares fields for equality; leave out similar=, or link the records by block-linkage"
        )
    return linkable(data, threshold=threshold, largest=largest, restriction=restriction, pairs=data.candidate)


def model(
    data: Records | Linkable, priors: Priors | None = None, *, prior: str = "labels", restriction: str = "none",
    threshold: float = 4.0, largest: int = 6, **options: Any,
) -> None:  # fmt: skip
    """Sample how common values are and how often fields are distorted; the linkage is summed out.

    Sites are ``distortion`` (field,) and ``value_share`` (value,), which is sampled by ``value_log_weight``, logarithms
    of Gamma weights; where the prior of the partition is "entities" also ``size_share`` (size,), sampled by
    ``size_log_odds``, and ``intensity``.

    Parameters
    ----------
    data : records, or, inside of a compiled program, what `prepared` made of them.
    priors : `Priors` by default.
    prior : of the partition, a name in `PARTITION_PRIORS`.
    restriction, threshold, largest : as block-linkage takes them.
    options : of the sampler, which have no part here.
    """
    priors = priors or Priors()
    if isinstance(data, Records):
        data = prepared(data, restriction=restriction, threshold=threshold, largest=largest)
    distortion_prior, size_prior, intensity_prior = site_priors(priors, data, largest)
    with numpyro.plate("field", data.num_fields):
        distortion = numpyro.sample("distortion", distortion_prior)
    concentration = jnp.full(data.field.shape, priors.value_share, jnp.result_type(float))
    log_weight = numpyro.sample("value_log_weight", LogGamma(concentration).to_event(1))
    value_share = numpyro.deterministic("value_share", jnp.exp(log_shares(log_weight, data)))
    if prior == "entities":
        size_share, intensity = sample_size_share(size_prior), numpyro.sample("intensity", intensity_prior)
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
    data: Linkable, sites: Mapping[str, np.ndarray], *, key: Key, prior: str, largest: int
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
