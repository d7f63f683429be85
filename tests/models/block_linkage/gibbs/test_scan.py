"""Links drawn record by record: against all partitions of a few records, and one weight against the likelihood."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.models.block_linkage.gibbs.hyperparameters import log_copy_ratio
from consilience.models.block_linkage.gibbs.scan import (
    join_log_factors,
    log_normalisers,
    log_size_weights,
    redraw_scan,
    scan_layout,
)
from consilience.models.block_linkage.likelihoods import LIKELIHOODS

SHARE = [np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.25, 0.1, 0.05])]
VALUE = [[0, 1], [0, 1], [1, 1], [0, -1], [2, 3], [2, 1]]
PATH = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
STAR = [(0, 3), (1, 3), (2, 3), (3, 4), (3, 5)]
RING = [(0, 2), (0, 4), (1, 2), (1, 5), (3, 4), (3, 5)]
COMPLETE = [(one, other) for one in range(5) for other in range(one + 1, 5)]
FIXED = {"share": SHARE, "distortion": [0.3, 0.2], "intensity": 3.0}


def with_layout(small):
    problem = small.problem
    layout = scan_layout(np.asarray(problem.first_neighbour), np.asarray(problem.neighbour))
    return small._replace(problem=dataclasses.replace(problem, layout=jax.tree.map(jnp.asarray, layout)))


@pytest.mark.parametrize("edges", [PATH, STAR, RING, COMPLETE], ids=["path", "star", "ring", "complete"])
def test_partitions_of_a_few_records(edges, small_problem, assert_leaves_invariant):
    """On graphs that are not complete too, where taking a record out may part the others."""
    value = VALUE[: 1 + max(map(max, edges))]
    with jax.enable_x64(True):
        small = small_problem(edges, value, **FIXED, size_share=[0.4, 0.2, 0.2, 0.1, 0.1])
        assert_leaves_invariant(redraw_scan, with_layout(small))


def test_largest_size_and_sources(small_problem, assert_leaves_invariant):
    """No cluster has more than three records, or two of one source; records 0 and 5 are of one, and 2 and 3."""
    edges = [*PATH, (0, 2), (1, 4), (2, 5), (0, 5)]
    small = small_problem(edges, VALUE, **FIXED, size_share=[0.4, 0.3, 0.3], source=[0, 1, 2, 2, 3, 0])
    assert_leaves_invariant(redraw_scan, with_layout(small))


def test_equal_keys_equal_bits(small_problem):
    small = with_layout(small_problem(RING, VALUE, **FIXED, size_share=[0.4, 0.3, 0.2, 0.1]))
    one, other = (redraw_scan(jax.random.key(3), small.state, small.problem) for _ in range(2))
    assert one.dtype == jnp.int32
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("record", [0, 1, 2, 4])
def test_ratio_of_joining(record):
    """It is m(C + i) w(n + 1) / (m(C) m(i) w(n) w(1)), with the likelihood of a cluster that EM takes."""
    with jax.enable_x64(True):
        share, distortion = np.concatenate(SHARE), np.array([0.3, 0.2])
        size_share, intensity = [0.4, 0.2, 0.2, 0.1, 0.1], 2.0
        field = np.repeat([0, 1], [3, 4])
        codes = np.where(np.array(VALUE) >= 0, np.array(VALUE) + [0, 3], -1)
        members = [own for own in (0, 1, 3, 4) if own != record]
        log_ratio = log_copy_ratio(jnp.asarray(share), jnp.asarray(distortion), jnp.asarray(field))
        own = jnp.asarray(codes[members])
        normaliser = log_normalisers(own, jnp.log(share)[own], log_ratio[own])
        factor = join_log_factors(
            jnp.asarray(codes[record]), log_ratio[codes[record]], jnp.asarray(distortion), own[None], normaliser[None]
        )[0]
        weight = log_size_weights(jnp.asarray(intensity), jnp.asarray(size_share))
        number = len(members)
        found = factor + weight[number + 1] - weight[number] - weight[1]

        values = codes[[*members, record]].T[None].transpose(2, 1, 0)
        log_m = LIKELIHOODS["hit-miss"].log_marginals(values, np.append(share, 1)[values], distortion, np)[:, 0]

        def log_w(size):
            return np.log(intensity * np.prod(np.arange(1, size + 1)) * size_share[size - 1])

        expected = log_m[-1] - log_m[2**number - 1] + log_w(number + 1) - log_w(number) - log_w(1)
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_single_precision_where_powers_overflow(small_problem):
    """Eight records that agree on rare values with hardly any distortion: r^8 is beyond single precision."""
    value = [[0, 0]] * 8
    edges = [(one, other) for one in range(8) for other in range(one + 1, 8)]
    share = [np.array([1e-6, 1 - 1e-6])] * 2
    problem = small_problem(
        edges, value, share=share, distortion=[1e-3, 1e-3], intensity=10.0, size_share=np.full(8, 1 / 8)
    )
    single = with_layout(problem)
    assert single.state.value_share.dtype == jnp.float32
    together = single.state._replace(cluster=jnp.zeros(8, jnp.int32))
    np.testing.assert_array_equal(redraw_scan(jax.random.key(0), together, single.problem), np.zeros(8))
    joined = redraw_scan(jax.random.key(0), single.state, single.problem)
    assert len(np.unique(joined)) <= 5
