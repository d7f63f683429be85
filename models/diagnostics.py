"""How far draws can be trusted: rank-normalised split R-hat, effective sample sizes, Monte Carlo standard error.

The definitions are those of Vehtari et al. (2021), and the numbers are ArviZ's; a test ties them together. ArviZ takes
several milliseconds of Python for every scalar, which is minutes for the class probabilities of a hundred thousand
items; here a batch of scalars is one array operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

_MIN_DRAWS = 4
# Scalars x chains x draws worked on at a time: few enough for the caches, which halves the time.
_BATCH_VALUES = 1 << 18
# Autocovariances are summed lag by lag as far as this, in groups of eight; beyond, by Fourier transforms.
_GROUP, _FEW_LAGS = 8, (8, 32)
# Of a chain, whose means tell a first effective sample size.
_NUM_BATCHES = 20


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
    return Convergence(*_in_batches(_of_scalars, draws, len(Convergence._fields)))


def first_look(draws: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return quickly what tells which scalars are worst: no ranks, and no sums over lags.

    Parameters
    ----------
    draws : shape ``(chain, draw, ...)``.

    Returns
    -------
    the larger of the split R-hat of the draws and of their distances from the mean, and the effective sample size by
    the variance of the means of twenty batches of each chain, both ``(...)``; NaN as in `convergence`.
    """
    r_hat, size = _in_batches(_at_a_glance, draws, 2)
    return r_hat, size


