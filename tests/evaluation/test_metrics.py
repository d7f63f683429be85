"""Metrics of one prediction against one draw: worked values, ragged and unknown cases, names, and their invariants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import UnknownName
from consilience.evaluation.classes import Metric, resolve
from consilience.evaluation.registry import METRICS

EVERY_FORM = [
    *("accuracy", "top-1", "top-3", "top-3-target-2", "top-3-target-3", "set-1", "set-3", "overlap-2", "overlap-3"),
    *("average-overlap-3", "ao-2", "kendall-1", "kendall-3", "footrule-1", "footrule-3"),
]


def depth(codes, size):
    """Return the first `size` codes, padded with -1."""
    return np.array([*codes, *[-1] * size][:size], np.int32)


def score(name, truth, prediction):
    metric = resolve(name)
    return float(jax.jit(metric.score)(depth(truth, metric.truth_depth), depth(prediction, metric.prediction_depth)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("top-3", 1), ("top-1", 0), ("top-2-target-2", 1), ("top-3-target-3", 0), ("top-2-target-1", 1)),
        *(("set-1", 0), ("set-2", 1), ("set-3", 0), ("overlap-1", 0), ("overlap-2", 1), ("overlap-3", 2 / 3)),
        # Cut at 2: one pair opposed of at most 5; each class moves by one of at most 6 in all.
        *(("ao-3", (0 + 1 + 2 / 3) / 3), ("kendall-2", 4 / 5), ("footrule-2", 2 / 3)),
        # U = {4, 1, 6, 9}: the pairs (4, 1) and (6, 9) opposed, 2 of 12; every class moves by one, 4 of 12.
        *(("kendall-3", 5 / 6), ("footrule-3", 2 / 3)),
    ],
)
def test_values_by_hand(name, expected):
    assert score(name, [4, 1, 6], [1, 4, 9]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("top-3", 1), ("set-3", 1), ("overlap-3", 1), ("ao-3", 1), ("top-3-target-2", 0)),
        # Distance 1/2 for the pair that is absent from the prediction, of 3 + 3/2; footrule 0 + 0 + 1 of 3.
        *(("kendall-3", 8 / 9), ("footrule-3", 2 / 3)),
    ],
)
def test_shorter_prediction_is_compared_by_its_own_size(name, expected):
    assert score(name, [2, 0, 1], [2]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", EVERY_FORM)
def test_empty_prediction_and_missing_truth_score_zero(name):
    assert score(name, [2, 0, 1], []) == 0
    assert score(name, [], [2, 0, 1]) == 0
    assert score(name, [], []) == 0


@pytest.mark.parametrize("name", EVERY_FORM)
def test_perfect_prediction_scores_one_and_foreign_classes_zero(name):
    assert score(name, [2, 0, 1], [2, 0, 1]) == 1
    assert score(name, [2, 0, 1], [5, 6, 7]) == 0
    assert score(name, [2, 0, 1], [-2, -2, -2]) == 0


@pytest.mark.parametrize("name", EVERY_FORM)
def test_unknown_class_fills_a_place_like_a_foreign_one(name):
    assert score(name, [2, 0, 1], [-2, 2, -2]) == score(name, [2, 0, 1], [8, 2, 9])


@pytest.mark.parametrize("name", EVERY_FORM)
def test_fewer_classes_than_the_depth(name):
    """With two classes in all, the draw's list ends early."""
    assert score(name, [1, 0], [1, 0]) == 1
    assert score("top-3-target-3", [1, 0], [0, 1]) == score("set-3", [1, 0], [0, 1]) == 1
    assert score("kendall-3", [1, 0], [0, 1]) < 1


@pytest.mark.parametrize("name", EVERY_FORM)
def test_under_jit_and_vmap_over_items_and_draws(name):
    metric = resolve(name)
    generator = np.random.default_rng(5)
    truth = np.argsort(generator.random((4, 3, 6)), axis=-1)[..., : metric.truth_depth].astype(np.int32)
    prediction = np.argsort(generator.random((4, 6)), axis=-1)[:, : metric.prediction_depth].astype(np.int32)
    prediction[0, -1] = -1
    over_draws = jax.vmap(metric.score, in_axes=(0, None))
    values = jax.jit(jax.vmap(over_draws))(truth, prediction)
    assert values.shape == (4, 3)
    assert values.dtype == np.float32
    one_by_one = [[float(metric.score(draw, prediction[item])) for draw in truth[item]] for item in range(4)]
    np.testing.assert_allclose(values, one_by_one, rtol=1e-6)
    with jax.enable_x64():
        assert metric.score(truth[0, 0], prediction[0]).dtype == np.float64


def test_names_resolve_to_one_object():
    assert resolve("top-3") is resolve("top-3")
    assert resolve("accuracy") is resolve("top-1")
    assert resolve("ao-4") is resolve("average-overlap-4")
    assert resolve("top-5-target-2").truth_depth == 2
    assert (resolve("top-5").truth_depth, resolve("top-5").prediction_depth) == (1, 5)
    for form in METRICS["classes"].lines:
        metric = resolve(form.replace("-k", "-4").replace("-j", "-2").replace("ece-b", "ece-4"))
        assert metric.title
        assert metric.reference
        assert metric.name == resolve(metric.name).name


@pytest.mark.parametrize(
    "name", ["top", "top-0", "top-k", "top-03", "top-2-target-3", "kendal-3", "set--1", "", "top-3 "]
)
def test_unknown_names_list_the_forms(name):
    with pytest.raises(UnknownName) as error:
        resolve(name)
    assert all(form in str(error.value) for form in METRICS["classes"].lines)
    assert repr(name) in str(error.value)


def test_own_metric_is_passed_through():
    own = Metric("last", "last place", 2, 2, lambda truth, prediction: jnp.where(truth[1] == prediction[1], 1.0, 0.0))
    assert resolve(own) is own
    assert float(own.score(jnp.array([3, 1]), jnp.array([0, 1]))) == 1


orders = st.permutations(range(6)).map(tuple)


@given(truth=orders, prediction=orders, length=st.integers(0, 6))
@settings(max_examples=40, deadline=None)
def test_invariants(truth, prediction, length):
    prediction = prediction[:length]
    top = [score(f"top-{k}", truth, prediction) for k in range(1, 5)]
    assert top == sorted(top)
    for k in (1, 2, 4):
        equal, target = score(f"set-{k}", truth, prediction), score(f"top-{k}-target-{k}", truth, prediction)
        overlap, average = score(f"overlap-{k}", truth, prediction), score(f"ao-{k}", truth, prediction)
        assert 0 <= equal <= overlap <= 1
        assert target <= equal
        assert 0 <= average <= 1
        assert average == pytest.approx(np.mean([score(f"overlap-{j}", truth, prediction) for j in range(1, k + 1)]))
        assert (score(f"ao-{k}", truth, prediction) == 1) == (length > 0 and truth[:length][:k] == prediction[:k])
        for name in (f"kendall-{k}", f"footrule-{k}"):
            assert 0 <= score(name, truth, prediction) <= 1
            assert score(name, truth, prediction) < 1 or truth[:length][:k] == prediction[:k]
            assert score(name, truth, prediction) == 1 or truth[:k] != prediction[:k]


@given(truth=orders, prediction=orders, k=st.sampled_from([1, 3]))
@settings(max_examples=20, deadline=None)
def test_symmetric_where_both_are_full_lists(truth, prediction, k):
    for name in (f"set-{k}", f"overlap-{k}", f"ao-{k}", f"kendall-{k}", f"footrule-{k}"):
        assert score(name, truth, prediction) == score(name, prediction, truth)
