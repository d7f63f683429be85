"""Annotation certainty: how often the draws of the truth agree on something (Stutz et al. 2023, equations 4 to 6).

Certainty is a score whose system is the truth's own mode: the share of draws in which the most frequent top class, or
set of j top classes, or risk category, is on top; of records and mentions, in which the cluster that the estimate puts
them into is exactly one. It is 1 for every point estimate, and it is not a score to be maximised: it rises with the
reliability that one grants to the annotators.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.accept import as_class_map, as_system
from consilience.data.classes import ClassMap
from consilience.data.codes import object_array
from consilience.deprecation import renamed
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate, require_exact
from consilience.evaluation.classes import mapped_groups
from consilience.evaluation.engine import PerUnit, Scoring, Sums, Totals, fold, mean_of
from consilience.evaluation.independent import mean_quantiles
from consilience.evaluation.scores import Score
from consilience.models.truth import CLASSES, Ranked, Truth, truth_of
from consilience.models.truth.entries import most_frequent
from consilience.models.truth.truth import Clusters, Mass


@renamed
def certainty(
    fit: Any,
    top: int | Sequence[int] = 1,
    *,
    of: Any = None,
    class_groups: Any = None,
    group_rule: str = "top",
    exact: bool | None = None,
) -> Any:
    """Measure how certain the annotations make the truth of each item.

    Parameters
    ----------
    fit : Fit
        A fit, or a `Truth`; of records and mentions it is the certainty of the cluster of each in the estimate.
    top : int or sequence of int, default 1
        J, the size of the set of most plausible classes; several sizes are measured in one pass over the draws.
    of : Predictions, or what is read as such, optional
        Certainty of these given labels or sets (`Predictions`, or a table of them), in place of the most frequent ones;
        ``top`` then is their longest length. Where the truth is one label an item, that the label is in the set.
    class_groups : str, default "top"
        Groups of classes, such as risk categories, as a `ClassMap` or what `read_class_map` reads; the certainty then
        is that of the group.
    group_rule : str, default "top"
        ``top``, the group of the most plausible class, or ``sum``, the group with the largest summed plausibility.
    exact : bool, optional
        By default in closed form where the truth has one, and else by draws: labels of a closed form have it, and of
        Dirichlet plausibilities the top class and its group. True refuses what has none, False takes draws, which are
        biased upwards by about 0.0013 with 1,000 of them, because the largest of several frequencies is taken.

    Returns
    -------
    Score, or a dict of them by size when several were given
        its table has the columns ``item``, ``classes`` (the most certain class, set or group) and ``certainty``.

    Raises
    ------
    UnsupportedRequest : an option has no meaning for this truth, or has no closed form and one was asked for.

    Examples
    --------
    >>> import consilience as cs
    >>> labels = cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"])
    >>> found = cs.certainty(cs.fit("dirichlet", labels))
    >>> found.table.round(3)
      item classes  certainty
    0    0      no      0.976
    1    1     yes      0.721
    """
    of = None if of is None else as_system(fit, of)
    class_groups = as_class_map(fit, class_groups)
    given = truth_of(fit)
    if given.answers(Clusters()):
        if top != 1 or of is not None or class_groups is not None:
            raise UnsupportedRequest("certainty of clusters is that of each whole cluster; leave out the other options")
        return _of_clusters(given, exact)
    truth: Any = given.read_as(CLASSES.name)
    sizes = list(top) if isinstance(top, Sequence) else [top]
    for size in sizes:
        if size != int(size) or not 1 <= size <= truth.num_classes:
            raise UnsupportedRequest(
                f"top is {size}; give a whole number from 1 to {truth.num_classes}, the number of classes"
            )
    if group_rule not in ("top", "sum"):
        raise UnsupportedRequest(f"group_rule is {group_rule!r}; give 'top' or 'sum'")
    if class_groups is not None and sizes != [1]:
        raise UnsupportedRequest("certainty after mapping classes is that of one group per draw; leave out top")
    if of is not None and class_groups is not None:
        raise UnsupportedRequest("certainty of given labels or sets has no grouped form; leave out the others")
    if of is not None:
        size = max(1, of.num_positions)
        set_known = size > 1 and truth.answers(Ranked(size))
        return evaluate(truth, of, metric=f"{'set' if set_known else 'top'}-{size}", exact=exact)
    found = {} if exact is False else {size: _exact(truth, class_groups, group_rule) for size in sizes if size == 1}
    found = {size: score for size, score in found.items() if score is not None}
    rest = [size for size in sizes if size not in found]
    if exact and rest:
        title = "certainty of " + (f"the top {rest[0]} classes" if class_groups is None else "the group, in this way,")
        require_exact(None, title)
    if rest:
        found |= _drawn(truth, rest, class_groups, group_rule)
    return {size: found[size] for size in sizes} if isinstance(top, Sequence) else found[sizes[0]]


def _drawn(truth: Any, sizes: Sequence[int], class_groups: ClassMap | None, group_rule: str) -> dict[int, Score]:
    """Measure certainties by draws, all in one pass."""
    chosen = {size: np.zeros((truth.num_units, size), np.int64) for size in sizes}

    def blocks() -> Iterator[Sums]:
        for units, codes in _leading(truth, max(sizes), class_groups, group_rule):
            agrees = []
            for size in sizes:
                sets = np.sort(codes[:, :, :size], axis=-1)
                code = _one_code(sets, truth.num_classes)
                agrees.append(code == most_frequent(code)[0][:, None])
                chosen[size][units] = sets[np.arange(len(sets)), agrees[-1].argmax(axis=1)]
            yield Sums(units, slice(0, truth.num_draws), np.stack(agrees)[None])

    names = truth.ids.get("class") if class_groups is None else class_groups.groups
    scoring = _scoring(truth, blocks, len(sizes), "item")
    totals, rows = Totals(scoring), [PerUnit(scoring, str(part)) for part in range(len(sizes))]
    fold(scoring, totals, *rows)
    return {
        size: Score(
            title=_title(size, class_groups, group_rule), items=own.rows()[0], draws=totals.scores(own.name)[0],
            ids=scoring.ids, label="certainty", columns={"classes": _set_names(chosen[size], names)},
        )
        for size, own in zip(sizes, rows, strict=True)
    }  # fmt: skip


def _scoring(truth: Any, blocks: Callable[[], Iterator[Sums]], num_parts: int, row: str) -> Scoring:
    """Return a scoring whose parts are shares of units, each a metric by its number."""
    return Scoring(
        blocks=blocks, values={str(part): mean_of(part) for part in range(num_parts)},
        title=lambda name, system=None, draws=None: name, unit=row, num_units=truth.num_units,
        num_draws=truth.num_draws, joint=False, standard=lambda: None, place=np.arange(truth.num_units),
        rows=truth.num_units, ids=truth.ids.get(row), row=row,
    )  # fmt: skip


def _of_clusters(truth: Truth, exact: bool | None) -> Score:
    """Measure how probably the cluster of each unit in the estimate is exactly one."""
    if exact:
        require_exact(None, "certainty of clusters")
    wanted, draws, row = truth.estimate(), np.zeros(truth.num_draws), truth.kind.unit
    words = np.random.default_rng(0).integers(0, 2**64, truth.num_units, np.uint64)
    of_wanted, items = _set_words(wanted[None], words), np.zeros(truth.num_units)
    for block in truth.blocks(Clusters()):
        equal = _set_words(np.asarray(block.values), words) == of_wanted
        items += equal.sum(axis=0)
        draws[block.draws] = equal.mean(axis=1)
    return Score(
        title="certainty that the cluster is exactly that of the estimate", items=items / truth.num_draws, draws=draws,
        ids=truth.ids.get(row), label="certainty", unit=row,
    )  # fmt: skip


def _set_words(cluster: Int[np.ndarray, "draw unit"], words: np.ndarray) -> np.ndarray:
    """Return a number for the set that is each unit's cluster: the sum of random words; 0 where it has no cluster."""
    code = np.where(cluster >= 0, cluster, cluster.shape[1])
    total = np.zeros((len(code), cluster.shape[1] + 1), np.uint64)
    np.add.at(total, (np.arange(len(code))[:, None], code), np.broadcast_to(words, code.shape))
    return np.where(cluster >= 0, np.take_along_axis(total, code, axis=1), 0)


