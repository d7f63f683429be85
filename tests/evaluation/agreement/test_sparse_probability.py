from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from consilience.evaluation.agreement import sparse_probability
from consilience.evaluation.agreement.sparse_probability import dependence, sparse_agreement, specific_agreement
from consilience.evaluation.agreement.weighting import PAPER_SCHEMES, SCHEMES, weight_function
from tests.evaluation.agreement.tables import TABLE, counts_of, scatter, tables


def spa(table, scheme):
    counts = counts_of(table)
    return sparse_agreement(counts.patterns, weight_function(scheme, counts))


@pytest.mark.parametrize(("scheme", "value", "variance"), [
    ("flat", F(11, 18), F(13, 324)),
    ("annotations", F(5, 9), F(1996, 99225)),
    ("annotations_m1", F(19, 36), F(3661, 291600)),
    ("edge", F(1, 2), F(193, 35721)),
    ("inv_var", F(1, 2), F(193, 35721)),
])  # fmt: skip
def test_schemes_as_fractions(scheme, value, variance):
    estimate = spa(TABLE, scheme)
    assert estimate.value == pytest.approx(float(value), rel=1e-12)
    assert estimate.sd**2 == pytest.approx(float(variance), rel=1e-12)


def test_specific_agreement_as_fractions():
    counts = counts_of(TABLE)
    for scheme, expected in (("flat", [6 / 13, 16 / 23, np.nan]), ("edge", [6 / 11, 4 / 9, np.nan])):
        columns = specific_agreement(counts, weight_function(scheme, counts))
        np.testing.assert_allclose(columns["agreement"], expected)
        kept = columns["share"] > 0
        mean = (columns["share"] * columns["agreement"])[kept].sum()
        assert mean == pytest.approx(spa(TABLE, scheme).value)
        np.testing.assert_array_equal(columns["annotations"], [4, 5, 1])


def test_standard_errors_of_labels_by_leaving_items_out():
    table = np.random.default_rng(1).integers(0, 4, (25, 3))
    counts = counts_of(table)
    weight = weight_function("annotations_m1", counts)
    columns = specific_agreement(counts, weight)
    usable = np.flatnonzero(table.sum(1) >= 2)
    without = [specific_agreement(counts_of(np.delete(table, item, axis=0)), weight)["agreement"] for item in usable]
    np.testing.assert_allclose(columns["sd"], [scatter(of_label) for of_label in zip(*without, strict=True)])


some_tables = tables(4, num_items=(2, 10))
# Weights that come from the data would change with them.
FIXED = ("flat", "annotations", "annotations_m1", "edge", "inv_var")


@given(some_tables, st.sampled_from(SCHEMES), st.randoms(use_true_random=False))
def test_properties(table, scheme, random):
    assume((table.sum(1) >= 2).any())
    estimate = spa(table, scheme)
    assert -1e-12 <= estimate.value <= 1 + 1e-12
    order, labels = list(range(len(table))), [0, 1, 2]
    random.shuffle(order)
    random.shuffle(labels)
    same = spa(table[order][:, labels], scheme)
    np.testing.assert_allclose(same, estimate, atol=1e-9)
    unanimous = (table.max(1) == table.sum(1))[table.sum(1) >= 2].all()
    assert unanimous == (estimate.value > 1 - 1e-12)
    if scheme in FIXED:
        singles = np.vstack([table, np.eye(3, dtype=int)])
        np.testing.assert_allclose(spa(singles, scheme), estimate, atol=1e-9)
        merged = np.column_stack([table[:, 0] + table[:, 1], table[:, 2], np.zeros(len(table), int)])
        assert spa(merged, scheme).value >= estimate.value - 1e-12


@given(some_tables, some_tables, st.sampled_from(FIXED))
def test_concatenation_averages_the_parts(first, second, scheme):
    parts = [table for table in (first, second) if (table.sum(1) >= 2).any()]
    assume(len(parts) == 2)
    totals = [weight_function(scheme, counts_of(table))(table.sum(1).astype(float)).sum() for table in parts]
    expected = np.average([spa(table, scheme).value for table in parts], weights=totals)
    assert spa(np.vstack(parts), scheme).value == pytest.approx(expected)


