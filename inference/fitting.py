"""`fit`, the one verb: a model and data in, a `Fit` out.

It plans the run, resolves data, settings and priors, runs the driver of the engine and accounts for what was run. It
knows members only by the parts that they declare.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import inspect
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from consilience._version import __version__
from consilience.arrays import Key
from consilience.data.accept import as_contract
from consilience.data.contract import Contract
from consilience.data.memory import release
from consilience.deprecation import RENAMED
from consilience.errors import (
    ConsilienceWarning,
    DiagnosticWarning,
    InputError,
    InputProblem,
    NotConjugate,
    UnknownName,
    UnsupportedRequest,
    meant,
)
from consilience.inference.checkpoints import Checkpoint
from consilience.inference.compilation import forget_programs, keep_compiled_at_first_fit, whole_compilations
from consilience.inference.generic import GenericRun
from consilience.inference.given_options import write_given
from consilience.inference.identity import run_identity
from consilience.inference.limits import USUAL, Limits
from consilience.inference.loop import Progress
from consilience.inference.own_model import as_member
from consilience.inference.precision import in_dtype, prepared_ascent
from consilience.inference.result import STREAMS, Fit
from consilience.inference.results import Result
from consilience.models.interface import Ascent, Engine, Exact, Generic, Gibbs, Model, Starts
from consilience.models.keys import stream_key
from consilience.models.posterior import Draws, Posterior
from consilience.models.sites import Resolved
from consilience.notes import Level, Remedy
from consilience.progress import showing

METHODS = ("exact", "cavi", "gibbs", "em", "svi", "nuts")
"""Every method that some member may offer."""

ASKED = "asked for"
"""Why a method is taken that the user named."""
_HAND_WRITTEN = {"exact": "exact posterior", "cavi": "CAVI", "gibbs": "Gibbs sampler", "em": "EM"}
"""What a member may lack for some priors, settings or data, in words."""

# What the driver of a method is told of the limits.
_TOLD: dict[str, tuple[str, ...]] = {
    "exact": (),
    "cavi": ("max_steps", "tolerance", "accelerate", "devices"),
    "gibbs": ("draws", "chains", "warmup", "devices"),
    "nuts": ("draws", "chains", "warmup", "devices"),
    "svi": ("draws", "max_steps", "tolerance"),
    "em": ("max_steps", "tolerance", "accelerate", "devices"),
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is run.

    Parameters
    ----------
    member, engine, reason : what, by which engine, and why by this one.
    resolved : data, settings and priors.
    prepared : posterior of an exact engine; problem of a hand-written one; what the density reads of a generic one.
    limits, seed : of the run.
    starts : where the chains of a sampler start, where that depends on the data.
    dtype : of the floats of an ascent; None where JAX's are taken as they are.
    """

    member: Model
    engine: Engine
    reason: str
    resolved: Resolved
    prepared: Any
    limits: Limits
    seed: int
    starts: Starts | None = None
    dtype: str | None = None

    @property
    def told(self) -> dict[str, Any]:
        """The limits that the driver is told, or the engine itself that needs none."""
        if isinstance(self.engine, Exact):
            return self.limits.of("devices")
        told = self.limits.of(*_TOLD[self.engine.name])
        # Of an ascent that takes plain steps anyway there is nothing to say.
        if isinstance(self.engine, Ascent) and self.engine.coordinates is None:
            del told["accelerate"]
        return told

    def key(self, stream: str) -> Key:
        """Return the random key of a stream."""
        return stream_key(self.seed, STREAMS[stream])

    @functools.cached_property
    def circumstances(self) -> dict[str, Any]:
        """Versions, backend and the digest of the data, which takes a look at all of them."""
        versions = {f"{name}_version": importlib.metadata.version(name) for name in ("jax", "numpyro")}
        return {
            "library": "consilience", "library_version": __version__, **versions, "backend": jax.default_backend(),
            "data_hash": self.resolved.data.fingerprint(),
        }  # fmt: skip


