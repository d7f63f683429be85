"""What is drawn given the links: true values and errors against explicit sums, hyperparameters against SciPy."""

import inspect
import itertools

import numpy as np
import pytest
from scipy import stats

from consilience.models.block_linkage import conjugate
from consilience.models.block_linkage.conjugate import Counts, draw_counts, draw_fields, draw_shares, draw_sizes
from consilience.models.block_linkage.densities import ERROR_CLASSES, HIT_MISS, Density
from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.parameters import Parameters

SHARE, RATE = np.array([0.6, 0.3, 0.1]), 0.25
NUMBER = 20_000
draw = inspect.unwrap(draw_counts)      # type checks of the test suite take longer than what it does


@pytest.mark.parametrize("shown", [(0, 0, 1), (2, 2, 2), (0, 1, 2), (1, -1, 1), (2, -1, -1)], ids=str)
def test_true_values_and_distortions(shown):
    """What is counted of one cluster, against all true values and distortions; beside it, two records alone."""
    exact = _exact_counts(shown)
    cluster, value = np.array([0, 1, 0, 0, 4]), np.array([shown[0], 2, shown[1], shown[2], -1])[:, None]
    density = Density(HIT_MISS, np.zeros(3, int), SHARE, np.array([RATE]), np.zeros(3))
    generator, drawn = np.random.default_rng(0), {}
    for _ in range(NUMBER):
        found = draw(generator, cluster, value, density)
        kind = (*(found.value - [0, 0, 1]), *found.distorted[0])     # less the record that is alone
        drawn[kind] = drawn.get(kind, 0) + 1
    assert set(drawn) <= set(exact)
    for kind, probability in exact.items():
        error = np.sqrt(probability * (1 - probability) / NUMBER)
        assert abs(drawn.get(kind, 0) / NUMBER - probability) <= 5 * error + 1e-9, kind


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


# ---- error classes ----

TWO = np.array([0.6, 0.3, 0.1, 0.6, 0.25, 0.15])
RATES, CLASSES = np.array([0.25, 0.6]), np.array([0.3, 0.45, 0.25])


@pytest.mark.parametrize(
    "shown",
    [[(0, 3), (0, 3), (0, 4)], [(0, 3), (1, 4), (0, 4)], [(0, -1), (1, 3), (0, 4)], [(2, 3), (1, 3), (-1, -1)]],
    ids=str,
)
def test_counts_have_the_means_that_em_expects(shown):
    """Of one cluster of three, beside a record alone: the counts of classes and of errors; and of all values."""
    cluster, value = np.array([0, 1, 0, 0]), np.array([shown[0], (2, -1), *shown[1:]])
    density = Density(ERROR_CLASSES, np.repeat([0, 1], 3), TWO, RATES, CLASSES)
    generator = np.random.default_rng(0)
    every = [draw(generator, cluster, value, density) for _ in range(NUMBER)]
    found = Counts(*map(np.array, zip(*every, strict=True)))
    drawn = np.concatenate([found.of_class, found.distorted[..., 0], found.distorted[..., 1]], axis=1)
    own = np.array(shown)[..., None]
    together = np.array([1.0, 0, 0, 0, 0])[:, None]        # of the five partitions of three records the first
    expected = ErrorClasses().error_statistics(own, Parameters(TWO, RATES, 1.0, np.ones(3), CLASSES), together)
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - expected) <= 5 * error + 1e-9).all()
    assert (found.of_class.sum(axis=1) == 2).all()
    assert (found.value[:, 2] >= 1).all()
    _check_values(found.value, shown)


def _check_values(number, shown):
    """Compare counts of values with the slope of the log likelihood, which is what Fisher's identity says they have."""
    step, slope = 1e-5, []
    for code in range(len(TWO)):
        ends = []
        for sign in (1, -1):
            share = TWO.copy()
            share[code] *= np.exp(sign * step)
            ends.append(_log_likelihood(np.array(shown), share))
        slope.append((ends[0] - ends[1]) / (2 * step))
    expected = np.array(slope) + [0, 0, 1, 0, 0, 0]         # of the record alone
    error = number.std(axis=0) / np.sqrt(len(number))
    assert (np.abs(number.mean(axis=0) - expected) <= 5 * error + 1e-4).all()


