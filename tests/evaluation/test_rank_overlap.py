"""Average overlap of partial rankings: worked values, the dense soft permutation as reference, means over pairs."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import UnsupportedRequest
from consilience.evaluation import rank_overlap as module
from consilience.evaluation.rank_overlap import annotator_overlap, average_overlap, mean_average_overlap
from tests.evaluation.rankings import dermatology, make, padded, rankings


def compute(function, first, second, num_classes, at, width=6):
    with jax.enable_x64():
        return float(function(padded(first, width), padded(second, width), num_classes, at))


def soft_permutation(ranking, num_classes):
    """Return the dense matrix (position, class)."""
    listed = {label for block in ranking for label in block}
    rest = [label for label in range(num_classes) if label not in listed]
    rows = []
    for block in [*ranking, *([rest] if rest else [])]:
        rows += [[(label in block) / len(block) for label in range(num_classes)]] * len(block)
    return np.array(rows)


def dense(first, second, num_classes, at):
    one, two = (np.cumsum(soft_permutation(ranking, num_classes), axis=0) for ranking in (first, second))
    return np.mean([one[k] @ two[k] / (k + 1) for k in range(at)])


THREE_BLOCKS, FOUR_BLOCKS = [[3], [2, 0], [1]], [[3], [2], [0], [1]]
ONE_ZERO, ONE_ONE = [[0]], [[1]]
TIED_FIRST, UNTIED = [[0, 1], [2]], [[1], [3]]

WORKED = [
    (average_overlap, THREE_BLOCKS, THREE_BLOCKS, 4, 4, 15 / 16),
    (average_overlap, THREE_BLOCKS, FOUR_BLOCKS, 4, 2, 7 / 8),
    (mean_average_overlap, THREE_BLOCKS, FOUR_BLOCKS, 4, 2, (7 / 8) ** 0.5),
    (average_overlap, THREE_BLOCKS, FOUR_BLOCKS, 4, 4, 15 / 16),
    (mean_average_overlap, THREE_BLOCKS, FOUR_BLOCKS, 4, 4, (15 / 16) ** 0.5),
    (average_overlap, ONE_ZERO, ONE_ONE, 4, 1, 0),
    (average_overlap, ONE_ZERO, ONE_ONE, 4, 3, 32 / 81),
    (average_overlap, ONE_ZERO, ONE_ZERO, 4, 3, 22 / 27),
    (mean_average_overlap, ONE_ZERO, ONE_ONE, 4, 3, 16 / 33),
    (average_overlap, TIED_FIRST, UNTIED, 5, 3, 14 / 27),
    (average_overlap, TIED_FIRST, TIED_FIRST, 5, 3, 5 / 6),
    (average_overlap, UNTIED, UNTIED, 5, 3, 25 / 27),
    (mean_average_overlap, TIED_FIRST, UNTIED, 5, 3, (392 / 1125) ** 0.5),
    (average_overlap, [[0], [1], [2]], [[1], [2], [0]], 3, 2, 1 / 4),
]


@pytest.mark.parametrize(("function", "first", "second", "num_classes", "at", "expected"), WORKED)
def test_worked_overlaps(function, first, second, num_classes, at, expected):
    assert compute(function, first, second, num_classes, at) == pytest.approx(expected, abs=1e-15)


@given(first=rankings(6), second=rankings(6), at=st.sampled_from([1, 3, 6]))
@settings(max_examples=60, deadline=None)
def test_sparse_sum_is_the_dense_one(first, second, at):
    function = jax.jit(average_overlap, static_argnums=3)
    assert compute(function, first, second, 6, at) == pytest.approx(dense(first, second, 6, at), abs=1e-14)


@given(first=rankings(6), second=rankings(6), at=st.sampled_from([1, 3, 6]))
@settings(max_examples=60, deadline=None)
def test_mean_overlap_is_symmetric_in_the_unit_interval_and_one_on_itself(first, second, at):
    function = jax.jit(mean_average_overlap, static_argnums=3)
    value = compute(function, first, second, 6, at)
    assert 0 <= value <= 1
    assert value == pytest.approx(compute(function, second, first, 6, at), abs=1e-14)
    assert compute(function, first, first, 6, at) == pytest.approx(1, abs=1e-14)


@given(order=st.permutations(range(5)), other=st.permutations(range(5)))
@settings(max_examples=30, deadline=None)
def test_full_rankings_reach_one_only_when_equal(order, other):
    function = jax.jit(average_overlap, static_argnums=3)
    value = compute(function, [[c] for c in order], [[c] for c in other], 5, 5)
    assert (value > 1 - 1e-12) == (order == other)


def test_a_million_classes_cost_nothing_and_lose_nothing():
    """All but four of a million classes are unlisted: closed form, in float32 too."""
    first, second = [[0], [999_999, 5]], [[5], [7]]
    num_classes, at = 1_000_000, 4
    # Weights of unlisted classes after 3 and 4 positions; both list class 5, the first 0 and 999999, the second 7.
    three_b, four_a, four_b = 1 / (num_classes - 2), 1 / (num_classes - 3), 2 / (num_classes - 2)
    fourth = 1 + 2 * four_b + four_a + (num_classes - 4) * four_a * four_b
    expected = np.mean([0, (1 / 2) / 2, (1 + 2 * three_b) / 3, fourth / 4])
    assert compute(average_overlap, first, second, num_classes, at) == pytest.approx(expected, rel=1e-12)
    single = float(average_overlap(padded(first, 3), padded(second, 3), num_classes, at))
    assert single == pytest.approx(expected, rel=1e-6)


def mean_over_pairs(reports, num_classes, at):
    pairs = list(itertools.combinations(reports, 2))
    if not pairs:
        return np.nan
    return np.mean(
        [
            dense(a, b, num_classes, at) / (dense(a, a, num_classes, at) * dense(b, b, num_classes, at)) ** 0.5
            for a, b in pairs
        ]
    )


ITEMS = [
    [[[0, 1], [2]], [[1], [3]], [[4]], []],
    [[[2]]],
    [],
    [[], []],
    [[[3], [2, 0], [1]], [[3], [2], [0], [1]]],
]


@pytest.mark.parametrize("chunk", [1, 4, 5, 100])
def test_items_are_means_over_pairs_whatever_the_chunks(chunk, monkeypatch):
    monkeypatch.setattr(module, "_PAIRS_PER_CHUNK", chunk)
    values = annotator_overlap(make(ITEMS, 5), at=3).items
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, [mean_over_pairs(reports, 5, 3) for reports in ITEMS], rtol=1e-12)
    assert np.isnan(values).tolist() == [False, True, True, False, False]


def test_reports_that_rank_nothing_agree_fully():
    np.testing.assert_array_equal(annotator_overlap(make([[[], []]], 5), at=2).items, [1])


def test_second_data_set_of_other_lengths_compiles_nothing():
    annotator_overlap(make(ITEMS, 5), at=2)
    compiled = module._mean_average_overlaps._cache_size()
    annotator_overlap(make([*ITEMS, *ITEMS, [[[0, 3, 2, 1]], [[2]]]], 5), at=2)
    assert module._mean_average_overlaps._cache_size() == compiled


@pytest.mark.parametrize("at", [0, 6])
def test_position_beyond_the_classes_is_refused(at):
    with pytest.raises(UnsupportedRequest, match="pass `at` from 1 to 5"):
        annotator_overlap(make(ITEMS, 5), at=at)


@pytest.mark.public_data
def test_average_overlap_of_dermatologists():
    nested = dermatology()
    values = annotator_overlap(make(nested, 419)).items
    assert np.isnan(values).sum() == 25
    np.testing.assert_array_equal(np.isnan(values), [len(case) == 1 for case in nested])
    some = [1026, 1057, 357]
    np.testing.assert_allclose(values[some], [mean_over_pairs(nested[case], 419, 3) for case in some], rtol=1e-12)
    assert np.nanmean(values) == pytest.approx(0.509646, abs=1e-6)
