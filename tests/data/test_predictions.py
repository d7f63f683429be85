"""Predictions: order of classes, ties, alignment with a data set."""

import numpy as np
import pytest

from consilience.data import Predictions, read_predictions
from consilience.errors import InputError, InputWarning, UnknownName

CLASSES = ["a", "b", "c"]
SCORES = {"item": ["y", "y", "x", "y"], "class": ["b", "a", "c", "c"], "score": [0.2, 0.5, 1, 0.2]}


def test_scores_ranks_and_lists_agree():
    scored = read_predictions(SCORES, classes=CLASSES, name="s")
    assert scored.ranked.tolist() == [[0, 1, 2], [2, -1, -1]]
    assert scored.items.tolist() == ["y", "x"]
    ranked = SCORES | {"rank": [4, 1, 1, 4]}
    del ranked["score"]
    assert read_predictions(ranked, classes=CLASSES, name="s").fingerprint() == scored.fingerprint()
    listed = Predictions.from_lists([["a", "b", "c"], ["c"]], items=["y", "x"], classes=CLASSES, name="s")
    assert listed.fingerprint() == scored.fingerprint()
    dense = Predictions.from_scores([[0.5, 0.2, 0.2], [0, 0, 1]], items=["y", "x"], classes=CLASSES, name="s", depth=1)
    assert dense.ranked.tolist() == [[0], [2]]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
def test_equal_scores_go_to_the_lowest_class(dtype):
    scores = np.array([[1, 3, 3, 0, 3], [2, 2, 2, 2, 2]], dtype)
    assert Predictions.from_scores(scores).ranked.tolist() == [[1, 2, 4, 0, 3], [0, 1, 2, 3, 4]]


def test_one_label_per_item(tmp_path):
    path = tmp_path / "system.v2.csv"
    path.write_text("task,label\nx,b\ny,a\n")
    predictions = read_predictions(path)
    assert predictions.ranked.tolist() == [[1], [0]]
    assert predictions.name == "system"
    path.write_text("task,label\nx,b\nx,a\n")
    with pytest.raises(InputError, match="line 3, column 'task': an earlier row has the same item"):
        read_predictions(path)


def test_a_row_for_each_item_is_a_column_for_each_class(tmp_path):
    wide = {"item": ["y", "x"], "a": [0.5, 0.1], "b": [0.3, 0.2], "c": [0.2, 0.7]}
    for rows in (wide, {"row_id" if name == "item" else name: values for name, values in wide.items()}):
        named = None if rows is wide else {"item": "row_id"}
        found = read_predictions(rows, columns=named, scores="probabilities", name="s")
        long = {
            "item": np.repeat(wide["item"], 3), "class": CLASSES * 2,
            "prob": [wide[name][row] for row in (0, 1) for name in CLASSES],
        }  # fmt: skip
        assert found.fingerprint() == read_predictions(long, scores="probabilities", name="s").fingerprint()
    path = tmp_path / "s.json"
    path.write_text('{"y": "a", "x": "c"}')
    listed = read_predictions({"item": ["y", "x"], "class": ["a", "c"]}, name="s")
    assert read_predictions(path).fingerprint() == listed.fingerprint()


def test_score_and_rank_together_need_a_word():
    both = SCORES | {"rank": [1, 2, 3, 4]}
    with pytest.raises(InputError, match="there is a score and a rank"):
        read_predictions(both)
    by_rank = read_predictions(both, columns={"rank": "rank"}, classes=CLASSES)
    assert by_rank.ranked.tolist() == [[1, 0, 2], [2, -1, -1]]


def test_align_recodes_to_the_data_set():
    predictions = read_predictions(SCORES, name="s")
    aligned, kept = predictions.align(["x", "y"], ["c", "b", "d", "a"])
    assert aligned.ranked.tolist() == [[0, -1, -1], [3, 1, 0]]
    assert kept.tolist() == [True, True]
    assert (aligned.num_items, aligned.num_classes, aligned.name) == (2, 4, "s")
    with pytest.raises(InputError, match=r"2 items of the data have no prediction: 'p', 'q'; pass missing='drop'"):
        predictions.align(["p", "x", "q", "y"], CLASSES)
    aligned, kept = predictions.align(["p", "x", "q", "y"], CLASSES, missing="drop")
    assert aligned.ranked.tolist() == [[-1, -1, -1], [2, -1, -1], [-1, -1, -1], [0, 1, 2]]
    assert kept.tolist() == [False, True, False, True]


def test_align_guards_against_typing_errors():
    predictions = read_predictions(SCORES)
    with pytest.raises(InputError, match="1 predicted classes are not in the data: 'b'"):
        predictions.align(["x", "y"], ["a", "c"])
    assert predictions.align(["x", "y"], ["a", "c"], unknown="keep")[0].ranked.tolist() == [[1, -1, -1], [0, -2, 1]]
    with pytest.raises(InputError, match="1 predicted items are not in the data: 'y'"):
        predictions.align(["x"], CLASSES)
    with pytest.warns(InputWarning, match="'y'"):
        assert predictions.align(["x"], CLASSES, unknown="keep")[0].ranked.tolist() == [[2, -1, -1]]
    with pytest.raises(InputError, match="no item of the data has a prediction"):
        predictions.align(["z"], CLASSES, missing="drop", unknown="keep")


def test_a_class_that_is_never_predicted_may_be_foreign():
    predictions = Predictions.from_lists([["a"]], items=["x"], classes=["a", "foreign"])
    assert predictions.align(["x"], ["a"])[0].ranked.tolist() == [[0]]


