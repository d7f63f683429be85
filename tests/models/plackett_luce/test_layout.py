"""Tables of races against sets that are written out one after the other."""

from collections import Counter

import numpy as np
import pytest

from consilience.models.plackett_luce.layout import layout, padded
from tests.models.plackett_luce.reports import rankings

OTHER = "other"


def written_out(cases, num_classes):
    """Return counters of races, pairs, ties and wins, by Python sets."""
    races, pairs, ties, wins = Counter(), Counter(), Counter(), Counter()
    for item, reports in enumerate(cases):
        named = {code for report in reports for block in report for code in block}
        everything = named | ({OTHER} if len(named) < num_classes else set())
        for report in reports:
            running = everything
            for block in report:
                below = running - set(block)
                if not below:
                    break
                wins.update((item, code) for code in block)
                if len(block) < 3:
                    races[item, frozenset(running)] += 1
                if len(block) == 2:
                    pairs[item, frozenset(frozenset(below | {code}) for code in block)] += 1
                if len(block) > 2:
                    ties[item, frozenset(block), frozenset(below)] += 1
                running = below
    return races, pairs, ties, wins


def read_back(tables, data):
    """Return the same counters from the tables."""
    num_entries = data.num_entries

    def local(weight):
        return int(data.entry_class[weight]) if weight < num_entries else OTHER

    def item_of(weight):
        return int(data.entry_item[weight] if weight < num_entries else weight - num_entries)

    members = [[] for _ in tables.stages]
    for race, runner in zip(tables.race, tables.runner, strict=True):
        members[race].append(runner)
    sets = [(item_of(runners[0]), frozenset(map(local, runners))) for runners in members]
    assert len(set(sets)) == len(sets)
    assert all(item_of(runner) == item for (item, _), runners in zip(sets, members, strict=True) for runner in runners)
    races = Counter({name: int(count) for name, count in zip(sets, tables.stages, strict=True) if count})
    pairs = Counter()
    for (one, other), count in zip(tables.pair_races, tables.pair_count, strict=True):
        pairs[sets[one][0], frozenset({sets[one][1], sets[other][1]})] += int(count)
    ties = Counter()
    for tie, below in enumerate(tables.tie_below):
        block = frozenset(local(entry) for entry in tables.tied_entry[tables.tied == tie])
        ties[sets[below][0], block, sets[below][1]] += 1
    wins = Counter({(item_of(e), local(e)): int(count) for e, count in enumerate(tables.wins) if count})
    return races, pairs, ties, wins


def random_cases(rng, num_cases, num_classes):
    """Draw reports with ties; some rank nothing, some everything."""
    cases = []
    for _ in range(num_cases):
        pool = rng.permutation(num_classes)[: rng.integers(1, num_classes + 1)]
        case = []
        for _ in range(rng.integers(1, 6)):
            ranked = rng.permutation(pool)[: rng.integers(0, len(pool) + 1)]
            cuts = np.flatnonzero(rng.random(max(len(ranked) - 1, 0)) < 0.6) + 1
            case.append([block.tolist() for block in np.split(ranked, cuts) if len(block)])
        cases.append(case)
    return cases


@pytest.mark.parametrize("num_classes", [1, 2, 4, 7])
def test_tables_say_what_is_written_out(num_classes):
    cases = random_cases(np.random.default_rng(num_classes), 60, num_classes)
    data = rankings(cases, num_classes)
    assert read_back(layout(data), data) == written_out(cases, num_classes)


def test_more_entries_than_bits_in_a_word():
    rng = np.random.default_rng(0)
    report = [[code] for code in rng.permutation(150).tolist()]
    cases = [[report, report[:70] + [report[70] + report[71]], [[3, 5, 149], [0]]], [[[149]]]]
    data = rankings(cases, 151)
    tables = layout(data)
    assert read_back(tables, data) == written_out(cases, 151)
    assert tables.stages.max() == 2  # the first race is not shared by the tie of three