def fit(
    model: str | Model | Callable,
    data: Any,
    priors: Any = None,
    method: str = "auto",
    *,
    draws: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    seed: int = 0,
    max_steps: int | None = None,
    tolerance: float | None = None,
    accelerate: bool = True,
    dtype: str | None = None,
    devices: int | None = None,
    engine: Any = None,
    time_limit: float | None = None,
    checkpoint: str | os.PathLike | Checkpoint | None = None,
    resume: bool = False,
    truth: Callable | None = None,
    annotator_groups: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    read: Mapping[str, Any] | None = None,
    progress: Progress = None,
    **settings: Any,
) -> Fit:
    """Infer what a model says of data.

    Parameters
    ----------
    model : str, Model or callable
        Name of a member, a `Model`, or any NumPyro function ``f(data)`` or ``f(data, priors)``.
    data : data contract, path, data frame, dict or list of rows
        The contract that the member takes, as the readers return it; or a path, an open text file, a data frame, a dict
        of columns or a list of rows, which is read by the reader of the contract whose columns it has.
    priors : Priors, optional
        The member's ``Priors``, such as ``consilience.models.glad.Priors()``, whose defaults are the paper's unless the
        member says otherwise; a dict is refused. Of a NumPyro function of your own whatever it takes.
    method : str, default "auto"
        ``auto`` (the first that the member lists and that suits the data) or one of `METHODS`.
    draws : int, optional
        Draws to keep, per chain where there are chains; 1,000 where it is left out.
    chains, warmup : int, optional
        For sampling methods; an exact posterior needs neither. 4 and 500 where they are left out, or those of a sampler
        that has starts of its own for the data.
    seed : int, default 0
        The same seed gives the same bits on the same platform.
    max_steps, tolerance : int, optional
        Limits of optimising methods; None takes the driver's.
    accelerate : bool, default True
        Whether CAVI and EM extrapolate their steps where the model allows it, which finds the same in fewer; False
        takes the plain steps as published.
    dtype : str, optional
        "float32" or "float64", in which CAVI and EM compute; None takes float64 on a CPU, where the state of the run
        has no more than 2^24 numbers, and float32 else.
    devices : int, optional
        Among how many devices, GPUs or cores, CAVI and EM divide the items, and samplers their chains: one where it is
        left out. The answer of CAVI and EM is that of one device: in float64 to 1e-9, in as many steps; in float32 to
        about 1e-3, since rounding decides when it stops. Chains are those of one device, up to rounding, and a multiple
        of the devices. Where several processes share the work (``jax.distributed``) each calls `fit` on the same data,
        or on its own part of them (`consilience.shards`), with the number of all their devices. An estimator that needs
        no device, as that of `block-linkage`, is computed in NumPy where it is left out.
    engine : str or engine, optional
        What goes through the records of `block-linkage` by EM: "local", "duckdb" or "spark", or an engine object of
        `consilience.engines`; the answer is the same. "auto" is local, or DuckDB where records are very many.
    time_limit : float, optional
        Seconds from the call on, after which the run ends with the result ``interrupted``. It is looked at between
        steps: what comes before them, compilation and an ascent at whose end chains start, is counted and not cut
        short, and some steps are always run.
    checkpoint : str, path or Checkpoint, optional
        Folder in which the run is kept every few seconds, and at Ctrl-C or the time limit, until it is complete. An
        exact posterior needs none, and fits that are compared, as by ``clusters="auto"``, keep none.
    resume : bool, default False
        Go on from the checkpoint in that folder, where there is one, to the same bits as without interruption.
    truth : callable, optional
        For a NumPyro function of your own: ``truth(key, draw, data)`` maps one draw of the posterior, a dict of sites,
        to what is true of the items: integer codes ``(item,)`` for labels, or floats ``(item, class)`` for
        plausibilities.
    annotator_groups : dict of str to str, optional
        Annotator to group, by the user's ids, of those who share a source, such as judges of one family: their
        annotations of an item count as one. In place of the column ``group`` of the annotations.
    columns : dict of str to str, optional
        Names of columns of data that are not read yet, such as ``{"item": "row_id"}``; as of their reader.
    read : dict of str to Any, optional
        How else data that are not read yet are read, such as ``{"missing": "drop"}``; keywords of the reader.
    progress : bool or callable, optional
        True, False, None (only on a terminal) or a function of (steps, number of steps).
    **settings : keyword arguments
        The member's own, such as ``reliability``; `consilience models NAME` lists them.

    Returns
    -------
    Fit
        The posterior, with the tables of the model as methods, and what was run.

    Raises
    ------
    UnknownName : no such model, method or option.
    UnsupportedRequest : the member does not have the method, or takes other data.
    NotConjugate : the method was asked for by name and the priors do not allow it.
    InvalidCheckpoint : the checkpoint is torn or of another run, or there is one and `resume` is false.
    KeyboardInterrupt : Ctrl-C came before the first step or draw, so that there is nothing to return; later the fit is
        that of the steps or draws so far, with the result ``interrupted``.

    Examples
    --------
    >>> import consilience as cs
    >>> labels = cs.Annotations.from_counts([[3, 0], [1, 2]], labels=["no", "yes"])
    >>> fit = cs.fit("dirichlet", labels)
    >>> fit.labels().round(3)
      item label  probability  certainty
    0    0    no        0.904      0.976
    1    1   yes        0.635      0.721
    """
    began = time.perf_counter()
    chosen = as_member(model, truth)
    _check_keywords(settings, chosen)
    limits = Limits(
        draws=draws, chains=chains, warmup=warmup, max_steps=max_steps, tolerance=tolerance,
        accelerate=accelerate, dtype=dtype, devices=devices, engine=engine, time_limit=time_limit,
    )  # fmt: skip
    with showing(progress), whole_compilations():
        data = as_contract(data, *chosen.takes, whose=f"'{chosen.name}'", read=read, columns=columns)
        files = {"data_file": data.file, "features_file": data.features_file}
        named = {name: file for name, file in files.items() if file}
        _check_items(data)
        if annotator_groups is not None:
            data = data.grouped(annotator_groups)

        def fitted(resolved: Resolved, kept: Checkpoint | None = None) -> Fit:
            return completed(planned(chosen, method, resolved, limits, seed), kept, progress, began, named)

        keep_compiled_at_first_fit()
        forget_programs()
        resolved = chosen.resolve(data, priors, settings)
        engine = _choose(chosen, method, resolved)[0]
        kept = None
        result = engine.compared(resolved, fitted) if isinstance(engine, Gibbs) else None
        if result is None:
            kept = None if isinstance(engine, Exact) else _checkpoint(checkpoint, resume)
            if kept is not None and not data.is_whole:
                text = "processes that share data keep no checkpoint; leave out {checkpoint}"
                raise UnsupportedRequest(text, Remedy("checkpoint"))
            result = fitted(resolved, kept)
        else:
            write_given(resolved, result)
            result.attributes["seconds"] = round(time.perf_counter() - began, 3)  # of all that were compared
    release(_num_rows(data))
    warn_of(result, stacklevel=3)
    if kept is not None and not kept.keep and result.result.complete:
        kept.remove()
    return result


