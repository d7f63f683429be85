"""Mentions: the parsed annotations, documents, gold and positions."""

import pytest

from consilience.data import read_mentions
from consilience.data.mentions import MENTION_TYPES
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
