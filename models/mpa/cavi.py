r"""Coordinate ascent for the mention-pair model (Paun et al. 2018, section 4).

The posterior is approximated by independent q(c), q(π), q(α), q(β). A sweep updates q(c) given the rest (`log_odds`),
then the rest given q(c): the parameters of the Beta distributions are those of the prior plus expected counts. Right
after that the bound collapses to

.. math::

    \sum H(\varphi) + \sum_h \ln \frac{B(\lambda_h, \eta_h)}{B(a, b)}
    + \sum_{jh} \ln \frac{B(\gamma_{jh}, \mu_{jh})}{B(d, e)}
    + \sum_{jh} \ln \frac{B(\theta_{jh}, \epsilon_{jh})}{B(t, u)} .

With priors that are the same from both sides, true and false of each class could exchange their names and the bound
would not change. What picks the sensible side is the start: a tenth of a decision in favour of every annotator.

The author's program ends when a sweep raises the bound by less than 1e-6, which float32 cannot see in a bound of -7e4:
with ``author=True`` a run needs float64, and ends at the same sweep. The candidates of a mention are tried in order of
their first appearance, and the last of equal ones is taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, polygamma

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.errors import UnsupportedRequest
from consilience.models.beta_priors import beta_of
from consilience.models.interface import Ascent, Shards, Terms, Total, unsharded
from consilience.models.mpa.candidates import Tables, candidates_of
from consilience.models.mpa.partition.tables import of_partitions
from consilience.models.mpa.priors import SITES, BetaParameters, beta_parameters
from consilience.models.mpa.updates import by_pair, counts, divide_tables, is_real, log_odds, padded_tables, typed
from consilience.models.posterior import Closed
from consilience.models.rows import copies
from consilience.models.sites import Resolved
from consilience.models.special import log_beta
from consilience.notes import Remedy

# The author's start, and the author's stop.
_HEAD_START = 1.1
_LEAST_GAIN = 1e-6

# Hyperparameters are learned from this sweep on, by so many steps of Newton's method in each, within these limits:
# where annotators hardly differ, or there is only one, their maximum is at infinity.
_FIRST_LEARNING, _NEWTON_STEPS = 5, 5
_LEAST, _MOST = 0.05, 1e4


class Factors(NamedTuple):
    """Parameters of q: two of a Beta distribution in the last axis, and log-odds.

    Parameters
    ----------
    prevalence : shape ``(class, 2)``; λ and η.
    sensitivity : shape ``(annotator, class, 2)``; γ and μ.
    specificity : shape ``(annotator, class, 2)``; θ and ε.
    log_odds : shape ``(pair,)``; of φ, the probability that a candidate is true.
    sensitivity_prior, specificity_prior : shape ``(class, 2)``; d, e and t, u: those of the priors, or learned.
    """

    prevalence: Float[Array, "class 2"]
    sensitivity: Float[Array, "annotator class 2"]
    specificity: Float[Array, "annotator class 2"]
    log_odds: Float[Array, " pair"]
    sensitivity_prior: Float[Array, "class 2"]
    specificity_prior: Float[Array, "class 2"]


class Problem(NamedTuple):
    """What the sweeps read.

    Parameters
    ----------
    tables : pairs and decisions.
    prior : of the classes that occur.
    other : of all classes.
    stop : gain of the bound below which the run ends, where the author's rule holds; else None.
    first : the sweep from which on hyperparameters are learned; None where they are fixed.
    num_annotators : how many do not pad.
    """

    tables: Tables
    prior: BetaParameters
    other: BetaParameters
    stop: Float[Array, ""] | None
    first: Int[Array, ""] | None
    num_annotators: Int[Array, ""]


class State(NamedTuple):
    """What the next sweep needs.

    Parameters
    ----------
    q : Beta parameters of the classes that occur, and the log-odds from which they were made.
    bound, gain : of the last sweep, where the author's rule holds; else None.
    sweeps : how many there were.
    next_prior : hyperparameters of sensitivity and specificity for the next sweep. Those in ``q`` are of the last one.
    """

    q: Factors
    bound: Float[Array, ""] | None
    gain: Float[Array, ""] | None
    sweeps: Int[Array, ""]
    next_prior: tuple[Float[Array, "class 2"], Float[Array, "class 2"]]


def prepare(resolved: Resolved) -> Problem:
    """Return pairs, decisions and prior parameters; how one label is taken (``decisions``) has no part here.

    Raises
    ------
    NotConjugate : a prior is no Beta distribution.
    UnsupportedRequest : a partition is asked for; or the author's rules in float32, or with hyperparameters to be
        learned.
    """
    settings = resolved.settings
    if settings.coreference == "partition":
        raise UnsupportedRequest(f"{_NO_CHAINS}; use {{method}}", Remedy("method", "gibbs"))
    learned = settings.hyperparameters == "learned"
    if settings.author and learned:
        text = "the author's program has fixed priors; leave out author or {hyperparameters}"
        raise UnsupportedRequest(text, Remedy("hyperparameters", "learned"))
    if settings.author and jnp.result_type(float) != jnp.float64:
        raise UnsupportedRequest(
            "author=True ends where a sweep gains less than 1e-6, which float32 cannot see; "
            'give dtype="float64", or --x64 on the command line'
        )
    tables = candidates_of(resolved.data, settings.candidates, settings.gold).tables
    return problem_of(tables, beta_parameters(resolved), author=bool(settings.author), learned=learned)


def problem_of(
    tables: Tables, parameters: BetaParameters, *, author: bool = False, learned: bool = False
) -> Problem:
    """Return the problem in JAX's default float type."""
    dtype = jnp.result_type(float)
    own = BetaParameters(*(values[tables.classes] for values in parameters))
    stop = np.asarray(_LEAST_GAIN, dtype) if author else None
    first = np.asarray(_FIRST_LEARNING) if learned else None
    number = np.asarray(len(tables.yes), np.int32)
    return Problem(typed(padded_tables(by_pair(tables))), typed(own), typed(parameters), stop, first, number)


