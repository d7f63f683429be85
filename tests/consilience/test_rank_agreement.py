"""How far annotators rank alike, and what pages of rankings say of it."""

import itertools

import numpy as np
import pandas
import pytest
from scipy import stats

import consilience as cs
from consilience.evaluation.leave_one_out import agreement_by_annotator, naming
from consilience.evaluation.rank_agreement import rank_agreement, tau_b
from consilience.pages import rankings_agree
from consilience.pages.next_steps import rank_more

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

CLASSES = 6


def some_ranking(random):
    """Return a ranking of some classes with ties, by class."""
    named = random.permutation(CLASSES)[: random.integers(1, CLASSES + 1)]
    blocks = np.sort(random.integers(0, 3, len(named)))
    return dict(zip(named.tolist(), blocks.tolist(), strict=True))


def test_tau_b_is_that_of_scipy_with_unnamed_classes_tied_last():
    random, seen = np.random.default_rng(0), 0
    for _ in range(200):
        one, other = some_ranking(random), some_ranking(random)
        full = [[ranking.get(code, 99) for code in range(CLASSES)] for ranking in (one, other)]
        wanted = stats.kendalltau(*full).statistic
        np.testing.assert_allclose(tau_b(one, other, CLASSES), wanted, atol=1e-12)
        seen += bool(np.isfinite(wanted))
    assert seen > 100
    assert tau_b({0: 0}, {0: 0}, CLASSES) == pytest.approx(1)
    assert np.isnan(tau_b({}, {0: 0}, CLASSES))


def rankings(items, annotators, noise, seed=0):
    """Annotators order five classes by what is true of an item and by noise, and name the first three."""
    random, rows = np.random.default_rng(seed), []
    for item in range(items):
        truth = random.normal(0, 1, 5)
        for who in range(annotators):
            order = np.argsort(-(truth + noise[who] * random.normal(0, 1, 5)))[:3]
            rows += [(f"i{item}", f"a{who}", rank, "vwxyz"[code]) for rank, code in enumerate(order, 1)]
    return cs.read_rankings(pandas.DataFrame(rows, columns=["item", "annotator", "rank", "class"]))


@pytest.mark.parametrize(("annotators", "like_these"), [(4, True), (2, False)])
def test_the_mean_is_over_pairs_and_items_and_the_interval_over_who_and_what_is_left_out(annotators, like_these):
    data = rankings(12, annotators, [0.5] * annotators)
    found = rank_agreement(data)
    table = data.to_pandas()
    rank = table.pivot_table(index=["item", "annotator"], columns="class", values="rank").fillna(99)
    taus = {
        item: {
            (one, other): stats.kendalltau(own.loc[(item, one)], own.loc[(item, other)]).statistic
            for one, other in itertools.combinations(own.index.get_level_values(1), 2)
        }
        for item, own in rank.groupby(level=0)
    }
    each = np.array([np.mean(list(own.values())) for own in taus.values()])
    assert found.tau == pytest.approx(each.mean())
    assert (found.items, found.annotators, found.like_these) == (12, annotators, like_these)
    error, free = each.std(ddof=1) / np.sqrt(12), 11
    if like_these:
        left = np.array([
            np.mean([np.mean([one for pair, one in own.items() if f"a{who}" not in pair]) for own in taus.values()])
            for who in range(annotators)
        ])  # fmt: skip
        error, free = np.hypot(error, np.sqrt((annotators - 1) / annotators * ((left - left.mean()) ** 2).sum())), 3
    half = stats.t.ppf(0.975, free) * error
    np.testing.assert_allclose([found.lower, found.upper], [found.tau - half, min(found.tau + half, 1)])
    assert abs(found.apart) < 0.1


