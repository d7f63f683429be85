"""Large text files are read by Arrow; what comes out is what the other reader gives, or that one is asked."""

import csv
import gzip
import string
import sys
import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from consilience.data import read_annotations, tables
from consilience.data.columns import all_columns
from consilience.data.tables import read_table
from consilience.errors import InputError

HEADER = b"item,annotator,label\n"
PLAIN = HEADER + b"b,w,x\na,w,y\nb,v,x\n c ,v,\n"


def large(block_bytes):
    """Let small files be read as large ones are, so many bytes at a time."""
    return mock.patch.multiple(tables, _LARGE_BYTES=0, _BLOCK_BYTES=block_bytes)


def seen(path):
    """Return all that a table says, or its problems."""
    try:
        table = read_table(path, all_columns)
    except InputError as error:
        return error.problems
    columns = {
        role: (cells.name, cells.codes.dtype, cells.codes.tolist(), cells.values)
        for role, cells in table.columns.items()
    }
    rows = [table.place(row) for row in range(table.num_rows)]
    return list(columns), columns, rows, table.problems.found


def seen_by_arrow(path, block_bytes):
    """Return what is seen of a file that is read as a large one, and whether Arrow read it."""
    found = []

    def read(*given):
        found.append(READ_PLAIN(*given))
        return found[0]

    with large(block_bytes), mock.patch.object(tables, "_read_plain", read):
        return seen(path), found[0] is not None


READ_PLAIN = tables._read_plain

FILES = {
    "plain": (PLAIN, True),
    "lines end in CR LF": (PLAIN.replace(b"\n", b"\r\n"), True),
    "lines end in either": (PLAIN.replace(b"x\n", b"x\r\n"), True),
    "no line break at the end": (PLAIN.rstrip(b"\n"), True),
    "byte order mark": (b"\xef\xbb\xbf" + PLAIN, True),
    "semicolons": (PLAIN.replace(b",", b";"), True),
    "quoted header": (b'"item","annot,ator","label"\n' + PLAIN[len(HEADER) :], True),
    "texts of all kinds": (HEADER + "ünï,NA,null\n\u2028x,\x0b,\x85\n\ta,\ufeff,'\\\n#,nan,01\n".encode(), True),
    "columns without names": (b"item,,\nb,w,x\na,w,y\n", True),
    "white space in a row": (b"item\nb\n \na\n", True),
    "one column": (b"item\nb\na\nb\n", True),
    "quoted cells": (PLAIN + b'"a,b",w,""\n"a","w"," x "\n', True),
    "quoted cells and lines that end in CR LF": (PLAIN.replace(b"\n", b"\r\n") + b'"a,b",w,"x"\r\n', True),
    "quoted cells with semicolons": (PLAIN.replace(b",", b";") + b'"a;b,c";w;"x"', True),
    "quoted cell with nothing in it alone": (b'item\nb\n""\n', True),
    "quoted cell with a line break": (PLAIN + b'"a\nb",w,x\n', False),
    "quoted cell with quotes": (PLAIN + b'"a ""b""",w,x\n', False),
    "quoted cell and more": (PLAIN + b'"a" b,w,x\n', False),
    "quoted cell after a blank": (PLAIN + b'a, "b",x\n', False),
    "quote within a cell": (PLAIN + b'a"b,w,x\n', False),
    "quote that is not closed": (PLAIN + b'"a,w,x\n', False),
    "blank line": (PLAIN + b"\na,w,x\n", False),
    "blank line first": (b"\n" + PLAIN, False),
    "blank line after a byte order mark": (b"\xef\xbb\xbf\n" + PLAIN, False),
    "blank line at the end": (PLAIN + b"\r\n", False),
    "header over two lines": (b'"item\n",annotator,label\n' + PLAIN[len(HEADER) :], False),
    "header that ends as on old machines": (PLAIN.replace(b"\n", b"\r", 1), False),
    "lines that end as on old machines": (PLAIN.replace(b"\n", b"\r"), False),
    "CR within a line": (PLAIN + b"a\rb,w,x\n", False),
    "too few cells": (PLAIN + b"a,w\nb,w,x\n", False),
    "too many cells": (PLAIN + b"a,w,x,y\nb,w,x\n", False),
    "no UTF-8": (PLAIN + b"a,\xff,x\nb,w,x\n", False),
    "no UTF-8 in a column without a name": (b"item,\nb,w\na,\xff\n", False),
    "NUL": (PLAIN + b"a,\0,x\nb,w,x\n", False),
    "byte order mark where a block begins": (HEADER + b"b,wwwwwwwww,x\n\xef\xbb\xbfa,w,x\n", False),
    "no rows": (HEADER, False),
    "no names": (b",,\nb,w,x\n", False),
    "two columns of one name": (b"item,item\nb,w\n", False),
    "NUL in the header": (b"item,ann\0,label\nb,w,x\n", False),
    "header that is not closed": (b'item,"ann\nb,w\n', False),
    "nothing": (b"", False),
}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("name", FILES)
def test_a_large_file_is_read_as_a_small_one(tmp_path, name, ending):
    content, by_arrow = FILES[name]
    path = tmp_path / f"a{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    assert seen_by_arrow(path, 12) == (seen(path), by_arrow)


