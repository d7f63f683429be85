"""Candidate pairs where some fields are compared by similarity: the join, with values that are near as well as equal.

The threshold join of `join` finds the pairs that agree in enough fields. Here a field can also be *near*, which adds
less to the log odds than agreement and more than values that are far apart. For that, values are put into groups: each
pair of near values into the group of the more common one of the two, which is in it too. A misspelt name is in the
group of the name, and hardly in any other; a common name is in few groups though many values are near it. A pair of
records shares a group of a field where its values are near, and a group adds to the log odds at most what the best of
its pairs does.

So the join has two ways to look at such a field, by value and by group, and a record enters a set of both where its
score passes the threshold, and would no longer pass without the least gain. As in `join`, every pair above the
threshold shares a set that both enter, but for those below. Values in one group need not be near each other; the log
odds of the pairs decide.

Left out are

- pairs of which two fields are near and not both at most 1 apart;
- where records and values that are near them by chance are very many, pairs with a field more than 1 apart, unless a
  third value, more common than both, is at most 1 from either, as the true name is of two that are misspelt;
- pairs of values that are not near each other, but both near a third one, which adds to their log odds too;
- with missing values, pairs that lack two fields or more, as in `join` where it is not exact.

`SimilarHitMiss.found_share` says how many links the threshold hides, and tests how many are lost besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Bool, Float, Int
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.keys import distinct, ends, lowest
from consilience.models.block_linkage.parameters import value_codes
from consilience.models.rows import equal_pairs

_BLOCK = 32_768    # records looked at together; some are in several groups
_MOST_FURTHER = 500_000  # records in groups of values more than 1 apart, each counted for each group
_ROUNDING = 1e-3   # of scores in single precision; the log odds of the pairs found decide in the end
_MOST_PAIRS = 100_000_000


class NearGains(NamedTuple):
    """What values that are near add at most to the log odds of a pair, beyond values that are far apart.

    Parameters
    ----------
    near : codes of values, shape ``(near, 2)``.
    nearest : shape ``(near,)``; whether they are at most 1 apart.
    of_pair : shape ``(near,)``; where the two records have these.
    of_two : shape ``(value,)``; where both have values at most 1 away from this one.
    """

    near: Int[np.ndarray, "near 2"]
    nearest: Bool[np.ndarray, " near"]
    of_pair: Float[np.ndarray, " near"]
    of_two: Float[np.ndarray, " value"]


class Groups(NamedTuple):
    """Groups of values that are near, each called by the value that all others in it are near.

    Parameters
    ----------
    begin : shape ``(value + 1,)``; where the groups of each value begin.
    group : shape ``(entry,)``.
    gain : shape ``(value,)``; what a pair of records in a group has at most, beyond values that are far apart.
    """

    begin: Int[np.ndarray, " values_and_one"]
    group: Int[np.ndarray, " entry"]
    gain: Float[np.ndarray, " value"]


def groups_of(gains: NearGains, counts: Int[np.ndarray, " value"]) -> tuple[Groups, Groups]:
    """Put near values into groups, each pair into that of the more common one.

    Parameters
    ----------
    counts : how many records have each value.

    Returns
    -------
    nearest, further : those of values at most 1 apart, and of the others: none where there are very many.
    """
    one, other = gains.near.T
    first = (counts[one] > counts[other]) | ((counts[one] == counts[other]) & (one < other))
    centre, member = np.where(first, one, other), np.where(first, other, one)
    nearest, further = (
        _groups(centre[level], member[level], gains.of_pair[level], len(counts))
        for level in (gains.nearest, ~gains.nearest)
    )
    if counts @ np.diff(further.begin) > _MOST_FURTHER:
        # Of so many pairs nearly all are near by chance, and most of the others meet in a group of their true value.
        further = _groups(centre[:0], member[:0], gains.of_pair[:0], len(counts))
    several = np.bincount(centre[gains.nearest], minlength=len(counts)) > 1
    return nearest._replace(gain=np.maximum(nearest.gain, np.where(several, gains.of_two, 0))), further


def _groups(
    centre: Int[np.ndarray, " near"], member: Int[np.ndarray, " near"], of_pair: Float[np.ndarray, " near"],
    number: int,
) -> Groups:  # fmt: skip
    gain = np.zeros(number)
    np.maximum.at(gain, centre, of_pair)
    own = np.unique(centre)
    index = np.concatenate([member, own]), np.concatenate([centre, own])
    matrix = csr_array((np.ones(len(index[0]), bool), index), shape=(number, number))
    return Groups(matrix.indptr, matrix.indices, gain)


def find_similar_pairs(
    records: Records, rule: Any, gains: NearGains
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the pairs of records that a rule finds, with near values, sorted, each once.

    Raises
    ------
    UnsupportedRequest : for more pairs than memory holds.
    """
    # Similar fields last: then few records are left that have to be looked at in several groups.
    fields = rule.fields[np.argsort(np.asarray(records.similar)[rule.fields], kind="stable")]
    values = value_codes(records.value, records.first_value)[fields]
    counts = np.bincount(values[values >= 0], minlength=records.num_values)
    # A join of its own for each set of missing fields is not made here: slack makes up for one of them.
    lacking = rule.differ[fields][(values < 0).any(axis=1)].min(initial=0)
    similar = np.asarray(records.similar, bool)[fields]
    search = _Search.of(groups_of(gains, counts), rule.gain, similar, rule.start - lacking)
    bits = np.uint64(max(records.num_records - 1, 1).bit_length())
    words: dict[int, list[np.ndarray]] = {}
    for begin in range(0, records.num_records, _BLOCK):
        for chosen, record, key in search.entered(values[:, begin : begin + _BLOCK]):
            word = (key & ~lowest(bits)) | (record + begin).astype(np.uint64)
            words.setdefault(chosen, []).append(word)
    found, number = [np.zeros(0, np.uint64)], 0
    for chosen in list(words):
        found.append(_pairs_of_words(np.concatenate(words.pop(chosen)), bits, _MOST_PAIRS - number))
        number += len(found[-1])
    return ends(distinct(np.concatenate(found)))


