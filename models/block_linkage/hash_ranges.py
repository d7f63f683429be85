"""The search of the join: who enters which key, and the pairs that share one, by ranges of hash bits.

A key is a set of fields with values, and stands as a hash of 64 bits, of which the highest are kept above the record in
one word. Words go to piles by their highest bits, so that equal keys are in one pile, and a pile alone is sorted. The
pairs of a pile go to piles by their first record, where those that several keys gave are united and compared. Hence no
more than a pile has to be in memory, and neither the number of piles nor that of processes changes the pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.workers import Piles, Workers
from consilience.models.rows import equal_pairs

_BLOCK = 65_536             # records looked at together, so that what they take stays in the processor's cache
_RECORDS_OF_PILE = 1 << 17  # whose words would fill a pile
_MOST_PILES = 1 << 10
_RECORDS_IN_MEMORY = 1 << 22  # whose words are kept there, some four hundred megabytes
_ROUNDING = 1e-3            # of scores in single precision; the log odds of the pairs found decide in the end
_MOST_PAIRS = 100_000_000   # found, those that several keys give counted as often ...
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

    def without(self, places: Int[np.ndarray, " place"]) -> JoinRule:
        """Return the rule of pairs that lack some of the fields, given by their places in ``fields``."""
        start = self.start - self.differ[self.fields[places]].sum()
        return self._replace(fields=np.delete(self.fields, places), start=float(start))


class Search(NamedTuple):
    """What a search is about.

    Parameters
    ----------
    rule : which pairs are found.
    first_value : shape ``(field + 1,)``; where the values of each field begin.
    num_records : of the records.
    num_piles : of words, and of pairs; a power of two.
    """

    rule: JoinRule
    first_value: Int[np.ndarray, " fields_and_one"]
    num_records: int
    num_piles: int

    @classmethod
    def of(cls, rule: JoinRule, first_value: Int[np.ndarray, " fields_and_one"], num_records: int) -> Search:
        """Choose the number of piles by that of the records."""
        needed = -(-num_records // _RECORDS_OF_PILE)
        return cls(rule, first_value, num_records, min(1 << max(needed - 1, 0).bit_length(), _MOST_PILES))

    @property
    def bits(self) -> np.uint64:
        """How many of the lowest bits of a word hold the record."""
        return np.uint64(max(self.num_records - 1, 1).bit_length())

    def first_words(self) -> np.ndarray:
        """Return where the words of each pile but the first begin: equally many highest bits, one after another."""
        return np.arange(1, self.num_piles, dtype=np.uint64) << np.uint64(65 - self.num_piles.bit_length())

    def first_pairs(self) -> np.ndarray:
        """Return where the pairs of each pile but the first begin: equally many first records, one after another."""
        records = -(-self.num_records // self.num_piles)
        return np.arange(1, self.num_piles, dtype=np.uint64) * np.uint64(records) << np.uint64(32)


def find_pairs(search: Search, lacks: np.ndarray, workers: Workers) -> Piles:
    """Find the pairs of a rule.

    Parameters
    ----------
    lacks : shape ``(record,)``; a bit for each field of the rule that a record lacks, where that counts.
    workers : which share ``value``, of the records.

    Returns
    -------
    piles : of pairs, uint64, the lower record above the other one; each pair at least once. See `pairs_of_pile`.

    Raises
    ------
    UnsupportedRequest : for more pairs than there is room for, as many identical records make.
    """
    # The last place of each field is that of a missing value, whose code is -1.
    last = search.first_value[1:]
    gain = np.insert(search.rule.gain, last, -np.inf).astype(np.float32)
    workers.share(lacks=lacks, gain=gain, hash=np.insert(_value_hashes(len(search.rule.gain)), last, np.uint64(0)))
    in_files = search.num_records > _RECORDS_IN_MEMORY
    pairs, number, most_alike = workers.piles(in_files=in_files), 0, 0
    most = max(_MOST_PAIRS, _MOST_OF_RECORD * search.num_records)
    for lacking in _unions(np.unique(lacks)).tolist():
        own = search._replace(rule=search.rule.without(np.flatnonzero(lacking >> np.arange(8) & 1)))
        words = workers.piles(in_files=in_files)
        starts = range(0, search.num_records, _BLOCK)
        for _ in workers.map(_write_words, starts, own, lacking, words):
            pass
        for found, longest in workers.map(_write_pairs, range(search.num_piles), own, lacking, words, pairs, most):
            number, most_alike = number + found, max(most_alike, longest)
            if number > most:
                raise UnsupportedRequest(
                    f"more than {most:,} comparisons would be needed; {most_alike:,} records agree in all that a link "
                    "takes. Remove exact duplicates first, add fields that tell records apart, or lower the threshold"
                )
    return pairs


def _unions(sets: np.ndarray) -> np.ndarray:
    """Return the unions of any two sets of bits, each once."""
    return np.unique(sets[:, None] | sets)


# ---- who enters which key ----


def _write_words(arrays: Mapping[str, np.ndarray], start: int, search: Search, lacking: int, words: Piles) -> None:
    """Put the words of some records on piles: of those that lack no field but these."""
    stop = min(start + _BLOCK, search.num_records)
    lacks = arrays["lacks"][start:stop]
    among = np.flatnonzero((lacks & ~lacks.dtype.type(lacking)) == 0).astype(np.int32) + np.int32(start)
    found = _entered_keys(arrays, among, search)
    found.sort()
    _add_sorted(words, found, search.first_words())


def _add_sorted(piles: Piles, ordered: np.ndarray, first: np.ndarray) -> None:
    """Add sorted values to their piles, given where each but the first begins."""
    for number, values in enumerate(np.split(ordered, np.searchsorted(ordered, first))):
        if len(values):
            piles.add(number, values)


def _entered_keys(arrays: Mapping[str, np.ndarray], among: Int[np.ndarray, " among"], search: Search) -> np.ndarray:
    """Return who entered which sets of fields: words of the hashed values above and the record below."""
    rule, value, first = search.rule, arrays["value"], search.first_value + np.arange(len(search.first_value))
    # A view takes less time than a copy, where no record is left out.
    every = len(among) and among[-1] - among[0] + 1 == len(among)
    part = slice(among[0], among[-1] + 1) if every else among
    gain, key = (
        [arrays[name][first[field] : first[field + 1]][value[field, part]] for field in rule.fields]
        for name in ("gain", "hash")
    )
    found = [
        (hashed & ~lowest(search.bits)) | among[record].astype(np.uint64)
        for record, hashed in _entered(gain, key, rule.start + _ROUNDING, len(among))
    ]
    return np.concatenate([np.zeros(0, np.uint64), *found])


def _value_hashes(num_values: int) -> np.ndarray:
    """Return a number for every value; the sum of several stands for them together.

    Sets of values that happen to have the same sum make pairs that the log odds remove.
    """
    return np.random.default_rng(0).integers(2**64, size=num_values, dtype=np.uint64)


def _entered(
    gain: list[np.ndarray], value: list[np.ndarray], start: float, num_records: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, for every set of fields, the records of a block that enter it and their hashed values."""
    most = [np.append(of_field, -np.inf).max() for of_field in gain]

    def walk(
        field: int, score: np.ndarray, least: np.ndarray, key: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        record = np.flatnonzero((score > 0) & (score <= least + np.float32(_ROUNDING)))
        if len(record):
            yield record, key[record]
        highest = score.max(initial=-np.inf)
        for more in range(field, len(gain)):
            if highest + sum(most[more:]) > 0:
                added = gain[more]
                yield from walk(more + 1, score + added, np.minimum(least, added), key + value[more])

    nothing = np.zeros(num_records, np.float32)
    yield from walk(0, nothing + np.float32(start), nothing + np.float32(np.inf), np.zeros(num_records, np.uint64))


def lowest(bits: np.uint64) -> np.uint64:
    """Return the mask of the lowest bits."""
    return (np.uint64(1) << bits) - np.uint64(1)


# ---- who shares a key ----


def _write_pairs(
    arrays: Mapping[str, np.ndarray], pile: int, search: Search, lacking: int, words: Piles, pairs: Piles, most: int
) -> tuple[int, int]:
    """Put the pairs that share a key on piles; return how many there are, and how many records share the same one."""
    ordered = words.take(pile, np.uint64)
    ordered.sort()
    ordered = _shared(ordered, search.bits)
    ordered = _lacking_together(ordered, search.bits, arrays["lacks"], lacking)
    length = _run_lengths(ordered, search.bits)
    number, longest = int(length @ (length - 1)) // 2, int(length.max(initial=0))
    if number > most:
        return number, longest
    key, record = ordered >> search.bits, ordered & lowest(search.bits)
    found = [np.zeros(0, np.uint64)]
    for one, other in equal_pairs(key):
        if lacking:
            exactly = (arrays["lacks"][record[one]] | arrays["lacks"][record[other]]) == lacking
            one, other = one[exactly], other[exactly]
        found.append(record[one] << np.uint64(32) | record[other])
    _add_sorted(pairs, distinct(np.concatenate(found)), search.first_pairs())
    return number, longest


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


# ---- pairs ----


def pairs_of_pile(pairs: Piles, pile: int) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the pairs of a pile, sorted, each once: the codes of their records, the lower one first."""
    first, second = ends(distinct(pairs.take(pile, np.uint64)))
    apart = first != second  # a record that enters two keys of the same hash
    return first[apart], second[apart]


def ends(pair: np.ndarray) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the two records of pairs, of which the lower one stands above the other in a word."""
    return (pair >> np.uint64(32)).astype(np.int32), (pair & lowest(np.uint64(32))).astype(np.int32)


def distinct(pair: np.ndarray) -> np.ndarray:
    """Return pairs sorted, each once."""
    ordered = np.sort(pair)
    again: Bool[np.ndarray, " pair"] = np.append(False, ordered[1:] == ordered[:-1])[: len(ordered)]
    return ordered[~again]
