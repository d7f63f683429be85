"""What block-linkage believes before any record: how often fields are distorted and how large entities are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Array, Float
from consilience.errors import InvalidPrior
from consilience.models.sites import Resolved

_EXAMPLE = "RareDistortion(a=[1, 1, 5], b=[99, 9, 5]) for three fields"


def _fields(data: Any) -> str:
    """Return how many fields there are, and their names where they are known."""
    names = "" if data.fields is None else f": {', '.join(map(str, data.fields))}"
    return f"{data.num_fields} fields that are compared{names}"


@dataclass(frozen=True)
class RareDistortion:
    """Beta(a, b) of how often a field is distorted.

    Parameters
    ----------
    a, b : positive; one number for all fields, or a list with one for each field. The mean is a / (a + b), and a + b is
        how many records it counts as; by default one value in ten is distorted.
    """

    a: Any = 1.0
    b: Any = 9.0

    def numbers(self, data: Any) -> Float[np.ndarray, "field 2"]:
        """Return its parameters for each field.

        Raises
        ------
        InvalidPrior : they are not positive, or there are more or fewer than fields.
        """
        own = []
        for name, given in (("a", self.a), ("b", self.b)):
            try:
                number = np.asarray(given, float)
            except (TypeError, ValueError):
                number = np.full(1, np.nan)
            if not (np.isfinite(number) & (number > 0)).all():
                raise InvalidPrior(f"RareDistortion has {name}={given!r}; give numbers above 0, as in {_EXAMPLE}")
            if number.shape not in ((), (data.num_fields,)):
                raise InvalidPrior(
                    f"RareDistortion has {number.size} numbers {name}; give one for all fields, or one for each of the "
                    f"{_fields(data)}, as in {_EXAMPLE}"
                )
            own.append(np.broadcast_to(number, data.num_fields))
        return np.stack(own, axis=1)

    def __call__(self, data: Any) -> dist.Beta:
        """Return the distribution: one for all fields, or one for each."""
        number = self.numbers(data)
        of_each = np.ndim(self.a) or np.ndim(self.b)
        return dist.Beta(*_in_jax(number.T if of_each else number[0]))


@dataclass(frozen=True)
class FewRecords:
    """A Dirichlet distribution that expects few records of an entity and no size to be impossible."""

    def numbers(self, data: Any, largest: int) -> Float[np.ndarray, " size"]:
        """Return its parameters for entities of up to so many records."""
        return np.array([1.0, 0.5, 0.3, 0.2, *[0.1] * (largest - 4)])[:largest]

    def __call__(self, data: Any, largest: int) -> dist.Dirichlet:
        """Return it for entities of up to so many records."""
        return dist.Dirichlet(_in_jax(self.numbers(data, largest)))


@dataclass(frozen=True)
class SomeEntities:
    """An exponential distribution as wide as there are records: next to no opinion on the number of entities."""

    def numbers(self, data: Any) -> Float[np.ndarray, " 2"]:
        """Return its parameters."""
        return np.array([1, 1 / data.num_records])

    def __call__(self, data: Any) -> dist.Gamma:
        """Return the distribution."""
        return dist.Gamma(*_in_jax(self.numbers(data)))


def _in_jax(numbers: Float[np.ndarray, " *shape"]) -> Float[Array, " *shape"]:
    return jnp.asarray(numbers, jnp.result_type(float))


@dataclass(frozen=True, kw_only=True)
class Priors:
    """Priors of the hyperparameters.

    Parameters
    ----------
    distortion : of how often a field of a record is distorted; Beta(1, 9) by default. Batch shape ``()``, or
        ``(field,)`` for a prior per field. On fields with few values give an informative one: there EM can take chance
        agreement for distortion.
    size_share : of the shares of entities with 1, 2, … records, event shape ``(size,)``; a function of the data and of
        the number of sizes, or a distribution. `FewRecords` by default.
    intensity : of the expected number of entities, a single number; `SomeEntities` by default.
    value_share : concentration of a symmetric Dirichlet distribution of the values of each field, for methods that
        sample. None by default: EM and NUTS fix the values at their shares among the records, and Gibbs sampling draws
        them under the concentration of each field that makes its values most probable.

    Raises
    ------
    InvalidPrior : the concentration is no positive number.
    """

    distortion: dist.Distribution | Callable[[Any], dist.Distribution] = RareDistortion()
    size_share: dist.Distribution | Callable[..., dist.Distribution] = FewRecords()
    intensity: dist.Distribution | Callable[[Any], dist.Distribution] = SomeEntities()
    value_share: Any = None

    def __post_init__(self) -> None:
        if self.value_share is not None:
            check_concentration(self.value_share)


def check_concentration(value_share: Any) -> None:
    """Refuse a concentration of the values that is no positive finite number.

    Raises
    ------
    InvalidPrior : it is none.
    """
    given = np.asarray(value_share)
    if given.dtype.kind not in "iuf" or given.shape != () or not 0 < given < np.inf:
        raise InvalidPrior(f"value_share is {value_share!r}; give a positive finite number")


class Hyperprior(NamedTuple):
    """Parameters of conjugate priors, float64.

    Parameters
    ----------
    distortion : shape ``(field, 2)``; of a Beta distribution.
    size_share : shape ``(size,)``; of a Dirichlet distribution.
    intensity : shape ``(2,)``; shape and rate of a Gamma distribution.
    """

    distortion: Float[np.ndarray, "field 2"]
    size_share: Float[np.ndarray, " size"]
    intensity: Float[np.ndarray, " 2"]

    @classmethod
    def of(cls, resolved: Resolved) -> Hyperprior:
        """Return the parameters of the priors of these sites.

        Raises
        ------
        NotConjugate : they are not a Beta, a Dirichlet and a Gamma distribution.
        """
        return cls(*(resolved.concentration(site) for site in cls._fields))
