"""Beta priors of single numbers of annotators, classes or fields: one for all of them, or one for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import special

from consilience.arrays import Array, Float
from consilience.errors import InvalidPrior

# Annotators that tell a and b well enough, and steps towards these.
_ENOUGH, _STEPS = 10_000, 500


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
    if not numbers.size or not (np.isfinite(numbers) & (numbers > 0)).all():
        raise InvalidPrior(f"{name} is {value!r}; give a positive finite number")


def beta_of(parameters: Float[Array, "*batch 2"]) -> dist.Beta:
    """Return Beta distributions, on the host: NumPyro would compile programs for each shape to make them."""
    own = np.asarray(parameters)
    made = jax.eval_shape(dist.Beta, own[..., 0], own[..., 1])
    made.concentration1, made.concentration0, made._dirichlet.concentration = own[..., 0], own[..., 1], own
    return made


@dataclass(frozen=True)
class BetaPrior:
    """Beta(a, b), the same for all.

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


def towards_most_probable(
    found: Any, counts: Float[Any, "annotator 2"], hyper: Float[Any, " 4"], digamma: Callable[[Any], Any]
) -> Any:
    """Take a fixed-point step (Minka 2000) towards the most probable a and b of a Beta distribution, of any array type.

    Parameters
    ----------
    found : a and b as they are.
    counts : of each annotator, what a and what b stands for.
    hyper : shape and rate of the Gamma prior of a, and those of the prior of b.
    digamma : of the array type.
    """
    gained = (digamma(found + counts) - digamma(found)).sum(axis=0)
    total = (digamma(found.sum() + counts.sum(axis=1)) - digamma(found.sum())).sum()
    return (found * gained + hyper[::2] - 1) / (total + hyper[1::2])


@dataclass(frozen=True)
class LearnedBeta:
    """Beta(a, b) of all annotators, with a and b learned from them.

    Parameters
    ----------
    hyper : shape and rate of the Gamma prior of a, and those of the prior of b.
    """

    hyper: tuple[float, float, float, float] = (3.0, 0.5, 2.0, 0.5)

    def __call__(self, data: Any) -> dist.Beta:
        """Draw a and b from their priors, and return the distribution of all annotators."""
        a, b = (numpyro.sample(f"prior_{name}", dist.Gamma(*own)) for name, own in zip("ab", self._pairs, strict=True))
        return dist.Beta(a, b)

    @property
    def _pairs(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return self.hyper[:2], self.hyper[2:]

    def numbers(self, data: Any) -> np.ndarray:
        """Return a and b at which learning starts: the means of their priors."""
        return np.array([shape / rate for shape, rate in self._pairs])

    def most_probable(
        self, right: Float[np.ndarray, " annotator"], wrong: Float[np.ndarray, " annotator"]
    ) -> Float[np.ndarray, " 2"]:
        """Return the most probable a and b, on the host; of very many annotators from some thousands."""
        counts = np.stack([right, wrong], axis=1)[:: len(right) // _ENOUGH + 1]
        found, hyper = self.numbers(None), np.asarray(self.hyper)
        for _ in range(_STEPS):
            last, found = found, towards_most_probable(found, counts, hyper, special.digamma)
            if np.allclose(found, last, rtol=1e-4, atol=0):
                break
        return found

    @staticmethod
    def of(site: str) -> Callable[[Any], np.ndarray]:
        """Return the function of what was resolved that gives ``hyper`` of a site; empty where its prior is fixed."""
        return lambda resolved: np.asarray(getattr(getattr(resolved.given, site, None), "hyper", ()), float)
