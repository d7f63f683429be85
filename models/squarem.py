r"""SQUAREM: two steps towards a fixed point, and from them a third that is much longer (Varadhan and Roland 2008).

With :math:`x_1 = F(x_0)` and :math:`x_2 = F(x_1)`, the change :math:`r = x_1 - x_0` and the bend
:math:`v = (x_2 - x_1) - r`, the scheme S3 goes on from

.. math::

    x' = x_0 + 2 \alpha r + \alpha^2 v, \qquad \alpha = \max(1, |r| / |v|).

With α = 1 that is :math:`x_2`. Here is only the arithmetic: whoever uses it looks whether :math:`x'` is any better.

References
----------
Varadhan & Roland (2008), Simple and globally convergent methods for accelerating the convergence of any EM algorithm,
Scandinavian Journal of Statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from consilience.arrays import Array


def step_length(change: Array, bend: Array, limit: Any = jnp.inf) -> Array:
    """Return α from the norms of r and v, one where there is no bend; of one problem or of many, each by itself.

    Parameters
    ----------
    change, bend : norms of r and v, of any one shape.
    limit : the largest α, one or more.
    """
    return jnp.minimum(jnp.maximum(change / jnp.where(bend > 0, bend, jnp.inf), 1.0), limit)


def extrapolated(start: Array, change: Array, bend: Array, length: Array, *, farthest: float = jnp.inf) -> Array:
    """Return x' from x₀, r, v and α; no number moves by more than `farthest`."""
    return start + jnp.clip(2 * length * change + length**2 * bend, -farthest, farthest)


def proposal(first: Any, second: Any, third: Any, limit: Array) -> tuple[Any, Array]:
    """Return x' of a whole PyTree of coordinates, and its α.

    Parameters
    ----------
    first, second, third : x₀, x₁ and x₂. A number that is not finite in all of them has no part in α, and stays as it
        is in x₂: the logarithm of a share that a step has made zero.
    limit : the largest α.
    """
    finite = _of_each(lambda *points: jnp.isfinite(sum(points)), first, second, third)
    change = _of_each(lambda known, old, new: jnp.where(known, new - old, 0.0), finite, first, second)
    bend = _of_each(lambda known, old, new, r: jnp.where(known, new - old - r, 0.0), finite, second, third, change)
    length = step_length(_norm(change), _norm(bend), limit)

    def far(known: Array, start: Array, r: Array, v: Array, last: Array) -> Array:
        return jnp.where(known, extrapolated(jnp.where(known, start, 0.0), r, v, length), last)

    return _of_each(far, finite, first, change, bend, third), length


def _of_each(function: Callable[..., Array], *trees: Any) -> Any:
    return jax.tree.map(function, *trees)


def _norm(tree: Any) -> Array:
    return jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)))
