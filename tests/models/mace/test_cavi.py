"""Variational Bayes of MACE: the published numbers, its bound and its fixed point."""


import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.special import betaln, digamma, gammaln

import consilience as cs
from consilience.data import Annotations
from consilience.models.mace import MODEL, KnowsGuesses, Priors, cavi
from consilience.models.mace.restarts import flat_weights

SIZES = {"num_items": 6, "num_annotators": 4, "num_labels": 3}
PRIORS = Priors(competence=KnowsGuesses(1.5, 0.8), guess=lambda data: dist.Dirichlet(jnp.array([2.0, 0.7, 1.1])))


def random_table(seed=0, **more):
    random = np.random.default_rng(seed)
    columns = [random.integers(0, size, 12) for size in SIZES.values()]
    return Annotations.from_codes(*columns, **SIZES, **more)


def prepared(data, priors=PRIORS, **options):
    return cavi.prepare(MODEL.resolve(data, priors, options))


step, start = jax.jit(cavi.step), jax.jit(cavi.start)


# ---- the numbers of the 1979 table ----


def test_the_bound_of_the_1979_table():
    data = cs.load("dawid-skene-1979")
    with jax.enable_x64(True):
        fit = cs.fit("mace", data, tolerance=1e-13)
        several = cs.fit("mace", data, tolerance=1e-13, restarts=10, seed=4)
    for one in (fit, several):
        assert one.elbo[-1] == pytest.approx(-267.237038, abs=6e-7)
    assert fit.labels()["label"].value_counts().to_dict() == {"1": 18, "2": 20, "3": 6, "4": 1}


# ---- by loops, as the updates are written ----


def sweep_by_loops(k, g, x, data):
    """Do the E-step from weights, and return the next K, G, X, the labels' probabilities and log normalisers."""
    log_z, probability = np.zeros(data.num_items), np.zeros((data.num_items, data.num_labels))
    for item in range(data.num_items):
        product = np.full(data.num_labels, 1 / data.num_labels)
        for n in np.flatnonzero(data.item == item):
            j, label = data.annotator[n], data.label[n]
            right = np.arange(data.num_labels) == label
            product *= (k[j] * right + g[j] * x[j, label]) ** data.weight[n]
        log_z[item], probability[item] = np.log(product.sum()), product / product.sum()
    knows, guesses = np.full(data.num_annotators, 1.5), np.full(data.num_annotators, 0.8)
    guess = np.tile([2.0, 0.7, 1.1], (data.num_annotators, 1))
    for i, j, label, weight in zip(data.item, data.annotator, data.label, data.weight, strict=True):
        known = probability[i, label] * k[j] / (k[j] + g[j] * x[j, label])
        knows[j] += weight * known
        guesses[j] += weight * (1 - known)
        guess[j, label] += weight * (1 - known)
    return (knows, guesses, guess), probability, log_z


def log_beta(x):
    return gammaln(x).sum(-1) - gammaln(x.sum(-1))


def divergence(posterior, prior):
    """Return the Kullback-Leibler divergence of Dirichlet distributions."""
    expected = digamma(posterior) - digamma(posterior.sum(-1, keepdims=True))
    return np.sum(log_beta(prior) - log_beta(posterior) + ((posterior - prior) * expected).sum(-1))


@pytest.mark.parametrize("weight", [None, np.tile([1.0, 0.5, 2.0, 0.0], 3)])
def test_sweeps_and_bound_are_those_of_loops(weight):
    data = random_table(weight=weight)
    with jax.enable_x64(True):
        problem = prepared(data)
        state = start(jax.random.key(0), problem)
        half = np.full(4, 0.5)
        expected, _, _ = sweep_by_loops(half, half, np.full((4, 3), 1 / 3), data)
        for _ in range(5):
            for ours, theirs in zip(state, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-12)
            knows, guesses, guess = expected
            expected, probability, log_z = sweep_by_loops(
                np.exp(digamma(knows) - digamma(knows + guesses)), np.exp(digamma(guesses) - digamma(knows + guesses)),
                np.exp(digamma(guess) - digamma(guess.sum(1, keepdims=True))), data,
            )  # fmt: skip
            bound = log_z.sum() - divergence(np.stack([knows, guesses], 1), np.array([[1.5, 0.8]] * 4))
            bound -= divergence(guess, np.tile([2.0, 0.7, 1.1], (4, 1)))
            np.testing.assert_allclose(cavi.sites(state, problem)["probability"], probability, atol=1e-13)
            state, terms = step(state, problem)
            np.testing.assert_allclose(terms.sum(), bound, rtol=1e-12)


# ---- laws ----


def collapsed_bound(before, data, priors=(1.5, 0.8, (2.0, 0.7, 1.1))):
    """The bound right after the second half of a sweep, for the factors that the first half found from ``before``."""
    knows, guesses, guess = (np.asarray(part) for part in before)
    k, g = digamma(knows) - digamma(knows + guesses), digamma(guesses) - digamma(knows + guesses)
    x = digamma(guess) - digamma(guess.sum(1, keepdims=True))
    after, probability, _ = sweep_by_loops(np.exp(k), np.exp(g), np.exp(x), data)
    share = 1 / (1 + np.exp(g[:, None] + x - k[:, None]))[data.annotator, data.label]
    binary = stats.entropy(np.stack([share, 1 - share]))
    entropy = stats.entropy(probability, axis=1).sum()
    entropy += np.sum(data.weight * probability[data.item, data.label] * binary)
    collapsed = entropy - data.num_items * np.log(data.num_labels)
    collapsed += np.sum(betaln(after[0], after[1]) - betaln(*priors[:2]))
    return collapsed + np.sum(log_beta(after[2]) - log_beta(np.array(priors[2])))


