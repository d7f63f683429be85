r"""Coordinate ascent for MACE: variational Bayes as published, with its bound.

The posterior is approximated by :math:`q(T, S)\, q(\theta)\, q(\xi)`. With the expected logarithms as weights,

.. math::

    k_j = e^{\psi(K_j) - \psi(K_j + G_j)}, \quad
    g_{jl} = e^{\psi(G_j) - \psi(K_j + G_j)} \, e^{\psi(X_{jl}) - \psi(\sum_l X_{jl})},

one sweep finds :math:`r_i(t) \propto \prod_n (k_{j_n} 1[l_n = t] + g_{j_n l_n})`, the probability
:math:`\kappa_n = r_i(l_n) k / (k + g)` that annotation n was known, and from them

.. math::

    K_j = k_0 + \sum \kappa_n, \quad G_j = g_0 + \sum (1 - \kappa_n), \quad
    X_{jl} = x_0 + \sum_{l_n = l} (1 - \kappa_n).

The bound after the first half of a sweep is
:math:`\sum_i \log Z_i - \mathrm{KL}(\mathrm{Beta}(K, G)) - \mathrm{KL}(\mathrm{Dirichlet}(X))`, summed over annotators.

| symbol | name | shape |
|---|---|---|
| K, G | ``knows``, ``guesses`` | (annotator,) |
| X | ``guess`` | (annotator, label) |
| r | ``probability`` | (item, label) |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.scipy.special import digamma

from consilience.arrays import Array, Float, Int, Key
from consilience.models.interface import Ascent, Terms, Total, unsharded
from consilience.models.mace.likelihood import (
    LogWeights,
    Responsibilities,
    Tables,
    responsibilities,
    shard,
    tables,
)
from consilience.models.mace.priors import PseudoCounts, pseudo_counts
from consilience.models.mace.restarts import best_start
from consilience.models.posterior import Closed
from consilience.models.sites import Resolved
from consilience.models.special import log_beta, log_normaliser


class Problem(NamedTuple):
    """What the sweeps read: the annotations, the priors' pseudo-counts, and the numbers of the random starts."""

    tables: Tables
    prior: PseudoCounts
    restart: Int[Array, " restart"]


class State(NamedTuple):
    """Parameters of q(θ) and q(ξ); q(T, S) is the best for these."""

    knows: Float[Array, " annotator"]
    guesses: Float[Array, " annotator"]
    guess: Float[Array, "annotator label"]


def prepare(resolved: Resolved) -> Problem:
    """Collect what the sweeps read; raises `NotConjugate` for priors that are not Beta and Dirichlet."""
    restart = np.arange(resolved.settings.restarts, dtype=np.int32)
    return Problem(tables(resolved), pseudo_counts(resolved), restart)


def start(key: Key, problem: Problem, total: Total = unsharded) -> State:
    """Return the state after a first sweep from flat weights, or the best of several starts."""
    return best_start(
        key, problem.restart, problem.tables.counts,
        update=lambda weights: _update(responsibilities(weights, problem.tables, total), problem),
        step=lambda state: step(state, problem, total), total=total,
    )  # fmt: skip


def step(state: State, problem: Problem, total: Total = unsharded) -> tuple[State, Terms]:
    """Return the state after one sweep, and the terms of the bound at the state that came in."""
    found = responsibilities(expected_log_weights(state), problem.tables, total)
    shared = [found.log_guessed.ravel(), *(-values for values in _divergences(state, problem.prior))]
    return _update(found, problem), Terms(found.log_evidence, jnp.concatenate(shared))


def sites(state: State, problem: Problem, total: Total = unsharded) -> dict[str, Array]:
    """Return the parameters of q(θ) and q(ξ), and the probabilities of the labels."""
    found = responsibilities(expected_log_weights(state), problem.tables, total)
    return {**state._asdict(), "probability": found.probability}


def expected_log_weights(state: State) -> LogWeights:
    """Return the expected logarithms of θ and of (1 - θ) ξ."""
    log_knows, log_guesses, log_guess = _expected_logs(state)
    return LogWeights(log_knows, log_guesses[:, None] + log_guess)


def _expected_logs(state: State) -> tuple[Array, Array, Array]:
    total = digamma(state.knows + state.guesses)
    log_guess = digamma(state.guess) - digamma(state.guess.sum(axis=1, keepdims=True))
    return digamma(state.knows) - total, digamma(state.guesses) - total, log_guess


def _update(found: Responsibilities, problem: Problem) -> State:
    guessed = problem.tables.counts - found.known
    return State(
        knows=problem.prior.knows + found.known.sum(axis=1),
        guesses=problem.prior.guesses + guessed.sum(axis=1),
        guess=problem.prior.guess + guessed,
    )


def _divergences(state: State, prior: PseudoCounts) -> tuple[Float[Array, " annotator"], Float[Array, " annotator"]]:
    """Return the Kullback-Leibler divergences of q(θ) and of q(ξ) from the priors, of each annotator."""
    log_knows, log_guesses, log_guess = _expected_logs(state)
    own, before = (jnp.stack([counts.knows, counts.guesses], axis=-1) for counts in (state, prior))
    beta = log_beta(before) - log_beta(own)
    beta += (state.knows - prior.knows) * log_knows + (state.guesses - prior.guesses) * log_guesses
    dirichlet = log_normaliser(jnp.asarray(prior.guess)) - log_normaliser(state.guess)
    return beta, dirichlet + ((state.guess - prior.guess) * log_guess).sum(axis=1)


def finish(values: dict[str, Any], resolved: Resolved) -> Closed:
    """Return q(θ), q(ξ) and the probabilities of the labels."""
    competence = dist.Beta(values["knows"], values["guesses"])
    factors = {"competence": competence, "guess": dist.Dirichlet(values["guess"])}
    return Closed(factors, {"probability": values["probability"]})


CAVI = Ascent(name="cavi", prepare=prepare, start=start, step=step, sites=sites, finish=finish, shard=shard)
"""The ascent, for the driver."""
