"""Checkpoints: whatever stops a run, it goes on to the bits of a run that nothing stopped, or it is refused."""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import consilience as cs
from consilience.data import Annotations, Ratings
from consilience.errors import InvalidCheckpoint, UnsupportedRequest
from consilience.inference import checkpoints
from consilience.inference.ascent import run_ascent
from consilience.inference.checkpoints import FORMAT, Checkpoint
from consilience.inference.durable import text_digest
from consilience.inference.generic import DrawStore, GenericRun
from consilience.inference.gibbs import run_gibbs
from consilience.inference.identity import program_identity
from consilience.inference.loop import run_chunks, scan_steps
from consilience.inference.nuts import run_nuts
from consilience.inference.results import Result
from consilience.inference.stored_posterior import posterior_arrays
from consilience.inference.stored_priors import describe_priors
from consilience.inference.svi import run_svi
from consilience.models import dawid_skene
from consilience.models.interface import Ascent, Gibbs
from consilience.models.posterior import Estimate
from tests.inference import mixtures
from tests.inference.runs import stop_at

IDENTITY = {"model": "walk", "seed": 0}


# ---- one small run for every driver ----


def skewed(data):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    numpyro.sample("counts", dist.Poisson(rate), obs=data)


def _sweep(key, state, problem):
    key_mean, key_precision = jax.random.split(key)
    mean = problem.mean() + jax.random.normal(key_mean) / jnp.sqrt(len(problem) * state["precision"])
    return {"mean": mean, "precision": jax.random.gamma(key_precision, 3.0) / (1 + jnp.sum((problem - mean) ** 2))}


SAMPLER = Gibbs(
    prepare=lambda resolved: resolved.data,
    start=lambda key, problem: {"mean": jax.random.normal(key), "precision": jnp.ones(())},
    sweep=_sweep,
    sites=lambda state, problem: state,
)
ASCENT = Ascent(
    name="em",
    prepare=lambda resolved: resolved.data,
    start=lambda key, problem: jnp.zeros(()),
    step=lambda state, problem: (state + 0.002 * jnp.mean(problem - state), -((problem - state) ** 2)),
    sites=lambda state, problem: {"mean": state},
    finish=lambda values, resolved: Estimate(values),
)
DATA = np.array([1.0, 4.0, 2.0, 7.0], np.float32)


def crowd():
    random = np.random.default_rng(5)
    item, annotator = np.indices((40, 4)).reshape(2, -1)
    return Annotations.from_codes(item, annotator, random.integers(0, 3, 160), num_labels=3)


@functools.cache
def cavi_problem():
    return dawid_skene.MODEL.engine("cavi").prepare(dawid_skene.MODEL.resolve(crowd()))


@functools.cache
def _mixture():
    return mixtures.problem()


@jax.jit
def _walk(state, start, stop):
    def step(state, index):
        state = state + jax.random.normal(jax.random.fold_in(jax.random.key(3), index))
        return state, {"x": state[None]}

    return scan_steps(step, state, start, stop, length=20)


def run_walk(num_steps, skip, **options):
    store = DrawStore(num_steps - skip, skip=skip)
    outcome = run_chunks(
        _walk, jnp.float32(0), num_steps=num_steps, chunk_size=20, skip=skip, collect=store,
        finite=lambda output: np.isfinite(output["x"]).all(axis=1), **options,
    )  # fmt: skip
    draws = store.finished(outcome.steps, lambda: {"x": np.empty((0, 1))})
    return GenericRun(draws, {}, outcome.result, outcome.steps, outcome.seconds, outcome.message)


DRIVERS = {
    "walk": lambda **options: run_walk(4000, 100, **options),
    "gibbs": lambda **options: run_gibbs(SAMPLER, DATA, key=jax.random.key(1), draws=4000, chains=2, **options),
    "em": lambda **options: run_ascent(ASCENT, DATA, key=jax.random.key(1), tolerance=1e-6, **options),
    "cavi": lambda **options: run_ascent(
        dawid_skene.MODEL.engine("cavi"), cavi_problem(), key=jax.random.key(1), tolerance=0.0, max_steps=2000,
        **options,
    ),
    "accelerated": lambda **options: run_ascent(
        mixtures.EM, _mixture(), key=jax.random.key(1), tolerance=0.0, max_steps=2000, **options
    ),
    "nuts": lambda **options: run_nuts(
        skewed, DATA, key=jax.random.key(2), draws=900, chains=2, warmup=100, **options
    ),
    # A posterior that is far from the start, so that the run takes many chunks.
    "svi": lambda **options: run_svi(
        skewed, 1e4 * DATA, key=jax.random.key(0), draws=150, learning_rate=1e-3, **options
    ),
}  # fmt: skip


