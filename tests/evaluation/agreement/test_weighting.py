import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.agreement.weighting import (
    SCHEMES,
    Moments,
    exchangeable_moments,
    exchangeable_variance,
    rho,
    weight_function,
)
from tests.evaluation.agreement.tables import TABLE, counts_of

SIZES = np.arange(2.0, 60)


COUNTS = counts_of(TABLE)


def agreement_variance(size, shares):
    """Return the variance of an item's agreement with n ≥ 2 annotations drawn from one class distribution."""
    size, shares = np.asarray(size, float), np.asarray(shares, float)
    second, third = (shares**2).sum(), (shares**3).sum()
    return (2 * (second - second**2) + 4 * (size - 2) * (third - second**2)) / (size * (size - 1))


def enumerated_moments(shares, size):
    """Mean and variance of an item's agreement over all sequences of labels (equations 19, 42)."""
    first = second = Fraction(0)
    for sequence in itertools.product(range(len(shares)), repeat=size):
        probability = Fraction(1)
        for label in sequence:
            probability *= shares[label]
        agreement = Fraction(sum(a == b for a, b in itertools.permutations(sequence, 2)), size * (size - 1))
        first += probability * agreement
        second += probability * agreement**2
    return first, second - first**2


@pytest.mark.parametrize("shares", [(1, 2, 3), (1, 1), (2, 1), (1, 1, 1), (5, 0, 1)])
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_the_closed_form_is_the_enumerated_variance(shares, size):
    exact = [Fraction(share, sum(shares)) for share in shares]
    mean, variance = enumerated_moments(exact, size)
    assert mean == sum(share**2 for share in exact)
    given_shares = np.array(exact, float)
    np.testing.assert_allclose(agreement_variance([size], given_shares), float(variance), rtol=1e-12)


def test_variances_as_fractions():
    sixths, thirds = np.array([1 / 2, 1 / 3, 1 / 6]), np.array([2 / 3, 1 / 3])
    expected = [77 / 324, 29 / 324, 97 / 1944, 107 / 3240, 157 / 14580]
    np.testing.assert_allclose(agreement_variance([2, 3, 4, 5, 10], sixths), expected)
    np.testing.assert_allclose(agreement_variance([2, 3, 4, 5], thirds), [20 / 81, 8 / 81, 14 / 243, 16 / 405])
    np.testing.assert_allclose(agreement_variance([2, 3, 4], np.full(3, 1 / 3)), [2 / 9, 2 / 27, 1 / 27])
    np.testing.assert_allclose([rho(sixths), rho(thirds)], [10 / 77, 1 / 5])


distributions = st.lists(st.floats(1e-6, 1), min_size=1, max_size=7).map(lambda raw: np.array(raw) / sum(raw))


@given(distributions)
def test_rho_is_a_share_and_gives_the_variance(shares):
    ratio = rho(shares)
    assert 0 <= ratio <= 1
    variance = agreement_variance(SIZES, shares)
    assert (variance >= -1e-12).all()
    if variance[0] > 1e-6:
        weight = weight_function("inv_var_class", COUNTS, shares)(SIZES)
        np.testing.assert_allclose(weight * variance, (weight * variance)[0], rtol=1e-6)


@given(st.floats(0.01, 0.99))
def test_rho_of_two_classes(share):
    product = share * (1 - share)
    np.testing.assert_allclose(rho(np.array([share, 1 - share])), (1 - 4 * product) / (1 - 2 * product), atol=1e-9)


@pytest.mark.parametrize("num_labels", [2, 3, 10])
def test_equally_likely_classes_weigh_edges(num_labels):
    shares = np.full(num_labels, 1 / num_labels)
    assert rho(shares) == pytest.approx(0, abs=1e-12)
    edge = weight_function("edge", COUNTS)(SIZES)
    for scheme in ("inv_var", "inv_var_class"):
        ratio = weight_function(scheme, COUNTS, shares)(SIZES) / edge
        np.testing.assert_allclose(ratio, ratio[0])
    np.testing.assert_allclose(agreement_variance(SIZES, shares), (num_labels - 1) / num_labels**2 / edge)


