# mypy: allow-untyped-defs
# ruff: noqa: NPY002 - numba draws in machine code from the state that this seeds
r"""Partitions of a part too large to enumerate, drawn in machine code: record sweeps and split-merge moves.

Rows are records, or several equal ones that stay together; a row of weight n enters as n members. In each field the
true value y of an entity is one that its members show, or another one, and given y the members' values are draws with
the probabilities

.. math::

    G(x \mid y) = (1 - b)\, 1[x = y] + b\, (K(x, y) + r\, \theta_x),

independent ones where the strength a is infinite (hit-miss), else those of a Pólya urn, whose marginal is

.. math::

    p(x \mid y) = \frac{\Gamma(a)}{\Gamma(a + n)} \prod_v \frac{\Gamma(a\, G(v \mid y) + n_v)}{\Gamma(a\, G(v \mid y))},

so that a value that was shown before is copied: small a, few origins. With b = 1 and K = 0 that is the
Dirichlet-multinomial. What is kept of a cluster are its distinct values with their numbers, so that a step costs the
distinct values, not the members. Split-merge moves allot members one after the other (Dahl 2005); their ratio is that
of Metropolis and Hastings.
"""

from __future__ import annotations

import math

import numpy as np

from consilience.models.machine_code import machine_code

_LEAST = 1e-300
SURE = 1e3
"""What a sure label adds: no partition against it is ever drawn, once there was one without."""

_ALL_EVERY = 10  # sweeps of which one looks at all clusters of the part


@machine_code
def draw_part(
    seed, cluster, sweeps, moves, value, weight, source, apart, edge, first_neighbour, neighbour, labels, size_term,
    share, first, near, begin_near, miss, far, strength, field_weight, drawn, log_joint, counted, distorted,
    drawn_from, sizes,
):  # fmt: skip
    """Draw partitions of the rows of one part; fill `drawn`, `log_joint` and the statistics, and change `cluster`.

    Parameters
    ----------
    seed : of the random numbers.
    cluster : shape ``(row,)``; where to begin, and where it ended: the number of the cluster of each row.
    sweeps, moves : how many of them, and how many split-merge moves in each.
    value : shape ``(row, field)``; codes within the part, -1 where missing.
    weight, source : shape ``(row,)``; how many records a row stands for, and where they come from.
    apart : whether records of one source may not be together.
    edge : shape ``(edge, 2)``; pairs of rows from which moves begin.
    first_neighbour, neighbour : the same pairs, by row: where those of each begin, and the other rows.
    labels : where the labels of each row begin, the other row of each, and what it adds to the log probability if both
        are together. Sure ones are `SURE`, or less that.
    size_term : shape ``(size + 1,)``; log of m s! μ_s.
    share, first : shares of the values of the part, and where those of each field begin.
    near, begin_near : K of the values of a field, row x and column y, flat, and where each field's begins; -1 where the
        field is compared for equality.
    miss, far, strength, field_weight : shape ``(field,)``; b, r, a and the power of each field's likelihood.
    drawn : shape ``(sweep, row)``; clusters after each sweep.
    log_joint : shape ``(sweep,)``; log probability of partition and values.
    counted : shape ``(value,)``; added up over sweeps: how often each value was drawn, for an entity or by an error.
    distorted, drawn_from : shape ``(field,)``; added up: distorted values, and values drawn, of entities with several.
    sizes : shape ``(size + 1,)``; added up: entities by their number of records.
    """
    np.random.seed(seed)
    rows, fields = value.shape
    slots = rows + 3
    state = _State(rows, fields, slots)
    entries, heads, totals, logs, of_slot = state
    model = (value, share, first, near, begin_near, miss, far, strength, field_weight)
    for row in range(rows):
        _put(row, cluster[row], weight[row], state, model)
    order = np.arange(rows)
    log_weight = np.empty(slots)
    choice, looked = np.empty(slots, np.int64), np.full(slots, -1)
    for sweep in range(sweeps):
        np.random.shuffle(order)
        for place in range(rows):
            row = order[place]
            near_only = sweep % _ALL_EVERY > 0
            number = _choices(
                row, cluster, near_only, first_neighbour, neighbour, choice, looked, sweep * rows + place, of_slot
            )
            if number:
                _draw_row(
                    row, cluster, weight, source, apart, labels, size_term, state, model, log_weight, choice, number
                )
        for _ in range(moves):
            if len(edge):
                _split_or_merge(cluster, weight, source, apart, edge, labels, size_term, state, model, order)
        drawn[sweep] = cluster
        total = 0.0
        for slot in range(rows):
            if of_slot[slot, 0] > 0:
                sizes[of_slot[slot, 0]] += 1
                total += size_term[of_slot[slot, 0]]
                for field in range(fields):
                    total += field_weight[field] * logs[slot, field, 1]
        for row in range(rows):
            total += 0.5 * _log_labels(row, cluster[row], cluster, labels, False)
        log_joint[sweep] = total
        _count(state, model, counted, distorted, drawn_from)


