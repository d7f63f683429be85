"""What single wrong operators in comparisons of systems and in lists of items once passed unseen, worked by hand.

=================================================  ====================================================
what is wrong                                      the test that says so
=================================================  ====================================================
records that one system lacks count for others     test_records_that_one_system_lacks_count_for_none
points are averaged over all items                 test_points_are_of_the_items_that_all_systems_have
a tie is no win for either, or a whole one         test_a_tie_is_half_a_win_for_either
items of equal gain stand in any order             test_of_equal_gains_the_least_certain_come_first
=================================================  ====================================================
"""

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations, Partition, Predictions
from consilience.models.truth import Crowd, LabelProbabilities
from consilience.models.truth.partitions import DrawnPartitions


def test_records_that_one_system_lacks_count_for_none():
    """Compared are b, c, e and f alone, and of their one true pair, {e, f}, only ``left`` knows."""
    truth = DrawnPartitions(np.array([[0, 0, 2, 2, 4, 4]]))
    truth.ids = {"record": np.array(list("abcdef"), object)}
    systems = {
        "left": Partition.from_codes([0, 1, 1, 2, 2], records=list("bcdef")),       # knows {c, d}, and has no a
        "right": Partition.from_codes([0, 0, 1, 2, 3], records=list("abcef")),      # knows {a, b}, and has no d
    }  # fmt: skip
    comparison = cs.compare(truth, systems, missing="drop")
    assert comparison.values.tolist() == [1.0, 0.0]
    assert comparison.points.tolist() == [1.0, 0.0]
    assert comparison.num_items == 3  # b, c, and e with f


def test_points_are_of_the_items_that_all_systems_have():
    """Of a, b and c the full system is right about a alone, and c is not compared: 1/2, and not 1/3."""
    data = Annotations.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 1], items=["a", "b", "c"], labels=["x", "y"])
    systems = {
        "full": Predictions.from_lists([["x"], ["x"], ["x"]], items=["a", "b", "c"]),
        "part": Predictions.from_lists([["x"], ["y"]], items=["a", "b"]),
    }
    comparison = cs.compare(cs.fit("majority-vote", data), systems, missing="drop")
    assert comparison.points.tolist() == [0.5, 1.0]
    assert comparison.table["point_estimate"].tolist() == [1.0, 0.5]


def test_a_tie_is_half_a_win_for_either():
    """``x`` and ``same`` are equal in every draw, and ``wrong`` is beaten by both in every draw."""
    data = Annotations.from_codes([0, 1], [0, 0], [0, 1], items=["a", "b"], labels=["x", "y"])
    one, other = Predictions.from_lists([["x"], ["y"]], items=["a", "b"]), [["y"], ["x"]]
    systems = {"x": one, "same": one, "wrong": Predictions.from_lists(other, items=["a", "b"])}
    ranked = cs.compare(cs.fit("majority-vote", data), systems, provenance="annotations")
    pairs = ranked.pairs.set_index(["a", "b"])["p_a_beats_b_truth"]
    assert pairs.to_dict() == {("x", "same"): 0.5, ("x", "wrong"): 1.0, ("same", "wrong"): 1.0}
    # Of other items nobody knows whether systems that agree on these go on to do so: neither is ahead.
    assert ranked.beats.loc["x", "same"] == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("limit", [None, 2])
def test_of_equal_gains_the_least_certain_come_first(limit):
    """Labels that say nothing gain nothing: the certainties 0.9, 0.6, 0.8 and 0.6 decide, and then the items."""
    certainty = np.array([0.9, 0.6, 0.8, 0.6])
    truth = LabelProbabilities.dense(
        np.stack([certainty, 1 - certainty], axis=1), key=jax.random.key(0), num_draws=1,
        crowd=Crowd(lambda: np.full((2, 2), 0.5)),
    )  # fmt: skip
    found = cs.next_labels(truth, limit)
    assert (found["gain"] == 0).all()
    assert found["item"].tolist() == [1, 3, 2, 0][:limit]
