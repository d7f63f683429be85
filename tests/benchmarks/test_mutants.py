"""The table of planted errors stays current with the code: each stands in one place, and names tests that there are."""

import re
from pathlib import Path

import pytest

from benchmarks.mutants import ROOT, Mutant, _outcome, mutants

TABLE = mutants()


def test_every_error_can_be_planted_in_one_place():
    texts = {file: Path(ROOT, file).read_text(encoding="utf-8") for file in {one.file for one in TABLE}}
    moved = []
    for one in TABLE:
        try:
            one.planted(texts[one.file])
        except ValueError as error:
            moved.append(str(error))
    assert not moved
    assert len({one.key for one in TABLE}) == len(TABLE)


def test_the_tests_that_are_named_are_there():
    named = {file for one in TABLE for file in re.findall(r"tests/[\w/.]+", one.tests)}
    assert [file for file in sorted(named) if not Path(ROOT, file).exists()] == []
    assert all(one.area and one.error and one.tests for one in TABLE)


def test_an_error_that_stands_nowhere_or_twice_is_refused():
    one = Mutant("area", "file.py", "a + b", "a - b", "a sign", "tests")
    assert one.planted("c = a + b\n") == "c = a - b\n"
    for text in ("c = b + a\n", "a + b\na + b\n"):
        with pytest.raises(ValueError, match=r"occurs [02] times"):
            one.planted(text)


@pytest.mark.parametrize(("status", "printed", "outcome"), [
    (1, "FAILED tests/test_a.py::test_b[x, y] - assert 1\n1 failed\n", ("killed", "tests/test_a.py::test_b[x, y]")),
    (1, "ERROR tests/test_a.py::test_b - ValueError\n", ("killed", "tests/test_a.py::test_b")),
    (1, "Traceback: no test ran\n", ("error", "")), (2, "ERROR tests/test_a.py\n", ("error", "")),
    (0, "3 passed in 1s\n", ("survived", "")), (5, "no tests ran\n", ("error", "")), (None, "", ("error", "")),
])  # fmt: skip
def test_what_pytest_says_is_an_outcome(status, printed, outcome):
    assert _outcome(status, printed) == outcome
