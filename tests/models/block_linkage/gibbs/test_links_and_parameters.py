"""All that a sweep draws, under likelihoods and priors: it leaves the joint distribution as it is, mistakes do not.

Parameters, partition and records are drawn from the priors given that there are five records; see Geweke (2004),
Getting it right.
"""

import inspect
import types

import numpy as np
import pytest
from scipy.special import factorial

from consilience.models.block_linkage import conjugate
from consilience.models.block_linkage import sampler as partitions
from consilience.models.block_linkage.enumeration import first_places, links_of_partitions, set_partitions
from consilience.models.block_linkage.gibbs import sampler
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State
from tests.models.mutants import planted

NUMBER, LARGEST, VALUES = 5, 3, (3, 4)
FIELD = np.repeat([0, 1], VALUES).astype(np.int32)
PRIOR = {"value_concentration": np.array(0.8), "intensity": np.array([4.0, 1.0])}
PRIORS = {
    "hit-miss": PRIOR | {
        "distortion": np.array([[2.0, 6.0], [1.0, 3.0]]), "size_share": np.array([4.0, 2.0, 1.0]), "class_share": None,
    },
    "error-classes": PRIOR | {
        "distortion": np.array([[2.0, 3.0], [1.0, 2.0]]), "size_share": np.array([2.0, 3.0, 1.5]),
        "class_share": np.array([1.0, 4.0, 1.5]),
    },
}  # fmt: skip
PRIORS |= {prior: PRIORS["hit-miss"] | {"prior": prior, "splits": 2} for prior in ("labels", "partitions")}
SWEEPS = {"hit-miss": 2, "error-classes": 4, "labels": 2, "partitions": 2}


def drawn_from_the_prior(prior, num_sets):
    """Draw θ, b, m, μ, π, partition and records given that there are five of these; other numbers are refused."""
    generator = np.random.default_rng(0)
    draw = _uniform if "prior" in prior else _entities
    cluster, *of_sizes = draw(generator, prior, num_sets)
    share = [generator.dirichlet(np.full(values, prior["value_concentration"]), num_sets) for values in VALUES]
    classes = None if prior["class_share"] is None else generator.dirichlet(prior["class_share"], num_sets)
    distortion = generator.beta(*prior["distortion"].T, (num_sets, len(VALUES)))
    state = State(cluster, np.concatenate(share, axis=1), distortion, *of_sizes, classes)
    return state, drawn_records(generator, state)


def _uniform(generator, prior, num_sets):
    """Draw partitions without m and μ."""
    weight = np.ones(len(set_partitions(NUMBER)))
    if prior["prior"] == "labels":
        weight /= factorial(links_of_partitions(NUMBER))
    largest = (set_partitions(NUMBER)[:, :, None] == np.arange(NUMBER)).sum(axis=1).max(axis=1)
    weight[largest > LARGEST] = 0
    chosen = generator.choice(len(weight), num_sets, p=weight / weight.sum())
    return first_places(NUMBER)[chosen].astype(np.int32), None, None


def _entities(generator, prior, num_sets):
    """Draw partitions, m and μ."""
    tried = 40 * num_sets
    intensity = generator.gamma(prior["intensity"][0], 1 / prior["intensity"][1], tried)
    size_share = generator.dirichlet(prior["size_share"], tried)
    size = 1 + (generator.random((tried, NUMBER, 1)) > np.cumsum(size_share, axis=1)[:, None, :-1]).sum(axis=2)
    entities = generator.poisson(intensity)
    there = np.arange(NUMBER) < entities[:, None]
    fits = np.flatnonzero(((size * there).sum(axis=1) == NUMBER) & (entities <= NUMBER))[:num_sets]
    assert len(fits) == num_sets
    entity = np.stack([np.repeat(np.arange(NUMBER), own) for own in size[fits] * there[fits]])
    entity = generator.permuted(entity, axis=1)
    cluster = (entity[:, :, None] == entity[:, None]).argmax(axis=1).astype(np.int32)
    return cluster, intensity[fits], size_share[fits]