def test_simple_schemes_are_members_of_one_family():
    # Two classes with pq = 1/6 have ρ = 1/2.
    share = (1 + np.sqrt(1 / 3)) / 2
    half = weight_function("inv_var_class", COUNTS, [share, 1 - share])(SIZES)
    minus_one = weight_function("annotations_m1", COUNTS)(SIZES)
    np.testing.assert_allclose(half / minus_one, half[0] / minus_one[0])
    one_class = weight_function("inv_var_class", COUNTS, [1.0, 0.0])(SIZES)
    np.testing.assert_allclose(one_class, SIZES / 2)
    np.testing.assert_array_equal(weight_function("annotations", COUNTS)(SIZES), SIZES)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_items_with_fewer_than_two_annotations_have_no_weight(scheme):
    weight = weight_function(scheme, COUNTS)(np.array([0.0, 1.0, 2.0, 5.0]))
    assert (weight[:2] == 0).all()
    assert (weight[2:] > 0).all()


def test_exchangeable_items_in_special_cases():
    # Equal items: the moments are those of one distribution.
    shares = np.array([1 / 2, 1 / 3, 1 / 6])
    second, third = (shares**2).sum(), (shares**3).sum()
    alike = Moments(second, second - second**2, third - second**2, 0.0)
    np.testing.assert_allclose(exchangeable_variance(SIZES, alike), agreement_variance(SIZES, shares))
    # Two kinds of items, each of one class or of two that are equally likely: enumerated by hand.
    kinds = np.array([[1.0, 0.0], [0.5, 0.5]])
    second, third = (kinds**2).sum(1), (kinds**3).sum(1)
    moments = Moments(
        second.mean(), second.mean() * (1 - second.mean()), third.mean() - second.mean() ** 2, second.var()
    )
    for size in (2, 3, 4, 5):
        within = np.mean([agreement_variance([size], kind)[0] for kind in kinds])
        np.testing.assert_allclose(exchangeable_variance([size], moments), within + second.var())


def test_moments_are_estimated_without_bias():
    rng = np.random.default_rng(0)
    estimates = []
    for _ in range(400):
        shares = rng.dirichlet([0.5, 0.5, 1.0], 60)
        table = rng.multinomial(rng.integers(2, 8, 60), shares)
        patterns = counts_of(table).patterns
        estimates.append(exchangeable_moments(patterns))
    # Raw moments of Dirichlet(a): E p^j by rising factorials, E of products of two classes likewise.
    a, total = np.array([0.5, 0.5, 1.0]), 2.0
    rise = lambda x, j: np.prod([x + i for i in range(j)], axis=0)  # noqa: E731
    mean, cube = rise(a, 2).sum() / rise(total, 2), rise(a, 3).sum() / rise(total, 3)
    products = np.outer(rise(a, 2), rise(a, 2))
    np.fill_diagonal(products, rise(a, 4))
    truth = np.array([mean, mean - mean**2, cube - mean**2, products.sum() / rise(total, 4) - mean**2])
    estimates = np.array(estimates)
    error = estimates.std(0, ddof=1) / np.sqrt(len(estimates))
    assert (np.abs(estimates.mean(0) - truth) < 5 * error).all()


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=2, max_size=12))
def test_moments_are_those_of_something(rows):
    patterns = counts_of(np.array(rows)).patterns
    if patterns.num_items:
        _, same, shared, disjoint = exchangeable_moments(patterns)
        assert disjoint >= 0
        assert shared >= disjoint
        assert same >= 2 * shared - disjoint - 1e-12
        assert (exchangeable_variance(SIZES, exchangeable_moments(patterns)) >= -1e-12).all()


def test_errors():
    with pytest.raises(UnknownName, match="no weights are called 'edges'; choose one of flat, annotations"):
        weight_function("edges", COUNTS)
    with pytest.raises(UnsupportedRequest, match="class shares sum to 1.5"):
        rho(np.array([1.0, 0.5]))
