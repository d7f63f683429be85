"""What a page of views asks for, what it tells only where it holds, and which items it lists."""

import shlex
from types import SimpleNamespace

import numpy as np
import pytest

from consilience import views_figures
from consilience.models.posterior import Draws
from consilience.pages import Table
from consilience.pages.runs_of_views import is_inconclusive, missed, search_again
from consilience.pages.views import views_page, views_sections
from tests.consilience.test_views_page import drawn, fitted, made, sampled, section, tables, words


@pytest.fixture(scope="module")
def fit():
    return made()


def test_who_clearly_errs_most_is_asked_why(fit, monkeypatch):
    whose = "(24.7 % of this expert's answers; the other experts: 6.0 %)"
    for said in ("", f"eve gave 37 of the 64 answers that contradict the clusters {whose}"):
        monkeypatch.setattr("consilience.pages.views.most_contrary", lambda frame, said=said, share=True: said)
        page = views_page(fit, {}, risk=None)
        asked = [one for one in page.actions if one.words.startswith("Ask ")]
        again = [one for one in asked if " whether the question was clear" in one.words]
        worst = fit.table("contradictions", limit=10_000)["expert"].value_counts().index[0]
        file = f"consilience table RUN contradictions --expert {shlex.quote(worst)} --csv contradictions.csv"
        assert [one.command for one in again] == [file] * (said != "")
        assert all(one.words.startswith(f"Ask {worst} whether ") for one in again)
        shown = [
            block for part in page.sections for block in part.blocks
            if isinstance(block, Table) and " probable answers" in block.caption
        ]  # fmt: skip
        assert len(shown) == (2 if said else 1)  # of calls of together, and of calls of apart
        assert ({*shown[0].frame["expert"], *shown[-1].frame["expert"]} == {worst}) is (said != "")
        assert all(set(one.frame["answer"]) == {kind} for one, kind in zip(shown, ("together", "apart"), strict=False)
                   if said)  # fmt: skip


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ([1.0, 0.0, np.nan], ["together", "apart", "nobody was asked"]),
        ([0.5, 2 / 3, 1.0], ["together", "apart", "most say together", "as many say either"]),
        ([0.25, 0.0, np.nan], ["together", "apart", "most say apart", "nobody was asked"]),
    ],
)
def test_every_colour_of_pairs_is_in_the_legend(said, names):
    answers, below = np.eye(3), np.tril_indices(3, -1)
    answers[below] = answers[below[::-1]] = said
    axes = drawn(views_figures.pairs_by_experts(answers, np.array([0, 0, 1])))
    legends = axes.figure.legends or [axes.get_legend()]
    assert [text.get_text() for text in legends[0].get_texts()] == names


@pytest.mark.parametrize("num_features", [0, 3])
def test_what_was_measured_with_features_is_told_of_features(num_features):
    parts = views_sections(sampled(made(num_features=num_features)))
    assert ("4,308 of 4,800 sensitivities" in words(section(parts, "How many views"))) is (num_features > 0)


@pytest.mark.parametrize(("clusters", "measured"), [(3, True), (4, False)])
def test_what_was_measured_is_told_where_it_was_measured(clusters, measured):
    said = words(section(views_sections(sampled(made(clusters=clusters))), "View 1"))
    assert ("2,076 of 2,086 items" in said) is measured
    assert ("was not measured for views of at most 4 clusters" in said) is not measured


@pytest.mark.parametrize("unsure", [0, 2, 20])
def test_items_that_are_as_sure_as_most_are_told_in_a_line(unsure):
    judged = len(made(num_views=1, num_items=30, num_features=0, judged=30).truth.judged)
    cluster = np.tile([0.99999, 5e-6, 5e-6], (judged, 1, 1))
    cluster[:unsure] = [0.8, 0.1, 0.1]
    one = made(num_views=1, num_items=30, num_features=0, judged=30, cluster_probability=cluster)
    part = section(views_sections(one), "View 1")
    assert not [table for table in tables(part) if "probability" in table]  # the next section lists them
    assert (" to " in part.gist) is (unsure > 0)  # sizes of which draws differ are ranges
    listed = tables(section(views_sections(one), "Items of view 1"))
    if 2 * unsure > 30:  # most are not told by one number
        assert [len(table) for table in listed] == [30]
    else:
        surest, *others = listed
        assert surest["number"].tolist() == [30 - unsure]
        assert surest["items"].tolist() == [", ".join(f"item {place}" for place in range(unsure, 30))]
        assert [len(table) for table in others] == [unsure] * (unsure > 0)
        text = words(section(views_sections(one), "Items of view 1"))
        which = f"{30 - unsure} of" if unsure else "All"
        assert f"{which} 30 items are in their most probable cluster with a probability above 0.99" in text


def test_the_least_sure_of_very_many_items_are_listed():
    one = made(num_features=0, num_items=700, judged=600, num_experts=30)
    part = section(views_sections(one), "Items of view 1")
    listed, sure = tables(part)[0], one.truth.cluster_probability[:, 0].max(axis=1)
    assert f"The 500 least certain of {len(sure):,} items" in words(part)
    np.testing.assert_array_equal(np.sort(listed["probability"]), np.sort(sure)[:500])


@pytest.mark.parametrize(("trips", "doubted"), [([0, 0], True), ([1, 0], False), (None, False)])
def test_a_number_of_views_that_no_chain_was_free_to_leave_is_no_probability(fit, trips, doubted):
    """What may be wrong with the headline stands beside it: at the key figure, and in the first finding."""
    base = sampled(fit)
    hidden = {} if trips is None else {"ladder_trips": np.array(trips)}
    one = fitted(base.data, Draws(base.posterior.chains, hidden), 3, 2, "gibbs")
    page = views_page(one, {}, risk=None)
    known = "in more than " if doubted else "probability above 0."
    assert (" % of draws" in page.findings[0]) is doubted
    assert f", {known}" in next(iter(page.numbers))
    assert f" views, {known}" in page.findings[0]
    assert ("other numbers of views was inconclusive, so it may have missed some." in page.findings[0]) is doubted
    again = [action for action in page.actions if action.words.startswith("Search again from 10 starts instead of 2")]
    assert len(again) == doubted
    for action in again:
        assert "If all agree, at most 26 % of such starts would end elsewhere (95 %); now, with 2, that is 78 %" in (
            action.words
        )
        assert action.command.endswith(" --ladders 10 -o searched-again")
    assert known in section(page.sections, "How many views").gist


@pytest.mark.parametrize(
    ("ladders", "apart", "option", "said"),
    [
        (2, 0.0, "ladders", "The 2 runs of the sampler agree, but the search for other numbers of views was incon"),
        (10, 0.1, None, "All 10 runs of the sampler, which started apart, agree: at most 26 % of such starts would "),
        (10, 0.3, "draws", "The search for other numbers of views was inconclusive"),
    ],
)
def test_a_search_that_no_grouping_came_out_of_is_settled_by_more_starts(monkeypatch, ladders, apart, option, said):
    """Of n starts that agree, 5 % would if 1 − 0.05^(1/n) of them ended elsewhere."""
    monkeypatch.setattr("consilience.pages.runs_of_views._ladders", lambda fit: np.zeros(ladders))
    monkeypatch.setattr("consilience.pages.runs_of_views._apart", lambda fit: apart)
    one = SimpleNamespace(draws=500)
    assert missed(one).startswith(said)
    found = search_again(one)
    assert (None if found is None else next(iter(found[1]))) == option
    assert is_inconclusive(one) is (option is not None)
