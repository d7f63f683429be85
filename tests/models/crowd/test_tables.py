"""Tables of every channel: closed forms, imputed intervals, realised accuracy and bias against brute force."""

import itertools
import tracemalloc

import jax
import numpy as np
import pytest
from numpyro.distributions import Dirichlet
from scipy.special import betaln, logsumexp
from scipy.stats import beta, norm

import consilience as cs
from consilience.data import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models import dawid_skene, one_coin
from consilience.models.beta_priors import BetaPrior
from consilience.models.crowd.own_labels import counted_accuracy, realised_accuracy
from consilience.models.posterior import beta_of_moments
from consilience.models.truth import LabelDraws, LabelProbabilities
from tests.models.crowd.channels import CHANNELS, random_table

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")


_OWN_ROWS = dawid_skene.Priors(confusion=Dirichlet(np.ones((3, 3)) + 2 * np.eye(3)))


@pytest.fixture(scope="module")
def data():
    priors = dawid_skene.Priors()
    return dawid_skene.simulate(jax.random.key(4), priors, num_items=60, num_annotators=4, annotations_per_item=3)[0]


@pytest.fixture(scope="module")
def fits(data):
    runs = [("dawid-skene", "cavi"), ("dawid-skene", "gibbs"), ("dawid-skene", "em"), ("mace", "cavi"), ("mace", "em"),
            ("one-coin", "cavi")]  # fmt: skip
    # By priors of the user's own, here the default ones, accuracies are those of the model alone.
    own = {"cavi": _OWN_ROWS, "gibbs": _OWN_ROWS}
    priors = {("dawid-skene", method): prior for method, prior in own.items()}
    return {run: cs.fit(run[0], data, priors.get(run), method=run[1], draws=1000) for run in runs}


def test_log_likelihoods_of_items_are_sums_over_labels(fits, data):
    fit = fits["dawid-skene", "gibbs"]
    found = fit.to_arviz(log_likelihood=True)["log_likelihood"]["of_item"]
    assert found.dims == ("chain", "draw", "item")
    assert list(found["item"].to_numpy()) == list(data.items)
    draws = fit.samples()
    for chain, draw in ((0, 0), (-1, -1)):
        joint = np.tile(np.log(draws["prevalence"][chain, draw].astype(float)), (data.num_items, 1))
        confusion = np.log(draws["confusion"][chain, draw].astype(float))
        np.add.at(joint, np.asarray(data.item), confusion[data.annotator, :, data.label])
        np.testing.assert_allclose(found[chain, draw], logsumexp(joint, axis=1), rtol=1e-4)
    with pytest.raises(UnsupportedRequest, match="draws of cavi are not those"):
        fits["dawid-skene", "cavi"].to_arviz(log_likelihood=True)


def rows_of(name, draws, num_labels=3):
    """Return the probabilities of labels by draw, annotator and class."""
    if name == "dawid-skene":
        return draws["confusion"]
    eye = np.eye(num_labels)
    if name == "mace":
        return draws["competence"][..., None, None] * eye + (1 - draws["competence"])[..., None, None] * (
            draws["guess"][..., None, :]
        )
    right = draws["accuracy"][..., None, None]
    return np.where(eye > 0, right, (1 - right) / (num_labels - 1))


@pytest.mark.parametrize("name", CHANNELS)
def test_means_of_cavi_are_those_of_its_draws(fits, name):
    fit, number = fits[name, "cavi"], 5_000
    draws = {site: np.asarray(values[0], float) for site, values in fit.samples(number).items()}
    rows, prevalence = rows_of(name, draws), draws["prevalence"]
    share = np.bincount(fit.data.annotator, minlength=4) / fit.data.num_annotations
    for found, values in (
        (fit.annotators()["accuracy"], np.einsum("djtt,dt->dj", rows, prevalence)),
        (fit.confusion()["probability"], rows), (fit.crowd()["probability"], np.einsum("j,djtl->dtl", share, rows)),
        (fit.prevalence()["share"], prevalence),
    ):
        values = values.reshape(number, -1)
        assert np.abs((values.mean(0) - found) / (values.std(0) / np.sqrt(number))).max() < 5


