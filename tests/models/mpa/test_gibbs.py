"""The Gibbs sampler of the mention-pair model against enumeration and the joint distribution, and planted bugs."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln

from consilience.data import read_mentions
from consilience.evaluation.calibration import joint_distribution_test, with_second_moments
from consilience.models.mpa import Priors, gibbs, updates
from consilience.models.mpa.candidates import candidates_of, of_decisions
from consilience.models.mpa.priors import BetaParameters, BetaPrior, beta_parameters

# ---- enumeration ----

ROWS = [
    ("m1", "a1", "DN"), ("m1", "a2", "DN"), ("m2", "a1", "DO(m1)"), ("m2", "a2", "DO(m1)"), ("m2", "a3", "DN"),
    ("m3", "a2", "DO(m2)"), ("m3", "a3", "DO(m1)"), ("m3", "a1", "DO(m2)"),
]  # fmt: skip
PRIORS = Priors(prevalence=BetaPrior(1.5, 1.0), sensitivity=BetaPrior(2.0, 1.0), specificity=BetaPrior(2.5, 1.2))


def enumerated(tables, prior):
    """Return the exact posterior means of which pairs are true and of the three sites, over all 2^5 states."""
    weights, states, means = [], [], []
    for state in itertools.product([0.0, 1.0], repeat=len(tables.pair_class)):
        found = updates.counts(jnp.array(state), tables)
        cells = [
            prior.prevalence + np.stack([found.true, found.false], -1),
            prior.sensitivity + np.stack([found.true_yes, found.true_no], -1),
            prior.specificity + np.stack([found.false_no, found.false_yes], -1),
        ]
        pairs = zip(cells, prior, strict=True)
        weights.append(sum((betaln(*np.moveaxis(cell, -1, 0)) - betaln(*p.T)).sum() for cell, p in pairs))
        states.append(state)
        means.append([c[..., 0] / c.sum(-1) for c in cells])
    weight = np.exp(np.array(weights) - np.max(weights))
    weight /= weight.sum()
    sites = [np.tensordot(weight, np.stack(site), 1) for site in zip(*means, strict=True)]
    return weight @ np.array(states), dict(zip(BetaParameters._fields, sites, strict=True))


def test_the_sampler_agrees_with_enumeration():
    names = ("mention_id", "annotator_id", "annotation")
    data = read_mentions(dict(zip(names, zip(*ROWS, strict=True), strict=True)))
    tables = candidates_of(data).tables
    parameters = beta_parameters(PRIORS, data, 4)
    exact, sites = enumerated(tables, BetaParameters(*(part[tables.classes] for part in parameters)))
    problem = gibbs.prepare(data, PRIORS)
    num_chains, warmup, kept = 500, 50, 150

    @jax.jit
    def chain(key):
        def body(number, carry):
            state, totals = carry
            state = gibbs.sweep(jax.random.fold_in(key, number), state, problem)
            values = {"correct": state.correct, **gibbs.sites(state, problem)}
            return state, jax.tree.map(lambda total, value: total + (number >= warmup) * value, totals, values)

        state = gibbs.start(jax.random.fold_in(key, 1 << 20), problem)
        nothing = jax.tree.map(jnp.zeros_like, {"correct": state.correct, **gibbs.sites(state, problem)})
        return jax.tree.map(lambda total: total / kept, jax.lax.fori_loop(0, warmup + kept, body, (state, nothing))[1])

    means = jax.vmap(chain)(jax.random.split(jax.random.key(0), num_chains))
    means = {site: np.asarray(value, float) for site, value in means.items()}
    for site in sites:
        means[site] = means[site][..., tables.classes]
    for site, expected in {"correct": exact, **sites}.items():
        error = means[site].std(0, ddof=1) / np.sqrt(num_chains)
        assert np.abs((means[site].mean(0) - expected) / error).max() < 5, site


# ---- the joint distribution ----

NUM_CHAINS, ROUNDS = 2000, 40
PAIR_CLASS = np.array([0, 0, 0, 1, 1, 1])
PAIR, ANNOTATOR = (part.ravel() for part in np.indices((6, 2)))
PARAMETERS = BetaParameters(
    np.array([[1.5, 1.0], [2.0, 3.0]]), np.array([[2.0, 1.0], [1.2, 0.8]]), np.array([[2.5, 1.2], [1.0, 1.5]])
)


def tables_of(answers):
    """Return the tables of everybody's decision on every pair; traced."""
    agrees = np.ones(len(PAIR), int)
    tables = of_decisions(PAIR_CLASS, PAIR, ANNOTATOR, agrees, num_annotators=2, num_classes=2)
    tables = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32 if leaf.dtype.kind == "f" else leaf.dtype), tables)
    yes = jax.ops.segment_sum(answers, tables.chosen_cell, 4).reshape(2, 2)
    return tables._replace(chosen_weight=answers, yes=yes, no=jnp.asarray(tables.yes) - yes)


def problem_of(answers):
    prior = BetaParameters(*(jnp.asarray(part, jnp.float32) for part in PARAMETERS))
    return gibbs.Problem(tables_of(answers), prior, jnp.full(6, 0.5))


def answer(key, state):
    """Draw everybody's decisions given which pairs are true."""
    cell = ANNOTATOR, PAIR_CLASS[PAIR]
    yes = jnp.where(
        state.correct[PAIR] == 1, jnp.exp(state.sensitivity.one[cell]), jnp.exp(state.specificity.rest[cell])
    )
    return jax.random.bernoulli(key, yes).astype(jnp.float32)


