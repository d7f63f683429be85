r"""Coordinate ascent and EM over any channel.

With :math:`q_i(t)` the probabilities of the labels, n the outcomes of the simplices that they make one expect, and a
the concentrations of the prior,

| | logarithms | update | objective, at the tree that comes in |
|---|---|---|---|
| CAVI | :math:`\psi(c) - \psi(\sum c)` | :math:`c = a + n` | :math:`\sum_i \log Z_i - \sum \mathrm{KL}(\mathrm{Dir}(c) \| \mathrm{Dir}(a))` |
| EM | :math:`\log p` | :math:`p \propto n + s` | :math:`\sum_i \log Z_i + s \sum \log p` |

:math:`Z_i` normalises :math:`q_i(t) \propto \exp(\log p_t + \sum_n w_n \log p(l_n \mid t))`, and s is the smoothing of a
model, zero for maximum likelihood. Zeros of EM are legitimate and final: what an annotator never did has probability
zero. Simplices about which nothing is known, such as the row of a class that an annotator never saw, are uniform.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy

from consilience.arrays import Array, Float, Int, Key
from consilience.errors import UnsupportedRequest
from consilience.models.crowd.channel import Channel, Found, counted, e_step, require_labels
from consilience.models.crowd.gate import signal
from consilience.models.crowd.simplices import (
    PREVALENCE,
    Tree,
    divergences,
    expected_logs,
    factors,
    flat_logs,
    level_tree,
    logs,
    padded_tree,
    prior_tree,
    random_logs,
    shares,
    used_sites,
    variables,
)
from consilience.models.crowd.votes import (
    Votes,
    require_annotators,
    shard_votes,
    starting_shares,
    vote_shares,
    votes_of,
    with_start,
)
from consilience.models.gold import require_gold
from consilience.models.interface import Ascent, Shards, Terms, Total, unsharded
from consilience.models.posterior import Closed, Estimate
from consilience.models.rows import copies
from consilience.models.sites import Resolved
from consilience.notes import Remedy

# As many sweeps as the program of MACE makes from each of its starts.
_SWEEPS_OF_A_RESTART = 50
# Concentrations are learned when the labels have settled a little.
_FIRST_SWEEPS = 3
# The part of the votes in labels of an earlier fit at which EM starts: an annotator's zero would be final, though new
# annotations speak against it. Of 25 simulated updates 7 ended in another maximum than a fresh fit without it, 5 of
# them in a lower one; with it 2 did, in a higher one.
_OF_VOTES = 0.01
# Logarithms that are extrapolated: those of smaller probabilities would run away.
_TINY = 1e-12


class Problem(NamedTuple):
    """What the steps read.

    Parameters
    ----------
    votes : the annotations.
    prior : concentrations of the priors; of EM, pseudo-counts.
    hyper : the numbers of the prior of learned concentrations; empty where they are given.
    restart : numbers of the random starts.
    """

    votes: Votes
    prior: Tree
    hyper: Float[Array, " number"]
    restart: Int[Array, " restart"]


class State(NamedTuple):
    """Where an ascent is.

    Parameters
    ----------
    tree : concentrations, or probabilities of EM, that are the best for ``responsibility``.
    responsibility : shape ``(item, class)``; probabilities of the labels.
    prior : the learned concentrations of the prior; empty where they are given.
    sweep : how many there were.
    """

    tree: Tree
    responsibility: Float[Array, "item class"]
    prior: Tree
    sweep: Int[Array, ""]


def problem_of(channel: Channel, resolved: Resolved, prior: Tree) -> Problem:
    """Collect what the steps read, on the host."""
    learned = np.zeros(0) if channel.hyper is None else channel.hyper(resolved)
    restart, votes = np.arange(resolved.settings.restarts, dtype=np.int32), votes_of(resolved)
    prior = padded_tree(prior, votes.num_annotators)
    return Problem(votes, prior, np.asarray(learned, jnp.result_type(float)), restart)


def check_annotators(channel: Channel, resolved: Resolved, name: str) -> None:
    """Refuse what the channel cannot be fitted to.

    Raises
    ------
    UnsupportedRequest : the annotators are unknown, or there are too few labels, or no gold labels to learn from.
    TooLarge : a table would not fit.
    """
    data = resolved.data
    require_gold(resolved)
    require_labels(channel, data, name)
    sizes = {"annotator": data.num_annotators, "class": data.num_labels, "label": data.num_labels}
    largest = max(int(np.prod([sizes[one] for one in site.dims])) for site in used_sites(resolved))
    if channel.occurring:
        instead = ", or list what occurs by {method} and {candidates}"
        remedies = Remedy("method", "cavi"), Remedy("candidates", "observed")
        require_annotators(data, name, largest, instead, *remedies)
    else:
        require_annotators(data, name, largest)


def _shard(hidden: str) -> Callable[[Problem, int], Shards]:
    def shard(problem: Problem, number: int) -> Shards:
        real = int(problem.votes.real.sum())
        votes, lengths = shard_votes(problem.votes, number, real)
        prior, hyper, restart = copies((problem.prior, problem.hyper, problem.restart), number)
        return Shards(Problem(votes, prior, hyper, restart), {hidden: lengths})

    return shard


def _started(channel: Channel, start_logs: Tree | None, problem: Problem, total: Total) -> tuple[Any, Tree]:
    """Return the probabilities of the labels that an ascent starts from, and the outcomes that they make one expect."""
    flat = flat_logs(problem.prior) if start_logs is None else start_logs
    found = e_step(channel, flat, problem.votes)
    responsibility = found.responsibility
    if start_logs is None and (len(problem.votes.start) or not channel.flat_start):
        responsibility = starting_shares(problem.votes, total)
    return responsibility, counted(channel, found.evidence, responsibility, flat, problem.votes, total)


def _ascent(
    channel: Channel, name: str, hidden: str, *, prepare: Callable[[Resolved], Problem],
    logs_of: Callable[[Tree], Tree], update: Callable[[Tree, Tree], Tree],
    penalty: Callable[[Tree, Tree, Tree], Tree], finish: Callable[[dict[str, Any], Resolved], Any],
    **more: Callable[..., Any],
) -> Ascent:  # fmt: skip
    """Return the ascent of these logarithms, this update and this penalty of a tree; ``more`` as in `Ascent`."""

    def begin(start_logs: Tree | None, problem: Problem, total: Total) -> State:
        responsibility, counts = _started(channel, start_logs, problem, total)
        prior = problem.prior if len(problem.hyper) else {}
        return State(update(counts, problem.prior), responsibility, prior, jnp.zeros((), jnp.int32))

    def step(state: State, problem: Problem, total: Total = unsharded) -> tuple[State, Terms]:
        """Update the labels given the parameters, and the parameters given the labels."""
        log_tree, prior = logs_of(state.tree), state.prior or problem.prior
        found = e_step(channel, log_tree, problem.votes)
        counts = counted(channel, found.evidence, found.responsibility, log_tree, problem.votes, total)
        terms = _terms(found, penalty(state.tree, prior, log_tree), problem.votes, total)
        following = prior
        if len(problem.hyper):
            assert channel.pooled is not None
            learned = channel.pooled(prior, counts, problem.hyper)
            following = _learned(prior, learned, state.sweep, problem.votes)
        kept = following if state.prior else {}
        return State(update(counts, following), found.responsibility, kept, state.sweep + 1), terms

    def start(key: Key | None, problem: Problem, total: Total = unsharded) -> State:
        """Return the state after the start of the model, or the highest of that one and of random ones."""
        own = begin(None, problem, total)
        if key is None or not len(problem.restart):
            return own

        def climb(state: State) -> tuple[State, Any]:
            state = jax.lax.fori_loop(
                0, _SWEEPS_OF_A_RESTART, lambda _, state: step(state, problem, total)[0], state
            )
            return state, step(state, problem, total)[1].sum(total)

        def climb_from(number: Any) -> tuple[State, Any]:
            return climb(begin(random_logs(jax.random.fold_in(key, number), problem.prior), problem, total))

        (first, height), (others, heights) = climb(own), jax.lax.map(climb_from, problem.restart)
        states = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, others)
        best = jnp.argmax(jnp.concatenate([height[None], heights]))
        return jax.tree.map(lambda values: values[best], states)

    def sites(state: State, problem: Problem, total: Total = unsharded) -> dict[str, Array]:
        """Return the tree, the probabilities of the labels, and learned concentrations as ``prior.SITE``."""
        learned = {f"prior.{site}": values for site, values in state.prior.items() if site != PREVALENCE}
        return {**state.tree, hidden: state.responsibility, **learned}

    return Ascent(
        name=name, prepare=prepare, start=start, step=step, sites=sites, finish=finish, shard=_shard(hidden),
        lengths=lambda problem: _lengths(problem, hidden), of_parts=True,
        moved=lambda before, after: jnp.abs(after.responsibility - before.responsibility).max(),
        climbs=lambda problem: len(getattr(problem, "restart", ())) > 0,
        **more,
        begin_from=lambda problem, ended: _begun(problem, ended[hidden], _OF_VOTES if name == "em" else 0.0),
    )  # fmt: skip


def _terms(found: Found, penalties: Tree, votes: Votes, total: Total) -> Terms:
    """Return the terms of the objective; their number is without those of items and annotators that pad."""
    constant, alike = found.evidence.constant(votes), [-penalties[site] for site in penalties if site == PREVALENCE]
    of_annotators = [-own for site, own in penalties.items() if site != PREVALENCE]
    (of_annotators if len(constant) == votes.num_annotators else alike).append(constant)
    rows = jnp.concatenate([own.reshape(votes.num_annotators, -1) for own in of_annotators], axis=1)
    rows = jnp.where(votes.real_annotator[:, None] > 0, rows, 0.0)
    shared = jnp.concatenate([jnp.ravel(own) for own in [*alike, rows]])
    number = total(votes.real.sum()) + shared.size - rows.size + votes.real_annotator.sum() * rows.shape[1]
    return Terms(found.log_evidence, shared, number)


def _learned(prior: Tree, learned: Tree, sweep: Array, votes: Votes) -> Tree:
    """Return learned concentrations, when it is time to learn; annotators that pad keep theirs, and do not move."""
    now = (sweep >= _FIRST_SWEEPS) & (votes.real_annotator > 0)

    def of_site(old: Array, new: Array) -> Array:
        return jnp.where(now.reshape(-1, *(1,) * (old.ndim - 1)), new, old)

    return {site: own if site == PREVALENCE else of_site(own, learned[site]) for site, own in prior.items()}


def _lengths(problem: Problem, hidden: str) -> dict[str, int]:
    """Return how many rows of each array are real."""
    annotators = int(problem.votes.real_annotator.sum())
    sites = [site for site in problem.prior if site != PREVALENCE]
    sites += [f"prior.{site}" for site in sites] if len(problem.hyper) else []
    return {hidden: int(problem.votes.real.sum()), **dict.fromkeys(sites, annotators)}


def _begun(problem: Problem, probability: Float[np.ndarray, "item class"], of_votes: float) -> Problem:
    """Return the problem of an ascent that starts at these probabilities of the labels, and nowhere else."""
    if of_votes:
        shares = np.asarray(vote_shares(problem.votes, unsharded))[: len(probability)]
        probability = (1 - of_votes) * probability + of_votes * shares
    return problem._replace(votes=with_start(problem.votes, probability), restart=problem.restart[:0])


def unsuited(resolved: Resolved) -> str:
    """Return why coordinate ascent, which is then over-certain, is not what `auto` takes; empty where it is.

    Of data that several processes share no process can tell: a fit that is loaded again can.
    """
    if not resolved.data.is_whole:
        return ""
    found = signal(resolved.data)
    if not found.fires:
        return ""
    return "the annotators agree no more than chance would have them, where CAVI is too certain"


def cavi_of(channel: Channel, member: str, hidden: str) -> Ascent:
    """Return coordinate ascent for the channel of a member, whose probabilities of labels bear a name."""

    def prepare(resolved: Resolved) -> Problem:
        check_annotators(channel, resolved, member)
        return problem_of(channel, resolved, prior_tree(resolved))

    def finish(values: dict[str, Any], resolved: Resolved) -> Closed:
        used = used_sites(resolved)
        values = values if channel.earlier is None else channel.earlier(values)
        learned = {name: own for name, own in values.items() if name.startswith("prior.")}
        return Closed(
            factors({site.name: values[site.name] for site in used}, used), {hidden: values[hidden], **learned}
        )

    return _ascent(
        channel, "cavi", hidden, prepare=prepare, logs_of=expected_logs, finish=finish, penalty=divergences,
        update=lambda counts, prior: {site: prior[site] + own for site, own in counts.items()}, unsuited=unsuited,
        # Any concentrations are an approximation with a bound of its own. EM is not extrapolated: on two of nine public
        # sets it would end in another mode than the published steps.
        coordinates=lambda state: jax.tree.map(lambda own: jnp.log(own + _TINY), state.tree),
        # Exactly back to what it was: else annotators that pad would move.
        at=lambda found, state: state._replace(
            tree=jax.tree.map(lambda own: jnp.maximum(jnp.exp(own) - _TINY, _TINY), found)
        ),
    )  # fmt: skip


def em_of(channel: Channel, member: str, hidden: str, priors: type) -> Ascent:
    """Return EM, maximum likelihood with the smoothing of the settings; priors have no part in it.

    Raises
    ------
    UnsupportedRequest : when it is prepared with priors of one's own.
    """

    def prepare(resolved: Resolved) -> Problem:
        check_annotators(channel, resolved, member)
        if resolved.given != priors():
            raise UnsupportedRequest(
                "EM is a maximum-likelihood estimate, in which priors have no part; leave them out, or use {method}",
                Remedy("method", "cavi"),
            )
        smoothing = resolved.settings.smoothing / resolved.data.num_labels
        problem = problem_of(channel, resolved, level_tree(resolved, smoothing, 0.0))
        return problem._replace(hyper=problem.hyper[:0])

    def finish(values: dict[str, Any], resolved: Resolved) -> Estimate:
        used = used_sites(resolved)
        return Estimate(
            variables({site.name: values[site.name] for site in used}, used), {hidden: values[hidden]}
        )

    def penalty(tree: Tree, smoothing: Tree, log_tree: Tree) -> Tree:
        return {site: -xlogy(smoothing[site], own) for site, own in tree.items()}

    return _ascent(
        channel, "em", hidden, prepare=prepare, logs_of=logs, update=shares, finish=finish, penalty=penalty,
    )  # fmt: skip
