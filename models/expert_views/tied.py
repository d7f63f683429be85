"""The authors' variant of coordinate ascent, in which the clusters of an item are those of the mean weights alone.

It is a smaller family: an item cannot react to its own answers. The weights are all that is left to be found, by
gradient steps that no longer go anywhere where the bound would fall.
"""

from __future__ import annotations

import jax

from consilience.arrays import Array, Bool
from consilience.models.expert_views.problem import OfClusters, OfPairs, Problem, Q
from consilience.models.expert_views.updates import (
    Agreement,
    agreement,
    by_cluster,
    by_item,
    couplings,
    log_sum_exp,
    logits,
    neighbours,
    newton_step,
    over_clusters,
    over_items,
    same_cluster,
    softmax,
    softmax_bound,
    update_experts,
    update_tilt,
    update_weight_variance,
    variances,
)

_STEPS = 3


def tied_sweep(q: Q, problem: Problem, frozen: Bool[Array, ""] | bool = False) -> tuple[Q, Agreement]:
    """Return q after every block was updated once or more, and the agreement that holds then.

    Parameters
    ----------
    frozen : whether the views of the experts stay as they are.
    """
    found = agreement(q.eta, problem)
    q = update_experts(q, found, problem, frozen)
    coupling = couplings(q, problem)
    q = jax.lax.fori_loop(0, _STEPS, lambda _, q: update_tied_weights(q, coupling, problem), q)
    if problem.settings.tilted:
        q = update_tilt(q, problem)
    q = update_weight_variance(q, problem)
    return q, agreement(q.eta, problem)


def update_tied_weights(q: Q, coupling: OfPairs, problem: Problem) -> Q:
    """Return q with better means of the weights, and the probabilities of the clusters that go with them.

    Parameters
    ----------
    coupling : what the answers on each pair say for together.
    """
    mean, variance = logits(q.weight_mean, problem), variances(q.weight_variance, problem)
    eta, predicted = softmax(mean), softmax(mean + (0.5 - q.tilt) * variance)

    def fit(moved: OfClusters) -> Array:
        # What is expected of the clusters and their entropy make one log-sum-exp.
        of_items = over_items(log_sum_exp(moved) - softmax_bound(moved, variance, q.tilt))
        return of_items + (coupling[:-1] * same_cluster(by_item(softmax(moved)), problem)).sum(0)

    slope = tied_slope(eta, coupling, problem) + eta - predicted
    weight = newton_step(q.weight_mean, mean, slope, eta, fit, problem)
    return q._replace(weight_mean=weight, eta=by_item(softmax(logits(weight, problem))))


def tied_slope(
    eta: OfClusters, coupling: OfPairs, problem: Problem
) -> OfClusters:
    """Return the derivatives by the logits of what the answers say, where clusters are those of the logits.

    Parameters
    ----------
    coupling : what the answers on each pair say for together, and zeros for the pair that pads.
    """
    field = by_cluster(neighbours(by_item(eta), coupling, problem))
    return eta * (field - over_clusters(eta * field))
