r"""Gibbs sampler of Plackett-Luce: partial rankings with ties as races (Stutz et al. 2023, section 4.2 and appendix B).

Class k of an item arrives after an exponential time with rate :math:`\lambda_k`, and the order of arrival is the
ranking. Given the times the weights have Gamma posteriors, and given the weights the times are simple to draw. A report
is watched only until its last block is complete, and its stages are clocks that each start anew:

.. math::

    \lambda_k \mid \text{times} \sim \mathrm{Gamma}(\alpha_k + n_k,\; \beta + E_k),

where :math:`n_k` is the number of reports in which k was seen to arrive, and :math:`E_k` the time for which it was
watched without having arrived. A class that a report leaves unranked was watched, to the end, and did not arrive: it
adds to :math:`E_k` and not to :math:`n_k`.

The paper's text takes *all* arrival times, also those of unranked classes after the last block, together with the shape
:math:`\alpha_k + n_k`. That is wrong: a time that has been drawn is an arrival, and has to be counted. With the reports
{0,1} > {2} and {1} on four classes and α = 1, the mean of class 1 is 16/35 = 0.457; the text's formula gives 0.960.
All times with :math:`\alpha_k + R`, for R reports, as in the authors' code, are right, but only add noise to what is
done here: with ten copies of each report such chains need fifty times as many sweeps.

One sweep draws, for all items at once:

* of each race, the total time of its stages, a Gamma variable however many they are. The reliability γ is a power of
  the likelihood: γ copies of each report. It need not be an integer where nothing is tied.
* of each pair of tied classes, in how many of the γ copies the one came first; it then is two stages like any others.
* of each larger tie, a threshold T, the first arrival among the classes ranked below. The members' times are
  independent given T, which was later than all of them. They are carried to the next sweep; nothing is enumerated.
* the weights given the times.
* the total weight of each item, from its prior: rankings tell shares only. Weights are therefore kept as shares, times
  in units of one over the total weight, and the rate β cancels.

| symbol | name | shape |
|---|---|---|
| λ / Σλ | ``plausibility``, ``other`` | (entry,), (item,) |
| α | ``shape`` | (weight,): entries, then the others |
| n | ``wins`` | (entry,) |
| E | ``exposure`` | (weight,) |
| T | ``threshold`` | (tie,) |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.rankings import Rankings
from consilience.errors import NotConjugate
from consilience.models.interface import Gibbs
from consilience.models.plackett_luce.layout import Layout, layout
from consilience.models.plackett_luce.priors import Priors, gamma_parameters
from consilience.models.random import log_gamma

__all__ = ["GIBBS", "Problem", "State", "prepare", "sites", "start", "state_at", "sweep"]


class Problem(NamedTuple):
    """What a sweep reads.

    Parameters
    ----------
    tables : who races against whom; the counts are those of γ copies of each report, in JAX's default float type.
    shape : shape ``(weight,)``, entries first, then the others; Gamma shapes of the prior.
    total_shape : shape ``(item,)``; their sums.
    """

    tables: Layout
    shape: Float[Array, " weight"]
    total_shape: Float[Array, " item"]


class State(NamedTuple):
    """What the next sweep needs.

    Parameters
    ----------
    log_share : shape ``(weight,)``, entries first, then the others; weights in units of the item's total, -inf for an
        other that stands for no class.
    time : shape ``(tied,)``; arrival times of the members of larger ties, from the start of their stage, in units of
        one over the item's total weight.
    """

    log_share: Float[Array, " weight"]
    time: Float[Array, " tied"]


def prepare(
    data: Rankings, priors: Priors, *, reliability: float, tempering: str = "likelihood", alpha_split: float = 1.0
) -> Problem:
    """Return the tables, counts and prior shapes; NumPy arrays, made on the host.

    Parameters
    ----------
    data, priors : the reports, and Gamma priors of one rate.
    reliability : γ, the power of the likelihood.
    tempering : "likelihood"; for other values there are no conjugate updates.
    alpha_split : has no part here: no report tells how ``other`` divides.

    Raises
    ------
    NotConjugate : for another tempering, for a reliability that is no whole number where classes are tied, or for
        priors that are not Gamma distributions of one rate.
    """
    if tempering != "likelihood":
        raise NotConjugate(f"tempering={tempering!r}: the hand-written updates need reliability as copies of reports")
    whole = float(reliability).is_integer()
    tables = layout(data, int(reliability) if whole else 1)
    if not whole and (len(tables.pair_count) or len(tables.tied)):
        raise NotConjugate(
            f"reliability={reliability:g}: where classes are tied the hand-written updates need a whole number, "
            "as many copies of each report"
        )
    weight_shape, other_shape, _ = gamma_parameters(priors, data)
    total_shape = np.where(tables.has_other, other_shape, 0.0) + np.bincount(
        tables.entry_item, weight_shape, data.num_items
    )
    return _in_default_type(
        Problem(
            tables._replace(
                wins=reliability * tables.wins,
                stages=reliability * tables.stages,
                pair_count=reliability * tables.pair_count,
            ),
            np.concatenate([weight_shape, other_shape]),
            total_shape,
        )
    )


def _in_default_type(problem: Problem) -> Problem:
    """Round float64 to JAX's default float type."""
    dtype = jnp.result_type(float)
    return jax.tree.map(lambda array: array.astype(dtype) if array.dtype.kind == "f" else array, problem)


