"""Components: the groups of records that candidate pairs connect, small enough to go through all their partitions.

Where a group is too large, the threshold is raised inside it, by half a unit of log odds at a time, until it falls
apart. A maximum spanning forest has the same components as all pairs at every threshold, and far fewer pairs. What the
cut costs is counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.special import expit

from consilience.arrays import Float, Int
from consilience.models.block_linkage.join import CandidatePairs

_STEPS = 2                  # steps of the threshold per unit of log odds


class Cut(NamedTuple):
    """What was cut from components that were too large.

    Parameters
    ----------
    components : how many were too large.
    records : how many records were in them.
    largest : records in the largest of all components, before the cut.
    pairs : how many candidate pairs were dropped: their records are in different components now.
    weight : how many links these were worth, each pair taken for itself.
    """

    components: int
    records: int
    largest: int
    pairs: int
    weight: float


class Components(NamedTuple):
    """Groups of records that may describe one entity; every other record is alone.

    Parameters
    ----------
    members : int32; ``members[k]``, of shape ``(component, k + 2)``, holds those of k + 2 records, each in increasing
        order, sorted by the first.
    cut : what was cut.
    """

    members: tuple[Int[np.ndarray, "component member"], ...]
    cut: Cut


def components(pairs: CandidatePairs, num_records: int, *, largest: int) -> Components:
    """Return the groups of 2 to ``largest`` records that candidate pairs connect.

    Parameters
    ----------
    largest : groups of more records are cut: their weakest pairs are dropped until they fall apart. A group held by
        equally strong pairs, as identical records are, is cut into pieces of this size instead.
    """
    record, first, second = _compact(pairs.first, pairs.second, num_records)
    part = _connected(first, second, len(record))
    size = np.bincount(part)
    too_large = size > largest
    group = _first_of_group(part, len(record))
    inside = np.flatnonzero(too_large[part[first]])
    first, second, log_odds = first[inside], second[inside], pairs.log_odds[inside]
    _cut(group, first, second, np.floor(_STEPS * log_odds), largest)
    dropped = group[first] != group[second]
    cut = Cut(
        components=int(too_large.sum()),
        records=int(size[too_large].sum()),
        largest=int(size.max(initial=min(num_records, 1))),
        pairs=int(dropped.sum()),
        weight=float(expit(log_odds[dropped]).sum()),
    )
    return Components(_members(group, record, largest), cut)


def _compact(
    first: Int[np.ndarray, " pair"], second: Int[np.ndarray, " pair"], num_records: int
) -> tuple[Int[np.ndarray, " record"], Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the records that have pairs, in order, and the pairs as places among them."""
    linked = np.zeros(num_records, bool)
    linked[first] = True
    linked[second] = True
    place = np.cumsum(linked, dtype=np.int32) - 1
    return np.flatnonzero(linked).astype(np.int32), place[first], place[second]


def _connected(
    first: Int[np.ndarray, " pair"], second: Int[np.ndarray, " pair"], num_records: int
) -> Int[np.ndarray, " record"]:
    """Return the number of the connected part of each record."""
    graph = coo_array((np.ones(len(first), np.int8), (first, second)), shape=(num_records, num_records))
    return connected_components(graph, directed=False)[1]


def _first_of_group(part: Int[np.ndarray, " record"], largest: int) -> Int[np.ndarray, " record"]:
    """Cut parts into groups of at most ``largest`` consecutive records; return the first record of each one's group."""
    record, begin, size = _runs(part)
    rank = np.arange(len(part)) - np.repeat(begin, size)
    group = np.empty(len(part), np.int32)
    group[record] = record[np.arange(len(part)) - rank % largest]
    return group


def _runs(
    label: Int[np.ndarray, " record"],
) -> tuple[Int[np.ndarray, " record"], Int[np.ndarray, " label"], Int[np.ndarray, " label"]]:
    """Return the records ordered by label, then by number; and where the run of each label begins, and its length."""
    # The rows of a sparse matrix are such runs, and making it takes less time than a sort.
    place = np.arange(len(label), dtype=np.int32)
    shape = (int(label.max(initial=-1)) + 1, len(label))
    matrix = coo_array((np.ones(len(label), np.int8), (label, place)), shape=shape).tocsr()
    size = np.diff(matrix.indptr)
    return matrix.indices, matrix.indptr[:-1][size > 0], size[size > 0]


def _cut(
    group: Int[np.ndarray, " record"],
    first: Int[np.ndarray, " pair"],
    second: Int[np.ndarray, " pair"],
    step: Float[np.ndarray, " pair"],
    largest: int,
) -> None:
    """Write the groups of records in parts that are too large into ``group``, given all pairs inside these parts."""
    first, second, step = _spanning_forest(first, second, step, len(group))
    alone, _, _ = _compact(first, second, len(group))
    group[alone] = alone
    while len(first):
        record, start, end = _compact(first, second, len(group))
        part = _connected(start, end, len(record))
        weakest, strongest = np.full((2, len(record)), np.inf)
        np.minimum.at(weakest, part[start], step)
        np.minimum.at(strongest, part[start], -step)
        settled = (np.bincount(part, minlength=len(record)) <= largest) | (weakest == -strongest)
        there = settled[part]
        group[record[there]] = record[there][_first_of_group(part[there], largest)]
        stays = ~settled[part[start]] & (step > weakest[part[start]])
        first, second, step = first[stays], second[stays], step[stays]


def _spanning_forest(
    first: Int[np.ndarray, " pair"],
    second: Int[np.ndarray, " pair"],
    step: Float[np.ndarray, " pair"],
    num_records: int,
) -> tuple[Int[np.ndarray, " edge"], Int[np.ndarray, " edge"], Float[np.ndarray, " edge"]]:
    """Return the pairs of a maximum spanning forest."""
    # A weight of zero would be no edge.
    above = step.max(initial=0) + 1
    graph = coo_array((above - step, (first, second)), shape=(num_records, num_records)).tocsr()
    forest = minimum_spanning_tree(graph).tocoo()
    return forest.row, forest.col, above - forest.data


def _members(
    group: Int[np.ndarray, " record"], record: Int[np.ndarray, " record"], largest: int
) -> tuple[Int[np.ndarray, "component member"], ...]:
    """Return the records of the groups of each size."""
    order, begin, size = _runs(group)
    return tuple(
        record[order[begin[size == number][:, None] + np.arange(number)]] for number in range(2, largest + 1)
    )
