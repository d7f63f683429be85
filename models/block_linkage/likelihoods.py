"""How likely the values of records are when they describe one entity, its own parameters summed out.

Everything is relative to the records apart: divided by how common their values are. So a record alone has likelihood
one, and a missing value is a factor of one. Two likelihoods agree on pairs and differ in what a third record adds:

- hit-miss (Steorts, Hall and Fienberg 2014): the entity has a true value; a record copies it, or with the probability b
  of distortion takes a value as common as it is. The true values and the distortions are summed out.
- Dirichlet-multinomial (Broderick and Steorts 2014): the entity has its own distribution of values, drawn from a
  Dirichlet distribution with parameters a·θ; it is integrated out. The a of a field is the one under which a pair
  differs as often as under hit-miss: a / (1 + a) = 1 - (1 - b)².
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.models.block_linkage.parameters import Parameters

__all__ = ["LIKELIHOODS", "DirichletMultinomial", "HitMiss", "Likelihood", "differing"]


def differing(distortion: Any) -> Any:
    """Return how probably at least one of two records of an entity is distorted: 1 - (1 - b)², any shape."""
    return distortion * (2 - distortion)


class Likelihood(ABC):
    """Likelihood of the records of one entity, relative to the same records apart."""

    def pair_terms(
        self, parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"]
    ) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
        """Return what each field adds to the log odds of a pair.

        Parameters
        ----------
        first_value : where the values of each field begin, as in `Records`.

        Returns
        -------
        agree : float64, shape ``(value,)``; where both records have this value.
        differ : float64, shape ``(field,)``; where their values differ. A field that one of them lacks adds zero.
        """
        differ = differing(np.asarray(parameters.distortion, float))
        of_value = np.repeat(differ, np.diff(first_value))
        return np.log((1 - of_value) / parameters.value_share + of_value), np.log(differ)

    @abstractmethod
    def log_marginals(
        self,
        values: Int[Array, "member field component"],
        share: Float[Array, "member field component"],
        distortion: Float[Array, " field"],
        xp: Any,
    ) -> Float[Array, "subset component"]:
        """Return the log likelihood of every subset of the records of each component, summed over fields.

        Parameters
        ----------
        values : codes of the values, -1 where missing.
        share : how common each value is; 1 where missing.
        distortion : of each field, in the precision of ``share``.
        xp : the array module, ``numpy`` or ``jax.numpy``.

        Returns
        -------
        log likelihood ; shape ``(2 ** records, component)``. Bit i of the number of a subset says whether record i is
        in it. Zero for the empty set and for one record.
        """


class HitMiss(Likelihood):
    """A record copies the true value of its entity, or takes any value that is common (SMERED)."""

    def log_marginals(
        self,
        values: Int[Array, "member field component"],
        share: Float[Array, "member field component"],
        distortion: Float[Array, " field"],
        xp: Any,
    ) -> Float[Array, "subset component"]:
        """Sum over the true value: that of one of the records, or another one that none of them has."""
        same, observed = _same_value(values)
        times = xp.maximum(same.sum(0), 1).astype(share.dtype)
        # A value that several records have is a candidate for each of them, with its part of the weight.
        weight = xp.where(observed, share / times, 0)
        other = xp.maximum(1 - weight.sum(0), 0)
        joint = xp.concatenate([weight, other[None]])[None]
        miss = distortion[:, None]
        same_or_other = xp.concatenate([same, xp.zeros_like(same[:, :1])], 1)
        for record in range(len(values)):
            factor = xp.where(same_or_other[record], miss + (1 - miss) / share[record], miss)
            factor = xp.where(observed[record], factor, 1)
            joint = xp.concatenate([joint, joint * factor])
        return xp.log(joint.sum(1)).sum(1)


class DirichletMultinomial(Likelihood):
    """The values of an entity have a distribution of their own (Broderick and Steorts)."""

    def log_marginals(
        self,
        values: Int[Array, "member field component"],
        share: Float[Array, "member field component"],
        distortion: Float[Array, " field"],
        xp: Any,
    ) -> Float[Array, "subset component"]:
        """Add one record after the other: how probable its value is given those before it."""
        num_records = len(values)
        same, observed = _same_value(values)
        concentration = (differing(distortion) / (1 - differing(distortion)))[:, None]
        ratio = xp.ones_like(share[:1])
        equal = xp.zeros((num_records, 1, *share.shape[1:]), share.dtype)
        number = xp.zeros_like(ratio)
        for record in range(num_records):
            own = share[record]
            factor = (concentration * own + equal[record]) / ((concentration + number) * own)
            ratio = xp.concatenate([ratio, ratio * xp.where(observed[record], factor, 1)])
            equal = xp.concatenate([equal, equal + same[:, record, None].astype(share.dtype)], 1)
            number = xp.concatenate([number, number + observed[record].astype(share.dtype)])
        return xp.log(ratio).sum(1)


def _same_value(values: Int[Array, "member field component"]) -> tuple[Array, Array]:
    """Return which records share a value, ``(member, member, field, component)``, and which have one."""
    observed = values >= 0
    return (values[:, None] == values[None]) & observed[:, None], observed


LIKELIHOODS: dict[str, Likelihood] = {"hit-miss": HitMiss(), "dirichlet-multinomial": DirichletMultinomial()}
