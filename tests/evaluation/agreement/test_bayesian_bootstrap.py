"""Intervals of coefficients: shares in closed form, the definition one draw at a time, and never without width."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import consilience as cs
from consilience.data.annotations import Annotations
from consilience.evaluation.agreement import alpha, annotator_margins, bayesian_bootstrap, chance
from consilience.evaluation.agreement.alpha import krippendorff_alpha
from consilience.evaluation.agreement.bayesian_bootstrap import Draws, bootstrap_interval
from consilience.evaluation.agreement.chance import FLEISS_CONVENTIONS, fleiss_kappa, gwet_ac1
from consilience.evaluation.agreement.coefficients import coefficients
from consilience.evaluation.agreement.counts import LabelCounts
from tests.evaluation.agreement.tables import counts_of, tables
from tests.evaluation.agreement.test_alpha import distances

VALUES = np.array([1.0, 2.0, 4.0])


def all_of(counts, level=0.95, annotations=None):
    return coefficients(counts, annotations, np.arange(1.0, counts.num_labels + 1), level, ordinal=True)[1:]


@pytest.mark.parametrize(("agree", "number", "level"), [(10, 10, 0.95), (19, 20, 0.95), (3, 6, 0.5)])
def test_a_share_has_the_posterior_of_jeffreys(agree, number, level):
    counts = counts_of(np.where(np.arange(number)[:, None] < agree, [2, 0], [1, 1]))
    own = np.column_stack([np.ones(number), np.arange(number) < agree])
    entries = counts.entries
    found = bootstrap_interval(entries, own, entries.number, np.arange(2), Draws.agreement, 2, level)
    expected = stats.beta(agree + 0.5, number - agree + 0.5).ppf([(1 - level) / 2, (1 + level) / 2])
    np.testing.assert_allclose(found, expected, atol=0.02)


def brute_force(table, statistic, num_draws=2000):
    """Draw as the definition says, all items, classes and annotations in dense tables."""
    random, (num_items, num_labels) = np.random.default_rng(7), table.shape
    drawn = []
    for _ in range(num_draws):
        weight = list(random.exponential(size=num_items))
        rows = [row.astype(float) for row in table]
        met = [(np.outer(row, row) - np.diag(row)) / max(1, row.sum() * (row.sum() - 1)) for row in table]
        left = random.exponential()
        for stick in range(12):
            part = left if stick == 11 else left * random.random()
            left -= part
            first = second = random.integers(num_labels)
            if random.random() < 0.5:
                second = random.choice(np.delete(np.arange(num_labels), first))
            row, pair = np.zeros(num_labels), np.zeros((num_labels, num_labels))
            row[first] += table.sum() / num_items / 2
            row[second] += table.sum() / num_items / 2
            pair[first, second] += 0.5
            pair[second, first] += 0.5
            weight, rows, met = [*weight, part], [*rows, row], [*met, pair]
        drawn.append(statistic(np.array(weight), np.array(rows), np.array(met)))
    return np.nanquantile(drawn, [0.025, 0.975])


def fleiss_of(weight, rows, met):
    observed = weight @ np.trace(met, axis1=1, axis2=2) / weight.sum()
    shares = weight @ rows / (weight @ rows).sum()
    return (observed - (shares**2).sum()) / (1 - (shares**2).sum())


def ac1_of(weight, rows, met):
    observed = weight @ np.trace(met, axis1=1, axis2=2) / weight.sum()
    shares = weight @ (rows / rows.sum(1, keepdims=True)) / weight.sum()
    expected = (1 - (shares**2).sum()) / (rows.shape[1] - 1)
    return (observed - expected) / (1 - expected)


def alpha_of(metric):
    def statistic(weight, rows, met):
        margins = weight @ rows
        coincidences = np.tensordot(weight * rows.sum(1), met, 1)
        distance = distances(metric, margins, VALUES)
        return 1 - (coincidences * distance).sum() / (margins @ distance @ margins) * margins.sum()

    return statistic


SKEWED = np.array([*[[3, 0, 0]] * 8, [2, 1, 0], [0, 2, 1], [1, 0, 3], [4, 0, 0]])


@pytest.mark.parametrize(
    ("estimate", "statistic"),
    [
        (fleiss_kappa, fleiss_of),
        (gwet_ac1, ac1_of),
        *((lambda counts, metric=metric: krippendorff_alpha(counts, metric, VALUES), alpha_of(metric))
          for metric in ("nominal", "ordinal", "interval", "ratio")),
    ],
    ids=["Fleiss", "AC1", "nominal", "ordinal", "interval", "ratio"],
)  # fmt: skip
def test_intervals_are_those_of_the_definition(estimate, statistic):
    found = estimate(counts_of(SKEWED))
    lower, upper = brute_force(SKEWED, statistic)
    assert found.lower == pytest.approx(lower, abs=0.05)
    assert found.upper == pytest.approx(max(upper, found.value), abs=0.03)


def at_equal_weights(monkeypatch):
    """Let intervals be the coefficient of the items themselves, without a pseudo-item."""

    def plain(entries, own, amount, label, coefficient, num_labels, level):
        sums = np.asarray(own.sum(axis=0)).reshape(1, -1)
        counted = np.bincount(entries.label, amount, len(label))[None]
        none = np.zeros((1, 1), int)
        used = np.union1d(label, [0])
        draws = Draws(sums, counted, np.zeros((1, 1)), none, none, used, np.searchsorted(used, label))
        return (coefficient(draws)[0],) * 2

    for module in (alpha, annotator_margins, chance):
        monkeypatch.setattr(module, "bootstrap_interval", plain)


def test_a_draw_of_equal_weights_is_the_value(monkeypatch):
    random = np.random.default_rng(0)
    at_equal_weights(monkeypatch)
    table = random.multinomial(random.integers(1, 6, 30), [0.6, 0.3, 0.1])
    counts = counts_of(table)
    for estimate in [*(fleiss_kappa(counts, convention) for convention in FLEISS_CONVENTIONS), gwet_ac1(counts)]:
        np.testing.assert_allclose([estimate.lower, estimate.upper], estimate.value)
    size = table.sum(1)[table.sum(1) > 1].sum()
    for metric in ("nominal", "ordinal", "interval", "ratio"):
        estimate = krippendorff_alpha(counts, metric, VALUES)
        assert estimate.lower == pytest.approx(1 - (1 - estimate.value) * size / (size - 1))
    rows = np.unique(random.integers(0, [30, 5, 3], (100, 3)), axis=0)
    many = Annotations.from_codes(*rows.T, num_items=30, num_labels=3)
    two = Annotations.from_codes(*rows[rows[:, 1] < 2].T, num_items=30, num_labels=3)
    for estimate in (annotator_margins.conger_kappa(many), *annotator_margins.two_annotators(two)):
        np.testing.assert_allclose([estimate.lower, estimate.upper], estimate.value)


@settings(max_examples=25)
@given(tables(3), st.sampled_from((0.5, 0.95)))
def test_no_interval_is_without_width(table, level):
    counts = counts_of(table)
    for estimate in all_of(counts, level):
        if (table.sum(1) >= 2).any():
            assert estimate.lower < estimate.upper <= 1
            assert not estimate.value < estimate.lower
            assert not min(estimate.value, 1) > estimate.upper
        else:
            assert np.isnan([estimate.lower, estimate.upper]).all()


@pytest.mark.parametrize("number", [6, 10_000])
@pytest.mark.parametrize("classes", [1, 2])
def test_items_that_all_agree_have_intervals_with_width(number, classes):
    label = np.repeat(np.arange(number) % classes, 3)
    rows = np.repeat(np.arange(number), 3), np.tile([0, 1, 2], number), label
    data = Annotations.from_codes(*rows, num_labels=2)
    for estimate in all_of(LabelCounts.of_annotations(data), annotations=data):
        assert estimate.lower < estimate.upper <= 1
        undefined = classes == 1 and estimate.name != "Gwet's AC1"
        assert np.isnan(estimate.value) if undefined else estimate.value == pytest.approx(1, abs=1e-9)


def test_blocks_of_draws_make_no_difference(monkeypatch):
    whole = all_of(counts_of(SKEWED))
    monkeypatch.setattr(bayesian_bootstrap, "_CELLS", 100)
    np.testing.assert_allclose([one[2:6] for one in all_of(counts_of(SKEWED))], [one[2:6] for one in whole])


def test_bags_of_items_are_as_wide(monkeypatch):
    random = np.random.default_rng(0)
    counts = counts_of(random.multinomial(random.integers(2, 6, 3000), [0.4, 0.3, 0.2, 0.1]))
    kinds = all_of(counts)
    # There are 108 kinds. A standard deviation over 90 bags is right up to 1 / √180, 7 %, and quantiles up to 3 %.
    monkeypatch.setattr(bayesian_bootstrap, "_MOST_UNITS", 90)
    for whole, bagged in zip(kinds, all_of(counts), strict=True):
        assert bagged.value == whole.value
        assert bagged.upper - bagged.lower == pytest.approx(whole.upper - whole.lower, rel=0.3)
        assert (bagged.lower, bagged.upper) != (whole.lower, whole.upper)


def test_the_note_on_a_class_that_few_items_show():
    table = np.array([*[[3, 0, 0]] * 10, [1, 2, 0]])
    [note] = cs.agreement(counts_of(table)).notes
    assert str(note) == "kappa and alpha depend on a class that 1 items show"
    [note] = cs.agreement(counts_of([*table, [0, 0, 2], [1, 1, 1], [2, 0, 1]])).notes
    assert str(note) == "kappa and alpha depend on classes that 4 items show"
    assert cs.agreement(counts_of([*table, *[[0, 0, 2]] * 4])).notes == ()
    assert cs.agreement(counts_of([[1, 0], [0, 1]])).notes == ()
    assert "0 items show" in str(cs.agreement(counts_of([[2, 0], [3, 0]])).notes[0])
    assert cs.agreement(counts_of(np.zeros((2, 2), int))).notes == ()
