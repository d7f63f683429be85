"""The driver of ascents: steps that raise an objective until it stands still, such as EM.

A member states its steps as a `consilience.models.interface.Ascent`. The objective is summed in blocks on the device,
and from those on the host in float64, because float32 cannot carry the sum over many items; nothing depends on which
device summed a block. Where the ascent allows it the items are divided among devices, which exchange nothing but the
sums that all of them need (see `consilience.inference.sharding`).

A run has converged when what is left to gain is small, and not when a step gains little: EM may gain almost nothing
for thousands of steps. If the gains of successive chunks fall by a factor ρ, what is left after a gain g is
g ρ / (1 - ρ), but no more than a run could gain. Where a member tells how far its steps move (`Ascent.moved`), they
must have come to rest too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Key
from consilience.errors import UnsupportedRequest
from consilience.inference.accelerated import Journey, journey_from, leap, may_leap
from consilience.inference.checkpoints import Checkpoint
from consilience.inference.compilation import RUN_ONCE, quick_options
from consilience.inference.generic import GenericRun
from consilience.inference.loop import Progress, run_chunks, scan_steps, strongly_typed
from consilience.inference.sharding import (
    AXIS,
    Mesh,
    gathered_over,
    item_mesh,
    largest_over,
    on_each,
    place,
    place_parts,
    total_over,
    whole,
)
from consilience.models.interface import Ascent, Terms, unsharded
from consilience.models.keys import any_key

_CHUNK = 20

# So many terms of the objective are summed on the device: few enough for float32, and enough that what goes to the host
# is small.
_SUMMED = 64

# A problem of no more numbers than this is small: its run takes less time than its compilation.
_SMALL = 1 << 18

# How far the last two steps may have moved what users look at, such as a probability.
_AT_REST = 1e-4

# What is left to gain is that of so many chunks at most, which are the steps of a run. Where steps slow down for ever,
# as towards a maximum at infinity, it would else be more than any run can gain.
_FARTHEST = 500

# A gain of so many times the spacing of floats, relative to the objective, is rounding.
_ROUNDING = 8


def run_ascent(
    ascent: Ascent,
    problem: Any,
    *,
    key: Key,
    max_steps: int = 10_000,
    tolerance: float = 1e-7,
    accelerate: bool = True,
    devices: int = 1,
    of_parts: bool = False,
    progress: Progress = None,
    time_limit: float | None = None,
    checkpoint: Checkpoint | None = None,
) -> GenericRun:
    """Raise the objective until next to nothing is left to gain.

    Parameters
    ----------
    ascent : the member's functions.
    problem : what ``ascent.prepare`` returned.
    key : random key of the start.
    max_steps : the most steps, those included that are taken back.
    tolerance : the run has converged when less than this is left to gain, judged by the gains of the last two chunks of
        20 steps, relative to the size of the objective plus the number of its terms: an objective may well have the
        maximum zero. Where the member has a rule of its own for the problem (`Ascent.settled`), that alone decides.
    accelerate : whether steps are extrapolated where the member allows it; else they are the plain steps as published.
    devices : among how many devices the items are divided.
    of_parts : whether each process has a problem of its own items; ``devices`` is then the number of all their devices.
    progress, time_limit, checkpoint : see `run_chunks`.

    Returns
    -------
    `GenericRun` with the arrays of ``ascent.sites`` as one chain of one draw, and as ``elbo`` the objective at every
    step that was not taken back.

    Raises
    ------
    UnsupportedRequest : the ascent cannot be divided, or there are fewer devices.
    """
    label = ascent.name.upper()
    real = {} if ascent.lengths is None else ascent.lengths(problem)
    placed = _placed(ascent, problem, key, devices, label, of_parts)
    problem, mesh = placed.problem, placed.mesh
    start, advance, sites = _programs(ascent, mesh, accelerate, *_looks(ascent, problem))
    trace = _Trace(tolerance, placed.number)
    outcome = run_chunks(
        lambda state, start, stop: advance(state, problem, start, stop),
        start(key, problem),
        num_steps=max_steps,
        chunk_size=_CHUNK,
        finite=_may_go_on,
        converged=trace.stands_still,
        keep=_objective,
        collect=trace.add,
        progress=progress,
        time_limit=time_limit,
        checkpoint=checkpoint,
        shared=mesh is not None and jax.process_count() > 1,
        donated=True,
        label=label,
    )
    found = whole(sites(outcome.state, problem), placed.lengths, mesh, own=of_parts)
    found |= {site: found[site][:length] for site, length in real.items()}
    estimate = {site: values[None, None] for site, values in found.items()}
    elbo = trace.objective[: outcome.steps]
    elbo = elbo[np.isfinite(elbo)]  # without the idle steps, and those that were taken back
    # An idle step was none; one that was taken back was run.
    steps = outcome.steps if isinstance(outcome.state, Journey) else len(elbo)
    return GenericRun(estimate, {}, outcome.result, steps, outcome.seconds, outcome.message, elbo)


def state_shapes(ascent: Ascent, problem: Any) -> Any:
    """Return shapes and types of the state of an ascent as `jax.ShapeDtypeStruct`, without computing it."""
    start, _, _ = _programs(ascent, None, True, *_looks(ascent, problem))
    # Of the compiled program, so that what is traced here is not traced again.
    state = start.eval_shape(any_key(), problem)
    return state.state if isinstance(state, Journey) else state


class _Trace:
    """The objective as it comes, chunk after chunk, and whether it stands still.

    Parameters
    ----------
    tolerance : see `run_ascent`.
    number : of terms of the objective; None where the steps say it.
    """

    def __init__(self, tolerance: float, number: int | None) -> None:
        self.tolerance, self.number = tolerance, number
        self._pieces: list[np.ndarray] = [np.empty(0)]

    @property
    def objective(self) -> np.ndarray:
        """At every step, float64; NaN at idle steps and at those that were taken back."""
        return np.concatenate(self._pieces)

    def add(self, values: np.ndarray, start: int) -> None:
        """Take the values of a chunk, or of all chunks before a checkpoint."""
        self._pieces.append(values)

    def stands_still(self, output: dict[str, Any]) -> bool:
        """Tell of the last chunk, which was added, whether it may be the last of all."""
        if "idle" in output:
            return bool(output["idle"].any())
        # Of a last chunk that is shorter nothing can be said: a single step may gain little.
        if len(output["terms"]) < _CHUNK or not _at_rest(output):
            return False
        heights = self._heights()
        now, number = heights[-1], output["number"][0] if self.number is None else self.number
        scale, spacing = abs(now) + number, np.finfo(output["terms"].dtype).eps
        # Float32 cannot tell how fast small gains fall. What it calls rounding is no more than what is asked for.
        rounding = min(_ROUNDING * spacing, max(self.tolerance, _ROUNDING * np.finfo(float).eps))
        return _left(*heights) <= self.tolerance * scale or now - heights[1] <= rounding * scale

    def _heights(self) -> tuple[float, float, float, float]:
        """Return the objective at the ends of the last two chunks but one, of half the last chunk, and of all of it.

        Nothing is known of what was before the first step.
        """
        values = self.objective
        ends = [len(values) - back for back in (2 * _CHUNK, _CHUNK, _CHUNK // 2, 0)]
        return tuple(_last_finite(values[: max(end, 1)]) if end >= 0 else np.nan for end in ends)  # type: ignore[return-value]


def _left(before: float, last: float, half: float, now: float) -> float:
    """Return how much is left to gain; infinite where no more than one chunk is known.

    Gains of a chunk and of half a chunk both tell how fast they fall: by the slower of them, since the quick gains of
    the first steps say nothing of the slow ones that are left.
    """
    if np.isnan(before):
        return np.inf
    rate = max(_ratio(now - last, last - before), _ratio(now - half, half - last) ** 2)
    return (now - last) * (rate / (1 - rate) if rate < 1 - 1 / _FARTHEST else _FARTHEST)


def _ratio(gain: float, earlier: float) -> float:
    return gain / earlier if earlier > 0 else 1.0


def _last_finite(values: np.ndarray) -> float:
    return float(values[np.isfinite(values)][-1])


def _at_rest(output: dict[str, Any]) -> bool:
    """Tell whether the last two steps that were not taken back moved next to nothing."""
    return "moved" not in output or bool((output["moved"][~_passed_over(output)][-2:] <= _AT_REST).all())


class _Placed(NamedTuple):
    """A problem on its devices.

    Parameters
    ----------
    problem : the arrays, divided where there is a mesh.
    lengths : site -> how many rows of each part are real.
    mesh : None of a problem that is whole.
    number : of terms of the objective without those that pad the parts; None where the steps say it.
    """

    problem: Any
    lengths: Any
    mesh: Mesh | None
    number: int | None


def _placed(
    ascent: Ascent, problem: Any, key: Key, devices: int, label: str, of_parts: bool
) -> _Placed:
    if devices == 1:
        return _Placed(jax.device_put(problem), {}, None, None)
    if ascent.shard is None:
        raise UnsupportedRequest(f"this {label} runs on one device; leave out devices=")
    mesh = item_mesh(devices)
    # Counted in the whole problem, so that the tolerance is the same on any number of devices.
    terms = jax.eval_shape(functools.partial(_first_terms, ascent), key, problem)
    number = _number(terms) if terms.number is None else None
    shards = ascent.shard(problem, jax.local_device_count() if of_parts else devices)
    return _Placed((place_parts if of_parts else place)(shards.problem, mesh), shards.lengths, mesh, number)


def _objective(output: dict[str, Any]) -> np.ndarray:
    """Sum the terms of each step, float64, shape ``(step,)``; NaN at idle steps and at those that were taken back."""
    return np.where(_passed_over(output), np.nan, np.asarray(output["terms"], np.float64).sum(axis=1))


def _passed_over(output: dict[str, Any]) -> np.ndarray:
    """Tell which steps are no part of the path, bool, shape ``(step,)``."""
    return output.get("idle", False) | output.get("refused", np.zeros(len(output["terms"]), bool))


def _may_go_on(output: dict[str, Any]) -> np.ndarray:
    """Tell after which steps the run goes on, bool, shape ``(step,)``."""
    return np.isfinite(_objective(output)) | _passed_over(output)


def _is_finite(output: dict[str, Any]) -> Any:
    """Tell of a step, inside of a program, whether the run goes on from it, as the host tells of those of a chunk."""
    return jnp.isfinite(output["terms"]).all() | output.get("idle", False) | output.get("refused", False)


def _looks(ascent: Ascent, problem: Any) -> tuple[bool, bool]:
    """Tell what decides how programs are compiled: whether the start climbs, and whether the problem is small."""
    climbs = ascent.climbs is not None and ascent.climbs(problem)
    return climbs, sum(np.size(leaf) for leaf in jax.tree.leaves(problem)) <= _SMALL


@functools.lru_cache(maxsize=32)
def _programs(
    ascent: Ascent, mesh: Mesh | None, accelerate: bool = True, climbs: bool = False, small: bool = False
) -> tuple[Any, Any, Any]:
    """Return the compiled ``start(key, problem)``, ``advance(state, problem, start, stop)`` and ``sites``."""
    each = (unsharded,) * 3 if mesh is None else (total_over(AXIS), gathered_over(AXIS), largest_over(AXIS))
    over_shards = _OverShards(*each)
    total = {} if ascent.shard is None else {"total": over_shards.total}

    @functools.partial(jax.jit, static_argnames="part")  # traced once, and not at each of the places where it stands
    def step(state: Any, problem: Any, part: int | None = None) -> tuple[Any, dict[str, Any]]:
        return _step(ascent, state, problem, total, over_shards, part)

    def start(key: Key, problem: Any) -> Any:
        state = strongly_typed(ascent.start(key, problem, **total))
        if accelerate and may_leap(ascent, state, problem):
            return strongly_typed(journey_from(ascent, state, lambda state: step(state, problem)))
        return state

    def advance(state: Any, problem: Any, start: Any, stop: Any, part: int | None = None) -> tuple[Any, Any]:
        def one(state: Any, index: Any) -> tuple[Any, dict[str, Any]]:
            if isinstance(state, Journey):
                return leap(ascent, state, lambda state: step(state, problem), index + 2 < stop)
            return step(state, problem, part)

        going = None if part is None else lambda state: ascent.part(state) == part  # type: ignore[misc]
        return scan_steps(one, state, start, stop, length=_CHUNK, finite=_is_finite, going=going)

    def of_part(part: int | None) -> Callable[..., tuple[Any, Any]]:
        own: Callable[..., Any] = functools.partial(advance, part=part)
        if mesh is not None:
            own = on_each(own, mesh, divided=(True, True, False, False), results=(True, False))
        return jax.jit(own, donate_argnums=0, compiler_options=options)

    def sites(state: Any, problem: Any) -> Any:
        return ascent.sites(state.state if isinstance(state, Journey) else state, problem, **total)

    options = quick_options() if small and mesh is None else {}
    run = of_part(None) if ascent.part is None else _in_parts(ascent, functools.cache(of_part))
    if mesh is None:
        # At level 0 nothing is fused: of a large problem each step between would stand in memory.
        started = jax.jit(start, compiler_options=options | RUN_ONCE if small and not climbs else options)
        return started, run, jax.jit(sites)
    return (
        on_each(start, mesh, divided=(False, True), results=True),
        run,
        on_each(sites, mesh, divided=(True, True), results=True),
    )


def _in_parts(ascent: Ascent, of_part: Callable[[int], Callable[..., tuple[Any, Any]]]) -> Callable[..., Any]:
    """Return an ``advance`` that runs the program of each part until another part is next."""
    following: Any = jax.jit(ascent.part)  # type: ignore[arg-type]

    def advance(state: Any, problem: Any, start: int, stop: int) -> tuple[Any, Any]:
        pieces: list[dict[str, np.ndarray]] = []
        while start < stop and (not pieces or _may_go_on(pieces[-1])[-1]):
            part = int(np.ravel(following(state).addressable_data(0))[0])
            state, output = of_part(part)(state, problem, start, stop)
            rows = jax.device_get(output)
            pieces.append({name: values[rows["ran"]] for name, values in rows.items()})
            start += len(pieces[-1]["ran"])
        return state, {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    return advance


class _OverShards(NamedTuple):
    """What is done with statistics of the shards, inside of a program.

    Parameters
    ----------
    total, gathered, largest : their sum, arrays joined into one, and the largest.
    """

    total: Callable[[Any], Any]
    gathered: Callable[[Any], Any]
    largest: Callable[[Any], Any]


def _step(
    ascent: Ascent, state: Any, problem: Any, total: dict[str, Any], over_shards: _OverShards, part: int | None
) -> tuple[Any, dict[str, Any]]:
    """Take a step, and sum its terms in blocks; a state that has settled idles until its chunk is over."""
    settled = None if ascent.settled is None else ascent.settled(state, problem)
    after, found = ascent.step(state, problem, **total, **({} if part is None else {"part": part}))
    terms = _terms(found)
    # Blocks of all shards, and not their sum: the host adds them in float64, in whatever pieces they come.
    sums = jnp.concatenate([over_shards.gathered(_in_blocks(terms.items)), _in_blocks(terms.shared)])
    output = {"terms": sums, "number": jnp.asarray(_number(terms) if terms.number is None else terms.number)}
    if part is not None:
        output["ran"] = jnp.ones((), bool)
    if ascent.moved is not None:
        output["moved"] = over_shards.largest(ascent.moved(state, after))
    if settled is None:
        return after, output
    kept = jax.tree.map(lambda old, new: jnp.where(settled, old, new), state, after)
    return kept, {**output, "idle": settled}


def _first_terms(ascent: Ascent, key: Key, problem: Any) -> Terms:
    return _terms(ascent.step(ascent.start(key, problem), problem)[1])


def _terms(found: Terms | Array) -> Terms:
    return found if isinstance(found, Terms) else Terms(found, jnp.zeros(0, found.dtype))


def _number(terms: Terms) -> int:
    return terms.items.size + terms.shared.size


def _in_blocks(terms: Array) -> Array:
    flat = jnp.ravel(terms)
    padded = jnp.pad(flat, (0, -flat.size % _SUMMED))
    return padded.reshape(-1, _SUMMED).sum(axis=1)
