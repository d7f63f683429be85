"""The joint-distribution test passes the Gibbs sampler of Plackett-Luce and catches it with any one bug planted.

Every item is a chain. It starts at its true weights and times, and sweeps of a correct sampler leave the joint
distribution as it is. Some bugs are planted in the tables of a problem, others in a function of the sampler.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.evaluation.calibration import joint_distribution_test, with_second_moments
from consilience.models.plackett_luce import MODEL, Priors, gibbs, simulation
from consilience.models.random import log_gamma

SWEEPS = 10
PRIORS = Priors.exchangeable(1.0)


class Reports(NamedTuple):
    """What the reports of an item look like, and how many items there are."""

    design: tuple  # sizes of the blocks of a report, in turn
    num_annotators: int
    num_classes: int
    num_items: int = 20_000


# Few reports leave the prior its say; among many of few classes some are alike, and are merged in the tables.
FEW = Reports(((2, 1), (3,), (1, 1)), 3, 5)
ALIKE = Reports(((2,), (3,)), 8, 4)
WITHOUT_TIES = Reports(((1, 1), (1, 1, 1)), 6, 5, num_items=60_000)


@functools.cache
def simulated(seed, reports):
    design, *sizes = reports
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "DESIGN", design)
        names = ("num_annotators", "num_classes", "num_items")
        return MODEL.simulate(jax.random.key(seed), PRIORS, **dict(zip(names, sizes, strict=True)))


log_likelihood = jax.jit(MODEL.simulation.log_likelihood)


def functions(state, problem, resolved):
    """Return functions of an item's weights and reports: plausibilities where named, the others', the likelihood."""
    sites = {site: np.asarray(value, float) for site, value in gibbs.sites(state, problem).items()}
    data = resolved.data
    named = np.zeros((data.num_items, data.num_classes))
    named[data.entry_item, data.entry_class] = sites["plausibility"]
    quantities = {f"plausibility {k}": named[:, k] for k in range(data.num_classes)}
    quantities |= {"other": sites["other"], "largest": named.max(axis=1)}
    quantities["log likelihood"] = np.asarray(log_likelihood(sites, resolved), float)
    return with_second_moments(quantities)


@jax.jit
def right_sweeps(key, state, problem):
    def once(number, state):
        return gibbs.sweep(jax.random.fold_in(key, number), state, problem)

    return jax.lax.fori_loop(0, SWEEPS, once, state)


def joint_test(seed, reports, change=None, sweeps=right_sweeps, reliability=1.0):
    """Run the test on given data, with another problem or another sweep."""
    data, values = simulated(seed, reports)
    problem = gibbs.prepare(MODEL.resolve(data, PRIORS, {"reliability": reliability}))
    resolved = MODEL.resolve(data, PRIORS)
    if change is not None:
        problem = change(problem, data)
    return joint_distribution_test(
        jax.random.key(seed + 100),
        lambda key: (gibbs.at(values, resolved, problem), data),
        lambda key, state, data: sweeps(key, state, problem),
        lambda key, state, data: (state, data),
        lambda state, data: functions(state, problem, resolved),
        rounds=1,
    )


@pytest.mark.parametrize("reports", [FEW, pytest.param(ALIKE, marks=pytest.mark.slow)], ids=["few", "alike"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_sampler_passes(seed, reports):
    assert joint_test(seed, reports).largest < 4.5


# ---- bugs in the tables ----


def with_tables(problem, **tables):
    return problem._replace(tables=problem.tables._replace(**tables))


def every_report_counted(problem, data):
    """The shape for complete times, with the times for which a class was watched."""
    reports = np.bincount(data.report_item, minlength=data.num_items)[data.entry_item]
    return with_tables(problem, wins=reports.astype(problem.tables.wins.dtype))


def prior_dropped(problem, data):
    return problem._replace(shape=np.full_like(problem.shape, 1e-3))


def shape_less(problem, data):
    return problem._replace(shape=problem.shape - 0.2)


def races_counted_once(problem, data):
    return with_tables(problem, stages=np.minimum(problem.tables.stages, 1))


def pairs_counted_once(problem, data):
    return with_tables(problem, pair_count=np.minimum(problem.tables.pair_count, 1))


def total_without_others(problem, data):
    return problem._replace(total_shape=problem.total_shape - problem.shape[-data.num_items :])


TABLES = {
    "every report counted": (every_report_counted, FEW),
    "prior dropped": (prior_dropped, FEW),
    "shape less 0.2": (shape_less, FEW),
    "races alike counted once": (races_counted_once, ALIKE),
    "pairs alike counted once": (pairs_counted_once, ALIKE),
    "total without the others": (total_without_others, FEW),
}


@pytest.mark.parametrize("bug", TABLES)
def test_a_bug_in_the_tables_fails(bug):
    change, reports = TABLES[bug]
    assert joint_test(0, reports, change).largest > 8


@pytest.mark.slow
def test_a_weighted_likelihood_fails():
    assert joint_test(0, WITHOUT_TIES, reliability=1.05).largest > 8


# ---- bugs in a function of the sampler ----


def complete_times(original, current):
    """The paper's text: the times of unranked classes are drawn to the end, but the shape does not count them."""

    def exposure(times, tables):
        unranked = jnp.maximum(FEW.num_annotators - jnp.asarray(tables.wins), 0)
        rest = jnp.exp(log_gamma(jax.random.fold_in(current["key"], 7), jnp.maximum(unranked, 1.0)))
        rest = jnp.where(unranked > 0, rest, 0.0) / current["share"][: len(unranked)]
        return original(times, tables).at[: len(rest)].add(rest)

    return exposure


