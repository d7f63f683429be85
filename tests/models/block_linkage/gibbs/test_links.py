"""The record sweep: against all partitions of a few records, with errors that must be found."""

import dataclasses
import inspect
import sys
import types

import numpy as np
import pytest

from consilience.models.block_linkage.gibbs import record_sweep
from consilience.models.block_linkage.gibbs.links import redraw_links

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
    small = problem_on(small_problem, edges)
    assert_leaves_invariant(record_sweep.sweep, small, sweeps=15 if alone else 4, alone=alone)


def test_largest_size_and_sources(small_problem, assert_leaves_invariant):
    """No cluster has more than three records, or two of one source; records 0 and 5 are of one, and 2 and 3."""
    edges = [*PATH, (0, 2), (1, 4), (2, 5), (0, 5)]
    small = problem_on(small_problem, edges, size_share=[0.4, 0.3, 0.3], source=[0, 1, 2, 2, 3, 0])
    assert_leaves_invariant(record_sweep.sweep, small, sweeps=4)


def with_error(old, new):
    """Return the sweep with an error in its source, as Python runs it."""
    source = inspect.getsource(record_sweep)
    assert old in source
    wrong = types.ModuleType("wrong_sweep")
    source = source.replace(old, new).replace("@_machine_code\n", "")
    exec(compile(source, wrong.__name__, "exec"), vars(wrong))

    return wrong.sweep


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
def test_errors_are_found(error, telling, assert_leaves_invariant):
    sweep = with_error(*ERRORS[error])
    with pytest.raises((AssertionError, KeyError)):
        assert_leaves_invariant(sweep, telling, **FEW)


def test_what_errors_are_measured_against(telling, assert_leaves_invariant):
    """The same code without an error, run by Python."""
    sweep = with_error("", "")
    assert_leaves_invariant(sweep, telling, **FEW)


def random_problem(make, number=60):
    """Return a problem of many records, whose partitions nobody goes through."""
    generator = np.random.default_rng(0)
    small = make([(0, 1)], VALUE[:2], **FIXED, size_share=SIZES)
    value = np.stack([generator.integers(-1, 3, number), 3 + generator.integers(0, 4, number)], axis=1)
    near = np.triu(generator.random((number, number)) < 0.1, 1)
    near |= near.T
    problem = dataclasses.replace(
        small.problem, value=value.astype(np.int32), source=np.arange(number, dtype=np.int32),
        first_neighbour=np.append(0, np.cumsum(near.sum(axis=1))).astype(np.int32),
        neighbour=np.nonzero(near)[1].astype(np.int32),
    )  # fmt: skip
    return problem, small.state._replace(
        cluster=np.arange(number, dtype=np.int32), intensity=small.state.intensity * 20
    )


def test_equal_seeds_equal_bits_and_the_state_stays(small_problem):
    problem, state = random_problem(small_problem)
    drawn = np.stack([redraw_links(np.random.default_rng(seed), state, problem) for seed in (0, 1, 2, 0)])
    assert drawn.dtype == np.int32
    np.testing.assert_array_equal(drawn[3], drawn[0])
    assert len(np.unique(drawn, axis=0)) == 3
    np.testing.assert_array_equal(state.cluster, np.arange(60))


def test_clusters_are_named_by_their_first_record(small_problem):
    problem, state = random_problem(small_problem)
    cluster = redraw_links(np.random.default_rng(0), state, problem)
    assert len(np.unique(cluster)) < len(cluster)
    first = [np.flatnonzero(cluster == own)[0] for own in cluster]
    np.testing.assert_array_equal(first, cluster)


def test_precision_of_the_state(small_problem):
    """Shares that single precision holds exactly give the same links in both precisions."""
    exact = {"share": [np.array([0.5, 0.25, 0.25]), np.array([0.5, 0.25, 0.125, 0.125])], "distortion": [0.25, 0.125]}
    small = problem_on(small_problem, RING, **exact, size_share=[0.5, 0.25, 0.125, 0.125])
    single = small.state._replace(**{
        name: values.astype(np.float32) for name, values in small.state._asdict().items()
        if values is not None and values.dtype.kind == "f"
    })  # fmt: skip
    for seed in range(50):
        drawn = [redraw_links(np.random.default_rng(seed), one, small.problem) for one in (small.state, single)]
        np.testing.assert_array_equal(*drawn)


def test_extreme_hyperparameters(small_problem):
    """Shares that were rounded to zero, no distortion at all, and powers beyond double precision."""
    edges = [(one, other) for one in range(8) for other in range(one + 1, 8)]
    small = small_problem(
        edges, [[0, 0]] * 7 + [[1, 1]], share=[np.array([1e-6, 1 - 1e-6])] * 2, distortion=[0.0, 1e-30], intensity=10.0,
        size_share=[0.5, 0.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
    )  # fmt: skip
    together = small.state._replace(cluster=np.array([0] * 7 + [7], np.int32))
    found = redraw_links(np.random.default_rng(0), together, small.problem)
    np.testing.assert_array_equal(found, together.cluster)


def test_a_cluster_that_is_too_large(small_problem):
    small = problem_on(small_problem, COMPLETE, size_share=[0.5, 0.5])
    state = small.state._replace(cluster=np.zeros(5, np.int32))
    with pytest.raises(ValueError, match="more records than size_share has sizes"):
        redraw_links(np.random.default_rng(0), state, small.problem)


def test_without_numba_python_draws_the_same_links(small_problem, monkeypatch):
    problem, state = random_problem(small_problem)
    expected = redraw_links(np.random.default_rng(0), state, problem)
    monkeypatch.setitem(sys.modules, "numba", None)
    source, plain = inspect.getsource(record_sweep), types.ModuleType("plain_sweep")
    exec(compile(source, plain.__name__, "exec"), vars(plain))
    assert plain.numba is None
    monkeypatch.setattr(record_sweep, "sweep", plain.sweep)
    np.testing.assert_array_equal(redraw_links(np.random.default_rng(0), state, problem), expected)
