import json

import numpy as np
import pytest

import consilience as cs
from benchmarks import annotators_speed


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("annotators_speed")
    truth = annotators_speed.simulate(folder / "annotations.parquet", 4000)
    np.save(folder / "truth.npy", truth)
    return folder, truth


def test_each_item_gets_five_labels_of_different_annotators(simulated):
    folder, truth = simulated
    data = cs.read_annotations(folder / "annotations.parquet", duplicates="error")
    assert data.counts == {"annotations": 4000, "items": 800, "annotators": data.num_annotators, "labels": 5}
    assert np.unique(np.bincount(data.item)).tolist() == [5]
    position = np.array([int(name[1:]) for name in data.items])
    right = data.label == truth[position][data.item]
    # Two thirds of the labels are right on purpose and a fifth of the others by chance.
    assert abs(right.mean() - 11 / 15) < 5 * 0.5 / np.sqrt(4000)


def test_row_groups_hold_parts_of_the_same_annotations(simulated, tmp_path, monkeypatch):
    from pyarrow.parquet import ParquetFile

    monkeypatch.setattr(annotators_speed, "_ROW_GROUP", 100)
    annotators_speed.simulate(tmp_path / "a.parquet", 4000)
    assert ParquetFile(tmp_path / "a.parquet").num_row_groups == 40
    assert cs.read_annotations(tmp_path / "a.parquet", duplicates="error").num_annotations == 4000


@pytest.mark.slow
@pytest.mark.parametrize("member", ["dawid-skene", "mpa"])
def test_what_a_process_of_the_large_part_prints(simulated, capsys, member):
    folder, truth = simulated
    annotators_speed._main("large", member, str(folder))
    found = json.loads(capsys.readouterr().out)
    share = np.bincount(truth).max() / len(truth)
    assert share + 0.2 < found["accuracy"] <= 1
    assert found["decisions"] == 4000 if member == "dawid-skene" else 4000 < found["decisions"] <= 20_000


@pytest.mark.slow
def test_the_race_without_a_peer(simulated):
    folder, truth = simulated
    row = annotators_speed._raced(annotators_speed.RACES[2], truth, None, folder)
    assert row["accuracy"] > 0.8
    assert row["cold, CPU s"] > row["warm, CPU s"] > 0
