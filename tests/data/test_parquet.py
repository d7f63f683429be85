"""Parquet files are read batch by batch; what comes out is what pandas would have given, and stays small."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from consilience.data import read_annotations
from consilience.data.codes import repeated
from consilience.data.columns import Column, all_columns, choose_columns
from consilience.data.tables import read_table
from consilience.errors import InputError

DAY = datetime.date(2020, 2, 29)
NAN = float("nan")


def column(values, kind, rows=40):
    """Repeat values so that some first appear in a late batch; the middle is all empty where they have gaps."""
    short = values[: len(values) // 2 + 1]
    gap = [None] * 8 if None in values else []
    return pa.array((short * rows)[: rows - len(values) - len(gap)] + gap + values, kind)


COLUMNS = {
    "text": column(["b", "", "a ", None, "ü", "late"], pa.string()),
    "large_text": column(["b", None, "a"], pa.large_string()),
    "int8": column([3, 1, 2, -1], pa.int8()),
    "int64": column([2**60 + 1, None, 2], pa.int64()),
    "uint64": column([2**63 + 1, 7, 0], pa.uint64()),
    "float16": column([1.5, 2.0, 0.25], pa.float32()).cast(pa.float16()),
    "float32": column([0.1, None, 3.0], pa.float32()),
    "float64": column([0.1, NAN, 3.0, 0.0, -0.0, None, 1e300], pa.float64()),
    "infinite": column([0.5, np.inf], pa.float64()),
    "bool": column([True, False], pa.bool_()),
    "bool_with_gaps": column([True, None, False], pa.bool_()),
    "date": column([DAY, None], pa.date32()),
    "moment": column([datetime.datetime(2020, 2, 29, 12), datetime.datetime(1970, 1, 1)], pa.timestamp("us")),
    "zoned": column([datetime.datetime(2020, 2, 29, 12)], pa.timestamp("ms", "UTC")),
    "time": column([datetime.time(1, 2), None], pa.time64("us")),
    "decimal": column([decimal.Decimal("1.20"), None, decimal.Decimal("2.00")], pa.decimal128(5, 2)),
    "bytes": column([b"a", None], pa.binary()),
    "nothing": pa.nulls(40),
    "list": column([[1], None, [2, 3]], pa.list_(pa.int64())),
    "struct": column([{"x": 1}, None], pa.struct([("x", pa.int64())])),
    "dictionary": column(["b", None, "a"], pa.string()).dictionary_encode(),
    "unused": pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2] * 10), ["a", "never", "b"]),
    "dictionary_of_ints": column([9, None, 3], pa.int64()).dictionary_encode(),
}


def written(path, table, **options):
    pq.write_table(table, path, row_group_size=7, **options)
    return path


def seen(source):
    """Return all that a reader can see of the column "x" of a source."""
    table = read_table(source, choose_columns((Column("x"),)))
    codes, names = table.texts("x", required=True)
    numbers = table.numbers("x")
    told = [(problem.message, problem.row, problem.column, problem.value) for problem in table.problems.found]
    return codes.tolist(), names, numbers.astype(str).tolist(), table.empty("x").tolist(), told, table.num_rows


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [5, 1000])
def test_reading_in_batches_is_reading_with_pandas(tmp_path, monkeypatch, name, rows):
    monkeypatch.setattr("consilience.data.tables._CHUNK_ROWS", rows)
    path = written(tmp_path / "a.parquet", pa.table({"x": COLUMNS[name]}))
    # The dates of a file have the precision of the file.
    frame = pq.ParquetFile(path).read().to_pandas(integer_object_nulls=True, ignore_metadata=True)
    assert len(frame) == 40
    streamed = seen(path)
    assert streamed == seen(frame)
    assert streamed[-1] == 40


def test_the_comparison_above_sees_texts_numbers_and_problems(tmp_path):
    codes, names, numbers, empty, told, _ = seen(written(tmp_path / "a.parquet", pa.table({"x": COLUMNS["text"]})))
    assert names == ["b", "a", "ü", "late"]
    assert codes[-6:] == [0, -1, 1, -1, 2, 3]
    assert set(numbers) == {"nan"}
    assert sum(empty) == codes.count(-1) > 10
    assert ("the x is empty", "row 37 (counted from 0)", "x", None) in told


def test_only_chosen_columns_are_decoded(tmp_path):
    ids = list(map(str, range(500)))
    table = pa.table({"other": ["q" * 50] * 500, "item": ids, "annotator": ids, "label": ids})
    path = written(tmp_path / "a.parquet", table, compression="none", use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"q" * 50, b"\xff" * 50))
    assert read_annotations(path).num_items == 500
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_table(path, all_columns)


def test_names_with_dots_and_spaces_are_found(tmp_path):
    table = pa.table({" Item ": ["a"], "annotator": ["w"], "label.x": ["wrong"], "label": ["right"], "": [1]})
    annotations = read_annotations(written(tmp_path / "a.parquet", table))
    assert annotations.labels.tolist() == ["right"]


def test_a_file_without_rows_is_refused(tmp_path):
    table = pa.table({name: pa.array([], pa.string()) for name in ("item", "annotator", "label")})
    with pytest.raises(InputError, match="the table has no rows"):
        read_annotations(written(tmp_path / "a.parquet", table))


def test_damage_in_a_later_row_group_is_found(tmp_path):
    table = pa.table({name: [f"{name}{row}" for row in range(70)] for name in ("item", "annotator", "label")})
    path = written(tmp_path / "a.parquet", table, compression="gzip")
    assert read_annotations(path).num_items == 70
    chunk = pq.ParquetFile(path).metadata.row_group(6).column(1)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    data = bytearray(path.read_bytes())
    data[begin : begin + chunk.total_compressed_size] = b"\xa5" * chunk.total_compressed_size
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_annotations(path)


@pytest.mark.parametrize("largest", [3, 2**31 - 1])
def test_repeated_rows_are_those_that_a_loop_finds(largest):
    random = np.random.default_rng(0)
    choice = np.array([-1, 0, 1, largest], np.int32)
    for size in (0, 1, 2, 300):
        for width in (1, 2, 3):
            codes = [choice[random.integers(0, 4, size)] for _ in range(width)]
            rows = list(zip(*codes, strict=True))
            assert repeated(*codes).tolist() == [row in rows[:place] for place, row in enumerate(rows)]
