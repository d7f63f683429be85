"""Scores of predicted probabilities: by hand, against labels and plausibilities, and with classes that nobody named."""

import warnings

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import consilience as cs
from consilience.errors import InputWarning, UnsupportedRequest
from consilience.evaluation.engine import PerUnit, Totals, fold
from consilience.evaluation.registry import METRICS
from consilience.models.truth import DirichletTruth, Entries, LabelDraws, PlausibilityDraws
from consilience.models.truth.truth import Shares

SOFT = ("log", "brier", "soft-f1", "jsd", "ece-10")
TRUE, SAID = [0.6, 0.3, 0.1], [0.7, 0.2, 0.1]


def system(q, **more):
    return cs.Predictions.from_scores(q, probabilities=True, **more)


def plausibilities(*draws):
    """Return a truth of one item, or several, with these plausibilities by draw."""
    return PlausibilityDraws.dense(np.array(draws, float).reshape(len(draws), -1, np.shape(draws)[-1]))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("log", -0.9270948), ("brier", 0.99), ("soft-f1", 0.9), ("jsd", 0.9899605), ("ece-10", 0.9)],
)
def test_soft_scores_by_hand(name, expected):
    assert cs.evaluate(plausibilities(TRUE), system([SAID]), name).value == pytest.approx(expected, abs=2e-7)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("log", 0.6 * np.log(0.7) + 0.3 * np.log(0.2) + 0.1 * np.log(0.1)), ("brier", 0.72),
        # Of a label, soft F1 is what it was given; its mean over draws is that of 1[right] less .7 for the bins.
        ("soft-f1", 0.6 * 0.7 + 0.3 * 0.2 + 0.1 * 0.1), ("ece-10", 0.9),
    ],
)  # fmt: skip
def test_labels_are_scored_as_one_hot_plausibilities(name, expected):
    labels = np.repeat([0, 1, 2], [6, 3, 1])
    score = cs.evaluate(LabelDraws(labels[:, None], 3), system([SAID]), name)
    assert score.value == pytest.approx(expected, abs=2e-7)
    same = cs.evaluate(plausibilities(*np.eye(3)[labels]), system([SAID]), name)
    np.testing.assert_allclose(score.draws, same.draws, atol=1e-6)
    np.testing.assert_allclose(score.items, same.items, atol=1e-6)


@settings(max_examples=25)
@given(st.lists(st.floats(0.01, 1), min_size=4, max_size=4), st.lists(st.floats(0.01, 1), min_size=4, max_size=4))
def test_bounds_and_order_of_soft_scores(true, said):
    true, said = np.array(true) / sum(true), np.array(said) / sum(said)
    found = {name: one.value for name, one in cs.evaluate(plausibilities(true), system([said]), list(SOFT)).items()}
    best = {name: one.value for name, one in cs.evaluate(plausibilities(true), system([true]), list(SOFT)).items()}
    assert found["jsd"] >= found["soft-f1"] - 1e-6
    assert found["log"] <= best["log"] + 1e-6
    for name in SOFT[1:]:
        assert found[name] <= 1 + 1e-6
        assert best[name] == pytest.approx(1, abs=1e-6)


def test_calibration_averages_draws_first_and_adds_within_bins():
    labels = np.array([[0, 0, 1, 1], [0, 0, 1, 0], [0, 1, 1, 0], [0, 1, 0, 0]])
    said = [[0.8, 0.2], [0.7, 0.3], [0.4, 0.6], [0.95, 0.05]]
    # Right on average: 1, .5, .75, .75. Two bins hold all first choices, so that errors in them cancel.
    right, confidence = np.array([1, 0.5, 0.75, 0.75]), np.array([0.8, 0.7, 0.6, 0.95])
    score = cs.evaluate(LabelDraws(labels, 2), system(said), "ece-2")
    assert score.value == pytest.approx(1 - abs((right - confidence).sum()) / 4, abs=1e-6)
    np.testing.assert_allclose(score.items, 1 - abs(right - confidence), atol=1e-6)
    fine = cs.evaluate(LabelDraws(labels, 2), system(said), "ece-10")
    assert fine.value == pytest.approx(1 - abs(right - confidence).sum() / 4, abs=1e-6)


