r"""Partitions of several systems scored on the same draws, and on the same random groups of records.

Records are not independent items: a pair has two, and a score counts whole clusters. What is independent are groups of
records that nothing links, neither a draw of the truth nor a system: the connected components of all of these together.
Scores are made of sums over clusters, and no cluster reaches from one group into another. The Bayesian bootstrap (Rubin
1981) therefore gives group g a weight :math:`w_g`, exponential and divided by the mean over groups, with which its
records, pairs and clusters count: another data set of the same kind would have other groups. The fewer groups there
are, the less these weights say: a system that joins most records makes one group of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from consilience.arrays import Float, Int
from consilience.errors import UnsupportedRequest
from consilience.evaluation.partitions import Sums, contingency, group_sums, score, value_of
from consilience.models.partition import PartitionTruth

__all__ = ["SystemScores", "connected_groups", "system_scores"]

# Weights that are held at a time.
_MOST_WEIGHTS = 1 << 21


class SystemScores(NamedTuple):
    """Scores of systems under an uncertain partition; draws in which a score is undefined are left out of all.

    Parameters
    ----------
    truth, groups, both : shape ``(system, draw)``; scores with only the truth uncertain, only the groups, and both.
    points : shape ``(system,)``; scores against the estimate.
    num_groups : how many groups of records there are.
    """

    truth: Float[np.ndarray, "system draw"]
    groups: Float[np.ndarray, "system replicate"]
    both: Float[np.ndarray, "system replicate"]
    points: Float[np.ndarray, " system"]
    num_groups: int


def system_scores(
    truth: PartitionTruth, systems: Int[np.ndarray, "system record"], metric: str, *, seed: int, replicates: int
) -> SystemScores:
    """Score systems by draws of the truth, by random weights of groups, and by both.

    Parameters
    ----------
    truth : draws of a partition.
    systems : numbers that are equal where records are together; -1 for records that are not compared, in all systems.
    metric : one of `consilience.evaluation.partitions.METRIC_FORMS`.
    seed : of the weights.
    replicates : how many weights to draw for a truth of one draw; else as many as draws.

    Raises
    ------
    UnsupportedRequest : the score of a system is undefined in all draws.
    """
    group, num_groups = connected_groups(truth, systems)
    scores = np.zeros((len(systems), truth.num_draws))
    both = np.zeros_like(scores)
    sums = np.zeros((len(systems), len(Sums._fields), num_groups))
    generator = np.random.default_rng(seed)
    for block in truth.blocks():
        cluster = truth.clusters(block)
        weight = _weights(generator, len(cluster), num_groups)[:, group]
        for place, system in enumerate(systems):
            found = contingency(system[None], cluster)
            scores[place, block] = score(found, metric)
            both[place, block] = score(found, metric, weight)
            sums[place] += group_sums(found, metric, group, num_groups) / truth.num_draws
    # Ratios are not linear: where the groups alone are uncertain, it is their sums that are averaged over draws.
    number = truth.num_draws if truth.num_draws > 1 else replicates
    weighted = np.concatenate([sums @ weight.T for weight in _blocks_of_weights(seed, number, num_groups)], axis=-1)
    groups = np.stack([value_of(metric, Sums(*own)) for own in weighted])
    estimate = truth.estimate()[None]
    points = np.array([score(contingency(system[None], estimate), metric).item() for system in systems])
    defined = np.isfinite(scores).all(axis=0)
    if not defined.any():
        raise UnsupportedRequest(f"{metric} is undefined for one of the systems in every draw; choose another metric")
    both = both[:, defined] if truth.num_draws > 1 else groups
    return SystemScores(scores[:, defined], groups, both, points, num_groups)


def connected_groups(
    truth: PartitionTruth, systems: Int[np.ndarray, "system record"]
) -> tuple[Int[np.ndarray, " record"], int]:
    """Return the group of each record and how many groups there are; records that are not compared count in none."""
    size = truth.num_records
    record = np.arange(size)
    edges = [_edges(record, first) for block in truth.blocks() for first in [truth.clusters(block)]]
    for system in systems:
        _, first, label = np.unique(system, return_index=True, return_inverse=True)
        edges.append(_edges(record, np.where(system >= 0, first[label], record)[None]))
    one, other = np.divmod(np.unique(np.concatenate(edges)), size)
    graph = sparse.coo_array((np.ones(len(one), np.int8), (one, other)), shape=(size, size))
    component = sparse.csgraph.connected_components(graph, directed=False)[1]
    compared = (systems >= 0).all(axis=0)
    names = np.unique(component[compared])
    # Any group will do for records that are not compared: nothing of them is counted.
    return np.where(compared, np.searchsorted(names, component), 0), len(names)


def _edges(record: Int[np.ndarray, " record"], first: Int[np.ndarray, "draw record"]) -> Int[np.ndarray, " edge"]:
    """Return which records are linked with the first one of their cluster in some draw, as one number each."""
    linked = first != record
    return np.unique((record * len(record) + first)[linked])


def _weights(generator: np.random.Generator, number: int, num_groups: int) -> Float[np.ndarray, "replicate group"]:
    weight = generator.standard_exponential((number, num_groups))
    return weight / weight.mean(axis=1, keepdims=True)


def _blocks_of_weights(seed: int, number: int, num_groups: int) -> Iterator[Float[np.ndarray, "replicate group"]]:
    """Yield the weights of a seed, the same whatever the size of the blocks."""
    generator = np.random.default_rng(seed)
    rows = max(_MOST_WEIGHTS // num_groups, 1)
    return (_weights(generator, min(rows, number - start), num_groups) for start in range(0, number, rows))
