"""Every code block of README and guides runs, in order, one namespace a page, and so do examples in docstrings.

Tutorials and the gallery run when the site is built, and only then.
Blocks marked ``python slow`` run with `-m slow` only. Those marked ``python alert`` show what the library warns of:
they have to make it warn, and no other block may. A command with the comment ``# exit code 3`` has to end with that.
"""

import contextlib
import doctest
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import consilience as cs
from consilience.errors import ConsilienceWarning

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", DOCS / "index.md", *sorted([*DOCS.glob("guides/*.md"), *DOCS.glob("developer/*.md")])]
SLOW_PAGES = [page for page in PAGES if "```python slow" in page.read_text()]
BLOCK = re.compile(r"^```(\w+)(?: (slow|alert))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXIT_CODE = re.compile(r"# exit code (\d+)")


def blocks(page):
    return BLOCK.findall(page.read_text())


def run_command(line):
    from consilience.cli import main

    words = shlex.split(line, comments=True)
    assert words[0] == "consilience"
    assert main(words[1:]) == int(EXIT_CODE.search(line)[1] if EXIT_CODE.search(line) else 0), line


def run_page(page, with_slow):
    namespace = {"__name__": page.stem, "__page__": str(page)}
    for language, mark, code in blocks(page):
        if mark == "slow" and not with_slow:
            continue
        if language == "python":
            expected = pytest.warns(ConsilienceWarning) if mark == "alert" else contextlib.nullcontext()
            with expected:
                exec(compile(code, str(page), "exec"), namespace)
        elif language == "console":
            for line in re.findall(r"^\$ (consilience .*)", code, re.MULTILINE):
                run_command(line)
        elif language == "sh" and page.name == "README.md":  # as typed
            for line in re.findall(r"^(cd \w+|consilience .*)", code, re.MULTILINE):
                os.chdir(line[3:]) if line.startswith("cd ") else run_command(line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page, with_slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW_PAGES, ids=lambda page: page.name)
def test_slow_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        # How well a short chain mixes is not what a page is about.
        warnings.simplefilter("default")
        run_page(page, with_slow=True)


@pytest.mark.slow
def test_shell_blocks_of_the_readme_run_as_typed(tmp_path):
    folder, program = tmp_path / "empty", tmp_path / "bin" / "consilience"
    folder.mkdir()
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m consilience "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    typed = [re.sub(r"^pip install \S+( && )?", "", code) for language, _, code in blocks(PAGES[0]) if language == "sh"]
    assert len(typed) == 2
    for code in typed:
        ran = subprocess.run(["bash", "-e"], input=code, cwd=folder, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr


def docstring_examples(name):
    """Return the examples of a name of the front door, and of its own methods, with nothing but itself in scope."""
    named = getattr(cs, name)
    return [found for found in doctest.DocTestFinder().find(named, name, globs={name: named}) if found.examples]


@pytest.mark.parametrize("name", [name for name in cs.__all__ if name != "__version__" and docstring_examples(name)])
def test_docstring_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner, said = doctest.DocTestRunner(), []
    for example in docstring_examples(name):
        runner.run(example, out=said.append)
    assert not runner.summarize(verbose=False).failed, "".join(said)
    assert not list(tmp_path.iterdir())
