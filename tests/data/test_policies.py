"""The policies of all readers: rows that are empty, unknown or repeated are refused, or left out with a count."""

import pandas as pd
import pytest

from consilience.data import (
    read_annotations,
    read_mentions,
    read_partition,
    read_predictions,
    read_rankings,
    read_ratings,
)  # fmt: skip
from consilience.errors import InputError, InputWarning

LABELS = {"item": ["b", "a", "b", "c"], "annotator": ["w2", "w1", "w1", "w2"], "label": ["10", "9", "2", "9"],
          "gold": ["2", "", "", "9"]}  # fmt: skip
TWICE = {name: [*values, *values[:2]] for name, values in LABELS.items()} | {"label": ["10", "9", "2", "9", "2", "2"]}
RATINGS = {"task": ["b", "a", "b"], "rater": [1, 1, 2], "score": [0.5, "-2", 1e3]}
RANKS = {"item": ["x", "x"], "annotator": ["r", "r"], "class": ["a", "b"], "rank": [1, 2]}
SCORES = {"item": ["y", "y", "x", "y"], "class": ["b", "a", "c", "c"], "score": [0.2, 0.5, 1, 0.2]}
MENTIONS = {"mention_id": ["m1", "m2", "m2", "m3"], "annotator_id": ["a1", "a1", "a2", "a1"],
            "annotation": ["DN()", "do( m1 )", "PR(m1)", "NR"]}  # fmt: skip
ENTITIES = {"record": ["a", "b", "c"], "entity": ["x", "", "x"]}
CLASSES = ["a", "b", "c"]


def ranked(data):
    """Return the classes that the only report ranks."""
    assert data.num_reports == 1
    return data.classes[data.entry_class[data.entry]].tolist()


@pytest.mark.parametrize(
    ("read", "table", "options", "told", "left"),
    [
        (read_annotations, LABELS | {"label": ["10", "", "2", "9"]}, {"missing": "drop"},
         "1 rows without a label were left out", {"items": ["b", "c"], "label": [2, 0, 1]}),
        (read_annotations, LABELS, {"labels": ["2", "9"], "unknown": "drop"},
         "1 rows with a label outside labels=",
         {"items": ["b", "a", "c"], "label": [1, 0, 1], "gold": [0, -1, 1]}),
        (read_annotations, TWICE, {}, "2 rows have the same item and annotator as an earlier row; all were counted",
         {"item": [0, 1, 0, 2, 0, 1]}),
        (read_annotations, TWICE, {"duplicates": "first"}, "2 rows .*; the first of each was kept",
         {"item": [0, 1, 0, 2], "label": [2, 1, 0, 1]}),
        (read_ratings, RATINGS | {"score": [0.5, "", 1e3]}, {"missing": "drop"}, "1 rows without a rating",
         {"items": ["b"], "rating": [0.5, 1e3]}),
        (read_ratings, RATINGS | {"rater": [1, 1, 1]}, {}, "all were counted", {"rating": [0.5, -2, 1e3]}),
        (read_ratings, RATINGS | {"rater": [1, 1, 1]}, {"duplicates": "first"}, "first of each",
         {"rating": [0.5, -2]}),
        (read_rankings, RANKS | {"rank": [1, ""]}, {"missing": "drop"},
         "1 classes with an empty rank were taken for unranked", {ranked: ["a"]}),
        (read_rankings, RANKS, {"classes": ["b"], "unknown": "drop"}, "1 rows with a class outside", {ranked: ["b"]}),
        (read_rankings, RANKS | {"class": ["a", "a"]}, {"duplicates": "first"},
         "same item, annotator and class", {ranked: ["a"]}),
        (read_predictions, SCORES | {"score": [1, 2, "", 1]}, {"missing": "drop", "classes": CLASSES},
         "1 rows without a score", {"items": ["y"], "ranked": [[0, 1, 2]]}),
        (read_predictions, SCORES, {"classes": ["a", "b"], "unknown": "drop"}, "2 rows with a class outside",
         {"ranked": [[0, 1]]}),
        (read_predictions, {"item": ["x", "x"], "label": ["b", "a"]}, {"duplicates": "first", "classes": CLASSES},
         "first of each", {"ranked": [[1]]}),
        (read_mentions, MENTIONS | {"annotation": ["DN", "", "PR(m1)", "NR"]}, {"missing": "drop"},
         "1 rows without an annotation", {"mention": [0, 1, 2]}),
        (read_mentions, MENTIONS | {"annotator_id": ["a1"] * 4}, {"duplicates": "first"},
         "same mention and annotator", {"type": [0, 1, 2]}),
        (read_partition, ENTITIES, {"missing": "drop"}, "1 rows without an entity were taken for unknown",
         {"entity": [0, -1, 0]}),
    ],
)  # fmt: skip
def test_rows_are_left_out_with_a_count(read, table, options, told, left):
    with pytest.warns(InputWarning, match=told) as caught:
        data = read(table, **options)
    assert caught[0].filename == __file__
    for what, expected in left.items():
        assert (what(data) if callable(what) else getattr(data, what).tolist()) == expected


def test_the_first_of_repeated_rows_is_the_table_without_them():
    with pytest.warns(InputWarning, match="first of each"):
        first = read_annotations(pd.DataFrame(TWICE), duplicates="first")
    assert first.fingerprint() == read_annotations(LABELS).fingerprint()


@pytest.mark.parametrize(
    ("read", "table", "options", "match"),
    [
        (read_annotations, TWICE, {"duplicates": "error"}, r"row 4 .*same item and annotator.*'b'"),
        (read_ratings, RATINGS | {"score": [0.5, "", 1e3]}, {}, "row 1 .*the rating is empty"),
        (read_ratings, RATINGS | {"rater": [1, 1, 1]}, {"duplicates": "error"}, "same item and annotator"),
        (read_predictions, SCORES | {"score": [1, "", 1, 1]}, {}, "row 1 .*the score is empty"),
        (read_predictions, SCORES, {"classes": ["a", "b"]}, "not in classes=.*'c'"),
        (read_predictions, SCORES | {"class": ["b", "b", "c", "a"]}, {}, "same item and class"),
        (read_mentions, MENTIONS | {"annotator_id": ["a1"] * 4}, {"duplicates": "error"}, "same mention and annotator"),
        (read_partition, ENTITIES, {}, r"row 1 .*column 'entity': the entity is empty .*; fill it in"),
    ],
)
def test_rows_are_refused(read, table, options, match):
    with pytest.raises(InputError, match=match):
        read(table, **options)


@pytest.mark.parametrize(
    ("table", "options"), [(LABELS | {"label": ["", None, "", ""]}, {"missing": "drop"}), (LABELS, {"labels": ["y"]})]
)
def test_a_table_without_usable_rows_is_refused(table, options):
    table = {name: values for name, values in table.items() if name != "gold"}
    with pytest.warns(InputWarning), pytest.raises(InputError, match="no usable row is left"):
        read_annotations(table, **{"unknown": "drop", **options})