def digest(run):
    """Return a digest of all the numbers of a run, and how it ended."""
    numbers = hashlib.sha256()
    for leaf in jax.tree.leaves((run.samples, run.stats, run.elbo, run.k_hat)):
        numbers.update(np.ascontiguousarray(leaf).tobytes())
    return f"{numbers.hexdigest()} {run.result} {run.steps}"


def resumed(folder, seconds=5.0, **changes):
    return Checkpoint(folder, resume=True, seconds=seconds).open(IDENTITY | changes)


# ---- the same bits ----


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_interrupted_run_ends_with_the_bits_of_one_that_was_not(driver, tmp_path, compilations):
    run = DRIVERS[driver]
    whole = run()
    compilations.clear()
    stops = [*range(1, 7), *np.random.default_rng(0).integers(7, whole.steps, 6)]
    seconds = 0.0
    for stop in map(int, sorted(stops)):
        with resumed(tmp_path / "run") as checkpoint:
            part = run(checkpoint=checkpoint, progress=stop_at(stop))
        assert part.result is Result.interrupted
        assert checkpoint.resumed_at is None or checkpoint.resumed_at <= part.steps
        assert part.seconds > seconds
        seconds = part.seconds
        if part.steps == whole.steps:
            break
    with resumed(tmp_path / "run") as checkpoint:
        assert digest(run(checkpoint=checkpoint)) == digest(whole)
    assert not compilations
    # A run that is complete stays so: nothing is left but to return it.
    with resumed(tmp_path / "run") as checkpoint:
        assert checkpoint.resumed_at == whole.steps
        assert digest(run(checkpoint=checkpoint, progress=stop_at(0))) == digest(whole)
    checkpoint.remove()
    assert not (tmp_path / "run").exists()


def test_a_time_limit_leaves_a_run_to_go_on_with(tmp_path):
    for _ in range(3):
        with resumed(tmp_path / "run") as checkpoint:
            part = DRIVERS["walk"](checkpoint=checkpoint, time_limit=0.0)
        assert part.result is Result.interrupted
    assert checkpoint.resumed_at > 0
    with resumed(tmp_path / "run") as checkpoint:
        assert digest(DRIVERS["walk"](checkpoint=checkpoint)) == digest(DRIVERS["walk"]())


@pytest.mark.parametrize("fatal", [False, True])
def test_a_stop_at_any_point_of_a_write_loses_nothing(tmp_path, monkeypatch, fatal):
    """Neither Ctrl-C at any operation on files, nor a kill there, of which a copy of the folder is what is left."""
    monkeypatch.setattr(checkpoints, "_SHARE", 0)  # a write after every chunk, whatever it costs
    whole = digest(run_walk(60, 10))
    for count in itertools.count():
        folder, calls = tmp_path / f"{count}", []

        def stopped(original, calls=calls, folder=folder, count=count):
            def operation(*args, **options):
                calls.append(original)
                if len(calls) == count + 1:
                    if not fatal:
                        raise KeyboardInterrupt
                    shutil.copytree(folder, folder.with_suffix(".left"))
                return original(*args, **options)

            return operation

        with monkeypatch.context() as patch:
            for name in ("fsync", "replace", "unlink"):
                patch.setattr(os, name, stopped(getattr(os, name)))
            with contextlib.suppress(KeyboardInterrupt), resumed(folder, seconds=0.0) as checkpoint:
                run_walk(60, 10, checkpoint=checkpoint)
        if len(calls) <= count:
            break
        with resumed(folder.with_suffix(".left") if fatal else folder) as checkpoint:
            assert digest(run_walk(60, 10, checkpoint=checkpoint)) == whole
    assert count > 30


