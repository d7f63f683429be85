"""What a report says of the items: how certain each is, and what it was given, the least certain first."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from consilience import figures
from consilience.evaluation.scores import Score
from consilience.inference.fitting import Fit
from consilience.models.intervals import ends
from consilience.models.majority_vote import as_annotations
from consilience.models.truth.entries import most_frequent
from consilience.models.truth.truth import Ranked, Shares
from consilience.pages import MOST_ROWS, SURE, Bar, Bars, More, Section, Table, capital
from consilience.pages.run import is_counted, is_vote
from consilience.printing import article, counted
from consilience.rounding import probability, reaches

# Classes that the table names for each item, bars of the items that are drawn, bars of each, and lines of a detail.
_LEADING, _DRAWN, _BARS, _LINES = 3, 3, 8, 40
_NAMED = 4  # items in a sentence

_THROUGHOUT = f"{SURE:g} or more throughout"

# Mean plausibilities below this are not shown; items above this are as good as decided.
_LEAST_SHOWN, _HALF_UP = 0.005, 1e-9

MOST_BARS = 100
"""Bars of a figure of items or annotators."""

_TWO_SIDES = 1.96  # standard deviations to the ends of 95 %

_SHOWN = 0.0005  # of a certainty with three digits
_EXAMPLE = 0.8  # of a certainty, whose error is told

_MANY_DRAWS = 1_000
_TELL_99 = 300      # Effective draws that tell 0.99 from 1, by the rule of three.

_KINDS = (
    "“New” (discourse-new, DN in the data) is the first mention of something. An arrow (discourse-old, DO) leads to an "
    "earlier mention of the same thing. “Property of” (PR) says something of an earlier mention, and “refers to "
    "nothing” (NR) is no mention of a thing."
)
"""What labels of mentions stand for."""


def below(score: Score, bound: float = SURE) -> int:
    """Return how many items have a certainty below a bound."""
    return int((~reaches(score.items[np.isfinite(score.items)], bound)).sum())


def class_word(fit: Fit) -> str:
    """Return what a class is called: of annotations a label, of rankings and ratings a class."""
    return "label" if fit.data.rows == "annotation" else "class"


def items_section(
    fit: Fit, truth: Any, certainties: list[Score], annotators: Any, ties: np.ndarray, high: float = 0.0,
    more: Sequence[Any] = (),
) -> Section:  # fmt: skip
    """Return the section on the items of a fit.

    Parameters
    ----------
    fit : of classes.
    truth : of the fit.
    certainties : of the top 1, 2, … classes.
    annotators : the table of the annotators.
    ties : places of items of which the draws do not tell which of two classes leads; see `near_ties`.
    high : by how much the first certainties are too high; see `too_high`.
    more : what else there is to say of certainties.
    """
    best, unit, vote = certainties[0], fit.data.unit, is_vote(fit)
    blocks: list[Any] = [_of_votes(best, truth, unit) if vote else _trust(fit, best, truth)]
    if truth.num_draws > 1 and not vote:
        curves = {f"top {number}": score for number, score in enumerate(certainties, 1)}
        histogram = [figures.certainty_histogram(best, unit=unit)] * (len(certainties) == 1)
        blocks.append([figures.sorted_certainty(curves, unit=unit), *histogram])
        if len(certainties) > 1:
            table = certainty_table(certainties, f"Certainty over all {unit}s.", unit, digits_for(fit, best, truth))
            blocks.append(More("Certainty of the top 2 classes and more", [table]))
    blocks += more
    blocks += [_KINDS] if unit == "mention" else []
    margins = _margins(fit) if vote else None
    reports, shown = None, np.argsort(best.items if margins is None else margins, kind="stable")
    shown = shown[np.isfinite(best.items[shown])][:MOST_ROWS]
    if fit.data.rows == "report":
        reports = _Reports(fit.data, shown)
        blocks.append(
            f"In rankings, “>” means “above”{' and “=” means a tie' * reports.any_tied}; classes that are not named "
            f"rank below all others. “2 ×” marks a ranking that two annotators gave.{_never_named(truth, shown)}"
        )
    blocks.append(_table(fit, truth, certainties, annotators, shown, reports, margins))
    if reports is not None:
        drawn: list[Any] = []
        for item in shown[:_DRAWN].tolist():
            drawn += [_plausibilities(truth, item), reports.table(item, str(truth.names()[item]))]
        number = min(_DRAWN, len(shown))
        blocks.append(More(f"How plausible each class is for the {counted(number, 'least certain items')}", drawn))
    how = how_counted(best, truth, f"top {class_word(fit)}", high, effective_draws(fit, best))
    if tied := named_items(truth, ties, unit):
        what = "labels" if class_word(fit) == "label" else "classes"
        how += f" For {tied}, the draws do not show which of two {what} leads: treat them as ties."
    blocks += [] if vote else [how + _by_dependence(truth, best)]
    of = counted(truth.num_units, f"{unit}s")
    gist = f"{below(best, 1):,} of {of} tied" if vote else f"{below(best):,} of {of} with a certainty below {SURE}"
    return Section(f"{unit.capitalize()}s", blocks, "" if truth.num_draws == 1 else gist)


def _never_named(truth: Any, shown: np.ndarray) -> str:
    """Say so where a class that nobody named in an item has no plausibility there by the model; else nothing."""
    found = truth.mean_shares(shown[:_DRAWN].tolist())
    if any(len(codes) < truth.num_classes and mean.sum() > 1 - _HALF_UP for codes, mean in found):
        return " By this model, a class that nobody named in an item has a plausibility of 0 there."
    return ""


def _of_votes(best: Score, truth: Any, unit: str) -> str:
    return (
        f"The vote leaves {below(best, 1):,} of {counted(truth.num_units, f'{unit}s')} open, because they are tied, "
        "and treats every other label as certain. A narrow margin is the only sign of doubt."
    )


def effective_draws(fit: Fit, found: Any) -> float:
    """Return how many effective draws shares were counted among, by the fit's worst quantity; infinite if none.

    ``found`` has the ``draws``: none in closed form, and one of a point, of which no share was counted.
    """
    drawn = len(found.draws)
    return np.inf if drawn < 2 else drawn if fit.worst is None else min(drawn, fit.worst.size)


def _trust(fit: Fit, best: Score, truth: Any) -> str:
    unit, word = fit.data.unit, class_word(fit)
    if truth.num_draws == 1:
        return (
            f"This model gives a point estimate, one truth without uncertainty, so the certainty of every {unit} is 1. "
            "This is a property of the method and says nothing about how well the annotators agree; a model with "
            "draws of the truth would."
        )
    certain = f"the probability of its most probable {word}"
    if truth.answers(Shares()):
        certain = (
            f"the probability that its leading {word} is the most plausible one; in the figure, for the top 2 or "
            "more, that the same set leads, in any order"
        )
    # Of few draws none can tell 0.99 from 1.
    sure = f"{below(best, 0.99):,} are below 0.99 and " if effective_draws(fit, best) >= _TELL_99 else ""
    return (
        f"The certainty of {article(unit)} {unit} is {certain}. For the top {word} it is "
        f"{best.value:.{digits_for(fit, best, truth)}f} on average; of {counted(truth.num_units, f'{unit}s')}, {sure}"
        f"{below(best):,} {'' if sure else 'is ' if below(best) == 1 else 'are '}below {SURE}."
    )


def too_high(best: Score, truth: Any) -> float:
    """Return by how much certainties are too high on average, being the largest of frequencies; 0 in closed form.

    One half of the draws chooses the class that leads, and the other half counts it: that has no such error, and is
    too low where half of the draws choose worse than all.
    """
    if truth.num_draws == 1 or not len(best.draws):
        return 0.0
    shares = []
    for block in truth.blocks(Ranked(1)):
        first, second = np.array_split(block.real[..., 0], 2, axis=1)
        counted_by_other = [
            (others == most_frequent(chosen)[0][:, None]).mean(axis=1)
            for chosen, others in ((first, second), (second, first))
        ]
        shares.append(np.mean(counted_by_other, axis=0))
    return max(float(np.nanmean(best.items - np.concatenate(shares))), 0.0)


def near_ties(truth: Any, best: Score, draws: float) -> np.ndarray:
    """Return the places of items whose two leading classes are so equally often that the draws do not tell which.

    Frequencies among so many effective ``draws`` differ by less than 1.96 standard errors of their difference. In
    closed form there are none.
    """
    if truth.num_draws == 1 or not len(best.draws):
        return np.zeros(0, int)
    apart = np.full(truth.num_units, np.inf)
    for block in truth.blocks(Ranked(1)):
        codes = np.asarray(block.real[..., 0], np.int64)
        first, most = most_frequent(codes)
        # Draws of the first one become values of their own, so that the next one is the most frequent.
        others = np.where(codes == first[:, None], -2 - np.arange(codes.shape[1]), codes)
        next_ = most_frequent(others)[1]
        error = np.sqrt(np.maximum(most + next_ - np.square(most - next_), 0.0) / max(draws, 1))
        apart[block.units] = (most - next_) - _TWO_SIDES * error
    return np.flatnonzero(np.isfinite(best.items) & (apart < 0))


def named_items(truth: Any, places: np.ndarray, unit: str) -> str:
    """Name items, or say how many they are where they are many; nothing of none."""
    if len(places) > _NAMED:
        return counted(len(places), f"{unit}s")
    names = [f"“{truth.names()[place]}”" for place in places.tolist()]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def how_counted(best: Score, truth: Any, what: str, high: float = 0.0, draws: float = np.inf) -> str:
    """Say how certainties were counted, and what that is worth.

    Parameters
    ----------
    best, truth : certainties, and the truth that they are of.
    what : has them, in words.
    high : by how much they are too high; see `too_high`.
    draws : how many independent ones they are worth at least.
    """
    if truth.num_draws == 1:
        return ""
    if not len(best.draws):
        return f"Certainties of the {what} were computed in closed form, without draws; they are right if the fit is."
    by = f"up to {high:.3f}" if high >= _SHOWN else "less than 0.001"
    return (
        f"Certainties were counted over {truth.num_draws:,} draws of the truth{worth_of(truth, draws)}. The same draws "
        f"choose the {what} and count it, which makes certainties too high: if one half of the draws chooses "
        f"and the other counts, certainties are {by} lower on average."
    )


def worth_of(truth: Any, draws: float) -> str:
    """Say what draws that hang together are worth, and how well they tell a probability; empty of independent ones."""
    if draws >= truth.num_draws:
        return ""
    half = special.ndtri(ends()[1]) * np.sqrt(_EXAMPLE * (1 - _EXAMPLE) / max(draws, 1))
    return f", worth {draws:,.0f} independent ones or more: a certainty of {_EXAMPLE} is known to about ± {half:.2f}"


def digits_of(best: Score, truth: Any) -> int:
    """Return with how many digits certainties are written: what was counted among few draws has no third one."""
    return 2 if len(best.draws) and truth.num_draws < _MANY_DRAWS else 3


def digits_for(fit: Fit, best: Score, truth: Any) -> int:
    """Return the same of a fit: what was counted, and rests on a reliability that is assumed, has no third one."""
    assumed = len(best.draws) > 0 and fit.options.get("reliability") is not None
    return 2 if assumed else digits_of(best, truth)


def at_other_dependence(truth: Any, best: Score) -> dict[float, np.ndarray]:
    """Return the certainties of items at the ends of how far annotators may err together, by these; empty where known.

    Empty too where certainties were counted among draws: of these each is tempered by itself.
    """
    if truth.probabilities_at is None or len(best.draws):
        return {}
    both = {truth.dependence.at(z): truth.probabilities_at(z) for z in (-_TWO_SIDES, _TWO_SIDES)}
    return {rho: np.maximum.reduceat(one.probability, one.first[:-1]) for rho, one in both.items()}


def sure_throughout(best: Score, others: Mapping[float, np.ndarray]) -> np.ndarray:
    """Return which items are sure, and at the ends of how far annotators may err together too.

    Parameters
    ----------
    best, others : certainties of items, and those at these ends.
    """
    return np.all([reaches(one, SURE) for one in (best.items, *others.values())], axis=0)


def _by_dependence(truth: Any, best: Score) -> str:
    if truth.probabilities_at is None:
        return ""
    low, high = (f"{truth.dependence.at(z):.2f}" for z in (-_TWO_SIDES, _TWO_SIDES))
    words = (
        f" They assume a dependence of {truth.dependence.rho:.2f}, which measures how often annotators make the same "
        f"errors; it may be {low} to {high} (95 %)"
    )
    if not (others := at_other_dependence(truth, best)):
        return f"{words}, which certainties do not allow for."
    told = "at {:.2f} the mean certainty would be {:.3f}, with {:,} below {:g}".format
    said = [told(rho, sure.mean(), (~reaches(sure, SURE)).sum(), SURE) for rho, sure in others.items()]
    return f"{words}. {capital('; '.join(said))}."


def certainty_table(scores: list[Score], caption: str, unit: str = "item", digits: int = 3) -> Table:
    """Tabulate certainties with so many digits, a row for each kind of them."""
    import pandas

    rows = [{
        "score": score.title.removesuffix(", exact"), f"mean over {unit}s": score.value,
        "lowest": np.nanmin(score.items), "median": np.nanmedian(score.items),
        f"{unit}s below 0.99": below(score, 0.99), f"{unit}s below {SURE}": below(score),
    } for score in scores]  # fmt: skip
    frame = pandas.DataFrame(rows)
    texts = {name: [probability(one, digits) for one in frame[name]] for name in ("lowest", "median")}
    texts |= {f"mean over {unit}s": [f"{one:.{digits}f}" for one in frame[f"mean over {unit}s"]]}
    return Table(frame, caption, texts=texts)


def _table(
    fit: Fit, truth: Any, certainties: list[Score], annotators: Any, shown: np.ndarray, reports: _Reports | None,
    margins: np.ndarray | None,
) -> Table:  # fmt: skip
    """Tabulate items with what they may be and what was said of them.

    Parameters
    ----------
    fit, truth, certainties, annotators : as of `items_section`.
    shown : codes of the items, in order.
    reports : rankings of these; None where there are none.
    margins : of all items, by which share of the votes the first label is ahead; None where it is no vote.
    """
    import pandas

    unit = fit.data.unit
    columns: dict[str, Any] = {unit: truth.names()[shown].astype(str)}
    leading = "leading labels" if class_word(fit) == "label" else "leading classes"
    share = "" if is_vote(fit) else ", with their " + ("plausibility" if truth.answers(Shares()) else "probability")
    digits = digits_for(fit, certainties[0], truth)
    counted_ = len(certainties[0].draws) > 0  # the leading label and the certainty are then one number
    columns[leading + share] = leading_classes(
        truth, shown, numbers=not is_vote(fit), draws=effective_draws(fit, certainties[0]),
        digits=digits if counted_ else 2,
    )  # fmt: skip
    if truth.num_draws > 1 and not is_vote(fit):
        columns["certainty"] = certainties[0].items[shown]
    columns |= {} if margins is None else {"margin": margins[shown]}
    others = at_other_dependence(truth, certainties[0])
    if others and margins is None:
        sure = sure_throughout(certainties[0], others)
        columns[_THROUGHOUT] = np.where(sure[shown], "yes", "no")
    tips = {}
    votes = _Votes(fit, annotators) if "pairs" in fit.data.agreements else None
    if votes is not None:
        columns["votes"], tips["votes"] = votes.texts(shown), votes.details(shown)
    if reports is not None:
        title = "rankings by annotators"
        columns[title], tips[title] = reports.texts(shown), reports.details(shown)
    gold = fit.data.gold_codes
    named = truth.ids.get("label", truth.ids.get("class"))
    first = "the least certain first"
    if margins is not None:
        first = "ties and narrow wins first (margin: the share of the votes by which the first label leads)"
    caption = f"{unit.capitalize()}s, {first}" if truth.num_draws > 1 else "All of them"
    if gold is not None and named is not None:
        labels = np.append(np.asarray(named, object).astype(str), "")
        known, leads = np.asarray(gold)[shown], truth.lead.label[shown]
        wrong = (known >= 0) & (known != leads) & ((certainties[0].items[shown] == 1) | (not is_vote(fit)))
        columns["gold"] = [
            f"{own}, not {other}" if apart else own
            for own, other, apart in zip(labels[known], labels[leads], wrong, strict=True)
        ]
        caption += f"; for {wrong.sum():,} the gold label is another one" * bool(wrong.any())
    if _THROUGHOUT in columns:
        caption += _sure_throughout(others, sure)
    caption += "."
    known = [title for title in columns if title.startswith("certainty")]
    write = functools.partial(probability, digits=digits, draws=effective_draws(fit, certainties[0]))
    texts = {title: list(map(write, columns[title])) for title in known}
    texts |= {} if margins is None else {"margin": [f"{one:.2f}" for one in margins[shown]]}
    return Table(pandas.DataFrame(columns), caption, tips, "labels", truth.num_units, texts)


def _sure_throughout(others: Iterable[float], sure: np.ndarray) -> str:
    """Say what the column on these items means: which are ``sure`` at both ends of how far annotators may err."""
    low, high = (f"{rho:.2f}" for rho in others)
    return (
        f"; “{_THROUGHOUT}”: also at dependence {low} and {high}, the range of how often annotators may make the same "
        f"errors (yes for {int(sure.sum()):,} of {len(sure):,})"
    )


def _margins(fit: Fit) -> np.ndarray:
    """Return by which share of the votes the first label of each item is ahead of the next; not a number without votes.

    An item whose label was not voted on but given, as a gold label is, has a margin all the same.
    """
    rows: Any = fit.data
    data = as_annotations(rows)
    item, label, weight = (np.asarray(one) for one in (data.item, data.label, data.weight))
    cell, place = np.unique(item.astype(np.int64) * data.num_labels + label, return_inverse=True)
    votes, of = np.bincount(place, weight), cell // data.num_labels
    votes, of = (one[np.lexsort([-votes, of])] for one in (votes, of))
    found, first = np.unique(of, return_index=True)
    after = np.append(votes, 0.0)[first + 1]
    after[~np.isin(first + 1, np.setdiff1d(np.arange(len(of)), first))] = 0.0  # the next item's
    margins = np.full(data.num_items, np.nan)
    with np.errstate(invalid="ignore"):
        margins[found] = (votes[first] - after) / np.add.reduceat(votes, first)
    return margins


class _Votes:
    """What was said of each item, and by whom."""

    def __init__(self, fit: Fit, annotators: Any) -> None:
        data: Any = fit.data
        item = np.asarray(data.item)
        self.order = np.argsort(item, kind="stable")
        self.first = np.searchsorted(item[self.order], np.arange(data.num_items + 1))
        self.label, self.weight = np.asarray(data.label), np.asarray(data.weight)
        self.labels = np.arange(data.num_labels) if data.labels is None else data.labels
        self.annotator = None if not data.num_annotators else np.asarray(data.annotator)
        self.names = np.arange(data.num_annotators) if data.annotators is None else data.annotators
        known, self.right = "accuracy" in annotators, "share won" if is_counted(fit) else "accuracy"
        self.accuracy = dict(zip(annotators["annotator"], annotators["accuracy"], strict=True)) if known else {}

    def _rows(self, item: int) -> np.ndarray:
        return self.order[self.first[item] : self.first[item + 1]]

    def texts(self, items: np.ndarray) -> list[str]:
        """Return the votes of some items, most first: "3 × dog, 1 × cat"."""
        texts = []
        for item in items.tolist():
            rows = self._rows(item)
            votes = np.bincount(self.label[rows], self.weight[rows], len(self.labels))
            chosen = np.argsort(-votes, kind="stable")[: np.count_nonzero(votes)]
            texts.append(", ".join(f"{votes[label]:g} × {self.labels[label]}" for label in chosen.tolist()))
        return texts

    def details(self, items: np.ndarray) -> list[str]:
        """Return who gave which label, a line each, with the accuracy of each where it is known."""
        if self.annotator is None:
            return [""] * len(items)
        return ["\n".join(self._lines(item)) for item in items.tolist()]

    def _lines(self, item: int) -> list[str]:
        rows = self._rows(item)
        lines = []
        for row in rows[:_LINES].tolist():
            name = self.names[self.annotator[row]]  # type: ignore[index]
            right = f" ({self.right} {self.accuracy[name]:.2f})" if name in self.accuracy else ""
            lines.append(f"{self.labels[self.label[row]]}: {name}{right}")
        return [*lines, f"and {len(rows) - _LINES:,} more"] if len(rows) > _LINES else lines


class _Reports:
    """How annotators ranked the classes of each item: "a > b = c" where b and c are tied."""

    def __init__(self, data: Any, items: np.ndarray) -> None:
        first = np.searchsorted(data.report_item, np.arange(data.num_items + 1))
        rows = np.searchsorted(data.report, np.arange(data.num_reports + 1))
        code, block = np.asarray(data.entry_class)[np.asarray(data.entry)].tolist(), np.asarray(data.block).tolist()
        who = np.asarray(data.report_annotator)
        classes = np.arange(data.num_classes) if data.classes is None else data.classes
        names = np.arange(data.num_annotators) if data.annotators is None else data.annotators
        self.of: dict[int, list[tuple[str, str]]] = {}  # who ranked what, of each item
        for item in items.tolist():
            self.of[item] = []
            for report in range(first[item], first[item + 1]):
                tied: dict[int, list[str]] = {}
                for row in range(rows[report], rows[report + 1]):
                    tied.setdefault(block[row], []).append(str(classes[code[row]]))
                ranking = " > ".join(" = ".join(one) for one in tied.values())
                self.of[item].append((str(names[who[report]]), ranking))

    @property
    def any_tied(self) -> bool:
        """Whether any of them has a tie."""
        return any(" = " in ranking for own in self.of.values() for _, ranking in own)

    def texts(self, items: np.ndarray) -> list[str]:
        """Return the rankings of some items, most first: "3 × flu > cold; cold = cough"."""
        texts = []
        for item in items.tolist():
            counts = collections.Counter(ranking for _, ranking in self.of[item] if ranking).most_common()
            more = sum(number for _, number in counts[_BARS:])
            said = (f"{number} × {one}" if number > 1 else one for one, number in counts[:_BARS])
            texts.append("; ".join(said) + f"; and {more:,} more" * bool(more))
        return texts

    def details(self, items: np.ndarray) -> list[str]:
        """Return who gave which ranking, a line each."""
        listed = ([f"{name}: {ranking}" for name, ranking in self.of[item]] for item in items.tolist())
        more = "and {:,} more".format
        return ["\n".join([*one[:_LINES], *[more(len(one) - _LINES)] * (len(one) > _LINES)]) for one in listed]

    def table(self, item: int, name: str) -> Table:
        """Tabulate the rankings of an item."""
        import pandas

        found = self.of[item]
        frame = pandas.DataFrame(found[:_LINES], columns=["annotator", "ranking"])
        return Table(frame, f"Rankings of {name}.", total=len(found))


def leading_classes(
    truth: Any, positions: np.ndarray, *, numbers: bool = True, draws: float = np.inf, digits: int = 2
) -> list[str]:
    """Return the leading classes of some items in words, with their mean plausibility if this is asked for.

    Probabilities of labels are written as counted among so many effective ``draws``, with so many ``digits``; a
    plausibility is not counted.
    """
    texts, classes, shares = [], truth.ids.get("class"), truth.answers(Shares())
    draws, digits = (np.inf, 2) if shares else (draws, digits)
    for codes, mean in truth.mean_shares(positions.tolist()):
        order = np.argsort(-mean, kind="stable")[:_LEADING]
        names = codes if classes is None else np.asarray(classes, object)[codes]
        said = [f" ({probability(one, digits, draws)})" * numbers for one in mean]
        leading = [f"{names[place]}{said[place]}" for place in order if mean[place] >= _LEAST_SHOWN]
        rest = 1 - mean[order].sum()
        others = (truth.num_classes if shares else len(codes)) - len(leading)  # of plausibilities the unnamed ones too
        which = f"{others:,} more"
        if others == 1:
            all_codes = np.arange(truth.num_classes) if shares else np.asarray(codes)
            which = _class_name(truth, np.setdiff1d(all_codes, np.asarray(codes)[order][: len(leading)])[0])
        more = f" and {which}" + f" ({rest:.{digits}f}{' in all' * (others > 1)})" * numbers
        texts.append(", ".join(leading) + more * bool(rest >= _LEAST_SHOWN))
    return texts


def _class_name(truth: Any, code: int) -> str:
    """Return what a class is called."""
    classes = truth.ids.get("class")
    return str(code if classes is None else classes[code])


def _plausibilities(truth: Any, item: int) -> Bars:
    """Draw the mean plausibilities of the classes of an item, with intervals of their draws."""
    (codes, mean), (_, draws) = truth.mean_shares([item])[0], truth.drawn_shares([item])[0]
    classes = truth.ids.get("class")
    order = np.argsort(-mean, kind="stable")[:_BARS]
    names = [str(code if classes is None else classes[code]) for code in np.asarray(codes)[order]]
    shown = [(name, mean[place], draws[:, place]) for name, place in zip(names, order, strict=True)]
    rest = 1 - float(mean[order].sum())
    left = truth.num_classes - len(order)
    others = counted(left, "others")
    if left == 1:
        others = _class_name(truth, np.setdiff1d(np.arange(truth.num_classes), np.asarray(codes)[order])[0])
    shown += [(others, rest, 1 - draws[:, order].sum(axis=1))] if rest >= _LEAST_SHOWN else []
    rows = []
    for name, share, drawn in shown:
        low, high = (float(end) for end in np.clip(np.quantile(drawn, ends()), 0.0, 1.0))
        # Of one width, so that items have one scale; halves are rounded up, as in the table of items.
        text = "{:.2f} ({:.2f} to {:.2f})".format(*(one + _HALF_UP for one in (float(share), low, high)))
        rows.append(Bar(name, float(share), text, interval=(low, high)))
    heads = ("class", "plausibility", "mean (95 %)")
    return Bars(rows, f"Plausibilities of {truth.names()[item]}.", heads, reach=(0.0, 1.0))
