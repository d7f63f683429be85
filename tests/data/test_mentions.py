"""Mentions: the parsed annotations, documents, gold and positions."""

import numpy as np
import pytest

from consilience.data import read_mentions
from consilience.data.mentions import MENTION_TYPES, _Links, _on_circles
from consilience.errors import InputError, InputWarning

TABLE = {
    "mention_id": ["m1", "m2", "m2", "m3"],
    "annotator_id": ["a1", "a1", "a2", "a1"],
    "annotation": ["DN()", "do( m1 )", "PR(m1)", "NR"],
    "gold": ["DN", "DO(m1)", "", "none"],
    "start": [0, 3, 3, 5],
    "end": [1, 3, 3, 7],
}


def test_reading():
    mentions = read_mentions(TABLE)
    assert [MENTION_TYPES[code] for code in mentions.type] == ["DN", "DO", "PR", "NR"]
    assert mentions.mention.tolist() == [0, 1, 1, 2]
    assert mentions.annotator.tolist() == [0, 0, 1, 0]
    assert mentions.antecedent.tolist() == [-1, 0, 0, -1]
    assert mentions.gold_type.tolist() == [0, 1, -1]
    assert mentions.gold_antecedent.tolist() == [-1, 0, -1]
    assert mentions.start.tolist() == [0, 3, 5]
    assert mentions.end.tolist() == [1, 3, 7]
    assert (mentions.num_annotations, mentions.num_mentions, mentions.num_documents) == (4, 3, 1)


def test_antecedents_are_looked_up_in_their_document():
    table = {
        "mention_id": ["m1", "m2", "m1", "m2"],
        "annotator_id": ["a"] * 4,
        "annotation": ["DN", "DO(m1)", "DO(m2)", "DN"],
        "document_id": ["d", "d", "e", "e"],
    }
    mentions = read_mentions(table)
    assert mentions.mentions.tolist() == ["d/m1", "d/m2", "e/m1", "e/m2"]
    assert mentions.antecedent.tolist() == [-1, 0, 3, -1]
    assert mentions.document.tolist() == [0, 0, 1, 1]
    table["document_id"] = ["d", "d", "e", "f"]
    with pytest.raises(InputError, match=r"row 2 .*'DO\(m2\)'"):
        read_mentions(table)


@pytest.mark.parametrize("annotation", ["DO(m9)", "DO(m1)", "PR(m1)"])
def test_an_antecedent_is_another_mention(annotation):
    table = {"mention_id": ["m1", "m1"], "annotator_id": ["a", "b"], "annotation": [annotation, "DN"]}
    with pytest.raises(InputError, match="the antecedent is the mention itself or no mention"):
        read_mentions(table)
    with pytest.warns(InputWarning, match="1 labels in the column annotation"):
        assert read_mentions(table, antecedents="drop").num_annotations == 1
    with pytest.warns(InputWarning, match="1 labels in the column gold"):
        kept = read_mentions(table | {"annotation": ["DN", "DN"], "gold": [annotation, ""]}, antecedents="drop")
    assert kept.gold_type.tolist() == [-1]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"annotation": ["DO", "DN", "DN", "DN"]}, "row 0 .*has to be DN, NR"),
        ({"annotation": ["DN", "DO()", "DN", "DN"]}, "row 1 .*has to be DN, NR"),
        ({"annotation": ["DN", "DN(m1)", "DN", "DN"]}, "has to be DN, NR"),
        ({"annotation": ["DN", "DO(m1", "DN", "DN"]}, "has to be DN, NR"),
        ({"annotation": ["DN", "XX(m1)", "DN", "none"]}, "has to be DN, NR"),
        ({"annotation": ["DN", "", "DN", "DN"]}, "the annotation is empty"),
        ({"gold": ["maybe", "", "", ""]}, "column 'gold'.*has to be DN, NR"),
        ({"gold": ["DN", "DN", "NR", ""]}, "row 2 .*column 'gold'.*contradicts"),
        ({"gold": ["DN", "DO(m3)", "DO(m1)", ""]}, "row 2 .*column 'gold'.*contradicts"),
        ({"start": [0, 3, 4, 5]}, "row 2 .*column 'start'.*another position"),
        ({"start": [0, 3, 3, 9]}, "row 3 .*ends before it starts"),
        ({"start": [0, 3.5, 3.5, 5]}, "write a whole number"),
        ({"start": [0, -3, -3, 5]}, "counts from 0"),
        ({"start": [0, "", "", 5]}, "the token number is empty"),
        ({"mention_id": ["m1", "", "m2", "m3"]}, "the mention_id is empty"),
    ],
)
def test_malformed_rows_are_refused(changes, match):
    with pytest.raises(InputError, match=match):
        read_mentions(TABLE | changes)


