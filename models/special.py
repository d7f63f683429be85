"""Logarithms that stay finite, and normalisers of Beta and Dirichlet distributions to the digits of the float type.

Logarithms of gammas of large counts nearly cancel: in float32 their difference is off by 25 at ten million. Stirling's
formula has the parts that cancel taken out, and what it leaves out is small. `jax.scipy.special.betaln` is good to 1e-6
only, in float64 too.
"""

from __future__ import annotations

import jax.numpy as jnp
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
    main = -a * jnp.log1p(b / a) - b * jnp.log1p(a / b) + (jnp.log1p(b / a) - jnp.log(b) + jnp.log(2 * jnp.pi)) / 2
    return main + _beyond_stirling(a) + _beyond_stirling(b) - _beyond_stirling(a + b)


def log_normaliser(concentration: Float[Array, "*cells class"]) -> Float[Array, "*cells"]:
    """Return the sum of ln Γ(c) less ln Γ of the sum of Dirichlet concentrations in the last axis."""
    total = concentration.sum(axis=-1, keepdims=True)
    main = (concentration * jnp.log(concentration / total)).sum(axis=-1)
    half = (jnp.log(total)[..., 0] - jnp.log(concentration).sum(axis=-1)) / 2
    constant = (concentration.shape[-1] - 1) * jnp.log(2 * jnp.pi) / 2
    beyond = _beyond_stirling(concentration).sum(axis=-1) - _beyond_stirling(total)[..., 0]
    return main + half + constant + beyond


def _beyond_stirling(x: Float[Array, "*cells"]) -> Float[Array, "*cells"]:
    """Return ln Γ(x) less Stirling's formula: the series in 1/x from 10 on, where it is good to 1e-16."""
    small, large = jnp.minimum(x, 10.0), jnp.maximum(x, 10.0)
    exact = gammaln(small) - (small - 0.5) * jnp.log(small) + small - jnp.log(2 * jnp.pi) / 2
    square = 1 / large**2
    series = jnp.polyval(jnp.asarray(STIRLING_SERIES, x.dtype), square) / large
    return jnp.where(x < 10, exact, series)
