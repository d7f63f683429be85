"""The benchmark of intervals for the number of entities: its rows by hand, and what is kept when it is interrupted."""

import argparse
import json

import pytest

from benchmarks import __main__ as command
from benchmarks import coverage


def row(seed, true, mean, low, high, kind="five fields", likelihood="hit-miss"):
    return {
        "kind": kind, "likelihood": likelihood, "seed": seed, "true": true, "mean": mean, "sd": 2.0,
        "low": low, "high": high, "rank": 0.5,
        "ESS": 400.0, "R-hat": 1.0, "outside": 0.5, "refused": 0.0 if seed else 1.0, "CPU s": 3.0,
        "EM mean": mean + 10, "EM low": mean + 8, "EM high": mean + 12,
    }  # fmt: skip


def test_a_closed_interval_holds_its_ends():
    rows = [row(0, 100, 98.0, 96.0, 100.0), row(1, 100, 101.0, 100.0, 103.0), row(2, 100, 104.0, 101.0, 107.0)]
    found = coverage.summary("five fields", "hit-miss", rows)
    assert found["sets"] == 3
    assert found["Gibbs: hold"] == pytest.approx(2 / 3)
    assert found["EM: hold"] == 0
    assert found["error"] == "+1.0 ± 1.7"
    assert found["EM: error"] == "+11.0 ± 1.7"
    assert found["model refused"] == pytest.approx(1 / 3)


def test_sets_that_are_done_are_kept(tmp_path, monkeypatch, capsys):
    made = []

    def measure(kind, seed, *, likelihood, records, draws):
        if len(made) == 4:
            raise KeyboardInterrupt
        made.append((likelihood, seed))
        return row(seed, 100, 100.0 + seed, 96.0, 104.0, kind, likelihood)

    monkeypatch.setattr(coverage, "measure", measure)
    words = ["--sets", "3", "--records", "50", "--draws", "10", "--kinds", "six fields", "--output", str(tmp_path)]
    with pytest.raises(KeyboardInterrupt):
        command.main(["coverage", *words])
    made.clear()
    assert command.main(["coverage", *words]) == 0
    assert made == [("error-classes", 1), ("error-classes", 2)]
    assert [json.loads(line)["seed"] for line in (tmp_path / "sets.jsonl").read_text().splitlines()] == [0, 1, 2] * 2
    assert (tmp_path / "results.md").read_text().count("six fields") >= 2
    assert "six fields, error-classes, set 2: 100 in [96, 104]" in capsys.readouterr().out


def test_sets_of_before_are_of_hit_miss(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, "machine", lambda: {"commit": "of before"})
    monkeypatch.setattr(coverage, "measure", None)
    old = row(0, 100, 100.0, 96.0, 104.0, "six fields") | {"records": 50, "draws": 10, "commit": "of before"}
    del old["likelihood"]
    (tmp_path / "sets.jsonl").write_text(json.dumps(old) + "\n")
    arguments = argparse.Namespace(kinds=["six fields"], likelihoods=["hit-miss"], sets=1, records=50, draws=10)
    assert [found["likelihood"] for found in coverage._rows(tmp_path / "sets.jsonl", arguments)] == ["hit-miss"]


def test_a_set_is_simulated_and_linked():
    pytest.importorskip("numba")
    found = coverage.measure("six fields, 5 % missing", 0, records=150, draws=30)
    assert found["low"] <= found["mean"] <= found["high"]
    assert 0 < found["rank"] < 1
    assert abs(found["mean"] - found["true"]) < 10 * found["sd"]
