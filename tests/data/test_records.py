"""Records: one vocabulary per field over all sources, missing values, ids; what is refused; files written and read."""

import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.data import read_records, write_records
from consilience.errors import InputError, InputWarning, OutputRefused, UnsupportedRequest
from consilience.models.block_linkage.simulation import simulate

LEFT = {"id": [1, 2, 3], "name": ["Ann", "Bob", ""], "born": [1990, "NA", 1970], "truth": ["p", "q", "r"]}
LEFT_FRAME = pd.DataFrame({"id": [1, 2], "x": ["a", "b"]})
RIGHT_FRAME = pd.DataFrame({"id": [1, 9], "x": ["a", "c"]})
KEYED = {"key": ["a", "b"], "name": ["x", "y"], "entity": ["1", "1"]}
RIGHT = {"born": ["1990", ""], "name": ["Cy", "Ann"], "rec_id": ["1", "9"], "truth": ["q", "p"]}


def test_fields_of_several_sources_share_a_vocabulary(tmp_path):
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
        (tmp_path / f"{name}.csv").write_text(f"id,x\n1,{name}\n")
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
        (LEFT, {"fields": ["nam"]}, "column 'nam': no source has this column; there are 'id', 'name', 'born'"),
        (LEFT, {"entity": "ent"}, "column 'ent': no source has this column"),
        (LEFT, {"entity": "truth", "fields": ["name", "truth"]}, "column 'truth': the known entity would tell"),
        (LEFT, {"fields": []}, "at least one field"),
        (LEFT, {"fields": ["name", "name"]}, "at least one field is expected, each once"),
        ({"id": [], "x": []}, {}, "the table has no rows; check that this is the file you meant"),
        ([LEFT, {"id": [], "x": []}], {}, "the table has no rows"),
        (
            {"id": [1, 2], "x": ["", None], "y": ["NA", "NA"]},
            {"missing_values": ("NA",)},
            "every value of x, y is missing",
        ),
        ({"id": [1, 2], "x": [0.5, float("inf")]}, {}, r"row 1 .*column 'x': infinity cannot name anything.*'inf'"),
        ([], {}, "there is no source"),
        ({"id": [1]}, {}, "at least one field"),
        ({"id": [[1]], "x": [2]}, {}, "one value is expected"),
        (KEYED, {"id": "key", "fields": ["nmae"]}, r"'nmae': no source has this column; .*; did you mean 'name'\?"),
        (KEYED, {"id": "key", "entity": "enttiy"}, r"'enttiy': .*; did you mean 'entity'\?"),
        (KEYED, {"id": "kye"}, r"'kye': there is no column 'kye'; .*; did you mean 'key'\?"),
        (KEYED, {"id": "zzz"}, r"'zzz': .*; say which column names the records"),
    ],
)
def test_sources_that_are_no_records_are_refused(sources, options, match):
    with pytest.raises(InputError, match=match):
        read_records(sources, **options)


def test_an_unknown_field_lists_the_known_ones():
    with pytest.raises(InputError, match="the records have name, born, truth"):
        read_records(LEFT).column("age")


