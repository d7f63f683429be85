"""What the commands write: nothing that they did not make is replaced, and nothing is begun that cannot be written."""

import argparse
import csv
import io
import os
import signal
import stat
import sys
import time

import pytest

import consilience as cs
from consilience.cli import main
from consilience.commands import grammar

LABELS = "item,annotator,label\n" + "\n".join(f"i{i},a{a},{(i * a) % 3}" for i in range(6) for a in range(3))
KEY = "record,entity\n1,a\n2,a\n3,b\n"
CONLL = "#begin document d\nd\t0\t(0)\nd\t1\t(0)\n#end document\n"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "labels.csv").write_text(LABELS)
    cs.fit("dawid-skene", cs.read_annotations(folder / "labels.csv"), draws=20).save(folder / "run")
    return folder


@pytest.fixture
def here(fitted, tmp_path, monkeypatch):
    """Go to a folder with files of each kind, a fit, and one of everything that may be at a path."""
    import shutil

    shutil.copytree(fitted / "run", tmp_path / "run")
    (tmp_path / "labels.csv").write_text(LABELS)
    (tmp_path / "system.csv").write_text("item,label\n" + "".join(f"i{i},0\n" for i in range(6)))
    (tmp_path / "groups.csv").write_text("class,group\n0,x\n1,y\n2,y\n")
    for name in ("key.csv", "response.csv"):
        (tmp_path / name).write_text(KEY)
    for name in ("key.conll", "other.conll"):
        (tmp_path / name).write_text(CONLL)
    (tmp_path / "foreign").write_text("work")
    (tmp_path / "link").symlink_to("foreign")
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# The command with its output last; its inputs.
COMMANDS = {
    "table run --csv": ["run/fit.json"],
    "certainty run --class-groups groups.csv --csv": ["run/fit.json", "groups.csv"],
    "next run --csv": ["run/fit.json"],
    "evaluate run --predictions system.csv --csv": ["run/fit.json", "system.csv"],
    "agreement labels.csv --csv": ["labels.csv"],
    "agreement labels.csv -o": ["labels.csv"],
    "agreement run --csv": ["run/fit.json"],
    "report run --predictions system.csv -o": ["run/fit.json", "system.csv"],
    "score key.csv response.csv --csv": ["key.csv", "response.csv"],
    "score key.conll other.conll --csv": ["key.conll", "other.conll"],
    "compare run system.csv --csv": ["run/fit.json", "system.csv"],
}
# Those whose work takes other fits; that they write is tested where these are.
OTHERS = {
    "chains run --csv": ["run/fit.json"],
    "chains run --to conll --template key.conll -o": ["run/fit.json", "key.conll"],
    "predict run system.csv --csv": ["run/fit.json", "system.csv"],
    "conformal run system.csv --csv": ["run/fit.json", "system.csv"],
    "verdicts labels.csv --csv": ["labels.csv"],
    "review run --labels key.csv -o": ["run/fit.json", "key.csv"],
    "link-new run key.csv -o": ["run/fit.json", "key.csv"],
    "simulate mentions key.conll --scenario synthetic-uniform -o": ["key.conll"],
}
OF_FOLDERS = {"fit", "update", "code", "link", "simulate", "data"}
PLACES = {
    "foreign": "foreign exists; give another path, or --force to replace it",
    "link": "link is not a regular file; give another path, or - for standard output",
    "fifo": "fifo is not a regular file",
    "run": "run is not a regular file",
    "": ". is not a regular file",
    "/dev/null": "/dev/null is not a regular file",
    "no/new": "no/new cannot be written, because no is not a folder; make it first",
}


# What commands begin with.
WORK = (
    "consilience.inference.loading.load_fit", "consilience.data.accept.choose_contract",
    "consilience.data.conll.read_conll",
)  # fmt: skip


def no_work(*words, **more):
    raise AssertionError("the work began")


def test_every_command_that_writes_is_looked_at():
    writing = {
        name for name, (build, *_) in grammar.COMMANDS.items()
        if {"csv", "output", "into"} & {one.dest for one in _flags_of(build)} or name in ("simulate", "data")
    }  # fmt: skip
    assert writing - {"demo"} == {command.split()[0] for command in (*COMMANDS, *OTHERS)} | OF_FOLDERS


def _flags_of(build):
    parser = argparse.ArgumentParser()
    build(parser)
    return parser._actions


@pytest.mark.parametrize("command", [*COMMANDS, *OTHERS])
def test_what_must_stay_stays_and_no_work_is_begun(everything, here, capsys, monkeypatch, command):
    for work in WORK:
        monkeypatch.setattr(work, no_work)
    before = everything(here)
    for force in ((), ("--force",)):
        for place, message in PLACES.items():
            if force and place == "foreign":
                continue
            assert main([*command.split(), place, *force]) == 1
            assert f"error: {message}" in capsys.readouterr().err
        for place in {**COMMANDS, **OTHERS}[command]:
            assert main([*command.split(), f"./{place}", *force]) == 1
            assert f"error: {place} is an input of this command; give another path" in capsys.readouterr().err
    assert everything(here) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("command", COMMANDS)
def test_written_where_nothing_is_and_by_force(here, capsys, command):
    assert main([*command.split(), "new"]) == 0
    content = (here / "new").read_text()
    assert main([*command.split(), "foreign", "--force"]) == 0
    page = command.endswith("-o")
    assert page == content.startswith("<!DOCTYPE html>")
    if not page:
        assert (here / "foreign").read_text() == content
    # A page bears our mark and gives way to another; a table does not.
    assert main([*command.split(), "new"]) == (0 if page else 1)
    assert main([*command.split(), "new", "--force"]) == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dash_is_standard_output_and_what_is_said_goes_beside_it(everything, here, capsys, command):
    before = everything(here)
    assert main([*command.split(), "fresh.csv"]) == 0
    said = capsys.readouterr().out.replace("fresh.csv", "-")
    content = (here / "fresh.csv").read_text()
    (here / "fresh.csv").unlink()
    assert main([*command.split(), "-"]) == 0
    shown, beside = capsys.readouterr()
    if command.endswith("-o"):
        assert shown.startswith("<!DOCTYPE html>")
    else:
        assert shown.splitlines() == content.splitlines()
        assert len(list(csv.reader(io.StringIO(shown)))) > 1
    assert said in beside
    assert everything(here) == before


