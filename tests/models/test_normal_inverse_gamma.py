"""Normal-inverse-gamma plausibilities: the update against quadrature, the default prior, and prior swaps."""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import consilience as cs
from consilience import models
from consilience.data import Ratings
from consilience.errors import ConsilienceWarning, InvalidPrior, NotConjugate, UnsupportedRequest
from consilience.models.normal_inverse_gamma import MODEL, Priors, exact, moments
from consilience.models.rating_gaps import OFFSETS
from consilience.models.truth import Ranked
from consilience.notes import Level

M0, K0, A0, B0 = 0.3, 0.7, 2.5, 1.8


def parts(posterior):
    own = posterior.mean
    return own.location, own.strength, own.shape, own.scale


def conjugate():
    return Priors(
        variance=dist.InverseGamma(A0, B0), mean=lambda data, variance: dist.Normal(M0, jnp.sqrt(variance / K0))
    )


@pytest.fixture
def ratings():
    """Return an item with four ratings, one with one, one with identical ones, one without any."""
    return Ratings.from_codes(
        [0, 0, 0, 0, 1, 2, 2, 2], [0, 1, 2, 3, 0, 0, 1, 2], [1.0, 2.5, -0.5, 1.5, -2.0, 1.0, 1.0, 1.0], num_items=4
    )


def test_the_posterior_is_proportional_to_prior_times_likelihood(ratings):
    """At random points, which fixes all four numbers; `tests/laws` compares moments with quadrature too."""
    posterior = exact(MODEL.resolve(ratings, conjugate(), {"threshold": 0.0}))
    random = np.random.default_rng(0)
    for item in range(4):
        y = np.asarray(ratings.rating)[np.asarray(ratings.item) == item]
        mean, variance = random.normal(0, 2, 9), random.gamma(2, 1, 9) + 0.1

        def log_nig(m, k, a, b, mean=mean, variance=variance):
            return stats.invgamma.logpdf(variance, a, scale=b) + stats.norm.logpdf(mean, m, np.sqrt(variance / k))

        joint = log_nig(M0, K0, A0, B0) + stats.norm.logpdf(y[:, None], mean, np.sqrt(variance)).sum(0)
        difference = joint - log_nig(*(part[item] for part in parts(posterior)))
        np.testing.assert_allclose(difference, difference[0], rtol=1e-6, atol=1e-5)  # M0 and K0 came as float32


def test_certainty_is_a_student_distribution_function(ratings):
    fit = cs.fit("normal-inverse-gamma", ratings, conjugate(), threshold=0.5, draws=20_000)
    m, k, a, b = parts(fit.posterior)
    below = stats.t.cdf((0.5 - m) / np.sqrt(b / (a * k)), 2 * a)
    exact_score = cs.certainty(fit, exact=True)
    np.testing.assert_allclose(exact_score.items, np.maximum(below, 1 - below), rtol=1e-12)
    sides = exact_score.table["classes"].tolist()
    assert sides == ["below" if p > 0.5 else "above" for p in below]
    error = np.sqrt(below * (1 - below) / 20_000)
    drawn = np.concatenate([b.real[:, :, 0] for b in fit.truth.blocks(Ranked(1))])
    assert np.abs(((drawn == 0).mean(1) - below) / error).max() < 5
    means = fit.means()
    assert means["mean"].tolist() == pytest.approx(m)
    assert np.all((means["lower"] < m) & (m < means["upper"]))


def test_the_variance_of_a_wide_posterior_has_no_expectation():
    data = Ratings.from_codes([0], [0], [1.0], num_items=2)
    priors = Priors(variance=dist.InverseGamma(0.4, 1.0), mean=conjugate().mean)
    assert np.all(np.isposinf(cs.fit("normal-inverse-gamma", data, priors, threshold=0.0).means()["variance"]))


def test_moments_recover_the_hyperparameters():
    """Over replications the mean estimate of location and expected variance is right, in units of its error."""
    m0, k0, a0, b0 = 2.0, 0.5, 6.0, 10.0
    random, estimates = np.random.default_rng(0), []
    for _ in range(40):
        variance = 1 / random.gamma(a0, 1 / b0, 400)
        mean = random.normal(m0, np.sqrt(variance / k0))
        item = np.repeat(np.arange(400), 8)
        data = Ratings.from_codes(item, item * 0, random.normal(mean[item], np.sqrt(variance[item])))
        with jax.enable_x64(True):
            prior = type(moments(data))(*map(float, moments(data)))
        estimates.append([prior.location, prior.scale / (prior.shape - 1), 1 / prior.strength, 1 / (prior.shape - 2)])
    estimates = np.array(estimates, float)
    error = estimates.std(0, ddof=1) / np.sqrt(len(estimates))
    bias = estimates.mean(0) - [m0, b0 / (a0 - 1), 1 / k0, 1 / (a0 - 2)]
    assert np.abs(bias[:3] / error[:3]).max() < 4.5
    assert abs(bias[3]) < 0.1 * 0.25  # a ratio of moments has a bias of its own, of order 1 / items


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_certainty_does_not_depend_on_the_unit(ratings, unit):
    for rating in (np.asarray(ratings.rating), np.repeat([1.0, 2.0, 4.0], [4, 1, 3])):
        data = ratings.replace(rating=rating)
        plain = cs.certainty(cs.fit("normal-inverse-gamma", data, threshold=0.5), exact=True).items
        scaled = cs.fit("normal-inverse-gamma", data.replace(rating=unit * rating), threshold=0.5 * unit)
        np.testing.assert_allclose(cs.certainty(scaled, exact=True).items, plain, rtol=1e-9)


