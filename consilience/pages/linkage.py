"""What a report says of linked records: how many entities, which records are uncertain, how right it is if known."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from consilience import figures, linkage_figures
from consilience.data import Partition
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.agreement.jackknife import wilson
from consilience.evaluation.comparison import compare
from consilience.evaluation.partition_scores import expected_scores, num_entities, score_partition
from consilience.evaluation.reliability import reliability_of_pairs
from consilience.models.intervals import ends
from consilience.models.truth.partitions import pairs_together
from consilience.models.truth.truth import PARTITION
from consilience.pages import MOST_ACTIONS, Action, Page, Section, Table
from consilience.pages.agreement_by_chance import Weighed, surer_links, surer_records, weighed
from consilience.pages.dates_in_parts import dates_to_split
from consilience.pages.linkage_first import first_figure, line_of_links, links_section
from consilience.pages.linkage_next import next_steps
from consilience.pages.links_found import among, found_of_all
from consilience.pages.links_within import between_and_within, in_doubt
from consilience.pages.record_pairs import fields_section, near_cut, review_list
from consilience.pages.run import kinds_of
from consilience.pages.typing_errors import typing_errors
from consilience.printing import counted, percent, percents
from consilience.rounding import decimals, probability, written

_NEARLY_ALL = 0.999  # Of all links.
_UNKNOWN = float("nan"), float("nan"), float("nan")  # mean and interval
_MANY_WRONG, _FEW_WRONG = 10, 0.1  # Links: from so many on as whole numbers, and fewer are not told apart.
_EVEN = 0.5           # The threshold from which on a pair is more probably a link than not.
_SHOWN_ENTITIES = 0.05  # Sizes of which fewer entities are expected are not shown.
_LINKS = {
    "threshold": "lowest log odds of a compared pair", "links_cut": "links in the pairs given up",
    "links_alike": "links in the pairs of records like others",
    "entities_corrected": "change in the number of entities due to links that were not compared",
    "disagreement": "links that differ in another number of fields than expected, as a share (0 is a perfect fit)",
    "largest_component": "records in the largest group that compared pairs connect",
}
_MOST_CLUSTERS = 10
_COUNTS = ("merge-moves", "merge-pairs")


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
    own, known = weighed(fit), _by_known(fit)
    actions = next_steps(fit, own, typing_errors(fit))
    return Page(
        f"Linkage of {counted(fit.data.num_records, 'records')}", line_of_links(fit),
        [*linkage_sections(fit, own), *system_sections(fit, systems, metric, **policies)],
        verdict=known or _account(fit, actions), numbers=_numbers(fit, own), figure=first_figure(fit),
        findings=[*_with_remedy(fit, own), *between_and_within(fit), *in_doubt(fit, surer_records(fit, own))],
        actions=actions, method=_by_pairs(fit),
    )  # fmt: skip


def _with_remedy(fit: Any, own: Weighed) -> list[str]:
    """Say which links are surer than stated, and what mends that, where the first step does."""
    split = bool(dates_to_split(own, kinds_of(fit.attributes.get("fields", ""))))
    return [f"{text}{' Splitting the date (step 1) repairs this.' * split}" for text in surer_links(fit, own)]


def _numbers(fit: Any, own: Weighed) -> dict[str, Any]:
    """Return the key figures: the interval of the entities only where it is one."""
    count, expected = num_entities(fit), expected_scores(fit)
    low, high = count.interval
    known = _known_interval(count)
    spread = f" ({low:,.0f} to {high:,.0f}, 95 %)" * known
    numbers: dict[str, Any] = {f"entities in the result{spread}": f"{count.point:,.0f}"}
    if not expected.predicted_pairs:
        return numbers | {"links": 0}
    links = "the one link" if expected.predicted_pairs == 1 else f"{expected.predicted_pairs:,} links"
    found, of = found_of_all(fit)
    none = f", {'in doubt' if count.doubt else 'without an interval'}"
    right, recall = _shares_of_draws(fit) if known else [_UNKNOWN] * 2
    size, fewer = expected.predicted_pairs, "; probably fewer, see Findings" * bool(surer_links(fit, own))
    spread = f" ({size * (1 - right[2]):,.0f} to {size * (1 - right[1]):,.0f}, 95 %)" if np.isfinite(right[1]) else none
    numbers[f"of {links} expected to be wrong{spread}{fewer}"] = _wrong(fit, right[0])
    name, known = f"of {of} expected to be found", np.isfinite(recall[1])
    numbers[f"{name} ({percents(*recall[1:])}, 95 %)" if known else f"{name}{none}"] = share_of(
        recall[0] if known else found
    )
    return numbers


def _wrong(fit: Any, right: float) -> str:
    """Write how many links are expected to be wrong; ``right`` is the share of draws, NaN where there is none."""
    expected = expected_scores(fit)
    number = expected.predicted_pairs * (1 - (right if np.isfinite(right) else expected.precision))
    return f"{number:,.0f}" if number >= _MANY_WRONG else f"{number:.1f}" if number >= _FEW_WRONG else f"< {_FEW_WRONG}"


def share_of(share: float) -> str:
    """Write a share in per cent; one that is below 1 is never all."""
    text = percent(share)
    return "> 99.9 %" if text == "100 %" and share < 1 else text


def _of_draws(shares: np.ndarray) -> tuple[float, float, float]:
    """Return the mean of a share over draws, and the ends of the interval that holds 95 % of them."""
    low, high = np.nanquantile(shares, ends())
    return float(np.nanmean(shares)), float(low), float(high)


def _shares_of_draws(fit: Any) -> list[tuple[float, float, float]]:
    """Return mean and interval of the shares of correct links and of links found, over the draws of the entities.

    NaN where the draws are no partitions, or are of other pairs than the share.
    """
    counted_in, size = fit.truth.counted().partitions, fit.data.num_records
    if counted_in is None:
        return [_UNKNOWN] * 2
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
    known = fits or fit.truth.found_share > _NEARLY_ALL
    return [_of_draws(common / len(one)), _of_draws(found) if known else _UNKNOWN]


def _seen_of_draws(fit: Any) -> list[tuple[float, float, float]]:
    """Return the same of the share of links found among those looked at, and of that of these among all links.

    Looked at is what has a probability in the estimate. NaN for the second where draws know nothing of other pairs, and
    for both where they are no partitions.
    """
    counted_in, pairs, size = fit.truth.counted().partitions, fit.truth.pairs(), fit.data.num_records
    if counted_in is None:
        return [_UNKNOWN] * 2
    one, other = np.divmod(pairs_together(fit.truth.estimate()), size)
    of_block = [
        ((own[:, one] == own[:, other]).sum(axis=1), (own[:, pairs.first] == own[:, pairs.second]).sum(axis=1))
        for own in (counted_in.clusters(draws) for draws in counted_in.draw_blocks())
    ]
    made, seen = (np.concatenate(numbers) for numbers in zip(*of_block, strict=True))
    by_size = counted_in.clusters_by_size()
    records = np.arange(1, by_size.shape[1] + 1)
    shares = (made / np.maximum(seen, 1), seen / np.maximum(by_size @ (records * (records - 1) // 2), 1))
    of_found, of_seen = map(_of_draws, shares)
    return [of_found, of_seen if counted_in is not fit.truth else _UNKNOWN]


def _by_threshold(fit: Any, thresholds: np.ndarray) -> dict[str, np.ndarray]:
    """Return means and intervals of precision and recall of the pairs above thresholds, over draws of the entities.

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
    means = {name: share.mean(axis=0) for name, share in found.items()}
    return means | {
        f"{name}_{end}": values
        for name, share in found.items()
        for end, values in zip(("lower", "upper"), np.quantile(share, ends(), axis=0), strict=True)
    }


