"""What the generic drivers share: the checks of a model's sites, the store of draws, the result.

NUTS and SVI know a model only as a NumPyro function of one PyTree: the density of a member and its `Resolved`, or a
user's own function and data. Compiled programs are kept under the function, so that a second fit compiles nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from numpyro import handlers

from consilience.errors import NonFinite, TooLarge, UnsupportedRequest
from consilience.inference.results import Result


class GenericRun(NamedTuple):
    """What a generic driver returns.

    Parameters
    ----------
    samples : draws by site, shape ``(chain, draw, ...)``; deterministic sites are among them. Of an ascent the arrays
        that it ends with, as one chain of one draw.
    stats : numbers about each draw, shape ``(chain, draw)``.
    result : how the run ended.
    steps : steps that were run: warm-up and draws of NUTS, optimiser steps of SVI, steps of an ascent, those included
        that were taken back.
    seconds : wall-clock time, compilation included.
    message : one sentence where there is something to say, else empty.
    elbo : float64, shape ``(step,)``; the estimate at every optimiser step, the objective of an ascent at every
        step that was not taken back. ``None`` for a sampler.
    k_hat : Pareto shape of the importance weights of a variational fit; ``None`` for a sampler.
    """

    samples: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    result: Result
    steps: int
    seconds: float
    message: str
    elbo: np.ndarray | None = None
    k_hat: float | None = None

    @property
    def has_draws(self) -> bool:
        """Whether any draw was kept. A site itself may be empty, such as the means of no features."""
        return all(0 not in np.shape(draws)[:2] for draws in self.samples.values())


def name_of(model: Callable) -> str:
    """Return how messages call a model."""
    return getattr(model, "__name__", type(model).__name__)


def check_sites(trace: Mapping[str, dict], name: str) -> None:
    """Refuse a model that gradients cannot explore, by the name of the site that is at fault.

    Parameters
    ----------
    trace : NumPyro trace of the model.
    name : the model's name, for the message.

    Raises
    ------
    UnsupportedRequest : a site is discrete, has no posterior or is in a plate that takes a subsample, or no site is
        latent.
    """
    latent = [s for s in trace.values() if s["type"] == "sample" and not s["is_observed"]]
    for site in latent:
        if site["fn"].support.is_discrete:
            raise UnsupportedRequest(
                f"site '{site['name']}' of the model '{name}' is a discrete latent variable, which gradient-based "
                "inference cannot sample; sum it out by hand and add the result with numpyro.factor"
            )
    for site in trace.values():
        if site["type"] in ("param", "mutable"):
            raise UnsupportedRequest(
                f"site '{site['name']}' of the model '{name}' is a numpyro.{site['type']}, which has no posterior; "
                "give it a prior with numpyro.sample, or make it an argument"
            )
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
            raise UnsupportedRequest(
                f"plate '{site['name']}' of the model '{name}' takes a subsample; "
                "generic inference uses all of the data: remove subsample_size"
            )
    if not latent:
        raise UnsupportedRequest(
            f"the model '{name}' has no latent site: there is nothing to infer; add a numpyro.sample without obs"
        )


def latent_values(trace: Mapping[str, dict]) -> dict[str, Any]:
    """Return the values of the latent and of the deterministic sites of a trace."""
    return {
        name: site["value"]
        for name, site in trace.items()
        if site["type"] == "deterministic" or (site["type"] == "sample" and not site["is_observed"])
    }


def nonfinite_start(model: Callable, data: Any, values: Mapping[str, Any]) -> NonFinite:
    """Build the error for a run that found no start with a finite density: it names the sites whose density is not.

    Parameters
    ----------
    model : function of the data.
    data : what the model is given.
    values : the last point that was tried, by site, in the sites' own supports.
    """

    @jax.jit  # within a program NumPyro turns values outside a support into -inf, where eagerly it would warn of each
    def densities(values: Mapping[str, Any], data: Any) -> dict[str, Any]:
        trace = handlers.trace(handlers.substitute(handlers.seed(model, 0), data=values)).get_trace(data)
        return {name: site["fn"].log_prob(site["value"]) for name, site in trace.items() if site["type"] == "sample"}

    log_densities = jax.device_get(densities(values, data))
    culprits = [
        f"'{name}' ({np.count_nonzero(~np.isfinite(terms))} of {terms.size} terms)"
        for name, terms in log_densities.items()
        if not np.isfinite(terms).all()
    ]
    where = f"at {', '.join(culprits)}" if culprits else "in its gradient, though every term of the density is finite"
    return NonFinite(
        f"no start with a finite log density was found; it is not finite {where}; "
        "check the data for missing or impossible values and the priors for supports that exclude them"
    )


def _memory() -> float:
    """Return how many bytes of memory the machine has; infinite where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return np.inf


class DrawStore:
    """Collects draws from `run_chunks` into arrays of their final size and order, also those that a checkpoint stored.

    Parameters
    ----------
    num_draws : draws to keep per chain.
    skip : first steps of the loop that are not kept (warm-up).
    """

    def __init__(self, num_draws: int, skip: int = 0) -> None:
        self.num_draws, self.skip = num_draws, skip
        self.arrays: Any = None

    def __call__(self, output: Any, start: int) -> None:
        """Take rows of shape ``(step, chain, ...)`` whose first step is `start`.

        Raises
        ------
        UnsupportedRequest : all draws together are larger than the memory of the machine.
        """
        if self.arrays is None:
            self._check_memory(output)
            self.arrays = jax.tree.map(self._empty, output)
        jax.tree.map(lambda array, rows: self._put(array, rows, start), self.arrays, output)

    def _check_memory(self, output: Any) -> None:
        """Refuse draws that can never fit, before hours were spent on the first of them."""
        needed = self.num_draws * sum(rows.nbytes // len(rows) for rows in jax.tree.leaves(output))
        there = _memory()
        if needed > there:
            raise TooLarge(
                f"the draws take {needed / 1e9:,.1f} GB, and this machine has {there / 1e9:,.1f} GB of memory: ask for "
                "fewer draws or chains"
            )

    def _empty(self, rows: np.ndarray) -> np.ndarray:
        return np.empty((rows.shape[1], self.num_draws, *rows.shape[2:]), rows.dtype)

    def _put(self, array: np.ndarray, rows: np.ndarray, start: int) -> None:
        kept = rows[max(self.skip - start, 0) :]
        first = max(start - self.skip, 0)
        array[:, first : first + len(kept)] = np.moveaxis(kept, 0, 1)

    def finished(self, steps: int, shapes: Callable[[], Any]) -> Any:
        """Return arrays ``(chain, draw, ...)`` of the draws among the first `steps` steps.

        Parameters
        ----------
        steps : steps of the loop that count.
        shapes : asked for the outputs' ``(step, chain, ...)`` shapes only when no chunk was ever collected.
        """
        if self.arrays is None:
            self.arrays = jax.tree.map(self._empty, shapes())
        return jax.tree.map(lambda array: array[:, : max(steps - self.skip, 0)], self.arrays)
