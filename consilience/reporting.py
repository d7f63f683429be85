"""`report`: one HTML file that says how far the ground truth can be trusted and what follows for the systems."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from consilience import figures
from consilience.agreement_page import agreement_lead, agreement_sections, predictive_section
from consilience.annotator_page import annotator_sections, next_label_sections
from consilience.chains_page import ambiguity_sections, chain_score_sections, split_systems
from consilience.data import Annotations, ClassMap, Predictions, Rankings, Records
from consilience.data.accept import as_system, as_systems
from consilience.errors import UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.agreement import Agreement, agreement
from consilience.evaluation.certainties import certainty, expected_risk
from consilience.evaluation.classes import Metric, resolve
from consilience.evaluation.comparison import Comparison, compare
from consilience.evaluation.leave_one_out import annotator_agreement
from consilience.evaluation.scores import Score
from consilience.inference.fitting import Fit
from consilience.inference.results import Result
from consilience.inference.stored_priors import describe_priors, stored_priors
from consilience.linkage_page import linkage_lead, linkage_sections, system_sections
from consilience.models import MEMBERS
from consilience.models.interface import Exact
from consilience.models.truth import CHAINS, CLASSES, Ranked, Truth
from consilience.models.truth.truth import PARTITION, VIEWS, Block, Question
from consilience.notes import Level
from consilience.output import check_output
from consilience.pages import Alert, Code, Section, write_page
from consilience.views_page import views_lead, views_sections

# The table of least certain items, and how many classes it names for each.
_LEAST_CERTAIN, _LEADING = 25, 3

# Annotations that are simulated to check the agreement; and how many data sets: enough to tell a p-value of .05.
_MOST_SIMULATED, _DATA_SETS = 1 << 22, (40, 200)

# Mean plausibilities below this are not shown.
_LEAST_SHOWN = 0.005

# Rankings of more numbers than this are drawn anew for each score: 2^26 codes take 256 MiB.
_MOST_REMEMBERED = 1 << 26


def report(
    fit: Fit | Agreement,
    predictions: Any = None,
    *,
    path: str | os.PathLike = "report.html",
    metric: str | Metric | Sequence[str | Metric] | None = None,
    risk: ClassMap | None = None,
    title: str | None = None,
    sections: Sequence[Section] = (),
    missing: str = "error",
    unknown: str = "error",
    singletons: bool = True,
    force: bool = False,
) -> Path:
    """Write a report on a fit, and on systems evaluated against it, as one self-contained HTML file.

    Parameters
    ----------
    fit : of `consilience.fit`; or of `consilience.agreement`, for a page on the agreement of annotators alone.
    predictions : of one system, as `evaluate` takes it, or of several in a dict by name; classes of items, coreference
        chains, or of linked records partitions (`read_partition`).
    path : file to write; it appears when it is complete, in place of an earlier page of ours; ``-`` is standard output.
    metric : what the systems are compared by. A list gives all metrics to report, the first one for the leaderboard;
        by default they follow from the length of the predictions.
    risk : groups of classes, such as risk categories.
    title : of the page.
    sections : further parts, before the last one.
    missing, unknown : items without a prediction and predicted classes that the data lack; see `evaluate`.
    singletons : of chains, whether entities of one mention count.
    force : replace a file that exists also where it is no page of ours.

    Returns
    -------
    The path that was written.

    Raises
    ------
    OutputRefused : before any work, where the file must not be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import consilience as cs
    >>> found = cs.agreement(cs.Annotations.from_counts([[3, 0], [1, 2]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = cs.report(found, path=Path(folder, "agreement.html"))
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    check_output(path, force=force)
    if isinstance(fit, Agreement):
        if predictions is not None or risk is not None:
            raise UnsupportedRequest("systems are scored against the truth of a fit; report a fit")
        own = [*agreement_sections(fit), *sections]
        return write_page(title or "Agreement of annotators", agreement_lead(fit), own, path, force=force)
    settings = {"missing": missing, "unknown": unknown, "singletons": singletons}
    make, systems = _PAGES[fit.truth.kind.name], _named(fit, predictions)
    named, lead, about = make(fit, systems, metric=metric, risk=risk, sections=sections, settings=settings)
    return write_page(title or named, [*_alerts(fit), *lead], about, path, force=force)


Page = tuple[str, Sequence[Any], Sequence[Any]]
"""Title, what stands above all else, and the sections."""


def _linkage_page(
    fit: Fit, systems: Mapping[str, Any], *, metric: Any, risk: ClassMap | None, sections: Sequence[Section],
    settings: Mapping[str, Any],
) -> Page:  # fmt: skip
    """Return the page of linked records."""
    if risk is not None:
        raise UnsupportedRequest("risk= groups classes, and linked records have none")
    if any(system.kind != PARTITION.name for system in systems.values()):
        raise UnsupportedRequest("systems that link records are partitions, as read_partition returns them")
    policies = {name: settings[name] for name in ("missing", "unknown")}
    compared = system_sections(fit, systems, metric, **policies)
    about = [*linkage_sections(fit), *compared, *sections, _run_section(fit, systems)]
    return "Records of the same entity", linkage_lead(fit), about


def _views_page(
    fit: Fit, systems: Mapping[str, Any], *, metric: Any, risk: ClassMap | None, sections: Sequence[Section],
    settings: Mapping[str, Any],
) -> Page:  # fmt: skip
    """Return the page of views."""
    if systems or risk is not None:
        raise UnsupportedRequest("the report of views has no systems; score partitions by evaluate, view by view")
    about = [*views_sections(fit), *sections, _run_section(fit, {})]
    return "Views of experts", views_lead(fit), about


def _classes_page(
    fit: Fit, systems: Mapping[str, Any], *, metric: Any, risk: ClassMap | None, sections: Sequence[Section],
    settings: Mapping[str, Any],
) -> Page:  # fmt: skip
    """Return the page of classes of items, and of chains of mentions."""
    if any(system.kind == PARTITION.name for system in systems.values()):
        raise UnsupportedRequest("a partition of records is scored against a fit of records")
    systems, chains = split_systems(systems)
    found = _Found(fit, systems, metric, risk, {name: settings[name] for name in ("missing", "unknown")})
    truth, parts = found.truth, []
    if systems:
        parts.append(_leaderboard_section(found.comparison, found.top, truth))
    parts.append(_certainty_section(truth, found.certainties))
    parts += next_label_sections(truth)
    if systems:
        parts.append(_scores_section(found.scores, found.metrics, truth))
    if risk is not None:
        by_group = {name: scores[found.metrics[0].name] for name, scores in found.scores.items()}
        parts.append(_risk_section(truth, risk, found.top, by_group))
    if chains:
        names = [metric] if isinstance(metric, (str, Metric)) else metric or ()
        parts += chain_score_sections(
            fit, chains, [str(name) for name in names], singletons=settings["singletons"]
        )
    parts += ambiguity_sections(fit)
    parts += annotator_sections(fit)
    parts += _agreement_parts(fit, truth, found.top)
    parts += [*sections, _run_section(fit, systems)]
    return "Evaluation under uncertain ground truth", [_about(fit), _key_figures(fit, found.top)], parts


_PAGES = {
    PARTITION.name: _linkage_page, VIEWS.name: _views_page, CLASSES.name: _classes_page, CHAINS.name: _classes_page,
}  # fmt: skip
"""What makes the page of each kind of truth."""


def _named(fit: Fit, predictions: Any) -> dict[str, Any]:
    """Return systems by name, also where one is given by itself."""
    if predictions is None:
        return {}
    if isinstance(predictions, Mapping):
        return as_systems(fit, predictions) if predictions else {}
    system = as_system(fit, predictions)
    return {"response" if system.kind == CHAINS.name else system.name: system}


# Sections of a report -------------------------------------------------------------------------------------------------


class _Found:
    """What a page of classes says in several places, each computed once.

    Parameters
    ----------
    fit : that the page is about.
    systems : predictions by name.
    metric, risk : as in `report`.
    policies : for items and classes that do not agree.
    """

    def __init__(
        self, fit: Fit, systems: Mapping[str, Predictions], metric: Any, risk: ClassMap | None,
        policies: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.truth = _remembering(fit.truth)
        self.systems, self.risk, self.policies = systems, risk, policies
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
        return compare(self.truth, self.systems, metric=self.metrics[0], **self.policies)

    @functools.cached_property
    def scores(self) -> dict[str, dict[str, Score]]:
        """All metrics of each system."""
        return {
            name: evaluate(self.truth, system, self.metrics, by=self.risk, **self.policies)
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


def _about(fit: Fit) -> str:
    how = "and every number below is averaged over draws of it" if fit.truth.num_draws > 1 else "as a point estimate"
    return (
        "Nobody observed the truth of these items; it is inferred from what annotators said, by the model "
        f"“{fit.member.name}” ({fit.member.title}), {how}."
    )


def _key_figures(fit: Fit, top: Score) -> dict[str, Any]:
    data = fit.data
    sizes = {"items": fit.truth.num_units, "annotators": getattr(data, "num_annotators", None)}
    truth: Any = fit.truth
    sizes |= {"classes": truth.num_classes}
    if fit.truth.num_draws == 1:
        return {name: size for name, size in sizes.items() if size}
    sizes |= {"draws of the truth": fit.truth.num_draws}
    return {
        **{name: size for name, size in sizes.items() if size},
        "mean certainty of the top class": f"{top.value:.3f}", "items with certainty below 0.9": _below(top, 0.9),
    }  # fmt: skip


def _below(score: Score, bound: float) -> int:
    return int((score.items[np.isfinite(score.items)] < bound).sum())


def _leaderboard_section(comparison: Comparison, top: Score, truth: Truth) -> Section:
    names = {
        "rank": "rank", "system": "system", "value": comparison.title, "lower": "95 % from", "upper": "to",
        "sd_truth": "sd from truth", "sd_items": "sd from items", "p_best": "P(best)",
        "point_estimate": "against point estimate", "rank_by_point_estimate": "rank by it",
    }  # fmt: skip
    table = comparison.table
    if len(table) == 1:
        names = {name: words for name, words in names.items() if "rank" not in name and name != "p_best"}
    if truth.num_draws == 1:
        names = {name: words for name, words in names.items() if name != "sd_truth"}
    shown = table[[name for name in names if name in table]].rename(columns=names)
    why, read = _how_to_read(comparison, top, truth)
    blocks = [_verdict(comparison), why, shown, figures.leaderboard(comparison), read]
    return Section(
        "Leaderboard" if len(table) > 1 else "Score of the system",
        blocks + ([figures.beats_matrix(comparison)] if len(table) > 1 else []),
    )


def _verdict(comparison: Comparison) -> str:
    table = comparison.table
    first = table.iloc[0]
    words = (
        f"“{first['system']}” scores {first['value']:.4f} in {comparison.title}, with 95 % of the draws between "
        f"{first['lower']:.4f} and {first['upper']:.4f}."
    )
    if len(table) > 1:
        pair = comparison.pairs.iloc[0]
        words += (
            f" It is the best of {len(table)} systems with probability {_probability(first['p_best'])}, and beats the "
            f"runner-up “{pair['b']}” with probability {_probability(pair['p_a_beats_b'])}."
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


def _probability(value: float) -> str:
    """Write a probability that was counted among draws, without claiming what they cannot show."""
    return "above 0.999" if value > 0.999 else "below 0.001" if value < 0.001 else f"{value:.3f}"


def _how_to_read(comparison: Comparison, top: Score, truth: Truth) -> tuple[str, str]:
    if truth.num_draws == 1:
        why = (
            "This model gives a point estimate: it has no uncertainty of the truth to pass on, and the spread comes "
            "from the finite number of items alone."
        )
    else:
        why = (
            f"The truth of {_below(top, 0.99):,} of {_count(truth.num_units, 'item')} is not certain (certainty below "
            "0.99), so the score of a system changes from one draw of the truth to the next: “sd from truth”. Another "
            f"{_count(comparison.num_items, 'item')} would also have given other scores: “sd from items” (Bayesian "
            "bootstrap)."
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


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


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
        f"classes). It is {best.value:.4f} on average; {_below(best, 0.99):,} of {_count(truth.num_units, 'item')} "
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
        words = "Each metric is averaged over items and draws of the truth (uncertainty-adjusted)."
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
    if not isinstance(fit.data, Rankings | Annotations):
        return []
    left_out = annotator_agreement(fit.data, fit.options.get("weights", "equation-14"))
    several = int(np.isfinite(left_out.items).sum())
    if not several:
        return []
    words = (
        f"Leave-one-out agreement is how often an annotator names the class that the other annotators of the item put "
        f"first. It is {left_out.value:.4f} on average over {_count(several, 'item')} with two annotators or more."
    )
    blocks: list[Any] = [words]
    if truth.num_draws > 1:
        blocks[0] += " It uses no model, so it is a check on the certainty, which should rise with it."
        blocks.append(figures.certainty_by_agreement(top, left_out))
    return [Section("Agreement of the annotators", blocks), *_pairwise_agreement(fit)]


def _pairwise_agreement(fit: Fit) -> list[Section]:
    if not isinstance(fit.data, Annotations):
        return []
    parts: list[Section] = []
    # Weights of rows may be no numbers of annotations, and a truth may not say how often annotators agree.
    with contextlib.suppress(UnsupportedRequest):
        # The model was fitted to every row; the report is about the same ones.
        parts += agreement_sections(agreement(fit.data, duplicates="keep"))
    with contextlib.suppress(UnsupportedRequest):
        number = int(np.clip(_MOST_SIMULATED // max(len(fit.data.item), 1), *_DATA_SETS))
        parts.append(predictive_section(agreement(fit, num_predictive=number, most_simulated=_MOST_SIMULATED)))
    return parts


def _run_section(fit: Fit, systems: Mapping[str, Any]) -> Section:
    import pandas

    # What was found stands under the table, in sentences.
    described = {name: value for name, value in fit.describe().items() if name != "notes"}
    described = {name.replace("_", " "): _setting(value) for name, value in described.items()}
    table = pandas.DataFrame({"what": list(described), "value": list(described.values())})
    return Section(
        "What was run",
        [table, _diagnosis(fit), "To reproduce it:", Code(_reproduction(fit, systems)),
         *(["Please cite:", Code(fit.member.paper)] if fit.member.paper else [])],
    )  # fmt: skip


def _setting(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_ENDINGS = {
    Result.interrupted: "The run was interrupted before its end.",
    Result.max_steps: "The run ended at its largest number of steps, before it had converged.",
    Result.nonfinite: "The run broke down: it came to a number that is not finite.",
}


def _alerts(fit: Fit) -> list[Alert]:
    """Return what stands above everything else on the page of a fit whose numbers are not to be trusted."""
    texts = [text[:1].upper() + text[1:] + "." for text in _said(fit, Level.error)]
    # A sampler that was left to draw all its steps ends so too, and nothing is wrong with that.
    if fit.result in _ENDINGS and not (fit.result == Result.max_steps and fit.has_draws):
        texts.insert(0, _ENDINGS[fit.result])
    return [Alert("Read this first: the fit behind this page is poor.", texts)] if texts else []


def _diagnosis(fit: Fit) -> str:
    notes = [*_said(fit, Level.warning), *_said(fit, Level.note)]
    return " ".join([_how_it_ended(fit), *(f"Of this fit: {note}." for note in notes)])


def _said(fit: Fit, level: Level) -> list[str]:
    return [note.words() for note in fit.findings() if note.level is level]


def _how_it_ended(fit: Fit) -> str:
    if fit.method == "exact":
        return "The posterior is exact: there is no chain and no optimiser whose convergence could be in doubt."
    problems = _said(fit, Level.error)
    if problems:
        return "Diagnostics: " + "; ".join(problems) + "."
    if isinstance(fit.member.engine(fit.method), Exact):
        return f"The estimate was computed directly, with the result “{fit.result}”, and nothing of it is poor."
    if fit.run is None:
        return "The steps of the run are not stored with a fit; what was poor was said when it was fitted."
    if fit.method == "cavi":
        return (
            "The posterior is approximated by independent factors, whose spread is as a rule too small; "
            f"{fit.run.steps:,} sweeps raised the bound until it stood still. A sampler of the same model shows how "
            "much that matters."
        )
    return f"The run ended with the result “{fit.result}”, and none of its diagnostics is poor."


def _reproduction(fit: Fit, systems: Mapping[str, Any]) -> str:
    kind = type(fit.data).__name__
    model = repr(fit.member.name) if fit.member.name in MEMBERS else fit.member.name
    settings = "".join(f", {name}={value!r}" for name, value in fit.options.items())
    driver = {name: fit.attributes[name] for name in ("chains", "warmup", "max_steps") if name in fit.attributes}
    settings = "".join(f", {name}={value!r}" for name, value in driver.items()) + settings
    before = _own_priors(fit)
    settings = f"{', priors=priors' if before else ''}, method={fit.method!r}, draws={fit.draws}{settings}"
    data_hash = fit.attributes.get("data_hash", "")[:12]
    write = f"cs.report(fit{', predictions' if systems else ''}, path='report.html')"
    if isinstance(fit.data, Records) and "fields" in fit.attributes:  # as `link` leaves them
        pairs = ", pairs=…" if fit.data.candidate is not None else ""
        fields = _kinds(fit.attributes["fields"])
        similar = f", similar={_kinds(fit.attributes['similar'])}" if "similar" in fit.attributes else ""
        named = fit.attributes.get("id", "id")
        identified = "" if named == "id" or ", " in named else f", id={named!r}"
        given = f"{_sources(fit.data)}{identified}, fields={fields}{similar}{_known_entity(fit.data)}{pairs}"
        linked = f"fit = cs.link({given}{settings}, seed={fit.seed})"
        return f"{before}{linked}  # {kind}, hash {data_hash}…\n{write}"
    features = ", features=…" if getattr(fit.data, "features", None) is not None else ""
    sources = f"…{features}"
    if isinstance(fit.data, Records):
        listed = [str(field) for field in fit.data.fields]
        sources = f"{_sources(fit.data)}, fields={listed}{_known_entity(fit.data)}"
    return (
        f"{before}data = cs.{fit.data.reader or 'load'}({sources})  # {kind}, hash {data_hash}…\n"
        f"fit = cs.fit({model}, data{settings}, seed={fit.seed})\n{write}"
    )


def _kinds(words: str) -> dict[str, str]:
    """Return what `link` wrote down as "name (string), born (date)"."""
    return dict(re.findall(r"(.+?) \((\w+)\)(?:, |$)", words))


def _own_priors(fit: Fit) -> str:
    """Return the lines that make priors other than the member's; of what no line can make, the words alone."""
    words, kind = fit.describe()["priors"], fit.member.priors
    if kind is None or words == describe_priors(kind()):
        return ""
    default, stored = stored_priors(kind()), stored_priors(fit.priors)
    given = {} if fit.priors is None else vars(fit.priors)
    changed = {name: value for name, value in given.items() if name not in stored or stored[name] != default.get(name)}
    if not changed or not stored.keys() >= changed.keys():
        return f"priors = …  # {words}\n"
    classes = {kind, *(type(value) for value in changed.values() if dataclasses.is_dataclass(value))}
    imports = sorted(f"from {one.__module__} import {one.__name__}\n" for one in classes)
    settings = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    return f"{''.join(imports)}priors = {kind.__name__}({settings})\n"


def _sources(data: Records) -> str:
    return f"{{{', '.join(f'{str(name)!r}: …' for name in data.sources)}}}"


def _known_entity(data: Records) -> str:
    return "" if data.entity is None else ", entity=…"
