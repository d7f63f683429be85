"""Intervals that hold with error classes: ranks of what data were drawn from among the draws of the posterior.

Everything is drawn from the priors of the sampler, given the number of records; then what was drawn is as any draw of
the posterior, and its rank among these is uniform (Talts et al. 2018). Links are between any two records.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from consilience.models.block_linkage.gibbs.error_class_records import draw_class_records
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State
from consilience.models.block_linkage.gibbs.sampler import sweep

NUMBER, SETS, DRAWS, THINNING = 120, 60, 49, 6
VALUES = (60, 40, 20, 12, 8)
FIELD = np.repeat(np.arange(len(VALUES)), VALUES).astype(np.int32)
PRIOR = {
    "value_concentration": np.array(1.0), "distortion": np.tile([2.0, 4.0], (len(VALUES), 1)),
    "intensity": np.array([20.0, 0.25]), "size_share": np.array([10.0, 4.0, 1.5, 0.5]), "class_share": np.ones(3),
}  # fmt: skip


def drawn_from_the_prior(generator):
    """Return hyperparameters and partition, and records, given how many records there are."""
    while True:
        intensity = generator.gamma(PRIOR["intensity"][0], 1 / PRIOR["intensity"][1])
        size_share = generator.dirichlet(PRIOR["size_share"])
        sizes = generator.choice(len(size_share), generator.poisson(intensity), p=size_share) + 1
        if sizes.sum() == NUMBER:
            break
    entity = generator.permutation(np.repeat(np.arange(len(sizes)), sizes))
    cluster = (entity[:, None] == entity).argmax(axis=1).astype(np.int32)
    share = np.concatenate([generator.dirichlet(np.ones(values)) for values in VALUES])
    distortion = generator.beta(*PRIOR["distortion"].T)
    class_share = generator.dirichlet(PRIOR["class_share"])
    shown = -(generator.random((len(VALUES), NUMBER)) < 0.05).astype(np.int32)
    first = np.cumsum((0, *VALUES))
    value = draw_class_records(generator, entity, shown, first, share, distortion, class_share)
    return State(cluster, share, distortion, np.array(intensity), size_share, class_share), value.T


def numbers_of(state):
    number = (state.cluster == jnp.arange(NUMBER)).sum()
    parts = [number[None], state.intensity[None], state.size_share[:2], state.distortion, state.class_share]
    return jnp.concatenate([*parts, state.value_share[:2]])


@jax.jit
def drawn(key, state, problem):
    """Return statistics of draws; the chain starts at what the data were drawn from, and is at home at once."""

    def one(state, key):
        state = jax.lax.fori_loop(
            0, THINNING, lambda step, state: sweep(jax.random.fold_in(key, step), state, problem), state
        )
        return state, numbers_of(state)

    return jax.lax.scan(one, state, jax.random.split(key, DRAWS))[1]


@pytest.mark.slow
def test_ranks_are_uniform():
    pytest.importorskip("numba")
    generator = np.random.default_rng(0)
    every = np.arange(NUMBER)
    neighbour = np.concatenate([np.delete(every, record) for record in every]).astype(np.int32)
    first = (np.arange(NUMBER + 1) * (NUMBER - 1)).astype(np.int32)
    ranks, covered = [], []
    with jax.enable_x64(True):
        for number in range(SETS):
            state, value = drawn_from_the_prior(generator)
            problem = LinkProblem(
                value=value, field=FIELD, source=every.astype(np.int32), first_neighbour=first, neighbour=neighbour,
                layout=None, form="compiled", **PRIOR,
            )  # fmt: skip
            true = np.asarray(numbers_of(jax.tree.map(jnp.asarray, state)))
            draws = np.asarray(drawn(jax.random.key(number), state, problem))
            # Equal whole numbers are put in any order.
            below = (draws < true).sum(axis=0) + generator.random(len(true)) * ((draws == true).sum(axis=0) + 1)
            ranks.append(below / (DRAWS + 1))
            low, high = np.quantile(draws[:, 0], [0.025, 0.975])
            covered.append(low <= true[0] <= high)
    for column in np.array(ranks).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
    # A closed interval of whole numbers covers rather more than 95 % of the time.
    assert stats.binomtest(int(np.sum(covered)), SETS, 0.95).pvalue > 1e-4 or np.mean(covered) > 0.95
