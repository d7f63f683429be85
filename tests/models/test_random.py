"""Gamma draws in log space and binomial draws, against distribution functions of SciPy."""

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from consilience.models import random as random_module
from consilience.models.random import (
    GammaQuantiles,
    binomial,
    log_gamma,
    log_gamma_maxima,
    log_largest_shares,
    uniform_pairs,
)

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


@pytest.mark.parametrize("x64", [False, True])
def test_a_draw_is_a_function_of_key_number_and_shape(x64):
    """Neither the others nor the order of all change a bit; low shapes are rejected and redrawn, or boosted."""
    random = np.random.default_rng(0)
    shape, number = random.choice(SHAPES, 5000), random.permutation(1 << 20)[:5000].astype(np.uint32)
    with jax.enable_x64(x64):
        draw = jax.jit(log_gamma)
        key, shape = jax.random.key(3), np.asarray(shape, jnp.result_type(float))
        whole = np.asarray(draw(key, shape, number))
        order = random.permutation(5000)
        np.testing.assert_array_equal(draw(key, shape[order], number[order]), whole[order])
        np.testing.assert_array_equal(draw(key, shape[:37], number[:37]), whole[:37])
        changed = np.where(np.arange(5000) % 2, shape, 1.0).astype(shape.dtype)
        np.testing.assert_array_equal(np.asarray(draw(key, changed, number))[1::2], whole[1::2])
        assert np.mean(np.asarray(draw(key, changed, number))[::2] == whole[::2]) < 0.3


