"""What pages say in one sentence and in their first figure, and what stands behind that."""

import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience import first_figures
from consilience.evaluation.comparison import TOO_NARROW
from consilience.pages.answers_against import by_expert
from consilience.pages.classes import _Found
from consilience.pages.clusters_together import shares_together
from consilience.pages.common_pairs import common_pairs
from consilience.pages.more_ratings import MoreRatings, more_ratings
from consilience.pages.offsets import offsets_of
from consilience.pages.own_errors import kinds_in_words, spread_in_words
from consilience.pages.ratings import ratings_verdict, sides_words
from consilience.pages.runs_of_views import views_verdict
from consilience.pages.sides import SURE_LEVEL, Moved, side_is_sure, sides_of, without_offsets
from consilience.pages.spread_of_ratings import Spread
from consilience.pages.who_agrees import agreement_with_others, left_out
from tests.consilience.test_ratings_page import fitted, rated

pytestmark = pytest.mark.filterwarnings("ignore:annotators rate higher or lower than others")

# Ratings --------------------------------------------------------------------------------------------------------------


def test_certainties_with_other_annotators_are_those_of_draws_that_move_together():
    data = rated(np.random.default_rng(3))[0].without_offsets()
    fit, half = fitted(data), offsets_of(data).half
    own, random = fit.posterior.mean, np.random.default_rng(0)
    width = np.sqrt(own.scale / (own.shape * own.strength))
    drawn = own.location + width * random.standard_t(2 * own.shape, (40_000, len(width)))
    moved = half / 2.7764 * random.standard_t(4, (40_000, 1))
    np.testing.assert_allclose(Moved(fit, half, 5).above(0.0), (drawn + moved >= 50).mean(axis=0), atol=0.012)
    low, high = np.quantile(drawn + moved, [0.1, 0.9], axis=0)
    np.testing.assert_allclose(2 * Moved(fit, half, 5).half_widths(0.8), high - low, rtol=0.03)
    alone = Moved(fit, 1e-9, 5).above(0.0)
    np.testing.assert_allclose(np.maximum(alone, 1 - alone), cs.certainty(fit).items, atol=1e-6)


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_the_interval_of_an_item_holds_the_threshold_where_its_side_is_open(seed):
    data = rated(np.random.default_rng(seed))[0]
    found = without_offsets(fitted(data), offsets_of(data)).sides
    holds = (found.inner[0] < 50) & (found.inner[1] > 50)
    np.testing.assert_array_equal(holds, found.certainty < (1 + SURE_LEVEL) / 2)
    assert (found.ends[0] < found.inner[0]).all()
    open_ = ~side_is_sure(found.above, 0.9)
    assert abs(holds.sum() - open_.sum()) <= 1  # which certainties are rounded for


def test_the_verdict_on_ratings_counts_sides_with_other_annotators():
    data = rated(np.random.default_rng(3))[0]
    fit, found = fitted(data), offsets_of(data)
    without = without_offsets(fit, found)
    above = without.sides.above
    high, low, open_ = without.sides.counts
    assert high + low + open_ == 40
    assert (high, low) == ((above >= 0.9).sum(), (above <= 0.1).sum())
    assert ratings_verdict(fit, without.sides, found, without) == (
        f"Of 40 items, {high} are each above 50 with at least 90 % certainty, {low} below, for other annotators like "
        f"these; report the other {open_} as open."
    )
    assert open_ >= (without.top.items < 0.9).sum()  # what moves all together makes no side surer


@pytest.mark.parametrize("systems", [False, True])
def test_what_certainties_allow_for_is_said(systems):
    """Systems are scored by the sides that the page states."""
    data = rated(np.random.default_rng(3))[0]
    fit, offsets = fitted(data), offsets_of(data)
    without = without_offsets(fit, offsets)
    said = sides_words(fit, without.sides, offsets, without, systems=systems)
    scores = " and scores of systems" * systems
    assert f"; certainties{scores} include this." in said
    assert ("close call" in said) is bool((np.abs(without.sides.certainty.round(3) - 0.9) <= 0.0101).any())
    alike = sides_words(fit, sides_of(fit, cs.certainty(fit), None), offsets, None, systems=systems)
    assert f"; certainties{scores} do not include this." in alike


