"""Records drawn from the model: its probabilities are frequencies, and ranks of what was drawn are uniform.

Nothing here knows how the posterior is computed: entities and values are drawn as the model says, forwards.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.hmc import hmc
from numpyro.infer.util import initialize_model

from consilience.evaluation.calibration import rank_statistics, uniformity
from consilience.models.block_linkage import model, simulate
from consilience.models.block_linkage.enumeration import (
    enumerate_blocks,
    gather_values,
    pairs_within,
    set_partitions,
    size_terms,
)
from consilience.models.block_linkage.likelihoods import LIKELIHOODS, differing
from consilience.models.block_linkage.model import enumerate_linkable, linkable
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.priors import Priors
from tests.models.records import records_of

# ---- hyperparameters known: the posterior of the partition is exact ----

NUM_VALUES = (5, 3)
TRUTH = Parameters(np.array([]), np.array([0.15, 0.3]), 3.0, np.array([0.5, 0.3, 0.2]))
SETS, MOST_RECORDS = 2000, 6
BINS = (0.1, 0.25, 0.5, 0.75)


def distinct_values(records, generator, distortion):
    """Draw values anew, of the Dirichlet-multinomial likelihood: each entity has its own distribution in each field."""
    num_fields = len(NUM_VALUES)
    value = np.empty((num_fields, records.num_records), int)
    for field, number in enumerate(NUM_VALUES):
        rate = differing(distortion[field])
        for entity in range(records.entity.max() + 1):
            own = generator.dirichlet(np.full(number, rate / (1 - rate) / number))
            of_entity = records.entity == entity
            value[field, of_entity] = generator.choice(number, of_entity.sum(), p=own)
    return value


@functools.cache
def drawn_sets(likelihood):
    """Return values, shares of values and entities of many small sets, by the number of records."""
    found = {number: [] for number in range(2, MOST_RECORDS + 1)}
    generator = np.random.default_rng(0)
    for seed in range(SETS):
        records, drawn = simulate(
            seed, num_values=NUM_VALUES, exponent=(1.0, 0.0), distortion=TRUTH.distortion, missing=(0.0, 0.15),
            size_share=TRUTH.size_share, intensity=TRUTH.intensity,
        )  # fmt: skip
        if not 2 <= records.num_records <= MOST_RECORDS:
            continue
        members = np.arange(records.num_records)[None]
        values = gather_values(records.value, records.first_value, members)
        share = drawn["value_share"]
        if likelihood == "dirichlet-multinomial":
            values = distinct_values(records, generator, TRUTH.distortion)
            values = (values + np.array([0, NUM_VALUES[0]])[:, None]).T[:, :, None]
            share = np.concatenate([np.full(number, 1 / number) for number in NUM_VALUES])
        found[records.num_records].append((values, share, records.entity))
    return found


def z_scores(likelihood, parameters):
    """Return how far predicted and drawn are apart, in errors of the sum over independent sets, by what is compared."""
    differences = {}
    for number, sets in drawn_sets(likelihood).items():
        starts = np.cumsum([0, *(len(share) for _, share, _ in sets)])
        values = [np.where(one >= 0, one + start, -1) for (one, _, _), start in zip(sets, starts, strict=False)]
        found = enumerate_blocks(
            np.concatenate(values, axis=2), np.concatenate([share for _, share, _ in sets]), parameters.distortion,
            size_terms(parameters.intensity, parameters.size_share, number, np), LIKELIHOODS[likelihood],
            dtype=np.float64,
        )  # fmt: skip
        first, second = pairs_within(number)
        entity = np.stack([one for _, _, one in sets])
        together = (entity[:, first] == entity[:, second]).T
        bins = np.digitize(found.pair, BINS)
        for place in range(len(BINS) + 1):
            gap = np.where(bins == place, together - found.pair, 0).sum(axis=0)
            differences.setdefault(f"pairs {place}", []).append(gap)
        clusters = 1 + set_partitions(number).max(axis=1)
        true = np.array([len(set(one)) for one in entity.tolist()])
        mean = clusters @ found.partition
        variance = clusters.astype(float) ** 2 @ found.partition - mean**2
        differences.setdefault("entities", []).append(true - mean)
        differences.setdefault("variance of entities", []).append((true - mean) ** 2 - variance)
        labels = (entity[:, :, None] == entity[:, None]).argmax(axis=2)
        known = set_partitions(number)
        named = (known[:, :, None] == known[:, None]).argmax(axis=2)
        right = (labels[:, None] == named[None]).all(axis=2).T
        of_true = (right * found.partition).sum(axis=0)
        differences.setdefault("the partition drawn", []).append(of_true - (found.partition**2).sum(axis=0))
    joined = {name: np.concatenate(parts) for name, parts in differences.items()}
    return {name: gap.sum() / np.sqrt((gap**2).sum()) for name, gap in joined.items() if np.any(gap)}


@pytest.mark.parametrize("likelihood", ["hit-miss", "dirichlet-multinomial"])
def test_given_the_hyperparameters_probabilities_are_frequencies(likelihood):
    scores = z_scores(likelihood, TRUTH)
    assert len(scores) == 8
    assert max(map(abs, scores.values())) < 5, scores


@pytest.mark.parametrize(
    "wrong",
    [
        {"intensity": 6.0}, {"distortion": np.array([0.5, 0.5])}, {"size_share": np.array([0.7, 0.2, 0.1])},
    ],
    ids=lambda wrong: next(iter(wrong)),
)  # fmt: skip
def test_wrong_hyperparameters_are_found_out(wrong):
    scores = z_scores("hit-miss", TRUTH._replace(**wrong))
    assert max(map(abs, scores.values())) > 5, scores


# ---- hyperparameters sampled by NUTS, the linkage summed out ----

PRIORS = Priors(
    distortion=dist.Beta(2.0, 6.0), size_share=dist.Dirichlet(jnp.array([4.0, 2.0, 1.0])),
    intensity=dist.Gamma(8.0, 2.0),
)  # fmt: skip
RECORDS, VALUES = 6, (6, 4, 3)
SHARE = np.concatenate([np.full(number, 1 / number) for number in VALUES])


def drawn_from_the_priors(number, seed):
    """Draw hyperparameters, entities and values, and keep what has six records."""
    generator = np.random.default_rng(seed)
    found = []
    while len(found) < number:
        distortion, sizes = generator.beta(2, 6, len(VALUES)), generator.dirichlet([4, 2, 1])
        intensity = generator.gamma(8, 1 / 2)
        size = 1 + generator.choice(3, generator.poisson(intensity), p=sizes)
        if size.sum() != RECORDS:
            continue
        entity = np.repeat(np.arange(len(size)), size)
        value = []
        for length, rate in zip(VALUES, distortion, strict=True):
            true = generator.integers(length, size=len(size))[entity]
            wrong = generator.random(RECORDS) < rate
            value.append(np.where(wrong, generator.integers(length, size=RECORDS), true))
        found.append((np.stack(value), np.concatenate([distortion, sizes, [intensity, len(size)]])))
    return [np.stack(part) for part in zip(*found, strict=True)]


def as_linkable(value):
    """Return records with all values of their fields, whose shares are known."""
    return linkable(records_of(value, VALUES)).replace(share=SHARE)


def ranked_draws(key, data, *, warmup, draws, thinning):
    """Return draws of hyperparameters and of the number of entities, ``(draw, quantity)``, of one data set."""
    key_start, key_chain = jax.random.split(key)

    def joint():
        model(data, PRIORS, largest=3)

    start, potential, constrain, _ = initialize_model(key_start, joint)
    init, sample = hmc(potential, algo="NUTS")
    state = init(start, num_warmup=warmup, trajectory_length=None, max_tree_depth=6, rng_key=key_chain)

    def several(state, _):
        state = jax.lax.fori_loop(0, thinning, lambda _, state: sample(state), state)
        return state, constrain(state.z)

    state = jax.lax.fori_loop(0, warmup, lambda _, state: sample(state), state)
    _, sites = jax.lax.scan(several, state, length=draws)
    clusters = jnp.asarray(1 + set_partitions(RECORDS).max(axis=1))

    def entities(key, distortion, sizes, intensity):
        (found,) = enumerate_linkable(data, data.share, distortion, sizes, intensity, "hit-miss")
        return clusters[jax.random.categorical(key, jnp.log(found.partition[:, 0]))]

    keys = jax.random.split(key, draws)
    number = jax.vmap(entities)(keys, sites["distortion"], sites["size_share"], sites["intensity"])
    return jnp.concatenate(
        [sites["distortion"], sites["size_share"], sites["intensity"][:, None], number[:, None]], axis=1
    )


@pytest.mark.slow
def test_ranks_under_nuts_are_uniform():
    """Simulation-based calibration (Talts et al. 2018).

    Of 200 data sets the smallest p-value, times the number of tests, was 0.58.
    """
    number, draws = 200, 99
    value, true = drawn_from_the_priors(number, seed=1)
    data = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(as_linkable, value))
    run = jax.jit(jax.vmap(lambda key, data: ranked_draws(key, data, warmup=150, draws=draws, thinning=2)))
    drawn = np.asarray(run(jax.random.split(jax.random.key(0), number), data))
    ranks = rank_statistics(jax.random.key(2), true, drawn)
    found = uniformity(ranks, draws)
    assert found.smallest > 0.001, (found.chi_square, found.kolmogorov_smirnov)
