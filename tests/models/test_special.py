"""Normalisers against SciPy in double precision, and in single precision where logarithms of gammas cancel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from consilience.models.special import at_once, log_beta, log_normaliser

VALUES = [1e-3, 0.3, 1.0, 2.5, 9.9, 10.0, 10.1, 1e3, 1e7]
PAIRS = np.array([(a, b) for a in VALUES for b in VALUES])


def test_normalisers_are_scipys_in_double_precision():
    with jax.enable_x64(True):
        expected = special.betaln(*PAIRS.T)
        np.testing.assert_allclose(log_beta(jnp.asarray(PAIRS)), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(log_normaliser(jnp.asarray(PAIRS)), expected, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("function", [log_beta, log_normaliser])
def test_single_precision_at_ten_million(function):
    pair = np.array([1e7, 5e6])
    found = function(jnp.asarray(pair, np.float32))
    assert found.dtype == np.float32
    assert abs(float(found) - special.betaln(*pair)) < 2.0


def test_several_classes():
    with jax.enable_x64(True):
        concentration = np.random.default_rng(0).gamma(2.0, 30.0, (5, 4))
        expected = special.gammaln(concentration).sum(1) - special.gammaln(concentration.sum(1))
        np.testing.assert_allclose(log_normaliser(jnp.asarray(concentration)), expected, rtol=1e-12)


@pytest.mark.parametrize("shapes", [[(3,)], [(2, 3), (5,)], [(1,), (4, 2), ()], [(0,), (7,)]])
def test_a_function_of_all_arrays_at_once_is_that_of_each(shapes):
    random = np.random.default_rng(0)
    tree = {str(place): jnp.asarray(random.gamma(2.0, size=shape)) for place, shape in enumerate(shapes)}
    found = at_once(jax.scipy.special.digamma, tree)
    for name, values in tree.items():
        np.testing.assert_allclose(found[name], special.digamma(values), rtol=1e-5, atol=1e-6)


def test_normalisers_of_a_tree_are_those_of_its_arrays():
    with jax.enable_x64(True):
        tree = {"one": jnp.asarray(PAIRS), "other": jnp.asarray([0.5, 1.5, 20.0])}
        found = log_normaliser(tree)
        for name, own in tree.items():
            np.testing.assert_allclose(found[name], log_normaliser(own), rtol=1e-13)
