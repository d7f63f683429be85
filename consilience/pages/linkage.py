"""What a report says of linked records: how many entities, which records are uncertain, how right it is if known."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from consilience import figures, linkage_figures
from consilience.data import Partition, Records
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.comparison import compare
from consilience.evaluation.partition_scores import expected_scores, num_entities, score_partition
from consilience.evaluation.readings import range_text
from consilience.evaluation.reliability import reliability_of_pairs
from consilience.models.intervals import ends
from consilience.models.truth.partitions import pairs_together
from consilience.models.truth.truth import PARTITION
from consilience.pages import Action, Bar, Bars, Page, Section, Table
from consilience.pages.run import kinds_of, line_of
from consilience.printing import counted, percent, percents
from consilience.rounding import written

DOUBTFUL = 0.99  # Records whose entity is as certain as this are nothing to look at.
_NEARLY_ALL = 0.999  # Of all links.
_MOST_GROUPS = 20
_SHOWN = 0.02  # Records that belong to an uncertain one with less probability are not shown beside it.
_SHOWN_ENTITIES = 0.05  # Sizes of which fewer entities are expected are not shown.
_MOST_WATERFALLS, _MOST_CLUSTERS = 5, 10
_LINKS = {
    "threshold": "candidates are pairs with log odds from here on", "links_cut": "links in the pairs given up",
    "links_alike": "links in the pairs of records like others",
    "entities_corrected": "change of the number of entities by the links not looked at",
    "disagreement": "distance between the numbers of fields in which links differ, as seen and as the model has them "
    "(0 none, 1 most)",
    "largest_component": "records in the largest group that candidates connect",
}
_COUNTS = ("merge-moves", "merge-pairs")
_TERMS = {"prior": "nothing compared"}
_LOG_ODDS = (
    "Log odds are the natural logarithm of the probability over its complement: 0 is a probability of one half, +3 one "
    "of 0.95, and −3 one of 0.05."
)
_FEW_TIMES = 2  # that a share of the model is above the one that is counted, before a page says so


def linkage_page(
    fit: Any, systems: Mapping[str, Any], *, metric: Any, risk: Any, singletons: bool, provenance: Any, text: Any,
    **policies: str,
) -> Page:  # fmt: skip
    """Return the page of linked records; for the parameters see `consilience.reporting.report`.

    Raises
    ------
    UnsupportedRequest : systems are no partitions, or groups of classes are given.
    """
    if risk is not None:
        raise UnsupportedRequest("class_groups= groups classes, and linked records have none")
    if any(system.kind != PARTITION.name for system in systems.values()):
        raise UnsupportedRequest("systems that link records are partitions, as read_partition returns them")
    return Page(
        f"Linkage of {counted(fit.data.num_records, 'records')}", line_of(fit),
        [*linkage_sections(fit), *system_sections(fit, systems, metric, **policies)], numbers=_numbers(fit),
        findings=[_account(fit)], actions=_actions(fit),
    )  # fmt: skip


def _actions(fit: Any) -> list[Action]:
    """Return what to do next; by similarity where all values, such as names, were compared for equality."""
    kinds = kinds_of(fit.attributes.get("fields", ""))
    names = ",".join(f"{name}=string" for name, kind in kinds.items() if kind == "category")
    words = "Compare by similarity, so that typing errors count less, with the other options of this run:"
    similar = Action(words, f"consilience link FILES --similar {names} -o RUN2")
    return [
        Action("Decide on the least certain pairs by hand", section="Review list"),
        Action("Write the list of pairs to answer:", "consilience table RUN review --csv review.csv"),
        *([similar] if names and "similar" not in fit.attributes else []),
        Action("See what fields weigh", section="Match weights"),
        Action("Write the entities:", "consilience table RUN entities --csv entities.csv"),
        Action("Choose a threshold", section="Threshold curve"),
    ]


def _numbers(fit: Any) -> dict[str, Any]:
    """Return the key figures: the interval of the entities only where it is one."""
    count, expected = num_entities(fit), expected_scores(fit)
    low, high = count.interval
    known = _known_interval(count)
    numbers: dict[str, Any] = {
        f"entities{f' ({low:,.0f} to {high:,.0f}, 95 %)' if known else ''}": f"{count.value:,.0f}",
        "links" if expected.predicted_pairs != 1 else "link": expected.predicted_pairs,
    }
    if not expected.predicted_pairs:
        return numbers
    found, of = found_of_all(fit)
    by = f"expected by the model{', in doubt' if count.doubt else ''}"
    shares = {f"of the links are correct, {by}": expected.precision, f"of {of} are found, {by}": found}
    spread = _intervals_of_shares(fit) if known else [(np.nan, np.nan)] * 2
    for (name, share), (low, high) in zip(shares.items(), spread, strict=True):
        of_draws = f" ({percents(low, high)}, 95 %)" if np.isfinite(low) else ""
        numbers[name + of_draws] = percent(share)
    return numbers


def _intervals_of_shares(fit: Any) -> list[tuple[float, float]]:
    """Return the intervals of the shares of correct links and of links found, over the draws of the entities.

    NaN where the draws are no partitions, or are of other pairs than the share.
    """
    counted_in, size = fit.truth.counted().partitions, fit.data.num_records
    if counted_in is None:
        return [(np.nan, np.nan)] * 2
    one, other = np.divmod(pairs_together(fit.truth.estimate()), size)
    drawn = (counted_in.clusters(draws) for draws in counted_in.draw_blocks())
    common = np.concatenate([(own[:, one] == own[:, other]).sum(axis=1) for own in drawn])
    by_size = counted_in.clusters_by_size()
    records = np.arange(1, by_size.shape[1] + 1)
    pairs = by_size @ (records * (records - 1) // 2)
    found = np.divide(common, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
    # Draws of the fit itself know nothing of pairs that it does not look at; those beside it look at nearly all.
    own_draws = counted_in is fit.truth
    fits = own_draws == (found_of_all(fit)[1] != "all links") or fit.data.candidate is not None
    intervals = [np.nanquantile(share, ends()) for share in (common / len(one), found)]
    (low, high), of_found = ((float(low), float(high)) for low, high in intervals)
    return [(low, high), of_found if fits or fit.truth.found_share > _NEARLY_ALL else (np.nan, np.nan)]


def _by_threshold(fit: Any, thresholds: np.ndarray) -> dict[str, np.ndarray]:
    """Return the intervals of precision and recall of the pairs above thresholds, over the draws of the entities.

    Recall is of the links among the pairs that have a probability, as `thresholds` has it. Nothing where the draws are
    no partitions, or where no pair reaches a threshold.
    """
    counted_in, pairs = fit.truth.counted().partitions, fit.truth.pairs()
    number = (pairs.probability[:, None] >= thresholds).sum(axis=0)
    if counted_in is None or not number.min():
        return {}
    order = np.argsort(-pairs.probability, kind="stable")
    one, other = pairs.first[order], pairs.second[order]
    hits = np.concatenate([
        np.cumsum(own[:, one] == own[:, other], axis=1)
        for own in (counted_in.clusters(draws) for draws in counted_in.draw_blocks())
    ])  # fmt: skip
    links = np.maximum(hits[:, -1:], 1)
    found = {"precision": hits[:, number - 1] / number, "recall": hits[:, number - 1] / links}
    return {
        f"{name}_{end}": values
        for name, share in found.items()
        for end, values in zip(("lower", "upper"), np.quantile(share, ends(), axis=0), strict=True)
    }


def found_of_all(fit: Any) -> tuple[float, str]:
    """Return which share of links is in the estimate, as the model expects, and of which links: of all if it knows."""
    recall, among_seen = expected_scores(fit).recall, fit.truth.found_share
    if fit.data.candidate is None and np.isfinite(among_seen):
        return recall * among_seen, "all links"
    return recall, f"links {_among(fit)}"


def _among(fit: Any) -> str:
    return "among the pairs looked at" if fit.data.candidate is None else "among the pairs given"


def expected_words(fit: Any) -> str:
    """Say how right and how complete the links are, as the model expects; empty where there are none."""
    expected, (found, of), doubt = expected_scores(fit), found_of_all(fit), num_entities(fit).doubt
    if not expected.predicted_pairs:
        return ""
    seen = f" ({percent(expected.recall)} of those among the pairs looked at)" if of == "all links" else ""
    return (
        f"{percent(expected.precision)} of the {counted(expected.predicted_pairs, 'linked pairs')} to be correct, and "
        f"to have found {percent(found)} of {of}{seen}{f': {doubt}' if doubt else ''}"
    )


def _account(fit: Any) -> str:
    """Say how right the links are, as the model expects, if it holds; how complete they are says a section."""
    expected, count = expected_scores(fit), num_entities(fit)
    if not expected.predicted_pairs:
        return "The estimate joins no records."
    low, high = _intervals_of_shares(fit)[0] if _known_interval(count) else (np.nan, np.nan)
    spread = f", and {percents(low, high)} in 95 % of its draws" if np.isfinite(low) else ""
    doubt = f": {count.doubt}" if count.doubt else ""
    checked = "" if fit.data.entity is not None else " No known link checks that."
    links = "the one link" if expected.predicted_pairs == 1 else f"the {expected.predicted_pairs:,} links"
    return f"The model expects {percent(expected.precision)} of {links} to be correct{spread}{doubt}.{checked}"


def _known_interval(count: Any) -> bool:
    return not (count.no_interval or count.doubt or count.links_alone)


def linkage_sections(fit: Any) -> list[Section]:
    """Return the sections of a fit of records."""
    parts = [
        _uncertain(fit), _fields(fit), _thresholds(fit), _unlinkable(fit), _number(fit), _known(fit), _lost(fit),
        _cleaning(fit), _patterns(fit),
    ]  # fmt: skip
    return [part for part in parts if part is not None]


def _number(fit: Any) -> Section:
    count, known = num_entities(fit), _true_number(fit)
    sizes = count.table[count.table["entities"] >= _SHOWN_ENTITIES]
    names = {"size": "records of an entity", "entities": "entities, expected"}
    shown = Table(_renamed(_written(sizes, {"entities": 1}), names), "Sizes of entities.")
    least = _least_certain(fit)
    if count.no_interval or count.links_alone:
        why = count.no_interval or "the doubt about links is not all there is"
        sampler = "; use method=\"gibbs\"" if "gibbs" in fit.member.methods and fit.method != "gibbs" else ""
        method = {"em": "EM"}.get(fit.method, fit.method)
        words = f"Interval: not available by {method}, because {why}{sampler}."
        return Section("Clusters", [words, shown, *least], f"{count.value:,.0f} entities expected")
    low, high = count.interval
    beside = fit.truth.counted().partitions is not fit.truth and fit.data.candidate is None
    words = (
        f"In {len(count.draws):,} draws of who is one entity there are {count.value:,.1f} entities on average, and "
        f"{low:,.0f} to {high:,.0f} in 95 % of them; the estimate that is written has {count.point:,.0f}. The interval "
        f"{f'is not to be trusted: {count.doubt}' if count.doubt else f'holds {count.how}'}."
    )
    if beside:
        words += (
            " These draws are of a run of their own, which takes nothing that the estimate learned for certain and "
            f"compares more pairs of records. The {fit.draws:,} draws under “What was run” are of the estimate, and "
            "systems are scored on those."
        )
    drawn = linkage_figures.entity_histogram(count, known)
    return Section("Clusters", [words, drawn, shown, *least], f"{count.value:,.0f} entities, {low:,.0f} to {high:,.0f}")


def _least_certain(fit: Any) -> list[Any]:
    """Tabulate the clusters that are least certain."""
    if "matching_sets" not in fit.member.table_names:
        return []
    table = fit.table("matching_sets")
    table = table[table["records"] > 1].drop_duplicates("matching_set").sort_values("probability", kind="stable")
    if not len(table):
        return []
    columns = {"matching_set": "records of one entity", "records": "number"}
    columns["probability"] = "probability of exactly these"
    shown = table.head(_MOST_CLUSTERS)[list(columns)].rename(columns=columns)
    caption = "The linked records that are least certain to be one entity."
    return [Table(shown, caption, of="matching_sets", total=len(table))]


def _thresholds(fit: Any) -> Section | None:
    if "thresholds" not in fit.member.measure_names:
        return None
    try:
        table = fit.measure("thresholds")
    except UnsupportedRequest:
        return None
    if not len(table):
        return None
    words = (
        "What linking all pairs above a threshold would give, as the model expects: precision is how many of these are "
        f"right, recall how many they are of the links {_among(fit)}."
    )
    columns, texts = ["threshold", "precision", "recall", "pairs", "clusters"], {}
    if _known_interval(num_entities(fit)) and (spread := _by_threshold(fit, table["threshold"].to_numpy())):
        table = table.assign(**spread)
        words += " Shaded, and in brackets where there is any doubt, is what 95 % of the draws under “Clusters” have."
        texts = {
            name: [_with_ends(*row) for row in table[[name, f"{name}_lower", f"{name}_upper"]].to_numpy()]
            for name in ("precision", "recall")
        }
    shown = Table(table[columns].rename(columns={"clusters": "entities"}), "Thresholds.", texts=texts)
    best = table.loc[(table["precision"] + table["recall"]).idxmax()]
    gist = f"above {best['threshold']:g}, {percent(best['precision'])} right and {percent(best['recall'])} found, "
    gist += f"of the links {_among(fit)}"
    return Section("Threshold curve", [words, linkage_figures.threshold_curves(table), shown], gist)


def _with_ends(value: float, low: float, high: float) -> str:
    """Write a share with its interval, which holds it: of a few draws that differ quantiles know nothing."""
    text, low_text, high_text = (f"{one:.3f}" for one in (value, min(low, value), max(high, value)))
    return text if low_text == high_text else f"{text} [{low_text}, {high_text}]"


def _unlinkable(fit: Any) -> Section | None:
    if "unlinkable" not in fit.member.table_names:
        return None
    with contextlib.suppress(UnsupportedRequest):
        table = fit.table("unlinkable")
        even = float(np.interp(0, table["threshold"], table["share"], left=0, right=1))
        if not even:
            return None
        words = (
            "Records that would not even be linked with a copy of themselves: their values are common, or missing. The "
            "curve is the share whose log odds with a copy stay below each value."
        )
        gist = f"{percent(even)} of the records have even odds or less with a copy of themselves"
        return Section("Unlinkable records", [words, linkage_figures.unlinkable_records(table)], gist)
    return None


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
        "Only pairs of records that agree in enough fields are compared: they are the candidates (to leave out the "
        "others is called blocking). Below is what the model expects of the links that were made and missed. It is "
        "valid only if linked pairs look as the model predicts."
    )
    known = table.set_index("quantity")["value"]
    frame = table[~table["quantity"].isin(["found_share", "completed", "entities"]) & (table["value"] != 0)]
    if (table["value"][table["quantity"] == "completed"] == 1).any():
        words += " Links that are no candidates are counted where it learns, and in the number of entities."
    shown = frame["value"].where(frame["quantity"] != "threshold", -frame["value"])
    change = frame["quantity"] == "entities_corrected"
    shown = shown.where(~change, frame["value"] - known.get("entities", np.nan))
    values = [
        "not known" if np.isnan(value)
        else written(value, "+,.1f" if moved else f",.{0 if value % 1 == 0 else 2}f")
        for value, moved in zip(shown, change, strict=True)
    ]
    what = [_LINKS.get(name, words) for name, words in zip(frame["quantity"], frame["meaning"], strict=True)]
    shown = frame.assign(value=values, what=what)[["what", "value"]]
    shown.attrs["numbers"] = ("value",)
    found = table["value"][table["quantity"] == "found_share"]
    gist = f"{percent(float(found.iloc[0]))} of all links are expected among the candidates" if len(found) else ""
    shares, out = _shares(fit), Table(shown, "What the candidates leave out.")
    return Section("Links made and missed", [words, *([shares] if shares else []), out], gist)


def _shares(fit: Any) -> Table | None:
    """Tabulate all shares of links side by side, each with what it is a share of."""
    import pandas

    expected, (found, of) = expected_scores(fit), found_of_all(fit)
    if not expected.predicted_pairs:
        return None
    spread = _intervals_of_shares(fit) if _known_interval(num_entities(fit)) else [(np.nan, np.nan)] * 2
    rows = [("correct links, of those made", expected.precision, spread[0])]
    if of == "all links":
        rows += [(f"links found, of the links {_among(fit)}", expected.recall, (np.nan, np.nan)),
                 (f"links {_among(fit)}, of all links", fit.truth.found_share, (np.nan, np.nan))]  # fmt: skip
    rows.append((f"links found, of {of}" + ": the product of the two above" * (len(rows) > 1), found, spread[1]))
    texts = [
        {"what": what, "expected": percent(share), "95 % of draws": percents(*ends) if np.isfinite(ends[0]) else "–"}
        for what, share, ends in rows
    ]
    frame = pandas.DataFrame(texts)
    frame.attrs["numbers"] = ("expected", "95 % of draws")
    return Table(frame, "How right and how complete the links are, as the model expects.")


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
        "probability that they are and what the estimate decided. The certainty of an entity is the probability that "
        "it is exactly these records. ≠ marks a value that is not that of the first record."
    )
    how = (
        "How the probability of a pair comes about: its log odds begin with those of two records of which nothing is "
        f"compared, and each field adds to them. {_LOG_ODDS}"
    )
    more = (
        f"{left_out:,} further groups of records are in doubt, with a certainty below {DOUBTFUL}: all are in "
        "“consilience table RUN entities”."
    )
    frame = pandas.DataFrame(rows)
    frame = frame.drop(columns="file") if data.num_sources == 1 else frame
    frame.attrs["numbers"] = ("probability",)
    shown = Table(frame, "Records in doubt, in groups.", of="review", parted="group")
    pairs = [(group[0][0], other) for group in groups for other, _ in group[1:2]]
    bars = _waterfalls(fit, pairs[:_MOST_WATERFALLS])
    blocks = [words, shown, *([more] if left_out else []), *([how] if bars else []), *bars]
    gist = f"{len(doubtful):,} of {counted(data.num_records, 'records')} have an entity with certainty below {DOUBTFUL}"
    return Section("Review list", blocks, gist)


def _waterfalls(fit: Any, pairs: Sequence[tuple[int, int]]) -> list[Bars]:
    """Show how the log odds of pairs come about, on one scale; nothing of a model that does not tell."""
    if "explain" not in fit.member.measure_names:
        return []
    names = [(fit.data.records[one], fit.data.records[other]) for one, other in pairs]
    with contextlib.suppress(UnsupportedRequest):
        tables = [fit.measure("explain", one, other) for one, other in names]
        sums = np.concatenate([table["sum"].iloc[:-1] for table in tables] or [[0.0]])
        reach = sums[np.isfinite(sums)].min(initial=0.0), sums[np.isfinite(sums)].max(initial=0.0)
        return [_waterfall(one, other, table, reach) for (one, other), table in zip(names, tables, strict=True)]
    return []


def _odds(value: float) -> str:
    """Write log odds, and below them the probability."""
    probability = float(special.expit(value))
    return f"{written(value, '+g')}\n{range_text(probability, probability)}" if value else "0\n0.50"


def _signed(value: float) -> str:
    return written(round(value, 2) + 0.0, "+.2f")


def _waterfall(one: Any, other: Any, table: Any, reach: Sequence[float]) -> Bars:
    """Return the terms of a pair's log odds, one bar each from the sum before it; a missing field adds nothing."""
    rows, before = [], 0.0
    *terms, last = table.itertuples()
    for row in terms:
        values = row.value_a if row.outcome == "equal" else f"{row.value_a or '–'} | {row.value_b or '–'}"
        label = f"{row.term}: {values}" if row.outcome else _TERMS.get(row.term, str(row.term))
        rows.append(Bar(label, row.sum, _signed(row.log_odds), before))
        before = row.sum
    alone = terms[-1]
    rows.append(Bar("sum", alone.sum, _signed(alone.sum)))
    own, all_ = f"{alone.probability:.3f}", f"{last.probability:.3f}"
    caption = f"{one} and {other}: log odds {_signed(alone.sum)}, probability {own}"
    caption += f" by themselves; {all_} with what the other records, the restriction and labels add" * (own != all_)
    heads = ("field and values", "log odds, summed up, with the probability", "added")
    return Bars(rows, f"{caption}.", heads, reach=reach, words=_odds)


