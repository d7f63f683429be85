"""Enumeration: worked numbers, brute force over set partitions, NumPy against JAX."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.models.block_linkage.enumeration import (
    conflicts,
    enumerate_blocks,
    enumerate_blocks_jax,
    gather_values,
    pair_probabilities,
    pairs_within,
    set_partitions,
    size_terms,
    subset_probabilities,
)
from consilience.models.block_linkage.likelihoods import LIKELIHOODS

HIT_MISS = LIKELIHOODS["hit-miss"]
SIZE_SHARE = np.array([0.6, 0.25, 0.1, 0.05])


def case(num_records, num_components, seed=0):
    """Return values with missing ones, their shares, distortions and terms of the sizes."""
    generator = np.random.default_rng(seed)
    share = np.concatenate([[0.6, 0.3, 0.1], np.full(20, 0.05), [0.5, 0.5]])
    first, lengths = np.array([0, 3, 23]), np.array([3, 20, 2])
    values = first[:, None] + generator.integers(0, lengths[:, None], (num_records, 3, num_components))
    values = np.where(generator.random(values.shape) < 0.2, -1, values)
    return values, share, np.array([0.05, 0.2, 0.5]), size_terms(8.0, SIZE_SHARE, num_records, np)


def brute_force(values, share, distortion, terms, likelihood):
    """Return evidence, pair probabilities and expected sizes of one component, cluster by cluster."""
    num_records = len(values)
    weights, together, sizes = [], [], []

    @functools.cache
    def weight_of(cluster):
        own = values[list(cluster)][:, :, None]
        marginals = likelihood.log_marginals(own, np.append(share, 1)[own], distortion, np)
        return marginals[-1, 0] + terms[len(cluster)]

    for partition in all_partitions(list(range(num_records))):
        weights.append(math.exp(sum(weight_of(tuple(cluster)) for cluster in partition)))
        together.append([any(i in c and j in c for c in partition) for i, j in np.transpose(pairs_within(num_records))])
        sizes.append(np.bincount([len(cluster) for cluster in partition], minlength=num_records + 1)[1:])
    total = sum(weights)
    return math.log(total), np.array(weights) @ np.array(together) / total, np.array(weights) @ np.array(sizes) / total


def all_partitions(records):
    if not records:
        yield []
        return
    for number in range(len(records)):
        for others in itertools.combinations(records[1:], number):
            rest = [record for record in records[1:] if record not in others]
            for partition in all_partitions(rest):
                yield [[records[0], *others], *partition]


def test_the_number_of_set_partitions_is_that_of_bell():
    assert [len(set_partitions(number)) for number in range(1, 9)] == [1, 2, 5, 15, 52, 203, 877, 4140]
    assert len(np.unique(set_partitions(6), axis=0)) == 203


def test_worked_numbers():
    values = np.array([2, 2, 0])[:, None, None]
    found = enumerate_blocks(
        values, np.array([0.6, 0.3, 0.1]), np.array([0.1]), np.zeros(4), HIT_MISS, dtype=np.float64
    )
    np.testing.assert_allclose(found.log_evidence, [2.352137], atol=1e-6)
    np.testing.assert_allclose(found.pair[:, 0], [0.868671, 0.097830, 0.097830], atol=1e-6)


@pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
@pytest.mark.parametrize("num_records", [2, 3, 4, 5, 6, 7])
def test_enumeration_is_brute_force(num_records, likelihood):
    values, share, distortion, terms = case(num_records, 2)
    found = enumerate_blocks(values, share, distortion, terms, likelihood, dtype=np.float64)
    for component in range(2):
        evidence, pair, sizes = brute_force(values[..., component], share, distortion, terms, likelihood)
        assert np.isclose(found.log_evidence[component], evidence, rtol=1e-10)
        np.testing.assert_allclose(found.pair[:, component], pair, rtol=1e-9)
        np.testing.assert_allclose(found.sizes[:, component], sizes, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
@pytest.mark.parametrize("num_records", [2, 4, 6])
def test_jax_and_single_precision_and_chunks_change_nothing(num_records, likelihood):
    given = case(num_records, 300)
    exact = enumerate_blocks(*given, likelihood, dtype=np.float64)
    single = enumerate_blocks(*given, likelihood)
    chunks = enumerate_blocks(*given, likelihood, chunk=7)
    with jax.enable_x64(True):
        double_jax = enumerate_blocks_jax(*map(jnp.asarray, given), likelihood, chunk=64)
        assert double_jax.pair.dtype == np.float64
    with jax.enable_x64(False):
        single_jax = enumerate_blocks_jax(*map(jnp.asarray, given), likelihood)
    for exactly, alone, piecewise, double, other in zip(exact, single, chunks, double_jax, single_jax, strict=True):
        assert alone.dtype == np.float32
        np.testing.assert_array_equal(piecewise, alone)
        np.testing.assert_allclose(alone, exactly, atol=1e-5, rtol=1e-5)
        np.testing.assert_allclose(double, exactly, atol=1e-10, rtol=1e-10)
        np.testing.assert_allclose(other, exactly, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("restriction", ["across", "within"])
def test_a_restriction_leaves_partitions_out(restriction):
    values, share, distortion, terms = case(4, 50)
    source = np.tile([0, 1, 0, 2, 1, 1], 200)[:200].astype(np.int32)
    members = np.arange(200).reshape(50, 4)
    every = enumerate_blocks(values, share, distortion, terms, HIT_MISS, dtype=np.float64)
    conflict = conflicts(source, members, restriction)
    found = enumerate_blocks(values, share, distortion, terms, HIT_MISS, conflict, dtype=np.float64)
    labels, own = set_partitions(4), source[members]
    same_cluster = labels[:, :, None] == labels[:, None]
    same_source = own[:, :, None] == own[:, None]
    wrong = same_source & ~np.eye(4, dtype=bool) if restriction == "across" else ~same_source
    allowed = ~(same_cluster[:, None] & wrong[None]).any(axis=(2, 3))
    expected = every.partition * allowed
    np.testing.assert_allclose(found.partition, expected / expected.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.log_evidence, every.log_evidence + np.log(expected.sum(axis=0)), atol=1e-12)
    assert 0 < allowed.mean() < 1


def test_the_prior_adds_up_to_one():
    intensity, share = 1.3, np.array([0.7, 0.3])
    terms = size_terms(intensity, share, 8, np)
    assert np.isclose(np.exp(terms[2]), 0.941915, atol=1e-6)
    total = math.exp(-intensity)
    for number in range(1, 9):
        labels = set_partitions(number)
        sizes = (labels[:, :, None] == np.arange(number)).sum(axis=1)
        apart = number * math.log(intensity * share[0]) - intensity - math.lgamma(number + 1)
        total += np.exp(apart + terms[sizes].sum(axis=1)).sum()
    # Entities have one or two records: sum the further numbers of records from the compound Poisson distribution.
    weight = [math.exp(-intensity)]
    for number in range(1, 9):
        before = share[0] * weight[-1] + (2 * share[1] * weight[-2] if number > 1 else 0)
        weight.append(intensity * before / number)
    assert np.isclose(total, sum(weight), rtol=1e-12)
    assert 0.99 < total < 1


def test_probabilities_of_pairs_and_clusters_are_sums_over_partitions():
    values, share, distortion, terms = case(5, 20)
    found = enumerate_blocks(values, share, distortion, terms, HIT_MISS, dtype=np.float64)
    np.testing.assert_allclose(pair_probabilities(found.partition, 5), found.pair, atol=1e-12)
    subset = subset_probabilities(found.partition, 5)
    members = np.arange(32)[:, None] >> np.arange(5) & 1
    np.testing.assert_allclose(members.T @ subset, 1, atol=1e-12)
    first, second = pairs_within(5)
    np.testing.assert_allclose((members[:, first] * members[:, second]).T @ subset, found.pair, atol=1e-12)


def test_values_are_gathered_by_component():
    value = np.array([[0, 1, -1, 2], [1, 0, 0, -1]], np.int32)
    gathered = gather_values(value, np.array([0, 3, 5]), np.array([[0, 2], [1, 3]]))
    np.testing.assert_array_equal(gathered[:, :, 0], [[0, 4], [-1, 3]])
    np.testing.assert_array_equal(gathered[:, :, 1], [[1, 3], [2, -1]])
