"""What a report says of pairs of records: those to review, how their odds come about, and what fields weigh."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from consilience import linkage_figures
from consilience.data import Records
from consilience.errors import UnsupportedRequest
from consilience.evaluation.readings import range_text
from consilience.models.intervals import ends
from consilience.models.truth.partitions import IN_DOUBT, pairs_together
from consilience.pages import Bar, Bars, More, Section, Table
from consilience.pages.agreement_by_chance import Weighed, in_detail, only_unsure
from consilience.pages.dates_in_parts import lines_that_split
from consilience.pages.run import kinds_of
from consilience.pages.systems import in_words
from consilience.printing import counted
from consilience.rounding import probability, written

DOUBTFUL = IN_DOUBT[1]  # Records whose entity is as certain as this are nothing to look at.
_MOST_GROUPS = 20
_MOST_AT_ONCE = 10  # groups; the others open on a click
SHOWN = IN_DOUBT[0]  # Records that belong to an uncertain one with less probability are shown only if none has more.
_MOST_WATERFALLS = 5
_TERMS = {"prior": "before comparing"}
_MIDDLE = "For comparison, a typical link: "
_NONE_BY_CHANCE = " The line “equal” of a field that the model expects to be equal by chance far too often has none."
_LOG_ODDS = "Log odds of 0 are a probability of 0.5, +3 is 0.95 and −3 is 0.05."


def review_list(fit: Any, surer: np.ndarray | None = None) -> Section | None:
    """Show the records that are least certain, each with those that it may belong to, field by field.

    Parameters
    ----------
    fit : of records.
    surer : which records are in links that are surer than stated; nothing is said of that by default.
    """
    import pandas

    doubtful = doubtful_records(fit)
    if not len(doubtful):
        return None
    data = fit.data
    groups, left_out = _groups(fit.truth.pairs(), doubtful, data.num_records)
    estimate = fit.truth.estimate()
    rows = [row for number, group in enumerate(groups, 1) for row in _group_rows(data, estimate, number, group)]
    words = (
        f"Only records in doubt are listed: the probability that their entity is exactly right is below {DOUBTFUL}. "
        "Each is followed by the records that may belong to the same entity, with that probability and the decision of "
        "the estimate. ≠ marks a value that differs from the first record, and – a missing value."
    )
    how = (
        f"First the pair in most doubt. {_LOG_ODDS} Read its bars from the top: the log odds start at those of two "
        "records neither of which belongs with a third, each field moves them, and the last bar is the sum. Blue bars "
        "speak for one entity, orange bars against it. The two shares before each number are how often the model "
        "expects this outcome among links and among other pairs with this value."
    )
    in_full = [
        "The model expects the two shares among links and among other pairs whose first record has this value: how "
        "often the second record has it too or, where the two differ, has another value. The shares under Match "
        "weights are counts over all values. Each field adds the logarithm of the first share over the second.",
        "The sum describes the two records alone. A third record that may belong with one of them, or a rule such as "
        "no entity twice in a file, can change the probability; the caption then gives both.",
    ]
    more = (
        f"{counted(left_out, 'further groups')} of records {'is' if left_out == 1 else 'are'} in doubt and not shown: "
        "see “consilience table RUN entities”."
    )
    frame = pandas.DataFrame(rows)
    frame = frame.drop(columns="file") if data.num_sources == 1 else frame
    frame.attrs["numbers"] = ("probability",)
    at_once = frame["group"] <= _MOST_AT_ONCE
    shown = Table(frame[at_once], "Records in doubt, in groups.", of="review", parted="group")
    rest = Table(frame[~at_once], "More records in doubt, in groups.", of="review", parted="group")
    further = [More(counted(len(groups) - _MOST_AT_ONCE, "more groups"), [rest])] if len(rest.frame) else []
    pairs = [(group[0][0], other) for group in groups for other, _ in group[1:2]]
    pairs = _distinct([most_in_doubt(fit), *pairs])[:_MOST_WATERFALLS]
    middle = _distinct([*pairs, *middle_link(fit)])[len(pairs) :]
    bars = _waterfalls(fit, pairs, middle)
    in_full += ["The last pair is a typical link: half of all links are at least as certain."] * bool(middle)
    told = [how, More("How the bars are computed", in_full)] if bars else []
    folded = [More(f"{counted(len(bars) - 1, 'more pairs')} explained", bars[1:])] if bars[1:] else []
    blocks = [*told[:1], *bars[:1], *told[1:], *folded, words, shown, *further, *([more] if left_out else [])]
    gist = f"{len(doubtful):,} of {counted(data.num_records, 'records')} in doubt (certainty below {DOUBTFUL})"
    known = 0 if surer is None else int(surer[doubtful].sum())
    gist += f"; {len(doubtful) - known:,} with equal values weighed as in Findings" * bool(known)
    return Section("Review list", blocks, gist)


def _distinct(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return pairs without those that come again, in whatever order of the two."""
    return [pair for place, pair in enumerate(pairs) if not {pair, pair[::-1]} & set(pairs[:place])]


