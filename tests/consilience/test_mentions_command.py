"""Mentions on the command line: which kind of table a file is, and what works on their fits."""

import html
import json
import re

import numpy as np
import pytest

import consilience as cs
from consilience.cli import ExitCode
from consilience.pages.chains import worded, words_of
from consilience.pages.items import leading_classes

ROWS = """\
mention,coder,annotation,truth,document,start,end
m1,a1,DN,DN,d1,0,0
m1,a2,DN(),DN,d1,0,0
m2,a1,DO(m1),DO(m1),d1,3,3
m2,a2,DO(m1),DO(m1),d1,3,3
m2,a3,DN,DO(m1),d1,3,3
m3,a2,DO(m2),,d1,5,5
m3,a3,DO(m1),,d1,5,5
m3,a1,DO(m2),,d1,5,5
m1,a1,NR,NR,d2,0,1
m2,a1,DO(m1),DO(m1),d2,2,3
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_mentions(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mentions.csv").write_text(ROWS)


def test_mentions_are_fitted_and_looked_at(run, printed, tmp_path):
    shown = printed("fit", "mpa", "mentions.csv", "-o", "fit", "--coreference", "links", "--draws", "100", "--quiet")
    assert "10 annotations, 5 mentions, 3 annotators, 2 documents" in shown
    labels = {row["item"]: row["label"] for row in json.loads(run("table", "fit", "labels", "--json")[1])}
    assert labels["d1/m2"] == "DO(d1/m1)"
    assert labels["d2/m1"] == "NR"
    assert run("table", "fit", "ambiguous")[1].strip() == "(no rows)"
    assert "d1/m2" in run("certainty", "fit")[1]
    guesses = "".join(f"{item},{label}\n" for item, label in labels.items())
    (tmp_path / "guesses.csv").write_text("item,label\n" + guesses)
    (score,) = json.loads(run("evaluate", "fit", "--predictions", "guesses.csv", "--json")[1])
    assert score["items"] == 5
    assert score["value"] > 0.8
    assert run("report", "fit", "-o", "page.html", "--predictions", "guesses.csv")[0] == ExitCode.success
    assert "→ d1/m1" in (tmp_path / "page.html").read_text()


def test_mentions_and_labels_are_written_in_the_words_of_the_text():
    fit = cs.fit("majority-vote", cs.read_mentions("mentions.csv"))
    text = {"document": ["d1"] * 6, "token": list(range(6)), "word": "Mira said that she likes it".split()}
    named = worded(fit, fit.truth, words_of(fit.data, text))
    assert named.names().tolist() == ["Mira (d1/m1)", "she (d1/m2)", "it (d1/m3)", "d2/m1", "d2/m2"]
    said = leading_classes(named, np.arange(5), numbers=False)
    assert [one.partition(", ")[0] for one in said[:2]] == ["new", "→ Mira (d1/m1)"]
    assert said[3].startswith("refers to nothing")
    assert fit.truth.names()[0] == "d1/m1"  # the truth itself stays as it is


@pytest.mark.parametrize(
    ("header", "words", "read"),
    [
        ("task,worker,label", [], "1 item,"),
        ("mention,worker,label", [], "1 mention,"),
        ("what,who,says", ["--columns", "mention_id=what,annotator_id=who,annotation=says"], "1 mention,"),
        ("what,who,says", ["--columns", "item=what,annotator=who,label=says"], "1 item,"),
        ("item,mention_id,annotator,label", ["--columns", "item=item"], "1 item,"),
        ("item,ann,bob", ["--layout", "wide"], "1 item,"),
    ],
)
def test_the_columns_say_what_a_file_is(run, tmp_path, header, words, read):
    (tmp_path / "table.csv").write_text(f"{header}\n{'x,' * header.count(',')}DN\n")
    code, shown, errors = run("fit", "mpa", "table.csv", "-o", "fit", "--draws", "10", "--quiet", *words)
    # One item tells nothing of whether annotators agree beyond chance.
    assert code == ExitCode.poor, errors
    assert "nothing tells whether the annotators agree" in errors
    assert read in shown


@pytest.mark.parametrize(
    ("header", "words", "message"),
    [
        ("who,what", [], "item, annotator, label (Annotations); mention_id, annotator_id, annotation (Mentions)"),
        ("item,mention,annotator,label", [], "are those of several kinds of data"),
        ("mention,annotator,label", ["--unknown", "drop"], "--unknown has no meaning for Mentions"),
        ("mention,annotator,label", ["--labels", "DN,DO"], "--labels has no meaning for Mentions"),
        ("item,annotator,label", ["--antecedents", "drop"], "--antecedents has no meaning for Annotations"),
    ],
)
def test_files_and_flags_that_do_not_fit_are_refused(refused, tmp_path, header, words, message):
    (tmp_path / "table.csv").write_text(f"{header}\n{'x,' * header.count(',')}DN\n")
    assert message in refused("fit", "mpa", "table.csv", "-o", "fit", *words)


def test_labels_that_point_nowhere(run, refused, tmp_path):
    (tmp_path / "table.csv").write_text("mention,annotator,label\nm1,a,DO(m1)\nm2,a,DO(m7)\nm1,b,DN\nm2,b,DN\n")
    errors = refused("fit", "mpa", "table.csv", "-o", "fit")
    assert "line 2, column 'label'" in errors
    assert "--antecedents drop" in errors
    code, shown, errors = run("fit", "mpa", "table.csv", "-o", "fit", "--draws", "10", "--antecedents", "drop")
    assert code == ExitCode.poor, errors  # since one item tells nothing of whether annotators agree beyond chance
    assert "2 annotations, 2 mentions" in shown


def test_the_model_lists_the_columns_of_both_contracts(run):
    described = json.loads(run("models", "mpa", "--json")[1])["data"]
    assert list(described) == ["Annotations", "Mentions"]
    first = {"column": "mention_id", "also_called": ["mention", "markable"]}
    assert described["Mentions"][0] == {**first, "help": "the mention, within its document"}
    assert "mention_id" in run("models", "mpa")[1]


@pytest.mark.parametrize("known", ["both", "one", "none"])
def test_systems_are_scored_against_the_chains_of_gold_labels(known, tmp_path):
    """Of the documents of which all mentions have one; as `score_coreference` scores them."""
    rows = [  # document, mention, place, gold, what two annotators say
        ("d1", "m1", 0, "DN", "DN", "DN"), ("d1", "m2", 2, "DO(m1)", "DN", "DO(m1)"),
        ("d1", "m3", 4, "DO(m2)", "DO(m1)", "DO(m1)"), ("d1", "m4", 6, "NR", "DN", "NR"),
        ("d2", "n1", 0, "DN", "DN", "DN"), ("d2", "n2", 3, "DN", "DO(n1)", "DO(n1)"),
        ("d2", "n3", 5, "DO(n1)", "DO(n2)", "DO(n1)"),
    ]  # fmt: skip
    names = ["document_id", "mention_id", "start", "gold", "ann", "bob"]
    table = {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    if known != "both":
        table["gold"][-1 if known == "one" else 0] = ""
    if known == "none":
        table["gold"][-1] = ""
    table["end"] = table["start"]
    long = {name: 2 * table[name] for name in (*names[:4], "end")}
    long |= {"annotator_id": ["ann"] * 7 + ["bob"] * 7, "annotation": table["ann"] + table["bob"]}
    fit = cs.fit("majority-vote", cs.read_mentions(long))
    spans = {"document": [0] * 3 + [1] * 3, "start": [0, 2, 4, 0, 3, 5], "end": [0, 2, 4, 0, 3, 5]}
    system = cs.Chains.from_spans(entity=[0, 0, 1, 2, 2, 2], documents=["d1", "d2"], **spans)
    page = cs.report(fit, {"one": system}, metric=["muc", "b3"], path=tmp_path / "page.html")
    words = html.unescape(page.read_text(encoding="utf-8"))
    labels = zip(fit.labels()["label"], table["gold"], strict=True)
    wrong = sum(gold not in ("", label) for label, gold in labels)
    assert wrong > 1
    assert words.count("≠</sub>") == wrong + 1  # with that of the key
    assert re.search(r">gold label differs<sub>\d?≠</sub>", words)
    if known == "none":
        assert "gold chains" not in words
        return
    number = 2 if known == "both" else 1
    known_spans = {name: values[: 3 * number] for name, values in spans.items()} | {"documents": ["d1", "d2"][:number]}
    gold, system = (
        cs.Chains.from_spans(entity=entity[: 3 * number], **known_spans)
        for entity in ([0, 0, 0, 1, 2, 1], [0, 0, 1, 2, 2, 2])
    )
    score = cs.score_coreference(gold, system)
    which = "" if known == "both" else ", on the 1 of 2 documents in which every mention has a gold label"
    assert f"Against the gold chains, system “one” scores {score['muc'].f1:.3f} in F of MUC" in words
    assert f"{which}. The model's own chains score " in words
    assert f"{score['b3'].f1:.3f}</td>" in words
