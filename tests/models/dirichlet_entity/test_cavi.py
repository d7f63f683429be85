"""Coordinate ascent of `dirichlet-entity`: the worked toy, the bound in its long form, dense against anchored."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, gammaln, logsumexp

import consilience as cs
from consilience.errors import InvalidPrior, UnsupportedRequest
from consilience.models.dirichlet_entity import MODEL, Priors, cavi
from consilience.models.dirichlet_entity.problem import Dense, anchored_problem
from consilience.models.dirichlet_entity.support import Support, agreeing_pairs
from tests.models.records import assignments, records_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning"), pytest.mark.usefixtures("exact_sizes"),
]

HALF = Priors(concentration=0.5)


def prepare(data, priors, **settings):
    return cavi.CAVI.prepare(MODEL.resolve(data, priors, {"support": "dense", **settings}))


TOY = records_of([[0, 0, 1], [0, 1, 2]], (2, 3))


@st.composite
def small_records(draw):
    """Seven records of three fields, so that one compiled program serves all; -1 is missing."""
    rows = [draw(st.lists(st.integers(-1, size - 1), min_size=7, max_size=7)) for size in (2, 3, 4)]
    return records_of(rows, (2, 3, 4))


def long_bound(data, concentration, responsibility):
    """The paper's bound term by term, with the prior of z, at the best λ; by loops over entities and fields."""
    number, bound = responsibility.shape[1], 0.0
    first, value = np.asarray(data.first_value), np.asarray(data.value)
    for k, f in itertools.product(range(number), range(data.num_fields)):
        prior = concentration[first[f] : first[f + 1]]
        if not len(prior):
            continue
        seen = value[f] >= 0
        own = prior + np.bincount(value[f][seen], responsibility[seen, k], len(prior))
        expected = digamma(own) - digamma(own.sum())
        bound += gammaln(prior.sum()) - gammaln(prior).sum() + ((prior - 1) * expected).sum()
        bound += (responsibility[seen, k] * expected[value[f][seen]]).sum()
        bound -= gammaln(own.sum()) - gammaln(own).sum() + ((own - 1) * expected).sum()
    positive = responsibility[responsibility > 0]
    return bound - (positive * np.log(positive)).sum() - len(responsibility) * np.log(number)


def exact_evidence(data, concentration, number):
    """Log p(x) by the sum over all assignments of records to entities."""
    return logsumexp(assignments(data, concentration, number)[1])


def test_the_worked_toy():
    with jax.enable_x64(True):
        problem = prepare(TOY, HALF, start="random", num_entities=2)
        phi = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
        state, bounds = cavi.State(phi, np.zeros(3, np.int32)), []
        found = []
        for _ in range(3):
            found.append(np.asarray(state.responsibility))
            state, terms = cavi.step(state, problem)
            bounds.append(float(terms.sum()))
    np.testing.assert_allclose(bounds, [-7.973417697689, -7.664410239340, -7.538149715695], rtol=0, atol=1e-11)
    np.testing.assert_allclose(found[1][:, 0], [0.889784, 0.840256, 0.095182], atol=5e-7)
    assert long_bound(TOY, np.full(5, 0.5), phi) == pytest.approx(bounds[0], abs=1e-12)
    assert exact_evidence(TOY, np.full(5, 0.5), 2) == pytest.approx(-6.273869562459, abs=1e-11)


@settings(deadline=None, max_examples=15)
@given(data=small_records(), seed=st.integers(0, 99), support=st.sampled_from(["dense", "anchored"]))
def test_the_short_bound_is_the_long_one_and_never_falls(data, seed, support):
    concentration = np.random.default_rng(seed).uniform(0.05, 2.0, 9)
    priors, bounds = Priors(concentration=concentration), []
    with jax.enable_x64(True):
        problem = prepare(data, priors, support=support, start="random", agree=1)
        state = _start(jax.random.key(seed), problem)
        for _ in range(6):
            bounds.append(long_bound(data, concentration, full(state.responsibility, problem)))
            state, terms = _step(state, problem)
            assert float(terms.sum()) == pytest.approx(bounds[-1], abs=1e-10)
    assert np.min(np.diff(bounds)) > -1e-10


@pytest.mark.parametrize("support", ["dense", "anchored"])
def test_the_bound_is_below_the_evidence(support):
    random = np.random.default_rng(2)
    data = records_of([random.integers(-1, size, 5) for size in (2, 3, 4)], (2, 3, 4))
    with jax.enable_x64(True):
        fit = _quiet_fit(data, HALF, support=support, agree=1)
    evidence = exact_evidence(data, np.full(9, 0.5), 5)
    assert evidence - 20 < fit.elbo[-1] < evidence


