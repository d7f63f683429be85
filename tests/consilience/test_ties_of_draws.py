"""Where draws, or a point estimate, leave two classes of an item alike, pages say so."""

import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

import consilience as cs
from consilience.pages import systems
from consilience.pages.items import named_items, near_ties
from tests.consilience.test_statements import section, words

ORDERS = [["ab", "ba"], ["ab", "ab", "ab", "ab", "ba"]]  # of two items


@pytest.fixture(scope="module")
def fit():
    """Return a fit of rankings, of an item on which two annotators say the opposite and one on which most agree."""
    rows = [
        {"item": str(item), "annotator": str(who), "class": class_, "rank": rank}
        for item, orders in enumerate(ORDERS) for who, order in enumerate(orders)
        for rank, class_ in enumerate(order, 1)
    ]  # fmt: skip
    return cs.fit("plackett-luce", cs.read_rankings(pandas.DataFrame(rows)), draws=500)


def test_items_that_the_draws_leave_tied_are_named(fit, tmp_path):
    best = cs.certainty(fit)
    assert near_ties(fit.truth, best, 2_000).tolist() == [0]
    # Two frequencies of one class each: their difference has the error of 2 p - 1.
    sure = best.items[1]
    draws = (1.96 / (2 * sure - 1)) ** 2 * (1 - (2 * sure - 1) ** 2)
    for factor, tied in ((0.8, [0, 1]), (1.25, [0])):
        assert near_ties(fit.truth, best, factor * draws).tolist() == tied
    html = cs.report(fit, path=tmp_path / "page.html").read_text(encoding="utf-8")
    said = "For “0”, the draws do not show which of two classes leads: treat them as ties."
    assert said in words(section(html, "Items"))


def test_closed_forms_have_no_ties_of_draws():
    fit = cs.fit("dirichlet", cs.Annotations.from_counts([[2, 2], [3, 1]]))
    assert not len(near_ties(fit.truth, cs.certainty(fit), 100))


def test_many_items_are_counted():
    truth = SimpleNamespace(names=lambda: np.array(list("abcdef")))
    assert named_items(truth, np.arange(3), "item") == "“a”, “b” and “c”"
    assert named_items(truth, np.arange(6), "item") == "6 items"
    assert named_items(truth, np.arange(0), "item") == ""


def test_ties_of_the_point_estimate_are_named(fit, tmp_path):
    assert fit.truth.standard().tied.tolist() == [0]
    given = {name: {"item": ["0", "1"], "class": [one, "a"], "rank": [1, 1]} for name, one in (("x", "a"), ("y", "b"))}
    html = words(cs.report(fit, given, path=tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "class of each item is taken as the truth; for “0”, where several classes tie, it is the first in" in html


def test_how_ties_of_a_vote_enter_scores_is_told(tmp_path):
    """The first label is taken for the point estimate, and in the score either is right as often."""
    fit = cs.fit("majority-vote", cs.Annotations.from_counts([[2, 2], [1, 3], [2, 2]], labels=["x", "y"]))
    given = {name: {"item": [0, 1, 2], "class": [name] * 3} for name in "xy"}
    board = cs.compare(fit, given).table.set_index("system")
    assert board.loc[["x", "y"], "point_estimate"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert board.loc[["x", "y"], "value_alone"].tolist() == pytest.approx([1 / 3, 2 / 3])
    html = words(cs.report(fit, given, path=tmp_path / "page.html").read_text(encoding="utf-8"))
    assert (
        "of each item is taken as the truth; for 2 tied items it is the tied label that comes first in the list of "
        "labels. The other scores count a tie by its share: with two tied labels, each is right with probability 1/2."
    ) in html


@pytest.mark.parametrize(
    ("low", "high", "said"), [(0.01, 0.99, "cannot be told"), (0.2, 0.99, "0.20–0.99"), (0.01, 0.9, "0.01–0.90")]
)
def test_a_probability_that_may_be_anything_is_not_told(low, high, said):
    table = pandas.DataFrame({"p_best_lower": [0.4, low], "p_best_upper": [0.6, high]})
    own = SimpleNamespace(table=table, p_best_texts=["0.40–0.60", f"{low:.2f}–{high:.2f}"])
    assert systems._p_best_texts(own) == ["0.40–0.60", said]
    assert not re.search("[<>]", said)