def test_scores_of_draws_of_a_calibration_have_the_spread_of_draws_around_it():
    labels = np.random.default_rng(0).integers(0, 2, (50, 30))
    scoring = METRICS["classes"](LabelDraws(labels, 2), [system([[0.51, 0.49]] * 30)], ["ece-5", "brier"])
    totals, units = Totals(scoring), PerUnit(scoring, "ece-5")
    fold(scoring, totals, units)
    of_draws = scoring.value("ece-5", totals.sums)
    assert scoring.bounds == {"ece-5": None, "brier": (0, 1)}
    assert totals.sums.shape == (1, 6, 50)
    assert totals.scores("ece-5").std() == pytest.approx(of_draws.std())
    assert totals.scores("ece-5").mean() == pytest.approx(scoring.value("ece-5", totals.sums.mean(axis=2))[0])
    assert totals.scores("ece-5").mean() > of_draws.mean() + 0.02
    np.testing.assert_array_equal(totals.scores("brier"), scoring.value("brier", totals.sums))
    assert units.variance.max() < 1e-12


UNNAMED = [[0.4, 0.05, 0.25, 0.2, 0.1], [0.1, 0.6, 0.1, 0.1, 0.1], [0.5, 0.2, 0.1, 0.1, 0.1]]


@pytest.mark.parametrize("depth", [2, 5])
def test_classes_that_nobody_named_are_averaged_over_how_they_divide_their_mass(depth):
    # Item 0 names classes 0 and 2, item 1 class 1, item 2 none.
    entries = Entries.of(np.array([0, 0, 1]), np.array([0, 2, 1]), 3, 5)
    truth = DirichletTruth(entries, np.array([3, 1.5, 2.0]), 0.3, key=jax.random.key(0), num_draws=50)
    predictions = system(UNNAMED, depth=depth)
    (block,) = truth.blocks(Shares())
    named, other = (np.asarray(one, float) for one in (block.values.named, block.values.other))
    q = predictions.class_probabilities()
    terms = {
        "log": lambda q, share: special.xlogy(share, q),
        "brier": lambda q, share: share - (q - share) ** 2 / 2,
        "soft-f1": np.minimum,
        "jsd": lambda q, share: (q + share - special.rel_entr(q, (q + share) / 2) / np.log(2)
                                 - special.rel_entr(share, (q + share) / 2) / np.log(2)) / 2,
    }  # fmt: skip
    grid = (np.arange(4000) + 0.5) / 4000
    scores = cs.evaluate(truth, predictions, list(terms))
    for name, term in terms.items():
        for item, codes, first in ((0, [0, 2], 0), (1, [1], 2), (2, [], 3)):
            rest = [code for code in range(5) if code not in codes]
            share = stats.beta(0.3, 0.3 * (len(rest) - 1)).ppf(grid)
            by_draw = sum(term(q[item, code], named[first + place]) for place, code in enumerate(codes))
            by_draw = by_draw + sum(term(q[item, code], other[item][:, None] * share).mean(axis=1) for code in rest)
            assert scores[name].items[item] == pytest.approx(by_draw.mean(), abs=1e-3)


def test_an_unnamed_first_choice_has_its_expected_part():
    entries = Entries.of(np.array([0]), np.array([0]), 1, 3)
    truth = DirichletTruth(entries, np.array([2.0]), 0.5, key=jax.random.key(0), num_draws=40_000)
    score = cs.evaluate(truth, system([[0.1, 0.2, 0.7]]), "ece-1")
    assert score.value == pytest.approx(1 - (0.7 - 0.5 / 3), abs=0.005)


