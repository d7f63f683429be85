"""Anchored split-merge: against all partitions of a few records, against machine code, with errors to be found."""

import dataclasses
import functools
import inspect
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.gibbs import pairs as module
from consilience.models.block_linkage.gibbs.compiled import redraw_compiled
from consilience.models.block_linkage.gibbs.pairs import pair_layout, pieces, redraw_pairs
from consilience.models.block_linkage.join import CandidatePairs
from consilience.models.block_linkage.likelihoods import LIKELIHOODS

SHARE = [np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.25, 0.1, 0.05])]
VALUE = [[0, 1], [0, 1], [1, 1], [0, -1], [2, 3], [2, 1]]
PATH = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
STAR = [(0, 3), (1, 3), (2, 3), (3, 4), (3, 5)]
RING = [(0, 2), (0, 4), (1, 2), (1, 5), (3, 4), (3, 5)]
SQUARE = [(0, 1), (0, 3), (1, 2), (2, 3)]
COMPLETE = [(one, other) for one in range(5) for other in range(one + 1, 5)]
FEW = {"num_chains": 1000, "sweeps": 2}
FROM_ALONE = {"num_chains": 500, "sweeps": 40, "alone": True}
FIXED = {"share": SHARE, "distortion": [0.3, 0.2], "intensity": 3.0}
SIZES = [0.4, 0.2, 0.2, 0.2]


def candidates(edges):
    first, second = np.array(edges, np.int32).reshape(-1, 2).T
    return CandidatePairs(first, second, *np.zeros((2, len(first)), np.uint64), np.zeros(len(first)))


def with_layout(small, edges, width=3):
    layout = pair_layout(candidates(edges), len(small.state.cluster), width)
    return small._replace(problem=dataclasses.replace(small.problem, layout=layout))


def problem_on(make, edges, **changes):
    value = changes.pop("value", VALUE)[: 1 + max(map(max, edges))]
    return with_layout(make(edges, value, **{**FIXED, "size_share": SIZES, **changes}), edges)


@pytest.mark.parametrize("edges", [PATH, STAR, RING, COMPLETE], ids=["path", "star", "ring", "complete"])
def test_partitions_of_a_few_records(edges, small_problem, assert_leaves_invariant):
    with jax.enable_x64(True):
        assert_leaves_invariant(redraw_pairs, problem_on(small_problem, edges), **FEW)


@pytest.mark.slow
def test_sets_beyond_the_smallest_room(small_problem, assert_leaves_invariant):
    """Entities of up to five records."""
    small = problem_on(small_problem, COMPLETE, size_share=[0.2, 0.2, 0.2, 0.2, 0.2])
    assert (small.probability * (small.partition == 0).all(axis=1)).sum() > 0.02
    assert_leaves_invariant(redraw_pairs, small, **FEW)


@pytest.mark.slow
@pytest.mark.parametrize("edges", [STAR, SQUARE, RING], ids=["star", "square", "ring"])
def test_all_partitions_are_reached(edges, small_problem, assert_leaves_invariant):
    assert_leaves_invariant(redraw_pairs, problem_on(small_problem, edges), **FROM_ALONE)


@pytest.mark.parametrize("size_share", [[0.4, 0.3, 0.3], [0.6, 0.4]])
def test_largest_size_and_sources(size_share, small_problem, assert_leaves_invariant):
    """No cluster is too large or has two records of one source; records 0 and 5 are of one, and 2 and 3."""
    edges = [*PATH, (0, 2), (1, 4), (2, 5), (0, 5)]
    small = problem_on(small_problem, edges, size_share=size_share, source=[0, 1, 2, 2, 3, 0])
    assert_leaves_invariant(redraw_pairs, small, **FEW)


def test_fixed_pieces_without_dropping_are_wrong(small_problem, assert_leaves_invariant):
    """Four records in a square would never be together: both pairs of either piece always block each other."""
    small = problem_on(small_problem, SQUARE)
    assert len(small.problem.layout.piece) == 2
    with pytest.raises(AssertionError):
        assert_leaves_invariant(functools.partial(module._redraw, kept=1.0), small, **FROM_ALONE)


