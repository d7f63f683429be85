"""The share of links among the candidates, where fields are similar, beside links that are drawn."""

import numpy as np
import pytest

from consilience.models.block_linkage.join import pair_log_odds
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.similar import for_data
from consilience.models.block_linkage.simulation import simulate_records
from consilience.models.block_linkage.starting import record_shares
from consilience.similarity import with_similar


@pytest.fixture(scope="module")
def links():
    """Records, two of each entity, their hyperparameters, and all true links."""
    records = simulate_records(
        4000, num_values=(800, 900, 60, 12), distortion=0.15, missing=(0.0, 0.1, 0.0, 0.0), size_share=(0.0, 1.0),
        typos=["field_1", "field_2"], seed=2,
    )  # fmt: skip
    similar = with_similar(records, {"field_1": "string", "field_2": "string"})
    parameters = Parameters(record_shares(similar), np.full(4, 0.15), 2500.0, np.array([0.4, 0.6]))
    likelihood = for_data("hit-miss", similar, parameters.value_share)
    first, second = np.argsort(records.entity, kind="stable").reshape(-1, 2).T
    odds = pair_log_odds(similar.value, first, second, parameters, likelihood, similar.first_value)
    return likelihood, similar, parameters, odds


@pytest.mark.parametrize(("threshold", "too_good"), [(4.0, 0.02), (2.0, 0.02), (-2.0, 0.04), (-6.0, 0.07)])
def test_the_share_is_that_of_true_links_or_somewhat_more(links, threshold, too_good):
    likelihood, *given = links
    found = likelihood.found_share(*given, threshold)
    share = np.mean(given[-1].log_odds > -threshold)
    assert 0.2 < share < 0.99
    # Links that are improbable for themselves count less among those found.
    assert -0.01 < found - share < too_good


def test_thresholds_without_effect_and_without_links(links):
    likelihood, *given = links
    assert likelihood.found_share(*given, 200.0) == 1
    assert likelihood.found_share(*given, -200.0) == 0
    *given, odds = given
    none = odds.where(np.zeros(len(odds.first), bool))
    assert np.isnan(likelihood.found_share(*given, none, 4.0))
