"""What the pages of labels, votes and rankings begin with: it says no more than was found, whatever there is."""

import dataclasses
import re
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

import consilience as cs
from consilience.models.truth.against_gold import LEAST_ITEMS
from consilience.notes import Level
from consilience.pages import Alert, first_screen
from consilience.pages.first_screen import POOR, _bands, _shares_of_votes
from consilience.pages.gold import SystemsByGold
from consilience.pages.items import below
from consilience.system_figures import Scores, counts, scores_at_a_glance
from tests.consilience.test_with_gold import ITEMS, crowd

# Small data are poor data, and fits of them say so.
pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def begins(fit, tmp_path, systems=None):
    """Return the verdict of a page, and whether a figure stands beside its findings."""
    html = cs.report(fit, systems, path=tmp_path / "page.html", force=True).read_text(encoding="utf-8")
    html = unescape(html.replace("\N{NO-BREAK SPACE}", " "))
    return re.search(r'<p class="verdict">(.*?)</p>', html)[1], "<svg" in html.partition("</header>")[0]


def some(number):
    """Return so many systems, each worse than the one before, and the crowd that they are scored against."""
    data, systems = crowd()
    right = [one["class"] for one in systems.values()]
    made = {f"s{place}": {"item": list(range(ITEMS)), "class": right[min(place, 1)]} for place in range(number)}
    return data, made


LABELS = (
    r"\d+ of 120 labels have a certainty of 0.9 or more; (\d+|none) still (do|does) if annotators err together as "
    "often as they plausibly may"
)


@pytest.mark.parametrize(
    ("model", "gold", "number", "said"),
    [
        ("dawid-skene", True, 0, LABELS),
        ("dawid-skene", False, 0, LABELS + r"\. Nothing here checks these certainties"),
        ("dawid-skene", True, 1, LABELS + r"\. “s0” is right on \S+ \[\S+, \S+\] of the items \(95 % in brackets\)"),
        ("dawid-skene", True, 2, LABELS + r"\. “s0” is the best of 2 systems with probability above 0\.9"),
        ("dawid-skene", True, 8, LABELS + r"\. “s0” is the best of 8 systems with probability above 0\.9"),
        ("dawid-skene", False, 2, LABELS + r"\. Nothing here checks these certainties\. “s0” is the best of 2 .*"),
        (
            "majority-vote", True, 0,
            r"By 40 gold labels the vote is right on [\d.]+ to [\d.]+ of items \(95 %[^;]*\)",
        ),
        (
            "majority-vote", False, 0,
            r"The vote leaves \d+ of 120 items tied",
        ),
        (
            "majority-vote", True, 2,
            r"By .* of items \(95 %[^;]*\)\. “s0” is the best of 2 systems with probability above 0\.9",
        ),
        ("majority-vote", False, 2, r".* tied\. It puts “s0” first without saying how sure that is"),
    ],
)  # fmt: skip
def test_a_page_of_labels_begins_with_what_can_be_used(model, gold, number, said, tmp_path):
    data, systems = some(number)
    fit = cs.fit(model, data if gold else data.replace(gold=None))
    verdict, figure = begins(fit, tmp_path, systems or None)
    assert re.fullmatch(f"{said}\\.", verdict), verdict
    assert figure


@pytest.mark.parametrize(
    ("votes", "model", "said"),
    [
        ([[9, 0]], "dirichlet", "The one label has a certainty of 0.9 or more, which nothing here checks."),
        ([[2, 2]], "dirichlet", "The one label has a certainty below 0.9, which nothing here checks."),
        ([[9, 0], [8, 0]], "dirichlet", "All 2 labels have a certainty of 0.9 or more, which nothing here checks."),
        ([[9, 0], [2, 2]], "dirichlet", "1 of 2 labels has a certainty of 0.9 or more, which nothing here "
         "checks."),
        ([[2, 2]], "majority-vote", "The vote leaves 1 of 1 item tied."),
    ],
)  # fmt: skip
def test_a_page_of_one_item_has_a_verdict_too(votes, model, said, tmp_path):
    assert begins(cs.fit(model, cs.Annotations.from_counts(votes)), tmp_path) == (said, True)


def test_rankings_say_that_reliability_is_assumed(tmp_path):
    rows = [(item, who, rank, name) for item in range(2) for who in range(2) for rank, name in enumerate("abc", 1)]
    columns = dict(zip(("item", "annotator", "rank", "class"), map(list, zip(*rows, strict=True)), strict=True))
    fit = cs.fit("plackett-luce", cs.read_rankings(columns), draws=50)
    verdict, figure = begins(fit, tmp_path)
    assert re.fullmatch(
        r"The fit is at least 0.9 certain which class is most plausible for (none of 2|all 2|1 of 2) items, if "
        r"annotators are as reliable as assumed\.", verdict,
    )  # fmt: skip
    assert figure


