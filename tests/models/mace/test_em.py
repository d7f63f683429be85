"""EM for MACE: the published smoothing, and maximum likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.data import Annotations
from consilience.models.mace import MODEL, Priors, em
from consilience.models.truth import LabelProbabilities

SIZES = {"num_items": 6, "num_annotators": 4, "num_labels": 3}
step, start = jax.jit(em.step), jax.jit(em.start)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_the_likelihood_of_the_1979_table():
    data = cs.load("dawid-skene-1979")
    with jax.enable_x64(True):
        fit = cs.fit("mace", data, method="em", tolerance=1e-13, restarts=5)
        estimate = {site: values[0, 0] for site, values in fit.posterior.items()}
        log_likelihood = float(np.sum(MODEL.log_likelihood(estimate, data)))
    assert log_likelihood == pytest.approx(-245.387479, abs=6e-7)
    smoothing = 0.01 / 4
    penalty = np.log(estimate["competence"]).sum() + np.log1p(-estimate["competence"]).sum()
    penalty += np.log(estimate["guess"]).sum()
    assert fit.elbo[-1] == pytest.approx(log_likelihood + smoothing * penalty, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(
    *(st.lists(st.integers(0, size - 1), min_size=12, max_size=12) for size in SIZES.values()),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=12, max_size=12),
    st.sampled_from([0.0, 0.01, 1.0]),
)
def test_the_objective_never_falls(item, annotator, label, weight, smoothing):
    """Without smoothing an annotator's competence may reach 0 or 1, and one without annotations has none."""
    data = Annotations.from_codes(item, annotator, label, weight=weight, **SIZES)
    with jax.enable_x64(True):
        problem = em.prepare(data, Priors(), gold="ignore", candidates="closed", smoothing=smoothing)
        state, objective, rounding = start(jax.random.key(0), problem), [], []
        for _ in range(60):
            state, terms = step(state, problem)
            objective.append(float(terms.sum()))
            rounding.append(float(np.abs(np.concatenate(terms)).sum()) * np.finfo(float).eps)
        sites = em.sites(state, problem)
    assert all(np.isfinite(values).all() for values in sites.values())
    # Where a probability tends to zero the terms are large, and cancel.
    assert np.diff(objective).min() >= -50 * max(rounding)


def test_one_step_by_loops():
    data = Annotations.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 0], num_labels=2)
    with jax.enable_x64(True):
        problem = em.prepare(data, Priors(), gold="ignore", candidates="closed", smoothing=0.5)
        state = start(jax.random.key(0), problem)
    # From flat weights 1/2, 1/2, 1/2: an annotation that is right was known with probability 2/3.
    chance = (1 / 2 + 1 / 4) ** 2 / ((1 / 2 + 1 / 4) ** 2 + (1 / 4) ** 2)
    known = np.array([chance * 2 / 3 + 1 / 3, chance * 2 / 3 + 1 / 3])
    np.testing.assert_allclose(state.knows, (known + 0.25) / (2 + 0.5), rtol=1e-12)
    guessed = np.array([[1 - chance * 2 / 3, 2 / 3], [2 - known[1], 0.0]])
    expected = (guessed + 0.25) / (guessed.sum(1, keepdims=True) + 0.5)
    np.testing.assert_allclose(state.guess, expected, rtol=1e-12)


def test_the_gradient_of_the_objective_vanishes_at_the_end():
    random = np.random.default_rng(4)
    data = Annotations.from_codes(*(random.integers(0, size, 12) for size in SIZES.values()), **SIZES)
    with jax.enable_x64(True):
        problem = em.prepare(data, Priors(), gold="ignore", candidates="closed", smoothing=1.0)
        state = start(jax.random.key(0), problem)
        for _ in range(3000):
            state, _ = step(state, problem)

        def objective(free):
            competence, guess = jax.nn.sigmoid(free[0]), jax.nn.softmax(free[1], axis=1)
            return em.step(em.State(competence, 1 - competence, guess), problem)[1].sum()

        free = (jnp.log(state.knows) - jnp.log(state.guesses), jnp.log(state.guess))
        gradient = jax.grad(objective)(free)
    assert max(float(np.abs(part).max()) for part in gradient) < 1e-6 * data.num_annotations


def test_an_estimate_has_probabilities_of_labels_and_no_intervals():
    data = cs.load("dawid-skene-1979")
    fit = cs.fit("mace", data, method="em")
    assert isinstance(fit.truth, LabelProbabilities)
    probability = fit.posterior["label_probability"][0, 0]
    np.testing.assert_allclose(fit.labels()["probability"], probability.max(axis=1), rtol=1e-6)
    annotators = fit.annotators()
    assert annotators[["lower", "upper", "competence_lower", "competence_upper"]].isna().all(axis=None)
    assert annotators["accuracy"].between(annotators["competence"], 1).all()
