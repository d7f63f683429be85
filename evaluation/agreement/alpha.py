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

Intervals are of the alpha of the population of items (`bayesian_bootstrap`): there m takes the place of m - 1.

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
from consilience.evaluation.agreement.bayesian_bootstrap import PseudoItems, bootstrap_interval, pseudo_items
from consilience.evaluation.agreement.chance import Coefficient, with_jackknife
from consilience.evaluation.agreement.counts import Entries, LabelCounts
from consilience.evaluation.agreement.jackknife import ratio

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
        numbers = numbers[: counts.num_labels]
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
    own = disagreement.observed - disagreement.left_observed
    return _alpha(metric, disagreement, size, _interval_of(metric, entries, size, own, numbers, level))


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
    used = margins > 0
    values = np.where(used, values, 0.0)
    distance = _relative_distances(values, used)
    return _fixed(entries, size, _quadratic_form(entries, len(size), distance), distance @ margins)


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


def _relative_distances(values: np.ndarray, used: np.ndarray) -> np.ndarray:
    total = values[:, None] + values[None, :]
    distance = np.divide(values[:, None] - values[None, :], total, out=np.zeros(total.shape), where=total > 0) ** 2
    return distance / (distance[np.ix_(used, used)].max(initial=0) or 1.0)


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
    metric: str, entries: Entries, size: np.ndarray, own: np.ndarray, values: np.ndarray, level: float
) -> tuple[float, float]:
    """Return the interval; ``own`` is an item's part of m D_o, by relative distances."""
    # Also of numbers that nobody declared, such as ages, each that occurs is as likely in the pseudo-item. By their
    # frequencies, a rare one would hardly be in it, and intervals be too narrow: of 20 items of which 5 % have the second
    # of two values they cover .5 instead of .9.
    items, used = pseudo_items(len(values), entries.label)
    entries = entries._replace(label=np.searchsorted(used, entries.label))
    margins, values = np.bincount(entries.label, entries.number, len(used)), values[used]
    shape = (len(size), len(used))
    counted = sparse.csr_array((entries.number, (entries.item, entries.label)), shape)
    parts_of = _ordinal_parts(entries, size, items) if metric == "ordinal" else _fixed_parts(metric, margins, values, own)
    disagreeing, pseudo, terms = parts_of

    def pseudo_parts(block: PseudoItems) -> np.ndarray:
        # A pair of labels counts as the mean number of labels of an item.
        totals = (block.totals(block.first, len(used)) + block.totals(block.second, len(used))) / 2
        return size.mean() * np.hstack([pseudo(block), totals])

    def alpha(sums: np.ndarray) -> np.ndarray:
        margins = sums[:, -len(used) :]
        observed, expected = terms(sums[:, : -len(used)], margins)
        total = margins.sum(axis=1)
        return 1 - ratio(observed / total, expected / total**2, _LEAST_DISAGREEMENT)

    parts = sparse.hstack([disagreeing, counted], format="csr")
    return bootstrap_interval(entries, parts, items, pseudo_parts, alpha, level)


def _fixed_parts(metric: str, margins: np.ndarray, values: np.ndarray, own: np.ndarray) -> tuple[Any, Any, Any]:
    """Return the parts of m D_o, what pseudo-items add to them, and m D_o and m² D_e of their sums."""
    distance: Any = np.not_equal
    if metric == "nominal":
        expect: Any = lambda margins: margins.sum(axis=1) ** 2 - (margins**2).sum(axis=1)
    elif metric == "interval":
        seen = margins > 0
        centred = (values - np.average(values, weights=margins)) / (np.ptp(values[seen]) or np.ptp(values) or 1.0)
        distance, expect = (
            lambda first, second: (centred[first] - centred[second]) ** 2,
            lambda margins: 2 * (margins.sum(axis=1) * (margins @ centred**2) - (margins @ centred) ** 2),
        )
    else:
        matrix = _relative_distances(values, margins > 0)
        distance, expect = lambda *pair: matrix[pair], lambda margins: ((margins @ matrix) * margins).sum(axis=1)
    return (
        sparse.csr_array(own[:, None]),
        lambda block: (block.weight * distance(block.first, block.second)).sum(axis=1, keepdims=True),
        lambda sums, margins: (sums[:, 0], expect(margins)),
    )


def _ordinal_parts(entries: Entries, size: np.ndarray, items: PseudoItems) -> tuple[Any, Any, Any]:
    """Do the same with a part for each two labels, since the ranks between them move with the margins."""
    item, label, number = entries
    num_labels = items.num_labels

    def cell_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.minimum(first, second) * num_labels + np.maximum(first, second)

    first, second = (np.concatenate(places) for places in zip(*_pairs_within(item), strict=True))
    met = cell_of(label[first], label[second])
    cells = np.unique(np.concatenate([met, cell_of(items.first, items.second).ravel()]))
    low, high = cells // num_labels, cells % num_labels
    amount = 2 * number[first] * number[second] / (size - 1)[item[first]]

    def terms(sums: np.ndarray, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = margins.sum(axis=1)
        ranks = 1 - _later(margins.T) / total
        expected = total**2 - (margins**3).sum(axis=1) / total
        return (sums * ((ranks[low] - ranks[high]) ** 2).T).sum(axis=1), expected / 6

    return (
        sparse.csr_array((amount, (item[first], np.searchsorted(cells, met))), (len(size), len(cells))),
        lambda block: block.totals(np.searchsorted(cells, cell_of(block.first, block.second)), len(cells)),
        terms,
    )


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
