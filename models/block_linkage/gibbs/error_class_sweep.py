# mypy: allow-untyped-defs
r"""The record sweep of error classes in machine code; `links` calls it.

It is the sweep of `record_sweep` with another likelihood. A record in turn is taken out of its cluster, stays there if
the others are not connected without it, and else is alone with the weight :math:`m \mu_1`, or joins a cluster C of
n < S records that holds a neighbour and none of its source, with

.. math:: (n + 1) \frac{\mu_{n+1}}{\mu_n} \cdot \frac{n}{n + 1} \cdot
          \frac{\sum_{h \in C} w_h R(i \mid h) + \prod_{j \in C} R(j \mid i)}{\sum_{h \in C} w_h}, \qquad
          w_h = \prod_{j \in C, j \neq h} R(j \mid h),

which is the ratio of the weights with and without it: the new record is one of the others, or the head. Of each cluster
of two records or more the logarithms of :math:`w_h` and of their sum are kept. A record given a head is at most 1e280
times as probable as apart, and at least 1e-280 times. Everything is reckoned in float64. Types are left to numba.

What the two sweeps share is in `record_sweep`. Numba keeps compiled code by the date of this file alone: who changes
what is shared must touch it too.
"""

from __future__ import annotations

import math

import numpy as np

from consilience.models.block_linkage.gibbs.record_sweep import (
    _first_members,
    _has_source,
    _machine_code,
    _of_sizes,
    _place,
    _slots,
    _stays_connected,
    _take_out,
)

_MOST, _FEWEST = 1e280, 1e-280
_LEAST = 1e-300         # for shares that single precision rounds to zero


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
    num_records, largest = len(value), len(size_share)
    alike = _of_values(value_share, distortion, field)
    size_factor = _of_sizes(size_share)
    alone = intensity * max(size_share[0], _LEAST)

    slot, size, member, free, num_free = _slots(cluster, largest)
    log_head, log_total = np.empty(member.shape), np.empty(len(size))
    for own in range(len(size)):
        if size[own] > 0:
            _reckon(own, size, member, value, value_share, alike, distortion, class_share, log_head, log_total)

    most = 1
    for record in range(num_records):
        most = max(most, first_neighbour[record + 1] - first_neighbour[record])
    choice, total = np.empty(most, np.int32), np.empty(most)
    looked = np.full(len(size), -1, np.int32)           # the record that looked at a cluster last
    reached, waiting = np.empty(largest, np.bool_), np.empty(largest, np.int32)

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
                _reckon(own, size, member, value, value_share, alike, distortion, class_share, log_head, log_total)

        sum_of_weights, number = alone, 0
        for at in range(begin, end):
            one = neighbour[at]
            there = slot[one]
            if there < 0:
                if source[one] == source[record]:
                    continue
                given, reverse = _given(record, one, value, value_share, alike, distortion, class_share)
                weight = size_factor[1] * (given + reverse) / 2
                choice[number] = -1 - one
            else:
                if looked[there] == record or size[there] >= largest:
                    continue
                looked[there] = record
                if _has_source(source[record], there, size, member, source):
                    continue
                weight = size_factor[size[there]] * _joined(
                    record, there, size, member, value, value_share, alike, distortion, class_share, log_head, log_total
                )
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
        _reckon(there, size, member, value, value_share, alike, distortion, class_share, log_head, log_total)
    return _first_members(slot, len(size))


@_machine_code
def _of_values(value_share, distortion, field):
    """Return for each value the factor of many errors where record and head agree in it."""
    alike = np.empty(len(value_share))
    for code in range(len(value_share)):
        if field[code] == len(distortion):
            break                                       # padding follows
        rate = distortion[field[code]]
        alike[code] = min(rate + (1 - rate) / max(value_share[code], _LEAST), _MOST)
    return alike


@_machine_code
def _given(record, head, value, value_share, alike, distortion, class_share):
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


@_machine_code
def _reckon(own, size, member, value, value_share, alike, distortion, class_share, log_head, log_total):
    """Set log w of each member of a cluster as its head, and the logarithm of their sum."""
    log_head[own, : size[own]] = 0.0
    for one in range(size[own]):
        for other in range(one):
            given, reverse = _given(
                member[own, one], member[own, other], value, value_share, alike, distortion, class_share
            )
            log_head[own, other] += math.log(given)
            log_head[own, one] += math.log(reverse)
    highest = log_head[own, : size[own]].max()
    log_total[own] = highest + math.log(np.exp(log_head[own, : size[own]] - highest).sum())


@_machine_code
def _joined(
    record, own, size, member, value, value_share, alike, distortion, class_share, log_head, log_total
):  # fmt: skip
    """Return how much more probable the records of a cluster are with another one than without, and it apart."""
    number = size[own]
    log_weight = np.empty(number + 1)
    log_weight[number] = 0.0
    for place in range(number):
        given, reverse = _given(record, member[own, place], value, value_share, alike, distortion, class_share)
        log_weight[place] = log_head[own, place] + math.log(given)
        log_weight[number] += math.log(reverse)
    highest = log_weight.max()
    ratio = highest + math.log(np.exp(log_weight - highest).sum()) - log_total[own]
    return math.exp(min(ratio, 640.0)) * number / (number + 1)
