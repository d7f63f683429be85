import sys

import numpy as np
import pytest

import consilience as cs
from benchmarks.views_experts import simulate_experts, three_clusters
from consilience.errors import NotInstalled, UnknownName, UnsupportedRequest
from consilience.evaluation.clustering import baselines
from consilience.evaluation.partitions import contingency, score


def agreement(metric, label, truth):
    return float(score(contingency(label[None], truth[None]), metric)[0])


@pytest.fixture(scope="module")
def reference():
    """The data of the recorded figures: 600 items, two views, ten experts."""
    clusterings = three_clusters()
    return clusterings, *simulate_experts(*clusterings)


@pytest.fixture(scope="module")
def easy():
    """Few items, and experts who err seldom."""
    clusterings = three_clusters(60, spread=0.3)
    accuracy = [0.99, 0.97, 0.95, 0.95, 0.97, 0.99]
    data, experts = simulate_experts(
        *clusterings, view_of_expert=[0, 0, 0, 1, 1, 1], sensitivity=accuracy, num_together=150, num_apart=150
    )
    return clusterings, data, experts


def views(data, experts):
    for view in range(2):
        yield view, baselines.of_experts(data, np.flatnonzero(experts.view_of_expert == view))


@pytest.mark.parametrize("name", baselines.METHODS)
def test_every_method_finds_clusters_that_are_easy_to_find(easy, name):
    clusterings, data, experts = easy
    for view, own in views(data, experts):
        label = baselines.METHODS[name](own, 3, 0)
        assert label.shape == (60,)
        assert set(label) <= {-1, 0, 1, 2}
        assert agreement("nmi", label, clusterings.label[view]) > 0.6
        assert (baselines.METHODS[name](own, 3, 0) == label).all()


def test_answers_of_some_experts(easy):
    _, data, _ = easy
    own = baselines.of_experts(data, np.array([4]))
    assert set(own.expert) == {4}
    assert own.num_constraints == len(own.together) == 300
    assert own.num_experts == data.num_experts


def test_one_answer_a_pair(easy):
    _, data, _ = easy
    some = data.replace(
        expert=np.array([0, 1, 2, 0, 1, 2]), item_a=np.array([3, 3, 3, 0, 0, 5]), item_b=np.array([7, 7, 7, 9, 9, 6]),
        together=np.array([1, 0, 1, 0, 1, 0]), num_constraints=6,
    )  # fmt: skip
    pair, share = baselines.shares(some)
    assert pair.tolist() == [[0, 3, 5], [9, 7, 6]]
    assert share.tolist() == [0.5, 2 / 3, 0.0]
    pair, together = baselines.majority(some)
    assert pair.tolist() == [[3, 5], [7, 6]]
    assert together.tolist() == [True, False]


def test_k_means_is_that_of_scikit_learn(reference):
    cluster = pytest.importorskip("sklearn.cluster")
    clusterings = reference[0]
    theirs = cluster.KMeans(3, n_init=30, random_state=0).fit(clusterings.feature)
    ours = baselines.k_means(clusterings.feature, 3)
    assert agreement("nmi", ours, theirs.labels_) > 0.99


def test_baselines_of_scikit_learn(easy):
    pytest.importorskip("sklearn")
    clusterings, data, _ = easy
    first = three_clusters(60, spread=0.3).feature[:, :2]
    own = data.replace(feature=first, num_features=2, features=None)
    assert agreement("nmi", cs.baseline("spectral", own, clusters=3), clusterings.label[0]) > 0.9
    truth = np.where(np.arange(60) < 40, clusterings.label[0], -1)
    found = cs.baseline("logistic-regression", own, clusters=3, truth=truth)
    assert (found == clusterings.label[0]).mean() > 0.9
    for name, given in (("logistic-regression", None), ("spectral", truth)):
        with pytest.raises(UnsupportedRequest, match="logistic-regression needs truth="):
            cs.baseline(name, own, clusters=3, truth=given)


