# ruff: noqa: E501  (one wrong file a line reads best)
"""Files and frames that are wrong in one way each: refused at once, with the place, the value and what to do."""

import gzip
import io
import json
import os
import re
import struct

import numpy as np
import pandas as pd
import pytest

from consilience.data import (
    files,
    read_annotations,
    read_class_map,
    read_predictions,
    read_rankings,
    read_ratings,
    tables,
)
from consilience.errors import InputError

pytestmark = pytest.mark.usefixtures("either_reader")

HEADER = "item,annotator,label\n"
GOOD = HEADER + "a,w1,x\nb,w1,y\n"


def parquet(frame):
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


class Bad:
    """One wrong file: what is in it, and what the message has to name."""

    def __init__(self, name, content, *, row=None, column=None, value=None, says="", remedy="", read=read_annotations, **options):
        self.name, self.content, self.read, self.options = name, content, read, options
        self.row, self.column, self.value, self.says, self.remedy = row, column, value, says, remedy


FILES = [
    # the file as a whole
    Bad("empty.csv", "", says="the file is empty", remedy="file you meant"),
    Bad("only_blank_lines.csv", "\n\n\n", says="the file is empty", remedy="file you meant"),
    Bad("only_bom.csv", "\ufeff", says="the file is empty", remedy="file you meant"),
    Bad("header_only.csv", HEADER, says="no rows", remedy="file you meant"),
    Bad("no_header.csv", "1,w1,x\n2,w1,y\n", column="item", says="there is no column 'item'; the table has '1', 'w1', 'x'", remedy="header line item,annotator,label"),
    Bad("unknown_ending.xlsx", GOOD, says=r"ending in '\.xlsx'", remedy="pass a data frame"),
    Bad("no_ending", GOOD, says="ending in ''", remedy="give a file ending in"),
    Bad("just.gz", GOOD, says=r"ending in '\.gz'|ending in ''", remedy="give a file ending in"),
    Bad("binary.csv", bytes(range(256)) * 10, says="not a text file|not UTF-8", remedy="CSV"),
    Bad("zip.csv", b"PK\x03\x04\x14\x00\x00\x00", says="not a text file", remedy="export the table as CSV", row="line 1"),
    Bad("utf16.csv", GOOD.encode("utf-16"), says="not UTF-8", remedy="save the file as UTF-8", row="line 1", value="0xff"),
    Bad("latin1.csv", (GOOD + "é,w2,x\n").encode("latin-1"), says="byte 1 of the line is not UTF-8", remedy="save the file as UTF-8", row="line 4", value="0xe9"),
    Bad("latin1.jsonl", b'{"item":"a","annotator":"b","label":"x"}\n{"item":"\xe9"}', says="byte 10 of the line", remedy="UTF-8", row="line 2", value="0xe9"),
    Bad("torn.csv.gz", gzip.compress(GOOD.encode() * 50)[:-20], says="damaged or incomplete", remedy="copy or compress it again"),
    Bad("not_gzip.csv.gz", GOOD, says="damaged or incomplete", remedy="copy or compress it again"),
    Bad("bad_checksum.csv.gz", gzip.compress(GOOD.encode())[:-8] + bytes(8), says="damaged or incomplete", remedy="copy or compress"),
    Bad("torn.parquet", parquet(pd.DataFrame({"item": [1]}))[:-9], says="not a readable Parquet file", remedy="write the file again"),
    Bad("text.parquet", GOOD, says="not a readable Parquet file", remedy="write the file again"),
    Bad("empty.parquet", "", says="not a readable Parquet file", remedy="write the file again"),
    # cells and rows of CSV
    Bad("long_row.csv", GOOD + "c,w1,x,extra\n", row="line 4", value="c,w1,x,extra", says="4 cells where the header has 3", remedy="quote cells"),
    Bad("short_row.csv", GOOD + "c,w1\n", row="line 4", value="c,w1", says="2 cells where the header has 3", remedy="add or remove separators"),
    Bad("open_quote.csv", HEADER + 'a,w1,"x\nb,w1,y\n', row="line 2", says="cannot be split into cells", remedy="close every quotation mark"),
    Bad("stray_quote.csv", HEADER + 'a,w1,"x"y\n', row="line 2", says="cannot be split into cells", remedy="write one inside a quoted cell twice"),
    Bad("huge_cell.csv", HEADER + "a,w1," + "x" * 200_000 + "\n", row="line 2", says="field larger than field limit", remedy="quotation mark"),
    Bad("nul.csv", HEADER + "a,w1,x\0y\n", row="line 2", column="label", value="x\0y", says="NUL", remedy="plain text"),
    Bad("duplicate_column.csv", "item,annotator,label,label\na,w,x,y\n", column="label", says="2 columns have the same name", remedy="rename or delete"),
    Bad("two_aliases.csv", "task,question,worker,label\na,b,w,x\n", column="item", says="several columns could be 'item': 'task', 'question'", remedy="pass columns="),
    Bad("missing_column.csv", "item,label\na,x\n", column="annotator", says="there is no column 'annotator'; the table has 'item', 'label'", remedy="pass columns="),
    Bad("wrong_columns.csv", GOOD, columns={"item": "itm"}, column="itm", says=r"there is no column 'itm' \(given for 'item'\)", remedy="pass columns="),
    Bad("same_column_twice.csv", GOOD, columns={"item": "item", "annotator": "item"}, column="item", says="column 'item' is given for 'item' and for 'annotator'; one column cannot have two roles", remedy="pass columns="),
    Bad("tasks.json", '[{"id": 1, "data": {"text": "x"}, "annotations": [{"result": []}]}]', says="tasks of Label Studio", remedy="export them as CSV"),
    Bad("nested.json", '[{"id": 1, "answers": [{"by": "ann"}]}]', says="'answers' of the first row hold lists or objects", remedy="flat rows"),
    Bad("no_columns.jsonl", '{"id": 1}', column="label", says="there is no column 'label'", remedy="or name the columns item,annotator,label"),
    Bad("empty_item.csv", HEADER + ",w1,x\n", row="line 2", column="item", says="the item is empty", remedy="fill it in"),
    Bad("blank_item.csv", HEADER + "   ,w1,x\n", row="line 2", column="item", says="the item is empty", remedy="fill it in"),
    Bad("empty_annotator.csv", HEADER + "a,,x\n", row="line 2", column="annotator", says="the annotator is empty", remedy="fill it in"),
    Bad("empty_alias.csv", "task,worker,label\na,,x\n", row="line 2", column="worker", says="the annotator is empty", remedy="fill it in"),
    Bad("empty_label.csv", GOOD + "c,w1,\n", row="line 4", column="label", says="the label is empty", remedy="missing='drop'"),
    Bad("all_empty.csv", HEADER + ",,\n,,\n", row="line 3", column="label", says="the label is empty", remedy="missing='drop'"),
    Bad("unknown_label.csv", GOOD, labels=["x"], row="line 3", column="label", value="y", says="not in labels=", remedy="unknown='drop'"),
    Bad("repeated.csv", GOOD + "a,w1,y\n", duplicates="error", row="line 4", column="item", value="a", says="same item and annotator", remedy="duplicates='first'"),
    Bad("gold_conflict.csv", "item,annotator,label,gold\na,w1,x,x\na,w2,x,y\n", row="line 3", column="gold", value="y", says="contradicts an earlier row", remedy="one gold label per item"),
    Bad("unknown_gold.csv", "item,annotator,label,gold\na,w1,x,z\n", labels=["x"], row="line 2", column="gold", value="z", says="not in labels=", remedy="add it to the list"),
    Bad("gold_writing.csv", "item,annotator,label,gold\na,w1,pos,Pos \na,w2,neg,\nb,w2,neg,neg\n", column="gold", value="Pos", says="no annotator gave this gold label; did you mean 'pos'", remedy="pass labels= with both"),
    Bad("text_weight.csv", "item,annotator,label,weight\na,w1,x,heavy\n", row="line 2", column="weight", value="heavy", says="a finite weight", remedy="finite number"),
    Bad("nan_weight.csv", "item,annotator,label,weight\na,w1,x,nan\n", row="line 2", column="weight", value="nan", says="a finite weight", remedy="finite number"),
    Bad("inf_weight.csv", "item,annotator,label,weight\na,w1,x,-inf\n", row="line 2", column="weight", value="-inf", says="a finite weight", remedy="finite number"),
    Bad("negative_weight.csv", "item,annotator,label,weight\na,w1,x,-1\n", row="line 2", column="weight", value="-1", says="not negative", remedy="correct it"),
    Bad("empty_weight.csv", "item,annotator,label,weight\na,w1,x,\n", row="line 2", column="weight", says="the weight is empty", remedy="1 counts the row once"),
    Bad("overflowing_weight.csv", "item,annotator,label,weight\na,w1,x,1e999\n", row="line 2", column="weight", value="1e999", says="a finite weight", remedy="finite number"),
    # other layouts
    Bad("no_layout.csv", "item,ann_1,ann_2\na,x,y\n", says="a row may be an item, and a column an annotator, or a label", remedy="pass layout='wide'"),
    Bad("one_column.csv", "item\na\n", layout="wide", says="at least one more column", remedy="check the layout"),
    Bad("repeated_item.csv", "id,w1\na,x\na,y\n", layout="wide", row="line 3", column="id", value="a", says="has a row already", remedy="one row per item"),
    Bad("all_blank.csv", "id,w1\na,\n", layout="wide", says="every cell is empty", remedy="check the layout"),
    Bad("unknown_in_wide.csv", "id,w1,w2\na,x,z\n", layout="wide", labels=["x"], row="line 2", column="w2", value="z", says="not in labels=", remedy="unknown='drop'"),
    Bad("text_count.csv", "id,x,y\na,1,many\n", layout="counts", row="line 2", column="y", value="many", says="a count is expected", remedy="finite number"),
    Bad("negative_count.csv", "id,x,y\na,1,-2\n", layout="counts", row="line 2", column="y", value="-2", says="cannot be negative", remedy="correct it"),
    Bad("no_counts.csv", "id,x\na,0\n", layout="counts", says="every count is zero", remedy="file you meant"),
    Bad("count_of_unknown.csv", "id,x,y\na,1,1\n", layout="counts", labels=["x"], column="y", says="not in labels=", remedy="unknown='drop'"),
    Bad("count_missing.csv", "id,x\na,1\n", layout="counts", labels=["x", "y"], says="no column for the label 'y'", remedy="add the column"),
    # JSON
    Bad("empty.json", "", row="line 1", says="not JSON", remedy="check it in an editor"),
    Bad("torn.json", '[{"item": "a",\n "annotator"', row="line 2", says="not JSON", remedy="check it in an editor"),
    Bad("number.json", "7", says="an array of objects is expected", remedy="orient='records'"),
    Bad("columns.json", '{"item": ["a"], "annotator": ["b"], "label": ["c"]}', says="an array of objects", remedy="orient='records'"),
    Bad("no_records.json", "[]", says="no rows", remedy="file you meant"),
    Bad("not_objects.json", '[{"item":"a","annotator":"w","label":"x"}, 3]', row="record 2", value="3", says="an object is expected", remedy="write each row as"),
    Bad("nested.json", '[{"item":"a","annotator":"w","label":["x"]}]', row="record 1", column="label", value="['x']", says="one value is expected", remedy="plain text or number"),
    Bad("null.json", '[{"item":"a","annotator":"w","label":null}]', row="record 1", column="label", says="the label is empty", remedy="missing='drop'"),
    Bad("nan.json", '[{"item":"a","annotator":"w","label":NaN}]', row="record 1", column="label", says="the label is empty", remedy="missing='drop'"),
    Bad("infinity.json", '[{"item":"a","annotator":"w","label":Infinity}]', row="record 1", column="label", value="inf", says="infinity cannot name anything", remedy="plain text"),
    Bad("surrogate.json", '[{"item":"a","annotator":"w","label":"\\ud800"}]', row="record 1", column="label", says="no text that could be written", remedy="plain text"),
    Bad("repeated_key.json", '[{"item":"a","item":"b","annotator":"w","label":"x"}]', says="the key 'item' twice", remedy="correct it"),
    Bad("deep.json", "[" * 100_000, says="nested too deeply|not JSON", remedy="check"),
    Bad("long_number.json", '[{"item":' + "9" * 5000 + "}]", says="this JSON cannot be used", remedy="correct it"),
    Bad("torn.jsonl", '{"item":"a","annotator":"w","label":"x"}\n{"item":', row="line 2", says="not JSON", remedy="check it in an editor"),
    Bad("array.jsonl", '[{"item":"a"}]', row="line 1", says="an object is expected", remedy="write each row as"),
    # ratings
    Bad("text_rating.csv", "item,annotator,rating\na,w,good\n", read=read_ratings, row="line 2", column="rating", value="good", says="a number is expected", remedy="decimal point"),
    Bad("decimal_comma.csv", "item;annotator;rating\na;w;1,5\n", read=read_ratings, row="line 2", column="rating", value="1,5", says="a number is expected", remedy="decimal point"),
    Bad("underscore.csv", "item,annotator,rating\na,w,1_000\n", read=read_ratings, row="line 2", column="rating", value="1_000", says="a number is expected", remedy="finite number"),
    Bad("inf_rating.csv", "item,annotator,rating\na,w,inf\n", read=read_ratings, row="line 2", column="rating", value="inf", says="a number is expected", remedy="finite number"),
    Bad("true_rating.json", '[{"item":"a","annotator":"w","rating":true}]', read=read_ratings, row="record 1", column="rating", value="True", says="a number is expected", remedy="finite number"),
    Bad("empty_rating.csv", "item,annotator,rating\na,w,\n", read=read_ratings, row="line 2", column="rating", says="the rating is empty", remedy="missing='drop'"),
    # rankings
    Bad("zero_rank.csv", "item,annotator,class,rank\na,w,x,0\n", read=read_rankings, row="line 2", column="rank", value="0", says="a positive rank", remedy="count ranks from 1"),
    Bad("text_rank.csv", "item,annotator,class,rank\na,w,x,first\n", read=read_rankings, row="line 2", column="rank", value="first", says="a positive rank", remedy="finite number"),
    Bad("twice_ranked.csv", "item,annotator,class,rank\na,w,x,1\na,w,x,2\n", read=read_rankings, row="line 3", column="item", value="a", says="same item, annotator and class", remedy="duplicates='first'"),
    Bad("no_rank.csv", "item,annotator,class,rank\na,w,x,\n", read=read_rankings, row="line 2", column="class", value="x", says="the rank of this class is empty", remedy="missing='drop'"),
    Bad("no_class.csv", "item,annotator,class,rank\na,w,,1\n", read=read_rankings, row="line 2", column="rank", value="1", says="a rank but no class", remedy="name the class"),
    Bad("empty_and_full.csv", "item,annotator,class,rank\na,w,,\na,w,x,1\n", read=read_rankings, row="line 2", column="class", says="the annotator has other rows", remedy="delete the row"),
    Bad("unknown_class.csv", "item,annotator,class,rank\na,w,x,1\n", read=read_rankings, classes=["y"], row="line 2", column="class", value="x", says="not in classes=", remedy="unknown='drop'"),
    Bad("blocks.json", json.dumps({"1026": {"3": [["a"], ["b"], ["b"]]}}), read=read_rankings, row="case 1026, annotator 3, block 2", column="class", value="b", says="has ranked the class already", remedy="once per annotator"),
    Bad("repeated_case.json", '{"1": [[["a"]]], "1": [[["b"]]]}', read=read_rankings, says="the key '1' twice", remedy="correct it"),
    Bad("flat.json", '["a", "b"]', read=read_rankings, row="case 0", value="a", says="a list or object of annotators", remedy="read_rankings"),
    # predictions and class maps
    Bad("text_score.csv", "item,class,score\na,x,high\n", read=read_predictions, row="line 2", column="score", value="high", says="a number is expected", remedy="finite number"),
    Bad("twice_predicted.csv", "item,class,score\na,x,1\na,x,2\n", read=read_predictions, row="line 3", column="item", value="a", says="same item and class", remedy="duplicates='first'"),
    Bad("unread_score.csv", "item,label,logit\na,x,1\na,y,2\nb,x,1\nb,y,1\n", read=read_predictions, row="line 3", says="2 items have several classes, and no column says in which order; is 'logit' the score", remedy="pass columns={'score': 'logit'}"),
    Bad("no_scores.csv", "item,predicted,note\na,x,fine\n", read=read_predictions, column="class", says="there is no column 'class'", remedy="pass columns="),
    Bad("wide_repeated.csv", "item,x,y\na,1,0\na,0,1\n", read=read_predictions, row="line 3", column="item", value="a", says="has a row already", remedy="one row per item"),
    Bad("wide_empty.csv", "item,x,y\na,1,\n", read=read_predictions, row="line 2", column="y", says="the score is empty", remedy="give a score"),
    Bad("wide_other.csv", "item,x,y\na,1,0\n", read=read_predictions, classes=["x", "z"], says="not classes=", remedy="after each class"),
    Bad("empty_class.csv", "item,class,score\na,,1\n", read=read_predictions, row="line 2", column="class", says="the class is empty", remedy="missing='drop'"),
    Bad("two_groups.csv", "class,group\nx,1\nx,2\n", read=read_class_map, row="line 3", column="group", value="2", says="into another group", remedy="one group per class"),
    Bad("no_group.csv", "class,group\nx,\n", read=read_class_map, row="line 2", column="group", says="the group is empty", remedy="fill it in"),
    Bad("blank_line.txt", "1\n\n2\n", read=read_class_map, classes=["a", "b"], row="line 2", says="the line is blank", remedy="one name per line"),
    Bad("empty.txt", "\n", read=read_class_map, classes=["a", "b"], says="the file is empty", remedy="one name per line"),
]  # fmt: skip


