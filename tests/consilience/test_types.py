"""Types that flow through a file of a user's: what is right passes, and every misuse is flagged."""

import importlib.util
import subprocess
import sys

import pytest

RIGHT = """\
from pathlib import Path
import consilience as cs
data = cs.read_annotations("labels.csv")
fit = cs.fit("dawid-skene", data, method="cavi", dependence="gold", seed=1)
other = cs.fit("mace", Path("labels.csv"), read={"missing": "drop"})
ranking = cs.compare(fit, {"a": "a.csv"})
score = cs.certainty(fit, class_groups={"class": ["a"], "group": ["b"]})
scores = cs.evaluate(fit, "a.csv", ["top-1", "top-2"])
own = cs.fit(lambda data: None, data)
table = cs.fit("block-linkage", "people.csv").pairs()
"""
TYPES = {
    "data": "Annotations", "fit": "DawidSkeneFit", "other": "MaceFit", "ranking": "Comparison", "score": "Score",
    "scores": "dict[", "own": "Fit", "table": "DataFrame",
}  # fmt: skip
MISUSE = (
    'cs.fit("dawid-skene", data, diagnal=3)', 'cs.fit("dawid-skene", data, method=3)',
    'cs.fit("dawid-skene", data, method="gibs")', 'cs.fit("dawid-skene", data, gold="yes")', "fit.entities()",
    'cs.read_annotation("labels.csv")',
)  # fmt: skip
CHECKERS = {"mypy": ["-m", "mypy", "--no-incremental"], "pyright": ["-m", "pyright"]}


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_types_flow_and_misuse_is_flagged(tmp_path, checker):
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    lines = [*RIGHT.splitlines(), *(f"reveal_type({name})" for name in TYPES), *MISUSE]
    (tmp_path / "user.py").write_text("\n".join(lines))
    words = [sys.executable, *CHECKERS[checker], "user.py"]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    flagged = {number for number in range(1, len(lines) + 1) for line in said.splitlines()
               if f"user.py:{number}:" in line and "error" in line}  # fmt: skip
    assert flagged == set(range(len(lines) - len(MISUSE) + 1, len(lines) + 1)), said
    for number, named in enumerate(TYPES.values(), start=len(RIGHT.splitlines()) + 1):
        assert any(f"user.py:{number}:" in line and named in line for line in said.splitlines()), (named, said)
