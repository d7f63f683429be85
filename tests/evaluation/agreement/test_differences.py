"""The lowest of several agreements: by differences over the items, and with all pairs counted."""

import numpy as np
import pytest
from scipy import stats

import consilience as cs
from consilience.evaluation.agreement.differences import lowest_annotator, lowest_label


def crowd(seed, hit, num_items=150, per_item=4, num_labels=3):
    """Return annotations by annotators who give the true label so often, and any label otherwise."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, num_labels, num_items)
    who = np.stack([random.choice(len(hit), per_item, replace=False) for _ in range(num_items)])
    knows = random.random(who.shape) < np.asarray(hit)[who]
    label = np.where(knows, truth[:, None], random.integers(0, num_labels, who.shape))
    return cs.Annotations.from_codes(np.arange(num_items).repeat(per_item), who.ravel(), label.ravel())


def by_hand(data, group, other):
    """Return the p value of the difference of two annotators, leaving out each item by itself."""
    item, annotator, label = (np.asarray(codes) for codes in (data.item, data.annotator, data.label))

    def share(who, without):
        met = [
            label[i] == label[j] for i in range(len(item)) for j in np.flatnonzero(item == item[i])
            if annotator[i] == who and i != j and item[i] != without
        ]  # fmt: skip
        return np.mean(met)

    units = np.unique(item[np.isin(annotator, [group, other])])
    moved = np.array([share(other, unit) - share(group, unit) for unit in units])
    number = len(units)
    sd = np.sqrt((number - 1) / number * ((moved - moved.mean()) ** 2).sum())
    return 2 * stats.t.sf((share(other, -1) - share(group, -1)) / sd, number - 1)


def test_differences_are_those_of_the_jackknife_by_hand():
    data = crowd(3, [0.3, 0.6, 0.7, 0.8, 0.9], num_items=60)
    found = lowest_annotator(cs.agreement(data).counts, data)
    agreement = cs.agreement(data).annotators()["agreement"]
    assert found.group == agreement.idxmin() == 0
    assert found.others == 4
    told = [by_hand(data, 0, other) <= 0.05 / 10 for other in range(1, 5)]
    assert found.below == tuple(other for other, low in enumerate(told, 1) if low)
    assert 0 < len(found.below) < 4


def test_annotators_who_are_alike_are_seldom_told_apart():
    called = 0
    for seed in range(60):
        data = crowd(seed, [0.7] * 12)
        called += lowest_annotator(cs.agreement(data).counts, data).below != ()
    assert called <= 7  # more have a probability of 0.01 at 5 %


def test_one_who_labels_at_random_is_told_from_all():
    data = crowd(0, [0.0] + [0.9] * 5)
    assert lowest_annotator(cs.agreement(data).counts, data) == (0, (1, 2, 3, 4, 5), 5)


@pytest.mark.parametrize(("counts", "lower"), [([[4, 0, 0]] * 40 + [[0, 4, 0]] * 40 + [[1, 1, 2]] * 40, 2), (None, 0)])
def test_labels_that_agree_less_are_told(counts, lower):
    if counts is None:
        counts = np.random.default_rng(0).multinomial(4, [1 / 3] * 3, 100)
    found = cs.agreement(cs.Annotations.from_counts(counts))
    lowest = lowest_label(found.counts, found._weight(found.weights))
    assert lowest.group == found.labels()["agreement"].idxmin()
    assert (len(lowest.below), lowest.others) == (lower, 2)


def test_nothing_is_compared_where_there_is_nobody_else():
    data = cs.Annotations.from_codes([0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0])
    assert lowest_annotator(cs.agreement(data, duplicates="keep").counts, data) is None
    few = cs.Annotations.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 0])
    assert lowest_annotator(cs.agreement(few).counts, few).below == ()
