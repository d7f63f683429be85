import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.evaluation import own_look as module
from consilience.evaluation.own_look import POWERS, Form, copy_statistic, ess, forms_of, own_look, refit_own_look
from consilience.models.truth import Entries, LabelDraws, LabelProbabilities, PlausibilityDraws
from consilience.models.truth.plausibilities import DirichletTruth

REPLICATES = 400


def weights_of(num_units, seed=0):
    weight = np.random.default_rng(seed).standard_exponential((num_units, REPLICATES))
    return lambda units: weight[units]


def pseudo(systems):
    random = np.random.default_rng(1)
    return random.standard_exponential(REPLICATES), random.random((systems, REPLICATES))


def known(rows):
    """Two-class labels of known probabilities as a response model."""
    truth = LabelProbabilities.dense(np.asarray(rows, float), key=jax.random.key(0), num_draws=2)
    return forms_of(truth)["knows"]


def ambiguous(seed=0, items=60, classes=3):
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.full(classes, 0.4), items)
    labels = random.multinomial(5, shares / shares.sum(axis=1, keepdims=True))
    truth = DirichletTruth(
        Entries.dense(items, classes), (labels + 0.4).ravel(), 0.0, key=jax.random.key(seed), num_draws=100
    )
    return truth, shares.argmax(axis=1), labels


def test_prediction_of_who_knows_or_guesses_by_hand():
    form, error, guess = known([[0.9, 0.1]]), 0.2, np.array([0.5, 0.5, 0.0])
    looked = form.at(np.array([0]))[0, 0]
    q = (1 - error) * looked + error * guess[0]
    assert q == pytest.approx(0.82)
    # It is right if it knew, or guessed what is true.
    assert ((1 - error) * looked + error * guess[0] * 0.9) / q == pytest.approx(0.987805, abs=1e-6)


@pytest.mark.parametrize(("units", "p"), [(9, 0.9), (40, 0.8), (100, 0.5 + 1e-3)])
def test_copies_stand_out_by_the_formula(units, p):
    form, said = known(np.tile([p, 1 - p], (units, 1))), np.zeros(units, int)
    found = copy_statistic(form, said, 0.0, np.array([0.5, 0.5, 0.0]))
    assert found == pytest.approx(np.sqrt(units * (1 - p) / p), rel=1e-4)


def test_copy_statistic_of_guesses_that_nothing_tells_apart_is_zero():
    form = known(np.tile([0.9, 0.1], (9, 1)))
    assert copy_statistic(form, np.zeros(9, int), 1.0, np.array([0.5, 0.5, 0.0])) == pytest.approx(0.0, abs=1e-9)


def test_ambiguity_by_hand_from_stored_draws():
    shares = np.array([[[0.5, 0.3, 0.2]], [[0.1, 0.6, 0.3]]])  # draw, item, class
    form = forms_of(PlausibilityDraws.dense(shares))["ambiguity"]
    for place, power in enumerate(POWERS):
        powered = shares[:, 0] ** power
        expected = powered / powered.sum(axis=1, keepdims=True)
        assert form.named[place] == pytest.approx(expected.mean(axis=0), rel=1e-4)
        assert form.leading[place, 0] == pytest.approx(expected.max(axis=1).mean(), rel=1e-5)


def test_ambiguity_of_classes_that_nobody_named():
    # 3 of 5 classes are unnamed in the first item, and all in the second, where every class is alike.
    entries = Entries.of(np.array([0, 0]), np.array([1, 4]), 2, 5)
    truth = DirichletTruth(entries, np.array([4.0, 2.0]), 0.5, key=jax.random.key(0), num_draws=400)
    form = forms_of(truth)["ambiguity"]
    of_one = form.at(np.array([1, 0]))[1]
    assert of_one[0] == pytest.approx(4 / 7.5, abs=0.03)  # power 1: the posterior mean
    assert form.at(np.array([3, 3]))[1] == pytest.approx([0.5 / 7.5, 0.2], abs=0.015)
    assert form.at(np.array([-2, -1])).tolist() == np.zeros((9, 2)).tolist()
    total = form.named[:, :2].sum(axis=1) + 3 * form.unnamed[:, 0]
    assert total == pytest.approx(np.ones(9), abs=1e-5)
    assert np.all(np.diff(form.leading[:, 0]) > 0)


def test_thinned_draws_are_of_the_same_truth(monkeypatch):
    truth, *_ = ambiguous()
    whole = forms_of(truth)["ambiguity"]
    monkeypatch.setattr(module, "_MOST_SHARES", 50)
    thinned = forms_of(truth)["ambiguity"]
    assert truth.num_draws == 100
    assert np.abs(whole.leading - thinned.leading).mean() < 0.02
    assert not np.array_equal(whole.leading, thinned.leading)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 64]))
def test_blocks_of_units_change_nothing(seed, size):
    random = np.random.default_rng(seed)
    forms = forms_of(LabelDraws(random.integers(0, 3, (30, 20)), 3))
    said, weight = random.integers(-2, 3, (2, 20)), random.standard_exponential((20, 40))
    few = lambda units: weight[units], random.standard_exponential(40), random.random((2, 40))
    whole = own_look(forms, said, *few)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_UNITS", size)
        blocks = own_look(forms, said, *few)
    assert blocks.draws["knows"] == pytest.approx(whole.draws["knows"], rel=1e-9)
    assert blocks.copy_statistic == pytest.approx(whole.copy_statistic, rel=1e-9, abs=1e-9)
    assert np.all((whole.draws["knows"] >= 0) & (whole.draws["knows"] <= 1))


