"""Partitions scored against a known partition, or against draws of one that nobody observed.

Scores against draws are those of `consilience.evaluate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from consilience.data.accept import as_partition, is_numbers
from consilience.data.partitions import Partition
from consilience.data.problems import Problems
from consilience.errors import UnsupportedRequest, meant
from consilience.evaluation.partitions import contingency, form_of, names, score
from consilience.evaluation.scores import Count, by_method
from consilience.models.truth import truth_of
from consilience.models.truth.partitions import FEW_FOUND
from consilience.models.truth.truth import PARTITION

_UNSEEN = "no links or few of all were looked at"


# One partition against another ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PartitionScores:
    """How well a predicted partition agrees with the true one.

    Parameters
    ----------
    values : dict[str, float]
        Score by name, as in `consilience.evaluation.partitions.names`; NaN where one is undefined.
    num_records : int
        Records that have an entity on both sides.
    predicted_entities, true_entities : int
        Their numbers.
    predicted_pairs, true_pairs, common_pairs : int
        Pairs of records that are together.

    Examples
    --------
    >>> import consilience as cs
    >>> scores = cs.score_partition([0, 0, 1, 1], [0, 0, 1, 2])
    >>> scores.predicted_pairs, scores.true_pairs, scores.common_pairs
    (2, 1, 1)
    >>> scores.table.columns.tolist()
    ['score', 'value', 'meaning']
    """

    values: dict[str, float]
    num_records: int
    predicted_entities: int
    true_entities: int
    predicted_pairs: int
    true_pairs: int
    common_pairs: int

    def __getitem__(self, metric: str) -> float:
        """Return one score: ``scores["pairwise-f1"]``."""
        return self.values[form_of(metric).name]

    @property
    def table(self) -> Any:
        """Data frame with one row a score: ``score, value, meaning``."""
        import pandas

        rows = [{"score": name, "value": value, "meaning": names()[name]} for name, value in self.values.items()]
        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        lines = [
            f"{self.num_records:,} records, {self.predicted_entities:,} predicted and {self.true_entities:,} true "
            f"entities; {self.predicted_pairs:,} pairs predicted, {self.true_pairs:,} true, {self.common_pairs:,} both",
            f"{'':10}{'precision':>11}{'recall':>11}{'F1':>11}",
        ]
        for kind in ("pairwise", "cluster", "b3"):
            shares = [self.values[f"{kind}-{of}"] for of in ("precision", "recall", "f1")]
            lines.append(f"{kind:10}" + "".join("  undefined" if np.isnan(one) else f"{one:11.2%}" for one in shares))
        if not self.predicted_pairs:
            lines.append("no pair is predicted: pairwise precision is undefined, and F1 is set to 0")
        moves, pairs = self.values["merge-moves"], self.values["merge-pairs"]
        return "\n".join([
            *lines,
            f"ARI {self.values['ari']:.4f}, NMI {self.values['nmi']:.4f}",
            f"to the truth: {moves:,.0f} splits and merges, {pairs:,.0f} pairs parted or joined, "
            f"{self.values['variation-of-information']:.4f} nats",
        ])  # fmt: skip


def score_partition(predicted: Any, truth: Any, *, missing: str = "error", unknown: str = "error") -> PartitionScores:
    """Score a predicted partition of records against the true one.

    Parameters
    ----------
    predicted, truth : Partition, Records, Fit, table or integer array
        Each a `Partition`, a table that `read_partition` takes, `Records` whose entities are known, a fit
        of records (its estimate counts), or whole numbers ``(record,)`` that are equal where records are together,
        -1 where that is unknown. Records are matched by their ids, and by position where one side is numbers alone.
        Records without an entity on either side are left out.
    missing : str, default "error"
        "error", or "drop" where records of the truth have no entity in the prediction.
    unknown : str, default "error"
        "error", or "keep" to leave out predicted records that the truth does not have, with a warning.

    Returns
    -------
    PartitionScores
        See `consilience.evaluation.partitions` for definitions and sources.

    Raises
    ------
    UnsupportedRequest : records without known entities, and sides that have no record in common.

    Examples
    --------
    >>> import consilience as cs
    >>> scores = cs.score_partition([0, 0, 1, 1], [0, 0, 1, 2])
    >>> scores["pairwise-precision"], scores["pairwise-recall"]
    (0.5, 1.0)
    """
    one, other = _as_partition(predicted), _as_partition(truth)
    by_position = any(is_numbers(side) for side in (predicted, truth)) and one.num_records == other.num_records
    records = one.records if by_position else other.records
    entity = one.align(records, missing=missing, unknown=unknown)
    found = contingency(entity[None], np.asarray(other.entity)[None])
    if not found.num_common.item():
        raise UnsupportedRequest("no record has an entity both in the prediction and in truth; give some that do")
    sizes = (found.response_size, found.key_size, found.common)
    predicted_pairs, true_pairs, common_pairs = (int((size * (size - 1) // 2).sum()) for size in sizes)
    return PartitionScores(
        values={metric: score(found, metric).item() for metric in names()},
        num_records=found.num_common.item(), predicted_entities=len(found.response_size),
        true_entities=len(found.key_size), predicted_pairs=predicted_pairs, true_pairs=true_pairs,
        common_pairs=common_pairs,
    )  # fmt: skip


def _as_partition(side: Any) -> Partition:
    found = as_partition(side)
    if found is not None:
        return found
    truth = _truth_of(side)
    return Partition.from_codes(truth.estimate(), records=truth.ids.get("record"), name="estimate", checked=True)


def _truth_of(fit: Any) -> Any:
    return truth_of(fit).read_as(PARTITION.name)


# The number of entities -----------------------------------------------------------------------------------------------


def num_entities(fit: Any) -> Count:
    """Count the entities that a fit of records finds.

    Parameters
    ----------
    fit : Fit
        A fit of records, or its truth.

    Returns
    -------
    Count
        ``value``, ``sd``, ``interval`` and ``draws`` are of the number of entities, ``point`` that of the estimate, and
        ``table`` has the expected number of entities of each size. The interval holds what the fit holds uncertain, and
        ``how`` says so: the links and the hyperparameters, and the links that were not looked at, by draws of Gibbs
        sampling, of many records by Laplace's method; or the links alone (``links_alone``), too narrow, where nobody
        knows the rest. None knows how wrong the model is; ``doubt`` says so where the linked records do.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("block-linkage", cs.simulate_records(40, seed=1))
    >>> cs.num_entities(fit).point  # two of the records are of one entity
    39.0
    """
    truth = _truth_of(fit)
    number, sizes, links_alone, basis, doubt, _ = truth.counted()
    draws = number.astype(float)
    unlinked = len(sizes) == 1 and float(np.std(draws)) == 0
    unseen = links_alone and (unlinked or truth.found_share < FEW_FOUND)
    basis = "; ".join(part for part in (basis, _effective_size(fit)) if part)
    how = "by the doubt about links alone, too narrow" if links_alone else "as far as the model holds"
    return Count(
        title=by_method("number of entities", fit), draws=draws, expected=sizes, label="entities", unit="size",
        point=float(np.count_nonzero(np.bincount(truth.estimate()))), pointed="{} in the estimate",
        how=f"{how} ({basis})" if basis else how,
        links_alone=links_alone, doubt=truth.doubt or doubt, basis=basis,
        no_interval=truth.no_interval or (_UNSEEN if unseen else ""),
        apart="it joins what is more probable than not, and of many doubtful links none",
    )  # fmt: skip


def _effective_size(fit: Any) -> str:
    """Return the effective sample size of the number of entities, in words; nothing where it was not sampled."""
    if not getattr(fit, "has_draws", False):
        return ""
    table = fit.summary().set_index("quantity")
    return f"effective sample size {table['ess_bulk']['num_entities']:,.0f}" if "num_entities" in table.index else ""


# Whether a set of records is one entity -------------------------------------------------------------------------------


def entity_probability(fit: Any, sets: Any) -> Any:
    """Return how probably a set of records is exactly one entity: these records, and no other.

    Parameters
    ----------
    fit : Fit
        A fit of records, or its truth.
    sets : sequence of sequence
        Ids of records, as in ``["c1", "r1"]``; or several such sets, which may overlap. Ids are compared as texts.

    Returns
    -------
    float or float64 ``(set,)``
        The second for several sets. Of block-linkage by EM exactly, given the hyperparameters; else the share of the
        draws in which it is so.

    Raises
    ------
    InputError : there is no such record, a set is empty, or names a record twice.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("block-linkage", cs.simulate_records(40, seed=1))
    >>> cs.entity_probability(fit, [["r7", "r24"], ["r7", "r8"]]).round(2).tolist()
    [0.97, 0.0]
    """
    truth = _truth_of(fit)
    if isinstance(sets, str) or not isinstance(sets, Iterable):
        raise UnsupportedRequest(f"{sets!r} is no set of records; give ids in a list, as in ['c1', 'r1']")
    listed = list(sets)
    several = any(not isinstance(one, str) and isinstance(one, Iterable) for one in listed)
    named = _set_names(listed if several else [listed], truth.names())
    first = np.cumsum([0, *map(len, named)])
    code = {name: place for place, name in enumerate(truth.names())}
    member = np.array([code[name] for names in named for name in names], int)
    probability = truth.set_probability(first, member)
    return probability if several else float(probability[0])


def _set_names(sets: Sequence[Any], records: Any) -> list[list[str]]:
    """Return the ids of each set as texts, or raise an error with all that is wrong with them."""
    known, problems = set(records), Problems("the sets of records")
    named = [[str(name) for name in ([one] if isinstance(one, str) else one)] for one in sets]
    for number, members in enumerate(named, 1):
        row = f"set {number}"
        if not members:
            problems.add("the set is empty", "name one record at least", row=row)
        for name in sorted({name for name in members if members.count(name) > 1}):
            problems.add("the set has this record twice", "name each record once", row=row, value=name)
        for name in dict.fromkeys(name for name in members if name not in known):
            remedy = meant(name, known) or "give ids of records that were linked"
            problems.add("there is no such record", remedy, row=row, value=name)
    problems.raise_any()
    return named


# What the posterior expects of an estimate ----------------------------------------------------------------------------


class ExpectedScores(NamedTuple):
    """What the probabilities of pairs say of a partition, without any known entity.

    Parameters
    ----------
    precision : expected share of the predicted pairs that are true; NaN where no pair is predicted.
    recall : expected number of predicted pairs that are true, over the expected number of true pairs; NaN without any.
    f1 : twice the former number over the sum of predicted and expected true pairs; 0 without any.
    predicted_pairs, true_pairs, common_pairs : the number predicted, and the two that are expected.
    doubt : why the scores are not to be trusted, in words: the model does not hold, for example; empty where nothing
        says so.
    """

    precision: float
    recall: float
    f1: float
    predicted_pairs: int
    true_pairs: float
    common_pairs: float
    doubt: str = ""

    def __repr__(self) -> str:
        numbers = {"precision": self.precision, "recall": self.recall, "F1": self.f1}.items()
        shares = ", ".join(f"{name} {'undefined' if np.isnan(value) else f'{value:.4f}'}" for name, value in numbers)
        return (
            f"expected {shares} ({self.predicted_pairs:,} pairs predicted, {self.true_pairs:,.1f} expected to be true, "
            f"{self.common_pairs:,.1f} both); {self.doubt or 'as far as the model holds'}"
        )


def expected_scores(
    fit: Any, partition: Partition | None = None, *, missing: str = "error", unknown: str = "error"
) -> ExpectedScores:
    """Say how precise and complete a partition is by the posterior's own account.

    Parameters
    ----------
    fit : Fit
        A fit of records, or its truth.
    partition : Partition, optional
        Of the same records; the fit's own estimate by default.
    missing, unknown : str
        See `score_partition`.

    Returns
    -------
    ExpectedScores
        Precision exactly as the draws of the posterior would have it on average; recall and F1 as ratios of expected
        numbers. They are as wrong as the model is; ``doubt`` says so where the linked records show that it does not
        hold.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("block-linkage", cs.simulate_records(40, seed=1))
    >>> scores = cs.expected_scores(fit)
    >>> scores.predicted_pairs
    1
    >>> print(f"{scores.precision:.2f}")
    0.97
    """
    truth = _truth_of(fit)
    entity = (
        truth.estimate() if partition is None else partition.align(truth.names(), missing=missing, unknown=unknown)
    )
    first, second, probability = truth.pairs()
    known = (entity[first] >= 0) & (entity[second] >= 0)
    true_pairs = float(probability[known].sum())
    common_pairs = float(probability[known & (entity[first] == entity[second])].sum())
    size = np.unique(entity[entity >= 0], return_counts=True)[1]
    predicted_pairs = int((size * (size - 1) // 2).sum())
    return ExpectedScores(
        common_pairs / predicted_pairs if predicted_pairs else float("nan"),
        common_pairs / true_pairs if true_pairs else float("nan"),
        2 * common_pairs / (predicted_pairs + true_pairs) if common_pairs else 0.0,
        predicted_pairs, true_pairs, common_pairs,
        truth.doubt.replace("do not trust the interval", "do not trust these scores"),
    )  # fmt: skip