def test_cells_too_long_for_the_module_csv_are_refused_in_the_same_words(tmp_path):
    before = csv.field_size_limit(40)
    try:
        for number in (30, 33, 34, 35, 36, 37, 41, 50, 90):
            path = tmp_path / "a.csv"
            path.write_bytes(PLAIN + b"a,w,x\n" * 9 + b"a" * number + b",w,x\nb,w,y\n")
            for block_bytes in (5, 30):
                assert seen_by_arrow(path, block_bytes)[0] == seen(path)
            # A whole line may be as long as the longest cell.
            assert seen_by_arrow(path, 1000) == (seen(path), number + len(",w,x\n") <= 40), number
    finally:
        csv.field_size_limit(before)


def test_a_torn_gzip_file_is_refused_in_the_same_words(tmp_path):
    whole = gzip.compress(PLAIN + np.random.default_rng(0).bytes(4000).hex("\n", 2).replace("\n", ",w,x\n").encode())
    path = tmp_path / "a.csv.gz"
    for content in (whole[:-3], whole[: len(whole) // 2], whole[:-8] + bytes(8), whole + b"more"):
        path.write_bytes(content)
        found, by_arrow = seen_by_arrow(path, 100)
        assert found == seen(path)
        assert not by_arrow
        assert found[0].message.startswith("the compressed file is damaged")


def test_without_pyarrow_files_are_read_by_rows(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_bytes(PLAIN)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert seen_by_arrow(tmp_path / "a.csv", 16) == (seen(tmp_path / "a.csv"), False)


def test_a_large_file_does_not_wait_for_pandas(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    (tmp_path / "a.csv").write_bytes(PLAIN)
    assert seen_by_arrow(tmp_path / "a.csv", 16)[1]


CELLS = st.text("ab \t,;é\u2028\ufeff\0\r\n\"'\\", max_size=3) | st.text(string.ascii_letters, max_size=30)
ROWS = st.lists(st.lists(CELLS, min_size=3, max_size=3) | st.lists(CELLS, max_size=4), max_size=8)
QUOTED = st.builds('"{}"'.format, st.text("ab ,é'", max_size=4))
QUOTED_ROWS = st.lists(st.lists(QUOTED | st.sampled_from(["a", "é", ""]), min_size=3, max_size=3), max_size=9)
PLAIN_ROWS = st.lists(st.lists(st.text("ab é\ufeff", min_size=1, max_size=9), min_size=3, max_size=3), max_size=12)


@example([["a", "b", "c"], ["a", "b"]], "", "\n", "", 1)
@given(
    ROWS | QUOTED_ROWS | PLAIN_ROWS, st.sampled_from(["", "\ufeff"]), st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\r\n"]), st.integers(1, 40),
)  # fmt: skip
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_files_are_read_alike(tmp_path, rows, mark, line_break, last, block_bytes):
    path = tmp_path / "a.csv"
    text = line_break.join(map(",".join, [["item", "annotator", "label"], ["a", "w", "x"], *rows]))
    path.write_bytes((mark + text + last).encode("utf-8"))
    assert seen_by_arrow(path, block_bytes)[0] == seen(path)


def test_annotations_and_what_is_said_of_them_are_the_same(tmp_path):
    rows = np.random.default_rng(1).integers(0, 9, (300, 3))
    lines = [f"i{item},w{annotator}, {'x' * (label % 4)}\n" for item, annotator, label in rows]
    (tmp_path / "a.csv").write_bytes(HEADER + "".join(lines).encode())

    def said():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fingerprint = read_annotations(tmp_path / "a.csv", missing="drop").fingerprint()
        with pytest.raises(InputError) as refused:
            read_annotations(tmp_path / "a.csv", duplicates="error")
        return fingerprint, [str(warning.message) for warning in caught], str(refused.value)

    by_rows = said()
    assert len(by_rows[1]) == 2
    with large(100):
        assert said() == by_rows
