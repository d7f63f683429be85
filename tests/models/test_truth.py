"""Draws of a truth, against plain loops over items, draws and classes."""

import functools
import pickle
import tracemalloc

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.models.dirichlet_quadrature import top_probabilities
from consilience.models.truth import (
    Crowd,
    DirichletTruth,
    Entries,
    LabelDraws,
    LabelProbabilities,
    PlausibilityDraws,
    PointTruth,
    Ranked,
    labels,
    leading,
)
from consilience.models.truth import entries as truth_entries
from consilience.models.truth.entries import most_frequent
from consilience.models.truth.plausibilities import OtherMass
from consilience.models.truth.truth import Agreement, Mass, Shares

NUM_CLASSES = 6
ENTRIES = Entries.of(np.array([0, 0, 0, 1, 3, 3]), np.array([1, 2, 4, 5, 0, 3]), 4, NUM_CLASSES)  # item 2: none


def values(blocks):
    """Return the real rows of all blocks, ``(item, draw, …)``."""
    return np.concatenate([block.real for block in blocks])


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
        values(PlausibilityDraws(entries, log_weight).blocks(Ranked(depth))), brute_ranking(entries, log_weight, depth)
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
    masses = values(PlausibilityDraws(entries, log_weight).blocks(Mass(group, 2)))
    np.testing.assert_allclose(masses, np.moveaxis(expected, 0, 1), atol=1e-6)
    table = leading(PlausibilityDraws(entries, log_weight))
    mean = plausibility.mean(0)[np.arange(entries.num_items), table["label"]]
    np.testing.assert_allclose(table["probability"], mean, atol=1e-6)


def test_named_classes_without_mass_fill_by_code_among_the_unnamed():
    entries = Entries.of(np.array([0, 0]), np.array([1, 3]), 1, 5)
    ranking = values(PlausibilityDraws(entries, np.array([[-np.inf, 0.0]])).blocks(Ranked(5)))
    assert ranking.tolist() == [[[3, 0, 1, 2, 4]]]


def dirichlet_truth(unnamed, num_draws=20_000, entries=ENTRIES, concentration=(0.3, 2.0, 1.0, 0.7, 5.0, 5.0)):
    return DirichletTruth(entries, np.array(concentration), unnamed, key=jax.random.key(3), num_draws=num_draws)


@functools.cache
def dirichlet_rankings(unnamed):
    """Return complete rankings of all items, ``(item, draw, class)``; compiling them is what takes the time."""
    return values(dirichlet_truth(unnamed).blocks(Ranked(NUM_CLASSES)))


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
    np.testing.assert_array_equal(values(dirichlet_truth(unnamed).blocks(Ranked(1))), full[:, :, :1])


def test_places_after_the_last_class_are_empty():
    truth = PlausibilityDraws(Entries.of(np.array([0]), np.array([1]), 1, 3), np.zeros((2, 1)))
    assert values(truth.blocks(Ranked(5))).tolist() == [[[1, 0, 2, -1, -1]] * 2]


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
    masses = values(truth.blocks(Mass(group, 3)))
    np.testing.assert_allclose(masses.sum(-1), 1, atol=1e-6)
    total = concentration.sum(1, keepdims=True)
    mean = concentration / total
    sd = np.sqrt(mean * (1 - mean) / (total + 1))
    assert np.abs((masses.mean(1) - mean) / (sd / np.sqrt(num_draws))).max() < 5
    expected = cells[ENTRIES.item, ENTRIES.class_] / cells.sum(1)[ENTRIES.item]
    np.testing.assert_allclose(truth.mean(), expected, rtol=1e-12)


@pytest.mark.parametrize("limit", [1, 40, 200, 1 << 22])
def test_blocks_cover_all_items_once(monkeypatch, limit):
    monkeypatch.setattr(truth_entries, "block_numbers", lambda: limit)
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
    ranking = values(PlausibilityDraws(entries, log_weight).blocks(Ranked(3)))
    np.testing.assert_array_equal(ranking, brute_ranking(entries, log_weight, 3))
    labels = rng.integers(0, 9, (10, 23))
    np.testing.assert_array_equal(values(LabelDraws(labels, 9).blocks(Ranked(1)))[:, :, 0], labels.T)


