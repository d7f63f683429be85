"""The k-hat of CAVI: draws of its factors, their weights, and what is said of it; and NUTS that starts there."""

import dataclasses
import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy import stats

import consilience as cs
from consilience.data import Annotations
from consilience.errors import DiagnosticWarning
from consilience.inference import approximation
from consilience.inference.approximation import approximation_k_hat, chain_starts, draw_factors, log_weights
from consilience.inference.posterior import approximation_notes
from consilience.models import dawid_skene, mace, member, mpa
from consilience.models.sites import Sites
from consilience.notes import Level

# Of small crowds more is said than what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

NAMES = ("dawid-skene", "mace", "mpa")
# Without mirror modes, of which the approximation has one only.
LOPSIDED = {
    "dawid-skene": dawid_skene.Priors(confusion=dawid_skene.Diagonal(5.0)),
    "mace": mace.Priors(competence=mace.KnowsGuesses(2.0, 2.0)),
    "mpa": mpa.Priors(sensitivity=mpa.BetaPrior(6.0, 1.0), specificity=mpa.BetaPrior(6.0, 1.0)),
}


def simulated(name, num_items=30, **sizes):
    sizes = {"num_annotators": 4, "num_labels": 2, **sizes}
    return member(name).simulate(jax.random.key(0), num_items=num_items, **sizes)[0]


def test_factors_are_drawn_with_their_densities():
    factors = {
        "share": dist.Beta(np.array([9.0, 0.5]), np.array([0.02, 3.0])),
        "row": dist.Dirichlet(np.array([[0.3, 2.0, 5.0], [1.0, 1.0, 1.0]])),
    }
    drawn, density = draw_factors(factors, jax.random.key(1), 4000)
    assert {site: values.shape for site, values in drawn.items()} == {"share": (4000, 2), "row": (4000, 2, 3)}
    assert np.all((drawn["share"] > 0) & (drawn["share"] < 1))
    for site, factor in factors.items():
        error = np.sqrt(np.asarray(factor.variance) / 4000)
        assert np.all(np.abs(drawn[site].mean(axis=0) - np.asarray(factor.mean)) < 5 * error)
    # The first share is so close to one that its own density, and no other, is lost to rounding.
    factors.pop("share")
    drawn, density = draw_factors(factors, jax.random.key(1), 50)
    concentration = np.asarray(factors["row"].concentration, float)
    right = [
        sum(stats.dirichlet(c).logpdf(x / x.sum()) for c, x in zip(concentration, row, strict=True))
        for row in drawn["row"]
    ]
    np.testing.assert_allclose(density, right, rtol=1e-7, atol=1e-7)


def evidence_from_prior(fit, num_draws):
    """Return the mean likelihood of draws of the prior, and its standard error."""

    @jax.jit
    def likelihood(key):
        trace = handlers.trace(handlers.seed(fit.member.density, key)).get_trace(fit.resolved)
        return jnp.exp(trace["annotations"]["fn"].log_factor.sum())

    values = np.asarray(jax.lax.map(likelihood, jax.random.split(jax.random.key(4), num_draws)), float)
    return values.mean(), values.std() / np.sqrt(num_draws)


@pytest.mark.parametrize("name", NAMES)
def test_weights_average_to_the_evidence(name):
    fit = cs.fit(name, simulated(name, 4, num_annotators=2), LOPSIDED[name], "cavi")
    logs = log_weights(fit.member, fit.posterior, fit.resolved, key=jax.random.key(3), num_draws=5_000)
    weights = np.exp(logs)
    expected, error = evidence_from_prior(fit, 30_000)
    assert abs(weights.mean() - expected) < 5 * np.hypot(error, weights.std() / np.sqrt(len(weights)))
    assert error < 0.05 * expected
    # The bound is the mean logarithm of weights that also have the labels in them.
    assert logs.mean() > fit.elbo[-1] - 5 * logs.std() / np.sqrt(len(logs))


def test_of_annotations_that_say_nothing_the_approximation_is_exact():
    """An annotator with one label, and nobody else: the posterior has the form of the factors."""
    data = Annotations.from_codes([0, 1, 2], [0, 0, 0], [0, 0, 0], num_items=3, num_annotators=1, num_labels=1)
    fit = cs.fit("dawid-skene", data, method="cavi")
    assert fit.k_hat() == 0.0
    assert fit.describe()["k_hat"] == 0.0
    assert not any("k-hat" in one for one in fit.diagnostics())


