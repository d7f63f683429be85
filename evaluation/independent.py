r"""Scores that are sums over independent units, in closed form: expectations, covariances, and their distribution.

Item i has class k with probability :math:`r_{ik}`, independently of other items. What depends on the class of an item
alone, :math:`f_{ik}`, has the mean :math:`m_i = \sum_k r_{ik} f_{ik}`; the mean over I items has the variance
:math:`\sum_i (\sum_k r_{ik} f_{ik}^2 - m_i^2) / I^2`, and of two systems the covariance
:math:`\sum_i (\sum_k r_{ik} f_{ik} g_{ik} - m_i n_i) / I^2`.

The number of items that are right is a sum of independent indicators. Below 1,000 of them its distribution function is
taken exactly, by the discrete Fourier transform of :math:`\prod_i (1 - m_i + m_i z)`; from there on it is the normal
law with skewness and continuity correction, :math:`F(k) = \Phi(z) + \gamma (1 - z^2) \varphi(z) / 6` at
:math:`z = (k + 1/2 - \mu) / \sigma` with :math:`\gamma = \sum m (1 - m)(1 - 2 m) / \sigma^3`.

References
----------
Volkova (1996), A refinement of the central limit theorem for sums of independent random indicators, Theory of
Probability and its Applications 40. Fernández and Williams (2010), Closed-form expression for the Poisson-binomial
probability density function, IEEE Transactions on Aerospace and Electronic Systems 46.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.arrays import Float, Int
from consilience.models.truth.truth import Marginals

FEW = 1000
"""So many that their mean is as good as normal."""

# Units that are looked up at a time, and numbers of a transform.
_MOST_UNITS, _MOST_NUMBERS = 1 << 20, 1 << 22


class Moments(NamedTuple):
    """Scores of systems under a truth of independent units.

    Parameters
    ----------
    unit : shape ``(system, unit)``; the expected score of each unit, a probability.
    covariance : shape ``(system, system)``; of the means over units.
    """

    unit: Float[np.ndarray, "system unit"]
    covariance: Float[np.ndarray, "system system"]


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution of a sum of independent indicators.

    Parameters
    ----------
    number : of indicators.
    mean, sd, skewness : of the sum.
    table : the distribution function at 0, 1, …, where it is known exactly.
    """

    number: int
    mean: float
    sd: float
    skewness: float
    table: Float[np.ndarray, " value"] | None = None

    def cdf(self, value: Any) -> np.ndarray:
        """Return how probably the sum is at most a value, or each of several."""
        whole = np.floor(np.asarray(value, float))
        if self.sd == 0:
            return np.where(whole >= round(self.mean), 1.0, 0.0)
        if self.table is not None:
            place = np.clip(whole, 0, self.number).astype(int)
            return np.where(whole < 0, 0.0, self.table[place])
        z = (whole + 0.5 - self.mean) / self.sd
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        found = np.clip(special.ndtr(z) + self.skewness * (1 - z**2) * density / 6, 0.0, 1.0)
        return np.where(whole < 0, 0.0, np.where(whole >= self.number, 1.0, found))

    def quantile(self, level: float) -> int:
        """Return the smallest value that the sum does not exceed with at least this probability."""
        low, high = -1, self.number
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if float(self.cdf(middle)) >= level else (middle, high)
        return high


def sum_of_indicators(probability: Float[np.ndarray, " unit"]) -> Distribution:
    """Return the distribution of the number of independent events that come true.

    Parameters
    ----------
    probability : of each event.
    """
    p = np.asarray(probability, float)
    variance = float(np.sum(p * (1 - p)))
    sd = variance**0.5
    skewness = float(np.sum(p * (1 - p) * (1 - 2 * p))) / sd**3 if sd > 0 else 0.0
    table = _exact_table(p) if len(p) < FEW and sd > 0 else None
    return Distribution(len(p), float(p.sum()), sd, skewness, table)


def _exact_table(p: Float[np.ndarray, " unit"]) -> Float[np.ndarray, " value"]:
    number = len(p) + 1
    roots = np.exp(2j * np.pi * np.arange(number) / number)
    values = np.ones(number, complex)
    rows = max(_MOST_NUMBERS // number, 1)
    for start in range(0, len(p), rows):
        own = p[start : start + rows, None]
        values *= np.prod(1 + own * (roots - 1), axis=0)
    mass = np.clip(np.fft.fft(values).real / number, 0.0, 1.0)
    return np.minimum(np.cumsum(mass), 1.0)


def mean_quantiles(probability: Float[np.ndarray, " unit"], levels: tuple[float, float]) -> tuple[float, float]:
    """Return quantiles of the share of independent events that come true."""
    law = sum_of_indicators(probability)
    low, high = (law.quantile(level) / max(law.number, 1) for level in levels)
    return low, high


def hit_moments(
    found: Marginals, predicted: Int[np.ndarray, "item system place"], kept: Int[np.ndarray, " unit"]
) -> Moments:
    """Return how probably the class of each unit is among those that a system names, and how systems go together.

    Parameters
    ----------
    found : how probable each class of each unit is.
    predicted : codes, each once for a unit and system; negative ones name no class.
    kept : the units that count.
    """
    num_systems = predicted.shape[1]
    unit = np.empty((num_systems, len(kept)))
    covariance = np.zeros((num_systems, num_systems))
    for start in range(0, len(kept), _MOST_UNITS):
        own = kept[start : start + _MOST_UNITS]
        codes = predicted[own]
        probability = _looked_up(found, own, codes)
        mean = probability.sum(axis=2).T
        unit[:, start : start + len(own)] = mean
        for one in range(num_systems):
            for other in range(one, num_systems):
                same = codes[:, one, :, None] == codes[:, other, None, :]
                both = float((same * probability[:, one, :, None]).sum()) - float(mean[one] @ mean[other])
                covariance[one, other] += both
                covariance[other, one] = covariance[one, other]
    return Moments(unit, covariance / max(len(kept), 1) ** 2)


def hit_means(
    found: Marginals, predicted: Int[np.ndarray, "item system place"], kept: Int[np.ndarray, " unit"]
) -> Float[np.ndarray, " system"]:
    """Return the means over units of what `hit_moments` says of each."""
    total = np.zeros(predicted.shape[1])
    for start in range(0, len(kept), _MOST_UNITS):
        own = kept[start : start + _MOST_UNITS]
        total += _looked_up(found, own, predicted[own]).sum(axis=(0, 2))
    return total / len(kept)


def _looked_up(
    found: Marginals, units: Int[np.ndarray, " unit"], codes: Int[np.ndarray, "unit system place"]
) -> Float[np.ndarray, "unit system place"]:
    """Return how probable classes are, by a search among the entries of each unit; 0 for negative codes."""
    low = np.broadcast_to(found.first[units][:, None, None], codes.shape).copy()
    end = np.broadcast_to(found.first[units + 1][:, None, None], codes.shape)
    high, last = end.copy(), len(found.code) - 1
    for _ in range(int(np.diff(found.first).max(initial=0)).bit_length()):
        middle = (low + high) // 2
        below = (low < high) & (found.code[np.minimum(middle, max(last, 0))] < codes) if last >= 0 else False
        low, high = np.where(below, middle + 1, low), np.where(below | (low >= high), high, middle)
    place = np.minimum(low, max(last, 0))
    named = (low < end) & (found.code[place] == codes) if last >= 0 else np.zeros(codes.shape, bool)
    value = np.where(named, found.probability[place] if last >= 0 else 0.0, found.unnamed[units][:, None, None])
    return np.where(codes < 0, 0.0, value)
