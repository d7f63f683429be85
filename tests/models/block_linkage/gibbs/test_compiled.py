"""The record sweep in machine code: against all partitions of a few records, with errors that must be found."""

import dataclasses
import importlib.util
import inspect
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.gibbs import compiled, record_sweep
from consilience.models.block_linkage.gibbs.compiled import is_compiled_available, redraw_compiled

SHARE = [np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.25, 0.1, 0.05])]
VALUE = [[0, 1], [0, 1], [1, 1], [0, -1], [2, 3], [2, 1]]
PATH = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
STAR = [(0, 3), (1, 3), (2, 3), (3, 4), (3, 5)]
RING = [(0, 2), (0, 4), (1, 2), (1, 5), (3, 4), (3, 5)]
COMPLETE = [(one, other) for one in range(5) for other in range(one + 1, 5)]
FIXED = {"share": SHARE, "distortion": [0.3, 0.2], "intensity": 3.0}
SIZES = [0.4, 0.2, 0.2, 0.1, 0.1]


def problem_on(make, edges, **changes):
    return make(edges, VALUE[: 1 + max(map(max, edges))], **{**FIXED, "size_share": SIZES, **changes})


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("edges", [PATH, STAR, RING, COMPLETE], ids=["path", "star", "ring", "complete"])
def test_partitions_of_a_few_records(edges, alone, small_problem, assert_leaves_invariant):
    with jax.enable_x64(True):
        small = problem_on(small_problem, edges)
        assert_leaves_invariant(redraw_compiled, small, sweeps=15 if alone else 4, alone=alone)


def test_largest_size_and_sources(small_problem, assert_leaves_invariant):
    """No cluster has more than three records, or two of one source; records 0 and 5 are of one, and 2 and 3."""
    edges = [*PATH, (0, 2), (1, 4), (2, 5), (0, 5)]
    small = problem_on(small_problem, edges, size_share=[0.4, 0.3, 0.3], source=[0, 1, 2, 2, 3, 0])
    assert_leaves_invariant(redraw_compiled, small, sweeps=4)


def with_error(old, new):
    """Return the sweep with an error in its source, as Python runs it."""
    source = inspect.getsource(record_sweep)
    assert old in source
    wrong = types.ModuleType("wrong_sweep")
    source = source.replace(old, new).replace("@_machine_code\n", "")
    exec(compile(source, wrong.__name__, "exec"), vars(wrong))

    def sweep_chains(*given):
        with np.errstate(over="ignore"):        # of random numbers, as meant
            wrong.sweep_chains(*given)

    return sweep_chains


ERRORS = {
    "one more member is worth nothing": ("(size + 1) * max(size_share[size]", "max(size_share[size]"),
    "a missing value differs": ("other[column] if code >= 0 else 1.0", "other[column]"),
    "a missing value of the record itself differs": (
        "distortion[at] * (2 - distortion[at]) if code >= 0 else 1.0", "distortion[at] * (2 - distortion[at])"
    ),
    "prior odds": ("alone = intensity *", "alone = 2 * intensity *"),
    "clusters may fall apart": ("return num_reached == number", "return True"),
    "a cluster counts for each neighbour": ("looked[there] == record or", ""),
    "Z is not brought up to date": ("        _reckon(there, size,", "        _reckon(there, size - 1,"),
    "a repeated value counts twice in Z": ("if not again:", "if True:"),
}  # fmt: skip


FEW = {"num_chains": 3000, "sweeps": 2}


@pytest.fixture
def telling(small_problem):
    """Return a problem in which all of these errors show."""
    value = [[0, -1], [0, 1], [-1, 1], [0, -1], [2, 3], [2, 1]]
    return small_problem([*RING, (0, 1), (2, 3), (0, 3)], value, **FIXED, size_share=SIZES)


@pytest.mark.parametrize("error", ERRORS)
def test_errors_are_found(error, telling, assert_leaves_invariant, monkeypatch):
    monkeypatch.setattr(record_sweep, "sweep_chains", with_error(*ERRORS[error]))
    with pytest.raises((AssertionError, KeyError)):
        assert_leaves_invariant(redraw_compiled, telling, **FEW)


def test_what_errors_are_measured_against(telling, assert_leaves_invariant, monkeypatch):
    """The same code without an error, run by Python."""
    monkeypatch.setattr(record_sweep, "sweep_chains", with_error("sweep_chains", "sweep_chains"))
    assert_leaves_invariant(redraw_compiled, telling, **FEW)