def test_an_interrupt_between_the_rows_of_a_chunk_and_its_state_stores_no_row_twice(tmp_path):
    asked = []

    def converged(rows):
        asked.append(rows)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return False

    with resumed(tmp_path / "run") as checkpoint:
        part = run_walk(200, 10, checkpoint=checkpoint, converged=converged)
    assert (part.result, part.steps) == (Result.interrupted, 40)
    with resumed(tmp_path / "run") as checkpoint:
        assert checkpoint.resumed_at == 40
        assert digest(run_walk(200, 10, checkpoint=checkpoint)) == digest(run_walk(200, 10))


def test_convergence_is_remembered_when_ctrl_c_comes_with_it(tmp_path):
    def converged(rows):
        return len(rows["x"]) == 20

    whole = run_walk(200, 10, converged=converged)
    with resumed(tmp_path / "run") as checkpoint:
        part = run_walk(200, 10, checkpoint=checkpoint, converged=converged, progress=stop_at(1))
    assert (part.result, whole.result) == (Result.interrupted, Result.converged)
    with resumed(tmp_path / "run") as checkpoint:
        assert digest(run_walk(200, 10, checkpoint=checkpoint, converged=converged)) == digest(whole)


def test_a_non_finite_step_leaves_the_last_finite_state(tmp_path):
    @jax.jit
    def advance(state, start, stop):
        def step(state, index):
            state = jnp.where(index == 21, jnp.nan, state + 1)
            return state, {"x": state}

        return scan_steps(step, state, start, stop, length=8)

    rows = []
    options = {"num_steps": 99, "chunk_size": 8, "converged": lambda output: False}
    options |= {"finite": lambda output: np.isfinite(output["x"]), "collect": lambda rows_, start: rows.append(rows_)}
    for first in (True, False):
        rows.clear()
        with resumed(tmp_path / "run") as checkpoint:
            assert checkpoint.resumed_at == (None if first else 16)
            outcome = run_chunks(advance, jnp.float32(0), checkpoint=checkpoint, **options)
        assert (outcome.result, outcome.steps, float(outcome.state)) == (Result.nonfinite, 21, 16.0)
        assert "step 21" in outcome.message
        np.testing.assert_array_equal(np.concatenate([row["x"] for row in rows]), np.arange(1, 22))


def test_rows_of_the_warm_up_are_not_stored(tmp_path):
    with resumed(tmp_path / "run", seconds=0.0) as checkpoint:
        run_walk(200, 150, checkpoint=checkpoint, progress=stop_at(170))
    stored = [np.load(path)["leaf-0"] for path in (tmp_path / "run").glob("draws-*.npz")]
    text = json.loads((tmp_path / "run" / "checkpoint.json").read_text())
    assert sum(map(len, stored)) == text["step"] - 150
    assert min(part["start"] for part in text["draws"]) == 150


def test_writes_go_by_time(tmp_path):
    for seconds, most in ((5.0, 1), (0.0, 1000)):
        writes = []
        with resumed(tmp_path / f"{seconds}", seconds=seconds) as checkpoint:
            original = checkpoint.write
            checkpoint.write = lambda *args, original=original, writes=writes, **options: (
                writes.append(args) or original(*args, **options)
            )
            run_walk(200, 0, checkpoint=checkpoint)
        assert 1 <= len(writes) <= most
        assert seconds > 0 or len(writes) > 1


# ---- what is stored ----


class _State(NamedTuple):
    key: jax.Array
    numbers: dict
    nothing: None


def _state(fill):
    return _State(
        key=jax.random.split(jax.random.key(fill), 3),
        numbers={
            "float": jnp.array([fill, jnp.nan, -jnp.inf, 1e-40], jnp.float32),
            "half": jnp.arange(fill, fill + 5, dtype=jnp.bfloat16),
            "whole": jnp.full((2, 0, 3), fill, jnp.int8),
            "flag": jnp.array(fill > 0),
            "raw": jax.random.PRNGKey(fill),
            "other": jax.random.key(fill, impl="rbg"),
        },
        nothing=None,
    )


