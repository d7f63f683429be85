"""What pages say of systems that gold labels do not tell apart: what it would take, and what their scores suppose."""

import re

import numpy as np
import pytest
from scipy import stats

import consilience as cs
from consilience.pages import ranking_check, with_gold
from consilience.pages.gold import Right, SystemsByGold
from consilience.pages.gold_items import if_random, of_the_first
from consilience.pages.gold_needed import least_lead, more_gold, needed, to_tell_apart
from tests.consilience.test_best_system import ranked
from tests.consilience.test_gold_page import page
from tests.consilience.test_with_gold import crowd

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


@pytest.mark.parametrize(("lead", "discordant"), [(0.1, 0.2), (0.05, 0.15), (0.08, 0.1)])
def test_so_many_gold_labels_tell_a_lead_four_times_in_five(lead, discordant):
    """By simulation of McNemar's test with the normal law; and the least lead that they tell is that one."""
    number = needed(lead, discordant)
    random = np.random.default_rng(0)
    shares = [(discordant + lead) / 2, (discordant - lead) / 2, 1 - discordant]
    more, less, _ = random.multinomial(number, shares, 4_000).T
    z = (more - less) / np.sqrt(np.maximum(more + less, 1))
    assert (z > stats.norm.ppf(0.975)).mean() == pytest.approx(0.8, abs=0.05)
    assert least_lead(number, discordant) == pytest.approx(lead, rel=0.02)


def sides(only_first, only_second, number=30):
    """Which gold labels two systems have right: each alone so many, and both the others."""
    own, other = np.ones((2, number))
    other[:only_first] = 0
    own[only_first : only_first + only_second] = 0
    return own, other


ALL_OF_THEM = (
    "To tell “a” and “b” apart, test both on more than these 150 items: gold labels for all of them would show only a "
    "lead of about 0.09 or more (four times in five, if exactly one system is right on 4 in 30 items, as so far)"
)


@pytest.mark.parametrize(
    ("only", "lead", "items", "said"),
    [
        ((2, 2), 0.0163, 150, ALL_OF_THEM), ((2, 2), 0.004, 150, ALL_OF_THEM),
        ((5, 1), 0.13, 150, "Get gold labels for about 61 more items, chosen at random: 91 gold labels would show a "
         "lead of 0.13, as seen here, four times in five, if exactly one system is right on 6 in 30 items, as so far"),
        ((0, 0), 0.02, 150, ""),  # nothing tells how often one alone is right
        ((2, 2), 0.02, 30, ""),  # all items have one
    ],
)  # fmt: skip
def test_what_more_gold_labels_would_tell_is_said(only, lead, items, said):
    found = to_tell_apart(*sides(*only), lead, items, "ab")
    assert found.endswith(said)
    assert bool(found) is bool(said)


def test_where_systems_are_told_apart_no_more_labels_are_asked_for(tmp_path):
    data, systems = crowd()
    fit = cs.fit("majority-vote", data)
    board = cs.compare(fit, systems)
    for only, asked in (((15, 1), False), ((3, 2), True)):
        first, second = (Right(one) for one in sides(*only))
        gold = SystemsByGold({board.systems[0]: first, board.systems[1]: second}, leads=True)
        assert bool(more_gold(fit, gold, board)) is asked
        assert not more_gold(fit, gold._replace(leads=False), board)
    shown = page(cs.report(fit, systems, path=tmp_path / "page.html"))
    assert "Get gold labels for" not in shown
    right = systems["good"]["class"]
    alike = {
        name: {**systems["good"], "class": [(one + (not place % every)) % 3 for place, one in enumerate(right)]}
        for name, every in (("one", 9), ("other", 10))
    }
    shown = page(cs.report(fit, alike, path=tmp_path / "page.html", force=True))
    assert ". Neither system is shown to be better." in shown
    assert "Quote the accuracies that use gold labels and annotations together: " in shown
    assert "What to do next Fit dawid-skene instead" in shown
    assert "cs.report(cs.fit('dawid-skene', data), predictions, path='dawid-skene.html')" in shown
    assert "gold labels for " in shown.partition("What to do next")[2].partition("Leaderboard")[0]
    assert re.search(r" accuracy of “\w+” \[[\d., ]+\] and “\w+” \[[\d., ]+\] 0\.\d+ and 0\.\d+ ", shown)
    assert "--provenance" not in shown  # which scores with gold labels do not depend on


