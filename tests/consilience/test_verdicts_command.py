"""`consilience verdicts`: what it prints, writes and refuses."""

import csv
import functools
import json

import numpy as np
import pytest

import consilience as cs
from consilience.cli import ExitCode
from consilience.evaluation.anchoring import compare_verdicts


@pytest.fixture(scope="module")
def judged_file(tmp_path_factory):
    """A file of two judges and two systems, with gold labels of 30 of 80 items."""
    random = np.random.default_rng(0)
    rows = ["question,model,judge,verdict,gold"]
    for item in range(80):
        for system, accuracy in (("A", 0.8), ("B", 0.6)):
            right = random.random() < accuracy
            for judge in "xy":
                said = right if random.random() < 0.8 else not right
                rows.append(f"{item},{system},{judge},{'right' if said else 'wrong'},{int(right) if item < 30 else ''}")
    path = tmp_path_factory.mktemp("verdicts") / "verdicts.csv"
    path.write_text("\n".join(rows))
    return path


@pytest.fixture
def ranked(run):
    return functools.partial(run, "verdicts")


def test_gold_labels_are_used_where_there_are_any(judged_file, ranked, tmp_path):
    code, shown, errors = ranked(judged_file, "--csv", tmp_path / "board.csv")
    assert (code, errors) == (ExitCode.success, "")
    assert shown.startswith("share of right outputs, anchored on 30 gold items, 80 items\n")
    assert "\nThe scores are as precise as with " in shown
    assert "\npairs\n" in shown
    board = compare_verdicts(cs.read_verdicts(judged_file), gold="use")
    with (tmp_path / "board.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [row["system"] for row in written] == board.table["system"].tolist() == ["A", "B"]
    assert [float(row["lower"]) for row in written] == pytest.approx(board.table["lower"].tolist())


def test_flags_are_arguments_of_the_library(judged_file, ranked):
    flags = ("--anchor", "latent-class", "--level", "0.8", "--seed", "3", "--json")
    _, shown, _ = ranked(judged_file, *flags)
    found = json.loads(shown)
    board = compare_verdicts(cs.read_verdicts(judged_file), gold="use", anchor="latent-class", level=0.8, seed=3)
    assert [row["upper"] for row in found["leaderboard"]] == pytest.approx(board.table["upper"].tolist())
    assert found["notes"] == list(board.notes)
    assert found["pairs"][0]["a"] == "A"


def test_judges_alone_have_no_best_system(judged_file, ranked):
    _, shown, _ = ranked(judged_file, "--gold", "ignore", "--json")
    assert [row["p_best"] for row in json.loads(shown)["leaderboard"]] == [None, None]
    _, text, _ = ranked(judged_file, "--gold", "ignore")
    assert text.startswith("share of right outputs as the judges see it, 80 items\n")
    assert "p_best" not in text


def test_verdicts_that_cannot_be_ranked_are_refused(judged_file, ranked, tmp_path):
    code, _, errors = ranked(judged_file, "--gold", "ignore", "--anchor", "latent-class")
    assert code == ExitCode.error
    assert "--anchor latent-class stands beside gold labels; give --gold use" in errors
    few = tmp_path / "few.csv"
    few.write_text("\n".join(judged_file.read_text().splitlines()[:49]))
    assert "label more, or --gold ignore" in ranked(few)[2]
    (tmp_path / "bad.csv").write_text("item,system,annotator,label\na,A,x,perhaps\n")
    assert "line 2, column 'label'" in ranked(tmp_path / "bad.csv")[2]
    assert ranked(judged_file, "--gold", "perhaps")[0] == ExitCode.usage
    gap = tmp_path / "gap.csv"
    gap.write_text("item,system,annotator,label\na,A,x,1\na,B,x,1\nb,A,x,0\n")
    assert "such as that of 'B' on 'b'; --missing drop compares on the other items" in ranked(gap)[2]
    assert ranked(gap, "--missing", "drop")[0] == ExitCode.success
