"""Anchoring on gold labels: figures by hand, the formula replicate by replicate, laws, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from consilience.data import Verdicts
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.anchoring import (
    anchored,
    compare_anchored,
    compare_verdicts,
    effective_gold,
    not_random,
)
from consilience.evaluation.unit_sums import pseudo_scores, pseudo_weights, unit_weights
from consilience.models.truth.verdicts import probability_of_right

TWO = np.array([True, True, False, False])


def simulated_scores(seed=0, systems=3, units=80, gold=30):
    random = np.random.default_rng(seed)
    p = random.random((systems, units))
    y = (random.random((systems, units)) < 0.2 + 0.6 * p).astype(float)
    return y, p, np.tile(random.permutation(units) < gold, (systems, 1))


def by_formula(y, p, gold, weight, extra, score, chance=None):
    """The estimate as the module states it, for one vector of weights of units."""
    pi = np.ones(y.shape) if chance is None else chance
    gold_weight = np.where(gold, 1 / pi, 0.0)
    size = gold_weight.sum(1) ** 2 / (gold_weight**2).sum(1)
    gold_weight *= (size / gold_weight.sum(1))[:, None]
    cov, var = np.zeros(len(y)), np.zeros(len(y))
    for a in range(len(y)):
        own = gold_weight[a] * weight
        cov[a], var[a] = np.cov(y[a], p[a], aweights=own, bias=True)[[0, 1], [1, 1]]
    ridge = 10 / size * var.mean()
    slope = (cov + ridge * cov.sum() / var.sum()) / (var + ridge)
    own = gold_weight * weight
    total = own.sum(1) + extra
    mean_y, mean_p = ((own * y).sum(1) + extra * score) / total, ((own * p).sum(1) + extra * p.mean(1)) / total
    return mean_y + slope * ((weight * p).sum(1) / weight.sum() - mean_p)


def test_two_gold_labels_by_hand():
    found = anchored(np.array([[1.0, 0, 7, 7]]), np.array([[0.9, 0.4, 0.8, 0.7]]), TWO[None])
    assert found.value == pytest.approx([0.6])  # cov .125, var .0625, λ 2: .5 + 2 (.7 - .65)


def test_slopes_are_drawn_to_the_common_one_by_hand():
    """Covariances .125 and 0, variances .0625 and .25, λ_pool .4; κ v̄ = 5 · .15625."""
    y, p = np.array([[1.0, 0, 0, 0], [1.0, 1, 0, 0]]), np.array([[0.9, 0.4, 0.8, 0.7], [1.0, 0.0, 1.0, 1.0]])
    ridge = 5 * 0.15625
    slopes = (0.125 + ridge * 0.4) / (0.0625 + ridge), (ridge * 0.4) / (0.25 + ridge)
    found = anchored(y, p, np.stack([TWO, TWO]))
    assert found.value == pytest.approx([0.5 + slopes[0] * 0.05, 1 + slopes[1] * 0.25])


@pytest.mark.parametrize("unequal", [False, True])
def test_value_and_draws_are_the_formula(unequal):
    y, p, gold = simulated_scores()
    chance = np.tile(np.linspace(0.2, 0.9, y.shape[1]), (len(y), 1)) if unequal else None
    found = anchored(y, p, gold, probability=chance, seed=3)
    value = by_formula(y, p, gold, np.ones(y.shape[1]), 0.0, 0.0, chance)
    np.testing.assert_allclose(found.value, value, rtol=1e-9)
    number = found.draws.shape[1]
    weight = unit_weights(3, slice(0, y.shape[1]), number)
    extra, score = pseudo_weights(3, number), pseudo_scores(3, len(y), number)
    size = 30 if chance is None else (1 / chance[0, gold[0]]).sum() ** 2 / (chance[0, gold[0]] ** -2.0).sum()
    wider = np.sqrt(size / (size - 2)) * stats.t.ppf(0.975, size - 2) / stats.norm.ppf(0.975)
    for draw in (0, 1, 500):
        expected = by_formula(y, p, gold, weight[:, draw].astype(float), extra[draw], score[:, draw], chance)
        np.testing.assert_allclose(found.draws[:, draw], value + wider * (expected - value), rtol=1e-6)


def test_equal_probabilities_are_none():
    y, p, gold = simulated_scores(1)
    plain, stated = anchored(y, p, gold), anchored(y, p, gold, probability=np.full(y.shape, 0.3))
    np.testing.assert_allclose(plain.draws, stated.draws, atol=1e-5)


def test_what_annotators_say_without_difference_says_nothing():
    y, _, gold = simulated_scores(2)
    found = anchored(y, np.full(y.shape, 0.3), gold, bounds=None)
    mean = np.array([own[chosen].mean() for own, chosen in zip(y, gold, strict=True)])
    np.testing.assert_allclose(found.value, mean)
    assert found.worth == pytest.approx(30)
    # The Bayesian bootstrap has the variance s² / (n + 1), divisor n, before the intervals are widened.
    wider = np.sqrt(30 / 28) * stats.t.ppf(0.975, 28) / stats.norm.ppf(0.975)
    sd = wider * np.sqrt(mean * (1 - mean) / 31)
    assert np.abs(found.draws.std(axis=1) / sd - 1).max() < 5 / np.sqrt(2 * 1000)


def test_where_all_are_gold_the_truth_on_these_units_is_known():
    y, p, _ = simulated_scores(3)
    found = anchored(y, p, np.ones(y.shape, bool))
    np.testing.assert_allclose(found.value, y.mean(axis=1))
    assert np.ptp(found.truth_draws, axis=1).max() < 1e-9
    np.testing.assert_allclose(found.item_draws.var(axis=1), found.draws.var(axis=1), rtol=0.1)


def test_the_variance_is_that_on_these_units_and_that_of_others():
    y, p, gold = simulated_scores(4, units=400, gold=150)
    found = anchored(y, p, gold)
    parts = found.truth_draws.var(axis=1) + found.item_draws.var(axis=1)
    np.testing.assert_allclose(parts, found.draws.var(axis=1), rtol=0.2)


def test_no_interval_collapses():
    ones = np.ones((1, 100))
    gold = (np.arange(100) < 20)[None]
    lower, upper = np.quantile(anchored(ones, ones, gold).draws, [0.025, 0.975])
    assert lower < 0.9 < 0.999 < upper
    assert np.ptp(anchored(ones, ones, gold, bounds=None).draws) == 0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), shift=st.sampled_from([0.0, -3.0, 50.0]), scale=st.sampled_from([1.0, 0.1, 20.0]))
def test_a_score_in_other_units(seed, shift, scale):
    """What is added to p changes nothing, and p in other units only through the common slope, which scales alike."""
    y, p, gold = simulated_scores(seed, gold=25)
    plain, moved = anchored(y, p, gold), anchored(y, scale * p + shift, gold)
    np.testing.assert_allclose(plain.value, moved.value, atol=1e-7)
    np.testing.assert_allclose(plain.draws, moved.draws, atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_order_of_systems_and_units_changes_no_value(seed):
    y, p, gold = simulated_scores(seed)
    order, units = np.array([2, 0, 1]), np.random.default_rng(seed).permutation(y.shape[1])
    plain, mixed = anchored(y, p, gold), anchored(y[order][:, units], p[order][:, units], gold[order][:, units])
    np.testing.assert_allclose(mixed.value, plain.value[order], rtol=1e-9)


def test_effective_gold_by_hand():
    alone, together = np.array([[0.0, 2], [0.0, 4]]), np.array([[0.0, 1], [0.0, 4]])
    assert effective_gold(np.array([10, 20]), alone, together) == pytest.approx((10 * 4 + 20) / 2)


@pytest.mark.parametrize("partly", [False, True])
def test_gold_items_that_differ_are_noticed(partly):
    _, p, gold = simulated_scores(5, units=200, gold=60)
    assert not not_random(p, gold)
    easy = np.argsort(np.argsort(-p.mean(axis=0))) < 60
    chosen = np.tile(easy, (3, 1))
    chosen[2] |= partly  # all outputs of a system
    assert not_random(p, chosen)
    assert not not_random(p, np.ones(p.shape, bool))


# ---- leaderboards ----


def test_a_leaderboard_of_gold_and_annotators():
    y, p, gold = simulated_scores(6, units=500, gold=100)
    names, points = ("A", "B", "C"), p.mean(axis=1)
    board = compare_anchored(y, p, gold, systems=names, title="top-1 accuracy", points=points, unit="document", seed=1)
    found = anchored(y, p, gold, seed=1)
    assert board.title == "top-1 accuracy, anchored on 100 gold documents"
    np.testing.assert_allclose(board.values, found.value)
    np.testing.assert_allclose(board.draws, found.draws)
    table = board.table.set_index("system").loc[list(names)]
    np.testing.assert_allclose(table["lower"], np.quantile(found.draws, 0.025, axis=1))
    np.testing.assert_allclose(table["point_estimate"], points)
    assert table["p_best"].sum() == pytest.approx(1)
    assert board.notes[0] == f"The scores are as precise as with {found.worth:,.0f} gold documents alone."
    assert board.notes[1] == f"P(best) is rough (too sure below 200 gold {board.unit}s)."
    assert len(board.notes) == 2
    narrow = compare_anchored(y, p, gold, systems=names, title="", level=0.5, seed=1).table
    assert (narrow["upper"] - narrow["lower"] < board.table["upper"] - board.table["lower"]).all()
    assert board.notes[0] in repr(board)


def test_fewer_than_twenty_gold_items_are_refused():
    y, p, gold = simulated_scores(7, gold=20)
    compare_anchored(y, p, gold, systems=("A", "B", "C"), title="")
    gold[1, np.flatnonzero(gold[1])[0]] = False
    with pytest.raises(UnsupportedRequest, match="20 gold items at least are needed, and 'B' has 19"):
        compare_anchored(y, p, gold, systems=("A", "B", "C"), title="")


def test_gold_items_with_no_probability_are_said_to_differ():
    _, p, _ = simulated_scores(8, units=300)
    y = (p > 0.5).astype(float)
    chance = np.tile(np.where(p[0] > 0.5, 0.5, 0.1), (3, 1))
    gold = np.tile(np.random.default_rng(1).random(300) < chance[0], (3, 1))
    plain = compare_anchored(y, p, gold, systems=("A", "B", "C"), title="")
    stated = compare_anchored(y, p, gold, systems=("A", "B", "C"), title="", probability=chance)
    assert "assumes that they are a random sample" in plain.notes[-1]
    assert not any("random sample" in note for note in stated.notes)


def judged(judges=2, items=120, gold=60, seed=0):
    """Judges who favour the worse system."""
    random = np.random.default_rng(seed)
    right = random.random((2, items)) < np.array([0.85, 0.6])[:, None]
    said = random.random((judges, 2, items)) < np.where(right, 0.9, [[0.1], [0.8]])
    judge, system, item = (axis.ravel() for axis in np.indices(said.shape))
    known = np.where(np.arange(items) < gold, right, np.nan)
    return Verdicts.from_codes(item, system, judge, said.ravel().astype(float), gold=known, systems=["good", "liked"])


def test_judges_alone_name_no_best_system():
    verdicts = judged()
    board = compare_verdicts(verdicts)
    assert board.title == "share of right outputs as the judges see it"
    np.testing.assert_allclose(board.values, verdicts.shares()[0].mean(axis=1))
    assert board.table["system"][0] == "liked"
    assert board.table["p_best"].isna().all()
    assert board.pairs.filter(like="p_a_beats_b").isna().all(axis=None)
    assert board.beats.isna().all(axis=None)
    assert (board.table["sd_truth"] == 0).all()
    assert "which were not used" in board.notes[-1]
    assert len(compare_verdicts(judged(gold=0)).notes) == 1
    # A share of k of n is Beta(k + 1/2, n - k + 1/2) where verdicts agree.
    right = Verdicts.from_codes(np.arange(50), np.zeros(50, int), np.zeros(50, int), np.ones(50))
    lower = compare_verdicts(right).table["lower"][0]
    assert lower == pytest.approx(stats.beta.ppf(0.025, 50.5, 0.5), abs=0.01)


@pytest.mark.parametrize("anchor", ["verdicts", "latent-class"])
def test_gold_labels_set_right_what_judges_favour(anchor):
    board = compare_verdicts(judged(), gold="use", anchor=anchor)
    assert board.title == "share of right outputs, anchored on 60 gold items"
    table = board.table.set_index("system")
    assert board.table["system"].tolist() == ["good", "liked"]
    assert table["p_best"]["good"] > 0.9
    assert table["rank_by_point_estimate"]["liked"] == 1
    assert (table["lower"] < [0.85, 0.6]).all()
    assert (table["upper"] > [0.85, 0.6]).all()


def test_the_latent_class_is_what_it_says():
    verdicts = judged()
    p = probability_of_right(verdicts)
    board = compare_verdicts(verdicts, gold="use", anchor="latent-class", seed=2)
    known = np.isfinite(verdicts.gold)
    np.testing.assert_allclose(board.draws, anchored(verdicts.gold, p, known, seed=2).draws)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"gold": "use", "judged": {"gold": 0}}, UnsupportedRequest, "no gold labels; give a column 'gold'"),
        ({"gold": "use", "judged": {"gold": 19}}, UnsupportedRequest, "20 gold items at least .* gold='ignore'"),
        ({"anchor": "latent-class"}, UnsupportedRequest, "anchor='latent-class' stands beside gold labels"),
        ({"gold": "use", "anchor": "latent-class", "judged": {"judges": 1}}, UnsupportedRequest, "two judges or more"),
        ({"anchor": "mean"}, UnknownName, "'verdicts', 'latent-class'"), ({"gold": "yes"}, UnknownName, "'ignore'"),
        ({"level": 95.0}, UnsupportedRequest, "between 0 and 1"),
    ],
)  # fmt: skip
def test_leaderboards_of_verdicts_that_are_refused(arguments, error, match):
    given = {name: value for name, value in arguments.items() if name != "judged"}
    with pytest.raises(error, match=match):
        compare_verdicts(judged(**arguments.get("judged", {})), **given)


def test_outputs_without_verdicts_leave_their_items_out():
    verdicts = judged()
    keep = (verdicts.item != 5) | (verdicts.system == 0)
    some = Verdicts.from_codes(
        verdicts.item[keep], verdicts.system[keep], verdicts.annotator[keep], verdicts.label[keep], gold=verdicts.gold
    )
    with pytest.raises(UnsupportedRequest, match="1 outputs were not judged"):
        compare_verdicts(some, gold="use")
    board = compare_verdicts(some, gold="use", missing="drop")
    assert board.num_items == 119
    assert "59 gold items" in board.title
