"""Whether the model holds: pairs are drawn as probable as likelihoods say, and linked pairs are compared with them."""

import dataclasses
import functools
import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.errors import DiagnosticWarning
from consilience.models.block_linkage.likelihoods import LIKELIHOODS, DirichletMultinomial, HitMiss
from consilience.models.block_linkage.misfit import Misfit, misfit, nearest_values
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.similar import SimilarHitMiss
from tests.models.records import records_of

FIRST_VALUE = np.array([0, 3, 5], np.int32)
SHARE = np.array([0.6, 0.3, 0.1, 0.7, 0.3])


class Attracted(HitMiss):
    """Pairs that agree in the first field are twice as probable as under hit-miss."""

    additive = False

    def log_marginals(self, values, share, distortion, xp):
        own = super().log_marginals(values, share, distortion, xp)
        extra = np.zeros(own.shape)
        extra[-1] = np.log(np.where(values[0, 0] == values[1, 0], 2.0, 1.0)) if len(values) == 2 else 0
        return own + extra


def parameters_of(distortion=(0.2, 0.1), size_share=(0.6, 0.4), class_share=()):
    return Parameters(SHARE, np.array(distortion), 50.0, np.array(size_share), np.array(class_share))


def similar():
    """Return the likelihood of records whose first field is similar: 0 and 1 are 1 apart, 1 and 2 are .5."""
    records = dataclasses.replace(
        records_of([[0, 1, 2], [0, 1, 1]]), similar=np.array([True, False]),
        near=np.array([[0, 1], [1, 2]], np.int32), distance=np.array([1.0, 0.5]),
    )  # fmt: skip
    return SimilarHitMiss((0,), records, SHARE), records


@pytest.mark.parametrize(
    "likelihood",
    [LIKELIHOODS["hit-miss"], DirichletMultinomial(), LIKELIHOODS["error-classes"], Attracted(), similar()[0]],
    ids=lambda likelihood: type(likelihood).__name__,
)
def test_pairs_are_drawn_as_probable_as_the_likelihood_says(likelihood):
    """All pairs of values of two fields, of entities of two records, in either order."""
    parameters, number = parameters_of(), 200_000
    if likelihood is LIKELIHOODS["error-classes"]:
        parameters = parameters_of(class_share=(0.5, 0.2, 0.3))
    pairs = np.array([*itertools.product(range(3), range(3), range(3, 5), range(3, 5))]).T.reshape(2, 2, -1)
    pairs = pairs.transpose(1, 0, 2)  # record, field, pair
    alone = np.log(SHARE) + likelihood.log_alone(parameters.distortion, np)
    exact = np.exp(likelihood.at(parameters).log_pairs(pairs, parameters) + alone[pairs].sum(axis=(0, 1)))
    drawn, weight = likelihood.draw_pairs(np.random.default_rng(1), number, parameters, FIRST_VALUE)
    same = [(either[..., None] == pairs[:, :, None]).all(axis=(0, 1)) for either in (drawn, drawn[::-1])]
    found = weight @ (same[0] + same[1].astype(float)) / 2 / number
    error = np.sqrt(exact * weight.max() / number)
    assert (np.abs(found - exact) < 5 * error).all()


def test_most_pairs_of_large_entities_are_without_the_head():
    """Of three records two pairs in three are with the head; the third pair differs more often."""
    likelihood, number = LIKELIHOODS["error-classes"], 100_000
    parameters = parameters_of(size_share=(0.5, 0.0, 0.5), class_share=(0.5, 0.5, 0.0))
    drawn, _ = likelihood.draw_pairs(np.random.default_rng(2), number, parameters, FIRST_VALUE)
    equal = (drawn[0] == drawn[1]).all(axis=0).mean()
    both_wrong = sum(  # two records with the same error: of the same field and the same value, given the head
        0.25 * 0.25 * SHARE[own][true] * SHARE[own][other] ** 2 / (1 - SHARE[own][true]) ** 2
        for own in (slice(0, 3), slice(3, 5))
        for true, other in itertools.permutations(range(len(SHARE[own])), 2)
    )
    expected = 2 / 3 * 0.5 + 1 / 3 * (0.25 + both_wrong)
    assert abs(equal - expected) < 5 * np.sqrt(expected * (1 - expected) / number)


def all_pass(pairs):
    return np.ones(pairs.shape[2], bool)


def compared(linked, probability, passes=all_pass, **more):
    return misfit(
        np.array(linked), np.array(probability), parameters_of(), LIKELIHOODS["hit-miss"], FIRST_VALUE, passes, **more
    )  # fmt: skip


def test_one_set_of_fields_by_hand():
    """Three pairs that have both fields: two that agree, one that differs in one."""
    linked = np.array([[[0, 1, 2], [3, 3, 4]], [[0, 1, 0], [3, 3, 4]]])
    found = compared(linked, [1.0, 0.5, 0.5])
    np.testing.assert_allclose(found.seen, [1.5, 0.5, 0])
    same = [0.64 + 0.36 * SHARE[:3] @ SHARE[:3], 0.81 + 0.19 * SHARE[3:] @ SHARE[3:]]
    expected = [same[0] * same[1], 1 - same[0] * same[1] - (1 - same[0]) * (1 - same[1]), 0]
    expected[2] = 1 - sum(expected)
    np.testing.assert_allclose(found.expected, expected, atol=5 * np.sqrt(0.25 / 4000))
    assert np.isclose(found.disagreement, np.abs(found.shares - found.expected).sum() / 2)


