r"""The tempered Gibbs sampler of clusterings in several views.

An expert cannot move to a view whose clusters do not fit his answers, and its clusters cannot follow while others hold
them: a chain keeps the grouping of experts that it starts with. So replicas of the state stand on a ladder of exponents
:math:`1 = b_0 > \ldots > b_{T-1} = 0` and that of rung t targets

.. math::

    p(c, \nu)\, p(W)\, p(Z \mid W)\, p(\alpha)\, p(\beta)\, \exp(b_t L), \qquad L = \log p(S \mid c, Z, \alpha, \beta).

At b = 0 experts move freely, and swaps carry groupings up (`consilience.inference.tempering`). One sweep draws, on all
rungs at once, each given all else,

1. the sticks;
2. the view of each expert with his accuracies integrated out, and at once afterwards his accuracies. With
   :math:`T_1, T_0` his answers "together" and "apart" on pairs that are together in view g, :math:`N_1, N_0` all of
   them,

   .. math::

       p(c_m = g \mid \cdot) \propto \pi_g\, B(a_0 + b T_1, b_0 + b T_0)\, B(c_0 + b (N_0 - T_0), d_0 + b (N_1 - T_1));

   of more than two answers B is the multivariate Beta function, and pairs that were shown in two ways have rows of
   their own (`likelihood`);

3. the weights of each view by Hamiltonian Monte Carlo (`links`); those of a view without experts, and all where b is
   0, from the prior;
4. the clusters, item after item; with weights from the prior they are drawn from it too, jointly.

Accuracies of spammers are no Beta variables given the answers: their views are drawn given what they know and how they
guess, and these by random walks of several sizes on their log odds.

The first ladder starts at draws of the prior, the second one where the best of several searches ended: chains whose
exponent rises to one. Ladders that agree have not kept what they started with. Coordinate ascent is not where the
second one starts: without compiled programs it takes 13 CPU seconds on 200 items and 1,200 answers, and 3 with them,
where the searches take .14; and it reads neither grades, spammers nor links of one's own.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import gammaln

from consilience.arrays import Float, Int
from consilience.inference import tempering
from consilience.models.expert_views import likelihood
from consilience.models.expert_views.judgements import Judgements, judgements
from consilience.models.expert_views.likelihood import Answering
from consilience.models.expert_views.links import Clusters, LinearLink, OwnLink
from consilience.models.expert_views.priors import check_logits, link_of, weight_prior
from consilience.models.expert_views.settings import check_clusters
from consilience.models.interface import Starts
from consilience.models.sites import Resolved

_SEARCHES, _SEARCH_SWEEPS, _FIRST_EXPONENT = 6, 100, 0.05
_WALKS, _LONGEST_WALK, _SHORTEST_WALK = 16, 2.0, 0.05    # Of spammers' sites, in each sweep; in log odds.
_ADAPTATIONS, _FEWEST_SWEEPS = 5, 10    # Parts of the warm-up, of which the last keeps the ladder; sweeps of one.
EXPONENT, LOG_LIKELIHOOD, SWAPPED, REPLICA = range(4)
LADDER = "ladder"
"""What is kept of each rung in every draw; rungs that are not there have a negative exponent."""


class Pin(NamedTuple):
    """What holds a state in the place of the answers, as far as these are not believed; see `pinned`.

    Parameters
    ----------
    view : of each expert; they keep it.
    cluster : log probabilities by which each cluster is held.
    cells : how many answers hold each probability of the sites of the experts.
    """

    view: Int[np.ndarray, " expert"]
    cluster: Float[np.ndarray, "view cluster item"]
    cells: Float[np.ndarray, "expert site answer"]


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """What a sweep reads.

    Parameters
    ----------
    judged : the answers; ``said`` and ``number`` have a first axis, of rungs with answers of their own, or of size one.
    table : which site tells how probable an answer is.
    prior : ``(expert, site, answer)``; parameters of the Beta or Dirichlet priors of the sites of the experts.
    concentration : of the sticks.
    link : from weights to logits; see `links`.
    exponent : ``(rung,)``; of the ladder that chains start with.
    adapts : whether the warm-up moves the rungs, and adds some.
    experts, views : kind of the experts, and how many views.
    pin : what rungs believe as far as they do not believe the answers; nothing, or it.
    """

    judged: Judgements
    table: likelihood.AnswerTable
    prior: Float[np.ndarray, "expert site answer"]
    concentration: float
    link: Any
    exponent: Float[np.ndarray, " rung"]
    adapts: bool
    experts: str
    views: int
    pin: Pin | None = None


class State(NamedTuple):
    """What the next sweep needs; the first axis is the rung.

    Parameters
    ----------
    cluster : of each item that some expert judged, in each view.
    view_of_expert : in which view each expert judges.
    experts : logarithms of the probabilities that the sites of the experts are: of two answers, such as sensitivity and
        one minus it. Experts by view have those of each view, others one.
    stick : the same of the broken sticks.
    weight : as the link keeps them.
    counts : the answers of each expert to the pairs that are together in each view.
    log_likelihood : of all answers; less what the pin holds.
    exponent : of the rung.
    replica : which state stands on the rung, by the rung on which it began to count.
    swap_rate : of neighbouring rungs, in the last sweep.
    rates, sweeps : the sum of these since the ladder was changed, and of how many sweeps.
    """

    cluster: Int[np.ndarray, "rung view item"]
    view_of_expert: Int[np.ndarray, "rung expert"]
    experts: Float[np.ndarray, "rung expert own site answer"]
    stick: Float[np.ndarray, "rung stick 2"]
    weight: Float[np.ndarray, "rung view ..."]
    counts: Float[np.ndarray, "rung expert view kind"]
    log_likelihood: Float[np.ndarray, " rung"]
    exponent: Float[np.ndarray, " rung"]
    replica: Int[np.ndarray, " rung"]
    swap_rate: Float[np.ndarray, " step"]
    rates: Float[np.ndarray, " step"]
    sweeps: int

    def on(self, rung: Any) -> State:
        """Return the state with those of some rungs in their places; exponents stay where they are."""
        moved: dict[str, Any] = {name: getattr(self, name)[rung] for name in (*_OF_STATE, "replica")}
        return self._replace(**moved)


_OF_STATE = State._fields[: State._fields.index("exponent")]


# ---- the problem ----


def prepare(resolved: Resolved) -> Problem:
    """Return answers, prior parameters and the ladder.

    Raises
    ------
    NotConjugate : the prior of a site of the experts is no Beta distribution.
    InvalidPrior : the prior of a site has another shape, or the link returns logits of another one.
    UnsupportedRequest : there are more clusters than judged items, or than are allowed; spammers are to give grades.
    """
    chosen, given = resolved.settings, resolved.given
    judged = of_all_rungs(judgements(resolved.data, bool(chosen.standardize))[0])
    number = len(judged.item)
    check_clusters(chosen.clusters, number)
    table = likelihood.answer_table(resolved)
    prior = np.stack([resolved.concentration(site) for site in table.sites], axis=1)
    link: Any
    if given.logits is None and given.weight is None:
        link = LinearLink(judged.feature, float(given.weight_scale), chosen.clusters)
    else:
        link = OwnLink(judged.feature, weight_prior(resolved, judged.feature.shape[1]), link_of(given))
        returned = jax.eval_shape(link.link, np.zeros(link.prior.event_shape, np.float32), judged.feature)
        check_logits(returned.shape, (number, chosen.clusters))
    exponent = tempering.geometric_ladder(chosen.rungs or tempering.FIRST_RUNGS)
    return Problem(
        judged, table, np.asarray(prior, float), float(given.concentration), link, exponent, not chosen.rungs,
        chosen.experts, resolved.size("view"),
    )


def of_all_rungs(judged: Judgements) -> Judgements:
    """Return judgements whose counts have a first axis of size one, and are floats."""
    return judged._replace(said=judged.said[None].astype(float), number=judged.number[None].astype(float))


def starts(resolved: Resolved) -> Starts:
    """Return how many ladders there are; they start apart, and are to meet."""
    return Starts(draws=500, chains=resolved.settings.ladders, warmup=300, words=())


def start(random: np.random.Generator, problem: Problem, chain: int = 0) -> State:
    """Start the first ladder at draws of the prior, the second one at the end of a search, and so on."""
    if chain % 2 == 0:
        return prior_state(random, problem, problem.exponent)
    state = prior_state(random, problem, np.full(_SEARCHES, _FIRST_EXPONENT))
    for exponent in np.linspace(_FIRST_EXPONENT, 1, _SEARCH_SWEEPS):
        state = moved(random, state._replace(exponent=np.full(_SEARCHES, exponent)), problem)
    best = np.full(len(problem.exponent), state.log_likelihood.argmax())
    return on_ladder(state.on(best), problem.exponent)


def prior_state(random: np.random.Generator, problem: Problem, exponent: Float[np.ndarray, " rung"]) -> State:
    """Draw all but the answers from the prior."""
    rungs, number = len(exponent), len(problem.prior)
    stick = _log_shares(random, np.broadcast_to((1.0, problem.concentration), (rungs, problem.views - 1, 2)))
    view = _drawn(random, np.repeat(likelihood.log_view_weight(stick[..., 0], stick[..., 1])[:, None], number, axis=1))
    own = problem.views if problem.experts == "per-view" else 1
    cells = np.broadcast_to(problem.prior[:, None], (rungs, number, own, *problem.prior.shape[1:]))
    experts, weight = _log_shares(random, cells), problem.link.drawn(random, rungs, problem.views)
    cluster = _drawn(random, problem.link.logits(weight).swapaxes(-1, -2))
    return _begun(cluster, view, experts, stick, weight, exponent, problem)


def _begun(
    cluster: np.ndarray, view: np.ndarray, experts: np.ndarray, stick: np.ndarray, weight: np.ndarray,
    exponent: Float[np.ndarray, " rung"], problem: Problem,
) -> State:  # fmt: skip
    """Return a state with its counts, on a ladder."""
    state = State(cluster.astype(np.int8), view, experts, stick, weight, *(np.zeros(0),) * 6, 0)
    return on_ladder(counted(state, problem), exponent)


def on_ladder(state: State, exponent: Float[np.ndarray, " rung"]) -> State:
    """Return the state on a ladder of as many rungs, on which nothing was counted yet."""
    none = np.zeros(len(exponent) - 1)
    return state._replace(
        exponent=exponent, replica=np.arange(len(exponent)), swap_rate=none, rates=none, sweeps=0
    )


# ---- the sweep ----


def sweep(random: np.random.Generator, state: State, problem: Problem) -> State:
    """Draw all of the state on each rung, then swap."""
    state = moved(random, state, problem)
    order, rate = tempering.swapped(random.random(len(state.exponent) - 1), state.exponent, state.log_likelihood)
    return state.on(order)._replace(swap_rate=rate, rates=state.rates + rate, sweeps=state.sweeps + 1)


def warmed(state: State, problem: Problem, done: int, warmup: int) -> State:
    """Move the rungs so that rates of swaps are equal, and add some where they are low, after parts of the warm-up."""
    every = max(warmup // _ADAPTATIONS, _FEWEST_SWEEPS)
    if problem.adapts and done % every == 0 and 0 < done <= warmup - every:
        rate = state.rates / state.sweeps
        exponent = tempering.adapted(state.exponent, rate, tempering.rungs_wanted(rate))
        nearest = np.abs(exponent[:, None] - state.exponent).argmin(axis=1)
        return on_ladder(state.on(nearest), exponent)
    return on_ladder(state, state.exponent) if done == warmup else state


def moved(random: np.random.Generator, state: State, problem: Problem) -> State:
    """Draw all of the state on each rung."""
    size = (state.view_of_expert[:, :, None] == np.arange(problem.views)).sum(axis=1)
    stick = _log_shares(random, likelihood.stick_parameters(size, problem.concentration))
    view, experts = _drawn_experts(random, state, likelihood.log_view_weight(stick[..., 0], stick[..., 1]), problem)
    # Of what nothing is believed, weights are drawn from the prior: of views without experts, and on the last rung.
    believes = (state.exponent > 0) | (problem.pin is not None)
    used = (view[:, :, None] == np.arange(problem.views)).any(axis=1) & believes[:, None]
    weight = problem.link.moved(random, state.weight, state.cluster, used)
    apart, together = (likelihood.own_view(part, view) for part in _answering(experts, problem))
    gain = state.exponent[:, None, None] * (together - apart)
    logits = problem.link.logits(weight)
    if problem.pin is not None:
        logits = logits + (1 - state.exponent)[:, None, None, None] * problem.pin.cluster
    cluster = _clusters_drawn(random, state.cluster, logits, gain, view, problem.judged)
    state = state._replace(cluster=cluster, view_of_expert=view, experts=experts, stick=stick, weight=weight)
    return counted(state, problem)


def counted(state: State, problem: Problem) -> State:
    """Return the state with its counts and log likelihood."""
    counts = counts_together(state.cluster, problem.judged)
    fit = likelihood.log_likelihood(counts, _answering(state.experts, problem), problem.judged.number)
    own = np.take_along_axis(fit, state.view_of_expert[..., None], axis=-1)
    return state._replace(counts=counts, log_likelihood=own.sum(axis=(1, 2)) - _held(state, problem.pin))


def _held(state: State, pin: Pin | None) -> Float[np.ndarray, "#rung"]:
    """Return the logarithm of what a pin holds states by."""
    if pin is None:
        return np.zeros(1)
    by_item = np.take_along_axis(pin.cluster[None], state.cluster[:, :, None].astype(np.intp), axis=2)
    own = pin.view if state.experts.shape[2] > 1 else np.zeros(len(pin.view), int)
    rows = state.experts[:, np.arange(len(own)), own]
    return by_item.sum(axis=(1, 2, 3)) + (pin.cells * rows).sum(axis=(1, 2, 3))


def _clusters_drawn(
    random: np.random.Generator, cluster: Clusters, logits: Float[np.ndarray, "rung view cluster item"],
    gain: Float[np.ndarray, "rung expert kind"], view: Int[np.ndarray, "rung expert"], judged: Judgements,
) -> Clusters:  # fmt: skip
    """Draw the clusters of all items, one item after the other; see `loops`."""
    # Machine code is compiled, or read from disk, when it is first asked for.
    from consilience.models.expert_views import loops

    cluster = cluster.copy()
    loops.draw_clusters(
        random.random(cluster.shape), cluster, logits, gain, view, judged.answer_expert, judged.answer_pair,
        judged.said, judged.begin, judged.neighbour, judged.neighbour_pair,
    )
    return cluster


def counts_together(cluster: Clusters, judged: Judgements) -> Float[np.ndarray, "rung expert view kind"]:
    """Count the answers of each expert to the pairs that are together in each view."""
    from consilience.models.expert_views import loops

    counts = np.zeros((len(cluster), judged.num_experts, cluster.shape[1], judged.said.shape[-1]))
    loops.count_together(
        cluster, judged.first, judged.second, judged.answer_expert, judged.answer_pair, judged.said, counts
    )
    return counts


def drawn_given(
    random: np.random.Generator, view: Int[np.ndarray, "rung expert"], cluster: Clusters, answers: Answering,
    log_weight: Float[np.ndarray, "rung view"], logits: Float[np.ndarray, "rung view cluster item"],
    judged: Judgements, sweeps: int,
) -> tuple[Int[np.ndarray, "rung expert"], Clusters]:  # fmt: skip
    """Draw views and clusters given all else, by sweeps over both.

    Parameters
    ----------
    view, cluster : where the sweeps start.
    answers, log_weight, logits : how experts answer, and the log prior probabilities of views and clusters.
    judged : the answers, `of_all_rungs`.
    sweeps : how many.
    """
    for _ in range(sweeps):
        apart, together = (likelihood.own_view(part, view) for part in answers)
        cluster = _clusters_drawn(random, cluster, logits, together - apart, view, judged)
        fit = likelihood.log_likelihood(counts_together(cluster, judged), answers, judged.number)
        view = _drawn(random, log_weight[:, None] + fit)
    return view, cluster


def _drawn_experts(
    random: np.random.Generator, state: State, log_weight: Float[np.ndarray, "rung view"], problem: Problem
) -> tuple[Int[np.ndarray, "rung expert"], Float[np.ndarray, "rung expert own site answer"]]:
    """Draw the view and the sites of each expert."""
    if problem.experts == "spammer":
        fit = likelihood.log_likelihood(state.counts, _answering(state.experts, problem), problem.judged.number)
        view = _drawn(random, log_weight[:, None] + state.exponent[:, None, None] * fit)
        view = view if problem.pin is None else state.view_of_expert
        return view, _walked(random, state, view, problem)
    conditional = _conditional(state.counts, state.exponent[:, None, None, None], problem)
    view = _drawn(random, log_weight[:, None] + _summed(log_beta(conditional)))
    if problem.pin is not None:
        view = state.view_of_expert
        conditional = conditional + (1 - state.exponent)[:, None, None, None, None] * problem.pin.cells[:, None]
    if problem.experts == "per-view":
        own = (view[:, :, None] == np.arange(problem.views))[..., None, None]
        return view, _log_shares(random, np.where(own, conditional, problem.prior[:, None]))
    return view, _log_shares(random, np.take_along_axis(conditional, view[:, :, None, None, None], axis=2))


def _conditional(
    counts: Float[np.ndarray, "rung expert view kind"], exponent: Any, problem: Problem
) -> Float[np.ndarray, "rung expert view site answer"]:
    """Return the parameters of each expert's sites, were each of the views his."""
    found = likelihood.site_counts(counts, problem.judged.number[:, :, None], problem.table.cells)
    return problem.prior[:, None] + (exponent * found).reshape(*found.shape[:-1], *problem.prior.shape[1:])


