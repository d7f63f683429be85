"""Readings of systems: what is assumed of where their predictions come from, and what follows for a ranking.

The first reading is that of the annotators alone; those with an own look counted follow, from the lower to the upper.
Systems of a leaderboard are mostly of one kind. So those of *unknown* provenance take their readings in common: all as
the annotators alone have them, or all with an own look. Where they are *mixed*, anything goes: the lowest reading of
one against the highest of all others.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Float, Int
from consilience.evaluation.engine import BATCHES
from consilience.models.intervals import LEVEL, ends
from consilience.rounding import probability

PROVENANCES = ("annotations", "independent", "unknown", "mixed")
"""What may be known of where predictions come from."""

# Scores that differ by less, relative to their size where that is above one, tie.
_TIE = 1e-9

# A probability that readings put further apart than this is told as a range.
_APART = 0.05

_Choice = Int[np.ndarray, " system"]


@dataclass(frozen=True, eq=False)
class Readings:
    """Scores of systems under each reading.

    Parameters
    ----------
    values : shape ``(reading, system)``.
    draws : shape ``(reading, system, draw)``.
    provenance : of each system, one of `PROVENANCES`.
    """

    values: Float[np.ndarray, "reading system"]
    draws: Float[np.ndarray, "reading system draw"]
    provenance: tuple[str, ...]

    @functools.cached_property
    def options(self) -> list[list[int]]:
        """The readings that count for each system."""
        every = list(range(len(self.draws)))
        known = {"annotations": every[:1], "independent": every[1:] or every}
        return [known.get(one, every) for one in self.provenance]

    @functools.cached_property
    def range(self) -> Float[np.ndarray, "two system"]:
        """The lowest and the highest of the readings that count."""
        own = [self.values[options, a] for a, options in enumerate(self.options)]
        return np.array([[one.min() for one in own], [one.max() for one in own]])

    @property
    def value(self) -> Float[np.ndarray, " system"]:
        """The middle of that range, by which systems are ordered."""
        return self.range.sum(axis=0) / 2

    @property
    def own_range(self) -> Float[np.ndarray, "two system"]:
        """The lowest and the highest of the readings with an own look; NaN where these do not count."""
        counts = np.array([options[-1] > 0 for options in self.options])
        own = self.values[min(1, len(self.values) - 1) :]
        return np.where(counts, np.stack([own.min(axis=0), own.max(axis=0)]), np.nan)

    def interval(self, level: float = LEVEL) -> tuple[Float[np.ndarray, " system"], Float[np.ndarray, " system"]]:
        """Return the lowest and the highest end of a system's readings."""
        found = np.quantile(self.draws, ends(level), axis=2)
        return (
            np.array([found[0, options, a].min() for a, options in enumerate(self.options)]),
            np.array([found[1, options, a].max() for a, options in enumerate(self.options)]),
        )

    def first(self, a: int) -> Float[np.ndarray, " draw"]:
        """Return the draws of the first reading that counts."""
        return self.draws[self.options[a][0], a]

    def differences(self, a: int, b: int) -> Float[np.ndarray, "choice draw"]:
        """Return what one system has more than another, under each choice of readings."""
        return np.stack([self.draws[which[a], a] - self.draws[which[b], b] for which in self._choices(a)])

    def leads(self, a: int, b: int) -> Float[np.ndarray, " choice"]:
        """Return the same of the scores."""
        return np.array([self.values[which[a], a] - self.values[which[b], b] for which in self._choices(a)])

    def p_best(self) -> Float[np.ndarray, "three system"]:
        """Return how probably each system is best, at least and at most, and the Monte Carlo error of either."""
        every = np.arange(len(self.provenance))
        if "mixed" in self.provenance:
            found = [[best_shares(self.draws[which, every])[a] for which in self._extreme(a)] for a in every.tolist()]
            shares = np.array(found)
        else:
            shares = np.stack([best_shares(self.draws[which, every]) for which in self._in_common], axis=1)
        mean = shares.mean(axis=2)
        return np.stack([mean.min(axis=1), mean.max(axis=1), _batch_error(shares).max(axis=1)])

    def _choices(self, a: int) -> list[_Choice]:
        """Return the choices of readings, one for each system, that bound what is said of one system."""
        return self._extreme(a) if "mixed" in self.provenance else self._in_common

    @functools.cached_property
    def _in_common(self) -> list[_Choice]:
        last = len(self.draws) - 1
        pairs = [(both, max(look, min(1, last))) for both in range(last + 1) for look in range(last + 1)]
        found = [
            tuple({"annotations": 0, "independent": look}.get(one, both) for one in self.provenance)
            for both, look in pairs
        ]
        return [np.array(one) for one in dict.fromkeys(found)]

    def _extreme(self, a: int) -> list[_Choice]:
        lowest, highest = (
            np.array([options[int(pick(self.values[options, b]))] for b, options in enumerate(self.options)])
            for pick in (np.argmin, np.argmax)
        )
        it = np.arange(len(lowest)) == a
        return [np.where(it, lowest, highest), np.where(it, highest, lowest)]


def told(low: Any, high: Any) -> np.ndarray:
    """Return the middle of two probabilities, elementwise; NaN where they are far apart."""
    return np.where(high - low <= _APART, (low + high) / 2, np.nan)


def range_text(low: float, high: float, digits: int = 2, draws: float = np.inf) -> str:
    """Return a probability as it is printed: one number, or a range where readings put it far apart.

    Parameters
    ----------
    low, high, digits : the ends, and digits after the point.
    draws : independent ones among which it was counted, as `probability` takes them.
    """
    if np.isnan(low):
        return "-"
    if high - low > _APART:
        both = list(dict.fromkeys(probability(end, digits, draws) for end in (low, high)))
        return ("–" if "".join(both).replace(".", "").isdigit() else " to ").join(both)
    return probability((low + high) / 2, digits, draws)


def best_shares(draws: Float[np.ndarray, "system draw"]) -> Float[np.ndarray, "system draw"]:
    """Return 1 for the best system of a draw and 0 for others; systems that tie share the draw."""
    highest = draws.max(axis=0)
    best = draws >= highest - _TIE * np.maximum(np.abs(highest), 1)
    return best / best.sum(axis=0)


def _batch_error(shares: Float[np.ndarray, "system choice draw"]) -> Float[np.ndarray, "system choice"]:
    """Return the Monte Carlo errors of means, from the means of batches of draws."""
    number = min(BATCHES, shares.shape[2])
    means = np.stack([part.mean(axis=2) for part in np.array_split(shares, number, axis=2)])
    return means.std(axis=0, ddof=1) / np.sqrt(number) if number > 1 else np.full(shares.shape[:2], np.nan)


def wins(difference: Float[np.ndarray, "*pair draw"]) -> Float[np.ndarray, "*pair"]:
    """Return the share of draws in which the first one is better, a tie counting half."""
    tied = np.abs(difference) < _TIE
    return np.asarray(((difference > 0) & ~tied).mean(axis=-1) + 0.5 * tied.mean(axis=-1))
