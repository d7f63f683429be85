r"""The Gibbs sampler of clusterings in several views.

One sweep draws, each given all else,

1. the clusters, colour after colour: items of one colour share no pair, so that they are independent;
2. the view of each expert, with his accuracies integrated out, and at once afterwards his accuracies;
3. the sticks;
4. the weights of each view by Hamiltonian Monte Carlo. Of the linear link the mass is that of a logistic regression
   at even odds, :math:`X^T X / 4 + I / s^2`, the same for all views and chains; of a link of your own it is diagonal,
   with the curvature that the prior leads to expect, and the step lengths vary more. A view without experts is drawn
   from the prior, weights and clusters together.

What a spammer knew is drawn as well: how many of his right answers were no guesses. His accuracies are then not
integrated out, and are drawn in turn with what he knew several times in a sweep.

Chains start at the optimum of coordinate ascent where there is one; those of spammers at that of experts who err in two
ways. From anywhere else they may leave an expert in a view of his own for good, since he cannot move to one whose
clusters do not fit his answers.

References
----------
Neal (2011), MCMC using Hamiltonian dynamics, Handbook of Markov Chain Monte Carlo.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions import biject_to

from consilience.arrays import Array, Float, Int, Key
from consilience.models.expert_views.judgements import Judgements, judgements
from consilience.models.expert_views.likelihood import (
    Answering,
    log_likelihood,
    log_view_weight,
    own_view,
    pairs_together,
    spammer_answering,
    together_counts,
)
from consilience.models.expert_views.priors import Priors, check_logits, linear, link_of, weight_prior
from consilience.models.expert_views.settings import EXPERTS, check_clusters
from consilience.models.interface import Gibbs
from consilience.models.posterior import Posterior
from consilience.models.random import log_gamma
from consilience.models.sites import Resolved
from consilience.models.special import log_beta

_LEAPFROG_STEPS = 6
_LONGEST_STEP = 0.65
_SHORTEST_STEP = {True: 0.3, False: 0.03}
"""Of the linear link, whose mass fits, and of others."""

_SPAMMER_ROUNDS = 16
"""Of what spammers knew and of their sites, in each sweep: either tells so much of the other that one round moves both
by little, and a round costs little."""

_PRIOR_DRAWS = 32


class LogBeta(NamedTuple):
    """A Beta variable: the logarithms of itself and of one minus it."""

    one: Array
    rest: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Link:
    """From weights to logits, and what moves the weights: positions in an unconstrained space with a mass.

    Parameters
    ----------
    prior : of the weights of one view.
    root : Cholesky factor of the mass, ``(row, row)``, or its square root ``(row,)`` where it is diagonal.
    inverse : of the mass, of the same shape.
    logits : function of weights and features; static.
    """

    prior: dist.Distribution
    root: Array
    inverse: Array
    logits: Callable[[Any, Any], Any] = dataclasses.field(metadata={"static": True})

    @property
    def is_linear(self) -> bool:
        """Whether the mass is that of a logistic regression."""
        return self.root.ndim == 2

    def weight(self, position: Float[Array, "row column"]) -> Array:
        """Return the weights at a position."""
        transform = biject_to(self.prior.support)
        return transform(position.reshape(transform.inverse_shape(self.prior.event_shape)))

    def position(self, weight: Array) -> Float[Array, "row column"]:
        """Return the position of weights: a matrix as it stands where the link is linear, else one column."""
        unconstrained = biject_to(self.prior.support)._inverse(weight)
        return unconstrained if self.is_linear else unconstrained.reshape(-1, 1)

    def log_prior(self, position: Float[Array, "row column"]) -> Array:
        """Return the log prior density of a position."""
        transform, weight = biject_to(self.prior.support), self.weight(position)
        volume = transform.log_abs_det_jacobian(
            position.reshape(transform.inverse_shape(self.prior.event_shape)), weight
        )
        return self.prior.log_prob(weight).sum() + jnp.sum(volume)

    def drawn(self, key: Key) -> Float[Array, "row column"]:
        """Return the position of weights drawn from the prior."""
        return self.position(self.prior.sample(key))


class Begun(NamedTuple):
    """Where chains start: what coordinate ascent ended with.

    Parameters
    ----------
    log_cluster : log probability of each cluster.
    view_of_expert : the most probable one.
    mean, deviation : of the weights.
    """

    log_cluster: Float[Array, "item view cluster"]
    view_of_expert: Int[Array, " expert"]
    mean: Float[Array, "view feature cluster"]
    deviation: Float[Array, "view feature cluster"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Problem:
    """What a sweep reads.

    Parameters
    ----------
    judged : the answers and the features of the items that occur in them.
    prior : ``(expert, site, 2)``; parameters of the Beta priors of the sites of the experts.
    concentration : of the sticks.
    link : from weights to logits.
    begun : where chains start; None leaves it to the prior.
    experts, views, clusters : kind of the experts, and sizes; static.
    """

    judged: Judgements
    prior: Array
    concentration: Array
    link: Link
    begun: Begun | None
    experts: str = dataclasses.field(metadata={"static": True})
    views: int = dataclasses.field(metadata={"static": True})
    clusters: int = dataclasses.field(metadata={"static": True})


class State(NamedTuple):
    """What the next sweep needs.

    Parameters
    ----------
    cluster : of each item that some expert judged, in each view.
    view_of_expert : in which view each expert judges.
    experts : sites of the experts, as `EXPERTS` lists them: ``(expert,)``, or ``(expert, view)``.
    stick : ``(view - 1,)``.
    position : of the weights, ``(view, row, column)``; see `Link`.
    """

    cluster: Int[Array, "item view"]
    view_of_expert: Int[Array, " expert"]
    experts: tuple[LogBeta, ...]
    stick: LogBeta
    position: Float[Array, "view row column"]


# ---- the problem ----


def prepare(resolved: Resolved) -> Problem:
    """Return answers, prior parameters and the mass of the weights.

    Raises
    ------
    NotConjugate : the prior of a site of the experts is no Beta distribution.
    InvalidPrior : the prior of a site has another shape, or the link returns logits of another one.
    UnsupportedRequest : there are more clusters than judged items, or than `check_clusters` allows.
    """
    chosen, given = resolved.settings, resolved.given
    judged, _ = judgements(resolved.data, bool(chosen.standardize))
    check_clusters(chosen.clusters, len(judged.item))
    prior = np.stack([resolved.concentration(site) for site in EXPERTS[chosen.experts]], axis=1)
    of_one_view = weight_prior(resolved, judged.feature.shape[1])
    link = _link(given, of_one_view, judged.feature)
    returned = jax.eval_shape(lambda weight: link.logits(weight, judged.feature), jnp.zeros(of_one_view.event_shape))
    check_logits(returned.shape, (len(judged.item), chosen.clusters))
    problem = Problem(
        judged, prior, np.asarray(given.concentration, float), link, None,
        experts=chosen.experts, views=resolved.size("view"), clusters=chosen.clusters,
    )  # fmt: skip
    return _typed(problem)


def _typed(tree: Any) -> Any:
    """Return floats in JAX's default type, and integers that index as they are."""
    dtype = jnp.result_type(float)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype if np.asarray(leaf).dtype.kind == "f" else None), tree)


