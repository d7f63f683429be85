"""The one writer: what it replaces and what it refuses, before any work; and that nothing else writes."""

import ast
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from consilience import output
from consilience.errors import OutputRefused
from consilience.output import GENERATOR, check_folder, check_output, made_for, text_stream, write_folder, write_output

ROOT = Path(__file__).parents[2]
PAGE = f'<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="{GENERATOR}">\n'
NEW = b"new"


def put(path, **options):
    return write_output(path, lambda stream: stream.write(NEW), **options)


@pytest.fixture
def places(tmp_path):
    """Return a folder with one of everything that may be at a path."""
    (tmp_path / "foreign").write_text("work")
    (tmp_path / "page").write_text(PAGE)
    (tmp_path / "quotes-our-page").write_text(f"<html>\n{PAGE}")
    (tmp_path / "own").write_text("input")
    os.link(tmp_path / "own", tmp_path / "hard-link-to-input")
    (tmp_path / "link-to-input").symlink_to("own")
    (tmp_path / "link-to-file").symlink_to("foreign")
    (tmp_path / "link-to-page").symlink_to("page")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").write_text("input")
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


REFUSED = {
    # path: (what the message says, whether force helps)
    "foreign": ("foreign exists; give another path, or force=True to replace it", True),
    "quotes-our-page": ("exists; give another path, or force=True", True),
    "own": ("own is an input of this command; give another path", False),
    "hard-link-to-input": ("is an input of this command", False),
    "link-to-input": ("is an input of this command", False),
    "folder/inner": ("is an input of this command", False),
    "link-to-file": ("is not a regular file; give another path, or - for standard output", False),
    "link-to-page": ("is not a regular file", False),
    "dangling": ("is not a regular file", False),
    "loop": ("is not a regular file", False),
    "folder": ("is an input of this command", False),
    "fifo": ("is not a regular file", False),
    "/dev/null": ("is not a regular file", False),
    "": ("is not a regular file", False),
    "nowhere/new": ("nowhere is not a folder; make it first", False),
    "foreign/new": ("foreign is not a folder", False),
    "a\0b": ("has a NUL character", False),
    "n" * 300: ("cannot be written \\(File name too long\\)", False),
}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(everything, places, monkeypatch, name, force):
    monkeypatch.chdir(places)
    message, force_helps = REFUSED[name]
    before, options = everything(places), {"force": force, "inputs": ["own", "folder", "litbank"]}
    if force and force_helps:
        check_output(name, **options)
        assert put(name, **options) == Path(name)
        assert Path(name).read_bytes() == NEW
        return
    for act in (check_output, put):
        with pytest.raises(OutputRefused, match=message):
            act(name, **options)
    assert everything(places) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["new", "page", "ü" * 120, ".hidden"])
def test_written_without_force(places, name):
    put(places / name, inputs=[places / "own", places / "missing"])
    assert (places / name).read_bytes() == NEW
    assert not [path for path in places.iterdir() if made_for(path.name)]


def test_a_folder_without_permission_is_refused_before_the_work(places, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != places)
    with pytest.raises(OutputRefused, match="new cannot be written, because .* is not yours to write to"):
        check_output(places / "new")


def test_a_folder_that_is_no_input_is_no_file(places):
    with pytest.raises(OutputRefused, match="is not a regular file"):
        put(places / "folder", force=True)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
