"""Annotations: policies, layouts and constructors."""

import copy
import io
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.data import Annotations, contract, read_annotations
from consilience.data.memory import release
from consilience.errors import ConsilienceWarning, InputError, InputWarning, UnknownName

FRAME = pd.DataFrame(
    [("b", "w2", "10", "2"), ("a", "w1", "9", ""), ("b", "w1", "2", ""), ("c", "w2", "9", "9")],
    columns=["item", "annotator", "label", "gold"],
)


def test_codes_follow_first_appearance_and_labels_are_sorted_by_value():
    annotations = read_annotations(FRAME)
    assert annotations.items.tolist() == ["b", "a", "c"]
    assert annotations.annotators.tolist() == ["w2", "w1"]
    assert annotations.labels.tolist() == ["2", "9", "10"]
    assert annotations.item.tolist() == [0, 1, 0, 2]
    assert annotations.label.tolist() == [2, 1, 0, 1]
    assert annotations.gold.tolist() == [0, -1, 1]
    assert annotations.weight.tolist() == [1] * 4
    assert (annotations.num_annotations, annotations.num_items) == (4, 3)
    assert annotations.item.dtype == annotations.label.dtype == annotations.gold.dtype == np.int32


def test_text_labels_are_sorted_as_text():
    assert read_annotations(FRAME.assign(label=["10", "9", "x", "2"])).labels.tolist() == ["10", "2", "9", "x"]


def test_a_gold_label_that_nobody_gave_is_a_label():
    annotations = read_annotations(FRAME.assign(gold=["", "7", "", ""]))
    assert annotations.labels.tolist() == ["2", "7", "9", "10"]
    assert annotations.gold.tolist() == [-1, 1, -1]


def test_closed_labels_keep_their_order():
    annotations = read_annotations(FRAME, labels=[10, 2, 9, "never"])
    assert annotations.labels.tolist() == ["10", "2", "9", "never"]
    assert annotations.label.tolist() == [0, 2, 1, 2]


@pytest.mark.parametrize("option", ["missing", "duplicates", "unknown", "layout"])
def test_an_unknown_option_lists_the_known_ones(option):
    with pytest.raises(UnknownName, match="pass one of"):
        read_annotations(FRAME, **{option: "perhaps"})


def test_weights():
    assert read_annotations(FRAME.assign(weight=[1, 0, 2.5, 3])).weight.tolist() == [1, 0, 2.5, 3]


@pytest.mark.parametrize("as_source", [lambda frame: frame, lambda frame: io.StringIO(frame.to_csv())])
def test_counts_are_weights_if_that_is_said(as_source):
    def counted(**more):
        return as_source(FRAME.assign(Count=[1, 0, 2, 3], **more))

    text = r"column 'Count' is ignored; columns=\{'weight': 'Count'\} takes it as weights"
    with pytest.warns(InputWarning, match=text):
        found = read_annotations(counted())
    assert found.weight.tolist() == [1] * 4
    assert read_annotations(counted(), columns={"weight": "Count"}).weight.tolist() == [1, 0, 2, 3]
    assert read_annotations(counted(weight=2)).weight.tolist() == [2] * 4


