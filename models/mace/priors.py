"""Priors of MACE: how often an annotator knows the label, and what it says when it guesses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from consilience.arrays import Float
from consilience.models.dirichlet import Symmetric
from consilience.models.sites import Resolved


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
    """Parameters of conjugate priors: Beta(knows, guesses) and Dirichlet(guess) of each annotator."""

    knows: Float[np.ndarray, " annotator"]
    guesses: Float[np.ndarray, " annotator"]
    guess: Float[np.ndarray, "annotator label"]


def pseudo_counts(resolved: Resolved) -> PseudoCounts:
    """Return the parameters of the priors of all annotators, in the precision of programs.

    Raises
    ------
    NotConjugate : the prior of ``competence`` is no Beta distribution, or that of ``guess`` no Dirichlet distribution.
    """
    dtype = jnp.result_type(float)
    competence, guess = (resolved.concentration(site).astype(dtype) for site in ("competence", "guess"))
    return PseudoCounts(competence[:, 0], competence[:, 1], guess)