# ---- the summed mass of the classes that nobody named ----

PARTLY_NAMED = Entries.of(np.array([0, 0, 2, 2, 2, 2, 2]), np.array([1, 3, 0, 1, 2, 3, 4]), 4, 5)  # items 1 and 3: none


def with_other(concentration, log_weight, log_other, entries=PARTLY_NAMED, seed=2):
    return PlausibilityDraws(entries, log_weight, OtherMass(log_other, concentration, jax.random.key(seed)))


def random_weights(num_draws, entries=PARTLY_NAMED):
    random = np.random.default_rng(4)
    weight = random.gamma(0.8, size=(num_draws, len(entries.class_)))
    return np.log(weight), np.log(random.gamma(2.0, size=(num_draws, entries.num_items)))


def dense_plausibility(entries, log_weight, log_other, concentration):
    """Divide the other mass among all classes by complete Dirichlet draws, ``(draw, item, class)``."""
    shape = (len(log_weight), entries.num_items, entries.num_classes)
    unnamed = np.ones(shape[1:], bool)
    unnamed[entries.item, entries.class_] = False
    gammas = np.random.default_rng(5).gamma(concentration, size=shape) * unnamed
    total = gammas.sum(-1, keepdims=True)
    plausibility = gammas / np.where(total > 0, total, 1) * np.exp(log_other)[:, :, None]
    plausibility[:, entries.item, entries.class_] = np.exp(log_weight)
    return plausibility / plausibility.sum(-1, keepdims=True)


def assert_same_frequencies(codes, others, sigmas=5):
    """Compare how often each value occurs in two arrays ``(item, draw)``."""
    for one, two in zip(codes, others, strict=True):
        for value in np.union1d(one, two):
            p, q = (one == value).mean(), (two == value).mean()
            error = np.sqrt((p * (1 - p) + q * (1 - q)) / len(one)) + 2 / len(one)
            assert abs(p - q) < sigmas * error


@pytest.mark.parametrize("concentration", [0.2, 1.5])
def test_other_mass_ranks_as_complete_draws_do(monkeypatch, concentration):
    num_draws = 20_000
    log_weight, log_other = random_weights(num_draws)
    monkeypatch.setattr(truth_entries, "block_numbers", lambda: 6 * num_draws)  # two blocks
    ranking = values(with_other(concentration, log_weight, log_other).blocks(Ranked(3)))
    plausibility = dense_plausibility(PARTLY_NAMED, log_weight, log_other, concentration)
    order = np.moveaxis(np.argsort(-plausibility, axis=-1), 0, 1)
    assert_same_frequencies(ranking[:, :, 0], order[:, :, 0])
    for size in (2, 3):
        sets, expected = (np.sort(codes[:, :, :size], axis=-1) @ 5 ** np.arange(size) for codes in (ranking, order))
        assert_same_frequencies(sets, expected)
    # Nobody named a class of these two items: they are alike and independent.
    assert abs((ranking[1] == ranking[3]).mean() - 0.2) < 5 * np.sqrt(0.16 / num_draws)


def test_rankings_with_other_mass_are_permutations_and_prefixes_of_each_other():
    log_weight, log_other = random_weights(50)
    full = values(with_other(0.7, log_weight, log_other).blocks(Ranked(6)))
    np.testing.assert_array_equal(np.sort(full[:, :, :5], axis=-1), np.broadcast_to(np.arange(5), (4, 50, 5)))
    assert np.all(full[:, :, 5] == -1)
    for depth in (1, 3):
        truth = with_other(0.7, log_weight, log_other)
        np.testing.assert_array_equal(values(truth.blocks(Ranked(depth))), full[:, :, :depth])
        np.testing.assert_array_equal(values(truth.blocks(Ranked(6))), full)
    assert not np.array_equal(values(with_other(0.7, log_weight, log_other, seed=3).blocks(Ranked(6))), full)


