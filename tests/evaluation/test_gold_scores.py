"""Scores of systems under the gold labels that a fit did not use, and the leaderboard that they anchor."""

import numpy as np
import pytest

import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import scoring_of
from consilience.evaluation.anchoring import compare_anchored
from consilience.evaluation.engine import PerUnit, fold
from consilience.evaluation.reliability import gold_scores
from consilience.models.truth import LabelDraws


@pytest.fixture(scope="module")
def gold_crowd():
    """Labels of three annotators, gold labels of 60 of 200 items, and two systems, of which one knows the truth."""
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, 200)
    item, annotator = np.repeat(np.arange(200), 3), np.tile(np.arange(3), 200)
    label = np.where(random.random(600) < 0.65, truth[item], random.integers(0, 3, 600))
    gold = np.where(np.arange(200) % 10 < 3, truth, -1)
    data = cs.Annotations.from_codes(item, annotator, label, gold=gold)
    knows = np.where(random.random(200) < 0.95, truth, (truth + 1) % 3)
    systems = {
        name: cs.Predictions.from_lists([[str(one)] for one in top], classes=list("012"))
        for name, top in {"follows": label[::3], "knows": knows}.items()
    }
    return data, truth, systems, {"follows": label[::3], "knows": knows}


@pytest.fixture(scope="module")
def fitted(gold_crowd):
    return cs.fit("dawid-skene", gold_crowd[0], method="cavi", draws=200)


def test_gold_scores_are_those_of_known_labels(gold_crowd, fitted):
    data, truth, systems, top = gold_crowd
    y, has_gold = gold_scores(fitted, list(systems.values()), "top-1")
    assert has_gold.tolist() == (np.asarray(data.gold) >= 0).tolist()
    assert y.tolist() == [((own == truth) & has_gold).astype(float).tolist() for own in top.values()]


def test_items_that_a_system_lacks_have_no_gold_score(gold_crowd, fitted):
    _, truth, _, top = gold_crowd
    some = cs.Predictions.from_lists(
        [[str(one)] for one in top["knows"][:100]], classes=list("012"), items=list(map(str, range(100)))
    )
    y, has_gold = gold_scores(fitted, [some], "top-1", missing="drop")
    assert y.shape == (1, 100)
    assert has_gold.sum() == 30
    assert y[0].sum() == (top["knows"] == truth)[:100][has_gold].sum()


def test_a_leaderboard_of_a_fit_with_gold_labels(gold_crowd, fitted):
    _, truth, systems, top = gold_crowd
    y, has_gold = gold_scores(fitted, list(systems.values()), "top-1")
    _, scoring, name = scoring_of(fitted, list(systems.values()), "top-1", missing="error", unknown="error")
    means = PerUnit(scoring, name)
    fold(scoring, means)
    gold = np.tile(has_gold, (2, 1))
    board = compare_anchored(y, means.mean, gold, systems=tuple(systems), title=scoring.title(name))
    assert board.title == "top-1 accuracy, anchored on 60 gold items"
    assert board.table["system"].tolist() == ["knows", "follows"]
    right = np.array([(own == truth).mean() for own in top.values()])
    assert (np.abs(board.values - right) < 4 * board.truth_draws.std(axis=1)).all()


def test_gold_labels_that_cannot_check_a_system_are_refused(gold_crowd, fitted):
    data, truth, systems, _ = gold_crowd
    both = list(systems.values())
    used = cs.fit("dawid-skene", data, method="cavi", draws=200, gold="use")
    with pytest.raises(UnsupportedRequest, match=r"the fit has seen the gold labels; fit with gold='ignore' so"):
        gold_scores(used, both, "top-1")
    for source in (cs.fit("majority-vote", data.replace(gold=None)), LabelDraws(truth[None], 3)):
        with pytest.raises(UnsupportedRequest, match="no gold labels could check these systems"):
            gold_scores(source, both, "top-1")
    with pytest.raises(UnsupportedRequest):
        gold_scores(fitted, both, "top-2-target-2")