def _check_keywords(settings: Mapping[str, Any], member: Model) -> None:
    """Refuse what is no setting, but says how data are read or is nearly an argument, before data are read."""
    known = {field.name for field in member.settings.fields()} | RENAMED.get(member.name, {}).keys()
    readers: list[Any] = [one.read for one in member.takes if hasattr(one, "read")]
    for name in settings.keys() - known:
        if any(name in inspect.signature(read).parameters for read in readers):
            raise UnknownName(f"'{name}' says how data are read; give it by read={{'{name}': …}}")
        if not meant(name, known) and (hint := meant(name, list(inspect.signature(fit).parameters)[:-1])):
            raise UnknownName(f"fit has no argument '{name}'; {hint}")


def planned(member: Model, method: str, resolved: Resolved, limits: Limits, seed: int) -> Plan:
    """Choose the engine and prepare it; raises before anything is run."""
    engine, reason = _choose(member, method, resolved)
    if isinstance(engine, Exact) and engine.engines is not None:
        limits = dataclasses.replace(limits, engine=engine.engines(limits.engine, resolved.data))
    if isinstance(engine, Gibbs) and engine.instead is not None:
        engine = engine.instead(resolved) or engine
    try:
        prepared, dtype = _prepared(member, engine, resolved, limits)
    except NotConjugate as problem:
        if reason == ASKED:
            raise
        lacks = f"no {_HAND_WRITTEN.get(engine.name, engine.name)}: "
        reason = f"{lacks}{problem}"
        engine, prepared, dtype = _otherwise(member, engine, resolved, limits)
        text = f"'{member.name}' is fitted by {engine.name}; {lacks}{problem.text}"
        warnings.warn(ConsilienceWarning(text, *problem.remedies), stacklevel=3)
    starts = engine.starts(resolved) if isinstance(engine, Gibbs) and engine.starts is not None else None
    limits = limits.filled(starts)
    if limits.devices is not None and engine.name in ("gibbs", "nuts"):
        from consilience.inference.chain_devices import chain_mesh

        chain_mesh(limits.devices, limits.chains or 1)  # refused before anything is run
    return Plan(
        member=member, engine=engine, reason=reason, resolved=resolved, prepared=prepared, seed=seed,
        limits=limits, starts=starts, dtype=dtype,
    )  # fmt: skip


