import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special

from benchmarks import views, views_authors, views_data, views_runs, views_scores
from benchmarks.views_experts import simulate_experts, three_clusters


@pytest.fixture(scope="module")
def known():
    return views_data.Known("few", *three_clusters(60, spread=0.3))


@pytest.fixture(scope="module")
def judged(known):
    return simulate_experts(known.label, known.feature, sensitivity=0.95, num_together=100, num_apart=100)


def test_packaged_data_have_known_views():
    pytest.importorskip("sklearn")
    expected = {"two-digits": (2, [4, 4]), "digit-parity": (2, [10, 2]), "wine": (1, [3]), "breast-cancer": (1, [2])}
    assert set(expected) == set(views_data.PACKAGED)
    for name, (number, clusters) in expected.items():
        found = views_data.load(name)
        assert (len(found.label), found.clusters) == (number, clusters)
        assert len(found.feature) == found.label.shape[1]
        np.testing.assert_allclose(found.feature.std(axis=0), 1)
    # An image may be drawn again, but left and right digits are independent.
    found = views_data.load("two-digits", seed=1)
    assert abs(np.corrcoef(found.label)[0, 1]) < 5 / np.sqrt(found.label.shape[1])
    assert (found.label != views_data.load("two-digits").label).any()


def test_rows_of_methods_of_one_view(known, judged):
    pytest.importorskip("sklearn")
    rows = {row["method"]: row for row in views_scores.single_views(known, *judged, 0, ["ITML", "CSPA"])}
    assert list(rows) == [
        "ITML, groups known", "CSPA, groups known", "meta clustering, agreement", "meta clustering, kappa",
        views_scores.META, "k-means", "logistic regression on the truth",
    ]  # fmt: skip
    assert rows["logistic regression on the truth"]["NMI 1"] > 0.8
    assert rows["ITML, groups known"]["NMI 2"] > 0.6
    assert rows[views_scores.META]["grouping ARI"] == 1
    assert rows[views_scores.META]["NMI 1"] == rows["ITML, groups known"]["NMI 1"]
    assert 0 < rows["CSPA, groups known"]["labelled"] <= 1


def test_tables_of_means():
    rows = [
        {"protocol": "own", "seed": 0, "NMI": 0.5}, {"protocol": "own", "seed": 1, "NMI": 0.7},
        {"protocol": "all", "seed": 0, "NMI": 0.25, "views": 2},
    ]  # fmt: skip
    assert views._means(rows, ["protocol"]) == [
        {"protocol": "own", "NMI": "0.600 (0.141)", "views": "–"},
        {"protocol": "all", "NMI": "0.250", "views": "2.000"},
    ]


def test_experts_of_a_sweep(known):
    for number in views._EXPERTS:
        _, experts = simulate_experts(
            known.label, known.feature, num_together=10, num_apart=10, **views._experts(number)
        )
        assert np.bincount(experts.view_of_expert).tolist() == [number // 2] * 2
        assert set(experts.sensitivity) <= {0.9, 0.85, 0.8, 0.75, 0.7}


def test_the_most_probable_prior_is_recovered():
    random = np.random.default_rng(0)
    number, trials, a, b = 4000, 50, 6.0, 2.0
    right = random.binomial(trials, random.beta(a, b, number))
    found = views_runs._most_probable_beta(np.stack([right, trials - right], axis=-1).astype(float))
    # Standard errors of the logarithms from the curvature of the log likelihood at the truth, by differences.
    step = 1e-3

    def log_likelihood(log_prior):
        one, two = np.exp(log_prior)
        return (special.betaln(one + right, two + trials - right) - special.betaln(one, two)).sum()

    truth = np.log([a, b])
    curvature = np.empty((2, 2))
    for row in range(2):
        for column in range(2):
            e, f = step * np.eye(2)[row], step * np.eye(2)[column]
            corners = [log_likelihood(truth + s * e + t * f) * s * t for s in (1, -1) for t in (1, -1)]
            curvature[row, column] = -sum(corners) / (4 * step**2)
    error = np.sqrt(np.diag(np.linalg.inv(curvature)))
    assert (np.abs(np.log(found) - truth) < 5 * error).all()


def test_the_authors_weights_are_scored_by_our_bound(known, judged):
    data, experts = judged
    random = np.random.default_rng(0)
    # Weights that point to the clusters of each view, and weights that say nothing.
    inputs = np.concatenate([data.feature, np.ones((60, 1))], axis=1)
    targets = np.eye(3)[known.label]
    good = np.stack([8 * np.linalg.lstsq(inputs, target - 1 / 3, rcond=None)[0] for target in targets])
    mean = np.stack([good, 0.1 * random.standard_normal(good.shape)])
    phi = np.stack([np.eye(2)[experts.view_of_expert]] * 2)
    starts = views_authors.Starts(phi, mean, np.full(mean.shape, 0.3), np.ones(2), np.ones(2, int))
    bound, label = views_authors.scored(data, starts)
    assert np.isfinite(bound).all()
    assert bound[0] > bound[1] + 100
    assert label.shape == (2, 2, 60)
    assert (label[0] == known.label).mean() > 0.9


@pytest.mark.slow
def test_the_tables_of_views_are_written(tmp_path, monkeypatch, known):
    monkeypatch.setattr(views, "load", lambda name, seed=0: known)
    monkeypatch.setattr(views, "_ACCURACIES", (0.85,))
    arguments = SimpleNamespace(
        seeds=1, data=["three-clusters"], protocols=["own"], methods=["ITML"], sweeps=["accuracy"], restarts=False,
        coverage=False, scale=None, authors=None, python2=None, output=tmp_path, command="",
    )  # fmt: skip
    views.run(arguments)
    tables = json.loads((tmp_path / "results.json").read_text())["tables"]
    by_method = {row["method"]: row for row in tables["three-clusters-sets"]}
    assert by_method[views_scores.OURS]["grouping ARI"] == 1
    assert by_method[views_scores.OURS]["NMI 1"] > 0.8
    log_score = {row["probability"]: row["log score"] for row in tables["three-clusters-answers-sets"]}
    assert log_score["own share"] < log_score[views_scores.OURS] <= 0
    assert sum(row["pairs"] for row in tables["three-clusters-pairs"]) > 10_000
    assert {row["method"] for row in tables["sweeps-sets"]} >= {views_scores.OURS, "ITML, groups known"}
    assert {row["value"] for row in tables["sweeps-answers-sets"]} == {0.85}
    assert 0 < tables["sweeps-pairs"][0]["mean distance"] < 0.2
    assert "That was another run" in (tmp_path / "results.md").read_text()