def test_classes_without_mass_come_after_those_with_other_mass():
    entries = Entries.of(np.array([0, 0, 0]), np.array([0, 2, 3]), 1, 5)
    log_weight = np.array([[-np.inf, 0.0, -np.inf]] * 3)
    truth = with_other(1.0, log_weight, np.array([[-9.0], [9.0], [-np.inf]]), entries)
    ranking = values(truth.blocks(Ranked(5)))[0].tolist()
    # Much less than the named class, much more, and none: then the lowest codes fill the ranking.
    assert ranking[0][0] == 2
    assert ranking[1][2] == 2
    for places in (ranking[0][1:3], ranking[1][:2]):
        assert sorted(places) == [1, 4]
    assert [row[3:] for row in ranking[:2]] == [[0, 3]] * 2
    assert ranking[2] == [2, 0, 1, 3, 4]


def test_other_mass_is_not_read_where_every_class_is_named():
    entries = Entries.dense(2, 3)
    log_weight = np.random.default_rng(0).normal(size=(20, 6))
    log_weight[0, :3] = -np.inf
    log_weight[1, 4] = -np.inf
    plain, group = PlausibilityDraws(entries, log_weight), np.array([0, 1, 1])
    for log_other in (-np.inf, 3.0):
        truth = with_other(1.0, log_weight, np.full((20, 2), log_other), entries)
        np.testing.assert_array_equal(values(truth.blocks(Ranked(4))), values(plain.blocks(Ranked(4))))
        np.testing.assert_array_equal(values(truth.blocks(Mass(group, 2))), values(plain.blocks(Mass(group, 2))))
        for name, column in leading(truth).items():
            np.testing.assert_array_equal(column, leading(plain)[name])


@pytest.mark.parametrize("concentration", [0.05, 2.0])
def test_masses_of_groups_with_other_mass(concentration):
    num_draws, group = 20_000, np.array([0, 1, 1, 0, 2])
    weight, other = np.array([1.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 1.0, 1.0, 1.0])
    stored = np.broadcast_to(np.log(weight), (num_draws, 7)), np.broadcast_to(np.log(other), (num_draws, 4))
    masses = values(with_other(concentration, *stored).blocks(Mass(group, 3))).astype(float)
    np.testing.assert_allclose(masses.sum(-1), 1, atol=1e-6)
    # Item 0 names classes 1 and 3, so that classes 0, 2 and 4 share a third of the mass, each in a group of its own.
    counts = np.array([[1, 1, 1], [2, 2, 1], [0, 0, 0], [2, 2, 1]])
    named = np.array([[3.0, 1.0, 0], [0, 0, 0], [1 + 4, 2 + 3, 5], [0, 0, 0]])
    total = np.array([6.0, 1, 15, 1])[:, None]
    part = np.where(counts.any(1), other, 0)[:, None] / total
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    sd = part * np.sqrt(share * (1 - share) / (concentration * counts.sum(1, keepdims=True) + 1))
    error = sd / np.sqrt(num_draws) + 1e-6
    assert np.all(np.abs(masses.mean(1) - (named / total + part * share)) < 5 * error)
    squared = (masses - masses.mean(1, keepdims=True)) ** 2
    assert np.all(np.abs(squared.mean(1) - sd**2) < 5 * squared.std(1) / np.sqrt(num_draws) + 1e-9)
    assert abs(np.corrcoef(masses[1, :, 0], masses[3, :, 0])[0, 1]) < 5 / np.sqrt(num_draws)


