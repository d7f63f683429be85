r"""Gibbs sampler of the Dawid-Skene model: labels given parameters, parameters given labels.

.. math::

    T_i \propto p_t \prod_n \Theta_{j_n t l_n}^{w_n}, \qquad
    p \sim \mathrm{Dir}(a + \text{counts of } T), \qquad
    \Theta_{jt} \sim \mathrm{Dir}(A_t + \text{counts of } l_n \text{ over j's rows with } T = t).

The labels are drawn anew in every sweep and not kept: given the parameters of a draw the items are independent, so that
`truth` draws them when somebody asks, and a run needs no memory for draws × items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from consilience.arrays import Array, Float, Int, Key
from consilience.models.dawid_skene.cavi import Concentrations, concentrations
from consilience.models.dawid_skene.layout import (
    Problem,
    listed,
    log_joint,
    num_votes,
    prepare,
    vote_shares,
    with_cells,
)
from consilience.models.dawid_skene.simulation import draw_annotations
from consilience.models.interface import Gibbs
from consilience.models.random import log_gamma
from consilience.models.sites import Resolved
from consilience.models.special import finite_log


class State(NamedTuple):
    """Logarithms of the class shares and of the confusion matrices."""

    log_prevalence: Float[Array, " class"]
    log_confusion: Float[Array, "annotator class label"]


def start(key: Key, problem: Problem) -> State:
    """Return parameters drawn given labels that were drawn from the vote shares, every item with one vote more for all.

    Chains start apart in this way, but with classes that bear the names of their labels.
    """
    key_label, key_parameters = jax.random.split(key)
    num_labels = len(problem.prevalence)
    rows = problem.rows
    size = num_votes(rows)[:, None]
    smoothed = jnp.where(
        rows.gold[:, None] < 0, (size * vote_shares(rows, num_labels) + 1 / num_labels) / (size + 1),
        vote_shares(rows, num_labels),
    )  # fmt: skip
    return draw_parameters(key_parameters, _given_labels(draw_labels(key_label, jnp.log(smoothed)), problem))


def sweep(key: Key, state: State, problem: Problem) -> State:
    """Draw the labels of all items given the parameters, and the parameters given the labels."""
    key_label, key_parameters = jax.random.split(key)
    label = draw_labels(key_label, log_joint(state.log_prevalence, state.log_confusion, problem.rows))
    return draw_parameters(key_parameters, _given_labels(label, problem))


def sites(state: State, problem: Problem) -> dict[str, Array]:
    """Return ``prevalence`` and ``confusion``."""
    return {"prevalence": jnp.exp(state.log_prevalence), "confusion": jnp.exp(state.log_confusion)}


def at(values: Mapping[str, Any], resolved: Resolved, problem: Problem) -> State:
    """Return the state at true values ``prevalence`` and ``confusion``."""
    dtype = problem.prevalence.dtype
    return State(*(finite_log(jnp.asarray(values[name], dtype)) for name in ("prevalence", "confusion")))


def redraw(key: Key, state: State, problem: Problem) -> tuple[State, Problem]:
    """Return the problem with true labels and annotations drawn given the parameters; gold labels are the true ones."""
    rows, num_labels = problem.rows, len(problem.prevalence)
    item, cell, _ = listed(rows)
    annotator = cell // num_labels
    true, label = draw_annotations(
        key, jnp.exp(state.log_prevalence), jnp.exp(state.log_confusion), item, annotator, len(rows.gold)
    )
    gold = jnp.where(rows.gold < 0, rows.gold, true)
    return state, problem._replace(rows=with_cells(rows, annotator * num_labels + label)._replace(gold=gold))


def log_likelihood(state: State, problem: Problem) -> Float[Array, ""]:
    """Return the log probability of all annotations."""
    return jax.nn.logsumexp(log_joint(state.log_prevalence, state.log_confusion, problem.rows), axis=-1).sum()


GIBBS = Gibbs(
    prepare=prepare, start=start, sweep=sweep, sites=sites, at=at, redraw=redraw, log_likelihood=log_likelihood
)


def draw_labels(key: Key, log_weight: Float[Array, "item class"]) -> Int[Array, " item"]:
    """Draw a class for each item, by the inverse of its distribution function."""
    weight = jnp.exp(log_weight - log_weight.max(axis=-1, keepdims=True))
    below = jnp.cumsum(weight, axis=-1)
    uniform = jax.random.uniform(key, (len(weight), 1), weight.dtype)
    return (uniform * below[:, -1:] >= below[:, :-1]).sum(axis=-1)


def draw_parameters(key: Key, given: Concentrations) -> State:
    """Draw logarithms of Dirichlet variables of these concentrations, all of them in one call."""
    flat, unflatten = ravel_pytree(given)
    gammas = unflatten(jnp.asarray(log_gamma(key, flat)))
    return State(*(jax.nn.log_softmax(values, axis=-1) for values in gammas))


def _given_labels(label: Int[Array, " item"], problem: Problem) -> Concentrations:
    return concentrations(jax.nn.one_hot(label, len(problem.prevalence), dtype=problem.prevalence.dtype), problem)
