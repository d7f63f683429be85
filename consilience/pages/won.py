"""What a report says of labels that won a vote beside gold labels; ties have none that won."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.evaluation.agreement.jackknife import wilson
from consilience.inference.fitting import Fit
from consilience.models.truth.against_gold import AgainstGold
from consilience.pages import tile
from consilience.printing import counted, joined
from consilience.rounding import within

_TIE = 1e-9  # of a certainty of 1
_HALF = 0.5


def wilson_ends(share: float, number: int) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a share of so many (Wilson)."""
    low, high = wilson(share, number)
    return float(low), float(high)


def with_interval(share: float, number: int) -> str:
    """Write a share of so many with that interval."""
    value, low, high = within(share, *wilson_ends(share, number))
    return f"{value} [{low}, {high}]"


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

    def figures(self, which: str, sample: str) -> dict[str, str]:
        """Return the key figure of the page: ties count by their share, as in what a fit prints first.

        Parameters
        ----------
        which : gold labels these are, in words.
        sample : what the interval supposes.
        """
        value = (self._won + self.by_chance) / self._number
        of = f"of the vote's labels are the gold label{which}, a tie counting by its share"
        return tile(of, value, *wilson_ends(value, self._number), f"{sample}; {self._won:,} right, {self._others}")

    @property
    def won(self) -> str:
        """How many are right, of how many, and how many are not."""
        return f"{self._won:,} of {self._number:,}; {self._others}"

    @property
    def by_votes(self) -> str:
        """Say how many are right by their share of the votes; empty where all have one."""
        groups = [
            ("all agree", self.share == 1),
            ("more than half, but not all, agree", (self.share < 1) & (self.share > _HALF)),
            ("no more than half agree", self.share <= _HALF),
        ]  # fmt: skip
        there = [(name, self.right[own]) for name, own in groups if own.any()]
        if len(there) < 2:
            return ""
        told = []
        for name, own in there:
            _, low, high = within(own.mean(), *wilson_ends(own.mean(), len(own)))
            told.append(f"{int(own.sum()):,} of {len(own):,} where {name} ({low} to {high})")
        left = f"; {counted(self.ties, 'ties')} left out" * bool(self.ties)
        return f"On items with a gold label the vote is right on {joined(told)}{left} (95 % in parentheses)."

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
        return (
            f"Beside {counted(self._number, 'gold labels')} the label that won the vote is right for {self._won:,}; "
            f"{self._others} (tied: the gold label is one of several with most votes)"
        )

    def untied(self, unit: str) -> str:
        """Say how many of the labels that won are right, with an interval; empty where all tie."""
        if not (number := len(self.right)):
            return ""
        of = f"Of the {counted(number, f'{unit}s')} with a gold label whose vote is not tied, the label that won is"
        return f" {of} right for {self._won:,} ({with_interval(self.right.mean(), number)}, 95 %)."


def won(fit: Fit, found: AgainstGold) -> Won:
    """Return what is right of labels that won a vote; of a tie none is stated with certainty."""
    untied = found.certainty > 1 - _TIE
    share = fit.table("labels")["share"].to_numpy()[found.item[untied]]
    tied = ~untied
    held, by_chance = int((found.right[tied] > 0).sum()), float(found.right[tied].sum())
    return Won(found.right[untied], share, int(tied.sum()), held, by_chance)