def test_a_poor_fit_has_no_other_verdict(monkeypatch, tmp_path):
    fit = cs.fit("dawid-skene", crowd()[0])
    red = [Alert("Read this first.", ["It is poor."], Level.error)]
    monkeypatch.setattr(first_screen, "alerts", lambda fit: red)
    assert begins(fit, tmp_path)[0] == POOR


@pytest.mark.parametrize(
    ("items", "off", "doubted", "said"),
    [
        (40, "sure", True, ", but by 40 gold labels the fit is too sure"),
        (40, "", True, ", which 40 gold labels neither confirm nor refute"),
        (40, "", False, ""), (3, "sure", False, ", which only 3 gold labels check"),
        (1, "", False, ", which only 1 gold label checks"),
    ],
)  # fmt: skip
def test_gold_labels_that_speak_against_a_fit_are_in_the_verdict(items, off, doubted, said):
    checked = "told" if items >= LEAST_ITEMS else ""
    gold = SimpleNamespace(score=SimpleNamespace(items=items), off=off, checked=checked)
    fit = cs.fit("dirichlet", cs.Annotations.from_counts([[2, 1]]))
    assert first_screen._against(fit, gold, doubted) == said


def test_a_page_leads_with_the_labels_that_are_certain_whatever_is_not_known(monkeypatch):
    """What a finding says of gold labels is not said, and systems have a sentence of their own."""
    fit = cs.fit("dirichlet", cs.Annotations.from_counts([[9, 0], [2, 2]]))
    gold = SimpleNamespace(score=SimpleNamespace(items=40), off="", checked="told")
    neither = ", which 40 gold labels neither confirm nor refute"
    sure, often = "1 of 2 labels has a certainty of 0.9 or more", "if annotators err together as often as they"
    for throughout, systems, said in (
        (None, "“a” is the best", f"{sure}{neither}, and “a” is the best."),
        (1, "which one is better is open", f"{sure}; 1 still does {often} plausibly may. Which one is better is open."),
        (0, "", f"{sure}; none still does {often} plausibly may."),
    ):
        monkeypatch.setattr(first_screen, "of_systems", lambda *_, own=systems: own)
        found = first_screen.verdict(fit, cs.certainty(fit), gold, True, object(), SystemsByGold(), throughout)
        assert found == said


def test_a_certainty_just_below_a_bound_is_below_it():
    """Counts go by certainties as they are, and not as they are written."""
    fit = cs.fit("dirichlet", cs.Annotations.from_counts([[9, 0]] * 3))
    top = dataclasses.replace(cs.certainty(fit), items=np.array([0.89999, 0.9, 0.6 + 0.3]))
    assert below(top) == 1
    assert first_screen._bands(top) == {"0.9 or more": 2, "0.7 to 0.9": 1, "0.5 to 0.7": 0, "below 0.5": 0}


def test_items_are_counted_in_bands_of_certainty_and_of_votes():
    fit = cs.fit("dirichlet", cs.Annotations.from_counts([[9, 0, 0], [2, 2, 0], [3, 2, 0], [2, 1, 2]]))
    top = cs.certainty(fit)
    bands = _bands(top)
    assert list(bands) == ["0.9 or more", "0.7 to 0.9", "0.5 to 0.7", "below 0.5"]
    edges = np.array([0, 0.5, 0.7, 0.9, np.inf])
    assert list(bands.values()) == np.histogram(top.items.round(3), edges)[0][::-1].tolist()
    vote = cs.fit("majority-vote", cs.Annotations.from_counts([[3, 0, 0], [2, 1, 0], [2, 1, 1], [1, 1, 0], [0, 1, 0]]))
    found = _shares_of_votes(vote, cs.certainty(vote))
    assert found == {"all": 2, "more than half": 1, "half or less": 1, "tied": 1}