def test_a_group_without_unnamed_classes_gets_none_of_the_other_mass():
    log_weight, log_other = random_weights(30)
    masses = values(with_other(1.0, log_weight, log_other).blocks(Mass(np.array([0, 1, 0, 1, 0]), 2)))[0]
    weight = np.exp(log_weight[:, :2]).sum(1)
    np.testing.assert_allclose(masses[:, 1], weight / (weight + np.exp(log_other[:, 0])), rtol=1e-5)


def test_leading_classes_with_other_mass():
    num_draws = 4000
    log_weight, log_other = random_weights(num_draws)
    table = leading(with_other(1.0, log_weight, log_other + 3))  # hardly ever does a named class of item 0 lead
    plausibility = dense_plausibility(PARTLY_NAMED, log_weight, log_other + 3, 1.0)
    assert table["label"][0] in (0, 2, 4)
    for item in (0, 2):
        drawn = plausibility[:, item, table["label"][item]]
        assert abs(table["probability"][item] - drawn.mean()) < 5 * drawn.std() / np.sqrt(num_draws) + 1e-6
    # Without entries all classes are alike.
    assert table["label"][[1, 3]].tolist() == [0, 0]
    assert table["probability"][[1, 3]].tolist() == table["certainty"][[1, 3]].tolist() == [0.2, 0.2]


def test_items_that_share_draws_of_the_shares_are_independent():
    """The share of items in which an unnamed class leads varies over draws as that of independent items does."""
    num_items, num_draws = 300, 1000
    entries = Entries.of(np.arange(num_items), np.full(num_items, 6), num_items, 9)
    log_other = np.full((num_draws, num_items), np.log(2.6))
    top = values(with_other(1.0, np.zeros((num_draws, num_items)), log_other, entries).blocks(Ranked(1)))[:, :, 0]
    assert len(np.unique(top, axis=0)) == num_items
    unnamed = top != 6
    p, counts = unnamed.mean(), unnamed.sum(0)
    assert 0.1 < p < 0.9
    spread = ((counts - counts.mean()) ** 2).sum() / (num_items * p * (1 - p))
    assert abs(spread - (num_draws - 1)) < 5 * np.sqrt(2 * num_draws)
    assert abs(np.corrcoef(counts[1:], counts[:-1])[0, 1]) < 5 / np.sqrt(num_draws)


