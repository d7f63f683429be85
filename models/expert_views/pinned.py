r"""Log evidence from draws whose grouping of the experts is sure: along a path on which no state falls apart.

From the prior to the posterior a ladder passes a sudden change, where the clusters form: its estimate of the evidence
is as rough as the few times that replicas got through. Here a path leads from the posterior to what its own draws would
be if items and experts knew nothing of each other. With the experts in the views of the grouping G that most draws
have, the rung of exponent b targets

.. math::

    p(W)\, p(Z \mid W)\, p(\alpha)\, p(\beta)\, p(S \mid G, Z, \alpha, \beta)^b\, h(Z, \alpha, \beta)^{1 - b},

where h is the *pin*: the shares of the clusters of each item among the draws, and for each accuracy as many answers as
it had on average. Clusters stay where they are all the way, so that stepping stones have little to bridge. At b = 0 the
accuracies have the integral of Beta functions, and the weights one that a bridge from a normal distribution finds
(`consilience.models.bridging`), all clusters summed out. Then

.. math:: \log p(S) = \log p(S \mid G) + \log p(G) - \log p(G \mid S),

with p(G) summed over the views that the groups may have, and the share of draws that have G as the last term.

A path stays at one numbering of the clusters of K! that are as probable. A clustering Z has the part
:math:`w(Z) = h(Z) / \sum_\sigma h(\sigma Z)` of this numbering; the parts of all numberings are one, so that the
posterior integrates to K! times what it does with w, to which the last stone leads.

References
----------
Chib (1995), Marginal likelihood from the Gibbs output, JASA 90, for the identity. Fan, Wu, Chen, Kuo & Lewis (2011),
Choosing among partition models in Bayesian phylogenetics, Molecular Biology and Evolution 28, for stepping stones to a
distribution made of the draws.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from consilience.arrays import Float, Int
from consilience.inference import tempering
from consilience.models.bridging import log_integral
from consilience.models.expert_views import gibbs, likelihood
from consilience.models.expert_views.gibbs import Pin, Problem, State
from consilience.models.expert_views.links import Clusters, LinearLink
from consilience.models.rows import row_blocks
from consilience.models.truth.partitions import first_in_rows

_LEAST_SHARE = 0.05    # Of the draws of a ladder, that have the grouping that most have.
_MOST_CLUSTERS = 10    # Of which all numberings are summed.
_MOST_WAYS = 1e5       # Of groups to have views, about.
_SMOOTHED = 0.5        # Draws that are added in each cluster of each item.
_RUNGS, _LEAST_EXPONENT, _WARMUP, _DRAWS = 6, 0.1, 60, 160
_REPLICAS, _BRIDGE_WARMUP, _BRIDGE_SWEEPS, _DRAWS_PER_WEIGHT = 16, 10, 60, 10
_BLOCK = 1 << 22       # Numbers that are held at a time.


class Grouping(NamedTuple):
    """The draws with the most frequent grouping of the experts.

    Parameters
    ----------
    group : of each expert, from 0.
    share, error : how many of all draws have it, and the standard error of the logarithm of that.
    cluster, weight : of each group.
    """

    group: Int[np.ndarray, " expert"]
    share: float
    error: float
    cluster: Int[np.ndarray, "draw group item"]
    weight: Float[np.ndarray, "draw group column cluster"]


def log_evidence(draws: Mapping[str, np.ndarray], problem: Problem) -> tuple[float, float] | None:
    """Return the log evidence by the draws of one ladder, with its standard error; None without a sure grouping.

    Nor is there one under a link of one's own, of which clusters may be more than names, or where there are too many
    numberings of clusters, or ways to give views to groups.

    Parameters
    ----------
    draws : ``(draw, …)`` of the sites, with views and clusters that are matched to one another.
    problem : of the sampler.
    """
    if not isinstance(problem.link, LinearLink) or problem.link.shape[0] > _MOST_CLUSTERS:
        return None
    found, random = _grouping(draws), np.random.default_rng(0)
    sizes = np.bincount(found.group)
    ways = problem.views * np.prod(np.unique(sizes, return_counts=True)[1] + 1.0)
    if found.share < _LEAST_SHARE or ways > _MOST_WAYS:
        return None
    pin = _pin(found, problem)
    held = dataclasses.replace(
        problem, views=found.cluster.shape[1], pin=pin, adapts=True,
        exponent=tempering.geometric_ladder(_RUNGS, _LEAST_EXPONENT),
    )  # fmt: skip
    *stones, state = _along(random, _start(random, found, held), held)
    weights = _of_weights(random, state, held)
    of_experts = (gibbs.log_beta(problem.prior + pin.cells) - gibbs.log_beta(problem.prior)).sum()
    prior = log_prior(sizes, problem.views, problem.concentration)
    parts = [stones, weights, (-np.log(found.share), found.error)]
    return prior + of_experts + sum(value for value, _ in parts), float(np.linalg.norm([error for _, error in parts]))


def log_prior(sizes: Int[np.ndarray, " group"], views: int, concentration: float) -> float:
    """Return the log prior probability that the experts fall into groups of given sizes, whichever views these have.

    Views are gone through one after the other; which groups of equal size were placed already makes no difference.

    Examples
    --------
    >>> float(np.exp(log_prior(np.array([2]), 2, 1.0)).round(3)), float(np.exp(log_prior(np.ones(2), 2, 1.0)).round(3))
    (0.667, 0.333)
    """
    kinds, number = np.unique(sizes, return_counts=True)
    ways = {tuple(number.tolist()): 0.0}  # by how many groups of each size have no view yet
    for _ in range(views - 1):
        before, ways = ways, dict[tuple[int, ...], float]()
        for left, value in before.items():
            experts = float(np.dot(left, kinds))
            for place in (None, *np.flatnonzero(left).tolist()):  # the view stays empty, or a group of this size has it
                size, groups = (0.0, 1) if place is None else (float(kinds[place]), left[place])
                then = tuple(count - (at == place) for at, count in enumerate(left))
                broken = betaln(1 + size, concentration + experts - size) - betaln(1, concentration)
                ways[then] = np.logaddexp(ways.get(then, -np.inf), value + np.log(groups) + broken)
    return float(np.logaddexp.reduce([value for left, value in ways.items() if sum(left) <= 1], initial=-np.inf))


def log_part_of_numbering(
    cluster: Int[np.ndarray, "draw item"], log_share: Float[np.ndarray, "cluster item"]
) -> Float[np.ndarray, " draw"]:
    """Return which part each clustering has of the numbering at which a pin holds it, as a logarithm.

    The sum over all numberings, a permanent, grows by one cluster at a time, over the sets of numbers that these have.

    Parameters
    ----------
    cluster : of each draw.
    log_share : log probabilities by which items are held.
    """
    number = len(log_share)
    held = np.stack([(cluster == one) @ log_share.T for one in range(number)], axis=1)  # (draw, cluster, its number)
    total: dict[int, np.ndarray] = {0: np.zeros(len(cluster))}
    for chosen in range(1, 1 << number):
        one = chosen.bit_count() - 1
        last = [total[chosen ^ 1 << other] + held[:, one, other] for other in range(number) if chosen >> other & 1]
        total[chosen] = np.logaddexp.reduce(last)
    return np.asarray(np.trace(held, axis1=1, axis2=2) - total[(1 << number) - 1])


def _grouping(draws: Mapping[str, np.ndarray]) -> Grouping:
    view = np.asarray(draws["view_of_expert"])
    first = first_in_rows(view, int(view.max()) + 1)
    groupings, which, number = np.unique(first, axis=0, return_inverse=True, return_counts=True)
    has = which.ravel() == number.argmax()
    leader, group = np.unique(groupings[number.argmax()], return_inverse=True)
    place = view[has][:, leader]
    cluster, weight = np.asarray(draws["cluster"])[has], np.asarray(draws["weight"])[has]
    return Grouping(
        group.ravel(), float(has.mean()), float(tempering.batch_error(has / has.mean())),
        np.take_along_axis(cluster, place[:, :, None], axis=1),
        np.take_along_axis(weight, place[:, :, None, None], axis=1),
    )  # fmt: skip


def _pin(found: Grouping, problem: Problem) -> Pin:
    """Return what holds items and experts as the draws have them."""
    clusters = problem.link.shape[0]
    share = np.stack([(found.cluster == one).sum(axis=0) for one in range(clusters)], axis=1) + _SMOOTHED
    if problem.experts == "spammer":  # whose sites have no integral in closed form
        cells = np.zeros(problem.prior.shape)
    else:
        counts = gibbs.counts_together(np.ascontiguousarray(found.cluster), problem.judged)
        own = np.take_along_axis(counts, np.broadcast_to(found.group, counts.shape[:2])[:, :, None, None], axis=2)
        of_sites = likelihood.site_counts(own[:, :, 0], problem.judged.number, problem.table.cells)
        cells = of_sites.mean(axis=0).reshape(problem.prior.shape)
    return Pin(found.group, np.log(share / share.sum(axis=1, keepdims=True)), cells)


def _start(random: np.random.Generator, found: Grouping, problem: Problem) -> State:
    """Return the state of a draw on all rungs."""
    state, draw = gibbs.prior_state(random, problem, problem.exponent), random.integers(len(found.cluster))
    view, weight = (np.broadcast_to(one, (len(problem.exponent), *np.shape(one))).copy() for one in (
        found.group, problem.link.position(found.weight[draw])
    ))  # fmt: skip
    cluster = np.repeat(found.cluster[draw][None], len(view), axis=0)
    return gibbs.counted(state._replace(view_of_expert=view, cluster=cluster, weight=weight), problem)


def _along(random: np.random.Generator, state: State, problem: Problem) -> tuple[float, float, State]:
    """Return what the stepping stones of the path add, all numberings counted, with its error, and where it ends."""
    for done in range(1, _WARMUP + 1):
        state = gibbs.warmed(gibbs.sweep(random, state, problem), problem, done, _WARMUP)
    fit, next_to_last = list[np.ndarray](), list[Clusters]()
    for _ in range(_DRAWS):
        state = gibbs.sweep(random, state, problem)
        fit.append(state.log_likelihood)
        next_to_last.append(state.cluster[1])
    of_draw, cluster, held = np.array(fit), np.array(next_to_last), _pin_of(problem).cluster
    part = sum(log_part_of_numbering(cluster[:, view], own) for view, own in enumerate(held))
    # The last stone leads from the second rung to the part of the posterior that one numbering has.
    of_draw[:, 1] += part / (state.exponent[0] - state.exponent[1])
    value, error = tempering.stepping_stones(state.exponent, of_draw)
    return float(value + len(held) * gammaln(len(held[0]) + 1)), float(error), state


def _pin_of(problem: Problem) -> Pin:
    assert problem.pin is not None
    return problem.pin


def _of_weights(random: np.random.Generator, state: State, problem: Problem) -> tuple[float, float]:
    """Return the log integral over the weights at the end of the path, by replicas that stay there."""
    link, pin = problem.link, _pin_of(problem)
    state = gibbs.on_ladder(state.on(np.full(_REPLICAS, -1)), np.zeros(_REPLICAS))
    size = link.shape[0] * link.shape[1]
    kept = list[np.ndarray]()
    for done in range(_BRIDGE_WARMUP + max(_BRIDGE_SWEEPS, 2 * _DRAWS_PER_WEIGHT * size // _REPLICAS)):
        state = gibbs.moved(random, state, problem)
        if done >= _BRIDGE_WARMUP:
            kept.append(state.weight)
    value, variance = 0.0, 0.0
    for view, held in enumerate(pin.cluster):
        draws = np.array(kept)[:, :, view].swapaxes(0, 1).reshape(-1, size)  # replica after replica
        density = functools.partial(_log_density, held=held, link=link)
        of_view, error = log_integral(random, draws, density)
        value, variance = value + of_view, variance + error**2
    return value, variance**0.5


def _log_density(
    weight: Float[np.ndarray, "draw column"], held: Float[np.ndarray, "cluster item"], link: LinearLink
) -> Float[np.ndarray, " draw"]:
    """Return the log density of weights and of the clusters of items that are held, these summed out."""
    found = link.log_prior(weight.reshape(-1, *link.shape))
    for rows in row_blocks(len(weight), held.size, _BLOCK):
        logits = link.logits(weight[rows].reshape(-1, 1, *link.shape))[:, 0]
        found[rows] += (logsumexp(logits + held, axis=1) - logsumexp(logits, axis=1)).sum(axis=1)
    return found