def _walked(
    random: np.random.Generator, state: State, view: Int[np.ndarray, "rung expert"], problem: Problem
) -> Float[np.ndarray, "rung expert own site answer"]:
    """Move what spammers know and how they guess, by random walks on the log odds."""
    counts = np.take_along_axis(state.counts, view[:, :, None, None], axis=2)

    def log_density(sites: np.ndarray) -> np.ndarray:
        # Of log odds the density has the site and one minus it as factors more.
        prior = (problem.prior * sites[:, :, 0]).sum(axis=(-2, -1))
        fit = likelihood.log_likelihood(counts, _answering(sites, problem), problem.judged.number)[..., 0]
        return prior + state.exponent[:, None] * fit

    sites = state.experts
    density = log_density(sites)
    for _ in range(_WALKS):
        size = _SHORTEST_WALK * (_LONGEST_WALK / _SHORTEST_WALK) ** random.random((*density.shape, 1, 1))
        odds = sites[..., 0] - sites[..., 1] + size * random.standard_normal(sites.shape[:-1])
        other = -np.logaddexp(0, np.stack([-odds, odds], axis=-1))
        value = log_density(other)
        taken = np.log(1 - random.random(density.shape)) < value - density
        sites, density = np.where(taken[..., None, None, None], other, sites), np.where(taken, value, density)
    return sites


