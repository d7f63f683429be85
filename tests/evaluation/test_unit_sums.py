"""Draws of scores from sums per unit: figures by hand, closed forms, and what no change of order may change."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from consilience.evaluation.engine import Scoring, Sums, fold, mean_of
from consilience.evaluation.unit_sums import (
    UnitSums,
    combined_draws,
    nearest_map,
    pseudo_scores,
    pseudo_weights,
    unit_draws,
    unit_weights,
    weighted_sums,
)


def mean_scoring(values, **more):
    """Score what is given, ``(system, unit, draw)``, as means over units, in one block."""
    systems, units, draws = values.shape
    return Scoring(
        blocks=lambda: iter([Sums(slice(0, units), slice(0, draws), values[:, None])]), values={"mean": mean_of(0)},
        title=lambda *words: "", unit="item", num_units=units, num_draws=draws, joint=False, standard=lambda: None,
        place=np.arange(units), rows=units, ids=None, row="item", **more,
    )  # fmt: skip


def drawn_of(values, number=None, seed=0, **more):
    scoring = mean_scoring(np.asarray(values, float), **more)
    sums = UnitSums(scoring)
    fold(scoring, sums)
    return combined_draws(scoring, "mean", sums, sums.scores("mean"), seed, number or scoring.num_draws)


@pytest.mark.parametrize(
    ("second", "own", "shared"), [((1, 1, 0, 0), 1 / 6, 1 / 6), ((1, 0, 1, 0), 1 / 6, 0.0)], ids=["shared", "own"]
)
def test_two_units_by_hand(second, own, shared):
    """Two items, four draws: alike in all draws half of the variance is shared, and none where they are independent."""
    values = np.array([[(1, 1, 0, 0), second]], float)
    scoring = mean_scoring(values)
    sums = UnitSums(scoring)
    fold(scoring, sums)
    assert sums.own_covariance[0, 0] / 4 == pytest.approx(own)
    found = drawn_of(values)
    assert found.shared.var(ddof=1) == pytest.approx(shared, abs=1e-9)
    deviation = values.mean(axis=1) - values.mean()
    np.testing.assert_allclose(found.shared, np.sqrt(shared / (own + shared)) * deviation, atol=1e-5)
    assert not drawn_of(values, independent=True).shared.any()


def test_nearest_maps_by_hand():
    wanted = np.array([[1, 0.5], [0.5, 1]])
    np.testing.assert_allclose(nearest_map(np.eye(2), wanted), [[0.965926, 0.258819], [0.258819, 0.965926]], atol=1e-6)
    np.testing.assert_allclose(nearest_map(np.array([[4.0, 1], [1, 1]]), wanted), np.diag([0.5, 1]), atol=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 5), st.integers(0, 1000))
def test_nearest_maps_turn_one_covariance_into_another(size, seed):
    random = np.random.default_rng(seed)
    roots = random.normal(size=(2, size, size + 1))
    given_, wanted = (root @ root.T for root in roots)
    found = nearest_map(given_, wanted)
    np.testing.assert_allclose(found, found.T, atol=1e-7 * np.abs(found).max())
    np.testing.assert_allclose(found @ given_ @ found, wanted, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("right", "of", "low", "high"), [(10, 10, 0.78280, 0.99995), (19, 20, 0.78918, 0.99455)], ids=["all", "most"]
)
def test_scores_of_zero_and_one_have_the_posterior_of_jeffreys(right, of, low, high):
    values = (np.arange(of) < right).astype(float)[None, :, None]
    found = drawn_of(values, 100_000).both[0]
    np.testing.assert_allclose(stats.beta.ppf([0.025, 0.975], right + 0.5, of - right + 0.5), [low, high], atol=1e-5)
    np.testing.assert_allclose(np.quantile(found, [0.025, 0.975]), [low, high], atol=0.004)


def test_scores_without_bounds_have_no_pseudo_unit():
    values = np.random.default_rng(0).normal(size=(1, 30, 1))
    total, weight = weighted_sums(values[:, :, 0], 3, 500)
    found = drawn_of(values, 500, seed=3, bounds={"mean": None})
    np.testing.assert_allclose(found.both, total / weight, rtol=1e-12)
    wide = drawn_of(values, 500, seed=3, bounds={"mean": (-5.0, 5.0)})
    extra, score = pseudo_weights(3, 500), pseudo_scores(3, 1, 500, (-5.0, 5.0))
    np.testing.assert_allclose(wide.both, (total + extra * score) / (weight + extra), rtol=1e-12)
    assert score.min() < -4
    assert score.max() > 4


def test_a_unit_keeps_its_weight_whatever_follows_it():
    assert unit_weights(0, slice(1024, 1024), 5).shape == (0, 5)
    np.testing.assert_array_equal(unit_weights(0, slice(1000, 1100), 5), unit_weights(0, slice(0, 1200), 5)[1000:1100])
    one = np.zeros((1, 3000))
    one[0, 7] = 1
    np.testing.assert_array_equal(weighted_sums(one, 0, 10)[0], weighted_sums(one[:, :2000], 0, 10)[0])


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 4), st.integers(2, 12), st.integers(0, 100), st.permutations(range(4)))
def test_a_permutation_of_systems_permutes_their_covariances(systems, units, seed, order):
    values = (np.random.default_rng(seed).random((systems, units, 9)) < 0.6).astype(float)
    order = [one for one in order if one < systems]
    scoring = mean_scoring(values)
    straight, mixed = UnitSums(scoring), UnitSums(dataclasses.replace(scoring))
    straight.add(Sums(slice(0, units), slice(0, 9), values[:, None]))
    mixed.add(Sums(slice(0, units), slice(0, 9), values[order][:, None]))
    np.testing.assert_allclose(mixed.own_covariance, straight.own_covariance[np.ix_(order, order)], atol=1e-12)
    one, other = (
        combined_draws(scoring, "mean", sums, sums.scores("mean"), 0, 9).shared for sums in (straight, mixed)
    )
    np.testing.assert_allclose(other, one[order], atol=1e-6)


def test_where_parameters_are_shared_the_interval_is_that_of_their_posterior():
    """All items are right or wrong together: the score is the shared indicator, and many items do not narrow it."""
    right = np.random.default_rng(0).random(4000) < 0.7
    values = np.repeat(right[None, None].astype(float), 500, axis=1)
    found = drawn_of(values)
    assert found.both.std() == pytest.approx(np.sqrt(0.21), rel=0.02)
    assert found.units.std() < 0.01
    assert unit_draws(mean_scoring(values), "mean", values.mean(axis=2)[:, None], 0, 100).shape == (1, 100)
