"""What Plackett-Luce believes before any report: Gamma weights of the named classes, and of all other classes together.

Only the classes that somebody named have a weight of their own. The likelihood sees the others through the sum of
their weights alone, ``other``; how that sum divides among them is prior knowledge that no report can change: a
symmetric Dirichlet with the option ``alpha_split`` (see `consilience.models.truth`).

The prior of ``other`` is the most influential choice at low reliability. The authors give it the weight of one class,
Gamma(1, 1), however many classes it stands for; `Priors.exchangeable` gives every class, named or not, the same prior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Int
from consilience.data.rankings import Rankings
from consilience.errors import NotConjugate
from consilience.models.interface import checked_prior

__all__ = ["OneClass", "PerUnnamedClass", "Priors", "gamma_parameters", "num_unnamed", "weight_priors"]


@dataclass(frozen=True)
class OneClass:
    """Gamma(shape, 1), whatever the data.

    Parameters
    ----------
    shape : positive.
    """

    shape: float

    def __str__(self) -> str:
        return f"Gamma({self.shape:g}, 1)"

    def __call__(self, data: Any) -> dist.Gamma:
        """Return the distribution of one weight."""
        return dist.Gamma(self.shape, 1.0)


@dataclass(frozen=True)
class PerUnnamedClass:
    """Gamma(shape × number of unnamed classes, 1): the sum of as many weights, each Gamma(shape, 1).

    Parameters
    ----------
    shape : positive.
    """

    shape: float

    def __str__(self) -> str:
        return f"Gamma({self.shape:g} for each unnamed class, 1)"

    def __call__(self, data: Rankings) -> dist.Gamma:
        """Return the distributions of the sums, batch shape ``(item,)``; Gamma(1, 1) where there is no such class."""
        unnamed = num_unnamed(data)
        return dist.Gamma(jnp.where(unnamed > 0, self.shape * unnamed, 1.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Priors:
    """Priors of the weights.

    Parameters
    ----------
    weight : distribution of the weight of a named class, batch shape ``()`` or ``(entry,)``; Gamma(1, 1) by default.
    other : distribution of the summed weight of an item's unnamed classes, batch shape ``()`` or ``(item,)``;
        Gamma(1, 1) by default, as in the authors' experiments.
    """

    weight: dist.Distribution | Callable[[Any], dist.Distribution] = OneClass(1.0)
    other: dist.Distribution | Callable[[Any], dist.Distribution] = OneClass(1.0)

    @classmethod
    def exchangeable(cls, alpha: float) -> Priors:
        """Return priors that give every class, named or not, Gamma(alpha, 1); set ``alpha_split=alpha`` with them."""
        return cls(weight=OneClass(alpha), other=PerUnnamedClass(alpha))


def num_unnamed(data: Rankings) -> Int[Array, " item"]:
    """Count the classes of each item that nobody named."""
    named = jax.ops.segment_sum(jnp.ones_like(data.entry_item), data.entry_item, data.num_items)
    return data.num_classes - named


def weight_priors(priors: Priors, data: Rankings) -> tuple[dist.Distribution, dist.Distribution]:
    """Return the distributions of the sites ``weight``, batch ``(entry,)``, and ``other_weight``, batch ``(item,)``."""
    weight = checked_prior("weight", priors.weight, data, ())
    other = checked_prior("other_weight", priors.other, data, ())
    return weight.expand((data.num_entries,)), other.expand((data.num_items,))


def gamma_parameters(
    priors: Priors, data: Rankings
) -> tuple[Float[np.ndarray, " entry"], Float[np.ndarray, " item"], float]:
    """Return the Gamma shapes of ``weight`` and of ``other_weight``, float64, and the rate that all of them share.

    Raises
    ------
    NotConjugate : a prior is no Gamma distribution, or the rates differ, so that weights and total are not independent.
    """
    with jax.enable_x64(True):
        sites = dict(zip(("weight", "other_weight"), weight_priors(priors, data), strict=True))
        gammas = {}
        for site, prior in sites.items():
            gamma = prior.base_dist if isinstance(prior, dist.ExpandedDistribution) else prior
            if not isinstance(gamma, dist.Gamma):
                raise NotConjugate(f"site '{site}': the Gibbs sampler and EM need a Gamma prior")
            gammas[site] = [np.asarray(value, float) for value in (gamma.concentration, gamma.rate)]
    rates = np.unique(np.concatenate([rate.ravel() for _, rate in gammas.values()]))
    if len(rates) != 1:
        raise NotConjugate("sites 'weight' and 'other_weight': the Gibbs sampler and EM need one common rate")
    weight, other = (np.broadcast_to(shape, sites[site].batch_shape) for site, (shape, _) in gammas.items())
    return weight, other, float(rates[0])