def test_figures_of_the_first_screen_draw_what_they_are_given():
    low, high = np.array([0.5, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1]), np.array([0.9, 0.6, 0.2, 0.2, 0.2, 0.2, 0.2])
    names, scores = list("abcdefg"), Scores("both", (low + high)[None] / 2, low, high)
    ax = scores_at_a_glance(names, scores, "Accuracy", scores._replace(label="alone"), {"truth": low})
    assert isinstance(ax.figure, Figure)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == names[:6]
    assert ax.get_title("left") == "Accuracy, the first 6 of 7"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["both", "alone"]
    assert [text.get_text() for text in ax.texts] == ["truth"]  # beside its mark
    thick, thin = (lines.get_segments() for lines in ax.collections)
    assert [one[:, 0].tolist() for one in thick][:2] == [[0.5, 0.9], [0.4, 0.6]]
    assert len(thin) == 6
    assert scores_at_a_glance(names, scores, "Accuracy", note="so wide").get_xlabel() == "so wide"
    bars = counts({"all": 3, "tied": 0}, "Votes")
    assert [patch.get_width() for patch in bars.patches] == [3, 0]
    assert {text.get_text() for text in bars.texts} == {"3", "0"}


@pytest.mark.parametrize(("p_best", "said"), [(0.6, "which system is better is open"), (1.0, "“a” is the best of 2 ")])
def test_no_system_is_called_the_best_where_that_is_open(p_best, said):
    """Of draws that put the first ahead in that share of them."""
    ahead = np.random.default_rng(0).permutation(np.where(np.arange(1000) < 1000 * p_best, 0.1, -0.1))
    draws = 0.8 + np.stack([ahead, -ahead])
    board = cs.Comparison(
        systems=("a", "b"), title="top-1 accuracy", values=np.array([0.82, 0.8]), draws=draws, truth_draws=draws,
        item_draws=draws, points=None, num_items=120, digits=1,
    )  # fmt: skip
    fit = cs.fit("dirichlet", cs.Annotations.from_counts([[1, 0]]))
    assert first_screen.of_systems(board, fit, SystemsByGold(anchored=board)).startswith(said)


@pytest.mark.parametrize("known", [None, "annotations", "independent"])
def test_a_system_has_one_dot_and_an_interval_for_each_reading(known):
    """The ends of both are those of the leaderboard; a reading that is known not to hold is not drawn."""
    data, systems = some(2)
    fit = cs.fit("dawid-skene", data.replace(gold=None))
    board = cs.compare(fit, systems, provenance={"s0": known or "unknown", "s1": "unknown"})
    names = [str(name) for name in board.table["system"]]
    _, ax = first_screen.figure(fit, cs.certainty(fit), board, SystemsByGold())
    copied, looked = (text.get_text() for text in ax.get_legend().get_texts())
    assert copied == "predictions made from the annotations"
    two = np.nanmax(np.ptp(board.readings.own_range, axis=0)) > 0.005  # dots of a system
    assert looked == f"system looked at the items itself{' (dots: two assumptions)' * bool(two)}"
    dots, *grey = ax.get_lines()
    readings = [board.readings.own_range[end, [board.systems.index(name) for name in names]] for end in (0, 1)]
    for own, drawn in zip(readings, grey, strict=True):  # the lowest and the highest reading of an own look
        seen = np.isfinite(drawn.get_xdata())
        np.testing.assert_allclose(drawn.get_xdata()[seen], own[seen])
    thick, thin = (
        {round(own[0, 1] - shift): own[:, 0] for own in lines.get_segments() if np.isfinite(own).any()}
        for lines, shift in zip(ax.collections, (0, 0.27), strict=True)
    )
    for place, row in enumerate(board.table.itertuples()):
        ends = [own.get(place, [np.nan, np.nan]) for own in (thick, thin)]
        np.testing.assert_allclose([np.nanmin(ends), np.nanmax(ends)], [row.lower, row.upper])
        only = known if row.system == "s0" else None
        assert [bool(np.isnan(one.get_xdata()[place])) for one in grey] == [only == "annotations"] * 2
        assert bool(np.isnan(dots.get_xdata()[place])) is (only == "independent")
        assert [bool(np.isnan(own).all()) for own in ends] == [only == "independent", only == "annotations"]
    assert names == [tick.get_text() for tick in ax.get_yticklabels()]


def test_scores_that_are_not_to_be_quoted_are_not_drawn_beside_those_that_are():
    data, systems = some(2)
    fit = cs.fit("dawid-skene", data)
    board = cs.compare(fit, systems, gold="use")
    gold = SystemsByGold(anchored=board)
    items, ax = first_screen.figure(fit, cs.certainty(fit), cs.compare(fit, systems), gold)
    assert items.get_title(loc="left") == "Certainty of the leading label"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["accuracy to quote, 95 %"]
    assert len(ax.collections) == 1


def test_a_vote_draws_how_far_its_labels_won_and_no_systems():
    data, systems = some(2)
    fit = cs.fit("majority-vote", data)
    ax = first_screen.figure(fit, cs.certainty(fit), cs.compare(fit, systems), SystemsByGold())
    assert ax.get_title(loc="left") == "Share of the votes of the label that won"