@pytest.mark.parametrize("name", ["new", "page"])
def test_the_umask_is_respected(places, umask, name):
    before = os.umask(umask)
    try:
        put(places / name)
    finally:
        os.umask(before)
    assert stat.S_IMODE((places / name).stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("content", ["work", PAGE])
def test_who_was_quicker_keeps_the_file(tmp_path, monkeypatch, links, content):
    """The file appears after the last check, in the moment before the new one gets its name."""
    path, original = tmp_path / "new", output._give_name

    def quicker(written, target, force):
        if not force:
            monkeypatch.setattr(Path, "exists", lambda self: False)
        target.write_text(content)
        return original(written, target, force)

    def no_links(*names):
        raise PermissionError("no hard links here")

    monkeypatch.setattr(output, "_give_name", quicker)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(OutputRefused, match="new exists; give another path"):
        put(path)
    monkeypatch.undo()
    assert path.read_text() == content
    assert [one.name for one in tmp_path.iterdir()] == ["new"]


def test_a_file_that_appears_while_another_is_written_stays(tmp_path):
    path = tmp_path / "new"
    with pytest.raises(OutputRefused, match="exists"):
        write_output(path, lambda stream: path.write_text("work"))
    assert path.read_text() == "work"
    assert [one.name for one in tmp_path.iterdir()] == ["new"]


def test_without_hard_links_files_are_written_too(tmp_path, monkeypatch):
    def no_links(*names):
        raise PermissionError("no hard links here")

    monkeypatch.setattr(os, "link", no_links)
    put(tmp_path / "new")
    assert (tmp_path / "new").read_bytes() == NEW
    assert [one.name for one in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_what_fails_leaves_what_was_there(everything, places, error):
    before = everything(places)

    def fail(stream):
        stream.write(b"half of it")
        raise error

    for name in ("new", "page"):
        with pytest.raises(type(error)):
            write_output(places / name, fail)
    with pytest.raises(type(error)):
        write_folder(places / "new", {"first": lambda stream: stream.write(NEW), "second": fail})
    assert everything(places) == before


def test_a_folder_gets_all_files_or_none(places):
    files = {name: lambda stream: stream.write(NEW) for name in ("first", "inner")}
    with pytest.raises(OutputRefused, match="inner exists"):
        write_folder(places / "folder", files)
    assert [path.name for path in (places / "folder").iterdir()] == ["inner"]
    assert write_folder(places / "folder", files, force=True) == {name: places / "folder" / name for name in files}
    write_folder(places / "made", files)
    assert (places / "made" / "first").read_bytes() == (places / "folder" / "inner").read_bytes() == NEW


@pytest.mark.parametrize("name", ["foreign", "link-to-file", "dangling", "fifo", "/dev/null", "no/new", "-", "a\0b"])
def test_folders_that_can_be_none(everything, places, monkeypatch, name):
    monkeypatch.chdir(places)
    before = everything(places)
    for act in (check_folder, lambda path: write_folder(path, {"one": lambda stream: stream.write(NEW)}, force=True)):
        with pytest.raises(OutputRefused):
            act(name)
    assert everything(places) == before


def test_standard_output(capsysbinary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(stream):
        with text_stream(stream) as text:
            text.write("ü\r\n")

    check_output("-")
    write_output("-", write)
    print("after")
    assert capsysbinary.readouterr().out == "ü\r\nafter\n".encode()
    assert not list(tmp_path.iterdir())


def test_what_is_said_goes_to_standard_error_meanwhile(capsys):
    with output.standard_output_for_files():
        print("said")
        write_output("-", lambda stream: stream.write(b"file"))
    assert capsys.readouterr() == ("file", "said\n")


# ---- nothing else writes ----

WRITING = {
    "write_text", "write_bytes", "savez", "savez_compressed", "save_npz", "mkstemp", "NamedTemporaryFile", "copyfile",
    "copy2", "copytree", "to_csv", "to_parquet", "to_json", "tofile", "savetxt", "symlink", "symlink_to",
}  # fmt: skip
# By module: `write_text` of `durable` goes through the writer, and a command keeps its standard input in a temporary
# folder.
ALLOWED = {
    ("consilience/piped.py", "open"),
    ("consilience/output.py", "open"), ("consilience/output.py", "replace"), ("consilience/output.py", "link"),
    ("inference/durable.py", "savez"), ("inference/checkpoints.py", "write_text"), ("inference/saved.py", "write_text"),
}  # fmt: skip


def writing_calls(tree):
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        of = node.func.value.id if isinstance(getattr(node.func, "value", None), ast.Name) else ""
        strings = [one.value for one in [*node.args, *(word.value for word in node.keywords)]
                   if isinstance(one, ast.Constant) and isinstance(one.value, str)]  # fmt: skip
        if name == "open" and any(mode.strip("bt+") in ("w", "a", "x") or "+" in mode for mode in strings):
            yield name
        elif name in WRITING:
            yield name
        elif of == "os" and name in ("replace", "rename", "link"):
            yield name


def test_nothing_else_writes_files():
    found = set()
    rooms = ("consilience/commands", "consilience/data", "consilience/pages", "models", "inference", "evaluation")
    for pattern in ("consilience/*.py", *(f"{room}/**/*.py" for room in rooms)):
        for path in ROOT.glob(pattern):
            place = path.relative_to(ROOT).as_posix()
            found |= {(place, name) for name in writing_calls(ast.parse(path.read_text()))}
    assert found == ALLOWED


def test_the_writer_is_light():
    code = "import sys, consilience.output; print(sorted({'numpy', 'pandas', 'jax', 'jinja2'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
