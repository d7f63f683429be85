"""What a report says of annotators beside gold labels that the fit did not use: how many of their labels are right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from consilience.errors import TooLarge, UnsupportedRequest
from consilience.evaluation.agreement.exchange import alike_by_gold
from consilience.evaluation.agreement.jackknife import wilson
from consilience.inference.fitting import Fit
from consilience.models.intervals import LEVEL, ends
from consilience.models.truth.against_gold import LEAST_ITEMS, hits, unused_gold
from consilience.pages import Heading, More, Table
from consilience.pages.run import fit_word
from consilience.printing import counted, joined
from consilience.rounding import p_value

_FEWEST = 4  # annotators with labels of gold items, of which halves are compared
_MOST_ROWS = 1 << 18  # of confusion matrices


class Half(NamedTuple):
    """Annotators of a half, and how many of their labels of gold items are right.

    Parameters
    ----------
    annotators : how many.
    labels, right, expected : how many labels of gold items they gave, are right, and are expected to be.
    """

    annotators: int
    labels: float
    right: float
    expected: float


class Halves(NamedTuple):
    """The annotators with the lower stated accuracies and those with the higher ones, beside gold labels.

    Which half one is in is what the fit says, and no gold label has a part in it.

    Parameters
    ----------
    lower, higher : the halves.
    apart : by how much more than expected the shares of right labels differ between them.
    chance : how probably chance alone parts them so far from what is expected, in either direction.
    expected : how many labels of gold items are expected to be right, by annotator.
    """

    lower: Half
    higher: Half
    apart: float
    chance: float
    expected: np.ndarray

    @property
    def told(self) -> bool:
        """Whether that is more than chance makes of one comparison in twenty."""
        return self.chance < 1 - LEVEL

    @property
    def _so(self) -> str:
        """Say what follows for labels, by what was measured of either half."""
        off = [(one.right - one.expected) / one.labels for one in self[:2]]
        first, second = ("high" if one < 0 else "low" for one in off)
        which = f"the {self.lower.annotators:,} annotators with the lowest accuracies", "the others"
        if first == second:
            most = which[int(np.argmax(np.abs(off)))]
            return f"Certainties may be too {first}, mostly those that depend on {most}."
        return f"Certainties that depend on {which[0]} may be too {first}, and the others too {second}."

    @property
    def finding(self) -> str:
        """Say what follows for certainties, and why; where it is told."""
        why = f"annotators seem to differ {self._way} in accuracy than the fit says"
        return f"{self._so.removesuffix('.')}: by gold labels {why} ({p_value(self.chance, 2)})."

    @property
    def _way(self) -> str:
        return "more" if self.apart > 0 else "less"

    @property
    def words(self) -> str:
        """Say how far the fit is off, with the numbers behind it, or that this may be chance."""
        low, high = (
            f"{hits(one.right)} of {counted(int(one.labels), 'labels')} are right, where the fit expects "
            f"{one.expected:.1f}" for one in self[:2]
        )
        chance = p_value(self.chance, 2)
        means = f"Chance alone may explain this ({chance})."
        if self.told:
            means = (
                f"Gold labels suggest that annotators differ {self._way} in accuracy than the fit says ({chance}, not "
                "corrected for the number of tests)."
            )
        return (
            f"Of the {self.lower.annotators:,} annotators whose accuracy is lower by the fit, {low}; of the "
            f"{self.higher.annotators:,} others, {high}. {means}"
        )


_HOW = (
    "The expected numbers follow from the confusion matrix of each annotator and the gold labels. The test is a t test "
    "of the difference between the two halves, which are formed by the fit and not by the gold labels. Errors on one "
    "item count together, and the matrices are as uncertain as their intervals."
)


def halves(fit: Fit, frame: Any) -> Halves | None:
    """Compare the accuracies that a fit states with gold labels; None where there are too few, or it used them.

    An annotator's label of an item whose gold label is t is expected to be right as often as the confusion matrix has
    it for t. Of 140 crowds of 12 that were drawn from the prior of confusion matrices, with 30 gold labels, and in 60
    of them 15 % of the items misleading for all, one had a chance below .05: the test is rather too careful.

    Parameters
    ----------
    fit : of labels.
    frame : the table of its annotators.
    """
    data: Any = fit.data
    gold = unused_gold(fit.resolved) if "gold_items" in frame and "confusion" in fit.member.table_names else None
    if gold is None or np.count_nonzero(gold >= 0) < LEAST_ITEMS:
        return None
    right = _right_of_class(fit, data.num_annotators, data.num_labels)
    item, who, weight = np.asarray(data.item), np.asarray(data.annotator), np.asarray(data.weight, float)
    known = (gold[item] >= 0) & (who >= 0) & (weight > 0)
    item, who, weight, said = item[known], who[known], weight[known], np.asarray(data.label)[known]
    there = np.unique(who)
    if right is None or len(there) < _FEWEST:
        return None
    mean, variance = right
    low = np.zeros(data.num_annotators, bool)
    low[there[np.argsort(frame["accuracy"].to_numpy()[there], kind="stable")[: len(there) // 2]]] = True
    of_low, expected, hit = low[who], mean[who, gold[item]], said == gold[item]
    parts = [
        Half(int((low[there] == own).sum()), *(float(one[of_low == own].sum()) for one in (
            weight, weight * hit, weight * expected
        )))
        for own in (True, False)
    ]  # fmt: skip
    share = weight * np.where(of_low, -1 / parts[0].labels, 1 / parts[1].labels)
    off = np.bincount(item, share * (hit - expected))
    off = off[np.unique(item)]
    number = np.zeros_like(mean)
    np.add.at(number, (who, gold[item]), share)
    alone = np.sum(share**2 * expected * (1 - expected))
    together = np.sum(off**2) * len(off) / (len(off) - 1)
    error = np.sqrt(max(alone, together) + np.sum(number**2 * variance))
    chance = 2 * stats.t.sf(abs(off.sum()) / error, len(off) - 1) if error > 0 else 1.0
    each = np.bincount(who, weight * expected, data.num_annotators)
    return Halves(parts[0], parts[1], float(off.sum()), float(chance), each)


def _right_of_class(fit: Fit, annotators: int, labels: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return how often each annotator is right by true label, and its variance; None where matrices are too large."""
    if annotators * labels**2 > _MOST_ROWS:
        return None
    try:
        table = fit.table("confusion", annotators=np.arange(annotators))
    except TooLarge:
        return None
    if len(table) != annotators * labels**2:  # it lists what occurs alone
        return None
    shape = (annotators, labels, labels)
    mean, low, high = (
        table[name].to_numpy(float).reshape(shape).diagonal(axis1=1, axis2=2)
        for name in ("probability", "lower", "upper")
    )
    spread = (high - low) / np.diff(stats.norm.ppf(ends()))
    return mean, np.nan_to_num(spread) ** 2  # an estimate by EM has no intervals


