"""Gamma draws in log space, and the largest of many, fast on a CPU as well as on an accelerator.

Conjugate samplers spend their time in gamma draws. `jax.random.gamma` runs a rejection loop per element, which a CPU
executes one after the other; here one vectorised round of Marsaglia and Tsang's method serves all elements at once,
and the few that it rejects (under 5 %) are gathered into a small buffer and redrawn. Results are logarithms: a
Gamma(0.01) draw is smaller than the smallest float32 about every other time, and two draws that underflow to zero
would tie.

References
----------
Marsaglia and Tsang (2000), A simple method for generating gamma variables, ACM TOMS 26(3).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from consilience.arrays import Array, Bool, Float, Int, Key

# At least 95 % of the proposals are accepted for shapes of one and more: a sixteenth of the elements holds the
# rejected ones.
_BUFFER_SHARE = 16

# Gammas that `log_largest_shares` holds at a time: 2^18 in float64 are 2 MiB, which a CPU finds in its cache.
_CHUNK_NUMBERS = 1 << 18

# The largest of a column are looked for among the groups of this many rows that have the largest maxima.
_GROUP_ROWS = 32


def any_key() -> Key:
    """Return ``jax.random.key(0)`` of Threefry without compiling, where a key is asked for and does not matter."""
    return jax.random.wrap_key_data(jax.device_put(np.zeros(2, np.uint32)), impl="threefry2x32")


def log_gamma(key: Key, concentration: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """Draw logarithms of independent standard gamma variables.

    Parameters
    ----------
    key : PRNG key.
    concentration : positive, any shape; the shape parameter of each draw.

    Returns
    -------
    Array of the same shape and dtype: log g with g ~ Gamma(concentration, 1).
    """
    key_first, key_rest, key_boost = jax.random.split(key, 3)
    # XLA makes random bits for an odd number of elements several times more slowly on a CPU.
    flat = jnp.pad(jnp.ravel(concentration), (0, -concentration.size % 8), constant_values=1.0)
    # Shapes below one: Gamma(a) = Gamma(a + 1) * U^(1/a), which in logs cannot underflow.
    raised = jnp.where(flat < 1, flat + 1, flat)
    draws, accepted = _propose(key_first, raised)
    draws = _redraw_rejected(key_rest, raised, draws, accepted)

    def boosted(state: tuple) -> tuple:
        draws, _ = state
        boost = jax.random.exponential(key_boost, flat.shape, flat.dtype)
        return jnp.where(flat < 1, draws - boost / flat, draws), jnp.zeros((), bool)

    # A loop of at most one round, because `jax.vmap` makes both branches of a condition run.
    draws, _ = jax.lax.while_loop(lambda state: state[1], boosted, (draws, jnp.any(flat < 1)))
    return jnp.reshape(draws[: concentration.size], concentration.shape)


def _propose(key: Key, shape: Float[Array, " n"]) -> tuple[Float[Array, " n"], Bool[Array, " n"]]:
    """One proposal per element for shapes >= 1: the log of the draw, and whether it is accepted."""
    key_normal, key_exponential = jax.random.split(key)
    third = shape - 1 / 3
    normal = jax.random.normal(key_normal, shape.shape, shape.dtype)
    root = 1 + normal / jnp.sqrt(9 * third)
    log_cube = 3 * jnp.log(jnp.maximum(root, jnp.finfo(shape.dtype).tiny))
    bound = 0.5 * normal**2 + third * (1 - root**3 + log_cube)
    accepted = (root > 0) & (-jax.random.exponential(key_exponential, shape.shape, shape.dtype) < bound)
    return jnp.log(third) + log_cube, accepted


def _redraw_rejected(
    key: Key, shape: Float[Array, " n"], draws: Float[Array, " n"], accepted: Bool[Array, " n"]
) -> Float[Array, " n"]:
    """Replace the rejected proposals, a buffer of them at a time; one buffer is all but always enough."""
    size = max(1, shape.size // _BUFFER_SHARE)

    def any_left(state: tuple) -> Array:
        return ~jnp.all(state[1])

    def fill_buffer(state: tuple) -> tuple:
        draws, accepted, number = state
        # The places of the first `size` rejections, and then places past the end; faster than `jnp.nonzero`.
        where = jnp.searchsorted(jnp.cumsum(~accepted), jnp.arange(1, size + 1))
        rejected = jnp.asarray(shape).at[where].get(mode="fill", fill_value=1)
        fresh = _until_accepted(jax.random.fold_in(key, number), rejected)
        return draws.at[where].set(fresh, mode="drop"), accepted.at[where].set(True, mode="drop"), number + 1

    return jax.lax.while_loop(any_left, fill_buffer, (draws, accepted, 0))[0]


def _until_accepted(key: Key, shape: Float[Array, " n"]) -> Float[Array, " n"]:
    """Propose for all elements, again and again, until each has been accepted once."""

    def again(state: tuple) -> tuple:
        draws, accepted, number = state
        fresh, taken = _propose(jax.random.fold_in(key, number), shape)
        return jnp.where(accepted, draws, fresh), accepted | taken, number + 1

    start = (jnp.zeros_like(shape), jnp.zeros(shape.shape, bool), 0)
    return jax.lax.while_loop(lambda state: ~jnp.all(state[1]), again, start)[0]


class GammaQuantiles(NamedTuple):
    """Log quantiles of a Gamma(concentration, 1) variable on a grid, for interpolation inside compiled code.

    The grid runs over t = log(p / (1 - p)), in which the log quantile is smooth: linear with slope 1 / concentration
    on the left, doubly logarithmic on the right. Cubic Hermite interpolation is then good to about 1e-7, the
    resolution of float32.
    """

    start: Float[Array, ""]
    step: Float[Array, ""]
    log_quantile: Float[Array, " node"]
    slope: Float[Array, " node"]

    @classmethod
    def of(cls, concentration: float, num_nodes: int = 4096) -> GammaQuantiles:
        """Tabulate on the host, in float64."""
        t = np.linspace(-60.0, 60.0, num_nodes)
        log_lower, log_upper = -np.logaddexp(0, -t), -np.logaddexp(0, t)
        lower_half = special.gammaincinv(concentration, np.exp(log_lower))
        quantile = np.where(t < 0, lower_half, special.gammainccinv(concentration, np.exp(log_upper)))
        # Far to the left F(x) = x^a / Gamma(a + 1), and x itself would underflow.
        far_left = (log_lower + special.gammaln(concentration + 1)) / concentration
        small = quantile < 1e-9
        log_quantile = np.where(small, far_left, np.log(np.where(small, 1.0, quantile)))
        log_density = concentration * log_quantile - np.exp(log_quantile) - special.gammaln(concentration)
        slope = np.exp(log_lower + log_upper - log_density)
        return cls(*map(jnp.asarray, (t[0], t[1] - t[0], log_quantile, slope)))

    def at(self, t: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
        """Interpolate at logits of probabilities, any shape; to the left of the grid the function is linear."""
        position = (t - self.start) / self.step
        left = jnp.clip(jnp.floor(position).astype(int), 0, self.slope.size - 2)
        s = jnp.clip(position - left, None, 1.0)
        inside = (
            (1 + 2 * s) * (1 - s) ** 2 * self.log_quantile[left]
            + s * (1 - s) ** 2 * self.step * self.slope[left]
            + s**2 * (3 - 2 * s) * self.log_quantile[left + 1]
            + s**2 * (s - 1) * self.step * self.slope[left + 1]
        )
        return jnp.where(s < 0, self.log_quantile[0] + (t - self.start) * self.slope[0], inside)


def log_gamma_maxima(
    key: Key, quantiles: GammaQuantiles, count: Int[Array, " item"], num_draws: int, depth: int
) -> Float[Array, "depth item draw"]:
    """Draw the largest of many independent gamma variables of one concentration, without drawing them all.

    The largest of n uniforms is V^(1/n), and given it the next is the largest of n - 1 below it; quantiles carry
    them over.

    Parameters
    ----------
    count : shape ``(item,)``; how many variables there are; zero gives -inf.
    num_draws, depth : static sizes.

    Returns
    -------
    shape ``(depth, item, num_draws)``: logarithms, in decreasing order; -inf beyond ``count``.
    """
    dtype = quantiles.log_quantile.dtype
    uniform_logs = -jax.random.exponential(key, (depth, count.shape[0], num_draws), dtype)
    left = (count - jnp.arange(depth)[:, None])[:, :, None]
    log_p = jnp.cumsum(uniform_logs / jnp.maximum(left, 1), axis=0)
    t = log_p - jnp.log(-jnp.expm1(jnp.minimum(log_p, -jnp.finfo(dtype).tiny)))
    return jnp.where(left > 0, quantiles.at(t), -jnp.inf)


def log_largest_shares(
    key: Key, concentration: float, counts: Int[np.ndarray, " size"], num_draws: int, depth: int
) -> Float[np.ndarray, "size depth draw"]:
    """Draw the largest shares of symmetric Dirichlet variables of several sizes, on the host in float64.

    The shares of gamma variables in their total are Dirichlet. All gammas are drawn, a chunk at a time, because the
    total is not independent of the largest; but only once: the first n of a draw are the variables of size n. Draws of
    one size are hence independent, those of different sizes are not.

    Parameters
    ----------
    concentration : positive, of each variable.
    counts : shape ``(size,)``, increasing; how many variables there are; zero gives -inf.
    num_draws, depth : sizes; the shares of a smaller depth are the first ones of a larger depth.

    Returns
    -------
    shape ``(size, depth, num_draws)``: logarithms, in decreasing order; -inf beyond ``count``.
    """
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    rows = max(1, _CHUNK_NUMBERS // num_draws)
    largest, log_total = np.full((depth, num_draws), -np.inf), np.full(num_draws, -np.inf)
    shares = np.empty((len(counts), depth, num_draws))
    start = 0
    for size, stop in enumerate(counts.tolist()):
        for first in range(start, stop, rows):
            log_gammas = _log_gammas(random, concentration, (min(rows, stop - first), num_draws))
            top = np.max(log_gammas, axis=0)
            log_total = np.logaddexp(log_total, top + np.log(np.exp(log_gammas - top).sum(axis=0)))
            largest = _largest(np.concatenate([largest, log_gammas]), depth)
        shares[size] = largest - np.where(log_total > -np.inf, log_total, 0.0)
        start = stop
    return shares


def _log_gammas(random: np.random.Generator, concentration: float, shape: tuple[int, int]) -> np.ndarray:
    """Draw logarithms of standard gamma variables of one concentration with NumPy."""
    if concentration >= 1:
        return np.log(random.standard_gamma(concentration, shape))
    # As in `log_gamma`: the boost cannot underflow in logs.
    return np.log(random.standard_gamma(concentration + 1, shape)) - random.standard_exponential(shape) / concentration


def _largest(values: np.ndarray, depth: int) -> np.ndarray:
    """Return the largest values of each column, in decreasing order.

    The k largest of a column lie in the k groups of rows with the largest maxima, so that few rows are sorted.
    """
    num_groups = -(-len(values) // _GROUP_ROWS)
    if num_groups > depth:
        filled = np.pad(values, ((0, num_groups * _GROUP_ROWS - len(values)), (0, 0)), constant_values=-np.inf)
        groups = filled.reshape(num_groups, _GROUP_ROWS, -1)
        best = np.argpartition(groups.max(axis=1), num_groups - depth, axis=0)[num_groups - depth :]
        values = np.take_along_axis(groups, best[:, None], axis=0).reshape(depth * _GROUP_ROWS, -1)
    return -np.sort(-values, axis=0)[:depth]