def test_start_needs_end():
    table = {name: values for name, values in TABLE.items() if name != "end"}
    with pytest.raises(InputError, match="start and end are expected together"):
        read_mentions(table)


def test_policies():
    gap = TABLE | {"annotation": ["DN", "", "PR(m1)", "NR"]}
    with pytest.warns(InputWarning, match="1 rows without an annotation"):
        assert read_mentions(gap, missing="drop").mention.tolist() == [0, 1, 2]
    again = TABLE | {"annotator_id": ["a1", "a1", "a1", "a1"]}
    with pytest.warns(InputWarning, match="same mention and annotator"):
        assert read_mentions(again, duplicates="first").type.tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="same mention and annotator"):
        read_mentions(again, duplicates="error")


# ---- links ----


def links(*rows, **more):
    """Return a table of (mention, annotator, label)."""
    columns = dict(zip(("mention_id", "annotator_id", "annotation"), map(list, zip(*rows, strict=True)), strict=True))
    return columns | more


FORWARD = links(("m1", "a", "DO(m2)"), ("m2", "a", "PR(m3)"), ("m3", "a", "DO(m1)"), ("m3", "b", "DO(m2)"))
POSITIONS = {"start": [0, 4, 8, 8], "end": [1, 5, 9, 9]}
CIRCLE = links(
    ("m1", "a", "DO(m2)"), ("m2", "a", "DO(m3)"), ("m3", "a", "DO(m1)"), ("m4", "a", "DO(m3)"),
    ("m1", "b", "DN"), ("m2", "b", "DO(m3)"), ("m3", "b", "DO(m1)"),
)  # fmt: skip


def test_links_forward_are_counted_and_kept():
    with pytest.warns(InputWarning, match=r"^1 labels in the column annotation, .*row 0 .*'DO\(m2\)'.*later"):
        mentions = read_mentions(FORWARD | POSITIONS)
    assert mentions.num_annotations == 4
    with pytest.raises(InputError, match=r"row 0 .*begins later.*antecedents='error'"):
        read_mentions(FORWARD | POSITIONS, antecedents="strict")
    gold = {"gold": ["DO(m3)", "", "", ""]}
    with pytest.warns(InputWarning) as caught:
        read_mentions(FORWARD | POSITIONS | gold)
    assert sum("column gold" in str(warning.message) for warning in caught) == 1


def test_without_positions_no_link_points_forward():
    assert read_mentions(FORWARD, antecedents="strict").num_annotations == 4


def test_circles_are_those_of_one_annotator():
    """The links of a lead m1, m2, m3, m1; m4 only leads there. Those of b end at m1."""
    message = r"^3 labels in the column annotation, the first in row 0 .*'DO\(m2\)'.*lead back"
    with pytest.warns(InputWarning, match=message):
        assert read_mentions(CIRCLE).num_annotations == 7
    with pytest.raises(InputError, match=r"3 problems"):
        read_mentions(CIRCLE, antecedents="strict")


def test_circles_of_gold_labels():
    table = links(("m1", "a", "DN"), ("m2", "a", "DN"), ("m2", "b", "DN"), ("m3", "a", "DN"))
    with pytest.warns(InputWarning, match=r"^2 labels in the column gold, the first in row 0 .*lead back"):
        read_mentions(table | {"gold": ["DO(m2)", "DO(m1)", "DO(m1)", "DO(m2)"]})
    read_mentions(table | {"gold": ["DN", "DO(m1)", "", "DO(m2)"]}, antecedents="strict")


def test_circles_against_a_loop():
    random = np.random.default_rng(0)
    mention, annotator, antecedent = random.integers(0, [[40], [6], [40]], (3, 150))
    owner = np.unique(np.stack([annotator, mention]), axis=1, return_index=True)[1]
    rows = np.sort(owner)
    rows = rows[mention[rows] != antecedent[rows]]
    follow = {(annotator[row], mention[row]): antecedent[row] for row in rows}
    expected = []
    for who, start in follow:
        here, seen = start, 0
        while (who, here) in follow and seen <= len(follow):
            here, seen = follow[who, here], seen + 1
            if here == start:
                expected.append((who, start))
                break
    assert expected
    found = _on_circles(_Links(rows, annotator[rows], mention[rows], antecedent[rows]))
    assert {(annotator[row], mention[row]) for row in rows[found]} == set(expected)
