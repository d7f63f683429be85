"""Partitions of independent components: draws, exact moments, and the sets most probably right."""

import importlib

import jax
import numpy as np
import pytest

from consilience.models.block_linkage.enumeration import set_partitions
from consilience.models.block_linkage.linkage import Group, Linkage, flatten
from consilience.models.block_linkage.truth import BlockPartition
from consilience.models.truth.partitions import DrawnPartitions, PartitionTruth

NUM_RECORDS = 12
MODULE = importlib.import_module("consilience.models.block_linkage.truth")
MEMBERS = [np.array([[1, 4], [0, 7]]), np.array([[2, 5, 9]]), np.array([[3, 6, 8, 10]])]


def partition_of(probabilities, num_draws=4_000, members=MEMBERS, num_records=NUM_RECORDS):
    groups = [
        Group(of_group.astype(np.int32), own.astype(np.float32))
        for of_group, own in zip(members, probabilities, strict=True)
    ]
    rest = dict.fromkeys(Linkage._fields, np.array(0.0)) | {"differing": np.zeros((2, 2))}
    rest = {name: value for name, value in rest.items() if name not in Linkage._field_defaults}
    posterior = Linkage(**rest | {"num_records": np.array(num_records)} | flatten(groups))
    return BlockPartition(posterior, key=jax.random.key(3), num_draws=num_draws)


@pytest.fixture
def truth():
    generator = np.random.default_rng(0)
    probabilities = [generator.dirichlet(np.ones(n), m) for n, m in ((2, 2), (5, 1), (15, 1))]
    return partition_of(probabilities)


def every_partition(truth):
    """Return all partitions of the records as labels, and their probabilities."""
    labels, probability = np.arange(NUM_RECORDS)[None], np.ones(1)
    for group in truth.posterior.groups():
        for members, own in zip(group.members, group.partition.astype(float), strict=True):
            new = np.repeat(labels, len(own), axis=0)
            new[:, members] = np.tile(100 * members[0] + 100 + set_partitions(len(members)), (len(labels), 1))
            labels, probability = new, np.outer(probability, own / own.sum()).ravel()
    return labels, probability


def same(labels):
    return labels[..., :, None] == labels[..., None, :]


def test_draws_have_the_probabilities_of_pairs(truth):
    labels, probability = every_partition(truth)
    exact = np.einsum("p,pij->ij", probability, same(labels))
    drawn = same(truth.clusters()).mean(axis=0)
    error = np.sqrt(np.maximum(exact * (1 - exact), 0) / truth.num_draws)
    assert (np.abs(drawn - exact) <= 5 * error + 1e-12).all()
    pairs = truth.pairs()
    np.testing.assert_allclose(pairs.probability, exact[pairs.first, pairs.second], rtol=1e-5)
    assert np.isclose(np.triu(exact, 1).sum(), pairs.probability.sum())
    assert (np.diff(pairs.first * NUM_RECORDS + pairs.second) > 0).all()


def test_draws_of_whole_partitions(truth):
    labels, probability = every_partition(truth)
    first = (same(labels)).argmax(axis=2)
    names, number = np.unique(truth.clusters(), axis=0, return_counts=True)
    exact = {tuple(row): chance for row, chance in zip(first, probability, strict=True)}
    for row, count in zip(names, number, strict=True):
        chance = exact[tuple(row)]
        assert abs(count / truth.num_draws - chance) < 5 * np.sqrt(chance * (1 - chance) / truth.num_draws) + 1e-3


def test_draws_are_the_same_at_every_pass(truth):
    every = truth.clusters()
    assert every.shape == (truth.num_draws, NUM_RECORDS)
    np.testing.assert_array_equal(truth.clusters(slice(7, 900, 3)), every[7:900:3])
    number = [len(np.unique(row)) for row in every]
    np.testing.assert_array_equal(truth.num_clusters(), number)


