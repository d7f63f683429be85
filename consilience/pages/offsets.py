"""How much higher or lower than others the annotators of ratings rate, and how far that moves all means together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.data.offsets import annotator_offsets
from consilience.models.intervals import ends
from consilience.models.rating_gaps import Gaps, all_gaps, higher, of_several
from consilience.printing import counted
from consilience.rounding import decimals, written

_MOST_OFF = 2  # annotators with offsets who are named beside the first


class Offsets(NamedTuple):
    """How much higher annotators rate than the others of their items, an entry each, before anything is taken off.

    Parameters
    ----------
    names : of those with two such ratings or more.
    number : of the ratings.
    mean, error : of that difference, the gap to the others, and its standard error.
    from_all : by least squares, how much higher they rate than the mean of all, the offset: what is taken off.
    half : of the interval of 95 % of the mean over items, were these annotators drawn from many; NaN of one alone.
    known : how many annotators rate an item together with others.
    taken : whether the ratings that were fitted are without them; see `Ratings.without_offsets`.
    cancel : whether they cancel in what means of items differ by, as all annotators rate all items equally often.
    """

    names: np.ndarray
    number: np.ndarray
    mean: np.ndarray
    error: np.ndarray
    from_all: np.ndarray
    half: float
    known: int
    taken: bool = False
    cancel: bool = False

    @property
    def these(self) -> str:
        """The annotators, in words."""
        return f"these {counted(self.known, 'annotators')}"

    @property
    def gaps(self) -> Gaps:
        """The gaps to the others alone."""
        return Gaps(self.names, self.number, self.mean, self.error)

    def ends(self, chance: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals of the means."""
        return self.gaps.ends(chance)

    @property
    def furthest(self) -> int | None:
        """Who is surest to rate higher or lower than others; None where that may be chance, or is taken off."""
        return None if self.taken else self.gaps.furthest

    @property
    def condition(self) -> str:
        """Say under which condition certainties hold: none of them knows of offsets."""
        return f"of the mean by {self.these}" if self.taken else "if annotators are alike"

    def finding(self, *, corrected: bool) -> list[str]:
        """Say who rates highest or lowest of all, where that is no chance; and whether means are without that."""
        if self.taken:
            return [self.taken_off]
        if (one := self.furthest) is None:
            return []
        means = "The means on this page correct for that" if corrected else "The means do not correct for that"
        if corrected and self.cancel:
            means = "As all rated all items, offsets shift all plain means alike; certainties allow for them"
        return [f"{self.gaps.words(one)}{self._others(one)}. {means}."]

    def _others(self, named: int) -> str:
        """Say who else rates higher or lower than the others by intervals of 95 %, those furthest off first."""
        low, high = self.ends()
        apart = [one for one in np.flatnonzero((low > 0) | (high < 0)).tolist() if one != named]
        apart.sort(key=lambda one: -abs(self.mean[one]))
        told = [
            f"“{self.names[one]}” {higher(float(self.mean[one]), decimals(low[one], high[one]))}"
            for one in apart[:_MOST_OFF]
        ]
        if not told:
            return ""
        every = f"all {len(self.mean):,}" if len(apart) + 1 == len(self.mean) else f"{len(apart) + 1:,} in all"
        more = f"; {every} differ" * (len(apart) > _MOST_OFF)
        return f"; {' and '.join(told)}{more}"

    @property
    def taken_off(self) -> str:
        """Say what means of items are of where offsets were taken off."""
        all_ = f" By other annotators all means would be up to {short(self.half)} (95 %) higher or lower together."
        return (
            "How much higher than the others each annotator rates was taken off the ratings before the fit, so means "
            f"are by {self.these} alone.{all_ * bool(np.isfinite(self.half))}"
        )


def short(half: float) -> str:
    """Write how far all means may be off together."""
    return written(half, f".{decimals(0.0, 2 * half)}f")


def offsets_of(data: Any) -> Offsets:
    """Return how much higher annotators of ratings rate than others do, before anything was taken off.

    In the mean over items the offsets of few annotators are the larger part of the error. It is taken from the spread
    of these means, by the t law: annotators are what is drawn. With 5 who have offsets of 3, 40 items and 4 ratings of
    each, with errors of 7, such an interval held the mean of the items in 95 % of 1,500 simulations, and one of
    independent ratings in 60 %. Where offsets were taken off, each annotator has the same weight in the mean.
    """
    item, who, rating = np.asarray(data.item), np.asarray(data.annotator), np.asarray(data.rating, float)
    taken = None if data.offset is None else np.asarray(data.offset, float)
    rating = rating if taken is None else rating + taken[who]
    size = data.num_items, data.num_annotators
    every = all_gaps(item, who, rating, size)
    _, number, mean, _ = every
    half, known = np.nan, int(np.count_nonzero(number))
    if known > 1:
        # Beside the others, among whom one is not, a difference is larger than from the mean of all.
        variance = np.square((known - 1) / known * mean).sum() / (known - 1)
        of_item = np.bincount(item, minlength=data.num_items)
        weight = np.bincount(who, 1 / of_item[item], len(number)) / np.count_nonzero(of_item)
        if taken is not None:
            variance, weight = taken[number > 0].var(ddof=1), np.full(known, 1 / known)
        half = float(special.stdtrit(known - 1, ends()[1]) * np.sqrt(variance * np.square(weight).sum()))
    gaps, there = of_several(every, data.annotators)
    from_all = annotator_offsets(item, who, rating, size) if taken is None else taken
    cells = np.bincount(item * len(number) + who, minlength=data.num_items * len(number))
    cancel = bool(cells.size and cells.min() > 0 and cells.min() == cells.max())
    return Offsets(*gaps, from_all[there], half, known, taken is not None, cancel)
