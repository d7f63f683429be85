"""SVI against evidences and moments that are known, and the promises of its driver."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import init_to_median
from numpyro.infer.autoguide import AutoMultivariateNormal
from scipy.special import gammaln

from consilience.errors import NonFinite, UnsupportedRequest
from consilience.inference.results import Result
from consilience.inference.svi import run_svi
from tests.inference.runs import stop_at

CONCENTRATION = np.array([0.8, 2.0, 5.0, 1.0], np.float32)
COUNTS = np.array([30, 71, 12, 140])


def counts_model(data):
    probabilities = numpyro.sample("probabilities", dist.Dirichlet(CONCENTRATION))
    numpyro.deterministic("odds", probabilities[..., 0] / (1 - probabilities[..., 0]))
    numpyro.factor("counts", (data * jnp.log(probabilities)).sum())


def counts_evidence(counts):
    total = CONCENTRATION + counts
    beta = [gammaln(values).sum() - gammaln(values.sum()) for values in (total, CONCENTRATION.astype(float))]
    return beta[0] - beta[1]


def correlated_model(data):
    """A line through points: the posterior is a correlated normal, and the evidence a multivariate normal density."""
    intercept = numpyro.sample("intercept", dist.Normal(1.0, 2.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    numpyro.sample("y", dist.Normal(intercept + slope * data["x"], 1.0), obs=data["y"])


def line_posterior(data):
    design = np.stack([np.ones(len(data["x"])), data["x"]], axis=1)
    precision = design.T @ design + np.eye(2) / 4
    covariance = np.linalg.inv(precision)
    mean = covariance @ (design.T @ data["y"] + np.array([1.0, 0.0]) / 4)
    marginal = np.eye(len(design)) + 4 * design @ design.T
    residual = data["y"] - design @ np.array([1.0, 0.0])
    log_evidence = -0.5 * (residual @ np.linalg.solve(marginal, residual) + np.linalg.slogdet(2 * np.pi * marginal)[1])
    return mean, covariance, log_evidence


LINE = {"x": np.linspace(0, 4, 9), "y": np.array([0.1, 1.9, 1.2, 3.3, 2.9, 5.1, 4.2, 6.4, 6.0])}


@pytest.fixture(scope="module")
def run():
    return run_svi(counts_model, COUNTS, key=jax.random.key(0), draws=2000)


def test_the_bound_is_below_the_evidence_and_close(run):
    assert run.result is Result.converged
    evidence = counts_evidence(COUNTS)
    last = run.elbo[-250:]
    assert last.mean() < evidence + 5 * last.std() / np.sqrt(250)
    assert evidence - last.mean() < 0.1  # nats; the posterior of the log ratios is close to normal
    # The mean of the log weights is the same bound, from other draws.
    weights = run.stats["log_weight"].ravel()
    assert abs(weights.mean() - last.mean()) < 5 * np.hypot(weights.std() / np.sqrt(2000), last.std() / np.sqrt(250))
    assert run.k_hat < 0.7


def test_the_elbo_of_every_step_is_kept(run):
    assert run.elbo.dtype == np.float64
    assert run.elbo.shape == (run.steps,)
    assert np.isfinite(run.elbo).all()
    assert run.elbo[-250:].mean() > run.elbo[:50].mean()


def test_draws_are_in_the_support_and_have_the_posterior_s_moments(run):
    draws = run.samples["probabilities"]
    assert draws.shape == (1, 2000, 4)
    np.testing.assert_allclose(draws.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(run.samples["odds"], draws[..., 0] / (1 - draws[..., 0]), rtol=1e-4)
    total = CONCENTRATION + COUNTS
    mean = total / total.sum()
    sd = np.sqrt(mean * (1 - mean) / (total.sum() + 1))
    # The fit's own error is about a tenth of a posterior standard deviation, far above that of 2000 draws.
    np.testing.assert_array_less(np.abs(draws[0].mean(axis=0) - mean), 0.25 * sd)
    np.testing.assert_allclose(draws[0].std(axis=0), sd, rtol=0.15)


def test_the_mean_field_guide_of_a_correlated_normal_is_the_one_of_theory():
    mean, covariance, evidence = line_posterior(LINE)
    run = run_svi(correlated_model, LINE, key=jax.random.key(1), draws=2000)
    precision = np.linalg.inv(covariance)
    # Minimising KL(q || p) over independent normals gives the means and the inverse diagonal of the precision; the
    # bound falls short of the evidence by half the log ratio of determinants.
    gap = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
    for index, site in enumerate(("intercept", "slope")):
        narrow = 1 / np.sqrt(precision[index, index])
        assert abs(run.samples[site].mean() - mean[index]) < 0.3 * narrow
        np.testing.assert_allclose(run.samples[site].std(), narrow, rtol=0.15)
    assert gap > 0.3
    np.testing.assert_allclose(run.elbo[-250:].mean(), evidence - gap, atol=0.15)


def test_a_guide_that_holds_the_posterior_attains_the_evidence():
    _, _, evidence = line_posterior(LINE)
    run = run_svi(
        correlated_model, LINE, key=jax.random.key(2), guide=AutoMultivariateNormal, init_strategy=init_to_median
    )
    np.testing.assert_allclose(run.elbo[-250:].mean(), evidence, atol=0.05)
    assert run.result is Result.converged


def test_equal_keys_give_equal_bits_and_another_run_compiles_nothing(run, compilations):
    again = run_svi(counts_model, COUNTS, key=jax.random.key(0), draws=2000)
    jax.tree.map(np.testing.assert_array_equal, again.samples, run.samples)
    np.testing.assert_array_equal(again.elbo, run.elbo)
    compilations.clear()
    other = run_svi(counts_model, COUNTS[::-1].copy(), key=jax.random.key(3), draws=150, max_steps=300)
    assert other.result is Result.max_steps
    assert other.samples["probabilities"].shape == (1, 150, 4)
    assert other.steps == len(other.elbo) == 300
    assert not compilations


def test_interrupts_and_limits_keep_what_there_is(run):
    interrupted = run_svi(counts_model, COUNTS, key=jax.random.key(0), draws=2000, progress=stop_at(500))
    assert interrupted.result is Result.interrupted
    assert "keyboard" in interrupted.message
    np.testing.assert_array_equal(interrupted.elbo, run.elbo[:500])
    assert interrupted.samples["probabilities"].shape == (1, 2000, 4)
    limited = run_svi(counts_model, COUNTS, key=jax.random.key(0), draws=2000, time_limit=0.0)
    assert (limited.result, limited.steps) == (Result.interrupted, 250)
    none = run_svi(counts_model, COUNTS, key=jax.random.key(0), draws=0, max_steps=0)
    assert (none.result, none.steps, none.elbo.shape) == (Result.max_steps, 0, (0,))
    assert none.samples["probabilities"].shape == (1, 0, 4)


def test_a_bound_that_stops_being_finite_ends_the_run_with_the_last_finite_guide():
    def cliff(data):
        place = numpyro.sample("place", dist.Normal(0.0, 100.0))
        # The density rises towards a wall behind which it is not a number.
        numpyro.factor("rise", jnp.where(place > 20.0, jnp.nan, 10.0 * place))

    run = run_svi(cliff, np.zeros(1), key=jax.random.key(0))
    assert run.result is Result.nonfinite
    assert f"step {run.steps}" in run.message
    assert np.isfinite(run.elbo).all()
    assert len(run.elbo) == run.steps
    assert 0 < run.samples["place"].mean() < 20


def test_refusals_name_the_site():
    def discrete(data):
        numpyro.sample("truth", dist.Categorical(jnp.ones(2) / 2))
        numpyro.sample("mean", dist.Normal(0, 1))

    with pytest.raises(UnsupportedRequest, match="'truth'"):
        run_svi(discrete, np.zeros(2), key=jax.random.key(0))

    def impossible(data):
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        numpyro.sample("waiting", dist.Exponential(rate), obs=data)

    with pytest.raises(NonFinite, match=r"'waiting' \(1 of 2 terms\)"):
        run_svi(impossible, np.array([1.0, np.nan]), key=jax.random.key(0))
