"""The page of classes of items, and of chains of mentions: parts that a fit has, in their order."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.data import ClassMap, Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.certainties import certainty
from consilience.evaluation.classes import Metric, resolve
from consilience.evaluation.comparison import compare
from consilience.evaluation.first_choices import FirstChoices
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.rank_agreement import RankAgreement, rank_agreement
from consilience.evaluation.scores import Score
from consilience.evaluation.without_annotators import leaves_out_annotators
from consilience.inference.fitting import Fit
from consilience.models.intervals import LEVEL
from consilience.models.truth import Ranked
from consilience.models.truth.truth import PARTITION
from consilience.pages import SURE, More, Page, assumed, capital, first_screen, next_classes, rankings_agree
from consilience.pages.agreement_of_fits import agreement_parts
from consilience.pages.annotators_by_gold import Halves, halves
from consilience.pages.beside_a_vote import beside_a_vote
from consilience.pages.by_reading import ACCURACIES
from consilience.pages.chains import (
    ChainScores,
    FoundChains,
    chain_scores,
    chain_sections,
    found_chains,
    mentions_figure,
    mentions_verdict,
    split_systems,
    worded,
    words_of,
)
from consilience.pages.crowd import (
    accuracies,
    annotator_sections,
    doubtful_annotators,
    most_worth,
    next_label_sections,
)
from consilience.pages.gold import (
    BesideGold,
    SystemsByGold,
    beside_gold,
    gold_alerts,
    gold_section,
    right_by_gold,
    together_words,
)
from consilience.pages.gold_chains import annotators_by_gold
from consilience.pages.gold_items import compared_with_others, if_random
from consilience.pages.groups import risk_section
from consilience.pages.items import (
    at_other_dependence,
    below,
    class_word,
    digits_for,
    effective_draws,
    items_section,
    near_ties,
    sure_throughout,
    too_high,
)
from consilience.pages.looked import Choices, choices
from consilience.pages.more_ratings import MoreRatings, more_ratings
from consilience.pages.offsets import Offsets, offsets_of
from consilience.pages.one_gold_label import Decisive, decisive, unnamed_words
from consilience.pages.other_metrics import Leads, other_leads
from consilience.pages.ranking_check import check_section, checked
from consilience.pages.ratings import (
    not_the_posterior,
    rating_numbers,
    ratings_figure,
    ratings_verdict,
    scale_sections,
    sides_words,
    unchecked,
)
from consilience.pages.remembered import remembering
from consilience.pages.run import fit_word, has_first_screen, is_counted, is_vote, line_of, without_evidence
from consilience.pages.scored_sides import allowing_for_moves, sides_as_truth
from consilience.pages.sides import Sides, Without, sides_of, without_offsets
from consilience.pages.spread_of_ratings import Spread
from consilience.pages.systems import (
    leaderboard_numbers,
    leaderboard_section,
    verdict,
)
from consilience.pages.who_agrees import agreement_with_others
from consilience.pages.with_gold import anchored, is_open, with_refits
from consilience.printing import counted
from consilience.rounding import reaches, within

_TASK = {"annotation": "labels", "report": "rankings", "rating": "ratings"}

_MOST_NAMED = 3  # wrong labels

_SEE_ANNOTATORS = "What gold labels say against these probabilities is under Annotators."


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
    rated = []
    if known:
        rated = scale_sections(fit, found.top, found.offsets, found.without_offsets, found.spread, found.more_ratings)
    named = worded(fit, found.truth, words := words_of(fit.data, text))
    of_chains = found_chains(fit, named, found.top)
    read, numbers = chain_sections(fit, named, found.top, words, of_chains, found.gold)
    scored = chain_scores(fit, chains, [str(name) for name in names], singletons=singletons)
    # Of four key figures the last is theirs.
    numbers = dict(list(numbers.items())[: 3 if chains else None]) | scored.numbers
    parts = [
        *read, *scored.sections,
        *([] if found.gold is None else [
            gold_section(
                found.gold, ids := named.names(), found.decisive,
                unnamed_words(fit, ids, found.by_gold.said) + compared_with_others(fit),
            )
        ]),
        *(rated or [items_section(
            fit, named, found.certainties, found.annotators, found.tied, found.too_high,
            [*found.by_reliability, *_err_together(found)],
        )]),
    ]
    if systems:
        said = gold_alerts(fit, found.gold, found.comparison, systems, found.metrics[0], policies)
        board = leaderboard_section(
            found.comparison, found.certain, fit, said, found.scores, found.metrics, found.by_gold, found.other_leads,
            found.said,
        )
        parts.insert(int(fit.data.rows == "rating" or fit.data.unit == "mention"), board)
    parts += [risk_section(found.truth, found.top, risk, found.by_group)] if risk is not None else []
    parts += annotators_by_gold(fit)
    parts += annotator_sections(fit, found.annotators)
    parts += agreement_with_others(fit, named) if fit.data.unit == "mention" else []
    agreed, unexpected = agreement_parts(fit, found.truth, found.top, found.ranked)
    model_check, unlike = check_section(found.check)
    parts += [*agreed, *model_check]
    parts += next_label_sections(fit, found.next_labels)
    mentions = fit.data.unit == "mention"
    task = "coreference" if mentions else _TASK[fit.data.rows]
    title = "Majority vote on" if is_counted(fit) else f"{task.capitalize()} of"
    return Page(
        f"{title} {counted(found.truth.num_units, f'{fit.data.unit}s')}",
        line_of(fit, corrected=known and found.without_offsets is not None), parts,
        alerts=[*unexpected, *unlike, *scored.alerts],
        numbers=numbers or _numbers(fit, found),
        findings=_findings(found, named, of_chains, scored),
        actions=next_classes.actions(fit, found, named, of_chains),
        verdict=_verdict(found, of_chains, scored), figure=_figure(found, named, of_chains, scored),
        method=not_the_posterior(found.without_offsets, systems=bool(systems)) if known else "",
        begins_open=2 + (bool(systems) and found.gold is not None and has_first_screen(fit)),  # the items too
    )  # fmt: skip


def _verdict(found: _Found, chains: FoundChains | None, scored: ChainScores) -> str:
    """Return what the data allow to say, in one sentence; empty of what has none."""
    if found.fit.data.rows == "rating":
        return ratings_verdict(found.fit, found.sides, found.offsets, found.without_offsets)
    if chains is not None:
        return mentions_verdict(found.fit, found.top, chains, found.gold, scored)
    if not has_first_screen(found.fit):
        return ""
    doubted = found.halves is not None and found.halves.told
    board = found.comparison if found.systems else None
    firm = None if is_vote(found.fit) else found.sure_throughout
    return first_screen.verdict(found.fit, found.top, found.gold, doubted, board, found.by_gold, firm)


def _figure(found: _Found, named: Any, chains: FoundChains | None, scored: ChainScores) -> Any:
    """Return the figure of the first screen; None of what has none."""
    if found.fit.data.rows == "rating":
        return ratings_figure(found.fit, found.sides)
    if found.unit == "mention":
        return mentions_figure(named, found.top, chains, scored)
    board = found.comparison if found.systems else None
    return first_screen.figure(found.fit, found.top, board, found.by_gold) if has_first_screen(found.fit) else None


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
        metrics = _metrics(metric, self.truth, systems) if systems else []
        own = {"rating": "accuracy of the side", "annotation": ACCURACIES[0]}.get(fit.data.rows)
        own = own if fit.data.rows == "rating" or (len(metrics) == 1 and self.unit == "item") else None
        self.metrics = [_by_name(own) if own and one.name == "top-1" else one for one in metrics]

    @functools.cached_property
    def scored(self) -> Any:
        """The truth that systems are scored against: of ratings what the page says of the sides."""
        if self.fit.data.rows != "rating" or self.without_offsets is None:
            return self.truth
        return sides_as_truth(self.fit, self.without_offsets)

    @property
    def compared(self) -> Any:
        """The same, or the fit, where annotators count: a truth alone does not know them, nor whom to leave out."""
        counts = self.truth.dependence is not None or leaves_out_annotators(self.fit, self.truth)
        return self.fit if counts else self.scored

    @functools.cached_property
    def certain(self) -> Score:
        """The certainty of the top class, as the page has it: of ratings that of the sides."""
        if self.scored is self.truth:
            return self.top
        return dataclasses.replace(self.top, items=self.sides.certainty)

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
    def sides(self) -> Sides:
        """What the page says of the means of rated items."""
        return sides_of(self.fit, self.top, self.without_offsets)

    @functools.cached_property
    def more_ratings(self) -> MoreRatings:
        """How many more ratings open items take."""
        return more_ratings(self.fit, self.sides, self.spread.found)

    @functools.cached_property
    def spread(self) -> Spread:
        """How far ratings spread, and what by."""
        return Spread(self.fit.data)

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
    def tied(self) -> np.ndarray:
        """The places of items of which the draws do not tell which of two classes leads."""
        return near_ties(self.truth, self.top, effective_draws(self.fit, self.top))

    @functools.cached_property
    def unsure_at_others(self) -> list[int]:
        """How many items are uncertain at the ends of how far annotators may err together; empty where it is known."""
        return [int((~reaches(one, SURE)).sum()) for one in at_other_dependence(self.truth, self.top).values()]

    @functools.cached_property
    def sure_throughout(self) -> int | None:
        """How many items are certain at both ends and as assumed; None where these make no difference."""
        if not self.unsure_at_others or len({below(self.top), *self.unsure_at_others}) == 1:
            return None
        return int(sure_throughout(self.top, at_other_dependence(self.truth, self.top)).sum())

    @functools.cached_property
    def at_others(self) -> list[assumed.Assumed]:
        """What follows from other reliabilities than the one that is assumed."""
        return assumed.at_other_reliabilities(self.fit, self.systems, self.metrics)

    @property
    def as_assumed(self) -> assumed.Assumed:
        """What follows from that one."""
        scores = {name: own[self.metrics[0].name].value for name, own in self.scores.items()}
        return assumed.Assumed(assumed.trusted(self.fit), self.top, scores)

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
    def halves(self) -> Halves | None:
        """The annotators beside them."""
        return halves(self.fit, self.annotators)

    @functools.cached_property
    def by_gold(self) -> SystemsByGold:
        """The systems beside them."""
        if not self.systems:
            return SystemsByGold()
        metric = self.metrics[0]
        found = right_by_gold(self.fit, self.gold, self.comparison, self.systems, metric, self.policies)
        if self.gold is None:
            return found
        doubts = [f"{self.gold.doubt}."] if self.gold.beside else []
        doubts += [_SEE_ANNOTATORS] if self.halves is not None and self.halves.told else []
        found = found._replace(doubt=" ".join(doubts))
        if not found.leads or self.gold.score.items == self.truth.num_units or not is_open(self.comparison):
            return found
        return found.with_both(anchored(self.fit, self.systems, metric, self.policies))

    @functools.cached_property
    def comparison(self) -> Comparison:
        """The leaderboard, by the first metric."""
        found = compare(
            self.compared, self.systems, metric=self.metrics[0], provenance=self.provenance, **self.policies
        )  # fmt: skip
        if self.scored is not self.truth and self.without_offsets is not None:
            given = self.fit, self.without_offsets, self.systems, self.metrics[0], self.policies
            return allowing_for_moves(found, *given)
        return with_refits(self.fit, found, self.systems, self.metrics[0], self.policies)

    @functools.cached_property
    def scores(self) -> dict[str, dict[str, Score]]:
        """All metrics of each system."""
        return {
            name: evaluate(self.scored, system, self.metrics, **self.policies)
            for name, system in self.systems.items()
        }

    @functools.cached_property
    def other_leads(self) -> Leads:
        """Where other systems are ahead of the first."""
        return other_leads(self.compared, self.systems, self.metrics, self.comparison, self.scores, **self.policies)

    @functools.cached_property
    def said(self) -> Choices | None:
        """What the systems say of items first."""
        return choices(self.fit, self.systems, self.policies)

    @functools.cached_property
    def next_labels(self) -> Any:
        """The items most worth another label; None where that is not known."""
        return most_worth(self.fit)

    @functools.cached_property
    def check(self) -> FirstChoices | None:
        """Whether a fit of rankings expects how often annotators put the same class first."""
        return checked(self.fit)

    @functools.cached_property
    def ranked(self) -> RankAgreement | None:
        """How far annotators of rankings rank alike; None of other data."""
        data: Any = self.fit.data
        return rank_agreement(data, self.fit.seed or 0) if data.rows == "report" else None

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
def _by_name(title: str) -> Metric:
    """Return what top-1 accuracy is of two sides of a threshold, or of the one label of an item, by that name."""
    return dataclasses.replace(resolve("top-1"), title=title)


def _numbers(fit: Fit, found: _Found) -> dict[str, Any]:
    """Return the four key figures of a page."""
    truth, top = found.truth, found.top
    numbers: dict[str, Any]
    if fit.data.rows == "rating":
        own = rating_numbers(
            fit, found.sides, found.offsets, found.without_offsets, found.spread, systems=bool(found.systems)
        )
        board = leaderboard_numbers(found.comparison, fit, found.by_gold) if found.systems else {}
        return own | board
    numbers = {} if found.gold is None else {**found.gold.figures}
    if is_vote(fit):
        numbers |= {"items with tied votes": f"{below(top, 1):,} of {truth.num_units:,}"}
        numbers |= {"mean share of votes": f"{fit.table('labels')['share'].mean():.3f}"}
    elif truth.num_draws > 1:
        ends = found.unsure_at_others
        together = " ({:,} to {:,} if annotators make the same errors less or more often)".format
        spread = together(min(ends), max(ends)) if ends else assumed.unsure_words(found.at_others)
        unsure = {
            f"{fit.data.unit}s with a certainty below {SURE:g}{spread}": f"{below(top):,} of {truth.num_units:,}"
        }
        if not numbers:
            digits = 2 if found.at_others else digits_for(fit, top, truth)
            certain = f"mean certainty of top {class_word(fit)}{assumed.assumed_words(fit, found.at_others)}"
            numbers = {certain: f"{top.value:.{digits}f}"}
        numbers |= unsure
    if found.systems:
        board = leaderboard_numbers(found.comparison, fit, found.by_gold)
        return dict(list(numbers.items())[:2]) | board
    if found.risk is not None:
        numbers |= {"certainty of the group": f"{certainty(truth, class_groups=found.risk).value:.3f}"}
    numbers |= doubtful_annotators(fit, found.annotators) | accuracies(fit, found.annotators)
    classes = "labels" if class_word(fit) == "label" else "classes"
    sizes = {"annotators": fit.data.counts.get("annotators"), classes: truth.num_classes}
    return numbers | {name: size for name, size in sizes.items() if size and name not in numbers}


def _findings(found: _Found, named: Any, chains: FoundChains | None, scored: ChainScores) -> list[str]:
    """Say what was found, the most important first."""
    truth, gold = found.truth, found.gold
    by_chain = [] if chains is None else chains.finding
    said = [*by_chain, *scored.findings]
    if found.fit.data.rows == "rating":
        without = found.without_offsets
        said += [
            *filter(None, [sides_words(found.fit, found.sides, found.offsets, without, systems=bool(found.systems))]),
            *found.offsets.finding(corrected=without is not None),
        ]
    beside = [f"{found.by_gold}."] * found.by_gold.leads
    said += beside * (found.by_gold.anchored is None)  # else the leaderboard has it
    if found.systems:
        said += verdict(found.comparison, found.fit, found.by_gold)
    said += [] if found.unit == "mention" else without_evidence(found.fit)[0]  # of mentions a step has it
    if found.unit == "item" and found.fit.data.rows == "annotation" and not is_vote(found.fit):
        said += _of_dependence(found)
    said += [words] if (words := assumed.finding(found.fit, found.as_assumed, found.at_others, found.metrics)) else []
    if gold is None:
        fit_unchecked = "nothing here checks the fit"
        if found.fit.data.rows == "rating":
            fit_unchecked = unchecked(found.offsets, found.without_offsets)
        checks = "the labels" if is_vote(found.fit) else "its probabilities"
        said.append(
            f"There are no gold labels that the {fit_word(found.fit)} did not use: nothing here checks {checks}."
            if found.fit.data.rows == "annotation" else f"The data hold no known truth: {fit_unchecked}."
        )
        if found.fit.data.rows == "report":
            said[-1] = "There are no gold labels: only the rankings themselves check the fit."
            said[-1] += f" {rankings_agree.in_finding(found.ranked)}" if found.ranked is not None else ""
    elif gold.vote is not None:  # its tile has how many are right
        supposed = "" if found.by_gold.anchored is not None else if_random(found.fit)
        words = gold.vote.by_votes + supposed if gold.vote.by_votes else supposed.replace(" This", "The share right", 1)
        said += [words] * bool(words)
    else:
        held = gold.voted is not None and not gold.beside
        of_labels = beside_a_vote(gold) if held else _by_gold(found, gold, named)
        said.insert(len(by_chain) if found.unit == "mention" and not held else len(said), of_labels)
        said += [found.halves.finding] if found.halves is not None and found.halves.told else []
    if truth.num_draws == 1:
        said.append(f"The model gives a point estimate: the certainty of every {found.unit} is 1, by construction.")
    if found.systems and found.by_gold.anchored is None and found.other_leads.is_clear:
        said.append(found.other_leads.furthest)
    return said


def _err_together(found: _Found) -> list[More]:
    """Say how far annotators are taken to err together, where no gold labels tell; with these their section says it."""
    one = found.truth.dependence
    if one is None or found.gold is not None:
        return []
    words = together_words(
        found.top.value, found.truth.certainty_if_independent, one.rho, one.gold_items, one.source, found.unit
    )  # fmt: skip
    return [More("How far annotators err together", [words.strip()])] if words else []


def _of_dependence(found: _Found) -> list[str]:
    """Say how far the number of uncertain items depends on how annotators err together; nothing where it does not."""
    if not (ends := found.unsure_at_others) or min(ends) == max(ends):
        return []
    words = (
        f"By the fit, {counted(below(found.top), f'{found.unit}s')} have a certainty (the probability that their label "
        f"is right) below {SURE:g}. The number may be {min(ends):,} to {max(ends):,} ({100 * LEVEL:g} %), because it "
        "is not known how often annotators make the same errors."
    )
    one = found.decisive
    return [words + ("" if one is None else one.in_finding(found.truth.names()))]


def _by_gold(found: _Found, gold: BesideGold, named: Any) -> str:
    """Say how right labels are by gold labels that the fit did not use, and whether annotators are as it says.

    Parameters
    ----------
    found, gold : the parts of the page, and the fit beside gold labels.
    named : the truth, as `worded` writes it.
    """
    names, places = named.names(), [place for place, _ in gold.wrong]
    beside = f"; wrong: {', '.join(str(names[place]) for place in places)}" if 0 < len(places) <= _MOST_NAMED else ""
    if (vote := gold.voted) is not None:  # the text marks what is wrong
        beside = f"; a majority vote is right on {vote.right:,}, with {counted(len(vote.tied), 'ties')}"
    used = "" if gold.score.fitted_on else ", which it did not use"
    supposed = "" if found.by_gold.anchored is not None else if_random(found.fit)  # the first finding has it
    random = ", if they are a random sample" * bool(if_random(found.fit) and not supposed)
    off = ""
    if gold.checked and gold.beside:
        off = f"{gold.checked}: "
    elif gold.checked:
        _, low, high = within(gold.score.right, *gold.interval)
        return (
            f"The fit's labels match {gold.counts}{used}. With {counted(gold.score.items, 'gold labels')} this only "
            f"shows that {low} to {high} of its labels are right (95 %{random})."
            f"{supposed * has_first_screen(found.fit)}"
        )
    return f"{capital(off)}its labels match {gold.counts}{used}{beside}.{supposed}" if off else (
        f"The fit's labels match {gold.counts}{used}{gold.beside}{beside}.{supposed}"
    )

