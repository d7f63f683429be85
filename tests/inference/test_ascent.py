"""The driver of ascents on an objective whose maximum is known."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consilience as cs
from consilience.inference import accelerated
from consilience.inference.ascent import _left, _looks, run_ascent
from consilience.inference.results import Result
from consilience.models import member
from consilience.models.interface import Ascent, unsharded
from consilience.models.posterior import Estimate
from tests.inference import mixtures

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


def test_a_step_that_is_not_finite_leaves_the_state_that_it_was_given():
    """In the middle of a chunk, whose state at its begin is written over."""

    def counted(broken):
        def one(state, problem):
            (_, number), (after, terms) = state, step(state[0], problem)
            return (after, number + 1), jnp.where(number == broken, jnp.nan, terms)

        return dataclasses.replace(
            ASCENT, start=lambda key, problem: (jnp.zeros_like(problem), jnp.zeros((), jnp.int32)), step=one,
            sites=lambda state, problem: {"place": state[0], "number": state[1][None]},
        )  # fmt: skip

    ended = run(counted(33), tolerance=0.0)
    whole = run(counted(-1), tolerance=0.0, max_steps=33)
    assert (ended.result, ended.steps, ended.samples["number"].item()) == (Result.nonfinite, 33, 33)
    assert ended.samples["place"].tobytes() == whole.samples["place"].tobytes()
    assert ended.elbo.tobytes() == whole.elbo.tobytes()


def test_an_accelerated_run_that_is_not_finite_ends_at_a_plain_step():
    def broken(state, problem, total=unsharded):
        after, terms = mixtures.step(state, problem, total)
        return after, terms._replace(items=jnp.where(terms.items.sum() > height, jnp.nan, terms.items))

    best, height = ends(), ends().elbo[25]
    ended = ends(dataclasses.replace(mixtures.EM, step=broken))
    assert ended.result is Result.nonfinite
    assert (ended.elbo <= height).all()
    assert (np.diff(ended.elbo) > -1e-11).all()
    with jax.enable_x64(True):
        state = mixtures.State({"share": ended.samples["share"][0, 0]}, None)
        reached = float(mixtures.step(state, mixtures.problem())[1].items.sum())
    # The state is the one at which the objective is refused.
    assert height < reached <= best.elbo[-1] + 1e-9


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


# ---- what is left to gain ----


@pytest.mark.parametrize(
    ("heights", "left"),
    [
        ((0.0, 8.0, 8 + 8 / 3, 12.0), 4.0),  # 8, then 4, by halves 8/3 and 4/3: half as much each chunk
        ((0.0, 8.0, 8 + 3.0, 12.0), 4.0),  # the second half gains a third of the first: slower by chunks
        ((0.0, 96.0, 96 + 2.5, 100.0), 4 * 0.36 / 0.64),  # a quick first chunk says nothing: slower by halves
        ((0.0, 4.0, 6.0, 8.0), 4.0 * 500),  # no slower at all
        ((np.nan, 0.0, 6.0, 8.0), np.inf),  # the first chunk
        ((5.0, 5.0, 5.0, 5.0), 0.0),
    ],
)
def test_what_is_left_is_judged_by_how_fast_gains_fall(heights, left):
    assert _left(*heights) == pytest.approx(left)


def test_slow_steps_are_not_taken_for_the_end():
    """What is left is four times the last gain: it ends at the first chunk after which that is within the tolerance."""

    def slow(state, problem):
        return state + 0.005 * (problem - state), step(state, problem)[1]

    with jax.enable_x64(True):
        result = run(dataclasses.replace(ASCENT, step=slow))
    allowed = 1e-7 * (3 + 3)  # the objective at its maximum, and the number of its terms
    left = -3 - result.elbo[19::20]
    assert result.result is Result.converged
    assert left[-1] < allowed < left[-2]
    assert left[-2] - left[-1] < allowed / 4


def test_what_users_look_at_must_be_at_rest():
    """The objective stands still from the first step on, and the state does not."""

    def level(state, problem):
        return (state + problem) / 2, jnp.zeros(3, state.dtype)

    def moved(before, after):
        return jnp.abs(after - before).max()

    flat = dataclasses.replace(ASCENT, step=level)
    assert run(flat).steps == 20
    # Step n, from 0, moves 4 / 2^(n + 1): from the sixteenth on by less than 1e-4. A coarser ruler takes longer.
    assert run(dataclasses.replace(flat, moved=moved)).steps == 20
    coarse = run(dataclasses.replace(flat, moved=lambda before, after: 1e3 * moved(before, after)))
    assert (coarse.result, coarse.steps) == (Result.converged, 40)


# ---- steps that are extrapolated ----


def ends(ascent=mixtures.EM, *, apart=0.7, **settings):
    with jax.enable_x64(True):
        return run_ascent(ascent, mixtures.problem(apart=apart), key=jax.random.key(0), **settings)


def test_accelerated_steps_end_at_the_same_place_in_fewer():
    fast, plain = ends(), ends(accelerate=False, tolerance=1e-13)
    assert fast.result is plain.result is Result.converged
    assert 5 * fast.steps < plain.steps
    np.testing.assert_allclose(fast.samples["share"][0, 0], mixtures.SHARES, atol=2e-5)
    np.testing.assert_allclose(plain.samples["share"][0, 0], mixtures.SHARES, atol=2e-5)
    assert (np.diff(fast.elbo) > -1e-11).all()
    # A share that a step made zero, whose logarithm is not finite, stays zero.
    assert fast.samples["share"][0, 0, 3] == 0


def test_without_acceleration_the_steps_are_plain():
    unable = dataclasses.replace(mixtures.EM, at=None, coordinates=None)
    one, other = ends(accelerate=False), ends(unable)
    assert one.elbo.tobytes() == other.elbo.tobytes()
    np.testing.assert_array_equal(one.samples["q"], other.samples["q"])


@pytest.mark.parametrize("worse", [lambda far: -far, lambda far: jnp.nan * far])
def test_proposals_that_are_no_good_are_taken_back(monkeypatch, worse):
    """Nothing is left of them: the path is that of plain steps, and only takes longer."""

    def proposal(first, second, third, limit):
        return jax.tree.map(worse, third), jnp.maximum(limit, 2.0)

    monkeypatch.setattr(accelerated, "proposal", proposal)
    # Another function, for which nothing is compiled.
    ascent = dataclasses.replace(mixtures.EM, finish=lambda values, resolved: Estimate({}))
    refused, plain = ends(ascent, max_steps=100), ends(accelerate=False, max_steps=100)
    assert refused.steps == 100
    assert 50 < len(refused.elbo) < 70
    np.testing.assert_allclose(refused.elbo, plain.elbo[: len(refused.elbo)], rtol=1e-13)
    shares = ends(accelerate=False, max_steps=len(refused.elbo)).samples["share"]
    np.testing.assert_allclose(refused.samples["share"], shares, rtol=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 3, 19, 22, 33])
def test_a_run_ends_at_no_proposal(steps):
    """Wherever it is cut short, it ends where a plain step led: the objective there is at least that of the last."""
    with jax.enable_x64(True):
        problem = mixtures.problem()
        result = run_ascent(mixtures.EM, problem, key=jax.random.key(0), max_steps=steps)
        share = result.samples["share"][0, 0]
        _, terms = mixtures.step(mixtures.State({"share": share}, None), problem)
        assert terms.items.sum() >= result.elbo[-1] - 1e-10
    assert result.steps == steps


def test_a_rule_of_the_member_has_plain_steps():
    def far_enough(state, problem):
        return jnp.abs(state.tree["share"][0] - 0.5) < 1e-3

    one = ends(dataclasses.replace(mixtures.EM, settled=far_enough))
    assert 1 < len(one.elbo) < 200
    assert abs(one.samples["share"][0, 0, 0] - 0.5) < 1e-3
    plain = ends(accelerate=False, max_steps=len(one.elbo), tolerance=-1.0)
    np.testing.assert_allclose(one.elbo, plain.elbo, rtol=1e-14)


def test_only_a_start_that_climbs_is_compiled_to_run_long():
    data = cs.Annotations.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 1], num_items=2, num_annotators=2, num_labels=2)
    for restarts in (0, 3):
        mace = member("mace")
        problem = mace.engine("em").prepare(mace.resolve(data, None, {"restarts": restarts}))
        assert _looks(mace.engine("em"), problem) == (restarts > 0, True)
