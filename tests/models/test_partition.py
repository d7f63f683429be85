"""Draws of partitions: names of clusters, pairs, sets and their doubt, by hand."""

import numpy as np
import pytest

from consilience.models.partition import DrawnPartitions, first_members, pairs_together

DRAWS = np.array([[7, 7, 2, 2], [5, 5, 5, 1], [3, 3, 0, 0], [1, 2, 3, 3]])


def test_clusters_are_named_by_their_first_record():
    assert first_members(np.array([4, 9, 4, 0])).tolist() == [0, 1, 0, 3]
    expected = [[0, 0, 2, 2], [0, 0, 0, 3], [0, 0, 2, 2], [0, 1, 2, 2]]
    assert DrawnPartitions(DRAWS).clusters().tolist() == expected
    assert DrawnPartitions(DRAWS).clusters(slice(1, 3)).tolist() == expected[1:3]


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