def test_the_threshold_hides_what_differs():
    """Where no pair that differs passes, none is expected; and what is linked does not look like that."""
    linked = np.array([[[0, 2], [3, 4]], [[0, 0], [3, 4]]])
    found = compared(linked, [1.0, 1.0], lambda pairs: (pairs[0] == pairs[1]).all(axis=0))
    np.testing.assert_array_equal(found.expected, [1, 0, 0])
    assert found.disagreement == 0.5


def test_each_set_of_observed_fields_is_predicted_for_itself():
    """Two pairs in three have the first field alone; a missing field neither agrees nor differs."""
    linked = np.array([[[0, 1, 2], [3, -1, 4]], [[0, 1, 0], [3, 3, -1]]])
    found = compared(linked, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(found.seen, [2, 1, 0])
    same = [0.64 + 0.36 * SHARE[:3] @ SHARE[:3], 0.81 + 0.19 * SHARE[3:] @ SHARE[3:]]
    assert abs(found.expected[0] - (2 * same[0] + same[0] * same[1]) / 3) < 5 * np.sqrt(0.25 / 4000)


def test_similar_values_agree_below_a_distance_of_one():
    likelihood, records = similar()
    nearest = nearest_values(records)
    assert nearest.toarray().tolist()[1][2] == nearest.toarray().tolist()[2][1] == 1
    assert nearest.nnz == 2
    linked = np.array([[[0, 1, 0], [3, 3, 3]], [[1, 2, 2], [3, 3, 3]]])
    found = misfit(linked, np.ones(3), parameters_of(), likelihood, FIRST_VALUE, all_pass, nearest)
    np.testing.assert_array_equal(found.seen, [1, 2, 0])
    assert np.isfinite(found.disagreement)
    assert nearest_values(records_of([[0, 1]])) is None
    typos = dataclasses.replace(records, distance=np.array([-3.0, -2.0]))
    assert nearest_values(typos).nnz == 0


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.data())
def test_disagreement_is_a_distance_of_shares(weights, data):
    other = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(weights), max_size=len(weights))))
    seen, other = np.array(weights) + 1e-3, other + 1e-3
    found = Misfit(seen * 100, other / other.sum())
    assert 0 <= found.disagreement <= 1
    assert Misfit(seen, seen / seen.sum()).disagreement < 1e-12
    assert np.isclose(found.disagreement, Misfit(other, seen / seen.sum()).disagreement)


@pytest.mark.parametrize(
    ("number", "seen", "fails"),
    [(49.0, [0, 1], False), (50.0, [0, 1], True), (60.0, [0.68, 0.32], True), (5000.0, [0.72, 0.28], False),
     (0.0, [0, 1], False)],
)  # fmt: skip
def test_it_fails_above_a_tenth_of_so_many_links(number, seen, fails):
    found = Misfit(number * np.array(seen), np.array([0.8, 0.2]))
    assert found.fails is fails
    assert found.holds is (number >= 50 and not fails)


def test_nothing_linked_has_no_disagreement():
    found = compared(np.zeros((2, 2, 0), int), np.zeros(0))
    assert np.isnan(found.disagreement)
    assert not found.fails
    assert Misfit(np.array([50.0, 50.0]), np.array([1.0, 0.0])).words == (
        "the model does not hold (disagreement .50); do not trust the interval"
    )


# ---- fits ----


@functools.cache
def fit_of(likelihood, **simulation):
    given = {"num_values": (300, 400, 90, 12, 28), "size_share": (0.8, 0.2), "distortion": 0.05, "seed": 1}
    records = cs.simulate_records(2500, **{**given, **simulation})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
        return cs.fit("block-linkage", records, likelihood=likelihood, method="em", draws=10)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("likelihood", ["hit-miss", "dirichlet-multinomial"])
def test_it_is_small_where_the_model_holds(likelihood, missing):
    posterior = fit_of(likelihood, missing=missing).posterior
    assert posterior.disagreement < 0.08
    assert posterior.differing[0].sum() > 300
    assert fit_of(likelihood, missing=missing).truth.doubt == ""


def test_one_error_in_every_duplicate_is_told_with_the_number():
    fitted = fit_of("hit-miss", errors="one")
    said = repr(fitted.num_entities())
    disagreement = f"{float(fitted.posterior.disagreement):.2f}".removeprefix("0")
    assert f"]; the model does not hold (disagreement {disagreement}); do not trust the interval;" in said
    assert fitted.posterior.disagreement > 0.3
    assert any("linked records differ in other numbers of fields" in str(note) for note in fitted.findings())
    of_classes = fit_of("error-classes", errors="one")
    assert of_classes.posterior.disagreement < 0.1
    assert of_classes.num_entities().doubt == ""
