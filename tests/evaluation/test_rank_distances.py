"""Kendall and footrule on bucket orders: worked values, a brute force over all small rankings, properties."""

import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.evaluation.rank_distances import (
    BucketOrder,
    footrule_distance,
    footrule_score,
    kendall_distance,
    kendall_score,
)
from tests.evaluation.rankings import padded, rankings

DISTANCES = {"kendall": kendall_distance, "footrule": footrule_distance}
SCORES = {"kendall": kendall_score, "footrule": footrule_score}


def compute(function, first, second, at, width=6):
    result = function(padded(first, width), padded(second, width), at)
    return [float(value) for value in result] if isinstance(result, tuple) else float(result)


def bucket_orders(classes):
    """Return every order of these classes in blocks."""
    if not classes:
        return [()]
    return [
        (block, *rest)
        for size in range(1, len(classes) + 1)
        for block in itertools.combinations(classes, size)
        for rest in bucket_orders(tuple(c for c in classes if c not in block))
    ]


def brute_force(first, second, at):
    """Return both distances and maxima by the words of the definition, with fractions."""
    kept = []
    for ranking in (first, second):
        before, blocks = 0, []
        for block in ranking:
            if before + 1 <= at:
                blocks.append(set(block))
            before += len(block)
        kept.append(blocks)
    sizes = [sum(map(len, blocks)) for blocks in kept]
    union = set().union(*kept[0], *kept[1])
    location = max(sizes) + 1
    bucket, position = [], []
    for blocks in kept:
        bucket.append({c: next((i for i, block in enumerate(blocks) if c in block), len(blocks)) for c in union})
        places, before = dict.fromkeys(union, Fraction(location)), 0
        for block in blocks:
            places.update(dict.fromkeys(block, Fraction(2 * before + 1 + len(block), 2)))
            before += len(block)
        position.append(places)
    kendall = Fraction(0)
    for x, y in itertools.combinations(sorted(union), 2):
        one, two = bucket[0][x] - bucket[0][y], bucket[1][x] - bucket[1][y]
        kendall += 1 if one * two < 0 else Fraction(1, 2) if (one == 0) != (two == 0) else 0
    footrule = sum((abs(position[0][c] - position[1][c]) for c in union), Fraction(0))
    l1, l2 = sizes
    return (
        (kendall, Fraction(4 * l1 * l2 + l1 * (l1 - 1) + l2 * (l2 - 1), 4)),
        (footrule, Fraction(2 * location * (l1 + l2) - l1 * (l1 + 1) - l2 * (l2 + 1), 2)),
    )


WORKED = [
    ([[0], [1], [2]], [[1], [2], [0]], 3, 2, 4, Fraction(5, 6), Fraction(2, 3)),
    ([[0], [1]], [[1], [2]], 2, 2, 4, Fraction(3, 5), Fraction(1, 3)),
    ([[0], [1]], [[2], [3]], 2, 5, 6, 0, 0),
    ([[0, 1]], [[0], [1]], 2, 0.5, 1, Fraction(9, 10), Fraction(5, 6)),
    ([[0], [1, 2]], [[1], [0], [3]], 3, 2.5, 5, Fraction(19, 24), Fraction(7, 12)),
    ([[0], [1], [2]], [[0]], 3, 0.5, 3, Fraction(8, 9), Fraction(2, 3)),
]


@pytest.mark.parametrize(("first", "second", "at", "kendall", "footrule", "kendall_ratio", "footrule_ratio"), WORKED)
def test_worked_distances(first, second, at, kendall, footrule, kendall_ratio, footrule_ratio):
    with jax.enable_x64():
        assert compute(kendall_distance, first, second, at)[0] == kendall
        assert compute(footrule_distance, first, second, at)[0] == footrule
        assert compute(kendall_score, first, second, at) == pytest.approx(float(kendall_ratio), abs=1e-15)
        assert compute(footrule_score, first, second, at) == pytest.approx(float(footrule_ratio), abs=1e-15)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_disjoint_lists_reach_the_maxima(length):
    first = [[c] for c in range(length)]
    second = [[c + length] for c in range(length)]
    assert compute(kendall_distance, first, second, length) == [length * (3 * length - 1) / 2] * 2
    assert compute(footrule_distance, first, second, length) == [length * (length + 1)] * 2


