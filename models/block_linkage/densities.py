# mypy: allow-untyped-defs
r"""Likelihoods of clusters in machine code: what is kept of a cluster, and what one record more is worth.

**Hit-miss.** In each field the true value y of an entity is one that its records show, or another one, and given y
their values are draws with the probabilities

.. math::

    G(x \mid y) = (1 - b)\, 1[x = y] + b\, (K(x, y) + r\, \theta_x),

independent ones where the strength a is infinite, else those of a Pólya urn, whose marginal is

.. math::

    p(x \mid y) = \frac{\Gamma(a)}{\Gamma(a + n)} \prod_v \frac{\Gamma(a\, G(v \mid y) + n_v)}{\Gamma(a\, G(v \mid y))},

so that a value that was shown before is copied: small a, few origins. With b = 1 and K = 0 that is the
Dirichlet-multinomial. What values near those shown, but not shown, would add as true ones is left out. All is relative
to records alone, in which x has the probability c θ_x, c = 1 - b + b r; without K and copies that is hit-miss of the
distortion b r / c. Error classes are those of `error_classes`.

Of a cluster every field has a chain of its distinct values with their numbers, so that a step costs the distinct values
and not the members; and of each value y how probable all values are given it, that a join needs. A record of weight one
that is alone keeps nothing.

A likelihood is a few short functions that go by ``kind``, with a branch for each: `tables` (of values and fields),
`pair` (two records of weight one that are alone), `joined` (log m(C + record) - log m(C), for any weight of the record;
C may be empty) and `factor` (its exponential, for weight one), `put` and `take_out` (what each member adds), `reckon`
(what is kept of a cluster, after its members have changed). Another one adds a branch to each of them, and its
parameters to `Density`. Sweeps, splits, weights and priors ask nothing else.

Branches and not closures: numba keeps on disk what is a function of a module, and compiles a closure anew in every
process.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from consilience.models.machine_code import inlined, inner

HIT_MISS, ERROR_CLASSES = 0, 1
MOST, _FEWEST = 1e280, 1e-280
LEAST = 1e-300         # for shares that single precision rounds to zero


class Density(NamedTuple):
    """A likelihood of the records of one entity, its own parameters summed out.

    Parameters
    ----------
    kind : `HIT_MISS` or `ERROR_CLASSES`; what follows ``class_share`` is of hit-miss.
    field : int32, shape ``(value,)``; the field of each value.
    value_share : float64, shape ``(value,)``; θ.
    distortion : float64, shape ``(field,)``; b.
    class_share : float64, shape ``(3,)``; π of error classes, of other likelihoods anything.
    far, strength, power : float64, shape ``(field,)``; r, a, and the power of each field's likelihood. None of them are
        ones, infinite, and ones.
    near : K without its zeros, a `scipy.sparse.csr_array`, symmetric and of sorted indices; ``None`` if it is zero.
    """

    kind: int
    field: Any
    value_share: Any
    distortion: Any
    class_share: Any = (0.0, 0.0, 0.0)
    far: Any = None
    strength: Any = None
    power: Any = None
    near: Any = None


RECORD = np.dtype([
    ("slot", "i8"), ("following", "i8"), ("weight", "i8"), ("source", "i8"), ("begin", "i8"), ("end", "i8"),
    ("mark", "i8"), ("label", "i8"), ("last_label", "i8"), ("log_head", "f8"),
])  # fmt: skip
SLOT = np.dtype([("size", "i8"), ("first", "i8"), ("looked", "i8")])
CELL = np.dtype([("first", "i8"), ("number", "i8"), ("kept", "f8"), ("log_sum", "f8")])
ENTRY = np.dtype([("value", "i8"), ("number", "i8"), ("following", "i8"), ("log_ratio", "f8"), ("kept", "f8")])
VALUE = np.dtype([("share", "f8"), ("log_ratio", "f8"), ("alike", "f8"), ("near", "i8"), ("last_near", "i8")])
FIELD = np.dtype([(name, "f8") for name in ("rate", "near", "alone", "strength", "power", "differ")])
OTHER = np.dtype([("code", "i8"), ("worth", "f8")])
_FREE_SLOT, _FREE_ENTRY, CLUSTERS, MARKS = range(4)
"""Places of a counter: the first free slot and entry, the number of clusters, and the last mark that was given."""


class Work(NamedTuple):
    """Clusters as they are, and all that is read to change them. Few arrays: each costs at every call.

    Parameters
    ----------
    kind : of `Density`.
    connected : as in `Graph`.
    classes : π of error classes, three numbers.
    records : the slot of each, -1 if it is alone and of weight one; the next member there; log w of it as the head;
        the ends of its neighbours and of its labels; and marks of searches.
    slots : the sum of the weights of the members, and the first of these. Free ones are chained by ``first``.
    cells : of a slot and field, where the chain of entries begins, how many members have the field, and what `reckon`
        keeps of all of them.
    entries : a value that members show, in how many (weights counted), the next entry; as the true value, how much more
        probable it makes all values than one that no member shows, the logarithm; and what `reckon` keeps of it.
    counter : see `_FREE_SLOT`.
    value, neighbour : as in `Graph`.
    values : θ, log G(x | x) less that given another value, the factor of a pair with the value, and the ends of what is
        near.
    fields : b r / c, b / c or 0 where nothing is near, c, a c, the power, and the factor of a pair that differs.
    near, labels : near values with K, and of labels the other records with what they add to the log probability.
    """

    kind: int
    connected: bool
    classes: Any
    records: Any
    slots: Any
    cells: Any
    entries: Any
    counter: Any
    value: Any
    neighbour: Any
    values: Any
    fields: Any
    near: Any
    labels: Any


def tables(density: Density) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what a likelihood knows of values, of fields and of near values before any cluster."""
    miss = np.clip(np.asarray(density.distortion, float), LEAST, 1)
    far, strength, power = (
        np.full(len(miss), default if given is None else given)
        for given, default in ((density.far, 1.0), (density.strength, np.inf), (density.power, 1.0))
    )
    fields, values = np.zeros(len(miss), FIELD), np.zeros(len(density.value_share), VALUE)
    alone = fields["alone"] = 1 - miss + miss * far
    fields["rate"], fields["strength"], fields["power"] = miss * far / alone, strength * alone, power
    fields["differ"] = fields["rate"] * (2 - fields["rate"]) / (1 + 1 / strength)
    share = values["share"] = np.maximum(np.asarray(density.value_share, float), LEAST)
    of_value = np.append(fields, np.ones(1, FIELD))[density.field]      # after the last field: padding
    rate = of_value["rate"]
    values["log_ratio"] = np.logaddexp(0, np.log(np.maximum(1 - rate, LEAST)) - np.log(rate) - np.log(share))
    copy, again = rate + (1 - rate) / share, 1 / (1 + of_value["strength"] / of_value["alone"])
    alike = (1 - again) * (rate + (1 - rate) * copy) + again / (of_value["alone"] * share)
    values["alike"] = np.minimum(copy if density.kind == ERROR_CLASSES else alike ** of_value["power"], MOST)
    fields["differ"] **= power
    if density.near is None:
        return values, fields, np.zeros(0, OTHER)
    near = np.zeros(density.near.nnz, OTHER)
    near["code"], near["worth"] = density.near.indices, density.near.data
    values["near"], values["last_near"] = density.near.indptr[:-1], density.near.indptr[1:]
    fields["near"][density.field[near["code"]]] = 1
    fields["near"] *= miss / alone
    return values, fields, near