def test_columns_with_several_rejections_are_redrawn_to_the_end():
    """The shape of the most rejections, of few elements and of many, under `jax.vmap`."""
    draw = jax.jit(jax.vmap(lambda key: log_gamma(key, jnp.full(17, 1.0))))
    draws = draw(jax.random.split(jax.random.key(0), 3000))
    assert stats.kstest(np.exp(np.asarray(draws, float)).ravel(), "expon").pvalue > 1e-4
    assert log_gamma(jax.random.key(0), jnp.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("x64", [False, True])
def test_uniform_pairs(x64):
    number = np.arange(NUM_DRAWS, dtype=np.uint32)
    with jax.enable_x64(x64):
        draw = jax.jit(lambda key, attempt: uniform_pairs(key, number, attempt, jnp.result_type(float)))
        first = np.asarray(draw(jax.random.key(0), np.full_like(number, 7)), float)
        others = [draw(jax.random.key(0), np.full_like(number, 8)), draw(jax.random.key(1), np.full_like(number, 7))]
    assert first.min() > 0
    assert first.max() < 1
    samples = [*first, *(np.asarray(row, float) for pair in others for row in pair)]
    for row in samples:
        assert stats.kstest(row, "uniform").pvalue > 1e-4
    correlation = np.corrcoef([*samples, first[0][np.arange(NUM_DRAWS) - 1]])
    assert np.abs(np.triu(correlation, 1)).max() < 5 / np.sqrt(NUM_DRAWS)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(
    ("trials", "probability"),
    [(1, 0.3), (3, 0.5), (64, 0.9), (65, 0.02), (300, 0.999), (1000, 0.5), (40, 0.0), (9, 1.0)],
)
def test_binomial(trials, probability, x64):
    """Against the distribution function, beside variables of other numbers of trials."""
    with jax.enable_x64(x64):
        dtype = jnp.result_type(float)
        number = np.tile([trials, 7.0, 0.0, 129.0], NUM_DRAWS // 4).astype(dtype)
        p = np.tile([probability, 0.5, 0.5, 0.5], NUM_DRAWS // 4).astype(dtype)
        drawn = jax.jit(binomial)(jax.random.key(trials), number, p)
        assert drawn.dtype == dtype
        drawn = np.asarray(drawn, float).reshape(-1, 4).T
    assert np.all(drawn == np.round(drawn))
    assert np.all(drawn[2] == 0)
    for row, size, chance in zip(drawn[[0, 1, 3]], (trials, 7, 129), (probability, 0.5, 0.5), strict=True):
        cells = np.unique(stats.binom(size, chance).ppf([0.15, 0.3, 0.5, 0.7, 0.85]))
        expected = np.diff(stats.binom(size, chance).cdf([-1, *cells, size])) * len(row)
        counted = np.histogram(row, [-0.5, *(cells + 0.5), size + 0.5])[0]
        assert np.all(counted[expected == 0] == 0)
        seen = expected > 1e-9
        assert seen.sum() == 1 or stats.chisquare(counted[seen], expected[seen]).pvalue > 1e-4


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


def largest_shares(concentration, counts, num_draws=NUM_DRAWS, depth=3, seed=7):
    return log_largest_shares(jax.random.key(seed), concentration, np.array(counts), num_draws, depth)


@pytest.mark.parametrize("concentration", [0.3, 1.0, 2.5])
def test_largest_shares_are_those_of_complete_dirichlet_draws(concentration):
    counts = [1, 2, 3, 5, 50, 300]
    drawn = np.exp(largest_shares(concentration, counts))
    random = np.random.default_rng(1)
    for size, count in enumerate(counts):
        brute = np.sort(random.dirichlet(np.full(count, concentration), NUM_DRAWS), axis=1)[:, ::-1].T
        shown = min(3, count)
        np.testing.assert_array_equal(drawn[size, shown:], 0)
        if count == 1:
            np.testing.assert_allclose(drawn[size, 0], 1, rtol=1e-12)
            continue
        for rank in range(shown):
            assert stats.ks_2samp(drawn[size, rank], brute[rank]).pvalue > 1e-4, (count, rank)
        assert stats.ks_2samp(drawn[size, 1] / drawn[size, 0], brute[1] / brute[0]).pvalue > 1e-4, count


def test_largest_uniform_spacings_have_their_known_means():
    """The r-th largest of n uniform spacings has the mean (1/r + … + 1/n) / n."""
    counts = [1, 2, 3, 7, 50, 418]
    drawn = np.exp(largest_shares(1.0, counts))
    for size, count in enumerate(counts):
        for rank in range(min(3, count)):
            mean = (1 / np.arange(rank + 1, count + 1)).sum() / count
            error = drawn[size, rank].std() / np.sqrt(NUM_DRAWS) + 1e-12
            assert abs(drawn[size, rank].mean() - mean) < 5 * error, (count, rank)


def test_largest_shares_do_not_underflow():
    concentration = 0.01
    drawn = largest_shares(concentration, [2, 3])
    assert np.isfinite(drawn[0, :2]).all()
    assert np.isfinite(drawn[1]).all()
    assert np.all(np.diff(drawn[1], axis=0) < 0)
    log_least = drawn[0, 1]
    assert log_least.min() < -750  # the smallest float64 is exp(-744)
    # The smaller one of two shares: twice the distribution function of Beta, by its leading term where x underflows.
    small = log_least < -30
    leading = np.exp(concentration * log_least - special.betaln(concentration, concentration)) / concentration
    exact = special.betainc(concentration, concentration, np.exp(np.where(small, -30, log_least)))
    assert stats.kstest(2 * np.where(small, leading, exact), "uniform").pvalue > 1e-4


def test_largest_shares_of_a_smaller_depth_come_first():
    counts, draws = [0, 3, 200], 50
    deep = largest_shares(0.5, counts, draws, 7)
    assert np.all(deep[0] == -np.inf)
    assert np.all(deep[1, 3:] == -np.inf)
    for depth in (1, 3):
        np.testing.assert_array_equal(largest_shares(0.5, counts, draws, depth), deep[:, :depth])
    np.testing.assert_allclose(np.exp(largest_shares(0.5, [5], draws, 9)).sum(axis=1), 1, rtol=1e-12)
    assert not np.any(largest_shares(0.5, [200], draws, 3, seed=8) == deep[2, :3])


def test_chunks_change_nothing_and_draws_are_independent(monkeypatch):
    whole = largest_shares(1.0, [3, 200, 777])
    monkeypatch.setattr(random_module, "_CHUNK_NUMBERS", 190 * NUM_DRAWS)
    np.testing.assert_allclose(largest_shares(1.0, [3, 200, 777]), whole, rtol=1e-12)
    for rows in whole[:, 0]:
        assert abs(np.corrcoef(rows[1:], rows[:-1])[0, 1]) < 5 / np.sqrt(NUM_DRAWS)


def test_largest_shares_of_a_million_need_little_memory():
    tracemalloc.start()
    drawn = largest_shares(1.0, [10**6 - 1, 10**6], 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e7  # all of the gammas are 160 MB
    mean, sd = (np.log(10**6) + np.euler_gamma) / 1e6, np.pi / np.sqrt(6) / 1e6
    assert abs(np.exp(drawn[1, 0]).mean() - mean) < 5 * sd / np.sqrt(20)
