"""The sampler of clusterings in views against the posterior by brute force: all clusters and views of four items."""

import dataclasses
import itertools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy.special import betaln

from consilience.errors import InvalidPrior, NotConjugate, UnsupportedRequest
from consilience.models.expert_views import MODEL, gibbs
from consilience.models.expert_views.cavi import CAVI
from consilience.models.expert_views.likelihood import pairs_together, together_counts
from consilience.models.expert_views.priors import PAPER_PRIORS, Priors
from consilience.models.expert_views.settings import EXPERTS
from consilience.models.posterior import Closed
from consilience.models.special import log_beta
from tests.models.expert_views.worked import (
    ANSWERS,
    DATA,
    FEATURE,
    LOG_EVIDENCE,
    OPTIONS,
    P_TOGETHER,
    PAIRS,
    SAME_VIEW,
    SENSITIVITY,
    VIEWS,
)

STATES = np.array(list(itertools.product(range(2), repeat=4)))  # all clusterings of a view
LOG_VIEWS = np.log([1 / 3, 1 / 6, 1 / 6, 1 / 3])
SAME = STATES[:, PAIRS[:, 0]] == STATES[:, PAIRS[:, 1]]


def prepare(priors, **settings):
    return gibbs.prepare(MODEL.resolve(DATA, priors, settings))


def posteriors(experts="two-coin"):
    """Return the Beta parameters of each expert's sites in every state, ``(expert, state, site, 2)``."""
    found = np.zeros((2, 16, 2, 2))
    for expert, a, b, together in ANSWERS:
        same = STATES[:, a] == STATES[:, b]
        found[expert, same, 0, 1 - together] += 1
        found[expert, ~same, 1, together] += 1
    if experts == "symmetric":
        found = found.sum(axis=2, keepdims=True)
    return found + [10, 1]


def brute_force(log_prior, experts="two-coin"):
    """Return the exact posterior, from the log prior probability of the states of each view ``(view, state)``."""
    parameters = posteriors(experts)
    evidence = (betaln(parameters[..., 0], parameters[..., 1]) - betaln(10, 1)).sum(axis=-1)
    joint = np.stack([
        np.where(views[0] == 0, evidence[0], 0)[:, None] + np.where(views[1] == 0, evidence[1], 0)[:, None]
        + np.where(views[0] == 1, evidence[0], 0) + np.where(views[1] == 1, evidence[1], 0)
        + log_prior[0][:, None] + log_prior[1] + log_view for views, log_view in zip(VIEWS, LOG_VIEWS, strict=True)
    ])  # fmt: skip
    weight = np.exp(joint - joint.max())
    total = joint.max() + np.log(weight.sum())
    weight /= weight.sum()
    # Of each expert: how probable each state is in the view that is his.
    of_expert = [
        np.sum([w.sum(axis=1 - view) for w, view in zip(weight, VIEWS[:, expert], strict=True)], axis=0)
        for expert in range(2)
    ]
    mean = parameters[..., 0] / parameters.sum(axis=-1)
    return SimpleNamespace(
        evidence=evidence, log_choice=joint.max() + np.log(np.exp(joint - joint.max()).sum(axis=(1, 2))), total=total,
        same_view=weight[[0, 3]].sum(), together=np.stack([own @ SAME for own in of_expert]),
        sensitivity=np.array([own @ mean[expert, :, 0] for expert, own in enumerate(of_expert)]),
        specificity=np.array([own @ mean[expert, :, -1] for expert, own in enumerate(of_expert)]),
    )  # fmt: skip


def log_share(logits):
    """Return the log probability of each state from logits ``(…, item, cluster)``."""
    normal = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    return normal[..., np.arange(4), STATES].sum(axis=-1)


