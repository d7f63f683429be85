"""Moves between optima: two views that say the same become one, and views in the order that the sticks prefer.

A true view that is split over two is what restarts get wrong most often; merging repairs it. Views are not split on
purpose: restarts begin with more views than are used, and share them out in the warm-up. A view that loses its experts
is dropped by the pruned bound. Tempering the views of the experts in the warm-up found no better optimum in trials.
"""

from __future__ import annotations

import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float, Int
from consilience.models.expert_views.problem import OfItems, Problem, Q

# A view with fewer experts than this, in all, is empty.
_FEWEST = 1e-3


def similarity(eta: OfItems, problem: Problem) -> Float[Array, "restart view view"]:
    """Return the normalised mutual information (arithmetic) of the clusters of every two views."""
    own = jnp.where((jnp.arange(len(eta)) < problem.num_judged)[:, None, None, None], eta, 0)  # no padding
    table = jnp.einsum("nrgk,nrhl->rghkl", own, own) / problem.num_judged
    size = own.sum(0) / problem.num_judged
    expected = size[:, :, None, :, None] * size[:, None, :, None, :]
    shared = jnp.where(table > 0, table * jnp.log(table / jnp.where(table > 0, expected, 1)), 0).sum((-1, -2))
    entropy = -jnp.where(size > 0, size * jnp.log(jnp.where(size > 0, size, 1)), 0).sum(-1)
    mean = (entropy[:, :, None] + entropy[:, None]) / 2
    return shared / jnp.maximum(mean, jnp.finfo(eta.dtype).tiny)


def merged(q: Q, rank: Int[Array, " restart"], problem: Problem) -> tuple[Q, Bool[Array, " restart"]]:
    """Give the experts of one view to the view whose clusters are the most similar, the smaller to the larger.

    Parameters
    ----------
    rank : which pair of views to take: 0 is the most similar one.

    Returns
    -------
    q, and of which restarts there is such a pair.
    """
    size = q.phi.sum(1)
    number = size.shape[1]
    used = size >= _FEWEST
    possible = used[:, :, None] & used[:, None] & jnp.triu(jnp.ones((number, number), bool), 1)
    score = jnp.where(possible, similarity(q.eta, problem), -jnp.inf).reshape(len(size), -1)
    best = jnp.argsort(-score, axis=1)
    chosen = jnp.take_along_axis(best, jnp.minimum(rank, number**2 - 1)[:, None], axis=1)
    there = jnp.take_along_axis(score, chosen, axis=1)[:, 0] > -jnp.inf
    pair = jnp.concatenate([chosen // number, chosen % number], axis=1)
    larger = jnp.take_along_axis(size, pair, axis=1).argmax(1)
    to, out = (jnp.take_along_axis(pair, place[:, None], axis=1) for place in (larger, 1 - larger))
    into, outof = (jnp.arange(number) == view for view in (to, out))
    taken = jnp.where(outof[:, None], q.phi, 0).sum(-1, keepdims=True)
    phi = jnp.where(outof[:, None], 0, q.phi + jnp.where(into[:, None], taken, 0))
    return q._replace(phi=jnp.where(there[:, None, None], phi, q.phi)), there


def view_order(phi: Float[Array, "restart expert view"]) -> Int[Array, "restart view"]:
    """Return the views by falling number of experts; of equally many, the one with the first expert."""
    # Rounded: which of two views with five experts each has 4.9999 is chance.
    number = jnp.round(phi.sum(1), 3)
    own = phi >= phi.max(-1, keepdims=True)
    first = jnp.where(own.any(1), own.argmax(1), phi.shape[1])
    return jnp.lexsort((first, -number), axis=-1)


def ordered(q: Q) -> Q:
    """Return q with its views by falling number of experts. The sticks are to be updated afterwards."""
    order = view_order(q.phi)

    def sorted_by(values: Array, axis: int, restart_axis: int = 0) -> Array:
        shape = [1] * values.ndim
        shape[restart_axis], shape[axis] = order.shape
        return jnp.take_along_axis(values, order.reshape(shape), axis=axis)

    return q._replace(
        eta=sorted_by(q.eta, 2, 1), tilt=sorted_by(q.tilt, 2, 1),
        weight_mean=sorted_by(q.weight_mean, 1), weight_variance=sorted_by(q.weight_variance, 1),
        phi=sorted_by(q.phi, 2),
        sensitivity=sorted_by(q.sensitivity, 2) if q.sensitivity.shape[2] > 1 else q.sensitivity,
        specificity=sorted_by(q.specificity, 2) if q.specificity.shape[2] > 1 else q.specificity,
    )  # fmt: skip
