import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import consilience as cs
from consilience.data import Annotations
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement import counts as module
from consilience.evaluation.agreement.counts import LabelCounts
from tests.evaluation.agreement.tables import TABLE, tables


def codes(table):
    item, label = np.nonzero(table)
    return np.repeat(item, table[item, label]), np.repeat(label, table[item, label])


def of(table):
    return LabelCounts.of_codes(*codes(table), num_items=len(table), num_labels=table.shape[1])


def check(counts, table):
    pairs = table * (table - 1)
    np.testing.assert_array_equal(counts.size, table.sum(1))
    np.testing.assert_array_equal(counts.pairs, pairs.sum(1))
    np.testing.assert_array_equal(counts.triples, (pairs * (table - 2)).sum(1))
    np.testing.assert_array_equal(counts.label_totals, table.sum(0))
    dense = np.zeros_like(table)
    dense[counts.entries.item, counts.entries.label] = counts.entries.number
    np.testing.assert_array_equal(dense, table)
    assert counts.num_annotations == table.sum()


@given(tables(6, num_items=(1, 8)), st.booleans())
def test_counts_are_those_of_the_table(table, sparse):
    with pytest.MonkeyPatch.context() as patch:
        if sparse:
            patch.setattr(module, "_CELLS", 0)
            patch.setattr(module, "_CELLS_PER_ROW", 0)
        check(of(table), table)
        item, label = np.nonzero(table >= 0)
        check(LabelCounts.of_codes(item, label, table[item, label], num_items=len(table), num_labels=3), table)


@pytest.mark.parametrize("num_labels", [3, 10_000_000])
def test_narrow_codes_of_items_do_not_overflow(num_labels):
    # Cells are numbered beyond what the items' own type holds: in a table, and sorted where that would be too large.
    item, label = np.repeat(np.arange(200, dtype=np.uint8), 2), np.zeros(400, np.int8)
    counts = LabelCounts.of_codes(item, label, num_labels=num_labels)
    np.testing.assert_array_equal(counts.size, np.full(200, 2))
    np.testing.assert_array_equal(counts.entries.item, np.arange(200))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.int64])
def test_narrow_columns_in_any_order(kind):
    item, label = codes(np.tile(TABLE, (20, 1)))
    order = np.random.default_rng(0).permutation(len(item))
    counts = LabelCounts.of_codes(item[order].astype(np.int32), label[order].astype(kind))
    check(counts, np.tile(TABLE, (20, 1)))


def test_blocks_make_no_difference(monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 7)
    monkeypatch.setattr(module, "_CELLS", 11)
    check(of(np.tile(TABLE, (20, 1))), np.tile(TABLE, (20, 1)))


def test_agreement_of_items():
    np.testing.assert_allclose(of(TABLE).agreement, [1 / 2, 1 / 3, 1, np.nan])
    np.testing.assert_allclose(of(np.array([[5, 3, 2, 1]])).agreement, [14 / 55])  # Figure 1 of the paper


def test_patterns_count_usable_items():
    patterns = of(np.vstack([TABLE, TABLE, [[0, 0, 0]]])).patterns
    rows = sorted(zip(patterns.size, patterns.pairs, patterns.triples, patterns.multiplicity, strict=True))
    assert rows == [(2, 2, 0, 2), (3, 2, 0, 2), (4, 6, 6, 2)]
    assert patterns.num_items == 6


def test_large_items_are_patterns_of_their_own():
    # n, e and t take 20 + 40 + 60 bits: too many to be packed into one number.
    counts = LabelCounts.of_codes(np.array([0, 1]), np.array([0, 0]), np.array([10**6, 2]))
    np.testing.assert_array_equal(counts.patterns.pairs, [10**6 * (10**6 - 1), 2])
    np.testing.assert_array_equal(counts.patterns.agreement, [1, 1])


def test_annotations_and_their_weights():
    by_row = cs.read_annotations({"item": list("aab"), "annotator": list("xyx"), "label": list("ppq")})
    check(LabelCounts.of_annotations(by_row), np.array([[2, 0], [0, 1]]))
    check(LabelCounts.of_annotations(Annotations.from_counts(TABLE)), TABLE)
    assert list(LabelCounts.of_annotations(by_row).labels) == ["p", "q"]


@pytest.mark.parametrize(("given_columns", "words"), [
    (([0.5], [0]), "whole-number codes"),
    (([0, 1], [0]), "differ in length"),
    (([-1], [0]), "codes from -1 to -1"),
    (([3], [0]), "give codes from 0 to 1"),
])  # fmt: skip
def test_wrong_columns_are_refused(given_columns, words):
    with pytest.raises(UnsupportedRequest, match=words):
        LabelCounts.of_codes(*map(np.array, given_columns), num_items=2, num_labels=1)


def test_weights_have_to_be_numbers_of_annotations():
    with pytest.raises(UnsupportedRequest, match="the weight 1.5 is not a number of annotations"):
        LabelCounts.of_annotations(Annotations.from_counts([[2.0, 1.5]]))


def test_nothing():
    counts = LabelCounts.of_codes(np.zeros(0, int), np.zeros(0, int), num_items=2, num_labels=3)
    assert np.isnan(counts.agreement).all()
    assert len(counts.patterns.size) == len(counts.entries.item) == counts.num_annotations == 0
