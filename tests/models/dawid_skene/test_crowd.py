"""How often annotators with given confusion matrices agree, by brute force, and what they would say again."""

import itertools

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.models.dawid_skene import MODEL, Priors, simulate
from consilience.models.dawid_skene.crowd import agreement_moments, crowd_of_draws, crowd_of_posterior


@pytest.fixture(scope="module")
def data():
    return simulate(jax.random.key(2), Priors(), num_items=12, num_annotators=4, annotations_per_item=3)[0]


def test_agreement_is_a_sum_over_pairs_of_annotators(data):
    confusion = np.random.default_rng(0).dirichlet(np.ones(3), (5, 4, 3))
    weighted = data.replace(weight=np.linspace(0.5, 2, data.num_annotations))
    amount = np.bincount(weighted.annotator, weighted.weight)
    total, expected = 0.0, np.zeros((5, 3))
    for one, other in itertools.permutations(range(4), 2):
        total += amount[one] * amount[other]
        expected += amount[one] * amount[other] * (confusion[:, one] * confusion[:, other]).sum(-1)
    with jax.enable_x64(True):
        found = crowd_of_draws(confusion, weighted, 5).agreement
    np.testing.assert_allclose(found, expected / total, rtol=1e-12)


@pytest.mark.parametrize("method", ["cavi", "gibbs", "em"])
@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_annotations_follow_the_confusion_matrices(data, method):
    fit = cs.fit(MODEL, data, method=method, draws=300)
    crowd = fit.truth.crowd
    label = np.arange(data.num_items) % 3
    random, many = np.random.default_rng(0), 3000
    said = np.stack([crowd.annotate(random, draw % 300, label) for draw in range(many)])
    assert said.min() >= 0
    assert said.max() < 3
    table = fit.confusion().sort_values(["annotator", "class", "label"])
    mean = table["probability"].to_numpy().reshape(4, 3, 3)[data.annotator, label[data.item]]
    shares = (said[:, :, None] == np.arange(3)).mean(0)
    # The draws of the confusion matrices have an error of their own: 300 of them are used, many times each.
    if method == "gibbs":
        mean = fit.posterior.confusion[:300].mean(0)[data.annotator, label[data.item]]
    spread = 0.3 if method == "cavi" else 0.0
    error = np.sqrt(mean * (1 - mean) / many + spread**2 / 300) + 1e-9
    assert np.abs((shares - mean) / error).max() < 5


def test_the_same_draw_has_the_same_errors(data):
    fit = cs.fit(MODEL, data, draws=20)
    label = np.zeros(data.num_items, int)
    first, again, other = (fit.truth.crowd.annotate(np.random.default_rng(1), draw, label) for draw in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    assert fit.truth.crowd.agreement.shape == (20, 3)


def test_annotators_of_the_model_agree_as_it_expects():
    data = simulate(jax.random.key(5), Priors(), num_items=100, num_annotators=6, annotations_per_item=4)[0]
    found = cs.agreement(cs.fit(MODEL, data, draws=400))
    assert found.two_sided_p > 0.01
    assert found.interval[0] < found.value < found.interval[1]


def test_moments_of_the_agreement_are_those_of_its_draws():
    random = np.random.default_rng(0)
    concentration = random.gamma(2, 1, (5, 3, 4)) + 0.3
    data = cs.Annotations.from_codes(random.integers(0, 9, 60), random.integers(0, 5, 60), random.integers(0, 4, 60))
    draws = crowd_of_posterior(concentration, data, jax.random.key(0), 20_000).agreement
    mean, variance = agreement_moments(concentration, data)
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / len(draws))).all()
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.1)