def large_components(num_draws=300):
    """Components of two to seven records, the last with hundreds of partitions."""
    generator, sizes = np.random.default_rng(2), range(2, 8)
    probabilities = [generator.dirichlet(np.full(len(set_partitions(size)), 0.2), 3) for size in sizes]
    ends = np.cumsum([3, *(3 * size for size in sizes)])
    members = [first + np.arange(3 * size).reshape(3, size) for first, size in zip(ends, sizes, strict=False)]
    return partition_of(probabilities, num_draws, members, int(ends[-1]) + 2)


def test_counts_are_those_of_the_drawn_clusters(monkeypatch):
    """By size and by source, of components of all sizes, whatever the size of the blocks of draws."""
    monkeypatch.setattr(MODULE, "_BLOCK", 100)
    truth = large_components()
    drawn = DrawnPartitions(truth.clusters())
    by_size, expected = truth.clusters_by_size(), drawn.clusters_by_size()
    np.testing.assert_array_equal(by_size[:, : expected.shape[1]], expected)
    assert not by_size[:, expected.shape[1] :].any()
    np.testing.assert_array_equal(truth.num_clusters(), drawn.num_clusters())
    for num_sources in (1, 2, 5):
        source = np.sort(np.random.default_rng(num_sources).integers(0, num_sources, truth.num_units))
        (found, numbers), (patterns, expected) = (one.clusters_by_source(source) for one in (truth, drawn))
        seen = numbers.any(axis=0)
        np.testing.assert_array_equal(found[seen], patterns)
        np.testing.assert_array_equal(numbers[:, seen], expected)


def test_many_ends_are_searched_as_few_are_compared(monkeypatch):
    searched = large_components().clusters()
    for most in (0, 10_000):
        monkeypatch.setattr(MODULE, "_MOST_COMPARED", most)
        np.testing.assert_array_equal(large_components().clusters(), searched)


def test_moments_of_the_number_of_clusters(truth):
    labels, probability = every_partition(truth)
    number = np.array([len(np.unique(row)) for row in labels])
    mean, variance = truth.num_clusters_moments()
    assert np.isclose(mean, probability @ number)
    assert np.isclose(variance, probability @ number**2 - (probability @ number) ** 2)
    sizes = np.array([np.bincount(np.unique(row, return_counts=True)[1], minlength=5)[1:] for row in labels])
    np.testing.assert_allclose(truth.size_counts(), probability @ sizes)
    drawn = truth.num_clusters()
    assert abs(drawn.mean() - mean) < 5 * np.sqrt(variance / truth.num_draws)


def test_the_estimate_is_the_most_probable_partition(truth):
    labels, probability = every_partition(truth)
    np.testing.assert_array_equal(truth.estimate(), same(labels[probability.argmax()]).argmax(axis=1))


