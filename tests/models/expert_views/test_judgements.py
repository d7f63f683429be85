"""The layout of judgements and the colouring of their graph, against brute force."""

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.models.expert_views import MODEL
from consilience.models.expert_views.judgements import judgements, standard_of, standardised
from consilience.models.expert_views.problem import coloured, prepare
from consilience.models.expert_views.simulation import constraints_of


def random_constraints(seed=0, items=15, silent=3, experts=4, number=80):
    """Return judgements with many repeats and contradictions; the last items occur in none."""
    random = np.random.default_rng(seed)
    a = random.integers(0, items - 1, number)
    b = random.integers(a + 1, items)
    expert, together = random.integers(0, experts, number), random.integers(0, 2, number)
    return constraints_of(expert, a, b, together, random.normal(5, 2, (items + silent, 3)), experts)


def test_answers_are_counted_by_expert_and_pair():
    data = random_constraints()
    found, _ = judgements(data)
    ends = np.stack([found.item[found.first], found.item[found.second]], axis=1)
    counted = {
        (expert, *ends[pair]): (together, apart)
        for expert, pair, together, apart in zip(
            found.answer_expert, found.answer_pair, *found.said.T[::-1], strict=True
        )
    }
    rows = collections.Counter(zip(data.expert, data.item_a, data.item_b, data.together, strict=True))
    expected = {key[:3]: (rows[(*key[:3], 1)], rows[(*key[:3], 0)]) for key in rows}
    assert max(rows.values()) > 1
    assert counted == expected
    assert len({tuple(pair) for pair in ends}) == len(ends)
    assert (found.first < found.second).all()
    assert (np.diff(found.answer_expert) >= 0).all()
    np.testing.assert_array_equal(found.number[:, 1], np.bincount(data.expert, data.together))
    np.testing.assert_array_equal(found.number[:, 0], np.bincount(data.expert, 1 - data.together))


def test_grades_by_order_are_kinds_of_answers():
    data, random = random_constraints(), np.random.default_rng(1)
    data = data.replace(
        together=random.integers(0, 4, 80), order=random.integers(0, 2, 80), num_grades=3, num_blanks=1
    )
    found, _ = judgements(data)
    assert (found.num_experts, found.num_orders, found.num_answers) == (4, 2, 4)
    for expert in range(4):
        for kind in range(8):
            own = (data.expert == expert) & (4 * data.order + data.together == kind)
            assert found.number[expert, kind] == own.sum() == found.said[found.answer_expert == expert, kind].sum()


def test_items_that_nobody_spoke_about_are_left_out_but_scale_the_features():
    data = random_constraints()
    found, standard = judgements(data)
    np.testing.assert_array_equal(found.item, np.unique([data.item_a, data.item_b]))
    assert len(found.item) < data.num_items
    everybody = (data.feature - data.feature.mean(0)) / data.feature.std(0)
    np.testing.assert_allclose(found.feature, np.column_stack([everybody, np.ones(data.num_items)])[found.item])
    np.testing.assert_allclose(standard.mean, data.feature.mean(0))


def test_features_as_they_are_and_constant_ones():
    feature = np.array([[0.1, 1.0], [0.1, 5.0], [0.1, 3.0]])
    standard = standard_of(feature)
    as_they_are = standard_of(feature, False)
    np.testing.assert_array_equal(standardised(feature, as_they_are)[:, 1], feature[:, 1])
    for found in (standard, as_they_are):
        assert found.scale[0] == 0
        # Of new items too, whatever value they have: nothing was learned of it.
        np.testing.assert_array_equal(standardised(feature + [[0.0, 0.0], [1.0, 0.0], [9.0, 0.0]], found)[:, 0], 0)
    assert standardised(np.empty((3, 0)), standard_of(np.empty((3, 0)))).tolist() == [[1.0]] * 3


def colours_of(first, second, number):
    """Return the colours of a graph, from its pairs."""
    end, other = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.argsort(end)
    return coloured(np.searchsorted(end[order], np.arange(number + 1)), other[order])


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), number=st.integers(2, 40), pairs=st.integers(1, 200))
def test_colouring_is_greedy_and_no_pair_has_one_colour(seed, number, pairs):
    random = np.random.default_rng(seed)
    first = random.integers(0, number - 1, pairs)
    second = random.integers(first + 1, number)
    first, second = np.unique(np.stack([first, second]), axis=1)
    colour = colours_of(first, second, number)
    assert (colour[first] != colour[second]).all()
    for node in range(number):
        of_neighbours = {*colour[second[first == node]], *colour[first[second == node]]}
        assert of_neighbours >= set(range(colour[node]))


@pytest.mark.parametrize(("shape", "most"), [("clique", 30), ("star", 2), ("chain", 3)])
def test_number_of_colours(shape, most):
    first, second = {
        "clique": np.triu_indices(30, 1), "star": (np.zeros(29, int), np.arange(1, 30)),
        "chain": (np.arange(29), np.arange(1, 30)),
    }[shape]  # fmt: skip
    assert colours_of(first, second, 30).max() + 1 <= most


def test_lists_of_neighbours_hold_every_pair_from_both_ends():
    found, _ = judgements(random_constraints(number=200))
    end = np.repeat(np.arange(len(found.item)), np.diff(found.begin))
    edges = zip(end, found.neighbour, found.neighbour_pair, strict=True)
    pairs = [*zip(found.first, found.second, strict=True)]
    expected = [(a, b, p) for p, (a, b) in enumerate(pairs)] + [(b, a, p) for p, (a, b) in enumerate(pairs)]
    assert sorted(edges) == sorted(expected)


@pytest.mark.parametrize("number", [3, 80, 3000])
def test_schedule_and_rows_hold_everything_once(number):
    data = random_constraints(items=60, number=number)
    found, _ = judgements(data)
    problem = prepare(MODEL.resolve(data, None, {"clusters": 2, "views": 2}))
    # What pads has the numbers after those of the padded items and pairs.
    num_items, num_pairs = len(problem.feature), len(problem.first)

    schedule, edges, done = problem.schedule, [], []
    for node, other, pair, complete in zip(*schedule, strict=True):
        real = pair < num_pairs
        owner = np.broadcast_to(node[:, None], pair.shape)
        # What an item hears of later is too late: it must be complete after the last of its rows.
        assert not {*owner[real]} & {*done}
        edges += zip(owner[real], other[real], pair[real], strict=True)
        done += complete[complete < num_items].tolist()
    colour = coloured(found.begin, found.neighbour)
    node = np.argsort(colour, kind="stable").tolist()
    expected = [
        (one, found.neighbour[at], found.neighbour_pair[at])
        for one in node for at in range(found.begin[one], found.begin[one + 1])
    ]  # fmt: skip
    assert edges == expected
    assert done == node

    answers = {*zip(found.answer_expert, found.answer_pair, *found.said.T, strict=True)}
    for rows, flipped, owners in ((problem.by_expert, False, 4), (problem.by_pair, True, num_pairs + 1)):
        assert sorted({*rows.owner}) == [*range(owners)]
        owner = np.broadcast_to(rows.owner[:, None], rows.other.shape)
        real = rows.said.sum(axis=-1) > 0
        columns = [owner[real], rows.other[real], *rows.said[real].T]
        columns[:2] = columns[1::-1] if flipped else columns[:2]
        assert len(columns[0]) == len(answers)
        assert {*zip(*columns, strict=True)} == answers
