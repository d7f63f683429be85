"""Rankings: blocks, entries and the two kinds of files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.data import Rankings, read_rankings
from consilience.errors import InputError

CLASSES = ["a", "b", "c", "d"]
NESTED = [[[["c"], ["a", "b"]], []], [[["b"]]], [[["a", "c"]], [["c"], ["b"]]]]
TABLE = {
    "item": ["0", "0", "0", "0", "1", "2", "2", "2", "2"],
    "annotator": ["0", "0", "0", "1", "0", "0", "0", "1", "1"],
    "class": ["c", "a", "b", "", "b", "a", "c", "c", "b"],
    "rank": [1, 3, 3, "", 7, 1, 1, 0.5, 2],
}


def unpack(rankings):
    """Return the rankings as nested lists of sets again."""
    result = [[] for _ in range(rankings.num_items)]
    for report in range(rankings.num_reports):
        rows = np.flatnonzero(rankings.report == report)
        blocks = [set() for _ in range(rankings.block[rows].max(initial=-1) + 1)]
        for row in rows:
            class_ = rankings.entry_class[rankings.entry[row]]
            assert rankings.entry_item[rankings.entry[row]] == rankings.report_item[report]
            blocks[rankings.block[row]].add(rankings.classes[class_])
            assert rankings.block_size[row] == np.sum(rankings.block[rows] == rankings.block[row])
        result[rankings.report_item[report]].append(blocks)
    return result


def test_nested_and_table_agree():
    nested = Rankings.from_nested(NESTED, classes=CLASSES)
    assert unpack(nested) == [[[set(block) for block in report] for report in case] for case in NESTED]
    assert read_rankings(TABLE, classes=CLASSES).fingerprint() == nested.fingerprint()
    assert (nested.num_rows, nested.num_reports, nested.num_entries) == (8, 5, 7)
    assert (nested.num_items, nested.num_annotators, nested.num_classes) == (3, 2, 4)
    assert nested.report.tolist() == [0, 0, 0, 2, 3, 3, 4, 4]
    assert nested.block.tolist() == [0, 1, 1, 0, 0, 0, 0, 1]
    assert nested.block_size.tolist() == [1, 2, 2, 1, 2, 2, 1, 1]
    assert nested.entry_item.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert nested.entry_class.tolist() == [0, 1, 2, 1, 0, 1, 2]
    assert nested.unlisted_report.tolist() == [1, 1, 1, 3, 4]
    assert nested.unlisted_entry.tolist() == [0, 1, 2, 5, 4]
    assert (nested.num_unlisted, nested.num_tied) == (5, 4)


def test_nested_objects_name_cases_and_annotators(tmp_path):
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"x": {"ann": [["b"]], "bob": []}, "y": [[["a"]]]}))
    rankings = read_rankings(path)
    assert rankings.items.tolist() == ["x", "y"]
    assert rankings.annotators.tolist() == ["ann", "bob", "0"]
    assert rankings.classes.tolist() == ["a", "b"]
    assert rankings.report_annotator.tolist() == [0, 1, 2]
    path.write_text(json.dumps([{"ann": [["b"]]}]))
    assert read_rankings(path).annotators.tolist() == ["ann"]


def test_codes_in_nested_lists(tmp_path):
    lines = tmp_path / "classes.txt"
    lines.write_text("first\nsecond\nthird\n")
    rankings = Rankings.from_nested([[[[2], [0]]]], classes=lines)
    assert unpack(rankings) == [[[{"third"}, {"first"}]]]
    assert Rankings.from_nested([[[[2]]]]).classes.tolist() == ["0", "1", "2"]
    named = Rankings.from_nested([[[[0]]], []], items=["p", "q"])
    assert named.items.tolist() == ["p", "q"]
    assert named.num_items == 2


def test_table_in_json(tmp_path):
    path = tmp_path / "table.json"
    records = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    path.write_text(json.dumps(records))
    assert read_rankings(path).fingerprint() == read_rankings(TABLE).fingerprint()


@pytest.mark.parametrize(
    ("nested", "match"),
    [
        (7, "a list or object of cases is expected"),
        ([], "no annotator ranks anything"),
        ([7], "case 0|a list or object of annotators is expected"),
        ([[7]], "case 0, annotator 0: an annotator has to be a list of blocks"),
        ([[[7]]], "case 0, annotator 0, block 0: a block has to be a list of classes"),
        ([[["a"]]], "block 0: a block has to be a list of classes"),
        ([[[["a"], []]]], "case 0, annotator 0, block 1: the block is empty"),
        ([[], [[["a"], ["b", "a"]]]], r"case 1, annotator 0, block 1, column 'class': .*already.*'a'"),
        ([[[["a", 1]]]], r"block 0, column 'class': a class is neither.*'1'"),
        ([[[[True]]]], "neither"),
        ([[[[None]]]], "neither"),
        ([[[[-1]]]], r"class codes from 0.*'-1'"),
        ([[[[10**30]]]], "class codes from 0"),
        ([[[[4]]]], r"class codes from 0 to 3"),
        ([[[["zz"]]]], r"not in classes=.*'zz'"),
        ([[[[" "]]]], "the class is empty"),
        ([[[["\ud800"]]]], "the class is empty or no text"),
        ({"": [[["a"]]]}, "case ids have to be distinct and not empty"),
        ({" x": [[["a"]]], "x": [[["a"]]]}, "case ids have to be distinct"),
    ],
)
def test_malformed_nested_lists_are_refused_with_their_place(nested, match):
    with pytest.raises(InputError, match=match):
        Rankings.from_nested(nested, classes=CLASSES)


def test_wrong_number_of_items():
    with pytest.raises(InputError, match="3 cases but 1 items"):
        Rankings.from_nested(NESTED, items=["only"])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([], [], [], [], []), "no reports"),
        (([0], [0], [0], [np.nan], [0]), "finite"),
        (([0], [0], [1], [0], [0]), "column 'report'"),
        (([0], [0], [0, 0], [0, 1], [0, 0]), "names this class twice"),
        (([0], [0, 1], [0], [0], [0]), "equal length"),
    ],
)
def test_codes_that_are_no_rankings_are_refused(arguments, match):
    with pytest.raises(InputError, match=match):
        Rankings.from_codes(*arguments)


REPORTS = st.tuples(st.permutations(range(4)), st.lists(st.integers(1, 3), max_size=3))
CASES = st.lists(st.lists(REPORTS, max_size=3), min_size=1, max_size=4)


def nest(order, cuts):
    blocks, start = [], 0
    for cut in cuts:
        if order[start : start + cut]:
            blocks.append([CLASSES[k] for k in order[start : start + cut]])
        start += cut
    return blocks


@given(CASES, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_order_of_rows_and_reports_does_not_matter(cases, random):
    nested = [[nest(order, cuts) for order, cuts in case] for case in cases]
    if not any(nested):
        return
    rankings = Rankings.from_nested(nested, classes=CLASSES)
    assert unpack(rankings) == [[[set(block) for block in report] for report in case] for case in nested]
    rows = np.arange(rankings.num_rows)
    random.shuffle(rows)
    shuffled = Rankings.from_codes(
        rankings.report_item,
        rankings.report_annotator,
        rankings.report[rows],
        10 * rankings.block[rows] - 3,
        rankings.entry_class[rankings.entry[rows]],
        items=rankings.items,
        annotators=rankings.annotators,
        classes=CLASSES,
    )
    assert shuffled.fingerprint() == rankings.fingerprint()
    assert np.all(np.diff(rankings.report) >= 0)
    assert np.all(np.diff(rankings.report_item) >= 0)
    for report, item in enumerate(rankings.report_item):
        listed = set(rankings.entry[rankings.report == report])
        of_item = np.flatnonzero(rankings.entry_item == item)
        unlisted = rankings.unlisted_entry[rankings.unlisted_report == report]
        assert unlisted.tolist() == [entry for entry in of_item if entry not in listed]
    assert np.all(np.diff(rankings.unlisted_report) >= 0)


def test_only_what_a_user_knows_is_counted():
    rankings = Rankings.from_nested({"0": {"A": [["a", "b"], ["c"]], "B": []}})
    counts = {"rows": 3, "reports": 2, "entries": 3, "items": 1, "annotators": 2, "classes": 3}
    assert rankings.counts == counts
    assert repr(rankings) == f"Rankings({', '.join(f'{name}={count}' for name, count in counts.items())})"
