r"""Gibbs sampler of MACE, from its conjugate conditionals.

One sweep draws

* the label of each item given the skills, with "known or guessed" summed out,
  :math:`T_i \propto \prod_n (\theta_{j_n} 1[l_n = t] + (1 - \theta_{j_n}) \xi_{j_n l_n})`;
* how many of the annotations that gave the true label were known. Those of one annotator that gave label l are known
  with the same probability :math:`\theta / (\theta + (1 - \theta) \xi_l)`, independently, and only their number
  matters: it is binomial. A weight is that many annotations;
* the skills given these: :math:`\theta_j \sim \mathrm{Beta}(k_0 + \text{known}, g_0 + \text{guessed})`,
  :math:`\xi_j \sim \mathrm{Dirichlet}(x_0 + \text{guessed, by label})`.

The labels are not kept: given the skills of a draw the items are independent, so that `truth` draws them when somebody
asks, and a run needs no memory for draws × items.

| symbol | name | shape |
|---|---|---|
| log θ, log (1 - θ) | ``log_knows``, ``log_guesses`` | (annotator,) |
| log ξ | ``log_guess`` | (annotator, label) |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.errors import NotConjugate
from consilience.models.interface import Gibbs
from consilience.models.mace.likelihood import LogWeights, Tables, known_share, label_evidence, matches, tables
from consilience.models.mace.priors import PseudoCounts, pseudo_counts
from consilience.models.mace.skills import draw_log_skills
from consilience.models.sites import Resolved
from consilience.models.special import finite_log


class Problem(NamedTuple):
    """What a sweep reads: the annotations, and the priors' pseudo-counts."""

    tables: Tables
    prior: PseudoCounts


class State(NamedTuple):
    """Skills in logarithms; the symbols are in the table above."""

    log_knows: Float[Array, " annotator"]
    log_guesses: Float[Array, " annotator"]
    log_guess: Float[Array, "annotator label"]


def prepare(resolved: Resolved) -> Problem:
    """Collect what the sweeps read.

    Raises
    ------
    NotConjugate : for priors that are not Beta and Dirichlet, and for weights that are no whole numbers.
    """
    weight = np.asarray(resolved.data.weight, float)
    if not np.array_equal(weight, np.round(weight)):
        raise NotConjugate(
            "the weights of some annotations are no whole numbers; the Gibbs sampler takes a weight as that many "
            "annotations"
        )
    return Problem(tables(resolved), pseudo_counts(resolved))


def start(key: Key, problem: Problem) -> State:
    """Return skills drawn uniformly, so that chains start apart."""
    key_competence, key_guess = jax.random.split(key)
    counts = jnp.asarray(problem.tables.counts)
    log_knows, log_guesses = _log_uniform(key_competence, (2, len(counts)), counts.dtype, axis=0)
    return State(log_knows, log_guesses, _log_uniform(key_guess, counts.shape, counts.dtype, axis=1))


def sweep(key: Key, state: State, problem: Problem) -> State:
    """Return the state after labels, what was known, and skills were drawn once."""
    key_label, key_known, key_skills = jax.random.split(key, 3)
    weights = LogWeights(state.log_knows, state.log_guesses[:, None] + state.log_guess)
    label = _draw_labels(key_label, weights, problem.tables)
    known = _draw_known(key_known, weights, label, problem.tables)
    return _draw_skills(key_skills, known, problem)


def sites(state: State, problem: Problem) -> dict[str, Array]:
    """Return ``competence`` ``(annotator,)`` and ``guess`` ``(annotator, label)``."""
    return {"competence": jnp.exp(state.log_knows), "guess": jnp.exp(state.log_guess)}


def at(values: Mapping[str, Any], resolved: Resolved, problem: Problem) -> State:
    """Return the state at true values as ``simulate`` gives them."""
    competence, guess = (jnp.asarray(values[site], problem.prior.knows.dtype) for site in ("competence", "guess"))
    return State(*map(finite_log, (competence, 1 - competence, guess)))


def _log_uniform(key: Key, shape: tuple[int, ...], dtype: Any, axis: int) -> Float[Array, "row column"]:
    """Draw logarithms of shares that are uniform over the simplex along an axis."""
    return jax.nn.log_softmax(jnp.log(jax.random.exponential(key, shape, dtype)), axis=axis)


def _draw_labels(key: Key, weights: LogWeights, tables: Tables) -> Int[Array, " item"]:
    return jax.random.categorical(key, tables.log_prior + label_evidence(weights, tables)).astype(jnp.int32)


def _draw_known(
    key: Key, weights: LogWeights, label: Int[Array, " item"], tables: Tables
) -> Float[Array, "annotator label"]:
    """Draw how many annotations were known, by who gave which label."""
    right = matches(jax.nn.one_hot(label, tables.log_prior.shape[1], dtype=weights.guess.dtype), tables)
    return jax.random.binomial(key, right, known_share(weights))


def _draw_skills(key: Key, known: Float[Array, "annotator label"], problem: Problem) -> State:
    """Draw the skills given how many annotations were known."""
    guessed, prior = problem.tables.counts - known, problem.prior
    competence = jnp.stack([prior.knows + known.sum(axis=1), prior.guesses + guessed.sum(axis=1)])
    (log_knows, log_guesses), log_guess = draw_log_skills(key, competence, prior.guess + guessed)
    return State(log_knows, log_guesses, log_guess)


def redraw(key: Key, state: State, problem: Problem) -> tuple[State, Problem]:
    """Return the problem with true labels and annotations drawn given the skills, of the labels that can be true."""
    tables = problem.tables
    num_labels = tables.log_prior.shape[1]
    key_label, key_known, key_guess = jax.random.split(key, 3)
    true = jax.random.categorical(key_label, tables.log_prior)
    item, annotator = tables.place // num_labels, tables.cell // num_labels
    known = jnp.log(jax.random.uniform(key_known, item.shape)) < state.log_knows[annotator]
    label = jnp.where(known, true[item], jax.random.categorical(key_guess, state.log_guess[annotator]))
    place, cell = item * num_labels + label, annotator * num_labels + label
    order = jnp.argsort(place)
    counts = jnp.zeros_like(tables.counts).ravel().at[cell].add(tables.weight).reshape(tables.counts.shape)
    drawn = tables._replace(place=place[order], cell=cell[order], weight=tables.weight[order], counts=counts)
    return state, problem._replace(tables=drawn)


def log_likelihood(state: State, problem: Problem) -> Float[Array, ""]:
    """Return the log probability of all annotations."""
    tables, weights = problem.tables, LogWeights(state.log_knows, state.log_guesses[:, None] + state.log_guess)
    of_items = jax.nn.logsumexp(tables.log_prior + label_evidence(weights, tables), axis=1)
    return of_items.sum() + (tables.counts * weights.guess).sum()


GIBBS = Gibbs(
    prepare=prepare, start=start, sweep=sweep, sites=sites, at=at, redraw=redraw, log_likelihood=log_likelihood
)
"""The sampler, for the driver."""
