r"""Planning: how many annotations an item should have, and how many more items an interval of a given width takes.

For items with exchangeable labels the variance of an item's agreement with r annotations is known up to three moments
(`weighting.exchangeable_variance`). A budget of B annotations makes B / r items, hence a variance of the estimate
proportional to

.. math:: r \operatorname{Var} \hat P(r) = \frac{2}{r - 1} \left[ A_2 + 2 (r - 2) A_1 + \tbinom{r-2}{2} A_0 \right],
    \qquad r^* = 1 + \sqrt{\frac{2 (A_2 - 2 A_1 + A_0)}{A_0}}.

More annotations of an item help until r*; from there on, new items help more.
"""

from __future__ import annotations

import bisect
import math
from typing import NamedTuple

import numpy as np

from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.counts import LabelCounts, Patterns
from consilience.evaluation.agreement.jackknife import check_level, wilson_interval
from consilience.evaluation.agreement.sparse_probability import sparse_agreement
from consilience.evaluation.agreement.weighting import (
    Moments,
    exchangeable_moments,
    exchangeable_variance,
    weight_function,
)
from consilience.models.intervals import ends

# More items than anybody can have annotated; a wanted interval that needs more is refused.
_MOST_ITEMS = 2**50

_RESAMPLED = 400  # Sets of items, for the interval of the best number of annotations.


class Design(NamedTuple):
    """A number of annotations per item, and what it leads to.

    Parameters
    ----------
    per_item : r, annotations of each item.
    items : items that the budget makes, ``None`` without one.
    sd : standard error of SPA on them, ``None`` without a budget; NaN where the moments it takes are unknown.
    width : of its interval.
    more_items : items to add to the present ones, with r annotations each, for an interval of the wanted width;
        ``None`` where none was wanted or the moments are unknown.
    """

    per_item: int
    items: int | None
    sd: float | None
    width: float | None
    more_items: int | None


class Plan(NamedTuple):
    """An answer of `plan`.

    Parameters
    ----------
    best : the design with the best whole number of annotations per item.
    asked : that with the number the caller asked about, or ``None``.
    optimum : r*, not rounded; infinite where items do not differ in how much people agree on them.
    moments : of the present items.
    most_seen : the largest number of annotations of an item.
    current_width : width of the present interval, with `flat` weights.
    wanted_width : that the caller asked for, or ``None``.
    level : of the intervals.
    optimum_lower, optimum_upper : interval of r*, by items drawn with replacement; NaN where r* is.
    """

    best: Design
    asked: Design | None
    optimum: float
    moments: Moments
    most_seen: int
    current_width: float
    wanted_width: float | None
    level: float
    optimum_lower: float
    optimum_upper: float

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [self._best_text()]
        lines += [_budget_text(design, self.level) for design in self._designs() if design.items is not None]
        lines += [self._width_text(design) for design in self._designs() if self.wanted_width is not None]
        return "\n".join(lines)

    def _designs(self) -> list[Design]:
        return (
            [self.best] if self.asked is None or self.asked.per_item == self.best.per_item else [self.best, self.asked]
        )

    def _best_text(self) -> str:
        best = self.best.per_item
        if self.most_seen < 4:
            return (
                f"Of up to {self.most_seen} annotations per item, {best} make the most of a budget. Whether more would "
                "be better cannot be told without some items that have four."
            )
        if math.isinf(self.optimum):
            return (
                "Items do not seem to differ in how much people agree on them: more annotations per item make more of "
                f"a budget, at least up to the {best} seen here."
            )
        if math.isinf(self.optimum_upper):
            return (
                "On new items like these, the number of annotations per item that makes the most of a budget is "
                f"{math.floor(self.optimum_lower)} or more with {100 * self.level:g} %, as the data give no upper end; "
                f"the best guess is {best}."
            )
        return (
            f"On new items like these, about {best} annotations per item make the most of a budget (optimum "
            f"{self.optimum:.1f}, {100 * self.level:g} % from {self.optimum_lower:.1f} to {self.optimum_upper:.1f}); "
            "beyond that, more items tell more than more annotations per item."
        )

    def _width_text(self, design: Design) -> str:
        now = f"with flat weights the {100 * self.level:g} % interval is {self.current_width:.3g} wide now"
        if design.more_items is None:
            return f"{design.per_item} annotations per item: how the width of the interval goes down is not known."
        if design.more_items == 0:
            return f"No more items are needed: {now}, and {self.wanted_width:.3g} was wanted."
        return (
            f"{design.more_items:,} more items with {design.per_item} annotations each would bring the interval to "
            f"{self.wanted_width:.3g}; {now}."
        )


def _budget_text(design: Design, level: float) -> str:
    start = f"{design.per_item} annotations per item make {design.items:,} items of the budget"
    if design.sd is None or design.width is None or math.isnan(design.width):
        return f"{start}; the standard error on them is not known."
    return (
        f"{start}; from them alone, with these annotators: standard error {design.sd:.3g}, {100 * level:g} % interval "
        f"{design.width:.3g} wide."
    )


def best_annotations_per_item(moments: Moments) -> float:
    """Return r*, the number of annotations per item that tells most for a number of annotations; two at least.

    Infinite where A₀ is zero: items do not differ, or there is none with four annotations to tell. NaN without moments.
    """
    if math.isnan(moments.disjoint):
        return float("nan")
    if moments.disjoint <= 0:
        return float("inf")
    gain = 2 * (moments.same - 2 * moments.shared + moments.disjoint) / moments.disjoint
    return max(2.0, 1 + math.sqrt(max(gain, 0.0)))