def test_block_that_straddles_the_cut_is_kept_whole_and_the_next_is_not():
    first, second = [[0], [1, 2], [3]], [[3], [0], [1]]
    assert compute(kendall_distance, first, second, 2) == [float(x) for x in brute_force(first, second, 2)[0]]
    assert compute(kendall_distance, first, second, 2) == compute(kendall_distance, first[:2], second[:2], 2)
    assert compute(footrule_distance, first, second, 2) == compute(footrule_distance, first[:2], second[:2], 2)


def test_against_brute_force_and_no_ratio_exceeds_one():
    """All pairs of bucket orders of up to 3 classes, up to renaming the classes, at every cut."""
    first = [order for size in range(4) for order in bucket_orders(tuple(range(size)))]
    second = [
        order for size in range(4) for some in itertools.combinations(range(6), size) for order in bucket_orders(some)
    ]
    pairs = list(itertools.product(first, second))
    assert len(pairs) == 18 * 312
    batch = [
        BucketOrder(*map(np.stack, zip(*(padded(one, 3) for one in side), strict=True)))
        for side in zip(*pairs, strict=True)
    ]
    over_pairs = {name: jax.jit(jax.vmap(function, in_axes=(0, 0, None))) for name, function in DISTANCES.items()}
    for at in (1, 2, 3):
        expected = np.array([brute_force(a, b, at) for a, b in pairs], dtype=float)
        for column, name in enumerate(DISTANCES):
            distance, maximum = (np.asarray(values) for values in over_pairs[name](*batch, at))
            np.testing.assert_array_equal(np.stack([distance, maximum], axis=1), expected[:, column])
            assert (distance <= maximum).all()


def test_no_ratio_of_untied_lists_of_four_exceeds_one():
    fixed = np.arange(4, dtype=np.int32)
    lists = np.array(list(itertools.permutations(range(8), 4)), dtype=np.int32)
    for function in DISTANCES.values():
        distance, maximum = jax.vmap(
            lambda other, f=function: f(BucketOrder(fixed, fixed), BucketOrder(other, fixed), 4)
        )(lists)
        assert (distance <= maximum).all()
        assert distance.max() == maximum.max()


def test_unknown_classes_differ_from_everything_and_from_each_other():
    truth = [[0], [1], [2]]
    for function in DISTANCES.values():
        assert compute(function, truth, [[0], [-2], [-2]], 3) == compute(function, truth, [[0], [7], [8]], 3)
        assert compute(function, [[-2], [-2]], [[-2], [-2]], 2) == compute(function, [[5], [6]], [[7], [8]], 2)


def test_empty_rankings():
    for function in SCORES.values():
        assert compute(function, [], [], 3) == 1
        assert compute(function, [[0], [1]], [], 3) == 0
    # With one class there is no pair; the footrule still sees that it is missing.
    assert compute(kendall_score, [[0]], [], 1) == 1
    assert compute(footrule_score, [[0]], [], 1) == 0


@pytest.mark.parametrize("name", SCORES)
@given(first=rankings(7, 5), second=rankings(7, 5), at=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_rank_scores_are_symmetric_in_the_unit_interval_and_one_on_itself(name, first, second, at):
    score = jax.jit(SCORES[name])
    value = compute(score, first, second, at)
    assert value == compute(score, second, first, at)
    assert 0 <= value <= 1
    assert compute(score, first, first, at) == 1


@pytest.mark.parametrize("name", SCORES)
@given(first=rankings(7, 5), second=rankings(7, 5), at=st.integers(1, 6), names=st.permutations(range(7)))
@settings(max_examples=30, deadline=None)
def test_names_of_classes_and_order_within_blocks_do_not_matter(name, first, second, at, names):
    score = jax.jit(SCORES[name])
    renamed = [[[names[c] for c in reversed(block)] for block in ranking] for ranking in (first, second)]
    assert compute(score, first, second, at) == compute(score, *renamed, at)


def test_result_has_the_default_float_type():
    lists = BucketOrder(jnp.arange(3), jnp.arange(3)), BucketOrder(jnp.arange(3), jnp.arange(3)), 3
    assert kendall_score(*lists).dtype == footrule_score(*lists).dtype == np.float32
    with jax.enable_x64():
        assert kendall_score(*lists).dtype == footrule_score(*lists).dtype == np.float64
