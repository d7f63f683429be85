"""The sampler of clusterings in views against the posterior by brute force: all clusters and views of four items."""

import dataclasses
import itertools
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy.special import betaln, gammaln

import consilience as cs
from consilience.errors import InvalidPrior, NotConjugate, UnsupportedRequest
from consilience.models.expert_views import MODEL, gibbs, loops
from consilience.models.expert_views.likelihood import Answering, accuracies, own_view
from consilience.models.expert_views.priors import PAPER_PRIORS, Priors
from consilience.models.expert_views.simulation import constraints_of
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
)

STATES = np.array(list(itertools.product(range(2), repeat=4)))  # all clusterings of a view
SAME = STATES[:, PAIRS[:, 0]] == STATES[:, PAIRS[:, 1]]
HALVES = [(*row[:3], answer, order) for row, answer, order in zip(
    ANSWERS, (1, 1, 0, 0, 1, 1, 1, 0, 0), (0, 1, 0, 1, 1, 0, 0, 1, 1), strict=True
)]  # fmt: skip
BY_QUESTION = [(row[0] if place < 3 else row[0] + 1, *row[1:]) for place, row in enumerate(ANSWERS)]


def answered(answers, grades=(), **kind):
    """Return the worked example with other answers: grades, some that say nothing, or pairs shown in two ways."""
    columns = [np.array(column) for column in zip(*answers, strict=True)]
    columns[3] = np.array(grades or columns[3])
    kind |= {"order": columns[4]} if len(columns) > 4 else {}
    return constraints_of(*columns[:4], FEATURE, int(columns[0].max()) + 1, **kind)


LINKS = {
    "two answers": DATA,
    "grades": answered(ANSWERS, (2, 2, 0, 1, 1, 2, 1, 0, 0), num_grades=3, num_blanks=0),
    "don't know": answered(ANSWERS, (1, 2, 0, 0, 2, 1, 1, 0, 2), num_grades=2, num_blanks=1),
    "orders": answered(HALVES),
    "grades by order": answered(HALVES, (2, 3, 0, 1, 1, 2, 1, 0, 3), num_grades=3, num_blanks=1),
    "questions": answered(BY_QUESTION),
}


def prepare(priors, data=DATA, **settings):
    return gibbs.prepare(MODEL.resolve(data, priors, settings))


def log_beta(cells):
    return gammaln(cells).sum(axis=-1) - gammaln(cells.sum(axis=-1))


def posteriors(data=DATA, experts="two-coin", exponent=1.0):
    """Return prior and posterior parameters of each expert's rows in every state, ``(expert, state, row, answer)``.

    Rows are of pairs that are apart, then together, of the first way of showing, then of the second; answers go from
    the one that fits least to the one that fits best, and one that says nothing comes last.
    """
    known, number = data.num_grades or 2, data.num_answers
    found = np.zeros((data.num_experts, 16, 2 * data.num_orders, number))
    order = np.zeros(data.num_constraints, int) if data.order is None else data.order
    for expert, a, b, answer, way in zip(data.expert, data.item_a, data.item_b, data.together, order, strict=True):
        same = STATES[:, a] == STATES[:, b]
        found[expert, same, 2 * way + 1, answer] += 1
        found[expert, ~same, 2 * way, known - 1 - answer if answer < known else answer] += 1
    if experts == "symmetric":
        found = found.reshape(data.num_experts, 16, -1, 2, number).sum(axis=3)
    prior = np.array([1.0, 10.0])
    if number > 2:
        share = np.linspace(1, 2, known)
        prior = np.append(4.5 * share / share.sum(), [0.5] * (number - known))
    return prior, exponent * found + prior


