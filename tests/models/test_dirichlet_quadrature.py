"""P(class k leads) under a Dirichlet, against closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import consilience as cs
from consilience.models import dirichlet_quadrature
from consilience.models.dirichlet_quadrature import top_probabilities


def one_item(concentration, unnamed=0.0, num_classes=None):
    """Return P(leads) of the entries of one item, and of one of its unnamed classes."""
    first = np.array([0, len(concentration)])
    entry, rest = top_probabilities(first, np.array(concentration, float), unnamed, num_classes or len(concentration))
    return entry, rest[0]


@pytest.mark.parametrize("a", [0.01, 0.1, 1.0, 3.7, 50.0, 900.0, 1e6])
@pytest.mark.parametrize("b", [0.01, 0.5, 2.0, 41.5, 1000.0, 1.001e6])
def test_two_classes_are_an_incomplete_beta_function(a, b):
    entry, _ = one_item([a, b])
    np.testing.assert_allclose(entry, [special.betainc(b, a, 0.5), special.betainc(a, b, 0.5)], atol=1e-12)


def test_three_classes_of_integer_concentration():
    """Dirichlet(1, 1, a): the mass where the last class leads, by the survival functions of exponentials."""
    a = 4
    # P(G > max(E1, E2)) = E[(1 - e^-G)^2], G ~ Gamma(a).
    expected = 1 - 2 * 2.0**-a + 3.0**-a
    entry, _ = one_item([1, 1, a])
    np.testing.assert_allclose(entry, [(1 - expected) / 2, (1 - expected) / 2, expected], atol=1e-12)


@pytest.mark.parametrize(("concentration", "num_classes"), [(0.1, 10), (1.0, 3), (25.0, 7), (0.1, 10**6)])
def test_equal_concentrations_are_equally_likely(concentration, num_classes):
    entry, rest = one_item([concentration], concentration, num_classes)
    np.testing.assert_allclose([entry[0], rest], 1 / num_classes, rtol=1e-10, atol=1e-13)
    _, rest = one_item([], concentration, num_classes)
    np.testing.assert_allclose(rest, 1 / num_classes, rtol=1e-10, atol=1e-13)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(0.01, 300.0), min_size=1, max_size=6),
    st.floats(0.01, 3.0),
    st.integers(0, 400),
)
def test_probabilities_sum_to_one_and_naming_a_class_changes_nothing(concentration, unnamed, num_unnamed):
    num_classes = len(concentration) + num_unnamed
    entry, rest = one_item(concentration, unnamed, num_classes)
    assert abs(entry.sum() + num_unnamed * rest - 1) < 1e-11
    order = np.argsort(concentration)
    assert np.all(np.diff(entry[order]) > -1e-12)
    if num_unnamed:
        named, rest_named = one_item([*concentration, unnamed], unnamed, num_classes)
        np.testing.assert_allclose(named, [*entry, rest], atol=1e-12)
        assert rest_named == (0 if num_unnamed == 1 else pytest.approx(rest, abs=1e-12))


def test_items_do_not_affect_each_other(monkeypatch):
    rng = np.random.default_rng(0)
    counts = np.array([3, 0, 1, 5, 2])
    first = np.concatenate([[0], np.cumsum(counts)])
    concentration = rng.gamma(0.5, 20, counts.sum()) + 0.05
    entry, rest = top_probabilities(first, concentration, 0.3, 8)
    alone = [one_item(concentration[a:b], 0.3, 8) for a, b in zip(first, first[1:], strict=False)]
    np.testing.assert_allclose(entry, np.concatenate([one for one, _ in alone]), atol=1e-13)
    np.testing.assert_allclose(rest, [one for _, one in alone], atol=1e-13)
    monkeypatch.setattr(dirichlet_quadrature, "_BLOCK_NODES", 500)
    again, rest_again = top_probabilities(first, concentration, 0.3, 8)
    np.testing.assert_allclose(again, entry, atol=1e-13)
    np.testing.assert_allclose(rest_again, rest, atol=1e-13)


@pytest.mark.public_data
@pytest.mark.parametrize(("alpha", "expected"), [(0.01, 176), (0.1, 176), (1.0, 183)])
def test_uncertain_images_of_cifar10h(alpha, expected):
    fit = cs.fit("dirichlet", cs.load("cifar10h"), alpha=alpha)
    assert (cs.certainty(fit, exact=True).items < 0.99).sum() == expected
