"""The joint-distribution test passes the Gibbs sampler of MACE and finds any one bug planted."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.models.mace import MODEL, KnowsGuesses, Priors, gibbs
from tests.models.mutants import given, joint_tests, replicated

PRIORS = Priors(competence=KnowsGuesses(2.0, 1.0), guess=lambda data: dist.Dirichlet(jnp.array([1.5, 1.0, 0.7])))


def with_changed(part, change):
    """Sweep with other pseudo-counts, or other tables."""

    def changed(problem):
        own = getattr(problem, part)
        return problem._replace(**{part: own._replace(**change(own))})

    return gibbs, "sweep", given(changed)


def guesses_of_all(right):
    """The guesses are counted with the annotations that were known among them."""

    def draw(key, known, problem):
        more = right(key, jnp.zeros_like(known), problem)
        return right(key, known, problem)._replace(log_guess=more.log_guess)

    return draw


def one_key_for_two_annotators(right):
    """The last annotator has the luck of the first: one key was used twice, of two who are looked at."""

    def draw(key, competence, guess):
        log_share, log_guess = right(key, competence, guess)
        uniform = jax.scipy.special.betainc(*competence[:, 0], jnp.exp(log_share[0, 0]))
        share = jnp.clip(_beta_quantile(competence[:, -1], uniform), 1e-6, 1 - 1e-6)
        return log_share.at[:, -1].set(jnp.log(jnp.stack([share, 1 - share]))), log_guess

    return draw


def _beta_quantile(shape, level):
    """Invert the distribution function of Beta variables by bisection."""

    def halve(_, bounds):
        lower, upper = bounds
        middle = (lower + upper) / 2
        below = jax.scipy.special.betainc(*shape, middle) < level
        return jnp.where(below, middle, lower), jnp.where(below, upper, middle)

    return sum(jax.lax.fori_loop(0, 20, halve, (jnp.zeros_like(level), jnp.ones_like(level)))) / 2


MUTANTS = {
    "half the pseudo-count of guesses": with_changed("prior", lambda prior: {"guess": prior.guess / 2}),
    "prior of guesses dropped": with_changed("prior", lambda prior: {"guess": jnp.full_like(prior.guess, 1e-2)}),
    "knows and guesses swapped": with_changed("prior", lambda prior: {"knows": prior.guesses, "guesses": prior.knows}),
    "pseudo-count of knowing less 0.2": with_changed("prior", lambda prior: {"knows": prior.knows - 0.2}),
    "annotations counted 1.05 times": with_changed("tables", lambda tables: {"counts": 1.05 * tables.counts}),
    "a label ruled out": with_changed("tables", lambda tables: {"log_prior": tables.log_prior.at[:, 2].add(-1.0)}),
    "the most probable label is taken": (
        gibbs, "_draw_labels", lambda right: lambda key, weights, tables: jnp.argmax(
            tables.log_prior + gibbs.label_evidence(weights, tables), axis=1
        ),
    ),
    "luck forgotten": (gibbs, "known_share", lambda right: lambda weights: jnp.ones_like(right(weights))),
    "evidence for labels weighted 1.3": (
        gibbs, "label_evidence", lambda right: lambda weights, tables: 1.3 * right(weights, tables)
    ),
    "labels transposed": (
        gibbs, "label_evidence",
        lambda right: lambda weights, tables: right(weights, tables)[:, np.array([0, 2, 1])],
    ),
    "known annotations among the guesses": (gibbs, "_draw_skills", guesses_of_all),
    "a key used twice": (gibbs, "draw_log_skills", one_key_for_two_annotators),
}  # fmt: skip

# Two annotations of an item leave its label open, so that how they are weighed shows.
CASE = replicated(MODEL, PRIORS, sizes={"annotations_per_item": 2}, sweeps=3, rounds=12)
test_the_sampler_passes, test_a_mutant_is_found = joint_tests(CASE, MUTANTS)
