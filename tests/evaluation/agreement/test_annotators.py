"""Annotators: everything left out one at a time and recomputed, textbook kappas, and annotators of a simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement import annotators as module
from consilience.evaluation.agreement.annotators import annotator_table, pair_table, two_way_sd
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.jackknife import jackknife_sd, wilson_interval
from consilience.evaluation.agreement.sparse_probability import sparse_agreement
from consilience.evaluation.agreement.weighting import SCHEMES, weight_function

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=25)


def make(rows, weight=None):
    item, annotator, label = np.array(rows).T
    return Annotations.from_codes(item, annotator, label, weight=weight)


def two_way(annotations, scheme="flat"):
    counts = LabelCounts.of_annotations(annotations)
    return two_way_sd(counts, annotations, weight_function(scheme, counts))


def spa(rows, weight):
    """Return SPA of (item, annotator, label) rows, from the definition."""
    total = agreeing = 0.0
    for item in {row[0] for row in rows}:
        labels = [row[2] for row in rows if row[0] == item]
        if len(labels) > 1:
            pairs = list(itertools.permutations(labels, 2))
            k = float(weight(np.array([float(len(labels))]))[0])
            total, agreeing = total + k, agreeing + k * np.mean([a == b for a, b in pairs])
    return agreeing / total if total else float("nan")


def sd_without(rows, units, weight):
    return jackknife_sd(np.array([spa([row for row in rows if unit(row)], weight) for unit in units]))


# ---- two-way standard error ----


def brute_two_way(rows, weight):
    """Return the three standard errors, by leaving out and recomputing; rows get a number so that equal ones differ."""
    size = {item: sum(row[0] == item for row in rows) for item, *_ in rows}
    rows = [(*row, number) for number, row in enumerate(rows)]
    usable = [row for row in rows if size[row[0]] > 1]
    return [
        sd_without(rows, [lambda row, u=unit, p=place: row[p] != u for unit in {row[place] for row in usable}], weight)
        for place in (0, 1, 3)
    ]


@given(ROWS, st.sampled_from(SCHEMES))
@settings(max_examples=60, deadline=None)
def test_leaving_out_and_recomputing_gives_the_same(rows, scheme):
    annotations = make(rows)
    found, weight = two_way(annotations, scheme), weight_function(scheme, LabelCounts.of_annotations(annotations))
    by_item, by_annotator, by_cell = brute_two_way(rows, weight)
    expected = (by_item, by_annotator, by_cell)
    np.testing.assert_allclose([found.item_sd, found.annotator_sd, found.cell_sd], expected, atol=1e-12)
    if np.isfinite(expected).all():
        variance = max(by_item**2, by_item**2 + by_annotator**2 - by_cell**2)
        np.testing.assert_allclose(found.sd, np.sqrt(variance), atol=1e-12)
    else:
        assert np.isnan(found.sd)


def test_noise_does_not_push_the_two_way_error_below_that_of_items():
    # Every annotator agrees half of the time whoever is left out; single annotations matter.
    rows = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1), (2, 2, 0), (2, 3, 0), (3, 2, 0), (3, 3, 1)]
    found = two_way(make(rows))
    assert found.annotator_sd < found.cell_sd
    assert found.sd == found.item_sd > 0


def test_a_row_of_weight_two_is_two_annotations():
    rows = [(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 2, 2), (2, 1, 1), (2, 2, 0), (2, 0, 0)]
    repeats = [2, 1, 1, 3, 0, 1, 1]
    once = make([row for row, times in zip(rows, repeats, strict=True) for _ in range(times)])
    weighted = make(rows, repeats)
    found, expected = (two_way(data, "annotations_m1") for data in (weighted, once))
    np.testing.assert_allclose(found, expected, atol=1e-14)
    found, expected = (annotator_table(LabelCounts.of_annotations(data), data) for data in (weighted, once))
    assert list(found) == list(expected)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-14, err_msg=name)


def test_annotators_who_meet_nobody_do_not_count():
    rows = [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 2, 1), (2, 1, 0), (2, 2, 0)]
    both = [two_way(make(rows + extra)) for extra in ([], [(3, 3, 0), (4, 3, 1), (5, 4, 1)])]
    assert both[0].num_annotators == both[1].num_annotators == 3
    np.testing.assert_allclose(both[0], both[1])


def test_an_annotator_who_is_part_of_every_pair_cannot_be_left_out():
    found = two_way(make([(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 2, 1)]))
    assert np.isnan(found.annotator_sd)
    assert np.isnan(found.sd)
    assert found.item_sd == 0.5


def test_counts_without_annotators_are_refused():
    annotations = Annotations.from_counts([[2, 1], [0, 2]])
    for request in (
        lambda: two_way(annotations),
        lambda: annotator_table(LabelCounts.of_annotations(annotations), annotations),
        lambda: pair_table(annotations),
    ):
        with pytest.raises(UnsupportedRequest, match="column of annotators"):
            request()


def simulate(generator, num_annotators, num_items, alike=False, size=3):
    """Draw annotators who are right with a probability of their own, and three of them for each item."""
    right = generator.uniform(0.5, 1, num_annotators)
    right = np.full(num_annotators, 0.75) if alike else right
    chosen = generator.random((num_items, num_annotators)).argsort(1)[:, :size]
    truth = generator.integers(0, 2, (num_items, 1))
    label = np.where(generator.random(chosen.shape) < right[chosen], truth, 1 - truth)
    return Annotations.from_codes(
        np.repeat(np.arange(num_items), size), chosen.ravel(), label.ravel(), num_annotators=num_annotators,
        num_labels=2,
    )  # fmt: skip


def repeat(num_annotators, alike, times=500):
    """Return two-way errors of estimates from new items and annotators, and their true one with its own error."""
    generator = np.random.default_rng(num_annotators)
    estimates, found = [], []
    for _ in range(times):
        annotations = simulate(generator, num_annotators, 300, alike)
        counts = LabelCounts.of_annotations(annotations)
        estimates.append(sparse_agreement(counts.patterns, weight_function("flat", counts)).value)
        found.append(two_way(annotations))
    squares = (np.array(estimates) - np.mean(estimates)) ** 2
    sd = np.sqrt(squares.mean())
    return np.array(found).T, sd, squares.std() / np.sqrt(times) / (2 * sd)


@pytest.mark.parametrize("num_annotators", [10, 30])
def test_the_two_way_error_is_the_scatter_over_new_items_and_annotators(num_annotators):
    (two_way, by_item, *_), true, error = repeat(num_annotators, alike=False)
    assert abs(two_way.mean() - true) < 5 * np.hypot(error, two_way.std() / np.sqrt(len(two_way)))
    # What it is for: the error over items alone is too small where annotators differ.
    assert by_item.mean() < true - 5 * error


def test_with_annotators_alike_the_two_way_error_is_cautious():
    (two_way, _, by_annotator, *_), true, error = repeat(10, alike=True)
    assert true - 5 * error < two_way.mean() < by_annotator.mean()


# ---- tables ----


def brute_annotator(rows, annotator):
    """Return pairs and agreement with others, and the same per item."""
    by_item = {}
    for one, other in itertools.permutations(rows, 2):
        if one[0] == other[0] and one[1] == annotator != other[1]:
            by_item.setdefault(one[0], []).append(one[2] == other[2])
    return by_item


@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_an_annotator_is_compared_with_all_others_of_an_item(rows):
    annotations = make(rows)
    table = annotator_table(LabelCounts.of_annotations(annotations), annotations, 0.9)
    for annotator in range(annotations.num_annotators):
        by_item = brute_annotator(rows, annotator)
        row = {name: column[annotator] for name, column in table.items()}
        pairs = list(itertools.chain(*by_item.values()))
        assert row["annotations"] == sum(one[1] == annotator for one in rows)
        assert row["pairs"] == len(pairs)
        if not pairs:
            assert np.isnan([row["agreement"], row["sd"], row["lower"], row["upper"]]).all()
            continue
        np.testing.assert_allclose(row["agreement"], np.mean(pairs))
        left_out = [[hit for item, hits in by_item.items() if item != out for hit in hits] for out in by_item]
        sd = jackknife_sd(np.array([np.mean(rest) if rest else np.nan for rest in left_out]))
        np.testing.assert_allclose(row["sd"], sd, atol=1e-12)
        effective = len(pairs) ** 2 / sum(len(hits) ** 2 for hits in by_item.values())
        interval = wilson_interval(row["agreement"], row["sd"], effective, 0.9)
        np.testing.assert_allclose([row["lower"], row["upper"]], interval, atol=1e-9)


def test_without_repetitions_it_is_the_formula():
    generator = np.random.default_rng(3)
    annotations = simulate(generator, 12, 200, size=4)
    counts = LabelCounts.of_annotations(annotations)
    table = annotator_table(counts, annotations)
    dense = np.zeros((200, 2))
    np.add.at(dense, (annotations.item, annotations.label), 1)
    same = np.bincount(annotations.annotator, dense[annotations.item, annotations.label] - 1)
    np.testing.assert_allclose(table["agreement"], same / np.bincount(annotations.annotator, np.full(800, 3)))
    pooled = (table["agreement"] * table["pairs"]).sum() / table["pairs"].sum()
    np.testing.assert_allclose(pooled, sparse_agreement(counts.patterns, weight_function("edge", counts)).value)


@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_every_pair_of_annotators_is_there_once(rows):
    table = pair_table(make(rows))
    num_labels = 1 + max(row[2] for row in rows)
    found = {
        (a, b): number for number, (a, b) in enumerate(zip(table["annotator_a"], table["annotator_b"], strict=True))
    }
    assert len(found) == len(table["items"])
    expected = set()
    for a, b in itertools.combinations(sorted({row[1] for row in rows}), 2):
        said = {
            annotator: {item: [row[2] for row in rows if row[:2] == (item, annotator)] for item in range(5)}
            for annotator in (a, b)
        }
        common = [item for item in range(5) if said[a][item] and said[b][item]]
        if not common:
            continue
        expected.add((a, b))
        row = {name: column[found[a, b]] for name, column in table.items()}
        shares = [
            np.array([[np.mean(np.array(said[one][item]) == label) for label in range(num_labels)] for item in common])
            for one in (a, b)
        ]
        observed = (shares[0] * shares[1]).sum(1).mean()
        margins = [share.mean(0) for share in shares]
        cohen, scott = margins[0] @ margins[1], (((margins[0] + margins[1]) / 2) ** 2).sum()
        assert row["items"] == len(common)
        np.testing.assert_allclose(row["agreement"], observed, atol=1e-12)
        for name, chance in (("cohen_kappa", cohen), ("scott_pi", scott)):
            kappa = (observed - chance) / (1 - chance) if chance < 1 - 1e-12 else np.nan
            np.testing.assert_allclose(row[name], kappa, atol=1e-9)
    assert set(found) == expected


@given(ROWS)
@settings(max_examples=30, deadline=None)
def test_pooled_pairs_are_the_edge_estimate(rows):
    rows = list({row[:2]: row for row in rows}.values())
    annotations = make(rows)
    counts = LabelCounts.of_annotations(annotations)
    table = pair_table(annotations)
    total = table["items"].sum()
    edge = sparse_agreement(counts.patterns, weight_function("edge", counts)).value
    assert total == counts.size @ (counts.size - 1) / 2
    if total:
        np.testing.assert_allclose((table["agreement"] * table["items"]).sum() / total, edge)


def test_textbook_kappas():
    # Both yes 20, first alone 5, second alone 10, both no 15: kappa 2/5, pi 13/33, and Wilson at 35 of 50.
    first = [0] * 25 + [1] * 25
    second = [0] * 20 + [1] * 5 + [0] * 10 + [1] * 15
    annotations = Annotations.from_codes(np.tile(np.arange(50), 2), np.repeat([0, 1], 50), first + second)
    table = pair_table(annotations)
    assert {name: len(column) for name, column in table.items()}["items"] == 1
    assert table["items"][0] == 50
    np.testing.assert_allclose(table["agreement"], 7 / 10)
    np.testing.assert_allclose(table["cohen_kappa"], 2 / 5)
    np.testing.assert_allclose(table["scott_pi"], 13 / 33)
    # (35 + z²/2 ± z sqrt(35·15/50 + z²/4)) / (50 + z²).
    z = 1.959963984540054
    half = z * np.sqrt(35 * 15 / 50 + z**2 / 4)
    np.testing.assert_allclose(table["lower"], (35 + z**2 / 2 - half) / (50 + z**2))
    np.testing.assert_allclose(table["upper"], (35 + z**2 / 2 + half) / (50 + z**2))


def test_kappa_of_a_single_class_is_not_defined():
    table = pair_table(make([(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1)]))
    np.testing.assert_array_equal(table["agreement"], [1.0])
    assert np.isnan([table["cohen_kappa"][0], table["scott_pi"][0]]).all()
    np.testing.assert_array_equal(table["upper"], [1.0])


def test_annotators_without_common_items_make_an_empty_table():
    table = pair_table(make([(0, 0, 1), (1, 1, 1)]))
    assert {len(column) for column in table.values()} == {0}


def test_a_table_of_too_many_pairs_is_refused(monkeypatch):
    monkeypatch.setattr(module, "_MOST_PAIRS", 2)
    with pytest.raises(UnsupportedRequest, match="3 pairs of annotators"):
        pair_table(make([(0, 0, 1), (0, 1, 1), (0, 2, 1)]))
    # Two items with a pair each, whoever they are, are few enough.
    assert len(pair_table(make([(0, 0, 1), (0, 1, 1), (1, 2, 1), (1, 3, 1)]))["items"]) == 2
