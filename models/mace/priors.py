"""Priors of MACE: how often an annotator knows the label, and what it says when it guesses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Float
from consilience.data.annotations import Annotations
from consilience.errors import NotConjugate
from consilience.models.dirichlet import Symmetric
from consilience.models.interface import checked_prior

__all__ = ["KnowsGuesses", "Priors", "PseudoCounts", "pseudo_counts", "skill_priors"]


@dataclass(frozen=True)
class KnowsGuesses:
    """Beta(knows, guesses), whatever the data: pseudo-counts of annotations that were known and that were guessed.

    The published program asks for the same two numbers the other way round: its ``alpha`` counts guesses, its ``beta``
    what is known. There alpha > beta means distrust.

    Parameters
    ----------
    knows, guesses : positive.
    """

    knows: float
    guesses: float

    def __str__(self) -> str:
        return f"Beta({self.knows:g} known, {self.guesses:g} guessed)"

    def __call__(self, data: Any) -> dist.Beta:
        """Return the distribution of one competence."""
        return dist.Beta(self.knows, self.guesses)


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What the model believes before any annotation; the defaults are those of the published program.

    Parameters
    ----------
    competence : distribution of the probability that an annotator knows the label, batch shape ``()`` or
        ``(annotator,)``; Beta(0.5, 0.5) by default.
    guess : distribution of what an annotator says when it guesses, event shape ``(label,)``, batch shape ``()`` or
        ``(annotator,)``; Dirichlet(10, …, 10) by default.
    """

    competence: dist.Distribution | Callable[[Any], dist.Distribution] = KnowsGuesses(0.5, 0.5)
    guess: dist.Distribution | Callable[[Any], dist.Distribution] = Symmetric(10.0)


class PseudoCounts(NamedTuple):
    """Parameters of conjugate priors, float64: Beta(knows, guesses) and Dirichlet(guess) of each annotator."""

    knows: Float[np.ndarray, " annotator"]
    guesses: Float[np.ndarray, " annotator"]
    guess: Float[np.ndarray, "annotator label"]


def skill_priors(priors: Priors, data: Annotations) -> tuple[dist.Distribution, dist.Distribution]:
    """Return the distributions of the sites ``competence`` and ``guess``, both of batch shape ``(annotator,)``."""
    competence = checked_prior("competence", priors.competence, data, ())
    guess = checked_prior("guess", priors.guess, data, (data.num_labels,))
    return competence.expand((data.num_annotators,)), guess.expand((data.num_annotators,))


def pseudo_counts(priors: Priors, data: Annotations) -> PseudoCounts:
    """Return the parameters of the priors of all annotators.

    Raises
    ------
    NotConjugate : the prior of ``competence`` is no Beta distribution, or that of ``guess`` no Dirichlet distribution.
    """
    with jax.enable_x64(True):
        competence, guess = (_unexpanded(prior) for prior in skill_priors(priors, data))
        if not isinstance(competence, dist.Beta):
            raise NotConjugate("site 'competence': closed-form updates need a Beta prior")
        if not isinstance(guess, dist.Dirichlet):
            raise NotConjugate("site 'guess': closed-form updates need a Dirichlet prior")
        size = (data.num_annotators,)
        return PseudoCounts(
            np.broadcast_to(np.asarray(competence.concentration1, float), size),
            np.broadcast_to(np.asarray(competence.concentration0, float), size),
            np.broadcast_to(np.asarray(guess.concentration, float), (*size, data.num_labels)),
        )


def _unexpanded(prior: dist.Distribution) -> dist.Distribution:
    return prior.base_dist if isinstance(prior, dist.ExpandedDistribution) else prior
