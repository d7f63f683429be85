"""The page of classes of items, and of chains of mentions: scores of systems, certainty, risk and agreement."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from consilience import figures
from consilience.data import ClassMap, Predictions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.agreement import agreement
from consilience.evaluation.certainties import certainty, expected_risk
from consilience.evaluation.classes import Metric, resolve
from consilience.evaluation.comparison import compare
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.leave_one_out import annotator_agreement
from consilience.evaluation.readings import range_text
from consilience.evaluation.scores import Score
from consilience.inference.fitting import Fit
from consilience.models.truth import Ranked, Truth
from consilience.models.truth.truth import PARTITION, Block, Question
from consilience.pages import Alert, Page, Section
from consilience.pages.agreement import agreement_sections, predictive_section
from consilience.pages.chains import ambiguity_sections, chain_score_sections, split_systems
from consilience.pages.crowd import annotator_sections, next_label_sections
from consilience.pages.gold import BesideGold, beside_gold, gold_alerts, gold_section
from consilience.printing import counted

# The table of least certain items, and how many classes it names for each.
_LEAST_CERTAIN, _LEADING = 25, 3

# Annotations that are simulated to check the agreement; and how many data sets: enough to tell a p-value of .05.
_MOST_SIMULATED, _DATA_SETS = 1 << 22, (40, 200)

# Mean plausibilities below this are not shown.
_LEAST_SHOWN = 0.005

# Rankings of more numbers than this are drawn anew for each score: 2^26 codes take 256 MiB.
_MOST_REMEMBERED = 1 << 26


def classes_page(
    fit: Fit, systems: Mapping[str, Any], *, metric: Any, risk: ClassMap | None, singletons: bool, provenance: Any,
    **policies: str,
) -> Page:
    """Return the page of classes of items, and of chains of mentions; for the parameters see `report`.

    Raises
    ------
    UnsupportedRequest : systems link records, or say something that the fit cannot score.
    """
    if any(system.kind == PARTITION.name for system in systems.values()):
        raise UnsupportedRequest("a partition of records is scored against a fit of records")
    systems, chains = split_systems(systems)
    found = _Found(fit, systems, metric, risk, provenance, policies)
    truth, gold = found.truth, beside_gold(fit)
    parts = [] if gold is None else [gold_section(gold)]
    if systems:
        said = gold_alerts(fit, gold, found.comparison, systems, found.metrics[0], policies)
        parts.append(_leaderboard_section(found.comparison, found.top, truth, said))
    parts.append(_certainty_section(truth, found.certainties))
    parts += next_label_sections(truth)
    if systems:
        parts.append(_scores_section(found.scores, found.metrics, truth))
    if risk is not None:
        parts.append(_risk_section(truth, risk, found.top, found.by_group))
    if chains:
        names = [metric] if isinstance(metric, (str, Metric)) else metric or ()
        parts += chain_score_sections(fit, chains, [str(name) for name in names], singletons=singletons)
    parts += ambiguity_sections(fit)
    parts += annotator_sections(fit)
    parts += _agreement_parts(fit, truth, found.top)
    return "Evaluation under uncertain ground truth", [_about(fit, gold), _key_figures(fit, found.top, gold)], parts


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
        self.truth = _remembering(fit.truth)
        self.systems, self.risk, self.policies, self.provenance = systems, risk, policies, provenance
        # Of a crowd a system that looked itself is fitted with the annotators: a truth alone does not know them.
        self.compared = self.truth if self.truth.dependence is None else fit
        self.metrics = _metrics(metric, self.truth, systems) if systems else []

    @functools.cached_property
    def certainties(self) -> list[Score]:
        """Certainties of the top 1, 2 and 3 classes: of as many as the truth ranks and the data leave open."""
        most = min(3, max(1, self.truth.num_classes - 1)) if self.truth.answers(Ranked(2)) else 1
        return list(certainty(self.truth, top=range(1, most + 1)).values())

    @property
    def top(self) -> Score:
        """The certainty of the top class."""
        return self.certainties[0]

    @functools.cached_property
    def comparison(self) -> Comparison:
        """The leaderboard, by the first metric."""
        return compare(
            self.compared, self.systems, metric=self.metrics[0], provenance=self.provenance, **self.policies
        )  # fmt: skip

    @functools.cached_property
    def scores(self) -> dict[str, dict[str, Score]]:
        """All metrics of each system."""
        return {
            name: evaluate(self.truth, system, self.metrics, **self.policies)
            for name, system in self.systems.items()
        }

    @property
    def by_group(self) -> dict[str, Score]:
        """The first metric of each system by group: from draws, so that nothing else of these is for the page."""
        return {
            name: evaluate(self.truth, system, self.metrics[0], by=self.risk, **self.policies)
            for name, system in self.systems.items()
        }


def _remembering(truth: Any) -> Any:
    """Return a truth that draws its rankings once for each depth, for the many scores of one report."""
    if not truth.answers(Ranked(2)) and truth.exact(Ranked(1)) is not None:
        return truth  # nothing is drawn
    remembering = copy.copy(truth)
    kept: dict[int, list[Block]] = {}

    def blocks(question: Question) -> Iterator[Block]:
        match question:
            case Ranked(depth) if depth * truth.num_units * truth.num_draws <= _MOST_REMEMBERED:
                if depth not in kept:
                    kept[depth] = [one._replace(values=np.asarray(one.values)) for one in truth.blocks(question)]
                return iter(kept[depth])
        return truth.blocks(question)

    remembering.blocks = blocks
    remembering.point = truth.standard  # an estimate that is made at its first use serves both
    return remembering


def _metrics(metric: Any, truth: Any, systems: Mapping[str, Predictions]) -> list[Metric]:
    """Choose what to report; a single metric is put before those that follow from the length of the predictions."""
    if isinstance(metric, list | tuple):
        return [resolve(one) for one in metric]
    depth = min(3, max(1, truth.num_classes - 1), *(system.num_positions for system in systems.values()))
    by_depth = {1: ["top-1"], 2: ["top-2", "top-1", "set-2", "ao-2"], 3: ["top-3", "top-1", "set-2", "set-3", "ao-3"]}
    names: list[Any] = by_depth[depth]
    ranks = truth.answers(Ranked(2))
    if not ranks:
        names = [name for name in names if name.startswith("top-")]
    if not ranks or depth == 1:
        names = sorted(names, key=lambda name: name != "top-1")
    chosen = [resolve(one) for one in ([] if metric is None else [metric]) + names]
    return list({one.name: one for one in chosen}.values())


def _about(fit: Fit, gold: BesideGold | None) -> str:
    many = f"{fit.data.unit}s"
    words = f"Nobody observed the truth of these {many}; it"
    if gold is not None:
        words = f"Gold labels of {counted(gold.score.items, many)} were not used in the fit. The truth of all {many}"
    words += f" is inferred from what annotators said, by the model “{fit.member.name}” ({fit.member.title})"
    if fit.truth.num_draws == 1:
        return f"{words}, as a point estimate."
    return (
        f"{words}. Scores and certainties below are means over what it may be, in closed form where there is one and "
        "else over draws of it; what standard practice would say stands beside them, as “against point estimate”."
    )


def _key_figures(fit: Fit, top: Score, gold: BesideGold | None) -> dict[str, Any]:
    truth: Any = fit.truth
    many = f"{fit.data.unit}s"
    sizes = {many: truth.num_units, "annotators": fit.data.counts.get("annotators"), "classes": truth.num_classes}
    known: dict[str, Any] = {} if gold is None else gold.figures
    known |= {name: size for name, size in sizes.items() if size}
    if truth.num_draws == 1:
        return known
    return known | {
        "draws of the truth": truth.num_draws, "mean certainty of the top class": f"{top.value:.3f}",
        f"{many} with certainty below 0.9": _below(top, 0.9),
    }  # fmt: skip


def _below(score: Score, bound: float) -> int:
    return int((score.items[np.isfinite(score.items)] < bound).sum())


def _leaderboard_section(comparison: Comparison, top: Score, truth: Truth, said: list[Alert]) -> Section:
    names = {
        "rank": "rank", "system": "system", "value": comparison.title, "lower": "95 % from", "upper": "to",
        "sd_truth": "sd on these items", "sd_items": "sd from items", "sd_shared": "sd from what items share",
        "value_alone": "annotators alone", "value_own_look": "own look counted", "p_best": "P(best)",
        "point_estimate": "against point estimate", "rank_by_point_estimate": "rank by it",
    }  # fmt: skip
    table = comparison.table.assign(p_best=comparison.p_best_texts)
    left_out = {"sd_truth", "sd_shared"} if truth.num_draws == 1 else set()
    left_out |= {"value_alone", "value_own_look"} if comparison.own_draws is None else {"sd_truth", "sd_shared"}
    left_out |= {name for name in names if "rank" in name or name == "p_best"} if len(table) == 1 else set()
    names = {name: words for name, words in names.items() if name not in left_out}
    shown = table[[name for name in names if name in table]].rename(columns=names)
    why, read = _how_to_read(comparison, top, truth)
    blocks = [*said, _verdict(comparison), *comparison.notes, why, shown, figures.leaderboard(comparison), read]
    return Section(
        "Leaderboard" if len(table) > 1 else "Score of the system",
        blocks + ([figures.beats_matrix(comparison)] if len(table) > 1 else []),
    )


def _verdict(comparison: Comparison) -> str:
    table = comparison.table
    first = table.iloc[0]
    words = (
        f"“{first['system']}” scores {first['value']:.4f} in {comparison.title}, with {100 * comparison.level:g} % "
        f"between {first['lower']:.4f} and {first['upper']:.4f}."
    )
    if len(table) > 1:
        pair = comparison.pairs.iloc[0]
        best, beats = (_probability(*ends) for ends in (
            (first["p_best_lower"], first["p_best_upper"]), (pair["p_a_beats_b_lower"], pair["p_a_beats_b_upper"])
        ))  # fmt: skip
        assumed = comparison.takes_for_copies
        it = "Were all predictions made from these annotations, it would be" if assumed else "It is"
        words += (
            f" {it} the best of {len(table)} systems with probability {best}, and {'beat' if assumed else 'beats'} the "
            f"runner-up “{pair['b']}” with probability {beats}."
        )
    if "point_estimate" in table:
        difference = first["point_estimate"] - first["value"]
        words += f" Against the point estimate it would be reported as {first['point_estimate']:.4f}"
        words += f", {abs(difference):.4f} {'higher' if difference > 0 else 'lower'}" if abs(difference) >= 5e-5 else ""
        words += "."
        if first["rank_by_point_estimate"] != 1:
            ahead = table.loc[table["rank_by_point_estimate"] == 1, "system"].iloc[0]
            words += f" The point estimate would put “{ahead}” first."
    return words


def _probability(low: float, high: float) -> str:
    """Write a probability that was counted among draws, without claiming what they cannot show."""
    text = range_text(low, high)
    return {"1.00": "above 0.99", "0.00": "below 0.01"}.get(text, text.replace("–", " to "))


def _how_to_read(comparison: Comparison, top: Score, truth: Truth) -> tuple[str, str]:
    if truth.num_draws == 1:
        why = (
            "This model gives a point estimate: it has no uncertainty of the truth to pass on, and the spread comes "
            "from the finite number of items alone."
        )
    else:
        why = (
            f"The truth of {_below(top, 0.99):,} of {counted(truth.num_units, 'items')} is not certain (certainty "
            "below 0.99), so the score of a system changes from one draw of the truth to the next. Another "
            f"{counted(comparison.num_items, 'items')} would also have given other scores (“sd from items”, Bayesian "
            "bootstrap). Intervals are of the score among all such items; what items share, such as the errors of "
            "annotators, widens them."
        )
    read = ""
    if len(comparison.systems) > 1:
        read = (
            "All systems are scored on the same draws and the same items, so P(best) and P(row beats column) compare "
            "them pair by pair: they can be clear where the intervals overlap. A probability near 0.5 means that these "
            "data do not say which of two systems is better. "
        )
    if comparison.points is not None:
        read += "The cross is what standard practice would report: one aggregated truth, taken as if it were known."
    return why, read


def _certainty_section(truth: Any, certainties: list[Score]) -> Section:
    blocks: list[Any] = [_trust(certainties[0], truth)]
    if truth.num_draws > 1:
        blocks.append(_certainty_table(certainties))
        curves = {f"top {number}": score for number, score in enumerate(certainties, 1)}
        blocks.append([figures.sorted_certainty(curves), figures.certainty_histogram(certainties[0])])
        blocks += _least_certain(truth, certainties)
    return Section("How far the ground truth can be trusted", blocks)


def _trust(best: Score, truth: Truth) -> str:
    if truth.num_draws == 1:
        return (
            "This model gives a point estimate, one truth without uncertainty, so the certainty of every item is 1. "
            "That is a property of the method and says nothing about how well the annotators agree; a model with "
            "draws of the truth would."
        )
    return (
        "The certainty of an item is the share of draws of the truth that agree on its most plausible class (or set of "
        f"classes). It is {best.value:.4f} on average; {_below(best, 0.99):,} of {counted(truth.num_units, 'items')} "
        f"are below 0.99 and {_below(best, 0.9):,} below 0.9. It is not a score to be maximised: it rises with the "
        "reliability that one grants to the annotators."
    ) + (
        " Where it was counted among draws it is slightly too high, the largest of several frequencies; an exact "
        "value has no such error."
        if not len(best.draws)
        else ""
    )


def _certainty_table(scores: list[Score]) -> Any:
    import pandas

    rows = [{
        "score": score.title, "mean over items": score.value, "sd over draws": score.sd,
        "lowest": np.nanmin(score.items), "median": np.nanmedian(score.items),
        "items below 0.99": _below(score, 0.99), "items below 0.9": _below(score, 0.9),
    } for score in scores]  # fmt: skip
    return pandas.DataFrame(rows)


def _least_certain(truth: Any, certainties: list[Score]) -> list[Any]:
    """Tabulate the items that are least certain, with the mean plausibilities of their leading classes."""
    import pandas

    best = certainties[0]
    chosen = np.argsort(best.items, kind="stable")[:_LEAST_CERTAIN]
    chosen = chosen[best.items[chosen] < 1]
    if not len(chosen):
        return ["Every item is certain."]
    columns: dict[str, Any] = {"item": truth.names()[chosen].astype(str)}
    columns["leading classes, with their mean plausibility"] = _leading_classes(truth, chosen)
    columns |= {f"certainty, top {number}": score.items[chosen] for number, score in enumerate(certainties, 1)}
    return ["The least certain items, lowest first:", pandas.DataFrame(columns)]


def _leading_classes(truth: Any, positions: np.ndarray) -> list[str]:
    texts, classes = [], truth.ids.get("class")
    for codes, mean in truth.mean_shares(positions.tolist()):
        order = np.argsort(-mean, kind="stable")[:_LEADING]
        names = codes if classes is None else np.asarray(classes, object)[codes]
        leading = [f"{names[place]} ({mean[place]:.2f})" for place in order if mean[place] >= _LEAST_SHOWN]
        rest = 1 - mean[order].sum()
        texts.append(", ".join(leading + ([f"all others ({rest:.2f})"] if rest >= _LEAST_SHOWN else [])))
    return texts


def _scores_section(scores: Mapping[str, Mapping[str, Score]], metrics: list[Metric], truth: Truth) -> Section:
    import pandas

    rows = [
        _score_row(metric.title, name, results[metric.name]) for metric in metrics for name, results in scores.items()
    ]
    frame = pandas.DataFrame(rows)
    if truth.num_draws == 1:
        frame = frame[["metric", "system", "value", "items"]]
    frame = frame.dropna(axis="columns", how="all")
    frame["metric"] = frame["metric"].mask(frame["metric"].duplicated(), "")
    first = {name: results[metrics[0].name] for name, results in scores.items()}
    drawn = [figures.item_scores(first, title=f"Each item's {metrics[0].title}, each curve sorted")]
    words = "Each metric is averaged over items."
    if truth.num_draws > 1:
        drawn.append(figures.score_histogram(first, title=f"{_capital(metrics[0].title)} over draws of the truth"))
        words = "Each metric is averaged over items and over what the truth may be (uncertainty-adjusted)."
        if "worst draw" in frame:
            words += (
                " “Worst” and “best draw” are the lowest and highest score of the whole data set among the draws: how "
                "far a single aggregated truth, had it fallen out differently, could have moved the result."
            )
    return Section("Scores of each system", [words, frame, drawn])


def _score_row(title: str, system: str, score: Score) -> dict[str, Any]:
    low, high = score.interval
    point = np.nan if score.point is None else score.point
    row = {"metric": title, "system": system, "value": score.value, "sd over draws": score.sd, "95 % from": low}
    row |= {"to": high, "worst draw": score.worst, "best draw": score.best, "against point estimate": point}
    return row | {"items": int(np.isfinite(score.items).sum())}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _risk_section(truth: Truth, risk: ClassMap, top: Score, scores: Mapping[str, Score]) -> Section:
    of_top, of_sum = certainty(truth, classes_to=risk), certainty(truth, classes_to=risk, by="sum")
    expected = expected_risk(truth, risk) if risk.score is not None else None
    words = (
        "The same certainty after mapping classes to groups: how often the draws agree on the group of the most "
        "plausible class, or on the group with the largest summed plausibility. Disagreement inside a group does not "
        "count, so it is higher than that of the class."
    )
    blocks: list[Any] = [words, _certainty_table([top, of_top, of_sum])]
    if truth.num_draws > 1:
        curves = figures.sorted_certainty({"class": top, "group of the top class": of_top})
        blocks.append([curves] if expected is None else [curves, figures.expected_risk_histogram(expected)])
    if expected is not None:
        blocks.append(
            f"The expected risk of an item averages the number of its group over its plausibilities; its mean over "
            f"items is {expected.value:.4f} (sd over draws {expected.sd:.4f})"
            + (f", and {expected.point:.4f} for the point estimate." if expected.point is not None else ".")
        )
    if scores:
        blocks += _group_scores(scores)
    return Section("Groups of classes" if expected is None else "Risk", blocks)


def _group_scores(scores: Mapping[str, Score]) -> list[Any]:
    import pandas

    names = {
        "system": "system", "group": "group", "value": "value", "sd": "sd over draws",
        "items_expected": "items, expected", "value_by_point_estimate": "value, items by point estimate",
        "items_by_point_estimate": "items by point estimate",
    }  # fmt: skip
    tables = [score.by_group.assign(system=name) for name, score in scores.items()]
    frame = pandas.concat(tables, ignore_index=True)
    frame = frame[[name for name in names if name in frame]].rename(columns=names)
    frame["system"] = frame["system"].mask(frame["system"].duplicated(), "")
    words = (
        "Scores by group. Which group an item belongs to is itself uncertain: “value” weighs each item by how often a "
        "draw puts it into the group. The usual version, items selected by the group of the point estimate's top "
        "class, stands beside it."
    )
    return [words, frame]


def _agreement_parts(fit: Fit, truth: Truth, top: Score) -> list[Section]:
    """Say how annotators agree: each with the others together, in pairs, and as the fit expects."""
    if "left-out" not in fit.data.agreements:
        return []
    data: Any = fit.data
    left_out = annotator_agreement(data, fit.options.get("weights", "equation-14"))
    several = int(np.isfinite(left_out.items).sum())
    if not several:
        return []
    words = (
        f"Leave-one-out agreement is how often an annotator names the class that the other annotators of the item put "
        f"first. It is {left_out.value:.4f} on average over {counted(several, 'items')} with two annotators or more."
    )
    blocks: list[Any] = [words]
    if truth.num_draws > 1:
        blocks[0] += " It uses no model, so it is a check on the certainty, which should rise with it."
        blocks.append(figures.certainty_by_agreement(top, left_out))
    return [Section("Agreement of the annotators", blocks), *_pairwise_agreement(fit)]


def _pairwise_agreement(fit: Fit) -> list[Section]:
    if "pairs" not in fit.data.agreements:
        return []
    data: Any = fit.data
    parts: list[Section] = []
    # Weights of rows may be no numbers of annotations, and a truth may not say how often annotators agree.
    with contextlib.suppress(UnsupportedRequest):
        # The model was fitted to every row; the report is about the same ones.
        parts += agreement_sections(agreement(data, duplicates="keep"))
    with contextlib.suppress(UnsupportedRequest):
        number = int(np.clip(_MOST_SIMULATED // max(data.num_annotations, 1), *_DATA_SETS))
        parts.append(predictive_section(agreement(fit, num_predictive=number, most_simulated=_MOST_SIMULATED)))
    return parts
