"""Posteriors in a file: what earlier versions stored, and whether a posterior can be one of the data beside it.

What a file holds of each of the three forms they say themselves; see `consilience.models.posterior`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.data.contract import Contract
from consilience.errors import UnsupportedRequest
from consilience.models.interface import Exact, Model
from consilience.models.posterior import FORMS, Draws, Estimate, Posterior
from consilience.models.sites import Resolved, Sites


def posterior_arrays(posterior: Posterior) -> dict[str, np.ndarray]:
    """Return all numbers of a posterior: those that its form stores, and ``hidden.NAME``."""
    hidden = {f"hidden.{name}": values for name, values in posterior.hidden.items()}
    return {name: np.asarray(values) for name, values in {**posterior.stored, **hidden}.items()}


def restored_posterior(text: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Posterior:
    """Return the posterior that a text and arrays were made of.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError, ImportError : they are not those of a posterior.
    """
    hidden = {name.removeprefix("hidden."): one for name, one in arrays.items() if name.startswith("hidden.")}
    posterior = FORMS[text["form"]].restored(text, arrays, hidden)
    if unnamed := sorted(arrays.keys() - posterior_arrays(posterior).keys()):
        raise KeyError(unnamed[0])
    return posterior


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


def posterior_problem(posterior: Posterior, data: Contract, sites: Sites) -> str | None:
    """Return in words why a posterior cannot be one of these data; None where it can.

    The axes of a name have one length, and items, annotators and so on are those of the data. Whole numbers are codes,
    places or counts of what is there: -1 or more, and no more than anything has entries; below that in draws that are
    hidden, whose links may be properties of a mention. A single number may count pairs of what is there.

    Parameters
    ----------
    posterior : any of the three forms.
    data : that were fitted.
    sites : of the member, with their dimensions and those of what is hidden.
    """
    arrays = posterior_arrays(posterior)
    sizes = {_singular(name): int(size) for name in data.names("size") if (size := getattr(data, name)) is not None}
    most = max([*sizes.values(), *(values.size for values in arrays.values())], default=0)
    sizes.pop("feature", None)  # weights have one for the offset too, and of a link of one's own any number
    for name, values in arrays.items():
        if values.dtype.kind not in "biuf":
            return f"'{name}' of the posterior holds {values.dtype}, and not numbers"
        hidden = name.removeprefix("hidden.")
        least = -most - 3 if "chain" in sites.hidden.get(hidden, ()) else -1  # draws of links have codes of two kinds
        highest = most if values.ndim else most**2
        if values.dtype.kind in "iu" and values.size and not (least <= values.min() and values.max() <= highest):
            ends = f"{values.min()} or {values.max()}, outside {least} to {highest}"
            return f"'{name}' of the posterior has a value of {ends}"
        axes = sites.hidden.get(hidden) if hidden != name else posterior.axes(name, values.ndim, sites.dims)
        if axes is None:
            continue
        if len(axes) != values.ndim:
            return f"'{name}' of the posterior has {values.ndim} axes, and not ({', '.join(axes)})"
        for axis, length in zip(axes, values.shape, strict=True):
            if length != (int(axis) if axis.isdigit() else sizes.setdefault(axis, length)):
                return f"'{name}' of the posterior has {length} along '{axis}', and not {sizes.get(axis, axis)}"
    return None


def _singular(size: str) -> str:
    name = size.removeprefix("num_")
    return "entry" if name == "entries" else name.removesuffix("es" if name.endswith("sses") else "s")