def prior_draw(key):
    keys = jax.random.split(key, 3)
    shapes = [PARAMETERS.prevalence, *(np.tile(part, (2, 1, 1)) for part in PARAMETERS[1:])]
    drawn = gibbs.draw_betas(keys[0], tuple(jnp.asarray(part, jnp.float32) for part in shapes))
    correct = jax.random.bernoulli(keys[1], jnp.exp(drawn[0].one)[PAIR_CLASS]).astype(jnp.float32)
    state = gibbs.State(correct, *drawn)
    return state, answer(keys[2], state)


def functions(state, answers):
    """Return quantities of one chain: parameters, true pairs, and the log likelihood given all else."""
    cell = ANNOTATOR, PAIR_CLASS[PAIR]
    right = jnp.where(answers == 1, state.sensitivity.one[cell], state.sensitivity.rest[cell])
    wrong = jnp.where(answers == 1, state.specificity.rest[cell], state.specificity.one[cell])
    return {
        "prevalence 0": jnp.exp(state.prevalence.one[0]), "prevalence 1": jnp.exp(state.prevalence.one[1]),
        "sensitivity 0 1": jnp.exp(state.sensitivity.one[0, 1]),
        "sensitivity 1 0": jnp.exp(state.sensitivity.one[1, 0]),
        "specificity 0 0": jnp.exp(state.specificity.one[0, 0]),
        "specificity 1 1": jnp.exp(state.specificity.one[1, 1]),
        "true pairs": state.correct.sum(),
        "log likelihood": jnp.where(state.correct[PAIR] == 1, right, wrong).sum(),
    }  # fmt: skip


START, ANSWER, VALUES = (jax.jit(jax.vmap(function)) for function in (prior_draw, answer, functions))


def split(key):
    return jax.random.split(key, NUM_CHAINS)


def joint_test(seed, sweep=gibbs.sweep):
    move = jax.jit(jax.vmap(lambda key, state, answers: sweep(key, state, problem_of(answers))))
    return joint_distribution_test(
        jax.random.key(seed),
        lambda key: START(split(key)),
        lambda key, state, answers: move(split(key), state, answers),
        lambda key, state, answers: (state, ANSWER(split(key), state)),
        lambda state, answers: with_second_moments(VALUES(state, answers)),
        rounds=ROUNDS,
    )


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_sampler_passes(seed):
    assert joint_test(seed).largest < 4.5


# ---- planted bugs ----


def with_prior(change):
    def sweep(key, state, problem):
        return gibbs.sweep(key, state, problem._replace(prior=BetaParameters(*map(change, problem.prior))))

    return sweep


def weighted_likelihood(key, state, problem):
    tables = problem.tables
    names = ("asked_weight", "chosen_weight", "yes", "no")
    heavier = tables._replace(**{name: 1.2 * getattr(tables, name) for name in names})
    return gibbs.sweep(key, state, problem._replace(tables=heavier))


def stale_counts(key, state, problem):
    """The pairs are drawn given the parameters of the sweep before."""
    new = gibbs.sweep(key, state, problem)
    odds = gibbs.log_odds_given(state.prevalence, state.sensitivity, state.specificity, problem.tables)
    correct = jax.random.bernoulli(jax.random.fold_in(key, 1), jax.nn.sigmoid(odds)).astype(odds.dtype)
    return new._replace(correct=correct)


def prevalence_left_out(key, state, problem):
    new = gibbs.sweep(key, state, problem)
    even = gibbs.LogBeta(*(jnp.full(2, -jnp.log(2.0)),) * 2)
    odds = gibbs.log_odds_given(even, new.sensitivity, new.specificity, problem.tables)
    correct = jax.random.bernoulli(jax.random.fold_in(key, 1), jax.nn.sigmoid(odds)).astype(odds.dtype)
    return new._replace(correct=correct)


def one_key(key, state, problem):
    """Sensitivities and specificities are drawn with one key."""
    new = gibbs.sweep(key, state, problem)
    found = updates.counts(state.correct, problem.tables)
    same = jax.random.fold_in(key, 2)
    profiles = []
    for prior, counts in (
        (problem.prior.sensitivity, (found.true_yes, found.true_no)),
        (problem.prior.specificity, (found.false_no, found.false_yes)),
    ):
        parameters = prior + jnp.stack(counts, axis=-1)
        profiles.append(gibbs.draw_betas(same, (parameters, parameters[:0], parameters[:0]))[0])
    odds = gibbs.log_odds_given(new.prevalence, *profiles, problem.tables)
    correct = jax.random.bernoulli(jax.random.fold_in(key, 3), jax.nn.sigmoid(odds)).astype(odds.dtype)
    return gibbs.State(correct, new.prevalence, *profiles)


def transposed(found):
    return found._replace(true_no=found.false_yes, false_yes=found.true_no)


def swapped(found):
    return found._replace(true_yes=found.true_no, true_no=found.true_yes)


def with_counts(change):
    def sweep(key, state, problem):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gibbs, "counts", lambda correct, tables: change(updates.counts(correct, tables)))
            return gibbs.sweep(key, state, problem)

    return sweep


BUGS = {
    "prior dropped": with_prior(lambda part: jnp.full_like(part, 1.0)),
    "concentration halved": with_prior(lambda part: part / 2),
    "concentration less 0.2": with_prior(lambda part: part - 0.2),
    "weighted likelihood": weighted_likelihood,
    "stale counts": stale_counts,
    "prevalence left out": prevalence_left_out,
    "one key for two profiles": one_key,
    "errors exchanged": with_counts(transposed),
    "yes for no": with_counts(swapped),
    "false pairs not counted": with_counts(lambda found: found._replace(false=jnp.zeros_like(found.false))),
}


@pytest.mark.parametrize(
    "bug", [bug if number < 2 else pytest.param(bug, marks=pytest.mark.slow) for number, bug in enumerate(BUGS)]
)
def test_a_bug_fails(bug):
    assert joint_test(0, BUGS[bug]).largest > 8
