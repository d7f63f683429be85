"""Simulated records: in Python by the names of fields and files, and on the command line as CSV files to link."""

import json

import numpy as np
import pytest

import consilience as cs
from consilience.cli import main
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage import simulate


def test_they_are_those_of_the_member():
    asked = {"num_values": (9, 7, 5), "missing": 0.1, "moves": 0.3}
    records = cs.simulate_records(80, num_files=2, moving_fields=["field_2", "field_3"], seed=4, **asked)
    same, _ = simulate(4, num_records=80, num_sources=2, moving_fields=[1, 2], **asked)
    assert records.fingerprint() == same.fingerprint()


def test_entities_have_all_of_their_records():
    records = cs.simulate_records(num_entities=30, size_share=(0.0, 0.0, 1.0))
    assert np.bincount(records.entity).tolist() == [3] * 30


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"moving_fields": ["city"]}, "there is no field 'city' that could move; there are field_1"),
        ({"moves": 1.5}, "moves is 1.5; give a share"),
        ({"num_entities": 0}, "num_entities is 0; give 1 or more"),
    ],
)
def test_records_that_cannot_be_simulated(asked, message):
    with pytest.raises(UnsupportedRequest, match=message):
        cs.simulate_records(**asked)


def test_files_that_can_be_linked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--entities", "40", "--values", "20,30", "--exponent", "0,1", "--sizes", "0,1", "--files", "2"]
    assert main(["simulate", "records", *words, "--no-repeats", "--seed", "3", "-o", "data"]) == 0
    shown = capsys.readouterr().out
    assert "80 records of 40 entities, 2 fields, seed 3" in shown
    assert "consilience link data/file_1.csv data/file_2.csv --entity entity" in shown
    records = cs.read_records(["data/file_1.csv", "data/file_2.csv"], entity="entity")
    assert np.bincount(records.source).tolist() == [40, 40]
    given = {"num_entities": 40, "num_values": (20, 30), "exponent": (0.0, 1.0), "size_share": (0.0, 1.0)}
    expected = cs.simulate_records(repeats=False, num_files=2, seed=3, **given)
    assert records.column("field_2").tolist() == expected.column("field_2").tolist()
    assert len(set(records.entities[records.entity])) == 40


def test_what_is_there_stays(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["simulate", "records", "--records", "9", "-o", "one.csv"]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 9
    assert main([*words, "--seed", "1"]) == 1
    assert "one.csv exists; give another path, or --force" in capsys.readouterr().err
    assert main([*words, "--seed", "1", "--force"]) == 0
    assert main(["simulate", "records", "--files", "2", "-o", "two.csv"]) == 1
    assert main(["simulate", "records", "--missing", "a,b", "-o", "two.csv"]) == 2
    assert "'a,b': write numbers with commas between them" in capsys.readouterr().err
