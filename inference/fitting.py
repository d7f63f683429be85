"""`fit`, the one verb: a model and data in, a `Fit` out.

It chooses the method, runs its driver and records what was run. It knows members only by the parts that they declare.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import inspect
import math
import numbers
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np

from consilience._version import __version__
from consilience.arrays import Key
from consilience.data.contract import Contract
from consilience.errors import (
    ConsilienceWarning,
    DiagnosticWarning,
    InputError,
    InputProblem,
    NotConjugate,
    UnknownName,
    UnsupportedRequest,
)
from consilience.inference.checkpoints import Checkpoint
from consilience.inference.generic import GenericRun
from consilience.inference.identity import program_identity
from consilience.inference.keys import stream_key
from consilience.inference.loop import Progress
from consilience.inference.results import Result
from consilience.inference.stored_priors import describe_priors, unknown_priors
from consilience.models import member as registered
from consilience.models.interface import Ascent, Model
from consilience.models.truth import LabelDraws, PlausibilityDraws, Truth

__all__ = ["METHODS", "Fit", "as_member", "fit", "is_direct", "resolve_priors"]

METHODS = ("exact", "cavi", "gibbs", "em", "svi", "nuts")
"""Every method that some member may offer."""

# Numbers of streams of random keys: the same seed gives inference, truth, exported draws, k-hat and the
# start of chains their own.
_INFERENCE, _TRUTH, _EXPORT, _WEIGHTS, _START = range(5)

_ASKED = "asked for"

_HAND_WRITTEN = {"exact": "exact posterior", "cavi": "CAVI", "gibbs": "Gibbs sampler", "em": "EM"}
"""What a member may lack for some priors, options or data, in words."""

_ONE_PROCESS = "'{}' by {} runs in one process; leave out processes=, which block-linkage by em alone takes"

# What each driver is told of the arguments of `fit`; None leaves it the driver's own default.
_TOLD: dict[str, tuple[str, ...]] = {
    "exact": (),
    "cavi": ("max_steps", "tolerance", "devices"),
    "gibbs": ("draws", "chains", "warmup"),
    "nuts": ("draws", "chains", "warmup"),
    "svi": ("draws", "max_steps", "tolerance"),
    "em": ("max_steps", "tolerance", "devices"),
}

# Refuse to build arrays of more numbers than this in one piece: 2^28 in float32 are one GiB.
_MOST_NUMBERS = 1 << 28


def fit(
    model: str | Model | Callable,
    data: Contract,
    priors: Any = None,
    method: str = "auto",
    *,
    draws: int = 1000,
    chains: int = 4,
    warmup: int = 500,
    seed: int = 0,
    max_steps: int | None = None,
    tolerance: float | None = None,
    devices: int | None = None,
    processes: int | None = None,
    time_limit: float | None = None,
    checkpoint: str | os.PathLike | Checkpoint | None = None,
    resume: bool = False,
    truth: Callable | None = None,
    progress: Progress = None,
    **options: Any,
) -> Fit:
    """Infer what a model says of data.

    Parameters
    ----------
    model : name of a member, a `Model`, or any NumPyro function ``f(data)`` or ``f(data, priors)``.
    data : the contract that the member takes, as the readers return it.
    priors : the member's ``Priors``; the paper's by default.
    method : ``auto`` (the first that the member lists) or one of `METHODS`.
    draws : draws to keep, per chain where there are chains.
    chains, warmup : for sampling methods; an exact posterior needs neither.
    seed : the same seed gives the same bits on the same platform.
    max_steps, tolerance : limits of optimising methods; None takes the driver's.
    devices : among how many devices, GPUs or cores, CAVI and EM divide the items: one where it is left out. The answer
        is that of one device, up to rounding. Where several processes share the work (``jax.distributed``) each calls
        `fit` on the same data, with the number of all their devices. An estimator that needs no device, as that of
        `block-linkage`, is computed in NumPy where it is left out.
    processes : how many processes go through the data of `block-linkage` by EM: this one where it is left out. Every
        bit of the answer is the same. In a script, call `fit` under ``if __name__ == "__main__":``, as Python asks for
        where processes are started.
    time_limit : seconds from the call on, after which the run ends with the result ``interrupted``. It is looked at
        between steps: what comes before them, compilation and an ascent at whose end chains start, is counted and not
        cut short, and some steps are always run.
    checkpoint : folder in which the run is kept every few seconds, and at Ctrl-C or the time limit, until it is
        complete. An exact posterior needs none.
    resume : go on from the checkpoint in that folder, where there is one, to the same bits as without interruption.
    truth : for a NumPyro function of your own: ``truth(key, draw, data)`` maps one draw of the posterior, a dict of
        sites, to what is true of the items: integer codes ``(item,)`` for labels, or floats ``(item, class)`` for
        plausibilities.
    progress : True, False, None (only on a terminal) or a function of (steps, number of steps).
    options : the member's own settings, such as ``reliability``; `consilience models NAME` lists them.

    Returns
    -------
    Fit

    Raises
    ------
    UnknownName : no such model, method or option.
    UnsupportedRequest : the member does not have the method, or takes other data.
    NotConjugate : the method was asked for by name and the priors do not allow it.
    InvalidCheckpoint : the checkpoint is torn or of another run, or there is one and `resume` is false.
    """
    chosen = as_member(model, truth)
    _check_data(chosen, data)
    parts = {"devices": devices, "processes": processes}
    _check_counts(draws=draws, chains=chains, warmup=warmup, **{name: n for name, n in parts.items() if n is not None})
    priors, options = resolve_priors(chosen, priors, options)
    settings = chosen.checked_options(options)
    method, reason = _choose(chosen, method)
    began = time.perf_counter()
    try:
        prepared = _prepared(chosen, method, data, priors, settings, parts)
    except NotConjugate as problem:
        if reason == _ASKED:
            raise
        reason = f"no {_HAND_WRITTEN.get(method, method)}: {problem}"
        method, prepared = _otherwise(chosen, method, data, priors, settings, parts)
        warnings.warn(f"'{chosen.name}' is fitted by {method}; {reason}", ConsilienceWarning, stacklevel=2)
    limits = {
        "draws": draws, "chains": chains, "warmup": warmup, "max_steps": max_steps, "tolerance": tolerance,
        "devices": devices,
    }  # fmt: skip
    if devices is not None and "devices" not in _TOLD[method]:
        raise UnsupportedRequest(f"'{method}' runs on one device; leave out devices=, or use cavi or em")
    if processes is not None and not is_direct(chosen, method):
        raise UnsupportedRequest(_ONE_PROCESS.format(chosen.name, method))
    own = {name: limits[name] for name in _TOLD[method] if limits[name] is not None}
    starts = _starts(chosen, data, priors, settings, seed, chains) if method == "nuts" else {}
    begun = {"start": "draws of CAVI"} if starts else {}
    ascent = _ascent_before(chosen, method, data, priors, settings)
    if ascent is not None:
        begun = {"start": "the end of CAVI"}
    run, attributes = None, {**own, **begun, **_attributes(data)}
    direct = is_direct(chosen, method)
    kept = None if direct else _checkpoint(checkpoint, resume)
    if kept is not None:
        kept.shared = jax.process_count() > 1 and (devices or 1) > 1
        kept.open(_run_identity(chosen, method, priors, settings, {"seed": seed, **attributes}))
    if not direct:
        loop: dict[str, Any] = {"key": stream_key(seed, _INFERENCE), "progress": progress, "checkpoint": kept}
        with kept or contextlib.nullcontext():
            # A run that goes on has its chains in the checkpoint, and no use for where they began.
            if ascent is not None and (kept is None or kept.resumed_at is None):
                prepared = _informed(chosen, prepared, ascent, data, priors, settings, seed)
            if time_limit is not None:
                loop["time_limit"] = max(time_limit - (time.perf_counter() - began), 0.0)
            run = _canonical(chosen, _driver(method)(*prepared, **loop, **own, **starts), data, priors, settings)
    seconds = time.perf_counter() - began
    if kept is not None and kept.resumed_at is not None:
        seconds += kept.earlier_seconds
        attributes["resumed_at_step"] = kept.resumed_at
    attributes["seconds"] = round(seconds, 3)
    if chosen.notes is not None and method != "em" and (advice := chosen.notes(data, priors, **settings)):
        attributes["advice"] = advice  # kept, because a fit that was saved knows its priors in words only
    posterior = prepared if run is None else _posterior(chosen, method, run)
    if run is not None and method == "cavi" and run.result.complete:
        run, noted = _weighed(chosen, run, posterior, data, priors, settings, seed)
        attributes |= noted
    result = Fit(
        member=chosen, data=data, priors=priors, options=settings, method=method, reason=reason, seed=seed, draws=draws,
        posterior=posterior, result=run.result if run else Result.converged, run=run, attributes=attributes,
    )  # fmt: skip
    attributes |= _worst(result)
    for message in result.diagnostics():
        warnings.warn(message, DiagnosticWarning, stacklevel=2)
    if kept is not None and not kept.keep and result.result.complete:
        kept.remove()
    return result


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """What inference found, with what was run. Tables of the member are methods: ``fit.labels()``.

    Parameters
    ----------
    member, data, priors, options : what was fitted; the priors are None after loading where a file cannot hold them.
    method, reason : how, and why so.
    seed, draws : of the run; ``draws`` per chain.
    posterior : the parameters of a posterior in closed form (exact, or of CAVI), or a dict of draws
        ``(chain, draw, …)`` by site.
    result : how the run ended.
    run : the driver's own account; None for an exact posterior and after loading.
    attributes : settings of the driver (chains, warm-up, limits), versions, data hash, seconds, worst diagnostics.
    """

    member: Model
    data: Contract
    priors: Any
    options: dict[str, Any]
    method: str
    reason: str
    seed: int
    draws: int
    posterior: Any
    result: Result
    run: GenericRun | None = None
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def elbo(self) -> np.ndarray | None:
        """The objective at every step, of methods that have one."""
        return self.run.elbo if self.run else getattr(self.posterior, "evidence", None)

    @cached_property
    def truth(self) -> Truth:
        """Draws of what the model calls true; the same at every use."""
        drawn, estimated = self._drawn, None
        if self.method == "em" and isinstance(self.member.em, Ascent):
            estimated = self.member.em.truth
        if estimated is not None:
            truth = estimated({site: values[0] for site, values in drawn.items()}, self.data)
        else:
            own = {"num_draws": self.draws, **self.options}
            if "priors" in inspect.signature(self.member.truth).parameters:
                own["priors"] = self.priors
            truth = self.member.truth(drawn, self.data, key=stream_key(self.seed, _TRUTH), **own)
        if hasattr(truth, "records"):  # a partition has neither items nor classes
            truth.records = getattr(self.data, "records", None)
            return truth
        truth.items = getattr(self.data, "items", getattr(self.data, "mentions", None))
        if getattr(truth, "classes", ()) is None:  # views have none
            truth.classes = getattr(self.data, "classes", getattr(self.data, "labels", None))
        return truth

    @property
    def unknown_priors(self) -> list[str]:
        """Fields of the priors that a loaded fit knows in words only: functions and distributions of the user's own."""
        if self.priors is not None or self.member.priors is None:
            return []
        return unknown_priors({}, self.attributes.get("priors", ""), self.member.priors)

    @property
    def closed_form(self) -> bool:
        """Whether the posterior is the parameters of distributions, from which draws are made when they are needed."""
        return not isinstance(self.posterior, dict)

    @property
    def has_draws(self) -> bool:
        """Whether the posterior is draws, which can be summarised: no closed form, and no estimate such as EM's."""
        return not self.closed_form and self.method != "em"

    @property
    def _drawn(self) -> Any:
        """The posterior in closed form, or the draws of all chains, ``(draw, …)`` by site."""
        if self.closed_form:
            return self.posterior
        drawn = _flat_draws(self.posterior)
        if any(len(values) == 0 for values in drawn.values()):
            raise UnsupportedRequest(self._without_draws())
        return drawn

    def _without_draws(self) -> str:
        """Say why there are no draws."""
        if self.result is Result.nonfinite:
            return "the run met numbers that are not finite before its first draw; look at its priors and its data"
        return "the run ended before its first draw; go on with it, or give it more time"

    def samples(self, draws: int | None = None) -> dict[str, np.ndarray]:
        """Return draws of the model's sites, each ``(chain, draw, …)``.

        Parameters
        ----------
        draws : how many to make of a posterior in closed form; those of the fit by default. Stored draws are all
            returned.
        """
        if not self.closed_form:
            return self.posterior
        if self.member.draw is None:
            raise UnsupportedRequest(f"'{self.member.name}' has no draws of its sites; use fit.posterior")
        draws = draws or self.draws
        make = lambda key: self.member.draw(self.posterior, self.data, key=key, num_draws=draws, **self.options)  # noqa: E731
        shapes = jax.eval_shape(make, stream_key(self.seed, _EXPORT))
        largest = max(np.prod(shape.shape) for shape in shapes.values())
        if largest > _MOST_NUMBERS:
            raise UnsupportedRequest(
                f"{draws} draws of all sites would hold {int(largest):,} numbers; ask for fewer draws, "
                "or use the tables and scores, which never build them"
            )
        return {site: np.asarray(values)[None] for site, values in make(stream_key(self.seed, _EXPORT)).items()}

    def summary(self, draws: int | None = None, interval: float = 0.95) -> Any:
        """Return a data frame with mean, sd, interval, R-hat, ESS and MCSE of every scalar quantity."""
        return self._summary.copy() if (draws, interval) == (None, 0.95) else self._summarised(draws, interval)

    @cached_property
    def _summary(self) -> Any:
        """The summary of many quantities takes longer than some runs, and `fit` has looked at it already."""
        return self._summarised(None, 0.95)

    def _summarised(self, draws: int | None, interval: float) -> Any:
        from consilience.inference import posterior

        samples = self.samples(draws)
        if self.member.summarised is not None:
            samples = self.member.summarised(samples, self.data)
        return posterior.summarise(samples, dims=self._dims(samples), coords=self._coords(), interval=interval)

    def to_arviz(self, draws: int | None = None) -> Any:
        """Return the posterior as ArviZ has it, with the user's own ids as coordinates."""
        from consilience.inference import posterior

        samples = self.samples(draws)
        groups: dict[str, Any] = {"posterior": samples}
        if self.run is not None and self.run.stats:
            groups["sample_stats"] = self.run.stats
        return posterior.to_arviz(groups, dims=self._dims(samples), coords=self._coords(), attrs=self.describe())

    def table(self, name: str, **choice: Any) -> Any:
        """Return one of the member's tables as a data frame, with the user's own ids.

        Parameters
        ----------
        name : of the table.
        choice : which part of it, where the member offers one, such as ``annotators`` by their codes.
        """
        import pandas

        return pandas.DataFrame(self.table_columns(name, **choice))

    def table_columns(self, name: str, *, codes: bool = False, **choice: Any) -> dict[str, np.ndarray]:
        """Return a table as `table` does, as arrays, which takes a fraction of the time where rows are many.

        Parameters
        ----------
        name, choice : as in `table`.
        codes : whether the columns of ids hold codes.
        """
        if name not in self.member.tables:
            raise UnknownName(f"'{self.member.name}' has no table '{name}'; it has {', '.join(self.member.tables)}")
        columns = self.member.tables[name](self._drawn, self.data, self.truth, **choice)
        if codes:
            return columns
        classes, annotators = getattr(self.truth, "classes", None), getattr(self.data, "annotators", None)
        ids = {"item": getattr(self.truth, "items", None), "label": classes, "class": classes, "annotator": annotators}
        # An entity is named by the first of its records.
        ids |= dict.fromkeys(("record", "record_a", "record_b", "entity"), getattr(self.truth, "records", None))
        ids |= dict.fromkeys(("expert", "expert_a", "expert_b"), getattr(self.data, "experts", None))
        ids |= dict.fromkeys(("item_a", "item_b"), ids["item"]) | {"feature": getattr(self.data, "features", None)}
        return {column: _named(values, ids.get(column)) for column, values in columns.items()}

    def __getattr__(self, name: str) -> Any:
        member = self.__dict__.get("member")
        if member is not None and name in member.tables:
            return lambda: self.table(name)
        if member is not None and name in member.measures:
            return functools.partial(_named_function(member.measures[name]), self)
        tables = f"; its tables are {', '.join(member.tables)}" if member is not None else ""
        raise AttributeError(f"a fit has no attribute '{name}'{tables}")

    def diagnostics(self) -> list[str]:
        """Return what is poor about the run, in words; empty when nothing is."""
        if self.run is None:
            return [*self._warnings]
        from consilience.inference import posterior

        poor = posterior.poor_diagnostics(self._summary if self.has_draws else None, self.run)
        return poor + self._warnings

    @cached_property
    def _warnings(self) -> list[str]:
        """What the member itself finds wrong with the outcome."""
        return self._said_by(self.member.warnings)

    @cached_property
    def _findings(self) -> list[str]:
        """What else the member has to say of the outcome."""
        return self._said_by(self.member.findings)

    def _said_by(self, words: Callable[..., list[str]] | None) -> list[str]:
        """Ask a member for its words, where it has any; it gets the truth where it asks for it."""
        if words is None:
            return []
        asks = "truth" in inspect.signature(words).parameters
        own: dict[str, Any] = {"truth": lambda: self.truth} if asks else {}
        return words(self.posterior, self.data, **own, **self.options)

    def k_hat(self) -> float | None:
        """Return the Pareto k-hat of a fit by CAVI, however large; None of members that do not state their factors.

        Above 0.7 the approximation cannot stand in for the posterior, as its intervals would have to.
        """
        from consilience.inference.approximation import approximation_k_hat

        if self.method != "cavi":
            raise UnsupportedRequest(f"k-hat is about an approximation; this fit is by {self.method}")
        return approximation_k_hat(
            self.member, self.posterior, self.data, self.priors, self.options, key=stream_key(self.seed, _WEIGHTS)
        )

    def notes(self) -> list[str]:
        """Return what a reader should know of the model and the approximation, in words: no fault of the run."""
        notes = [*self._warnings, *self._findings, *self.attributes.get("advice", [])]
        if self.run is not None and self.method == "cavi":
            from consilience.inference import posterior

            sampler = "gibbs" if "gibbs" in self.member.methods else "nuts"
            notes += posterior.approximation_notes(self.run.k_hat, sampler)
        return notes

    def describe(self) -> dict[str, Any]:
        """Return what was run: model, method and why, options, priors, seed, result, versions, data hash, seconds."""
        return {
            "model": self.member.name, "method": self.method, "reason": self.reason, "result": str(self.result),
            **{f"option_{name}": value for name, value in self.options.items()},
            "priors": describe_priors(self.priors), "seed": self.seed, "draws": self.draws, **self.attributes,
            **({"notes": "; ".join(notes)} if (notes := self.notes()) else {}),
        }  # fmt: skip

    def save(self, path: Any) -> None:
        """Save to a folder; see `consilience.inference.saved.save`."""
        from consilience.inference.saved import save

        save(self, path)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"Fit({self.member.name} by {self.method}{options}; {self.data!r}; {self.result})"

    def _dims(self, samples: dict[str, np.ndarray]) -> dict[str, tuple[str, ...]]:
        """Names of the dimensions that have one: a site whose shape the member did not foresee keeps ArviZ's names."""
        dims = {}
        for site, names in self.member.dims.items():
            if site in samples and samples[site].ndim - 2 == len(names):
                dims[site] = names
        return dims

    def _coords(self) -> dict[str, Any]:
        data: Any = self.data
        coords: dict[str, Any] = {}
        named = {
            "item": "items", "label": "labels", "class": "classes", "annotator": "annotators", "expert": "experts",
        }  # fmt: skip
        for dim, ids in named.items():
            if getattr(data, ids, None) is not None:
                coords[dim] = np.asarray(getattr(data, ids)).astype(str)
        if getattr(data, "features", None) is not None:
            coords["feature"] = np.append(np.asarray(data.features).astype(str), "offset")
            if "item" in coords:
                coords["judged_item"] = coords["item"][np.unique([data.item_a, data.item_b])]
        if "label" in coords and "class" not in coords:
            coords["class"] = coords["label"]  # of models of labels: the true one
        if {"item", "class"} <= set(coords) and hasattr(data, "entry_item") and hasattr(data, "entry_class"):
            items, classes = coords["item"][data.entry_item], coords["class"][data.entry_class]
            coords["entry"] = np.char.add(np.char.add(items, ": "), classes)
        return coords


