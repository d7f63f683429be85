"""`code`: a folder of parts reads as the tables it was made of, and what cannot be kept equal is refused."""

import json
import warnings
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import consilience as cs
from consilience.errors import InputError, InputWarning, OutputRefused, UnknownName, UnsupportedRequest

ROWS = "item,annotator,label\na,Ann,yes\na,Bob,no\nb,Ann,no\nc,Bob,yes\n"


def _outcome(function, *arguments, **more):
    """Return the fingerprint of what is read, or that it is refused; with the warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = function(*arguments, **more).fingerprint()
        except InputError as error:
            found = sorted({(problem.column, problem.message.split(":")[0]) for problem in error.problems})[:1]
    return found, [str(one.message) for one in said]


def _coded(table, folder, shards, **more):
    return cs.read_annotations(cs.code(table, folder, shards, force=True, **more))


_IDS = st.sampled_from(["a", " b", "b", "ä\u2003", "01", "1", "NA", '"q"', "x,y", "two\nlines"])
_LABELS = st.sampled_from(["yes", "no ", "no", "3", "10", "maybe"])
_TABLES = st.lists(
    st.tuples(_IDS, _IDS, _LABELS | st.just(""), st.sampled_from(["1", "0", "2.5", "1e2"]), st.booleans()),
    min_size=1, max_size=25,
)  # fmt: skip
_GOLD = {"a": "yes", "b": "", "01": "no"}


def _quoted(cell):
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set('",\n') else cell


@settings(max_examples=40, deadline=None)
@given(rows=_TABLES, weights=st.booleans(), missing=st.sampled_from(["error", "drop"]),
       duplicates=st.sampled_from(["keep", "first", "error"]), shards=st.integers(1, 4))  # fmt: skip
def test_a_coded_folder_reads_as_its_table(tmp_path_factory, rows, weights, missing, duplicates, shards):
    folder = tmp_path_factory.mktemp("coded")
    head = ["worker", "Label", "task", "truth", *(["weight"] if weights else [])]
    lines = [head] + [
        [annotator, label, item, _GOLD.get(item.strip(), "") if told else "", *([weight] if weights else [])]
        for item, annotator, label, weight, told in rows
    ]
    table = folder / "crowd.csv"
    table.write_text("".join(",".join(map(_quoted, line)) + "\n" for line in lines), encoding="utf-8")
    policies = {"missing": missing, "duplicates": duplicates}
    read = _outcome(cs.read_annotations, table, **policies)
    try:
        assert _outcome(_coded, table, folder / "parts", shards, **policies) == read
    except UnsupportedRequest:
        assert shards > len({item.strip() for item, *_ in rows if item.strip()} - {""}) or missing == "drop"


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (ROWS, {"labels": ["no", "yes", "other"]}),
        (ROWS, {"labels": ["yes"], "unknown": "drop"}),
        (ROWS.replace(",", ";"), {}),
        (ROWS.replace("\n", "\r\n"), {}),
        ("\ufeff" + ROWS, {}),
        (ROWS.removesuffix("\n"), {}),
        (ROWS.replace("\nb,", "\n\nb,"), {}),
        ("item,annotator,label,group\na,A,1,x\nb,B,2,\na,B,1,y\nb,C,2,\nb,A,1,x\n", {}),
        ("I,who,what\na,A,1\nb,B,2\n", {"columns": {"item": "I", "annotator": "who", "label": "what"}}),
    ],
)
def test_forms_and_options_are_those_of_the_reader(tmp_path, text, more):
    table = tmp_path / "crowd.csv"
    table.write_text(text, encoding="utf-8", newline="")
    read = _outcome(cs.read_annotations, table, **more)
    assert _outcome(_coded, table, tmp_path / "parts", 1, **more) == read
    assert isinstance(read[0], str)


def test_parquet_and_several_tables_read_as_one(tmp_path):
    import pandas

    frame = pandas.DataFrame(
        {"item": [7, 7, 9, 3], "annotator": ["A", "B", "A", "B"], "label": [1, 2, 2, 1], "weight": [1.0, 0.25, 2, 1]}
    )
    frame[:3].to_parquet(tmp_path / "one.parquet")
    frame[3:].to_csv(tmp_path / "two.csv", index=False)
    folder = cs.code([tmp_path / "one.parquet", tmp_path / "two.csv"], tmp_path / "parts", 3)
    assert cs.read_annotations(folder).fingerprint() == cs.read_annotations(frame).fingerprint()
    frame.assign(label=[0.5, 1, 2, 3]).to_parquet(tmp_path / "one.parquet")
    with pytest.raises(InputError, match="DOUBLE cannot be coded"):
        cs.code(tmp_path / "one.parquet", tmp_path / "other", 1)


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("item,annotator,label\na,A,1\n,B,2\n", "row 1 (counted from 0)", "the item is empty"),
        ("item,annotator,label\na,A,1\nb,B, \n", "row 1 (counted from 0)", "the label is empty"),
        ("item,annotator,label,weight\na,A,1,-1\n", "row 0 (counted from 0)", "a finite weight"),
        ("item,annotator,label,weight\na,A,1,1_0\n", "row 0 (counted from 0)", "a finite weight"),
        ("item,annotator,label,weight\na,A,1,\n", "row 0 (counted from 0)", "the weight is empty"),
        ("item,annotator,label,gold\na,A,1,1\na,B,1,2\n", "row 1 (counted from 0)", "contradicts an earlier row"),
        ("item,annotator,label\na,A,1\nb,B\n", "line 3", "cannot be read as a table"),
        ("item,annotator\na,A\n", None, "there is no column 'label'"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_row(tmp_path, text, where, message):
    table = tmp_path / "crowd.csv"
    table.write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        cs.code(table, tmp_path / "parts", 1)
    assert refused.value.problems[0].row == where
    assert refused.value.problems[0].file == str(table)
    assert not (tmp_path / "parts").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["crowd.csv"]


def test_a_folder_is_replaced_only_where_told(tmp_path):
    table = tmp_path / "crowd.csv"
    table.write_text(ROWS)
    folder = cs.code(table, tmp_path / "parts", 2)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["counts"] == {"items": 3, "annotators": 2, "labels": 2, "annotations": 4}
    assert manifest["shards"] == [{"items": 1, "annotations": 2}, {"items": 2, "annotations": 2}]
    with pytest.raises(OutputRefused, match="force"):
        cs.code(table, folder, 3)
    assert len(json.loads((cs.code(table, folder, 3, force=True) / "manifest.json").read_text())["shards"]) == 3
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(OutputRefused, match="something else"):
        cs.code(table, tmp_path / "mine", 1, force=True)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_requests_to_code_that_make_no_sense_are_refused(tmp_path):
    table = tmp_path / "crowd.csv"
    table.write_text(ROWS)
    for shards in (0, 4, 1.5):
        with pytest.raises(UnsupportedRequest):
            cs.code(table, tmp_path / "parts", shards)
    with pytest.raises(UnsupportedRequest, match="memory"):
        cs.code(table, tmp_path / "parts", 1, memory="much")
    with pytest.raises(UnknownName):
        cs.code(table, tmp_path / "parts", 1, missing="perhaps")
    folder = cs.code(table, tmp_path / "parts", 1)
    with pytest.raises(UnsupportedRequest, match="coded already"):
        cs.read_annotations(folder, labels=["yes", "no"])


@pytest.mark.parametrize("name", ["part-0.parquet", "labels.parquet", "manifest.json"])
def test_a_torn_folder_is_refused(tmp_path, name):
    table = tmp_path / "crowd.csv"
    table.write_text(ROWS)
    torn = cs.code(table, tmp_path / "parts", 1) / name
    torn.write_bytes(torn.read_bytes()[:-9])
    with pytest.raises(InputError, match="torn|manifest"):
        cs.read_annotations(tmp_path / "parts")


def test_more_rows_than_memory_holds_are_the_same(tmp_path):
    random = np.random.default_rng(5)
    table = tmp_path / "crowd.csv"
    codes = zip(*(random.integers(0, most, 30_000).tolist() for most in (8_000, 90, 5)), strict=True)
    table.write_text("item,annotator,label\n" + "".join(f"i{item},a{who},{label}\n" for item, who, label in codes))
    with pytest.warns(InputWarning, match="same item and annotator"):
        data = _coded(table, tmp_path / "parts", 7, memory="40MB")
    with pytest.warns(InputWarning, match="same item and annotator"):
        assert data.fingerprint() == cs.read_annotations(Path(table)).fingerprint()
