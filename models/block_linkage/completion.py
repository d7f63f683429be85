"""What the threshold hides: the share of true pairs that never became candidates, and what they look like.

Pairs below the threshold are those with many disagreements. Without them distortion is learned too low, and there seem
to be too many entities. Under the model one can predict them: take records, draw what a second record of the same
entity would look like, and see whether the pair passes. That holds only if fields err independently of each other.
Where errors come one to a record, a completion runs away, since a higher distortion predicts more hidden pairs. So the
prediction is compared first with the pairs that were found, by the number of fields in which they agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.arrays import Bool, Float
from consilience.data.records import Records
from consilience.models.block_linkage.join import prior_log_odds
from consilience.models.block_linkage.likelihoods import Likelihood, differing
from consilience.models.block_linkage.parameters import Parameters

__all__ = ["Hidden", "Matches", "Rule", "hidden", "imagine_matches"]

_NUM_RECORDS, _NUM_PARTNERS = 4_000, 32


class Matches(NamedTuple):
    """Imagined pairs of records of one entity, of which agreement is still to be drawn.

    Parameters
    ----------
    value : codes into the table of all values, shape ``(field, pair)``; of the first record, -1 where missing.
    observed : whether both records have the field; the same shape.
    uniform : numbers between 0 and 1; the same for all hyperparameters, so that results change smoothly with them.
    """

    value: np.ndarray
    observed: Bool[np.ndarray, "field pair"]
    uniform: Float[np.ndarray, "field pair"]


class Rule(NamedTuple):
    """The rule by which candidates were found: log odds above ``-threshold`` under some hyperparameters."""

    parameters: Parameters
    threshold: float


class Hidden(NamedTuple):
    """What the rule hides.

    Parameters
    ----------
    found_share : the share of true pairs that pass.
    agree, observed : shape ``(field,)``; of those that do not: how often they agree, and how often both have the field.
    both_observed : shape ``(field,)``; the latter of all pairs.
    agreeing : shape ``(field + 1,)``; of those that pass and lack no field: the distribution of the number of fields in
        which they agree.
    """

    found_share: float
    agree: Float[np.ndarray, " field"]
    observed: Float[np.ndarray, " field"]
    both_observed: Float[np.ndarray, " field"]
    agreeing: Float[np.ndarray, " fields_and_one"]


def imagine_matches(records: Records, generator: np.random.Generator) -> Matches:
    """Take records at random, and for each some others that say which fields its partner lacks."""
    number = min(records.num_records, _NUM_RECORDS)
    chosen = generator.choice(records.num_records, number, replace=False)
    first = np.repeat(chosen, _NUM_PARTNERS)
    partner = generator.integers(records.num_records, size=len(first))
    own = records.value[:, first]
    return Matches(
        np.where(own >= 0, own + records.first_value[:-1, None], -1),
        (own >= 0) & (records.value[:, partner] >= 0),
        generator.random(own.shape, np.float32),
    )


def hidden(
    matches: Matches, parameters: Parameters, rule: Rule, likelihood: Likelihood, first_value: np.ndarray
) -> Hidden:
    """Predict which matches the rule hides, if fields err independently of each other."""
    differ = differing(parameters.distortion)[:, None]
    share = np.append(parameters.value_share, 1)[matches.value]
    agree = matches.observed & (matches.uniform < 1 - differ * (1 - share))
    agree_term, differ_term = likelihood.pair_terms(rule.parameters, first_value)
    of_field = np.where(agree, np.append(agree_term, 0)[matches.value], differ_term[:, None])
    log_odds = prior_log_odds(rule.parameters) + np.where(matches.observed, of_field, 0).sum(axis=0)
    passes = log_odds > -rule.threshold
    num_lost = max(np.count_nonzero(~passes), 1)
    complete = passes & matches.observed.all(axis=0)
    agreeing = np.bincount(agree[:, complete].sum(axis=0), minlength=len(agree) + 1)
    return Hidden(
        float(passes.mean()),
        agree[:, ~passes].sum(axis=1) / num_lost,
        matches.observed[:, ~passes].sum(axis=1) / num_lost,
        matches.observed.mean(axis=1),
        agreeing / max(agreeing.sum(), 1),
    )
