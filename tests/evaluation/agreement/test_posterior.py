"""Agreement as the posterior implies it, and the check of a model by the observed agreement."""

import functools

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import consilience as cs
from consilience.data import Annotations, Rankings, Ratings
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.agreement import posterior as posterior_module
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.posterior import PosteriorAgreement, posterior_agreement
from consilience.evaluation.agreement.sparse_probability import sparse_agreement
from consilience.evaluation.agreement.weighting import SCHEME_WORDS, SCHEMES, weight_function
from consilience.models.normal_inverse_gamma import SampledSides
from consilience.models.truth import Crowd, DirichletTruth, Entries, LabelDraws, PlausibilityDraws
from consilience.models.truth.plausibilities import OtherMass
from consilience.models.truth.truth import Agreement, Block
from tests.evaluation.agreement.tables import counts_of

RANKINGS = Rankings.from_nested(
    [[[[0], [1, 2]], [[1, 2, 3]], [[4], [0]]], [[[0, 1], [2]], [[1]]], [[[3]], [[3]], [[0], [3]]]],
    classes=[f"class {code}" for code in range(6)],
)


def assert_mean(draws, expected, sigmas=5, slack=1e-6):
    """Compare means over draws, the last axis but for items ``(draw, item)`` the first, in Monte Carlo errors."""
    error = draws.std(0, ddof=1) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(0) - expected) < sigmas * error + slack)


def dirichlet_agreement(truth):
    """E Σ λ² of each item, in closed form."""
    a, item, unnamed = truth.concentration, truth.entries.item, truth.entries.num_unnamed
    total = np.bincount(item, a, truth.num_units) + unnamed * truth.unnamed
    squares = np.bincount(item, a * (a + 1), truth.num_units) + unnamed * truth.unnamed * (truth.unnamed + 1)
    return squares / (total * (total + 1))


def annotate(random, plausibility, size):
    """Draw labels from plausibilities ``(item, class)``, as counts."""
    return counts_of(random.multinomial(size, plausibility))


def dirichlet_posterior(counts, alpha, num_draws, seed=0):
    """Return the truth of a Dirichlet model that names every class, so that all data sets have one shape."""
    table = np.full((counts.num_items, counts.num_labels), alpha)
    table[counts.entries.item, counts.entries.label] += counts.entries.number
    entries = Entries.dense(*table.shape)
    return DirichletTruth(entries, table.ravel(), 0.0, key=jax.random.key(seed), num_draws=num_draws)


# ---- what the posterior implies ----


