"""The NumPyro model of clusterings in views, in its three forms, against brute force and the sampler's own density."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.infer import MCMC, NUTS, DiscreteHMCGibbs, init_to_median
from numpyro.infer.util import log_density

from consilience.errors import UnsupportedRequest
from consilience.inference.fitting import fit
from consilience.inference.nuts import run_nuts
from consilience.inference.posterior import summarise
from consilience.inference.svi import run_svi
from consilience.models.expert_views import MODEL, PAPER_PRIORS, Priors, model
from consilience.models.expert_views.likelihood import answer_table
from consilience.models.expert_views.model import arranged, density
from tests.models.expert_views.joint import log_joint
from tests.models.expert_views.worked import (
    ANSWERS,
    DATA,
    FEATURE,
    OPTIONS,
    P_TOGETHER,
    PAIRS,
    SAME_VIEW,
    SENSITIVITY,
    VIEWS,
)

STATES = np.array(list(itertools.product(range(2), repeat=8))).reshape(-1, 2, 4)  # of both views


def own_link(weight, feature):
    """State a link that no matrix of weights is."""
    return jnp.stack([jnp.tanh(feature @ weight), jnp.sin(feature @ weight**2)], axis=-1)


# Functions of the data, so that they are made in the float type of the test.
OWN = Priors(
    logits=own_link, weight=lambda data: dist.Gamma(jnp.array([2.0, 3.0, 2.0]), 1.0).to_event(1),
    sensitivity=lambda data: dist.Beta(jnp.array([4.0, 7.0]), 2.0), specificity=lambda data: dist.Uniform(0.2, 1.0),
)  # fmt: skip


OTHER = Priors(weight_scale=1.7, concentration=2.5)
GRADED = DATA.replace(
    together=np.array([2, 3, 0, 1, 2, 2, 1, 0, 3], np.int32), order=np.arange(9, dtype=np.int32) % 2, num_grades=3,
    num_blanks=1,
)  # fmt: skip


def random_values(priors, experts="two-coin", views=2, seed=0, data=DATA):
    """Return values of all sites, anywhere in their supports; and without the discrete ones."""
    random = np.random.default_rng(seed)
    shape = (2, views) if experts == "per-view" else (2,)
    sites = answer_table(MODEL.resolve(data, priors, {**OPTIONS, "experts": experts})).sites
    values = {
        site: random.dirichlet(np.ones(data.num_answers), shape) if site.startswith("answers")
        else random.uniform(0.3, 0.95, shape) for site in sites
    }  # fmt: skip
    values |= {"weight": random.gamma(2.0, 0.5, (views, 3, 2) if priors.logits is None else (views, 3))}
    values |= {"stick": random.uniform(0.1, 0.9, views - 1)} if views > 1 else {}
    discrete = {"cluster": random.integers(2, size=(views, 4)), "view_of_expert": random.integers(views, size=2)}
    return {**values, **discrete}, values


def resolved_of(priors=PAPER_PRIORS, data=DATA, **settings):
    return arranged(MODEL.resolve(data, priors, {**OPTIONS, **settings}))


def height(resolved, values):
    return log_density(density, (resolved,), {}, values)[0]


def both_forms(data, values):
    """Return the log density of the pair form and of the enumerated one."""

    @jax.jit
    def forms(values):
        return [height(resolved_of(data=data, cluster=form), values) for form in ("pair", "enumerate")]

    return map(float, forms(values))


# ---- densities ----


@pytest.mark.parametrize(
    ("priors", "experts", "views", "data"),
    [(OTHER, "two-coin", 2, DATA), (OWN, "symmetric", 1, DATA), (OWN, "per-view", 2, DATA), (OTHER, "spammer", 2, DATA),
     (OWN, "two-coin", 2, DATA), (OTHER, "two-coin", 2, GRADED), (OTHER, "per-view", 2, GRADED),
     (OTHER, "symmetric", 2, GRADED)],
)  # fmt: skip
def test_the_density_is_the_log_joint(priors, experts, views, data):
    @jax.jit
    def both(values):
        return height(resolved, values), log_joint(values, resolved)

    with jax.enable_x64(True):
        resolved = resolved_of(priors, data, experts=experts, views=views)
        for seed in range(5):
            of_model, own = both(random_values(priors, experts, views, seed, data)[0])
            assert abs(of_model - own) < 1e-10 * (1 + abs(own))


def test_the_log_joint_is_what_the_paper_says():
    with jax.enable_x64(True):
        values, _ = random_values(PAPER_PRIORS)
        found = float(jax.jit(lambda values: log_joint(values, resolved_of()))(values))
    stick, sensitivity, specificity, weight, cluster, view = (
        np.asarray(values[site], float)
        for site in ("stick", "sensitivity", "specificity", "weight", "cluster", "view_of_expert")
    )
    expected = np.log(np.where(view == 0, stick[0], 1 - stick[0])).sum()
    expected += np.log(10 * sensitivity**9).sum() + np.log(10 * specificity**9).sum()
    expected -= (weight**2 / 2 + np.log(2 * np.pi) / 2).sum()
    for clusters, slope in zip(cluster.astype(int), weight, strict=True):
        logits = FEATURE @ slope[:2] + slope[2]
        expected += (logits[np.arange(4), clusters] - np.logaddexp(*logits.T)).sum()
    for expert, a, b, together in ANSWERS:
        same = cluster[int(view[expert]), a] == cluster[int(view[expert]), b]
        right = sensitivity[expert] if same else specificity[expert]
        expected += np.log(right if together == same else 1 - right)
    assert abs(found - expected) < 1e-10


@pytest.mark.parametrize(
    ("priors", "experts", "data"),
    [(OWN, "two-coin", DATA), (OTHER, "two-coin", GRADED), pytest.param(OWN, "per-view", DATA, marks=pytest.mark.slow)],
)
def test_enumeration_sums_over_clusters_and_views(priors, experts, data):
    with jax.enable_x64(True):
        resolved = resolved_of(priors, data, experts=experts, cluster="enumerate")
        _, values = random_values(priors, experts, data=data)

        def joint(cluster, view):
            return log_joint({**values, "cluster": cluster, "view_of_expert": view}, resolved)

        @jax.jit
        def enumerated(values):
            total, trace = log_density(density, (resolved,), {}, values)
            return total, trace["view_probability"]["value"]

        each = np.asarray(jax.jit(jax.vmap(jax.vmap(joint, (None, 0)), (0, None)))(STATES, VIEWS))
        total, probability = (np.asarray(one) for one in enumerated(values))
    assert abs(total - np.logaddexp.reduce(each, axis=None)) < 1e-10
    share = np.exp(each - total).sum(axis=0)
    expected = [[share @ (VIEWS[:, expert] == view) for view in range(2)] for expert in range(2)]
    np.testing.assert_allclose(probability, expected, atol=1e-10)


def test_the_pair_likelihood_is_another_model():
    """It is the sum over clusters drawn anew for every judgement; the same only where no item is judged twice."""
    with jax.enable_x64(True):
        _, values = random_values(PAPER_PRIORS)
        pair, enumerated = both_forms(DATA, values)
        assert abs(pair - enumerated) > 0.01
        rows = np.array([0, 1])  # one expert on pairs without a common item
        apart = DATA.replace(
            **{name: getattr(DATA, name)[rows] for name in ("expert", "item_a", "item_b", "together")},
            num_constraints=2,
        )
        pair, enumerated = both_forms(apart, values)
        assert abs(pair - enumerated) < 1e-10


# ---- what is refused ----


def test_exact_clusters_are_not_for_methods_that_follow_gradients():
    for method in ("nuts", "svi"):
        with pytest.raises(UnsupportedRequest, match=r"method='gibbs'.*cluster='pair'"):
            fit("expert-views", DATA, method=method, **OPTIONS)
    with pytest.raises(UnsupportedRequest, match="'pears'; choose one of 'exact', 'pair', 'enumerate'"):
        resolved_of(cluster="pears")
    assert resolved_of(cluster="pair").data.feature.shape == (4, 3)


def test_too_many_configurations_are_refused():
    place = np.arange(9, dtype=np.int32)
    many = DATA.replace(item_a=place, item_b=place + 4, num_items=13, feature=np.zeros((13, 2)))
    with pytest.raises(UnsupportedRequest, match="13 judged items in 3 clusters.*takes 100,000"):
        jax.eval_shape(lambda: handlers.seed(model, 0)(many, clusters=3, views=2, cluster="enumerate"))


def test_data_in_a_compiled_program_must_be_arranged_before():
    with pytest.raises(UnsupportedRequest, match=r"pass arranged\(resolved\) into it"):
        jax.jit(lambda data: handlers.seed(model, 0)(data, **OPTIONS))(DATA)


# ---- samplers ----


def label_free(draws):
    """Return what does not depend on names of views and clusters, ``(…, quantity)``, of draws with discrete sites."""
    view, cluster = np.asarray(draws["view_of_expert"]), np.asarray(draws["cluster"])
    own = np.take_along_axis(cluster, view[..., None], axis=-2)  # (…, expert, item)
    together = own[..., PAIRS[:, 0]] == own[..., PAIRS[:, 1]]
    return {
        "same_view": (view[..., 0] == view[..., 1]).astype(float), "sensitivity": np.asarray(draws["sensitivity"]),
        "together": together.astype(float),
    }  # fmt: skip


def largest_error(samples):
    """Return the largest difference from the exact posterior, in Monte Carlo standard errors."""
    table = summarise(samples)
    exact = {"same_view": SAME_VIEW, "sensitivity": SENSITIVITY, "together": P_TOGETHER}
    expected = np.concatenate([np.ravel(exact[name]) for name in samples])
    return np.abs((table["mean"].to_numpy() - expected) / table["mcse"].to_numpy()).max()


@pytest.mark.slow
def test_nuts_on_the_enumerated_model_agrees_with_brute_force():
    with jax.enable_x64(True):
        resolved = resolved_of(cluster="enumerate")
        run = run_nuts(density, resolved, key=jax.random.key(0), draws=600, warmup=300, chains=4, progress=False)

        @jax.jit
        @jax.vmap
        def given(values):
            """Return the probabilities of clusters and views given one draw of all else."""
            joint = jax.vmap(
                jax.vmap(
                    lambda z, c: log_joint({**values, "cluster": z, "view_of_expert": c}, resolved), (None, 0)
                ),
                (0, None),
            )(jnp.asarray(STATES), jnp.asarray(VIEWS))
            share = jax.nn.softmax(joint.ravel()).reshape(joint.shape)
            own = STATES[:, VIEWS]  # (state, choice, expert, item)
            same = own[..., PAIRS[:, 0]] == own[..., PAIRS[:, 1]]
            return jnp.tensordot(share, same, 2), (share * (VIEWS[:, 0] == VIEWS[:, 1])).sum()

        flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in run.samples.items()}
        together, same_view = (np.asarray(one).reshape(4, -1, *one.shape[1:]) for one in given(flat))
    samples = {"same_view": same_view, "sensitivity": run.samples["sensitivity"], "together": together}
    assert largest_error(samples) < 4.5


@pytest.mark.slow
def test_numpyro_with_discrete_sites_agrees_with_brute_force():
    with jax.enable_x64(True):
        kernel = DiscreteHMCGibbs(NUTS(density, init_strategy=init_to_median), modified=True)
        mcmc = MCMC(
            kernel, num_warmup=500, num_samples=2500, num_chains=2, chain_method="sequential", progress_bar=False
        )
        mcmc.run(jax.random.key(1), resolved_of())
        draws = mcmc.get_samples(group_by_chain=True)
    assert largest_error(label_free(draws)) < 5


@pytest.mark.slow
def test_the_pair_model_differs_as_documented():
    """It is softer about clusters: no pair is as sure as it is in the model with one clustering."""
    resolved = resolved_of(cluster="pair")
    run = run_nuts(density, resolved, key=jax.random.key(0), draws=1000, warmup=500, chains=4, progress=False)
    summary = summarise({"sensitivity": run.samples["sensitivity"]})
    assert np.abs((summary["mean"] - SENSITIVITY) / summary["mcse"]).max() > 5
    fitted = run_svi(density, resolved, key=jax.random.key(0), draws=200, max_steps=2000, progress=False)
    assert np.isfinite(fitted.elbo).all()
    assert fitted.samples["view_probability"].shape == (1, 200, 2, 2)


def shared(data):
    """State a prior with a mean that all experts have in common."""
    mean = numpyro.sample("mean", dist.Beta(2.0, 1.0))
    return dist.Beta(10 * mean, 10 * (1 - mean))


def test_a_hierarchical_prior_is_part_of_the_model():
    def sites(resolved):
        trace = handlers.trace(handlers.seed(density, jax.random.key(0))).get_trace(resolved)
        return {name: site["value"] for name, site in trace.items() if site["type"] == "sample"}

    found = jax.eval_shape(sites, resolved_of(Priors(sensitivity=shared), cluster="pair"))
    assert set(found) == {"mean", "sensitivity", "specificity", "weight", "stick", "answer"}
