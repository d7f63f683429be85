r"""Gibbs sampling over any channel: labels given parameters, parameters given labels.

.. math::

    T_i \propto p_t \prod_n p(l_n \mid t)^{w_n}, \qquad n \mid T, \qquad
    \text{every simplex} \sim \mathrm{Dir}(a + n).

The labels are drawn anew in every sweep and not kept: given the parameters of a draw the items are independent, so that
the truth draws them when somebody asks, and a run needs no memory for draws × items.

**Starts.** Where annotators agree no more than chance would have them, the posterior has a ridge for each annotator
whom it may take for the expert. Five short chains then start at the vote shares and at the labels of the four
annotators who gave most, and are pooled; that they do not meet is what there is to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.errors import NotConjugate
from consilience.models.crowd.ascent import check_annotators
from consilience.models.crowd.channel import Channel, counted, joint, log_evidence
from consilience.models.crowd.gate import signal
from consilience.models.crowd.groups import counted_by_group
from consilience.models.crowd.simplices import (
    PREVALENCE,
    Tree,
    draw,
    flat_logs,
    logs_of_variables,
    padded_tree,
    prior_tree,
    shares,
    simplices,
    used_sites,
    variables,
)
from consilience.models.crowd.votes import Votes, listed, vote_shares, votes_by_item, votes_of, with_cells
from consilience.models.interface import Gibbs, Starts, unsharded
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved, Sites
from consilience.models.special import finite_log

# Annotators at whose labels a chain starts, and the sweeps of a short chain.
_MOST_EXPERTS, _WARMUP, _DRAWS = 4, 50, 100


class Problem(NamedTuple):
    """What a sweep reads.

    Parameters
    ----------
    votes : the annotations.
    prior : concentrations of the priors.
    start : int32, shape ``(start, item)``; labels at which chains start, -1 where they are drawn from the votes.
    last : logarithms of parameters ``(start, …)`` at which chains start in the place of that; empty where they do not.
    """

    votes: Votes
    prior: Tree
    start: Int[Array, "start item"]
    last: Tree


def gibbs_of(channel: Channel, member: str, sites: Sites) -> Gibbs:
    """Return the sampler for the channel of a member.

    Raises
    ------
    NotConjugate : when it is prepared for weights that its conditionals do not allow.
    """
    own = tuple(sites)

    def prepare(resolved: Resolved) -> Problem:
        check_annotators(channel, resolved, member)
        weight = np.asarray(counted_by_group(resolved).data.weight, float)
        if channel.whole_weights and not np.array_equal(weight, np.round(weight)):
            raise NotConjugate(
                "the weights of some annotations are no whole numbers; the Gibbs sampler takes a weight as that many "
                "annotations"
            )
        votes = votes_of(resolved)
        prior = padded_tree(prior_tree(resolved), votes.num_annotators)
        start = np.full((1, votes.num_items), -1, np.int32)
        if signal(resolved.data).fires:
            start = np.concatenate([start, _labels_of_experts(resolved, votes.num_items)])
        return Problem(votes, prior, start, {})

    def sweep(key: Key, logs: Tree, problem: Problem) -> Tree:
        """Draw the labels of all items given the parameters, and the parameters given the labels."""
        key_label, key_parameters = jax.random.split(key)
        log_joint, evidence = joint(channel, logs, problem.votes)
        label = draw_labels(key_label, log_joint)
        return _given_labels(channel, key_parameters, label, evidence, logs, problem)

    def start(key: Key, problem: Problem, chain: Any = 0) -> Tree:
        """Return the parameters that labels make one expect: those of a start, or drawn with one vote more for all.

        Chains of an earlier fit go on where they ended.
        """
        if problem.last:
            return {site: jnp.asarray(own)[chain % len(own)] for site, own in problem.last.items()}
        votes = problem.votes
        size, num_labels = votes_by_item(votes)[:, None], votes.num_labels
        found = vote_shares(votes, unsharded)
        weight = jnp.log(size * found + 1 / num_labels) + jnp.where(jnp.isfinite(votes.log_prior), 0.0, -jnp.inf)
        given = jnp.asarray(problem.start)[chain % len(problem.start)]
        label = jnp.where(given >= 0, given, draw_labels(key, weight))
        logs = flat_logs(problem.prior)
        certain = jax.nn.one_hot(label, num_labels, dtype=votes.dtype) * votes.real[:, None]
        counts = counted(channel, channel.evidence(logs, num_labels), certain, logs, votes)
        # Expected, not drawn: a program for draws of all parameters takes seconds to compile, and a sweep draws them.
        return {site: finite_log(own) for site, own in shares(counts, problem.prior).items()}

    def kept(logs: Tree, problem: Problem) -> dict[str, Array]:
        """Return the variables of the model."""
        return variables({site: jnp.exp(values) for site, values in logs.items()}, own)

    def at(values: Mapping[str, Any], resolved: Resolved, problem: Problem) -> Tree:
        """Return the state at true values, which may be traced; annotators that pad are like the last one."""
        found = logs_of_variables(values, used_sites(resolved))
        rows = np.minimum(np.arange(problem.votes.num_annotators), resolved.data.num_annotators - 1)
        padded = {site: value if site == PREVALENCE else value[rows] for site, value in found.items()}
        return {site: jnp.asarray(value, problem.votes.dtype) for site, value in padded.items()}

    def redraw(key: Key, logs: Tree, problem: Problem) -> tuple[Tree, Problem]:
        """Return the problem with true labels and annotations drawn given the parameters."""
        return logs, problem._replace(votes=_annotated_anew(channel, key, logs, problem.votes))

    def log_likelihood(logs: Tree, problem: Problem) -> Float[Array, ""]:
        """Return the log probability of all annotations."""
        return (log_evidence(channel, logs, problem.votes) * problem.votes.real).sum()

    def begin_at(problem: Problem, posterior: Posterior) -> Problem:
        """Return the problem under the concentrations that coordinate ascent learned."""
        learned = {site: posterior.hidden.get(f"prior.{site}", own) for site, own in problem.prior.items()}
        return problem._replace(prior=padded_tree(learned, problem.votes.num_annotators))

    def begin_from(problem: Problem, ended: Mapping[str, Any]) -> Problem:
        """Return the problem whose chains start at these parameters, and at the prior mean of what is not known."""
        found = simplices(ended, tuple(site for site in own if site.name in problem.prior))
        last = {}
        for site, prior in problem.prior.items():
            mean = prior / prior.sum(axis=-1, keepdims=True)
            here = padded_tree(found, problem.votes.num_annotators, axis=1)[site]
            known = np.where(np.isnan(here), mean, here).astype(prior.dtype)
            last[site] = np.asarray(finite_log(known))
        return problem._replace(last=last)

    def lengths(problem: Problem) -> dict[str, int]:
        """Return how many annotators of each site are real."""
        number = int(problem.votes.real_annotator.sum())
        return dict.fromkeys((site for site in problem.prior if site != PREVALENCE), number)

    return Gibbs(
        prepare=prepare, start=start, sweep=sweep, sites=kept, at=at, redraw=redraw, log_likelihood=log_likelihood,
        lengths=lengths,
        begin_at=None if channel.pooled is None else begin_at, begin_from=begin_from, starts=_starts,
    )  # fmt: skip


def _starts(resolved: Resolved) -> Starts | None:
    """Return the short chains, and where they start, where annotators agree no more than chance would have them."""
    if not signal(resolved.data).fires:
        return None
    data, experts = resolved.data, _experts(resolved)
    names = [str(code) if data.annotators is None else str(data.annotators[code]) for code in experts]
    words = ("the vote shares", *(f"the labels of {name}" for name in names))
    return Starts(draws=_DRAWS, chains=1 + _MOST_EXPERTS, warmup=_WARMUP, words=words)


def _experts(resolved: Resolved) -> Int[np.ndarray, " expert"]:
    """Return the annotators with most annotations, of equal ones the lowest code."""
    data = resolved.data
    number = np.bincount(np.asarray(data.annotator), np.asarray(data.weight, float), data.num_annotators)
    order = np.lexsort((np.arange(len(number)), -number))
    return order[:_MOST_EXPERTS][number[order[:_MOST_EXPERTS]] > 0]


def _labels_of_experts(resolved: Resolved, num_items: int) -> Int[np.ndarray, "expert item"]:
    """Return the labels of each expert, -1 where there are none or they are ruled out."""
    data = resolved.data
    columns = (np.asarray(column) for column in (data.item, data.annotator, data.label, data.weight))
    item, annotator, label, weight = columns
    experts = _experts(resolved)
    found = np.full((len(experts), num_items), -1, np.int32)
    for row, expert in zip(found, experts, strict=True):
        own = (annotator == expert) & (weight > 0)
        row[item[own]] = label[own]
    return found


def _given_labels(
    channel: Channel, key: Key, label: Int[Array, " item"], evidence: Any, logs: Tree, problem: Problem
) -> Tree:
    key_counts, key_tree = jax.random.split(key)
    votes = problem.votes
    certain = jax.nn.one_hot(label, votes.num_labels, dtype=votes.dtype) * votes.real[:, None]
    counts = counted(channel, evidence, certain, logs, votes, key=key_counts)
    return draw(key_tree, {site: problem.prior[site] + own for site, own in counts.items()})


def draw_labels(key: Key, log_weight: Float[Array, "item class"]) -> Int[Array, " item"]:
    """Draw a class for each item, by the inverse of its distribution function."""
    weight = jnp.exp(log_weight - log_weight.max(axis=-1, keepdims=True))
    below = jnp.cumsum(weight, axis=-1)
    uniform = jax.random.uniform(key, (len(weight), 1), weight.dtype)
    return (uniform * below[:, -1:] >= below[:, :-1]).sum(axis=-1)


def _annotated_anew(channel: Channel, key: Key, logs: Tree, votes: Votes) -> Votes:
    """Draw true labels and annotations given the parameters; the one label of an item that is known is drawn too."""
    key_true, key_label = jax.random.split(key)
    can = jnp.isfinite(votes.log_prior)
    known = (can.sum(axis=1, keepdims=True) == 1) & (votes.num_labels > 1)
    free = jnp.where(known, 0.0, votes.log_prior)
    weight = jnp.broadcast_to(free + logs.get(PREVALENCE, 0.0), (votes.num_items, votes.num_labels))
    true = jax.random.categorical(key_true, weight)
    item, cell, _ = listed(votes)
    annotator = cell // votes.num_labels
    evidence = channel.evidence(logs, votes.num_labels)
    label = jax.random.categorical(key_label, evidence.said(annotator, true[item]))
    drawn = with_cells(votes, annotator * votes.num_labels + label)
    if len(votes.log_prior) == 1:
        return drawn
    certain = jnp.where(true[:, None] == jnp.arange(votes.num_labels), 0.0, -jnp.inf)
    return drawn._replace(log_prior=jnp.where(known, certain, votes.log_prior))
