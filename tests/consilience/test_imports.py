"""What is imported when: a wrong file name must not cost the seconds that JAX takes to load."""

import json
import subprocess
import sys

import pytest

_HEAVY = {"jax", "jaxlib", "numpyro", "pandas", "scipy", "matplotlib", "arviz", "optax", "jinja2"}
_AFTER_MAIN = (
    "import json, sys; from consilience.cli import main; code = main(sys.argv[1:]); "
    "print('loaded', json.dumps([code, sorted(sys.modules)]))"
)


def _loaded_by(*words):
    """Return the exit code of the command in a fresh interpreter, and the modules that it left behind."""
    done = subprocess.run([sys.executable, "-c", _AFTER_MAIN, *words], capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stdout.rpartition("loaded ")[2])
    return code, set(modules), done.stderr


def test_importing_the_package_loads_next_to_nothing():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, consilience; print(*sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not (_HEAVY | {"numpy", "argparse"}) & set(done.stdout.split())


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("fit", "--help"), ("fit",), ("fti",)])
def test_the_grammar_needs_no_arrays(words):
    _, modules, _ = _loaded_by(*words)
    assert not (_HEAVY | {"numpy"}) & modules


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fit", "dirichlt", "labels.csv", "-o", "run"), "did you mean 'dirichlet'"),
        (("fit", "dirichlet", "absent.csv", "-o", "run"), "there is no such file"),
        (("fit", "dirichlet", "bad.csv", "-o", "run"), "line 3, column 'label'"),
        (("fit", "prirn", "dawid-skene-1979", "-o", "run"), "takes Rankings"),
        (("fit", "dirichlet", "bad.csv", "-o", "."), "exists and is not a saved fit"),
        (("certainty", "absent"), "is not a folder"),
        (("compare", "bad.csv", "."), "the first argument is that which"),
        (("fit", "bad.csv", "dirichlet", "-o", "run"), "the model comes first: fit dirichlet bad.csv"),
        (("evaluate", ".", "--predictions", "absent.csv"), "there is no such file"),
    ],
)
def test_errors_of_the_command_come_before_jax(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text("item,annotator,label\na,1,x\na,2,\n")
    code, modules, errors = _loaded_by(*words)
    assert code == 1
    assert message in errors
    assert not _HEAVY & modules


def test_a_fit_loads_nothing_that_it_does_not_use():
    code = (
        "import sys, consilience as cs; data = cs.load('dawid-skene-1979'); cs.fit('dawid-skene', data); "
        "fit = cs.fit('dawid-skene', data, method='gibbs', draws=9, chains=1, warmup=1, progress=False); "
        "cs.fit('dawid-skene', data).k_hat(); print('loaded', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("loaded ")[2].split())
    assert "numpyro" in loaded
    assert not {"arviz", "xarray", "optax", "matplotlib", "h5py", "pandas", "scipy.stats"} & loaded
