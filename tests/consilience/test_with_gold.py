"""What pages say of systems by gold labels and annotations together, and in which order they show what was voted on."""

import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from scipy import stats

import consilience as cs
from consilience.data.accept import as_systems
from consilience.evaluation.anchoring import NOT_RANDOM
from consilience.evaluation.classes import resolve
from consilience.evaluation.comparison import HELD_FIXED
from consilience.pages import with_gold
from consilience.pages.agreement import predictive_section
from consilience.pages.annotators_by_gold import labels_by_gold
from consilience.pages.crowd import _least_accurate
from consilience.pages.gold import Right, SystemsByGold, beside_gold, right_by_gold
from consilience.pages.gold_items import agreement_of_items, compared_with_others, difference
from consilience.pages.items import _margins
from consilience.pages.told_apart import ahead_by
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
        f"“good” is the best of 2 systems with probability {best[0].replace('> ', 'above ')}.",
        f"Quote the scores by 40 gold labels and all annotations: “good” is right on {texts['good']} of the items "
        f"and “poor” on {texts['poor']}, ", f"a difference of {ahead_by(found)} (95 % in brackets). That",
        " (95 % in brackets). That supposes that the items with a gold label, the first 40 of the data, are a random "
        "sample.",
        "Of the scores of a system quote “gold labels and annotations”, which uses both; the other columns are what it "
        "is made of.",
        "of the vote's labels are the gold label on the first 40 items" if word == "vote" else
        "of the fit's labels are the gold label on the first 40 items",
        "top-1 accuracy of “good”, by gold labels and annotations together (",
        ", 95 % if a random sample) ",
        "“good” is right where “poor” is not on",
        f"Leaderboard “good” {texts['good']}, P(best) {best[0]} Systems by gold labels and annotations together, the "
        "highest first",
        f"P(“good” is best of 2 systems) {best[0]}",
    ):
        assert words in shown
    corrected = "Scores by gold labels and annotations together are corrected for wrong labels that won, and their "
    assert shown.count(corrected) == (word == "vote")  # in one box, that of the vote
    if word == "vote":
        assert shown.index(corrected) < shown.index(", a tie counting by its share (")
        assert "interval for all items like these (the true interval is wider)" in shown
        assert ", 95 %, or wider" not in shown
        assert "Fit dawid-skene instead, which says how sure it is of each label, and weighs annotators by " in shown
        assert "Please cite" not in shown
    else:
        sure = fit.labels()["certainty"].mean()
        assert re.search(
            r"of 120 items with a certainty below 0\.9 \(\d+ to \d+, depending on how often annotators make the same "
            rf"errors\); on average it is {sure:.3f}", shown,
        )  # fmt: skip
        assert re.search(r", 95 % if a random sample; the fit expects \d+\.\d\) \d+ of 40 ", shown)
        assert "meant as 95 %, all items like these" in shown
        assert "meant to hold 95 %, and may hold less: coordinate ascent has too little spread." in shown
    assert "anchor the scores" not in shown.lower()
    assert "They are the first 40 of the data: a random sample only if the order is random." in shown
    assert "is it with probability" not in shown


@pytest.mark.parametrize(
    ("value", "stated", "said"),
    [
        # Differences 1, 0, 0, 0, 0: mean 0.2, its error sqrt(0.2 / 5) = 0.2, and t with 4 degrees of freedom 2.776.
        (
            0.9, [0, 1, 1, 1, 1],
            "“a” scores 0.20 [−0.36, 0.76] more by gold labels than by the fit, which may be chance.",
        ),
        (0.7, [1, 1, 1, 1, 1], ""),  # all alike: an interval without width would mean nothing
        (0.95, [0.5, 0.5, 0.5, 0.5, 0.4], "“a” scores 0.520 [0.464, 0.576] more by gold labels than by the fit."),
        (0.85, [0, 1, 1, 1, 1], ""),  # inside
    ],
)
def test_a_score_by_gold_labels_outside_of_the_interval_without_them_is_remarked_on(value, stated, said):
    """By the paired difference on the gold items, and not by whether intervals overlap."""
    fit = cs.fit("dirichlet", cs.Annotations.from_counts([[1, 0]]))
    right = Right(np.ones(5), np.array(stated, float))
    both = {"system": "a", "value": value}
    found = with_gold._outside(both, {"lower": 0.75, "upper": 0.89}, right, fit)
    assert found == (said and f"On the gold items {said}")
    other = Right(right.stated, right.each)
    less = with_gold._outside(both, {"lower": 0.75, "upper": 0.89}, other, fit)
    assert less == found.replace(" more by", " less by")


