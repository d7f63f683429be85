"""One label per item from choices among candidates: by brute force, and as sure as it is right."""

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.data.conll import Chains
from consilience.errors import DiagnosticWarning
from consilience.models.mpa import joint
from consilience.models.mpa.candidates import candidates_of
from consilience.models.mpa.joint import likeliest_concentration, log_errors
from consilience.models.mpa.scenarios import simulate_mentions
from consilience.models.truth import leading
from tests.models.mpa.mentions import mentions_of

VOTES = {"m1": ["DN"], "m2": ["DN", "DO(m1)", "DO(m1)"], "m3": ["DO(m1)", "DO(m2)", "DO(m2)", "DN", "DN"]}


def toy():
    rows = [(mention, f"a{place}", label) for mention, labels in VOTES.items() for place, label in enumerate(labels)]
    return mentions_of(rows)


@pytest.mark.parametrize("concentration", [0.3, 1.0, np.inf])
def test_errors_are_a_dirichlet_multinomial_sequence(concentration):
    found = candidates_of(toy())
    computed = log_errors(found, concentration)
    for item, labels in enumerate(VOTES.values()):
        pairs = np.flatnonzero(found.item == item)
        names = found.labels[found.label[pairs]]
        for pair, right in zip(pairs, names, strict=True):
            others = [name for name in names if name != right]
            counts = np.array([labels.count(name) for name in others], float)
            if not others:
                expected = 0.0
            elif np.isinf(concentration):
                expected = -counts.sum() * np.log(len(others))
            else:
                # One error after the other, each as popular as those before it made it.
                expected, seen = 0.0, np.zeros(len(others))
                for place in np.repeat(np.arange(len(others)), counts.astype(int)):
                    expected += np.log((concentration + seen[place]) / (len(others) * concentration + seen.sum()))
                    seen[place] += 1
            assert computed[pair] == pytest.approx(expected, abs=1e-9)


def choice_probabilities(fit, sites, concentration):
    """Return the probability of each candidate for each draw of the parameters, by a loop over annotations."""
    found = fit.truth.candidates
    class_ = found.tables.classes[found.tables.pair_class]
    weight = np.log(sites["prevalence"] / (1 - sites["prevalence"]))[:, class_] + log_errors(found, concentration)
    for item, labels in enumerate(VOTES.values()):
        for pair in np.flatnonzero(found.item == item):
            for annotator, label in enumerate(labels):
                own = sites["sensitivity"][:, annotator, class_[pair]]
                weight[:, pair] += np.log(own if found.labels[found.label[pair]] == label else 1 - own)
    share = np.exp(weight - weight.max(1, keepdims=True))
    return share / np.stack([share[:, found.item == item].sum(1) for item in found.item], axis=1)


def test_the_label_is_the_choice_given_the_sensitivities(monkeypatch):
    monkeypatch.setattr(joint, "_CONCENTRATIONS", (1.4,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
        fit = cs.fit("mpa", toy(), method="gibbs", draws=50, chains=2, decisions="joint")
    samples = fit.samples()
    sites = {site: np.asarray(values, float).reshape(-1, *values.shape[2:]) for site, values in samples.items()}
    expected = choice_probabilities(fit, sites, 1.4)
    np.testing.assert_allclose(fit.truth.probability, expected.mean(0), atol=1e-5)


@pytest.mark.parametrize(("popularity", "least", "most"), [(np.inf, 5.0, np.inf), (0.5, 0.2, 1.4)])
def test_the_likeliest_concentration_is_that_of_the_errors(popularity, least, most):
    """Errors of 40 annotators on each of 40 mentions, all alike or with favourites."""
    random = np.random.default_rng(1)
    names = ["DN", "DO(m1)", "DO(m2)", "DO(m3)", "DO(m4)"]
    rows = [(f"m{mention}", "a0", "DN") for mention in range(1, 5)]
    for mention in range(5, 45):
        share = np.full(4, 0.25) if np.isinf(popularity) else random.dirichlet(np.full(4, popularity))
        given = [*names, *random.choice(names[1:], 40, p=share)]
        rows += [(f"m{mention}", f"a{place}", label) for place, label in enumerate(given)]
    found = candidates_of(mentions_of(rows))
    weight = np.where(found.labels[found.label] == "DN", 0.0, -1000.0)
    assert least <= likeliest_concentration(found, weight) <= most


@pytest.fixture(scope="module")
def crowd():
    random = np.random.default_rng(0)
    start = np.tile(np.arange(60), 20)
    document = np.repeat(np.arange(20), 60)
    entity = document * 15 + random.integers(0, 15, 1200)
    key = Chains.from_spans(document, start, start, entity, documents=[f"d{number}" for number in range(20)])
    return simulate_mentions(key, "synthetic-uniform", seed=3)


def test_it_is_as_sure_as_it_is_right(crowd):
    gold = crowd.label_codes().gold
    excess = {}
    for decisions in ("separate", "joint"):
        fit = cs.fit("mpa", crowd, coreference="links", draws=200, decisions=decisions)
        table = leading(fit.truth)
        right, sure = table["label"] == gold, table["probability"]
        excess[decisions] = (sure - right).mean() / np.sqrt((sure * (1 - sure)).sum()) * len(gold)
    assert excess["separate"] > 5
    assert abs(excess["joint"]) < excess["separate"] / 2