def test_a_million_classes_with_other_mass_need_little_memory():
    entries = Entries.of(np.array([0, 1, 1]), np.array([999_999, 3, 4]), 3, 10**6)
    tracemalloc.start()
    truth = with_other(1.0, np.zeros((100, 3)), np.zeros((100, 3)), entries)
    ranking = values(truth.blocks(Ranked(3)))
    masses = values(truth.blocks(Mass(np.arange(10**6) % 2, 2)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8  # an array of draws × items × classes would be 1.2 GB
    assert np.all(ranking[0, :, 0] == 999_999)
    assert np.all(ranking[1, :, :2] == [3, 4])
    assert np.all((ranking >= 0) & (ranking < 10**6))
    assert len(np.unique(ranking[2])) > 290
    np.testing.assert_allclose(masses[:, :, 0], [[0.25] * 100, [0.5] * 100, [0.5] * 100], atol=0.01)


def test_double_precision_ranks_alike():
    log_weight, log_other = random_weights(4000)
    single = values(with_other(1.0, log_weight, log_other).blocks(Ranked(1)))
    with jax.enable_x64(True):
        double = values(with_other(1.0, log_weight, log_other).blocks(Ranked(1)))
    assert single.dtype == double.dtype == np.int32
    assert_same_frequencies(single[:, :, 0], double[:, :, 0])


# ---- the point estimate ----


def test_a_point_estimate_is_made_once_and_only_when_needed():
    calls = []
    point = PointTruth(ENTRIES, np.ones(6))
    truth = dirichlet_truth(0.5)
    assert truth.standard() is None
    truth.point = lambda: calls.append(1) or point
    assert not calls
    assert truth.standard() is truth.standard() is point
    assert calls == [1]


def test_a_truth_whose_point_estimate_is_not_made_yet_can_be_pickled():
    log_weight, log_other = random_weights(50)
    truth = with_other(1.0, log_weight, log_other)
    truth.point = functools.partial(PointTruth, PARTLY_NAMED, np.arange(7.0))
    again = pickle.loads(pickle.dumps(truth))
    np.testing.assert_array_equal(values(again.blocks(Ranked(3))), values(truth.blocks(Ranked(3))))
    np.testing.assert_array_equal(again.standard().score, truth.standard().score)


def test_block_boundaries_do_not_change_the_distribution(monkeypatch):
    num_items, num_draws = 30, 1000
    entries = Entries.of(np.repeat(np.arange(num_items), 2), np.tile([0, 2], num_items), num_items, 4)
    truth = dirichlet_truth(0.3, num_draws, entries, np.tile([1.0, 1.4], num_items))
    whole = values(truth.blocks(Ranked(1)))[:, :, 0]
    monkeypatch.setattr(truth_entries, "block_numbers", lambda: 7 * num_draws)
    split = list(truth.blocks(Ranked(1)))
    assert len(split) > 3
    counts = [np.bincount(codes.ravel(), minlength=4) for codes in (whole, values(split))]
    assert stats.chi2_contingency(counts).pvalue > 1e-4
    # Items are alike and independent: no two blocks may repeat each other's draws.
    rows = values(split)[:, :, 0]
    assert len(np.unique(rows, axis=0)) == num_items
    assert len(np.unique(values(truth.blocks(Mass(np.array([0, 0, 1, 1]), 2)))[:, :, 0], axis=0)) == num_items


def test_point_estimates_tie_where_only_rounding_differs():
    entries = Entries.of(np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 1, 3]), 2, 4)
    score = np.array([0.1, 1 / 2, 1 / 6 + 1 / 3, 0.3, 0.1 + 0.2])
    assert score[1] != score[2] or score[3] != score[4]
    point = PointTruth(entries, score)
    assert point.score[1] == point.score[2]
    assert point.score[3] == point.score[4]
    assert values(point.blocks(Ranked(3))).tolist() == [[[1, 2, 0]], [[1, 3, 0]]]
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
    assert leading(truth)["label"].tolist() == [0, 2]
    np.testing.assert_allclose(leading(truth)["certainty"], 2 / 3)
    np.testing.assert_allclose(leading(truth)["probability"], 2 / 3)
    masses = values(truth.blocks(Mass(np.array([0, 0, 1]), 2)))
    np.testing.assert_array_equal(masses[1], [[1, 0], [0, 1], [0, 1]])
    with pytest.raises(UnsupportedRequest, match="top-k"):
        list(truth.blocks(Ranked(2)))
    assert truth.exact(Ranked(1)) is None


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=5))
def test_most_frequent(rows):
    mode, share = most_frequent(np.array(rows))
    for row, value, part in zip(rows, mode, share, strict=True):
        counts = {code: row.count(code) for code in row}
        assert value == min(code for code, number in counts.items() if number == max(counts.values()))
        assert part == max(counts.values()) / len(row)


# ---- plausibilities, and how often two annotators would agree ----


def dense_blocks(truth):
    """Return named plausibilities ``(draw, entry)``, the other mass ``(draw, item)`` and the agreement alike."""
    named, other, agreement = [], [], []
    for block in truth.blocks(Shares()):
        shares = block.values
        num_entries, num_items = (part.stop - part.start for part in (shares.entries, shares.items))
        named.append(np.asarray(shares.named)[:num_entries].T)
        other.append(np.asarray(shares.other)[:num_items].T)
        agreement.append(np.asarray(shares.agreement())[:num_items].T)
    np.testing.assert_array_equal(values(truth.blocks(Agreement())).T, np.concatenate(agreement, axis=1))
    return tuple(np.concatenate(parts, axis=1) for parts in (named, other, agreement))