@renamed
@renamed
def expected_risk(fit: Any, class_groups: Any) -> Score:
    """Average the numeric score of a class over its plausibilities: the expected risk of an item.

    Stutz et al. (2023), Figure 8.

    Parameters
    ----------
    fit : Fit
        A fit, or a `Truth`.
    class_groups : ClassMap or source of one
        Groups of classes whose names are numbers, as a `ClassMap` or what `read_class_map` reads.

    Returns
    -------
    Score
        The risk of each item, in ``items``, and its mean, in the units of the groups.

    Raises
    ------
    UnsupportedRequest : the groups are no numbers.

    Examples
    --------
    >>> import consilience as cs
    >>> labels = cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"])
    >>> risk = cs.ClassMap.from_codes([0, 1], classes=["no", "yes"], groups=[0, 3])
    >>> cs.expected_risk(cs.fit("majority-vote", labels, uncertainty="shares"), risk).items.round(2).tolist()
    [0.0, 2.0]
    """
    risk: Any = as_class_map(fit, class_groups)
    if risk.score is None:
        raise UnsupportedRequest(
            f"the groups of the class map are {', '.join(map(str, risk.groups[:5]))}; "
            "expected risk needs numbers as groups"
        )
    truth: Any = truth_of(fit).read_as(CLASSES.name)
    score = np.asarray(risk.score, float)
    question, point = Mass(mapped_groups(truth, risk), len(score)), truth.standard()

    def blocks() -> Iterator[Sums]:
        for block in truth.blocks(question):
            yield Sums(block.units, block.draws, (block.real @ score)[None, None])

    scoring = _scoring(truth, blocks, 1, "item")
    totals, rows = Totals(scoring), PerUnit(scoring, "0")
    fold(scoring, totals, rows)
    of_point = None
    if point is not None:
        of_point = float(np.concatenate([block.real[:, 0] @ score for block in point.blocks(question)]).mean())
    return Score(
        title="expected risk", items=rows.rows()[0], draws=totals.scores("0")[0], point=of_point, ids=scoring.ids,
        label="risk",
    )  # fmt: skip


