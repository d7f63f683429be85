"""Whether the model holds: in how many fields linked records differ, as drawn and as the model expects it.

For some draws, the values of all records that are together are drawn anew from the model, given who is together, θ and
b, with the same values missing. If the model holds, pairs that are together differ in as many fields in the records as
in what was drawn anew. Lists that were made with exactly one error in every duplicate fail hit-miss at once, and hold
under error classes.

References
----------
Gelman, Meng and Stern (1996), Posterior predictive assessment of model fitness via realized discrepancies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.gibbs.error_class_records import draw_class_records
from consilience.models.block_linkage.parameters import value_codes
from consilience.models.truth.partitions import pairs_together
from consilience.notes import Level, Note, Remedy

_MOST_DRAWS, _LEAST_DRAWS = 200, 40
_MOST_RECORDS = 20_000_000  # of all draws
_OF_ERRORS = ("value_share", "distortion", "class_share")
_DOES_NOT_HOLD = 0.01  # of the probability of what is as far from the model's expectations


class PredictiveCheck(NamedTuple):
    """How linked records differ.

    Parameters
    ----------
    drawn, expected : shape ``(field + 1,)``; shares of the pairs together that differ in 0, 1, 2, … fields, in the
        records and in records drawn from the model; means over draws.
    p_value : how often records drawn from the model are further from what is expected than those given; NaN where no
        pairs are together.
    """

    drawn: Float[np.ndarray, " fields_and_one"]
    expected: Float[np.ndarray, " fields_and_one"]
    p_value: float

    @property
    def disagreement(self) -> float:
        """Total variation between the two: 0 where they are the same, 1 at most."""
        return float(np.abs(self.drawn - self.expected).sum() / 2)

    @property
    def fails(self) -> bool:
        """Whether the model does not hold."""
        return self.p_value < _DOES_NOT_HOLD

    @property
    def words(self) -> str:
        """What to say where it fails."""
        return f"the model does not hold (disagreement {self.disagreement:.2f}); do not trust the interval"

    def __str__(self) -> str:
        """Return the share of linked pairs that differ in 0, 1, 2, … fields, and the one that was expected."""
        return ", ".join(
            f"{drawn:.0%} against {expected:.0%} in {number}"
            for number, (drawn, expected) in enumerate(zip(self.drawn, self.expected, strict=True))
            if max(drawn, expected) >= 0.005
        )


def predictive_check(draws: Mapping[str, np.ndarray], data: Records) -> PredictiveCheck:
    """Compare linked records with what the model expects.

    Parameters
    ----------
    draws : of the sites, ``(draw, …)``; of error classes where ``class_share`` is among them.
    """
    generator = np.random.default_rng(0)
    codes = value_codes(data.value, data.first_value)
    counts = []
    number = np.clip(_MOST_RECORDS // data.num_records, _LEAST_DRAWS, _MOST_DRAWS)
    for draw in np.unique(np.linspace(0, len(draws["distortion"]) - 1, number).astype(int)):
        cluster = np.asarray(draws["cluster"][draw])
        first, second = np.divmod(pairs_together(cluster), len(cluster))
        errors = [np.asarray(draws[site][draw], float) for site in _OF_ERRORS if site in draws]
        again = drawn_again(generator, np.union1d(first, second), cluster, codes, data.first_value, *errors)
        counts.append([_differing(values, first, second) for values in (codes, again)])
    found = np.array(counts)
    found = found[found[:, 0].sum(axis=1) > 0]
    if not len(found):
        nothing = np.zeros(data.num_fields + 1)
        return PredictiveCheck(nothing, nothing, np.nan)
    shares = found / found.sum(axis=2, keepdims=True)
    drawn, expected = shares.mean(axis=0)
    # Classes that hardly any pair is in do not outweigh the others.
    distance = ((shares - expected) ** 2 / (expected + 1 / found[:, :1].sum(axis=2, keepdims=True))).sum(axis=2)
    return PredictiveCheck(drawn, expected, float(np.mean(distance[:, 1] >= distance[:, 0])))


def predictive_warning(check: PredictiveCheck, *, remedy: str, remedies: tuple[Remedy, ...]) -> list[Note]:
    """Return an error where the model does not hold.

    Parameters
    ----------
    remedy, remedies : what to try.
    """
    if not check.fails:
        return []
    text = (
        "the model does not hold for these records: linked records differ in other numbers of fields than it "
        f"expects ({check}): do not trust the interval of the number of entities; {remedy}"
    )
    return [Note(Level.error, text, remedies)]


def predictive_finding(check: PredictiveCheck, *, prior: str = "") -> Note:
    """Return under which conditions the interval of the number of entities holds, in words.

    Parameters
    ----------
    prior : what to say of the prior of the partition, where it is none that is learned.
    """
    holds = f"the interval of the number of entities holds if the model does{prior}"
    if not (check.fails or np.isnan(check.p_value)):
        holds += f"; linked records differ in as many fields as it expects ({check})"
    return Note(Level.note, holds)


def _differing(
    codes: Int[np.ndarray, "field record"], first: Int[np.ndarray, " pair"], second: Int[np.ndarray, " pair"]
) -> Int[np.ndarray, " fields_and_one"]:
    """Count the pairs that differ in 0, 1, 2, … fields that both have."""
    one, other = codes[:, first], codes[:, second]
    return np.bincount(((one != other) & (one >= 0) & (other >= 0)).sum(axis=0), minlength=len(codes) + 1)


def drawn_again(
    generator: np.random.Generator, record: Int[np.ndarray, " linked"], cluster: Int[np.ndarray, " record"],
    codes: Int[np.ndarray, "field record"], first_value: Int[np.ndarray, " fields_and_one"],
    share: Float[np.ndarray, " value"], distortion: Float[np.ndarray, " field"],
    class_share: Float[np.ndarray, " class"] | None = None,
) -> Int[np.ndarray, "field record"]:  # fmt: skip
    """Return codes with the values of some records drawn anew, the same ones missing.

    Parameters
    ----------
    record : which, sorted.
    cluster : of every record; true values are drawn for each.
    codes : into the values of all fields, of which only whether they are -1 is looked at.
    share, distortion, class_share : θ and b, and π of error classes.
    """
    again = codes.copy()
    _, entity = np.unique(cluster[record], return_inverse=True)
    if class_share is not None:
        again[:, record] = draw_class_records(
            generator, entity, codes[:, record], first_value, share, distortion, class_share
        )
        return again
    for field, (begin, end) in enumerate(zip(first_value, first_value[1:], strict=False)):
        if end > begin:
            last = np.cumsum(share[begin:end])
            uniform = generator.random((2, len(record))) * last[-1]
            true, other = begin + np.minimum(np.searchsorted(last, uniform, side="right"), end - begin - 1)
            value = np.where(generator.random(len(record)) < distortion[field], other, true[entity])
            again[field, record] = np.where(codes[field, record] < 0, -1, value)
    return again
