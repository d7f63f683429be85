"""Links under error classes: both forms against all partitions of a few records, with errors that must be found."""

import dataclasses
import inspect
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.gibbs.compiled import redraw_compiled
from consilience.models.block_linkage.gibbs.error_classes import head_log_weights, join_log_factors
from consilience.models.block_linkage.gibbs.scan import redraw_scan, scan_layout

error_class_sweep = pytest.importorskip("consilience.models.block_linkage.gibbs.error_class_sweep")

SHARE = [np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.25, 0.1, 0.05]), np.array([0.7, 0.3])]
VALUE = [[0, 1, 0], [0, 1, 0], [1, 1, 0], [0, -1, 1], [2, 3, -1], [2, 1, 1]]
PATH = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
STAR = [(0, 3), (1, 3), (2, 3), (3, 4), (3, 5)]
RING = [(0, 2), (0, 4), (1, 2), (1, 5), (3, 4), (3, 5)]
COMPLETE = [(one, other) for one in range(5) for other in range(one + 1, 5)]
FIXED = {"share": SHARE, "distortion": [0.3, 0.2, 0.6], "intensity": 3.0, "class_share": [0.25, 0.45, 0.3]}
SIZES = [0.4, 0.2, 0.2, 0.1, 0.1]


def problem_on(make, edges, **changes):
    small = make(edges, VALUE[: 1 + max(map(max, edges))], **{**FIXED, "size_share": SIZES, **changes})
    layout = scan_layout(np.asarray(small.problem.first_neighbour), np.asarray(small.problem.neighbour))
    return small._replace(problem=dataclasses.replace(small.problem, layout=jax.tree.map(jnp.asarray, layout)))


@pytest.mark.parametrize("edges", [PATH, STAR, RING, COMPLETE], ids=["path", "star", "ring", "complete"])
def test_partitions_of_a_few_records(edges, small_problem, assert_leaves_invariant):
    with jax.enable_x64(True):
        assert_leaves_invariant(redraw_compiled, problem_on(small_problem, edges), sweeps=4)


@pytest.mark.parametrize("edges", [PATH, COMPLETE], ids=["path", "complete"])
def test_the_oracle(edges, small_problem, assert_leaves_invariant):
    with jax.enable_x64(True):
        assert_leaves_invariant(redraw_scan, problem_on(small_problem, edges), sweeps=3, num_chains=5000)


def test_all_alone_at_first(small_problem, assert_leaves_invariant):
    assert_leaves_invariant(redraw_compiled, problem_on(small_problem, RING), sweeps=15, alone=True)


@pytest.mark.parametrize("redraw", [redraw_compiled, redraw_scan], ids=["compiled", "scan"])
def test_largest_size_and_sources(redraw, small_problem, assert_leaves_invariant):
    """No cluster has more than three records, or two of one source; records 0 and 5 are of one, and 2 and 3."""
    edges = [*PATH, (0, 2), (1, 4), (2, 5), (0, 5)]
    small = problem_on(small_problem, edges, size_share=[0.4, 0.3, 0.3], source=[0, 1, 2, 2, 3, 0])
    assert_leaves_invariant(redraw, small, sweeps=4, num_chains=5000)


@pytest.mark.parametrize("record", range(6))
def test_joining_is_a_ratio_of_the_likelihoods_of_em(record):
    """In both forms, for a cluster of all others; and a pair."""
    share, distortion, class_share = np.concatenate(SHARE), np.array(FIXED["distortion"]), np.array([0.25, 0.45, 0.3])
    field = np.repeat([0, 1, 2], [3, 4, 2])
    codes = np.where(np.array(VALUE) >= 0, np.array(VALUE) + [0, 3, 7], -1).astype(np.int32)
    others = [own for own in range(6) if own != record]
    values = codes[[*others, record]][..., None]
    log_m = ErrorClasses(class_share).log_marginals(values, np.append(share, 1)[values], distortion, np)[:, 0]
    expected = log_m[63] - log_m[31]

    with jax.enable_x64(True):
        own, filled = jnp.asarray(codes[others]), jnp.ones(5, bool)
        kept = head_log_weights(own, share[own], distortion, class_share, filled)
        of_record = jnp.asarray(codes[record]), share[codes[record]]
        found = join_log_factors(*of_record, distortion, class_share, own[None], share[own][None], kept[None])
    np.testing.assert_allclose(found, [expected], rtol=1e-10)

    sweep = error_class_sweep
    alike = sweep._of_values(share, distortion, field)
    given = codes, share, alike, distortion, class_share
    pair = sweep._given(record, others[-1], *given)
    np.testing.assert_allclose(np.log(np.mean(pair)), log_m[1 << 5 | 1 << 4], rtol=1e-10)
    kept = np.empty((1, 5)), np.empty(1)
    cluster = 0, np.array([5], np.int32), np.array([others], np.int32)
    sweep._reckon(*cluster, *given, *kept)
    np.testing.assert_allclose(np.log(sweep._joined(record, *cluster, *given, *kept)), expected, rtol=1e-10)


