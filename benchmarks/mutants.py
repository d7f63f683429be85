"""Plant errors that people make, one at a time, and see whether the tests notice.

A row of ``mutants.csv`` is one change of one line: a sign, a forgotten prior, an axis, a stale count. It is planted in
a copy of the checkout, where pytest then runs the tests that ought to notice, up to the first that fails:

| outcome | what it means |
|---|---|
| killed | a test failed |
| survived | all passed: a test is missing, or the change is none; column ``explained`` says which |
| error | no test ran to its end: the change breaks an import, names no test, or takes too long |

``--control`` runs every test that killed one on the copy without any change: there all have to pass. Types are not
checked at run time, as they are in other runs of the tests: what kills is a test. Imports take most of the time, so
that each run is a fork of a process that has imported all but the library.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gc
import importlib
import multiprocessing
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.recording import RESULTS, Kept, Recording, at_least, grouped, tell_bars, tell_commits
from benchmarks.speed import seconds_of_children

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_suffix(".csv")
_SLOW_IMPORTS = ("hypothesis", "jax", "jaxtyping", "numba", "numpyro.distributions", "pandas", "pytest", "scipy.stats")
_LONGEST = 900  # seconds of one run of pytest: most take ten
_OPTIONS = "addopts=--import-mode=importlib --strict-markers -m 'not slow'"
_LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "results", "build", "dist")


class Mutant(NamedTuple):
    """One planted error.

    Parameters
    ----------
    area : what it is an error of.
    file : relative to the checkout.
    before, after : part of a line, which occurs once in the file, and what takes its place.
    error : what is wrong then.
    tests : arguments of pytest; several runs with a semicolon between, tried in turn until one kills.
    explained : why no test can notice; empty as a rule.
    """

    area: str
    file: str
    before: str
    after: str
    error: str
    tests: str
    explained: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What the row of its outcome is kept under."""
        return self.file, self.before, self.after

    def planted(self, text: str) -> str:
        """Return the text of the file with the error in it.

        Raises
        ------
        ValueError : what is to be changed does not occur exactly once.
        """
        if (found := text.count(self.before)) != 1 or self.before == self.after:
            raise ValueError(f"{self.file}: {self.before!r} occurs {found} times, or is not changed")
        return text.replace(self.before, self.after)