def _in_batches(function: Callable[[NDArray], Sequence[NDArray]], draws: NDArray, number: int) -> NDArray:
    """Return so many numbers of each scalar, ``(number, ...)``; NaN of too few draws, and of some that are not finite.

    Parameters
    ----------
    function : of finite float64 draws ``(scalar, chain, draw)``.
    """
    num_chains, num_draws, *shape = draws.shape
    scalars = draws.reshape(num_chains, num_draws, math.prod(shape))
    found = np.full((number, scalars.shape[2]), np.nan)
    size = max(1, _BATCH_VALUES // max(1, num_chains * num_draws))
    for first in range(0, scalars.shape[2] if num_draws >= _MIN_DRAWS else 0, size):
        values = np.moveaxis(scalars[:, :, first : first + size], 2, 0).astype(np.float64)
        usable = np.isfinite(values).all(axis=(1, 2))
        found[:, first : first + size][:, usable] = function(values[usable])
    return found.reshape(number, *shape)


def _at_a_glance(values: NDArray) -> tuple[NDArray, NDArray]:
    """Return the two numbers of `first_look`."""
    num_scalars, num_chains, num_draws = values.shape
    centred = values - values.mean(axis=(1, 2), keepdims=True)
    length = max(num_draws // _NUM_BATCHES, 1)
    used = centred[:, :, num_draws % length :].reshape(num_scalars, num_chains, num_draws // length, length)
    noise = length * np.square(used.mean(axis=3)).mean(axis=(1, 2))
    total = num_chains * num_draws * np.square(centred).mean(axis=(1, 2))
    size = np.divide(total, noise, out=np.full(num_scalars, np.inf), where=noise > 0)
    halves = _split(centred)
    return np.fmax(_plain_r_hat(halves), _plain_r_hat(np.abs(halves))), size


def _of_scalars(values: NDArray) -> Convergence:
    """Return the diagnostics of ``(scalar, chain, draw)``, all finite."""
    halves = _split(values)
    flat = halves.reshape(len(halves), -1)
    order = flat.argsort(axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    scores, ess_mean = _normal_scores(order, ordered, halves.shape), _ess(halves)
    # In this order distances from the median fall and then rise, which a stable sort merges in one pass.
    middle = flat.shape[1] // 2
    distance = np.abs(ordered - ordered[:, middle - 1 : middle + 1].mean(axis=1, keepdims=True))
    again = distance.argsort(axis=1, kind="stable")
    order, distance = (np.take_along_axis(one, again, axis=1) for one in (order, distance))
    r_hat = np.maximum(_plain_r_hat(scores), _plain_r_hat(_normal_scores(order, distance, halves.shape)))
    # Of an odd number the halves leave out a draw.
    whole = ordered if values.shape[2] % 2 == 0 else np.sort(values.reshape(len(values), -1), axis=1)
    tails = [_quantile(whole, probability)[:, :, None] for probability in (0.05, 0.95)]
    return Convergence(
        r_hat=r_hat if values.shape[1] > 1 else np.full(len(values), np.nan),
        ess_bulk=_ess(scores),
        ess_tail=np.minimum(*(_ess((halves <= tail).astype(np.float64)) for tail in tails)),
        ess_mean=ess_mean,
        mcse_mean=values.std(axis=(1, 2), ddof=1) / np.sqrt(ess_mean),
    )


def _split(values: NDArray) -> NDArray:
    half = values.shape[2] // 2
    return np.concatenate([values[:, :, :half], values[:, :, -half:]], axis=1)


def _quantile(ordered: NDArray, probability: float) -> NDArray:
    """Return a quantile of ordered rows, ``(row, 1)``, interpolated as by `numpy.quantile`."""
    place = probability * (ordered.shape[1] - 1)
    before = int(place)
    low, high = ordered[:, before, None], ordered[:, before + 1, None]
    part = place - before
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


def _normal_scores(order: NDArray, ordered: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Return the normal quantiles of ranks over all chains (Blom's offsets; equation 14), in the place of draws.

    Parameters
    ----------
    order, ordered : shape ``(scalar, rank)``; which draw is at each rank, and the draws in that order.
    shape : of the draws.
    """
    size = ordered.shape[1]
    quantiles = special.ndtri((np.arange(2 * size - 1) / 2 + 1 - 0.375) / (size + 0.25))
    # Twice the 0-based average rank: equal draws share the mean of their first and last place.
    rises = np.diff(ordered, axis=1) > 0
    ranked = np.broadcast_to(quantiles[::2], ordered.shape).copy()
    tied = ~rises.all(axis=1)
    ranked[tied] = quantiles[_first_plus_last(rises[tied])]
    scores = np.empty_like(ordered)
    np.put_along_axis(scores, order, ranked, axis=1)
    return scores.reshape(shape)


def _first_plus_last(rises: NDArray) -> NDArray:
    """Return, for ordered rows of which it is known where they rise, the first plus the last place of equal values."""
    size = rises.shape[1] + 1
    starts = np.flatnonzero(np.hstack([np.ones((len(rises), 1), bool), rises]))
    numbers = np.diff(starts, append=len(rises) * size)
    return np.repeat(2 * (starts % size) + numbers - 1, numbers).reshape(len(rises), size)


def _plain_r_hat(values: NDArray) -> NDArray:
    num_draws = values.shape[2]
    between = num_draws * values.mean(axis=2).var(axis=1, ddof=1)
    within = values.var(axis=2, ddof=1).mean(axis=1)
    ratio = np.divide(between, within, out=np.full_like(within, np.nan), where=within > 0)
    return np.sqrt((ratio + num_draws - 1) / num_draws)


def _ess(values: NDArray) -> NDArray:
    """Effective sample size by Geyer's initial monotone positive sequence (equations 10–13); shape ``(scalar,)``."""
    _, num_chains, num_draws = values.shape
    total = num_chains * num_draws
    constant = np.ptp(values, axis=(1, 2)) < np.finfo(np.float64).resolution
    mean = values.mean(axis=2, keepdims=True)
    centred = values - mean
    between = mean[:, :, 0].var(axis=1, ddof=1) if num_chains > 1 else np.zeros(len(values))
    tau, rest = np.ones(len(values)), np.flatnonzero(~constant)
    # Most sequences end after a few lags; those that do not are looked at again, with more of them.
    for num_lags in (*(few for few in _FEW_LAGS if 2 * few <= num_draws), 2 * max((num_draws - 1) // 2, 1)):
        covariance = _autocovariance(centred[rest], num_lags)
        within = covariance[:, :1] * num_draws / (num_draws - 1)
        correlation = 1 - (within - covariance) / (covariance[:, 0] + between[rest])[:, None]
        correlation[:, 0] = 1.0
        tau[rest], ended = _geyer(correlation)
        rest = rest[~ended]
    return np.where(constant, float(total), total / np.maximum(tau, 1 / np.log10(total)))


def _geyer(correlation: NDArray) -> tuple[NDArray, NDArray]:
    """Return the integrated autocorrelation time, and whether the sequence ends before the last pair of lags."""
    pairs = correlation[:, ::2] + correlation[:, 1::2]
    kept = np.cumprod(pairs[:, :-1] > 0, axis=1).sum(axis=1)
    sums = np.cumsum(np.minimum.accumulate(pairs, axis=1), axis=1)
    rows = np.arange(len(pairs))
    before = np.where(kept > 0, sums[rows, np.maximum(kept - 1, 0)], 0.0)
    # The first lag beyond the sequence is even and may still be positive; counting it reduces the bias.
    beyond = correlation[rows, 2 * kept]
    beyond = np.where(pairs[rows, kept] >= 0, beyond, np.maximum(beyond, 0.0))
    return -1 + 2 * before + beyond, kept < pairs.shape[1] - 1


def _autocovariance(centred: NDArray, num_lags: int) -> NDArray:
    """Return the autocovariances of centred draws, means over chains, ``(scalar, lag)``."""
    num_scalars, num_chains, num_draws = centred.shape
    if num_lags > _FEW_LAGS[-1] or num_lags % _GROUP:
        size = fft.next_fast_len(2 * num_draws, real=True)
        spectrum = fft.rfft(centred, n=size, axis=2)
        found = fft.irfft((np.abs(spectrum) ** 2).mean(axis=1), n=size, axis=1)[:, :num_lags]
        return found / num_draws
    # Draws in rows of eight, all chains in one sequence, with zeros between them: row r of eight times row r + g holds
    # the products of lags 8g - 7 to 8g + 7, which lie on its diagonals.
    groups = num_lags // _GROUP
    rows = np.zeros((num_scalars, num_chains, (-(-num_draws // _GROUP) + groups) * _GROUP))
    rows[:, :, :num_draws] = centred
    rows = rows.reshape(num_scalars, num_chains * rows.shape[2] // _GROUP, _GROUP)
    end = rows.shape[1] - groups
    products = [rows[:, :end].swapaxes(1, 2) @ rows[:, group : end + group] for group in range(groups + 1)]
    wide = np.concatenate(products, axis=2)
    sums = [np.trace(wide, lag, axis1=1, axis2=2) for lag in range(num_lags)]
    return np.stack(sums, axis=1) / (num_chains * num_draws)
