"""The likelihoods of the records of one entity, its own parameters summed out.

Everything is relative to the records apart: divided by how common their values are. So a record alone has likelihood
one, and a missing value is a factor of one. The first two agree on pairs and differ in what a third record adds:

- hit-miss (Steorts, Hall and Fienberg 2014): the entity has a true value; a record copies it, or with the probability b
  of distortion takes a value as common as it is. The true values and the distortions are summed out.
- copies: the same, but in large parts distorted values are copied in turn; see `Copies`.
- Dirichlet-multinomial (Broderick and Steorts 2014): the entity has its own distribution of values, drawn from a
  Dirichlet distribution with parameters a·θ; it is integrated out. The a of a field is the one under which a pair
  differs as often as under hit-miss: a / (1 + a) = 1 - (1 - b)².
- error classes: errors come together, none, one or many in a record; see `error_classes`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.likelihood import Likelihood, differing
from consilience.models.block_linkage.parameters import Parameters


class HitMiss(Likelihood):
    """A record copies the true value of its entity, or takes any value that is common (SMERED)."""

    additive = True
    strength: float = math.inf

    def urn(self, parameters: Parameters) -> dict[str, Any] | None:
        """Return b, the strength of copying and powers; see `Likelihood.urn`. None of one's own likelihood."""
        if type(self).log_marginals is not HitMiss.log_marginals:
            return None
        power = self.power(len(parameters.distortion))
        return {"distortion": parameters.distortion, "strength": self.strength, "power": power}

    def log_marginals(
        self,
        values: Int[Array, "member field component"],
        share: Float[Array, "member field component"],
        distortion: Float[Array, " field"],
        xp: Any,
    ) -> Float[Array, "subset component"]:
        """Sum over the true value: that of one of the records, or another one that none of them has."""
        power = self.power(values.shape[1]).astype(share.dtype)
        return (self.by_field(values, share, distortion, xp) * power[:, None]).sum(1)

    def with_copies(self, agree: Any, differ: Any, share: Any) -> tuple[Any, Any]:
        """Return terms of pairs, given those without copies; ``share`` is how common a value is in a record alone."""
        if math.isinf(self.strength):
            return agree, differ
        none, one = np.log(self.strength / (1 + self.strength)), -np.log((1 + self.strength) * share)
        return np.logaddexp(none + agree, one), none + differ

    def factors(self, given: Any, record: int, values: Any, share: Any, xp: Any) -> Any:
        """Return how probable a record's value is given the true one and the records before it, relative to its share.

        Parameters
        ----------
        given : G over the share of the value, ``(true value, field, component)``.
        """
        if math.isinf(self.strength):
            return given[None]
        members = (np.arange(2**record)[:, None] >> np.arange(record) & 1).astype(share.dtype)
        observed = (values[:record] >= 0).astype(share.dtype)
        equal = xp.where(values[:record] == values[record], observed, 0)
        same, number = (xp.einsum("sr,rfc->sfc", members, array) for array in (equal, observed))
        a = self.strength
        return (a * given[None] + (same / share[record])[:, None]) / (a + number)[:, None]

    def by_field(
        self,
        values: Int[Array, "member field component"],
        share: Float[Array, "member field component"],
        distortion: Float[Array, " field"],
        xp: Any,
    ) -> Float[Array, "subset field component"]:
        """Return the log likelihood of every subset in each field."""
        same, observed = _same_value(values)
        times = xp.maximum(same.sum(0), 1).astype(share.dtype)
        # A value that several records have is a candidate for each of them, with its part of the weight.
        weight = xp.where(observed, share / times, 0)
        other = xp.maximum(1 - weight.sum(0), 0)
        joint = xp.concatenate([weight, other[None]])[None]
        miss = distortion[:, None]
        log_scale = xp.zeros_like(share[:1])
        same_or_other = xp.concatenate([same, xp.zeros_like(same[:, :1])], 1)
        for record in range(len(values)):
            given = xp.where(same_or_other[record], miss + (1 - miss) / share[record], miss)
            factor = xp.where(observed[record], self.factors(given, record, values, share, xp), 1)
            larger = joint * factor
            if share.dtype.itemsize < 8:
                # In single precision the product over a handful of records with the same rare value overflows.
                largest = larger.max(1)
                larger = larger / largest[:, None]
                log_scale = xp.concatenate([log_scale, log_scale + xp.log(largest)])
            joint = xp.concatenate([joint, larger])
        return xp.log(joint.sum(1)) + log_scale


class Copies(HitMiss):
    """Hit-miss whose values are copied from record to record, errors and all: a Pólya urn of strength 1.

    The distortion is that of a value that is no copy of another record's; see `densities`.
    """

    strength = 1.0

    def unweighted_terms(
        self, parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"]
    ) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
        """Return the terms of pairs of which one is a copy of the other with the probability 1 / (1 + a)."""
        agree, differ = super().unweighted_terms(parameters, first_value)
        return self.with_copies(agree, differ, parameters.value_share)

    def both_true(
        self, agreeing: Float[np.ndarray, " field"], by_chance: Float[np.ndarray, " field"]
    ) -> Float[np.ndarray, " field"]:
        """Return (1 - b)², of pairs of which none is a copy."""
        return super().both_true(np.maximum(agreeing * (1 + self.strength) - 1, 0) / self.strength, by_chance)


class DirichletMultinomial(Likelihood):
    """The values of an entity have a distribution of their own (Broderick and Steorts)."""

    additive = True

    def urn(self, parameters: Parameters) -> dict[str, Any]:
        """Return an urn of values as common as they are; see `Likelihood.urn`."""
        differ = differing(parameters.distortion)
        return {"distortion": np.ones(len(differ)), "strength": differ / (1 - differ)}

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
        log_ratio = xp.zeros_like(share[:1])
        equal = xp.zeros((num_records, 1, *share.shape[1:]), share.dtype)
        number = xp.zeros_like(log_ratio)
        for record in range(num_records):
            own = share[record]
            factor = (concentration * own + equal[record]) / ((concentration + number) * own)
            log_ratio = xp.concatenate([log_ratio, log_ratio + xp.where(observed[record], xp.log(factor), 0)])
            equal = xp.concatenate([equal, equal + same[:, record, None].astype(share.dtype)], 1)
            number = xp.concatenate([number, number + observed[record].astype(share.dtype)])
        return log_ratio.sum(1)


def _same_value(values: Int[Array, "member field component"]) -> tuple[Array, Array]:
    """Return which records share a value, ``(member, member, field, component)``, and which have one."""
    observed = values >= 0
    return (values[:, None] == values[None]) & observed[:, None], observed


AUTO = "auto"
"""The likelihood that EM chooses, see `choice`; hit-miss by other methods."""

LIKELIHOODS: dict[str, Likelihood] = {
    "hit-miss": HitMiss(), "copies": Copies(), "dirichlet-multinomial": DirichletMultinomial(),
    "error-classes": ErrorClasses(),
}  # fmt: skip


def takes_texts(likelihood: str | Likelihood | None) -> bool:
    """Return whether a likelihood, None where none was asked for, compares long texts by similarity."""
    return likelihood in (None, AUTO, "hit-miss", "copies")