def test_classes_without_mass_are_not_averaged_over():
    # A truth of stored draws without other mass: classes 1 and 2 of the second item are impossible.
    entries = Entries.of(np.array([0, 0, 0, 1]), np.array([0, 1, 2, 0]), 2, 3)
    truth = PlausibilityDraws(entries, np.log([[0.6, 0.3, 0.1, 1]]))
    assert cs.evaluate(truth, system([SAID, [1, 0, 0]]), "log").items == pytest.approx([-0.9270948, 0], abs=1e-6)


def test_an_impossible_truth_is_minus_infinity_and_named():
    truth = LabelDraws(np.array([[0, 1], [1, 1]]), 2)
    with pytest.warns(InputWarning, match="score of 'ours' is -inf: there are 1 items .* probability 0: '0'; give"):
        score = cs.evaluate(truth, system([[1, 0], [0.5, 0.5]], name="ours"), "log")
    assert score.value == -np.inf
    assert score.items.tolist() == [-np.inf, pytest.approx(np.log(0.5))]
    assert np.isnan(score.sd)
    assert "-inf, 2 items" in repr(score)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cs.evaluate(truth, system([[1, 0], [0, 1]], name="ours"), "brier").value == 0.75
        # A probability of 0 is no fault where the class is never true.
        assert cs.evaluate(LabelDraws(np.array([[1, 0]]), 2), system([[0, 1], [1, 0]]), "log").value == 0


def test_ranks_alone_are_refused_with_what_to_do():
    truth, ranks = LabelDraws(np.array([[0]]), 2), cs.Predictions.from_scores([[0.5, 0.5]], name="ours")
    with pytest.raises(UnsupportedRequest, match="'ours' says in which order .* read the scores with scores='prob"):
        cs.evaluate(truth, ranks, "brier")
    with pytest.raises(UnsupportedRequest, match="brier has no scores by group; leave out class_groups="):
        cs.evaluate(truth, system([[0.5, 0.5]]), "brier", class_groups={"class": ["0", "1"], "group": ["x", "y"]})


def test_classes_that_the_data_lack_are_never_true():
    said = cs.Predictions.from_scores([[0.5, 0.2, 0.3]], classes=["other", "0", "1"], probabilities=True)
    truth = LabelDraws(np.array([[0]]), 2)
    found = cs.evaluate(truth, said, ["brier", "soft-f1", "jsd", "ece-1"], unknown="keep")
    three = cs.evaluate(LabelDraws(np.array([[0]]), 3), system([[0.2, 0.3, 0.5]]), list(found))
    assert {name: one.value for name, one in found.items()} == pytest.approx(
        {name: one.value for name, one in three.items()}
    )


def test_soft_and_ranked_metrics_of_one_pass_are_those_of_their_own():
    truth = DirichletTruth(Entries.dense(40, 3), np.tile([2.0, 1, 0.5], 40), 0.1, key=jax.random.key(1), num_draws=60)
    truth.point = plausibilities([TRUE] * 40)
    said = system(np.random.default_rng(0).dirichlet([1, 1, 1], 40))
    names = ["ece-3", "set-2", "brier", "top-2", "log"]
    together = cs.evaluate(truth, said, names, exact=False)
    for name in names:
        alone = cs.evaluate(truth, said, name, exact=False)
        np.testing.assert_array_equal(together[name].draws, alone.draws)
        np.testing.assert_array_equal(together[name].items, alone.items)
        assert together[name].point == alone.point
    assert together["brier"].point == pytest.approx(
        1 - ((said.class_probabilities() - TRUE) ** 2).sum(axis=1).mean() / 2, abs=1e-6
    )


def test_a_metric_of_probabilities_of_ones_own():
    def first_alone(q, plausibility, first):
        return first * plausibility

    own = cs.Metric("first", "mass of the first choice", needs="probabilities", soft=first_alone)
    assert cs.evaluate(plausibilities(TRUE), system([[0.2, 0.7, 0.1]]), own).value == pytest.approx(0.3)
