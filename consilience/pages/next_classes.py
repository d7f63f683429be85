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
from consilience.pages.annotators_by_gold import apart_together, clearly_low
from consilience.pages.chains import what_to_read
from consilience.pages.crowd import OF_MENTIONS, next_gain
from consilience.pages.gold import TITLE
from consilience.pages.gold_chains import right_by_annotator
from consilience.pages.gold_needed import more_gold
from consilience.pages.items import effective_draws
from consilience.pages.next_steps import (
    by_command,
    compare_again,
    decided,
    fit_again,
    fit_and_report,
    rank_more,
    report_again,
    whose_columns,
)
from consilience.pages.ratings import to_take_off, to_write
from consilience.pages.run import is_counted, is_vote, without_evidence
from consilience.pages.systems import copied_score, in_words, own_score
from consilience.pages.told_apart import share_apart
from consilience.pages.with_gold import is_open
from consilience.printing import counted, joined
from consilience.rounding import probability, reaches

_MOST_NAMED = 3  # annotators to look at

_FIRST = 10  # items to review where most are unsure

_SMALL_R_HAT = 1.02  # below which to run longer is the last thing to do


def actions(fit: Fit, found: Any, named: Any = None, chains: Any = None) -> list[Action]:
    """Say what can be done next: commands, and links into the page.

    Parameters
    ----------
    fit, found : of the page.
    named : its truth, as `worded` writes it.
    chains : of a fit of mentions.
    """
    unit = fit.data.unit
    better = "avoids this"
    if is_counted(fit):
        weighs = " and weights annotators by their errors" * (fit.data.rows == "annotation")
        better = f"says how sure it is of each label{weighs}"
    systems = {name: found.systems[name] for name in found.by_gold.order(found.comparison)} if found.systems else {}
    others = [
        Action(f"Fit {note.model} instead, which {better}:", fit_and_report(fit, note.model, systems))
        for note in fit.findings() if note.model
    ]  # fmt: skip
    longer: list[Action] = []
    if "chains" in fit.attributes and (worst := fit.worst) is not None:
        times = math.ceil(LEAST_ESS / worst.size) if worst.short and worst.size > 0 else 1
        times = max(times, 2) if worst.disagreeing else times
        rise = f"about {round(times * worst.size, -1):,.0f} independent draws"
        many = "twice" if times == 2 else f"{times} times"
        runs = f"{counted(fit.attributes['chains'], 'runs')} of {times * fit.draws:,} instead of {fit.draws:,}"
        draws = f"Ask for {many} as many draws ({runs}), which should give {rise}:"
        words = draws if worst.short else "Run longer:"
        command = fit_again(fit, output="longer", draws=times * fit.draws)
        longer = [Action(words, command)] * (times > 1)
        poor = any(note.level is Level.error for note in fit.findings())
        if poor or worst.short if unit == "mention" else worst.size < POOR_ESS or worst.r_hat >= _SMALL_R_HAT:
            others, longer = [*others, *longer], []
    blind = without_evidence(fit)[1]
    others += _checked_first(found, named)
    actions = [
        *others,
        *([_to_read(fit, found, named, chains)] if unit == "mention" else []),
        *_chance_alone(fit, blind),
        *([] if unit == "mention" else [
            Action(f"Review the {_how_many(fit, found)}", section=f"{unit.capitalize()}s")
        ]),
        *rankings_agree.actions(fit),
        *_written_labels(fit, found),
        Action(next_gain(fit, found.next_labels), section="Next labels"),
    ]  # fmt: skip
    reviewed = _of_annotators(fit, found.annotators, blind)
    if fit.data.rows != "annotation" or unit == "mention":
        actions, reviewed = [*actions, *reviewed], []
    if fit.data.rows == "rating":
        off = to_take_off(fit, found.offsets, found.without_offsets)
        wanted = found.more_ratings.actions()
        actions = [one for one in actions if one.section != "Items" or not wanted]  # which that one leads to
        # Of means that are corrected for offsets that advice is about others, which the page does not have.
        more = found.spread.actions() if found.without_offsets is None else []
        actions, others = [*wanted, *more, *off, *to_write(fit), *actions], wanted
    actions += assumed.actions(fit, found.at_others)
    of_systems, sources = _actions_on_systems(fit, found)
    if is_vote(fit):  # of a vote more than that is doubtful
        sources, longer = [], [*sources, *longer]
    first, then = (of_systems, sources) if fit.data.rows == "annotation" else (sources, of_systems)  # which is free
    actions[len(others) : len(others)] = [*first, *then]
    if not found.systems and unit == "item":
        actions.append(Action(f"Compare systems{whose_columns(fit, {})}:", compare_again(fit, {})))
    if found.gold is None and fit.data.rows == "annotation":
        actions.append(Action("Add gold labels for 20 items or more, in a column gold, to check the probabilities"))
    return [*actions, *reviewed, *longer]


