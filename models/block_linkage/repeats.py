"""What repeats among records: the values of nearly unique fields, and whole records that are too common to link.

A field whose values hardly ever repeat, such as a note, tells nothing about entities where the records that share a
value agree in nothing else. And many records that are the same in all fields are no candidates where their values are
common: each pair is improbable, but there are so many that some are links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from consilience.arrays import Bool, Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.likelihood import Likelihood
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.models.rows import row_blocks, successive

_NEARLY_UNIQUE = 0.8  # distinct values per record that has the field
_BY_CHANCE = 0.1      # agreement elsewhere, corrected for chance, of records that share a value
_BLOCK = 65_536       # records looked at together
_EXPECTED = 0.1       # links of a record that are worth telling


class Alike(NamedTuple):
    """Records that are the same in all fields as others, and are no candidates.

    Parameters
    ----------
    records : how many there are.
    pairs : how many pairs of equal ones.
    weight : how many links these are worth, each pair taken for itself.
    """

    records: int
    pairs: int
    weight: float


def repeats_by_chance(records: Records) -> Bool[np.ndarray, " field"]:
    """Return which fields are nearly unique, with repeats that say nothing.

    Of such a field more than four values in five are distinct, and records that share a value agree in the other fields
    about as often as any two records do. Fields with one value and fields without repeats are none of them.
    """
    found = np.zeros(records.num_fields, bool)
    value, lengths = np.asarray(records.value), np.diff(records.first_value)
    for field in np.flatnonzero(lengths > _NEARLY_UNIQUE * (value >= 0).sum(axis=1)):
        first, second = successive(value[field])
        expected = agreed = 0.0
        for other in np.flatnonzero((lengths > 1) & (np.arange(len(lengths)) != field)):
            one, two = value[other, first], value[other, second]
            both = (one >= 0) & (two >= 0)
            by_chance = agree_by_chance(value[other])
            expected += both.sum() * (1 - by_chance)
            agreed += ((one == two) & both).sum() - both.sum() * by_chance
        found[field] = expected > 0 and agreed < _BY_CHANCE * expected
    return found


def agree_by_chance(column: Int[np.ndarray, " record"]) -> float:
    """Return how probably two records that have the field agree in it."""
    number = np.bincount(column[column >= 0])
    return float(np.square(number / number.sum()).sum())


def alike_apart(
    records: Records, parameters: Parameters, likelihood: Likelihood, log_prior_odds: float, threshold: float,
    restriction: str,
) -> Alike:  # fmt: skip
    """Count the records that are the same as others and are no candidates, though links are to be expected among them.

    Parameters
    ----------
    log_prior_odds : of a pair before its values are seen.
    threshold : candidates have log odds above minus this.
    restriction : as in `fit_em`; pairs that it forbids are not counted.
    """
    agree, own = np.append(likelihood.pair_terms(parameters, records.first_value)[0], 0.0), likelihood.at(parameters)
    chosen, log_odds = [np.zeros(0, int)], [np.zeros(0)]
    for rows in row_blocks(records.num_records, 1, _BLOCK):
        codes = value_codes(np.asarray(records.value)[:, rows], records.first_value)
        of_values = agree[codes].sum(axis=0)
        if not likelihood.additive:
            of_values = own.log_pairs(np.stack([codes, codes]), parameters)
        below = np.flatnonzero(log_prior_odds + of_values <= -threshold)
        chosen.append(below + rows.start)
        log_odds.append(log_prior_odds + of_values[below])
    common, of_common = np.concatenate(chosen), np.concatenate(log_odds)
    if not len(common):
        return Alike(0, 0, 0.0)
    key = record_keys(records, common)
    _, first, group, number = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    pairs = _allowed_pairs(group, number, np.asarray(records.source)[common], restriction)
    weight = pairs * expit(of_common[first])
    told = 2 * weight >= _EXPECTED * number
    return Alike(int(number[told].sum()), int(pairs[told].sum()), float(weight[told].sum()))


def record_keys(
    records: Records, chosen: slice | Int[np.ndarray, " chosen"] = slice(None)
) -> Int[np.ndarray, " chosen"]:
    """Return a number of 64 bits for what some records show, by default all: equal ones have the same."""
    words = np.random.default_rng(0).integers(2**64, size=records.num_values + records.num_fields, dtype=np.uint64)
    value = np.asarray(records.value)[:, chosen]
    key = np.zeros(value.shape[1], np.uint64)
    for place, column in enumerate(value):
        first, last = records.first_value[place : place + 2]
        # The last place is that of a missing value, whose code is -1.
        key += np.append(words[first:last], words[records.num_values + place])[column]
    return key.view(np.int64)


def _allowed_pairs(
    group: Int[np.ndarray, " record"],
    number: Int[np.ndarray, " group"],
    source: Int[np.ndarray, " record"],
    restriction: str,
) -> Float[np.ndarray, " group"]:
    """Return how many pairs of each group the restriction allows."""
    every = number * (number - 1) / 2
    if restriction == "none":
        return every
    cell, count = np.unique(group * (source.max() + 1) + source, return_counts=True)
    same = np.bincount(cell // (source.max() + 1), count * (count - 1) / 2, len(number))
    return same if restriction == "within" else every - same
