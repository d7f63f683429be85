"""Whether a model of rankings expects how often first choices are the same: by hand, and on data that it made."""

from types import SimpleNamespace

import numpy as np
import pytest

import consilience as cs
from consilience.evaluation.first_choices import FirstChoices, first_choices

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


def rankings(ranks):
    """Rankings of items by annotators: for each a list of blocks."""
    return cs.Rankings.from_nested(ranks)


def known(*shares, draws=400):
    """A truth that knows the plausibilities of all classes of each item."""
    return SimpleNamespace(
        num_draws=draws, drawn_shares=lambda places: [
            (np.arange(len(shares[one])), np.tile(shares[one], (draws, 1))) for one in places
        ],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ranks", "observed"),
    [
        ([[[["a"]], [["a"]], [["b"]]]], 1 / 3),  # one of three pairs
        ([[[["a"]], [["a"]]], [[["a"]], [["b"]]]], 1 / 2),  # of two items
        ([[[["a", "b"]], [["a"]]]], 1 / 2),  # a tie shares one among its classes
        ([[[["a"], ["b"]], [["a"], ["c"]]], [[["a"]]]], 1.0),  # later places do not count, nor items of one ranking
    ],
)
def test_what_is_found_is_counted_in_pairs(ranks, observed):
    data = rankings(ranks)
    shares = np.full((data.num_items, data.num_classes), 1 / data.num_classes)
    assert first_choices(data, known(*shares)).observed == pytest.approx(observed)


@pytest.mark.parametrize(
    ("share", "third", "expected"),
    [([0.5, 0.5], "a", 0.5), ([0.9, 0.1], "a", 0.82), ([1.0, 0.0], "a", 1.0), ([0.2, 0.3], "c", 0.38)],
)
def test_single_first_choices_are_the_same_as_often_as_plausibilities_say(share, third, expected):
    """Two draws are the same with the sum of squares; what the named classes leave is of the one without a code."""
    data = rankings([[[["a"]], [["b"]], [[third]]]] * 50)
    found = first_choices(data, known(*[np.array(share)] * 50))
    assert found.items == 50
    assert found.drawn.mean() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(("observed", "unexpected"), [(0.5, False), (0.01, True), (0.99, True), (0.1, False)])
def test_either_tail_is_unexpected(observed, unexpected):
    found = FirstChoices(observed, np.linspace(0, 1, 201), 10)
    assert found.unexpected is unexpected
    assert found.interval == pytest.approx((0.025, 0.975))


def test_nothing_is_checked_of_a_point_or_of_single_rankings():
    data = rankings([[[["a"]], [["b"]]]])
    assert first_choices(data, known([0.5, 0.5], draws=1)) is None
    assert first_choices(rankings([[[["a"], ["b"]]]]), known([0.5, 0.5])) is None


def drawn(seed, sharper=1.0):
    """Rankings of sixty items by five annotators, drawn by Plackett-Luce from plausibilities to a power."""
    random = np.random.default_rng(seed)
    ranks = []
    for _ in range(60):
        weight = sharper * np.log(random.dirichlet(np.ones(5)))
        orders = np.argsort(-(weight + random.gumbel(size=(5, 5))), axis=1)[:, :3]
        ranks.append([[["abcde"[one]] for one in order] for order in orders])
    return rankings(ranks)


@pytest.mark.parametrize(("sharper", "unexpected"), [(1.0, False), (10.0, True)])
def test_a_fit_expects_what_its_model_makes_and_not_much_more_agreement(sharper, unexpected):
    data = drawn(3, sharper)
    found = first_choices(data, cs.fit("plackett-luce", data, draws=300).truth)
    assert found.unexpected is unexpected
    assert (found.observed > found.interval[1]) is unexpected
