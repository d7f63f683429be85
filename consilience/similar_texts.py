"""Which texts of a vocabulary are at most two typing errors apart, found without a look at all pairs.

Short texts: two texts that differ by two errors are the same once at most two letters are left out of each (a letter
replaced is left out of both, one put in is left out of one, two swapped lose one of them each). So every text is filed
under all that is left of it so, and those in one file are compared ("deletion neighbourhoods", Mor and Fraenkel 1982).

Long texts have too many letters to leave out. They are cut into five parts: an error touches one of them, a swap of
neighbours at most two, so that one part is found unchanged in the other text, at most two letters further on or back
(Li, Deng, Wang and Feng 2011, "Pass-Join", with parts enough for swaps).

Nothing is lost in either way. rapidfuzz decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from consilience.arrays import Float, Int
from consilience.models.rows import equal_pairs

FURTHEST_TEXTS = 2
"""Typing errors between texts that are near."""

_LONG = 15                  # letters from which texts are cut into parts
_SHORT = _LONG + FURTHEST_TEXTS - 1  # so that two texts of like length are both short, or both long
_PARTS = 5
_BASE = np.uint64(0x9E3779B97F4A7C15)   # any odd number: texts of the same hash are only candidates
_WORDS = 1 << 24            # words in memory at a time, 8 bytes each
_PAIRS = 1 << 22            # pairs compared at a time
_SAMPLE = 200               # texts that tell how many are near

Pairs = tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]


def near_texts(
    texts: list[str], furthest: int = FURTHEST_TEXTS
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"], Float[np.ndarray, " pair"]]:
    """Return all pairs of texts, in any case, that are at most so many typing errors apart.

    Parameters
    ----------
    furthest : errors, 0 to 2: letters left out, put in, replaced, or swapped with the next.

    Returns
    -------
    first, second : places in ``texts``; each pair once, the lower place first, in order.
    distance : the number of errors.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    distance = OSA.distance
    folded = np.array([text.casefold() for text in texts], object)
    length = np.array([len(text) for text in folded], int)
    found = [(np.zeros(0, np.int64), np.zeros(0, np.uint8))]
    for key in _batches(folded, length, furthest):
        first, second = np.divmod(key, max(len(texts), 1))
        apart = process.cpdist(
            folded[first], folded[second], scorer=distance, score_cutoff=furthest, dtype=np.uint8
        )
        found.append((key[apart <= furthest], apart[apart <= furthest]))
    keys, distances = (np.concatenate(column) for column in zip(*found, strict=True))
    keys, place = np.unique(keys, return_index=True)
    first, second = np.divmod(keys, max(len(texts), 1))
    return first, second, distances[place].astype(float)


def num_near(texts: list[str], furthest: int = FURTHEST_TEXTS) -> float:
    """Estimate how many pairs of texts are near, from at most 200 of the texts beside all."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    folded = [text.casefold() for text in texts]
    chosen = folded[:: max(len(folded) // _SAMPLE, 1)]
    number = 0
    for begin in range(0, len(folded), _WORDS // _SAMPLE):
        others = folded[begin : begin + _WORDS // _SAMPLE]
        apart = process.cdist(chosen, others, scorer=OSA.distance, score_cutoff=furthest, dtype=np.uint8)
        number += int(np.count_nonzero(apart <= furthest))
    return (number - len(chosen)) / max(len(chosen), 1) * len(folded) / 2


def _batches(
    folded: np.ndarray, length: Int[np.ndarray, " text"], furthest: int
) -> Iterator[Int[np.ndarray, " pair"]]:
    """Yield the pairs to compare, so many at a time, as ``lower * texts + higher``; some pairs several times."""
    number = len(folded)
    waiting, size = [np.zeros(0, np.int64)], 0
    short, long = (np.flatnonzero(which) for which in (length <= _SHORT, length >= _LONG))
    for one, other in itertools.chain(_of_short(folded, short, furthest), _of_long(folded, long)):
        waiting.append(np.minimum(one, other) * number + np.maximum(one, other))
        size += len(one)
        if size > _PAIRS:
            yield _sorted_once(np.concatenate(waiting))
            waiting, size = [], 0
    yield _sorted_once(np.concatenate(waiting))


def _sorted_once(keys: Int[np.ndarray, " key"]) -> Int[np.ndarray, " key"]:
    """Return keys sorted, each once; `numpy.unique` without places takes ten times as long."""
    keys.sort()
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


# ---- hashes of what is left of a text ----


def _prefixes(folded: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return hashes of the first 0, 1, … letters of texts of one length, ``(letter + 1, text)``; and powers."""
    letters = np.array(folded.tolist(), f"U{max(length, 1)}").view(np.uint32).reshape(len(folded), -1)
    powers = np.ones(length + 1, np.uint64)
    powers[1:] = np.cumprod(np.full(length, _BASE))
    hashes = np.zeros((length + 1, len(folded)), np.uint64)
    for place in range(length):
        hashes[place + 1] = hashes[place] * _BASE + _mixed(letters[:, place].astype(np.uint64))
    return hashes, powers


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Scatter numbers over all bits (the finaliser of splitmix64)."""
    numbers = (numbers + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)


def _part(hashes: np.ndarray, powers: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Return the hashes of the letters from ``begin`` to before ``end``."""
    return hashes[end] - hashes[begin] * powers[end - begin]