def _choose(member: Model, method: str, resolved: Resolved) -> tuple[Engine, str]:
    if method == "auto":
        first, reason = member.engines[0], "the first that the model lists"
        against = first.unsuited(resolved) if isinstance(first, Ascent) and first.unsuited is not None else ""
        return (member.engines[1], against) if against else (first, reason)
    if method not in METHODS:
        raise UnknownName(f"no method is called '{method}'; the methods are auto, {', '.join(METHODS)}")
    engine = member.engine(method)
    if engine is None:
        raise UnsupportedRequest(f"'{member.name}' has no method '{method}'; it has {', '.join(member.methods)}")
    return engine, ASKED


def _prepared(member: Model, engine: Engine, resolved: Resolved, limits: Limits) -> tuple[Any, str | None]:
    """Return the exact posterior, or what the engine's driver takes, and of an ascent the type of its floats.

    Raises
    ------
    NotConjugate : the engine does not hold; before anything is run.
    """
    _check_parts(member, engine, limits)
    _check_shared(member, engine, resolved.data, limits)
    if isinstance(engine, Exact):
        given: dict[str, Any] = limits.of("engine") if engine.engines is not None else {}
        if limits.devices is not None:
            from consilience.inference.sharding import item_mesh

            given["mesh"] = item_mesh(limits.devices)
        return engine.solve(resolved, **given), None
    if isinstance(engine, Generic):
        if engine.check is not None:
            engine.check(resolved)
        prepared = resolved if engine.prepare is None else engine.prepare(resolved)
        prepared.settle()
        return prepared, None
    if isinstance(engine, Ascent):
        return prepared_ascent(engine, resolved, limits.dtype)
    return engine.prepare(resolved), None


def _check_shared(member: Model, engine: Engine, data: Contract, limits: Limits) -> None:
    """Refuse data of which each process has a part where all have to be seen at once."""
    if data.is_whole:
        return
    if not isinstance(engine, Ascent) or not engine.of_parts:
        others = [one.name for one in member.engines if isinstance(one, Ascent) and one.of_parts]
        remedies = [Remedy("method", name) for name in others[:1]]
        raise UnsupportedRequest(
            f"'{member.name}' by {engine.name} needs all data in one process; "
            f"{'use {method}, or ' if others else ''}read the folder by read_annotations",
            *remedies,
        )
    if (limits.devices or 1) == 1:
        number = jax.device_count()
        text = f"the processes that share these data have {number} devices together; give {{devices}}"
        raise UnsupportedRequest(text, Remedy("devices", number))


def _check_parts(member: Model, engine: Engine, limits: Limits) -> None:
    """Refuse to divide what runs on one device, or in one process."""
    if limits.engine not in (None, "auto", "local") and not (isinstance(engine, Exact) and engine.engines is not None):
        raise UnsupportedRequest(
            f"'{member.name}' by {engine.name} runs in memory; leave out {{engine}}, which is for estimators that go "
            "through records in parts",
            Remedy("engine"),
        )
    if limits.dtype is not None and not isinstance(engine, Ascent):
        raise UnsupportedRequest(
            f"a dtype is for the cavi and em that run step by step; '{member.name}' by {engine.name} does not"
        )
    if limits.devices is not None and not (
        engine.devices if isinstance(engine, Exact) else "devices" in _TOLD[engine.name]
    ):
        raise UnsupportedRequest(
            f"'{engine.name}' runs on one device; leave out {{devices}}, or use cavi or em", Remedy("devices")
        )
    if isinstance(engine, Gibbs) and engine.host and (limits.devices or 1) > 1:
        raise UnsupportedRequest(
            f"'{member.name}' by {engine.name} runs on the host; leave out {{devices}}", Remedy("devices")
        )


