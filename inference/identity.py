"""What decides the outcome of a run beyond names and numbers: the code and the parameters behind the names.

A checkpoint may be gone on from by the same run only. Two functions of one name, or two priors that print alike, are
told apart by the digests made here.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.inference.stored_priors import describe_priors


def run_identity(plan: Any, others: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that decides the outcome of a run, in words that a message can show.

    Parameters
    ----------
    plan : what is run; a `consilience.inference.fitting.Plan`, which imports this module.
    others : what else does, in words.
    """
    settings, given = plan.resolved.settings.as_dict(), plan.resolved.given
    options = {f"option_{name}": value for name, value in settings.items()}
    words = {"model": plan.member.name, "method": plan.engine.name, **options, "priors": describe_priors(given)}
    return {**words, "seed": plan.seed, **plan.told, **others, **program_identity(plan.member.density, given)}


def program_identity(model: Callable | None, priors: Any) -> dict[str, str]:
    """Return digests of a model and of its priors, and the precision of the arithmetic.

    Parameters
    ----------
    model : NumPyro function, if there is one. What its source calls from elsewhere is not looked at, but what it has
        captured is: the variables of a closure, defaults, the arguments of a `functools.partial`.
    priors : record whose fields are distributions or functions, whatever else an own model takes, or None.
    """
    digest = hashlib.sha256()
    fields = vars(priors) if hasattr(priors, "__dict__") else {"priors": priors}
    for name, prior in fields.items():
        digest.update(name.encode())
        for leaf in jax.tree.leaves(prior):
            digest.update(_source(leaf).encode())
            digest.update(b"" if callable(leaf) else _bytes(leaf))
    return {
        "model_source": _source(model), "prior_values": digest.hexdigest(), "precision": str(jnp.result_type(float)),
    }  # fmt: skip


def _source(function: Any, above: tuple[Any, ...] = ()) -> str:
    """Digest the source of a function and what it has captured; ``above`` are the functions that captured it."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):  # no function, or one whose source is not in a file
        text = "unknown"
    digest = hashlib.sha256(text.encode())
    # What a decorator brought along is its own, such as that of a type checker.
    inner = inspect.unwrap(function) if callable(function) else function
    for leaf in jax.tree.leaves(_captured(inner)):
        if not callable(leaf):
            digest.update(_bytes(leaf))
        elif not any(leaf is one for one in above):  # functions may refer to each other
            digest.update(_source(leaf, (*above, leaf)).encode())
    return digest.hexdigest()


def _captured(function: Any) -> list[Any]:
    """Return the values that a function brings with it."""
    if isinstance(function, functools.partial):
        return [function.func, function.args, function.keywords]
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    return [cells, getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)]


def _bytes(leaf: Any) -> bytes:
    try:
        values = np.asarray(leaf)
    except TypeError:  # a random key, whose numbers are behind its type
        values = np.asarray(jax.random.key_data(leaf))
    if values.dtype == object:  # its bytes would be an address in memory
        return str(type(leaf)).encode()
    return f"{values.dtype}{values.shape}".encode() + values.tobytes()