def _log_likelihood(codes, share):
    """Return the log likelihood of records of an entity; θ need not add up to one, and 1 - θ stays what it says."""
    values = codes[..., None]
    relative = ErrorClasses(CLASSES).log_marginals(values, np.append(share, 1)[values], RATES, np)[-1, 0]
    return relative + np.log(share[codes[codes >= 0]]).sum()


def test_times_again_are_geometric():
    for probability in (0.9, 0.4, 0.05):
        drawn = np.array([conjugate.times_again(one, probability) for one in np.random.default_rng(0).random(10_000)])
        for times in range(4):
            expected = stats.geom(probability).pmf(times + 1)
            error = np.sqrt(expected * (1 - expected) / len(drawn))
            assert abs(np.mean(drawn == times) - expected) < 5 * error + 1e-9
    assert 1e3 < conjugate.times_again(0.5, 1e-30) < np.inf


# ---- hyperparameters ----


def test_distributions_given_counts():
    """θ, b, μ, m and π against SciPy's Beta and Gamma distributions."""
    counts = Counts(np.array([3.0, 0.0, 1.0, 7.0, 2.0]), np.array([[1.0, 20.0], [4.0, 2.0]]), np.zeros(3))
    field, prior = np.array([0, 0, 0, 1, 1]), np.array([[1.0, 9.0], [2.0, 5.0]])
    cluster = np.array([0, 1, 0, 3, 4, 1, 0, 7])            # sizes 3, 2, 1, 1, 1
    sizes, entities = np.array([1.0, 0.5, 0.3, 0.2]), np.array([2.0, 0.25])
    generator = np.random.default_rng(1)
    drawn = [
        (*draw_fields(generator, counts, field, np.asarray(0.3), prior),
         *draw_sizes(generator, cluster, sizes, entities), draw_shares(generator, np.array([2.0, 1.0, 4.0])))
        for _ in range(5000)
    ]  # fmt: skip
    share, distortion, size_share, intensity, classes = map(np.array, zip(*drawn, strict=True))
    shape = np.array([3.3, 0.3, 1.3, 7.3, 2.3])
    rest = np.array([4.9, 4.9, 4.9, 9.6, 9.6]) - shape
    expected = [*zip(share.T, map(stats.beta, shape, rest), strict=True)]
    expected += [*zip(distortion.T, map(stats.beta, [2, 6], [29, 7]), strict=True)]
    expected += [*zip(size_share.T, map(stats.beta, [4.0, 1.5, 1.3, 0.2], [3.0, 5.5, 5.7, 6.8]), strict=True)]
    expected += [*zip(classes.T, map(stats.beta, [2.0, 1.0, 4.0], [5.0, 6.0, 3.0]), strict=True)]
    expected += [(intensity, stats.gamma(2 + 5, scale=1 / 1.25))]
    for values, distribution in expected:
        assert stats.kstest(values, distribution.cdf).pvalue > 1e-5
    np.testing.assert_allclose(share[:, :3].sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("kind", [HIT_MISS, ERROR_CLASSES])
def test_counts_are_the_same_where_python_draws_them(kind, monkeypatch):
    generator = np.random.default_rng(0)
    value = np.stack([generator.integers(-1, 3, 60), generator.integers(3, 6, 60)], axis=1)
    cluster = (generator.integers(0, 60, 60) // 4 * 4).astype(np.int32)
    density = Density(kind, np.repeat([0, 1], 3), TWO, RATES, CLASSES)
    found = draw(np.random.default_rng(1), cluster, value, density)
    for name, function in vars(conjugate).items():
        if hasattr(function, "py_func"):
            monkeypatch.setattr(conjugate, name, function.py_func)
    for mine, plain in zip(found, draw(np.random.default_rng(1), cluster, value, density), strict=True):
        np.testing.assert_array_equal(mine, plain)
    assert found.distorted.sum() > 5
