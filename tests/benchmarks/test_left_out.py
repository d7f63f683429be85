import itertools

import numpy as np
import pytest

import consilience as cs
from benchmarks.left_out import evaluate_left_out, leave_out
from consilience.data import Predictions, Rankings
from consilience.evaluation.classes import resolve

NESTED = {
    "x": {"A": [["c"], ["a", "b"]], "B": [["b"]], "C": [["d", "c"], ["a"], ["e"]]},
    "alone": {"A": [["e"]]},
    "y": {"B": [["a"]], "D": [["b"], ["a"]]},
}


@pytest.fixture(scope="module")
def cases():
    return Rankings.from_nested(NESTED)


def named(rankings):
    """Return the set of (item, annotator, block, class) of all rows."""
    item, annotator = rankings.report_item[rankings.report], rankings.report_annotator[rankings.report]
    class_ = rankings.entry_class[rankings.entry]
    names = rankings.items[item], rankings.annotators[annotator], rankings.block, rankings.classes[class_]
    return set(zip(*(column.tolist() for column in names), strict=True))


def test_others_are_all_reports_but_one(cases):
    expected = {
        (f"{case} without {left_out}", other, block, class_)
        for case, reports in NESTED.items()
        for left_out, other in itertools.permutations(reports, 2)
        for block, classes in enumerate(reports[other])
        for class_ in classes
    }
    assert named(leave_out(cases).others) == expected


def test_predictions_list_blocks_in_order_and_ties_by_code(cases):
    left_out = leave_out(cases)
    lists = [[left_out.others.classes[code] for code in row if code >= 0] for row in left_out.ranked]
    found = dict(zip(left_out.others.items, lists, strict=True))
    assert found == {
        "x without A": ["c", "a", "b"],
        "x without B": ["b"],
        "x without C": ["c", "d", "a", "e"],
        "y without B": ["a"],
        "y without D": ["b", "a"],
    }
    assert left_out.cases[left_out.case].tolist() == ["x", "x", "x", "y", "y"]


def test_scores_are_averaged_over_annotators_then_cases(cases):
    left_out = leave_out(cases)
    fit = cs.fit("prirn", left_out.others, reliability=5.0, draws=200)
    metrics = [resolve(name) for name in ("top-1", "ao-3")]
    scores = evaluate_left_out(fit.truth, left_out, metrics)
    for metric in metrics:
        plain, score = cs.evaluate(fit, left_out.predictions, metric=metric, exact=False), scores[metric.name]
        by_case = [plain.items[:3].mean(), np.nan, plain.items[3:].mean()]
        np.testing.assert_allclose(score.items, by_case, rtol=1e-6)
        assert score.value == pytest.approx(np.nanmean(by_case))
        assert score.draws.mean() == pytest.approx(score.value)
        assert 0 <= score.point <= 1


def test_exact_accuracy_is_what_draws_approach(cases):
    draws = 20_000
    fit = cs.fit("prirn", cases, reliability=3.0, alpha=0.3, draws=draws)
    lists = [["b", "e"], ["e"], ["d", "c", "a"]]
    predictions = Predictions.from_lists(lists, items=cases.items, classes=cases.classes)
    exact, measured = (cs.evaluate(fit, predictions, metric="top-3", exact=how).items for how in (True, False))
    error = np.sqrt(exact * (1 - exact) / draws)
    assert (abs(measured - exact) <= 5 * error + 1e-6).all()
    everything = Predictions.from_lists([list(cases.classes)] * 3, items=cases.items, classes=cases.classes)
    found = cs.evaluate(fit, everything, metric=f"top-{cases.num_classes}", exact=True).items
    np.testing.assert_allclose(found, 1, atol=1e-9)
