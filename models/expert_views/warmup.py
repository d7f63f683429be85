r"""Warm-up of coordinate ascent, without which it hardly ever finds a good optimum.

From a random start free cluster probabilities harden within two sweeps, while the views of the experts are still mixed.
So the weights alone, which cannot follow single answers, go first, by 100 steps of Adam (Kingma and Ba 2015). Half of
the restarts raise the *tied* bound, in which cluster probabilities are those of the mean weights, as in the authors'
program; half raise the posterior density under the likelihood of *pairs*, in which each answer has a draw of the
clusters of its own:

.. math:: P(S = 1) = q\,\alpha + (1 - q)(1 - \beta), \qquad q = \sum_k p_{ik}\,p_{jk}.

With many answers the second finds the best optimum nearly always, with few the first more often. Gradients are by hand.

In the warm-up experts are taken to be good: under a weak prior their first answers count for so little that with few
answers all of them end up in one view.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from numpyro.optim import Adam

from consilience.arrays import Array, Float
from consilience.models.expert_views import updates
from consilience.models.expert_views.likelihood import Answering, site_counts
from consilience.models.expert_views.problem import OfPairs, OfWeights, Problem, Q, Rows, restart_by_restart

NUM_STEPS = 100
"""Steps of Adam."""

_ADAM = Adam(step_size=0.2)

# Of views and accuracies of the experts in a step of the tied bound; more of them let the views harden too early.
_ROUNDS = 1

# Accuracies of the likelihood of pairs: where they start, and how far they go.
_FIRST_ACCURACY, _LEAST, _MOST = 0.85, 0.02, 0.995

# Takes the place of priors of the accuracies that weigh fewer answers: the paper's.
_OPTIMISTIC = (10.0, 1.0)

# Variance of the weights after a warm-up that has none.
_VARIANCE_AFTERWARDS = 0.05


class Weights(NamedTuple):
    """Of the weights: their means and the logarithms of their variances, or derivatives by these."""

    mean: OfWeights
    log_variance: OfWeights


class WarmUp(NamedTuple):
    """What the next step of Adam needs.

    Parameters
    ----------
    adam : the weights, and running means of the gradient and of its square.
    accuracy : shape ``(paired, expert, site)``; under the likelihood of pairs.
    """

    adam: Any
    accuracy: Float[Array, "paired expert site"]


def begin(q: Q, problem: Problem) -> WarmUp:
    """Return the state before the first step."""
    shape = len(problem.paired), *problem.prior.shape[:2]
    adam = _ADAM.init(Weights(q.weight_mean, jnp.log(q.weight_variance)))
    return WarmUp(adam, jnp.full(shape, _FIRST_ACCURACY, q.phi.dtype))


def warm_up(q: Q, state: WarmUp, problem: Problem) -> tuple[Q, WarmUp]:
    """Take a step of Adam, after views and accuracies of the experts were brought up to date."""
    problem = _with_good_experts(problem)
    number = len(problem.tied)
    tied, paired = (
        restart_by_restart(lambda axis, values, own=own: values[(slice(None),) * axis + (own,)], q)
        for own in (slice(None, number), slice(number, None))
    )
    gradients, accuracy = [], state.accuracy
    if len(problem.tied):
        tied, gradient = tied_gradient(tied, problem)
        gradients.append(gradient)
    if len(problem.paired):
        paired, accuracy, gradient = pair_gradient(paired, accuracy, problem)
        gradients.append(gradient)
    q = restart_by_restart(lambda axis, *both: jnp.concatenate(both, axis), tied, paired)
    adam = _ADAM.update(jax.tree.map(lambda *parts: -jnp.concatenate(parts), *gradients), state.adam)
    moved = _ADAM.get_params(adam)
    return q._replace(weight_mean=moved.mean, weight_variance=jnp.exp(moved.log_variance)), WarmUp(adam, accuracy)


def _with_good_experts(problem: Problem) -> Problem:
    optimistic = jnp.asarray(_OPTIMISTIC, problem.prior.dtype)
    weak = problem.prior.sum(-1, keepdims=True) < optimistic.sum()
    return problem._replace(prior=jnp.where(weak, optimistic, problem.prior))


def finish(q: Q, problem: Problem) -> Q:
    """Return the q with which the sweeps begin, but for the order of the views."""
    paired = jnp.arange(len(q.phi)) >= len(problem.tied)
    variance = jnp.where(paired[:, None, None, None], _VARIANCE_AFTERWARDS, q.weight_variance)
    eta = updates.softmax(updates.logits(q.weight_mean, problem))
    tilt = eta if problem.settings.tilted else q.tilt
    q = q._replace(eta=updates.turned(eta), tilt=tilt, weight_variance=variance)
    return updates.update_experts(q, updates.agreement(q.eta, problem), problem)


def tied_gradient(q: Q, problem: Problem) -> tuple[Q, Weights]:
    """Return q with new views and accuracies of the experts, and the gradient of the tied bound (Jensen's)."""
    mean, precision = updates.logits(q.weight_mean, problem), problem.weight_scale**-2
    eta = updates.softmax(mean)
    q = updates.update_experts(q, updates.agreement(updates.turned(eta), problem), problem, rounds=_ROUNDS)
    predicted = updates.softmax(mean + updates.variances(q.weight_variance, problem) / 2)
    slope = updates.tied_slope(eta, updates.couplings(q, problem), problem) + eta - predicted
    curvature = precision + updates.onto_weights(problem.feature**2, predicted)
    return q, Weights(
        updates.onto_weights(problem.feature, slope) - precision * q.weight_mean,
        (1 - q.weight_variance * curvature) / 2,
    )


def pair_gradient(
    q: Q, accuracy: Float[Array, "paired expert site"], problem: Problem
) -> tuple[Q, Float[Array, "paired expert site"], Weights]:
    """Return q with new views of the experts, their new accuracies, and the gradient under the likelihood of pairs.

    Views and gradient are those of the accuracies that came in.
    """
    eta = updates.softmax(updates.logits(q.weight_mean, problem))
    same = updates.same_cluster(updates.turned(eta), problem)
    # How probable each answer is, (expert, kind, restart, 1).
    answers = updates.answering(jnp.stack([accuracy, 1 - accuracy], axis=-1), problem)
    rates = Answering(*(jnp.transpose(part, (1, 2, 0))[..., None] for part in answers))
    score, counts = _pair_sums(rates, same, problem)
    phi = jax.nn.softmax(updates.expected_log_view_weight(q)[:, None] + score, axis=-1)
    moved = updates.update_sticks(q._replace(phi=phi), problem)

    slope = updates.tied_slope(eta, _pair_slopes(phi, rates, same, problem), problem)
    of_mean = updates.onto_weights(problem.feature, slope) - q.weight_mean / problem.weight_scale**2
    # The most probable accuracies. Priors with their mode at an end count as flat, and a thousandth of an answer each
    # way keeps it off the ends.
    cells = site_counts((phi[..., None] * counts).sum(2), problem.number, problem.cells)
    cells = cells.reshape(*accuracy.shape, 2) + jnp.maximum(problem.prior - 1, 0) + 1e-3
    new = jnp.clip(cells[..., 0] / cells.sum(-1), _LEAST, _MOST)
    return moved, new, Weights(of_mean, jnp.zeros_like(of_mean))


def _pair_sums(rates: Answering, same: Array, problem: Problem) -> tuple[Array, Array]:
    """Sum the answers of each expert, by view.

    Returns
    -------
    their log likelihood, shape ``(restart, expert, view)``, and how many of each kind are expected on pairs that are
    together, with one more axis.
    """
    rows, (apart, together) = problem.by_expert, rates

    def of_row(row: Rows) -> Array:
        share, one, other = same[row.other][:, None], together[row.owner], apart[row.owner]
        probability = other + share * (one - other)  # (place, kind, restart, view)
        score = jnp.einsum("wc,wcrg->rg", row.said, jnp.log(probability))
        return jnp.concatenate([score[None], jnp.einsum("wc,wcrg->crg", row.said, share * one / probability)])

    sums = updates.in_blocks(of_row, rows, 4 * rows.other.shape[1] * same[0].size)
    found = jnp.transpose(updates.sum_rows(sums, rows, len(problem.number)), (2, 0, 3, 1))
    return found[..., 0], found[..., 1:]


def _pair_slopes(phi: Array, rates: Answering, same: Array, problem: Problem) -> OfPairs:
    """Return the derivatives by the probability that a pair is together, and zeros for the pair that pads."""
    rows, padded, apart = problem.by_pair, jnp.concatenate([same, jnp.zeros_like(same[:1])]), rates.apart
    gain, phi = rates.together - apart, jnp.moveaxis(phi, 0, 1)

    def of_row(row: Rows) -> Array:
        probability = apart[row.other] + padded[row.owner] * gain[row.other]
        slope = jnp.einsum("wc,wcrg->wrg", row.said, gain[row.other] / probability)
        return (phi[row.other] * slope).sum(0)

    sums = updates.in_blocks(of_row, rows, 4 * rows.other.shape[1] * same[0].size)
    return updates.sum_rows(sums, rows, len(padded))
