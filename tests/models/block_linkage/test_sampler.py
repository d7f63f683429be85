"""Sweeps, splits and mergers against all partitions of a few records, with errors that must be found."""

import inspect
import math
import re
import types
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from consilience.models.block_linkage import densities, sampler
from consilience.models.block_linkage.densities import Density
from consilience.models.block_linkage.enumeration import set_partitions
from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.sampler import SURE, Expected, Graph, draw, log_size_weights
from consilience.models.block_linkage.texts import TextHitMiss

SHARE = [np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.25, 0.1, 0.05]), np.array([0.7, 0.3])]
VALUE = [[0, 1, 0], [0, 1, 0], [1, 1, 0], [0, -1, 1], [2, 3, -1], [2, 1, 1]]
PATH = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
STAR = [(0, 3), (1, 3), (2, 3), (3, 4), (3, 5)]
RING = [(0, 2), (0, 4), (1, 2), (1, 5), (3, 4), (3, 5)]
COMPLETE = [(one, other) for one in range(5) for other in range(one + 1, 5)]
GRAPHS = {"path": PATH, "star": STAR, "ring": RING, "complete": COMPLETE}
SIZES, CLASSES = [0.4, 0.2, 0.2, 0.1, 0.1], np.array([0.25, 0.45, 0.3])
FIRST = np.cumsum([0, *map(len, SHARE)])
DATA = SimpleNamespace(
    first_value=FIRST, near=np.array([[0, 1], [1, 2], [3, 4], [3, 6]]), distance=np.array([0.3, 0.6, 0.2, 1.0])
)
TEXTS = {"texts": TextHitMiss((0, 1), DATA, math.inf), "copied texts": TextHitMiss((0, 1), DATA, 1.5)}
KINDS = {
    **{name: LIKELIHOODS[name] for name in ("hit-miss", "copies", "dirichlet-multinomial")},
    "error-classes": ErrorClasses(CLASSES), **TEXTS,
    "powers": LIKELIHOODS["copies"].weighted(np.array([0.3, 1.0, 2.5])),
    "powers of texts": TEXTS["copied texts"].weighted(np.array([0.5, 1.0, 1.5])),
}  # fmt: skip
FAST, OTHERS = ("hit-miss", "error-classes"), [kind for kind in KINDS if kind != "error-classes"]


def density_of(kind, field, share, distortion, classes=CLASSES):
    """Return what `draw` takes for a likelihood of `KINDS`."""
    if kind == "error-classes":
        return Density(densities.ERROR_CLASSES, field, share, distortion, classes)
    urn = KINDS[kind].urn(Parameters(share, distortion, 1.0, np.ones(1)))
    return Density(densities.HIT_MISS, field, share, **urn)


class Small(NamedTuple):
    """Arguments of `draw`, all partitions, and how probable each is."""

    graph: Graph
    density: Density
    log_size: np.ndarray
    labelled: bool
    partition: np.ndarray
    probability: np.ndarray
    log_weight: np.ndarray


def small_case(kind, edges, *, value=VALUE, share=SHARE, distortion=(0.3, 0.2, 0.6), size_share=SIZES, source=(),
               weight=None, labelled=False, **of_graph):  # fmt: skip
    """Return a few records on a graph; a record of weight n is a cluster of n equal ones to the sum over partitions."""
    number = 1 + max(map(max, edges))
    first = np.cumsum([0, *map(len, share)])
    value = np.array(value)[:number]
    codes = np.where(value >= 0, value + first[: value.shape[1]], -1).astype(np.int32)
    weight = np.ones(number, np.int32) if weight is None else np.array(weight, np.int32)
    pairs = np.array([*edges, *(edge[::-1] for edge in edges)])
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    graph = Graph(
        codes, weight, np.array(source, np.int32), np.searchsorted(pairs[:, 0], np.arange(number + 1)), pairs[:, 1],
        **of_graph,
    )  # fmt: skip
    field = np.repeat(np.arange(len(share)), [*map(len, share)])
    density = density_of(kind, field, np.concatenate(share), np.array(distortion))
    log_size = np.zeros(1 + len(size_share)) if labelled else log_size_weights(3.0, np.array(size_share))
    labels = set_partitions(number)
    given = edges, kind, graph, np.array(distortion), np.concatenate(share), log_size, labelled
    log_weight = np.array([_log_weight(own, *given) for own in labels])
    probability = np.exp(log_weight - log_weight.max())
    named = (labels[:, :, None] == labels[:, None]).argmax(axis=2).astype(np.int32)
    return Small(graph, density, log_size, labelled, named, probability / probability.sum(), log_weight)


