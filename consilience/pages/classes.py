"""The page of classes of items, and of chains of mentions: parts that a fit has, in their order."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience import figures
from consilience.data import ClassMap, Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.agreement import agreement
from consilience.evaluation.agreement.jackknife import wilson
from consilience.evaluation.certainties import certainty
from consilience.evaluation.classes import Metric, resolve
from consilience.evaluation.comparison import compare
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.leave_one_out import agreement_by_annotator, annotator_agreement, naming
from consilience.evaluation.scores import Score
from consilience.inference.fitting import Fit
from consilience.inference.posterior import LEAST_ESS, POOR_ESS
from consilience.models.crowd.gate import ERRORS
from consilience.models.truth import Ranked, Truth
from consilience.models.truth.against_gold import LEAST_ITEMS
from consilience.models.truth.truth import PARTITION
from consilience.notes import Level
from consilience.pages import SURE, Action, Alert, Page, Section, assumed, joined
from consilience.pages.agreement import agreement_sections, predictive_section
from consilience.pages.annotators_by_gold import halves, labels_by_gold
from consilience.pages.chains import chain_scores, chain_sections, split_systems, what_to_read, worded, words_of
from consilience.pages.crowd import accuracies, annotator_sections, doubtful_annotators, next_label_sections
from consilience.pages.gold import (
    BesideGold,
    SystemsByGold,
    beside_gold,
    gold_alerts,
    gold_section,
    right_by_gold,
    together_words,
)
from consilience.pages.groups import risk_section
from consilience.pages.items import (
    agreement_bars,
    at_other_dependence,
    below,
    class_word,
    effective_draws,
    items_section,
    leading_classes,
    named_items,
    near_ties,
    too_high,
)
from consilience.pages.next_steps import compare_again, fit_again, whose_columns
from consilience.pages.one_gold_label import Decisive, decisive, unnamed_words
from consilience.pages.other_metrics import Leads, other_leads
from consilience.pages.ratings import (
    Offsets,
    Without,
    offsets_of,
    rating_numbers,
    scale_sections,
    sides_words,
    to_take_off,
    unchecked,
    without_offsets,
)
from consilience.pages.remembered import remembering
from consilience.pages.run import fit_word, is_counted, is_vote, line_of, without_evidence
from consilience.pages.systems import (
    in_words,
    leaderboard_numbers,
    leaderboard_section,
    verdict,
)
from consilience.pages.with_gold import anchored, is_open, with_refits
from consilience.printing import counted
from consilience.rounding import probability

# Annotations that are simulated to check the agreement; and how many data sets: enough to tell a p-value of .05.
_MOST_SIMULATED, _DATA_SETS = 1 << 22, (40, 200)

_TASK = {"annotation": "labels", "report": "rankings", "rating": "ratings"}

_MOST_NAMED = 3  # annotators to look at, and wrong labels

_SMALL_R_HAT = 1.02  # below which to run longer is the last thing to do


def classes_page(
    fit: Fit, systems: Mapping[str, Any], *, metric: Any, risk: ClassMap | None, singletons: bool, provenance: Any,
    text: Any, **policies: str,
) -> Page:  # fmt: skip
    """Return the page of classes of items, and of chains of mentions; for the parameters see `report`.

    Raises
    ------
    UnsupportedRequest : systems link records, or say something that the fit cannot score.
    """
    if any(system.kind == PARTITION.name for system in systems.values()):
        raise UnsupportedRequest("a partition of records is scored against a fit of records")
    systems, chains = split_systems(systems)
    found = _Found(fit, systems, metric, risk, provenance, policies)
    names = [metric] if isinstance(metric, (str, Metric)) else metric or ()
    known = "means" in fit.member.table_names
    rated = scale_sections(fit, found.top, found.offsets, found.without_offsets) if known else []
    named = worded(fit, found.truth, words := words_of(fit.data, text))
    read, numbers = chain_sections(fit, named, found.top, words, found.gold)
    scored = chain_scores(fit, chains, [str(name) for name in names], singletons=singletons)
    # Of four key figures the last is theirs.
    numbers = dict(list(numbers.items())[: 3 if chains else None]) | scored.numbers
    parts = [
        *read, *scored.sections,
        *([] if found.gold is None else [
            gold_section(found.gold, named.names(), found.decisive, unnamed_words(fit, named.names(), found.by_gold))
        ]),
        *(rated or [items_section(
            fit, named, found.certainties, found.annotators, found.too_high, found.by_reliability
        )]),
    ]
    if systems:
        said = gold_alerts(fit, found.gold, found.comparison, systems, found.metrics[0], policies)
        board = leaderboard_section(
            found.comparison, found.top, fit, said, found.scores, found.metrics, found.by_gold
        )
        parts.insert(int(fit.data.rows == "rating" or fit.data.unit == "mention"), board)
    parts += [risk_section(found.truth, found.top, risk, found.by_group)] if risk is not None else []
    parts += annotator_sections(fit, found.annotators)
    agreed, unexpected = _agreement_parts(fit, found.truth, found.top)
    parts += agreed
    parts += next_label_sections(fit)
    mentions = fit.data.unit == "mention"
    task = "coreference" if mentions else _TASK[fit.data.rows]
    title = "Majority vote on" if is_counted(fit) else f"{task.capitalize()} of"
    return Page(
        f"{title} {counted(found.truth.num_units, f'{fit.data.unit}s')}", line_of(fit), parts,
        alerts=[*unexpected, *scored.alerts], numbers=numbers or _numbers(fit, found),
        findings=[*scored.findings, *_findings(found, named)], actions=_actions(fit, found, named),
    )  # fmt: skip


class _Found:
    """What a page of classes says in several places, each computed once.

    Parameters
    ----------
    fit : that the page is about.
    systems : predictions by name.
    metric, risk, provenance : as in `report`.
    policies : for items and classes that do not agree.
    """

    def __init__(
        self, fit: Fit, systems: Mapping[str, Predictions], metric: Any, risk: ClassMap | None, provenance: Any,
        policies: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.fit, self.truth, self.unit = fit, remembering(fit.truth), fit.data.unit
        self.systems, self.risk, self.policies, self.provenance = systems, risk, policies, provenance
        # Of a crowd a system that looked itself is fitted with the annotators: a truth alone does not know them.
        self.compared = self.truth if self.truth.dependence is None else fit
        metrics = _metrics(metric, self.truth, systems) if systems else []
        self.metrics = [_of_side() if fit.data.rows == "rating" and one.name == "top-1" else one for one in metrics]

    @functools.cached_property
    def annotators(self) -> Any:
        """The table of the annotators; an empty one where the model has none."""
        return self.fit.table("annotators") if "annotators" in self.fit.member.table_names else {}

    @functools.cached_property
    def offsets(self) -> Offsets:
        """How much higher than others annotators rate; of ratings."""
        return offsets_of(self.fit.data)

    @functools.cached_property
    def without_offsets(self) -> Without | None:
        """What would follow without them, where that tells."""
        return without_offsets(self.fit, self.offsets)

    @functools.cached_property
    def certainties(self) -> list[Score]:
        """Certainties of the top 1, 2 and 3 classes: of as many as the truth ranks and the data leave open."""
        most = min(3, max(1, self.truth.num_classes - 1)) if self.truth.answers(Ranked(2)) else 1
        found = certainty(self.truth, top=range(1, most + 1)).values()
        # How they were computed stands under the table of items, once.
        names = [score.title.removesuffix(", exact") for score in found]
        if class_word(self.fit) == "label":
            names = [name.replace("classes", "labels").replace("class", "label") for name in names]
        return [dataclasses.replace(score, title=name) for score, name in zip(found, names, strict=True)]

    @property
    def top(self) -> Score:
        """The certainty of the top class."""
        return self.certainties[0]

    @functools.cached_property
    def too_high(self) -> float:
        """By how much these are too high on average, as counted."""
        return too_high(self.top, self.truth)

    @functools.cached_property
    def at_others(self) -> list[assumed.Assumed]:
        """What follows from other reliabilities than the one that is assumed."""
        return assumed.at_other_reliabilities(self.fit, self.systems, self.metrics)

    @property
    def as_assumed(self) -> assumed.Assumed:
        """What follows from that one."""
        scores = {name: own[self.metrics[0].name].value for name, own in self.scores.items()}
        return assumed.Assumed(self.fit.options.get("reliability", 0.0), self.top, scores)

    @property
    def by_reliability(self) -> list[Any]:
        """Both in a table; none where no other was tried."""
        return assumed.reliability_table(self.fit, self.as_assumed, self.at_others, self.metrics)

    @functools.cached_property
    def gold(self) -> BesideGold | None:
        """The fit beside gold labels that it did not use."""
        return beside_gold(self.fit)

    @functools.cached_property
    def decisive(self) -> Decisive | None:
        """The gold label that tells most of the dependence that was learned from all."""
        return decisive(self.fit)

    @functools.cached_property
    def by_gold(self) -> SystemsByGold | None:
        """The systems beside them."""
        if not self.systems:
            return None
        metric = self.metrics[0]
        found = right_by_gold(self.fit, self.gold, self.comparison, self.systems, metric, self.policies)
        every = self.gold is not None and self.gold.score.items == self.truth.num_units
        if found is None or not found.leads or every or not is_open(self.comparison):
            return found
        return found._replace(anchored=anchored(self.fit, self.systems, metric, self.policies))

    @functools.cached_property
    def comparison(self) -> Comparison:
        """The leaderboard, by the first metric."""
        found = compare(
            self.compared, self.systems, metric=self.metrics[0], provenance=self.provenance, **self.policies
        )  # fmt: skip
        return with_refits(self.fit, found, self.systems, self.metrics[0], self.policies)

    @functools.cached_property
    def scores(self) -> dict[str, dict[str, Score]]:
        """All metrics of each system."""
        return {
            name: evaluate(self.truth, system, self.metrics, **self.policies)
            for name, system in self.systems.items()
        }

    @functools.cached_property
    def other_leads(self) -> Leads:
        """Where other systems are ahead of the first."""
        return other_leads(self.truth, self.systems, self.metrics, self.comparison, self.scores, **self.policies)

    @property
    def by_group(self) -> dict[str, Score]:
        """The first metric of each system by group: from draws, so that nothing else of these is for the page."""
        return {
            name: evaluate(self.truth, system, self.metrics[0], class_groups=self.risk, **self.policies)
            for name, system in self.systems.items()
        }


def _metrics(metric: Any, truth: Any, systems: Mapping[str, Predictions]) -> list[Metric]:
    """Choose what to report: the metric that is asked for, top-1 as in `compare`, and what follows from the lengths."""
    if isinstance(metric, list | tuple):
        return [resolve(one) for one in metric]
    # Of four classes the top three leave out one: a depth is told up to half of the classes.
    depth = min(3, max(1, (truth.num_classes - 1) // 2), *(system.num_positions for system in systems.values()))
    by_depth = {1: ["top-1"], 2: ["top-1", "top-2", "set-2", "ao-2"], 3: ["top-1", "top-3", "set-2", "set-3", "ao-3"]}
    names: list[Any] = [name for name in by_depth[depth] if truth.answers(Ranked(2)) or name.startswith("top-")]
    chosen = [resolve(one) for one in ([] if metric is None else [metric]) + names]
    return list({one.name: one for one in chosen}.values())


@functools.cache
def _of_side() -> Metric:
    """Return what top-1 accuracy is where there are two sides of a threshold, by that name."""
    return dataclasses.replace(resolve("top-1"), title="accuracy of the side")


def _numbers(fit: Fit, found: _Found) -> dict[str, Any]:
    """Return the four key figures of a page."""
    truth, top = found.truth, found.top
    numbers: dict[str, Any]
    if fit.data.rows == "rating":
        own = rating_numbers(fit, top, found.offsets, found.without_offsets, systems=bool(found.systems))
        board = leaderboard_numbers(found.comparison, fit, found.by_gold) if found.systems else {}
        return own | board
    numbers = {} if found.gold is None else {**found.gold.figures}
    if is_vote(fit):
        numbers |= {f"ties, of {counted(truth.num_units, 'items')}": below(top, 1)}
        numbers |= {"mean share of votes": f"{fit.table('labels')['share'].mean():.3f}"}
    elif truth.num_draws > 1:
        rests = assumed.assumed_words(fit)
        certain = f"mean certainty of the top {class_word(fit)}{rests}"
        rests *= bool(numbers)  # it stands beside the first
        numbers |= {} if numbers else {certain: f"{top.value:.3f}"}
        of = counted(truth.num_units, f"{fit.data.unit}s")
        numbers |= {f"of {of} with a certainty below 0.9{rests}": below(top)}
    if found.systems:
        board = leaderboard_numbers(found.comparison, fit, found.by_gold)
        return dict(list(numbers.items())[:2]) | board
    if found.risk is not None:
        numbers |= {"certainty of the group": f"{certainty(truth, class_groups=found.risk).value:.3f}"}
    numbers |= doubtful_annotators(fit, found.annotators) | accuracies(fit, found.annotators)
    classes = "labels" if class_word(fit) == "label" else "classes"
    sizes = {"annotators": fit.data.counts.get("annotators"), classes: truth.num_classes}
    return numbers | {name: size for name, size in sizes.items() if size and name not in numbers}


def _findings(found: _Found, named: Any) -> list[str]:
    """Say what was found, the most important first."""
    truth, gold = found.truth, found.gold
    said = []
    if found.fit.data.rows == "rating":
        without = found.without_offsets
        told = [] if without is None else [without.words(found.fit, found.top)]
        said = [sides_words(found.fit, found.top, found.offsets)]
        said += [" ".join([*one, *told]) for one in [found.offsets.finding] if one]
    beside = [f"{found.by_gold}."] if found.by_gold is not None and found.by_gold.leads else []
    said += [] if found.by_gold is not None and found.by_gold.anchored is not None else beside
    if found.systems:
        said.append(verdict(found.comparison, found.fit, found.by_gold) + found.other_leads.words)
        said += [one for one in beside if one not in said]
    if found.fit.data.rows == "report" and truth.num_draws > 1:
        least, names = int(np.nanargmin(found.top.items)), truth.names()
        said.insert(0, (
            f"For {below(found.top):,} of {counted(truth.num_units, 'items')} it is open which class is the most "
            f"plausible: the leading one has a probability below {SURE} of being so. The least certain is "
            f"“{names[least]}”, where {_surely_leads(found, least)}; mean plausibilities are "
            f"{leading_classes(truth, np.array([least]))[0]}.{_ties(found)}"
        ))  # fmt: skip
    said += without_evidence(found.fit)[0]
    if truth.num_draws > 1 and found.fit.data.rows == "annotation":
        of = f"of {counted(truth.num_units, f'{found.unit}s')}"
        unsure = f"The fit is less than 90 % certain of the leading label of {below(found.top):,} {of}"
        if others := [int((one.round(3) < SURE).sum()) for one in at_other_dependence(truth, found.top).values()]:
            one = "" if found.decisive is None else found.decisive.in_finding(truth.names())
            unsure += f" ({min(others):,} to {max(others):,}, as it is not known how far annotators err together{one})"
        unsure += "."
        said += [] if is_vote(found.fit) else [unsure]  # the box of a vote has its ties
    said += [words] if (words := assumed.finding(found.fit, found.as_assumed, found.at_others, found.metrics)) else []
    if gold is None:
        fit_unchecked = unchecked(found.offsets) if found.fit.data.rows == "rating" else "nothing here checks the fit"
        checks = "the labels" if is_vote(found.fit) else "its probabilities"
        said.append(
            f"There are no gold labels that the {fit_word(found.fit)} did not use: nothing here checks {checks}."
            if found.fit.data.rows == "annotation" else f"No item is known for certain: {fit_unchecked}."
        )
        if (one := truth.dependence) is not None:
            said[-1] += together_words(
                found.top.value, truth.certainty_if_independent, one.rho, one.gold_items, one.source, found.unit
            )  # fmt: skip
    elif gold.vote is None:  # of a vote the box above has what gold labels say
        said.append(_by_gold(found, gold, named))
    if truth.num_draws == 1:
        said.append(f"The model gives a point estimate: the certainty of every {found.unit} is 1, by construction.")
    return said


def _surely_leads(found: _Found, item: int) -> str:
    """Say which class of an item is the most plausible one, and how probably."""
    classes, code = found.truth.ids.get("class"), int(found.truth.lead.label[item])
    sure = probability(float(found.top.items[item]), 2, effective_draws(found.fit, found.top))
    return f"{code if classes is None else classes[code]} is the most plausible class with probability {in_words(sure)}"


def _ties(found: _Found) -> str:
    """Say of which items the draws do not tell which of two classes leads."""
    tied = near_ties(found.truth, found.top, effective_draws(found.fit, found.top))
    named = named_items(found.truth, tied, found.unit)
    return f" For {named} two classes lead equally often, as far as the draws tell." if named else ""


def _by_gold(found: _Found, gold: BesideGold, named: Any) -> str:
    """Say how right labels are by gold labels that the fit did not use, and whether annotators are as it says.

    Parameters
    ----------
    found, gold : the parts of the page, and the fit beside gold labels.
    named : the truth, as `worded` writes it.
    """
    apart = halves(found.fit, found.annotators)
    names, wrong = named.names(), [place for place, _ in gold.wrong]
    listed = f" Wrong: {', '.join(str(names[place]) for place in wrong)}." if 0 < len(wrong) <= _MOST_NAMED else ""
    listed += "" if gold.voted is None else gold.voted.clause
    of = counted(gold.score.items, f"{found.unit}s")
    used = f"Gold labels of {of} were not used in the fit"
    if gold.moved:
        used = f"From gold labels of {of} the fit learned only how much annotators err together{gold.moved}"
    return (
        f"{used}. The leading label is right on {gold.counts}{gold.beside}.{listed}"
        f"{'' if apart is None else apart.finding}"
    )


def _actions(fit: Fit, found: _Found, named: Any = None) -> list[Action]:
    """Say what can be done next: commands, and links into the page."""
    unit, which = fit.data.unit, "tied" if is_vote(fit) else "least certain"
    others = [
        Action(f"Fit {note.model} instead, which avoids this:", fit_again(fit, note.model, output=note.model))
        for note in fit.findings() if note.model
    ]  # fmt: skip
    longer: list[Action] = []
    if "chains" in fit.attributes and (worst := fit.worst) is not None:
        times = math.ceil(LEAST_ESS / worst.size) if worst.short and worst.size > 0 else 1
        times = max(times, 2) if worst.disagreeing else times
        draws = f"Ask for more draws of each run (fewest effective draws: {worst.size:,.0f}):"
        words = draws if worst.short else "Run longer:"
        command = fit_again(fit, output="longer", draws=times * fit.draws)
        longer = [Action(words, command)] * (times > 1)
        if worst.size < POOR_ESS or worst.r_hat >= _SMALL_R_HAT:
            others, longer = [*others, *longer], []
    blind = without_evidence(fit)[1]
    who = "who seem to err most"
    if is_counted(fit):
        by_gold = labels_by_gold(found.annotators)
        who = "whose labels are the gold label least often" if by_gold else "whose labels won the vote least often"
    actions = [
        *others,
        *[Action(f"Look at {blind}: labels that may agree by chance alone", section="Annotators")] * bool(blind),
        Action(what_to_read(named, found.top, fit.data), section="Text") if unit == "mention" else
        Action(f"Look at the {unit}s that are {which}", section=f"{unit.capitalize()}s"),
        Action("Ask for one more label where it tells most", section="Next labels"),
        Action(f"Look at annotators {who}{_worst(fit, found.annotators, blind)}", section="Annotators"),
    ]  # fmt: skip
    actions = [*(to_take_off(fit, found.offsets) if fit.data.rows == "rating" else []), *actions]
    actions += assumed.actions(fit, found.at_others)
    if found.systems and is_open(found.comparison):
        systems = {name: found.systems[name] for name in found.comparison.table["system"]}
        alone = f"; {found.comparison.title} alone counts it" * (len(found.metrics) > 1)
        words = f"If systems looked at the items themselves, say so{alone}{whose_columns(fit, systems)}:"
        open_ = [Action(words, compare_again(fit, systems, provenance="independent"))]
        shown = found.by_gold is not None and found.by_gold.anchored is not None
        if found.gold is not None and found.gold.score.items >= LEAST_ITEMS and not shown:
            open_.insert(0, Action("Anchor the scores on the gold labels:", compare_again(fit, systems, gold="use")))
        if fit.data.rows != "annotation":  # of which no reader takes gold labels
            words, few = "decided for certain, and count how many each system has right", 20
            number = found.truth.num_units if found.truth.num_units <= 2 * few else few
            which = "the items" if number > few else f"{few} random items"
            half = float(np.diff(wilson(0.5, number))[0]) / 2
            left = f"there being only {counted(number, 'items')} leaves a doubt of at most ± {half:.1g}"
            open_.append(Action(f"Have {which} {words}: then annotators' errors no longer matter, and {left}"))
        actions[len(others) : len(others)] = open_
    if not found.systems and unit == "item":
        actions.append(Action(f"Compare systems{whose_columns(fit, {})}:", compare_again(fit, {})))
    if found.gold is None and fit.data.rows == "annotation":
        actions.append(Action("Give gold labels of 20 items or more, in a column gold, to check the probabilities"))
    return actions + longer


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
    return f"{' by their sensitivities' * (score == 'sensitivity')}, first {named}" if named else ""


def _agreement_parts(fit: Fit, truth: Truth, top: Score) -> tuple[list[Section], list[Alert]]:
    """Say how annotators agree: each with the others together, in pairs, and as the fit expects or does not."""
    if "left-out" not in fit.data.agreements:
        return [], []
    data: Any = fit.data
    left_out = annotator_agreement(data, fit.options.get("rank_weights", "equation-14"))
    several = int(np.isfinite(left_out.items).sum())
    if not several:
        return [], []
    first = "that the other annotators of the item gave most often"
    if fit.data.rows == "report":
        first = "that leads in the rankings of the item's others, where a class weighs less the lower it stands"
    words = (
        f"Leave-one-out agreement is how often an annotator names the {class_word(fit)} {first}; where several lead, "
        "any of them counts. It is "
        f"{left_out.value:.3f} on average over {counted(several, 'items')} with two annotators or more."
    )
    blocks: list[Any] = [words]
    each: list[Any] = []
    gist = f"leave-one-out agreement {left_out.value:.3f}"
    if fit.data.rows == "report":
        beside, more, each = _of_rankings(fit)
        blocks[0] += f" {more}"
        gist += beside
    if truth.num_draws > 1 and not is_vote(fit):
        blocks[0] += " It uses no model; certainty should rise with it."
        blocks.append(figures.certainty_by_agreement(top, left_out))
    blocks += each
    pairs, is_checked, said = _pairwise_agreement(fit)
    if not pairs:
        return [Section("Agreement with the others", blocks, gist)], said
    title = "Agreement and model check" if is_checked else "Agreement of annotators"
    return joined([Section("Agreement with the others", blocks), *pairs], title, gist), said


def _of_rankings(fit: Fit) -> tuple[str, str, list[Any]]:
    """Say what the agreement of rankings is to be read beside, in brackets and in sentences, and how each agrees."""
    data: Any = fit.data
    weights = fit.options.get("rank_weights", "equation-14")
    beside, each = naming(data, weights), agreement_by_annotator(data, weights)
    least, most = (f"{end:.1f}" for end in (each.classes.min(), each.classes.max()))
    named = f"{least} to {most}" if least != most else f"{least} each"
    gist = f" ({beside.at_random:.2f} at random), as the first choice {beside.first:.3f} ({beside.first_at_random:.2f})"
    words = (
        "Where rankings are long it is high by chance: an annotator who names as many classes at random, out of "
        f"{data.num_classes:,}, would name a single leading one with probability {beside.at_random:.2f}. It comes "
        f"first, alone or tied, in {beside.first:.3f} of the rankings; at random it would in "
        f"{beside.first_at_random:.2f}."
    )
    how = "The same for each annotator. One who names more classes in a ranking agrees more easily: on average they "
    return gist, words, [f"{how}name {named}.", agreement_bars(each)]


def _pairwise_agreement(fit: Fit) -> tuple[list[Section], bool, list[Alert]]:
    """Return sections on the agreement in pairs, whether one has what the fit expects of it, and what that says."""
    if "pairs" not in fit.data.agreements:
        return [], False, []
    data: Any = fit.data
    is_checked = False
    parts: list[Section] = []
    said: list[Alert] = []
    # Weights of rows may be no numbers of annotations, and a truth may not say how often annotators agree.
    with contextlib.suppress(UnsupportedRequest):
        # The model was fitted to every row; the report is about the same ones.
        parts += agreement_sections(agreement(data, duplicates="keep"))
    with contextlib.suppress(UnsupportedRequest):
        number = int(np.clip(_MOST_SIMULATED // max(data.num_annotations, 1), *_DATA_SETS))
        found = agreement(fit, num_predictive=number, most_simulated=_MOST_SIMULATED)
        parts.append(predictive_section(found, fit.truth.dependence))
        is_checked = True
        if found.unexpected:
            about = ERRORS if found.predictive_p > 0.5 else ""  # what is agreed on more than expected
            said.append(Alert("The fit does not expect this agreement.", [found.verdict], Level.warning, about))
    return parts, is_checked, said