@machine_code
def _State(rows, fields, slots):  # noqa: N802
    """Return what is kept of clusters, all of them empty.

    Of an entry, a distinct value of a cluster and field: the value, how many show it, the next entry and the log of the
    probability of all values given this one, and its posterior probability as the true one. Of a cluster and field: the
    first entry; how many records have the field; the log probability of all values given another one, the log
    marginal, the posterior probability of another one, and the share of the values shown. Of a cluster: its records
    and its rows. The last entry of each field leads the free ones.
    """
    pool = 3 * rows + 4
    integers = np.empty((fields, pool, 3), np.int64)
    integers[:, :, 2] = np.arange(1, pool + 1)
    integers[:, pool - 1, 2] = 0
    numbers = np.zeros((fields, pool, 2))
    heads = np.full((slots, fields), -1, np.int64)
    totals = np.zeros((slots, fields), np.int64)
    logs = np.zeros((slots, fields, 4))
    logs[:, :, 2] = 1.0
    return (integers, numbers), heads, totals, logs, np.zeros((slots, 2), np.int64)


@machine_code
def _given(field, x, y, model):
    """Return G(x | y), or for y = -1 that given a value that no member shows."""
    _, share, first, near, begin_near, miss, far, _, _ = model
    base = far[field] * share[first[field] + x]
    if y >= 0 and begin_near[field] >= 0:
        base += near[begin_near[field] + x * (first[field + 1] - first[field]) + y]
    found = miss[field] * base
    return max(found + (1 - miss[field] if x == y else 0.0), _LEAST)


@machine_code
def _log_rise(given, before, number, strength):
    """Return the log of how probable so many more values are, but for the urn's size."""
    if strength == math.inf:
        return number * math.log(given)
    start = strength * given + before
    if number == 1:
        return math.log(start)
    return math.lgamma(start + number) - math.lgamma(start)


@machine_code
def _log_predictive(slot, field, x, number, state, model):
    """Return the log probability of so many more values x, given those of a cluster."""
    (integers, numbers), heads, totals, logs, _ = state
    _, share, first, _, _, _, _, strength, _ = model
    a = strength[field]
    shown, entry = 0, heads[slot, field]
    while entry >= 0:
        if integers[field, entry, 0] == x:
            shown = integers[field, entry, 1]
            break
        entry = integers[field, entry, 2]
    fast = number == 1
    highest, total = -math.inf, 0.0
    rest = 1 - logs[slot, field, 3]
    own = share[first[field] + x]
    log_new = 0.0
    entry = heads[slot, field]
    while entry >= 0:
        y = integers[field, entry, 0]
        given = _given(field, x, y, model)
        if fast:
            total += numbers[field, entry, 1] * (given if a == math.inf else a * given + shown)
        elif numbers[field, entry, 1] > 0:
            log_one = math.log(numbers[field, entry, 1]) + _log_rise(given, shown, number, a)
            highest, total = _add_log(highest, total, log_one)
        if shown == 0:
            log_new += _log_rise(_given(field, y, x, model), 0, integers[field, entry, 1], a)
        entry = integers[field, entry, 2]
    other = logs[slot, field, 2]
    if shown == 0:
        # The new value may be the true one itself, and is then no longer another one.
        log_new += math.log(own) - logs[slot, field, 1] - _size_of_urn(totals[slot, field], 0, a)
        if rest > 0:
            other *= max(rest - own, 0.0) / rest
        given = _given(field, x, x, model)
        if fast:
            total += math.exp(min(log_new, 700.0)) * (given if a == math.inf else a * given)
        else:
            highest, total = _add_log(highest, total, log_new + _log_rise(given, 0, number, a))
    given = _given(field, x, -1, model)
    if fast:
        total += other * (given if a == math.inf else a * given + shown)
        found = math.log(max(total, _LEAST))
    else:
        if other > 0:
            highest, total = _add_log(highest, total, math.log(other) + _log_rise(given, shown, number, a))
        found = highest + math.log(total)
    return found - (_size_of_urn(number, totals[slot, field], a))


