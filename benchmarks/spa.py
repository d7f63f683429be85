"""Sparse probability of agreement: which weights vary least as annotations arrive (the paper's Figure 7 and Table 1).

The paper's procedure on public crowd data: reveal the annotations in a random order, compute SPA under every scheme of
weights at twenty points, repeat, and take the variance over the rounds. Beside it what a variance cannot show: the
error against the agreement of all items, which weights make larger where the number of annotations depends on it.

Reference: J. Nørregaard and L. Derczynski, Sparse probability of agreement, arXiv:2208.06161 (2022); data: Venanzi and
others, The ActiveCrowdToolkit, HCOMP 2015.
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import consilience as cs
from benchmarks import spa_figures as figures
from benchmarks.recording import Recording
from benchmarks.speed import timed
from consilience.data.codes import repeated
from consilience.errors import InputWarning
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.jackknife import jackknife_sd
from consilience.evaluation.agreement.sparse_probability import dependence, sparse_agreement
from consilience.evaluation.agreement.weighting import (
    PAPER_SCHEMES,
    SCHEMES,
    class_shares,
    exchangeable_moments,
    rho,
    weight_function,
)

NAMES = ("crowd-cf", "crowd-cf-amt", "crowd-ms", "crowd-sp", "crowd-sp-amt", "crowd-zencrowd-in")

_FLAT, _M1 = SCHEMES.index("flat"), SCHEMES.index("annotations_m1")
_NUM_POINTS = 20

# How many annotations an item gets in Figures 6 and 8, where at least half of the items have so many.
_CONSTANT_SIZES = (2, 3, 4, 5, 10, 20)
_LEAST_SHARE = 0.5

# Monte Carlo errors come from leaving out one of so many groups of rounds.
_NUM_GROUPS = 20

# Two rows of the paper's Table 1, divided by `annotations_m1`.
PAPER_TABLE_1 = {
    "MBIC label": {"annotations_m1": 1.0, "inv_var_class": 0.794, "annotations": 0.774, "edge": 0.428, "flat": 0.0},
    "MBIC factual": {"annotations_m1": 1.0, "inv_var_class": 0.812, "annotations": 0.748, "edge": 0.619, "flat": 0.0},
}

# The same quantities from an earlier, separate implementation: Hausman z, and the mean squared error at a third of the
# annotations over that of `flat`, from 1,500 rounds.
PROTOTYPE_Z = {"crowd-cf-amt": -0.9, "crowd-cf": -2.3, "crowd-sp": -12.5, "crowd-ms": 5.7}
_PROTOTYPE_SCHEMES = ("annotations", "annotations_m1", "edge", "inv_var_class", "exch", "exch, estimated")
PROTOTYPE_ERRORS = {
    "crowd-cf-amt": (0.95, 1.00, 1.53, 1.39, 0.88, 0.88),
    "crowd-cf": (0.99, 1.13, 2.65, 1.91, 0.97, 1.20),
    "crowd-sp": (1.28, 1.58, 2.49, 2.46, 1.51, 1.64),
}


# ---- the data ----


@dataclasses.dataclass(frozen=True)
class CrowdSet:
    """Annotations of a public data set, each annotator once an item.

    Parameters
    ----------
    name : in the catalogue.
    item, label : codes, shape ``(annotation,)``.
    counts : of all of them.
    num_annotators : how many people.
    dropped : rows that repeat an earlier row's annotator and item.
    """

    name: str
    item: np.ndarray
    label: np.ndarray
    counts: LabelCounts
    num_annotators: int
    dropped: int


def read_set(name: str) -> CrowdSet:
    """Read a data set and keep the first of several rows of one annotator and item."""
    with warnings.catch_warnings():
        # What is repeated is dropped here and counted in the record.
        warnings.filterwarnings("ignore", message=".*same item and annotator", category=InputWarning)
        annotations = cs.load(name)
    again = repeated(annotations.item, annotations.annotator)
    item, label = (np.asarray(codes)[~again].astype(np.int64) for codes in (annotations.item, annotations.label))
    counts = LabelCounts.of_codes(item, label, num_items=annotations.num_items, num_labels=annotations.num_labels)
    return CrowdSet(name, item, label, counts, annotations.num_annotators, int(again.sum()))


# ---- the procedure ----


class BySize(NamedTuple):
    """Items by their number of annotations so far; all that SPA under weights k(n) needs.

    Parameters
    ----------
    items : shape ``(point, size)``; how many items have 0, 1, 2, … annotations.
    pairs : shape ``(point, size)``; the ordered pairs of annotations that agree, over these items.
    """

    items: np.ndarray
    pairs: np.ndarray


class Orders:
    """Reveals annotations in any order, without a loop over them.

    Parameters
    ----------
    item, label : codes, shape ``(annotation,)``.
    points : increasing numbers of annotations at which to look.
    """

    def __init__(self, item: np.ndarray, label: np.ndarray, points: np.ndarray) -> None:
        self.num_annotations = len(item)
        self._items = _Groups(item)
        self._cells = _Groups(np.unique(item * (int(label.max()) + 1) + label, return_inverse=True)[1])
        self._width = int(self._items.sizes.max()) + 2
        self._num_points = len(points)
        # At point m there are the annotations at the places 0 to m - 1.
        self._point_of_place = np.searchsorted(points, np.arange(len(item)), side="right")

    @property
    def sizes(self) -> np.ndarray:
        """How many annotations each item has in the end."""
        return self._items.sizes

    def agreeing(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Follow the agreeing pairs of each item.

        Parameters
        ----------
        place : a permutation; when each annotation arrives.

        Returns
        -------
        order : annotations by item, then by arrival.
        before, after : the ordered pairs of its item that agree, before and after each of them.
        """
        order = self._items.order(place)
        earlier_equal = np.empty(len(place), np.int64)
        earlier_equal[self._cells.order(place)] = self._cells.rank
        gained = 2 * earlier_equal[order]
        running = np.cumsum(gained)
        after = running - np.repeat((running - gained)[self._items.start], self._items.sizes)
        return order, after - gained, after

    def by_size(self, place: np.ndarray) -> BySize:
        """Count items and agreeing pairs by number of annotations, at every point."""
        order, before, after = self.agreeing(place)
        cell = self._point_of_place[place[order]] * self._width + self._items.rank + 1

        def so_far(values: np.ndarray | None) -> np.ndarray:
            table = np.bincount(cell, values, (self._num_points + 1) * self._width)
            return np.cumsum(table.reshape(-1, self._width)[: self._num_points], axis=0)

        # An item has n annotations if its n-th has arrived and the next one has not.
        arrived, gone_pairs, come_pairs = so_far(None), so_far(before), so_far(after)
        items = arrived[:, :-1] - arrived[:, 1:]
        items[:, 0] = 0
        return BySize(items.astype(float), come_pairs[:, :-1] - gone_pairs[:, 1:])

    def after_first(self, place: np.ndarray, number: int) -> np.ndarray:
        """Return the agreement P among the first annotations of each item that has so many."""
        _, _, after = self.agreeing(place)
        enough = self.sizes >= number
        return after[self._items.start[enough] + number - 1] / (number * (number - 1))