def test_states_come_back_as_they_were(tmp_path):
    state, fresh = _state(7), _state(0)
    with resumed(tmp_path / "run") as checkpoint:
        assert checkpoint.restore(fresh).state is fresh
        checkpoint.write(state, 12, converged=True, seconds=3.0)
    with resumed(tmp_path / "run") as checkpoint:
        restored = checkpoint.restore(fresh)
    assert restored[1:] == (12, True, 3.0)
    assert jax.tree.structure(restored.state) == jax.tree.structure(state)

    def same(found, wanted):
        assert (found.dtype, found.shape, found.aval.weak_type) == (wanted.dtype, wanted.shape, False)
        assert (found.sharding, found.committed) == (wanted.sharding, wanted.committed)
        if jnp.issubdtype(found.dtype, jax.dtypes.prng_key):
            found, wanted = jax.random.key_data(found), jax.random.key_data(wanted)
        assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()

    jax.tree.map(same, restored.state, state)


@pytest.mark.parametrize(
    "rows", [np.arange(6.0).reshape(3, 2), {"a/b": {"c": np.arange(3)}, "d": np.zeros((3, 2), bool)}]
)
def test_rows_come_back_as_they_were(tmp_path, rows):
    parts = [jax.tree.map(lambda leaf, n=n: leaf[n : n + 1], rows) for n in range(3)]
    for number, part in enumerate(parts):
        with resumed(tmp_path / "run") as checkpoint:
            checkpoint.restore(jnp.zeros(()))
            checkpoint.add(part, number)
            checkpoint.write(jnp.zeros(()), number + 1, converged=False, seconds=0.0)
    found = []
    with resumed(tmp_path / "run") as checkpoint:
        checkpoint.restore(jnp.zeros(()), lambda rows, start: found.append((start, rows)))
    assert [start for start, _ in found] == [0, 1, 2]
    for (_, one), part in zip(found, parts, strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, part)
        assert jax.tree.structure(one) == jax.tree.structure(part)


def test_rows_ahead_of_the_state_are_not_stored(tmp_path):
    """An interrupt between the rows of a chunk and its state: the run goes on before those rows, and repeats them."""
    with resumed(tmp_path / "run") as checkpoint:
        checkpoint.restore(jnp.zeros(()))
        checkpoint.add(np.array([1.0, 2.0]), 0)
        checkpoint.add(np.array([3.0, 4.0, 5.0]), 2)
        checkpoint.write(jnp.zeros(()), 2, converged=False, seconds=0.0)
    found = []
    with resumed(tmp_path / "run") as checkpoint:
        assert checkpoint.restore(jnp.zeros(()), lambda rows, start: found.append((start, rows.tolist()))).steps == 2
    assert found == [(0, [1.0, 2.0])]


def test_a_state_of_another_program_is_refused(tmp_path):
    with resumed(tmp_path / "run") as checkpoint:
        checkpoint.restore(jnp.zeros(2))
        checkpoint.write(jnp.zeros(2), 1, converged=False, seconds=0.0)
    for other in (jnp.zeros(3), jnp.zeros(2, jnp.int32), (jnp.zeros(2), jnp.zeros(2)), ()):
        with resumed(tmp_path / "run") as checkpoint, pytest.raises(InvalidCheckpoint, match="another program"):
            checkpoint.restore(other)


# ---- what is refused ----


@pytest.fixture
def stopped(tmp_path):
    """Return the folder of a run that was interrupted, with two files of draws."""
    for limit in (60, 120):
        with resumed(tmp_path / "run") as checkpoint:
            run_walk(200, 10, checkpoint=checkpoint, progress=stop_at(limit))
    assert len(list((tmp_path / "run").glob("draws-*.npz"))) == 2
    return tmp_path / "run"


def refused(folder, **changes):
    with pytest.raises(InvalidCheckpoint) as caught, resumed(folder, **changes) as checkpoint:
        run_walk(200, 10, checkpoint=checkpoint)
    assert str(folder) in str(caught.value)
    assert "start again" in str(caught.value)
    return str(caught.value)


def _files(folder):
    return sorted(path for path in folder.iterdir() if path.name != "lock")