@pytest.mark.parametrize(
    ("gold", "first", "said"),
    [
        ([0, 0, -1], True, " This assumes that the items with gold labels, the first 2 of the data, are a random "
         "sample."),
        ([0, -1, 0], False, " This assumes that the items with gold labels are a random sample."),
        ([0, 0, 0], False, ""), (None, False, ""),
    ],
)  # fmt: skip
def test_what_a_sample_supposes_is_said_where_not_all_have_a_gold_label(gold, first, said):
    fit = cs.fit("majority-vote", cs.Annotations.from_counts([[2, 1]] * 3, gold=gold))
    assert of_the_first(fit) is first
    assert if_random(fit) == said


def board(*values):
    """Two systems with scores and draws around them, which do not tell them apart."""
    draws = np.array(values)[:, None] + np.random.default_rng(1).normal(0, 0.05, (2, 1_000))
    return cs.Comparison(
        systems=("a", "b"), title="top-1 accuracy", values=np.array(values), draws=draws, truth_draws=draws,
        item_draws=draws, points=None, num_items=120,
    )  # fmt: skip


@pytest.mark.parametrize(("values", "digits"), [((0.9049, 0.8851), 2), ((0.8801, 0.8751), 3)])
def test_a_difference_that_does_not_follow_from_what_is_shown_has_one_digit_more(values, digits):
    words = with_gold.anchored_words(board(*values), 40)
    first, second, apart = re.search(r"right on (\S+) \[.* on (\S+) \[.*difference of (\S+) \[", words).groups()
    assert len(apart) == len("0.") + digits
    assert float(apart) == pytest.approx(float(first) - float(second), abs=0.5 * 0.1**digits)
    assert float(apart) == pytest.approx(values[0] - values[1], abs=0.006)


def test_that_annotations_alone_have_another_order_is_said():
    fit = cs.fit("majority-vote", cs.Annotations.from_counts([[2, 1]] * 3))
    both = board(0.9, 0.88)
    right = {name: Right(np.ones(30)) for name in "ab"}
    gold = SystemsByGold(right, leads=True, anchored=both)
    assert with_gold.alone_words(board(0.91, 0.89), gold, both, fit, 2) == ""
    words = with_gold.alone_words(board(0.88, 0.91), gold, both, fit, 2)
    assert words == "The vote alone puts “b” first, with 0.91, and gives “a” 0.88; this order may be chance, too."


def test_a_page_of_rankings_says_whether_the_fit_expects_their_agreement(tmp_path):
    fit, systems = ranked(["abcde", "bacde", "acbde"] * 4)
    shown = page(cs.report(fit, systems, path=tmp_path / "page.html"))
    found = ranking_check.checked(fit)
    said = ranking_check.in_words(found)
    assert "only the rankings themselves check the fit. On average, two annotators' rankings of an item agree" in shown
    assert f"On average over 12 items, {said}." in shown
    (alert,) = ranking_check.check_section(found)[1]  # all items have the same rankings
    assert f"{alert.title} {alert.texts[0]}" in shown
    assert ranking_check.check_section(found._replace(observed=found.drawn.mean()))[1] == []
    (part,), (alert,) = ranking_check.check_section(found._replace(observed=1.0, drawn=np.linspace(0, 0.5, 100)))
    assert part.gist == "same first choice not as often as the fit expects"
    assert "so annotators agree more than it expects (p = 0.02)" in alert.texts[0]
    less = ranking_check.in_words(found._replace(observed=0.0, drawn=np.linspace(0.2, 0.5, 100)))
    assert "so annotators agree less than it expects" in less
    assert ranking_check.check_section(None) == ([], [])
    assert ranking_check.checked(cs.fit("majority-vote", cs.Annotations.from_counts([[2, 1]]))) is None
