r"""Coordinate ascent over labels, abilities of annotators and the ease of items, the latter two on grids.

An annotation is right with probability :math:`\sigma(\alpha_j b_i)`, else uniform over the other labels. With
:math:`L^1 = \log \sigma(\alpha b)` and :math:`L^0 = \log(1 - \sigma(\alpha b))`, tables of the points of both grids,
w_n the weight of an annotation, g a point of the grid of log b, and :math:`R_i(t, g)` the probabilities of an item,

.. math::

    C^1_{jg} = \sum_n w_n R_i(l_n, g), \qquad C^0_{jg} = \sum_n w_n \sum_{t \ne l_n} R_i(t, g), \qquad
    q(\alpha_j) \propto \pi(\alpha) \exp(C^1 L^{1T} + C^0 L^{0T}),

.. math::

    \log R_i(t, g) = \mathrm{E} \log p_t + \log w_g
    + \sum_n w_n \left(1[l_n = t] f^1_{jg} + 1[l_n \ne t] f^0_{jg}\right) - \log Z_i,

:math:`f^1 = q L^1` and :math:`f^0 = q L^0 - \log(K - 1)`. The objective, at the parameters that come in, is
:math:`\sum_i \log Z_i - \sum_j \mathrm{KL}(q(\alpha_j) \| \pi) - \mathrm{KL}(q(p) \| \mathrm{Dir})`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.nn import log_sigmoid
from jax.scipy.special import gammaln

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.errors import UnsupportedRequest
from consilience.models.crowd.simplices import PREVALENCE, divergences, expected_logs
from consilience.models.crowd.votes import (
    Votes,
    require_annotators,
    shard_votes,
    starting_shares,
    sum_by_item,
    sum_votes,
    votes_of,
    with_start,
)
from consilience.models.gold import require_gold
from consilience.models.grids import LearnedNormal, OnGrid, normal_log_weights
from consilience.models.interface import Ascent, Shards, Terms, Total, unsharded
from consilience.models.posterior import Closed
from consilience.models.rows import copies
from consilience.models.sites import Resolved

# Weights of the points are learned when the labels have settled a little.
_FIRST_SWEEPS = 3
# Abilities never become all the same.
_LEAST_VARIANCE = 0.05
# Logarithms that are extrapolated: those of smaller probabilities would run away.
_TINY = 1e-12

Grids = Mapping[str, np.ndarray]
"""The points of ``ability`` and of ``log_ease``."""

HIDDEN = {"probability": ("item", "class"), "prior.ability": ("ability_point",), "prior.log_ease": ("ease_point",)}
"""What the posterior holds beside the sites: the labels, and the weights of the points before any annotation."""


class Problem(NamedTuple):
    """What the steps read.

    Parameters
    ----------
    votes : the annotations.
    prevalence : concentrations of the prior of the class shares.
    ability, log_ease : points of the grids.
    prior : mean and log standard deviation of the abilities, and log weights of the points of the ease, at the start.
    learned : shape ``(2,)``; whether the weights of either grid are learned.
    """

    votes: Votes
    prevalence: Float[Array, " class"]
    ability: Float[Array, " ability"]
    log_ease: Float[Array, " ease"]
    prior: tuple[Float[Array, " 2"], Float[Array, " ease"]]
    learned: Bool[Array, " 2"]


class State(NamedTuple):
    """Where the ascent is.

    Parameters
    ----------
    ability : shape ``(annotator, ability)``; log probabilities of the points.
    prevalence : concentrations of the class shares.
    prior : mean and log standard deviation of the abilities, and log weights of the points of the ease.
    probability, log_ease : shapes ``(item, class)``, ``(item, ease)``; probabilities of the labels, and of the points
        of the ease, that the last step found; no step reads them.
    sweep : how many there were.
    """

    ability: Float[Array, "annotator ability"]
    prevalence: Float[Array, " class"]
    prior: tuple[Float[Array, " 2"], Float[Array, " ease"]]
    probability: Float[Array, "item class"]
    log_ease: Float[Array, "item ease"]
    sweep: Int[Array, ""]


def grid_ascent_of(member: str, grids: Grids) -> Ascent:
    """Return the coordinate ascent of a member with the sites ``prevalence``, ``ability`` and ``log_ease``.

    Raises
    ------
    UnsupportedRequest : nothing here, but ``prepare`` does so where the data have one label.
    """

    def prepare(resolved: Resolved) -> Problem:
        data, dtype = resolved.data, jnp.result_type(float)
        require_gold(resolved)
        if data.num_labels < 2:
            raise UnsupportedRequest(f"'{member}' needs 2 labels or more; the data have one")
        require_annotators(data, member, data.num_items * data.num_labels * len(grids["log_ease"]))
        ability, log_ease = (points.astype(dtype) for points in grids.values())
        learned = np.array([isinstance(getattr(resolved.given, site), LearnedNormal) for site in grids])
        prevalence, (loc, scale) = resolved.concentration(PREVALENCE).astype(dtype), resolved.concentration("ability")
        prior = np.array([loc, np.log(scale)], dtype), log_weights(grids, resolved)[1].astype(dtype)
        return Problem(votes_of(resolved), prevalence, ability, log_ease, prior, learned)

    def finish(values: dict[str, Any], resolved: Resolved) -> Closed:
        factors = {site: OnGrid(points.astype(values[site].dtype), values[site]) for site, points in grids.items()}
        return Closed(
            {PREVALENCE: dist.Dirichlet(values[PREVALENCE]), **factors}, {name: values[name] for name in HIDDEN}
        )

    return Ascent(
        name="cavi", prepare=prepare, start=start, step=step, sites=sites, finish=finish, shard=shard,
        lengths=lengths,
        moved=lambda before, after: jnp.abs(after.probability - before.probability).max(),
        coordinates=coordinates, at=at, begin_from=begin_from,
    )  # fmt: skip


def log_weights(grids: Grids, resolved: Resolved) -> tuple[Float[np.ndarray, " ability"], Float[np.ndarray, " ease"]]:
    """Return the log probabilities of the points of both grids under their priors, on the host."""
    ability, ease = (
        np.asarray(normal_log_weights(points, *resolved.concentration(site)), float) for site, points in grids.items()
    )
    return ability, ease


def start(key: Key | None, problem: Problem, total: Total = unsharded) -> State:
    """Return the parameters that are best for vote shares, or the labels of an earlier fit, whatever the ease."""
    shares = starting_shares(problem.votes, total)
    found = shares[:, :, None] * jnp.exp(problem.prior[1])
    return _updated(found, problem, problem.prior, jnp.zeros((), jnp.int32), total)[0]


def begin_from(problem: Problem, ended: Mapping[str, Any]) -> Problem:
    """Return the problem of an ascent that starts at the labels of an earlier one."""
    return problem._replace(votes=with_start(problem.votes, ended["probability"]))


def step(state: State, problem: Problem, total: Total = unsharded) -> tuple[State, Terms]:
    """Update labels and ease given the parameters, and these given labels and ease."""
    real, weights = problem.votes.real, state.prior[1]
    log_shares = expected_logs({PREVALENCE: state.prevalence})
    log_joint = _log_joint(state, log_shares[PREVALENCE], problem)
    log_normaliser = jax.nn.logsumexp(log_joint, axis=(1, 2))
    found = jnp.exp(log_joint - log_normaliser[:, None, None]) * real[:, None, None]
    to_prior = (jnp.exp(state.ability) * (state.ability - _log_abilities(state.prior, problem))).sum(axis=1)
    real_annotator = problem.votes.real_annotator
    of_shares = divergences({PREVALENCE: state.prevalence}, {PREVALENCE: problem.prevalence}, log_shares)
    # The log density of learned weights of the ease under Dirichlet(2, …, 2).
    of_weights = jnp.where(problem.learned[1], gammaln(2.0 * len(weights)) + weights.sum(), 0.0)
    shared = jnp.concatenate([-to_prior * real_annotator, -of_shares[PREVALENCE][None], of_weights[None]])
    number = total(real.sum()) + real_annotator.sum() + 2
    moved, of_ease = _updated(found, problem, state.prior, state.sweep + 1, total)
    return _pooled(moved, of_ease, problem), Terms(log_normaliser * real, shared, number)


def sites(state: State, problem: Problem, total: Total = unsharded) -> dict[str, Array]:
    """Return the parameters, the probabilities of labels and ease, and the weights of the points as ``prior.SITE``."""
    # The sum over the ease may miss one by a rounding error, and gold labels are certain.
    total_of_item = state.probability.sum(axis=1, keepdims=True)
    probability = state.probability / jnp.where(total_of_item > 0, total_of_item, 1.0)
    return {
        "prevalence": state.prevalence, "ability": jnp.exp(state.ability), "log_ease": state.log_ease,
        "probability": probability, "prior.ability": jnp.exp(_log_abilities(state.prior, problem)),
        "prior.log_ease": jnp.exp(state.prior[1]),
    }  # fmt: skip


def lengths(problem: Problem) -> dict[str, int]:
    """Return how many rows of each array are real."""
    items, annotators = (int(real.sum()) for real in (problem.votes.real, problem.votes.real_annotator))
    return {"probability": items, "log_ease": items, "ability": annotators}


def shard(problem: Problem, number: int) -> Shards:
    """Divide the items."""
    votes, lengths = shard_votes(problem.votes, number, int(problem.votes.real.sum()))
    shared = {name: copies(own, number) for name, own in problem._asdict().items() if name != "votes"}
    return Shards(Problem(votes=votes, **shared), {"probability": lengths, "log_ease": lengths})


def coordinates(state: State) -> tuple[Array, Array, tuple[Array, Array]]:
    """Return all that a step reads, without bounds."""
    return jnp.log(state.prevalence), jnp.log(jnp.exp(state.ability) + _TINY), state.prior


def at(found: tuple[Array, Array, tuple[Array, Array]], state: State) -> State:
    """Return the state of these coordinates."""
    log_prevalence, ability, (normal, weights) = found
    return state._replace(
        prevalence=jnp.exp(log_prevalence), ability=jax.nn.log_softmax(ability, axis=-1),
        prior=(normal, jax.nn.log_softmax(weights)),
    )  # fmt: skip


def log_tables(problem: Problem) -> tuple[Float[Array, "ability ease"], Float[Array, "ability ease"]]:
    """Return the log probabilities of the right label, and of any other one, by the points of both grids."""
    product = jnp.asarray(problem.ability)[:, None] * jnp.exp(jnp.asarray(problem.log_ease))
    return log_sigmoid(product), log_sigmoid(-product) - np.log(problem.votes.num_labels - 1.0)


def _log_joint(
    state: State, log_prevalence: Float[Array, " class"], problem: Problem
) -> Float[Array, "item class ease"]:
    """Return the log probabilities of label and ease with an item's annotations, up to their normaliser."""
    votes, able = problem.votes, jnp.exp(state.ability)
    right, wrong = (able @ table for table in log_tables(problem))
    shape, dtype = (votes.num_items, votes.num_labels, wrong.shape[1]), wrong.dtype
    # Without the barrier the tables would be computed anew for every annotation.
    lift, wrong = jax.lax.optimization_barrier((right - wrong, wrong))

    def named(item: Array, cell: Array, weight: Array) -> tuple[Array, Array]:
        return item * votes.num_labels + cell % votes.num_labels, weight[:, None] * lift[cell // votes.num_labels]

    def of_any(cell: Array, weight: Array) -> Array:
        return weight[:, None] * wrong[cell // votes.num_labels]

    evidence = sum_votes(named, votes, (shape[0] * shape[1], shape[2]), dtype).reshape(shape)
    log_shares = log_prevalence + votes.log_prior
    return evidence + sum_by_item(of_any, votes, shape[2], dtype)[:, None] + log_shares[:, :, None] + state.prior[1]


def _log_abilities(prior: tuple[Array, Array], problem: Problem) -> Float[Array, " ability"]:
    """Return the log weights of the points of the abilities before any annotation."""
    return normal_log_weights(jnp.asarray(problem.ability), prior[0][0], jnp.exp(prior[0][1]))


def _updated(
    found: Float[Array, "item class ease"], problem: Problem, prior: tuple[Array, Array], sweep: Array, total: Total
) -> tuple[State, Float[Array, " ease"]]:
    """Return the best parameters for probabilities of label and ease, and how many items have each ease."""
    votes, (num_items, num_labels, points) = problem.votes, found.shape
    named, of_item = found.reshape(num_items * num_labels, points), found.sum(axis=1)

    def count(item: Array, cell: Array, weight: Array) -> tuple[Array, Array]:
        own = jnp.concatenate([named[item * num_labels + cell % num_labels], of_item[item]], axis=1)
        return cell // num_labels, weight[:, None] * own

    counts = sum_votes(count, votes, (votes.num_annotators, 2 * points), found.dtype)
    counts, of_class, of_ease = total((counts, found.sum(axis=(0, 2)), of_item.sum(axis=0)))
    log_right, log_wrong = log_tables(problem)
    right = counts[:, :points]
    evidence = right @ log_right.T + jnp.maximum(counts[:, points:] - right, 0.0) @ log_wrong.T
    ability = jax.nn.log_softmax(_log_abilities(prior, problem) + evidence, axis=1)
    # What pads stays where it is, whatever is learned of abilities.
    ability = jnp.where(votes.real_annotator[:, None] > 0, ability, -np.log(ability.shape[1]))
    return State(ability, problem.prevalence + of_class, prior, found.sum(axis=2), of_item, sweep), of_ease


def _pooled(state: State, of_ease: Float[Array, " ease"], problem: Problem) -> State:
    """Learn the weights of the points: moments of all abilities, and half of the way to the best of the ease."""
    real, points = problem.votes.real_annotator, jnp.asarray(problem.ability)
    weight = real @ jnp.exp(state.ability) / real.sum()
    loc = weight @ points
    variance = jnp.maximum(weight @ (points - loc) ** 2, _LEAST_VARIANCE)
    best = (of_ease + 1) / (of_ease.sum() + len(of_ease))
    normal, weights = state.prior
    now = jnp.asarray(problem.learned) & (state.sweep > _FIRST_SWEEPS)
    normal = jnp.where(now[0], jnp.stack([loc, jnp.log(variance) / 2]), normal)
    weights = jnp.where(now[1], jnp.log((jnp.exp(weights) + best) / 2), weights)
    return state._replace(prior=(normal, weights))