def integrated(number=48):
    """Return the log prior of states with the weights integrated out: with two clusters only differences matter."""
    node, weight = np.polynomial.hermite_e.hermegauss(number)
    grid = np.stack(np.meshgrid(*[np.sqrt(2) * node] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    weights = np.prod(np.meshgrid(*[weight / weight.sum()] * 3, indexing="ij"), axis=0).ravel()
    difference = grid @ np.concatenate([FEATURE, np.ones((4, 1))], axis=1).T
    shares = np.exp(log_share(np.stack([difference, np.zeros_like(difference)], axis=-1)))
    return np.tile(np.log(weights @ shares), (2, 1))


def own_link(weight, feature):
    """State a link that no matrix of weights is: the offset is fixed, and the slope enters by a square."""
    score = weight**2 * feature[:, 0] - weight
    return jnp.stack([score, jnp.zeros_like(score)], axis=-1)


OWN_PRIORS = dataclasses.replace(PAPER_PRIORS, logits=own_link, weight=dist.Gamma(2.0, 2.0))


def test_a_link_with_logits_of_another_shape_is_refused():
    wrong = Priors(logits=lambda weight, feature: own_link(weight, feature)[:, :1], weight=OWN_PRIORS.weight)
    said = r"returned shape \(4, 1\) for 4 items and 2 clusters; return \(4, 2\)"
    with pytest.raises(InvalidPrior, match=said):
        prepare(wrong, **OPTIONS)
    with pytest.raises(InvalidPrior, match=said), handlers.seed(rng_seed=0):
        MODEL.model(DATA, wrong, **OPTIONS)


def integrated_own():
    """Return the log prior of states under `own_link`, by a fine grid over the weight."""
    grid = np.linspace(1e-4, 12, 40_001)
    density = 4 * grid * np.exp(-2 * grid)
    score = grid[:, None] ** 2 * FEATURE[:, 0] - grid[:, None]
    shares = np.exp(log_share(np.stack([score, np.zeros_like(score)], axis=-1)))
    return np.tile(np.log((density / density.sum()) @ shares), (2, 1))


# ---- the numbers of the worked example ----


def test_the_accuracies_integrate_out_as_worked():
    problem = prepare(PAPER_PRIORS, **OPTIONS)
    with jax.enable_x64(True):
        judged = problem.judged
        counts = together_counts(pairs_together(jnp.asarray(STATES).T, judged), judged)
        cells = np.asarray(gibbs._conditional(counts, problem), float)
        evidence = np.asarray(log_beta(jnp.asarray(cells)).sum(axis=2)) - 2 * betaln(10, 1)
    np.testing.assert_allclose(evidence, brute_force(np.zeros((2, 16))).evidence, atol=1e-6)
    worked = [[-2.929592, -9.845647, -4.916325], [-8.379309, -0.364643, -4.693181]]
    np.testing.assert_allclose(evidence[:, [3, 5, 0]], worked, atol=1e-6)
    log_joint = [-12.091633, -6.055657, -11.811496, -11.478695]
    slope = np.stack([FEATURE, -FEATURE], axis=-1)
    fixed = brute_force(np.stack([log_share(slope[:, 0]), log_share(slope[:, 1])]))
    np.testing.assert_allclose(fixed.log_choice, log_joint, atol=1e-6)
    np.testing.assert_allclose([fixed.total, fixed.same_view], [-6.045737, 0.006738], atol=1e-6)
    np.testing.assert_allclose(fixed.sensitivity, [0.919842, 0.922289], atol=1e-6)


def test_the_weights_integrate_out_as_worked():
    log_prior = integrated()
    np.testing.assert_allclose(np.exp(log_prior[0, [0, 1, 3, 6]]), [0.085997, 0.056830, 0.085997, 0.014690], atol=1e-6)
    exact = brute_force(log_prior)
    np.testing.assert_allclose([exact.total, exact.same_view], [LOG_EVIDENCE, SAME_VIEW], atol=1e-6)
    np.testing.assert_allclose(exact.sensitivity, SENSITIVITY, atol=1e-6)
    np.testing.assert_allclose(exact.together, P_TOGETHER, atol=1e-6)


# ---- the sampler ----


def chain_means(priors, experts, num_chains=200, warmup=50, kept=200):
    """Return the means of label-free quantities along independent chains, ``(chain, …)``."""
    problem = prepare(priors, **OPTIONS, experts=experts)

    def quantities(state):
        sites = gibbs.sites(state, problem)
        own = sites["cluster"][sites["view_of_expert"]]  # (expert, item)
        accuracies = {site: sites[site] for site in ("sensitivity", "specificity")}
        if experts == "per-view":
            accuracies = {site: values[jnp.arange(2), state.view_of_expert] for site, values in accuracies.items()}
        return {
            "together": own[:, PAIRS[:, 0]] == own[:, PAIRS[:, 1]],
            "same_view": sites["view_of_expert"][0] == sites["view_of_expert"][1], **accuracies,
        }  # fmt: skip

    @jax.jit
    @jax.vmap
    def run(key):
        def body(number, carry):
            state, total = carry
            state = gibbs.sweep(jax.random.fold_in(key, number), state, problem)
            return state, jax.tree.map(lambda old, new: old + (number >= warmup) * new, total, quantities(state))

        state = gibbs.start(jax.random.fold_in(key, 1 << 20), problem)
        total = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), quantities(state))
        return jax.tree.map(lambda leaf: leaf / kept, jax.lax.fori_loop(0, warmup + kept, body, (state, total))[1])

    return jax.tree.map(np.asarray, run(jax.random.split(jax.random.key(0), num_chains)))


