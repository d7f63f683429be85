"""Partitions that users bring: reading, matching to the records of a data set, refusals."""

import numpy as np
import pytest

from consilience.data import Partition, read_partition
from consilience.errors import InputError, InputWarning

TABLE = {"record": ["a", "b", "c"], "entity": ["x", "y", "x"]}


def test_a_partition_of_a_file_is_called_by_its_name(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("rec_id,Cluster\na,x\nb,y\nc,x\n")
    partition = read_partition(path)
    assert (partition.entity.tolist(), partition.entity.dtype) == ([0, 1, 0], np.int32)
    assert (partition.records.tolist(), partition.entities.tolist()) == (["a", "b", "c"], ["x", "y"])
    assert (partition.num_records, partition.num_entities, partition.name) == (3, 2, "mine")
    named = read_partition({"who": ["a"], "is": ["x"]}, columns={"record": "who", "entity": "is"}, name="ours")
    assert (named.records.tolist(), named.name) == (["a"], "ours")
    # A column of the very name goes before other names of it.
    assert read_partition(TABLE | {"id": ["d", "e", "f"], "cluster_id": [1, 1, 1]}).records.tolist() == ["a", "b", "c"]


def test_from_codes():
    partition = Partition.from_codes([7, -1, 3, 7], name="mine")
    assert partition.entity.tolist() == [1, -1, 0, 1]
    assert partition.entities.tolist() == ["3", "7"]
    assert partition.records.tolist() == ["0", "1", "2", "3"]
    assert Partition.from_codes([0, 0], records=[5, 6]).records.tolist() == ["5", "6"]


def test_matching_by_id():
    partition = read_partition(TABLE)
    assert partition.align(["c", "b", "a"]).tolist() == [0, 1, 0]
    assert partition.align(["d", "c", "a", "b"], missing="drop").tolist() == [-1, 0, 0, 1]
    with pytest.warns(InputWarning, match="1 records are not in the data and were left out: 'b'"):
        assert partition.align(["c", "a"], unknown="keep").tolist() == [0, 0]


@pytest.mark.parametrize(
    ("records", "match"),
    [
        (["a", "b", "c", "d"], "1 records of the data have no entity: 'd'; pass missing='drop'"),
        (["a", "b"], "1 records are not in the data: 'c'; correct them, or pass unknown='keep'"),
        (["d"], "no record of the data has an entity"),
        (["a", "a"], "lists a name 2 times"),
    ],
)
def test_refused_matches(records, match):
    with pytest.raises(InputError, match=match):
        read_partition(TABLE).align(records)


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (TABLE | {"record": ["a", "b", "a"]}, r"row 2 .*column 'record': an earlier row has the same record.*'a'"),
        (TABLE | {"record": ["a", "", "c"]}, "the record is empty"),
        ({"record": ["a"]}, "there is no column 'entity'"),
        ({"record": [], "entity": []}, "the table has no rows"),
    ],
)
def test_refused_tables(table, match):
    with pytest.raises(InputError, match=match):
        read_partition(table)


@pytest.mark.parametrize(
    ("codes", "records", "match"),
    [
        ([0, 1], ["a"], "there are 2 entries but 1 ids"),
        ([0.5], None, "a one-dimensional integer array is expected"),
        ([-2], None, "codes from -1"),
    ],
)
def test_refused_codes(codes, records, match):
    with pytest.raises(InputError, match=match):
        Partition.from_codes(codes, records=records)