_start, _step = jax.jit(cavi.start), jax.jit(cavi.step)


def full(responsibility, problem):
    """Return responsibilities ``(record, entity)``."""
    if isinstance(problem, Dense):
        return np.asarray(responsibility)
    number = len(problem.support.first) - 1
    table = np.zeros((number, number))
    table[problem.support.record, problem.support.entity] = responsibility
    return table


def _quiet_fit(data, priors=None, **options):
    return cs.fit("dirichlet-entity", data, priors, progress=False, **options)


@settings(deadline=None, max_examples=10)
@given(data=small_records(), seed=st.integers(0, 99))
def test_a_full_support_of_edges_is_the_dense_one(data, seed):
    every = np.arange(7, dtype=np.int32)
    edges = Support(np.arange(8, dtype=np.int32) * 7, np.repeat(every, 7), np.tile(every, 7))
    concentration = np.random.default_rng(seed).uniform(0.05, 2.0, 9)
    with jax.enable_x64(True):
        dense = prepare(data, Priors(concentration=concentration), start="random")
        sparse = anchored_problem(data, concentration, edges, 7, "random")
        phi = np.random.default_rng(seed).dirichlet(np.ones(7), 7)
        states = [cavi.State(phi, every), cavi.State(phi.ravel(), every)]
        for _ in range(4):
            moved = [_step(state, problem) for state, problem in zip(states, (dense, sparse), strict=True)]
            states = [state for state, _ in moved]
            assert float(moved[0][1].sum()) == pytest.approx(float(moved[1][1].sum()), abs=1e-11)
        np.testing.assert_allclose(states[0].responsibility.ravel(), states[1].responsibility, rtol=0, atol=1e-12)
        ends = [cavi.sites(state, problem) for state, problem in zip(states, (dense, sparse), strict=True)]
    for name in ("first", "entity", "moved"):
        np.testing.assert_array_equal(ends[0][name], ends[1][name])


@settings(deadline=None, max_examples=50)
@given(data=small_records(), agree=st.integers(1, 3))
def test_candidates_are_the_pairs_that_agree(data, agree):
    value = np.asarray(data.value)
    wanted = [
        (i, j) for i, j in itertools.combinations(range(7), 2)
        if np.sum((value[:, i] == value[:, j]) & (value[:, i] >= 0)) >= agree
    ]  # fmt: skip
    assert list(zip(*map(np.ndarray.tolist, agreeing_pairs(value, agree)), strict=True)) == wanted


def test_single_precision_ends_where_double_does():
    random = np.random.default_rng(0)
    data = records_of(random.integers(-1, 3, (4, 30)), (3, 3, 3, 3))
    for support in ("dense", "anchored"):
        single, double = (
            _quiet_fit(data, support=support, concentration=0.4, max_steps=20, dtype=dtype)
            for dtype in ("float32", "float64")
        )
        assert single.posterior.probability.dtype == np.float32
        assert double.posterior.probability.dtype == np.float64
        np.testing.assert_allclose(single.elbo[:3], double.elbo[:3], rtol=1e-5)


@pytest.mark.parametrize("concentration", [0.3, np.full(2, 0.3), np.full(5, 0.3), lambda data: 0.3])
def test_a_concentration_is_a_number_by_field_by_value_or_from_the_data(concentration):
    plain = prepare(TOY, Priors(concentration=0.3))
    given_so = prepare(TOY, Priors(concentration=concentration))
    np.testing.assert_array_equal(given_so.concentration, plain.concentration)
    by_field = prepare(TOY, Priors(concentration=np.array([0.1, 0.2])))
    np.testing.assert_allclose(by_field.concentration, [0.1, 0.1, 0.2, 0.2, 0.2])
    np.testing.assert_allclose(by_field.total, [0.2, 0.6])


def test_what_cannot_be_done_is_refused():
    for wrong in (np.ones(3), 0.0, np.nan):
        with pytest.raises(InvalidPrior, match="value_share"):
            cs.fit("dirichlet-entity", TOY, Priors(concentration=wrong))
    for options in ({"num_entities": 2}, {"num_entities": 2, "support": "dense"}, {"agree": 3}):
        with pytest.raises(UnsupportedRequest, match=r"num_entities|agree"):
            cs.fit("dirichlet-entity", TOY, **options)


def test_more_entities_than_records_change_the_bound_by_their_prior_alone():
    with jax.enable_x64(True):
        few, many = (_quiet_fit(TOY, num_entities=number) for number in (3, 12))
    assert few.elbo[-1] - many.elbo[-1] == pytest.approx(3 * np.log(4), abs=1e-12)
