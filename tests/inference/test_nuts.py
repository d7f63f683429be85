"""NUTS against posteriors that are known in closed form, and the promises of its driver."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import init_to_uniform

from consilience.errors import NonFinite, UnsupportedRequest
from consilience.inference import loop
from consilience.inference.nuts import _programs, run_nuts
from consilience.inference.results import Result
from consilience.models.diagnostics import convergence
from tests.inference.runs import stop_at

CONCENTRATION = np.array([0.8, 2.0, 5.0], np.float32)
LOCATION, PRECISION, SHAPE, RATE = 1.0, 0.5, 3.0, 4.0


def default_concentration(data):
    return dist.Dirichlet(CONCENTRATION)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Priors:
    concentration: dist.Distribution | Callable = default_concentration
    variance: dist.Distribution | Callable = dataclasses.field(default_factory=lambda: dist.InverseGamma(SHAPE, RATE))


def conjugate(data, priors):
    """Class probabilities from counts, a mean and a variance from ratings: both posteriors are known and skewed."""
    concentration = priors.concentration
    probabilities = numpyro.sample("probabilities", concentration(data) if callable(concentration) else concentration)
    numpyro.sample("counts", dist.Multinomial(20, probabilities), obs=data["counts"])
    variance = numpyro.sample("variance", priors.variance)
    mean = numpyro.sample("mean", dist.Normal(LOCATION, jnp.sqrt(variance / PRECISION)))
    numpyro.deterministic("log_variance", jnp.log(variance))
    numpyro.sample("ratings", dist.Normal(mean, jnp.sqrt(variance)), obs=data["ratings"])


@dataclasses.dataclass(frozen=True)
class Bound:
    """The model with its priors, as one hashable function of the data."""

    priors: Priors

    def __call__(self, data):
        conjugate(data, self.priors)


MODEL = Bound(Priors())
DATA = {"counts": np.array([1, 7, 12]), "ratings": np.array([2.5, 3.0, 7.5, 4.0, 3.5])}
SETTINGS = {"draws": 600, "chains": 4, "warmup": 400}


def conjugate_moments(data):
    """Mean and variance of every scalar of the posterior of `conjugate`."""
    concentration = CONCENTRATION + data["counts"]
    total = concentration.sum()
    probabilities = concentration / total
    ratings = data["ratings"]
    count, average = len(ratings), ratings.mean()
    precision, shape = PRECISION + count, SHAPE + count / 2
    rate = (
        RATE + 0.5 * ((ratings - average) ** 2).sum() + 0.5 * PRECISION * count * (average - LOCATION) ** 2 / precision
    )
    variance = rate / (shape - 1)
    return {
        "probabilities": (probabilities, probabilities * (1 - probabilities) / (total + 1)),
        "variance": (variance, variance**2 / (shape - 2)),
        "mean": ((PRECISION * LOCATION + count * average) / precision, variance / precision),
    }


def assert_means(draws, expected, name):
    """Hold a mean within five Monte Carlo standard errors, once there are enough effective draws to say so."""
    effective = convergence(draws).ess_mean
    assert (effective > 400).all(), name
    error = draws.std(axis=(0, 1)) / np.sqrt(effective)
    np.testing.assert_array_less(np.abs(draws.mean(axis=(0, 1), dtype=np.float64) - expected), 5 * error, err_msg=name)


@pytest.fixture(scope="module")
def run():
    return run_nuts(MODEL, DATA, key=jax.random.key(0), **SETTINGS)


def test_moments_are_those_of_the_closed_form(run):
    assert run.result is Result.max_steps
    assert run.steps == SETTINGS["warmup"] + SETTINGS["draws"]
    for name, (mean, variance) in conjugate_moments(DATA).items():
        draws = run.samples[name]
        assert draws.shape[:2] == (4, 600)
        assert (convergence(draws).r_hat < 1.01).all()
        assert (convergence(draws).ess_bulk > 400).all()
        assert_means(draws, mean, name)
        assert_means((draws - mean) ** 2, variance, f"{name} squared")


def test_stats_and_deterministic_sites_come_with_the_draws(run):
    np.testing.assert_allclose(run.samples["log_variance"], np.log(run.samples["variance"]), rtol=1e-5)
    assert set(run.samples) == {"probabilities", "variance", "mean", "log_variance"}
    assert {name: stat.shape for name, stat in run.stats.items()} == dict.fromkeys(
        ("lp", "accept_prob", "num_steps", "diverging"), (4, 600)
    )
    assert 0.7 < run.stats["accept_prob"].mean() < 0.95
    assert not run.stats["diverging"].any()
    # The density of the unconstrained space: that of the support plus the logarithm of the transforms' Jacobians.
    point = {name: run.samples[name][1, 7] for name in ("probabilities", "variance", "mean")}
    inverse = {"probabilities": dist.transforms.StickBreakingTransform(), "variance": dist.transforms.ExpTransform()}
    log_joint = numpyro.infer.util.log_density(conjugate, (DATA, Priors()), {}, point)[0]
    jacobian = sum(t.log_abs_det_jacobian(t.inv(point[name]), point[name]) for name, t in inverse.items())
    np.testing.assert_allclose(run.stats["lp"][1, 7], log_joint + jacobian, rtol=1e-5)


def test_equal_keys_give_equal_bits_wherever_chunks_begin(run, monkeypatch):
    monkeypatch.setattr(loop, "_SECONDS_PER_CHUNK", 0.0)  # every chunk counts as slow: one step each
    short = run_nuts(MODEL, DATA, key=jax.random.key(0), **SETTINGS | {"draws": 100})
    jax.tree.map(lambda few, many: np.testing.assert_array_equal(few, many[:, :100]), short.samples, run.samples)
    jax.tree.map(lambda few, many: np.testing.assert_array_equal(few, many[:, :100]), short.stats, run.stats)
    other = run_nuts(MODEL, DATA, key=jax.random.key(1), **SETTINGS | {"draws": 100})
    assert not np.array_equal(other.samples["mean"], short.samples["mean"])


def test_a_second_run_of_equal_shapes_compiles_nothing(compilations):
    run_nuts(MODEL, DATA, key=jax.random.key(0), **SETTINGS | {"draws": 250})
    compilations.clear()
    data = {"counts": np.array([9, 9, 2]), "ratings": DATA["ratings"] - 1}
    other = run_nuts(MODEL, data, key=jax.random.key(5), **SETTINGS | {"draws": 250})
    assert not compilations
    for name, (mean, _) in conjugate_moments(data).items():
        assert_means(other.samples[name], mean, name)


def test_an_interrupt_keeps_the_draws_there_are(run):
    settings = {"key": jax.random.key(0), **SETTINGS}
    early = run_nuts(MODEL, DATA, progress=stop_at(1), **settings)
    assert early.result is Result.interrupted
    assert early.samples["probabilities"].shape == (4, 0, 3)
    late = run_nuts(MODEL, DATA, progress=stop_at(500), **settings)
    assert late.result is Result.interrupted
    kept = late.steps - SETTINGS["warmup"]
    assert 100 <= kept < 600
    np.testing.assert_array_equal(late.samples["mean"], run.samples["mean"][:, :kept])
    limited = run_nuts(MODEL, DATA, time_limit=0.0, **settings)
    assert limited.result is Result.interrupted
    assert "time limit" in limited.message


def test_no_steps_at_all_of_a_model_of_the_data_alone():
    def my_model(data):
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        numpyro.sample("events", dist.Poisson(rate), obs=data)

    run = run_nuts(my_model, np.array([3.0, 4.0, 2.0]), key=jax.random.key(0), draws=0, chains=2, warmup=0)
    assert run.result is Result.max_steps
    assert run.samples["rate"].shape == run.stats["lp"].shape == (2, 0)


def subsample():
    with numpyro.plate("row", 10, subsample_size=2):
        pass


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (lambda: numpyro.sample("truth", dist.Categorical(jnp.ones(2) / 2)), ["'truth'", "numpyro.factor"]),
        (lambda: numpyro.param("slope", 1.0), ["'slope'", "numpyro.sample"]),
        (subsample, ["'row'", "subsample_size"]),
    ],
)
def test_sites_that_gradients_cannot_explore_are_refused_by_name(add, words):
    def model(data):
        numpyro.sample("mean", dist.Normal(0, 1))
        add()

    with pytest.raises(UnsupportedRequest) as refusal:
        run_nuts(model, np.zeros(2), key=jax.random.key(0))
    assert all(word in str(refusal.value) for word in words)


def test_a_model_without_latent_sites_is_refused():
    def fixed(data):
        numpyro.sample("ratings", dist.Normal(0, 1), obs=data)

    with pytest.raises(UnsupportedRequest, match="'fixed' has no latent site"):
        run_nuts(fixed, np.zeros(2), key=jax.random.key(0))


def test_data_that_no_parameter_explains_are_an_error_that_names_the_site():
    def model(data):
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        numpyro.sample("waiting", dist.Exponential(rate), obs=data)

    with pytest.raises(NonFinite, match=r"'waiting' \(1 of 3 terms\)"):
        run_nuts(model, np.array([1.0, np.nan, 2.0]), key=jax.random.key(0), draws=1, warmup=1, chains=1)


def test_chains_start_where_they_are_told():
    start = {
        "probabilities": np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]], np.float32),
        "variance": np.array([2.0, 9.0], np.float32), "mean": np.array([-3.0, 5.0], np.float32),
    }  # fmt: skip
    program = _programs(MODEL, 0, 0.8, init_to_uniform, 100)[0]
    values = program(jax.random.split(jax.random.key(0), 2), start, DATA)[1]["values"]
    for site, wanted in start.items():
        np.testing.assert_allclose(values[site], wanted, rtol=1e-5)
