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
* of each larger tie, in each of the γ copies, a threshold T, the first arrival among the classes ranked below. The
  members' times are independent given T, which was later than all of them. The last of them is carried to the next
  sweep; nothing is enumerated.
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
| γ | ``reliability`` | scalar, an argument of the compiled program |

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
from consilience.models.plackett_luce.layout import Layout, layout, padded
from consilience.models.plackett_luce.priors import gamma_shapes
from consilience.models.random import HashKey, binomial, log_gamma, uniform_pairs
from consilience.models.rows import padded_rows
from consilience.models.sites import Resolved

# Sets per item and sweep whose scale is drawn. On the dermatology data, reliability 10 and 4 x 1000 draws, 15.8 % of
# the cases have an R-hat above 1.01 with none, 1.2 % with one, 0.8 to 1.0 % with two.
_NUM_SCALES = 2

# Draws of a scale beyond this, in logs, are refused, which is exact as it is symmetric: floats must not overflow.
_LARGEST_LOG_SCALE = 10.0


# Copies of larger ties beyond this would not fit into memory beside the draws.
_MOST_TIES = 1 << 26

# Room for copies of larger ties; beyond, the next power of two. Reliabilities that find room share a program.
_LEAST_COPIES = 16


class Problem(NamedTuple):
    """What a sweep reads.

    Parameters
    ----------
    tables : who races against whom, padded; counts of one copy of each report, in JAX's default float type.
    shape : shape ``(weight,)``, entries first, then the others; Gamma shapes of the prior.
    total_shape : shape ``(item,)``; their sums.
    reliability : γ.
    copy : shape ``(copy,)``; 0, 1, … Of the larger ties there are as many copies as are below γ.
    lengths : of each site; what lies beyond only pads.
    """

    tables: Layout
    shape: Float[Array, " weight"]
    total_shape: Float[Array, " item"]
    reliability: Float[Array, ""]
    copy: Int[Array, " copy"]
    lengths: Mapping[str, Int[Array, ""]]


class State(NamedTuple):
    """What the next sweep needs.

    Parameters
    ----------
    log_share : shape ``(weight,)``, entries first, then the others; weights in units of the item's total, -inf for an
        other that stands for no class.
    last : shape ``(copy, tie)``; when the last member of each larger tie arrived, from the start of its stage, in units
        of one over the item's total weight; zero in copies that there are not.
    """

    log_share: Float[Array, " weight"]
    last: Float[Array, "copy tie"]


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
    tables = layout(data)
    copies = _copies(data, tables, reliability)
    weight_shape, other_shape = gamma_shapes(resolved)
    total_shape = np.where(tables.has_other, other_shape, 0.0) + np.bincount(
        tables.entry_item, weight_shape, data.num_items
    )
    tables = padded(tables)
    num_entries, num_items = len(tables.entry_item), len(tables.has_other)
    shapes = padded_rows(weight_shape, num_entries, 1.0), padded_rows(other_shape, num_items, 1.0)
    return _in_default_type(
        Problem(
            tables, np.concatenate(shapes), padded_rows(total_shape, num_items, 1.0), np.asarray(reliability, float),
            np.arange(copies, dtype=np.int32),
            {"plausibility": np.asarray(data.num_entries, np.int32), "other": np.asarray(data.num_items, np.int32)},
        )
    )  # fmt: skip


def _copies(data: Rankings, tables: Layout, reliability: float) -> int:
    """Return for how many copies of the larger ties there is room."""
    tied = np.unique(tables.race_item[np.concatenate([tables.pair_races[:, 0], tables.tie_below])])
    if len(tied) and not float(reliability).is_integer():
        name = str(tied[0] if data.items is None else data.items[tied[0]])
        raise NotConjugate(
            f"reliability={reliability:g}: {len(tied):,} of {data.num_items:,} items have tied classes, such as "
            f"{name!r}; of these the Gibbs sampler takes whole copies alone, so give a whole number"
        )
    num_ties = len(tables.tie_below)
    if num_ties * reliability > _MOST_TIES:
        raise NotConjugate(
            f"reliability={reliability:g}: as many copies of {num_ties:,} ties of three or more are too many"
        )
    return max(_LEAST_COPIES, 1 << (int(reliability) - 1).bit_length() if num_ties else 0)


