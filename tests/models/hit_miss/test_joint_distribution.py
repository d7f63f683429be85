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

from consilience.models.hit_miss import MODEL, gibbs
from consilience.models.hit_miss.gibbs import GIBBS
from consilience.models.hit_miss.priors import Priors
from consilience.replications import Chain
from tests.models.hit_miss.wrong_moves import NO_LABELS_IN_ACCEPTANCE, NO_WAYS_TO_SPLIT
from tests.models.mutants import PASSES, Case, largest

pytestmark = pytest.mark.usefixtures("double_precision")

NUM_CHAINS = 1000
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


def case(tiny, prior, moves, num_chains=NUM_CHAINS):
    problem, partitions = template(tiny, prior, moves, PARTS)
    begin = jax.jit(jax.vmap(lambda key, sizes: Chain(*at_the_prior(key, sizes, problem))))
    redraw = jax.jit(jax.vmap(lambda key, chain: Chain(*GIBBS.redraw(key, *chain))))

    def start(key):
        return begin(jax.random.split(key, num_chains), sizes_at_the_prior(key, problem, partitions, num_chains))

    return Case(
        start=start, redraw=lambda key, chains: redraw(jax.random.split(key, num_chains), chains),
        quantities=jax.jit(jax.vmap(lambda chain: quantities(*chain))), sweep=gibbs.sweep, num_chains=num_chains,
        sweeps=2, rounds=5,
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
def test_the_whole_sampler_passes(tiny, prior, moves):
    assert largest(case(tiny, prior, moves)) < PASSES


def copies_are_never_by_chance(right):
    """A value that is the true one was never distorted: the bug that draws b to zero."""
    return lambda key, cluster, value_share, distortion, *rest, **sizes: right(
        key, cluster, value_share, jnp.full_like(distortion, 1e-6), *rest, **sizes
    )


def distortions_too_small(right):
    def wrong(key, counts, *rest):
        share, distortion = right(key, counts, *rest)
        return share, 0.9 * distortion

    return wrong


def without_labels(right):
    return right | {"blocks": lambda *given, prior: right["blocks"](*given, prior="partitions")}


MUTANTS = {
    "no factor of labels": ("blocks", (gibbs, "MOVES", without_labels)),
    "no factor of labels in acceptance": ("split-merge", NO_LABELS_IN_ACCEPTANCE),
    "no ways to split": ("split-merge", NO_WAYS_TO_SPLIT),
    "copies are never by chance": ("blocks", (gibbs, "draw_counts", copies_are_never_by_chance)),
    "distortions too small": ("blocks", (gibbs, "draw_fields", distortions_too_small)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_sampler_is_found(tiny, name):
    moves, mutant = MUTANTS[name]
    # Copies never by chance are no large bug of records so few.
    num_chains = (8 if name.startswith("copies") else 4) * NUM_CHAINS
    assert largest(case(tiny, "labels", moves, num_chains), mutant=mutant) > 7
