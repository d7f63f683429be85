"""The bound of the evidence, term by term: what updates must raise, and what the pruned one is compared with."""

from typing import NamedTuple

import jax.numpy as jnp

from consilience.arrays import Array, Float
from consilience.models.expert_views.bound import entropy, of_items, of_weights
from consilience.models.expert_views.likelihood import log_likelihood
from consilience.models.expert_views.problem import Problem, Q
from consilience.models.expert_views.updates import (
    agreement,
    expected_answering,
    expected_log_view_weight,
    expected_logs,
)
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
    counts = agreement(q.eta, problem)
    answers = log_likelihood(counts, expected_answering(q, problem), problem.number)
    accuracy = -divergence(q.accuracy, problem.prior[:, None]).sum((1, 2))
    stick_prior = jnp.stack([jnp.ones_like(problem.concentration), problem.concentration])
    clusters, clusters_entropy = of_items(q, problem)
    return Bound(
        answers=(q.phi * answers).sum((1, 2)),
        views=(q.phi * expected_log_view_weight(q)[:, None]).sum((1, 2)),
        views_entropy=entropy(q.phi).sum((1, 2)),
        sensitivity=accuracy[:, 0],
        specificity=accuracy[:, 1:].sum(1),
        sticks=-divergence(q.stick, stick_prior).sum(1),
        clusters=clusters.sum(1),
        clusters_entropy=clusters_entropy.sum(1),
        weights=of_weights(q, problem).sum(1),
    )


def divergence(beta: Array, prior: Array) -> Array:
    """Return the Kullback-Leibler divergence of Beta distributions."""
    return ((beta - prior) * expected_logs(beta)).sum(-1) - log_beta(beta) + log_beta(prior)
