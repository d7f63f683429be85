"""What a page says of other metrics than the one that systems are ranked by: who is ahead there, and how surely."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from consilience.data import Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.classes import Metric
from consilience.evaluation.comparison import compare
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.registry import METRICS
from consilience.evaluation.scores import Score
from consilience.models.intervals import LEVEL
from consilience.models.truth import CLASSES
from consilience.printing import joined
from consilience.rounding import within

_TIE = 1e-9


class Lead(NamedTuple):
    """A system that has a higher mean in another metric than the first of a leaderboard.

    Parameters
    ----------
    system, metric : its name, and that of the metric in words.
    ahead : by how much.
    lower, upper : the interval of that, corrected for the number of comparisons.
    value : its score.
    meaning : of the metric; empty of a user's own.
    """

    system: str
    metric: str
    ahead: float
    lower: float
    upper: float
    value: float = float("nan")
    meaning: str = ""

    @property
    def is_clear(self) -> bool:
        """Whether the interval is above 0."""
        return self.lower > 0

    def __str__(self) -> str:
        """Write it after the name of the system."""
        ahead, low, high = within(self.ahead, self.lower, self.upper)
        return f"{self.metric} by {ahead} ({low} to {high})"


class Leads(NamedTuple):
    """Where other systems are ahead of the first of a leaderboard.

    Parameters
    ----------
    first : of the leaderboard.
    found : who is ahead of it, and in which metric.
    compared : how many comparisons there were, of each other system in each other metric.
    metrics : how many there are, that of the leaderboard with them.
    copied : whether the leaderboard has other readings too than predictions that were made from the annotations.
    """

    first: str
    found: list[Lead]
    compared: int
    metrics: int
    copied: bool

    @property
    def _of_each(self) -> dict[str, list[Lead]]:
        """The leads by system."""
        found: dict[str, list[Lead]] = {}
        for one in self.found:
            found.setdefault(one.system, []).append(one)
        return found

    @property
    def in_short(self) -> str:
        """Say in a clause that the metric decides who is first; empty where it does not."""
        if not self.found:
            return ""
        named = joined([
            f"“{self.first}” leads in {self.metrics - len(self.found)} of {self.metrics} metrics",
            *(f"“{name}” in {_which(own)}" for name, own in self._of_each.items()),
        ])
        clear = [one.metric for one in self.found if one.is_clear]
        so = "this lead is not clear" if len(self.found) == 1 else "of other systems no lead is clear"
        if clear:
            so = f"of other systems only the lead in {joined(clear)} is clear"
        if len(clear) == len(self.found):
            so = "the leads of other systems are clear"
        copied = "if predictions were made from the annotations, " * self.copied
        return f"{copied}{named}: {so}"

    @property
    def is_clear(self) -> bool:
        """Whether the lead that is furthest is more than chance would explain."""
        return bool(self.found and max(self.found, key=lambda one: one.ahead).is_clear)

    @property
    def furthest(self) -> str:
        """Say in which metric another system is furthest ahead; empty where none is."""
        if not self.found:
            return ""
        one = max(self.found, key=lambda one: one.ahead)
        ahead, low, high = within(one.ahead, one.lower, one.upper)
        chance = ", which may be chance" * (not one.is_clear)
        meant = f" ({one.meaning})" * bool(one.meaning)
        copied = " This assumes that predictions were made from the annotations." * self.copied
        return (
            f"In {one.metric}{meant} “{one.system}” leads with {one.value:.2f} against {one.value - one.ahead:.2f} of "
            f"“{self.first}”, a difference of {ahead} [{low}, {high}]{chance}.{copied}"
        )

    @property
    def words(self) -> str:
        """Say it; empty where the first has the highest mean in every metric."""
        if not self.found:
            return ""
        named = "; ".join(f"“{name}” is ahead in {joined([*map(str, own)])}" for name, own in self._of_each.items())
        clear = [one.metric for one in self.found if one.is_clear]
        so = "the lead is clear" if len(self.found) == 1 else "all leads are clear"
        if not clear:
            so = "no lead is clear"
        elif len(clear) < len(self.found):
            so = f"only {joined(clear)} clearly"
        together = f"{100 * LEVEL:g} %{f' for all {self.compared} comparisons together' * (self.compared > 1)}"
        copied = "If made from the annotations, " * self.copied
        return f"{copied}{named}: {so} ({together})."


def _meaning(metric: Metric) -> str:
    """Return what a metric is, with its number in the place of k; empty of a user's own."""
    known, number = METRICS[CLASSES.name], re.search(r"\d+", metric.title)
    if number is None or not known.known(metric.name):
        return ""
    return re.sub(r"\bk\b", number[0], known.form_of(metric.name)[0].line)


def _which(leads: Sequence[Lead]) -> str:
    """Name the metric of a lead; of several, say how many they are."""
    return leads[0].metric if len(leads) == 1 else str(len(leads))


def other_leads(
    truth: Any, systems: Mapping[str, Predictions], metrics: list[Metric], comparison: Comparison,
    scores: Mapping[str, Mapping[str, Score]], **policies: Any,
) -> Leads:  # fmt: skip
    """Return where other systems have a higher mean than the first of a leaderboard.

    Parameters
    ----------
    truth : that they are scored against, or its fit.
    systems : predictions by name.
    metrics : the first is that of the leaderboard.
    comparison : the leaderboard.
    scores : by system and metric.
    policies : for items and classes that do not agree.
    """
    first, found = comparison.table["system"].iloc[0], []
    number = (len(metrics) - 1) * (len(systems) - 1)
    for metric in metrics[1:]:
        means = {name: own[metric.name].value for name, own in scores.items()}
        best = max(means, key=lambda name: means[name])
        if means[best] <= means[first] + _TIE:
            continue
        both = {name: systems[name] for name in (best, first)}
        level = 1 - (1 - LEVEL) / number
        with contextlib.suppress(UnsupportedRequest):  # of a mean that is minus infinity
            ranked = compare(truth, both, metric, provenance="annotations", level=level, **policies)
            pairs = (one.pairs.iloc[0] for one in (ranked, ranked.of_these()))
            pair = max(pairs, key=lambda one: one["upper"] - one["lower"])
            value = float(ranked.values[ranked.systems.index(best)])
            ends = pair["difference"], pair["lower"], pair["upper"]
            found.append(Lead(best, metric.title, *ends, value, _meaning(metric)))
    found = [one for one in found if one.ahead > 0]  # of the items that both predict
    return Leads(first, found, number, len(metrics), comparison.own_draws is not None)