class _Groups:
    """Annotations in groups (of an item, or of an item and label), for ranks within them."""

    def __init__(self, group: np.ndarray) -> None:
        self.sizes = np.bincount(group)
        self.start = np.cumsum(self.sizes) - self.sizes
        self.rank = np.arange(len(group)) - np.repeat(self.start, self.sizes)
        self._key = group * len(group)

    def order(self, place: np.ndarray) -> np.ndarray:
        """Sort by group, then by place; `rank` is the rank of the sorted annotations in their group."""
        return np.argsort(self._key + place)


def weights_by_size(counts: LabelCounts, num_sizes: int) -> np.ndarray:
    """Return k(n) of every scheme for n = 0, 1, …; shape ``(scheme, size)``."""
    size = np.arange(num_sizes, dtype=float)
    return np.stack([weight_function(scheme, counts)(size) for scheme in SCHEMES])


def under_schemes(by_size: BySize, weights: np.ndarray) -> np.ndarray:
    """Return SPA under each scheme at each point, shape ``(point, scheme)``; NaN where no item has two annotations."""
    size = np.arange(weights.shape[1])
    per_pair = weights / np.maximum(size * (size - 1), 1)
    total, agreed = by_size.items @ weights.T, by_size.pairs @ per_pair.T
    return np.divide(agreed, total, out=np.full(total.shape, np.nan), where=total > 0)


