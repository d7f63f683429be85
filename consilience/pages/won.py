"""What a report says of labels that won a vote beside gold labels; ties have none that won."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.evaluation.agreement.jackknife import wilson
from consilience.inference.fitting import Fit
from consilience.models.truth.against_gold import AgainstGold, hits
from consilience.printing import counted
from consilience.rounding import within

_TIE = 1e-9  # of a certainty of 1


def wilson_ends(share: float, number: int) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a share of so many (Wilson)."""
    low, high = wilson(share, number)
    return float(low), float(high)


def with_interval(share: float, number: int) -> str:
    """Write a share of so many with that interval."""
    value, low, high = within(share, *wilson_ends(share, number))
    return f"{value} [{low}, {high}]"


TIES = "a tie counting by its share"
_HALF = "each tie counted as half right"
"""How ties of a vote count."""


class Won(NamedTuple):
    """Labels that won a vote beside gold labels; ties have no label that won, and are not scored.

    Parameters
    ----------
    right : of each untied item with a gold label, whether the label that won is the gold label.
    share : of the votes, of each of these labels.
    ties : how many more items with a gold label are tied.
    held : in how many of these the gold label is one of the tied ones.
    by_chance : how many of the tied items would be right, were one of their labels taken at random.
    """

    right: np.ndarray
    share: np.ndarray
    ties: int
    held: int
    by_chance: float = 0.0

    @property
    def figures(self) -> dict[str, str]:
        """Key figure of the page: ties count by their share, as in what a fit prints first."""
        tied = f", {self.counting}" * bool(self.counting)
        return {f"gold labels matched{tied}": f"{hits(self._won + self.by_chance)} of {self._number:,}"}

    @property
    def counting(self) -> str:
        """How ties count; empty where none counts."""
        half = self.held == self.ties and 2 * self.by_chance == self.held
        return (_HALF if half else TIES) * bool(self.by_chance)

    @property
    def _share(self) -> float:
        """The share that is right, a tie counting by its share."""
        return (self._won + self.by_chance) / self._number

    @property
    def won(self) -> str:
        """How many are right, of how many, and how many are not."""
        return f"{self._won:,} of {self._number:,}; {self._others}"

    @property
    def by_votes(self) -> str:
        """Say how many are right where all annotators agree, and where not; empty where it is one or the other."""
        whole = self.share == 1
        if whole.all() or not whole.any():
            return ""
        told = []
        for own in (self.right[whole], self.right[~whole]):
            _, low, high = within(own.mean(), *wilson_ends(own.mean(), len(own)))
            told.append((f"{int(own.sum()):,} of {len(own):,}", f"[{low}, {high}]"))
        (all_, their), (some, other) = told
        without = " (ties left out)" * bool(self.ties)
        return (
            f"Where all annotators agree, the vote matches {all_} gold labels {their}; where they disagree{without}, "
            f"it matches {some} {other}. The brackets are 95 % intervals of the share that is right."
        )

    @property
    def _won(self) -> int:
        return int(self.right.sum())

    @property
    def _number(self) -> int:
        return len(self.right) + self.ties

    @property
    def _others(self) -> str:
        """For how many the gold label is among those that tie, and how many are wrong."""
        return f"{self.held:,} tied, {self._number - self._won - self.held:,} wrong"

    @property
    def words(self) -> str:
        """Say how many labels are right."""
        words = f"Of {counted(self._number, 'gold labels')}, the vote matches {self._won:,}; {self._others}"
        if not self.ties:
            return words
        return (
            f"{words} (tied: the gold label is one of several with the most votes). If each tie counts by its share, "
            f"that is {hits(self._won + self.by_chance)} of {self._number:,}, "
            f"{with_interval(self._share, self._number)} (95 %)"
        )

    def untied(self, unit: str) -> str:
        """Say how many of the labels that won are right, with an interval; empty where all tie."""
        if not (number := len(self.right)):
            return ""
        is_ = "is" if self._won == 1 else "are"
        of = f"Of the {counted(number, f'{unit}s')} whose vote is not tied, {self._won:,} {is_} right"
        return f" {of} ({with_interval(self.right.mean(), number)}, 95 %)."


def won(fit: Fit, found: AgainstGold) -> Won:
    """Return what is right of labels that won a vote; of a tie none is stated with certainty."""
    untied = found.certainty > 1 - _TIE
    share = fit.table("labels")["share"].to_numpy()[found.item[untied]]
    tied = ~untied
    held, by_chance = int((found.right[tied] > 0).sum()), float(found.right[tied].sum())
    return Won(found.right[untied], share, int(tied.sum()), held, by_chance)