def start(key: Key, problem: Problem) -> State:
    """Return a state drawn from the prior, far from those of other chains.

    Shapes below one are raised to one: the weights of sparse priors are as small as e^-400, from where a chain would
    take thousands of sweeps to return.
    """
    key_weight, key_time = jax.random.split(key)
    log_share, _ = _shares(log_gamma(key_weight, jnp.maximum(problem.shape, 1.0)), problem.tables)
    tied_share = _positive(jnp.exp(log_share[problem.tables.tied_entry]))
    return State(log_share, jax.random.exponential(key_time, tied_share.shape, tied_share.dtype) / tied_share)


def sweep(key: Key, state: State, problem: Problem) -> State:
    """Return the state after the times were drawn given the weights, and the weights given the times."""
    key_pair, key_clock, key_tie, key_weight = jax.random.split(key, 4)
    tables, share = problem.tables, jnp.exp(state.log_share)
    rate = _positive(_sum(share[tables.runner], tables.race, len(tables.stages)))
    stages = jnp.asarray(tables.stages).at[tables.pair_races].add(_second_stages(key_pair, rate, tables))
    clock = _race_times(key_clock, stages, rate)
    time = _tie_times(key_tie, state.time, share, rate, tables)
    clock = jnp.asarray(clock).at[tables.tie_below].add(_last(time, tables))
    exposure = _sum(jnp.concatenate([clock, time])[tables.clock], tables.weight, len(share))
    log_share, log_total = _draw_weights(key_weight, exposure, problem)
    return State(log_share, time * jnp.exp(log_total)[tables.entry_item[tables.tied_entry]])


def sites(state: State, problem: Problem) -> dict[str, Float[Array, " _"]]:
    """Return ``plausibility`` ``(entry,)`` and ``other`` ``(item,)``; they sum to one for each item."""
    share = jnp.exp(state.log_share)
    num_entries = len(problem.tables.entry_item)
    return {"plausibility": share[:num_entries], "other": share[num_entries:]}


def state_at(values: Mapping[str, Any], data: Rankings, problem: Problem) -> State:
    """Return the state at the true values of a simulation, for a problem of reliability 1.

    Parameters
    ----------
    values : ``weight`` ``(item, class)``, and ``time`` ``(row,)``, the arrival time of the class that a row of the
        data names, from the end of the stage before.
    data : the simulated reports.
    problem : what `prepare` made of them.
    """
    tables, dtype = problem.tables, problem.shape.dtype
    weight = np.array(values["weight"], float)
    total = weight.sum(axis=1)
    of_entry = weight[data.entry_item, data.entry_class]
    weight[data.entry_item, data.entry_class] = 0.0
    share = np.concatenate([of_entry / total[tables.entry_item], weight.sum(axis=1) / total])
    with np.errstate(divide="ignore"):
        log_share = np.log(share)
    time = np.asarray(values["time"], float)[tables.tied_row] * total[tables.entry_item[tables.tied_entry]]
    return State(jnp.asarray(log_share, dtype), jnp.asarray(time, dtype))


GIBBS = Gibbs(prepare=prepare, start=start, sweep=sweep, sites=sites, state_at=state_at)


# ---- times given weights ----


def _second_stages(key: Key, rate: Float[Array, " race"], tables: Layout) -> Float[Array, "pair 2"]:
    """Draw how often the one class of each pair came second, and how often the other."""
    # A pair is completed by the slower race with the larger probability: 1 / rate is its expected time.
    log_odds = jnp.log(rate[tables.pair_races[:, 1]]) - jnp.log(rate[tables.pair_races[:, 0]])
    number = _binomial(key, tables.pair_count, log_odds)
    return jnp.stack([number, tables.pair_count - number], axis=1)


