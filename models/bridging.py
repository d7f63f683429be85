r"""The logarithm of what a density that is not normalised integrates to, from draws of it.

References
----------
Meng & Wong (1996), Simulating ratios of normalizing constants via a simple identity, Statistica Sinica 6. Overstall &
Forster (2010), Default Bayesian model determination methods for generalised linear mixed models, CSDA 54, for taking
some draws for the normal distribution and the others for the bridge.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from consilience.arrays import Float
from consilience.inference.tempering import batch_error

_ROUNDS, _CLOSE = 200, 1e-9


def log_integral(
    random: np.random.Generator, draws: Float[np.ndarray, "draw column"],
    log_density: Callable[[Float[np.ndarray, "draw column"]], Float[np.ndarray, " draw"]],
) -> tuple[float, float]:  # fmt: skip
    """Return the logarithm of the integral of a density, and its standard error.

    A bridge leads to it from the normal distribution that has mean and covariance of the first half of the draws; the
    other half are taken for the bridge: by the draws to which it was fitted a normal distribution looks too near.
    Nothing is known of draws that vary in fewer directions than they have columns.

    Parameters
    ----------
    draws : by the density, chain after chain, so that neighbours depend on each other at most; many more than columns.
    log_density : function of such draws, up to a constant which the integral then lacks too.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> value, error = log_integral(random, random.normal(size=(4000, 2)), lambda draws: -(draws**2).sum(axis=1) / 2)
    >>> bool(abs(value - np.log(2 * np.pi)) < 4 * error < 0.01)
    True
    """
    first, draws = np.array_split(draws, 2)
    mean, covariance = first.mean(axis=0), np.atleast_2d(np.cov(first.T))
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return np.nan, np.inf
    other = mean + random.standard_normal(draws.shape) @ root.T
    constant = -np.log(np.diag(root)).sum() - len(mean) / 2 * np.log(2 * np.pi)

    def ratio(values: np.ndarray) -> np.ndarray:
        normal = constant - (np.linalg.solve(root, (values - mean).T) ** 2).sum(axis=0) / 2
        return np.asarray(log_density(values)) - normal

    of_draws, of_others = ratio(draws), ratio(other)
    value = float(np.median(of_draws))
    for _ in range(_ROUNDS):
        up, down = of_others - np.logaddexp(of_others, value), -np.logaddexp(of_draws, value)
        before, value = value, _log_mean(up) - _log_mean(down)
        if abs(value - before) < _CLOSE:
            break
    shares = [np.exp(part - _log_mean(part)) for part in (up, down)]
    return value, float(np.hypot(shares[0].std() / np.sqrt(len(other)), batch_error(shares[1])))


def _log_mean(logs: Float[np.ndarray, " draw"]) -> float:
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))
