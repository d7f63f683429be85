"""What a report says of systems by gold labels and annotations together, and of own looks by fits anew."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from consilience.data import Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.anchoring import NOT_RANDOM
from consilience.evaluation.comparison import HELD_FIXED, compare
from consilience.evaluation.leaderboard import Comparison
from consilience.inference.fitting import Fit
from consilience.pages import capital
from consilience.pages.run import fit_word
from consilience.pages.told_apart import BY_SOURCE, ahead_by, is_close, open_tile, which_is_better
from consilience.printing import counted
from consilience.rounding import within

if TYPE_CHECKING:
    from consilience.pages.gold import Right, SystemsByGold

_MOST_REFITTED = 1 << 18  # annotations, of all fits that a page makes for own looks


def is_open(comparison: Comparison) -> bool:
    """Return whether scores depend on where predictions come from, and nobody said."""
    return comparison.own_draws is not None and bool({"unknown", "mixed"} & set(comparison.provenance))


def with_refits(
    fit: Any, comparison: Comparison, systems: Mapping[str, Predictions], metric: Any, policies: Mapping[str, Any]
) -> Comparison:
    """Return a comparison whose own looks have the annotators fitted anew as well, where that takes little.

    Parameters
    ----------
    fit, comparison, systems : the fit, and the systems that were compared by it.
    metric, policies : by what and how.
    """
    if not is_open(comparison) or HELD_FIXED not in comparison.notes or "chains" in fit.attributes:
        return comparison
    if fit.data.num_annotations * len(systems) > _MOST_REFITTED:
        return comparison
    origin = {
        name: "independent" if word in ("unknown", "mixed") else word
        for name, word in zip(comparison.systems, comparison.provenance, strict=True)
    }
    try:
        found = compare(fit, systems, metric=metric, provenance=origin, **policies)
    except UnsupportedRequest:  # the priors of a loaded fit may be known in words only
        return comparison
    notes = tuple(note for note in comparison.notes if note != HELD_FIXED)
    return dataclasses.replace(comparison, own_values=found.own_values, own_draws=found.own_draws, notes=notes)


def anchored(
    fit: Fit, systems: Mapping[str, Predictions], metric: Any, policies: Mapping[str, Any]
) -> Comparison | None:
    """Return the systems by gold labels and annotations together; None where gold items are no random sample.

    Parameters
    ----------
    fit : of labels.
    systems, metric, policies : that are compared, by what and how.
    """
    try:
        found = compare(fit, systems, metric=metric, gold="use", **policies)
    except UnsupportedRequest:
        return None
    return None if any(NOT_RANDOM in note for note in found.notes) else found


def anchored_texts(found: Comparison) -> dict[str, str]:
    """Write the score of each system with its interval, the best first."""
    return {
        row.system: "{} [{}, {}]".format(*within(row.value, row.lower, row.upper)) for row in found.table.itertuples()
    }


def anchored_numbers(found: Comparison, title: str) -> dict[str, str]:
    """Return the key figures of it."""
    first, texts = found.table.iloc[0], anchored_texts(found)
    values = {name: text.split(" ", 1) for name, text in texts.items()}
    shown = list(values.items())[: 2 if is_close(found) else 1]  # of systems that are not told apart none stands alone
    of = " and ".join(f"“{name}” {interval}" for name, (_, interval) in shown)
    same = len({value for _, (value, _) in shown}) < len(shown)  # which tells nothing
    numbers = {} if same else {f"{title} of {of}": " and ".join(value for _, (value, _) in shown)}
    if len(found.systems) == 1:
        return numbers
    if is_close(found):
        return numbers | open_tile(found, f"“{first['system']}” with probability {found.p_best_texts[0]}")
    of = counted(len(found.systems), "systems")
    return numbers | {f"probability that “{first['system']}” is best of {of}": found.p_best_texts[0]}


def anchored_words(found: Comparison, number: int, *, told: bool = False) -> str:
    """Say whether a system is told to be the best by it, and how sure that is.

    Parameters
    ----------
    found : the systems, by both; their first choices.
    number : of gold labels.
    told : whether the page has said already if a system is the best.
    """
    (name, text), *others = anchored_texts(found).items()
    by_both, held = f"by {number:,} gold labels and all annotations", " (95 % in brackets)"
    scored = f"“{name}” is right on {text} of the {found.unit}s"
    if not others:
        return f"{capital(by_both)} {scored}{held}."
    second, other = others[0]
    ahead = lead(found)
    if told:
        return (
            f"Quote the accuracies that use gold labels and annotations together: {text} for “{name}” and {other} for "
            f"“{second}”, a lead of {ahead} (95 % intervals in brackets)."
        )
    rest = f"{by_both} {scored} and “{second}” on {other}, a difference of {ahead}{held}."
    if is_close(found):
        return f"{capital(which_is_better(found))} is open: {rest}"
    return f"“{name}” is the best of {len(found.systems)} systems with probability {found.p_best_texts[0]}: {rest}"


def lead(found: Comparison) -> str:
    """Write by how much the first system is ahead of the second by it, with its interval.

    The lead has three digits where the two scores, as they are written, seem to contradict it.
    """
    text, other = itertools.islice(anchored_texts(found).values(), 2)
    ahead = ahead_by(found)
    if (number_of(text) - number_of(other)).quantize(number_of(ahead)) != number_of(ahead):
        ahead = f"{found.pairs.iloc[0]['difference']:.3f} {ahead.partition(' ')[2]}"
    return ahead


def number_of(text: str) -> Decimal:
    """Return the number that a text begins with, as it is written."""
    return Decimal(text.partition(" ")[0].replace("\N{MINUS SIGN}", "-"))


def how_anchored(found: Comparison, fit: Fit) -> str:
    """Say what it is, and what it is worth."""
    return (
        f"The accuracy to quote starts from what the {fit_word(fit)} says about all {found.unit}s and is corrected by "
        f"how far the {fit_word(fit)} is off on the gold labels. It does not depend on where predictions come from. "
        f"{' '.join(found.notes)}"
    )


def alone_words(comparison: Comparison, gold: SystemsByGold, together: Comparison, fit: Fit, digits: int) -> str:
    """Say what annotations alone would have it, where that is another order, or a score that gold labels contradict.

    Parameters
    ----------
    comparison, together : the systems by annotations alone, and with the gold labels.
    gold : of how many gold labels each system hits how many.
    fit : that they are scored against.
    digits : of scores by annotations alone.
    """
    names, first = comparison.table["system"].tolist(), together.table["system"].iloc[0]
    values = dict(zip(names, (one.replace("–", " to ") for one in comparison.value_texts(digits)), strict=True))
    row = comparison.table.set_index("system").loc[first]
    outside = _outside(together.table.iloc[0], row, gold.right[first], fit)
    words = ""
    if names[0] != first:
        depending = BY_SOURCE * (" to " in values[first])
        alone = f"The {fit_word(fit)} alone puts “{names[0]}” first, with {values[names[0]]}"
        neither = "; this order may be chance, too" if is_close(comparison) else ""
        words = f"{alone}, and gives “{first}” {values[first]}{depending}{neither}."
    return f"{words} {outside}".strip()


def _outside(both: Any, alone: Any, right: Right, fit: Fit) -> str:
    """Say how far annotations are off where the score by both is outside their interval; else empty.

    Parameters
    ----------
    both, alone : rows of the system in either leaderboard.
    right : for which gold labels the system is right.
    fit : that gave the annotations their say.
    """
    if alone["lower"] <= both["value"] <= alone["upper"] or right.above is None:
        return ""
    value, *ends = right.above
    side, (low, high) = ("more", ends) if value > 0 else ("less", [-end for end in reversed(ends)])
    by = "{} [{}, {}]".format(*within(abs(value), low, high))
    chance = ", which may be chance" * (low <= 0)
    name = both["system"]
    on = f"On the {fit.data.unit}s with gold labels"
    return f"{on}, “{name}” scores {by} {side} by gold labels than by the {fit_word(fit)}{chance}."
