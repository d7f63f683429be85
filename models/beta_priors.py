"""Beta priors of single numbers of annotators, classes or fields: one for all of them, or one for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Float
from consilience.errors import InvalidPrior


def check_positive(name: str, value: Any) -> None:
    """Refuse a parameter of a prior that is no positive finite number, or array of these.

    Raises
    ------
    InvalidPrior : the message names the parameter.
    """
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        numbers = np.asarray(np.nan)
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        raise InvalidPrior(f"{name} is {value!r}; give a positive finite number")


@dataclass(frozen=True)
class BetaPrior:
    """Beta(a, b) of all classes, experts or whatever the prior is of, as a function of the data.

    Parameters
    ----------
    a, b : positive.

    Raises
    ------
    InvalidPrior : they are not.
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        check_positive("a of BetaPrior(a, b)", self.a)
        check_positive("b of BetaPrior(a, b)", self.b)

    def __call__(self, data: Any) -> dist.Beta:
        """Return the distribution."""
        return dist.Beta(jnp.asarray(self.a, jnp.result_type(float)), jnp.asarray(self.b, jnp.result_type(float)))

    def numbers(self, data: Any) -> Float[np.ndarray, "*batch 2"]:
        """Return both parameters without making the distribution."""
        return np.stack(np.broadcast_arrays(np.asarray(self.a, float), np.asarray(self.b, float)), axis=-1)
