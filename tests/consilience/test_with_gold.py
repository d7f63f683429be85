"""What pages say of systems by gold labels and annotations together, and in which order they show what was voted on."""

import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.evaluation.anchoring import NOT_RANDOM
from consilience.evaluation.comparison import HELD_FIXED
from consilience.pages import with_gold
from consilience.pages.agreement import predictive_section
from consilience.pages.annotators_by_gold import labels_by_gold
from consilience.pages.crowd import _least_accurate
from consilience.pages.gold import Right, SystemsByGold
from consilience.pages.items import _margins
from tests.consilience.test_gold_page import page

ITEMS, GOLD = 120, 40


def crowd(known=None):
    """Labels of five annotators, and two systems, of which the first is right more often."""
    random = np.random.default_rng(5)
    truth = random.integers(0, 3, ITEMS)
    said = np.where(random.random((ITEMS, 5)) < 0.7, truth[:, None], random.integers(0, 3, (ITEMS, 5)))
    item, who = np.indices(said.shape)
    gold = np.where(np.arange(ITEMS) < GOLD if known is None else known(truth), truth, -1)
    data = cs.Annotations.from_codes(item.ravel(), who.ravel(), said.ravel(), gold=gold)
    systems = {}
    for name, right in (("good", 0.95), ("poor", 0.6)):
        own = np.where(random.random(ITEMS) < right, truth, (truth + 1) % 3)
        systems[name] = {"item": list(range(ITEMS)), "class": own.tolist()}
    return data, systems


@pytest.mark.parametrize(("model", "word"), [("dawid-skene", "fit"), ("majority-vote", "vote")])
def test_systems_are_told_by_gold_labels_and_annotations_together(model, word, tmp_path):
    data, systems = crowd()
    fit = cs.fit(model, data)
    shown = page(cs.report(fit, systems, path=tmp_path / "page.html"))
    found = cs.compare(fit, systems, gold="use")
    texts, best = with_gold.anchored_texts(found), found.p_best_texts
    assert list(texts) == ["good", "poor"]
    for words in (
        f"By gold labels and annotations together “good” scores {texts['good']} in top-1 accuracy (how often its first "
        f"choice is right), “poor” {texts['poor']}, with 95 % in brackets if items with gold labels are a random "
        f"sample. “good” is the best of 2 with probability {best[0]}. The {word} alone gives",
        f"Leaderboard “good” {texts['good']}, P(best) {best[0]} Systems by gold labels and annotations together, the "
        "highest first",
        f"P(“good” is best of 2 systems) {best[0]}",
    ):
        assert words in shown
    corrected = "This is not so of scores by gold labels and annotations together: gold labels correct them, if items "
    assert shown.count(corrected) == (word == "vote")  # in one box, that of the vote
    if word == "vote":
        assert shown.index(corrected) < shown.index("gold labels that won the vote;")
        assert "Fit dawid-skene instead, which says how sure it is of each label:" in shown
    else:
        sure = fit.labels()["certainty"].mean()
        assert f"of 120 items with a certainty below 0.9; on average it is {sure:.3f}" in shown
        assert " expected by the fit) 0." in shown
    assert "anchor the scores" not in shown.lower()
    assert "is it with probability" not in shown


@pytest.mark.parametrize(
    ("value", "ends", "said"),
    [
        (0.9, (0.76, 0.98), "; gold labels put it above that: the fit scores it too low, or that is chance, as the "),
        (0.7, (0.6, 0.8), "; gold labels put it below that: the fit scores it too high, or that is chance, as "),
        (0.95, (0.92, 0.98), "; gold labels put it above that: the two intervals do not overlap"),
        (0.85, (0.7, 0.95), ""),
    ],
)
def test_a_score_by_gold_labels_outside_of_the_interval_without_them_is_remarked_on(value, ends, said):
    fit = cs.fit("dirichlet", cs.Annotations.from_counts([[1, 0]]))
    both = {"value": value, "lower": ends[0], "upper": ends[1]}
    found = with_gold._outside(both, {"lower": 0.75, "upper": 0.89}, fit)
    assert found.startswith(said)
    assert bool(found) is bool(said)


def test_a_page_has_one_order_of_systems():
    """By both, then by gold labels, then by the fit; those that are right as often stand as by both."""
    boards = [SimpleNamespace(table=pandas.DataFrame({"system": list(names)})) for names in ("bca", "acb")]
    right = {name: Right(np.array(own)) for name, own in (("b", [1, 0]), ("a", [1, 0]), ("c", [0, 0]))}
    found = SystemsByGold(right, leads=True)
    assert SystemsByGold().order(boards[0]) == list("bca")
    assert found._replace(leads=False).order(boards[0]) == list("bca")
    assert found.order(boards[0]) == list("bac")
    both = found.with_both(boards[1])
    assert (both.order(boards[0]), list(both.right), both.first) == (list("acb"), list("abc"), "“a” and “b”")
    assert found.with_both(None) is found


