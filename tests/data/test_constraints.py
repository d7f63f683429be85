"""Constraints: answers, pairs in any order, features."""

import pytest

from consilience.data import read_constraints
from consilience.errors import InputError, InputWarning

PAIRS = {"expert": [1, 1, 2], "item_a": ["x", "z", "y"], "item_b": ["y", "x", "x"], "answer": ["together", "CL", "0"]}
FEATURES = {"sample": ["z", "y", "x", "w"], "height": [1, 2, 3, 4], "width": [0.5, "1e-1", 2, 0]}


def test_reading():
    constraints = read_constraints(PAIRS, features=FEATURES)
    assert constraints.items.tolist() == ["z", "y", "x", "w"]
    assert constraints.features.tolist() == ["height", "width"]
    assert constraints.feature.tolist() == [[1, 0.5], [2, 0.1], [3, 2], [4, 0]]
    assert constraints.expert.tolist() == [0, 0, 1]
    assert constraints.item_a.tolist() == [1, 0, 1]
    assert constraints.item_b.tolist() == [2, 2, 2]
    assert constraints.together.tolist() == [1, 0, 0]
    assert (constraints.num_constraints, constraints.num_items, constraints.num_features) == (3, 4, 2)


def test_without_features_the_items_are_those_that_occur():
    constraints = read_constraints(PAIRS)
    assert constraints.items.tolist() == ["x", "z", "y"]
    assert constraints.feature.shape == (3, 0)


@pytest.mark.parametrize(
    "answers", [("Must", "cannot"), ("ml", "cl"), ("same", "Different"), (1, 0), ("together", "apart")]
)
def test_answers(answers):
    table = {"user": [1, 1], "i": ["x", "x"], "j": ["y", "z"], "link": answers}
    assert read_constraints(table).together.tolist() == [1, 0]


def test_repeated_pairs():
    again = {"expert": [1, 1, 1], "item_a": ["x", "y", "x"], "item_b": ["y", "x", "z"], "answer": [1, 1, 0]}
    with pytest.warns(InputWarning, match="1 rows repeat an expert's answer to a pair; counted once"):
        assert read_constraints(again).num_constraints == 2
    with pytest.warns(InputWarning, match="all counted"):
        assert read_constraints(again, duplicates="keep").num_constraints == 3
    with pytest.raises(InputError, match=r"row 1 .*has given this answer to the pair already"):
        read_constraints(again, duplicates="error")
    with pytest.warns(InputWarning, match="1 rows contradict"):
        assert read_constraints(again | {"answer": [1, 0, 0]}).together.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("changes", "feature_changes", "match"),
    [
        ({"item_b": ["y", "z", "x"]}, {}, "row 1 .*column 'item_b': the item is paired with itself.*'z'"),
        ({"item_b": ["y", "q", "x"]}, {}, "row 1 .*column 'item_b': this item is not in the table of features.*'q'"),
        ({"answer": ["together", "maybe", "0"]}, {}, "row 1 .*column 'answer': the answer is neither.*'maybe'"),
        ({"answer": ["together", "", "0"]}, {}, "row 1 .*the answer is empty"),
        ({"expert": ["", 1, 2]}, {}, "row 0 .*the expert is empty"),
        ({}, {"height": [1, 2, "tall", 4]}, "row 2 .*column 'height': a number is expected.*'tall'"),
        ({}, {"height": [1, 2, "", 4]}, "row 2 .*the feature is empty"),
        ({}, {"height": [1, 2, float("inf"), 4]}, "row 2 .*a number is expected"),
        ({}, {"sample": ["z", "y", "y", "x"]}, "row 2 .*column 'sample': this item has a row already"),
    ],
)
def test_malformed_rows_are_refused(changes, feature_changes, match):
    with pytest.raises(InputError, match=match):
        read_constraints(PAIRS | changes, features=FEATURES | feature_changes)


def test_features_need_numbers():
    with pytest.raises(InputError, match="at least one column of numbers"):
        read_constraints(PAIRS, features={"item": ["x", "y", "z"]})