@given(some_tables, st.sampled_from(SCHEMES))
def test_twice_the_items(table, scheme):
    assume((table.sum(1) >= 2).sum() >= 2)
    once, twice = spa(table, scheme), spa(np.vstack([table] * 2), scheme)
    if scheme != "exch":  # its moments use pairs of different items
        assert twice.value == pytest.approx(once.value)
        assert twice.effective == pytest.approx(2 * once.effective)


def test_twice_the_items_have_about_half_the_variance():
    table = np.random.default_rng(0).integers(0, 4, (400, 3))
    for scheme in PAPER_SCHEMES:
        assert spa(table, scheme).sd / spa(np.vstack([table] * 2), scheme).sd == pytest.approx(np.sqrt(2), rel=0.01)


@given(st.integers(2, 6), st.lists(st.integers(0, 2), min_size=12, max_size=36))
def test_equally_many_annotations_make_all_schemes_equal(size, labels):
    rows = np.array(labels[: len(labels) // size * size]).reshape(-1, size)
    table = np.stack([(rows == label).sum(1) for label in range(3)], axis=1)
    values = [spa(table, scheme) for scheme in SCHEMES]
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], atol=1e-9)
    assert values[0].value == pytest.approx((table * (table - 1)).sum() / (len(table) * size * (size - 1)))
    assert np.isnan(dependence(counts_of(table)).z)


def test_edge_pools_the_pairs_and_annotations_are_krippendorffs():
    table = np.random.default_rng(3).integers(0, 5, (30, 4))
    table = table[table.sum(1) >= 2]
    size, agreeing = table.sum(1), (table * (table - 1)).sum(1)
    assert spa(table, "edge").value == pytest.approx(agreeing.sum() / (size * (size - 1)).sum())
    assert spa(table, "annotations").value == pytest.approx((agreeing / (size - 1)).sum() / size.sum())


def test_what_cannot_be_estimated_is_not_a_number():
    for scheme in SCHEMES:
        assert np.isnan(spa([[1, 0], [0, 1]], scheme)).all()
        assert np.isnan(spa([[0, 0], [0, 0]], scheme)).all()
    one_item = spa([[2, 1], [1, 0]], "edge")
    assert one_item.value == pytest.approx(1 / 3)
    assert np.isnan(one_item[1:4]).all()
    one_class = spa([[3], [2]], "inv_var_class")
    assert (one_class.value, one_class.sd) == (1, 0)
    assert 0 < one_class.lower < one_class.upper == 1


@pytest.mark.parametrize(("shares", "num_items"), [((0.5, 0.2), 20), ((0.96, 0.02), 50)])
def test_the_interval_covers_where_walds_does_not(shares, num_items):
    rng = np.random.default_rng(0)
    centre = np.array([*shares, 1 - sum(shares)])
    truth = (rng.dirichlet(20 * centre, 200_000) ** 2).sum(1).mean()
    wilson, wald = [], []
    for _ in range(1000):
        table = rng.multinomial(rng.integers(2, 11, num_items), rng.dirichlet(20 * centre, num_items))
        estimate = spa(table, "annotations_m1")
        wilson.append(estimate.lower <= truth <= estimate.upper)
        wald.append(abs(estimate.value - truth) <= 1.96 * estimate.sd)
    error = np.sqrt(0.05 * 0.95 / 1000)
    assert np.mean(wilson) > 0.95 - 3 * error
    assert np.mean(wald) < min(0.95 - 2 * error, np.mean(wilson))


def adjudicated(rng, num_items):
    """Two annotations, and a third where they differ: the number depends on the agreement."""
    labels = rng.integers(0, 2, (num_items, 3))
    size = np.where(labels[:, 0] == labels[:, 1], 2, 3)
    seen = np.arange(3) < size[:, None]
    return np.stack([((labels == label) & seen).sum(1) for label in range(2)], axis=1)