def test_dirichlet_posteriors_imply_the_closed_form():
    random = np.random.default_rng(1)
    annotations = Annotations.from_codes(
        random.integers(0, 40, 150), None, random.integers(0, 3, 150) ** 2, num_items=45, num_labels=7
    )
    fit = cs.fit("dirichlet", annotations, draws=3000, reliability=0.7)
    counts = LabelCounts.of_annotations(annotations)
    found = posterior_agreement(fit.truth, counts, num_predictive=20)
    expected = dirichlet_agreement(fit.truth)
    draws = np.concatenate([block.real for block in fit.truth.blocks(Agreement())]).T
    assert_mean(draws, expected)
    np.testing.assert_allclose(found.items, draws.mean(0), rtol=1e-5)
    np.testing.assert_allclose(found.item_lower, np.quantile(draws, 0.025, axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.item_upper, np.quantile(draws, 0.975, axis=0), rtol=1e-5)
    annotated = counts.size > 0
    assert found.num_items == annotated.sum() < 45
    np.testing.assert_allclose(found.draws, draws[:, annotated].mean(1), rtol=1e-5)
    assert_mean(found.draws, expected[annotated].mean())
    assert found.value == pytest.approx(found.draws.mean())
    assert found.sd == pytest.approx(np.std(found.draws, ddof=1))
    assert found.interval == pytest.approx(tuple(np.quantile(found.draws, [0.025, 0.975])))
    without = posterior_agreement(fit.truth, level=0.5)
    np.testing.assert_allclose(without.draws, draws.mean(1), rtol=1e-5)
    assert without.num_items == 45
    assert found.interval[0] < without.interval[0] < without.interval[1]
    assert list(found.table) == ["item", "agreement", "lower", "upper"]


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_prirn_implies_the_closed_form(alpha):
    fit = cs.fit("prirn", RANKINGS, draws=4000, reliability=5.0, alpha=alpha)
    found = posterior_agreement(fit.truth)
    assert_mean(found.draws, dirichlet_agreement(fit.truth).mean())
    assert not len(found.predictive)
    assert np.isnan([found.observed, found.predictive_p, found.two_sided_p, *found.predictive_interval]).all()
    assert found.verdict == ""
    assert str(found).endswith("all 3 items count alike.")


def test_a_point_estimate_implies_one_number_without_spread():
    fit = cs.fit("irn", RANKINGS)
    found = posterior_agreement(fit.truth)
    score = fit.truth.score
    expected = np.bincount(fit.truth.entries.item, score**2, 3) / np.bincount(fit.truth.entries.item, score, 3) ** 2
    np.testing.assert_allclose(found.items, expected, rtol=1e-5)
    assert found.value == pytest.approx(expected.mean())
    assert np.isnan([found.sd, *found.interval, *found.item_lower, *found.item_upper]).all()
    assert "draws" not in str(found)


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
@pytest.mark.slow  # compiling the sampler takes ten seconds
def test_plackett_luce_implies_the_agreement_of_its_draws():
    fit = cs.fit("plackett-luce", RANKINGS, draws=100, chains=1, warmup=20)
    found = posterior_agreement(fit.truth)
    named, other = (np.asarray(fit.posterior.value(site), float).reshape(100, -1) for site in ("plausibility", "other"))
    squares = np.stack([np.bincount(RANKINGS.entry_item, row**2, 3) for row in named])
    # The U classes of an item that nobody named divide their mass uniformly: E Σ s² = 2 / (U + 1).
    unnamed = 6 - np.bincount(RANKINGS.entry_item, minlength=3)
    expected = squares + other**2 * 2 / (unnamed + 1)
    assert sorted(unnamed) == [1, 3, 4]
    np.testing.assert_allclose(found.draws, expected.mean(1), rtol=1e-4)


def test_a_function_of_ones_own_implies_the_agreement_of_its_draws():
    def model(data):
        with numpyro.plate("item", data.num_items):
            plausibility = numpyro.sample("plausibility", dist.Dirichlet(np.ones(data.num_labels)))
        numpyro.factor("labels", (data.weight * jax.numpy.log(plausibility[data.item, data.label])).sum())

    annotations = Annotations.from_codes([0, 0, 0, 1, 1, 2], None, [0, 0, 1, 2, 2, 1])
    with pytest.warns(cs.errors.DiagnosticWarning):
        fit = cs.fit(
            model, annotations, method="nuts", draws=50, chains=2, warmup=50,
            truth=lambda key, draw, data: draw["plausibility"],
        )  # fmt: skip
    found = posterior_agreement(fit.truth, LabelCounts.of_annotations(annotations), num_predictive=30)
    draws = fit.posterior.plausibility
    np.testing.assert_allclose(found.draws, (draws**2).sum(-1).mean(1), rtol=1e-4)
    assert found.observed == pytest.approx((2 * (2 / 6) + 1) / 3)
    assert len(found.predictive) == 30


def test_a_truth_of_labels_says_that_it_lacks_the_errors_of_the_annotators():
    counts = LabelCounts.of_codes(np.array([0, 1]), np.array([0, 1]))
    truth = LabelDraws(np.zeros((3, 2), int), 2)
    with pytest.raises(UnsupportedRequest, match="errors"):
        posterior_agreement(truth)
    with pytest.raises(UnsupportedRequest, match="errors"):
        posterior_agreement(truth, counts)


def test_ratings_agree_when_they_lie_on_the_same_side():
    ratings = Ratings.from_codes([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [1.0, 2.0, 0.5, -1.5, -1.0])
    fit = cs.fit("normal-inverse-gamma", ratings, threshold=0.8, draws=4000)
    found = cs.agreement(fit)
    own = fit.posterior.mean
    location, strength, shape, scale = (
        column[:, None] for column in (own.location, own.strength, own.shape, own.scale)
    )
    random = np.random.default_rng(0)
    variance = scale / random.gamma(shape, size=(2, 100_000))
    below = stats.norm.cdf(0.8, random.normal(location, np.sqrt(variance / strength)), np.sqrt(variance))
    same = below**2 + (1 - below) ** 2
    error = same.std(1) * np.sqrt(1 / 4000 + 1 / 100_000)
    assert (np.abs(found.items - same.mean(1)) < 5 * error).all()
    assert not len(found.predictive)
    draws = {"mean": np.asarray(fit.samples()["mean"]), "variance": np.asarray(fit.samples()["variance"])}
    stored = SampledSides(*(value.reshape(-1, 2) for value in draws.values()), 0.8)
    stored_items = posterior_agreement(stored).items
    assert (np.abs(stored_items - same.mean(1)) < 5 * error).all()


def test_a_truth_of_labels_may_say_how_often_annotators_agree():
    class WithErrors(LabelDraws):
        def _agreement(self):
            yield Block(slice(0, 2), slice(0, 2), np.array([[0.5, 0.7], [0.9, 0.9], [0, 0]]))

    found = posterior_agreement(WithErrors(np.zeros((2, 2), int), 2))
    np.testing.assert_allclose(found.items, [0.6, 0.9])
    np.testing.assert_allclose(found.draws, [0.7, 0.8])


# ---- the predictive check ----


@pytest.mark.parametrize("scheme", SCHEMES)
def test_observed_agreement_is_spa(scheme):
    random = np.random.default_rng(2)
    counts = annotate(random, random.dirichlet(np.ones(4), 60), random.integers(0, 9, 60))
    found = posterior_agreement(dirichlet_posterior(counts, 1.0, 50), counts, scheme=scheme, num_predictive=5)
    weight = weight_function(scheme, counts)
    assert found.observed == pytest.approx(sparse_agreement(counts.patterns, weight).value)
    assert found.scheme == scheme
    assert SCHEME_WORDS[scheme] in str(found)
    given = posterior_agreement(dirichlet_posterior(counts, 1.0, 50), counts, weight, "mine", num_predictive=5)
    np.testing.assert_array_equal(given.predictive, found.predictive)
    assert given.scheme == "mine"


@pytest.mark.parametrize("limit", [1 << 18, 500])
def test_simulated_annotations_agree_as_often_as_their_plausibilities_say(monkeypatch, limit):
    """Mean and variance of SPA of simulated annotations, in closed form, for known plausibilities."""
    monkeypatch.setattr(posterior_module, "_NUMBERS", limit)
    random = np.random.default_rng(3)
    plausibility = random.dirichlet(np.full(5, 0.5), 12)
    plausibility[3] = [0, 0, 1, 0, 0]
    counts = annotate(random, plausibility, [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 30, 200])
    found = posterior_agreement(PlausibilityDraws.dense(plausibility[None]), counts, num_predictive=4000)
    n = counts.size[2:]
    second, third = (plausibility[2:] ** 2).sum(1), (plausibility[2:] ** 3).sum(1)
    weight = (n - 1) / (n - 1).sum()
    assert_mean(found.predictive, weight @ second)
    variance = 2 * (second - second**2) + 4 * (n - 2) * (third - second**2)
    variance = weight**2 @ (variance / (n * (n - 1)))
    assert_mean((found.predictive - weight @ second) ** 2, variance, slack=0)


def test_unnamed_classes_are_simulated_together():
    """Pairs among them agree with the probability of their divided mass."""
    num_draws, size = 2000, 6
    entries = Entries.of(np.array([0]), np.array([1]), 2, 5)
    other = OtherMass(np.log(np.full((num_draws, 2), 3.0)), 0.5, jax.random.key(1))
    truth = PlausibilityDraws(entries, np.zeros((num_draws, 1)), other)
    counts = LabelCounts.of_codes(np.array([0, 1]), np.array([1, 2]), np.array([size, size]), num_labels=5)
    found = posterior_agreement(truth, counts, num_predictive=num_draws)
    expected = np.array([1 / 16 + 9 / 16 * 1.5 / 3, 1.5 / 3.5])
    np.testing.assert_allclose(found.items, expected, rtol=1e-5)
    assert_mean(found.predictive, expected.mean())
    assert found.predictive.std() > 0
    assert found.observed == 1


def check_p(alpha, random, num_draws, size=5, num_items=30, num_predictive=99):
    """Simulate data from the Dirichlet model, fit it, and check it."""
    plausibility = random.dirichlet(np.full(3, alpha), num_items)
    counts = annotate(random, plausibility, size)
    truth = dirichlet_posterior(counts, alpha, num_draws, seed=int(random.integers(1 << 30)))
    found = posterior_agreement(truth, counts, num_predictive=num_predictive, seed=int(random.integers(1 << 30)))
    # Ties are broken at random, as an exact p-value needs.
    below = (found.predictive < found.observed - 1e-9).sum()
    tied = (np.abs(found.predictive - found.observed) <= 1e-9).sum()
    return (below + random.integers(0, tied + 1)) / num_predictive


def test_p_values_of_single_draws_are_uniform():
    random = np.random.default_rng(5)
    found = np.array([check_p(0.7, random, 1) for _ in range(300)])
    assert stats.kstest(found, stats.uniform.cdf).pvalue > 1e-4


def test_p_values_over_all_draws_are_cautious():
    random = np.random.default_rng(6)
    found = np.array([check_p(0.7, random, 50) for _ in range(300)])
    assert_mean(found, 0.5)
    # No more spread than uniform numbers, of which the square has a standard deviation of sqrt(1/180).
    assert ((found - 0.5) ** 2).mean() < 1 / 12 + 5 * np.sqrt(1 / 180 / 300)
    for level in (0.05, 0.2):
        assert (found <= level).mean() < 2 * level + 5 * np.sqrt(2 * level / 300)


@functools.cache
def adjudicated(num_items=1000):
    """Two annotators an item, and a third one where they differ; and the probability that two agree."""
    random = np.random.default_rng(7)
    plausibility = random.dirichlet(np.full(3, 0.5), num_items)
    label = np.array([random.choice(3, 3, p=row) for row in plausibility])
    asked = np.ones(label.shape, bool)
    asked[label[:, 0] == label[:, 1], 2] = False
    counts = LabelCounts.of_codes(np.nonzero(asked)[0], label[asked], num_items=num_items, num_labels=3)
    return counts, (plausibility**2).sum(1).mean()


def test_adjudication_misleads_spa_and_not_the_posterior():
    counts, expected = adjudicated()
    truth = dirichlet_posterior(counts, 0.5, 200)
    flat, edge = (posterior_agreement(truth, counts, scheme=scheme) for scheme in ("flat", "edge"))
    assert abs(flat.value - expected) < 5 * flat.sd
    assert flat.observed > expected + 5 * flat.sd
    assert edge.observed < expected - 5 * edge.sd
    assert flat.predictive_p == 1
    assert edge.predictive_p == 0
    assert edge.two_sided_p == pytest.approx(2 / 201)
    assert "agree more than the model expects" in flat.verdict
    assert "agree less than the model expects" in str(edge)
    assert "depended on their agreement" in edge.verdict


def test_too_sharp_a_prior_expects_more_agreement():
    random = np.random.default_rng(4)
    counts = annotate(random, random.dirichlet(np.full(3, 2.0), 200), 3)
    found = posterior_agreement(dirichlet_posterior(counts, 0.05, 100), counts)
    assert found.observed < found.predictive_interval[0]
    assert "agree less than the model expects" in found.verdict
    assert "too sharp" in found.verdict


def test_the_verdict_on_copied_labels_is_that_annotators_agree_more():
    random = np.random.default_rng(8)
    counts = annotate(random, random.dirichlet(np.full(3, 1.0), 200), 1)
    copied = LabelCounts.of_codes(*counts.columns[:2], np.full(200, 4), num_items=200, num_labels=3)
    found = posterior_agreement(dirichlet_posterior(copied, 1.0, 100), copied)
    assert found.predictive_p == 1
    assert found.two_sided_p < 0.05
    assert "agree more than the model expects" in found.verdict


def test_a_true_model_is_found_to_fit():
    random = np.random.default_rng(9)
    counts = annotate(random, random.dirichlet(np.full(3, 0.5), 300), 4)
    found = posterior_agreement(dirichlet_posterior(counts, 0.5, 200), counts)
    assert found.predictive_interval[0] < found.observed < found.predictive_interval[1]
    assert "as the model expects" in found.verdict
    assert isinstance(found, PosteriorAgreement)


def test_a_model_that_expects_what_was_observed_fits_even_if_nothing_else_was_possible():
    counts = LabelCounts.of_codes(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]))
    truth = PlausibilityDraws.dense(np.eye(2)[None])
    found = posterior_agreement(truth, counts, num_predictive=10)
    assert (found.predictive == 1).all()
    assert (found.observed, found.predictive_p, found.two_sided_p) == (1, 1, 1)
    assert "as the model expects" in found.verdict


