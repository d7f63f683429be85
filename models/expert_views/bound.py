"""The pruned bound of the evidence, by which restarts are compared.

A view without experts can be integrated out: it costs nothing. Written out it would cost what its idle parameters
happen to cost, tens of nats, and that would decide among restarts. So the pruned bound leaves such views out.
"""

from __future__ import annotations

import jax.numpy as jnp

from consilience.arrays import Array, Float
from consilience.models.expert_views import updates
from consilience.models.expert_views.problem import Problem, Q
from consilience.models.special import log_beta

FEWEST = 1e-3
"""A view with fewer experts than this, in all, is empty, and left out."""

# Added to what has a logarithm taken, so that 0 ln 0 is 0 in any precision.
_TINY = 1e-30


def entropy(probability: Array) -> Array:
    """Return the terms of the entropy."""
    return -probability * jnp.log(probability + _TINY)


def of_items(q: Q, problem: Problem) -> tuple[Float[Array, "restart view"], Float[Array, "restart view"]]:
    """Return what the clusters of the items add to the bound of each view, and their entropy."""
    mean, variance = updates.logits(q.weight_mean, problem), updates.variances(q.weight_variance, problem)
    eta = updates.turned(q.eta)
    fit = updates.over_clusters(eta * mean) - updates.softmax_bound(mean, variance, q.tilt)
    return updates.over_items(fit), updates.over_items(updates.over_clusters(entropy(eta)))


def of_weights(q: Q, problem: Problem) -> Float[Array, "restart view"]:
    """Return what the weights add to the bound of each view: minus their divergence from the prior."""
    variance = q.weight_variance / problem.weight_scale**2
    return -((q.weight_mean / problem.weight_scale) ** 2 + variance - 1 - jnp.log(variance)).sum((-1, -2)) / 2


def pruned_bound(q: Q, counts: updates.Counts, problem: Problem) -> Float[Array, " restart"]:
    """Return the bound of q without experts in views that have next to none, with the best accuracies and sticks.

    Parameters
    ----------
    counts : the agreement at these cluster probabilities.
    """
    used = q.phi.sum(1) >= FEWEST
    phi = jnp.where(used[:, None], q.phi, 0)
    q = q._replace(phi=phi / phi.sum(-1, keepdims=True))
    q = updates.update_sticks(updates.update_accuracies(q, counts, problem), problem)
    # With the best accuracies and sticks, expected logs and divergences collapse to ratios of normalisers.
    cells = jnp.concatenate([q.accuracy.reshape(len(used), -1, 2), q.stick], axis=1)
    logs = log_beta(cells)
    num_cells = logs.shape[1] - q.stick.shape[1]
    gains = logs[:, :num_cells].reshape(q.accuracy.shape[:-1]) - problem.log_prior[:, None]
    stick_gains = logs[:, num_cells:] + jnp.log(problem.concentration)  # B(1, γ) = 1 / γ
    clusters, clusters_entropy = of_items(q, problem)
    of_view = jnp.where(used, clusters + clusters_entropy + of_weights(q, problem), 0)
    return gains.sum((1, 2, 3)) + stick_gains.sum(1) + entropy(q.phi).sum((1, 2)) + of_view.sum(1)