@dataclasses.dataclass(frozen=True)
class Growth:
    """SPA of one data set while its annotations arrive, in many random orders.

    Parameters
    ----------
    points : shape ``(point,)``; numbers of annotations at which SPA was computed.
    on_grid : bool, shape ``(point,)``; the twenty of the paper's sum, that is all but a third of the annotations.
    usable : shape ``(point,)``; annotations of items that have two or more, on average.
    values : shape ``(round, point, scheme)``; `exch` has the moments of all annotations.
    estimated : shape ``(round,)``; `exch` at a third of the annotations, with the moments of these alone.
    flat : SPA of all annotations with flat weights.
    constant : by annotations per item: how many there are in all, shape ``(point,)``, and flat SPA, ``(round, point)``.
    """

    points: np.ndarray
    on_grid: np.ndarray
    usable: np.ndarray
    values: np.ndarray
    estimated: np.ndarray
    flat: float
    constant: dict[int, tuple[np.ndarray, np.ndarray]]

    @property
    def third(self) -> int:
        """Which point is a third of the annotations."""
        return int(np.flatnonzero(self.points == _third(int(self.points[-1])))[0])

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance over rounds on the grid, shape ``(point, scheme)``."""
        return self.values[:, self.on_grid].var(axis=0, ddof=1)


def _third(num_annotations: int) -> int:
    return round(num_annotations / 3)


def _grid(num_annotations: int) -> np.ndarray:
    return np.unique(np.rint(np.linspace(0.1, 1, _NUM_POINTS) * num_annotations).astype(int).clip(1))


def grow(data: CrowdSet, rounds: int, seed: int) -> Growth:
    """Reveal the annotations of a data set in random orders."""
    random = np.random.default_rng(seed)
    grid = _grid(len(data.item))
    third = _third(len(data.item))
    points = np.union1d(grid, third)
    orders = Orders(data.item, data.label, points)
    size = np.arange(int(orders.sizes.max()) + 1)
    weights = weights_by_size(data.counts, len(size))
    constant_sizes = [number for number in _CONSTANT_SIZES if (orders.sizes >= number).mean() >= _LEAST_SHARE]
    values, estimated, usable = np.empty((rounds, len(points), len(SCHEMES))), np.empty(rounds), np.zeros(len(points))
    constant = {number: _constant_grid(orders, number) for number in constant_sizes}
    constant_values = {number: np.empty((rounds, len(constant[number]))) for number in constant_sizes}
    for round_ in range(rounds):
        place = random.permutation(orders.num_annotations)
        by_size = orders.by_size(place)
        values[round_] = under_schemes(by_size, weights)
        usable += by_size.items[:, 2:] @ size[2:] / rounds
        estimated[round_] = _estimated_exch(data, place < third)
        for number in constant_sizes:
            agreement = random.permutation(orders.after_first(place, number))
            mean = np.cumsum(agreement)[constant[number] - 1] / constant[number]
            constant_values[number][round_] = mean
    flat = sparse_agreement(data.counts.patterns, weight_function("flat", data.counts)).value
    return Growth(
        points, np.isin(points, grid), usable, values, estimated, flat,
        {number: (number * constant[number], constant_values[number]) for number in constant_sizes},
    )  # fmt: skip


def _constant_grid(orders: Orders, number: int) -> np.ndarray:
    """Return at how many items to look, of those that have so many annotations."""
    return _grid(int((orders.sizes >= number).sum()))


def _estimated_exch(data: CrowdSet, kept: np.ndarray) -> float:
    counts = LabelCounts.of_codes(data.item[kept], data.label[kept], num_labels=data.counts.num_labels)
    return sparse_agreement(counts.patterns, weight_function("exch", counts)).value


# ---- what is read off ----


def summed_variance(values: np.ndarray) -> np.ndarray:
    """Return the variance over rounds less that of `flat`, summed over the grid: the paper's Table 1."""
    variance = values.var(axis=0, ddof=1)
    return (variance - variance[:, [_FLAT]]).sum(axis=0)


