r"""Errors that an annotator repeats on many items, in scores by models that know no annotators: a jackknife over these.

Such a model (`plackett-luce`, `prirn`, `irn`, `dirichlet`) takes the reports of an item for independent, and items too.
If an annotator always prefers one class to another, no number of items tells, and its intervals are too narrow. So the
annotators are put into G groups, and every score is taken again without the reports of each. Groups may differ in size:
with m of n reports in group g and h = n / m, the deviations of the delete-a-group jackknife (Busing et al. 1999) are

.. math::  d_g = \frac{\tilde s_g - \hat s}{\sqrt{G (h_g - 1)}}, \qquad \tilde s_g = h_g s - (h_g - 1) s_{(g)}, \qquad
    \hat s = G s - \sum_g (1 - m_g / n)\, s_{(g)},

of which :math:`\sum_g d_g d_g^\top` estimates the covariance of the scores; of equal groups it is the usual
:math:`(G - 1) / G \sum_g (s_{(g)} - \bar s)^2`.

Items are independent given such a model, so that one fit does: of the items, and of each item without each group that
reported on it and leaves others. Of sampled models that fit has few draws, whose noise the mean over items removes.

References
----------
F. M. T. A. Busing, E. Meijer and R. Van der Leeden. Delete-m jackknife for unequal m. Statistics and Computing 9
(1999), 3-8.
"""

from __future__ import annotations

import dataclasses
import heapq
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.data.annotations import Annotations
from consilience.data.rankings import Rankings
from consilience.errors import ConsilienceWarning, UnsupportedRequest
from consilience.evaluation.classes import align
from consilience.evaluation.engine import Scoring, fold
from consilience.evaluation.own_look import Responding, forms_of
from consilience.evaluation.registry import METRICS
from consilience.evaluation.unit_sums import UnitSums
from consilience.models.truth.classes import ClassTruth
from consilience.models.truth.truth import CLASSES, Shares

ALLOWED = "Intervals allow for errors that an annotator repeats on many items"
"""What is said of a comparison that does, at the beginning of a note."""

MOST_GROUPS = 10
"""Of annotators."""

_LEAST_GROUPS = 3
# Of all that groups report on items, the share that has to leave other reports of the item.
_LEAST_SHARED = 0.5
# Of a fit that is sampled; of one in closed form so many draws are made.
_CHAINS, _WARMUP, _DRAWS = 2, 100, 100
_NULLS = 3  # times that groups are exchanged within items
_STREAM, _NULL = 1 << 43, 1 << 44
_METHODS = ("exact", "gibbs", "em")


class _Reports(NamedTuple):
    """Who reported on what, and whether the report names a class; weights are numbers of reports.

    ``source`` is of each annotator, below 0 of who shares none; None where no one does.
    """

    item: Int[np.ndarray, " report"]
    annotator: Int[np.ndarray, " report"]
    weight: Float[np.ndarray, " report"]
    names_some: Bool[np.ndarray, " report"]
    source: Any = None


