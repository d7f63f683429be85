r"""What a leaderboard needs of one pass over the draws, and the draws of its scores; no metric is known here.

A metric is sums per unit and draw, :math:`s_{aipm}`: part p of system a on unit i in draw m. With :math:`F_m = g(\sum_i
s)` the score on these units, the score in the population of units has two sources of uncertainty. Units are a sample:
the Bayesian bootstrap (Rubin 1981) weighs their means over draws, :math:`\bar s`. And units share parameters, such as
the skills of annotators: what of the covariance of F is more than the units' own,

.. math:: V_\text{these} = \operatorname{Cov}_m F, \quad V_\text{own} = J C J^\top, \quad C = \sum_i
          \operatorname{Cov}_m s_i, \quad V_\text{shared} = (V_\text{these} - V_\text{own})_+,

J the derivative of g. The units' own doubt, :math:`V_\text{own}`, is not added: a mean over draws is right on average,
and how the means differ between units holds it. Deviations of F are mapped to the covariance
:math:`V_\text{shared}` by the symmetric matrix nearest to the identity that does so, which keeps their skewness.

One pseudo-unit keeps an interval from collapsing where all units score alike: its weight is one unit's, its score the
mean of a Dirichlet process DP(1, fair coin). Of scores 0 and 1 the bootstrap is then the Jeffreys posterior,
:math:`\operatorname{Beta}(k + 1/2, n - k + 1/2)`. Systems toss coins of their own: two that are right on the same few
units need not be so on others.

References
----------
Rubin (1981), The Bayesian bootstrap, The Annals of Statistics 9(1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from consilience.arrays import Float
from consilience.evaluation.engine import Scoring, Sums, Totals, parts_alike

# Units whose weights are drawn together: a stream of its own each, so that no block of a truth changes a weight.
_CHUNK = 1024

STICKS = 12
"""Of the Dirichlet process: what they leave of the mass is 2^-12 on average, and the last one has it."""

REPLICATES = 1000
"""Of the weights, where no draws of a truth go with them."""

# Eigenvalues below this share of the largest are rounding.
_LEAST = 1e-10

# Streams of random numbers beside those of the weights, whose streams have the numbers of chunks.
_PSEUDO_WEIGHTS, _PSEUDO_SCORES, _DOUBTS = 1 << 40, 1 << 41, 1 << 42


class UnitSums(Totals):
    """Sums of all units by draw, their means by unit, and the covariance that units have of their own."""

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(scoring)
        self._mean: np.ndarray | None = None

    def add(self, block: Sums) -> None:
        """Take in a block."""
        super().add(block)
        systems, parts, _, _ = block.values.shape
        if self._mean is None:
            self._mean = np.zeros((systems, parts, self.scoring.num_units))
            self._products = np.zeros((systems * parts,) * 2)
            # Products of deviations from the first draw: of the numbers themselves they would cancel.
            self._first = np.zeros_like(self._mean, block.values.dtype)
        if block.draws.start == 0:
            self._first[:, :, block.units] = block.values[..., 0]
        self._mean[:, :, block.units] += block.values.sum(axis=3, dtype=float)
        if self.scoring.num_draws > 1:
            deviation = block.values - self._first[:, :, block.units, None]
            flat = deviation.reshape(systems * parts, -1)
            self._products += flat @ flat.T

    @property
    def mean(self) -> Float[np.ndarray, "system part unit"]:
        """The means over draws."""
        assert self._mean is not None
        return self._mean / self.scoring.num_draws

    @property
    def own_covariance(self) -> Float[np.ndarray, "cell cell"]:
        """The covariances over draws of what each unit adds, summed over units; a cell is a part of a system."""
        number = self.scoring.num_draws
        if number == 1:
            return np.zeros_like(self._products)
        shift = (self.mean - self._first).reshape(len(self._products), -1)
        return (self._products - number * shift @ shift.T) / (number - 1)


def unit_weights(seed: int, units: slice, number: int) -> Float[np.ndarray, "unit replicate"]:
    """Return Exponential(1) weights of some units, float32; normalised over all they are Dirichlet(1, …, 1)."""
    if units.start >= units.stop:
        return np.empty((0, number), np.float32)
    first, last = units.start // _CHUNK, -(-units.stop // _CHUNK)
    chunks = [
        np.random.default_rng([seed, chunk]).standard_exponential((_CHUNK, number), dtype=np.float32)
        for chunk in range(first, last)
    ]
    found = chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
    return found[units.start - first * _CHUNK : units.stop - first * _CHUNK]


def weighted_sums(
    rows: Float[np.ndarray, "row unit"], seed: int, number: int
) -> tuple[Float[np.ndarray, "row replicate"], Float[np.ndarray, " replicate"]]:
    """Return sums over units with their weights, and the sums of the weights."""
    total, weight = np.zeros((len(rows), number)), np.zeros(number)
    for start in range(0, rows.shape[1], _CHUNK):
        units = slice(start, min(start + _CHUNK, rows.shape[1]))
        own = unit_weights(seed, units, number)
        total += rows[:, units] @ own
        weight += own.sum(axis=0, dtype=float)
    return total, weight


def pseudo_weights(seed: int, number: int) -> Float[np.ndarray, " replicate"]:
    """Return the weights of the pseudo-unit, Exponential(1) too."""
    return np.random.default_rng([seed, _PSEUDO_WEIGHTS]).standard_exponential(number)


def stick_shares(stick: Float[np.ndarray, " stick *rest"]) -> Float[np.ndarray, " stick *rest"]:
    """Return the shares of the atoms of a Dirichlet process DP(1), from numbers that are uniform on (0, 1)."""
    left = np.cumprod(1 - stick[:-1], axis=0)
    return np.concatenate([stick[:1], stick[1:-1] * left[:-1], left[-1:]])


def pseudo_scores(
    seed: int, num_systems: int, number: int, bounds: tuple[float, float] = (0.0, 1.0)
) -> Float[np.ndarray, "system replicate"]:
    """Return the scores of the pseudo-unit: means of DP(1, fair coin between the bounds), sticks in common."""
    random = np.random.default_rng([seed, _PSEUDO_SCORES])
    share = stick_shares(random.random((STICKS, number)))
    coin = random.random((num_systems, STICKS, number)) < 0.5
    return bounds[0] + (bounds[1] - bounds[0]) * (coin * share).sum(axis=1)


def nearest_map(
    given: Float[np.ndarray, "system system"], wanted: Float[np.ndarray, "system system"]
) -> Float[np.ndarray, "system system"]:
    r"""Return the symmetric matrix that turns vectors of one covariance into vectors of another and moves them least.

    It is :math:`V^{-1/2} (V^{1/2} W V^{1/2})^{1/2} V^{-1/2}`, the optimal transport between normal vectors.
    """
    root, inverse = _power(given, 0.5), _power(given, -0.5)
    return inverse @ _power(root @ wanted @ root, 0.5) @ inverse


def _power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    """Return a power of a covariance, of its positive part."""
    value, vector = np.linalg.eigh((matrix + matrix.T) / 2)
    positive = value > _LEAST * max(value.max(initial=0.0), np.finfo(float).tiny)
    return (vector * np.where(positive, np.where(positive, value, 1.0) ** exponent, 0.0)) @ vector.T


class Drawn(NamedTuple):
    """Draws of the scores of systems.

    Parameters
    ----------
    both : of the score in the population of units.
    units : with the means over draws of the truth, units alone uncertain.
    shared : what parameters that units share add to these: zeros where there are none.
    """

    both: Float[np.ndarray, "system replicate"]
    units: Float[np.ndarray, "system replicate"]
    shared: Float[np.ndarray, "system replicate"]


def resampled(
    mean: Float[np.ndarray, "system part unit"], seed: int, number: int, bounds: tuple[float, float] | None,
    pseudo: Callable[[np.ndarray, np.ndarray], np.ndarray] = parts_alike,
) -> Float[np.ndarray, "system part replicate"]:  # fmt: skip
    """Return means over units by the Bayesian bootstrap, with the pseudo-unit unless there are no bounds.

    ``pseudo`` makes its sums; see `Scoring`.
    """
    systems, parts, num_units = mean.shape
    total, weight = weighted_sums(mean.reshape(systems * parts, num_units), seed, number)
    total = total.reshape(systems, parts, number)
    if bounds is not None:
        extra = pseudo_weights(seed, number)
        total += extra * pseudo(mean.mean(axis=2), pseudo_scores(seed, systems, number, bounds))
        weight += extra
    return np.asarray(total / weight)


def unit_draws(
    scoring: Scoring, name: str, mean: Float[np.ndarray, "system part unit"], seed: int, number: int
) -> Float[np.ndarray, "system replicate"]:
    """Return scores with the units uncertain."""
    drawn = resampled(mean, seed, number, scoring.bounds.get(name, (0.0, 1.0)), scoring.pseudo)
    found = scoring.value(name, drawn * scoring.num_units)
    if name in scoring.of_means:  # weights add noise to what is no mean, as draws do
        found += scoring.value(name, mean.sum(axis=2, keepdims=True)) - found.mean(axis=1, keepdims=True)
    return found


def combined_draws(
    scoring: Scoring, name: str, sums: UnitSums, scores: Float[np.ndarray, "system draw"], seed: int, number: int
) -> Drawn:
    """Return draws of the scores in the population of units.

    Parameters
    ----------
    scores : of the draws in which they are defined; replicate r goes with draw r, from the first again after the last.
    number : of replicates.
    """
    mean = sums.mean
    units = unit_draws(scoring, name, mean, seed, number)
    shared = np.zeros_like(units)
    if not scoring.independent and scores.shape[1] > 1:
        own = sums.own_covariance.reshape(*mean.shape[:2], *mean.shape[:2])
        slope = _slopes(scoring, name, sums.sums.mean(axis=2))
        these = np.atleast_2d(np.cov(scores))
        more = these - np.einsum("ap,apbq,bq->ab", slope, own, slope)
        moved = nearest_map(these, _power(more, 1.0)) @ (scores - scores.mean(axis=1, keepdims=True))
        shared = np.take(moved, np.arange(number) % scores.shape[1], axis=1)
    return Drawn(units + shared, units, shared)


def doubt_draws(
    at: Float[np.ndarray, " point"], scores: Float[np.ndarray, "point system"], seed: int, number: int
) -> Float[np.ndarray, "system replicate"]:
    """Return deviations of scores that depend on something normal, which nobody observed and all systems share.

    Parameters
    ----------
    at : in standard deviations, 0 in the middle; between these points scores are interpolated.
    scores : at these points.
    """
    drawn = np.random.default_rng([seed, _DOUBTS]).standard_normal(number)
    return np.stack([np.interp(drawn, at, own) for own in (scores - scores[len(at) // 2]).T])


def _slopes(scoring: Scoring, name: str, total: Float[np.ndarray, "system part"]) -> Float[np.ndarray, "system part"]:
    """Return the derivatives of the scores with respect to their sums; 0 where a score is undefined."""
    slope = np.zeros_like(total)
    for part in range(total.shape[1]):
        step = 1e-6 * np.maximum(np.abs(total[:, part]), 1.0)
        ends = []
        for sign in (1, -1):
            moved = total.copy()
            moved[:, part] += sign * step
            ends.append(scoring.value(name, moved))
        slope[:, part] = np.nan_to_num((ends[0] - ends[1]) / (2 * step))
    return slope
