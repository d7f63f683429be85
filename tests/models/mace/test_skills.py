"""Tables of annotators, crowds with drawn skills, and simulated crowds."""

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations
from consilience.models.mace import MODEL, KnowsGuesses, Priors, simulate
from consilience.models.mace.skills import crowd, guesses
from consilience.models.posterior import Draws

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")

COMPETENCE = np.array([[0.9, 0.5, 0.2], [0.1, 0.8, 0.6]])
GUESS = np.array([[[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]], [[0.1, 0.9], [0.6, 0.4], [0.3, 0.7]]])


def wide(num_items=40_000):
    """Annotators 0, 1 and 2 make 3, 2 and 1 annotations of six."""
    annotator = np.tile([0, 0, 0, 1, 1, 2], num_items // 6 + 1)[:num_items]
    return Annotations.from_codes(np.arange(num_items) // 4, annotator, np.zeros(num_items, int), num_labels=2)


def probability_of_labels(draw, truth):
    return COMPETENCE[draw][:, None] * (np.arange(2) == truth) + (1 - COMPETENCE[draw])[:, None] * GUESS[draw]


def test_agreement_of_two_annotators_by_pairs():
    found = crowd(Draws({"competence": COMPETENCE[None], "guess": GUESS[None]}), wide(600), jax.random.key(0), 2)
    share = np.array([3, 2, 1]) / 6
    for draw in range(2):
        for truth in range(2):
            given = probability_of_labels(draw, truth)
            pairs = [(j, k) for j in range(3) for k in range(3) if j != k]
            weight = np.array([share[j] * share[k] for j, k in pairs])
            expected = weight @ [given[j] @ given[k] for j, k in pairs] / weight.sum()
            assert found.agreement[draw, truth] == pytest.approx(expected, rel=1e-5)


def test_annotators_annotate_again_with_their_skills():
    data = wide()
    found = crowd(Draws({"competence": COMPETENCE[None], "guess": GUESS[None]}), data, jax.random.key(0), 2)
    truth = np.random.default_rng(1).integers(0, 2, data.num_items)
    for draw in range(2):
        label = found.annotate(np.random.default_rng(draw), draw, truth)
        for annotator in range(3):
            for true in range(2):
                own = label[(data.annotator == annotator) & (truth[data.item] == true)]
                p = probability_of_labels(draw, true)[annotator, 1]
                assert abs(np.mean(own) - p) < 5 * np.sqrt(p * (1 - p) / len(own))


def test_guesses_follow_the_distribution_of_their_annotator():
    annotator = np.repeat([0, 1, 2], 20_000)
    label = guesses(np.random.default_rng(0), np.array([[0.2, 0, 0.8], [0, 1, 0], [0.5, 0.25, 0.25]]), annotator)
    share = np.stack([np.bincount(part, minlength=3) for part in label.reshape(3, -1)]) / 20_000
    np.testing.assert_array_equal(share == 0, [[False, True, False], [True, False, True], [False] * 3])
    assert np.abs(share - [[0.2, 0, 0.8], [0, 1, 0], [0.5, 0.25, 0.25]]).max() < 5 * np.sqrt(0.25 / 20_000)


# ---- tables ----


@pytest.fixture(scope="module")
def data():
    return cs.load("dawid-skene-1979")


def test_closed_form_columns_are_those_of_draws(data):
    fit = cs.fit("mace", data)
    draws = {site: values[0] for site, values in fit.samples(20_000).items()}
    table, habits = fit.annotators(), fit.guesses()
    prevalence = fit.posterior.probability.mean(axis=0)
    right = draws["competence"] + (1 - draws["competence"]) * (draws["guess"] @ prevalence)
    for column, values in (("accuracy", right), ("competence", draws["competence"])):
        error = values.std(0) / np.sqrt(20_000)
        assert np.abs((table[column] - values.mean(0)) / error).max() < 5
        prefix = "" if column == "accuracy" else "competence_"
        within = (values >= table[f"{prefix}lower"].to_numpy()) & (values <= table[f"{prefix}upper"].to_numpy())
        # A Beta distribution with the moments of the accuracy is not quite its distribution.
        assert np.abs(within.mean(0) - 0.95).max() < 5 * np.sqrt(0.95 * 0.05 / 20_000) + 0.005
    mean = draws["guess"].reshape(len(right), -1)
    assert np.abs((habits["probability"] - mean.mean(0)) / (mean.std(0) / np.sqrt(20_000))).max() < 5
    assert table["annotations"].tolist() == [135, 45, 45, 45, 45]
    assert len(habits) == 20


@pytest.mark.slow
def test_samplers_have_the_same_tables(data):
    fits = [cs.fit("mace", data, method=method, draws=1000) for method in ("cavi", "gibbs", "nuts")]
    tables = [fit.annotators() for fit in fits]
    for column in ("accuracy", "competence"):
        spread = (tables[1]["upper"] - tables[1]["lower"]) / 4
        # The factors are an approximation; the samplers are not.
        assert ((tables[0][column] - tables[1][column]).abs() / spread).max() < 1
        error = np.sqrt(2) * spread / np.sqrt(400)
        assert ((tables[1][column] - tables[2][column]).abs() / error).max() < 5
    agreement = [cs.agreement(fit) for fit in fits]
    assert abs(agreement[1].value - agreement[2].value) < 5 * 0.05 / np.sqrt(400)


def test_labels_of_stored_draws_are_those_of_the_skills():
    """Under skills that are given, the labels are independent with known probabilities."""
    table = Annotations.from_codes([0, 0, 1], [0, 1, 1], [1, 0, 1], num_labels=2, num_items=3)
    draws = 20_000
    posterior = Draws({
        "competence": np.tile(np.float32([0.6, 0.3]), (1, draws, 1)),
        "guess": np.tile(np.float32([[0.5, 0.5], [0.9, 0.1]]), (1, draws, 1, 1)),
    })  # fmt: skip
    truth = MODEL.truth(posterior, MODEL.resolve(table), key=jax.random.key(0), num_draws=1)
    one = 0.8 * (0.7 * 0.9), 0.2 * (0.3 + 0.7 * 0.9)  # of label 1 and of label 0
    other = 0.3 + 0.7 * 0.1, 0.7 * 0.1
    expected = np.array([one[0] / sum(one), other[0] / sum(other), 0.5])
    assert np.abs(truth.draws.mean(0) - expected).max() < 5 * np.sqrt(0.25 / draws)


# ---- simulation ----


def test_simulated_annotations_follow_the_skills():
    priors = Priors(competence=KnowsGuesses(4.0, 2.0))
    data, values = simulate(
        jax.random.key(0), priors, num_items=30_000, num_annotators=6, num_labels=3, annotations_per_item=4
    )
    assert np.bincount(data.item).tolist() == [4] * 30_000
    pairs = data.item.astype(int) * 6 + data.annotator
    assert len(np.unique(pairs)) == len(pairs)
    for annotator in range(6):
        own = data.annotator == annotator
        theta, xi = values["competence"][annotator], values["guess"][annotator]
        for true in range(3):
            given = data.label[own & (values["label"][data.item] == true)]
            share = np.bincount(given, minlength=3) / len(given)
            expected = theta * (np.arange(3) == true) + (1 - theta) * xi
            assert np.abs(share - expected).max() < 5 * np.sqrt(0.25 / len(given))
    again, same = simulate(jax.random.key(1), priors, num_items=30_000, num_annotators=6, values=values)
    assert all(np.array_equal(same[name], values[name]) for name in values)
    assert not np.array_equal(again.label[: len(data.label)], data.label)


def test_the_posterior_finds_simulated_skills():
    data, values = simulate(jax.random.key(2), num_items=1000, num_annotators=8, num_labels=4)
    fit = cs.fit("mace", data, method="gibbs", draws=300, warmup=200)
    competence = fit.posterior.competence
    assert np.abs((competence.mean(0) - values["competence"]) / competence.std(0)).max() < 5
    certainty = fit.labels()["certainty"]
    right = fit.labels()["label"].astype(int) == values["label"]
    assert abs(right.mean() - certainty.mean()) < 5 * np.sqrt(np.mean(certainty * (1 - certainty)) / 1000)
