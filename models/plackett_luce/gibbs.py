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
* the common scale of the weights of a set that races, and with it of the times of all that happens within the set.
  How far a lower stage lies behind the winners is otherwise slow to find when there are many reports: the times within
  the set pin its weights, and the weights the times. Their scale given all else is a Gamma variable.
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

References
----------
Liu and Sabatti (2000), Generalised Gibbs sampler and multigrid Monte Carlo for Bayesian computation, Biometrika 87(2):
drawing the scale of some variables given all else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.data.rankings import Rankings
from consilience.errors import NotConjugate
from consilience.models.interface import Gibbs
from consilience.models.plackett_luce.layout import Layout, layout
from consilience.models.plackett_luce.priors import gamma_shapes
from consilience.models.random import log_gamma
from consilience.models.sites import Resolved

# Sets per item and sweep whose scale is drawn. On the dermatology data, reliability 10 and 4 x 1000 draws, 15.8 % of
# the cases have an R-hat above 1.01 with none, 1.2 % with one, 0.8 to 1.0 % with two.
_NUM_SCALES = 2

# Draws of a scale beyond this, in logs, are refused, which is exact as it is symmetric: floats must not overflow.
_LARGEST_LOG_SCALE = 10.0


# Copies of the members of larger ties beyond this would not fit into memory beside the draws.
_MOST_TIED_ROWS = 1 << 26


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


def prepare(resolved: Resolved) -> Problem:
    """Return the tables, counts and prior shapes; NumPy arrays, made on the host.

    Raises
    ------
    NotConjugate : for another tempering, for a reliability that is no whole number where classes are tied, or for
        priors that are not Gamma distributions of one rate.
    """
    data, reliability, tempering = resolved.data, resolved.settings.reliability, resolved.settings.tempering
    if tempering != "likelihood":
        raise NotConjugate(f"tempering={tempering!r}: the Gibbs sampler takes powers of the likelihood only")
    whole = float(reliability).is_integer()
    tables = layout(data, _copies(data, reliability) if whole else 1)
    if not whole and (len(tables.pair_count) or len(tables.tied)):
        raise NotConjugate(
            f"reliability={reliability:g}: where classes are tied the Gibbs sampler needs a whole number, "
            "as many copies of each report"
        )
    weight_shape, other_shape = gamma_shapes(resolved)
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


def _copies(data: Rankings, reliability: float) -> int:
    """Return how many copies of the ties of three and more are listed: the reliability, if there are any."""
    num_rows = np.count_nonzero(np.asarray(data.block_size) > 2)
    if num_rows * reliability > _MOST_TIED_ROWS:
        raise NotConjugate(
            f"reliability={reliability:g}: as many copies of {num_rows:,} classes in ties of three or more are too many"
        )
    return int(reliability) if num_rows else 1


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
    """Return the state after the times were drawn given the weights, some scales, and the weights given the times."""
    key_pair, key_tie, key_set, key_gamma = jax.random.split(key, 4)
    tables, share = problem.tables, jnp.exp(state.log_share)
    rate = _positive(_sum(share[tables.runner], tables.race, len(tables.stages)))
    stages = jnp.asarray(tables.stages).at[tables.pair_races].add(_second_stages(key_pair, rate, tables))
    sets = _random_sets(key_set, tables)
    gammas = _draw_gammas(key_gamma, stages, sets, problem)
    clock = jnp.where(stages > 0, jnp.exp(gammas.stages) / rate, 0.0)
    times = _Times(clock, _tie_times(key_tie, state.time, share, rate, tables))
    prior_rate = jnp.exp(gammas.total)
    times = _scale_times(sets, gammas.scale, share, times, prior_rate, tables)
    log_rate = jnp.log(_positive(_exposure(times, tables) + prior_rate[tables.weight_item]))
    log_share, log_total = _shares(gammas.weight - log_rate, tables)
    return State(log_share, times.tied * jnp.exp(log_total)[_tied_item(tables)])


def sites(state: State, problem: Problem) -> dict[str, Float[Array, " _"]]:
    """Return ``plausibility`` ``(entry,)`` and ``other`` ``(item,)``; they sum to one for each item."""
    share = jnp.exp(state.log_share)
    num_entries = len(problem.tables.entry_item)
    return {"plausibility": share[:num_entries], "other": share[num_entries:]}


