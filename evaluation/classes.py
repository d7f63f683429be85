r"""Metrics of one prediction against one draw of the truth, by name.

A metric is a pure function of one item and one draw: the draw's classes from the most plausible downwards ("truth"),
and the system's classes from its first choice downwards ("prediction"); `jax.vmap` lifts it over items, draws and
systems. Notation: $Y_j$ are the $j$ most plausible classes of the draw, $C_k$ the first $k$ classes of the prediction;
a prediction may be shorter than $k$, and then $C_k$ is all of it. An empty prediction scores 0. Metrics of predicted
probabilities are sums over classes: `consilience.evaluation.soft_metrics`.

One pass over the blocks of a truth scores any number of systems and metrics on the same draws. A block is items ×
draws × depth, so that memory does not depend on the number of items or classes (Stutz et al. 2023, section 3.3).

All functions here take their depths from the shapes of their arguments. Codes below 0 never match: -1 stands after the
end of a list, -2 in a prediction is a class that the data do not know, which fills a place and is wrong.

References
----------
D. Stutz et al. Evaluating AI systems under uncertain ground truth: a case study in dermatology. arXiv:2307.02191
(2023), section 3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.classes import ClassMap
from consilience.data.predictions import Predictions
from consilience.data.problems import counted, warn_input
from consilience.errors import InputError, InputProblem, UnsupportedRequest
from consilience.evaluation import soft_metrics
from consilience.evaluation.engine import Scoring, Sums, mean_of
from consilience.evaluation.independent import Moments, hit_means, hit_moments
from consilience.evaluation.rank_distances import BucketOrder, footrule_score, kendall_score
from consilience.evaluation.registry import METRICS, metric, scores
from consilience.models.truth import CLASSES, Ranked
from consilience.models.truth.classes import ClassTruth
from consilience.models.truth.entries import pad
from consilience.models.truth.truth import Shares

# Class codes, best first: as many as the metric needs of a draw or of a prediction.
_Places = Int[Array, " _"]


@dataclass(frozen=True)
class Metric:
    """How one prediction is scored against one draw; pass your own wherever a name is accepted.

    Parameters
    ----------
    name : str
        What a user types, "top-3".
    title : str
        What tables and figures print, "top-3 accuracy".
    truth_depth : int, default 1
        How many of the draw's classes the score needs, best first.
    prediction_depth : int, default 1
        How many positions of the prediction the score needs.
    score : callable, optional
        Function of ``truth``, int32 ``(truth_depth,)``, -1 where the data have fewer classes, and ``prediction``, int32
        ``(prediction_depth,)``, -1 after its end and -2 for a class unknown to the data. Returns a float scalar in [0,
        1]. It has to work under `jax.jit` and `jax.vmap`.
    reference : str, default ""
        Where it is defined.
    tied_score : callable, optional
        The same for a point estimate, which may tie classes: function of its ``classes`` and ``buckets``, int32
        ``(place,)`` with -1 at the end, and ``prediction``. None where ties are broken by the lowest class code.
    needs : {'ranks', 'probabilities'}, default "ranks"
        "ranks", or "probabilities" of a metric that has a soft score and no other.
    soft : soft_metrics.Terms, optional
        What a class adds to the score, of arrays that broadcast: what the system gives it, how plausible it is (0 or 1
        of labels), and whether it is the first choice.
    bounds : tuple[float, float], optional
        Between which numbers the score lies; None where nothing bounds it.
    parts : int, default 1
        Of how many sums over items the score is made: one for each of as many equal bins of the probability of the
        first choice.
    value : callable, optional
        Of a metric that is no mean: function of sums ``(part, …)``, averaged over draws, and of how many items.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> metric = Metric("same-pair", "both first", 2, 2, lambda truth, prediction: jnp.all(truth == prediction) * 1.0)
    >>> float(metric.score(jnp.array([4, 1]), jnp.array([4, 1])))
    1.0
    """

    name: str
    title: str
    truth_depth: int = 1
    prediction_depth: int = 1
    score: Callable[[Array, Array], Array] | None = None
    reference: str = ""
    tied_score: Callable[[Array, Array, Array], Array] | None = None
    needs: Literal["ranks", "probabilities"] = "ranks"
    soft: soft_metrics.Terms | None = None
    bounds: tuple[float, float] | None = (0.0, 1.0)
    parts: int = 1
    value: Callable[[np.ndarray, Any], np.ndarray] | None = None


def resolve(metric: str | Metric) -> Metric:
    """Return the metric of this name; a `Metric` is returned as it is.

    Parameters
    ----------
    metric : a name of one of the registered forms, such as "top-3", or a `Metric`.

    Returns
    -------
    Metric : the same object for the same name, so that compiled functions can be keyed by it.

    Raises
    ------
    UnknownName : the text lists the forms.

    Examples
    --------
    >>> resolve("top-3").title
    'top-3 accuracy'
    """
    return metric if isinstance(metric, Metric) else _named(metric)


@functools.cache
def _named(name: str) -> Metric:
    form, sizes = METRICS[CLASSES.name].form_of(name)
    found: Metric = form.function(*sizes)
    return found


def _target_accuracy(truth: _Places, prediction: _Places) -> Float[Array, ""]:
    """Return whether all targets are predicted; the targets are all classes where there are fewer than targets."""
    found = jnp.any(_matches(truth, prediction), axis=1)
    return jnp.asarray(jnp.all(found | (truth < 0)) & found[0], float)


def _set_accuracy(truth: _Places, prediction: _Places) -> Float[Array, ""]:
    return jnp.asarray(_overlaps(truth, prediction)[-1] == 1, float)


def _overlap(truth: _Places, prediction: _Places) -> Float[Array, ""]:
    return _overlaps(truth, prediction)[-1]


def _average_overlap(truth: _Places, prediction: _Places) -> Float[Array, ""]:
    return jnp.mean(_overlaps(truth, prediction))


def _compared(score: Callable, truth: _Places, buckets: _Places, prediction: _Places) -> Float[Array, ""]:
    """Return the score of two rankings, of which the first may have ties; 0 where one is empty."""
    order = jnp.arange(prediction.shape[0])
    value = score(BucketOrder(truth, buckets), BucketOrder(prediction, order), order.size)
    return jnp.where((truth[0] != -1) & (prediction[0] != -1), value, 0)


def _compared_untied(score: Callable, truth: _Places, prediction: _Places) -> Float[Array, ""]:
    return _compared(score, truth, jnp.arange(truth.shape[0]), prediction)


def _overlaps(truth: _Places, prediction: _Places) -> Float[Array, " size"]:
    """Return size(C_k intersected with Y_c) / c, c = size of C_k, for every k from 1 to the length of both."""
    places = jnp.arange(truth.shape[0])
    reached = jnp.where(_matches(truth, prediction), jnp.maximum(places[:, None], places[None, :]), places.size)
    # A class is in both sets of size c once c exceeds its worse place in the two lists.
    sizes = jnp.cumsum(prediction != -1)
    common = jnp.sum(jnp.min(reached, axis=1)[None, :] < sizes[:, None], axis=1)
    return common / jnp.maximum(sizes, 1)


def _matches(truth: _Places, prediction: _Places) -> Bool[Array, "target place"]:
    return (truth[:, None] == prediction[None, :]) & (truth[:, None] >= 0)


_PAPER = "Stutz et al. 2023, arXiv:2307.02191"
_FAGIN = "Fagin et al. 2003, Comparing top k lists"
_RULES = "Gneiting and Raftery 2007, Strictly proper scoring rules, JASA 102"
_KURNIAWAN, _LIN = "Kurniawan et al. 2025, arXiv:2502.01891", "Lin 1991, IEEE Trans. Inf. Theory 37"
_GUO = "Guo et al. 2017, On calibration of modern neural networks"


@metric("accuracy", kind=CLASSES, line="the most plausible class is the first one predicted (top-1)")
def _accuracy() -> Metric:
    return _named("top-1")


@metric("top-k", kind=CLASSES, line="the most plausible class is among the first k predicted")
def _top(k: int) -> Metric:
    return Metric(f"top-{k}", f"top-{k} accuracy", 1, k, _target_accuracy, f"{_PAPER}, equation 8")


@metric(
    "top-k-target-j", kind=CLASSES, line="the j most plausible classes, j <= k, are all among the first k predicted"
)
def _top_targets(k: int, j: int) -> Metric:
    title = f"top-{k} accuracy, {j} target{'s' if j > 1 else ''}"
    return Metric(f"top-{k}-target-{j}", title, j, k, _target_accuracy, f"{_PAPER}, text before equation 7")


@metric("set-k", kind=CLASSES, line="the first k predicted are, as a set, the k most plausible classes")
def _set(k: int) -> Metric:
    return Metric(f"set-{k}", f"set-{k} accuracy", k, k, _set_accuracy, f"{_PAPER}, equation 9")


@metric("overlap-k", kind=CLASSES, line="share of the first k predicted that are among the k most plausible classes")
def _overlap_at(k: int) -> Metric:
    return Metric(f"overlap-{k}", f"overlap@{k}", k, k, _overlap, f"{_PAPER}, equations 10 and 11")


@metric(
    "average-overlap-k", kind=CLASSES,
    line="mean, over j = 1 to k, of the share of the first j predicted that are among the j most plausible classes",
)  # fmt: skip
def _average_overlap_at(k: int) -> Metric:
    name = f"average-overlap-{k}"
    return Metric(name, f"average overlap@{k}", k, k, _average_overlap, f"{_PAPER}, equation 12")


@metric("ao-k", kind=CLASSES, line="short for average-overlap-k")
def _short_average_overlap(k: int) -> Metric:
    return _named(f"average-overlap-{k}")


@metric(
    "kendall-k", kind=CLASSES,
    line="1 - normalised Kendall distance (penalty 1/2) between the two ordered lists of k",
)  # fmt: skip
def _kendall_at(k: int) -> Metric:
    return _of_orders(f"kendall-{k}", f"Kendall score@{k}", k, kendall_score, f"{_FAGIN}, K^(1/2)")


@metric("footrule-k", kind=CLASSES, line="1 - normalised footrule distance between the two ordered lists of k")
def _footrule_at(k: int) -> Metric:
    return _of_orders(f"footrule-{k}", f"footrule score@{k}", k, footrule_score, f"{_FAGIN}, F^(l), l = k + 1")


def _of_orders(name: str, title: str, k: int, score: Callable, reference: str) -> Metric:
    """Return the metric of two ordered lists of k that a distance of rankings makes."""
    untied, tied = functools.partial(_compared_untied, score), functools.partial(_compared, score)
    return Metric(name, title, k, k, untied, reference, tied)


def _soft(name: str, title: str, terms: soft_metrics.Terms, reference: str, line: str, **more: Any) -> None:
    """Register a metric of probabilities."""
    made = functools.partial(Metric, name, title, reference=reference, needs="probabilities", soft=terms, **more)
    metric(name, kind=CLASSES, line=f"of probabilities: {line}")(made)


_soft(
    "log", "log score", lambda q, own, _: special.xlogy(own, q), _RULES, "mean log of what the truth got", bounds=None
)
# Plausibilities sum to the 1 from which the squares are taken.
_soft("brier", "Brier score", lambda q, own, _: own - (q - own) ** 2 / 2, _RULES, "1 - half the squared distance")
_soft("soft-f1", "soft F1", lambda q, own, _: np.minimum(q, own), _KURNIAWAN, "mass in common")
_soft("jsd", "Jensen-Shannon score", soft_metrics.shannon_terms, _LIN, "1 - JS divergence, in bits")


@metric("ece-b", kind=CLASSES, line="of probabilities: 1 - calibration error of the first choice, in b bins")
def _ece(b: int) -> Metric:
    title = f"1 - ECE ({b} bins, which bias it by the order of sqrt({b} / items))"
    return Metric(
        f"ece-{b}", title, reference=_GUO, needs="probabilities", soft=lambda q, own, first: first * (own - q),
        bounds=None, parts=b, value=lambda parts, number: 1 - np.abs(parts).sum(axis=0) / number,
    )  # fmt: skip


# Scoring --------------------------------------------------------------------------------------------------------------


@scores(CLASSES)
def _scoring(
    truth: ClassTruth, systems: Sequence[Predictions], metrics: Sequence[Any], *,
    missing: str = "error", unknown: str = "error", **settings: Any,
) -> Scoring:  # fmt: skip
    """Score predictions against the classes of each draw, item by item."""
    chosen = [resolve(one) for one in metrics]
    aligned = [align(truth, predictions, missing=missing, unknown=unknown) for predictions in systems]
    given, kept = [one for one, _ in aligned], np.logical_and.reduce([mask for _, mask in aligned])
    if not kept.any():
        raise InputError(InputProblem("no item has predictions of all systems", "check that their item ids agree"))
    soft = any(one.soft for one in chosen)
    for system in given if soft else ():
        system.unlisted_probability()  # refuses what has none
    place, before = np.flatnonzero(kept), np.concatenate([[0], np.cumsum(kept)])
    starts, plausible = np.cumsum([0, *(one.parts for one in chosen)]).tolist(), truth.answers(Shares())

    def blocks() -> Iterator[Sums]:
        lost = np.zeros((len(given), len(kept)), bool)
        for block in _blocks(truth, given, chosen, plausible):
            own, units = kept[block.units], slice(int(before[block.units.start]), int(before[block.units.stop]))
            if soft:
                lost[:, block.units] |= own & np.isneginf(block.values).any(axis=(1, 3))
            top = None if block.top is None else block.top[own]
            yield Sums(units, block.draws, block.values[:, :, own], top)
        for system, items in zip(given, lost, strict=True):
            if items.any():
                named = truth.names()[items].tolist()
                what = counted("items of which a class that may be true has probability 0", named)
                warn_input(f"the score of '{system.name}' is -inf: there are {what}; give each class some probability")

    def standard() -> np.ndarray | None:
        point: Any = truth.standard()
        if point is None:
            return None
        return np.concatenate([_standard(point, given, one, plausible) for one in chosen], axis=1)[:, :, place]

    def exact() -> Moments | None:
        found = truth.exact(Ranked(1)) if one_target else None
        return None if found is None else hit_moments(found, predicted, place)

    predicted, titles = _positions(given, chosen[:1]), {one.name: one.title for one in chosen}
    one_target = len(chosen) == 1 and chosen[0].score is _target_accuracy and chosen[0].truth_depth == 1
    return Scoring(
        blocks=blocks, values={one.name: _value_of(one, start) for one, start in zip(chosen, starts[:-1], strict=True)},
        title=lambda name, system=None, draws=None: titles[name] + (f" of {system}" if system is not None else ""),
        unit="item", num_units=len(place), num_draws=truth.num_draws, joint=False, standard=standard, exact=exact,
        place=place, independent=truth.independent_items,
        mean_given=(lambda found: hit_means(found, predicted, place)) if one_target else None,
        first_choice=predicted[place, :, 0].T if one_target and predicted.shape[2] == 1 else None,
        rows=truth.num_units, ids=truth.ids.get("item"), row="item",
        bounds={one.name: one.bounds for one in chosen},
        of_means=frozenset(one.name for one in chosen if one.value is not None),
    )  # fmt: skip


def _blocks(
    truth: ClassTruth, systems: Sequence[Predictions], metrics: Sequence[Metric], plausible: bool
) -> Iterator[Sums]:
    """Yield scores of all items; top classes are not known where plausibilities alone are asked for."""
    soft = plausible and any(one.soft for one in metrics)
    ranks = not soft or any(not one.soft for one in metrics)
    predicted, depth = _positions(systems, metrics), max(one.truth_depth for one in metrics)
    # Both questions cut items into the same blocks; their draws are not the same.
    questions: Any = [Ranked(depth)] * ranks + [Shares()] * soft
    for answers in zip(*map(truth.blocks, questions), strict=True):
        of_ranks, of_shares = answers[0], answers[-1]
        units, class_ = of_ranks.units, truth.entries.class_[of_shares.values.entries] if soft else None
        padded: Any = pad(predicted[units], len(of_ranks.values), -1) if ranks else None
        found = []
        for one in metrics:
            if one.soft is None:
                leading, places = of_ranks.values[:, :, : one.truth_depth], padded[:, :, : one.prediction_depth]
                found.append(np.asarray(_score_block(one.score, leading, places))[:, None, : of_ranks.num_units])
                continue
            values = np.stack([soft_metrics.soft_scores(one.soft, each, of_shares, class_) for each in systems])
            bins = np.stack([soft_metrics.in_bins(each, one.parts, units) for each in systems])
            found.append(np.where(bins[..., None], values[:, None], 0.0))
        yield Sums(units, of_ranks.draws, np.concatenate(found, axis=1), of_ranks.real[:, :, 0] if ranks else None)


def _positions(systems: Sequence[Predictions], metrics: Sequence[Metric]) -> Int[np.ndarray, "item system place"]:
    """Return as many positions of each list as the metrics read, -1 after its end."""
    depth = max(one.prediction_depth for one in metrics)
    cut = [np.asarray(one.ranked)[:, :depth] for one in systems]
    return np.stack([np.pad(one, ((0, 0), (0, depth - one.shape[1])), constant_values=-1) for one in cut], axis=1)


def _value_of(metric: Metric, start: int) -> Callable[[np.ndarray, Any], np.ndarray]:
    """Return the value of a metric whose sums begin there."""
    value, own = metric.value or mean_of(0), slice(start, start + metric.parts)
    return lambda parts, number: value(parts[own], number)


def align(
    truth: ClassTruth, predictions: Predictions, *, missing: str, unknown: str
) -> tuple[Predictions, Bool[np.ndarray, " item"]]:
    """Bring predictions into the item and class order of a truth, and say which items have some; see `Predictions`."""
    classes = truth.names("class", truth.num_classes)
    return predictions.align(truth.names(), classes, missing=missing, unknown=unknown)


def mapped_groups(truth: ClassTruth, groups: ClassMap) -> Int[np.ndarray, " class"]:
    """Return the group of each class of a truth, int32 ``(class,)``; the map may list its classes in any order.

    Raises
    ------
    UnsupportedRequest : the truth has classes without names, and the map has another number of them.
    InputError : the map has no group for a class.
    """
    classes = truth.ids.get("class")
    if classes is None:
        if groups.num_classes != truth.num_classes:
            raise UnsupportedRequest(
                f"the class map has {groups.num_classes} classes and the truth {truth.num_classes}; "
                "give one group per class"
            )
        return np.asarray(groups.group)
    return np.asarray(groups.align(classes).group)


def _standard(
    point: Any, systems: Sequence[Predictions], metric: Metric, plausible: bool
) -> Float[np.ndarray, "system part item"]:
    """Score against the point estimate, as standard practice does."""
    if metric.tied_score is None:
        blocks = _blocks(point, systems, [metric], plausible and point.answers(Shares()))
        return np.concatenate([block.values for block in blocks], axis=2)[..., 0]
    # Distances between rankings know ties: the point estimate keeps them, where a draw has none.
    width = max(metric.truth_depth, int(np.diff(point.entries.first).max(initial=1)))
    predicted = _positions(systems, [metric])
    return np.asarray(_score_ties(metric.tied_score, *point.bucket_orders(width), predicted))[:, None]


@functools.partial(jax.jit, static_argnums=0)
def _score_block(
    score: Any, truth: Int[Array, "item draw depth"], predicted: Int[Array, "item system place"]
) -> Float[Array, "system item draw"]:
    over_draws = jax.vmap(score, in_axes=(0, None))
    over_systems = jax.vmap(over_draws, in_axes=(None, 0))
    return jax.vmap(over_systems, out_axes=1)(truth, predicted)


@functools.partial(jax.jit, static_argnums=0)
def _score_ties(
    score: Callable[..., Array], classes: Array, buckets: Array, predicted: Int[Array, "item system place"]
) -> Float[Array, "system item"]:
    """Score against point estimates with ties, item by item."""
    return jax.vmap(jax.vmap(score, in_axes=(None, None, 0)), out_axes=1)(classes, buckets, predicted)