def test_many_annotators_have_a_large_one_which_is_no_fault():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DiagnosticWarning)
        fit = cs.fit(
            "dawid-skene", simulated("dawid-skene", 300, num_annotators=30, annotations_per_item=4), diagonal=1
        )
    assert fit.method == "cavi"
    assert not any("k-hat" in one.text for one in fit.findings())
    assert "k_hat" not in fit.describe()
    (note,) = (one for one in fit.diagnostics() if "k-hat" in one)
    assert fit.describe()["k_hat"] == round(fit.k_hat(), 3) > 0.7
    (said,) = (one for one in fit.findings() if "k-hat" in one.text)
    assert said.level is Level.note
    assert note == said.words()
    assert note in fit.describe()["notes"]
    assert f"k-hat is {fit.k_hat():.2f}" in note
    assert "method='gibbs' samples the same model" in note


def test_it_is_stored_with_the_fit_once_it_is_known(tmp_path):
    fit = cs.fit("mace", simulated("mace"), method="cavi")
    fit.save(tmp_path / "before")
    unknown = cs.load_fit(tmp_path / "before")
    assert unknown.known_k_hat is None
    assert fit.k_hat() == pytest.approx(unknown.k_hat(), rel=1e-9)
    fit.save(tmp_path / "fit")
    again = cs.load_fit(tmp_path / "fit")
    assert again.known_k_hat == fit.k_hat()
    assert again.describe()["k_hat"] == fit.describe()["k_hat"]
    assert again.findings() == fit.findings()
    assert json.loads((tmp_path / "fit" / "fit.json").read_text())["run"]["k_hat"] == fit.k_hat()


def test_of_large_data_it_is_computed_when_asked_for_alone(monkeypatch):
    monkeypatch.setattr(approximation, "MOST_NUMBERS", 100)
    fit = cs.fit("mace", simulated("mace"), method="cavi")
    assert not any("k-hat" in one for one in fit.diagnostics())
    assert fit.known_k_hat is None
    assert np.isfinite(fit.k_hat())
    assert fit.known_k_hat == fit.k_hat()


def test_the_same_seed_gives_the_same_figure():
    data = simulated("mpa")
    one, other, different = (cs.fit("mpa", data, method="cavi", seed=seed).k_hat() for seed in (1, 1, 2))
    assert one == other != different


def test_members_that_state_no_factors_have_none():
    fit = cs.fit("dirichlet", simulated("dirichlet"))
    assert approximation_k_hat(fit.member, fit.posterior, fit.resolved, key=jax.random.key(0)) is None


@pytest.mark.parametrize("k_hat", [None, 0.7, 0.1, float("nan")])
def test_a_small_one_needs_no_words(k_hat):
    assert approximation_notes(k_hat, "gibbs") == []


# ---- starts of NUTS ----


@pytest.mark.parametrize("name", NAMES)
def test_chains_start_apart_near_the_approximation(name):
    own, data = member(name), simulated(name, 60)
    one, again = (chain_starts(own, own.resolve(data), key=jax.random.key(1), chains=3) for _ in range(2))
    fitted = cs.fit(name, data, method="cavi").posterior.factors
    for site, values in one.items():
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, again[site])
        mean, sd = np.asarray(fitted[site].mean), np.sqrt(np.asarray(fitted[site].variance))
        assert np.all(np.abs(values - mean) < 6 * sd + 1e-4)
        assert np.all(values[0] != values[1])


def test_without_an_approximation_chains_start_as_they_would():
    own, data = member("mace"), simulated("mace")
    uniform = mace.Priors(competence=dist.Uniform(0.0, 1.0))
    settings = {"key": jax.random.key(0), "chains": 2}
    assert chain_starts(own, own.resolve(data, uniform), **settings) is None
    assert chain_starts(member("dirichlet"), member("dirichlet").resolve(data), **settings) is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("name", ["mpa", "dawid-skene"])
def test_all_chains_of_nuts_stay_on_the_right_side(name):
    """Priors are symmetric: chains that start anywhere end in mirror modes, which here nothing maps to one."""
    own = dataclasses.replace(member(name), sites=Sites(*member(name).sites))
    skilled = {
        "mpa": mpa.Priors(prevalence=mpa.BetaPrior(50.0, 50.0), sensitivity=mpa.BetaPrior(8.0, 2.0)),
        "dawid-skene": dawid_skene.Priors(
            prevalence=dist.Dirichlet(np.full(3, 50.0)), confusion=dawid_skene.Diagonal(8.0)
        ),
    }[name]
    data, _ = own.simulate(jax.random.key(2), skilled, num_items=150, num_annotators=5, num_labels=3)
    fit = cs.fit(own, data, method="nuts", draws=400, warmup=300)
    assert fit.attributes["start"] == "draws of CAVI"
    if name == "mpa":
        youden = fit.posterior.sensitivity + fit.posterior.specificity - 1
        assert np.all(youden.reshape(4, 400, *youden.shape[1:]).mean(axis=(1, 2)) > 0)
    else:
        assert np.all(np.einsum("cdjtt->ct", fit.posterior.chains["confusion"]) > 0.5 * 400 * 5)
    assert fit.attributes["worst_r_hat"] < 1.03