def most_in_doubt(fit: Any) -> tuple[int, int]:
    """Return the pair whose probability of being one entity is nearest to one half; there is one with a probability."""
    pairs = fit.truth.pairs()
    place = int(np.abs(pairs.probability - 0.5).argmin())
    return int(pairs.first[place]), int(pairs.second[place])


def middle_link(fit: Any) -> list[tuple[int, int]]:
    """Return the link of the estimate of which half of the others are as sure or surer; nothing where there is none."""
    first, second = np.divmod(pairs_together(np.asarray(fit.truth.estimate())), fit.data.num_records)
    if not len(first):
        return []
    place = np.argsort(fit.truth.pairs().of(first, second), kind="stable")[len(first) // 2]
    return [(int(first[place]), int(second[place]))]


def _waterfalls(fit: Any, unsure: Sequence[tuple[int, int]], middle: Sequence[tuple[int, int]]) -> list[Bars]:
    """Show how the log odds of pairs come about, on one scale; nothing of a model that does not tell.

    Parameters
    ----------
    fit : of records.
    unsure, middle : pairs in doubt, and links that are not.
    """
    if not tells_pairs(fit):
        return []
    names = [(fit.data.records[one], fit.data.records[other]) for one, other in (*unsure, *middle)]
    before = [*[""] * len(unsure), *[_MIDDLE] * len(middle)]
    with contextlib.suppress(UnsupportedRequest):
        tables = [fit.measure("explain", one, other) for one, other in names]
        sums = np.concatenate([table["sum"].iloc[:-1] for table in tables] or [[0.0]])
        reach = sums[np.isfinite(sums)].min(initial=0.0), sums[np.isfinite(sums)].max(initial=0.0)
        return [_waterfall(*own, table, reach, first) for own, table, first in zip(names, tables, before, strict=True)]
    return []


def tells_pairs(fit: Any) -> bool:
    """Return whether there are pairs in doubt whose odds a page explains."""
    return "explain" in fit.member.measure_names and len(doubtful_records(fit)) > 0


def _odds(value: float) -> str:
    """Write log odds, and below them the probability."""
    chance = float(special.expit(value))
    return f"{written(value, '+g')}\n{range_text(chance, chance)}" if value else "0\n0.50"


def _signed(value: float) -> str:
    """Write log odds with their sign; none where they are nothing with so many digits."""
    return written(shown, "+.2f") if (shown := round(value, 2)) else "0.00"


def _two_digits(share: float) -> str:
    """Write a share of pairs with two digits after the zeros."""
    return f"{share:#.2g}" if share < 0.095 else f"{share:.2f}" if share < 0.995 else "> 0.99"


def _waterfall(one: Any, other: Any, table: Any, reach: Sequence[float], before: str) -> Bars:
    """Return the terms of a pair's log odds, one bar each from the sum before it; a missing field adds nothing.

    Parameters
    ----------
    one, other : the names of the records.
    table : how their log odds come about, a row for each term.
    reach : ends of the scale.
    before : the names, in the caption.
    """
    rows, begun = [], 0.0
    *terms, last = table.itertuples()
    for row in terms:
        values = row.value_a if row.outcome == "equal" else f"{row.value_a or '–'} | {row.value_b or '–'}"
        label = f"{row.term}: {values}" if row.outcome else _TERMS.get(row.term, str(row.term))
        shares = f"{_two_digits(row.m)} / {_two_digits(row.u)}, " if np.isfinite(row.m) else ""
        rows.append(Bar(label, row.sum, f"{shares}{_signed(row.log_odds)}", begun))
        begun = row.sum
    alone = terms[-1]
    rows.append(Bar("sum", alone.sum, _signed(alone.sum)))
    own, all_ = near_cut(alone.probability), near_cut(last.probability)
    caption = f"{before}{one} and {other}: log odds {_signed(alone.sum)}, probability {own}"
    caption += f" alone; {all_} with other records, the restriction and labels" * (own != all_)
    heads = ("field and values", "running log odds, with the probability", "links / others, added")
    return Bars(rows, f"{caption}.", heads, reach=reach, words=_odds)


def doubtful_records(fit: Any) -> np.ndarray:
    """Return the records whose entity is in doubt, as codes: those whose set of records is least certain first."""
    entropy, certain = fit.truth.entropy(), fit.truth.cluster_probability(fit.truth.estimate())
    order = np.argsort(-entropy, kind="stable")
    return order[certain[order] < DOUBTFUL]


def _groups(pairs: Any, doubtful: np.ndarray, num_records: int) -> tuple[list[list[tuple[int, float]]], int]:
    """Return doubtful records, each before those that it may belong to, with probabilities; and how many are left out.

    A record is in doubt because of others that are not surely with it: the likeliest of these is shown in any case.
    Groups that are left out are those of connected records none of which is in a group that is returned.
    """
    likely = pairs.probability > SHOWN
    first, second = pairs.first[likely], pairs.second[likely]
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(num_records, num_records))
    _, part = connected_components(graph, directed=False)
    groups: list[list[tuple[int, float]]] = []
    seen: set[int] = set()
    for record in doubtful.tolist():
        if record in seen:
            continue
        if len(groups) == _MOST_GROUPS:
            break
        beside = (pairs.first == record) | (pairs.second == record)
        others = np.where(pairs.first[beside] == record, pairs.second[beside], pairs.first[beside])
        own = pairs.probability[beside]
        order = np.argsort(-own, kind="stable")[: max((own > SHOWN).sum(), (own >= DOUBTFUL).sum() + 1)]
        groups.append([(record, 1.0), *zip(others[order].tolist(), own[order].tolist(), strict=True)])
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
    for record, known in group:
        is_head = record == head
        row = {"record": data.records[record]}
        for place, field in enumerate(data.fields):
            own, of_head = value_of(data, place, record), value_of(data, place, head)
            row[str(field)] = f"≠\N{NO-BREAK SPACE}{own}" if own and of_head and own != of_head else own or "–"
        row["probability"] = "–" if is_head else near_cut(known)
        row["estimate"] = "–" if is_head else _joined(estimate, head, record)
        if data.entity is not None:
            row["known"] = "–" if is_head else _joined(np.asarray(data.entity), head, record)
        rows.append(row | {"file": data.sources[int(data.source[record])], "group": number})
    return rows


