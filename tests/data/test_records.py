"""Records: one vocabulary per field over all sources, missing values, ids."""

import pytest

from consilience.data import read_records
from consilience.errors import InputError

LEFT = {"id": [1, 2, 3], "name": ["Ann", "Bob", ""], "born": [1990, "NA", 1970], "truth": ["p", "q", "r"]}
RIGHT = {"born": ["1990", ""], "name": ["Cy", "Ann"], "rec_id": ["1", "9"], "truth": ["q", "p"]}


def test_reading(tmp_path):
    path = tmp_path / "left.csv"
    path.write_text("\n".join([",".join(LEFT), *(",".join(map(str, row)) for row in zip(*LEFT.values(), strict=True))]))
    records = read_records([path, RIGHT], entity="truth", missing_values=("NA",))
    assert records.fields.tolist() == ["name", "born"]
    assert records.column("name").tolist() == ["Ann", "Bob", None, "Cy", "Ann"]
    assert records.column("born").tolist() == ["1990", None, "1970", "1990", None]
    assert records.value.tolist() == [[0, 1, -1, 2, 0], [0, -1, 1, 0, -1]]
    assert records.vocabulary("born").tolist() == ["1990", "1970"]
    assert records.source.tolist() == [0, 0, 0, 1, 1]
    assert records.entities[records.entity].tolist() == ["p", "q", "r", "q", "p"]
    assert records.records.tolist() == ["0:1", "2", "3", "1:1", "9"]
    assert (records.num_records, records.num_fields, records.num_sources, records.num_values) == (5, 2, 2, 5)


def test_names_of_sources(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("id,x\n1,u\n")
    assert read_records([tmp_path / "a.csv", tmp_path / "b.csv"]).records.tolist() == ["a:1", "b:1"]
    named = read_records({"left": tmp_path / "a.csv", "right": tmp_path / "b.csv"})
    assert named.sources.tolist() == ["left", "right"]
    assert named.fingerprint() != read_records([tmp_path / "a.csv", tmp_path / "b.csv"]).fingerprint()


def test_fields_choose_and_order():
    records = read_records(LEFT, fields=["born", "name"])
    assert records.fields.tolist() == ["born", "name"]
    assert records.entity is None


@pytest.mark.parametrize(
    ("sources", "options", "match"),
    [
        (LEFT | {"id": [1, 1, 3]}, {}, r"row 1 .*column 'id': an earlier record of this source has the same id.*'1'"),
        (LEFT | {"id": [1, "", 3]}, {}, "row 1 .*the id is empty"),
        ({"name": ["x"]}, {}, "there is no column 'id'.*say which column"),
        (LEFT, {"id": "person"}, "there is no column 'person'"),
        (LEFT, {"fields": ["nam"]}, "column 'nam': no source has this column"),
        (LEFT, {"entity": "ent"}, "column 'ent': no source has this column"),
        (LEFT, {"fields": []}, "at least one field"),
        ([], {}, "there is no source"),
        ({"id": [1]}, {}, "at least one field"),
        ({"id": [[1]], "x": [2]}, {}, "one value is expected"),
    ],
)
def test_refusals(sources, options, match):
    with pytest.raises(InputError, match=match):
        read_records(sources, **options)


def test_an_unknown_field_lists_the_known_ones():
    with pytest.raises(InputError, match="the records have name, born, truth"):
        read_records(LEFT).column("age")
