"""What a report says of linked records: how many entities, which records are uncertain, how right it is if known."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience import linkage_figures
from consilience.data import Records
from consilience.evaluation.partition_scores import expected_scores, num_entities, score_partition
from consilience.models.partition import PartitionTruth
from consilience.pages import Section

__all__ = ["calibration_table", "linkage_lead", "linkage_sections"]

_MOST_CLUSTERS = 20
_SHOWN = 0.02       # Records that belong to an uncertain one with less probability are not shown beside it.
_SHOWN_ENTITIES = 0.05  # Sizes of which fewer entities are expected are not shown.
_BINS = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0])


def linkage_lead(fit: Any) -> list[Any]:
    """Return what a page of linkage begins with."""
    data, count = fit.data, num_entities(fit)
    low, high = count.interval
    words = (
        f"Which records are of the same entity, inferred by the model “{fit.member.name}” ({fit.member.title}), and "
        "how sure that is. Fields are compared for equality."
    )
    facts = {
        "records": data.num_records, "files": data.num_sources, "fields": data.num_fields,
        "entities, posterior mean": f"{count.value:,.0f}", "95 % interval": f"{low:,.0f} to {high:,.0f}",
        "entities in the estimate": f"{count.point:,.0f}",
    }  # fmt: skip
    return [words, facts]


def linkage_sections(fit: Any) -> list[Section]:
    """Return the sections of a fit of records."""
    parts = [_number(fit), _lost(fit), _uncertain(fit), _fields(fit), _patterns(fit), _known(fit)]
    return [part for part in parts if part is not None]


def _number(fit: Any) -> Section:
    count, known = num_entities(fit), _true_number(fit)
    expected = expected_scores(fit)
    words = (
        "The number of entities over draws of the partition. The interval is as wide as the records leave it under "
        "this model: with hyperparameters that are fixed at an estimate it is too narrow, and no interval of a model "
        "is honest where the model is wrong."
    )
    sizes = count.table[count.table["entities"] >= _SHOWN_ENTITIES]
    sizes = sizes.rename(columns={"size": "records of an entity", "entities": "entities, expected"})
    blocks = [words, linkage_figures.entity_histogram(count, known), sizes]
    if np.isfinite(expected.precision):
        blocks.append(
            f"By its own account the estimate joins {expected.predicted_pairs:,} pairs, of which "
            f"{expected.precision:.1%} are right, and finds {expected.recall:.1%} of all pairs there are."
        )
    return Section("How many entities", blocks)


def _lost(fit: Any) -> Section | None:
    """Show what the candidates leave out."""
    if "loss" not in fit.member.tables or not len(table := fit.table("loss")):
        return None
    words = (
        "Only pairs that agree enough to be candidates were looked at. What that leaves out is what the model expects "
        "to be left out, where the linked pairs look as it expects them to; else nobody knows."
    )
    values = ["not known" if np.isnan(value) else f"{value:,.6g}" for value in table["value"]]
    return Section("What the candidates leave out", [words, *map(_sentence, fit.notes()), table.assign(value=values)])


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}."


def _uncertain(fit: Any) -> Section | None:
    """Show the records that are least certain, each with those that it may belong to, field by field."""
    import pandas

    review = fit.table("review").head(_MOST_CLUSTERS)
    if not len(review):
        return None
    data, pairs = fit.data, fit.truth.pairs()
    wanted = set(review["record"])
    code = {name: number for number, name in enumerate(data.records) if name in wanted}
    rows: list[dict[str, Any]] = []
    seen: set[int] = set()
    for _, line in review.iterrows():
        record = code[line["record"]]
        if record in seen:
            continue
        beside = (pairs.first == record) | (pairs.second == record)
        others = np.where(pairs.first[beside] == record, pairs.second[beside], pairs.first[beside])
        chance = pairs.probability[beside]
        order = np.argsort(-chance)[: int(np.sum(chance > _SHOWN))]
        group = [(record, None), *zip(others[order].tolist(), chance[order].tolist(), strict=True)]
        seen.update(one for one, _ in group)
        number = len({row["group"] for row in rows}) + 1
        for one, probability in group:
            rows.append({
                "group": number, "record": data.records[one], "file": data.sources[int(data.source[one])],
                "probability": "" if probability is None else f"{probability:.2f}",
                **{str(field): _value(data, place, one) for place, field in enumerate(data.fields)},
            })  # fmt: skip
    words = (
        "The records whose entity is least certain, each followed by those that may be of the same one, with the "
        "probability that they are. These are the ones to look at."
    )
    frame = pandas.DataFrame(rows)
    return Section("To be decided by hand", [words, frame.drop(columns="file") if data.num_sources == 1 else frame])


def _value(data: Records, field: int, record: int) -> str:
    """Return the value of a record, empty where it is missing."""
    code = data.value[field, record]
    return data.values[data.first_value[field] + code] if code >= 0 else ""


def _fields(fit: Any) -> Section | None:
    if "fields" not in fit.member.tables:
        return None
    words = (
        "How many values each field has, in how many records it is missing, and how often it is distorted, as the "
        "records themselves say."
    )
    return Section("Fields", [words, fit.table("fields")])


def _patterns(fit: Any) -> Section | None:
    if "patterns" not in fit.member.tables or fit.data.num_sources == 1:
        return None
    words = "How many entities have records in exactly these files, over draws of the partition."
    return Section("Between files", [words, fit.table("patterns")])


def _known(fit: Any) -> Section | None:
    if _true_number(fit) is None:
        return None
    scores = score_partition(fit, fit.data)
    table = calibration_table(fit.truth, np.asarray(fit.data.entity))
    words = (
        "Entities are known for these records, and were not used. Pairs count as predicted with their probability; "
        "below, those of each range of probabilities, with how many of them are of one entity."
    )
    blocks: list[Any] = [words, scores.table]
    if len(table):
        blocks += [linkage_figures.calibration(table), table]
    return Section("Against the known entities", blocks)


def calibration_table(truth: PartitionTruth, entity: np.ndarray) -> Any:
    """Tabulate how often pairs of about the same probability are of one entity.

    Returns
    -------
    Data frame with the columns ``pairs``, ``predicted`` (mean probability) and ``observed``, a row for each range of
    probabilities that has pairs whose entities are known.
    """
    import pandas

    first, second, probability = truth.pairs()
    known = (entity[first] >= 0) & (entity[second] >= 0)
    same, probability = (entity[first] == entity[second])[known], probability[known]
    bin_ = np.clip(np.searchsorted(_BINS, probability, side="right") - 1, 0, len(_BINS) - 2)
    number = np.bincount(bin_, minlength=len(_BINS) - 1)
    sums = [np.bincount(bin_, values, len(_BINS) - 1) for values in (probability, same)]
    has = number > 0
    predicted, observed = (total[has] / number[has] for total in sums)
    return pandas.DataFrame({"pairs": number[has], "predicted": predicted, "observed": observed})


def _true_number(fit: Any) -> int | None:
    data = fit.data
    if not isinstance(data, Records) or data.entity is None or np.any(np.asarray(data.entity) < 0):
        return None
    return int(np.count_nonzero(np.bincount(data.entity)))