@settings(deadline=None, max_examples=30)
@given(stored_draws())
def test_plausibilities_of_stored_draws(case):
    entries, log_weight = case
    weight = np.zeros((3, entries.num_items, entries.num_classes))
    weight[:, entries.item, entries.class_] = np.exp(log_weight)
    weight[weight.sum(-1) == 0] = 1.0  # nothing is known: all classes alike
    expected = weight / weight.sum(-1, keepdims=True)
    named, other, agreement = dense_blocks(PlausibilityDraws(entries, log_weight))
    np.testing.assert_allclose(named, expected[:, entries.item, entries.class_], atol=1e-6)
    rest = 1 - np.stack([np.bincount(entries.item, row, entries.num_items) for row in named])
    np.testing.assert_allclose(other, rest, atol=1e-6)
    np.testing.assert_allclose(agreement, (expected**2).sum(-1), atol=1e-6)


def dirichlet_moments(entries, concentration, unnamed):
    """Return per item E Σ λ² in closed form, and per entry the mean and the variance."""
    num_unnamed = entries.num_unnamed
    total = np.bincount(entries.item, concentration, entries.num_items) + unnamed * num_unnamed
    squares = np.bincount(entries.item, concentration * (concentration + 1), entries.num_items)
    agreement = (squares + num_unnamed * unnamed * (unnamed + 1)) / (total * (total + 1))
    mean = concentration / total[entries.item]
    return agreement, mean, mean * (1 - mean) / (total[entries.item] + 1)


@pytest.mark.parametrize("unnamed", [0.05, 0.6])
@pytest.mark.parametrize("limit", [1 << 18, 70_000])
def test_dirichlet_plausibilities_have_their_moments(monkeypatch, unnamed, limit):
    monkeypatch.setattr(truth_entries, "block_numbers", lambda: limit)
    truth = dirichlet_truth(unnamed)
    named, other, agreement = dense_blocks(truth)
    expected, mean, variance = dirichlet_moments(ENTRIES, truth.concentration, unnamed)
    root = np.sqrt(truth.num_draws)
    assert np.all(np.abs(agreement.mean(0) - expected) < 5 * agreement.std(0) / root + 1e-6)
    assert np.all(np.abs(named.mean(0) - mean) < 5 * np.sqrt(variance) / root)
    squared = (named - mean) ** 2
    assert np.all(np.abs(squared.mean(0) - variance) < 5 * squared.std(0) / root)
    np.testing.assert_allclose(agreement[:, 2], expected[2], rtol=1e-5)  # nobody named a class: what is left is known
    np.testing.assert_allclose(other[:, 2], 1)
    for again, first in zip(dense_blocks(truth), (named, other, agreement), strict=True):
        np.testing.assert_array_equal(again, first)


def test_without_unnamed_classes_an_item_without_entries_is_alike_in_all_classes():
    named, other, agreement = dense_blocks(dirichlet_truth(0.0, num_draws=50))
    np.testing.assert_allclose(other, np.broadcast_to([0, 0, 1, 0], (50, 4)))
    np.testing.assert_allclose(agreement[:, 1:3], np.broadcast_to([1, 1 / NUM_CLASSES], (50, 2)), rtol=1e-6)
    np.testing.assert_allclose(named[:, 3], 1)


def test_no_block_of_plausibilities_repeats_another(monkeypatch):
    num_items, num_draws = 30, 100
    entries = Entries.of(np.repeat(np.arange(num_items), 2), np.tile([0, 2], num_items), num_items, 4)
    monkeypatch.setattr(truth_entries, "block_numbers", lambda: 7 * num_draws)
    truth = dirichlet_truth(0.3, num_draws, entries, np.tile([1.0, 1.4], num_items))
    assert len(list(truth.blocks(Shares()))) > 3
    named, other, _ = dense_blocks(truth)
    assert len(np.unique(np.vstack([named.T, other.T]), axis=0)) == 3 * num_items


