"""Hyperparameters to start from, and the shares of values and of sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.by_source import starting_share
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.repeats import repeats_by_chance
from consilience.models.block_linkage.similar import TEXT
from consilience.models.posterior import Posterior

_LEAST_ALONE = 0.25  # of the entities have one record, as far as candidates go
FREE_SIZES = 4
LEAST_REST = 0.1  # what the prior gives to a size without a count of its own, and to all above 4
_EXPONENTS = np.linspace(1.05, 6, 100)


def starting_parameters(records: Records, largest: int, restriction: str = "none") -> Parameters:
    """Return values to start from: b = .05, nine in ten entities with one record, nine entities to ten records.

    Fields that are nearly unique and repeat by chance start at b = .5: with .05 each would part the records of nearly
    every entity, and what parts records before anything is learned is never learned. Where records of one source are
    apart, the shares of the sources are those of the records.
    """
    share = record_shares(records)
    if records.similar is not None and (np.asarray(records.similar) == TEXT).any():
        # Records of an entity repeat its texts, so that their number says how large it is, not how common they are.
        share = shares_of(records, np.ones(records.num_values))
    size_share = 0.9 * 0.1 ** np.arange(largest)
    if largest > FREE_SIZES:
        tail = np.arange(FREE_SIZES + 1, largest + 1) ** -2.0
        size_share[FREE_SIZES:] = 0.1**FREE_SIZES * tail / tail.sum()
    return Parameters(
        share,
        np.where(repeats_by_chance(records), 0.5, 0.05),
        max(0.9 * records.num_records, 1.0),
        size_share / size_share.sum(),
        source_share=starting_share(source_counts(records)) if restriction == "across" else np.zeros(0),
    )


def for_candidates(parameters: Parameters) -> Parameters:
    """Return hyperparameters to find candidates with: as if some entities had a single record.

    Where none has, as in two lists of the same people, two records alone are next to impossible, the log odds of every
    pair are beyond all thresholds, and everything would be a candidate. And where entities are large, next to none has
    two records; the prior odds of a pair are then those of any two records of one entity.
    """
    share = parameters.size_share.copy()
    share[0] = max(share[0], _LEAST_ALONE)
    share[1] = max(share[1], parameters.pair_odds * parameters.intensity * share[0] ** 2 / 2)
    return parameters._replace(size_share=share / share.sum())


def size_shares(
    counts: Float[np.ndarray, " size"], prior: Float[np.ndarray, " prior_size"]
) -> Float[np.ndarray, " size"]:
    """Return the shares of sizes: of 1 to 4 records each its own, above them t s^-γ with the rest t of the mass.

    A share of its own for every size would be next to nothing for sizes that nobody has seen yet, and an entity of 40
    records could never pass through 39. The exponent γ is the most probable one under Gamma(2, 1), from 1.05 to 6.

    Parameters
    ----------
    counts : expected numbers of entities.
    prior : Dirichlet counts; those above 4 are of the rest.
    """
    free = min(FREE_SIZES, len(counts))
    own = counts[:free] + np.append(prior, np.full(free, LEAST_REST))[:free]
    if len(counts) == free:
        return own / own.sum()
    rest = counts[free:].sum() + max(prior[free:].sum(), LEAST_REST)
    size, exponent = np.arange(free + 1, len(counts) + 1), _EXPONENTS[:, None]
    total = np.power(size, -exponent).sum(axis=1)
    log_posterior = -_EXPONENTS * (counts[free:] @ np.log(size)) - counts[free:].sum() * np.log(total)
    best = int(np.argmax(log_posterior + np.log(_EXPONENTS) - _EXPONENTS))
    tail = rest * size ** -_EXPONENTS[best] / total[best]
    return np.concatenate([own, tail]) / (own.sum() + rest)


def record_shares(records: Records) -> Float[np.ndarray, " value"]:
    """Return how common each value is among the records that have the field; a value of none counts half."""
    return shares_of(records, value_counts(records))


def shares_of(records: Records, counts: Any) -> Float[np.ndarray, " value"]:
    """Return how common each value is in its field by numbers of it; one of none counts half."""
    number = np.maximum(counts, 0.5)
    lengths = np.diff(records.first_value)
    field = np.repeat(np.arange(records.num_fields), lengths)
    return number / np.bincount(field, number, records.num_fields)[field]


def value_counts(records: Records) -> Int[np.ndarray, " value"]:
    """Return how many records have each value."""
    counts = [
        np.bincount(column + 1, minlength=length + 1)[1:]
        for column, length in zip(records.value, np.diff(records.first_value), strict=True)
    ]
    return np.concatenate([np.zeros(0, int), *counts])


def source_counts(records: Records) -> Int[np.ndarray, " source"]:
    """Return how many records each source has."""
    return np.bincount(records.source, minlength=records.num_sources)


def hyperparameters(
    posterior: Posterior, data: Records
) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
    """Return θ and b: the estimates, or means of draws."""
    draws = posterior.draws()
    share = posterior.hidden.get("value_share", draws.get("value_share"))
    if share is None:
        share = record_shares(data)
    elif "value_share" in draws:
        share = share.mean(axis=0)
    return np.asarray(share, float), np.asarray(draws["distortion"], float).mean(axis=0)
