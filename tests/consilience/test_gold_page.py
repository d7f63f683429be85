"""Calibration against gold labels as a reader meets it: in what the command prints, in JSON, and on the page."""

import html
import json
import re

import numpy as np
import pytest

import consilience as cs
from consilience.cli import main
from consilience.pages.gold import beside_gold, gold_section

ITEMS = 60


@pytest.fixture
def files(tmp_path):
    """Write items that three annotators label alike, ten of them wrongly, and two systems."""
    said = np.arange(ITEMS) % 2
    gold = np.where(np.arange(ITEMS) < 10, 1 - said, said)
    names = [f"i{number:02}" for number in range(ITEMS)]
    cells = zip(names, said, gold, strict=True)
    rows = [f"{name},{who},{label},{known}" for name, label, known in cells for who in "abc"]
    (tmp_path / "labels.csv").write_text("\n".join(["item,annotator,label,gold", *rows]))
    for system, of_system in (("copies", said), ("knows", gold)):
        own = [f"{name},{label}" for name, label in zip(names, of_system, strict=True)]
        (tmp_path / f"{system}.csv").write_text("\n".join(["item,label", *own]))
    return tmp_path


def fitted(files, *more):
    return main(["fit", "majority-vote", str(files / "labels.csv"), "-o", str(files / "run"), *more])


def page(path):
    """Return the words of a page, without its figures."""
    text = re.sub(r"<(svg|style|script).*?</\1>", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_the_command_says_first_how_right_the_labels_are(files, capsys):
    assert fitted(files) == 3
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0] == "certainty 1.000; right 0.833 of 60 gold items"
    assert "warning: the stated probabilities are too high: 50 of 60 gold items are right (0.833)" in shown.err
    assert fitted(files, "--json", "--force") == 3
    found = json.loads(capsys.readouterr().out)["calibration"]
    assert (found["items"], found["certainty"], found["dependence"], found["fitted_on"]) == (60, 1.0, 0.0, 0)
    assert found["right"] == pytest.approx(5 / 6)


def test_gold_labels_that_the_fit_used_calibrate_nothing(files, capsys):
    assert fitted(files, "--gold", "use", "--json") == 0
    assert "calibration" not in json.loads(capsys.readouterr().out)
    assert main(["table", str(files / "run"), "calibration"]) == 1
    assert "--gold ignore" in capsys.readouterr().err
    cs.report(cs.load_fit(files / "run"), path=files / "used.html")
    assert "Against the gold labels" not in page(files / "used.html")