def test_adjudication_is_seen():
    found = dependence(counts_of(adjudicated(np.random.default_rng(0), 300)))
    assert found.z < -10
    assert found.found
    assert "agree less" in str(found)
    assert "weighting changes what is estimated here; use flat" in str(found)


def test_false_alarms_are_rare():
    rng = np.random.default_rng(0)
    z = []
    for _ in range(400):
        table = rng.multinomial(rng.integers(2, 7, 100), rng.dirichlet([1.0, 1.0], 100))
        z.append(dependence(counts_of(table)).z)
    false = np.mean(np.abs(z) > 1.96)
    assert abs(false - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 400)
    assert "No sign" in str(dependence(counts_of(rng.multinomial(rng.integers(2, 7, 100), [0.5, 0.5]))))


def test_equal_numbers_need_no_test():
    found = dependence(counts_of([[2, 1], [1, 2], [3, 0]]))
    assert not found.found
    assert str(found) == "Weights make no difference: items that count are annotated, or agree, equally often."


def test_where_there_is_no_z_the_words_say_why():
    unanimous = dependence(counts_of([[2, 0], [0, 3], [5, 0], [7, 0]]))
    two_items = dependence(counts_of([[2, 0], [1, 3]]))
    assert np.isnan(unanimous.z)
    assert np.isnan(two_items.z)
    assert "agree, equally often" in str(unanimous)
    assert abs(two_items.difference) > 0.1
    assert "Too few items" in str(two_items)
    assert "Too few items" in str(dependence(counts_of([[1, 0]])))


def test_items_with_one_annotation_are_compared():
    rng = np.random.default_rng(2)
    usable = rng.multinomial(3, [0.8, 0.2], 200)
    alike, unlike = rng.multinomial(1, [0.8, 0.2], 100), rng.multinomial(1, [0.2, 0.8], 100)
    assert dependence(counts_of(np.vstack([usable, alike]))).single_p > 0.001
    found = dependence(counts_of(np.vstack([usable, unlike])))
    assert found.single_p < 1e-6
    assert "The 100 items with a single annotation have other labels" in str(found)


def test_many_items_are_tested_by_some_of_them(monkeypatch):
    rng = np.random.default_rng(3)
    table = np.vstack([rng.multinomial(3, [0.5, 0.5], 4000), rng.multinomial(1, [0.8, 0.2], 1000)])
    every = dependence(counts_of(table)).single_p
    monkeypatch.setattr(sparse_probability, "_MOST_TESTED", 300)
    some = dependence(counts_of(table))
    assert every < some.single_p < 1e-4
    assert some.single_items == 1000


def test_p_values_of_items_with_one_annotation_are_uniform():
    rng = np.random.default_rng(0)
    p = []
    for _ in range(300):
        shares = rng.dirichlet([2.0, 1.0, 1.0], 150)
        table = rng.multinomial(np.where(np.arange(150) < 50, 1, 4), shares)
        p.append(dependence(counts_of(table)).single_p)
    p = np.array(p)
    for level in (0.05, 0.5):
        assert abs((p < level).mean() - level) < 5 * np.sqrt(level * (1 - level) / 300)


@pytest.mark.parametrize("num_labels", [2, 20])
def test_few_items_with_one_annotation_raise_no_false_alarm(num_labels):
    # Most labels are then absent from them, which a covariance of their own would take for certain.
    rng = np.random.default_rng(0)
    shares = np.arange(1.0, num_labels + 1) ** -1.5
    false = 0
    for _ in range(200):
        shares_of_items = rng.dirichlet(2 * shares / shares.sum(), 220)
        table = rng.multinomial(np.where(np.arange(220) < 20, 1, 3), shares_of_items)
        false += dependence(counts_of(table)).single_p < 0.05
    assert abs(false / 200 - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 200)


def test_other_labels_are_found_where_they_do_not_vary():
    # Every usable item has one annotation of each label, every other one the first label.
    assert dependence(counts_of([[1, 1]] * 30 + [[1, 0]] * 20)).single_p < 0.01
    assert np.isnan(dependence(counts_of([[2, 0]] * 30 + [[1, 0]] * 20)).single_p)