def plan(
    counts: LabelCounts,
    budget: int | None = None,
    width: float | None = None,
    per_item: int | None = None,
    level: float = 0.95,
) -> Plan:
    """Plan further annotation from the annotations at hand.

    Assumed are items like these, labels of an item that do not depend on its number of annotations or on each other,
    `flat` weights, and items as what is random: these annotators. The moments are estimates from these data; how much
    items differ can be seen only on items with four annotations or more, and r* is rough where those are few.

    Parameters
    ----------
    counts : annotations at hand.
    budget : annotations that could be bought, for new items only.
    width : wanted full width of the interval, with the present items counted in.
    per_item : a number of annotations per item to compare with the best one.
    level : of the intervals.

    Raises
    ------
    UnsupportedRequest : for fewer than two items with two annotations, or a budget, width, number of annotations per
        item or level that makes no sense.
    """
    patterns = counts.patterns
    if patterns.num_items < 2:
        raise UnsupportedRequest("to plan from annotations, two items with two annotations each are needed at least")
    _check(budget, width, per_item, level)
    moments, most_seen = exchangeable_moments(patterns), int(patterns.size.max())
    optimum = best_annotations_per_item(moments) if most_seen >= 4 else float("nan")
    now = sparse_agreement(patterns, weight_function("flat", counts), level)

    def design(number: int) -> Design:
        variance = _variance(number, moments, most_seen)
        items = None if budget is None else budget // number
        sd = None if items is None else math.sqrt(variance / items) if items else float("nan")
        expected = None if sd is None or items is None else _width(moments.mean, sd, items, level)
        more = (
            None if width is None else _more_items(width, variance, now.value, now.sd, int(patterns.num_items), level)
        )
        return Design(number, items, sd, expected, more)

    best = design(_best_whole(optimum, moments, most_seen))
    asked = None if per_item is None else design(per_item)
    spread = _optimum_interval(patterns, level) if most_seen >= 4 else (float("nan"), float("nan"))
    return Plan(best, asked, optimum, moments, most_seen, now.upper - now.lower, width, level, *spread)


def _optimum_interval(patterns: Patterns, level: float) -> tuple[float, float]:
    """Return the interval of r* by the bootstrap over items; ends may be infinite."""
    number = int(patterns.num_items)
    drawn = np.random.default_rng(0).multinomial(number, patterns.multiplicity / number, _RESAMPLED)
    found = []
    for own in drawn.astype(float):
        size, pairs, triples = (values[own > 0] for values in patterns[:3])
        found.append(best_annotations_per_item(exchangeable_moments(Patterns(size, pairs, triples, own[own > 0]))))
    known = np.nan_to_num(found, nan=np.inf, posinf=np.inf)
    lower, upper = np.quantile(known, ends(level), method="closest_observation")  # between ends there is no number
    return float(lower), float(upper)


def _check(budget: int | None, width: float | None, per_item: int | None, level: float) -> None:
    if budget is not None and budget < 2:
        raise UnsupportedRequest(f"a budget of {budget} annotations shows no agreement; give two at least")
    if width is not None and not 0 < width < 1:
        raise UnsupportedRequest(f"an interval {width:g} wide makes no sense; give a full width between 0 and 1")
    if per_item is not None and per_item < 2:
        raise UnsupportedRequest(f"{per_item} annotations per item show no agreement; give two at least")
    check_level(level)


def _variance(number: int, moments: Moments, most_seen: int) -> float:
    """Return the variance of an item's agreement; NaN where it takes moments that need more annotations than seen."""
    if number > most_seen and most_seen < 4:
        return float("nan")
    return float(exchangeable_variance(np.array([float(number)]), moments)[0])


def _best_whole(optimum: float, moments: Moments, most_seen: int) -> int:
    """Return the best whole number of annotations per item, among those whose variance is known."""
    if most_seen < 4:
        candidates = list(range(2, most_seen + 1))
    elif math.isinf(optimum):
        candidates = [most_seen]
    else:
        candidates = [math.floor(optimum), math.ceil(optimum)]
    return min(candidates, key=lambda number: number * _variance(number, moments, most_seen))


def _width(value: float, sd: float, items: int, level: float) -> float:
    lower, upper = wilson_interval(value, sd, float(items), level)
    return upper - lower


def _more_items(wanted: float, variance: float, value: float, sd: float, items: int, level: float) -> int | None:
    """Return the least number of new items that makes the interval narrow enough, old and new ones alike in weight."""
    if math.isnan(variance):
        return None

    def narrow_enough(more: int) -> bool:
        joint = math.sqrt((items * sd) ** 2 + more * variance) / (items + more)
        return _width(value, joint, items + more, level) <= wanted

    if narrow_enough(0):
        return 0
    # New items with few annotations can widen the interval at first, but once it is narrower than now it stays so.
    more = bisect.bisect_left(range(_MOST_ITEMS), True, key=narrow_enough)
    if more == _MOST_ITEMS:
        raise UnsupportedRequest(f"no number of items makes an interval only {wanted:g} wide; ask for a wider one")
    return more