def near_cut(chance: float) -> str:
    """Write the probability of a pair, with more digits where two would be one half or would not be in doubt."""
    if abs(chance - 0.5) < 0.01:
        return probability(chance, 3)
    return probability(chance, next(digits for digits in (2, 3, 4, 5, 2) if _as_doubtful(chance, digits)))


def _as_doubtful(chance: float, digits: int) -> bool:
    """Return whether a number with so many digits is below what is in doubt, as it is itself; or is not, as itself."""
    return (chance < DOUBTFUL) == (round(chance + 1e-9, digits) < DOUBTFUL)


def _joined(entity: np.ndarray, one: int, other: int) -> str:
    if entity[one] < 0 or entity[other] < 0:
        return "not known"
    return "joined" if entity[one] == entity[other] else "apart"


def value_of(data: Records, field: int, record: int) -> str:
    """Return the value of a record, empty where it is missing."""
    code = data.value[field, record]
    return data.values[data.first_value[field] + code] if code >= 0 else ""


def fields_section(fit: Any, own: Weighed) -> Section | None:
    """Show what fields say of pairs, with intervals, and what is known of each field."""
    if "fields" not in fit.member.table_names:
        return None
    words = (
        "For each field: the number of values, the records without one, and the estimated share of records in which an "
        "error replaced the true value (without an interval). "
    )
    similar = fit.attributes.get("similar")
    words += f"Values are compared for equality{f', except by similarity: {similar}' if similar else ''}."
    fields = fit.table("fields").rename(columns={"distortion": "share with an error"})
    texts = {"share with an error": [probability(value, 2) for value in fields["share with an error"]]}
    blocks: list[Any] = [words, Table(fields, "Fields.", of="fields", texts=texts)]
    title, gist = "Fields", ""
    if own.table is not None:
        blocks, title = [*_weights(fit, own), *blocks], "Match weights"
        gist = _says_most(own.table)
    return Section(title, blocks, gist)


