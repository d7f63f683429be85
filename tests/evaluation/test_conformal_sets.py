"""Conformal sets: the threshold by hand, its guarantee on finite populations, and what is refused."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import consilience as cs
from consilience.errors import InputError, UnknownName, UnsupportedRequest
from consilience.evaluation.conformal_sets import nonconformity, smallest_threshold
from consilience.models.truth import DirichletTruth, Entries, LabelDraws, LabelProbabilities, PlausibilityDraws
from consilience.models.truth.classes import label_masses

SAID = np.array([[0.9, 0.1], [0.7, 0.3], [0.4, 0.6], [0.8, 0.2]])
MASS = np.array([[0.9, 0.1], [0.8, 0.2], [0.5, 0.5], [1, 0]])
NAMES = ["no", "yes"]


def probabilities(mass):
    return LabelProbabilities.dense(np.asarray(mass, float), key=jax.random.key(0), num_draws=2)


def system(q, **more):
    return cs.Predictions.from_scores(q, probabilities=True, **more)


def test_threshold_by_hand():
    found = cs.conformal(probabilities(MASS), system(SAID), level=0.7)
    assert found.threshold == pytest.approx(0.6)
    assert found.table["classes"].tolist() == [("0",), ("0",), ("1", "0"), ("0",)]
    assert found.table["size"].tolist() == [1, 1, 2, 1]
    assert found.sets(system(SAID)).equals(found.table)
    assert (found.size, found.coverage) == (1.25, pytest.approx(3.7 / 4))
    assert "level 0.7, threshold 0.6000, 4 items: 1.25 classes on average, with 0.9250" in repr(found)
    assert "looked at the items itself" in repr(found)
    # 3.2 of 4 is reached at .4; that of (4 + 1) * .9 = 4.5 never.
    assert smallest_threshold(1 - SAID, MASS, 0.64) == pytest.approx(0.4)
    assert smallest_threshold(1 - SAID, MASS, 0.9) == np.inf
    assert cs.conformal(probabilities(MASS), system(SAID)).size == 2


def test_cumulative_is_the_mass_of_classes_ranked_before():
    q = system([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]])
    np.testing.assert_allclose(nonconformity(q, "cumulative"), [[0.8, 0, 0.5], [0, 0.4, 0.8]], atol=1e-7)
    found = cs.conformal(probabilities(MASS), system(SAID), 0.7, "cumulative")
    # Of first classes there are .9 + .8 + .5 + 1 = 3.2; the next is class 0 of item 2, behind .6.
    assert found.threshold == pytest.approx(0.6)


tables = arrays(float, st.tuples(st.integers(2, 9), st.just(3)), elements=st.sampled_from([0.1, 0.25, 1, 2, 5]))


@given(tables, st.data(), st.floats(0.05, 0.95), st.sampled_from(["threshold", "cumulative"]))
def test_the_guarantee_holds_in_every_finite_population(weights, data, level, score):
    said = data.draw(arrays(float, weights.shape, elements=st.sampled_from([0.1, 0.2, 1, 3])))
    mass, q = (values / values.sum(axis=1, keepdims=True) for values in (weights, said))
    found, number, held = nonconformity(system(q), score), len(mass), []
    for new in range(number):
        others = np.arange(number) != new
        threshold = smallest_threshold(found[others], mass[others], level)
        held.append(mass[new, found[new] <= threshold].sum())
    # Every item is the new one with equal probability.
    assert np.mean(held) >= level - 1e-9


def test_new_items_get_sets_by_names_of_classes():
    labels = cs.Annotations.from_counts([[3, 0], [1, 2], [0, 3], [3, 0]], labels=NAMES)
    fit = cs.fit("dirichlet", labels)
    found = cs.conformal(fit, system(SAID, classes=NAMES), level=0.5)
    new = system([[0.05, 0.95], [0.5, 0.5]], items=["p", "q"], classes=["yes", "no"])
    assert found.sets(new)["classes"].tolist() == [("no",), ()]
    assert found.sets(new)["item"].tolist() == ["p", "q"]
    foreign = system([[0.9, 0.1]], items=["p"], classes=["no", "other"])
    with pytest.raises(InputError, match="classes are not in the data: 'other'"):
        found.sets(foreign)
    assert found.sets(foreign, unknown="keep")["classes"].tolist() == [("no",)]
    classes = ["no", "yes", "yes", "yes", "no"]
    table = {"item": [*"00123"], "class": classes, "score": [0.9, 0.1, 0.7, 0.6, 0.8]}
    assert cs.conformal(fit, table, level=0.5).threshold == pytest.approx(0.3)


def test_items_without_a_prediction_are_left_out_when_asked():
    said = system(SAID[:3], items=["0", "1", "3"])
    with pytest.raises(InputError, match="1 items of the data have no prediction"):
        cs.conformal(probabilities(MASS), said)
    found = cs.conformal(probabilities(MASS), said, 0.6, missing="drop")
    assert found.table["item"].tolist() == ["0", "1", "3"]
    assert found.threshold == smallest_threshold(1 - SAID[:3].astype(np.float32).astype(float), MASS[[0, 1, 3]], 0.6)


def test_masses_are_posterior_means():
    np.testing.assert_allclose(label_masses(LabelDraws(np.array([[0], [0], [2], [0]]), 4)), [[0.75, 0, 0.25, 0]])
    np.testing.assert_allclose(label_masses(probabilities(MASS)), MASS)
    entries = Entries.of(np.array([0, 0]), np.array([0, 2]), 2, 4)
    dirichlet = DirichletTruth(entries, np.array([3.0, 1.5]), 0.25, key=jax.random.key(0), num_draws=1)
    np.testing.assert_allclose(label_masses(dirichlet), [[0.6, 0.05, 0.3, 0.05], [0.25] * 4])
    drawn = PlausibilityDraws.dense(np.array([[[0.2, 0.8]], [[0.4, 0.6]]]))
    np.testing.assert_allclose(label_masses(drawn), [[0.3, 0.7]])


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5])
def test_a_level_that_is_none_is_refused(level):
    with pytest.raises(UnsupportedRequest, match="level is"):
        cs.conformal(probabilities(MASS), system(SAID), level)


def test_what_conformal_sets_need():
    with pytest.raises(UnsupportedRequest, match="read the scores with scores='probabilities'"):
        cs.conformal(probabilities(MASS), cs.Predictions.from_scores(SAID))
    with pytest.raises(UnknownName, match="pass one of 'threshold', 'cumulative'"):
        cs.conformal(probabilities(MASS), system(SAID), score="adaptive")
