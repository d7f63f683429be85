r"""How often each label was given to each item: all that most coefficients of agreement need to know.

With :math:`n_{ic}` annotations of class c for item i, an item is summed up by its number of annotations
:math:`n_i = \sum_c n_{ic}`, the ordered pairs of them that agree :math:`e_i = \sum_c n_{ic}(n_{ic} - 1)`, and the
ordered triples :math:`t_i = \sum_c n_{ic}(n_{ic} - 1)(n_{ic} - 2)`. Those are counted from the columns in one pass. Few
different (n, e, t) occur, even among millions of items, and estimates and standard errors are computed from these
*patterns*.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from consilience.arrays import Bool, Float, Int
from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.jackknife import ratio

# Rows and cells that are looked at together: what they need as 64-bit numbers stays in the processor's cache.
_ROWS, _CELLS = 1 << 20, 1 << 19

# A table of all cells is faster than sorting, as long as it is not much larger than the data.
_CELLS_PER_ROW = 8


class Patterns(NamedTuple):
    """What kinds of items there are, among those with two annotations or more.

    Parameters
    ----------
    size : float64, shape ``(pattern,)``; n, the number of annotations.
    pairs, triples : float64, shape ``(pattern,)``; how many ordered pairs and triples of them agree.
    multiplicity : float64, shape ``(pattern,)``; how many items are of this kind.
    """

    size: np.ndarray
    pairs: np.ndarray
    triples: np.ndarray
    multiplicity: np.ndarray

    @property
    def agreement(self) -> Float[np.ndarray, " pattern"]:
        """P, the share of the pairs of annotations of an item that agree."""
        return self.pairs / (self.size * (self.size - 1))

    @property
    def num_items(self) -> float:
        """How many items there are."""
        return float(self.multiplicity.sum())


class Entries(NamedTuple):
    """The counts that are not zero, sorted by item and label.

    Parameters
    ----------
    item : int64, shape ``(entry,)``.
    label : int64, shape ``(entry,)``, increasing within an item.
    number : float64, shape ``(entry,)``, positive; the annotations of this label for this item.
    """

    item: np.ndarray
    label: np.ndarray
    number: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LabelCounts:
    """Label counts of items; made by `of_codes` or `of_annotations`.

    Parameters
    ----------
    size, pairs, triples : int64, shape ``(item,)``; see the module.
    label_totals : int64, shape ``(label,)``; annotations of each label.
    num_items, num_labels : sizes.
    items, labels : the user's ids, or ``None``.
    columns : what was counted: item and label codes, shape ``(annotation,)``, and how often each row counts or
        ``None``.
    """

    size: np.ndarray
    pairs: np.ndarray
    triples: np.ndarray
    label_totals: np.ndarray
    num_items: int
    num_labels: int
    items: Any
    labels: Any
    columns: tuple[np.ndarray, np.ndarray, np.ndarray | None]

    @classmethod
    def of_codes(
        cls,
        item: ArrayLike,
        label: ArrayLike,
        count: ArrayLike | None = None,
        *,
        num_items: int | None = None,
        num_labels: int | None = None,
        items: Any = None,
        labels: Any = None,
    ) -> LabelCounts:
        """Count columns of codes, of any integer type, in memory of a few bytes an annotation.

        Parameters
        ----------
        item, label : codes from 0, shape ``(annotation,)``.
        count : whole numbers, shape ``(annotation,)``; how often each row counts, once by default.
        num_items, num_labels : sizes; by default just large enough for the codes.
        items, labels : ids in code order.

        Raises
        ------
        UnsupportedRequest : for codes out of range, or counts that are not whole numbers.
        """
        item, label = _codes("item", item), _codes("label", label)
        whole = None if count is None else _whole(np.asarray(count))
        if len(item) != len(label) or (whole is not None and len(whole) != len(item)):
            raise UnsupportedRequest("item, label and count differ in length; give one entry per annotation")
        num_items = _size("item", item, num_items)
        num_labels = _size("label", label, num_labels)
        size, pairs, triples = (np.zeros(num_items, np.int64) for _ in range(3))
        totals = np.zeros(num_labels, np.int64)
        if num_items * num_labels <= _CELLS_PER_ROW * len(item) + _CELLS:
            _sum_table(_count_table(item, label, whole, num_items, num_labels), size, pairs, triples, totals)
        else:
            _sum_entries(count_entries(item, label, whole, num_labels), size, pairs, triples, totals)
        return cls(size, pairs, triples, totals, num_items, num_labels, items, labels, (item, label, whole))

    @classmethod
    def of_annotations(cls, annotations: Annotations) -> LabelCounts:
        """Count annotations; the weight of a row says how many annotations it stands for.

        Raises
        ------
        UnsupportedRequest : for weights that are not whole numbers.
        """
        weight = np.asarray(annotations.weight)
        return cls.of_codes(
            annotations.item, annotations.label, None if (weight == 1).all() else weight,
            num_items=annotations.num_items, num_labels=annotations.num_labels, items=annotations.items,
            labels=annotations.labels,
        )  # fmt: skip

    @property
    def num_annotations(self) -> int:
        """How many annotations there are."""
        return int(self.label_totals.sum())

    @cached_property
    def agreement(self) -> Float[np.ndarray, " item"]:
        """P of each item, float64, shape ``(item,)``; NaN for items with fewer than two annotations."""
        return ratio(self.pairs, self.size * (self.size - 1))

    @cached_property
    def patterns(self) -> Patterns:
        """The different (n, e, t) among items with two annotations or more."""
        usable = self.size >= 2
        columns = [values[usable] for values in (self.size, self.pairs, self.triples)]
        bits = [int(values.max(initial=0)).bit_length() for values in columns]
        if sum(bits) > 63:
            distinct, multiplicity = columns, np.ones(int(usable.sum()), np.int64)
        else:
            packed = (columns[0] << (bits[1] + bits[2])) | (columns[1] << bits[2]) | columns[2]
            keys, multiplicity = np.unique(packed, return_counts=True)
            last, middle = (1 << bits[2]) - 1, (1 << bits[1]) - 1
            distinct = [keys >> (bits[1] + bits[2]), (keys >> bits[2]) & middle, keys & last]
        return Patterns(*(values.astype(float) for values in (*distinct, multiplicity)))

    @cached_property
    def entries(self) -> Entries:
        """The counts that are not zero."""
        return count_entries(*self.columns, self.num_labels)

    def at(self, item: Int[np.ndarray, " cell"], label: Int[np.ndarray, " cell"]) -> Float[np.ndarray, " cell"]:
        """Return the counts of cells that are not empty."""
        entries = self.entries
        place = np.searchsorted(entries.item * self.num_labels + entries.label, item * self.num_labels + label)
        return entries.number[place]

    def entries_of(self, chosen: Bool[np.ndarray, " item"]) -> Entries:
        """Return the entries of some items, without sorting the rows of all others."""
        item, label, count = self.columns
        starts = range(0, len(item), _ROWS)
        kept = [start + np.flatnonzero(chosen[item[start : start + _ROWS]]) for start in starts]
        rows = np.concatenate([np.zeros(0, np.int64), *kept])
        return count_entries(item[rows], label[rows], None if count is None else count[rows], self.num_labels)


def rows_of(annotations: Annotations, kept: Int[np.ndarray, " row"]) -> Annotations:
    """Return some rows of annotations, of the same items, annotators and labels."""
    columns = {name: np.asarray(getattr(annotations, name))[kept] for name in ("item", "annotator", "label", "weight")}
    return annotations.replace(**columns, num_annotations=len(kept))


def _codes(name: str, values: ArrayLike) -> np.ndarray:
    codes = np.asarray(values)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise UnsupportedRequest(f"{name} is {codes.dtype} of shape {codes.shape}; give whole-number codes, one a row")
    return codes


def _size(name: str, codes: np.ndarray, size: int | None) -> int:
    lowest, highest = (int(codes.min()), int(codes.max())) if len(codes) else (0, -1)
    size = highest + 1 if size is None else size
    if lowest < 0 or highest >= size:
        raise UnsupportedRequest(f"{name} has codes from {lowest} to {highest}; give codes from 0 to {size - 1}")
    return size


def _whole(count: np.ndarray) -> np.ndarray:
    whole = np.rint(count).astype(np.int64)
    if (whole != count).any() or (whole < 0).any():
        first = count[(whole != count) | (whole < 0)][0]
        raise UnsupportedRequest(
            f"the weight {first:g} is not a number of annotations, and agreement counts pairs of them: remove the "
            "column of weights, or give whole numbers"
        )
    return whole


def _count_table(
    item: np.ndarray, label: np.ndarray, count: np.ndarray | None, num_items: int, num_labels: int
) -> Int[np.ndarray, "item label"]:
    # In 32 bits, a third of the memory of `bincount` on whole columns; int64 where a cell could be larger than that.
    dtype = np.int32 if count is None and len(item) < 2**31 else np.int64
    table = np.zeros(num_items * num_labels, dtype)
    one = dtype(1)
    for start in range(0, len(item), _ROWS):
        rows = slice(start, start + _ROWS)
        cell = item[rows].astype(np.int64) * num_labels + label[rows]
        np.add.at(table, cell, one if count is None else count[rows])
    return table.reshape(num_items, num_labels)


def _sum_table(table: np.ndarray, size: np.ndarray, pairs: np.ndarray, triples: np.ndarray, totals: np.ndarray) -> None:
    rows = max(1, _CELLS // max(1, table.shape[1]))
    for start in range(0, len(table), rows):
        items = slice(start, start + rows)
        count = np.ascontiguousarray(table[items].T).astype(np.int64)
        pair = count * (count - 1)
        size[items], pairs[items], triples[items] = count.sum(0), pair.sum(0), (pair * (count - 2)).sum(0)
        totals += count.sum(1)


def count_entries(item: np.ndarray, label: np.ndarray, count: np.ndarray | None, num_labels: int) -> Entries:
    """Count how often each label was given to each item, where rows count as often as ``count`` says or once."""
    cell = item.astype(np.int64) * num_labels + label
    if count is not None:
        cell, count = cell[count > 0], count[count > 0]
    if cell.max(initial=0) <= _CELLS_PER_ROW * len(cell) + _CELLS:
        table = np.bincount(cell, count)
        cell = np.flatnonzero(table)
        total = table[cell]
    elif count is None:
        cell, total = np.unique(cell, return_counts=True)
    else:
        cell, place = np.unique(cell, return_inverse=True)
        total = np.bincount(place, count, len(cell))
    return Entries(cell // max(1, num_labels), cell % max(1, num_labels), total.astype(float))


def _sum_entries(
    entries: Entries, size: np.ndarray, pairs: np.ndarray, triples: np.ndarray, totals: np.ndarray
) -> None:
    number = entries.number
    pair = number * (number - 1)
    for total, values in ((size, number), (pairs, pair), (triples, pair * (number - 2))):
        total[:] = np.bincount(entries.item, values, len(total))
    totals[:] = np.bincount(entries.label, number, len(totals))