def doubtful_records(fit: Any) -> np.ndarray:
    """Return the records whose entity is in doubt, as codes: those whose set of records is least certain first."""
    entropy, certain = fit.truth.entropy(), fit.truth.cluster_probability(fit.truth.estimate())
    order = np.argsort(-entropy, kind="stable")
    return order[certain[order] < DOUBTFUL]


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
        row = {"record": data.records[record]}
        for place, field in enumerate(data.fields):
            own, of_head = _value(data, place, record), _value(data, place, head)
            row[str(field)] = f"≠\N{NO-BREAK SPACE}{own}" if own and of_head and own != of_head else own
        row["probability"] = "" if is_head else f"{probability:.2f}"
        row["estimate"] = "" if is_head else _joined(estimate, head, record)
        if data.entity is not None:
            row["known"] = "" if is_head else _joined(np.asarray(data.entity), head, record)
        rows.append(row | {"file": data.sources[int(data.source[record])], "group": number})
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
        "How many values each field has, in how many records it is missing, and, estimated without an interval, the "
        "share of records in which an error put another value in the place of the true one. "
    )
    similar = fit.attributes.get("similar")
    words += f"Values are compared for equality{f', but by similarity {similar}' if similar else ''}."
    fields = fit.table("fields").rename(columns={"distortion": "share with an error"})
    blocks: list[Any] = [words, Table(fields, "Fields.", of="fields")]
    title, gist = "Fields", ""
    with contextlib.suppress(UnsupportedRequest):
        if "weights" in fit.member.table_names:
            blocks, title = [*_weights(fit), *blocks], "Match weights"
            weights = fit.table("weights")
            most = weights.loc[weights["weight"].idxmax()]
            gist = f"“{most['field']}” says most: {most['weight']:+.1f} where {most['outcome']}"
    return Section(title, blocks, gist)