def mutants() -> list[Mutant]:
    """Return the rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return [Mutant(**row) for row in csv.DictReader(stream)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    areas = list(dict.fromkeys(mutant.area for mutant in mutants()))
    parser.add_argument("--only", nargs="*", choices=areas, default=areas, help="areas; all by default")
    parser.add_argument("--again", choices=("all", "alive"), help="try anew: all, or those that no test has killed")
    parser.add_argument("--control", action="store_true", help="run what killed on the copy without a change")


def run(arguments: argparse.Namespace) -> None:
    """Try the mutants that have no row yet, and write the report from all rows."""
    kept = Kept((arguments.output or RESULTS / "mutants") / "rows.jsonl", again=bool(arguments.again))
    every, known = mutants(), kept.rows("mutants")
    for name in _SLOW_IMPORTS:
        importlib.import_module(name)
    gc.freeze()  # no fork goes through what all share
    with _copy() as copy:
        for mutant in every:
            killed = known.get(mutant.key, {}).get("outcome") == "killed"
            if mutant.area in arguments.only and not (killed and arguments.again == "alive"):
                kept.row("mutants", mutant.key, lambda mutant=mutant: _tried(mutant, copy))  # type: ignore[misc]
        if arguments.control:
            found = [kept.rows("mutants").get(mutant.key, {}).get("killed by") for mutant in every]
            tests = sorted({test for test in found if test})
            Kept(kept.path, again=True).row("control", (), lambda: _control(tests, copy))
    record = Recording("mutants", "Planted errors and the tests that notice", arguments.command, arguments.output)
    _tell(record, Kept(kept.path), every)
    record.write()


@contextlib.contextmanager
def _copy() -> Iterator[Path]:
    """Yield a copy of the checkout: real files, for Python keeps compiled code beside them."""
    with tempfile.TemporaryDirectory() as folder:
        yield shutil.copytree(ROOT, Path(folder) / "checkout", symlinks=True, ignore=_LEFT_OUT)


def _tried(mutant: Mutant, copy: Path) -> dict[str, Any]:
    """Return what came of one mutant; its file is written anew afterwards, so that no compiled code is taken for it."""
    file, before = copy / mutant.file, seconds_of_children()
    text = file.read_text(encoding="utf-8")
    file.write_text(mutant.planted(text), encoding="utf-8")
    try:
        for tests in mutant.tests.split(";"):
            outcome, test = _outcome(*_pytest(shlex.split(tests), copy))
            if outcome != "survived":
                break
    finally:
        file.write_text(text, encoding="utf-8")
    print(f"{outcome:9}", end="", flush=True)
    return {"outcome": outcome, "killed by": test, "CPU s": seconds_of_children() - before}


def _pytest(arguments: list[str], copy: Path) -> tuple[int | None, str]:
    """Return the status of pytest, None where it took too long, and what it printed."""
    printed = copy / "printed.txt"
    child = multiprocessing.get_context("fork").Process(target=_in_copy, args=(arguments, copy, printed))
    child.start()
    child.join(_LONGEST)
    status = child.exitcode
    child.kill()
    child.join()
    return status, printed.read_text(encoding="utf-8")


def _in_copy(arguments: list[str], copy: Path, printed: Path) -> None:
    """Run pytest on the copy, of which nothing is imported yet."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("benchmarks", "consilience")]:
        del sys.modules[name]
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy)
    # What is compiled once stays in the copy, wherever it came from.
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(copy / "compiled")
    sys.path[:] = [str(copy), *(place for place in sys.path if Path(place or ".").resolve() not in (ROOT, copy))]
    import pytest

    with printed.open("w", encoding="utf-8") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        own = ["-x", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-o", _OPTIONS]
        status = pytest.main([*own, *arguments], [_Quick()])
        sys.stdout.flush()
    os._exit(status)


class _Quick:
    """A plugin of pytest: properties are tried on the same examples every time, and those that fail are not shrunk."""

    @staticmethod
    def pytest_collection() -> None:
        from hypothesis import Phase, settings

        settings.register_profile("quick", settings(), phases=(Phase.explicit, Phase.generate), derandomize=True)
        settings.load_profile("quick")


def _outcome(status: int | None, printed: str) -> tuple[str, str]:
    failed = re.search(r"^(?:FAILED|ERROR) (.+?::.+?)(?: - .*)?$", printed, re.MULTILINE)  # a test, or its fixture
    if status == 1 and failed:
        return "killed", failed[1]
    return ("survived" if status == 0 else "error"), ""


def _control(tests: list[str], copy: Path) -> dict[str, Any]:
    """Return how many of the tests that killed pass where nothing is planted."""
    status, printed = _pytest([*tests, "--maxfail=1000"], copy)
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", printed, re.MULTILINE)
    return {"tests": len(tests), "status": status, "failed": failed}


def _tell(record: Recording, kept: Kept, every: list[Mutant]) -> None:
    known = kept.rows("mutants")
    rows = [mutant._asdict() | known[mutant.key] for mutant in every if mutant.key in known]
    killed = [row for row in rows if row["outcome"] == "killed"]
    record.section("Areas")
    record.table("areas", [
        {"area": area, "planted": len(own), "killed": sum(row["outcome"] == "killed" for row in own),
         "CPU s": sum(row["CPU s"] for row in own)}
        for (area,), own in grouped(rows, ["area"]).items()
    ], digits=0)  # fmt: skip
    record.section("Not killed")
    alive = [row for row in rows if row["outcome"] != "killed"]
    told = [{name: _code(row[name]) for name in ("file", "before", "after")} | {"outcome": row["outcome"],
             "explained": row["explained"]} for row in alive]  # fmt: skip
    if told:
        record.table("not killed", told)
    else:
        record.say("None.")
    record.section("All")
    record.table("all", [{"error": row["error"], "file": row["file"], "before": _code(row["before"]),
                          "after": _code(row["after"]), "outcome": row["outcome"],
                          "killed by": row["killed by"].rpartition("/")[2]} for row in rows])  # fmt: skip
    planted = len(rows) - sum(bool(row["explained"]) for row in alive)
    share = 100 * len(killed) / planted if planted else None
    bars = [at_least("planted", 150, len(rows), 0), at_least("killed, of those a test can notice, %", 95, share, 1)]
    for row in kept.rows("control").values():
        bars.append(at_least(f"tests that killed, of {row['tests']} pass without a change",
                             row["tests"], row["tests"] - len(row["failed"]), 0))  # fmt: skip
    tell_bars(record, bars)
    record.section("Commits")
    tell_commits(record, kept, ["mutants", "control"])


def _code(text: str) -> str:
    """Return code for a cell of a Markdown table, its lines one after another."""
    return f"`{' ⏎ '.join(line.strip() for line in text.splitlines())}`".replace("|", "\\|")