def _link(priors: Priors, prior: dist.Distribution, feature: Float[Array, "item feature"]) -> Link:
    """Return the link with the mass of its weights; of the linear one with normal weights a matrix."""
    if priors.logits is None and priors.weight is None:
        inputs = np.asarray(feature, float)
        precision = inputs.T @ inputs / 4 + np.eye(inputs.shape[1]) / priors.weight_scale**2
        return Link(prior, np.linalg.cholesky(precision), np.linalg.inv(precision), linear)
    one = jnp.ones(1, jnp.result_type(float))
    bare = Link(prior, one, one, link_of(priors))
    mass = _expected_curvature(bare, jnp.asarray(feature, one.dtype))
    return Link(prior, jnp.sqrt(mass), 1 / mass, bare.logits)


def _expected_curvature(link: Link, feature: Float[Array, "item feature"]) -> Float[Array, " row"]:
    """Return the diagonal of the curvature that the prior leads to expect: its own, and that of logits at even odds.

    Squares of products of random signs with the derivatives of the logits are the sums of the derivatives' squares, on
    average (Hutchinson's estimator).
    """

    def one(key: Key) -> tuple[Array, Array]:
        key_position, key_signs = jax.random.split(key)
        position = link.drawn(key_position)
        logits, pull_back = jax.vjp(lambda position: link.logits(link.weight(position), feature), position)
        return position, pull_back(jax.random.rademacher(key_signs, logits.shape, logits.dtype))[0] ** 2

    positions, squares = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), _PRIOR_DRAWS))
    return (1 / positions.var(axis=0) + squares.mean(axis=0) / 4)[:, 0]


