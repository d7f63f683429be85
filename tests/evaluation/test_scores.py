"""What an evaluation returns, and the correlation of two scores."""

import numpy as np
import pytest
from scipy import stats

from consilience.evaluation.scores import Score, correlation

DRAWS = np.random.default_rng(0).beta(8, 3, 401)


def score(**changes):
    return Score(**{"title": "a score", "items": np.array([0.5, np.nan, 1.0]), "draws": DRAWS, **changes})


def test_spread_and_interval_of_draws():
    one = score()
    assert one.value == pytest.approx(DRAWS.mean())
    assert one.sd == pytest.approx(DRAWS.std(ddof=1))
    assert one.interval == pytest.approx(tuple(np.quantile(DRAWS, [0.025, 0.975])))
    assert (one.worst, one.best) == (DRAWS.min(), DRAWS.max())
    row = one.row()
    assert row["items"] == 2
    assert (row["lower"], row["upper"]) == one.interval
    assert f"{DRAWS.mean():.4f}" in repr(one)
    assert "2 items" in repr(one)


def test_one_draw_has_no_spread():
    one = score(draws=np.array([0.75]), point=0.7)
    assert one.sd == 0
    assert one.interval == (0.75, 0.75)
    assert "0.7000 against the point estimate" in repr(one)


def test_exact_scores_have_a_normal_interval_within_zero_and_one():
    one = score(draws=np.empty(0), exact_sd=0.05)
    assert one.interval == pytest.approx((0.75 - 1.96 * 0.05, 0.75 + 1.96 * 0.05))
    assert score(draws=np.empty(0), exact_sd=0.5).interval == (0.0, 1.0)
    assert np.isnan([one.worst, one.best]).all()


def test_scores_in_which_the_truth_has_no_part_have_no_spread():
    one = score(draws=np.empty(0))
    assert np.isnan(one.sd)
    assert np.isnan(one.interval).all()
    assert "±" not in repr(one)


def test_tables():
    one = score(ids=np.array(["x", "y", "z"], object), columns={"classes": np.array(list("abc"))}, label="certainty")
    table = one.table
    assert table.columns.tolist() == ["item", "classes", "certainty"]
    assert table["item"].tolist() == ["x", "y", "z"]
    assert score().table["item"].tolist() == [0, 1, 2]
    assert score().by_group is None
    assert score(groups={"group": np.array(["a"]), "value": np.array([1.0])}).by_group["value"].tolist() == [1.0]


def test_correlation_is_over_the_items_of_both():
    random = np.random.default_rng(1)
    first, second = random.random(50), random.random(50)
    second[:25] += first[:25]
    first[3] = second[7] = np.nan
    kept = np.isfinite(first) & np.isfinite(second)
    expected = stats.pearsonr(first[kept], second[kept]).statistic
    assert correlation(score(items=first), score(items=second)) == pytest.approx(expected)