def test_problems_of_all_sources_are_told_together(tmp_path):
    (tmp_path / "a.csv").write_text("id,x\n1,u\n1,v\n")
    (tmp_path / "b.csv").write_text("id,x\n1,u\n2\n")
    with pytest.raises(InputError) as raised:
        read_records([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert [(os.path.basename(problem.file), problem.row) for problem in raised.value.problems] == [
        ("a.csv", "line 3"),
        ("b.csv", "line 3"),
    ]


def test_fields_that_carry_nothing():
    table = {"id": [1, 2, 3], "name": ["a", "b", "a"], "country": ["x", "", "x"], "phone": ["", "NA", ""]}
    with pytest.warns(InputWarning) as told:
        records = read_records(table, missing_values=("NA",))
    assert [str(one.message) for one in told] == [
        "the field 'country' has no other value than 'x': it carries nothing, and may be left out of fields=",
        "the field 'phone' is empty in every record: it carries nothing, and may be left out of fields=",
    ]
    assert told[0].filename == __file__
    assert records.fields.tolist() == ["name", "country", "phone"]
    assert records.value.tolist() == [[0, 1, 0], [0, -1, 0], [-1, -1, -1]]
    assert (records.first_value.tolist(), records.num_values) == ([0, 2, 3, 3], 3)


def test_one_record():
    records = read_records({"id": ["a"], "name": ["Ann"], "born": [""]})
    assert (records.num_records, records.value.tolist()) == (1, [[0], [-1]])


def test_a_source_without_the_entity():
    records = read_records([LEFT, RIGHT | {"truth": [None, None]}], entity="truth", missing_values=("NA",))
    assert records.entity.tolist() == [0, 1, 2, -1, -1]


# Writing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_sources", [1, 3])
def test_written_and_read_again(tmp_path, num_sources):
    records, _ = simulate(0, num_records=200, num_sources=num_sources, missing=0.2, typos=True)
    paths = write_records(records, tmp_path / "folder")
    assert list(paths) == records.sources.tolist()
    assert read_records(paths, entity="entity").fingerprint() == records.fingerprint()
    assert sorted(os.listdir(tmp_path / "folder")) == [f"{name}.csv" for name in records.sources]
    header = paths["file_1"].read_text().splitlines()[0]
    assert header == "id,field_1,field_2,field_3,field_4,field_5,entity"


LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
TEXTS = st.lists(st.none() | st.text(LETTERS, min_size=1, max_size=5), min_size=2, max_size=5)


@pytest.mark.filterwarnings("ignore::consilience.errors.InputWarning")
@settings(max_examples=50, deadline=None)
@given(TEXTS)
def test_any_text_comes_back(tmp_path_factory, texts):
    table = {"id": range(len(texts)), "x": texts, "y": [f"{place}," for place in range(len(texts))]}
    records = read_records(table)
    again = read_records(write_records(records, tmp_path_factory.mktemp("written") / "records.csv"))
    assert again.column("x").tolist() == records.column("x").tolist()
    assert again.entity is None


def test_an_earlier_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "records.csv"
    records = read_records(LEFT, entity="truth", missing_values=("NA",))
    assert write_records(records, path) == {"0": path}
    first = path.read_bytes()
    assert first.decode().splitlines() == ["id,name,born,entity", "1,Ann,1990,p", "2,Bob,,q", "3,,1970,r"]
    with pytest.raises(OutputRefused, match="records.csv exists; .*force=True"):
        write_records(records.replace(entity=None), path)
    assert path.read_bytes() == first
    write_records(records.replace(entity=None), path, force=True)
    second = path.read_bytes()
    assert second.decode().splitlines()[:2] == ["id,name,born", "1,Ann,1990"]

    def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_records(records, path, force=True)
    assert path.read_bytes() == second
    assert os.listdir(tmp_path) == ["records.csv"]


def test_ids_of_several_sources_come_back(tmp_path):
    records = read_records({"left": LEFT_FRAME, "right": RIGHT_FRAME})
    again = read_records(write_records(records, tmp_path))
    assert again.records.tolist() == records.records.tolist() == ["left:1", "2", "right:1", "9"]


@pytest.mark.parametrize(
    ("sources", "options", "path", "match"),
    [
        ([LEFT, RIGHT], {}, "one.csv", "there are 2 sources; give a folder"),
        ({"key": [1, 2], "ID": ["a", "b"]}, {"id": "key"}, "one.csv", "a field is called 'ID'"),
        (
            {"id": [1, 2], "Entity": ["a", "b"], "t": ["c", "d"]},
            {"entity": "t"},
            "one.csv",
            "a field is called 'Entity'",
        ),
    ],
)
def test_what_cannot_be_written(tmp_path, sources, options, path, match):
    records = read_records(sources, missing_values=("NA",), **options)
    with pytest.raises(UnsupportedRequest, match=match):
        write_records(records, tmp_path / path)
    assert not os.listdir(tmp_path)


def test_sources_and_copies_that_cannot_be_written(tmp_path):
    import jax

    records = read_records(LEFT, missing_values=("NA",))
    with pytest.raises(UnsupportedRequest, match="'a/b' cannot name a file"):
        write_records(records.replace(sources=np.array(["a/b"], object)), tmp_path)
    with pytest.raises(UnsupportedRequest, match="went through JAX"):
        write_records(jax.tree.map(lambda leaf: leaf, records), tmp_path)


def test_ids_of_a_frame_that_all_differ_are_encoded_as_others():
    ids = [f"r{number}" for number in range(2_000)]
    frame = pd.DataFrame({"id": ids, "name": ["a", "b"] * 1_000}, dtype="str", index=np.arange(2_000)[::-1] / 2)
    assert read_records(frame).records.tolist() == ids
    frame["id"] = [*ids[:-1], "r0"]
    with pytest.raises(InputError, match="has the same id"):
        read_records(frame)
    frame["id"] = [*ids[:-1], None]
    with pytest.raises(InputError, match="the id is empty"):
        read_records(frame)


def test_ids_that_differ_in_type_between_sources():
    """Ids are texts: 1 and "1" are one id, which two sources have."""
    records = read_records({"a": {"id": [1, 2], "x": ["p", "q"]}, "b": {"id": ["1", "3"], "x": ["p", "q"]}})
    assert records.records.tolist() == ["a:1", "2", "b:1", "3"]


def test_pairs_of_ids_that_several_sources_have():
    records = read_records([{"id": ["1", "2"], "name": ["a", "b"]}, {"id": ["1", "3"], "name": ["a", "c"]}])
    with pytest.raises(InputError, match="there is no such record .value '1'.; sources share ids: write '0:1', as the"):
        records.with_candidates({"record_a": ["1"], "record_b": ["3"]})
    assert records.with_candidates({"record_a": ["0:1"], "record_b": ["1:1"]}).candidate.tolist() == [[0, 2]]