def _otherwise(
    member: Model, engine: Engine, resolved: Resolved, limits: Limits
) -> tuple[Engine, Any, str | None]:
    """Return the engine that takes the place of one that the priors do not allow, with what its driver takes.

    That is the member's sampler, whose conditionals may hold where an ascent or a closed form does not; else a generic
    method.
    """
    sampler = member.engine("gibbs")
    if sampler is not None and sampler is not engine:
        with contextlib.suppress(NotConjugate, UnsupportedRequest):
            return sampler, *_prepared(member, sampler, resolved, limits)
    generic = next((one for one in member.engines if isinstance(one, Generic)), None)
    if generic is None:
        raise UnsupportedRequest(f"'{member.name}' has no method for priors that are not conjugate")
    return generic, *_prepared(member, generic, resolved, limits)


# ---- run


@whole_compilations()
def completed(
    plan: Plan, kept: Checkpoint | None, progress: Progress, began: float, told: Mapping[str, Any] = {}  # noqa: B006
) -> Fit:
    """Run what was planned, and put together what it found.

    Parameters
    ----------
    plan : what is run.
    kept : the checkpoint of the run, where there is one.
    progress : see `fit`.
    began : the time of `time.perf_counter` at which the call began.
    told : what the fit is to say of how the run began, in words.

    Raises
    ------
    KeyboardInterrupt : by hand, before the first step or draw.
    """
    run, begun = None, dict[str, Any]()
    if not isinstance(plan.engine, Exact):
        with in_dtype(plan.dtype):
            release(_num_rows(plan.resolved.data))
            run, begun = _run(plan, kept, progress, began)
    found = _account(plan, run, {**begun, **told, **_duration(began, kept)})
    if found.is_empty and "keyboard" in found.message:
        raise KeyboardInterrupt
    return found


def warn_of(found: Fit, stacklevel: int) -> None:
    """Warn of all that is worse than a note, at the line of the user's call."""
    for note in found.findings():
        if note.level > Level.note:
            category = DiagnosticWarning if note.level is Level.error else ConsilienceWarning
            warnings.warn(category(note.text, *note.remedies), stacklevel=stacklevel)


def _run(
    plan: Plan, kept: Checkpoint | None, progress: Progress, began: float
) -> tuple[GenericRun, dict[str, Any]]:
    """Run the driver, and return how the run began, in words."""
    start, begun = _start(plan)
    if kept is not None:
        kept.shared = jax.process_count() > 1 and (plan.limits.devices or 1) > 1
        kept.open(run_identity(plan, {**begun, **plan.circumstances}))
    loop: dict[str, Any] = {"key": plan.key("inference"), "progress": progress, "checkpoint": kept}
    prepared = plan.prepared
    with kept or contextlib.nullcontext():
        # Also of a run that goes on: its checkpoint has the chains, and not what the ascent learned of the problem.
        if isinstance(plan.engine, Gibbs) and start is not None:
            prepared = plan.engine.begin_at(prepared, _ascended(plan, start))  # type: ignore[misc]
        if plan.limits.time_limit is not None:
            loop["time_limit"] = max(plan.limits.time_limit - (time.perf_counter() - began), 0.0)
        run = _driven(plan, prepared, start, loop)
    return run, begun


def _driven(plan: Plan, prepared: Any, start: Any, loop: dict[str, Any]) -> GenericRun:
    """Call the driver of the engine."""
    if isinstance(plan.engine, Ascent):
        from consilience.inference.ascent import run_ascent

        return run_ascent(plan.engine, prepared, of_parts=not plan.resolved.data.is_whole, **loop, **plan.told)
    if isinstance(plan.engine, Gibbs):
        from consilience.inference.gibbs import run_gibbs

        return run_gibbs(plan.engine, prepared, **loop, **plan.told)
    assert plan.member.density is not None
    if plan.engine.name == "nuts":
        from consilience.inference.nuts import run_nuts

        return run_nuts(plan.member.density, prepared, start_values=start, **loop, **plan.told)
    from consilience.inference.svi import run_svi

    return run_svi(plan.member.density, prepared, **loop, **plan.told)