@pytest.mark.parametrize("provenance", ["unknown", "annotations"])
def test_systems_are_scored_on_the_sides_that_the_page_states(provenance):
    """A system that names the sides of the page is right as often as these are certain; errors that all means share
    make its interval wider than that of items whose sides are independent."""
    fit = fitted(rated(np.random.default_rng(3))[0])
    without = without_offsets(fit, offsets_of(fit.data))
    names = fit.means()["item"].tolist()
    own, other = without.sides.names, np.where(np.arange(40) % 4, without.sides.names, "above")
    systems = {
        name: cs.read_predictions({"item": names, "class": said.tolist()}, classes=("below", "above"), name=name)
        for name, said in (("own", own), ("other", other))
    }
    found = _Found(fit, systems, None, None, provenance, {})
    board, truth = found.comparison, found.scored
    np.testing.assert_allclose(cs.certainty(truth).items, without.sides.certainty, atol=5 * 0.5 / fit.draws**0.5)
    assert board.values[0] == pytest.approx(without.sides.certainty.mean(), abs=0.02)
    np.testing.assert_array_equal(found.certain.items, without.sides.certainty)
    assert TOO_NARROW not in board.notes
    spread = board.draws.std(axis=1)
    assert (spread > board.item_draws.std(axis=1)).all()
    if provenance == "unknown":
        alone = cs.compare(truth, systems)
        assert TOO_NARROW in alone.notes
        np.testing.assert_allclose(board.own_values, alone.own_values)
        assert (board.own_draws.std(axis=2) > alone.own_draws.std(axis=2)).all()


def test_means_that_move_together_are_as_certain_as_the_page_says():
    without = without_offsets(fit := fitted(rated(np.random.default_rng(3))[0]), offsets_of(fit.data))
    drawn = without.moved.drawn(20_000, 0).mean(axis=0)
    np.testing.assert_allclose(drawn, without.sides.above, atol=5 * 0.5 / 20_000**0.5)
    middle = [without.moved.moved_above(one) for one in (-2.0, 0.0, 2.0)]
    assert (np.diff(middle, axis=0) > 0).all()
    assert ((middle[1] > 0.5) == (without.sides.mean > 50)).all()


def test_the_table_of_sides_is_what_the_page_says(tmp_path):
    """The fit's own table of means takes annotators for alike, and has others."""
    fit = fitted(rated(np.random.default_rng(3))[0])
    table, page = fit.sides(), cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8")
    items = page.partition("<h2>Items</h2>")[2]
    for row in table.itertuples():
        assert re.search(rf"<td[^>]*>{row.item}</td>\s*<td[^>]*>{row.side}</td>\s*<td[^>]*>[^<]*{row.certainty:.3f}"
                         rf"|<td[^>]*>{row.item}</td>\s*<td[^>]*>{row.side}</td>\s*<td[^>]*>&gt;", items)
    assert not np.allclose(table["mean"], fit.means()["mean"], atol=0.1)
    assert ((table["lower"] < table["mean"]) & (table["mean"] < table["upper"])).all()


