"""Numbers that are known as weights of the points of a grid, and normal priors of such numbers.

Where a likelihood is no conjugate one but smooth, a few points of each number are enough: updates are sums over the
points, and need neither derivatives nor steps of a length that somebody has to choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Key
from consilience.models.beta_priors import check_positive
from consilience.models.intervals import ends
from consilience.models.posterior import Factor, Interval


@dataclass(frozen=True)
class LearnedNormal:
    """The prior of numbers on a grid, learned from all units; it starts as Normal(loc, scale).

    Parameters
    ----------
    loc : mean at the start.
    scale : standard deviation at the start, positive.

    Raises
    ------
    InvalidPrior : the scale is not positive.
    """

    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_positive("scale of LearnedNormal(loc, scale)", self.scale)

    def __call__(self, data: Any) -> dist.Normal:
        """Return the distribution at the start."""
        return dist.Normal(*jnp.asarray(self.numbers(data), jnp.result_type(float)))

    def numbers(self, data: Any) -> Float[np.ndarray, " 2"]:
        """Return mean and standard deviation without making the distribution."""
        return np.array([self.loc, self.scale], float)


def normal_log_weights(points: Float[Array, " point"], loc: Any, scale: Any) -> Float[Array, " point"]:
    """Return the log probabilities of equally spaced points under a normal density, normalised over them."""
    return jax.nn.log_softmax(-0.5 * ((points - loc) / scale) ** 2)


@dataclass(frozen=True)
class OnGrid(Factor):
    """Independent numbers, each near one of some equally spaced points, with a density that is level around each.

    Parameters
    ----------
    points : shape ``(point,)``, increasing.
    probability : shape ``(unit, point)``; each unit's add up to one.
    """

    # The grids of several sites of a fit have different numbers of points, so that the axis is not named.
    points: Float[np.ndarray, "*point"]
    probability: Float[np.ndarray, "*unit point"]

    @property
    def spacing(self) -> float:
        """The distance between two points."""
        return float(self.points[1] - self.points[0])

    @property
    def below(self) -> Float[np.ndarray, "unit point"]:
        """The distribution functions at the points, float64."""
        found = np.cumsum(np.asarray(self.probability, float), axis=-1)
        return found / found[..., -1:]

    def sample(self, key: Key, shape: tuple[int, ...]) -> Float[Array, "*shape unit"]:
        """Return draws by the inverse of the distribution functions, one point after the other."""
        key_point, key_within = jax.random.split(key)
        uniform = jax.random.uniform(key_point, (*shape, len(self.probability)))
        place: Any = jnp.zeros(uniform.shape, int)
        for end in self.below[:, :-1].T:
            place += uniform >= end
        return jnp.asarray(self.points)[place] + self.spacing * (jax.random.uniform(key_within, uniform.shape) - 0.5)

    def summary(self, level: float) -> Interval:
        """Return mean, standard deviation and the central interval."""
        weight, points = np.diff(self.below, axis=-1, prepend=0.0), np.asarray(self.points, float)
        mean = weight @ points
        variance = np.maximum(weight @ points**2 - mean**2, 0.0) + self.spacing**2 / 12
        return Interval(mean, np.sqrt(variance), *(self._quantile(end) for end in ends(level)))

    def _quantile(self, end: float) -> Float[np.ndarray, " unit"]:
        below = self.below
        place = np.minimum((below < end).sum(axis=-1), len(self.points) - 1)[:, None]
        reached = np.take_along_axis(below, place, axis=-1)[:, 0]
        own = np.take_along_axis(np.diff(below, axis=-1, prepend=0.0), place, axis=-1)[:, 0]
        return np.asarray(self.points, float)[place[:, 0]] + ((end - reached) / own + 0.5) * self.spacing
