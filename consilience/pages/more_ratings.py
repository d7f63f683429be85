"""What a report says of how many more ratings would settle the side of an item that is open."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.evaluation.variance_components import Components
from consilience.first_figures import side_is_sure
from consilience.pages import SURE, Action, More
from consilience.pages.sides import Sides
from consilience.printing import counted, joined

COLUMN = "more ratings needed"

_FEW, _MOST = 10, 100  # ratings of one item that are soon asked for, and that are told apart from more
_SIMULATED = 30  # the largest number of which it is known how often it settles a side
_SETTLED = (
    ". Of the items that need up to 30, expect about two of three to be settled (63 % in simulations with right means)"
)


class MoreRatings(NamedTuple):
    """How many more ratings each item takes until its side is sure.

    Parameters
    ----------
    number : of each item, infinite where its mean is at the threshold; 0 where the side is sure.
    """

    number: np.ndarray

    @property
    def _open(self) -> np.ndarray:
        return self.number[self.number > 0]

    @property
    def texts(self) -> list[str]:
        """The numbers as a table has them."""
        return [f"over {_MOST}" if one > _MOST else f"{one:.0f}" if one else "–" for one in self.number.tolist()]

    def actions(self) -> list[Action]:
        """Return the advice to ask for more ratings of open items; none where there are none."""
        if not len(self._open):
            return []
        few, many = int((self._open <= _FEW).sum()), int((self._open > _MOST).sum())
        some = len(self._open) - few - many
        told = [
            f"{number:,} {'needs' if number == 1 else 'need'} {how} more" for number, how in (
                (few, f"up to {_FEW}"), (some, f"{_FEW + 1} to {_MOST}"), (many, f"over {_MOST}")
            ) if number
        ]  # fmt: skip
        words = f"Ask new annotators to rate the {counted(len(self._open), 'open items')}"
        settled = _SETTLED * bool((self._open <= _SIMULATED).any())
        return [Action(f"{words}: {joined(told)}, if the means do not move{settled}", section="Items")]

    def blocks(self) -> list[Any]:
        """Say how these numbers are made."""
        if not len(self._open):
            return []
        words = (
            f"“{COLUMN}” is how many more ratings, each by a new annotator, would make the side of an open item "
            f"{100 * SURE:.0f} % certain if its mean stayed exactly where it is. It follows from the variances under "
            "the spread of ratings and leaves out the prior on means. New ratings will move the mean, so no number is "
            "sure to settle the side: in simulations of 40 items and 5 annotators, such numbers (up to 30) settled 63 "
            "% of 752 open items whose true mean was the estimated one."
        )
        return [More("How many more ratings an open item takes", [words])]


def more_ratings(fit: Any, found: Sides, parts: Components | None) -> MoreRatings:
    """Return how many more ratings items take, by the variance of the mean of so many.

    Parameters
    ----------
    fit, found : and what is said of its items.
    parts : of the spread of the ratings; None where these cannot be told apart, and then nothing is known. Neither is
        it of ratings by annotators who are what the mean is by, of whom there are no more.
    """
    number = np.zeros(len(found.mean))
    if parts is None or fit.data.offset is not None:
        return MoreRatings(number)
    open_ = ~side_is_sure(found.above, SURE)
    variance = float(parts.variance[1] + parts.variance[2])
    beyond = np.abs(found.mean - float(fit.options["threshold"]))[open_]
    with np.errstate(divide="ignore"):
        needed = np.ceil(special.ndtri(SURE) ** 2 * variance / beyond**2)
    now = np.bincount(np.asarray(fit.data.item), minlength=len(number))[open_]
    number[open_] = np.maximum(needed - now, 1)
    return MoreRatings(number)
