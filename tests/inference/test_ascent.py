"""The driver of ascents on an objective whose maximum is known."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.inference.ascent import run_ascent
from consilience.inference.results import Result
from consilience.models.interface import Ascent
from consilience.models.posterior import Estimate

GOAL = np.array([1.0, -2.0, 4.0])


def prepare(data):
    return np.asarray(data, jnp.result_type(float))


def start(key, problem):
    return jnp.zeros_like(problem)


def step(state, problem):
    """Halve the distance to the goal; the objective is minus its square, a term for each number."""
    return (state + problem) / 2, -1 - (state - problem) ** 2


def sites(state, problem):
    return {"place": state}


ASCENT = Ascent(
    name="em", prepare=prepare, start=start, step=step, sites=sites, finish=lambda values, resolved: Estimate(values)
)


def run(ascent=ASCENT, **settings):
    return run_ascent(ascent, prepare(GOAL), key=jax.random.key(0), **settings)


@pytest.mark.parametrize("x64", [False, True])
def test_it_stops_at_the_maximum(x64):
    with jax.enable_x64(x64):
        result = run()
    assert result.result is Result.converged
    assert result.samples["place"].shape == (1, 1, 3)
    np.testing.assert_allclose(result.samples["place"][0, 0], GOAL, rtol=1e-5)
    assert len(result.elbo) == result.steps
    assert (np.diff(result.elbo) >= 0).all()
    np.testing.assert_allclose(result.elbo[0], -3 - np.sum(GOAL**2))


def test_too_few_steps_are_said():
    result = run(max_steps=3)
    assert result.result is Result.max_steps
    np.testing.assert_allclose(result.samples["place"][0, 0], GOAL * (1 - 1 / 8))


def test_a_number_that_is_not_finite_ends_the_run():
    def overflowing(state, problem):
        state, objective = step(state, problem)
        return state, jnp.where(objective > -1.01, jnp.nan, objective)

    result = run(dataclasses.replace(ASCENT, step=overflowing))
    assert result.result is Result.nonfinite
    assert np.isfinite(result.elbo).all()
    assert result.steps == len(result.elbo)


def test_a_chunk_may_begin_with_a_number_that_is_not_finite():
    def broken(state, problem):
        return state, jnp.full(3, jnp.nan)

    result = run(dataclasses.replace(ASCENT, step=broken))
    assert (result.result, result.steps, result.elbo.size) == (Result.nonfinite, 0, 0)


# ---- a member's own rule of when to stop ----


def near(state, problem):
    """Stop at the first state within 0.1 of the goal, where the problem has three numbers."""
    return jnp.abs(state - problem).max() < 0.1 if len(problem) == 3 else None


def test_a_rule_of_the_member_stops_at_its_step():
    one = dataclasses.replace(ASCENT, settled=near)
    result = run(one, tolerance=1e9)
    assert result.result is Result.converged
    assert result.steps == len(result.elbo) == 6  # the largest distance, 4, is halved six times
    np.testing.assert_array_equal(result.samples["place"][0, 0], GOAL * (1 - 1 / 64))
    np.testing.assert_array_equal(result.elbo, run(max_steps=6).elbo)


def test_a_rule_of_the_member_may_need_several_chunks_or_be_cut_short():
    def never_quite(state, problem):
        return jnp.abs(state - problem).max() < 4 * 0.5**24.5

    one = dataclasses.replace(ASCENT, settled=never_quite)
    with jax.enable_x64(True):
        result, cut = run(one, tolerance=1e9), run(one, max_steps=10)
    assert (result.result, result.steps, len(result.elbo)) == (Result.converged, 25, 25)
    assert (cut.result, cut.steps, len(cut.elbo)) == (Result.max_steps, 10, 10)


def test_without_a_rule_for_the_problem_the_driver_decides():
    one = dataclasses.replace(ASCENT, settled=near)
    result, plain = (run_ascent(which, GOAL[:2], key=jax.random.key(0)) for which in (one, ASCENT))
    assert result.result is plain.result is Result.converged
    assert result.steps == plain.steps
