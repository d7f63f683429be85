"""What the Dawid-Skene model believes before any annotation.

Renaming the true classes changes nothing where the prior tells them apart no more than the likelihood does: the default
priors are of this kind (see `consilience.models.dawid_skene.labelling`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Float
from consilience.data.annotations import Annotations
from consilience.errors import InvalidPrior, NotConjugate
from consilience.models.dirichlet import Symmetric
from consilience.models.interface import checked_prior

__all__ = ["Diagonal", "Priors", "dirichlet_parameters", "knows_no_class", "notes", "site_priors"]


@dataclass(frozen=True)
class Diagonal:
    """Rows of confusion matrices that expect annotators to be right, as a function of the data.

    Parameters
    ----------
    right : positive; the concentration of the true label.
    wrong : positive; the concentration of each other label.
    """

    right: float
    wrong: float = 1.0

    def __call__(self, data: Any) -> dist.Dirichlet:
        """Return a Dirichlet distribution for each class, batch shape ``(class,)``."""
        return dist.Dirichlet(self.wrong + (self.right - self.wrong) * jnp.eye(data.num_labels))


@dataclass(frozen=True, kw_only=True)
class Priors:
    """Priors of the shares of the classes and of the annotators' errors.

    Parameters
    ----------
    prevalence : distribution of the class shares, event shape ``(class,)``; Dirichlet(1, …, 1) by default.
    confusion : distribution of a row of a confusion matrix, event shape ``(label,)``, batch shape ``()`` or
        ``(class,)``; the same for every annotator. Dirichlet(1, …, 1) by default; `Diagonal` favours right answers.
    """

    prevalence: dist.Distribution | Callable[[Any], dist.Distribution] = Symmetric(1.0)
    confusion: dist.Distribution | Callable[[Any], dist.Distribution] = Symmetric(1.0)


def site_priors(priors: Priors, data: Annotations) -> tuple[dist.Distribution, dist.Distribution]:
    """Return the distributions of ``prevalence``, batch ``()``, and of ``confusion``, batch ``()`` or ``(class,)``.

    Raises
    ------
    InvalidPrior : for other shapes.
    """
    prevalence = checked_prior("prevalence", priors.prevalence, data, (data.num_labels,))
    confusion = checked_prior("confusion", priors.confusion, data, (data.num_labels,))
    if prevalence.batch_shape:
        raise InvalidPrior(f"the prior of site 'prevalence' has batch shape {prevalence.batch_shape}, expected ()")
    if confusion.batch_shape not in ((), (data.num_labels,)):
        raise InvalidPrior(
            f"the prior of site 'confusion' has batch shape {confusion.batch_shape}, expected () or "
            f"({data.num_labels},), one distribution for each true class; every annotator has the same prior"
        )
    return prevalence, confusion


def dirichlet_parameters(
    priors: Priors, data: Annotations
) -> tuple[Float[np.ndarray, " class"], Float[np.ndarray, "class label"]]:
    """Return the concentrations of both sites, float64.

    Raises
    ------
    NotConjugate : a prior is no Dirichlet distribution.
    """
    with jax.enable_x64(True):
        sites = dict(zip(("prevalence", "confusion"), site_priors(priors, data), strict=True))
        concentrations = {}
        for site, prior in sites.items():
            dirichlet = prior.base_dist if isinstance(prior, dist.ExpandedDistribution) else prior
            if not isinstance(dirichlet, dist.Dirichlet):
                raise NotConjugate(f"site '{site}': CAVI and the Gibbs sampler need a Dirichlet prior")
            concentrations[site] = np.asarray(dirichlet.concentration, float)
    size = data.num_labels
    return concentrations["prevalence"], np.broadcast_to(concentrations["confusion"], (size, size))


def knows_no_class(priors: Priors, data: Annotations) -> bool:
    """Return whether the prior is known to stay as it is when the true classes are renamed."""
    try:
        prevalence, confusion = dirichlet_parameters(priors, data)
    except NotConjugate:
        return False
    return bool(np.all(prevalence == prevalence[0]) and np.all(confusion == confusion[0]))


def notes(data: Annotations, priors: Priors, **options: Any) -> list[str]:
    """Say so where a prior under which every error is as probable as the right label outweighs the annotations."""
    try:
        confusion = dirichlet_parameters(priors, data)[1]
    except NotConjugate:
        return []
    held, given = float(data.num_annotators * confusion.sum()), float(np.sum(np.asarray(data.weight)))
    if not np.all(confusion == confusion[0]) or held <= given:
        return []
    return [
        f"the flat prior of the confusion matrices counts as {held:,.0f} annotations, more than the {given:,.0f} of "
        "the data, and takes errors for as probable as right labels; diagonal=3 expects right ones, and mace needs "
        "less data"
    ]