def _weights(fit: Any) -> list[Any]:
    """Show what each outcome of each field adds, and how many pairs show it."""
    links = float(fit.truth.pairs().probability.sum())
    weights = _with_intervals(fit.table("weights"), links)
    weights = weights[(weights["outcome"] != "missing") | (weights[["links", "others"]].sum(axis=1) > 0)]
    shares = {"links": "share of links", "others": "share of other pairs"}
    names = shares | {"weight": "adds", "lower": "95 % from", "upper": "to"}
    how = (
        "What it adds to the log odds of a pair that a field is equal or differs, on the average over its values: a "
        "rare value that is equal adds more. Beside it stands how often that happens among links, and among all other "
        "pairs of records, each pair counted as much of a link as it is probable; both add up to 1 over the outcomes "
        f"of a field. {_LOG_ODDS} Intervals hold the doubt about the share of links, of which {links:,.0f} are "
        "expected, and no other."
    )
    text = {name: [_share(value) for value in weights[name]] for name in shares}
    table = Table(
        weights[["field", "outcome", *names]].rename(columns=names), "Match weights by field and outcome.",
        of="weights", texts={shares[name]: words for name, words in text.items()},
    )  # fmt: skip
    return [how, linkage_figures.weights_of_fields(weights), table, *_by_chance(weights)]


