"""A NumPyro function of the user's own as a member, for the time of a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from consilience.arrays import Key
from consilience.data.contract import Contract
from consilience.errors import UnsupportedRequest
from consilience.models import member as registered
from consilience.models.interface import Generic, Model
from consilience.models.posterior import Posterior
from consilience.models.settings import Settings
from consilience.models.sites import Resolved, Sites
from consilience.models.truth import LabelDraws, PlausibilityDraws, Truth


@dataclass(frozen=True)
class _Function:
    """The density of a NumPyro function of the user's own: ``f(data)``, or ``f(data, priors)`` where there are any."""

    function: Callable

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, resolved: Resolved) -> Any:
        return self.function(resolved.data, *(() if resolved.given is None else (resolved.given,)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Own(Model):
    """A member for the time of a fit: its priors are whatever the function takes."""

    def resolve(self, data: Any, priors: Any = None, options: Mapping[str, Any] | None = None) -> Resolved:
        """Return data and priors as they are."""
        return Resolved(data, Settings.checked(options or {}, self.name), priors, self.sites)


_NO_SITES = Sites()


def as_member(model: str | Model | Callable, truth: Callable | None) -> Model:
    """Return the member; a NumPyro function of the user's own becomes one for the time of the fit.

    Raises
    ------
    UnknownName : no member has this name.
    UnsupportedRequest : it is no model, or ``truth`` is given for a member.
    """
    if isinstance(model, str | Model):
        if truth is not None:
            raise UnsupportedRequest("truth= is for a NumPyro function of your own; a member of the zoo brings its own")
        return registered(model) if isinstance(model, str) else model
    if not callable(model):
        raise UnsupportedRequest(f"model is {type(model).__name__}; give the name of a model or a NumPyro function")
    density = _Function(model)
    return _Own(
        name=density.__name__, title="a NumPyro function", paper="", takes=(Contract,), sites=_NO_SITES,
        density=density, engines=(Generic(name="nuts"), Generic(name="svi")), truth=_own_truth(density.__name__, truth),
    )  # fmt: skip


def _own_truth(name: str, truth: Callable | None) -> Callable[..., Truth]:
    """Turn the user's function of one draw into draws of the truth."""

    def all_draws(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> Truth:
        if truth is None:
            raise UnsupportedRequest(
                f"'{name}' does not say what the truth is; fit it with truth=function, where function(key, draw, data) "
                "returns the labels (item,) or plausibilities (item, class) of one draw"
            )
        data, drawn = resolved.data, posterior.draws()
        size = len(next(iter(drawn.values())))
        values = np.asarray(jax.vmap(truth, in_axes=(0, 0, None))(jax.random.split(key, size), drawn, data))
        if values.ndim == 3 and values.dtype.kind == "f":
            return PlausibilityDraws.dense(values)
        if values.ndim == 2 and values.dtype.kind in "iu":
            classes = data.size_of("class")
            return LabelDraws(values, int(values.max()) + 1 if classes is None else classes)
        raise UnsupportedRequest(
            f"truth returned {values.dtype} of shape {values.shape[1:]} for one draw; return integer codes (item,) for "
            "labels or floats (item, class) for plausibilities"
        )

    return all_draws