@pytest.mark.parametrize(
    ("mean", "taken", "expected"),
    [(52.0, False, 26), (52.0, True, 0), (55.0, False, 1), (50.0, False, np.inf), (80.0, False, 0)],
)
def test_more_ratings_are_those_that_make_a_mean_sure(mean, taken, expected):
    """Of 4 ratings now: 1.2816 standard errors of n of them are 2 where n is 1.642 · 72 / 4."""
    parts = SimpleNamespace(variance=np.array([80.0, 22.0, 50.0]))
    data = SimpleNamespace(offset=np.zeros(1) if taken else None, item=np.zeros(4, int))
    fit = SimpleNamespace(data=data, options={"threshold": 50.0})
    above = np.array([0.99 if mean == 80 else 0.7])
    found = more_ratings(fit, SimpleNamespace(mean=np.array([mean]), above=above), parts)
    assert found.number[0] == expected
    assert found.texts == ["–" if expected == 0 else "over 100" if np.isinf(expected) else f"{expected}"]
    assert bool(found.actions()) is bool(found.blocks()) is (expected > 0)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ([3, 5, 40, 0], "new annotators to rate the 3 open items: 2 need up to 10 more and 1 needs 11 to 100 more, "
         "if the means do not move"),
        ([3, 5], ": 2 need up to 10 more, if the means do not move. Of the items that need up to 30, expect about"),
        ([3, 200], ": 1 needs up to 10 more and 1 needs over 100 more, if"),
        ([30, np.inf], ": 1 needs 11 to 100 more and 1 needs over 100 more, if"),
    ],
)  # fmt: skip
def test_what_more_ratings_would_gain_is_said(number, said):
    (action,) = MoreRatings(np.array(number, float)).actions()
    assert said in action.words


@pytest.mark.parametrize(
    ("annotators", "said"),
    [
        (5, ". That takes 4 more annotators, as there are 5"), (8, ". That takes one more annotator, as there are 8"),
        (9, ""),
    ],
)
def test_more_ratings_than_annotators_take_more_annotators(annotators, said):
    assert Spread._new(SimpleNamespace(annotators=annotators), 9.0) == said


@pytest.mark.parametrize(("offset", "named"), [(9.0, 4), (0.0, 0)])
def test_all_annotators_with_sure_offsets_are_named_or_counted(offset, named):
    random = np.random.default_rng(1)
    item, who = (place.ravel() for place in np.indices((60, 4)))
    rating = random.normal(size=240) + offset * np.array([-2.0, -1, 1, 2])[who]
    found = offsets_of(cs.Ratings.from_codes(item, who, rating, num_items=60, num_annotators=4))
    (said,) = found.finding(corrected=True) or [""]
    assert said.count("“") == min(named, 3)
    assert ("; all 4 differ." in said) is (named > 3)


# Mentions -------------------------------------------------------------------------------------------------------------


def test_labels_of_who_agrees_weakly_stand_beside_the_leading_ones():
    said = np.array([["DN", "DN", "DO(m0)", "DN"] * 4, ["DN", "DN", "DO(m0)", "DN"] * 4, ["DN"] * 15 + ["NR"]])
    who = np.repeat(["a", "b", "c"], 16).tolist()
    rows = {"mention_id": [f"m{place}" for place in range(16)] * 3, "annotator_id": who}
    fit = cs.fit("majority-vote", cs.read_mentions(rows | {"annotation": said.ravel().tolist()}))
    (part,) = agreement_with_others(fit)
    words, _, table = part.blocks
    assert "If all 3 annotators guessed, one or more would reach 2 in about 7 % of cases." in words
    assert table.caption == "Labels of c: 11 of 16 match the leading label of the model."
    assert table.frame["same"].tolist() == ["no"] * 5 + ["yes"] * 11
    assert (table.frame["label of c"] == table.frame["leading label"]).tolist() == [False] * 5 + [True] * 11
    assert eval(left_out(fit, ["c"]), {"cs": cs, "data": fit.data}).data.annotators.tolist() == ["a", "b"]


# Views ----------------------------------------------------------------------------------------------------------------


