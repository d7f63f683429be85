"""Majority vote: ties in closed form, ten random rounds, published accuracies."""

from fractions import Fraction

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.data import Annotations, read_annotations
from consilience.models.majority_vote import round_accuracy

# Item 0: a clear winner; 1: two tied; 2: nobody; 3: all three tied; 4: a winner by weight.
DATA = Annotations.from_codes(
    [0, 0, 0, 1, 1, 3, 3, 3, 4, 4], [0, 1, 2, 0, 1, 0, 1, 2, 0, 1], [1, 1, 2, 0, 2, 0, 1, 2, 0, 1],
    weight=[1, 1, 1, 1, 1, 1, 1, 1, 1, 2.5], gold=[1, 2, -1, 1, 0], num_items=5, num_annotators=4, num_labels=3,
)  # fmt: skip


def test_ties_in_closed_form():
    fit = cs.fit("majority-vote", DATA)
    labels = fit.labels()
    assert labels["label"].tolist() == ["1", "0", "0", "0", "1"]
    assert labels["probability"].tolist() == pytest.approx([1, 1 / 2, 1 / 3, 1 / 3, 1])
    assert labels["share"].tolist() == pytest.approx([2 / 3, 1 / 2, 0, 1 / 3, 2.5 / 3.5])
    (row,) = fit.accuracy().to_dict("records")
    right = [1, 1 / 2, 1 / 3, 0]
    assert (row["items"], row["tied"]) == (4, 2)
    assert row["expected"] == pytest.approx(np.mean(right))
    assert row["sd"] == pytest.approx(np.sqrt(1 / 4 + 2 / 9) / 4)
    assert row["best_of_ten"] in {0.25, 0.5, 0.75}


def test_draws_are_random_rounds():
    fit = cs.fit("majority-vote", DATA, draws=20_000)
    drawn = np.concatenate([block.real for block in fit.truth.labels()])
    for labels in (drawn, fit.samples()["label"][0].T):
        share = np.stack([(labels == label).mean(axis=1) for label in range(3)], axis=1)
        expected = np.array([[0, 1, 0], [0.5, 0, 0.5], [1 / 3] * 3, [1 / 3] * 3, [0, 1, 0]])
        assert np.abs(share - expected).max() < 5 * np.sqrt(0.25 / 20_000)
        np.testing.assert_array_equal(share > 0, expected > 0)


def test_the_best_of_ten_rounds_is_the_largest_of_ten():
    """Over many keys its distribution function is the tenth power of that of a round."""
    data = Annotations.from_codes([0, 0], [0, 1], [0, 1], gold=[0])
    posterior = cs.fit("majority-vote", data).posterior
    best = [round_accuracy(posterior, data.gold, jax.random.key(seed)).best_of_ten for seed in range(400)]
    never = 2.0**-10
    assert set(best) <= {0.0, 1.0}
    assert abs(np.mean(best) - (1 - never)) < 5 * np.sqrt(never / 400)
    posterior = cs.fit("majority-vote", DATA).posterior
    many = np.array([round_accuracy(posterior, DATA.gold, jax.random.key(seed)).best_of_ten for seed in range(400)])
    both = 1 - (5 / 6) ** 10  # one round is right on both tied items with probability 1/2 × 1/3
    assert abs(np.mean(many == 0.75) - both) < 5 * np.sqrt(both * (1 - both) / 400)


def test_shares_as_probabilities_and_known_labels():
    shares = cs.fit("majority-vote", DATA, uncertainty="shares").labels()
    assert shares["probability"].tolist() == pytest.approx([2 / 3, 1 / 2, 1 / 3, 1 / 3, 2.5 / 3.5])
    known = cs.fit("majority-vote", DATA, uncertainty="shares", gold="use").labels()
    assert known["label"].tolist() == ["1", "2", "0", "1", "0"]
    assert known["probability"].tolist() == pytest.approx([1, 1, 1 / 3, 1, 1])
    unseen = Annotations.from_codes([0], [0], [0], gold=[2], num_labels=3)
    assert cs.fit("majority-vote", unseen, gold="use").labels()["label"].tolist() == ["2"]