def test_rankings_at_random_agree_with_a_tau_of_zero_and_a_single_annotator_with_nobody():
    found = rank_agreement(rankings(60, 4, [1e6] * 4))
    assert found.lower < 0 < found.upper
    assert abs(found.tau) < 0.08
    assert "The 95 % interval is for items and annotators like these (jackknife" in rankings_agree.in_section(found)
    assert "items like these and these" in rankings_agree.in_section(found._replace(like_these=False))
    assert rank_agreement(rankings(3, 1, [1.0])) is None


def test_classes_that_rank_high_anywhere_are_told_by_different_items():
    rows = {"item": [], "annotator": [], "class": [], "rank": []}
    for item, who, (rank, name) in itertools.product(range(4), "xy", enumerate("abc", 1)):
        for column, value in zip(rows, (item, who, name, rank), strict=True):
            rows[column].append(value)
    found = rank_agreement(cs.read_rankings(rows))
    assert (found.tau, found.apart) == pytest.approx((1, 1))
    words = rankings_agree.in_section(found)
    assert "Tau-b is 1.00 on average over 4 items and all pairs of 2 annotators. For rankings of different" in words
    assert words.endswith("For rankings of different items it is about 1.00.")


def test_who_agrees_no_more_than_by_chance_is_named_beside_the_others():
    data = rankings(30, 4, [0.2, 0.2, 0.2, 1e6])
    frame, at_random = agreement_by_annotator(data), naming(data).first_at_random
    (low,) = rankings_agree.not_above_chance(frame, at_random).itertuples()
    assert low.annotator == "a3"
    said = f" The share of “a3” ({low.first:.2f} [{low.lower:.2f}, {low.upper:.2f}]) is not clearly above chance."
    assert rankings_agree.chance_words(frame, at_random) == said
    fit = cs.fit("plackett-luce", data, draws=50)
    (action,) = rankings_agree.actions(fit)
    said = "Check the rankings of “a3”, although the evidence is weak: the first choice matches that of the others in "
    said += f"{low.first:.2f} [{low.lower:.2f}, {low.upper:.2f}] of 30 rankings, where chance gives {at_random:.2f}"
    assert action.words.startswith(said)
    assert rankings_agree.chance_words(frame, -1.0) == ""
    four = pandas.concat([frame.assign(lower=0.0)])
    assert rankings_agree.chance_words(four, 0.2) == " The shares of 4 of 4 annotators are not clearly above chance."
    assert not rankings_agree.actions(cs.fit("majority-vote", cs.Annotations.from_counts([[2, 1]])))


@pytest.mark.parametrize(
    ("lead", "apart", "said"),
    [
        (0.04, 0.46, [" items would show a lead of 0.1 four times in five, and about ", " the lead of 0.04 seen here",
                      "More annotators for these 24 items are not enough: even if the right class of each were known, "
                      "the lead would be uncertain by up to ± 0.27"]),
        (0.12, 0.01, [" items would show the lead of 0.12 seen here four times in five"]),
        (0.5, 0.46, []),
    ],
)  # fmt: skip
def test_so_many_items_would_tell_systems_apart(lead, apart, said):
    """An interval of a mean narrows with the root of their number: it then tells the lead four times in five."""
    random = np.random.default_rng(0)
    draws = np.array([[0.5 + lead], [0.5]]) + random.normal(0, 0.11, (2, 4_000))
    board = cs.Comparison(
        systems=("a", "b"), title="top-1 accuracy", values=np.array([0.5 + lead, 0.5]), draws=draws, truth_draws=draws,
        item_draws=draws, points=None, num_items=24,
    )  # fmt: skip
    words = rank_more(board, apart)
    assert bool(words) is bool(said)
    assert all(one in words for one in said)
    assert ("are not enough" in words) is (len(said) == 3)
    if words:
        number = int(words.partition("as now: about ")[2].partition(" items")[0].replace(",", ""))
        error = (draws[0] - draws[1]).std() * np.sqrt(24 / number)
        told = random.normal(max(lead, 0.1), error, 20_000) > 1.96 * error
        assert told.mean() == pytest.approx(0.8, abs=0.03)