def _title(top: int, class_groups: ClassMap | None, group_rule: str) -> str:
    if class_groups is None:
        return "certainty of the top class" if top == 1 else f"certainty of the set of the top {top} classes"
    return f"certainty of the group {'of the top class' if group_rule == 'top' else 'with the largest sum'}"


def _leading(
    truth: Any, depth: int, class_groups: ClassMap | None, group_rule: str
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield, block by block, the leading classes, or the leading group, ``(item, draw, depth)``."""
    if class_groups is None:
        for block in truth.blocks(Ranked(depth)):
            yield block.units, block.real
        return
    groups = mapped_groups(truth, class_groups)
    if group_rule == "top":
        for block in truth.blocks(Ranked(1)):
            yield block.units, groups[block.real]
    else:
        for block in truth.blocks(Mass(groups, class_groups.num_groups)):
            yield block.units, block.real.argmax(axis=-1)[:, :, None]


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
    if text.shape[1] == 1:
        return text[:, 0] if names is not None else object_array(map(str, text[:, 0]))
    return object_array(" | ".join(map(str, row)) for row in text)


def _exact(truth: Any, class_groups: ClassMap | None, group_rule: str) -> Score | None:
    """Return the certainty of the top class, or of its group, in closed form; None where there is none."""
    if class_groups is None:
        if truth.exact(Ranked(1)) is None:
            return None
        value, chosen, names = truth.lead.certainty, truth.lead.label, truth.ids.get("class")
    else:
        by_group = _group_probabilities(truth, mapped_groups(truth, class_groups), class_groups.num_groups, group_rule)
        if by_group is None:
            return None
        value, chosen, names = by_group.max(axis=1), by_group.argmax(axis=1), class_groups.groups
    # Items are independent: the share of items that a draw agrees with is a sum of independent indicators.
    sd = float(np.sqrt(np.sum(value * (1 - value))) / truth.num_units)
    return Score(
        title=f"{_title(1, class_groups, group_rule)}, exact", items=value, draws=np.empty(0), exact_sd=sd,
        exact_interval=functools.partial(mean_quantiles, value), ids=truth.ids.get("item"), label="certainty",
        columns={"classes": _set_names(chosen[:, None], names)},
    )  # fmt: skip


def _group_probabilities(
    truth: Any, groups: Int[np.ndarray, " class"], num_groups: int, group_rule: str
) -> Float[np.ndarray, "item group"] | None:
    """Return how probably each group is that of the top class, or the one with the largest sum."""
    found = truth.exact(Ranked(1))
    # Where the truth is a label its group has all the mass, and both are the same.
    if found is None or (group_rule == "sum" and truth.exact(Mass(groups, num_groups)) is None):
        return None
    shape = (truth.num_units, num_groups)
    cell = found.unit * num_groups + groups[found.code]
    named = np.bincount(cell, found.probability, truth.num_units * num_groups).reshape(shape)
    num_named = np.bincount(cell, minlength=truth.num_units * num_groups).reshape(shape)
    in_group = np.bincount(groups, minlength=num_groups)
    return named + found.unnamed[:, None] * (in_group - num_named)