def _share(value: float) -> str:
    """Write a share, of a small one its first digit."""
    return f"{value:.3f}" if value >= 0.001 or not value else f"{value:.{-int(np.floor(np.log10(value)))}f}"


def _by_chance(weights: Any) -> list[str]:
    """Say of which fields the model expects more agreement by chance than there is."""
    equal = weights[(weights["outcome"] == "equal") & (weights["u"] > _FEW_TIMES * weights["others"])]
    if not len(equal):
        return []
    named = ", ".join(f"“{row.field}” ({_share(row.u)}, not {_share(row.others)})" for row in equal.itertuples())
    return [
        f"The model expects more agreement by chance than there is in {named}: it learns how common values are from "
        "all records, of which two may be of one entity, and knows of no value that no record has. So equal values "
        "there add less than the two shares would say."
    ]


def _with_intervals(weights: Any, links: float) -> Any:
    """Add Jeffreys intervals of the weights: m is a share of so many links, less those without the field."""
    lacks, taken = (weights[weights["outcome"] == "missing"].set_index("field")[name] for name in ("links", "m"))
    has = 1 - weights["field"].map(taken)
    m, number = np.clip(weights["m"] / has, 0, 1), links * (1 - weights["field"].map(lacks))
    shown = (weights["outcome"] != "missing") & (weights["u"] > 0)
    low, high = (special.betaincinv(number * m + 0.5, number * (1 - m) + 0.5, level) for level in ends())
    found = {"lower": np.where(m > 0, low, 0.0), "upper": np.where(m < 1, high, 1.0)}
    with np.errstate(divide="ignore", invalid="ignore"):
        return weights.assign(**{name: np.log(end * has / weights["u"]).where(shown) for name, end in found.items()})


