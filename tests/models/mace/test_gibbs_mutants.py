"""The joint-distribution test passes the Gibbs sampler of MACE and catches it with any one bug planted.

Annotators of different blocks share no item, and nothing else: every block of a data set is a chain of its own, which
starts at its true skills.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from consilience.data import Annotations
from consilience.evaluation.calibration import joint_distribution_test, with_second_moments
from consilience.models.mace import MODEL, KnowsGuesses, Priors, gibbs, simulation
from consilience.models.mace.skills import guesses

# Minutes of sampling: outside the quick suite.
pytestmark = pytest.mark.slow

BLOCKS, ITEMS, ANNOTATORS, LABELS = 20_000, 6, 3, 3
ROUNDS, SWEEPS = 12, 3
PRIORS = Priors(competence=KnowsGuesses(2.0, 1.0), guess=lambda data: dist.Dirichlet(jnp.array([1.5, 1.0, 0.7])))
OPTIONS = {"gold": "ignore", "candidates": "closed"}

# In every block, who annotates which item: some have two annotations, some three.
WITHIN = [
    (0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 2), (3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (5, 0), (5, 2),
]  # fmt: skip


def annotate(key, values):
    """Draw labels and annotations of all blocks given their skills."""
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    block, (item, annotator) = np.arange(BLOCKS)[:, None], np.array(WITHIN).T
    item, annotator = (block * ITEMS + item).ravel(), (block * ANNOTATORS + annotator).ravel()
    true = random.integers(0, LABELS, BLOCKS * ITEMS)
    guessed = guesses(random, np.asarray(values["guess"], float), annotator)
    label = np.where(random.random(len(item)) < values["competence"][annotator], true[item], guessed)
    return Annotations.from_codes(
        item, annotator, label, num_items=BLOCKS * ITEMS, num_annotators=BLOCKS * ANNOTATORS, num_labels=LABELS
    )


def true_skills(key):
    _, values = simulation.simulate(key, PRIORS, num_items=2, num_annotators=BLOCKS * ANNOTATORS, num_labels=LABELS)
    return values


log_likelihood = jax.jit(MODEL.log_likelihood)


def skills(state):
    return {"competence": jnp.exp(state.log_knows), "guess": jnp.exp(state.log_guess)}


def functions(state, data):
    """Return functions of each block's skills and annotations."""
    competence, guess = (np.asarray(values, float) for values in skills(state).values())
    by_item = np.asarray(log_likelihood(skills(state), data), float)
    competence, guess = competence.reshape(BLOCKS, -1), guess.reshape(BLOCKS, ANNOTATORS, LABELS)
    given = np.bincount(data.annotator // ANNOTATORS, data.label == 0, BLOCKS)
    return with_second_moments(
        {
            "competence 0": competence[:, 0], "competence 1": competence[:, 1], "guess 00": guess[:, 0, 0],
            "guess 11": guess[:, 1, 1], "guess 22": guess[:, 2, 2], "given 0": given,
            "log likelihood": by_item.reshape(BLOCKS, ITEMS).sum(axis=1),
        }
    )  # fmt: skip


def sweeper():
    @jax.jit
    def sweeps(key, state, problem):
        return jax.lax.fori_loop(
            0, SWEEPS, lambda number, state: gibbs.sweep(jax.random.fold_in(key, number), state, problem), state
        )

    return sweeps


right_sweeps = sweeper()


def joint_test(seed, change=lambda problem: problem, sweeps=right_sweeps):
    """Run the test with another problem, or another sweep."""

    def prepared(data):
        return change(gibbs.prepare(data, PRIORS, **OPTIONS))

    def start(key):
        values = true_skills(jax.random.fold_in(key, 0))
        data = annotate(jax.random.fold_in(key, 1), values)
        return gibbs.state_at(values, data, prepared(data)), data

    def resimulate(key, state, data):
        return state, annotate(key, {site: np.asarray(value) for site, value in skills(state).items()})

    return joint_distribution_test(
        jax.random.key(seed), start, lambda key, state, data: sweeps(key, state, prepared(data)), resimulate, functions,
        rounds=ROUNDS,
    )  # fmt: skip


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_sampler_passes(seed):
    found = joint_test(seed)
    assert found.largest < 4.5
    assert len(found.functions) == 35


# ---- bugs in what is prepared ----


def with_prior(problem, **changed):
    return problem._replace(prior=problem.prior._replace(**changed))


CHANGES = {
    "half the pseudo-count of guesses": lambda p: with_prior(p, guess=p.prior.guess / 2),
    "prior of guesses dropped": lambda p: with_prior(p, guess=np.full_like(p.prior.guess, 1e-2)),
    "knows and guesses swapped": lambda p: with_prior(p, knows=p.prior.guesses, guesses=p.prior.knows),
    "pseudo-count of knowing less 0.2": lambda p: with_prior(p, knows=p.prior.knows - 0.2),
    "annotations counted 1.05 times": lambda p: p._replace(tables=p.tables._replace(counts=1.05 * p.tables.counts)),
    "a label ruled out": lambda p: p._replace(
        tables=p.tables._replace(log_prior=p.tables.log_prior.at[:, 2].add(-1.0))
    ),
}


@pytest.mark.parametrize("bug", CHANGES)
def test_a_bug_in_the_problem_fails(bug):
    assert joint_test(0, CHANGES[bug]).largest > 8


# ---- bugs in a function of the sampler ----


def most_probable_labels(original):
    return lambda key, weights, tables: jnp.argmax(tables.log_prior + gibbs.label_evidence(weights, tables), axis=1)


def weighted_evidence(original):
    return lambda weights, tables: 1.3 * original(weights, tables)


def transposed_labels(original):
    """Label 1 is taken for label 2 and the other way round where labels are drawn."""
    return lambda weights, tables: original(weights, tables)[:, jnp.array([0, 2, 1])]


def luck_forgotten(original):
    """Every annotation that is right counts as known."""
    return lambda weights: jnp.ones_like(original(weights))


def guesses_of_all(original):
    """The guesses are counted with the annotations that were known among them."""

    def draw(key, known, problem):
        more = original(key, jnp.zeros_like(known), problem)
        return original(key, known, problem)._replace(log_guess=more.log_guess)

    return draw


def one_key_for_two_annotators(original):
    """Annotator 1 of each block has the luck of annotator 0: one key was used twice."""

    def draw(key, competence, guess):
        log_share, log_guess = original(key, competence, guess)
        uniform = jax.scipy.special.betainc(*competence[:, 0::3], jnp.exp(log_share[0, 0::3]))
        share = jnp.clip(_beta_quantile(competence[:, 1::3], uniform), 1e-6, 1 - 1e-6)
        return log_share.at[:, 1::3].set(jnp.log(jnp.stack([share, 1 - share]))), log_guess

    return draw


def _beta_quantile(shape, level):
    """Invert the distribution function of Beta variables by bisection."""

    def halve(_, bounds):
        lower, upper = bounds
        middle = (lower + upper) / 2
        below = jax.scipy.special.betainc(*shape, middle) < level
        return jnp.where(below, middle, lower), jnp.where(below, upper, middle)

    return sum(jax.lax.fori_loop(0, 20, halve, (jnp.zeros_like(level), jnp.ones_like(level)))) / 2


# What is replaced, and the function that makes the wrong one of the right one.
FUNCTIONS = {
    "the most probable label is taken": ("_draw_labels", most_probable_labels),
    "luck forgotten": ("known_share", luck_forgotten),
    "evidence for labels weighted 1.3": ("label_evidence", weighted_evidence),
    "labels transposed": ("label_evidence", transposed_labels),
    "known annotations among the guesses": ("_draw_skills", guesses_of_all),
    "a key used twice": ("draw_log_skills", one_key_for_two_annotators),
}

# Each has to be compiled anew, so that a quick run tries the first of them only.
BUGS = [bug if number < 2 else pytest.param(bug, marks=pytest.mark.slow) for number, bug in enumerate(FUNCTIONS)]


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_a_function_fails(bug, monkeypatch):
    name, mutate = FUNCTIONS[bug]
    monkeypatch.setattr(gibbs, name, mutate(getattr(gibbs, name)))
    assert joint_test(0, sweeps=sweeper()).largest > 8