def _named_function(place: str) -> Callable[..., Any]:
    """Import a function by its name, ``module:function``; what inference may not import, a member may name."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def as_member(model: str | Model | Callable, truth: Callable | None) -> Model:
    """Return the member; a NumPyro function of the user's own becomes one for the time of the fit."""
    if isinstance(model, str | Model):
        if truth is not None:
            raise UnsupportedRequest("truth= is for a NumPyro function of your own; a member of the zoo brings its own")
        return registered(model) if isinstance(model, str) else model
    if not callable(model):
        raise UnsupportedRequest(f"model is {type(model).__name__}; give the name of a model or a NumPyro function")
    name = getattr(model, "__name__", type(model).__name__)
    return Model(
        name=name, title="a NumPyro function", citation="", data=Contract, methods=("nuts", "svi"), model=model,
        truth=_own_truth(name, truth),
    )  # fmt: skip


def _own_truth(name: str, truth: Callable | None) -> Callable[..., Truth]:
    """Turn the user's function of one draw into draws of the truth."""

    def all_draws(
        posterior: dict[str, np.ndarray], data: Contract, *, key: Key, num_draws: int, **options: Any
    ) -> Truth:
        if truth is None:
            raise UnsupportedRequest(
                f"'{name}' does not say what the truth is; fit it with truth=function, where function(key, draw, data) "
                "returns the labels (item,) or plausibilities (item, class) of one draw"
            )
        size = len(next(iter(posterior.values())))
        values = np.asarray(jax.vmap(truth, in_axes=(0, 0, None))(jax.random.split(key, size), posterior, data))
        if values.ndim == 3 and values.dtype.kind == "f":
            return PlausibilityDraws.dense(values)
        if values.ndim == 2 and values.dtype.kind in "iu":
            classes = getattr(data, "num_labels", getattr(data, "num_classes", int(values.max()) + 1))
            return LabelDraws(values, classes)
        raise UnsupportedRequest(
            f"truth returned {values.dtype} of shape {values.shape[1:]} for one draw; return integer codes (item,) for "
            "labels or floats (item, class) for plausibilities"
        )

    return all_draws


