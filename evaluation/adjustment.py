"""Uncertainty-adjusted metrics: any metric of (one draw of the truth, a prediction), lifted over draws and items.

One pass over the blocks of a truth scores any number of systems and metrics on the same draws. A block is items ×
draws × depth, so that memory does not depend on the number of items or classes (Stutz et al. 2023, section 3.3).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.classes import ClassMap
from consilience.data.conll import Chains, as_chains
from consilience.data.partitions import Partition
from consilience.data.predictions import Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.coreference_adjusted import evaluate_chains
from consilience.evaluation.coreference_scores import is_coreference_metric
from consilience.evaluation.metrics import Metric, resolve
from consilience.evaluation.partition_scores import check_one_partition, evaluate_partition
from consilience.evaluation.scores import Score
from consilience.models.partition import PartitionTruth
from consilience.models.truth import Truth, pad

__all__ = ["adjusted", "align", "evaluate", "lifted", "mapped_groups", "point_scores"]


class Lifted(NamedTuple):
    """Scores of one block of real items: for each metric ``(system, item, draw)``; and the top class of each draw."""

    items: slice
    scores: list[np.ndarray]
    top: np.ndarray


def adjusted(metric: str | Metric) -> Callable[[Any, Predictions], Score]:
    """Lift a metric of one draw and one prediction to fits: ``adjusted(metric)(fit, predictions)`` is a `Score`."""
    chosen = resolve(metric)
    return lambda fit, predictions: evaluate(fit, predictions, metric=chosen)


def evaluate(
    fit: Any,
    predictions: Predictions | Chains | Partition,
    metric: str | Metric | Sequence[str | Metric] | None = None,
    *,
    by: ClassMap | None = None,
    missing: str = "error",
    unknown: str = "error",
    singletons: bool = True,
) -> Any:
    """Score predictions against an uncertain truth.

    Parameters
    ----------
    fit : a fit, or a `Truth`.
    predictions : of one system: classes of items; the coreference chains of documents (`read_conll`), which need a fit
        of mentions with spans; or the entities of records (`read_partition`), which need a fit of records.
    metric : a name such as ``top-3``, a `Metric`, or a list of them; ``top-1`` by default. For chains ``conll``, the
        default, ``muc``, ``b3``, ``ceafe``, ``ceafm``, ``blanc``, ``lea``, ``mentions``, ``non-referring``: F values,
        or with ``-recall`` or ``-precision`` behind the name. For records ``pairwise-f1``, the default, and the others
        of `consilience.evaluation.partitions.METRIC_FORMS`.
    by : groups of classes (risk categories): adds ``by_group``, the score given the group of the draw's top class,
        beside the usual version, the items selected by the group of the point estimate's top class.
    missing : ``drop`` leaves out items, or records, without a prediction.
    unknown : ``keep`` counts predicted classes that the data do not have as wrong; records that they do not have are
        left out.
    singletons : of chains, whether entities of one mention count.

    Returns
    -------
    Score, or a dict of them by name when a list was given.
    """
    names = [metric] if isinstance(metric, str) else metric if isinstance(metric, list | tuple) else []
    of_chains = hasattr(predictions, "to_chains") or any(map(is_coreference_metric, names))
    if of_chains and not isinstance(predictions, Partition):  # some scores of partitions have the names of theirs
        predictions = as_chains(predictions)
    if isinstance(predictions, Chains):
        if by is not None:
            raise UnsupportedRequest("by= groups the classes of items, and chains have none; leave it out")
        return _evaluate_chains(fit, predictions, metric, singletons)
    if isinstance(predictions, Partition):
        if by is not None:
            raise UnsupportedRequest("by= groups the classes of items, and records have none; leave it out")
        return _evaluate_partition(fit, predictions, metric, missing, unknown)
    metric = "top-1" if metric is None else metric
    truth = truth_of(fit)
    one_metric = isinstance(metric, (str, Metric))
    metrics = [resolve(metric)] if isinstance(metric, (str, Metric)) else [resolve(one) for one in metric]
    ranked, kept = align(truth, predictions, missing=missing, unknown=unknown)
    groups = None if by is None else mapped_groups(truth, by)
    name = "" if predictions.name is None else f" of {predictions.name}"
    totals = [_Totals(truth, None if by is None else len(by.groups)) for _ in metrics]
    for block in lifted(truth, [ranked], metrics):
        for total, scores in zip(totals, block.scores, strict=True):
            total.add(block.items, scores[0], block.top, kept, groups)
    results = {}
    for one, total in zip(metrics, totals, strict=True):
        point = point_scores(truth, ranked, one)
        results[one.name] = Score(
            title=f"{one.title}{name}", items=np.where(kept, total.items, np.nan), draws=total.draws / kept.sum(),
            point=None if point is None else float(point[kept].mean()), ids=truth.items,
            groups=None if by is None or groups is None else total.by_group(by, groups, truth, kept),
        )  # fmt: skip
    return next(iter(results.values())) if one_metric else results


def _evaluate_chains(fit: Any, response: Chains, metric: Any, singletons: bool) -> Any:
    names, one_metric = _names(metric, "conll")
    (found,) = evaluate_chains(fit, [response], names, singletons=singletons)
    return next(iter(found.values())) if one_metric else found


def _evaluate_partition(fit: Any, partition: Partition, metric: Any, missing: str, unknown: str) -> Any:
    names, one_metric = _names(metric, "pairwise-f1")
    found = evaluate_partition(fit, partition, names, missing=missing, unknown=unknown)
    return next(iter(found.values())) if one_metric else found


def _names(metric: Any, default: str) -> tuple[list[str], bool]:
    """Return the names of metrics, and whether one was asked for alone."""
    one_metric = metric is None or isinstance(metric, (str, Metric))
    metrics = [metric or default] if one_metric else list(metric)
    return [one.name if isinstance(one, Metric) else one for one in metrics], one_metric


def truth_of(fit: Any) -> Truth:
    """Return the truth of a fit; a truth is returned as it is."""
    truth = fit if isinstance(fit, (Truth, PartitionTruth)) else getattr(fit, "truth", fit)
    check_one_partition(truth)
    if isinstance(truth, PartitionTruth):
        raise UnsupportedRequest(
            "this truth is a partition, of records into entities or of items into clusters, and no item has a class; "
            "evaluate a partition (read_partition), or look at its pairs(), which says how sure each of them is"
        )
    return truth


def align(
    truth: Truth, predictions: Predictions, *, missing: str, unknown: str
) -> tuple[Int[np.ndarray, "item place"], Bool[np.ndarray, " item"]]:
    """Bring predictions into the item and class order of a truth.

    Returns
    -------
    ranked : int32, shape ``(item, position)``; see `Predictions`.
    kept : bool, shape ``(item,)``; the items that have a prediction.
    """
    items = np.arange(truth.num_items).astype(str) if truth.items is None else truth.items
    classes = np.arange(truth.num_classes).astype(str) if truth.classes is None else truth.classes
    aligned, kept = predictions.align(items, classes, missing=missing, unknown=unknown)
    return np.asarray(aligned.ranked), np.asarray(kept)


def lifted(truth: Truth, systems: Sequence[np.ndarray], metrics: Sequence[Metric]) -> Iterator[Lifted]:
    """Score several systems by several metrics on the same draws, a block of items at a time.

    Parameters
    ----------
    systems : int32 arrays ``(item, position)``, aligned with the truth.
    metrics : the metrics.
    """
    width = max(metric.prediction_depth for metric in metrics)
    predicted = np.stack([_positions(ranked, width) for ranked in systems], axis=1)
    for block in truth.ranked(max(metric.truth_depth for metric in metrics)):
        padded = pad(predicted[block.items], block.values.shape[0], -1)
        scores = []
        for metric in metrics:
            places = block.values[:, :, : metric.truth_depth], padded[:, :, : metric.prediction_depth]
            values = np.asarray(_score_block(metric.score, *places))
            scores.append(np.moveaxis(values[: block.num_items], 1, 0))
        yield Lifted(block.items, scores, np.asarray(block.values[: block.num_items, :, 0]))


@functools.partial(jax.jit, static_argnums=0)
def _score_block(
    score: Callable[[Array, Array], Array],
    truth: Int[Array, "item draw depth"],
    predicted: Int[Array, "item system place"],
) -> Float[Array, "item system draw"]:
    """Apply one metric to ``truth`` (item, draw, depth) and ``predicted`` (item, system, position)."""
    over_draws = jax.vmap(score, in_axes=(0, None))
    over_systems = jax.vmap(over_draws, in_axes=(None, 0))
    return jax.vmap(over_systems)(truth, predicted)


@functools.partial(jax.jit, static_argnums=0)
def _score_ties(score: Callable[..., Array], classes: Array, buckets: Array, predicted: Array) -> Array:
    """Apply one metric to point estimates with ties, item by item."""
    return jax.vmap(score)(classes, buckets, predicted)


def _positions(ranked: Int[np.ndarray, "item place"], depth: int) -> Int[np.ndarray, "item depth"]:
    """Cut or lengthen lists to the positions that a metric reads."""
    width = ranked.shape[1]
    if width >= depth:
        return ranked[:, :depth]
    return np.concatenate([ranked, np.full((len(ranked), depth - width), -1, ranked.dtype)], axis=1)


def point_scores(
    truth: Truth, ranked: Int[np.ndarray, "item place"], metric: Metric
) -> Float[np.ndarray, " item"] | None:
    """Score against the point estimate, as standard practice does, ``(item,)``; None where there is none."""
    if truth.point is None:
        return None
    if metric.tied_score is not None:
        # Distances between rankings know ties: the point estimate keeps them, where a draw has none.
        width = max(metric.truth_depth, int(np.diff(truth.point.entries.first).max(initial=1)))
        classes, buckets = truth.point.bucket_orders(width)
        predicted = _positions(ranked, metric.prediction_depth)
        return np.asarray(_score_ties(metric.tied_score, classes, buckets, predicted))
    return np.concatenate([block.scores[0][0, :, 0] for block in lifted(truth.point, [ranked], [metric])])


def mapped_groups(truth: Truth, groups: ClassMap) -> Int[np.ndarray, " class"]:
    """Return the group of each class of a truth, int32 ``(class,)``; the map may list its classes in any order."""
    if truth.classes is None:
        if groups.num_classes != truth.num_classes:
            raise UnsupportedRequest(
                f"the class map has {groups.num_classes} classes and the truth {truth.num_classes}; "
                "give one group per class"
            )
        return np.asarray(groups.group)
    return np.asarray(groups.align(truth.classes).group)


class _Totals:
    """Sums over the blocks of one pass."""

    def __init__(self, truth: Truth, num_groups: int | None) -> None:
        self.items = np.zeros(truth.num_items)
        self.draws = np.zeros(truth.num_draws)
        self.group_hits = np.zeros((num_groups or 0, truth.num_draws))
        self.group_cases = np.zeros((num_groups or 0, truth.num_draws))

    def add(
        self, items: slice, scores: np.ndarray, top: np.ndarray, kept: np.ndarray, groups: np.ndarray | None
    ) -> None:
        scores, kept = scores.astype(float), kept[items]
        self.items[items] = scores.mean(axis=1)
        self.draws += scores[kept].sum(axis=0)
        if groups is None:
            return
        for number in range(len(self.group_cases)):
            member = (groups[top] == number) & kept[:, None]
            self.group_cases[number] += member.sum(axis=0)
            self.group_hits[number] += (scores * member).sum(axis=0)

    def by_group(self, by: ClassMap, groups: np.ndarray, truth: Truth, kept: np.ndarray) -> dict[str, np.ndarray]:
        """Tabulate the score given the group of each draw's top class, and by the point estimate's."""
        with np.errstate(invalid="ignore", divide="ignore"):
            per_draw = self.group_hits / self.group_cases
            value = self.group_hits.sum(axis=1) / self.group_cases.sum(axis=1)
        # A draw that puts no item into a group says nothing about its spread.
        usable = [draws[np.isfinite(draws)] for draws in per_draw]
        sd = np.array([np.std(draws, ddof=1) if len(draws) > 1 else np.nan for draws in usable])
        rows = {
            "group": np.asarray(by.groups, object), "value": value, "sd": sd,
            "items_expected": self.group_cases.mean(axis=1),
        }  # fmt: skip
        if truth.point is not None:
            top = np.concatenate([np.asarray(b.values)[: b.num_items, 0, 0] for b in truth.point.ranked(1)])
            chosen = [(groups[top] == number) & kept for number in range(len(by.groups))]
            rows["value_by_point_estimate"] = np.array([self.items[c].mean() if c.any() else np.nan for c in chosen])
            rows["items_by_point_estimate"] = np.array([c.sum() for c in chosen])
        return rows
