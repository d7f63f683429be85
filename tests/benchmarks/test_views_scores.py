"""What the benchmark of views scores: by hand, against scikit-learn, and what no permutation of labels may change."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.views_scores import (
    adjusted_mutual_information,
    answer_probability,
    answer_scores,
    grouping_log_score,
    held_out_pairs,
    mutual_information,
    own_share,
    reliability_of_pairs,
    view_of_truth,
)


def ami(one, other):
    return adjusted_mutual_information(np.array(one), np.array(other))


def information(one, other):
    return stats.entropy(np.bincount(one)) + stats.entropy(np.bincount(other)) - entropy(np.array(one) * 9 + other)


def entropy(labels):
    return stats.entropy(np.bincount(labels))


@st.composite
def labelings(draw, most=40):
    size = draw(st.integers(2, most))
    labels = st.lists(st.integers(0, 5), min_size=size, max_size=size)
    return draw(labels), draw(labels)


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
    assert ami(renamed[one], one) == pytest.approx(1, abs=1e-12)


def test_unrelated_clusterings_have_nothing_in_common():
    pairs = np.random.default_rng(0).integers(3, size=(400, 2, 60))
    adjusted, plain = (np.array([of(*pair) for pair in pairs]) for of in (ami, mutual_information))
    assert abs(adjusted.mean()) < 5 * adjusted.std() / np.sqrt(400)
    assert plain.mean() > 5 * plain.std() / np.sqrt(400)


def test_edges_of_adjusted_information():
    assert ami([0, 0, 0], [1, 1, 1]) == 1
    assert ami([0, 1, 2], [2, 0, 1]) == 1
    assert ami([0, 0, 0], [0, 0, 1]) == pytest.approx(0, abs=1e-12)
    assert ami([0, 1, 2], [0, 0, 1]) == pytest.approx(0, abs=1e-12)
    assert ami([0, -1, 1, 1], [0, 1, 1, 1]) == ami([0, 1, 1], [0, 1, 1]) == 1
    assert math.isnan(ami([-1, -1], [0, 1]))


def test_scikit_learn_agrees():
    theirs = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(1)
    for kinds in (2, 5, 40, 400):
        one = random.integers(kinds, size=500)
        other = np.where(random.random(500) < 0.3, random.integers(7, size=500), one % 11)
        assert ami(one, other) == pytest.approx(theirs.adjusted_mutual_info_score(other, one), abs=1e-9)
        assert mutual_information(one, other) == pytest.approx(theirs.normalized_mutual_info_score(other, one))


def test_the_view_of_a_truth_is_that_of_its_experts():
    probability = np.array([[0.1, 0.9, 0], [0.4, 0.6, 0], [0.9, 0.1, 0], [0.3, 0.0, 0.7]])
    assert view_of_truth(probability, np.array([0, 0, 0, 1])).tolist() == [1, 2]
    assert view_of_truth(probability, np.array([0, 1, 0, 0])).tolist() == [0, 1]


def test_grouping_by_hand():
    phi = np.array([[0.8, 0.2], [0.5, 0.5], [0.0, 1.0]])
    assert grouping_log_score(phi, np.array([1, 1, 0])) == pytest.approx(np.log([0.5, 0.8, 0.5]).mean())
    certain = np.eye(2)[[0, 0, 1]]
    assert grouping_log_score(certain, np.array([0, 0, 1])) == 0
    assert grouping_log_score(certain, np.array([0, 1, 2])) == pytest.approx(np.log(1e-10) / 3)


def test_probability_of_an_answer_by_hand():
    pair, phi = np.array([[0.5, 0], [0.38, 1]]), np.array([[0.4, 0.6], [1, 0]])
    found = answer_probability(pair, phi, np.array([0.9, 0.8]), np.array([0.7, 0.6]), np.array([1, 0]))
    expected = [0.5 * 0.8 + 0.5 * 0.4, 0.4 * (0.38 * 0.9 + 0.62 * 0.3) + 0.6 * 0.9]
    np.testing.assert_allclose(found, expected)
    scores = answer_scores(found, np.array([1, 0]))
    assert scores["log score"] == pytest.approx(np.log([expected[0], 1 - expected[1]]).mean())
    assert scores["Brier"] == pytest.approx(((1 - expected[0]) ** 2 + expected[1] ** 2) / 2)


@given(truth=st.floats(0.05, 0.95), claimed=st.floats(0.01, 0.99))
def test_scores_of_answers_are_proper(truth, claimed):
    def expected(probability, name):
        yes, no = (answer_scores(np.array([probability]), np.array([answer]))[name] for answer in (1, 0))
        return truth * yes + (1 - truth) * no

    assert expected(truth, "log score") >= expected(claimed, "log score") - 1e-12
    assert expected(truth, "Brier") <= expected(claimed, "Brier") + 1e-12


def test_pairs_are_held_out_for_all_experts():
    item_a, item_b = np.array([0, 1, 0, 2, 5, 3, 2]), np.array([1, 0, 1, 3, 4, 2, 4])
    held = held_out_pairs(item_a, item_b, 0.5, seed=1)
    assert len(set(held[[0, 1, 2]])) == len(set(held[[3, 5]])) == 1
    distinct = held[[0, 3, 4, 6]]
    assert distinct.sum() == 2
    assert (held_out_pairs(item_a, item_b, 0.5, seed=1) == held).all()
    assert any((held_out_pairs(item_a, item_b, 0.5, seed=seed) != held).any() for seed in range(2, 8))
    assert not held_out_pairs(item_a, item_b, 0.0).any()


def test_own_share():
    found = own_share(np.array([0, 0, 0, 2]), np.array([1, 1, 0, 1]), 3)
    assert found.tolist() == [2.5 / 4, 0.5, 1.5 / 2]


def test_reliability_of_pairs():
    random = np.random.default_rng(0)
    probability = random.random(20_000)
    truth = random.random(20_000) < probability
    found = reliability_of_pairs(probability, truth)
    assert found.number.sum() == 20_000
    spread = np.sqrt(found.probability * (1 - found.probability) / found.number)
    assert (np.abs(found.together - found.probability) < 5 * spread).all()
    assert found.error < 5 * spread.mean()
    overconfident = reliability_of_pairs(np.where(probability > 0.5, 1.0, 0.0), truth)
    assert overconfident.number[[0, 9]].sum() == 20_000
    assert np.isnan(overconfident.together[1:9]).all()
    assert overconfident.error == pytest.approx(0.25, abs=5 * 0.5 / np.sqrt(20_000))
