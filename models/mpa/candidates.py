r"""Who could be right: the labels of each item that may be true, and who was asked about them (Paun et al. 2018).

The candidates of an item are the distinct labels that it got. Each annotation is one decision per candidate of its
item: yes for the label that it names, no for the others. A candidate with its item is a *pair*, and the pairs of an
item that share a class are a *group*, such as all antecedents (DO) of a mention.

Decisions are many and repetitive: all that an annotation says about a group is that its annotator was asked, once for
each pair in it, and which pair was chosen. The tables therefore have one row per annotation and group (*asked*), and
one per annotation (*chosen*), not one per decision; with that a sum over decisions of a pair is

.. math::

    \sum_n (y_n\, w^1_{j_n} + (1 - y_n)\, w^0_{j_n})
    = \sum_{n \text{ asked}} w^0_{j_n} + \sum_{n \text{ chose it}} (w^1_{j_n} - w^0_{j_n}) .

All of this runs on the host, and returns NumPy arrays.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.data.annotations import Annotations
from consilience.data.mentions import MENTION_TYPES, Mentions
from consilience.errors import TooLarge, UnsupportedRequest
from consilience.models.gold import uses_gold
from consilience.models.rows import ranges
from consilience.notes import Remedy


class Tables(NamedTuple):
    """What the kernels read.

    Parameters
    ----------
    pair_class : int32, shape ``(pair,)``; position in ``classes``.
    pair_group : int32, shape ``(pair,)``, increasing where pairs are sorted by item and class.
    pair_counts : shape ``(pair,)``; 1, or 0 for a candidate of an item without annotations: that it could be true says
        nothing about how often such candidates are.
    group_size : shape ``(group,)``; number of its pairs.
    asked_group, asked_cell : int32, shape ``(asked,)``; the cell of an annotator and class is
        ``annotator * len(classes) + class``.
    asked_weight : shape ``(asked,)``.
    chosen_pair, chosen_cell : int32, shape ``(chosen,)``.
    chosen_weight : shape ``(chosen,)``.
    yes, no : shape ``(annotator, class)``; weighted number of decisions.
    known : shape ``(pair,)``; 1 where the candidate is known to be true, -1 where it is known not to be, -2 of what
        pads, else 0.
    classes : int32, shape ``(class,)``; codes of the classes that some candidate has.
    """

    pair_class: Int[Array, " pair"]
    pair_group: Int[Array, " pair"]
    pair_counts: Float[Array, " pair"]
    group_size: Float[Array, " group"]
    asked_group: Int[Array, " asked"]
    asked_cell: Int[Array, " asked"]
    asked_weight: Float[Array, " asked"]
    chosen_pair: Int[Array, " chosen"]
    chosen_cell: Int[Array, " chosen"]
    chosen_weight: Float[Array, " chosen"]
    yes: Float[Array, "annotator class"]
    no: Float[Array, "annotator class"]
    known: Float[Array, " pair"]
    classes: Int[Array, " class"]


class Candidates(NamedTuple):
    """The candidates of all items.

    Parameters
    ----------
    item, label : int32, shape ``(pair,)``, sorted by item and label; the candidates.
    seen : int64, shape ``(pair,)``; the row of the data that first names the candidate, -1 where none does.
    votes : float64, shape ``(pair,)``; weighted number of annotations that name it.
    asked : float64, shape ``(pair,)``; weighted number of annotations of its item.
    labels : object array of the names of the labels, in code order; None where they are not known.
    num_items, num_labels : how many items and labels there are.
    tables : what the kernels read.
    """

    item: Int[np.ndarray, " pair"]
    label: Int[np.ndarray, " pair"]
    seen: Int[np.ndarray, " pair"]
    votes: Float[np.ndarray, " pair"]
    asked: Float[np.ndarray, " pair"]
    labels: Any
    num_items: int
    num_labels: int
    tables: Tables


class Labelled(NamedTuple):
    """What the model reads of annotations or of mentions; its arrays may be traced.

    Parameters
    ----------
    item, annotator : codes, shape ``(annotation,)``.
    label, gold : the parts of a label, each ``(annotation,)`` and ``(item,)``: the class and, of mentions, the
        antecedent. Gold labels are None where the data have none.
    weight : shape ``(annotation,)``.
    items : ids; None where they are not known.
    classes : names of the classes that the parameters are for, whether or not they occur; codes where not known.
    num_items, num_annotators : sizes.
    is_open : whether the labels are an open list, the possible antecedents.
    """

    item: Int[Array, " annotation"]
    annotator: Int[Array, " annotation"]
    label: tuple[Array, ...]
    gold: tuple[Array, ...] | None
    weight: Float[Array, " annotation"]
    items: Any
    classes: Any
    num_items: int
    num_annotators: int
    is_open: bool


def labelled(data: Mentions | Annotations) -> Labelled:
    """Return what the model reads of either contract; of annotations each label is a class of its own."""
    if isinstance(data, Mentions):
        gold = None if data.gold_type is None else (data.gold_type, data.gold_antecedent)
        return Labelled(
            data.mention, data.annotator, (data.type, data.antecedent), gold, np.ones(data.num_annotations),
            data.mentions, np.array(MENTION_TYPES, object), data.num_mentions, data.num_annotators, is_open=True,
        )  # fmt: skip
    classes = np.arange(data.num_labels) if data.labels is None else np.asarray(data.labels, object)
    return Labelled(
        data.item, data.annotator, (data.label,), None if data.gold is None else (data.gold,), data.weight, data.items,
        classes, data.num_items, data.num_annotators, is_open=False,
    )  # fmt: skip


class _Rows(NamedTuple):
    """Annotations of either kind, as codes.

    ``class_of`` and ``names`` are those of the labels, ``bare`` are the labels of items without annotations, and
    ``gold`` is the known label of an item, or -1.
    """

    item: Int[np.ndarray, " annotation"]
    annotator: Int[np.ndarray, " annotation"]
    label: Int[np.ndarray, " annotation"]
    weight: Float[np.ndarray, " annotation"]
    class_of: Int[np.ndarray, " label"]
    names: Any
    bare: Int[np.ndarray, " bare"]
    gold: Int[np.ndarray, " item"]
    num_items: int
    num_annotators: int


def candidates_of(
    data: Mentions | Annotations, candidates: str = "observed", gold: str = "ignore"
) -> Candidates:
    """Return the candidates of all items.

    Parameters
    ----------
    data : annotated mentions; or annotations, each label of which is a class of its own.
    candidates : "observed", the labels that an item got; or "closed", all labels, which only `Annotations` can have.
    gold : with "use", the true label of an item is known where the data have a gold label: it is true and the others
        are not. It is a candidate also where nobody chose it, since that tells of the annotators.

    An item without annotations has the labels without antecedent as candidates, all of prior probability.
    """
    check_data(data, candidates, gold)
    return _candidates_of(data, candidates, gold)


# A fit, its mirror modes, its truth and its tables ask for the same candidates; data are frozen, and equal to
# themselves alone.
@functools.lru_cache(maxsize=1)
def _candidates_of(data: Mentions | Annotations, candidates: str, gold: str) -> Candidates:
    rows = _rows_of(data)
    if gold == "ignore":
        rows = rows._replace(gold=np.full(rows.num_items, -1))
    known = np.flatnonzero(rows.gold >= 0)
    asked = np.bincount(rows.item, rows.weight, rows.num_items).astype(float)
    num_labels = len(rows.class_of)
    if candidates == "closed":
        pair = np.arange(rows.num_items * num_labels)
    else:
        blank = np.flatnonzero(np.bincount(rows.item, minlength=rows.num_items) == 0)
        every_label = (blank[:, None] * num_labels + rows.bare).ravel()
        of_gold = known * num_labels + rows.gold[known]
        pair = np.unique(np.concatenate([rows.item * num_labels + rows.label, every_label, of_gold]))
    item, label = (part.astype(np.int32) for part in np.divmod(pair, num_labels))
    pair_of_row = np.searchsorted(pair, rows.item * num_labels + rows.label)
    seen = np.full(len(pair), len(rows.item))
    np.minimum.at(seen, pair_of_row, np.arange(len(rows.item)))
    return Candidates(
        item=item, label=label, seen=np.where(seen < len(rows.item), seen, -1),
        votes=np.bincount(pair_of_row, rows.weight, len(pair)).astype(float), asked=asked[item], labels=rows.names,
        num_items=rows.num_items, num_labels=num_labels, tables=_tables(rows, item, label, pair_of_row),
    )  # fmt: skip


def _rows_of(data: Any) -> _Rows:
    own = labelled(data)
    counted = np.asarray(own.weight) > 0
    item, annotator = (np.asarray(codes)[counted].astype(np.int64) for codes in (own.item, own.annotator))
    weight, sizes = np.asarray(own.weight, float)[counted], (own.num_items, own.num_annotators)
    if own.is_open:
        codes = data.label_codes()
        bare = np.flatnonzero(codes.antecedent < 0)
        label, gold = codes.label.astype(np.int64), codes.gold.astype(np.int64)
        return _Rows(item, annotator, label, weight, codes.type, codes.names, bare, gold, *sizes)
    label, every = np.asarray(own.label[0])[counted].astype(np.int64), np.arange(len(own.classes))
    gold = np.full(own.num_items, -1) if own.gold is None else np.asarray(own.gold[0], np.int64)
    return _Rows(item, annotator, label, weight, every, data.labels, every, gold, *sizes)


def _tables(rows: _Rows, item: np.ndarray, label: np.ndarray, pair_of_row: np.ndarray) -> Tables:
    classes, pair_class = np.unique(rows.class_of[label], return_inverse=True)
    # Pairs are sorted by item and label, and labels by class: equal groups stand together.
    key = item.astype(np.int64) * len(classes) + pair_class
    begins = np.append(True, key[1:] != key[:-1])[: len(key)]
    group, pair_group = key[begins], np.cumsum(begins) - 1
    group_item, group_class = np.divmod(group, len(classes))
    # One row for each annotation and each group of its item.
    first = np.searchsorted(group_item, np.arange(rows.num_items + 1))
    groups = np.diff(first)[rows.item]
    row = np.repeat(np.arange(len(rows.item)), groups)
    asked_group = first[rows.item][row] + ranges(groups)
    order = np.argsort(asked_group, kind="stable")
    row, asked_group = row[order], asked_group[order]
    annotated = np.bincount(rows.item, minlength=rows.num_items) > 0
    return _finish(
        pair_class, pair_group, annotated[item], np.bincount(pair_group, minlength=len(group)),
        np.where(rows.gold[item] < 0, 0, np.where(rows.gold[item] == label, 1, -1)),
        (asked_group, rows.annotator[row] * len(classes) + group_class[asked_group], rows.weight[row]),
        (pair_of_row, rows.annotator * len(classes) + pair_class[pair_of_row], rows.weight),
        classes, rows.num_annotators,
    )  # fmt: skip


def _finish(
    pair_class: np.ndarray, pair_group: np.ndarray, pair_counts: np.ndarray, group_size: np.ndarray,
    known: np.ndarray,
    asked: tuple, chosen: tuple, classes: np.ndarray, num_annotators: int,
) -> Tables:  # fmt: skip
    shape = num_annotators, len(classes)
    (asked_group, asked_cell, asked_weight), (chosen_pair, chosen_cell, chosen_weight) = asked, chosen
    yes = np.bincount(chosen_cell, chosen_weight, shape[0] * shape[1]).astype(float)
    both = np.bincount(asked_cell, asked_weight * group_size[asked_group], shape[0] * shape[1])
    codes = {
        "pair_class": pair_class, "pair_group": pair_group, "asked_group": asked_group, "asked_cell": asked_cell,
        "chosen_pair": chosen_pair, "chosen_cell": chosen_cell, "classes": classes,
    }  # fmt: skip
    numbers = {
        "pair_counts": pair_counts, "group_size": group_size, "asked_weight": asked_weight, "known": known,
        "chosen_weight": chosen_weight, "yes": yes.reshape(shape), "no": np.maximum(both - yes, 0).reshape(shape),
    }  # fmt: skip
    return Tables(
        **{name: np.asarray(values, np.int32) for name, values in codes.items()},
        **{name: np.asarray(values, float) for name, values in numbers.items()},
    )


def check_data(data: Mentions | Annotations, candidates: str, gold: str = "ignore") -> None:
    """Refuse data that do not say who labelled, closed lists of labels that point to other mentions, missing gold.

    Raises
    ------
    UnsupportedRequest : gold labels are asked for and there are none; the labels are an open list, and candidates
        are closed; or nobody knows who labelled.
    TooLarge : the profiles of all annotators would not fit.
    """
    uses_gold(data, gold)
    own = labelled(data)
    if own.is_open and candidates == "closed":
        raise UnsupportedRequest(
            "the labels of a mention are an open list, its possible antecedents; use {candidates}",
            Remedy("candidates", "observed"),
        )
    if data.num_annotators == 0:
        raise UnsupportedRequest(
            "'mpa' learns how reliable each annotator is, and these data do not say who labelled; "
            "use a model without annotators, such as dirichlet"
        )
    cells = data.num_annotators * len(own.classes)
    if cells > np.iinfo(np.int32).max:
        raise TooLarge(
            f"the profiles of {data.num_annotators:,} annotators in {len(own.classes):,} classes are {cells:,} "
            "numbers each, which is too many; leave out labels that nobody gave"
        )
