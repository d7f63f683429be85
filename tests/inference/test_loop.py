"""The host loop: a recurrence whose every state is known, stopped in each of the ways a loop can stop."""

import functools
import os
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.errors import UnsupportedRequest
from consilience.inference.checkpoints import Checkpoint
from consilience.inference.loop import run_chunks, scan_steps
from consilience.inference.results import Result

CHUNK = 8


def make_advance(step, length=CHUNK):
    """A jitted advance and the list to which every tracing adds an entry."""
    traces = []

    @jax.jit
    def advance(state, start, stop):
        traces.append(None)
        return scan_steps(step, state, start, stop, length=length)

    return advance, traces


def random_walk(state, index):
    state = state + jax.random.normal(jax.random.fold_in(jax.random.key(3), index))
    return state, {"x": state, "index": index}


def all_finite(output):
    return np.isfinite(output["x"])


def test_a_forked_process_does_not_wait_for_ever(monkeypatch):
    advance, _ = make_advance(random_walk)
    run_chunks(advance, jnp.zeros(()), num_steps=1, finite=all_finite)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(UnsupportedRequest, match="forked from one that has already run JAX.*spawn"):
        run_chunks(advance, jnp.zeros(()), num_steps=1, finite=all_finite)


class Collector:
    def __init__(self):
        self.rows, self.starts = [], []

    def __call__(self, output, start):
        self.rows.append(output)
        self.starts.append(start)

    def __getitem__(self, name):
        return np.concatenate([rows[name] for rows in self.rows])


def run(step, num_steps, state=0.0, length=CHUNK, **options):
    advance, traces = make_advance(step, length)
    collect = Collector()
    outcome = run_chunks(
        advance,
        jnp.float32(state),
        num_steps=num_steps,
        chunk_size=length,
        finite=all_finite,
        collect=collect,
        **options,
    )
    return outcome, collect, traces


@pytest.mark.parametrize("num_steps", [1, CHUNK, CHUNK + 1, 5 * CHUNK + 3])
def test_every_step_is_run_once_in_order_and_the_tail_compiles_nothing(num_steps):
    outcome, collect, traces = run(random_walk, num_steps)
    assert (outcome.result, outcome.steps, outcome.message) == (Result.max_steps, num_steps, "")
    np.testing.assert_array_equal(collect["index"], np.arange(num_steps))
    assert float(outcome.state) == collect["x"][-1]
    assert len(traces) == 1


def test_results_do_not_depend_on_the_chunk_size():
    fine, coarse = run(random_walk, 50, length=3)[1], run(random_walk, 50, length=50)[1]
    np.testing.assert_array_equal(fine["x"], coarse["x"])


def test_zero_steps():
    outcome, collect, traces = run(random_walk, 0, state=4.0)
    assert (outcome.result, outcome.steps, float(outcome.state)) == (Result.max_steps, 0, 4.0)
    assert not collect.rows
    assert not traces


def test_a_non_finite_step_stops_within_its_chunk_and_keeps_the_last_finite_state():
    def step(state, index):
        state = jnp.where(index == 21, jnp.nan, state + 1)
        return state, {"x": state}

    outcome, collect, _ = run(step, 1000, converged=lambda output: False, label="demo")
    assert outcome.result is Result.nonfinite
    assert outcome.steps == 21
    assert "step 21" in outcome.message
    assert "demo" in outcome.message
    assert float(outcome.state) == 16.0
    np.testing.assert_array_equal(collect["x"], np.arange(1, 22))


def test_convergence_ends_the_run():
    def step(state, index):
        state = state / 2
        return state, {"x": state}

    outcome, collect, _ = run(step, 1000, state=1.0, converged=lambda output: output["x"][-1] < 1e-3)
    assert (outcome.result, outcome.steps) == (Result.converged, 2 * CHUNK)
    assert len(collect["x"]) == 2 * CHUNK


def test_keyboard_interrupt_keeps_what_there_is():
    def progress(steps, num_steps):
        assert num_steps == 1000
        if steps >= 20:
            raise KeyboardInterrupt

    outcome, collect, _ = run(random_walk, 1000, progress=progress)
    assert outcome.result is Result.interrupted
    assert 20 <= outcome.steps < 1000
    assert f"step {outcome.steps}" in outcome.message
    assert len(collect["x"]) == outcome.steps
    assert float(outcome.state) == collect["x"][-1]


def test_an_interrupt_inside_a_chunk_keeps_the_chunks_before_it():
    advance, _ = make_advance(random_walk)
    calls = []

    def interrupted(state, start, stop):
        calls.append(start)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return advance(state, start, stop)

    collect = Collector()
    outcome = run_chunks(
        interrupted, jnp.float32(0), num_steps=99, chunk_size=CHUNK, finite=all_finite, collect=collect
    )
    assert (outcome.result, outcome.steps) == (Result.interrupted, calls[-1])
    assert float(outcome.state) == collect["x"][-1]