def test_without_a_pair_of_annotations_nothing_is_checked():
    random = np.random.default_rng(10)
    counts = annotate(random, random.dirichlet(np.ones(3), 5), 1)
    found = posterior_agreement(dirichlet_posterior(counts, 1.0, 20), counts)
    assert np.isnan([found.observed, found.predictive_p, found.two_sided_p]).all()
    assert found.verdict == ""
    assert 0 < found.value < 1
    none = annotate(random, random.dirichlet(np.ones(3), 5), 0)
    assert np.isnan(posterior_agreement(dirichlet_posterior(none, 1.0, 20), none).value)


def test_the_seed_fixes_the_simulation():
    counts, _ = adjudicated()
    truth = dirichlet_posterior(counts, 0.5, 40)
    first, same, other = (posterior_agreement(truth, counts, seed=seed, num_predictive=30) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.predictive, same.predictive)
    assert not np.array_equal(first.predictive, other.predictive)
    np.testing.assert_array_equal(first.draws, other.draws)


def test_requests_that_have_no_answer():
    counts, _ = adjudicated()
    truth = dirichlet_posterior(counts, 0.5, 10)
    with pytest.raises(UnsupportedRequest, match="5 items and 3 labels, the truth 1000 and 3"):
        posterior_agreement(truth, annotate(np.random.default_rng(0), np.full((5, 3), 1 / 3), 2))
    with pytest.raises(UnknownName, match="egde"):
        posterior_agreement(truth, counts, scheme="egde")


