"""Draws of partitions: names of clusters, pairs, sets and their doubt, by hand."""

import collections
import itertools

import numpy as np
import pytest

from consilience.models.truth import partitions as partition
from consilience.models.truth.partitions import DrawnPartitions, first_in_rows, first_members, pairs_together

DRAWS = np.array([[7, 7, 2, 2], [5, 5, 5, 1], [3, 3, 0, 0], [1, 2, 3, 3]])


def test_draws_name_clusters_by_their_first_record():
    assert first_members(np.array([4, 9, 4, 0])).tolist() == [0, 1, 0, 3]
    assert first_members(np.array([-4, 2**40, -4, 0])).tolist() == [0, 1, 0, 3]
    assert first_members(np.zeros(0, np.int32)).tolist() == []
    expected = [[0, 0, 2, 2], [0, 0, 0, 3], [0, 0, 2, 2], [0, 1, 2, 2]]
    assert DrawnPartitions(DRAWS).clusters().tolist() == expected
    assert DrawnPartitions(DRAWS).clusters(slice(1, 3)).tolist() == expected[1:3]


def test_first_in_rows():
    assert first_in_rows(np.array([[2, 2, 0, 1], [1, 0, 1, 0]], np.int8), 3).tolist() == [[0, 0, 2, 3], [0, 1, 0, 1]]


def test_pairs():
    assert pairs_together(np.array([4, 9, 4, 4])).tolist() == [2, 3, 11]
    pairs = DrawnPartitions(DRAWS).pairs()
    found = {(int(a), int(b)): float(p) for a, b, p in zip(*pairs, strict=True)}
    assert found == {(0, 1): 0.75, (0, 2): 0.25, (1, 2): 0.25, (2, 3): 0.75}


def test_the_estimate_is_the_draw_that_agrees_best():
    assert DrawnPartitions(DRAWS).estimate().tolist() == [0, 0, 2, 2]


def test_sets_and_their_entropy():
    truth = DrawnPartitions(DRAWS)
    assert truth.cluster_probability(np.array([8, 8, 2, 2])).tolist() == [0.5, 0.5, 0.75, 0.75]
    half, quarter = 0.5 * np.log(0.5), 0.25 * np.log(0.25)
    # Record 0 is with 1 twice, with 1 and 2 once, and alone once; record 3 is with 2 three times.
    expected = [-half - 2 * quarter, -half - 2 * quarter, -0.75 * np.log(0.75) - quarter]
    assert truth.entropy()[[0, 1, 3]] == pytest.approx(expected)


def test_numbers_of_clusters():
    truth = DrawnPartitions(DRAWS)
    assert truth.num_clusters().tolist() == [2, 2, 2, 3]
    assert truth.size_counts().tolist() == [0.75, 1.25, 0.25]


def test_most_probable_matching_sets_of_draws():
    truth = DrawnPartitions(DRAWS)
    found = truth.matching_sets()
    sets = [found.member[start:stop].tolist() for start, stop in itertools.pairwise(found.first)]
    assert sets == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert found.probability.tolist() == [0.5, 0.5, 0.75, 0.75]
    assert truth.shared_matching_sets().tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_matching_sets_by_counting(rows, monkeypatch):
    """Of random partitions, whatever the size of the blocks of draws."""
    clusters = np.random.default_rng(4).integers(0, 3, (40, 5))
    monkeypatch.setattr(partition, "_MOST_ROWS", rows * clusters.shape[1])
    truth = DrawnPartitions(clusters)
    found = truth.matching_sets()
    for record in range(5):
        counted = collections.Counter(tuple(np.flatnonzero(row == row[record]).tolist()) for row in clusters)
        own = tuple(found.member[found.first[record] : found.first[record + 1]].tolist())
        assert counted[own] == max(counted.values()) == found.probability[record] * 40
    sets = [tuple(found.member[start:stop]) for start, stop in itertools.pairwise(found.first)]
    assert truth.shared_matching_sets().tolist() == [sets.index(own) for own in sets]


def test_whether_a_set_is_exactly_a_cluster():
    first, member = np.array([0, 2, 5, 6, 8]), np.array([1, 0, 2, 1, 0, 3, 2, 3])
    assert DrawnPartitions(DRAWS).set_probability(first, member).tolist() == [0.5, 0.25, 0.25, 0.75]
