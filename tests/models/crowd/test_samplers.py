"""Samplers and densities of every channel against the exact posterior of tiny data, and the starts of chains."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy import stats

import consilience as cs
from consilience.data import Annotations
from consilience.errors import DiagnosticWarning, NotConjugate
from consilience.inference.posterior import summarise
from consilience.models import dawid_skene, mace, one_coin
from consilience.models.beta_priors import BetaPrior
from consilience.models.crowd.gibbs import draw_labels
from consilience.models.posterior import Draws
from consilience.models.truth import LabelDraws
from tests.models.crowd.channels import CHANNELS, enumerated, noise, random_table, sweep_by_loops

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")

every_channel = pytest.mark.parametrize("name", CHANNELS)
DATA = Annotations.from_codes(
    [0, 0, 1, 1, 1, 2, 2, 3, 3], [0, 1, 0, 1, 1, 0, 1, 0, 0], [0, 0, 1, 1, 0, 1, 0, 1, 1],
    weight=[1, 1, 2, 1, 1, 1, 1, 1, 1], gold=[-1, -1, 0, -1, -1], num_items=5, num_annotators=2, num_labels=2,
)  # fmt: skip
HOW = {
    "learned": ({}, lambda label: True),
    "gold": ({"gold": "use"}, lambda label: label[2] == 0),
    "uniform": ({"prevalence": "uniform"}, lambda label: True),
    "observed": ({"prevalence": "uniform", "candidates": "observed"}, lambda label: label[0] == 0 and label[3] == 1),
}
"""Options, and which labels of `DATA` they allow."""


def prior_of(name, how):
    prior = CHANNELS[name].tree(2)
    return {site: own for site, own in prior.items() if site != "prevalence" or "prevalence" not in HOW[how][0]}


@functools.cache
def exact(name, how):
    """Return means of variables and labels, and mean squares of variables, in one row; and the log evidence."""
    found = enumerated(CHANNELS[name], DATA, prior_of(name, how), HOW[how][1])
    return np.concatenate([np.ravel(part) for part in (*found.means.values(), *found.squares.values(), found.label)])


def moments_of(fit, name, how):
    """Return draws of what `exact` gives the means of, ``(chain, draw, quantity)``."""
    order = list(enumerated(CHANNELS[name], DATA, prior_of(name, how), HOW[how][1]).means)
    samples = {site: np.asarray(own, float) for site, own in fit.samples().items()}
    shape = next(iter(samples.values())).shape[:2]
    label = np.asarray(fit.truth.draws).reshape(*shape, -1, 1) == np.arange(2)
    parts = [*(samples[site] for site in order), *(samples[site] ** 2 for site in order), label]
    return np.concatenate([part.reshape(*shape, -1) for part in parts], axis=2).astype(float)


@pytest.mark.parametrize(("name", "method", "how"), [
    *((name, method, how) for name in CHANNELS for method, how in (("gibbs", "learned"), ("gibbs", "gold"))),
    *(("mace", "gibbs", how) for how in ("uniform", "observed")),
    ("one-coin", "nuts", "learned"),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        ("dawid-skene", "nuts", "gold"), ("mace", "nuts", "uniform"),
    )),
])  # fmt: skip
def test_samplers_have_the_exact_moments(name, method, how):
    row = CHANNELS[name]
    fit = cs.fit(
        row.module.MODEL, DATA, row.priors(2), method, draws=1000, chains=4, warmup=300, seed=3, dependence=0.0,
        **HOW[how][0],
    )  # fmt: skip
    assert isinstance(fit.truth, LabelDraws)
    draws, expected = moments_of(fit, name, how), exact(name, how)
    table = summarise({"moment": draws})
    still = table["sd"].to_numpy() == 0  # known labels
    np.testing.assert_allclose(draws[..., still].mean((0, 1)), expected[still], atol=1e-12)
    assert still.any() == (how in ("gold", "observed"))
    difference = (table["mean"].to_numpy() - expected)[~still]
    assert np.abs(difference / table["mcse"][~still]).max() < 5


def test_one_coin_of_two_items_and_two_annotators_by_hand():
    """The four labellings have the weights 1/36, 1/72, 1/216 and 1/108."""
    data = Annotations.from_codes([0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 0, 0])
    found = enumerated(CHANNELS["one-coin"], data, {"prevalence": np.ones(2), "accuracy": np.array([2.0, 1.0])})
    assert np.exp(found.log_evidence) == pytest.approx(1 / 18, rel=1e-12)
    np.testing.assert_allclose(found.label[:, 0], [3 / 4, 7 / 12], rtol=1e-12)
    fit = cs.fit(
        "one-coin", data, one_coin.Priors(accuracy=BetaPrior(2.0, 1.0)), "gibbs", draws=4000, dependence=0.0, chains=4
    )
    table = summarise({"label": (np.asarray(fit.truth.draws) == 0).reshape(4, -1, 2).astype(float)})
    assert (np.abs(table["mean"] - [3 / 4, 7 / 12]) / table["mcse"]).max() < 5


NOISE = {
    "dawid-skene": ({"prevalence": np.ones(2), "confusion": 1 + 2 * np.eye(2)}, {}, 0.015,
                    (0.865, 0.757, 0.808, 0.748), (-25.356, -25.942, -26.198, -26.131)),
    "mace": ({"competence": np.full(2, 0.5), "guess": np.full(2, 10.0)}, {"prevalence": "uniform"}, 0.034,
             (0.842, 0.696, 0.823, 0.759), None),
}  # fmt: skip
"""Default priors, options, largest difference of 6,000 sweeps, exact mean certainties, log evidence."""


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
@pytest.mark.parametrize("name", NOISE)
def test_of_noise_the_sampler_is_as_certain_as_the_exact_posterior(name, seed):
    prior, options, most, certainty, evidence = NOISE[name]
    data = noise(seed)
    found = enumerated(CHANNELS[name], data, prior)
    assert found.label.max(axis=1).mean() == pytest.approx(certainty[seed], abs=5e-4)
    assert evidence is None or found.log_evidence == pytest.approx(evidence[seed], abs=5e-4)
    fit = cs.fit(name, data, method="gibbs", draws=2500, chains=5, dependence=0.0, **options)
    share = (np.asarray(fit.truth.draws)[..., None] == np.arange(2)).mean(axis=0)
    assert np.abs(share - found.label).max() < 1.5 * most  # theirs was one seed


def random_tree(name, how="learned"):
    """Return simplices drawn from the prior of two annotators."""
    random = np.random.default_rng(0)
    draw = {"prevalence": lambda own: random.dirichlet(own),
            "confusion": lambda own: np.stack([random.dirichlet(row, 2) for row in own], axis=1)}  # fmt: skip
    return {
        site: draw.get(site, lambda own: random.dirichlet(own, 2))(own) for site, own in prior_of(name, how).items()
    }


def variables(name, tree):
    pairs = {site.name for site in CHANNELS[name].module.MODEL.sites if not site.event}
    return {site: own[..., 0] if site in pairs else own for site, own in tree.items()}


@pytest.mark.parametrize(("name", "how"), [
    *((name, how) for name in CHANNELS for how in ("learned", "gold")), ("mace", "uniform"), ("mace", "observed"),
])  # fmt: skip
def test_the_density_is_that_of_loops(name, how):
    """Priors as SciPy knows them, and the sum over the labels of every item."""
    row, (options, allowed), tree = CHANNELS[name], HOW[how], random_tree(name, how)
    possible = np.array([label for label in itertools.product(range(2), repeat=5) if allowed(np.array(label))])
    can = np.stack([(possible == t).any(axis=0) for t in (0, 1)], axis=1)
    scale = can * 2 / can.sum(axis=1, keepdims=True) if "prevalence" in options else can
    _, by_item, _ = sweep_by_loops(row, tree, DATA, scale)
    expected = by_item.sum()
    for site, own in prior_of(name, how).items():
        concentration = np.broadcast_to(own, tree[site].shape).reshape(-1, own.shape[-1])
        each = zip(tree[site].reshape(concentration.shape), concentration, strict=True)
        expected += sum(stats.dirichlet(c).logpdf(values) for values, c in each)
    member = row.module.MODEL
    jax.clear_caches()  # of constants that NUTS left in single precision
    with jax.enable_x64(True):
        sites = jax.tree.map(jnp.asarray, variables(name, tree))
        density, _ = log_density(member.model, (DATA, row.priors(2)), options, sites)
        likelihood = member.simulation.log_likelihood(sites, member.resolve(DATA, row.priors(2), options))
    np.testing.assert_allclose(likelihood, by_item, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(float(density), expected, rtol=1e-12)


# ---- weights and draws of labels ----


@every_channel
def test_a_weight_is_that_many_annotations(name):
    weight = np.array([2, 1, 3, 1, 0, 1, 1, 2, 1])
    rows = np.repeat(np.arange(9), weight)
    weighted = DATA.replace(weight=weight.astype(float))
    repeated = Annotations.from_codes(
        DATA.item[rows], DATA.annotator[rows], DATA.label[rows], num_items=5, num_annotators=2, num_labels=2
    )
    row, states = CHANNELS[name], []
    with jax.enable_x64(True):
        gibbs = row.module.MODEL.engine("gibbs")
        for data in (weighted, repeated):
            problem = gibbs.prepare(row.module.MODEL.resolve(data, row.priors(2)))
            state, sweep = gibbs.start(jax.random.key(0), problem), jax.jit(gibbs.sweep)
            for number in range(20):
                state = sweep(jax.random.key(number), state, problem)
            states.append(np.concatenate([np.ravel(part) for part in state.values()]))
    np.testing.assert_allclose(*states, rtol=1e-9)


def test_the_sampler_of_mace_needs_whole_weights():
    data = DATA.replace(weight=np.full(9, 0.5))
    with pytest.raises(NotConjugate, match="whole numbers"):
        cs.fit("mace", data, method="gibbs")
    assert np.isfinite(cs.fit("mace", data, method="cavi").elbo).all()


def test_draws_of_labels_follow_their_weights():
    log_weight = np.log(np.array([[0.2, 0.5, 0.3], [1e-30, 1.0, 1e-30], [3.0, 0.0, 1.0]]) + 1e-38)
    many = 20_000
    drawn = np.asarray(jax.vmap(draw_labels, (0, None))(jax.random.split(jax.random.key(0), many), log_weight))
    expected = np.exp(log_weight) / np.exp(log_weight).sum(1, keepdims=True)
    shares = np.stack([(drawn == k).mean(0) for k in range(3)], axis=1)
    assert np.abs((shares - expected) / np.sqrt(np.maximum(expected * (1 - expected), 1e-9) / many)).max() < 5
    certain = np.where(np.arange(4) == 2, 0.0, -np.inf)[None].repeat(100_000, 0).astype(np.float32)
    assert np.all(draw_labels(jax.random.key(0), certain) == 2)


# ---- starts ----


def test_chains_start_apart_and_near_the_votes():
    member = dawid_skene.MODEL
    gibbs, resolved = member.engine("gibbs"), member.resolve(cs.load("dawid-skene-1979"))
    problem = jax.tree.map(jnp.asarray, gibbs.prepare(resolved))
    assert len(problem.start) == 1
    starts = jax.vmap(gibbs.start, (0, None))(jax.random.split(jax.random.key(0), 50), problem)
    right = np.exp(np.einsum("cjtt->cjt", starts["confusion"])).mean((1, 2))
    assert right.min() > 0.4
    assert np.exp(starts["prevalence"]).std(0).min() > 0.02


def crowd_of_noise():
    """Sixty items: annotator 3 labels all, 1 and 0 most, 4 and 2 some, equally many; nobody looks at them."""
    random, number = np.random.default_rng(2), {3: 60, 1: 50, 0: 45, 4: 20, 2: 20}
    item = np.concatenate([np.sort(random.choice(60, size, replace=False)) for size in number.values()])
    annotator = np.repeat(list(number), list(number.values()))
    return Annotations.from_codes(item, annotator, random.integers(0, 3, len(item)), num_labels=3)


def test_where_nothing_tells_signal_from_chance_five_short_chains_start_at_votes_and_experts():
    data = crowd_of_noise()
    with pytest.warns(DiagnosticWarning, match="no more than chance"):
        fit = cs.fit("dawid-skene", data)
    assert (fit.method, fit.truth.num_draws) == ("gibbs", 500)
    words = ["the vote shares", *(f"the labels of {code}" for code in (3, 1, 0, 2))]
    assert fit.attributes["starts"].split("; ") == words
    more = cs.fit("dawid-skene", data, draws=20, chains=7)
    assert more.truth.num_draws == 140
    assert more.attributes["starts"].split("; ") == [*words, *words[:2]]


@every_channel
def test_experts_are_those_with_most_annotations(name):
    data, member = crowd_of_noise(), CHANNELS[name].module.MODEL
    start = np.asarray(member.engine("gibbs").prepare(member.resolve(data)).start)
    assert len(start) == 5
    assert np.all(start[0] == -1)
    for own, code in zip(start[1:], (3, 1, 0, 2), strict=True):
        rows = data.annotator == code
        np.testing.assert_array_equal(own[data.item[rows]], data.label[rows])
        assert np.count_nonzero(own >= 0) == rows.sum()


def test_a_chain_starts_at_the_labels_of_its_expert():
    """The start takes her for right wherever she labelled."""
    data, member = crowd_of_noise(), dawid_skene.MODEL
    gibbs = member.engine("gibbs")
    problem = jax.tree.map(jnp.asarray, gibbs.prepare(member.resolve(data)))
    keys = jax.random.split(jax.random.key(0), 200)
    right = np.stack([
        np.exp(np.einsum("cjtt->cjt", jax.vmap(lambda key, at=at: gibbs.start(key, problem, at))(keys)["confusion"]))
        .mean((0, 2)) for at in range(3)
    ])  # fmt: skip
    assert right[1, 3] > 0.85 > right[0, 3]
    assert right[2, 1] > 0.8 > right[1, 1]


@every_channel
def test_labels_of_stored_draws_are_those_of_the_parameters(name):
    """Under parameters that are given the labels are independent, with the probabilities of the loops."""
    row, tree, number = CHANNELS[name], random_tree(name), 20_000
    posterior = Draws({
        site: np.tile(own.astype("float32"), (1, number, *(1 for _ in own.shape)))
        for site, own in variables(name, tree).items()
    })  # fmt: skip
    resolved = row.module.MODEL.resolve(DATA, row.priors(2), {"dependence": 0.0})
    truth = row.module.MODEL.truth(posterior, resolved, key=jax.random.key(0), num_draws=1)
    expected = sweep_by_loops(row, tree, DATA)[0][:, 1]
    assert np.abs((np.asarray(truth.draws) == 1).mean(axis=0) - expected).max() < 5 * np.sqrt(0.25 / number)


def test_gibbs_and_cavi_name_the_same_labels_on_the_1979_data():
    data = cs.load("dawid-skene-1979")
    sampled = cs.fit("dawid-skene", data, method="gibbs")
    assert sampled.summary()["r_hat"].max() < 1.02
    assert sampled.labels()["label"].equals(cs.fit("dawid-skene", data).labels()["label"])


def test_the_sampler_of_one_coin_has_the_concentrations_that_cavi_learned():
    data = random_table(5, 80)
    cavi, gibbs = (cs.fit("one-coin", data, method=method, draws=4000, chains=2) for method in ("cavi", "gibbs"))
    a, b = cavi.posterior.hidden["prior.accuracy"][0]
    fixed = cs.fit(
        "one-coin", data, one_coin.Priors(accuracy=BetaPrior(float(a), float(b))), "gibbs", draws=4000, chains=2
    )
    tables = [summarise({"accuracy": np.asarray(fit.samples()["accuracy"], float)}) for fit in (gibbs, fixed)]
    error = np.hypot(tables[0]["mcse"], tables[1]["mcse"])
    assert (np.abs(tables[0]["mean"] - tables[1]["mean"]) / error).max() < 5
    # Those at which learning starts:
    other = cs.fit("one-coin", data, one_coin.Priors(accuracy=BetaPrior(6.0, 4.0)), "gibbs", draws=4000, chains=2)
    table = summarise({"accuracy": np.asarray(other.samples()["accuracy"], float)})
    assert (np.abs(table["mean"] - tables[1]["mean"]) / np.hypot(table["mcse"], tables[1]["mcse"])).max() > 10


def test_simulated_competence_is_found():
    data, values = mace.simulate(jax.random.key(2), num_items=1000, num_annotators=8, num_labels=4)
    fit = cs.fit("mace", data, method="gibbs", draws=300, warmup=200, dependence=0.0)
    competence = fit.posterior.competence
    assert np.abs((competence.mean(0) - values["competence"]) / competence.std(0)).max() < 5
    certainty = fit.labels()["certainty"]
    right = fit.labels()["label"].astype(int) == values["label"]
    assert abs(right.mean() - certainty.mean()) < 5 * np.sqrt(np.mean(certainty * (1 - certainty)) / 1000)
