r"""Log-likelihood of partial rankings with ties under Plackett-Luce (Stutz et al. 2023, section 4.2).

An annotator draws classes one after another without replacement, each time with probability proportional to its weight.
A report shows blocks of classes and not the order within a block, so that the probability of a stage sums over all
orders. Equivalently every class k arrives after an exponential time of rate λ_k, and a block b comes next if all of its
classes arrive before the first of the rest, whose weights sum to Z:

.. math::

    p(b) = \int_0^\infty Z e^{-Z t} \prod_{k \in b} \bigl(1 - e^{-\lambda_k t}\bigr)\, dt .

For one class this is λ / (λ + Z). For more, y = log(Z t) turns the integrand into the exponential of a concave function

.. math::

    g(y) = y - e^y + \sum_{k \in b} \log\bigl(1 - e^{-\lambda_k e^y / Z}\bigr),

for which the trapezoid rule converges geometrically: its cost is linear in the size of the block, where a sum over
orders or subsets explodes. (Ma et al. 2021, Learning-to-rank with partitioned preference, use the same integral.)

All is done in logarithms and every Z is a sum over the classes that remain, never a total minus what was listed. In
float32 the log probability of a block is good to about 1e-6, in float64 to about 1e-12.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.rankings import Rankings
from consilience.models.plackett_luce.priors import num_unnamed

# Logarithms of the mass of no class at all, and of a class whose weight has underflowed to zero. They are finite, since
# the difference of two infinities would make gradients NaN, and far apart, since only the first makes a stage certain.
_NO_CLASS = -1e30
_NO_WEIGHT = -1e15


def log_likelihood(
    data: Rankings, log_weight: Float[Array, " entry"], log_other: Float[Array, " item"]
) -> Float[Array, " item"]:
    """Return the log probability of each item's reports.

    Differentiable, and free of the scale: a constant may be added to all numbers of an item.

    Parameters
    ----------
    data : partial rankings; may be traced.
    log_weight : logarithms of the weights of the named classes.
    log_other : logarithm of the summed weight of the classes of an item that nobody named; not read where every class
        is named.
    """
    data = jax.tree.map(jnp.asarray, data)
    finite = jnp.maximum(log_weight, _NO_WEIGHT)
    row_weight = finite[data.entry]
    rest = _log_rest(data, row_weight, _log_unlisted(data, finite, log_other))
    stage: Array = jnp.where(data.block_size == 1, -jax.nn.softplus(rest - row_weight), 0.0)
    if data.num_tied:
        stage = _add_tied(data, stage, row_weight, rest)
    return jax.ops.segment_sum(stage, data.report_item[data.report], data.num_items)


def _log_unlisted(
    data: Rankings, log_weight: Float[Array, " entry"], log_other: Float[Array, " item"]
) -> Float[Array, " report"]:
    """Log of the mass of all classes that a report does not list."""
    named = log_sum(log_weight[data.unlisted_entry], data.unlisted_report, data.num_reports)
    other = jnp.where(num_unnamed(data) > 0, jnp.maximum(log_other, _NO_WEIGHT), _NO_CLASS)
    return jnp.logaddexp(named, other[data.report_item])


def log_sum(log_weight: Float[Array, " n"], segment: Int[Array, " n"], num_segments: int) -> Float[Array, " segment"]:
    """Return the logarithm of the summed weights of each segment; a large negative number where it is empty.

    Parameters
    ----------
    log_weight : logarithms of weights.
    segment : sorted; the segment that each belongs to.
    """
    highest = jax.ops.segment_max(log_weight, segment, num_segments, indices_are_sorted=True)
    highest = jax.lax.stop_gradient(jnp.maximum(highest, _NO_CLASS))
    share = jnp.exp(log_weight - highest[segment])
    total = jax.ops.segment_sum(share, segment, num_segments, indices_are_sorted=True)
    return highest + jnp.log(jnp.where(total > 0, total, 1.0))


def _log_rest(
    data: Rankings, row_weight: Float[Array, " row"], log_unlisted: Float[Array, " report"]
) -> Float[Array, " row"]:
    """Log of the mass after each row: the later rows of the report and what it does not list."""
    last_row = data.num_rows - 1
    row = jnp.arange(data.num_rows)
    after = jnp.where(_ends(data.report), log_unlisted[data.report], jnp.roll(row_weight, -1))

    def double(mass: jax.Array, reach: jax.Array) -> tuple[jax.Array, None]:
        """Add what the row at the end of the reach has gathered, if it belongs to the same report."""
        later = jnp.minimum(row + reach, last_row)
        same = (row + reach <= last_row) & (data.report[later] == data.report)
        return jnp.logaddexp(mass, jnp.where(same, mass[later], _NO_CLASS)), None

    # A report has at most as many rows as there are classes.
    num_steps = max(data.num_classes - 1, 0).bit_length()
    return jax.lax.scan(double, after, 2 ** jnp.arange(num_steps))[0]


def _ends(*columns: Int[Array, " row"]) -> Bool[Array, " row"]:
    """Whether a row is the last of its run of equal values."""
    return jnp.stack([jnp.diff(column, append=-1) != 0 for column in columns]).any(axis=0)


def _add_tied(
    data: Rankings, stage: Float[Array, " row"], row_weight: Float[Array, " row"], rest: Float[Array, " row"]
) -> Float[Array, " row"]:
    """Write the log probability of each tied block to its last row."""
    tied, ends_block = data.block_size > 1, _ends(data.report, data.block)
    (row,) = jnp.nonzero(tied, size=data.num_tied)
    # There are at most half as many blocks as tied rows. Those that there are not lie beyond the last row.
    (last,) = jnp.nonzero(tied & ends_block, size=data.num_tied // 2, fill_value=data.num_rows)
    ended = jnp.cumsum(ends_block[row])
    block = ended - ends_block[row]
    log_rest = jnp.asarray(rest).at[last].get(mode="fill", fill_value=_NO_CLASS)
    log_probability = log_tied(row_weight[row], block, log_rest)
    return jnp.asarray(stage).at[last].set(log_probability, mode="drop")


def log_tied(
    log_weight: Float[Array, " row"], block: Int[Array, " row"], log_rest: Float[Array, " block"]
) -> Float[Array, " block"]:
    """Return the log probability that the classes of each block, in any order, all come before the rest.

    Parameters
    ----------
    log_weight : logarithms of weights.
    block : sorted; the block that a row belongs to.
    log_rest : logarithm of the summed weight of the classes below the block.
    """
    relative = log_weight - log_rest[block]
    certain = log_rest <= _NO_CLASS / 2
    left, right = jax.lax.stop_gradient(_range(jax.lax.stop_gradient(relative), block, log_rest.shape[0]))
    # Trapezoid rule: both ends are far enough out to count for nothing.
    num_nodes = _NUM_NODES[jnp.dtype(relative.dtype).itemsize]
    step = (right - left) / (num_nodes - 1)
    y = left[:, None] + step[:, None] * jnp.arange(num_nodes)
    exponent = y - jnp.exp(y) + _sum_rows(_log_arrived(relative[:, None] + y[block]), block, len(y))
    return jnp.where(certain, 0.0, jax.nn.logsumexp(exponent, axis=1) + jnp.log(step))


# Nodes of the trapezoid rule, by the bytes of a float: as many as its precision can make use of.
_NUM_NODES = {4: 40, 8: 96}


def _range(
    relative: Float[Array, " row"], block: Int[Array, " row"], num_blocks: int
) -> tuple[Float[Array, " block"], Float[Array, " block"]]:
    """Return where the integrand has fallen from its peak to a relative height below the precision of floats.

    The derivative of g is 1 - e^y + Σ u/(e^u - 1) with u = λ e^y / Z, so that g is concave and peaks where e^y lies
    between 1 and the size of the block plus 1: a few bisections find the peak. There let m = e^y. A distance δ away, g
    has fallen by at least m (e^δ - 1 - δ) to the right and m (δ - 1 + e^-δ) to the left, since the sum decreases
    in y; this bounds the range from outside. Newton's method on a concave function then never leaves the outside.
    """
    size = _sum_rows(jnp.ones_like(relative), block, num_blocks)

    def g(y: Array) -> Array:
        return y - jnp.exp(y) + _sum_rows(_log_arrived(relative + y[block]), block, num_blocks)

    def slope(y: Array) -> Array:
        u = jnp.exp(jnp.clip(relative + y[block], -_LATE, _LATE))
        return 1 - jnp.exp(y) + _sum_rows(u / jnp.expm1(u), block, num_blocks)

    def bisect(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (bracket[0] + bracket[1]) / 2
        rises = slope(middle) > 0
        return jnp.where(rises, middle, bracket[0]), jnp.where(rises, bracket[1], middle)

    low, high = jax.lax.fori_loop(0, 7, bisect, (jnp.zeros_like(size), jnp.log1p(size)))
    peak = (low + high) / 2
    fall = 2 - jnp.log(jnp.finfo(peak.dtype).eps)
    ratio = fall * jnp.exp(-peak)
    left = peak - (ratio + jnp.sqrt(ratio**2 + 8 * ratio)) / 2
    right = peak + jnp.log1p(ratio + jnp.log1p(ratio + jnp.sqrt(2 * ratio)))
    target = g(peak) - fall

    def approach(_: Array, y: Array) -> Array:
        return y + (target - g(y)) / slope(y)

    return jax.lax.fori_loop(0, 3, approach, left), jax.lax.fori_loop(0, 2, approach, right)


def _sum_rows(values: Float[Array, "row ..."], block: Int[Array, " row"], num_blocks: int) -> Array:
    return jax.ops.segment_sum(values, block, num_blocks, indices_are_sorted=True)


# Logarithm of a time u after which e^-u is zero in any precision. Before e^-_LATE, u / (e^u - 1) is one but for 0.05 %.
_LATE = 7.0


def _log_arrived(log_u: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """Log of 1 - e^-u, the probability to have arrived; exact and with finite gradients for any log u."""
    u = jnp.exp(jnp.minimum(log_u, _LATE))
    small = u < 0.03
    series = log_u - u / 2 + u**2 / 24 - u**4 / 2880
    return jnp.where(small, series, jnp.log(-jnp.expm1(-jnp.where(small, 1.0, u))))
