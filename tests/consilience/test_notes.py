"""What is said, in Python's words and in flags; that every remedy is an argument, and every flag one of the command."""

import argparse
import ast
import inspect
import pickle
from pathlib import Path

import pytest

import consilience as cs
from consilience import data, errors
from consilience.commands.grammar import parser
from consilience.errors import (
    ConsilienceWarning,
    InputError,
    InputProblem,
    NotInstalled,
    TooLarge,
    UnsupportedRequest,
    WrongKind,
)
from consilience.inference.checkpoints import Checkpoint
from consilience.models import member, names
from consilience.notes import Level, Note, Remedy, phrased

ROOT = Path(__file__).parents[2]

VOICES = [
    (Remedy("missing", "drop"), "missing='drop'", "--missing drop"),
    (Remedy("diagonal", 3), "diagonal=3", "--diagonal 3"),
    (Remedy("resume", True), "resume=True", "--resume"),
    (Remedy("missing_values"), "missing_values=", "--missing-values"),
    (Remedy("columns", {"item": ...}), "columns={'item': …}", "--columns item=…"),
    (Remedy("columns", {"item": "pic"}), "columns={'item': 'pic'}", "--columns item=pic"),
    (Remedy("fields", ["name", "born"]), "fields=['name', 'born']", "--fields name,born"),
    (Remedy("entity", "same person"), "entity='same person'", "--entity 'same person'"),
]


@pytest.mark.parametrize(("remedy", "python", "flags"), VOICES)
def test_a_remedy_in_both_voices(remedy, python, flags):
    note = Note(Level.note, f"pass {{{remedy.argument}}} then", (remedy,))
    error = UnsupportedRequest(note.text, remedy)
    warning = ConsilienceWarning(note.text, remedy)
    for said in (note, error, warning):
        assert str(said) == said.words("python") == f"pass {python} then"
        assert said.words("flags") == f"pass {flags} then"


def test_braces_that_name_no_remedy_stay():
    text = "the value {x} of {} is no {0}; pass {missing}, not {{"
    assert phrased(text, [Remedy("missing", "drop")], "flags") == (
        "the value {x} of {} is no {0}; pass --missing drop, not {{"
    )
    assert str(UnsupportedRequest("{a user's own}")) == "{a user's own}"


def test_remedies_of_one_argument_take_turns():
    error = UnsupportedRequest("{id} or {id}, else {id}", Remedy("id", "person"), Remedy("id", "row"))
    assert str(error) == "id='person' or id='row', else id='row'"


def test_problems_of_an_input_speak_in_both_voices_and_are_copied_whole():
    problem = InputProblem(
        "this label is not in {labels}", "pass {unknown}", "f.csv", 3, "label", "{unknown}",
        (Remedy("labels"), Remedy("unknown", "drop")),
    )  # fmt: skip
    error = InputError([problem, problem])
    line = "f.csv, row 3, column 'label': this label is not in --labels (value '{unknown}'); pass --unknown drop"
    assert error.words("flags").splitlines()[1:] == [f"  {line}"] * 2
    assert "not in labels= (value '{unknown}'); pass unknown='drop'" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.problems) == (str(error), error.problems)


def test_every_error_is_copied_with_its_remedies():
    for name in errors.__all__:
        kind = getattr(errors, name)
        if not (isinstance(kind, type) and issubclass(kind, Exception)) or kind is InputError:
            continue
        copy = pickle.loads(pickle.dumps(kind("pass {missing}", Remedy("missing", "drop"))))
        assert type(copy) is kind
        assert copy.words("flags") == "pass --missing drop"
    assert all(issubclass(kind, UnsupportedRequest) for kind in (TooLarge, NotInstalled, WrongKind))


# ---- every remedy in the library ----


def remedies_of(path):
    """Yield the argument and the line of each remedy that is written out in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="Remedy"), args=[ast.Constant(value=str(argument)), *_]):
                yield argument, node.lineno


FILES = sorted(
    path
    for pattern in ("consilience/*.py", "consilience/commands/*.py", "consilience/data/*.py", "consilience/pages/*.py",
                    "models/**/*.py", "inference/**/*.py", "evaluation/**/*.py")  # fmt: skip
    for path in ROOT.glob(pattern)
    if path.name not in ("notes.py", "errors.py")
)
REMEDIES = [(path, argument, line) for path in FILES for argument, line in remedies_of(path)]


def member_options():
    for name in names():
        one = member(name)
        yield from (field.name for field in one.settings.fields())


@pytest.fixture(scope="module")
def arguments():
    """Return the arguments of every public function, of every member, and of the classes behind `checkpoint=`."""
    found = set(member_options())
    for module in (cs, data):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                found |= set(inspect.signature(thing).parameters)
    return found | set(inspect.signature(Checkpoint).parameters)


@pytest.fixture(scope="module")
def flags():
    """Return the flags of every command, those of the members' options among them."""
    found = {name.replace("_", "-") for name in member_options()}
    pending = [parser()]
    while pending:
        for action in pending.pop()._actions:
            found |= {flag.removeprefix("--") for flag in action.option_strings}
            if isinstance(action, argparse._SubParsersAction):
                pending += action.choices.values()
    return found


# The command has its own checkpoint, in the folder of its output.
OF_PYTHON_ALONE = {"checkpoint", "priors"}


def test_remedies_were_found():
    assert len(REMEDIES) > 50


def test_every_remedy_is_an_argument(arguments):
    assert [f"{path}:{line} {name}" for path, name, line in REMEDIES if name not in arguments] == []


def test_every_remedy_is_a_flag(flags):
    known = {flag.replace("-", "_") for flag in flags} | OF_PYTHON_ALONE
    assert [f"{path}:{line} {name}" for path, name, line in REMEDIES if name not in known] == []


def test_every_remedy_stands_in_a_text_of_its_file():
    texts = {path: path.read_text(encoding="utf-8") for path in FILES}
    assert [f"{path}:{line}" for path, name, line in REMEDIES if f"{{{name}}}" not in texts[path]] == []