def test_systems_are_permuted_and_those_alike_tie_but_for_the_pseudo_unit():
    truth, leads, labels = ambiguous()
    said = np.stack([leads, labels.argmax(axis=1), leads])
    weight, score = pseudo(3)
    score[2] = score[0]
    found = own_look(forms_of(truth), said, weights_of(60), weight, score)
    order = [1, 2, 0]
    moved = own_look(forms_of(truth), said[order], weights_of(60), weight, score[order])
    for name in ("knows", "ambiguity"):
        assert np.array_equal(found.draws[name][0], found.draws[name][2])
        assert np.array_equal(found.draws[name][order], moved.draws[name])
        assert not np.array_equal(found.draws[name][0], found.draws[name][1])
    assert np.array_equal(found.copy_statistic[order], moved.copy_statistic)


def test_only_chosen_units_count():
    truth, leads, _ = ambiguous()
    kept = np.arange(60) % 3 > 0
    some = forms_of(truth, kept)["ambiguity"]
    assert np.array_equal(some.at(leads[kept]), forms_of(truth)["ambiguity"].at(leads)[:, kept])
    assert np.array_equal(some.leading, forms_of(truth)["ambiguity"].leading[:, kept])


def test_scores_where_the_truth_is_known_are_beta():
    # Labels that are certain: epsilon ~ Beta(½ + wrong, ½ + right) but for guesses that are right by chance.
    random = np.random.default_rng(3)
    true = random.integers(0, 4, 2000)
    said = np.where(random.random(2000) < 0.8, true, (true + 1) % 4)
    found = own_look(forms_of(LabelDraws(true[None], 4)), said[None], weights_of(2000), *pseudo(1))
    right = (said == true).mean()
    assert found.values["knows"][0] == pytest.approx(right, abs=0.004)
    assert found.draws["knows"].std() == pytest.approx(np.sqrt(right * (1 - right) / 2000), rel=0.15)


def test_constant_predictor_gets_the_share_of_its_class():
    random = np.random.default_rng(5)
    probability = random.dirichlet([6.0, 1.0, 0.5], 300)
    truth = LabelProbabilities.dense(probability, key=jax.random.key(0), num_draws=50)
    found = own_look(forms_of(truth), np.zeros((1, 300), int), weights_of(300), *pseudo(1))
    assert found.values["knows"][0] == pytest.approx(probability[:, 0].mean(), abs=0.02)


def test_majority_is_a_copy_and_the_truth_is_not():
    truth, leads, labels = ambiguous(seed=2, items=800)
    found = own_look(forms_of(truth), np.stack([leads, labels.argmax(axis=1)]), weights_of(800), *pseudo(2))
    assert found.copy_statistic[0] < 3 < found.copy_statistic[1]
    alone = forms_of(truth)["knows"].at(leads)[0].mean()
    assert found.values["ambiguity"][0] > alone + 0.05  # an own look is credited


@pytest.mark.parametrize(("rho", "expected"), [(0.0, 1.0), (0.5, 1 / 3), (0.9, 0.1 / 1.9)])
def test_effective_size_of_an_autoregression(rho, expected):
    random, draws = np.random.default_rng(0), np.zeros(20_000)
    for place in range(1, len(draws)):
        draws[place] = rho * draws[place - 1] + random.normal()
    assert ess(draws) / len(draws) == pytest.approx(expected, rel=0.12)
    assert ess(np.ones(10)) == 10


def crowd(seed=0, items=120, annotators=5):
    random = np.random.default_rng(seed)
    true = random.integers(0, 3, items)
    who = np.argsort(random.random((items, annotators)), axis=1)[:, :3]
    wrong = (true[:, None] + random.integers(1, 3, (items, 3))) % 3
    label = np.where(random.random((items, 3)) < 0.75, true[:, None], wrong)
    data = cs.Annotations.from_codes(np.repeat(np.arange(items), 3), who.ravel(), label.ravel(), labels=list("abc"))
    return data, true


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
@pytest.mark.parametrize("options", [{"method": "cavi"}, {"method": "gibbs", "draws": 100, "chains": 2, "warmup": 50}])
def test_refit_credits_an_own_look(options):
    data, true = crowd()
    fit = cs.fit("dawid-skene", data, progress=False, **options)
    said = np.where(np.random.default_rng(1).random(120) < 0.95, true, (true + 1) % 3)
    weight, score = pseudo(1)
    draws, value = refit_own_look(fit, said, weights_of(120), weight, score[0])
    low, high = np.quantile(draws, [0.05, 0.95])
    assert low < (said == true).mean() < high
    system = cs.Predictions.from_lists([["abc"[one]] for one in said], classes=list("abc"))
    assert value > cs.evaluate(fit, system).value
    assert fit.dependence.rho > 0  # the fit that was given is as it was


def test_refit_on_some_units_and_predictions_that_are_no_label():
    data, true = crowd()
    fit = cs.fit("one-coin", data, progress=False)
    kept, said = np.arange(120) < 90, np.where(np.arange(120) % 3 == 0, -2, true)
    weight, score = pseudo(1)
    draws, value = refit_own_look(fit, said, weights_of(90), weight, score[0], kept)
    assert draws.shape == (REPLICATES,)
    assert value < 2 / 3 + 1e-9  # a third is never right


def test_form_without_entries():
    form = Form(np.zeros(3, int), np.zeros(0, int), *np.zeros((1, 1, 0)), np.full((1, 2), 0.25), np.ones((1, 2)))
    assert form.at(np.array([0, -1])).tolist() == [[0.25, 0.0]]