def test_a_name_that_is_no_text_is_written_and_shown(here, capsys):
    """To a terminal that knows text alone."""
    assert main(["report", "run", "-o", "\udcff"]) == 0
    assert "\\udcff" in capsys.readouterr().out
    assert (here / "\udcff").read_bytes().startswith(b"<!DOCTYPE html>")
    assert main("code labels.csv --shards 1 --into".split() + ["coded\udcff"]) == 1
    assert "is no text, as DuckDB takes paths" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), RuntimeError("x"), ImportError("x"),
        ImportError("libjax_common.so: failed to map segment from shared object"),
    ],
)  # fmt: skip
def test_too_little_memory_is_said(here, capsys, monkeypatch, error):
    def fail(*words):
        raise error

    monkeypatch.setattr("consilience.inference.loading.load_fit", fail)
    if str(error) == "x":
        with pytest.raises(type(error)):
            main(["table", "run"])
    else:
        assert main(["table", "run"]) == 1
        assert "there is not enough memory" in capsys.readouterr().err


def test_ctrl_c_in_a_destructor_ends_the_command(here, capsys, monkeypatch):
    """Python prints such an error and goes on."""

    class Stopping:
        def __del__(self):
            raise KeyboardInterrupt

    def lose(*words):
        gone = Stopping()
        del gone
        for _ in range(600):
            time.sleep(0.1)

    monkeypatch.setattr("consilience.inference.loading.load_fit", lose)
    before, earlier = sys.unraisablehook, signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["table", "run"]) == 130
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert sys.unraisablehook is before
    assert capsys.readouterr().err == "interrupted\n"


def test_one_path_cannot_hold_two_outputs(here, capsys):
    assert main("agreement labels.csv --csv - -o -".split()) == 1
    assert "- cannot hold two outputs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fit dirichlet labels.csv -o no/run", "no/run cannot be written, because no is not a folder; make it first"),
        ("fit dirichlet labels.csv -o labels.csv", "labels.csv is not a folder"),
        ("fit dirichlet labels.csv -o link --force", "link is not a folder"),
        ("fit dirichlet labels.csv -o fifo", "fifo is not a folder"),
        ("fit dirichlet labels.csv -o -", "a folder cannot go to standard output"),
        ("fit dirichlet labels.csv -o .", ". exists and is not a saved fit; give a new folder, or --force"),
        ("fit dirichlet labels.csv -o run", "run holds a fit; give a new folder, or --force to replace it"),
        ("fit dirichlet run/fit.json -o run --force", "run/fit.json is an input of this command"),
        ("link key.csv -o no/linked", "no/linked cannot be written, because no is not a folder"),
        ("link key.csv -o fifo --force", "fifo is not a folder"),
        ("simulate records -o no/new.csv", "no/new.csv cannot be written"),
        ("simulate records -o no/new", "no/new cannot be written"),
        ("simulate records -o fifo", "fifo is not a folder"),
        ("simulate records -o run", "run exists; give a new folder, or --force"),
        ("update run labels.csv -o run --force", "run/fit.json is an input of this command"),
        ("update run labels.csv -o fifo", "fifo is not a folder"),
        ("code labels.csv --shards 2 --into no/parts", "no/parts cannot be written, because no is not a folder"),
        ("code labels.csv --shards 2 --into fifo", "fifo is not a folder"),
        ("code labels.csv --shards 2 --into labels.csv --force", "labels.csv is not a folder"),
        ("data example fifo", "fifo is not a folder"),
        ("data example labels.csv --force", "labels.csv is not a folder"),
        ("data example no/new", "no/new cannot be written, because no is not a folder"),
        ("simulate mentions key.conll --scenario synthetic-uniform -o key.conll --force", "is an input of this"),
        ("simulate mentions key.conll --scenario synthetic-uniform -o fifo --force", "fifo is not a regular file"),
        ("demo -o foreign", "foreign exists; give another path, or --force to replace it"),
        ("demo -o /dev/null --force", "/dev/null is not a regular file"),
    ],
)
def test_runs_that_are_not_begun(everything, here, capsys, monkeypatch, command, message):
    for work in WORK:
        monkeypatch.setattr(work, no_work)
    monkeypatch.setattr("consilience.demo.STUDIES", [no_work])
    before = everything(here)
    assert main(command.split()) == 1
    assert message in capsys.readouterr().err
    assert everything(here) == before


def test_a_table_of_the_folder_that_is_replaced_may_not_be_an_input(everything, here, capsys):
    (here / "linked").mkdir()
    (here / "linked" / "entities.csv").write_text(KEY)
    before = everything(here)
    assert main("link linked/entities.csv -o linked --force".split()) == 1
    assert "linked/entities.csv is an input of this command" in capsys.readouterr().err
    assert everything(here) == before


def test_by_force_the_command_writes_a_fit_beside_what_is_there(here):
    (here / "mine").mkdir()
    (here / "mine" / "labels.csv").write_text(LABELS)
    assert main("fit dirichlet mine/labels.csv -o mine --draws 20 --force".split()) == 0
    assert cs.load_fit(here / "mine").data.num_items == 6
    assert (here / "mine" / "labels.csv").read_text() == LABELS
