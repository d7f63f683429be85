"""Which entities a record may belong to: all of them, or those of earlier records that it resembles."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from consilience.arrays import Int
from consilience.data.records import Records
from consilience.errors import TooLarge, UnsupportedRequest
from consilience.models.truth.partitions import pairs_together
from consilience.notes import Remedy

_MOST_PAIRS = 1 << 27
_MOST_FIELD_SETS = 2000


class Support(NamedTuple):
    """The entities that records may belong to; those of record i are at ``first[i]:first[i + 1]``, in order.

    Parameters
    ----------
    first : shape ``(record + 1,)``.
    record, entity : shape ``(edge,)``.
    """

    first: Int[np.ndarray, " record_plus_one"]
    record: Int[np.ndarray, " edge"]
    entity: Int[np.ndarray, " edge"]


def least_agreement(agree: int, data: Records) -> int:
    """Return in how many fields candidates agree.

    Where 0 is asked for, in all but two of the fields that most records have: in a field that few have, few can agree.

    Raises
    ------
    UnsupportedRequest : more fields are asked for than the records have.
    """
    if agree > data.num_fields:
        raise UnsupportedRequest(
            f"option 'agree' is {agree}, and the records have {data.num_fields} fields; give fewer"
        )
    common = np.count_nonzero((np.asarray(data.value) >= 0).mean(axis=1) > 0.5)
    return agree or max(int(common) - 2, 1)


def anchored(data: Records, agree: int) -> Support:
    """Return the support in which entity k is the one whose first record is record k.

    A record may be the first of its own entity, or belong to that of an earlier record with which it agrees in at least
    so many fields. Two records then cannot exchange their entities for ever, nor is there a second name for the same
    partition. A record whose first one is no candidate of its own cannot be reached through a third record.
    """
    first, second = agreeing_pairs(np.asarray(data.value), agree)
    every = np.arange(data.num_records, dtype=np.int32)
    record, entity = np.concatenate([second, every]), np.concatenate([first, every])
    order = np.lexsort((entity, record))
    bounds = np.concatenate([[0], np.cumsum(np.bincount(record, minlength=data.num_records))]).astype(np.int32)
    return Support(bounds, record[order], entity[order])


def agreeing_pairs(
    value: Int[np.ndarray, "field record"], agree: int
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the pairs of records, the lower code first, that agree in at least so many fields; -1 agrees with nothing.

    Such a pair has equal values in some set of so many fields: records are sorted once for each set.

    Raises
    ------
    UnsupportedRequest : there are more sets of fields, or pairs, than can be looked at.
    """
    num_fields, num_records = value.shape
    if math.comb(num_fields, agree) > _MOST_FIELD_SETS:
        raise TooLarge(
            f"there are {math.comb(num_fields, agree):,} ways to choose {agree} of {num_fields} fields in which "
            "records agree; raise {agree}, or read fewer fields", Remedy("agree"),
        )  # fmt: skip
    found, number = [np.empty(0, np.int64)], 0
    for fields in itertools.combinations(range(num_fields), agree):
        columns = value[list(fields)]
        observed = np.flatnonzero((columns >= 0).all(axis=0))
        group = _equal_columns(columns[:, observed])
        sizes = np.bincount(group)
        number += int(sizes @ (sizes - 1)) // 2
        if number > _MOST_PAIRS:
            raise TooLarge(
                f"more than {_MOST_PAIRS:,} pairs of records agree in {agree} fields; raise {{agree}}, so that there "
                "are fewer candidates", Remedy("agree"),
            )  # fmt: skip
        lower, higher = np.divmod(pairs_together(group), max(len(group), 1))
        found.append(observed[lower] * num_records + observed[higher])
    pair = np.sort(np.concatenate(found))
    pair = pair[np.append(True, pair[1:] != pair[:-1])[: len(pair)]]
    first, second = np.divmod(pair, num_records)
    return first.astype(np.int32), second.astype(np.int32)


def _equal_columns(columns: Int[np.ndarray, "field record"]) -> Int[np.ndarray, " record"]:
    """Return the same number for records with equal values."""
    order = np.lexsort(columns)
    ordered = columns[:, order]
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(np.append(False, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))[: len(order)])
    return group
