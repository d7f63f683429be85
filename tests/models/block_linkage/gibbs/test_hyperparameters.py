"""What is drawn given the links: true values against all of them, and hyperparameters against their distributions."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from consilience.models.block_linkage.gibbs.hyperparameters import (
    Counts,
    copy_log_weight,
    draw_counts,
    draw_fields,
    draw_sizes,
    log_copy_ratio,
    members_of_several,
)

SHARE, RATE = np.array([0.6, 0.3, 0.1]), 0.25


def test_the_two_ways_to_a_value_add_up():
    """θ (r^n - 1) and θ are θ r^n, which is the sum over the distortions of the records that show the value."""
    with jax.enable_x64(True):
        log_ratio = log_copy_ratio(jnp.asarray(SHARE), jnp.array([RATE]), jnp.zeros(3, int))
        for number in (1, 2, 3):
            copy = np.exp(copy_log_weight(jnp.log(SHARE), log_ratio, jnp.full(3, number)))
            np.testing.assert_allclose(copy + SHARE, SHARE * np.exp(number * log_ratio), rtol=1e-12)
            over_distortions = (1 - RATE + RATE * SHARE) ** number / (RATE * SHARE) ** number
            np.testing.assert_allclose(copy + SHARE, SHARE * over_distortions, rtol=1e-12)


def test_single_precision():
    found = copy_log_weight(jnp.log(jnp.float32(1e-6)), jnp.float32(20.0), jnp.int32(8))
    np.testing.assert_allclose(found, np.log(1e-6) + 160, rtol=1e-6)


def test_members_of_several():
    cluster = jnp.array([0, 1, 0, 3, 1, 5, 0], jnp.int32)
    expected = [[0, 2, 6, -1], [1, 4, -1, -1], [-1] * 4]
    np.testing.assert_array_equal(members_of_several(cluster, 4), expected)
    np.testing.assert_array_equal(members_of_several(jnp.zeros(1, jnp.int32), 4), np.zeros((0, 4)))


@pytest.mark.parametrize("shown", [(0, 0, 1), (2, 2, 2), (0, 1, 2), (1, -1, 1), (2, -1, -1)], ids=str)
def test_true_values_and_distortions(shown):
    """What is counted of one cluster, against all true values and distortions; beside it, two records alone."""
    exact = _exact_counts(shown)
    cluster = jnp.array([0, 1, 0, 0, 4], jnp.int32)
    value = jnp.array([shown[0], 2, shown[1], shown[2], -1], jnp.int32)[:, None]
    number = 40_000
    found = _many_counts(jax.random.split(jax.random.key(0), number), cluster, value)
    outcome = np.concatenate([found.value, found.distorted[:, 0]], axis=1).astype(int)
    outcome[:, 2] -= 1  # of the record that is alone
    kinds, counts = np.unique(outcome, axis=0, return_counts=True)
    drawn = {tuple(kind): count for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)}
    assert set(drawn) <= set(exact)
    for kind, probability in exact.items():
        error = np.sqrt(probability * (1 - probability) / number)
        assert abs(drawn.get(kind, 0) / number - probability) <= 5 * error + 1e-9, kind


@jax.jit
def _many_counts(keys, cluster, value):
    share, rate, field = jnp.asarray(SHARE), jnp.array([RATE]), jnp.zeros(3, jnp.int32)
    return jax.vmap(lambda key: draw_counts(key, cluster, share, rate, value, field, largest=3))(keys)


def _exact_counts(shown):
    """Return the distribution of counts of values, distortions and copies, from the definition of the model."""
    own = [code for code in shown if code >= 0]
    if len(own) < 2:
        return {(*np.bincount(own, minlength=3).tolist(), 0, 0): 1.0}
    weight: dict[tuple, float] = {}
    for true in range(3):
        for distorted in itertools.product([0, 1], repeat=len(own)):
            counts, probability = np.bincount([true], minlength=3), SHARE[true]
            for code, wrong in zip(own, distorted, strict=True):
                probability *= RATE * SHARE[code] if wrong else (1 - RATE) * (code == true)
                counts[code] += wrong
            kind = (*counts.tolist(), sum(distorted), len(own) - sum(distorted))
            weight[kind] = weight.get(kind, 0.0) + probability
    total = sum(weight.values())
    return {kind: own / total for kind, own in weight.items() if own > 0}


def test_distributions_given_counts():
    """θ, b, μ and m against SciPy's Beta and Gamma distributions."""
    counts = Counts(jnp.array([3.0, 0.0, 1.0, 7.0, 2.0]), jnp.array([[1.0, 20.0], [4.0, 2.0]]))
    field = jnp.array([0, 0, 0, 1, 1])
    prior = jnp.array([[1.0, 9.0], [2.0, 5.0]])
    cluster = jnp.array([0, 1, 0, 3, 4, 1, 0, 7], jnp.int32)  # sizes 3, 2, 1, 1, 1
    sizes, entities = jnp.array([1.0, 0.5, 0.3, 0.2]), jnp.array([2.0, 0.25])

    def draw(key):
        one, other = jax.random.split(key)
        fields = draw_fields(one, counts, field, jnp.asarray(0.3), prior)
        return *fields, *draw_sizes(other, cluster, sizes, entities)

    with jax.enable_x64(True):
        drawn = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(1), 5000))
    share, distortion, size_share, intensity = map(np.asarray, drawn)
    shape = np.array([3.3, 0.3, 1.3, 7.3, 2.3])
    rest = np.array([4.9, 4.9, 4.9, 9.6, 9.6]) - shape
    expected = [*zip(share.T, map(stats.beta, shape, rest), strict=True)]
    expected += [*zip(distortion.T, map(stats.beta, [2, 6], [29, 7]), strict=True)]
    expected += [*zip(size_share.T, map(stats.beta, [4.0, 1.5, 1.3, 0.2], [3.0, 5.5, 5.7, 6.8]), strict=True)]
    expected += [(intensity, stats.gamma(2 + 5, scale=1 / 1.25))]
    for values, distribution in expected:
        assert stats.kstest(values, distribution.cdf).pvalue > 1e-5
    np.testing.assert_allclose(share[:, :3].sum(axis=1), 1, rtol=1e-6)