def expected_words(fit: Any) -> str:
    """Say how right and how complete the links are, as the model expects, with what a page has; empty of no links."""
    expected, (found, of), doubt = expected_scores(fit), found_of_all(fit), num_entities(fit).doubt
    if not expected.predicted_pairs:
        return ""
    links = counted(expected.predicted_pairs, "linked pairs")
    drawn = _shares_of_draws(fit) if _known_interval(num_entities(fit)) else [_UNKNOWN] * 2
    if np.isfinite(drawn[0][1]) and np.isfinite(drawn[1][1]):
        (right, *ends_), (known, *others) = drawn
        return (
            f"{share_of(right)} of the {links} to be correct ({percents(*ends_)}, 95 %), and to have found "
            f"{share_of(known)} of {of} ({percents(*others)}, 95 %)"
        )
    seen = f" ({percent(expected.recall)} of those among the compared pairs)" if of == "all links" else ""
    return (
        f"{share_of(expected.precision)} of the {links} to be correct, and "
        f"to have found {share_of(found)} of {of}{seen}{f': {doubt}' if doubt else ''}"
    )


def _account(fit: Any, actions: Sequence[Action]) -> str:
    """Say what the links are good for: how right they are, as the model expects, and which steps come before use.

    Parameters
    ----------
    fit : of records.
    actions : the steps.
    """
    expected, count = expected_scores(fit), num_entities(fit)
    if not expected.predicted_pairs:
        return "The estimate joins no records."
    mean = _shares_of_draws(fit)[0][0] if _known_interval(count) else np.nan
    expect = _wrong(fit, mean).replace("< ", "fewer than ")
    links = "the one link" if expected.predicted_pairs == 1 else f"the {expected.predicted_pairs:,} links"
    if count.doubt:
        return f"Check {links} by hand before you use them: {count.doubt}."
    checked = "" if fit.data.entity is not None else ", but no known link confirms that"
    reviewed = any("review" in one.command for one in actions[:MOST_ACTIONS])
    before = " Decide the pairs in doubt before you use them." * reviewed
    return f"Treat {links} as a draft: the model expects {expect} of them to be wrong{checked}.{before}"