def random_problem(make, number=60):
    """Return a problem of many records, whose partitions nobody goes through."""
    generator = np.random.default_rng(0)
    small = make([(0, 1)], VALUE[:2], **FIXED, size_share=SIZES)
    value = np.stack([generator.integers(-1, 3, number), 3 + generator.integers(0, 4, number)], axis=1)
    near = np.triu(generator.random((number, number)) < 0.1, 1)
    near |= near.T
    problem = dataclasses.replace(
        small.problem, value=jnp.asarray(value, jnp.int32), source=jnp.arange(number, dtype=jnp.int32),
        first_neighbour=jnp.asarray(np.append(0, np.cumsum(near.sum(axis=1))), jnp.int32),
        neighbour=jnp.asarray(np.nonzero(near)[1], jnp.int32),
    )  # fmt: skip
    return problem, small.state._replace(
        cluster=jnp.arange(number, dtype=jnp.int32), intensity=small.state.intensity * 20
    )


def test_equal_keys_equal_bits_and_chains_as_one_by_one(small_problem):
    problem, state = random_problem(small_problem)
    keys = jax.random.split(jax.random.key(1), 5)
    redraw = jax.jit(lambda key, state: redraw_compiled(key, state, problem))
    alone = np.stack([redraw(key, state) for key in keys])
    assert alone.dtype == np.int32
    np.testing.assert_array_equal(redraw(keys[0], state), alone[0])
    assert len(np.unique(alone, axis=0)) == 5
    np.testing.assert_array_equal(jax.vmap(lambda key: redraw_compiled(key, state, problem))(keys), alone)
    # Chains with states of their own, and chains of chains.
    states = jax.tree.map(lambda leaf: jnp.stack([leaf] * 5), state)
    np.testing.assert_array_equal(jax.vmap(redraw_compiled, (0, 0, None))(keys, states, problem), alone)
    of_chains = jax.vmap(redraw_compiled, (0, None, None))
    twice = jax.vmap(of_chains, (0, None, None))(keys[:4].reshape(2, 2), state, problem)
    np.testing.assert_array_equal(np.asarray(twice).reshape(4, -1), alone[:4])


def test_clusters_are_named_by_their_first_record(small_problem):
    problem, state = random_problem(small_problem)
    cluster = np.asarray(redraw_compiled(jax.random.key(0), state, problem))
    assert len(np.unique(cluster)) < len(cluster)
    first = [np.flatnonzero(cluster == own)[0] for own in cluster]
    np.testing.assert_array_equal(first, cluster)


def test_precision_of_the_state(small_problem):
    """Shares that single precision holds exactly give the same links in both precisions."""
    exact = {"share": [np.array([0.5, 0.25, 0.25]), np.array([0.5, 0.25, 0.125, 0.125])], "distortion": [0.25, 0.125]}
    found = []
    for double in (False, True):
        with jax.enable_x64(double):
            small = problem_on(small_problem, RING, **exact, size_share=[0.5, 0.25, 0.125, 0.125])
            assert small.state.value_share.dtype == (np.float64 if double else np.float32)
            keys = jax.random.split(jax.random.key(5), 50)
            found.append(jax.vmap(redraw_compiled, (0, None, None))(keys, small.state, small.problem))
    np.testing.assert_array_equal(*found)


def test_extreme_hyperparameters(small_problem):
    """Shares that were rounded to zero, no distortion at all, and powers beyond double precision."""
    edges = [(one, other) for one in range(8) for other in range(one + 1, 8)]
    small = small_problem(
        edges, [[0, 0]] * 7 + [[1, 1]], share=[np.array([1e-6, 1 - 1e-6])] * 2, distortion=[0.0, 1e-30], intensity=10.0,
        size_share=[0.5, 0.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
    )  # fmt: skip
    together = small.state._replace(cluster=jnp.array([0] * 7 + [7], jnp.int32))
    found = redraw_compiled(jax.random.key(0), together, small.problem)
    np.testing.assert_array_equal(found, together.cluster)


def test_a_cluster_that_is_too_large(small_problem):
    small = problem_on(small_problem, COMPLETE, size_share=[0.5, 0.5])
    state = small.state._replace(cluster=jnp.zeros(5, jnp.int32))
    with pytest.raises(Exception, match="more records than size_share has sizes"):
        jax.block_until_ready(redraw_compiled(jax.random.key(0), state, small.problem))


def test_without_numba(small_problem, monkeypatch):
    assert is_compiled_available()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not compiled.is_compiled_available()
    small = problem_on(small_problem, RING)
    with pytest.raises(UnsupportedRequest, match=r"pip install 'consilience\[compiled\]', or take the form 'scan'"):
        redraw_compiled(jax.random.key(0), small.state, small.problem)