def shard(problem: Problem, number: int) -> Shards:
    """Divide the candidates among devices; on the host."""
    tables, of_pairs = divide_tables(problem.tables, number)
    return Shards(Problem(tables, *copies(problem[1:], number)), {"log_odds": of_pairs})


def lengths(problem: Problem) -> dict[str, int]:
    """Return how many rows of each array are real."""
    number = int(problem.num_annotators)
    return {"log_odds": int(is_real(problem.tables).sum()), "sensitivity": number, "specificity": number}


def start(key: Key, problem: Problem, total: Total = unsharded) -> State:
    """Return the author's start: no candidate is more likely than not, and annotators are a little better than chance.

    It has no random part.
    """
    tables = problem.tables
    one, head_start = jnp.ones_like(tables.yes), jnp.full_like(tables.yes, _HEAD_START)
    profile = jnp.stack([head_start, one], axis=-1)
    prior, zeros = problem.prior, jnp.zeros_like(tables.pair_counts)
    hyperparameters = prior.sensitivity, prior.specificity
    q = Factors(jnp.ones_like(prior.prevalence), profile, profile, zeros, *hyperparameters)
    if problem.stop is None:
        return State(q, None, None, jnp.zeros((), int), hyperparameters)
    bound, gain = -jnp.full_like(problem.stop, jnp.inf), jnp.full_like(problem.stop, jnp.inf)
    return State(q, bound, gain, jnp.zeros((), int), hyperparameters)


