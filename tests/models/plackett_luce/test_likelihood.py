"""Likelihood of Plackett-Luce: against exact fractions, published values, laws, and quadrature over the simplex."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.data import Rankings
from consilience.models.plackett_luce.likelihood import log_likelihood, log_tied
from tests.models.plackett_luce.reports import random_cases, rankings

# Compiled once for all tests with data of the same shapes.
compiled = jax.jit(log_likelihood)
compiled_tied = jax.jit(log_tied)
gradients = jax.jit(jax.grad(lambda weight, other, data: log_likelihood(data, weight, other).sum(), (0, 1)))


def logs(data, weights):
    """Split weights, (item, class), into log_weight and log_other."""
    weights = np.broadcast_to(weights, (data.num_items, data.num_classes))
    named = np.zeros(weights.shape, bool)
    named[data.entry_item, data.entry_class] = True
    with np.errstate(divide="ignore"):
        log_weight = np.log(weights[data.entry_item, data.entry_class])
        log_other = np.log(np.where(named, 0, weights).sum(1))
    return jnp.asarray(log_weight), jnp.asarray(log_other)


def evaluate(cases, weights):
    weights = np.asarray(weights, float)
    data = rankings(cases, weights.shape[-1])
    return np.asarray(compiled(data, *logs(data, weights)))


def exact_log_tied(weights, rest):
    """Sum over subsets in exact fractions: R(A) = Σ_a R(A without a) / (rest + λ(A))."""
    weights, rest = [Fraction(float(w)) for w in weights], Fraction(float(rest))
    table = [Fraction(1)]
    for subset in range(1, 1 << len(weights)):
        members = [k for k in range(len(weights)) if subset >> k & 1]
        table.append(sum(table[subset ^ (1 << k)] for k in members) / (rest + sum(weights[k] for k in members)))
    probability = math.prod(weights) * table[-1]
    return math.log(probability.numerator) - math.log(probability.denominator)


def log_block(log_weight, log_rest):
    return compiled_tied(jnp.asarray(log_weight), jnp.zeros(len(log_weight), int), jnp.asarray([log_rest]))[0]


def random_weights(seed, num_items=60, num_classes=6, decades=2):
    return 10 ** np.random.default_rng(seed).uniform(-decades, decades, (num_items, num_classes))


# ---- values ----


def test_worked_likelihoods():
    three = [([[0, 1]], 3 / 20), ([[0, 1], [2]], 3 / 20), ([[2], [0]], 1 / 2 * 1 / 3), ([[0, 1, 2]], 1), ([], 1)]
    four = [
        ([[0, 1, 2]], 7 / 90),
        ([[0, 1, 2], [3]], 7 / 90),
        ([[3], [0, 1]], 3 / 50),
        ([[3], [0, 1], [2]], 3 / 50),
        ([[2], [0]], 3 / 10 * 1 / 7),
        ([[0, 1, 2, 3]], 1),
        ([], 1),
    ]
    for expected, weights in ((three, (1, 2, 3)), (four, (1, 2, 3, 4))):
        reports, probabilities = zip(*expected, strict=True)
        with jax.enable_x64(True):
            value = evaluate([[report] for report in reports], weights)
        np.testing.assert_allclose(value, np.log(probabilities), atol=1e-11)


def test_blocks_agree_with_the_recursion_over_subsets():
    rng = np.random.default_rng(0)
    size = np.repeat(np.arange(1, 8), 12)
    block = np.repeat(np.arange(len(size)), size)
    log_weight, log_rest = rng.normal(0, 4, len(block)), rng.normal(0, 4, len(size))
    expected = [exact_log_tied(np.exp(log_weight[block == b]), np.exp(z)) for b, z in enumerate(log_rest)]
    with jax.enable_x64(True):
        value = compiled_tied(log_weight, block, log_rest)
    np.testing.assert_allclose(value, expected, atol=1e-10)
    value = compiled_tied(log_weight.astype(np.float32), block, log_rest.astype(np.float32))
    assert value.dtype == jnp.float32
    # The weights themselves have been rounded.
    np.testing.assert_allclose(value, expected, atol=3e-6, rtol=1e-6)


def test_equal_weights_count_subsets():
    size, num_classes = np.array([2, 2, 3, 6, 50]), np.array([4, 9, 8, 50, 60])
    block = np.repeat(np.arange(5), size)
    with jax.enable_x64(True):
        value = compiled_tied(np.zeros(len(block)), block, np.log(num_classes - size))
    expected = [-math.log(math.comb(k, n)) for k, n in zip(num_classes.tolist(), size.tolist(), strict=True)]
    np.testing.assert_allclose(value, expected, atol=1e-10)


def test_a_tie_of_fifty_against_exact_inclusion_and_exclusion():
    values, counts, rest = [Fraction(1, 100), Fraction(1), Fraction(30)], [10, 25, 15], Fraction(3)
    total = Fraction(0)
    for number in itertools.product(*(range(count + 1) for count in counts)):
        ways = math.prod(math.comb(count, n) for count, n in zip(counts, number, strict=True))
        mass = sum(n * value for n, value in zip(number, values, strict=True))
        total += (-1) ** sum(number) * ways * rest / (rest + mass)
    log_weight = np.log(np.repeat([float(value) for value in values], counts))
    with jax.enable_x64(True):
        expected = math.log(total.numerator) - math.log(total.denominator)
        assert log_block(log_weight, math.log(3)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("weights", [(1, 1e-5, 1e-6), (1e4, 1, 1e-4)])
def test_float32_where_the_authors_routine_loses_its_digits(weights):
    expected = exact_log_tied(weights[:2], weights[2])
    value = evaluate([[[[0, 1], [2]]]], weights)[0]
    assert value.dtype == np.float32
    assert value == pytest.approx(expected, abs=1e-6)


def test_float32_on_random_rankings():
    weights = random_weights(1)
    with jax.enable_x64(True):
        double = evaluate(random_cases(0), weights)
    np.testing.assert_allclose(evaluate(random_cases(0), weights), double, atol=5e-6, rtol=1e-6)


def test_a_large_tie_in_float32():
    log_weight = np.random.default_rng(0).normal(0, 2, 200)
    with jax.enable_x64(True):
        expected = float(log_block(log_weight, 0.0))
    assert log_block(log_weight.astype(np.float32), np.float32(0)) == pytest.approx(expected, rel=2e-6)


# ---- laws ----


def test_the_ordered_partitions_of_one_shape_are_all_that_can_happen():
    cases, shape_of_case = [], []
    for shape, sizes in enumerate([(1,), (2,), (1, 1), (2, 1), (1, 2), (3, 1), (2, 2), (1, 1, 1, 1), (2, 3)]):
        cuts = np.cumsum(sizes)[:-1]
        orders = itertools.permutations(range(5), sum(sizes))
        reports = {tuple(tuple(sorted(block)) for block in np.split(np.array(order), cuts)) for order in orders}
        cases += [[[list(map(int, block)) for block in report]] for report in sorted(reports)]
        shape_of_case += [shape] * len(reports)
    with jax.enable_x64(True):
        probability = np.exp(evaluate(cases, [0.2, 3, 1, 0.01, 7]))
    np.testing.assert_allclose(np.bincount(shape_of_case, probability), 1, atol=1e-10)


def test_a_block_is_the_sum_of_its_orders():
    weights = [0.3, 2, 1, 0.05, 4, 1]
    orders = [[[[4], *([int(k)] for k in order), [5]]] for order in itertools.permutations([0, 1, 2])]
    with jax.enable_x64(True):
        tied = evaluate([[[[4], [0, 1, 2], [5]]]], weights)[0]
        assert np.logaddexp.reduce(evaluate(orders, weights)) == pytest.approx(tied, abs=1e-11)


def test_names_order_and_scale_do_not_matter():
    cases, weights = random_cases(0), random_weights(3)
    rng = np.random.default_rng(4)
    with jax.enable_x64(True):
        expected = evaluate(cases, weights)
        rename = rng.permutation(6)
        renamed = [[[rename[block].tolist() for block in report] for report in case] for case in cases]
        np.testing.assert_allclose(evaluate(renamed, weights[:, np.argsort(rename)]), expected, atol=1e-10)
        shuffled = [[case[r] for r in rng.permutation(len(case))] for case in cases]
        np.testing.assert_allclose(evaluate(shuffled, weights), expected, atol=1e-10)
        scaled = weights * 10 ** rng.uniform(-90, 90, (len(weights), 1))
        np.testing.assert_allclose(evaluate(cases, scaled), expected, atol=1e-10)


def test_reports_that_say_nothing_change_nothing():
    cases, weights = random_cases(0), random_weights(6)
    with jax.enable_x64(True):
        expected = evaluate(cases, weights)
        np.testing.assert_allclose(evaluate([[*case, []] for case in cases], weights), expected, atol=1e-10)
        everything = [[*case, [list(range(6))]] for case in cases]
        np.testing.assert_allclose(evaluate(everything, weights), expected, atol=1e-10)
        twice = [[*case, *case] for case in cases]
        np.testing.assert_allclose(evaluate(twice, weights), 2 * expected, atol=1e-10)


def test_classes_that_nobody_named_matter_through_their_sum_alone():
    data = rankings([[[[0], [1, 2]], [[1]]]], 5)
    weights = np.array([1, 0.5, 2, 0.3, 0.9])
    with jax.enable_x64(True):
        apart = evaluate([[[[0], [1, 2]], [[1]], [[0, 1, 2, 3, 4]]]], weights)
        together = compiled(data, jnp.log(weights[:3]), jnp.log(weights[3:].sum(keepdims=True)))
        np.testing.assert_allclose(together, apart, atol=1e-12)


def test_other_is_not_read_where_every_class_is_named():
    data = rankings([[[[0], [1, 2]]], [[[0], [1]]]], 3)
    log_weight = jnp.zeros(data.num_entries)
    low, high = (compiled(data, log_weight, jnp.full(2, other)) for other in (-3.0, 3.0))
    assert low[0] == high[0]
    assert low[1] != high[1]


# ---- limits and gradients ----


@pytest.mark.parametrize("x64", [False, True])
def test_gradients_of_the_likelihood_are_finite_differences(x64):
    with jax.enable_x64(True):
        data = rankings(random_cases(0), 6)
        point = np.concatenate([np.asarray(values) for values in logs(data, random_weights(8))])
        point[~np.isfinite(point)] = 0.0
        direction = np.random.default_rng(9).normal(size=point.shape)
        split = data.num_entries

        @jax.jit
        def value(step):
            moved = point + step * direction
            return compiled(data, moved[:split], moved[split:]).sum()

        expected = float((value(1e-4) - value(-1e-4)) / 2e-4)
    with jax.enable_x64(x64):
        slope = np.concatenate(gradients(jnp.asarray(point[:split]), jnp.asarray(point[split:]), data)) @ direction
        assert slope == pytest.approx(expected, rel=1e-7 if x64 else 1e-5)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("decades", [3, 15, 30])
def test_extreme_weights_have_finite_values_and_gradients(x64, decades):
    data = rankings(random_cases(0), 6)
    with jax.enable_x64(x64):
        log_weight, log_other = logs(data, random_weights(11, decades=decades))
        assert np.isfinite(compiled(data, log_weight, log_other)).all()
        # A class that is listed in a stage moves its log probability by at most one.
        for slope in gradients(log_weight, log_other, data):
            assert np.isfinite(slope).all()
            assert np.abs(slope).max() <= data.num_rows


@pytest.mark.parametrize("x64", [False, True])
def test_weights_of_zero_are_limits(x64):
    cases = [[[[0], [1, 2]], [[2, 0]]], [[[0, 1]]], [[[0]]], [[[0, 1], [2]]]]
    with jax.enable_x64(x64):
        data = rankings(cases, 4)
        weights = [[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]]
        log_weight, log_other = logs(data, np.array(weights, float))
        value = compiled(data, log_weight, log_other)
        # Nothing is left below {1, 2}, {0, 1}, {0} and {2}; the second report of the first item competes with 1.
        np.testing.assert_allclose(value, [2 * math.log(1 / 3), 0, 0, math.log(1 / 3)], atol=2e-6)
        for slope in gradients(log_weight, log_other, data):
            assert np.isfinite(slope).all()
        nothing = jnp.full(data.num_entries, -jnp.inf)
        for slope in gradients(nothing, jnp.full(4, -jnp.inf), data):
            assert np.isfinite(slope).all()


def test_a_last_block_that_leaves_nothing_is_certain():
    data = rankings([[[[0, 1, 2]]], [[[2], [0, 1]]], [[[2], [0], [1]]]], 3)
    value = compiled(data, jnp.asarray([1.0, -9, 3] * 3), jnp.zeros(3))
    assert value[0] == 0
    assert value[1] == pytest.approx(3 - math.log(math.e + math.exp(-9) + math.exp(3)), abs=1e-6)
    slopes, _ = gradients(jnp.asarray([1.0, -9, 3] * 3), jnp.zeros(3), data)
    assert np.all(slopes[:3] == 0)


def test_data_without_any_row():
    data = Rankings.from_codes([0, 1], [0, 0], [], [], [], num_classes=3)
    assert compiled(data, jnp.zeros(0), jnp.zeros(2)).tolist() == [0, 0]


# ---- evidence and posterior means under Dirichlet(1, …, 1) ----


def simplex(num_classes, num_nodes):
    """Gauss-Legendre nodes, weights for the uniform distribution; denser at the edges, where L has kinks."""
    x, w = np.polynomial.legendre.leggauss(num_nodes)
    s, w = (x + 1) / 2, w / 2
    odds = (s / (1 - s)) ** 3
    v, w = odds / (1 + odds), w * 3 * odds / (s * (1 - s)) / (1 + odds) ** 2
    theta, weight = np.ones((1, 1)), np.ones(1)
    for left in range(num_classes - 1, 0, -1):
        # Stick-breaking: the share of what remains is Beta(1, left).
        remains = theta[:, -1:]
        theta = np.concatenate([np.repeat(theta[:, :-1], num_nodes, 0), (remains * v).reshape(-1, 1),
                                (remains * (1 - v)).reshape(-1, 1)], axis=1)  # fmt: skip
        weight = (weight[:, None] * left * (1 - v) ** (left - 1) * w).ravel()
    return theta, weight


@pytest.mark.parametrize(
    ("case", "evidence", "mean", "num_nodes", "tolerance"),
    [
        ([[[0, 1], [2]], [[1]]], 7 / 240, np.array([10, 16, 6, 3]) / 35, 24, 2e-6),
        ([[[0]], [[0]], [[1]]], 1 / 30, np.array([3, 2, 1]) / 6, 40, 1e-10),
        ([[[0, 1]], [[1], [0]]], 0.0954236893, [0.35958134, 0.53424098, 0.10617768], 40, 1e-8),
        ([[[0], [1]], [[1], [2]], [[0, 2]]], None, [0.36974249, 0.32730687, 0.30295064], 40, 1e-8),
        ([[[0, 1, 2], [3]], [[0, 1], [2, 3]], [[3]]], None,
         [0.33142124, 0.33142124, 0.18340419, 0.15375332], 24, 2e-6),
    ],
)  # fmt: skip
def test_evidence_and_posterior_means(case, evidence, mean, num_nodes, tolerance):
    theta, weight = simplex(len(mean), num_nodes)
    with jax.enable_x64(True):
        data = rankings([case], len(mean))
        named = data.entry_class
        others = np.setdiff1d(np.arange(len(mean)), named)
        other = theta[:, others].sum(1, keepdims=True) if len(others) else np.ones((len(theta), 1))
        value = jax.jit(jax.vmap(log_likelihood, (None, 0, 0)))(data, jnp.log(theta[:, named]), jnp.log(other))
        joint = weight * np.exp(np.asarray(value)[:, 0])
    if evidence is not None:
        assert joint.sum() == pytest.approx(evidence, rel=1e-6)
    np.testing.assert_allclose(joint @ theta / joint.sum(), mean, atol=tolerance)


def test_evidence_of_one_report_depends_on_its_shape_alone():
    theta, weight = simplex(4, 24)
    shapes = [(2, 1, 1), (1, 3), (2, 2), (1, 1, 2)]
    orders = [np.split(np.arange(4), np.cumsum(sizes)[:-1]) for sizes in shapes]
    with jax.enable_x64(True):
        data = rankings([[[block.tolist() for block in order]] for order in orders], 4)
        log_weight = jnp.tile(jnp.log(theta), (1, len(shapes)))
        value = jax.jit(jax.vmap(log_likelihood, (None, 0, None)))(data, log_weight, jnp.zeros(len(shapes)))
    expected = [math.prod(map(math.factorial, sizes)) / math.factorial(4) for sizes in shapes]
    np.testing.assert_allclose(weight @ np.exp(value), expected, atol=1e-8)