def _binomial(key: Key, count: Float[Array, " n"], log_odds: Float[Array, " n"]) -> Float[Array, " n"]:
    """Draw binomial variables by inversion; several times faster on a CPU than the rejection of `jax.random.binomial`.

    Successes are counted up from zero, of the rarer outcome. Logarithms, because the first probability of thousands of
    trials underflows.
    """
    rarer_odds = -jnp.abs(log_odds)
    uniform = jax.random.uniform(key, count.shape, count.dtype)

    def undecided(state: tuple) -> Array:
        number, _, below = state
        return (below < uniform) & (number < count)

    def next_number(state: tuple) -> tuple:
        number, log_probability, below = state
        log_next = log_probability + jnp.log((count - number) / (number + 1)) + rarer_odds
        proceed = undecided(state)
        return jax.tree.map(
            lambda new, old: jnp.where(proceed, new, old), (number + 1, log_next, below + jnp.exp(log_next)), state
        )

    log_first = -count * jnp.log1p(jnp.exp(rarer_odds))
    first = (jnp.zeros_like(count), log_first, jnp.exp(log_first))
    number, _, _ = jax.lax.while_loop(lambda state: undecided(state).any(), next_number, first)
    return jnp.where(log_odds > 0, count - number, number)


def _race_times(key: Key, stages: Float[Array, " race"], rate: Float[Array, " race"]) -> Float[Array, " race"]:
    """Draw the total time of the stages of each race; zero where there is none."""
    raced = stages > 0
    return jnp.where(raced, jnp.exp(log_gamma(key, jnp.where(raced, stages, 1.0))) / rate, 0.0)


def _tie_times(
    key: Key, time: Float[Array, " tied"], share: Float[Array, " weight"], rate: Float[Array, " race"], tables: Layout
) -> Float[Array, " tied"]:
    """Draw the times in the larger ties anew: first the threshold given the latest, then all of them below it."""
    # Two rows, because XLA makes random bits for an odd number of elements several times more slowly on a CPU.
    uniform, spare = jax.random.uniform(key, (2, len(time)), time.dtype)
    wait = -jnp.log1p(-spare[: len(tables.tie_below)]) / rate[tables.tie_below]
    threshold = _last(time, tables) + wait
    share = _positive(share[tables.tied_entry])
    # Exponential variables that are known to be below the threshold.
    return -jnp.log1p(uniform * jnp.expm1(-share * threshold[tables.tied])) / share


def _last(time: Float[Array, " tied"], tables: Layout) -> Float[Array, " tie"]:
    return jax.ops.segment_max(time, tables.tied, len(tables.tie_below), indices_are_sorted=True)


# ---- weights given times ----


def _draw_weights(
    key: Key, exposure: Float[Array, " weight"], problem: Problem
) -> tuple[Float[Array, " weight"], Float[Array, " item"]]:
    """Draw the weights; return them as logarithms of shares, and the log of each total in units of the total before."""
    tables, num_weights = problem.tables, len(exposure)
    posterior_shape = jnp.asarray(problem.shape).at[: len(tables.wins)].add(tables.wins)
    log_draws = log_gamma(key, jnp.concatenate([posterior_shape, problem.total_shape]))
    # In units of the total, the prior's rate is the total times β: a Gamma variable that no report can change.
    prior_rate = jnp.exp(log_draws[num_weights:])
    rate = exposure + jnp.concatenate([prior_rate[tables.entry_item], prior_rate])
    return _shares(log_draws[:num_weights] - jnp.log(_positive(rate)), tables)


def _shares(
    log_weight: Float[Array, " weight"], tables: Layout
) -> tuple[Float[Array, " weight"], Float[Array, " item"]]:
    """Divide weights by their item's total; return logarithms of both."""
    item, num_items = tables.entry_item, len(tables.has_other)
    entry = log_weight[: len(item)]
    other = jnp.where(tables.has_other, log_weight[len(item) :], -jnp.inf)
    largest = jnp.maximum(jax.ops.segment_max(entry, item, num_items, indices_are_sorted=True), other)
    total = _sum(jnp.exp(entry - largest[item]), item, num_items) + jnp.exp(other - largest)
    log_total = largest + jnp.log(total)
    return jnp.concatenate([entry - log_total[item], other - log_total]), log_total


# ---- arithmetic ----


def _sum(values: Float[Array, " row"], segment: Int[Array, " row"], num_segments: int) -> Float[Array, " segment"]:
    return jax.ops.segment_sum(values, segment, num_segments, indices_are_sorted=True)


def _positive(values: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """Keep rates away from zero, so that times are finite; shares this small belong to priors of tiny shapes alone."""
    return jnp.maximum(values, 1e8 * jnp.finfo(values.dtype).tiny)