def drawn_records(generator, state):
    """Draw records from the model, ``(set, record, field)``; without classes all copy a true value that none has."""
    shape, cluster = state.cluster.shape, state.cluster
    kind, wrong, head = np.full(shape, 2), np.zeros(shape, int), cluster
    if state.class_share is not None:
        order = generator.random(shape)
        head = np.where(cluster[:, :, None] == cluster[:, None], order[:, None], -1).argmax(axis=2)
        kind = (generator.random((*shape, 1)) > np.cumsum(state.class_share, axis=1)[:, None, :-1]).sum(axis=2)
        wrong = generator.integers(len(VALUES), size=shape)
    value = np.empty((*shape, len(VALUES)), np.int32)
    lost = generator.random(value.shape) < 0.1
    for field, begin in enumerate(np.cumsum((0, *VALUES))[:-1]):
        share = state.value_share[:, None, begin : begin + VALUES[field]]
        share = np.broadcast_to(share, (*shape, VALUES[field]))
        own, other = _categorical(generator, share), _categorical(generator, share)
        true = np.take_along_axis(own, head, axis=1)
        another = _categorical(generator, np.where(np.arange(VALUES[field]) == true[..., None], 0, share))
        drawn = np.where((kind == 1) & (wrong == field), another, true)
        by_chance = generator.random(shape) < state.distortion[:, field, None]
        drawn = np.where((kind == 2) & by_chance, other, drawn)
        if state.class_share is not None:
            of_head = np.take_along_axis(lost[..., field], head, axis=1) | (head == np.arange(NUMBER))
            drawn = np.where(of_head, own, drawn)
        value[..., field] = begin + drawn
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
    shown, of_records = of_records.mean(axis=1), of_records.reshape(value.shape)
    # Where two records of an entity differ, how common their values are: the head's and the one that replaced it.
    differ = (value[:, :, None] != value[:, None]) & (np.minimum(value[:, :, None], value[:, None]) >= 0)
    differ &= (together & upper)[..., None]
    of_pairs = (differ * (of_records[:, :, None] + of_records[:, None])).sum(axis=(1, 2))
    apart = (differ * of_records[:, :, None] * of_records[:, None]).sum(axis=(1, 2))
    columns = [
        number, pairs, shown, *state.distortion.T, *(state.distortion**2).T, *(state.distortion * at_all).T,
        *agreeing.T, *(state.distortion * agreeing).T, *of_pairs.T, *apart.T,
        *state.value_share.T, *(state.value_share**2).T, *(state.value_share * pairs[:, None]).T,
    ]  # fmt: skip
    if state.intensity is not None:
        log_share = np.log(np.maximum(state.size_share, 1e-3))
        columns += [state.intensity, state.intensity**2, state.intensity * number]
        columns += [*log_share.T, *(log_share * pairs[:, None]).T]
    for of_classes in () if state.class_share is None else (state.class_share,):
        columns += [
            *of_classes.T, *(of_classes**2).T, *(of_classes * pairs[:, None]).T,
            *(of_classes * at_all.sum(axis=1, keepdims=True)).T, *(of_classes * agreeing.sum(axis=1, keepdims=True)).T,
        ]  # fmt: skip
    return np.stack(columns, axis=1)


def swept(state, problem, value, sweeps):
    """Return the chains after some sweeps, each with records of its own."""
    sweep, random, given = inspect.unwrap(sampler.sweep), np.random.default_rng(0), vars(problem)
    ended = []
    for number, own in enumerate(value):
        chain = State(*(None if part is None else part[number] for part in state))
        for _ in range(sweeps):
            chain = sweep(random, chain, types.SimpleNamespace(**given | {"value": own}))
        ended.append(chain)
    return State(*(None if parts[0] is None else np.array(parts) for parts in zip(*ended, strict=True)))


