"""Items most worth another label: by hand, by simulation, and what has nothing to gain."""

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models.posterior import Draws
from consilience.models.truth import Crowd, Entries, LabelDraws, LabelProbabilities

KEY = jax.random.key(0)


def dense_truth(probability, confusion=None):
    crowd = None if confusion is None else Crowd(lambda: np.asarray(confusion, float))
    return LabelProbabilities.dense(np.array(probability, float), key=KEY, num_draws=10, crowd=crowd)


def random_crowd(seed=0, num_items=40, num_classes=3):
    random = np.random.default_rng(seed)
    probability = random.dirichlet(np.full(num_classes, 0.5), num_items)
    return probability, random.dirichlet(np.ones(num_classes), num_classes)


def test_gain_worked_by_hand():
    """An even item and an annotator who is right in 4 of 5 cases: certainty 0.5 now, 0.8 after the label."""
    confusion = np.array([[0.8, 0.2], [0.2, 0.8]])
    found = cs.next_labels(dense_truth([[0.5, 0.5], [0.7, 0.3], [0.9, 0.1]], confusion))
    assert found.columns.tolist() == ["item", "label", "certainty", "gain", "expected_certainty"]
    assert found["item"].tolist() == [0, 1, 2]
    # max(0.56, 0.06) + max(0.14, 0.24) = 0.8 for the second; a label cannot turn the third: 0.72 + 0.18 = 0.9.
    np.testing.assert_allclose(found["gain"], [0.3, 0.1, 0.0], atol=1e-12)
    np.testing.assert_allclose(found["expected_certainty"], [0.8, 0.8, 0.9])


def test_gain_is_what_bayes_rule_gives_in_simulated_labels():
    probability, confusion = random_crowd(num_items=5)
    found = cs.next_labels(dense_truth(probability, confusion)).sort_values("item")
    random = np.random.default_rng(1)
    draws = 20_000
    for item, prior in enumerate(probability):
        label = random.choice(3, draws, p=prior)
        said = (random.random((draws, 1)) > np.cumsum(confusion[label], axis=1)).sum(axis=1)
        after = prior * confusion[:, said].T
        certainty = (after / after.sum(axis=1, keepdims=True)).max(axis=1)
        error = certainty.std() / np.sqrt(draws)
        assert abs(certainty.mean() - found["expected_certainty"].iloc[item]) < 5 * error + 1e-12


def test_nobody_loses_and_some_have_nothing_to_gain():
    probability, confusion = random_crowd(num_items=2000)
    assert (cs.next_labels(dense_truth(probability, confusion))["gain"] >= 0).all()
    certain = dense_truth(np.eye(3), confusion)
    assert (cs.next_labels(certain)["gain"] == 0).all()
    # Annotators who say the same whatever is true, in the precision of a sampler's draws.
    guesses = np.full((3, 3), np.float32(1 / 3))
    assert (cs.next_labels(dense_truth(probability, guesses))["gain"] == 0).all()


def test_an_annotator_who_is_always_right_gains_all():
    probability, _ = random_crowd()
    found = cs.next_labels(dense_truth(probability, np.eye(3)))
    np.testing.assert_allclose(found["expected_certainty"], 1.0)
    assert found["certainty"].is_monotonic_increasing


def test_blocks_and_items_with_few_candidates():
    """Many items, of which each has its own candidates, give what each gives by itself."""
    random = np.random.default_rng(2)
    named = random.random((30_000, 4)) < 0.5
    named[np.arange(len(named)), random.integers(0, 4, len(named))] = True
    entries = Entries.of(*np.nonzero(named), len(named), 4)
    probability = random.random(len(entries.class_)) + 0.01
    confusion = random.dirichlet(np.ones(4), 4)
    truth = LabelProbabilities(entries, probability, key=KEY, num_draws=1, crowd=Crowd(lambda: confusion))
    full = np.zeros(named.shape)
    full[named] = probability
    full /= full.sum(axis=1, keepdims=True)
    expected = (full[:, :, None] * confusion).max(axis=1).sum(axis=1) - full.max(axis=1)
    np.testing.assert_allclose(truth.crowd.gain(truth), expected, atol=1e-12)


