"""The Gibbs driver on a sampler whose posterior is known, and the promises that every driver makes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from consilience.errors import UnsupportedRequest
from consilience.inference import generic
from consilience.inference.gibbs import run_gibbs
from consilience.inference.results import Result
from consilience.models.diagnostics import convergence
from consilience.models.interface import Gibbs
from tests.inference.runs import stop_at

RATINGS = np.array([2.5, 3.0, 7.5, 4.0, 3.5])


def prepare(data):
    """Mean ~ N(0, variance), precision ~ Gamma(3, 2): conjugate, so that the two conditionals have a known joint."""
    return {"ratings": np.asarray(data, jnp.result_type(float))}


def start(key, problem):
    mean, log_precision = jax.random.normal(key, (2,))
    return {"mean": 5 * mean, "precision": jnp.exp(log_precision)}


def sweep(key, state, problem):
    key_mean, key_precision = jax.random.split(key)
    ratings = problem["ratings"]
    sd = 1 / jnp.sqrt((len(ratings) + 1) * state["precision"])
    mean = ratings.sum() / (len(ratings) + 1) + sd * jax.random.normal(key_mean)
    rate = 2 + (jnp.sum((ratings - mean) ** 2) + mean**2) / 2
    return {"mean": mean, "precision": jax.random.gamma(key_precision, 3 + (len(ratings) + 1) / 2) / rate}


def sites(state, problem):
    return {"mean": state["mean"], "precision": state["precision"]}


SAMPLER = Gibbs(prepare=prepare, start=start, sweep=sweep, sites=sites)


def run(sampler=SAMPLER, seed=0, ratings=RATINGS, **settings):
    problem = sampler.prepare(ratings)
    return run_gibbs(sampler, problem, key=jax.random.key(seed), **{"draws": 2000, "warmup": 100, **settings})


def test_draws_that_no_memory_holds_are_refused_at_once(monkeypatch):
    monkeypatch.setattr(generic, "_memory", lambda: 40e3)
    run(draws=1000)  # four chains of two numbers in single precision
    with pytest.raises(UnsupportedRequest, match=r"the draws take .* GB, and this machine has .*: ask for fewer draws"):
        run(draws=1000, chains=8)


@pytest.mark.parametrize("x64", [False, True])
def test_draws_come_from_the_posterior(x64):
    with jax.enable_x64(x64):
        result = run()
    count = len(RATINGS)
    location = RATINGS.sum() / (count + 1)
    shape = 3 + count / 2
    rate = 2 + (np.sum((RATINGS - location) ** 2) + location**2) / 2
    marginal = {
        "precision": stats.gamma(shape, scale=1 / rate),
        "mean": stats.t(2 * shape, location, np.sqrt(rate / shape / (count + 1))),
    }
    assert result.result is Result.max_steps
    assert result.steps == 2100
    for site, law in marginal.items():
        draws = result.samples[site]
        assert draws.shape == (4, 2000)
        assert draws.dtype == (np.float64 if x64 else np.float32)
        assert convergence(draws).r_hat < 1.01
        levels = law.cdf(draws)
        for moment in (levels, (levels - 0.5) ** 2):
            error = moment.std() / np.sqrt(convergence(moment).ess_mean)
            expected = 0.5 if moment is levels else 1 / 12
            assert abs(moment.mean() - expected) < 5 * error


def test_equal_seeds_give_equal_bits_and_chains_differ():
    one, same, other = run(draws=50), run(draws=50), run(seed=1, draws=50)
    np.testing.assert_array_equal(one.samples["mean"], same.samples["mean"])
    assert np.all(one.samples["mean"] != other.samples["mean"])
    assert len(np.unique(one.samples["mean"])) == 200


def test_more_draws_extend_fewer():
    few, many = run(draws=30), run(draws=333)
    np.testing.assert_array_equal(few.samples["mean"], many.samples["mean"][:, :30])


def test_a_second_run_of_a_sampler_compiles_nothing(compilations):
    run(draws=20)
    compilations.clear()
    run(seed=3, ratings=RATINGS[::-1] + 1, draws=40, warmup=7)
    assert not compilations


def test_padding_of_a_site_is_left_out():
    rows = dataclasses.replace(SAMPLER, sites=lambda state, problem: {**state, "ratings": problem["ratings"]})
    cut = run(dataclasses.replace(rows, lengths=lambda problem: {"ratings": len(problem["ratings"]) - 1}), draws=20)
    np.testing.assert_array_equal(cut.samples["ratings"], run(rows, draws=20).samples["ratings"][:, :, :4])


def test_a_number_that_is_not_finite_ends_the_run_at_its_step():
    def break_at_step_130(key, state, problem):
        new = sweep(key, state, problem)
        count = state["count"] + 1
        return {**new, "mean": jnp.where(count == 130, jnp.nan, new["mean"]), "count": count}

    def counted(key, problem):
        return {**start(key, problem), "count": jnp.int32(0)}

    result = run(Gibbs(prepare=prepare, start=counted, sweep=break_at_step_130, sites=sites))
    assert result.result is Result.nonfinite
    assert result.steps == 129
    assert "129" in result.message
    assert result.samples["mean"].shape == (4, 29)
    assert np.isfinite(result.samples["mean"]).all()


def test_an_interrupt_keeps_the_draws_so_far():
    result = run(progress=stop_at(151))
    assert result.result is Result.interrupted
    assert result.samples["mean"].shape == (4, result.steps - 100)
    np.testing.assert_array_equal(result.samples["mean"], run().samples["mean"][:, : result.steps - 100])


def test_an_interrupt_before_the_first_draw_leaves_empty_draws():
    result = run(progress=stop_at(0))
    assert result.samples["mean"].shape == (4, 0)