def _in_default_type(problem: Problem) -> Problem:
    """Round float64 to JAX's default float type."""
    dtype = jnp.result_type(float)
    return jax.tree.map(lambda array: array.astype(dtype) if array.dtype.kind == "f" else array, problem)


def start(key: Key, problem: Problem) -> State:
    """Return a state drawn from the prior, far from those of other chains.

    Shapes below one are raised to one: the weights of sparse priors are as small as e^-400, from where a chain would
    take thousands of sweeps to return.
    """
    shape = jnp.maximum(problem.shape, 1.0)
    log_share, _ = _shares(log_gamma(key, shape, _numbers(problem).weight), problem.tables)
    return State(log_share, jnp.zeros((len(problem.copy), len(problem.tables.tie_below)), log_share.dtype))


def sweep(key: Key, state: State, problem: Problem) -> State:
    """Return the state after the times were drawn given the weights, some scales, and the weights given the times."""
    words = HashKey.of(key)
    tables, share = problem.tables, jnp.exp(state.log_share)
    rate = _positive(_sum(share[tables.runner], tables.race, len(tables.stages)))
    stages = problem.reliability * tables.stages
    stages = jnp.asarray(stages).at[tables.pair_races].add(_second_stages(words, rate, problem))
    sets = _random_sets(words, problem)
    gammas = _draw_gammas(words, stages, sets, problem)
    clock = jnp.where(stages > 0, jnp.exp(gammas.stages) / rate, 0.0)
    times = _Times(clock, *_tie_times(words, state.last, share, rate, problem))
    prior_rate = jnp.exp(gammas.total)
    times = _scale_times(sets, gammas.scale, share, times, prior_rate, tables)
    log_rate = jnp.log(_positive(_exposure(times, tables) + prior_rate[tables.weight_item]))
    log_share, log_total = _shares(gammas.weight - log_rate, tables)
    return State(log_share, times.last * jnp.exp(log_total)[_tie_item(tables)])


def sites(state: State, problem: Problem) -> dict[str, Float[Array, " _"]]:
    """Return ``plausibility`` ``(entry,)`` and ``other`` ``(item,)``, padded; they sum to one for each item."""
    share = jnp.exp(state.log_share)
    num_entries = len(problem.tables.entry_item)
    return {"plausibility": share[:num_entries], "other": share[num_entries:]}


def at(values: Mapping[str, Any], resolved: Resolved, problem: Problem) -> State:
    """Return the state at the true values of a simulation, which are those of each copy of a report.

    Parameters
    ----------
    values : ``weight`` ``(item, class)``, and ``time`` ``(row,)``, the arrival time of the class that a row of the
        data names, from the end of the stage before.
    resolved : with the simulated reports.
    problem : what `prepare` made of them.
    """
    data, tables, dtype = resolved.data, problem.tables, problem.shape.dtype
    weight = np.array(values["weight"], float)
    total = weight.sum(axis=1)
    of_entry = weight[data.entry_item, data.entry_class]
    weight[data.entry_item, data.entry_class] = 0.0
    num_entries, num_items = len(tables.entry_item), len(tables.has_other)
    shares = of_entry / total[data.entry_item], weight.sum(axis=1) / total
    with np.errstate(divide="ignore"):
        entry, other = (np.log(share) for share in shares)
    # What pads are weights of one item: equal ones.
    alike = -np.log(1 + num_entries - data.num_entries)
    log_share = np.concatenate([padded_rows(entry, num_entries, alike), padded_rows(other, num_items, 0.0)])
    log_share[-1] = alike
    last, real = np.zeros(len(tables.tie_below)), tables.tied_row >= 0
    time = np.asarray(values["time"], float)[tables.tied_row[real]] * total[_tied_item(tables)[real]]
    np.maximum.at(last, tables.tied[real], time)
    of_copies = np.where(problem.copy[:, None] < problem.reliability, last, 0.0)
    return State(jnp.asarray(log_share, dtype), jnp.asarray(of_copies, dtype))


def lengths(problem: Problem) -> dict[str, int]:
    """Return how many entries and items there are, on the host; what lies beyond in the sites only pads."""
    return {site: int(length) for site, length in problem.lengths.items()}


GIBBS = Gibbs(prepare=prepare, start=start, sweep=sweep, sites=sites, at=at, lengths=lengths)


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


def _numbered(kind: int, length: int) -> Array:
    """Return the numbers of the variables of a kind. They do not depend on the lengths of other tables."""
    return jnp.arange(length, dtype=jnp.uint32) + np.uint32(kind << 28)


