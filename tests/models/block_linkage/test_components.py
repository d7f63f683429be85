"""Components are those of the graph, and those that are too large are cut where their pairs are weakest."""

import numpy as np
import pytest

from consilience.models.block_linkage.components import components
from consilience.models.block_linkage.join import CandidatePairs


def as_pairs(first, second, log_odds):
    nothing = np.zeros(len(first), np.uint64)
    ends = np.array(first, np.int32), np.array(second, np.int32)
    return CandidatePairs(*ends, nothing, nothing, np.array(log_odds, float))


def random_pairs(num_records, num_pairs, seed):
    rng = np.random.default_rng(seed)
    ends = np.unique(np.sort(rng.integers(num_records, size=(num_pairs, 2)), 1), axis=0)
    ends = ends[ends[:, 0] < ends[:, 1]]
    return as_pairs(*ends.T, rng.normal(0, 4, len(ends)))


def connected(edges):
    """Return the sets of records that edges connect, by walking from one to the next."""
    neighbours = {}
    for first, second, _ in edges:
        neighbours.setdefault(first, set()).add(second)
        neighbours.setdefault(second, set()).add(first)
    found = []
    while neighbours:
        group, waiting = set(), [next(iter(neighbours))]
        while waiting:
            record = waiting.pop()
            if record not in group:
                group.add(record)
                waiting.extend(neighbours.pop(record))
        found.append(tuple(sorted(group)))
    return found


def cut_by_all_pairs(edges, largest):
    """Drop pairs below 0.5, 1, 1.5, ... in every group that is too large, whatever the group."""
    found = []
    for group in connected(edges):
        inside = [edge for edge in edges if edge[0] in group]
        steps = {np.floor(2 * log_odds) for _, _, log_odds in inside}
        if len(group) <= largest:
            found.append(group)
        elif len(steps) > 1:
            found += cut_by_all_pairs([edge for edge in inside if np.floor(2 * edge[2]) > min(steps)], largest)
        else:
            pieces = [group[begin : begin + largest] for begin in range(0, len(group), largest)]
            found += [piece for piece in pieces if len(piece) > 1]
    return found


def edges_of(pairs):
    return list(zip(pairs.first.tolist(), pairs.second.tolist(), pairs.log_odds.tolist(), strict=True))


def groups_of(found):
    return [tuple(row) for members in found.members for row in members.tolist()]


@pytest.mark.parametrize("seed", range(3))
def test_components_of_a_sparse_graph(seed):
    pairs = random_pairs(2000, 500, seed)
    expected = connected(edges_of(pairs))
    found = components(pairs, 2000, largest=max(map(len, expected)))
    assert sorted(groups_of(found)) == sorted(expected)
    assert found.cut == (0, 0, max(map(len, expected)), 0, 0)
    for number, members in enumerate(found.members, start=2):
        assert members.dtype == np.int32
        assert members.shape[1] == number
        assert list(members[:, 0]) == sorted(members[:, 0])


@pytest.mark.parametrize(("num_pairs", "largest"), [(400, 2), (400, 4), (800, 3), (800, 6), (3000, 5)])
def test_the_cut_on_the_spanning_forest_is_that_on_all_pairs(num_pairs, largest):
    pairs = random_pairs(600, num_pairs, seed=num_pairs)
    edges = edges_of(pairs)
    found = components(pairs, 600, largest=largest)
    groups = groups_of(found)
    assert sorted(groups) == sorted(cut_by_all_pairs(edges, largest))
    too_large = [group for group in connected(edges) if len(group) > largest]
    place = {record: group for group in groups for record in group}
    dropped = [edge[2] for edge in edges if place.get(edge[0], edge[0]) != place.get(edge[1], edge[1])]
    assert len(too_large)
    assert found.cut.components == len(too_large)
    assert found.cut.records == sum(map(len, too_large))
    assert found.cut.largest == max(map(len, too_large))
    assert found.cut.pairs == len(dropped)
    assert found.cut.weight == pytest.approx(np.sum(1 / (1 + np.exp(-np.array(dropped)))), rel=1e-9)


def test_a_weak_pair_between_two_groups_goes_first():
    pairs = as_pairs([0, 0, 1, 2, 3, 3, 4], [1, 2, 2, 3, 4, 5, 5], [5, 5, 4, -1, 6, 6, 2])
    found = components(pairs, 7, largest=3)
    assert groups_of(found) == [(0, 1, 2), (3, 4, 5)]
    assert found.cut == (1, 6, 6, 1, pytest.approx(1 / (1 + np.e)))


def test_equally_strong_pairs_are_cut_into_pieces_and_not_into_single_records():
    first, second = np.triu_indices(8, 1)
    weak = as_pairs([*first, 7], [*second, 8], [12.3] * 28 + [0.0])
    found = components(weak, 9, largest=6)
    assert groups_of(found) == [(6, 7), (0, 1, 2, 3, 4, 5)]
    assert found.cut.pairs == 28 - 15 - 1 + 1


def test_the_names_of_records_in_between_do_not_matter():
    pairs = random_pairs(300, 500, seed=5)
    spread = pairs._replace(first=pairs.first * 7 + 3, second=pairs.second * 7 + 3)
    near, far = components(pairs, 300, largest=5), components(spread, 2200, largest=5)
    assert near.cut == far.cut
    for one, other in zip(near.members, far.members, strict=True):
        np.testing.assert_array_equal(one * 7 + 3, other)


def test_without_pairs_every_record_is_alone():
    found = components(as_pairs([], [], []), 5, largest=4)
    assert [members.shape for members in found.members] == [(0, 2), (0, 3), (0, 4)]
    assert found.cut == (0, 0, 1, 0, 0)
