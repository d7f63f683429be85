"""What is drawn with error classes given the links, against explicit sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.gibbs import error_classes
from consilience.models.block_linkage.gibbs.error_classes import draw_class_counts
from consilience.models.block_linkage.parameters import Parameters

SHARE = np.array([0.6, 0.3, 0.1, 0.6, 0.25, 0.15])
RATE, CLASSES = np.array([0.25, 0.6]), np.array([0.3, 0.45, 0.25])


@pytest.mark.parametrize(
    "shown",
    [[(0, 3), (0, 3), (0, 4)], [(0, 3), (1, 4), (0, 4)], [(0, -1), (1, 3), (0, 4)], [(2, 3), (1, 3), (-1, -1)]],
    ids=str,
)
def test_counts_have_the_means_that_em_expects(shown):
    """Of one cluster of three, beside a record alone: the counts of classes and of errors; and of all values."""
    cluster = jnp.array([0, 1, 0, 0], jnp.int32)
    value = jnp.array([shown[0], (2, -1), *shown[1:]], jnp.int32)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), 40_000)
        given = [jnp.asarray(one) for one in (SHARE, RATE, CLASSES)]
        found = jax.vmap(lambda key: draw_class_counts(key, cluster, *given, value, largest=3))
        found = jax.tree.map(np.asarray, jax.jit(found)(keys))
    drawn = np.concatenate([found.of_class, found.distorted[..., 0], found.distorted[..., 1]], axis=1)
    own = np.array(shown)[..., None]
    together = np.array([1.0, 0, 0, 0, 0])[:, None]        # of the five partitions of three records the first
    expected = ErrorClasses().error_statistics(own, Parameters(SHARE, RATE, 1.0, np.ones(3), CLASSES), together)
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - expected) <= 5 * error + 1e-9).all()
    assert (found.of_class.sum(axis=1) == 2).all()
    # Derivatives of the log likelihood by log θ are the counts less those of y where another value was drawn.
    number = np.asarray(found.value)
    assert (number[:, 2] >= 1).all()
    _check_values(number, shown)


def _check_values(number, shown):
    """Compare counts of values with the slope of the log likelihood, which is what Fisher's identity says they have."""
    step, slope = 1e-5, []
    for code in range(len(SHARE)):
        ends = []
        for sign in (1, -1):
            share = SHARE.copy()
            share[code] *= np.exp(sign * step)
            ends.append(_log_likelihood(np.array(shown), share))
        slope.append((ends[0] - ends[1]) / (2 * step))
    expected = np.array(slope) + [0, 0, 1, 0, 0, 0]         # of the record alone
    error = number.std(axis=0) / np.sqrt(len(number))
    assert (np.abs(number.mean(axis=0) - expected) <= 5 * error + 1e-4).all()


def _log_likelihood(codes, share):
    """Return the log likelihood of records of an entity; θ need not add up to one, and 1 - θ stays what it says."""
    values = codes[..., None]
    relative = ErrorClasses(CLASSES).log_marginals(values, np.append(share, 1)[values], RATE, np)[-1, 0]
    return relative + np.log(share[codes[codes >= 0]]).sum()


def test_times_again_are_geometric():
    with jax.enable_x64(True):
        other = jnp.asarray([0.9, 0.4, 0.05])
        drawn = error_classes._times_again(jax.random.key(0), jnp.broadcast_to(other, (20_000, 3)))
    for number, probability in zip(np.asarray(drawn).T, [0.9, 0.4, 0.05], strict=True):
        for times in range(4):
            expected = stats.geom(probability).pmf(times + 1)
            error = np.sqrt(expected * (1 - expected) / len(number))
            assert abs(np.mean(number == times) - expected) < 5 * error + 1e-9
    nearly_all = error_classes._times_again(jax.random.key(0), jnp.full(100, 1e-30))
    assert np.isfinite(nearly_all).all()
    assert (nearly_all > 1e3).any()
