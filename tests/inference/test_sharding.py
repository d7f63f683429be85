"""Items divided among devices and processes: the answer of one device, up to rounding.

A process has the devices that it was started with, so that these tests start processes of their own.
"""

import json
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.models import member
from consilience.models.rows import divide_items, divide_rows, sorted_order, sum_rows

# Fits of a simulated crowd by every ascent that can be divided, as JSON: steps, objective, posterior by site.
_PROGRAM = """
import json, sys, warnings
import jax

warnings.simplefilter("ignore")
arguments = json.loads(sys.argv[1])
jax.config.update("jax_num_cpu_devices", arguments["local_devices"])
jax.config.update("jax_enable_x64", arguments["x64"])
if arguments["processes"] > 1:
    jax.distributed.initialize(arguments["address"], arguments["processes"], arguments["process"])

import numpy as np
import consilience as cs
from consilience.inference.stored_posterior import posterior_arrays
from consilience.models import member

data, _ = member("dawid-skene").simulate(
    jax.random.key(3), num_items=103, num_annotators=11, num_labels=4, annotations_per_item=5
)
found = {}
for name, method in arguments["fits"]:
    for devices in arguments["devices"]:
        settings = {"max_steps": 40, "accelerate": False, **arguments.get("settings", {})}
        fit = cs.fit(name, data, method=method, devices=devices, **settings)
        sites = posterior_arrays(fit.posterior)
        found[f"{name} {method} {devices}"] = {
            "result": str(fit.result), "elbo": fit.elbo.tolist(),
            "sites": {site: np.asarray(values).tolist() for site, values in sites.items()}
        }
if arguments["process"] == 0:
    print("FOUND", json.dumps(found))
"""

# The same of a mixture, whose steps are extrapolated, and of members, to their end and in the precision of `fit`.
_TO_THE_END = """
import json, sys, warnings
import jax

warnings.simplefilter("ignore")
jax.config.update("jax_num_cpu_devices", 4)

import numpy as np
import consilience as cs
from consilience.inference.ascent import run_ascent
from consilience.models import member
from tests.inference import mixtures

found = {}
with jax.enable_x64(True):
    for apart in (0.4, 1.5):
        problem = mixtures.problem(apart=apart)
        for devices in (1, 2, 4):
            run = run_ascent(mixtures.EM, problem, key=jax.random.key(0), devices=devices, progress=False)
            found[f"mixture {apart} {devices}"] = [run.steps, run.elbo.tolist(), run.samples["q"].tolist()]
data, _ = member("dawid-skene").simulate(
    jax.random.key(3), num_items=203, num_annotators=11, num_labels=4, annotations_per_item=5
)
for name, method in json.loads(sys.argv[1]):
    for devices in (1, 2, 4):
        fit = cs.fit(name, data, method=method, devices=devices, progress=False)
        assert str(fit.result) == "converged"
        found[f"{name} {method} {devices}"] = [
            fit.run.steps, fit.elbo.tolist(), fit.truth.label_probabilities().probability.tolist()
        ]
print("FOUND", json.dumps(found))
"""

# Chains on several numbers of devices: all draws by site.
_CHAINS = """
import json, sys, warnings
import jax

warnings.simplefilter("ignore")
jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_enable_x64", True)

import numpy as np
import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.inference.stored_posterior import posterior_arrays
from consilience.models import member

found = {}
for name, method, options in json.loads(sys.argv[1]):
    data, _ = member(options.pop("of", name)).simulate(jax.random.key(3), **options.pop("sizes"))
    for devices in json.loads(sys.argv[2]):
        fit = cs.fit(name, data, method=method, devices=devices, draws=5, chains=4, progress=False, **options)
        found[f"{name} {method} {devices}"] = {
            site: np.asarray(values, float).tolist() for site, values in posterior_arrays(fit.posterior).items()
        }
        assert fit.attributes["devices"] == devices
    for devices, chains, words in ((3, 4, "give a multiple of 3 chains"), (8, 8, "JAX sees 4")):
        try:
            cs.fit(name, data, method=method, devices=devices, chains=chains)
        except UnsupportedRequest as error:
            assert words in str(error), error
        else:
            raise AssertionError("not refused")
print("FOUND", json.dumps(found))
"""

