# mypy: allow-untyped-defs
r"""Partitions of records drawn in machine code: sweeps, splits and mergers, for any density and prior of sizes.

`draw` gives every partition Π of the records the weight

.. math:: \prod_{C \in \Pi} w_{|C|} \; m(C) \cdot \frac{1}{d!} \; \text{(the last where links are labelled)},

with :math:`m(C)` the likelihood of a cluster relative to its records apart, w the weights of sizes and d the links,
records less clusters; **if** every cluster is connected in the graph of neighbours, is no larger than ``log_size``
says, and has no two records of one source. Of a complete graph that is every partition; and of any one where clusters
need not be connected: neighbours then only say where records are moved to.

| argument | what it is |
|---|---|
| `Graph` | values, neighbours, sources, labels, and weights of records: one of weight n counts as n equal members |
| `Density` | θ, b, and which likelihood: `ERROR_CLASSES`, or `HIT_MISS` with urn, near values and powers of fields |
| ``log_size`` | log w of 0, 1, … records: log m n! μ_n (Poisson-Kolchin, `log_size_weights`), zeros, or what you like |
| ``labelled`` | whether labels of entities, and not partitions, are as likely (Steorts, Hall and Fienberg 2014) |

What is kept of a cluster, and what a likelihood is, is in `densities`; where numba is off (``NUMBA_DISABLE_JIT=1``)
Python draws the same partitions from the same seed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.models.block_linkage.densities import (
    CELL,
    CLUSTERS,
    ENTRY,
    LEAST,
    MARKS,
    MOST,
    OTHER,
    RECORD,
    SLOT,
    Density,
    Work,
    add,
    empty,
    factor,
    give_back,
    joined,
    log_of_others,
    new_slot,
    pair,
    put,
    reckon,
    tables,
    take_out,
)
from consilience.models.block_linkage.enumeration import log_size_weights as log_size_weights
from consilience.models.machine_code import inner, machine_code

SURE = 1e3
"""What a sure label adds: no partition against it is ever drawn, once there was one without."""


class Graph(NamedTuple):
    """Records and who may be together.

    Parameters
    ----------
    value : int32, shape ``(record, field)``; codes into the values of all fields, -1 where missing.
    weight : int32, shape ``(record,)``; so many equal members each record counts for.
    source : int32, shape ``(record,)``; records of one source are never together. Empty where all may be.
    first_neighbour : int32, shape ``(record + 1,)``; where the neighbours of each record begin.
    neighbour : int64, shape ``(edge,)``; every pair is there twice.
    connected : whether clusters have to be.
    label : int, shape ``(label, 2)``; pairs of records of which users have told whether they belong together.
    label_worth : float64, shape ``(label,)``; what they add to the log probability where the pair is together, up to
        `SURE` and down to less that.
    """

    value: Any
    weight: Any
    source: Any
    first_neighbour: Any
    neighbour: Any
    connected: bool = True
    label: Any = np.zeros((0, 2), int)
    label_worth: Any = np.zeros(0)


class Expected(NamedTuple):
    """What draws with hit-miss add up, expected numbers given the partition.

    Parameters
    ----------
    value : shape ``(value,)``; how often each was drawn: for an entity, or by an error. Copies in an urn that repeat
        an error are none.
    distorted, drawn : shape ``(field,)``; of the values drawn for entities with several records, those by an error, and
        all. Of records without neighbours, which are as equal as their weight says, there are none.
    log_weight : shape ``(record,)``; of clusters and labels, at some record of each, but for sure labels.
    """

    value: Float[np.ndarray, " value"]
    distorted: Float[np.ndarray, " field"]
    drawn: Float[np.ndarray, " field"]
    log_weight: Float[np.ndarray, " record"]


def draw(
    random: np.random.Generator, cluster: Int[np.ndarray, " record"], graph: Graph, density: Density,
    log_size: Float[np.ndarray, " sizes_and_none"], *, labelled: bool = False, sweeps: int = 1, splits: int = 0,
    expected: Expected | None = None,
) -> Int[np.ndarray, "sweep record"]:  # fmt: skip
    """Draw partitions, one after another.

    Parameters
    ----------
    random : one number is taken for each record and sweep, and as many as splits and mergers need.
    cluster : to begin with; records with the same number, below the number of records, are together, and connected.
    graph, density : records, and how likely they are together.
    log_size : log weights of clusters of 0, 1, … records, those of the records counted. It ends with the largest size.
    labelled : whether a partition of d links has the factor 1 / d!.
    sweeps : how many partitions; in each every record is drawn anew.
    splits : how many splits and mergers are tried after each sweep.
    expected : to which each sweep adds.

    Returns
    -------
    int32; each cluster named by its first record.

    Raises
    ------
    ValueError : a cluster has more records than ``log_size`` has sizes.
    """
    size = np.bincount(cluster, graph.weight, minlength=len(cluster)).astype(int)
    if size.max(initial=0) >= len(log_size):
        raise ValueError("a cluster has more records than log_size has sizes")
    log_size = np.array(log_size, float)
    work = _started(np.ascontiguousarray(cluster, np.int64), size, graph, density)
    restricted, links = len(graph.source) > 0, int(graph.weight.sum()) if labelled else -1
    growth = np.exp(np.minimum(np.diff(log_size), 640.0))
    most = int(np.diff(graph.first_neighbour).max(initial=1))
    choice, total, waiting = np.empty(most, np.int64), np.empty(most), np.empty(len(cluster), np.int64)
    drawn = np.empty((sweeps, len(cluster)), np.int32)
    for step in range(sweeps):
        uniform = random.random(len(cluster))
        _sweep(uniform, work, log_size, growth, restricted, links, choice, total, waiting)
        left = splits if len(graph.neighbour) else 0
        while left > 0:
            # As many as one step may need, and as all do on average.
            uniform = random.random(2 * len(cluster) + 10 * left)
            left -= _split_and_merge(uniform, left, work, log_size, restricted, links, waiting)
        if expected is not None:
            _expect(work, log_size, *expected)
        drawn[step] = _named(work.records["slot"])
    return drawn


def _named(slot: Int[np.ndarray, " record"]) -> Int[np.ndarray, " record"]:
    """Return the first record of each cluster; what has no slot is alone."""
    record = np.arange(len(slot))
    first = np.full(slot.max(initial=-1) + 1, len(slot))
    np.minimum.at(first, slot[slot >= 0], record[slot >= 0])
    return np.where(slot >= 0, first[slot] if len(first) else record, record)


def _started(
    cluster: Int[np.ndarray, " record"], size: Int[np.ndarray, " record"], graph: Graph, density: Density
) -> Work:
    """Return the clusters to begin with."""
    number, num_fields = graph.value.shape
    records, slots = np.zeros(number, RECORD), np.zeros(number + 3, SLOT)
    records["slot"], records["weight"] = -1, graph.weight
    records["source"] = graph.source if len(graph.source) else np.arange(number)
    records["begin"], records["end"] = graph.first_neighbour[:-1], graph.first_neighbour[1:]
    cells, entries = np.zeros((len(slots), max(num_fields, 1)), CELL), np.zeros((number + 1) * num_fields, ENTRY)
    slots["first"], entries["following"] = np.arange(1, len(slots) + 1), np.arange(1, len(entries) + 1)
    slots["first"][-1] = cells["first"][...] = -1           # the last slot stays empty
    slots["looked"] = -1
    cells["kept"] = 1.0
    labels, of_label = np.zeros(2 * len(graph.label), OTHER), np.concatenate([*graph.label.T, np.zeros(0, int)])
    order = np.argsort(of_label, kind="stable")
    labels["code"], labels["worth"] = np.roll(of_label, len(graph.label))[order], np.tile(graph.label_worth, 2)[order]
    ends = np.searchsorted(of_label[order], np.arange(number + 1))
    records["label"], records["last_label"] = ends[:-1], ends[1:]
    work = Work(
        density.kind, graph.connected, tuple(map(float, density.class_share)), records, slots, cells, entries,
        np.array([0, 0, np.count_nonzero(size), 0]), np.ascontiguousarray(graph.value, np.int64),
        np.ascontiguousarray(graph.neighbour, np.int64), *tables(density), labels,
    )  # fmt: skip
    _begin(cluster, size, work)
    return work


@machine_code
def _begin(cluster, size, work):
    """Put records into slots."""
    own = np.empty(len(cluster), np.int64)
    for record in range(len(cluster)):
        label = cluster[record]
        if size[label] == 1:
            continue
        if size[label] > 0:                                  # its first record
            own[label] = new_slot(work)
            size[label] = 0
        put(record, own[label], work)
        reckon(own[label], work)


@machine_code
def _sweep(uniform, work, log_size, growth, restricted, links, choice, total, waiting):
    """Take every record out of its cluster and draw where it goes; one that its cluster needs to be connected stays."""
    for slot in range(len(work.slots)):
        work.slots[slot]["looked"] = -1
    for record in range(len(work.records)):
        if work.records[record]["begin"] == work.records[record]["end"]:
            continue
        own = work.records[record]["slot"]
        if own >= 0:
            if not _may_leave(record, own, work, waiting):
                continue
            take_out(record, own, work)
        else:
            work.counter[CLUSTERS] -= 1
        weight = work.records[record]["weight"]
        plain = weight == 1 and len(work.near) == 0 and (
            work.records[record]["label"] == work.records[record]["last_label"]
        )
        number = _weigh(record, plain, work, log_size, growth, restricted, choice, total)
        alone = log_size[weight]
        if plain:
            alone = math.exp(alone)
        else:
            alone += joined(record, len(work.slots) - 1, work) if weight > 1 else 0.0
            highest = alone
            for at in range(number):
                highest = max(highest, total[at])
            for at in range(number):
                total[at] = math.exp(total[at] - highest)
            alone = math.exp(alone - highest)
        # So many links there would be with any of them.
        per_link = 1.0 / (links - work.counter[CLUSTERS]) if links >= 0 else 1.0
        sum_of_weights = alone
        for at in range(number):
            sum_of_weights += min(total[at] * per_link, MOST)
            total[at] = sum_of_weights
        threshold = uniform[record] * sum_of_weights
        if threshold < alone or number == 0:
            work.counter[CLUSTERS] += 1
            if weight > 1:
                own = new_slot(work)
                put(record, own, work)
                reckon(own, work)
            continue
        chosen = 0
        while chosen < number - 1 and total[chosen] <= threshold:
            chosen += 1
        own = choice[chosen]
        if own < 0:
            own = new_slot(work)
            put(-1 - choice[chosen], own, work)
        put(record, own, work)
        reckon(own, work)


@inner
def _weigh(record, plain, work, log_size, growth, restricted, choice, total):
    """Set the choices of a record, slots or -1 - record, and the weights; return how many there are.

    They are logarithms but for plain records, those of weight one without labels or near values.
    """
    number, weight = 0, work.records[record]["weight"]
    for at in range(work.records[record]["begin"], work.records[record]["end"]):
        one = work.neighbour[at]
        there = work.records[one]["slot"]
        size = work.slots[there]["size"] if there >= 0 else 1
        if size + weight >= len(log_size):
            continue
        if there < 0:
            if restricted and work.records[one]["source"] == work.records[record]["source"]:
                continue
            choice[number] = -1 - one
        else:
            if work.slots[there]["looked"] == record:
                continue
            work.slots[there]["looked"] = record
            if restricted and _has_source(record, there, work):
                continue
            choice[number] = there
        if plain:
            total[number] = growth[size] * (factor(record, there, work) if there >= 0 else pair(record, one, work))
        else:
            total[number] = log_size[size + weight] - log_size[size]
            if there < 0:
                own = new_slot(work)
                total[number] += add(one, own, work) + joined(record, own, work)
                give_back(own, work)
            else:
                total[number] += joined(record, there, work)
        number += 1
    return number


@machine_code
def _expect(work, log_size, value, distorted, drawn, log_weight):
    """Add up what is expected given the clusters as they are."""
    for record in range(len(work.records)):
        own = work.records[record]["slot"]
        if own < 0:
            log_weight[record] += log_size[1]
            for code in work.value[record]:
                if code >= 0:
                    value[code] += 1
            continue
        for at in range(work.records[record]["label"], work.records[record]["last_label"]):
            if work.records[work.labels[at]["code"]]["slot"] == own and abs(work.labels[at]["worth"]) < SURE:
                log_weight[record] += work.labels[at]["worth"] / 2
        if work.slots[own]["first"] != record:
            continue
        log_weight[record] += log_size[work.slots[own]["size"]]
        lonely = work.records[record]["begin"] == work.records[record]["end"]
        for column in range(work.value.shape[1]):
            cell, field, known = work.cells[own, column], work.fields[column], 0
            at = cell["first"]
            while at >= 0:
                entry, share = work.entries[at], work.values[work.entries[at]["value"]]["share"]
                number = entry["number"]
                others = log_of_others(entry["value"], 0, number, known, column, work)
                log_weight[record] += field["power"] * others
                known += number
                draws = float(number) if field["strength"] == np.inf else 1.0
                right = (1 - field["rate"]) / max(1 - field["rate"] + field["rate"] * share, LEAST)
                true = entry["kept"] * share
                wrong = draws * (1 - true * right)
                if lonely or cell["number"] == 1:
                    draws, true, wrong = 0.0, 1.0, 0.0
                value[entry["value"]] += true + wrong
                distorted[column] += wrong
                drawn[column] += draws
                at = entry["following"]
            log_weight[record] += field["power"] * cell["log_sum"]


# ---- splits and mergers ----


@machine_code
def _split_and_merge(uniform, steps, work, log_size, restricted, links, waiting):
    """Try splits and mergers of random neighbours while there are random numbers; return how many were tried."""
    place = 0
    for step in range(steps):
        if place + 3 + 2 * len(work.records) > len(uniform):
            return step
        one = int(uniform[place] * len(work.records))
        begin, end = work.records[one]["begin"], work.records[one]["end"]
        if begin < end:
            other = work.neighbour[begin + int(uniform[place + 1] * (end - begin))]
            place = _split_or_merge(uniform, place + 2, one, other, work, log_size, restricted, links, waiting)
        else:
            place += 2
    return steps


@inner
def _split_or_merge(uniform, place, one, other, work, log_size, restricted, links, waiting):
    """Try to split the cluster of two neighbours, or to merge their two, by sequential allocation (Dahl 2003).

    The others are allotted to the two in random order, in proportion to prior and likelihood of what there is so far;
    q is the probability of these choices, or of those that lead to the present two clusters. Return the place of the
    next random number.
    """
    own, there = work.records[one]["slot"], work.records[other]["slot"]
    together = own >= 0 and own == there
    if not together and not _may_merge(one, other, work, len(log_size) - 1, restricted):
        return place
    loose = np.empty((2, _members(own, work) + (0 if together else _members(there, work))), np.int64)
    number = _gathered(own, 1, one, other, loose, 0, work)
    if not together:
        number = _gathered(there, 0, one, other, loose, number, work)
    for at in range(number - 1, 0, -1):
        swap = int(uniform[place] * (at + 1))
        place += 1
        for row in range(2):
            loose[row, at], loose[row, swap] = loose[row, swap], loose[row, at]

    first, second = new_slot(work), new_slot(work)
    log_ratio = -add(one, first, work) - add(other, first, work)
    for at in range(number):
        log_ratio -= add(loose[0, at], first, work)
    log_ratio -= log_size[work.slots[first]["size"]]
    empty(first, work)
    log_ratio += add(one, first, work) + add(other, second, work)
    for at in range(number):
        record = loose[0, at]
        log_odds = _allotted(record, first, work, log_size) - _allotted(record, second, work, log_size)
        log_odds = max(min(log_odds, 600.0), -600.0)
        if together:
            loose[1, at] = 1 if uniform[place] < 1 / (1 + math.exp(-log_odds)) else 0
            place += 1
        log_ratio += math.log1p(math.exp(-log_odds if loose[1, at] == 1 else log_odds))     # - log q
        log_ratio += add(record, first if loose[1, at] == 1 else second, work)
    log_ratio += log_size[work.slots[first]["size"]] + log_size[work.slots[second]["size"]]
    if links >= 0:
        log_ratio += math.log(links - work.counter[CLUSTERS] + (0 if together else 1))
    log_uniform = math.log(max(uniform[place], LEAST))
    place += 1
    split = log_uniform < log_ratio if together else log_uniform >= -log_ratio
    if split and together and work.connected:
        split = _connected(first, work, waiting) and _connected(second, work, waiting)
    if not split:
        empty(first, work)
        empty(second, work)
        put(one, first, work)
        put(other, first, work)
        for at in range(number):
            put(loose[0, at], first, work)
        reckon(first, work)
    work.counter[CLUSTERS] += (1 if split else 0) - (0 if together else 1)
    give_back(first, work)
    give_back(second, work)
    return place


@inner
def _members(own, work):
    """Return how many records a slot has."""
    number, record = 0, work.slots[own]["first"] if own >= 0 else -1
    while record >= 0:
        number += 1
        record = work.records[record]["following"]
    return number


@inner
def _gathered(own, mark, one, other, loose, number, work):
    """Write the members of a slot but two behind so many that are there, with a mark, and free it; return how many."""
    if own < 0:
        return number
    record = work.slots[own]["first"]
    while record >= 0:
        if record != one and record != other:
            loose[0, number], loose[1, number] = record, mark
            number += 1
        record = work.records[record]["following"]
    empty(own, work)
    give_back(own, work)
    return number


@inner
def _allotted(record, own, work, log_size):
    """Return the log weight of a cluster with another record, relative to it without."""
    size = work.slots[own]["size"]
    return log_size[size + work.records[record]["weight"]] - log_size[size] + joined(record, own, work)


@inner
def _may_merge(one, other, work, largest, restricted):
    """Return whether the clusters of two records are small enough together, and have no source in common."""
    own, there = work.records[one]["slot"], work.records[other]["slot"]
    size = work.slots[own]["size"] if own >= 0 else 1
    size += work.slots[there]["size"] if there >= 0 else 1
    if size > largest or not restricted:
        return size <= largest
    if there < 0:
        own, there, one, other = there, own, other, one
    if there < 0:
        return work.records[one]["source"] != work.records[other]["source"]
    record = work.slots[own]["first"] if own >= 0 else one
    while record >= 0:
        if _has_source(record, there, work):
            return False
        record = work.records[record]["following"] if own >= 0 else -1
    return True


@inner
def _connected(own, work, waiting):
    """Return whether a cluster is connected."""
    work.counter[MARKS] += 1
    mark, record = work.counter[MARKS], work.slots[own]["first"]
    work.records[record]["mark"] = mark
    waiting[0] = record
    num_waiting, left = 1, _members(own, work) - 1
    while num_waiting > 0 and left > 0:
        num_waiting -= 1
        here = waiting[num_waiting]
        for at in range(work.records[here]["begin"], work.records[here]["end"]):
            one = work.neighbour[at]
            if work.records[one]["slot"] == own and work.records[one]["mark"] != mark:
                work.records[one]["mark"] = mark
                waiting[num_waiting] = one
                num_waiting += 1
                left -= 1
    return left == 0


@inner
def _may_leave(record, own, work, waiting):
    """Return whether a record may leave: where a cluster is connected without it, that is its neighbours in it are.

    Where clusters need not be connected, it may leave what it could come back to.
    """
    work.counter[MARKS] += 2
    wanted, reached, left = work.counter[MARKS] - 1, work.counter[MARKS], 0
    for at in range(work.records[record]["begin"], work.records[record]["end"]):
        one = work.neighbour[at]
        if work.records[one]["slot"] == own:
            work.records[one]["mark"] = wanted
            waiting[0] = one
            left += 1
    if not work.connected:
        return left > 0 or work.slots[own]["size"] == work.records[record]["weight"]
    if left <= 1:
        return True
    work.records[waiting[0]]["mark"], work.records[record]["mark"] = reached, reached
    left -= 1
    num_waiting = 1
    while num_waiting > 0:
        num_waiting -= 1
        here = waiting[num_waiting]
        for at in range(work.records[here]["begin"], work.records[here]["end"]):
            one = work.neighbour[at]
            if work.records[one]["slot"] != own or work.records[one]["mark"] == reached:
                continue
            if work.records[one]["mark"] == wanted:
                left -= 1
                if left == 0:
                    return True
            work.records[one]["mark"] = reached
            waiting[num_waiting] = one
            num_waiting += 1
    return False


@inner
def _has_source(record, own, work):
    """Return whether a cluster has a record of the source of this one."""
    one = work.slots[own]["first"]
    while one >= 0:
        if work.records[one]["source"] == work.records[record]["source"]:
            return True
        one = work.records[one]["following"]
    return False
