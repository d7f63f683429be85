"""What the Dawid-Skene model believes before any annotation.

Renaming the true classes changes nothing where the prior tells them apart no more than the likelihood does: the default
priors are of this kind (see `consilience.models.dawid_skene.labelling`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.errors import NotConjugate
from consilience.models.dirichlet import Symmetric
from consilience.models.interface import Account
from consilience.models.sites import Resolved
from consilience.notes import Level, Note, Remedy


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


def knows_no_class(resolved: Resolved) -> bool:
    """Return whether the prior is known to stay as it is when the true classes are renamed."""
    try:
        prevalence, confusion = resolved.concentration("prevalence"), resolved.concentration("confusion")
    except NotConjugate:
        return False
    return bool(np.all(prevalence == prevalence[0]) and np.all(confusion == confusion[0]))


def says(account: Account) -> Iterator[Note]:
    """Say so where a prior under which every error is as probable as the right label outweighs the annotations."""
    data = account.resolved.data
    if account.resolved.given is None or account.method == "em":  # which has none
        return
    try:
        confusion = account.resolved.concentration("confusion")
    except NotConjugate:
        return
    held, given = float(data.num_annotators * confusion.sum()), float(np.sum(np.asarray(data.weight)))
    if not np.all(confusion == confusion[0]) or held <= given:
        return
    yield Note(
        Level.note,
        f"the flat prior of the confusion matrices counts as {held:,.0f} annotations, more than the {given:,.0f} of "
        "the data, and takes errors for as probable as right labels; {diagonal} expects right ones, and mace needs "
        "less data",
        (Remedy("diagonal", 3),),
    )
