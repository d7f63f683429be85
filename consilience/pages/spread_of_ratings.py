"""What a report says of the spread of ratings: its parts, and how many ratings an item would need."""

from __future__ import annotations

import math
from typing import Any

from consilience.evaluation.variance_components import (
    Components,
    ratings_needed,
    reliability_of_mean,
    variance_components,
)
from consilience.pages import Action, Section, Table
from consilience.rounding import decimals, within

TITLE = "Spread of the ratings"

_WANTED = 0.8, 0.9  # reliabilities of a mean
_MOST = 1_000  # ratings of an item that anybody would ask for

_PARTS = "items", "annotators (their offsets)", "the rest (errors)"
SIMULATED = (
    "To see how often intervals hold, 4 ratings of each of 40 items by 5 annotators were simulated, with standard "
    "deviations of 8 (means of items), 5 (offsets) and 7 (errors)."
)
"""The data by which it is known how often intervals hold."""

_MEASURED = "these intervals of 95 % held the share of each part in 95 to 98 %."


class Spread:
    """The parts of the spread of ratings, and what follows from them; empty where they cannot be told apart."""

    def __init__(self, data: Any) -> None:
        self.found: Components | None = variance_components(data)
        self.taken, self.annotators = data.offset is not None, data.num_annotators

    @property
    def figure(self) -> dict[str, str]:
        """The key figure: the intraclass correlation."""
        if self.found is None:
            return {}
        value, *ends = within(*self.found.single(offsets=not self.taken))
        of = f"share of variance between items{', without offsets' * self.taken}: intraclass "
        return {f"{of}correlation ICC({3 if self.taken else 2},1) ({' to '.join(ends)}, 95 %)": value}

    @property
    def _whom(self) -> str:
        """By whom the ratings are that one would ask for."""
        return "these annotators" if self.taken else "different annotators"

    def actions(self) -> list[Action]:
        """Return the advice to ask for more ratings, where their mean is less reliable than one may wish."""
        if self.found is None:
            return []
        single = self.found.single(offsets=not self.taken)
        now = reliability_of_mean(single[0], self.found.ratings)
        wanted = next((one for one in _WANTED if now < one), None)
        if wanted is None or ratings_needed(single[0], wanted) > _MOST:
            return []
        words = (
            f"Ask for about {_range(single, wanted, f' ratings of each item by {self._whom}', ', 95 %')}, in place of "
            f"{self.found.ratings:.1f}: the reliability of their {'' if self.taken else 'plain '}mean would rise from "
            f"{now:.2f} to {wanted:g}{self._new(ratings_needed(single[0], wanted))}"
        )
        return [Action(words, section=TITLE)]

    def _new(self, needed: float) -> str:
        """Say how many more annotators that takes, where each rates an item once."""
        new = math.ceil(round(needed, 9)) - self.annotators
        return f". That takes {new:,} more annotators, as there are {self.annotators:,}" if new > 1 else (
            f". That takes one more annotator, as there are {self.annotators:,}" * (new == 1)
        )  # fmt: skip

    def sections(self, *, told: bool = False) -> list[Section]:
        """Return the section on them; ``told`` says that the page says before how data are simulated."""
        found = self.found
        if found is None:
            return []
        single, offsets_off = (found.single(offsets=one) for one in (True, False))
        before = ", here before the offsets were taken off" * self.taken
        words = (
            f"A rating{before} is the sum of three independent parts: the item, the offset of the annotator, and the "
            "rest (error and the taste of one annotator in one item). "
            f"The share of the items is the intraclass correlation ICC(2,1), {_interval(single)}: how well one rating "
            "by any annotator tells items apart. With the offsets of annotators taken off it is ICC(3,1), "
            f"{_interval(offsets_off)}."
        )
        how = (
            "The variances come from an analysis of variance of items and annotators for ratings that may be "
            f"incomplete (Henderson's method 3), and not from the fit. {_how_known(told)} {_MEASURED}"
        )
        now, corrected = (reliability_of_mean(one[0], found.ratings) for one in (single, offsets_off))
        needed = (
            f"The more ratings an item has, the more reliable is their mean. Items have {found.ratings:.1f} ratings on "
            f"average. Of plain means of so many, by different annotators, {now:.2f} of the variance is between items "
            f"(Spearman-Brown): that is their reliability. With offsets taken off, as if known, it is {corrected:.2f}. "
            f"The table has how many ratings an item needs for a reliability of {_WANTED[0]:g} or {_WANTED[1]:g}, and "
            "in brackets how many at the ends of the 95 % interval of the intraclass correlation:"
        )
        gist = f"{_interval(single)} of the variance is between items"
        return [Section(TITLE, [words, _parts(found), how, needed, _needed(single, offsets_off)], gist)]


def _how_known(told: bool) -> str:
    """Begin a sentence on simulated data, after what they are unless this is told."""
    if told:
        return "In 600 data sets simulated as for the annotator offsets,"
    return f"{SIMULATED} In 600 such data sets,"


def _interval(values: tuple[float, float, float]) -> str:
    value, low, high = within(*values)
    return f"{value} ({low} to {high}, 95 %)"


def _parts(found: Components) -> Table:
    import pandas

    share, low, high = found.shares.T
    frame = pandas.DataFrame({
        "part": _PARTS, "variance": found.variance, "standard deviation": found.variance**0.5, "share": share,
        "95 % from": low, "to": high,
    })  # fmt: skip
    named = dict(zip(("share", "95 % from", "to"), zip(*(within(*one) for one in found.shares.tolist()), strict=True),
                     strict=True))  # fmt: skip
    for name, power in (("variance", 1), ("standard deviation", 0.5)):
        digits = 1 + decimals(0.0, 2 * float(found.variance.sum() ** power))
        named[name] = tuple(f"{one:,.{digits}f}" for one in frame[name])
    return Table(frame, "Parts of the variance of ratings.", texts=named)


def _needed(*single: tuple[float, float, float]) -> Table:
    import pandas

    names = "plain mean, different annotators", "offsets taken off, as if known"
    columns = {name: [_range(one, wanted) for wanted in _WANTED] for name, one in zip(names, single, strict=True)}
    frame = pandas.DataFrame({"reliability of the mean": [f"{one:g}" for one in _WANTED]} | columns)
    frame.attrs["numbers"] = tuple(frame.columns)
    return Table(frame, "Ratings that an item needs.")


def _range(single: tuple[float, float, float], wanted: float, what: str = "", level: str = "") -> str:
    """Write how many ratings are needed, and how many at the ends of the interval."""
    value, most, least = (_number(ratings_needed(one, wanted)) for one in single)
    return f"{value}{what} ({least} to {most}{level})"


def _number(needed: float) -> str:
    return f"{needed:,.0f}" if needed <= _MOST and math.isfinite(needed) else f"over {_MOST:,}"
