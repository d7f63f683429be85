"""Clusters of new items, against many draws of the weights and against integrals that are known."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

from consilience.errors import InputError, UnsupportedRequest
from consilience.models.expert_views.prediction import memberships, predict


@pytest.fixture(scope="module")
def fit(constraints, posterior, fitted):
    return fitted(posterior, constraints, num_draws=100)


FEATURE = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)), np.ones((20, 1))], axis=1)


def test_draws_of_an_ascent_are_those_of_its_factors(fit, posterior):
    """New items, against many draws of normal weights."""
    deviation = np.sqrt(posterior.weight_variance)
    weight = np.random.default_rng(0).normal(posterior.weight_mean, deviation, (20_000, 2, 3, 3))
    share = np.stack([special.softmax(FEATURE @ weight[:, view], axis=2) for view in range(2)], axis=2)
    error = np.abs(fit.truth.memberships(FEATURE) - share.mean(axis=0))
    assert (error < 5 * share.std(axis=0) / np.sqrt(fit.num_draws)).all()


def test_memberships_under_a_link_of_ones_own():
    weight = np.random.default_rng(0).normal(size=(4, 3))
    found = memberships(weight, FEATURE, lambda one, x: (x[:, :1] - one) ** 2)
    np.testing.assert_allclose(found, special.softmax((FEATURE[:, :1] - weight[:, None]) ** 2, axis=2), atol=1e-5)


# ---- a table of new items ----


def test_new_items_are_predicted_view_by_view(fit, constraints):
    height, width = constraints.feature[6]
    table = {"sample": ["new", "g"], "width": [1.0, width], "height": [5, height]}
    found = predict(fit, table)
    assert found.columns.tolist() == ["item", "view", "cluster", "probability", "entropy", "p_0", "p_1", "p_2"]
    assert found[["item", "view"]].to_numpy().tolist() == [["new", 0], ["new", 1], ["g", 0], ["g", 1]]
    shares = found[["p_0", "p_1", "p_2"]].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(found["probability"], shares.max(axis=1))
    np.testing.assert_allclose(found["entropy"], stats.entropy(shares, axis=1))
    # An item of the fit that nobody judged is predicted as a new one, whose columns stood in another order.
    np.testing.assert_allclose(shares[2:], fit.truth.cluster_probability[6])


def test_units_are_those_of_the_fit(fit, constraints):
    values = fit.truth.standardised(constraints.feature)[:, :2]
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(values.std(axis=0), 1)


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ({"item": ["x"], "height": [1.0]}, "the features of the fit are not all here: 'width'; add these columns"),
        (
            {"item": ["x"], "height": [1.0], "width": [1.0], "depth": [2.0]},
            "the features are not those of the fit: 'depth'; leave out",
        ),
        ({"item": ["x"], "height": ["tall"], "width": [1.0]}, "a number is expected"),
        ({"item": ["x", "x"], "height": [1, 2], "width": [1, 2]}, "this item has a row already"),
    ],
)
def test_tables_that_do_not_fit(fit, table, match):
    with pytest.raises(InputError, match=match):
        predict(fit, table)


def test_what_is_wrong_with_columns_is_told_together(fit):
    with pytest.raises(InputError) as raised:
        predict(fit, {"item": ["x"], "depth": [1.0]})
    assert len(raised.value.problems) == 2


def test_other_requests(fit, constraints):
    bare = SimpleNamespace(data=constraints.replace(num_features=0), truth=fit.truth)
    with pytest.raises(UnsupportedRequest, match="the fit knows no features"):
        predict(bare, {"item": ["x"], "height": [1]})


def test_views_that_nobody_holds(constraints, posterior, fitted):
    lonely = posterior._replace(view_probability=np.array([[0.9, 0.1], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]))
    fit = fitted(lonely, constraints, num_draws=10)
    table = {"item": ["x", "y"], "height": [1, 2], "width": [1, 3]}
    few, many = predict(fit, table), predict(fit, table, all_views=True)
    assert few["view"].tolist() == [0, 0]
    assert "used" not in few
    assert many["view"].tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(many["used"], [1.0, 0.1] * 2)
    np.testing.assert_allclose(few["probability"], many["probability"][many["view"] == 0])
