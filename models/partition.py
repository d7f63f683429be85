"""Draws of partitions: the truth of models that say which records, or samples, belong together.

A cluster is named by the code of its first record, so that equal partitions are equal arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int

__all__ = ["DrawnPartitions", "Pairs", "PartitionTruth", "first_members", "pairs_together"]

# Records of all draws that are held at a time.
_MOST_ROWS = 1 << 21


class Pairs(NamedTuple):
    """Pairs of records that may belong together; all others have probability zero, or next to it.

    Parameters
    ----------
    first, second : int32, shape ``(pair,)``; codes of records, the first one lower; sorted by both.
    probability : float64, shape ``(pair,)``.
    """

    first: Int[np.ndarray, " pair"]
    second: Int[np.ndarray, " pair"]
    probability: Float[np.ndarray, " pair"]


class PartitionTruth(ABC):
    """Draws of an unobserved partition of records.

    Attributes
    ----------
    num_records, num_draws : sizes.
    records : the user's ids in code order, or ``None``.
    """

    num_records: int
    num_draws: int
    records: Any = None

    @abstractmethod
    def clusters(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw record"]:
        """Return the cluster of each record in some draws: the code of the first record in it; the same every time."""

    @abstractmethod
    def pairs(self) -> Pairs:
        """Return how probably two records are together, for those that may be."""

    @abstractmethod
    def estimate(self) -> Int[np.ndarray, " record"]:
        """Return the partition to show: the most probable one, or what comes near it."""

    def blocks(self) -> Iterator[slice]:
        """Yield all draws, few enough at a time to hold the clusters of all records in them."""
        size = max(_MOST_ROWS // max(self.num_records, 1), 1)
        for start in range(0, self.num_draws, size):
            yield slice(start, start + size)

    def num_clusters(self) -> Int[np.ndarray, " draw"]:
        """Return the number of clusters of each draw."""
        own = np.arange(self.num_records)  # the first record of a cluster bears its own code
        return np.concatenate([(self.clusters(block) == own).sum(axis=1) for block in self.blocks()])

    def size_counts(self) -> Float[np.ndarray, " size"]:
        """Return the expected number of clusters of 1, 2, … records."""
        total = np.zeros(self.num_records)
        for block in self.blocks():
            cluster = self.clusters(block)
            place = np.arange(len(cluster))[:, None] * self.num_records + cluster
            size = np.bincount(place.ravel())
            total += np.bincount(size, minlength=self.num_records + 1)[1:]
        return np.trim_zeros(total, "b") / self.num_draws


class DrawnPartitions(PartitionTruth):
    """Partitions of which draws are stored.

    Parameters
    ----------
    cluster : integers, shape ``(draw, record)``; equal where records are together.
    """

    def __init__(self, cluster: Int[np.ndarray, "draw record"]) -> None:
        self.cluster = np.stack([first_members(row) for row in cluster])
        self.num_draws, self.num_records = self.cluster.shape

    def clusters(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw record"]:
        """Return the stored clusters."""
        return self.cluster[draws]

    def pairs(self) -> Pairs:
        """Return how often each pair is together."""
        every = np.concatenate([pairs_together(row) for row in self.cluster])
        pair, number = np.unique(every, return_counts=True)
        first, second = np.divmod(pair, self.num_records)
        return Pairs(first.astype(np.int32), second.astype(np.int32), number / self.num_draws)

    def estimate(self) -> Int[np.ndarray, " record"]:
        """Return the draw that agrees best with all: the least expected number of wrongly joined or parted pairs."""
        pairs = self.pairs()
        code = pairs.first.astype(np.int64) * self.num_records + pairs.second
        # Of a draw: the pairs that it has, each as probable as it is, against all that it might have.
        gains = [np.sum(2 * pairs.probability[np.searchsorted(code, pairs_together(row))] - 1) for row in self.cluster]
        return self.cluster[int(np.argmax(gains))]


def first_members(cluster: Int[np.ndarray, " record"]) -> Int[np.ndarray, " record"]:
    """Name every cluster by the code of its first record, int32."""
    _, first, place = np.unique(cluster, return_index=True, return_inverse=True)
    return first[place].astype(np.int32)


def pairs_together(cluster: Int[np.ndarray, " record"]) -> Int[np.ndarray, " pair"]:
    """Return the pairs that are together, as ``first * number of records + second``, sorted."""
    order = np.argsort(cluster, kind="stable")
    ordered = cluster[order]
    found = []
    place = np.flatnonzero(ordered[1:] == ordered[:-1])
    lag = 1
    while len(place):
        found.append(order[place].astype(np.int64) * len(cluster) + order[place + lag])
        lag += 1
        place = place[place + lag < len(cluster)]
        place = place[ordered[place] == ordered[place + lag]]
    return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)
