"""Two processes that hold half of the data each: the answer of one process that holds all, saved and loaded as one."""

import json
import shutil
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.errors import InputError, InvalidFit
from consilience.models import member

# Fits to the parts of one process, as JSON; the fit of the first is saved.
_PROGRAM = """
import json, sys
import jax

arguments = json.loads(sys.argv[1])
jax.config.update("jax_num_cpu_devices", 2)
jax.distributed.initialize(arguments["address"], 2, arguments["process"])

import consilience as cs
from consilience.errors import UnsupportedRequest
from consilience.inference.stored_posterior import posterior_arrays

data = cs.shards(arguments["folder"])
found = {"items": data.items.tolist(), "annotations": data.num_annotations}
for name, method in arguments["fits"]:
    fit = cs.fit(name, data, method=method, devices=4, dependence=0.2, progress=False)
    sites = {site: values.tolist() for site, values in posterior_arrays(fit.posterior).items()}
    found[f"{name} {method}"] = {"steps": fit.run.steps, "elbo": fit.elbo.tolist(), "sites": sites}
    found["labels"] = fit.labels()["item"].tolist()
    if (name, method) == tuple(arguments["fits"][0]):
        fit.save(arguments["saved"])
refused = {
    "certainty": lambda: cs.certainty(fit), "annotators": lambda: fit.annotators(), "k-hat": lambda: fit.k_hat(),
    "devices": lambda: cs.fit("mace", data, method="em"), "gibbs": lambda: cs.fit("mace", data, method="gibbs"),
    "checkpoint": lambda: cs.fit("mace", data, method="em", devices=4, checkpoint="kept"),
    "ease": lambda: cs.fit("glad", data, method="cavi", devices=4),
    "candidates": lambda: cs.fit("mpa", data, method="cavi", devices=4),
}
for name, ask in refused.items():
    try:
        ask()
    except UnsupportedRequest:
        continue
    raise AssertionError(name)
print("FOUND", json.dumps(found))
"""


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    """Return a folder of four parts of a simulated crowd."""
    folder = tmp_path_factory.mktemp("shards")
    data, _ = member("dawid-skene").simulate(
        jax.random.key(3), num_items=103, num_annotators=11, num_labels=4, annotations_per_item=5
    )
    rows = zip(data.item.tolist(), data.annotator.tolist(), data.label.tolist(), strict=True)
    lines = [f"i{item},a{annotator},l{label}\n" for item, annotator, label in rows]
    (folder / "crowd.csv").write_text("item,annotator,label\n" + "".join(lines))
    return cs.code(folder / "crowd.csv", folder / "coded", 4)


def _two_processes(coded, folder, fits):
    """Run two processes, each with a copy of the folder that lacks the parts of the other; return what each found."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    started = []
    for process in range(2):
        own = folder / str(process)
        shutil.copytree(coded, own)
        for part in range(1 - process, 4, 2):
            (own / f"part-{part}.parquet").unlink()
            (own / f"items-{part}.parquet").unlink()
        arguments = {"address": address, "process": process, "folder": str(own), "saved": str(folder / "fit")}
        command = [sys.executable, "-c", _PROGRAM, json.dumps({**arguments, "fits": fits})]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    found = []
    for process in started:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-3000:]
        found.append(json.loads(output.split("FOUND", 1)[1]))
    return found


@pytest.mark.parametrize(
    "fits",
    [
        [["dawid-skene", "cavi"]],
        pytest.param(
            [["dawid-skene", "em"], ["mace", "em"], ["mace", "cavi"], ["one-coin", "cavi"]], marks=pytest.mark.slow
        ),
    ],
)
def test_processes_with_half_of_the_data_find_what_one_finds(coded, tmp_path, fits):
    found = _two_processes(coded, tmp_path, fits)
    data = cs.read_annotations(coded)
    assert sorted(one["annotations"] for one in found) == [255, 260]
    assert sorted(sum((one["items"] for one in found), [])) == sorted(data.items.tolist())
    for name, method in fits:
        whole = cs.fit(name, data, method=method, dependence=0.2, progress=False)
        for one in found:
            own = one[f"{name} {method}"]
            assert one["labels"] == one["items"]
            assert own["steps"] == whole.run.steps
            np.testing.assert_allclose(own["elbo"], whole.elbo, rtol=1e-12)
            rows = [data.items.tolist().index(item) for item in one["items"]]
            for site, values in own["sites"].items():
                expected = _arrays(whole)[site]
                expected = expected[rows] if len(expected) == len(data.items) else expected
                np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12, err_msg=site)
        if [name, method] == fits[0]:
            _check_saved(tmp_path, coded, whole)


def _arrays(fit):
    from consilience.inference.stored_posterior import posterior_arrays

    return posterior_arrays(fit.posterior)


def _check_saved(folder, coded, whole):
    """The annotations are looked for where the first process had them, there without the parts of the other."""
    with pytest.raises(InvalidFit, match="cannot be read"):
        cs.load_fit(folder / "fit")
    for file in coded.iterdir():
        shutil.copy(file, folder / "0" / file.name)
    fit = cs.load_fit(folder / "fit")
    assert fit.data.fingerprint() == whole.data.fingerprint()
    for site, values in _arrays(whole).items():
        np.testing.assert_allclose(_arrays(fit)[site], values, rtol=1e-12, atol=1e-12, err_msg=site)
    assert fit.labels()["item"].tolist() == whole.labels()["item"].tolist()
    np.testing.assert_allclose(fit.labels()["probability"], whole.labels()["probability"], rtol=1e-6)
    fit.save(folder / "again")
    assert cs.load_fit(folder / "again").labels().equals(fit.labels())
    (folder / "fit" / "labels-1.parquet").unlink()
    with pytest.raises(InvalidFit, match=r"labels-1\.parquet is missing"):
        cs.load_fit(folder / "fit")


def test_one_process_reads_all_parts(coded):
    assert cs.shards(coded).fingerprint() == cs.read_annotations(coded).fingerprint()
    with pytest.raises(InputError, match="cannot be read"):
        cs.shards(coded / "elsewhere")
