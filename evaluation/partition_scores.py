"""Partitions scored against a known partition, or against draws of one that nobody observed.

Against draws, every draw is a truth of its own, and a score is the mean over them: its interval says what the records
leave open, as far as the model holds. No pair of records is scored apart from the clusters that it implies.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.partitions import Partition
from consilience.data.records import Records
from consilience.data.tables import Problems
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.partitions import METRIC_FORMS, Contingency, contingency, record_f1, score
from consilience.evaluation.scores import Score
from consilience.models.partition import PartitionTruth

__all__ = [
    "EntityCount",
    "ExpectedScores",
    "PartitionScore",
    "PartitionScores",
    "aligned_partitions",
    "check_one_partition",
    "check_scores",
    "entity_probability",
    "evaluate_partition",
    "expected_scores",
    "num_entities",
    "score_partition",
]


_FEW_FOUND = 0.5  # of all links; an interval that holds the doubt about fewer says nothing


# One partition against another ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PartitionScores:
    """How well a predicted partition agrees with the true one.

    Parameters
    ----------
    values : score by name, as in `consilience.evaluation.partitions.METRIC_FORMS`; NaN where one is undefined.
    num_records : records that have an entity on both sides.
    predicted_entities, true_entities : their numbers.
    predicted_pairs, true_pairs, common_pairs : pairs of records that are together.
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
        check_scores([metric])
        return self.values[metric]

    @property
    def table(self) -> Any:
        """Data frame with one row a score: ``score, value, meaning``."""
        import pandas

        rows = [{"score": name, "value": value, "meaning": METRIC_FORMS[name]} for name, value in self.values.items()]
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
    predicted, truth : each a `Partition` (`read_partition`), `Records` whose entities are known, a fit of records (its
        estimate counts), or whole numbers ``(record,)`` that are equal where records are together, -1 where that is
        unknown. Records are matched by their ids, and by position where one side is numbers alone. Records without an
        entity on either side are left out.
    missing : "error", or "drop" where records of the truth have no entity in the prediction.
    unknown : "error", or "keep" to leave out predicted records that the truth does not have, with a warning.

    Returns
    -------
    PartitionScores : see `consilience.evaluation.partitions` for definitions and sources.

    Raises
    ------
    UnsupportedRequest : records without known entities, and sides that have no record in common.
    """
    one, other = _as_partition(predicted), _as_partition(truth)
    by_position = any(_is_numbers(side) for side in (predicted, truth)) and one.num_records == other.num_records
    records = one.records if by_position else other.records
    entity = one.align(records, missing=missing, unknown=unknown)
    found = contingency(entity[None], np.asarray(other.entity)[None])
    if not found.num_records.item():
        raise UnsupportedRequest("no record has an entity both in the prediction and in truth; give some that do")
    sizes = (found.predicted_size, found.true_size, found.common)
    predicted_pairs, true_pairs, common_pairs = (int((size * (size - 1) // 2).sum()) for size in sizes)
    return PartitionScores(
        values={metric: score(found, metric).item() for metric in METRIC_FORMS},
        num_records=found.num_records.item(), predicted_entities=len(found.predicted_size),
        true_entities=len(found.true_size), predicted_pairs=predicted_pairs, true_pairs=true_pairs,
        common_pairs=common_pairs,
    )  # fmt: skip


def _as_partition(side: Any) -> Partition:
    if isinstance(side, Partition):
        return side
    if isinstance(side, Records):
        if side.entity is None:
            raise UnsupportedRequest("the entities of these records are unknown; read them with entity=, the column")
        return Partition(
            entity=side.entity, num_records=side.num_records, num_entities=int(np.max(side.entity)) + 1,
            records=side.records, entities=side.entities, name="records",
        )  # fmt: skip
    if _is_numbers(side):
        return Partition.from_codes(side)
    truth = _truth_of(side)
    return Partition.from_codes(truth.estimate(), records=truth.records, name="estimate", checked=True)


def _is_numbers(side: Any) -> bool:
    return isinstance(side, Sequence) or hasattr(side, "__array__")


def _truth_of(fit: Any) -> PartitionTruth:
    truth = fit if isinstance(fit, PartitionTruth) else getattr(fit, "truth", fit)
    check_one_partition(truth)
    if not isinstance(truth, PartitionTruth):
        raise UnsupportedRequest("this asks for the partition of records, which only a fit of records has")
    return truth


def check_one_partition(truth: Any) -> None:
    """Refuse the truth of experts who see the items in several ways: a score needs to know which is meant."""
    if hasattr(truth, "partition_of_expert"):
        raise UnsupportedRequest(
            "the truth of this fit is several partitions of the items, one for each view; take one of them, "
            "fit.partition(view) or fit.partition_of_expert(expert), in the place of the fit, to score it; how sure it "
            "is that items are together says fit.together(item_a, item_b, view=…)"
        )


def check_scores(metrics: Sequence[str]) -> None:
    """Raise `UnknownName`, with those there are, for a score of partitions that does not exist."""
    for metric in metrics:
        if metric not in METRIC_FORMS:
            forms = "\n".join(f"  {name:26}{form}" for name, form in METRIC_FORMS.items())
            raise UnknownName(f"no score of partitions is called {metric!r}; there are:\n{forms}")


# A partition against draws --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PartitionScore(Score):
    """A score of a partition under an uncertain one; its table has a row for each record, with its own B³ F1.

    A score is of all records together, and need not be a mean over records: those of the table are always B³ F1, how
    well the predicted cluster of a record agrees with the drawn ones. The draws are those in which the score is
    defined.
    """

    label: str = "b3_f1"
    unit: str = "record"

    @property
    def value(self) -> float:
        """Mean over draws; NaN where the score is undefined in all of them."""
        return float(self.draws.mean()) if len(self.draws) else float("nan")


def evaluate_partition(
    fit: Any, partition: Partition, metrics: Sequence[str] = ("pairwise-f1",), *,
    missing: str = "error", unknown: str = "error",
) -> dict[str, PartitionScore]:  # fmt: skip
    """Score a partition against the draws of a fit; see `consilience.evaluate`."""
    check_scores(metrics)
    truth = _truth_of(fit)
    entity = partition.align(_ids_of(truth), missing=missing, unknown=unknown)[None]
    items, draws = np.zeros(truth.num_records), {metric: np.zeros(truth.num_draws) for metric in metrics}
    for block in truth.blocks():
        found = contingency(entity, truth.clusters(block))
        items += record_f1(found).sum(axis=0)
        for metric in metrics:
            draws[metric][block] = score(found, metric)
    point = contingency(entity, truth.estimate()[None])
    return {
        metric: PartitionScore(
            title=_title(metric, partition, found, draws[metric]), items=items / truth.num_draws,
            draws=draws[metric][np.isfinite(draws[metric])], point=score(point, metric).item(), ids=truth.records,
        )
        for metric in metrics
    }  # fmt: skip


def aligned_partitions(
    fit: Any, partitions: Sequence[Partition], *, missing: str = "error", unknown: str = "error"
) -> tuple[PartitionTruth, Int[np.ndarray, "partition record"]]:
    """Return the truth of a fit and the entities of its records in several partitions; -1 for records not in all."""
    truth = _truth_of(fit)
    entity = np.stack([one.align(_ids_of(truth), missing=missing, unknown=unknown) for one in partitions])
    compared = (entity >= 0).all(axis=0)
    if not compared.any():
        raise UnsupportedRequest("no record has an entity in every partition; check that their ids agree")
    return truth, np.where(compared, entity, -1)


def _ids_of(truth: PartitionTruth) -> Any:
    return np.arange(truth.num_records).astype(str) if truth.records is None else truth.records


def _title(metric: str, partition: Partition, found: Contingency, draws: Float[np.ndarray, " draw"]) -> str:
    """Return what was measured, in words; of a score that may be undefined, where it is."""
    title = f"{metric} of {partition.name} ({METRIC_FORMS[metric]})"
    defined = int(np.isfinite(draws).sum())
    if metric in ("pairwise-f1", "pairwise-precision") and found.predicted_size.max() == 1:
        return f"{title}; no pair is predicted"
    return title if defined == len(draws) else f"{title}; in the {defined:,} of {len(draws):,} draws that have pairs"


# The number of entities -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EntityCount(Score):
    """The number of entities; its table has a row for each size: how many entities with so many records to expect.

    Parameters
    ----------
    links_alone : whether the draws, and so the interval, hold the doubt about links alone: too narrow, as a rule.
    found_share : of all links, the share that the model expects among the pairs that were looked at, or NaN.
    corrected : the mean with the links that were not looked at; NaN where nobody knows.
    basis : what the interval rests on, in words; empty where that is said elsewhere.
    """

    label: str = "entities"
    unit: str = "size"
    links_alone: bool = False
    found_share: float = float("nan")
    corrected: float = float("nan")
    basis: str = ""

    @property
    def value(self) -> float:
        """Mean over draws."""
        return float(self.draws.mean())

    @property
    def most_links_unseen(self) -> bool:
        """Whether no interval may be told: nothing can be linked, or most links are not among those looked at."""
        unlinked = self.sd == 0 and len(self.items) == 1
        return self.links_alone and (unlinked or self.found_share < _FEW_FOUND)

    def __repr__(self) -> str:
        low, high = self.interval
        if self.most_links_unseen:
            spread = "without an interval, because no links or few of all were looked at"
        else:
            how = "by the doubt about links alone, too narrow" if self.links_alone else "as far as the model holds"
            how += f" ({self.basis})" if self.basis else ""
            spread = f"± {self.sd:,.1f}, 95 % in [{low:,.0f}, {high:,.0f}] {how}"
        corrected = "" if np.isnan(self.corrected) else f"; {self.corrected:,.1f} with the links not looked at"
        return f"{self.title}: {self.value:,.1f} {spread}{corrected}; {self.point:,.0f} in the estimate"


def num_entities(fit: Any) -> EntityCount:
    """Count the entities that a fit of records finds.

    Parameters
    ----------
    fit : a fit of records, or its truth.

    Returns
    -------
    EntityCount : ``value``, ``sd``, ``interval`` and ``draws`` are of the number of entities, ``point`` that of the
        estimate, and ``table`` has the expected number of entities of each size. The interval holds what the fit holds
        uncertain: one with fixed hyperparameters (``links_alone``) gives a narrower interval than one that draws them,
        and neither knows how wrong the model is. ``corrected`` is the mean with the links that were not looked at.
    """
    truth = _truth_of(fit)
    sizes = truth.size_counts()
    how = f", {fit.method}" if hasattr(fit, "method") else ""
    return EntityCount(
        title=f"number of entities{how}", items=sizes, draws=truth.num_clusters().astype(float),
        point=float(np.count_nonzero(np.bincount(truth.estimate()))), ids=np.arange(1, len(sizes) + 1),
        links_alone=truth.links_alone, found_share=truth.found_share, corrected=truth.corrected_num_clusters(),
        basis="; ".join(part for part in (truth.basis, _effective_size(fit)) if part),
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
    fit : a fit of records, or its truth.
    sets : ids of records, as in ``["c1", "r1"]``; or several such sets, which may overlap. Ids are compared as texts.

    Returns
    -------
    float, or float64 ``(set,)`` for several sets. Of block-linkage by EM exactly, given the hyperparameters; else the
    share of the draws in which it is so.

    Raises
    ------
    InputError : there is no such record, a set is empty, or names a record twice.
    """
    truth = _truth_of(fit)
    if isinstance(sets, str) or not isinstance(sets, Iterable):
        raise UnsupportedRequest(f"{sets!r} is no set of records; give ids in a list, as in ['c1', 'r1']")
    listed = list(sets)
    several = any(not isinstance(one, str) and isinstance(one, Iterable) for one in listed)
    named = _set_names(listed if several else [listed], _ids_of(truth))
    first = np.cumsum([0, *map(len, named)])
    code = {name: place for place, name in enumerate(_ids_of(truth))}
    member = np.array([code[name] for names in named for name in names], int)
    probability = truth.set_probability(first, member)
    return probability if several else float(probability[0])


