"""Intervals that hold when the model does: ranks of what data were drawn from among the draws of the posterior.

Everything is drawn from the priors of the sampler, given the number of records; then what was drawn is as any draw of
the posterior, and its rank among these is uniform (Talts et al. 2018). Links are between any two records.
"""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats

from consilience.models.block_linkage.gibbs.problem import LinkProblem, State
from consilience.models.block_linkage.gibbs.sampler import sweep
from tests.models.class_records import draw_class_records

NUMBER, SETS, DRAWS, THINNING = 120, 60, 49, 6
VALUES = (60, 40, 20, 12, 8)
FIELD = np.repeat(np.arange(len(VALUES)), VALUES).astype(np.int32)
BEGIN = np.cumsum((0, *VALUES))
PRIOR = {
    "value_concentration": np.array(1.0), "distortion": np.tile([3.0, 37.0], (len(VALUES), 1)),
    "intensity": np.array([20.0, 0.25]), "size_share": np.array([10.0, 4.0, 1.5, 0.5]),
}  # fmt: skip
PRIOR_OF_CLASSES = PRIOR | {"distortion": np.tile([2.0, 4.0], (len(VALUES), 1)), "class_share": np.ones(3)}


def drawn_from_the_prior(generator, prior):
    """Return hyperparameters and partition, and records, given how many records there are."""
    while True:
        intensity = generator.gamma(prior["intensity"][0], 1 / prior["intensity"][1])
        size_share = generator.dirichlet(prior["size_share"])
        sizes = generator.choice(len(size_share), generator.poisson(intensity), p=size_share) + 1
        if sizes.sum() == NUMBER:
            break
    entity = generator.permutation(np.repeat(np.arange(len(sizes)), sizes))
    cluster = (entity[:, None] == entity).argmax(axis=1).astype(np.int32)
    share = np.concatenate([generator.dirichlet(np.ones(values)) for values in VALUES])
    state = State(cluster, share, generator.beta(*prior["distortion"].T), np.array(intensity), size_share)
    if "class_share" not in prior:
        return state, hit_miss_records(generator, state)
    state = state._replace(class_share=generator.dirichlet(prior["class_share"]))
    shown = -(generator.random((len(VALUES), NUMBER)) < 0.05).astype(np.int32)
    value = draw_class_records(generator, entity, shown, BEGIN, share, state.distortion, state.class_share)
    return state, value.T


def hit_miss_records(generator, state):
    value = np.empty((NUMBER, len(VALUES)), np.int32)
    for field, (begin, end) in enumerate(itertools.pairwise(BEGIN)):
        share = state.value_share[begin:end]
        true, other = begin + generator.choice(VALUES[field], (2, NUMBER), p=share)
        value[:, field] = np.where(generator.random(NUMBER) < state.distortion[field], other, true[state.cluster])
    return value


def numbers_of(state):
    number = np.sum(state.cluster == np.arange(NUMBER))
    parts = [[number], [state.intensity], state.size_share[:2], state.distortion, state.value_share[:2]]
    return np.concatenate(parts if state.class_share is None else [*parts, state.class_share])


def drawn(random, state, problem):
    """Return statistics of draws; the chain starts at what the data were drawn from, and is at home at once."""
    found = []
    for _ in range(DRAWS):
        for _ in range(THINNING):
            state = sweep(random, state, problem)
        found.append(numbers_of(state))
    return np.stack(found)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [PRIOR, PRIOR_OF_CLASSES], ids=["hit-miss", "error-classes"])
def test_ranks_are_uniform(prior):
    generator = np.random.default_rng(0)
    every = np.arange(NUMBER)
    neighbour = np.concatenate([np.delete(every, record) for record in every])
    first = (np.arange(NUMBER + 1) * (NUMBER - 1))
    ranks, covered = [], []
    with jax.enable_x64(True):
        for number in range(SETS):
            state, value = drawn_from_the_prior(generator, prior)
            problem = LinkProblem(
                value=value, field=FIELD, source=np.zeros(0, np.int32), first_neighbour=first, neighbour=neighbour,
                **prior,
            )  # fmt: skip
            true = numbers_of(state)
            draws = drawn(np.random.default_rng(number), state, problem)
            # Equal whole numbers are put in any order.
            below = (draws < true).sum(axis=0) + generator.random(len(true)) * ((draws == true).sum(axis=0) + 1)
            ranks.append(below / (DRAWS + 1))
            low, high = np.quantile(draws[:, 0], [0.025, 0.975])
            covered.append(low <= true[0] <= high)
    for column in np.array(ranks).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
    # A closed interval of whole numbers covers rather more than 95 % of the time.
    assert stats.binomtest(int(np.sum(covered)), SETS, 0.95).pvalue > 1e-4 or np.mean(covered) > 0.95
