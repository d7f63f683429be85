"""What a report says of a fit beside gold labels that it did not use: how right it is, and how sure it says to be."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from consilience import figures
from consilience.data import Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.reliability import (
    LEAST_PROBABILITY,
    CalibrationScore,
    equal_bins,
    gold_scores,
    reliability_table,
    score_by_gold,
)
from consilience.inference.fitting import Fit
from consilience.models.crowd.dependence import DEFAULT
from consilience.models.intervals import LEVEL
from consilience.models.truth.against_gold import LEAST_ITEMS, against_gold, hits
from consilience.notes import Level
from consilience.pages import Alert, More, Section, Table, by_document, capital
from consilience.pages.beside_a_vote import Voted, voted
from consilience.pages.looked import Choices, Looked, choices, looked
from consilience.pages.one_gold_label import Decisive, unnamed_gold
from consilience.pages.run import fit_word, is_vote
from consilience.pages.told_apart import mean_interval, sign_test
from consilience.pages.won import Won, wilson_ends, with_interval, won
from consilience.printing import article, counted
from consilience.rounding import decimals, p_value, probability, within, written

# Standard errors that a score by gold labels of some of the items is given.
_SPREADS = 2.0

_FEWEST_OUTSIDE = 5  # labels with a certainty that is not in the fullest bin

MOST_DIGITS, MOST_DIGITS_OF_A_VOTE = 4, 2
"""After the point, of scores; a vote is off by more than a third one."""

TITLE = "How right the model is"
"""Of the section on the fit beside gold labels."""

# Of the systems that a finding names, and of wrong labels; tables have all.
_MOST_NAMED, _MOST_WRONG = 4, 5


class BesideGold(NamedTuple):
    """A fit beside gold labels.

    Parameters
    ----------
    score : of the fit.
    table : of its reliability, by ten equal bins; see `consilience.evaluation.reliability.reliability_table`.
    curve : the same by bins that hold about as many items each.
    if_independent : mean certainty were errors of annotators independent; None where that is not another one.
    unit : what has a label.
    certainty : mean of all items.
    source : of the dependence; see `Dependence`.
    wrong : codes of the items of which another label is gold, and the certainties of theirs, the surest first.
    vote : what is right of labels that won a vote, where it is one.
    voted : what a majority vote makes of the same items; None where that is not asked.
    in_table : certainties of the wrong labels that the table of items has, in which their gold labels may have a part.
    ends : of the interval of the share of mentions that is right, by their documents; None of items.
    documents : how many these are.
    """

    score: CalibrationScore
    table: Any
    curve: Any
    if_independent: float | None
    unit: str = "item"
    certainty: float = float("nan")
    source: str = ""
    wrong: tuple[tuple[int, float], ...] = ()
    vote: Won | None = None
    in_table: tuple[float, ...] = ()
    voted: Voted | None = None
    ends: tuple[float, float] | None = None
    documents: int = 0

    @property
    def figures(self) -> dict[str, str]:
        """Key figures of the page."""
        if self.vote is not None:
            return self.vote.figures
        number = self.score.items
        of = f"gold labels matched; the fit expects {self.score.certainty * number:.1f}"
        return {of: f"{hits(self.score.right * number)} of {number:,}"}

    @property
    def interval(self) -> tuple[float, float]:
        """Of the share that is right (Wilson, 95 %), as far as items with a gold label stand for all."""
        return self.ends or wilson_ends(self.score.right, self.score.items)

    @property
    def right_text(self) -> str:
        """The share that is right, with its interval."""
        value, low, high = within(self.score.right, *self.interval)
        return f"{value} [{low}, {high}]"

    @property
    def of_documents(self) -> str:
        """Say what an interval of mentions rests on; empty of items."""
        if not self.documents:
            return ""
        return by_document.HOW if self.documents >= by_document.LEAST else by_document.TOO_FEW

    @property
    def beside(self) -> str:
        """Say whether the fit expects clearly more than is right, or less; empty where the interval holds it."""
        return f", so it is too {self.off} of these" * bool(self.off)

    @property
    def off(self) -> str:
        """What the fit is too much of: sure or unsure; empty where the interval holds what it expects."""
        low, high = self.interval
        return "" if low <= self.score.certainty <= high else "sure" if self.score.certainty > high else "unsure"

    @property
    def counts(self) -> str:
        """How many gold labels the fit matches, and how many it expects to."""
        number = self.score.items
        right = f"{hits(self.score.right * number)} of {counted(number, 'gold labels')}"
        return f"{right} ({self.score.certainty * number:.1f} expected)"

    @property
    def checked(self) -> str:
        """Say whether the certainties hold up on gold items; empty of a few, which hardly tell."""
        if self.score.items < LEAST_ITEMS:
            return ""
        return f"the fit is too {self.off}" if self.off else "the certainties hold up"

    @property
    def doubt(self) -> str:
        """Say that with the counts behind it."""
        right, expected = self.score.right * self.score.items, self.score.certainty * self.score.items
        return f"On gold items {self.checked} ({hits(right)} right, {expected:.1f} expected)" if self.checked else ""


def beside_gold(fit: Fit) -> BesideGold | None:
    """Return a fit beside the gold labels that it did not use; None where there are none."""
    if "calibration" not in fit.member.measured_tables:
        return None
    try:
        score, table = fit.measure("calibration_score"), fit.measure("calibration")
    except UnsupportedRequest:
        return None
    truth: Any = fit.truth
    found = against_gold(truth, fit.resolved)
    of_wrong = np.flatnonzero(found.right == 0)
    of_wrong = of_wrong[np.argsort(-found.certainty[of_wrong], kind="stable")]
    wrong = tuple(zip(found.item[of_wrong].tolist(), found.certainty[of_wrong].tolist(), strict=True))
    source = "" if truth.dependence is None else truth.dependence.source
    mean = float(truth.lead.certainty.mean())
    vote = won(fit, found) if is_vote(fit) else None
    shown = tuple(truth.lead.certainty[found.item[of_wrong]].tolist())
    ends, documents = by_document.of_mentions(fit.data, found)
    return BesideGold(
        score, table, reliability_table(found.certainty, found.right, equal_bins(found.certainty)),
        truth.certainty_if_independent, fit.data.unit, mean, source, wrong, vote, shown, voted(fit), ends, documents,
    )  # fmt: skip


def together_words(
    certainty: float, if_independent: float | None, dependence: float, learned_from: int, source: str, unit: str
) -> str:
    """Say by how much certainties are lowered for annotators who err together, and how that is known; empty if not.

    Parameters
    ----------
    certainty : mean of it.
    if_independent : the same were errors independent; None where that is not another one.
    dependence : by which it is lowered.
    learned_from : from how many gold labels; 0 where it was not.
    source : of the dependence; see `Dependence`.
    unit : what has a label.
    """
    if if_independent is None or not dependence > 0:
        return ""
    how = SOURCES.get(source, source)
    if learned_from:
        moved = "moved" if f"{dependence:.2f}" != f"{DEFAULT:.2f}" else "not moved"
        how = (
            f"{moved} by {counted(learned_from, 'gold labels')} from a prior of {DEFAULT:.2f}, which was chosen "
            f"because {_CROWDS}"
        )
    return (
        f" The mean certainty of all {unit}s is {certainty:.3f}; it would be {if_independent:.3f} if annotators erred "
        f"independently of each other. Dependence measures how often they make the same errors: at 0 they err "
        f"independently, and at 1 all labels of {article(unit)} {unit} tell no more than one. Here it is "
        f"{dependence:.2f}, {how}."
    )


_CROWDS = "nine public crowds have 0.20 to 0.63"
SOURCES = {
    "default": f"not learned from these data but assumed: {_CROWDS}",
    "given": "as you set it", "alert": "because nothing tells these labels from chance",
}  # fmt: skip
"""How the dependence is known, by its source."""


def gold_section(gold: BesideGold, names: Any, decisive: Decisive | None = None, unnamed: str = "") -> Section:
    """Return the section on how right the fit is, by what it says.

    Parameters
    ----------
    gold : the fit beside gold labels.
    names : of all items.
    decisive : the gold label that tells most of the dependence that was learned.
    unnamed : what there is to say of gold labels that nobody gave.
    """
    if gold.vote is not None:
        return _of_a_vote(gold, gold.vote, names, unnamed)
    score = gold.score
    right = hits(score.right * score.items)
    of = f"the gold labels of {counted(score.items, f'{gold.unit}s')}"
    used = f"From {of} the fit learned only how far annotators err together" if score.fitted_on else (
        f"The fit did not use {of}"
    )
    said = (
        f"{used}. Its label is right for {right} of them ({gold.right_text}, 95 % interval), and its certainty "
        f"averages {score.certainty:.3f} on them{gold.beside}.{gold.of_documents}"
    )
    if "." in right:
        said += " Where labels tie, each counts by its share: as often as one of them, taken at random, is right."
    if gold.wrong:
        stated = "the certainty"
        if score.fitted_on:
            stated += f" in the table of {gold.unit}s and, in brackets, without the {gold.unit}'s gold label"
        said += f" Wrong labels, with {stated}: {_listed(gold, names)}."
    said += "" if gold.voted is None else gold.voted.words(names)
    of_gold = [unnamed.strip()] * bool(unnamed)
    together = _of_dependence(gold, names, decisive)
    if not _tell_apart(gold.table):
        few = "There are too few labels of different certainties for a curve. Gold labels may also be wrong."
        return Section(TITLE, [said, *of_gold, few, *together], f"right {gold.right_text}")
    # No term of its sum is above that of the floor, and none is below zero.
    floored = score.log_score * score.items >= -np.log(LEAST_PROBABILITY)
    floor = f" (a probability below {LEAST_PROBABILITY:f} counts as that, or it could be infinite)" if floored else ""
    how = (
        f"The expected calibration error, the average distance between the certainty and the share that is right, is "
        f"{score.ece:.3f} (ten bins of equal width). With {counted(score.items, f'{gold.unit}s')}, chance alone would "
        f"give {_by_chance(gold.table):.3f} even if all certainties were right. The log score is "
        f"{score.log_score:.3f}{floor}: the mean of −ln p, where p is the probability that the fit gave the gold "
        f"label. The Brier score is {score.brier:.3f}: the squared distance of the probabilities from 1 for the gold "
        "label and 0 for the others, summed over labels and averaged. For all three, lower is better."
    )
    read = (
        "In the figure, dots below the line are labels that the fit is too certain of. Each dot stands for "
        f"{counted(int(gold.curve['items'].min()), f'{gold.unit}s')} or more; the bars are 95 % intervals (Wilson). "
        "Gold labels may also be wrong: all this measures agreement with them."
    )
    names = {
        "lower": "certainty from", "upper": "up to", "items": f"{gold.unit}s", "certainty": "mean certainty",
        "right": "right", "right_lower": "95 % from", "right_upper": "to",
    }  # fmt: skip
    curve = figures.reliability_curve(
        gold.curve, "Are the certainties right?", "certainty of the label", "share that match the gold label"
    )
    table = Table(gold.curve.rename(columns=names), "Labels by certainty, and the share that is right.")
    more = More("The figure in numbers, and scores of calibration", [table, how])
    blocks = [said, *of_gold, read, curve, *together, more]
    return Section(TITLE, blocks, f"matches {gold.counts}")


def _of_dependence(gold: BesideGold, names: Any, decisive: Decisive | None) -> list[Any]:
    """Return what gold labels tell of how far annotators err together; nothing where certainties suppose nothing."""
    score = gold.score
    words = together_words(
        gold.certainty, gold.if_independent, score.dependence, score.fitted_on, gold.source, gold.unit
    )  # fmt: skip
    words += "" if decisive is None else decisive.words(names)
    if score.fitted_on:
        words += f" Each {gold.unit} is scored with a dependence that was learned without its own gold label."
    return [More("How far annotators err together", [words.strip()])] if words else []


def _tell_apart(table: Any) -> bool:
    """Return whether enough labels are outside the fullest bin of certainties to be compared with those in it."""
    return bool(table["items"].sum() - table["items"].max() >= _FEWEST_OUTSIDE)


def _listed(gold: BesideGold, names: Any) -> str:
    """Name the items of which another label is gold, with the certainty of theirs where they have one."""
    listed = []
    for place, (item, certainty) in enumerate(gold.wrong[:_MOST_WRONG]):
        shown = f" {probability(gold.in_table[place], 2)}" * bool(gold.score.fitted_on)
        listed.append(f"{names[item]}{shown}{f' ({probability(certainty, 2)})' if gold.vote is None else ''}")
    more = [f"{len(gold.wrong) - _MOST_WRONG:,} more"] if len(gold.wrong) > _MOST_WRONG else []
    return ", ".join([*listed, *more])


def _of_a_vote(gold: BesideGold, vote: Won, names: Any, unnamed: str) -> Section:
    """Return the section on how often labels that won are right: by their share of the votes, which are no certainties.

    Ties are not scored: one of the tied labels at random would be right or not by luck.
    """
    words = f"{vote.words}.{vote.untied(gold.unit)}"
    if gold.wrong:
        words += f" Wrong: {_listed(gold, names)}."
    of_gold = [unnamed.strip()] * bool(unnamed)
    if not len(vote.right):
        return Section("How right the vote is", [words, *of_gold], "all are tied")
    how = (
        "Intervals are 95 % intervals (Wilson) if the items with gold labels are a random sample. Gold labels may "
        "also be wrong: all this measures agreement with them."
    )
    columns = {
        "certainty": "mean share of votes", "items": f"{gold.unit}s", "right": "right",
        "right_lower": "95 % from", "right_upper": "to",
    }  # fmt: skip
    table = reliability_table(vote.share, vote.right)[list(columns)].rename(columns=columns)
    without = " (ties left out)" * bool(vote.ties)
    caption = f"Labels that won{without}, by their share of the votes, and the share that is right."
    return Section("How right the vote is", [words, *of_gold, how, Table(table, caption)], f"right {vote.won}")


def _by_chance(table: Any) -> float:
    """Return the expected calibration error that chance alone would make, by the normal law in each bin."""
    spread = np.sqrt(table["certainty"] * (1 - table["certainty"]) / table["items"] * 2 / np.pi)
    return float(np.average(spread, weights=table["items"]))


class Right(NamedTuple):
    """For which gold labels the first choice of a system is right.

    Parameters
    ----------
    each : float64, shape ``(item,)``; 1 where it is, 0 where not, a part where predictions tie.
    stated : the same by what annotators make probable, of predictions made from them; None where that is not known.
    """

    each: np.ndarray
    stated: np.ndarray | None = None

    @property
    def items(self) -> int:
        """How many gold labels there are."""
        return len(self.each)

    @property
    def share(self) -> float:
        """The share that is right."""
        return float(self.each.mean())

    @property
    def above(self) -> tuple[float, float, float] | None:
        """How much more is right by gold labels than by annotators, paired, with its interval; None where all alike."""
        return None if self.stated is None else mean_interval(self.each - self.stated)

    @property
    def interval(self) -> tuple[float, float]:
        """Of that share (Wilson, 95 %), as far as items with a gold label stand for all."""
        return wilson_ends(self.share, self.items)

    @property
    def words(self) -> str:
        """Of how many labels how many are right, in words."""
        return f"{hits(self.each.sum())} of {self.items:,}"

    def __str__(self) -> str:
        return with_interval(self.share, self.items)


_MOST_EQUAL = 2  # systems that are named where they are right as often


class SystemsByGold(NamedTuple):
    """Systems beside gold labels.

    Parameters
    ----------
    right : by system, the one first that is right most often.
    leads : whether they are the headline: enough labels, and the first choice is what was asked for.
    said : what the systems say first, of each item.
    looked : what that tells of whether they looked at the items themselves.
    anchored : the systems by gold labels and annotations together, where that tells more than either.
    doubt : a sentence on what speaks against the probabilities of the fit.
    """

    right: Mapping[str, Right] = MappingProxyType({})
    leads: bool = False
    said: Choices | None = None
    looked: tuple[Looked, ...] = ()
    anchored: Comparison | None = None
    doubt: str = ""

    def with_both(self, anchored: Comparison | None) -> SystemsByGold:
        """Return the same with the systems by both, in whose order those stand that are right as often."""
        if anchored is None:
            return self
        names = anchored.table["system"].tolist()
        right = sorted(self.right.items(), key=lambda one: (-one[1].share, names.index(one[0])))
        return self._replace(anchored=anchored, right=dict(right))

    def order(self, comparison: Comparison) -> list[str]:
        """Return the systems, the best first, as all of a page has them: by both, by gold labels, or by the fit."""
        if self.leads and self.anchored is None:
            return list(self.right)
        return (self.anchored or comparison).table["system"].tolist()

    @property
    def first(self) -> str:
        """Who is right most often, in words: one system, or those that are so on as many."""
        most = max(one.share for one in self.right.values())
        named = [f"“{name}”" for name, one in self.right.items() if one.share == most]
        return " and ".join(named) if len(named) <= _MOST_EQUAL else f"each of {len(named)} systems"

    @property
    def equal(self) -> bool:
        """Whether all are right as often."""
        return len(self.right) > 1 and len({one.share for one in self.right.values()}) == 1

    @property
    def tied(self) -> bool:
        """Whether the first two are right as often."""
        return len({one.share for one in list(self.right.values())[:2]}) < min(len(self.right), 2)

    @property
    def labels(self) -> str:
        """How many gold labels there are, in words."""
        return counted(self.number, "gold labels")

    @property
    def number(self) -> int:
        """How many gold labels there are."""
        return max((one.items for one in self.right.values()), default=0)

    def __str__(self) -> str:
        if self.equal:
            own, is_ = next(iter(self.right.values())), "are each" if len(self.right) <= _MOST_EQUAL else "is"
            words = f"{capital(self.first)} {is_} right on {own.words} gold labels"
            if not self.leads:
                return words
            if self.anchored is not None:
                return f"{words}. {_told_apart(self.right, brief=True)}"
            held = "with a 95 % interval in brackets, if these items are a random sample"
            return f"{words} ({own}, {held}). {_told_apart(self.right)}"
        named = [
            f"“{name}” {one.words}{f' ({one})' if self.leads and self.anchored is None else ''}"
            for name, one in itertools.islice(self.right.items(), _MOST_NAMED)
        ]
        if not self.leads:
            return f"Right on gold labels: {', '.join(named)}"
        words = f"Right on gold labels: {', '.join(named)}"
        sampled = ", with 95 % intervals in brackets, if these items are a random sample"
        words += sampled * (self.anchored is None)
        brief = self.anchored is not None
        return f"{words}. {_told_apart(self.right, brief=brief)}" if len(self.right) > 1 else words


def _told_apart(right: Mapping[str, Right], *, brief: bool = False) -> str:
    """Say whether the first system is more often right than the second on the same items, by the sign test.

    Parameters
    ----------
    right : of the systems, the first two of which are compared.
    brief : whether that it is not told is said elsewhere.
    """
    (first, own), (second, other) = itertools.islice(right.items(), 2)
    more, less = int((own.each > other.each).sum()), int((own.each < other.each).sum())
    if not more + less:
        return f"“{first}” and “{second}” are right on the same gold labels"
    chance = sign_test(own.each, other.each)
    words = f"“{first}” alone is right on {more:,} of them, and “{second}” alone on {less:,}"
    if chance >= 1 - LEVEL:
        return f"{words}, which does not show which system is better" if not brief else words
    return f"{words}, which is more than chance would explain ({p_value(chance)})"


def right_by_gold(
    fit: Fit, gold: BesideGold | None, comparison: Comparison, systems: Mapping[str, Predictions], metric: Any,
    policies: Mapping[str, Any],
) -> SystemsByGold:  # fmt: skip
    """Return for which gold labels the first choice of each system is right; of none where nothing is known.

    Parameters
    ----------
    fit, gold, comparison, systems, metric, policies : as in `gold_alerts`; of systems that are right as often, the one
        that the comparison has first comes first.
    """
    if gold is None:
        return SystemsByGold()
    try:
        names = comparison.table["system"].tolist()
        scores, known = gold_scores(fit, [systems[name] for name in names], "top-1", **policies)
    except UnsupportedRequest:
        return SystemsByGold()
    if not known.any():
        return SystemsByGold()
    right = {name: Right(own) for name, own in zip(names, scores[:, known], strict=True)}
    right = dict(sorted(right.items(), key=lambda one: -one[1].share))
    unknown = [name for name, word in zip(systems, comparison.provenance, strict=True) if word == "unknown"]
    said = choices(fit, {name: systems[name] for name in right}, policies)
    if said is not None:
        stated = {name: evaluate(fit, systems[name], "top-1", **policies).items[said.place[known]] for name in right}
        right = {name: own._replace(stated=stated[name]) for name, own in right.items()}
    leads = bool(known.sum() >= LEAST_ITEMS) and metric.name == "top-1"
    return SystemsByGold(right, leads, said, looked(fit, said, unknown, unnamed_gold(fit)))


def gold_alerts(
    fit: Fit, gold: BesideGold | None, comparison: Comparison, systems: Mapping[str, Predictions], metric: Any,
    policies: Mapping[str, Any],
) -> list[Alert]:  # fmt: skip
    """Return an alert on the systems whose interval does not hold their score by gold labels.

    Where some items have no gold label, the score by those that do is given two standard errors of such a sample.

    Parameters
    ----------
    fit, gold : the fit, and what it is beside gold labels.
    comparison : of the systems.
    systems, metric, policies : that were compared, by what and how.
    """
    if gold is None:
        return []
    try:
        scores = score_by_gold(fit, systems, metric, **policies)
    except UnsupportedRequest:  # the metric asks for more than a label
        return []
    texts = []
    for row in comparison.table.itertuples():
        own = scores.get(row.system)
        if own is None or row.lower - _SPREADS * own.spread <= own.value <= row.upper + _SPREADS * own.spread:
            continue
        digits = min(decimals(row.lower, row.upper), MOST_DIGITS_OF_A_VOTE if is_vote(fit) else MOST_DIGITS)
        low, high = (written(one, f"z.{digits}f") for one in (row.lower, row.upper))
        value = comparison.value_texts(digits)[row.Index].replace("–", " to ")
        holds = f"at least as uncertain as {low} to {high}" if is_vote(fit) else f"with 95 % between {low} and {high}"
        texts.append(
            f"“{row.system}” scores {own.value:.{digits}f} against the gold labels of {counted(own.items, 'items')}, "
            f"and {'less' if row.upper < own.value else 'more'} by the {fit_word(fit)}: {value}, {holds}."
        )
    return [Alert("The gold labels say otherwise.", texts, Level.warning)] if texts else []
