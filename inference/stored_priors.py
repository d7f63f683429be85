"""Priors in words and in a file.

A file holds numbers, texts, None, and frozen records of these from the library's own models, such as
``BetaPrior(3.0, 1.5)``, field by field. Anything else, such as a function or a distribution, is there in words only,
and known again where it is the default. Nothing that a file holds is executed.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpyro.distributions as dist

from consilience.errors import InvalidPrior
from consilience.models.posterior import OWN


def describe_priors(priors: Any) -> str:
    """Return the priors in words: each site's distribution with its parameters, or the name of its function."""
    if priors is None:
        return "none"
    if not hasattr(priors, "__dict__"):  # of a function of the user's own, which may take anything
        return _described(priors)
    return "; ".join(f"{name}: {_described(value)}" for name, value in vars(priors).items())


def priors_in_words(priors: Any) -> dict[str, tuple[str, str]]:
    """Return by site what its prior says in words, by the first line of its docstring, and how code writes it."""
    given = {name: value for name, value in getattr(priors, "__dict__", {}).items() if value is not None}
    return {name: (_in_words(value), _described(value)) for name, value in given.items()}


def _in_words(prior: Any) -> str:
    if not callable(prior) or hasattr(prior, "arg_constraints") or not prior.__doc__:
        return f"{prior:g}" if isinstance(prior, float) else _described(prior)
    what = prior.__doc__.splitlines()[0].removeprefix("Return ").removesuffix(".")
    numbers = dict(vars(prior)) if dataclasses.is_dataclass(prior) else {}
    if numbers.keys() == {"a", "b"} and np.ndim(prior.a) == np.ndim(prior.b) == 0:
        a, b = numbers.values()
        return f"{what.replace('(a, b)', f'({a:g}, {b:g})')}: mean {a / (a + b):.2g}, worth {a + b:g} observations"
    said = ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in numbers.items())
    return what[:1].upper() + what[1:] + (f"; {said}" if said else "")


def _number(value: Any) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def stored_priors(priors: Any) -> dict[str, Any]:
    """Return the fields of the priors that JSON can hold."""
    stored = {}
    for name, value in getattr(priors, "__dict__", {}).items():
        if _can_be_stored(value):
            stored[name] = _encoded(value)
    return stored


def restored_priors(stored: Mapping[str, Any], words: str, kind: Any) -> Any:
    """Rebuild priors; None where a field is known in words only, and these are not those of the default.

    Parameters
    ----------
    stored : as `stored_priors` returned it; empty of a file without it.
    words : as `describe_priors` returned it.
    kind : class of the member's priors; None where it has none.
    """
    if kind is None or unknown_priors(stored, words, kind):
        return None
    try:
        return kind(**{name: _decoded(value) for name, value in stored.items()})
    except (TypeError, ValueError, AttributeError, ImportError, LookupError, InvalidPrior):
        return None  # of another version, in which the records were others


def unknown_priors(stored: Mapping[str, Any], words: str, kind: Any) -> list[str]:
    """Return the fields that are known in words only: not the default, and nothing that a file can hold."""
    defaults = {} if kind is None else vars(kind())
    return [
        name for name, value in defaults.items()
        if name not in stored and f"; {name}: {_described(value)};" not in f"; {words};"
    ]  # fmt: skip


def _described(prior: Any) -> str:
    if isinstance(prior, dist.Independent | dist.ExpandedDistribution):
        inner = prior
        while isinstance(inner, dist.Independent | dist.ExpandedDistribution):
            inner = inner.base_dist
        return f"{_described(inner)} of shape {prior.shape()}"
    if hasattr(prior, "arg_constraints"):
        arguments = ", ".join(
            f"{name}={np.asarray(getattr(prior, name)).tolist()}"
            for name in prior.arg_constraints
            if hasattr(prior, name)
        )
        return f"{type(prior).__name__}({arguments})"
    # Without addresses in memory, which no other process would repeat.
    return re.sub(r" at 0x[0-9a-f]+", "", str(getattr(prior, "__name__", prior)))


def _can_be_stored(value: Any) -> bool:
    if value is None or type(value) in (bool, int, float, str):
        return True
    kind = type(value)
    ours = dataclasses.is_dataclass(kind) and kind.__module__.startswith(OWN)
    return ours and all(map(_can_be_stored, vars(value).values()))


def _encoded(value: Any) -> Any:
    if not dataclasses.is_dataclass(value):
        return value
    place = f"{type(value).__module__}:{type(value).__name__}"
    return {"record": place, "fields": {name: _encoded(one) for name, one in vars(value).items()}}


def _decoded(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    module, _, name = value["record"].partition(":")
    if not module.startswith(OWN):
        raise LookupError(module)
    kind = getattr(importlib.import_module(module), name)
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise LookupError(name)
    return kind(**{field: _decoded(one) for field, one in value["fields"].items()})
