"""What the model believes of experts, views and clusters before any answer.

A link of your own takes the place of the linear one: any JAX function that turns the weights of a view and the features
of the items into logits of the clusters. Coordinate ascent knows the linear link only; the samplers take any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers

from consilience.arrays import Array, Float
from consilience.errors import InvalidPrior, NotConjugate, UnsupportedRequest
from consilience.models.beta_priors import BetaPrior, check_positive, parameters_of, unit_prior
from consilience.models.interface import checked_prior

__all__ = [
    "EXPERTS",
    "PAPER_PRIORS",
    "BetaParameters",
    "BetaPrior",
    "Priors",
    "beta_parameters",
    "check_clusters",
    "check_logits",
    "expert_prior",
    "expert_sites",
    "linear",
    "link_of",
    "num_views",
    "site_parameters",
    "weight_prior",
]

_MOST_CLUSTERS = int(np.iinfo(np.int8).max)
"""Of a view: the numbers of clusters are kept in a byte for each item and draw."""

EXPERTS = {
    "two-coin": ("sensitivity", "specificity"),
    "symmetric": ("sensitivity",),
    "per-view": ("sensitivity", "specificity"),
    "spammer": ("knowledge", "guess"),
}
"""Kinds of experts, with the sites that are drawn of each expert."""


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What the model believes before any answer; the defaults are the paper's but for the experts (`PAPER_PRIORS`).

    Parameters
    ----------
    concentration : of the sticks, Beta(1, concentration): the more, the more views.
    sensitivity : how probably an expert says together of items that are; batch shape ``()``, or ``(expert,)`` for a
        prior per expert. A function of the data may draw parameters of its own with ``numpyro.sample``, so that experts
        learn from each other; NUTS and SVI only. Beta(3, 1.5) has mean .67 and the weight of four or five answers.
    specificity : how probably an expert says apart of items that are; the same shapes. Symmetric experts have none.
    knowledge, guess : of spammers: how probably an expert knows whether items are together, and how probably one who
        does not says that they are; the same shapes. Beta(3, 1.5) for what is known, as for accuracies.
    weight_scale : standard deviation of the weights of the linear link, per standard deviation of a feature.
    logits : ``logits(weight, feature)`` -> ``(item, cluster)``, a link of your own for one view; None for the linear
        one. Features are standardised, and have a last column of ones.
    weight : prior of the weights of one view, of any event shape that the link takes; normal with ``weight_scale`` and
        event shape ``(feature + 1, cluster)`` by default.

    Raises
    ------
    InvalidPrior : a number is not positive, or something is no distribution, or no function.
    """

    concentration: float = 1.0
    sensitivity: dist.Distribution | Callable[[Any], dist.Distribution] = BetaPrior(3.0, 1.5)
    specificity: dist.Distribution | Callable[[Any], dist.Distribution] = BetaPrior(3.0, 1.5)
    knowledge: dist.Distribution | Callable[[Any], dist.Distribution] = BetaPrior(3.0, 1.5)
    guess: dist.Distribution | Callable[[Any], dist.Distribution] = BetaPrior(1.0, 1.0)
    weight_scale: float = 1.0
    logits: Callable[[Any, Any], Any] | None = None
    weight: dist.Distribution | Callable[[Any], dist.Distribution] | None = None

    def __post_init__(self) -> None:
        check_positive("concentration", self.concentration)
        check_positive("weight_scale", self.weight_scale)
        for site in ("sensitivity", "specificity", "knowledge", "guess", "weight"):
            prior = getattr(self, site)
            left_out = site == "weight" and prior is None
            if not (left_out or isinstance(prior, dist.Distribution) or callable(prior)):
                raise InvalidPrior(
                    f"{site} is {prior!r}; give a NumPyro distribution, or a function of the data that returns one, "
                    "as BetaPrior(3.0, 1.5) does"
                )
        if not (self.logits is None or callable(self.logits)):
            raise InvalidPrior(f"logits is {self.logits!r}; give a function of weights and features, or None")


PAPER_PRIORS = Priors(sensitivity=BetaPrior(10.0, 1.0), specificity=BetaPrior(10.0, 1.0))
"""The paper's: of mean .91 and the weight of eleven answers, so that experts with few answers are drawn upwards."""


class BetaParameters(NamedTuple):
    """Parameters of the Beta priors of two-coin experts."""

    sensitivity: Float[Array, "expert 2"]
    specificity: Float[Array, "expert 2"]


def linear(weight: Float[Array, "feature cluster"], feature: Float[Array, "item feature"]) -> Array:
    """Return the logits of the linear link, ``(item, cluster)``; the last feature is one, so that weights have offsets.

    Parameters
    ----------
    weight : of one view.
    feature : standardised, with a last column of ones.
    """
    return feature @ weight


