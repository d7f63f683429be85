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

The tables count every report once: a reliability multiplies the counts where they are used. `padded` tables of data of
like size have one shape, so that such data share a compiled program.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.rankings import Rankings
from consilience.models.rows import padded_rows, padded_size, ranges

# One bit of a 32-bit word stays clear, so that a word of ones is within no set.
_WORD = 31


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
    tie_below, tie_race : shape ``(tie,)``; the set that is left below a tie of three or more, and that set with the
        members.
    tied, tied_entry : shape ``(tied,)``; tie, sorted, and entry of each member of the larger ties.
    tied_row : shape ``(tied,)``; the row of the data that names the member, -1 where it only pads.
    weight, clock : shape ``(runner,)``; the rows of ``runner`` and ``race``, sorted by weight.
    entry_bit : shape ``(word, entry)``; a bit for each entry of an item.
    missing : shape ``(word, race)``; the bits of the item's entries that are not in the set.
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
    tie_race: Int[Array, " tie"]
    tied: Int[Array, " tied"]
    tied_entry: Int[Array, " tied"]
    tied_row: Int[Array, " tied"]
    weight: Int[Array, " runner"]
    clock: Int[Array, " runner"]
    entry_bit: Array
    missing: Array


class _Blocks(NamedTuple):
    """The blocks with something below them; a set is known by its item and the entries that are out of it, as bits."""

    first_row: Int[np.ndarray, " block"]
    size: Int[np.ndarray, " block"]
    item: Int[np.ndarray, " block"]
    above: np.ndarray
    through: np.ndarray


def layout(data: Rankings) -> Layout:
    """Return the tables of all items; NumPy arrays, made on the host."""
    entry_item, row_entry = np.asarray(data.entry_item), np.asarray(data.entry)
    bits = _entry_bits(entry_item, data.num_items)
    blocks = _informative_blocks(data, bits)
    single, pair, tie = blocks.size == 1, blocks.size == 2, blocks.size > 2

    pair_row = blocks.first_row[pair]
    tied_row, tied = _rows_of(blocks.first_row[tie], blocks.size[tie])
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
    _, of_tie, of_stage, *of_pair, below_tie = np.split(race_of, np.cumsum([len(part) for part in item])[:-1])
    has_other = data.num_classes > np.bincount(entry_item, minlength=data.num_items)
    race_item = sets[first, 0]
    race, runner = _runners(race_item, sets[first, 1:], entry_item, bits, has_other)

    pair_races = np.column_stack(of_pair)
    first_pair, pair_of = _distinct(pair_races)
    order = np.argsort(runner, kind="stable")
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
        tie_below=below_tie.astype(np.int32),
        tie_race=of_tie.astype(np.int32),
        tied=tied.astype(np.int32),
        tied_entry=row_entry[tied_row].astype(np.int32),
        tied_row=tied_row.astype(np.int32),
        weight=runner[order].astype(np.int32),
        clock=race[order].astype(np.int32),
        entry_bit=bits.T,
        missing=sets[first, 1:].T.astype(np.uint32),
    )


def padded(unpadded: Layout) -> Layout:
    """Return tables of padded lengths; NumPy arrays, made on the host.

    All that pads belongs to one more item, the last: its races have no stage and its entries no wins, so that its
    weights are those of the prior. No item gets another neighbour in a sum.
    """
    tables: Any = unpadded
    num_entries, num_races = len(tables.entry_item), len(tables.race_item)
    num_items = len(tables.has_other)
    # Numbers of lists that may stay empty: programs without pairs or ties leave out what draws them.
    size = {name: padded_size(number + 1) for name, number in (("entry", num_entries), ("item", num_items))}
    size["race"], size["runner"] = padded_size(num_races + 1), padded_size(len(tables.race) + 1)
    for name, rows in (("pair", tables.pair_count), ("tie", tables.tie_below), ("tied", tables.tied)):
        size[name] = padded_size(len(rows) + 1) if len(rows) else 0
    last = {name: number - 1 for name, number in size.items()}
    shift = size["entry"] - num_entries

    def moved(weight: np.ndarray) -> np.ndarray:
        return weight + np.where(weight < num_entries, 0, shift).astype(np.int32)

    last_weight = size["entry"] + last["item"]
    entry_item = padded_rows(tables.entry_item, size["entry"], last["item"])
    first_race = padded_rows(tables.first_race, size["item"] + 1, num_races)
    return Layout(
        entry_item=entry_item,
        weight_item=np.concatenate([entry_item, np.arange(size["item"], dtype=np.int32)]),
        has_other=padded_rows(tables.has_other, size["item"], True),
        wins=padded_rows(tables.wins, size["entry"]),
        race=padded_rows(tables.race, size["runner"], last["race"]),
        runner=padded_rows(moved(tables.runner), size["runner"], last_weight),
        stages=padded_rows(tables.stages, size["race"]),
        first_race=first_race,
        race_item=padded_rows(tables.race_item, size["race"], last["item"]),
        pair_races=padded_rows(tables.pair_races, size["pair"], last["race"]),
        pair_count=padded_rows(tables.pair_count, size["pair"]),
        tie_below=padded_rows(tables.tie_below, size["tie"], last["race"]),
        tie_race=padded_rows(tables.tie_race, size["tie"], last["race"]),
        tied=padded_rows(tables.tied, size["tied"], last["tie"]),
        tied_entry=padded_rows(tables.tied_entry, size["tied"], last["entry"]),
        tied_row=padded_rows(tables.tied_row, size["tied"], -1),
        weight=padded_rows(moved(tables.weight), size["runner"], last_weight),
        clock=padded_rows(tables.clock, size["runner"], last["race"]),
        entry_bit=padded_rows(tables.entry_bit.T, size["entry"], 1).T,
        missing=padded_rows(tables.missing.T, size["race"]).T,
    )


def _entry_bits(entry_item: Int[np.ndarray, " entry"], num_items: int) -> np.ndarray:
    """Give the entries of an item a bit each, in as many words as the item with the most entries needs."""
    first = np.searchsorted(entry_item, np.arange(num_items))
    position = np.arange(len(entry_item)) - first[entry_item]
    bits = np.zeros((len(entry_item), position.max(initial=0) // _WORD + 1), np.uint32)
    bits[np.arange(len(entry_item)), position // _WORD] = np.uint32(1) << (position % _WORD).astype(np.uint32)
    return bits


def _informative_blocks(data: Rankings, bits: np.ndarray) -> _Blocks:
    """Find the blocks with something below them, and the entries that each report ranked before and with them."""
    report, block, size = (np.asarray(column) for column in (data.report, data.block, data.block_size))
    row = np.arange(data.num_rows)
    starts_report = np.append(True, report[1:] != report[:-1])[: data.num_rows]
    starts_block = starts_report | np.append(True, block[1:] != block[:-1])[: data.num_rows]
    first_of_report = np.maximum.accumulate(np.where(starts_report, row, 0))
    first_row = row[starts_block]
    ranked = first_row + size[first_row] - first_of_report[first_row]
    first_row = first_row[ranked < data.num_classes]
    # The bits of a report are distinct powers of two: sums are unions, and words that overflow in between wrap back.
    union = np.cumsum(bits[np.asarray(data.entry)], axis=0, dtype=np.uint32)
    through = np.concatenate([np.zeros((1, bits.shape[1]), np.uint32), union])
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
    missing: np.ndarray,
    entry_item: Int[np.ndarray, " entry"],
    bits: np.ndarray,
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
