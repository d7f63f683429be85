"""Weights of fields that err together: a composite likelihood, no posterior."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import expit

from consilience.arrays import Float, Int
from consilience.data.records import Records
from consilience.errors import InputError, InputProblem, UnsupportedRequest
from consilience.models.block_linkage.join import CandidatePairs
from consilience.models.block_linkage.likelihoods import HitMiss, Likelihood
from consilience.models.block_linkage.similar import SimilarHitMiss
from consilience.notes import Remedy


def powers_of(
    weights: str | Mapping[str, float], records: Records, likelihood: Likelihood
) -> Float[np.ndarray, " weighted_field"]:
    """Return the power of each field that was asked for; nothing where none was.

    Raises
    ------
    UnsupportedRequest : the likelihood takes no weights.
    InputError : there is no such field, or a weight is not positive.
    """
    if weights == "equal":
        return np.zeros(0)
    if not isinstance(likelihood, HitMiss) or isinstance(likelihood, SimilarHitMiss):
        text = "{weights} are of hit-miss and copies, of fields compared for equality or as texts; take {likelihood}"
        raise UnsupportedRequest(text, Remedy("weights"), Remedy("likelihood", "hit-miss"))
    if weights == "auto":
        return np.zeros(0)
    names = [str(name) for name in (range(records.num_fields) if records.fields is None else records.fields)]
    wrong = [name for name in weights if name not in names]
    if isinstance(weights, str) or wrong or not all(0 < weight < np.inf for weight in weights.values()):
        problem = f"{{weights}} is {weights!r}; the fields that are compared are {', '.join(names)}"
        raise InputError(InputProblem(problem, "give {weights}, or a positive number for some of them",
                                      remedies=(Remedy("weights", "auto"),)))  # fmt: skip
    return np.array([float(weights.get(name, 1.0)) for name in names])


def dependence_weights(pairs: CandidatePairs, value: Int[np.ndarray, "field record"]) -> Float[np.ndarray, " field"]:
    """Return weights of fields that err together: 1 / (1 + the sum of the absolute correlations with the others).

    The correlations are those of disagreement among candidates, each as much of a link as it is probable for itself.

    Parameters
    ----------
    pairs : candidates.
    value : codes of the records within each field, -1 where missing.
    """
    weight = expit(pairs.log_odds)
    own, others = value[:, pairs.first], value[:, pairs.second]
    observed = ((own >= 0) & (others >= 0)).astype(float)
    differs = observed * (own != others)
    total = np.zeros(len(value))
    for one in range(len(value)):
        for other in range(one):
            own = weight * observed[one] * observed[other]
            number = max(own.sum(), np.finfo(float).tiny)
            first, second = differs[one] - own @ differs[one] / number, differs[other] - own @ differs[other] / number
            variance = (own @ first**2) * (own @ second**2)
            correlation = abs(own @ (first * second)) / np.sqrt(variance) if variance > 0 else 0.0
            total[[one, other]] += correlation
    return 1 / (1 + total)
