"""How many gold labels would tell two systems apart that are not told apart yet: by McNemar's test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, special

from consilience.evaluation.leaderboard import Comparison
from consilience.inference.fitting import Fit
from consilience.models.intervals import LEVEL, ends
from consilience.pages.told_apart import is_close, sign_test
from consilience.pages.with_gold import lead as lead_by_both
from consilience.pages.with_gold import number_of
from consilience.printing import counted
from consilience.rounding import written

if TYPE_CHECKING:
    from consilience.pages.gold import SystemsByGold

_POWER = 0.8
_LEAST_LEAD = 0.005  # one of less is none on the page
SURE, FIND = float(special.ndtri(ends()[1])), float(special.ndtri(_POWER))
"""Standard errors that a lead has to be away from 0 to be told, and those by which it is then told so often."""


def needed(lead: float, discordant: float) -> int:
    """Return how many gold labels tell a lead with a probability of 0.8, by McNemar's test of 5 % (Connor 1987).

    Parameters
    ----------
    lead : the difference of the shares that are right; above 0.
    discordant : the share of items on which one of the systems alone is right; at least the lead.

    Examples
    --------
    >>> needed(0.1, 0.2), needed(0.02, 4 / 30)
    (155, 2614)
    """
    together = SURE * math.sqrt(discordant) + FIND * math.sqrt(discordant - lead**2)
    return math.ceil((together / lead) ** 2)


def least_lead(number: int, discordant: float) -> float:
    """Return the least lead that so many gold labels tell with a probability of 0.8.

    A lead takes items on which one system alone is right: of a larger one there are more of these.

    Examples
    --------
    >>> round(least_lead(155, 0.2), 2)
    0.1
    """

    def lacking(lead: float) -> float:
        share = max(discordant, lead)
        return lead * math.sqrt(number) - SURE * math.sqrt(share) - FIND * math.sqrt(share - lead**2)

    return float(optimize.brentq(lacking, 1e-9, 1.0))


def more_gold(fit: Fit, gold: SystemsByGold, comparison: Comparison) -> str:
    """Say how many more gold labels would tell the first two systems apart; empty where they are told, or none help.

    Parameters
    ----------
    fit, comparison : the systems, and what they are scored against.
    gold : of how many gold labels each system hits how many.
    """
    if not gold.leads or len(comparison.table) < 2:
        return ""
    names = gold.order(comparison)[:2]
    own, other = (gold.right[name] for name in names)
    if gold.anchored is None:
        lead, is_told = own.share - other.share, sign_test(own.each, other.each) < 1 - LEVEL
    else:
        lead, is_told = float(number_of(lead_by_both(gold.anchored))), not is_close(gold.anchored)
    return "" if is_told else to_tell_apart(own.each, other.each, lead, fit.truth.num_units, names)


def to_tell_apart(own: np.ndarray, other: np.ndarray, lead: float, items: int, names: Sequence[str]) -> str:
    """Say how many gold labels would tell two systems apart, or which lead all items would tell; empty of none more.

    Parameters
    ----------
    own, other : for each gold label, whether either system is right.
    lead : how far the first seems to be ahead; of gold labels and annotations together, or of gold labels alone.
    items : how many there are in all.
    names : of the two systems.
    """
    number, apart = len(own), float(np.abs(own - other).sum())
    shown = float(f"{lead:.2g}") if lead >= _LEAST_LEAD else 0.0  # what the page says
    if number >= items or not apart:
        return ""
    discordant = apart / number
    total = needed(shown, max(discordant, shown)) if shown > 0 else math.inf
    often = f"if exactly one system is right on {apart:g} in {number:,} items, as so far"
    if total <= items:
        total = min(about(total), items)
        more = counted(max(total - number, 1), "more items")
        return (
            f"Get gold labels for about {more}, chosen at random: {total:,} gold labels would show a lead of "
            f"{shown:g}, as seen here, four times in five, {often}"
        )
    return (
        f"To tell “{names[0]}” and “{names[1]}” apart, test both on more than these {items:,} items: gold labels for "
        f"all of them would show only a lead of about {_up(least_lead(items, discordant))} or more (four times in "
        f"five, {often})"
    )


def about(number: float) -> int:
    """Round a number up to two digits.

    Examples
    --------
    >>> about(2614), about(91)
    (2700, 91)
    """
    number = int(number)
    unit = 10 ** max(len(str(number)) - 2, 0)
    return math.ceil(number / unit) * unit


def _up(value: float) -> str:
    return written(math.ceil(round(value * 100, 6)) / 100, ".2f")
