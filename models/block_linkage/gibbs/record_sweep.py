# mypy: allow-untyped-defs
"""The record sweep in machine code: links are drawn record after record; `links` calls it.

A record alone has no slot. A cluster of two or more has one, with its members and, for every field, the part of a
join's weight that all values share, (1 - b) / Z; both change with the members alone. Everything is reckoned in float64.

Powers and weights stop at 1e280. No data come near that: it would take fifty factors of a million. Types are left to
numba; where that is not installed, Python runs the same code, a hundred times slower.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import numba
except ImportError:
    numba = None  # type: ignore[assignment]

_MOST = 1e280
_LEAST = 1e-300         # for shares that single precision rounds to zero


def _machine_code(function: Callable) -> Any:
    """Compile at the first call, and keep the code on disk where a folder for it can be written."""
    function = inspect.unwrap(function)  # type checks of the test suite wrap every one; numba wants itself
    if numba is None:
        return function
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        return numba.njit(error_model="numpy")(function)


@_machine_code
def sweep(
    uniform, cluster, value_share, distortion, intensity, size_share, value, field, source, first_neighbour, neighbour
):  # fmt: skip
    """Return the clusters after every record was taken out and put back.

    Parameters
    ----------
    uniform : float64, shape ``(record,)``; random numbers from 0 to 1.
    cluster, value_share, distortion, intensity, size_share : as in `State`; the last four float64.
    value, field, source, first_neighbour, neighbour : as in `LinkProblem`.
    """
    num_records, num_fields = value.shape
    largest = len(size_share)
    alike, ratio = _of_values(value_share, distortion, field)
    size_factor = _of_sizes(size_share)
    alone = intensity * max(size_share[0], _LEAST)

    slot, size, member, free, num_free = _slots(cluster, largest)
    shared = np.empty((len(size), num_fields))
    for own in range(len(size)):
        if size[own] > 0:
            _reckon(own, size, member, value, value_share, distortion, ratio, shared)

    most = 1
    for record in range(num_records):
        most = max(most, first_neighbour[record + 1] - first_neighbour[record])
    choice, total = np.empty(most, np.int32), np.empty(most)
    looked = np.full(len(size), -1, np.int32)           # the record that looked at a cluster last
    own_value, same, other = np.empty(num_fields, np.int32), np.empty(num_fields), np.empty(num_fields)
    reached = np.empty(largest, np.bool_)
    waiting = np.empty(largest, np.int32)

    for record in range(num_records):
        begin, end = first_neighbour[record], first_neighbour[record + 1]
        if begin == end:
            continue
        own = slot[record]
        if own >= 0:
            place = _place(record, own, size, member)
            if not _stays_connected(place, own, size, member, first_neighbour, neighbour, reached, waiting):
                continue
            num_free = _take_out(record, place, own, slot, size, member, free, num_free)
            if size[own] > 0:
                _reckon(own, size, member, value, value_share, distortion, ratio, shared)

        for at in range(num_fields):
            code = value[record, at]
            own_value[at] = code
            same[at] = alike[code] if code >= 0 else 1.0
            other[at] = distortion[at] * (2 - distortion[at]) if code >= 0 else 1.0

        sum_of_weights, number = alone, 0
        for at in range(begin, end):
            one = neighbour[at]
            there = slot[one]
            if there < 0:
                if source[one] == source[record]:
                    continue
                weight = size_factor[1]
                for column in range(num_fields):
                    code = value[one, column]
                    differ = other[column] if code >= 0 else 1.0
                    weight *= same[column] if code == own_value[column] else differ
                choice[number] = -1 - one
            else:
                if looked[there] == record or size[there] >= largest:
                    continue
                looked[there] = record
                if _has_source(source[record], there, size, member, source):
                    continue
                weight = size_factor[size[there]]
                for column in range(num_fields):
                    code = own_value[column]
                    if code >= 0:
                        power = 1.0
                        for fellow in range(size[there]):
                            if value[member[there, fellow], column] == code:
                                power *= ratio[code]
                        weight *= distortion[column] + shared[there, column] * min(power, _MOST)
                choice[number] = there
            sum_of_weights += min(weight, _MOST)
            total[number] = sum_of_weights
            number += 1

        threshold = uniform[record] * sum_of_weights
        if threshold < alone or number == 0:
            continue
        chosen = 0
        while chosen < number - 1 and total[chosen] <= threshold:
            chosen += 1
        there = choice[chosen]
        if there < 0:
            num_free -= 1
            there = free[num_free]
            member[there, 0] = -1 - choice[chosen]
            slot[member[there, 0]] = there
            size[there] = 1
        member[there, size[there]] = record
        size[there] += 1
        slot[record] = there
        _reckon(there, size, member, value, value_share, distortion, ratio, shared)
    return _first_members(slot, len(size))


@_machine_code
def _of_values(value_share, distortion, field):
    """Return for each value the factor of a join of two records that have it, and r, how much a copy counts."""
    alike, ratio = np.empty(len(value_share)), np.empty(len(value_share))
    for code in range(len(value_share)):
        if field[code] == len(distortion):
            break                                       # padding follows
        rate, share = distortion[field[code]], max(value_share[code], _LEAST)
        alike[code] = min(rate + (1 - rate) * (rate + (1 - rate) / share), _MOST)
        ratio[code] = min(1 + (1 - rate) / (rate * share), _MOST)
    return alike, ratio


@_machine_code
def _of_sizes(size_share):
    """Return what one more member of a cluster of n is worth, (n + 1) μ of n + 1 / μ of n."""
    factor = np.zeros(len(size_share) + 1)
    for size in range(1, len(size_share)):
        factor[size] = (size + 1) * max(size_share[size], _LEAST) / max(size_share[size - 1], _LEAST)
    return factor


@_machine_code
def _slots(cluster, largest):
    """Return the slot of each record, of each slot the size and the members, and the stack of free slots."""
    num_records = len(cluster)
    num_slots = num_records // 2 + 1
    slot = np.full(num_records, -1, np.int32)
    size = np.zeros(num_slots, np.int32)
    member = np.empty((num_slots, max(largest, 2)), np.int32)
    free = np.arange(num_slots - 1, -1, -1).astype(np.int32)
    num_free = num_slots
    for record in range(num_records):
        first = cluster[record]
        if first == record:
            continue
        own = slot[first]
        if own < 0:
            num_free -= 1
            own = free[num_free]
            slot[first] = own
            member[own, 0] = first
            size[own] = 1
        if size[own] >= largest:
            raise ValueError("a cluster has more records than size_share has sizes")
        member[own, size[own]] = record
        size[own] += 1
        slot[record] = own
    return slot, size, member, free, num_free


@_machine_code
def _reckon(own, size, member, value, value_share, distortion, ratio, shared):
    """Set (1 - b) / Z of a cluster, with Z = 1 + the sum over its values v of θ (r^n - 1)."""
    for column in range(value.shape[1]):
        total = 1.0
        for place in range(size[own]):
            code = value[member[own, place], column]
            if code < 0:
                continue
            power, again = 1.0, False
            for fellow in range(size[own]):
                if value[member[own, fellow], column] == code:
                    again = again or fellow < place
                    power *= ratio[code]
            if not again:
                total += max(value_share[code], _LEAST) * (min(power, _MOST) - 1)
        shared[own, column] = (1 - distortion[column]) / total


@_machine_code
def _place(record, own, size, member):
    """Return the place of a record among the members of its cluster."""
    place = 0
    while member[own, place] != record:
        place += 1
    return place


@_machine_code
def _adjacent(one, other, first_neighbour, neighbour):
    """Return whether two records are neighbours: binary search."""
    low, high = first_neighbour[one], first_neighbour[one + 1]
    while low < high:
        middle = (low + high) // 2
        if neighbour[middle] < other:
            low = middle + 1
        else:
            high = middle
    return low < first_neighbour[one + 1] and neighbour[low] == other


@_machine_code
def _stays_connected(place, own, size, member, first_neighbour, neighbour, reached, waiting):
    """Return whether a cluster is connected without the member at a place."""
    number = size[own]
    if number == 2:
        return True
    for fellow in range(number):
        reached[fellow] = fellow == place
    start = 1 if place == 0 else 0
    reached[start] = True
    waiting[0] = start
    num_waiting, num_reached = 1, 2
    while num_waiting > 0:
        num_waiting -= 1
        here = member[own, waiting[num_waiting]]
        for fellow in range(number):
            if not reached[fellow] and _adjacent(here, member[own, fellow], first_neighbour, neighbour):
                reached[fellow] = True
                waiting[num_waiting] = fellow
                num_waiting += 1
                num_reached += 1
    return num_reached == number


@_machine_code
def _take_out(record, place, own, slot, size, member, free, num_free):
    """Take a record out of its cluster; a member that is left alone gives the slot back. Return the free slots."""
    size[own] -= 1
    member[own, place] = member[own, size[own]]
    slot[record] = -1
    if size[own] == 1:
        slot[member[own, 0]] = -1
        size[own] = 0
        free[num_free] = own
        num_free += 1
    return num_free


@_machine_code
def _has_source(wanted, own, size, member, source):
    """Return whether a cluster has a record of a source."""
    for place in range(size[own]):
        if source[member[own, place]] == wanted:
            return True
    return False


@_machine_code
def _first_members(slot, num_slots):
    """Return the first member of the cluster of each record."""
    first = np.full(num_slots, -1, np.int32)
    named = np.empty(len(slot), np.int32)
    for record in range(len(slot)):
        own = slot[record]
        if own < 0:
            named[record] = record
        else:
            if first[own] < 0:
                first[own] = record
            named[record] = first[own]
    return named
