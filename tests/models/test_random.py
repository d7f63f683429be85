"""Gamma draws in log space, against distribution functions of SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from consilience.models.random import GammaQuantiles, log_gamma, log_gamma_maxima

SHAPES = (0.01, 0.1, 0.7, 1.0, 1.3, 5.0, 100.0)
NUM_DRAWS = 20_000


def log_gamma_cdf(log_draw, shape):
    """P(log G <= log_draw), by the leading term x^a / Gamma(a + 1) where x would underflow."""
    small = log_draw < -30
    leading = np.exp(shape * log_draw - special.gammaln(shape + 1))
    return np.where(small, leading, special.gammainc(shape, np.exp(np.where(small, 0.0, log_draw))))


@pytest.mark.parametrize("x64", [False, True])
def test_distribution(x64):
    with jax.enable_x64(x64):
        shapes = jnp.repeat(jnp.asarray(SHAPES), NUM_DRAWS).reshape(len(SHAPES), NUM_DRAWS)
        draws = jax.jit(log_gamma)(jax.random.key(0), shapes)
        assert draws.dtype == (jnp.float64 if x64 else jnp.float32)
    for shape, row in zip(SHAPES, np.asarray(draws, float), strict=True):
        assert np.isfinite(row).all()
        assert stats.kstest(log_gamma_cdf(row, shape), "uniform").pvalue > 1e-4, shape
        # Two moments of the logarithm, in units of their errors: digamma and trigamma.
        error = row.std() / np.sqrt(NUM_DRAWS)
        assert abs(row.mean() - special.digamma(shape)) < 5 * error, shape
        squared = (row - row.mean()) ** 2
        assert abs(squared.mean() - special.polygamma(1, shape)) < 5 * squared.std() / np.sqrt(NUM_DRAWS), shape


def test_elements_are_independent_and_keys_matter():
    draw = jax.jit(lambda key: log_gamma(key, jnp.full((2, NUM_DRAWS), 0.4)))
    first, second = np.asarray(draw(jax.random.key(1)))
    other = np.asarray(draw(jax.random.key(2)))[0]
    for one, two in ((first, second), (first, other), (first[1:], first[:-1])):
        assert abs(np.corrcoef(one, two)[0, 1]) < 5 / np.sqrt(NUM_DRAWS)
    np.testing.assert_array_equal(np.asarray(draw(jax.random.key(1)))[0], first)
    assert len(np.unique(first)) > 0.95 * NUM_DRAWS


def test_buffers_smaller_than_the_rejections_are_filled_again():
    draw = jax.jit(jax.vmap(lambda key: log_gamma(key, jnp.full(17, 2.0))))  # one rejection fills the buffer
    draws = draw(jax.random.split(jax.random.key(0), 3000))
    assert stats.kstest(np.exp(np.asarray(draws, float)).ravel(), stats.gamma(2.0).cdf).pvalue > 1e-4


@pytest.mark.parametrize("shape", [0.01, 0.1, 1.0, 5.0])
def test_quantiles(shape):
    t = np.linspace(-50, 20, 997)
    with jax.enable_x64(True):
        log_quantile = np.asarray(GammaQuantiles.of(shape).at(jnp.asarray(t)))
    lower = special.gammaincinv(shape, special.expit(t))
    exact = np.where(t > 0, special.gammainccinv(shape, special.expit(-t)), lower)
    usable = exact > 1e-200
    np.testing.assert_allclose(log_quantile[usable], np.log(exact[usable]), atol=3e-7)
    far = -5000.0  # beyond the grid F(x) = x^a / Gamma(a + 1)
    with jax.enable_x64(True):
        value = float(GammaQuantiles.of(shape).at(jnp.asarray(far)))
    assert value == pytest.approx((far + special.gammaln(shape + 1)) / shape, rel=1e-5)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("shape", [0.05, 1.5])
def test_maxima_are_order_statistics(x64, shape):
    """The r-th largest of n: against its exact distribution; and jointly, by the gap of the first two."""
    counts, depth = np.array([1, 2, 7, 1000]), 3
    with jax.enable_x64(x64):
        draws = log_gamma_maxima(jax.random.key(5), GammaQuantiles.of(shape), jnp.asarray(counts), NUM_DRAWS, depth)
    draws = np.asarray(draws, float)
    assert np.all(draws[:-1] >= draws[1:])
    for place, count in enumerate(counts):
        for rank in range(depth):
            values = draws[rank, place]
            if rank >= count:
                assert np.all(values == -np.inf)
                continue
            # F(G_(r)) of n uniforms is Beta(n - r, r + 1), r from 0.
            level = stats.beta(count - rank, rank + 1).cdf(log_gamma_cdf(values, shape))
            assert stats.kstest(level, "uniform").pvalue > 1e-4, (count, rank)
    brute = np.sort(np.random.default_rng(0).gamma(shape, size=(NUM_DRAWS, 7)), axis=1)[:, ::-1]
    with np.errstate(divide="ignore"):
        ratio = np.exp(np.log(brute[:, 1]) - np.log(brute[:, 0]))
    assert stats.ks_2samp(np.exp(draws[1, 2] - draws[0, 2]), ratio).pvalue > 1e-4
