"""What a report of mentions says of a majority vote beside gold labels: what the fit has to be better than."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.inference.fitting import Fit
from consilience.inference.fitting import fit as infer
from consilience.models.majority_vote import MODEL as VOTE
from consilience.models.truth.against_gold import against_gold, unused_gold
from consilience.pages.run import is_counted
from consilience.printing import counted

_MOST_NAMED = 5  # ties


class Voted(NamedTuple):
    """Labels that a majority vote gives to the mentions with a gold label.

    Parameters
    ----------
    right, wrong : how many are; a tie is neither.
    tied : codes of the mentions whose vote is tied.
    held : for how many of these the gold label is one of the tied ones.
    """

    right: int
    wrong: int
    tied: np.ndarray
    held: int

    @property
    def clause(self) -> str:
        """Say how many are right, wrong and tied."""
        ties = counted(len(self.tied), "ties")
        of = f" and leaves {ties} ({self.held:,} with the gold label among the tied labels)"
        return f" A majority vote gets {self.right:,} right and {self.wrong:,} wrong{of * bool(len(self.tied))}."

    def words(self, names: Sequence[str]) -> str:
        """Say that, and name the ties."""
        if not len(self.tied):
            return self.clause
        named = ", ".join(str(names[code]) for code in self.tied[:_MOST_NAMED])
        named += f" and {len(self.tied) - _MOST_NAMED:,} more" * (len(self.tied) > _MOST_NAMED)
        return f"{self.clause} Tied: {named}."


def beside_a_vote(gold: Any) -> str:
    """Say how many labels of a vote are gold labels; a key figure says that of the fit, which is beside gold labels."""
    number, vote = gold.score.items, gold.voted
    ties = f" and leaves {counted(len(vote.tied), 'ties')}" * bool(len(vote.tied))
    return f"A majority vote matches {vote.right:,} of {counted(number, 'gold labels')}{ties}."


def voted(fit: Fit) -> Voted | None:
    """Return what a majority vote makes of the mentions with a gold label; None of a vote, or where none is known."""
    if fit.data.unit != "mention" or is_counted(fit) or unused_gold(fit.resolved) is None:
        return None
    vote: Any = infer(VOTE, fit.data)
    found = against_gold(vote.truth, vote.resolved)
    tied = found.certainty < 1 - 1e-9
    right = found.right[~tied].sum()
    return Voted(int(right), int((~tied).sum() - right), found.item[tied], int((found.right[tied] > 0).sum()))
