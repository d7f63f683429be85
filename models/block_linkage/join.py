"""Candidate pairs: the pairs of records that may describe one entity, found without a look at all pairs.

A pair of records agrees or differs in every field, which adds to its log odds; a field that one of them lacks adds
nothing. The threshold join finds exactly the pairs whose log odds exceed a threshold. Write the log odds as a start
(all fields differ) plus a gain for each field that agrees. The score of a record on a set of fields is the start plus
its gains there; records that agree on the set have the same score on it. A record enters a set where its score passes
the threshold and would no longer pass without the field of least gain. Then any two records that entered a set with
equal values are a pair above the threshold; and every such pair shares a set that both entered, because the fields in
which it agrees contain a smallest set that passes. So there are no keys to choose, and no pair is made in vain.

Missing values make this inexact: the start counts a missing field as one that differs. `join_rule` says what is added
to make up for it. Or there is a join for each set of fields that one record or the other of a pair lacks: among the
records that lack no field but these, by the other fields. Each pair is found by the join of its own set; that is exact,
and takes longer. Who enters which set is in `keys`, with the search itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array

from consilience.arrays import Bool, Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.by_source import log_factors
from consilience.models.block_linkage.keys import FoundPairs, JoinRule, Keys, find_pairs
from consilience.models.block_linkage.likelihood import Likelihood
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.progress import steps

_BLOCK = 65_536             # pairs looked at together, so that they stay in the processor's cache
_MOST_FIELDS = 7            # sets of more fields would be more work than the pairs that they save
_OTHER_FIELDS = 4.0         # log odds that the fields outside the sets are given in advance
LEAST_DIFFER = -50.0        # a field without distortion has minus infinity, with which there is no reckoning
_OFTEN_TWO_MISSING = 0.05   # of pairs of records: then slack for one missing field does not do


class CandidatePairs(NamedTuple):
    """Pairs of records that may describe one entity.

    Parameters
    ----------
    first, second : int32, shape ``(pair,)``; codes of records, the first one lower; sorted by both.
    log_odds : float64, shape ``(pair,)``; that they describe one entity, were there no other records.
    unseen : how many pairs at most were not looked at, because what they agree in is too common.
    """

    first: Int[np.ndarray, " pair"]
    second: Int[np.ndarray, " pair"]
    log_odds: Float[np.ndarray, " pair"]
    unseen: int = 0

    def where(self, keep: Bool[np.ndarray, " pair"]) -> CandidatePairs:
        """Return some of the pairs."""
        return CandidatePairs(self.first[keep], self.second[keep], self.log_odds[keep], self.unseen)

    def allowed(self, source: Int[np.ndarray, " record"], restriction: str) -> CandidatePairs:
        """Return the pairs whose records may be together, by a name in `RESTRICTIONS`."""
        if restriction == "none":
            return self
        same = source[self.first] == source[self.second]
        return self.where(same if restriction == "within" else ~same)


def neighbours(
    first: Int[np.ndarray, " pair"], second: Int[np.ndarray, " pair"], num_records: int
) -> tuple[Int[np.ndarray, " records_and_one"], Int[np.ndarray, " edge"]]:
    """Return where the neighbours of each record begin, and these; every pair is there twice."""
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(num_records, num_records)).tocsr()
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int64)


def prior_log_odds(parameters: Parameters) -> float:
    """Return the log odds that two records describe one entity before their values are seen: ln 2 μ₂ / (m μ₁²).

    Where records of one source are apart it is that of two records of different sources, ln μ₂ / (m μ₁² e₂(φ)).
    """
    alone, pair = parameters.size_share[:2]
    log_odds = float(np.log(2 * pair / (parameters.intensity * alone**2)))
    return log_odds + float(log_factors(parameters.source_share, 2)[1])


def pair_log_odds(
    value: Int[np.ndarray, "field record"],
    first: Int[np.ndarray, " pair"],
    second: Int[np.ndarray, " pair"],
    parameters: Parameters,
    likelihood: Likelihood,
    first_value: Int[np.ndarray, " fields_and_one"],
) -> CandidatePairs:
    """Compare pairs of records; all are returned, in the order given."""
    likelihood = likelihood.at(parameters)
    agree_term, differ_term = likelihood.pair_terms(parameters, first_value)
    log_odds = np.full(len(first), prior_log_odds(parameters))
    if not likelihood.additive:
        agree_term, differ_term = np.zeros_like(agree_term), np.zeros_like(differ_term)
        _add_log_pairs(log_odds, value, first, second, parameters, likelihood, first_value)
    for field, column in enumerate(value):
        of_value = agree_term[first_value[field] : first_value[field + 1]]
        if not len(of_value):
            continue
        for begin in range(0, len(first), _BLOCK):
            part = slice(begin, begin + _BLOCK)
            one, other = column[first[part]], column[second[part]]
            both = (one >= 0) & (other >= 0)
            same = both & (one == other)
            log_odds[part] += np.where(same, of_value[one], np.where(both, differ_term[field], 0))
    return CandidatePairs(first, second, log_odds)


def _add_log_pairs(
    log_odds: Float[np.ndarray, " pair"],
    value: Int[np.ndarray, "field record"],
    first: Int[np.ndarray, " pair"],
    second: Int[np.ndarray, " pair"],
    parameters: Parameters,
    likelihood: Likelihood,
    first_value: Int[np.ndarray, " fields_and_one"],
) -> None:
    """Add the log likelihood of pairs, where it is no sum of terms."""
    for begin in range(0, len(first), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        codes = value_codes(value[:, np.stack([first[part], second[part]])], first_value).transpose(1, 0, 2)
        log_odds[part] += likelihood.log_pairs(codes, parameters)


def join(
    records: Records,
    parameters: Parameters,
    likelihood: Likelihood,
    *,
    threshold: float,
    exact: bool | None = None,
    search: Callable[[JoinRule], CandidatePairs] | None = None,
) -> CandidatePairs:
    """Return the pairs with log odds above ``-threshold``: all, or with missing values or many fields nearly all.

    Parameters
    ----------
    exact : see `join_rule`.
    search : of an engine, where the likelihood has no search of its own.

    Raises
    ------
    UnsupportedRequest : for more pairs than memory holds.
    """
    rule = join_rule(records, parameters, likelihood, threshold=threshold, exact=exact)
    own = likelihood.find_pairs(records, rule, parameters)
    if own is None and search is not None:
        return search(rule)
    found = find_pairs(records.value, Keys.of(rule, records.first_value)) if own is None else FoundPairs([own], 0)
    kept = []
    with steps(len(found.ranges), "joining records", "range") as bar:
        for number, ends in enumerate(found.ranges, 1):
            part = pair_log_odds(records.value, *ends, parameters, likelihood, records.first_value)
            kept.append(part.where(part.log_odds > -threshold))
            bar.to(number)
    columns = zip(*(part[:-1] for part in kept), strict=True)
    first, second, log_odds = (np.concatenate(parts) for parts in columns)
    return CandidatePairs(first, second, log_odds, found.unseen)


def join_rule(
    records: Records,
    parameters: Parameters,
    likelihood: Likelihood,
    *,
    threshold: float,
    exact: bool | None = None,
) -> JoinRule:
    """Choose the fields that the join looks at, and make up for what it does not see.

    Those are the seven in which a pair that agrees gains most, on the average over records. A field that has one value
    only is never looked at: it counts the same for all pairs. Slack is added to the log odds in advance: 4 where fields
    are left out; and, unless the join is exact, as much as the costliest field with missing values takes away when it
    differs, so that pairs with one field missing are found. What pairs have above the terms of the likelihood comes on
    top.

    Parameters
    ----------
    threshold : pairs with log odds above minus this are wanted.
    exact : whether there is a join for every set of fields that pairs lack. By default where more than one pair in
        twenty lacks two fields or more.
    """
    agree, differ = likelihood.pair_terms(parameters, records.first_value)
    differ = np.maximum(differ, LEAST_DIFFER)
    gain = agree - np.repeat(differ, np.diff(records.first_value))
    constant = np.diff(records.first_value) <= 1
    chosen = _informative(records, gain, ~constant)[:_MOST_FIELDS]
    left_out = np.setdiff1d(np.arange(records.num_fields), chosen)
    lacks = records.value[chosen] < 0
    if exact is None:
        exact = _often_two_missing(lacks)
    slack = _OTHER_FIELDS * (~constant[left_out]).any() + likelihood.slack(parameters, records.first_value)
    slack -= 0 if exact else differ[chosen][lacks.any(axis=1)].min(initial=0)
    of_constants = _of_constants(agree, records.first_value, constant)
    start = prior_log_odds(parameters) + differ[chosen].sum() + of_constants + threshold + slack
    return JoinRule(chosen, float(start), gain, differ if exact else np.zeros_like(differ))


def _often_two_missing(lacks: Bool[np.ndarray, "join_field record"]) -> bool:
    """Return whether many pairs lack several fields: of records far from each other, as those of two files are."""
    if not lacks.any():
        return False
    either = lacks | np.roll(lacks, lacks.shape[1] // 2, axis=1)
    return bool(np.count_nonzero(either.sum(axis=0) > 1) > _OFTEN_TWO_MISSING * lacks.shape[1])


def _informative(
    records: Records, gain: Float[np.ndarray, " value"], usable: Bool[np.ndarray, " field"]
) -> Int[np.ndarray, " join_field"]:
    """Return the usable fields, that of the highest mean gain first."""
    means = [
        np.bincount(column + 1, minlength=last - begin + 1)[1:] @ gain[begin:last]
        for column, begin, last in zip(records.value, records.first_value, records.first_value[1:], strict=False)
    ]
    order = np.argsort(-np.array(means), kind="stable")
    return order[usable[order]]


def _of_constants(
    agree: Float[np.ndarray, " value"],
    first_value: Int[np.ndarray, " fields_and_one"],
    constant: Bool[np.ndarray, " field"],
) -> float:
    """Return the most that fields of one value add to the log odds of a pair."""
    values = first_value[:-1][constant & (np.diff(first_value) == 1)]
    return float(np.maximum(agree[values], 0).sum())
