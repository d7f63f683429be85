"""Mentions: the parsed annotations, documents, gold and positions."""

import numpy as np
import pytest

from consilience.data import read_mentions
from consilience.data.mentions import MENTION_TYPES, _Links, _on_circles
from consilience.data.mentions_writer import write_mentions
from consilience.errors import InputError, InputWarning, OutputRefused, UnsupportedRequest

TABLE = {
    "mention_id": ["m1", "m2", "m2", "m3"],
    "annotator_id": ["a1", "a1", "a2", "a1"],
    "annotation": ["DN()", "do( m1 )", "PR(m1)", "NR"],
    "gold": ["DN", "DO(m1)", "", "none"],
    "start": [0, 3, 3, 5],
    "end": [1, 3, 3, 7],
}


def test_annotations_are_parsed():
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
def test_malformed_annotations_are_refused(changes, match):
    with pytest.raises(InputError, match=match):
        read_mentions(TABLE | changes)


def test_start_needs_end():
    table = {name: values for name, values in TABLE.items() if name != "end"}
    with pytest.raises(InputError, match="start and end are expected together"):
        read_mentions(table)


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


def test_a_mention_within_another_may_point_to_it():
    """Both begin with the same word, so that neither begins later than the other."""
    nested = links(("m1", "a", "DN"), ("m2", "a", "DO(m1)"), start=[3, 3], end=[5, 3])
    assert read_mentions(nested, antecedents="strict").antecedent.tolist() == [-1, 0]


@pytest.mark.parametrize("size", [*range(2, 10), 16, 17, 33])
def test_a_line_of_links_of_any_length_is_no_circle_and_a_circle_is(size):
    """Each mention points to the one before; the first to none, or to the last."""
    following = [(f"m{place}", "a", f"DO(m{place - 1})") for place in range(1, size)]
    assert read_mentions(links(("m0", "a", "DN"), *following), antecedents="strict").num_mentions == size
    with pytest.warns(InputWarning, match=f"^{size} labels .* lead back"):
        read_mentions(links(("m0", "a", f"DO(m{size - 1})"), *following))


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


# ---- writing ----


def same(one, other):
    """Compare two sets of mentions in every field."""
    assert one.fingerprint() == other.fingerprint()


SEVERAL = links(
    ("m1", "a2", "DN"), ("m2", "a2", "DO(m1)"), ("m1", "a1", "NR"), ("m2", "a1", "PR(m1)"), ("m3", "a2", "DO(m1)"),
    document_id=["d", "d", "e", "e", "e"],
)  # fmt: skip


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        SEVERAL,
        # Ids that look as if documents stood before them, and ids that would be equal if they did.
        links(("d/m1", "a", "DN"), ("d/m2", "a", "DO(d/m1)"), document_id=["d", "d"]),
        links(("c", "a", "DN"), ("b/c", "a", "DN"), ("m", "a", "DN"), ("m", "b", "DN"),
              document_id=["a/b", "a", "a", "a/b"]),
        links(('he said, "I"', "a, b", "DN"), ("two\nlines", "a, b", 'DO(he said, "I")'), ("tab\there", "ä", "DN")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "TSV"])
def test_what_is_written_is_read_again(tmp_path, table, ending):
    mentions = read_mentions(table)
    path = tmp_path / f"mentions.{ending}"
    write_mentions(mentions, path)
    same(read_mentions(path), mentions)
    first = path.read_bytes()
    with pytest.raises(OutputRefused, match="exists; .*force=True"):
        write_mentions(mentions, path)
    write_mentions(mentions, path, force=True)
    assert path.read_bytes() == first
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_ids_are_written_as_they_were_within_their_documents(tmp_path):
    write_mentions(read_mentions(SEVERAL), tmp_path / "mentions.csv")
    assert (tmp_path / "mentions.csv").read_text().splitlines() == [
        "mention_id,annotator_id,annotation,document_id",
        "m1,a2,DN,d", "m2,a2,DO(m1),d", "m1,a1,NR,e", "m2,a1,PR(m1),e", "m3,a2,DO(m1),e",
    ]  # fmt: skip


def test_mentions_without_annotations_are_counted(tmp_path):
    table = links(("m1", "a", "DN"), ("m2", "a", ""), ("m3", "a", "DO(m1)"))
    with pytest.warns(InputWarning, match="1 rows without"):
        mentions = read_mentions(table, missing="drop")
    assert mentions.num_mentions == 3
    with pytest.warns(InputWarning, match="^1 mentions without annotations were not written"):
        write_mentions(mentions, tmp_path / "mentions.csv")
    assert read_mentions(tmp_path / "mentions.csv").mentions.tolist() == ["m1", "m3"]


def test_mentions_without_ids_are_written_by_their_codes(tmp_path):
    mentions = read_mentions(TABLE)
    write_mentions(mentions.replace(mentions=None, annotators=None, documents=None), tmp_path / "mentions.csv")
    found = read_mentions(tmp_path / "mentions.csv")
    assert found.mentions.tolist() == ["0", "1", "2"]
    same(found.replace(**{name: getattr(mentions, name) for name in ("mentions", "annotators", "documents")}), mentions)


def test_what_could_not_be_read_is_not_written(tmp_path):
    mentions = read_mentions(TABLE)
    with pytest.raises(UnsupportedRequest, match="end it in .csv"):
        write_mentions(mentions, tmp_path / "mentions.xlsx")
    odd = mentions.mentions.copy()
    odd[0] = "m(1)"
    with pytest.raises(UnsupportedRequest, match=r"points to 'm\(1\)'"):
        write_mentions(mentions.replace(mentions=odd), tmp_path / "mentions.csv")
    assert not list(tmp_path.iterdir())