@machine_code
def _size_of_urn(number, before, strength):
    """Return the log of Γ(a + n + k) / Γ(a + n)."""
    if strength == math.inf or number == 0:
        return 0.0
    if number == 1:
        return math.log(strength + before)
    return math.lgamma(strength + before + number) - math.lgamma(strength + before)


@machine_code
def _add_log(highest, total, log_one):
    if log_one > highest:
        return log_one, total * math.exp(highest - log_one) + 1.0
    return highest, total + math.exp(log_one - highest)


@machine_code
def _put(row, slot, number, state, model):
    """Put a row into a cluster, or with a number below zero take it out."""
    (integers, numbers), heads, totals, logs, of_slot = state
    value, share, first, _, _, _, _, strength, _ = model
    of_slot[slot, 0] += number
    of_slot[slot, 1] += 1 if number > 0 else -1
    for field in range(value.shape[1]):
        x = value[row, field]
        if x < 0:
            continue
        a, leader = strength[field], integers.shape[1] - 1
        own, before, entry = -1, -1, heads[slot, field]
        while entry >= 0 and own < 0:
            if integers[field, entry, 0] == x:
                own = entry
            else:
                before = entry
                entry = integers[field, entry, 2]
        shown = integers[field, own, 1] if own >= 0 else 0
        low, sign, many = min(shown, shown + number), (1.0 if number > 0 else -1.0), abs(number)
        log_own, entry = 0.0, heads[slot, field]
        while entry >= 0:
            y = integers[field, entry, 0]
            if own < 0:
                log_own += _log_rise(_given(field, y, x, model), 0, integers[field, entry, 1], a)
            numbers[field, entry, 0] += sign * _log_rise(_given(field, x, y, model), low, many, a)
            entry = integers[field, entry, 2]
        if own < 0:
            own = integers[field, leader, 2]
            integers[field, leader, 2] = integers[field, own, 2]
            integers[field, own, 0], integers[field, own, 1], integers[field, own, 2] = x, 0, heads[slot, field]
            numbers[field, own, 0] = log_own + _log_rise(_given(field, x, x, model), 0, many, a)
            heads[slot, field] = own
            logs[slot, field, 3] += share[first[field] + x]
        integers[field, own, 1] += number
        logs[slot, field, 0] += sign * _log_rise(_given(field, x, -1, model), low, many, a)
        totals[slot, field] += number
        if integers[field, own, 1] == 0:
            following = integers[field, own, 2]
            if before < 0:
                heads[slot, field] = following
            else:
                integers[field, before, 2] = following
            integers[field, own, 2] = integers[field, leader, 2]
            integers[field, leader, 2] = own
            logs[slot, field, 3] -= share[first[field] + x]
        _reckon(slot, field, state, model)


@machine_code
def _reckon(slot, field, state, model):
    """Set the log marginal of a cluster's field, and how probable each true value is."""
    (integers, numbers), heads, totals, logs, _ = state
    _, share, first, _, _, _, _, strength, _ = model
    if heads[slot, field] < 0:
        logs[slot, field] = 0.0
        logs[slot, field, 2] = 1.0
        return
    rest = max(1 - logs[slot, field, 3], 0.0)
    other = math.log(rest) + logs[slot, field, 0] if rest > 1e-12 else -math.inf
    highest, entry = other, heads[slot, field]
    while entry >= 0:
        numbers[field, entry, 1] = numbers[field, entry, 0] + math.log(share[first[field] + integers[field, entry, 0]])
        highest = max(highest, numbers[field, entry, 1])
        entry = integers[field, entry, 2]
    total, entry = math.exp(other - highest), heads[slot, field]
    while entry >= 0:
        numbers[field, entry, 1] = math.exp(numbers[field, entry, 1] - highest)
        total += numbers[field, entry, 1]
        entry = integers[field, entry, 2]
    logs[slot, field, 2] = math.exp(other - highest) / total
    entry = heads[slot, field]
    while entry >= 0:
        numbers[field, entry, 1] /= total
        entry = integers[field, entry, 2]
    logs[slot, field, 1] = highest + math.log(total) - _size_of_urn(totals[slot, field], 0, strength[field])