def test_the_collapsed_bound_lies_between_two_sweeps():
    """After each half of a sweep the bound is known in another form; at the end they are one number."""
    data = random_table(3)
    with jax.enable_x64(True):
        problem = prepared(data)
        state, gaps = start(jax.random.key(0), problem), []
        for _ in range(400):
            following, terms = step(state, problem)
            lower, upper = float(terms.sum()), float(step(following, problem)[1].sum())
            middle = collapsed_bound(state, data)
            assert lower - 1e-12 <= middle <= upper + 1e-12
            gaps.append(upper - lower)
            state = following
    assert gaps[0] > 1e-3
    assert gaps[-1] < 1e-10
    assert middle == pytest.approx(lower, abs=1e-10)


def test_the_bound_is_the_mean_over_draws_of_the_factors():
    """Monte Carlo, with labels and what was known summed over their own factors by enumeration."""
    data = random_table(5)
    with jax.enable_x64(True):
        problem = prepared(data)
        state = start(jax.random.key(0), problem)
        for _ in range(3):
            state, _ = step(state, problem)
        bound = float(step(state, problem)[1].sum())
        probability = np.asarray(cavi.sites(state, problem)["probability"])
        weights = cavi.expected_log_weights(state)
        share = np.asarray(jax.nn.sigmoid(weights.knows[:, None] - weights.guess))[data.annotator, data.label]
    knows, guesses, guess = (np.asarray(part) for part in state)
    random, size = np.random.default_rng(0), 20_000
    competence = random.beta(knows, guesses, (size, 4))
    habit = np.stack([random.dirichlet(row, size) for row in guess], axis=1)
    right = probability[data.item, data.label]
    known, guessed = right * share, 1 - right * share
    log_joint = known @ np.log(competence)[:, data.annotator].T
    log_guess = np.log1p(-competence)[:, data.annotator] + np.log(habit[:, data.annotator, data.label])
    log_joint += guessed @ log_guess.T - 6 * np.log(3)
    log_joint += stats.beta(1.5, 0.8).logpdf(competence).sum(1) - stats.beta(knows, guesses).logpdf(competence).sum(1)
    for j in range(4):
        log_joint += stats.dirichlet([2.0, 0.7, 1.1]).logpdf(habit[:, j].T) - stats.dirichlet(guess[j]).logpdf(
            habit[:, j].T
        )
    entropy = stats.entropy(probability, axis=1).sum() + right @ stats.entropy(np.stack([share, 1 - share]))
    error = log_joint.std() / np.sqrt(size)
    assert abs(log_joint.mean() + entropy - bound) < 5 * error


def test_the_gradient_of_the_bound_vanishes_at_the_fixed_point():
    data = random_table(7)
    with jax.enable_x64(True):
        problem = prepared(data)
        fit = cs.fit(MODEL, data, PRIORS, tolerance=0.0, max_steps=3000)
        state = cavi.State(*jnp.asarray(fit.posterior.competence).T, jnp.asarray(fit.posterior.guess))
        gradient = jax.grad(lambda state: cavi.step(state, problem)[1].sum())(state)
        again, _ = step(state, problem)
    for part, there, here in zip(gradient, again, state, strict=True):
        assert np.abs(part).max() < 1e-6 * data.num_annotations
        np.testing.assert_allclose(there, here, rtol=1e-7)


def test_labels_that_nobody_gave_may_be_ruled_out():
    data = random_table(1)
    every = cs.fit(MODEL, data).posterior.probability
    assert np.all((every > 0) & (every < 1))
    observed = cs.fit(MODEL, data, candidates="observed").posterior.probability
    given = np.zeros((6, 3), bool)
    given[data.item, data.label] = True
    assert given.any(axis=1).all()
    np.testing.assert_array_equal(observed > 0, given)


# ---- starts ----


def test_the_flat_start_is_flat():
    weights = flat_weights(jnp.zeros((2, 5)))
    np.testing.assert_allclose(np.exp(weights.knows), 0.5, rtol=1e-6)
    np.testing.assert_allclose(np.exp(weights.guess), 0.1, rtol=1e-6)


def test_several_starts_are_compared_by_the_bound():
    """With sparse priors the bound has several maxima; more starts never end lower."""
    random = np.random.default_rng(3)
    data = Annotations.from_codes(
        np.repeat(np.arange(8), 3), np.tile(np.arange(3), 8), random.integers(0, 3, 24), num_labels=3
    )
    priors = Priors(competence=KnowsGuesses(0.1, 0.1), guess=lambda data: dist.Dirichlet(jnp.full(3, 0.1)))
    with jax.enable_x64(True):
        ends = [cs.fit(MODEL, data, priors, restarts=count, seed=1).elbo for count in (0, 8)]
    assert ends[1][-1] > ends[0][-1] + 0.01
    assert np.diff(ends[1]).min() > -1e-10