def _start(plan: Plan) -> tuple[Any, dict[str, str]]:
    """Return where chains start, and that in words; None and nothing where they start at random.

    Of NUTS values by site, draws of CAVI; of Gibbs sampling the ascent after which chains start, and its problem.
    """
    ascent = plan.member.engine("cavi")
    chains: Any = plan.limits.chains
    where = {"start": "the end of CAVI"}
    if plan.starts is not None and plan.starts.words:
        words = plan.starts.words
        where = {"starts": "; ".join(words[chain % len(words)] for chain in range(chains))}
    if plan.engine.name == "nuts":
        from consilience.inference.approximation import chain_starts

        values = chain_starts(plan.member, plan.resolved, key=plan.key("start"), chains=chains)
        return values, {} if values is None else {"start": "draws of CAVI"}
    if isinstance(plan.engine, Gibbs) and plan.engine.begin_at is not None and ascent is not None:
        with contextlib.suppress(NotConjugate, UnsupportedRequest):
            return (ascent, ascent.prepare(plan.resolved)), where
    return None, where if plan.starts is not None and plan.starts.words else {}


def _ascended(plan: Plan, start: tuple[Ascent, Any]) -> Posterior:
    """Return what the ascent ends with at which chains start."""
    from consilience.inference.ascent import run_ascent

    ascent, problem = start
    run = run_ascent(ascent, problem, key=plan.key("inference"), progress=False)
    if run.result is Result.interrupted:
        raise KeyboardInterrupt  # no chain has begun, so that there is nothing to keep
    return posterior_of(plan.member, ascent, run, plan.resolved)


def posterior_of(member: Model, engine: Engine, run: GenericRun, resolved: Resolved) -> Posterior:
    """Return what a run ended with, mirror modes mapped to one before chains are pooled or compared."""
    samples, hidden = run.samples, dict[str, Any]()
    if isinstance(engine, Gibbs) and engine.hidden is not None:
        samples, hidden = engine.hidden(samples, resolved)
    if member.sites.canonical is not None and run.has_draws:
        samples = member.sites.canonical(samples, resolved)
    if isinstance(engine, Ascent):
        return engine.finish({name: values[0, 0] for name, values in samples.items()}, resolved)
    return Draws(samples, hidden)


# ---- account


def _account(plan: Plan, run: GenericRun | None, attributes: dict[str, Any]) -> Fit:
    """Put together what was run and what it found."""
    computed = {} if plan.dtype is None else {"dtype": plan.dtype}
    attributes = {**plan.told, **computed, **plan.circumstances, **attributes}
    posterior, result = plan.prepared, Result.converged
    if run is not None:
        with in_dtype(plan.dtype):
            posterior, result = posterior_of(plan.member, plan.engine, run, plan.resolved), run.result
        if plan.dtype is not None:
            posterior = posterior.on_host()
        run = run._replace(samples={})
    found = Fit(
        member=plan.member, resolved=plan.resolved, method=plan.engine.name, reason=plan.reason, seed=plan.seed,
        draws=plan.limits.draws or USUAL["draws"], posterior=posterior, result=result, run=run, attributes=attributes,
        engine=None if plan.limits.engine in ("auto", "local") else plan.limits.engine,
    )  # fmt: skip
    attributes |= _worst(found)
    return found


def _worst(found: Fit) -> dict[str, Any]:
    """Return the largest R-hat and the fewest effective draws, and of what; nothing where there is one chain."""
    if found.run is None or found.posterior.num_chains == 1 or found.worst is None or np.isnan(found.worst.r_hat):
        return {}
    worst = {"worst_r_hat": found.worst.r_hat, "fewest_effective_draws": found.worst.size}
    return worst if found.worst.looked_at == found.worst.number else {**worst, "diagnosed": found.worst.quantities}


def _duration(began: float, kept: Checkpoint | None) -> dict[str, float]:
    """Return the seconds of all parts of a run, and the step at which it went on, where it did."""
    seconds = time.perf_counter() - began
    if kept is None or kept.resumed_at is None:
        return {"seconds": round(seconds, 3)}
    return {"resumed_at_step": kept.resumed_at, "seconds": round(seconds + kept.earlier_seconds, 3)}


def _checkpoint(checkpoint: str | os.PathLike | Checkpoint | None, resume: bool) -> Checkpoint | None:
    if checkpoint is None and resume:
        text = "{resume} needs {checkpoint}, the folder of the run to go on with"
        raise UnsupportedRequest(text, Remedy("resume", True), Remedy("checkpoint"))
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    return Checkpoint(checkpoint, resume=resume)


def _num_rows(data: Contract) -> int:
    return data.size_of(data.rows) or 0


def _check_items(data: Contract) -> None:
    if data.size_of(data.unit) == 0:
        raise InputError(InputProblem("the data have no items", "give at least one row"))
