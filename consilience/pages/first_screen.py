"""What stands first on the page of labels, of a vote and of rankings: one sentence, and one figure."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from consilience import system_figures
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.scores import Score
from consilience.inference.fitting import Fit
from consilience.models.intervals import LEVEL
from consilience.models.truth.against_gold import LEAST_ITEMS
from consilience.notes import Level
from consilience.pages import SURE, capital
from consilience.pages.by_reading import figure_by_reading
from consilience.pages.gold import BesideGold, SystemsByGold
from consilience.pages.items import below, class_word
from consilience.pages.run import alerts, is_vote
from consilience.pages.systems import IF_ONE_KIND, held, how_narrow, in_words, opening, score_of, too_narrow
from consilience.pages.told_apart import BY_SOURCE, is_close, sign_test, which_is_better
from consilience.pages.with_gold import anchored_texts, is_open
from consilience.printing import counted
from consilience.rounding import reaches, within
from consilience.system_figures import Scores

_BANDS = (SURE, 0.7, 0.5, 0.0)  # of certainties, from above
_HALF = 0.5
_MOST_WORDS = 30  # of one sentence

POOR = "Do not use these results yet: the fit is poor, as the red box says."
"""The verdict on what no number of the page can be trusted of."""

NEITHER = "neither system is shown to be better"
"""What is said of two systems that are not told apart."""

_IS_OPEN = " is open"


def verdict(
    fit: Fit, top: Score, gold: BesideGold | None, doubted: bool, comparison: Comparison | None,
    by_gold: SystemsByGold, throughout: int | None = None,
) -> str:  # fmt: skip
    """Say in a sentence or two what may be done with the labels, and whether a system is told to be the best.

    Parameters
    ----------
    fit, top : of labels or rankings, and the certainty of the leading one of each item.
    gold : the fit beside gold labels that it did not use.
    doubted : whether these speak against how right it says that annotators are.
    comparison, by_gold : of the systems, and what gold labels say of them; None where there are no systems.
    throughout : of how many items it is certain however far annotators may err together; None where that is known.
    """
    if any(one.level is Level.error for one in alerts(fit)):
        return POOR
    systems = "" if comparison is None else of_systems(comparison, fit, by_gold)
    if is_vote(fit):
        return _apart(_of_vote(fit, top, gold), systems)
    against = _against(fit, gold, doubted)
    if throughout is not None:
        return _apart(_of_firm_items(top, throughout), _alone(against), systems)
    return _in_one(_of_items(fit, top) + against, systems)


def _in_one(labels: str, systems: str) -> str:
    """Say both in one sentence, or in two where that would be long."""
    together = ", and ".join(filter(None, [labels, systems]))
    if systems and len(together.split()) > _MOST_WORDS:
        return _apart(labels, systems)
    return f"{capital(together)}."


def _apart(*said: str) -> str:
    """Say each in a sentence."""
    return " ".join(f"{capital(one)}." for one in said if one)


def _alone(against: str) -> str:
    """Say in a sentence what `_against` says in a clause; nothing where a finding says it."""
    if not against or against.endswith(_NEITHER):
        return ""
    if against.startswith(_BUT):
        return against.removeprefix(_BUT)
    return f"{against.removeprefix(', which ')} these certainties"


def _of_firm_items(top: Score, throughout: int) -> str:
    """Say of how many labels the fit is certain whatever is not known of annotators, and how many seem to be so."""
    number = int(np.isfinite(top.items).sum())
    sure = number - below(top)
    have = "have" if sure > 1 else "has"
    said = f"{sure or 'None'} of {counted(number, 'labels')} {have} a certainty of {SURE:g} or more"
    if not sure:
        return said
    still = f"{throughout:,} still {'do' if throughout > 1 else 'does'}" if throughout else "none still does"
    return f"{said}; {still} if annotators err together as often as they plausibly may"


def _of_items(fit: Fit, top: Score) -> str:
    """Say of how many items the leading class is certain."""
    unit, number = fit.data.unit, int(np.isfinite(top.items).sum())
    if fit.truth.num_draws == 1:
        return f"Each {unit} has one {class_word(fit)}, and this model does not say how sure it is of any"
    sure = number - below(top)
    which = f"{sure:,} of {number:,}" if 0 < sure < number else f"{'all' if sure else 'none of'} {number:,}"
    if class_word(fit) == "class":
        how = f"the fit is {'at least' if sure or number > 1 else 'less than'} {SURE:g} certain"
        which = f"the one {unit}" if number == 1 else f"{which} {unit}s"
        return f"{how} which class is most plausible for {which}{_if_assumed(fit)}"
    how = f"{'have' if sure > 1 else 'has'} a certainty {'of {0:g} or more' if sure or number > 1 else 'below {0:g}'}"
    return f"{'the one label' if number == 1 else f'{which} labels'} {how.format(SURE)}"


def _if_assumed(fit: Fit) -> str:
    """Say that certainties rest on a reliability that no data tell; empty where they do not."""
    return "" if fit.options.get("reliability") is None else ", if annotators are as reliable as assumed"


_NEITHER = "neither confirm nor refute"
_BUT = ", but "


def _against(fit: Fit, gold: BesideGold | None, doubted: bool) -> str:
    """Say, inside a sentence, what is known against the certainties of labels; empty where gold labels hold them up."""
    if class_word(fit) == "class" or fit.truth.num_draws == 1:
        return ""
    if gold is None:
        return ", which nothing here checks"
    number = counted(gold.score.items, "gold labels")
    if gold.checked and gold.off:
        return f"{_BUT}by {number} the fit is too {gold.off}"
    if doubted:
        return f", which {number} {_NEITHER}"
    return "" if gold.score.items >= LEAST_ITEMS else f", which only {number} check{'s' * (gold.score.items == 1)}"


def _of_vote(fit: Fit, top: Score, gold: BesideGold | None) -> str:
    """Say on which share of items a vote is right, by gold labels, or how many are tied."""
    if gold is not None and gold.score.items >= LEAST_ITEMS:
        _, low, high = within(gold.score.right, *gold.interval)
        number = counted(gold.score.items, "gold labels")
        ties = f", {counting}" if gold.vote and (counting := gold.vote.counting) else ""
        shares = f"{low} to {high} of {fit.data.unit}s (95 %{ties})"
        return f"By {number} the vote is right on {shares}"
    tied, of = below(top, 1), counted(int(np.isfinite(top.items).sum()), f"{fit.data.unit}s")
    return f"The vote leaves {tied:,} of {of} tied"


def of_systems(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> str:
    """Say whether a system is told to be the best, in a clause: by gold labels, where they have a say.

    Parameters
    ----------
    comparison, fit, gold : as of `leaderboard_numbers`.
    """
    if len(comparison.table) == 1:
        return _of_one_system(comparison, fit, gold)
    together = gold.anchored
    if together is not None:
        if is_close(together):
            return NEITHER if is_vote(fit) and len(together.table) == 2 else f"{which_is_better(together)}{_IS_OPEN}"
        of = counted(len(together.systems), "systems")
        return f"“{together.table['system'].iloc[0]}” is the best of {of} with probability {_p_best(together)}"
    if gold.leads:
        (first, own), (second, other), *_ = gold.right.items()
        if sign_test(own.each, other.each) >= 1 - LEVEL:
            return f"{which_is_better(comparison)}{_IS_OPEN}"
        return f"“{first}” is right on more of {gold.labels} than “{second}”, which is more than chance would explain"
    said = opening(comparison, fit).removesuffix(": ").replace(IF_ONE_KIND, "")  # which a finding and the table say
    if not said:  # a vote is surer of its order than it may be, by nobody knows how much
        return f"it puts “{comparison.table['system'].iloc[0]}” first without saying how sure that is"
    if "with probability" in said and too_narrow(comparison, fit):
        said = f"{said[:-1]}; it may be less)" if said.endswith(")") else f"{said} (it may be less)"
    return said if said.startswith("“") else f"{said[0].lower()}{said[1:]}"


def _p_best(comparison: Comparison) -> str:
    return in_words(comparison.p_best_texts[0])


def _of_one_system(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> str:
    """Say what the only system scores, with its interval."""
    name = comparison.systems[0]
    if gold.anchored is not None:
        return f"“{name}” is right on {anchored_texts(gold.anchored)[name]} of the items (95 % in brackets)"
    if gold.leads:
        return f"“{name}” is right on {gold.right[name]} of {gold.labels} (95 % in brackets)"
    value, low, high = score_of(comparison, fit)
    wide = f"; this interval is {how_narrow(fit)}" if too_narrow(comparison, fit) else ", 95 %"
    depends = BY_SOURCE * (" to " in in_words(value))
    return f"“{name}” scores {in_words(value)} in {comparison.title} ({low} to {high}{wide}){depends}"


# The figure -----------------------------------------------------------------------------------------------------------


def figure(fit: Fit, top: Score, comparison: Comparison | None, gold: SystemsByGold) -> Any:
    """Return how many items are how certain, and above systems with their intervals, if there are any; None of a point.

    A vote has the first alone: how far its labels won is what its scores rest on.

    Parameters
    ----------
    fit, top, comparison, gold : as of `verdict`.
    """
    if is_vote(fit):
        return system_figures.counts(_shares_of_votes(fit, top), "Share of the votes of the label that won")
    systems = [] if comparison is None else [_systems_figure(comparison, fit, gold)]
    if fit.truth.num_draws == 1:
        return systems[0] if systems else None
    title = f"Certainty of the leading {class_word(fit)}"
    return [system_figures.counts(_bands(top), title, fit.data.unit), *systems]


def _systems_figure(comparison: Comparison, fit: Fit, gold: SystemsByGold) -> Any:
    """Draw the systems by the scores to quote: with gold labels where these have a say, else by the fit."""
    names = gold.order(comparison)
    table = comparison.table.set_index("system").loc[names]
    places = [comparison.systems.index(name) for name in names]
    sure, narrow = held(fit), bool(too_narrow(comparison, fit))
    lower, upper = table["lower"].to_numpy(), table["upper"].to_numpy()
    title = f"{capital(comparison.title)} of each system"
    if gold.anchored is not None:
        own = gold.anchored.table.set_index("system").loc[names]
        both = "accuracy to quote, 95 %"
        first = Scores(both, own[["value"]].to_numpy().T, own["lower"].to_numpy(), own["upper"].to_numpy())
        return system_figures.scores_at_a_glance(names, first, title)
    if gold.leads:
        right = [gold.right[name] for name in names]
        held_by = np.array([one.interval for one in right]).T
        first = Scores("right on gold labels, 95 %", np.array([[one.share for one in right]]), *held_by)
        return system_figures.scores_at_a_glance(names, first, title)
    note = f"95 % intervals, {how_narrow(fit)}" if narrow else sure
    if is_open(comparison):
        return figure_by_reading(comparison, names, title, f"{comparison.title}, {note}")
    scores = Scores("score", comparison.readings.range[:1, places], lower, upper)
    return system_figures.scores_at_a_glance(names, scores, title, note=note)


def _bands(top: Score) -> dict[str, int]:
    """Return how many items there are in bands of certainties, from above."""
    sure = top.items[np.isfinite(top.items)]
    found = {}
    for high, low in itertools.pairwise((np.inf, *_BANDS)):
        name = f"{low:g} or more" if high > 1 else f"{low:g} to {high:g}" if low else f"below {high:g}"
        found[name] = int((reaches(sure, low) & ~reaches(sure, high)).sum())
    return found


def _shares_of_votes(fit: Fit, top: Score) -> dict[str, int]:
    """Return how many items have which share of the votes for the label that won; those that are tied apart."""
    share, tied = fit.table("labels")["share"].to_numpy(), ~reaches(top.items, 1)
    won = ~tied & np.isfinite(top.items)
    return {
        "all": int((won & (share == 1)).sum()), "more than half": int((won & (share < 1) & (share > _HALF)).sum()),
        "half or less": int((won & (share <= _HALF)).sum()), "tied": int((tied & np.isfinite(top.items)).sum()),
    }  # fmt: skip
