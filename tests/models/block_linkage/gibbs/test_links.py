"""The record sweep under both likelihoods: against all partitions of a few records, with errors that must be found."""

import dataclasses
import inspect
import sys
import types

import numpy as np
import pytest

from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.gibbs import record_sweep
from consilience.models.block_linkage.gibbs.links import redraw_links

SHARE = [np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.25, 0.1, 0.05]), np.array([0.7, 0.3])]
VALUE = [[0, 1, 0], [0, 1, 0], [1, 1, 0], [0, -1, 1], [2, 3, -1], [2, 1, 1]]
PATH = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
STAR = [(0, 3), (1, 3), (2, 3), (3, 4), (3, 5)]
RING = [(0, 2), (0, 4), (1, 2), (1, 5), (3, 4), (3, 5)]
COMPLETE = [(one, other) for one in range(5) for other in range(one + 1, 5)]
SIZES = [0.4, 0.2, 0.2, 0.1, 0.1]
FIXED = {"share": SHARE, "distortion": [0.3, 0.2, 0.6], "intensity": 3.0, "size_share": SIZES}
CLASSES = {"hit-miss": None, "error-classes": [0.25, 0.45, 0.3]}


@pytest.fixture(params=CLASSES)
def likelihood(request):
    return request.param


def problem_on(make, edges, likelihood="hit-miss", value=VALUE, **changes):
    given = FIXED | {"class_share": CLASSES[likelihood]} | changes
    return make(edges, value[: 1 + max(map(max, edges))], **given)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("edges", [PATH, STAR, RING, COMPLETE], ids=["path", "star", "ring", "complete"])
def test_partitions_of_a_few_records(edges, alone, likelihood, small_problem, assert_leaves_invariant):
    small = problem_on(small_problem, edges, likelihood)
    assert_leaves_invariant(record_sweep.sweep, small, sweeps=15 if alone else 4, alone=alone)


def test_largest_size_and_sources(likelihood, small_problem, assert_leaves_invariant):
    """No cluster has more than three records, or two of one source; records 0 and 5 are of one, and 2 and 3."""
    edges = [*PATH, (0, 2), (1, 4), (2, 5), (0, 5)]
    small = problem_on(small_problem, edges, likelihood, size_share=[0.4, 0.3, 0.3], source=[0, 1, 2, 2, 3, 0])
    assert_leaves_invariant(record_sweep.sweep, small, sweeps=4)


@pytest.mark.parametrize("record", range(6))
def test_joining_is_a_ratio_of_the_likelihoods_of_em(record):
    """For a cluster of all others; and a pair."""
    share, distortion = np.concatenate(SHARE), np.array(FIXED["distortion"])
    class_share = np.array(CLASSES["error-classes"])
    field = np.repeat([0, 1, 2], [3, 4, 2])
    codes = np.where(np.array(VALUE) >= 0, np.array(VALUE) + [0, 3, 7], -1).astype(np.int32)
    others = [own for own in range(6) if own != record]
    values = codes[[*others, record]][..., None]
    log_m = ErrorClasses(class_share).log_marginals(values, np.append(share, 1)[values], distortion, np)[:, 0]

    model = codes, share, distortion, *record_sweep._of_values(share, distortion, field, class_share), class_share
    pair = record_sweep._paired(1.0, record, others[-1], *model)
    np.testing.assert_allclose(np.log(pair), log_m[1 << 5 | 1 << 4], rtol=1e-10)
    cluster = 0, np.array([5], np.int32), np.array([others], np.int32), np.empty((1, 6))
    record_sweep._reckon(*cluster, *model)
    joined = record_sweep._joined(1.0, record, *cluster, *model)
    np.testing.assert_allclose(np.log(joined), log_m[63] - log_m[31], rtol=1e-10)


# ---- errors ----


def with_error(old, new):
    """Return the sweep with an error in its source, as Python runs it."""
    source = inspect.getsource(record_sweep)
    assert old in source
    wrong = types.ModuleType("wrong_sweep")
    source = source.replace(old, new).replace("@_machine_code\n", "").replace("@_inlined\n", "")
    exec(compile(source, wrong.__name__, "exec"), vars(wrong))
    return wrong.sweep


ERRORS = {
    "hit-miss": {
        "one more member is worth nothing": ("(size + 1) * max(size_share[size]", "max(size_share[size]"),
        "a missing value of the other differs": ("if code >= 0 and other >= 0:", "if code >= 0:"),
        "a missing value of the record itself differs": ("if code >= 0 and other >= 0:", "if other >= 0:"),
        "prior odds": ("intensity * max(size_share[0]", "2 * intensity * max(size_share[0]"),
        "clusters may fall apart": ("return num_reached == number", "return True"),
        "a cluster counts for each neighbour": ("looked[there] == record or", ""),
        "Z is not brought up to date": ("        _reckon(there, size,", "        _reckon(there, size - 1,"),
        "a repeated value counts twice in Z": ("if not again:", "if True:"),
    },
    "error-classes": {
        "the record is never the head": ("log_weight[number] += math.log(reverse)", "log_weight[number] = -np.inf"),
        "heads do not share the probability": ("* number / (number + 1)", ""),
        "heads are not weighed anew": ("        _reckon(there, size,", "        continue; _reckon(there, size,"),
        "any member is the head with equal weight": ("kept[own, -1] = highest +", "kept[own, -1] = 0.5 * highest +"),
        "the head of a pair does not matter": ("(given + reverse) / 2", "given"),
        "a wrong value may be the right one": ("few = one / max(1 - true, shown, _LEAST)", "few = one"),
        "the field in error is given": ("exact * class_share[1] / num_fields", "exact * class_share[1]"),
        "an error cannot be where a value is missing": ("class_share[1] * missing / num_fields", "0.0"),
        "exact copies are never of records with many errors": ("max(min(few + many,", "max(min(max(few, many),"),
        "one more member is worth nothing": ("_joined(\n                    size_factor[size[there]]", "_joined(1.0"),
    },
}  # fmt: skip
SLOW = list(ERRORS["error-classes"])[3:]


