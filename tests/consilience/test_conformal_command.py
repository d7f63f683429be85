"""The command with predicted probabilities: `conformal`, and `--scores` of the commands that read predictions."""

import json

import pytest

from consilience.cli import main

LABELS = ("cat", "dog")
SAID = {"i1": (0.9, 0.1), "i2": (0.7, 0.3), "i3": (0.4, 0.6), "i4": (0.8, 0.2)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a fit, and files of probabilities: of its items, of a further one too, and of other sums."""
    folder = tmp_path_factory.mktemp("conformal")
    votes = {"i1": "cat cat cat", "i2": "cat cat dog", "i3": "dog cat dog", "i4": "cat cat cat"}
    rows = [f"{item},{place},{label}" for item, own in votes.items() for place, label in enumerate(own.split())]
    (folder / "labels.csv").write_text("\n".join(["item,annotator,label", *rows]))
    for name, said in {
        "said": SAID, "more": SAID | {"new": (0.3, 0.7)}, "wrong": SAID | {"i4": (0.8, 0.4)},
    }.items():  # fmt: skip
        lines = [f"{i},{label},{q}" for i, own in said.items() for label, q in zip(LABELS, own, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(["item,class,probability", *lines]))
    assert main(["fit", "dirichlet", str(folder / "labels.csv"), "-o", str(folder / "run"), "--draws", "50"]) == 0
    return folder


def test_conformal_sets_are_printed_and_written(folder, printed, run, tmp_path):
    shown = printed("conformal", folder / "run", folder / "said.csv", "--level", 0.6, "--csv", tmp_path / "sets.csv")
    assert shown.startswith("conformal sets, level 0.6, threshold 0.4000, 4 items: 1.00 classes on average")
    assert "guarantee: of an item like these, annotated like these" in shown
    assert (tmp_path / "sets.csv").read_text().splitlines()[:2] == ["item,classes,size", "i1,cat,1"]
    code, shown, errors = run("conformal", folder / "run", folder / "more.csv", "--unknown", "keep", "--json")
    assert code == 0
    assert "1 predicted items are not in the data and were left out: 'new'" in errors
    found = json.loads(shown)
    # Nothing reaches (4 + 1) * .9 of four items: every set has all classes.
    assert (found["level"], found["threshold"], found["size"]) == (0.9, None, 2)
    assert found["items"][-1] == {"item": "new", "classes": ["dog", "cat"], "size": 2}


def test_conformal_refuses_what_it_cannot_use(folder, refused):
    assert "pass --unknown keep" in refused("conformal", folder / "run", folder / "more.csv")
    wrong = refused("conformal", folder / "run", folder / "wrong.csv")
    assert "item 'i4': the probabilities of this item do not sum to 1 (value '1.2')" in wrong
    assert "level is 2" in refused("conformal", folder / "run", folder / "said.csv", "--level", 2)


@pytest.mark.parametrize("command", ["evaluate {} --predictions", "compare {}", "report {} --predictions"])
def test_scores_may_be_probabilities(folder, run, refused, tmp_path, command):
    words = [*command.format(folder / "run").split(), folder / "said.csv", "--metric", "brier"]
    page = ["-o", tmp_path / "page.html"] if "report" in command else []
    assert "read the scores with --scores probabilities" in refused(*words, *page)
    code, shown, _ = run(*words, *page, "--scores", "probabilities")
    assert code == 0
    assert "brier" in shown.lower() or "Brier" in (tmp_path / "page.html").read_text()


def test_public_predictions_are_read_as_published(folder, refused):
    words = ["evaluate", folder / "run", "--predictions", "stutz-2023-predictions", "--scores", "probabilities"]
    assert "leave out --scores" in refused(*words)
