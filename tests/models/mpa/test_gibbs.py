"""The Gibbs sampler of the mention-pair model against enumeration and the joint distribution, and planted bugs."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import betaln

from consilience.models.mpa import MODEL, Priors, gibbs, updates
from consilience.models.mpa.candidates import candidates_of
from consilience.models.mpa.priors import BetaParameters, BetaPrior, beta_parameters
from consilience.replications import Chain
from tests.models.mpa.mentions import mentions_of, of_decisions
from tests.models.mutants import Case, given, joint_tests

pytestmark = pytest.mark.usefixtures("exact_sizes")

# ---- enumeration ----

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
    data = mentions_of()
    tables = candidates_of(data).tables
    resolved = MODEL.resolve(data, PRIORS)
    parameters = beta_parameters(resolved)
    exact, sites = enumerated(tables, BetaParameters(*(part[tables.classes] for part in parameters)))
    problem = gibbs.prepare(resolved)
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
    return gibbs.Problem(tables_of(answers), prior, jnp.full(6, 0.5), jnp.asarray(2))


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


@jax.jit
@jax.vmap
def start(key):
    state, answers = prior_draw(key)
    return Chain(state, problem_of(answers))


@jax.jit
@jax.vmap
def redraw(key, chain):
    return chain._replace(problem=problem_of(answer(key, chain.state)))


CASE = Case(
    start=lambda key: start(jax.random.split(key, NUM_CHAINS)),
    redraw=lambda key, chains: redraw(jax.random.split(key, NUM_CHAINS), chains),
    quantities=jax.jit(jax.vmap(lambda chain: functions(chain.state, chain.problem.tables.chosen_weight))),
    sweep=gibbs.sweep, num_chains=NUM_CHAINS, sweeps=1, rounds=ROUNDS,
)  # fmt: skip


# ---- planted bugs ----


def with_prior(change):
    return gibbs, "sweep", given(lambda problem: problem._replace(prior=BetaParameters(*map(change, problem.prior))))


def heavier(problem):
    names = ("asked_weight", "chosen_weight", "yes", "no")
    weights = {name: 1.2 * getattr(problem.tables, name) for name in names}
    return problem._replace(tables=problem.tables._replace(**weights))


def pairs_given(choose):
    """Draw the pairs once more, after ``choose(key, before, after, problem)`` -> what is kept, what they are given."""

    def wrong(right):
        def sweep(key, state, problem):
            kept, parameters = choose(jax.random.fold_in(key, 2), state, right(key, state, problem), problem)
            odds = gibbs.log_odds_given(*parameters, problem.tables)
            correct = jax.random.bernoulli(jax.random.fold_in(key, 1), jax.nn.sigmoid(odds)).astype(odds.dtype)
            return gibbs.State(correct, *kept)

        return sweep

    return gibbs, "sweep", wrong


def without_prevalence(key, before, after, problem):
    return after[1:], (gibbs.LogBeta(*(jnp.full(2, -jnp.log(2.0)),) * 2), *after[2:])


def one_key(key, before, after, problem):
    """Sensitivities and specificities are drawn with one key."""
    found = updates.counts(before.correct, problem.tables)
    profiles = []
    for prior, counts in (
        (problem.prior.sensitivity, (found.true_yes, found.true_no)),
        (problem.prior.specificity, (found.false_no, found.false_yes)),
    ):
        parameters = prior + jnp.stack(counts, axis=-1)
        profiles.append(gibbs.draw_betas(key, (parameters, parameters[:0], parameters[:0]))[0])
    return (after.prevalence, *profiles), (after.prevalence, *profiles)


def with_counts(change):
    return gibbs, "counts", lambda right: lambda correct, tables: change(right(correct, tables))


MUTANTS = {
    "prior dropped": with_prior(lambda part: jnp.full_like(part, 1.0)),
    "concentration halved": with_prior(lambda part: part / 2),
    "concentration less 0.2": with_prior(lambda part: part - 0.2),
    "weighted likelihood": (gibbs, "sweep", given(heavier)),
    "stale counts": pairs_given(lambda key, before, after, problem: (after[1:], before[1:])),
    "prevalence left out": pairs_given(without_prevalence),
    "one key for two profiles": pairs_given(one_key),
    "errors exchanged": with_counts(lambda found: found._replace(true_no=found.false_yes, false_yes=found.true_no)),
    "yes for no": with_counts(lambda found: found._replace(true_yes=found.true_no, true_no=found.true_yes)),
    "false pairs not counted": with_counts(lambda found: found._replace(false=jnp.zeros_like(found.false))),
}

test_the_sampler_passes, test_a_mutant_is_found = joint_tests(lambda: CASE, MUTANTS, quick=2)