@pytest.mark.parametrize("name", CHANNELS)
def test_imputed_intervals_are_wider_than_those_of_the_factors(name):
    """Labels are drawn, then parameters: of dawid-skene by hand too."""
    given = {"one-coin": one_coin.Priors(accuracy=BetaPrior(6.0, 3.0)), "dawid-skene": _OWN_ROWS}
    priors = given.get(name, CHANNELS[name].module.Priors())
    member, sizes = CHANNELS[name].module.MODEL, {"num_items": 200, "num_annotators": 20, "annotations_per_item": 3}
    data = member.simulate(jax.random.key(2), priors, **sizes)[0]
    fit = cs.fit(member, data, priors if name == "dawid-skene" else None, method="cavi")
    draws = {site: np.asarray(values[0], float) for site, values in fit.samples(2000).items()}
    right = np.einsum("djtt,dt->dj", rows_of(name, draws), draws["prevalence"])
    closed = np.diff(np.quantile(right, [0.025, 0.975], axis=0), axis=0)
    table, half = fit.annotators(), fit.annotators(level=0.5)
    assert (table["upper"] - table["lower"]).mean() > (1.01 if name == "dawid-skene" else 1.05) * closed.mean()
    assert (half["upper"] - half["lower"]).mean() < 0.5 * (table["upper"] - table["lower"]).mean()
    if name != "dawid-skene":
        return
    random, q, by_hand = np.random.default_rng(0), np.asarray(fit.posterior.responsibility, float), []
    for _ in range(1000):
        label = (random.random((len(q), 1)) > q.cumsum(axis=1)).sum(axis=1)
        counts = np.zeros((20, 3, 3)) + 1 + 2 * np.eye(3)
        np.add.at(counts, (data.annotator, label[data.item], data.label), 1)
        rows = random.standard_gamma(counts)
        share = random.dirichlet(1 + np.bincount(label, minlength=3))
        by_hand.append(np.einsum("jtt,t->j", rows / rows.sum(axis=-1, keepdims=True), share))
    inside = ((by_hand > table["lower"].to_numpy()) & (by_hand < table["upper"].to_numpy())).mean()
    # Quantiles of 200 draws are a little too near: the 2.5 % one has 2.99 % below it.
    assert inside == pytest.approx(0.94, abs=0.012)


def test_columns_of_mace_are_those_of_its_factors(fits):
    fit = fits["mace", "cavi"]
    draws = {site: values[0] for site, values in fit.samples(20_000).items()}
    table, habits = fit.annotators(), fit.guesses()
    within = (draws["competence"] > table["competence_lower"].to_numpy()) & (
        draws["competence"] < table["competence_upper"].to_numpy()
    )
    assert np.abs(within.mean(0) - 0.95).max() < 5 * np.sqrt(0.95 * 0.05 / 20_000) + 1e-3
    mean = draws["guess"].reshape(20_000, -1)
    assert np.abs((habits["probability"] - mean.mean(0)) / (mean.std(0) / np.sqrt(20_000))).max() < 5
    assert np.abs(draws["competence"].mean(0) - table["competence"]).max() < 0.01
    estimate = fits["mace", "em"].annotators()
    assert estimate[["lower", "upper", "competence_lower", "competence_upper"]].isna().all(axis=None)
    assert estimate["accuracy"].between(estimate["competence"], 1).all()


def test_tables_of_draws_are_those_of_the_draws(fits):
    fit = fits["dawid-skene", "gibbs"]
    draws = {site: np.asarray(own, float).reshape(-1, *own.shape[2:]) for site, own in fit.samples().items()}
    right = np.einsum("djtt,dt->dj", draws["confusion"], draws["prevalence"])
    table = fit.annotators()
    np.testing.assert_allclose(table["accuracy"], right.mean(0), rtol=1e-5)
    np.testing.assert_allclose(table[["lower", "upper"]].T, np.quantile(right, [0.025, 0.975], axis=0), rtol=1e-5)
    np.testing.assert_allclose(fit.confusion()["probability"], draws["confusion"].mean(0).ravel(), rtol=1e-4)
    np.testing.assert_allclose(fit.prevalence()["share"], draws["prevalence"].mean(0), rtol=1e-5)


def test_columns(fits):
    for (_, method), fit in fits.items():
        annotators, confusion = fit.annotators(), fit.confusion()
        assert annotators.columns[:5].tolist() == ["annotator", "annotations", "accuracy", "lower", "upper"]
        assert annotators["annotator"].tolist() == ["0", "1", "2", "3"]
        amount = np.bincount(fit.data.annotator, minlength=4)
        np.testing.assert_array_equal(annotators["annotations"], amount)
        sums = confusion.groupby(["annotator", "true_label"])
        np.testing.assert_allclose(sums["probability"].sum(), 1, rtol=1e-5)
        expected = sums["annotations"].first().groupby("annotator").sum()
        np.testing.assert_allclose(expected, amount, rtol=1e-5)
        np.testing.assert_allclose(fit.crowd()["annotations"][::3].sum(), amount.sum(), rtol=1e-5)
        assert annotators["lower"].isna().all() == (method == "em")
        wide = fit.probabilities(wide=True).set_index("item")
        long = fit.probabilities().pivot(index="item", columns="label", values="probability").fillna(0.0)
        np.testing.assert_array_equal(wide, long.loc[wide.index, wide.columns])