def _to_read(fit: Fit, found: Any, named: Any, chains: Any) -> Action:
    """Say what to look for in the text of mentions; the parameters are those of `actions`."""
    draws = effective_draws(fit, found.top)
    return Action(what_to_read(named, found.top, fit.data, draws, chains), section="Text")


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
        return [Action(f"Review {blind}, whose labels may agree by chance alone", section="Annotators")]
    words = f"Fit again without {blind}, who may agree with the others only by chance, and see what changes"
    words += f".{right.removesuffix('.')}" if (right := right_by_annotator(fit, blind.split(", "))) else ""
    words += "" if is_counted(fit) else ". This need not be better, because the model learns how often annotators err"
    return [Action(f"{words}:", who_agrees.left_out(fit, blind.split(", ")))]


def _checked_first(found: Any, named: Any) -> list[Action]:
    """Say that the gold label on which much rests is to be checked; nothing where there is none such."""
    if found.decisive is None or not found.decisive.far:
        return []
    name = named.names()[found.decisive.item]
    words = f"Check the gold label of “{name}”, on which the certainty of many other labels depends"
    return [Action(words, section=TITLE)]


def _written_labels(fit: Fit, found: Any) -> list[Action]:
    """Say how to write the labels to a file, gold labels where others were found; nothing where no table has them."""
    if "labels" not in fit.member.table_names or fit.data.rows != "annotation" or fit.data.unit != "item":
        return []
    words = f"Save the label of each item{'' if is_vote(fit) else ' with its certainty'}"
    run, again = "RUN", ""
    if found.gold is not None and found.gold.wrong and "gold" in fit.options:
        moved = "" if is_vote(fit) else "; certainties of the others then differ somewhat from this page"
        words += f", and its gold label where it has one (for {len(found.gold.wrong):,} it is another label{moved})"
        run, again = "with-gold", fit_again(fit, output="with-gold", gold="use")
    if not fit.folder or (again and not by_command(fit)):
        return [Action(f"{words}:", f"{again or 'fit'}.labels().to_csv('labels-found.csv', index=False)")]
    line = f"consilience table {run} labels --csv labels-found.csv"
    return [Action(f"{words}:", " && ".join(filter(None, [again, line])))]


def _how_many(fit: Fit, found: Any) -> str:
    """Name the items that are tied or uncertain, with their number where it is known; those with a gold label apart."""
    items, vote = f"{found.unit}s", is_vote(fit)
    least = f"{items} with tied votes" if vote else f"least certain {items}"
    if found.truth.num_draws == 1 or fit.data.rows == "rating":  # of which the page states other certainties
        return least
    doubtful = ~reaches(found.top.items, 1 if vote else SURE)
    gold = unused_gold(fit.resolved) if fit.data.rows == "annotation" else None
    has_gold = np.zeros(len(doubtful), bool) if gold is None else gold >= 0
    open_, known = doubtful & ~has_gold, bool((doubtful & has_gold).any())
    if open_.sum() <= 1:
        return f"{least}{_least_certain(fit, found)}"
    apart = " and have no gold label" * known
    if vote:
        return f"{open_.sum():,} {items} {'that are tied' if known else 'with tied votes'}{apart}"
    if 2 * open_.sum() > len(doubtful) and open_.sum() > _FIRST:  # which is no choice of items
        how_sure = f"{open_.sum():,} of {len(doubtful):,} have a certainty below {SURE:g}{apart}"
        wrong = _expected_wrong(fit, found.top.items[open_])
        return f"{_FIRST} least certain {items} first{_least_certain(fit, found)}; {how_sure}{wrong}"
    number = f"{open_.sum():,} {items} that have a certainty below {SURE:g}{apart}"
    return f"{number}{_least_certain(fit, found)}{_expected_wrong(fit, found.top.items[open_])}"


def _expected_wrong(fit: Fit, certainty: np.ndarray) -> str:
    """Say how many labels of such certainties are expected to be wrong; empty of other data, and of less than one."""
    wrong = float((1 - certainty).sum())
    if fit.data.rows != "annotation" or wrong < 1:
        return ""
    return f": the fit expects about {wrong:.0f} of their labels to be wrong"


