"""Parts are those of Kruskal's algorithm with refused merges, and so those of merging mutual best pairs in rounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.models.block_linkage.join import CandidatePairs
from consilience.models.block_linkage.parts import parts_of


def as_pairs(first, second, log_odds):
    ends = np.array(first, np.int32), np.array(second, np.int32)
    return CandidatePairs(*ends, np.array(log_odds, float))


@st.composite
def graphs(draw):
    """Draw the number of records and pairs of them, many of which tie."""
    number = draw(st.integers(1, 14))
    every = [(one, other) for one in range(number) for other in range(one + 1, number)]
    edges = sorted(draw(st.sets(st.sampled_from(every)))) if every else []
    return number, [(*edge, draw(st.sampled_from([-2.0, -0.5, 0.0, 0.5, 3.0]))) for edge in edges]


def ranked(edges):
    return sorted(edges, key=lambda edge: (-edge[2], edge[0], edge[1]))


def by_kruskal(number, edges, largest, size_limit):
    part = [{record} for record in range(number)]
    for first, second, log_odds in ranked(edges):
        union = part[first] | part[second]
        if part[first] is not part[second] and len(union) <= (size_limit if log_odds > 0 else largest):
            for record in union:
                part[record] = union
    return {tuple(sorted(own)) for own in part if len(own) > 1}


def by_mutual_best(number, edges, largest, size_limit):
    """Merge, in rounds, the parts of every pair that is the first for both."""
    label = list(range(number))
    while True:
        size = np.bincount(label, minlength=number)
        left = [
            (label[first], label[second])
            for first, second, log_odds in ranked(edges)
            if label[first] != label[second]
            and size[label[first]] + size[label[second]] <= (size_limit if log_odds > 0 else largest)
        ]
        if not left:
            return {tuple(np.flatnonzero(np.array(label) == own).tolist()) for own in label if size[own] > 1}
        best = {}
        for place, ends in enumerate(left):
            for end in ends:
                best.setdefault(end, place)
        merged = {max(ends): min(ends) for place, ends in enumerate(left) if all(best[end] == place for end in ends)}
        label = [merged.get(own, own) for own in label]


@given(graphs(), st.integers(2, 7), st.integers(0, 7))
def test_kruskal_and_mutual_best_pairs_make_the_same_parts(graph, largest, more):
    number, edges = graph
    found = parts_of(as_pairs(*zip(*edges, strict=True)) if edges else as_pairs([], [], []), number,
                     largest=largest, size_limit=largest + more)  # fmt: skip
    small = [tuple(row) for members in found.members for row in members.tolist()]
    large = [tuple(members.tolist()) for members in found.large]
    expected = by_kruskal(number, edges, largest, largest + more)
    assert sorted(small + large) == sorted(expected)
    assert expected == by_mutual_best(number, edges, largest, largest + more)
    assert [members.shape[1] for members in found.members] == list(range(2, largest + 1))
    assert all(len(members) > largest for members in large)
    for members in found.members:
        assert members.dtype == np.int32
        assert list(members[:, 0]) == sorted(members[:, 0])
    place = {record: own for own in expected for record in own}
    dropped = [edge for edge in edges if place.get(edge[0], edge[0]) != place.get(edge[1], edge[1])]
    divided = {own for own in by_kruskal(number, edges, number, number) if any(edge[0] in own for edge in dropped)}
    whole = by_kruskal(number, edges, number, number)
    assert found.cut.components == len(divided)
    assert found.cut.records == sum(map(len, divided))
    assert found.cut.largest == max(map(len, whole), default=1)
    assert found.cut.pairs == len(dropped)
    assert found.cut.weight == pytest.approx(np.sum(1 / (1 + np.exp(-np.array([edge[2] for edge in dropped])))))


def test_a_weak_pair_between_two_groups_is_refused():
    pairs = as_pairs([0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5], [5, 5, 4, -1, 6, 6, 2])
    found = parts_of(pairs, 7, largest=3, size_limit=6)
    assert [members.tolist() for members in found.members] == [[], [[0, 1, 2], [3, 4, 5]]]
    assert found.cut == (1, 6, 6, 1, pytest.approx(1 / (1 + np.e)))


def test_equally_strong_pairs_are_cut_into_full_parts_and_not_into_single_records():
    first, second = np.triu_indices(8, 1)
    found = parts_of(as_pairs(first, second, np.full(28, 12.3)), 9, largest=6, size_limit=6)
    assert [members.tolist() for members in found.members] == [[[6, 7]], [], [], [], [[0, 1, 2, 3, 4, 5]]]
    assert found.cut.pairs == 28 - 15 - 1
    whole = parts_of(as_pairs(first, second, np.full(28, 12.3)), 9, largest=6, size_limit=8)
    assert [members.tolist() for members in whole.large] == [list(range(8))]
    assert whole.cut == (0, 0, 8, 0, 0)


def test_without_pairs_every_record_is_alone():
    found = parts_of(as_pairs([], [], []), 5, largest=4, size_limit=9)
    assert [members.shape for members in found.members] == [(0, 2), (0, 3), (0, 4)]
    assert found.large == ()
    assert found.cut == (0, 0, 1, 0, 0)