def test_wide_layout_keeps_items_without_annotations(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("id,w1,w2,w3\nq1,yes,,no\nq2,,,\nq3,,no,\n")
    annotations = read_annotations(path, layout="wide")
    assert annotations.items.tolist() == ["q1", "q2", "q3"]
    assert annotations.annotators.tolist() == ["w1", "w2", "w3"]
    assert annotations.labels.tolist() == ["no", "yes"]
    rows = zip(annotations.item, annotations.annotator, annotations.label, strict=True)
    assert list(rows) == [(0, 0, 1), (0, 2, 0), (2, 1, 0)]
    moved = read_annotations({"w1": ["yes", "", ""], "key": ["q1", "q2", "q3"]}, layout="wide", columns={"item": "key"})
    assert moved.items.tolist() == ["q1", "q2", "q3"]


def test_counts_layout_is_from_counts():
    frame = pd.DataFrame({"item": ["x", "y"], "cat": [3, 0], "dog": [0.5, 0]})
    annotations = read_annotations(frame, layout="counts")
    direct = Annotations.from_counts([[3, 0.5], [0, 0]], items=["x", "y"], labels=["cat", "dog"])
    assert annotations.fingerprint() == direct.fingerprint()
    assert direct.weight.tolist() == [3, 0.5]
    assert direct.annotator.tolist() == [-1, -1]
    assert (direct.num_items, direct.num_annotators) == (2, 0)


def test_from_codes_fills_ids_and_sizes():
    annotations = Annotations.from_codes([0, 2], [1, 0], [0, 0], gold=[-1, 0, -1])
    assert annotations.items.tolist() == ["0", "1", "2"]
    assert (annotations.num_items, annotations.num_annotators, annotations.num_labels) == (3, 2, 1)
    unseen = Annotations.from_codes([0], [0], [0], num_items=4, num_annotators=3, num_labels=2)
    assert (unseen.num_items, unseen.num_annotators, unseen.num_labels) == (4, 3, 2)


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        (([0, 1], [0, 0], [0, -1]), {}, r"position 1, column 'label'.*value '-1'"),
        (([0, 2], [0, 0], [0, 1]), {"num_items": 2}, r"position 1, column 'item': codes from 0 to 1.*'2'"),
        (([0.5], [0], [0]), {}, "column 'item': a one-dimensional integer array is expected, not float64"),
        (([[0], [1]], [0], [0]), {}, "column 'item': a one-dimensional integer array"),
        (([[0], [1, 2]], [0], [0]), {}, "column 'item': .*not a ragged list"),
        (([0, 1], [0], [0, 1]), {}, "equal length"),
        (([], [], []), {}, "no annotations"),
        (([0], [0], [0]), {"weight": [np.nan]}, "position 0, column 'weight'.*'nan'"),
        (([0], [0], [0]), {"weight": [np.inf]}, "finite and not negative"),
        (([0], [0], [0]), {"weight": [-1.0]}, "finite and not negative"),
        (([0], [0], [0]), {"gold": [0, 0]}, "2 entries for 1 items"),
        (([0], [0], [0]), {"gold": [3]}, "column 'gold'"),
        (([0], [0], [0]), {"items": ["a"], "num_items": 2}, "1 ids but num_items is 2"),
        (([0, 1], [0, 0], [0, 0]), {"items": ["a", "a"]}, "lists a name 2 times.*'a'"),
        (([0, 1], [0, 0], [0, 0]), {"items": ["a", ""]}, "entry 1: an entry of items is empty"),
    ],
)
def test_codes_that_are_no_annotations_are_refused(arguments, options, match):
    with pytest.raises(InputError, match=match):
        Annotations.from_codes(*arguments, **options)


@pytest.mark.parametrize(
    ("counts", "match"),
    [
        ([[1, -1]], r"item 0, column 'label 1'.*'-1'"),
        ([[1, np.nan]], "finite"),
        ([[1, np.inf]], "finite"),
        ([1, 2], "two-dimensional"),
        ([["a"]], "two-dimensional array of numbers"),
        ([[0, 0]], "no annotations"),
    ],
)
def test_from_counts_refuses(counts, match):
    with pytest.raises(InputError, match=match):
        Annotations.from_counts(counts)


# ---- annotations that are joined ----

_TEXT = st.sampled_from(["1", "10", "2", "a", "B", "é"])


@st.composite
def crowd_tables(draw):
    """A table with gold labels by item and groups by annotator, of which some cells are empty, and where to cut it."""
    pairs = draw(st.lists(st.tuples(_TEXT, _TEXT, _TEXT), min_size=2, max_size=12))
    gold = draw(st.dictionaries(_TEXT, _TEXT))
    group = draw(st.dictionaries(_TEXT, _TEXT))
    said = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    rows = [
        {
            "item": item, "annotator": who, "label": label,
            "gold": gold.get(item, "") if tells else "", "group": group.get(who, "") if tells else "",
        }
        for (item, who, label), tells in zip(pairs, said, strict=True)
    ]  # fmt: skip
    return rows, draw(st.integers(1, len(rows) - 1))


@given(crowd_tables(), st.sampled_from(["keep", "first"]))
def test_joined_annotations_are_those_of_the_joined_table(made, duplicates):
    rows, cut = made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (Annotations.read(part, duplicates=duplicates) for part in (rows[:cut], rows[cut:]))
        both, whole = one.joined(other, duplicates=duplicates), Annotations.read(rows, duplicates=duplicates)
    for column in ("item", "annotator", "label", "weight", "gold"):
        np.testing.assert_array_equal(getattr(both, column), getattr(whole, column), err_msg=column)
    for ids in ("items", "annotators", "labels"):
        assert getattr(both, ids).tolist() == getattr(whole, ids).tolist()
    # Groups are numbered by the first row that names them, which may tell of an annotator who is known already.
    named = [[*one.groups, ""][code] for one in (both, whole) for code in one.group]
    assert named[: len(both.group)] == named[len(both.group) :]
    assert both.problem() is None


