"""Simulated partial rankings: first places, ties and times follow the laws of the race."""

import jax
import numpy as np
import pytest
from scipy import stats

from consilience.data import Rankings
from consilience.errors import UnsupportedRequest
from consilience.models.plackett_luce import simulate
from consilience.models.plackett_luce.likelihood import log_likelihood
from consilience.models.plackett_luce.priors import OneClass, PerUnnamedClass, Priors
from consilience.models.plackett_luce.simulation import DESIGN

WEIGHT = np.array([3.0, 0.2, 1.0, 0.7, 1.6])
NUM_REPORTS = 20_000


@pytest.fixture(scope="module")
def reports():
    """Many annotators of one item with known weights: block and class of each listed position, and times."""
    data, values = simulate(jax.random.key(1), num_annotators=NUM_REPORTS, values={"weight": WEIGHT[None]})
    assert values["plausibility"] == pytest.approx(WEIGHT[None] / WEIGHT.sum())
    return data, values


def rows_of(data, sizes):
    """Return the rows, (report, position), of the reports with these block sizes."""
    first = np.searchsorted(data.report, np.arange(NUM_REPORTS))
    design = np.flatnonzero(data.report_annotator % len(DESIGN) == DESIGN.index(sizes))
    rows = first[design][:, None] + np.arange(sum(sizes))
    expected = np.repeat(np.arange(len(sizes)), sizes)
    assert np.all(data.block[rows] == expected)
    assert np.all(data.report[rows] == design[:, None])
    return rows


def within_error(count, probability, num_trials):
    deviation = count - num_trials * probability
    assert np.all(np.abs(deviation) < 5 * np.sqrt(num_trials * probability * (1 - probability)))


def test_first_places_are_proportional_to_the_weights(reports):
    data, _ = reports
    first = np.concatenate([rows_of(data, (1,))[:, 0], rows_of(data, (1, 1))[:, 0]])
    count = np.bincount(data.entry_class[data.entry[first]], minlength=5)
    within_error(count, WEIGHT / WEIGHT.sum(), len(first))


@pytest.mark.parametrize("sizes", DESIGN)
def test_reports_occur_as_often_as_the_likelihood_says(reports, sizes):
    data, _ = reports
    rows = rows_of(data, sizes)
    found, count = np.unique(data.entry_class[data.entry[rows]], axis=0, return_counts=True)
    ends = np.cumsum(sizes)[:-1]
    cases = [[[[str(k) for k in block] for block in np.split(codes, ends)]] for codes in found]
    # Every class is named by a report that says nothing, so that no mass is left for others.
    classes = [str(k) for k in range(5)]
    with jax.enable_x64(True):
        listed = Rankings.from_nested([[*case, [classes]] for case in cases], classes=classes)
        log_weight = np.log(np.tile(WEIGHT, len(cases)))
        probability = np.exp(jax.jit(log_likelihood)(listed, log_weight, np.zeros(len(cases))))
    assert probability.sum() == pytest.approx(1, abs=0.02)
    within_error(count, probability, len(rows))


def test_times_have_the_law_of_the_race(reports):
    data, values = reports
    total = WEIGHT.sum()
    single = rows_of(data, (1,))[:, 0]
    assert stats.kstest(values["time"][single], stats.expon(scale=1 / total).cdf).pvalue > 1e-5
    # After the winner the clock starts anew, and runs slower by what he weighed.
    second = rows_of(data, (1, 1))
    rest = total - WEIGHT[data.entry_class[data.entry[second[:, 0]]]]
    assert stats.kstest(values["time"][second[:, 1]] * rest, stats.expon.cdf).pvalue > 1e-5
    # The first of three tied classes arrives as any first does, and the last two after it.
    tied = values["time"][rows_of(data, (3,))]
    assert stats.kstest(tied.min(axis=1), stats.expon(scale=1 / total).cdf).pvalue > 1e-5
    assert len(np.unique(values["time"])) > 0.99 * data.num_rows


def test_the_second_block_starts_when_the_first_is_complete(reports):
    data, values = reports
    rows = rows_of(data, (2, 1))
    rest = WEIGHT.sum() - WEIGHT[data.entry_class[data.entry[rows[:, :2]]]].sum(axis=1)
    assert stats.kstest(values["time"][rows[:, 2]] * rest, stats.expon.cdf).pvalue > 1e-5


def test_weights_come_from_the_prior():
    _, values = simulate(jax.random.key(2), Priors.exchangeable(0.4), num_items=2000, num_annotators=1)
    assert values["weight"].shape == (2000, 6)
    assert stats.kstest(values["weight"].ravel(), stats.gamma(0.4).cdf).pvalue > 1e-5
    assert values["plausibility"].sum(axis=1) == pytest.approx(np.ones(2000), abs=1e-5)


@pytest.mark.parametrize("num_classes", [1, 2, 3, 8])
def test_every_report_leaves_a_class_unlisted(num_classes):
    data, values = simulate(jax.random.key(3), num_items=7, num_annotators=3, num_classes=num_classes)
    assert (data.num_items, data.num_reports, data.num_classes) == (7, 21, num_classes)
    listed = np.bincount(data.report, minlength=21)
    assert listed.max() == min(3, num_classes - 1)
    assert values["time"].shape == (data.num_rows,)
    assert np.all(values["time"] > 0)


def test_true_weights_are_kept_and_the_design_with_them():
    first, values = simulate(jax.random.key(4), num_items=20)
    second, again = simulate(jax.random.key(5), num_items=20, values=values)
    np.testing.assert_array_equal(again["weight"], values["weight"])
    np.testing.assert_array_equal(first.block, second.block)
    assert not np.array_equal(first.entry_class[first.entry], second.entry_class[second.entry])


@pytest.mark.parametrize("priors", [Priors(), Priors(weight=OneClass(1.0), other=PerUnnamedClass(2.0))])
def test_priors_that_tell_no_story_are_refused(priors):
    with pytest.raises(UnsupportedRequest, match="exchangeable"):
        simulate(jax.random.key(0), priors)