def _says_most(weights: Any) -> str:
    """Say which field adds most where it is equal, as the table of weights has it; empty where none is told."""
    equal = weights[(weights["outcome"] == "equal") & np.isfinite(weights["weight"])]
    if not len(equal):
        return ""
    most = equal.loc[equal["weight"].idxmax()]
    return f"“{most['field']}” counts most where it is equal: {_signed(most['weight'])} for an average value"


def _weights(fit: Any, own: Weighed) -> list[Any]:
    """Show what each outcome of each field adds, and how many pairs show it."""
    links = float(fit.truth.pairs().probability.sum())
    weights = _with_intervals(own.table, links)
    misjudged = weights["field"].isin([one.field for one in own.overstated]) & (weights["outcome"] == "equal")
    weights.loc[misjudged, ["lower", "upper"]] = np.nan
    weights = weights[(weights["outcome"] != "missing") | (weights[["links", "others"]].sum(axis=1) > 0)]
    shares = {"links": "links, counted", "others": "other pairs, counted"}
    names = shares | {"weight": "adds on average", "lower": "95 % from", "upper": "to"}
    how = (
        "How much each field adds to the log odds of a match where it is equal or differs, averaged over its values; "
        "an equal rare value adds more. The table also shows how often this happens among links and among other "
        f"pairs, counting each pair by its probability. {'' if tells_pairs(fit) else f'{_LOG_ODDS} '}Ranges (95 %) "
        "cover only the uncertainty about the share of links; the full uncertainty is larger."
        f"{_NONE_BY_CHANCE if misjudged.any() else ''}"
    )
    text = {name: [probability(value, 2) for value in weights[name]] for name in shares}
    table = Table(
        weights[["field", "outcome", *names]].rename(columns=names), "Match weights by field and outcome.",
        of="weights", texts={shares[name]: words for name, words in text.items()},
    )  # fmt: skip
    kinds = kinds_of(fit.attributes.get("fields", ""))
    why = [*_of_model(weights), *in_detail(fit, own), *_by_prior(own)]
    notes = [More("Why the weights differ from the counted shares", why)] * bool(why)
    return [how, linkage_figures.weights_of_fields(weights), table, *lines_that_split(fit, own, kinds), *notes]


def _share(value: float) -> str:
    """Write a share; it is estimated, so none is nothing."""
    return f"{value:.3f}" if value >= 0.0005 else "< 0.001"


def _of_model(weights: Any) -> list[str]:
    """Say of which two shares weights are the logarithms."""
    known = weights[(weights["outcome"] == "equal") & np.isfinite(weights["weight"])]
    if not len(known):
        return []
    row = known.iloc[0]
    return [
        "The weight does not come from the counted shares. It is the logarithm of the ratio of the model's own shares, "
        f"for “{row['field']}” equal of {row['m']:.4f} / {row['u']:.4f}, which is {_signed(row['weight'])}. The prior "
        "on errors pulls the first share, and the second follows from how common each value is."
    ]


def _by_prior(own: Weighed) -> list[str]:
    """Say of which fields the model expects more errors in links than are counted, and where no sure link has one."""
    if not len(own.differing):
        return []
    return [
        f"The model expects linked records to differ more often than counted in {_apart(own.differing)}: its prior on "
        "errors outweighs the few differences. A difference there therefore counts less against a link than the counts "
        f"suggest.{only_unsure(own)}"
    ]


def _apart(weights: Any) -> str:
    """Name fields with the share that the model has and the one that is counted."""
    shares = zip(weights["field"], weights["m"], weights["links"], strict=True)
    return ", ".join(f"“{field}” ({_share(own)}, not {in_words(_share(other))})" for field, own, other in shares)


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
