"""Classifiers against the posterior of each model of annotators: the draws give what the probabilities say."""

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Predictions

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
    classes = np.asarray(truth.classes, object)
    return {
        name: Predictions.from_lists(
            [[label] for label in classes[codes]], items=truth.items, classes=classes, name=name
        )
        for name, codes in guesses.items()
    }, guesses


def expected_accuracy(truth, codes):
    entries, probability = truth.label_probabilities()
    return np.sum(probability * (entries.class_ == codes[entries.item])) / truth.num_items


@pytest.mark.parametrize("model", MODELS)
def test_accuracy_is_the_mean_probability_of_the_predicted_label(annotations, model):
    fit = cs.fit(model, annotations, draws=2000, **MODELS[model])
    predictions, guesses = systems(fit.truth)
    table = cs.compare(fit, predictions, metric="top-1").table.set_index("system")
    assert table.index.tolist() == ["good", "constant"]
    for name, system in predictions.items():
        score = cs.evaluate(fit, system, metric="top-1")
        error = score.sd / np.sqrt(fit.truth.num_draws)
        assert abs(score.value - expected_accuracy(fit.truth, guesses[name])) < 5 * error + 1e-9
        assert table.loc[name, "value"] == pytest.approx(score.value)
    assert cs.certainty(fit).value == pytest.approx(fit.labels()["certainty"].mean(), abs=0.02)


@pytest.mark.parametrize("model", ["dawid-skene", "mace"])
def test_draws_of_a_sampler_are_scored_in_the_same_way(annotations, model):
    """Draws of the sites, as a sampler keeps them: the score is exactly the share of draws with that label."""
    fit = cs.fit(model, annotations, **MODELS[model])
    sites = {name: np.repeat(values, 100, axis=0) for name, values in fit.samples().items()}
    del sites["responsibility" if model == "dawid-skene" else "label_probability"]
    sites = {name: values.reshape(100, *values.shape[2:]) for name, values in sites.items()}
    truth = fit.member.truth(sites, annotations, key=jax.random.key(1), num_draws=100, **fit.options)
    truth.items, truth.classes = fit.truth.items, fit.truth.classes
    predictions, guesses = systems(truth)
    for name, system in predictions.items():
        score = cs.evaluate(truth, system, metric="top-1")
        assert score.value == pytest.approx(expected_accuracy(truth, guesses[name]))
