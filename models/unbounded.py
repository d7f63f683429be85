"""Gamma and Beta variables on an unbounded scale, for shares so small that they underflow in single precision."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import betaln, gammaln
from numpyro.distributions import constraints


class LogGamma(dist.Distribution):
    """The logarithm of a Gamma(concentration, 1) variable, which for a small concentration underflows itself.

    A Dirichlet vector is a vector of independent Gamma variables divided by their sum: the softmax of these.
    """

    arg_constraints = {"concentration": constraints.positive}  # noqa: RUF012
    support = constraints.real
    reparametrized_params = ["concentration"]  # noqa: RUF012

    def __init__(self, concentration: Any, *, validate_args: Any = None) -> None:
        self.concentration = jnp.asarray(concentration)
        super().__init__(batch_shape=self.concentration.shape, validate_args=validate_args)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        """Return draws."""
        return jax.random.loggamma(key, self.concentration, sample_shape + self.batch_shape)

    def log_prob(self, value: Any) -> Any:
        """Return the log density."""
        return self.concentration * value - jnp.exp(value) - gammaln(self.concentration)


class LogitBeta(dist.Distribution):
    """The log odds of a Beta(concentration1, concentration0) variable.

    The parts of a Dirichlet vector, each as a share of itself and those that come after it, are independent Beta
    variables: a Dirichlet distribution of n parts is one of n - 1 log odds.
    """

    arg_constraints = {  # noqa: RUF012
        "concentration1": constraints.positive, "concentration0": constraints.positive,
    }  # fmt: skip
    support = constraints.real
    reparametrized_params = ["concentration1", "concentration0"]  # noqa: RUF012

    def __init__(self, concentration1: Any, concentration0: Any, *, validate_args: Any = None) -> None:
        self.concentration1, self.concentration0 = jnp.broadcast_arrays(concentration1, concentration0)
        super().__init__(batch_shape=self.concentration1.shape, validate_args=validate_args)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        """Return draws."""
        shape = sample_shape + self.batch_shape
        one, other = jax.random.split(key)
        return jax.random.loggamma(one, self.concentration1, shape) - jax.random.loggamma(
            other, self.concentration0, shape
        )

    def log_prob(self, value: Any) -> Any:
        """Return the log density."""
        log_share, log_rest = jax.nn.log_sigmoid(value), jax.nn.log_sigmoid(-value)
        of_shares = self.concentration1 * log_share + self.concentration0 * log_rest
        return of_shares - betaln(self.concentration1, self.concentration0)
