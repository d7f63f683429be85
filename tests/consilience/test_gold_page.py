"""Calibration against gold labels as a reader meets it: in what the command prints, in JSON, and on the page."""

import html
import json
import re

import numpy as np
import pytest

import consilience as cs
from consilience.cli import main
from consilience.evaluation.reliability import equal_bins, reliability_table
from consilience.models.truth.against_gold import hits
from consilience.pages import More, annotators_by_gold
from consilience.pages.gold import beside_gold, gold_section
from consilience.pages.items import at_other_dependence
from consilience.pages.one_gold_label import decisive, unnamed_gold, unnamed_words
from consilience.pages.won import Won

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
    assert "How right the model is" not in page(files / "used.html")


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
            "A vote does not say how sure it is. Only ties (0 of 60 items) are left open; every other winner counts as "
            "certain, however narrowly it won.",
            "gold labels matched 50 of 60", "items with tied votes 0 of 60",
            "“knows”, right on gold labels [0.940, 1.000] 1.000",
            "accuracy of “knows” by the vote [0.72, 0.91] 0.83",
            "Right on gold labels: “knows” 60 of 60 (1.000 [0.940, 1.000]), “copies” 50 of 60 (0.833 [0.720, 0.907])",
            "“knows” alone is right on 10 of them, and “copies” alone on 0, which is more than chance would explain "
            "(p = 0.002)",
            "By the vote, on all 60 items, “copies” scores",
            "The interval in brackets is too narrow, because the vote treats every label as certain except ties.",
            "The gold labels say otherwise.",
            "“copies” scores 0.83 against the gold labels of 60 items, and more by the vote: 0.99 to 1.00",
            "“knows” scores 1.00 against the gold labels of 60 items, and less by the vote: 0.83, at least",
            "Intervals by the vote are too narrow.",
            "How right the vote is right 50 of 60; 0 tied, 10 wrong",
            "Of 60 gold labels, the vote matches 50; 0 tied, 10 wrong. Of the 60 items whose vote is not tied, 50 are "
            "right (0.833 [0.720, 0.907], 95 %). Wrong: i00, i01, i02, i03, i04, 5 more.",
            "Labels that won, by their share of the votes",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert "stated probabilities" not in shown  # a vote states none
    assert not re.search("(labels of|by|of) the fit", shown)
    assert not {"result converged", "draws kept"} & set(re.findall("result converged|draws kept", shown))
    assert "random rounds, in which ties are decided 1,000" in shown
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
    assert ("items with tied votes 1 of 3" in shown) is (uncertainty == "ties")
    assert ("Only ties (1 of 3 items) are left open" in shown) is (uncertainty == "ties")
    assert ("None of 3 labels has a certainty of 0.9 or more, which nothing here checks." in shown) is (
        uncertainty == "shares"
    )


@pytest.mark.parametrize(
    ("counts", "gold", "words"),
    [
        (
            [[2, 2, 0], [2, 2, 0], [2, 0, 2], [3, 0, 1], [0, 3, 0]], [0, 1, 1, 0, 0],
            "Of 5 gold labels, the vote matches 1; 2 tied, 2 wrong (tied: the gold label is one of several with the "
            "most votes). If each tie counts by its share, that is 2 of 5, 0.40 [0.12, 0.77] (95 %). Of the 2 items "
            "whose vote is not tied, 1 is right (0.50 [0.09, 0.91], 95 %).",
        ),
        ([[2, 2], [1, 1]], [0, 1], "Of 2 gold labels, the vote matches 0; 2 tied, 0 wrong (tied: the"),
        ([[2, 2], [1, 3]], [0, 1], "Of 2 gold labels, the vote matches 1; 1 tied, 0 wrong (tied: the"),
    ],
)  # fmt: skip
def test_the_ties_of_a_vote_are_not_scored(counts, gold, words):
    """Half a hit for each tie is no count: the key figure alone has ties by their share, as what a fit prints."""
    fit = cs.fit("majority-vote", cs.Annotations.from_counts(counts, gold=gold))
    found = beside_gold(fit)
    section = gold_section(found, range(5))
    assert section.blocks[0].startswith(words)
    ((what, of),) = found.figures.items()
    share = fit.calibration_score().right
    assert of == f"{hits(share * len(gold))} of {len(gold)}"
    counted = "a tie counting by its share" if len(gold) == 5 else "each tie counted as half right"  # one is wrong
    tied = f", {counted}" * bool(share * len(gold) - found.vote.right.sum())
    assert what == f"gold labels matched{tied}"
    right, others = re.match(r"Of \d gold labels, the vote matches (\d); (\d tied, \d wrong)", words).groups()
    gist = f"right {right} of {len(gold)}; {others}"
    assert section.gist == ("all are tied" if found.vote.ties == len(gold) else gist)


