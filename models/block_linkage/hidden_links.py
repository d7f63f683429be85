"""What candidates hide: how many links are not among them, and what these look like.

Pairs below a threshold are those with many disagreements. The model says how many there are: take a record, go through
all the sets of fields in which another record of its entity may agree with it, each with its probability, and see
whether the pair would be found. Fields that either record lacks can neither agree nor differ.

All of this holds where fields err independently of each other, or by error classes, and only there. With error classes
a link is that of another record with the head.
"""

from __future__ import annotations

import copy
import functools
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.join import LEAST_DIFFER, join_rule, prior_log_odds
from consilience.models.block_linkage.keys import JoinRule
from consilience.models.block_linkage.likelihood import Likelihood
from consilience.models.block_linkage.misfit import log_odds_of
from consilience.models.block_linkage.parameters import Parameters

_NUM_RECORDS, _NUM_PAIRS = 4000, 20_000
# With more fields than this, random sets cost less than all sets and are nearly as good.
_MOST_FIELDS, _NUM_RANDOM_SETS = 8, 256


class CandidateRule(NamedTuple):
    """By what rule candidates were found: log odds above ``-threshold`` under these parameters and this likelihood.

    ``join`` is what the join itself finds of these; None where the candidates were given.
    """

    parameters: Parameters
    threshold: float
    likelihood: Likelihood
    join: JoinRule | None

    @classmethod
    def of(
        cls, records: Records, parameters: Parameters, threshold: float, likelihood: Likelihood, *, slack: float
    ) -> CandidateRule:
        """Return the rule of a join that looks further by the slack, or of pairs that were given."""
        if records.candidate is not None:
            return cls(parameters, threshold, likelihood, None)
        rule = join_rule(records, parameters, likelihood, threshold=threshold + slack)
        return cls(parameters, threshold, likelihood, rule)

    def found(self, records: Records, parameters: Parameters, likelihood: Likelihood) -> FoundShare | None:
        """Predict what it finds and what it hides; None where the candidates were given, and where nobody knows."""
        if self.join is None or not likelihood.additive:
            return None
        return found_share(
            parameters,
            records.first_value,
            records.value,
            likelihood,
            self.threshold,
            in_force=self.parameters,
            rule=self.join,
        )

    def passes(
        self, pairs: Int[np.ndarray, "two field pair"], first_value: Int[np.ndarray, " fields_and_one"]
    ) -> Bool[np.ndarray, " pair"]:
        """Return whether it finds pairs that are given by codes into the values of all fields."""
        log_odds = log_odds_of(pairs, self.parameters, self.likelihood, first_value).log_odds
        passes = log_odds > -self.threshold
        # What is compared by similarity has a search of its own.
        if self.join is not None and type(self.likelihood).find_pairs is Likelihood.find_pairs:
            observed: Any = (pairs >= 0).all(axis=0)
            agree = observed & (pairs[0] == pairs[1])
            start = self.join.start - self.join.differ[self.join.fields] @ ~observed[self.join.fields]
            passes &= start + sum(agree[field] * self.join.gain[pairs[0, field]] for field in self.join.fields) > 0
        return passes


def drawn_share(records: Records, parameters: Parameters, likelihood: Likelihood, *rules: CandidateRule) -> float:
    """Estimate the share of links that several rules find, from 20,000 drawn pairs: the same at every call.

    Drawn are entities of two records: of larger ones with error classes, pairs without the head need not be found.
    """
    parameters = parameters._replace(size_share=parameters.size_share[:2])
    generator = np.random.default_rng(0)
    pairs, weight = likelihood.draw_pairs(generator, _NUM_PAIRS, parameters, records.first_value)
    # Which fields a record lacks, any record can tell.
    lacks = np.asarray(records.value)[:, generator.integers(records.num_records, size=(2, _NUM_PAIRS))] < 0
    pairs = np.where(lacks.transpose(1, 0, 2), -1, pairs)
    passes = [rule.passes(pairs, records.first_value) for rule in rules]
    return float(weight @ np.all(passes, axis=0) / weight.sum())


class FoundShare(NamedTuple):
    """Which links are found and what those look like that are not; a link is a pair of records of one entity.

    Parameters
    ----------
    share : of the links, those found.
    agree, observed : shape ``(field,)``; of the links not found, the share that agrees in a field, and the share in
        which both records have it. Zero where all are found.
    both_observed : shape ``(field,)``; the share of all links in which both records have the field.
    """

    share: float
    agree: Float[np.ndarray, " field"]
    observed: Float[np.ndarray, " field"]
    both_observed: Float[np.ndarray, " field"]


