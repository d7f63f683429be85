"""How far draws can be trusted: rank-normalised split R-hat, effective sample sizes, Monte Carlo standard error.

The definitions are those of Vehtari et al. (2021), and the numbers are ArviZ's; a test ties them together. ArviZ takes
several milliseconds of Python for every scalar, which is minutes for the class probabilities of a hundred thousand
items; here a batch of scalars is one array operation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

_MIN_DRAWS = 4
# Scalars x chains x draws worked on at a time: bounds the memory of the Fourier transforms to some hundred megabytes.
_BATCH_VALUES = 4_000_000


class Convergence(NamedTuple):
    """What is known of the draws of each scalar, all of shape ``(...)``.

    Parameters
    ----------
    r_hat : rank-normalised split R-hat, the larger of the bulk and the folded (tail) one.
    ess_bulk : effective sample size of the rank-normalised draws: is the bulk explored?
    ess_tail : the smaller of the effective sample sizes for the 5% and 95% quantiles.
    ess_mean : effective sample size for the mean.
    mcse_mean : Monte Carlo standard error of the mean, in the units of the draws.
    """

    r_hat: NDArray[np.float64]
    ess_bulk: NDArray[np.float64]
    ess_tail: NDArray[np.float64]
    ess_mean: NDArray[np.float64]
    mcse_mean: NDArray[np.float64]


def convergence(draws: NDArray) -> Convergence:
    """Return the diagnostics of each scalar, batch by batch.

    Parameters
    ----------
    draws : shape ``(chain, draw, ...)``.

    Returns
    -------
    NaN where a number does not exist: fewer than four draws, draws that are not finite, R-hat of one chain.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), Bayesian Analysis 16(2), equations 1–14 and section 4.
    """
    num_chains, num_draws, *shape = draws.shape
    scalars = draws.reshape(num_chains, num_draws, math.prod(shape))
    found = np.full((len(Convergence._fields), scalars.shape[2]), np.nan)
    size = max(1, _BATCH_VALUES // max(1, num_chains * num_draws))
    for first in range(0, scalars.shape[2] if num_draws >= _MIN_DRAWS else 0, size):
        values = np.moveaxis(scalars[:, :, first : first + size], 2, 0).astype(np.float64)
        usable = np.isfinite(values).all(axis=(1, 2))
        found[:, first : first + size][:, usable] = _of_scalars(values[usable])
    return Convergence(*found.reshape(len(found), *shape))


def _of_scalars(values: NDArray) -> Convergence:
    """Return the diagnostics of ``(scalar, chain, draw)``, all finite."""
    halves = _split(values)
    scores, ess_mean = _normal_scores(halves), _ess(halves)
    folded = np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True))
    r_hat = np.maximum(_plain_r_hat(scores), _plain_r_hat(_normal_scores(folded)))
    return Convergence(
        r_hat=r_hat if values.shape[1] > 1 else np.full(len(values), np.nan),
        ess_bulk=_ess(scores),
        ess_tail=_ess_tail(values),
        ess_mean=ess_mean,
        mcse_mean=values.std(axis=(1, 2), ddof=1) / np.sqrt(ess_mean),
    )


def _split(values: NDArray) -> NDArray:
    half = values.shape[2] // 2
    return np.concatenate([values[:, :, :half], values[:, :, -half:]], axis=1)


def _normal_scores(values: NDArray) -> NDArray:
    """Replace draws by the normal quantiles of their ranks over all chains (Blom's offsets; equation 14)."""
    flat = values.reshape(len(values), -1)
    size = flat.shape[1]
    order = flat.argsort(axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    # Twice the 0-based average rank: equal draws share the mean of their first and last place.
    rises = np.diff(ordered, axis=1) > 0
    doubled = np.broadcast_to(2 * np.arange(size), flat.shape).copy()
    tied = ~rises.all(axis=1)
    doubled[tied] = _first_plus_last(rises[tied])
    quantiles = special.ndtri((np.arange(2 * size - 1) / 2 + 1 - 0.375) / (size + 0.25))
    scores = np.empty_like(flat)
    np.put_along_axis(scores, order, quantiles[doubled], axis=1)
    return scores.reshape(values.shape)


def _first_plus_last(rises: NDArray) -> NDArray:
    """Return, for ordered rows of which it is known where they rise, the first plus the last place of equal values."""
    places = np.arange(rises.shape[1] + 1)
    edge = np.ones((len(rises), 1), bool)
    first = np.maximum.accumulate(np.where(np.hstack([edge, rises]), places, 0), axis=1)
    last = np.minimum.accumulate(np.where(np.hstack([rises, edge]), places, len(places))[:, ::-1], axis=1)[:, ::-1]
    return first + last


def _plain_r_hat(values: NDArray) -> NDArray:
    num_draws = values.shape[2]
    between = num_draws * values.mean(axis=2).var(axis=1, ddof=1)
    within = values.var(axis=2, ddof=1).mean(axis=1)
    ratio = np.divide(between, within, out=np.full_like(within, np.nan), where=within > 0)
    return np.sqrt((ratio + num_draws - 1) / num_draws)


def _ess_tail(values: NDArray) -> NDArray:
    low, high = np.quantile(values, (0.05, 0.95), axis=(1, 2), keepdims=True)
    return np.minimum(*(_ess(_split((values <= quantile).astype(np.float64))) for quantile in (low, high)))


def _ess(values: NDArray) -> NDArray:
    """Effective sample size by Geyer's initial monotone positive sequence (equations 10–13); shape ``(scalar,)``."""
    _, num_chains, num_draws = values.shape
    total = num_chains * num_draws
    constant = np.ptp(values, axis=(1, 2)) < np.finfo(np.float64).resolution
    covariance = _autocovariance(values).mean(axis=1)
    within = covariance[:, 0] * num_draws / (num_draws - 1)
    spread = covariance[:, 0] + (values.mean(axis=2).var(axis=1, ddof=1) if num_chains > 1 else 0.0)
    correlation = 1 - (within[:, None] - covariance) / np.where(constant, 1.0, spread)[:, None]
    correlation[:, 0] = 1.0

    num_pairs = max((num_draws - 1) // 2 - 1, 0)
    pairs = correlation[:, : 2 * (num_pairs + 1)].reshape(len(values), -1, 2).sum(axis=2)
    kept = np.cumprod(pairs[:, :num_pairs] > 0, axis=1).sum(axis=1)
    sums = np.cumsum(np.minimum.accumulate(pairs, axis=1), axis=1)
    rows = np.arange(len(values))
    before = np.where(kept > 0, sums[rows, np.maximum(kept - 1, 0)], 0.0)
    # The first lag beyond the sequence is even and may still be positive; counting it reduces the bias.
    beyond = correlation[rows, 2 * kept]
    beyond = np.where(pairs[rows, kept] >= 0, beyond, np.maximum(beyond, 0.0))
    tau = np.maximum(-1 + 2 * before + beyond, 1 / np.log10(total))
    return np.where(constant, float(total), total / tau)


def _autocovariance(values: NDArray) -> NDArray:
    num_draws = values.shape[2]
    size = fft.next_fast_len(2 * num_draws, real=True)
    spectrum = fft.rfft(values - values.mean(axis=2, keepdims=True), n=size, axis=2)
    return fft.irfft(np.abs(spectrum) ** 2, n=size, axis=2)[:, :, :num_draws] / num_draws
