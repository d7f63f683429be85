"""Records as they are compared: values of one form, missing tokens, orders by source, the ledger, names of columns."""

import datetime
import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.data import read_records
from consilience.data.cleaned import LEDGER, clean_records
from consilience.data.cleaning import forms, recipes, text_forms
from consilience.errors import InputError, InputWarning, UnknownName

BORN = ["1951-02-03", "1960-07-21", "1947-11-30"]


def cleaned(*tables, **options):
    """Read and clean tables, and return what was said as well."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", InputWarning)
        named = {f"s{place}": table for place, table in enumerate(tables)}
        found = clean_records(read_records(named), **options)
    return found, [str(one.message) for one in told]


def test_texts_of_one_form_are_one_value_and_others_by_their_type():
    table = {
        "id": list("abcd"), "name": ["Ada", "ÁDA", " ada ", "Max"], "pupils": ["5", "5.0", "05", "many"],
        "born": ["1951-02-03", "03.02.1951", "19510203", "soon"],
    }  # fmt: skip
    records = read_records(table)
    found = clean_records(records, types={"pupils": "number", "born": "date"})
    assert found.records.value.tolist() == [[0, 0, 0, 1]] * 3
    assert found.records.values.tolist() == ["Ada", "Max", "5", "many", "1951-02-03", "soon"]
    assert found.records.first_value.tolist() == [0, 2, 4, 6]
    assert found.records.num_values == 6
    assert found.records.problem() is None
    assert found.forms == {"name": ["ada", "max"], "pupils": ["5", "many"], "born": ["1951-02-03", "soon"]}
    assert found.types == {"name": "category", "pupils": "number", "born": "date"}
    assert found.unread == {"pupils": 0.25, "born": 0.25}
    np.testing.assert_array_equal(records.value[1], np.arange(4))  # what was read is as it was
    as_texts = clean_records(records, types={"pupils": "string", "born": "string"}).records.value
    assert as_texts[1:].tolist() == [[0, 1, 2, 3]] * 2


def test_missing_tokens_and_a_vocabulary_without_them():
    found, told = cleaned({"id": list("abcd"), "name": ["Ann", "n/a", "", "ANN"], "town": ["?", "Ulm", "Bonn", "Ulm"]})
    assert found.records.value.tolist() == [[0, -1, -1, 0], [-1, 0, 1, 0]]
    assert found.records.values.tolist() == ["Ann", "Ulm", "Bonn"]
    assert found.ledger["missing"] == [2, 1]
    assert found.ledger["examples"] == ["n/a → missing (1)", "? → missing (1)"]
    assert not told
    kept, _ = cleaned({"id": list("ab"), "name": ["n/a", "x"]}, missing_values="empty")
    assert kept.records.value.tolist() == [[0, 1]]


def test_none_and_null_are_surnames():
    names = [f"name {place}" for place in range(21)]
    table = {"id": range(46), "name": [*names, *names, "None", "none", "None", "Null"]}
    found, told = cleaned(table)
    assert (found.records.value[0] < 0).sum() == 4
    assert "of 'name' the values 'None' (2), 'none' (1), 'Null' (1) are taken for missing" in told[0]
    assert "missing_values=" in told[0]
    assert not cleaned(table, missing_values=["none", "null"])[1]  # who says so knows
    assert not cleaned({"id": range(3), "name": ["a", "b", "None"]})[1]
    common = {"id": range(45), "name": [*names, *names, *["NA"] * 3]}
    found, told = cleaned(common)  # more common than any name
    assert not told
    assert found.ledger["examples"] == ["NA → missing (3)"]


def test_orders_of_dates_by_source():
    left = {"id": [1, 2, 3], "born": BORN}
    right = {"id": [4, 5, 6], "born": ["03/02/1951", "21/07/1960", "30/11/1947"]}
    american = {"id": [7, 8, 9], "born": ["02/03/1951", "07/21/1960", "11/30/1947"]}
    moments = {"id": [10, 11, 12], "born": pd.to_datetime(BORN)}
    found, told = cleaned(left, right, american, moments)
    assert found.records.value.tolist() == [[0, 1, 2] * 4]
    assert found.records.values.tolist() == BORN
    assert found.ledger["order"] == ["ymd", "dmy", "mdy", "ymd"]
    assert not told


def test_one_text_may_be_two_dates():
    day_first = {"id": [1, 2], "born": ["03/02/1951", "25/02/1951"]}
    month_first = {"id": [3, 4], "born": ["03/02/1951", "02/25/1951"]}
    found, _ = cleaned(day_first, month_first)
    assert found.forms["born"] == ["1951-02-03", "1951-03-02", "1951-02-25"]
    assert found.records.values.tolist() == ["03/02/1951", "1951-03-02", "25/02/1951"]
    assert found.records.value.tolist() == [[0, 2, 1, 2]]


def test_dates_that_nothing_tells_are_named():
    table = {"id": [1, 2, 3], "born": ["03/02/1951", "04/05/1960", "06/07/1970"]}
    found, (told,) = cleaned(table)
    assert "dates of 'born' in s0 may have the day or the month first, and no value tells" in told
    assert "'03/02/1951', '04/05/1960', … are compared as text; say which in fields=" in told
    assert found.ledger["order"] == ["unclear"]
    assert found.forms["born"] == ["03 02 1951", "04 05 1960", "06 07 1970"]
    both = {"id": [1, 2, 3], "born": ["03/02/1951", "25/12/1960", "12/26/1960"]}
    assert "both ways occur" in cleaned(both)[1][0]
    told_so, said = cleaned(table, types={"born": "date:mdy"})
    assert told_so.forms["born"] == ["1951-03-02", "1960-04-05", "1970-06-07"]
    assert not said


@pytest.mark.parametrize(
    "days",
    [
        pd.to_datetime(BORN), np.array(BORN, "datetime64[D]"), np.array(BORN, "datetime64[ns]"),
        [datetime.date.fromisoformat(day) for day in BORN], [pd.Timestamp(day) for day in BORN],
        pd.Series(pd.to_datetime(BORN)).dt.tz_localize("UTC"), pd.Series(BORN).astype("datetime64[ms]"),
        list(np.array(BORN, "datetime64[s]")),
    ],
)  # fmt: skip
def test_days_of_any_kind_are_iso_texts(days):
    records = read_records({"id": [1, 2, 3], "born": days})
    assert [text[:10] for text in records.values] == BORN
    found, _ = cleaned({"id": [1, 2, 3], "born": BORN}, {"id": [4, 5, 6], "born": days})
    assert found.records.value.tolist() == [[0, 1, 2] * 2]


def test_missing_days_and_times_of_day():
    moments = np.array(["1951-02-03T07:15", "NaT", "1951-02-03T07:15:00.5"], "datetime64[ns]")
    records = read_records({"id": [1, 2, 3], "born": moments, "at": [datetime.time(7, 15), None, datetime.time(8)]})
    assert records.column("born").tolist() == ["1951-02-03T07:15:00", None, "1951-02-03T07:15:00.500000000"]
    assert records.column("at").tolist() == ["07:15:00", None, "08:00:00"]


def test_the_ledger():
    found, _ = cleaned(
        {"id": list("abcd"), "name": ["Łukasz", "LUKASZ", "Ann", "-"], "born": [*BORN, ""]},
        {"id": list("ef"), "name": ["ann", "O'Neil"], "born": ["03/02/1951", "30/11/1947"]},
    )
    assert tuple(found.ledger) == LEDGER
    rows = list(zip(*found.ledger.values(), strict=True))
    assert rows == [
        ("name", "s0", "category", "", 3, 2, 1, "Łukasz → lukasz; - → missing (1)"),
        ("name", "s1", "category", "", 2, 2, 0, "O'Neil → oneil"),
        ("born", "s0", "date", "ymd", 3, 3, 1, ""),
        ("born", "s1", "date", "dmy", 2, 2, 0, "03/02/1951 → 1951-02-03; 30/11/1947 → 1947-11-30"),
    ]


def test_columns_compared_in_ones_own_way():
    table = {"id": list("abc"), "name": ["Ann", "ANN", "n/a"], "town": ["Ulm", "ULM", "Bonn"]}
    found, _ = cleaned(table, clean={"name": "exact"})
    assert found.records.value.tolist() == [[0, 1, -1], [0, 0, 1]]
    found, _ = cleaned(table, clean={"town": lambda text: text[0] if text != "Bonn" else None})
    assert found.records.value[1].tolist() == [0, 0, -1]
    assert found.forms["town"] == ["U"]
    with pytest.raises(InputError, match="clean= names the column 'nmae'; did you mean 'name'?"):
        cleaned(table, clean={"nmae": "exact"})
    with pytest.raises(UnknownName, match="clean= of 'name' is 'loose'; give 'exact', or a function"):
        cleaned(table, clean={"name": "loose"})


_TEXTS = st.lists(
    st.sampled_from(["Ann", "ANN ", "n/a", "", "Åsa", "ASA", "03/02/1951", "25/12/1951", "1951-02-03", "5", "05"]),
    min_size=2, max_size=12,
)  # fmt: skip


@given(st.lists(_TEXTS, min_size=1, max_size=3))
def test_two_records_agree_if_and_only_if_their_forms_do(columns):
    tables = [{"id": range(len(column)), "x": column, "y": ["z"] * len(column)} for column in columns]
    found, _ = cleaned(*tables)
    shown = []
    known = [[text for text in dict.fromkeys(map(str.strip, column)) if text not in ("n/a", "")] for column in columns]
    _, each = recipes(known)
    for column, own, recipe in zip(columns, known, each, strict=True):
        form = dict(zip(own, forms(own, recipe)[0], strict=True))
        shown += [form.get(text.strip()) for text in column]
    codes = found.records.value[0]
    assert [None if code < 0 else found.forms["x"][code] for code in codes] == shown
    assert found.records.problem() is None
    assert len(set(found.records.vocabulary("x"))) == len(found.forms["x"])


# ---- names of columns ----


def test_names_that_differ_in_case_and_blanks_are_one():
    left = {"id": [1, 2], "first_name": ["Ann", "Bob"], "Town": ["Ulm", "Bonn"]}
    right = {"ID": [3, 4], "First Name": ["ann", "Cy"], "town": ["Ulm", "Kiel"]}
    with pytest.warns(InputWarning, match="taken for one: 'ID' of right is 'id', 'First Name' of right is") as told:
        records = read_records({"left": left, "right": right})
    assert len(told) == 1
    assert records.fields.tolist() == ["first_name", "Town"]
    assert records.records.tolist() == ["1", "2", "3", "4"]
    with pytest.warns(InputWarning, match="taken for one"):
        assert read_records({"left": left, "right": right}, fields=["FirstName"]).fields.tolist() == ["first_name"]


def test_two_columns_of_one_table_are_two():
    left = {"id": [1, 2], "first": ["Ann", "Bob"], "First": ["x", "y"]}
    right = {"id": [3, 4], "First": ["ann", "Cy"]}
    assert read_records({"left": left, "right": right}).fields.tolist() == ["first", "First"]


def test_columns_of_a_source_by_other_names():
    left = {"id": [1, 2], "last_name": ["Ann", "Bob"]}
    right = {"id": [3, 4], "surname": ["Ann", "Cy"], "born": ["1951", "1960"]}
    read = functools.partial(read_records, {"left": left, "right": right})
    records = read(columns={"right": {"surname": "last_name"}})
    assert records.fields.tolist() == ["last_name", "born"]
    assert records.value[0].tolist() == [0, 1, 0, 2]
    with pytest.raises(InputError, match="columns= names the source 'rigth'; did you mean 'right'?"):
        read(columns={"rigth": {"surname": "last_name"}})
    with pytest.raises(InputError, match="columns= names the column of right 'surnam'; did you mean 'surname'?"):
        read(columns={"right": {"surnam": "last_name"}})
    with pytest.raises(InputError, match="columns= makes 2 columns of right 'born'; choose another name"):
        read(columns={"right": {"surname": "born"}})


def test_forms_are_those_of_the_whole_vocabulary():
    names = [f"Žofie {place}" for place in range(200)]
    found, _ = cleaned({"id": range(200), "name": names})
    assert found.forms["name"] == text_forms(names)
    assert found.records.values.tolist() == names
