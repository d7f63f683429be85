r"""Krippendorff's alpha, and the matrix of coincidences from which it can be computed by hand.

With :math:`n_{ic}` annotations of class c for item i, over the items with :math:`n_i \ge 2`,

.. math:: o_{ck} = \sum_i \frac{n_{ic} (n_{ik} - [c = k])}{n_i - 1}, \quad m_c = \sum_k o_{ck}, \quad m = \sum_c m_c,
.. math:: D_o = \frac{1}{m} \sum_{ck} o_{ck} \delta_{ck}, \quad
          D_e = \frac{1}{m (m - 1)} \sum_{ck} m_c m_k \delta_{ck}, \quad \alpha = 1 - D_o / D_e

with a squared distance :math:`\delta` between classes:

* `nominal` :math:`[c \ne k]`, where :math:`1 - D_o` is SPA with the weights `annotations`;
* `ordinal` :math:`(r_c - r_k)^2` with the mid-ranks :math:`r_c = \sum_{g < c} m_g + m_c / 2`;
* `interval` :math:`(v_c - v_k)^2` of values;
* `ratio` :math:`((v_c - v_k) / (v_c + v_k))^2` of values, 0 where both are zero.

Nominal alpha is exactly zero on average over all permutations of the annotations among the cells, also on few items:
the coefficient to *test* chance agreement with. As an estimate of what is beyond chance it is too small on few items
(`chance`).

Standard errors leave out one item at a time, exactly, with the margins (and the mid-ranks) of the items that are left.
What that needs are sums per item. With :math:`q_i = \sum_{ck} n_{ic} n_{ik} \delta_{ck}`, :math:`m D_o` is
:math:`\sum_i q_i / (n_i - 1)`, and without item i :math:`\sum_{ck} m_c m_k \delta_{ck}` becomes
:math:`\sum_{ck} m_c m_k \delta_{ck} - 2 \sum_{ck} n_{ic} m_k \delta_{ck} + q_i`.

Intervals (`bayesian_bootstrap`) are of the alpha of the population of items, where m takes the place of m - 1.

References
----------
K. Krippendorff. Content analysis: an introduction to its methodology, chapter 12. Sage, 4th edition (2018).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from consilience.arrays import Array, Float
from consilience.errors import TooLarge, UnknownName, UnsupportedRequest
from consilience.evaluation.agreement.bayesian_bootstrap import Draws, bootstrap_interval
from consilience.evaluation.agreement.chance import Coefficient, pooled_interval, with_jackknife
from consilience.evaluation.agreement.counts import Entries, LabelCounts
from consilience.evaluation.agreement.jackknife import ratio
from consilience.evaluation.agreement.weighting import weight_function

METRICS = ("nominal", "ordinal", "interval", "ratio")
"""Names of the distances between classes."""

# A matrix of classes takes 128 MB at this many.
_MOST_LABELS = 4096

# Relative to the largest distance between two classes that occur.
_LEAST_DISAGREEMENT = 1e-12


def coincidences(counts: LabelCounts) -> Float[np.ndarray, "label label"]:
    """Return Krippendorff's matrix o: how often classes meet within an item.

    Parameters
    ----------
    counts : only items with two annotations or more count.

    Returns
    -------
    Symmetric, shape ``(label, label)``. The share of its trace is SPA with the weights `annotations`; of a row, the
    diagonal's share is the specific agreement of that class.

    Raises
    ------
    UnsupportedRequest : with more than 4,096 classes.
    """
    _require_few_labels(counts.num_labels)
    (item, label, number), size = _pairable(counts)
    shape = (len(size), counts.num_labels)
    scaled = number / (size - 1)[item]
    rows, scaled_rows = (sparse.csr_array((values, (item, label)), shape) for values in (number, scaled))
    matrix = (scaled_rows.T @ rows).toarray()
    # An annotation does not meet itself.
    return matrix - np.diag(np.bincount(label, scaled, counts.num_labels))


def krippendorff_alpha(
    counts: LabelCounts, metric: str = "nominal", values: Float[Array, " label"] | None = None, level: float = 0.95
) -> Coefficient:
    """Estimate Krippendorff's alpha with its jackknife standard error over the items that have two annotations.

    Parameters
    ----------
    metric : one of `METRICS`.
    values : shape ``(label,)``; what the classes measure. Needed for `interval` and `ratio`; `ordinal` takes their
        order, and the order of the labels without them.
    level : of the interval.

    Returns
    -------
    NaN where all annotations are alike. ``observed`` and ``expected`` are 1 - D_o and 1 - D_e with distances relative
    to the largest one between classes that occur.

    Raises
    ------
    UnknownName : for another metric.
    UnsupportedRequest : for values that are missing, not finite, or negative where ratios are taken; with more than
        4,096 classes for `ordinal` and `ratio`.
    """
    if metric not in METRICS:
        raise UnknownName(f"no metric is called {metric!r}; choose one of {', '.join(METRICS)}")
    numbers = _checked_values(metric, values, counts.num_labels)
    if metric == "ordinal":
        counts = _in_order(counts, numbers)
    entries, size = _pairable(counts)
    if not len(size):
        return Coefficient("Krippendorff's alpha", metric, *[float("nan")] * 6)
    margins = np.bincount(entries.label, entries.number, counts.num_labels)
    if metric == "nominal":
        disagreement = _nominal(entries, margins, size)
    elif metric == "ordinal":
        disagreement = _ordinal(entries, margins, size, coincidences(counts))
    elif metric == "interval":
        disagreement = _interval(entries, margins, size, numbers)
    else:
        disagreement = _ratio(entries, margins, size, numbers)
    if metric == "nominal":
        weight = weight_function("annotations", counts)
        interval = pooled_interval(counts, weight, counts.entries.number, counts.size >= 2, level)
    else:
        own = disagreement.observed - disagreement.left_observed
        interval = _interval_of(metric, entries, size, own, numbers[: counts.num_labels], level)
    return _alpha(metric, disagreement, size, interval)


class _Disagreement(NamedTuple):
    """m D_o and m (m - 1) D_e, and both without each item; distances relative to the largest one."""

    observed: float
    left_observed: np.ndarray
    expected: float
    left_expected: np.ndarray


def _alpha(metric: str, disagreement: _Disagreement, size: np.ndarray, interval: tuple[float, float]) -> Coefficient:
    total = size.sum()
    observed, expected = _means(disagreement.observed, disagreement.expected, total)
    left_observed, left_expected = _means(disagreement.left_observed, disagreement.left_expected, total - size)
    value = 1 - ratio(observed, expected, _LEAST_DISAGREEMENT)
    left_out = 1 - ratio(left_observed, left_expected, _LEAST_DISAGREEMENT)
    name = "Krippendorff's alpha"
    return with_jackknife(name, metric, float(value), left_out, float(1 - observed), float(1 - expected), interval)


def _means(
    observed: float | np.ndarray, expected: float | np.ndarray, total: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Divide by the number of annotations and by that of their ordered pairs; NaN where there are none."""
    return ratio(observed, total, 1), ratio(expected, total * (total - 1))


