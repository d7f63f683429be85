"""Scores of views: by hand, against scikit-learn, and what no permutation of labels may change."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import UnsupportedRequest
from consilience.evaluation import views
from consilience.evaluation.partitions import contingency, score
from consilience.models.truth.partitions import DrawnPartitions
from consilience.models.truth.views import Views


def ami(one, other):
    return views.adjusted_mutual_information(np.array([one]), np.array([other])).item()


def information(one, other):
    found = contingency(np.array([one]), np.array([other]))
    a, b = found.response_size[found.response], found.key_size[found.key]
    return float((found.common * np.log(len(one) * found.common / (a * b))).sum() / len(one))


def entropy(labels):
    return information(labels, labels)


@st.composite
def labelings(draw, most=40):
    size = draw(st.integers(2, most))
    labels = st.lists(st.integers(0, 5), min_size=size, max_size=size)
    return draw(labels), draw(labels)


# Clusterings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), [([0, 0, 1, 1], [0, 0, 0, 1]), ([0, 0, 1, 1, 2], [0, 1, 0, 1, 1])])
def test_chance_is_the_mean_over_all_permutations(one, other):
    chance = np.mean([information(one, list(order)) for order in itertools.permutations(other)])
    expected = (information(one, other) - chance) / ((entropy(one) + entropy(other)) / 2 - chance)
    assert ami(one, other) == pytest.approx(expected, abs=1e-12)


@given(both=labelings(), seed=st.integers(0, 1000))
def test_adjusted_information_does_not_see_labels(both, seed):
    one, other = (np.array(labels) for labels in both)
    value = ami(one, other)
    assert value <= 1 + 1e-12
    assert ami(other, one) == pytest.approx(value, abs=1e-12)
    random = np.random.default_rng(seed)
    renamed, order = random.permutation(6), random.permutation(len(one))
    assert ami(renamed[one][order], other[order]) == pytest.approx(value, abs=1e-12)
    assert ami(renamed[one], one) == 1


def test_unrelated_clusterings_have_nothing_in_common():
    random = np.random.default_rng(0)
    one, other = random.integers(3, size=(2, 400, 60))
    values = views.adjusted_mutual_information(one, other)
    assert abs(values.mean()) < 5 * values.std() / np.sqrt(400)
    nmi = score(contingency(one, other), "nmi")
    assert nmi.mean() > 5 * nmi.std() / np.sqrt(400)


def test_edges_of_adjusted_information():
    assert ami([0, 0, 0], [1, 1, 1]) == 1
    assert ami([0, 1, 2], [2, 0, 1]) == 1
    assert ami([0, 0, 0], [0, 0, 1]) == pytest.approx(0, abs=1e-12)
    assert ami([0, 1, 2], [0, 0, 1]) == pytest.approx(0, abs=1e-12)
    assert ami([0, -1, 1, 1], [0, 1, 1, 1]) == ami([0, 1, 1], [0, 1, 1]) == 1
    assert math.isnan(ami([-1, -1], [0, 1]))


def test_scikit_learn_agrees():
    theirs = pytest.importorskip("sklearn.metrics").adjusted_mutual_info_score
    random = np.random.default_rng(1)
    one = np.stack([random.integers(kinds, size=500) for kinds in (2, 5, 40, 400)])
    other = np.where(random.random(one.shape) < 0.3, random.integers(7, size=one.shape), one % 11)
    expected = [theirs(a, b) for a, b in zip(one, other, strict=True)]
    np.testing.assert_allclose(views.adjusted_mutual_information(one, other), expected, atol=1e-9)


def test_blocks_of_terms_are_one_sum(monkeypatch):
    one, other = np.random.default_rng(2).integers(6, size=(2, 5, 200))
    whole = views.adjusted_mutual_information(one, other)
    monkeypatch.setattr(views, "_BLOCK", 50)
    np.testing.assert_allclose(views.adjusted_mutual_information(one, other), whole, rtol=1e-12)


@pytest.mark.parametrize("metric", ["nmi", "ami", "ari", "variation-of-information"])
def test_every_view_is_scored_against_every_truth(metric):
    random = np.random.default_rng(0)
    predicted, truth = random.integers(3, size=(4, 3, 30)), random.integers(2, size=(2, 30))
    found = views.view_scores(predicted, truth, metric)
    assert found.shape == (4, 3, 2)
    for draw, view, true in itertools.product(range(4), range(3), range(2)):
        one, other = predicted[draw, view], truth[true]
        expected = ami(one, other) if metric == "ami" else score(contingency(one[None], other[None]), metric).item()
        assert found[draw, view, true] == pytest.approx(expected, abs=1e-12)


def test_views_are_matched_one_to_one():
    # The first view is best for both truths, but only one can have it.
    assert views.match_views(np.array([[0.9, 0.8], [0.1, 0.6], [0.3, 0.2]])).tolist() == [0, 1]
    assert views.match_views(np.array([[0.9, 0.8], [0.8, 0.1]])).tolist() == [1, 0]
    assert views.match_views(np.array([[0.5, 0.9, 0.1]])).tolist() == [-1, 0, -1]


def test_the_view_of_a_truth_is_that_of_its_experts():
    probability = np.array([[0.1, 0.9, 0], [0.4, 0.6, 0], [0.9, 0.1, 0], [0.3, 0.0, 0.7]])
    assert views.view_of_truth(probability, np.array([0, 0, 0, 1])).tolist() == [1, 2]
    assert views.view_of_truth(probability, np.array([0, 1, 0, 0])).tolist() == [0, 1]


# Experts --------------------------------------------------------------------------------------------------------------


def test_grouping_by_hand():
    phi = np.array([[0.8, 0.2], [0.5, 0.5], [0.0, 1.0]])
    probability = views.same_view(phi)
    assert np.diag(probability).tolist() == [1, 1, 1]
    assert probability[0, 1] == pytest.approx(0.5)
    assert probability[0, 2] == pytest.approx(0.2)
    found = views.grouping_scores(np.array([[0, 0, 1], [0, 1, 1], [1, 1, 1]]), probability, np.array([1, 1, 0]))
    assert found.ari == pytest.approx([1, -0.5, 0])
    assert found.num_views.tolist() == [2, 2, 1]
    assert found.log_score == pytest.approx(np.log([0.5, 0.8, 0.5]).mean())
    certain = views.grouping_scores(np.array([[0, 0, 1]]), views.same_view(np.eye(2)[[0, 0, 1]]), np.array([0, 0, 1]))
    assert certain.log_score == 0
    wrong = views.grouping_scores(np.array([[0, 0, 1]]), views.same_view(np.eye(2)[[0, 0, 1]]), np.array([0, 1, 2]))
    assert wrong.log_score == pytest.approx(np.log(1e-10) / 3)


def test_the_number_of_views():
    methods = dict.fromkeys(Views.__abstractmethods__)
    methods |= {"num_views": lambda self: np.array([2, 2, 3, 1]), "used_views": lambda self: np.array([0, 2])}
    truth = type("Few", (Views,), methods)()
    found = views.num_views(SimpleNamespace(truth=truth, method="cavi"))
    assert (found.value, found.point, found.interval) == (2, 2, (pytest.approx(1.075), pytest.approx(2.925)))
    assert found.table.to_dict("list") == {"views": [1, 2, 3], "probability": [0.25, 0.5, 0.25]}
    assert repr(found).startswith("number of views, cavi: 2.0 ± 0.8")
    with pytest.raises(UnsupportedRequest):
        views.num_views(DrawnPartitions(np.zeros((1, 2), int)))


# Answers --------------------------------------------------------------------------------------------------------------


def test_probability_of_an_answer_by_hand():
    cluster = np.array([[[0.7, 0.3], [1, 0]], [[0.5, 0.5], [0, 1]], [[0.2, 0.8], [1, 0]]])
    pair = views.together(cluster, np.array([0, 0]), np.array([1, 2]))
    np.testing.assert_allclose(pair, [[0.5, 0], [0.38, 1]])
    phi = np.array([[0.4, 0.6], [1, 0]])
    sensitivity, specificity, expert = np.array([0.9, 0.8]), np.array([0.7, 0.6]), np.array([1, 0])
    found = views.answer_probability(pair, phi, sensitivity, specificity, expert)
    expected = [0.5 * 0.8 + 0.5 * 0.4, 0.4 * (0.38 * 0.9 + 0.62 * 0.3) + 0.6 * 0.9]
    np.testing.assert_allclose(found, expected)
    by_view = [np.repeat(one[:, None], 2, axis=1) for one in (sensitivity, specificity)]
    np.testing.assert_allclose(views.answer_probability(pair, phi, *by_view, expert), expected)
    scores = views.answer_scores(found, np.array([1, 0]))
    np.testing.assert_allclose(scores.log_score, [np.log(expected[0]), np.log(1 - expected[1])])
    np.testing.assert_allclose(scores.brier, [(1 - expected[0]) ** 2, expected[1] ** 2])


def test_probabilities_are_lifted_over_draws():
    random = np.random.default_rng(0)
    pair = random.random((6, 20, 3))
    phi = np.eye(3)[random.integers(3, size=(6, 4))]
    sensitivity, specificity = random.random((2, 6, 4))
    expert = random.integers(4, size=20)
    found = views.answer_probability(pair, phi, sensitivity, specificity, expert)
    assert found.shape == (6, 20)
    for draw in range(6):
        one = views.answer_probability(pair[draw], phi[draw], sensitivity[draw], specificity[draw], expert)
        np.testing.assert_allclose(found[draw], one)


@given(truth=st.floats(0.05, 0.95), claimed=st.floats(0.01, 0.99))
def test_scores_of_answers_are_proper(truth, claimed):
    def expected(probability):
        yes, no = (views.answer_scores(np.array([probability]), np.array([answer])) for answer in (1, 0))
        return [truth * one.item() + (1 - truth) * other.item() for one, other in zip(yes, no, strict=True)]

    (log_best, brier_best), (log, brier) = expected(truth), expected(claimed)
    assert log_best >= log - 1e-12
    assert brier_best <= brier + 1e-12


def test_pairs_are_held_out_for_all_experts():
    item_a, item_b = np.array([0, 1, 0, 2, 5, 3, 2]), np.array([1, 0, 1, 3, 4, 2, 4])
    held = views.held_out_pairs(item_a, item_b, 0.5, seed=1)
    assert len(set(held[[0, 1, 2]])) == len(set(held[[3, 5]])) == 1
    distinct = held[[0, 3, 4, 6]]
    assert distinct.sum() == 2
    assert (views.held_out_pairs(item_a, item_b, 0.5, seed=1) == held).all()
    assert any((views.held_out_pairs(item_a, item_b, 0.5, seed=seed) != held).any() for seed in range(2, 8))
    assert not views.held_out_pairs(item_a, item_b, 0.0).any()


def test_own_share():
    found = views.own_share(np.array([0, 0, 0, 2]), np.array([1, 1, 0, 1]), 3)
    assert found.tolist() == [2.5 / 4, 0.5, 1.5 / 2]


# Accuracies and pairs -------------------------------------------------------------------------------------------------


def test_intervals_of_a_posterior_cover_as_they_say():
    random = np.random.default_rng(0)
    number, trials = 4000, 30
    truth = random.beta(3, 2, number)
    right = random.binomial(trials, truth)
    parameters = np.stack([3.0 + right, 2.0 + trials - right], axis=-1)
    for level in (0.95, 0.5):
        found = views.interval_coverage(*views.beta_interval(parameters, level), truth)
        assert abs(found.covered.mean() - level) < 5 * np.sqrt(level * (1 - level) / number)
    lower, upper = views.beta_interval(np.array([[1.0, 1.0]]), 0.8)
    np.testing.assert_allclose([lower[0], upper[0]], [0.1, 0.9])
    np.testing.assert_allclose(views.interval_coverage(lower, upper, np.array([0.05])).width, 0.8)


def test_reliability_of_pairs():
    random = np.random.default_rng(0)
    probability = random.random(20_000)
    truth = random.random(20_000) < probability
    found = views.reliability_of_pairs(probability, truth)
    assert found.number.sum() == 20_000
    spread = np.sqrt(found.probability * (1 - found.probability) / found.number)
    assert (np.abs(found.together - found.probability) < 5 * spread).all()
    assert found.error < 5 * spread.mean()
    overconfident = views.reliability_of_pairs(np.where(probability > 0.5, 1.0, 0.0), truth)
    assert overconfident.number[[0, 9]].sum() == 20_000
    assert np.isnan(overconfident.together[1:9]).all()
    assert overconfident.error == pytest.approx(0.25, abs=5 * 0.5 / np.sqrt(20_000))
