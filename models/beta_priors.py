"""Beta priors of single numbers of annotators, classes or fields: one for all of them, or one for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Float
from consilience.errors import InvalidPrior, NotConjugate
from consilience.models.interface import checked_prior

__all__ = ["BetaPrior", "check_positive", "parameters_of", "unit_prior"]


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


def unit_prior(site: str, prior: Any, data: Any, number: int, units: str) -> dist.Distribution:
    """Return the prior of a site that has one number for each unit.

    Parameters
    ----------
    site : its name, for the errors.
    prior : a distribution, or a function of the data that returns one.
    number : of units.
    units : what they are called.

    Raises
    ------
    InvalidPrior : it is no distribution of single numbers, one for all units or one for each.
    """
    prior = checked_prior(site, prior, data, ())
    if prior.batch_shape not in ((), (number,)):
        raise InvalidPrior(
            f"the prior of site '{site}' has batch shape {prior.batch_shape}; give one distribution for all {units}, "
            f"or one for each of the {number}"
        )
    return prior


def parameters_of(site: str, prior: dist.Distribution, number: int) -> Float[np.ndarray, "unit 2"]:
    """Return the parameters of a Beta prior for each unit, on the host.

    Raises
    ------
    NotConjugate : it is no Beta distribution.
    """
    if not isinstance(prior, dist.Beta):
        raise NotConjugate(f"site '{site}': the updates need a Beta prior, not {type(prior).__name__}")
    parameters = (np.asarray(one, float) for one in (prior.concentration1, prior.concentration0))
    return np.stack([np.broadcast_to(one, number) for one in parameters], axis=-1)
