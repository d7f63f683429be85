"""What a report says of the runs that found views: whether they agree, and how they moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.models.truth.views import ladders_apart
from consilience.notes import Level
from consilience.pages.answers_against import most_contrary
from consilience.printing import counted

NUMBER_TITLE = "How many views"

_AGREE = 0.15  # How far runs that agree may differ, on how probably two experts share a view.
_WITHIN = 1.0  # Nats.
_STARTS = 10  # That agree; more leave little room for others.
_MORE_DRAWS = 8  # times as many
"""By so much: on six simulated sets of 6 or 9 experts it cut the difference of runs from 0.14–0.45 to 0.02–0.15.

On five sets where no grouping came through the chains it changed nothing; their groupings were right, and eight starts
agreed.
"""


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
        return "These are draws of a sampler; “What was run” says whether its runs agree."
    most = f"{apart:.2f} at most" if apart >= 0.005 else "less than 0.01"
    differ = f"their probabilities that two experts share a view differ by {most}"
    if apart <= _AGREE:
        runs = f"The {len(trips)} runs of the sampler started apart and agree"
        return f"{runs}: {differ}. This is a good sign, not proof."
    return f"The {len(trips)} runs of the sampler disagree: {differ}. Do not use these results yet."


def how_chains_moved(fit: Any) -> str:
    """Say how the chains of a tempered sampler moved; empty where there are none."""
    trips = _ladders(fit)
    if not len(trips):
        return ""
    number = int(trips.sum())
    reached = f"A grouping from a first chain reached the last {counted(number, 'times')}" if number else (
        "No grouping from a first chain reached the last"
    )  # fmt: skip
    return (
        f"The sampler ran {counted(len(trips), 'rows')} of chains. The first chain of a row ignores the answers and "
        "tries any grouping of the experts; each later chain uses the answers more, and the last uses them fully. "
        f"Neighbours swap groupings, so that new ones can reach the last chain. {reached}. Few do if the grouping is "
        "clear; then it matters more whether the rows agree, which start at random or at the best of several searches."
    )


def passes(fit: Any) -> int | None:
    """Return how many groupings came from a chain that ignores the answers to the last; None without such chains."""
    trips = _ladders(fit)
    return int(trips.sum()) if len(trips) else None


def is_inconclusive(fit: Any) -> bool:
    """Return whether other numbers of views may have been missed: none came, and few starts, or some that disagree."""
    return passes(fit) == 0 and (len(_ladders(fit)) < _STARTS or _apart(fit) > _AGREE)


def missed(fit: Any) -> str:
    """Say that other numbers of views may have been missed, where none came, with a space behind it; else nothing."""
    if passes(fit) != 0:
        return ""
    number = len(_ladders(fit))
    if not is_inconclusive(fit):
        return f"All {number} runs of the sampler, which started apart, agree: {_elsewhere(number)}. "
    agree = f"The {number} runs of the sampler agree, but the" if _apart(fit) <= _AGREE else "The"
    return f"{agree} search for other numbers of views was inconclusive, so it may have missed some. "


def _elsewhere(number: int) -> str:
    """Say how many starts may end elsewhere if so many did not: with 5 % none of these would, at that share."""
    return f"at most {100 * (1 - 0.05 ** (1 / number)):.0f} % of such starts would end elsewhere (95 %)"


def search_again(fit: Any) -> tuple[str, dict[str, int]] | None:
    """Return what would settle how many views there are, with the options to run it; None where nothing is open."""
    if disagree(fit):
        return (
            f"Ask for {_MORE_DRAWS} times as many draws, because the runs disagree; on simulated data this cut the "
            "difference between runs to a quarter"
        ), {"draws": _MORE_DRAWS * fit.draws}
    if not is_inconclusive(fit):
        return None
    number = len(_ladders(fit))
    now = f"now, with {number}, " if number > 1 else "now "
    return (
        f"Search again from {_STARTS} starts instead of {number}, to see whether views were missed. If all agree, "
        f"{_elsewhere(_STARTS)}; {now}that is {100 * (1 - 0.05 ** (1 / number)):.0f} %. More draws alone "
        "did not settle this in simulations"
    ), {"ladders": _STARTS}


def if_none_missed(fit: Any) -> str:
    """Say on which condition probabilities hold where the search may have missed views; else nothing."""
    return ", if the sampler missed no other way to sort the items" if passes(fit) == 0 else ""


def why_missed(fit: Any) -> list[str]:
    """Say what that search is, where it got nowhere."""
    if passes(fit) != 0:
        return []
    return [
        "The sampler looks for other numbers of views with chains that ignore the answers and pass their groupings to "
        "chains that use the answers more and more. No grouping reached the last chain, which uses the answers fully, "
        "so the sampler may have missed other numbers. See “What was run”."
    ]


def restart_words(restarts: Any) -> str:
    """Say how the starts of coordinate ascent ended; ``restarts`` is their table."""
    number = len(restarts)
    near = int((restarts["gap"] <= _WITHIN).sum())
    same = int(restarts["same_grouping"].sum())
    words = (
        f"Coordinate ascent started {number} times, and each start raised a bound on how well its result explains the "
        f"answers (a logarithm). {near} of {number} restarts came within {_WITHIN:.0f} nat (a factor of 2.7) of the "
        f"best bound, the best one included; {same} of {number} group the experts in the same way. All numbers on this "
        "page come from the best restart alone. "
    )
    if near > 1:
        return words + "Several starts ended at the same bound, which is a good sign but not proof."
    return words + "No other start came near: more restarts may find a better result."


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
        return "The runs of the sampler disagree on who shares a view: ask for more draws before you use these results."
    who = "The expert has" if fit.data.num_experts == 1 else f"The {fit.data.num_experts:,} experts have"
    views = f"{who} {counted(found.most, 'views')}"
    if high > low:
        views = f"The number of views is uncertain ({low:,.0f} to {high:,.0f})"
    elif found.most == 1 and fit.data.num_experts > 1:
        views = f"The model finds one way to sort the items for all {fit.data.num_experts:,} experts"
    number = fit.truth.num_units
    items = "every item" if not found.open else f"{number - found.open:,} of {counted(number, 'items')}"
    in_all = " in every view" * (len(held) > 1)
    check = "Check some items against what you know."
    if high == low and is_inconclusive(fit):
        check = "The search for other ways was inconclusive: repeat it from more starts (see What to do next)."
    less = f"; {found.of_whom['expert'].iloc[0]} follows it less closely. The" * bool(most_contrary(found.of_whom))
    less *= found.most == 1 and high == low
    return f"{views}{less or ', and the'} model clearly assigns {items} to a cluster{in_all}. {check}"
