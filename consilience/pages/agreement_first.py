"""The first screen of a page of agreement: what single labels may be used for, and how the labels of items split."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience import agreement_figures
from consilience.evaluation.agreement import Agreement
from consilience.printing import counted
from consilience.rounding import within

# Of alpha: for tentative conclusions, and for others (Krippendorff 2004, Content Analysis, section 11.4).
TENTATIVE, WANTED = 0.667, 0.8

_MOST_SPLITS = 8  # that a figure shows; of more kinds, whether a label has more than half of the item's

_SAME, _MOST, _NONE = "all the same", "more than half the same", "no label has more than half"


class Splits(NamedTuple):
    """How the labels of items split.

    Parameters
    ----------
    names : such as 3–1, where one of four labels is another one; or in words, where there are many kinds.
    items : how many items split so.
    kinds : of each: all the same, more than half the same, or no label has more than half.
    """

    names: tuple[str, ...]
    items: np.ndarray
    kinds: tuple[str, ...]

    def of(self, kind: str) -> int:
        """Return how many items are of a kind."""
        return int(self.items[[one == kind for one in self.kinds]].sum())


def verdict(value: float, low: float, high: float) -> str:
    """Say what single labels may be used for, by the limits of Krippendorff (2004) and the interval of alpha."""
    alpha, *ends = within(value, low, high)
    known = f"Krippendorff's alpha is {alpha} ({ends[0]} to {ends[1]})"
    if high < TENTATIVE:
        return (
            f"Do not use single labels as truth: annotators agree too little. Krippendorff's alpha is {alpha}, and by "
            f"convention even tentative conclusions want {TENTATIVE}."
        )
    if low < TENTATIVE:
        return (
            f"Whether single labels are reliable enough is open: {known}, and by convention tentative conclusions want "
            f"{TENTATIVE}."
        )
    if low < WANTED:
        return (
            f"By convention single labels do for tentative conclusions: {known}, where {TENTATIVE} is wanted for these "
            f"and {WANTED} for others."
        )
    return (
        f"By convention annotators agree well enough: {known}, where {WANTED} is wanted. Whether their labels are "
        "right, agreement does not tell."
    )


def by_convention(value: str) -> str:
    """Say how far a value of alpha, as it is written, is from chance to full agreement, and what convention wants."""
    way = f"{100 * float(value.replace(chr(0x2212), '-')):.0f} % of the way from chance to full agreement"
    way = f"That is {way}" if not value.startswith(chr(0x2212)) else "That is less agreement than by chance"
    return f"{way}. By convention {WANTED} is wanted, and {TENTATIVE} for tentative conclusions."


def splits(found: Agreement) -> Splits:
    """Return how the labels of items with two or more of them split, all the same first."""
    item, _, number = found.counts.entries
    usable = found.counts.size[item] >= 2
    item, number = item[usable], number[usable].astype(int)
    order = np.lexsort([-number, item])
    _, first, labels = np.unique(item[order], return_index=True, return_counts=True)
    most, size = number[order][first], found.counts.size[item[order][first]]
    kind = np.select([labels == 1, 2 * most > size], [_SAME, _MOST], _NONE)
    if labels.max() <= _MOST_SPLITS:
        rank = np.arange(len(order)) - np.repeat(first, labels)
        rows = np.zeros((len(first), int(labels.max())), int)
        rows[np.repeat(np.arange(len(first)), labels), rank] = number[order]
        kinds, place, items = np.unique(-rows, axis=0, return_index=True, return_counts=True)
        if len(kinds) <= _MOST_SPLITS:
            names = ["–".join(str(-one) for one in row if one) for row in kinds]
            names = [name if "–" in name else f"{name}–0" for name in names]
            return Splits(tuple(names), items, tuple(kind[place].tolist()))
    every = [one for one in (_SAME, _MOST, _NONE) if (kind == one).any()]
    return Splits(tuple(every), np.array([(kind == one).sum() for one in every]), tuple(every))


def how_items_split(found: Agreement) -> str:
    """Say on how many items all labels are the same, and on how many none has more than half."""
    found_splits = splits(found)
    items = counted(int(found_splits.items.sum()), "items")
    said = f"On {found_splits.of(_SAME):,} of {items} all labels are the same"
    none = found_splits.of(_NONE)
    return f"{said}; on {none:,} no label has more than half." if none else f"{said}."


def first_figure(found: Agreement) -> Any:
    """Draw how the labels of items split."""
    known = splits(found)
    return agreement_figures.splits_of_items(known.names, known.items, known.kinds)