class Groups(NamedTuple):
    """The annotators in groups.

    Parameters
    ----------
    of_report : shape ``(report,)``.
    size : shape ``(group,)``; reports of each.
    num_annotators : who reported.
    """

    of_report: Int[np.ndarray, " report"]
    size: Float[np.ndarray, " group"]
    num_annotators: int

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a variance over them, one less than the equal groups that they are worth."""
        share = self.size / self.size.sum()
        return float(1 / (share @ share) - 1)


class Stack(NamedTuple):
    """The items, and after them each item without a group.

    Parameters
    ----------
    item : shape ``(unit,)``; which item a unit is, from 0 to ``num_items`` - 1 the items themselves.
    group : shape ``(pair,)``; whose reports the further units leave out.
    num_items : of the data.
    shared : how much of what groups report leaves other reports of the item.
    """

    item: Int[np.ndarray, " unit"]
    group: Int[np.ndarray, " pair"]
    num_items: int
    shared: float

    def units(self, group: int, left_out: Int[np.ndarray, " pair"]) -> Int[np.ndarray, " item"]:
        """Return the unit of each item without a group; that of the item itself where nothing is left or left out."""
        found, pair = np.arange(self.num_items), np.flatnonzero(left_out == group)
        found[self.item[self.num_items + pair]] = self.num_items + pair
        return found

    def exchanged(self, random: np.random.Generator) -> Int[np.ndarray, " pair"]:
        """Return groups exchanged within each item, at random: as if errors were independent from item to item."""
        item = self.item[self.num_items :]
        return self.group[np.lexsort((random.random(len(item)), item))]


@dataclasses.dataclass(frozen=True, eq=False)
class Repeated:
    """How scores change without groups of annotators.

    Parameters
    ----------
    groups : of annotators.
    deviations : by reading, ``""`` the annotators alone and else a response model of an own look; shape ``(system,
        group)``. Their products are covariances.
    own_share : how much of these the errors that are independent from item to item explain, which other parts of
        intervals hold.
    """

    groups: Groups
    deviations: Mapping[str, Float[np.ndarray, "system group"]]
    own_share: float = 0.0

    @property
    def note(self) -> str:
        """What is said of it."""
        number, annotators = len(self.groups.size), self.groups.num_annotators
        over = f"{annotators} annotators" if number == annotators else f"{annotators} annotators in {number} groups"
        return f"{ALLOWED} (jackknife over {over})."

    def draws(self, form: str, seed: int, number: int) -> Float[np.ndarray, "system replicate"]:
        """Return deviations of scores, normal given a variance that is known from so many groups alone."""
        random, freedom = np.random.default_rng([seed, _STREAM]), self.groups.freedom
        scale = np.sqrt(np.maximum(freedom / random.chisquare(freedom, number) - self.own_share, 0.0))
        return self.deviations[form] @ (scale * random.standard_normal((len(self.groups.size), number)))


def repeated_errors(
    fit: Any, truth: Any, scoring: Scoring, systems: Mapping[str, Any], metric: Any, name: str, seed: int, *,
    looks: bool, unknown: str,
) -> Repeated | None:  # fmt: skip
    """Return how scores change without annotators; None where the data or the model do not allow to leave any out.

    Parameters
    ----------
    fit, truth, scoring, systems, metric, name, seed, unknown : as `compare` has them.
    looks : whether an own look counts.
    """
    groups = None if not leaves_out_annotators(fit, truth) or fit.method not in _METHODS else groups_of(fit.data, seed)
    if groups is None:
        return None
    data, stack = without_each(fit.data, groups)
    if stack.shared < _LEAST_SHARED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConsilienceWarning)  # the fit and the comparison have warned already
            units: Any = fit.refitted(data, draws=min(_DRAWS, fit.draws), chains=_CHAINS, warmup=_WARMUP).truth
            aligned = [align(truth, one, missing="drop", unknown=unknown)[0] for one in systems.values()]
            given = [_stacked(one, units, stack) for one in aligned]
            scores = _Scores(units, scoring, given, metric, name, looks)
    except UnsupportedRequest:  # such as priors of single items
        return None
    whole, number = scores.at(np.arange(stack.num_items)), len(groups.size)
    random, found = np.random.default_rng([seed, _NULL]), []
    for exchange in range(1 + _NULLS):
        left_out = stack.exchanged(random) if exchange else stack.group
        without = np.stack([scores.at(stack.units(group, left_out)) for group in range(number)], axis=-1)
        found.append(_deviations(whole, without, groups, stack.shared))
    if not np.isfinite(found).all():
        return None
    variance, *null = np.square(found).sum(axis=(1, -1))
    share = np.divide(np.mean(null, axis=0), variance, out=np.zeros_like(variance), where=variance > 0)
    return Repeated(groups, dict(zip(scores.readings, found[0], strict=True)), float(share.min()))


def leaves_out_annotators(fit: Any, truth: Any) -> bool:
    """Return whether a fit is of annotators' reports by a model of plausibilities that knows no annotators."""
    if fit is truth or truth.kind is not CLASSES or truth.dependence is not None or not truth.answers(Shares()):
        return False
    known = any("annotator" in site.dims for site in fit.member.sites)
    return not known and type(fit.data) in _REPORTS and fit.engine is None


