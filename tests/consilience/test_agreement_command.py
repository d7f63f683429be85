"""`consilience agreement`: what it prints, writes and refuses."""

import csv
import functools
import json
import re

import pytest

import consilience as cs
from consilience.cli import ExitCode, main
from consilience.commands.agreement import AGREEMENT_TABLES, WEIGHTS
from consilience.evaluation.agreement import SCHEMES, TABLES

_LABELS = {"i1": "111", "i2": "121", "i3": "312", "i4": "11", "i5": "2222", "i6": "3"}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("agreement") / "labels.csv"
    rows = [f"{item},a{who},{label}" for item, labels in _LABELS.items() for who, label in enumerate(labels)]
    path.write_text("\n".join(["item,annotator,label", *rows]) + "\n")
    return path


@pytest.fixture
def run(run):
    return functools.partial(run, "agreement")


def test_the_grammar_knows_what_the_library_knows():
    assert AGREEMENT_TABLES == TABLES
    assert WEIGHTS == SCHEMES


def test_the_summary_is_the_librarys(file, run):
    code, shown, errors = run(file, "--weights", "edge")
    found = cs.agreement(cs.read_annotations(file), weights="edge")
    assert (code, errors) == (ExitCode.success, "")
    assert shown.startswith(f"{found!r}\n")
    assert [line.split()[0] for line in shown.splitlines()[-7:]] == list(SCHEMES)
    described = json.loads(run(file, "--weights", "edge", "--json")[1])
    assert described["value"] == found.value
    assert [row["scheme"] for row in described["schemes"]] == list(SCHEMES)


@pytest.mark.parametrize("table", TABLES)
def test_every_table_as_text_json_and_csv(file, run, printed, tmp_path, table):
    shown = printed(file, "--table", table)
    rows = json.loads(run(file, "--table", table, "--json", "--csv", tmp_path / "table.csv")[1])
    with open(tmp_path / "table.csv", encoding="utf-8", newline="") as written:
        stored = list(csv.DictReader(written))
    assert len(stored) == len(rows) > 0
    assert list(stored[0]) == list(rows[0])
    assert shown.split()[0] == next(iter(rows[0]))


def test_numbers_behind_labels(file, run):
    def conventions(*words):
        return [row["convention"] for row in json.loads(run(file, "--table", "coefficients", "--json", *words)[1])]

    assert "interval" not in conventions()
    assert "ratio" in conventions("--values", "labels")
    assert conventions("--values", "1=1,2=2,3=3") == conventions("--values", "labels")
    assert "ordinal" in conventions("--ordinal")
    assert run(file, "--values", "1=1,2=2")[2] == "error: values lacks 3; give a number for every label\n"
    assert run(file, "--values", "4=1")[2] == "error: values names '4'; the labels are 1, 2, 3\n"
    code, _, errors = run(file, "--values", "one")
    assert code == ExitCode.usage
    assert "write label=number,label=number or labels" in errors


def test_words_need_an_order_of_their_own(run, refused, tmp_path):
    (tmp_path / "words.csv").write_text("item,annotator,label\na,x,low\na,y,high\nb,x,medium\nb,y,medium\n")
    asked = (tmp_path / "words.csv", "--ordinal", "--table", "coefficients")
    errors = refused(*asked)
    assert errors == "error: --ordinal needs the order of the labels; give them in it, as --labels high,low,medium\n"
    assert "ordinal" in run(*asked, "--labels", "low,medium,high")[1]


def test_flags_are_not_dropped_in_silence(file, run):
    assert "has intervals for these annotators only" in run(file, "--table", "labels", "--annotators", "random")[2]
    assert "leave out --table" in run(file, "--table", "labels", "--budget", "100")[2]


def test_agreement_without_two_annotations(printed, tmp_path):
    (tmp_path / "alone.csv").write_text("item,annotator,label\na,x,p\nb,x,q\n")
    shown = printed(tmp_path / "alone.csv")
    assert shown == "sparse probability of agreement: undefined; 0 of 2 items have two annotations or more\n"


