"""Likelihoods of the records of one entity: worked numbers, and explicit sums over what is summed out."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln

from consilience.models.block_linkage.likelihoods import LIKELIHOODS, differing
from consilience.models.block_linkage.parameters import Parameters

SHARE = np.array([0.6, 0.3, 0.1])


def marginals(name, values, share, distortion):
    """Return the probability of every subset of records with one field, missing ones included."""
    values = np.asarray(values)[:, None, None]
    own = np.append(share, 1)[values]
    relative = LIKELIHOODS[name].log_marginals(values, own, np.array([distortion]), np)[:, 0]
    members = np.arange(2 ** len(values))[:, None] >> np.arange(len(values)) & 1
    return np.exp(relative + members @ np.log(own[:, 0, 0]))


def summed(values, share, distortion):
    """Sum over the true value and over which records are distorted, one by one."""
    total = 0.0
    for true in range(len(share)):
        for distorted in itertools.product((False, True), repeat=len(values)):
            term = share[true]
            for value, is_distorted in zip(values, distorted, strict=True):
                copy = 1.0 if value < 0 else float(value == true)
                term *= distortion * (1 if value < 0 else share[value]) if is_distorted else (1 - distortion) * copy
            total += term
    return total


def test_worked_numbers_of_hit_miss():
    probability = marginals("hit-miss", [2, 2, 0], SHARE, 0.1)
    np.testing.assert_allclose(probability[[1, 3, 5, 7]], [0.1, 0.0829, 0.0114, 0.005028], rtol=1e-12)


@pytest.mark.parametrize("values", [(2, 2, 0), (0, 1, 2), (1, 1, 1, 1), (0, -1, 0), (-1, -1), (0, 1, 1, 0, -1)])
@pytest.mark.parametrize("distortion", [0.03, 0.4, 0.99])
def test_hit_miss_is_the_sum_over_true_values_and_distortions(values, distortion):
    probability = marginals("hit-miss", values, SHARE, distortion)
    for subset in range(2 ** len(values)):
        chosen = [value for place, value in enumerate(values) if subset >> place & 1]
        assert np.isclose(probability[subset], summed(chosen, SHARE, distortion), rtol=1e-12)


@pytest.mark.parametrize("name", ["hit-miss", "dirichlet-multinomial"])
def test_single_precision_holds_many_records_of_a_rare_value(name):
    # The product over seven records of a value of share 1e-8 is 1e48.
    values = np.array([[0] * 7, [0, 0, 0, 1, 1, 1, 2]]).T[:, :, None]
    share = np.array([1e-8, 1e-7, 0.3])[values]
    expected = LIKELIHOODS[name].log_marginals(values, share, np.array([0.02, 0.05]), np)
    single = [jnp.asarray(one, jnp.float32) for one in (share, [0.02, 0.05])]
    found = LIKELIHOODS[name].log_marginals(jnp.asarray(values), *single, jnp)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_worked_numbers_of_the_dirichlet_multinomial():
    distortion = 1 - np.sqrt(1 / 1.11)  # a / (1 + a) = 1 - (1 - b)² with a = .11
    values = np.array([0, 0, 1])[:, None, None]
    share = np.array([0.1, 0.1, 0.9])[:, None, None]
    relative = LIKELIHOODS["dirichlet-multinomial"].log_marginals(values, share, np.array([distortion]), np)
    np.testing.assert_allclose(np.exp(relative[[3, 5], 0]), [9.108108, 0.099099], rtol=1e-5)


@pytest.mark.parametrize("values", [(2, 2, 0), (1, 1, 1, 1), (0, -1, 0), (0, 1, 1, 0, -1)])
def test_the_dirichlet_multinomial_is_its_closed_form(values):
    differ = differing(0.2)
    concentration = differ / (1 - differ) * SHARE
    probability = marginals("dirichlet-multinomial", values, SHARE, 0.2)
    for subset in range(2 ** len(values)):
        chosen = [value for place, value in enumerate(values) if subset >> place & 1 and value >= 0]
        number = np.bincount(np.array(chosen, int), minlength=3)
        expected = (gammaln(concentration + number) - gammaln(concentration)).sum()
        expected += gammaln(concentration.sum()) - gammaln(concentration.sum() + number.sum())
        assert np.isclose(probability[subset], np.exp(expected), rtol=1e-10)


@pytest.mark.parametrize("name", [name for name, likelihood in LIKELIHOODS.items() if likelihood.additive])
def test_a_pair_has_the_terms_of_its_fields(name):
    shares, first_value = np.array([0.6, 0.3, 0.1, 0.7, 0.3]), np.array([0, 3, 5])
    parameters = Parameters(shares, np.array([0.1, 0.3]), 10.0, np.array([0.9, 0.1]))
    agree, differ = LIKELIHOODS[name].pair_terms(parameters, first_value)
    pairs = np.array([[[2, 4], [2, 3]], [[0, -1], [1, 4]], [[1, 3], [1, 3]]])
    values = pairs.transpose(1, 2, 0)
    relative = LIKELIHOODS[name].log_marginals(values, np.append(shares, 1)[values], parameters.distortion, np)
    np.testing.assert_allclose(relative[3], [agree[2] + differ[1], differ[0], agree[1] + agree[3]], rtol=1e-12)
