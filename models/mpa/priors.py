"""What the mention-pair model believes of candidates and annotators before any annotation: Beta distributions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Array, Bool, Float
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models.beta_priors import BetaPrior
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.notes import Remedy

SITES = ("prevalence", "sensitivity", "specificity")

_UNIFORM = BetaPrior()


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What the model believes before any annotation; each is uniform by default, as in the paper.

    Parameters
    ----------
    prevalence : how often a candidate of a class is true; batch shape ``()``, or ``(class,)`` for a prior per class.
    sensitivity : how often an annotator chooses a candidate that is true; the same shapes.
    specificity : how often an annotator does not choose one that is false; the same shapes.
    """

    prevalence: dist.Distribution | Callable[[Any], dist.Distribution] = _UNIFORM
    sensitivity: dist.Distribution | Callable[[Any], dist.Distribution] = _UNIFORM
    specificity: dist.Distribution | Callable[[Any], dist.Distribution] = _UNIFORM


class BetaParameters(NamedTuple):
    """Parameters of the Beta priors, each of shape ``(class, 2)``."""

    prevalence: Float[Array, "class 2"]
    sensitivity: Float[Array, "class 2"]
    specificity: Float[Array, "class 2"]


def beta_parameters(resolved: Resolved) -> BetaParameters:
    """Return the parameters of Beta priors, float64, on the host.

    Raises
    ------
    NotConjugate : the prior of some site is no Beta distribution.
    """
    return BetaParameters(*map(resolved.concentration, SITES))


def beta_mean(parameters: Float[Array, "*cells 2"]) -> Float[Array, "*cells"]:
    """Return the mean of Beta variables."""
    return parameters[..., 0] / parameters.sum(axis=-1)


def check_fixed(hyperparameters: str) -> None:
    """Refuse to learn hyperparameters by methods that draw.

    Raises
    ------
    UnsupportedRequest : they are to be learned.
    """
    if hyperparameters == "learned":
        raise UnsupportedRequest(
            "{hyperparameters} is for {method}; to sample, take its estimates as priors: "
            "cs.fit('mpa', data, learned_priors(fit.posterior), method='gibbs')",
            Remedy("hyperparameters", "learned"), Remedy("method", "cavi"),
        )  # fmt: skip


def learned_priors(posterior: Posterior, prevalence: Any = _UNIFORM) -> Priors:
    """Return priors of the hyperparameters that a fit has learned, with which a sampler can go on.

    Parameters
    ----------
    posterior : of a fit with ``hyperparameters="learned"``.
    prevalence : prior of the prevalence, which is not learned.
    """
    sensitivity, specificity = (
        dist.Beta(np.asarray(own)[:, 0], np.asarray(own)[:, 1])
        for own in (posterior.sensitivity_prior, posterior.specificity_prior)
    )
    return Priors(prevalence=prevalence, sensitivity=sensitivity, specificity=specificity)


def is_symmetric(resolved: Resolved) -> Bool[np.ndarray, " class"]:
    """Return for which classes the density is the same when true and false exchange their names.

    Sensitivity then becomes one minus specificity, so that a sensitivity of Beta(d, e) needs a specificity of
    Beta(e, d).
    """
    try:
        prevalence, sensitivity, specificity = beta_parameters(resolved)
    except NotConjugate:
        return np.zeros(resolved.size("class"), bool)
    same = (prevalence[:, 0] == prevalence[:, 1]) & (sensitivity == specificity[:, ::-1]).all(axis=1)
    return np.asarray(same)