def swapped_pairs(original, current):
    return lambda key, rate, tables: original(key, rate, tables)[:, ::-1]


def one_key_for_two_weights(original, current):
    """The weight of the others and that of the first entry of each item are drawn with one key."""

    def draw_gammas(key, stages, sets, problem):
        gammas, num_items = original(key, stages, sets, problem), len(problem.total_shape)
        first = jnp.searchsorted(problem.tables.entry_item, jnp.arange(num_items))
        shape = problem.shape[first] + problem.tables.wins[first]
        weight = gammas.weight.at[first].set(log_gamma(key, shape))
        return gammas._replace(weight=weight.at[-num_items:].set(log_gamma(key, problem.shape[-num_items:])))

    return draw_gammas


def without_tail(original, current):
    return lambda key, time, share, rate, tables: original(key, time, share, jnp.full_like(rate, 1e6), tables)


def tie_races_itself(original, current):
    def tie_times(key, time, share, rate, tables):
        members = jnp.zeros(len(tables.tie_below)).at[tables.tied].add(share[tables.tied_entry])
        return original(key, time, share, rate.at[tables.tie_below].add(members), tables)

    return tie_times


def unwatched_below_ties(original, current):
    def exposure(times, tables):
        clocks = jnp.concatenate([times.clock, times.tied])[tables.clock]
        return jax.ops.segment_sum(clocks, tables.weight, len(tables.weight_item))

    return exposure


def volume_forgotten(original, current):
    return lambda within, stages, problem: original(within, jnp.zeros_like(stages), problem)


def scale_without_prior(original, current):
    def scale_times(sets, log_gammas, share, times, prior_rate, tables):
        return original(sets, log_gammas, share, times, jnp.zeros_like(prior_rate), tables)

    return scale_times


# What is replaced, the function that makes the wrong one of the right one, and the reports that show it.
FUNCTIONS = {
    "complete times with the shape for watched ones": ("_exposure", complete_times, FEW),
    "a key used twice": ("_draw_gammas", one_key_for_two_weights, FEW),
    "threshold without its tail": ("_tie_times", without_tail, FEW),
    "winners of pairs swapped": ("_second_stages", swapped_pairs, ALIKE),
    "a tie races against itself": ("_tie_times", tie_races_itself, FEW),
    "nobody watched below ties": ("_exposure", unwatched_below_ties, FEW),
    "volume of the scaled times forgotten": ("_scale_shape", volume_forgotten, WITHOUT_TIES),
    "scale without the prior": ("_scale_times", scale_without_prior, FEW._replace(num_items=60_000)),
}


def mutated(bug, seed):
    """Run the test with one function of the sampler replaced, by one that knows the sweep's key and shares."""
    name, mutate, reports = FUNCTIONS[bug]
    current = {}

    @jax.jit
    def sweeps(key, state, problem):
        def once(number, state):
            current.update(key=jax.random.fold_in(key, number), share=jnp.exp(state.log_share))
            return gibbs.sweep(current["key"], state, problem)

        return jax.lax.fori_loop(0, SWEEPS, once, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gibbs, name, mutate(getattr(gibbs, name), current))
        return joint_test(seed, reports, sweeps=sweeps)


# Each has to be compiled anew, so that a quick run tries the first of them only.
BUGS = [bug if number < 3 else pytest.param(bug, marks=pytest.mark.slow) for number, bug in enumerate(FUNCTIONS)]


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_a_function_fails(bug):
    assert mutated(bug, 0).largest > 8
