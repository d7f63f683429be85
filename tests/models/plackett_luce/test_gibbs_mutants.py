"""The joint-distribution test passes the Gibbs sampler of Plackett-Luce and catches it with any one bug planted.

Every item is a chain, all of them in one problem. It starts at its true weights and times; reports are not drawn anew.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.models.plackett_luce import MODEL, Priors, gibbs, simulation
from consilience.models.random import log_gamma
from consilience.replications import Chain
from tests.models.mutants import FOUND, PASSES, Case, given, joint_tests, largest, planted

log_likelihood = jax.jit(MODEL.simulation.log_likelihood)


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


def case_of(reports, alpha=1.0, reliability=1.0):
    """Return a function that makes the case; the reliability is that of the sampler, and not of the data."""
    priors, resolved = Priors.exchangeable(alpha), []

    def start(key):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(simulation, "DESIGN", reports.design)
            data, values = MODEL.simulate(key, priors, **dict(list(reports._asdict().items())[1:]))
        resolved[:] = [MODEL.resolve(data, priors)]
        problem = gibbs.prepare(MODEL.resolve(data, priors, {"reliability": reliability}))
        return Chain(gibbs.at(values, resolved[0], problem), problem)

    return lambda: Case(
        start=start, redraw=lambda key, chains: chains, quantities=lambda chains: quantities(chains, resolved[0]),
        sweep=gibbs.sweep, rounds=1, together=True,
    )  # fmt: skip


def quantities(chains, resolved):
    """Return those of an item's weights and reports: plausibilities where named, the others', times, the likelihood."""
    data, sites = resolved.data, gibbs.sites(*chains)
    sites = {site: sites[site][:length] for site, length in gibbs.lengths(chains.problem).items()}
    item, share = data.entry_item, np.asarray(sites["plausibility"], float)
    named = np.zeros((data.num_items, data.num_classes))
    named[item, data.entry_class] = share
    last, time = np.full(data.num_items, -20.0), np.asarray(chains.state.last, float)[0]
    tables = chains.problem.tables
    tied = np.flatnonzero(np.bincount(tables.tied[tables.tied_row >= 0], minlength=len(time)))
    np.maximum.at(last, tables.race_item[tables.tie_below[tied]], np.log(time[tied]))
    wins = np.bincount(data.entry[np.asarray(data.block) == 0], minlength=data.num_entries)
    return {
        **{f"plausibility {code}": values for code, values in enumerate(named.T)},
        "other": sites["other"], "largest": named.max(axis=1), "last of a tie": last,
        "winners": np.bincount(item, share * wins, data.num_items),
        "logarithms": np.bincount(item, np.maximum(np.log(share), -20), data.num_items),
        "log likelihood": log_likelihood(sites, resolved),
    }  # fmt: skip


@pytest.mark.slow
def test_the_joint_distribution_of_sparse_weights():
    assert largest(case_of(FEW, alpha=0.7)()) < PASSES


@pytest.mark.slow
def test_a_weighted_likelihood_fails():
    assert largest(case_of(WITHOUT_TIES, reliability=1.05)()) > FOUND


# ---- bugs in the problem ----


def with_problem(**changes):
    return gibbs, "sweep", given(
        lambda problem: problem._replace(**{name: change(problem) for name, change in changes.items()})
    )  # fmt: skip


def with_table(name, change):
    return with_problem(tables=lambda problem: problem.tables._replace(**{name: change(getattr(problem.tables, name))}))


def every_report_counted(wins):
    """The shape for complete times, with the times for which a class was watched."""
    return jnp.full_like(wins, FEW.num_annotators)


def total_without_others(problem):
    return problem.total_shape - problem.shape[-len(problem.total_shape) :]


# ---- bugs in a function of the sampler ----


def complete_times(right):
    """The paper's text: the times of unranked classes are drawn to the end, but the shape does not count them."""

    def sweep(key, state, problem):
        def of_exposure(original):
            def exposure(times, tables):
                unranked = jnp.maximum(FEW.num_annotators - jnp.asarray(tables.wins), 0)
                rest = jnp.exp(log_gamma(jax.random.fold_in(key, 7), jnp.maximum(unranked, 1.0)))
                rest = jnp.where(unranked > 0, rest, 0.0) / jnp.exp(state.log_share)[: len(unranked)]
                return original(times, tables).at[: len(rest)].add(rest)

            return exposure

        with planted(gibbs, "_exposure", of_exposure):
            return right(key, state, problem)

    return sweep