# ---- likelihoods ----


@inlined
def pair(record, one, work):
    """Return m of two records of weight one; of hit-miss where nothing is near."""
    if work.kind == ERROR_CLASSES:
        exact, once, reverse, many = given(record, one, work)
        return (limited(exact + once + many) + limited(exact + reverse + many)) / 2
    weight = 1.0
    for column in range(work.value.shape[1]):
        code, other = work.value[record, column], work.value[one, column]
        if code >= 0 and other >= 0:
            weight *= work.values[code]["alike"] if code == other else work.fields[column]["differ"]
    return weight


@inner
def factor(record, own, work):
    """Return m of a cluster with another record of weight one, relative to it without; where nothing is near."""
    if work.kind == ERROR_CLASSES:
        return math.exp(min(joined_heads(record, own, work), 640.0))
    weight = 1.0
    for column in range(work.value.shape[1]):
        code = work.value[record, column]
        if code < 0:
            continue
        at, field = entry_of(code, own, column, work), work.fields[column]
        found = field["rate"] + (1 - field["rate"]) * (
            work.entries[at]["kept"] if at >= 0 else work.cells[own, column]["kept"]
        )
        if field["strength"] < np.inf:
            number = work.entries[at]["number"] if at >= 0 else 0
            found = field["strength"] * found + number / work.values[code]["share"]
            found /= field["strength"] + field["alone"] * work.cells[own, column]["number"]
        weight *= found if field["power"] == 1 else found ** field["power"]
    return min(weight, MOST)


