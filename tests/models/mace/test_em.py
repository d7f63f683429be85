"""EM for MACE: the published smoothing, and maximum likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations
from consilience.models.mace import MODEL, em
from consilience.models.truth import LabelProbabilities

SIZES = {"num_items": 6, "num_annotators": 4, "num_labels": 3}
step, start = jax.jit(em.step), jax.jit(em.start)


def prepared(data, smoothing):
    return em.prepare(MODEL.resolve(data, None, {"smoothing": smoothing}))


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_the_likelihood_of_the_1979_table():
    data = cs.load("dawid-skene-1979")
    with jax.enable_x64(True):
        fit = cs.fit("mace", data, method="em", tolerance=1e-13, restarts=5)
        estimate = fit.posterior.values
        log_likelihood = float(np.sum(MODEL.simulation.log_likelihood(estimate, MODEL.resolve(data))))
    assert log_likelihood == pytest.approx(-245.387479, abs=6e-7)
    smoothing = 0.01 / 4
    penalty = np.log(estimate["competence"]).sum() + np.log1p(-estimate["competence"]).sum()
    penalty += np.log(estimate["guess"]).sum()
    assert fit.elbo[-1] == pytest.approx(log_likelihood + smoothing * penalty, abs=1e-9)


def test_one_step_by_loops():
    data = Annotations.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 0], num_labels=2)
    with jax.enable_x64(True):
        problem = prepared(data, 0.5)
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
        problem = prepared(data, 1.0)
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
    np.testing.assert_allclose(fit.labels()["probability"], fit.posterior.probability.max(axis=1), rtol=1e-6)
    annotators = fit.annotators()
    assert annotators[["lower", "upper", "competence_lower", "competence_upper"]].isna().all(axis=None)
    assert annotators["accuracy"].between(annotators["competence"], 1).all()
