"""Whether annotators are alike: p values are those of all ways to deal out labels, and hold their level."""

import itertools

import numpy as np
import pytest

import consilience as cs
from consilience.evaluation.agreement import exchange
from consilience.evaluation.agreement.exchange import Alike, Half, alike_by_gold, alike_in_agreement, right_by_half


def counts_of(data):
    return cs.agreement(data, duplicates="keep").counts


def crowd(random, apart=0.0, gold=20):
    """Label 60 items, four of eight annotators each; the first four annotators are right less often, by a share."""
    who = np.concatenate([random.permutation(8)[:4] for _ in range(60)])
    item, truth = np.arange(60).repeat(4), random.integers(0, 3, 60)
    right = random.random(240) < random.beta(9 if apart else 3, 1, 60)[item] * np.where(who < 4, 1 - apart, 1.0)
    label = np.where(right, truth[item], (truth[item] + random.integers(1, 3, 240)) % 3)
    return cs.Annotations.from_codes(item, who, label, gold=np.where(np.arange(60) < gold, truth, -1))


def test_p_is_the_share_of_all_ways_to_deal_out_labels_that_are_as_far_apart():
    """Four items of three annotators each: 3⁴ ways to deal out who is right, of which each is as probable."""
    item, who = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    right = np.array([1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0])
    data = cs.Annotations.from_codes(item, who, right, gold=np.ones(4, int))
    found = alike_by_gold(data)

    def distance(score):
        return (((score.reshape(4, 3) - score.reshape(4, 3).mean(axis=1, keepdims=True)).sum(axis=0)) ** 2).sum()

    ways = [set(itertools.permutations(right[3 * one : 3 * one + 3])) for one in range(4)]
    dealt = [distance(np.concatenate(way)) for way in itertools.product(*ways)]
    assert len(dealt) == 81
    share = np.mean(np.array(dealt) >= distance(right) - 1e-9)
    assert found[1:] == (3, 4, 4_999)
    assert found.chance == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 4_999))


@pytest.mark.parametrize(("apart", "most", "least"), [(0.0, 0.11, 0.0), (0.5, 1.0, 0.6)])
def test_annotators_who_are_alike_are_seldom_called_different(monkeypatch, apart, most, least):
    monkeypatch.setattr(exchange, "_MOST_DRAWS", 199)
    found = []
    for seed in range(120):
        data = crowd(np.random.default_rng(seed), apart)
        found.append([alike_in_agreement(counts_of(data), data).chance, alike_by_gold(data).chance])
    told = (np.array(found) <= 0.05).mean(axis=0)
    assert ((told >= least) & (told <= most)).all(), told


def test_halves_are_formed_without_the_labels_that_are_counted():
    data = crowd(np.random.default_rng(1), 0.6)
    low, high = right_by_half(counts_of(data), data)
    assert (low.annotators, high.annotators) == (4, 4)
    assert low.right / low.labels < high.right / high.labels
    assert low.labels + high.labels == 80
    label = np.asarray(data.label).copy()
    own = np.asarray(data.item) < 20
    label[own] = np.asarray(data.gold)[np.asarray(data.item)[own]]  # all are right, in the same halves
    same = data.replace(label=label)
    assert {*low.who} | {*high.who} == {*range(8)}
    assert right_by_half(counts_of(same), same) == tuple(
        Half(4, half.labels, half.labels, half.who) for half in (low, high)
    )


@pytest.mark.parametrize("case", ["one annotator", "all right", "no gold"])
def test_nothing_is_said_where_nothing_can_change_hands(case):
    item, label, who = [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]
    gold = None if case == "no gold" else [0, 0]
    if case == "one annotator":
        item, label, who = [0, 1], [0, 1], [0, 0]
    if case == "all right":
        label = [0, 0, 0, 0]
    data = cs.Annotations.from_codes(item, who, label, gold=gold)
    assert alike_by_gold(data) is None
    assert right_by_half(counts_of(data), data) is None


def test_labels_that_an_annotator_gave_twice_are_one_that_changes_hands():
    """Who repeats a label agrees with nobody but himself: this is no agreement, and no item of more annotators."""
    item, who, label = [0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 0, 0]
    data = cs.Annotations.from_codes(item, who, label, gold=[0, 1])
    assert alike_by_gold(data)[1:3] == (2, 2)
    assert alike_in_agreement(counts_of(data), data) is None  # nobody agrees


def test_of_many_labels_items_are_drawn(monkeypatch):
    monkeypatch.setattr(exchange, "_MOST_LABELS", 60)
    data = crowd(np.random.default_rng(0), 0.5)
    found = alike_in_agreement(counts_of(data), data)
    assert isinstance(found, Alike)
    assert 5 <= found.items <= 30
