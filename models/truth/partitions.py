"""Draws of partitions: the truth of models that say which records, or samples, belong together.

A cluster is named by the code of its first record, so that equal partitions are equal arrays.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.errors import UnsupportedRequest
from consilience.models.rows import equal_pairs, row_blocks
from consilience.models.truth.truth import CHAINS, CLASSES, PARTITION, Block, Clusters, Question, Truth

# Labels of clusters that are at most so many times the number of records have a table, in the place of a sort.
_MOST_PER_RECORD = 4
_NO_CLASSES = (
    "this truth is a partition, of records into entities or of items into clusters, and no item has a class; "
    "evaluate a partition (read_partition), or look at its pairs(), which says how sure each of them is"
)

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

    def of(self, first: Int[np.ndarray, " asked"], second: Int[np.ndarray, " asked"]) -> Float[np.ndarray, " asked"]:
        """Return how probably some pairs belong together, the lower code first; zero of those that are not here."""
        number = int(max(self.second.max(initial=0), second.max(initial=0))) + 1
        key, asked = self.first.astype(np.int64) * number + self.second, first.astype(np.int64) * number + second
        place = np.searchsorted(key, asked)
        found = np.append(key, -1)[place] == asked
        return np.where(found, np.append(self.probability, 0)[place], 0.0)


class MatchingSets(NamedTuple):
    """The most probable maximal matching set of every record: the set that is most probably exactly its cluster.

    Parameters
    ----------
    first : integers, shape ``(record + 1,)``; where the set of each record begins in `member`.
    member : int32; codes of records, increasing within a set, the record itself among them.
    probability : float64, shape ``(record,)``; that the set is exactly one cluster.
    """

    first: Int[np.ndarray, " records_and_one"]
    member: Int[np.ndarray, " member"]
    probability: Float[np.ndarray, " record"]


IN_DOUBT = 0.02, 0.99
"""Between these probabilities it is in doubt whether a pair is one entity."""

FEW_FOUND = 0.5
"""Of all links; an interval that holds the doubt about fewer says nothing."""


class CountedClusters(NamedTuple):
    """What is known of the number of clusters.

    Parameters
    ----------
    number : shape ``(draw,)``.
    sizes : shape ``(size,)``; expected number of clusters of 1, 2, … items.
    links_alone, basis, doubt : as in `PartitionTruth`, of these draws.
    partitions : the draws that were counted; None where they are no partitions.
    """

    number: Int[np.ndarray, " draw"]
    sizes: Float[np.ndarray, " size"]
    links_alone: bool
    basis: str
    doubt: str = ""
    partitions: PartitionTruth | None = None


class PartitionTruth(Truth):
    """Draws of an unobserved partition of records.

    Attributes
    ----------
    links_alone : whether the draws hold the doubt about links alone, because what was learned is fixed at an estimate.
    found_share : of all links, the share that the model expects among the pairs that it looks at; NaN where nobody
        knows.
    doubt : why the interval of the number of clusters is not to be trusted, in words; empty where nothing says so.
    basis : what the number of clusters rests on, in words: model, pairs that could be together; empty where that is
        said elsewhere.
    no_interval : why the number of clusters has no interval, in words; empty where it has one.
    """

    kind = PARTITION
    systems: tuple[str, ...] = (PARTITION.name,)
    links_alone: bool = False
    found_share: float = float("nan")
    doubt: str = ""
    basis: str = ""
    no_interval: str = ""

    @abstractmethod
    def clusters(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw record"]:
        """Return the cluster of each record in some draws: the code of the first record in it; the same every time."""

    @abstractmethod
    def pairs(self) -> Pairs:
        """Return how probably two records are together, for those that may be."""

    @abstractmethod
    def estimate(self) -> Int[np.ndarray, " record"]:
        """Return the partition to show: the most probable one, or what comes near it."""

    def blocks(self, question: Question) -> Iterator[Block]:
        """Yield the clusters of all records, some draws at a time."""
        if not self.answers(question):
            raise UnsupportedRequest(_NO_CLASSES)
        return (Block(slice(0, self.num_units), draws, self.clusters(draws)) for draws in self.draw_blocks())

    def answers(self, question: Question) -> bool:
        """Return whether `blocks` would answer."""
        return question == Clusters()

    def standard(self) -> PartitionTruth:
        """Return the estimate as a truth of one draw."""
        return DrawnPartitions(self.estimate()[None])

    def read_as(self, kind: str, **which: Any) -> Truth:
        """Return the partition as it is; it is nothing else."""
        if kind == PARTITION.name:
            return self
        if kind == CLASSES.name:
            raise UnsupportedRequest(_NO_CLASSES)
        if kind == CHAINS.name:
            raise UnsupportedRequest("chains need a fit of mentions; this truth is a partition of records")
        raise UnsupportedRequest("this asks for the views of experts, which only a fit of constraints has")

    def draw_blocks(self) -> Iterator[slice]:
        """Return all draws, few enough at a time to hold the clusters of all records in them."""
        blocks = row_blocks(self.num_draws, self.num_units, _MOST_ROWS)
        return (slice(draws.start, min(draws.stop, self.num_draws)) for draws in blocks)

    def num_clusters(self) -> Int[np.ndarray, " draw"]:
        """Return the number of clusters of each draw."""
        return self.clusters_by_size().sum(axis=1)

    def corrected_num_clusters(self) -> float:
        """Return the expected number of clusters with the links that were not looked at; NaN where nobody knows."""
        return float("nan")

    def counted(self) -> CountedClusters:
        """Return what is known of the number of clusters; by default that of the draws."""
        return CountedClusters(self.num_clusters(), self.size_counts(), self.links_alone, self.basis, partitions=self)

    def clusters_by_size(self) -> Int[np.ndarray, "draw size"]:
        """Return the number of clusters with 1, 2, … records of each draw; counted once."""
        return self._clusters_by_size

    @functools.cached_property
    def _clusters_by_size(self) -> Int[np.ndarray, "draw size"]:
        parts = [_numbers_by_size(self.clusters(block)) for block in self.draw_blocks()]
        largest = max(part.shape[1] for part in parts)
        return np.concatenate([np.pad(part, ((0, 0), (0, largest - part.shape[1]))) for part in parts])

    def clusters_by_source(
        self, source: Int[np.ndarray, " record"]
    ) -> tuple[Int[np.ndarray, " pattern"], Int[np.ndarray, "draw pattern"]]:
        """Return which sets of sources clusters have, and how many clusters of each draw have records in exactly these.

        Parameters
        ----------
        source : of each record, from 0; at most 62.

        Returns
        -------
        patterns : the sets with a bit for each source, increasing.
        numbers : of clusters.
        """
        parts = [_numbers_by_source(self.clusters(block), source) for block in self.draw_blocks()]
        every = np.unique(np.concatenate([patterns for patterns, _ in parts]))
        numbers = np.zeros((self.num_draws, len(every)), int)
        for block, (patterns, own) in zip(self.draw_blocks(), parts, strict=True):
            numbers[block, np.searchsorted(every, patterns)] = own
        return every, numbers

    def size_counts(self) -> Float[np.ndarray, " size"]:
        """Return the expected number of clusters of 1, 2, … records."""
        return self.clusters_by_size().mean(axis=0)

    def cluster_probability(self, cluster: Int[np.ndarray, " record"]) -> Float[np.ndarray, " record"]:
        """Return for each record how probably its cluster in a partition is exactly one cluster.

        Parameters
        ----------
        cluster : of any partition, such as an `estimate`; equal where records are together.
        """
        wanted = self._set_words(first_members(cluster)[None])
        equal = [(self._set_words(self.clusters(block)) == wanted).sum(axis=0) for block in self.draw_blocks()]
        return np.sum(equal, axis=0) / self.num_draws

    def set_probability(
        self, first: Int[np.ndarray, " sets_and_one"], member: Int[np.ndarray, " member"]
    ) -> Float[np.ndarray, " set"]:
        """Return how probably each set of records is exactly one cluster: these records, and no other.

        Parameters
        ----------
        first : where each set begins in ``member``; no set is empty.
        member : codes of records, each once in a set. Sets may overlap.
        """
        head, wanted = member[first[:-1]], np.add.reduceat(self._words[member], first[:-1])
        equal = [(self._set_words(self.clusters(block))[:, head] == wanted).sum(axis=0) for block in self.draw_blocks()]
        return np.sum(equal, axis=0) / self.num_draws

    def entropy(self) -> Float[np.ndarray, " record"]:
        """Return for each record the entropy, in nats, of the set that is its cluster: how doubtful it is."""
        record, _, number = self._sets()
        share = number / self.num_draws
        return -np.bincount(record, share * np.log(share), self.num_units)

    def matching_sets(self) -> MatchingSets:
        """Return the most probable maximal matching set of every record."""
        draw, number = self._best_draws()
        order = np.argsort(draw, kind="stable")  # records, by the draw in which their set is
        parts, lengths = [], np.ones(self.num_units, int)
        for block in self.draw_blocks():
            own = order[(draw[order] >= block.start) & (draw[order] < block.stop)]
            sets, size = _members(self.clusters(block), draw[own] - block.start, own)
            lengths[own] = size
            parts.append(sets)
        first = np.concatenate([[0], np.cumsum(lengths)])
        member = np.empty(first[-1], np.int32)
        member[_ranges(first[:-1][order], lengths[order])] = np.concatenate(parts)
        return MatchingSets(first, member, number / self.num_draws)

    def shared_matching_sets(self) -> Int[np.ndarray, " record"]:
        """Return the partition that links two records if and only if they have the same most probable matching set."""
        draw, _ = self._best_draws()
        word = np.zeros(self.num_units, np.uint64)
        for block in self.draw_blocks():
            own = np.flatnonzero((draw >= block.start) & (draw < block.stop))
            word[own] = self._set_words(self.clusters(block))[draw[own] - block.start, own]
        return first_members(word.view(np.int64))

    @functools.cached_property
    def _words(self) -> np.ndarray:
        """A random word of 64 bits for each record; a set of records has their sum."""
        return np.random.default_rng(0).integers(0, 2**64, self.num_units, np.uint64)

    def _set_words(self, cluster: Int[np.ndarray, "draw record"]) -> np.ndarray:
        """Return a number for the set that is each record's cluster: the sum, modulo 2^64, of the words of it."""
        total = np.zeros(cluster.shape, np.uint64)
        draw = np.broadcast_to(np.arange(len(cluster))[:, None], cluster.shape)
        np.add.at(total, (draw, cluster), np.broadcast_to(self._words, cluster.shape))
        return np.take_along_axis(total, cluster, axis=1)

    def _sets(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sets that are a record's cluster in some draw: the record, the first such draw, how many draws."""
        words = np.concatenate([self._set_words(self.clusters(block)) for block in self.draw_blocks()])
        order = np.argsort(words, axis=0, kind="stable")
        words = np.take_along_axis(words, order, axis=0)
        starts = np.ones(words.shape, bool)
        starts[1:] = words[1:] != words[:-1]
        record = np.repeat(np.arange(self.num_units), starts.sum(axis=0))
        return record, order.T[starts.T], np.bincount(np.cumsum(starts.T.ravel()) - 1)

    def _best_draws(self) -> tuple[Int[np.ndarray, " record"], Int[np.ndarray, " record"]]:
        """Return of each record the first draw that has its most frequent set, and how many draws have it."""
        record, draw, number = self._sets()
        order = np.lexsort((draw, -number, record))
        best = order[np.searchsorted(record, np.arange(self.num_units))]
        return draw[best], number[best]


class DrawnPartitions(PartitionTruth):
    """Partitions of which draws are stored.

    Parameters
    ----------
    cluster : integers, shape ``(draw, record)``; equal where records are together.
    """

    def __init__(self, cluster: Int[np.ndarray, "draw record"]) -> None:
        self.num_draws, self.num_units = cluster.shape
        if all(_named_by_first(cluster[block]) for block in self.draw_blocks()):
            self.cluster = cluster.astype(np.int32, copy=False)
            return
        start = self.num_units * np.arange(self.num_draws)[:, None]
        _, label = np.unique(cluster, return_inverse=True)
        apart = label.reshape(cluster.shape) + start * (int(label.max(initial=0)) + 1)
        self.cluster = (first_members(apart.ravel()).reshape(cluster.shape) - start).astype(np.int32)

    def clusters(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw record"]:
        """Return the stored clusters."""
        return self.cluster[draws]

    def pairs(self) -> Pairs:
        """Return how often each pair is together."""
        pair, number = np.unique(self._together()[1], return_counts=True)
        first, second = np.divmod(pair, self.num_units)
        return Pairs(first.astype(np.int32), second.astype(np.int32), number / self.num_draws)

    def estimate(self) -> Int[np.ndarray, " record"]:
        """Return the draw that agrees best with all: the least expected number of wrongly joined or parted pairs."""
        draw, pair = self._together()
        _, place, number = np.unique(pair, return_inverse=True, return_counts=True)
        # Of a draw: the pairs that it has, each as probable as it is, against all that it might have.
        gain = np.bincount(draw, 2 * number[place] / self.num_draws - 1, self.num_draws)
        return self.cluster[int(np.argmax(gain))]

    def _together(self) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
        """Return the pairs of all draws that are together: the draw, and ``first * number of records + second``."""
        size = self.num_units
        start = size * np.arange(self.num_draws)[:, None]
        one, other = np.divmod(pairs_together((self.cluster + start).ravel()), self.cluster.size)
        return one // size, (one % size) * size + other % size


def first_members(cluster: Int[np.ndarray, " record"]) -> Int[np.ndarray, " record"]:
    """Name every cluster by the code of its first record, int32."""
    number = len(cluster)
    if number and cluster.min() >= 0 and cluster.max() < _MOST_PER_RECORD * number:
        of_label = np.empty(int(cluster.max()) + 1, np.int32)
        of_label[cluster[::-1]] = np.arange(number - 1, -1, -1, dtype=np.int32)  # the last one that is written stays
        return of_label[cluster]
    _, first, place = np.unique(cluster, return_index=True, return_inverse=True)
    return first[place].astype(np.int32)


def first_in_rows(code: Int[np.ndarray, "row member"], number: int) -> Int[np.ndarray, "row member"]:
    """Name each group by its first member, so that equal partitions of a row are equal arrays; int32.

    Parameters
    ----------
    code : equal in a row where members are together, below ``number``.
    number : of codes.
    """
    code = code.astype(np.intp)
    return np.take_along_axis(first_of_codes(code, number), code, axis=1).astype(np.int32)


def first_of_codes(code: Int[np.ndarray, "row member"], number: int) -> Int[np.ndarray, "row code"]:
    """Return the first member with each code, and how many members there are for codes without any."""
    found = np.full((len(code), number), code.shape[1])
    member = np.broadcast_to(np.arange(code.shape[1]), code.shape)
    np.minimum.at(found, (np.arange(len(code))[:, None], code), member)
    return found


def _named_by_first(cluster: Int[np.ndarray, "draw record"]) -> bool:
    """Return whether every cluster is named by the code of its first record already: a sort of all draws is slow."""
    if (cluster < 0).any() or (cluster > np.arange(cluster.shape[1])).any():
        return False
    return bool((np.take_along_axis(cluster, cluster, axis=1) == cluster).all())


def _numbers_by_size(cluster: Int[np.ndarray, "draw record"]) -> Int[np.ndarray, "draw size"]:
    """Count the clusters with one record, two, … of each draw."""
    num_draws, num_records = cluster.shape
    draw = np.arange(num_draws)[:, None]
    size = np.bincount((draw * num_records + cluster).ravel(), minlength=cluster.size).reshape(cluster.shape)
    width = int(size.max(initial=0)) + 1
    numbers = np.bincount((draw * width + size).ravel(), minlength=num_draws * width).reshape(num_draws, width)
    return numbers[:, 1:]


def _numbers_by_source(
    cluster: Int[np.ndarray, "draw record"], source: Int[np.ndarray, " record"]
) -> tuple[Int[np.ndarray, " pattern"], Int[np.ndarray, "draw pattern"]]:
    """Count the clusters of each draw by the sources that their records are of, as a number with a bit for each."""
    num_draws, num_records = cluster.shape
    place = np.arange(num_draws)[:, None] * num_records + cluster
    pattern = np.zeros(cluster.size, np.int64)
    for code in np.unique(source):
        there = np.bincount(place[:, source == code].ravel(), minlength=cluster.size) > 0
        pattern |= there.astype(np.int64) << code
    # Zero is for codes that are no cluster.
    patterns, which = np.unique(np.append(pattern, 0), return_inverse=True)
    draw = np.repeat(np.arange(num_draws), num_records)
    width = len(patterns)
    numbers = np.bincount(draw * width + which[:-1], minlength=num_draws * width).reshape(num_draws, width)
    return patterns[1:], numbers[:, 1:]


def pairs_together(cluster: Int[np.ndarray, " record"]) -> Int[np.ndarray, " pair"]:
    """Return the pairs that are together, as ``first * number of records + second``, sorted."""
    order = np.argsort(cluster, kind="stable")
    pairs = equal_pairs(cluster[order])
    found = [order[one].astype(np.int64) * len(cluster) + order[other] for one, other in pairs]
    return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _members(
    cluster: Int[np.ndarray, "draw record"], draw: Int[np.ndarray, " wanted"], record: Int[np.ndarray, " wanted"]
) -> tuple[Int[np.ndarray, " member"], Int[np.ndarray, " wanted"]]:
    """Return the members of the cluster of each wanted record in the wanted draw, one set after another; and sizes."""
    num_records = cluster.shape[1]
    place = (cluster + num_records * np.arange(len(cluster))[:, None]).ravel()
    order = np.argsort(place, kind="stable")
    size = np.bincount(place, minlength=cluster.size)
    start = np.cumsum(size) - size
    wanted = place[draw * num_records + record]
    return order[_ranges(start[wanted], size[wanted])] % num_records, size[wanted]


def _ranges(start: Int[np.ndarray, " range"], length: Int[np.ndarray, " range"]) -> Int[np.ndarray, " place"]:
    """Return the numbers of ranges, one range after another."""
    before = np.cumsum(length) - length
    return np.arange(int(length.sum())) + np.repeat(start - before, length)
