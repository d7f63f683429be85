"""How much higher or lower annotators of ratings rate than the others of their items, and who surely does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.data.ratings import Ratings
from consilience.notes import Level, Note, Remedy
from consilience.rounding import decimals, within, written

OFFSETS = "offsets of annotators"
"""What the note is about."""


class Gaps(NamedTuple):
    """The gap of each annotator to the others, an entry each; the largest first.

    Parameters
    ----------
    names : of those with two ratings or more of items that others rated too.
    number : of these ratings.
    mean, error : of the difference from the mean of the others, and its standard error.
    """

    names: np.ndarray
    number: np.ndarray
    mean: np.ndarray
    error: np.ndarray

    def ends(self, chance: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals of the means."""
        half = special.stdtrit(self.number - 1, 1 - chance / 2) * self.error
        return self.mean - half, self.mean + half

    @property
    def furthest(self) -> int | None:
        """Who is surest to rate higher or lower than others; None where that may be chance."""
        low, high = self.ends(0.05 / max(len(self.mean), 1))
        one = int(np.argmax(np.maximum(low, -high))) if len(low) else 0
        return one if len(low) and not low[one] <= 0 <= high[one] else None

    def words(self, one: int) -> str:
        """Say how much higher or lower than the others an annotator rates, with the interval of 95 %."""
        low, high = (float(end[one]) for end in self.ends())
        _, *texts = within(self.mean[one], *sorted((abs(low), abs(high))))
        return (
            f"“{self.names[one]}” rates {higher(float(self.mean[one]), decimals(low, high))} than the others on the "
            f"same items ({' to '.join(texts)}, 95 %)"
        )


def higher(value: float, digits: int) -> str:
    """Write a gap: how much higher, or lower."""
    return f"{written(abs(value), f',.{digits}f')} {'lower' if value < 0 else 'higher'}"


def all_gaps(item: np.ndarray, who: np.ndarray, rating: np.ndarray, size: tuple[int, int]) -> Gaps:
    """Return the gap of each annotator by code; of those without a rating of common items the number is 0.

    Parameters
    ----------
    item, who, rating : shape ``(rating,)``; two codes, and a number.
    size : how many items and annotators there are.
    """
    num_items, num_annotators = size
    of_item = np.bincount(item, minlength=num_items)
    several = of_item[item] > 1
    others = (np.bincount(item, rating, num_items)[item] - rating) / np.maximum(of_item[item] - 1, 1)
    above, whose = (rating - others)[several], who[several]
    number = np.bincount(whose, minlength=num_annotators)
    mean = np.bincount(whose, above, num_annotators) / np.maximum(number, 1)
    squares = np.bincount(whose, (above - mean[whose]) ** 2, num_annotators)
    error = np.sqrt(squares / np.maximum(number - 1, 1) / np.maximum(number, 1))
    return Gaps(np.arange(num_annotators), number, mean, error)


def of_several(gaps: Gaps, names: Any) -> tuple[Gaps, np.ndarray]:
    """Return the gaps of those with two ratings or more, the largest first, by name; and their codes."""
    there = np.flatnonzero(gaps.number > 1)
    there = there[np.argsort(-gaps.mean[there], kind="stable")]
    called = gaps.names if names is None else np.asarray(names)
    return Gaps(called[there], gaps.number[there], gaps.mean[there], gaps.error[there]), there


def gap_note(data: Ratings) -> Iterator[Note]:
    """Name the annotator who surely rates higher or lower than others, where nothing was taken off for that."""
    if data.offset is not None:
        return
    columns = np.asarray(data.item), np.asarray(data.annotator), np.asarray(data.rating, float)
    gaps, _ = of_several(all_gaps(*columns, (data.num_items, data.num_annotators)), data.annotators)
    if (one := gaps.furthest) is not None:
        text = (
            f"annotators rate higher or lower than others: {gaps.words(one)}; means and labels of this fit do not "
            "correct for that: fit.sides() does, and a fit of data.without_offsets() does ({without_offsets})"
        )
        yield Note(Level.warning, text, (Remedy("without_offsets", True),), about=OFFSETS)
