r"""Hit-miss with fields that are compared by similarity: a distorted value is rather near the true one than far away.

A record shows the true value y of its entity, or with probability b another one,

.. math::

    G(x \mid y) = (1 - b)\, 1[x = y] + b\, w(x \mid y), \qquad w(x \mid y) \propto \theta_x e^{-c\, d(x, y)}
    \quad (x \neq y),

with the distance d of `consilience.similarity`, taken for `BEYOND` where two values are not near, and c = `DECAY`. In
the other fields a distorted value is as common as it is, and may be the true one, as in `HitMiss`.

In the sum over y, values that are far from all records add what a table of the field holds, and those near records of
one value alone what tables of that value hold. So the values to go through one by one are those of the records, and
those near two different ones of them: the `_MOST_SHARED` that weigh most; the others count as near to one or the other,
which is less than they add. Up to so many the sum is exact.

Here a record alone is not as probable as its values are common: one near a common value is more so. Likelihoods are
relative to that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from consilience.arrays import Array, Float, Int
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.join import prior_log_odds
from consilience.models.block_linkage.likelihood import draw_values
from consilience.models.block_linkage.likelihoods import AUTO, LIKELIHOODS, Copies, HitMiss, Likelihood
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.models.block_linkage.similar_pairs import NearGains, find_similar_pairs
from consilience.models.block_linkage.texts import SomeSimilar, TextHitMiss, near_matrix
from consilience.notes import Remedy

DECAY = 2.0
"""By so much a distortion is less probable, in the logarithm, for each unit of distance."""

BEYOND = 4.0
"""The distance of values that are not near."""

ONLY_NEAR = 4.0
"""By so much are near values nearer where hardly anything else is a distortion: as if the others were 8 apart."""

TEXT = 2
"""What `Records.similar` holds of a field of texts, see `texts`; of other similar ones 1."""

_MOST_RECORDS = 8   # of a component
_MOST_SHARED = 8    # values near two different ones of a component that are gone through
_NUM_LINKS = 20_000  # that are looked at for the share found
_ROUNDING = 1e-6
_ENTRIES = 1 << 22  # of sparse matrices, so many at a time


def for_data(likelihood: str | Likelihood, data: Any, value_share: Any, xp: Any = np) -> Likelihood:
    """Return a likelihood as it is used for some records.

    Parameters
    ----------
    likelihood : a name in `LIKELIHOODS`, or one of your own; `AUTO` is hit-miss, which EM begins with.
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
    likelihood = "hit-miss" if likelihood == AUTO else likelihood
    chosen = LIKELIHOODS[likelihood] if isinstance(likelihood, str) else likelihood
    if data.similar is None or not any(data.similar):
        return chosen
    similar = np.asarray(data.similar)
    fields = tuple(np.flatnonzero(similar).tolist())
    if isinstance(chosen, HitMiss) and type(chosen) in (HitMiss, Copies) and (similar == TEXT).any():
        return TextHitMiss(fields, data, chosen.strength, xp)
    if type(chosen) is not HitMiss:
        text = "fields are compared by similarity with {likelihood} only, not with others"
        raise UnsupportedRequest(text, Remedy("likelihood", "hit-miss"))
    return SimilarHitMiss(fields, data, value_share, xp)


def is_known(likelihood: str | Likelihood) -> bool:
    """Return whether this is a likelihood: one of your own is not saved with a fit, but as words alone."""
    return not isinstance(likelihood, str) or likelihood in (AUTO, *LIKELIHOODS)


class Candidates(NamedTuple):
    """Values that may be the true ones of the similar fields of components, and are near two records or one of them.

    Parameters
    ----------
    value : int32, shape ``(candidate, field, component)``; -1 where there is none.
    ratio : float64, shape ``(candidate, member, field, component)``; how much more probable the value of a record is,
        as a distortion of the candidate, than if it were not near; 1 where it is not.
    """

    value: Int[Array, "candidate field component"]
    ratio: Float[Array, "candidate member field component"]