def test_a_plan_on_demand(file, run):
    shown = run(file, "--budget", "600", "--width", "0.1", "--per-item", "3")[1]
    assert "items of the budget" in shown
    assert "more items with" in shown
    planned = json.loads(run(file, "--width", "0.1", "--json")[1])["plan"]
    found = cs.agreement(cs.read_annotations(file)).plan(width=0.1)
    assert planned["best"]["more_items"] == found.best.more_items > 0
    assert planned["moments"]["mean"] == found.moments.mean
    assert planned["asked"] is None
    assert "makes no sense" in run(file, "--width", "2")[2]


def test_a_page(file, run, printed, tmp_path):
    shown = printed(file, "-o", tmp_path / "page.html")
    assert shown.endswith(f"written  {tmp_path / 'page.html'}\n")
    written = (tmp_path / "page.html").read_text().replace("\u00a0", " ")
    assert "<svg" in written
    assert re.search(r">95 %\W*<", written)
    assert re.search(r">0\.\d+ to 0\.\d+<", written)
    assert "90 %" not in written
    run(file, "-o", tmp_path / "page.html", "--level", "0.9")
    written = (tmp_path / "page.html").read_text().replace("\u00a0", " ")
    assert re.search(r">90 %\W*<", written)
    assert "95 %" not in written


def test_a_page_where_nobody_shares_an_item_with_anybody(run, tmp_path):
    (tmp_path / "one.csv").write_text("item,annotator,label\n1,a,p\n1,a,q\n2,a,q\n2,a,q\n")
    code = run(tmp_path / "one.csv", "--duplicates", "keep", "-o", tmp_path / "page.html")[0]
    assert code == ExitCode.success
    assert "<h2>Annotators" not in (tmp_path / "page.html").read_text()


def test_repeated_annotations_are_refused_with_their_line(file, run, tmp_path):
    again = tmp_path / "again.csv"
    again.write_text(file.read_text() + "i1,a0,2\n")
    code, shown, errors = run(again)
    assert (code, shown) == (ExitCode.error, "")
    assert "line 18" in errors
    assert "--duplicates" in errors
    assert run(again, "--duplicates", "first")[0] == run(again, "--duplicates", "keep")[0] == ExitCode.success


def test_repeats_in_public_data_are_refused_too(run, refused):
    errors = refused("dawid-skene-1979")
    assert errors.startswith("error: 90 annotations repeat an annotator on an item")
    assert run("dawid-skene-1979", "--duplicates", "first")[0] == ExitCode.success
    assert run("stutz-2023-cases")[2].startswith("error: 'agreement' takes Annotations")


def test_other_layouts(run, tmp_path):
    (tmp_path / "wide.csv").write_text("item,x,y,z\na,p,p,q\nb,q,q,\n")
    (tmp_path / "counts.csv").write_text("item,p,q\na,2,1\nb,0,2\n")
    wide = run(tmp_path / "wide.csv", "--layout", "wide")[1].splitlines()
    counts = run(tmp_path / "counts.csv", "--layout", "counts")[1].splitlines()
    assert [line for line in wide if "annotators='random'" not in line] == counts
    assert run(tmp_path / "counts.csv", "--layout", "counts", "--table", "pairs")[0] == ExitCode.error


def test_of_a_fit(file, run, tmp_path):
    assert main(["fit", "dirichlet", str(file), "-o", str(tmp_path / "run"), "--draws", "200"]) == 0
    found = cs.agreement(cs.load_fit(tmp_path / "run"))
    code, shown, _ = run(tmp_path / "run")
    assert (code, shown) == (ExitCode.success, f"{found}\n")
    described = json.loads(run(tmp_path / "run", "--json", "--csv", tmp_path / "items.csv")[1])
    assert described["value"] == found.value
    assert described["observed"] == found.observed
    assert len((tmp_path / "items.csv").read_text().splitlines()) == 1 + len(_LABELS)
    assert run(tmp_path / "run", "--budget", "100")[2].startswith("error: --budget has no meaning for a fit")
    assert run(tmp_path / "run", "--ordinal")[2].startswith("error: --ordinal has no meaning for a fit")


def test_a_file_that_is_not_there(run):
    assert run("nowhere.csv")[0] == ExitCode.error