def groups_of(data: Annotations | Rankings, seed: int) -> Groups | None:
    """Put annotators into groups, each alone or, of many, balanced by their reports; None where they are not known.

    Who shares a source is one annotator. Too few are as good as not known; so are positions in lists, which are no
    names.
    """
    reports = _REPORTS[type(data)](data)
    real = reports.weight > 0
    if not data.num_annotators or (reports.annotator[real] < 0).any() or _are_positions(data, reports):
        return None
    who = np.maximum(reports.annotator, 0)
    if reports.source is not None:
        alone = data.num_annotators + np.arange(data.num_annotators)
        who = np.where(np.asarray(reports.source) < 0, alone, reports.source)[who]
    number = np.bincount(who, reports.weight)
    there = np.flatnonzero(number)
    group = np.full(len(number), -1)
    if len(there) <= MOST_GROUPS:
        group[there] = np.arange(len(there))
    else:
        shuffled = np.random.default_rng([seed, _STREAM]).permutation(there)
        full = [(0.0, place) for place in range(MOST_GROUPS)]
        for one in shuffled[np.argsort(-number[shuffled], kind="stable")].tolist():
            size, group[one] = full[0]
            heapq.heapreplace(full, (size + number[one], int(group[one])))
    found = Groups(group[who], np.bincount(group[there], number[there]), len(there))
    return found if len(there) >= _LEAST_GROUPS and found.freedom > _LEAST_GROUPS - 1.5 else None


def without_each(data: Annotations | Rankings, groups: Groups) -> tuple[Annotations | Rankings, Stack]:
    """Return data of the items, and of each item without each group that reported on it and leaves others."""
    reports, number = _REPORTS[type(data)](data), len(groups.size)
    counts = reports.names_some & (reports.weight > 0)
    pair = reports.item.astype(np.int64)[counts] * number + groups.of_report[counts]
    pairs, of_pair = np.unique(pair, return_counts=True)
    item, group = np.divmod(pairs, number)
    leaves = of_pair < np.bincount(reports.item[counts], minlength=data.num_items)[item]
    shared = float(leaves.mean()) if len(leaves) else 0.0
    item, group = item[leaves], group[leaves]
    # All reports of each unit's item, but those of the group that it leaves out.
    order = np.argsort(reports.item, kind="stable")
    first = np.searchsorted(reports.item[order], np.arange(data.num_items + 1))
    place, unit = _expanded(first[item], first[item + 1])
    report = order[place]
    stays = groups.of_report[report] != group[unit]
    report = np.concatenate([np.arange(len(reports.item)), report[stays]])
    unit = np.concatenate([reports.item, data.num_items + unit[stays]])
    stack = Stack(np.concatenate([np.arange(data.num_items), item]), group, data.num_items, shared)
    return _REPEATED[type(data)](data, report, unit, len(stack.item)), stack


def _labels(data: Annotations) -> _Reports:
    item, annotator, weight = (np.asarray(one) for one in (data.item, data.annotator, data.weight))
    return _Reports(item, annotator, weight, np.ones(len(item), bool), data.group)


def _orders(data: Rankings) -> _Reports:
    number = np.bincount(np.asarray(data.report), minlength=data.num_reports)
    item, annotator = np.asarray(data.report_item), np.asarray(data.report_annotator)
    return _Reports(item, annotator, np.ones(len(item)), number > 0)


def _labels_again(data: Annotations, report: np.ndarray, unit: np.ndarray, number: int) -> Annotations:
    """Return some reports, again and again, each of a unit among so many."""
    who, label, weight = (np.asarray(one)[report] for one in (data.annotator, data.label, data.weight))
    who = np.maximum(who, 0)  # of rows that do not count
    size = data.num_annotators
    return Annotations.from_codes(
        unit, who, label, weight=weight, labels=data.labels, num_items=number, num_annotators=size
    )


