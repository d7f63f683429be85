"""What a likelihood of the records of one entity offers; `likelihoods` has those that can be named.

Everything is relative to the records apart: divided by how common their values are. So a record alone has likelihood
one, and a missing value is a factor of one.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import jax
import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.priors import Priors


def differing(distortion: Any) -> Any:
    """Return how probably at least one of two records of an entity is distorted: 1 - (1 - b)², any shape."""
    return distortion * (2 - distortion)


def draw_values(
    generator: np.random.Generator, number: int, parameters: Parameters,
    first_value: Int[np.ndarray, " fields_and_one"], but: Int[np.ndarray, "field draw"] | None = None,
) -> Int[np.ndarray, "field draw"]:  # fmt: skip
    """Draw values of every field as they are common: codes into the values of all fields, -1 where a field has none.

    Parameters
    ----------
    but : values that are not to be drawn; only where a field has no other one they are.
    """
    drawn = np.full((len(first_value) - 1, number), -1)
    for field, (begin, end) in enumerate(zip(first_value, first_value[1:], strict=False)):
        if end == begin:
            continue
        last = np.cumsum(parameters.value_share[begin:end])
        at = generator.random(number) * last[-1]
        if but is not None:
            own = parameters.value_share[but[field]]
            at *= 1 - own / last[-1]
            at += np.where(at < last[but[field] - begin] - own, 0, own)
        drawn[field] = begin + np.minimum(np.searchsorted(last, at, side="right"), end - begin - 1)
    return drawn


class Likelihood(ABC):
    """Likelihood of the records of one entity, relative to the same records apart.

    A likelihood of your own has `log_marginals`; what else it says of pairs follows. It goes through JAX: its
    attributes are hashable, but for those named in ``arrays``.

    Parameters
    ----------
    additive : of a class; whether the log likelihood of a pair is the sum of `pair_terms`. If not, these are bounds.
    arrays : of a class; names of the attributes that are arrays.
    """

    additive: ClassVar[bool] = False
    arrays: ClassVar[tuple[str, ...]] = ()
    powers: tuple[float, ...] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        jax.tree_util.register_pytree_node(cls, _flatten, lambda fixed, arrays: _unflatten(cls, fixed, arrays))

    def weighted(self, powers: Float[np.ndarray, " field"]) -> Likelihood:
        """Return the composite likelihood that has each field to a power."""
        found = copy.copy(self)
        vars(found)["powers"] = tuple(np.asarray(powers, float).tolist())
        return found

    def power(self, num_fields: int) -> Float[np.ndarray, " field"]:
        """Return the power of each field; 1 unless the likelihood is `weighted`."""
        return np.asarray(self.powers) if self.powers else np.ones(num_fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def pair_terms(
        self, parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"]
    ) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
        """Return what each field adds to the log odds of a pair; where not `additive`, what it adds at most.

        A pair of which the sum is below the threshold is no candidate. By default these are the terms of hit-miss.

        Parameters
        ----------
        first_value : where the values of each field begin, as in `Records`.

        Returns
        -------
        agree : float64, shape ``(value,)``; where both records have this value.
        differ : float64, shape ``(field,)``; where their values differ. A field that one of them lacks adds zero.
        """
        agree, differ = self.unweighted_terms(parameters, first_value)
        power = self.power(len(differ))
        return agree * np.repeat(power, np.diff(first_value)), differ * power

    def unweighted_terms(
        self, parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"]
    ) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
        """Return `pair_terms` where every field counts fully."""
        differ = differing(np.asarray(parameters.distortion, float))
        of_value = np.repeat(differ, np.diff(first_value))
        return np.log((1 - of_value) / parameters.value_share + of_value), np.log(differ)

    def slack(self, parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"]) -> float:
        """Return how much a pair may have above the sum of its `pair_terms`, as far as it is looked for."""
        return 0.0

    def find_pairs(self, records: Any, rule: Any, parameters: Parameters) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the pairs that may have log odds above the threshold; ``None`` leaves that to the join.

        Parameters
        ----------
        records : `Records`.
        rule : the `JoinRule`.
        """
        return None

    def found_share(self, records: Any, parameters: Parameters, found: Any, threshold: float) -> float:
        """Return the share of links above the threshold, where not `additive`; nan where nobody knows.

        Parameters
        ----------
        records : `Records`.
        parameters : of the candidates.
        found : `CandidatePairs`.
        threshold : candidates have log odds above minus this.
        """
        return float("nan")

    def log_pairs(
        self, values: Int[np.ndarray, "two field pair"], parameters: Parameters
    ) -> Float[np.ndarray, " pair"]:
        """Return the log likelihood of pairs of records.

        Parameters
        ----------
        values : codes into the values of all fields, -1 where missing.
        """
        table = np.append(parameters.value_share, 1)
        return np.asarray(self.of_components(values, table, parameters.distortion, self.candidates(values), np)[3])

    def draw_pairs(
        self, generator: np.random.Generator, number: int, parameters: Parameters,
        first_value: Int[np.ndarray, " fields_and_one"],
    ) -> tuple[Int[np.ndarray, "two field pair"], Float[np.ndarray, " pair"]]:  # fmt: skip
        """Draw pairs of records of one entity, and return their values and weights.

        By default those of hit-miss, with how much more probable each is under this likelihood for its weight.

        Returns
        -------
        values : codes into the values of all fields, -1 in a field that has none.
        weight : positive.
        """
        one, other = (draw_values(generator, number, parameters, first_value) for _ in range(2))
        both_true = ((1 - np.asarray(parameters.distortion)) ** 2)[:, None]
        values = np.stack([one, np.where(generator.random(one.shape) < both_true, one, other)])
        if self.additive:
            return values, np.ones(number)
        agree, differ = Likelihood.pair_terms(self, parameters, first_value)
        terms = np.where(values[0] == values[1], np.append(agree, 0)[values[0]], differ[:, None])
        of_hit_miss = np.where(values[0] >= 0, terms, 0).sum(axis=0)
        return values, np.exp(self.at(parameters).log_pairs(values, parameters) - of_hit_miss)

    def log_alone(self, distortion: Float[Array, " field"], xp: Any) -> Any:
        """Return how much more probable each value is in a record alone than it is common: logarithms ``(value,)``."""
        return 0.0

    def both_true(
        self, agreeing: Float[np.ndarray, " field"], by_chance: Float[np.ndarray, " field"]
    ) -> Float[np.ndarray, " field"]:
        """Return (1 - b)², how probably neither of two records of an entity is distorted.

        Parameters
        ----------
        agreeing : share of the pairs of one entity that agree.
        by_chance : how probably two records agree that have nothing to do with each other.
        """
        return np.clip((agreeing - by_chance) / np.maximum(1 - by_chance, np.finfo(float).eps), 0, 1)

    def priors(self, priors: Priors) -> Priors:
        """Return the priors, with those of this likelihood where a reader gives none."""
        return priors

    def started(self, parameters: Parameters) -> Parameters:
        """Return the hyperparameters to start from, with those of this likelihood alone."""
        return parameters

    def at(self, parameters: Parameters) -> Likelihood:
        """Return the likelihood with hyperparameters of its own, as `log_marginals` needs them."""
        return self

    def error_statistics(
        self, values: Int[np.ndarray, "member field component"], parameters: Parameters,
        partition: Float[np.ndarray, "partition component"],
    ) -> Float[np.ndarray, " statistic"]:  # fmt: skip
        """Return expected counts of errors in components; of none where `learned` is not defined.

        Parameters
        ----------
        partition : probabilities of all partitions, as in `Enumerated`.
        """
        return np.zeros(0)

    def learned(
        self, parameters: Parameters, statistics: Float[np.ndarray, " statistic"], prior: Float[np.ndarray, "field 2"]
    ) -> Parameters:
        """Return the hyperparameters with those of errors that follow from these statistics.

        Parameters
        ----------
        parameters : with the distortions by which linked pairs differ as often as they do.
        prior : Beta distributions of the distortions.
        """
        return parameters

    def log_prior(self, parameters: Parameters) -> float:
        """Return the log density of the hyperparameters of this likelihood alone, up to a constant."""
        return 0.0

    def urn(self, parameters: Parameters) -> dict[str, Any] | None:
        """Return what `densities.Density` takes beside the shares of values; ``None`` if it is none of hit-miss.

        Parts too large to enumerate are drawn where there is one, and cut where there is none.
        """
        return None

    def candidates(self, values: Int[np.ndarray, "member field component"]) -> Any:
        """Return what `of_components` is to know of components beforehand: arrays whose last axis is the component."""
        return None

    def of_components(
        self, values: Int[Array, "member field component"], table: Float[Array, " values_and_one"],
        distortion: Float[Array, " field"], candidates: Any, xp: Any,
    ) -> Float[Array, "subset component"]:  # fmt: skip
        """Return `log_marginals` of components.

        Parameters
        ----------
        table : how common every value is; its last entry is 1, for missing ones.
        candidates : as returned by the function of this name.
        """
        return self.log_marginals(values, table[values], distortion, xp)

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


def _flatten(likelihood: Likelihood) -> tuple[tuple, tuple]:
    attributes, arrays = vars(likelihood), likelihood.arrays
    fixed = tuple((name, value) for name, value in attributes.items() if name not in arrays)
    return tuple(attributes[name] for name in arrays), fixed


def _unflatten(kind: type[Likelihood], fixed: tuple, arrays: Any) -> Likelihood:
    likelihood = object.__new__(kind)
    vars(likelihood).update(fixed)
    vars(likelihood).update(zip(kind.arrays, arrays, strict=True))
    return likelihood