def one_key_for_two_weights(right):
    """The weight of the others and that of the first entry of each item are drawn with one key."""

    def draw_gammas(key, stages, sets, problem):
        gammas, num_items = right(key, stages, sets, problem), len(problem.total_shape)
        first = jnp.searchsorted(problem.tables.entry_item, jnp.arange(num_items))
        shape = problem.shape[first] + jnp.asarray(problem.tables.wins)[first]
        weight = gammas.weight.at[first].set(log_gamma(key, shape))
        return gammas._replace(weight=weight.at[-num_items:].set(log_gamma(key, problem.shape[-num_items:])))

    return draw_gammas


def without_tail(right):
    return lambda key, last, share, rate, problem: right(key, last, share, jnp.full_like(rate, 1e6), problem)


def tie_races_itself(right):
    def tie_times(key, last, share, rate, problem):
        tables = problem.tables
        members = jnp.zeros(len(tables.tie_below)).at[tables.tied].add(share[tables.tied_entry])
        return right(key, last, share, rate.at[tables.tie_below].add(members), problem)

    return tie_times


def unwatched_below_ties(right):
    return lambda times, tables: right(times._replace(last=jnp.zeros_like(times.last)), tables)


def swapped_pairs(right):
    return lambda key, rate, problem: right(key, rate, problem)[:, ::-1]


def scale_without_prior(right):
    return lambda sets, log_gammas, share, times, prior_rate, tables: right(
        sets, log_gammas, share, times, jnp.zeros_like(prior_rate), tables
    )


def volume_forgotten(right):
    return lambda within, stages, problem: right(within, jnp.zeros_like(stages), problem)


MUTANTS = {
    "every report counted": with_table("wins", every_report_counted),
    "complete times with the shape for watched ones": (gibbs, "sweep", complete_times),
    "a key used twice": (gibbs, "_draw_gammas", one_key_for_two_weights),
    "threshold without its tail": (gibbs, "_tie_times", without_tail),
    "a tie races against itself": (gibbs, "_tie_times", tie_races_itself),
    "nobody watched below ties": (gibbs, "_exposure", unwatched_below_ties),
    "prior dropped": with_problem(shape=lambda problem: jnp.full_like(problem.shape, 1e-3)),
    "shape less 0.2": with_problem(shape=lambda problem: problem.shape - 0.2),
    "total without the others": with_problem(total_shape=total_without_others),
}
OF_REPORTS_ALIKE = {
    "races alike counted once": with_table("stages", lambda stages: jnp.minimum(stages, 1)),
    "pairs alike counted once": with_table("pair_count", lambda count: jnp.minimum(count, 1)),
    "winners of pairs swapped": (gibbs, "_second_stages", swapped_pairs),
}
OF_MORE_ITEMS = {"scale without the prior": (gibbs, "_scale_times", scale_without_prior)}
WITHOUT_TIES_ALONE = {"volume of the scaled times forgotten": (gibbs, "_scale_shape", volume_forgotten)}

test_the_sampler_passes, test_a_mutant_is_found = joint_tests(case_of(FEW), MUTANTS, quick=3)
test_reports_alike_pass, test_a_mutant_of_reports_alike_is_found = joint_tests(case_of(ALIKE), OF_REPORTS_ALIKE)
test_more_items_pass, test_a_mutant_among_more_items_is_found = joint_tests(
    case_of(FEW._replace(num_items=60_000)), OF_MORE_ITEMS
)
test_no_ties_pass, test_a_mutant_without_ties_is_found = joint_tests(case_of(WITHOUT_TIES), WITHOUT_TIES_ALONE)