# ---- the metrics ----


def _fixed(entries: Entries, size: np.ndarray, within: np.ndarray, to_margins: np.ndarray) -> _Disagreement:
    """Take one item out where distances do not depend on the data.

    ``within`` is q_i, shape ``(item,)``; ``to_margins`` the sum of m_k δ_ck over k, shape ``(label,)``.
    """
    own = within / (size - 1)
    crossing = np.bincount(entries.item, entries.number * to_margins[entries.label], len(size))
    total = crossing.sum()
    return _Disagreement(own.sum(), own.sum() - own, total, total - 2 * crossing + within)


def _nominal(entries: Entries, margins: np.ndarray, size: np.ndarray) -> _Disagreement:
    within = size**2 - np.bincount(entries.item, entries.number**2, len(size))
    return _fixed(entries, size, within, margins.sum() - margins)


def _interval(entries: Entries, margins: np.ndarray, size: np.ndarray, values: np.ndarray) -> _Disagreement:
    values = _centred(margins, values)
    # The sum of m_k (v_c - v_k)² over k, where the sum of m_k v_k is zero.
    to_margins = margins.sum() * values**2 + (margins * values**2).sum()
    return _fixed(entries, size, _spread(entries, size, values[entries.label]), to_margins)


def _ratio(entries: Entries, margins: np.ndarray, size: np.ndarray, values: np.ndarray) -> _Disagreement:
    _require_few_labels(len(values))
    distance = _ratio_distance(margins, values)
    return _fixed(entries, size, _quadratic_form(entries, len(size), distance), distance @ margins)


