"""Whether clusters change without the answers of one expert, on the page of views."""

import numpy as np
import pytest

import consilience as cs
from consilience.pages.views import _Found, _held
from consilience.pages.without_one import _without, moved_items, without_one

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


@pytest.fixture(scope="module")
def fit():
    """Fit three experts who sort 24 items alike, and a fourth who alone tells where some of these belong."""
    random, truth = np.random.default_rng(2), np.arange(24) % 2
    rows = []
    for expert, number in (("a", 18), ("b", 18), ("c", 18), ("d", 24)):
        first, second = (random.integers(0, number, 150) for _ in range(2))
        right = random.random(150) < 0.95
        rows += [
            (expert, f"s{one:02d}", f"s{other:02d}", "together" if (truth[one] == truth[other]) == said else "apart")
            for one, other, said in zip(first, second, right, strict=True) if one != other
        ]  # fmt: skip
    table = dict(zip(("expert", "item_a", "item_b", "answer"), map(list, zip(*rows, strict=True)), strict=True))
    return cs.fit("expert-views", cs.read_constraints(table), clusters=2, draws=100, warmup=100)


@pytest.mark.parametrize(
    ("one", "other", "moved"),
    [([0, 0, 1, 1], [1, 1, 0, 0], 0), ([0, 0, 1, 1], [0, 1, 1, 1], 1), ([0, 1, 2, 2], [0, 0, 0, 0], 2),
     ([0, 0, 0, 0], [0, 0, 1, 2], 2)],
)  # fmt: skip
def test_items_that_move_are_counted_whatever_clusters_are_called(one, other, moved):
    assert moved_items(np.array(one), np.array(other)) == moved


def test_the_others_are_fitted_alone_and_only_what_they_judged_is_compared(fit):
    (view,) = _held(fit.truth)
    assert without_one(fit, "a", view) == "Without the answers of a, all 24 items stay in their clusters."
    said = without_one(fit, "d", view)
    assert said == "Without the answers of d, all 18 items that others judged stay in their clusters."
    rest = _without(fit.data, "d")
    assert rest.num_constraints == len(rest.expert) == (np.asarray(fit.data.expert) != 3).sum()
    assert 3 not in set(np.asarray(rest.expert).tolist())


def test_clusters_that_change_are_counted(fit, monkeypatch):
    (view,) = _held(fit.truth)
    monkeypatch.setattr("consilience.pages.without_one.moved_items", lambda one, other: len(one) - 22)
    assert without_one(fit, "a", view) == "Without the answers of a, 2 of 24 items change their clusters."
    monkeypatch.setattr("consilience.pages.without_one.moved_items", lambda one, other: 1)
    assert without_one(fit, "a", view) == "Without the answers of a, 1 of 24 items changes its cluster."


def test_nothing_is_said_of_few_experts_or_of_many_answers(fit, monkeypatch):
    (view,) = _held(fit.truth)
    assert _Found(fit).without.startswith("Without the answers of ")
    monkeypatch.setattr("consilience.pages.without_one._MOST_ANSWERS", 10)
    assert without_one(fit, "a", view) == ""
