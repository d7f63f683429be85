"""Krippendorff's alpha: printed values, the definition on dense tables, deletion of items, exact permutations."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.agreement.alpha import METRICS, coincidences, krippendorff_alpha
from consilience.evaluation.agreement.chance import fleiss_kappa, kappa
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.sparse_probability import sparse_agreement, specific_agreement
from consilience.evaluation.agreement.weighting import weight_function
from tests.evaluation.agreement.tables import TABLE, counts_of, scatter, tables

some_tables = tables(3, num_labels=4, num_items=(3, 7))
scales = st.lists(st.integers(0, 9), min_size=4, max_size=4).map(lambda values: np.array(values, float))


# ---- the definition ----


def distances(metric, margins, values):
    num_labels = len(margins)
    if metric == "nominal":
        return 1.0 - np.eye(num_labels)
    first, second = np.meshgrid(values, values, indexing="ij")
    if metric == "interval":
        return (first - second) ** 2
    if metric == "ratio":
        both = first + second
        return np.divide(first - second, both, out=np.zeros(both.shape), where=both > 0) ** 2
    distance = np.zeros((num_labels, num_labels))
    for c, k in itertools.combinations(range(num_labels), 2):
        distance[c, k] = distance[k, c] = (margins[c : k + 1].sum() - (margins[c] + margins[k]) / 2) ** 2
    return distance


def met(table):
    matrix = np.zeros((table.shape[1], table.shape[1]))
    for row in table[table.sum(1) >= 2]:
        matrix += (np.outer(row, row) - np.diag(row)) / (row.sum() - 1)
    return matrix


def alpha(table, metric, values):
    matrix = met(table)
    margins = matrix.sum(1)
    total = margins.sum()
    distance = distances(metric, margins, values)
    expected = (np.outer(margins, margins) * distance).sum()
    if not expected > 1e-9:
        return np.nan
    return 1 - (total - 1) * (matrix * distance).sum() / expected


@settings(max_examples=100)
@given(some_tables, st.sampled_from(METRICS), scales)
def test_alpha_as_when_items_are_deleted(table, metric, values):
    values = np.arange(4.0) if metric == "ordinal" else values
    result = krippendorff_alpha(counts_of(table), metric, values)
    np.testing.assert_allclose(result.value, alpha(table, metric, values), atol=1e-10)
    usable = np.flatnonzero(table.sum(1) >= 2)
    without = [alpha(np.delete(table, row, 0), metric, values) for row in usable]
    np.testing.assert_allclose(result.sd, scatter(without), atol=1e-9)
    assert (result.name, result.convention) == ("Krippendorff's alpha", metric)


@given(some_tables)
def test_coincidences(table):
    counts = counts_of(table)
    assume(len(counts.patterns.size))
    weight = weight_function("annotations", counts)
    matrix = coincidences(counts)
    np.testing.assert_allclose(matrix, met(table), atol=1e-12)
    value = sparse_agreement(counts.patterns, weight).value
    assert np.trace(matrix) / matrix.sum() == pytest.approx(value)
    specific = specific_agreement(counts, weight)
    used = matrix.sum(1) > 0
    np.testing.assert_allclose((np.diag(matrix) / np.where(used, matrix.sum(1), 1))[used], specific["agreement"][used])


def test_nominal_alpha_as_fractions():
    estimate = krippendorff_alpha(counts_of(TABLE))
    assert estimate.value == pytest.approx(1 / 5)
    assert estimate.expected == pytest.approx(4 / 9)
    assert estimate.observed == pytest.approx(5 / 9)


def test_mean_over_all_permutations_is_zero():
    values = [0, 0, 0, 1, 1, 2]
    rows = []
    for placed in set(itertools.permutations(values)):
        table = np.zeros((3, 3), int)
        np.add.at(table, ([0, 0, 1, 1, 2, 2], placed), 1)
        counts = counts_of(table)
        between, _ = kappa(counts, weight_function("flat", counts))
        rows.append([krippendorff_alpha(counts).value, fleiss_kappa(counts).value, between.value])
    assert len(rows) == 60
    mean = [0, float(Fraction(-1, 5)), float(Fraction(-8, 225))]
    np.testing.assert_allclose(np.mean(rows, axis=0), mean, atol=1e-14)


@settings(max_examples=40)
@given(some_tables)
def test_two_classes_have_one_distance(table):
    counts = counts_of(table[:, :2])
    nominal = krippendorff_alpha(counts)
    for metric in METRICS[1:]:
        np.testing.assert_allclose(krippendorff_alpha(counts, metric, np.array([0.0, 4.0]))[2:], nominal[2:], atol=1e-9)


@settings(max_examples=40)
@given(some_tables, scales, st.floats(0.01, 100), st.floats(-1000, 1000))
def test_scale_of_values_makes_no_difference(table, values, scale, shift):
    counts = counts_of(table)
    interval, ratio, order = (krippendorff_alpha(counts, metric, values) for metric in ("interval", "ratio", "ordinal"))
    np.testing.assert_allclose(
        krippendorff_alpha(counts, "interval", scale * values + shift)[2:], interval[2:], atol=1e-7
    )
    np.testing.assert_allclose(krippendorff_alpha(counts, "ratio", scale * values)[2:], ratio[2:], atol=1e-9)
    np.testing.assert_allclose(krippendorff_alpha(counts, "ordinal", np.exp(values))[2:], order[2:], atol=1e-9)


@settings(max_examples=40)
@given(some_tables, st.permutations(range(4)))
def test_ordinal_takes_the_order_of_the_values(table, order):
    values = np.empty(4)
    values[list(order)] = np.arange(4)
    shuffled = krippendorff_alpha(counts_of(table), "ordinal", values)
    sorted_ = krippendorff_alpha(counts_of(table[:, order]), "ordinal")
    np.testing.assert_allclose(shuffled[2:], sorted_[2:], atol=1e-12)


def test_labels_of_equal_value_are_one_class():
    merged = np.column_stack([TABLE[:, 0] + TABLE[:, 2], TABLE[:, 1]])
    estimate = krippendorff_alpha(counts_of(TABLE), "ordinal", np.array([1.0, 2.0, 1.0]))
    assert estimate == krippendorff_alpha(counts_of(merged), "ordinal")


@pytest.mark.parametrize("metric", METRICS)
def test_items_that_do_not_count(metric):
    all_items, usable = (krippendorff_alpha(counts_of(table), metric, np.arange(3.0)) for table in (TABLE, TABLE[:3]))
    assert all_items == usable


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("table", "has_interval"),
    [([[3, 0]], True), ([[3, 0], [2, 0]], True), ([[1, 0], [0, 1]], False), ([[0, 0]], False), ([[3], [2]], False)],
)
def test_alpha_of_one_class_or_without_pairs_is_not_defined(metric, table, has_interval):
    table = np.array(table)
    estimate = krippendorff_alpha(counts_of(table), metric, np.array([1.0, 2.0])[: table.shape[1]])
    assert np.isnan([estimate.value, estimate.sd]).all()
    assert np.isfinite([estimate.lower, estimate.upper]).tolist() == [has_interval] * 2
    assert estimate.lower < 0.1 < 0.9 < estimate.upper or not has_interval


def test_one_item_has_no_standard_error():
    estimate = krippendorff_alpha(counts_of(np.array([[2, 2]])))
    assert estimate.value == pytest.approx(0)
    assert np.isnan(estimate.sd)


def test_many_classes():
    random = np.random.default_rng(0)
    item, label = random.integers(0, 500, 2000), random.integers(0, 10**6, 2000)
    counts = LabelCounts.of_codes(item, np.where(random.random(2000) < 0.5, item, label), num_labels=10**6)
    nominal = krippendorff_alpha(counts)
    assert 0.15 < nominal.value < 0.35
    assert 0 < nominal.sd < 0.05
    assert np.isfinite(krippendorff_alpha(counts, "interval", np.arange(10.0**6)).sd)
    for metric in ("ordinal", "ratio"):
        with pytest.raises(UnsupportedRequest, match="merge classes"):
            krippendorff_alpha(counts, metric, np.arange(10.0**6))
    with pytest.raises(UnsupportedRequest, match="at most 4,096"):
        coincidences(counts)


def test_metrics_and_values_that_alpha_refuses():
    counts = counts_of(TABLE)
    with pytest.raises(UnknownName, match="nominal, ordinal, interval, ratio"):
        krippendorff_alpha(counts, "circular")
    with pytest.raises(UnsupportedRequest, match="give values"):
        krippendorff_alpha(counts, "interval")
    with pytest.raises(UnsupportedRequest, match="needs 3 finite numbers"):
        krippendorff_alpha(counts, "interval", np.arange(2.0))
    with pytest.raises(UnsupportedRequest, match="needs 3 finite numbers"):
        krippendorff_alpha(counts, "ordinal", np.array([1.0, np.nan, 2.0]))
    with pytest.raises(UnsupportedRequest, match="from 0 up"):
        krippendorff_alpha(counts, "ratio", np.array([-1.0, 0.0, 1.0]))