def clearly_low(names: Any, number: Any, right: Any) -> list[str]:
    """Return the annotators whose labels are right clearly less often than those of all others, the lowest first.

    By Fisher's exact test, one-sided, at 5 % for all annotators together (Bonferroni): the lowest of many is low by
    chance alone.

    Parameters
    ----------
    names, number, right : of each annotator, how many labels are looked at, and how many of these are right.

    Examples
    --------
    >>> clearly_low(["a", "b", "c"], [9, 60, 60], [4, 40, 41]), clearly_low(["a", "b", "c"], [9, 60, 60], [0, 40, 41])
    ([], ['a'])
    """
    number, right = (np.round(np.asarray(one, float)).astype(int) for one in (number, right))
    found = []
    for place, name in enumerate(names):
        own, others = (number[place], right[place]), (number.sum() - number[place], right.sum() - right[place])
        table = [[own[1], own[0] - own[1]], [others[1], others[0] - others[1]]]
        chance = stats.fisher_exact(table, alternative="less").pvalue
        if len(number) * chance < 1 - LEVEL:
            found.append((own[1] / own[0], str(name)))
    return [name for _, name in sorted(found)]


def apart_together(fit: Fit) -> str:
    """Return the p value by which annotators differ in how often they match gold labels; empty where it may be chance.

    All annotators are tested at once, so that some can differ of whom no single one is told.
    """
    data: Any = fit.data
    if data.unit != "item":
        return ""
    try:
        test = alike_by_gold(data)
    except UnsupportedRequest:
        return ""
    return p_value(test.chance) if test is not None and test.chance < 1 - LEVEL else ""


def _none_or_named(fit: Fit, names: list[str]) -> str:
    """Say who matches the gold labels clearly less often than the others, or that nobody does by a test of each."""
    if not names:
        told = apart_together(fit)
        together = f", but together they differ by more than chance ({told}, permutation test)" * bool(told)
        return (
            "No single annotator matches them clearly less often than the others do (Fisher's exact test, 5 % for all "
            f"of these tests){together}."
        )
    who, verb = joined([f"“{one}”" for one in names]), "matches" if len(names) == 1 else "match"
    return f"{who} {verb} them clearly less often than the others (Fisher's exact test, 5 % for all together)."


def by_gold_blocks(fit: Fit, frame: Any, measure: str) -> list[Any]:
    """Return what there is to say of annotators beside gold labels; nothing where they labelled no item that has one.

    Parameters
    ----------
    fit : of labels.
    frame : the table of its annotators.
    measure : the column that tells how right they are by the fit.
    """
    import pandas

    if "gold_items" not in frame or not (frame["gold_items"] > 0).any():
        return []
    found = halves(fit, frame)
    if found is not None:
        frame = frame.assign(expected=found.expected)
    frame = frame[frame["gold_items"] > 0]
    number, right = (frame[name].to_numpy(float) for name in ("gold_items", "gold_right"))
    low, high = wilson(right / number, number)
    columns = {
        "annotator": frame["annotator"], "gold labels": number, "right": right, "share right": right / number,
        "95 % from": low, "to": high, measure.replace("_", " "): frame[measure],
    }  # fmt: skip
    columns |= {} if found is None else {"right, expected": frame["expected"]}
    table = pandas.DataFrame(columns).sort_values("share right", kind="stable")
    texts = {} if found is None else {"right, expected": [f"{one:.1f}" for one in table["right, expected"]]}
    used = "" if unused_gold(fit.resolved) is None else f", which the {fit_word(fit)} did not use to judge them"
    words = (
        f"How often each annotator's labels match the gold labels{used}. Intervals are 95 % intervals (Wilson); they "
        f"are wide, as each annotator has at most {int(number.max()):,} of these labels."
    )
    low_ones = clearly_low(frame["annotator"], number, right)
    words += f" {_none_or_named(fit, low_ones)}"
    tested = [] if found is None else [found.words, More("How this was tested", [_HOW])]
    return [
        Heading("Beside the gold labels"), words, *tested,
        Table(table, "Share of each annotator's labels that match the gold labels, the lowest first.", texts=texts),
    ]  # fmt: skip
