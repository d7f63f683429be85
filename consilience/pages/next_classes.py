"""What a page of classes says can be done next: commands, and links into the page."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consilience.inference.fitting import Fit
from consilience.inference.posterior import LEAST_ESS, POOR_ESS
from consilience.models.truth.against_gold import LEAST_ITEMS, unused_gold
from consilience.notes import Level
from consilience.pages import SURE, Action, assumed, rankings_agree, who_agrees
from consilience.pages.annotators_by_gold import labels_by_gold
from consilience.pages.chains import (
    what_to_read,
)
from consilience.pages.crowd import (
    next_gain,
)
from consilience.pages.gold_needed import more_gold
from consilience.pages.items import effective_draws
from consilience.pages.next_steps import compare_again, decided, fit_again, rank_more, whose_columns
from consilience.pages.ratings import to_take_off, to_write
from consilience.pages.run import is_counted, is_vote, without_evidence
from consilience.pages.systems import in_words, own_score
from consilience.pages.told_apart import share_apart
from consilience.pages.with_gold import is_open
from consilience.rounding import probability

_MOST_NAMED = 3  # annotators to look at

_SMALL_R_HAT = 1.02  # below which to run longer is the last thing to do


def actions(fit: Fit, found: Any, named: Any = None, chains: Any = None) -> list[Action]:
    """Say what can be done next: commands, and links into the page.

    Parameters
    ----------
    fit, found : of the page.
    named : its truth, as `worded` writes it.
    chains : of a fit of mentions.
    """
    unit, which = fit.data.unit, "tied" if is_vote(fit) else "least certain"
    better = "avoids this"
    if is_counted(fit):
        weighs = ", and weighs annotators by how they err" * (fit.data.rows == "annotation")
        better = f"says how sure it is of each label{weighs}"
    others = [
        Action(f"Fit {note.model} instead, which {better}:", fit_again(fit, note.model, output=note.model))
        for note in fit.findings() if note.model
    ]  # fmt: skip
    longer: list[Action] = []
    if "chains" in fit.attributes and (worst := fit.worst) is not None:
        times = math.ceil(LEAST_ESS / worst.size) if worst.short and worst.size > 0 else 1
        times = max(times, 2) if worst.disagreeing else times
        rise = f"the fewest effective draws from {worst.size:,.0f} to about {round(times * worst.size, -1):,.0f}"
        draws = f"Ask for {times} times as many draws of each run, which should raise {rise}:"
        words = draws if worst.short else "Run longer:"
        command = fit_again(fit, output="longer", draws=times * fit.draws)
        longer = [Action(words, command)] * (times > 1)
        poor = any(note.level is Level.error for note in fit.findings())
        if poor if unit == "mention" else worst.size < POOR_ESS or worst.r_hat >= _SMALL_R_HAT:
            others, longer = [*others, *longer], []
    blind = without_evidence(fit)[1]
    who = "who seem to err most"
    if is_counted(fit):
        by_gold = labels_by_gold(found.annotators)
        who = "whose labels are the gold label least often" if by_gold else "whose labels won the vote least often"
    actions = [
        *others,
        *([Action(what_to_read(named, found.top, fit.data, chains), section="Text")] if unit == "mention" else []),
        *_chance_alone(fit, blind),
        *_checked_first(found, named),
        *([] if unit == "mention" else [
            Action(f"Look at the {_how_many(fit, found, which)}", section=f"{unit.capitalize()}s")
        ]),
        *rankings_agree.actions(fit),
        *_written_labels(fit),
        Action(f"Ask for one more label where it tells most{next_gain(fit, found.next_labels)}", section="Next labels"),
        Action(_whom(fit, found.annotators, blind, who), section="Annotators"),
    ]  # fmt: skip
    if fit.data.rows == "rating":
        off = to_take_off(fit, found.offsets, found.without_offsets)
        wanted = found.more_ratings.actions()
        actions = [one for one in actions if one.section != "Items" or not wanted]  # which that one leads to
        actions = [*wanted, *found.spread.actions(), *off, *to_write(fit), *actions]
    actions += assumed.actions(fit, found.at_others)
    of_systems, sources = _actions_on_systems(fit, found)
    if is_vote(fit) or found.by_gold.anchored is not None:  # of a vote more than that is doubtful; else it changes less
        sources, longer = [], [*sources, *longer]
    actions[len(others) : len(others)] = [*of_systems, *sources]
    if not found.systems and unit == "item":
        actions.append(Action(f"Compare systems{whose_columns(fit, {})}:", compare_again(fit, {})))
    if found.gold is None and fit.data.rows == "annotation":
        actions.append(Action("Give gold labels of 20 items or more, in a column gold, to check the probabilities"))
    return actions + longer


def _chance_alone(fit: Fit, blind: str) -> list[Action]:
    """Say what to do about annotators who may agree by chance alone: of mentions there is a line that leaves them out.

    Parameters
    ----------
    fit : with these annotators.
    blind : their names; empty of none.
    """
    if not blind:
        return []
    if fit.data.unit != "mention":
        return [Action(f"Look at {blind}: labels that may agree by chance alone", section="Annotators")]
    words = f"Fit again without {blind}, who may agree with the others only by chance, and see what changes"
    words += "" if is_counted(fit) else ". This need not be better, because the model learns how often annotators err"
    return [Action(f"{words}:", who_agrees.left_out(fit, blind.split(", ")))]


def _checked_first(found: Any, named: Any) -> list[Action]:
    """Say that the gold label on which much rests is to be checked; nothing where there is none such."""
    if found.decisive is None or not found.decisive.far:
        return []
    name = named.names()[found.decisive.item]
    words = f"Check the gold label of “{name}”: much of the certainty of other labels rests on it"
    return [Action(words, section="Against the gold labels")]


def _written_labels(fit: Fit) -> list[Action]:
    """Say how to write the labels to a file; nothing where the fit has no folder, or no table of them."""
    if not fit.folder or fit.data.rows != "annotation" or fit.data.unit != "item":
        return []
    sure = "" if is_vote(fit) else ", with its certainty"
    return [Action(f"Write the label of each item{sure}:", "consilience table RUN labels --csv labels-found.csv")]


def _how_many(fit: Fit, found: Any, which: str) -> str:
    """Name the items that are tied or uncertain, with their number where it is known; those with a gold label apart."""
    items = f"{found.unit}s"
    if found.truth.num_draws == 1 or fit.data.rows == "rating":  # of which the page states other certainties
        return f"{items} that are {which}"
    doubtful = np.round(found.top.items, 3) < (1 if is_vote(fit) else SURE)
    gold = unused_gold(fit.resolved) if fit.data.rows == "annotation" else None
    has_gold = np.zeros(len(doubtful), bool) if gold is None else gold >= 0
    number, known = int((doubtful & ~has_gold).sum()), int((doubtful & has_gold).sum())
    if number <= 1:
        return f"{items} that are {which}{_least_certain(fit, found)}"
    apart = f" and have no gold label ({known:,} more have one)" * bool(known)
    return f"{number:,} {items} that are {which}{apart}{_least_certain(fit, found)}"


def _least_certain(fit: Fit, found: Any) -> str:
    """Name the least certain item of rankings, and its leading class; empty of other data, and of a point."""
    if fit.data.rows != "report" or found.truth.num_draws == 1:
        return ""
    item = int(np.nanargmin(found.top.items))
    classes, code = found.truth.ids.get("class"), int(found.truth.lead.label[item])
    sure = in_words(probability(float(found.top.items[item]), 2, effective_draws(fit, found.top)))
    named = code if classes is None else classes[code]
    return (
        f", first “{found.truth.names()[item]}”, where {named} is the most plausible class with a probability of about "
        f"{sure}"
    )


def _actions_on_systems(fit: Fit, found: Any) -> tuple[list[Action], list[Action]]:
    """Say what would tell more of the systems; and, where nobody said where their predictions come from, to say so."""
    if not found.systems:
        return [], []
    more = more_gold(fit, found.by_gold, found.comparison)
    actions = [Action(more)] * bool(more)
    if not is_open(found.comparison):
        return actions, []
    systems = {name: found.systems[name] for name in found.by_gold.order(found.comparison)}
    alone = f"; this matters for {found.comparison.title} only" * (len(found.metrics) > 1)
    anchored_ = "; scores with gold labels do not depend on it" * (found.by_gold.anchored is not None)
    gain = ""
    if found.by_gold.anchored is None and (own := own_score(found.comparison, fit)):
        gain = f"; “{found.comparison.table['system'].iloc[0]}” then scores {own}"
    words = f"If systems looked at the items themselves, say so{gain}{alone}{anchored_}{whose_columns(fit, systems)}:"
    if found.gold is not None and found.gold.score.items >= LEAST_ITEMS and found.by_gold.anchored is None:
        actions.append(Action("Anchor the scores on the gold labels:", compare_again(fit, systems, gold="use")))
    apart = share_apart(found.said, list(systems))
    if fit.data.rows == "report":
        more = rank_more(found.comparison, apart)
        actions += [Action(more)] * bool(more)
    elif fit.data.rows != "annotation":  # of which no reader takes gold labels
        actions.append(Action(decided(fit, found.truth.num_units, apart)))
    return actions, [Action(words, compare_again(fit, systems, provenance="independent"))]


def _whom(fit: Fit, annotators: Any, blind: str, who: str) -> str:
    """Say which annotators to look at; the parameters are those of `_worst`, and what they have in common."""
    worst = _worst(fit, annotators, blind)
    lowest = "sensitivity" in annotators and "accuracy" not in annotators and worst
    whom = "the annotators with the lowest sensitivity" if lowest else f"annotators {who}"
    return f"Look at {whom}{worst}"


def _worst(fit: Fit, annotators: Any, blind: str) -> str:
    """Name the annotators who err most often, but for those of whom that is said already; empty where none is known.

    Parameters
    ----------
    fit, annotators : of labels, and the table of those who gave them.
    blind : of whom it is said already.
    """
    score = next((one for one in ("accuracy", "sensitivity") if one in annotators), "")
    if not score or annotators["annotator"].nunique() <= _MOST_NAMED:
        return ""
    if score == "sensitivity":  # of several classes, each as often as there is something to choose
        annotators = annotators.assign(sensitivity=annotators["sensitivity"] * annotators["decisions"])
        sums = annotators.groupby("annotator")[["sensitivity", "decisions"]].sum()
        means = sums["sensitivity"] / sums["decisions"].clip(lower=1)
    elif is_counted(fit) and (by_gold := labels_by_gold(annotators)):
        means = annotators["annotator"].map(by_gold).set_axis(annotators["annotator"])
    else:
        means = annotators.set_index("annotator")[score]
    worst = means.nsmallest(_MOST_NAMED).index.astype(str)
    named = ", ".join(f"“{name}”" for name in worst if name not in blind.split(", "))
    if score == "sensitivity":  # whose intervals seldom rank those of mentions
        after = f" after {blind}" * any(name in blind.split(", ") for name in worst)
        return f"{after}: {named}" if named else ""
    return f", first {named}" if named else ""