@pytest.mark.parametrize(
    "rating",
    [np.ones(8), np.repeat([1.0, 2.0, 4.0], [4, 1, 3]), np.array([1.0, 1, 1, 1, 5, 2, 2, 3])],
    ids=["all identical", "identical within items", "one item varies"],
)
def test_identical_ratings_have_a_proper_posterior(ratings, rating):
    fit = cs.fit("normal-inverse-gamma", ratings.replace(rating=rating), threshold=1.5)
    assert all(np.isfinite(part).all() and np.all(part > 0) for part in parts(fit.posterior))
    labels = fit.labels()
    assert np.isfinite(labels["certainty"]).all()
    assert labels["label"][0] == "below"


def test_items_with_one_rating_each():
    data = Ratings.from_codes(np.arange(5), np.zeros(5, int), [1.0, 2, 3, 4, 5])
    fit = cs.fit("normal-inverse-gamma", data, threshold=3.0)
    assert fit.labels()["label"].tolist()[:2] == ["below", "below"]
    certainty = fit.labels()["certainty"]
    assert certainty[2] == pytest.approx(0.5)
    assert certainty[0] == pytest.approx(certainty[4])
    assert certainty[0] > certainty[1] > 0.5


NOT_CONJUGATE = {
    "variance": Priors(variance=dist.LogNormal(0.0, 1.0)),
    "mean": Priors(mean=dist.Normal(0.0, 1.0)),
    "mean's location": Priors(mean=lambda data, variance: dist.Normal(variance, jnp.sqrt(variance))),
    "mean's family": Priors(mean=lambda data, variance: dist.Laplace(0.0, jnp.sqrt(variance))),
}


@pytest.mark.parametrize("name", NOT_CONJUGATE)
def test_priors_that_are_not_conjugate_are_refused_by_site(ratings, name):
    with pytest.raises(NotConjugate, match=f"site '{name.split(chr(39))[0]}'"):
        cs.fit("normal-inverse-gamma", ratings, NOT_CONJUGATE[name], method="exact", threshold=0.0)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_priors_that_are_not_conjugate_take_the_generic_path_and_say_so(ratings):
    with pytest.warns(ConsilienceWarning, match="fitted by nuts.*no exact posterior: site 'mean'"):
        fit = cs.fit("normal-inverse-gamma", ratings, NOT_CONJUGATE["mean"], threshold=0.5, draws=150, warmup=200)
    assert fit.method == "nuts"
    assert "site 'mean'" in fit.reason
    score = cs.certainty(fit)
    assert np.isfinite(score.items).all()
    assert score.table["classes"].isin(["below", "above"]).all()
    assert fit.means()["lower"].lt(fit.means()["upper"]).all()


def test_priors_of_a_wrong_shape_name_the_site(ratings):
    for site, priors in {
        "variance": Priors(variance=dist.InverseGamma(jnp.ones(3), 1.0).to_event(1)),
        "mean": Priors(mean=dist.Normal(jnp.zeros(2), 1.0).to_event(1)),
    }.items():
        with pytest.raises(InvalidPrior, match=f"site '{site}'.*event shape"):
            cs.fit("normal-inverse-gamma", ratings, priors, threshold=0.0)
    with pytest.raises(InvalidPrior, match="'variance' is float"):
        cs.fit("normal-inverse-gamma", ratings, Priors(variance=lambda data: 3.0), threshold=0.0)


def test_the_threshold_is_required(ratings):
    with pytest.raises(UnsupportedRequest, match="needs the option 'threshold'"):
        cs.fit("normal-inverse-gamma", ratings)


def test_a_simulation_does_not_ask_for_the_threshold():
    one, values = MODEL.simulate(jax.random.key(3), num_items=4)
    other, same = MODEL.simulate(jax.random.key(3), num_items=4, threshold=1.0)
    assert one.fingerprint() == other.fingerprint()
    jax.tree.map(np.testing.assert_array_equal, values, same)
    with pytest.raises(UnsupportedRequest, match="needs the option 'threshold'"):
        cs.fit("normal-inverse-gamma", one)
    with pytest.raises(UnsupportedRequest, match="needs the option 'clusters'"):
        models.member("expert-views").simulate(jax.random.key(3))


@pytest.mark.parametrize("offset", [0.0, 20.0])
def test_offsets_of_annotators_are_said(offset):
    random = np.random.default_rng(0)
    item, annotator = np.indices((30, 4)).reshape(2, -1)
    rating = 50 + 8 * random.normal(size=30)[item] + offset * np.array([0, 0, 1, 0])[annotator]
    data = Ratings.from_codes(
        item, annotator, rating + 5 * random.normal(size=len(item)), annotators=["ann", "bob", "cid", "dee"]
    )
    settings = {"threshold": 50.0, "draws": 10}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit = cs.fit("normal-inverse-gamma", data, **settings)
    notes = [note for note in fit.findings() if note.about == OFFSETS]
    assert len(notes) == len([one for one in said if "“cid”" in str(one.message)]) == (offset > 0)
    assert not any(note.about == OFFSETS for note in cs.fit(fit.member, data.without_offsets(), **settings).findings())
    if notes:
        assert notes[0].level is Level.warning
        assert re.match(r"annotators rate higher or lower than others: “cid” rates 19\.\d higher ", str(notes[0]))
        assert "fit.sides() does" in str(notes[0])
        assert "data.without_offsets() does (without_offsets=True)" in str(notes[0])
        assert notes[0].words("flags").endswith("(--without-offsets)")