@inner
def joined(record, own, work):
    """Return log m of a cluster with another record, whatever its weight, less log m of it without; and its labels."""
    log_ratio = 0.0
    for at in range(work.records[record]["label"], work.records[record]["last_label"]):
        if work.records[work.labels[at]["code"]]["slot"] == own:
            log_ratio += work.labels[at]["worth"]
    if work.kind == ERROR_CLASSES:
        return log_ratio + joined_heads(record, own, work)
    weight = work.records[record]["weight"]
    if weight == 1 and len(work.near) == 0:
        return log_ratio + math.log(max(factor(record, own, work), LEAST))
    for column in range(work.value.shape[1]):
        code = work.value[record, column]
        if code >= 0:
            log_ratio += work.fields[column]["power"] * shown_again(code, weight, own, column, work)
    return log_ratio


@inner
def shown_again(code, weight, own, column, work):
    """Return by how much log m of a field grows where so many members more show a value."""
    at, cell, share = entry_of(code, own, column, work), work.cells[own, column], work.values[code]["share"]
    number = work.entries[at]["number"] if at >= 0 else 0
    log_ratio = log_of_others(code, number, weight, cell["number"], column, work)
    # Each true value of posterior probability p makes them e^s times as probable: 1 + the sum of p (e^s - 1).
    rise = log_rise(code, code, number, weight, column, work)
    before = work.entries[at]["log_ratio"] if at >= 0 else 0.0
    if at < 0 and work.fields[column]["near"] > 0:
        rise += log_given(code, own, column, work)
    total, highest = summed(1.0, 0.0, log_excess(rise) + math.log(share) + before - cell["log_sum"], 1)
    at = cell["first"] if work.fields[column]["near"] > 0 else -1
    while at >= 0:
        true = work.entries[at]["value"]
        rise = log_rise(code, true, number, weight, column, work) if true != code else 0.0
        if rise > 0:
            log_weight = math.log(work.values[true]["share"]) + work.entries[at]["log_ratio"] - cell["log_sum"]
            total, highest = summed(total, highest, log_excess(rise) + log_weight, 1)
        at = work.entries[at]["following"]
    return log_ratio + highest + math.log(total)


@inner
def log_excess(rise):
    """Return log(e^s - 1)."""
    return rise + math.log(max(-math.expm1(-rise), LEAST))


@inner
def log_of_others(code, number, weight, size, column, work):
    """Return how probable so many members more with a value are given a true one that nobody shows, relative to alone.

    Parameters
    ----------
    number, size : how many members show the value before, and how many have the field.
    """
    field, share = work.fields[column], work.values[code]["share"]
    if field["strength"] == np.inf:
        return weight * math.log(field["rate"])
    log_ratio, strength = -weight * math.log(share), field["strength"]
    for copy in range(weight):
        top = strength * field["rate"] * share + number + copy
        log_ratio += math.log(top / (strength + field["alone"] * (size + copy)))
    return log_ratio