def test_rows_of_the_tables_are_sorted_and_join():
    cases = random_cases(np.random.default_rng(5), 40, 6)
    tables = layout(rankings(cases, 6))
    for segment in (tables.race, tables.tied, tables.weight, tables.entry_item):
        assert np.all(np.diff(segment) >= 0)
    exposures = Counter(zip(tables.weight.tolist(), tables.clock.tolist(), strict=True))
    assert exposures == Counter(zip(tables.runner.tolist(), tables.race.tolist(), strict=True))
    for below, race, tie in zip(tables.tie_below, tables.tie_race, range(len(tables.tie_race)), strict=True):
        members = [set(tables.runner[tables.race == place]) for place in (below, race)]
        assert members[1] - members[0] == set(tables.tied_entry[tables.tied == tie])


def test_members_of_ties_know_their_rows():
    data = rankings([[[[2], [0, 1, 3]], [[3, 2, 1, 0]]], [[[4, 0, 2]]]], 6)
    tables = layout(data)
    assert np.array_equal(data.entry[tables.tied_row], tables.tied_entry)
    assert len(np.unique(tables.tied_row)) == len(tables.tied_row) == 10


def test_bits_say_which_set_is_within_which():
    """For each item with a race of many classes, more than a word has bits."""
    report = [[code] for code in np.random.default_rng(1).permutation(70).tolist()]
    tables = layout(rankings([[report, [[3], [5, 9, 69], [8]]], [[[0, 1], [2]], [[1]]]], 71))
    sets = [frozenset(tables.runner[tables.race == race].tolist()) for race in range(len(tables.race_item))]
    assert len(tables.missing) == 3
    for item in range(2):
        for one in np.flatnonzero(tables.race_item == item):
            for other in np.flatnonzero(tables.race_item == item):
                within = not np.any(tables.missing[:, other] & ~tables.missing[:, one])
                assert within == (sets[one] <= sets[other])
            in_set = ~np.any(tables.entry_bit & tables.missing[:, [one]], axis=0)
            named = set(np.flatnonzero(in_set & (tables.entry_item == item)).tolist())
            assert named == {weight for weight in sets[one] if weight < len(tables.entry_item)}
    assert not np.any(tables.missing >> 31)  # a word of ones is within no set


def test_what_pads_has_an_item_of_its_own():
    data = rankings(random_cases(np.random.default_rng(2), 70, 6), 6)
    tables, wide = layout(data), padded(layout(data))
    num_entries, num_items = data.num_entries, data.num_items
    assert len(wide.has_other) > num_items
    assert len(wide.entry_item) > num_entries
    assert wide.wins[num_entries:].sum() == wide.stages[len(tables.stages) :].sum() == 0
    assert np.all(wide.entry_item[num_entries:] == len(wide.has_other) - 1)
    rows = len(tables.race)
    for races, weights in ((wide.race, wide.runner), (wide.clock, wide.weight)):
        assert np.all(races[rows:] == len(wide.stages) - 1)
        assert np.all(wide.weight_item[weights[rows:]] == len(wide.has_other) - 1)
        items = wide.weight_item[weights[:rows]]
        assert np.array_equal(items, wide.race_item[races[:rows]])
    assert np.all(np.diff(wide.weight) >= 0)
    assert np.all(np.diff(wide.first_race)[num_items:] == 0)


def test_blocks_with_nothing_below_are_in_no_table():
    tables = layout(rankings([[[[0, 1, 2]]], [[[1], [0, 2]]], [[]]], 3))
    assert tables.wins.tolist() == [0, 0, 0, 0, 1, 0]
    assert tables.has_other.tolist() == [False, False, True]
    assert tables.stages.tolist() == [0, 1, 0]
    assert tables.runner.tolist() == [0, 1, 2, 3, 4, 5, 8]
    assert not len(tables.pair_count)
    assert not len(tables.tied)


def test_reports_of_nothing_change_nothing():
    with_none = layout(rankings([[[], [[0, 1, 2]], [], [[1], [0, 3]]]], 5))
    without = layout(rankings([[[[0, 1, 2]], [[1], [0, 3]]]], 5))
    assert all(np.array_equal(one, other) for one, other in zip(with_none, without, strict=True))


def test_the_order_of_the_reports_changes_nothing_but_rows():
    case = [[[0, 1], [2]], [[1]], [[3], [4, 1]], [[0, 1], [3]]]
    one, other = layout(rankings([case], 6)), layout(rankings([case[::-1]], 6))
    assert all(np.array_equal(*pair) for name, *pair in zip(one._fields, one, other, strict=True) if name != "tied_row")
