"""Two summaries of one posterior, compared by hand and on samplers that are right or wrong."""

import numpy as np
import pandas
import pytest
from scipy import stats

from consilience.errors import UnsupportedRequest
from consilience.evaluation.kernel_comparison import compare_summaries
from consilience.inference.posterior import summarise


def summary(**columns):
    """Return a table of summaries with healthy diagnostics, but for the columns given."""
    healthy = {"quantity": ["a", "b"], "mean": [0.0, 0.0], "mcse": 0.1, "r_hat": 1.0, "ess_bulk": 900.0}
    return pandas.DataFrame({**healthy, "ess_tail": 800.0, **columns})


def findings(one, other):
    return {row["figure"]: row for row in compare_summaries(one, other).findings()}


def test_differences_are_in_combined_errors():
    compared = compare_summaries(summary(mean=[1.0, 2.0], mcse=[0.3, 0.0]), summary(mean=[2.0, 2.0], mcse=[0.4, 0.0]))
    np.testing.assert_allclose(compared.z, [-2.0, 0.0])
    assert compared.largest == pytest.approx(2.0)
    assert compared.passed
    assert list(compared.table.columns) == ["quantity", "difference", "combined_error", "z"]


def test_rows_are_matched_by_name():
    compared = compare_summaries(summary(mean=[1.0, 2.0]), summary(quantity=["b", "c"], mean=[2.0, 7.0]))
    assert list(compared.quantities) == ["b"]
    assert compared.largest == 0


@pytest.mark.parametrize("mean", [np.nan, np.inf, 1.0])
def test_constants_that_differ_and_what_is_not_finite_fail(mean):
    compared = compare_summaries(summary(mcse=0.0), summary(mean=[0.0, mean], mcse=0.0))
    assert compared.largest == np.inf
    assert not compared.passed


@pytest.mark.parametrize(
    ("column", "value", "figure"),
    [
        ("mean", [0.0, 0.8], "largest difference in Monte Carlo errors"),
        ("r_hat", [1.0, 1.02], "largest R-hat"),
        ("ess_bulk", [900.0, 300.0], "smallest effective sample size"),
        ("ess_tail", [900.0, 300.0], "smallest effective sample size"),
    ],
)
def test_each_bar_can_fail_alone_and_on_either_side(column, value, figure):
    for pair in ((summary(), summary(**{column: value})), (summary(**{column: value}), summary())):
        assert not findings(*pair)[figure]["passed"]
        assert not compare_summaries(*pair).passed


def test_one_in_a_hundred_may_differ_by_four_but_not_two():
    names = [str(i) for i in range(100)]
    error = np.sqrt(2) * 0.1
    for number, passed in ((1, True), (2, False)):
        mean = np.where(np.arange(100) < number, 4.5 * error, 0.0)
        compared = compare_summaries(summary(quantity=names, mean=0.0), summary(quantity=names, mean=mean))
        assert compared.share_within == pytest.approx(1 - number / 100)
        assert compared.passed == passed


def test_the_largest_difference_allowed_grows_with_very_many_quantities():
    few = compare_summaries(summary(), summary())
    names = [str(i) for i in range(100_000)]
    many = compare_summaries(summary(quantity=names, mean=0.0), summary(quantity=names, mean=0.0))
    assert few.limit == 5.0
    assert many.limit == pytest.approx(stats.norm.isf(0.001 / 200_000))


def test_chains_are_not_asked_for_where_there_are_none():
    assert "largest R-hat" not in findings(summary(r_hat=np.nan), summary(r_hat=np.nan))
    assert findings(summary(r_hat=np.nan), summary(r_hat=1.005))["largest R-hat"]["value"] == 1.005


def test_summaries_of_different_models_are_refused():
    with pytest.raises(UnsupportedRequest, match="no quantity in common"):
        compare_summaries(summary(), summary(quantity=["c", "d"]))


def test_draws_of_one_posterior_pass_and_a_wrong_mean_or_spread_fails():
    generator = np.random.default_rng(0)

    def summaries(shift=0.0, spread=1.0):
        draws = shift + spread * generator.normal(size=(4, 1000, 50))
        return summarise({"x": draws, "x^2": draws**2})

    assert compare_summaries(summaries(), summaries()).passed
    assert compare_summaries(summaries(shift=0.2), summaries()).largest > 5
    assert compare_summaries(summaries(spread=1.1), summaries()).share_within < 0.99
