import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from benchmarks.views_experts import PROTOCOLS, k_views, simulate_experts, three_clusters
from consilience.errors import UnsupportedRequest
from consilience.models.expert_views import Priors, simulate


@pytest.fixture(scope="module")
def clusterings():
    return three_clusters()


def shares(data):
    return np.bincount(data.expert, data.together) / np.bincount(data.expert)


def sizes(data):
    """Return how many items are judged, and how many pairs."""
    return len(np.union1d(data.item_a, data.item_b)), len(np.unique(data.item_a * data.num_items + data.item_b))


def test_the_seed_draws_the_recorded_data(clusterings):
    assert clusterings.feature[0].round(4).tolist() == [-1.2662, -0.7288, -0.1832, 1.7252, 1.0799, 1.0128]
    np.testing.assert_allclose(clusterings.feature.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(clusterings.feature.std(axis=0), 1)
    data, experts = simulate_experts(*clusterings)
    recorded = [0.520, 0.502, 0.478, 0.532, 0.442, 0.508, 0.492, 0.503, 0.507, 0.515]
    np.testing.assert_allclose(shares(data), recorded, atol=6e-4)
    assert experts.view_of_expert.tolist() == [0] * 5 + [1] * 5
    assert experts.sensitivity.tolist() == [0.9, 0.85, 0.8, 0.75, 0.7, 0.7, 0.75, 0.8, 0.85, 0.9]
    assert experts.specificity.tolist() == experts.sensitivity.tolist()
    assert (data.item_a < data.item_b).all()
    assert sizes(data) == (593, 1199)


@pytest.mark.parametrize(
    ("protocol", "number", "expected"),
    [("own", 300, (600, 5913)), ("all", 300, (526, 600)), ("own", 60, (587, 1198)), ("own", 25, (491, 500))],
)
def test_sizes_of_the_protocols(clusterings, protocol, number, expected):
    data, _ = simulate_experts(*clusterings, protocol=protocol, num_together=number, num_apart=number)
    assert sizes(data) == expected
    assert data.num_constraints == 20 * number


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_perfect_experts_tell_the_truth(clusterings, protocol):
    data, experts = simulate_experts(*clusterings, sensitivity=1.0, protocol=protocol, num_together=30, num_apart=50)
    view = experts.view_of_expert[data.expert]
    truth = clusterings.label[view, data.item_a] == clusterings.label[view, data.item_b]
    assert (truth == data.together).all()
    if protocol != "all":
        assert set(np.bincount(data.expert, truth)) == {30}
    assert len(set(map(tuple, data.item_a.reshape(10, 80)))) == {"group": 2, "own": 10, "all": 1}[protocol]


def test_experts_of_given_accuracy(clusterings):
    data, experts = simulate_experts(
        *clusterings, view_of_expert=[1, 0, 1], sensitivity=[0.9, 0.6, 0.7], specificity=0.8, protocol="own",
        num_together=2000, num_apart=2000,
    )  # fmt: skip
    view = experts.view_of_expert[data.expert]
    together = clusterings.label[view, data.item_a] == clusterings.label[view, data.item_b]
    for expert, expected in enumerate([0.9, 0.6, 0.7]):
        own = data.expert == expert
        for kind, share in ((together, expected), (~together, 0.2)):
            found = data.together[own & kind].mean()
            assert abs(found - share) < 5 * np.sqrt(share * (1 - share) / 2000)


def test_k_views_are_independent_and_overlap():
    label, feature = k_views()
    assert label.shape == (3, 900)
    assert feature.shape == (900, 3 * 3 + 4)
    assert all(set(of_view) == {0, 1, 2, 3} for of_view in label)
    again = k_views()
    assert (again.feature == feature).all()
    assert (k_views(seed=1).label != label).any()
    data, experts = simulate_experts(label, feature, num_together=20, num_apart=20)
    assert experts.sensitivity[[0, 5, 10]].tolist() == [0.9, 0.7, 0.9]
    assert data.num_experts == 15


@pytest.mark.parametrize(
    "settings",
    [
        {"protocol": "some"}, {"num_together": 10**6}, {"view_of_expert": [0, 2]}, {"view_of_expert": [1, 0]},
        {"sensitivity": [0.5, 0.6]}, {"view_of_expert": [0] * 6},
    ],
)  # fmt: skip
def test_impossible_experts_are_refused(clusterings, settings):
    with pytest.raises(UnsupportedRequest):
        simulate_experts(*clusterings, **settings)


def test_the_prior_predictive():
    data, values = simulate(
        jax.random.key(0), num_items=40, num_experts=4, num_features=2, num_pairs=30, clusters=3
    )
    assert (data.num_items, data.num_experts, data.num_features, data.num_constraints) == (40, 4, 2, 120)
    shapes = {name: value.shape for name, value in values.items()}
    assert shapes == {
        "stick": (2,), "view_of_expert": (4,), "sensitivity": (4,), "specificity": (4,), "weight": (3, 3, 3),
        "cluster": (3, 40), "feature": (40, 2), "item_a": (4, 30), "item_b": (4, 30),
    }  # fmt: skip
    assert (data.item_a < data.item_b).all()
    pair = (data.item_a * 40 + data.item_b).reshape(4, 30)
    assert all(len(set(of_expert)) == 30 for of_expert in pair)
    assert len(np.unique(pair, axis=0)) == 4
    np.testing.assert_allclose(data.feature.std(axis=0), 1)
    again, _ = simulate(jax.random.key(1), values=values, clusters=3)
    assert (again.item_a == data.item_a).all()
    assert (again.together != data.together).any()


def test_all_pairs_may_be_judged():
    data, _ = simulate(jax.random.key(0), num_items=6, num_experts=4, num_pairs=100, clusters=2)
    assert sorted((data.item_a * 6 + data.item_b)[:15]) == [a * 6 + b for a in range(6) for b in range(a + 1, 6)]


@pytest.mark.parametrize("experts", ["two-coin", "symmetric", "per-view", "spammer"])
def test_answers_have_the_accuracy_of_their_experts(experts):
    data, values = simulate(
        jax.random.key(3), num_items=200, num_experts=4, num_pairs=2000, clusters=3, views=3, experts=experts,
        priors=Priors(sensitivity=dist.Beta(6.0, 4.0), specificity=dist.Beta(6.0, 4.0), knowledge=dist.Beta(5.0, 5.0)),
    )  # fmt: skip
    view = values["view_of_expert"]
    of_pair = values["cluster"][view[data.expert], [data.item_a, data.item_b]]
    together = of_pair[0] == of_pair[1]
    for expert in range(4):
        if experts == "spammer":
            knowledge, guess = values["knowledge"][expert], values["guess"][expert]
            expected = knowledge + (1 - knowledge) * guess, (1 - knowledge) * guess
        else:
            own = (expert, view[expert]) if experts == "per-view" else expert
            specificity = values["sensitivity" if experts == "symmetric" else "specificity"]
            expected = values["sensitivity"][own], 1 - specificity[own]
        for kind, share in zip((together, ~together), expected, strict=True):
            answers = data.together[kind & (data.expert == expert)]
            assert abs(answers.mean() - share) < 5 * np.sqrt(share * (1 - share) / len(answers)) + 1e-6


def test_clusters_follow_a_link_of_the_users():
    priors = Priors(
        logits=lambda weight, feature: 50 * weight * feature[:, :1] ** 2 * np.array([1.0, 0.0]) - np.array([25.0, 0.0]),
        weight=dist.LogNormal(0.0, 1e-3),
    )
    _, values = simulate(jax.random.key(0), priors, num_items=200, views=2, clusters=2)
    assert values["weight"].shape == (2,)
    far = values["feature"][:, 0] ** 2
    assert (values["cluster"][:, far > 1.2] == 0).all()
    assert (values["cluster"][:, far < 0.2] == 1).all()


def test_sticks_and_views_follow_the_prior():
    even = dist.Uniform(0.0, 1.0)
    priors = Priors(concentration=3.0, sensitivity=even, specificity=even)
    _, values = simulate(jax.random.key(0), priors, num_items=2, num_experts=5000, num_pairs=1, views=1000, clusters=2)
    stick = values["stick"]
    assert abs(stick.mean() - 1 / 4) < 5 * np.sqrt(3 / 80 / len(stick))
    first = (values["view_of_expert"] == 0).mean()
    assert abs(first - stick[0]) < 5 * np.sqrt(stick[0] * (1 - stick[0]) / 5000)
    second = stick[1] * (1 - stick[0])
    assert abs((values["view_of_expert"] == 1).mean() - second) < 5 * np.sqrt(second * (1 - second) / 5000)