# ---- parts of it ----


def _answering(experts: Float[np.ndarray, "rung expert own site answer"], problem: Problem) -> Answering:
    """Return how experts answer, ``(rung, expert, own, kind)``."""
    return likelihood.spammer_answering(experts) if problem.experts == "spammer" else problem.table.read(experts)


def log_beta(cells: Float[np.ndarray, "*batch answer"]) -> Float[np.ndarray, "*batch"]:
    """Return the logarithm of the multivariate Beta function."""
    return _summed(gammaln(cells)) - gammaln(_summed(cells))


def _summed(values: Float[np.ndarray, "*batch few"]) -> Float[np.ndarray, "*batch"]:
    """Sum over a last axis that is short, of which NumPy would sum one row after the other."""
    return functools.reduce(np.add, np.moveaxis(values, -1, 0))


def _log_shares(
    random: np.random.Generator, cells: Float[np.ndarray, "*batch answer"]
) -> Float[np.ndarray, "*batch answer"]:
    """Draw Beta or Dirichlet variables; return the logarithms of the probabilities, however near to 0 or 1 they are."""
    # A Gamma variable of shape a is one of shape a + 1 times a uniform one to the power 1 / a.
    logs = np.log(random.standard_gamma(cells + 1)) + np.log(1 - random.random(cells.shape)) / cells
    return logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True)


