"""The list for an accelerator, in small sizes on a CPU."""

import argparse
import json

import pytest

from benchmarks import device
from benchmarks.recording import Kept


def test_every_part_has_lines_that_differ():
    for part in device._PARTS:
        for sizes in (device.SMALL, device.Sizes()):
            keys = list(device.lines(part, sizes))
            assert len(keys) == len(set(keys)) > 0


def settings(folder, **given):
    return argparse.Namespace(
        small=True, only=["a", "h"], minutes=45.0, again=False, output=folder, command="device", **given
    )


def test_results_are_there_after_each_line_and_a_later_run_goes_on(tmp_path, monkeypatch):
    measured = []

    def measure(part, key, small):
        if measured:
            assert (tmp_path / "results.md").exists()
        measured.append(part)
        return {"failed": "no end after 240 s"} if part == "h" else {"GB/s": 1.0}

    monkeypatch.setattr(device, "_in_own_process", measure)
    device.run(settings(tmp_path))
    device.run(settings(tmp_path))
    assert measured == ["a", "h"]
    tables = json.loads((tmp_path / "results.json").read_text())["tables"]
    assert tables["h"][0]["failed"] == "no end after 240 s"


def test_no_line_is_begun_when_the_time_is_over(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "_in_own_process", lambda *words: pytest.fail("begun"))
    given = settings(tmp_path)
    given.minutes = -1.0
    device.run(given)
    assert not Kept(tmp_path / "rows.jsonl").rows("a")


def test_a_process_that_fails_or_takes_too_long_is_a_row(monkeypatch):
    assert "KeyError" in device._in_own_process("no such part", (), True)["failed"]
    monkeypatch.setattr(device, "_LIMIT", 0.01)
    assert device._in_own_process("a", (), True) == {"failed": "no end after 0 s"}


@pytest.mark.slow
def test_lines_are_measured():
    assert device._in_own_process("a", (), True)["backend"]
    assert device._in_own_process("j", ("mace",), True)["equal"] == "yes"
    assert device._in_own_process("b", ("mace", "em", 2_000), True)["ms a sweep"] > 0