def at(values: Mapping[str, Any], resolved: Resolved, problem: Problem) -> State:
    """Return the state at the true values of a simulation, for a problem of reliability 1.

    Parameters
    ----------
    values : ``weight`` ``(item, class)``, and ``time`` ``(row,)``, the arrival time of the class that a row of the
        data names, from the end of the stage before.
    resolved : with the simulated reports.
    problem : what `prepare` made of them.
    """
    data = resolved.data
    tables, dtype = problem.tables, problem.shape.dtype
    weight = np.array(values["weight"], float)
    total = weight.sum(axis=1)
    of_entry = weight[data.entry_item, data.entry_class]
    weight[data.entry_item, data.entry_class] = 0.0
    share = np.concatenate([of_entry / total[tables.entry_item], weight.sum(axis=1) / total])
    with np.errstate(divide="ignore"):
        log_share = np.log(share)
    time = np.asarray(values["time"], float)[tables.tied_row] * total[_tied_item(tables)]
    return State(jnp.asarray(log_share, dtype), jnp.asarray(time, dtype))


GIBBS = Gibbs(prepare=prepare, start=start, sweep=sweep, sites=sites, at=at)


# ---- Gamma variables ----


class _Gammas(NamedTuple):
    """Logarithms of Gamma variables of rate one.

    Parameters
    ----------
    stages : shape ``(race,)``; the clocks.
    scale : shape ``(set, item)``; the scales of the chosen sets.
    weight : shape ``(weight,)``.
    total : shape ``(item,)``; the total weights before the sweep times β. No report tells them, so they are those of
        the prior. In units of the total weight they are the rate that the prior brings to each weight.
    """

    stages: Float[Array, " race"]
    scale: Float[Array, "set item"]
    weight: Float[Array, " weight"]
    total: Float[Array, " item"]


def _draw_gammas(key: Key, stages: Float[Array, " race"], sets: _Sets, problem: Problem) -> _Gammas:
    """Draw all that a sweep needs in one call: the shapes are known as soon as the pairs are in order."""
    shapes = _Gammas(
        jnp.where(stages > 0, stages, 1.0),
        jax.vmap(_scale_shape, (0, None, None))(sets, stages, problem),
        jnp.asarray(problem.shape).at[: len(problem.tables.wins)].add(problem.tables.wins),
        problem.total_shape,
    )
    flat, unflatten = ravel_pytree(shapes)
    return unflatten(jnp.asarray(log_gamma(key, flat)))


# ---- times given weights ----


class _Times(NamedTuple):
    """Times in units of one over the total weights.

    Parameters
    ----------
    clock : shape ``(race,)``; total time of the stages of each race, without the larger ties.
    tied : shape ``(tied,)``; see `State`.
    """

    clock: Float[Array, " race"]
    tied: Float[Array, " tied"]


def _second_stages(key: Key, rate: Float[Array, " race"], tables: Layout) -> Float[Array, "pair 2"]:
    """Draw how often the one class of each pair came second, and how often the other."""
    # A pair is completed by the slower race with the larger probability: 1 / rate is its expected time.
    log_odds = jnp.log(rate[tables.pair_races[:, 1]]) - jnp.log(rate[tables.pair_races[:, 0]])
    number = jax.random.binomial(key, tables.pair_count, jax.nn.sigmoid(log_odds))
    return jnp.stack([number, tables.pair_count - number], axis=1)


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


def _exposure(times: _Times, tables: Layout) -> Float[Array, " weight"]:
    """Return for how long each weight was watched. What is below a tie was, until the last of its members arrived."""
    clock = jnp.asarray(times.clock).at[tables.tie_below].add(_last(times.tied, tables))
    return _sum(jnp.concatenate([clock, times.tied])[tables.clock], tables.weight, len(tables.weight_item))


# ---- scales of sets ----


class _Sets(NamedTuple):
    """What lies within the chosen set of each item: weights, races, and members of larger ties with all below them."""

    weight: Bool[Array, "*set weight"]
    race: Bool[Array, "*set race"]
    tied: Bool[Array, "*set tied"]


def _random_sets(key: Key, tables: Layout) -> _Sets:
    """Choose sets that race, not all weights, whose scale is the total; none where the item has no other set."""
    uniform = jax.random.uniform(key, (_NUM_SCALES, len(tables.has_other)))
    num_smaller = jnp.diff(tables.first_race) - 1
    place = tables.first_race[:-1] + 1 + jnp.minimum((uniform * num_smaller).astype(int), num_smaller - 1)
    return jax.vmap(_members, (0, None))(jnp.where(num_smaller > 0, place, len(tables.race_item)), tables)


