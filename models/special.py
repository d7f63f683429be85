"""Logarithms that stay finite, and normalisers of Beta and Dirichlet distributions to the digits of the float type.

Logarithms of gammas of large counts nearly cancel: in float32 their difference is off by 25 at ten million. Stirling's
formula has the parts that cancel taken out, and what it leaves out is small. `jax.scipy.special.betaln` is good to 1e-6
only, in float64 too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from consilience.arrays import Array, Float

STIRLING_SERIES = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
"""B_2k / (2k (2k - 1)), the highest order first: of ln Γ(x) less Stirling's formula, in odd powers of 1 / x."""


def finite_log(probability: Float[Array, "*cells"]) -> Float[Array, "*cells"]:
    """Take logarithms that stay finite, and so do their gradients, where a probability or a weight underflows."""
    return jnp.log(jnp.maximum(probability, jnp.finfo(probability.dtype).tiny))


def log_beta(parameters: Float[Array, "*cells 2"]) -> Float[Array, "*cells"]:
    """Return ln B(a, b) of Beta parameters in the last axis."""
    a, b = parameters[..., 0], parameters[..., 1]
    main = -a * jnp.log1p(b / a) - b * jnp.log1p(a / b) + (jnp.log1p(b / a) - jnp.log(b) + np.log(2 * np.pi)) / 2
    beyond = _beyond_stirling(jnp.stack([a, b, a + b]))
    return main + beyond[0] + beyond[1] - beyond[2]


def log_normaliser(concentration: Any) -> Any:
    """Return the sum of ln Γ(c) less ln Γ of the sum of Dirichlet concentrations in the last axis.

    Parameters
    ----------
    concentration : shape ``(…, class)``, or a PyTree of such arrays.
    """
    whole = jax.tree.map(lambda own: jnp.concatenate([own, own.sum(axis=-1, keepdims=True)], axis=-1), concentration)

    def of_array(own: Array, small: Array) -> Array:
        each, total = own[..., :-1], own[..., -1:]
        main = (each * jnp.log(each / total)).sum(axis=-1)
        constant = (each.shape[-1] - 1) * np.log(2 * np.pi) / 2
        return main + constant + small[..., :-1].sum(axis=-1) - small[..., -1]

    return jax.tree.map(of_array, whole, at_once(lambda own: _beyond_stirling(own) - jnp.log(own) / 2, whole))


def at_once(function: Callable[[Array], Array], tree: Any) -> Any:
    """Apply a function of single numbers to all arrays of a tree, in one loop of two rounds.

    XLA would otherwise compile it for each array, and put it where its values are read: that takes a tenth of a second
    each time for a digamma or ln Γ, and a sweep would compute them anew for every annotation. Barriers it ignores on a
    CPU (jax 0.10).
    """
    leaves, structure = jax.tree.flatten(tree)
    flat = jnp.concatenate([*map(jnp.ravel, leaves), jnp.ones(sum(leaf.size for leaf in leaves) % 2, leaves[0].dtype)])
    found = jax.lax.map(function, flat.reshape(2, -1)).ravel()
    ends = np.cumsum([leaf.size for leaf in leaves]).tolist()
    parts = [found[end - leaf.size : end].reshape(leaf.shape) for leaf, end in zip(leaves, ends, strict=True)]
    return jax.tree.unflatten(structure, parts)


def _beyond_stirling(x: Float[Array, "*cells"]) -> Float[Array, "*cells"]:
    """Return ln Γ(x) less Stirling's formula: the series in 1/x from 10 on, where it is good to 1e-16."""
    small, large = jnp.minimum(x, 10.0), jnp.maximum(x, 10.0)
    exact = gammaln(small) - (small - 0.5) * jnp.log(small) + small - np.log(2 * np.pi) / 2
    square = 1 / large**2
    series = jnp.zeros_like(x)
    for factor in STIRLING_SERIES:
        series = series * square + factor
    return jnp.where(x < 10, exact, series / large)