def begin_at(problem: Problem, posterior: Posterior) -> Problem:
    """Return the problem with the start of its chains at what coordinate ascent ended with."""
    probability = np.maximum(np.asarray(posterior.cluster_probability, float), 1e-30)
    begun = Begun(
        np.log(probability), np.argmax(posterior.view_probability, axis=1), np.asarray(posterior.weight_mean),
        np.sqrt(posterior.weight_variance),
    )  # fmt: skip
    return dataclasses.replace(problem, begun=_typed(begun))


def begin_with(resolved: Resolved) -> Resolved:
    """Return what coordinate ascent finds a start of: of spammers, experts who err in two ways."""
    if resolved.settings.experts != "spammer":
        return resolved
    return resolved.replace(settings=dataclasses.replace(resolved.settings, experts="two-coin"))


# ---- the sweep ----


def start(key: Key, problem: Problem) -> State:
    """Start at draws of what coordinate ascent ended with, or else of the prior, with experts in any view."""
    key_position, key_cluster, key_view, key_experts = jax.random.split(key, 4)
    begun = problem.begun
    if begun is None:
        position = jax.vmap(problem.link.drawn)(jax.random.split(key_position, problem.views))
        cluster = jax.random.categorical(key_cluster, _logits(position, problem))
        view = jax.random.randint(key_view, problem.judged.num_together.shape, 0, problem.views)
    else:
        noise = jax.random.normal(key_position, begun.mean.shape, begun.mean.dtype)
        position = jax.vmap(problem.link.position)(begun.mean + begun.deviation * noise)
        cluster, view = jax.random.categorical(key_cluster, begun.log_cluster), jnp.asarray(begun.view_of_expert)
    counts = together_counts(pairs_together(cluster, problem.judged), problem.judged)
    cells = _conditional(counts, problem) if problem.experts != "spammer" else _repeated_prior(problem)
    experts, stick = _draw_betas(key_experts, _own_cells(cells, view, problem), _stick_cells(view, problem))
    return State(cluster, view, experts, stick, position)


def sweep(key: Key, state: State, problem: Problem) -> State:
    """Draw the clusters, the experts with the sticks, and the weights."""
    key_cluster, key_experts, key_weight = jax.random.split(key, 3)
    judged, logits = problem.judged, _logits(state.position, problem)
    noise, fresh_noise = jax.random.gumbel(key_cluster, (2, *logits.shape), logits.dtype)
    pull = coupling(state.view_of_expert, _answering(state.experts, problem), judged, problem.views)
    cluster = draw_clusters(noise, state.cluster, logits, pull, judged)
    counts = together_counts(pairs_together(cluster, judged), judged)
    view, experts, stick = _draw_experts(key_experts, counts, state, problem)
    position, cluster = _draw_views(key_weight, fresh_noise, state.position, cluster, view, problem)
    return State(cluster, view, experts, stick, position)


def _logits(position: Float[Array, "view row column"], problem: Problem) -> Float[Array, "item view cluster"]:
    link = problem.link
    of_view = jax.vmap(lambda one: link.logits(link.weight(one), problem.judged.feature), out_axes=1)
    return of_view(position)


def coupling(
    view_of_expert: Int[Array, " expert"], answers: Answering, judged: Judgements, views: int
) -> Float[Array, "pair view"]:
    """Return what the answers of the experts of each view add for a pair to be together."""
    said_together, said_apart = (
        own_view(one - other, view_of_expert)[judged.answer_expert]
        for one, other in ((answers.hit, answers.false_alarm), (answers.miss, answers.rejection))
    )
    weight = judged.together * said_together + judged.apart * said_apart
    place = judged.answer_pair * views + view_of_expert[judged.answer_expert]
    return jax.ops.segment_sum(weight, place, len(judged.first) * views).reshape(-1, views)


