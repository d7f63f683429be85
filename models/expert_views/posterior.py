"""What coordinate ascent ends with, as independent distributions of the sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Int, Key
from consilience.models.beta_priors import beta_of
from consilience.models.expert_views.judgements import standard_of
from consilience.models.posterior import Closed, Factor, Interval
from consilience.models.sites import Resolved


@dataclass(frozen=True)
class Classes(Factor):
    """Independent codes, such as the view of an expert, or the cluster of an item in a view.

    Parameters
    ----------
    probability : of each code.
    """

    probability: Float[np.ndarray, "*batch code"]

    def sample(self, key: Key, shape: tuple[int, ...]) -> Int[Array, "*shape *batch"]:
        """Return codes; int8 where they fit."""
        probability = jnp.asarray(self.probability, jnp.result_type(float))
        drawn = jax.random.categorical(key, jnp.log(probability), shape=(*shape, *probability.shape[:-1]))
        return drawn.astype(jnp.int8 if probability.shape[-1] <= 128 else jnp.int32)

    def summary(self, level: float) -> Interval:
        """Return mean, standard deviation and quantiles of the codes."""
        probability, code = np.asarray(self.probability, float), np.arange(np.shape(self.probability)[-1])
        mean = probability @ code
        below = probability.cumsum(axis=-1) / probability.sum(axis=-1, keepdims=True)
        lower, upper = ((below < share).sum(axis=-1).astype(float) for share in ((1 - level) / 2, (1 + level) / 2))
        return Interval(mean, np.sqrt(np.maximum(probability @ code**2 - mean**2, 0)), lower, upper)


@dataclass(frozen=True)
class OneAccuracy(Factor):
    """Sensitivity and specificity that are one number.

    Parameters
    ----------
    parameters : of its Beta distribution.
    """

    parameters: Float[np.ndarray, "expert 2"]

    def sample(self, key: Key, shape: tuple[int, ...]) -> dict[str, Array]:
        """Return draws of the number, under both names."""
        return dict.fromkeys(("sensitivity", "specificity"), beta_of(self.parameters).sample(key, shape))

    def summary(self, level: float) -> Any:
        """Return the summary of the number, under both names."""
        own = Closed({"accuracy": beta_of(self.parameters)}).summary("accuracy", level=level)
        return dict.fromkeys(("sensitivity", "specificity"), own)

    def value(self, site: str) -> Float[np.ndarray, "expert 2"]:
        """Return the parameters."""
        return self.parameters


def finished(values: dict[str, Any], resolved: Resolved) -> Closed:
    """Return the distributions of all sites, from what `consilience.models.expert_views.cavi.sites` returns.

    Hidden is all that is no parameter of the Beta distributions, under the names that it has there, and how features
    were standardised: ``feature_mean, feature_scale``, shape ``(feature,)``.
    """
    standard = standard_of(np.asarray(resolved.data.feature), bool(resolved.settings.standardize))
    hidden = {"feature_mean": standard.mean, "feature_scale": standard.scale}
    hidden |= {name: one for name, one in values.items() if name not in ("sensitivity", "specificity", "stick")}
    factors: dict[str, Any] = {site: beta_of(values[site]) for site in ("sensitivity", "specificity")}
    if resolved.settings.experts == "symmetric":
        factors = {"sensitivity,specificity": OneAccuracy(values["sensitivity"])}
    if len(values["stick"]):  # a single view has none
        factors["stick"] = beta_of(values["stick"])
    factors |= {
        "weight": dist.Normal(values["weight_mean"], np.sqrt(np.asarray(values["weight_variance"], float))),
        "view_of_expert": Classes(values["view_probability"]),
        "cluster": Classes(np.swapaxes(values["cluster_probability"], 0, 1)),
    }
    return Closed(factors, hidden)
