"""How a symmetric Dirichlet prior fits counts (empirical Bayes; Minka 2000, Estimating a Dirichlet distribution)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from consilience.arrays import Float, Int

_HALVINGS = 50


class CountsOfClasses(NamedTuple):
    """All that a symmetric Dirichlet prior asks of the counts of classes, of one item or of several.

    Parameters
    ----------
    times, cells : numbers above 0, increasing, and how many classes of items were counted so often.
    total, items : numbers of labels, increasing, and how many items have so many.
    num_classes : of each item.
    """

    times: Int[np.ndarray, " different"]
    cells: Int[np.ndarray, " different"]
    total: Int[np.ndarray, " different_total"]
    items: Int[np.ndarray, " different_total"]
    num_classes: int

    @classmethod
    def of(
        cls, counts: Int[np.ndarray, " cell"], totals: Int[np.ndarray, " item"], num_classes: int
    ) -> CountsOfClasses:
        """Count the counts of all classes of all items, of which those that are 0 may be left out."""
        (times, cells), (total, items) = (_different(one) for one in (counts[counts > 0], totals))
        return cls(times, cells, total, items, num_classes)

    def most_probable(self, lowest: float, highest: float, *, spread: float = np.inf) -> float:
        """Return the most probable concentration within bounds: where the slope is 0.

        Parameters
        ----------
        lowest, highest : bounds.
        spread : standard deviation of the logarithm, a normal distribution about that of the lowest before any count;
            without it all logarithms are as probable.
        """
        if self._slope(lowest) <= 0:
            return lowest
        low, high = least, _ = np.log([lowest, highest])
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            slope = np.exp(middle) * self._slope(np.exp(middle)) - (middle - least) / spread**2
            low, high = (middle, high) if slope > 0 else (low, middle)
        return float(np.exp((low + high) / 2))

    def _slope(self, concentration: float) -> float:
        """Return the derivative of the log probability by the concentration."""
        each, whole = concentration, concentration * self.num_classes
        of_cells = self.cells @ (special.digamma(self.times + each) - special.digamma(each))
        of_items = self.items @ (special.digamma(self.total + whole) - special.digamma(whole))
        return float(of_cells - self.num_classes * of_items)


def _different(numbers: Int[np.ndarray, " number"]) -> tuple[np.ndarray, np.ndarray]:
    """Return the different ones, increasing, and how often each is there."""
    if numbers.max(initial=0) > 10 * len(numbers) + 1_000:  # as many counters as the largest would be far too many
        return np.unique(numbers, return_counts=True)
    often = np.bincount(numbers)
    there = np.flatnonzero(often)
    return there, often[there]


def concentration_of(counts: Float[np.ndarray, " value"], lowest: float, highest: float) -> float:
    """Return the most probable concentration of one vector of counts; 1 where nothing was counted."""
    number = np.asarray(counts, int)
    if not number.any():
        return 1.0  # nothing is shown, and nothing is asked
    return CountsOfClasses.of(number, number.sum(keepdims=True), len(number)).most_probable(lowest, highest)