def _cleaning(fit: Any) -> Section | None:
    if "cleaning" not in fit.attributes:
        return None
    words = (
        "How the columns of each file were read: of what type, how many different values they have in how many forms, "
        "and in how many records they are missing. Forms are compared; the tables show the values as they were written."
    )
    table = fit.cleaning()
    gist = f"{counted(len(table), 'columns')}, {counted(int(table['missing'].sum()), 'values')} missing"
    return Section("Cleaning", [words, Table(table, "Columns as they were read.")], gist)


def _patterns(fit: Any) -> Section | None:
    if "patterns" not in fit.member.table_names or fit.data.num_sources == 1:
        return None
    words = "How many entities have records in exactly these files, over the draws in which entities are counted."
    found = fit.table("patterns")
    names = {"sources": "files", "entities": "entities, mean", "lower": "95 % from", "upper": "to"}
    table = _renamed(_written(found, {"entities": 1, "lower": 0, "upper": 0}), names)
    several = found[found["sources"].str.contains(" + ", regex=False)]
    gist = ""
    if len(several):
        most = several.loc[several["entities"].idxmax()]
        gist = f"{most['entities']:,.1f} [{most['lower']:,.0f}, {most['upper']:,.0f}] in {most['sources']}"
    return Section("Between files", [words, Table(table, "Entities by the files they are in.")], gist)


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
    blocks: list[Any] = [words, Table(shown, "Scores of the estimate.")]
    if len(table):
        stated, seen = "probability of being one entity", "share that is of one entity"
        blocks += [figures.reliability_curve(table, "Calibration of the pairs", stated, seen), _of_pairs(table)]
    return Section("Against the known entities", blocks)


def _of_pairs(table: Any) -> Table:
    names = {
        "lower": "probability from", "upper": "to", "items": "pairs", "certainty": "mean probability",
        "right": "share of one entity", "right_lower": "95 % from", "right_upper": "to ",
    }  # fmt: skip
    return Table(table.rename(columns=names), "Pairs by probability, and how many are of one entity.")


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
    blocks: list[Any] = [words, Table(pandas.DataFrame(rows), "Scores of systems.")]
    if len(systems) > 1:
        ranked = compare(fit, systems, metrics[0], missing=missing, unknown=unknown)
        columns = {"rank": "rank", "system": "system", "value": metrics[0], "lower": "95 % from", "upper": "to"}
        columns |= {"sd_truth": "sd on these records", "sd_items": "sd from records", "p_best": "P(best)"}
        table = ranked.table.assign(p_best=ranked.p_best_texts)[list(columns)].rename(columns=columns)
        blocks += [Table(table, "Systems, best first."), figures.leaderboard(ranked)]
    return [Section("Scores of systems", blocks)]


def _true_number(fit: Any) -> int | None:
    entity = fit.data.entity
    if entity is None or np.any(np.asarray(entity) < 0):
        return None
    return int(np.count_nonzero(np.bincount(entity)))