def test_the_table_is_one_of_the_fit(files, capsys):
    fitted(files)
    capsys.readouterr()
    assert main(["table", str(files / "run"), "calibration", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["lower"], row["items"], row["certainty"]) == (0.9, 60, 1.0)


def test_the_page_begins_with_gold_labels(files):
    fitted(files)
    predictions = {name: str(files / f"{name}.csv") for name in ("copies", "knows")}
    cs.report(cs.load_fit(files / "run"), predictions, path=files / "page.html")
    shown = page(files / "page.html")
    places = [
        shown.index(words) for words in (
            "The stated probabilities are too high. 50 of 60",
            "labels of the fit, right on 60 gold labels (0.72", "ties, of 60 items 0",
            "“knows”, right on 60 gold labels (0.940 to 1.000, 95 %) 1.000",
            "top-1 accuracy of “knows” by the fit, by where predictions come from (",
            "Right on gold labels: “knows” 60 of 60 (1.000 [0.940, 1.000]), “copies” 50 of 60 (0.833 [0.720, 0.907])",
            "“knows” is right where “copies” is not on 10, and the other way on 0: chance alone would part them so far "
            "with probability 0.002",
            "By the fit, on all 60 items, “copies” scores",
            "looked at the items itself; the annotations do not say which.",
            "Gold labels of 60 items were not used in the fit",
            "Of 60 items whose gold label was not used in the fit, the label of the fit is right for 50",
            "(a probability below 0.000001 counts as that, or it could be infinite)", "The gold labels say otherwise.",
            "“copies” scores 0.833 against the gold labels of 60 items, and 0.992 to 1.000",
            "“knows” scores 1.000 against the gold labels of 60 items, and 0.825 to 0.833",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert "Nobody observed" not in shown
    assert 'class="alert amber"' in (files / "page.html").read_text(encoding="utf-8")


def test_a_warning_about_certainty_is_amber(tmp_path):
    counts, gold = np.tile([[2, 1], [1, 2]], (20, 1)), np.tile([0, 1], 20)
    fit = cs.fit("majority-vote", cs.Annotations.from_counts(counts, gold=gold), uncertainty="shares")
    cs.report(fit, path=tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'class="alert amber"' in text
    assert 'class="alert"' not in text
    said = "Certainty 0.667, right 1.000 on 40 gold items: less certain than right; if the statements held, 0.518 to"
    assert said in page(tmp_path / "page.html")


@pytest.mark.parametrize("uncertainty", ["ties", "shares"])
def test_shares_that_stand_for_probabilities_are_no_ties(uncertainty, tmp_path):
    """Two of three items have a label that leads, whatever is made of its share."""
    data = cs.Annotations.from_counts([[2, 1], [2, 2], [1, 3]])
    cs.report(cs.fit("majority-vote", data, uncertainty=uncertainty), path=tmp_path / "page.html")
    shown = page(tmp_path / "page.html")
    assert ("ties, of 3 items" in shown) is (uncertainty == "ties")
    assert ("No label leads in 1 of 3 items: ties." in shown) is (uncertainty == "ties")
    assert ("The fit is less than 90 % certain of the leading label of 3 of 3 items." in shown) is (
        uncertainty == "shares"
    )


def test_the_ties_of_a_vote_are_right_by_their_share():
    counts = [[2, 2], [2, 2], [2, 2], [3, 0]]
    found = beside_gold(cs.fit("majority-vote", cs.Annotations.from_counts(counts, gold=[0, 0, 1, 0])))
    section = gold_section(found, range(4))
    assert "the label of the fit is right for 2.5 (0.62 [" in section.blocks[0]
    assert "Of labels that tie, each counts by its share" in section.blocks[0]


def test_wrong_labels_are_named_with_the_gold_label_beside_them(tmp_path):
    """The surest first, where they have a certainty, and a few by name."""
    counts = [[9, 1], [3, 1], [0, 4], *[[4, 0]] * 9]
    gold = [1, 1, 1, *[0] * 9]
    fit = cs.fit("dirichlet", cs.Annotations.from_counts(counts, gold=gold))
    assert [item for item, _ in beside_gold(fit).wrong] == [0, 1]
    cs.report(fit, path=tmp_path / "page.html")
    shown = page(tmp_path / "page.html")
    assert "Wrong, with the certainty of the label: 0 (> 0.99), 1 (0.87)." in shown
    assert "Items, the least certain first; of 2 another label is gold." in shown
    assert shown.count("1, not 0") == 2
    vote = cs.fit("majority-vote", cs.Annotations.from_counts([[2, 1]] * 7 + [[1, 1]], gold=[1] * 8))
    assert "Wrong: 0, 1, 2, 3, 4, 2 more." in gold_section(beside_gold(vote), range(8)).blocks[0]


@pytest.mark.parametrize(
    ("learned", "source", "words"),
    [
        (20, "gold", "(dependence 0.40, learned from 20 gold labels; at 0"),
        (0, "default", "(dependence 0.40, not learned from these data but assumed: nine public crowds have "),
        (0, "given", "(dependence 0.40, as it was given; "),
    ],
)  # fmt: skip
def test_what_was_done_about_dependence_is_told(learned, source, words):
    """Labels that say alone what errors of a like kind would make of them are never shown without the other figure."""
    data = cs.Annotations.from_counts([[3, 0], [0, 3]], gold=[0, 1])
    gold = beside_gold(cs.fit("majority-vote", data))
    assert "independent" not in gold_section(gold, range(2)).blocks[0]
    score = gold.score._replace(dependence=0.4, fitted_on=learned)
    told = gold._replace(certainty=0.9, if_independent=0.988, source=source, score=score)
    text = gold_section(told, range(2)).blocks[0]
    assert "the mean certainty of all items would be 0.988; it is 0.900, as annotators err together" in text
    assert words in text


def test_without_gold_labels_it_is_said_that_nothing_checks_the_fit(tmp_path):
    fit = cs.fit("majority-vote", cs.Annotations.from_counts([[3, 0], [1, 2]]))
    cs.report(fit, path=tmp_path / "page.html")
    assert "nothing here checks its probabilities" in page(tmp_path / "page.html")
    assert beside_gold(fit) is None