def brute_force(log_prior, data=DATA, experts="two-coin", exponent=1.0):
    """Return the exact posterior, from the log prior probability of the states of each view ``(view, state)``."""
    prior, parameters = posteriors(data, experts, exponent)
    evidence = (log_beta(parameters) - log_beta(prior)).sum(axis=-1)
    number = data.num_experts
    choices = np.array(list(itertools.product(range(2), repeat=number)))
    size = (choices == 0).sum(axis=1)
    log_views = betaln(1 + size, 1 + number - size)
    joint = np.stack([
        evidence[views == 0].sum(axis=0)[:, None] + evidence[views == 1].sum(axis=0) + log_prior[0][:, None]
        + log_prior[1] + log_view for views, log_view in zip(choices, log_views, strict=True)
    ])  # fmt: skip
    weight = np.exp(joint - joint.max())
    total = joint.max() + np.log(weight.sum())
    weight /= weight.sum()
    # Of each expert: how probable each state is in the view that is his.
    of_expert = [
        np.sum([w.sum(axis=1 - view) for w, view in zip(weight, choices[:, expert], strict=True)], axis=0)
        for expert in range(number)
    ]
    known = parameters[..., : data.num_grades or 2]
    mean = (known * np.linspace(0, 1, known.shape[-1])).sum(axis=-1) / known.sum(axis=-1)
    mean = np.array([own @ mean[expert] for expert, own in enumerate(of_expert)])  # (expert, row)
    mean = np.repeat(mean, 2, axis=1) if experts == "symmetric" else mean
    return SimpleNamespace(
        evidence=evidence, log_choice=joint.max() + np.log(np.exp(joint - joint.max()).sum(axis=(1, 2))), total=total,
        same_view=weight[choices[:, 0] == choices[:, 1]].sum(), together=np.stack([own @ SAME for own in of_expert]),
        specificity=mean[:, 0], sensitivity=mean[:, 1], specificity_swapped=mean[:, -2],
        sensitivity_swapped=mean[:, -1],
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
    problem, counts = prepare(PAPER_PRIORS, **OPTIONS), np.zeros((1, 2, 16, 2))
    judged = problem.judged
    answers = judged.answer_expert, judged.answer_pair, judged.said
    loops.count_together(STATES[None].astype(np.int8), judged.first, judged.second, *answers, counts)
    evidence = gibbs.log_beta(gibbs._conditional(counts, 1.0, problem)[0]).sum(axis=2) - 2 * betaln(10, 1)
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


def chain_means(priors, data, experts, exponent=1.0, num_chains=400, warmup=40, kept=120):
    """Return the means of label-free quantities along chains, ``(chain, …)``: rungs of one exponent that never swap."""
    problem, random = prepare(priors, data, **OPTIONS, experts=experts), np.random.default_rng(0)
    state, rung = gibbs.prior_state(random, problem, np.full(num_chains, exponent)), np.arange(num_chains)
    total = {}
    for number in range(warmup + kept):
        state = gibbs.moved(random, state, problem)
        if number < warmup:
            continue
        view = state.view_of_expert
        own = state.cluster[rung[:, None], view]  # (chain, expert, item)
        answers = gibbs._answering(state.experts, problem)
        own_rows = Answering(*(own_view(part, view)[:, :, None] for part in answers))
        found = {
            "together": own[..., PAIRS[:, 0]] == own[..., PAIRS[:, 1]], "same_view": view[:, 0] == view[:, 1],
            **{site: values[:, :, 0] for site, values in accuracies(own_rows, data.scale).items()},
        }  # fmt: skip
        total = {site: total.get(site, 0.0) + values / kept for site, values in found.items()}
    return total


CASES = [
    pytest.param(PAPER_PRIORS, "two answers", "two-coin", integrated, 1.0, id="two-coin"),
    pytest.param(PAPER_PRIORS, "two answers", "two-coin", integrated, 0.0, id="none"),
    pytest.param(PAPER_PRIORS, "two answers", "symmetric", integrated, 0.5, id="symmetric"),
    pytest.param(PAPER_PRIORS, "two answers", "per-view", integrated, 0.5, id="per-view"),
    *(pytest.param(PAPER_PRIORS, link, "two-coin", integrated, 1.0, id=link) for link in [*LINKS][1:]),
    pytest.param(PAPER_PRIORS, "grades by order", "symmetric", integrated, 0.5, id="symmetric grades"),
    pytest.param(PAPER_PRIORS, "grades", "per-view", integrated, 1.0, id="grades by view"),
    pytest.param(
        OWN_PRIORS, "two answers", "two-coin", integrated_own, 1.0, id="a link of one's own", marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize(("priors", "link", "experts", "log_prior", "exponent"), CASES)
def test_the_sampler_agrees_with_brute_force(priors, link, experts, log_prior, exponent):
    exact = brute_force(log_prior(), LINKS[link], experts, exponent)
    means = chain_means(priors, LINKS[link], experts, exponent, num_chains=300)
    assert ("sensitivity_swapped" in means) == ("order" in link)
    for site, values in means.items():
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        assert np.abs((values.mean(axis=0) - getattr(exact, site)) / error).max() < 4.5, site


@pytest.mark.slow
def test_a_ladder_gives_the_posterior_and_the_evidence():
    """Two ladders of twelve rungs: figures within four standard errors, log evidence within .15."""
    fit = cs.fit("expert-views", DATA, PAPER_PRIORS, rungs=12, draws=1200, progress=False, **OPTIONS)
    table = fit.evidence()
    assert table["clusters"].tolist() == [2]
    assert abs(table["log_evidence"][0] - LOG_EVIDENCE) < 0.15
    assert table["standard_error"][0] < 0.1
    for name, exact, draws in (
        ("same view", SAME_VIEW, fit.posterior.chains["view_of_expert"][..., 0] == fit.posterior.chains[
            "view_of_expert"][..., 1]),
        ("sensitivity", SENSITIVITY, fit.posterior.chains["sensitivity"]),
    ):  # fmt: skip
        batch = draws.reshape(2, 30, 40, -1).mean(axis=2).reshape(60, -1)
        error = batch.std(axis=0, ddof=1) / 60**0.5
        assert (np.abs(batch.mean(axis=0) - exact) < 4 * error).all(), name
    ladder = fit.ladder()
    assert ladder["rung"].tolist() == [*range(12)] * 2
    assert ladder.query("rung < 11")["swap_rate"].min() > 0.5
    assert (fit.posterior.ladder_trips > 10).all()


@pytest.mark.filterwarnings("ignore:the runs of the sampler differ", "ignore:few effective draws")
def test_a_ladder_is_adapted_before_the_first_draw_and_one_rung_is_no_ladder():
    problem, random = prepare(PAPER_PRIORS, **OPTIONS), np.random.default_rng(0)
    state = gibbs.start(random, problem, 1)
    for done in range(1, 101):
        state = gibbs.warmed(gibbs.sweep(random, state, problem), problem, done, 100)
        assert state.sweeps == (done % 20 if done < 100 else 0)
    assert not np.allclose(state.exponent, problem.exponent)
    fit = cs.fit("expert-views", DATA, PAPER_PRIORS, rungs=1, ladders=3, draws=20, warmup=5, progress=False, **OPTIONS)
    assert fit.posterior.chains["cluster"].shape == (3, 20, 2, 4)
    assert len(fit.evidence()) == 0


@pytest.mark.filterwarnings("ignore:the runs of the sampler differ", "ignore:few effective draws")
def test_numbers_of_clusters_are_compared_and_no_checkpoint_is_kept(tmp_path):
    folder = tmp_path / "checkpoint"
    options = {**OPTIONS, "clusters": "auto", "draws": 20, "warmup": 5, "progress": False}
    fit = cs.fit("expert-views", DATA, PAPER_PRIORS, checkpoint=folder, **options)
    table = fit.evidence()
    assert table["clusters"].tolist() == list(range(2, 2 + len(table)))
    assert len(table) > 1
    assert not folder.exists()
    taken = table["clusters"].tolist().index(fit.options["clusters"])
    assert fit.describe()["given_clusters"] == "auto"
    for place, clusters in enumerate(table["clusters"]):  # the same fits by themselves, pair by pair
        other = cs.fit("expert-views", DATA, PAPER_PRIORS, **{**options, "clusters": int(clusters)})
        labels = [[truth.consensus(int(probability.argmax())) for probability in truth.view_probability]
                  for truth in (fit.truth, other.truth)]  # fmt: skip
        same = np.array([[[label[a] == label[b] for a, b in itertools.combinations(range(4), 2)] for label in own]
                         for own in labels])  # fmt: skip
        assert table["pairs_apart"][place] == pytest.approx((same[0] != same[1]).mean())
    assert table["pairs_apart"][taken] == 0


def test_swaps_exchange_whole_states():
    problem, random = prepare(PAPER_PRIORS, **OPTIONS), np.random.default_rng(1)
    state = gibbs.prior_state(random, problem, np.linspace(1, 0, 5))
    order = np.array([3, 0, 1, 4, 2])
    moved = state.on(order)
    np.testing.assert_array_equal(moved.exponent, state.exponent)
    again = gibbs.counted(moved, problem)
    np.testing.assert_allclose(again.log_likelihood, state.log_likelihood[order])
    np.testing.assert_array_equal(moved.replica, order)
    np.testing.assert_array_equal(moved.weight, state.weight[order])
    np.testing.assert_array_equal(moved.stick, state.stick[order])


@pytest.mark.parametrize(
    ("experts", "priors", "views", "event"),
    [("two-coin", OWN_PRIORS, 1, ()), ("symmetric", OWN_PRIORS, 2, ()), ("per-view", PAPER_PRIORS, 2, (3, 2)),
     ("spammer", Priors(), 1, (3, 2))],
)  # fmt: skip
def test_sites_have_their_shapes_and_types(experts, priors, views, event):
    problem, random = prepare(priors, clusters=2, views=views, experts=experts), np.random.default_rng(0)
    state = gibbs.sweep(random, gibbs.start(random, problem), problem)
    found = {name: (values.shape, values.dtype.kind) for name, values in gibbs.sites(state, problem).items()}
    of_expert = (2, views) if experts == "per-view" else (2,)
    expected = {site: (of_expert, "f") for site in ("sensitivity", "specificity", *problem.table.sites)}
    expected |= {"view_of_expert": ((2,), "i"), "weight": ((views, *event), "f"), "cluster": ((views, 4), "i")}
    expected |= {"log_likelihood": ((), "f"), gibbs.LADDER: ((32, 4), "f")}
    assert found == expected | ({"stick": ((1,), "f")} if views == 2 else {})


def test_what_the_sampler_does_not_take():
    with pytest.raises(UnsupportedRequest, match="127"):
        prepare(PAPER_PRIORS, clusters=128)
    with pytest.raises(UnsupportedRequest, match="clusters is 5, and experts judged 4 items; give 4 clusters"):
        prepare(PAPER_PRIORS, clusters=5)
    assert prepare(PAPER_PRIORS, clusters=4).link.shape == (4, 3)
    with pytest.raises(NotConjugate, match="'sensitivity': the updates need a Beta prior, not Uniform"):
        prepare(Priors(sensitivity=dist.Uniform(0.5, 1)), **OPTIONS)
