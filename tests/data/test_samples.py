"""The sample files: those of the script, each read by its contract, copied without replacing anything."""

import importlib.resources

import numpy as np
import pytest

import consilience as cs
from consilience.cli import main
from consilience.errors import UnknownName
from tests.data.sample_files import make


def test_the_files_are_those_of_the_script(tmp_path):
    make(tmp_path)
    shipped = importlib.resources.files("consilience.data") / "examples" / "sample"
    assert sorted(file.name for file in shipped.iterdir()) == sorted(cs.example())
    for name in cs.example():
        assert (shipped / name).read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "number"),
    {
        "labels.csv": 600, "system_a.csv": 150, "clinic.csv": 100, "register.csv": 120, "answers.csv": 600,
        "items.csv": 60,
    }.items(),
)  # fmt: skip
def test_each_is_read_by_its_contract(name, number):
    read = cs.example(name)
    sizes = [len(read)] if name == "items.csv" else [value for value in vars(read).values() if np.ndim(value) == 0]
    assert number in sizes


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(UnknownName, match=r"'label.csv'; did you mean 'labels.csv'. There are labels.csv"):
        cs.example("label.csv")


def test_the_command_copies_them_and_replaces_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["data", "example"]) == 0
    assert sorted(path.name for path in (tmp_path / "consilience-example").iterdir()) == sorted(cs.example())
    assert "labels.csv" in capsys.readouterr().out
    mine = tmp_path / "consilience-example" / "labels.csv"
    mine.write_text("mine")
    assert main(["data", "example"]) == 1
    assert "labels.csv exists" in capsys.readouterr().err
    assert mine.read_text() == "mine"
    assert main(["data", "example", "consilience-example", "--force"]) == 0
    assert mine.read_text() != "mine"
