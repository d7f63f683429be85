"""The joint-distribution test passes the Gibbs sampler of Dawid-Skene and finds any one bug planted."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.models.dawid_skene import MODEL, Priors, gibbs
from consilience.models.random import log_gamma
from tests.models.mutants import given, joint_tests, replicated

# Priors that tell classes and labels apart, so that a transposition shows.
PRIORS = Priors(
    prevalence=dist.Dirichlet(np.array([1.5, 3.0, 0.8])),
    confusion=dist.Dirichlet(np.array([[4.0, 1.0, 0.7], [0.8, 2.0, 1.2], [1.5, 0.6, 3.0]])),
)


def counts_transposed(right):
    def concentrations(responsibility, problem):
        found = right(responsibility, problem)
        counts = found.confusion - problem.confusion
        return found._replace(confusion=problem.confusion + jnp.swapaxes(counts, 1, 2))

    return concentrations


def one_key_for_all_annotators(right):
    def draw_parameters(key, given):
        log_confusion = jax.vmap(lambda c: jax.nn.log_softmax(log_gamma(key, c)))(given.confusion)
        return right(key, given)._replace(log_confusion=log_confusion)

    return draw_parameters


def with_confusion(change):
    return gibbs, "sweep", given(lambda problem: problem._replace(confusion=change(problem.confusion)))


MUTANTS = {
    "prior of confusion left out": with_confusion(lambda prior: jnp.full_like(prior, 1e-3)),
    "half the concentration": with_confusion(lambda prior: prior / 2),
    "prior transposed": with_confusion(lambda prior: jnp.swapaxes(prior, 1, 2)),
    "concentration less 0.2": (gibbs, "sweep", given(lambda problem: problem._replace(
        prevalence=problem.prevalence - 0.2, confusion=problem.confusion - 0.2
    ))),
    "annotations counted 1.05 times": (gibbs, "sweep", given(lambda problem: problem._replace(
        rows=problem.rows._replace(weight=1.05 * problem.rows.weight)
    ))),
    "counts transposed": (gibbs, "concentrations", counts_transposed),
    "prevalence left out": (
        gibbs, "log_joint", lambda right: lambda prevalence, confusion, rows: right(0 * prevalence, confusion, rows)
    ),
    "one key for all annotators": (gibbs, "draw_parameters", one_key_for_all_annotators),
    "labels of the neighbour": (
        gibbs, "draw_labels", lambda right: lambda key, log_weight: jnp.roll(right(key, log_weight), 1)
    ),
}  # fmt: skip

test_the_sampler_passes, test_a_mutant_is_found = joint_tests(replicated(MODEL, PRIORS), MUTANTS)
