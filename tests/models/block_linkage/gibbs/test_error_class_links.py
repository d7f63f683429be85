"""Links under error classes: against all partitions of a few records, with errors that must be found."""

import inspect
import types

import numpy as np
import pytest

from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.gibbs import error_class_sweep
from consilience.models.block_linkage.gibbs.links import redraw_links

SHARE = [np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.25, 0.1, 0.05]), np.array([0.7, 0.3])]
VALUE = [[0, 1, 0], [0, 1, 0], [1, 1, 0], [0, -1, 1], [2, 3, -1], [2, 1, 1]]
PATH = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
STAR = [(0, 3), (1, 3), (2, 3), (3, 4), (3, 5)]
RING = [(0, 2), (0, 4), (1, 2), (1, 5), (3, 4), (3, 5)]
COMPLETE = [(one, other) for one in range(5) for other in range(one + 1, 5)]
FIXED = {"share": SHARE, "distortion": [0.3, 0.2, 0.6], "intensity": 3.0, "class_share": [0.25, 0.45, 0.3]}
SIZES = [0.4, 0.2, 0.2, 0.1, 0.1]


def problem_on(make, edges, **changes):
    return make(edges, VALUE[: 1 + max(map(max, edges))], **{**FIXED, "size_share": SIZES, **changes})


@pytest.mark.parametrize("edges", [PATH, STAR, RING, COMPLETE], ids=["path", "star", "ring", "complete"])
def test_partitions_of_a_few_records(edges, small_problem, assert_leaves_invariant):
    assert_leaves_invariant(error_class_sweep.sweep, problem_on(small_problem, edges), sweeps=4)


def test_all_alone_at_first(small_problem, assert_leaves_invariant):
    assert_leaves_invariant(error_class_sweep.sweep, problem_on(small_problem, RING), sweeps=15, alone=True)


def test_largest_size_and_sources(small_problem, assert_leaves_invariant):
    """No cluster has more than three records, or two of one source; records 0 and 5 are of one, and 2 and 3."""
    edges = [*PATH, (0, 2), (1, 4), (2, 5), (0, 5)]
    small = problem_on(small_problem, edges, size_share=[0.4, 0.3, 0.3], source=[0, 1, 2, 2, 3, 0])
    assert_leaves_invariant(error_class_sweep.sweep, small, sweeps=4)


@pytest.mark.parametrize("record", range(6))
def test_joining_is_a_ratio_of_the_likelihoods_of_em(record):
    """For a cluster of all others; and a pair."""
    share, distortion, class_share = np.concatenate(SHARE), np.array(FIXED["distortion"]), np.array([0.25, 0.45, 0.3])
    field = np.repeat([0, 1, 2], [3, 4, 2])
    codes = np.where(np.array(VALUE) >= 0, np.array(VALUE) + [0, 3, 7], -1).astype(np.int32)
    others = [own for own in range(6) if own != record]
    values = codes[[*others, record]][..., None]
    log_m = ErrorClasses(class_share).log_marginals(values, np.append(share, 1)[values], distortion, np)[:, 0]
    expected = log_m[63] - log_m[31]

    sweep = error_class_sweep
    alike = sweep._of_values(share, distortion, field)
    given = codes, share, alike, distortion, class_share
    pair = sweep._given(record, others[-1], *given)
    np.testing.assert_allclose(np.log(np.mean(pair)), log_m[1 << 5 | 1 << 4], rtol=1e-10)
    kept = np.empty((1, 5)), np.empty(1)
    cluster = 0, np.array([5], np.int32), np.array([others], np.int32)
    sweep._reckon(*cluster, *given, *kept)
    np.testing.assert_allclose(np.log(sweep._joined(record, *cluster, *given, *kept)), expected, rtol=1e-10)


def test_extreme_hyperparameters(small_problem):
    """Shares that were rounded to zero and to one, no distortion: who agrees in rare values is together."""
    edges = [(one, other) for one in range(8) for other in range(one + 1, 8)]
    small = small_problem(
        edges, [[0, 0]] * 7 + [[1, 1]], share=[np.array([1e-6, 1 - 1e-6])] * 2, distortion=[1e-30, 1e-30],
        intensity=10.0, size_share=np.full(8, 1 / 8), class_share=[1 - 2e-30, 1e-30, 1e-30],
    )  # fmt: skip
    together = small.state._replace(cluster=np.array([0] * 7 + [7], np.int32))
    for seed in range(5):
        found = redraw_links(np.random.default_rng(seed), together, small.problem)
        np.testing.assert_array_equal(found, together.cluster)
    apart = redraw_links(np.random.default_rng(0), small.state, small.problem)
    assert len(np.unique(apart)) <= 5


# ---- errors ----


def with_error(old, new):
    """Return the sweep with an error in its source, as Python runs it."""
    source = inspect.getsource(error_class_sweep)
    assert old in source
    wrong = types.ModuleType("wrong_sweep")
    exec(compile(source.replace(old, new).replace("@_machine_code\n", ""), wrong.__name__, "exec"), vars(wrong))
    return wrong.sweep


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
def test_errors_are_found(error, telling, assert_leaves_invariant):
    sweep = with_error(*ERRORS[error])
    with pytest.raises((AssertionError, KeyError)):
        assert_leaves_invariant(sweep, telling, **FEW)


def test_what_errors_are_measured_against(telling, assert_leaves_invariant):
    """The same code without an error, run by Python."""
    sweep = with_error("", "")
    assert_leaves_invariant(sweep, telling, **FEW)