def test_torn_files_are_refused(stopped):
    for path in _files(stopped):
        content = path.read_bytes()
        for size in (0, 1, 3, len(content) // 2, len(content) - 2, len(content) - 1):
            path.write_bytes(content[:size])
            assert "torn" in refused(stopped)
        path.write_bytes(content + b"\0")
        assert "torn" in refused(stopped)
        path.unlink()
        if path.name != "checkpoint.json":
            assert "missing" in refused(stopped)
        path.write_bytes(content)
    with resumed(stopped) as checkpoint:
        assert digest(run_walk(200, 10, checkpoint=checkpoint)) == digest(run_walk(200, 10))


def test_flipped_bits_never_give_another_result(stopped):
    """Whatever bit is flipped, the checkpoint is refused, or (in the white space of the text) nothing is changed."""
    whole, random, kept = digest(run_walk(200, 10)), np.random.default_rng(0), 0
    for path in _files(stopped):
        content = path.read_bytes()
        for place in random.integers(0, len(content), 60):
            damaged = bytearray(content)
            damaged[place] ^= 1 << int(random.integers(0, 8))
            copy = shutil.copytree(stopped, stopped.parent / "copy")
            (copy / path.name).write_bytes(bytes(damaged))
            try:
                with resumed(copy) as checkpoint:
                    found = digest(run_walk(200, 10, checkpoint=checkpoint))
            except InvalidCheckpoint:
                pass
            else:
                kept += 1
                assert found == whole
                assert json.loads(damaged) == json.loads(content)
            shutil.rmtree(copy)
    assert kept < 20


def test_another_version_is_refused(stopped):
    text = json.loads((stopped / "checkpoint.json").read_text())
    (stopped / "checkpoint.json").write_text(json.dumps(text | {"format": FORMAT + 1}))
    assert f"format {FORMAT + 1}" in refused(stopped)


def test_a_text_as_deep_as_may_be_is_refused(stopped):
    (stopped / "checkpoint.json").write_text("[" * 100_000)
    assert "torn" in refused(stopped)


def test_a_changed_text_is_refused(stopped):
    text = json.loads((stopped / "checkpoint.json").read_text())
    (stopped / "checkpoint.json").write_text(json.dumps(text | {"step": 1}))
    assert "changed or torn" in refused(stopped)


def test_files_of_another_run_are_refused(stopped, tmp_path):
    with resumed(tmp_path / "other") as checkpoint:
        run_walk(100, 20, checkpoint=checkpoint, progress=stop_at(60))
    for kind in ("draws", "state"):
        path = next(stopped.glob(f"{kind}-*.npz"))
        content = path.read_bytes()
        shutil.copy(next((tmp_path / "other").glob(f"{kind}-*.npz")), path)
        assert "changed or torn" in refused(stopped)
        path.write_bytes(content)


def test_a_text_that_names_arrays_of_another_kind_is_refused(stopped):
    text = json.loads((stopped / "checkpoint.json").read_text())
    del text["text_sha256"]
    text["state"], text["draws"] = text["draws"][0], [text["state"]]
    (stopped / "checkpoint.json").write_text(json.dumps(text | {"text_sha256": text_digest(text)}))
    assert "another program" in refused(stopped)


def test_another_run_is_refused_by_what_differs(stopped):
    message = refused(stopped, seed=1, option_reliability=2.0)
    assert "seed 1 here, 0 in the checkpoint" in message
    assert "option_reliability 2.0 here, none in the checkpoint" in message
    assert "model" not in message


def test_a_checkpoint_is_overwritten_by_no_one_who_does_not_ask(stopped):
    before = [path.read_bytes() for path in _files(stopped)]
    with pytest.raises(InvalidCheckpoint, match="resume=True.*or remove"):
        Checkpoint(stopped).open(IDENTITY)
    assert [path.read_bytes() for path in _files(stopped)] == before


def test_folders_of_something_else_are_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "draws-mine.npz").write_text("work")
    (tmp_path / "note").write_text("work")
    for name in ("mine", "note"):
        with pytest.raises(InvalidCheckpoint, match="is not a checkpoint; give a new folder"):
            resumed(tmp_path / name)
    with resumed(tmp_path / "run") as checkpoint:
        run_walk(40, 0, checkpoint=checkpoint)
    (tmp_path / "run" / "notes.txt").write_text("work")
    checkpoint.remove()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes.txt"]
    assert (tmp_path / "mine" / "draws-mine.npz").read_text() == (tmp_path / "note").read_text() == "work"