_CROWD = {"num_items": 23, "num_annotators": 5, "num_labels": 3, "annotations_per_item": 3}
_SAMPLERS = [["dawid-skene", "gibbs", {"sizes": _CROWD, "warmup": 20}]]
_MORE_SAMPLERS = [
    ["dirichlet", "nuts", {"sizes": {"num_items": 5}, "warmup": 20}],
    ["mace", "gibbs", {"of": "dawid-skene", "sizes": _CROWD, "warmup": 20}],
    ["mpa", "gibbs", {"of": "dawid-skene", "sizes": _CROWD, "warmup": 20}],
    ["plackett-luce", "gibbs", {"sizes": {"num_items": 9}, "warmup": 20}],
    ["dawid-skene", "nuts", {"sizes": _CROWD, "warmup": 20}],
]

_FITS = [["dawid-skene", "cavi"], ["dawid-skene", "em"], ["mace", "cavi"], ["mace", "em"], ["mpa", "cavi"]]


def _start(**arguments):
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, json.dumps(arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def _found(process):
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors[-3000:]
    return json.loads(output.split("FOUND", 1)[1]) if "FOUND" in output else None


def _assert_equal(one, other, tolerance):
    np.testing.assert_allclose(one["elbo"], other["elbo"], rtol=tolerance)
    assert one["sites"].keys() == other["sites"].keys()
    for site, values in one["sites"].items():
        np.testing.assert_allclose(values, other["sites"][site], rtol=tolerance, atol=tolerance, err_msg=site)


@pytest.mark.parametrize(
    ("x64", "tolerance", "fits", "several"),
    [
        (True, 1e-12, [["mace", "cavi"], ["mpa", "cavi"]], [8]),
        pytest.param(False, 1e-5, [["dawid-skene", "cavi"]], [2, 8], marks=pytest.mark.slow),
        pytest.param(True, 1e-12, _FITS, [2, 8], marks=pytest.mark.slow),
    ],
)
def test_devices_share_the_items_of_one_process(x64, tolerance, fits, several):
    found = _found(_start(x64=x64, processes=1, process=0, local_devices=8, devices=[1, *several], fits=fits))
    for name, method in fits:
        for devices in several:
            _assert_equal(found[f"{name} {method} 1"], found[f"{name} {method} {devices}"], tolerance)


@pytest.mark.parametrize("fits", [[["mace", "em"]], pytest.param(_FITS, marks=pytest.mark.slow)])
def test_any_number_of_devices_stops_at_the_same_step(fits):
    command = [sys.executable, "-c", _TO_THE_END, json.dumps(fits)]
    found = _found(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    assert len(found) == 3 * (2 + len(fits))
    for name, (steps, objective, probability) in found.items():
        one = found[name[:-1] + "1"]
        assert steps == one[0], name
        np.testing.assert_allclose(objective, one[1], rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(probability, one[2], atol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    ("samplers", "several"),
    [(_SAMPLERS, [1, 4]), *(pytest.param([one], [1, 2, 4], marks=pytest.mark.slow) for one in _MORE_SAMPLERS)],
)
def test_any_number_of_devices_draws_the_same_chains(samplers, several):
    command = [sys.executable, "-c", _CHAINS, json.dumps(samplers), json.dumps(several)]
    found = _found(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    assert len(found) == len(several) * len(samplers)
    for name, sites in found.items():
        one = found[name[:-1] + "1"]
        assert sites.keys() == one.keys()
        # A trajectory of NUTS makes rounding errors larger.
        tolerance = 1e-5 if " nuts " in name else 1e-12
        for site, values in sites.items():
            np.testing.assert_allclose(values, one[site], rtol=tolerance, atol=tolerance, err_msg=f"{name} {site}")
            assert np.ndim(values) < 3 or np.ptp(values, axis=0).max() > 0, "chains differ"


def _of_processes(number, **settings):
    """Run so many processes of two devices each, and return what the first one found."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    common = {"x64": True, "local_devices": 2, "fits": [["dawid-skene", "cavi"]], "settings": settings}
    started = [
        _start(processes=number, process=process, address=address, devices=[2 * number], **common)
        for process in range(number)
    ]
    return [_found(process) for process in started][0][f"dawid-skene cavi {2 * number}"]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_processes_share_the_items(processes):
    alone = _found(
        _start(processes=1, process=0, local_devices=1, devices=[1], x64=True, fits=[["dawid-skene", "cavi"]])
    )
    _assert_equal(alone["dawid-skene cavi 1"], _of_processes(processes), 1e-12)


@pytest.mark.slow
def test_processes_go_on_from_their_checkpoint(tmp_path):
    whole = _of_processes(2, max_steps=60)
    kept = {"checkpoint": str(tmp_path / "kept"), "max_steps": 60}
    first = _of_processes(2, time_limit=0.0, **kept)
    assert (first["result"], len(first["elbo"])) == ("interrupted", 20)
    assert _of_processes(2, resume=True, **kept) == whole
    assert not (tmp_path / "kept").exists()


def test_what_cannot_be_divided_is_refused():
    data, _ = member("dawid-skene").simulate(jax.random.key(0), num_items=5, num_annotators=3)
    with pytest.raises(UnsupportedRequest, match="JAX sees"):
        cs.fit("dawid-skene", data, method="cavi", devices=64)
    with pytest.raises(UnsupportedRequest, match="one device"):
        cs.fit("dawid-skene", data, method="svi", devices=2)
    with pytest.raises(UnsupportedRequest, match="JAX sees"):
        cs.fit("dawid-skene", data, method="gibbs", devices=64, chains=64)
    with pytest.raises(UnsupportedRequest, match="'exact' runs on one device"):
        cs.fit("majority-vote", data, devices=2)


# ---- rows ----


def _table(number, num_places, seed=0):
    random = np.random.default_rng(seed)
    return np.sort(random.integers(0, num_places, number)).astype(np.int32), random.random(number).astype(np.float32)


@pytest.mark.parametrize("num_places", [7, 200_000])
def test_blocks_sum_as_one_piece(num_places):
    place, value = _table(300_001, num_places)
    rows = tuple(map(jax.numpy.asarray, (place, value)))
    total = sum_rows(lambda rows: rows, rows, (num_places,), np.float32)
    np.testing.assert_allclose(total, np.bincount(place, value.astype(float), num_places), rtol=3e-5)


def test_equal_codes_keep_their_order():
    codes = np.random.default_rng(1).integers(0, 50, 1000).astype(np.int32)
    np.testing.assert_array_equal(sorted_order(codes), np.argsort(codes, kind="stable"))
    assert len(sorted_order(codes[:0])) == 0


@pytest.mark.parametrize(("num_places", "tolerance"), [(1, 3e-3), (200_000, 1e-2)])
def test_very_many_rows_of_one_place_keep_their_digits(num_places, tolerance):
    value = np.full(1 << 23, 0.2, np.float32)
    rows = tuple(map(jax.numpy.asarray, (np.zeros(len(value), np.int32), value)))
    total = sum_rows(lambda rows: rows, rows, (num_places,), np.float32)
    np.testing.assert_allclose(total[0], 0.2 * len(value), rtol=tolerance)


def test_sums_over_many_rows_have_gradients():
    place = jax.numpy.asarray(np.arange(300_000) % 3, np.int32)
    gradient = jax.grad(lambda x: (sum_rows(lambda rows: (rows, jax.numpy.full(rows.shape, x)), place, (3,), x.dtype)
                                   * jax.numpy.arange(3.0)).sum())(1.0)  # fmt: skip
    np.testing.assert_allclose(gradient, 300_000, rtol=1e-6)


def test_parts_hold_all_rows_of_their_items():
    place, value = _table(50, 11)
    first, size = divide_items(11, 4)
    np.testing.assert_array_equal(first, [0, 3, 6, 9, 11])
    assert size == 3
    boundaries = np.searchsorted(place, first)
    parts, values = divide_rows((place, value), boundaries, (-1, 0.0))
    assert parts.shape == values.shape == (4, np.diff(boundaries).max())
    np.testing.assert_array_equal(parts[parts >= 0], place)
    np.testing.assert_array_equal(values[parts >= 0], value)
    assert (values[parts < 0] == 0).all()


def test_there_may_be_more_parts_than_items():
    first, size = divide_items(2, 8)
    np.testing.assert_array_equal(first, [0, 1, 2, 2, 2, 2, 2, 2, 2])
    part = divide_rows(np.zeros(0, np.float32), np.zeros(9, int), 0.5)
    np.testing.assert_array_equal(part, np.full((8, 1), 0.5, np.float32))
    assert size == 1
