"""The joint-distribution test passes the Gibbs sampler of Dawid-Skene and catches it with any one bug planted.

Every chain has a data set of its own, and starts at the parameters from which its data were drawn. Sweeps of a correct
sampler leave the joint distribution as it is.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from consilience.data import Annotations
from consilience.evaluation.calibration import joint_distribution_test, with_second_moments
from consilience.models.dawid_skene import Priors, gibbs
from consilience.models.dawid_skene.layout import log_joint, prepare, with_cells
from consilience.models.dawid_skene.simulation import draw_annotations
from consilience.models.random import log_gamma

# Minutes of sampling: outside the quick suite.
pytestmark = pytest.mark.slow

NUM_CHAINS, SWEEPS, ROUNDS = 20_000, 10, 4
# Priors that tell classes and labels apart, so that a transposition shows.
PRIORS = Priors(
    prevalence=dist.Dirichlet(np.array([1.5, 3.0])), confusion=dist.Dirichlet(np.array([[4.0, 1.0], [0.8, 2.0]]))
)
ITEM, ANNOTATOR = np.indices((8, 3)).reshape(2, -1)
DATA = Annotations.from_codes(ITEM, ANNOTATOR, 0 * ITEM, num_items=8, num_annotators=3, num_labels=2)


@functools.cache
def problem():
    with jax.ensure_compile_time_eval():
        return jax.tree.map(jnp.asarray, prepare(DATA, PRIORS, gold="ignore"))


def with_labels(label):
    cell = (jnp.asarray(ANNOTATOR) * 2 + label).reshape(8, 3).T  # slot by slot
    return problem()._replace(rows=with_cells(problem().rows, cell.ravel()))


@jax.jit
def labels_of(keys, state):
    """Draw the data of every chain."""

    def one(key, state):
        return draw_annotations(key, *map(jnp.exp, state), ITEM, ANNOTATOR, DATA.num_items)[1]

    return jax.vmap(one)(keys, state)


@jax.jit
def start_states(keys):
    def one(key):
        flat = gibbs.Concentrations(problem().prevalence, problem().confusion)
        logs = jax.tree.map(
            lambda c, key: jax.nn.log_softmax(log_gamma(key, c)), flat, type(flat)(*jax.random.split(key))
        )
        return gibbs.State(*logs)

    return jax.vmap(one)(keys)


@jax.jit
def quantities(state, label):
    """Return functions of the parameters and data of a chain."""

    def one(state, label):
        rows = with_labels(label).rows
        log_likelihood = jax.nn.logsumexp(log_joint(*state, rows), axis=-1).sum()
        p, confusion = map(jnp.exp, state)
        return {
            "share": p[0], "first right": confusion[0, 0, 0], "second right": confusion[1, 0, 0],
            "first wrong": confusion[0, 1, 0], "third wrong": confusion[2, 1, 0], "log likelihood": log_likelihood,
        }  # fmt: skip

    return jax.vmap(one)(state, label)


def joint_test(seed, change=lambda problem: problem, num_chains=NUM_CHAINS):
    """Run the test on the sampler as it stands, or with another problem."""

    @jax.jit
    def sweeps(keys, state, label):
        def one(key, state, label):
            given = change(with_labels(label))
            return jax.lax.fori_loop(
                0, SWEEPS, lambda step, state: gibbs.sweep(jax.random.fold_in(key, step), state, given), state
            )

        return jax.vmap(one)(keys, state, label)

    def start(key):
        key_state, key_data = jax.random.split(key)
        state = start_states(jax.random.split(key_state, num_chains))
        return state, labels_of(jax.random.split(key_data, num_chains), state)

    def functions(state, label):
        return with_second_moments({name: np.asarray(v, float) for name, v in quantities(state, label).items()})

    return joint_distribution_test(
        jax.random.key(seed), start,
        lambda key, state, label: sweeps(jax.random.split(key, num_chains), state, label),
        lambda key, state, label: (state, labels_of(jax.random.split(key, num_chains), state)),
        functions, rounds=ROUNDS,
    )  # fmt: skip


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_sampler_passes(seed):
    assert joint_test(seed).largest < 4.5


# ---- bugs in the tables ----


def prior_of_confusion_left_out(problem):
    return problem._replace(confusion=jnp.full_like(problem.confusion, 1e-3))


def half_the_concentration(problem):
    return problem._replace(confusion=problem.confusion / 2)


def concentration_less(problem):
    return problem._replace(prevalence=problem.prevalence - 0.2, confusion=problem.confusion - 0.2)


def prior_transposed(problem):
    return problem._replace(confusion=jnp.swapaxes(problem.confusion, 1, 2))


def weighted_likelihood(problem):
    return problem._replace(rows=problem.rows._replace(weight=1.05 * problem.rows.weight))


TABLES = [prior_of_confusion_left_out, half_the_concentration, concentration_less, prior_transposed]


@pytest.mark.parametrize("bug", TABLES, ids=lambda bug: bug.__name__)
def test_a_bug_in_the_tables_fails(bug):
    assert joint_test(0, bug).largest > 8


def test_a_weighted_likelihood_fails():
    assert joint_test(0, weighted_likelihood, 3 * NUM_CHAINS).largest > 8


# ---- bugs in a function of the sampler ----


def counts_transposed(original):
    def concentrations(responsibility, problem):
        right = original(responsibility, problem)
        counts = right.confusion - problem.confusion
        return right._replace(confusion=problem.confusion + jnp.swapaxes(counts, 1, 2))

    return concentrations


def prevalence_left_out(original):
    return lambda log_prevalence, log_confusion, rows: original(0 * log_prevalence, log_confusion, rows)


def one_key_for_all_annotators(original):
    def draw_parameters(key, given):
        log_confusion = jax.vmap(lambda c: jax.nn.log_softmax(log_gamma(key, c)))(given.confusion)
        return original(key, given)._replace(log_confusion=log_confusion)

    return draw_parameters


def labels_of_the_neighbour(original):
    return lambda key, log_weight: jnp.roll(original(key, log_weight), 1)


FUNCTIONS = {
    "concentrations": counts_transposed,
    "log_joint": prevalence_left_out,
    "draw_parameters": one_key_for_all_annotators,
    "draw_labels": labels_of_the_neighbour,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_bug_in_a_function_fails(name, monkeypatch):
    monkeypatch.setattr(gibbs, name, FUNCTIONS[name](getattr(gibbs, name)))
    assert joint_test(0).largest > 8