@machine_code
def _log_of_row(row, slot, number, state, model):
    """Return the log probability of a row's values given those of a cluster; of an empty one, alone."""
    value, field_weight = model[0], model[8]
    total = 0.0
    for field in range(value.shape[1]):
        if value[row, field] >= 0:
            total += field_weight[field] * _log_predictive(slot, field, value[row, field], number, state, model)
    return total


@machine_code
def _may_join(row, slot, cluster, source, apart):
    """Return whether no record of a cluster has the source of a row, where that matters."""
    if apart:
        for other in range(len(cluster)):
            if cluster[other] == slot and other != row and source[other] == source[row]:
                return False
    return True


@machine_code
def _choices(row, cluster, near_only, first_neighbour, neighbour, choice, looked, now, of_slot):
    """Set the clusters that a row may join, its own one first, and return how many; none where it has to stay.

    These are all, or only those with a neighbour. The choice then depends on the other rows alone, and a row whose own
    cluster is not among them stays: a conditional draw among some of the states, which leaves the distribution alone.
    """
    own, number = cluster[row], 1
    choice[0] = own
    if not near_only:
        for slot in range(len(cluster)):
            if of_slot[slot, 0] > 0 and slot != own:
                choice[number] = slot
                number += 1
        return number
    with_own = of_slot[own, 1] == 1
    for at in range(first_neighbour[row], first_neighbour[row + 1]):
        slot = cluster[neighbour[at]]
        with_own = with_own or slot == own
        if looked[slot] != now and slot != own:
            looked[slot] = now
            choice[number] = slot
            number += 1
    return number if with_own else 0


@machine_code
def _log_labels(row, slot, cluster, labels, sure):
    """Return what labels add for a row in a cluster, sure ones only if asked for."""
    begin, other, worth = labels
    total = 0.0
    for at in range(begin[row], begin[row + 1]):
        if cluster[other[at]] == slot and (sure or abs(worth[at]) < SURE):
            total += worth[at]
    return total


@machine_code
def _draw_row(row, cluster, weight, source, apart, labels, size_term, state, model, log_weight, choice, number):
    """Take a row out, and put it into one of the clusters, or a new one, by their conditional probabilities."""
    of_slot, many, own = state[4], weight[row], cluster[row]
    _put(row, own, -many, state, model)
    cluster[row] = -1
    empty = own
    if of_slot[own, 0] > 0:
        empty = 0
        while of_slot[empty, 0] > 0:
            empty += 1
    log_weight[0] = size_term[many] + _log_of_row(row, empty, many, state, model)
    found = 1
    for at in range(number):
        slot = choice[at]
        size = of_slot[slot, 0]
        if size == 0 or size + many >= len(size_term) or not _may_join(row, slot, cluster, source, apart):
            continue
        log_weight[found] = size_term[size + many] - size_term[size] + _log_of_row(row, slot, many, state, model)
        log_weight[found] += _log_labels(row, slot, cluster, labels, True)
        choice[found - 1] = slot
        found += 1
    highest = log_weight[:found].max()
    total = np.exp(log_weight[:found] - highest).sum()
    threshold, chosen = np.random.random() * total, 0
    threshold -= math.exp(log_weight[0] - highest)
    while threshold > 0 and chosen < found - 1:
        chosen += 1
        threshold -= math.exp(log_weight[chosen] - highest)
    cluster[row] = choice[chosen - 1] if chosen > 0 else empty
    _put(row, cluster[row], many, state, model)


