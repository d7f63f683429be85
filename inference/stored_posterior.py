"""Posteriors in a file: arrays by name, and a text that says which of the three forms they make.

A posterior in closed form is distributions of NumPyro by the names of their parameters, or frozen records of the
library's own models, field by field. Nothing that a file holds is executed.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpyro.distributions as dist

from consilience.data.contract import Contract
from consilience.errors import UnsupportedRequest
from consilience.models.interface import Exact, Model
from consilience.models.posterior import Closed, Draws, Estimate, Factor, Posterior
from consilience.models.sites import Resolved, Sites

_FAMILIES = {
    dist.Dirichlet: ("concentration",),
    dist.Beta: ("concentration1", "concentration0"),
    dist.Gamma: ("concentration", "rate"),
    dist.Normal: ("loc", "scale"),
}
_OWN = "consilience.models."
"""Where the classes of records in a file may come from."""

_AXES = re.compile(r"""["']([^"']*)["']""")


def posterior_arrays(posterior: Posterior) -> dict[str, np.ndarray]:
    """Return all numbers of a posterior: ``hidden.NAME``, ``SITE``, or of a closed form ``SITE.PARAMETER``."""
    found: dict[str, Any] = {}
    if isinstance(posterior, Closed):
        for sites, factor in posterior.factors.items():
            found |= {f"{sites}.{name}": getattr(factor, name) for name in _fields(type(factor))}
    else:
        found |= {site: posterior.chains[site] if isinstance(posterior, Draws) else posterior.value(site)
                  for site in posterior.sites}  # fmt: skip
    found |= {f"hidden.{name}": values for name, values in posterior.hidden.items()}
    return {name: np.asarray(values) for name, values in found.items()}


def posterior_text(posterior: Posterior) -> dict[str, Any]:
    """Return the form of a posterior, and its sites or, of a closed form, the class of each factor."""
    if isinstance(posterior, Closed):
        return {"form": "closed", "factors": {sites: _place(factor) for sites, factor in posterior.factors.items()}}
    return {"form": posterior.form, "sites": list(posterior.sites)}


def restored_posterior(text: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Posterior:
    """Return the posterior that a text and arrays were made of.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError, ImportError : they are not those of a posterior.
    """
    hidden = {name.removeprefix("hidden."): one for name, one in arrays.items() if name.startswith("hidden.")}
    if text["form"] == "closed":
        return Closed({sites: _factor(place, sites, arrays) for sites, place in text["factors"].items()}, hidden)
    form = {"draws": Draws, "estimate": Estimate}[text["form"]]
    return form({site: arrays[site] for site in text["sites"]}, hidden)


def earlier_posterior(member: Model, method: str, arrays: Mapping[str, np.ndarray], resolved: Resolved) -> Posterior:
    """Return the posterior of a fit that was saved when posteriors were records of arrays (format 2).

    Draws are draws by site, as now. An ascent finishes with the arrays that it ended with then. The answer of one
    function is its arrays, those of sites apart; a closed form follows from data and priors once more.

    Raises
    ------
    UnsupportedRequest : it cannot be told what the arrays are now.
    """
    engine = member.engine(method)
    if method in ("gibbs", "nuts", "svi"):
        return Draws(dict(arrays))
    if isinstance(engine, Exact) and method != "exact":
        known = {name: values for name, values in arrays.items() if name in member.sites and values.size}
        return Estimate(known, {name: values for name, values in arrays.items() if name not in known})
    try:
        if isinstance(engine, Exact):
            return engine.solve(resolved)
        ended = arrays if method == "cavi" else {name: values[0, 0] for name, values in arrays.items()}
        return engine.finish(dict(ended), resolved)
    except (KeyError, IndexError, TypeError, UnsupportedRequest) as problem:
        raise UnsupportedRequest(
            f"it is of an earlier version, and what its arrays are for '{member.name}' by {method} cannot be told "
            f"({problem})"
        ) from problem


def _fields(kind: type) -> tuple[str, ...]:
    if kind in _FAMILIES:
        return _FAMILIES[kind]
    if issubclass(kind, Factor) and dataclasses.is_dataclass(kind) and kind.__module__.startswith(_OWN):
        return tuple(field.name for field in dataclasses.fields(kind))
    known = ", ".join(family.__name__ for family in _FAMILIES)
    raise UnsupportedRequest(f"{kind.__name__} cannot be saved; a factor is one of {known}, or a record of the library")


def _place(factor: Any) -> str:
    """Return the name of a family of NumPyro, or where the class of a record is."""
    kind = type(factor)
    return kind.__name__ if kind in _FAMILIES else f"{kind.__module__}:{kind.__name__}"


def _factor(place: str, sites: str, arrays: Mapping[str, np.ndarray]) -> Any:
    module, _, name = place.rpartition(":")
    if module and not module.startswith(_OWN):
        raise ValueError(f"{place} is no record of the library")
    kind: Any
    if module:
        kind = getattr(importlib.import_module(module), name)
        if not (isinstance(kind, type) and issubclass(kind, Factor)):
            raise ValueError(f"{place} is no distribution")
    else:
        kind = {family.__name__: family for family in _FAMILIES}[name]
    values = {field: arrays[f"{sites}.{field}"] for field in _fields(kind)}
    return kind(**{field: value if value.ndim else value.item() for field, value in values.items()})


def posterior_problem(posterior: Posterior, data: Contract, sites: Sites) -> str | None:
    """Return in words why a posterior cannot be one of these data; None where it can.

    The axes of a name have one length, and items, annotators and so on are those of the data. Whole numbers are codes,
    places or counts of what is there: -1 or more, and no more than anything has entries.

    Parameters
    ----------
    posterior : any of the three forms.
    data : that were fitted.
    sites : of the member, with their dimensions and those of what is hidden.
    """
    arrays = posterior_arrays(posterior)
    sizes = {_singular(name): int(getattr(data, name)) for name in data.names("size")}
    most = max([*sizes.values(), *(values.size for values in arrays.values())], default=0)
    sizes.pop("feature", None)  # weights have one for the offset too, and of a link of one's own any number
    for name, values in arrays.items():
        if values.dtype.kind not in "biuf":
            return f"'{name}' of the posterior holds {values.dtype}, and not numbers"
        if values.dtype.kind in "iu" and values.size and not (-1 <= values.min() and values.max() <= most):
            return f"'{name}' of the posterior has a value of {values.min()} or {values.max()}, outside -1 to {most}"
        axes = _axes(posterior, name, values, sites)
        if axes is None:
            continue
        if len(axes) != values.ndim:
            return f"'{name}' of the posterior has {values.ndim} axes, and not ({', '.join(axes)})"
        for axis, length in zip(axes, values.shape, strict=True):
            if length != (int(axis) if axis.isdigit() else sizes.setdefault(axis, length)):
                return f"'{name}' of the posterior has {length} along '{axis}', and not {sizes.get(axis, axis)}"
    return None


def _axes(posterior: Posterior, name: str, values: np.ndarray, sites: Sites) -> list[str] | None:
    """Return the axes that an array of a posterior must have; None where that varies, or nobody foresaw them."""
    dims, hidden = sites.dims, name.removeprefix("hidden.")
    if hidden != name:
        return list(sites.hidden[hidden]) if hidden in sites.hidden else None
    if isinstance(posterior, Closed):
        site, _, parameter = name.rpartition(".")
        if isinstance(posterior.factors[site], Factor):
            return _declared(type(posterior.factors[site]), parameter)
        return list(dims[site]) if site in dims else None
    if name not in dims:
        return None
    if isinstance(posterior, Draws):  # ArviZ too takes draws of another shape than the member foresaw
        return ["chain", "draw", *dims[name]] if values.ndim == 2 + len(dims[name]) else None
    return list(dims[name])


def _declared(kind: type, name: str) -> list[str] | None:
    """Return the axes in the annotation of a field, such as ``Float[Array, "item class"]``; None where it varies."""
    annotation = kind.__annotations__.get(name, "")
    match = _AXES.search(getattr(annotation, "__forward_arg__", str(annotation)))
    if match is None or re.search(r"[*#.]", match[1]):
        return None
    return match[1].split()


def _singular(size: str) -> str:
    name = size.removeprefix("num_")
    return "entry" if name == "entries" else name.removesuffix("es" if name.endswith("sses") else "s")