# ---- short texts: letters left out ----


def _of_short(folded: np.ndarray, short: Int[np.ndarray, " text"], furthest: int) -> Iterator[Pairs]:
    """Yield pairs of short texts that are the same with at most so many letters left out of each."""
    length = np.array([len(text) for text in folded[short]], int)
    words = sum(_num_left(size, furthest) * int(number) for size, number in enumerate(np.bincount(length)))
    ranges = words // _WORDS + 1
    for own in range(ranges):
        yield from _files(folded, short, length, furthest, own, ranges)


def _num_left(length: int, furthest: int) -> int:
    return sum(1 for number in range(furthest + 1) for _ in itertools.combinations(range(length), number))


def _files(
    folded: np.ndarray, short: np.ndarray, length: np.ndarray, furthest: int, own: int, ranges: int
) -> Iterator[Pairs]:
    """Yield the pairs that meet in one range of hashes: words of a hash above and a text below."""
    bits = np.uint64(max(len(folded), 2).bit_length())
    lowest = (np.uint64(1) << bits) - np.uint64(1)
    words = [np.zeros(0, np.uint64)]
    for size in np.unique(length).tolist():
        texts = short[length == size]
        hashes, powers = _prefixes(folded[texts], size)
        for left in _left(hashes, powers, size, furthest):
            key = _mixed(left)
            inside = slice(None) if ranges == 1 else (key >> bits) % np.uint64(ranges) == own
            words.append((key[inside] & ~lowest) | texts[inside].astype(np.uint64))
    ordered = _sorted_once(np.concatenate(words))
    key, text = ordered >> bits, (ordered & lowest).astype(np.int64)
    for one, other in equal_pairs(key):
        yield text[one], text[other]


def _left(hashes: np.ndarray, powers: np.ndarray, length: int, furthest: int) -> Iterator[np.ndarray]:
    """Yield the hashes of texts of one length without 0, 1, … of their letters."""
    for number in range(min(furthest, length) + 1):
        for places in itertools.combinations(range(length), number):
            left = np.zeros(hashes.shape[1], np.uint64)
            for begin, end in zip((0, *(place + 1 for place in places)), (*places, length), strict=True):
                left = left * powers[end - begin] + _part(hashes, powers, begin, end)
            yield left


# ---- long texts: a part that is unchanged ----


def _of_long(folded: np.ndarray, long: Int[np.ndarray, " text"]) -> Iterator[Pairs]:
    """Yield pairs of long texts in which a part of the shorter one is found in the other, about where it was."""
    length = np.array([len(text) for text in folded[long]], int)
    of_length = {size: long[length == size] for size in np.unique(length).tolist()}
    hashed = {size: _prefixes(folded[texts], size) for size, texts in of_length.items()}
    for size, texts in of_length.items():
        for more in range(FURTHEST_TEXTS + 1):
            if size + more in of_length:
                others = of_length[size + more]
                for one, other in _sharing_a_part(*hashed[size], *hashed[size + more], size, size + more):
                    yield texts[one], others[other]


def _sharing_a_part(
    hashes: np.ndarray, powers: np.ndarray, other_hashes: np.ndarray, other_powers: np.ndarray, length: int,
    other_length: int,
) -> Iterator[Pairs]:  # fmt: skip
    """Yield the places of texts of one length and of another that share a part."""
    border = np.arange(_PARTS + 1) * length // _PARTS
    for begin, end in zip(border[:-1].tolist(), border[1:].tolist(), strict=True):
        part = _part(hashes, powers, begin, end)
        order = np.argsort(part)
        for shift in range(-FURTHEST_TEXTS, FURTHEST_TEXTS + 1):
            if begin + shift < 0 or end + shift > other_length:
                continue
            wanted = _part(other_hashes, other_powers, begin + shift, end + shift)
            first, last = (np.searchsorted(part, wanted, side=side, sorter=order) for side in ("left", "right"))
            yield from _expanded(order, first, last - first, same=length == other_length)


def _expanded(order: np.ndarray, first: np.ndarray, number: np.ndarray, *, same: bool) -> Iterator[Pairs]:
    """Yield pairs of the texts in each run of the order, ``number`` from ``first`` on, with the text that asks."""
    ends = np.cumsum(number)
    asks = 0
    while asks < len(number):
        # So many texts that ask as make pairs enough, at least one.
        until = max(int(np.searchsorted(ends, (ends[asks - 1] if asks else 0) + _PAIRS)), asks + 1)
        counts = number[asks:until]
        start = np.repeat(first[asks:until] - np.cumsum(counts) + counts, counts)
        one = order[start + np.arange(counts.sum())]
        other = np.repeat(np.arange(asks, until), counts)
        keep = one < other if same else slice(None)
        yield one[keep], other[keep]
        asks = until