def with_error(old, new):
    """Return the redraw with an error in its source."""
    source = inspect.getsource(module)
    assert source.count(old) == 1
    wrong = types.ModuleType("wrong_pairs")
    # Data classes look for their module.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, wrong.__name__, wrong)
        exec(compile(source.replace(old, new), wrong.__name__, "exec"), vars(wrong))
    return wrong.redraw_pairs


ERRORS = {
    "one more member is worth nothing": (
        "size_terms(state.intensity, sizes,", "size_terms(state.intensity, sizes / np.array([1, 2, 6, 24]),"
    ),
    "missing values agree": ("observed = value >= 0", "observed = value >= -1"),
    "prior odds": ("size_terms(state.intensity,", "size_terms(2 * state.intensity,"),
    "clusters may fall apart": (
        "(reached == part) &", "(part & ~jnp.sum((member >= 0) << np.arange(room)[:, None], axis=0) == 0) &"
    ),
    "sets that meet are redrawn": ("& _alone(piece, clusters[0], is_kept)", ""),
    "a repeated value counts twice": ("- jnp.log(jnp.maximum(same.sum(0), 1))", ""),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_errors_are_found(error, small_problem, assert_leaves_invariant):
    value = [[0, -1], [0, 1], [-1, 1], [0, -1], [2, 3], [2, 1]]
    small = problem_on(small_problem, [*RING, (0, 1), (2, 3), (0, 3)], value=value)
    with pytest.raises((AssertionError, KeyError)):
        assert_leaves_invariant(with_error(*ERRORS[error]), small, **FEW)


@pytest.mark.parametrize("double", [False, True])
def test_weights_are_those_of_the_likelihood(double):
    """For sets of six, every split against the marginals with which components are enumerated."""
    generator = np.random.default_rng(0)
    share = np.concatenate(SHARE)
    value = np.where(generator.random((6, 2, 40)) < 0.2, -1, generator.integers([[0], [3]], [[3], [7]], (6, 2, 40)))
    rate = np.array([0.3, 0.05])
    expected = LIKELIHOODS["hit-miss"].log_marginals(value, np.append(share, 1)[value], rate, np)
    field = np.repeat([0, 1], [3, 4])
    with jax.enable_x64(double):
        weights = module._Weights(
            jnp.log(share), jnp.log(rate[field] + (1 - rate[field]) / share), jnp.log(rate), jnp.zeros(7)
        )
        first, second, whole = module._log_marginals(jnp.asarray(value), weights)
        assert first.dtype == (np.float64 if double else np.float32)
    tolerance = 1e-10 if double else 1e-4
    np.testing.assert_allclose(first, expected[1::4], atol=tolerance)
    np.testing.assert_allclose(second, expected[2::4], atol=tolerance)
    np.testing.assert_allclose(whole, expected[-1], atol=tolerance)


@pytest.mark.slow
def test_single_precision_where_powers_overflow(small_problem):
    """Eight records that agree on rare values with hardly any distortion: the product is beyond single precision."""
    edges = [(one, other) for one in range(8) for other in range(one + 1, 8)]
    small = small_problem(
        edges, [[0, 0]] * 8, share=[np.array([1e-6, 1 - 1e-6])] * 2, distortion=[1e-3, 1e-3], intensity=10.0,
        size_share=np.full(8, 1 / 8),
    )  # fmt: skip
    small = with_layout(small, edges)
    together = small.state._replace(cluster=jnp.zeros(8, jnp.int32))
    found = jax.vmap(redraw_pairs, (0, None, None))(jax.random.split(jax.random.key(0), 20), together, small.problem)
    np.testing.assert_array_equal(found, 0)


def test_pieces():
    generator = np.random.default_rng(0)
    edges = np.argwhere(np.triu(generator.random((200, 200)) < 0.05, 1))
    found = pieces(candidates(edges), 16)
    np.testing.assert_array_equal(found, pieces(candidates(edges), 16))
    assert found.shape[1:] == (16, 2)
    there = found[found[..., 0] >= 0]
    np.testing.assert_array_equal(there[np.lexsort(there.T[::-1])], edges)
    for piece in found:
        own = piece[piece >= 0]
        assert len(np.unique(own)) == len(own)
    degree = np.bincount(edges.ravel())
    assert len(pieces(candidates(edges), 200)) <= 1.5 * degree.max()
    assert pieces(candidates([]), 4).shape == (0, 4, 2)
    star = [(0, other) for other in range(1, 30)]
    assert len(pieces(candidates(star), 4)) == 29


def test_no_pairs_at_all(small_problem):
    small = with_layout(small_problem([], VALUE[:3], **FIXED, size_share=SIZES), [])
    np.testing.assert_array_equal(redraw_pairs(jax.random.key(0), small.state, small.problem), np.arange(3))


def test_too_many_sizes(small_problem):
    small = problem_on(small_problem, PATH, size_share=np.full(13, 1 / 13))
    with pytest.raises(UnsupportedRequest, match="at most 12 records, not 13; give fewer sizes, or take the form"):
        redraw_pairs(jax.random.key(0), small.state, small.problem)


def random_problem(make, number=60):
    """Return a problem of many records, whose partitions nobody goes through."""
    generator = np.random.default_rng(0)
    small = make([(0, 1)], VALUE[:2], **FIXED, size_share=SIZES)
    value = np.stack([generator.integers(-1, 3, number), generator.integers(3, 7, number)], axis=1)
    near = np.triu(generator.random((number, number)) < 0.1, 1)
    edges = np.argwhere(near)
    near |= near.T
    problem = dataclasses.replace(
        small.problem, value=jnp.asarray(value, jnp.int32), source=jnp.arange(number, dtype=jnp.int32),
        first_neighbour=jnp.asarray(np.append(0, np.cumsum(near.sum(axis=1))), jnp.int32),
        neighbour=jnp.asarray(np.nonzero(near)[1], jnp.int32), layout=pair_layout(candidates(edges), number, 20),
    )  # fmt: skip
    state = small.state._replace(cluster=jnp.arange(number, dtype=jnp.int32), intensity=small.state.intensity * 10)
    return problem, state, edges


def test_equal_keys_equal_bits_and_chains_as_one_by_one(small_problem):
    problem, state, _ = random_problem(small_problem)
    keys = jax.random.split(jax.random.key(1), 4)
    redraw = jax.jit(redraw_pairs)
    alone = np.stack([redraw(key, state, problem) for key in keys])
    assert alone.dtype == np.int32
    np.testing.assert_array_equal(redraw(keys[0], state, problem), alone[0])
    assert len(np.unique(alone, axis=0)) == 4
    np.testing.assert_array_equal(jax.jit(jax.vmap(redraw_pairs, (0, None, None)))(keys, state, problem), alone)
    first = [[np.flatnonzero(row == own)[0] for own in row] for row in alone]
    np.testing.assert_array_equal(first, alone)


@pytest.mark.slow
def test_machine_code_and_pairs_agree(small_problem):
    """In the number of clusters, and in how often each pair of neighbours is together, on a graph of 60 records."""
    problem, state, edges = random_problem(small_problem)
    means = []
    for redraw, seed in ((redraw_compiled, 0), (redraw_pairs, 1)):

        def chain(key, redraw=redraw):
            def sweep(cluster, key):
                cluster = redraw(key, state._replace(cluster=cluster), problem)
                together = cluster[edges[:, 0]] == cluster[edges[:, 1]]
                return cluster, jnp.append(together, (cluster == jnp.arange(len(cluster))).sum()).astype(float)

            return jax.lax.scan(sweep, state.cluster, jax.random.split(key, 60))[1][20:].mean(axis=0)

        means.append(np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(seed), 40))))
    difference = means[0].mean(axis=0) - means[1].mean(axis=0)
    error = np.sqrt(sum(own.var(axis=0, ddof=1) / len(own) for own in means))
    assert (error > 0).all()
    assert np.abs(difference / error).max() < 5
    # They are no small matters: links are many, and the error of their number is small.
    assert means[0][:, -1].mean() < 50
    assert error[-1] < 0.3
