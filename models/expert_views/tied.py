"""The authors' variant of coordinate ascent, in which the clusters of an item are those of the mean weights alone.

It is a smaller family: an item cannot react to its own answers. The weights are all that is left to be found, by
gradient steps that no longer go anywhere where the bound would fall.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float
from consilience.models.expert_views.problem import Problem, Q
from consilience.models.expert_views.updates import (
    Agreement,
    agreement,
    couplings,
    first_rise,
    logits,
    neighbours,
    newton_direction,
    softmax_bound,
    update_experts,
    update_tilt,
    update_weight_variance,
    variances,
)

__all__ = ["tied_sweep", "update_tied_weights"]

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


def update_tied_weights(q: Q, coupling: Float[Array, "pair restart view"], problem: Problem) -> Q:
    """Return q with better means of the weights, and the probabilities of the clusters that go with them.

    Parameters
    ----------
    coupling : what the answers on each pair say for together.
    """
    mean, variance = logits(q.weight_mean, problem), variances(q.weight_variance, problem)
    precision = problem.weight_scale**-2
    eta = jax.nn.softmax(mean, axis=-1)
    predicted = jax.nn.softmax(mean + (0.5 - q.tilt) * variance, axis=-1)
    field = neighbours(eta, coupling, problem)
    slope = eta * (field - (eta * field).sum(-1, keepdims=True)) + eta - predicted
    gradient = jnp.einsum("nd,nrgk->rgdk", problem.feature, slope) - precision * q.weight_mean
    direction = newton_direction(gradient, eta, problem)
    change = logits(direction, problem)

    def value(length: Array) -> Array:
        moved = mean + length[..., None] * change
        probability = jax.nn.softmax(moved, axis=-1)
        same = (probability[problem.first] * probability[problem.second]).sum(-1)
        # What is expected of the clusters and their entropy make one log-sum-exp.
        fit = jax.scipy.special.logsumexp(moved, axis=-1) - softmax_bound(moved, variance, q.tilt)
        weight = q.weight_mean + length[..., None, None] * direction
        return (coupling[:-1] * same).sum(0) + fit.sum(0) - (weight**2).sum((-1, -2)) * precision / 2

    length = first_rise(value, gradient)
    weight = q.weight_mean + length[..., None, None] * direction
    return q._replace(weight_mean=weight, eta=jax.nn.softmax(logits(weight, problem), axis=-1))