def test_stored_draws_count_as_probabilities():
    probability, confusion = random_crowd(num_items=6)
    random = np.random.default_rng(3)
    label = np.array([random.choice(3, 50, p=prior) for prior in probability]).T
    shares = np.array([np.bincount(column, minlength=3) for column in label.T]) / 50
    drawn = cs.next_labels(LabelDraws(label, 3, Crowd(lambda: confusion)))
    exact = cs.next_labels(dense_truth(shares, confusion))
    for name in exact:
        np.testing.assert_allclose(drawn[name], exact[name])


@pytest.fixture(scope="module")
def annotations():
    return cs.load("dawid-skene-1979")


@pytest.mark.parametrize("model", ["dawid-skene", "mace"])
def test_mean_confusion_averages_annotators_by_how_much_they_annotate(annotations, model):
    """The closed form, and draws of it that are taken for a sampler's."""
    share = np.bincount(annotations.annotator, minlength=5) / annotations.num_annotations
    fit = cs.fit(model, annotations)
    samples = {site: draws[0] for site, draws in fit.samples(200).items()}
    if model == "dawid-skene":
        by_draw = np.einsum("j,djtl->dtl", share, samples["confusion"])
    else:
        knows, guess = samples["competence"], samples["guess"]
        by_draw = np.einsum("j,dj,tl->dtl", share, knows, np.eye(4))
        by_draw = by_draw + np.einsum("j,dj,djl->dl", share, 1 - knows, guess)[:, None]
    error = by_draw.std(axis=0) / np.sqrt(len(by_draw))
    assert (np.abs(by_draw.mean(axis=0) - fit.truth.crowd.mean_confusion) < 5 * error + 1e-6).all()
    stored = fit.member.truth(Draws(fit.samples(200)), fit.resolved, key=KEY, num_draws=200)
    np.testing.assert_allclose(stored.crowd.mean_confusion, by_draw.mean(axis=0), rtol=1e-5)
    assert len(cs.next_labels(stored, limit=3)) == 3


def test_an_item_without_annotations_stands_first():
    rows = [(item, who, item % 2) for item in range(4) for who in range(5)]
    item, who, label = np.array(rows).T
    data = Annotations.from_codes(item, who, label, num_items=5, num_labels=2)
    assert cs.next_labels(cs.fit("dawid-skene", data, diagonal=5.0), limit=1)["item"].tolist() == ["4"]


def test_what_cannot_be_answered_says_what_to_use(annotations):
    for model in ("dirichlet", "majority-vote"):
        with pytest.raises(UnsupportedRequest, match="use a model of annotators"):
            cs.next_labels(cs.fit(model, annotations))
    with pytest.raises(UnsupportedRequest, match="1 or more"):
        cs.next_labels(dense_truth([[1.0]], np.ones((1, 1))), limit=0)


@pytest.mark.parametrize("gold", ["ignore", "use"])
def test_an_item_with_a_gold_label_needs_no_other(gold):
    counts = [[2, 1], [1, 2], [2, 2], [3, 0]]
    codes = np.array([(i, a) for i, row in enumerate(counts) for a in range(sum(row))])
    labels = np.concatenate([np.repeat([0, 1], row) for row in counts])
    data = Annotations.from_codes(*codes.T, labels, labels=["no", "yes"], gold=[0, -1, -1, 1])
    fit = cs.fit("dawid-skene", data, gold=gold)
    assert sorted(cs.next_labels(fit)["item"].astype(str)) == ["1", "2"]
    assert len(cs.next_labels(fit, limit=1)) == 1
    assert len(cs.next_labels(fit.truth)) == 4


def test_annotators_who_err_together_gain_what_one_of_them_is_worth(annotations):
    independent, together = (cs.fit("dawid-skene", annotations, dependence=rho).truth for rho in (0.0, 0.5))
    number = np.bincount(annotations.item, minlength=annotations.num_items)
    np.testing.assert_allclose(together.worth, 1 / (1 + (number - 1) / 2))
    np.testing.assert_array_equal(independent.worth, 1.0)
    alone = LabelProbabilities.dense(
        together.label_probabilities().probability.reshape(-1, 4), key=KEY, num_draws=1, crowd=together.crowd
    )
    np.testing.assert_allclose(together.crowd.gain(together), alone.crowd.gain(alone) * together.worth, atol=1e-12)
    assert (alone.crowd.gain(alone) > 0).any()
