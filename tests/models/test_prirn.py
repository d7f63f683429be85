"""Dirichlet plausibilities around inverse rank normalisation, and the three printed cases."""

import numpy as np
import numpyro
import pytest

import consilience as cs
from consilience.data import Predictions, Rankings
from consilience.models import prirn
from consilience.models.irn import inverse_rank_normalisation
from consilience.models.truth import Ranked

NESTED = [[[[4], [0], [3]], [[0], [3]], [[0, 3]], [[1, 2, 0], [3]]], [[[5]], [[1, 5]]]]


@pytest.fixture
def data():
    return Rankings.from_nested(NESTED, classes=list("012345"))


@pytest.mark.parametrize("weights", ["equation-14", "published-code"])
def test_the_mean_is_irn_without_alpha(data, weights):
    fit = cs.fit("prirn", data, rank_weights=weights, reliability=7.0)
    irn = inverse_rank_normalisation(data, weights)
    np.testing.assert_allclose(fit.truth.mean(), irn, rtol=1e-12)
    draws = fit.samples(20_000)["plausibility"][0]
    sums = np.add.reduceat(draws, fit.posterior.plausibility.first[:-1], axis=1)
    np.testing.assert_allclose(sums, 1, atol=1e-5)
    # Dirichlet: variance m (1 - m) / (γ + 1), in units of its own error.
    error = np.sqrt(irn * (1 - irn) / 8 / 20_000)
    assert np.abs((draws.mean(0) - irn) / error).max() < 5


def test_a_large_reliability_is_the_point_estimate(data):
    fit = cs.fit("prirn", data, reliability=1e6)
    assert cs.certainty(fit, exact=False).value == 1
    np.testing.assert_allclose(cs.certainty(fit, exact=True).items, 1, atol=1e-12)
    assert fit.labels()["label"].tolist() == cs.fit("irn", data).labels()["label"].tolist() == ["0", "5"]


def test_alpha_gives_mass_to_every_class(data):
    gamma, alpha = 5.0, 0.3
    fit = cs.fit("prirn", data, reliability=gamma, alpha=alpha)
    dense = np.full((2, 6), alpha)
    dense[data.entry_item, data.entry_class] += gamma * inverse_rank_normalisation(data)
    mean = dense / dense.sum(1, keepdims=True)
    np.testing.assert_allclose(fit.truth.mean(), mean[data.entry_item, data.entry_class], rtol=1e-12)
    draws = fit.samples(20_000)["plausibility"][0]
    assert draws.shape == (20_000, 2, 6)
    error = np.sqrt(mean * (1 - mean) / (gamma + 6 * alpha + 1) / 20_000)
    assert np.abs((draws.mean(0) - mean) / error).max() < 5
    group = np.array([0, 0, 1, 1, 2, 2])
    expected = np.stack([dense[:, group == g].sum(1) for g in range(3)], axis=1)
    np.testing.assert_allclose(fit.truth.group_concentration(group, 3), expected, rtol=1e-12)
    _, _, entry, rest = fit.truth.exact(Ranked(1))
    named = np.bincount(data.entry_item, minlength=2)
    total = np.bincount(data.entry_item, entry) + (6 - named) * rest
    np.testing.assert_allclose(total, 1, atol=1e-12)


@pytest.mark.parametrize(("alpha", "reliability"), [(0.0, "annotators"), (0.3, "annotators"), (0.0, 8.0)])
def test_the_density_has_the_concentrations_of_the_exact_posterior(data, alpha, reliability):
    options = {"alpha": alpha, "reliability": reliability}
    exact = cs.fit("prirn", data, **options).posterior.plausibility.concentration
    seeded = numpyro.handlers.seed(prirn.density, 0)
    sites = numpyro.handlers.trace(seeded).get_trace(prirn.MODEL.resolve(data, None, options))
    found = np.asarray(sites["plausibility" if alpha else "weight"]["fn"].concentration)
    np.testing.assert_allclose(found[data.entry_item, data.entry_class] if alpha else found, exact, rtol=1e-5)


# UA top-3 accuracy of the three printed cases at γ = 30, α = 0: independent Monte Carlo of 40,000 draws.
PRINTED = [
    ("1026", ("Atypical Nevus", "Hemangioma", "Melanocytic Nevus"), 0.538, 0.648),
    ("1026", ("Hemangioma", "Melanocytic Nevus", "Melanoma"), 0.981, 0.972),
    ("1057", ("Diabetic ulcer", "Pyoderma Gangrenosum", "Venous Stasis Ulcer"), 0.399, 0.123),
    ("1057", ("Arterial ulcer", "Cellulitis", "Pyoderma Gangrenosum"), 0.599, 0.876),
    ("357", ("Acne", "Folliculitis", "Folliculitis decalvans"), 0.393, 0.745),
    ("357", ("Acne keloidalis", "Folliculitis", "Folliculitis decalvans"), 0.586, 0.807),
]


@pytest.mark.parametrize(("weights", "column"), [("published-code", 2), ("equation-14", 3)])
def test_the_printed_cases(weights, column):
    cases, num_draws = cs.load("stutz-2023-cases"), 20_000
    fit = cs.fit("prirn", cases, reliability=30, rank_weights=weights, draws=num_draws)
    chance = np.zeros((cases.num_items, cases.num_classes))
    chance[cases.entry_item, cases.entry_class] = fit.truth.exact(Ranked(1)).probability
    for start in (0, 1):
        rows = sorted(PRINTED[start::2], key=lambda row: list(cases.items).index(row[0]))
        predictions = Predictions.from_lists([row[1] for row in rows], items=cases.items, classes=cases.classes)
        score = cs.evaluate(fit, predictions, "top-3").items
        for item, row in enumerate(rows):
            exact = chance[item, np.isin(cases.classes, row[1])].sum()
            error = np.sqrt(exact * (1 - exact) / num_draws)
            assert abs(score[item] - exact) < 5 * error, row
            assert abs(exact - row[column]) < 0.005, row


def test_by_default_an_item_counts_as_having_the_annotators_that_it_has():
    """Who ranks nothing does not count; certainty is no more than they said."""
    nested = [[[[0], [1]], [[0]], [[1, 2]]], [[[1]], [], [[1], [0]]]]
    data = Rankings.from_nested(nested, classes=list("012"))
    fit, irn = cs.fit("prirn", data), inverse_rank_normalisation(data)
    expected = np.array([3.0, 2.0])[data.entry_item] * irn
    np.testing.assert_allclose(fit.posterior.plausibility.concentration, expected)
    assert fit.options["reliability"] == "annotators"
    for item, number in enumerate((3, 2)):
        alone = Rankings.from_nested(nested[item : item + 1], classes=list("012"))
        same = cs.fit("prirn", alone, reliability=number)
        np.testing.assert_allclose(cs.certainty(fit).items[item], cs.certainty(same).items[0])
