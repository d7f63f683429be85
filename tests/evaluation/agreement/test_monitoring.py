"""Monitoring: every prefix recomputed, the band's formula and width, and how often it misses the truth."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.monitoring import confidence_sequence, learning_curve
from consilience.evaluation.agreement.sparse_probability import sparse_agreement
from consilience.evaluation.agreement.weighting import SCHEMES, weight_function

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=20)


def make(rows, weighted=False):
    item, label, number = np.array(rows).T
    return Annotations.from_codes(item, None, label, weight=number if weighted else None)


def weights_of(annotations):
    counts = LabelCounts.of_annotations(annotations)
    return {scheme: weight_function(scheme, counts) for scheme in SCHEMES}


# ---- learning curve ----


@given(ROWS, st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_point_is_the_estimate_from_the_rows_so_far(rows, weighted):
    annotations = make(rows, weighted)
    assume(annotations.weight.any())
    weights = weights_of(annotations)
    curve = learning_curve(annotations, weights)
    assert {len(column) for column in curve.values()} == {len(rows)}
    for point in range(len(rows)):
        counts = LabelCounts.of_annotations(make(rows[: point + 1], weighted))
        assert curve["num_annotations"][point] == counts.num_annotations
        assert curve["num_items"][point] == (counts.size >= 2).sum()
        for scheme, weight in weights.items():
            expected = sparse_agreement(counts.patterns, weight).value
            np.testing.assert_allclose(curve[scheme][point], expected, atol=1e-12)


@pytest.mark.parametrize("num_points", [1, 7, 200, 100_000])
def test_the_last_point_is_the_batch_estimate(num_points):
    generator = np.random.default_rng(1)
    annotations = Annotations.from_codes(generator.integers(0, 900, 5000), None, generator.integers(0, 4, 5000))
    patterns, weights = LabelCounts.of_annotations(annotations).patterns, weights_of(annotations)
    curve = learning_curve(annotations, weights, num_points)
    assert len(curve["num_items"]) == min(num_points, 5000)
    assert curve["num_annotations"][-1] == 5000
    assert curve["num_items"][-1] == patterns.num_items
    for scheme, weight in weights.items():
        np.testing.assert_allclose(curve[scheme][-1], sparse_agreement(patterns, weight).value, rtol=1e-12)


def test_points_are_equidistant():
    annotations = Annotations.from_codes(np.arange(1000) % 100, None, np.zeros(1000, int))
    curve = learning_curve(annotations, weights_of(annotations), 4)
    np.testing.assert_array_equal(curve["num_annotations"], [250, 500, 750, 1000])
    np.testing.assert_array_equal(curve["flat"], 1.0)


def test_a_curve_without_points_is_refused():
    annotations = make([(0, 0, 1)])
    with pytest.raises(UnsupportedRequest, match="0 points"):
        learning_curve(annotations, {}, 0)


# ---- confidence sequence ----


def pairs(agrees, classes=2):
    """Return annotations of items in order, two each, that agree or do not."""
    item = np.repeat(np.arange(len(agrees)), 2)
    label = np.zeros((len(agrees), 2), int)
    label[:, 1] = ~np.asarray(agrees)
    return Annotations.from_codes(item, None, label.ravel(), num_labels=classes)


def band(items, sd, level, tightest_at):
    """Return the half width, from the formula."""
    alpha = 1 - level
    square = (-2 * np.log(alpha) + np.log(-2 * np.log(alpha)) + 1) / tightest_at
    inner = 2 * (items * square + 1) / (items**2 * square) * np.log(np.sqrt(items * square + 1) / alpha)
    return sd * np.sqrt(items) * np.sqrt(inner)


@pytest.mark.parametrize("scheme", ["flat", "annotations_m1", "edge"])
def test_every_point_is_the_estimate_from_the_items_completed_so_far(scheme):
    generator = np.random.default_rng(2)
    item, label = generator.integers(0, 150, 600), generator.choice(3, 600, p=[0.6, 0.3, 0.1])
    annotations = Annotations.from_codes(item, None, label, num_items=160)
    weight = weights_of(annotations)[scheme]
    found = confidence_sequence(annotations, weight, level=0.9, tightest_at=80, num_points=1000)
    last = {code: row for row, code in enumerate(item)}
    completed = [code for code in sorted(last, key=last.get) if (item == code).sum() > 1]
    assert len(found["items"]) == len(completed)
    for t in range(1, len(completed) + 1):
        counts = LabelCounts.of_codes(*(column[np.isin(item, completed[:t])] for column in (item, label)))
        usable = counts.size >= 2
        k, agreement = weight(counts.size[usable].astype(float)), counts.agreement[usable]
        value = (k * agreement).sum() / k.sum()
        row = {name: column[t - 1] for name, column in found.items()}
        assert (row["items"], row["annotations"]) == (t, counts.num_annotations)
        np.testing.assert_allclose(row["agreement"], value, rtol=1e-12)
        agreeing, disagreeing = counts.pairs.sum() / 2, (counts.size * (counts.size - 1) - counts.pairs).sum() / 2
        if t == 1:
            assert np.isnan(row["sd"])
            continue
        sd = np.sqrt(t / (t - 1) * (k**2 * (agreement - value) ** 2).sum()) / k.sum()
        np.testing.assert_allclose(row["sd"], sd, atol=1e-9)
        if t >= 30 and min(agreeing, disagreeing) >= 10:
            half = band(t, sd, 0.9, 80)
            expected = max(0.0, value - half), min(1.0, value + half)
            np.testing.assert_allclose((row["lower"], row["upper"]), expected, atol=1e-9)
        else:
            assert np.isnan(row["lower"])
            assert np.isnan(row["upper"])


def test_no_band_before_both_outcomes_have_been_seen_often_enough():
    # The tenth disagreement is in item 60 (from one), and 30 items alone are not enough.
    agrees = np.ones(100, bool)
    agrees[5:60:6] = False
    weight = weights_of(pairs(agrees))["flat"]
    shown = np.isfinite(confidence_sequence(pairs(agrees), weight)["lower"])
    np.testing.assert_array_equal(shown, np.arange(1, 101) >= 60)
    often = np.isfinite(confidence_sequence(pairs(np.arange(100) % 2 > 0), weight)["lower"])
    np.testing.assert_array_equal(often, np.arange(1, 101) >= 30)
    # While everybody agrees a band would have no width.
    assert np.isnan(confidence_sequence(pairs(np.ones(100, bool)), weight)["upper"]).all()


@pytest.mark.parametrize(("items", "ratio"), [(500, 1.55), (5000, 1.66)])
def test_the_price_in_width(items, ratio):
    agrees = np.random.default_rng(0).random(items) < 0.7
    annotations = pairs(agrees)
    found = confidence_sequence(annotations, weights_of(annotations)["flat"], tightest_at=500)
    wide = (found["upper"] - found["lower"])[-1] / (2 * 1.959963984540054 * found["sd"][-1])
    assert abs(wide - ratio) < 0.005


def test_the_band_ends_at_zero_and_one():
    agrees = np.r_[np.ones(300, bool), np.zeros(10, bool)]
    annotations = pairs(agrees)
    found = confidence_sequence(annotations, weights_of(annotations)["flat"], tightest_at=20)
    assert found["upper"][-1] == 1.0
    assert found["lower"][-1] < found["agreement"][-1]


def test_without_usable_items_there_are_no_points():
    annotations = make([(0, 0, 1), (1, 0, 1)])
    assert {len(column) for column in confidence_sequence(annotations, weights_of(annotations)["flat"]).values()} == {0}


@pytest.mark.parametrize("options", [{"level": 0.1}, {"level": 1.0}, {"tightest_at": 0}, {"num_points": 0}])
def test_bands_that_make_no_sense_are_refused(options):
    annotations = make([(0, 0, 1), (0, 0, 1)])
    with pytest.raises(UnsupportedRequest):
        confidence_sequence(annotations, weights_of(annotations)["flat"], **options)


@pytest.mark.parametrize(("truth", "expected"), [(0.8, 0.052), (0.95, 0.044)])
def test_how_often_the_band_misses_the_truth_at_any_time(truth, expected):
    generator, runs = np.random.default_rng(11), 600
    weight = weights_of(pairs([True]))["flat"]
    missed = wald = 0
    for _ in range(runs):
        found = confidence_sequence(pairs(generator.random(5000) < truth), weight, num_points=5000)
        missed += bool(((found["lower"] > truth) | (found["upper"] < truth)).any())
        wald += bool((np.abs(found["agreement"] - truth) > 1.96 * found["sd"])[29:].any())
    # The expected share is itself from 2000 runs.
    error = np.sqrt(expected * (1 - expected) * (1 / runs + 1 / 2000))
    assert abs(missed / runs - expected) < 5 * error
    # An ordinary interval, looked at as often, misses in more than half of the runs.
    assert abs(wald / runs - 0.57) < 5 * np.sqrt(0.25 / runs)
