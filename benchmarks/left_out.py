"""Annotators as systems: each one's ranking, evaluated against a truth that the others alone determine.

A data set of rankings from which one report is left out has an item for every (case, report). All of them are fitted at
once. The result is a human baseline: what the evaluation of a system would say of a person who ranks as the annotators
do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from consilience.data import Predictions, Rankings
from consilience.evaluation.classes import Metric
from consilience.evaluation.registry import METRICS
from consilience.evaluation.scores import Score
from consilience.models.truth import CLASSES, Ranked, Truth
from consilience.models.truth.entries import pad

# Lists are padded to as many positions at least, so that every metric up to this depth can read them.
_WIDTH = 3


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Cases with one report left out, and the report as a prediction.

    Parameters
    ----------
    others : the reports of the others; an item for each (case, report left out) of the cases with two reports or more.
    ranked : int32, shape ``(item, position)``; the classes of the report left out, best first, classes of a block by
        their codes, -1 after the end.
    case : int64, shape ``(item,)``; code of the case.
    cases : ids of all cases.
    """

    others: Rankings
    ranked: np.ndarray
    case: np.ndarray
    cases: Any

    @property
    def predictions(self) -> Predictions:
        """The reports left out, as predictions for the items of ``others``."""
        return Predictions(
            ranked=self.ranked, num_items=self.ranked.shape[0], num_positions=self.ranked.shape[1],
            num_classes=self.others.num_classes, items=self.others.items, classes=self.others.classes,
            name="left-out annotators",
        )  # fmt: skip


def leave_out(cases: Rankings) -> LeftOut:
    """Leave out each report of each case in turn; cases with a single report are left out altogether."""
    report_item = np.asarray(cases.report_item)
    reports = np.bincount(report_item, minlength=cases.num_items)
    first = np.cumsum(reports) - reports
    left_out = np.flatnonzero(reports[report_item] > 1)
    item, other = _ragged(first[report_item[left_out]], reports[report_item[left_out]])
    different = other != left_out[item]
    item, other = item[different], other[different]
    first_row = np.searchsorted(cases.report, np.arange(cases.num_reports + 1))
    class_ = np.asarray(cases.entry_class)[cases.entry]
    report, row = _ragged(first_row[other], np.diff(first_row)[other])
    annotator = np.asarray(cases.report_annotator)
    case = report_item[left_out].astype(np.int64)
    others = Rankings.from_codes(
        item, annotator[other], report, np.asarray(cases.block)[row], class_[row],
        items=cases.items[case] + " without " + cases.annotators[annotator[left_out]],
        annotators=cases.annotators, classes=cases.classes,
    )  # fmt: skip
    listed, own = _ragged(first_row[left_out], np.diff(first_row)[left_out])
    position = own - first_row[left_out[listed]]
    ranked = np.full((len(left_out), max(_WIDTH, int(position.max(initial=0)) + 1)), -1, np.int32)
    ranked[listed, position] = class_[own]
    return LeftOut(others=others, ranked=ranked, case=case, cases=cases.items)


def _ragged(start: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for ranges of numbers, which range each number belongs to, and the number."""
    owner = np.repeat(np.arange(len(start)), length)
    return owner, np.arange(len(owner)) - (np.cumsum(length) - length - start)[owner]


def evaluate_left_out(truth: Truth, left_out: LeftOut, metrics: Sequence[Metric]) -> dict[str, Score]:
    """Score the reports left out: averaged over the annotators of a case, then over cases.

    Parameters
    ----------
    truth : of a fit to ``left_out.others``.
    metrics : of depth three at most, all scored on the same draws in one pass.

    Returns
    -------
    Scores by name, an item each case; NaN for cases with a single report.
    """
    reports = np.bincount(left_out.case, minlength=len(left_out.cases))
    share = 1 / reports[left_out.case]
    num_cases = np.count_nonzero(reports)
    means = {metric.name: np.zeros(truth.num_units) for metric in metrics}
    draws = {metric.name: np.zeros(truth.num_draws) for metric in metrics}
    for block in truth.blocks(Ranked(max(metric.truth_depth for metric in metrics))):
        predicted = pad(left_out.ranked[block.units], block.values.shape[0], -1)
        for metric in metrics:
            leading = block.values[:, :, : metric.truth_depth]
            scores = np.asarray(_score(metric.score, leading, predicted[:, : metric.prediction_depth]))
            means[metric.name][block.units] = scores[: block.num_units].mean(axis=1)
            draws[metric.name] += share[block.units] @ scores[: block.num_units]

    def by_case(items: np.ndarray) -> np.ndarray:
        total = np.bincount(left_out.case, share * items, len(left_out.cases))
        return np.where(reports > 0, total, np.nan)

    others = left_out.others
    predictions = Predictions(
        ranked=left_out.ranked, num_items=len(left_out.ranked), num_positions=left_out.ranked.shape[1],
        num_classes=others.num_classes, items=others.items, classes=others.classes,
    )  # fmt: skip

    def point(metric: Metric) -> float | None:
        sums = METRICS[CLASSES.name](truth, [predictions], [metric]).standard()
        return None if sums is None else float(np.nanmean(by_case(sums[0, 0])))

    return {
        metric.name: Score(
            title=f"{metric.title} of left-out annotators", items=by_case(means[metric.name]),
            draws=draws[metric.name] / num_cases, point=point(metric), ids=left_out.cases,
        )
        for metric in metrics
    }  # fmt: skip


@functools.partial(jax.jit, static_argnums=0)
def _score(score: Callable[[Any, Any], Any], truth: Any, predicted: Any) -> Any:
    """Apply one metric to ``truth`` (item, draw, depth) and ``predicted`` (item, position): (item, draw)."""
    return jax.vmap(jax.vmap(score, in_axes=(0, None)))(truth, predicted)
