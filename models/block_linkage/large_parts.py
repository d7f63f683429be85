"""Parts too large to enumerate: partitions are drawn, by two chains from opposite starts, until both agree.

Records that are equal in all compared fields are one row from the start where they are many and certain to belong
together; see `collapsed`. A part with such a row is drawn, whatever its number of rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from consilience.arrays import Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.enumeration import size_terms
from consilience.models.block_linkage.join import CandidatePairs, pair_log_odds, prior_log_odds
from consilience.models.block_linkage.likelihoods import Likelihood
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.models.block_linkage.parts import Parts, parts_of
from consilience.models.block_linkage.repeats import record_keys
from consilience.models.truth.partitions import first_in_rows

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


class _Part(NamedTuple):
    """A part as `draw_part` takes it; ``cluster`` has the two chains."""

    rows: Int[np.ndarray, " row"]
    value: Int[np.ndarray, "row field"]
    code: Int[np.ndarray, " value"]
    first: Int[np.ndarray, " fields_and_one"]
    near: Float[np.ndarray, " entry"]
    begin_near: Int[np.ndarray, " field"]
    edge: Int[np.ndarray, "edge 2"]
    first_neighbour: Int[np.ndarray, " rows_and_one"]
    neighbour: Int[np.ndarray, " neighbour"]
    labels: tuple[np.ndarray, np.ndarray, np.ndarray]
    cluster: Int[np.ndarray, "chain row"]


class LargeParts:
    """Parts that are drawn, and the chains of each.

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
        groups = [own for members in parts.members for own in members[(rows.weight[members] > 1).any(axis=1)]]
        groups += parts.large
        alone = rows.weight > 1
        alone[np.concatenate([np.zeros(0, int), *groups])] = False
        self.alone = np.flatnonzero(alone)
        self.members = tuple(m[(rows.weight[m] == 1).all(axis=1)] for m in parts.members)
        self.num_values = rows.records.num_values
        self.generator = np.random.default_rng(0)
        self.parts = self._parts(groups, pairs)
        heaviest = max((int(rows.weight[part.rows].max()) for part in self.parts), default=1)
        self.largest = max(size_limit, heaviest, int(rows.weight.max()))

    def __bool__(self) -> bool:
        return bool(len(self.parts) + len(self.alone))

    @property
    def codes(self) -> Int[np.ndarray, "field row"]:
        """The values of all rows, as codes of all values, -1 where missing; made anew, as there may be millions."""
        return self._codes(slice(None))

    def _codes(self, rows: Any) -> Int[np.ndarray, " field *rows"]:
        return value_codes(np.asarray(self.rows.records.value)[:, rows], self.rows.records.first_value)

    @property
    def drawn_rows(self) -> Int[np.ndarray, " row"]:
        """The rows whose partition is drawn, and those alone that stand for several records."""
        return np.concatenate([self.alone, *(part.rows for part in self.parts)])

    def _parts(self, groups: list[np.ndarray], pairs: CandidatePairs) -> list[_Part]:
        """Prepare every part: its values, what is near among them, its candidates and the two starts."""
        of_row = np.full(self.rows.records.num_records, -1, np.int32)
        place = np.zeros(len(of_row), np.int32)
        for number, own in enumerate(groups):
            of_row[own], place[own] = number, np.arange(len(own))
        inside = np.flatnonzero((of_row[pairs.first] >= 0) & (of_row[pairs.first] == of_row[pairs.second]))
        inside = inside[np.argsort(of_row[pairs.first[inside]], kind="stable")]
        bounds = np.searchsorted(of_row[pairs.first[inside]], np.arange(len(groups) + 1))
        found = []
        for number, own in enumerate(groups):
            chosen = inside[bounds[number] : bounds[number + 1]]
            edge = np.stack([place[pairs.first[chosen]], place[pairs.second[chosen]]], axis=1)
            strong = edge[pairs.log_odds[chosen] > CERTAIN]
            graph = coo_array((np.ones(len(strong)), strong.T), shape=(len(own), len(own)))
            closed = connected_components(graph, directed=False)[1]
            starts = np.stack([np.arange(len(own)), np.arange(len(own)) if self.apart else closed]).astype(np.int64)
            found.append(self._part(np.asarray(own, int), edge.astype(np.int64), starts))
        return found

    def _part(self, own: np.ndarray, edge: np.ndarray, starts: np.ndarray) -> _Part:
        codes, value, first, near, begin = [], [], [0], [np.zeros(0)], []
        graph = near_matrix(edge, len(own), np.ones(len(edge)))
        for field, column in enumerate(self._codes(own)):
            known, local = np.unique(column[column >= 0], return_inverse=True)
            shown = np.full(len(own), -1)
            shown[column >= 0] = local
            codes.append(known)
            value.append(shown)
            first.append(first[-1] + len(known))
            kernel = self.likelihood.near_kernel(field, known)
            begin.append(-1 if kernel is None else sum(map(len, near)))
            if kernel is not None:
                near.append(np.asarray(kernel, float).ravel())
        return _Part(
            own, np.stack(value, axis=1).astype(np.int64), np.concatenate(codes), np.array(first, np.int64),
            np.concatenate(near), np.array(begin, np.int64), edge, graph.indptr.astype(np.int64),
            graph.indices.astype(np.int64), self._labels(own), starts,
        )  # fmt: skip

    def _labels(self, own: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the labels of pairs in a part, by row, as `draw_part` takes them."""
        from consilience.models.block_linkage.part_sweep import SURE

        records = self.rows.records
        if records.labelled is None:
            return np.zeros(len(own) + 1, np.int64), np.zeros(0, np.int64), np.zeros(0)
        inside = np.isin(records.labelled, own).all(axis=1)
        one, other = np.searchsorted(own, records.labelled[inside]).T  # rows of a part are increasing
        worth = np.clip(records.label_log_odds[inside], -SURE, SURE)
        row = np.concatenate([one, other])
        order = np.argsort(row, kind="stable")
        begin = np.searchsorted(row[order], np.arange(len(own) + 1))
        return begin.astype(np.int64), np.concatenate([other, one])[order].astype(np.int64), np.tile(worth, 2)[order]

    def statistics(self, parameters: Parameters) -> DrawnStatistics:
        """Go on with the chains for some sweeps, and count."""
        order = self.generator.permutation(len(self.parts))
        size = np.cumsum([len(self.parts[place].rows) for place in order])
        chosen = order[: int(np.searchsorted(size, _ROWS_OF_EM)) + 1]
        total = self._nothing()
        for place in chosen:
            _, own = self._draw(self.parts[place], parameters, _SWEEPS_OF_EM)
            total = total.plus(own)
        scale = size[-1] / size[len(chosen) - 1] if len(size) else 1.0
        return self._of_alone(parameters).plus(total, scale)

    def parted(self, pairs: CandidatePairs, at: float) -> float:
        """Return the share of pairs in large parts with log odds above ``at`` that the chains have apart.

        A pair that is a link with the probability p for itself is apart with 1 - p where the model holds: pairs above
        4.5 one time in a hundred. Where fields err together, as those of two editions of a paper do, an entity is torn
        into several that each err alike, and many are.
        """
        cluster = np.full((2, len(self.rows.weight)), -1)
        begin = 0
        for part in self.parts:
            cluster[:, part.rows] = begin + part.cluster
            begin += len(part.rows)
        strong = pairs.where(pairs.log_odds > at)
        one, other = cluster[:, strong.first], cluster[:, strong.second]
        inside = (one >= 0) & (other >= 0)
        return float((one != other)[inside].mean()) if inside.any() else 0.0

    def linked_pairs(self) -> tuple[Int[np.ndarray, "two field pair"], Float[np.ndarray, " pair"]]:
        """Return the pairs of rows that are together where the chains are, and how many pairs of records they are.

        Codes are those of all values. Of very many parts some tell.
        """
        pairs, weight = [np.tile(self.drawn_rows, (2, 1))], [self.rows.weight[self.drawn_rows].astype(float)]
        weight[0] *= (weight[0] - 1) / 2
        for part in self.parts:
            if sum(map(len, weight)) > _PAIRS_OF_CHECK:
                break
            for cluster in part.cluster:
                one, other = np.nonzero(np.triu(cluster[:, None] == cluster, 1))
                pairs.append(part.rows[np.stack([one, other])])
                weight.append(self.rows.weight[pairs[-1]].prod(axis=0) / len(part.cluster))
        return self._codes(np.concatenate(pairs, axis=1)).transpose(1, 0, 2), np.concatenate(weight)

    def settle(self, parameters: Parameters) -> tuple[Drawn, float]:
        """Draw until the two chains of every part agree; return draws of all records in them, and the evidence."""
        columns, numbers, unsettled = [], [], 0
        evidence = float(self._of_alone(parameters).evidence)
        for number, part in enumerate(self.parts):
            kept, own, agreed = self._settle_part(part, parameters)
            evidence += float(own.evidence)
            unsettled += not agreed
            columns.append(part.rows[kept])
            numbers.append(np.full(len(part.rows), number))
        columns.append(np.tile(self.alone, (_NUM_KEPT, 1)))
        numbers.append(len(self.parts) + np.arange(len(self.alone)))
        drawn, part_of = (np.concatenate([own[-1], *own[:-1]], axis=-1) for own in (columns, numbers))
        place = np.full(self.rows.records.num_records, -1)
        place[self.drawn_rows] = np.arange(len(self.drawn_rows))
        # Records are expanded here: those of one row are together in every draw.
        record = np.flatnonzero(place[self.rows.row] >= 0)
        own = place[self.rows.row[record]]
        return Drawn(record, part_of[own], drawn[:, own], unsettled), evidence

    def _settle_part(self, part: _Part, parameters: Parameters) -> tuple[np.ndarray, DrawnStatistics, bool]:
        """Draw a part until the chains agree on the number of entities: the later half of the draws of both."""
        draws = np.zeros((2, 0, len(part.rows)), np.int64)
        most = int(np.clip(_MOST_ROWS / len(part.rows), _LEAST_SWEEPS, _MOST_SWEEPS))
        while True:
            new, statistics = self._draw(part, parameters, _BLOCK)
            draws = np.concatenate([draws, new], axis=1)
            later = draws[:, draws.shape[1] // 2 :]
            number = np.array([[len(np.unique(draw)) for draw in chain] for chain in later])
            apart = abs(np.diff(number.mean(axis=1))[0])
            agreed = bool(apart < 0.1 * np.sqrt(number.var(axis=1).sum()) + 0.5)
            if agreed or draws.shape[1] >= most:
                break
        thinned = later[:, np.linspace(0, later.shape[1] - 1, _NUM_KEPT // 2).astype(int)]
        cluster = thinned.reshape(-1, len(part.rows))
        return first_in_rows(cluster, int(cluster.max(initial=0)) + 1), statistics, agreed

    def _draw(self, part: _Part, parameters: Parameters, sweeps: int) -> tuple[np.ndarray, DrawnStatistics]:
        from consilience.models.block_linkage.part_sweep import draw_part  # numba takes long to import

        total, draws = self._nothing(), []
        urn = self._urn(parameters)
        term = _size_term(parameters, self.largest)
        weight = self.rows.weight[part.rows].astype(np.int64)
        share = parameters.value_share[part.code]
        for cluster in part.cluster:
            drawn, log_joint = np.empty((sweeps, len(cluster)), np.int64), np.empty(sweeps)
            counted, sizes = np.zeros(len(part.code)), np.zeros(len(term))
            distorted, values = np.zeros((2, len(part.begin_near)))
            draw_part(
                int(self.generator.integers(2**31)), cluster, sweeps, -(-len(cluster) // _PER_MOVE), part.value, weight,
                np.asarray(self.rows.records.source)[part.rows].astype(np.int64), self.apart, part.edge,
                part.first_neighbour, part.neighbour, part.labels, term, share, part.first, part.near, part.begin_near,
                *urn, drawn, log_joint, counted, distorted, values, sizes,
            )  # fmt: skip
            draws.append(drawn)
            every = np.zeros(self.num_values)
            every[part.code] = counted / sweeps
            mean = float(log_joint.mean()) - self._apart(part.rows, parameters)
            own = DrawnStatistics(sizes[1:] / sweeps, every, distorted / sweeps, values / sweeps, mean)
            total = total.plus(own, 1 / len(part.cluster))
        return np.stack(draws), total

    def _apart(self, rows: np.ndarray, parameters: Parameters) -> float:
        """Return the log probability of the records of rows if each were an entity."""
        codes = self._codes(rows)
        log_share = np.log(np.append(parameters.value_share, 1)) + np.append(
            np.broadcast_to(self.likelihood.log_alone(parameters.distortion, np), self.num_values), 0
        )
        alone = np.log(parameters.intensity * parameters.size_share[0])
        return float(self.rows.weight[rows] @ (alone + log_share[codes].sum(axis=0)))

    def _of_alone(self, parameters: Parameters) -> DrawnStatistics:
        """Return the statistics of rows that are in no part: each is an entity."""
        total = self._nothing()
        if not len(self.alone):
            return total
        np.add.at(total.sizes, self.rows.weight[self.alone] - 1, 1)
        codes = self._codes(self.alone)
        np.add.at(total.values, codes[codes >= 0], 1)
        miss, far, strength, power = self._urn(parameters)
        number, evidence = self.rows.weight[self.alone], 0.0
        for field, code in enumerate(codes):
            own, has = parameters.value_share[code], code >= 0
            own, count = own[has], number[has]
            given = miss[field] * far[field] * own
            same = np.log(own) + _log_rise(given + 1 - miss[field], count, strength[field])
            other = np.log1p(-np.minimum(own, 1 - 1e-12)) + _log_rise(given, count, strength[field])
            evidence += power[field] * np.logaddexp(same, other).sum()
        evidence += _size_term(parameters, self.largest)[number].sum()
        return total._replace(evidence=float(evidence) - self._apart(self.alone, parameters))

    def _urn(self, parameters: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        urn = self.likelihood.urn(parameters)
        if urn is None:
            raise ValueError(f"{self.likelihood} has no urn to draw from")
        return urn

    def _nothing(self) -> DrawnStatistics:
        fields = self.rows.records.num_fields
        return DrawnStatistics(
            np.zeros(self.largest), np.zeros(self.num_values), np.zeros(fields), np.zeros(fields), 0.0
        )


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
    term = size_terms(parameters.intensity, parameters.size_share, len(parameters.size_share), np)
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


def _log_rise(given: np.ndarray, number: np.ndarray, strength: float) -> np.ndarray:
    """Return the log probability of so many equal values in an urn, or of independent ones."""
    if np.isinf(strength):
        return number * np.log(given)
    rise = gammaln(strength * given + number) - gammaln(strength * given)
    return rise - gammaln(strength + number) + gammaln(strength)


def _size_term(parameters: Parameters, largest: int) -> Float[np.ndarray, " sizes_and_none"]:
    """Return log m s! μ_s of clusters of 0, 1, … records."""
    size, share = np.arange(1, largest + 1), parameters.size_share[:largest]
    # Before sizes are learned, those of heavy rows are as improbable as the largest one that has a share.
    share = np.append(share, np.full(largest - len(share), share[-1]))
    with np.errstate(divide="ignore"):
        return np.append(0.0, np.log(parameters.intensity) + gammaln(size + 1) + np.log(share))


def near_matrix(near: np.ndarray, number: int, entry: np.ndarray) -> csr_array:
    """Return a symmetric matrix with these entries for near values."""
    one, other = near.T
    index = np.concatenate([one, other]), np.concatenate([other, one])
    return csr_array((np.tile(entry, 2), index), shape=(number, number))
