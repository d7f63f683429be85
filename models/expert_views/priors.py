"""What the model believes of experts, views and clusters before any answer.

A link of your own takes the place of the linear one: any JAX function that turns the weights of a view and the features
of the items into logits of the clusters. Coordinate ascent knows the linear link only; the samplers take any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Array, Float
from consilience.errors import InvalidPrior
from consilience.models.beta_priors import BetaPrior, check_positive
from consilience.models.sites import Resolved

_OF_EXPERTS = ("sensitivity", "specificity", "answers_together", "answers_apart", "knowledge", "guess")


@dataclass(frozen=True)
class GradePrior:
    """Dirichlet prior of the answers to pairs that are together, or apart.

    Its means change in equal steps along the grades. Of two grades it is Beta(3, 1.5).

    Parameters
    ----------
    together : whether the pairs are.
    weight : of how many answers.
    ratio : how many times as probable the grade that fits best is as the one that fits least.
    dont_know : weight of an answer that says nothing, beside that of the grades.

    Raises
    ------
    InvalidPrior : a number is not positive.
    """

    together: bool
    weight: float = 4.5
    ratio: float = 2.0
    dont_know: float = 0.5

    def __post_init__(self) -> None:
        for name in ("weight", "ratio", "dont_know"):
            check_positive(name, getattr(self, name))

    def __call__(self, data: Any) -> dist.Dirichlet:
        """Return the distribution."""
        return dist.Dirichlet(jnp.asarray(self.numbers(data), jnp.result_type(float)))

    def numbers(self, data: Any) -> Float[np.ndarray, " answer"]:
        """Return the concentrations without making the distribution."""
        scale = data.scale
        share = 1 + (self.ratio - 1) * (scale if self.together else 1 - scale)
        return np.where(np.isnan(scale), self.dont_know, self.weight * share / np.nansum(share))


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
    answers_together, answers_apart : how probable each answer is on pairs that are together, or apart, where answers
        are grades or some say nothing; the same shapes, of Dirichlet distributions. Symmetric experts have the first.
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
    answers_together: dist.Distribution | Callable[[Any], dist.Distribution] = GradePrior(True)
    answers_apart: dist.Distribution | Callable[[Any], dist.Distribution] = GradePrior(False)
    knowledge: dist.Distribution | Callable[[Any], dist.Distribution] = BetaPrior(3.0, 1.5)
    guess: dist.Distribution | Callable[[Any], dist.Distribution] = BetaPrior(1.0, 1.0)
    weight_scale: float = 1.0
    logits: Callable[[Any, Any], Any] | None = None
    weight: dist.Distribution | Callable[[Any], dist.Distribution] | None = None

    def __post_init__(self) -> None:
        check_positive("concentration", self.concentration)
        check_positive("weight_scale", self.weight_scale)
        for site in (*_OF_EXPERTS, "weight"):
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


def weight_prior(resolved: Resolved, num_inputs: int) -> dist.Distribution:
    """Return the prior of the weights of one view, whose shape follows from the link.

    Parameters
    ----------
    num_inputs : features and the column of ones.

    Raises
    ------
    InvalidPrior : it is no distribution, or the linear link has other shapes.
    """
    given, shape = resolved.given, (num_inputs, resolved.settings.clusters)
    if given.weight is None:
        scale = jnp.asarray(given.weight_scale, jnp.result_type(float))
        return dist.Normal(jnp.zeros((), scale.dtype), scale).expand(shape).to_event(2)
    prior = given.weight if isinstance(given.weight, dist.Distribution) else given.weight(resolved.data)
    if not isinstance(prior, dist.Distribution):
        raise InvalidPrior(
            f"the prior of site 'weight' is {type(prior).__name__}; give a NumPyro distribution or a function of the "
            "data that returns one"
        )
    if given.logits is None and prior.event_shape != shape:
        raise InvalidPrior(f"the prior of site 'weight' has event shape {prior.event_shape}, expected {shape}")
    if prior.batch_shape:
        raise InvalidPrior(
            f"the prior of site 'weight' has batch shape {prior.batch_shape}; make it one draw for a view by .to_event"
        )
    return prior