def _check_data(member: Model, data: Any) -> None:
    taken = (member.data, *member.also)
    if not isinstance(data, taken):
        readers = {
            "Annotations": "read_annotations", "Ratings": "read_ratings", "Rankings": "read_rankings",
            "Mentions": "read_mentions", "Records": "read_records", "Constraints": "read_constraints",
        }  # fmt: skip
        read = " or ".join(readers[contract.__name__] for contract in taken if contract.__name__ in readers)
        hint = f", as {read} returns them" if read else ""
        named = " or ".join(contract.__name__ for contract in taken)
        raise UnsupportedRequest(f"'{member.name}' takes {named}{hint}; this is {type(data).__name__}")
    if 0 in (getattr(data, f"num_{units}", 1) for units in ("items", "mentions", "records")):
        raise InputError(InputProblem("the data have no items", "give at least one row"))


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        least = 0 if name == "warmup" else 1
        if not isinstance(value, numbers.Integral) or value < least:
            raise UnsupportedRequest(f"{name} is {value!r}; give a whole number, {least} or more")


def resolve_priors(member: Model, priors: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the priors, and the options without the scalar shorthands for priors."""
    short = {name: options[name] for name in member.prior_options if options.get(name) is not None}
    rest = {name: value for name, value in options.items() if name not in member.prior_options}
    if priors is not None and member.priors is not None and not isinstance(priors, member.priors):
        raise UnsupportedRequest(
            f"priors is {type(priors).__name__}; '{member.name}' takes {_qualified(member.priors)}"
        )
    if priors is not None and member.priors is None and member.data is not Contract:
        raise UnsupportedRequest(f"'{member.name}' has no priors to replace; leave out priors=")
    if short and priors is not None:
        raise UnsupportedRequest(f"the prior is given twice, by {next(iter(short))} and priors; give one of them")
    if short:
        fields = [member.prior_options[name][1](_positive(name, value, member)) for name, value in short.items()]
        names = [name for own in fields for name in own]
        if len(set(names)) < len(names):
            raise UnsupportedRequest(
                f"{' and '.join(short)} set the same prior of '{member.name}'; give one of them, or priors="
            )
        return member.priors(**{name: prior for own in fields for name, prior in own.items()}), rest
    return member.priors() if priors is None and member.priors is not None else priors, rest


def _positive(name: str, value: Any, member: Model) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0 < number < np.inf:
        raise UnsupportedRequest(f"option '{name}' of '{member.name}' is {value!r}; give a number above 0")
    return number


def _choose(member: Model, method: str) -> tuple[str, str]:
    if method == "auto":
        return member.methods[0], "the first that the model lists"
    if method not in METHODS:
        raise UnknownName(f"no method is called '{method}'; the methods are auto, {', '.join(METHODS)}")
    if method not in member.methods:
        raise UnsupportedRequest(f"'{member.name}' has no method '{method}'; it has {', '.join(member.methods)}")
    return method, _ASKED


def _otherwise(
    member: Model, method: str, data: Contract, priors: Any, settings: dict[str, Any], parts: dict[str, int | None]
) -> tuple[str, Any]:
    """Return the method that takes the place of one that the priors do not allow, with what its driver takes.

    That is the member's sampler, whose conditionals may hold where an ascent or a closed form does not; else a generic
    method.
    """
    if method != "gibbs" and member.gibbs is not None and "gibbs" in member.methods:
        with contextlib.suppress(NotConjugate, UnsupportedRequest):
            return "gibbs", _prepared(member, "gibbs", data, priors, settings, parts)
    generic = _generic(member)
    return generic, _prepared(member, generic, data, priors, settings, parts)


def _generic(member: Model) -> str:
    generic = [method for method in member.methods if method in ("nuts", "svi")]
    if not generic:
        raise UnsupportedRequest(f"'{member.name}' has no method for priors that are not conjugate")
    return generic[0]


def _prepared(
    member: Model, method: str, data: Contract, priors: Any, settings: dict[str, Any], parts: dict[str, int | None]
) -> Any:
    """Return the exact posterior, or what the method's driver takes; raises `NotConjugate` before anything is run."""
    if is_direct(member, method):
        direct = getattr(member, method)
        return direct(data, priors, **settings, **_divided(direct, member.name, method, **parts))
    if method in ("cavi", "gibbs", "em"):
        kernel = getattr(member, method)
        return kernel, kernel.prepare(data, priors, **settings)
    if member.model_data is not None:
        data = member.model_data(data, **settings)
    return member.model, data, priors, settings


def _divided(
    direct: Callable[..., Any], name: str, method: str, *, devices: int | None, processes: int | None
) -> dict[str, Any]:
    """Return the mesh and the number of processes for a method that is one function, where they were asked for."""
    known, given = inspect.signature(direct).parameters, dict[str, Any]()
    if processes is not None:
        if "processes" not in known:
            raise UnsupportedRequest(_ONE_PROCESS.format(name, method))
        given["processes"] = processes
    if devices is not None:
        if "mesh" not in known:
            raise UnsupportedRequest(f"'{method}' runs on one device; leave out devices=, or use cavi or em")
        from consilience.inference.sharding import item_mesh

        given["mesh"] = item_mesh(devices)
    return given


def is_direct(member: Model, method: str) -> bool:
    """Return whether a method is one function that returns the posterior, without a driver."""
    return method == "exact" or (method == "em" and not isinstance(member.em, Ascent))


def _checkpoint(checkpoint: str | os.PathLike | Checkpoint | None, resume: bool) -> Checkpoint | None:
    if checkpoint is None and resume:
        raise UnsupportedRequest("resume=True needs checkpoint=, the folder of the run to go on with")
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        return checkpoint
    return Checkpoint(checkpoint, resume=resume)


def _run_identity(
    member: Model, method: str, priors: Any, settings: dict[str, Any], others: dict[str, Any]
) -> dict[str, Any]:
    """Return all that decides the outcome of a run, in words that a message can show."""
    options = {f"option_{name}": value for name, value in settings.items()}
    words = {"model": member.name, "method": method, **options, "priors": describe_priors(priors), **others}
    return {**words, **program_identity(member.model, priors)}


def _driver(method: str) -> Callable[..., GenericRun]:
    from consilience.inference.ascent import run_ascent
    from consilience.inference.gibbs import run_gibbs
    from consilience.inference.nuts import run_nuts
    from consilience.inference.svi import run_svi

    drivers: dict[str, Callable[..., GenericRun]] = {
        "cavi": functools.partial(run_ascent, label="CAVI"), "gibbs": run_gibbs, "nuts": run_nuts, "svi": run_svi,
        "em": run_ascent,
    }  # fmt: skip
    return drivers[method]


def _canonical(member: Model, run: GenericRun, data: Contract, priors: Any, settings: dict[str, Any]) -> GenericRun:
    """Map mirror modes to one, before chains are pooled or compared."""
    if member.canonical is None or not run.has_draws:
        return run
    return run._replace(samples=member.canonical(run.samples, data, priors, **settings))


def _posterior(member: Model, method: str, run: GenericRun) -> Any:
    """Return the draws of a run; of CAVI, which ends with parameters, the posterior in closed form."""
    if method != "cavi":
        return run.samples
    return member.posterior(**{name: values[0, 0] for name, values in run.samples.items()})


def _starts(
    member: Model, data: Contract, priors: Any, settings: dict[str, Any], seed: int, chains: int
) -> dict[str, Any]:
    """Return where the chains of NUTS start, where CAVI can say it; else they start at random."""
    from consilience.inference.approximation import chain_starts

    values = chain_starts(member, data, priors, settings, key=stream_key(seed, _START), chains=chains)
    return {} if values is None else {"start_values": values}


def _ascent_before(member: Model, method: str, data: Contract, priors: Any, settings: dict[str, Any]) -> Any:
    """Return the problem of the ascent at whose end chains are to start; None where they start without one."""
    if method != "gibbs" or member.cavi is None or member.gibbs is None or member.gibbs.informed is None:
        return None
    of_start = member.gibbs.start_options
    with contextlib.suppress(NotConjugate, UnsupportedRequest):
        return member.cavi.prepare(data, priors, **(settings if of_start is None else of_start(settings)))
    return None


def _informed(
    member: Model, prepared: Any, ascent: Any, data: Contract, priors: Any, settings: dict[str, Any], seed: int
) -> Any:
    """Return the sampler with its problem, whose chains start at the end of CAVI."""
    sampler, problem = prepared
    run = _driver("cavi")(member.cavi, ascent, key=stream_key(seed, _INFERENCE), progress=False)
    if run.result is Result.interrupted:
        raise KeyboardInterrupt  # no chain has begun, so that there is nothing to keep
    found = _posterior(member, "cavi", _canonical(member, run, data, priors, settings))
    return sampler, sampler.informed(problem, found)


def _weighed(
    member: Model, run: GenericRun, posterior: Any, data: Contract, priors: Any, settings: dict[str, Any], seed: int
) -> tuple[GenericRun, dict[str, Any]]:
    """Return the run with its k-hat, and what the description says of it; nothing of members that state no factors."""
    from consilience.inference.approximation import MOST_NUMBERS, approximation_k_hat

    if member.factors is None:
        return run, {}
    try:
        found = approximation_k_hat(
            member, posterior, data, priors, settings, key=stream_key(seed, _WEIGHTS), most_numbers=MOST_NUMBERS
        )
    except UnsupportedRequest as reason:
        return run, {"k_hat": f"not computed: {reason}"}
    if found is None:
        many = f"more than {MOST_NUMBERS:,} annotations or parameters"
        return run, {"k_hat": f"not computed: {many}; fit.k_hat() computes it"}
    return run._replace(k_hat=found), {"k_hat": round(found, 3)}


def _worst(result: Fit) -> dict[str, float]:
    """Return the largest R-hat and the fewest effective draws of all quantities; nothing where there is one chain."""
    if result.run is None or not result.has_draws or (summary := result.summary())["r_hat"].isna().all():
        return {}
    fewest = summary[["ess_bulk", "ess_tail"]].min(axis=None)
    return {"worst_r_hat": float(summary["r_hat"].max()), "fewest_effective_draws": float(fewest)}


def _flat_draws(samples: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Join the chains: ``(chain, draw, …)`` to ``(chain * draw, …)``."""
    return {site: values.reshape(math.prod(values.shape[:2]), *values.shape[2:]) for site, values in samples.items()}


def _named(values: np.ndarray, ids: Any) -> np.ndarray:
    """Put ids in the place of codes; what is text already stays."""
    return values if ids is None or np.asarray(values).dtype.kind not in "iu" else np.asarray(ids, object)[values]


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _attributes(data: Contract) -> dict[str, Any]:
    versions = {name: importlib.metadata.version(name) for name in ("jax", "numpyro")}
    return {
        "library": "consilience", "library_version": __version__, "jax_version": versions["jax"],
        "numpyro_version": versions["numpyro"], "backend": jax.default_backend(), "data_hash": data.fingerprint(),
    }  # fmt: skip
