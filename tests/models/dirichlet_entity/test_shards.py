"""Coordinate ascent of `dirichlet-entity` divided among devices: the answer of one."""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from consilience.errors import UnsupportedRequest
from consilience.models.dirichlet_entity import MODEL
from consilience.models.dirichlet_entity.cavi import CAVI
from consilience.models.dirichlet_entity.problem import anchored_problem
from consilience.models.dirichlet_entity.shards import shard, shard_of_record
from consilience.models.dirichlet_entity.support import Support, anchored
from tests.models.records import records_of

pytestmark = pytest.mark.usefixtures("exact_sizes")


def simulated(num_entities, num_records, seed=0):
    """Return records in no order, copies of entities with errors and missing values."""
    random = np.random.default_rng(seed)
    sizes = (17, 23, 31, 41)
    true = np.stack([random.integers(0, size, num_entities) for size in sizes])
    value = true[:, random.integers(0, num_entities, num_records)]
    other = np.stack([random.integers(0, size, num_records) for size in sizes])
    value = np.where(random.random(value.shape) < 0.1, other, value)
    return records_of(np.where(random.random(value.shape) < 0.05, -1, value), sizes)


def prepare(data, **changed):
    return CAVI.prepare(MODEL.resolve(data, None, {"agree": 3, **changed}))


# ---- on one device: what goes where ----


@pytest.mark.parametrize("number", [1, 2, 4, 7])
def test_no_edge_leaves_a_shard_and_shards_are_balanced(number):
    data = simulated(150, 400)
    support = anchored(data, 3)
    own = shard_of_record(support, number)
    np.testing.assert_array_equal(own[support.record], own[support.entity])
    edges = np.bincount(own[support.record], minlength=number)
    together = np.eye(400, dtype=bool)
    together[support.record, support.entity] = together[support.entity, support.record] = True
    for _ in range(9):
        together = together @ together
    of_part = together[support.record].sum(axis=0)  # edges of the part of each record
    assert edges.max() <= len(support.record) / number + of_part.max()
    assert of_part.max() < len(support.record) / 7


def test_a_shard_holds_what_its_records_had():
    data = simulated(60, 150)
    problem = prepare(data)
    pieces = shard(problem, 3).problem
    for name in ("total", "log_entities", "random"):
        for copy in getattr(pieces, name):
            np.testing.assert_array_equal(copy, getattr(problem, name))
    seen = []
    for one in range(3):
        record, edge = pieces.whole.record[one], pieces.whole.edge[one]
        real = edge < len(problem.support.record)
        seen.extend(edge[real])
        for name in ("record", "entity"):
            local = getattr(pieces.support, name)[one]
            np.testing.assert_array_equal(record[local[real]], getattr(problem.support, name)[edge[real]])
            assert (record[local[~real]] == data.num_records).all()
        bounds = np.searchsorted(pieces.support.record[one], np.arange(len(record) + 1))
        np.testing.assert_array_equal(pieces.support.first[one], bounds)
        # The values that slots stand for, by entity and field, are those of the records.
        slot = pieces.slot[one][:, real]
        missing = problem.slot[:, edge[real]] == len(problem.concentration)
        np.testing.assert_array_equal(slot == pieces.concentration.shape[1], missing)
        entity, field = np.divmod(np.append(pieces.entity_field[one], 0)[slot], data.num_fields)
        whole_cell = np.append(problem.entity_field, 0)[problem.slot[:, edge[real]]]
        np.testing.assert_array_equal(
            np.where(missing, 0, record[entity] * data.num_fields + field), np.where(missing, 0, whole_cell)
        )
        assert (np.diff(pieces.entity_field[one]) >= 0).all()
    np.testing.assert_array_equal(np.sort(seen), np.arange(len(problem.support.record)))


def test_there_may_be_more_shards_than_records():
    data = simulated(2, 3)
    with jax.enable_x64(True):
        problem = prepare(data, agree=1)
        pieces = shard(problem, 5).problem
        states = [CAVI.start(jax.random.key(0), part) for part in parts_of(pieces, 5)]
        whole = CAVI.start(jax.random.key(0), problem)
        _, terms = CAVI.step(whole, problem)
        each = [CAVI.step(state, part)[1] for state, part in zip(states, parts_of(pieces, 5), strict=True)]
        np.testing.assert_allclose(sum(float(one.sum()) for one in each), float(terms.sum()), rtol=1e-13)


def parts_of(pieces, number):
    return [jax.tree.map(lambda values, one=one: values[one], pieces) for one in range(number)]


def test_a_dense_support_is_not_divided():
    problem = prepare(simulated(5, 9), support="dense")
    with pytest.raises(UnsupportedRequest, match="dense support"):
        shard(problem, 2)
    assert CAVI.shard is shard


def test_a_connected_support_goes_to_one_shard():
    data = simulated(5, 6)
    every = np.arange(6, dtype=np.int32)
    chain = Support(
        np.array([0, 1, 3, 5, 7, 9, 11], np.int32), np.repeat(every, 2)[1:], np.stack([every - 1, every], 1).ravel()[1:]
    )
    own = shard_of_record(chain, 4)
    assert len(np.unique(own)) == 1
    pieces = shard(anchored_problem(data, np.full(data.num_values, 0.3), chain, 6, "records"), 4).problem
    np.testing.assert_array_equal((pieces.whole.record < 6).sum(axis=1) % 6, 0)


# ---- on several devices, in a process that has them ----

_PROGRAM = """
import json, sys, warnings
import jax

jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_enable_x64", sys.argv[2] == "True")
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])

import numpy as np
import consilience as cs
from test_shards import simulated

data, found = simulated(150, 400), {}
for start, devices in (("records", 1), ("records", 2), ("records", 4), ("random", 1), ("random", 4)):
    fit = cs.fit("dirichlet-entity", data, devices=devices, start=start, agree=3, progress=False, seed=5)
    assert fit.attributes["devices"] == devices
    sites = {name: np.asarray(values).tolist() for name, values in fit.posterior.hidden.items()}
    found[f"{start} {devices}"] = sites | {"elbo": fit.elbo.tolist(), "estimate": fit.truth.estimate().tolist()}
try:
    cs.fit("dirichlet-entity", data, devices=2, support="dense")
except cs.errors.UnsupportedRequest as refused:
    found["dense"] = str(refused)
print("FOUND", json.dumps(found))
"""


@pytest.mark.parametrize(
    ("x64", "tolerance"), [(True, 1e-10), pytest.param(False, 1e-4, marks=pytest.mark.slow)]
)
def test_devices_find_what_one_finds(x64, tolerance):
    folder = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, folder, str(x64)], capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.split("FOUND", 1)[1])
    assert "dense support" in found["dense"]
    for start, devices in (("records", 2), ("records", 4), ("random", 4)):
        one, several = found[f"{start} 1"], found[f"{start} {devices}"]
        assert len(one["elbo"]) > 3
        assert any(one["moved"])
        for name in ("first", "entity", "moved", "estimate"):
            assert several[name] == one[name], name
        np.testing.assert_allclose(several["elbo"], one["elbo"], rtol=tolerance)
        np.testing.assert_allclose(several["probability"], one["probability"], rtol=0, atol=tolerance)