@pytest.mark.parametrize("gold", [[1, 2, -1, 1, 0], [0, 1, 2, -1, -1]])
def test_accuracy_is_that_of_the_votes_also_where_gold_decides(gold):
    data = DATA.replace(gold=np.array(gold))
    ignored, used = (cs.fit("majority-vote", data, gold=gold).accuracy() for gold in ("ignore", "use"))
    assert 0 < ignored["tied"][0]
    assert ignored["expected"][0] < 1
    pd.testing.assert_frame_equal(ignored, used)


def test_annotators_agree_with_the_gold_labels_that_decide():
    table = cs.fit("majority-vote", DATA, gold="use").annotators()
    np.testing.assert_allclose(table["accuracy"][:3], [2 / 4, 3 / 5.5, 0])


def test_annotators_agree_with_the_vote():
    table = cs.fit("majority-vote", DATA).annotators()
    assert table["annotations"].tolist() == [4, 5.5, 2, 0]
    first, second = 1 + 1 / 2 + 1 / 3, 1 + 1 / 2 + 1 / 3 + 2.5
    expected = [first / 4, second / 5.5, (1 / 3) / 2]
    np.testing.assert_allclose(table["accuracy"][:3], expected)
    assert np.isnan(table["accuracy"][3])
    assert (table["lower"] < table["accuracy"])[:3].all()
    assert (table["upper"] > table["accuracy"])[:3].all()
    assert table.loc[3, ["lower", "upper"]].isna().all()  # no annotations


def test_counts_without_annotators():
    fit = cs.fit("majority-vote", Annotations.from_counts([[3, 1], [2, 2]], gold=[0, 0]))
    assert fit.accuracy()["expected"].tolist() == [0.75]
    assert fit.shares()["votes"].tolist() == [3, 1, 2, 2]
    assert fit.annotators().empty


def test_without_gold_there_is_no_accuracy():
    assert cs.fit("majority-vote", DATA.replace(gold=None)).accuracy().empty


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(*(st.integers(0, size) for size in (4, 3, 2)), st.integers(0, 3)), min_size=1, max_size=12),
    st.lists(st.integers(-1, 2), min_size=5, max_size=5),
)
def test_fractions_by_loops(rows, gold):
    columns = np.array(rows).T
    data = Annotations.from_codes(*columns[:3], weight=columns[3] / 10, gold=gold, num_items=5, num_labels=3)
    right = []
    for item in range(5):
        votes = [sum(row[3] for row in rows if row[0] == item and row[2] == label) for label in range(3)]
        top = [label for label in range(3) if votes[label] == max(votes)]
        if gold[item] >= 0:
            right.append(Fraction(int(gold[item] in top), len(top)))
    table = cs.fit("majority-vote", data).accuracy()
    if not right:
        assert table.empty
        return
    assert table["expected"][0] == pytest.approx(float(sum(right) / len(right)))
    assert table["sd"][0] == pytest.approx(float(sum(p * (1 - p) for p in right)) ** 0.5 / len(right))


# ---- published figures ----


@pytest.mark.oracles
def test_the_oracle_set(oracles_folder):
    columns = {"item": "mention_id", "annotator": "annotator_id", "label": "annotation"}
    data = read_annotations(oracles_folder / "mpa_java" / "annotations.csv", columns=columns)
    (row,) = cs.fit("majority-vote", data).accuracy().to_dict("records")
    assert row["items"] == 3327
    assert row["tied"] == 350
    assert row["expected"] == pytest.approx(0.855956, abs=5e-7)
    assert row["sd"] == pytest.approx(0.002615, abs=5e-7)
    # The published best of ten is .859633; ours is another draw of the same.
    assert row["expected"] < row["best_of_ten"] < row["expected"] + 5 * row["sd"]


@pytest.mark.public_data
@pytest.mark.parametrize(("name", "expected"), [("rte", 0.897), ("temporal", 0.936), ("wsd", 0.994)])
def test_the_sets_of_snow(data_folder, name, expected):
    table = pd.read_csv(data_folder / "snow2008" / f"{name}.csv", header=None)
    gold = pd.read_csv(data_folder / "snow2008" / f"{name}.key", header=None)[0].to_numpy()
    item, annotator = np.nonzero(table.notna().to_numpy())
    label = table.to_numpy()[item, annotator].astype(int)
    data = Annotations.from_codes(item, annotator, label, gold=gold)
    assert cs.fit("majority-vote", data).accuracy()["expected"][0] == pytest.approx(expected, abs=5e-4)
