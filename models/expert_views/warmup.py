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

from typing import NamedTuple

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Float, Int
from consilience.models.expert_views.problem import OfPairs, OfWeights, Problem, Q, Rows, restart_by_restart
from consilience.models.expert_views.tied import tied_slope
from consilience.models.expert_views.updates import (
    agreement,
    by_item,
    couplings,
    in_blocks,
    log_view_weights,
    logits,
    onto_weights,
    same_cluster,
    softmax,
    sum_rows,
    update_experts,
    update_sticks,
    variances,
)

NUM_STEPS = 100
"""Steps of Adam."""

_RATE, _DECAY, _SQUARE_DECAY = 0.2, 0.9, 0.999

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
    gradient, square : running means of the gradient and of its square.
    accuracy : shape ``(paired, expert, 2)``; sensitivity and specificity under the likelihood of pairs.
    """

    gradient: Weights
    square: Weights
    accuracy: Float[Array, "paired expert 2"]


def begin(q: Q, problem: Problem) -> WarmUp:
    """Return the state before the first step."""
    zeros = Weights(jnp.zeros_like(q.weight_mean), jnp.zeros_like(q.weight_mean))
    shape = len(problem.paired), len(problem.num_together), 2
    return WarmUp(zeros, zeros, jnp.full(shape, _FIRST_ACCURACY, q.phi.dtype))


def warm_up(q: Q, state: WarmUp, count: Int[Array, ""], problem: Problem) -> tuple[Q, WarmUp]:
    """Take a step of Adam, after views and accuracies of the experts were brought up to date.

    Parameters
    ----------
    count : how many steps there were before.
    """
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
    gradient = jax.tree.map(lambda *parts: jnp.concatenate(parts), *gradients)

    def running(decay: float, old: Array, new: Array) -> Array:
        return decay * old + (1 - decay) * new

    first = jax.tree.map(lambda old, new: running(_DECAY, old, new), state.gradient, gradient)
    square = jax.tree.map(lambda old, new: running(_SQUARE_DECAY, old, new**2), state.square, gradient)
    times = (count + 1).astype(q.phi.dtype)
    rate = _RATE * jnp.sqrt(1 - _SQUARE_DECAY**times) / (1 - _DECAY**times)
    moved = jax.tree.map(
        lambda value, mean, spread: value + rate * mean / (jnp.sqrt(spread) + 1e-8),
        Weights(q.weight_mean, jnp.log(q.weight_variance)), first, square,
    )  # fmt: skip
    q = q._replace(weight_mean=moved.mean, weight_variance=jnp.exp(moved.log_variance))
    return q, WarmUp(first, square, accuracy)


def _with_good_experts(problem: Problem) -> Problem:
    def at_least(prior: Float[Array, "expert 2"]) -> Float[Array, "expert 2"]:
        optimistic = jnp.asarray(_OPTIMISTIC, prior.dtype)
        return jnp.where(prior.sum(-1, keepdims=True) < optimistic.sum(), optimistic, prior)

    return problem._replace(sensitivity=at_least(problem.sensitivity), specificity=at_least(problem.specificity))


def finish(q: Q, problem: Problem) -> Q:
    """Return the q with which the sweeps begin, but for the order of the views."""
    paired = jnp.arange(len(q.phi)) >= len(problem.tied)
    variance = jnp.where(paired[:, None, None, None], _VARIANCE_AFTERWARDS, q.weight_variance)
    eta = softmax(logits(q.weight_mean, problem))
    tilt = eta if problem.settings.tilted else q.tilt
    q = q._replace(eta=by_item(eta), tilt=tilt, weight_variance=variance)
    return update_experts(q, agreement(q.eta, problem), problem)


def tied_gradient(q: Q, problem: Problem) -> tuple[Q, Weights]:
    """Return q with new views and accuracies of the experts, and the gradient of the tied bound (Jensen's)."""
    mean, precision = logits(q.weight_mean, problem), problem.weight_scale**-2
    eta = softmax(mean)
    q = update_experts(q, agreement(by_item(eta), problem), problem, rounds=_ROUNDS)
    predicted = softmax(mean + variances(q.weight_variance, problem) / 2)
    slope = tied_slope(eta, couplings(q, problem), problem) + eta - predicted
    curvature = precision + onto_weights(problem.feature**2, predicted)
    return q, Weights(
        onto_weights(problem.feature, slope) - precision * q.weight_mean,
        (1 - q.weight_variance * curvature) / 2,
    )


def pair_gradient(
    q: Q, accuracy: Float[Array, "paired expert 2"], problem: Problem
) -> tuple[Q, Float[Array, "paired expert 2"], Weights]:
    """Return q with new views of the experts, their new accuracies, and the gradient under the likelihood of pairs.

    Views and gradient are those of the accuracies that came in.
    """
    eta = softmax(logits(q.weight_mean, problem))
    same = same_cluster(by_item(eta), problem)
    score, hits, misses = _pair_sums(accuracy, same, problem)
    phi = jax.nn.softmax(log_view_weights(q.stick)[:, None] + score, axis=-1)
    moved = update_sticks(q._replace(phi=phi), problem)

    slope = tied_slope(eta, _pair_slopes(phi, accuracy, same, problem), problem)
    of_mean = onto_weights(problem.feature, slope) - q.weight_mean / problem.weight_scale**2
    new = _most_probable((phi * hits).sum(-1), (phi * misses).sum(-1), problem)
    return moved, new, Weights(of_mean, jnp.zeros_like(of_mean))


def _pair_sums(accuracy: Array, same: Array, problem: Problem) -> tuple[Array, Array, Array]:
    """Sum the answers of each expert, by view, shape ``(restart, expert, view)``.

    Returns
    -------
    their log likelihood, and how many are expected on pairs that are together: those that say so, and those that do
    not.
    """
    rows = problem.by_expert
    hit, alarm = accuracy[..., 0].T[..., None], (1 - accuracy[..., 1]).T[..., None]

    def of_block(rows: Rows) -> Array:
        together, hit_rate, alarm_rate = same[rows.other], hit[rows.owner][:, None], alarm[rows.owner][:, None]
        yes = alarm_rate + together * (hit_rate - alarm_rate)
        no = 1 - yes
        sums = [
            (rows.together, jnp.log(yes)), (rows.apart, jnp.log(no)),
            (rows.together, together * hit_rate / yes), (rows.apart, together * (1 - hit_rate) / no),
        ]  # fmt: skip
        said, denied, hits, misses = (jnp.einsum("lw,lwrg->lrg", *of_answer) for of_answer in sums)
        return jnp.stack([said + denied, hits, misses], axis=1)

    sums = in_blocks(of_block, rows, 4 * rows.other.shape[1] * same[0].size)
    score, hits, misses = jnp.moveaxis(sum_rows(sums, rows, len(problem.num_together)), 0, 2)
    return score, hits, misses


def _pair_slopes(phi: Array, accuracy: Array, same: Array, problem: Problem) -> OfPairs:
    """Return the derivatives by the probability that a pair is together, and zeros for the pair that pads."""
    rows, padded = problem.by_pair, jnp.concatenate([same, jnp.zeros_like(same[:1])])
    alarm, gain = (1 - accuracy[..., 1]).T[..., None], accuracy.sum(-1).T[..., None] - 1
    weighted = gain * jnp.moveaxis(phi, 0, 1)

    def of_block(rows: Rows) -> Array:
        shape = *rows.other.shape, *same.shape[1:]
        expert, pair = rows.other.ravel(), jnp.repeat(rows.owner, shape[1])
        yes = alarm[expert] + padded[pair] * gain[expert]
        together, apart = (count.ravel()[:, None, None] for count in (rows.together, rows.apart))
        return (weighted[expert] * (together / yes - apart / (1 - yes))).reshape(shape).sum(1)

    sums = in_blocks(of_block, rows, 4 * rows.other.shape[1] * same[0].size)
    return sum_rows(sums, rows, len(padded))


def _most_probable(hits: Array, misses: Array, problem: Problem) -> Float[Array, "paired expert 2"]:
    """Return the most probable accuracies, given how many answers were on pairs that are together."""
    # Priors with their mode at an end count as flat, and a thousandth of an answer each way keeps it off the ends.
    sensitivity, specificity = (
        jnp.maximum(prior - 1, 0) + 1e-3 for prior in (problem.sensitivity, problem.specificity)
    )
    rejections, alarms = problem.num_apart - misses, problem.num_together - hits
    if problem.settings.symmetric:
        right, wrong = hits + rejections + sensitivity[:, 0], misses + alarms + sensitivity[:, 1]
        both = jnp.stack([right / (right + wrong)] * 2, axis=-1)
    else:
        hits, misses = hits + sensitivity[:, 0], misses + sensitivity[:, 1]
        rejections, alarms = rejections + specificity[:, 0], alarms + specificity[:, 1]
        both = jnp.stack([hits / (hits + misses), rejections / (rejections + alarms)], axis=-1)
    return jnp.clip(both, _LEAST, _MOST)
