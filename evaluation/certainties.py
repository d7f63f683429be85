"""Annotation certainty: how often the draws of the truth agree on something (Stutz et al. 2023, equations 4 to 6).

Certainty is a lifted metric without a prediction: the share of draws in which the most frequent top class, or set of
j top classes, or risk category, is on top. It is 1 for every point estimate, and it is not a score to be maximised:
it rises with the reliability that one grants to the annotators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from consilience.arrays import Int
from consilience.data.classes import ClassMap
from consilience.data.predictions import Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate, mapped_groups, truth_of
from consilience.evaluation.metrics import resolve
from consilience.evaluation.scores import Score
from consilience.models.truth import Block, Truth, most_frequent

__all__ = ["certainty", "expected_risk"]


def certainty(
    fit: Any,
    top: int | Sequence[int] = 1,
    *,
    of: Predictions | None = None,
    classes_to: ClassMap | None = None,
    by: str = "top",
    exact: bool = False,
) -> Any:
    """Measure how certain the annotations make the truth of each item.

    Parameters
    ----------
    fit : a fit, or a `Truth`.
    top : j, the size of the set of most plausible classes; several sizes are measured in one pass over the draws.
    of : certainty of these given labels or sets, in place of the most frequent ones; ``top`` then is their longest
        length.
    classes_to : groups of classes, such as risk categories; the certainty then is that of the group.
    by : ``top``, the group of the most plausible class, or ``sum``, the group with the largest summed plausibility.
    exact : by quadrature in place of draws, where the posterior allows it; only for ``top=1``. Draws are biased
        upwards by about 0.0013 with 1,000 of them, because the largest of several frequencies is taken.

    Returns
    -------
    Score, or a dict of them by size when several were given
        its table has the columns ``item``, ``classes`` (the most certain class, set or group) and ``certainty``.
    """
    truth = truth_of(fit)
    sizes = list(top) if isinstance(top, Sequence) else [top]
    for size in sizes:
        if size != int(size) or not 1 <= size <= truth.num_classes:
            raise UnsupportedRequest(
                f"top is {size}; give a whole number from 1 to {truth.num_classes}, the number of classes"
            )
    if by not in ("top", "sum"):
        raise UnsupportedRequest(f"by is {by!r}; give 'top' or 'sum'")
    if classes_to is not None and sizes != [1]:
        raise UnsupportedRequest("certainty after mapping classes is that of one group per draw; leave out top")
    if of is not None and (exact or classes_to is not None):
        raise UnsupportedRequest("certainty of given labels or sets has no exact or grouped form; leave out the others")
    if of is not None:
        return evaluate(truth, of, metric=resolve(f"set-{max(1, of.num_positions)}"))
    if exact:
        return _exact(truth, sizes, classes_to, by)
    counts = {size: _Agreement(truth, size) for size in sizes}
    for items, codes in _leading(truth, max(sizes), classes_to, by):
        for size, count in counts.items():
            count.add(items, np.sort(codes[:, :, :size], axis=-1))
    names = truth.classes if classes_to is None else classes_to.groups
    scores = {size: count.score(_title(size, classes_to, by), names) for size, count in counts.items()}
    return scores if isinstance(top, Sequence) else scores[sizes[0]]


class _Agreement:
    """Counts, block by block, how often the draws of each item agree on a set."""

    def __init__(self, truth: Truth, size: int) -> None:
        self.truth = truth
        self.share, self.agreeing = np.zeros(truth.num_items), np.zeros(truth.num_draws)
        self.chosen = np.zeros((truth.num_items, size), np.int64)

    def add(self, items: slice, sets: np.ndarray) -> None:
        """Count the sorted sets ``(item, draw, size)`` of a block."""
        codes = _one_code(sets, self.truth.num_classes)
        mode, self.share[items] = most_frequent(codes)
        agrees = codes == mode[:, None]
        self.agreeing += agrees.sum(axis=0)
        self.chosen[items] = sets[np.arange(len(sets)), agrees.argmax(axis=1)]

    def score(self, title: str, names: Any) -> Score:
        """Return the certainty of each item's most frequent set."""
        return Score(
            title=title, items=self.share, draws=self.agreeing / self.truth.num_items, ids=self.truth.items,
            label="certainty", columns={"classes": _set_names(self.chosen, names)},
        )  # fmt: skip


