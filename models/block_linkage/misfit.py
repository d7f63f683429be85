"""Whether a model holds: in how many fields linked records differ, as seen and as the model predicts it.

Pairs of one entity are drawn from the fitted model, and those that the threshold in force hides are left out. If the
model holds, linked pairs differ in as many fields as these. A field agrees where the values are equal, or less than 1
apart where it is compared by similarity. A field that either record lacks does neither: for each set of fields that
linked pairs both have, pairs are drawn that have the same, and the predictions are averaged.

Lists that were made with exactly one error in every duplicate fail hit-miss at once, and hold under error classes.

References
----------
Gelman, Meng and Stern (1996), Posterior predictive assessment of model fitness via realized discrepancies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Float, Int
from consilience.models.block_linkage.join import CandidatePairs, pair_log_odds
from consilience.models.block_linkage.likelihood import Likelihood
from consilience.models.block_linkage.parameters import Parameters

MOST_DISAGREEMENT = 0.1
"""Beyond it the model does not hold."""

LEAST_LINKS = 50.0
"""Expected links from which that is judged."""

_NUM_DRAWN, _LEAST_DRAWN = 4000, 100  # pairs, of all sets of fields and of each
_LEAST_SHARE = 1e-3  # of the links; sets of fields that fewer have are left out


class Misfit(NamedTuple):
    """How linked pairs differ.

    Parameters
    ----------
    seen : shape ``(field + 1,)``; expected numbers of linked pairs that differ in 0, 1, 2, … fields.
    expected : shape ``(field + 1,)``; the shares that the model predicts. Zero where nothing is linked.
    """

    seen: Float[np.ndarray, " fields_and_one"]
    expected: Float[np.ndarray, " fields_and_one"]

    @property
    def shares(self) -> Float[np.ndarray, " fields_and_one"]:
        """The shares of the linked pairs that differ in 0, 1, 2, … fields."""
        return self.seen / (self.seen.sum() or 1)

    @property
    def disagreement(self) -> float:
        """Total variation between the two: 0 where they are the same, 1 at most; NaN where nothing is linked."""
        return float(np.abs(self.shares - self.expected).sum() / 2) if self.seen.sum() > 0 else float("nan")

    @property
    def fails(self) -> bool:
        """Whether the model does not hold: the disagreement is above 0.1, of 50 expected links or more.

        Of so few it is about .08 by chance: where nobody can tell, the interval is not to be trusted either.
        """
        return bool(self.seen.sum() >= LEAST_LINKS and self.disagreement > MOST_DISAGREEMENT)

    @property
    def holds(self) -> bool:
        """Whether there are links enough to tell, and the model does not fail."""
        return bool(self.seen.sum() >= LEAST_LINKS) and not self.fails

    @property
    def words(self) -> str:
        """What to say where it fails."""
        disagreement = f"{self.disagreement:.2f}".removeprefix("0")
        return f"the model does not hold (disagreement {disagreement}); do not trust the interval"

    def __str__(self) -> str:
        """Return the share of linked pairs that differ in 0, 1, 2, … fields, and the one that was expected."""
        return ", ".join(
            f"{100 * seen:.0f} % against {100 * expected:.0f} % in {number}"
            for number, (seen, expected) in enumerate(zip(self.shares, self.expected, strict=True))
            if max(seen, expected) >= 0.005
        )


def misfit(
    linked: Int[np.ndarray, "two field pair"], probability: Float[np.ndarray, " pair"], parameters: Parameters,
    likelihood: Likelihood, first_value: Int[np.ndarray, " fields_and_one"], passes: Callable[[Any], Any],
    nearest: csr_array | None = None,
) -> Misfit:  # fmt: skip
    """Compare linked pairs with pairs of one entity that are drawn from the model; the same at every call.

    Parameters
    ----------
    linked : codes of the candidates into the values of all fields, -1 where missing.
    probability : that the two are of one entity.
    parameters, likelihood : what links look like.
    first_value : where the values of each field begin.
    passes : whether pairs ``(two, field, pair)`` are candidates, ``(pair,)``.
    nearest : shape ``(value, value)``; nonzero where two values are less than 1 apart and so agree.
    """
    generator, num_fields = np.random.default_rng(0), linked.shape[1]
    both = (linked >= 0).all(axis=0)
    bit = np.uint64(1) << np.arange(num_fields, dtype=np.uint64)
    sets, which = np.unique((both * bit[:, None]).sum(axis=0, dtype=np.uint64), return_inverse=True)
    seen = np.zeros((len(sets), num_fields + 1))
    np.add.at(seen, (which, _number(linked, nearest)), probability)
    weight = seen.sum(axis=1)
    expected = np.zeros_like(seen)
    for place in np.flatnonzero(weight > _LEAST_SHARE * weight.sum()):
        number = max(int(_NUM_DRAWN * weight[place] / weight.sum()), _LEAST_DRAWN)
        drawn, own = likelihood.draw_pairs(generator, number, parameters, first_value)
        drawn = np.where((sets[place] & bit)[:, None] > 0, drawn, -1)
        expected[place] = np.bincount(_number(drawn, nearest), own * passes(drawn), num_fields + 1)
    told = expected.sum(axis=1) > 0
    seen, weight, expected = seen[told], weight[told], expected[told]
    shares = weight @ (expected / expected.sum(axis=1, keepdims=True)) / (weight.sum() or 1)
    return Misfit(seen.sum(axis=0), shares)


def _number(
    pairs: Int[np.ndarray, "two field pair"], nearest: csr_array | None
) -> Int[np.ndarray, " pair"]:
    """Return in how many fields pairs differ, of those that both records have."""
    one, other = pairs
    differs = (pairs >= 0).all(axis=0) & (one != other)
    if nearest is not None and nearest.nnz:
        differs[differs] = nearest[one[differs], other[differs]] == 0
    return differs.sum(axis=0)


def log_odds_of(
    pairs: Int[np.ndarray, "two field pair"], parameters: Parameters, likelihood: Likelihood,
    first_value: Int[np.ndarray, " fields_and_one"],
) -> CandidatePairs:  # fmt: skip
    """Compare pairs of records that are given by their codes into the values of all fields; see `pair_log_odds`."""
    value = np.where(pairs >= 0, pairs - first_value[:-1, None], -1)
    first, second = np.arange(2 * pairs.shape[2], dtype=np.int32).reshape(2, -1)
    return pair_log_odds(np.concatenate([*value], axis=1), first, second, parameters, likelihood, first_value)


def nearest_values(records: Any) -> csr_array | None:
    """Return which values of fields that are compared by similarity are less than 1 apart; None without such fields.

    Of typing errors that are hardly ever anything else, distances are negative by as much as `ONLY_NEAR`: none is
    below 1.
    """
    if records.similar is None or not np.any(records.similar):
        return None
    near = np.asarray(records.near)[(np.asarray(records.distance) < 1) & (np.asarray(records.distance) >= 0)]
    ends = np.concatenate([near, near[:, ::-1]]).T
    return csr_array((np.ones(ends.shape[1], np.int8), ends), shape=(records.num_values, records.num_values))
