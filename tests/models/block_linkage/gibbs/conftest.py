"""Small linkage problems whose partitions can all be gone through."""

import functools
import types
from typing import NamedTuple

import numba
import numpy as np
import pytest

from consilience.models.block_linkage.enumeration import set_partitions
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State
from tests.models.records import probability_of_classes


class Small(NamedTuple):
    """A problem, hyperparameters to hold fixed, all its partitions and how probable each is."""

    problem: LinkProblem
    state: State
    partition: np.ndarray
    probability: np.ndarray


@pytest.fixture
def small_problem():
    """Return a function that makes a problem of a few records on a given graph; with shares, of error classes."""

    def make(edges, value, *, share, distortion, intensity, size_share, source=None, class_share=None):
        value = np.asarray(value)
        number = len(value)
        source = np.arange(number) if source is None else np.asarray(source)
        field = np.repeat(np.arange(len(share)), [len(own) for own in share])
        pairs = np.array([*edges, *(edge[::-1] for edge in edges)]).reshape(-1, 2)
        pairs = pairs[np.lexsort(pairs.T[::-1])]
        first = np.searchsorted(pairs[:, 0], np.arange(number + 1))
        codes = np.where(value >= 0, value + np.searchsorted(field, np.arange(len(share))), -1)
        share, distortion, size_share = np.concatenate(share), np.asarray(distortion), np.asarray(size_share)
        partition = set_partitions(number)
        if class_share is None:
            likelihood = functools.partial(_hit_miss, field=field, share=share, distortion=distortion)
        else:
            likelihood = functools.partial(
                probability_of_classes, field=field, share=share, distortion=distortion, class_share=class_share
            )
        weight = [
            _weight(labels, edges, codes, likelihood, intensity, size_share, source) for labels in partition
        ]
        partition = np.stack([_named(labels) for labels in partition])
        state = State(
            np.arange(number, dtype=np.int32), share, distortion, np.asarray(intensity), size_share,
            None if class_share is None else np.asarray(class_share),
        )  # fmt: skip
        problem = LinkProblem(
            value=codes.astype(np.int32), field=field.astype(np.int32), source=source.astype(np.int32),
            first_neighbour=first.astype(np.int32), neighbour=pairs[:, 1].astype(np.int32),
            value_concentration=np.asarray(0.3), distortion=np.tile([1.0, 9.0], (len(distortion), 1)),
            intensity=np.array([1.0, 0.1]), size_share=np.ones(len(size_share)),
            class_share=None if class_share is None else np.ones(len(class_share)),
        )  # fmt: skip
        return Small(problem, state, partition, np.array(weight) / np.sum(weight))

    return make


def _named(labels):
    """Name clusters by their first record."""
    return (labels[:, None] == labels[None]).argmax(axis=1).astype(np.int32)


def _weight(labels, edges, codes, likelihood, intensity, size_share, source):
    """Return the probability of a partition and its records, up to a constant, from the definition of the model."""
    weight = 1.0
    for label in range(labels.max() + 1):
        own = np.flatnonzero(labels == label)
        if len(own) > len(size_share) or len(np.unique(source[own])) < len(own) or not _is_connected(own, edges):
            return 0.0
        weight *= intensity * np.prod(np.arange(1, len(own) + 1)) * size_share[len(own) - 1] * likelihood(codes[own])
    return weight


def _hit_miss(codes, *, field, share, distortion):
    """Return the probability of the records of an entity: the sum over its true values."""
    whole = 1.0
    for column, rate in enumerate(distortion):
        values = np.flatnonzero(field == column)
        shown = codes[:, column][codes[:, column] >= 0]
        copies = (1 - rate) * (values[:, None] == shown) + rate * share[shown]
        whole *= share[values] @ np.prod(copies, axis=1)
    return whole


def _is_connected(own, edges):
    reached = {own[0]}
    for _ in own:
        reached |= {b for edge in edges for a, b in (edge, edge[::-1]) if a in reached and b in own}
    return len(reached) == len(own)


@pytest.fixture
def assert_leaves_invariant():
    """Return a function that asserts that links drawn from exact partitions have the same distribution afterwards.

    The total variation between the two is measured in units of its own Monte Carlo error. Chains may also start with
    all records alone, which shows that they reach all partitions.
    """

    def check(sweep, small, *, num_chains=20_000, sweeps=6, seed=0, alone=False):
        generator = np.random.default_rng(seed)
        begun = small.partition[generator.choice(len(small.partition), num_chains, p=small.probability)]
        if alone:
            begun = np.tile(small.state.cluster, (num_chains, 1))

        state, graph = small.state, small.problem
        shares = (
            state.value_share, state.distortion, float(state.intensity), state.size_share, state.class_share
        )  # fmt: skip
        given = (*shares, graph.value, graph.field, graph.source, graph.first_neighbour, graph.neighbour)
        uniform, ended = generator.random((num_chains, sweeps, begun.shape[1])), begun.copy()
        chains = _chains if isinstance(sweep, types.FunctionType) else numba.njit(_chains)
        chains(sweep, uniform, ended, given)
        code = {tuple(labels): number for number, labels in enumerate(small.partition.tolist())}
        counts = np.bincount([code[tuple(labels)] for labels in ended.tolist()], minlength=len(small.partition))
        chance = generator.multinomial(num_chains, small.probability, size=500)
        by_chance = np.abs(chance / num_chains - small.probability).sum(axis=1) / 2
        found = np.abs(counts / num_chains - small.probability).sum() / 2
        assert found < by_chance.mean() + 5 * by_chance.std()
        assert not counts[small.probability == 0].any()
        # It also moves: most end elsewhere than where they began.
        assert (ended != begun).any(axis=1).mean() > 0.3

    return check


def _chains(sweep, uniform, cluster, given):
    """Sweep chains one after another; in machine code where the sweep is."""
    for chain in range(len(cluster)):
        for step in range(uniform.shape[1]):
            cluster[chain] = sweep(uniform[chain, step], cluster[chain], *given)
