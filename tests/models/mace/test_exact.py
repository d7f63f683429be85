"""MACE against its exact posterior on tiny data: all labels, and for each annotation whether it was known."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy import stats
from scipy.special import betaln, gammaln

import consilience as cs
from consilience.data import Annotations
from consilience.errors import NotConjugate
from consilience.inference.posterior import summarise
from consilience.models.mace import MODEL, KnowsGuesses, Priors, gibbs


def log_beta(concentration):
    return gammaln(concentration).sum(-1) - gammaln(concentration.sum(-1))


def configurations(data):
    """Yield labels ``(item,)`` and ``known (annotation,)`` of all configurations that can be."""
    for label in map(np.array, itertools.product(range(data.num_labels), repeat=data.num_items)):
        right = label[data.item] == data.label
        for known in itertools.product([False, True], repeat=int(right.sum())):
            which = np.zeros(data.num_annotations, bool)
            which[right] = known
            yield label, which


def enumerate_posterior(data: Annotations, knows, guesses, guess, allowed=lambda label: True):
    """Return means of θ, θ², ξ, ξ² and of the labels' indicators, and the log evidence.

    ``knows``, ``guesses`` scalars, ``guess`` ``(label,)``: the priors. ``allowed`` says which labels are possible; all
    those are equally probable beforehand.
    """
    log_weights, values = [], []
    labels = [np.array(label) for label in itertools.product(range(data.num_labels), repeat=data.num_items)]
    possible = sum(allowed(label) for label in labels)
    for label, known in configurations(data):
        if not allowed(label):
            continue
        k = knows + np.bincount(data.annotator, known, data.num_annotators)
        g = guesses + np.bincount(data.annotator, ~known, data.num_annotators)
        x = np.tile(np.asarray(guess, float), (data.num_annotators, 1))
        np.add.at(x, (data.annotator, data.label), ~known)
        log_weight = np.sum(betaln(k, g) - betaln(knows, guesses)) + np.sum(log_beta(x) - log_beta(np.asarray(guess)))
        total, size = k + g, x.sum(1, keepdims=True)
        moments = [k / total, k * (k + 1) / (total * (total + 1)), x / size, x * (x + 1) / (size * (size + 1))]
        values.append(np.concatenate([np.ravel(m) for m in [*moments, label[:, None] == np.arange(data.num_labels)]]))
        log_weights.append(log_weight - np.log(possible))
    log_weights = np.array(log_weights)
    highest = log_weights.max()
    weight = np.exp(log_weights - highest)
    return (weight / weight.sum()) @ np.array(values), float(highest + np.log(weight.sum()))


# ---- tiny data ----

KNOWS, GUESSES, GUESS = 1.5, 0.8, np.array([2.0, 0.7])
PRIORS = Priors(competence=KnowsGuesses(KNOWS, GUESSES), guess=lambda data: dist.Dirichlet(jnp.asarray(GUESS)))
DATA = Annotations.from_codes(
    [0, 0, 1, 1, 1, 2, 2], [0, 1, 0, 1, 1, 0, 1], [0, 0, 1, 1, 0, 1, 0], gold=[-1, 0, -1, -1], num_items=4,
    num_annotators=2, num_labels=2,
)  # fmt: skip
# Every label can be true; the gold label is; only labels that an item got can be, or any where it got none.
POSSIBLE = {
    "closed": ({}, lambda label: True),
    "gold": ({"gold": "use"}, lambda label: label[1] == 0),
    "observed": ({"candidates": "observed"}, lambda label: label[0] == 0),
}


@functools.cache
def enumerated(name):
    return enumerate_posterior(DATA, KNOWS, GUESSES, GUESS, POSSIBLE[name][1])


def moments_of(fit):
    """Return draws of what `enumerate_posterior` gives the means of, ``(chain, draw, quantity)``."""
    competence, guess = fit.samples().values()
    label = fit.truth.draws.reshape(*competence.shape[:2], -1, 1) == np.arange(2)
    parts = [competence, competence**2, guess, guess**2, label]
    return np.concatenate([part.reshape(*competence.shape[:2], -1) for part in parts], axis=2).astype(float)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize(("method", "name"), [*(("gibbs", name) for name in POSSIBLE), ("nuts", "closed")])
def test_samplers_have_the_exact_moments(method, name):
    fit = cs.fit(MODEL, DATA, PRIORS, method, draws=4000, seed=3, **POSSIBLE[name][0])
    draws, (exact, _) = moments_of(fit), enumerated(name)
    summary = summarise({"moment": draws})
    certain = summary["sd"].to_numpy() == 0
    np.testing.assert_allclose(draws[..., certain].mean((0, 1)), exact[certain], atol=1e-12)
    error = np.where(certain, np.inf, summary["mcse"])
    assert np.abs((summary["mean"] - exact) / error).max() < 5
    assert (~certain).sum() >= 18


@pytest.mark.parametrize("name", POSSIBLE)
def test_the_bound_is_below_the_evidence_and_near_it(name):
    with jax.enable_x64(True):
        fit = cs.fit(MODEL, DATA, PRIORS, tolerance=1e-13, **POSSIBLE[name][0])
    _, log_evidence = enumerated(name)
    assert log_evidence - 1.0 < fit.elbo[-1] < log_evidence


@pytest.mark.parametrize("name", POSSIBLE)
def test_the_density_is_that_of_the_sum_over_configurations(name):
    """At given skills, the density of the model is the sum over all labels and all that may be known or guessed."""
    competence, guess = np.array([0.6, 0.3]), np.array([[0.8, 0.2], [0.35, 0.65]])
    options, allowed = POSSIBLE[name]
    total, possible = 0.0, sum(allowed(np.array(label)) for label in itertools.product(range(2), repeat=4))
    for label, known in configurations(DATA):
        if allowed(label):
            each = np.where(known, competence[DATA.annotator], (1 - competence)[DATA.annotator])
            total += np.prod(each * np.where(known, 1.0, guess[DATA.annotator, DATA.label])) / possible
    expected = np.log(total) + stats.beta(KNOWS, GUESSES).logpdf(competence).sum()
    expected += sum(stats.dirichlet(GUESS).logpdf(row) for row in guess)
    jax.clear_caches()  # of constants that NUTS left in single precision
    with jax.enable_x64(True):
        sites = {"competence": jnp.asarray(competence), "guess": jnp.asarray(guess)}
        density, _ = log_density(MODEL.model, (DATA, PRIORS), options, sites)
        by_item = np.asarray(MODEL.simulation.log_likelihood(sites, MODEL.resolve(DATA, PRIORS, options)))
    np.testing.assert_allclose(float(density), expected, rtol=1e-12)
    np.testing.assert_allclose(by_item.sum(), np.log(total), rtol=1e-12)


# ---- weights ----


def test_a_weight_is_that_many_annotations():
    weight = np.array([2, 1, 3, 1, 0, 1, 1])
    rows = np.repeat(np.arange(7), weight)
    weighted = DATA.replace(weight=weight.astype(float))
    repeated = Annotations.from_codes(
        DATA.item[rows], DATA.annotator[rows], DATA.label[rows], num_items=4, num_annotators=2, num_labels=2
    )
    with jax.enable_x64(True):
        states = []
        for data in (weighted, repeated):
            problem = gibbs.prepare(MODEL.resolve(data, PRIORS))
            state, sweep = gibbs.start(jax.random.key(0), problem), jax.jit(gibbs.sweep)
            for number in range(20):
                state = sweep(jax.random.key(number), state, problem)
            states.append(np.concatenate([np.ravel(part) for part in state]))
    np.testing.assert_allclose(*states, rtol=1e-10)


def test_weights_that_are_no_whole_numbers_go_to_nuts():
    data = DATA.replace(weight=np.full(7, 0.5))
    with pytest.raises(NotConjugate, match="whole numbers"):
        cs.fit(MODEL, data, method="gibbs")
    assert np.isfinite(cs.fit(MODEL, data).elbo).all()
