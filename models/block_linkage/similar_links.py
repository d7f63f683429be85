"""How many links candidates hide where fields are compared by similarity.

A link is a pair of records of one entity. Where fields are compared for equality the model says in how many of them a
link differs, and each that differs takes the same from its log odds. With similar fields that depends on how near the
values are, and the model is a poor judge of it: typing errors make many more values that are near than it expects. So
what a field takes from the log odds of a link, where it differs, is taken from the links that were found, each field by
itself. How often it differs is learned, as everywhere, and how much it tells where it agrees depends on the record.

All of this holds where fields err independently of each other, and only there. It is somewhat too good: among the links
found there are more near values than among those hidden.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from consilience.arrays import Float, Int
from consilience.models.block_linkage.join import CandidatePairs, prior_log_odds
from consilience.models.block_linkage.parameters import Parameters

_NUM_LINKS = 20_000


@runtime_checkable
class FieldTerms(Protocol):
    """What is asked of a likelihood under which fields err independently; see `similar.SimilarHitMiss`."""

    first_value: Any

    def pair_terms(
        self, parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"]
    ) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
        """Return what each field adds to the log odds of a pair, where values agree and where they differ."""

    def field_terms(
        self, values: Int[np.ndarray, "two field pair"], parameters: Parameters
    ) -> Float[np.ndarray, "field pair"]:
        """Return what each field adds to the log likelihood of pairs of records."""


def share_of_links_found(
    values: Int[np.ndarray, "field record"],
    likelihood: FieldTerms,
    parameters: Parameters,
    found: CandidatePairs,
    threshold: float,
    *,
    seed: int = 0,
) -> float:
    """Return the share of links that are expected to pass the threshold; nan where there is no candidate.

    Parameters
    ----------
    values : of all records, codes into the values of all fields, -1 where missing.
    found : candidate pairs, each as much of a link as it is probable for itself.
    threshold : pairs with log odds above minus this are candidates.
    seed : of 20,000 links. The same ones make results comparable.
    """
    if not len(found.first):
        return float("nan")
    generator = np.random.default_rng(seed)
    record, lacking = generator.integers(values.shape[1], size=(2, _NUM_LINKS))
    link = generator.choice(len(found.first), _NUM_LINKS, p=_normalised(expit(found.log_odds)))
    shown = np.stack([values[:, found.first[link]], values[:, found.second[link]]])
    agree, differ = likelihood.pair_terms(parameters, likelihood.first_value)
    differs = (shown >= 0).all(0) & (shown[0] != shown[1])
    terms = likelihood.field_terms(shown, parameters)
    # Which fields a second record lacks, any record can tell.
    observed = (values[:, record] >= 0) & (values[:, lacking] >= 0)
    log_odds = np.full(_NUM_LINKS, prior_log_odds(parameters))
    for field, value in enumerate(values[:, record]):
        seen = terms[field, differs[field]]
        apart = generator.choice(seen, _NUM_LINKS) if len(seen) else differ[field]
        probability = np.minimum(parameters.value_share[value] * np.exp(agree[value]), 1)
        agrees = generator.random(_NUM_LINKS) < probability
        log_odds += np.where(observed[field], np.where(agrees, agree[value], apart), 0)
    return float(np.mean(log_odds > -threshold))


def _normalised(weight: Float[np.ndarray, " pair"]) -> Float[np.ndarray, " pair"]:
    return weight / weight.sum()
