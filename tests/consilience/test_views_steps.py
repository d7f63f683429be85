"""What a page of views asks for, and what it tells only where it holds."""

import numpy as np
import pytest

from consilience import views_figures
from consilience.pages import Table
from consilience.pages.views import views_page, views_sections
from tests.consilience.test_views_page import drawn, made, sampled, section, words


@pytest.fixture(scope="module")
def fit():
    return made()


def test_who_clearly_errs_most_is_asked_why(fit, monkeypatch):
    for said in ("", "eve gave 37 of them, 24.7 % of 150 answers, against 6.0 % of those of all others"):
        monkeypatch.setattr("consilience.pages.views.most_contrary", lambda frame, said=said: said)
        page = views_page(fit, {}, risk=None)
        asked = [one for one in page.actions if one.words.startswith("Ask ")]
        again = [one for one in asked if "why, where all together say otherwise" in one.words]
        assert [one.command for one in again] == ["consilience table RUN contradictions --csv contradictions.csv"] * (
            said != ""
        )
        worst = fit.table("contradictions", limit=10_000)["expert"].value_counts().index[0]
        assert all(one.words.startswith(f"Ask {worst} why") for one in again)
        (shown,) = [
            block for part in page.sections for block in part.blocks
            if isinstance(block, Table) and block.caption.startswith("The least probable answers")
        ]  # fmt: skip
        assert (set(shown.frame["expert"]) == {worst}) is (said != "")


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ([1.0, 0.0, np.nan], ["together", "said apart"]),
        ([0.5, 2 / 3, 1.0], ["together", "said apart", "most say together", "divided"]),
        ([0.25, 0.0, np.nan], ["together", "said apart", "most say apart"]),
    ],
)
def test_every_colour_of_pairs_is_in_the_legend(said, names):
    answers = np.full((3, 3), np.nan)
    answers[np.tril_indices(3, -1)] = said
    axes = drawn(views_figures.pairs_of_items(np.eye(3), answers, np.array([0, 0, 1]), "pairs"))
    legends = axes.figure.legends or [axes.get_legend()]
    assert [text.get_text() for text in legends[0].get_texts()] == names


@pytest.mark.parametrize("num_features", [0, 3])
def test_what_was_measured_with_features_is_told_of_features(num_features):
    parts = views_sections(sampled(made(num_features=num_features)))
    assert ("Measured on data simulated" in words(section(parts, "How many views"))) is (num_features > 0)


@pytest.mark.parametrize(("clusters", "measured"), [(3, True), (4, False)])
def test_what_was_measured_is_told_where_it_was_measured(clusters, measured):
    said = words(section(views_sections(sampled(made(clusters=clusters))), "View 1"))
    assert ("2,076 of 2,086 items" in said) is measured
    assert ("was not measured for views of at most 4 clusters" in said) is not measured
