"""The figures of the dermatology benchmark, as the paper draws them, from the figures of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import consilience as cs
from benchmarks.recording import panels
from consilience import figures
from consilience.data import ClassMap, Rankings
from consilience.drawing import BLUE, GREEN, ORANGE, PURPLE, VERMILLION, styled

_RISKS = {"low": GREEN, "medium": ORANGE, "high": VERMILLION}
_COLOURS = (BLUE, VERMILLION, GREEN, PURPLE)



def annotators_per_case(cases: Rankings) -> np.ndarray:
    """Return the number of reports of each case."""
    return np.bincount(cases.report_item, minlength=cases.num_items)


def conditions_per_case(cases: Rankings) -> np.ndarray:
    """Return the number of different conditions that anybody listed for each case."""
    return np.bincount(cases.entry_item, minlength=cases.num_items)


def by_risk(cases: Rankings, risk: ClassMap, weights: str) -> dict[str, np.ndarray]:
    """Return which cases have which risk, that of the top class under inverse rank normalisation."""
    top = cs.fit("irn", cases, rank_weights=weights).truth.estimate()
    of_case = np.asarray(risk.align(cases.classes).group)[top]
    return {name: of_case == number for number, name in enumerate(_RISKS)}


@styled
def printed_cases(fit: Any, cases: Sequence[str]) -> Any:
    """Draw Figures 5 and 15: the plausibilities of single cases."""
    figure, axes = panels(len(cases), width=4.8)
    for ax, case in zip(axes[0], cases, strict=True):
        figures.plausibility_bars(fit, case, ax)
    return figure


@styled
def certainty_by_reliability(settings: Sequence[Any]) -> Any:
    """Draw the left column of Figure 6: certainty of the top 1, 2 and 3 over reliability, a panel a variant."""
    import pandas

    variants = list(dict.fromkeys(setting.variant for setting in settings))
    figure, axes = panels(len(variants), width=4.2, height=3.8)
    for ax, variant in zip(axes[0], variants, strict=True):
        rows = [
            {"reliability": setting.reliability, "system": "", **score.row()}
            for setting in settings
            if setting.variant == variant
            for score in setting.top
        ]
        figures.certainty_by_reliability(pandas.DataFrame(rows), ax)
        ax.set(title=variant, ylim=(0.35, 1.0))
    return figure


@styled
def metrics_by_reliability(
    systems: Mapping[str, Mapping[tuple[str, float], Mapping[str, Any]]], metrics: Sequence[str]
) -> Any:
    """Draw the other columns of Figure 6: metrics over reliability, a row a variant and a column a metric.

    Parameters
    ----------
    systems : scores by name of the system, (variant, reliability) and metric.
    metrics : names of the metrics to draw.
    """
    variants = list(dict.fromkeys(variant for scores in systems.values() for variant, _ in scores))
    figure, axes = panels(len(metrics), len(variants), width=2.4, height=2.5)
    for row, variant in zip(axes, variants, strict=True):
        for ax, metric in zip(row, metrics, strict=True):
            for (name, scores), colour in zip(systems.items(), _COLOURS, strict=False):
                _one_metric(ax, {key[1]: one[metric] for key, one in scores.items() if key[0] == variant}, name, colour)
            ax.set(title=f"{metric}\n{variant}", xlabel="reliability", xscale="log")
            reliabilities = sorted({key[1] for key in scores})
            ax.set_xticks(reliabilities, [f"{value:g}" for value in reliabilities])
            ax.minorticks_off()
            ax.grid(axis="y")
    if len(systems) > 1:
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower left", ncols=len(systems))
    return figure


def _one_metric(ax: Any, scores: Mapping[float, Any], name: str, colour: str) -> None:
    """Draw one system's score over reliability, ± sd over draws, and against the point estimate."""
    value, sd = (np.array([getattr(score, part) for score in scores.values()]) for part in ("value", "sd"))
    ax.plot(list(scores), value, "o-", color=colour, markersize=3.5, label=name)
    ax.fill_between(list(scores), value - sd, value + sd, color=colour, alpha=0.25, linewidth=0)
    ax.plot(list(scores), [score.point for score in scores.values()], "x", color=colour, markersize=5)