def _set_names(sets: Sequence[Any], records: Any) -> list[list[str]]:
    """Return the ids of each set as texts, or raise an error with all that is wrong with them."""
    known, problems = set(records), Problems("the sets of records")
    named = [[str(name) for name in ([one] if isinstance(one, str) else one)] for one in sets]
    for number, names in enumerate(named, 1):
        row = f"set {number}"
        if not names:
            problems.add("the set is empty", "name one record at least", row=row)
        for name in sorted({name for name in names if names.count(name) > 1}):
            problems.add("the set has this record twice", "name each record once", row=row, value=name)
        for name in dict.fromkeys(name for name in names if name not in known):
            close = difflib.get_close_matches(name, list(known), n=1)
            remedy = f"did you mean {close[0]!r}?" if close else "give ids of records that were linked"
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
    """

    precision: float
    recall: float
    f1: float
    predicted_pairs: int
    true_pairs: float
    common_pairs: float


def expected_scores(
    fit: Any, partition: Partition | None = None, *, missing: str = "error", unknown: str = "error"
) -> ExpectedScores:
    """Say how precise and complete a partition is by the posterior's own account.

    Parameters
    ----------
    fit : a fit of records, or its truth.
    partition : of the same records; the fit's own estimate by default.
    missing, unknown : see `score_partition`.

    Returns
    -------
    ExpectedScores : precision exactly as the draws of the posterior would have it on average; recall and F1 as ratios
        of expected numbers.
    """
    truth = _truth_of(fit)
    entity = (
        truth.estimate() if partition is None else partition.align(_ids_of(truth), missing=missing, unknown=unknown)
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
    )  # fmt: skip
