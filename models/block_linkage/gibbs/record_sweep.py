# mypy: allow-untyped-defs
r"""The record sweep in machine code: links are drawn record after record; `links` calls it and says what it draws.

A record alone has no slot. A cluster of two or more has one, with its members and what the likelihood keeps of them
for the weight of a join; both change with the members alone.

With **hit-miss errors** (no ``class_share``) that is, for every field, the part of the weight that all values share,
(1 - b) / Z.

With **error classes** a record joins a cluster C of n records with the weight

.. math:: (n + 1) \frac{\mu_{n+1}}{\mu_n} \cdot \frac{n}{n + 1} \cdot
          \frac{\sum_{h \in C} w_h R(i \mid h) + \prod_{j \in C} R(j \mid i)}{\sum_{h \in C} w_h}, \qquad
          w_h = \prod_{j \in C, j \neq h} R(j \mid h),

which is the ratio of the weights with and without it: the new record is one of the others, or the head. The logarithms
of :math:`w_h` are kept, and behind them that of their sum. A record given a head is at most 1e280 times as probable as
apart, and at least 1e-280 times.

Everything is reckoned in float64. Powers and weights stop at 1e280. No data come near that: it would take fifty factors
of a million. Types are left to numba, which compiles the sweep once with shares of classes and once without; where it
is not installed, Python runs the same code, a hundred times slower. (A sweep made by closure over the functions of a
likelihood would be compiled anew in every process: numba keeps on disk what is a function of a module.)
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

try:
    import numba
except ImportError:
    numba = None  # type: ignore[assignment]

_MOST, _FEWEST = 1e280, 1e-280
_LEAST = 1e-300         # for shares that single precision rounds to zero


def _machine_code(function: Callable, inline: Literal["never", "always"] = "never") -> Any:
    """Compile at the first call, and keep the code on disk where a folder for it can be written."""
    function = inspect.unwrap(function)  # type checks of the test suite wrap every one; numba wants itself
    if numba is None:
        return function
    try:
        return numba.njit(cache=True, error_model="numpy", inline=inline)(function)
    except RuntimeError:
        return numba.njit(error_model="numpy", inline=inline)(function)


def _inlined(function: Callable) -> Any:
    """Compile into what calls it: a call that hands over so many arrays takes as long as what it does."""
    return _machine_code(function, inline="always")


@_machine_code
def sweep(
    uniform, cluster, value_share, distortion, intensity, size_share, class_share,
    value, field, source, first_neighbour, neighbour,
):  # fmt: skip
    """Return the clusters after every record was taken out and put back.

    Parameters
    ----------
    uniform : float64, shape ``(record,)``; random numbers from 0 to 1.
    cluster, value_share, distortion, intensity, size_share, class_share : as in `State`; all but the first float64.
    value, field, source, first_neighbour, neighbour : as in `LinkProblem`.
    """
    largest = len(size_share)
    size_factor, alone = _of_sizes(size_share), intensity * max(size_share[0], _LEAST)
    alike, ratio = _of_values(value_share, distortion, field, class_share)

    slot, size, member, free, num_free = _slots(cluster, largest)
    kept = np.empty((len(size), max(value.shape[1], largest + 1)))
    for own in range(len(size)):
        if size[own] > 0:
            _reckon(own, size, member, kept, value, value_share, distortion, alike, ratio, class_share)

    most = max(1, np.diff(first_neighbour).max())
    choice, total = np.empty(most, np.int32), np.empty(most)
    looked = np.full(len(size), -1, np.int32)           # the record that looked at a cluster last
    reached, waiting = np.empty(largest, np.bool_), np.empty(largest, np.int32)

    for record in range(len(value)):
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
                _reckon(own, size, member, kept, value, value_share, distortion, alike, ratio, class_share)

        sum_of_weights, number = alone, 0
        for at in range(begin, end):
            one = neighbour[at]
            there = slot[one]
            if there < 0:
                if source[one] == source[record]:
                    continue
                weight = _paired(size_factor[1], record, one, value, value_share, distortion, alike, ratio, class_share)
                choice[number] = -1 - one
            else:
                if looked[there] == record or size[there] >= largest:
                    continue
                looked[there] = record
                if _has_source(source[record], there, size, member, source):
                    continue
                weight = _joined(
                    size_factor[size[there]], record, there, size, member, kept,
                    value, value_share, distortion, alike, ratio, class_share,
                )  # fmt: skip
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
            _put(-1 - choice[chosen], there, slot, size, member)
        _put(record, there, slot, size, member)
        _reckon(there, size, member, kept, value, value_share, distortion, alike, ratio, class_share)
    return _first_members(slot, len(size))


# ---- likelihoods ----


@_machine_code
def _of_values(value_share, distortion, field, class_share):
    """Return for each value the factor of a pair that has it, of error classes with many errors; and r of a copy."""
    alike, ratio = np.empty(len(value_share)), np.empty(len(value_share))
    for code in range(len(value_share)):
        if field[code] == len(distortion):
            break                                       # padding follows
        rate, share = distortion[field[code]], max(value_share[code], _LEAST)
        copy = rate + (1 - rate) / share
        alike[code] = min(rate + (1 - rate) * copy if class_share is None else copy, _MOST)
        ratio[code] = min(1 + (1 - rate) / (rate * share), _MOST)
    return alike, ratio


@_inlined
def _paired(weight, record, one, value, value_share, distortion, alike, ratio, class_share):
    """Return a weight times that of a pair of records, relative to both alone."""
    if class_share is None:
        for column in range(value.shape[1]):
            code, other = value[record, column], value[one, column]
            if code >= 0 and other >= 0:
                rate = distortion[column]
                weight *= alike[code] if code == other else rate * (2 - rate)
        return weight
    given, reverse = _given(record, one, value, value_share, distortion, alike, class_share)
    return weight * (given + reverse) / 2


@_inlined
def _joined(weight, record, own, size, member, kept, value, value_share, distortion, alike, ratio, class_share):
    """Return a weight times that of a cluster with another record, relative to it without and the record alone."""
    number = size[own]
    if class_share is None:
        for column in range(value.shape[1]):
            code = value[record, column]
            if code >= 0:
                power = 1.0
                for fellow in range(number):
                    if value[member[own, fellow], column] == code:
                        power *= ratio[code]
                weight *= distortion[column] + kept[own, column] * min(power, _MOST)
        return weight
    log_weight = np.empty(number + 1)
    log_weight[number] = 0.0
    for place in range(number):
        given, reverse = _given(record, member[own, place], value, value_share, distortion, alike, class_share)
        log_weight[place] = kept[own, place] + math.log(given)
        log_weight[number] += math.log(reverse)
    highest = log_weight.max()
    log_ratio = highest + math.log(np.exp(log_weight - highest).sum()) - kept[own, -1]
    return weight * (math.exp(min(log_ratio, 640.0)) * number / (number + 1))


@_inlined
def _reckon(own, size, member, kept, value, value_share, distortion, alike, ratio, class_share):
    """Set what is kept of a cluster, after its members have changed."""
    if class_share is None:
        _reckon_fields(own, size, member, kept, value, value_share, distortion, ratio)
    else:
        _reckon_heads(own, size, member, kept, value, value_share, distortion, alike, class_share)


@_machine_code
def _reckon_fields(own, size, member, kept, value, value_share, distortion, ratio):
    """Set (1 - b) / Z of each field, with Z = 1 + the sum over its values v of a cluster of θ (r^n - 1)."""
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
        kept[own, column] = (1 - distortion[column]) / total


@_machine_code
def _reckon_heads(own, size, member, kept, value, value_share, distortion, alike, class_share):
    """Set log w of each member of a cluster as its head, and behind all places the logarithm of their sum."""
    kept[own, : size[own]] = 0.0
    for one in range(size[own]):
        for other in range(one):
            given, reverse = _given(
                member[own, one], member[own, other], value, value_share, distortion, alike, class_share
            )
            kept[own, other] += math.log(given)
            kept[own, one] += math.log(reverse)
    highest = kept[own, : size[own]].max()
    kept[own, -1] = highest + math.log(np.exp(kept[own, : size[own]] - highest).sum())


@_inlined
def _given(record, head, value, value_share, distortion, alike, class_share):
    """Return R of a record given a head, and R of the head given the record: which of the two is the head matters."""
    num_fields = value.shape[1]
    exact, many, missing, differing, where = 1.0, class_share[2], 0, 0, 0
    for column in range(num_fields):
        shown, true = value[record, column], value[head, column]
        if shown < 0 or true < 0:
            missing += 1
        elif shown == true:
            exact /= max(value_share[shown], _LEAST)
            many *= alike[shown]
        else:
            differing += 1
            where = column
            many *= distortion[column]
    few, reverse = 0.0, 0.0
    if differing == 0:
        few = exact * (class_share[0] + class_share[1] * missing / num_fields)
        reverse = few
    elif differing == 1:
        one = exact * class_share[1] / num_fields
        shown, true = value_share[value[record, where]], value_share[value[head, where]]
        # The others have at least the share of the one that is shown, whatever rounding makes of the difference.
        few = one / max(1 - true, shown, _LEAST)
        reverse = one / max(1 - shown, true, _LEAST)
    return max(min(few + many, _MOST), _FEWEST), max(min(reverse + many, _MOST), _FEWEST)


# ---- clusters ----


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
            _put(first, own, slot, size, member)
        if size[own] >= largest:
            raise ValueError("a cluster has more records than size_share has sizes")
        _put(record, own, slot, size, member)
    return slot, size, member, free, num_free


@_inlined
def _put(record, own, slot, size, member):
    """Put a record that is alone into a slot."""
    member[own, size[own]] = record
    size[own] += 1
    slot[record] = own


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
