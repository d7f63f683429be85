"""Parallel tempering of a normal model, whose evidence and tempered posteriors are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.inference.tempering import (
    adapted,
    geometric_ladder,
    round_trips,
    rungs_wanted,
    stepping_stones,
    swapped,
)

_PRECISION, _AT = 25.0, np.array([2.0, 0.5, -1.0])
"""Of the likelihood of three ladders, a normal one with its mode there; the prior is standard normal."""


def _log_likelihood(state):
    return -_PRECISION * (state - _AT) ** 2 / 2


def _run(exponent, sweeps, seed):
    """Draw each rung of three ladders from its tempered posterior by a small step, and swap."""
    random = np.random.default_rng(seed)
    state, replica = np.zeros((len(exponent), 3)), np.tile(np.arange(len(exponent))[:, None], 3)
    kept, replicas, rates = [], [], []
    for _ in range(sweeps):
        precision = 1 + exponent[:, None] * _PRECISION
        mean = exponent[:, None] * _PRECISION * _AT / precision
        noise = random.normal(size=state.shape)
        state = mean + 0.5 * (state - mean) + np.sqrt(0.75 / precision) * noise
        order, probability = swapped(random.random((len(exponent) - 1, 3)), exponent, _log_likelihood(state))
        state, replica = (np.take_along_axis(array, order, axis=0) for array in (state, replica))
        kept.append(state), replicas.append(replica), rates.append(probability)
    return np.array(kept), np.array(replicas), np.mean(rates, axis=0)


def test_swaps_leave_the_tempered_posteriors_as_they_are_and_give_the_evidence():
    exponent = geometric_ladder(6)
    kept, replica, _ = _run(exponent, 4000, 0)
    precision = 1 + exponent[:, None] * _PRECISION
    error = kept.mean(axis=0) - exponent[:, None] * _PRECISION * _AT / precision
    assert np.abs(error * np.sqrt(precision * 4000 / 3)).max() < 5
    np.testing.assert_allclose(kept.var(axis=0) * precision, 1, atol=0.2)
    value, error = stepping_stones(exponent, _log_likelihood(kept))
    truth = -(_AT**2) / (1 + 1 / _PRECISION) / 2 - np.log(1 + _PRECISION) / 2
    assert (np.abs(value - truth) < 4 * error).all()
    assert (error < 0.2).all()
    assert (round_trips(replica) > 50).all()
    one, one_error = stepping_stones(exponent, _log_likelihood(kept)[..., 0])
    assert one == pytest.approx(value[0])
    assert one_error == pytest.approx(error[0])
    np.testing.assert_allclose(stepping_stones(exponent, _log_likelihood(kept) - 3000)[0], value - 3000)


def test_the_standard_error_covers_the_spread_over_runs():
    exponent = geometric_ladder(6)
    found = [stepping_stones(exponent, _log_likelihood(_run(exponent, 400, seed)[0])) for seed in range(30)]
    spread = np.std([value for value, _ in found], axis=0, ddof=1)
    ratio = spread / np.mean([error for _, error in found], axis=0)
    assert ((ratio > 0.6) & (ratio < 1.6)).all()


def test_an_adapted_ladder_has_equal_swap_rates():
    exponent = np.tile(np.linspace(1, 0, 7)[:, None], 3)
    first = _run(exponent[:, 0], 500, 1)[2]
    for seed in range(4):
        rates = np.stack([_run(exponent[:, ladder], 500, seed)[2][:, ladder] for ladder in range(3)], axis=1)
        exponent = adapted(exponent, rates)
    assert (np.diff(exponent, axis=0) < 0).all()
    assert (exponent[0] == 1).all()
    assert (exponent[-1] == 0).all()
    assert np.ptp(rates, axis=0).max() < 0.25 * np.ptp(first, axis=0).max()
    assert len(adapted(exponent, rates, rungs=12)) == 12


@pytest.mark.parametrize(
    ("rates", "wanted"),
    [([0.5, 0.2], 3), ([0.5, 0.1], 3), ([0.0] * 11, 14), ([0.14] + [0.0] * 29, 32), ([], 1)],
)  # fmt: skip
def test_rungs_are_added_while_the_lowest_rate_is_low(rates, wanted):
    assert rungs_wanted(np.array(rates)) == wanted


def test_a_swap_that_is_sure_carries_the_best_state_up_by_one_and_the_first_down_to_the_end():
    order, probability = swapped(np.full(3, 0.5), geometric_ladder(4), np.array([-30.0, -20.0, -10.0, 1e4]))
    assert order.tolist() == [1, 2, 3, 0]
    assert probability.min() == 1
    order, _ = swapped(np.full(3, 0.5), geometric_ladder(4), np.array([0.0, -1e3, -1e3, -1e4]))
    assert order.tolist()[0] == 0


def test_round_trips_want_both_ends():
    assert round_trips(np.array([[0, 1, 2], [0, 2, 1], [1, 2, 0], [1, 0, 2], [0, 1, 2], [2, 1, 0]])) == 1
    assert round_trips(np.zeros((5, 1), int)) == 0
