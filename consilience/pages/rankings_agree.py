"""What a page of rankings says of how annotators agree beyond chance: in whole rankings, and who does not clearly."""

from __future__ import annotations

import math
from typing import Any

from consilience.evaluation.leave_one_out import agreement_by_annotator, naming
from consilience.evaluation.rank_agreement import RankAgreement
from consilience.inference.fitting import Fit
from consilience.pages import Action
from consilience.printing import counted, joined
from consilience.rounding import within

SECTION = "Agreement with the others"

_MOST_NAMED = 3


def tau_words(found: RankAgreement) -> str:
    """Write Kendall's tau-b with its interval, where there is one of some width."""
    if not found.upper > found.lower:
        return f"{found.tau:.2f}"
    return "{} [{}, {}]".format(*within(found.tau, found.lower, found.upper))


def in_finding(found: RankAgreement) -> str:
    """Say how far annotators rank alike."""
    return (
        f"On average, two annotators' rankings of an item agree with a Kendall's tau of {tau_words(found)}, where 1 "
        "means the same order and 0 means chance."
    )


def in_section(found: RankAgreement) -> str:
    """Say it with what the coefficient is, and what its interval holds for."""
    held = ""
    if found.upper > found.lower:
        who = "items and annotators like these" if found.like_these else "items like these and these annotators"
        held = f" The 95 % interval is for {who} (jackknife; it tends to be too wide)."
    apart = ""
    if math.isfinite(found.apart):
        apart = f" For rankings of different items it is about {found.apart:.2f}."
    return (
        "Kendall's tau-b compares two rankings: it counts the pairs of classes that both put in the same order and "
        "subtracts those in opposite order, so that 1 means the same ranking and 0 means chance. Classes that a "
        f"ranking does not name count as tied below all others. Tau-b is {tau_words(found)} on average over "
        f"{counted(found.items, 'items')} and all pairs of {counted(found.annotators, 'annotators')}.{held}{apart}"
    )


def not_above_chance(frame: Any, at_random: float) -> Any:
    """Return the rows of annotators whose first choice is that of the others not clearly more often than at random.

    Parameters
    ----------
    frame : of `agreement_by_annotator`.
    at_random : how often it would be by chance.
    """
    return frame[frame["lower"] <= at_random].sort_values("first", kind="stable")


def chance_words(frame: Any, at_random: float) -> str:
    """Name these annotators with their shares, or say how many they are; empty of none."""
    low = not_above_chance(frame, at_random)
    if not len(low):
        return ""
    if len(low) > _MOST_NAMED:
        return f" The shares of {len(low):,} of {counted(len(frame), 'annotators')} are not clearly above chance."
    shown = [f"“{one.annotator}” ({one.first:.2f} [{one.lower:.2f}, {one.upper:.2f}])" for one in low.itertuples()]
    share = "share of" if len(low) == 1 else "shares of"
    return f" The {share} {joined(shown)} {'is' if len(low) == 1 else 'are'} not clearly above chance."


def actions(fit: Fit) -> list[Action]:
    """Say whose rankings to look at: of those who agree with the others no more than by chance may do."""
    if fit.data.rows != "report":
        return []
    data: Any = fit.data
    weights = fit.options.get("rank_weights", "equation-14")
    frame, at_random = agreement_by_annotator(data, weights), naming(data, weights).first_at_random
    low = not_above_chance(frame, at_random)
    if not 0 < len(low) < len(frame):
        return []
    one = low.iloc[0]
    whose = f"“{one['annotator']}”"
    words = (
        f"Check the rankings of {whose}, although the evidence is weak: the first choice matches that of the others in "
        f"{one['first']:.2f} [{one['lower']:.2f}, {one['upper']:.2f}] of {counted(int(one['rankings']), 'rankings')}, "
        f"where chance gives {at_random:.2f}"
    )
    return [Action(words, section=SECTION)]
