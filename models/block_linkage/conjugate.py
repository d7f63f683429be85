# mypy: allow-untyped-defs
r"""Hyperparameters given who is together: what is hidden is drawn and counted, then θ, b, π, μ and m are, in NumPy.

**Hit-miss.** Of a field of a cluster that two records or more show, the true value and the distortions are drawn:
"copy v" has the weight θ_v (r_v^n_v - 1) for each value v that is there, with r_v = 1 + (1 - b) / (b θ_v) and n_v
records that show it, and "free" the weight 1; free, the true value is any, in the shares θ, and it may be one that is
there. That is exact, because the two ways to a value add up to θ_v r_v^n_v. Of a field that one record of a cluster
shows all of this stays summed out: its value counts once for θ and says nothing of b, which mixes several times as
fast.

**Error classes.** In each cluster of several records the head is h in proportion to
:math:`\prod_{i \neq h} R(i \mid h)`, and the class of each other record s in proportion to
:math:`\pi_s R_s(i \mid h)`. Then everything is counted:

- θ, one for each value of a head, of a record that is alone, of a record in a field that its head lacks, and of an
  error: where a record of one error differs from its head, and the distorted fields of a record with many. Where such
  a record agrees with its head, it is distorted all the same with probability :math:`b \theta / (b \theta + 1 - b)`;
- b, from the fields of records with many errors that both have;
- π, from the classes.

One error is drawn in the shares θ from the values that are not the head's y, so that its density has the factor
:math:`1 / (1 - \theta_y)`, which no Dirichlet distribution has. It is the sum over k = 0, 1, … of :math:`\theta_y^k`: k
is how often y itself came out before another value did. So k is drawn too, from the geometric distribution
:math:`(1 - \theta_y) \theta_y^k`, and counts k times for y. Given all k, θ is Dirichlet distributed, exactly.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.models.block_linkage.densities import ERROR_CLASSES, LEAST, MOST, Density, given, tables
from consilience.models.machine_code import inner, machine_code


class Counts(NamedTuple):
    """What true values and errors add to the parameters of the priors.

    Parameters
    ----------
    value : shape ``(value,)``; how often each was drawn in the shares θ.
    distorted : shape ``(field, 2)``; how many records of clusters of several are distorted, and how many are not.
    of_class : shape ``(3,)``; how many records are of each error class; zero where there are none.
    """

    value: Float[np.ndarray, " value"]
    distorted: Float[np.ndarray, "field 2"]
    of_class: Float[np.ndarray, " class"]


class _Read(NamedTuple):
    """What is read of `densities.Work` to compare two records."""

    classes: Any
    value: Any
    values: Any
    fields: Any


def draw_counts(
    random: np.random.Generator, cluster: Int[np.ndarray, " record"], value: Int[np.ndarray, "record field"],
    density: Density,
) -> Counts:  # fmt: skip
    """Draw true values and distortions, or heads, classes and errors, and count them.

    Parameters
    ----------
    cluster : each named by one of its records.
    value : codes into the values of all fields, -1 where missing.
    density : hit-miss or error classes; values in the order of the fields.
    """
    size = np.bincount(cluster, minlength=len(cluster))
    several = np.flatnonzero(size[cluster] > 1)
    member = several[np.argsort(cluster[several], kind="stable")]
    begin = np.append(np.flatnonzero(np.diff(cluster[member], prepend=-1)), len(member))
    alone = value[size[cluster] == 1]
    num_fields = value.shape[1]
    found = Counts(
        np.bincount(alone[alone >= 0], minlength=len(density.value_share)).astype(float), np.zeros((num_fields, 2)),
        np.zeros(3),
    )  # fmt: skip
    read = _Read(tuple(map(float, density.class_share)), np.ascontiguousarray(value, np.int64), *tables(density)[:2])
    uniform = random.random((len(member), num_fields + 2, 3))
    if density.kind == ERROR_CLASSES:
        _count_classes(uniform, member, begin, read, *found)
    else:
        ends = np.searchsorted(density.field, np.arange(num_fields + 1))
        _count_values(uniform, member, begin, read, np.cumsum(read.values["share"]), ends, *found[:2])
    return found


@machine_code
def _count_values(uniform, member, begin, read, cumulated, ends, counted, distorted):
    """Count true values and distortions of hit-miss."""
    most = 0
    for cluster in range(len(begin) - 1):
        most = max(most, begin[cluster + 1] - begin[cluster])
    shown, number, weight = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    for cluster in range(len(begin) - 1):
        for column in range(read.value.shape[1]):
            distinct, known = 0, 0
            for place in range(begin[cluster], begin[cluster + 1]):
                code = read.value[member[place], column]
                if code < 0:
                    continue
                known += 1
                at = 0
                while at < distinct and shown[at] != code:
                    at += 1
                if at == distinct:
                    shown[at], number[at] = code, 0
                    distinct += 1
                number[at] += 1
            if known == 1:
                counted[shown[0]] += 1
            if known < 2:
                continue
            first = begin[cluster]
            true = _true_value(uniform[first, column, 0], shown, number, weight, distinct, read.values)
            if true < 0:
                true = _free(uniform[first, column, 1], ends[column], ends[column + 1], cumulated)
            counted[true] += 1
            rate = read.fields[column]["rate"]
            miss = rate * read.values[true]["share"]
            for place in range(first, begin[cluster + 1]):
                code = read.value[member[place], column]
                if code >= 0 and (code != true or uniform[place, column, 2] * (miss + 1 - rate) < miss):
                    counted[code] += 1
                    distorted[column, 0] += 1
                elif code >= 0:
                    distorted[column, 1] += 1


@inner
def _true_value(uniform, shown, number, weight, distinct, values):
    """Return the value that is copied, -1 if the true value is free."""
    highest = 0.0
    for at in range(distinct):
        power = number[at] * values[shown[at]]["log_ratio"]
        weight[at] = math.log(values[shown[at]]["share"]) + power + math.log(max(-math.expm1(-power), LEAST))
        highest = max(highest, weight[at])
    total = math.exp(-highest)
    for at in range(distinct):
        total += math.exp(weight[at] - highest)
        weight[at] = total
    threshold = uniform * total
    if threshold < math.exp(-highest):
        return -1
    at = 0
    while at < distinct - 1 and weight[at] <= threshold:
        at += 1
    return shown[at]


@inner
def _free(uniform, low, high, cumulated):
    """Return a value of a field, in the shares θ."""
    before = cumulated[low - 1] if low > 0 else 0.0
    wanted = before + uniform * (cumulated[high - 1] - before)
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if cumulated[middle] <= wanted:
            low = middle + 1
        else:
            high = middle
    return low


@machine_code
def _count_classes(uniform, member, begin, read, counted, distorted, of_class):
    """Count heads, classes and errors."""
    num_fields = read.value.shape[1]
    for cluster in range(len(begin) - 1):
        first, last = begin[cluster], begin[cluster + 1]
        head = member[first + _head(uniform[first, num_fields, 0], member[first:last], read)]
        for place in range(first, last):
            record = member[place]
            kind = 3
            if record != head:
                kind = _class_of(uniform[place, num_fields + 1, 0], record, head, read)
                of_class[kind] += 1
            for column in range(num_fields):
                code, true = read.value[record, column], read.value[head, column]
                if code < 0:
                    continue
                if kind == 3 or true < 0:
                    counted[code] += 1
                elif kind == 1 and code != true:
                    counted[code] += 1
                    other = max(1 - read.values[true]["share"], read.values[code]["share"])
                    counted[true] += times_again(uniform[place, column, 0], other)
                elif kind == 2:
                    rate = read.fields[column]["rate"]
                    miss = rate * read.values[code]["share"]
                    if code != true or uniform[place, column, 1] * (miss + 1 - rate) < miss:
                        counted[code] += 1
                        distorted[column, 0] += 1
                    else:
                        distorted[column, 1] += 1


@machine_code
def times_again(uniform, other):
    """Return how often a value comes out before another one does, where others have this share together."""
    return np.floor(math.log(max(uniform, LEAST)) / math.log1p(-min(max(other, LEAST), 1 - 1e-16)))


@inner
def _head(uniform, member, read):
    """Return the place of the head among the records of a cluster."""
    log_weight = np.zeros(len(member))
    for at in range(len(member)):
        for before in range(at):
            exact, once, reverse, many = given(member[at], member[before], read)
            log_weight[before] += math.log(max(min(exact + once + many, MOST), LEAST))
            log_weight[at] += math.log(max(min(exact + reverse + many, MOST), LEAST))
    end = np.cumsum(np.exp(log_weight - log_weight.max()))
    place = 0
    while place < len(member) - 1 and end[place] <= uniform * end[-1]:
        place += 1
    return place


@inner
def _class_of(uniform, record, head, read):
    """Return the error class of a record given its head."""
    exact, once, _, many = given(record, head, read)
    exact, once, many = min(exact, MOST), min(once, MOST), min(many, MOST)
    threshold = uniform * (exact + once + many)
    if threshold < exact:
        return 0
    return 1 if threshold < exact + once else 2


# ---- draws ----


def draw_fields(
    random: np.random.Generator, counts: Counts, field: Int[np.ndarray, " value"],
    value_concentration: Float[np.ndarray, "*value"], distortion: Float[np.ndarray, "field 2"],
) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:  # fmt: skip
    """Draw θ from its Dirichlet and b from its Beta distributions; neither is ever zero, nor b one.

    Parameters
    ----------
    field : of each value.
    value_concentration : parameters of the Dirichlet priors, one for all values or one for each.
    distortion : parameters of the Beta priors.
    """
    dtype = value_concentration.dtype
    limits = np.finfo(dtype)
    weight = np.maximum(random.standard_gamma(value_concentration + counts.value), limits.tiny)
    share = weight / np.bincount(field, weight, len(distortion))[field]
    own = random.beta(*(distortion + counts.distorted).T)
    return np.maximum(share, limits.tiny).astype(dtype), np.clip(own, limits.tiny, 1 - limits.eps).astype(dtype)


def draw_sizes(
    random: np.random.Generator, cluster: Int[np.ndarray, " record"], size_share: Float[np.ndarray, " size"],
    intensity: Float[np.ndarray, " 2"],
) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, ""]]:  # fmt: skip
    """Draw μ from its Dirichlet and m from its Gamma distribution.

    Parameters
    ----------
    cluster : each named by one of its records.
    size_share : parameters of the Dirichlet prior.
    intensity : shape and rate of the Gamma prior.
    """
    dtype = size_share.dtype
    by_size = np.bincount(np.bincount(cluster), minlength=len(size_share) + 1)[1:]
    share = draw_shares(random, size_share + by_size)
    number = random.gamma(intensity[0] + by_size.sum(), 1 / (intensity[1] + 1))
    return share.astype(dtype), np.asarray(number, dtype)


def draw_shares(random: np.random.Generator, concentration: Float[np.ndarray, " share"]) -> Any:
    """Draw shares from a Dirichlet distribution, of which none is zero: ratios of them must stay numbers."""
    weight = np.maximum(random.standard_gamma(concentration), np.finfo(np.float32).tiny)
    return np.maximum(weight / weight.sum(), np.finfo(np.float32).tiny)