def draw_clusters(
    noise: Float[Array, "item view cluster"], cluster: Int[Array, "item view"],
    logits: Float[Array, "item view cluster"], pull: Float[Array, "pair view"], judged: Judgements,
) -> Int[Array, "item view"]:  # fmt: skip
    """Draw the cluster of each item in each view given those of its neighbours, colour after colour.

    Parameters
    ----------
    noise : Gumbel noise; the largest of logits with such noise is a draw of the classes.
    cluster : the clusters before.
    logits : of the clusters by themselves.
    pull : what a pair gains by being together.
    judged : the pairs, and their colours.
    """
    labels = jnp.arange(logits.shape[-1])
    noisy = logits + noise
    for colour in judged.colours:
        neighbour = cluster[colour.edge_other]
        gain = jnp.where(neighbour[..., None] == labels, pull[colour.edge_pair][..., None], 0)
        gains = jax.ops.segment_sum(gain, colour.edge_node, len(colour.node), indices_are_sorted=True)
        drawn = jnp.argmax(noisy[colour.node] + gains, axis=-1).astype(cluster.dtype)
        cluster = jnp.asarray(cluster).at[colour.node].set(drawn, unique_indices=True)
    return cluster


def _draw_experts(
    key: Key, counts: Float[Array, "expert view 2"], state: State, problem: Problem
) -> tuple[Int[Array, " expert"], tuple[LogBeta, ...], LogBeta]:
    """Draw the view and the sites of each expert, and the sticks."""
    key_view, key_known, key_betas = jax.random.split(key, 3)
    prior = log_view_weight(*state.stick)
    if problem.experts == "spammer":
        fit = log_likelihood(counts, _answering(state.experts, problem), problem.judged)
        view = jax.random.categorical(key_view, prior + fit)

        def once(number: Any, carry: tuple[tuple[LogBeta, ...], LogBeta]) -> tuple[tuple[LogBeta, ...], LogBeta]:
            cells = _known_cells(jax.random.fold_in(key_known, number), counts, view, carry[0], problem)
            return _draw_betas(jax.random.fold_in(key_betas, number), cells, _stick_cells(view, problem))

        return (view, *jax.lax.fori_loop(0, _SPAMMER_ROUNDS, once, (state.experts, state.stick)))
    conditional = _conditional(counts, problem)
    evidence = log_beta(conditional).sum(axis=2)  # less that of the prior, which is the same for all views
    view = jax.random.categorical(key_view, prior + evidence)
    cells = _own_cells(conditional, view, problem)
    return (view, *_draw_betas(key_betas, cells, _stick_cells(view, problem)))


def _conditional(counts: Float[Array, "expert view 2"], problem: Problem) -> Float[Array, "expert view site 2"]:
    """Return the Beta parameters of each expert's sites, were each of the views his."""
    judged, hits, misses = problem.judged, counts[..., 0], counts[..., 1]
    rejections, false_alarms = judged.num_apart[:, None] - misses, judged.num_together[:, None] - hits
    if problem.experts == "symmetric":
        found = jnp.stack([hits + rejections, misses + false_alarms], axis=-1)[:, :, None]
    else:
        found = jnp.stack([hits, misses, rejections, false_alarms], axis=-1).reshape(*hits.shape, 2, 2)
    return found + problem.prior[:, None]


def _repeated_prior(problem: Problem) -> Float[Array, "expert view site 2"]:
    return jnp.repeat(problem.prior[:, None], problem.views, axis=1)


def _own_cells(
    conditional: Float[Array, "expert view site 2"], view: Int[Array, " expert"], problem: Problem
) -> Float[Array, "expert *view site 2"]:
    """Return the parameters of the view that each expert has; of experts by view, the prior's of the others."""
    if problem.experts == "per-view":
        own = view[:, None] == jnp.arange(problem.views)
        return jnp.where(own[:, :, None, None], conditional, problem.prior[:, None])
    return jnp.take_along_axis(conditional, view[:, None, None, None], axis=1)[:, 0]


def _known_cells(
    key: Key, counts: Float[Array, "expert view 2"], view: Int[Array, " expert"], experts: tuple[LogBeta, ...],
    problem: Problem,
) -> Float[Array, "expert site 2"]:  # fmt: skip
    """Draw how many right answers of each spammer were known, and return the parameters of knowledge and guess."""
    judged, knows = problem.judged, experts[0].one
    hits = own_view(counts[..., 0], view)
    rejections = judged.num_apart - own_view(counts[..., 1], view)
    answers = _answering(experts, problem)
    share = jnp.exp(jnp.stack([knows - answers.hit[:, 0], knows - answers.rejection[:, 0]]))
    known = jax.random.binomial(key, jnp.stack([hits, rejections]), jnp.minimum(share, 1.0))
    guessed = jnp.stack([judged.num_together, judged.num_apart]) - known
    found = jnp.stack([known.sum(axis=0), guessed.sum(axis=0), guessed[0], guessed[1]], axis=-1)
    return found.reshape(-1, 2, 2) + problem.prior