@pytest.mark.public_data
def test_cifar10h_annotators_agree_more_than_a_tenth_of_an_annotation_a_class_allows():
    annotations = cs.load("cifar10h")
    fit = cs.fit("dirichlet", annotations, draws=200)
    found = posterior_agreement(fit.truth, LabelCounts.of_annotations(annotations), num_predictive=50)
    assert_mean(found.draws, dirichlet_agreement(fit.truth).mean())
    assert "agree more than the model expects" in found.verdict


def test_annotators_with_errors_are_simulated_one_by_one():
    """One annotator is always right, the other always wrong: they never agree, whatever the labels."""
    label = np.random.default_rng(0).integers(0, 2, (30, 50))
    data = Annotations.from_codes(np.repeat(np.arange(50), 2), np.tile([0, 1], 50), np.tile([0, 1], 50))
    flips = np.asarray(data.annotator)

    def annotate(random, draw, true, rows):
        assert rows == slice(None)
        assert (true == label[draw]).all()
        return true[np.asarray(data.item)] ^ flips

    truth = LabelDraws(label, 2, Crowd(None, lambda: np.zeros((30, 2)), annotate))
    found = posterior_agreement(truth, LabelCounts.of_annotations(data), num_predictive=60)
    assert found.value == found.observed == 0
    assert (found.predictive == 0).all()
    assert "as the model expects" in found.verdict


@pytest.mark.parametrize("model", ["dawid-skene", "mace", "mpa"])
def test_a_large_check_is_of_some_items(model):
    random = np.random.default_rng(2)
    item, true = np.repeat(np.arange(400), 4), random.integers(0, 3, 400)
    label = np.where(random.random(1600) < 0.8, true[item], random.integers(0, 3, 1600))
    fit = cs.fit(model, cs.Annotations.from_codes(item, random.integers(0, 9, 1600), label), draws=50)
    every, some = (cs.agreement(fit, num_predictive=100, most_simulated=most) for most in (160_000, 40_000))
    assert (every.checked, some.checked) == (None, 100)
    assert "100 items taken at random" in some.verdict
    assert some.value == every.value
    assert 0 < abs(some.observed - every.observed) < 0.15
    # A quarter of the items scatters twice as much.
    assert 1.2 < some.predictive.std() / every.predictive.std() < 2.5