def _drawn(random: np.random.Generator, logits: Float[np.ndarray, "*batch code"]) -> Int[np.ndarray, "*batch"]:
    """Draw codes by their logits: the largest of these with Gumbel noise."""
    return (logits - np.log(-np.log(1 - random.random(logits.shape)))).argmax(axis=-1)


# ---- what the driver and the checks ask for ----


def sites(state: State, problem: Problem, rung: int = 0) -> dict[str, np.ndarray]:
    """Return the sites of the NumPyro model on a rung, and of each rung what `LADDER` keeps.

    Without sticks where there is but one view.
    """
    answers = Answering(*(part[rung] for part in _answering(state.experts, problem)))
    found = likelihood.accuracies(answers, problem.judged.scale)
    for number, site in enumerate(problem.table.sites):
        probability = np.exp(state.experts[rung, :, :, number])
        found[site] = probability if site.startswith("answers") else probability[..., 0]
    if problem.experts != "per-view":
        found = {site: values[:, 0] for site, values in found.items()}
    ladder = np.full((tempering.MOST_RUNGS, 4), [-1.0, 0, 0, 0])
    for column, values in ((EXPONENT, state.exponent), (LOG_LIKELIHOOD, state.log_likelihood),
                           (SWAPPED, state.swap_rate), (REPLICA, state.replica)):  # fmt: skip
        ladder[: len(values), column] = values
    return {
        "view_of_expert": state.view_of_expert[rung].astype(np.int32), **found,
        **({"stick": np.exp(state.stick[rung, :, 0])} if problem.views > 1 else {}),
        "weight": problem.link.weight(state.weight[rung]), "cluster": state.cluster[rung],
        "log_likelihood": state.log_likelihood[rung], LADDER: ladder,
    }  # fmt: skip


