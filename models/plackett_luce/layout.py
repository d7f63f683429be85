"""The tables that the Gibbs sampler of Plackett-Luce works on: which classes race against which.

A report is a sequence of stages. At each stage the classes that it has not ranked yet race, the first to arrive is
ranked next, and the race goes on among the rest. The likelihood of a report therefore depends on nothing but the sets
of classes that race, and on who won. Reports of one item share most of these sets, so the sets are listed once:

* a block of one class is a stage with a known winner;
* a pair is two stages whose order is unknown: first all race, then all but the one that came first;
* a larger tie names its members and the set that is left when the last of them has arrived.

Blocks with nothing left below them are certain to come last: they carry no information and appear nowhere.

An item's local weights are those of its entries, the classes that somebody named, and one for all the others
together. In the tables, weight ``e < entry`` is that of entry e, and weight ``entry + i`` is the other of item i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.rankings import Rankings
from consilience.models.plackett_luce.priors import num_unnamed
from consilience.models.rows import ranges

# Bits of an int64 without its sign.
_WORD = 63


class Layout(NamedTuple):
    """Races, pairs and larger ties of all items; indices are int32.

    Parameters
    ----------
    entry_item : shape ``(entry,)``, sorted.
    weight_item : shape ``(weight,)``; the item of each weight.
    has_other : shape ``(item,)``; whether some class of the item is named by nobody.
    wins : shape ``(entry,)``; number of blocks that name the entry and have something below them.
    race : shape ``(runner,)``, sorted; with ``runner``, one row for each weight in each set that races.
    runner : shape ``(runner,)``; the weight.
    stages : shape ``(race,)``; how often the set is known to have raced until its first arrival. A larger tie also has
        a race of its members and all below, which counts no stage for it.
    first_race : shape ``(item + 1,)``; the races of item i are ``first_race[i]:first_race[i + 1]``. The first of them
        is that of all its weights, which may have no stage.
    race_item : shape ``(race,)``, sorted.
    pair_races : shape ``(pair, 2)``; the sets that are left when the one, or the other, of two tied classes is the
        second to arrive.
    pair_count : shape ``(pair,)``; number of reports with this pair above the same classes.
    tie_below : shape ``(tie,)``; the set that is left below a tie of three or more.
    tied, tied_entry : shape ``(tied,)``; tie, sorted, and entry of each member of the larger ties.
    tied_row : shape ``(tied,)``; the row of the data that names the member.
    weight, clock : shape ``(exposure,)``; each weight, sorted, and the clocks that run while it races: clock
        ``c < race`` is that of race c, clock ``race + t`` ends with the arrival of member t of the larger ties.
    """

    entry_item: Int[Array, " entry"]
    weight_item: Int[Array, " weight"]
    has_other: Bool[Array, " item"]
    wins: Float[Array, " entry"]
    race: Int[Array, " runner"]
    runner: Int[Array, " runner"]
    stages: Float[Array, " race"]
    first_race: Int[Array, " boundary"]
    race_item: Int[Array, " race"]
    pair_races: Int[Array, "pair 2"]
    pair_count: Float[Array, " pair"]
    tie_below: Int[Array, " tie"]
    tied: Int[Array, " tied"]
    tied_entry: Int[Array, " tied"]
    tied_row: Int[Array, " tied"]
    weight: Int[Array, " exposure"]
    clock: Int[Array, " exposure"]


class _Blocks(NamedTuple):
    """The blocks with something below them; a set is known by its item and the entries that are out of it, as bits."""

    first_row: Int[np.ndarray, " block"]
    size: Int[np.ndarray, " block"]
    item: Int[np.ndarray, " block"]
    above: Int[np.ndarray, "block word"]
    through: Int[np.ndarray, "block word"]


def layout(data: Rankings, num_copies: int = 1) -> Layout:
    """Return the tables of all items; NumPy arrays, made on the host.

    Parameters
    ----------
    num_copies : how often each tie of three or more is listed; stages and pairs are counted once.
    """
    entry_item, row_entry = np.asarray(data.entry_item), np.asarray(data.entry)
    bits = _entry_bits(entry_item, data.num_items)
    blocks = _informative_blocks(data, bits)
    single, pair, tie = blocks.size == 1, blocks.size == 2, blocks.size > 2

    pair_row = blocks.first_row[pair]
    tied_row, tied = _rows_of(np.repeat(blocks.first_row[tie], num_copies), np.repeat(blocks.size[tie], num_copies))
    missing = [
        np.zeros((data.num_items, bits.shape[1]), bits.dtype),
        blocks.above[tie],
        blocks.above[single | pair],
        blocks.above[pair] | bits[row_entry[pair_row + 1]],
        blocks.above[pair] | bits[row_entry[pair_row]],
        blocks.through[tie],
    ]
    item = [np.arange(data.num_items), *(blocks.item[kind] for kind in (tie, single | pair, pair, pair, tie))]
    sets = np.column_stack([np.concatenate(item), np.concatenate(missing)])
    first, race_of = _distinct(sets)
    _, _, of_stage, *of_pair, of_tie = np.split(race_of, np.cumsum([len(part) for part in item])[:-1])
    has_other = np.asarray(num_unnamed(data)) > 0
    race_item = sets[first, 0]
    race, runner = _runners(race_item, sets[first, 1:], entry_item, bits, has_other)

    pair_races = np.column_stack(of_pair)
    first_pair, pair_of = _distinct(pair_races)
    weight = np.concatenate([runner, row_entry[tied_row]])
    clock = np.concatenate([race, len(first) + np.arange(len(tied))])
    order = np.lexsort((clock, weight))
    winners, _ = _rows_of(blocks.first_row, blocks.size)
    return Layout(
        entry_item=entry_item.astype(np.int32),
        weight_item=np.concatenate([entry_item, np.arange(data.num_items)]).astype(np.int32),
        has_other=has_other,
        wins=np.bincount(row_entry[winners], minlength=data.num_entries).astype(float),
        race=race.astype(np.int32),
        runner=runner.astype(np.int32),
        stages=np.bincount(of_stage, minlength=len(first)).astype(float),
        first_race=np.searchsorted(race_item, np.arange(data.num_items + 1)).astype(np.int32),
        race_item=race_item.astype(np.int32),
        pair_races=pair_races[first_pair].astype(np.int32),
        pair_count=np.bincount(pair_of, minlength=len(first_pair)).astype(float),
        tie_below=np.repeat(of_tie, num_copies).astype(np.int32),
        tied=tied.astype(np.int32),
        tied_entry=row_entry[tied_row].astype(np.int32),
        tied_row=tied_row.astype(np.int32),
        weight=weight[order].astype(np.int32),
        clock=clock[order].astype(np.int32),
    )


def _entry_bits(entry_item: Int[np.ndarray, " entry"], num_items: int) -> Int[np.ndarray, "entry word"]:
    """Give the entries of an item a bit each, in as many words as the item with the most entries needs."""
    first = np.searchsorted(entry_item, np.arange(num_items))
    position = np.arange(len(entry_item)) - first[entry_item]
    bits = np.zeros((len(entry_item), position.max(initial=0) // _WORD + 1), np.int64)
    bits[np.arange(len(entry_item)), position // _WORD] = np.int64(1) << (position % _WORD)
    return bits


def _informative_blocks(data: Rankings, bits: Int[np.ndarray, "entry word"]) -> _Blocks:
    """Find the blocks with something below them, and the entries that each report ranked before and with them."""
    report, block, size = (np.asarray(column) for column in (data.report, data.block, data.block_size))
    row = np.arange(data.num_rows)
    starts_report = np.append(True, report[1:] != report[:-1])[: data.num_rows]
    starts_block = starts_report | np.append(True, block[1:] != block[:-1])[: data.num_rows]
    first_of_report = np.maximum.accumulate(np.where(starts_report, row, 0))
    first_row = row[starts_block]
    ranked = first_row + size[first_row] - first_of_report[first_row]
    first_row = first_row[ranked < data.num_classes]
    # The bits of a report are distinct powers of two: sums are unions, and integers that overflow in between wrap back.
    through = np.concatenate([np.zeros((1, bits.shape[1]), np.int64), np.cumsum(bits[np.asarray(data.entry)], axis=0)])
    before = through[first_of_report[first_row]]
    return _Blocks(
        first_row=first_row,
        size=size[first_row],
        item=np.asarray(data.report_item)[report[first_row]],
        above=through[first_row] - before,
        through=through[first_row + size[first_row]] - before,
    )


def _rows_of(
    first_row: Int[np.ndarray, " block"], size: Int[np.ndarray, " block"]
) -> tuple[Int[np.ndarray, " row"], Int[np.ndarray, " row"]]:
    """Return the rows of blocks, and the block of each row."""
    block = np.repeat(np.arange(len(size)), size)
    return first_row[block] + ranges(size), block


def _distinct(table: Int[np.ndarray, "row column"]) -> tuple[Int[np.ndarray, " distinct"], Int[np.ndarray, " row"]]:
    """Return one row of each distinct kind, in sorted order, and the kind of every row."""
    order = np.lexsort(table.T[::-1])
    is_new = np.append(True, np.any(table[order[1:]] != table[order[:-1]], axis=1))[: len(order)]
    kind = np.empty(len(order), int)
    kind[order] = np.cumsum(is_new) - 1
    return order[is_new], kind


def _runners(
    race_item: Int[np.ndarray, " race"],
    missing: Int[np.ndarray, "race word"],
    entry_item: Int[np.ndarray, " entry"],
    bits: Int[np.ndarray, "entry word"],
    has_other: Bool[np.ndarray, " item"],
) -> tuple[Int[np.ndarray, " runner"], Int[np.ndarray, " runner"]]:
    """List the members of sets: all entries of the item but the missing ones, and the other where there is one."""
    first = np.searchsorted(entry_item, np.arange(len(has_other) + 1))
    entry, race = _rows_of(first[race_item], np.diff(first)[race_item])
    runs = ~np.any(missing[race] & bits[entry], axis=1)
    with_other = np.flatnonzero(has_other[race_item])
    race = np.concatenate([race[runs], with_other])
    runner = np.concatenate([entry[runs], len(entry_item) + race_item[with_other]])
    order = np.lexsort((runner, race))
    return race[order], runner[order]
