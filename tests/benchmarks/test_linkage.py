import importlib
import json
import sys

import numpy as np
import pandas
import pytest

import consilience as cs
from benchmarks import linkage, linkage_peers, linkage_process
from benchmarks.recording import Recording


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    path = tmp_path_factory.mktemp("linkage") / "simulated.csv"
    linkage.write_simulated(path, 1500, linkage.SIMULATED)
    return path


def test_simulated_records_have_the_shares_of_sizes_that_are_stated(simulated):
    records = cs.read_records(simulated, entity="entity")
    assert (records.num_records, records.num_fields) == (1500, 6)
    sizes = np.bincount(np.bincount(records.entity), minlength=4)[1:]
    share, number = np.array(linkage.SIMULATED["size_share"]), sizes.sum()
    assert len(sizes) == 3
    assert (np.abs(sizes - number * share) < 5 * np.sqrt(number * share)).all()


def test_blocking_keys_are_the_smallest_sets_that_split_the_records_enough():
    random = np.random.default_rng(0)
    frame = pandas.DataFrame({f"field_{size}": random.integers(0, size, 2000) for size in (2, 40, 60, 9999)})
    keys = linkage_peers.blocking_keys(frame, list(frame.columns))
    # 2000 records make 2 million pairs; only one in 1000 of them may be equal.
    assert keys == [["field_9999"], ["field_40", "field_60"]]
    assert linkage_peers._training_keys(keys, list(frame.columns)) == keys


def test_training_blocks_leave_every_field_free_once():
    keys = [["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"]]
    chosen = linkage_peers._training_keys(keys, ["a", "b", "c", "d"])
    assert not set.intersection(*map(set, chosen))
    assert len(chosen) < len(keys)


def test_a_peer_that_fails_has_no_figures(simulated, capfd):
    data = linkage._DataSet("simulated", simulated)
    row = linkage._theirs(data, sys.executable)
    assert row == {"data": "simulated", "failed": "exit status 1"}
    assert "splink" in capfd.readouterr().err


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_what_a_process_measures(simulated):
    row = linkage_process._measure(str(simulated), "hit-miss")
    records = cs.read_records(simulated, entity="entity")
    scores = cs.score_partition(cs.fit("block-linkage", records.of_fields(list(records.fields))), records)
    assert row["f1"] == scores.values["pairwise-f1"]
    assert row["true"] == scores.true_entities
    assert row["low"] <= row["mean"] <= row["high"]
    assert sum(line["pairs"] for line in row["calibration"]) == row["candidates"]
    assert row["process, CPU s"] > row["CPU s"] > row["fit, CPU s"] > 0


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_what_large_files_take(tmp_path):
    linkage.write_parquet(tmp_path / "records.parquet", 1500)
    row = linkage_process._large(str(tmp_path / "records.parquet"), str(tmp_path / "linked"), "local")
    assert {path.name for path in (tmp_path / "linked").iterdir()} == {
        "entities.csv", "pairs.csv", "fit", "report.html"
    }
    stages = ("read", "fit", "tables", "save", "page")
    assert row["CPU s"] >= sum(row[f"{stage}, CPU s"] for stage in stages) > row["fit, CPU s"] > 0
    assert 0.9 < row["F1"] <= 1
    assert row["records"] == 1500
    assert row["page, kB"] > 10


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_the_quick_join_of_records_with_missing_values_finds_fewer_pairs(tmp_path, monkeypatch):
    for module, name in (("em", "join"), ("hidden_links", "join_rule")):
        own = importlib.import_module(f"consilience.models.block_linkage.{module}")
        monkeypatch.setattr(own, name, getattr(own, name))  # what is replaced comes back
    linkage.write_parquet(tmp_path / "records.parquet", 1500, 0.1)
    exact, quick = (linkage_process._missing(str(tmp_path / "records.parquet"), one) for one in ("1", "0"))
    assert quick["candidates"] < exact["candidates"]
    assert quick["found share"] < exact["found share"] <= 1


@pytest.mark.parametrize(("f1", "seconds", "verdicts"), [(0.97, 3.0, "met"), (0.94, 7.0, "missed")])
def test_goals_say_what_was_met(tmp_path, capsys, f1, seconds, verdicts):
    name = "simulated 1,000,000"
    ours = [{"data": name, "f1": f1, "wall s": seconds, "CPU s": seconds, "peak, MB": 800.0 + 50 * seconds}]
    theirs = [{"data": name, "failed": "", "wall s": 20.0, "CPU s": 20.0}]
    theirs[0] |= {f"F1 at {threshold}": 0.95 for threshold in linkage.THRESHOLDS}
    record = Recording("linkage", "Linkage", "…", tmp_path)
    linkage._goals(record, ours, theirs)
    rows = record._content["tables"]["goals"]
    assert len(rows) == 5
    assert {row[""] for row in rows} == {verdicts}
    capsys.readouterr()


@pytest.mark.parametrize("support", ["dense", "anchored"])
def test_a_small_concentration_freezes_the_ascent(simulated, support):
    frame = pandas.read_csv(simulated, dtype=str)
    # Records that differ in nothing are the only ones that it links.
    frame = frame[~frame[frame.columns[1:-1]].duplicated()][:150]
    found = linkage._ascent(cs.read_records(frame, entity="entity"), support, "records", 0.01, 0)
    assert (found["frozen"], found["diffuse"], found["occupied"]) == (1, 0, 150)


def test_tables_need_the_records(tmp_path):
    with pytest.raises(cs.errors.DataUnavailable, match="--rldata"):
        linkage.TABLES["a-window"](Recording("linkage", "Linkage", "…", tmp_path), None)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("dirichlet-entity", {"support": "anchored", "start": "records", "concentration": 0.25}),
        ("block-linkage", {"method": "em", "similar": {"field_1": "string"}}),
        ("hit-miss", {"prior": "entities", "draws": 30, "warmup": 20, "chains": 2}),
    ],
)
def test_any_model_of_records_is_measured(simulated, model, options):
    row = linkage_process._method(str(simulated), model, json.dumps(options))
    assert 0.8 < row["F1"] <= 1
    assert (row["2.5 %"] <= row["mean"] <= row["97.5 %"]) == (model != "dirichlet-entity")
    assert np.isfinite(row["log evidence"]) == (model == "block-linkage")
    assert (row["ESS"] > 0) == (model == "hit-miss")