def step(state: State, problem: Problem, total: Total = unsharded) -> tuple[State, Terms]:
    """Sweep once: the candidates given prevalence and profiles, then these given the candidates.

    Returns
    -------
    the state, and the terms of its bound.
    """
    tables, (for_sensitivity, for_specificity) = problem.tables, state.next_prior
    odds = expected_log_odds(state.q, tables)
    expected = counts(jax.nn.sigmoid(odds), tables, total)
    q = Factors(
        prevalence=problem.prior.prevalence + jnp.stack([expected.true, expected.false], axis=-1),
        sensitivity=for_sensitivity + jnp.stack([expected.true_yes, expected.true_no], axis=-1),
        specificity=for_specificity + jnp.stack([expected.false_no, expected.false_yes], axis=-1),
        log_odds=odds,
        sensitivity_prior=for_sensitivity,
        specificity_prior=for_specificity,
    )
    terms, sweeps, next_prior = bound(q, problem, total), state.sweeps + 1, state.next_prior
    if problem.first is not None:
        # The bound of a sweep is that of the hyperparameters with which it began: better ones show in the next.
        decided = tables.yes + tables.no > 0
        learned = learn(q.sensitivity, for_sensitivity, decided), learn(q.specificity, for_specificity, decided)
        early = sweeps < problem.first
        next_prior = jax.tree.map(lambda old, new: jnp.where(early, old, new), next_prior, learned)
    if problem.stop is None or state.bound is None:
        return State(q, None, None, sweeps, next_prior), terms
    height = terms.sum(total)
    return State(q, height, height - state.bound, sweeps, next_prior), terms


