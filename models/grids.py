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
    """Independent numbers, each on one of some equally spaced points.

    Parameters
    ----------
    points : shape ``(point,)``, increasing.
    probability : shape ``(unit, point)``; each unit's add up to one.
    """

    points: Float[np.ndarray, " point"]
    probability: Float[np.ndarray, "*unit point"]

    def sample(self, key: Key, shape: tuple[int, ...]) -> Float[Array, "*shape unit"]:
        """Return points by the inverse of the distribution functions, one point after the other."""
        below = np.cumsum(np.asarray(self.probability, float), axis=-1)
        uniform = jax.random.uniform(key, (*shape, len(below)))
        place: Any = jnp.zeros(uniform.shape, int)
        for end in (below[:, :-1] / below[:, -1:]).T:
            place += uniform >= end
        return jnp.asarray(self.points)[place]

    def summary(self, level: float) -> Interval:
        """Return mean, standard deviation, and the interval of a density that is level around each point."""
        weight, points = np.asarray(self.probability, float), np.asarray(self.points, float)
        weight = weight / weight.sum(axis=-1, keepdims=True)
        mean = weight @ points
        sd = np.sqrt(np.maximum(weight @ points**2 - mean**2, 0.0))
        return Interval(mean, sd, *(self.quantile(end) for end in ends(level)))

    def quantile(self, end: float) -> Float[np.ndarray, " unit"]:
        """Return the number below which a share of each unit's probability lies, between the points of the grid."""
        weight = np.asarray(self.probability, float)
        weight = weight / weight.sum(axis=-1, keepdims=True)
        below = np.cumsum(weight, axis=-1)
        place = np.minimum((below < end).sum(axis=-1), len(self.points) - 1)[..., None]
        own, reached = (np.take_along_axis(values, place, axis=-1)[..., 0] for values in (weight, below))
        within = np.divide(end - reached + own, own, out=np.full(own.shape, 0.5), where=own > 0)
        points = np.asarray(self.points, float)
        found = points[place[..., 0]] + (within - 0.5) * (points[1] - points[0])
        return np.clip(found, points[0], points[-1])
