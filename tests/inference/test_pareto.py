"""The Pareto shape of weights is ArviZ's, bit for bit."""

import importlib.metadata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.inference.pareto import pareto_shape

OLD_ARVIZ = importlib.metadata.version("arviz").startswith("0.")


def by_arviz(weights):
    with np.errstate(over="ignore"):
        if OLD_ARVIZ:
            from arviz import psislw

            return float(np.asarray(psislw(weights)[1]))
        from arviz_stats.base import array_stats

        return float(np.asarray(array_stats.psislw(-weights)[1]))  # of log likelihoods, negative log weights


@pytest.mark.skipif(not OLD_ARVIZ, reason="the last digits are those of ArviZ before version 1")
@given(
    size=st.integers(25, 3000), seed=st.integers(0, 2**32 - 1), scale=st.floats(0.01, 20),
    decimals=st.sampled_from([1, 15]), kind=st.sampled_from(["normal", "exponential", "uniform"]),
)  # fmt: skip
def test_shape_has_the_bits_of_arviz(size, seed, scale, decimals, kind):
    weights = np.round(scale * getattr(np.random.default_rng(seed), kind)(size=size), decimals)  # with and without ties
    assert pareto_shape(weights) == by_arviz(weights)


@pytest.mark.parametrize("size", [25, 100, 224, 225, 226, 1000, 20_000])
@pytest.mark.parametrize("shape", [-1.0, 0.1, 0.5, 1.2])
def test_shape_is_arviz_and_near_the_truth(size, shape):
    uniform = np.random.default_rng(size).random(size)
    weights = np.log1p(((1 - uniform) ** -shape - 1) / shape)  # above any cut the excesses have that shape
    found = pareto_shape(weights)
    if OLD_ARVIZ:
        assert found == by_arviz(weights)
    elif not np.isnan(other := by_arviz(weights)):  # of few weights; since 1.3 it takes the tail in another way
        assert found == pytest.approx(other, abs=0.06)
    if size == 20_000:
        assert found == pytest.approx(shape, abs=0.25)


def test_a_tail_of_four_has_no_shape():
    assert pareto_shape(np.append(np.zeros(96), [1.0, 2.0, 3.0, 4.0])) == np.inf
    assert np.isfinite(pareto_shape(np.append(np.zeros(95), [1.0, 2.0, 3.0, 4.0, 5.0])))
