"""What a report says of fields of which the model expects otherwise than is counted, and so of how sure links are.

The model learns how common values are from the records, and knows no others. Of a field that tells nearly everybody
apart, such as a date of birth, it therefore expects two records to be equal by chance in one of so many pairs as there
are values, however seldom they are: links with equal values are surer than it says. Of how often linked records differ
it has a prior: where few do, a difference speaks less against a link than what is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.errors import UnsupportedRequest
from consilience.models.truth.partitions import pairs_together
from consilience.pages.links_found import pairs_of_records
from consilience.printing import counted, joined
from consilience.rounding import probability

_TIMES = 2
"""So many times more pairs are expected to be equal by chance than there are, before a page says so."""

_FEW = 10
"""Fewer pairs that are expected say nothing."""

_TIMES_OF_LINKS = 1.2
"""So many times the share that is counted of links is that of the model, before a page says so."""

_SURE = 0.99
_SHOWN = 0.02  # Pairs that are less probable are no links in doubt.
_RIGHT = 0.5  # of a link; where fewer wrong ones are expected, all are probably right
_MOSTLY = 0.9  # Of a share, what makes it up.


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
    equal : how many pairs that may be links are equal in the field.
    linked : how many of these are linked.
    """

    field: str
    place: int
    values: int
    share: float
    expected: float
    found: float
    equal: int
    linked: int

    @property
    def limit(self) -> float:
        """The most pairs that so few allow to be expected, with 95 % (of a Poisson distribution)."""
        return float(special.gammaincinv(max(self.found, self.equal - self.linked) + 1, 0.95))


class Weighed(NamedTuple):
    """What fields weigh, and where the model expects otherwise than is counted.

    Parameters
    ----------
    table : the weights by field and outcome; None of a fit that has none.
    overstated : the fields that the model expects to be equal by chance far more often than they are.
    differing : rows of the table; fields in which the model expects more links to differ than are counted.
    unsure : of those of them in which no sure link differs, how many pairs in doubt make up the share that is counted.
    """

    table: Any
    overstated: list[Chance]
    differing: Any
    unsure: Mapping[str, int] = MappingProxyType({})


def weighed(fit: Any) -> Weighed:
    """Return what fields weigh, and where the model expects otherwise than is counted."""
    try:
        weights = fit.table("weights") if "weights" in fit.member.table_names else None
    except UnsupportedRequest:
        weights = None
    if weights is None:
        return Weighed(None, [], None)
    differing = weights[(weights["outcome"] == "differ") & (weights["m"] > _TIMES_OF_LINKS * weights["links"])]
    return Weighed(weights, _overstated(fit, weights), differing, _in_doubt_by_field(fit, differing))


def _overstated(fit: Any, weights: Any) -> list[Chance]:
    equal = weights[weights["outcome"] == "equal"]
    number = _pairs(fit) - float(fit.truth.pairs().probability.sum())
    values = np.diff(fit.data.first_value)
    every = [
        Chance(str(row.field), place, int(size), row.u, row.u * number, row.others * number, *_equal(fit, place))
        for place, (row, size) in enumerate(zip(equal.itertuples(), values, strict=True))
    ]
    return [
        one for one in every
        if one.expected >= _FEW and one.expected > _TIMES * max(one.found, one.equal - one.linked)
    ]  # fmt: skip


