"""The first screen of a page of agreement: what single labels may be used for, and how the labels of items split."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.evaluation.agreement import Agreement
from consilience.printing import counted
from consilience.rounding import within

# Of alpha: for tentative conclusions, and for others (Krippendorff 2004, Content Analysis, section 11.4).
TENTATIVE, WANTED = 0.667, 0.8

_MOST_SPLITS = 8  # that a figure shows; of more kinds, whether a label has more than half of the item's

ALL_SAME, MOST_SAME, NONE_MOST = "all the same", "more than half the same", "no label has more than half"


class Splits(NamedTuple):
    """How the labels of items split.

    Parameters
    ----------
    names : such as 3–1, where one of four labels is another one; or in words, where there are many kinds.
    items : how many items split so.
    kinds : of each: all the same, more than half the same, or no label has more than half.
    place : of each item with two labels or more, in the order of the items: which of the names is its own.
    """

    names: tuple[str, ...]
    items: np.ndarray
    kinds: tuple[str, ...]
    place: np.ndarray

    def of(self, kind: str) -> int:
        """Return how many items are of a kind."""
        return int(self.items[[one == kind for one in self.kinds]].sum())


def verdict(value: float, low: float, high: float) -> str:
    """Say what single labels may be used for, by the limits of Krippendorff (2004) and the interval of alpha."""
    alpha, *ends = within(value, low, high)
    known = f"Krippendorff's alpha is {alpha} ({ends[0]} to {ends[1]})"
    if high < TENTATIVE:
        return (
            f"Do not use single labels as truth: annotators agree too little. Krippendorff's alpha is {alpha}; by "
            f"convention it should be {TENTATIVE} or more even for tentative conclusions."
        )
    if low < TENTATIVE:
        return (
            f"It is unclear whether single labels are reliable enough: {known}; by convention it should be {TENTATIVE} "
            "or more even for tentative conclusions."
        )
    if low < WANTED:
        return (
            f"By convention single labels allow tentative conclusions: {known}, which should be {TENTATIVE} or more "
            f"for these and {WANTED} or more for others."
        )
    return (
        f"By convention annotators agree well enough: {known}, which should be {WANTED} or more. Agreement does not "
        "tell whether their labels are right."
    )


def by_convention(value: str) -> str:
    """Say how far a value of alpha, as it is written, is from chance to full agreement, and what convention wants."""
    way = f"Agreement is {value} of the way from chance to full: that is Krippendorff's alpha"
    way = way if not value.startswith(chr(0x2212)) else "Annotators agree less than by chance"
    return f"{way}. By convention it should be {WANTED} or more, and {TENTATIVE} for tentative conclusions."


def splits(found: Agreement) -> Splits:
    """Return how the labels of items with two or more of them split, all the same first."""
    item, _, number = found.counts.entries
    usable = found.counts.size[item] >= 2
    item, number = item[usable], number[usable].astype(int)
    order = np.lexsort([-number, item])
    _, first, labels = np.unique(item[order], return_index=True, return_counts=True)
    most, size = number[order][first], found.counts.size[item[order][first]]
    kind = np.select([labels == 1, 2 * most > size], [ALL_SAME, MOST_SAME], NONE_MOST)
    if labels.max() <= _MOST_SPLITS:
        rank = np.arange(len(order)) - np.repeat(first, labels)
        rows = np.zeros((len(first), int(labels.max())), int)
        rows[np.repeat(np.arange(len(first)), labels), rank] = number[order]
        kinds, place, own, items = np.unique(
            -rows, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        if len(kinds) <= _MOST_SPLITS:
            names = ["–".join(str(-one) for one in row if one) for row in kinds]
            names = [name if "–" in name else f"{name}–0" for name in names]
            return Splits(tuple(names), items, tuple(kind[place].tolist()), own.ravel())
    every = [one for one in (ALL_SAME, MOST_SAME, NONE_MOST) if (kind == one).any()]
    own = np.argmax([kind == one for one in every], axis=0)
    return Splits(tuple(every), np.bincount(own, minlength=len(every)), tuple(every), own)


def how_items_split(found: Agreement) -> str:
    """Say on how many items all labels are the same, and on how many none has more than half."""
    found_splits = splits(found)
    items = counted(int(found_splits.items.sum()), "items")
    said = f"On {found_splits.of(ALL_SAME):,} of {items} all labels are the same"
    none = found_splits.of(NONE_MOST)
    return f"{said}; on {none:,} no label has more than half." if none else f"{said}."
