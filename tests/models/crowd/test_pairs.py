"""Pairs of annotators: agreement beyond the model, by hand, by definition and for four judges of whom one is a copy."""

import numpy as np
import pytest
from scipy.special import digamma

from consilience.data import Annotations
from consilience.models.crowd import pairs
from consilience.models.crowd.pairs import FEWEST_ITEMS, agreement_by, annotator_pairs, pair_notes
from consilience.notes import Level


def sparse_crowd(seed, items, annotators, labels, present):
    """Labels of nobody's truth, where somebody looked."""
    random = np.random.default_rng(seed)
    item, annotator = np.nonzero(random.random((items, annotators)) < present)
    return Annotations.from_codes(
        item, annotator, random.integers(0, labels, len(item)),
        num_items=items, num_annotators=annotators, num_labels=labels,
    )  # fmt: skip


def of_arrays(confusion):
    return agreement_by(lambda chosen: confusion[chosen])


def test_a_pair_by_hand():
    # 25 common items; they agree on 20. The model has 3/4 * 2/3 + 1/4 * 1/3 = 7/12 whatever the class.
    item, first = np.arange(25), np.zeros(25, int)
    second = (item >= 20).astype(int)
    data = Annotations.from_codes(
        [*item, *item, 25, 26], [*[0] * 25, *[1] * 25, 0, 1], [*first, *second, 1, 0], num_items=27
    )
    right = np.array([3 / 4, 2 / 3])
    confusion = np.stack([[[p, 1 - p], [1 - p, p]] for p in right])
    table = annotator_pairs(data, np.full((27, 2), 0.5), of_arrays(confusion))
    assert list(table) == ["annotator_a", "annotator_b", "items", "agreement", "expected", "excess", "z"]
    found = [float(values[0]) for values in table.values()]
    chance = 3 / 4 * 2 / 3 + 1 / 4 * 1 / 3
    z = (20 - 25 * chance) / np.sqrt(25 * chance * (1 - chance))
    assert found == pytest.approx([0, 1, 25, 0.8, chance, 0.8 - chance, z])


def by_definition(data, q, confusion):
    """Pair by pair, item by item."""
    given = {}
    for item, annotator, label in zip(*map(np.asarray, (data.item, data.annotator, data.label)), strict=True):
        given[int(annotator), int(item)] = int(label)
    found = []
    for a in range(data.num_annotators):
        for b in range(a + 1, data.num_annotators):
            common = [i for i in range(data.num_items) if (a, i) in given and (b, i) in given]
            if len(common) >= FEWEST_ITEMS:
                equal = np.array([given[a, i] == given[b, i] for i in common])
                chance = np.array([q[i] @ (confusion[a] * confusion[b]).sum(axis=1) for i in common])
                z = (equal.sum() - chance.sum()) / np.sqrt((chance * (1 - chance)).sum())
                found.append((a, b, len(common), equal.mean(), chance.mean(), equal.mean() - chance.mean(), z))
    return sorted(found, key=lambda row: -abs(row[-1]))


@pytest.mark.parametrize("block", [1 << 22, 50])
def test_pairs_are_their_definition(block, monkeypatch):
    monkeypatch.setattr(pairs, "_BLOCK", block)
    data, random = sparse_crowd(1, 80, 8, 3, 0.5), np.random.default_rng(2)
    q, confusion = random.dirichlet([0.3] * 3, 80), random.dirichlet([1] * 3, (8, 3))
    expected = by_definition(data, q, confusion)
    assert 5 < len(expected) < 28  # some pairs have too few items in common
    table = annotator_pairs(data, q, of_arrays(confusion))
    np.testing.assert_allclose(np.stack(list(table.values()), axis=1), expected)


def test_confusions_are_asked_for_by_block(monkeypatch):
    monkeypatch.setattr(pairs, "_BLOCK", 4 * 9)
    confusion, asked = np.random.default_rng(0).dirichlet([1] * 3, (30, 3)), []

    def rows(chosen):
        asked.append(len(chosen))
        return confusion[chosen]

    one, other = np.triu_indices(30, 1)
    found = agreement_by(rows)(one, other)
    np.testing.assert_allclose(found, (confusion[one] * confusion[other]).sum(axis=2))
    assert max(asked) <= 2 * 5


def test_of_too_many_pairs_those_with_most_items_stay(monkeypatch):
    monkeypatch.setattr(pairs, "_MOST_PAIRS", 3)
    data, random = sparse_crowd(5, 200, 6, 2, 0.6), np.random.default_rng(6)
    item, annotator, label = (np.asarray(codes) for codes in (data.item, data.annotator, data.label))
    kept = (annotator != 0) | (item < 60)
    data = Annotations.from_codes(item[kept], annotator[kept], label[kept], num_items=200)
    table = annotator_pairs(data, random.dirichlet([1, 1], 200), of_arrays(random.dirichlet([1, 1], (6, 2))))
    most = np.sort(np.argsort(-np.bincount(data.annotator), kind="stable")[:3])
    found = set(zip(table["annotator_a"].tolist(), table["annotator_b"].tolist(), strict=True))
    assert found == {(most[0], most[1]), (most[0], most[2]), (most[1], most[2])}