def link_of(priors: Priors | None) -> Callable[[Any, Any], Any]:
    """Return the link from weights to logits; the linear one where no priors are known."""
    return linear if priors is None or priors.logits is None else priors.logits


def num_views(views: int, num_experts: int) -> int:
    """Return the number of views; 0 stands for half as many as experts.

    Raises
    ------
    UnsupportedRequest : there are more views than experts.
    """
    if views > num_experts > 0:
        raise UnsupportedRequest(
            f"there are {num_experts} experts, each with one view, and views is {views}; give {num_experts} at most"
        )
    return views or max(1, num_experts // 2)


def check_clusters(clusters: int, num_judged: int) -> None:
    """Refuse more clusters than there are items to be in them, or than their numbers have room for.

    Raises
    ------
    UnsupportedRequest : there are more clusters than judged items, or more than 127.
    """
    if clusters > _MOST_CLUSTERS:
        raise UnsupportedRequest(f"clusters is {clusters}; a view may have {_MOST_CLUSTERS} of them at most")
    if clusters > num_judged:
        raise UnsupportedRequest(
            f"clusters is {clusters}, and experts judged {num_judged} items; give {num_judged} clusters of a view at "
            "most"
        )


def check_logits(shape: tuple[int, ...], wanted: tuple[int, int]) -> None:
    """Refuse a link of one's own that returns logits of another shape.

    Parameters
    ----------
    shape, wanted : of what it returned for one view, and of what it should return: items and clusters.

    Raises
    ------
    InvalidPrior : they differ.
    """
    if tuple(shape) != wanted:
        raise InvalidPrior(
            f"logits(weight, feature) returned shape {tuple(shape)} for {wanted[0]} items and {wanted[1]} clusters; "
            f"return {wanted}, a logit for each cluster of each item"
        )


def expert_sites(experts: str) -> tuple[str, ...]:
    """Return the sites that are drawn of experts of this kind; raises `UnsupportedRequest` for an unknown one."""
    if experts not in EXPERTS:
        raise UnsupportedRequest(f"experts is {experts!r}; choose one of {', '.join(map(repr, EXPERTS))}")
    return EXPERTS[experts]


def expert_prior(site: str, priors: Priors, data: Any, num_experts: int) -> dist.Distribution:
    """Return the prior of a site of the experts.

    Raises
    ------
    InvalidPrior : it is no distribution of single numbers, one for all experts or one for each.
    """
    return unit_prior(site, getattr(priors, site), data, num_experts, "experts")


def weight_prior(priors: Priors, data: Any, num_inputs: int, clusters: int) -> dist.Distribution:
    """Return the prior of the weights of one view.

    Parameters
    ----------
    data : what a prior that is a function of the data is given.
    num_inputs : features and the column of ones.

    Raises
    ------
    InvalidPrior : it is no distribution, or the linear link has other shapes.
    """
    shape = (num_inputs, clusters)
    if priors.weight is None:
        scale = jnp.asarray(priors.weight_scale, jnp.result_type(float))
        return dist.Normal(jnp.zeros((), scale.dtype), scale).expand(shape).to_event(2)
    prior = priors.weight if isinstance(priors.weight, dist.Distribution) else priors.weight(data)
    wanted = shape if priors.logits is None else getattr(prior, "event_shape", ())
    prior = checked_prior("weight", prior, data, wanted)
    if prior.batch_shape:
        raise InvalidPrior(
            f"the prior of site 'weight' has batch shape {prior.batch_shape}; make it one draw for a view by .to_event"
        )
    return prior


def beta_parameters(priors: Priors, data: Any) -> BetaParameters:
    """Return the parameters of the Beta priors of two-coin experts, float64, on the host.

    Raises
    ------
    NotConjugate : the prior of a site is no Beta distribution, or has parameters that are themselves unknown.
    """
    return BetaParameters(*(site_parameters(site, priors, data) for site in BetaParameters._fields))


def site_parameters(site: str, priors: Priors, data: Any) -> Float[np.ndarray, "expert 2"]:
    """Return the parameters of the Beta prior of one site of the experts; raises as `beta_parameters` does."""
    with jax.enable_x64(True), handlers.seed(rng_seed=0), handlers.trace() as drawn:
        prior = expert_prior(site, priors, data, data.num_experts)
    if drawn:
        raise NotConjugate(f"site '{site}': the updates need a Beta prior of known parameters; this one draws its own")
    return parameters_of(site, prior, data.num_experts)