def _members(chosen_race: Int[Array, " item"], tables: Layout) -> _Sets:
    chosen = jnp.zeros(len(tables.race_item), bool).at[chosen_race].set(True, mode="drop")
    clock_is_chosen = jnp.concatenate([chosen, jnp.zeros(len(tables.tied), bool)])
    weight = _sum(clock_is_chosen[tables.clock].astype(int), tables.weight, len(tables.weight_item)) > 0
    outside = (~weight).astype(int)
    race = _sum(outside[tables.runner], tables.race, len(tables.race_item)) == 0
    tie = (_sum(outside[tables.tied_entry], tables.tied, len(tables.tie_below)) == 0) & race[tables.tie_below]
    return _Sets(weight, race, tie[tables.tied])


def _scale_shape(within: _Sets, stages: Float[Array, " race"], problem: Problem) -> Float[Array, " item"]:
    """Return the Gamma shape of the scale of each set.

    Weights bring their prior shapes and their wins. Times bring the change of their volume: minus one for each stage
    and for each member of a larger tie. Every stage within has a winner within, so the prior shapes at least are left.
    """
    tables, num_items = problem.tables, len(problem.total_shape)
    wins = _sum(jnp.where(within.weight[: len(tables.wins)], tables.wins, 0.0), tables.entry_item, num_items)
    stages = _sum(jnp.where(within.race, stages, 0.0), tables.race_item, num_items)
    members = _sum(within.tied.astype(stages.dtype), _tied_item(tables), num_items)
    prior = _sum_of_weights(jnp.where(within.weight, problem.shape, 0.0), tables)
    # An item without a chosen set has no shape; any positive one serves.
    return jnp.where(prior > 0, prior + (wins - stages - members), 1.0)


def _scale_times(
    sets: _Sets,
    log_gammas: Float[Array, "set item"],
    share: Float[Array, " weight"],
    times: _Times,
    prior_rate: Float[Array, " item"],
    tables: Layout,
) -> _Times:
    """Scale the weights of one set after the other, and the times within by one over the same number.

    The weights themselves are not returned: the next step draws them anew, given the times alone.
    """

    def scale_set(carry: tuple, one: tuple) -> tuple:
        (share, times), (within, log_gammas) = carry, one
        # The scale's rate: the weights against the times that it leaves alone.
        outer = _Times(jnp.where(within.race, 0.0, times.clock), jnp.where(within.tied, 0.0, times.tied))
        rate = share * (_exposure(outer, tables) + prior_rate[tables.weight_item])
        rate = _sum_of_weights(jnp.where(within.weight, rate, 0.0), tables)
        log_scale = log_gammas - jnp.log(_positive(rate))
        scale = jnp.exp(jnp.where(jnp.abs(log_scale) < _LARGEST_LOG_SCALE, log_scale, 0.0))
        share = jnp.where(within.weight, share * scale[tables.weight_item], share)
        clock = jnp.where(within.race, times.clock / scale[tables.race_item], times.clock)
        tied = jnp.where(within.tied, times.tied / scale[_tied_item(tables)], times.tied)
        return (share, _Times(clock, tied)), None

    return jax.lax.scan(scale_set, (share, times), (sets, log_gammas))[0][1]


# ---- shares ----


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


def _tied_item(tables: Layout) -> Int[Array, " tied"]:
    return tables.weight_item[tables.tied_entry]


def _sum(values: Array, segment: Int[Array, " row"], num_segments: int) -> Array:
    return jax.ops.segment_sum(values, segment, num_segments, indices_are_sorted=True)


def _sum_of_weights(values: Float[Array, " weight"], tables: Layout) -> Float[Array, " item"]:
    item = tables.entry_item
    return _sum(values[: len(item)], item, len(tables.has_other)) + values[len(item) :]


def _positive(values: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """Keep rates away from zero, so that times are finite.

    In float32 the floor is 1e-26 of an item's weight. Long rankings at reliabilities of hundreds reach it, as do priors
    of tiny shapes: the order of classes down there is right, and how far they lie behind is not; float64 goes on to
    1e-296.
    """
    return jnp.maximum(values, 1e12 * jnp.finfo(values.dtype).tiny)