def test_nobody_with_enough_common_items_is_no_row():
    data = sparse_crowd(0, FEWEST_ITEMS - 1, 3, 2, 1.0)
    table = annotator_pairs(data, np.full((FEWEST_ITEMS - 1, 2), 0.5), of_arrays(np.full((3, 2, 2), 0.5)))
    assert {len(values) for values in table.values()} == {0}
    assert list(pair_notes(table, "ABC", 3)) == []


def test_a_model_that_is_certain_has_no_z():
    data = Annotations.from_codes([*range(30)] * 2, [0] * 30 + [1] * 30, [item % 2 for item in range(30)] * 2)
    table = annotator_pairs(data, np.eye(2)[np.arange(30) % 2], of_arrays(np.stack([np.eye(2)] * 2)))
    assert (table["agreement"][0], table["expected"][0]) == (1, 1)
    assert np.isnan(table["z"][0])
    assert list(pair_notes(table, "AB", 2)) == []


def test_independent_annotators_are_what_the_model_expects():
    random, size = np.random.default_rng(8), 3000
    true, confusion = random.integers(0, 3, size), random.dirichlet([1] * 3, (12, 3))
    label = (random.random((size, 12, 1)) > confusion[:, true].swapaxes(0, 1).cumsum(axis=2)).sum(axis=2)
    data = Annotations.from_codes(np.repeat(np.arange(size), 12), np.tile(np.arange(12), size), label.ravel())
    z = annotator_pairs(data, np.eye(3)[true], of_arrays(confusion))["z"]
    assert np.abs(z).max() < 4
    assert abs(z.std() - 1) < 5 / np.sqrt(2 * 66)


# ---- four judges ----

JUDGES = ["strict", "lenient", "careful", "lenient-2"]


@pytest.fixture(scope="module")
def judges():
    """Four judges of yes or no, one of whom copies another; labels, and what a mean-field fit says of them."""
    random = np.random.default_rng(2026)
    true = random.random(300) < 0.6

    def judged(of_no, of_yes):
        return random.random(300) < np.where(true, of_yes, of_no)

    strict, lenient, careful = judged(0.05, 0.75), judged(0.40, 0.96), judged(0.12, 0.90)
    copied, anew = random.random(300) < 0.8, judged(0.40, 0.96)
    labels = np.stack([strict, lenient, careful, np.where(copied, lenient, anew)], axis=1).astype(int)
    said = np.eye(2)[labels]
    q = said.mean(axis=1)
    for _ in range(1000):
        confusion = np.einsum("it,ijl->jtl", q, said) + 1 + 2 * np.eye(2)
        log_joint = np.einsum("ijl,jtl->it", said, digamma(confusion) - digamma(confusion.sum(2, keepdims=True)))
        power = np.exp(log_joint + digamma(1 + q.sum(axis=0)))
        q = power / power.sum(axis=1, keepdims=True)
    data = Annotations.from_codes(
        np.repeat(np.arange(300), 4), np.tile(np.arange(4), 300), labels.ravel(), annotators=JUDGES
    )
    return data, q, confusion / confusion.sum(axis=2, keepdims=True)


def test_the_judges_who_look_for_themselves_agree_too_well(judges):
    # The fit took the lenient judge and its copy for the truth; that the others agree is what gives it away.
    data, q, confusion = judges
    assert q.max(axis=1).mean() == pytest.approx(0.993, abs=5e-4)
    table = annotator_pairs(data, q, of_arrays(confusion))
    assert [JUDGES[table[side][0]] for side in ("annotator_a", "annotator_b")] == ["strict", "careful"]
    assert table["agreement"][0] == pytest.approx(0.790, abs=5e-4)
    assert table["expected"][0] == pytest.approx(0.647, abs=5e-4)
    assert table["z"][0] == pytest.approx(5.23, abs=5e-3)
    assert np.abs(table["z"][1:]).max() <= 1.02
    (note,) = pair_notes(table, data.annotators, 4)
    assert note.level is Level.error
    assert note.text == (
        "strict and careful agree more than the model can explain (.79, expected .65): some annotators do not work "
        "independently"
    )


def remarkable(z):
    columns = {"annotator_a": 0, "annotator_b": 1, "agreement": 0.8, "expected": 0.7}
    table = {name: np.full(len(z), value) for name, value in columns.items()}
    return {**table, "z": np.asarray(z, float)}


def test_alerts_by_how_many_annotators_there_are():
    assert list(pair_notes(remarkable([3.9, 3.5]), "AB", 20)) == []
    (red,) = pair_notes(remarkable([-4.1, 1]), "AB", 20)
    assert red.level is Level.error
    assert red.text.startswith("A and B agree less than the model has them (.80, expected .70): ")
    (amber,) = pair_notes(remarkable([9, 3.5, 1, np.nan]), "AB", 21)
    assert amber.level is Level.warning
    assert amber.text.startswith("67 % of 3 pairs of annotators agree more or less than the model can explain ")
    assert list(pair_notes(remarkable([2.9, 1]), "AB", 21)) == []