def _by_known(fit: Any) -> str:
    """Say how right and how complete the links are by the known entities, where those of all records are known."""
    if _true_number(fit) is None:
        return ""
    made, true = (pairs_together(np.asarray(entity)) for entity in (fit.truth.estimate(), fit.data.entity))
    right = len(np.intersect1d(made, true))
    if not right:
        return f"By the known entities none of {counted(len(made), 'links')} is correct."
    texts = []
    for links in (made, true):
        low, high = wilson(right / len(links), len(links))
        texts.append(f"{percent(right / len(links))} [{percents(float(low), float(high))}]")
    return (
        f"By the known entities, which the fit did not use, {texts[0]} of {counted(len(made), 'links')} are correct "
        f"and {texts[1]} of {len(true):,} true links are found (95 % Wilson intervals for independent links)."
    )


def _known_interval(count: Any) -> bool:
    return not (count.no_interval or count.doubt or count.links_alone)


def linkage_sections(fit: Any, own: Weighed) -> list[Section]:
    """Return the sections of a fit of records, and of what its fields weigh."""
    parts = [
        review_list(fit, surer_records(fit, own)), fields_section(fit, own), links_section(fit), _thresholds(fit),
        _unlinkable(fit), _number(fit), _known(fit), _lost(fit), _cleaning(fit), _patterns(fit),
    ]  # fmt: skip
    return [part for part in parts if part is not None]


def _number(fit: Any) -> Section:
    count, known = num_entities(fit), _true_number(fit)
    mean = linkage_figures.mean_number(count)
    sizes = count.table[count.table["entities"] >= _SHOWN_ENTITIES]
    names = {"size": "records of an entity", "entities": "entities, expected"}
    shown = Table(_renamed(_written(sizes, {"entities": 1}), names), "Sizes of entities.")
    least = _least_certain(fit)
    if count.no_interval or count.links_alone:
        why = count.no_interval or "the doubt about links is not all there is"
        sampler = "; use method=\"gibbs\"" if "gibbs" in fit.member.methods and fit.method != "gibbs" else ""
        method = {"em": "EM"}.get(fit.method, fit.method)
        words = f"Interval: not available by {method}, because {why}{sampler}."
        return Section("Clusters", [words, shown, *least], f"{mean} entities expected")
    low, high = count.interval
    beside = fit.truth.counted().partitions is not fit.truth and fit.data.candidate is None
    words = (
        f"{len(count.draws):,} posterior draws have {mean} entities on average, and {low:,.0f} to {high:,.0f} in 95 % "
        f"of them; the written result has {count.point:,.0f}. The interval "
        f"{f'is not to be trusted: {count.doubt}' if count.doubt else f'holds {count.how}'}."
    )
    if beside:
        words += (
            " These draws come from a separate run, which allows for doubt about what the estimate learned and "
            "compares more pairs of records. The pair probabilities, the match weights and the "
            f"{fit.draws:,} draws under “What was run”, on which systems are scored, come from the estimate."
        )
    drawn = linkage_figures.entity_histogram(count, known)
    gist = f"{count.point:,.0f} entities in the result, {low:,.0f} to {high:,.0f} in 95 % of draws"
    return Section("Clusters", [words, drawn, shown, *least], gist)


