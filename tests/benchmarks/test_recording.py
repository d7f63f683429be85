import json
import math
import subprocess

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import recording
from benchmarks.recording import Recording, machine, markdown_table


def test_markdown_table_formats_and_aligns():
    rows = [{"name": "a", "share": 0.12345, "cases": 1234}, {"name": "b", "share": None, "cases": 5}]
    assert markdown_table(rows).splitlines() == [
        "| name | share | cases |",
        "| --- | ---: | ---: |",
        "| a | 0.123 | 1,234 |",
        "| b | – | 5 |",
    ]


def test_machine_says_where_and_with_what():
    found = machine()
    assert found["cores"] >= 1
    assert all(found[name] for name in ("date", "processor", "python", "jax", "numpyro", "commit"))


def test_results_do_not_make_the_commit_that_made_them_dirty(tmp_path, monkeypatch):
    results = tmp_path / "benchmarks/results"
    results.mkdir(parents=True)
    (results / "sets.jsonl").write_text("first\n")
    (tmp_path / "code.py").write_text("one = 1\n")
    committing = ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "all"]
    for words in (["init", "-q"], ["add", "-A"], committing):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(recording, "RESULTS", results)
    commit = machine()["commit"]
    assert commit != "unknown"
    assert not commit.endswith("dirty")
    (results / "sets.jsonl").write_text("first\nsecond\n")
    assert machine()["commit"] == commit
    (tmp_path / "code.py").write_text("one = 2\n")
    assert machine()["commit"] == f"{commit}-dirty"


def test_recording_writes_text_numbers_and_figures(tmp_path):
    from consilience import figures
    from consilience.evaluation.scores import Score

    record = Recording("name", "Title", "command --here", tmp_path / "new")
    record.section("Part")
    record.table("rows", [{"value": np.float64(0.123456), "none": math.nan, "count": np.int64(3)}])
    record.data("hidden", [{"value": np.inf}])
    score = Score(title="certainty", items=np.array([0.2, 0.9]), draws=np.empty(0), exact_sd=0.0)
    record.figure("curve", figures.sorted_certainty(score).figure, "A curve")
    record.write()
    text = (tmp_path / "new/results.md").read_text(encoding="utf-8")
    places = [text.index(part) for part in ("# Title", "Measured: date", "## Part", "| 0.123 | – | 3 |")]
    assert places == sorted(places)
    assert "![A curve](curve.svg)" in text
    assert "hidden" not in text
    content = json.loads((tmp_path / "new/results.json").read_text(encoding="utf-8"))
    assert content["tables"]["rows"] == [{"value": 0.123456, "none": None, "count": 3}]
    assert content["tables"]["hidden"] == [{"value": None}]
    assert content["machine"]["python"] == machine()["python"]
    first = (tmp_path / "new/curve.svg").read_bytes()
    record.write()
    assert (tmp_path / "new/curve.svg").read_bytes() == first


def test_command_lists_benchmarks_and_refuses_others(capsys):
    with pytest.raises(SystemExit, match="0"):
        command.main(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in command.BENCHMARKS)
    with pytest.raises(SystemExit, match="2"):
        command.main(["nothing"])
    assert "nothing" in capsys.readouterr().err


@pytest.mark.parametrize("name", command.BENCHMARKS)
def test_every_benchmark_has_options(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        command.main([name, "--help"])
    assert f"python -m benchmarks {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("linkage", [], ""),
        ("linkage", ["--large", "--splink", "/bin/python", "--simulated", "10", "20"],
         "--splink PYTHON --simulated 10 20 --large"),
        ("mpa", ["--no-coverage", "--profiles", "/me/x.csv", "--output", "there"], "--profiles FILE --no-coverage"),
        ("coverage", ["--sets", "100", "--kinds", "a quarter moves"], "--kinds 'a quarter moves'"),
        ("views", ["--sweeps", "--protocols", "own"], "--protocols own --sweeps"),
        ("dermatology", ["--predictions", "a.txt", "b.txt"], "--predictions FILE"),
    ],
)  # fmt: skip
def test_the_command_is_recorded_without_defaults_and_places(monkeypatch, name, options, expected):
    seen = []
    monkeypatch.setattr(f"benchmarks.{name}.run", seen.append)
    assert command.main([name, *options]) == 0
    assert seen[0].command == f"python -m benchmarks {name} {expected}".strip()


def test_unknown_model_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(["dermatology", "--model", "nothing"])
    assert "prirn" in capsys.readouterr().err
