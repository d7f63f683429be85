"""The bound of the evidence, term by term: what updates must raise, and what the pruned one is compared with."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import digamma

from consilience.arrays import Array, Float
from consilience.models.expert_views.bound import entropy, of_items, of_weights
from consilience.models.expert_views.problem import Problem, Q
from consilience.models.expert_views.updates import agreement, log_accuracies, log_view_weights
from consilience.models.special import log_beta


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
    sensitivity = -divergence(q.sensitivity, problem.sensitivity[:, None]).sum((1, 2))
    specificity = -divergence(q.specificity, problem.specificity[:, None]).sum((1, 2))
    stick_prior = jnp.stack([jnp.ones_like(problem.concentration), problem.concentration])
    clusters, clusters_entropy = of_items(q, problem)
    return Bound(
        answers=(q.phi * answers).sum((1, 2)),
        views=(q.phi * log_view_weights(q.stick)[:, None]).sum((1, 2)),
        views_entropy=entropy(q.phi).sum((1, 2)),
        sensitivity=sensitivity,
        specificity=jnp.zeros_like(specificity) if settings.symmetric else specificity,
        sticks=-divergence(q.stick, stick_prior).sum(1),
        clusters=clusters.sum(1),
        clusters_entropy=clusters_entropy.sum(1),
        weights=of_weights(q, problem).sum(1),
    )


def divergence(beta: Array, prior: Array) -> Array:
    """Return the Kullback-Leibler divergence of Beta distributions."""
    values = digamma(jnp.concatenate([beta, beta.sum(-1, keepdims=True)], axis=-1))
    return ((beta - prior) * (values[..., :2] - values[..., 2:])).sum(-1) - log_beta(beta) + log_beta(prior)