def _by_pairs(fit: Any) -> str:
    """Say how many links are correct by the probabilities of pairs, where the page has that of draws beside them."""
    if not expected_scores(fit).predicted_pairs or not _known_interval(num_entities(fit)):
        return ""
    (mean, low, _), own = _shares_of_draws(fit)[0], _wrong(fit, np.nan)
    if not np.isfinite(low) or own == _wrong(fit, mean):
        return ""
    return (
        f"The {_wrong(fit, mean)} wrong links of the first screen come from the draws under “Clusters”; the pair "
        f"probabilities of the estimate give {own}. Of the two, the first is the one to quote."
    )


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
    those = f"{len(shown):,} of the {counted(len(table), 'entities')}" if len(shown) < len(table) else "the entities"
    caption = f"The least certain entities: {those} with several records."
    every = f"“consilience table RUN matching_sets” has a row for each of the {fit.data.num_records:,} records."
    texts = {columns["probability"]: [near_cut(one) for one in shown[columns["probability"]]]}
    return [Table(shown, caption, texts=texts), every]


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
        "What the model expects if you link all pairs above a threshold: precision is the share of these pairs that is "
        f"correct, and recall the share that they are of the links {among(fit)}."
    )
    columns, texts = ["threshold", "pairs", "precision", "recall", "clusters"], {}
    if _known_interval(num_entities(fit)) and (spread := _by_threshold(fit, table["threshold"].to_numpy())):
        table = table.assign(**spread)
        words += (
            " Both are means of the draws under “Clusters”; bands and brackets cover 95 % of these draws."
        )
        texts = {
            name: _with_ends(table[[name, f"{name}_lower", f"{name}_upper"]].to_numpy())
            for name in ("precision", "recall")
        }
    shown = _rows_that_differ(table[columns].rename(columns={"clusters": "entities"}), texts)
    even = table.loc[(table["threshold"] - _EVEN).abs().idxmin()]
    gist = f"the model expects {share_of(even['precision'])} of pairs above {even['threshold']:g} to be correct"
    gist = gist if even["pairs"] else f"no pair has a probability of {even['threshold']:g} or more"
    return Section("Threshold curve", [words, linkage_figures.threshold_curves(table), shown], gist)


def _rows_that_differ(table: Any, texts: Mapping[str, Sequence[str]]) -> Table:
    """Tabulate thresholds, those in one row above which the same pairs are.

    Parameters
    ----------
    table : by threshold, with the column pairs.
    texts : by column, how its values are written.
    """
    pairs, threshold = table["pairs"].to_numpy(), table["threshold"].to_numpy()
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    last = np.append(first[1:], len(pairs)) - 1
    ranges = [
        f"{low:g}" if low == high else f"{low:g} to {high:g}".replace(" ", "\N{NO-BREAK SPACE}")
        for low, high in zip(threshold[first], threshold[last], strict=True)
    ]
    kept = {name: [values[row] for row in first.tolist()] for name, values in texts.items()} | {"threshold": ranges}
    return Table(table.iloc[first], "Thresholds.", texts=kept)


def _with_ends(rows: np.ndarray) -> list[str]:
    """Write shares with their intervals, as precisely as the widest allows; alone where draws hardly differ."""
    digits = max(2, min((decimals(low, high) for _, low, high in rows if high > low), default=3) - 1)
    texts = []
    for value, low, high in rows.tolist():
        text = probability(value, digits) if value < 1 else f"{value:.{digits}f}"
        ends_ = [f"{one:.{digits}f}" for one in (low, high)]
        spread = f" [{', '.join(ends_)}]" if ends_[0] != ends_[1] else ""
        texts.append(f"{text}{spread}".replace(" ", "\N{NO-BREAK SPACE}"))
    return texts