def test_a_row_of_a_matrix_is_who_true_given(fits):
    table = fits["dawid-skene", "cavi"].confusion().set_index(["annotator", "true_label", "label"])["probability"]
    posterior = fits["dawid-skene", "cavi"].posterior.confusion
    assert table[("2", "0", "1")] == pytest.approx(float(posterior[2, 0, 1] / posterior[2, 0].sum()), rel=1e-6)


def test_annotations_of_a_class_and_bias_are_sums_over_rows(data):
    weighted = data.replace(weight=np.arange(data.num_annotations) % 4 / 2)
    fit = cs.fit("dawid-skene", weighted, method="cavi", dependence=0.5)
    probability = np.asarray(fit.posterior.responsibility)  # as if annotators erred independently
    expected, given = np.zeros((2, weighted.num_annotators, weighted.num_labels))
    for item, annotator, label, weight in zip(data.item, data.annotator, data.label, weighted.weight, strict=True):
        expected[annotator] += weight * probability[item]
        given[annotator, label] += weight
    np.testing.assert_allclose(fit.confusion()["annotations"], np.repeat(expected.ravel(), 3), rtol=1e-5)
    np.testing.assert_allclose(fit.crowd()["annotations"], np.repeat(expected.sum(axis=0), 3), rtol=1e-5)
    number, bias = given.sum(axis=1, keepdims=True), fit.bias()
    np.testing.assert_allclose(bias["given"], (given / number).ravel(), rtol=1e-6)
    np.testing.assert_allclose(bias["bias"], ((given - expected) / number).ravel(), atol=1e-6)


def test_without_a_learned_prevalence_its_table_is_that_of_the_labels(data):
    fit = cs.fit("mace", data, method="cavi", prevalence="uniform")
    table = fit.prevalence()
    np.testing.assert_allclose(table["share"], fit.posterior.probability.mean(axis=0), rtol=1e-6)
    assert table[["lower", "upper"]].isna().all(axis=None)
    expected = (rows_of("mace", {site: values[0] for site, values in fit.samples(20_000).items()})
                .diagonal(axis1=2, axis2=3).mean(0) @ table["share"].to_numpy())  # fmt: skip
    np.testing.assert_allclose(fit.annotators()["accuracy"], expected, atol=0.01)


# ---- realised accuracy


def test_realised_accuracy_has_the_moments_of_all_labellings():
    """Annotators label items twice, with other labels and weights; items are independent."""
    data = Annotations.from_codes(
        [0, 0, 1, 1, 2, 0, 2, 2], [0, 0, 0, 1, 1, 1, 0, 0], [0, 1, 1, 1, 2, 0, 2, 2],
        weight=[1, 1, 2, 1, 0.5, 1, 1, 1], num_annotators=3, num_labels=3,
    )  # fmt: skip
    q = np.random.default_rng(0).dirichlet(np.ones(3), 3)
    mean, square = np.zeros((2, 3))
    amount = np.bincount(data.annotator, data.weight, 3)
    for label in map(np.array, itertools.product(range(3), repeat=3)):
        share = np.bincount(data.annotator, data.weight * (label[data.item] == data.label), 3)[:2] / amount[:2]
        probability = q[np.arange(3), label].prod()
        mean[:2] += probability * share
        square[:2] += probability * share**2
    truth = LabelProbabilities.dense(q, key=jax.random.key(0), num_draws=10)
    found = np.array(realised_accuracy(truth, data, 0.9))
    expected = beta_of_moments(mean[:2], (square - mean**2)[:2], 0.9)
    step = 0.5 / amount[:2]  # annotations are whole, the Beta distribution is not
    lower, upper = np.maximum(expected.lower - step, 0), np.minimum(expected.upper + step, 1)
    np.testing.assert_allclose(found[:, :2], [expected.mean, lower, upper], rtol=1e-9)
    assert np.isnan(found[:, 2]).all()
    # Of draws it is their quantiles.
    draws = np.stack([np.random.default_rng(1).choice(3, 150, p=own) for own in q], axis=1).astype(np.int8)
    shares = np.stack([
        np.bincount(data.annotator, data.weight * (own[data.item] == data.label), 3)[:2] / amount[:2] for own in draws
    ])  # fmt: skip
    found = np.array(realised_accuracy(LabelDraws(draws, 3, None), data, 0.9))
    np.testing.assert_allclose(found[0, :2], shares.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found[1:, :2], np.quantile(shares, [0.05, 0.95], axis=0), rtol=1e-12)