def answers(wrong, asked=20):
    """Return a fit of one view of three clusters, and what an expert said between them: so many of each together."""
    label = np.repeat(np.arange(3), asked)
    a, b, said = [], [], []
    for (one, other), number in zip([(0, 1), (0, 2), (1, 2)], wrong, strict=True):
        a += np.flatnonzero(label == one).tolist()
        b += np.flatnonzero(label == other).tolist()
        said += [1] * number + [0] * (asked - number)
    a, b, said = [*a, 0, 0], [*b, 1, 2], [*said, 0, 1]
    pairs = lambda one, other, expert: (label[one] == label[other])[:, None].astype(float)  # noqa: E731
    truth = SimpleNamespace(
        view_probability=np.ones((1, 1)), consensus=lambda view: label, pair_probability=pairs, num_experts=1,
        names=lambda kind, number: np.array(["ann"], object),
    )  # fmt: skip
    data = SimpleNamespace(
        expert=np.zeros(len(a), int), item_a=np.array(a), item_b=np.array(b), together=np.array(said), num_experts=1,
        scale=np.array([0.0, 1.0]),
    )  # fmt: skip
    same = label[data.item_a] == label[data.item_b]
    against = pandas.DataFrame({"expert": "ann", "together": same.astype(float)})[same != (data.together == 1)]
    return SimpleNamespace(truth=truth, data=data), against


@pytest.mark.parametrize(
    ("wrong", "means"),
    [((5, 6, 7), "do not clearly concentrate"), ((18, 1, 1), "concentrate on some"), ((1, 0, 1), "")],
)
def test_whether_errors_of_an_expert_pile_up_is_tested(wrong, means):
    fit, against = answers(wrong)
    assert kinds_in_words(fit, against, "ann") == (
        f"ann calls {sum(wrong)} of 60 pairs in different clusters together, and 1 of 2 in one cluster apart"
    )
    said = spread_in_words(fit, "ann")
    assert (means in said) if means else said == ""
    if means:
        assert f"are {wrong[0]} of 20 (1 with 2), {wrong[1]} of 20 (1 with 3) and {wrong[2]} of 20 (2 with 3)." in said


def test_how_often_experts_agree_is_counted_on_the_pairs_that_both_judged():
    """Of b and c, who share two pairs, one with its items the other way round, and a, who shares one with b."""
    rows = [(0, 0, 1, 1), (1, 1, 0, 1), (1, 2, 3, 0), (2, 3, 2, 1), (2, 0, 1, 1), (0, 4, 5, 0)]
    expert, item_a, item_b, together = np.array(rows).T
    data = SimpleNamespace(
        expert=expert, item_a=item_a, item_b=item_b, together=together, scale=np.array([0.0, 1.0]), num_experts=3
    )
    truth = SimpleNamespace(num_experts=3, names=lambda kind, number: np.array(["a", "b", "c"], object))
    _, words, table = common_pairs(SimpleNamespace(data=data, truth=truth))
    assert words.startswith("Pairs that were judged: 1 by 1 expert, 1 by 2 experts, 1 by 3 experts.")
    found = {(row[1], row[2]): (row[3], row[4]) for row in table.frame.itertuples()}
    assert found == {("b", "c"): (2, 1), ("a", "b"): (1, 1), ("a", "c"): (1, 1)}
    assert table.frame["share"].is_monotonic_increasing


