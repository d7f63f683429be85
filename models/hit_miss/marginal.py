r"""How likely the values of a set of records are when they describe one entity, for any set and without enumeration.

With true values and distortions summed out (Steorts, Hall and Fienberg 2014) a set C of records has in field f

.. math::

    m_f(C) = \prod_{i \in C} b_f \theta_{x_i} \; \Bigl[1 + \sum_{v \in C} \theta_v (r_v^{n_v} - 1)\Bigr],
    \qquad r_v = 1 + \frac{1 - b_f}{b_f \theta_v},

where :math:`n_v` of its records show v. A missing value is a factor of one. As everywhere in linkage, likelihoods are
relative to the same records apart: divided by how common their values are, so that one record has likelihood one.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import logsumexp

from consilience.arrays import Array, Bool, Float, Int
from consilience.models.block_linkage.gibbs.hyperparameters import copy_log_weight, log_copy_ratio


class Shown(NamedTuple):
    """What records show.

    Parameters
    ----------
    value : codes into the values of all fields, -1 where missing.
    log_share, log_ratio : log θ and log r of these values; of a missing one anything.
    log_distortion : log b.
    """

    value: Int[Array, "*records field"]
    log_share: Float[Array, "*records field"]
    log_ratio: Float[Array, "*records field"]
    log_distortion: Float[Array, " field"]


def shown(
    value: Int[Array, "*records field"],
    value_share: Float[Array, " value"],
    distortion: Float[Array, " field"],
    field: Int[Array, " value"],
) -> Shown:
    """Look up what `log_marginals` needs of values.

    Parameters
    ----------
    value : codes into the values of all fields, -1 where missing.
    value_share, distortion : θ and b.
    field : of each value.
    """
    log_ratio = log_copy_ratio(value_share, distortion, field)
    return Shown(value, jnp.log(value_share)[value], log_ratio[value], jnp.log(distortion))


def log_marginals(inside: Bool[Array, "*sets member"], records: Shown) -> Float[Array, "*sets"]:
    """Return the log likelihood of sets of some records, summed over fields, relative to the same records apart.

    Parameters
    ----------
    inside : which of the records are in each set.
    records : shape ``(member, field)``.
    """
    there = inside[..., None] & (records.value >= 0)
    same = records.value[:, None] == records.value[None]
    number = (there[..., None, :, :] & same).sum(axis=-2)
    share, ratio = (jnp.broadcast_to(one, number.shape) for one in (records.log_share, records.log_ratio))
    weight = copy_log_weight(share, ratio, number) - jnp.log(jnp.maximum(number, 1))
    # A value that several records show has a part of its weight at each of them; the last one is that of a free value.
    weight = jnp.where(there, weight, -jnp.inf)
    total = logsumexp(jnp.concatenate([weight, jnp.zeros_like(weight[..., :1, :])], axis=-2), axis=-2)
    return (total + there.sum(axis=-2) * records.log_distortion).sum(axis=-1)
