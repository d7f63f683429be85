"""The bound of the evidence, term by term, and the pruned one, by which restarts are compared.

A view without experts can be integrated out: it costs nothing. Written out it would cost what its idle parameters
happen to cost, tens of nats, and that would decide among restarts. So the pruned bound leaves such views out.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import digamma

from consilience.arrays import Array, Float
from consilience.models.expert_views.problem import Problem, Q
from consilience.models.expert_views.updates import (
    Agreement,
    agreement,
    by_cluster,
    log_accuracies,
    log_view_weights,
    logits,
    over_clusters,
    over_items,
    softmax_bound,
    update_accuracies,
    update_sticks,
    variances,
)
from consilience.models.special import log_beta

# A view with fewer experts than this, in all, is left out.
_FEWEST = 1e-3

# Added to what has a logarithm taken, so that 0 ln 0 is 0 in any precision.
_TINY = 1e-30


class Bound(NamedTuple):
    """Terms of the bound, shape ``(restart,)``; their sum is the bound.

    Parameters
    ----------
    answers : expected log likelihood.
    views, views_entropy : of the views of the experts.
    sensitivity, specificity, sticks : minus divergences from the priors.
    clusters, clusters_entropy : of the clusters of the items.
    weights : minus the divergence from the prior.
    """

    answers: Float[Array, " restart"]
    views: Float[Array, " restart"]
    views_entropy: Float[Array, " restart"]
    sensitivity: Float[Array, " restart"]
    specificity: Float[Array, " restart"]
    sticks: Float[Array, " restart"]
    clusters: Float[Array, " restart"]
    clusters_entropy: Float[Array, " restart"]
    weights: Float[Array, " restart"]


def bound(q: Q, problem: Problem) -> Bound:
    """Return the terms of the bound, of all views."""
    settings, found, logs = problem.settings, agreement(q.eta, problem), log_accuracies(q)
    said = problem.num_together[:, None], problem.num_apart[:, None]
    answers = found.together * logs.hit + found.apart * logs.miss
    answers += (said[0] - found.together) * logs.alarm + (said[1] - found.apart) * logs.rejection
    sensitivity = -_divergence(q.sensitivity, problem.sensitivity[:, None]).sum((1, 2))
    specificity = -_divergence(q.specificity, problem.specificity[:, None]).sum((1, 2))
    stick_prior = jnp.stack([jnp.ones_like(problem.concentration), problem.concentration])
    clusters, clusters_entropy = _of_items(q, problem)
    return Bound(
        answers=(q.phi * answers).sum((1, 2)),
        views=(q.phi * log_view_weights(q.stick)[:, None]).sum((1, 2)),
        views_entropy=_entropy(q.phi).sum((1, 2)),
        sensitivity=sensitivity,
        specificity=jnp.zeros_like(specificity) if settings.symmetric else specificity,
        sticks=-_divergence(q.stick, stick_prior).sum(1),
        clusters=clusters.sum(1),
        clusters_entropy=clusters_entropy.sum(1),
        weights=_of_weights(q, problem).sum(1),
    )


def _divergence(beta: Array, prior: Array) -> Array:
    """Return the Kullback-Leibler divergence of Beta distributions."""
    values = digamma(jnp.concatenate([beta, beta.sum(-1, keepdims=True)], axis=-1))
    return ((beta - prior) * (values[..., :2] - values[..., 2:])).sum(-1) - log_beta(beta) + log_beta(prior)


def _entropy(probability: Array) -> Array:
    return -probability * jnp.log(probability + _TINY)


def _of_items(q: Q, problem: Problem) -> tuple[Float[Array, "restart view"], Float[Array, "restart view"]]:
    mean, variance = logits(q.weight_mean, problem), variances(q.weight_variance, problem)
    eta = by_cluster(q.eta)
    fit = over_clusters(eta * mean) - softmax_bound(mean, variance, q.tilt)
    return over_items(fit), over_items(over_clusters(_entropy(eta)))


def _of_weights(q: Q, problem: Problem) -> Float[Array, "restart view"]:
    variance = q.weight_variance / problem.weight_scale**2
    return -((q.weight_mean / problem.weight_scale) ** 2 + variance - 1 - jnp.log(variance)).sum((-1, -2)) / 2


def pruned(q: Q, found: Agreement, problem: Problem) -> Q:
    """Return q without experts in views that have next to none, with the best accuracies and sticks given that."""
    used = q.phi.sum(1, keepdims=True) >= _FEWEST
    phi = jnp.where(used, q.phi, 0)
    q = q._replace(phi=phi / phi.sum(-1, keepdims=True))
    return update_sticks(update_accuracies(q, found, problem), problem)


def pruned_bound(q: Q, found: Agreement, problem: Problem) -> Float[Array, " restart"]:
    """Return the bound of q without idle views.

    Parameters
    ----------
    found : the agreement at these cluster probabilities.
    """
    q = pruned(q, found, problem)
    used = q.phi.sum(1) > 0
    # With the best accuracies and sticks, expected logs and divergences collapse to ratios of normalisers.
    accuracies = jnp.stack([q.sensitivity, q.specificity], axis=-2)
    symmetric = problem.settings.symmetric
    cells = jnp.concatenate([accuracies.reshape(len(used), -1, 2), q.stick], axis=1)
    logs = log_beta(cells)
    num_cells = logs.shape[1] - q.stick.shape[1]
    gains = logs[:, :num_cells].reshape(accuracies.shape[:-1]) - problem.log_prior[:, None]
    gains = gains[..., :1] if symmetric else gains
    stick_gains = logs[:, num_cells:] + jnp.log(problem.concentration)  # B(1, γ) = 1 / γ
    clusters, clusters_entropy = _of_items(q, problem)
    of_view = jnp.where(used, clusters + clusters_entropy + _of_weights(q, problem), 0)
    return gains.sum((1, 2, 3)) + stick_gains.sum(1) + _entropy(q.phi).sum((1, 2)) + of_view.sum(1)
