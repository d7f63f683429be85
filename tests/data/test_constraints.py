"""Constraints: answers, pairs in any order, features."""

import warnings

import numpy as np
import pytest

from consilience.data import read_constraints
from consilience.data.constraints import read_features
from consilience.errors import InputError, InputWarning, UnknownName, UnsupportedRequest

FEW = "ignore:.*(gave fewer than 10 answers|always or never|there is one expert)"
pytestmark = pytest.mark.filterwarnings(f"{FEW}:consilience.errors.InputWarning")

PAIRS = {"expert": [1, 1, 2], "item_a": ["x", "z", "y"], "item_b": ["y", "x", "x"], "answer": ["together", "CL", "0"]}
FEATURES = {"sample": ["z", "y", "x", "w"], "height": [1, 2, 3, 4], "width": [0.5, "1e-1", 2, 0]}


def test_items_are_those_of_the_features_and_pairs_are_ordered():
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
    with pytest.warns(InputWarning, match="1 row repeats an expert's answer to a pair; counted once"):
        assert read_constraints(again).num_constraints == 2
    with pytest.warns(InputWarning, match=r"all counted \(duplicates='keep'\): row 1 \(counted from 0\)$"):
        assert read_constraints(again, duplicates="keep").num_constraints == 3
    with pytest.raises(InputError, match=r"row 1 .*has given this answer to the pair already"):
        read_constraints(again, duplicates="error")
    with pytest.warns(InputWarning, match=r"1 row contradicts .*; both were kept: row 1 \(counted from 0\)$"):
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
def test_malformed_constraints_and_features_are_refused(changes, feature_changes, match):
    with pytest.raises(InputError, match=match):
        read_constraints(PAIRS | changes, features=FEATURES | feature_changes)


def test_features_need_numbers():
    with pytest.raises(InputError, match="at least one column of numbers"):
        read_constraints(PAIRS, features={"item": ["x", "y", "z"]})


# ---- a table of ten answers each, which nothing has to be said against ----


def table(**changes):
    random = np.random.default_rng(0)
    columns = {
        "expert": np.repeat(["ann", "bob"], 10), "item_a": np.tile([f"i{n}" for n in range(10)], 2),
        "item_b": np.tile([f"i{n + 1}" for n in range(10)], 2), "answer": np.tile(["together", "apart"], 10),
    }  # fmt: skip
    features = {"item": [f"i{n}" for n in range(12)], "height": random.normal(size=12), "width": random.normal(size=12)}
    return columns | {k: v for k, v in changes.items() if k in columns}, features


def test_nothing_is_said_of_good_tables():
    columns, features = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        constraints = read_constraints(columns, features=features)
    assert constraints.num_items == 12  # the one that nobody judged is kept
    assert constraints.experts.tolist() == ["ann", "bob"]


def test_experts_of_whom_little_is_known():
    columns, features = table()
    few = {name: values[:-3] for name, values in columns.items()}
    with pytest.warns(InputWarning, match=r"1 expert \('bob'\) gave fewer than 10 answers"):
        read_constraints(few, features=features)
    one_kind = columns | {"answer": ["together", "apart"] * 5 + ["apart"] * 10}
    with pytest.warns(InputWarning, match=r"1 expert \('bob'\) said 'together' always or never"):
        read_constraints(one_kind, features=features)
    alone = {name: values[:10] for name, values in columns.items()}
    with pytest.warns(InputWarning, match="there is one expert, and so one view"):
        assert read_constraints(alone, features=features).num_experts == 1


def test_constant_features():
    columns, features = table()
    features["colour"] = [7.0] * 12
    with pytest.warns(InputWarning, match=r"1 feature \('colour'\) is the same for all items"):
        assert read_constraints(columns, features=features).num_features == 3
    with pytest.raises(InputError, match="all features are the same for all items"):
        read_constraints(columns, features={"item": features["item"], "colour": features["colour"]})


def test_tables_without_rows_or_columns():
    columns, features = table()
    with pytest.raises(InputError, match="no rows"):
        read_constraints({name: [] for name in columns}, features=features)
    with pytest.raises(InputError, match="there is no column 'expert'") as raised:
        read_constraints(features)
    assert len(raised.value.problems) == 4  # every missing column is named
    with pytest.raises(InputError, match="there is no column 'answer'"):
        read_constraints({name: values for name, values in columns.items() if name != "answer"})
    with pytest.raises(UnknownName, match="duplicates='last' is not an option"):
        read_constraints(columns, duplicates="last")


def test_all_that_is_wrong_is_told_together_with_lines(tmp_path):
    (tmp_path / "pairs.csv").write_text("expert,i,j,link\nann,x,x,1\nann,x,y,perhaps\nann,x,q,0\n")
    (tmp_path / "items.csv").write_text("sample,height\nx,1\ny,tall\n")
    with pytest.raises(InputError) as raised:
        read_constraints(str(tmp_path / "pairs.csv"), features=str(tmp_path / "items.csv"))
    text = str(raised.value)
    for told in ("items.csv, line 3, column 'height'", "pairs.csv, line 2", "pairs.csv, line 3, column 'link'"):
        assert told in text


