"""Shape of the tail of importance weights, the k-hat of Pareto smoothed importance sampling."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

_FEWEST = 4
# Of the empirical Bayes prior of Zhang and Stephens, and of the prior of so many weights that draws the shape to 1/2.
_PRIOR_SCALE, _PRIOR_WEIGHTS = 3, 10


def pareto_shape(log_weights: ArrayLike) -> float:
    """Return the shape of the generalised Pareto distribution of the largest weights.

    The tail are the weights above the one of rank ``ceil(min(S / 5, 3 sqrt(S)))`` from the top, of S weights.

    Parameters
    ----------
    log_weights : finite, shape ``(draw,)``.

    Returns
    -------
    the shape, equal in all bits to that of ``arviz.psislw`` before ArviZ 1; infinite where no more than four weights
    are above the cut.

    References
    ----------
    Zhang & Stephens (2009), A New and Efficient Estimation Method for the Generalized Pareto Distribution,
    Technometrics 51. Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto Smoothed Importance Sampling, JMLR 25,
    appendix C for the prior.

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.random.default_rng(0).pareto(2, 10_000)  # whose tail has the shape 1 / 2
    >>> round(pareto_shape(np.log(weights)), 1)
    0.5
    """
    weights = np.sort(np.asarray(log_weights, np.float64))
    weights = weights - weights[-1]
    size = math.ceil(min(len(weights) / 5, 3 * math.sqrt(len(weights))))
    cut = max(weights[-size - 1], math.log(np.finfo(float).tiny))
    tail = np.exp(weights[weights > cut]) - np.exp(cut)
    return _shape(tail) if len(tail) > _FEWEST else math.inf


def _shape(tail: np.ndarray) -> float:
    """Return the posterior mean of the shape, of excesses in ascending order (Zhang & Stephens 2009, section 4)."""
    size, num_points = len(tail), 30 + int(math.sqrt(len(tail)))
    points = 1 - np.sqrt(num_points / (np.arange(1, num_points + 1, dtype=float) - 0.5))
    points /= _PRIOR_SCALE * tail[int(size / 4 + 0.5) - 1]
    points += 1 / tail[-1]
    shapes = np.log1p(-points[:, None] * tail).mean(axis=1)
    profile = size * (np.log(-(points / shapes)) - shapes - 1)
    with np.errstate(over="ignore"):  # an overflow to infinity has the right inverse, zero
        weights = 1 / np.exp(profile - profile[:, None]).sum(axis=1)
    kept = weights >= 10 * np.finfo(float).eps
    weights, points = weights[kept], points[kept]
    weights /= weights.sum()
    shape = np.log1p(-np.sum(points * weights) * tail).mean()
    return float((size * shape + _PRIOR_WEIGHTS * 0.5) / (size + _PRIOR_WEIGHTS))
