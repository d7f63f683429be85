"""The predictive check: quiet where the model holds, loud where errors come one by one."""

import numpy as np
import pytest
from scipy import stats

from consilience.models.block_linkage import simulate
from consilience.models.block_linkage.gibbs.predictive import predictive_check
from consilience.models.truth.partitions import first_members


def draws_of(records, values, number=100):
    """Return draws that are all what the records were drawn from."""
    one = {
        "cluster": first_members(np.asarray(records.entity)), "value_share": values["value_share"],
        "distortion": values["distortion"], "intensity": np.array(1.0),
    }  # fmt: skip
    return {site: np.broadcast_to(value, (number, *value.shape)) for site, value in one.items()}


def settings(**changed):
    return {"num_records": 300, "num_values": (60, 40, 30, 12), "size_share": (0.6, 0.3, 0.1), **changed}


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_p_values_are_uniform_where_the_model_holds(missing):
    """Given what the records were drawn from, they are as any that are drawn anew."""
    checks = []
    for seed in range(60):
        records, values = simulate(seed, **settings(missing=missing, distortion=0.1))
        checks.append(predictive_check(draws_of(records, values), records))
    assert stats.kstest([check.p_value for check in checks], "uniform").pvalue > 1e-4
    gap = np.array([check.drawn - check.expected for check in checks])
    assert (np.abs(gap.mean(axis=0)) <= 5 * gap.std(axis=0) / np.sqrt(len(gap))).all()


def test_errors_that_come_one_by_one():
    """In every duplicate exactly one field is wrong, which independent errors of the same number are not."""
    records, values = simulate(1, **settings(errors="one", size_share=(0.7, 0.3)))
    values["distortion"] = np.full(4, 0.125)
    check = predictive_check(draws_of(records, values), records)
    assert check.p_value == 0
    np.testing.assert_array_equal(check.drawn, [0, 1, 0, 0, 0])
    assert check.disagreement > 0.3
    np.testing.assert_allclose(check.expected.sum(), 1)


def test_a_predictive_check_by_hand(make_records):
    """Two pairs: one differs in two fields that both have, one in none; and the expected shares are those of draws."""
    records = make_records([[0, 1, 0, 0, 1], [0, 1, 0, -1, 1], [0, 0, 1, 1, 1]])
    cluster = np.array([0, 0, 2, 2, 4])
    share = np.full(6, 0.5)
    one = {"cluster": cluster, "value_share": share, "distortion": np.full(3, 0.2), "intensity": np.array(1.0)}
    draws = {site: np.broadcast_to(value, (200, *value.shape)) for site, value in one.items()}
    check = predictive_check(draws, records)
    np.testing.assert_array_equal(check.drawn, [0.5, 0, 0.5, 0])
    # A pair differs in a field that both have if one is distorted at least, and then in half of the cases.
    differs = (1 - 0.8**2) / 2
    exact = (stats.binom(3, differs).pmf(range(4)) + stats.binom(2, differs).pmf(range(4))) / 2
    assert (np.abs(check.expected - exact) < 5 * np.sqrt(exact / 400)).all()


def test_nothing_together(make_records):
    records = make_records([[0, 1, 2], [0, 1, 1]])
    draws = {
        "cluster": np.tile(np.arange(3), (4, 1)), "value_share": np.full((4, 5), 0.3),
        "distortion": np.full((4, 2), 0.1), "intensity": np.ones(4),
    }  # fmt: skip
    assert np.isnan(predictive_check(draws, records).p_value)