def _orders_again(data: Rankings, report: np.ndarray, unit: np.ndarray, number: int) -> Rankings:
    """Return the same of rankings."""
    rows = np.searchsorted(np.asarray(data.report), np.arange(data.num_reports + 1))
    row, new = _expanded(rows[report], rows[report + 1])
    who, class_ = np.asarray(data.report_annotator)[report], np.asarray(data.entry_class)[np.asarray(data.entry)[row]]
    size = data.num_annotators
    return Rankings.from_codes(
        unit, who, new, np.asarray(data.block)[row], class_, classes=data.classes, num_items=number, num_annotators=size
    )


_REPORTS: dict[type, Callable[[Any], _Reports]] = {Annotations: _labels, Rankings: _orders}
_REPEATED: dict[type, Callable[..., Any]] = {Annotations: _labels_again, Rankings: _orders_again}


def _are_positions(data: Annotations | Rankings, reports: _Reports) -> bool:
    """Return whether annotators are called by their places in the list of each item, which tell nothing of them.

    Where every item has all of them they may as well be people, and are taken for such: of places the jackknife finds
    nothing, and makes intervals a little wider than they need be.
    """
    names = data.annotators
    if names is not None and list(names) != [str(code) for code in range(len(names))]:
        return False
    highest = np.full(data.num_items, -1)
    np.maximum.at(highest, reports.item, reports.annotator)
    different = np.unique(reports.item.astype(np.int64) * data.num_annotators + reports.annotator)
    number = np.bincount(different // data.num_annotators, minlength=data.num_items)
    return bool((number == highest + 1).all() and (number[number > 0] < data.num_annotators).any())


def _expanded(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of several ranges, one after another, and of which range each is."""
    length = stop - start
    which = np.repeat(np.arange(len(length)), length)
    return np.arange(len(which)) + np.repeat(start - np.cumsum(length) + length, length), which


def _stacked(predictions: Any, truth: ClassTruth, stack: Stack) -> Any:
    """Return predictions of the units, from those of the items."""
    probability = predictions.probability
    return predictions.replace(
        ranked=np.asarray(predictions.ranked)[stack.item], num_items=len(stack.item), items=truth.names(),
        probability=None if probability is None else np.asarray(probability)[stack.item],
    )  # fmt: skip


class _Scores:
    """Scores of systems by reading, from the units that stand for the items."""

    def __init__(
        self, truth: ClassTruth, scoring: Scoring, systems: Sequence[Any], metric: Any, name: str, looks: bool
    ) -> None:
        self.scoring, self.name = scoring, name
        scored = [metric or truth.kind.metric]
        of_units = METRICS[truth.kind.name](truth, systems, scored, missing="error", unknown="keep")
        moments = of_units.exact()
        if moments is None:
            sums = UnitSums(of_units)
            fold(of_units, sums)
            self.mean = sums.mean
        else:
            self.mean = moments.unit[:, None]
        self.responding = None
        if looks and scoring.first_choice is not None:
            assert of_units.first_choice is not None
            self.responding = Responding(forms_of(truth), of_units.first_choice)
        self.readings = ["", *(self.responding.forms if self.responding is not None else ())]

    def at(self, units: Int[np.ndarray, " item"]) -> Float[np.ndarray, "reading system"]:
        """Return the scores where these units stand for the items."""
        own = units[self.scoring.place]
        alone = self.scoring.value(self.name, self.mean[:, :, own].sum(axis=2))
        return alone[None] if self.responding is None else np.concatenate([alone[None], self.responding.at(own)])


def _deviations(
    whole: Float[np.ndarray, "*row"], without: Float[np.ndarray, "*row group"], groups: Groups, shared: float
) -> Float[np.ndarray, "*row group"]:
    """Return deviations whose products are the jackknife's covariances.

    Items of which a group leaves no other report are taken to change as the others do.
    """
    share = groups.size / groups.size.sum()
    change = (without - whole[..., None]) / shared
    pseudo = -(1 / share - 1) * change  # from the whole score
    mean = -((1 - share) * change).sum(axis=-1, keepdims=True)
    return np.asarray((pseudo - mean) / np.sqrt(len(share) * (1 / share - 1)))