def expected_log_odds(q: Factors, tables: Tables) -> Float[Array, " pair"]:
    """Return the log-odds of the candidates from expected logarithms (Paun et al. 2018, equations 8 and 9)."""

    def of_class(beta: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        prevalence, sensitivity, specificity = beta
        true, false, _ = _digammas(prevalence)
        true_yes, true_no, true_both = _digammas(sensitivity)
        false_no, false_yes, false_both = _digammas(specificity)
        yes = true_yes - true_both - (false_yes - false_both)
        return true - false, yes, true_no - true_both - (false_no - false_both)

    # One class after the other: XLA would else evaluate the digammas anew for every decision, but not across a loop.
    # Barriers it ignores on a CPU (jax 0.10).
    profiles = (jnp.moveaxis(values, 1, 0) for values in (q.sensitivity, q.specificity))
    prior, yes, no = jax.lax.map(of_class, (q.prevalence, *profiles))
    return log_odds(prior, yes.T, no.T, tables)


def _digammas(beta: Float[Array, "*cells 2"]) -> tuple[Array, Array, Array]:
    """Return ψ of both parameters and of their sum."""
    return digamma(beta[..., 0]), digamma(beta[..., 1]), digamma(beta.sum(-1))


def learn(
    q: Float[Array, "annotator class 2"], prior: Float[Array, "class 2"], decided: Bool[Array, "annotator class"]
) -> Float[Array, "class 2"]:
    r"""Return the Beta parameters of each class, moved towards those that raise the bound most.

    Of the annotators who decided on candidates of the class, with means over them, these are where

    .. math:: (d - 1) E \ln \alpha + (e - 1) E \ln (1 - \alpha) - \ln B(d, e)

    is largest. It is concave; a step of Newton's method that would fall is shortened.
    """
    number = jnp.maximum(decided.sum(0), 1)
    logs = digamma(q) - digamma(q.sum(-1, keepdims=True))
    mean = jnp.where(decided[..., None], logs, 0.0).sum(0) / number[:, None]
    scales = jnp.asarray([1.0, 0.5, 0.25, 0.1, 0.02, 0.0], q.dtype)[:, None, None]

    def value(parameters: Array) -> Array:
        return (parameters * mean).sum(-1) - log_beta(parameters)

    def newton(_: Any, parameters: Array) -> Array:
        total = parameters.sum(-1, keepdims=True)
        gradient = mean - digamma(parameters) + digamma(total)
        # The matrix of second derivatives is diagonal and a constant: it is inverted by the formula of Sherman and
        # Morrison.
        diagonal, constant = polygamma(1, parameters), polygamma(1, total)
        shift = (gradient / diagonal).sum(-1, keepdims=True) / (1 / constant - (1 / diagonal).sum(-1, keepdims=True))
        moved = jnp.clip(parameters + scales * (gradient + shift) / diagonal, _LEAST, _MOST)
        best = jnp.argmax(jnp.where(scales[:, :, 0] == 0, value(parameters), value(moved)), axis=0)
        return jnp.where((best == len(scales) - 1)[:, None], parameters, moved[best, jnp.arange(len(best))])

    return jax.lax.fori_loop(0, _NEWTON_STEPS, newton, prior)


def bound(q: Factors, problem: Problem, total: Total = unsharded) -> Terms:
    """Return the terms of the collapsed bound, which holds right after a sweep."""
    entropy = problem.tables.pair_counts * _entropy(q.log_odds)
    priors = problem.prior.prevalence, q.sensitivity_prior, q.specificity_prior
    gains = (log_beta(posterior) - log_beta(prior) for posterior, prior in zip(q[:3], priors, strict=True))
    number = total(is_real(problem.tables).sum()) + len(q.prevalence) * (1 + 2 * jnp.asarray(problem.num_annotators))
    return Terms(entropy, jnp.concatenate([jnp.ravel(gain) for gain in gains]), number)


def _entropy(odds: Float[Array, " pair"]) -> Float[Array, " pair"]:
    """Return the entropy of a yes or no with these log-odds; precise also where one of the two is almost sure."""
    size = jnp.abs(odds)
    return jnp.log1p(jnp.exp(-size)) + size * jax.nn.sigmoid(-size)


def settled(state: State, problem: Problem) -> Bool[Array, ""] | None:
    """Tell whether the last sweep gained as little as the author asks for; None where another rule holds."""
    if problem.stop is None or state.gain is None:
        return None
    return jnp.abs(state.gain) < problem.stop


def moved(before: State, after: State) -> Float[Array, ""]:
    """Return the largest change of the probability of a candidate."""
    true, was_true = jax.nn.sigmoid(after.q.log_odds), jax.nn.sigmoid(before.q.log_odds)
    return jnp.abs(true - was_true).max(initial=0.0)


def sites(state: State, problem: Problem, total: Total = unsharded) -> dict[str, Array]:
    """Return the fields of `Factors`, with the prior at classes that do not occur."""
    num_annotators = len(problem.tables.yes)

    def everywhere(prior: Array, values: Array) -> Array:
        return jnp.tile(prior, (num_annotators, 1, 1)).at[:, problem.tables.classes].set(values)

    other, q = problem.other, state.q
    return {
        "prevalence": jnp.asarray(other.prevalence).at[problem.tables.classes].set(q.prevalence),
        "sensitivity": everywhere(other.sensitivity, q.sensitivity),
        "specificity": everywhere(other.specificity, q.specificity),
        "log_odds": q.log_odds,
        "sensitivity_prior": jnp.asarray(other.sensitivity).at[problem.tables.classes].set(q.sensitivity_prior),
        "specificity_prior": jnp.asarray(other.specificity).at[problem.tables.classes].set(q.specificity_prior),
    }


def finish(values: dict[str, Any], resolved: Resolved) -> Closed:
    """Return q(π), q(α) and q(β); the log-odds of the candidates and the hyperparameters belong to them."""
    factors = {site: beta_of(values[site]) for site in SITES}
    return Closed(factors, {name: own for name, own in values.items() if name not in SITES})


_NO_CHAINS = "coordinate ascent has no posterior of chains"


def unsuited(resolved: Resolved) -> str:
    """Return why coordinate ascent is no method here; empty where it is one."""
    return _NO_CHAINS if of_partitions(resolved) else ""


CAVI = Ascent(
    name="cavi", prepare=prepare, start=start, step=step, sites=sites, finish=finish, settled=settled, shard=shard,
    moved=moved, lengths=lengths, unsuited=unsuited,
)  # fmt: skip