def _least_certain(fit: Fit, found: Any) -> str:
    """Name the least certain item of rankings, and its leading class; empty of other data, and of a point."""
    if fit.data.rows != "report" or found.truth.num_draws == 1:
        return ""
    item = int(np.nanargmin(found.top.items))
    classes, code = found.truth.ids.get("class"), int(found.truth.lead.label[item])
    sure = in_words(probability(float(found.top.items[item]), 2, effective_draws(fit, found.top)))
    named = code if classes is None else classes[code]
    return (
        f", starting with “{found.truth.names()[item]}”, whose leading class, {named}, is the most plausible one with "
        f"a probability of only {sure}"
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
    alone = f"; metrics other than {found.comparison.title} do not change" * (len(found.metrics) > 1)
    if found.by_gold.anchored is not None:  # those scores do not depend on it
        return actions, []
    if found.gold is not None and found.gold.score.items >= LEAST_ITEMS:
        actions.append(Action("Anchor the scores on the gold labels:", compare_again(fit, systems, gold="use")))
    apart = share_apart(found.said, list(systems))
    if fit.data.rows == "report":
        more = rank_more(found.comparison, apart)
        actions += [Action(more)] * bool(more)
    if fit.data.rows != "annotation":  # of which no reader takes gold labels
        actions.append(Action(decided(fit, found.truth.num_units, apart, found.comparison)))
    return actions, _sources(fit, found, systems, alone)


def _sources(fit: Fit, found: Any, systems: dict[str, Any], alone: str) -> list[Action]:
    """Return the advice to say where predictions come from, with what the first system scores by either answer.

    Parameters
    ----------
    fit, found : as of `actions`.
    systems : in the order of the page.
    alone : which metrics do not depend on it.
    """
    name, columns = found.comparison.table["system"].iloc[0], whose_columns(fit, systems)
    again = report_again if found.scored is not found.truth else compare_again  # whose scores the page has
    words = (
        "If you know where predictions come from, say so: if they were made from the annotations, "
        f"“{name}” scores {copied_score(found.comparison, fit)}"
    )
    if own := own_score(found.comparison, fit):
        words += f"; if the systems looked at the items, {own} (write independent in place of annotations{alone})"
    return [Action(f"{words}{columns}:", again(fit, systems, provenance="annotations"))]


def _of_annotators(fit: Fit, annotators: Any, blind: str) -> list[Action]:
    """Say which annotators to review; nothing of a vote by which nobody is clearly lower than the others.

    Parameters
    ----------
    fit, annotators, blind : as of `_worst`.
    """
    if is_counted(fit) and "accuracy" in annotators:
        lowest = _lowest_of_votes(annotators)
        return [Action(f"Review the labels of {lowest}", section="Annotators")] if lowest else []
    worst = _worst(annotators, blind)
    worst += _none_clearly_low(fit, annotators)
    by_sensitivity = bool(worst) and "sensitivity" in annotators and "accuracy" not in annotators
    who = "with the lowest sensitivity" if by_sensitivity else "who seem to err most"
    return [Action(f"Review the annotators {who}{worst}", section="Annotators")]


def _none_clearly_low(fit: Fit, annotators: Any) -> str:
    """Say in brackets that nobody matches gold labels clearly less often than the others; empty of none, or if so."""
    if "gold_items" not in annotators or not (annotators["gold_items"] > 0).any():
        return ""
    known = annotators[annotators["gold_items"] > 0]
    if clearly_low(known["annotator"], known["gold_items"], known["gold_right"]):
        return ""
    told = apart_together(fit)
    together = f", but together they differ, {told}" * bool(told)
    return f" (by gold labels no single annotator is clearly worse{together})"


def _worst(annotators: Any, blind: str) -> str:
    """Name the annotators who err most often, but for those of whom that is said already; empty where none is known.

    Parameters
    ----------
    annotators : the table of those who gave labels.
    blind : of whom it is said already.
    """
    score = next((one for one in ("accuracy", "sensitivity") if one in annotators), "")
    if not score or annotators["annotator"].nunique() <= _MOST_NAMED:
        return ""
    if score == "sensitivity":  # of several classes, each as often as there is something to choose
        lowest = annotators[annotators["decisions"] > 0].sort_values("sensitivity", kind="stable")
        annotators = annotators.assign(sensitivity=annotators["sensitivity"] * annotators["decisions"])
        sums = annotators.groupby("annotator")[["sensitivity", "decisions"]].sum()
        means = sums["sensitivity"] / sums["decisions"].clip(lower=1)
    else:
        means = annotators.set_index("annotator")[score]
    worst = means.nsmallest(_MOST_NAMED).index.astype(str)
    kept = [name for name in worst if name not in blind.split(", ")]
    if score == "sensitivity":  # whose intervals seldom rank those of mentions
        after = f" after {blind}" * (len(kept) < len(worst))
        return f"{after}: {joined([_lowest_class(lowest, name) for name in kept])}" if kept else ""
    named = ", ".join(f"“{name}”" for name in kept)
    return f", starting with {named}" if named else ""


def _lowest_class(profiles: Any, name: str) -> str:
    """Name an annotator with the class to which the sensitivity is lowest, the first of theirs in a sorted table."""
    row = profiles[profiles["annotator"].astype(str) == name].iloc[0]
    value, low, high = (f"{row[f'sensitivity{end}']:.2f}" for end in ("", "_lower", "_upper"))
    return f"“{name}” to {OF_MENTIONS.get(row['class'], row['class'])} ({value} [{low}, {high}])"


def _lowest_of_votes(annotators: Any) -> str:
    """Name those whose labels match gold labels, or win the vote, clearly less often; empty where nobody's do.

    ``annotators`` is their table.
    """
    number, right, what = annotators["annotations"], annotators["annotations"] * annotators["accuracy"], "win the vote"
    if "gold_items" in annotators and (annotators["gold_items"] > 0).any():
        number, right, what = annotators["gold_items"], annotators["gold_right"], "match the gold labels"
    known = number.to_numpy() > 0
    named = clearly_low(annotators["annotator"][known], number[known], right[known])
    who = joined([f"“{one}”" for one in named]) if named else ""
    return f"{who}, which {what} clearly less often than those of the others" * bool(named)