@pytest.mark.parametrize("bad", FILES, ids=[bad.name for bad in FILES])
def test_a_bad_file_is_refused_with_its_place_and_a_remedy(tmp_path, bad):
    path = tmp_path / bad.name
    path.write_bytes(bad.content if isinstance(bad.content, bytes) else bad.content.encode())
    with pytest.raises(InputError) as caught:
        bad.read(path, **bad.options)
    assert {problem.file for problem in caught.value.problems} == {str(path)}
    check(caught.value, bad)


def check(error, bad):
    matching = [problem for problem in error.problems if re.search(bad.says, str(problem))]
    assert matching, error
    assert any(re.search(bad.remedy, str(problem)) for problem in matching), error
    for name in ("row", "column", "value"):
        expected = getattr(bad, name)
        if expected is not None:
            assert expected in [getattr(problem, name) for problem in matching], (name, error)
            assert (repr(expected) if name == "value" else expected) in str(error)


FRAME = pd.DataFrame({"item": ["a", "b"], "annotator": ["v", "w"], "label": ["x", "y"]})
ROW_1 = "row 1 (counted from 0)"
FRAMES = [
    Bad("none", None, says="a NoneType cannot be read as a table", remedy="pass a path, a data frame"),
    Bad("number", 7, says="an? int cannot be read", remedy="pass a path"),
    Bad("list", [["a", "b", "c"]], says="a list cannot be read", remedy="pass a path"),
    Bad("series", FRAME["item"], says="a Series cannot be read", remedy="pass a path"),
    Bad("bytes", b"item,annotator,label", says="a bytes cannot be read", remedy="pass a path"),
    Bad("empty frame", FRAME[:0], says="no rows", remedy="file you meant"),
    Bad("no columns", pd.DataFrame(), column="item", says="there is no column 'item'; the table has no columns", remedy="pass columns="),
    Bad("empty dict", {}, column="item", says="the table has no columns", remedy="pass columns="),
    Bad("lengths", {"item": ["a"], "annotator": ["w", "v"], "label": ["x"]}, says="different lengths", remedy="equally long"),
    Bad("scalar", {"item": "a", "annotator": ["w"], "label": ["x"]}, column="item", says="a column of values", remedy="pass a list"),
    Bad("matrix", {"item": np.zeros((1, 2)), "annotator": ["w"], "label": ["x"]}, column="item", says="a column of values", remedy="one-dimensional"),
    Bad("same name", pd.DataFrame([[1, 2, 3, 4]], columns=["item", "annotator", "label", "item"]), column="item", says="the same name", remedy="rename"),
    Bad("index", FRAME.set_index("item"), column="item", says="there is no column 'item'", remedy="pass columns="),
    Bad("nan id", FRAME.assign(item=[1.0, np.nan]), row=ROW_1, column="item", says="the item is empty", remedy="fill it in"),
    Bad("none id", FRAME.assign(annotator=["v", None]), row=ROW_1, column="annotator", says="the annotator is empty", remedy="fill it in"),
    Bad("nat id", FRAME.assign(item=pd.to_datetime(["2020-01-01", None])), row=ROW_1, column="item", says="the item is empty", remedy="fill it in"),
    Bad("infinite id", FRAME.assign(item=[1.0, np.inf]), row=ROW_1, column="item", value="inf", says="infinity cannot name", remedy="plain text"),
    Bad("rounded id", FRAME.assign(item=[1.0, 2.0**60]), row=ROW_1, column="item", says="may have lost digits", remedy="plain text"),
    Bad("long id", FRAME.assign(item=[1, 10**6000]), row=ROW_1, column="item", says="no text that could be written", remedy="plain text"),
    Bad("nested label", FRAME.assign(label=[["x"], ["y"]]), row=ROW_1, column="label", value="['y']", says="one value is expected", remedy="plain text"),
    Bad("tuple label", FRAME.assign(label=[("x",), ("y",)]), row=ROW_1, column="label", says="one value is expected", remedy="plain text"),
    Bad("bytes label", FRAME.assign(label=[b"x", b"y"]), row=ROW_1, column="label", says="one value is expected", remedy="plain text"),
    Bad("text weight", FRAME.assign(weight=[1, "much"]), row=ROW_1, column="weight", value="much", says="a finite weight", remedy="finite number"),
    Bad("object weight", FRAME.assign(weight=[1, [2]]), row=ROW_1, column="weight", says="a finite weight", remedy="finite number"),
    Bad("nan weight", FRAME.assign(weight=[1, np.nan]), row=ROW_1, column="weight", says="the weight is empty", remedy="fill it in"),
    Bad("labels twice", FRAME, labels=["x", "y", "x"], value="x", says="labels lists a name 2 times", remedy="once"),
    Bad("no labels", FRAME, labels=[], says="labels is empty", remedy="list at least one"),
    Bad("labels number", FRAME, labels=3, says="labels has to be a list", remedy="pass a list"),
    Bad("labels file", FRAME, labels="labels.txt", says="there is no such file", remedy="check the path"),
]  # fmt: skip


