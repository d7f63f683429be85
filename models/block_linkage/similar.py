r"""Hit-miss with fields that are compared by similarity: a distorted value is rather near the true one than far away.

A record shows the true value y of its entity, or with probability b another one,

.. math::

    G(x \mid y) = (1 - b)\, 1[x = y] + b\, w(x \mid y), \qquad w(x \mid y) \propto \theta_x e^{-c\, d(x, y)}
    \quad (x \neq y),

with the distance d of `consilience.similarity`, taken for `BEYOND` where two values are not near, and c = `DECAY`. In
the other fields a distorted value is as common as it is, and may be the true one, as in `HitMiss`.

The sum over y is exact. The values of the records and those near one of them are gone through one by one; all others
are equally far from all records, and a table of the field holds what they add together.

Here a record alone is not as probable as its values are common: one near a common value is more so. Likelihoods are
relative to that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Array, Float, Int
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.likelihoods import LIKELIHOODS, HitMiss, Likelihood
from consilience.models.block_linkage.parameters import Parameters

__all__ = ["BEYOND", "DECAY", "Candidates", "SimilarHitMiss", "for_data", "is_known"]

DECAY = 2.0
"""By so much a distortion is less probable, in the logarithm, for each unit of distance."""

BEYOND = 4.0
"""The distance of values that are not near."""

_MOST_RECORDS = 8  # of a component


def for_data(likelihood: str | Likelihood, data: Any, value_share: Any, xp: Any = np) -> Likelihood:
    """Return a likelihood as it is used for some records.

    Parameters
    ----------
    likelihood : a name in `LIKELIHOODS`, or one of your own.
    data : `Records`, or `Linkable` ones; some of their fields may be compared by similarity.
    value_share : how common every value is.
    xp : the array module, ``numpy`` or ``jax.numpy``.

    Raises
    ------
    UnsupportedRequest : there is no such likelihood; or fields are compared by similarity, and it is not hit-miss.
    """
    if not is_known(likelihood):
        raise UnsupportedRequest(
            f"{likelihood} is none of {', '.join(LIKELIHOODS)}; a likelihood of your own is not saved with a fit"
        )
    chosen = LIKELIHOODS[likelihood] if isinstance(likelihood, str) else likelihood
    if data.similar is None or not any(data.similar):
        return chosen
    if type(chosen) is not HitMiss:
        raise UnsupportedRequest("fields are compared by similarity with likelihood='hit-miss' only, not with others")
    return SimilarHitMiss(tuple(np.flatnonzero(data.similar).tolist()), data, value_share, xp)


def is_known(likelihood: str | Likelihood) -> bool:
    """Return whether this is a likelihood: one of your own is not saved with a fit, but as words alone."""
    return not isinstance(likelihood, str) or likelihood in LIKELIHOODS


class Candidates(NamedTuple):
    """Values that may be the true ones of the similar fields of components, besides those that are far from all.

    Parameters
    ----------
    value : int32, shape ``(candidate, field, component)``; -1 where there is none.
    ratio : float64, shape ``(candidate, member, field, component)``; how much more probable the value of a record is,
        as a distortion of the candidate, than if it were not near; 1 where it is not.
    """

    value: Int[Array, "candidate field component"]
    ratio: Float[Array, "candidate member field component"]


class SimilarHitMiss(HitMiss):
    """Hit-miss with some fields that are compared by similarity.

    Parameters
    ----------
    fields : the places of these fields.
    data : `Records`, or `Linkable` ones, with the values that are near.
    value_share : how common every value is.
    xp : the array module of ``value_share``.
    """

    additive = False
    arrays = ("first_value", "near", "excess", "value_share", "normaliser", "others")

    def __init__(self, fields: tuple[int, ...], data: Any, value_share: Any, xp: Any = np) -> None:
        self.fields = fields
        self.first_value, self.near, self.value_share = data.first_value, data.near, value_share
        # By how much the weight of a value that is near exceeds that of one that is not; the latter has weight θ.
        self.excess = xp.exp(DECAY * (BEYOND - data.distance)) - 1
        self.normaliser = 1 - value_share + self._sums_over_near(value_share, xp)
        powers = [value_share * self.normaliser**-power for power in range(_MOST_RECORDS + 1)]
        # Sums over all values of a field.
        self.others = xp.stack([self._sums_of_fields(power, xp) for power in powers])

    def _sums_over_near(self, weight: Any, xp: Any) -> Any:
        """Return the sums, of every value, over those near it: of their excess times this weight."""
        first, second = self.near[:, 0], self.near[:, 1]
        index = xp.concatenate([first, second])
        terms = xp.concatenate([self.excess * weight[second], self.excess * weight[first]])
        if xp is np:
            return np.bincount(index, terms, len(weight))
        return jax.ops.segment_sum(terms, index, len(weight))

    def _sums_of_fields(self, of_value: Any, xp: Any) -> Any:
        """Return the sums over the values of each similar field."""
        ends = xp.concatenate([xp.zeros(1, of_value.dtype), xp.cumsum(of_value)])[self.first_value]
        return (ends[1:] - ends[:-1])[xp.array(self.fields)]

    # ---- pairs ----

    def pair_terms(
        self, parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"]
    ) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
        """Return what each field adds to the log odds of a pair: where values differ, if they are far apart."""
        agree, differ = super().pair_terms(parameters, first_value)
        for field in self.fields:
            span = slice(first_value[field], first_value[field + 1])
            value = np.arange(span.start, span.stop)
            agree[span] = self._log_field(field, value, value, parameters.distortion[field])
            miss, least = parameters.distortion[field], self.normaliser[span].min(initial=1)
            differ[field] = np.log(2 * miss * (1 - miss) / least + miss**2)
        return agree, differ

    def slack(self, parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"]) -> float:
        """Return by how much two values that are near and tell most exceed two that are far apart."""
        _, differ = self.pair_terms(parameters, first_value)
        gains = [0.0]
        for field in self.fields:
            own = (self.near[:, 0] >= first_value[field]) & (self.near[:, 0] < first_value[field + 1])
            near = self._log_field(field, self.near[own, 0], self.near[own, 1], parameters.distortion[field])
            gains.append(near.max(initial=differ[field]) - differ[field])
        return float(max(gains))

    def log_pairs(
        self, values: Int[np.ndarray, "two field pair"], parameters: Parameters
    ) -> Float[np.ndarray, " pair"]:
        """Return the log likelihood of pairs of records: the same as of components of two, without their candidates."""
        observed: Any = (values >= 0).all(0)
        total = np.zeros(values.shape[2])
        agree, differ = super().pair_terms(parameters, self.first_value)
        for field, (one, other) in enumerate(values.transpose(1, 0, 2)):
            if field not in self.fields:
                total += np.where(observed[field], np.where(one == other, agree[one], differ[field]), 0)
                continue
            both = np.flatnonzero(observed[field])
            key = np.minimum(one, other)[both].astype(np.int64) * len(self.value_share) + np.maximum(one, other)[both]
            distinct, place = np.unique(key, return_inverse=True)
            lower, higher = np.divmod(distinct, len(self.value_share))
            total[both] += self._log_field(field, lower, higher, parameters.distortion[field])[place]
        return total

    def _log_field(
        self, field: int, one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"], miss: float
    ) -> Float[np.ndarray, " pair"]:
        """Return the log likelihood of pairs of values, relative to the values apart."""
        share, scale = self.value_share, self.normaliser
        squares = share / scale**2
        matrix = self._excess_matrix()
        linear = matrix @ squares
        every = self.others[2, self.fields.index(field)] + linear[one] + linear[other]
        every += matrix[one].multiply(matrix[other]) @ squares
        same: Any = np.equal(one, other)
        ratio = 1 + self._excess_of(one, other)
        both = miss**2 * (every - np.where(same, squares[one], ratio * (squares[one] + squares[other])))
        once = miss * (1 - miss) * ratio * (1 / scale[one] + 1 / scale[other])
        neither = np.where(same, (1 - miss) ** 2 / share[one], once)
        alone = self._alone(np)
        return np.log(neither + both) - sum(np.log1p(miss * (alone[value] - 1)) for value in (one, other))

    def _excess_matrix(self) -> csr_array:
        one, other = self.near.T
        index = np.concatenate([one, other]), np.concatenate([other, one])
        return csr_array((np.tile(self.excess, 2), index), shape=(len(self.value_share),) * 2)

    def _excess_of(
        self, one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, " pair"]:
        """Look the excess of pairs of values up; zero where they are not near."""
        number = len(self.value_share)
        known = self.near[:, 0].astype(np.int64) * number + self.near[:, 1]
        key = np.minimum(one, other).astype(np.int64) * number + np.maximum(one, other)
        place = np.minimum(np.searchsorted(known, key), len(known) - 1)
        return np.where(known[place] == key, self.excess[place], 0) if len(known) else np.zeros(len(one))

    # ---- records alone ----

    def _alone(self, xp: Any) -> Any:
        """Return of each value how probable it is as a distortion of another one, relative to its share."""
        own = self.value_share / self.normaliser
        number = self.first_value[1:] - self.first_value[:-1]
        every = xp.zeros(len(number), own.dtype)
        index = xp.array(self.fields)
        if xp is np:
            every[index] = self.others[1]
            every = np.repeat(every, number)
        else:
            every = jnp.repeat(every.at[index].set(self.others[1]), number, total_repeat_length=len(own))
        return every - own + self._sums_over_near(own, xp)

    def log_alone(self, distortion: Float[Array, " field"], xp: Any) -> Float[Array, " value"]:
        """Return how much more probable each value is in a record alone than it is common: logarithms."""
        similar = np.zeros(len(distortion), bool)
        similar[list(self.fields)] = True
        miss, number = xp.where(similar, distortion, 0), self.first_value[1:] - self.first_value[:-1]
        given = {} if xp is np else {"total_repeat_length": len(self.value_share)}
        return xp.log1p(xp.repeat(miss, number, **given) * (self._alone(xp) - 1))

    # ---- distortion ----

    def both_true(
        self, agreeing: Float[np.ndarray, " field"], by_chance: Float[np.ndarray, " field"]
    ) -> Float[np.ndarray, " field"]:
        """Return (1 - b)²; two values that are both distorted agree as often as the same distortion is drawn twice.

        That is κ, and the share that agrees is (1 - b)² + b² κ.
        """
        found = super().both_true(agreeing, by_chance)
        square = self.value_share**2
        matrix = self._excess_matrix()
        around = (2 * matrix + matrix**2) @ square
        total = np.repeat(np.add.reduceat(np.append(square, 0), self.first_value[:-1]), np.diff(self.first_value))
        twice = self.value_share / self.normaliser**2 * (total - square + around)
        for field in self.fields:
            kappa = twice[self.first_value[field] : self.first_value[field + 1]].sum()
            root = np.sqrt(max(1 - (1 + kappa) * (1 - agreeing[field]), 0))
            found[field] = (1 - (1 - root) / (1 + kappa)) ** 2
        return found

    # ---- components ----

    def candidates(self, values: Int[np.ndarray, "member field component"]) -> Candidates:
        """Return the values of the members and those that are near one of them."""
        own = values[:, list(self.fields)]
        num_members, num_fields, num_components = own.shape
        matrix = self._excess_matrix()
        number, cells = len(self.value_share), num_fields * num_components
        member, cell = np.nonzero(own.reshape(num_members, cells) >= 0)
        value = own.reshape(num_members, cells)[member, cell]
        rows = matrix[value]
        lengths = np.diff(rows.indptr)
        key = np.repeat(cell.astype(np.int64), lengths) * number + rows.indices
        distinct = np.unique(np.concatenate([cell.astype(np.int64) * number + value, key]))
        in_cell, candidate = np.divmod(distinct, number)
        slot = np.arange(len(distinct)) - np.searchsorted(in_cell, in_cell)
        most = int(slot.max(initial=-1)) + 1
        found = np.full((most, cells), -1, np.int32)
        found[slot, in_cell] = candidate
        ratio = np.ones((most, num_members, cells))
        place = np.searchsorted(distinct, key)
        ratio[slot[place], np.repeat(member, lengths), np.repeat(cell, lengths)] += rows.data
        shape = num_fields, num_components
        return Candidates(found.reshape(most, *shape), ratio.reshape(most, num_members, *shape))

    def of_components(
        self, values: Int[Array, "member field component"], table: Float[Array, " values_and_one"],
        distortion: Float[Array, " field"], candidates: Candidates, xp: Any,
    ) -> Float[Array, "subset component"]:  # fmt: skip
        """Sum over the true values."""
        index = np.array(self.fields)
        rest = np.setdiff1d(np.arange(values.shape[1]), index)
        exact = self.log_marginals(values[:, rest], table[values[:, rest]], distortion[rest], xp)
        joint = self._by_subset(values[:, index], table, distortion[index][:, None], candidates, xp)
        similar = xp.log(joint).sum(1)
        # Relative to the records apart.
        for record in range(len(values)):
            has = np.arange(len(similar)) >> record & 1
            exact = exact - has[:, None] * similar[1 << record]
        return exact + similar

    def _by_subset(
        self, own: Any, table: Any, miss: Any, candidates: Candidates, xp: Any
    ) -> Float[Array, "subset field component"]:
        """Return the likelihood of every subset in each similar field, relative to the shares of the values."""
        share, there = table[own], candidates.value >= 0
        weight = xp.where(there, table[candidates.value], 0)
        inverse = xp.where(there, 1 / self.normaliser[candidates.value], 0).astype(share.dtype)
        ratio = candidates.ratio.astype(share.dtype)
        joint, number = weight[None], xp.zeros((1, *own.shape[1:]), int)
        for record in range(len(own)):
            factor = xp.where(
                candidates.value == own[record], (1 - miss) / share[record], miss * ratio[:, record] * inverse
            )
            factor = xp.where(own[record] >= 0, factor, 1)
            joint = xp.concatenate([joint, joint * factor])
            number = xp.concatenate([number, number + (own[record] >= 0)])
        total, powers = self.others.astype(share.dtype), []
        for power in range(len(own) + 1):
            # What the other values add for so many records.
            left = total[power][:, None] - (weight * inverse**power).sum(0)
            powers.append(miss**power * xp.maximum(left, 0))
        return joint.sum(1) + xp.take_along_axis(xp.stack(powers), number, 0)
