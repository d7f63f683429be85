"""Hyperparameters of block-linkage: how common values are, how often they are distorted, how large entities are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.arrays import Float, Int


class Parameters(NamedTuple):
    """Hyperparameters; all fields in one table of values.

    Parameters
    ----------
    value_share : float64, shape ``(value,)``; θ, how common each value is, adding up to one within a field. The values
        of a field are those between its ``Records.first_value`` and the next.
    distortion : float64, shape ``(field,)``; b, how probably a field of a record is distorted.
    intensity : m, the expected number of entities.
    size_share : float64, shape ``(size,)``; μ, the share of entities with 1, 2, … records.
    class_share : float64, shape ``(class,)``; π, the shares of records with no, one and many errors; none where the
        likelihood has no such classes.
    source_share : float64, shape ``(source,)``; φ, how often records are of each source, where records of one source
        are apart; none where they may be of one entity. See `by_source`.
    pair_odds : the share of all pairs of records that are of one entity; 0 where it is not known.
    """

    value_share: Float[np.ndarray, " value"]
    distortion: Float[np.ndarray, " field"]
    intensity: float
    size_share: Float[np.ndarray, " size"]
    class_share: Float[np.ndarray, " class"] = np.zeros(0)
    source_share: Float[np.ndarray, " source"] = np.zeros(0)
    pair_odds: float = 0.0


def value_codes(
    value: Int[np.ndarray, " field *axes"], first_value: Int[np.ndarray, " fields_and_one"]
) -> Int[np.ndarray, " field *axes"]:
    """Return codes within each field as codes into the table of the values of all fields, -1 where missing."""
    first = first_value[:-1].reshape(-1, *[1] * (value.ndim - 1))
    return np.where(value >= 0, value + first, -1)
