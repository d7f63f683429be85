"""Dirichlet plausibilities of single labels: counts, weights, priors."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import consilience as cs
from consilience.data import Annotations
from consilience.errors import ConsilienceWarning, InvalidPrior, NotConjugate, UnsupportedRequest
from consilience.models.concentration import CountsOfClasses
from consilience.models.dirichlet import Learned, Priors, Symmetric
from consilience.models.truth import Ranked

ITEM, ANNOTATOR, LABEL = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 0, 1, 0]), np.array([0, 0, 1, 2, 0, 2])
COUNTS = np.array([[2, 1, 0], [1, 0, 1], [0, 0, 1], [0, 0, 0]])


def annotations(**changes):
    return Annotations.from_codes(ITEM, ANNOTATOR, LABEL, **{"num_items": 4, "num_labels": 3, **changes})


def concentration(fit):
    own = fit.posterior.plausibility
    dense = np.full((fit.data.num_items, fit.data.num_labels), own.unnamed)
    dense[own.entries.item, own.entry_class] = own.concentration
    return dense


def test_counts_are_added_to_the_prior():
    np.testing.assert_allclose(concentration(cs.fit("dirichlet", annotations(), alpha=0.1)), COUNTS + 0.1, rtol=1e-15)
    fit = cs.fit("dirichlet", annotations(), alpha=0.7, reliability=2.5)
    np.testing.assert_allclose(concentration(fit), 2.5 * COUNTS + 0.7, rtol=1e-15)


def test_summaries_are_those_of_the_beta_marginals():
    fit = cs.fit("dirichlet", annotations(), alpha=0.7)
    whole, own = COUNTS + 0.7, COUNTS[COUNTS > 0] + 0.7
    beta = stats.beta(own, np.repeat(whole.sum(axis=1), (COUNTS > 0).sum(axis=1)) - own)
    found = fit.posterior.plausibility.summary(0.9)
    for part, expected in zip(found, (beta.mean(), beta.std(), beta.ppf(0.05), beta.ppf(0.95)), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-6)


def test_weights_and_rows_and_reliability_are_the_same_thing():
    double = concentration(cs.fit("dirichlet", annotations(), reliability=2, alpha=0.1))
    weighted = annotations(weight=np.full(6, 2.0))
    rows = Annotations.from_codes(*(np.tile(column, 2) for column in (ITEM, ANNOTATOR, LABEL)), num_items=4)
    counts = Annotations.from_counts(2 * COUNTS)
    for other in (weighted, rows, counts):
        np.testing.assert_array_equal(concentration(cs.fit("dirichlet", other, alpha=0.1)), double)


def test_rows_of_weight_zero_say_nothing():
    weight = np.array([1.0, 1, 0, 1, 1, 1])
    fit = cs.fit("dirichlet", annotations(weight=weight), alpha=0.1)
    np.testing.assert_allclose(concentration(fit)[0], [2.1, 0.1, 0.1], rtol=1e-15)
    nothing = cs.fit("dirichlet", annotations(weight=np.zeros(6)))
    np.testing.assert_allclose(nothing.labels()["certainty"], 1 / 3, rtol=1e-12)


def test_an_asymmetric_prior():
    alpha = np.array([0.5, 1.0, 3.0])
    fit = cs.fit("dirichlet", annotations(), Priors(plausibility=dist.Dirichlet(jnp.asarray(alpha))), draws=20_000)
    np.testing.assert_allclose(concentration(fit), COUNTS + alpha, rtol=1e-7)
    labels = fit.labels()
    assert labels["label"].tolist() == ["2", "2", "2", "2"]
    np.testing.assert_allclose(labels["probability"], [3 / 7.5, 4 / 6.5, 4 / 5.5, 3 / 4.5], rtol=1e-6)
    exact, drawn = cs.certainty(fit).items, cs.certainty(fit, exact=False).items
    assert np.abs((exact - drawn) / np.sqrt(exact * (1 - exact) / 20_000)).max() < 5
    # The point estimate counts votes only; what has none comes after, by code.
    point = np.concatenate([block.real[:, 0] for block in fit.truth.standard().blocks(Ranked(3))])
    assert point.tolist() == [[0, 1, 2], [0, 2, 1], [2, 0, 1], [0, 1, 2]]


def test_draws_of_the_sites_have_the_posterior_marginals():
    fit = cs.fit("dirichlet", annotations(), alpha=0.4)
    draws = fit.samples(5000)["plausibility"][0]
    dense = concentration(fit)
    for item in range(4):
        for label in range(3):
            a = dense[item, label]
            marginal = stats.beta(a, dense[item].sum() - a)
            assert stats.kstest(draws[:, item, label], marginal.cdf).pvalue > 1e-4


def test_a_million_labels_need_no_array_of_items_and_labels():
    data = Annotations.from_codes(np.arange(2000), np.zeros(2000, int), np.arange(2000), num_labels=10**6)
    fit = cs.fit("dirichlet", data, alpha=1e-6, draws=50)
    assert sum(np.size(part) for part in vars(fit.posterior.plausibility).values()) < 10_000
    np.testing.assert_allclose(fit.labels()["probability"], 1.000001 / 2, rtol=1e-5)
    with pytest.raises(UnsupportedRequest, match="numbers; ask for fewer draws"):
        fit.samples()


def test_priors_that_do_not_fit():
    with pytest.raises(InvalidPrior, match=r"site 'plausibility'.*\(2,\).*\(3,\)"):
        cs.fit("dirichlet", annotations(), Priors(plausibility=dist.Dirichlet(jnp.ones(2))))
    with pytest.raises(InvalidPrior, match="to_event"):
        cs.fit("dirichlet", annotations(), Priors(plausibility=dist.Gamma(jnp.ones(3))))
    several = Priors(plausibility=dist.Dirichlet(jnp.ones((4, 3))))
    with pytest.raises(NotConjugate, match="plausibility"):
        cs.fit("dirichlet", annotations(), several, method="exact")


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_a_prior_per_item_goes_to_nuts():
    """Items with priors of their own: the generic answer is the conjugate one, item by item."""
    alpha = np.array([[2.0, 1, 1], [1, 3, 1], [1, 1, 1], [5, 1, 2]])
    priors = Priors(plausibility=dist.Dirichlet(jnp.asarray(alpha)))
    with pytest.warns(ConsilienceWarning, match="fitted by nuts"):
        fit = cs.fit("dirichlet", annotations(), priors, draws=500)
    total = COUNTS + alpha
    table = fit.summary()
    assert np.abs((table["mean"] - (total / total.sum(1, keepdims=True)).ravel()) / table["mcse"]).max() < 5


def test_alpha_has_to_be_positive():
    for value in (0, -1, float("nan"), float("inf"), "much"):
        with pytest.raises(UnsupportedRequest, match="alpha"):
            cs.fit("dirichlet", annotations(), alpha=value)
    with pytest.raises(UnsupportedRequest, match="twice"):
        cs.fit("dirichlet", annotations(), Priors(), alpha=1.0)


@pytest.mark.parametrize("spread", [np.inf, 2.0, 0.5])
def test_the_most_probable_concentration_is_that_of_a_grid(spread):
    """Of few counts, by the probabilities of labels one after another (Pólya's urn)."""
    counts = CountsOfClasses.of(COUNTS[COUNTS > 0], COUNTS.sum(axis=1), 3)
    grid = np.exp(np.linspace(np.log(0.01), np.log(100), 2_000))

    def urn(alpha):
        seen, log_probability = np.zeros((4, 3)), 0.0
        for item, label in zip(ITEM, LABEL, strict=True):
            log_probability += np.log((alpha + seen[item, label]) / (3 * alpha + seen[item].sum()))
            seen[item, label] += 1
        return log_probability

    expected = np.array([urn(alpha) for alpha in grid]) - (np.log(grid / 0.01) / spread) ** 2 / 2
    assert counts.most_probable(0.01, 100, spread=spread) == pytest.approx(grid[expected.argmax()], rel=0.01)


def drawn(alpha, seed, *, items=100, annotators=5, labels=4):
    random = np.random.default_rng(seed)
    plausibility = random.dirichlet(np.full(labels, alpha), items)
    counts = np.array([random.multinomial(annotators, one) for one in plausibility])
    return Annotations.from_counts(counts), plausibility.argmax(axis=1)


@pytest.mark.parametrize(
    ("alpha", "between"), [(0.05, (0.1, 0.1)), (0.1, (0.1, 0.11)), (0.5, (0.45, 0.55)), (1.0, (0.9, 1.1))]
)
def test_the_number_added_to_each_label_is_learned_and_never_below_its_least(alpha, between):
    data, _ = drawn(alpha, 0, items=2_000)
    fit = cs.fit("dirichlet", data)
    learned = fit.posterior.plausibility.unnamed
    assert between[0] <= learned <= between[1]
    said = [note.words() for note in fit.findings()]
    assert said == [f"the prior adds {learned:.2g} to each label (alpha), as learned from how often the labels of an "
                    "item differ"] * bool(learned > 0.1)  # fmt: skip
    for options in ({"alpha": 0.1}, {"priors": Priors(plausibility=Symmetric(0.1))}):
        chosen = cs.fit("dirichlet", data, **options)
        assert chosen.posterior.plausibility.unnamed == 0.1
        assert not chosen.findings()


def test_what_is_learned_does_not_depend_on_the_reliability_and_not_on_broken_weights():
    data, _ = drawn(0.5, 0)
    first, second = (cs.fit("dirichlet", data, reliability=one).posterior.plausibility.unnamed for one in (1.0, 5.0))
    assert first == second > 0.1
    broken = Annotations.from_counts(np.asarray([[2.5, 1.0], [1.0, 2.0]]))
    assert cs.fit("dirichlet", broken).posterior.plausibility.unnamed == 0.1
    some, heavy = (Annotations.from_counts(np.array([[size, 2 * size]] * 3)) for size in (10**3, 10**12))
    unnamed = [cs.fit("dirichlet", one).posterior.plausibility.unnamed for one in (some, heavy)]
    assert 1 < unnamed[0] == pytest.approx(unnamed[1], rel=0.01)  # and no array of a trillion counters
    with pytest.raises(InvalidPrior, match=r"least of Learned\(least\)"):
        Learned(least=0.0)


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_nuts_has_the_prior_that_was_learned():
    data, _ = drawn(1.0, 0, items=5)
    exact = cs.fit("dirichlet", data)
    table = cs.fit("dirichlet", data, method="nuts", draws=500).summary()
    dense = concentration(exact)
    assert exact.posterior.plausibility.unnamed > 0.2
    assert np.abs((table["mean"] - (dense / dense.sum(1, keepdims=True)).ravel()) / table["mcse"]).max() < 5


def test_certainties_are_right_as_often_as_they_say():
    """With 0.1 for each label they are stated .07 higher."""
    stated, right = np.zeros(2), np.zeros(2)
    for seed in range(20):
        data, top = drawn(1.0, seed, items=200)
        for place, options in enumerate(({"alpha": 0.1}, {})):
            labels = cs.fit("dirichlet", data, draws=200, **options).labels()
            stated[place] += labels["certainty"].mean() / 20
            right[place] += (labels["label"].astype(int) == top).mean() / 20
    assert stated[0] - right[0] > 0.04
    assert abs(stated[1] - right[1]) < 0.02
