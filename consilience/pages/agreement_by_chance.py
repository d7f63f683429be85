"""What a report says of fields that are equal by chance less often than the model expects: their links are surer.

The model learns how common values are from the records, and knows no others. Of a field that tells nearly everybody
apart, such as a date of birth, it therefore expects two records to be equal by chance in one of so many pairs as there
are values, however seldom they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from consilience.errors import UnsupportedRequest
from consilience.models.truth.partitions import pairs_together
from consilience.pages import Action
from consilience.pages.links_found import pairs_of_records
from consilience.printing import counted

_TIMES = 2
"""So many times more pairs are expected to be equal by chance than there are, before a page says so."""

_FEW = 10
"""Fewer pairs that are expected say nothing."""

_SURE, _HALF = 0.99, 0.5


class Chance(NamedTuple):
    """Pairs of two entities that are equal in a field.

    Parameters
    ----------
    field : its name.
    place : among the fields.
    values : how many it has.
    share : of the pairs of two entities, as the model has it.
    expected : how many pairs that is.
    found : how many there are, each pair counted as far as it is improbable that it is a link.
    """

    field: str
    place: int
    values: int
    share: float
    expected: float
    found: float


def overstated(fit: Any) -> list[Chance]:
    """Return the fields that the model expects to be equal by chance far more often than they are."""
    if "weights" not in fit.member.table_names:
        return []
    try:
        weights = fit.table("weights")
    except UnsupportedRequest:
        return []
    equal = weights[weights["outcome"] == "equal"]
    number = _pairs(fit) - float(fit.truth.pairs().probability.sum())
    values = np.diff(fit.data.first_value)
    every = [
        Chance(str(row.field), place, int(size), row.u, row.u * number, row.others * number)
        for place, (row, size) in enumerate(zip(equal.itertuples(), values, strict=True))
    ]
    return [one for one in every if one.expected >= _FEW and one.expected > _TIMES * one.found]


def _pairs(fit: Any) -> int:
    """Return how many pairs of records may be links."""
    between, within = pairs_of_records(fit.data)
    restriction = fit.resolved.settings.as_dict().get("restriction", "none")
    return {"none": between + within, "within": within, "across": between}[restriction]


def surer_links(fit: Any) -> list[str]:
    """Say how many pairs are expected and found to be equal by chance, and which links are surer than is said."""
    return [
        f"The model expects “{one.field}” to be equal by chance in {one.expected:,.0f} pairs of records that are "
        f"no links, and by its own probabilities finds {_found(one)}. So links with equal “{one.field}” are surer than "
        "their probability says"
        f"{_doubted(fit, one.place)}."
        for one in overstated(fit)[:1]
    ]


def in_detail(fit: Any) -> list[str]:
    """Say why the model expects so much agreement by chance, and what to do."""
    told = [
        f"“{one.field}” is expected to be equal by chance in {one.expected:,.0f} pairs ({one.share:.3f} of them), and "
        f"is in {_found(one)}; even of {one.values:,} equally common values two are the same in 1 of {one.values:,} "
        "pairs"
        for one in overstated(fit)
    ]
    if not told:
        return []
    return [
        f"The model expects more agreement by chance than there is: {'; '.join(told)}. It learns how common values are "
        "from all records, of which two may be of one entity, and knows of no value that no record has. So equal "
        "values there add less than the two shares would say. Of parts that repeat, such as year, month and day of a "
        "date in columns of their own, it can learn how often they are equal by chance."
    ]


def split_dates(fit: Any, kinds: Mapping[str, str]) -> list[Action]:
    """Return the advice to compare the parts of dates, where the model expects too many of them to be equal by chance.

    Parameters
    ----------
    fit : of records.
    kinds : the types of the fields.
    """
    dates = [f"“{one.field}”" for one in overstated(fit) if kinds.get(one.field) == "date"]
    words = f"Write year, month and day of {' and '.join(dates)} into columns of their own, and link by these"
    return [Action(words, section="Match weights")] * bool(dates)


def _found(one: Chance) -> str:
    """Write how many pairs were found; they are expected ones."""
    return f"about {one.found:,.0f}" if one.found >= _HALF else "hardly any"


def _doubted(fit: Any, field: int) -> str:
    """Say how many of the links that are least sure are equal in a field."""
    one, other = np.divmod(pairs_together(np.asarray(fit.truth.estimate())), fit.data.num_records)
    unsure = fit.truth.pairs().of(one, other) < _SURE
    value = np.asarray(fit.data.value)[field]
    equal = ((value[one] == value[other]) & (value[one] >= 0))[unsure]
    return f": {equal.sum():,} of the {counted(len(equal), 'links')} below {_SURE}" if equal.any() else ""
