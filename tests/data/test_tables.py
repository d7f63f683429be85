"""Every way in: the same rows through every format, and the exact place of a problem in each."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from consilience.data import read_annotations
from consilience.data.columns import ITEM, all_columns, choose_columns
from consilience.data.tables import read_table
from consilience.errors import InputError, UnknownName

pytestmark = pytest.mark.usefixtures("either_reader")

ROWS = [("01", "w1", "yes"), ("1", "w2", "NA"), ("ünï, \"x\"", "w1", "null"), ("01", "w3", "None")]
COLUMNS = ("item", "annotator", "label")
RECORDS = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
FRAME = pd.DataFrame(RECORDS)


def check(annotations):
    got = [
        (annotations.items[i], annotations.annotators[a], annotations.labels[k])
        for i, a, k in zip(annotations.item, annotations.annotator, annotations.label, strict=True)
    ]
    assert got == ROWS


def write(path, text, encoding="utf-8"):
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


CSV = FRAME.to_csv(index=False)
TEXTS = {
    "a.csv": CSV,
    "crlf.csv": CSV.replace("\n", "\r\n"),
    "old_mac.csv": CSV.replace("\n", "\r"),
    "bom.csv": "\ufeff" + CSV,
    "semicolon.csv": FRAME.to_csv(index=False, sep=";"),
    "tab_in.csv": FRAME.to_csv(index=False, sep="\t"),
    "a.tsv": FRAME.to_csv(index=False, sep="\t"),
    "A.CSV": CSV.replace("item", " Item ").replace("label", "LABEL"),
    "a.csv.gz": CSV,
    "aliases.csv": CSV.replace("item,annotator", "task,worker"),
    "index.csv": FRAME.to_csv(),
    "no_final_newline.csv": CSV.rstrip("\n"),
    "blank_lines.csv": CSV.replace("\n", "\n\n"),
    "spaces.csv": CSV.replace("w1", "  w1 "),
    "a.json": json.dumps(RECORDS),
    "a.json.gz": json.dumps(RECORDS),
    "a.jsonl": "\n".join(map(json.dumps, RECORDS)),
    "a.ndjson": "\n".join(map(json.dumps, RECORDS)) + "\n\n",
    "a.jsonl.gz": "\r\n".join(map(json.dumps, RECORDS)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_rows_come_out_of_every_text_format(tmp_path, name):
    check(read_annotations(write(tmp_path / name, TEXTS[name])))


class OtherFrame:
    """A data set as Hugging Face has them."""

    column_names = list(COLUMNS)

    def to_pandas(self):
        return FRAME


class ArrowFrame:
    """A data frame that speaks Arrow only."""

    columns = list(COLUMNS)

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.Table.from_pandas(FRAME).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME[["label", "annotator", "item"]],
        FRAME.astype(object),
        FRAME.astype("category"),
        FRAME.set_axis([7, 7, 8, 8]),
        FRAME.to_dict("list"),
        {name: FRAME[name].to_numpy(object) for name in COLUMNS},
        dict(FRAME.items()),
        pa.Table.from_pandas(FRAME),
        OtherFrame(),
        ArrowFrame(),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_the_same_rows_come_out_of_every_frame(frame):
    check(read_annotations(frame))


@pytest.mark.parametrize("folder", [".", "a=1"])
def test_the_same_rows_come_out_of_parquet(tmp_path, folder):
    path = tmp_path / folder / "a.parquet"
    path.parent.mkdir(exist_ok=True)
    FRAME.to_parquet(path)
    check(read_annotations(path))


def test_parquet_keeps_large_integers_with_missing_neighbours(tmp_path):
    large = 2**60 + 1
    table = pa.table({"item": pa.array([large, 2]), "annotator": ["a", "b"], "label": pa.array([large, None])})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.warns(match="1 rows without a label"):
        annotations = read_annotations(tmp_path / "a.parquet", missing="drop")
    assert annotations.items.tolist() == annotations.labels.tolist() == [str(large)]


def test_whole_numbers_are_texts_in_the_order_of_their_appearance():
    table = read_table({"id": [3, -1, None, 3, 2**70]}, all_columns)
    codes, names = table.texts("id", required=True)
    assert names == ["3", "-1", str(2**70)]
    assert codes.tolist() == [0, 1, -1, 0, 2]
    assert [problem.message for problem in table.problems.found] == ["the id is empty"]
    codes, names = read_table({"id": [10, 9, 10]}, all_columns).texts("id", required=True)
    assert (codes.tolist(), names) == ([0, 1, 0], ["10", "9"])


def test_numbers_of_a_frame_become_their_text():
    columns = {"item": [1, 2, 3], "annotator": [1.0, 2.0, 3.0], "label": [True, False, True]}
    annotations = read_annotations(pd.DataFrame(columns | {"gold": ["True", None, np.nan]}))
    assert annotations.items.tolist() == annotations.annotators.tolist() == ["1", "2", "3"]
    assert annotations.labels.tolist() == ["False", "True"]
    assert annotations.gold.tolist() == [1, -1, -1]


@pytest.mark.parametrize("dtype", ["Int64", "string", "float64", "object"])
def test_every_missing_value_of_pandas_is_missing(dtype):
    frame = pd.DataFrame({"item": [1, 2], "annotator": ["a", "a"], "label": pd.Series([1, None], dtype=dtype)})
    with pytest.raises(InputError, match=r"row 1 \(counted from 0\), column 'label': the label is empty"):
        read_annotations(frame)


def test_columns_argument_overrules_names():
    frame = FRAME.assign(item="x", mine=FRAME["item"], annotator=["a", "b", "c", "d"])
    annotations = read_annotations(frame, columns={"item": "mine"})
    assert annotations.items.tolist() == ["01", "1", 'ünï, "x"']
    with pytest.raises(UnknownName, match="'task'.*item, annotator, label"):
        read_annotations(FRAME, columns={"task": "item"})


def test_a_role_prefers_its_own_name_to_an_alias():
    check(read_annotations(FRAME.assign(task="other", worker="other")))


def place_of_empty_label(path):
    with pytest.raises(InputError) as caught:
        read_annotations(path)
    return [problem.row for problem in caught.value.problems]


def test_lines_are_those_of_an_editor(tmp_path):
    text = 'item,annotator,label\n"a\nb",w,x\n\n"c\r\n\nd",w,\n"e","w",""\nf,"w\n",x\ng,w,\n'
    assert place_of_empty_label(write(tmp_path / "a.csv", text)) == ["line 5", "line 8", "line 11"]


def test_lines_are_exact_across_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("consilience.data.tables._CHUNK_ROWS", 3)
    rows = [f'"i\n{n}",w{n},{"" if n in (0, 4, 9) else "x"}' for n in range(10)]
    path = write(tmp_path / "a.csv", "item,annotator,label\n" + "\n".join(rows))
    assert place_of_empty_label(path) == ["line 2", "line 10", "line 20"]


def test_json_places(tmp_path):
    records = [*RECORDS, {"item": "x", "annotator": "y"}]
    assert place_of_empty_label(write(tmp_path / "a.json", json.dumps(records))) == ["record 5"]
    lines = "\n\n".join(map(json.dumps, records))
    assert place_of_empty_label(write(tmp_path / "a.jsonl", lines)) == ["line 9"]


def test_at_most_a_thousand_problems_of_a_kind_are_kept():
    with pytest.raises(InputError, match="and 997 more of this kind") as caught:
        read_annotations({"item": range(5000), "annotator": range(5000), "label": [""] * 5000})
    assert len(caught.value.problems) == 1001
    assert "4,000 further rows" in str(caught.value)


def test_a_missing_file_is_refused_before_anything_heavy_is_imported():
    code = (
        "import sys, consilience.data as d\n"
        "try: d.read_annotations('nowhere.csv')\n"
        "except Exception as e: assert type(e).__name__ == 'InputError' and 'nowhere.csv' in str(e), e\n"
        "assert not {'jax', 'pandas', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_parquet_without_pyarrow_names_the_remedy(tmp_path, monkeypatch):
    FRAME.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'consilience\[parquet\]'"):
        read_annotations(tmp_path / "a.parquet")


def test_only_wanted_columns_are_kept():
    table = read_table(FRAME.assign(more=[[1], [2], [3], [4]]), choose_columns((ITEM,)))
    assert list(table.columns) == ["item"]
    assert table.num_rows == 4


@pytest.mark.parametrize("sign", [1, -1])
def test_whole_numbers_are_exact_up_to_those_that_a_float_may_have_rounded(tmp_path, sign):
    """2**53 + 1 is 2**53 as a float, so that 2**53 itself may stand for another id; one less stands for itself."""
    exact, doubtful = sign * (2**53 - 1), sign * 2**53
    labels = {"annotator": ["x", "y"], "label": ["1", "1"]}
    read = read_annotations(pd.DataFrame({**labels, "item": [float(exact), 0.0]}))
    assert read.items.tolist() == [str(exact), "0"]
    for value in (doubtful, sign * (2**53 + 1), 4 * doubtful):
        frame = pd.DataFrame({**labels, "item": [float(value), 0.0]})
        with pytest.raises(InputError, match="may have lost digits") as caught:
            read_annotations(frame)
        (problem,) = caught.value.problems
        assert (problem.row, problem.column) == ("row 0 (counted from 0)", "item")
    # Columns of integers, and text, hold them exactly.
    (tmp_path / "labels.csv").write_text(f"item,annotator,label\n{doubtful + sign},x,1\n{doubtful},x,1\n")
    whole = [doubtful + sign, doubtful]
    for source in (pd.DataFrame({**labels, "item": whole}), {**labels, "item": whole}, tmp_path / "labels.csv"):
        assert read_annotations(source).items.tolist() == [str(value) for value in whole]


@pytest.mark.parametrize(("kind", "digits"), [(np.float32, 24), (np.float16, 11)])
def test_shorter_floats_are_exact_up_to_smaller_numbers(kind, digits):
    labels = {"annotator": ["x", "y"], "label": ["1", "1"]}
    exact = np.array([2**digits - 1, 0], kind)
    assert read_annotations({**labels, "item": exact}).items.tolist() == [str(2**digits - 1), "0"]
    with pytest.raises(InputError, match="may have lost digits"):
        read_annotations({**labels, "item": np.array([2**digits, 0], kind)})
