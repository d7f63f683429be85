"""A fit of more data: `Fit.update`, and the same fit of other data.

What an earlier fit ended with is translated to the codes of the joined data, and the engine that can starts there
(`consilience.models.interface.Ascent.begin_from`). So an update stops where a fresh fit does, up to the tolerance of
either, unless the objective has several maxima: an ascent stays on the hill on which it starts.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from typing import Any

import numpy as np

from consilience.data.accept import as_contract
from consilience.data.annotations import Annotations
from consilience.data.contract import Contract
from consilience.data.problems import counted
from consilience.errors import ConsilienceWarning, UnsupportedRequest
from consilience.inference.fitting import ASKED, Plan, completed, planned, warn_of
from consilience.inference.limits import Limits
from consilience.inference.loop import Progress
from consilience.inference.precision import prepared_ascent
from consilience.inference.result import Fit
from consilience.inference.results import Result
from consilience.models.interface import Ascent, Exact, Gibbs

# Sweeps of chains that start at the last draws of a fit of nearly the same data.
_WARMUP = 50

_WHERE = {Ascent: "the labels of an earlier fit", Gibbs: "the last draws of an earlier fit"}


def updated(fit: Fit, new: Any, *, duplicates: str, progress: Progress) -> Fit:
    """Return the fit of the data of a fit and new annotations; see `Fit.update`.

    Raises
    ------
    UnsupportedRequest : the data of the fit are no annotations, or its priors are known in words only.
    InputError : the new annotations cannot be read, or contradict the earlier ones.
    """
    began, earlier = time.perf_counter(), fit.data
    if not isinstance(earlier, Annotations):
        text = f"only annotations can be added to a fit; this one is of {type(earlier).__name__}: fit all data again"
        raise UnsupportedRequest(text)
    data = earlier.joined(
        as_contract(new, Annotations, whose="update", duplicates=duplicates), duplicates=duplicates
    )
    plan = _plan(fit, data, fit.method if fit.reason == ASKED else "auto")
    ended = _ended(fit, plan, data)
    told: dict[str, str] = {}
    if ended is not None:
        where = next(words for kind, words in _WHERE.items() if isinstance(plan.engine, kind))
        plan = _begun(plan, ended, where)
        told = {} if plan.starts is not None else {"start": where}
    found = completed(plan, None, progress, began, told)
    warn_of(found, stacklevel=4)
    return found


def refitted(fit: Fit, data: Contract, *, draws: int | None = None, **limits: int) -> Fit:
    """Return a fit of other data by the same model, priors, settings, method, limits and seed; it starts afresh.

    Draws may be others, and of chains and warm-up what the fit has.

    Raises
    ------
    UnsupportedRequest : the priors of a loaded fit are known in words only.
    """
    known = {name: value for name, value in limits.items() if name in fit.attributes}
    like = dataclasses.replace(fit, draws=draws or fit.draws, attributes={**fit.attributes, **known})
    plan = dataclasses.replace(_plan(like, data, fit.method), reason=fit.reason)
    return completed(plan, None, False, time.perf_counter())


def _plan(fit: Fit, data: Contract, method: str) -> Plan:
    """Plan to fit data as another fit was fitted; the limits are kept where the method is."""
    if fit.priors is None and fit.member.priors is not None:
        unknown = ", ".join(fit.unknown_priors)
        raise UnsupportedRequest(
            f"the file of this fit holds its priors in words only ({unknown}); fit all data again with these priors"
        )
    plan = planned(fit.member, method, fit.resolved.replace(data=data), Limits(), fit.seed)
    if plan.engine.name != fit.method:
        return plan
    if isinstance(plan.engine, Exact):
        return dataclasses.replace(plan, limits=dataclasses.replace(plan.limits, draws=fit.draws))
    names = {field.name for field in dataclasses.fields(Limits)} - {"dtype", "time_limit"}
    known = {name: value for name, value in fit.attributes.items() if name in names}
    limits = Limits(**{**known, "draws": fit.draws}).filled(plan.starts)
    plan = dataclasses.replace(plan, limits=limits)
    dtype = fit.attributes.get("dtype")
    if isinstance(plan.engine, Ascent) and dtype is not None and dtype != plan.dtype:
        prepared, dtype = prepared_ascent(plan.engine, plan.resolved, dtype)
        plan = dataclasses.replace(plan, prepared=prepared, dtype=dtype)
    return plan


def _begun(plan: Plan, ended: dict[str, np.ndarray], where: str) -> Plan:
    """Return the plan of a run that starts where an earlier one ended."""
    prepared = plan.engine.begin_from(plan.prepared, ended)  # type: ignore[union-attr, misc]
    if isinstance(plan.engine, Ascent):
        return dataclasses.replace(plan, prepared=prepared)
    starts = None if plan.starts is None else dataclasses.replace(plan.starts, words=(where,))
    limits = dataclasses.replace(plan.limits, warmup=_WARMUP)
    return dataclasses.replace(plan, prepared=prepared, starts=starts, limits=limits)


def _ended(fit: Fit, plan: Plan, data: Annotations) -> dict[str, np.ndarray] | None:
    """Return what a fit ended with in the codes of other data; None where the run cannot start there."""
    engine, earlier = plan.engine, fit.data
    if not isinstance(engine, Ascent | Gibbs) or engine.begin_from is None or engine.name != fit.method:
        return None
    if fit.is_empty or fit.result is Result.nonfinite:
        return None
    if unknown := [name for name in data.labels if name not in set(earlier.ids["label"])]:
        text = f"{counted('new labels', unknown)}: the fit starts afresh, at the votes"
        warnings.warn(ConsilienceWarning(text), stacklevel=4)
        return None
    if isinstance(engine, Gibbs):
        dims, arrays = fit.member.sites.dims, {site: own[:, -1] for site, own in fit.posterior.chains.items()}
        dims = {site: ("chain", *own) for site, own in dims.items()}
    else:
        dims, arrays = dict(fit.member.sites.hidden), dict(fit.posterior.hidden)
    return {name: _moved(arrays[name], own, earlier, data) for name, own in dims.items() if name in arrays}


def _moved(values: Any, dims: tuple[str, ...], earlier: Contract, data: Contract) -> np.ndarray:
    """Return an array along ids of one contract along those of another; NaN where the one has no such id."""
    values = np.asarray(values, float)
    places = [np.arange(size) for size in values.shape]
    shape = list(values.shape)
    for axis, dimension in enumerate(dims):
        if dimension in data.ids:
            place = {name: code for code, name in enumerate(data.ids[dimension])}
            names = earlier.ids.get(dimension, map(str, range(shape[axis])))
            places[axis] = np.array([place[name] for name in names], int)
            shape[axis] = len(place)
    found = np.full(shape, np.nan)
    found[np.ix_(*places)] = values
    return found
