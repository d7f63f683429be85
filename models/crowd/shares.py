"""How annotators divide their votes on an item: repeated rows of one annotator are averaged by their weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Bool, Float, Int
from consilience.data.annotations import Annotations
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
        item, annotator, weight = (np.asarray(one) for one in (data.item, data.annotator, data.weight))
        size = data.num_items, data.num_annotators, data.num_labels
        number = np.bincount(item, minlength=data.num_items)
        # Where rows stand by item already, no order is held beside them.
        order = None if is_sorted(item) else sorted_order(item)
        last, parts = np.cumsum(number), [cls(*(np.empty(0, code_type(most)) for most in size), np.empty(0), *size)]
        for items in blocks(number, _ENTRIES):
            rows: Any = slice(last[items.start] - number[items.start], last[items.stop - 1])
            rows = rows if order is None else order[rows]
            counts = (weight[rows] > 0) & (annotator[rows] >= 0)
            columns = (np.asarray(one)[rows][counts] for one in (data.item, data.annotator, data.label, data.weight))
            parts.append(_averaged(*columns, size))
        *codes, share = (np.concatenate(own) for own in zip(*(part[:4] for part in parts), strict=True))
        # That each cell has one label is usual, and takes no memory.
        return cls(*codes, np.broadcast_to(1.0, share.shape) if (share == 1).all() else share, *size)

    def wide(self) -> Shares:
        """Return the same with codes of 64 bits: products of small ones would overflow."""
        return self._replace(**{name: getattr(self, name).astype(np.int64) for name in ("item", "annotator", "label")})

    def parts(self, least: int = 1) -> Iterator[tuple[slice, Shares]]:
        """Yield ranges of items with their entries, few at a time, of which items are numbered from 0 and all is wide.

        Parameters
        ----------
        least : an item counts as so many entries at least.
        """
        number = np.bincount(self.item, minlength=self.num_items)
        last = np.cumsum(number)
        for items in blocks(np.maximum(number, least), _ENTRIES):
            rows = slice(last[items.start] - number[items.start], last[items.stop - 1])
            part = self._replace(**{name: getattr(self, name)[rows] for name in ("item", "annotator", "label", "share")})
            part = part.wide()
            yield items, part._replace(item=part.item - items.start, num_items=items.stop - items.start)

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
    item: np.ndarray, annotator: np.ndarray, label: np.ndarray, weight: np.ndarray, sizes: tuple[int, int, int]
) -> Shares:
    """Return the shares of these rows, which are all annotations of their items."""
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
    codes = (*np.divmod(cell, max(sizes[1], 1)), label)
    return Shares(*(own.astype(code_type(most)) for own, most in zip(codes, sizes, strict=True)), share, *sizes)


def code_type(number: int) -> np.dtype:
    """Return the smallest unsigned integers that hold so many codes."""
    return np.min_scalar_type(max(number - 1, 0))


def blocks(work: np.ndarray, most: int) -> Iterator[slice]:
    """Yield ranges of things that are about as much work together.

    Parameters
    ----------
    work : shape ``(thing,)``; of each.
    most : of a range; one thing may be more.
    """
    ends = [*np.flatnonzero(np.diff(np.cumsum(work) // most)) + 1, len(work)]
    yield from (slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False) if end > begin)