@pytest.mark.parametrize("double", [False, True])
def test_small_concentrations_leave_plausibilities_that_sum_to_one(double):
    with jax.enable_x64(double):
        named, other, agreement = dense_blocks(dirichlet_truth(1e-4, 500, ENTRIES, np.full(6, 1e-3)))
    assert named.dtype == (np.float64 if double else np.float32)
    sums = np.stack([np.bincount(ENTRIES.item, row, 4) for row in named]) + other
    np.testing.assert_allclose(sums, 1, rtol=1e-6)
    assert agreement.min() > 0.16  # 1/6 at the least
    assert agreement.max() < 1 + 1e-6


@pytest.mark.parametrize("concentration", [0.2, 1.5])
def test_agreement_with_other_mass_is_that_of_complete_draws(concentration):
    num_draws = 20_000
    log_weight, log_other = random_weights(num_draws)
    named, other, agreement = dense_blocks(with_other(concentration, log_weight, log_other))
    plausibility = dense_plausibility(PARTLY_NAMED, log_weight, log_other, concentration)
    np.testing.assert_allclose(named, plausibility[:, PARTLY_NAMED.item, PARTLY_NAMED.class_], atol=1e-6)
    rest = 1 - np.stack([named[:, PARTLY_NAMED.item == item].sum(1) for item in range(4)], axis=1)
    np.testing.assert_allclose(other, rest, atol=1e-6)
    difference = (plausibility**2).sum(-1) - agreement
    error = difference.std(0) / np.sqrt(num_draws)
    assert np.all(np.abs(difference.mean(0)) < 5 * error + 1e-7)
    assert error[0] > 0  # how the unnamed classes divide their mass varies


def test_nothing_known_beside_other_mass_is_alike_in_all_classes():
    log_weight = np.array([[-np.inf, -np.inf], [0.0, 0.0]])
    entries = Entries.of(np.array([0, 0]), np.array([0, 2]), 1, 5)
    named, other, agreement = dense_blocks(with_other(2.0, log_weight, np.array([[-np.inf], [np.log(2.0)]]), entries))
    np.testing.assert_allclose(named, [[0.2, 0.2], [0.25, 0.25]], rtol=1e-6)
    np.testing.assert_allclose(other, [[0.6], [0.5]], rtol=1e-6)
    np.testing.assert_allclose(agreement, [[0.2], [2 / 16 + 0.25 * 3 / 7]], rtol=1e-6)


def test_plausibilities_of_a_point_estimate():
    entries = Entries.of(np.array([0, 0, 2]), np.array([1, 3, 0]), 3, 4)
    named, other, agreement = dense_blocks(PointTruth(entries, np.array([3.0, 1.0, 2.0])))
    np.testing.assert_allclose(named, [[0.75, 0.25, 1]], rtol=1e-6)
    np.testing.assert_allclose(other, [[0, 1, 0]])
    np.testing.assert_allclose(agreement, [[0.625, 0.25, 1]], rtol=1e-6)


def test_labels_do_not_say_how_often_annotators_agree():
    truth = LabelDraws(np.array([[0, 1], [0, 2]]), 3)
    with pytest.raises(UnsupportedRequest, match="errors"):
        truth.blocks(Shares())
    with pytest.raises(UnsupportedRequest, match="errors"):
        list(truth.blocks(Agreement()))


