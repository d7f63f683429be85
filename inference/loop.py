"""The one host loop under every driver: jitted chunks of steps, and between them everything that is not mathematics.

A driver writes one pure step, ``step(state, index) -> (state, output)``, and wraps it with `scan_steps` into a jitted
``advance`` that runs a chunk of steps on the device. `run_chunks` calls it until the steps are done. Progress,
convergence, checkpoints, the time limit, Ctrl-C and the check for non-finite numbers all happen here, on the host, once
per chunk; no traced code ever calls back into Python, and the draws of a long run leave the device as they come.

Two rules make runs repeatable and resumable: the state is a PyTree that holds all that the next step needs, and the key
of a step is ``fold_in(key, index)``. The outcome then depends neither on where chunks begin nor on interruptions.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.errors import UnsupportedRequest
from consilience.inference.checkpoints import Checkpoint, Restored
from consilience.inference.processes import agreed
from consilience.inference.results import Result
from consilience.progress import Steps

Progress = bool | Callable[[int, int], None] | None

# A chunk of a slow model is shortened towards this, so that Ctrl-C, the time limit and the progress bar stay prompt.
_SECONDS_PER_CHUNK = 1.0

_ran_in: dict[str, int] = {}  # the process that ran first


class LoopOutcome(NamedTuple):
    """What is left after the loop.

    Parameters
    ----------
    state : the state after the last chunk whose steps were all finite; where it is donated, after the last finite step.
    steps : number of finite steps that were run, those before a checkpoint included.
    result : how the loop ended.
    seconds : wall-clock time, compilation included, and what the run took before a checkpoint.
    message : one sentence in plain words; empty where there is nothing to say.
    """

    state: Any
    steps: int
    result: Result
    seconds: float
    message: str


def strongly_typed(state: Any) -> Any:
    """Return the state with the dtypes that a step returns; for the start of a run, inside ``jax.jit``.

    A weakly typed leaf, such as a Python scalar, would compile the steps a second time, for their own strongly typed
    result. Random keys have a type of their own.
    """

    def typed(leaf: Any) -> Any:
        dtype = jnp.result_type(leaf)
        return leaf if jnp.issubdtype(dtype, jax.dtypes.prng_key) else jax.lax.convert_element_type(leaf, dtype)

    return jax.tree.map(typed, state)


def scan_steps(
    step: Callable[[Any, Any], tuple[Any, Any]], state: Any, start: Any, stop: Any, *, length: int,
    finite: Callable[[Any], Any] | None = None, going: Callable[[Any], Any] | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Run `step` for the indices from `start` to `stop`, at most `length` of them; for use inside ``jax.jit``.

    Both ends are traced values, so a short last chunk runs the program that the others compiled.

    Parameters
    ----------
    step : ``(state, index) -> (state, output)``.
    state : PyTree; its dtypes and shapes must be those that `step` returns.
    start, stop : integers.
    length : static; rows of the output buffers.
    finite : ``output -> bool``; where given, the first step that is not is the last, and the state stays as that step
        was given it.
    going : ``state -> bool``; where given, the last step is the first that leaves a state of which it does not hold.

    Returns
    -------
    the state, and the outputs stacked in buffers of `length` rows, of which the first ``stop - start`` are filled.
    """
    step, start = jax.jit(step, inline=True), jnp.asarray(start)  # traced once, for the shapes and for the loop
    buffers = jax.tree.map(lambda o: jnp.zeros((length, *o.shape), o.dtype), jax.eval_shape(step, state, start)[1])

    def body(carry: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        index, state, buffers, good = carry
        after, output = step(state, index)
        buffers = jax.tree.map(lambda buffer, row: buffer.at[index - start].set(row), buffers, output)
        if finite is not None:
            good = finite(output)
            after = jax.tree.map(lambda new, old: jnp.where(good, new, old), after, state)
        if going is not None:
            good &= going(after)
        return index + 1, after, buffers, good

    # A loop with a traced end and not a scan with a mask: a masked step would copy the whole state at every index.
    begun = (start, state, buffers, jnp.ones((), bool))
    return jax.lax.while_loop(lambda carry: (carry[0] < stop) & carry[3], body, begun)[1:3]


def run_chunks(
    advance: Callable[[Any, int, int], tuple[Any, Any]],
    state: Any,
    *,
    num_steps: int,
    chunk_size: int = 1000,
    finite: Callable[[Any], np.ndarray],
    converged: Callable[[Any], bool] | None = None,
    keep: Callable[[Any], Any] | None = None,
    collect: Callable[[Any, int], None] | None = None,
    progress: Progress = None,
    time_limit: float | None = None,
    checkpoint: Checkpoint | None = None,
    skip: int = 0,
    shared: bool = False,
    donated: bool = False,
    label: str = "",
) -> LoopOutcome:
    """Advance `state` by `num_steps` steps, in chunks, until they are done or there is a reason to stop.

    Parameters
    ----------
    advance : jitted, ``(state, start, stop) -> (state, output)`` with ``stop - start <= chunk_size``; every leaf of the
        output has one row a step (`scan_steps` makes such a function).
    state : PyTree before the first step.
    num_steps : how many steps to run; zero is allowed.
    chunk_size : the most steps between two looks from the host. Without `converged`, slow chunks are shortened further;
        with it they are not, because the number of steps would then depend on the clock.
    finite : ``output -> bool array (step,)``: which steps are finite. At the first that is not, the loop stops.
    converged : ``output -> bool``, asked after every chunk, of its rows alone.
    keep : ``output -> rows``, what is kept of the finite steps of a chunk: an array, or a nested dict of arrays, with
        one row a step. All of the output by default.
    collect : ``(rows, start) -> None``, given what is kept. An interrupt may leave it with rows of one chunk beyond
        ``steps``. A run that goes on from a checkpoint first gives it the rows that are stored there.
    progress : ``True`` for a bar on stderr, ``None`` for a bar where stderr is a terminal, ``False`` for none, or a
        function ``(steps, num_steps) -> None``, called once per chunk. What that function raises ends the run.
    time_limit : seconds of wall clock, looked at after every chunk; without `converged` not after the first, which
        compiles, so that a run that goes on under a short limit gets ahead.
    checkpoint : opened for this run; the loop goes on from it, writes to it every few seconds and at the end.
    skip : the rows of so many first steps are not stored in the checkpoint, because `collect` has no use for them.
    shared : whether several processes run these chunks together; the first of them then decides by the clock.
    donated : whether `advance` writes over the state that it is given, and returns that of the last finite step. Ctrl-C
        then waits for the end of a chunk.
    label : the name before the progress bar and in messages.

    Returns
    -------
    `LoopOutcome`.

    Raises
    ------
    UnsupportedRequest : in a process that was forked from one that has run.
    KeyboardInterrupt : by hand, before the end of the first step.
    """
    began = time.perf_counter()
    state, steps, had_converged, earlier = _start(checkpoint, state, collect)
    report, close = _reporter(progress, num_steps, label, steps)
    result, message = Result.converged if had_converged else Result.max_steps, ""
    finite_steps, length = steps, 1 if converged is None else chunk_size
    # The first chunk of a sampler is one step, most of which is compilation.
    compiled_at = steps if converged is not None else steps + 1
    try:
        while steps < num_steps and result is Result.max_steps:
            chunk_began, stop = time.perf_counter(), min(steps + length, num_steps)
            with _undisturbed() if donated else contextlib.nullcontext():
                new_state, output = advance(state, steps, stop)
                rows, stop, ended = _finite_rows(_to_host(output, stop - steps), finite, steps, stop)
                kept = rows if keep is None else keep(rows)
                if collect is not None:
                    collect(kept, steps)
                if checkpoint is not None and (donated or ended is not Result.nonfinite):
                    _store(checkpoint, kept, steps, skip)
                if ended is not Result.nonfinite and converged is not None and converged(rows):
                    ended = Result.converged
                # One statement, so that Ctrl-C finds the state and its step in agreement.
                if donated or ended is not Result.nonfinite:
                    state, steps, finite_steps, had_converged = new_state, stop, stop, ended is Result.converged
            if ended is Result.nonfinite:
                finite_steps, result = stop, ended
                message = f"{label or 'the run'}: step {finite_steps} gave a number that is not finite"
                report(finite_steps)
                break
            report(steps)
            result, now = ended, time.perf_counter()
            if checkpoint is not None and _agreed(checkpoint.due, shared):
                checkpoint.write(state, steps, converged=had_converged, seconds=earlier + now - began)
            late = time_limit is not None and now - began >= time_limit and steps > compiled_at
            if result is Result.max_steps and steps < num_steps and _agreed(late, shared):
                result = Result.interrupted
                message = f"the time limit ended the run at step {steps}"
            elif converged is None:
                quick = now - chunk_began < _SECONDS_PER_CHUNK
                length = min(2 * length, chunk_size) if quick else max(length // 2, 1)
    except KeyboardInterrupt:
        if finite_steps == 0 or shared:  # other processes are elsewhere in their loops; they end with this one
            raise
        result = Result.interrupted
        message = f"the keyboard interrupted the run at step {finite_steps}"
    finally:
        close(result is Result.converged)
    seconds = earlier + time.perf_counter() - began
    if checkpoint is not None:
        checkpoint.write(state, steps, converged=had_converged, seconds=seconds)
    return LoopOutcome(state, finite_steps, result, seconds, message)


def _refuse_fork() -> None:
    """Refuse to run in a process forked from one that has run: the threads of JAX are not in it, and it would wait."""
    if _ran_in.setdefault("process", os.getpid()) != os.getpid():
        raise UnsupportedRequest(
            "this process was forked from one that has already run JAX, whose threads it lacks; start processes by "
            "multiprocessing.get_context('spawn')"
        )


def _finite_rows(
    rows: Any, finite: Callable[[Any], np.ndarray], start: int, stop: int
) -> tuple[Any, int, Result]:
    """Return the rows before the first that is not finite, where they stop, and whether all are finite."""
    good = _leading_true(finite(rows))
    if good < stop - start:
        return _first_rows(rows, good), start + good, Result.nonfinite
    return rows, stop, Result.max_steps


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold Ctrl-C back: half a chunk has written over the state that it was given, and has not returned another."""
    answer = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(answer):
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, answer)
        if came:
            signal.raise_signal(came[0])


def _agreed(answer: bool, shared: bool) -> bool:
    return bool(agreed(answer)) if shared else answer


def _start(checkpoint: Checkpoint | None, state: Any, collect: Callable[[Any, int], None] | None) -> Restored:
    _refuse_fork()
    if checkpoint is None:
        return Restored(state, 0, False, 0.0)
    return checkpoint.restore(state, collect)


def _store(checkpoint: Checkpoint, rows: Any, start: int, skip: int) -> None:
    """Hand a chunk's rows to the checkpoint, without those that are skipped."""
    first = max(skip - start, 0)
    if first < len(jax.tree.leaves(rows)[0]):
        checkpoint.add(jax.tree.map(lambda leaf: leaf[first:], rows), start + first)


def _to_host(output: Any, num_rows: int) -> Any:
    """Fetch the filled rows of a chunk's output."""
    return _first_rows(jax.device_get(output), num_rows)


def _first_rows(rows: Any, num_rows: int) -> Any:
    """Keep the first rows; a copy where any are cut, or the view would keep the whole buffer alive."""
    return jax.tree.map(lambda leaf: leaf if len(leaf) == num_rows else leaf[:num_rows].copy(), rows)


def _leading_true(flags: np.ndarray) -> int:
    """Count the entries before the first that is false."""
    flags = np.asarray(flags)
    return len(flags) if flags.all() else int(flags.argmin())


def _reporter(
    progress: Progress, num_steps: int, label: str, done: int
) -> tuple[Callable[[int], None], Callable[[bool], None]]:
    """Return what to call with the steps done after every chunk, and at the end with whether the run converged."""
    if callable(progress):
        return lambda steps: progress(steps, num_steps), lambda converged: None
    bar = Steps(num_steps, label, done=done, shown=progress)
    return bar.to, lambda converged: bar.close(converged=converged)