@pytest.mark.parametrize(
    ("interval", "unsure", "said"),
    [
        ((1, 1), 0, "The model finds one way to sort the items for all 4 experts, and the model clearly assigns every "
         "item"),
        ((2, 2), 3, "The 4 experts have 2 views, and the model clearly assigns 7 of 10 items"),
        ((1, 3), 0, "The number of views is uncertain (1 to 3), and the model clearly assigns every item"),
    ],
)
def test_the_verdict_on_views_is_no_surer_than_the_draws(interval, unsure, said, monkeypatch):
    fit = SimpleNamespace(
        findings=list, data=SimpleNamespace(num_experts=4), truth=SimpleNamespace(num_units=10), options={"rungs": 1}
    )
    found = SimpleNamespace(fit=fit, count=SimpleNamespace(interval=interval), most=interval[0], open=unsure)
    experts = pandas.DataFrame({"expert": list("abcd"), "answers": [100] * 4})
    found.of_whom = by_expert(experts, pandas.DataFrame({"expert": list("ab")}))
    monkeypatch.setattr("consilience.pages.runs_of_views.disagree", lambda fit: False)
    monkeypatch.setattr("consilience.pages.runs_of_views.passes", lambda fit: 1)
    assert views_verdict(found, [0]) == f"{said} to a cluster. Check some items against what you know."
    monkeypatch.setattr("consilience.pages.runs_of_views.passes", lambda fit: 0)
    if interval == (1, 1):
        of_whom = by_expert(experts, pandas.DataFrame({"expert": ["c"] * 30}))
        alone = SimpleNamespace(**vars(found) | {"of_whom": of_whom})
        less = said.replace(", and the model", "; c follows it less closely. The model")
        monkeypatch.setattr("consilience.pages.runs_of_views.passes", lambda fit: 1)
        assert views_verdict(alone, [0]) == f"{less} to a cluster. Check some items against what you know."
        monkeypatch.setattr("consilience.pages.runs_of_views.passes", lambda fit: 0)
    check = "Check some items against what you know."
    if interval[0] == interval[1]:
        check = "The search for other ways was inconclusive: repeat it from more starts (see What to do next)."
    assert views_verdict(found, [0]) == f"{said} to a cluster. {check}"
    monkeypatch.setattr("consilience.pages.runs_of_views.disagree", lambda fit: True)
    assert views_verdict(found, [0]).startswith("The runs of the sampler disagree on who shares a view")


# Figures --------------------------------------------------------------------------------------------------------------


def test_items_have_the_colour_of_what_is_known_of_their_side():
    mean = np.array([3.0, 1.0, 2.0])
    interval = np.stack([mean - 1, mean + 1])
    axes = first_figures.items_by_mean(["a", "b", "c"], mean, interval, np.array([0.97, 0.02, 0.5]), 2.0, 0.9)
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["above, at least 90 % certain", "open", "below, at least 90 % certain"]
    assert [tuple(line.get_xydata()[0]) for line in axes.lines[:3]] == [(3, 3.0), (2, 2.0), (1, 1.0)]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["b", "c", "a"]


def test_of_many_items_the_lowest_and_the_highest_are_named_and_some_between():
    mean = np.arange(50.0)
    names = [f"a rather long name {one:02d}" for one in range(50)]
    axes = first_figures.items_by_mean(names, mean, np.stack([mean, mean]), np.full(50, 0.5), 2.0, 0.9)
    named = [text.get_text() for text in axes.get_xticklabels()]
    assert (len(named), named[0], named[-1]) == (20, "a rat…ame 00", "a rat…ame 49")
    assert axes.get_xlabel() == "items, lowest first; 20 are named"


def test_shares_of_together_are_drawn_for_the_clusters_that_were_asked():
    axes = first_figures.said_together(np.array([0.9, np.nan, 0.125]), np.array([10, 0, 16]))
    assert [text.get_text() for text in axes.texts] == ["90 % of 10", "12 % of 16"]
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["both in cluster 1", "in different clusters"]


def test_shares_of_together_are_counted_by_cluster():
    """Of two clusters of two items; the expert of another view is not counted."""
    label, view = np.array([0, 0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8]])
    truth = SimpleNamespace(consensus=lambda view: label, view_probability=view)
    data = SimpleNamespace(
        scale=np.array([0.0, 1.0]), together=[1, 0, 1, 0, 1, 0], expert=[0, 0, 0, 0, 0, 1], item_a=[0, 1, 2, 0, 3, 0],
        item_b=[1, 0, 3, 2, 0, 1],
    )  # fmt: skip
    share, number = shares_together(SimpleNamespace(data=data, truth=truth), 0)
    assert (share.tolist(), number.tolist()) == ([0.5, 1.0, 0.5], [2, 1, 2])


def test_the_least_certain_come_first():
    axes = first_figures.least_certain(["m1", "m2"], np.array([0.5, 0.7]), "Uncertain", 0.9)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["m1", "m2"]
    assert axes.lines[0].get_xdata().tolist() == [0.5, 0.7]