@inner
def log_rise(code, true, number, weight, column, work):
    """Return how much more probable a true value makes so many members more with a value, than one that nobody shows.

    Parameters
    ----------
    number : how many members show the value before.
    """
    field, share = work.fields[column], work.values[code]["share"]
    more = near_share(code, true, work) * field["near"] if field["near"] > 0 else 0.0
    if code == true:
        if more == 0 and field["strength"] == np.inf:
            return weight * work.values[code]["log_ratio"]
        more += 1 - field["rate"]
    if more == 0:
        return 0.0
    base = max(field["rate"] * share, LEAST)
    if field["strength"] == np.inf:
        return weight * math.log1p(more / base)
    log_ratio, base, more = 0.0, field["strength"] * base, field["strength"] * more
    for copy in range(weight):
        log_ratio += math.log1p(more / (base + number + copy))
    return log_ratio


@inner
def log_given(true, own, column, work):
    """Return how much more probable a true value makes the values of a cluster, than one that nobody shows."""
    total, at = 0.0, work.cells[own, column]["first"]
    while at >= 0:
        total += log_rise(work.entries[at]["value"], true, 0, work.entries[at]["number"], column, work)
        at = work.entries[at]["following"]
    return total


@inner
def near_share(code, true, work):
    """Return K of two values, zero if they are not near."""
    low, high = work.values[code]["near"], work.values[code]["last_near"]
    while low < high:
        middle = (low + high) // 2
        if work.near[middle]["code"] < true:
            low = middle + 1
        else:
            high = middle
    found = low < work.values[code]["last_near"] and work.near[low]["code"] == true
    return work.near[low]["worth"] if found else 0.0


@inner
def joined_heads(record, own, work):
    r"""Return log m of error classes with another record less that without: one of the others is the head, or it is.

    .. math:: m(C) = \frac{1}{|C|} \sum_{h \in C} n_h w_h, \qquad w_h = R(h \mid h)^{n_h - 1}
              \prod_{j \in C, j \neq h} R(j \mid h)^{n_j}
    """
    size, weight = work.slots[own]["size"], work.records[record]["weight"]
    exact, once, _, many = given(record, record, work)
    log_head = (weight - 1) * math.log(limited(exact + once + many))
    highest, total, member = -np.inf, 0.0, work.slots[own]["first"]
    while member >= 0:
        times = work.records[member]["weight"]
        exact, once, reverse, many = given(record, member, work)
        log_head += times * math.log(limited(exact + reverse + many))
        own_head = work.records[member]["log_head"] + weight * math.log(limited(exact + once + many))
        total, highest = summed(total, highest, own_head, times)
        member = work.records[member]["following"]
    total, highest = summed(total, highest, log_head, weight)
    before = work.cells[own, 0]["log_sum"] - math.log(size) if size > 0 else 0.0
    return highest + math.log(total) - math.log(size + weight) - before


@inner
def summed(total, highest, log_weight, times):
    """Return a sum of exponentials with another one, relative to the highest, and that."""
    if log_weight > highest:
        return total * math.exp(highest - log_weight) + times, log_weight
    return total + times * math.exp(log_weight - highest), highest


@inner
def limited(ratio):
    """Return a ratio no more than 1e280 and no less than 1e-280."""
    return max(min(ratio, MOST), _FEWEST)


@inner
def given(record, head, work):
    """Return R of a record given a head: exact, with one error, this one the other way round, with many errors."""
    num_fields = work.value.shape[1]
    exact, many, missing, differing, where = 1.0, work.classes[2], 0, 0, 0
    for column in range(num_fields):
        shown, true = work.value[record, column], work.value[head, column]
        if shown < 0 or true < 0:
            missing += 1
        elif shown == true:
            exact /= work.values[shown]["share"]
            many *= work.values[shown]["alike"]
        else:
            differing += 1
            where = column
            many *= work.fields[column]["rate"]
    if differing == 0:
        once = exact * work.classes[1] * missing / num_fields
        return exact * work.classes[0], once, once, many
    if differing > 1:
        return 0.0, 0.0, 0.0, many
    once = exact * work.classes[1] / num_fields
    share, true_share = work.values[work.value[record, where]]["share"], work.values[work.value[head, where]]["share"]
    # The others have at least the share of the one that is shown, whatever rounding makes of the difference.
    return 0.0, once / max(1 - true_share, share), once / max(1 - share, true_share), many