def test_counted_accuracy_has_the_moments_of_a_beta_prior_and_of_all_labellings():
    """Given how many labels are right it is Beta; a and b are those of which no other pair is more probable."""
    q = np.random.default_rng(0).dirichlet(np.ones(3), 3)
    data = Annotations.from_codes([0, 1, 2, 0, 1], [0, 0, 0, 1, 1], [0, 1, 1, 2, 0], num_annotators=3, num_labels=3)
    expected_right = np.array([q[0, 0] + q[1, 1] + q[2, 1], q[0, 2] + q[1, 0], 0.0])
    wrong = np.array([3.0, 2.0, 0.0]) - expected_right
    a, b = one_coin.Priors().accuracy.most_probable(expected_right, wrong)

    def log_probability(a, b):
        hyper = 2 * np.log(a) - a / 2 + np.log(b) - b / 2  # Gamma(3, .5) and Gamma(2, .5)
        return hyper + (betaln(a + expected_right, b + wrong) - betaln(a, b)).sum()

    others = [log_probability(a * x, b * y) for x, y in itertools.product((0.98, 1, 1.02), repeat=2)]
    assert np.argmax(others) == 4
    mean, square = np.zeros((2, 3))
    for label in map(np.array, itertools.product(range(3), repeat=3)):
        right = np.bincount(data.annotator, label[data.item] == data.label, 3)
        own = beta(a + right, b + np.array([3, 2, 0]) - right)
        probability = q[np.arange(3), label].prod()
        mean, square = mean + probability * own.mean(), square + probability * (own.var() + own.mean() ** 2)
    found = counted_accuracy(q, data, 0.9)
    of_moments = beta_of_moments(mean, square - mean**2, 0.9)
    for name in ("mean", "sd", "lower", "upper"):
        np.testing.assert_allclose(getattr(found, name), getattr(of_moments, name), rtol=1e-6)


@pytest.mark.parametrize("method", ["cavi", "gibbs"])
def test_one_half_of_an_accuracy_is_by_one_coin(data, method):
    own = cs.fit("dawid-skene", data, _OWN_ROWS, method, draws=200, chains=2)
    default = cs.fit("dawid-skene", data, method=method, draws=200, chains=2).annotators(level=0.9)
    tables = [own.annotators(level=0.9), cs.fit("one-coin", data, method="cavi").annotators(level=0.9)]
    means = [table["accuracy"] for table in tables]
    np.testing.assert_allclose(default["accuracy"], np.mean(means, axis=0), atol=2e-3)
    widths = [(table["upper"] - table["lower"]).mean() for table in [*tables, default]]
    assert widths[2] > np.mean(widths[:2])


def test_the_best_annotator_is_not_drawn_to_the_prior():
    """Of annotators who differ a lot the fixed prior of rows alone leaves the best one outside of 90 %."""
    accuracy, missed = np.array([0.92, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.25]), []
    for seed in range(4):
        random = np.random.default_rng(seed)
        label, item = random.integers(4, size=500), np.repeat(np.arange(500), 3)
        who = np.concatenate([random.choice(8, 3, replace=False) for _ in range(500)])
        wrong = (label[item] + random.integers(1, 4, 1500)) % 4
        given = np.where(random.random(1500) < accuracy[who], label[item], wrong)
        fit = cs.fit("dawid-skene", Annotations.from_codes(item, who, given, num_annotators=8, num_labels=4))
        table = fit.annotators(level=0.9)
        missed.append(~((table["lower"] <= accuracy) & (accuracy <= table["upper"])))
        own = np.bincount(who, given == label[item], 8) / np.bincount(who)
        assert ((table["share_lower"] <= own) & (own <= table["share_upper"])).sum() >= 6
    assert np.mean(missed, axis=0)[0] <= 0.5
    assert np.mean(missed) < 0.3


