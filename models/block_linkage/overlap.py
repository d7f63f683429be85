"""Fields that say the same, as a postal code and its town do: counted as independent, they count twice.

A field that is known from another one adds nothing to what a pair that agrees in that one shows, and the likelihood
multiplies all the same: the log odds are too high by the logarithm of how much more often records that agree in one
field agree in the other than any two do. Records of one entity agree in everything, so that what fields have to do with
each other shows in pairs of *different* entities alone: those that share a value that many have, and agree in no more
than half of all else. Long texts are hardly ever equal, of one entity or not, and are left out.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.misfit import nearest_values
from consilience.models.block_linkage.repeats import agree_by_chance
from consilience.models.block_linkage.similar import TEXT
from consilience.models.rows import successive
from consilience.notes import Level, Note, Remedy

_MOST_RECORDS = 50_000  # looked at, so that tables of any size take a moment
_LEAST_SHARING = 9.0    # records that have a record's value: more than one entity has
_LEAST_PAIRS = 50
_DETERMINED = 0.8       # agreement beyond chance: typing errors and moves are not all that differs
_LEAST_EXCESS = 1.0     # in log odds of a pair


class Overlap(NamedTuple):
    """A field that another one tells.

    Parameters
    ----------
    told, by : codes of the fields; the first one is known from the second.
    excess : log odds of pairs that agree in both, too high by so much.
    both_ways : whether the second is known from the first as well: they say the same.
    """

    told: int
    by: int
    excess: float
    both_ways: bool


# Notes and truth of a fit ask for the same; data are frozen, and equal to themselves alone.
_FOUND: weakref.WeakKeyDictionary[Records, list[Overlap]] = weakref.WeakKeyDictionary()


def overlaps(records: Records) -> list[Overlap]:
    """Return which fields another one tells; of two that say the same, the one with less to tell as the first.

    Linear in the records, of which 50,000 are looked at. Fields of which hardly any two entities have the same value
    are not judged: nobody knows then whether two records agree since they are of one entity.

    Parameters
    ----------
    records : of any number of fields; of fewer than three nothing is said.
    """
    if records not in _FOUND:
        _FOUND[records] = _overlaps(records)
    return _FOUND[records]


def _overlaps(records: Records) -> list[Overlap]:
    value, generator = np.asarray(records.value), np.random.default_rng(0)
    if value.shape[1] > _MOST_RECORDS:
        value = value[:, np.unique(generator.integers(value.shape[1], size=_MOST_RECORDS))]
    if records.similar is not None:
        value = np.where((np.asarray(records.similar) == TEXT)[:, None], -1, value)
    number, nearest = len(value), nearest_values(records)
    chance = np.array([agree_by_chance(column) if (column >= 0).any() else 1.0 for column in value])
    rate = np.full((number, number), np.nan)
    for field in np.flatnonzero(chance * (value >= 0).sum(axis=1) >= _LEAST_SHARING).tolist():
        # Without regard to their order in the table.
        one, other = successive(value[field], np.argsort(generator.random(value.shape[1])))
        rate[field] = _agreement(value[:, one], value[:, other], field, records.first_value, nearest)
    known = (rate - chance) / np.maximum(1 - chance, 1e-12) >= _DETERMINED
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.log(rate / chance)
    known &= excess >= _LEAST_EXCESS
    found = []
    for by, told in np.argwhere(known).tolist():
        both = bool(known[told, by])
        # Of two that say the same, once: the one that more records share, or else the later one.
        if not both or (chance[told], told) > (chance[by], by):
            found.append(Overlap(told, by, float(excess[by, told]), both))
    return found


def _agreement(
    one: Int[np.ndarray, "field pair"], other: Int[np.ndarray, "field pair"], field: int,
    first_value: Int[np.ndarray, " fields_and_one"], nearest: csr_array | None,
) -> Float[np.ndarray, " field"]:  # fmt: skip
    """Return how often pairs of different entities that share a field agree in each other one; NaN of too few."""
    both = (one >= 0) & (other >= 0)
    agree = both & (one == other)
    if nearest is not None and nearest.nnz:
        place = np.nonzero(both & ~agree)
        start = np.asarray(first_value)[place[0]]
        agree[place] = nearest[one[place] + start, other[place] + start] != 0
    # All fields but the one that is shared and the one that is asked about.
    elsewhere, agreeing = both.sum(axis=0) - 1 - both, agree.sum(axis=0) - 1 - agree
    apart = both & (elsewhere > 0) & (2 * agreeing <= elsewhere)
    count = apart.sum(axis=1)
    share = (agree & apart).sum(axis=1) / np.maximum(count, 1)
    return np.where((count >= _LEAST_PAIRS) & (np.arange(len(one)) != field), share, np.nan)


def overlap_notes(records: Records) -> Iterator[Note]:
    """Say which fields are counted as independent and are not."""
    if found := overlaps(records):
        pairs = "; ".join(_in_words(one, records) for one in found)
        yield Note(
            Level.warning,
            f"fields are counted as independent, and some are not: {pairs}. Probabilities of links, and what is said "
            "of precision, recall and the number of entities, are too sure: leave one of them out of {fields}",
            (Remedy("fields"),),
        )


def _in_words(one: Overlap, records: Records) -> str:
    told, by = _names(one, records)
    how = f"{told} and {by} say the same" if one.both_ways else f"{told} is known from {by}"
    return f"{how} (log odds of pairs that agree in both are {one.excess:.1f} too high)"


def overlap_doubt(records: Records) -> str:
    """Return why the interval is not to be trusted; empty where no field tells another one."""
    fields = dict.fromkeys(" and ".join(_names(one, records)) for one in overlaps(records))
    return f"too sure, since {', '.join(fields)} count twice" if fields else ""


def _names(one: Overlap, records: Records) -> tuple[str, str]:
    names = range(records.num_fields) if records.fields is None else records.fields
    return str(names[one.told]), str(names[one.by])
