"""Variances of the parts of ratings: a published example, dense matrices, and intervals that hold."""

import math

import numpy as np
import pytest

import consilience as cs
from consilience.evaluation.variance_components import ratings_needed, reliability_of_mean, variance_components

SHROUT_FLEISS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
"""Their Table 2: six targets by four judges."""


def ratings_of(table):
    item, who = np.indices(table.shape).reshape(2, -1)
    return cs.Ratings.from_codes(item, who, table.ravel().astype(float))


def drawn(random, offset=5.0, size=(40, 5), each=4):
    """Return ratings of items by some of the annotators each, with standard deviations of 8, `offset` and 7."""
    own, mean = offset * random.normal(size=size[1]), 8 * random.normal(size=size[0])
    who = np.concatenate([random.choice(size[1], each, replace=False) for _ in range(size[0])])
    item = np.repeat(np.arange(size[0]), each)
    rating = 50 + mean[item] + own[who] + 7 * random.normal(size=len(item))
    return cs.Ratings.from_codes(item, who, rating, num_items=size[0], num_annotators=size[1])


def test_of_complete_ratings_they_are_the_published_correlations():
    found = variance_components(ratings_of(SHROUT_FLEISS))
    single = [found.single(offsets=one) for one in (True, False)]
    assert [round(value, 2) for value, *_ in single] == [0.29, 0.71]
    # The mean squares of their Table 3: 11.24 of targets, 97.49 / 3 of judges, 1.02 of the rest.
    np.testing.assert_allclose(found.variance, [(11.24 - 1.02) / 4, (32.49 - 1.02) / 6, 1.02], atol=5e-3)
    np.testing.assert_allclose(found.shares[0, 0], single[0][0])
    # Beside the intervals of 95 % by the formulas of McGraw & Wong (1996), that of ICC(2,1) by Satterthwaite's.
    np.testing.assert_allclose([ends for _, *ends in single], [[0.019, 0.761], [0.342, 0.946]], atol=0.015)


def test_of_others_they_are_those_of_dense_matrices():
    random = np.random.default_rng(1)
    rows = [(item, who) for item in range(9) for who in range(4) if random.random() < 0.6]
    rows += [(9, 4), (10, 4), (10, 5), (9, 5), (9, 5)]  # whom nobody connects with the others, one pair twice
    item, who = np.array(rows).T
    rating = random.normal(size=len(item)) + 2.0 * item + 3.0 * who
    effects = [(code[:, None] == np.unique(code)).astype(float) for code in (item, who)]

    def left(*parts):
        design = np.concatenate(parts, axis=1)
        return np.eye(len(item)) - design @ np.linalg.pinv(design), np.linalg.matrix_rank(design)

    both, rank = left(*effects)
    rest = rating @ both @ rating / (len(item) - rank)
    expected = []
    for own, other in (effects, effects[::-1]):
        without, fewer = left(other)
        squares = rating @ without @ rating - rating @ both @ rating
        expected.append((squares - (rank - fewer) * rest) / np.trace(own.T @ without @ own))
    found = variance_components(cs.Ratings.from_codes(item, who, rating)).variance
    np.testing.assert_allclose(found, [*expected, rest])


def test_they_are_of_ratings_with_their_offsets():
    data = drawn(np.random.default_rng(2))
    np.testing.assert_allclose(
        variance_components(data.without_offsets()).variance, variance_components(data).variance, rtol=1e-6
    )  # fmt: skip


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_they_are_right_on_average_and_their_intervals_hold(offset):
    found = [variance_components(drawn(np.random.default_rng(1_000 + seed), offset)) for seed in range(120)]
    true = np.array([64.0, offset**2, 49.0])
    average = np.mean([one.variance for one in found], axis=0)
    np.testing.assert_allclose(average[[0, 2]], true[[0, 2]], rtol=0.08)
    assert abs(average[1] - true[1]) < 5
    shares = np.array([one.shares for one in found])
    held = ((shares[..., 1] <= true / true.sum()) & (true / true.sum() <= shares[..., 2])).mean(axis=0)
    assert (held > 0.89).all()
    single = np.array([one.single(offsets=False) for one in found])
    assert 0.89 < ((single[:, 1] <= 64 / 113) & (64 / 113 <= single[:, 2])).mean()


@pytest.mark.parametrize(
    ("item", "who"),
    [
        ([0, 0, 1, 1], [0, 1, 2, 3]),  # of each annotator one rating
        ([0, 1, 2], [0, 0, 0]),  # a single annotator
        ([0, 0, 0], [0, 1, 2]),  # a single item
        ([0, 0, 1], [0, 1, 1]),  # nothing left to tell errors by
    ],
)
def test_what_cannot_be_told_apart_has_none(item, who):
    assert variance_components(cs.Ratings.from_codes(item, who, np.arange(len(item)) ** 2.0)) is None


def test_equal_ratings_have_none():
    assert variance_components(ratings_of(np.ones((4, 3)))) is None


@pytest.mark.parametrize(
    ("single", "wanted", "needed"),
    [(0.5, 0.8, 4), (0.29, 0.8, 10), (0.9, 0.8, 1), (0.25, 0.9, 27), (0.0, 0.8, math.inf)],
)
def test_so_many_ratings_and_no_fewer_make_a_mean_as_reliable(single, wanted, needed):
    assert ratings_needed(single, wanted) == needed
    if math.isfinite(needed):
        assert reliability_of_mean(single, needed) >= wanted - 1e-12
        assert needed == 1 or reliability_of_mean(single, needed - 1) < wanted
