"""How annotators divide their votes on an item: repeated rows of one annotator are averaged by their weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Bool, Float, Int
from consilience.data.annotations import Annotations


class Shares(NamedTuple):
    """One entry for each label that an annotator gave an item, sorted by item, annotator and label.

    A *cell* is an annotator on an item; the shares of its entries sum to one.

    Parameters
    ----------
    item, annotator, label : shape ``(entry,)``; codes.
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
        item, annotator, label = (np.asarray(codes) for codes in (data.item, data.annotator, data.label))
        weight = np.asarray(data.weight, float)
        counts = (weight > 0) & (annotator >= 0)
        code = ((item.astype(np.int64) * data.num_annotators + annotator) * data.num_labels + label)[counts]
        if (weight[counts] == 1).all():  # which takes half the memory
            entry, total = np.unique(code, return_counts=True)
        else:
            entry, place = np.unique(code, return_inverse=True)
            total = np.bincount(place, weight[counts], len(entry))
        cell, label = np.divmod(entry, max(data.num_labels, 1))
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        number = np.diff(first, append=len(cell))
        share = total / np.repeat(np.add.reduceat(total, first) if len(first) else total, number)
        item, annotator = np.divmod(cell, max(data.num_annotators, 1))
        return cls(item, annotator, label, share, data.num_items, data.num_annotators, data.num_labels)

    @property
    def first(self) -> Int[np.ndarray, " cell"]:
        """The first entry of each cell."""
        return np.flatnonzero(np.diff(self.item * self.num_annotators + self.annotator, prepend=-1))

    def by(self, kept: Bool[np.ndarray, " annotator"]) -> Shares:
        """Return the entries of some annotators, who are numbered anew in their order."""
        if kept.all():
            return self
        rows, code = kept[self.annotator], np.cumsum(kept) - 1
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
        given, column = np.unique(self.item * self.num_labels + self.label, return_inverse=True)
        return csr_array((self.share, (self.annotator, column)), (self.num_annotators, len(given)))


def blocks(work: np.ndarray, most: int) -> Iterator[slice]:
    """Yield ranges of things that are about as much work together.

    Parameters
    ----------
    work : shape ``(thing,)``; of each.
    most : of a range; one thing may be more.
    """
    ends = [*np.flatnonzero(np.diff(np.cumsum(work) // most)) + 1, len(work)]
    yield from (slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False) if end > begin)