@pytest.fixture
def telling(small_problem):
    """Return a function that makes a problem in which all errors of a likelihood show."""
    value = [[0, -1, 0], [0, 1, 0], [-1, 1, 0], [0, -1, 1], [2, 3, 0], [2, 1, 0]]
    edges = [*RING, (0, 1), (2, 3), (0, 3)]

    def make(likelihood):
        if likelihood == "error-classes":
            share = [*SHARE[:2], np.array([0.9, 0.1])]
            return problem_on(small_problem, [*edges, (4, 5)], likelihood, value, share=share)
        two = {"share": SHARE[:2], "distortion": [0.3, 0.2]}
        return problem_on(small_problem, edges, value=[own[:2] for own in value], **two)

    return make


FEW = {"num_chains": 4000, "sweeps": 2}
SUBTLE = {"the head of a pair does not matter": 25_000}


@pytest.mark.parametrize(
    ("likelihood", "error"),
    [
        pytest.param(name, error, marks=pytest.mark.slow if name == "error-classes" and error in SLOW else ())
        for name, errors in ERRORS.items() for error in errors
    ],
)  # fmt: skip
def test_errors_of_the_sweep_are_found(likelihood, error, telling, assert_leaves_invariant):
    sweep = with_error(*ERRORS[likelihood][error])
    with pytest.raises((AssertionError, KeyError)):
        assert_leaves_invariant(sweep, telling(likelihood), **FEW | {"num_chains": SUBTLE.get(error, 4000)})


def test_what_errors_are_measured_against(likelihood, telling, assert_leaves_invariant):
    """The same code without an error, run by Python."""
    assert_leaves_invariant(with_error("", ""), telling(likelihood), **FEW)


# ---- through `redraw_links` ----


def random_problem(make, number=60):
    """Return a problem of many records, whose partitions nobody goes through."""
    generator = np.random.default_rng(0)
    two = {"share": SHARE[:2], "distortion": [0.3, 0.2]}
    small = problem_on(make, [(0, 1)], value=[own[:2] for own in VALUE], **two)
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


def test_redrawn_clusters_are_named_by_their_first_record(small_problem):
    problem, state = random_problem(small_problem)
    cluster = redraw_links(np.random.default_rng(0), state, problem)
    assert len(np.unique(cluster)) < len(cluster)
    first = [np.flatnonzero(cluster == own)[0] for own in cluster]
    np.testing.assert_array_equal(first, cluster)


def test_precision_of_the_state(small_problem):
    """Shares that single precision holds exactly give the same links in both precisions."""
    exact = {"share": [np.array([0.5, 0.25, 0.25]), np.array([0.5, 0.25, 0.125, 0.125])], "distortion": [0.25, 0.125]}
    value = [own[:2] for own in VALUE]
    small = problem_on(small_problem, RING, value=value, **exact, size_share=[0.5, 0.25, 0.125, 0.125])
    single = small.state._replace(**{
        name: values.astype(np.float32) for name, values in small.state._asdict().items()
        if values is not None and values.dtype.kind == "f"
    })  # fmt: skip
    for seed in range(50):
        drawn = [redraw_links(np.random.default_rng(seed), one, small.problem) for one in (small.state, single)]
        np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize(
    ("distortion", "size_share", "class_share"),
    [
        ([0.0, 1e-30], [0.5, 0.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], None),
        ([1e-30, 1e-30], np.full(8, 1 / 8), [1 - 2e-30, 1e-30, 1e-30]),
    ],
    ids=CLASSES,
)
def test_extreme_hyperparameters(distortion, size_share, class_share, small_problem):
    """Shares that were rounded to zero and to one, no distortion at all, and powers beyond double precision."""
    edges = [(one, other) for one in range(8) for other in range(one + 1, 8)]
    small = small_problem(
        edges, [[0, 0]] * 7 + [[1, 1]], share=[np.array([1e-6, 1 - 1e-6])] * 2, distortion=distortion, intensity=10.0,
        size_share=size_share, class_share=class_share,
    )  # fmt: skip
    together = small.state._replace(cluster=np.array([0] * 7 + [7], np.int32))
    for seed in range(5):
        found = redraw_links(np.random.default_rng(seed), together, small.problem)
        np.testing.assert_array_equal(found, together.cluster)
    if class_share is not None:
        apart = redraw_links(np.random.default_rng(0), small.state, small.problem)
        assert len(np.unique(apart)) <= 5


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