def _log_weight(labels, edges, kind, graph, distortion, share, log_size, labelled):
    """Return the log weight of a partition, by the likelihoods of EM on all copies."""
    likelihood, total, copies = KINDS[kind], 0.0, int(graph.weight.sum())
    for (one, other), worth in zip(graph.label, graph.label_worth, strict=True):
        total += worth * (labels[one] == labels[other])
    for label in range(labels.max() + 1):
        own = np.flatnonzero(labels == label)
        size = int(graph.weight[own].sum())
        sources = graph.source[own] if len(graph.source) else own
        if size >= len(log_size) or len(np.unique(sources)) < len(own):
            return -np.inf
        if graph.connected and not _is_connected(own, edges):
            return -np.inf
        values = np.repeat(graph.value[own], graph.weight[own], axis=0)[..., None]
        given = np.append(share, 1.0), distortion, likelihood.candidates(values), np
        total += log_size[size] + likelihood.of_components(values, *given)[-1, 0]
    return total - labelled * math.lgamma(1 + copies - (labels.max() + 1))


def _is_connected(own, edges):
    reached = {own[0]}
    for _ in own:
        reached |= {b for edge in edges for a, b in (edge, edge[::-1]) if a in reached and b in own}
    return len(reached) == len(own)


def repeated(graph, times):
    """Return a graph of so many copies of one, of which none is connected with another."""
    number, edges = len(graph.value), len(graph.neighbour)
    source = graph.source if not len(graph.source) else np.tile(graph.source, times)
    return Graph(
        np.tile(graph.value, (times, 1)), np.tile(graph.weight, times), source,
        np.append((graph.first_neighbour[:-1] + edges * np.arange(times)[:, None]).ravel(), edges * times),
        (graph.neighbour + number * np.arange(times)[:, None]).ravel(), graph.connected,
        (graph.label + number * np.arange(times)[:, None, None]).reshape(-1, 2), np.tile(graph.label_worth, times),
    )  # fmt: skip


def drawn_chains(move, generator, begun, small, sweeps, splits):
    """Return where chains end: all in one graph, unless links of all couple them."""
    options, rest = {"labelled": small.labelled, "sweeps": sweeps}, (small.density, small.log_size)
    if small.labelled:
        return np.stack([move(generator, own, small.graph, *rest, splits=splits, **options)[-1] for own in begun])
    graph, first = repeated(small.graph, len(begun)), begun.shape[1] * np.arange(len(begun))[:, None]
    ended = move(generator, (begun + first).ravel(), graph, *rest, splits=splits * len(begun), **options)[-1]
    return ended.reshape(begun.shape) - first


def assert_invariant(small, *, move=draw, num_chains=8000, sweeps=3, splits=0, alone=False):
    """Assert that partitions drawn exactly have the same distribution afterwards; or reach it from all alone.

    Total variation is measured in units of its own Monte Carlo error.
    """
    generator = np.random.default_rng(0)
    num_chains = min(num_chains, 1500) if small.labelled else num_chains
    begun = small.partition[generator.choice(len(small.partition), num_chains, p=small.probability)]
    if alone:
        begun = np.tile(np.arange(begun.shape[1], dtype=np.int32), (num_chains, 1))
    ended = drawn_chains(move, generator, begun, small, sweeps, splits)
    code = {tuple(labels): number for number, labels in enumerate(small.partition.tolist())}
    counts = np.bincount([code[tuple(labels)] for labels in ended.tolist()], minlength=len(code))
    chance = generator.multinomial(num_chains, small.probability, size=500)
    by_chance = np.abs(chance / num_chains - small.probability).sum(axis=1) / 2
    assert np.abs(counts / num_chains - small.probability).sum() / 2 < by_chance.mean() + 5 * by_chance.std()
    assert not counts[small.probability == 0].any()
    assert (ended != begun).any(axis=1).mean() > 0.2        # it also moves


@pytest.mark.parametrize("kind", FAST)
@pytest.mark.parametrize("edges", GRAPHS.values(), ids=GRAPHS)
def test_partitions_of_a_few_records(kind, edges):
    assert_invariant(small_case(kind, edges))


@pytest.mark.parametrize("kind", FAST)
def test_partitions_are_reached_from_all_alone(kind):
    assert_invariant(small_case(kind, COMPLETE), sweeps=15, alone=True)