def test_precision_of_the_state(small_problem):
    """Numbers that single precision holds exactly give the same links in both precisions."""
    exact = {
        "share": [np.array([0.5, 0.25, 0.25]), np.array([0.5, 0.25, 0.125, 0.125]), np.array([0.75, 0.25])],
        "distortion": [0.25, 0.125, 0.5], "class_share": [0.25, 0.5, 0.25],
    }  # fmt: skip
    found = []
    for double in (False, True):
        with jax.enable_x64(double):
            small = problem_on(small_problem, RING, **exact, size_share=[0.5, 0.25, 0.125, 0.125])
            assert small.state.class_share.dtype == (np.float64 if double else np.float32)
            keys = jax.random.split(jax.random.key(5), 50)
            found.append(jax.vmap(redraw_compiled, (0, None, None))(keys, small.state, small.problem))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("redraw", [redraw_compiled, redraw_scan], ids=["compiled", "scan"])
def test_extreme_hyperparameters(redraw, small_problem):
    """Shares that were rounded to zero and to one, no distortion: who agrees in rare values is together."""
    edges = [(one, other) for one in range(8) for other in range(one + 1, 8)]
    small = small_problem(
        edges, [[0, 0]] * 7 + [[1, 1]], share=[np.array([1e-6, 1 - 1e-6])] * 2, distortion=[1e-30, 1e-30],
        intensity=10.0, size_share=np.full(8, 1 / 8), class_share=[1 - 2e-30, 1e-30, 1e-30],
    )  # fmt: skip
    layout = scan_layout(np.asarray(small.problem.first_neighbour), np.asarray(small.problem.neighbour))
    problem = dataclasses.replace(small.problem, layout=jax.tree.map(jnp.asarray, layout))
    together = small.state._replace(cluster=jnp.array([0] * 7 + [7], jnp.int32))
    redraw = jax.jit(redraw)
    for seed in range(5):
        np.testing.assert_array_equal(redraw(jax.random.key(seed), together, problem), together.cluster)
    apart = redraw(jax.random.key(0), small.state, problem)
    assert len(np.unique(apart)) <= 5


# ---- errors ----


def with_error(old, new):
    """Return the sweep with an error in its source, as Python runs it."""
    source = inspect.getsource(error_class_sweep)
    assert old in source
    wrong = types.ModuleType("wrong_sweep")
    exec(compile(source.replace(old, new).replace("@_machine_code\n", ""), wrong.__name__, "exec"), vars(wrong))
    vars(wrong)["_uniform"] = error_class_sweep._uniform.py_func    # machine code returns its state as an int of Python

    def sweep_chains(*given):
        with np.errstate(over="ignore"):        # of random numbers, as meant
            wrong.sweep_chains(*given)

    return sweep_chains


ERRORS = {
    "the record is never the head": ("log_weight[number] += math.log(reverse)", "log_weight[number] = -np.inf"),
    "any member is the head with equal weight": ("log_total[own] = highest +", "log_total[own] = 0.5 * highest +"),
    "heads do not share the probability": ("* number / (number + 1)", ""),
    "the head of a pair does not matter": ("(given + reverse) / 2", "given"),
    "a wrong value may be the right one": ("few = one / max(1 - true, shown, _LEAST)", "few = one"),
    "the field in error is given": ("exact * class_share[1] / num_fields", "exact * class_share[1]"),
    "an error cannot be where a value is missing": ("class_share[1] * missing / num_fields", "0.0"),
    "exact copies are never of records with many errors": ("max(min(few + many,", "max(min(max(few, many),"),
    "heads are not weighed anew": ("        slot[record] = there", "        slot[record] = there; continue"),
    "one more member is worth nothing": ("weight = size_factor[size[there]] *", "weight = "),
}  # fmt: skip


QUICK = ("the record is never the head", "heads do not share the probability", "heads are not weighed anew")
FEW = {"num_chains": 4000, "sweeps": 2}


@pytest.fixture
def telling(small_problem):
    """Return a problem in which all of these errors show."""
    value = [[0, -1, 0], [0, 1, 0], [-1, 1, 0], [0, -1, 1], [2, 3, 0], [2, 1, 0]]
    share = [*SHARE[:2], np.array([0.9, 0.1])]
    edges = [*RING, (0, 1), (2, 3), (0, 3), (4, 5)]
    return small_problem(edges, value, **{**FIXED, "share": share}, size_share=SIZES)


@pytest.mark.parametrize(
    "error", [error if error in QUICK else pytest.param(error, marks=pytest.mark.slow) for error in ERRORS]
)
def test_errors_are_found(error, telling, assert_leaves_invariant, monkeypatch):
    monkeypatch.setattr(error_class_sweep, "sweep_chains", with_error(*ERRORS[error]))
    with pytest.raises((AssertionError, KeyError)):
        assert_leaves_invariant(redraw_compiled, telling, **FEW)


def test_what_errors_are_measured_against(telling, assert_leaves_invariant, monkeypatch):
    """The same code without an error, run by Python."""
    monkeypatch.setattr(error_class_sweep, "sweep_chains", with_error("sweep_chains", "sweep_chains"))
    assert_leaves_invariant(redraw_compiled, telling, **FEW)