def test_align_again_keeps_what_is_never_true():
    once, _ = read_predictions(SCORES).align(["x", "y"], ["a", "c"], unknown="keep")
    assert once.align(["y", "x"], ["c", "a"])[0].ranked.tolist() == [[1, -2, 0], [0, -1, -1]]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Predictions.from_scores([1, 2]), "two-dimensional"),
        (lambda: Predictions.from_scores(np.zeros((2, 0))), "two-dimensional"),
        (lambda: Predictions.from_scores([[1, np.nan]]), "item 0, column 'class 1': the score is not a number"),
        (lambda: Predictions.from_scores([[1]], depth=0), "depth is 0"),
        (lambda: Predictions.from_scores([[1]], items=["a", "b"]), "1 items but 2 ids"),
        (lambda: Predictions.from_scores([[1]], classes=["a", "b"]), "1 classes but 2 ids"),
        (lambda: Predictions.from_lists(["ab"]), "list of lists"),
        (lambda: Predictions.from_lists([]), "nothing is predicted"),
        (lambda: Predictions.from_lists([[]]), "nothing is predicted"),
        (lambda: Predictions.from_lists([["a", "a"]]), "item 0: the class occurs twice"),
        (lambda: Predictions.from_lists([["z"]], classes=["a"]), "item 0: this class is not in classes="),
    ],
)
def test_constructors_refuse(make, match):
    with pytest.raises(InputError, match=match):
        make()


# ---- probabilities ----


def test_probabilities_are_kept_beside_the_ranks():
    read = read_predictions(SHARES, scores="probabilities", classes=CLASSES)
    assert read.ranked.tolist() == [[0, 1, -1], [2, 1, 0]]
    np.testing.assert_allclose(read.probability, [[0.6, 0.3, 0], [0.5, 0.3, 0.2]], atol=1e-7)
    assert read.probability.dtype == np.float32
    np.testing.assert_allclose(read.class_probabilities(), [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]], atol=1e-7)
    dense = Predictions.from_scores(read.class_probabilities(), classes=CLASSES, depth=2, probabilities=True)
    np.testing.assert_allclose(dense.class_probabilities(), read.class_probabilities(), atol=1e-7)
    np.testing.assert_allclose(dense.unlisted_probability(slice(1, 2)), [0.2], atol=1e-7)
    # Without the word nothing is kept, and data are what they were.
    assert read_predictions(SHARES, classes=CLASSES).probability is None
    assert read.replace(name="x").probability is read.probability


SHARES = {"item": [*"yyxxx"], "class": [*"bacba"], "probability": [0.3, 0.6, 0.5, 0.3, 0.2]}


def test_alignment_keeps_probabilities_and_spreads_the_rest_over_all_classes_of_the_data():
    read = read_predictions(SHARES, scores="probabilities", classes=CLASSES)
    aligned, kept = read.align(["x", "z", "y"], ["d", "c", "b", "a"], missing="drop")
    assert kept.tolist() == [True, False, True]
    expected = [[0, 0.5, 0.3, 0.2], [0, 0, 0, 0], [0.05, 0.05, 0.3, 0.6]]
    np.testing.assert_allclose(aligned.class_probabilities(), expected, atol=1e-7)
    foreign, _ = read.align(["x", "y"], ["b", "c"], unknown="keep")
    np.testing.assert_allclose(foreign.class_probabilities(), [[0.3, 0.5], [0.3, 0.1]], atol=1e-7)


def test_sums_within_a_thousandth_are_rounded_ones():
    table = {"item": ["x", "x", "y", "y"], "class": ["a", "b", "a", "b"], "score": [0.333, 0.666, 0.5, 0.5]}
    found = read_predictions(table, scores="probabilities").class_probabilities()
    np.testing.assert_allclose(found[0], [1 / 3, 2 / 3], atol=1e-7)
    # Seven digits of a sum of one leave nothing for classes that are not listed.
    third = Predictions.from_scores([[1 / 3, 1 / 3, 1 / 3, 0]], depth=3, probabilities=True)
    assert third.class_probabilities()[0, 3] == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0.3, -0.6, 0.5, 0.3, 0.2], r"row 1 \(counted from 0\), column 'probability': the probability is negative "
         r"\(value '-0.6'\); give probabilities, 0 or more"),
        ([0.3, 0.8, 0.5, 0.3, 0.2], r"item 'y': the probabilities of this item do not sum to 1 \(value '1.1'\); give "
         "some that do within 0.001"),
        ([0.3, 0.6, 0.5, 0.3, 0.1], "item 'x': the probabilities of this item do not sum to 1"),
        ([0.3, "x", 0.5, 0.3, 0.2], "a number is expected"),
    ],
)  # fmt: skip
def test_what_is_no_probability_is_named(given, message):
    with pytest.raises(InputError, match=message):
        read_predictions(SHARES | {"probability": given}, scores="probabilities", classes=CLASSES)


def test_probabilities_need_their_column_and_sum_to_one():
    with pytest.raises(InputError, match="there is no column of probabilities; add a column score"):
        read_predictions({"item": ["x"], "class": ["a"], "rank": [1]}, scores="probabilities")
    with pytest.raises(InputError, match=r"item 1: .* sum to 1 \(value '1.1'\)"):
        Predictions.from_scores([[0.5, 0.5], [0.5, 0.6]], probabilities=True)
    with pytest.raises(InputError, match=r"item 0, column 'class 1': the probability is negative \(value '-0.5'\)"):
        Predictions.from_scores([[1.5, -0.5]], probabilities=True)
    with pytest.raises(UnknownName, match="scores='x'"):
        read_predictions(SHARES, scores="x")


def test_the_column_of_classes_may_be_named_as_that_of_labels():
    read = read_predictions({"id": ["a"], "said": ["x"]}, columns={"item": "id", "label": "said"})
    assert (read.items.tolist(), read.classes.tolist()) == (["a"], ["x"])