def _unlinkable(fit: Any) -> Section | None:
    if "unlinkable" not in fit.member.table_names:
        return None
    with contextlib.suppress(UnsupportedRequest):
        table = fit.table("unlinkable")
        even = float(np.interp(0, table["threshold"], table["share"], left=0, right=1))
        if not even:
            return None
        words = (
            "Records that would not be linked even with a copy of themselves, because their values are common or "
            "missing. The curve is the share of records whose log odds with a copy are below each value."
        )
        gist = f"{percent(even)} of records have a probability of 0.5 or less with a copy of themselves"
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
    """Show what the compared pairs leave out."""
    if "loss" not in fit.member.table_names or not len(table := fit.table("loss")):
        return None
    words = (
        "Only pairs of records that agree on enough fields are compared; leaving out the others is called blocking. "
        "The tables show which links the model expects to be made and missed. This is valid only if linked pairs look "
        "as the model predicts."
    )
    known = table.set_index("quantity")["value"]
    frame = table[~table["quantity"].isin(["found_share", "completed", "entities"]) & (table["value"] != 0)]
    if (table["value"][table["quantity"] == "completed"] == 1).any():
        words += " What the model learned from links includes links outside the compared pairs."
    words += " To quote, use the first and last share; the shares between them show where links are lost." * (
        expected_scores(fit).predicted_pairs > 0 and found_of_all(fit)[1] == "all links"
    )
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
    found = float(known.get("found_share", np.nan))
    if np.isfinite(found) and _known_interval(num_entities(fit)):  # as the table has it
        drawn, *_ = _seen_of_draws(fit)[1]
        found = drawn if np.isfinite(drawn) else found
    gist = f"the compared pairs are expected to contain {percent(found)} of all links" if np.isfinite(found) else ""
    shares, out = _shares(fit), Table(shown, "The compared pairs, and what they leave out.")
    return Section("Links made and missed", [words, *([shares] if shares else []), out], gist)


def _shares(fit: Any) -> Table | None:
    """Tabulate all shares of links side by side, each with what it is a share of."""
    import pandas

    expected, (found, of) = expected_scores(fit), found_of_all(fit)
    if not expected.predicted_pairs:
        return None
    spread = _shares_of_draws(fit) if _known_interval(num_entities(fit)) else [_UNKNOWN] * 2
    rows = [("correct links, of those made", expected.precision, spread[0])]
    if of == "all links":
        seen = _seen_of_draws(fit) if np.isfinite(spread[0][0]) else spread
        rows += [(f"links found, of the links {among(fit)}", expected.recall, seen[0]),
                 (f"links {among(fit)}, of all links", fit.truth.found_share, seen[1])]  # fmt: skip
    rows.append((f"links found, of {of}", found, spread[1]))
    drawn = all(np.isfinite(ends_[0]) for *_, ends_ in rows)
    texts = [
        {"what": what} | ({} if drawn else {"expected by the estimate": share_of(share)})
        | ({"mean of draws": percent(mean), "95 % of draws": percents(low, high)} if np.isfinite(mean) else {})
        for what, share, (mean, low, high) in rows
    ]  # fmt: skip
    frame = pandas.DataFrame(texts).fillna("–")
    frame.attrs["numbers"] = ("expected by the estimate", "mean of draws", "95 % of draws")
    caption = "How correct and how complete the model expects the links to be"
    own = fit.truth.counted().partitions is not fit.truth and any(np.isfinite(ends[0]) for *_, ends in rows)
    return Table(frame, f"{caption}; the draws are those under “Clusters”." if own else f"{caption}.")


def _cleaning(fit: Any) -> Section | None:
    if "cleaning" not in fit.attributes:
        return None
    words = (
        "How each column was read: its type, its distinct values, their forms after cleaning, and how many values are "
        "missing. Forms are compared; tables show the values as written. Categories are compared for equality; the "
        "order is that of year, month and day in a date."
    )
    table = fit.cleaning()
    gist = f"{counted(len(table), 'columns')}, {counted(int(table['missing'].sum()), 'values')} missing"
    return Section("Cleaning", [words, Table(table, "Columns as they were read.")], gist)


def _patterns(fit: Any) -> Section | None:
    if "patterns" not in fit.member.table_names or fit.data.num_sources == 1:
        return None
    words = "How many entities have records in exactly these files, over the draws under “Clusters”."
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
        "The entities of these records are known and were not used. Pairs count by their probability. The curve and "
        "the last table show, for each range of probabilities, how many pairs are one entity."
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
        "Scores over the posterior draws, valid if the model is right. A system that was made with this model looks "
        "better than it is."
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
