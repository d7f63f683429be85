"""Candidates, decisions and their tables, against loops over decisions."""

import numpy as np
import pytest

from consilience.data import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models.mpa.candidates import candidates_of
from consilience.models.mpa.likelihood import log_likelihood
from tests.models.mpa.mentions import mentions_of, of_decisions


def annotations(seed=0, weighted=False):
    random = np.random.default_rng(seed)
    item, annotator, label = random.integers(0, [6, 4, 3], (25, 3)).T
    weight = random.choice([0.0, 1.0, 2.5], 25) if weighted else None
    return Annotations.from_codes(item, annotator, label, weight=weight, num_items=7, num_annotators=4, num_labels=3)


def decisions(data, found):
    """Yield pair, annotator, whether they chose it, and the weight: one by one."""
    if isinstance(data, Annotations):
        rows = zip(data.item, data.annotator, data.label, data.weight, strict=True)
    else:
        types = np.array(["DN", "DO", "NR", "PR"])[data.type]
        names = [
            t if a < 0 else f"{t}({data.mentions[a]})" for t, a in zip(types, data.antecedent, strict=True)
        ]
        label = [found.labels.tolist().index(name) for name in names]
        rows = zip(data.mention, data.annotator, label, np.ones(len(label)), strict=True)
    for item, annotator, label, weight in rows:
        for pair in np.flatnonzero(found.item == item):
            if weight > 0:
                yield pair, annotator, int(found.label[pair] == label), weight


CASES = {
    "mentions": (mentions_of, "observed"),
    "annotations": (annotations, "observed"),
    "weighted": (lambda: annotations(weighted=True), "observed"),
    "closed": (annotations, "closed"),
}


@pytest.mark.parametrize("case", CASES)
def test_decisions_are_those_of_a_loop(case):
    make, option = CASES[case]
    data = make()
    found = candidates_of(data, option)
    tables = found.tables
    yes, no = np.zeros_like(tables.yes), np.zeros_like(tables.no)
    for pair, annotator, chosen, weight in decisions(data, found):
        (yes if chosen else no)[annotator, tables.pair_class[pair]] += weight
    np.testing.assert_allclose(tables.yes, yes)
    np.testing.assert_allclose(tables.no, no)


@pytest.mark.parametrize("case", CASES)
def test_the_likelihood_is_that_of_a_loop(case):
    make, option = CASES[case]
    data = make()
    found = candidates_of(data, option)
    size = 3 if isinstance(data, Annotations) else 4
    random = np.random.default_rng(1)
    prevalence = random.uniform(0.1, 0.9, size)
    sensitivity, specificity = random.uniform(0.1, 0.9, (2, data.num_annotators, size))
    class_ = found.tables.classes[found.tables.pair_class]
    if_true, if_false = prevalence[class_], 1 - prevalence[class_]
    for pair, j, chosen, weight in decisions(data, found):
        right, wrong = sensitivity[j, class_[pair]], 1 - specificity[j, class_[pair]]
        if_true[pair] *= (right if chosen else 1 - right) ** weight
        if_false[pair] *= (wrong if chosen else 1 - wrong) ** weight
    expected = np.bincount(found.item, np.log(if_true + if_false), found.num_items)
    values = log_likelihood(data, *(np.asarray(p, np.float32) for p in (prevalence, sensitivity, specificity)), option)
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)


def test_candidates_of_mentions_of():
    found = candidates_of(mentions_of())
    pairs = [(f"m{item + 1}", found.labels[label]) for item, label in zip(found.item, found.label, strict=True)]
    assert pairs == [("m1", "DN"), ("m2", "DN"), ("m2", "DO(m1)"), ("m3", "DO(m1)"), ("m3", "DO(m2)")]
    np.testing.assert_array_equal(found.votes, [2, 1, 2, 1, 2])
    np.testing.assert_array_equal(found.seen, [0, 4, 2, 6, 5])
    # Both antecedents of m3 are one group: three annotators were asked about it, once each.
    np.testing.assert_array_equal(found.tables.group_size, [1, 1, 1, 2])
    np.testing.assert_array_equal(np.bincount(found.tables.asked_group), [2, 3, 3, 3])


def test_an_item_without_annotations_may_have_every_label_and_counts_nowhere():
    found = candidates_of(annotations())
    blank = found.item == 6
    assert found.label[blank].tolist() == [0, 1, 2]
    assert not found.tables.pair_counts[blank].any()
    assert found.tables.pair_counts[~blank].all()


def test_a_mention_whose_rows_were_dropped_may_be_new():
    rows = [("m1", "a1", "DO(m2)"), ("m2", "a1", "DO(m3)"), ("m3", "a1", "")]
    with pytest.warns(match="left out"):
        found = candidates_of(mentions_of(rows, missing="drop"))
    assert [found.labels[label] for label in found.label[found.item == 2]] == ["DN"]


def test_decisions_on_single_pairs():
    pair_class = np.array([0, 1, 1])
    tables = of_decisions(
        pair_class, np.array([2, 0, 1, 2]), np.array([0, 1, 1, 1]), np.array([1, 0, 1, 0]),
        np.array([1.0, 2.0, 1.0, 3.0]), num_annotators=2, num_classes=2,
    )  # fmt: skip
    np.testing.assert_array_equal(tables.yes, [[0, 1], [0, 1]])
    np.testing.assert_array_equal(tables.no, [[0, 0], [2, 3]])


def test_what_is_not_possible_is_said():
    with pytest.raises(UnsupportedRequest, match="open list"):
        candidates_of(mentions_of(), "closed")
    with pytest.raises(UnsupportedRequest, match="who labelled"):
        candidates_of(Annotations.from_counts([[1, 2], [0, 1]]))
