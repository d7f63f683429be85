"""What a report says of linked records: how many entities, which records are uncertain, how right it is if known."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from consilience import figures, linkage_figures
from consilience.data import Partition, Records
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.comparison import compare
from consilience.evaluation.partition_scores import expected_scores, num_entities, score_partition
from consilience.evaluation.reliability import reliability_of_pairs
from consilience.models.truth.truth import PARTITION
from consilience.notes import Level
from consilience.pages import Page, Section

_DOUBTFUL = 1e-3  # Entropy below this, in nats, is nothing to look at.
_MOST_GROUPS = 20
_SHOWN = 0.02  # Records that belong to an uncertain one with less probability are not shown beside it.
_SHOWN_ENTITIES = 0.05  # Sizes of which fewer entities are expected are not shown.
_COUNTS = ("merge-moves", "merge-pairs")


def linkage_page(
    fit: Any, systems: Mapping[str, Any], *, metric: Any, risk: Any, singletons: bool, provenance: Any, **policies: str
) -> Page:
    """Return the page of linked records; for the parameters see `consilience.reporting.report`.

    Raises
    ------
    UnsupportedRequest : systems are no partitions, or groups of classes are given.
    """
    if risk is not None:
        raise UnsupportedRequest("class_groups= groups classes, and linked records have none")
    if any(system.kind != PARTITION.name for system in systems.values()):
        raise UnsupportedRequest("systems that link records are partitions, as read_partition returns them")
    about = [*linkage_sections(fit), *system_sections(fit, systems, metric, **policies)]
    return "Records of the same entity", linkage_lead(fit), about


def linkage_lead(fit: Any) -> list[Any]:
    """Return what a page of linkage begins with."""
    data, count = fit.data, num_entities(fit)
    similar = fit.attributes.get("similar")
    words = (
        f"Which records are of the same entity, inferred by the model “{fit.member.name}” ({fit.member.title}), and "
        f"how sure that is. Fields are compared for equality of their cleaned forms"
        f"{f', but by similarity {similar}' if similar else ''}."
    )
    facts = {
        "records": data.num_records, "files": data.num_sources, "fields": data.num_fields,
        "entities, posterior mean": f"{count.value:,.0f}",
    }  # fmt: skip
    facts |= _interval(count)
    facts["entities in the estimate"] = f"{count.point:,.0f}"
    return [words, facts]


def _interval(count: Any) -> dict[str, str]:
    low, high = count.interval
    if count.no_interval:
        return {f"95 % interval: {count.no_interval}": "none"}
    return {"95 % interval": f"{low:,.0f} to {high:,.0f}", "how far it holds": count.doubt or count.how}


def among(fit: Any) -> str:
    """Say of which pairs a share of all is: a fit knows of those alone that it looked at."""
    return "among the pairs looked at" if fit.data.candidate is None else "among the pairs given"


def linkage_sections(fit: Any) -> list[Section]:
    """Return the sections of a fit of records."""
    parts = [_number(fit), _lost(fit), _uncertain(fit), _fields(fit), _cleaning(fit), _patterns(fit), _known(fit)]
    return [part for part in parts if part is not None]


def _number(fit: Any) -> Section:
    count, known = num_entities(fit), _true_number(fit)
    expected = expected_scores(fit)
    words = f"The number of entities, and how far its interval holds: {count.doubt or count.how}."
    sizes = count.table[count.table["entities"] >= _SHOWN_ENTITIES]
    names = {"size": "records of an entity", "entities": "entities, expected"}
    shown = _renamed(_written(sizes, {"entities": 1}), names)
    blocks: list[Any] = [words, linkage_figures.entity_histogram(count, known), shown]
    if count.no_interval:
        words = f"No interval is given, because {count.no_interval}; the number of entities is not known so well."
        blocks = [words, shown]
    if np.isfinite(expected.precision):
        blocks.append(
            f"By its own account the estimate joins {expected.predicted_pairs:,} pairs, of which "
            f"{expected.precision:.1%} are right, and finds {expected.recall:.1%} of all {among(fit)}."
        )
    return Section("How many entities", blocks)


def _written(frame: Any, digits: Mapping[str, int]) -> Any:
    """Write columns of numbers with so many digits after the point."""
    texts = {name: [f"{value:,.{number}f}" for value in frame[name]] for name, number in digits.items()}
    written = frame.assign(**texts)
    written.attrs["numbers"] = tuple(digits)
    return written


def _renamed(frame: Any, names: Mapping[str, str]) -> Any:
    renamed = frame.rename(columns=names)
    renamed.attrs["numbers"] = tuple(names.get(name, name) for name in frame.attrs.get("numbers", ()))
    return renamed


def _lost(fit: Any) -> Section | None:
    """Show what the candidates leave out."""
    if "loss" not in fit.member.table_names or not len(table := fit.table("loss")):
        return None
    words = (
        "Only pairs that agree enough to be candidates were looked at. What that leaves out is what the model expects "
        "to be left out, where the linked pairs look as it expects them to; else nobody knows."
    )
    values = ["not known" if np.isnan(value) else f"{value:,.6g}" for value in table["value"]]
    shown = table.assign(value=values)[["meaning", "value"]].rename(columns={"meaning": "what"})
    shown.attrs["numbers"] = ("value",)
    notes = [_sentence(note.words()) for note in fit.findings() if note.level is Level.note]
    return Section("What the candidates leave out", [words, *notes, shown])


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}."


def _uncertain(fit: Any) -> Section | None:
    """Show the records that are least certain, each with those that it may belong to, field by field."""
    import pandas

    doubtful = doubtful_records(fit)
    if not len(doubtful):
        return None
    data = fit.data
    groups, left_out = _groups(fit.truth.pairs(), doubtful, data.num_records)
    estimate = fit.truth.estimate()
    rows = [row for number, group in enumerate(groups, 1) for row in _group_rows(data, estimate, number, group)]
    words = (
        "The records whose entity is least certain, each followed by those that may be of the same one, with the "
        "probability that they are and what the estimate decided. ≠ marks a value that is not that of the first record."
    )
    more = f"{left_out:,} further groups of records are in doubt; the certainty in the table of entities tells them."
    frame = pandas.DataFrame(rows)
    frame = frame.drop(columns="file") if data.num_sources == 1 else frame
    frame.attrs["numbers"] = ("probability",)
    return Section("To be decided by hand", [words, frame, *([more] if left_out else [])])


def doubtful_records(fit: Any) -> np.ndarray:
    """Return the records whose entity is in doubt, as codes, by the entropy of the set of records that is theirs."""
    entropy = fit.truth.entropy()
    order = np.argsort(-entropy, kind="stable")
    return order[entropy[order] > _DOUBTFUL]


def _groups(pairs: Any, doubtful: np.ndarray, num_records: int) -> tuple[list[list[tuple[int, float]]], int]:
    """Return doubtful records, each before those that it may belong to, with probabilities; and how many are left out.

    Groups that are left out are those of connected records none of which is in a group that is returned.
    """
    likely = pairs.probability > _SHOWN
    first, second, probability = (values[likely] for values in pairs)
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(num_records, num_records))
    _, part = connected_components(graph, directed=False)
    groups: list[list[tuple[int, float]]] = []
    seen: set[int] = set()
    for record in doubtful.tolist():
        if record in seen:
            continue
        if len(groups) == _MOST_GROUPS:
            break
        beside = (first == record) | (second == record)
        others = np.where(first[beside] == record, second[beside], first[beside])
        order = np.argsort(-probability[beside])
        near = zip(others[order].tolist(), probability[beside][order].tolist(), strict=True)
        groups.append([(record, 1.0), *near])
        seen.update(one for one, _ in groups[-1])
    left = np.zeros(num_records, bool)
    left[part[doubtful]] = True
    left[part[list(seen)]] = False
    return groups, int(left.sum())


def _group_rows(
    data: Records, estimate: np.ndarray, number: int, group: Sequence[tuple[int, float]]
) -> list[dict[str, Any]]:
    """Return the rows of a group: what each record shows, and how it was and, if known, is to be decided."""
    head = group[0][0]
    rows = []
    for record, probability in group:
        is_head = record == head
        row = {
            "group": number, "record": data.records[record], "file": data.sources[int(data.source[record])],
            "probability": "" if is_head else f"{probability:.2f}",
            "estimate": "" if is_head else _joined(estimate, head, record),
        }  # fmt: skip
        if data.entity is not None:
            row["known"] = "" if is_head else _joined(np.asarray(data.entity), head, record)
        for place, field in enumerate(data.fields):
            own, of_head = _value(data, place, record), _value(data, place, head)
            row[str(field)] = f"≠ {own}" if own and of_head and own != of_head else own
        rows.append(row)
    return rows


def _joined(entity: np.ndarray, one: int, other: int) -> str:
    if entity[one] < 0 or entity[other] < 0:
        return "not known"
    return "joined" if entity[one] == entity[other] else "apart"


def _value(data: Records, field: int, record: int) -> str:
    """Return the value of a record, empty where it is missing."""
    code = data.value[field, record]
    return data.values[data.first_value[field] + code] if code >= 0 else ""


def _fields(fit: Any) -> Section | None:
    if "fields" not in fit.member.table_names:
        return None
    words = (
        "How many values each field has, in how many records it is missing, and how often it is distorted, as the "
        "records themselves say."
    )
    return Section("Fields", [words, fit.table("fields"), *_weights(fit)])


def _weights(fit: Any) -> list[Any]:
    """Show what fields say, and how many records show too little; nothing of a likelihood that no file holds."""
    with contextlib.suppress(UnsupportedRequest):
        weights, unlinkable = fit.table("weights"), fit.table("unlinkable")
        words = (
            "What it adds to the log odds of a pair, on the average, that a field is equal, near or different. On the "
            "right the records that would not even be linked with a copy of themselves: their values are common, or "
            "missing. How one pair comes about is told by fit.explain(a, b)."
        )
        return [
            words, [linkage_figures.weights_of_fields(weights), linkage_figures.unlinkable_records(unlinkable)],
        ]  # fmt: skip
    return []


def _cleaning(fit: Any) -> Section | None:
    if "cleaning" not in fit.attributes:
        return None
    words = (
        "How the columns of each file were read: of what type, how many different values they have in how many forms, "
        "and in how many records they are missing. Forms are compared; the tables show the values as they were written."
    )
    return Section("Cleaning", [words, fit.cleaning()])


def _patterns(fit: Any) -> Section | None:
    if "patterns" not in fit.member.table_names or fit.data.num_sources == 1:
        return None
    words = "How many entities have records in exactly these files, over draws of the partition."
    table = _written(fit.table("patterns"), {"entities": 1, "lower": 0, "upper": 0})
    names = {"sources": "files", "entities": "entities, mean", "lower": "95 % from", "upper": "to"}
    return Section("Between files", [words, _renamed(table, names)])


def _known(fit: Any) -> Section | None:
    if _true_number(fit) is None:
        return None
    scores = score_partition(fit, fit.data)
    table = reliability_of_pairs(fit.truth.pairs(), np.asarray(fit.data.entity))
    words = (
        "Entities are known for these records, and were not used. Pairs count as predicted with their probability; "
        "below, those of each range of probabilities, with how many of them are of one entity."
    )
    texts = [_score_text(row.score, row.value) for row in scores.table.itertuples()]
    shown = scores.table.assign(value=texts)
    shown.attrs["numbers"] = ("value",)
    blocks: list[Any] = [words, shown]
    if len(table):
        stated, seen = "probability of being one entity", "share that is of one entity"
        blocks += [figures.reliability_curve(table, "Calibration of the pairs", stated, seen), _of_pairs(table)]
    return Section("Against the known entities", blocks)


def _of_pairs(table: Any) -> Any:
    names = {
        "lower": "probability from", "upper": "to", "items": "pairs", "certainty": "mean probability",
        "right": "share of one entity", "right_lower": "95 % from", "right_upper": "to ",
    }  # fmt: skip
    return table.rename(columns=names)


def _score_text(name: str, value: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{value:,.0f}" if name in _COUNTS else f"{value:.4f}"


def system_sections(
    fit: Any, systems: Mapping[str, Partition], metric: Any = None, *, missing: str = "error", unknown: str = "error"
) -> list[Section]:
    """Return the sections on what systems say who is one entity, scored against the draws of a fit.

    Parameters
    ----------
    fit : of records.
    systems : partitions by name.
    metric : one or several, as in `evaluate`; systems are ranked by the first.
    missing, unknown : see `evaluate`.
    """
    import pandas

    if not systems:
        return []
    metrics = list(metric) if isinstance(metric, list | tuple) else ["pairwise-f1" if metric is None else metric]
    rows = []
    for name, system in systems.items():
        for one, score in evaluate(fit, system, metrics, missing=missing, unknown=unknown).items():
            low, high = score.interval
            row = {"system": name, "metric": one, "value": score.value, "sd over draws": score.sd}
            rows.append(row | {"95 % from": low, "to": high, "against the estimate": score.point})
    words = (
        "Scores over the draws of who is one entity, as far as the model holds. A system that was made with this model "
        "looks better than it is."
    )
    blocks: list[Any] = [words, pandas.DataFrame(rows)]
    if len(systems) > 1:
        ranked = compare(fit, systems, metrics[0], missing=missing, unknown=unknown)
        columns = {"rank": "rank", "system": "system", "value": metrics[0], "lower": "95 % from", "upper": "to"}
        columns |= {"sd_truth": "sd on these records", "sd_items": "sd from records", "p_best": "P(best)"}
        blocks += [ranked.table[list(columns)].rename(columns=columns), figures.leaderboard(ranked)]
    return [Section("Scores of systems", blocks)]


def _true_number(fit: Any) -> int | None:
    entity = fit.data.entity
    if entity is None or np.any(np.asarray(entity) < 0):
        return None
    return int(np.count_nonzero(np.bincount(entity)))