def slowly(names, quick):
    """Return names as parameters, of which only the quick ones are for every day."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


CASES = {
    "labels": {"labelled": True},
    "weights": {"weight": [2, 1, 1, 3, 1], "size_share": [0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]},
    "weights and labels": {"weight": [2, 1, 1, 1, 2], "labelled": True, "size_share": [0.2] * 6},
    "sizes and sources": {"size_share": [0.4, 0.3, 0.3], "source": [0, 1, 2, 2, 3]},
    "answers": {
        "label": np.array([[0, 1], [3, 1], [2, 4], [0, 4]]), "label_worth": np.array([-1.5, 2.0, SURE, -SURE]),
        "weight": [1, 1, 2, 1, 1], "size_share": [0.2] * 6,
    },
    "no need to be connected": {"edges": PATH[:-1], "connected": False},
}  # fmt: skip


@pytest.mark.parametrize("splits", [0, 4])
@pytest.mark.parametrize("kind", FAST)
@pytest.mark.parametrize("case", CASES)
def test_priors_weights_and_sources(kind, case, splits):
    assert_invariant(small_case(kind, **{"edges": COMPLETE} | CASES[case]), splits=splits)


@pytest.mark.parametrize("case", [{}, CASES["weights"], CASES["answers"]], ids=["one", "weights", "answers"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in FAST])
def test_urns_near_values_and_powers(kind, case):
    assert_invariant(small_case(kind, COMPLETE, **case), splits=2, num_chains=4000)


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("case", ["weights", "answers"])
def test_the_log_weight_of_what_was_drawn(kind, case):
    """What each draw adds is the log weight of its partition; sure labels, which all draws keep to, add nothing."""
    small = small_case(kind, COMPLETE, **CASES[case])
    likely = small.partition[small.log_weight.argmax()]
    fields = np.zeros(3), np.zeros(3), np.zeros(5)
    expected = Expected(np.zeros(len(small.density.value_share)), *fields)
    drawn = draw(np.random.default_rng(0), likely, *small[:3], sweeps=20, expected=expected)
    known = [small.log_weight[(small.partition == own).all(axis=1)][0] for own in drawn]
    sure = small.graph.label[small.graph.label_worth == SURE]
    known -= SURE * (drawn[:, sure[:, 0]] == drawn[:, sure[:, 1]]).sum(axis=1)
    assert expected.log_weight.sum() == pytest.approx(np.sum(known))


@pytest.mark.parametrize("kind", FAST)
@pytest.mark.parametrize("edges", [RING, COMPLETE], ids=["ring", "complete"])
def test_splits_and_mergers(kind, edges, monkeypatch):
    monkeypatch.setattr(sampler, "_sweep", lambda *rest: None)
    assert_invariant(small_case(kind, edges), sweeps=1, splits=12, num_chains=4000)
    assert_invariant(small_case(kind, edges), sweeps=1, splits=150, alone=True, num_chains=1000)


# ---- errors ----


def python(old="", new=""):
    """Return `draw` as Python runs it, with an error in its source."""
    source = inspect.getsource(densities) + inspect.getsource(sampler).replace("from __future__ import annotations", "")
    assert old in source
    wrong = types.ModuleType("wrong_sampler")
    source = re.sub(r"from consilience.models.block_linkage.densities import \([^)]*\)", "", source)
    source = re.sub(r"@(machine_code|inner|inlined)\n", "", source.replace(old, new))
    exec(compile(source, wrong.__name__, "exec"), vars(wrong))
    return wrong.draw


MISSING = {
    "value": [[0, -1, 0], [0, 1, 0], [-1, 1, 0], [0, -1, 1], [2, -1, 0]],
    "share": [*SHARE[:2], np.array([0.9, 0.1])],
}  # fmt: skip
ERRORS = {
    "one more member is worth nothing": (
        "hit-miss", {}, (
            "total[number] = growth[size] * (factor",
            "total[number] = (factor"
        )
    ),
    "a missing value of the other differs": ("hit-miss", {}, ("if code >= 0 and other >= 0:", "if code >= 0:")),
    "a missing value of the record differs": ("hit-miss", {}, ("if code >= 0 and other >= 0:", "if other >= 0:")),
    "prior odds": ("hit-miss", {}, ("alone = math.exp(alone)\n", "alone = 2 * math.exp(alone)\n")),
    "a cluster counts for each neighbour": (
        "hit-miss", {}, (
            'work.slots[there]["looked"] == record:', "False:"
        )
    ),
    "clusters may fall apart": (
        "hit-miss", {"edges": PATH}, (
            "    return False\n\n\n@inner\ndef _has",
            "    return True\n\n\n@inner\ndef _has"
        )
    ),
    "what is kept is not brought up to date": (
        "hit-miss", {}, (
            "        put(record, own, work)\n        reckon(own, work)\n\n\n@inner\ndef _weigh(",
            "        put(record, own, work)\n\n\n@inner\ndef _weigh("
        )
    ),
    "nothing counts links": ("hit-miss", {"labelled": True}, ("1.0 / (links - work.counter[CLUSTERS])", "1.0")),
    "links are counted wrong": (
        "hit-miss", {"labelled": True}, (
            "(links - work.counter[CLUSTERS])",
            "(3 + links - work.counter[CLUSTERS])"
        )
    ),
    "weights are forgotten": (
        "hit-miss", CASES["weights"], (
            'work.entries[at]["number"] += weight', 'work.entries[at]["number"] += 1'
        )
    ),
    "the others are not counted": (
        "dirichlet-multinomial", {}, (
            'work.cells[own, column]["number"] += weight', "pass"
        )
    ),
    "near values do not count": ("texts", {}, ("if rise > 0:", "if rise > 1e9:")),
    "powers do not count": ("powers", {}, ('found ** field["power"]', "found")),
    "answers do not count": ("hit-miss", CASES["answers"], ('log_ratio += work.labels[at]["worth"]', "pass")),
    "a record goes where it cannot come back": (
        "hit-miss", {"connected": False, "edges": PATH[:-1]}, ("return left > 0 or", "return True or"),
    ),
    "the record is never the head": (
        "error-classes", {}, (
            "summed(total, highest, log_head, weight)",
            "(total, highest)"
        )
    ),
    "heads do not share the probability": ("error-classes", {}, ("- math.log(size + weight) - before", "- before")),
    "heads are not weighed anew": (
        "error-classes", {}, (
            "+= sign * weight * math.log",
            "+= 0 * sign * weight * math.log"
        )
    ),
    "a wrong value may be the right one": (
        "error-classes", {}, (
            "once / max(1 - true_share, share), once / max(1 - share, true_share)",
            "once, once"
        )
    ),
    "the field in error is given": (
        "error-classes", {}, (
            "once = exact * work.classes[1] / num_fields\n",
            "once = exact * work.classes[1]\n"
        )
    ),
    "an error cannot be where a value is missing": (
        "error-classes", MISSING, (
            "work.classes[1] * missing",
            "0 * missing"
        )
    ),
    "copies of a weight have no head among them": (
        "error-classes", CASES["weights"], (
            "(weight - 1) * math.log",
            "0 * math.log"
        )
    ),
}  # fmt: skip
FEW = {"an error cannot be where a value is missing": 8000, "heads are not weighed anew": 8000}
OF_SPLITS = {
    "choices do not count": ("log_ratio += math.log1p(", "log_ratio += 0 * math.log1p("),
    "pieces may be disconnected": ("if split and together and work.connected:", "if False:"),
    "sizes do not count": ('log_ratio -= log_size[work.slots[first]["size"]]', "pass"),
    "a merger is always taken": ("log_uniform >= -log_ratio", "False"),
}


QUICK = ["prior odds", "clusters may fall apart", "the record is never the head"]


@pytest.mark.parametrize("error", slowly(ERRORS, QUICK))
def test_errors_of_the_sweep_are_found(error):
    kind, case, change = ERRORS[error]
    small = small_case(kind, **{"edges": COMPLETE} | case)
    with pytest.raises((AssertionError, KeyError, IndexError, ValueError, ZeroDivisionError)):
        assert_invariant(small, move=python(*change), num_chains=FEW.get(error, 2000), sweeps=2)


@pytest.mark.parametrize("error", slowly(OF_SPLITS, ["sizes do not count"]))
def test_errors_of_splits_are_found(error):
    wrong = python(*OF_SPLITS[error])
    wrong.__globals__["_sweep"] = lambda *rest: None
    edges = RING if "disconnected" in error else COMPLETE
    with pytest.raises((AssertionError, KeyError)):
        assert_invariant(small_case("hit-miss", edges), move=wrong, num_chains=1000, sweeps=1, splits=4)


@pytest.mark.parametrize("kind", FAST)
def test_what_errors_are_measured_against(kind):
    """The same code without an error, run by Python."""
    assert_invariant(small_case(kind, COMPLETE), move=python(), num_chains=500, sweeps=2, splits=1)


# ---- more records ----


def many_records(number=50, weighted=False):
    generator = np.random.default_rng(0)
    value = np.stack([generator.integers(-1, 3, number), 3 + generator.integers(0, 4, number)], axis=1)
    near = np.triu(generator.random((number, number)) < 0.15, 1)
    near |= near.T
    weight = generator.choice([1, 1, 1, 2, 3], number) if weighted else np.ones(number)
    return Graph(
        value.astype(np.int32), weight.astype(np.int32), np.zeros(0, np.int32),
        np.append(0, np.cumsum(near.sum(axis=1))), np.nonzero(near)[1],
    )  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True], ids=["one", "weighted"])
@pytest.mark.parametrize("kind", ["hit-miss", "copies", "error-classes"])
def test_python_draws_the_same_partitions(kind, weighted):
    graph = many_records(weighted=weighted)
    density = density_of(kind, np.repeat([0, 1], [3, 4]), np.concatenate(SHARE[:2]), np.array([0.3, 0.2]))
    log_size = log_size_weights(20.0, np.full(12, 1 / 12))
    given = np.arange(50), graph, density, log_size
    drawn = [move(np.random.default_rng(1), *given, sweeps=3, splits=20) for move in (draw, python())]
    np.testing.assert_array_equal(*drawn)
    assert drawn[0].dtype == np.int32
    assert len(np.unique(drawn[0][-1])) < 45
    first = [np.flatnonzero(drawn[0][-1] == own)[0] for own in drawn[0][-1]]
    np.testing.assert_array_equal(first, drawn[0][-1])      # named by their first records


def test_weights_are_equal_members():
    """A record of weight n and n records that can only be together have the same clusters."""
    weighted = small_case("hit-miss", [(0, 1), (1, 2), (0, 2)], weight=[3, 1, 2], size_share=[1 / 6] * 6)
    found = draw(np.random.default_rng(0), np.arange(3), *weighted[:3], sweeps=20_000, splits=1)
    code = {tuple(labels): number for number, labels in enumerate(weighted.partition.tolist())}
    counts = np.bincount([code[tuple(labels)] for labels in found.tolist()], minlength=len(code))
    np.testing.assert_allclose(counts / len(found), weighted.probability, atol=0.03)


@pytest.mark.parametrize(
    ("kind", "distortion", "sizes", "classes"),
    [
        ("hit-miss", [0.0, 1e-30], [0.5, 0.0, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], CLASSES),
        ("error-classes", [1e-30, 1e-30], np.full(8, 1 / 8), [1 - 2e-30, 1e-30, 1e-30]),
    ],
)
def test_extreme_hyperparameters_of_the_sampler(kind, distortion, sizes, classes):
    """Shares that were rounded to zero and to one, no distortion at all, and powers beyond double precision."""
    edges = [(one, other) for one in range(8) for other in range(one + 1, 8)]
    number = np.arange(8)
    graph = Graph(
        np.array([[0, 2]] * 7 + [[1, 3]], np.int32), np.ones(8, np.int32), np.zeros(0, np.int32), np.arange(9) * 7,
        np.concatenate([np.delete(number, one) for one in number]),
    )
    assert len(edges) * 2 == len(graph.neighbour)
    share = np.tile([1e-6, 1 - 1e-6], 2)
    density = density_of(kind, np.array([0, 0, 1, 1]), share, np.array(distortion), np.array(classes))
    together = np.array([0] * 7 + [7])
    for seed in range(5):
        found = draw(np.random.default_rng(seed), together, graph, density, log_size_weights(10.0, np.array(sizes)))
        np.testing.assert_array_equal(found[0], together)


def test_large_clusters():
    """Sixty noisy copies of five entities, from all alone: powers far beyond double precision."""
    generator = np.random.default_rng(0)
    entity = np.repeat(np.arange(5), 60)
    number = len(entity)
    value = np.stack([entity, 5 + entity, 10 + entity], axis=1)
    value = np.where(generator.random(value.shape) < 0.05, generator.integers(0, 5, value.shape) + [0, 5, 10], value)
    every = np.arange(number)
    graph = Graph(
        value.astype(np.int32), np.ones(number, np.int32), np.zeros(0, np.int32), np.arange(number + 1) * (number - 1),
        np.concatenate([np.delete(every, one) for one in every]),
    )
    density = Density(densities.HIT_MISS, np.repeat([0, 1, 2], 5), np.full(15, 0.2), np.full(3, 0.05), CLASSES)
    share = np.arange(1.0, 401) ** -1.5
    found = draw(generator, every, graph, density, log_size_weights(5.0, share / share.sum()), sweeps=8, splits=30)[-1]
    sizes = np.bincount(found)
    assert 5 <= np.count_nonzero(sizes) <= 20
    assert np.mean(sizes[found]) > 40                       # most are in large ones


def test_a_cluster_that_is_too_large():
    small = small_case("hit-miss", COMPLETE, size_share=[0.5, 0.5])
    with pytest.raises(ValueError, match="more records than log_size has sizes"):
        draw(np.random.default_rng(0), np.zeros(5, int), *small[:3])
