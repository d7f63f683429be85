"""Cells that a spreadsheet would run: written so that it does not, and read as they were."""

import csv
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.data import tables
from consilience.data.columns import all_columns
from consilience.printing import printable, write_columns
from consilience.spreadsheets import as_read, as_written, may_be_run

WRITTEN = {
    "=1+1": "'=1+1", "@ann": "'@ann", "-cmd|' /C calc'!A0": "'-cmd|' /C calc'!A0", "+49 1": "'+49 1", "＝x": "'＝x",
    "\t=2": "'\t=2", "'=x": "''=x", "'-1": "''-1", "-inf": "'-inf", "-1_0": "'-1_0",
    "-1": "-1", "+1.5e-3": "+1.5e-3", "-.5": "-.5", "--": "--", "+": "+", "it's": "it's", "'": "'", "a=b": "a=b",
}  # fmt: skip
TEXTS = st.text("'=+-@＝ \t\n1.ae,\"ü", max_size=8)


@pytest.mark.parametrize("text", WRITTEN)
def test_what_may_be_run_has_an_apostrophe(text):
    assert as_written(text) == WRITTEN[text]


@given(TEXTS)
def test_what_is_read_is_what_was_written_and_is_no_formula(text):
    cell = as_written(text)
    assert as_read(cell) == text
    assert cell == text or may_be_run([text])
    bare = cell.strip()
    if bare[:1] in "=+-@＝" and any(map(str.isalnum, bare)):
        assert float(bare) == float(text)
        assert "_" not in text


@given(st.lists(TEXTS.map(str.strip).filter(bool), min_size=1, max_size=5, unique=True), st.booleans(), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_own_tables_are_read_as_they_were(tmp_path, names, numbers, by_arrow):
    columns = {"=name": np.array(names, object), **({"-x": np.arange(len(names)) - 0.5} if numbers else {})}
    write_columns(columns, tmp_path / "own.csv", force=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_LARGE_BYTES", 0 if by_arrow else 1 << 20)
        table = tables.read_table(tmp_path / "own.csv", all_columns)
    codes, texts = table.texts("=name")
    assert [texts[code] for code in codes] == names
    if numbers:
        np.testing.assert_array_equal(table.numbers("-x"), columns["-x"])


def test_records_and_coded_annotations_are_those_that_were_written(tmp_path):
    people = {"id": ["=1", "'=1"], "@field": ["-a", "+b"], "entity": ["=e", "-1"]}
    records = cs.read_records(people, entity="entity")
    path = cs.write_records(records, tmp_path / "people.csv")[records.sources[0]]
    assert next(csv.reader(io.StringIO(path.read_text())))[1] == "'@field"
    again = cs.read_records(path, entity="entity")
    assert (again.records.tolist(), again.fields.tolist()) == (people["id"], ["@field"])
    assert again.column("@field").tolist() == people["@field"]
    (tmp_path / "labels.csv").write_text("item,annotator,label\n'=1,'@b,x\n''=1,'@b,-1\n'-,'@b,'-ü\n")
    read = cs.read_annotations(tmp_path / "labels.csv")
    coded = cs.read_annotations(cs.code(tmp_path / "labels.csv", tmp_path / "coded", shards=1))
    assert read.items.tolist() == coded.items.tolist() == ["=1", "'=1", "'-"]
    assert read.labels.tolist() == coded.labels.tolist() == ["-1", "-ü", "x"]


def test_names_do_nothing_to_a_terminal():
    assert printable("\x1b]0;hit\x07 \u202e\n\tü") == "\\x1b]0;hit\\x07 \\u202e\n\\tü"