def test_a_run_that_wrote_nothing_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="in the model"), resumed(tmp_path / "run"):
        raise RuntimeError("in the model")
    assert not list(tmp_path.iterdir())
    checkpoint = Checkpoint(tmp_path / "run")
    checkpoint.remove()
    with pytest.raises(ValueError, match="opened"):
        checkpoint.restore(jnp.zeros(()))


@pytest.mark.skipif(sys.platform == "win32", reason="no locks")
def test_no_two_runs_write_to_one_folder(tmp_path):
    with resumed(tmp_path / "run"):
        for other in (lambda: resumed(tmp_path / "run"), Checkpoint(tmp_path / "run").remove):
            with pytest.raises(InvalidCheckpoint, match="in use by another run"):
                other()
    resumed(tmp_path / "run").close()


# ---- through fit ----


def own_model(data):
    with numpyro.plate("item", data.num_items):
        mean = numpyro.sample("mean", dist.Normal(0, 1))
    numpyro.sample("rating", dist.Normal(mean[data.item], 1), obs=data.rating)


RATINGS = Ratings.from_codes([0, 0, 1], [0, 1, 0], [1.0, 2.0, -1.5])
SETTINGS = {"method": "nuts", "draws": 60, "warmup": 20, "chains": 2}


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_fit_goes_on_with_the_same_run_only(tmp_path):
    folder = tmp_path / "checkpoint"
    part = cs.fit(own_model, RATINGS, checkpoint=folder, progress=stop_at(40), **SETTINGS)
    assert part.result is Result.interrupted
    assert 40 <= part.run.steps < 80
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}

    def message(data=RATINGS, **changes):
        with pytest.raises(InvalidCheckpoint) as caught:
            cs.fit(own_model, data, checkpoint=folder, **{**SETTINGS, "resume": True, **changes})
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept
        return str(caught.value)

    assert "pass resume=True" in message(resume=False)
    assert "seed 3 here, 0 in the checkpoint" in message(seed=3)
    assert "draws 61 here, 60 in the checkpoint" in message(draws=61)
    assert "chains 3 here, 2 in" in message(chains=3)
    assert "method svi here, nuts in the checkpoint" in message(method="svi", max_steps=9)
    assert "data_hash" in message(Ratings.from_codes([0, 0, 1], [0, 1, 0], [1.0, 2.0, -1.0]))
    with jax.enable_x64(True):
        assert "precision float64 here, float32 in" in message()

    fit = cs.fit(own_model, RATINGS, checkpoint=folder, resume=True, **SETTINGS)
    whole = cs.fit(own_model, RATINGS, checkpoint=tmp_path / "other", resume=True, **SETTINGS)
    np.testing.assert_array_equal(fit.posterior.mean, whole.posterior.mean)
    assert fit.attributes["resumed_at_step"] == part.run.steps
    assert fit.attributes["seconds"] > fit.run.seconds > part.run.seconds
    assert "resumed_at_step" not in whole.attributes
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
def test_coordinate_ascent_of_a_member_goes_on_to_the_same_bits(tmp_path):
    settings = {"method": "cavi", "tolerance": 0.0, "max_steps": 400, "checkpoint": tmp_path / "run"}
    part = cs.fit("dawid-skene", crowd(), progress=stop_at(40), **settings)
    assert part.result is Result.interrupted
    part.diagnostics()
    assert part.known_k_hat is None  # of a posterior that is not yet one
    fit = cs.fit("dawid-skene", crowd(), resume=True, **settings)
    whole = cs.fit("dawid-skene", crowd(), **settings | {"checkpoint": None})
    assert fit.attributes["resumed_at_step"] == part.run.steps < whole.run.steps
    one, other = posterior_arrays(fit.posterior), posterior_arrays(whole.posterior)
    assert {name: values.tobytes() for name, values in one.items()} == {
        name: values.tobytes() for name, values in other.items()
    }
    assert fit.elbo.tobytes() == whole.elbo.tobytes()
    assert fit.k_hat() == whole.k_hat()


