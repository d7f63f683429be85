"""Shares of votes: their definition, the sizes at which codes need a wider integer, and parts that are the whole."""

import collections

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.data import Annotations
from consilience.models.crowd import gate_sums, pairs, shares
from consilience.models.crowd.gate import signal
from consilience.models.crowd.pairs import agreement_by, annotator_pairs
from consilience.models.crowd.shares import Shares

ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(-1, 4), st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    min_size=1, max_size=40,
)  # fmt: skip
# Items, annotators and labels, and the bytes of the code of each.
SIZES = [
    ((256, 65_536, 256), (1, 2, 1)),
    ((257, 65_537, 257), (2, 4, 2)),
    ((65_537, 256, 256), (4, 1, 1)),
    ((3, 2, 70_000), (1, 1, 4)),
]


def by_definition(data):
    """Item, annotator and label -> share."""
    said, total = collections.defaultdict(float), collections.defaultdict(float)
    columns = (np.asarray(own).tolist() for own in (data.item, data.annotator, data.label, data.weight))
    for item, annotator, label, weight in zip(*columns, strict=True):
        if weight > 0 and annotator >= 0:
            said[item, annotator, label] += weight
            total[item, annotator] += weight
    return {key: weight / total[key[:2]] for key, weight in sorted(said.items())}


def entries(found, begin=0):
    codes = zip(found.item + begin, found.annotator, found.label, strict=True)
    return dict(zip(codes, found.share.tolist(), strict=True))


def crowd_of(rows, **sizes):
    item, annotator, label, weight = (np.array(own) for own in zip(*rows, strict=True))
    made = Annotations.from_codes(item, np.maximum(annotator, 0), label, weight=weight, **sizes)
    return made.replace(annotator=annotator.astype(np.int32))


def at_the_ends(sizes):
    """Both ends of all codes, in no order, and one annotator who gives an item two labels."""
    last = [size - 1 for size in sizes]
    rows = [(last[0], last[1], last[2], 1.0), (0, 0, 0, 1.0), (0, last[1], last[2], 1.0), (last[0], 0, last[2], 1.0),
            (0, last[1], 0, 1.0), (last[0], last[1], last[2], 1.0)]  # fmt: skip
    return crowd_of(rows, num_items=sizes[0], num_annotators=sizes[1], num_labels=sizes[2])


@settings(max_examples=80, deadline=None)
@given(ROWS, st.sampled_from([1, 3, 1000]))
def test_shares_are_their_definition_in_parts_of_any_size(rows, size):
    data = crowd_of(rows, num_items=7, num_annotators=5, num_labels=3)
    expected = by_definition(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shares, "_ENTRIES", size)
        found = Shares.of(data)
        parts = [(items, part) for items, part in found.parts()]
    assert entries(found) == pytest.approx(expected)
    assert list(entries(found)) == list(expected)
    joined = {}
    for items, part in parts:
        assert part.num_items == items.stop - items.start
        assert {own.dtype for own in part[:3]} == {np.dtype(np.int64)}
        joined |= entries(part, items.start)
    assert list(joined.items()) == list(entries(found).items())


@pytest.mark.parametrize(("sizes", "widths"), SIZES)
def test_codes_are_as_wide_as_they_have_to_be(sizes, widths):
    data = at_the_ends(sizes)
    found = Shares.of(data)
    assert tuple(own.itemsize for own in found[:3]) == widths
    assert entries(found) == by_definition(data)
    # Cells by their numbers, where products of narrow codes would overflow.
    assert found.first.tolist() == [0, 1, 3, 4]
    assert found.met().nnz == 4
    assert found.by_label().shape[1] == len({(item, label) for item, _, label in by_definition(data)})


@pytest.mark.parametrize("sizes", [(300, 20, 256), (300, 20, 257), (256, 20, 3)])
def test_sums_of_narrow_codes_are_those_of_wide_ones(sizes):
    random = np.random.default_rng(0)
    item, annotator = np.nonzero(random.random(sizes[:2]) < 0.5)
    label = random.integers(0, sizes[2], sizes[0])[item]
    label = np.where(random.random(len(item)) < 0.6, label, random.integers(0, sizes[2], len(item)))
    data = Annotations.from_codes(item, annotator, label, num_items=sizes[0], num_labels=sizes[2])
    narrow, wide = Shares.of(data), Shares.of(data).wide()
    assert narrow.label.itemsize < wide.label.itemsize
    for by in (gate_sums.by_items, gate_sums.by_pairs):
        for both in zip(by(narrow), by(wide), strict=True):
            np.testing.assert_array_equal(*(own if isinstance(own, np.ndarray) else own.toarray() for own in both))
    given_label = np.bincount(data.label, minlength=sizes[2])
    rates = gate_sums.label_rates(narrow)[1].toarray()
    np.testing.assert_allclose(rates.T @ np.bincount(annotator), given_label)


def test_one_label_of_each_cell_takes_no_memory_for_shares():
    once = Annotations.from_codes([0, 0, 1], [0, 1, 1], [1, 0, 1])
    assert Shares.of(once).share.strides == (0,)
    assert Shares.of(once).share.tolist() == [1.0, 1.0, 1.0]
    twice = Annotations.from_codes([0, 0, 1], [0, 0, 1], [1, 0, 1])
    assert Shares.of(twice).share.tolist() == [0.5, 0.5, 1.0]


def test_pairs_and_signal_are_the_same_item_by_item(monkeypatch):
    random = np.random.default_rng(1)
    item, annotator = (random.integers(0, size, 900) for size in (60, 8))
    data = Annotations.from_codes(item, annotator, random.integers(0, 3, 900), weight=random.integers(1, 3, 900))
    q, confusion = random.dirichlet([0.3] * 3, 60), random.dirichlet([1] * 3, (8, 3))

    def asked():
        table = annotator_pairs(data, q, agreement_by(lambda chosen: confusion[chosen]))
        return np.stack([*table.values()], axis=1), signal.__wrapped__(data)

    table, found = asked()
    monkeypatch.setattr(shares, "_ENTRIES", 20)
    monkeypatch.setattr(pairs, "_BLOCK", 9)
    again, other = asked()
    assert len(table) > 10
    np.testing.assert_allclose(again, table)
    np.testing.assert_allclose([other.z, *other.annotator_z], [found.z, *found.annotator_z])
