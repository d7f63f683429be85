"""The join finds the pairs that a comparison of all pairs finds."""

import numpy as np
import pytest

from consilience.models.block_linkage import join as module
from consilience.models.block_linkage import keys
from consilience.models.block_linkage.join import join, join_rule, pair_log_odds, prior_log_odds
from consilience.models.block_linkage.keys import MOST_OF_KEY, find_pairs
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.parameters import Parameters
from tests.models.records import records_of

HIT_MISS = LIKELIHOODS["hit-miss"]
SIX = ((300, 1.0), (800, 0.9), (90, 0.1), (12, 0.0), (28, 0.0), (100, 0.6))
NINE = (*SIX, (31, 0.0), (12, 0.0), (50, 1.0))


def simulate(num_entities, fields=SIX, *, missing=0.0, distortion=0.05, seed=0):
    """Draw records of entities of one to three records from the hit-miss model."""
    rng = np.random.default_rng(seed)
    entity = rng.permutation(np.repeat(np.arange(num_entities), 1 + rng.choice(3, num_entities, p=(0.75, 0.19, 0.06))))
    columns = []
    for size, exponent in fields:
        share = np.arange(1.0, size + 1) ** -exponent
        true = rng.choice(size, num_entities, p=share / share.sum())
        noise = rng.choice(size, len(entity), p=share / share.sum())
        column = np.where(rng.random(len(entity)) < distortion, noise, true[entity])
        columns.append(np.where(rng.random(len(entity)) < missing, -1, column))
    return records_of(columns, [size for size, _ in fields], entity=entity)


def plug_in(records, distortion=0.05):
    """Return parameters as the fit begins with."""
    share = [
        np.bincount(column + 1, minlength=size + 1)[1:] + 0.01
        for column, size in zip(records.value, np.diff(records.first_value), strict=True)
    ]
    return Parameters(
        value_share=np.concatenate([of_field / of_field.sum() for of_field in share]),
        distortion=np.full(records.num_fields, distortion),
        intensity=0.9 * records.num_records,
        size_share=np.array([0.9, 0.09, 0.01]),
    )


def all_pairs(records, parameters, threshold, likelihood=HIT_MISS):
    first, second = (ends.astype(np.int32) for ends in np.triu_indices(records.num_records, 1))
    pairs = pair_log_odds(records.value, first, second, parameters, likelihood, records.first_value)
    return pairs.where(pairs.log_odds > -threshold)


def assert_same(one, other):
    for column, expected in zip(one[:-1], other[:-1], strict=True):
        assert column.dtype == expected.dtype
        np.testing.assert_array_equal(column, expected)


def lacking(records, pairs):
    """Return how many fields either record of each pair lacks."""
    return (records.value[:, np.stack(pairs[:2])] < 0).any(axis=1).sum(axis=0)


def share_found(found, expected):
    def number(pairs):
        return pairs.first.astype(np.int64) << 32 | pairs.second

    assert np.isin(number(found), number(expected)).all()
    return len(found.first) / len(expected.first)


def test_prior_odds_of_two_records():
    parameters = Parameters(np.ones(1), np.full(1, 0.1), 1.3, np.array([0.7, 0.3]))
    assert np.exp(prior_log_odds(parameters)) == pytest.approx(0.941915, abs=1e-6)


def test_a_pair_is_compared_field_by_field():
    records = records_of([[0, 0], [1, 0], [0, -1], [-1, -1]], [2, 2, 1, 1])
    parameters = plug_in(records)
    agree, differ = HIT_MISS.pair_terms(parameters, records.first_value)
    first, second = np.array([[0], [1]], np.int32)
    pairs = pair_log_odds(records.value, first, second, parameters, HIT_MISS, records.first_value)
    assert pairs.log_odds[0] == pytest.approx(prior_log_odds(parameters) + agree[0] + differ[1], abs=1e-12)


@pytest.mark.parametrize("likelihood", LIKELIHOODS.values())
@pytest.mark.parametrize("threshold", [2.0, 6.0])
@pytest.mark.parametrize(("num_entities", "fields"), [(200, SIX), (2200, SIX), (200, SIX[:2]), (100, SIX[3:4])])
def test_the_join_is_the_comparison_of_all_pairs(num_entities, fields, threshold, likelihood):
    records = simulate(num_entities, fields)
    parameters = plug_in(records)
    expected = all_pairs(records, parameters, threshold, likelihood)
    assert_same(join(records, parameters, likelihood, threshold=threshold), expected)