@pytest.mark.parametrize("method", ["cavi", "gibbs"])
def test_accuracies_of_many_labels_are_counted(method):
    """Rows of confusion matrices of ten labels claim .25; a prior of the user's own is left to say what it says."""
    random = np.random.default_rng(1)
    accuracy, label = random.beta(6, 3, 8), random.integers(0, 10, 150)
    item, annotator = np.indices((150, 8)).reshape(2, -1)
    wrong = (label[item] + random.integers(1, 10, item.size)) % 10
    given = np.where(random.random(item.size) < accuracy[annotator], label[item], wrong)
    data = Annotations.from_codes(item, annotator, given)
    fit = cs.fit("dawid-skene", data, method=method, draws=100, chains=1)
    (text,) = [note.text for note in fit.findings() if "lean towards the prior" in note.text]
    assert text.startswith("confusion matrices lean")
    assert "Accuracies are therefore counted" in text
    table = fit.annotators(level=0.9)
    assert ((table["lower"] <= accuracy) & (accuracy <= table["upper"])).sum() >= 6
    rows = fit.confusion().query("true_label == label").groupby("annotator")["probability"].mean()
    assert (rows.to_numpy() < table["accuracy"] - 0.05).all()
    ones = np.ones((10, 10)) + 2 * np.eye(10)
    own = cs.fit("dawid-skene", data, dawid_skene.Priors(confusion=Dirichlet(ones)), method, draws=100, chains=1)
    (text,) = [note.text for note in own.findings() if "lean towards the prior" in note.text]
    assert text.startswith("accuracies and confusion matrices lean")
    assert "counted" not in text
    assert (own.annotators()["accuracy"] < table["accuracy"] - 0.05).all()


def test_shares_of_right_labels_allow_for_all_dependence_that_may_be():
    random, (item, annotator) = np.random.default_rng(0), np.indices((200, 5)).reshape(2, -1)
    label = random.integers(0, 3, 200)[item]
    data = Annotations.from_codes(item, annotator, np.where(random.random(1000) < 0.75, label, (label + 1) % 3))
    fit = cs.fit("dawid-skene", data, method="cavi")
    assumed = fit.truth.dependence
    rhos = [0.0, assumed.rho, *(assumed.at(z) for z in norm.ppf([0.025, 0.975]))]
    fits = (cs.fit("dawid-skene", data, method="cavi", dependence=rho) for rho in rhos)
    found, given = fit.annotators(), [one.annotators() for one in fits]
    np.testing.assert_allclose(found["share_right"], given[1]["share_right"], rtol=1e-6)
    for end, widest in (("share_lower", np.min), ("share_upper", np.max)):
        np.testing.assert_allclose(found[end], widest([one[end] for one in given], axis=0), rtol=1e-6)
    assert (given[0]["share_upper"] > np.max([one["share_upper"] for one in given[1:]], axis=0)).any()


def test_realised_accuracy_is_of_tempered_labels_and_gold_has_columns():
    gold = np.array([0, -1, 2, 1, -1, -1])
    data = random_table(3, 30, gold=gold)
    plain, tempered = (
        cs.fit("dawid-skene", data, method="cavi", dependence=rho).annotators() for rho in (0.0, 1.0)
    )
    np.testing.assert_allclose(plain["accuracy"], tempered["accuracy"], rtol=1e-6)
    assert np.abs(plain["share_right"] - tempered["share_right"]).max() > 0.01
    known = gold[data.item] >= 0
    np.testing.assert_array_equal(plain["gold_items"], np.bincount(data.annotator, known, 4))
    np.testing.assert_array_equal(
        plain["gold_right"], np.bincount(data.annotator, known & (gold[data.item] == data.label), 4)
    )
    used = cs.fit("dawid-skene", data, method="cavi", gold="use", dependence=1.0)
    wide = used.probabilities(wide=True).drop(columns="item").to_numpy()
    np.testing.assert_array_equal(wide[gold >= 0], np.eye(3)[gold[gold >= 0]])


def test_tables_take_less_memory_than_one_number_for_each_annotation_and_class():
    number, num_items, num_labels = 100_000, 1000, 20
    item, label = np.arange(number) % num_items, np.arange(number) % num_labels
    fit = cs.fit("dawid-skene", Annotations.from_codes(item, np.arange(number) // num_items, label), method="em")
    for name in ("confusion", "crowd"):
        make = next(table.make for table in fit.member.tables if table.name == name)
        make(fit.posterior, fit.resolved, fit.truth)  # what is kept beside the table is made before
        tracemalloc.start()
        make(fit.posterior, fit.resolved, fit.truth)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < number * num_labels * 8 / 2
