"""The example of a crowd model for contributors; the battery runs over it too (tests/laws)."""

import jax
import numpy as np
import pytest
from scipy import special, stats

import consilience as cs
from consilience.data import Annotations
from consilience.errors import UnsupportedRequest
from tests.loading import load


@pytest.fixture(scope="module")
def glad():
    return load("docs/glad_member.py")


@pytest.fixture
def tiny():
    """Two annotators who disagree on one item; what the first says counts twice."""
    return Annotations.from_codes([0, 0], [0, 1], [0, 1], weight=[2.0, 1.0], num_labels=3)


@pytest.fixture(scope="module")
def brute_force():
    """Means and label probabilities of `tiny`, by a grid of two abilities and the ease."""
    axis = np.linspace(-5, 7, 181)
    first, second, log_ease = np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)
    right = [special.expit(ability * np.exp(log_ease)) for ability in (first, second)]
    wrong = [(1 - one) / 2 for one in right]
    given = [right[0] ** 2 * wrong[1], wrong[0] ** 2 * right[1], wrong[0] ** 2 * wrong[1]]
    densities = [stats.norm(1, 1).pdf(own) for own in (first, second, log_ease)]
    prior = densities[0] * densities[1] * densities[2] * (axis[1] - axis[0]) ** 3
    joint = np.array([(prior * one / 3).sum() for one in given])
    weight = prior * sum(given) / 3
    means = [float((weight * own).sum() / joint.sum()) for own in (first, second, log_ease)]
    return means, joint / joint.sum()


def test_nuts_is_brute_force(glad, tiny, brute_force):
    means, probability = brute_force
    nuts = cs.fit(glad.MODEL, tiny, method="nuts", draws=1000, warmup=500)
    summary = nuts.summary()
    assert (np.abs(summary["mean"] - means) / summary["mcse"]).max() < 5
    # Labels are drawn anew given each draw; 400 of all draws are worth at least as much as independent ones.
    drawn = np.bincount(nuts.truth.draws[:, 0], minlength=3) / nuts.truth.num_draws
    assert np.abs((drawn - probability) / np.sqrt(probability * (1 - probability) / 400)).max() < 5


def test_abilities_and_labels_are_recovered(glad):
    data, values = glad.simulate(jax.random.key(1), num_items=60, num_annotators=20)
    fit = cs.fit(glad.MODEL, data, chains=2)
    found, labels = fit.annotators(), fit.labels()
    estimates = {"ability": found["ability"], "log_ease": -np.log(fit.difficulties()["difficulty"])}
    for estimate, true in ((own, values[site]) for site, own in estimates.items()):
        rank = stats.spearmanr(estimate, true).statistic
        assert np.arctanh(rank) * np.sqrt(len(true) - 3) > 4
    sure, wrong = labels["probability"], labels["label"].astype(int) != values["label"]
    assert abs((wrong - (1 - sure)).sum()) < 5 * np.sqrt(np.maximum((sure * (1 - sure)).sum(), 1))


def test_density_and_simulation_agree(glad):
    assert cs.check(glad.MODEL, replications=500).passed


def test_glad_refuses_counts(glad):
    for method in glad.MODEL.methods:
        with pytest.raises(UnsupportedRequest, match="about annotators"):
            cs.fit(glad.MODEL, Annotations.from_counts([[3, 0], [1, 2]]), method=method)


@pytest.mark.public_data
def test_on_the_1979_table(glad, tmp_path):
    data = cs.load("dawid-skene-1979")
    fit = cs.fit(glad.MODEL, data)
    other = cs.fit("dawid-skene", data)
    same = fit.labels()["label"] == other.labels()["label"]
    assert same.sum() >= 40
    annotators = fit.annotators()
    assert annotators["annotations"].tolist() == [135, 45, 45, 45, 45]
    assert (annotators["ability_lower"] < annotators["ability"]).all()
    assert len(fit.difficulties()) == 45
    assert (cs.certainty(fit).items > 0.4).all()
    vote = cs.read_predictions(cs.fit("majority-vote", data).labels()[["item", "label"]])
    assert 0.8 < cs.evaluate(fit, vote, metric="top-1").value <= 1
    cs.report(fit, path=tmp_path / "glad.html")
    assert "reliable" in (tmp_path / "glad.html").read_text()
