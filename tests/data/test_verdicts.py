"""Verdicts of judges: what is read, what is known of outputs, and what is refused with its place."""

import numpy as np
import pytest

import consilience as cs
from consilience.data import Verdicts, read_verdicts
from consilience.errors import InputError, UnknownName, UnsupportedRequest

ROWS = {
    "question": ["q1", "q2", "q1", "q2"], "model": ["A", "A", "B", "B"], "judge": ["x", "x", "x", "y"],
    "verdict": ["right", "FALSE", 1, 0.25],
}  # fmt: skip


def test_verdicts_are_read_under_other_names_and_forms():
    verdicts = read_verdicts(ROWS)
    assert verdicts.label.tolist() == [1.0, 0.0, 1.0, 0.25]
    assert (verdicts.items.tolist(), verdicts.systems.tolist()) == (["q1", "q2"], ["A", "B"])
    assert verdicts.annotators.tolist() == ["x", "y"]
    assert verdicts.gold is None
    assert verdicts.problem() is None
    same = Verdicts.from_codes(
        [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 1, 0.25], items=["q1", "q2"], systems=["A", "B"],
        annotators=["x", "y"],
    )  # fmt: skip
    assert same.fingerprint() == verdicts.fingerprint()
    renamed = {"who": ROWS["judge"], **{name: ROWS[name] for name in ("question", "model", "verdict")}}
    assert read_verdicts(renamed, {"annotator": "who"}).fingerprint() == verdicts.fingerprint()


@pytest.mark.parametrize(
    "labels", [[True, False], ["true", "Wrong"], ["1", 0], ["Correct", "Incorrect"], ["correct", 0.0], ["YES", "no"]]
)
def test_words_for_right_and_wrong(labels):
    rows = {"item": ["a", "b"], "system": ["A", "A"], "annotator": ["x", "x"], "label": labels}
    assert read_verdicts(rows).label.tolist() == [1, 0]


def test_gold_labels_are_of_outputs(tmp_path):
    path = tmp_path / "verdicts.csv"
    path.write_text(
        "item,system,annotator,label,gold,gold_probability\n"
        "a,A,x,1,right,0.5\na,A,y,0,,\nb,A,x,1,,\na,B,x,1,,\nb,B,x,0,0,1\nb,B,y,1,wrong,1\n"
    )
    verdicts = read_verdicts(path)
    np.testing.assert_array_equal(verdicts.gold, [[1, np.nan], [np.nan, 0]])
    np.testing.assert_array_equal(verdicts.gold_probability, [[0.5, np.nan], [np.nan, 1]])
    share, kept = verdicts.shares()
    assert share.tolist() == [[0.5, 1], [1, 0.5]]
    assert kept.tolist() == [0, 1]
    # Things keep what is known of them when they are renamed.
    moved = verdicts.renamed("system", [1, 0]).renamed("item", [1, 0])
    np.testing.assert_array_equal(moved.gold, verdicts.gold[::-1, ::-1])
    assert moved.shares()[0].tolist() == share[::-1, ::-1].tolist()
    assert (moved.systems.tolist(), moved.items.tolist()) == (["B", "A"], ["b", "a"])


def test_what_is_wrong_is_told_with_its_line(tmp_path):
    path = tmp_path / "verdicts.csv"
    path.write_text(
        "item,system,annotator,label,gold,gold_probability\n"
        "a,A,x,maybe,1,0.5\na,,x,1,,\nb,A,x,1.5,,\nb,B,x,,2,\nc,B,x,1,1,0\n"
    )
    with pytest.raises(InputError) as caught:
        read_verdicts(path)
    words = str(caught.value)
    for expected in (
        "line 2, column 'label': 2 rows hold no verdict: 'maybe', '1.5'; write right or wrong, correct or incorrect, "
        "true or false, yes or no, or a number from 0 to 1", "line 3, column 'system'",
        "line 5, column 'label': the label is empty", "line 5, column 'gold'", "line 6, column 'gold_probability'",
    ):
        assert expected in words


def test_gold_labels_that_contradict_each_other_are_refused():
    rows = {name: [*values, values[0]] for name, values in ROWS.items()} | {"gold": [1, "", "", "", "wrong"]}
    with (
        pytest.raises(InputError, match=r"row 4 \(counted from 0\), column 'gold': an earlier row has another gold"),
        pytest.warns(cs.errors.InputWarning, match="1 rows have the same item, system and annotator"),
    ):
        read_verdicts(rows)


def test_rows_that_are_left_out_take_their_things_along():
    rows = {
        "item": ["a", "b", "c"], "system": ["A", "B", "A"], "annotator": ["x"] * 3, "label": [1, "", 0],
        "gold": [1, 1, 0],
    }  # fmt: skip
    with pytest.warns(cs.errors.InputWarning, match="1 rows without a label were left out"):
        verdicts = read_verdicts(rows, missing="drop")
    assert (verdicts.items.tolist(), verdicts.systems.tolist()) == (["a", "c"], ["A"])
    assert verdicts.gold.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"label": [2.0, 0.0]}, "position 0, column 'label'"), ({"label": [np.nan, 0.0]}, "position 0, column 'label'"),
        ({"label": [1.0]}, "equal length"), ({"gold": [[1.0, -1.0]]}, "position 1, column 'gold'"),
        ({"gold": [1.0]}, "a row for each of 1 systems with 2 items"),
        ({"gold": [[1.0, np.nan]], "gold_probability": [[0.0, np.nan]]}, "position 0, column 'gold_probability'"),
        ({"item": [], "system": [], "annotator": [], "label": []}, "there are no verdicts"),
    ],
)  # fmt: skip
def test_codes_that_are_no_verdicts_are_refused(arguments, match):
    given = {"item": [0, 1], "system": [0, 0], "annotator": [0, 0], "label": [1.0, 0.0], **arguments}
    with pytest.raises(InputError, match=match):
        Verdicts.from_codes(**given)


def test_outputs_that_were_not_judged():
    verdicts = Verdicts.from_codes([0, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0], systems=["A", "B"])
    with pytest.raises(UnsupportedRequest, match="such as that of 'B' on '1'; missing='drop' compares on the other"):
        verdicts.shares()
    share, kept = verdicts.shares("drop")
    assert (share[:, kept].tolist(), kept.tolist()) == ([[1], [0]], [0])
    with pytest.raises(UnsupportedRequest, match="no item has outputs of all systems"):
        Verdicts.from_codes([0, 1], [0, 1], [0, 0], [1, 1]).shares("drop")
    with pytest.raises(UnknownName, match="missing"):
        verdicts.shares("keep")