def test_a_threshold_that_every_pair_passes_gives_every_pair():
    records = simulate(30)
    pairs = join(records, plug_in(records), HIT_MISS, threshold=100.0)
    assert len(pairs.first) == records.num_records * (records.num_records - 1) // 2


def test_blocks_do_not_change_the_pairs(monkeypatch):
    records = simulate(1000)
    parameters = plug_in(records)
    expected = join(records, parameters, HIT_MISS, threshold=6.0)
    monkeypatch.setattr(keys, "_BLOCK", 97)
    assert_same(join(records, parameters, HIT_MISS, threshold=6.0), expected)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_ranges_of_hashes_do_not_change_the_pairs(missing, monkeypatch):
    records = simulate(1000, missing=missing)
    parameters = plug_in(records)
    expected = join(records, parameters, HIT_MISS, threshold=6.0)
    for number in (2, 7, 64):
        monkeypatch.setattr(keys, "_RECORDS_OF_RANGE", -(-records.num_records // number))
        assert_same(join(records, parameters, HIT_MISS, threshold=6.0), expected)


def test_equal_hashes_of_different_values_do_no_harm(monkeypatch):
    records = simulate(1000)
    parameters = plug_in(records)
    expected = join(records, parameters, HIT_MISS, threshold=6.0)
    few = np.random.default_rng(1).integers(512, size=records.num_values).astype(np.uint64) << np.uint64(55)
    monkeypatch.setattr(keys, "_value_hashes", lambda num_values: few)
    looked_at = []
    monkeypatch.setattr(module, "find_pairs", lambda *given: looked_at.append(find_pairs(*given)) or looked_at[-1])
    assert_same(join(records, parameters, HIT_MISS, threshold=6.0), expected)
    (((first, second),),) = (one.ranges for one in looked_at)
    assert len(first) > 2 * len(expected.first)
    assert (first < second).all()


@pytest.mark.parametrize("threshold", [2.0, 5.0])
def test_few_missing_values_cost_few_pairs(threshold):
    records = simulate(1600, missing=0.02)
    parameters = plug_in(records)
    expected = all_pairs(records, parameters, threshold)
    assert 0.95 <= share_found(join(records, parameters, HIT_MISS, threshold=threshold), expected) < 1
    rule = join_rule(records, parameters, HIT_MISS, threshold=threshold)
    assert rule.start > join_rule(records, parameters, HIT_MISS, threshold=threshold, exact=True).start
    assert_same(join(records, parameters, HIT_MISS, threshold=threshold, exact=True), expected)


def test_of_pairs_with_one_missing_field_none_is_lost():
    records = simulate(1600, missing=0.02)
    parameters = plug_in(records)
    expected = all_pairs(records, parameters, 6.0)
    one = expected.where(lacking(records, expected) <= 1)
    found = join(records, parameters, HIT_MISS, threshold=6.0)
    assert_same(found.where(lacking(records, found) <= 1), one)


@pytest.mark.parametrize("threshold", [2.0, 6.0])
def test_many_missing_values_cost_no_pairs(threshold):
    records = simulate(1200, missing=0.2)
    parameters = plug_in(records)
    expected = all_pairs(records, parameters, threshold)
    # Pairs without a field, with one and with several of them.
    assert np.bincount(lacking(records, expected))[:3].all()
    assert_same(join(records, parameters, HIT_MISS, threshold=threshold), expected)


def test_fields_that_whole_files_lack_cost_no_pairs():
    records = simulate(1200)
    value = records.value.copy()
    value[0, ::2] = value[1:3, 1::2] = -1
    records = records.replace(value=value)
    parameters = plug_in(records)
    expected = all_pairs(records, parameters, 6.0)
    assert len(expected.first) > 100
    assert_same(join(records, parameters, HIT_MISS, threshold=6.0), expected)


def test_of_many_fields_the_seven_most_informative_are_looked_at():
    records = simulate(1600, NINE)
    parameters = plug_in(records)
    rule = join_rule(records, parameters, HIT_MISS, threshold=6.0)
    assert sorted(rule.fields) == [0, 1, 2, 4, 5, 6, 8]
    expected = all_pairs(records, parameters, 6.0)
    assert share_found(join(records, parameters, HIT_MISS, threshold=6.0), expected) >= 0.98


@pytest.mark.parametrize(("value", "number"), [(0, 1), (-1, 1), (0, 70)])
def test_fields_with_one_value_carry_nothing(value, number):
    records = simulate(1000)
    constant = np.full((number, records.num_records), value, np.int32)
    wider = records_of([*records.value, *constant], [*np.diff(records.first_value), *[max(value + 1, 0)] * number])
    parameters = plug_in(records)
    share = np.append(parameters.value_share, np.ones(number * max(value + 1, 0)))
    same = parameters._replace(value_share=share, distortion=np.full(6 + number, 0.05))
    assert max(join_rule(wider, same, HIT_MISS, threshold=6.0).fields) < 6
    expected, found = join(records, parameters, HIT_MISS, threshold=6.0), join(wider, same, HIT_MISS, threshold=6.0)
    np.testing.assert_array_equal(found.first, expected.first)
    np.testing.assert_array_equal(found.second, expected.second)
    np.testing.assert_allclose(found.log_odds, expected.log_odds, rtol=0, atol=1e-12)


def test_records_without_any_field_that_differs_are_no_pairs_and_no_endless_block():
    records = records_of(np.zeros((2, 1000), np.int32), [1, 1])
    pairs = join(records, plug_in(records), HIT_MISS, threshold=5.0)
    assert len(pairs.first) == 0


def test_a_field_that_is_never_distorted_must_agree():
    records = simulate(500)
    parameters = plug_in(records)
    parameters.distortion[0] = 0
    with np.errstate(divide="ignore"):
        pairs = join(records, parameters, HIT_MISS, threshold=6.0)
        expected = all_pairs(records, parameters, 6.0)
    assert len(pairs.first)
    assert (records.value[0, pairs.first] == records.value[0, pairs.second]).all()
    assert_same(pairs, expected)


@pytest.mark.parametrize("num_records", [0, 1, 2])
def test_hardly_any_records(num_records):
    records = records_of(np.zeros((3, num_records), np.int32), [40, 40, 40])
    parameters = Parameters(np.full(120, 1 / 40), np.full(3, 0.05), 2.0, np.array([0.9, 0.1]))
    assert len(join(records, parameters, HIT_MISS, threshold=5.0).first) == (num_records == 2)


def test_of_many_identical_records_no_pair_is_looked_at_and_all_are_counted():
    records = simulate(2_000)
    number = MOST_OF_KEY + 500
    value = np.concatenate([records.value, np.repeat(records.value[:, :1], number, 1)], 1)
    copied = records_of(value, np.diff(records.first_value))
    # Unlike the other records, the identical ones would be common under the frequencies: take those before them.
    found = join(copied, plug_in(records), HIT_MISS, threshold=5.0)
    assert not ((found.first >= records.num_records) & (found.second >= records.num_records)).any()
    assert found.unseen >= number * (number - 1) // 2
    first, second = np.triu_indices(copied.num_records, 1)
    apart = (first < records.num_records) & (second < records.num_records) & (first > 0)
    ends = first[apart].astype(np.int32), second[apart].astype(np.int32)
    expected = pair_log_odds(copied.value, *ends, plug_in(records), HIT_MISS, copied.first_value)
    expected = expected.where(expected.log_odds > -5.0)
    assert share_found(expected, found) == len(expected.first) / len(found.first)


@pytest.mark.parametrize(("missing", "most"), [(0.0, 3), (0.2, 3), (0.2, 12)])
def test_keys_of_many_records_are_extended(missing, most, monkeypatch):
    """Nearly all pairs that agree in further fields are found all the same, and the others are counted."""
    fields = ((30, 0.0), (40, 0.5), (12, 0.0), (28, 0.0), (9, 0.0), (50, 0.0), (20, 0.0), (15, 0.0))
    records = simulate(600, fields, missing=missing)
    parameters = plug_in(records)
    everything = join(records, parameters, HIT_MISS, threshold=6.0)
    assert everything.unseen == 0
    monkeypatch.setattr(keys, "MOST_OF_KEY", most)
    found = join(records, parameters, HIT_MISS, threshold=6.0)
    lost = round((1 - share_found(found, everything)) * len(everything.first))
    strong = everything.where(everything.log_odds > 0)
    assert share_found(found.where(found.log_odds > 0), strong) > 0.95
    assert 0 < found.unseen
    assert lost <= found.unseen