def test_joined_annotations_may_not_contradict_each_other():
    one = Annotations.read({
        "item": ["a", "a"], "annotator": ["x", "y"], "label": ["p", "q"], "gold": ["p", ""], "group": ["g", ""],
    })  # fmt: skip
    other = Annotations.read({
        "item": ["a", "b"], "annotator": ["x", "z"], "label": ["p", "q"], "gold": ["q", "q"], "group": ["h", "g"],
    })  # fmt: skip
    with pytest.raises(InputError) as raised:
        one.joined(other, duplicates="error")
    assert [(problem.row, problem.column, problem.value) for problem in raised.value.problems] == [
        ("row 0 (counted from 0)", None, None), ("item a", "gold", "q"), ("annotator x", "group", "h"),
    ]  # fmt: skip


def test_closed_labels_keep_their_order_where_annotations_are_joined():
    one = Annotations.read({"item": ["a"], "annotator": ["x"], "label": ["q"]}, labels=["q", "a"])
    other = Annotations.read({"item": ["b", "b"], "annotator": ["x", "y"], "label": ["a", "b"]})
    both = one.joined(other)
    assert both.labels.tolist() == ["q", "a", "b"]
    assert both.label.tolist() == [0, 1, 2]


def test_labels_in_two_writings_are_warned_of():
    table = {"item": ["a", "b"], "annotator": ["x", "x"], "label": ["pos", "POS"]}
    with pytest.warns(InputWarning, match="'pos' and 'POS'"):
        assert Annotations.read(table).num_labels == 2
    one, other = (Annotations.read({name: [cell[row]] for name, cell in table.items()}) for row in (0, 1))
    with pytest.warns(InputWarning, match="'pos' and 'POS'"):
        both = one.joined(other)
    further = Annotations.read({"item": ["c"], "annotator": ["x"], "label": ["POS"]})
    assert both.joined(further).num_labels == 2  # said once


def test_counts_are_joined_without_annotators():
    both = Annotations.from_counts([[3, 0]], items=["a"]).joined(Annotations.from_counts([[1, 2]], items=["a"]))
    assert (both.num_annotators, both.weight.tolist(), both.item.tolist()) == (0, [3.0, 1.0, 2.0], [0, 0, 0])


# ---- memory ----


def same(weight, **more):
    return Annotations.from_codes([2, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], weight=weight, items=[*"abc"], **more)


@pytest.mark.parametrize("weight", [None, [1, 1, 1, 1], np.ones(4)])
def test_weights_of_one_take_no_memory(weight):
    data, more = same(weight), Annotations.from_codes([0], [0], [1], items=["d"])
    for one in (data, data.joined(more), data.replace(weight=np.ones(4))):
        assert one.weight.strides == (0,)
        assert one.weight.tolist() == [1.0] * one.num_annotations
    assert copy.deepcopy(data).weight.tolist() == [1.0] * 4
    assert same([1, 2, 1, 1]).weight.tolist() == [1, 2, 1, 1]


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 18])
def test_fingerprints_are_those_of_earlier_versions(block, monkeypatch):
    # Of the version that hashed whole arrays: fits that it saved name these data by them.
    monkeypatch.setattr(contract, "_BLOCK", block)
    ones, others = same(None, gold=[1, -1, 0]), same([1, 0.5, 1, 2])
    assert ones.fingerprint() == "281aa9674bcc4c605489859a251f590ef3b5bdabefd2a3871607b70d46d8ca7b"
    assert others.fingerprint() == "255eaefc47b36ffd585a2c00f6923af5c50903b41832b6e3fe4b27a12d37809d"


def test_a_reader_makes_what_codes_make():
    # The reader has checked all of it, and does not ask `from_codes` to check it again.
    table = {
        "item": ["b", "a", "b", "c"], "annotator": ["x", "y", "y", "x"], "label": ["1", "10", "2", ""],
        "gold": ["2", "", "", ""], "weight": [1, 2, 1, 1], "group": ["g", "", "", "g"],
    }  # fmt: skip
    with pytest.warns(ConsilienceWarning, match="without a label"):
        found = read_annotations(table, missing="drop")
    expected = Annotations.from_codes(
        [0, 1, 0], [0, 1, 1], [0, 2, 1], weight=[1, 2, 1], gold=[1, -1], group=[0, -1],
        items=["b", "a"], annotators=["x", "y"], labels=["1", "2", "10"], groups=["g"],
    )  # fmt: skip
    assert found.fingerprint() == expected.fingerprint()
    assert found.problem() is None
    for name in (*Annotations.names("array"), *Annotations.names("ids")):
        assert getattr(found, name).dtype == getattr(expected, name).dtype


def test_freed_memory_is_given_back_where_the_system_can():
    assert release(0) is None
    assert release(1 << 30) is None
