"""Alpha with annotators random: everything left out one at a time and recomputed, and how often intervals hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.evaluation.agreement.alpha import krippendorff_alpha
from consilience.evaluation.agreement.alpha_of_others import alpha_interval, alpha_two_way_sd
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.jackknife import jackknife_sd

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=25)


def make(rows):
    item, annotator, label = np.array(rows).reshape(-1, 3).T
    return cs.Annotations.from_codes(item, annotator, label, num_items=5, num_annotators=4, num_labels=3)


def alpha(rows):
    return krippendorff_alpha(LabelCounts.of_annotations(make(rows))).value if rows else float("nan")


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_standard_errors_are_those_of_leaving_out_and_recomputing(rows):
    data = make(rows)
    found = alpha_two_way_sd(LabelCounts.of_annotations(data), data)
    numbered = [(*row, number) for number, row in enumerate(rows)]
    usable = [row for row in numbered if sum(row[0] == other[0] for other in rows) > 1]
    units = {place: sorted({row[place] for row in usable}) for place in (0, 1, 3)}
    by_hand = [
        jackknife_sd(np.array([alpha([row[:3] for row in numbered if row[place] != unit]) for unit in of]))
        for place, of in units.items()
    ]
    np.testing.assert_allclose([found.item_sd, found.annotator_sd, found.cell_sd], by_hand, atol=1e-9)
    assert found.num_annotators == len({row[1] for row in usable})


def crowd(random, num_annotators, num_items=100, per_item=3):
    """Draw labels of annotators who are right with a probability between 0.5 and 0.95."""
    truth, right = random.integers(0, 3, num_items), random.uniform(0.5, 0.95, num_annotators)
    who = np.argsort(random.random((num_items, num_annotators)), axis=1)[:, :per_item].ravel()
    item = np.arange(num_items).repeat(per_item)
    off = np.where(random.random(len(item)) < right[who], 0, random.integers(1, 3, len(item)))
    return cs.Annotations.from_codes(item, who, (truth[item] + off) % 3)


def test_intervals_for_annotators_like_these_hold_the_alpha_of_a_large_crowd():
    random, mean = np.random.default_rng(0), 0.725
    agreement = mean**2 + (1 - mean) ** 2 / 2
    true = (agreement - 1 / 3) / (2 / 3)
    data = [crowd(random, 8) for _ in range(100)]
    ends = [cs.agreement(one).alpha_interval_of_others for one in data]
    assert sum(low <= true <= high for low, high in ends) >= 86  # 93 or 94 are expected
    inside = [krippendorff_alpha(LabelCounts.of_annotations(one)) for one in data]
    assert sum(one.lower <= true <= one.upper for one in inside) < 80  # of these annotators alone
    assert all(low <= one.lower and one.upper <= high for one, (low, high) in zip(inside, ends, strict=True))


@pytest.mark.parametrize(("sd", "units"), [(float("nan"), 9), (0.1, 1)])
def test_no_interval_is_made_up(sd, units):
    assert np.isnan(alpha_interval(0.5, sd, units, 0.95)).all()


def test_an_interval_ends_at_full_agreement():
    low, high = alpha_interval(0.9, 0.2, 5, 0.95)
    assert high == 1
    assert low == pytest.approx(0.9 - 2.776445 * 0.2)


def test_counts_alone_tell_nothing_of_other_annotators():
    assert cs.agreement(cs.Annotations.from_counts([[2, 1], [1, 2]])).alpha_interval_of_others is None