class SimilarHitMiss(SomeSimilar):
    """Hit-miss with some fields that are compared by similarity.

    Parameters
    ----------
    fields : the places of these fields.
    data : `Records`, or `Linkable` ones, with the values that are near.
    value_share : how common every value is.
    xp : the array module of ``value_share``.
    """

    def urn(self, parameters: Parameters) -> None:
        """Return none: its kernel, of all values at once, is not drawn from."""

    arrays = (
        "first_value", "near", "excess", "neighbours", "of_neighbour", "value_share", "normaliser", "others", "around",
        "twice",
    )  # fmt: skip

    def __init__(self, fields: tuple[int, ...], data: Any, value_share: Any, xp: Any = np) -> None:
        self.fields = fields
        self.first_value, self.near, self.value_share = data.first_value, data.near, value_share
        # By how much the weight of a value that is near exceeds that of one that is not; the latter has weight θ.
        self.excess = xp.exp(DECAY * (BEYOND - data.distance)) - 1
        self.neighbours: Any = None
        self.of_neighbour: Any = None
        if xp is np:
            self.neighbours = _Neighbours.of(self.near, len(value_share))
            self.of_neighbour = self.excess[self.neighbours.pair]
        self.normaliser = 1 - value_share + self._sums_over_near(self.excess, value_share[:, None], xp)[:, 0]
        # The weight of each value as the true one of so many records, none of which is near.
        weight = xp.stack([value_share * self.normaliser**-power for power in range(_MOST_RECORDS + 1)], 1)
        self.others = self._sums_of_fields(weight, xp)
        # What values near one add to that, with so many records that have this one.
        self.around = xp.stack(
            [self._sums_over_near((1 + self.excess) ** count - 1, weight, xp).T for count in range(_MOST_RECORDS + 1)]
        )
        self.twice: Any = self._repeated_distortions() if xp is np else None

    def _sums_over_near(self, excess: Any, weight: Any, xp: Any) -> Any:
        """Return the sums, of every value, over those near it: of the excess of both times weights ``(value, …)``."""
        if xp is np:
            return self.neighbours.matrix(excess[self.neighbours.pair]) @ weight
        first, second = self.near[:, 0], self.near[:, 1]
        return sum(
            jax.ops.segment_sum(excess[:, None] * weight[other], one, len(weight))
            for one, other in ((first, second), (second, first))
        )

    def _sums_of_fields(self, of_value: Any, xp: Any) -> Any:
        """Return the sums over the values of each similar field, ``(power, field)``."""
        zero = xp.zeros((1, of_value.shape[1]), of_value.dtype)
        ends = xp.concatenate([zero, xp.cumsum(of_value, 0)])[self.first_value]
        return (ends[1:] - ends[:-1])[xp.array(self.fields)].T

    def _repeated_distortions(self) -> Float[np.ndarray, " similar_field"]:
        """Return how probably two distortions of one true value are the same value, of each similar field."""
        square = self.value_share**2
        around = self.neighbours.matrix((1 + self.of_neighbour) ** 2 - 1) @ square
        every = np.repeat(np.add.reduceat(np.append(square, 0), self.first_value[:-1]), np.diff(self.first_value))
        twice = self.value_share / self.normaliser**2 * (every - square + around)
        return self._sums_of_fields(twice[:, None], np)[0]

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

    def find_pairs(
        self, records: Any, rule: Any, parameters: Parameters
    ) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
        """Return the pairs that may have log odds above the threshold: see `similar_pairs`."""
        return find_similar_pairs(records, rule, self.at_most(parameters))

    def found_share(self, records: Any, parameters: Parameters, found: Any, threshold: float) -> float:
        """Return the share of links that are expected to pass the threshold; nan where there is no candidate.

        Where fields are compared for equality the model says in how many of them a link differs, and each that differs
        takes the same from its log odds. Here that depends on how near the values are, and the model is a poor judge of
        it: typing errors make many more values that are near than it expects. So what a field takes from the log odds
        of a link, where it differs, is taken from the links that were found, each field by itself. How often it differs
        is learned, as everywhere, and how much it tells where it agrees depends on the record.

        All of this holds where fields err independently of each other, and only there. It is somewhat too good: among
        the links found there are more near values than among those hidden.

        Parameters
        ----------
        found : candidate pairs, each as much of a link as it is probable for itself.
        threshold : pairs with log odds above minus this are candidates.
        """
        if not len(found.first):
            return float("nan")
        values = value_codes(records.value, records.first_value)
        generator = np.random.default_rng(0)
        weight = expit(found.log_odds)
        record, lacking = generator.integers(values.shape[1], size=(2, _NUM_LINKS))
        link = generator.choice(len(found.first), _NUM_LINKS, p=weight / weight.sum())
        shown = np.stack([values[:, found.first[link]], values[:, found.second[link]]])
        agree, differ = self.pair_terms(parameters, self.first_value)
        differs = (shown >= 0).all(0) & (shown[0] != shown[1])
        terms = self.field_terms(shown, parameters)
        # Which fields a second record lacks, any record can tell.
        observed = (values[:, record] >= 0) & (values[:, lacking] >= 0)
        log_odds = np.full(_NUM_LINKS, prior_log_odds(parameters))
        for field, value in enumerate(values[:, record]):
            seen = terms[field, differs[field]]
            apart = generator.choice(seen, _NUM_LINKS) if len(seen) else differ[field]
            probability = np.minimum(parameters.value_share[value] * np.exp(agree[value]), 1)
            agrees = generator.random(_NUM_LINKS) < probability
            log_odds += np.where(observed[field], np.where(agrees, agree[value], apart), 0)
        return float(np.mean(log_odds > -threshold))

    def at_most(self, parameters: Parameters) -> NearGains:
        """Return what near values add at most to the log odds of a pair, beyond values that are far apart."""
        _, differ = self.pair_terms(parameters, self.first_value)
        field = np.repeat(np.arange(len(differ)), np.diff(self.first_value))
        miss, differ = parameters.distortion[field], differ[field]
        alone = self.log_alone(parameters.distortion, np)
        squares = self._every(2)[1]
        one, other = self.near.T
        # By Cauchy and Schwarz, of the sums over values that are near both.
        both = miss[one] ** 2 * np.sqrt(squares[one] * squares[other])
        ratio = (1 + self.excess) * miss[one] * (1 - miss[one])
        once = ratio * (1 / self.normaliser[one] + 1 / self.normaliser[other])
        gain = np.log(once + both) - alone[one] - alone[other] - differ[one]
        distance = BEYOND - np.log1p(self.excess) / DECAY
        nearest = np.where(distance < 0, distance + ONLY_NEAR, distance) <= 1 + _ROUNDING
        highest = np.zeros(len(alone))
        for value in (one, other):
            np.maximum.at(highest, value, self.excess)
        of_two = miss**2 * self.value_share * (highest / self.normaliser) ** 2
        return NearGains(self.near, nearest, gain, np.log1p(of_two * np.exp(-differ)))

    def log_pairs(
        self, values: Int[np.ndarray, "two field pair"], parameters: Parameters
    ) -> Float[np.ndarray, " pair"]:
        """Return the log likelihood of pairs of records: the same as of components of two, without their candidates."""
        return self.field_terms(values, parameters).sum(0)

    def field_terms(
        self, values: Int[np.ndarray, "two field pair"], parameters: Parameters
    ) -> Float[np.ndarray, "field pair"]:
        """Return what each field adds to the log likelihood of pairs of records."""
        observed: Any = (values >= 0).all(0)
        terms = np.zeros(values.shape[1:])
        agree, differ = super().pair_terms(parameters, self.first_value)
        for field, (one, other) in enumerate(values.transpose(1, 0, 2)):
            if field not in self.fields:
                terms[field] = np.where(observed[field], np.where(one == other, agree[one], differ[field]), 0)
                continue
            both = np.flatnonzero(observed[field])
            key = np.minimum(one, other)[both].astype(np.int64) * len(self.value_share) + np.maximum(one, other)[both]
            distinct, place = np.unique(key, return_inverse=True)
            lower, higher = np.divmod(distinct, len(self.value_share))
            terms[field, both] = self._log_field(field, lower, higher, parameters.distortion[field])[place]
        return terms

    def _log_field(
        self, field: int, one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"], miss: float
    ) -> Float[np.ndarray, " pair"]:
        """Return the log likelihood of pairs of values, relative to the values apart."""
        share, scale = self.value_share, self.normaliser
        weight = share / scale**2
        near_one, near_two = self._every(2)
        same: Any = np.equal(one, other)
        twice_far = self.others[2, self.fields.index(field)]
        every = np.where(same, near_two[one], near_one[one] + near_one[other] - twice_far)
        apart = np.flatnonzero(~same)
        every[apart] += self._sums_of_shared(one[apart], other[apart], weight)
        ratio = 1 + self._excess_of(one, other)
        both = miss**2 * (every - np.where(same, weight[one], ratio * (weight[one] + weight[other])))
        once = miss * (1 - miss) * ratio * (1 / scale[one] + 1 / scale[other])
        neither = np.where(same, (1 - miss) ** 2 / share[one], once)
        alone = self._alone(np)
        return np.log(neither + both) - sum(np.log1p(miss * (alone[value] - 1)) for value in (one, other))

    def _every(self, power: int) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " value"]]:
        """Return sums over all true values of how probable a value is given them: once, and squared."""
        every = np.zeros(len(self.first_value) - 1)
        every[list(self.fields)] = self.others[power]
        of_value = np.repeat(every, np.diff(self.first_value))
        return of_value + self.around[1, power], of_value + self.around[2, power]

    def _sums_of_shared(
        self, one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"], weight: Float[np.ndarray, " value"]
    ) -> Float[np.ndarray, " pair"]:
        """Return the sums over the values that are near both of a pair: of both excesses times a weight."""
        sums = [shared @ weight for shared in self._shared(one, other)]
        return np.concatenate([np.zeros(0), *sums])

    def _shared(self, one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"]) -> Iterator[csr_array]:
        """Yield the products of the excesses of values near both of a pair, ``(pair, value)``, some pairs at a time."""
        matrix = self._excess_matrix()
        number = np.diff(matrix.indptr)
        group = np.cumsum(number[one] + number[other]) // _ENTRIES
        for begin, end in itertools.pairwise([0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(one)]):
            yield matrix[one[begin:end]].multiply(matrix[other[begin:end]]).tocsr()

    def _excess_of(
        self, one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"]
    ) -> Float[np.ndarray, " pair"]:
        """Look the excess of pairs of values up; zero where they are not near."""
        return self._excess_matrix()[one, other] if len(one) else np.zeros(0)

    def _excess_matrix(self) -> csr_array:
        return self.neighbours.matrix(self.of_neighbour)

    # ---- pairs that are drawn ----

    def distortions(
        self, generator: np.random.Generator, true: Int[np.ndarray, "field record"], parameters: Parameters,
        first_value: Int[np.ndarray, " fields_and_one"],
    ) -> Int[np.ndarray, "field record"]:  # fmt: skip
        """Draw distorted values: near the true one with the weight of all that are, or else any other."""
        value = draw_values(generator, true.shape[1], parameters, first_value)
        another = draw_values(generator, true.shape[1], parameters, first_value, but=true)
        weight = np.concatenate([[0.0], np.cumsum(self.of_neighbour * self.value_share[self.neighbours.value])])
        last = weight[self.neighbours.begin]
        for field in self.fields:
            own = true[field]
            begin, end = last[own], last[own + 1]
            near = generator.random(len(own)) * self.normaliser[own] < end - begin
            place = np.searchsorted(weight, begin + generator.random(len(own)) * (end - begin), side="right") - 1
            place = np.clip(place, self.neighbours.begin[own], self.neighbours.begin[own + 1] - 1)
            value[field] = another[field]
            value[field, near] = self.neighbours.value[place[near]]
        return value

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
        return every - own + self.around[1, 1]

    def log_alone(self, distortion: Float[Array, " field"], xp: Any) -> Float[Array, " value"]:
        """Return how much more probable each value is in a record alone than it is common: logarithms."""
        return xp.log1p(self.of_similar(distortion, len(self.value_share), xp) * (self._alone(xp) - 1))

    # ---- distortion ----

    def both_true(
        self, agreeing: Float[np.ndarray, " field"], by_chance: Float[np.ndarray, " field"]
    ) -> Float[np.ndarray, " field"]:
        """Return (1 - b)²; two values that are both distorted agree as often as the same distortion is drawn twice.

        That is κ, and the share that agrees is (1 - b)² + b² κ.
        """
        found = super().both_true(agreeing, by_chance)
        for kappa, field in zip(self.twice, self.fields, strict=True):
            root = np.sqrt(max(1 - (1 + kappa) * (1 - agreeing[field]), 0))
            found[field] = (1 - (1 - root) / (1 + kappa)) ** 2
        return found

    # ---- components ----

    def candidates(self, values: Int[np.ndarray, "member field component"]) -> Candidates:
        """Return the values of the members, and those near two different ones of them, that weigh most."""
        own = values[:, list(self.fields)]
        num_members, num_fields, num_components = own.shape
        number, cells = len(self.value_share), num_fields * num_components
        own = own.reshape(num_members, cells)
        member, cell = np.nonzero(own >= 0)
        members = np.unique(cell.astype(np.int64) * number + own[member, cell])
        shared = np.setdiff1d(self._weightiest(own), members, assume_unique=True)
        in_cell, candidate = np.divmod(np.sort(np.concatenate([members, shared])), number)
        slot = np.arange(len(in_cell)) - np.searchsorted(in_cell, in_cell)
        most = int(slot.max(initial=-1)) + 1
        found = np.full((most, cells), -1, np.int32)
        found[slot, in_cell] = candidate
        ratio = np.ones((most, num_members, cells))
        for record in range(num_members):
            of_record = own[record, in_cell]
            there = np.flatnonzero(of_record >= 0)
            excess = self._excess_of(candidate[there], of_record[there])
            ratio[slot[there], record, in_cell[there]] += excess
        shape = num_fields, num_components
        return Candidates(found.reshape(most, *shape), ratio.reshape(most, num_members, *shape))

    def _weightiest(self, own: Int[np.ndarray, "member cell"]) -> Int[np.ndarray, " candidate"]:
        """Return values near two different ones of a cell, as ``cell * values + value``, sorted: those of most weight.

        The weight is that as the true value of two of the records.
        """
        number, weight = len(self.value_share), self.value_share / self.normaliser**2
        keys, weights = [np.zeros(0, np.int64)], [np.zeros(0)]
        for one, other in itertools.combinations(own, 2):
            cell = np.flatnonzero((one >= 0) & (other >= 0) & (one != other))
            begin = 0
            for shared in self._shared(one[cell], other[cell]):
                row = np.repeat(np.arange(shared.shape[0]), np.diff(shared.indptr))
                of_value = shared.data * weight[shared.indices]
                most = _highest(row, of_value, _MOST_SHARED)
                keys.append(cell[begin + row[most]].astype(np.int64) * number + shared.indices[most])
                weights.append(of_value[most])
                begin += shared.shape[0]
        key, of_key = np.concatenate(keys), np.concatenate(weights)
        order = np.lexsort([-of_key, key])
        key, of_key = key[order], of_key[order]
        once = np.diff(key, prepend=-1) > 0
        key, of_key = key[once], of_key[once]
        return key[np.sort(_highest(key // number, of_key, _MOST_SHARED))]

    def log_similar(
        self, own: Int[Array, "member similar component"], table: Float[Array, " values_and_one"],
        miss: Float[Array, "similar 1"], candidates: Candidates, xp: Any,
    ) -> Float[Array, "subset similar component"]:  # fmt: skip
        """Sum over the true values."""
        share, there = table[own], candidates.value >= 0
        weight = xp.where(there, table[candidates.value], 0)
        inverse = xp.where(there, 1 / self.normaliser[candidates.value], 0).astype(share.dtype)
        ratio = candidates.ratio.astype(share.dtype)
        observed = own >= 0
        given = [
            xp.where(candidates.value == value, (1 - miss) / common, miss * ratio[:, record] * inverse)
            for record, (value, common) in enumerate(zip(own, share, strict=True))
        ]
        total = (weight * _products(given, observed, xp)).sum(1)
        # What all other values add: those of the field, and those near each value, without the candidates.
        subsets = _Subsets.of(own, xp)
        rest = self.others.astype(share.dtype)[subsets.number, np.arange(own.shape[1])[:, None]]
        alone = counted = _products([inverse] * len(own), observed, xp)
        for record, value in enumerate(own):
            last = subsets.last[:, record]
            around = self.around[subsets.alike[:, record], subsets.number, value].astype(share.dtype)
            rest = rest + xp.where(last, around, 0)
            near = [xp.where(value == other, ratio[:, record] * inverse, inverse) for other in own]
            counted = counted + xp.where(last[:, None], _products(near, observed, xp) - alone, 0)
        rest = rest - (weight * counted).sum(1)
        return xp.log(total + miss**subsets.number * xp.maximum(rest, 0))


def _products(factors: list[Any], observed: Any, xp: Any) -> Float[Array, "subset candidate field component"]:
    """Return the products of the factors of every subset's records, those that have the field."""
    product = xp.ones_like(factors[0])[None]
    for factor, has in zip(factors, observed, strict=True):
        product = xp.concatenate([product, product * xp.where(has, factor, 1)])
    return product


class _Subsets(NamedTuple):
    """Of every subset of the records of components, by field and component.

    Parameters
    ----------
    number : ``(subset, field, component)``; how many records have the field.
    alike : ``(subset, record, field, component)``; how many have the value of this one.
    last : of the same shape; whether this one is the last that has its value.
    """

    number: Int[Array, "subset field component"]
    alike: Int[Array, "subset member field component"]
    last: Any

    @classmethod
    def of(cls, own: Int[Array, "member field component"], xp: Any) -> _Subsets:
        """Count."""
        members = (np.arange(2 ** len(own))[:, None] >> np.arange(len(own)) & 1).astype(np.int32)
        observed = own >= 0
        same = ((own[:, None] == own) & observed[:, None]).astype(np.int32)
        after = np.triu(np.ones((len(own), len(own)), np.int32), 1).T[:, :, None, None]
        later = xp.tensordot(members, same * after, 1)
        last = (members[:, :, None, None] > 0) & observed & (later == 0)
        number = xp.tensordot(members, observed.astype(np.int32), 1)
        return cls(number, xp.tensordot(members, same, 1), last)


class _Neighbours(NamedTuple):
    """Values that are near each value, as the parts of a symmetric sparse matrix.

    Parameters
    ----------
    pair : int32, shape ``(entry,)``; of which near pair an entry tells.
    value : int32, shape ``(entry,)``; the columns.
    begin : int32, shape ``(value + 1,)``; where the entries of each row begin.
    """

    pair: Int[np.ndarray, " entry"]
    value: Int[np.ndarray, " entry"]
    begin: Int[np.ndarray, " values_and_one"]

    @classmethod
    def of(cls, near: Int[np.ndarray, "near 2"], num_values: int) -> _Neighbours:
        """Sort near values by one and the other."""
        matrix = near_matrix(near, num_values, np.arange(len(near), dtype=np.int32))
        return cls(matrix.data, matrix.indices, matrix.indptr)

    def matrix(self, entries: Float[np.ndarray, " entry"]) -> csr_array:
        """Return the matrix with these entries."""
        number = len(self.begin) - 1
        return csr_array((entries, self.value, self.begin), shape=(number, number))


def _highest(
    group: Int[np.ndarray, " entry"], weight: Float[np.ndarray, " entry"], most: int
) -> Int[np.ndarray, " kept"]:
    """Return the places of so many entries of the highest weight of each group, at most."""
    order = np.lexsort([-weight, group])
    ordered = group[order]
    return order[np.arange(len(order)) - np.searchsorted(ordered, ordered) < most]
