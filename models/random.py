"""Random variables by number, and the largest of many gamma variables; fast on a CPU as well as on an accelerator.

Conjugate samplers spend their time in gamma draws. `jax.random.gamma` runs a rejection loop per element, which a CPU
executes one after the other; here one vectorised round of Marsaglia and Tsang's method serves all elements at once,
and the few that it rejects (under 5 %) are redrawn a few at a time. Results are logarithms: a
Gamma(0.01) draw is smaller than the smallest float32 about every other time, and two draws that underflow to zero
would tie.

A draw is a function of the key, of its own number and of its own parameters, and of nothing else: how many others are
drawn beside it, and in what order, changes no bit of it. Arrays may hence be padded, and divided among devices.

References
----------
Marsaglia and Tsang (2000), A simple method for generating gamma variables, ACM TOMS 26(3).
Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3, SC '11: Threefry, a hash of key and counters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32
from scipy import special

from consilience.arrays import Array, Bool, Float, Int, Key

# At least 95 % of the proposals are accepted for shapes of one and more. A round of redraws serves one element of each
# column of so many.
_ROWS = 32

# The number of a boost among the attempts of its element, which has no attempt of that number.
_BOOST = np.uint32(2**32 - 1)

# A binomial variable is a sum of others of at most so many trials: (1/2)^64 is far from the smallest float32.
_MOST_TRIALS = 64

# Gammas that `log_largest_shares` holds at a time: 2^18 in float64 are 2 MiB, which a CPU finds in its cache.
_CHUNK_NUMBERS = 1 << 18

# The largest of a column are looked for among the groups of this many rows that have the largest maxima.
_GROUP_ROWS = 32


class HashKey(NamedTuple):
    """Two keys of two words each, for the hash: made once of a random key, and then as good as it."""

    words: Array

    @classmethod
    def of(cls, key: Key | HashKey) -> HashKey:
        """Return the words of a key of any kind."""
        return key if isinstance(key, HashKey) else cls(jax.random.bits(key, (2, 2), jnp.uint32))


def uniform_pairs(key: Key | HashKey, number: Array, attempt: Array, dtype: Any) -> Array:
    """Return two independent uniform variables of each number and attempt, strictly between zero and one.

    Parameters
    ----------
    key : PRNG key, or the words of one.
    number, attempt : counters, uint32 of one shape, which are hashed with the key.
    dtype : float32, for which one hash makes both, with 23 bits each; or float64, two hashes and 52 bits.

    Returns
    -------
    shape ``(2, *axes)``.
    """
    words, counters = HashKey.of(key).words, jnp.stack([number, attempt])
    bits = threefry_2x32(words[0], counters)
    if jnp.dtype(dtype).itemsize == 4:
        return ((bits >> 9).astype(dtype) + 0.5) * 2.0**-23
    bits = bits.astype(jnp.uint64) << 20 | threefry_2x32(words[1], counters).astype(jnp.uint64) >> 12
    return (bits.astype(dtype) + 0.5) * 2.0**-52


def log_gamma(
    key: Key | HashKey, concentration: Float[Array, "*axes"], number: Array | None = None
) -> Float[Array, "*axes"]:
    """Draw logarithms of independent standard gamma variables.

    Parameters
    ----------
    key : PRNG key, or the words of one.
    concentration : positive, any shape; the shape parameter of each draw.
    number : of each draw, uint32 of the same shape and all different; 0, 1, … in the order of the elements by default.

    Returns
    -------
    Array of the same shape and dtype: log g with g ~ Gamma(concentration, 1).
    """
    size, key = concentration.size, HashKey.of(key)
    if number is None:
        number = jnp.arange(size, dtype=jnp.uint32)
    columns = -(-size // _ROWS)

    def in_columns(values: Array, fill: Any) -> Array:
        flat = jnp.pad(jnp.ravel(values), (0, _ROWS * columns - size), constant_values=fill)
        return flat.reshape(_ROWS, columns)

    shape, number = in_columns(concentration, 1.0), in_columns(number, 0)
    # Shapes below one: Gamma(a) = Gamma(a + 1) * U^(1/a), which in logs cannot underflow.
    draws = _accepted(key, jnp.where(shape < 1, shape + 1, shape), number)

    def boosted(state: tuple) -> tuple:
        draws, _ = state
        uniform, _ = uniform_pairs(key, number, jnp.full_like(number, _BOOST), shape.dtype)
        return jnp.where(shape < 1, draws + jnp.log(uniform) / shape, draws), jnp.zeros((), bool)

    # A loop of at most one round, because `jax.vmap` makes both branches of a condition run.
    draws, _ = jax.lax.while_loop(lambda state: state[1], boosted, (draws, jnp.any(shape < 1)))
    return jnp.reshape(draws.ravel()[:size], concentration.shape)


def _accepted(key: HashKey, shape: Float[Array, "row column"], number: Array) -> Float[Array, "row column"]:
    """Propose for all; then again for the first rejected element of every column, until there is none."""
    place = jnp.arange(len(shape))[:, None]

    def first_rejected(accepted: Array) -> Array:
        return jnp.min(jnp.where(accepted, len(shape), place), axis=0)

    def again(state: tuple) -> tuple:
        draws, accepted, row, attempt = state
        at = jnp.minimum(row, len(shape) - 1)[None]
        of_row = [jnp.take_along_axis(values, at, axis=0)[0] for values in (shape, number)]
        fresh, taken = _propose(key, of_row[0], of_row[1], attempt)
        hit = (place == row) & taken
        accepted = accepted | hit
        # The next element of the column begins with its own first attempt after the common one.
        attempt = jnp.where(taken, jnp.uint32(1), attempt + 1)
        return jnp.where(hit, fresh, draws), accepted, first_rejected(accepted), attempt

    draws, accepted = _propose(key, shape, number, jnp.zeros_like(number))
    row = first_rejected(accepted)
    state = (draws, accepted, row, jnp.ones(row.shape, jnp.uint32))
    return jax.lax.while_loop(lambda state: jnp.any(state[2] < len(shape)), again, state)[0]


def _propose(
    key: HashKey, shape: Float[Array, "*axes"], number: Array, attempt: Array
) -> tuple[Float[Array, "*axes"], Bool[Array, "*axes"]]:
    """One proposal per element for shapes >= 1: the log of the draw, and whether it is accepted."""
    for_normal, for_level = uniform_pairs(key, number, attempt, shape.dtype)
    third = shape - 1 / 3
    normal = 2**0.5 * jax.lax.erf_inv(2 * for_normal - 1)
    root = 1 + normal / jnp.sqrt(9 * third)
    log_cube = 3 * jnp.log(jnp.maximum(root, jnp.finfo(shape.dtype).tiny))
    bound = 0.5 * normal**2 + third * (1 - root**3 + log_cube)
    accepted = (root > 0) & (jnp.log(for_level) < bound)
    return jnp.log(third) + log_cube, accepted


def binomial(
    key: Key | HashKey, trials: Float[Array, " variable"], probability: Float[Array, " variable"],
    number: Array | None = None,
) -> Float[Array, " variable"]:  # fmt: skip
    """Draw independent binomial variables by inversion; the time grows with the largest number of trials.

    Parameters
    ----------
    key : PRNG key, or the words of one.
    trials : whole numbers from zero.
    probability : of success, between zero and one.
    number : as of `log_gamma`.

    Returns
    -------
    Numbers of successes, of the dtype of ``probability``.
    """
    key = HashKey.of(key)
    if number is None:
        number = jnp.arange(trials.size, dtype=jnp.uint32)
    rare = jnp.minimum(probability, 1 - probability)
    odds = rare / (1 - rare)

    def add_part(state: tuple) -> tuple:
        left, drawn, part = state
        here = jnp.minimum(left, _MOST_TRIALS)
        uniform, _ = uniform_pairs(key, number, jnp.full_like(number, part), rare.dtype)

        def exceed(count: Array, passed: tuple) -> tuple:
            """Go on where the variable is larger than the count: the uniform lies above the distribution function."""
            mass, up_to, successes = passed
            successes = jnp.where((uniform > up_to) & (count < here), count + 1, successes)
            mass = mass * odds * jnp.maximum(here - count, 0) / (count + 1)
            return mass, up_to + mass, successes

        none = jnp.exp(here * jnp.log1p(-rare))
        start = (none, none, jnp.zeros_like(rare))
        successes = jax.lax.fori_loop(0, jnp.max(here, initial=0).astype(int), exceed, start)[2]
        return left - here, drawn + successes, part + 1

    start = (jnp.asarray(trials, rare.dtype), jnp.zeros_like(rare), jnp.uint32(0))
    drawn = jax.lax.while_loop(lambda state: jnp.any(state[0] > 0), add_part, start)[1]
    return jnp.where(probability > 0.5, trials - drawn, drawn)


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
