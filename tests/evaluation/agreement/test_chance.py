"""Chance from pairs of different items, Fleiss' conventions, AC1: fractions, brute force, bias by simulation."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from consilience.errors import UnknownName
from consilience.evaluation.agreement import chance
from consilience.evaluation.agreement.alpha import krippendorff_alpha
from consilience.evaluation.agreement.chance import (
    FLEISS_CONVENTIONS,
    fleiss_kappa,
    gwet_ac1,
    kappa,
)
from consilience.evaluation.agreement.weighting import SCHEMES, weight_function
from tests.evaluation.agreement.tables import TABLE, corrected, counts_of, scatter, tables


def flat_kappa(counts):
    return kappa(counts, weight_function("flat", counts))


def check(value, fraction):
    assert value == pytest.approx(float(Fraction(fraction)), rel=1e-14)


# ---- the same from the definitions, one item at a time ----


def share(table, weight):
    size = table.sum(1)
    usable = size >= 2
    if not usable.any():
        return np.nan
    pairs = (table * (table - 1)).sum(1)[usable] / (size * (size - 1))[usable]
    return np.average(pairs, weights=weight(size[usable].astype(float)))


def from_pairs_of_items(table):
    pairs = [(a, b) for a, b in itertools.permutations(table, 2) if a.sum() and b.sum()]
    return sum(a @ b for a, b in pairs) / sum(a.sum() * b.sum() for a, b in pairs) if pairs else np.nan


def squared_shares(table, convention):
    size = table.sum(1)
    table = table[size >= (2 if convention == "pairable" else 1)]
    if not table.sum():
        return np.nan
    shares = (table / table.sum(1, keepdims=True)).mean(0) if convention == "item-mean" else table.sum(0) / table.sum()
    return (shares**2).sum()


def left_out(estimate, table, least=1):
    return np.array([estimate(np.delete(table, row, 0)) for row in range(len(table)) if table[row].sum() >= least])


def test_coefficients_as_fractions():
    counts = counts_of(TABLE)
    estimate, _ = flat_kappa(counts)
    check(estimate.expected, "11/35")
    check(estimate.observed, "11/18")
    check(estimate.value, "187/432")
    for convention, expected, value in (
        ("pooled", "21/50", "86/261"),
        ("item-mean", "421/1152", "283/731"),
        ("pairable", "41/81", "17/80"),
    ):
        fleiss = fleiss_kappa(counts, convention)
        check(fleiss.expected, expected)
        check(fleiss.value, value)
        assert (fleiss.name, fleiss.convention) == ("Fleiss' kappa", convention)
    check(gwet_ac1(counts).value, "677/1573")


@settings(max_examples=40)
@given(tables(4), st.sampled_from(("flat", "annotations", "edge")))
def test_kappa_as_when_items_are_deleted(table, scheme):
    counts = counts_of(table)
    weight = weight_function(scheme, counts)

    def estimate(rows):
        return corrected(share(rows, weight), from_pairs_of_items(rows))

    result, reduced_result = kappa(counts, weight)
    without = left_out(estimate, table)
    np.testing.assert_allclose(result.value, estimate(table), atol=1e-12)
    np.testing.assert_allclose(result.sd, scatter(without), atol=1e-12)
    number = len(without)
    reduced = number * result.value - (number - 1) * without.mean() if number > 1 else np.nan
    np.testing.assert_allclose(reduced_result.value, reduced, atol=1e-11)
    for one in (result, reduced_result):
        assert not one.upper > 1
        assert not one.value < one.lower
        assert not min(one.value, 1) > one.upper


@settings(max_examples=40)
@given(tables(4), st.sampled_from(FLEISS_CONVENTIONS))
def test_fleiss_as_when_items_are_deleted(table, convention):
    counts = counts_of(table)
    flat = weight_function("flat", counts)

    def estimate(rows):
        return corrected(share(rows, flat), squared_shares(rows, convention))

    result = fleiss_kappa(counts, convention)
    np.testing.assert_allclose(result.value, estimate(table), atol=1e-12)
    without = left_out(estimate, table, 2 if convention == "pairable" else 1)
    np.testing.assert_allclose(result.sd, scatter(without), atol=1e-12)


@settings(max_examples=40)
@given(tables(4), st.integers(0, 2))
def test_ac1_as_when_items_are_deleted_with_classes_never_used(table, unused):
    table = np.pad(table, ((0, 0), (0, unused)))
    flat = weight_function("flat", counts_of(table))

    def estimate(rows):
        return corrected(share(rows, flat), (1 - squared_shares(rows, "item-mean")) / (table.shape[1] - 1))

    result = gwet_ac1(counts_of(table))
    np.testing.assert_allclose(result.value, estimate(table), atol=1e-12)
    np.testing.assert_allclose(result.sd, scatter(left_out(estimate, table)), atol=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_any_weights(scheme):
    counts = counts_of(np.tile(TABLE, (3, 1)))
    for estimate in kappa(counts, weight_function(scheme, counts)):
        assert 0 < estimate.sd < 1
        assert estimate.lower < estimate.value < estimate.upper


def estimates(counts):
    return [*flat_kappa(counts), *(fleiss_kappa(counts, name) for name in FLEISS_CONVENTIONS), gwet_ac1(counts)]


@settings(max_examples=30)
@given(tables(4), st.randoms(use_true_random=False))
def test_order_of_items_and_names_of_labels_make_no_difference(table, random):
    rows, columns = random.sample(range(len(table)), len(table)), random.sample(range(3), 3)
    given = estimates(counts_of(table))
    for first, second in zip(given, estimates(counts_of(table[rows])), strict=True):
        np.testing.assert_allclose(first[-4:], second[-4:], atol=1e-12)
        assert first.value == pytest.approx(second.value, abs=1e-12, nan_ok=True)
    for first, second in zip(given, estimates(counts_of(table[:, columns])), strict=True):
        np.testing.assert_allclose(first[-2:], second[-2:], atol=1e-12)
        assert first.value == pytest.approx(second.value, abs=1e-12, nan_ok=True)
        # Names decide which numbers are drawn for which label.
        np.testing.assert_allclose(first[4:6], second[4:6], rtol=0.1, atol=0.15)


@settings(max_examples=30)
@given(tables(4))
def test_every_item_twice(table):
    assume((table.sum(1) >= 2).any())
    for convention in FLEISS_CONVENTIONS:
        once, twice = (fleiss_kappa(counts_of(rows), convention) for rows in (table, np.tile(table, (2, 1))))
        np.testing.assert_allclose(twice.value, once.value, atol=1e-12)
    assert gwet_ac1(counts_of(np.tile(table, (2, 1)))).value == pytest.approx(gwet_ac1(counts_of(table)).value)


def test_items_with_one_annotation():
    usable, counts = counts_of(TABLE[:3]), counts_of(TABLE)
    assert fleiss_kappa(counts, "pairable") == fleiss_kappa(usable, "pairable")
    assert fleiss_kappa(counts, "pooled").observed == fleiss_kappa(usable, "pooled").observed
    assert fleiss_kappa(counts, "pooled").expected < fleiss_kappa(usable, "pooled").expected
    assert flat_kappa(counts)[0].expected < flat_kappa(usable)[0].expected


def test_items_without_annotations_do_not_count():
    assert estimates(counts_of(np.pad(TABLE, ((0, 3), (0, 0))))) == estimates(counts_of(TABLE))


@pytest.mark.parametrize(
    ("table", "has_interval"),
    [
        (np.array([[3, 1, 0]]), True),
        (np.array([[3, 0, 0], [2, 0, 0]]), True),
        (np.array([[3], [2]]), False),
        (np.array([[1, 0, 0], [0, 1, 0]]), False),
        (np.zeros((2, 3), int), False),
        (np.zeros((0, 3), int), False),
    ],
    ids=["one item", "one class", "one class declared", "no pairs", "no annotations", "no items"],
)
def test_chance_of_one_class_or_without_pairs_is_not_defined(table, has_interval):
    for estimate in flat_kappa(counts_of(table)):
        assert np.isnan([estimate.value, estimate.sd]).all()
        assert np.isfinite([estimate.lower, estimate.upper]).tolist() == [has_interval] * 2
        assert estimate.lower < estimate.upper or not has_interval
    pairable = fleiss_kappa(counts_of(table), "pairable")
    assert np.isnan(pairable.sd)


def test_without_an_item_one_class_is_left():
    estimate = fleiss_kappa(counts_of(np.array([[2, 0], [2, 0], [1, 1]])))
    assert estimate.value == pytest.approx(-1 / 5)
    assert np.isnan(estimate.sd)
    assert -1 < estimate.lower < -1 / 5 < estimate.upper < 1


def test_ac1_of_one_class():
    assert gwet_ac1(counts_of(np.array([[3, 0], [2, 0]]))).value == 1
    assert np.isnan(gwet_ac1(counts_of(np.array([[3], [2]]))).value)


def test_unknown_convention():
    with pytest.raises(UnknownName, match="pooled, item-mean, pairable"):
        fleiss_kappa(counts_of(TABLE), "mean")


def simulate(random, num_items, concentration):
    """Draw items with class distributions of their own; kappa is 1 / (concentration + 1)."""
    truth = random.dirichlet(concentration * np.array([0.5, 0.3, 0.2]), num_items)
    return random.multinomial(random.integers(1, 6, num_items), truth)


def test_intraclass_correlation():
    _, estimate = flat_kappa(counts_of(simulate(np.random.default_rng(0), 4000, 1.5)))
    assert abs(estimate.value - 1 / 2.5) < 5 * estimate.sd


@pytest.mark.slow
def test_bias(monkeypatch):
    # Thousands of intervals that nobody looks at.
    monkeypatch.setattr(chance, "bootstrap_interval", lambda *_: (np.nan, np.nan))
    random = np.random.default_rng(1)
    rows, chances = [], []
    for _ in range(2500):
        counts = counts_of(simulate(random, 20, 1.0))
        (estimate, reduced), fleiss = flat_kappa(counts), fleiss_kappa(counts)
        alpha = krippendorff_alpha(counts).value
        rows.append([fleiss.value, alpha, estimate.value, reduced.value])
        chances.append([estimate.expected, fleiss.expected])
    chances, rows = np.array(chances), np.array(rows)
    rows = rows[np.isfinite(rows).all(1)]

    def error(values):
        return values.std(0, ddof=1) / np.sqrt(len(values))

    true_chance = 0.5**2 + 0.3**2 + 0.2**2
    assert abs(chances[:, 0].mean() - true_chance) < 5 * error(chances[:, 0])
    assert chances[:, 1].mean() - true_chance > 5 * error(chances[:, 1])
    # Self pairs bias Fleiss' chance, pairs within items that of alpha too; the differences are known better than the
    # means.
    steps = np.diff(rows[:, :3], axis=1)
    assert (steps.mean(0) > 5 * error(steps)).all()
    assert rows[:, 0].mean() < 0.5 - 5 * error(rows[:, 0])
    assert (abs(rows[:, 2:].mean(0) - 0.5) < 5 * error(rows[:, 2:])).all()