def test_systems_that_are_equal_on_gold_labels_are_called_so(files):
    fitted(files)
    (files / "again.csv").write_text((files / "copies.csv").read_text())
    systems = {name: str(files / f"{name}.csv") for name in ("copies", "again")}
    cs.report(cs.load_fit(files / "run"), systems, path=files / "page.html")
    shown = page(files / "page.html")
    assert (
        "“copies” and “again” are each right on 50 of 60 gold labels (0.833 [0.720, 0.907], with a 95 % interval in "
        "brackets, if these items are a random sample). “copies” and “again” are right on the same gold labels."
    ) in shown.replace("“again” and “copies”", "“copies” and “again”")
    assert "Systems, equal on gold labels, in the order of the vote" in shown
    assert "Agreement of annotators leave-one-out agreement" in shown  # a vote expects none
    assert "model check" not in shown
    assert "; a tied label counts by its share, with two tied labels by 1/2." in shown


def test_wrong_labels_are_named_with_the_gold_label_beside_them(tmp_path):
    """The surest first, where they have a certainty, and a few by name."""
    counts = [[9, 1], [3, 1], [0, 4], *[[4, 0]] * 9]
    gold = [1, 1, 1, *[0] * 9]
    fit = cs.fit("dirichlet", cs.Annotations.from_counts(counts, gold=gold))
    assert [item for item, _ in beside_gold(fit).wrong] == [0, 1]
    cs.report(fit, path=tmp_path / "page.html")
    shown = page(tmp_path / "page.html")
    assert "Wrong labels, with the certainty: 0 (> 0.99), 1 (0.87)." in shown
    assert "the gold label of" not in shown.lower()  # somebody gave each
    assert "Items, the least certain first; for 2 the gold label is another one." in shown
    assert shown.count("1, not 0") == 2
    vote = cs.fit("majority-vote", cs.Annotations.from_counts([[2, 1]] * 7 + [[1, 1]], gold=[1] * 8))
    assert "Wrong: 0, 1, 2, 3, 4, 2 more." in gold_section(beside_gold(vote), range(8)).blocks[0]


@pytest.mark.parametrize(
    ("learned", "source", "words"),
    [
        (20, "gold", "Here it is 0.40, moved by 20 gold labels from a prior of 0.30, which was chosen because"),
        (0, "default", "Here it is 0.40, not learned from these data but assumed: nine public crowds have 0.20"),
        (0, "given", "Here it is 0.40, as you set it."),
    ],
)  # fmt: skip
def test_what_was_done_about_dependence_is_told(learned, source, words):
    """Labels that say alone what errors of a like kind would make of them are never shown without the other figure."""
    data = cs.Annotations.from_counts([[3, 0], [0, 3]], gold=[0, 1])
    gold = beside_gold(cs.fit("majority-vote", data, uncertainty="shares"))
    assert not any(isinstance(block, More) for block in gold_section(gold, range(2)).blocks)
    score = gold.score._replace(dependence=0.4, fitted_on=learned)
    told = gold._replace(certainty=0.9, if_independent=0.988, source=source, score=score)
    (text,) = gold_section(told, range(2)).blocks[-1].blocks
    assert "The mean certainty of all items is 0.900; it would be 0.988 if annotators erred independently" in text
    assert words in text


def test_without_gold_labels_it_is_said_that_nothing_checks_the_fit(tmp_path):
    fit = cs.fit("majority-vote", cs.Annotations.from_counts([[3, 0], [1, 2]]))
    cs.report(fit, path=tmp_path / "page.html")
    shown = page(tmp_path / "page.html")
    assert "There are no gold labels that the vote did not use: nothing here checks the labels." in shown
    assert beside_gold(fit) is None


# ---- annotators