def test_what_cannot_be_gone_on_with(tmp_path):
    with pytest.raises(UnsupportedRequest, match="resume=True needs checkpoint="):
        cs.fit(own_model, RATINGS, resume=True, **SETTINGS)
    cs.fit("dirichlet", cs.load("dawid-skene-1979"), checkpoint=tmp_path / "run", draws=20)  # exact: nothing to keep
    assert not list(tmp_path.iterdir())


@dataclasses.dataclass(frozen=True)
class _Priors:
    location: object
    scale: object = 1.0


def test_what_prints_alike_is_told_apart():
    def events(scale):
        return dist.Normal(0.0, scale).expand([2]).to_event(1)

    def one():
        return dist.Gamma(1.0)

    first, one = one, None

    def one():
        return dist.Gamma(2.0)

    def captured(shape):
        return lambda data: dist.Gamma(shape)

    def itself(data, scale=1.0):
        return itself(data, scale)

    priors = [
        None,
        {"a": captured(1.0)},
        {"a": captured(2.0)},
        {"a": itself},
        {"a": functools.partial(own_model, 1)},
        {"a": functools.partial(own_model, 2)},
        {"a": 1.0},
        {"a": first},
        {"a": one},
        _Priors(first),
        _Priors(one),
        _Priors(events(1.0)),
        _Priors(events(2.0)),
        _Priors(one, 2.0),
    ]
    assert describe_priors(priors[-5]) == describe_priors(priors[-4])
    assert describe_priors(priors[-3]) != describe_priors(priors[-2])
    identities = [program_identity(own_model, prior) for prior in priors] + [program_identity(first, None)]
    assert len({json.dumps(identity) for identity in identities}) == len(identities)
    assert program_identity(own_model, _Priors(events(2.0))) == identities[-3]
    assert program_identity(own_model, {"a": captured(1.0)}) == identities[1]
    assert describe_priors({"a": 1.0}) == "{'a': 1.0}"
    part = functools.partial(own_model, 1)
    assert describe_priors(_Priors(part)) == "location: functools.partial(<function own_model>, 1); scale: 1.0"


# ---- processes that are killed ----


def child(driver, folder):
    """Run, slowly, and print the digest; called in a process of its own."""

    def progress(steps, num_steps):
        if steps > 0 and not said:
            print("running", flush=True)
            said.append(steps)
        time.sleep(0.002)

    said = []
    checkpoints._SHARE = 0
    with resumed(folder, seconds=0.05) as checkpoint:
        run = DRIVERS[driver](checkpoint=checkpoint, progress=progress)
    print("digest", digest(run), checkpoint.resumed_at, flush=True)


def _spawn(driver, folder, cache):
    code = f"import runpy; runpy.run_path({__file__!r})['child']({driver!r}, {str(folder)!r})"
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment, text=True)


def _killed_run(driver, folder, cache, kills, longest):
    """Kill a run again and again at random moments; return its digest when it may end, and how often it was killed."""
    random, killed = np.random.default_rng(kills), 0
    while True:
        process = _spawn(driver, folder, cache)
        line = process.stdout.readline()
        if line.startswith("running") and killed < kills:
            time.sleep(random.uniform(0, longest))
            process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0]
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0
            return re.search("digest (.*) (None|[0-9]+)", line + rest).group(1), killed
        killed += 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_process_goes_on_to_the_same_bits(tmp_path):
    found, killed = _killed_run("walk", tmp_path / "run", tmp_path / "cache", kills=3, longest=0.15)
    assert killed == 3
    assert found == digest(DRIVERS["walk"]())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("driver", DRIVERS)
def test_twenty_kills_at_random_moments(driver, tmp_path):
    found, killed = _killed_run(driver, tmp_path / "run", tmp_path / "cache", kills=20, longest=0.1)
    print(f"{driver}: {killed} kills")
    assert killed == 20
    assert found == digest(DRIVERS[driver]())
