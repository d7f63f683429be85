"""Whether the first two systems of a leaderboard are told apart, and what is to be said of them where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special, stats

from consilience.evaluation.leaderboard import Comparison
from consilience.models.intervals import ends
from consilience.pages.looked import Choices
from consilience.printing import counted
from consilience.rounding import decimals, span, within

_SHOWN, _LIKELY = 0.95, 0.8  # probabilities of being the best: that tells it, and that is worth a word
_OPEN = 0.05, _SHOWN  # of the probability that a system beats another, between which their order is open

OPEN = "open"
"""What a key figure says in the place of a system that is not told from the next one."""

BY_SOURCE = ", depending on whether it looked at the items itself"
"""What is said of a score that is a range: the other end is for predictions made from the annotations."""


def is_close(comparison: Comparison) -> bool:
    """Return whether it is open which of the first two systems is better, by how probably one beats the other."""
    if len(comparison.table) < 2:
        return False
    pair = comparison.pairs.iloc[0]
    low, high = _OPEN
    return bool(pair["p_a_beats_b_lower"] < high and pair["p_a_beats_b_upper"] > low)


def which_is_better(comparison: Comparison) -> str:
    """Say what is asked of the systems: which of two is better, or which of more is best."""
    number = len(comparison.table)
    return "which system is better" if number == 2 else f"which of {counted(number, 'systems')} is best"


def not_shown(comparison: Comparison, best: str) -> str:
    """Say that the items do not show which system is better, and which probably is.

    Parameters
    ----------
    comparison : of systems whose order is open.
    best : how probably the first one is the best, in words.
    """
    first, items = comparison.table.iloc[0], counted(comparison.num_items, f"{comparison.unit}s")
    words = f"These {items} do not show {which_is_better(comparison)}"
    if not first["p_best_lower"] > _LIKELY:
        return words
    needed = f"; {_SHOWN:g} or more would show it" * (len(comparison.table) == 2)
    return f"{words}, but “{first['system']}” probably is (with probability {best}{needed})"


def open_tile(comparison: Comparison, why: str) -> dict[str, str]:
    """Return the key figure of systems that are not told apart, with what is known of the first in brackets."""
    number = len(comparison.table)
    what = "which system is better" if number == 2 else f"best of {number:,} systems"
    return {f"{what} ({why})": OPEN}


def ahead_by(comparison: Comparison) -> str:
    """Write by how much the first system is ahead of the second, with an interval of the paired difference."""
    _, low, high = within(*comparison.pairs.iloc[0][["difference", "lower", "upper"]])
    return f"{leading_by(comparison)} [{low}, {high}]"


def leading_by(comparison: Comparison) -> str:
    """Write by how much the first system is ahead of the second: a range where that depends on the reading."""
    _, *interval = comparison.pairs.iloc[0][["difference", "lower", "upper"]]
    first, second = comparison.order[:2]
    apart = comparison.readings.leads(int(first), int(second))
    return span(float(apart.min()), float(apart.max()), decimals(*interval)).replace("–", " to ")


def share_apart(said: Choices | None, names: Sequence[str]) -> float:
    """Return on which share of the items the first choices of two systems differ; 1 where unknown, 0 of one system."""
    if len(names) < 2:
        return 0.0
    if said is None or not set(names[:2]) <= set(said.names) or not len(said.place):
        return 1.0
    one, other = (said.code[said.names.index(name)] for name in names[:2])
    return float((one != other).mean())


def apart_on(said: Choices | None, names: Sequence[str]) -> str:
    """Say on how many items the first choices of two systems differ; empty where they have none."""
    if said is None or not set(names[:2]) <= set(said.names):
        return ""
    one, other = (said.code[said.names.index(name)] for name in names[:2])
    return f"their first choices differ on {int((one != other).sum()):,} of {counted(len(said.place), 'items')}"


def mean_interval(values: Any) -> tuple[float, float, float] | None:
    """Return the mean of values with its interval of 95 % by Student's t; None where they are all alike.

    Examples
    --------
    >>> [round(one, 3) for one in mean_interval([0.5, 0.0, 1.0, 0.5])]
    [0.5, -0.15, 1.15]
    """
    values = np.asarray(values, float)
    if len(values) < 2 or np.ptp(values) < 1e-12:
        return None
    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    half = special.stdtrit(len(values) - 1, ends()[1]) * error
    return float(mean), float(mean - half), float(mean + half)


def sign_test(own: np.ndarray, other: np.ndarray) -> float:
    """Return how probably chance alone parts two systems so far on the same gold labels, by the sign test."""
    more, less = int((own > other).sum()), int((own < other).sum())
    return float(stats.binomtest(more, more + less).pvalue) if more + less else 1.0