@inner
def reckon(own, work):
    """Set what is kept of a cluster, after its members have changed.

    Of hit-miss that is for every field log Z, Z = 1 + the sum over its values of θ (s - 1), with log s the ratio of the
    entry, and 1 / Z; and for each value s / Z, its probability as the true one relative to θ. Of error classes it is
    the log of the sum of all w.
    """
    if work.kind == ERROR_CLASSES:
        highest, total, member = -np.inf, 0.0, work.slots[own]["first"]
        while member >= 0:
            total, highest = summed(total, highest, work.records[member]["log_head"], work.records[member]["weight"])
            member = work.records[member]["following"]
        work.cells[own, 0]["log_sum"] = highest + math.log(total) if total > 0 else 0.0
        return
    for column in range(work.value.shape[1]):
        scale, at = 0.0, work.cells[own, column]["first"]
        while at >= 0:
            scale = max(scale, work.entries[at]["log_ratio"])
            at = work.entries[at]["following"]
        nothing = math.exp(-scale)
        total, at = nothing, work.cells[own, column]["first"]
        while at >= 0:
            power = math.exp(work.entries[at]["log_ratio"] - scale)
            work.entries[at]["kept"] = power
            total += work.values[work.entries[at]["value"]]["share"] * (power - nothing)
            at = work.entries[at]["following"]
        work.cells[own, column]["log_sum"], work.cells[own, column]["kept"] = scale + math.log(total), nothing / total
        at = work.cells[own, column]["first"]
        while at >= 0:
            work.entries[at]["kept"] /= total
            at = work.entries[at]["following"]


# ---- clusters ----


@inner
def new_slot(work):
    """Return a slot that was free, empty."""
    own = work.counter[_FREE_SLOT]
    work.counter[_FREE_SLOT] = work.slots[own]["first"]
    work.slots[own]["first"] = -1
    return own


@inlined
def entry_of(code, own, column, work):
    """Return the entry of a value of a slot, -1 if there is none."""
    at = work.cells[own, column]["first"]
    while at >= 0 and work.entries[at]["value"] != code:
        at = work.entries[at]["following"]
    return at


@inner
def add(record, own, work):
    """Put a record into a slot; return by how much the log likelihood of the cluster has grown."""
    log_ratio = joined(record, own, work)
    put(record, own, work)
    reckon(own, work)
    return log_ratio


@inner
def put(record, own, work):
    """Put a record into a slot; what is kept of it is to be set anew."""
    weight = work.records[record]["weight"]
    if work.kind == ERROR_CLASSES:
        weigh_heads(record, own, 1.0, work)
    else:
        for column in range(work.value.shape[1]):
            if work.value[record, column] >= 0:
                put_value(work.value[record, column], weight, own, column, work)
    work.records[record]["slot"] = own
    work.records[record]["following"] = work.slots[own]["first"]
    work.slots[own]["first"] = record
    work.slots[own]["size"] += weight


@inlined
def put_value(code, weight, own, column, work):
    """Put a value into its chain so many times."""
    at = entry_of(code, own, column, work)
    if at < 0:
        at = work.counter[_FREE_ENTRY]
        work.counter[_FREE_ENTRY] = work.entries[at]["following"]
        work.entries[at]["value"], work.entries[at]["number"], work.entries[at]["log_ratio"] = code, 0, 0.0
        if work.fields[column]["near"] > 0:
            work.entries[at]["log_ratio"] = log_given(code, own, column, work)
        work.entries[at]["following"] = work.cells[own, column]["first"]
        work.cells[own, column]["first"] = at
    shift(at, 1.0, weight, own, column, work)
    work.entries[at]["number"] += weight
    work.cells[own, column]["number"] += weight