@styled
def sorted_beside(scores: Mapping[str, Any]) -> Any:
    """Draw Figure 7, left: the first certainty sorted, the others as dots at the same cases."""
    figure, axes = panels(1, width=6.4)
    ax = axes[0, 0]
    (first, sorted_by), *others = scores.items()
    order = np.argsort(sorted_by.items, kind="stable")
    place = np.arange(1, len(order) + 1)
    for (name, score), colour in zip(others, _COLOURS[1:], strict=False):
        ax.scatter(place, score.items[order], s=4, color=colour, alpha=0.5, linewidth=0, rasterized=True, label=name)
    every = slice(None, None, max(1, len(order) // 500))
    ax.plot(place[every], sorted_by.items[order][every], color=_COLOURS[0], label=f"{first}, sorted")
    ax.set(xlabel="cases", ylabel="certainty of the top class", ylim=(0, 1.02))
    ax.legend(loc="lower right", markerscale=3)
    ax.grid(axis="y")
    return figure


@styled
def figure_7(scores: Mapping[str, Any]) -> Any:
    """Draw Figure 7, middle and right: scores of cases, and of the data set over draws."""
    figure, axes = panels(2, height=3.6)
    figures.item_scores(scores, axes[0, 0], title="UA top-3 accuracy of each case")
    figures.score_histogram(scores, axes[0, 1], title="UA top-3 accuracy over draws of the truth")
    return figure


@styled
def figure_8(condition: Any, risk: Any, expected: Any) -> Any:
    """Draw Figure 8: certainty of the risk beside that of the condition, and the expected risk."""
    figure, axes = panels(2, height=3.6)
    figures.sorted_certainty({"top condition": condition, "risk of the top condition": risk}, axes[0, 0])
    figures.expected_risk_histogram(expected, axes[0, 1])
    return figure


@styled
def figure_12(cases: Rankings, risk: ClassMap) -> Any:
    """Draw Figure 12: histograms of annotators and conditions per case, by risk."""
    figure, axes = panels(2, height=3.2)
    groups = by_risk(cases, risk, "equation-14")
    counted = {"annotators": annotators_per_case(cases), "conditions": conditions_per_case(cases)}
    for ax, (what, counts) in zip(axes[0], counted.items(), strict=True):
        edges = np.arange(0.5, counts.max() + 1)
        for (name, chosen), colour in zip(groups.items(), _RISKS.values(), strict=True):
            share = np.histogram(counts[chosen], edges)[0] / max(1, chosen.sum())
            label = f"{name}: {chosen.sum():,} cases, mean {counts[chosen].mean():.2f}"
            ax.stairs(share, edges, color=colour, linewidth=1.6, label=label)
        ax.set(title=f"{what.capitalize()} per case", xlabel=what, ylabel="share of the cases", ylim=(0, 0.32))
        ax.legend(loc="upper right")
    return figure


def figure_13(certainty: Any, agreement: Any) -> Any:
    """Draw Figure 13: certainty against agreement."""
    return figures.certainty_by_agreement(certainty, agreement).figure


@styled
def figure_14(settings: Sequence[Any]) -> Any:
    """Draw Figure 14: sorted certainty, a panel a variant and a curve a reliability."""
    variants = list(dict.fromkeys(setting.variant for setting in settings))
    figure, axes = panels(len(variants), height=3.8)
    for ax, variant in zip(axes[0], variants, strict=True):
        own = [setting for setting in settings if setting.variant == variant]
        figures.sorted_certainty({f"reliability {setting.reliability:g}": setting.certainty for setting in own}, ax)
        ax.set(title=variant)
    return figure


def leaderboard(comparison: Any) -> Any:
    """Draw the leaderboard of a comparison."""
    return figures.leaderboard(comparison).figure
