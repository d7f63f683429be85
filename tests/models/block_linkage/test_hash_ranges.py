"""Words and pairs are on the piles where they belong; the search itself is tested with the join."""

import numpy as np
import pytest

from consilience.models.block_linkage.hash_ranges import JoinRule, Search, _add_sorted
from consilience.models.block_linkage.workers import Piles


def search(num_records, num_piles=None):
    rule = JoinRule(np.array([0]), 0.0, np.zeros(1), np.zeros(1))
    found = Search.of(rule, np.array([0]), num_records)
    return found if num_piles is None else found._replace(num_piles=num_piles)


@pytest.mark.parametrize(
    ("num_records", "expected"), [(0, 1), (1, 1), (100_000, 1), (300_000, 4), (10**6, 8), (10**7, 128), (10**9, 1024)]
)
def test_there_are_as_many_piles_as_records_need(num_records, expected):
    assert search(num_records).num_piles == expected


@pytest.mark.parametrize("num_piles", [1, 4, 64])
def test_words_go_to_piles_by_their_highest_bits(num_piles):
    words = np.sort(np.random.default_rng(0).integers(2**64, size=5000, dtype=np.uint64))
    words[:2], words[-2:] = 0, 2**64 - 1
    piles, taken = Piles(None), []
    _add_sorted(piles, words, search(1000, num_piles).first_words())
    for number in range(num_piles):
        taken.append(piles.take(number, np.uint64))
        assert (taken[-1].astype(object) * num_piles // 2**64 == number).all()
    np.testing.assert_array_equal(np.concatenate(taken), words)


@pytest.mark.parametrize("num_records", [3, 1000])
def test_pairs_go_to_piles_by_their_first_record(num_records):
    first = np.sort(np.random.default_rng(0).integers(num_records, size=500))
    pairs = first.astype(np.uint64) << np.uint64(32) | np.uint64(2**32 - 1)
    piles, taken = Piles(None), []
    _add_sorted(piles, pairs, search(num_records, 8).first_pairs())
    for number in range(8):
        taken.append(piles.take(number, np.uint64))
        assert set((taken[-1] >> np.uint64(32)) // np.uint64(-(-num_records // 8))) <= {number}
    np.testing.assert_array_equal(np.concatenate(taken), pairs)
