"""The interval that is told of everything uncertain: the central one, of 95 % where nothing else is said."""

from __future__ import annotations

LEVEL = 0.95
"""Probability of an interval where nothing else is said."""


def ends(level: float = LEVEL) -> tuple[float, float]:
    """Return the levels of the two quantiles between which a central interval lies."""
    return (1 - level) / 2, (1 + level) / 2
