"""The arrows of the house: who may import whom (docs/developer/design.md)."""

import ast
import builtins
import symtable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

BASE = {
    f"consilience.{name}" for name in
    ("errors", "notes", "arrays", "output", "piped", "notebook", "deprecation", "progress", "rounding", "spreadsheets",
     "_version")
}  # fmt: skip
# What the files of each room may import of ours; the face (`consilience/*.py`) may import everything.
ALLOWED = {
    "consilience/data": BASE | {"consilience.data"},
    # Samplers on the host swap their replicas themselves, by functions that know nothing of drivers.
    "models": BASE | {"consilience.data", "consilience.models", "consilience.inference.tempering"},
    "inference": BASE
    | {"consilience.data", "consilience.inference"}
    | {
        f"consilience.models.{name}"
        for name in (
            "diagnostics", "interface", "intervals", "keys", "posterior", "settings", "sites", "squarem", "truth",
        )
    },
    "evaluation": BASE
    | {"consilience.data", "consilience.evaluation"}
    | {f"consilience.models.{name}" for name in ("diagnostics", "intervals", "posterior", "truth")},
}
# The registry by its function alone: inference asks it for a member, and knows none by name.
ALLOWED_NAMES = {"inference": {("consilience.models", "member"), ("consilience.models", "names")}}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_follow_the_arrows(room):
    bad = []
    for path in sorted((ROOT / room).glob("**/*.py")):
        for module, name in imports(path):
            if not module or module.split(".")[0] != "consilience":
                continue
            places = {module, f"{module}.{name}"}
            fine = any(place == ok or place.startswith(f"{ok}.") for place in places for ok in ALLOWED[room])
            if not fine and (module, name) not in ALLOWED_NAMES.get(room, ()):
                bad.append(f"{path.relative_to(ROOT)}: {module} {name or ''}")
    assert not bad


def undefined(table, known):
    """Yield the names that some function under this scope looks for in its module, which has none."""
    for name in table.get_symbols():
        own = name.is_parameter() or name.is_assigned()  # a function that is called top passes for the module
        if name.is_global() and name.is_referenced() and not own and name.get_name() not in known:
            yield f"{table.get_name()}: {name.get_name()}"
    for child in table.get_children():
        yield from undefined(child, known)


@pytest.mark.parametrize("room", ["models", "inference", "evaluation", "consilience"])
def test_no_name_is_looked_for_that_is_not_there(room):
    """What ruff and mypy cannot be asked, as axes of arrays in annotations are no names."""
    bad = []
    for path in sorted((ROOT / room).glob("**/*.py")):
        whole = symtable.symtable(path.read_text(), str(path), "exec")
        own = {name.get_name() for name in whole.get_symbols() if name.is_assigned() or name.is_imported()}
        own |= {child.get_name() for child in whole.get_children()} | set(vars(builtins)) | {"__file__"}
        bad += [f"{path.relative_to(ROOT)}: {one}" for one in undefined(whole, own)]
    assert not bad


def test_only_one_file_knows_arviz():
    users = [
        str(path.relative_to(ROOT))
        for room in ("consilience", "models", "inference", "evaluation")
        for path in (ROOT / room).glob("**/*.py")
        if not (room == "consilience" and path.relative_to(ROOT).parts[1] in ALLOWED)
        if any((module or "").split(".")[0] == "arviz" for module, _ in imports(path))
    ]
    assert users == ["inference/posterior.py"]


def test_no_file_bears_the_name_of_a_public_function():
    import consilience

    files = {path.stem for room in ("consilience", *ALLOWED) for path in (ROOT / room).glob("*.py")}
    assert not files & set(consilience.__all__)


def test_only_fronts_say_what_is_public():
    # `__all__` in every file says nothing about which names a user may rely on.
    from consilience import models

    fronts = {
        "consilience/__init__.py", "consilience/data/__init__.py", "consilience/errors.py", "consilience/notes.py",
            "consilience/figures.py",
        "models/__init__.py", "models/crowd/__init__.py", "models/truth/__init__.py",
        "evaluation/agreement/__init__.py",
    }  # fmt: skip
    fronts |= {f"models/{name.replace('-', '_')}{end}" for name in models.names() for end in (".py", "/__init__.py")}
    sayers = {
        str(path.relative_to(ROOT))
        for room in ("consilience", "models", "inference", "evaluation", "benchmarks")
        for path in (ROOT / room).glob("**/*.py")
        if any(line.startswith("__all__") for line in path.read_text(encoding="utf-8").splitlines())
    }
    assert not sayers - fronts