def test_plausibilities_of_a_million_classes_need_little_memory():
    entries = Entries.of(np.array([0, 1, 1]), np.array([999_999, 3, 4]), 3, 10**6)
    truth = DirichletTruth(entries, np.ones(3), 1e-3, key=jax.random.key(0), num_draws=100)
    tracemalloc.start()
    agreement = values(truth.blocks(Agreement()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8  # an array of draws × items × classes would be 1.2 GB
    expected, *_ = dirichlet_moments(entries, truth.concentration, 1e-3)
    error = agreement.std(1) / np.sqrt(truth.num_draws)
    assert np.all(np.abs(agreement.mean(1) - expected) < 5 * error + 1e-6 * expected)


# ---- labels with known probabilities ----


def test_label_probabilities_are_drawn_as_they_are():
    entries = Entries.of(np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 3, 2, 0, 1]), 3, 4)
    probability = np.array([0.2, 0.0, 0.6, 1.0, 3.0, 1.0])
    truth = LabelProbabilities(entries, probability, key=jax.random.key(0), num_draws=20_000)
    expected = np.array([[0.25, 0, 0, 0.75], [0, 0, 1, 0], [0.75, 0.25, 0, 0]])
    for _ in range(2):
        (block,) = list(truth.blocks(Ranked(1)))
        labels = block.real[:, :, 0]
        share = (labels[:, :, None] == np.arange(4)).mean(1)
        assert (np.abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / 20_000)).all()
    np.testing.assert_allclose(truth.exact(Ranked(1)).probability, [0.25, 0, 0.75, 1, 0.75, 0.25])
    table = leading(truth)
    assert table["label"].tolist() == [3, 2, 0]
    np.testing.assert_allclose(table["certainty"], [0.75, 1, 0.75])
    with pytest.raises(UnsupportedRequest, match="one label per item"):
        next(iter(truth.blocks(Ranked(2))))


def test_label_probabilities_in_many_blocks_are_those_of_one(monkeypatch):
    probability = np.random.default_rng(0).dirichlet(np.ones(3), 500)
    truth = LabelProbabilities.dense(probability, key=jax.random.key(1), num_draws=400)
    monkeypatch.setattr("consilience.models.truth.entries.block_numbers", lambda: 1 << 12)
    labels = np.concatenate([block.real for block in truth.labels()])
    share = (labels[:, :, None] == np.arange(3)).mean(1)
    z = (share - probability) / np.sqrt(probability * (1 - probability) / 400)
    assert np.abs(z).max() < 5.5
    np.testing.assert_allclose(cs.certainty(truth, exact=True).items, probability.max(1))


def test_a_crowd_says_how_often_annotators_agree():
    by_class = np.array([[0.9, 0.6], [0.8, 0.5]])
    label = np.array([[0, 1, 1], [1, 1, 0]])
    made = []
    crowd = Crowd(None, lambda: made.append(1) or by_class, lambda random, draw, label: label)
    truth = LabelDraws(label, 2, crowd)
    assert truth.answers(Agreement())
    assert not made  # until somebody asks
    (block,) = list(truth.blocks(Agreement()))
    np.testing.assert_allclose(block.values[:3], [[0.9, 0.5], [0.6, 0.5], [0.6, 0.8]])
    list(truth.blocks(Agreement()))
    assert len(made) == 1


@pytest.mark.parametrize(("num_classes", "dtype"), [(1, np.int8), (128, np.int8), (129, np.int16), (40_000, np.int32)])
def test_stored_labels_take_as_few_bytes_as_their_codes_need(num_classes, dtype):
    label = np.array([[0, num_classes - 1], [num_classes - 1, 0]])
    truth = LabelDraws(label, num_classes)
    assert truth.draws.dtype == dtype
    np.testing.assert_array_equal(truth.draws, label)
    (block,) = truth.labels()
    assert block.values.dtype == np.int32


@pytest.mark.parametrize("numbers", [1, 1 << 21, 1 << 22])
def test_probabilities_are_normalised_over_the_candidates_of_an_item(numbers, monkeypatch):
    monkeypatch.setattr(labels, "_NUMBERS", numbers)  # of the largest of these an entry at a time
    entries = Entries.of(np.array([0, 0, 1, 3, 3, 3]), np.array([0, 2, 1, 0, 1, 2]), 4, 3)
    weight = np.array([1.0, 3.0, 5.0, 2.0, 2.0, 4.0])
    truth = LabelProbabilities(entries, weight, key=jax.random.key(0), num_draws=2)
    np.testing.assert_allclose(truth.probability, [0.25, 0.75, 1.0, 0.25, 0.25, 0.5])
    assert weight[0] == 1.0  # a copy was normalised
