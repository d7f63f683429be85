r"""Gibbs sampler of the mention-pair model.

A sweep draws prevalence and profiles given which candidates are true, from Beta distributions of the prior's parameters
plus counts, and then for each candidate whether it is true, given these. Beta variables are kept as two logarithms: a
sensitivity that is almost one must not round to one.

Which candidates are true is part of the state and not kept: it is drawn anew from the parameters when it is asked for,
which the NumPyro model allows as well, and is many times the size of all else.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.models.interface import Gibbs
from consilience.models.mpa.candidates import Tables, candidates_of
from consilience.models.mpa.partition.tables import of_partitions
from consilience.models.mpa.priors import BetaParameters, beta_parameters, check_fixed
from consilience.models.mpa.updates import by_pair, counts, log_odds, padded_tables, typed
from consilience.models.random import log_gamma
from consilience.models.rows import padded_rows
from consilience.models.sites import Resolved


class LogBeta(NamedTuple):
    """A Beta variable: the logarithms of itself and of one minus it."""

    one: Array
    rest: Array


class Problem(NamedTuple):
    """What a sweep reads.

    Parameters
    ----------
    tables : pairs and decisions.
    prior : parameters of the priors, of all classes.
    share : of votes of the candidates.
    num_annotators : how many do not pad.
    """

    tables: Tables
    prior: BetaParameters
    share: Float[Array, " pair"]
    num_annotators: Int[Array, ""]


class State(NamedTuple):
    """What the next sweep needs: which candidates are true, and the sites that were drawn with them.

    Parameters
    ----------
    correct : shape ``(pair,)``; 0 or 1.
    prevalence : shapes ``(class,)``.
    sensitivity, specificity : shapes ``(annotator, class)``.
    """

    correct: Float[Array, " pair"]
    prevalence: LogBeta
    sensitivity: LogBeta
    specificity: LogBeta


def prepare(resolved: Resolved) -> Problem:
    """Return pairs, decisions and prior parameters.

    How one label is taken (``decisions``), and how the author ends an ascent, have no part here.

    Raises
    ------
    NotConjugate : a prior is no Beta distribution.
    UnsupportedRequest : hyperparameters are to be learned.
    """
    settings = resolved.settings
    check_fixed(settings.hyperparameters)
    parameters = beta_parameters(resolved)
    found = candidates_of(resolved.data, settings.candidates, settings.gold)
    # Half a vote for and against, so that every candidate may start on either side.
    share, known = (found.votes + 0.5) / (found.asked + 1), found.tables.known
    return problem_of(found.tables, parameters, np.where(known == 0, share, known > 0))


def problem_of(tables: Tables, parameters: BetaParameters, share: Float[Array, " pair"]) -> Problem:
    """Return the problem in JAX's default float type."""
    padded = padded_tables(by_pair(tables))
    own = padded_rows(np.asarray(share, float), len(padded.pair_class))
    return typed(Problem(padded, parameters, own, np.asarray(len(tables.yes), np.int32)))


def start(key: Key, problem: Problem) -> State:
    """Start where candidates are true as often as annotators chose them; the first sweep draws all else from that.

    From profiles of the prior half of the chains would start, and stay, at the mirror image of each class.
    """
    correct = jax.random.bernoulli(key, problem.share).astype(problem.share.dtype)
    half = jnp.full((len(problem.tables.yes), len(problem.prior.prevalence)), -jnp.log(2.0), correct.dtype)
    return State(correct, LogBeta(half[0], half[0]), LogBeta(half, half), LogBeta(half, half))


def sweep(key: Key, state: State, problem: Problem) -> State:
    """Draw prevalence and profiles given which candidates are true, then these."""
    key_parameters, key_correct = jax.random.split(key)
    drawn = _draw_parameters(key_parameters, state.correct, problem)
    odds = log_odds_given(*drawn, problem.tables)
    correct = jax.random.bernoulli(key_correct, jax.nn.sigmoid(odds)).astype(odds.dtype)
    return State(correct, *drawn)


def _draw_parameters(key: Key, correct: Float[Array, " pair"], problem: Problem) -> tuple[LogBeta, LogBeta, LogBeta]:
    """Draw the three sites from their Beta conditionals; classes that do not occur have the prior's."""
    found = counts(correct, problem.tables)
    classes, prior = problem.tables.classes, problem.prior

    def profile(prior: Array, first: Array, second: Array) -> Array:
        parameters = jnp.tile(prior, (len(first), 1, 1))
        return parameters.at[:, classes].add(jnp.stack([first, second], axis=-1))

    of_class = jnp.stack([found.true, found.false], axis=-1)
    return draw_betas(
        key,
        (
            jnp.asarray(prior.prevalence).at[classes].add(of_class),
            profile(prior.sensitivity, found.true_yes, found.true_no),
            profile(prior.specificity, found.false_no, found.false_yes),
        ),
    )


def draw_betas(key: Key, parameters: tuple[Array, Array, Array]) -> tuple[LogBeta, LogBeta, LogBeta]:
    """Draw the Beta variables of the three sites, from parameters ``(..., 2)``, as logarithms.

    All in one call: gammas are slow to compile. The variables of an annotator stand together, after the prevalence, so
    that draws do not depend on what pads.
    """
    prevalence, profiles = parameters[0], jnp.stack(parameters[1:], axis=1)
    log_gammas = log_gamma(key, jnp.concatenate([prevalence.reshape(-1, 2), profiles.reshape(-1, 2)]))
    odds = log_gammas[:, 0] - log_gammas[:, 1]
    number = prevalence[..., 0].size
    of_profiles = odds[number:].reshape(profiles.shape[:-1])
    parts = odds[:number].reshape(prevalence.shape[:-1]), of_profiles[:, 0], of_profiles[:, 1]
    first, sensitivity, specificity = (LogBeta(-jax.nn.softplus(-one), -jax.nn.softplus(one)) for one in parts)
    return first, sensitivity, specificity


def log_odds_given(
    prevalence: LogBeta, sensitivity: LogBeta, specificity: LogBeta, tables: Tables
) -> Float[Array, " pair"]:
    """Return the log-odds that each candidate is true, given the parameters of all classes."""
    prior = (prevalence.one - prevalence.rest)[tables.classes]
    yes = (sensitivity.one - specificity.rest)[:, tables.classes]
    no = (sensitivity.rest - specificity.one)[:, tables.classes]
    return log_odds(prior, yes, no, tables)


def sites(state: State, problem: Problem) -> dict[str, Array]:
    """Return the sites of the NumPyro model."""
    return {
        "prevalence": jnp.exp(state.prevalence.one), "sensitivity": jnp.exp(state.sensitivity.one),
        "specificity": jnp.exp(state.specificity.one),
    }  # fmt: skip


def lengths(problem: Problem) -> dict[str, int]:
    """Return how many annotators are real."""
    return dict.fromkeys(("sensitivity", "specificity"), int(problem.num_annotators))


def instead(resolved: Resolved) -> Gibbs | None:
    """Return the sampler of partitions where the posterior is of them."""
    if not of_partitions(resolved):
        return None
    from consilience.models.mpa.partition.sampler import SAMPLER  # numba takes long to import

    return SAMPLER


GIBBS = Gibbs(prepare=prepare, start=start, sweep=sweep, sites=sites, lengths=lengths, instead=instead)