# Kinds of variables; with the place of its set added for scales. A sweep has one key, and its draws differ by number.
_PAIR, _TIE, _SET, _STAGES, _ENTRY, _OTHER, _TOTAL, _SCALE = range(8)


def _numbers(problem: Problem) -> _Gammas:
    tables, num_items = problem.tables, len(problem.total_shape)
    return _Gammas(
        _numbered(_STAGES, len(tables.stages)),
        jnp.stack([_numbered(_SCALE + place, num_items) for place in range(_NUM_SCALES)]),
        jnp.concatenate([_numbered(_ENTRY, len(tables.entry_item)), _numbered(_OTHER, num_items)]),
        _numbered(_TOTAL, num_items),
    )


def _draw_gammas(key: HashKey, stages: Float[Array, " race"], sets: _Sets, problem: Problem) -> _Gammas:
    """Draw all that a sweep needs in one call: the shapes are known as soon as the pairs are in order."""
    wins = problem.reliability * problem.tables.wins
    shapes = _Gammas(
        jnp.where(stages > 0, stages, 1.0),
        jax.vmap(_scale_shape, (0, None, None))(sets, stages, problem),
        jnp.asarray(problem.shape).at[: len(wins)].add(wins),
        problem.total_shape,
    )
    flat, unflatten = ravel_pytree(shapes)
    return unflatten(jnp.asarray(log_gamma(key, flat, ravel_pytree(_numbers(problem))[0])))


# ---- times given weights ----


class _Times(NamedTuple):
    """Times in units of one over the total weights.

    Parameters
    ----------
    clock : shape ``(race,)``; total time of the stages of each race, without the larger ties.
    last : shape ``(copy, tie)``; see `State`.
    tied : shape ``(tied,)``; the arrival times of the members of larger ties, summed over the copies.
    """

    clock: Float[Array, " race"]
    last: Float[Array, "copy tie"]
    tied: Float[Array, " tied"]


def _second_stages(key: HashKey, rate: Float[Array, " race"], problem: Problem) -> Float[Array, "pair 2"]:
    """Draw how often the one class of each pair came second, and how often the other."""
    races, count = problem.tables.pair_races, problem.reliability * problem.tables.pair_count
    # A pair is completed by the slower race with the larger probability: 1 / rate is its expected time.
    log_odds = jnp.log(rate[races[:, 1]]) - jnp.log(rate[races[:, 0]])
    number = binomial(key, count, jax.nn.sigmoid(log_odds), _numbered(_PAIR, len(count)))
    return jnp.stack([number, count - number], axis=1)


def _tie_times(
    key: HashKey, last: Float[Array, "copy tie"], share: Float[Array, " weight"], rate: Float[Array, " race"],
    problem: Problem,
) -> tuple[Float[Array, "copy tie"], Float[Array, " tied"]]:  # fmt: skip
    """Draw the times in the larger ties anew: first the threshold given the latest, then all of them below it.

    Returns
    -------
    the latest of each copy, and each member's times summed over the copies.
    """
    tables, num_ties = problem.tables, len(problem.tables.tie_below)
    share, below = _positive(share[tables.tied_entry]), rate[tables.tie_below]
    if not num_ties:
        return last, share
    number = _numbered(_TIE, len(share))

    def of_copy(copy: Array, carry: tuple) -> tuple:
        last, total = carry
        uniform, spare = uniform_pairs(key, number, jnp.full_like(number, copy), share.dtype)
        threshold = last[copy] - jnp.log(spare[:num_ties]) / below
        # Exponential variables that are known to be below the threshold.
        time = -jnp.log1p(uniform * jnp.expm1(-share * threshold[tables.tied])) / share
        time = jnp.where(tables.tied_row >= 0, time, 0.0)
        latest = jax.ops.segment_max(time, tables.tied, num_ties, indices_are_sorted=True)
        # Ties that only pad have no members.
        return last.at[copy].set(jnp.maximum(latest, 0.0)), total + time

    # Copies one by one: as many as there are, whatever there is room for.
    return jax.lax.fori_loop(0, jnp.round(problem.reliability).astype(int), of_copy, (last, jnp.zeros_like(share)))


