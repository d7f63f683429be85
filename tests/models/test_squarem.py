"""The arithmetic of SQUAREM on maps whose fixed points are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.models.squarem import extrapolated, proposal, step_length


@pytest.mark.parametrize(
    ("change", "bend", "limit", "length"),
    [(3.0, 1.5, np.inf, 2.0), (1.0, 4.0, np.inf, 1.0), (1.0, 0.0, np.inf, 1.0), (8.0, 1.0, 4.0, 4.0)],
)
def test_the_length_of_a_step(change, bend, limit, length):
    assert step_length(jnp.asarray(change), jnp.asarray(bend), limit) == length


def test_a_length_of_one_ends_where_two_steps_do():
    start, change, bend = jnp.asarray(1.0), jnp.asarray(-0.5), jnp.asarray(0.25)
    assert extrapolated(start, change, bend, jnp.asarray(1.0)) == 0.25
    assert extrapolated(start, change, bend, jnp.asarray(2.0)) == 0.0
    assert extrapolated(start, change, bend, jnp.asarray(2.0), farthest=0.75) == 0.25


@given(rate=st.floats(0.05, 0.99), goal=st.floats(-5, 5))
def test_of_a_map_with_one_rate_the_proposal_is_the_fixed_point(rate, goal):
    def towards(place):
        return jax.tree.map(lambda values: goal + rate * (values - goal), place)

    with jax.enable_x64(True):
        first = {"a": jnp.asarray([7.0, -7.0]), "b": jnp.asarray(6.5)}
        second = towards(first)
        far, length = proposal(first, second, towards(second), jnp.asarray(1e6))
        assert float(length) == pytest.approx(1 / (1 - rate), rel=1e-9)
        for values in far.values():
            np.testing.assert_allclose(values, goal, atol=1e-8)


def test_what_is_not_finite_stays_and_has_no_part_in_the_length():
    first, second, third = (jnp.asarray([x, y, z]) for x, y, z in (
        (1.0, -np.inf, 2.0), (0.5, -np.inf, -np.inf), (0.25, -np.inf, -np.inf)
    ))  # fmt: skip
    far, length = proposal(first, second, third, jnp.asarray(100.0))
    assert length == 2.0
    np.testing.assert_array_equal(far, [0.0, -np.inf, -np.inf])