def test_an_interrupt_before_the_end_of_the_first_step_is_raised(tmp_path):
    def interrupted(state, start, stop):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Checkpoint(tmp_path / "kept").open({}) as checkpoint:
        run_chunks(interrupted, jnp.float32(0), num_steps=99, finite=all_finite, checkpoint=checkpoint)
    assert not (tmp_path / "kept" / "checkpoint.json").exists()


@pytest.fixture
def interruptible():
    """Ctrl-C answered as in a terminal: a process that a shell started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_donated_state_outlives_an_interrupt_inside_its_chunk():
    """Ctrl-C waits for the end of the chunk, whose state is then the one that is kept."""
    advance = jax.jit(make_advance(random_walk)[0], donate_argnums=0)
    states = []

    def interrupted(state, start, stop):
        states.append(advance(state, start, stop))
        assert state.is_deleted()
        if len(states) == 3:
            signal.raise_signal(signal.SIGINT)
        return states[-1]

    outcome = run_chunks(
        interrupted, jnp.float32(0), num_steps=99, chunk_size=CHUNK, finite=all_finite, donated=True,
        converged=lambda output: False,
    )  # fmt: skip
    assert (outcome.result, outcome.steps) == (Result.interrupted, 3 * CHUNK)
    assert float(outcome.state) == states[-1][1]["x"][-1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("bad", [0, 16, 21])
def test_a_donated_state_is_that_of_the_last_finite_step(bad, tmp_path):
    def step(state, index):
        state = jnp.where(index == bad, jnp.nan, state + 1)
        return state, {"x": state}

    @functools.partial(jax.jit, donate_argnums=0)
    def advance(state, start, stop):
        return scan_steps(step, state, start, stop, length=CHUNK, finite=lambda output: jnp.isfinite(output["x"]))

    collect = Collector()
    options = {"chunk_size": CHUNK, "converged": lambda output: False, "finite": all_finite, "donated": True}
    with Checkpoint(tmp_path / "kept", keep=True).open({}) as kept:
        outcome = run_chunks(advance, jnp.float32(0), num_steps=99, collect=collect, checkpoint=kept, **options)
    assert (outcome.result, outcome.steps, float(outcome.state)) == (Result.nonfinite, bad, bad)
    np.testing.assert_array_equal(collect["x"], np.arange(1, bad + 1))
    again = Collector()
    with Checkpoint(tmp_path / "kept", resume=True, keep=True).open({}) as kept:
        resumed = run_chunks(advance, jnp.float32(0), num_steps=99, collect=again, checkpoint=kept, **options)
    assert (resumed.result, resumed.steps, float(resumed.state)) == (Result.nonfinite, bad, bad)
    np.testing.assert_array_equal(again["x"], collect["x"])


def test_an_interrupted_run_goes_on_to_the_same_end():
    advance, _ = make_advance(random_walk)
    options = {"chunk_size": CHUNK, "finite": all_finite}
    whole = run_chunks(advance, jnp.float32(0), num_steps=60, **options)
    first = run_chunks(advance, jnp.float32(0), num_steps=60, time_limit=0.0, **options)
    assert first.result is Result.interrupted
    resumed = run_chunks(
        lambda state, start, stop: advance(state, start + first.steps, stop + first.steps),
        first.state,
        num_steps=60 - first.steps,
        **options,
    )
    assert float(resumed.state) == float(whole.state)


def test_the_time_limit_interrupts_and_says_so():
    outcome, collect, _ = run(random_walk, 10**9, time_limit=0.05)
    assert outcome.result is Result.interrupted
    assert "the time limit ended the run at step" in outcome.message
    assert outcome.seconds >= 0.05
    assert len(collect["x"]) == outcome.steps > 0


def test_a_limit_that_compilation_uses_up_leaves_steps_all_the_same():
    """The first chunk of a sampler is a single step: what goes on again and again would go on by one step each time."""
    assert run(random_walk, 60, time_limit=0.0)[0].steps == 3


def test_an_error_of_the_progress_function_is_not_swallowed():
    def progress(steps, num_steps):
        raise RuntimeError("from the application")

    with pytest.raises(RuntimeError, match="from the application"):
        run(random_walk, 10, progress=progress)


def test_the_bar_goes_to_stderr_when_asked_for_and_not_otherwise(capsys):
    run(random_walk, 20, progress=True, label="walk")
    printed = capsys.readouterr()
    assert "walk" in printed.err
    assert "20/20" in printed.err
    assert printed.out == ""
    for quiet in (None, False):  # stderr is no terminal here
        run(random_walk, 20, progress=quiet)
        assert capsys.readouterr().err == ""


def test_the_callable_hears_of_every_chunk():
    heard = []
    run(random_walk, 30, progress=lambda steps, num_steps: heard.append(steps))
    assert heard == sorted(set(heard))
    assert heard[-1] == 30


def test_slow_chunks_are_shortened_so_that_the_loop_stays_prompt(monkeypatch):
    from consilience.inference import loop

    clock = iter(range(10**6))
    monkeypatch.setattr(loop.time, "perf_counter", functools.partial(next, clock))  # every look costs a second
    _, collect, _ = run(random_walk, 10)
    assert collect.starts == list(range(10))