@inlined
def shift(at, sign, weight, own, column, work):
    """Bring the ratios of a chain up to date where so many members come (sign 1.0) or have gone (-1.0) with a value."""
    field, code, number = work.fields[column], work.entries[at]["value"], work.entries[at]["number"]
    if field["near"] == 0:
        if field["strength"] == np.inf:
            work.entries[at]["log_ratio"] = (number + max(sign, 0.0) * weight) * work.values[code]["log_ratio"]
        else:
            work.entries[at]["log_ratio"] += sign * log_rise(code, code, number, weight, column, work)
        return
    one = work.cells[own, column]["first"]
    while one >= 0:
        true = work.entries[one]["value"]
        work.entries[one]["log_ratio"] += sign * log_rise(code, true, number, weight, column, work)
        one = work.entries[one]["following"]


@inner
def weigh_heads(record, own, sign, work):
    """Bring log w of the members of a cluster up to date where a record comes (sign 1.0) or has gone (-1.0)."""
    weight, member = work.records[record]["weight"], work.slots[own]["first"]
    exact, once, _, many = given(record, record, work)
    log_head = (weight - 1) * math.log(limited(exact + once + many))
    while member >= 0:
        exact, once, reverse, many = given(record, member, work)
        work.records[member]["log_head"] += sign * weight * math.log(limited(exact + once + many))
        log_head += work.records[member]["weight"] * math.log(limited(exact + reverse + many))
        member = work.records[member]["following"]
    work.records[record]["log_head"] = log_head


@inner
def take_out(record, own, work):
    """Take a record out of its slot; what is left over is brought up to date, or gives the slot back."""
    if work.slots[own]["first"] == record:
        work.slots[own]["first"] = work.records[record]["following"]
    else:
        before = work.slots[own]["first"]
        while work.records[before]["following"] != record:
            before = work.records[before]["following"]
        work.records[before]["following"] = work.records[record]["following"]
    weight = work.records[record]["weight"]
    work.records[record]["slot"] = -1
    work.slots[own]["size"] -= weight
    if work.slots[own]["first"] < 0:
        work.counter[CLUSTERS] -= 1
    if work.kind == ERROR_CLASSES:
        weigh_heads(record, own, -1.0, work)
    else:
        for column in range(work.value.shape[1]):
            if work.value[record, column] >= 0:
                take_value(work.value[record, column], weight, own, column, work)
    if work.slots[own]["size"] > 1:
        reckon(own, work)
    else:
        give_back(own, work)


@inlined
def take_value(code, weight, own, column, work):
    """Take a value out of its chain so many times."""
    before, at = -1, work.cells[own, column]["first"]
    while work.entries[at]["value"] != code:
        before, at = at, work.entries[at]["following"]
    work.entries[at]["number"] -= weight
    work.cells[own, column]["number"] -= weight
    shift(at, -1.0, weight, own, column, work)
    if work.entries[at]["number"] > 0:
        return
    if before < 0:
        work.cells[own, column]["first"] = work.entries[at]["following"]
    else:
        work.entries[before]["following"] = work.entries[at]["following"]
    work.entries[at]["following"] = work.counter[_FREE_ENTRY]
    work.counter[_FREE_ENTRY] = at


@inner
def empty(own, work):
    """Take all members out of a slot, which stays taken."""
    record = work.slots[own]["first"]
    while record >= 0:
        work.records[record]["slot"] = -1
        record = work.records[record]["following"]
    work.slots[own]["first"], work.slots[own]["size"] = -1, 0
    for column in range(work.value.shape[1]):
        at = work.cells[own, column]["first"]
        while at >= 0:
            following = work.entries[at]["following"]
            work.entries[at]["following"] = work.counter[_FREE_ENTRY]
            work.counter[_FREE_ENTRY] = at
            at = following
        cell = work.cells[own, column]
        cell["first"], cell["number"], cell["log_sum"], cell["kept"] = -1, 0, 0.0, 1.0


@inner
def give_back(own, work):
    """Free a slot if nothing is in it, or one record of weight one."""
    if work.slots[own]["size"] > 1:
        return
    empty(own, work)
    work.slots[own]["first"] = work.counter[_FREE_SLOT]
    work.counter[_FREE_SLOT] = own
