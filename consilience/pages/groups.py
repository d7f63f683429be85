"""What a report says of groups of classes: how certain they are, their risk, and the scores of systems by group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consilience import figures
from consilience.data import ClassMap
from consilience.evaluation.certainties import certainty, expected_risk
from consilience.evaluation.scores import Score
from consilience.pages import Section, Table
from consilience.pages.items import certainty_table


def risk_section(truth: Any, top: Score, risk: ClassMap, scores: Mapping[str, Score]) -> Section:
    """Return the section on the certainty of groups, and on their risk where they have one.

    Parameters
    ----------
    truth : of the fit.
    top : certainty of the top class.
    risk : the groups.
    scores : of systems, by group; empty where there are none.
    """
    of_top, of_sum = certainty(truth, class_groups=risk), certainty(truth, class_groups=risk, group_rule="sum")
    expected = expected_risk(truth, risk) if risk.score is not None else None
    words = (
        "The same certainty after mapping classes to groups: how often the draws agree on the group of the most "
        "plausible class, or on the group with the largest summed plausibility. Disagreement inside a group does not "
        "count, so it is higher than that of the class."
    )
    blocks: list[Any] = [words, certainty_table([top, of_top, of_sum], "Certainty of classes and of their groups.")]
    if truth.num_draws > 1:
        curves = figures.sorted_certainty({"class": top, "group of the top class": of_top})
        blocks.append([curves] if expected is None else [curves, figures.expected_risk_histogram(expected)])
    if expected is not None:
        blocks.append(
            f"The expected risk of an item averages the number of its group over its plausibilities; its mean over "
            f"items is {expected.value:.3f} (sd over draws {expected.sd:.4f})"
            + (f", and {expected.point:.3f} for the point estimate." if expected.point is not None else ".")
        )
    if scores:
        blocks += _by_group(scores)
    gist = f"certainty of the group {of_top.value:.3f}, of the class {top.value:.3f}"
    return Section("Groups of classes" if expected is None else "Risk", blocks, gist)


def _by_group(scores: Mapping[str, Score]) -> list[Any]:
    """Return what there is to say of the scores of systems by group of classes."""
    import pandas

    names = {
        "system": "system", "group": "group", "value": "value", "sd": "sd over draws",
        "items_expected": "items, expected", "value_by_point_estimate": "value, items by point estimate",
        "items_by_point_estimate": "items by point estimate",
    }  # fmt: skip
    tables = [score.by_group.assign(system=name) for name, score in scores.items()]
    frame = pandas.concat(tables, ignore_index=True)
    frame = frame[[name for name in names if name in frame]].rename(columns=names)
    words = (
        "Scores by group. Which group an item belongs to is itself uncertain: “value” weighs each item by how often a "
        "draw puts it into the group. The usual version, items selected by the group of the point estimate's top "
        "class, stands beside it."
    )
    return [words, Table(frame, "Scores by group.")]