def test_figure_table_and_commands_have_the_order_by_gold_labels(tmp_path):
    """The vote has them the other way about: a system that repeats it is first."""
    random = np.random.default_rng(5)
    truth = random.integers(0, 3, ITEMS)
    said = np.where(random.random((ITEMS, 5)) < 0.2, truth[:, None], random.integers(0, 3, (ITEMS, 5)))
    votes = (said[:, :, None] == np.arange(3)).sum(axis=1).argmax(axis=1)
    item, who = np.indices(said.shape)
    gold = np.where(np.arange(ITEMS) < GOLD, truth, -1)
    data = cs.Annotations.from_codes(item.ravel(), who.ravel(), said.ravel(), gold=gold)
    fit = cs.fit("majority-vote", data)
    given = {
        name: {"item": list(range(ITEMS)), "class": own.tolist()} for name, own in (("copies", votes), ("good", truth))
    }
    assert cs.compare(fit, given).table["system"][0] == "copies"
    assert cs.compare(fit, given, gold="use").table["system"][0] == "good"
    fit.save(tmp_path / "run")
    text = cs.report(cs.load_fit(tmp_path / "run"), given, path=tmp_path / "page.html").read_text(encoding="utf-8")
    for part in (r"<td[^>]*>(good|copies)</td>", r"<text[^>]*>(good|copies)</text>", r"(good|copies)\.csv"):
        assert re.findall(part, text)[:2] == ["good", "copies"]


def test_an_own_look_has_the_range_of_annotators_fitted_anew():
    data, systems = crowd()
    fit = cs.fit("dawid-skene", data)
    unknown, said = cs.compare(fit, systems), cs.compare(fit, systems, provenance="independent")
    found = with_gold.with_refits(fit, unknown, systems, "top-1", {})
    assert HELD_FIXED in unknown.notes
    assert HELD_FIXED not in found.notes
    assert found.own_texts(4) == said.own_texts(4)
    assert with_gold.with_refits(fit, said, systems, "top-1", {}) is said


def test_gold_labels_of_chosen_items_are_not_taken_for_a_random_sample(tmp_path):
    data, systems = crowd()
    certain = cs.fit("dawid-skene", data.replace(gold=None)).labels()["certainty"].to_numpy()
    worst = np.isin(np.arange(ITEMS), np.argsort(certain)[:GOLD])
    data, systems = crowd(lambda truth: worst)
    fit = cs.fit("dawid-skene", data)
    assert any(NOT_RANDOM in note for note in cs.compare(fit, systems, gold="use").notes)
    assert with_gold.anchored(fit, systems, "top-1", {}) is None
    assert "annotations together" not in page(cs.report(fit, systems, path=tmp_path / "page.html"))


@pytest.mark.parametrize(
    ("counts", "margins"),
    [
        ([[2, 1, 1], [4, 0, 0], [2, 2, 0], [3, 1, 0]], [0.25, 1.0, 0.0, 0.5]), ([[1, 0, 0], [1, 1, 1]], [1.0, 0.0]),
        ([[0, 0, 3], [0, 1, 3]], [1.0, 0.5]),
    ],
)  # fmt: skip
def test_items_of_a_vote_stand_in_the_order_of_their_margins(counts, margins, tmp_path):
    fit = cs.fit("majority-vote", cs.Annotations.from_counts(counts))
    assert _margins(fit).tolist() == margins
    text = cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8")
    table = text.partition("ties and narrow wins first")[2]
    shown = re.findall(r'<td class="number" data-v="[\d.]+">(\d\.\d\d)</td>', table)
    assert shown[: len(margins)] == [f"{one:.2f}" for one in sorted(margins)]


def test_annotators_are_named_by_gold_labels_where_most_have_some():
    import pandas

    frame = pandas.DataFrame({"annotator": list("abc"), "gold_items": [10, 5, 4], "gold_right": [9, 1, 0]})
    assert labels_by_gold(frame) == {"a": 0.9, "b": 0.2}
    assert labels_by_gold(frame.assign(gold_items=[10, 4, 4])) == {}
    assert labels_by_gold(frame[["annotator"]]) == {}


def test_matrices_are_of_those_who_err_most():
    import pandas

    frame = pandas.DataFrame({"annotations": [30, 40, 29, 50], "accuracy": [0.9, 0.5, 0.1, 0.7]})
    assert _least_accurate(frame, "accuracy", 30, 2).tolist() == [1, 3]


def test_a_check_that_leaves_out_the_dependence_says_so(tmp_path):
    data, _ = crowd()
    for rho, said in ((0.3, True), (0.0, False)):
        fit = cs.fit("dawid-skene", data, dependence=rho)
        words = predictive_section(cs.agreement(fit, num_predictive=40), fit.truth.dependence).blocks
        told = "this does not check how much they err together, for which certainties suppose dependence 0.30."
        assert any(isinstance(one, str) and told in one for one in words) is said
    shown = page(cs.report(fit, path=tmp_path / "page.html"))
    assert "A sampler of the same model shows by how much: cs.fit('dawid-skene', data, dependence=" in shown
    assert "method='gibbs'" in shown