def found_share(
    parameters: Parameters,
    first_value: Int[np.ndarray, " fields_and_one"],
    value: Int[np.ndarray, "field record"],
    likelihood: Likelihood,
    threshold: float,
    *,
    in_force: Parameters | None = None,
    rule: JoinRule | None = None,
) -> FoundShare:
    """Predict the share of links that are found, from 4,000 records or all if fewer: the same at every call.

    Parameters
    ----------
    parameters : what links look like; with shares of error classes, as these have it.
    threshold : pairs with log odds above minus this are candidates ...
    in_force : ... under these hyperparameters; by default under ``parameters``.
    rule : of the join; counts what it does not find where fields are many.
    """
    record, other, generator = _looked_at(value.shape[1], _NUM_RECORDS)
    observed = (value[:, record] >= 0) & (value[:, other] >= 0)
    code = np.where(observed, value[:, record] + first_value[:-1, None], 0)
    of_value = _agreeing(parameters, first_value, likelihood)
    agree, weight = _sets(np.where(observed, of_value[code], 0), copy.deepcopy(generator))
    if len(parameters.class_share):
        agree, weight = _with_few_errors(agree, weight, observed, parameters.class_share)

    passes = _log_odds(agree, observed, code, in_force or parameters, likelihood, first_value) > -threshold
    if rule is not None:
        start = rule.start - rule.differ[rule.fields] @ ~observed[rule.fields]
        passes &= start + sum(agree[field] * rule.gain[code[field]] for field in rule.fields) > 0
    lost = weight * ~passes
    return FoundShare(
        share=float(1 - lost.sum() / len(record)),
        agree=np.array([(agrees * lost).sum() for agrees in agree]) / (lost.sum() or 1),
        observed=observed @ lost.sum(0) / (lost.sum() or 1),
        both_observed=observed.mean(1),
    )


@functools.lru_cache(maxsize=1)
def _looked_at(
    num_records: int, most: int
) -> tuple[Int[np.ndarray, " record"], Int[np.ndarray, " record"], np.random.Generator]:
    """Return some records, another one for each, and the generator as it is then; EM asks for the same ones again."""
    generator = np.random.default_rng(0)
    record = generator.permutation(num_records)[:most]
    # Which fields a second record lacks, any record can tell.
    return record, generator.integers(num_records, size=len(record)), generator


def _agreeing(
    parameters: Parameters, first_value: Int[np.ndarray, " fields_and_one"], likelihood: Likelihood
) -> Float[np.ndarray, " value"]:
    """Return how probably a record has the value of another one of its entity; of error classes, with many errors."""
    if len(parameters.class_share):
        miss = np.repeat(parameters.distortion, np.diff(first_value))
        return 1 - miss + miss * parameters.value_share
    agree_term, _ = likelihood.pair_terms(parameters, first_value)
    return np.minimum(parameters.value_share * np.exp(agree_term), 1)


def _with_few_errors(
    agree: Bool[np.ndarray, "field set #record"], weight: Float[np.ndarray, " set #record"],
    observed: Bool[np.ndarray, "field record"], class_share: Float[np.ndarray, " class"],
) -> tuple[Bool[np.ndarray, "field any record"], Float[np.ndarray, "any record"]]:  # fmt: skip
    """Return the sets of records with many errors, and those of all fields and of all but one before them."""
    num_fields, num_records = observed.shape
    few = np.concatenate([np.ones((num_fields, 1), bool), ~np.eye(num_fields, dtype=bool)], axis=1)
    many = np.broadcast_to(agree, (num_fields, agree.shape[1], num_records))
    # The one error may be in a field that is missing, which shows nowhere.
    exact = class_share[0] + class_share[1] * (~observed).mean(axis=0)
    weights = [exact[None], class_share[1] / num_fields * observed, class_share[2] * weight]
    return np.concatenate([few[:, :, None] & observed[:, None], many], axis=1), np.concatenate(weights)


def _sets(
    probability: Float[np.ndarray, "field record"], generator: np.random.Generator
) -> tuple[Bool[np.ndarray, "field set #record"], Float[np.ndarray, "set record"]]:
    """Return sets of fields that agree and the probability of each: all of them, or random ones."""
    num_fields, num_records = probability.shape
    if num_fields > _MOST_FIELDS:
        weight = np.full((_NUM_RANDOM_SETS, num_records), 1 / _NUM_RANDOM_SETS)
        return generator.random((num_fields, *weight.shape), np.float32) < probability[:, None], weight
    agree = (np.arange(2**num_fields) >> np.arange(num_fields)[:, None] & 1).astype(bool)[:, :, None]
    weight = np.ones((1, num_records))
    for of_field in probability:
        weight = np.concatenate([weight * (1 - of_field), weight * of_field])
    return agree, weight


def _log_odds(
    agree: Bool[np.ndarray, "field set #record"],
    observed: Bool[np.ndarray, "field record"],
    code: Int[np.ndarray, "field record"],
    parameters: Parameters,
    likelihood: Likelihood,
    first_value: Int[np.ndarray, " fields_and_one"],
) -> Float[np.ndarray, "set record"]:
    """Return the log odds of pairs that agree in sets of fields."""
    agree_term, differ_term = likelihood.pair_terms(parameters, first_value)
    differs = np.where(observed, np.maximum(differ_term, LEAST_DIFFER)[:, None], 0)
    total = np.tile(prior_log_odds(parameters) + differs.sum(0), (agree.shape[1], 1))
    for agrees, gain in zip(agree, agree_term[code] - differs, strict=True):
        total += agrees * gain
    return total
