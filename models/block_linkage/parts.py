"""Parts: the groups of records that candidate pairs connect, none larger than a cap.

Kruskal's algorithm with refused merges: pairs in descending log odds, ties in the order of their records; a pair merges
the parts of its two records, unless the part would be too large. Parts of more than ``largest`` records come of pairs
with log odds above 0 alone: at a low threshold weak pairs connect nearly all records of a large table, and such a part
would say nothing.

The result is that of merging pairs that both of their parts rank first, in rounds, as an engine without a global order
does: sizes only grow, so a refused pair stays refused; and where a pair is first for both parts, no stronger one can
touch either, so that Kruskal's algorithm meets both unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from consilience.arrays import Int
from consilience.models.block_linkage.join import CandidatePairs


class Cut(NamedTuple):
    """What the cap cut apart.

    Parameters
    ----------
    components : how many connected components of the candidates were divided.
    records : how many records were in them.
    largest : records in the largest of all components, before the cut.
    pairs : how many candidate pairs were dropped: their records are in different parts now.
    weight : how many links these were worth, each pair taken for itself.
    """

    components: int
    records: int
    largest: int
    pairs: int
    weight: float


class Parts(NamedTuple):
    """Groups of records that may describe one entity; every other record is alone.

    Parameters
    ----------
    members : int32; ``members[k]``, of shape ``(part, k + 2)``, holds the parts of k + 2 records, up to ``largest`` of
        them, each in increasing order, sorted by the first.
    large : int32, shape ``(large_member,)`` each; the records of every part of more, in the same order.
    cut : what the cap cut apart.
    """

    members: tuple[Int[np.ndarray, "part member"], ...]
    large: tuple[Int[np.ndarray, " large_member"], ...]
    cut: Cut


def parts_of(pairs: CandidatePairs, num_records: int, *, largest: int, size_limit: int) -> Parts:
    """Return the parts of two or more records.

    Parameters
    ----------
    largest : most records of a part that pairs with log odds of 0 or less have a share in; above it parts are large.
    size_limit : most records of any part, at least ``largest``.
    """
    order = np.argsort(-pairs.log_odds, kind="stable")  # pairs are sorted by their records
    limit = np.where(pairs.log_odds > 0, np.int32(size_limit), np.int32(largest))
    limit[pairs.log_odds == np.inf] = num_records  # sure labels pass every cap
    part = merged(pairs.first, pairs.second, order, limit, num_records)
    del order, limit  # of all pairs, which may be many
    return Parts(*members_of(part, largest), _cut(pairs, part))


def _cut(pairs: CandidatePairs, part: Int[np.ndarray, " record"]) -> Cut:
    """Return what is in other parts than the pairs alone would make."""
    every, number = np.arange(len(pairs.first)), np.full(len(pairs.first), len(part), np.int32)
    component = merged(pairs.first, pairs.second, every, number, len(part))
    del every, number
    size = np.bincount(component, minlength=len(part))
    dropped = part[pairs.first] != part[pairs.second]
    divided = np.unique(component[pairs.first[dropped]])
    return Cut(
        components=len(divided),
        records=int(size[divided].sum()),
        largest=int(size.max(initial=0)),
        pairs=int(dropped.sum()),
        weight=float(expit(pairs.log_odds[dropped]).sum()),
    )


def merged(
    first: Int[np.ndarray, " pair"],
    second: Int[np.ndarray, " pair"],
    order: Int[np.ndarray, " pair"],
    limit: Int[np.ndarray, " pair"],
    num_records: int,
) -> Int[np.ndarray, " record"]:
    """Return the part of each record, named by its lowest one.

    Parameters
    ----------
    order : of the pairs, by their places.
    limit : most records of a part that each pair may make.
    """
    part = np.arange(num_records, dtype=np.int32)
    _compiled(_merge)(first, second, order, limit, part, np.ones(num_records, np.int32))
    return part


def members_of(
    part: Int[np.ndarray, " record"], largest: int
) -> tuple[tuple[Int[np.ndarray, "part member"], ...], tuple[Int[np.ndarray, " large_member"], ...]]:
    """Return the records of parts of 2 to ``largest`` records, by their number, and those of every larger part.

    Parameters
    ----------
    part : as `merged` returns it.
    """
    size = np.bincount(part, minlength=len(part))
    record = np.flatnonzero(size[part] > 1).astype(np.int32)
    record = record[np.argsort(part[record], kind="stable")]
    size = size[size > 1]
    begin = np.cumsum(size) - size
    small = (record[begin[size == number][:, None] + np.arange(number)] for number in range(2, largest + 1))
    large = (record[begin[place] : begin[place] + size[place]] for place in np.flatnonzero(size > largest))
    return tuple(small), tuple(large)


@functools.cache
def _compiled(function: Callable) -> Callable:
    from consilience.models.machine_code import machine_code  # numba takes longer than all of linkage

    return machine_code(function)


def _merge(first: Any, second: Any, order: Any, limit: Any, part: Any, size: Any) -> None:
    """Merge parts along pairs in their order; write the lowest record of each one's part into ``part``."""
    for pair in order:
        one, other = first[pair], second[pair]
        while part[one] != one:
            part[one] = part[part[one]]
            one = part[one]
        while part[other] != other:
            part[other] = part[part[other]]
            other = part[other]
        if one != other and size[one] + size[other] <= limit[pair]:
            low, high = min(one, other), max(one, other)
            part[high] = low
            size[low] += size[high]
    for record in range(len(part)):  # a part never has a higher number than its records
        part[record] = part[part[record]]