def _ratio_distance(margins: np.ndarray, values: np.ndarray) -> np.ndarray:
    total, used = values[:, None] + values[None, :], margins > 0
    distance = np.divide(values[:, None] - values[None, :], total, out=np.zeros(total.shape), where=total > 0) ** 2
    return distance / (distance[np.ix_(used, used)].max(initial=0) or 1.0)


def _ordinal(entries: Entries, margins: np.ndarray, size: np.ndarray, matrix: np.ndarray) -> _Disagreement:
    """Take one item out where its going moves the mid-ranks of all others.

    The mid-ranks are K m, linear in the margins, and m D_o is rᵀ L r with L = 2 (diag(m) - o). Without item i, with the
    counts n of that item, r becomes K (m - n), and rᵀ L r a quadratic function of n, from which the item's own part
    goes. Kᵀ y sums what follows, and half of y itself. The sum of m_c m_k δ_ck is (m⁴ - m Σ m_c³) / 6.
    """
    item, label, number = entries
    total = margins.sum()
    ranks = total - _later(margins)
    laplacian = 2 * (np.diag(margins) - matrix)
    linear = _later(laplacian @ ranks)
    moved = (
        ranks @ laplacian @ ranks
        - 2 * np.bincount(item, number * linear[label], len(size))
        + _quadratic_form(entries, len(size), _later(_later(laplacian).T))
    )
    before = np.cumsum(number) - number
    own_ranks = before - (np.cumsum(size) - size)[item] + number / 2
    own = _spread(entries, size, ranks[label] - own_ranks) / (size - 1)
    cubes = (margins**3).sum()
    left_cubes = cubes + np.bincount(item, (margins[label] - number) ** 3 - margins[label] ** 3, len(size))
    left_total = total - size
    largest = np.ptp(ranks[margins > 0]) ** 2 if (margins > 0).sum() > 1 else 1.0
    return _Disagreement(
        float(ranks @ laplacian @ ranks / largest),
        (moved - own) / largest,
        float((total**4 - total * cubes) / 6 / largest),
        (left_total**4 - left_total * left_cubes) / 6 / largest,
    )


def _later(values: np.ndarray) -> np.ndarray:
    """Sum what follows along the first axis, and half of the entry itself."""
    return np.cumsum(values[::-1], axis=0)[::-1] - values / 2