def _equal(fit: Any, place: int) -> tuple[int, int]:
    """Return how many pairs that may be links are equal in a field, and how many of these are linked."""
    value, source = np.asarray(fit.data.value)[place], np.asarray(fit.data.source)
    known = value >= 0
    in_all = np.bincount(value[known])
    _, in_file = np.unique(np.stack([value[known], source[known]]), axis=1, return_counts=True)
    every, within = (int((own * (own - 1) // 2).sum()) for own in (in_all, in_file))
    restriction = fit.resolved.settings.as_dict().get("restriction", "none")
    one, other = np.divmod(pairs_together(np.asarray(fit.truth.estimate())), fit.data.num_records)
    linked = int(((value[one] == value[other]) & (value[one] >= 0)).sum())
    return {"none": every, "within": within, "across": every - within}[restriction], linked


def _pairs(fit: Any) -> int:
    """Return how many pairs of records may be links."""
    between, within = pairs_of_records(fit.data)
    restriction = fit.resolved.settings.as_dict().get("restriction", "none")
    return {"none": between + within, "within": within, "across": between}[restriction]


def surer_links(fit: Any, own: Weighed) -> list[str]:
    """Say which links are surer than is said, as fewer pairs are equal by chance, and what that does to the numbers.

    That is to first order: probabilities change, and what is learned does not.

    Parameters
    ----------
    fit : of records.
    own : what fields weigh.
    """
    one, other = np.divmod(pairs_together(np.asarray(fit.truth.estimate())), fit.data.num_records)
    if not own.overstated or not len(one):
        return []
    chance, stated = own.overstated[0], fit.truth.pairs().of(one, other)
    unsure = _are_equal(fit, chance, one, other) & (stated < _SURE)
    number = chance.equal - chance.linked
    apart = f"Only {number:,} {'pair' if number == 1 else 'pairs'} of records" if number else "No two records"
    text = (
        f"{apart} that are apart share “{chance.field}”, though the model expects {chance.expected:,.0f} such pairs. "
        f"It therefore undervalues an equal “{chance.field}”."
    )
    if chance.limit >= chance.expected or not unsure.any():
        return [f"{text} The links that share it are more certain than stated."]
    more = raised(fit, own, one, other)[unsure]
    right = "right" if len(more) == 1 else "all right"
    how = f"probably {right}" if (1 - more).sum() < _RIGHT else "more certain than stated"
    have, they = ("has", "it is") if len(more) == 1 else ("have", "they are")
    least = probability(float(more.min()), 2)
    least = f"about {least} or more" if least[0] == "0" else least
    return [
        f"{text} Of the links that share it, {len(more):,} {have} a probability below {_SURE}. With so few equal by "
        f"chance, {they} {how} ({least})."
    ]


def raised(fit: Any, own: Weighed, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return how probable pairs are if as few are equal by chance as their number allows, in fields that overstate it.

    Parameters
    ----------
    fit : of records.
    own : what fields weigh.
    one, other : the two records of each.
    """
    odds = special.logit(np.clip(fit.truth.pairs().of(one, other), 1e-12, 1 - 1e-12))
    for chance in own.overstated:
        odds += _are_equal(fit, chance, one, other) * max(np.log(chance.expected / chance.limit), 0.0)
    return np.asarray(special.expit(odds))


def _are_equal(fit: Any, chance: Chance, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    value = np.asarray(fit.data.value)[chance.place]
    return np.asarray((value[one] == value[other]) & (value[one] >= 0))


def surer_records(fit: Any, own: Weighed) -> np.ndarray:
    """Return which records are in a link that would be sure if as few pairs were equal by chance; see `raised`."""
    one, other = np.divmod(pairs_together(np.asarray(fit.truth.estimate())), fit.data.num_records)
    risen = (fit.truth.pairs().of(one, other) < _SURE) & (raised(fit, own, one, other) >= _SURE)
    found = np.zeros(fit.data.num_records, bool)
    found[one[risen]] = found[other[risen]] = True
    return found


def only_unsure(own: Weighed) -> str:
    """Say in which fields no sure link differs, with a space in front; empty where there are none."""
    if not own.unsure:
        return ""
    named = [f"“{field}” ({counted(number, 'pairs')} in doubt)" for field, number in own.unsure.items()]
    return f" No link of {_SURE} or more differs in {joined(named)}: the counts there rest on the prior itself."


def _in_doubt_by_field(fit: Any, differing: Any) -> dict[str, int]:
    """Return of fields in which no sure link differs how many pairs in doubt make up the share of links that do."""
    pairs, data, found = fit.truth.pairs(), fit.data, {}
    value, names = np.asarray(data.value), [str(name) for name in data.fields]
    for field in map(str, differing["field"]):
        place = names.index(field)
        first, second = value[place, pairs.first], value[place, pairs.second]
        apart = (first != second) & (np.minimum(first, second) >= 0) & ~_near(data, place, first, second)
        chance = pairs.probability[apart]
        doubt = chance[chance > _SHOWN]
        if len(doubt) and doubt.max() < _SURE and doubt.sum() > _MOSTLY * chance.sum():
            found[field] = len(doubt)
    return found


def _near(data: Any, place: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return whether values of a field are nearly equal, where it is compared by similarity."""
    if data.near is None or not len(data.near):
        return np.zeros(len(first), bool)
    low, high = (data.first_value[place] + ends(first, second) for ends in (np.minimum, np.maximum))
    near = np.asarray(data.near, np.int64)
    return np.isin(low.astype(np.int64) * data.num_values + high, near[:, 0] * data.num_values + near[:, 1])


def in_detail(fit: Any, own: Weighed) -> list[str]:
    """Say why the model expects so much agreement by chance, and what follows for links."""
    told = [
        f"The model expects {one.expected:,.0f} pairs ({one.share:.4f}) to share “{one.field}” by chance, but "
        f"{_unlinked(one)}.{_risen(fit, own, one)} 1 over its {one.values:,} values is {1 / one.values:.4f}."
        for one in own.overstated
    ]
    if not told:
        return []
    return [
        f"{' '.join(told)} The model assumes that every entity has one of the values in the files. "
        "Two values drawn from this list are the same at least as often as 1 over their number, and more often where "
        "some are common, so an equal value adds less than the counted shares suggest. From parts that repeat, such as "
        "year, month and day, the model can learn how often they are equal by chance."
    ]


def _risen(fit: Any, own: Weighed, chance: Chance) -> str:
    """Say how probable the least certain link would be by the most pairs that are allowed; or nothing."""
    one, other = np.divmod(pairs_together(np.asarray(fit.truth.estimate())), fit.data.num_records)
    stated, equal = fit.truth.pairs().of(one, other), _are_equal(fit, chance, one, other)
    if chance.limit >= chance.expected or not equal.any():
        return ""
    least = int(np.argmin(np.where(equal, stated, np.inf)))
    return (
        f" With {chance.limit:.0f} such pairs, the most that this count allows at 95 %, the least certain of the links "
        f"that share it would rise from {probability(stated[least], 2)} to about "
        f"{probability(raised(fit, own, one, other)[least], 2)}."
    )


def _unlinked(one: Chance) -> str:
    """Say how many pairs are equal in a field and not linked."""
    number = one.equal - one.linked
    share = "shares" if number == 1 else "share"
    return f"only {counted(number, 'unlinked pairs')} {share} it" if number else "no unlinked pair shares it"
