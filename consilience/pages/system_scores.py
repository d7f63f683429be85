"""What a report says of all scores of systems that predict classes, beside the leaderboard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience import figures
from consilience.evaluation.classes import Metric
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.registry import METRICS
from consilience.evaluation.scores import Score
from consilience.models.intervals import ends
from consilience.models.truth import CLASSES, Truth
from consilience.models.truth.truth import Shares
from consilience.pages import More, Table, capital
from consilience.rounding import written

FROM_ANNOTATIONS = "if made from the annotations"
"""What is said of scores of predictions that are."""

_THESE = "95 % interval, these items"


def score_blocks(
    scores: Mapping[str, Mapping[str, Score]], metrics: list[Metric], comparison: Comparison, truth: Truth, ahead: str,
    digits: int, narrow: bool,
) -> list[Any]:  # fmt: skip
    """Return all scores, of predictions made from the annotations.

    Parameters
    ----------
    scores, metrics : by system and metric.
    comparison : the leaderboard.
    truth : that they are scored against.
    ahead : in which other metrics other systems are ahead of the first.
    digits : after the point, as many as on the leaderboard, so that one number is written once.
    narrow : whether the truth is that of a vote.
    """
    import pandas

    own_look = comparison.own_draws is not None
    rows = [
        _score_row(metric.title, name, results[metric.name]) for metric in metrics for name, results in scores.items()
    ]
    frame = pandas.DataFrame(rows)
    if truth.num_draws == 1:
        frame = frame[["metric", "system", "value", "items"]]
    # No column is there for the first system alone; all draws of one metric may differ from those of another.
    frame = frame.dropna(axis="columns", how="all")
    frame = frame.rename(columns={"value": FROM_ANNOTATIONS} if own_look else {})
    first, title = {name: results[metrics[0].name] for name, results in scores.items()}, capital(metrics[0].title)
    # Against a vote an item scores 0, 1 or a tie's share.
    drawn = [] if narrow else [figures.item_scores(first, title=f"{title} of each item")]
    words = "Each score is an average over items."
    if truth.num_draws > 1:
        over = "as ties of the vote fall by chance" if narrow else "over draws of the truth"
        drawn.append(figures.score_histogram(first, title=f"{title} {over}"))
        words = (
            f"Each score is an average over items and over what the truth may be. “sd” and “{_THESE}” describe how the "
            "score on these items varies over draws of the truth; the interval of the leaderboard is for all items "
            "like these."
        )
        if "worst draw" in frame:
            words += (
                " A draw is one way in which the truth may be. “Worst” and “best draw” are the lowest and the highest "
                "score of the whole data set over the draws: they show how far a single aggregated truth could have "
                "moved the result."
            )
    if own_look:
        words += (
            " All these scores assume that predictions were made from the annotations. The leaderboard differs, as it "
            f"allows for systems that looked at the items{f', in {comparison.title} only' * (len(metrics) > 1)}."
        )
    table = Table(frame, "All metrics of all systems.", texts=rounded(frame, digits, *floats(frame)))
    title, narrower = "Scores of each system", _why_narrower(comparison)
    if len(metrics) == 1:
        return [More(title, [*_meanings(metrics, truth), words, *narrower, table, drawn])]
    return [More(title, [*_meanings(metrics, truth), table, *narrower, *_so_ahead(ahead), words, drawn])]


def _so_ahead(ahead: str) -> list[str]:
    """Return in which other metrics other systems are ahead, with what their intervals are; nothing of nothing."""
    if not ahead:
        return []
    return [
        f"{ahead} Each interval is the wider of two, for these items and for all items like these (Bonferroni); a lead "
        "is clear if its interval excludes 0."
    ]


def _why_narrower(comparison: Comparison) -> list[str]:
    """Return why a score of all items has a narrower interval than one of these; nothing where none has."""
    wide, narrow = (
        np.diff(np.quantile(draws, ends(comparison.level), axis=1), axis=0)
        for draws in (comparison.truth_draws, comparison.draws)
    )
    if not (narrow < wide).any():
        return []
    unit = f"{comparison.unit}s"
    return [
        f"Here the interval for all {unit} like these can be narrower than the interval for these {unit}, because the "
        f"uncertainty about single {unit} averages out over many of them, if the probabilities of the fit are right."
    ]


def floats(frame: Any) -> list[str]:
    """Return the columns of a data frame that are not whole numbers."""
    return [str(name) for name in frame if frame[name].dtype.kind == "f"]


def rounded(frame: Any, digits: int, *columns: str) -> dict[str, list[str]]:
    """Write columns of scores with so many digits after the point, as texts of a table."""
    form = f".{digits}f"
    return {name: [written(one, form) if np.isfinite(one) else "–" for one in frame[name]] for name in columns}


def _meanings(metrics: list[Metric], truth: Truth) -> list[str]:
    """Say what metrics count; nothing of a user's own."""
    known = METRICS[CLASSES.name]
    if [one.name for one in metrics] == ["top-1"] and not truth.answers(Shares()):
        return [f"{capital(metrics[0].title)}: how often the first choice is right."]
    if [one.name for one in metrics] == ["top-1"]:
        return [f"{capital(metrics[0].title)}: {known.form_of('accuracy')[0].line.removesuffix(' (top-1)')}."]
    named = {re.sub(r"\d+", "k", one.title): known.form_of(one.name)[0] for one in metrics if known.known(one.name)}
    return [" ".join(f"{capital(title)}: {form.line}." for title, form in named.items())] if named else []


def _score_row(title: str, system: str, score: Score) -> dict[str, Any]:
    low, high = score.interval
    point = np.nan if score.point is None else score.point
    row = {"metric": title, "system": system, "value": score.value, "sd over draws": score.sd}
    row |= {f"{_THESE}, from": low, "to": high, "worst draw": score.worst, "best draw": score.best}
    return row | {"against point estimate": point, "items": int(np.isfinite(score.items).sum())}