def test_column_of_text_is_one_line(tmp_path):
    path = tmp_path / "features.csv"
    path.write_text("item,sex,age\n" + "".join(f"s{n},{'mf'[n % 2]},{n}\n" for n in range(30)))
    with pytest.raises(InputError) as caught:
        read_features(path)
    (problem,) = caught.value.problems
    assert (problem.column, problem.row, problem.value) == ("sex", "line 2", "m")
    assert "in this column there is none" in problem.message
    path.write_text("item,age\n" + "".join(f"s{n},{n if n % 2 else 'x'}\n" for n in range(30)))
    with pytest.raises(InputError) as caught:
        read_features(path)
    assert len(caught.value.problems) == 15


def test_guess_of_the_column_of_items_is_told_where_it_leads_to_errors():
    pairs = {"expert": ["a"], "item_a": ["s0"], "item_b": ["s1"], "answer": [1]}
    features = {"age": [1, 2], "patient": ["s0", "s1"]}
    with pytest.raises(InputError, match="column 'age' was taken for the items, as there is none called 'item'"):
        read_constraints(pairs, features=features)
    with pytest.raises(InputError, match="column 'age' was taken for the items") as caught:
        read_constraints(pairs, features={"age": [1, 2], "height": [3, 5]})
    assert "not in the table of features" in str(caught.value)
    found = features | {"sample": ["s0", "s1"]}
    with pytest.raises(InputError, match="a number is expected") as caught:
        read_constraints(pairs, features=found)
    assert "was taken" not in str(caught.value)


def test_columns_are_named_for_roles():
    with pytest.raises(UnknownName, match="names 'who'; what can be named are the columns for expert, item_a"):
        read_constraints({"who": ["a"]}, columns={"who": "expert"})


@pytest.mark.parametrize("word", ["dont_know", "Unknown", "skip", "?"])
def test_an_expert_who_does_not_know_says_nothing(word):
    table = {"expert": [*"aab"], "item_a": [*"xxx"], "item_b": [*"yyz"], "answer": ["together", word, word]}
    with pytest.warns(InputWarning) as said:
        data = read_constraints(table)
    assert data.together.tolist() == [1]
    assert data.num_items == 3
    texts = [str(one.message) for one in said]
    assert any("2 rows say that the expert does not know, of 2 experts; left out" in text for text in texts)
    assert not any("contradict" in text for text in texts)
    with pytest.raises(InputError):
        read_constraints({**table, "answer": [word] * 3})


ASKED = {
    "expert": [*"aabb"], "item_a": [*"xyxz"], "item_b": [*"yzzx"], "answer": [1, 5, "?", 3], "order": [0, 1, 0, 1],
    "question": [*"pqpp"],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning")    # of few answers
def test_grades_orders_and_questions():
    data = read_constraints(ASKED, grades=5, dont_know="informative", questions="views")
    assert data.experts.tolist() == ["a: p", "a: q", "b: p"]
    assert data.expert.tolist() == [0, 1, 2, 2]
    assert data.together.tolist() == [0, 4, 5, 2]
    assert data.order.tolist() == [0, 1, 0, 1]
    assert (data.num_answers, data.num_orders, data.num_grades, data.num_blanks) == (6, 2, 5, 1)
    np.testing.assert_array_equal(data.scale, [0, 0.25, 0.5, 0.75, 1, np.nan])
    left_out = read_constraints(ASKED, grades=5)
    assert left_out.experts.tolist() == ["a", "b"]
    assert (left_out.num_constraints, left_out.num_answers, left_out.num_blanks) == (3, 5, 0)
    # That all experts know their answers leaves data as they always were.
    plain = {name: column[:2] for name, column in ASKED.items() if name in ("expert", "item_a", "item_b")}
    plain = read_constraints({**plain, "answer": [1, 0]}, dont_know="informative")
    assert (plain.num_grades, plain.num_blanks, plain.order) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "options", "match"),
    [
        ({"answer": [0, 6, "?", "together"]}, {"grades": 5}, "the answer is no whole number from 1 to 5"),
        ({"order": [0, 1, 2, ""]}, {"grades": 5}, "the order is neither 0 nor 1"),
        ({"question": [*"pq"] + ["", "p"]}, {"grades": 5, "questions": "views"}, "column 'question'"),
    ],
)
def test_wrong_grades_and_orders(changes, options, match):
    with pytest.raises(InputError, match=match):
        read_constraints({**ASKED, **changes}, **options)


def test_options_that_make_no_sense():
    without = {name: column for name, column in ASKED.items() if name != "question"}
    with pytest.raises(InputError, match="there is no column 'question'"):
        read_constraints(without, grades=5, questions="views")
    with pytest.raises(UnsupportedRequest, match="grades is 1; give how many there are, 2 to 100"):
        read_constraints(ASKED, grades=1)