def largest_z(likelihood, num_sets=3000):
    """Return the largest |z| of the statistics, after some sweeps against before."""
    state, value = drawn_from_the_prior(PRIORS[likelihood], num_sets)
    edges = np.array([(one, other) for one in range(NUMBER) for other in range(NUMBER) if one != other])
    problem = LinkProblem(
        value=value[0], field=FIELD, source=np.zeros(0, np.int32), neighbour=edges[:, 1],
        first_neighbour=np.arange(NUMBER + 1) * (NUMBER - 1), **PRIORS[likelihood],
    )  # fmt: skip
    moved = functions_of(swept(state, problem, value, SWEEPS[likelihood]), value) - functions_of(state, value)
    return np.abs(moved.mean(axis=0) / (moved.std(axis=0) / np.sqrt(num_sets))).max()


@pytest.mark.parametrize(
    "likelihood", ["hit-miss", "error-classes", "labels", pytest.param("partitions", marks=pytest.mark.slow)]
)
def test_sweeps_leave_the_joint_distribution(likelihood):
    assert largest_z(likelihood) < 5


def every_value_once(right):
    """Count every value that a record shows for θ: what plug-in shares of the records do."""

    def wrong(random, cluster, value, density):
        counts = right(random, cluster, value, density)
        return counts._replace(value=np.bincount(value[value >= 0], minlength=len(counts.value)).astype(float))

    return wrong


def agreeing_is_never_distorted(right):
    """Take every record for distorted that differs from the first one of its cluster, and no other."""

    def wrong(random, cluster, value, density):
        first = value[cluster]
        both = (value >= 0) & (first >= 0) & (cluster != np.arange(NUMBER))[:, None]
        same = value == first
        counts = np.stack([(both & ~same).sum(axis=0), (both & same).sum(axis=0)], axis=1)
        return right(random, cluster, value, density)._replace(distorted=counts.astype(float))

    return wrong


def one_entity_fewer(right):
    """Draw m as if there were an entity fewer."""
    return lambda random, cluster, sizes, prior: right(random, cluster, sizes, prior - np.array([1.0, 0.0]))


def without_sizes(right):
    """Forget the factor n + 1 of joining."""
    factorial = np.cumsum(np.log(np.arange(1, 1 + LARGEST)))
    return lambda intensity, share, sources: right(intensity, share, sources) - np.append(0, factorial)


def with_equal_values(right):
    """Take values for equally common when links are drawn."""
    share = 1 / np.asarray(VALUES, float)[FIELD]

    def wrong(random, cluster, graph, density, sizes, **more):
        return right(random, cluster, graph, density._replace(value_share=share), sizes, **more)

    return wrong


def without_labels(right):
    """Take all partitions for as likely."""
    return lambda *given, **more: right(*given, **more | {"labelled": False})


def classes_by_prior(right):
    """Draw the shares of classes from their prior."""

    def wrong(random, concentration):
        return right(random, PRIORS["error-classes"]["class_share"] if len(concentration) == 3 else concentration)

    return wrong


MUTANTS = {
    ("hit-miss", "every value"): (conjugate, "draw_counts", every_value_once),
    ("hit-miss", "agreeing"): (conjugate, "draw_counts", agreeing_is_never_distorted),
    ("hit-miss", "one fewer"): (conjugate, "draw_sizes", one_entity_fewer),
    ("hit-miss", "sizes"): (sampler, "log_size_weights", without_sizes),
    ("hit-miss", "equal values"): (partitions, "draw", with_equal_values),
    ("labels", "without labels"): (partitions, "draw", without_labels),
    ("error-classes", "every value"): (conjugate, "draw_counts", every_value_once),
    ("error-classes", "classes by prior"): (conjugate, "draw_shares", classes_by_prior),
}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=" ".join)
def test_a_mutant_moves_the_joint_distribution(mutant):
    num_sets = 12_000 if mutant[0] == "error-classes" else 20_000
    with planted(*MUTANTS[mutant]):
        assert largest_z(mutant[0], num_sets) > 6