def expected_risk(fit: Any, risk: ClassMap) -> Score:
    """Average the numeric score of a class over its plausibilities: the expected risk of an item.

    Stutz et al. (2023), Figure 8.

    Parameters
    ----------
    fit : a fit, or a `Truth`.
    risk : groups of classes whose names are numbers.
    """
    if risk.score is None:
        raise UnsupportedRequest(
            f"the groups of the class map are {', '.join(map(str, risk.groups[:5]))}; "
            "expected risk needs numbers as groups"
        )
    truth = truth_of(fit)
    groups, score = mapped_groups(truth, risk), np.asarray(risk.score, float)
    items, draws = np.zeros(truth.num_items), np.zeros(truth.num_draws)
    for block in truth.grouped(groups, len(score)):
        risks = np.asarray(block.values)[: block.num_items] @ score
        items[block.items] = risks.mean(axis=1)
        draws += risks.sum(axis=0)
    point = None
    if truth.point is not None:
        blocks = truth.point.grouped(groups, len(score))
        point = float(np.concatenate([np.asarray(b.values)[: b.num_items, 0] @ score for b in blocks]).mean())
    return Score(
        title="expected risk", items=items, draws=draws / truth.num_items, point=point, ids=truth.items, label="risk"
    )


def _title(top: int, classes_to: ClassMap | None, by: str) -> str:
    if classes_to is None:
        return "certainty of the top class" if top == 1 else f"certainty of the set of the top {top} classes"
    return "certainty of the group of the top class" if by == "top" else "certainty of the group with the largest sum"


def _leading(truth: Truth, depth: int, classes_to: ClassMap | None, by: str) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield, block by block, the leading classes, or the leading group, ``(item, draw, depth)``."""
    if classes_to is None:
        for block in truth.ranked(depth):
            yield block.items, _real(block)
        return
    groups = mapped_groups(truth, classes_to)
    if by == "top":
        for block in truth.ranked(1):
            yield block.items, groups[_real(block)]
    else:
        for block in truth.grouped(groups, classes_to.num_groups):
            yield block.items, _real(block).argmax(axis=-1)[:, :, None]


def _real(block: Block) -> np.ndarray:
    return np.asarray(block.values)[: block.num_items]


def _one_code(sets: Int[np.ndarray, "item draw size"], num_classes: int) -> Int[np.ndarray, "item draw"]:
    """Give sets ``(item, draw, top)`` numbers: equal sets, equal number."""
    code = sets[:, :, 0].astype(np.int64)
    for place in range(1, sets.shape[2]):
        if int(code.max(initial=0)) + 1 > np.iinfo(np.int64).max // (num_classes + 1):
            # So many classes that the next digit would overflow: number the sets so far consecutively.
            code = np.unique(code, return_inverse=True)[1].reshape(code.shape)
        code = code * (num_classes + 1) + sets[:, :, place] + 1
    return code


def _set_names(chosen: np.ndarray, names: Any) -> np.ndarray:
    """Name each set; classes are separated by bars."""
    text = np.asarray(chosen if names is None else np.asarray(names, object)[chosen], object)
    return np.array([" | ".join(map(str, row)) for row in text], object)


def _exact(truth: Truth, sizes: list[int], classes_to: ClassMap | None, by: str) -> Score:
    if sizes != [1] or by != "top":
        raise UnsupportedRequest("exact certainty exists for the top class and its group only; leave out exact")
    probability = truth.top_probabilities()
    entries = truth.entries  # every truth with exact probabilities lists its entries
    if classes_to is None:
        leading = truth.leading()
        value, chosen, names = leading["certainty"], leading["label"], truth.classes
    else:
        groups = mapped_groups(truth, classes_to)
        cell = entries.item * classes_to.num_groups + groups[entries.class_]
        size = truth.num_items * classes_to.num_groups
        shape = (truth.num_items, classes_to.num_groups)
        named = np.bincount(cell, probability.entry, size).reshape(shape)
        num_named = np.bincount(cell, minlength=size).reshape(shape)
        in_group = np.bincount(groups, minlength=classes_to.num_groups)
        by_group = named + probability.unnamed[:, None] * (in_group - num_named)
        value, chosen, names = by_group.max(axis=1), by_group.argmax(axis=1), classes_to.groups
    # Items are independent: the share of items that a draw agrees with is a sum of independent indicators.
    sd = float(np.sqrt(np.sum(value * (1 - value))) / truth.num_items)
    return Score(
        title=f"{_title(1, classes_to, by)}, exact", items=value, draws=np.empty(0), exact_sd=sd, ids=truth.items,
        label="certainty", columns={"classes": _set_names(chosen[:, None], names)},
    )  # fmt: skip