def _exposure(times: _Times, tables: Layout) -> Float[Array, " weight"]:
    """Return for how long each weight was watched. What is below a tie was, until the last of its members arrived."""
    clock = jnp.asarray(times.clock).at[tables.tie_below].add(times.last.sum(axis=0))
    exposure = _sum(clock[tables.clock], tables.weight, len(tables.weight_item))
    return jnp.asarray(exposure).at[tables.tied_entry].add(times.tied)


# ---- scales of sets ----


class _Sets(NamedTuple):
    """What lies within the chosen set of each item: weights, races, and larger ties with all below them."""

    weight: Bool[Array, "*set weight"]
    race: Bool[Array, "*set race"]
    tie: Bool[Array, "*set tie"]


def _random_sets(key: HashKey, problem: Problem) -> _Sets:
    """Choose sets that race, not all weights, whose scale is the total; none where the item has no other set."""
    tables = problem.tables
    number = _numbered(_SET, len(tables.has_other))
    uniform = uniform_pairs(key, number, jnp.zeros_like(number), problem.shape.dtype)[:_NUM_SCALES]
    num_smaller = jnp.diff(tables.first_race) - 1
    place = tables.first_race[:-1] + 1 + jnp.minimum((uniform * num_smaller).astype(int), num_smaller - 1)
    return jax.vmap(_members, (0, 0, None))(place, jnp.broadcast_to(num_smaller > 0, place.shape), tables)


def _members(chosen_race: Int[Array, " item"], is_chosen: Bool[Array, " item"], tables: Layout) -> _Sets:
    """Compare sets by the bits of the entries that they miss. A word of ones misses all, and holds no other set."""
    missing = jnp.asarray(tables.missing)[:, jnp.where(is_chosen, chosen_race, 0)]
    missing = jnp.where(is_chosen, missing, np.uint32(2**32 - 1))
    entry = jnp.all(tables.entry_bit & missing[:, tables.entry_item] == 0, axis=0)
    race = jnp.all(missing[:, tables.race_item] & ~tables.missing == 0, axis=0)
    return _Sets(jnp.concatenate([entry, is_chosen & tables.has_other]), race, race[tables.tie_race])


def _scale_shape(within: _Sets, stages: Float[Array, " race"], problem: Problem) -> Float[Array, " item"]:
    """Return the Gamma shape of the scale of each set.

    Weights bring their prior shapes and their wins. Times bring the change of their volume: minus one for each stage
    and for each member of a copy of a larger tie. Every stage within has a winner within, so the prior shapes at least
    are left.
    """
    tables, num_items = problem.tables, len(problem.total_shape)
    wins = _sum(jnp.where(within.weight[: len(tables.wins)], tables.wins, 0.0), tables.entry_item, num_items)
    stages = _sum(jnp.where(within.race, stages, 0.0), tables.race_item, num_items)
    members = _sum(within.tie[tables.tied].astype(stages.dtype), _tied_item(tables), num_items)
    prior = _sum_of_weights(jnp.where(within.weight, problem.shape, 0.0), tables)
    # An item without a chosen set has no shape; any positive one serves.
    return jnp.where(prior > 0, prior + (problem.reliability * (wins - members) - stages), 1.0)


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
    items = _Times(tables.race_item, _tie_item(tables), _tied_item(tables))

    def of_times(within: _Sets) -> _Times:
        return _Times(within.race, within.tie, within.tie[tables.tied])

    def scale_set(carry: tuple, one: tuple) -> tuple:
        (share, times), (within, log_gammas) = carry, one
        # The scale's rate: the weights against the times that it leaves alone.
        outer = jax.tree.map(lambda inside, time: jnp.where(inside, 0.0, time), of_times(within), times)
        rate = share * (_exposure(outer, tables) + prior_rate[tables.weight_item])
        rate = _sum_of_weights(jnp.where(within.weight, rate, 0.0), tables)
        log_scale = log_gammas - jnp.log(_positive(rate))
        scale = jnp.exp(jnp.where(jnp.abs(log_scale) < _LARGEST_LOG_SCALE, log_scale, 0.0))
        share = jnp.where(within.weight, share * scale[tables.weight_item], share)
        scaled = jax.tree.map(
            lambda inside, time, item: jnp.where(inside, time / scale[item], time), of_times(within), times, items
        )
        return (share, scaled), None

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


def _tie_item(tables: Layout) -> Int[Array, " tie"]:
    return tables.race_item[tables.tie_below]


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
