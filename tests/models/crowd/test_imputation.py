"""Imputation: labels that are drawn have their probabilities, and are counted as by hand."""

import jax
import numpy as np
import pytest

from consilience.data import Annotations
from consilience.models import dawid_skene, mace, one_coin
from consilience.models.crowd.imputation import Imputation
from consilience.models.crowd.simplices import draw_on_host

MODULES = {"dawid-skene": dawid_skene, "mace": mace, "one-coin": one_coin}
SHAPES = {"confusion": (3, 3), "competence": (2,), "guess": (3,), "accuracy": (2,)}


def imputation(name, data, probability, random):
    module = MODULES[name]
    shapes = {site.name: SHAPES[site.name] for site in module.MODEL.sites if site.name != "prevalence"}
    own = {site: random.uniform(30, 40, (data.num_annotators, *shape)) for site, shape in shapes.items()}
    concentrations = {"prevalence": random.uniform(30, 40, 3), **own}
    is_dense = name == "dawid-skene"
    return Imputation(module.CHANNEL, concentrations, data, probability, is_dense, jax.random.key(3))


@pytest.mark.parametrize("name", MODULES)
def test_labels_are_drawn_by_their_probabilities_and_counted_as_by_hand(name):
    """Each item has an annotator of its own beside a common one, so that what is counted tells its label."""
    random, number, draws = np.random.default_rng(0), 30, 3000
    probability = random.dirichlet(np.ones(3), number)
    probability[:3] = np.eye(3)
    item, label = np.tile(np.arange(number), 2), random.integers(0, 3, 2 * number)
    annotator = np.append(np.arange(number), np.full(number, number))
    weight = random.integers(1, 4, 2 * number)
    data = Annotations.from_codes(item, annotator, label, weight=weight, num_labels=3)
    made = imputation(name, data, probability, random)
    times = np.zeros((number, 3))
    for draw in range(draws):
        statistics, of_class = made._drawn(np.random.default_rng(draw))
        if name == "dawid-skene":
            truth = statistics[:number].sum(axis=2).argmax(axis=1)
            by_hand = np.zeros((number + 1, 3, 3))
            np.add.at(by_hand, (annotator, truth[item], label), weight)
            np.testing.assert_array_equal(of_class, np.bincount(truth, minlength=3))
            times[np.arange(number), truth] += 1
        else:
            right = statistics[:number].sum(axis=1) > 0
            by_hand = np.zeros((number + 1, 3))
            np.add.at(by_hand, (annotator, label), weight * (right[item] & (label == label[item])))
            times[np.arange(number), label[:number]] += right
            assert of_class.sum() == number
        assert name != "dawid-skene" or (statistics == by_hand).all()
        np.testing.assert_array_equal(statistics[:number], by_hand[:number])
    known = np.ones(3, bool) if name == "dawid-skene" else np.arange(3) == label[:number, None]
    error = np.sqrt(probability * (1 - probability) / draws)
    assert (np.abs(times / draws - probability) <= 5 * error + 1e-12)[np.broadcast_to(known, times.shape)].all()


@pytest.mark.parametrize("name", MODULES)
def test_a_draw_is_the_same_whatever_is_drawn_with_it(name):
    random = np.random.default_rng(1)
    codes = random.integers(0, 40, 200), random.integers(0, 5, 200), random.integers(0, 3, 200)
    data = Annotations.from_codes(*codes, num_items=40, num_annotators=5, num_labels=3)
    made = imputation(name, data, random.dirichlet(np.ones(3), 40), random)
    whole, first, last = made.trees(0, 5), made.trees(0, 2), made.trees(2, 3)
    for site, values in whole.items():
        np.testing.assert_array_equal(values, np.concatenate([first[site], last[site]]))
        np.testing.assert_allclose(np.exp(values).sum(axis=-1), 1, rtol=1e-5)


def test_the_prior_is_what_an_ascent_ends_with_less_expected_counts():
    random = np.random.default_rng(2)
    item, annotator, label = random.integers(0, 40, 200), random.integers(0, 5, 200), random.integers(0, 3, 200)
    data = Annotations.from_codes(item, annotator, label, num_items=40, num_annotators=5, num_labels=3)
    probability, prior = random.dirichlet(np.ones(3), 40), random.uniform(0.5, 2, (5, 3, 3))
    ended = prior.copy()
    np.add.at(ended, (annotator, slice(None), label), probability[item])
    concentrations = {"prevalence": 1.5 + probability.sum(axis=0), "confusion": ended}
    made = Imputation(dawid_skene.CHANNEL, concentrations, data, probability, True, jax.random.key(0))
    np.testing.assert_allclose(made.prior["confusion"], prior, rtol=1e-4)
    np.testing.assert_allclose(made.prior["prevalence"], 1.5, rtol=1e-9)


def test_what_is_drawn_on_the_host_has_the_moments_of_a_dirichlet():
    concentration, number = np.array([0.3, 1.0, 2.5]), 20_000
    drawn = draw_on_host(np.random.default_rng(0), {"site": np.tile(concentration, (number, 1))})["site"]
    mean = concentration / concentration.sum()
    for found, expected in (
        (np.exp(drawn), mean), ((np.exp(drawn) - mean) ** 2, mean * (1 - mean) / (concentration.sum() + 1)),
    ):  # fmt: skip
        assert (np.abs(found.mean(axis=0) - expected) < 5 * found.std(axis=0) / np.sqrt(number)).all()
