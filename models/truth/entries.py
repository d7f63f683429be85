"""The classes that somebody named, item by item, and how they are cut into blocks.

An array of draws × items × classes is never built: values are kept for the named classes (*entries*), and a pass takes
a block of items and all draws at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.models.ranking import PaddedBlock
from consilience.models.truth.truth import block_numbers

# Entries, times what is held of each, that NumPy works on at a time.
MOST_ENTRIES = 1 << 22


class Entries(NamedTuple):
    """The classes that were named, item by item.

    Parameters
    ----------
    first : int64, shape ``(item + 1,)``; where the entries of each item start.
    class_ : int32, shape ``(entry,)``, increasing within an item.
    num_classes : how many classes there are in all.
    """

    first: Int[np.ndarray, " boundary"]
    class_: Int[np.ndarray, " entry"]
    num_classes: int

    @classmethod
    def of(
        cls, entry_item: Int[Array, " entry"], entry_class: Int[Array, " entry"], num_items: int, num_classes: int
    ) -> Entries:
        """Build from sorted (item, class) pairs."""
        first = np.searchsorted(np.asarray(entry_item), np.arange(num_items + 1))
        return cls(first, np.asarray(entry_class, np.int32), num_classes)

    @classmethod
    def dense(cls, num_items: int, num_classes: int) -> Entries:
        """Name every class of every item."""
        class_ = np.tile(np.arange(num_classes, dtype=np.int32), num_items)
        return cls(np.arange(num_items + 1) * num_classes, class_, num_classes)

    @property
    def num_items(self) -> int:
        """How many items there are."""
        return len(self.first) - 1

    @property
    def item(self) -> Int[np.ndarray, " entry"]:
        """Item of each entry, int64, shape ``(entry,)``."""
        return np.repeat(np.arange(self.num_items), np.diff(self.first))

    def slots(self, item: int) -> slice:
        """Return where the entries of an item are."""
        return slice(int(self.first[item]), int(self.first[item + 1]))

    @property
    def num_unnamed(self) -> Int[np.ndarray, " item"]:
        """How many classes of each item are not among its entries, shape ``(item,)``."""
        return self.num_classes - np.diff(self.first)

    def blocks(self, numbers_per_entry: int) -> Iterator[tuple[slice, slice, int, int]]:
        """Yield slices of items and entries, and the padded numbers of both, the same for every block."""
        widest = int(np.diff(self.first).max(initial=1))
        most_entries = max(block_numbers() // numbers_per_entry, widest)
        most_items = max(block_numbers() // numbers_per_entry, 1)
        starts = [0]
        while starts[-1] < self.num_items:
            by_entries = int(np.searchsorted(self.first, self.first[starts[-1]] + most_entries, side="right")) - 1
            starts.append(min(by_entries, starts[-1] + most_items, self.num_items))
        pairs = [(a, b, int(self.first[a]), int(self.first[b])) for a, b in zip(starts, starts[1:], strict=False)]
        num_items = round_up(max(b - a for a, b, _, _ in pairs))
        num_entries = round_up(max(1, max(d - c for _, _, c, d in pairs)))
        for a, b, c, d in pairs:
            yield slice(a, b), slice(c, d), num_items, num_entries


def entry_blocks(first: Int[np.ndarray, " boundary"], numbers_per_entry: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of items and of their entries, few enough at a time for NumPy."""
    most, start, last = max(MOST_ENTRIES // numbers_per_entry, 1), 0, len(first) - 1
    while start < last:
        stop = max(int(np.searchsorted(first, first[start] + most, side="right")) - 1, start + 1)
        yield slice(start, stop), slice(int(first[start]), int(first[stop]))
        start = stop


def most_frequent(
    codes: Int[np.ndarray, "item draw"],
) -> tuple[Int[np.ndarray, " item"], Float[np.ndarray, " item"]]:
    """Return the most frequent value of each row and its share; the lowest one where several are.

    Parameters
    ----------
    codes : integers, shape ``(item, draw)``.
    """
    ordered = np.sort(codes, axis=1)
    num_draws = codes.shape[1]
    place = np.arange(num_draws)
    starts = np.ones(codes.shape, bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    run = place - np.maximum.accumulate(np.where(starts, place, 0), axis=1) + 1
    end = run.argmax(axis=1)
    rows = np.arange(len(codes))
    return ordered[rows, end], run[rows, end] / num_draws


def code_dtype(num_classes: int) -> np.dtype:
    """Return the smallest signed integer type that holds all codes: draws of a million labels are many numbers."""
    return np.min_scalar_type(-max(num_classes, 1))


def block_rows(num_items: int, numbers_per_item: int) -> int:
    """Return how many items a block should hold so that it neither outgrows memory nor compiles for every data set."""
    return round_up(max(1, min(block_numbers() // numbers_per_item, num_items)))


def round_up(length: int) -> int:
    """Round up to three significant bits, so that data sets of similar size share a compiled program."""
    unit = 1 << max(0, length.bit_length() - 3)
    return -(-length // unit) * unit


def pad(values: np.ndarray, length: int, fill: int | float) -> np.ndarray:
    """Lengthen the first axis; floats become JAX's default float."""
    values = np.asarray(values)
    if values.dtype.kind == "f":
        values = values.astype(jnp.result_type(float))
    tail = np.full((length - len(values), *values.shape[1:]), fill, values.dtype)
    return np.concatenate([values, tail])


def pad_block(entries: Entries, items: slice, slots: slice, num_items: int, num_entries: int) -> PaddedBlock:
    """Lengthen a block of entries to the shape of its pass."""
    counts = np.diff(entries.first[items.start : items.stop + 1])
    within = np.arange(slots.stop - slots.start) - np.repeat(entries.first[items] - slots.start, counts)
    return PaddedBlock(
        segment=pad(np.repeat(np.arange(len(counts), dtype=np.int32), counts), num_entries, num_items),
        class_=pad(entries.class_[slots], num_entries, 0),
        position=pad(within.astype(np.int32), num_entries, 0),
        num_named=pad(counts.astype(np.int32), num_items, 0),
        num_unnamed=pad((entries.num_classes - counts).astype(np.int32), num_items, 0),
    )
