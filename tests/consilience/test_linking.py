"""`link` and columns as people bring them: types, notes, known entities, files with other names, rows without ids."""

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.errors import ConsilienceWarning, InputError, InputWarning, UnsupportedRequest
from consilience.models.block_linkage import simulate


def linked(*given, **options):
    """Link, and return the fit with what was said."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ConsilienceWarning)
        fit = cs.link(*given, draws=10, **options)
    return fit, [str(one.message) for one in told]


def table_of(number=300, seed=1, **more):
    records = simulate(seed, num_records=number, num_values=(60, 80, 12), size_share=(0.7, 0.3))[0]
    columns = {field: records.column(field).tolist() for field in records.fields}
    return {"id": [f"p{row}" for row in range(number)], **columns, **more}


def test_a_type_that_does_not_fit_is_told():
    _, told = linked(table_of(), fields={"field_1": "number", "field_2": "string"})
    assert any("of the values of 'field_1', 100% cannot be read as a number" in one for one in told)
    assert not any("'field_2'" in one for one in told)


def test_a_note_is_left_out_and_compared_where_it_is_asked_for():
    generator = np.random.default_rng(0)
    note = [*(f"n{row}" for row in range(290)), *(f"n{row}" for row in generator.integers(290, size=10))]
    table = table_of(note=generator.permutation(note).tolist())
    fit, _ = linked(table)
    assert "note" not in fit.data.fields
    assert "note: different in nearly every record" in fit.attributes["left_out"]
    fit, told = linked(table, fields=["field_1", "field_2", "field_3", "note"])
    assert "note" in fit.data.fields
    assert any("linked records almost never agree in note" in one for one in told)


def test_columns_that_are_called_as_the_answer_is():
    table = table_of(ent_id=[str(row // 2) for row in range(300)])
    _, told = linked(table)
    assert any("'ent_id' is compared as a field, but called as known entities are" in one for one in told)
    for options in ({"entity": "ent_id"}, {"fields": ["field_1", "field_2", "field_3"]}):
        assert not any("'ent_id' is compared" in one for one in linked(table, **options)[1])


def test_files_that_have_nothing_in_common():
    one = {"id": ["a", "b"], "name": ["ada", "max"], "born": ["1950", "1951"]}
    other = {"id": ["c", "d"], "surname": ["ada", "max"], "birth": ["1950", "1951"]}
    with pytest.raises(InputError, match="in another file: here has name, born; there has surname, birth"):
        linked({"here": one, "there": other})
    with pytest.raises(InputError, match="rename columns"):
        linked({"here": one, "there": {**other, "name": ["", ""]}})
    _, told = linked({"here": one, "there": {**other, "name": ["ada", "max"]}})
    assert any("only one file has born, surname, birth, which cannot link it with others" in said for said in told)
    # Within a file, each may have its own columns.
    fit, _ = linked({"here": one, "there": other}, fields=["name", "surname"], restriction="within")
    assert fit.data.num_sources == 2


def test_one_file_has_nothing_across():
    with pytest.raises(UnsupportedRequest, match="restriction='across' links records of different files"):
        linked(table_of(), restriction="across")


def test_rows_are_numbered_where_no_column_names_them():
    table = table_of()
    del table["id"]
    with pytest.raises(InputError, match="or number the rows with id='row'"):
        linked(table)
    fit, _ = linked(table, id="row")
    assert fit.data.records[:3].tolist() == ["1", "2", "3"]
    assert fit.attributes["id"] == "row"
    both = cs.read_records({"x": table, "y": table}, id="row")
    assert both.records[[0, 300]].tolist() == ["x:1", "y:1"]
    named = cs.read_records(table | {"row": [f"r{row}" for row in range(300)]}, id="row")
    assert named.records[0] == "r0"
    assert linked(table_of())[0].attributes["id"] == "id"


def test_fields_beyond_those_of_the_join_are_named():
    more = {f"extra_{number}": [str(row % 7) for row in range(number, 300 + number)] for number in range(6)}
    fit, _ = linked(table_of(**more))
    said = [note.text for note in fit.findings()]
    (note,) = [text for text in said if "candidates were found by the fields that tell most" in text]
    assert note.count("extra_") + note.count("field_") == 7
    assert not any("candidates were found by" in note.text for note in linked(table_of())[0].findings())


def test_pairs_with_other_headings():
    with pytest.raises(InputError, match="no column 'record_b'; there are 'record_a', 'right'; rename the two"):
        linked(table_of(), pairs={"record_a": ["p1"], "right": ["p2"]})


def test_where_a_warning_points():
    with pytest.warns(InputWarning, match="'kind' has no other value") as told:
        cs.read_records(table_of(kind=["x"] * 300))
    assert told[0].filename == __file__