def _stick_cells(view: Int[Array, " expert"], problem: Problem) -> Float[Array, "split 2"]:
    """Return the Beta parameters of the sticks given how many experts each view has."""
    size = jnp.bincount(view, length=problem.views).astype(problem.prior.dtype)
    later = jnp.cumsum(size[::-1])[::-1] - size
    return jnp.stack([1 + size, problem.concentration + later], axis=-1)[:-1]


def _draw_betas(
    key: Key, cells: Float[Array, "expert *view site 2"], stick_cells: Float[Array, "split 2"]
) -> tuple[tuple[LogBeta, ...], LogBeta]:
    """Draw the sites of the experts and the sticks; all gammas in one call, because they are slow to compile."""
    flat = jnp.concatenate([cells.reshape(-1, 2), stick_cells])
    log_gammas = log_gamma(key, flat)
    odds = log_gammas[:, 0] - log_gammas[:, 1]
    one, rest = -jax.nn.softplus(-odds), -jax.nn.softplus(odds)
    number, shape = len(odds) - len(stick_cells), cells.shape[:-1]
    drawn = [part[:number].reshape(shape) for part in (one, rest)]
    experts = tuple(LogBeta(*(part[..., site] for part in drawn)) for site in range(shape[-1]))
    return experts, LogBeta(one[number:], rest[number:])


def _answering(experts: tuple[LogBeta, ...], problem: Problem) -> Answering:
    if problem.experts == "spammer":
        knowledge, guess = experts
        return spammer_answering(*(part[:, None] for part in (*knowledge, *guess)))
    logs = (*experts[0], *experts[-1])
    return Answering(*(part if problem.experts == "per-view" else part[:, None] for part in logs))


def _draw_views(
    key: Key, noise: Float[Array, "item view cluster"], position: Float[Array, "view row column"],
    cluster: Int[Array, "item view"], view_of_expert: Int[Array, " expert"], problem: Problem,
) -> tuple[Float[Array, "view row column"], Int[Array, "item view"]]:  # fmt: skip
    """Draw the weights given the clusters; of a view without experts, both from the prior."""
    key_moves, key_prior = jax.random.split(key)
    link, feature, views = problem.link, problem.judged.feature, problem.views
    moved, _ = jax.vmap(lambda key, one, own: draw_weights(key, one, own, link, feature), (0, 0, 1))(
        jax.random.split(key_moves, views), position, cluster
    )
    empty = jnp.bincount(view_of_expert, length=views) == 0
    drawn = jax.vmap(link.drawn)(jax.random.split(key_prior, views))
    position = jnp.where(empty[:, None, None], drawn, moved)
    fresh = jnp.argmax(_logits(position, problem) + noise, axis=-1).astype(cluster.dtype)
    return position, jnp.where(empty, fresh, cluster)


def draw_weights(
    key: Key, position: Float[Array, "row column"], cluster: Int[Array, " item"], link: Link,
    feature: Float[Array, "item feature"],
) -> tuple[Float[Array, "row column"], Float[Array, ""]]:  # fmt: skip
    """Move the weights of one view by Hamiltonian Monte Carlo, and return the probability of acceptance too.

    Parameters
    ----------
    position : of the weights; see `Link`.
    cluster : of the items, in this view.
    """

    def log_density(position: Array) -> Array:
        log_share = jax.nn.log_softmax(link.logits(link.weight(position), feature))
        return jnp.take_along_axis(log_share, cluster[:, None], axis=1).sum() + link.log_prior(position)

    def times(matrix: Array, values: Array) -> Array:
        return matrix @ values if link.is_linear else matrix[:, None] * values

    key_momentum, key_uniform = jax.random.split(key)
    dtype = position.dtype
    momentum = times(link.root, jax.random.normal(key_momentum, position.shape, dtype))
    of_step, of_acceptance = jax.random.uniform(key_uniform, (2,), dtype)
    shortest = _SHORTEST_STEP[link.is_linear]
    step = shortest * (_LONGEST_STEP / shortest) ** of_step
    at = jax.value_and_grad(log_density)

    def leapfrog(number: Any, carry: tuple) -> tuple:
        position, momentum, _, gradient = carry
        momentum = momentum + step / 2 * gradient
        position = position + step * times(link.inverse, momentum)
        value, gradient = at(position)
        return position, momentum + step / 2 * gradient, value, gradient

    def energy(value: Array, momentum: Array) -> Array:
        return (momentum * times(link.inverse, momentum)).sum() / 2 - value

    begun = (position, momentum, *at(position))
    ended = jax.lax.fori_loop(0, _LEAPFROG_STEPS, leapfrog, begun)
    gain = energy(begun[2], momentum) - energy(ended[2], ended[1])
    # A path that leaves what floats can hold is not taken.
    probability = jnp.exp(jnp.minimum(jnp.where(jnp.isnan(gain), -jnp.inf, gain), 0.0))
    return jnp.where(of_acceptance < probability, ended[0], position), probability


