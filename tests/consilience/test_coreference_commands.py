"""The commands of coreference: from a key to a simulated crowd, a fit, its chains, and their scores."""

import json

import pytest

from consilience.cli import main
from consilience.data import read_conll

KEY = """#begin document (story); part 000
story\t0\tAnn\t(0)
story\t1\tsaw\t-
story\t2\tBob\t(1)
story\t3\tand\t_
story\t4\tshe\t(0)
story\t5\ttold\t-
story\t6\thim\t(1)

story\t7\tthat\t-
story\t8\this\t(2|(1)
story\t9\tdog\t2)
story\t10\tran\t-
#end document
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a key, a crowd, fits by majority vote and mpa, and a fit of labels."""
    folder = tmp_path_factory.mktemp("story")
    (folder / "key.conll").write_text(KEY)
    (folder / "labels.csv").write_text("item,annotator,label\nx,a,1\nx,b,2\n")
    crowd = str(folder / "crowd.csv")
    made = ["simulate", "mentions", str(folder / "key.conll"), "--scenario", "synthetic-uniform", "-o", crowd]
    assert main(made) == 0
    assert main(["fit", "mpa", crowd, "--decisions", "joint", "--draws", "30", "-o", str(folder / "mpa")]) == 0
    assert main(["fit", "majority-vote", crowd, "--draws", "30", "-o", str(folder / "vote")]) == 0
    assert main(["fit", "majority-vote", str(folder / "labels.csv"), "-o", str(folder / "labels")]) == 0
    return folder


@pytest.mark.parametrize("fit", ["mpa", "vote"])
def test_chains_as_a_table(folder, printed, fit):
    assert "SilverChains(6 mentions" in printed("chains", folder / fit)
    rows = json.loads(printed("chains", folder / fit, "--json"))
    assert [row["mention"] for row in rows] == ["m1", "m2", "m3", "m4", "m5", "m6"]
    assert rows[0]["label"] == "DN"
    assert rows[0]["document"] == "(story); part 000"


def test_chains_into_the_key(folder, printed, refused, tmp_path):
    out = tmp_path / "silver.conll"
    words = ["chains", folder / "mpa", "--to", "conll", "--template", folder / "key.conll", "--draws", 2, "-o", out]
    assert str(out) in printed(*words)
    before, after = KEY.splitlines(), out.read_text().splitlines()
    assert [line.rsplit("\t", 1)[0] for line in before] == [line.rsplit("\t", 1)[0] for line in after]
    assert read_conll(out).num_mentions == 6
    assert {path.name for path in tmp_path.iterdir()} == {"silver.conll", "silver-001.conll", "silver-002.conll"}
    assert "exists; give another path, or --force" in refused(*words)
    printed(*words, "--force")


def test_a_key_is_not_written_over(folder, refused):
    key = folder / "key.conll"
    words = ["chains", folder / "vote", "--to", "conll", "--template", key, "-o", key, "--force"]
    assert "key.conll is an input of this command" in refused(*words)
    assert key.read_text() == KEY


def test_scores(folder, printed):
    key = folder / "key.conll"
    table = printed("score", key, key)
    assert "singletons included" in table
    assert "100.00%" in table
    scores = json.loads(printed("score", key, key, "--singletons", "exclude", "--json"))
    assert scores["singletons"] == "exclude"
    assert {row["score"]: row["f1"] for row in scores["scores"]}["conll"] == pytest.approx(1)
    rows = json.loads(printed("score", key, key, "--documents", "--json"))["documents"]
    assert rows[0]["document"] == "(story); part 000"


def test_a_response_against_the_crowd(folder, printed, tmp_path):
    key = folder / "key.conll"
    words = ["evaluate", folder / "mpa", "--predictions", key, "--metric", "conll", "--metric", "muc-recall"]
    rows = json.loads(printed(*words, "--json"))
    assert [row["metric"] for row in rows] == ["conll", "muc-recall"]
    assert rows[0]["documents"] == 1
    assert 0 < rows[0]["value"] <= 1
    default = json.loads(printed("evaluate", folder / "mpa", "--predictions", key, "--json"))
    assert default[0]["value"] == rows[0]["value"]
    printed(*words, "--csv", tmp_path / "documents.csv")
    assert (tmp_path / "documents.csv").read_text().startswith("document,conll,muc-recall\n")


def test_systems_of_chains_are_compared(folder, printed, tmp_path):
    other = tmp_path / "nothing.conll"
    other.write_text("\n".join(line.rsplit("\t", 1)[0] + "\t-" if "\t" in line else line for line in KEY.splitlines()))
    board = json.loads(printed("compare", folder / "mpa", folder / "key.conll", other, "--json"))["leaderboard"]
    assert [row["system"] for row in board] == ["key", "nothing"]


def test_the_report_has_chains_and_systems(folder, printed, tmp_path):
    page = tmp_path / "report.html"
    printed("report", folder / "mpa", "--predictions", folder / "key.conll", "-o", page)
    text = page.read_text()
    assert "Systems against the crowd" in text
    assert " in the gold labels</dt>" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["chains", "labels"], "chains need a fit of mentions"),
        (["chains", "mpa", "--template", "key.conll"], "--template belongs to files; give --to conll"),
        (["chains", "mpa", "--to", "conll", "--json"], "leave out --json"),
        (["chains", "mpa", "--to", "conll", "--template", "none.conll"], "there is no such file or folder"),
        (["chains", "mpa", "--to", "conll", "--draws", "31"], "the fit has 30 draws"),
        (["score", "key.conll", "none.conll"], "there is no such file"),
        (["score", "key.conll", "key.conll", "--unknown", "keep"], "--unknown is for tables of records"),
        (["evaluate", "mpa", "--predictions", "key.conll", "--metric", "muk"], "did you mean 'muc'?"),
        (["evaluate", "mpa", "--predictions", "key.conll", "--missing", "drop"], "--missing has no meaning for chains"),
        (["evaluate", "labels", "--predictions", "labels.csv", "--singletons", "include"], "classes of items"),
        (["evaluate", "labels", "--predictions", "key.conll"], "chains need a fit of mentions"),
    ],
)
def test_what_the_commands_of_coreference_refuse(folder, refused, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    assert message in refused(*words)
