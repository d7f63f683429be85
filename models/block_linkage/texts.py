r"""Hit-miss with texts that are hardly ever written twice in one way: titles, addresses, lists of authors.

A record shows the true value y of its entity, or with probability b another one: mostly one that is near, and with a
bounded share ρ any value, as common as it is,

.. math::

    G(x \mid y) = (1 - b)\, 1[x = y] + b \left[(1 - \rho)\, \kappa\, e^{-2 d(x, y)}\, 1[d < 4] + \rho\, \theta_x\right],

ρ = `FAR`, κ = `NEAR`. A value without neighbours so cannot turn into any other at the price of b alone. The true value
is one that the records of the cluster show, or another one, far from all of them: what values near them but not shown
would add is left out. Where one field of the records is such a text, all similar ones are compared so.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from consilience.arrays import Array, Float, Int
from consilience.models.block_linkage.likelihood import draw_values
from consilience.models.block_linkage.likelihoods import HitMiss
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.similar_pairs import NearGains, find_similar_pairs

FAR = 0.05
"""The share of distorted values that are far from the true one."""

NEAR = 0.2
"""How probable a distorted value is that is next to the true one, up to e^{-2 d}."""

DECAY = 2.0
_MOST_PAIRS = 20_000_000  # of records that have near values in a field, by which candidates are searched


class SomeSimilar(HitMiss):
    """Hit-miss with some fields, at the places ``fields``, that are compared by similarity."""

    additive = False
    fields: tuple[int, ...]
    first_value: Any

    @abstractmethod
    def distortions(
        self, generator: np.random.Generator, true: Int[np.ndarray, "field record"], parameters: Parameters,
        first_value: Int[np.ndarray, " fields_and_one"],
    ) -> Int[np.ndarray, "field record"]:  # fmt: skip
        """Draw distorted values of all fields, given the true ones."""

    @abstractmethod
    def log_similar(
        self, own: Int[Array, "member similar component"], table: Float[Array, " values_and_one"],
        miss: Float[Array, "similar 1"], candidates: Any, xp: Any,
    ) -> Float[Array, "subset similar component"]:  # fmt: skip
        """Return the log likelihood of every subset in each similar field, relative to the shares of the values."""

    def draw_pairs(
        self, generator: np.random.Generator, number: int, parameters: Parameters,
        first_value: Int[np.ndarray, " fields_and_one"],
    ) -> tuple[Int[np.ndarray, "two field pair"], Float[np.ndarray, " pair"]]:  # fmt: skip
        """Draw true values and two records of each, all of as much weight."""
        true = draw_values(generator, number, parameters, first_value)
        pairs = np.stack([true, true])
        for record in pairs:
            other = self.distortions(generator, true, parameters, first_value)
            distorted = generator.random(true.shape) < parameters.distortion[:, None]
            record[distorted] = other[distorted]
        return pairs, np.ones(number)

    def of_components(
        self, values: Int[Array, "member field component"], table: Float[Array, " values_and_one"],
        distortion: Float[Array, " field"], candidates: Any, xp: Any,
    ) -> Float[Array, "subset component"]:  # fmt: skip
        """Sum over the true values, relative to the records apart: one alone has likelihood one, whatever it shows."""
        index = np.array(self.fields)
        rest = np.setdiff1d(np.arange(values.shape[1]), index)
        power = self.power(values.shape[1]).astype(table.dtype)[:, None]
        exact = self.by_field(values[:, rest], table[values[:, rest]], distortion[rest], xp)
        exact = (exact * power[rest]).sum(1)
        similar = self.log_similar(values[:, index], table, distortion[index][:, None], candidates, xp)
        similar = (similar * power[index]).sum(1)
        for record in range(len(values)):
            has = np.arange(len(similar)) >> record & 1
            exact = exact - has[:, None] * similar[1 << record]
        return exact + similar

    def of_similar(self, own: Any, number_of_values: int, xp: Any) -> Any:
        """Return numbers of fields for each value, ``(value,)``, zero in fields compared for equality."""
        similar = np.zeros(len(own), bool)
        similar[list(self.fields)] = True
        number = self.first_value[1:] - self.first_value[:-1]
        given = {} if xp is np else {"total_repeat_length": number_of_values}
        return xp.repeat(xp.where(similar, own, 0), number, **given)


class TextHitMiss(SomeSimilar):
    """Hit-miss with some fields that are compared by similarity, far values bounded.

    Parameters
    ----------
    fields : the places of these fields.
    data : `Records`, or `Linkable` ones, with the values that are near.
    strength : of the urn of large parts, infinite for hit-miss; see `densities`.
    """

    arrays = ("first_value", "near", "kernel", "matrix")

    def __init__(self, fields: tuple[int, ...], data: Any, strength: float, xp: Any = np) -> None:
        self.fields, self.strength = fields, strength
        self.first_value, self.near = data.first_value, data.near
        self.kernel = (1 - FAR) * NEAR * xp.exp(-DECAY * xp.maximum(data.distance, 0))
        self.matrix: Any = None
        if xp is np:
            self.matrix = near_matrix(np.asarray(self.near), int(self.first_value[-1]), self.kernel)

    def urn(self, parameters: Parameters) -> dict[str, Any] | None:
        """Return b, the share of far values, what is near, the strength of copying and powers; see `Likelihood.urn`."""
        far = np.ones(len(parameters.distortion))
        far[list(self.fields)] = FAR
        return (super().urn(parameters) or {}) | {"far": far, "near": self.matrix}

    # ---- pairs ----

    def unweighted_terms(
        self, parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"]
    ) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
        """Return what each field adds to the log odds of a pair: where values differ, if they are far apart."""
        agree, differ = super().unweighted_terms(parameters, first_value)
        alone = np.ones(len(agree))
        for field in self.fields:
            span = slice(first_value[field], first_value[field + 1])
            miss, share = parameters.distortion[field], parameters.value_share[span]
            alone[span] = own = 1 - miss + miss * FAR
            right, wrong = (1 - miss) / share + miss * FAR, miss * FAR
            agree[span] = np.log((share * right**2 + (1 - share) * wrong**2) / own**2)
            differ[field] = np.log((2 * (1 - miss) * wrong + wrong**2) / own**2)
        return self.with_copies(agree, differ, parameters.value_share * alone)

    def both_true(
        self, agreeing: Float[np.ndarray, " field"], by_chance: Float[np.ndarray, " field"]
    ) -> Float[np.ndarray, " field"]:
        """Return (1 - b)², of pairs of which none is a copy."""
        if not np.isinf(self.strength):
            agreeing = np.maximum(agreeing * (1 + self.strength) - 1, 0) / self.strength
        return super().both_true(agreeing, by_chance)

    def log_pairs(
        self, values: Int[np.ndarray, "two field pair"], parameters: Parameters
    ) -> Float[np.ndarray, " pair"]:
        """Return the log likelihood of pairs of records."""
        agree, differ = self.pair_terms(parameters, self.first_value)
        total = np.zeros(values.shape[2])
        for field, (one, other) in enumerate(values.transpose(1, 0, 2)):
            both = (one >= 0) & (other >= 0)
            total += np.where(both, np.where(one == other, agree[one], differ[field]), 0)
            apart = np.flatnonzero(both & (one != other) & (field in self.fields))
            if len(apart):
                key, place = np.unique(np.stack([one[apart], other[apart]]), axis=1, return_inverse=True)
                near = self._log_near(field, key[0], key[1], parameters) - differ[field]
                total[apart] += near[place.ravel()]
        return total

    def _log_near(
        self, field: int, one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"], parameters: Parameters
    ) -> Float[np.ndarray, " pair"]:
        """Return the log likelihood of pairs of different values, relative to the values apart."""
        miss, share = parameters.distortion[field], parameters.value_share
        wrong, kernel, total = miss * FAR, self.matrix[one, other], 0.0
        for true, shown in ((one, other), (other, one)):
            right = (1 - miss) / share[true] + wrong
            total = total + share[true] * right * (miss * kernel / share[shown] + wrong)
        rest = np.maximum(1 - share[one] - share[other], 0)
        found = np.log((total + rest * wrong**2) / (1 - miss + wrong) ** 2)
        found = self.with_copies(found, found, 1.0)[1]
        return found * self.power(len(parameters.distortion))[field]

    def log_alone(self, distortion: Float[Array, " field"], xp: Any) -> Float[Array, " value"]:
        """Return how much less probable values are in a record alone than they are common: logarithms."""
        power = self.power(len(distortion))
        return self.of_similar(xp.log1p(-distortion * (1 - FAR)) * power, int(self.first_value[-1]), xp)

    def find_pairs(
        self, records: Any, rule: Any, parameters: Parameters
    ) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
        """Return the pairs that agree in enough fields, and those with values near each other in some text.

        Texts in which too many pairs are near do not search, but count once a pair is found.
        """
        empty = NearGains(np.zeros((0, 2), np.int32), np.zeros(0, bool), np.zeros(0), np.zeros(records.num_values))
        first, second = find_similar_pairs(records, rule, empty)
        number = records.num_records
        keys = [np.asarray(first, np.int64) * number + second]
        for field in self.fields:
            code = np.asarray(records.value[field])
            has = np.flatnonzero(code >= 0)
            begin, end = self.first_value[field : field + 2]
            shape = (number, end - begin)
            shown = csr_array((np.ones(len(has)), (has, code[has])), shape=shape)
            near = self.matrix[begin:end, begin:end]
            near = (near > 0) + coo_array((np.ones(end - begin), (np.arange(end - begin),) * 2), shape=near.shape)
            of_value = np.asarray(shown.sum(axis=0))
            if of_value @ (near @ of_value) > 2 * _MOST_PAIRS:
                continue
            found = (shown @ near @ shown.T).tocoo()
            upper = found.row < found.col
            keys.append(found.row[upper].astype(np.int64) * number + found.col[upper])
        one, other = np.divmod(np.unique(np.concatenate(keys)), number)
        return one.astype(np.int32), other.astype(np.int32)

    def distortions(
        self, generator: np.random.Generator, true: Int[np.ndarray, "field record"], parameters: Parameters,
        first_value: Int[np.ndarray, " fields_and_one"],
    ) -> Int[np.ndarray, "field record"]:  # fmt: skip
        """Draw values near the true one in the similar fields, but for a share of far ones, and any in the others."""
        other, number = draw_values(generator, true.shape[1], parameters, first_value), true.shape[1]
        sums = np.concatenate([[0.0], np.cumsum(self.matrix.data)])
        for field in self.fields:
            begin, end = (self.matrix.indptr[true[field] + step] for step in (0, 1))
            mass = sums[end] - sums[begin]
            near = generator.random(number) * (mass + FAR) < mass
            place = np.searchsorted(sums, sums[begin] + generator.random(number) * mass, side="right") - 1
            other[field, near] = self.matrix.indices[np.clip(place, begin, end - 1)[near]]
        return other

    def draw_pairs(
        self, generator: np.random.Generator, number: int, parameters: Parameters,
        first_value: Int[np.ndarray, " fields_and_one"],
    ) -> tuple[Int[np.ndarray, "two field pair"], Float[np.ndarray, " pair"]]:  # fmt: skip
        """Draw true values and two records of each, of which one may be a copy of the other."""
        pairs, weight = super().draw_pairs(generator, number, parameters, first_value)
        copied = generator.random(pairs.shape[1:]) < 1 / (1 + self.strength)
        pairs[1][copied] = pairs[0][copied]
        return pairs, weight

    # ---- components ----

    def candidates(self, values: Int[np.ndarray, "member field component"]) -> Float[np.ndarray, "true member f c"]:
        """Return K of every member's value given that of every other one, in the similar fields."""
        own = values[:, list(self.fields)]
        one, other = np.broadcast_arrays(own[None], own[:, None])
        both = (one >= 0) & (other >= 0) & (one != other)
        found = np.zeros(one.shape)
        if both.any():
            found[both] = self.matrix[one[both], other[both]]
        return found

    def log_similar(
        self, own: Int[Array, "member similar component"], table: Float[Array, " values_and_one"],
        miss: Float[Array, "similar 1"], candidates: Any, xp: Any,
    ) -> Float[Array, "subset similar component"]:  # fmt: skip
        """Sum over the true values: those that the members of each subset show, and another one."""
        share, observed = table[own], own >= 0
        kernel = candidates.astype(share.dtype)
        same = (own[:, None] == own[None]) & observed[:, None]
        weight = xp.where(observed, share / xp.maximum(same.sum(0), 1).astype(share.dtype), 0)
        joint = xp.concatenate([weight, xp.ones_like(weight[:1])])[None]
        log_scale = xp.zeros_like(share[:1])
        for record in range(len(own)):
            near = xp.where(same[:, record], 1 - miss, 0) + miss * kernel[:, record]
            given = xp.concatenate([near / share[record] + miss * FAR, xp.ones_like(share[:1]) * miss * FAR])
            factor = xp.where(observed[record], self.factors(given, record, own, share, xp), 1)
            larger = joint * factor
            largest = larger.max(1)
            log_scale = xp.concatenate([log_scale, log_scale + xp.log(largest)])
            joint = xp.concatenate([joint, larger / largest[:, None]])
        # Only what the members of a subset show may be its true value; all else is far.
        members = np.arange(len(joint))[:, None] >> np.arange(len(own)) & 1
        shown = xp.einsum("sr,trfc->stfc", members, same.astype(np.int32)) > 0
        other = xp.maximum(1 - xp.where(shown, weight, 0).sum(1), 0)
        total = xp.where(shown, joint[:, :-1], 0).sum(1) + other * joint[:, -1]
        return xp.log(total) + log_scale


def near_matrix(near: np.ndarray, number: int, entry: np.ndarray) -> csr_array:
    """Return a symmetric matrix with these entries for near values."""
    one, other = near.T
    index = np.concatenate([one, other]), np.concatenate([other, one])
    return csr_array((np.tile(entry, 2), index), shape=(number, number))