CASES = [
    pytest.param(PAPER_PRIORS, "two-coin", integrated, id="two-coin"),
    pytest.param(OWN_PRIORS, "two-coin", integrated_own, id="a link of one's own", marks=pytest.mark.slow),
    pytest.param(PAPER_PRIORS, "symmetric", integrated, id="symmetric", marks=pytest.mark.slow),
    pytest.param(PAPER_PRIORS, "per-view", integrated, id="per-view", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("priors", "experts", "log_prior"), CASES)
def test_the_sampler_agrees_with_brute_force(priors, experts, log_prior):
    exact, means = brute_force(log_prior(), experts), chain_means(priors, experts)
    for site, values in means.items():
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert np.abs((values.mean(axis=0) - getattr(exact, site)) / error).max() < 4.5, site


def test_chains_start_at_the_end_of_coordinate_ascent():
    posterior = Closed({}, {
        "cluster_probability": np.eye(2)[STATES[[3, 5]]].transpose(1, 0, 2), "view_probability": np.eye(2),
        "weight_mean": np.full((2, 3, 2), 5.0), "weight_variance": np.full((2, 3, 2), 1e-6),
    })  # fmt: skip
    problem = gibbs.begin_at(prepare(PAPER_PRIORS, **OPTIONS), posterior)
    begun = jax.jit(lambda key: gibbs.sites(gibbs.start(key, problem), problem))(jax.random.key(0))
    np.testing.assert_array_equal(begun["cluster"], STATES[[3, 5]])
    np.testing.assert_array_equal(begun["view_of_expert"], [0, 1])
    np.testing.assert_allclose(begun["weight"], 5, atol=0.01)


def test_chains_of_spammers_start_at_the_end_of_the_ascent_of_two_coin_experts():
    resolved = MODEL.resolve(DATA, None, {**OPTIONS, "experts": "spammer", "restarts": 2})
    changed = gibbs.begin_with(resolved)
    assert dataclasses.replace(changed.settings, experts="spammer") == resolved.settings
    assert changed.settings.experts == "two-coin"
    with pytest.raises(NotConjugate, match="spammer"):
        CAVI.prepare(resolved)
    assert CAVI.prepare(changed).settings.clusters == 2
    symmetric = MODEL.resolve(DATA, None, {**OPTIONS, "experts": "symmetric"})
    assert gibbs.begin_with(symmetric).settings.experts == "symmetric"


@pytest.mark.parametrize(
    ("experts", "priors", "views", "event", "x64"),
    [("two-coin", OWN_PRIORS, 1, (), True), ("symmetric", OWN_PRIORS, 2, (), False),
     ("per-view", PAPER_PRIORS, 2, (3, 2), True), ("spammer", Priors(), 1, (3, 2), True)],
)  # fmt: skip
def test_sites_have_their_shapes_and_types(experts, priors, views, event, x64):
    with jax.enable_x64(x64):
        problem = prepare(priors, clusters=2, views=views, experts=experts)

        def sites(key):
            state = gibbs.start(key, problem)
            swept = gibbs.sweep(key, state, problem)
            assert jax.tree.map(jnp.shape, state) == jax.tree.map(jnp.shape, swept)
            assert jax.tree.map(jnp.result_type, state) == jax.tree.map(jnp.result_type, swept)
            return gibbs.sites(swept, problem)

        found = {name: (leaf.shape, leaf.dtype.name) for name, leaf in jax.eval_shape(sites, jax.random.key(0)).items()}
    own, of_expert = "float64" if x64 else "float32", (2, views) if experts == "per-view" else (2,)
    expected = {site: (of_expert, own) for site in ("sensitivity", "specificity", *EXPERTS[experts])}
    expected |= {"view_of_expert": ((2,), "int32"), "weight": ((views, *event), own), "cluster": ((views, 4), "int8")}
    assert found == expected | ({"stick": ((1,), own)} if views == 2 else {})


def test_what_the_sampler_does_not_take():
    with pytest.raises(UnsupportedRequest, match="127"):
        prepare(PAPER_PRIORS, clusters=128)
    with pytest.raises(UnsupportedRequest, match="clusters is 5, and experts judged 4 items; give 4 clusters"):
        prepare(PAPER_PRIORS, clusters=5)
    assert prepare(PAPER_PRIORS, clusters=4).clusters == 4
    with pytest.raises(NotConjugate, match="'sensitivity': the updates need a Beta prior, not Uniform"):
        prepare(Priors(sensitivity=dist.Uniform(0.5, 1)), **OPTIONS)
