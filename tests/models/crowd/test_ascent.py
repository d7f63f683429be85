"""Coordinate ascent and EM of every channel: sweeps and objectives by loops, fixed points, published numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.special import digamma

import consilience as cs
from consilience.data import Annotations
from consilience.errors import ConsilienceWarning, InvalidPrior, UnsupportedRequest
from consilience.models import dawid_skene, mace, one_coin
from consilience.models.beta_priors import BetaPrior
from consilience.models.crowd.votes import vote_shares, votes_of
from consilience.models.dawid_skene import Diagonal
from consilience.models.interface import unsharded
from consilience.models.mace import KnowsGuesses
from tests.models.crowd.channels import (
    CHANNELS,
    divergence,
    enumerated,
    random_table,
    sweep_by_loops,
    weights_of,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning"), pytest.mark.usefixtures("exact_sizes"),
]  # fmt: skip

every_channel = pytest.mark.parametrize("name", CHANNELS)
RAGGED = np.tile([1.0, 0.5, 2.0, 0.0], 3)
TINY = Annotations.from_codes(
    [0, 0, 1, 1, 1, 2, 2], [0, 1, 0, 1, 1, 0, 1], [0, 0, 1, 1, 0, 1, 0], gold=[-1, 0, -1, -1], num_items=4,
    num_annotators=2, num_labels=2,
)  # fmt: skip


@functools.cache
def programs(name, method):
    engine = CHANNELS[name].module.MODEL.engine(method)
    return engine, jax.jit(engine.start), jax.jit(engine.step)


def climbed(name, data, method="cavi", steps=0, priors=None, **options):
    """Return the problem, and the state after some steps."""
    engine, start, step = programs(name, method)
    problem = jax.tree.map(jnp.asarray, engine.prepare(CHANNELS[name].module.MODEL.resolve(data, priors, options)))
    state = start(jax.random.key(0), problem)
    for _ in range(steps):
        state, _ = step(state, problem)
    return problem, state


def on_host(tree):
    return {site: np.asarray(values, float) for site, values in tree.items()}


# ---- by loops, as the updates are written ----


@every_channel
@pytest.mark.parametrize("weight", [None, RAGGED])
def test_sweeps_and_bound_of_cavi_are_those_of_loops(name, weight):
    row, data = CHANNELS[name], random_table(weight=weight)
    prior = row.tree(3)
    with jax.enable_x64(True):
        problem, state = climbed(name, data, priors=row.priors())
        for _ in range(4):
            tree = on_host(state.tree)
            q, log_z, add = sweep_by_loops(row, weights_of(tree), data)
            state, terms = programs(name, "cavi")[2](state, problem)
            np.testing.assert_allclose(state.responsibility[: data.num_items], q, atol=1e-13)
            bound = log_z.sum() - sum(divergence(tree[site], prior[site]) for site in tree)
            np.testing.assert_allclose(terms.sum(), bound, rtol=1e-12)
            for site, values in add.items():
                np.testing.assert_allclose(state.tree[site], prior[site] + values, rtol=1e-12, err_msg=site)


@every_channel
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_steps_and_objective_of_em_are_those_of_loops(name, smoothing):
    if smoothing and name != "mace":
        pytest.skip("the member has no smoothing")
    row, data = CHANNELS[name], random_table(1, 40, weight=np.tile([1.0, 0.5, 2.0, 0.0], 10))
    options = {"smoothing": smoothing} if name == "mace" else {}
    with jax.enable_x64(True):
        problem, state = climbed(name, data, "em", **options)
        for _ in range(4):
            tree = on_host(state.tree)
            _, log_z, add = sweep_by_loops(row, tree, data)
            shares = {site: smoothing / 3 if site != "prevalence" else 0.0 for site in tree}
            logs = sum(shares[site] * np.log(own).sum() for site, own in tree.items() if shares[site])
            state, terms = programs(name, "em")[2](state, problem)
            np.testing.assert_allclose(terms.sum(), log_z.sum() + logs, rtol=1e-12)
            for site, values in add.items():
                own, total = values + shares[site], (values + shares[site]).sum(-1, keepdims=True)
                expected = np.divide(own, total, out=np.full(own.shape, 1 / own.shape[-1]), where=total > 0)
                np.testing.assert_allclose(state.tree[site], expected, rtol=1e-11, atol=1e-14, err_msg=site)


def test_one_step_of_smoothed_em_by_hand():
    data = Annotations.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 0], num_labels=2)
    with jax.enable_x64(True):
        _, state = climbed("mace", data, "em", prevalence="uniform", smoothing=0.5)
    # From flat weights 1/2, 1/2, 1/2: an annotation that is right was known with probability 2/3.
    chance = (1 / 2 + 1 / 4) ** 2 / ((1 / 2 + 1 / 4) ** 2 + (1 / 4) ** 2)
    known = np.array([chance * 2 / 3 + 1 / 3, chance * 2 / 3 + 1 / 3])
    np.testing.assert_allclose(state.tree["competence"][:, 0], (known + 0.25) / (2 + 0.5), rtol=1e-12)
    guessed = np.array([[1 - chance * 2 / 3, 2 / 3], [2 - known[1], 0.0]])
    expected = (guessed + 0.25) / (guessed.sum(1, keepdims=True) + 0.5)
    np.testing.assert_allclose(state.tree["guess"], expected, rtol=1e-12)


def test_pooled_concentrations_are_those_of_three_map_steps():
    """The fourth sweep of one-coin: fixed-point steps under Gamma(3, .5) and Gamma(2, .5), as they are written."""
    data = random_table(2, 60)
    number = np.bincount(data.annotator)
    with jax.enable_x64(True):
        problem, state = climbed("one-coin", data, steps=3)
        np.testing.assert_allclose(state.prior["accuracy"], [[6.0, 4.0]] * 4)  # the means of their priors, till then
        state, _ = programs("one-coin", "cavi")[2](state, problem)
        a, b = 6.0, 4.0
        right = np.bincount(data.annotator, np.asarray(state.responsibility)[data.item, data.label])
        for _ in range(3):
            below = (digamma(a + b + number) - digamma(a + b)).sum() + 0.5
            a, b = (
                (a * (digamma(a + right) - digamma(a)).sum() + 2) / below,
                (b * (digamma(b + number - right) - digamma(b)).sum() + 1) / below,
            )  # fmt: skip
        np.testing.assert_allclose(state.prior["accuracy"], [[a, b]] * 4, rtol=1e-12)
        np.testing.assert_allclose(state.tree["accuracy"][:, 0], a + right, rtol=1e-12)


# ---- laws ----


@every_channel
def test_the_gradient_of_the_bound_vanishes_at_the_fixed_point(name):
    data = random_table(7)
    with jax.enable_x64(True):
        problem, state = climbed(name, data, steps=3000, priors=CHANNELS[name].priors())
        step = programs(name, "cavi")[2]
        gradient = jax.grad(lambda tree: step(state._replace(tree=tree), problem)[1].sum())(state.tree)
        again, _ = step(state, problem)
    for site, part in gradient.items():
        assert np.abs(part).max() < 1e-6 * data.num_annotations
        np.testing.assert_allclose(again.tree[site], state.tree[site], rtol=1e-7)


@every_channel
def test_the_gradient_of_the_objective_of_em_vanishes_at_the_end(name):
    data, options = random_table(4, 60), {"smoothing": 1.0} if name == "mace" else {}
    with jax.enable_x64(True):
        problem, state = climbed(name, data, "em", steps=3000, **options)
        step, free = programs(name, "em")[2], jax.tree.map(jnp.log, state.tree)

        def objective(free):
            tree = {site: jax.nn.softmax(own, axis=-1) for site, own in free.items()}
            return step(state._replace(tree=tree), problem)[1].sum()

        gradient = jax.grad(objective)(jax.tree.map(lambda own: jnp.maximum(own, -700.0), free))
    assert max(float(np.abs(part).max()) for part in gradient.values()) < 1e-5 * data.num_annotations


POSSIBLE = {
    "learned": ({}, lambda label: True),
    "gold": ({"gold": "use"}, lambda label: label[1] == 0),
    "uniform": ({"prevalence": "uniform"}, lambda label: True),
    "uniform gold": ({"prevalence": "uniform", "gold": "use"}, lambda label: label[1] == 0),
    "uniform observed": ({"prevalence": "uniform", "candidates": "observed"}, lambda label: label[0] == 0),
}
"""Options, and the labels that they allow of `TINY`: the gold label; labels that an item got, any where it got none."""


@pytest.mark.parametrize(("name", "how"), [
    (name, how) for name in CHANNELS for how in POSSIBLE if name == "mace" or "uniform" not in how
])  # fmt: skip
def test_the_bound_is_below_the_evidence_and_near_it(name, how):
    row, (options, allowed) = CHANNELS[name], POSSIBLE[how]
    prior = row.tree(2)
    if "prevalence" in options:
        del prior["prevalence"]
    with jax.enable_x64(True):
        fit = cs.fit(row.module.MODEL, TINY, row.priors(2), "cavi", tolerance=1e-13, **options)
    assert -1.2 < fit.elbo[-1] - enumerated(row, TINY, prior, allowed).log_evidence < 0


@every_channel
def test_no_annotation_that_counts_leaves_the_prior(name):
    row, data = CHANNELS[name], random_table(6, weight=np.zeros(12))
    posterior = cs.fit(row.module.MODEL, data, row.priors(), "cavi").posterior
    expected = np.exp(digamma(np.asarray(posterior.value("prevalence"))))
    np.testing.assert_allclose(
        posterior.hidden[row.hidden], np.tile(expected / expected.sum(), (6, 1)), rtol=1e-3
    )
    for site, own in row.tree(3).items():
        if site != "prevalence":
            found = posterior.value(site)
            np.testing.assert_allclose(found, np.broadcast_to(own, found.shape), rtol=1e-6)


def test_labels_that_nobody_gave_may_be_ruled_out():
    data = random_table(1)
    every = cs.fit("mace", data, method="cavi").posterior.probability
    assert np.all((every > 0) & (every < 1))
    observed = cs.fit("mace", data, method="cavi", candidates="observed").posterior.probability
    given = np.zeros((6, 3), bool)
    given[data.item, data.label] = True
    assert given.any(axis=1).all()
    np.testing.assert_array_equal(observed > 0, given)


def test_several_starts_are_compared_by_the_bound():
    """With sparse priors the bound has several maxima; more starts never end lower."""
    random = np.random.default_rng(3)
    data = Annotations.from_codes(
        np.repeat(np.arange(8), 3), np.tile(np.arange(3), 8), random.integers(0, 3, 24), num_labels=3
    )
    priors = mace.Priors(competence=KnowsGuesses(0.1, 0.1), guess=lambda data: dist.Dirichlet(jnp.full(3, 0.1)))
    with jax.enable_x64(True):
        ends = [
            cs.fit("mace", data, priors, "cavi", restarts=count, seed=1, prevalence="uniform").elbo for count in (0, 8)
        ]
    assert ends[1][-1] > ends[0][-1] + 0.01
    assert np.diff(ends[1]).min() > -1e-10


def test_zeros_of_em_stay_and_rows_that_nothing_tells_are_uniform():
    # Nobody ever gave label 2, and annotator 1 saw no item of class 0.
    data = Annotations.from_codes(
        [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 0, 1], [0, 0, 1, 1, 1, 1], num_items=3, num_annotators=2, num_labels=3
    )
    fit = cs.fit("dawid-skene", data, method="em")
    np.testing.assert_array_equal(fit.prevalence()["share"].to_numpy()[2], 0)
    table = fit.confusion().set_index(["annotator", "true_label"])
    np.testing.assert_allclose(table.loc[("1", "0"), "probability"], 1 / 3, rtol=1e-6)
    np.testing.assert_array_equal(table.loc[("1", "0"), "annotations"], 0)
    np.testing.assert_allclose(table.loc[("0", "1"), "probability"], [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(fit.labels()["probability"], 1, atol=1e-6)


# ---- priors ----


@pytest.mark.slow
def test_priors_that_are_not_conjugate_go_to_nuts():
    logistic = dist.TransformedDistribution(
        dist.Normal(0, 1).expand((3,)).to_event(1), dist.transforms.StickBreakingTransform()
    )
    data, priors = cs.load("dawid-skene-1979"), dawid_skene.Priors(confusion=logistic)
    with pytest.warns(ConsilienceWarning, match="no CAVI: site 'confusion'"):
        fit = cs.fit("dawid-skene", data, priors, draws=20, warmup=50, chains=1)
    assert fit.method == "nuts"


@pytest.mark.parametrize(
    ("priors", "match"),
    [
        ({"prevalence": dist.Dirichlet(np.ones((2, 3)))}, "'prevalence' has batch shape"),
        ({"confusion": dist.Dirichlet(np.ones((4, 3)))}, "expected .* or \\(3,\\)"),
        ({"confusion": dist.Dirichlet(np.ones(4))}, "event shape"),
    ],
)
def test_priors_of_other_shapes(priors, match):
    with pytest.raises(InvalidPrior, match=match):
        cs.fit("dawid-skene", random_table(8), dawid_skene.Priors(**priors))


def test_the_shorthands_are_priors():
    data = random_table(9)
    for name, option, priors in (
        ("dawid-skene", {"diagonal": 4}, dawid_skene.Priors(confusion=Diagonal(4.0))),
        ("dawid-skene", {"diagonal": 3}, dawid_skene.Priors()),
        ("mace", {"guess_count": 10}, mace.Priors()),
    ):
        by_hand, short = cs.fit(name, data, priors, "cavi"), cs.fit(name, data, method="cavi", **option)
        assert by_hand.elbo[-1] == short.elbo[-1]
    problem, _ = climbed("dawid-skene", data, priors=dawid_skene.Priors(confusion=Diagonal(4.0, 0.5)))
    np.testing.assert_array_equal(problem.prior["confusion"][1], 0.5 + 3.5 * np.eye(3))


@every_channel
def test_em_refuses_priors(name):
    with pytest.raises(UnsupportedRequest, match="maximum-likelihood"):
        cs.fit(name, random_table(), CHANNELS[name].priors(), "em")


@pytest.mark.parametrize("method", ["cavi", "gibbs", "em", "nuts"])
def test_one_coin_needs_two_labels(method):
    with pytest.raises(UnsupportedRequest, match="2 labels"):
        cs.fit("one-coin", Annotations.from_codes([0, 1], [0, 1], [0, 0]), method=method, draws=10, warmup=10)


# ---- the 1979 table, and what was published of it ----

FLAT = {"diagonal": 1.0}
PUBLISHED = [
    ("dawid-skene", {}, -258.821607, (18, 21, 5, 1), (0.99025, 0.95844)),
    ("dawid-skene", FLAT, -284.598957, (19, 20, 5, 1), (0.99306, 0.95224)),
    ("mace", {"prevalence": "uniform"}, -267.237038, (18, 20, 6, 1), None),
    ("mace", {"prevalence": "uniform", "restarts": 10}, -267.237038, (18, 20, 6, 1), None),
    ("one-coin", {"priors": one_coin.Priors(accuracy=BetaPrior(3.0, 1.0))}, None, (18, 20, 6, 1), (0.98628, None)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "bound", "labels", "certainty"), PUBLISHED)
def test_cavi_of_the_1979_table(name, options, bound, labels, certainty):
    with jax.enable_x64(True):
        fits = [
            cs.fit(name, cs.load("dawid-skene-1979"), method="cavi", tolerance=1e-13, dependence=rho, **options)
            for rho in (0.0, 0.3)
        ]
    for fit in fits:
        assert bound is None or fit.elbo[-1] == pytest.approx(bound, abs=6e-7)
        assert tuple(fit.labels()["label"].value_counts().sort_index()) == labels
    for fit, expected in zip(fits, certainty or (None, None), strict=True):
        assert expected is None or fit.labels()["certainty"].mean() == pytest.approx(expected, abs=5e-6)
    if name == "dawid-skene":
        share = [0.3956, 0.4408, 0.1227, 0.0409] if options != FLAT else [0.4023, 0.4343, 0.1225, 0.0409]
        np.testing.assert_allclose(fits[0].prevalence()["share"], share, atol=5e-5)
    if name == "one-coin":
        accuracies = [0.8811, 0.7057, 0.8056, 0.8455, 0.8050]
        np.testing.assert_allclose(fits[0].annotators()["accuracy"], accuracies, atol=6e-5)


def test_em_is_the_estimate_of_1979():
    with jax.enable_x64(True):
        fit = cs.fit("dawid-skene", cs.load("dawid-skene-1979"), method="em", tolerance=1e-14)
    np.testing.assert_allclose(fit.elbo[:2], [-205.091138, -194.550952], atol=1e-6)
    np.testing.assert_allclose(fit.elbo[-1], -192.890881, atol=1e-6)
    np.testing.assert_allclose(fit.prevalence()["share"], [0.3996, 0.4220, 0.1118, 0.0667], atol=5e-5)
    assert fit.labels()["label"].value_counts().to_dict() == {"1": 18, "2": 19, "3": 5, "4": 3}
    assert fit.prevalence()["lower"].isna().all()
    assert fit.truth.dependence.rho == 0


def test_smoothed_em_of_the_1979_table():
    with jax.enable_x64(True):
        fit = cs.fit(
            "mace", cs.load("dawid-skene-1979"), method="em", tolerance=1e-13, restarts=5, prevalence="uniform"
        )
        estimate = fit.posterior.values
        log_likelihood = float(np.sum(mace.MODEL.simulation.log_likelihood(estimate, fit.resolved)))
    assert log_likelihood == pytest.approx(-245.387479, abs=6e-7)
    penalty = np.log(estimate["competence"]).sum() + np.log1p(-estimate["competence"]).sum()
    penalty += np.log(estimate["guess"]).sum()
    assert fit.elbo[-1] == pytest.approx(log_likelihood + 0.01 / 4 * penalty, abs=1e-9)


def test_an_ascent_starts_at_the_shares_of_votes():
    """Of an item without votes it has the shares of all of them, and what pads has none."""
    data = Annotations.from_codes([0, 0, 0, 1], [0, 1, 2, 0], [0, 0, 1, 2], num_items=3, num_labels=3)
    found = np.asarray(vote_shares(votes_of(dawid_skene.MODEL.resolve(data, None, {})), unsharded))
    np.testing.assert_allclose(found[:3], [[2 / 3, 1 / 3, 0], [0, 0, 1], [1 / 2, 1 / 4, 1 / 4]], rtol=1e-6)
    assert not found[3:].any()
