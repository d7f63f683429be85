"""What a report says of fields of which the model expects otherwise than is counted, and so of how sure links are.

The model learns how common values are from the records, and knows no others. Of a field that tells nearly everybody
apart, such as a date of birth, it therefore expects two records to be equal by chance in one of so many pairs as there
are values, however seldom they are: links with equal values are surer than it says. Of how often linked records differ
it has a prior: where few do, values that differ take off less than is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience import linkage_figures
from consilience.errors import UnsupportedRequest
from consilience.evaluation.partition_scores import num_entities
from consilience.models.truth.partitions import pairs_together
from consilience.pages import Action
from consilience.pages.links_found import pairs_of_records
from consilience.printing import counted, joined

_TIMES = 2
"""So many times more pairs are expected to be equal by chance than there are, before a page says so."""

_FEW = 10
"""Fewer pairs that are expected say nothing."""

_TIMES_OF_LINKS = 1.2
"""So many times the share that is counted of links is that of the model, before a page says so."""

_SURE, _HALF = 0.99, 0.5
_SAID = 0.05  # Fewer links are none with one digit.


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


class Weighed(NamedTuple):
    """What fields weigh, and where the model expects otherwise than is counted.

    Parameters
    ----------
    table : the weights by field and outcome; None of a fit that has none.
    overstated : the fields that the model expects to be equal by chance far more often than they are.
    differing : rows of the table; fields in which the model expects more links to differ than are counted.
    """

    table: Any
    overstated: list[Chance]
    differing: Any


def weighed(fit: Any) -> Weighed:
    """Return what fields weigh, and where the model expects otherwise than is counted."""
    try:
        weights = fit.table("weights") if "weights" in fit.member.table_names else None
    except UnsupportedRequest:
        weights = None
    if weights is None:
        return Weighed(None, [], None)
    differing = weights[(weights["outcome"] == "differ") & (weights["m"] > _TIMES_OF_LINKS * weights["links"])]
    return Weighed(weights, _overstated(fit, weights), differing)


def _overstated(fit: Any, weights: Any) -> list[Chance]:
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


def surer_links(fit: Any, own: Weighed) -> list[str]:
    """Say which links are surer than is said, as fewer pairs are equal by chance, and which are less sure."""
    return [
        f"The model expects “{one.field}” to be equal by chance in {one.expected:,.0f} pairs of records that are "
        f"no links, and by its own probabilities finds {_found(one)}. So links with equal “{one.field}” are surer than "
        "their probability says"
        f"{_doubted(fit, one.place)}.{_less_sure(own)}{_in_all(fit, own)}"
        for one in own.overstated[:1]
    ]


def _less_sure(own: Weighed) -> str:
    """Say where values that differ take off less than is counted; empty where they do not."""
    if not len(own.differing):
        return ""
    return (
        f" On the other hand fewer links differ in {joined(f'“{name}”' for name in own.differing['field'])} than it "
        "expects: values that differ there take off less than the counts say."
    )


def _in_all(fit: Any, own: Weighed) -> str:
    """Say how many links, and so entities, there would be with what is counted in the place of what is expected."""
    more = more_links(fit, own)
    what = "With the counts in place of what it expects, pair by pair, there would be"
    if abs(more) < _SAID:
        return f" {what} as many links."
    way, other = ("more", "fewer") if more > 0 else ("fewer", "more")
    number = f"{abs(more):,.1f}"
    return (
        f" {what} {number} {way} links, and so about {number} {other} entities than "
        f"{linkage_figures.mean_number(num_entities(fit))}."
    )


def more_links(fit: Any, own: Weighed) -> float:
    """Return how many more links would be expected of the pairs looked at, each by itself, with what is counted.

    The weights of the values are moved by the logarithm of what is counted over what is expected, on the average over
    the values of a field. Less than half a pair is counted as that.
    """
    pairs, data = fit.truth.pairs(), fit.data
    value, names = np.asarray(data.value), [str(name) for name in data.fields]
    moved, links = special.logit(np.clip(pairs.probability, 0.0, 1.0)), float(pairs.probability.sum())
    for one in own.overstated:
        first, second = value[one.place, pairs.first], value[one.place, pairs.second]
        moved = moved + np.log(one.expected / max(one.found, _HALF)) * ((first == second) & (first >= 0))
    for row in own.differing.itertuples():
        place = names.index(str(row.field))
        first, second = value[place, pairs.first], value[place, pairs.second]
        differ = (first != second) & (np.minimum(first, second) >= 0) & ~_near(data, place, first, second)
        moved = moved + np.log(min(max(row.links, _HALF / links) / row.m, 1.0)) * differ
    return float(special.expit(moved).sum()) - links


def _near(data: Any, place: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return whether values of a field are nearly equal, where it is compared by similarity."""
    if data.near is None or not len(data.near):
        return np.zeros(len(first), bool)
    low, high = (data.first_value[place] + ends(first, second) for ends in (np.minimum, np.maximum))
    near = np.asarray(data.near, np.int64)
    return np.isin(low.astype(np.int64) * data.num_values + high, near[:, 0] * data.num_values + near[:, 1])


def in_detail(own: Weighed) -> list[str]:
    """Say why the model expects so much agreement by chance, and what to do."""
    told = [
        f"“{one.field}” is expected to be equal by chance in {one.expected:,.0f} pairs ({one.share:.3f} of them), and "
        f"is in {_found(one)}; even of {one.values:,} equally common values two are the same in 1 of {one.values:,} "
        "pairs"
        for one in own.overstated
    ]
    if not told:
        return []
    return [
        f"The model expects more agreement by chance than there is: {'; '.join(told)}. It learns how common values are "
        "from all records, of which two may be of one entity, and knows of no value that no record has. So equal "
        "values there add less than the two shares would say. Of parts that repeat, such as year, month and day of a "
        "date in columns of their own, it can learn how often they are equal by chance."
    ]


def split_dates(own: Weighed, kinds: Mapping[str, str]) -> list[Action]:
    """Return the advice to compare the parts of dates, where the model expects too many of them to be equal by chance.

    Parameters
    ----------
    own : what fields weigh.
    kinds : the types of the fields.
    """
    dates = [f"“{one.field}”" for one in own.overstated if kinds.get(one.field) == "date"]
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
