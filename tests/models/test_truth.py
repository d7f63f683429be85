"""Draws of a truth, against plain loops over items, draws and classes."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from consilience.errors import UnsupportedRequest
from consilience.models import truth as truth_module
from consilience.models.dirichlet_quadrature import top_probabilities
from consilience.models.truth import (
    DirichletTruth,
    Entries,
    LabelDraws,
    PlausibilityDraws,
    PointTruth,
    most_frequent,
)

NUM_CLASSES = 6
ENTRIES = Entries.of(np.array([0, 0, 0, 1, 3, 3]), np.array([1, 2, 4, 5, 0, 3]), 4, NUM_CLASSES)  # item 2: none


def values(blocks):
    """Return the real rows of all blocks, ``(item, draw, …)``."""
    return np.concatenate([np.asarray(block.values)[: block.num_items] for block in blocks])


def brute_ranking(entries, log_weight, depth):
    """Order all classes by weight, then code; those without an entry have none."""
    rankings = np.full((entries.num_items, len(log_weight), depth), -1)
    for i in range(entries.num_items):
        slots = slice(entries.first[i], entries.first[i + 1])
        for d, row in enumerate(log_weight):
            weight = np.full(entries.num_classes, -np.inf)
            weight[entries.class_[slots]] = row[slots]
            order = sorted(range(entries.num_classes), key=lambda k, w=weight: (-w[k], k))[:depth]
            rankings[i, d, : len(order)] = order
    return rankings


@st.composite
def stored_draws(draw):
    """Entries of some items, and few distinct weights, so that ties and classes without mass abound."""
    cells = sorted(draw(st.permutations(range(12)))[:6])  # a fixed number, so that one compiled program serves all
    entries = Entries.of(*np.divmod(cells, 4), 3, 4)
    numbers = st.sampled_from([-np.inf, -2.0, 0.0, 1.5])
    weight = draw(st.lists(numbers, min_size=18, max_size=18))
    return entries, np.array(weight).reshape(3, -1)


@settings(deadline=None, max_examples=60)
@given(stored_draws())
def test_stored_draws_rank_as_sorting_does(case):
    entries, log_weight = case
    depth = 3
    np.testing.assert_array_equal(
        values(PlausibilityDraws(entries, log_weight).ranked(depth)), brute_ranking(entries, log_weight, depth)
    )


@settings(deadline=None, max_examples=30)
@given(stored_draws())
def test_masses_of_groups(case):
    entries, log_weight = case
    group = np.arange(entries.num_classes) % 2
    plausibility = np.zeros((3, entries.num_items, entries.num_classes))
    plausibility[:, entries.item, entries.class_] = np.exp(log_weight)
    empty = plausibility.sum(-1) == 0
    plausibility[empty] = 1.0  # nothing is known: all classes alike
    plausibility /= plausibility.sum(-1, keepdims=True)
    expected = np.stack([plausibility[:, :, group == g].sum(-1) for g in (0, 1)], axis=-1)
    masses = values(PlausibilityDraws(entries, log_weight).grouped(group, 2))
    np.testing.assert_allclose(masses, np.moveaxis(expected, 0, 1), atol=1e-6)
    leading = PlausibilityDraws(entries, log_weight).leading()
    mean = plausibility.mean(0)[np.arange(entries.num_items), leading["label"]]
    np.testing.assert_allclose(leading["probability"], mean, atol=1e-6)


def test_named_classes_without_mass_fill_by_code_among_the_unnamed():
    entries = Entries.of(np.array([0, 0]), np.array([1, 3]), 1, 5)
    ranking = values(PlausibilityDraws(entries, np.array([[-np.inf, 0.0]])).ranked(5))
    assert ranking.tolist() == [[[3, 0, 1, 2, 4]]]


def dirichlet_truth(unnamed, num_draws=20_000, entries=ENTRIES, concentration=(0.3, 2.0, 1.0, 0.7, 5.0, 5.0)):
    return DirichletTruth(entries, np.array(concentration), unnamed, key=jax.random.key(3), num_draws=num_draws)


@functools.cache
def dirichlet_rankings(unnamed):
    """Return complete rankings of all items, ``(item, draw, class)``; compiling them is what takes the time."""
    return values(dirichlet_truth(unnamed).ranked(NUM_CLASSES))


@pytest.mark.parametrize("unnamed", [0.0, 0.05, 0.6])
def test_leading_classes_are_as_frequent_as_the_quadrature_says(unnamed):
    truth = dirichlet_truth(unnamed)
    entry, rest = top_probabilities(ENTRIES.first, truth.concentration, unnamed, NUM_CLASSES)
    expected = np.repeat(rest[:, None], NUM_CLASSES, axis=1)
    expected[ENTRIES.item, ENTRIES.class_] = entry
    if unnamed == 0:
        expected[2] = np.eye(NUM_CLASSES)[0]  # no mass anywhere: the lowest class stands in
    top = dirichlet_rankings(unnamed)[:, :, 0]
    share = np.stack([(top == k).mean(axis=1) for k in range(NUM_CLASSES)], axis=1)
    error = np.sqrt(np.abs(expected * (1 - expected)) / top.shape[1])
    np.testing.assert_array_less(np.abs(share - expected), 5 * error + 1e-9)


@pytest.mark.parametrize("unnamed", [0.0, 0.6])
def test_rankings_are_permutations_and_prefixes_of_each_other(unnamed):
    full = dirichlet_rankings(unnamed)
    np.testing.assert_array_equal(np.sort(full, axis=-1), np.broadcast_to(np.arange(NUM_CLASSES), full.shape))
    np.testing.assert_array_equal(values(dirichlet_truth(unnamed).ranked(1)), full[:, :, :1])


def test_places_after_the_last_class_are_empty():
    truth = PlausibilityDraws(Entries.of(np.array([0]), np.array([1]), 1, 3), np.zeros((2, 1)))
    assert values(truth.ranked(5)).tolist() == [[[1, 0, 2, -1, -1]] * 2]


def test_joint_order_of_named_and_unnamed_classes():
    """P(first and second place) of every pair of classes, against draws of all gamma variables."""
    unnamed = 0.6
    ranking = dirichlet_rankings(unnamed)[0, :, :2]
    concentration = np.full(NUM_CLASSES, unnamed)
    concentration[[1, 2, 4]] = dirichlet_truth(unnamed).concentration[:3]
    gammas = np.random.default_rng(0).gamma(concentration, size=(len(ranking), NUM_CLASSES))
    drawn = np.argsort(-gammas, axis=1)[:, :2]
    pairs = [np.bincount(order @ [NUM_CLASSES, 1], minlength=36) for order in (ranking, drawn)]
    table = np.array(pairs)[:, np.sum(pairs, axis=0) > 10]
    assert stats.chi2_contingency(table).pvalue > 1e-4


def test_masses_of_groups_of_a_dirichlet():
    group, unnamed, num_draws = np.array([0, 1, 1, 2, 2, 2]), 0.6, 20_000
    truth = dirichlet_truth(unnamed)
    cells = np.full((4, NUM_CLASSES), unnamed)
    cells[ENTRIES.item, ENTRIES.class_] = truth.concentration
    concentration = np.stack([cells[:, group == g].sum(axis=1) for g in range(3)], axis=1)
    np.testing.assert_allclose(truth.group_concentration(group, 3), concentration, rtol=1e-14)
    masses = values(truth.grouped(group, 3))
    np.testing.assert_allclose(masses.sum(-1), 1, atol=1e-6)
    total = concentration.sum(1, keepdims=True)
    mean = concentration / total
    sd = np.sqrt(mean * (1 - mean) / (total + 1))
    assert np.abs((masses.mean(1) - mean) / (sd / np.sqrt(num_draws))).max() < 5
    expected = cells[ENTRIES.item, ENTRIES.class_] / cells.sum(1)[ENTRIES.item]
    np.testing.assert_allclose(truth.mean(), expected, rtol=1e-12)


@pytest.mark.parametrize("limit", [1, 40, 200, 1 << 22])
def test_blocks_cover_all_items_once(monkeypatch, limit):
    monkeypatch.setattr(truth_module, "_BLOCK_NUMBERS", limit)
    rng = np.random.default_rng(1)
    named = rng.random((23, 9)) < 0.3
    named[5] = True
    named[7] = False
    entries = Entries.of(*np.nonzero(named), 23, 9)
    pieces = list(entries.blocks(10))
    assert [i for items, *_ in pieces for i in range(items.start, items.stop)] == list(range(23))
    assert [e for _, slots, *_ in pieces for e in range(slots.start, slots.stop)] == list(range(named.sum()))
    for items, slots, num_items, num_entries in pieces:
        assert items.stop - items.start <= num_items
        assert slots.stop - slots.start <= num_entries
        assert slots == slice(entries.first[items.start], entries.first[items.stop])
    log_weight = rng.normal(size=(10, named.sum()))
    ranking = values(PlausibilityDraws(entries, log_weight).ranked(3))
    np.testing.assert_array_equal(ranking, brute_ranking(entries, log_weight, 3))
    labels = rng.integers(0, 9, (10, 23))
    np.testing.assert_array_equal(values(LabelDraws(labels, 9).ranked(1))[:, :, 0], labels.T)


def test_block_boundaries_do_not_change_the_distribution(monkeypatch):
    num_items, num_draws = 30, 1000
    entries = Entries.of(np.repeat(np.arange(num_items), 2), np.tile([0, 2], num_items), num_items, 4)
    truth = dirichlet_truth(0.3, num_draws, entries, np.tile([1.0, 1.4], num_items))
    whole = values(truth.ranked(1))[:, :, 0]
    monkeypatch.setattr(truth_module, "_BLOCK_NUMBERS", 7 * num_draws)
    split = list(truth.ranked(1))
    assert len(split) > 3
    counts = [np.bincount(codes.ravel(), minlength=4) for codes in (whole, values(split))]
    assert stats.chi2_contingency(counts).pvalue > 1e-4
    # Items are alike and independent: no two blocks may repeat each other's draws.
    rows = values(split)[:, :, 0]
    assert len(np.unique(rows, axis=0)) == num_items
    assert len(np.unique(values(truth.grouped(np.array([0, 0, 1, 1]), 2))[:, :, 0], axis=0)) == num_items


def test_point_estimates_tie_where_only_rounding_differs():
    entries = Entries.of(np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 1, 3]), 2, 4)
    score = np.array([0.1, 1 / 2, 1 / 6 + 1 / 3, 0.3, 0.1 + 0.2])
    assert score[1] != score[2] or score[3] != score[4]
    point = PointTruth(entries, score)
    assert point.score[1] == point.score[2]
    assert point.score[3] == point.score[4]
    assert values(point.ranked(3)).tolist() == [[[1, 2, 0]], [[1, 3, 0]]]
    classes, buckets = point.bucket_orders(4)
    assert classes.tolist() == [[1, 2, 0, -1], [1, 3, -1, -1]]
    assert buckets.tolist() == [[0, 0, 1, -1], [0, 0, -1, -1]]
    assert [part.tolist() for part in point.bucket_orders(1)] == [[[1], [1]], [[0], [0]]]


def test_ties_do_not_depend_on_where_decimals_are_rounded():
    for base in (1 / 1024, 3 / 2048, 0.12345678949999999):
        entries = Entries.of(np.array([0, 0, 0]), np.array([0, 1, 2]), 1, 3)
        point = PointTruth(entries, np.array([1.0, np.nextafter(base, 0), np.nextafter(base, 1)]))
        assert point.bucket_orders(3)[1].tolist() == [[0, 1, 1]], base
    far = PointTruth(Entries.of(np.array([0, 0]), np.array([0, 1]), 1, 2), np.array([1.0, 1.0 + 1e-8]))
    assert far.bucket_orders(2)[0].tolist() == [[1, 0]]


def test_bucket_orders_leave_out_items_and_classes_without_a_score():
    entries = Entries.of(np.array([1, 1, 1]), np.array([0, 2, 3]), 3, 4)
    classes, buckets = PointTruth(entries, np.array([0.0, 2.0, 1.0])).bucket_orders(3)
    assert classes.tolist() == [[-1] * 3, [2, 3, -1], [-1] * 3]
    assert buckets.tolist() == [[-1] * 3, [0, 1, -1], [-1] * 3]


def test_labels_have_one_place_only():
    truth = LabelDraws(np.array([[0, 1], [0, 2], [1, 2]]), 3)
    assert truth.leading()["label"].tolist() == [0, 2]
    np.testing.assert_allclose(truth.leading()["certainty"], 2 / 3)
    np.testing.assert_allclose(truth.leading()["probability"], 2 / 3)
    masses = values(truth.grouped(np.array([0, 0, 1]), 2))
    np.testing.assert_array_equal(masses[1], [[1, 0], [0, 1], [0, 1]])
    with pytest.raises(UnsupportedRequest, match="top-k"):
        list(truth.ranked(2))
    with pytest.raises(UnsupportedRequest, match="exact"):
        truth.top_probabilities()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=5))
def test_most_frequent(rows):
    mode, share = most_frequent(np.array(rows))
    for row, value, part in zip(rows, mode, share, strict=True):
        counts = {code: row.count(code) for code in row}
        assert value == min(code for code, number in counts.items() if number == max(counts.values()))
        assert part == max(counts.values()) / len(row)
