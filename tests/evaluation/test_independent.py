"""Closed forms of independent units: a tiny case by hand, and against many draws of the truth."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats

import consilience as cs
from consilience.data import Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.posterior import posterior_agreement
from consilience.evaluation.independent import hit_moments, sum_of_indicators
from consilience.models.truth import Crowd, DirichletTruth, Entries, LabelDraws, LabelProbabilities, Ranked
from consilience.models.truth.classes import marginals
from consilience.models.truth.truth import Marginals

KEY = jax.random.key(2)
TINY = np.array([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8]])
CLASSES = ["0", "1", "2", "3"]


def labels(probability, num_draws=100, **more):
    return LabelProbabilities.dense(np.array(probability), key=jax.random.key(3), num_draws=num_draws, **more)


def predicted(lists, num_classes=2):
    named = [[str(code) for code in np.atleast_1d(one)] for one in lists]
    return Predictions.from_lists(named, classes=CLASSES[:num_classes])


def test_certainty_of_a_tiny_case():
    score = cs.certainty(labels(TINY))
    assert score.title.endswith(", exact")
    assert score.value == pytest.approx(2 / 3, abs=1e-12)
    assert score.sd == pytest.approx(np.sqrt(0.21 + 0.25 + 0.16) / 3, abs=1e-12)
    assert score.items.tolist() == [0.7, 0.5, 0.8]
    assert len(score.draws) == 0


def test_the_number_that_is_right_in_a_tiny_case():
    one, two = predicted([0, 0, 1]), predicted([0, 1, 1])
    score = cs.evaluate(labels(TINY), one)
    assert score.value == pytest.approx(2 / 3, abs=1e-12)
    law = sum_of_indicators(score.items)
    np.testing.assert_allclose(np.diff([0, *law.cdf(np.arange(4))]), [0.03, 0.22, 0.47, 0.28], atol=1e-12)
    assert [law.quantile(level) for level in (0.02, 0.2, 0.5, 0.99)] == [0, 1, 2, 3]
    assert score.interval == (0.0, 1.0)
    found = hit_moments(marginals(labels(TINY)), np.stack([[[0], [0]], [[0], [1]], [[1], [1]]]), np.arange(3))
    assert found.covariance[0, 1] == pytest.approx((0.21 - 0.25 + 0.16) / 9, abs=1e-12)
    comparison = cs.compare(labels(TINY), {"one": one, "two": two}, exact=True)
    np.testing.assert_allclose(comparison.values, 2 / 3, atol=1e-12)
    np.testing.assert_allclose(np.cov(comparison.truth_draws), found.covariance, atol=0.004)


@pytest.mark.parametrize("number", [1, 2, 5, 9])
def test_a_sum_of_indicators_is_the_sum_over_all_outcomes(number):
    p = np.random.default_rng(number).random(number)
    mass = np.zeros(number + 1)
    for outcome in itertools.product((0, 1), repeat=number):
        mass[sum(outcome)] += np.prod(np.where(outcome, p, 1 - p))
    np.testing.assert_allclose(sum_of_indicators(p).cdf(np.arange(number + 1)), np.cumsum(mass), atol=1e-12)


def test_many_indicators_follow_the_normal_law_with_skewness():
    p = np.random.default_rng(0).beta(8, 1, 1000)
    exact, close = sum_of_indicators(p[:999]), sum_of_indicators(p)
    assert exact.table is not None
    assert close.table is None
    values = np.arange(800, 1000)
    alike = sum_of_indicators(np.full(1000, 0.9))
    np.testing.assert_allclose(alike.cdf(values), stats.binom.cdf(values, 1000, 0.9), atol=4e-4)


def test_what_is_certain_is_a_point():
    law = sum_of_indicators(np.ones(5))
    assert law.cdf(np.array([4, 5])).tolist() == [0, 1]
    assert law.quantile(0.025) == law.quantile(0.975) == 5


def test_classes_are_looked_up_among_ragged_entries():
    found = Marginals(np.array([0, 2, 2, 5]), np.array([1, 3, 0, 2, 3], np.int32), np.array([0.6, 0.3, 0.2, 0.3, 0.5]),
                      np.array([0.05, 0.25, 0.0]))  # fmt: skip
    predicted = np.array([[[1, 0]], [[2, -1]], [[3, -2]]])
    np.testing.assert_allclose(hit_moments(found, predicted, np.arange(3)).unit, [[0.65, 0.25, 0.5]])


# ---- against draws ----


NUM_DRAWS = 100_000


def truths():
    random = np.random.default_rng(5)
    probability = random.dirichlet(np.full(4, 0.7), 50)
    entries = Entries.of(np.repeat(np.arange(50), 2), np.tile([0, 2], 50), 50, 4)
    return {
        "labels": labels(probability, NUM_DRAWS),
        "dirichlet": DirichletTruth(entries, random.gamma(2.0, size=100), 0.3, key=KEY, num_draws=NUM_DRAWS),
    }


@pytest.fixture(scope="module", params=["labels", "dirichlet"])
def truth(request):
    """Return a truth that keeps its draws: every pass would make the same ones again."""
    found, kept = truths()[request.param], {}
    make = found.blocks

    def blocks(question):
        if question not in kept:
            kept[question] = list(make(question))
        return iter(kept[question])

    found.blocks = blocks
    return found


def near(exact, drawn, sd):
    """Whether values agree within four Monte Carlo errors."""
    assert np.all(np.abs(np.asarray(exact) - drawn) <= 4 * np.asarray(sd) / np.sqrt(NUM_DRAWS) + 1e-9)


def test_scores_and_certainties_are_those_of_many_draws(truth):
    top = truth.lead.label
    risk = cs.ClassMap.from_codes([0, 1, 1, 0], classes=CLASSES, groups=["low", "high"])
    system = predicted(np.stack([top, (top + 1) % 4], axis=1), 4)
    for measure in (
        lambda exact: cs.certainty(truth, exact=exact),
        lambda exact: cs.certainty(truth, class_groups=risk, exact=exact),
        lambda exact: cs.certainty(truth, of=predicted(top, 4), exact=exact),
        lambda exact: cs.evaluate(truth, system, "top-1", exact=exact),
        lambda exact: cs.evaluate(truth, system, "top-2", exact=exact),
    ):
        exact, drawn = measure(True), measure(False)
        near(exact.value, drawn.value, exact.sd)
        near(exact.items, drawn.items, np.sqrt(exact.items * (1 - exact.items)))
        assert drawn.sd == pytest.approx(exact.sd, rel=4 / np.sqrt(2 * NUM_DRAWS))
        assert abs(np.subtract(exact.interval, drawn.interval)).max() <= 1 / 50 + 1e-9


def test_systems_that_agree_often_vary_together(truth):
    random, top = np.random.default_rng(1), truth.lead.label
    other = np.where(random.random(50) < 0.8, top, (top + 1) % 4)
    systems = {"a": predicted(top, 4), "b": predicted(other, 4), "again": predicted(other, 4)}
    exact, drawn = (cs.compare(truth, systems, exact=exact, provenance="annotations") for exact in (True, False))
    sd = exact.truth_draws.std(axis=1)
    near(exact.values, drawn.values, sd)
    expected, measured = np.cov(exact.truth_draws), np.cov(drawn.truth_draws)
    assert np.corrcoef(drawn.truth_draws)[0, 1] > 0.5
    np.testing.assert_allclose(expected, measured, atol=4 * np.sqrt(2) * sd.max() ** 2 / np.sqrt(20_000))
    np.testing.assert_array_equal(exact.truth_draws[1], exact.truth_draws[2])
    np.testing.assert_allclose(exact.draws.std(axis=1), drawn.draws.std(axis=1), rtol=0.1)
    assert exact.table["p_best"].to_numpy() == pytest.approx(drawn.table["p_best"].to_numpy(), abs=0.05)


@pytest.mark.parametrize("number", [999, 1000])
def test_a_leaderboard_of_few_items_draws_the_spread_alone(number):
    """A normal law of the mean of few items would end beyond 0 and 1; the mean itself is exact."""
    right = np.arange(number) % 10 > 0
    truth = labels(np.stack([0.9 * right, 1 - 0.9 * right], axis=1), 50)
    systems = {"one": predicted(np.zeros(number, int)), "two": predicted(np.arange(number) % 2)}
    found, exact = cs.compare(truth, systems), cs.compare(truth, systems, exact=True)
    assert (found.truth_draws.shape[1] == 50) == (number < 1000)
    np.testing.assert_array_equal(found.values, exact.values)


def test_the_intervals_of_a_leaderboard_end_within_0_and_1():
    """Ten labels of probability 0.95: two standard deviations above their mean lie beyond 1."""
    systems = {"good": predicted(np.zeros(10, int)), "bad": predicted(np.ones(10, int))}
    table = cs.compare(labels(np.tile([0.95, 0.05], (10, 1))), systems, exact=True, provenance="annotations").table
    assert 0.95 <= table["upper"][0] < 1
    assert 0 < table["lower"][1] <= 0.05


def test_sets_of_labels_count_where_they_hold_the_label():
    truth = labels(TINY)
    assert cs.certainty(truth, of=predicted([[0, 1], [0], [0]])).items.tolist() == [1, 0.5, 0.2]


def test_implied_agreement_is_that_of_many_draws():
    random = np.random.default_rng(0)
    probability, agreement = random.dirichlet(np.full(3, 0.6), 50), random.beta(8, 2, (2000, 3))
    crowd = Crowd(None, lambda: agreement, lambda random, draw, label: label)
    exact = posterior_agreement(labels(probability, 2000, crowd=crowd))
    drawn = (random.random((20_000, 50, 1)) > probability.cumsum(axis=1)).sum(axis=2).clip(0, 2)
    values = agreement[np.arange(20_000) % 2000][np.arange(20_000)[:, None], drawn]
    assert exact.value == pytest.approx(values.mean(), abs=5 * exact.sd / np.sqrt(2000))
    assert exact.sd == pytest.approx(values.mean(axis=1).std(ddof=1), rel=0.04)
    np.testing.assert_allclose(exact.items, values.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(exact.item_lower, np.quantile(values, 0.025, axis=0), atol=0.03)
    np.testing.assert_allclose(exact.item_upper, np.quantile(values, 0.975, axis=0), atol=0.03)
    by_draws = posterior_agreement(labels(probability, 2000, crowd=crowd), exact=False)
    assert by_draws.value == pytest.approx(exact.value, abs=5 * exact.sd / np.sqrt(2000))


# ---- what has none ----


def test_what_has_no_closed_form_is_refused_by_name():
    drawn = LabelDraws(np.array([[0, 1, 1], [0, 0, 1]]), 2)
    for asked, words in (
        (lambda: cs.certainty(drawn, exact=True), "certainty"),
        (lambda: cs.evaluate(drawn, predicted([0, 1, 1]), exact=True), "top-1 has no closed form"),
        (lambda: cs.compare(drawn, {"a": predicted([0, 1, 1])}, exact=True), "top-1 has no closed form"),
        (lambda: cs.certainty(truths()["dirichlet"], top=2, exact=True), "the top 2 classes"),
        (lambda: cs.evaluate(truths()["dirichlet"], predicted(np.zeros(50, int), 4), "set-1", exact=True), "set-1"),
    ):
        with pytest.raises(UnsupportedRequest, match=words):
            asked()


def test_closed_forms_do_not_touch_a_device(monkeypatch):
    truth = labels(np.random.default_rng(0).dirichlet(np.ones(4), 300), 1000)

    def refuse(*given, **named):
        raise AssertionError("draws were made")

    monkeypatch.setattr(LabelProbabilities, "labels", refuse)
    monkeypatch.setattr(jax.numpy, "asarray", refuse)
    top = truth.exact(Ranked(1)).code[np.arange(0, 1200, 4)]
    systems = {"a": predicted(top, 4), "b": predicted(np.zeros(300, int), 4)}
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *rest, **more: compiled.append(name))
    cs.certainty(truth)
    cs.evaluate(truth, systems["a"], "top-1")
    cs.compare(truth, systems, exact=True)
    assert not [name for name in compiled if "compile" in name]


@pytest.mark.public_data
def test_the_original_labels_of_cifar10h():
    """The specification's figure, by quadrature: one vote counts as one, and one as many for each class."""
    images = cs.load("cifar10h")
    original = cs.Predictions.from_lists(
        [[images.labels[code]] for code in images.gold], items=images.items, classes=images.labels
    )
    score = cs.evaluate(cs.fit("dirichlet", images, reliability=1.0), original, exact=True)
    assert score.value == pytest.approx(0.9915365, abs=5e-8)
    assert score.mcse == 0
