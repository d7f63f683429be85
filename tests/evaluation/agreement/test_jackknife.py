import numpy as np
import pytest
from scipy import special

from consilience.evaluation.agreement.jackknife import jackknife_sd, jackknife_value, wilson_interval


def test_the_jackknife_of_a_mean_is_the_standard_error():
    values = np.array([1.0, 4.0, 2.0, 7.0])
    left_out = (values.sum() - values) / 3
    assert jackknife_sd(left_out) == pytest.approx(values.std(ddof=1) / 2)
    assert jackknife_value(values.mean(), left_out) == pytest.approx(values.mean())


def test_the_jackknife_corrects_the_variance():
    values = np.array([1.0, 4.0, 2.0, 7.0])
    left_out = np.array([np.delete(values, place).var() for place in range(4)])
    assert jackknife_value(values.var(), left_out) == pytest.approx(values.var(ddof=1))


def test_multiplicities_are_repeated_units():
    left_out, count = np.array([0.2, 0.5, 0.9]), np.array([2.0, 1.0, 4.0])
    repeated = np.repeat(left_out, count.astype(int))
    assert jackknife_sd(left_out, count) == pytest.approx(jackknife_sd(repeated))


def test_one_unit_has_no_standard_error():
    assert np.isnan([jackknife_sd(np.array([0.5])), jackknife_value(0.5, np.array([0.5]))]).all()


def test_the_wilson_interval_holds_the_shares_that_are_not_rejected():
    """Its ends solve |S - p| = z sqrt(p (1 - p) / n)."""
    value, sd, effective = 0.8, 0.05, 30.0
    number, z = value * (1 - value) / sd**2, special.stdtrit(29, 0.975)
    for end in wilson_interval(value, sd, effective):
        assert abs(value - end) == pytest.approx(z * np.sqrt(end * (1 - end) / number))


def test_unanimous_items_do_not_prove_perfect_agreement():
    low, high = wilson_interval(1.0, 0.0, 20.0)
    z = special.stdtrit(19, 0.975)
    assert low == pytest.approx(20 / (20 + z**2))
    assert high == 1
    assert wilson_interval(0.0, 0.0, 20.0) == pytest.approx((1 - high, 1 - low))


def test_equal_items_have_a_width():
    assert wilson_interval(1 / 3, 1e-17, 50.0) == wilson_interval(1 / 3, 0.0, 50.0)


def test_without_a_standard_error_there_is_no_interval():
    nothing = float("nan")
    for ends in (wilson_interval(0.5, nothing, 10.0), wilson_interval(0.5, 0.1, 1.0)):
        assert np.isnan(ends).all()
