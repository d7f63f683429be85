"""Coordinate ascent: the bound in three forms, its fixed points, and what must not change it."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.scipy.special import digamma, entr, gammaln
from numpyro.infer.util import log_density

import consilience as cs
from consilience.data import Annotations
from consilience.errors import ConsilienceWarning, InvalidPrior
from consilience.models.dawid_skene import MODEL, Diagonal, Priors, cavi, model
from consilience.models.dawid_skene.layout import prepare

SIZES = {"num_items": 5, "num_annotators": 3, "num_labels": 3}
PRIORS = Priors(
    prevalence=dist.Dirichlet(np.array([1.5, 0.7, 2.0])),
    confusion=dist.Dirichlet(np.array([[3.0, 1.0, 0.5], [1.0, 2.5, 1.5], [0.6, 1.2, 2.0]])),
)


def random_data(seed, num_rows=12, **changes):
    random = np.random.default_rng(seed)
    item, annotator, label = (random.integers(0, size, num_rows) for size in SIZES.values())
    return Annotations.from_codes(item, annotator, label, **SIZES, **changes)


def ascend(data, priors=PRIORS, steps=30, gold="ignore", change=lambda responsibility: responsibility):
    """Return the problem, the responsibilities and the bound at every step."""
    problem = jax.tree.map(jnp.asarray, prepare(MODEL.resolve(data, priors, {"gold": gold})))
    responsibility, bounds = change(cavi.start(None, problem)), []
    step = jax.jit(cavi.step)
    for _ in range(steps):
        responsibility, terms = step(responsibility, problem)
        bounds.append(float(terms.sum()))
    return problem, responsibility, np.array(bounds)


def full_bound(prevalence, confusion, responsibility, data, priors):
    """Return the bound for any parameters of q, term by term: entropy, expected logs, Kullback-Leibler divergences."""
    a, matrix = priors

    def expected_log(c):
        return digamma(c) - digamma(c.sum(-1, keepdims=True))

    def divergence(c, prior):
        normaliser = gammaln(c.sum(-1)) - gammaln(c).sum(-1) - gammaln(prior.sum(-1)) + gammaln(prior).sum(-1)
        return normaliser + ((c - prior) * expected_log(c)).sum(-1)

    of_rows = expected_log(confusion)[data.annotator, :, data.label] * data.weight[:, None]
    return (
        entr(responsibility).sum() + (responsibility * expected_log(prevalence)).sum()
        + (responsibility[data.item] * of_rows).sum()
        - divergence(prevalence, a) - divergence(confusion, matrix).sum()
    )  # fmt: skip


def concentrations(priors=PRIORS):
    return np.asarray(priors.prevalence.concentration, float), np.asarray(priors.confusion.concentration, float)


def test_the_collapsed_bound_is_the_full_one():
    data = random_data(0, weight=np.linspace(0.5, 2, 12))
    with jax.enable_x64(True):
        problem, responsibility, _ = ascend(data, steps=2)
        best = cavi.concentrations(responsibility, problem)
        collapsed = float(cavi.step(responsibility, problem)[1].sum())
        full = float(full_bound(*best, responsibility, data, concentrations()))
    np.testing.assert_allclose(collapsed, full, rtol=1e-13)


def test_the_bound_is_that_of_the_density():
    """A Monte Carlo estimate: with gold labels the NumPyro model is the density of labels, parameters and data."""
    data = random_data(1)
    num_draws = 4000
    with jax.enable_x64(True):
        fit = cs.fit(MODEL, data, PRIORS)
        draws = fit.posterior.draws(num_draws, key=jax.random.key(0))
        logits = jnp.log(fit.posterior.responsibility)
        label = jax.random.categorical(jax.random.key(1), logits, shape=(num_draws, data.num_items))
        log_q_label = jnp.take_along_axis(logits[None], label[:, :, None], axis=2).sum((1, 2))
        log_q = dist.Dirichlet(fit.posterior.prevalence).log_prob(draws["prevalence"])
        log_q += dist.Dirichlet(fit.posterior.confusion).log_prob(draws["confusion"]).sum((1, 2)) + log_q_label

        def log_p(label, values):
            return log_density(model, (data.replace(gold=label), PRIORS), {"gold": "use"}, values)[0]

        difference = np.asarray(jax.jit(jax.vmap(log_p))(label, draws) - log_q)
    z = (difference.mean() - fit.elbo[-1]) / (difference.std() / np.sqrt(num_draws))
    assert abs(z) < 4


def test_a_fixed_point_is_a_stationary_point_of_the_full_bound():
    data = random_data(2)
    with jax.enable_x64(True):
        problem, responsibility, _ = ascend(data, steps=2000)
        best = cavi.concentrations(responsibility, problem)

        def bound(prevalence, confusion, logits):
            return full_bound(prevalence, confusion, jax.nn.softmax(logits, axis=-1), data, concentrations())

        gradient = jax.grad(bound, (0, 1, 2))(*best, jnp.log(responsibility))
    assert max(np.abs(np.asarray(leaf)).max() for leaf in gradient) < 1e-6 * data.num_annotations


def test_an_item_without_annotations_has_the_expected_prevalence():
    data = Annotations.from_codes([0, 0, 2], [0, 1, 0], [1, 1, 2], num_items=4, num_annotators=2, num_labels=3)
    posterior = cs.fit(MODEL, data).posterior
    expected = np.exp(np.asarray(digamma(posterior.prevalence)))
    for item in (1, 3):
        np.testing.assert_allclose(posterior.responsibility[item], expected / expected.sum(), rtol=1e-3)


def test_no_annotation_that_counts_leaves_the_prior():
    data = random_data(6, weight=np.zeros(12))
    posterior = cs.fit(MODEL, data, PRIORS).posterior
    np.testing.assert_allclose(posterior.confusion, np.broadcast_to(concentrations()[1], (3, 3, 3)), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_priors_that_are_not_conjugate_go_to_nuts():
    logistic = dist.TransformedDistribution(
        dist.Normal(0, 1).expand((2,)).to_event(1), dist.transforms.StickBreakingTransform()
    )
    with pytest.warns(ConsilienceWarning, match="no CAVI: site 'confusion'"):
        fit = cs.fit(MODEL, random_data(7), Priors(confusion=logistic), draws=20, warmup=50, chains=1)
    assert fit.method == "nuts"


@pytest.mark.parametrize(
    ("priors", "match"),
    [
        (Priors(prevalence=dist.Dirichlet(np.ones((2, 3)))), "'prevalence' has batch shape"),
        (Priors(confusion=dist.Dirichlet(np.ones((4, 3)))), "expected .* or \\(3,\\)"),
        (Priors(confusion=dist.Dirichlet(np.ones(4))), "event shape"),
    ],
)
def test_priors_of_other_shapes(priors, match):
    with pytest.raises(InvalidPrior, match=match):
        cs.fit(MODEL, random_data(8), priors)


def test_the_shorthand_favours_right_answers():
    by_hand = cs.fit(MODEL, random_data(9), Priors(confusion=Diagonal(4.0)))
    np.testing.assert_array_equal(
        cs.fit(MODEL, random_data(9), diagonal=4).posterior.confusion, by_hand.posterior.confusion
    )
    problem = prepare(MODEL.resolve(random_data(9), Priors(confusion=Diagonal(4.0, 0.5))))
    np.testing.assert_array_equal(problem.confusion[1], 0.5 + 3.5 * np.eye(3))
