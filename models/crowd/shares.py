"""How annotators divide their votes on an item: repeated rows of one annotator are averaged by their weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Bool, Float, Int
from consilience.data.annotations import Annotations
from consilience.data.codes import ones
from consilience.models.rows import is_sorted, sorted_order

# Entries that are looked at together: some ten numbers of 8 bytes each.
_ENTRIES = 1 << 18


class Shares(NamedTuple):
    """One entry for each label that an annotator gave an item, sorted by item, annotator and label.

    A *cell* is an annotator on an item; the shares of its entries sum to one.

    Parameters
    ----------
    item, annotator, label : shape ``(entry,)``; codes, in the smallest integers that hold them: see `parts`.
    share : shape ``(entry,)``; the part of the annotator's weight on the item that the label has.
    num_items, num_annotators, num_labels : sizes.
    """

    item: Int[np.ndarray, " entry"]
    annotator: Int[np.ndarray, " entry"]
    label: Int[np.ndarray, " entry"]
    share: Float[np.ndarray, " entry"]
    num_items: int
    num_annotators: int
    num_labels: int

    @classmethod
    def of(cls, data: Annotations) -> Shares:
        """Average the rows; those of weight zero, and those of nobody known, are left out."""
        item, annotator, label, weight = (
            np.asarray(own) for own in (data.item, data.annotator, data.label, data.weight)
        )
        sizes = data.num_items, data.num_annotators, data.num_labels
        number = np.bincount(item, minlength=data.num_items)
        # Where rows stand by item already, no order is held beside them.
        order = None if is_sorted(item) else sorted_order(item)
        last, end, share = np.cumsum(number), 0, np.empty(len(item))
        codes = [np.empty(len(item), np.min_scalar_type(max(size - 1, 0))) for size in sizes]
        for items in blocks(number, _ENTRIES):
            rows: Any = slice(last[items.start] - number[items.start], last[items.stop - 1])
            rows = rows if order is None else order[rows]
            counts = (weight[rows] > 0) & (annotator[rows] >= 0)
            columns = (own[rows][counts] for own in (item, annotator, label, weight))
            found = _averaged(sizes, *columns)
            begin, end = end, end + len(found[0])
            for column, own in zip((*codes, share), found, strict=True):
                column[begin:end] = own
        # That an annotator gave an item one label is usual, and takes no memory.
        share = ones(end) if (share[:end] == 1).all() else share[:end]
        item, annotator, label = (column[:end] for column in codes)
        return cls(item, annotator, label, share, *sizes)

    def wide(self) -> Shares:
        """Return the same with codes of 64 bits: products of small ones would overflow."""
        item, annotator, label = (own.astype(np.int64) for own in (self.item, self.annotator, self.label))
        return self._replace(item=item, annotator=annotator, label=label)

    def parts(self, least: int = 1) -> Iterator[tuple[slice, Shares]]:
        """Yield ranges of items with their entries, few at a time, of which items are numbered from 0 and all is wide.

        Parameters
        ----------
        least : an item counts as so many entries at least.
        """
        # Of the type of the items, or all of them would be converted.
        first = np.searchsorted(self.item, np.arange(self.num_items, dtype=self.item.dtype))
        first = np.append(first, len(self.item))
        # What is summed over parts has a number for each annotator: of no more of them than entries.
        for items in blocks(np.maximum(np.diff(first), least), max(_ENTRIES, self.num_annotators)):
            rows = slice(first[items.start], first[items.stop])
            item, annotator, label = (own[rows].astype(np.int64) for own in (self.item, self.annotator, self.label))
            sizes = items.stop - items.start, self.num_annotators, self.num_labels
            yield items, Shares(item - items.start, annotator, label, self.share[rows], *sizes)

    @property
    def first(self) -> Int[np.ndarray, " cell"]:
        """The first entry of each cell."""
        return np.flatnonzero(np.diff(self.item.astype(np.int64) * self.num_annotators + self.annotator, prepend=-1))

    def by(self, kept: Bool[np.ndarray, " annotator"]) -> Shares:
        """Return the entries of some annotators, who are numbered anew in their order."""
        if kept.all():
            return self
        rows, code = kept[self.annotator], (np.cumsum(kept) - 1).astype(self.annotator.dtype)
        return self._replace(
            item=self.item[rows], annotator=code[self.annotator[rows]], label=self.label[rows],
            share=self.share[rows], num_annotators=int(kept.sum()),
        )  # fmt: skip

    def met(self) -> csr_array:
        """Return which items each annotator labelled, ones in a sparse table ``(annotator, item)``."""
        cells = self.first
        return csr_array(
            (np.ones(len(cells)), (self.annotator[cells], self.item[cells])), (self.num_annotators, self.num_items)
        )

    def by_label(self) -> csr_array:
        """Return the shares as a sparse table ``(annotator, label of an item)``, with those that somebody gave."""
        given, column = np.unique(self.item.astype(np.int64) * self.num_labels + self.label, return_inverse=True)
        return csr_array((self.share, (self.annotator, column)), (self.num_annotators, len(given)))


def _averaged(
    sizes: tuple[int, int, int], item: np.ndarray, annotator: np.ndarray, label: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return the columns of the entries that these rows make, which are all rows of their items."""
    code = (item.astype(np.int64) * sizes[1] + annotator) * sizes[2] + label
    if (weight == 1).all():  # which takes half the memory
        entry, total = np.unique(code, return_counts=True)
    else:
        entry, place = np.unique(code, return_inverse=True)
        total = np.bincount(place, weight, len(entry))
    cell, label = np.divmod(entry, max(sizes[2], 1))
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    number = np.diff(first, append=len(cell))
    share = total / np.repeat(np.add.reduceat(total, first) if len(first) else total, number)
    return *np.divmod(cell, max(sizes[1], 1)), label, share


def blocks(work: np.ndarray, most: int) -> Iterator[slice]:
    """Yield ranges of things that are about as much work together.

    Parameters
    ----------
    work : shape ``(thing,)``; of each.
    most : of a range; one thing may be more.
    """
    ends = [*np.flatnonzero(np.diff(np.cumsum(work) // most)) + 1, len(work)]
    yield from (slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False) if end > begin)