@machine_code
def _split_or_merge(cluster, weight, source, apart, edge, labels, size_term, state, model, order):
    """Propose to part the cluster of two rows, or to join their clusters, and accept that or not."""
    value, field_weight, of_slot, logs, rows = model[0], model[8], state[4], state[3], len(cluster)
    drawn = np.random.randint(len(edge))
    one, other = edge[drawn, 0], edge[drawn, 1]
    joined = cluster[one] == cluster[other]
    before = cluster[one], cluster[other]
    if not joined and of_slot[before[0], 0] + of_slot[before[1], 0] >= len(size_term):
        return
    sides, number = np.full(rows, -1, np.int64), 0
    log_proposal = 0.0
    np.random.shuffle(order)
    left, right, whole = rows, rows + 1, rows + 2
    _put(one, left, weight[one], state, model)
    _put(other, right, weight[other], state, model)
    sides[one], sides[other] = left, right
    for row in order:
        if row == one or row == other or (cluster[row] != before[0] and cluster[row] != before[1]):
            continue
        number += 1
        to_left = math.log(of_slot[left, 0]) + _log_of_row(row, left, weight[row], state, model)
        to_right = math.log(of_slot[right, 0]) + _log_of_row(row, right, weight[row], state, model)
        to_left += _log_labels(row, left, sides, labels, True)
        to_right += _log_labels(row, right, sides, labels, True)
        log_left = -math.log1p(math.exp(min(to_right - to_left, 700.0)))
        log_right = -math.log1p(math.exp(min(to_left - to_right, 700.0)))
        if joined:
            goes_left = math.log(np.random.random() + _LEAST) < log_left
        else:
            goes_left = cluster[row] == before[0]
        log_proposal += log_left if goes_left else log_right
        sides[row] = left if goes_left else right
        _put(row, sides[row], weight[row], state, model)
    log_split = size_term[of_slot[left, 0]] + size_term[of_slot[right, 0]]
    log_whole = size_term[of_slot[left, 0] + of_slot[right, 0]]
    if not joined:
        for row in range(rows):
            if sides[row] >= 0:
                _put(row, whole, weight[row], state, model)
    for row in range(rows):
        if sides[row] == left:  # labels of pairs that a split parts
            log_whole += _log_labels(row, right, sides, labels, True)
    held = before[0] if joined else whole
    for field in range(value.shape[1]):
        log_split += field_weight[field] * (logs[left, field, 1] + logs[right, field, 1])
        log_whole += field_weight[field] * logs[held, field, 1]
    log_ratio = log_split - log_whole - log_proposal
    accepted = math.log(np.random.random() + _LEAST) < (log_ratio if joined else -log_ratio)
    if accepted and not joined and apart:
        for row in range(rows):
            accepted = accepted and (sides[row] != left or _may_join(row, before[1], cluster, source, apart))
    free = 0
    while joined and of_slot[free, 0] > 0:
        free += 1
    for row in range(rows):
        if sides[row] < 0:
            continue
        _put(row, sides[row], -weight[row], state, model)
        if not joined:
            _put(row, whole, -weight[row], state, model)
        moves = sides[row] == right if joined else cluster[row] == before[1]
        if accepted and moves:
            _put(row, cluster[row], -weight[row], state, model)
            cluster[row] = free if joined else before[0]
            _put(row, cluster[row], weight[row], state, model)


@machine_code
def _count(state, model, counted, distorted, drawn_from):
    """Add up how often values were drawn, and how many of them were errors.

    A value counts once for an entity, and once for each distorted copy. Copies in an urn that repeat an error are none.
    """
    (integers, numbers), heads, totals, _, of_slot = state
    value, share, first, _, _, miss, far, strength, _ = model
    for slot in range(value.shape[0]):
        if of_slot[slot, 0] == 0:
            continue
        for field in range(value.shape[1]):
            entry = heads[slot, field]
            while entry >= 0:
                x, probability = integers[field, entry, 0], numbers[field, entry, 1]
                if totals[slot, field] == 1:
                    counted[first[field] + x] += 1
                    break
                draws = integers[field, entry, 1] if strength[field] == math.inf else 1.0
                right = 1 - miss[field]
                right /= max(right + miss[field] * far[field] * share[first[field] + x], _LEAST)
                wrong = draws * (1 - probability * right)
                counted[first[field] + x] += probability + wrong
                distorted[field] += wrong
                drawn_from[field] += draws
                entry = integers[field, entry, 2]
