"""What pages say in one sentence and in their first figure, and what stands behind that."""

from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience import first_figures
from consilience.pages.common_pairs import common_pairs
from consilience.pages.own_errors import kinds_in_words, spread_in_words
from consilience.pages.ratings import offsets_of, ratings_verdict, without_offsets
from consilience.pages.runs_of_views import views_verdict
from consilience.pages.sides import above_with_others, counts_of_sides, sides_by_name
from consilience.pages.spread_of_ratings import Spread
from consilience.pages.who_agrees import agreement_with_others
from tests.consilience.test_ratings_page import fitted, rated

# Ratings --------------------------------------------------------------------------------------------------------------


def test_certainties_with_other_annotators_are_those_of_draws_that_move_together():
    data = rated(np.random.default_rng(3))[0].without_offsets()
    fit, half = fitted(data), offsets_of(data).half
    own, random = fit.posterior.mean, np.random.default_rng(0)
    width = np.sqrt(own.scale / (own.shape * own.strength))
    drawn = own.location + width * random.standard_t(2 * own.shape, (40_000, len(width)))
    moved = half / 2.7764 * random.standard_t(4, (40_000, 1))
    np.testing.assert_allclose(above_with_others(fit, half, 5), (drawn + moved >= 50).mean(axis=0), atol=0.012)
    alone = above_with_others(fit, 1e-9, 5)
    np.testing.assert_allclose(np.maximum(alone, 1 - alone), cs.certainty(fit).items, atol=1e-6)


def test_the_verdict_on_ratings_counts_sides_with_other_annotators():
    data = rated(np.random.default_rng(3))[0]
    fit, found = fitted(data), offsets_of(data)
    without = without_offsets(fit, found)
    high, low, open_ = counts_of_sides(without.above)
    assert high + low + open_ == 40
    assert (high, low) == ((without.above.round(3) >= 0.9).sum(), (without.above.round(3) <= 0.1).sum())
    assert ratings_verdict(fit, cs.certainty(fit), found, without) == (
        f"At a certainty of 0.9 or more {high} of 40 items are above 50 and {low} below, with other annotators like "
        f"these; report the other {open_} as open."
    )
    assert open_ >= (np.round(without.certainty, 3) < 0.9).sum()  # what moves all together makes no side surer


def test_items_are_named_by_their_side():
    (words,) = sides_by_name(np.array(["a", "b", "c", "d"]), np.array([0.95, 0.5, 0.02, 0.99]), 3.5)
    assert words == "Surely above 3.5: d, a. Surely below: c. Open: b. Sure is what is at least 90 % certain."


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
    (said,) = found.finding or [""]
    assert said.count("“") == min(named, 3)
    assert (" and 1 more differ" in said) is (named > 3)


# Mentions -------------------------------------------------------------------------------------------------------------


def test_labels_of_who_agrees_weakly_stand_beside_the_leading_ones():
    said = np.array([["DN", "DN", "DO(m0)", "DN"] * 4, ["DN", "DN", "DO(m0)", "DN"] * 4, ["DN"] * 15 + ["NR"]])
    who = np.repeat(["a", "b", "c"], 16).tolist()
    rows = {"mention_id": [f"m{place}" for place in range(16)] * 3, "annotator_id": who}
    fit = cs.fit("majority-vote", cs.read_mentions(rows | {"annotation": said.ravel().tolist()}))
    (part,) = agreement_with_others(fit)
    words, _, table, advice, code = part.blocks
    assert "Were all 3 to guess, one or more of them would reach 2 in about 7 % of cases." in words
    assert table.caption == "Labels of c: 11 of 16 are the leading label of the fit."
    assert table.frame["same"].tolist() == ["no"] * 5 + ["yes"] * 11
    assert (table.frame["label of c"] == table.frame["leading label"]).tolist() == [False] * 5 + [True] * 11
    assert advice.startswith("If these labels look like guesses, leave them out")
    own = {"cs": cs, "fit": fit}
    exec(code.text, own)
    assert own["again"].data.annotators.tolist() == ["a", "b"]


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
    ("wrong", "means"), [((5, 6, 7), "do not clearly pile up"), ((18, 1, 1), "pile up on some"), ((1, 0, 1), "")]
)
def test_whether_errors_of_an_expert_pile_up_is_tested(wrong, means):
    fit, against = answers(wrong)
    assert kinds_in_words(fit, against, "ann") == (
        f"Of 60 pairs of different clusters ann calls {sum(wrong)} together, and of 2 of one cluster 1 apart"
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
        ((1, 1), 0, "One way to sort the items fits the 4 experts, and every item has a sure cluster"),
        ((2, 2), 3, "The 4 experts have 2 views, and 7 of 10 items have a sure cluster"),
        ((1, 3), 0, "How many views the experts have is open (1 to 3), and every item has a sure cluster"),
    ],
)
def test_the_verdict_on_views_is_no_surer_than_the_draws(interval, unsure, said, monkeypatch):
    fit = SimpleNamespace(
        findings=list, data=SimpleNamespace(num_experts=4), truth=SimpleNamespace(num_units=10), options={"rungs": 1}
    )
    found = SimpleNamespace(fit=fit, count=SimpleNamespace(interval=interval), most=interval[0], open=unsure)
    monkeypatch.setattr("consilience.pages.runs_of_views.disagree", lambda fit: False)
    monkeypatch.setattr("consilience.pages.runs_of_views.passes", lambda fit: 1)
    assert views_verdict(found, [0]) == f"{said}, by the model: check some against what you know."
    monkeypatch.setattr("consilience.pages.runs_of_views.passes", lambda fit: 0)
    ruled = "; other ways were not ruled out" * (interval[0] == interval[1])
    assert views_verdict(found, [0]) == f"{said}, by the model{ruled}: check some against what you know."
    monkeypatch.setattr("consilience.pages.runs_of_views.disagree", lambda fit: True)
    assert views_verdict(found, [0]).startswith("The runs of the sampler disagree on who shares a view")


# Figures --------------------------------------------------------------------------------------------------------------


def test_items_have_the_colour_of_what_is_known_of_their_side():
    mean = np.array([3.0, 1.0, 2.0])
    frame = pandas.DataFrame({"mean": mean, "lower": mean - 1, "upper": mean + 1})
    axes = first_figures.items_by_mean(frame, np.array([0.97, 0.02, 0.5]), 2.0, 0.9)
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["surely above (90 %)", "open", "surely below (90 %)"]
    assert [tuple(line.get_xydata()[0]) for line in axes.lines[:3]] == [(3, 3.0), (2, 2.0), (1, 1.0)]


def test_shares_of_together_stand_in_the_cells_that_were_asked():
    axes = first_figures.said_together(np.array([[0.9, np.nan], [0.5, 0.8]]))
    assert [text.get_text() for text in axes.texts] == ["90 %", "80 %"]


def test_the_least_certain_come_first():
    axes = first_figures.least_certain(["m1", "m2"], np.array([0.5, 0.7]), "Uncertain", 0.9)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["m1", "m2"]
    assert axes.lines[0].get_xdata().tolist() == [0.5, 0.7]
