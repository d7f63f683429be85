"""The predicted share of links that are found is that of simulated links."""

import numpy as np
import pytest

from consilience.models.block_linkage import hidden_links
from consilience.models.block_linkage.hidden_links import found_share
from consilience.models.block_linkage.join import join, join_rule, pair_log_odds
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.parameters import Parameters
from tests.models.records import records_of

HIT_MISS = LIKELIHOODS["hit-miss"]
SIZES = (300, 90, 12, 28, 40, 10)
FIRST_VALUE = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int32)
ORDER = [np.arange(1.0, size + 1) ** -0.7 for size in SIZES]


def parameters_of(distortion, intensity=20_000.0):
    share = np.concatenate([of_field / of_field.sum() for of_field in ORDER])
    return Parameters(share, np.full(len(SIZES), distortion), intensity, np.array([0.75, 0.19, 0.06]))


def links(num_links, distortion, missing, seed):
    """Draw pairs of records of one entity: value (field, 2 · link), first those of one side, then of the other."""
    rng = np.random.default_rng(seed)
    columns = []
    for order in ORDER:
        true, *noise = rng.choice(len(order), (3, num_links), p=order / order.sum())
        column = np.where(rng.random((2, num_links)) < distortion, noise, true).ravel()
        columns.append(np.where(rng.random(2 * num_links) < missing, -1, column))
    return np.array(columns, np.int32)


def compare(value, parameters):
    first, second = np.arange(value.shape[1], dtype=np.int32).reshape(2, -1)
    return pair_log_odds(value, first, second, parameters, HIT_MISS, FIRST_VALUE)


def assert_share(drawn, predicted):
    """Compare a share among links with its prediction, which comes from no fewer records, in units of their error."""
    share = (drawn.mean() + predicted) / 2
    error = np.sqrt(2 * max(share * (1 - share), 0) / len(drawn))
    assert abs(drawn.mean() - predicted) <= 5 * error + 1e-12


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("most_fields", [8, 5])
def test_simulated_links_are_found_as_predicted(missing, most_fields, monkeypatch):
    monkeypatch.setattr(hidden_links, "_MOST_FIELDS", most_fields)
    monkeypatch.setattr(hidden_links, "_NUM_RECORDS", 20_000)
    monkeypatch.setattr(hidden_links, "_NUM_RANDOM_SETS", 16)
    parameters, in_force = parameters_of(0.08), parameters_of(0.03, 30_000.0)
    value = links(20_000, 0.08, missing, seed=1)
    pairs = compare(value, in_force)
    predicted = found_share(parameters, FIRST_VALUE, value, HIT_MISS, 4.0, in_force=in_force)
    passes = pairs.log_odds > -4.0
    assert 0.5 < passes.mean() < 0.95
    assert_share(passes, predicted.share)
    one, other = value.reshape(len(SIZES), 2, -1).transpose(1, 0, 2)
    observed = (one >= 0) & (other >= 0)
    agree = observed & (one == other)
    for field in range(len(SIZES)):
        assert_share(agree[field, ~passes], predicted.agree[field])
        assert_share(observed[field, ~passes], predicted.observed[field])
        assert_share(observed[field], predicted.both_observed[field])


def test_the_two_ways_to_go_through_sets_agree(monkeypatch):
    parameters = parameters_of(0.08)
    value = links(4_000, 0.08, 0.05, seed=2)
    every = found_share(parameters, FIRST_VALUE, value, HIT_MISS, 4.0)
    monkeypatch.setattr(hidden_links, "_MOST_FIELDS", 5)
    some = found_share(parameters, FIRST_VALUE, value, HIT_MISS, 4.0)
    error = np.sqrt(every.share * (1 - every.share) / (4_000 * hidden_links._NUM_RANDOM_SETS))
    assert abs(every.share - some.share) < 5 * error
    assert every.share != some.share
    np.testing.assert_array_equal(every.both_observed, some.both_observed)


def test_the_join_misses_nothing_for_lack_of_values(monkeypatch):
    monkeypatch.setattr(hidden_links, "_NUM_RECORDS", 20_000)
    parameters = parameters_of(0.05)
    value = links(20_000, 0.05, 0.15, seed=3)
    records = records_of(value, SIZES)
    found = join(records, parameters, HIT_MISS, threshold=6.0)
    number = np.sort(found.first[found.second == found.first + 20_000])
    rule = join_rule(records, parameters, HIT_MISS, threshold=6.0)
    predicted = found_share(parameters, FIRST_VALUE, value, HIT_MISS, 6.0, rule=rule).share
    assert_share(np.isin(np.arange(20_000), number), predicted)
    assert predicted == found_share(parameters, FIRST_VALUE, value, HIT_MISS, 6.0).share


def test_one_field_by_hand():
    parameters = Parameters(np.array([0.75, 0.25]), np.array([0.2]), 10.0, np.array([0.5, 0.3, 0.2]))
    value = np.array([[0, 0, 0, 1]], np.int32)
    first_value = np.array([0, 2], np.int32)
    agree, differ = HIT_MISS.pair_terms(parameters, first_value)
    prior = np.log(2 * 0.3 / (10 * 0.25))
    assert prior + differ[0] < -2 < prior + agree[0] < prior + agree[1]
    found = found_share(parameters, first_value, value, HIT_MISS, 2.0)
    same = [0.64 + 0.36 * 0.75, 0.64 + 0.36 * 0.25]
    assert found.share == pytest.approx((3 * same[0] + same[1]) / 4, abs=1e-12)
    np.testing.assert_array_equal(found.agree, [0])
    np.testing.assert_array_equal(found.observed, [1])


@pytest.mark.parametrize(("threshold", "share"), [(-500.0, 0.0), (500.0, 1.0)])
def test_all_or_none_found_and_a_field_that_nobody_has(threshold, share):
    value = links(500, 0.05, 0.1, seed=4)
    value[2] = -1
    found = found_share(parameters_of(0.05), FIRST_VALUE, value, HIT_MISS, threshold)
    assert found.share == pytest.approx(share, abs=1e-12)
    assert all(np.isfinite(part).all() for part in found)
    assert found.both_observed[2] == found.observed[2] == 0