def test_a_vote_has_the_gold_labels_of_annotators(files):
    fitted(files)
    fit = cs.load_fit(files / "run")
    found = fit.annotators()
    assert found["gold_items"].tolist() == [60.0] * 3
    assert found["gold_right"].tolist() == [50.0] * 3
    cs.report(fit, path=files / "page.html")
    assert "95 % share won a 60 50 0.833 0.720 to 0.907 1.000 b 60" in page(files / "page.html")


def crowd(accuracies, seed=0, items=400):
    """Return labels of annotators with these accuracies, five of an item, and gold labels of all items."""
    random, number = np.random.default_rng(seed), len(accuracies)
    true = random.integers(0, 3, items)
    rows = [(item, who) for item in range(items) for who in random.choice(number, 5, replace=False)]
    said = [
        true[item] if random.random() < accuracies[who] else (true[item] + random.integers(1, 3)) % 3
        for item, who in rows
    ]  # fmt: skip
    item, who = zip(*rows, strict=True)
    gold = [str(true[one]) for one in item]
    table = {"item": item, "annotator": who, "label": list(map(str, said)), "gold": gold}
    return cs.read_annotations(table)


@pytest.mark.parametrize(
    ("stated", "way"), [([0.7] * 4 + [0.72] * 4, "more"), ([0.4] * 4 + [0.99] * 4, "less"), (None, "")]
)
def test_annotators_who_are_not_as_the_fit_says_are_told(monkeypatch, stated, way):
    """Halves are by what is stated: 0.6 and 0.9 are right."""
    data = crowd([0.6] * 4 + [0.9] * 4)
    fit = cs.fit("dawid-skene", data)
    names = data.annotators.astype(int)
    if stated is not None:
        own = np.repeat(np.array(stated)[names][:, None], 3, axis=1)
        monkeypatch.setattr(annotators_by_gold, "_right_of_class", lambda *_: (own, 0 * own))
    found = annotators_by_gold.halves(fit, fit.annotators())
    who, gold = names[np.asarray(data.annotator)], np.asarray(data.gold)[np.asarray(data.item)]
    right = np.asarray(data.label) == gold
    for half, own in ((found.lower, who < 4), (found.higher, who >= 4)):
        assert half[:3] == (4, own.sum(), right[own].sum())
    assert found.expected.sum() == pytest.approx(found.lower.expected + found.higher.expected)
    assert found.told is bool(way)
    assert (f"annotators differ {way} in accuracy than the fit says" in found.words) is bool(way)
    assert ("Chance alone may explain this" in found.words) is not bool(way)


@pytest.mark.parametrize(
    ("lower", "higher", "said"),
    [
        ((28, 36), (53, 49), "that depend on {low} may be too high, and the others too low."),
        ((40, 36), (40, 49), "that depend on {low} may be too low, and the others too high."),
        ((20, 36), (45, 49), "may be too high, mostly those that depend on {low}."),
        ((38, 36), (58, 49), "may be too low, mostly those that depend on the others."),
    ],
)
def test_which_certainties_may_be_off_goes_by_what_was_measured_of_either_half(lower, higher, said):
    both = (annotators_by_gold.Half(6, 60, *own) for own in (lower, higher))
    found = annotators_by_gold.Halves(*both, 0.1, 0.04, np.ones(12))
    low = "the 6 annotators with the lowest accuracies"
    why = ": by gold labels annotators seem to differ more in accuracy than the fit says (p = 0.04)."
    assert found.finding == f"Certainties {said.format(low=low).removesuffix('.')}{why}"
    assert found.words.endswith("than the fit says (p = 0.04, not corrected for the number of tests).")
    doubt = "Gold labels suggest that annotators differ more in accuracy than the fit says (p = 0.04, not corrected for"
    assert found.words.count(f"{doubt} the number of tests).") == 1
    assert found._replace(chance=0.2).words.endswith(" Chance alone may explain this (p = 0.20).")


def test_nothing_is_compared_with_gold_labels_that_were_used_or_are_few():
    data = crowd([0.6] * 4 + [0.9] * 4, items=60)
    few = np.where(np.arange(60) < 19, np.asarray(data.gold), -1)
    for other, options in ((data, {"gold": "use"}), (data.replace(gold=few), {})):
        fit = cs.fit("dawid-skene", other, **options)
        assert annotators_by_gold.halves(fit, fit.annotators()) is None