def _centred(margins: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return values with mean zero over the annotations and range one over the classes that occur."""
    used = margins > 0
    centred = np.where(used, values, 0.0) - np.average(values[used], weights=margins[used])
    return centred / (np.ptp(values[used]) or 1.0)


def _spread(entries: Entries, size: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the sum of the squared differences over all ordered pairs within an item; values are those of entries."""
    item, _, number = entries
    first = np.bincount(item, number * values, len(size))
    deviation = values - (first / size)[item]
    return 2 * size * np.bincount(item, number * deviation**2, len(size))


def _quadratic_form(entries: Entries, num_items: int, matrix: np.ndarray) -> np.ndarray:
    """Return Σ n_ic n_ik A_ck of each item, A symmetric.

    Entries are paired with the next one of their item, the one after it, and so on: as many steps as some item has
    different labels, each with fewer pairs than the one before.
    """
    item, label, number = entries
    total = np.bincount(item, number**2 * matrix[label, label], num_items)
    for first, second in _pairs_within(item):
        products = 2 * number[first] * number[second] * matrix[label[first], label[second]]
        total += np.bincount(item[first], products, num_items)
    return total


def _pairs_within(item: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the places of two entries of an item, each two once."""
    first, step = np.arange(len(item)), 0
    while len(first):
        step += 1
        first = first[: np.searchsorted(first, len(item) - step)]
        first = first[item[first + step] == item[first]]
        yield first, first + step


# ---- the interval ----


def _interval_of(
    metric: str, entries: Entries, size: np.ndarray, own: Any, values: np.ndarray, level: float
) -> tuple[float, float]:
    """Return the interval beyond nominal; ``own`` is an item's part of m D_o, where distances are fixed.

    Also of numbers that nobody declared, such as ages, each that occurs is as likely in the pseudo-item. Taken as often
    as it occurs, a rare one would hardly be in it, and intervals too narrow: of 20 items, with 5 % of the second of two
    values, they held the true alpha in half of the samples, instead of nine in ten.
    """
    labels, column = np.unique(entries.label, return_inverse=True)
    margins = np.bincount(entries.label, entries.number, len(values))
    mean, low, high = float(size.mean()), labels, labels
    if metric == "ordinal":
        # Ranks move with the margins: what disagrees is kept by pairs of labels.
        first, second = (np.concatenate(place) for place in zip(*_pairs_within(entries.item), strict=True))
        met, pair = np.unique(entries.label[first] * len(values) + entries.label[second], return_inverse=True)
        low, high = met // len(values), met % len(values)
        amount = 2 * entries.number[first] * entries.number[second] / (size - 1)[entries.item[first]]
        own = sparse.csr_array((amount, (entries.item[first], pair)), (len(size), len(met)))
    elif metric == "interval":
        own, seen = own[:, None], values[labels]
        values = (values - np.average(values, weights=margins)) / (np.ptp(seen) or np.ptp(values) or 1.0)
    else:
        own, distance = own[:, None], _ratio_distance(margins, values)

    def coefficient(draws: Draws) -> np.ndarray:
        margins, scale = draws.totals(mean), values[draws.used]
        total = margins.sum(axis=1)
        if metric == "ordinal":
            ranks = 1 - _later(margins.T).T / total[:, None]
            one, other, *pair = (np.searchsorted(draws.used, label) for label in (low, high, draws.first, draws.second))
            observed = (draws.own * (ranks[:, one] - ranks[:, other]) ** 2).sum(axis=1)
            drawn = (np.take_along_axis(ranks, place, axis=1) for place in pair)
            apart, expected = (next(drawn) - next(drawn)) ** 2, (total**2 - (margins**3).sum(axis=1) / total) / 6
        elif metric == "interval":
            observed, apart = draws.own[:, 0], (values[draws.first] - values[draws.second]) ** 2
            expected = 2 * (total * (margins @ scale**2) - (margins @ scale) ** 2)
        else:
            observed, apart = draws.own[:, 0], distance[draws.first, draws.second]
            expected = (margins @ distance[np.ix_(draws.used, draws.used)] * margins).sum(axis=1)
        observed = observed + mean * draws.pseudo(apart)
        return 1 - ratio(observed / total, expected / total**2, _LEAST_DISAGREEMENT)

    entries = entries._replace(label=column)
    return bootstrap_interval(entries, own, entries.number, labels, coefficient, len(values), level)


# ---- what goes in ----


def _pairable(counts: LabelCounts) -> tuple[Entries, np.ndarray]:
    """Return entries and sizes of the items with two annotations or more, which are numbered anew."""
    item, label, number = counts.entries
    usable = counts.size >= 2
    keep = usable[item]
    position = np.cumsum(usable) - 1
    return Entries(position[item[keep]], label[keep], number[keep]), counts.size[usable].astype(float)


def _in_order(counts: LabelCounts, values: np.ndarray) -> LabelCounts:
    """Give labels numbers in the order of their values, equal ones the same."""
    distinct, rank = np.unique(values, return_inverse=True)
    if np.array_equal(rank, np.arange(len(values))):
        return counts
    item, label, number = counts.entries
    return LabelCounts.of_codes(item, rank[label], number, num_items=counts.num_items, num_labels=len(distinct))


def _checked_values(metric: str, values: Array | None, num_labels: int) -> np.ndarray:
    """Return one number for each label; without values their codes, where only the order matters."""
    if values is None and metric in ("interval", "ratio"):
        raise UnsupportedRequest(f"the {metric} metric needs numbers; give values, one for each label")
    if values is None:
        return np.arange(num_labels, dtype=float)
    numbers = finite_numbers(values, num_labels)
    if metric == "ratio" and (numbers < 0).any():
        raise UnsupportedRequest(f"the ratio metric has no place for {numbers.min():g}; give values from 0 up")
    return numbers


def finite_numbers(values: Any, num_labels: int) -> Float[np.ndarray, " label"]:
    """Return what labels stand for as numbers.

    Raises
    ------
    UnsupportedRequest : they are not one finite number for each label.
    """
    try:
        numbers = np.asarray(values, float)
    except ValueError:
        numbers = np.full(1, np.nan)
    if numbers.shape != (num_labels,) or not np.isfinite(numbers).all():
        raise UnsupportedRequest(f"values needs {num_labels} finite numbers, one a label in their order")
    return numbers


def _require_few_labels(num_labels: int) -> None:
    if num_labels > _MOST_LABELS:
        raise TooLarge(
            f"a matrix of {num_labels:,} by {num_labels:,} classes is too large (at most {_MOST_LABELS:,}); use the "
            "nominal or interval metric, or merge classes"
        )
