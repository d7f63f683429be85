"""What is drawn with error classes given the links, and all of it: against explicit sums and the joint distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.gibbs import error_classes
from consilience.models.block_linkage.gibbs.error_classes import draw_class_counts
from consilience.models.block_linkage.gibbs.hyperparameters import draw_given_counts
from consilience.models.block_linkage.gibbs.links import redraw_links
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State
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


# ---- the joint distribution ----

NUMBER, LARGEST, VALUES = 5, 3, (3, 4)
FIELD = np.repeat([0, 1], VALUES)
PRIOR = {
    "value_concentration": np.array(0.8), "distortion": np.array([[2.0, 3.0], [1.0, 2.0]]),
    "intensity": np.array([4.0, 1.0]), "size_share": np.array([2.0, 3.0, 1.5]),
    "class_share": np.array([1.0, 4.0, 1.5]),
}  # fmt: skip


def drawn_from_the_prior(num_sets, seed=0):
    """Draw θ, b, m, μ, π, partition and records given that there are five of these; other numbers are refused."""
    generator = np.random.default_rng(seed)
    tried = 40 * num_sets
    intensity = generator.gamma(PRIOR["intensity"][0], 1 / PRIOR["intensity"][1], tried)
    size_share = generator.dirichlet(PRIOR["size_share"], tried)
    size = 1 + (generator.random((tried, NUMBER, 1)) > np.cumsum(size_share, axis=1)[:, None, :-1]).sum(axis=2)
    entities = generator.poisson(intensity)
    there = np.arange(NUMBER) < entities[:, None]
    fits = np.flatnonzero(((size * there).sum(axis=1) == NUMBER) & (entities <= NUMBER))[:num_sets]
    assert len(fits) == num_sets
    intensity, size_share = intensity[fits], size_share[fits]
    entity = np.stack([np.repeat(np.arange(NUMBER), own) for own in size[fits] * there[fits]])
    entity = generator.permuted(entity, axis=1)
    share = [generator.dirichlet(np.full(values, PRIOR["value_concentration"]), num_sets) for values in VALUES]
    share = np.concatenate(share, axis=1)
    distortion = generator.beta(*PRIOR["distortion"].T, (num_sets, len(VALUES)))
    class_share = generator.dirichlet(PRIOR["class_share"], num_sets)
    cluster = (entity[:, :, None] == entity[:, None]).argmax(axis=1).astype(np.int32)
    value = draw_records(generator, cluster, share, distortion, class_share, VALUES, missing=0.1)
    return State(cluster, share, distortion, intensity, size_share, class_share), value


def draw_records(generator, cluster, share, distortion, class_share, values, *, missing):
    """Draw records from the model, ``(set, record, field)``, of sets with parameters of their own."""
    shape, num_fields = cluster.shape, len(values)
    order = generator.random(shape)
    head = np.where(cluster[:, :, None] == cluster[:, None], order[:, None], -1).argmax(axis=2)
    kind = (generator.random((*shape, 1)) > np.cumsum(class_share, axis=1)[:, None, :-1]).sum(axis=2)
    wrong = generator.integers(num_fields, size=shape)
    value = np.empty((*shape, num_fields), np.int32)
    lost = generator.random(value.shape) < missing
    for field, begin in enumerate(np.cumsum((0, *values))[:-1]):
        own_share = np.broadcast_to(share[:, None, begin : begin + values[field]], (*shape, values[field]))
        own, other = _categorical(generator, own_share), _categorical(generator, own_share)
        true = np.take_along_axis(own, head, axis=1)
        another = _categorical(generator, np.where(np.arange(values[field]) == true[..., None], 0, own_share))
        drawn = np.where((kind == 1) & (wrong == field), another, true)
        by_chance = generator.random(shape) < distortion[:, field, None]
        drawn = np.where((kind == 2) & by_chance, other, drawn)
        of_head = np.take_along_axis(lost[..., field], head, axis=1) | (head == np.arange(shape[1]))
        value[..., field] = begin + np.where(of_head, own, drawn)
    value[lost] = -1
    return value


def _categorical(generator, weight):
    end = np.cumsum(weight, axis=-1)
    uniform = generator.random((*weight.shape[:-1], 1)) * end[..., -1:]
    return np.minimum((uniform >= end).sum(axis=-1), weight.shape[-1] - 1)


def functions_of(state, value):
    """Return statistics of the hyperparameters, the partition and the records together, ``(set, statistic)``."""
    together = state.cluster[:, :, None] == state.cluster[:, None]
    agree = (value[:, :, None] == value[:, None]) & (value >= 0)[:, :, None]
    upper = np.triu(np.ones((NUMBER, NUMBER), bool), 1)
    number = (state.cluster == np.arange(NUMBER)).sum(axis=1)
    pairs = (together & upper).sum(axis=(1, 2))
    agreeing = (agree & (together & upper)[..., None]).sum(axis=(1, 2))
    at_all = (agree & upper[..., None]).sum(axis=(1, 2))
    of_records = np.take_along_axis(state.value_share, np.maximum(value.reshape(len(value), -1), 0), axis=1)
    shown = of_records.mean(axis=1)
    of_records = of_records.reshape(value.shape)
    # Where two records of an entity differ, how common their values are: the head's and the one that replaced it.
    differ = (value[:, :, None] != value[:, None]) & (np.minimum(value[:, :, None], value[:, None]) >= 0)
    differ &= (together & upper)[..., None]
    of_pairs = (differ * (of_records[:, :, None] + of_records[:, None])).sum(axis=(1, 2))
    apart = (differ * of_records[:, :, None] * of_records[:, None]).sum(axis=(1, 2))
    columns = [
        number, pairs, state.intensity, state.intensity * number, shown, *np.log(np.maximum(state.size_share, 1e-3)).T,
        *state.distortion.T, *(state.distortion**2).T, *(state.distortion * at_all).T, *agreeing.T,
        *state.class_share.T, *(state.class_share**2).T, *(state.class_share * pairs[:, None]).T,
        *(state.class_share * at_all.sum(axis=1, keepdims=True)).T,
        *(state.class_share * agreeing.sum(axis=1, keepdims=True)).T,
        *of_pairs.T, *apart.T, *state.value_share.T, *(state.value_share**2).T, *(state.value_share * pairs[:, None]).T,
    ]  # fmt: skip
    return np.stack(columns, axis=1)


def largest_z(swept, *, num_sets=20_000, sweeps=4):
    """Return the largest |z| of the statistics, after some sweeps against before.

    Parameters and records are drawn from the prior, so that sweeps of a right sampler leave all their statistics as
    they are, those of both together included.
    """
    with jax.enable_x64(True):
        state, value = drawn_from_the_prior(num_sets)
        edges = np.array([(one, other) for one in range(NUMBER) for other in range(NUMBER) if one != other], np.int32)
        problem = LinkProblem(
            value=value[0], field=FIELD.astype(np.int32), source=np.arange(NUMBER, dtype=np.int32),
            first_neighbour=np.arange(NUMBER + 1, dtype=np.int32) * (NUMBER - 1), neighbour=edges[:, 1], **PRIOR,
        )  # fmt: skip
        after = swept(redraw_links, error_classes.draw_class_hyperparameters, state, problem, value, sweeps)
        moved = functions_of(after, value) - functions_of(state, value)
    return np.abs(moved.mean(axis=0) / (moved.std(axis=0) / np.sqrt(num_sets))).max()


def test_the_joint_distribution(swept):
    """Geweke (2004), Getting it right; given the number of records."""
    assert largest_z(swept) < 5


def _never_again(key, other):
    return jnp.zeros_like(other)


def _one_more(key, other, right=error_classes._times_again):
    return 1 + right(key, other)


def _of_other_value(share, head_share, xp):
    """Take the value that is shown for the one of which there was none."""
    return 1 - share


def _classes_by_prior(key, cluster, counts, problem):
    """Draw the shares of classes from their prior."""
    return draw_given_counts(key, cluster, counts._replace(of_class=jnp.zeros(3)), problem)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_times_again", _never_again), ("_times_again", _one_more), ("other_share", _of_other_value),
        ("draw_given_counts", _classes_by_prior),
    ],
    ids=["never again", "once more", "of the other value", "classes by prior"],
)  # fmt: skip
@pytest.mark.slow
def test_the_joint_distribution_catches_mistakes(name, wrong, swept, monkeypatch):
    monkeypatch.setattr(error_classes, name, wrong)
    assert largest_z(swept) > 6


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
