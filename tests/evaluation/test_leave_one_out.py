"""Leave-one-out agreement: values by hand, a brute force with fractions, ties, blank reports and weighted labels."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.data.annotations import Annotations
from consilience.errors import UnknownName
from consilience.evaluation import leave_one_out as module
from consilience.evaluation.leave_one_out import agreement_by_annotator, annotator_agreement, naming
from tests.evaluation.rankings import dermatology, make, rankings

WEIGHTS = ("equation-14", "published-code")


def leave_one_out_agreement(*given):
    return annotator_agreement(*given).items


def brute_force(reports, weights):
    """Return the agreement of one item by the words of the definition, with fractions."""
    if len(reports) < 2:
        return np.nan
    hits = 0
    for left_out, report in enumerate(reports):
        sums = defaultdict(Fraction)
        for index, other in enumerate(reports):
            for rank, block in enumerate(other, start=1):
                for label in block:
                    if index != left_out:
                        sums[label] += Fraction(1, rank * (len(block) if weights == "equation-14" else 1))
        highest = max(sums.values(), default=None)
        hits += any(label in sums and sums[label] == highest for block in report for label in block)
    return hits / len(reports)


def test_leave_one_out_agreement_by_hand():
    nested = [[[[0], [1, 2]], [[1]]], [[[0], [1]], [[1]], [[2]]]]
    # Item 0. Without {0} > {1, 2}, class 1 leads and is listed. Without {1}, class 0 leads: a miss.
    # Item 1. Without {0} > {1}, classes 1 and 2 tie and 1 is listed. Without {1}, 0 and 2 tie; without {2}, 1 leads.
    np.testing.assert_allclose(leave_one_out_agreement(make(nested, 4)), [1 / 2, 1 / 3])


def test_agreement_of_each_annotator_by_hand():
    """As above, and one who ranks alone counts for nothing."""
    found = agreement_by_annotator(make([[[[0], [1, 2]], [[1]]], [[[0], [1]], [[1]], [[2]]], [[[3]]]], 4))
    assert found["annotator"].astype(int).tolist() == [0, 1, 2]
    assert found["rankings"].tolist() == [2, 2, 1]
    assert found["agreement"].tolist() == [1.0, 0.0, 0.0]
    assert found["classes"].tolist() == [2.5, 1.0, 1.0]
    assert found["first"].tolist() == [0.0, 0.0, 0.0]  # 0 has 1 in the second place
    assert ((found["lower"] <= found["first"]) & (found["first"] <= found["upper"])).all()
    alike = agreement_by_annotator(make([[[[0], [1]], [[0], [2]], [[1], [0]]]], 4))
    assert alike["first"].tolist() == [1.0, 1.0, 0.0]
    assert alike["agreement"].tolist() == [1.0, 1.0, 1.0]


def test_what_naming_at_random_would_give_by_hand():
    """As above, where nobody has a leading class first; and where all have."""
    found = naming(make([[[[0], [1, 2]], [[1]]], [[[0], [1]], [[1]], [[2]]], [[[3]]]], 4))
    np.testing.assert_allclose(found.at_random, np.mean([4 / 2, 4 / 3]) / 4)
    np.testing.assert_allclose(found.first_at_random, 1 / 4)
    assert found.first == 0
    copies = naming(make([[[[0], [1]], [[0], [2]], [[0, 1]]]], 4))
    np.testing.assert_allclose(copies, [6 / 3 / 4, 1, 4 / 3 / 4])


def test_weightings_differ_on_ties():
    """Without {0}, class 3 leads by equation 14, while the code gives every class of the tied block as much."""
    rankings = make([[[[0, 1, 2]], [[3]], [[0]]]], 4)
    agreement = {weights: leave_one_out_agreement(rankings, weights).tolist() for weights in WEIGHTS}
    assert agreement == {"equation-14": [1 / 3], "published-code": [2 / 3]}


def test_equal_sums_of_reciprocals_are_a_tie(monkeypatch):
    """Without 0 > 2, classes 0 and 1 both have 1 + 1/3, but subtracting a report from the total rounds them apart."""
    rankings = make([[[[0], [2], [1]], [[1], [2], [0]], [[0], [2]]], [[[1, 0, 2]], [[0, 2, 1]], [[0]]]], 3)
    np.testing.assert_array_equal(leave_one_out_agreement(rankings), [1, 1])
    monkeypatch.setattr(module, "_TIE", 0)
    assert (leave_one_out_agreement(rankings) < 1).all()


def test_undefined_for_one_report_and_a_miss_where_the_others_rank_nothing():
    nested = [[[[0]]], [], [[[0]], []], [[[0]], [[0]], []]]
    np.testing.assert_array_equal(leave_one_out_agreement(make(nested, 2)), [np.nan, np.nan, 0, 2 / 3])


def test_unknown_weights_are_named():
    with pytest.raises(UnknownName, match="'equation-14' or 'published-code'"):
        leave_one_out_agreement(make([[[[0]]]], 1), "code")


@given(
    nested=st.lists(st.lists(rankings(5, 4), max_size=6), min_size=1, max_size=6).filter(any),
    weights=st.sampled_from(WEIGHTS),
)
@settings(max_examples=200, deadline=None)
def test_against_brute_force(nested, weights):
    values = leave_one_out_agreement(make(nested, 5), weights)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, [brute_force(item, weights) for item in nested])


@given(labels=st.lists(st.lists(st.integers(0, 3), max_size=7), min_size=1, max_size=5).filter(any), data=st.data())
@settings(max_examples=60, deadline=None)
def test_labels_are_rankings_of_one_class(labels, data):
    """In any order of the rows, and counted as well as listed one by one."""
    item = np.repeat(np.arange(len(labels)), [len(votes) for votes in labels])
    label = np.concatenate([np.array(votes, int) for votes in labels])
    expected = leave_one_out_agreement(make([[[[vote]] for vote in votes] for votes in labels], 4))
    order = np.array(data.draw(st.permutations(range(len(item)))))
    rows = Annotations.from_codes(item[order], None, label[order], num_items=len(labels), num_labels=4)
    np.testing.assert_allclose(leave_one_out_agreement(rows), expected)
    counts = np.zeros((len(labels), 4))
    np.add.at(counts, (item, label), 1)
    item, label = np.indices(counts.shape).reshape(2, -1)
    counted = Annotations.from_codes(item, None, label, weight=counts.ravel(), num_items=len(labels), num_labels=4)
    np.testing.assert_allclose(leave_one_out_agreement(counted), expected)


@pytest.mark.public_data
@pytest.mark.parametrize(("weights", "mean"), [("equation-14", 0.697161), ("published-code", 0.703792)])
def test_leave_one_out_agreement_of_dermatologists(weights, mean, record_property):
    nested = dermatology()
    values = leave_one_out_agreement(make(nested, 419), weights)
    record_property("mean agreement", float(np.nanmean(values)))
    np.testing.assert_array_equal(values, [brute_force(case, weights) for case in nested])
    assert np.isnan(values).sum() == 25
    assert np.nanmean(values) == pytest.approx(mean, abs=1e-6)
