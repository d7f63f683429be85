"""Mirror modes: what renaming leaves as it is, which names are chosen, and when nothing is renamed."""

import functools
import itertools

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

import consilience as cs
from consilience.data import Annotations
from consilience.errors import DiagnosticWarning
from consilience.models import dawid_skene
from consilience.models.crowd.labelling import best_names
from consilience.models.dawid_skene import MODEL, Diagonal, model, simulate
from consilience.models.dirichlet import Symmetric

# Priors that know no class, unlike the default.
Priors = functools.partial(dawid_skene.Priors, confusion=Symmetric(1.0))


@pytest.fixture
def data():
    return simulate(jax.random.key(0), Priors(), num_items=8, num_annotators=4, annotations_per_item=3)[0]


def random_samples(data, seed=0, shape=(2, 50)):
    random = np.random.default_rng(seed)
    return {
        "prevalence": random.dirichlet(np.ones(3), shape),
        "confusion": random.dirichlet(np.ones(3), (*shape, data.num_annotators, 3)),
    }


def canonical(samples, data, priors=None, gold="ignore"):
    return MODEL.sites.canonical(samples, MODEL.resolve(data, priors or Priors(), {"gold": gold}))


def renamed(samples, order):
    return {"prevalence": samples["prevalence"][..., order], "confusion": samples["confusion"][..., order, :]}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_renaming_leaves_the_density_as_it_is(data, order):
    one = {site: values[0, 0] for site, values in random_samples(data).items()}
    other = renamed(one, list(order))

    def densities(priors):
        with jax.enable_x64(True):
            return [float(log_density(model, (data, priors), {}, values)[0]) for values in (one, other)]

    np.testing.assert_allclose(*densities(Priors()), rtol=1e-12)
    first, second = densities(Priors(confusion=Diagonal(3.0)))
    assert (abs(first - second) > 1e-6) == (order != (0, 1, 2))


def test_every_draw_gets_the_largest_trace(data):
    samples = random_samples(data)
    result = canonical(samples, data)
    amount = np.bincount(data.annotator, minlength=4)

    def trace(confusion):
        return np.einsum("cdjtt,j->cd", confusion, amount)

    best = np.max(
        [trace(renamed(samples, list(order))["confusion"]) for order in itertools.permutations(range(3))], axis=0
    )
    np.testing.assert_allclose(trace(result["confusion"]), best, rtol=1e-12)
    # Prevalence and confusion are renamed alike.
    joint = np.einsum("cdt,cdjtl->cdjl", samples["prevalence"], samples["confusion"])
    np.testing.assert_allclose(np.einsum("cdt,cdjtl->cdjl", result["prevalence"], result["confusion"]), joint)
    again = canonical(result, data)
    np.testing.assert_array_equal(again["confusion"], result["confusion"])


def test_chains_in_mirror_modes_are_put_together(data):
    samples = random_samples(data)
    first = canonical(samples, data)
    mirrored = {site: np.stack([values[0], renamed(samples, [2, 0, 1])[site][1]]) for site, values in samples.items()}
    second = canonical(mirrored, data)
    for site, values in first.items():
        np.testing.assert_array_equal(second[site], values)


def test_equal_traces_keep_their_names():
    agreement = np.ones((1, 3, 3)) + 1e-14 * np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert best_names(agreement).tolist() == [[0, 1, 2]]
    assert best_names(agreement + np.eye(3)[[1, 2, 0]]).tolist() == [[2, 0, 1]]


@pytest.mark.parametrize(
    "priors",
    [
        Priors(confusion=Diagonal(1.5)),
        Priors(prevalence=dist.Dirichlet(np.array([1.0, 1.0, 2.0]))),
        Priors(prevalence=dist.TransformedDistribution(
            dist.Normal(0, 1).expand((2,)).to_event(1), dist.transforms.StickBreakingTransform()
        )),
    ],
)  # fmt: skip
def test_nothing_is_renamed_where_the_prior_may_tell_classes_apart(data, priors):
    samples = random_samples(data)
    with pytest.warns(DiagnosticWarning, match="in 2 of 2 chains annotators would be right more often"):
        result = canonical(samples, data, priors)
    for site, values in samples.items():
        np.testing.assert_array_equal(result[site], values)


def test_names_that_need_no_change_need_no_words(data):
    """Where the prior forbids renaming, only a chain that would be renamed is spoken of."""
    samples, priors = canonical(random_samples(data), data), Priors(confusion=Diagonal(1.5))
    canonical(samples, data, priors)
    mirrored = {site: np.stack([values[0], renamed(samples, [2, 0, 1])[site][1]]) for site, values in samples.items()}
    with pytest.warns(DiagnosticWarning, match="in 1 of 2 chains"):
        canonical(mirrored, data, priors)


def test_nothing_is_renamed_where_labels_are_known(data):
    samples, known = random_samples(data), data.replace(gold=np.array([0, *[-1] * 7]))
    with pytest.warns(DiagnosticWarning, match="or gold labels, tell the classes apart"):
        kept = canonical(samples, known, gold="use")
    np.testing.assert_array_equal(kept["confusion"], samples["confusion"])
    ignored = canonical(samples, known)
    assert np.any(ignored["confusion"] != samples["confusion"])


@pytest.mark.slow
def test_nuts_in_mirror_modes_converges():
    """Sixty items that good annotators labelled: a chain that starts at random ends in any of the mirror modes."""
    item, annotator = np.indices((60, 5)).reshape(2, -1)
    random, true = np.random.default_rng(0), np.arange(60) % 3
    wrong = random.random(len(item)) < 0.15
    label = np.where(wrong, random.integers(0, 3, len(item)), true[item])
    fit = cs.fit("dawid-skene", Annotations.from_codes(item, annotator, label), method="nuts", diagonal=1)
    assert fit.summary()["r_hat"].max() < 1.01
    assert (fit.labels()["label"].astype(int).to_numpy() == true).mean() > 0.95
