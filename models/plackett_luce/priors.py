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
from consilience.models.rows import numpy_of
from consilience.models.sites import Resolved


@dataclass(frozen=True)
class OneClass:
    """Gamma(shape, 1).

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

    def numbers(self, data: Any) -> Float[np.ndarray, " 2"]:
        """Return shape and rate without making the distribution."""
        return np.array([self.shape, 1.0])


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

    def numbers(self, data: Rankings) -> Float[np.ndarray, "item 2"]:
        """Return shapes and rates without making the distributions."""
        unnamed = np.asarray(num_unnamed(data))
        return np.stack([np.where(unnamed > 0, self.shape * unnamed, 1.0), np.ones(len(unnamed))], axis=1)


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
    if numpy_of(data.entry_item) is np:
        return data.num_classes - np.bincount(data.entry_item, minlength=data.num_items)
    named = jax.ops.segment_sum(jnp.ones_like(data.entry_item), data.entry_item, data.num_items)
    return data.num_classes - named


def gamma_shapes(resolved: Resolved) -> tuple[Float[np.ndarray, " entry"], Float[np.ndarray, " item"]]:
    """Return the Gamma shapes of ``weight`` and of ``other_weight``, float64; their rate has no part in anything.

    Raises
    ------
    NotConjugate : a prior is no Gamma distribution, or the rates differ, so that weights and total are not independent.
    """
    weight, other = (resolved.concentration(site) for site in ("weight", "other_weight"))
    if len(np.unique(np.concatenate([weight[:, 1], other[:, 1]]))) != 1:
        raise NotConjugate("sites 'weight' and 'other_weight': the Gibbs sampler and EM need one common rate")
    return weight[:, 0], other[:, 0]