# ---- what the driver and the checks ask for ----


def sites(state: State, problem: Problem) -> dict[str, Array]:
    """Return the sites of the NumPyro model; without sticks where there is but one view."""
    answers = _answering(state.experts, problem)
    accuracy = {"sensitivity": jnp.exp(answers.hit), "specificity": jnp.exp(answers.rejection)}
    if problem.experts != "per-view":
        accuracy = {site: values[:, 0] for site, values in accuracy.items()}
    own = {site: jnp.exp(drawn.one) for site, drawn in zip(EXPERTS[problem.experts], state.experts, strict=True)}
    return {
        "view_of_expert": state.view_of_expert.astype(jnp.int32), **accuracy, **own,
        **({"stick": jnp.exp(state.stick.one)} if problem.views > 1 else {}),
        "weight": jax.vmap(problem.link.weight)(state.position), "cluster": state.cluster.T.astype(jnp.int8),
    }  # fmt: skip


def at(values: Mapping[str, Any], resolved: Resolved, problem: Problem) -> State:
    """Return the state at true values; clusters may be those of all items or of those that some expert judged."""
    dtype = problem.prior.dtype

    def logs(value: Any) -> LogBeta:
        value = jnp.clip(jnp.asarray(value, dtype), jnp.finfo(dtype).tiny, 1 - jnp.finfo(dtype).epsneg)
        return LogBeta(jnp.log(value), jnp.log1p(-value))

    cluster, item = jnp.asarray(values["cluster"]), problem.judged.item
    if cluster.shape[1] != len(item):
        cluster = cluster[:, item]
    return State(
        cluster.T.astype(int), jnp.asarray(values["view_of_expert"]).astype(int),
        tuple(logs(values[site]) for site in EXPERTS[problem.experts]),
        logs(values["stick"] if problem.views > 1 else jnp.zeros(0)),
        jax.vmap(problem.link.position)(jnp.asarray(values["weight"], dtype)),
    )  # fmt: skip


def redraw(key: Key, state: State, problem: Problem) -> tuple[State, Problem]:
    """Return the problem with one answer drawn anew for every expert and pair; the state keeps nothing of the old."""
    judged, view = problem.judged, state.view_of_expert
    of_answer = view[judged.answer_expert]
    same = pairs_together(state.cluster, judged)[judged.answer_pair, of_answer]
    answers = _answering(state.experts, problem)
    hit, false_alarm = (own_view(part, view)[judged.answer_expert] for part in (answers.hit, answers.false_alarm))
    noise = jax.random.uniform(key, same.shape, hit.dtype)
    together = (jnp.log(noise) < jnp.where(same, hit, false_alarm)).astype(judged.together.dtype)
    number = judged.num_experts
    num_together, num_apart = (
        jax.ops.segment_sum(said, judged.answer_expert, number) for said in (together, 1 - together)
    )
    drawn = {"together": together, "apart": 1 - together, "num_together": num_together, "num_apart": num_apart}
    return state, dataclasses.replace(problem, judged=Judgements(**{**judged._asdict(), **drawn}))


def log_likelihood_of_state(state: State, problem: Problem) -> Float[Array, ""]:
    """Return the log probability of all answers given views and clusters, which cannot be summed out."""
    counts = together_counts(pairs_together(state.cluster, problem.judged), problem.judged)
    fit = log_likelihood(counts, _answering(state.experts, problem), problem.judged)
    return own_view(fit, state.view_of_expert).sum()


GIBBS = Gibbs(
    prepare=prepare, start=start, sweep=sweep, sites=sites, begin_at=begin_at, begin_with=begin_with, at=at,
    redraw=redraw, log_likelihood=log_likelihood_of_state,
)  # fmt: skip
"""The sampler, for the driver."""