def at(values: Mapping[str, Any], resolved: Resolved, problem: Problem) -> State:
    """Return the state of one rung at true values; clusters may be those of all items or of those that were judged."""

    def logs(value: Any, whole: bool = False) -> np.ndarray:
        value = np.clip(np.asarray(value, float), np.finfo(float).tiny, 1 - np.finfo(float).epsneg)
        return np.log(value) if whole else np.stack([np.log(value), np.log1p(-value)], axis=-1)

    cluster, item = np.asarray(values["cluster"]), problem.judged.item
    if cluster.shape[1] != len(item):
        cluster = cluster[:, item]
    experts = np.stack([logs(values[site], site.startswith("answers")) for site in problem.table.sites], axis=-2)
    experts = experts if problem.experts == "per-view" else experts[:, None]
    stick = logs(values["stick"] if problem.views > 1 else np.zeros(0))
    weight, view = problem.link.position(values["weight"]), np.asarray(values["view_of_expert"], int)
    return _begun(cluster[None], view[None], experts[None], stick[None], weight[None], np.ones(1), problem)


def redraw(random: np.random.Generator, state: State, problem: Problem) -> tuple[State, Problem]:
    """Return the problem with one answer drawn anew for every expert and pair, on each rung one of its own."""
    judged, view = problem.judged, state.view_of_expert
    expert, pair, rung = judged.answer_expert, judged.answer_pair, np.arange(len(view))[:, None]
    of_answer = view[:, expert]
    same = state.cluster[rung, of_answer, judged.first[pair]] == state.cluster[rung, of_answer, judged.second[pair]]
    logs = [likelihood.own_view(part, view)[:, expert] for part in _answering(state.experts, problem)]
    shape = (len(expert), judged.num_orders, judged.num_answers)
    order = judged.said[0].reshape(shape).sum(axis=-1).argmax(axis=-1)
    by_order = np.where(same[..., None], *logs[::-1]).reshape(len(view), *shape)
    answer = _drawn(random, by_order[:, np.arange(len(expert)), order])
    said = np.eye(judged.said.shape[-1])[order * judged.num_answers + answer]
    number = np.eye(len(problem.prior))[expert].T @ said
    judged = judged._replace(said=said, number=number)
    problem = dataclasses.replace(problem, judged=judged)
    return counted(state, problem), problem