def test_how_probably_a_set_is_exactly_a_cluster(truth):
    labels, probability = every_partition(truth)
    for cluster in (truth.estimate(), np.arange(NUM_RECORDS), np.zeros(NUM_RECORDS, int), np.arange(NUM_RECORDS) // 2):
        exactly = (same(labels) == same(cluster)).all(axis=2)
        np.testing.assert_allclose(truth.cluster_probability(cluster), probability @ exactly, atol=1e-6)


def test_the_probability_of_any_set(truth):
    """Within a component, of several components, alone, and of a record that is in none."""
    labels, probability = every_partition(truth)
    sets = [[1, 4], [4, 1], [1], [7, 0], [2, 9], [9, 5, 2], [3, 6, 8], [10], [1, 0], [11], [11, 1], [3, 6, 8, 10, 11]]
    exactly = [probability @ (same(labels)[:, own[0]] == np.isin(range(12), own)).all(axis=1) for own in sets]
    found = truth.set_probability(np.cumsum([0, *map(len, sets)]), np.concatenate(sets))
    np.testing.assert_allclose(found, exactly, atol=1e-6)
    assert found[8] == found[10] == found[11] == 0
    assert found[9] == 1
    drawn = PartitionTruth.set_probability(truth, np.cumsum([0, *map(len, sets)]), np.concatenate(sets))
    error = np.sqrt(found * (1 - found) / truth.num_draws)
    assert (np.abs(drawn - found) <= 5 * error + 1e-12).all()


def test_matching_sets_of_draws_are_as_probable(truth):
    """By counting, the set that is found may be another one where two are about as probable."""
    exact, drawn = truth.matching_sets().probability, PartitionTruth.matching_sets(truth).probability
    error = np.sqrt(exact * (1 - exact) / truth.num_draws)
    assert (np.abs(drawn - exact) <= 5 * error + 1e-12).all()


def test_most_probable_matching_sets(truth):
    labels, probability = every_partition(truth)
    found = truth.matching_sets()
    rows = same(labels)
    chosen = np.zeros((NUM_RECORDS, NUM_RECORDS), bool)
    entropy = np.zeros(NUM_RECORDS)
    for record in range(NUM_RECORDS):
        own, place = np.unique(rows[:, record], axis=0, return_inverse=True)
        chance = np.bincount(place.ravel(), probability)
        chosen[record] = own[chance.argmax()]
        entropy[record] = -(chance * np.log(chance)).sum()
        member = found.member[found.first[record] : found.first[record + 1]]
        np.testing.assert_array_equal(member, np.flatnonzero(chosen[record]))
        assert np.isclose(found.probability[record], chance.max(), atol=1e-6)
    equal = (chosen[:, None] == chosen[None]).all(axis=2)
    np.testing.assert_array_equal(truth.shared_matching_sets(), equal.argmax(axis=1))
    np.testing.assert_allclose(truth.entropy(), entropy, atol=1e-5)


def test_certain_partitions_are_always_drawn():
    certain = [np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(5)[[2]], np.eye(15)[[0]]]
    truth = partition_of(certain, num_draws=50)
    assert (truth.clusters() == truth.estimate()).all()
    assert truth.num_clusters_moments() == (7.0, 0.0)
    assert (truth.entropy() == 0).all()


def test_the_corrected_number_of_clusters(simulate, fit_em):
    records = simulate(5_000, distortion=0.08)
    posterior = fit_em(records)
    truth = BlockPartition(posterior, key=jax.random.key(0), num_draws=10)
    mean, variance = truth.num_clusters_moments()
    corrected = truth.corrected_num_clusters()
    number = len(np.unique(records.entity))
    assert abs(corrected - number) < abs(mean - number)
    assert corrected < mean
    assert variance > 0
    assert np.isnan(BlockPartition(posterior._replace(completed=np.array(False)), key=jax.random.key(0),
                                   num_draws=10).corrected_num_clusters())  # fmt: skip


def test_nothing_linked():
    posterior = partition_of([np.full((2, 2), 0.5), np.full((1, 5), 0.2), np.full((1, 15), 1 / 15)]).posterior
    alone = posterior._replace(**flatten([]))
    truth = BlockPartition(alone, key=jax.random.key(0), num_draws=3)
    assert (truth.clusters() == np.arange(NUM_RECORDS)).all()
    assert len(truth.pairs().first) == 0
    assert truth.num_clusters_moments() == (12.0, 0.0)
    assert truth.num_clusters().tolist() == [12, 12, 12]
    np.testing.assert_array_equal(truth.shared_matching_sets(), np.arange(NUM_RECORDS))
    np.testing.assert_array_equal(truth.size_counts(), [12])


def test_blocks_of_draws_do_not_change_the_draws(truth, monkeypatch):
    every, number = truth.clusters(), truth.num_clusters()
    monkeypatch.setattr(MODULE, "_BLOCK", 40)
    again = partition_of([group.partition for group in truth.posterior.groups()])
    np.testing.assert_array_equal(again.clusters(slice(100, 300, 7)), every[100:300:7])
    np.testing.assert_array_equal(again.num_clusters(), number)
    assert again.clusters(slice(5, 5)).shape == (0, NUM_RECORDS)
