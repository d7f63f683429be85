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
from consilience.pages.annotators_by_gold import clearly_low
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
        "Quote the accuracies that use gold labels and annotations together: "
        f"{texts['good']} for “good” and {texts['poor']} for “poor”, a lead of {ahead_by(found)}",
        "(95 % intervals in brackets). This assumes that the items with gold labels, the first 40 of the data, are a "
        "random sample.",
        "system accuracy to quote [95 %] P(best) right on 40 gold labels [95 %] good",
        f"What these scores are made of. Intervals by the {word} {'are' if word == 'vote' else 'may be'} too narrow. "
        f"system accuracy by the {word} alone 95 % interval, all items like these",
        "gold labels matched" if word == "vote" else "gold labels matched; the fit expects ",
        f" accuracy of “good” {texts['good'].partition(' ')[2]}",
        "“good” alone is right on ",
        f"Leaderboard “good” {texts['good']}, P(best) {best[0]} Systems by the accuracy to quote, the highest first",
        f"probability that “good” is best of 2 systems {best[0]}",
    ):
        assert words in shown
    assert shown.count("gold labels and annotations together") == 1
    if word == "vote":
        assert "Intervals by the vote are too narrow." in shown
        assert "Fit dawid-skene instead, which says how sure it is of each label and weights annotators by " in shown
        assert "Please cite" not in shown
    else:
        unsure = (fit.labels()["certainty"] < 0.9).sum()
        tile = rf"below 0\.9 \((\d+ to \d+) if annotators make the same errors less or more often\) {unsure} of 120 "
        ends = re.search(tile, shown)[1]
        assert (
            f"By the fit, {unsure} items have a certainty (the probability that their label is right) below 0.9. The "
            f"number may be {ends} (95 %), because it is not known how often annotators make the same errors."
        ) in shown
        assert re.search(r"gold labels matched; the fit expects \d+\.\d \d+ of 40 ", shown)
        assert "Intervals by the fit may be too narrow." in shown
        assert "The 95 % intervals may be too narrow, because coordinate ascent underestimates uncertainty." in shown
    assert "anchor the scores" not in shown.lower()
    assert "first 40 of the data, which is a random sample only if the data are in random order." in shown
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
    assert found == (said and f"On the items with gold labels, {said}")
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
        ((0.6, 0.4), "open", "which system is better (“a” with probability 0.6", "Which system is better is "
         "open: by 40 gold labels and all annotations “a” is right on 0.82 ["),
        ((1.0, 0.0), "> 0.9", "probability that “a” is best of 2 systems", "“a” is the best of 2 systems with "
         "probability > 0.9: by "
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
    own, others = agree[:GOLD].mean(), agree[GOLD:].mean()
    assert f"{own:.2f} of the pairs of annotations agree, and on the 80 others {others:.2f}, a difference of" in words
    shares = f"{tied[:GOLD].mean():.2f} of the items with gold labels and on {tied[GOLD:].mean():.2f} of the others."
    assert f"Votes tie on {shares}" in words
    assert words.endswith("first 40 of the data, which is a random sample only if the data are in random order.")
    last = crowd(lambda truth: np.arange(ITEMS) >= GOLD)[0]
    assert "are the first" not in compared_with_others(cs.fit("majority-vote", last))
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
    for part in (r"<td[^>]*>(good|copies)</td>", r"<text[^>]*>(good|copies)</text>"):
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


@pytest.mark.parametrize(
    ("number", "right", "named"),
    [
        # Two of nine right is low by chance, of twelve annotators.
        ([9, 10, 10, 10, 10, 13, 11, 11, 11, 13, 6, 6], [2, 3, 4, 5, 5, 9, 9, 10, 10, 12, 6, 6], []),
        ([9, 60, 60], [0, 40, 41], ["a"]), ([60, 60, 0], [20, 55, 0], ["a"]), ([5, 5, 5], [5, 5, 5], []),
        ([40, 40, 80, 80], [4, 6, 70, 72], ["a", "b"]),
    ],
)  # fmt: skip
def test_only_annotators_who_are_clearly_lower_than_the_others_are_named(number, right, named):
    assert clearly_low("abcdefghijkl"[: len(number)], number, right) == named


def test_an_annotator_who_is_low_by_chance_is_not_named_among_the_next_steps(tmp_path):
    """Of few gold labels nobody is named; of many the one is who guesses."""
    random = np.random.default_rng(2)
    truth = random.integers(0, 2, 200)
    said = np.where(random.random((200, 4)) < [0.9, 0.9, 0.9, 0.35], truth[:, None], 1 - truth[:, None])
    item, who = np.indices(said.shape)
    for known, every, named in ((20, 10, False), (120, 1, True)):
        gold = np.where(np.arange(200) < known, truth, -1)
        kept = (item % every == 0) | (who < 3)  # of the last one the labels of every tenth item alone
        names = [f"i{one}" for one in item[kept]], np.array(list("wxyz"))[who[kept]].tolist()
        known_labels = ["" if one < 0 else str(one) for one in gold[item[kept]]]
        columns = dict(zip(("item", "annotator"), names, strict=True))
        columns |= {"label": [str(one) for one in said[kept]], "gold": known_labels}
        data = cs.read_annotations(columns)
        shown = page(cs.report(cs.fit("majority-vote", data), path=tmp_path / "page.html", force=True))
        who_is = "“z”, which match the gold labels clearly less often than those of the others"
        assert (f"Review the labels of {who_is}" in shown) is named
        assert ("No single annotator matches them clearly less often than the others do" in shown) is not named


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
    told = "so it shows how wide the intervals should be if the model is right. It does not show whether the model is "
    assert f"{told}right. To sample: cs.fit('dawid-skene', data, dependence=" in shown
    assert "method='gibbs'" in shown


def test_the_lead_is_one_number_wherever_it_stands(tmp_path):
    """Of systems that are hardly apart, as of the sample files."""
    data, systems = crowd()
    almost = {"good": systems["good"], "twin": {**systems["good"], "class": systems["good"]["class"][:]}}
    for item in (1, 60):
        almost["twin"]["class"][item] = (almost["twin"]["class"][item] + 1) % 3
    fit = cs.fit("dawid-skene", data)
    shown = page(cs.report(fit, almost, path=tmp_path / "page.html"))
    lead = re.search(r", a lead of (\S+) \[", shown)[1]
    assert float(lead) > 0
    assert set(re.findall(r"lead of (\S+) \[", shown)) == {lead}
    assert "seen here" not in shown  # how many labels would show so small a lead is not known
