"""Components divided, into batches, parts and among devices: the answer of all at once."""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.enumeration import conflicts, enumerate_blocks, pairs_within, size_terms
from consilience.models.block_linkage.likelihoods import LIKELIHOODS

SIZE_SHARE = np.array([0.6, 0.2, 0.1, 0.05, 0.03, 0.02])
FIRST, LENGTHS = np.array([0, 3, 23]), np.array([3, 20, 2])


def case(num_records, num_components, restriction="none", likelihood="hit-miss", seed=0):
    """Return the arguments of `enumerate_blocks`, with missing values."""
    random = np.random.default_rng(seed)
    share = np.concatenate([[0.6, 0.3, 0.1], np.full(20, 0.05), [0.5, 0.5]])
    values = FIRST[:, None] + random.integers(0, LENGTHS[:, None], (num_records, 3, num_components))
    values = np.where(random.random(values.shape) < 0.2, -1, values)
    source = random.integers(0, 3, num_records * num_components)
    members = np.arange(num_records * num_components).reshape(num_components, num_records)
    return (
        values, share, np.array([0.05, 0.2, 0.5]), size_terms(8.0, SIZE_SHARE, num_records, np),
        LIKELIHOODS[likelihood], conflicts(source, members, restriction),
    )  # fmt: skip


def part_of(given, which):
    values, *shared, conflict = given
    return values[..., which], *shared, None if conflict is None else conflict[..., which]


def statistics(values, found):
    """Return what EM sums: pairs that agree and that have each field, clusters by size, evidence."""
    first, second = pairs_within(len(values))
    observed = (values[first] >= 0) & (values[second] >= 0)
    agree = observed & (values[first] == values[second])
    pair = found.pair.astype(float)
    weighed = [np.einsum("pc,pfc->f", pair, which) for which in (agree, observed)]
    return np.concatenate([*weighed, found.sizes.sum(axis=1, dtype=float), [found.log_evidence.sum(dtype=float)]])


@pytest.mark.parametrize("chunk", [1, 5, 64, 101, 1000])
@pytest.mark.parametrize("restriction", ["none", "across"])
def test_batches_of_any_size_are_one(chunk, restriction):
    given = case(4, 101, restriction)
    for dtype, tolerance in ((np.float32, 2e-6), (np.float64, 1e-14)):
        whole, batches = (enumerate_blocks(*given, dtype=dtype, chunk=number) for number in (101, chunk))
        for one, other in zip(whole, batches, strict=True):
            # NumPy sums the arrays of a single component in another order.
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("num_records", [2, 3, 6])
def test_statistics_of_parts_add_up(num_records):
    given = case(num_records, 200)
    whole = statistics(given[0], enumerate_blocks(*given, dtype=np.float64))
    owner = np.random.default_rng(1).integers(0, 3, 200)
    parts = [part_of(given, owner == one) for one in range(3)]
    summed = sum(statistics(part[0], enumerate_blocks(*part, dtype=np.float64)) for part in parts)
    np.testing.assert_allclose(summed, whole, rtol=1e-13)
    assert (whole != 0).all()


def mesh_of(number):
    return jax.make_mesh((number,), ("shard",), axis_types=(AxisType.Auto,), devices=jax.devices()[:number])


def test_one_device_finds_what_numpy_finds():
    for num_records, number in ((2, 70), (5, 33), (3, 0)):
        given = case(num_records, number)
        for one, other in zip(
            enumerate_blocks(*given), enumerate_blocks(*given, chunk=16, mesh=mesh_of(1)), strict=True
        ):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


# ---- on several devices, in a process that has them ----

_PROGRAM = """
import json, sys, warnings
import jax

jax.config.update("jax_num_cpu_devices", 4)
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])

import numpy as np
import consilience as cs
from consilience.models.block_linkage import MODEL
from consilience.models.block_linkage.enumeration import enumerate_blocks
from test_sharding import case, mesh_of

arguments = json.loads(sys.argv[2])
equal, apart = [], {"float32": 0.0, "float64": 0.0}
for likelihood, restriction, num_records, dtype in arguments["cases"]:
    given = case(num_records, 150, restriction, likelihood)
    host = enumerate_blocks(*given, dtype=dtype)
    found = [enumerate_blocks(*given, dtype=dtype, chunk=16, mesh=mesh_of(each)) for each in arguments["devices"]]
    assert found[0].pair.dtype == dtype
    equal += [all(map(np.array_equal, found[0], other)) for other in found]
    differences = [np.abs(one - other).max() for one, other in zip(host, found[0])]
    apart[dtype] = max(apart[dtype], float(max(differences)))

records, _ = MODEL.simulate(jax.random.key(4), num_records=600, missing=0.03, size_share=(0.75, 0.19, 0.06))
fits = []
for devices in (None, *arguments["devices"]):
    fit = cs.fit("block-linkage", records, devices=devices, seed=1, largest=arguments["largest"])
    assert fit.attributes.get("devices") == devices
    pairs, posterior = fit.truth.pairs(), fit.posterior
    parameters = [posterior.distortion, posterior.size_share, [posterior.intensity]]
    fits.append({
        "parameters": np.concatenate(parameters).tolist(), "evidence": fit.elbo.tolist(),
        "probability": posterior.probability.tolist(), "member": posterior.member.tolist(),
        "estimate": fit.truth.estimate().tolist(), "pairs": np.stack([pairs.first, pairs.second]).tolist(),
    })
print("FOUND", json.dumps({"equal": equal, "apart": apart, "fits": fits}))
"""

_CASES = [
    [likelihood, restriction, num_records, dtype]
    for likelihood, restriction, num_records in (
        ("hit-miss", "none", 2), ("hit-miss", "across", 4), ("dirichlet-multinomial", "none", 6)
    )
    for dtype in ("float32", "float64")
]  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        {"devices": [1, 4], "largest": 2, "cases": [["hit-miss", "across", 3, "float64"]]},
        pytest.param({"devices": [1, 2, 4], "largest": 6, "cases": _CASES}, marks=pytest.mark.slow),
    ],
)
def test_devices_find_what_numpy_finds(arguments):
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, os.path.dirname(__file__), json.dumps(arguments)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.split("FOUND", 1)[1])
    # Each component is enumerated by the same program, wherever it is: not a bit depends on the number of devices.
    assert all(found["equal"])
    assert found["apart"]["float64"] < 1e-10
    assert found["apart"]["float32"] < 1e-5
    host, first, *others = found["fits"]
    for other in others:
        assert other == first
    for name in ("member", "estimate", "pairs"):
        assert first[name] == host[name], name
    assert len(host["pairs"][0]) > 20
    np.testing.assert_allclose(first["probability"], host["probability"], rtol=0, atol=2e-6)
    np.testing.assert_allclose(first["parameters"], host["parameters"], rtol=1e-5)
    np.testing.assert_allclose(first["evidence"], host["evidence"], rtol=1e-7)


def test_more_devices_than_there_are_is_refused():
    clinic = {"id": ["a", "b", "c"], "name": ["Ann", "Ann", "Bob"]}
    records = cs.read_records([clinic])
    with pytest.raises(UnsupportedRequest, match="JAX sees"):
        cs.fit("block-linkage", records, devices=64)
