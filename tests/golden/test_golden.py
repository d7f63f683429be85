"""Members say what they said when the golden figures were recorded; see the module's command, ``tests.golden``."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from consilience import models
from tests.golden import figures

ROOT = Path(__file__).parents[2]
RECORDED = sorted(path.stem for path in (ROOT / "tests/golden/figures").glob("*.json"))


def check(*members):
    """Check in a process of its own, where JAX is set up as it was when the figures were recorded."""
    command = [sys.executable, "-m", "tests.golden", "check", *members]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_member_is_recorded():
    assert RECORDED == sorted(models.names())


def test_cheap_members_say_what_they_said():
    check("majority-vote", "irn")


@pytest.mark.slow
@pytest.mark.parametrize("member", RECORDED)
def test_members_say_what_they_said(member):
    check(member)


def test_a_figure_that_moved_is_told():
    values = np.linspace(-1, 2, 40)
    exact = figures.compact(values)
    drawn = figures.with_spread(exact, [figures.compact(values + shift) for shift in (-0.1, 0.05, 0.1)])
    verdict = {
        (name, moved): figures.difference(recorded, figures.compact(values + moved)).verdict
        for name, recorded in (("exact", exact), ("drawn", drawn)) for moved in (0.0, 1e-12, 1e-3, 1.0)
    }  # fmt: skip
    assert verdict == {
        ("exact", 0.0): "bits", ("exact", 1e-12): "close", ("exact", 1e-3): "beyond", ("exact", 1.0): "beyond",
        ("drawn", 0.0): "bits", ("drawn", 1e-12): "close", ("drawn", 1e-3): "noise", ("drawn", 1.0): "beyond",
    }  # fmt: skip
    assert figures.difference(exact, figures.compact(values[:-1])).verdict == "beyond"
    assert figures.difference(exact, {"refused": "UnsupportedRequest"}).verdict == "beyond"
    assert figures.difference({"refused": "UnsupportedRequest"}, exact).verdict == "answers"