@pytest.mark.parametrize("bad", FRAMES, ids=[bad.name for bad in FRAMES])
def test_a_bad_frame_is_refused_with_its_place_and_a_remedy(bad):
    with pytest.raises(InputError) as caught:
        bad.read(bad.content, **bad.options)
    check(caught.value, bad)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nowhere.csv", "there is no such file"),
        ("", "this is a folder"),
        (".", "this is a folder"),
        ("a\0b.csv", "cannot be opened|no such file"),
        ("x" * 5000 + ".csv", "cannot be opened|no such file"),
        (GOOD, "no such file|cannot be opened"),
    ],
)
def test_a_bad_path_is_refused(path, says):
    with pytest.raises(InputError, match=says):
        read_annotations(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(GOOD)
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be read"):
        read_annotations(path)


def test_every_problem_of_a_file_is_reported_together(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("item,annotator,label,weight,gold\n,w,x,1,\na,,y,-1,x\na,w,,nan,y\nb,w\n")
    with pytest.raises(InputError) as caught:
        read_annotations(path)
    found = {(problem.row, problem.column) for problem in caught.value.problems}
    assert found == {
        ("line 2", "item"),
        ("line 3", "annotator"),
        ("line 3", "weight"),
        ("line 4", "label"),
        ("line 4", "weight"),
        ("line 4", "gold"),
        ("line 5", None),
    }
    assert str(caught.value).startswith("7 problems in the input:")


def test_an_error_in_the_middle_of_a_large_gzip_names_the_line(tmp_path):
    lines = [f"i{n},w,x\n".encode() for n in range(50_000)]
    lines[31_415] = b"i\xff,w,x\n"
    (tmp_path / "large.csv.gz").write_bytes(gzip.compress(HEADER.encode() + b"".join(lines)))
    with pytest.raises(InputError, match="line 31417: byte 2 of the line is not UTF-8"):
        read_annotations(tmp_path / "large.csv.gz")


def test_a_parquet_file_with_a_broken_page_is_refused(tmp_path):
    data = bytearray(parquet(FRAME))
    start = data.find(b"PAR1", 0) + 4
    data[start : start + 40] = struct.pack("40B", *range(40))
    (tmp_path / "broken.parquet").write_bytes(bytes(data))
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_annotations(tmp_path / "broken.parquet")


@pytest.mark.parametrize("name", ["fifo.csv", "device.csv"])
def test_what_may_never_end_is_not_read(tmp_path, name):
    os.mkfifo(tmp_path / "fifo.csv")
    (tmp_path / "device.csv").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="no regular file, and may never end"):
        read_annotations(tmp_path / name)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, ending):
    path, original = tmp_path / f"table.{ending}", files.open_bytes
    path.write_text("item,annotator,label\na,b,c\n" if ending == "csv" else '{"item":"a","annotator":"b","label":"c"}\n')

    def open_and_append(path):
        stream = original(path)
        with path.open("a") as other:
            other.write("\n")
        return stream

    for module in (files, tables):
        monkeypatch.setattr(module, "open_bytes", open_and_append)
    with pytest.raises(InputError, match="the file changed while it was read"):
        read_annotations(path)
    monkeypatch.undo()
    assert read_annotations(path).num_items == 1
