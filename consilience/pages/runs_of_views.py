"""What a report says of the runs that found views: whether they agree, and how they moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.models.truth.views import ladders_apart
from consilience.notes import Level
from consilience.printing import counted

NUMBER_TITLE = "How many views"

_AGREE = 0.15  # How far runs that agree may differ, on how probably two experts share a view.
_WITHIN = 1.0  # Nats.


def _ladders(fit: Any) -> np.ndarray:
    """Return the round trips of each ladder; none where the sampler was not tempered."""
    return np.asarray(() if fit.options.get("rungs") == 1 else fit.posterior.hidden.get("ladder_trips", ()))


def _apart(fit: Any) -> float:
    """Return by how much the runs of the sampler differ; infinite where that cannot be told."""
    trips = _ladders(fit)
    return ladders_apart(fit.posterior.value("view_of_expert"), len(trips)) if len(trips) else np.inf


def disagree(fit: Any) -> bool:
    """Return whether runs of the sampler surely do not agree on who shares a view."""
    return bool(_AGREE < _apart(fit) < np.inf)


def agreement_of_runs(fit: Any) -> str:
    """Say whether it is a worry how the runs of the sampler went."""
    trips, apart = _ladders(fit), _apart(fit)
    if not np.isfinite(apart):
        return "These are draws of a sampler; whether its runs agree is said under “What was run”."
    most = f"{apart:.2f} at most" if apart >= 0.005 else "less than 0.01"
    differ = f"on how probably two experts share a view they differ by {most}"
    if apart <= _AGREE:
        return f"The {len(trips)} runs of the sampler began apart and agree: {differ}. This is a good sign, no proof."
    return f"The {len(trips)} runs of the sampler disagree: {differ}. That is a worry: ask for more draws."


def how_chains_moved(fit: Any) -> str:
    """Say how the chains of a tempered sampler moved; empty where there are none."""
    trips = _ladders(fit)
    if not len(trips):
        return ""
    number = int(trips.sum())
    begun = f"{counted(number, 'times')} a grouping" if number else "No grouping"
    return (
        f"The sampler ran {counted(len(trips), 'rows')} of chains. The first chain of a row ignores the answers and "
        "tries any grouping of the experts. Each next one believes the answers more, and the last in full. Neighbours "
        f"swap their groupings, so that new ones can reach the last. {begun} that began in a first chain came to the "
        "last. Few do where the grouping is sure. Then it tells more whether the rows agree, which begin at random or "
        "where the best of several searches ended."
    )


def passes(fit: Any) -> int | None:
    """Return how many groupings came from a chain that ignores the answers to the last; None without such chains."""
    trips = _ladders(fit)
    return int(trips.sum()) if len(trips) else None


def missed(fit: Any) -> str:
    """Say that other numbers of views may have been missed, where none came, with a space behind it; else nothing."""
    if passes(fit) != 0:
        return ""
    number = len(_ladders(fit))
    agree = f"The {number} runs of the sampler agree, but the" if _apart(fit) <= _AGREE else "The"
    return f"{agree} search for other numbers of views never reached one, so it may have missed some. "


def why_missed(fit: Any) -> list[str]:
    """Say what that search is, where it got nowhere."""
    if passes(fit) != 0:
        return []
    return [
        "Other numbers of views are looked for by chains that ignore the answers, whose groupings are handed on to "
        "chains that believe them more and more. None came all the way to the last, which believes them in full, so "
        "the sampler may have missed other numbers. “What was run” has more of that."
    ]


def restart_words(restarts: Any) -> str:
    """Say how the starts of coordinate ascent ended; ``restarts`` is their table."""
    number = len(restarts)
    near = int((restarts["gap"] <= _WITHIN).sum())
    same = int(restarts["same_grouping"].sum())
    words = (
        f"Coordinate ascent began {number} times, and each start raised a bound, a logarithm of how well what it found "
        f"explains the answers. {near} of {number} restarts, with the best one, came within {_WITHIN:.0f} nat (a "
        f"factor of 2.7) of the best bound; {same} of {number} group the experts as the best one does. Numbers of the "
        "whole page are of the best restart alone, and know nothing of the others. "
    )
    if near > 1:
        return words + "That several starts end at the same bound is a good sign, and no proof that there is no better."
    return words + "None of the others came near: a better one may exist, and more restarts may find it."


def views_verdict(found: Any, held: list[int]) -> str:
    """Say how many views there are, and of how many items the cluster is sure, as far as the runs agree.

    Parameters
    ----------
    found : what the page says in several places.
    held : the views that some expert most probably has.
    """
    fit, (low, high) = found.fit, found.count.interval
    if any(note.level is Level.error for note in fit.findings()):
        return ""
    if disagree(fit):
        return "The runs of the sampler disagree on who shares a view: ask for more draws before you use this."
    who = "The expert has" if fit.data.num_experts == 1 else f"The {fit.data.num_experts:,} experts have"
    views = f"{who} {counted(found.most, 'views')}"
    if high > low:
        views = f"How many views the experts have is open ({low:,.0f} to {high:,.0f})"
    elif found.most == 1 and fit.data.num_experts > 1:
        views = f"One way to sort the items fits the {fit.data.num_experts:,} experts"
    number = fit.truth.num_units
    items = "every item has a sure cluster" if not found.open else (
        f"{number - found.open:,} of {counted(number, 'items')} have a sure cluster"
    )  # fmt: skip
    in_all = " in every view" * (len(held) > 1)
    others = "; the search for other ways was inconclusive" * (high == low and passes(fit) == 0)
    return f"{views}, and {items}{in_all}, by the model{others}: check some items against what you know."
