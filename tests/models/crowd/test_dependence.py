"""Dependence: the exponent by hand, what tempering leaves alone, and what gold labels teach."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.models.crowd import dependence
from consilience.models.crowd.dependence import (
    DEFAULT,
    FEWEST_GOLD,
    SPREAD,
    Dependence,
    cross_fitted,
    learned,
    learned_without_each,
    tempered,
)
from consilience.models.crowd.dependence import exponents as exponents_of


def test_the_worked_number():
    exponent = exponents_of(np.array([3.0]), 0.3)
    assert exponent == pytest.approx([0.625])
    assert tempered(np.array([[0.9, 0.1]]), exponent)[0] == pytest.approx([0.797907, 0.202093], abs=5e-7)


def test_exponents_by_hand():
    weight = np.array([0.0, 0.5, 1.0, 2.0, 5.0])
    assert exponents_of(weight, 0.0).tolist() == [1.0] * 5
    assert exponents_of(weight, 1.0) == pytest.approx([1, 1, 1, 1 / 2, 1 / 5])
    assert exponents_of(weight, 0.5) == pytest.approx([1, 1, 1, 1 / 1.5, 1 / 3])


def test_without_dependence_the_same_array_comes_back():
    q = np.random.default_rng(0).dirichlet([0.2] * 4, 50)
    assert tempered(q, exponents_of(np.arange(50.0), 0.0)) is q
    # Items with one annotation stay bit by bit, whatever rho is.
    number = np.arange(50) % 2 + 1.0
    after = tempered(q, exponents_of(number, 0.3))
    np.testing.assert_array_equal(after[number == 1], q[number == 1])
    assert (after[number == 2] != q[number == 2]).any()


def test_equal_annotations_of_dependence_one_are_worth_one():
    # n annotations of the same evidence e have odds e^n; tempered with rho = 1 they are those of one of them.
    odds, number = 3.0, np.arange(1.0, 9.0)
    q = np.stack([odds**number, np.ones(8)], axis=1) / (odds**number + 1)[:, None]
    after = tempered(q, exponents_of(number, 1.0))
    np.testing.assert_allclose(after, np.broadcast_to([0.75, 0.25], (8, 2)))


rows_of_q = st.integers(0, 2**32 - 1).map(
    lambda seed: np.random.default_rng(seed).dirichlet([0.05, 0.2, 1.0, 2.0], 20)
)


@settings(max_examples=50, deadline=None)
@given(rows_of_q, st.floats(0.001, 5), st.floats(0.001, 5))
def test_tempering_keeps_the_order_and_composes(q, rho, then):
    first, second = exponents_of(np.arange(20.0) % 7, rho), exponents_of(np.arange(20.0) % 5, then)
    after = tempered(q, first)
    np.testing.assert_allclose(after.sum(axis=1), 1)
    np.testing.assert_array_equal(after.argmax(axis=1), q.argmax(axis=1))
    assert (after.max(axis=1) <= q.max(axis=1) + 1e-12).all()
    np.testing.assert_allclose(tempered(after, second), tempered(q, first * second), atol=1e-12)
    np.testing.assert_allclose(tempered(after, 1 / first), q, atol=1e-9)


def test_tempering_by_some_rows_at_a_time_is_the_same(monkeypatch):
    random = np.random.default_rng(3)
    q, exponent = random.dirichlet([0.5] * 4, 50), np.where(random.random(50) < 0.5, 0.4, 1.0)
    expected = q ** exponent[:, None] / (q ** exponent[:, None]).sum(axis=1, keepdims=True)
    monkeypatch.setattr(dependence, "_BLOCK", 12)
    np.testing.assert_allclose(tempered(q, exponent), expected)
    np.testing.assert_array_equal(tempered(q, exponent)[exponent == 1], q[exponent == 1])


def test_what_is_certain_stays_certain_and_what_is_equal_stays_equal():
    q = np.array([[0, 1, 0], [0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3], [0.9, 0.1, 0]])
    after = tempered(q, np.full(4, 0.4))
    np.testing.assert_array_equal(after[:2], q[:2])
    np.testing.assert_allclose(after[2], q[2])
    assert after[3, 2] == 0


def test_the_smallest_numbers_do_not_vanish():
    q = np.array([[1.0, 1e-300], [1e-320, 1.0]])
    after = tempered(q, np.array([0.01, 0.01]))
    assert after[0, 1] == pytest.approx(1e-3 / 1.001)
    assert after[1, 0] == pytest.approx(10**-3.2 / (1 + 10**-3.2), rel=1e-4)  # 1e-320 has four digits


# ---- learned ----


def simulated(rho, items, seed, size=8):
    """Probabilities that are right once they are tempered by rho."""
    random = np.random.default_rng(seed)
    number = random.integers(2, size, items).astype(float)
    right = random.dirichlet([0.5, 0.8, 1.2], items)
    gold = (random.random((items, 1)) > right.cumsum(axis=1)).sum(axis=1)
    return tempered(right, 1 / exponents_of(number, rho)), number, gold


def scores(q, number, gold):
    """What is maximised, by its definition."""
    grid = [0, *np.exp(np.linspace(np.log(0.02), np.log(4), 24))]
    found = []
    for rho in grid:
        power = np.maximum(q, 1e-12) ** (1 / (1 + (np.maximum(number, 1) - 1) * rho))[:, None]
        likelihood = np.log((power / power.sum(axis=1, keepdims=True))[np.arange(len(gold)), gold]).sum()
        found.append(likelihood - (np.log(rho + 0.001) - np.log(0.3)) ** 2 / (2 * 0.7**2))
    return grid[int(np.argmax(found))]


@pytest.mark.parametrize("rho", [0.05, 0.3, 1.0])
def test_gold_labels_teach_rho(rho):
    found = learned(*simulated(rho, 20_000, 1))[0]
    assert abs(np.log(found / rho)) < np.log(4 / 0.02) / 23  # within a step of the grid


@pytest.mark.parametrize(("rho", "items"), [(0.0, 30), (0.2, 25), (1.5, 200), (0.4, 0)])
def test_what_is_learned_maximises_its_definition(rho, items, monkeypatch):
    data = simulated(rho, items, 2)
    expected = scores(*data)
    assert learned(*data)[0] == pytest.approx(expected)
    monkeypatch.setattr(dependence, "_BLOCK", 25 * 3 * 7)
    assert learned(*data)[0] == pytest.approx(expected)


def test_what_is_learned_without_each_is_learned_from_the_others():
    q, number, gold = simulated(0.3, 30, 4)
    q[7], number[7], gold[7] = [0.999, 0.0005, 0.0005], 8, 2
    found, alone = learned_without_each(q, number, gold)
    for item in range(30):
        kept = np.arange(30) != item
        assert found[item] == learned(q[kept], number[kept], gold[kept])[0]
    assert np.argmin(found) == 7
    assert alone[7] < found[7]  # other crowds hold it up


def test_twenty_right_of_twenty_leave_rho_positive():
    q = np.tile([0.99, 0.01], (FEWEST_GOLD, 1))
    few = learned(q, np.full(20, 5.0), np.zeros(20, int))[0]
    # All of them right at any number say that annotations are nearer to independent than in other crowds.
    assert 0 < few < DEFAULT


def test_an_impossible_gold_label_does_not_rule_everything_out():
    q = np.tile([1.0, 0.0], (40, 1))
    gold = np.zeros(40, int)
    gold[:8] = 1
    assert learned(q, np.full(40, 5.0), gold)[0] > 1


def test_cross_fitting_learns_from_the_others():
    q, number, gold = simulated(0.4, 60, 3)
    found = cross_fitted(q, number, gold)
    for fold in range(5):
        own = np.arange(60) % 5 == fold
        rho = learned(q[~own], number[~own], gold[~own])[0]
        np.testing.assert_allclose(found[own], tempered(q[own], exponents_of(number[own], rho)))
    # The own label of an item has no say.
    other = gold.copy()
    other[::5] = (other[::5] + 1) % 3
    np.testing.assert_array_equal(cross_fitted(q, number, other)[::5], found[::5])
    assert (cross_fitted(q, number, other)[1::5] != found[1::5]).any()


def test_a_dependence_says_where_it_comes_from():
    assert Dependence(DEFAULT) == Dependence(0.3, "default", 0)
    assert Dependence(0.3, spread=SPREAD).at(-1.0) == pytest.approx(0.3 * np.exp(-0.4))
    assert Dependence(0.22, "gold", 40).gold_items == 40