def over_m1(values: np.ndarray) -> np.ndarray:
    """Return the summed variance curve divided by that of `annotations_m1`."""
    summed = summed_variance(values)
    # Zero, not minus zero, for `flat`.
    return summed / summed[_M1] + 0.0


def relative_error(at_third: np.ndarray, flat: float) -> np.ndarray:
    """Return the mean squared error of each column against the flat value of all data, over that of `flat`."""
    squared = ((at_third - flat) ** 2).mean(axis=0)
    return squared / squared[_FLAT]


def with_error(statistic: Callable[[np.ndarray], np.ndarray], rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a statistic of all rounds and its Monte Carlo error, by leaving out groups of rounds."""
    number = min(_NUM_GROUPS, len(rounds))
    group = np.arange(len(rounds)) % number
    left_out = np.stack([statistic(rounds[group != left]) for left in range(number)])
    return statistic(rounds), np.array([jackknife_sd(column) for column in left_out.T])


def ranking(statistic: Callable[[np.ndarray], np.ndarray], rounds: np.ndarray, schemes: tuple[str, ...]) -> str:
    """Name schemes from the smallest to the largest value.

    "<" stands for a difference of more than two Monte Carlo errors, "≈" for a smaller one, "=" for none.
    """
    values = statistic(rounds)
    order = np.argsort(values, kind="stable")
    gaps, errors = with_error(lambda kept: np.diff(statistic(kept)[order]), rounds)
    named = schemes[order[0]]
    for number, gap, error in zip(order[1:], gaps, errors, strict=True):
        sign = "=" if gap <= 1e-9 * np.ptp(values) else "<" if gap > 2 * error else "≈"
        named += f" {sign} {schemes[number]}"
    return named


# ---- the record ----


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=3000, help="random orders; the paper takes 3000")
    parser.add_argument("--seed", type=int, default=0, help="of the orders")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print and record."""
    title = "Sparse probability of agreement: weights compared"
    record = Recording("spa", title, arguments.command, arguments.output)
    data = [read_set(name) for name in NAMES]
    _describe(record, data, arguments.rounds)
    growths = {}
    for one in data:
        made: list[Growth] = []
        _, seconds = timed(lambda one=one, made=made: made.append(grow(one, arguments.rounds, arguments.seed)))
        growths[one.name] = made[0]
        print(f"{one.name}: {seconds:.0f} CPU s", flush=True)
    _dependences(record, data)
    _table_1(record, growths)
    _errors(record, growths)
    _rankings(record, data, growths)
    _prototype(record, data, growths)
    _figures(record, growths)
    _differences(record)
    record.write()


def _describe(record: Recording, data: list[CrowdSet], rounds: int) -> None:
    record.say(
        f"Procedure of the paper: the annotations of a data set in a random order; at {_NUM_POINTS} equidistant points "
        "from a tenth of them to all, SPA of the items that have two or more so far, under each scheme; the variance "
        f"of that over {rounds:,} rounds. The paper's Table 1 is the variance less that of `flat`, summed over the "
        "points: negative is better than flat."
    )
    record.say(
        "**None of these data sets is in the paper.** Its own are not at hand: the full files of DAR, BSMTWE, FECG, "
        "Wikipedia toxicity and AVA, and MBIC, whose terms of use are not settled. So no number below can be compared "
        "with a number of the paper; what can be compared is which schemes are better. Two of the eight rows of its "
        "Table 1, those of MBIC's two labels, stand beside ours."
    )
    record.table("data", [
        {
            "data": one.name, "items": one.counts.num_items, "annotations": len(one.item),
            "per item": f"{one.counts.size.min()}–{one.counts.size.max()}", "classes": one.counts.num_labels,
            "annotators": one.num_annotators, "repeated rows, dropped": one.dropped,
            "items with one annotation": int((one.counts.size == 1).sum()),
        }
        for one in data
    ])  # fmt: skip


def _dependences(record: Recording, data: list[CrowdSet]) -> None:
    record.section("What explains the ranking")
    record.say(
        "All annotations. z: SPA with `edge` weights less SPA with `flat` weights, in standard errors (a Hausman "
        "test): beyond ± 2 the number of annotations and the agreement are related, and weights estimate something "
        "else. ρ of the pooled class shares: `inv_var_class` is `edge` at 0, `annotations_m1` at 1/2, `annotations` at "
        "1. A₂, A₁, A₀: the moments of exchangeable items, that is the covariance of two pairs of annotations that are "
        "the same, that share an annotation, and that do not; r*: the annotations per item that a fixed budget of "
        "annotations is best spent on, 1 + √(2 (A₂ - 2 A₁ + A₀) / A₀)."
    )
    rows = []
    for one in data:
        found, moments = dependence(one.counts), exchangeable_moments(one.counts.patterns)
        values = {
            scheme: sparse_agreement(one.counts.patterns, weight_function(scheme, one.counts)).value
            for scheme in ("flat", "annotations_m1", "edge")
        }
        rows.append({
            "data": one.name, **values, "edge - flat": found.difference, "sd": found.sd, "z": found.z,
            "p of single items": found.single_p, "ρ": rho(class_shares(one.counts)), "A₂": moments.same,
            "A₁": moments.shared, "A₀": moments.disjoint, "r*": _best_number(moments),
        })  # fmt: skip
    record.table("dependence", rows)


def _best_number(moments: Any) -> float:
    """Return r*, the annotations per item at which a fixed budget gives the smallest variance."""
    within = moments.same - 2 * moments.shared + moments.disjoint
    return 1 + float(np.sqrt(2 * within / moments.disjoint)) if moments.disjoint > 0 else float("nan")


def _table_1(record: Recording, growths: dict[str, Growth]) -> None:
    record.section("Table 1: summed variance")
    record.say(
        "Variance over rounds less that of `flat`, summed over the points and divided by that of `annotations_m1`: 1 "
        "is as good as `annotations_m1`, 0 as `flat`, less than 0 worse than `flat`. ± is the Monte Carlo error. "
        "`exch` has the moments of the full data and is therefore an oracle; `inv_var_class` has the class shares of "
        "the full data, since the paper does not say which it takes."
    )
    rows, raw = [], []
    for name, printed in PAPER_TABLE_1.items():
        rows.append({"data": f"{name}, paper", **{scheme: printed.get(scheme, np.nan) for scheme in SCHEMES}})
    for name, growth in growths.items():
        on_grid = growth.values[:, growth.on_grid]
        (ratio, error), summed = with_error(over_m1, on_grid), summed_variance(on_grid)
        rows.append({"data": name, **dict(zip(SCHEMES, ratio, strict=True))})
        rows.append({"data": "±", **dict(zip(SCHEMES, error, strict=True))})
        raw.append({"data": name, **dict(zip(SCHEMES, 1e4 * summed, strict=True))})
    record.table("table-1", rows)
    record.say("The same, not divided, times 10⁴ (less than 0 is better than `flat`):")
    record.table("table-1-raw", raw, digits=2)
    record.data("curves", [
        {
            "data": name, "annotations": int(number), "usable": float(usable),
            **dict(zip(SCHEMES, variance, strict=True)),
        }
        for name, growth in growths.items()
        for number, usable, variance in zip(
            growth.points[growth.on_grid], growth.usable[growth.on_grid], growth.variance, strict=True
        )
    ])  # fmt: skip


def _at_third(growth: Growth) -> np.ndarray:
    """Return the values of all schemes at a third of the annotations, and those of `exch` with estimated moments."""
    return np.column_stack([growth.values[:, growth.third], growth.estimated])


def _errors(record: Recording, growths: dict[str, Growth]) -> None:
    record.section("Mean squared error: what a variance does not show")
    record.say(
        "A third of the annotations, against flat SPA of all of them; over that of `flat` (less than 1 is better). The "
        "target favours `flat` where z is large: read it as *weights change what is estimated there*. 'Estimated' is "
        "`exch` with the moments of the third alone. Bias below, in hundredths."
    )
    columns = (*SCHEMES, "exch, estimated")
    errors, biases = [], []
    for name, growth in growths.items():
        ratio, error = with_error(lambda kept, flat=growth.flat: relative_error(kept, flat), _at_third(growth))
        errors.append({"data": name, **dict(zip(columns, ratio, strict=True))})
        errors.append({"data": "±", **dict(zip(columns, error, strict=True))})
        bias = 100 * (_at_third(growth).mean(axis=0) - growth.flat)
        biases.append({"data": name, **dict(zip(columns, bias, strict=True))})
        spread = 100 * _at_third(growth).std(axis=0, ddof=1)
        biases.append({"data": "sd over rounds", **dict(zip(columns, spread, strict=True))})
    record.table("errors", errors)
    record.table("bias", biases, digits=2)


def _rankings(record: Recording, data: list[CrowdSet], growths: dict[str, Growth]) -> None:
    record.section("Rankings of the paper's schemes")
    record.say(
        "From the best to the worst: '<' is a difference of more than two Monte Carlo errors, '≈' a smaller one, '=' "
        "none. The paper's rows are those of MBIC. n/r*: the mean number of annotations per item over r*. Two things "
        "go with a ranking other than the paper's. By variance: `annotations` beats `annotations_m1`, and `edge` and "
        "`inv_var_class` fall behind `flat`, on the sets with far more annotations per item than r*, where most of the "
        "variance is between items (an observation on six sets). By error: `flat` wins or comes close where z is large."
    )
    number = len(PAPER_SCHEMES)
    rows = [
        {
            "data": f"{name}, paper", "z": np.nan, "n/r*": np.nan,
            "by summed variance": " < ".join(sorted(printed, key=lambda scheme: -printed[scheme])),
            "by error at a third": "–",
        }
        for name, printed in PAPER_TABLE_1.items()
    ]  # fmt: skip
    for one in data:
        growth = growths[one.name]
        rows.append({
            "data": one.name, "z": dependence(one.counts).z,
            "n/r*": len(one.item) / one.counts.num_items / _best_number(exchangeable_moments(one.counts.patterns)),
            "by summed variance": ranking(summed_variance, growth.values[:, growth.on_grid, :number], PAPER_SCHEMES),
            "by error at a third": ranking(
                lambda kept, flat=growth.flat: relative_error(kept, flat), _at_third(growth)[:, :number], PAPER_SCHEMES
            ),
        })  # fmt: skip
    record.table("rankings", rows)


def _prototype(record: Recording, data: list[CrowdSet], growths: dict[str, Growth]) -> None:
    record.section("Beside another implementation")
    record.say(
        "An earlier, separate implementation (1,500 rounds, two digits) measured z on four of these sets, and errors "
        "on three. 'Off by' is the difference in Monte Carlo errors of both, with half a unit of the last digit for "
        "its rounding."
    )
    found = {one.name: dependence(one.counts).z for one in data}
    record.table("prototype-z", [
        {"data": name, "z": found[name], "prototype": value} for name, value in PROTOTYPE_Z.items()
    ])  # fmt: skip
    columns = (*SCHEMES, "exch, estimated")
    rows = []
    for name, printed in PROTOTYPE_ERRORS.items():
        growth = growths[name]
        ratio, error = with_error(lambda kept, flat=growth.flat: relative_error(kept, flat), _at_third(growth))
        for scheme, value in zip(_PROTOTYPE_SCHEMES, printed, strict=True):
            number = columns.index(scheme)
            both = error[number] * np.sqrt(1 + len(growth.values) / 1500)
            beyond = max(abs(ratio[number] - value) - 0.005, 0.0)
            rows.append({
                "data": name, "scheme": scheme, "measured": ratio[number], "±": error[number], "prototype": value,
                "off by": beyond / both,
            })  # fmt: skip
    record.table("prototype-errors", rows)


def _figures(record: Recording, growths: dict[str, Growth]) -> None:
    record.section("Figures")
    record.figure(
        "figure-4", figures.figure_4(),
        "Figure 4: weights by number of annotations, largest 1; and `inv_var` for 2 to 7 classes less its mean over "
        "them: the curves coincide",
    )  # fmt: skip
    curves, studied = figures.class_weights(10, 0), figures.class_weights(250, 1)
    record.say(
        "`inv_var_class` for 250 class distributions of each number of classes, 2 to 10 (logits uniform in -2 to 4): "
        f"the rank correlation of the area under its curve is {studied.rank_correlation('ratio'):.4f} with ρ and "
        f"{studied.rank_correlation('entropy'):.3f} with the entropy, the paper's explanation (the prototype: 1.000 "
        "and -0.654)."
    )
    record.figure(
        "figure-5", figures.figure_5(curves, studied),
        "Figure 5: weights of `inv_var_class` for 10 class distributions of each number of classes; and the area under "
        "such a curve (250 distributions of each) against the entropy, as in the paper, and against ρ, which "
        "determines it",
    )  # fmt: skip
    record.figure(
        "figure-6", figures.figure_6(growths),
        "Figure 6: variance of SPA (flat weights) with items added that have a constant number of annotations, and "
        "with annotations added at random",
    )  # fmt: skip
    record.figure("figure-7", figures.figure_7(growths), "Figure 7: variance less that of `flat`")
    record.figure("figure-8", figures.figure_8(growths), "Figure 8: items added with a constant number of annotations")
    record.figure("figure-9", figures.figure_9(growths), "Figure 9: annotations added at random, flat weights")
    record.figure("figure-10", figures.figure_10(growths), "Figure 10: variances of all schemes")
    record.figure("figure-11", figures.figure_11(growths), "Figure 11: variance less the mean over the schemes")


def _differences(record: Recording) -> None:
    record.section("What differs from the paper, and why")
    record.say(
        "- **Data.** Six public crowd sets with one column of labels each; the paper draws several labels of a data "
        "set (Figures 8, 9, 11) where here each set is one.\n"
        "- **Grid and scale.** The paper states neither the points of its sum nor what its 10² scales: only ratios and "
        "ranks compare.\n"
        "- **Classes of `inv_var_class`.** Not stated either; here the shares of the full data. On MBIC's factual "
        "label, whose shares are nearly equal, the paper's `inv_var_class` differs from its `edge`, which no such "
        "shares can give.\n"
        "- **`inv_var`.** The same as `edge` for every number of classes, exactly; the paper found that but left the "
        "proof open.\n"
        "- **Variance only.** The paper looks at variance alone. Where the number of annotations depends on the "
        "agreement, weights have a bias that no variance shows: hence the errors above and z."
    )