def test_what_baselines_refuse(easy, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(NotInstalled, match=r"pip install 'consilience\[clustering\]'"):
        cs.baseline("spectral", easy[1], clusters=3)
    graded = easy[1].replace(num_grades=5, num_blanks=0)
    with pytest.raises(UnsupportedRequest, match="baselines read answers together and apart"):
        cs.baseline("itml", graded, clusters=3)


def test_figures_without_answers(reference):
    clusterings = reference[0]
    floor = [agreement("nmi", baselines.k_means(clusterings.feature, 3), truth) for truth in clusterings.label]
    # Optima of k-means within a thousandth of each other differ by this much.
    assert floor == pytest.approx([0.007, 0.771], abs=0.02)
    pytest.importorskip("sklearn")
    ceiling = [
        agreement("nmi", baselines.logistic_regression(clusterings.feature, truth), truth)
        for truth in clusterings.label
    ]
    assert ceiling == pytest.approx([0.807, 0.798], abs=5e-4)


def test_figures_with_answers(reference):
    clusterings, data, experts = reference
    recorded = {"right": (0.948, 0.957), "ITML": (0.769, 0.802), "MPCKMeans": (0.737, 0.755), "seen": (489, 492)}
    for view, own in views(data, experts):
        truth = clusterings.label[view]
        pair, together = baselines.majority(own)
        right = (together == (truth[pair[0]] == truth[pair[1]])).mean()
        assert right == pytest.approx(recorded["right"][view], abs=5e-4)
        assert agreement("nmi", baselines.itml(own, 3), truth) == pytest.approx(recorded["ITML"][view], abs=0.015)
        # Recorded of a search that goes over the items once, not four times.
        assert -0.01 < agreement("nmi", baselines.mpc_k_means(own, 3), truth) - recorded["MPCKMeans"][view] < 0.06
        label = baselines.cspa(own, 3)
        assert (label >= 0).sum() == recorded["seen"][view]
        # With 600 pairs the graph of items falls apart, and eigenvectors find its parts.
        assert agreement("nmi", label, truth) < 0.06


@pytest.mark.slow
def test_figures_of_low_rank(reference):
    clusterings, data, experts = reference
    for (view, own), recorded in zip(views(data, experts), (0.736, 0.819), strict=True):
        label = baselines.semi_crowd(own, 3)
        assert agreement("nmi", label, clusterings.label[view]) == pytest.approx(recorded, abs=5e-3)


@pytest.mark.parametrize(("protocol", "expected"), [("group", (0, 1, 1)), ("own", (0, 0, 1)), ("all", (0, 1, 1))])
def test_figures_of_meta_clustering(reference, protocol, expected):
    data, experts = simulate_experts(*reference[0], protocol=protocol)
    similarity, label = baselines.by_clusterings(data, 3)
    assert label.shape == (10, 600)
    for found, value in zip((baselines.agreement_rate(data), baselines.kappa(data), similarity), expected, strict=True):
        group = baselines.meta_clustering(found)
        assert agreement("ari", group, experts.view_of_expert) == pytest.approx(value, abs=1e-9)


def test_similarities_of_experts(easy):
    _, data, _ = easy
    number = 40
    item_a, item_b = np.repeat(0, number), np.arange(1, number + 1)
    first = np.arange(number) < 20
    answers = [first, ~first, first, first[:10]]
    codes = np.repeat(np.arange(4), [len(one) for one in answers])
    some = data.replace(
        expert=codes, item_a=np.concatenate([item_a[: len(one)] for one in answers]),
        item_b=np.concatenate([item_b[: len(one)] for one in answers]), together=np.concatenate(answers).astype(int),
        num_experts=5, num_constraints=len(codes),
    )  # fmt: skip
    rate = baselines.agreement_rate(some)
    assert rate[0, :4].tolist() == [1, 0, 1, 1]
    assert np.isnan(rate[4]).all()
    kappa = baselines.kappa(some)
    assert kappa[0, :3].tolist() == [1, 0, 1]
    assert np.isnan(kappa[:, 3:]).all()
    # Right in 30 of 40, each says together half of the time: (.75 - .5) / (1 - .5).
    noisy = np.where(np.arange(number) % 4 == 0, ~first, first)
    some = some.replace(together=np.where(some.expert == 1, np.resize(noisy, len(codes)), some.together).astype(int))
    shared = noisy[np.arange(number)]
    some.together[some.expert == 1] = shared
    assert baselines.kappa(some)[0, 1] == pytest.approx(0.5)


def test_metrics_are_learned_side_by_side_as_alone(easy):
    _, data, _ = easy
    answers = [baselines.majority(baselines.of_experts(data, np.array([expert]))) for expert in range(3)]
    answers[1] = answers[1][0][:, :100], answers[1][1][:100]
    together = baselines._itml_metrics(data.feature, answers)
    alone = [baselines._itml_metrics(data.feature, [one])[0] for one in answers]
    np.testing.assert_allclose(together, alone, rtol=1e-8)
    assert (np.linalg.eigvalsh(together) > 0).all()


def test_missing_entries_of_low_rank_are_completed():
    random = np.random.default_rng(0)
    member = np.eye(3)[random.integers(3, size=50)]
    truth = member @ member.T
    known = random.random(truth.shape) < 0.5
    known = known | known.T | np.eye(50, dtype=bool)
    found = baselines._low_rank(np.where(known, truth, 0), known)
    assert np.abs(found - truth).mean() < 0.02


def test_two_blocks_are_two_groups():
    similarity = np.kron(np.eye(2), np.ones((3, 3))) + 0.01
    group = baselines.meta_clustering(similarity)
    assert len(set(group[:3])) == len(set(group[3:])) == 1
    assert group[0] != group[3]
    assert set(baselines.meta_clustering(np.full((4, 4), np.nan))) == {0}


def test_baselines_by_name(easy):
    clusterings, data, experts = easy
    with pytest.raises(UnknownName, match="there are cspa, itml, k-means, mpc-k-means, semi-crowd"):
        cs.baseline("kmeans", data, clusters=3)
    with pytest.raises(UnknownName, match="no expert '17'"):
        cs.baseline("itml", data, clusters=3, experts=[0, 17])
    label = cs.baseline("mpc-k-means", data, clusters=3, experts=np.flatnonzero(experts.view_of_expert == 1))
    assert agreement("nmi", label, clusterings.label[1]) > 0.6
    bare = cs.baseline("k-means", data, clusters=3, standardize=False)
    np.testing.assert_array_equal(bare, baselines.k_means(data.feature, 3))
