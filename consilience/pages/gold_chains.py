"""What a report says of systems beside gold chains, and of annotators beside the gold labels of mentions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.data import Chains
from consilience.data.mentions import MENTION_TYPES
from consilience.drawing import GREEN, legend_below, styled
from consilience.errors import InputWarning
from consilience.evaluation.agreement.jackknife import jackknife_sd, wilson
from consilience.evaluation.chains import value_of
from consilience.evaluation.coreference_scores import score_coreference
from consilience.evaluation.silver import silver_chains
from consilience.models.intervals import ends
from consilience.models.truth.against_gold import unused_gold
from consilience.models.truth.chains import NEW, follow_links, links_of
from consilience.pages import Section, Table, capital
from consilience.pages.by_document import LEAST, share_interval
from consilience.printing import counted, joined
from consilience.rounding import within, written


class GoldScores(NamedTuple):
    """Scores against gold chains.

    Parameters
    ----------
    scores : by system, and by metric.
    silver : of the most likely chains of the fit, by metric.
    documents, of : how many are known to the last mention, and how many there are.
    left_out : scores without each of these documents, by system and by metric.
    """

    scores: dict[str, dict[str, float]]
    silver: dict[str, float]
    documents: int
    of: int
    left_out: Mapping[str, Mapping[str, np.ndarray]]

    def interval(self, name: str, metric: str) -> tuple[float, float] | None:
        """Return the interval of a score for documents like these; None of too few of them."""
        found = _spread(self.scores[name][metric], self.left_out[name][metric])
        return found and (max(found[0], 0.0), min(found[1], 1.0))

    def text(self, name: str, metric: str) -> str:
        """Write a score, with its interval where it has one."""
        value, spread = self.scores[name][metric], self.interval(name, metric)
        if spread is None:
            return f"{value:.3f}"
        shown, low, high = within(value, *spread)
        return f"{shown} [{low}, {high}]"

    @property
    def how(self) -> str:
        """Say what is known of other documents."""
        if self.documents >= LEAST:
            return (
                "Intervals of scores against gold (95 %, jackknife) describe documents like these: each of the "
                f"{self.documents:,} is left out once."
            )
        few = "" if self.documents == 1 else f" (fewer than {LEAST})"
        give = "gives" if self.documents == 1 else "give"
        return f"{capital(counted(self.documents, 'documents'))}{few} {give} no interval for scores on other documents."

    def order(self, metric: str, names: Iterable[str]) -> list[str]:
        """Return systems, that with the highest score first; equal ones in the order in which they are given."""
        return sorted(names, key=lambda name: -self.scores[name][metric])

    def best(self, metric: str) -> str:
        """Return the system that has the highest score."""
        return max(self.scores, key=lambda name: self.scores[name][metric])

    def ahead(self, metric: str) -> str:
        """Say by how much the first system leads, where an interval tells; else what the second has. Empty of one."""
        if len(self.scores) == 1:
            return ""
        best, other, *_ = self.order(metric, self.scores)
        first, second = (self.scores[name][metric] for name in (best, other))
        if round(first, 3) == round(second, 3):  # as both are written
            return ", level with another system"
        if (spread := self.lead(metric)) is None:
            return f"; “{other}” scores {second:.3f}"
        low, high = (written(end, ".3f") for end in spread)
        return f", ahead by {first - second:.3f} ({low} to {high}, 95 %)"

    def lead(self, metric: str) -> tuple[float, float] | None:
        """Return the interval of the lead of the first of several systems; None of too few documents."""
        one, other, *_ = self.order(metric, self.scores)
        left_out = self.left_out[one][metric] - self.left_out[other][metric]
        return _spread(self.scores[one][metric] - self.scores[other][metric], left_out)

    def verdict(self, metric: str) -> str:
        """Say whether the first of several systems is better by gold; empty of one system."""
        if len(self.scores) == 1:
            return ""
        one, other, *_ = (f"“{name}”" for name in self.order(metric, self.scores))
        number = len(self.scores)
        which = f"whether system {one} or {other} is better" if number == 2 else (
            f"which of the first two of {number:,} systems is better, {one} or {other}"
        )  # fmt: skip
        if (spread := self.lead(metric)) is None:
            few = "one document is too little" if self.documents == 1 else f"{self.documents:,} documents are too few"
            return f"{few} to tell {which}"
        if spread[0] > 0:
            return f"system {one} scores higher than {other} against the gold chains"
        return f"the gold chains do not show {which}"

    def words(self, metric: str, named: str, meaning: str) -> str:
        """Say what systems and the crowd score.

        Parameters
        ----------
        metric : by its name in code.
        named, meaning : in words, and what it is, in brackets.
        """
        order = self.order(metric, self.scores)
        first, *others = (f"“{name}” {{}}{self.text(name, metric)}" for name in order)
        listed = joined([first.format("scores "), *(one.format("") for one in others)])
        which = "" if self.documents == self.of else (
            f", on the {self.documents:,} of {self.of:,} documents in which every mention has a gold label"
        )  # fmt: skip
        return (
            f"Against the gold chains, system {listed} in {named}{meaning}{which}. The model's own chains score "
            f"{self.silver[metric]:.3f}."
        )

    def otherwise(self, metric: str, named: str, table: Any, digits: int) -> list[str]:
        """Say, under a heading, which systems score more or less by gold than the crowd's intervals hold, if any.

        Parameters
        ----------
        metric, named : by its name in code, and in words.
        table : of the leaderboard by the crowd.
        digits : after the point, of its scores.
        """
        said, sides = [], set()
        for row in table.itertuples():
            if row.lower <= (score := self.scores[row.system][metric]) <= row.upper:
                continue
            sides.add("below" if score < row.lower else "above")
            value, low, high = (f"{one:.{digits}f}" for one in (row.value, row.lower, row.upper))
            said.append(
                f"“{row.system}” scores {score:.3f} in {named} against the gold chains, and {value} ({low} to {high}, "
                "nominal 95 %) against those of the crowd."
            )
            named = named.partition(" (")[0]  # which is explained once
        if not said:
            return []
        whose = "Gold scores" if len(said) == len(table) else f"Gold scores of {len(said)} of {len(table)} systems"
        by_gold = sorted(table["system"], key=lambda name: -self.scores[name][metric])
        order = f"the order of systems is {'the same' if by_gold == table['system'].tolist() else 'another'}"
        heading = f"{whose} lie {' or '.join(sorted(sides))} the intervals against the crowd"
        return [f"{heading}{f'; {order}' if len(table) > 1 else ''}.", *said]


def gold_entities(fit: Any) -> int | None:
    """Return how many entities the gold labels make that the fit did not use; None where not all mentions have one."""
    codes = unused_gold(fit.resolved)
    if codes is None or not len(codes) or (codes < 0).any():
        return None
    return int(follow_links(links_of(fit.data.label_codes())[codes][None])[0].max(initial=-1)) + 1


@styled
def mark_gold(ax: Any, scores: Sequence[float]) -> Any:
    """Mark the scores of systems against gold, in the order of its rows, in the figure of a leaderboard."""
    legend = ax.get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    marks = ax.plot(scores, np.arange(len(scores)), "D", color=GREEN, markersize=7, markeredgecolor="white", zorder=4)
    legend_below(ax, [*legend.legend_handles, *marks], [*names, "against gold"])
    low, high = ax.get_xlim()
    room = 0.05 * (high - low)
    ax.set_xlim(min(low, min(scores) - room), max(high, max(scores) + room))
    return ax


def gold_scores(fit: Any, systems: Mapping[str, Chains], metrics: Sequence[str], singletons: bool) -> GoldScores | None:
    """Score systems against the chains that gold labels make, where all mentions of a document have one."""
    data, codes = fit.data, unused_gold(fit.resolved)
    if codes is None:
        return None
    document, names = np.asarray(data.document), np.asarray(data.documents, object)
    known = np.bincount(document, codes < 0, data.num_documents) == 0
    own, place = known[document], np.cumsum(known) - 1
    if not own.any():
        return None
    entity = follow_links(links_of(data.label_codes())[np.maximum(codes, 0)][None])[0]
    spans = (np.asarray(values)[own] for values in (data.start, data.end, entity))
    key = Chains.from_spans(place[document[own]], *spans, documents=names[known])

    def summed(chains: Chains) -> dict[str, np.ndarray]:
        return score_coreference(key, chains, singletons=singletons).sums

    def scored(sums: Mapping[str, np.ndarray]) -> dict[str, float]:
        total = {base: parts.sum(axis=1, keepdims=True) for base, parts in sums.items()}
        return {metric: float(value_of(metric, total)[0]) for metric in metrics}

    def without_each(sums: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        rest = {base: parts.sum(axis=1, keepdims=True) - parts for base, parts in sums.items()}
        return {metric: np.asarray(value_of(metric, rest)) for metric in metrics}

    with warnings.catch_warnings():  # of documents without gold, that are left out
        warnings.simplefilter("ignore", InputWarning)
        sums = {name: summed(system) for name, system in systems.items()}
        silver = scored(summed(silver_chains(fit).to_chains()))
    found = {name: scored(own) for name, own in sums.items()}
    left_out = {name: without_each(own) for name, own in sums.items()}
    return GoldScores(found, silver, int(known.sum()), data.num_documents, left_out)


def _spread(value: float, left_out: np.ndarray) -> tuple[float, float] | None:
    """Return the interval of a score by those without each document; None of too few of them."""
    number = len(left_out)
    if number < LEAST or not np.isfinite(sd := jackknife_sd(left_out)):
        return None
    half = float(special.stdtrit(number - 1, ends()[1])) * sd
    return value - half, value + half


def annotators_by_gold(fit: Any) -> list[Section]:
    """Say how often each annotator is right on mentions with a gold label; nothing where there are none."""
    import pandas

    data = fit.data
    codes = unused_gold(fit.resolved) if data.unit == "mention" else None
    if codes is None or data.annotators is None:
        return []
    right, known = _right(data, codes)
    who = np.asarray(data.annotator)[known]
    number = np.bincount(who, minlength=data.num_annotators)
    hits = np.bincount(who, right[known], data.num_annotators)
    told = np.flatnonzero(number)
    order = told[np.lexsort([-number[told], hits[told] / number[told]])]
    where = np.asarray(data.document)[np.asarray(data.mention)]
    own = [known & (np.asarray(data.annotator) == code) for code in order.tolist()]
    low, high = np.array([share_interval(right[one], where[one]) for one in own]).T
    share = hits[order] / number[order]
    frame = pandas.DataFrame({
        "annotator": np.asarray(data.annotators, object)[order], "labels": number[order],
        "right": hits[order].astype(int), "share right": share, "95 % from": low, "to": high,
    })  # fmt: skip
    words = (
        f"How often each annotator is right on {counted(int((codes >= 0).sum()), 'mentions')} with a gold label. A "
        "link to any mention of the gold chain counts as right if the gold label is a link too; any other label must "
        f"equal the gold label. {_intervals(data, codes)} Gold labels can be wrong too."
    )
    parts = [(frame["annotator"].iloc[at], *within(share[at], low[at], high[at])) for at in (0, -1)[: len(order)]]
    gist = " to ".join(f"“{name}” {value} [{one}, {other}]" for name, value, one, other in parts)
    table = Table(frame, "Annotators, lowest share first.")
    return [Section("How right each annotator is", [words, table], f"right: {gist}")]


def _intervals(data: Any, codes: np.ndarray) -> str:
    """Say what intervals of annotators rest on."""
    if len(np.unique(np.asarray(data.document)[codes >= 0])) < LEAST:
        return (
            "Intervals (Wilson, 95 %) treat labels as independent and are too narrow if labels in a document depend on "
            "each other."
        )
    return (
        "Intervals (Wilson, 95 %) allow for labels of one document that depend on each other, for annotators with "
        f"{LEAST} documents or more; those of others are too narrow."
    )


def beside_gold_by_class(fit: Any, frame: Any) -> Any:
    """Return the table of annotators by class with the share of their labels that are right by gold labels.

    ``attrs["by_gold"]`` has it in words; the table stays as it is where the fit knows no gold labels that it did not
    use. The class is that of the gold label.
    """
    data, codes = fit.data, unused_gold(fit.resolved)
    if codes is None or data.annotators is None:
        return frame
    right, known = _right(data, codes)
    kind = data.label_codes().type[codes[np.asarray(data.mention)]]
    share, said = [], []
    names = list(map(str, data.annotators))
    for name, what in zip(map(str, frame["annotator"]), frame["class"], strict=True):
        own = known & (np.asarray(data.annotator) == names.index(name)) & (kind == MENTION_TYPES.index(what))
        number, hits = int(own.sum()), int(right[own].sum())
        share.append(hits / number if number else np.nan)
        said.append(f"{hits:,} of {number:,}" if number else "–")
    frame = frame.assign(**{"right by gold": share})
    frame.attrs["by_gold"] = said
    return frame


def right_by_annotator(fit: Any, names: Sequence[str]) -> str:
    """Say how many labels of some annotators are right by gold labels that the fit did not use; empty of none."""
    data, codes = fit.data, unused_gold(fit.resolved)
    if codes is None or data.annotators is None or data.rows != "annotation":
        return ""
    if data.unit == "mention":
        right, known = _right(data, codes)
    else:
        gold = codes[np.asarray(data.item)]
        right, known = np.asarray(data.label) == gold, gold >= 0
    told: list[str] = []
    for code, name in enumerate(map(str, data.annotators)):
        own = known & (np.asarray(data.annotator) == code)
        if name not in names or not (number := int(own.sum())):
            continue
        hits = int(right[own].sum())
        if data.unit == "mention":  # whose interval the section on annotators has, with what limits it
            are = "is right" if hits == 1 else "are right"
            told.append(f"{hits:,} of {number:,}{'' if told else ' labels'} of {name}{'' if told else f' {are}'}")
            continue
        share, low, high = within(hits / number, *map(float, wilson(hits / number, number)))
        labels, are, level = ("", "", "") if told else (" labels", " are right", ", 95 %")
        told.append(f"{hits:,} of {number:,}{labels} of {name}{are}, {share} ({low} to {high}{level})")
    by = "By the gold labels," if data.unit == "mention" else "By gold"
    return f" {by} {', '.join(told)}." if told else ""


def _right(data: Any, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return of each annotation whether it is right, and whether that is known."""
    labels, mention = data.label_codes(), np.asarray(data.mention)
    gold, links = codes[mention], links_of(labels)
    entity = follow_links(np.where(codes >= 0, links[np.maximum(codes, 0)], NEW)[None])[0]
    own, old = labels.label, labels.type == MENTION_TYPES.index("DO")
    both = old[own] & old[np.maximum(gold, 0)]
    same = entity[np.maximum(labels.antecedent[own], 0)] == entity[mention]
    return (own == gold) | (both & same), gold >= 0