def _pairs_of_words(words: np.ndarray, bits: np.uint64, most: int) -> np.ndarray:
    """Return the pairs of records that share a key, each once: the lower record above the other one."""
    words.sort()
    key = words >> bits
    length = np.diff(np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1], [True]])))
    if int(length @ (length - 1)) // 2 > most:
        raise UnsupportedRequest(
            f"more than {_MOST_PAIRS:,} comparisons would be needed; {length.max():,} records nearly agree in all that "
            "a link takes. Remove exact duplicates first, add fields that tell records apart, or lower the threshold"
        )
    record = words & lowest(bits)
    found = [record[one] << np.uint64(32) | record[other] for one, other in equal_pairs(key)]
    return distinct(np.concatenate([np.zeros(0, np.uint64), *found]))


class _Rows(NamedTuple):
    """Records on their way into a set, some of them several times: in several groups.

    Parameters
    ----------
    record : place in the block.
    score : of the fields that are in the set.
    least : the least gain of these.
    key : the sum of the hashes of their values and groups.
    """

    record: Int[np.ndarray, " row"]
    score: Float[np.ndarray, " row"]
    least: Float[np.ndarray, " row"]
    key: np.ndarray

    def where(self, keep: np.ndarray) -> _Rows:
        """Return some of the rows, or some several times."""
        return _Rows(*(column[keep] for column in self))

    def added(self, gain: Float[np.ndarray, " row"], hashes: np.ndarray) -> _Rows:
        """Return the rows with one more field in the set."""
        return _Rows(self.record, self.score + gain, np.minimum(self.least, gain), self.key + hashes)


