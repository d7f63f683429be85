r"""Agreement while annotations come in: the whole curve, and a band that may be looked at any number of times.

A confidence interval holds for one look. Looked at again and again while annotations come in, a 95 % interval misses
the truth at some look in every third run and more. The confidence sequence holds at all times at once: over the usable
items t in order, with the estimate :math:`S_t` and its standard error :math:`\text{SE}_t`,

.. math:: S_t \pm \text{SE}_t \sqrt t
    \sqrt{\frac{2 (t \rho^2 + 1)}{t^2 \rho^2} \log \frac{\sqrt{t \rho^2 + 1}}{\alpha}}, \qquad
    \rho^2 = \frac{-2 \log \alpha + \log(-2 \log \alpha) + 1}{t_0}.

The price is width: 1.55 times that of an ordinary 95 % interval at :math:`t_0`, where it is least.

References
----------
I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas. Time-uniform central limit theory and asymptotic
confidence sequences. Annals of Statistics 52 (2024).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.jackknife import ratio
from consilience.evaluation.agreement.weighting import WeightFunction

# No band before so many items, nor before so many pairs that agree and so many that do not: it is asymptotic, and has
# no width at all while everybody agrees.
_FEWEST_ITEMS, _FEWEST_PAIRS = 30, 10


def _grid(total: int, num_points: int) -> Int[np.ndarray, " point"]:
    """Return equidistant whole numbers up to the total."""
    if num_points < 1:
        raise UnsupportedRequest(f"a curve of {num_points} points cannot be drawn; ask for one at least")
    grid = np.unique(np.linspace(0, total, num_points + 1).round().astype(np.int64))
    return grid[grid > 0]


# ---- the learning curve ----


def learning_curve(
    annotations: Annotations, weights: Mapping[str, WeightFunction], num_points: int = 200
) -> dict[str, np.ndarray]:
    """Compute SPA after every so many annotations, rows being in order of arrival.

    An annotation changes one item: its n by one and its e by twice the equal labels that it has already. The last point
    is the estimate from all annotations.

    Parameters
    ----------
    annotations : rows in order of arrival. A row of weight w is w annotations that arrive together.
    weights : k(n) by name of the scheme; see `weight_function`.
    num_points : points of the curve, equidistant in rows.

    Returns
    -------
    Columns of a table with one row a point: ``num_annotations``, ``num_items`` (those with two annotations or more so
    far), and one column of SPA per scheme, NaN while there are no such items. (`annotations` is a scheme.)
    """
    grid = _grid(len(annotations.item), num_points)
    item, number = np.asarray(annotations.item), np.asarray(annotations.weight)
    order = np.argsort(item, kind="stable")
    item, number = item[order], number[order]
    label = item.astype(np.int64) * annotations.num_labels + np.asarray(annotations.label)[order]
    point = np.repeat(np.arange(len(grid)), np.diff(grid, prepend=0))[order]
    first = _first_of_group(item)
    size = _running_total(number, first)
    pairs = _running_total(number * (2 * _seen_before(label, number) + number - 1), first)
    agreement = pairs / np.maximum(size * (size - 1), 1)

    def curve(values: np.ndarray) -> Float[np.ndarray, " point"]:
        return np.bincount(point, _steps(values, first), len(grid)).cumsum()

    arrived = np.bincount(point, number, len(grid)).cumsum()
    columns = {"num_annotations": arrived.astype(np.int64), "num_items": curve(size >= 2).astype(np.int64)}
    for scheme, weight in weights.items():
        k = weight(size)
        columns[scheme] = ratio(curve(k * agreement), curve(k))
    return columns


def _first_of_group(group: np.ndarray) -> Bool[np.ndarray, " annotation"]:
    """Return which rows begin a new group, groups being together."""
    first = np.ones(len(group), bool)
    np.not_equal(group[1:], group[:-1], out=first[1:])
    return first


def _running_total(values: np.ndarray, first: np.ndarray) -> Float[np.ndarray, " annotation"]:
    """Return cumulative sums that start anew with each group."""
    total = values.cumsum()
    start = np.flatnonzero(first)
    length = np.diff(start, append=len(first))
    return total - np.repeat(total[start] - values[start], length)


def _seen_before(label: np.ndarray, number: np.ndarray) -> Float[np.ndarray, " annotation"]:
    """Return how many annotations of the same item and label came before."""
    order = np.argsort(label, kind="stable")
    before = np.empty(len(label))
    before[order] = _running_total(number[order], _first_of_group(label[order])) - number[order]
    return before


def _steps(values: np.ndarray, first: np.ndarray) -> Float[np.ndarray, " annotation"]:
    """Return by how much each row changes what its item adds; their sum telescopes to what the items add now."""
    change = np.diff(values.astype(float), prepend=0.0)
    change[first] = values[first]
    return change


# ---- the confidence sequence ----


def _completion_order(annotations: Annotations) -> Int[np.ndarray, " item"]:
    """Return the codes of the items that have annotations, in the order of the rows of their last ones."""
    rows = np.flatnonzero(np.asarray(annotations.weight) > 0)
    last = np.full(annotations.num_items, -1)
    last[np.asarray(annotations.item)[rows]] = rows
    order = np.argsort(last, kind="stable")
    return order[last[order] >= 0]


def confidence_sequence(
    annotations: Annotations,
    weight: WeightFunction,
    level: float = 0.95,
    tightest_at: int = 500,
    num_points: int = 200,
) -> dict[str, np.ndarray]:
    """Compute SPA over items as they are completed, with a band that holds at all times at once.

    Each item comes with all of its annotations. The band is asymptotic, and it is valid for items that come in random
    order, with items as what is random: these annotators, items like these. It is therefore not given before 30 items,
    nor before ten pairs of annotations that agree and ten that do not. No ordinary interval is given: looked at
    repeatedly it would mislead.

    Parameters
    ----------
    annotations : rows in order of arrival; an item is complete with its last row.
    weight : k(n); see `weight_function`.
    level : the least probability that the truth is within the band at all times.
    tightest_at : the number of items at which the band shall be tightest; where a decision is expected.
    num_points : points of the curve, equidistant in items.

    Returns
    -------
    Columns of a table with one row a point: ``items`` (usable ones), ``annotations`` (of these), ``agreement``, ``sd``
    (linearised, over items), ``lower``, ``upper`` (within [0, 1]; NaN where no band is given).

    Raises
    ------
    UnsupportedRequest : for a level outside [0.5, 1), a number of items or points below one, or rows whose weights are
        not whole numbers.
    """
    if not 0.5 <= level < 1 or tightest_at < 1:
        raise UnsupportedRequest(
            f"level={level:g} and tightest_at={tightest_at} make no band; give a level from 0.5 to below 1, and one "
            "item at least"
        )
    counts, order = LabelCounts.of_annotations(annotations), _completion_order(annotations)
    order = order[counts.size[order] >= 2]
    items = _grid(len(order), num_points)
    now = items - 1
    size, agreement = counts.size[order].astype(float), counts.agreement[order]
    value, sd = (column[now] for column in _running_estimate(weight(size), agreement))
    agreeing = (counts.pairs[order] / 2).cumsum()[now]
    enough = np.minimum(agreeing, (size * (size - 1) / 2).cumsum()[now] - agreeing) >= _FEWEST_PAIRS
    half = np.where((items >= _FEWEST_ITEMS) & enough, sd * _band_factor(items, level, tightest_at), np.nan)
    return {
        "items": items, "annotations": counts.size[order].cumsum()[now], "agreement": value, "sd": sd,
        "lower": np.maximum(0.0, value - half), "upper": np.minimum(1.0, value + half),
    }  # fmt: skip


def _running_estimate(k: np.ndarray, agreement: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return SPA and its linearised standard error after each item, SE² = m/(m-1) Σk²(P-S)² / (Σk)²."""
    total, square = k.cumsum(), k**2
    value = (k * agreement).cumsum() / total
    scatter = (square * agreement**2).cumsum() - 2 * value * (square * agreement).cumsum() + value**2 * square.cumsum()
    others = np.arange(len(k), dtype=float)
    return value, np.sqrt(ratio(others + 1, others) * np.maximum(scatter, 0)) / total


def _band_factor(items: np.ndarray, level: float, tightest_at: int) -> Float[np.ndarray, " point"]:
    """Return how many standard errors the band is wide on each side after so many items."""
    log_alpha = np.log1p(-level)
    scaled = items * (-2 * log_alpha + np.log(-2 * log_alpha) + 1) / tightest_at
    return np.sqrt(2 * (scaled + 1) / scaled * (np.log(scaled + 1) / 2 - log_alpha))
