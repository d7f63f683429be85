"""Partitions scored one against another, and lifted over draws; the number of entities; what the posterior expects."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import consilience as cs
from consilience.data import Partition, read_partition, read_records
from consilience.errors import InputError, InputWarning, UnknownName, UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.partition_scores import expected_scores
from consilience.evaluation.partitions import names
from consilience.models.truth import partitions as partition
from consilience.models.truth.partitions import DrawnPartitions

# Three draws of the entities of five records.
DRAWS = np.array([[0, 0, 2, 3, 3], [0, 0, 0, 3, 3], [0, 0, 2, 3, 4]])


def drawn(partitions=DRAWS, records=None):
    truth = DrawnPartitions(np.asarray(partitions))
    truth.ids = {} if records is None else {"record": records}
    return SimpleNamespace(truth=truth, method="gibbs")


# A set against draws --------------------------------------------------------------------------------------------------


def test_whether_a_set_is_exactly_one_entity():
    fit = drawn(records=np.array(list("abcde"), object))
    assert cs.entity_probability(fit, ["b", "a"]) == pytest.approx(2 / 3)
    assert cs.entity_probability(fit, [["a", "b"], "c", ["a", "b", "c"], ["d", "a"]]).tolist() == pytest.approx(
        [2 / 3, 2 / 3, 1 / 3, 0]
    )
    numbers = cs.entity_probability(drawn(), [0, 1])
    assert numbers == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("sets", "match"),
    [
        (["anna", "ben"], r"set 1: there is no such record \(value 'ben'\); give ids"),
        ([["anna"], ["ana", "carl"]], r"set 2: there is no such record \(value 'ana'\); did you mean 'anna'\?"),
        (["anna", "anna"], r"has this record twice \(value 'anna'\)"),
        ([["anna"], []], "set 2: the set is empty"),
        ([], "set 1: the set is empty"),
    ],
)
def test_sets_that_cannot_be(sets, match):
    with pytest.raises(InputError, match=match):
        cs.entity_probability(drawn([[0, 0, 2]], records=np.array(["anna", "carl", "dora"], object)), sets)


def test_what_is_no_set():
    with pytest.raises(UnsupportedRequest, match="'ab' is no set of records; give ids in a list"):
        cs.entity_probability(drawn(), "ab")
    with pytest.raises(UnsupportedRequest, match="7 is no set"):
        cs.entity_probability(drawn(), 7)


# One partition against another ----------------------------------------------------------------------------------------


def test_one_against_another():
    predicted = read_partition({"record": ["e", "d", "c", "b", "a"], "entity": ["x", "x", "y", "z", "z"]})
    records = read_records({"id": list("abcde"), "name": list("uvwuv"), "who": ["p", "p", "p", "q", "r"]}, entity="who")
    scores = cs.score_partition(predicted, records)
    assert (scores.num_records, scores.predicted_entities, scores.true_entities) == (5, 3, 3)
    assert (scores.predicted_pairs, scores.true_pairs, scores.common_pairs) == (2, 3, 1)
    assert scores["pairwise-precision"] == 1 / 2
    assert scores["pairwise-f1"] == 2 / 5
    assert scores.table["score"].tolist() == list(names())
    assert scores.table["value"].tolist() == [scores[metric] for metric in names()]
    assert "5 records, 3 predicted and 3 true entities; 2 pairs predicted, 3 true, 1 both" in repr(scores)
    assert "pairwise       50.00%     33.33%     40.00%" in repr(scores)
    assert "2 splits and merges, 3 pairs parted or joined" in repr(scores)
    assert "undefined" not in repr(scores)
    assert cs.score_partition(drawn(records=np.array(list("abcde"), object)), records)["ari"] == pytest.approx(
        cs.score_partition(np.array([0, 0, 2, 3, 3]), np.array([0, 0, 0, 1, 2]))["ari"]
    )


def test_no_pair_predicted():
    scores = cs.score_partition([0, 1, 2], [0, 0, 1])
    assert math.isnan(scores["pairwise-precision"])
    assert (scores["pairwise-recall"], scores["pairwise-f1"]) == (0, 0)
    assert "pairwise    undefined      0.00%      0.00%" in repr(scores)
    assert "no pair is predicted: pairwise precision is undefined, and F1 is set to 0" in repr(scores)


def test_unknown_entities_and_other_records():
    truth = Partition.from_codes([0, 0, -1, 1], records=list("abcd"))
    assert cs.score_partition([5, 5, 5, 6], truth)["b3-f1"] == 1
    few = read_partition({"record": ["a", "b", "f"], "entity": ["x", "x", "x"]})
    with pytest.raises(InputError, match=r"no entity: 'c', 'd'.*missing='drop'(?s:.*)not in the data: 'f'"):
        cs.score_partition(few, truth)
    with pytest.warns(InputWarning, match="1 records are not in the data"):
        scores = cs.score_partition(few, truth, missing="drop", unknown="keep")
    assert (scores.num_records, scores["ari"]) == (2, 1)


def test_refused_sides():
    records = read_records({"id": ["a", "b"], "x": ["u", "v"]})
    with pytest.raises(UnsupportedRequest, match="entities of these records are unknown; read them with entity="):
        cs.score_partition([0, 1], records)
    with pytest.raises(UnsupportedRequest, match="no record has an entity both"):
        cs.score_partition([0, 1], [-1, -1])
    with pytest.raises(InputError, match="no record of the data has an entity"):
        cs.score_partition([-1, -1], [0, 1])
    with pytest.raises(UnsupportedRequest, match="a fit is expected"):
        cs.score_partition(SimpleNamespace(truth=None), records)
    with pytest.raises(UnknownName, match="no metric is called 'f1' for records.*; write one of these:\n  pairwise-f1"):
        cs.score_partition([0], [0])["f1"]


# Against draws --------------------------------------------------------------------------------------------------------


def test_against_draws():
    fit = drawn(records=np.array(list("abcde"), object))
    system = Partition.from_codes([0, 0, 0, 1, 2], records=list("abcde"), name="ours")
    score = cs.evaluate(fit, system)
    # Pairs in both, of 3 predicted and of 2, 4 and 1 true ones.
    expected = [2 * 1 / 5, 2 * 3 / 7, 2 * 1 / 4]
    assert score.draws == pytest.approx(expected)
    assert score.value == pytest.approx(np.mean(expected))
    assert score.sd == pytest.approx(np.std(expected, ddof=1))
    assert score.title == "pairwise-f1 of ours (F1 of pairs that belong together)"
    # Draws 1 and 3 have probabilities of 1, 1/3 and 2/3 for the pairs; the first draw agrees best with them.
    assert score.point == pytest.approx(2 / 5)
    table = score.table
    assert table.columns.tolist() == ["record", "b3_f1"]
    assert table["record"].tolist() == list("abcde")
    assert table["b3_f1"].tolist() == pytest.approx(
        [(4 / 5 + 1 + 4 / 5) / 3] * 2 + [(2 / 4 + 1 + 2 / 4) / 3] + [(2 / 3 + 2 / 3 + 1) / 3] * 2
    )
    assert score.row()["records"] == 5
    several = cs.evaluate(fit, system, ["ari", "merge-moves"])
    assert list(several) == ["ari", "merge-moves"]
    assert several["merge-moves"].draws.tolist() == [2, 1, 1]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5), min_size=2, max_size=5))
def test_draws_are_scored_one_by_one(rows):
    system, *draws = rows
    scores = evaluate(drawn(draws), Partition.from_codes(system), list(names()))
    by_draw = [cs.score_partition(system, draw) for draw in draws]
    for metric in names():
        expected = np.array([one[metric] for one in by_draw])
        own = expected[np.isfinite(expected)]
        np.testing.assert_allclose(scores[metric].draws, own, atol=1e-12, err_msg=metric)


def test_blocks_of_draws_do_not_change_scores_and_counts(monkeypatch):
    draws = np.random.default_rng(0).integers(0, 4, (20, 7))
    system, metrics = Partition.from_codes(draws[0]), list(names())
    whole, entities = evaluate(drawn(draws), system, metrics), cs.num_entities(drawn(draws))
    monkeypatch.setattr(partition, "_MOST_ROWS", 3 * 7)
    for metric, score in evaluate(drawn(draws), system, metrics).items():
        np.testing.assert_array_equal(score.draws, whole[metric].draws)
        np.testing.assert_allclose(score.items, whole[metric].items)
    again = cs.num_entities(drawn(draws))
    np.testing.assert_array_equal(again.draws, entities.draws)
    np.testing.assert_allclose(again.expected, entities.expected)


def test_scores_that_are_undefined_say_so():
    apart, fit = np.arange(5), drawn([[0, 1, 2, 3, 4], [0, 0, 2, 3, 4], [0, 0, 0, 3, 4]])
    alone = evaluate(fit, Partition.from_codes(apart), ["pairwise-precision", "pairwise-f1"])
    assert math.isnan(alone["pairwise-precision"].value)
    assert "no pair is predicted" in repr(alone["pairwise-precision"])
    assert alone["pairwise-f1"].draws.tolist() == [0, 0, 0]
    assert "no pair is predicted" in repr(alone["pairwise-f1"])
    recall = cs.evaluate(fit, Partition.from_codes([0, 0, 1, 2, 3]), "pairwise-recall")
    assert recall.value == pytest.approx((1 + 1 / 3) / 2)
    assert "in the 2 of 3 draws that have pairs" in repr(recall)


def test_records_without_an_entity_are_left_out():
    fit = drawn()
    few = read_partition({"record": ["0", "1", "3", "4"], "entity": ["x", "x", "y", "z"]})
    with pytest.raises(InputError, match="1 records of the data have no entity: '2'"):
        cs.evaluate(fit, few)
    score = cs.evaluate(fit, few, "pairwise-recall", missing="drop")
    assert score.draws.tolist() == [1 / 2, 1 / 2, 1]
    assert np.isnan(score.items).tolist() == [False, False, True, False, False]


def test_requests_that_do_not_fit():
    fit, system = drawn(), Partition.from_codes([0, 0, 1, 2, 3])
    with pytest.raises(UnsupportedRequest, match="class_groups= groups the classes of items"):
        cs.evaluate(fit, system, class_groups=cs.read_class_map({"class": ["a"], "group": ["b"]}))
    with pytest.raises(UnknownName, match="no metric is called 'top-1' for records, but for items"):
        cs.evaluate(fit, system, "top-1")
    with pytest.raises(UnsupportedRequest, match="no item has a class; evaluate a partition"):
        cs.next_labels(fit)


def test_certainty_of_records_is_that_of_their_whole_cluster():
    score = cs.certainty(drawn(records=np.array(list("abcde"), object)))
    np.testing.assert_allclose(score.items, drawn().truth.cluster_probability(drawn().truth.estimate()))
    assert score.table.columns.tolist() == ["record", "certainty"]
    assert score.value == pytest.approx(score.items.mean())
    with pytest.raises(UnsupportedRequest, match="certainty of clusters"):
        cs.certainty(drawn(), top=2)


# The number of entities -----------------------------------------------------------------------------------------------


def test_number_of_entities():
    found = cs.num_entities(drawn())
    assert found.draws.tolist() == [3, 2, 4]
    assert (found.value, found.sd, found.point) == (3, 1, 3)
    assert found.interval == pytest.approx(tuple(np.quantile([3, 2, 4], [0.025, 0.975])))
    assert found.table["size"].tolist() == [1, 2, 3]
    assert found.table["entities"].tolist() == pytest.approx([(1 + 0 + 3) / 3, (2 + 1 + 1) / 3, 1 / 3])
    assert repr(found) == (
        "number of entities, gibbs: 3.0 ± 1.0, 95 % in [2, 4] as far as the model holds; 3 in the estimate"
    )


# What the posterior expects -------------------------------------------------------------------------------------------


def test_expected_scores():
    # Probabilities of pairs: {0, 1} 1, {0, 2} and {1, 2} 1/3, {3, 4} 2/3.
    own = expected_scores(drawn())
    assert (own.predicted_pairs, own.true_pairs, own.common_pairs) == (2, pytest.approx(7 / 3), pytest.approx(5 / 3))
    assert own[:3] == pytest.approx((5 / 6, 5 / 7, 2 * (5 / 3) / (2 + 7 / 3)))
    given = expected_scores(drawn(), Partition.from_codes([0, 0, 0, 1, 2]))
    assert given.precision == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)
    known = expected_scores(drawn(), Partition.from_codes([0, 0, -1, 1, 1]), missing="drop")
    assert known[:3] == pytest.approx((5 / 6, 1, 2 * (5 / 3) / (2 + 5 / 3)))
    unknown = expected_scores(drawn(), Partition.from_codes([0, 0, 1, -1, -1]), missing="drop")  # of which are a pair
    assert unknown.common_pairs == 1


def test_expected_scores_say_whether_the_model_holds(monkeypatch):
    own = drawn()
    assert expected_scores(own).doubt == ""
    assert repr(expected_scores(own)) == (
        "expected precision 0.8333, recall 0.7143, F1 0.7692 (2 pairs predicted, 2.3 expected to be true, 1.7 both); "
        "as far as the model holds"
    )
    monkeypatch.setattr(type(own.truth), "doubt", "the model does not hold; do not trust the interval", raising=False)
    found = expected_scores(own)
    assert found.doubt == "the model does not hold; do not trust these scores"
    assert repr(found).endswith(f"; {found.doubt}")


def test_expected_scores_without_pairs():
    alone = expected_scores(drawn(), Partition.from_codes(np.arange(5)))
    assert (math.isnan(alone.precision), alone.recall, alone.f1) == (True, 0, 0)
    certain = expected_scores(drawn([[0, 1, 2]]))
    assert (math.isnan(certain.precision), math.isnan(certain.recall), certain.f1) == (True, True, 0)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=6, max_size=6), min_size=2, max_size=5))
def test_expected_precision_is_the_mean_over_draws(rows):
    system, *draws = rows
    if len(set(system)) == len(system):
        return
    fit, partition = drawn(draws), Partition.from_codes(system)
    expected = expected_scores(fit, partition)
    assert expected.precision == pytest.approx(cs.evaluate(fit, partition, "pairwise-precision").value)
    true = [sum(a == b for a, b in itertools.combinations(draw, 2)) for draw in draws]
    assert expected.true_pairs == pytest.approx(np.mean(true))


# RLdata500: figures that need no model --------------------------------------------------------------------------------


@pytest.mark.public_data
def test_rules_on_rldata500(data_folder):
    records = read_records(
        data_folder / "rldata" / "RLdata500.csv", id="rec_id", entity="ent_id",
        fields=["fname_c1", "lname_c1", "by", "bm", "bd"],
    )  # fmt: skip
    alone = cs.score_partition(np.arange(500), records)
    assert (alone["cluster-recall"], alone["cluster-precision"]) == (400 / 450, 400 / 500)
    assert alone["pairwise-f1"] == 0
    # Linked where at least four of the five fields agree: 46 of 50 pairs, and no other.
    agree = (records.value[:, :, None] == records.value[:, None, :]).sum(axis=0)
    linked = sparse.csgraph.connected_components(sparse.csr_array(agree >= 4), directed=False)[1]
    rule = cs.score_partition(linked, records)
    assert (rule["pairwise-precision"], rule["pairwise-recall"]) == (1, 46 / 50)
    assert rule["pairwise-f1"] == pytest.approx(0.958, abs=5e-4)
    assert (rule["merge-moves"], rule["merge-pairs"]) == (4, 4)