class _Search(NamedTuple):
    """What the join looks at.

    Parameters
    ----------
    groups : of near values, the nearest and those further apart.
    gain : shape ``(value,)``; of agreement.
    best : shape ``(value,)``; the most that a value adds, by agreement or by a group.
    hashes : shape ``(value,)``; a number that stands for a value, or for the group called by it.
    similar : of each field of the join.
    start : the score of no field.
    """

    groups: tuple[Groups, Groups]
    gain: Float[np.ndarray, " value"]
    best: Float[np.ndarray, " value"]
    hashes: np.ndarray
    similar: np.ndarray
    start: float

    @classmethod
    def of(cls, groups: tuple[Groups, Groups], gain: np.ndarray, similar: np.ndarray, start: float) -> _Search:
        """Prepare a search."""
        best = gain.astype(np.float32)
        for level in groups:
            value = np.repeat(np.arange(len(gain)), np.diff(level.begin))
            np.maximum.at(best, value, level.gain[level.group].astype(np.float32))
        # The sum of several stands for them together; those with the same sum make pairs that the log odds remove.
        hashes = np.random.default_rng(0).integers(2**64, size=len(gain), dtype=np.uint64)
        return cls(groups, gain.astype(np.float32), best, hashes, similar, start)

    def entered(
        self, values: Int[np.ndarray, "join_field record"]
    ) -> Iterator[tuple[int, Int[np.ndarray, " row"], np.ndarray]]:
        """Yield, for every set as a number, the records of a block that enter it and their keys.

        The number has two bits for each field: 0 where it is in no set, 1 by value, 2 by the nearest, 3 by the further
        groups.
        """
        number = values.shape[1]
        best = np.where(values >= 0, np.append(self.best, 0)[values], 0)
        # The most that fields from each one on can add to the score of a record.
        ahead = np.concatenate([np.cumsum(best[::-1], axis=0)[::-1], np.zeros((1, number), best.dtype)])
        start = np.full(number, self.start + _ROUNDING, np.float32)
        rows = _Rows(np.arange(number), start, np.full(number, np.inf, np.float32), np.zeros(number, np.uint64))
        return self._walk(0, 0, rows, values, ahead)

    def _walk(
        self, chosen: int, place: int, rows: _Rows, values: np.ndarray, ahead: np.ndarray
    ) -> Iterator[tuple[int, Int[np.ndarray, " row"], np.ndarray]]:
        enters = (rows.score > 0) & (rows.score <= rows.least + np.float32(_ROUNDING))
        if enters.any():
            yield chosen, rows.record[enters], rows.key[enters]
        # Where a set passes, no larger one would fail without the field that is added.
        rows = rows.where(rows.score <= np.float32(_ROUNDING))
        for more in range(place, len(values)):
            rows = rows.where(rows.score + ahead[more, rows.record] > 0)
            if not len(rows.record):
                return
            has = rows.where(values[more, rows.record] >= 0)
            value = values[more, has.record]
            by_value = has.added(self.gain[value], self.hashes[value])
            yield from self._walk(chosen | 1 << 2 * more, more + 1, by_value, values, ahead)
            for mode in _modes(chosen) if self.similar[more] else ():
                groups = self.groups[mode - 2]
                # Before they are looked at several times: those that can still pass.
                can = has.score + groups.gain.max(initial=0) + ahead[more + 1, has.record] > 0
                by_group = self._by_group(has.where(can), value[can], groups)
                yield from self._walk(chosen | mode << 2 * more, more + 1, by_group, values, ahead)

    def _by_group(self, rows: _Rows, value: Int[np.ndarray, " row"], groups: Groups) -> _Rows:
        """Return rows once for each group of their values, with what the group adds."""
        begin, number = groups.begin[value], groups.begin[value + 1] - groups.begin[value]
        row = np.repeat(np.arange(len(value)), number)
        entry = np.arange(len(row)) - np.repeat(np.cumsum(number) - number - begin, number)
        group = groups.group[entry]
        return rows.where(row).added(groups.gain[group].astype(np.float32), self.hashes[group])


def _modes(chosen: int) -> tuple[int, ...]:
    """Return by which groups a field may join a set: of several near fields, all have to be nearest."""
    modes = {chosen >> place & 3 for place in range(0, chosen.bit_length(), 2)}
    if 3 in modes:
        return ()
    return (2,) if 2 in modes else (2, 3)