def test_a_gold_label_that_decides_how_far_annotators_err_together_is_named(tmp_path):
    """Of the item that is surest the gold label is one that nobody gave: by the others alone nobody errs together."""
    data = crowd([0.9] * 6, seed=3, items=40)
    gold = np.asarray(data.gold)
    fit = cs.fit("dawid-skene", data)
    assert not decisive(fit).far
    label, item = np.asarray(data.label), np.asarray(data.item)
    first = int(np.argmax(fit.labels()["certainty"]))
    absent = next(one for one in range(3) if one not in label[item == first])
    other = data.replace(gold=np.where(np.arange(40) == first, absent, gold))
    fit = cs.fit("dawid-skene", other)
    found = decisive(fit)
    assert (found.item, found.unnamed, found.far) == (first, True, True)
    assert found.rho == fitted_rho(other, np.arange(40) != first)
    assert found.rho < fit.truth.dependence.rho
    at_rho = cs.fit("dawid-skene", other, dependence=found.rho).labels()["certainty"]
    assert found.unsure == (at_rho.round(3) < 0.9).sum()
    assert unnamed_gold(fit) == [one for one in range(40) if not (label[item == one] == other.gold[one]).any()]
    names = fit.truth.names()
    assert f"of “{names[first]}” (a label that none of its annotators gave), dependence would" in found.words(names)
    said = f" Without the one gold label of “{names[first]}” it would be {found.unsure}."
    assert found.in_finding(names) == said
    assert found._replace(far=False).in_finding(names) == ""
    assert "Without any one of these gold labels it would be" in found._replace(far=False).words(names)
    shown = page(cs.report(fit, path=tmp_path / "page.html"))
    assert found.words(names) in shown
    assert unnamed_words(fit, names) in shown
    assert decisive(cs.fit("dawid-skene", other, dependence=0.3)) is None


def fitted_rho(data, kept):
    """Return the dependence that is learned from some gold labels alone."""
    return cs.fit("dawid-skene", data.replace(gold=np.where(kept, np.asarray(data.gold), -1))).truth.dependence.rho


@pytest.mark.parametrize(
    ("certainty", "items"),
    [
        (np.linspace(0.5, 1, 30), [5] * 6), (np.linspace(0.5, 1, 200), [20] * 10), ([0.7] * 30, [30]),
        ([0.6] * 3 + [0.8] * 4 + [0.9] * 6, [7, 6]), ([0.5, 0.9], [2]), ([0.5] * 6 + [0.9] * 2, [8]),
    ],
)  # fmt: skip
def test_bins_of_the_reliability_curve_hold_five_items_or_more(certainty, items):
    certainty = np.array(certainty)
    table = reliability_table(certainty, certainty > 0.7, equal_bins(certainty))
    assert table["items"].tolist() == items
    assert np.average(table["certainty"], weights=table["items"]) == pytest.approx(certainty.mean())


@pytest.mark.parametrize(
    ("votes", "right", "said"),
    [
        ([1] * 6, [1] * 6, ""),
        (
            [1] * 6 + [0.75] * 15 + [0.5] * 4, [1] * 19 + [0] * 2 + [1, 1, 1, 0],
            "Where all annotators agree, the vote matches 6 of 6 gold labels [0.61, 1.00]; where they disagree (ties "
            "left out), it matches 16 of 19 [0.62, 0.94]. The brackets are 95 % intervals of the share that is right.",
        ),
    ],
)  # fmt: skip
def test_how_often_labels_of_a_vote_are_right_by_their_share_of_it_is_a_finding(votes, right, said):
    assert Won(np.array(right, float), np.array(votes, float), 2, 0).by_votes == said


def test_labels_that_are_sure_at_both_ends_of_the_dependence_have_a_column(tmp_path):
    fit = cs.fit("dawid-skene", crowd([0.9] * 6, seed=3, items=40))
    text = cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8")
    others = at_other_dependence(fit.truth, cs.certainty(fit))
    sure = np.all([one.round(3) >= 0.9 for one in (cs.certainty(fit).items, *others.values())], axis=0)
    assert 0 < sure.sum() < 40
    told = text.partition("0.9 or more throughout”: also at dependence")[2]
    table = told.partition("<caption>")[2].partition("</table>")[0]
    assert f"make the same errors (yes for {sure.sum()} of 40)" in told
    assert len(re.findall(r"<td[^>]*>yes</td>", table)) == sure.sum()
