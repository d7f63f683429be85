"""Metrics lifted over draws: worked values, definitions by loops, and what holds for every predictor."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.data import Annotations, ClassMap, Predictions
from consilience.errors import InputError
from consilience.evaluation.adjustment import adjusted
from consilience.evaluation.classes import Metric
from consilience.models.truth import PlausibilityDraws, Ranked

WORKED = PlausibilityDraws.dense(np.array([[[0.5, 0.3, 0.2]], [[0.2, 0.5, 0.3]]]))
ORDER = Predictions.from_lists([["0", "1", "2"]])


def random_truth(seed, num_draws=20, num_items=6, num_classes=4):
    return PlausibilityDraws.dense(
        np.random.default_rng(seed).dirichlet(np.full(num_classes, 0.5), (num_draws, num_items))
    )


def random_predictions(seed, num_items=6, num_classes=4):
    return Predictions.from_scores(np.random.default_rng(seed).random((num_items, num_classes)))


@pytest.mark.parametrize(
    ("metric", "value"),
    [("top-1", 1 / 2), ("top-2", 1), ("set-2", 1 / 2), ("ao-2", 5 / 8), ("ao-3", 3 / 4), ("top-2-target-2", 1 / 2)],
)
def test_worked_scores_of_two_draws(metric, value):
    score = cs.evaluate(WORKED, ORDER, metric)
    assert score.value == pytest.approx(value, abs=1e-7)
    assert score.draws.shape == (2,)
    assert score.value == pytest.approx(score.draws.mean(), abs=1e-7)


def test_worked_certainties():
    assert [cs.certainty(WORKED, top=k).value for k in (1, 2, 3)] == [0.5, 0.5, 1.0]
    swapped = PlausibilityDraws.dense(np.array([[[0.5, 0.3, 0.2]], [[0.3, 0.5, 0.2]]]))
    assert cs.certainty(swapped, top=2).value == 1.0


METRICS = ("top-1", "top-2", "top-3", "top-4", "set-1", "set-2", "set-3", "kendall-2", "footrule-3", "ao-3")


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_what_holds_for_every_predictor(seed):
    truth, predictions = random_truth(seed), random_predictions(seed + 1)
    scores = cs.evaluate(truth, predictions, METRICS)
    certainty = {k: cs.certainty(truth, top=k).items for k in (1, 2, 3, 4)}
    tops = [scores[f"top-{k}"].items for k in (1, 2, 3, 4)]
    assert np.all(np.diff(tops, axis=0) >= 0)
    np.testing.assert_array_equal(tops[3], 1)
    assert np.all(tops[0] <= certainty[1] + 1e-12)
    for k in (1, 2, 3):
        assert np.all(scores[f"set-{k}"].items <= certainty[k] + 1e-12)
        assert np.all((certainty[k] >= 1 / 20) & (certainty[k] <= 1))
    assert np.all(certainty[1] >= 1 / 4)
    np.testing.assert_array_equal(certainty[4], 1)
    for score in scores.values():
        assert np.all((score.items >= 0) & (score.items <= 1 + 1e-6))
    best = cs.certainty(truth).table["classes"]
    majority = Predictions.from_lists([[label] for label in best], classes=list("0123"))
    np.testing.assert_allclose(cs.evaluate(truth, majority).items, certainty[1])
    np.testing.assert_allclose(cs.certainty(truth, of=majority).items, certainty[1])


def test_value_spread_and_point_by_definition():
    annotations = Annotations.from_codes([0, 0, 1, 2, 2, 2], [0, 1, 0, 0, 1, 2], [0, 1, 2, 1, 1, 0])
    fit = cs.fit("dirichlet", annotations, draws=300)
    predictions = random_predictions(3, 3, 3)
    score = cs.evaluate(fit, predictions, "top-2", exact=False)
    ranking = np.concatenate([b.real[:, :, 0] for b in fit.truth.blocks(Ranked(1))])
    hit = (ranking[:, :, None] == predictions.ranked[:, None, :2]).any(-1)
    np.testing.assert_allclose(score.items, hit.mean(1))
    np.testing.assert_allclose(score.draws, hit.mean(0))
    assert score.value == pytest.approx(hit.mean())
    assert score.sd == pytest.approx(hit.mean(0).std(ddof=1))
    assert (score.worst, score.best) == (hit.mean(0).min(), hit.mean(0).max())
    votes = [0, 2, 1]  # a tie of the first item is broken by the lowest code
    point = [label in row[:2] for label, row in zip(votes, predictions.ranked, strict=True)]
    assert score.point == pytest.approx(np.mean(point))
    assert adjusted("top-2")(fit, predictions).items.tolist() == cs.evaluate(fit, predictions, "top-2").items.tolist()


def test_the_point_estimate_keeps_its_ties():
    """Worked: {0, 1} tied against 0 > 1 has Kendall score 9/10 and footrule score 5/6 at 2."""
    fit = cs.fit("dirichlet", Annotations.from_codes([0, 0], [0, 1], [0, 1], num_labels=4))
    predictions = Predictions.from_lists([["0", "1"]], classes=list("0123"))
    scores = cs.evaluate(fit, predictions, ["kendall-2", "footrule-2"])
    assert scores["kendall-2"].point == pytest.approx(9 / 10)
    assert scores["footrule-2"].point == pytest.approx(5 / 6)


def test_by_group_is_the_ratio_of_sums():
    truth, predictions = random_truth(5, num_draws=30), random_predictions(6)
    groups = ClassMap.from_codes([0, 1, 1, 2], groups=["low", "mid", "high"])
    table = cs.evaluate(truth, predictions, "top-2", class_groups=groups).by_group
    top = np.concatenate([b.real[:, :, 0] for b in truth.blocks(Ranked(1))])
    hit = (top[:, :, None] == predictions.ranked[:, None, :2]).any(-1)
    group = np.array([0, 1, 1, 2])[top]
    assert table["group"].tolist() == ["low", "mid", "high"]
    for g in range(3):
        assert table["value"][g] == pytest.approx(hit[group == g].mean())
        assert table["items_expected"][g] == pytest.approx((group == g).sum() / 30)
        shares = [hit[:, d][group[:, d] == g].mean() for d in range(30) if np.any(group[:, d] == g)]
        assert table["sd"][g] == pytest.approx(np.std(shares, ddof=1))


def test_several_metrics_in_one_pass_are_those_of_single_passes():
    draws = np.random.default_rng(3).dirichlet(np.ones(4), (20, 6))
    truth = PlausibilityDraws.dense(draws)
    lists = [["0", "1"], ["2"], ["3", "0", "1"], ["1"], ["2", "3"], ["0"]]
    predictions = Predictions.from_lists(lists, classes=list("0123"))
    names = ["top-1", "set-3", "kendall-2"]
    for name, score in cs.evaluate(truth, predictions, names).items():
        alone = cs.evaluate(truth, predictions, name)
        np.testing.assert_array_equal(score.items, alone.items)
        np.testing.assert_array_equal(score.draws, alone.draws)


def test_groups_that_never_lead_have_no_score():
    truth = PlausibilityDraws.dense(np.array([[[0.9, 0.1]], [[0.8, 0.2]]]))
    groups = ClassMap.from_codes([0, 1], groups=["a", "b"])
    table = cs.evaluate(truth, Predictions.from_lists([["0"]], classes=["0", "1"]), class_groups=groups).by_group
    assert table["value"].isna().tolist() == [False, True]
    assert table["sd"].isna().tolist() == [False, True]
    assert table["items_expected"].tolist() == [1, 0]


def test_by_group_of_the_point_estimate():
    fit = cs.fit("dirichlet", Annotations.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 1], num_labels=3), draws=100)
    groups = ClassMap.from_codes([0, 1, 1], groups=["a", "b"])
    score = cs.evaluate(fit, Predictions.from_lists([["0"], ["0"], ["1"]], classes=list("012")), class_groups=groups)
    table = score.by_group
    assert table["items_by_point_estimate"].tolist() == [1, 2]
    np.testing.assert_allclose(table["value_by_point_estimate"], [score.items[0], score.items[1:].mean()])


def test_evaluating_missing_and_unknown_predictions():
    annotations = Annotations.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 1], items=["a", "b", "c"], labels=["x", "y"])
    fit = cs.fit("dirichlet", annotations, draws=100)
    some = Predictions.from_lists([["y"], ["x"]], items=["c", "a"])
    with pytest.raises(InputError, match="1 items of the data have no prediction: 'b'"):
        cs.evaluate(fit, some)
    score = cs.evaluate(fit, some, missing="drop")
    assert np.isnan(score.items).tolist() == [False, True, False]
    assert score.row()["items"] == 2
    assert score.value == pytest.approx(score.items[[0, 2]].mean())
    odd = Predictions.from_lists([["nevus", "x"], ["y"], ["y"]], items=["a", "b", "c"])
    with pytest.raises(InputError, match="'nevus'"):
        cs.evaluate(fit, odd)
    kept = cs.evaluate(fit, odd, ["top-1", "top-2"], unknown="keep")
    assert kept["top-1"].items[0] == 0
    assert kept["top-2"].items[0] > 0.5


def test_a_metric_of_the_users_own():
    own = Metric("last", "last choice leads", 1, 4, lambda truth, prediction: (truth[0] == prediction[3]) * 1.0)
    truth, predictions = random_truth(1), random_predictions(2)
    top = np.concatenate([b.real[:, :, 0] for b in truth.blocks(Ranked(1))])
    expected = (top == predictions.ranked[:, 3:]).mean(1)
    np.testing.assert_allclose(cs.evaluate(truth, predictions, own).items, expected)


def test_scoring_again_compiles_nothing(compilations):
    fit = cs.fit("dirichlet", Annotations.from_codes([0, 0, 1], [0, 1, 0], [0, 1, 2]), draws=50)
    predictions = random_predictions(0, 2, 3)
    metrics = ["top-1", "kendall-2", "footrule-2"]
    cs.evaluate(fit, predictions, metrics)
    compilations.clear()
    cs.evaluate(fit, random_predictions(1, 2, 3), metrics)
    assert not compilations


WIDE = {"item": ["a", "b"], "no": [0.8, 0.1], "yes": [0.2, 0.9]}
LONG = {"item": ["a", "b"], "class": ["no", "yes"]}


@pytest.mark.parametrize("table", [WIDE, LONG])
@pytest.mark.parametrize(("exact", "how"), [(None, ", exact"), (False, "")])
def test_titles_say_what_scores_suppose(table, exact, how):
    fit = cs.fit("dirichlet", Annotations.from_counts([[3, 0], [1, 2]], items=["a", "b"], labels=["no", "yes"]))
    score = cs.evaluate(fit, table, exact=exact)
    assert repr(score).startswith(f"top-1 accuracy of predictions if made from the annotations{how}: ")
    assert "None" not in repr(score)


def test_messages_call_systems_what_the_user_does():
    counts = Annotations.from_counts([[3, 0], [1, 2], [1, 1]], items=["a", "b", "c"], labels=["no", "yes"])
    fit = cs.fit("dirichlet", counts)
    for table in (WIDE, LONG):
        with pytest.raises(InputError, match="predictions 'bert'"):
            cs.compare(fit, {"bert": table})
