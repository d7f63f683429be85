"""The agreement gate: numbers by hand, noise and signal, and what must change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.data import Annotations
from consilience.models.crowd import gate_sums, shares
from consilience.models.crowd.gate import (
    LEAST,
    Signal,
    overruled_notes,
    signal,
    signal_notes,
    swapped_notes,
    unanimous_notes,
)
from consilience.models.crowd.shares import Shares
from consilience.notes import Level


def grid(labels, **sizes):
    """Annotations of all items by all annotators: a row for each item, one label for each annotator."""
    labels = np.asarray([list(map(int, row)) for row in labels])
    items, annotators = labels.shape
    return Annotations.from_codes(
        np.repeat(np.arange(items), annotators), np.tile(np.arange(annotators), items), labels.ravel(), **sizes
    )


def crowd(seed, annotators, items, labels, accuracy=None):
    """Labels by annotators who are all right as often, or who look at nothing."""
    random = np.random.default_rng(seed)
    true = np.repeat(random.integers(0, labels, items), annotators)
    given = random.integers(0, labels, items * annotators)
    if accuracy is not None:
        right = random.random(items * annotators) < accuracy
        given = np.where(right, true, (true + random.integers(1, labels, items * annotators)) % labels)
    return grid(given.reshape(items, annotators), num_labels=labels)


SETTINGS = [(labels, size, items) for labels in (2, 3, 5) for size in (3, 5, 10) for items in (60, 200, 1000)]


def sums(data, by):
    """U and V of all pairs, by one of the two ways to sum them."""
    found = by(Shares.of(data))
    return float(found.agreement.sum() / 2), float(found.variance.sum() / 2)


# ---- numbers by hand ----


@pytest.mark.parametrize("by", [gate_sums.by_items, gate_sums.by_pairs])
@pytest.mark.parametrize(
    ("labels", "agreement", "variance"),
    [
        (("00", "11"), 1, 1 / 2),
        (("01", "10"), -1, 1 / 2),
        (("000", "001", "111", "110"), 2, 3),
    ],
)
def test_agreement_and_variance_by_hand(labels, agreement, variance, by):
    assert sums(grid(labels), by) == pytest.approx((agreement, variance))


def test_signals_by_hand():
    assert signal(grid(("00", "11"))).z == pytest.approx(np.sqrt(2))
    assert signal(grid(("01", "10"))).z == pytest.approx(-np.sqrt(2))
    three = signal(grid(("000", "001", "111", "110")))
    assert three.z == pytest.approx(2 / np.sqrt(3))
    assert three.annotator_z == pytest.approx([np.sqrt(2), np.sqrt(2), 0], abs=1e-12)
    # Without the first two, who agree on all four items, U = 2 - 2.
    assert three.z_without_pair == pytest.approx(0, abs=1e-12)
    assert three.pair == (0, 1)


@pytest.mark.parametrize("by", [gate_sums.by_items, gate_sums.by_pairs])
def test_the_sums_of_the_1979_table(by):
    # Its annotator who labelled three times is averaged.
    assert sums(cs.load("dawid-skene-1979"), by) == pytest.approx((1486 / 9, 80.658631), abs=1e-6)


def test_the_signal_of_the_1979_table():
    found = signal(cs.load("dawid-skene-1979"))
    assert found.z == pytest.approx(18.384460, abs=1e-6)
    assert found.annotator_z == pytest.approx([12.821, 10.877, 11.219, 12.098, 11.238], abs=5e-4)
    assert not found.weak
    assert list(signal_notes(found, "ABCDE")) == []


# ---- the two ways to sum ----

cells = st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
tables = st.lists(cells, min_size=1, max_size=40)


def of_cells(rows):
    item, annotator, label, weight = map(list, zip(*rows, strict=True))
    return Annotations.from_codes(
        item, annotator, label, weight=weight, num_items=6, num_annotators=5, num_labels=4
    )


def naive(data):
    """U and V of each pair by their definition, one item after the other."""
    votes = np.zeros((6, 5, 4))
    np.add.at(votes, (data.item, data.annotator, data.label), data.weight)
    total = votes.sum(axis=2)
    met, share = total > 0, votes / np.where(total > 0, total, 1)[..., None]
    agreement, variance = np.zeros((5, 5)), np.zeros((5, 5))
    centred = [share[met[:, j], j] - share[met[:, j], j].mean(axis=0) if met[:, j].any() else None for j in range(5)]
    for j in range(5):
        for k in range(5):
            for i in np.flatnonzero(met[:, j] & met[:, k]) if j != k else ():
                at_j, at_k = centred[j][met[:i, j].sum()], centred[k][met[:i, k].sum()]
                spread_j, spread_k = (x.T @ x / len(x) for x in (centred[j], centred[k]))
                agreement[j, k] += at_j @ at_k
                variance[j, k] += np.trace(spread_j @ spread_k)
    return agreement, variance


@settings(max_examples=60, deadline=None)
@given(tables)
def test_both_ways_to_sum_are_the_definition(rows):
    data = of_cells(rows)
    agreement, variance = naive(data)
    shares = Shares.of(data)
    if not len(shares.item):
        return
    pairs, items = gate_sums.by_pairs(shares), gate_sums.by_items(shares)
    np.testing.assert_allclose(pairs.agreement.toarray(), agreement, atol=1e-12)
    np.testing.assert_allclose(pairs.variance.toarray(), variance, atol=1e-12)
    np.testing.assert_allclose(items.agreement, agreement.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(items.variance, variance.sum(axis=1), atol=1e-12)


def test_blocks_change_nothing(monkeypatch):
    data = crowd(3, 7, 50, 3, 0.5)
    whole = [by(Shares.of(data)) for by in (gate_sums.by_items, gate_sums.by_pairs)]
    monkeypatch.setattr(gate_sums, "_BLOCK", 40)
    monkeypatch.setattr(shares, "_ENTRIES", 40)
    for by, before in zip((gate_sums.by_items, gate_sums.by_pairs), whole, strict=True):
        after = by(Shares.of(data))
        np.testing.assert_allclose(after.agreement.sum(axis=0), before.agreement.sum(axis=0), atol=1e-10)
        np.testing.assert_allclose(after.variance.sum(axis=0), before.variance.sum(axis=0), atol=1e-10)


def test_thousands_of_labels_are_not_multiplied_out():
    # A table of annotators, labels and labels would hold 10^10 numbers.
    random = np.random.default_rng(4)
    true, item = random.integers(0, 10_000, 2000), np.repeat(np.arange(2000), 4)
    label = np.where(random.random(8000) < 0.5, true[item], random.integers(0, 10_000, 8000))
    data = Annotations.from_codes(item, random.integers(0, 100, 8000), label, num_labels=10_000)
    assert signal(data).z > 100


# ---- what changes nothing ----


@settings(max_examples=40, deadline=None)
@given(tables, st.randoms(use_true_random=False))
def test_names_mean_nothing_to_the_gate(rows, random):
    data = of_cells(rows)
    before = signal(data)
    for dimension, size in (("item", 6), ("annotator", 5), ("label", 4)):
        order = np.array(random.sample(range(size), size))
        after = signal(data.renamed(dimension, order))
        assert after.z == pytest.approx(before.z, abs=1e-8, nan_ok=True)
        annotator_z = after.annotator_z[order] if dimension == "annotator" else after.annotator_z
        assert annotator_z == pytest.approx(before.annotator_z, abs=1e-8, nan_ok=True)
        assert after.z_without_pair == pytest.approx(before.z_without_pair, abs=1e-8, nan_ok=True)
        assert after.reason == before.reason


def test_annotators_who_say_nothing_change_nothing():
    data = crowd(1, 4, 60, 3, 0.6)
    before = signal(data)
    item, annotator, label = (np.asarray(codes) for codes in (data.item, data.annotator, data.label))
    constant = signal(Annotations.from_codes(
        [*item, *range(60)], [*annotator, *[4] * 60], [*label, *[2] * 60], gold=[0] * 60
    ))  # fmt: skip
    single = signal(Annotations.from_codes([*item, 7], [*annotator, 4], [*label, 1]))
    for after in (constant, single):
        assert after.z == pytest.approx(before.z)
        assert after.annotator_z[:4] == pytest.approx(before.annotator_z)
        assert np.isnan(after.annotator_z[4])
        assert after.z_without_pair == pytest.approx(before.z_without_pair)


def test_repeated_rows_are_averaged_by_weight():
    # One row of weight 3 and one of weight 1 are shares of 3/4 and 1/4, whatever the size of the weights.
    rows = ([0, 0, 0, 1, 1], [0, 0, 1, 0, 1], [0, 1, 0, 1, 1])
    one = signal(Annotations.from_codes(*rows, weight=[3, 1, 1, 1, 1]))
    other = signal(Annotations.from_codes(*rows, weight=[30, 10, 2, 7, 0.5]))
    assert one.z == pytest.approx(other.z)
    # x of the first annotator is (3/8, -3/8) and its negative; of the second (1/2, -1/2): U = 2 * 2 * 3/16.
    assert one.z == pytest.approx((3 / 4) / np.sqrt(2 * 4 * (9 / 64) * (1 / 4)))


# ---- noise and signal ----


@pytest.mark.parametrize(
    ("delta", "fires", "on_pair"), [(None, 27, 0), (0.15, 10, 3), (0.30, 1, 0), (0.45, 0, 0)]
)
def test_noise_fires_and_signal_does_not(delta, fires, on_pair):
    found = [
        signal(crowd(11, annotators, items, labels, delta and 1 / labels + delta))
        for labels, annotators, items in SETTINGS
    ]
    assert sum(one.fires for one in found) == fires
    assert sum(one.rests_on_pair for one in found) == on_pair


def test_noise_has_mean_zero_and_variance_one():
    z = np.array([signal(crowd(seed, 4, 50, 3)).z for seed in range(400)])
    assert abs(z.mean()) < 5 / np.sqrt(400)
    assert abs(z.std() - 1) < 5 / np.sqrt(800)


def test_a_copied_annotator_does_not_make_signal():
    labels = np.random.default_rng(7).choice(4, 600, p=[0.55, 0.25, 0.15, 0.05]).reshape(150, 4)
    labels[:, 3] = labels[:, 2]
    found = signal(grid(labels))
    assert (round(found.z, 1), round(found.z_without_pair, 1)) == (8.7, 2.1)
    assert (found.fires, found.rests_on_pair, found.weak) == (False, True, True)
    (alert, *rest) = signal_notes(found, ["Ann", "Bob", "Cem", "Dora"])
    assert alert.level is Level.error
    assert alert.text == (
        "the signal rests on Cem and Dora alone: they agree with each other, and nobody else agrees with anybody; "
        "either both are right or one copies the other; only gold labels can tell"
    )
    assert [note.text for note in rest] == [
        "the agreement of Ann with the others is not clearly above chance "
        f"({found.annotator_z[0]:.1f} standard errors above it, less than 2)"
    ]


# ---- what it says ----


def test_noise_is_said_in_red():
    labels = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    found = signal(grid(np.c_[labels, labels[:, 0] ^ labels[:, 1]]))
    assert found.z == 0
    alert, note = signal_notes(found, ["Ann", "Bob", "Cem"])
    assert (alert.level, note.level) == (Level.error, Level.note)
    assert alert.text == (
        "the annotators agree no more than chance would have them (z = 0.0; below 3 nothing tells signal from chance): "
        "the labels and accuracies below are guesses; ask for more annotations an item, or give gold labels for some "
        "items"
    )
    low, high = (f"{end(found.annotator_z):.1f}" for end in (min, max))
    shown = low if low == high else f"{low} to {high}"
    assert note.text == (
        "the agreement of Ann, Bob, Cem with the others is not clearly above chance "
        f"({shown} standard errors above it, less than 2)"
    )


def test_two_annotators_are_said_in_amber():
    found = signal(grid([[item % 3] * 2 for item in range(60)]))
    assert found.z > LEAST
    assert not found.weak
    (note,) = signal_notes(found, ["Ann", "Bob"])
    assert (note.level, note.text) == (Level.warning, "two annotators cannot be checked by a third")


@pytest.mark.parametrize(("items", "odd", "said"), [(20, 0, True), (19, 0, False), (20, 1, False)])
def test_that_nobody_differs_is_said(items, odd, said):
    votes = [[3 * (item % 2), 3 * (1 - item % 2)] for item in range(items)] + odd * [[2, 1]]
    notes = list(unanimous_notes(Annotations.from_counts(votes)))
    assert [note.level.name for note in notes] == said * ["warning"]


@pytest.mark.parametrize(("items", "annotators", "said"), [(16, 49, False), (16, 50, True), (17, 50, False)])
def test_far_more_annotators_than_items_may_be_swapped_columns(items, annotators, said):
    notes = list(swapped_notes(grid(np.zeros((items, annotators), int))))
    assert [note.text.startswith(f"{annotators} annotators judge {items} items") for note in notes] == said * [True]


def test_annotators_who_turn_the_scale_round_are_said():
    true = np.arange(60) % 2
    found = signal(grid(np.stack([true, true, true, 1 - true], axis=1)))
    assert found.annotator_z[3] < -3
    said = [*signal_notes(found, "ABCD")][-1]
    assert said.level is Level.warning  # so that --strict finds it
    assert said.text == "D agrees less than chance would: are the labels used in another order?"
    plural = Signal(30.0, np.array([30.0, 28, 25, -4, -5]))
    assert [note.text for note in signal_notes(plural, "ABCDE")] == [
        "D, E agree less than chance would: are the labels used in another order?"
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (Annotations.from_counts([[3, 1], [0, 2]]), "nobody knows who gave which label"),
        (Annotations.from_codes([0, 1], [0, 0], [0, 1]), "there is one annotator"),
        (Annotations.from_codes([0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 0, 1]), "no item has labels of two annotators"),
        (grid(("00", "00")), "all labels are the same"),
        (grid(("01", "01")), "no two annotators of the same items vary in their labels"),
        (grid(("02", "13")), "no two annotators of the same items vary in their labels"),
        (grid(("01",)), "no two annotators of the same items vary in their labels"),
    ],
)
def test_an_undefined_signal_says_why(data, reason):
    found = signal(data)
    assert np.isnan(found.z)
    assert np.isnan(found.annotator_z).all()
    assert found.reason == reason
    assert found.fires
    assert found.weak
    alert = next(signal_notes(found, data.annotators))
    assert alert.level is Level.error
    assert reason in alert.text
    assert alert.text.endswith("or give gold labels for some items")


def test_the_signal_is_found_once():
    data = crowd(2, 3, 20, 2)
    assert signal(data) is signal(data)


def test_labels_that_nobody_gave_and_the_model_prefers_are_told():
    """Of five items four have several labels; the model overrules two or three, and another is known."""
    rows = [(0, 0), (0, 0), (1, 1), (1, 1), (2, 1), (2, 1), (3, 0), (3, 1), (4, 1)]  # (item, label), of three labels
    item, label = np.array(rows).T
    data = Annotations.from_codes(item, np.arange(len(rows)), label, items=["a", "b", "c", "d", "e"])
    probability = np.array([[0.9, 0.1, 0], [0.6, 0.4, 0], [1.0, 0, 0], [0.2, 0.3, 0.5], [0.9, 0.1, 0]])
    (note,) = overruled_notes(data, probability, np.array([False, False, True, False, False]))
    assert note.text.startswith("nobody gave the label that the model takes for the most probable, of 2 of 4 items")
    assert "(b, d)" in note.text
    assert "although all annotators of 1 of these agree" in note.text
    (note,) = overruled_notes(data, probability, False)
    assert "(b, c, d)" in note.text
    assert not list(overruled_notes(data, np.full((5, 3), 1 / 3), False))