def test_what_systems_have_by_annotations_is_of_the_gold_items(tmp_path):
    """A vote without ties gives a label all or nothing: the share of gold items on which a system repeats it."""
    data, systems = crowd(lambda truth: np.arange(ITEMS) >= ITEMS - GOLD)
    fit = cs.fit("majority-vote", data)
    found = {name: right_by_gold(
        fit, beside_gold(fit), cs.compare(fit, as_systems(fit, systems, None)), as_systems(fit, systems, None),
        resolve("top-1"), {},
    ).right[name] for name in systems}  # fmt: skip
    item, label = np.asarray(data.item), np.asarray(data.label)
    votes = np.array([np.bincount(label[item == one], minlength=3) for one in range(ITEMS)])
    share = (votes == votes.max(axis=1, keepdims=True)) / (votes == votes.max(axis=1, keepdims=True)).sum(1)[:, None]
    last = slice(ITEMS - GOLD, None)
    for name, own in systems.items():
        said = np.array(own["class"])
        np.testing.assert_allclose(found[name].stated, share[np.arange(ITEMS), said][last])
        assert found[name].each.sum() == (said == np.asarray(data.gold))[last].sum()


@pytest.mark.parametrize(
    ("p_best", "number", "what", "words"),
    [
        ((0.6, 0.4), "open", "which of 2 systems is best (“a” with probability 0.6", "Which system is better is "
         "open: by 40 gold labels and all annotations “a” is right on 0.82 ["),
        ((1.0, 0.0), "> 0.9", "P(“a” is best of 2 systems)", "“a” is the best of 2 systems with probability > 0.9: by "
         "40 gold labels and all annotations “a” is right on 0.8"),
    ],
)  # fmt: skip
def test_no_winner_is_named_where_there_is_none(p_best, number, what, words):
    """Of draws that put the first ahead in that share of them."""
    ahead = np.random.default_rng(0).permutation(np.where(np.arange(1000) < 1000 * p_best[0], 0.1, -0.1))
    draws = 0.8 + np.stack([ahead, -ahead])
    board = cs.Comparison(
        systems=("a", "b"), title="top-1 accuracy", values=np.array([0.82, 0.8]), draws=draws, truth_draws=draws,
        item_draws=draws, points=None, num_items=120, digits=1,
    )  # fmt: skip
    name, shown = list(with_gold.anchored_numbers(board, "top-1 accuracy").items())[-1]
    assert (shown, name.startswith(what)) == (number, True)
    assert with_gold.anchored_words(board, 40).startswith(words)


def test_items_with_gold_labels_are_set_beside_the_others():
    """Of three labels of an item all three pairs agree, or one; half of the last twenty tie."""
    counts = [[3, 0, 0]] * 10 + [[2, 1, 0]] * 10 + [[2, 1, 0]] * 10 + [[1, 1, 1]] * 10
    data = cs.Annotations.from_counts(counts, gold=[0] * 20 + [-1] * 20)
    agree, tied = agreement_of_items(data)
    np.testing.assert_allclose(agree, [1] * 10 + [1 / 3] * 20 + [0] * 10)
    assert tied.sum() == 10
    data = crowd()[0]
    words = compared_with_others(cs.fit("majority-vote", data))
    agree, tied = agreement_of_items(data)
    apart, low, high = difference(agree[:GOLD], agree[GOLD:])
    test = stats.ttest_ind(agree[:GOLD], agree[GOLD:], equal_var=False).confidence_interval()
    np.testing.assert_allclose([apart, low, high], [agree[:GOLD].mean() - agree[GOLD:].mean(), *test])
    assert f"agree in {agree[:GOLD].mean():.2f} of pairs, on the 80 others in {agree[GOLD:].mean():.2f} (diff" in words
    assert f"{tied[:GOLD].mean():.2f} and {tied[GOLD:].mean():.2f} tie." in words
    assert words.endswith("They are the first 40 of the data: a random sample only if the order is random.")
    last = crowd(lambda truth: np.arange(ITEMS) >= GOLD)[0]
    assert "They are the first" not in compared_with_others(cs.fit("majority-vote", last))
    assert compared_with_others(cs.fit("majority-vote", data, gold="use")) == ""
    assert compared_with_others(cs.fit("majority-vote", data.replace(gold=None))) == ""


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
