"""Clusters of new items, against many draws of the weights and against integrals that are known."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, special, stats

from consilience.errors import InputError, UnknownName, UnsupportedRequest
from consilience.models.expert_views.prediction import drawn_memberships, expected_memberships, memberships, predict
from consilience.models.expert_views.priors import linear


@pytest.fixture(scope="module")
def fit(constraints, posterior, fitted):
    return fitted(posterior, constraints, num_draws=100)


FEATURE = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)), np.ones((20, 1))], axis=1)


@pytest.mark.parametrize("clusters", [2, 3, 5])
def test_quadrature_is_the_mean_over_many_draws_of_the_weights(clusters):
    random = np.random.default_rng(clusters)
    mean, variance = random.normal(size=(2, 3, clusters)), random.uniform(0.05, 0.8, (2, 3, clusters))
    found = expected_memberships(mean, variance, FEATURE)
    weight = random.normal(mean, np.sqrt(variance), (20_000, 2, 3, clusters))
    share = np.stack([special.softmax(FEATURE @ weight[:, view], axis=2) for view in range(2)], axis=2)
    error = share.std(axis=0) / np.sqrt(len(weight))
    np.testing.assert_allclose(found.sum(axis=2), 1)
    assert (np.abs(found - share.mean(axis=0)) < 5 * error + (1e-6 if clusters == 2 else 5e-3)).all()


def test_two_clusters_by_the_points_of_gauss_and_hermite():
    mean, variance = np.array([[[0.3, -0.8]]]), np.array([[[0.5, 4.0]]])
    found = expected_memberships(mean, variance, np.ones((1, 1)))[0, 0]
    difference = stats.norm(0.3 + 0.8, np.sqrt(4.5))
    exact = integrate.quad(lambda x: special.expit(x) * difference.pdf(x), -30, 30, epsabs=1e-12)[0]
    assert found[0] == pytest.approx(exact, abs=1e-8)


def test_weights_that_are_known():
    mean = np.random.default_rng(0).normal(size=(2, 3, 3))
    expected = np.stack([special.softmax(FEATURE @ mean[view], axis=1) for view in range(2)], axis=1)
    for rule in ("quadrature", "draws"):
        np.testing.assert_allclose(expected_memberships(mean, np.zeros_like(mean), FEATURE, rule), expected)


def test_the_rule_of_the_paper_is_noisier(posterior):
    one, other = (
        expected_memberships(posterior.weight_mean, posterior.weight_variance, FEATURE, "draws", seed)
        for seed in (0, 1)
    )
    exact = expected_memberships(posterior.weight_mean, posterior.weight_variance, FEATURE)
    assert 0.001 < np.abs(one - other).max() < 5 * np.sqrt(2) * 0.5 / np.sqrt(100)
    assert np.abs(one - exact).max() < 5 * 0.5 / np.sqrt(100)


def test_draws_are_averaged_in_the_order_of_their_clusters():
    random = np.random.default_rng(0)
    weight = random.normal(size=(30, 2, 3, 3))
    order = np.stack([random.permutation(3) for _ in range(60)]).reshape(30, 2, 3)
    straight = np.take_along_axis(weight, order[:, :, None], axis=3)
    shares = [special.softmax(FEATURE @ straight[:, view], axis=2) for view in range(2)]
    expected = np.stack([share.mean(axis=0) for share in shares], axis=1)
    np.testing.assert_allclose(drawn_memberships(weight, order, FEATURE, linear), expected)
    own = drawn_memberships(weight, order, FEATURE, lambda one, feature: feature @ one)
    np.testing.assert_allclose(own, expected, atol=1e-5)  # a link of one's own runs in JAX


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
    with pytest.raises(UnknownName, match="choose one of 'quadrature', 'draws'"):
        predict(fit, {"item": ["x"], "height": [1], "width": [1]}, rule="mean")
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
