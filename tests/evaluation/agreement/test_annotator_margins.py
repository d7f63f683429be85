"""Conger's kappa, Cohen's kappa and Scott's pi: by hand, and as when items are deleted."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.annotator_margins import conger_kappa, present_annotators, two_annotators
from tests.evaluation.agreement.tables import corrected, scatter


@st.composite
def rows(draw, num_annotators=4):
    """Draw (item, annotator, label) rows; an annotator may label an item again."""
    row = st.tuples(st.integers(0, 4), st.integers(0, num_annotators - 1), st.integers(0, 2))
    return np.array(draw(st.lists(row, min_size=4, max_size=16)))


def of(table, **sizes):
    return Annotations.from_codes(*table.T, num_items=5, num_labels=3, **sizes)


def shares(labels):
    return np.bincount(labels, minlength=3) / len(labels)


def left_out(estimate, table, items):
    return np.array([estimate(table[table[:, 0] != item]) for item in items])


def conger(table):
    agreement = []
    for item in np.unique(table[:, 0]):
        labels = table[table[:, 0] == item, 2]
        if len(labels) >= 2:
            agreement.append(np.mean([a == b for a, b in itertools.combinations(labels, 2)]))
    margins = [shares(table[table[:, 1] == annotator, 2]) for annotator in np.unique(table[:, 1])]
    pairs = [a @ b for a, b in itertools.combinations(margins, 2)]
    return corrected(np.mean(agreement), np.mean(pairs)) if agreement and pairs else np.nan


@settings(max_examples=100)
@given(rows())
def test_conger_as_when_items_are_deleted(table):
    estimate = conger_kappa(of(table))
    np.testing.assert_allclose(estimate.value, conger(table), atol=1e-12)
    without = left_out(conger, table, np.unique(table[:, 0]))
    np.testing.assert_allclose(estimate.sd, scatter(without), atol=1e-11)


def of_both(table):
    """Return the class shares of both annotators on the items that both labelled, and those items."""
    items = [item for item in np.unique(table[:, 0]) if len(np.unique(table[table[:, 0] == item, 1])) == 2]
    both = [[shares(table[(table[:, 0] == item) & (table[:, 1] == who), 2]) for item in items] for who in (0, 1)]
    return np.array(both), items


def cohen(table):
    (first, second), items = of_both(table)
    return corrected((first * second).sum(1).mean(), first.mean(0) @ second.mean(0)) if items else np.nan


def scott(table):
    (first, second), items = of_both(table)
    return corrected((first * second).sum(1).mean(), (((first + second) / 2).mean(0) ** 2).sum()) if items else np.nan


@settings(max_examples=100)
@given(rows(num_annotators=2))
def test_cohen_and_scott_as_when_items_are_deleted(table):
    assume(len(np.unique(table[:, 1])) == 2)
    _, items = of_both(table)
    for result, estimate in zip(two_annotators(of(table)), (cohen, scott), strict=True):
        np.testing.assert_allclose(result.value, estimate(table), atol=1e-12)
        np.testing.assert_allclose(result.sd, scatter(left_out(estimate, table, items)), atol=1e-11)


def test_kappas_of_two_annotators_by_hand():
    # 20 both yes, 5 yes and no, 10 no and yes, 15 both no.
    first, second = np.repeat([[0, 0, 1, 1], [0, 1, 0, 1]], [20, 5, 10, 15], axis=1)
    data = Annotations.from_codes(np.tile(np.arange(50), 2), np.repeat([0, 1], 50), np.concatenate([first, second]))
    cohen_, scott_ = two_annotators(data)
    assert (cohen_.name, scott_.name) == ("Cohen's kappa", "Scott's pi")
    assert cohen_.observed == pytest.approx(0.7)
    assert cohen_.expected == pytest.approx(0.5)
    assert cohen_.value == pytest.approx(0.4)
    assert scott_.expected == pytest.approx(0.55**2 + 0.45**2)
    np.testing.assert_allclose(conger_kappa(data)[2:], cohen_[2:])
    assert cohen_.lower < 0.4 < cohen_.upper


def test_a_weight_is_a_number_of_annotations():
    table = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 2], [1, 1, 0], [2, 0, 0], [2, 1, 0], [3, 0, 1], [3, 1, 0]])
    weight = np.array([1, 3, 0, 2, 1, 1, 1, 2])
    weighted = Annotations.from_codes(*table.T, weight=weight, num_items=5, num_labels=3)
    repeated = of(np.repeat(table, weight, axis=0))
    assert conger_kappa(weighted) == conger_kappa(repeated)
    assert two_annotators(weighted) == two_annotators(repeated)


def test_annotators_who_do_not_occur_make_no_difference():
    table = np.array([[0, 0, 1], [0, 3, 1], [1, 0, 2], [1, 3, 0], [2, 0, 0], [2, 3, 0]])
    absent, plain = of(table, num_annotators=6), of(table // np.array([1, 3, 1]))
    assert present_annotators(absent).tolist() == [0, 3]
    assert conger_kappa(absent) == conger_kappa(plain)
    assert two_annotators(absent) == two_annotators(plain)


def test_without_items_in_common():
    data = of(np.array([[0, 0, 1], [1, 1, 1]]))
    for estimate in [*two_annotators(data), conger_kappa(data)]:
        assert np.isnan([estimate.value, estimate.sd, estimate.lower]).all()


def test_annotators_who_are_unknown_or_not_two_are_refused():
    unknown = Annotations.from_counts(np.array([[2, 1], [0, 3]]))
    assert len(present_annotators(unknown)) == 0
    with pytest.raises(UnsupportedRequest, match="do not say who"):
        conger_kappa(unknown)
    with pytest.raises(UnsupportedRequest, match="0 known annotators"):
        two_annotators(unknown)
    with pytest.raises(UnsupportedRequest, match="3 known annotators"):
        two_annotators(of(np.array([[0, 0, 1], [0, 1, 1], [0, 2, 1]])))
