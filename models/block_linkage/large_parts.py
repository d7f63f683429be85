"""Parts too large to enumerate: partitions are drawn, by two chains from opposite starts, until both agree.

Records that are equal in all compared fields are one row from the start where they are many and certain to belong
together; see `collapsed`. A part with such a row is drawn, whatever its number of rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.enumeration import log_size_weights, terms_under
from consilience.models.block_linkage.join import CandidatePairs, neighbours, pair_log_odds, prior_log_odds
from consilience.models.block_linkage.likelihoods import Likelihood
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.models.block_linkage.parts import Parts, merged, parts_of
from consilience.models.block_linkage.repeats import record_keys

CERTAIN = 4.5
"""Log odds of a pair beyond which its records are together in the second start."""

_OTHERS = 0.05        # entities with the same values as one, beyond which equal records are no single row
_SWEEPS_OF_EM = 5     # of each chain in a pass
_BLOCK = 50           # sweeps between two looks at whether chains agree
_MOST_SWEEPS, _LEAST_SWEEPS = 2_000, 100  # of each chain, for parts of few rows and of very many
_MOST_ROWS = 200_000  # drawn in each chain, between these
_NUM_KEPT = 100       # draws that are kept
_ROWS_OF_EM = 20_000  # that a pass draws at most
_PAIRS_OF_CHECK = 500_000  # of rows, that tell whether the model holds
_PER_MOVE = 10        # rows for each split-merge move in a sweep


class Rows(NamedTuple):
    """Records of which some stand for several equal ones.

    Parameters
    ----------
    records : the rows.
    weight : shape ``(row,)``; how many records each stands for.
    row : shape ``(record,)``; the row of each record.
    """

    records: Records
    weight: Int[np.ndarray, " row"]
    row: Int[np.ndarray, " record"]


def collapsed(
    records: Records, parameters: Parameters, likelihood: Likelihood, *, least: int, restriction: str
) -> Rows:
    """Make one row of equal records that are more than ``least``, where they can hardly be of two entities.

    How many entities show exactly these values is, by the prior, about Poisson with mean m Π θ, whatever the number of
    records: where that is above one in twenty, as with common names, every record stays a row of its own. Few equal
    records are enumerated. Nothing is collapsed where candidates were given, nor where equal records of one file may
    not be together.
    """
    number = records.num_records
    every = Rows(records, np.broadcast_to(1, number), np.arange(number, dtype=np.int32))
    if records.candidate is not None or restriction == "across":
        return every
    key = record_keys(records)
    if restriction == "within":
        words = np.random.default_rng(1).integers(2**63, size=records.num_sources)
        key += words[np.asarray(records.source)]
    ordered = np.sort(key)
    # A sort takes a fifth of the time of what follows, and is nearly always all.
    if not (ordered[least:] == ordered[: max(len(ordered) - least, 0)]).any():
        return every
    _, first, group, count = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    many = np.flatnonzero(count > least)
    one = first[many]
    pairs = pair_log_odds(records.value, one, one, parameters, likelihood, records.first_value)
    joined = np.zeros(len(count), bool)
    log_others = np.log(parameters.intensity) - (pairs.log_odds - prior_log_odds(parameters))
    joined[many[log_others < np.log(_OTHERS)]] = True
    if records.labelled is not None:  # an answer is about one record, and not about all that are like it
        joined[group[records.labelled]] = False
    if not joined.any():
        return every
    stays = ~joined[group]
    stays[first[joined]] = True
    place = np.cumsum(stays) - 1
    kept = np.flatnonzero(stays)
    rows = records.replace(
        value=records.value[:, kept], source=records.source[kept], num_records=len(kept), entity=None, entities=None,
        records=None if records.records is None else records.records[kept],
        labelled=None if records.labelled is None else place[records.labelled].astype(np.int32),
    )  # fmt: skip
    row = np.where(joined[group], place[first[group]], place)
    return Rows(rows, np.bincount(row), row)


class DrawnStatistics(NamedTuple):
    """What draws say of the entities in large parts, expected numbers.

    Parameters
    ----------
    sizes : shape ``(size,)``; entities with 1, 2, … records.
    values : shape ``(value,)``; how often each value was drawn: for an entity, or by an error.
    distorted, drawn : shape ``(field,)``; of the values drawn for entities with several records, those by an error,
        and all.
    evidence : mean log probability of the partition and the values, relative to all records apart.
    """

    sizes: Float[np.ndarray, " size"]
    values: Float[np.ndarray, " value"]
    distorted: Float[np.ndarray, " field"]
    drawn: Float[np.ndarray, " field"]
    evidence: float

    def plus(self, other: DrawnStatistics, scale: float = 1.0) -> DrawnStatistics:
        """Return the sum with others, the latter times a number."""
        return DrawnStatistics(
            self.sizes + scale * other.sizes, self.values + scale * other.values,
            self.distorted + scale * other.distorted, self.drawn + scale * other.drawn,
            self.evidence + scale * other.evidence,
        )  # fmt: skip


class LargeParts:
    """Parts that are drawn, and two chains of all of them.

    What is called a place here is that of a row among those of the parts, one part after the other, and those alone
    that stand for several records.

    Parameters
    ----------
    rows : records of which some stand for several.
    parts, pairs : the parts, and the candidates inside of them.
    likelihood : that has an `urn`.
    restriction : which records may be together.
    size_limit : most records of an entity, but for those of a single row.
    """

    def __init__(
        self, rows: Rows, parts: Parts, pairs: CandidatePairs, likelihood: Likelihood, restriction: str,
        size_limit: int,
    ) -> None:  # fmt: skip
        self.rows, self.likelihood, self.apart = rows, likelihood, restriction == "across"
        self.parts = [own for members in parts.members for own in members[(rows.weight[members] > 1).any(axis=1)]]
        self.parts += parts.large
        alone = rows.weight > 1
        alone[np.concatenate([np.zeros(0, int), *self.parts])] = False
        self.alone = np.flatnonzero(alone)
        self.members = tuple(m[(rows.weight[m] == 1).all(axis=1)] for m in parts.members)
        self.generator = np.random.default_rng(0)
        self.drawn_rows = np.concatenate([np.zeros(0, int), *self.parts, self.alone])
        self.codes = value_codes(np.asarray(rows.records.value)[:, self.drawn_rows], rows.records.first_value)
        lengths = np.append([len(own) for own in self.parts], np.ones(len(self.alone))).astype(int)
        self.part = np.repeat(np.arange(len(lengths)), lengths)
        self.place = np.full(rows.records.num_records, -1)
        self.place[self.drawn_rows] = np.arange(len(self.drawn_rows))
        self.weight = rows.weight[self.drawn_rows]
        self.largest = max(size_limit, int(rows.weight.max(initial=1)))
        inside, number = self._inside(pairs), len(self.part)
        self.first_neighbour, self.neighbour = neighbours(inside.first, inside.second, number)
        one, other, *_ = inside.where((inside.log_odds > CERTAIN) & (not self.apart))
        closed = merged(one, other, np.arange(len(one)), np.full(len(one), number), number)
        closed = np.where(np.bincount(closed, self.weight)[closed] > self.largest, np.arange(number), closed)
        self.cluster = np.stack([np.arange(number), closed])

    def __bool__(self) -> bool:
        return len(self.part) > 0

    def _inside(self, pairs: CandidatePairs) -> CandidatePairs:
        """Return the pairs inside of parts, the places of their records."""
        one, other = self.place[pairs.first], self.place[pairs.second]
        part = np.append(self.part, -1)
        inside = (one >= 0) & (part[one] == part[other])
        return pairs._replace(first=one, second=other).where(inside)

    def statistics(self, parameters: Parameters) -> DrawnStatistics:
        """Go on with the chains for some sweeps, and count."""
        order = self.generator.permutation(len(self.parts))
        size = np.cumsum([len(self.parts[number]) for number in order])
        chosen = order[: int(np.searchsorted(size, _ROWS_OF_EM)) + 1]
        _, total, _ = self._draw(np.isin(self.part, chosen), parameters, _SWEEPS_OF_EM)
        scale = size[-1] / size[len(chosen) - 1] if len(size) else 1.0
        return self._draw(self.part >= len(self.parts), parameters, 1)[1].plus(total, scale)

    def parted(self, pairs: CandidatePairs, at: float) -> float:
        """Return the share of pairs in large parts with log odds above ``at`` that the chains have apart.

        A pair that is a link with the probability p for itself is apart with 1 - p where the model holds: pairs above
        4.5 one time in a hundred. Where fields err together, as those of two editions of a paper do, an entity is torn
        into several that each err alike, and many are.
        """
        one, other, *_ = self._inside(pairs.where(pairs.log_odds > at))
        return float((self.cluster[:, one] != self.cluster[:, other]).mean()) if len(one) else 0.0

    def linked_pairs(self) -> tuple[Int[np.ndarray, "two field pair"], Float[np.ndarray, " pair"]]:
        """Return the pairs of rows that are together where the chains are, and how many pairs of records they are.

        Codes are those of all values. Of very many parts some tell.
        """
        pairs, weight = [np.tile(self.drawn_rows, (2, 1))], [self.weight * (self.weight - 1) / 2]
        for rows in self.parts:
            if sum(map(len, weight)) > _PAIRS_OF_CHECK:
                break
            for cluster in self.cluster[:, self.place[rows]]:
                one, other = np.nonzero(np.triu(cluster[:, None] == cluster, 1))
                pairs.append(rows[np.stack([one, other])])
                weight.append(self.rows.weight[pairs[-1]].prod(axis=0) / len(self.cluster))
        places = self.place[np.concatenate(pairs, axis=1)]
        return self.codes[:, places].transpose(1, 0, 2), np.concatenate(weight)

    def settle(self, parameters: Parameters) -> tuple[Drawn, float]:
        """Draw until the two chains of every part agree on its number of entities, or for long enough.

        Return the later half of the draws of both, of all records in large parts, and the evidence.
        """
        place = np.arange(len(self.part))
        kept, unsettled = np.tile(place, (_NUM_KEPT, 1)), 0
        evidence = self._draw(self.part >= len(self.parts), parameters, 1)[1].evidence
        active = place[self.part < len(self.parts)]
        draws = np.zeros((2, 0, len(active)), np.int32)
        while len(active):
            new, _, log_weight = self._draw(np.isin(place, active), parameters, _BLOCK)
            draws = np.concatenate([draws, new], axis=1)
            later = draws[:, draws.shape[1] // 2 :]
            begin = np.flatnonzero(np.diff(self.part[active], prepend=-1))
            num_rows = np.diff(begin, append=len(active))
            number = np.add.reduceat(later == active, begin, axis=2, dtype=int)  # named by their first rows
            apart = np.abs(np.diff(number.mean(axis=1), axis=0))[0]
            agreed = apart < 0.1 * np.sqrt(number.var(axis=1).sum(axis=0)) + 0.5
            ended = agreed | (draws.shape[1] >= np.clip(_MOST_ROWS / num_rows, _LEAST_SWEEPS, _MOST_SWEEPS))
            unsettled += int((ended & ~agreed).sum())
            done = np.repeat(ended, num_rows)
            evidence += float(log_weight[done].sum())
            thinned = later[:, np.linspace(0, later.shape[1] - 1, _NUM_KEPT // 2).astype(int)]
            kept[:, active[done]] = thinned[:, :, done].reshape(_NUM_KEPT, -1)
            draws, active = draws[:, :, ~done], active[~done]
        # Records are expanded here: those of one row are together in every draw.
        record = np.flatnonzero(self.place[self.rows.row] >= 0)
        own = self.place[self.rows.row[record]]
        return Drawn(record, self.part[own], kept[:, own], unsettled), evidence

    def _draw(
        self, chosen: Bool[np.ndarray, " place"], parameters: Parameters, sweeps: int
    ) -> tuple[Int[np.ndarray, "chain sweep row"], DrawnStatistics, Float[np.ndarray, " row"]]:
        """Go on with the chains of whole parts, and leave them there.

        Return the draws of both, clusters named by the first of their places; mean statistics; and the evidence of each
        part in some places of it.
        """
        values, fields = len(parameters.value_share), len(self.codes)
        where = np.flatnonzero(chosen)
        added = np.zeros(values), np.zeros(fields), np.zeros(fields), np.zeros(len(where))
        sizes = np.zeros(self.largest)
        draws = np.empty((2, sweeps, len(where)), np.int32)
        if not len(where):
            return draws, DrawnStatistics(sizes, *added[:3], 0.0), added[3]
        from consilience.models.block_linkage import densities, sampler  # numba takes long to import

        graph = self._graph(chosen)
        urn, first_value = self.likelihood.urn(parameters), self.rows.records.first_value
        if urn is None:
            raise ValueError(f"{self.likelihood} has no urn to draw from")
        field = np.repeat(np.arange(fields), np.diff(first_value))
        density = densities.Density(densities.HIT_MISS, field, parameters.value_share, **urn)
        # Before sizes are learned, those of heavy rows are as improbable as the largest one that has a share.
        share = parameters.size_share[: self.largest]
        share = np.pad(share, (0, self.largest - len(share)), "edge")
        log_size = log_size_weights(parameters.intensity, share, parameters.source_share)
        renumbered = np.cumsum(chosen) - 1
        for chain in range(2):
            drawn = sampler.draw(
                self.generator, renumbered[self.cluster[chain, where]], graph, density, log_size, sweeps=sweeps,
                splits=-(-len(where) // _PER_MOVE), expected=sampler.Expected(*added),
            )  # fmt: skip
            draws[chain] = where[drawn]
            self.cluster[chain, where] = draws[chain, -1]
            for cluster in drawn:
                of_size = np.bincount(np.bincount(cluster, graph.weight).astype(int))[1:]
                sizes[: len(of_size)] += of_size
        value, distorted, values_drawn, log_weight = (total / (2 * sweeps) for total in added)
        log_weight -= graph.weight * log_size[1]
        mean = DrawnStatistics(sizes / (2 * sweeps), value, distorted, values_drawn, float(log_weight.sum()))
        return draws, mean, log_weight

    def _graph(self, chosen: Bool[np.ndarray, " place"]) -> Any:
        """Return the `Graph` of the rows of some parts."""
        from consilience.models.block_linkage.sampler import SURE, Graph

        rows, renumbered = self.drawn_rows[chosen], np.cumsum(chosen) - 1
        number = np.diff(self.first_neighbour)
        neighbour = renumbered[self.neighbour[np.repeat(chosen, number)]]
        records = self.rows.records
        label, worth = np.zeros((0, 2), int), np.zeros(0)
        if records.labelled is not None:
            label = self.place[records.labelled]
            inside = (label >= 0).all(axis=1) & chosen[label].all(axis=1)
            label, worth = renumbered[label[inside]], np.clip(records.label_log_odds[inside], -SURE, SURE)
        source = np.asarray(records.source)[rows] if self.apart else np.zeros(0, int)
        first = np.append(0, np.cumsum(number[chosen]))
        return Graph(self.codes[:, chosen].T, self.weight[chosen], source, first, neighbour, False, label, worth)


class Drawn(NamedTuple):
    """Draws of the partitions of large parts.

    Parameters
    ----------
    record : codes of the records in them, increasing.
    part : the part of each.
    cluster : shape ``(draw, record)``; equal where records are together.
    unsettled : parts whose chains did not agree.
    """

    record: Int[np.ndarray, " large_member"]
    part: Int[np.ndarray, " large_member"]
    cluster: Int[np.ndarray, "kept_draw large_member"]
    unsettled: int


def divided(
    found: CandidatePairs, rows: Rows, parameters: Parameters, threshold: float, largest: int, size_limit: int,
    likelihood: Likelihood, restriction: str,
) -> tuple[Parts, LargeParts]:  # fmt: skip
    """Return the parts of the pairs above the threshold: those to enumerate, and those to draw from."""
    # A row of n records enters as n members: its prior odds are those of joining an entity of n.
    heavy = np.flatnonzero((rows.weight[found.first] > 1) | (rows.weight[found.second] > 1))
    term = terms_under(parameters, len(parameters.size_share))
    most = len(parameters.size_share) // 2
    if len(heavy):
        one, other = (np.minimum(rows.weight[rank[heavy]], most) for rank in (found.first, found.second))
        log_odds = found.log_odds.copy()
        log_odds[heavy] += term[one + other] - term[one] - term[other] - term[2]
        found = found._replace(log_odds=log_odds)
    above = found.where(found.log_odds > -threshold)
    parts = parts_of(above, rows.records.num_records, largest=largest, size_limit=size_limit)
    large = LargeParts(rows, parts, above, likelihood, restriction, size_limit)
    return parts._replace(members=large.members), large
