"""The joint-distribution test passes the Gibbs sampler of every channel and finds any one bug planted."""

import jax
import jax.numpy as jnp
import numpy as np

from consilience.models.crowd import evidence, gibbs
from consilience.models.random import log_gamma
from tests.models.crowd.channels import CHANNELS
from tests.models.mutants import given, joint_tests, replicated


def with_prior(change):
    """Sweep with other pseudo-counts."""
    return None, "sweep", given(lambda problem: problem._replace(prior=change(problem.prior)))


def with_votes(change):
    return None, "sweep", given(lambda problem: problem._replace(votes=problem.votes._replace(**change(problem.votes))))


def with_counts(change):
    """Change the outcomes of the simplices that a sweep finds."""
    return gibbs, "counted", lambda right: lambda *given, **more: change(right(*given, **more))


def with_joint(change):
    """Change the log probabilities of the labels that a sweep finds; ``change(log_joint, logs, votes)``."""

    def wrong(right):
        def joint(chosen, logs, votes):
            log_joint, said = right(chosen, logs, votes)
            return change(log_joint, logs, votes), said

        return joint

    return gibbs, "joint", wrong


def of(site, change):
    return lambda tree: {**tree, site: change(tree[site])}


def one_key_for_all_annotators(site):
    """The same luck for everybody, of one site."""

    def wrong(right):
        def draw(key, tree):
            same = jax.vmap(lambda own: jax.nn.log_softmax(log_gamma(key, own), axis=-1))(tree[site])
            return {**right(key, tree), site: same}

        return draw

    return gibbs, "draw", wrong


def all_that_is_right_was_known(right):
    """What is right by luck is counted as known."""
    return lambda key, number, share: number


ALIKE = {
    "annotations counted 1.08 times": with_votes(lambda votes: {
        "weight": 1.08 * votes.weight, "other_weight": 1.08 * votes.other_weight, "counts": 1.08 * votes.counts
    }),
    "prevalence left out": with_joint(lambda log_joint, logs, votes: log_joint - logs["prevalence"]),
    "labels of the neighbour": (
        gibbs, "draw_labels", lambda right: lambda key, log_weight: jnp.roll(right(key, log_weight), 1)
    ),
    "the most probable label is taken": (
        gibbs, "draw_labels", lambda right: lambda key, weight: weight.argmax(axis=-1)
    ),
    "evidence weighted 1.3": with_joint(lambda log_joint, logs, votes: (
        1.3 * (log_joint - logs["prevalence"]) + logs["prevalence"]
    )),
    "evidence of another label": with_joint(lambda log_joint, logs, votes: log_joint[:, np.array([0, 2, 1])]),
    "prevalence less 0.2": with_prior(of("prevalence", lambda own: own - 0.2)),
}  # fmt: skip
"""Wrong in the same way for all."""
OWN = {
    "dawid-skene": {
        "prior of confusion left out": with_prior(of("confusion", lambda own: jnp.full_like(own, 1e-3))),
        "half the concentration": with_prior(of("confusion", lambda own: own / 2)),
        "prior transposed": with_prior(of("confusion", lambda own: jnp.swapaxes(own, 1, 2))),
        "counts transposed": with_counts(of("confusion", lambda own: jnp.swapaxes(own, 1, 2))),
        "one key for all annotators": one_key_for_all_annotators("confusion"),
    },
    "mace": {
        "half the pseudo-count of guesses": with_prior(of("guess", lambda own: own / 2)),
        "prior of guesses dropped": with_prior(of("guess", lambda own: jnp.full_like(own, 1e-2))),
        "knows and guesses swapped": with_prior(of("competence", lambda own: own[..., ::-1])),
        "pseudo-count of knowing less 0.2": with_prior(of("competence", lambda own: own - jnp.array([0.2, 0.0]))),
        "luck forgotten": (jax.random, "binomial", all_that_is_right_was_known),
        "guesses counted twice": with_counts(of("guess", lambda own: 2 * own)),
        "one key for all annotators": one_key_for_all_annotators("competence"),
    },
    "one-coin": {
        "right and wrong swapped": with_counts(of("accuracy", lambda own: own[..., ::-1])),
        "prior swapped": with_prior(of("accuracy", lambda own: own[..., ::-1])),
        "half the concentration": with_prior(of("accuracy", lambda own: own / 2)),
        "one key for all annotators": one_key_for_all_annotators("accuracy"),
        "wrong labels as probable as one": (
            evidence.Lifted, "joint", lambda right: lambda self, votes, log_prevalence: right(
                self._replace(lift=self.lift - jnp.log(2.0)), votes, log_prevalence
            ),
        ),
    },
}  # fmt: skip


def battery_of(name, **sizes):
    row = CHANNELS[name]
    return joint_tests(replicated(row.module.MODEL, row.priors(), sizes=sizes), {**ALIKE, **OWN[name]})


test_the_sampler_of_dawid_skene_passes, test_a_mutant_of_dawid_skene_is_found = battery_of("dawid-skene")
# Two annotations of an item leave its label open, so that how they are weighed shows.
test_the_sampler_of_mace_passes, test_a_mutant_of_mace_is_found = battery_of("mace", annotations_per_item=2)
test_the_sampler_of_one_coin_passes, test_a_mutant_of_one_coin_is_found = battery_of("one-coin", annotations_per_item=2)
