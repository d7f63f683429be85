"""EM of Plackett-Luce: ascent, optimality, and agreement with a general optimiser."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import optimize

from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models.plackett_luce import MODEL
from consilience.models.plackett_luce.em import EM, maximum_likelihood
from consilience.models.plackett_luce.likelihood import log_likelihood
from consilience.models.plackett_luce.priors import OneClass, Priors
from tests.models.plackett_luce.reports import random_cases, rankings

TWO = Priors(weight=OneClass(2.0), other=OneClass(2.0))
CASES = [
    [[[0, 1], [2]], [[1]]],
    [[[0], [1, 2]], [[1, 2, 3]], [[4], [0]]],
    [[[0, 1, 2, 3], [4]], [[5], [0, 1]], []],
    [[[0, 1, 2], [3, 4, 5]], [[0, 1], [2, 3, 4, 5]], [[3]]],
    [[[0]], [[0]], [[1]]],
    [[], []],
]


def random_rankings(seed):
    return rankings(random_cases(seed, 40, most=5), 6)


def prepare(data, priors=None, reliability=1.0, **settings):
    return EM.prepare(MODEL.resolve(data, priors, {"reliability": reliability, **settings}))


step = jax.jit(EM.step)


def climb(problem, num_steps):
    """Return the shares after some steps, and the objective on the way there."""
    state, path = EM.start(jax.random.key(0), problem), []
    for _ in range(num_steps):
        state, objective = step(state, problem)
        path.append(float(objective.sum()))
    return EM.sites(state, problem), path


def test_counts_leave_out_blocks_that_say_nothing():
    data = rankings([[[[0, 1], [2]], [[2], [0, 1]], [[0]], [[0, 1, 2]]]], 3)
    assert prepare(data).listed.tolist() == [2, 1, 1]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(("priors", "reliability"), [(None, 1.0), (TWO, 1.0), (TWO, 0.3), (None, 4.5)])
def test_the_objective_never_decreases(x64, priors, reliability):
    with jax.enable_x64(x64):
        shares, path = climb(prepare(random_rankings(0), priors, reliability), 60)
        assert np.all(np.isfinite(path))
        # In float32 sums of some hundred log probabilities are rounded.
        assert np.diff(path).min() > (-1e-9 if x64 else -1e-6) * abs(path[0])
        assert path[-1] > path[0]
        total = np.bincount(random_rankings(0).entry_item, shares["plausibility"], 40) + shares["other"]
        np.testing.assert_allclose(total, 1, atol=1e-12 if x64 else 1e-5)


@pytest.mark.parametrize("reliability", [1.0, 2.5])
def test_an_interior_optimum_is_that_of_a_general_optimiser(reliability):
    with jax.enable_x64(True):
        data = rankings(CASES, 6)
        shares, _ = climb(prepare(data, TWO, reliability), 400)
        has_other = np.bincount(data.entry_item, minlength=len(CASES)) < 6
        split = data.num_entries

        @jax.jit
        def loss(logs):
            """Minus the log posterior of weights, whose mode has the same shares; an unread `other` stands still."""
            log_weight, log_other = logs[:split], logs[split:]
            prior = (log_weight - jnp.exp(log_weight)).sum()
            prior += jnp.where(has_other, log_other - jnp.exp(log_other), 0).sum()
            return -prior - reliability * log_likelihood(data, log_weight, log_other).sum()

        found = optimize.minimize(
            loss, np.zeros(split + len(CASES)), jac=jax.jit(jax.grad(loss)), method="BFGS", options={"gtol": 1e-7}
        )
        assert np.abs(found.jac).max() < 1e-5
        weight, other = np.exp(found.x[:split]), np.where(has_other, np.exp(found.x[split:]), 0)
        total = np.bincount(data.entry_item, weight, len(CASES)) + other
        np.testing.assert_allclose(shares["plausibility"], weight / total[data.entry_item], atol=1e-6)
        np.testing.assert_allclose(shares["other"], other / total, atol=1e-6)


def test_at_the_boundary_no_share_can_be_gained():
    data = random_rankings(1)
    value = jax.jit(log_likelihood)
    with jax.enable_x64(True):
        plausibility = maximum_likelihood(data)
        nothing = jnp.full(data.num_items, -jnp.inf)
        best = np.asarray(value(data, jnp.log(plausibility), nothing))
        np.testing.assert_allclose(np.bincount(data.entry_item, plausibility, 40)[np.unique(data.entry_item)], 1)
        first = np.searchsorted(data.entry_item, np.arange(40))
        size = np.bincount(data.entry_item, minlength=40)
        for position in range(size.max()):
            raised = plausibility * 0.99
            raised[(first + position)[position < size]] += 0.01
            assert np.all(np.asarray(value(data, jnp.log(raised), nothing)) <= best + 1e-3)
        others = value(data, jnp.log(plausibility * 0.99), jnp.full(data.num_items, jnp.log(0.01)))
        assert np.all(np.asarray(others) <= best + 1e-3)


def test_an_interior_maximum_of_the_likelihood_has_no_slope():
    data = rankings([[[[0, 1], [2]], [[2], [1]], [[1], [0, 2]], [[0]], [[2, 0]]]], 3)
    with jax.enable_x64(True):
        plausibility = maximum_likelihood(data)
        slope = jax.jit(jax.grad(lambda logs: log_likelihood(data, logs, jnp.zeros(1)).sum()))(jnp.log(plausibility))
    assert plausibility.min() > 0.05
    assert np.abs(slope).max() < 1e-3


def test_single_classes_are_counted():
    votes = np.array([[3, 1, 0, 1], [2, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 7]])
    cases = [[[[k]] for k, count in enumerate(row) for _ in range(count)] for row in votes]
    data = rankings(cases, 6)
    share = votes / votes.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(maximum_likelihood(data), share[data.entry_item, data.entry_class], atol=1e-12)


def test_repeated_reports_and_reliability_are_the_same_thing():
    twice = [case + case for case in CASES]
    with jax.enable_x64(True):
        for priors in (None, TWO):
            expected, _ = climb(prepare(rankings(twice, 6), priors), 30)
            shares, _ = climb(prepare(rankings(CASES, 6), priors, reliability=2.0), 30)
            for site, value in shares.items():
                np.testing.assert_allclose(value, expected[site], rtol=1e-6, atol=1e-6)
        # The maximum of the likelihood does not depend on its power.
        once, _ = climb(prepare(rankings(CASES, 6)), 30)
        squared, _ = climb(prepare(rankings(twice, 6)), 30)
        np.testing.assert_allclose(once["plausibility"], squared["plausibility"], rtol=1e-6, atol=1e-6)


def test_nothing_known_is_shared_equally():
    cases = [[[]], [[[0, 1, 2]]], [[[0, 1, 2]], [[1]]]]
    np.testing.assert_allclose(maximum_likelihood(rankings(cases, 3)), [1 / 3] * 3 + [0, 1, 0], atol=1e-12)
    shares, _ = climb(prepare(rankings(cases, 3)), 3)
    np.testing.assert_allclose(shares["other"], [1, 0, 0])


def test_shares_that_tend_to_zero_keep_their_order():
    plausibility = maximum_likelihood(rankings([[[[3], [1], [2]], [[3], [1]]]], 6))
    order = plausibility[[2, 0, 1]]
    assert order[0] > 0.999
    assert np.all(np.diff(order) < 0)
    assert np.all(plausibility > 0)


def test_shapes_below_one_have_no_mode():
    with pytest.raises(UnsupportedRequest, match=r"shape 0\.5 has no mode"):
        prepare(rankings(CASES, 6), Priors(weight=OneClass(0.5)))
    with pytest.raises(UnsupportedRequest, match="has no mode"):
        prepare(rankings(CASES, 6), Priors.exchangeable(0.1))
    # Where every class is named the prior of the others is not read.
    prepare(rankings([[[[0, 1]], [[2]]]], 3), Priors(other=OneClass(0.5)))


def test_other_requests_that_have_no_answer():
    with pytest.raises(UnsupportedRequest, match="tempering is 'power'"):
        prepare(rankings(CASES, 6), tempering="power")
    with pytest.raises(NotConjugate, match="Gamma"):
        prepare(rankings(CASES, 6), Priors(weight=dist.LogNormal(0.0, 1.0)))
