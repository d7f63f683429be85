"""Keys: who enters which set of fields with which values, the same for every engine; and the search for equal ones.

A key is a set of fields with values, and stands as a hash of 64 bits, the sum of those of its values. A key of more
than 1,000 records would cost half a million pairs and more, and says little. Its records enter instead the key
extended by each further field, and where that is as common by a second and a third one. Pairs that agree in such a
key and in too little else are never looked at; they are counted.

The search here is that of one process, in memory: the highest bits of a hash and the record are one word, words are
divided by ranges of their highest bits, and a range alone is sorted. What SQL does instead is in `engines`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.errors import TooLarge
from consilience.models.rows import equal_pairs

MOST_OF_KEY = 1000
"""More records than this share no key that is looked at."""

_FURTHER = 3                # fields that extend a key
_BLOCK = 65_536             # records looked at together, so that what they take stays in the processor's cache
_RECORDS_OF_RANGE = 1 << 17 # whose words are sorted together
_MOST_RANGES = 1 << 10
_ROUNDING = 1e-3            # of scores in single precision; the log odds of the pairs found decide in the end
_MOST_PAIRS = 100_000_000   # in memory, those that several keys give counted as often ...
_MOST_OF_RECORD = 20        # ... or so many for each record, where that is more


class JoinRule(NamedTuple):
    """Which pairs the join finds: those with ``start`` plus the gains of the values that they share above zero.

    Parameters
    ----------
    fields : integers, shape ``(join_field,)``; the fields that count, the most informative first.
    start : threshold and slack added to the log odds of a pair that differs in all these fields.
    gain : float64, shape ``(value,)``; what agreement on a value adds.
    differ : float64, shape ``(field,)``; what differing adds, in the start, and what pairs that lack the field are
        given back. Zero where slack makes up for missing values.
    """

    fields: Int[np.ndarray, " join_field"]
    start: float
    gain: Float[np.ndarray, " value"]
    differ: Float[np.ndarray, " field"]

    def lacking(self, value: Int[np.ndarray, "field record"]) -> Int[np.ndarray, " record"]:
        """Return a bit for each of the fields that count, and are given back, and that a record lacks."""
        lacks = np.zeros(value.shape[1], np.int16)
        for place, field in enumerate(self.fields.tolist()):
            if self.differ[field] < 0:
                lacks |= (value[field] < 0).astype(np.int16) << np.int16(place)
        return lacks


class Keys(NamedTuple):
    """What says which keys a record enters: arrays alone, which an engine hands to whoever goes through records.

    Parameters
    ----------
    rule : of the join.
    first : integers, shape ``(field + 1,)``; where the values of each field begin below; the last one of each field is
        that of a missing value, whose code is -1.
    gain, hash : float32 and uint64, shape ``(value + field,)``; what agreement adds, and what stands for the value.
    common : uint64, sorted; keys of too many records. Where there are some, records enter only what extends these.
    mask : uint64; the bits of a key that tell it from others.
    """

    rule: JoinRule
    first: Int[np.ndarray, " fields_and_one"]
    gain: np.ndarray
    hash: np.ndarray
    common: np.ndarray
    mask: np.uint64

    @classmethod
    def of(cls, rule: JoinRule, first_value: Int[np.ndarray, " fields_and_one"]) -> Keys:
        """Return the keys of a rule."""
        last = np.asarray(first_value[1:])
        return cls(
            rule=rule,
            first=np.asarray(first_value) + np.arange(len(first_value)),
            gain=np.insert(rule.gain, last, -np.inf).astype(np.float32),
            hash=np.insert(_value_hashes(len(rule.gain)), last, np.uint64(0)),
            common=np.zeros(0, np.uint64),
            mask=np.uint64(2**64 - 1),
        )

    def extending(self, common: np.ndarray) -> Keys:
        """Return the keys that extend those of too many records, in the place of these themselves."""
        return self._replace(common=np.union1d(self.common, common))

    def is_common(self, key: np.ndarray) -> Bool[np.ndarray, " key"]:
        """Return whether these are keys of too many records."""
        if not len(self.common):
            return np.zeros(len(key), bool)
        own = key & self.mask
        return self.common[np.searchsorted(self.common, own) % len(self.common)] == own


def _value_hashes(num_values: int) -> np.ndarray:
    """Return a number for every value; the sum of several stands for them together.

    Sets of values that happen to have the same sum make pairs that the log odds remove.
    """
    return np.random.default_rng(0).integers(2**64, size=num_values, dtype=np.uint64)


def unions(lacks: np.ndarray) -> list[int]:
    """Return the unions of any two sets of lacking fields, each once: there is a join for each."""
    sets = np.unique(lacks)
    return np.unique(sets[:, None] | sets).tolist()


def entered_keys(
    value: Int[np.ndarray, "field record"], keys: Keys, lacking: int = 0
) -> tuple[Int[np.ndarray, " entered"], np.ndarray]:
    """Return who enters which keys: places of records of a block, and uint64 keys.

    Parameters
    ----------
    value : codes within each field, -1 where missing.
    lacking : the join is that of pairs that lack exactly these of the rule's fields, a bit for each place among them;
        records that lack others should be left out.
    """
    rule, used = keys.rule, np.array([not lacking >> place & 1 for place in range(len(keys.rule.fields))], bool)
    fields = rule.fields[used]
    start = rule.start - rule.differ[rule.fields[~used]].sum() + _ROUNDING
    gain = [_of_values(keys.gain, value, keys, field) for field in fields.tolist()]
    hashed = [_of_values(keys.hash, value, keys, field) for field in fields.tolist()]
    salt = np.uint64(lacking * 0x9E3779B97F4A7C15 % 2**64)  # keys of other joins are others
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for places, record, key in _entered(gain, hashed, start, salt, value.shape[1]):
        if len(keys.common):
            too_common = keys.is_common(key)
            known = frozenset(fields[list(places)].tolist())
            found += _extended(value, keys, known, record[too_common], key[too_common])
        else:
            found.append((record, key))
    nothing = np.zeros(0, int), np.zeros(0, np.uint64)
    record, key = map(np.concatenate, zip(nothing, *found, strict=True))
    return record, key


def _of_values(table: np.ndarray, value: np.ndarray, keys: Keys, field: int) -> np.ndarray:
    return table[keys.first[field] : keys.first[field + 1]][value[field]]


def _entered(
    gain: list[np.ndarray], hashed: list[np.ndarray], start: float, salt: np.uint64, num_records: int
) -> Iterator[tuple[tuple[int, ...], np.ndarray, np.ndarray]]:
    """Yield every set of fields, by their places, the records of a block that enter it, and their keys."""
    most = [np.append(of_field, -np.inf).max() for of_field in gain]

    def walk(
        places: tuple[int, ...], score: np.ndarray, least: np.ndarray, key: np.ndarray
    ) -> Iterator[tuple[tuple[int, ...], np.ndarray, np.ndarray]]:
        record = np.flatnonzero((score > 0) & (score <= least + np.float32(_ROUNDING)))
        if len(record):
            yield places, record, key[record]
        highest, following = score.max(initial=-np.inf), places[-1] + 1 if places else 0
        for more in range(following, len(gain)):
            if highest + sum(most[more:]) > 0:
                added = gain[more]
                yield from walk((*places, more), score + added, np.minimum(least, added), key + hashed[more])

    nothing = np.zeros(num_records, np.float32)
    yield from walk((), nothing + np.float32(start), nothing + np.float32(np.inf), np.full(num_records, salt))


def _extended(
    value: np.ndarray, keys: Keys, known: frozenset[int], record: np.ndarray, key: np.ndarray,
    begin: int = 0, most: int = _FURTHER,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """Yield who enters the keys that extend some that are too common, by one field and more, in increasing order.

    Nothing is lost by the order: where the key with a later field alone is not too common, its pairs are found there.
    """
    if not most or not len(record):
        return
    for field in range(begin, len(value)):
        if field not in known:
            has = value[field, record] >= 0
            own = record[has]
            longer = key[has] + _of_values(keys.hash, value[:, own], keys, field)
            too_common = keys.is_common(longer)
            yield own[~too_common], longer[~too_common]
            yield from _extended(value, keys, known, own[too_common], longer[too_common], field + 1, most - 1)


# ---- the search in memory ----


class FoundPairs(NamedTuple):
    """Pairs that share a key, each once, sorted by their records.

    Parameters
    ----------
    ranges : pairs by ranges of their first record: int32 codes of the first, the lower one, and of the second.
    unseen : how many pairs at most share a key of too many records and were not looked at.
    """

    ranges: list[tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]]
    unseen: int


def find_pairs(value: Int[np.ndarray, "field record"], keys: Keys) -> FoundPairs:
    """Find the pairs of records that share a key.

    Raises
    ------
    TooLarge : for more pairs than there is room for.
    """
    num_records, lacks = value.shape[1], keys.rule.lacking(value)
    number = min(1 << max(-(-num_records // _RECORDS_OF_RANGE) - 1, 0).bit_length(), _MOST_RANGES)
    bits = np.uint64(max(num_records - 1, 1).bit_length())
    keys = keys._replace(mask=~lowest(bits))
    most = max(_MOST_PAIRS, _MOST_OF_RECORD * num_records)
    pairs, unseen, left = _Ranges(number, num_records), 0, most
    for lacking in unions(lacks):
        words = _words(value, keys, lacks, lacking, number, bits)
        common, size, left = _join_words(words, lacks, lacking, bits, pairs, left)
        unseen += int(size @ (size - 1)) // 2
        extending = keys
        while len(common):
            extending, more = extending.extending(common), _Ranges(number, num_records)
            words = _words(value, extending, lacks, lacking, number, bits)
            common, _, room = _join_words(words, lacks, lacking, bits, more, left)
            if not len(common):
                left = room
                unseen -= sum(pairs.add(distinct(more.take(place))) for place in range(number))
    ranges = [ends(distinct(pairs.take(place))) for place in range(number)]
    # A record that enters two keys of the same hash is no pair with itself.
    ranges = [(first[first != second], second[first != second]) for first, second in ranges]
    others = num_records * (num_records - 1) // 2 - sum(len(first) for first, _ in ranges)
    return FoundPairs(ranges, max(min(unseen, others), 0))  # a pair may share several such keys


class _Ranges:
    """Words in memory, divided by what they begin with; a range is taken as a whole."""

    def __init__(self, number: int, num_records: int | None = None) -> None:
        """Divide by the highest bits, or where the number of records is given by the first record of a pair."""
        self._arrays: list[list[np.ndarray]] = [[] for _ in range(number)]
        if num_records is None:
            self._first = np.arange(1, number, dtype=np.uint64) << np.uint64(65 - number.bit_length())
        else:
            records = -(-num_records // number)
            self._first = np.arange(1, number, dtype=np.uint64) * np.uint64(records) << np.uint64(32)

    def add(self, ordered: np.ndarray) -> int:
        """Add sorted words, and return how many."""
        for own, words in zip(self._arrays, np.split(ordered, np.searchsorted(ordered, self._first)), strict=True):
            own.append(words)
        return len(ordered)

    def take(self, place: int) -> np.ndarray:
        """Return the words of a range, in no order, and forget them."""
        words = np.concatenate([np.zeros(0, np.uint64), *self._arrays[place]])
        self._arrays[place].clear()
        return words

    def __len__(self) -> int:
        return len(self._arrays)


def _words(
    value: np.ndarray, keys: Keys, lacks: np.ndarray, lacking: int, number: int, bits: np.uint64
) -> _Ranges:
    """Return who enters which keys of the records that lack no field but these: keys above, and the record below."""
    words = _Ranges(number)
    for begin in range(0, value.shape[1], _BLOCK):
        block, own = value[:, begin : begin + _BLOCK], lacks[begin : begin + _BLOCK]
        among = np.flatnonzero((own & ~np.int16(lacking)) == 0)
        # A view takes less time than a copy, where no record is left out.
        record, key = entered_keys(block if len(among) == len(own) else block[:, among], keys, lacking)
        found = (key & ~lowest(bits)) | (among[record] + begin).astype(np.uint64)
        found.sort()
        words.add(found)
    return words


def _join_words(
    words: _Ranges, lacks: np.ndarray, lacking: int, bits: np.uint64, pairs: _Ranges, most: int
) -> tuple[np.ndarray, Int[np.ndarray, " common"], int]:
    """Add the pairs of records that share a key; return the keys of too many, of how many, and what room is left."""
    common, sizes, left = [np.zeros(0, np.uint64)], [np.zeros(0, int)], most
    for place in range(len(words)):
        ordered = words.take(place)
        ordered.sort()
        ordered = _shared(ordered, bits)
        ordered = _lacking_together(ordered, bits, lacks, lacking)
        length = _run_lengths(ordered, bits)
        if len(length) and length.max() > MOST_OF_KEY:
            large = length > MOST_OF_KEY
            common.append(ordered[(np.cumsum(length) - length)[large]] & ~lowest(bits))
            sizes.append(length[large])
            ordered, length = ordered[np.repeat(~large, length)], length[~large]
        left -= int(length @ (length - 1)) // 2
        if left < 0:
            raise TooLarge(
                f"more than {most:,} comparisons would be needed, too many for memory: add fields that tell records "
                'apart, lower the threshold, or give engine="duckdb", which keeps them on disk'
            )
        key, record = ordered >> bits, ordered & lowest(bits)
        found = [np.zeros(0, np.uint64)]
        for one, other in equal_pairs(key):
            if lacking:
                exactly = (lacks[record[one]] | lacks[record[other]]) == lacking
                one, other = one[exactly], other[exactly]
            found.append(record[one] << np.uint64(32) | record[other])
        pairs.add(distinct(np.concatenate(found)))
    return np.concatenate(common), np.concatenate(sizes), left


def lowest(bits: np.uint64) -> np.uint64:
    """Return the mask of the lowest bits."""
    return (np.uint64(1) << bits) - np.uint64(1)


def _shared(ordered: np.ndarray, bits: np.uint64) -> np.ndarray:
    """Leave out, of sorted words, those whose key no other record shares."""
    key = ordered >> bits
    same = key[1:] == key[:-1]
    return ordered[np.append(same, False) | np.append(False, same)] if len(ordered) else ordered


def _lacking_together(words: np.ndarray, bits: np.uint64, lacks: np.ndarray, lacking: int) -> np.ndarray:
    """Leave out the runs of records among which nobody lacks some field of those that are to be lacking."""
    if not lacking or not len(words):
        return words
    length = _run_lengths(words, bits)
    own = lacks[(words & lowest(bits)).astype(np.int32)]
    return words[np.repeat(np.bitwise_or.reduceat(own, np.cumsum(length) - length) == lacking, length)]


def _run_lengths(words: np.ndarray, bits: np.uint64) -> Int[np.ndarray, " run"]:
    """Return how many records share each key."""
    if not len(words):
        return np.zeros(0, np.int64)
    key = words >> bits
    return np.diff(np.concatenate([[0], np.flatnonzero(key[1:] != key[:-1]) + 1, [len(key)]]))


def ends(pair: np.ndarray) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the two records of pairs, of which the lower one stands above the other in a word."""
    return (pair >> np.uint64(32)).astype(np.int32), (pair & lowest(np.uint64(32))).astype(np.int32)


def distinct(pair: np.ndarray) -> np.ndarray:
    """Return pairs sorted, each once."""
    ordered = np.sort(pair)
    again: Bool[np.ndarray, " pair"] = np.append(False, ordered[1:] == ordered[:-1])[: len(ordered)]
    return ordered[~again]
