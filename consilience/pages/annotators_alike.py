"""What a page of agreement says of whether annotators differ by more than chance: in agreement, and by gold labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement import Agreement
from consilience.evaluation.agreement.coefficients import coefficients
from consilience.evaluation.agreement.counts import LabelCounts, rows_of
from consilience.evaluation.agreement.exchange import Alike, Half, alike_by_gold, alike_in_agreement, right_by_half
from consilience.models.intervals import LEVEL
from consilience.models.truth.against_gold import hits
from consilience.pages import Action, More
from consilience.printing import counted, joined
from consilience.rounding import p_value, written

_MOST_NAMED = 8  # annotators of a half

_HOW = (
    "All annotators are tested at once, so that nobody is chosen by looking. If they are alike, whoever labels an item "
    "might have given any of its labels. So the labels of each item are dealt out anew among its annotators, again and "
    "again, and p is how often annotators then lie as far from what is expected of them, or farther: the sum over "
    "annotators of the square of that distance over its variance (a permutation test)."
)


def apart_in_agreement(found: Agreement) -> str:
    """Say whether annotators differ in how often they agree, with a space behind; empty where that cannot be told."""
    test = _in_agreement(found)
    if test is None:
        return ""
    if test.chance < 1 - LEVEL:
        return f"Annotators differ in how often they agree, beyond chance ({p_value(test.chance)}). "
    return f"That annotators differ in how often they agree may be chance ({p_value(test.chance)}). "


def apart_by_gold(found: Agreement) -> str:
    """Say whether annotators differ in how often they are right, with a space in front; empty where nothing tells."""
    test = _by_gold(found)
    if test is None:
        return ""
    p = p_value(test.chance)
    if test.chance >= 1 - LEVEL:
        return f" That some annotators are right more often than others may be chance ({p})."
    halves = right_by_half(found.counts, found.annotations) if found.annotations is not None else None
    said = f" Some annotators are right more often than others, beyond chance ({p})"
    if halves is None:
        return f"{said}."
    low, high = halves
    return (
        f"{said}: the {low.annotators:,} who agree least on the other items in {hits(low.right)} of "
        f"{counted(int(low.labels), 'labels')}, the other {high.annotators:,} in {hits(high.right)} of "
        f"{int(high.labels):,}."
    )


def halves_by_gold(found: Agreement) -> str:
    """Say the same in one sentence, for a first screen: who agrees least beside who agrees most."""
    test, data = _by_gold(found), found.annotations
    if test is None or data is None:
        return ""
    p = p_value(test.chance)
    if test.chance >= 1 - LEVEL:
        return f" That some annotators are right more often may be chance ({p})."
    if (halves := right_by_half(found.counts, data)) is None:
        return f" Some annotators are right more often than others ({p})."
    low, high = halves
    return (
        f" Annotators differ in how often they are right ({p}): the {low.annotators:,} who agree least on the other "
        f"items{_named(found, low)} have {hits(low.right)} of {counted(int(low.labels), 'labels')} right, the other "
        f"{high.annotators:,} have {hits(high.right)} of {int(high.labels):,}.{_alphas(found, low, high)}"
    )


def review_first(found: Agreement) -> list[Action]:
    """Advise to review the labels of the half that agrees least, where it is right less often beyond chance."""
    test, data = _by_gold(found), found.annotations
    if test is None or data is None or test.chance >= 1 - LEVEL:
        return []
    if (halves := right_by_half(found.counts, data)) is None:
        return []
    low, high = halves
    if low.annotators > _MOST_NAMED or low.right * high.labels >= high.right * low.labels:
        return []
    words = f"Review the labels of {joined(_names(found, low))} first, the half who agree least with the others"
    return [Action(words, section="Annotators")]


def _names(found: Agreement, half: Half) -> list[str]:
    data: Any = found.annotations
    return sorted(str(code if data.annotators is None else data.annotators[code]) for code in half.who)


def _named(found: Agreement, half: Half) -> str:
    """Name the annotators of a half in brackets, where these are few."""
    return f" ({joined(_names(found, half))})" if half.annotators <= _MOST_NAMED else ""


def _alphas(found: Agreement, low: Half, high: Half) -> str:
    """Say how large alpha is within each half, with a space in front; empty where it is not known of one of them."""
    values = [_alpha_within(found, half) for half in (low, high)]
    if not np.isfinite(values).all():
        return ""
    one, other = (written(value, ".2f") for value in values)
    return (
        f" Krippendorff's alpha is {one} among the former and {other} among the latter (chosen by agreement, so "
        "the difference is somewhat exaggerated)."
    )


def _alpha_within(found: Agreement, half: Half) -> float:
    """Return alpha of the labels of a half of the annotators alone."""
    data: Any = found.annotations
    own = np.flatnonzero(np.isin(np.asarray(data.annotator), half.who))
    counts = LabelCounts.of_annotations(rows_of(data, own))
    values = coefficients(counts, None, found._values, found.level, ordinal=found._ordinal)
    return next((one.value for one in values if "alpha" in one.name), float("nan"))


def how_alike(found: Agreement, *, by_gold: bool) -> list[Any]:
    """Return what a section says of these tests: their results, and how they were done; nothing where there are none.

    Parameters
    ----------
    found : the agreement.
    by_gold : whether the test is of how often annotators are right too, and the first screen has what was found.
    """
    tests = {"agreement": _in_agreement(found), "gold labels": _by_gold(found) if by_gold else None}
    said = f"{apart_in_agreement(found)}{apart_by_gold(found) if by_gold else ''}".replace("  ", " ").strip()
    if not said:
        return []
    done = [
        f"By {name}: {counted(test.annotators, 'annotators')}, {counted(test.items, 'items')} on which they do not all "
        f"fare alike, labels dealt out {test.draws:,} times."
        for name, test in tests.items() if test is not None
    ]  # fmt: skip
    halves = (
        " Who agrees least is told on the items without a gold label, so that no label that is counted has a part in "
        "it."
    ) * ("agree least on the other items" in said)
    how = More("How it was tested whether annotators differ", [f"{_HOW}{halves}", *done])
    return [how] if by_gold else [said, how]


def differ(found: Agreement) -> bool:
    """Return whether annotators differ by more than chance, by gold labels where these tell, or else in agreement."""
    test = _by_gold(found) or _in_agreement(found)
    return test is not None and test.chance < 1 - LEVEL


def _in_agreement(found: Agreement) -> Alike | None:
    try:
        return alike_in_agreement(found.counts, found.annotations) if found.annotations is not None else None
    except UnsupportedRequest:  # nobody knows who gave the labels
        return None


def _by_gold(found: Agreement) -> Alike | None:
    try:
        known = found.annotations is not None and found.annotations.gold is not None
        return alike_by_gold(found.annotations) if known and found.annotations is not None else None
    except UnsupportedRequest:
        return None
