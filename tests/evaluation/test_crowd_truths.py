"""Classifiers against the posterior of each model of annotators: the draws give what the probabilities say."""

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Predictions
from consilience.models.posterior import Draws

MODELS = {
    "majority-vote": {}, "dawid-skene": {"method": "em"}, "mace": {"method": "em"}, "mpa": {"candidates": "closed"},
}  # fmt: skip


@pytest.fixture(scope="module")
def annotations():
    random = np.random.default_rng(0)
    rows = [(item, who, item % 3 if random.random() < 0.6 else random.integers(3)) for item in range(30) for who in
            random.permutation(6)[:4]]  # fmt: skip
    item, who, label = np.array(rows).T
    return cs.Annotations.from_codes(item, who, label)


def systems(truth):
    """Return a classifier that is mostly right, and one that always says the same."""
    guesses = {"good": np.arange(30) % 3, "constant": np.zeros(30, int)}
    classes = truth.names("class")
    return {
        name: Predictions.from_lists(
            [[label] for label in classes[codes]], items=truth.names(), classes=classes, name=name
        )
        for name, codes in guesses.items()
    }, guesses


def expected_accuracy(truth, codes):
    found = truth.label_probabilities()
    return np.sum(found.probability * (found.code == codes[found.unit])) / truth.num_units


@pytest.mark.parametrize("model", MODELS)
def test_accuracy_is_the_mean_probability_of_the_predicted_label(annotations, model):
    fit = cs.fit(model, annotations, draws=2000, **MODELS[model])
    predictions, guesses = systems(fit.truth)
    table = cs.compare(fit, predictions, metric="top-1", exact=True).table.set_index("system")
    assert table.index.tolist() == ["good", "constant"]
    for name, system in predictions.items():
        score = cs.evaluate(fit, system, metric="top-1")
        assert score.value == pytest.approx(expected_accuracy(fit.truth, guesses[name]), abs=1e-12)
        drawn = cs.evaluate(fit, system, metric="top-1", exact=False)
        assert abs(drawn.value - score.value) < 5 * score.sd / np.sqrt(fit.truth.num_draws) + 1e-9
        assert drawn.sd == pytest.approx(score.sd, rel=0.15)
        assert table.loc[name, "value_alone"] == pytest.approx(score.value)
    assert cs.certainty(fit).value == pytest.approx(fit.labels()["certainty"].mean(), abs=0.02)


@pytest.mark.parametrize("model", ["dawid-skene", "mace"])
def test_draws_of_a_sampler_are_scored_in_the_same_way(annotations, model):
    """Draws of the sites, as a sampler keeps them: the score is exactly the share of draws with that label."""
    fit = cs.fit(model, annotations, **MODELS[model])
    stored = Draws({site: np.repeat(values, 100, axis=1) for site, values in fit.samples().items()})
    truth = fit.member.truth(stored, fit.resolved, key=jax.random.key(1), num_draws=100)
    truth.bound_to(annotations)
    predictions, guesses = systems(truth)
    for name, system in predictions.items():
        score = cs.evaluate(truth, system, metric="top-1")
        assert score.value == pytest.approx(expected_accuracy(truth, guesses[name]))
