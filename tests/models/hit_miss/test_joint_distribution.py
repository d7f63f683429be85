"""The joint-distribution test (Geweke 2004) passes the whole sampler, and catches it with any one bug planted.

Every chain has six records of its own, from parameters and a partition that are drawn from their priors; partitions are
listed one by one, by nothing that the sampler uses. Numbers of entities and their sizes are drawn given that there are
six records, as the sampler has it, and given that the partition is one of those that it may draw.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.evaluation.calibration import joint_distribution_test, with_second_moments
from consilience.models.hit_miss import MODEL, gibbs, split_merge
from consilience.models.hit_miss.gibbs import GIBBS
from consilience.models.hit_miss.priors import Priors

pytestmark = pytest.mark.usefixtures("double_precision")

NUM_CHAINS, SWEEPS, ROUNDS = 1000, 2, 5
PARTS = ((0, 1, 2), (3, 4))
PRIORS = Priors(value_share=1.5)


def template(tiny, prior, moves, components):
    made = tiny(prior, components)
    largest = len(made.state.size_share)
    own = gibbs.hyperpriors(MODEL.resolve(made.data, PRIORS, {"prior": prior, "largest": largest}))
    parts = [jnp.asarray(one) for one in (PRIORS.value_share, own.distortion, own.intensity, own.size_share)]
    problem = gibbs.Problem(made.data, *parts, prior=prior, moves=moves)
    return jax.tree.map(jnp.asarray, problem), made.partitions


def sizes_at_the_prior(key, problem, partitions, num_chains):
    """Return m and μ of each chain, drawn given that there are six records, in one of the partitions."""
    if problem.prior != "entities":
        return {}
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    shape, rate = np.asarray(problem.intensity)
    intensity = random.gamma(shape, 1 / rate, 200 * num_chains)
    size_share = random.dirichlet(np.asarray(problem.size_share), len(intensity))
    probability = np.zeros(len(intensity))
    for cluster in partitions:
        sizes = np.bincount(cluster)[np.unique(cluster)]
        of_sizes = [math.factorial(size) * intensity * size_share[:, size - 1] for size in sizes]
        probability += np.prod(of_sizes, axis=0) * np.exp(-intensity) / math.factorial(len(cluster))
    taken = np.flatnonzero(random.random(len(intensity)) < probability)[:num_chains]
    assert len(taken) == num_chains
    return {"size_share": jnp.asarray(size_share[taken]), "intensity": jnp.asarray(intensity[taken])}


def at_the_prior(key, sizes, problem):
    """Return a chain at draws of the priors, with records of its own."""
    key_share, key_distortion, key_data = jax.random.split(key, 3)
    weight = jax.random.gamma(key_share, problem.value_concentration, problem.data.field.shape)
    total = jax.ops.segment_sum(weight, problem.data.field, problem.data.num_fields)[problem.data.field]
    values = {"value_share": weight / total, "distortion": jax.random.beta(key_distortion, *problem.distortion.T)}
    return GIBBS.redraw(key_data, GIBBS.at(values | sizes, MODEL.resolve(problem.data), problem), problem)


def quantities(state, problem):
    cluster = state.cluster
    return {
        "b 0": state.distortion[0], "b 2": state.distortion[2], "theta 0": state.value_share[0],
        "theta 6": state.value_share[6], "links": (cluster != jnp.arange(6)).sum(),
        "together": cluster[0] == cluster[1], "one of two": cluster[3] == cluster[4], "third": cluster[2] == 0,
        "log likelihood": GIBBS.log_likelihood(state, problem),
        "m": state.intensity, "mu": state.size_share[0],
    }  # fmt: skip


def joint_test(problem, partitions, seed=0, num_chains=NUM_CHAINS):
    start = jax.jit(jax.vmap(lambda key, sizes: at_the_prior(key, sizes, problem)))
    redraw, look = jax.jit(jax.vmap(GIBBS.redraw)), jax.jit(jax.vmap(quantities))

    def begin(key):
        return start(jax.random.split(key, num_chains), sizes_at_the_prior(key, problem, partitions, num_chains))

    @jax.jit
    @jax.vmap
    def move(key, state, problem):
        step = lambda number, state: GIBBS.sweep(jax.random.fold_in(key, number), state, problem)  # noqa: E731
        return jax.lax.fori_loop(0, SWEEPS, step, state)

    def functions(state, problem):
        return with_second_moments({name: np.asarray(v, float) for name, v in look(state, problem).items()})

    return joint_distribution_test(
        jax.random.key(seed),
        begin,
        lambda key, state, problem: move(jax.random.split(key, num_chains), state, problem),
        lambda key, state, problem: redraw(jax.random.split(key, num_chains), state, problem),
        functions, rounds=ROUNDS,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("prior", "moves"),
    [
        ("labels", "blocks"), pytest.param("labels", "split-merge", marks=pytest.mark.slow),
        pytest.param("partitions", "blocks", marks=pytest.mark.slow),
        pytest.param("entities", "blocks", marks=pytest.mark.slow),
        pytest.param("entities", "split-merge", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_the_sampler_passes(tiny, prior, moves):
    assert joint_test(*template(tiny, prior, moves, PARTS)).largest < 4.5


def no_factor_of_labels(patch):
    patch.setitem(gibbs.MOVES, "blocks", lambda *given, prior: gibbs.draw_blocks(*given, prior="partitions"))


def no_factor_of_labels_in_acceptance(patch):
    right = split_merge.accepted
    patch.setattr(split_merge, "accepted", lambda *given, prior: right(*given, prior="partitions"))


def no_ways_to_split(patch):
    right = split_merge.log_ratio_of_split

    def wrong(parts, *rest):
        return right(parts, *rest) - (parts[0].sum() - 2) * np.log(2)

    patch.setattr(split_merge, "log_ratio_of_split", wrong)


def copies_are_never_by_chance(patch):
    """A value that is the true one was never distorted: the bug that draws b to zero."""
    right = gibbs.draw_counts

    def wrong(key, cluster, value_share, distortion, *rest, **sizes):
        return right(key, cluster, value_share, jnp.full_like(distortion, 1e-6), *rest, **sizes)

    patch.setattr(gibbs, "draw_counts", wrong)


def distortions_too_small(patch):
    right = gibbs.draw_fields

    def wrong(key, counts, *rest):
        share, distortion = right(key, counts, *rest)
        return share, 0.9 * distortion

    patch.setattr(gibbs, "draw_fields", wrong)


BUGS = [
    (no_factor_of_labels, "blocks"), (no_factor_of_labels_in_acceptance, "split-merge"),
    (no_ways_to_split, "split-merge"), (copies_are_never_by_chance, "blocks"),
    (distortions_too_small, "blocks"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "moves"), BUGS, ids=lambda one: getattr(one, "__name__", one))
def test_a_bug_fails(tiny, bug, moves, monkeypatch):
    bug(monkeypatch)
    num_chains = (8 if bug is copies_are_never_by_chance else 4) * NUM_CHAINS  # which is no large bug of records so few
    assert joint_test(*template(tiny, "labels", moves, PARTS), num_chains=num_chains).largest > 7
