"""Figures of linkage; each function draws one and returns its matplotlib Axes, as in `consilience.figures`."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.drawing import BLUE, GRID, INK, SKY, VERMILLION, axes_of, count_items, legend_below, shown_name, styled
from consilience.figures import reliability_curve
from consilience.printing import percent
from consilience.rounding import decimals, probability


def mean_number(count: Any) -> str:
    """Write the mean of a number of entities, with a digit after the point where its interval is worth that."""
    return f"{count.value:,.{min(decimals(*count.interval), 1) if np.isfinite(count.interval).all() else 0}f}"


@styled
def entity_histogram(count: Any, true_number: int | None = None, ax: Any = None, unit: str = "entities") -> Any:
    """Draw the posterior of the number of entities, with the mean, the estimate and, where it is known, the truth.

    Parameters
    ----------
    count : of `num_entities`.
    true_number : of entities.
    ax : axes to draw into.
    unit : what entities are called.
    """
    ax = axes_of(ax)
    draws = count.draws
    low, high = int(draws.min()), int(draws.max())
    width = max(1, -(-(high - low + 1) // 40))
    ax.hist(draws, bins=np.arange(low, high + width + 1, width) - 0.5, color=BLUE, alpha=0.75)
    if true_number is not None:  # wide, and under the others, which may be at the same place
        known = f"known {true_number:,}"
        ax.axvline(true_number, color=VERMILLION, linewidth=5, alpha=0.55, solid_capstyle="butt", label=known)
    ax.axvline(count.value, color=INK, linewidth=1.2, label=f"mean {mean_number(count)}")
    ax.axvline(count.point, color=INK, linewidth=1.2, linestyle=":", label=f"estimate {count.point:,.0f}")
    ax.set(title=f"Number of {unit}", xlabel=unit, ylabel="draws")
    count_items(ax.xaxis)
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.2), ncols=3, borderaxespad=0)
    return ax


_OF_OUTCOME = {"equal": BLUE, "near": SKY, "differ": VERMILLION, "missing": GRID}


@styled
def weights_of_fields(table: Any, ax: Any = None) -> Any:
    """Draw what each outcome of each field adds to the log odds of a pair on average.

    Parameters
    ----------
    table : of ``fit.weights()``; with the columns ``lower`` and ``upper``, the intervals of weights are drawn.
    ax : axes to draw into.
    """
    table = table[table["outcome"] != "missing"]
    fields = list(dict.fromkeys(table["field"]))
    ax = axes_of(ax, height=0.9 + 0.32 * len(fields))
    for outcome in [one for one in _OF_OUTCOME if one in set(table["outcome"])]:
        rows = table[(table["outcome"] == outcome) & np.isfinite(table["weight"])]
        places = [fields.index(field) for field in rows["field"]]
        ax.barh(places, rows["weight"], height=0.5 if outcome == "near" else 0.72, color=_OF_OUTCOME[outcome])
        if "lower" in rows:
            ax.hlines(places, rows["lower"], rows["upper"], color=INK, linewidth=1)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set(title="Match weights", xlabel="log odds added, on average", ylim=(len(fields) - 0.4, -0.6))
    ax.set_yticks(range(len(fields)), [shown_name(field) for field in fields])
    shown = [one for one in _OF_OUTCOME if one in set(table["outcome"])]
    _key(ax, shown, [_OF_OUTCOME[one] for one in shown])
    return ax


def _key(ax: Any, labels: Any, colours: Any) -> None:
    from matplotlib.patches import Patch

    legend_below(ax, [Patch(color=colour) for colour in colours], list(labels))


@styled
def explained_pair(table: Any, ax: Any = None) -> Any:
    """Draw step by step how the log odds of a pair come about.

    Parameters
    ----------
    table : of ``fit.explain(a, b)``.
    ax : axes to draw into.
    """
    names = []
    for row in table.itertuples():
        values = row.value_a if row.outcome == "equal" else f"{row.value_a} | {row.value_b}"
        names.append(shown_name(f"{row.term}: {values}") if row.outcome else row.term)
    ends = np.concatenate([[0.0], table["sum"]])
    finite = ends[np.isfinite(ends)]
    ends = np.clip(ends, finite.min() - 2, finite.max() + 2)  # a posterior of 0 or 1 has no finite odds
    ax = axes_of(ax, height=0.8 + 0.28 * len(names))
    start = np.append(ends[:-2], 0.0)  # the last bar is the sum
    step = ends[1:] - start
    ax.barh(range(len(names)), step, left=start, height=0.7, color=np.where(step < 0, VERMILLION, BLUE))
    for place, end in enumerate(ends[1:-1]):
        ax.plot([end, end], [place + 0.35, place + 0.65], color=INK, linewidth=0.7)
    ax.axvline(0, color=INK, linewidth=0.8)
    last = table["probability"].iloc[-1]
    title = f"One entity with probability {probability(last)}"
    ax.set(title=title, xlabel="log odds, summed up", ylim=(len(names) - 0.4, -0.6))
    ax.set_yticks(range(len(names)), names)
    return ax


@styled
def unlinkable_records(table: Any, ax: Any = None) -> Any:
    """Draw the share of records whose odds with a copy of themselves stay below each threshold.

    Parameters
    ----------
    table : of ``fit.unlinkable()``.
    ax : axes to draw into.
    """
    ax = axes_of(ax)
    ax.plot(table["threshold"], table["share"], color=BLUE)
    ax.axvline(0, color=INK, linewidth=0.8, linestyle=":")
    even = float(np.interp(0, table["threshold"], table["share"], left=0, right=1))
    place = (6, 6 if even < 0.5 else -11)  # within the axes
    ax.annotate(f"even odds: {percent(even)}", (0, even), xytext=place, textcoords="offset points")
    ax.set(
        title="Records with little information", xlabel="log odds with a copy of itself",
        ylabel="share of records below",
        ylim=(-0.02, 1.02),
    )  # fmt: skip
    return ax


@styled
def threshold_curves(table: Any, ax: Any = None) -> Any:
    """Draw precision and recall of the pairs above each threshold.

    Parameters
    ----------
    table : of ``fit.thresholds()``; with the columns ``precision_lower`` and so on, their intervals are shaded.
    ax : axes to draw into.
    """
    ax = axes_of(ax)
    for name, colour, marker in (("precision", BLUE, "o-"), ("recall", VERMILLION, "s-")):
        ax.plot(table["threshold"], table[name], marker, color=colour, markersize=4, label=name)
        if f"{name}_lower" in table:
            band = table[f"{name}_lower"], table[f"{name}_upper"]
            shade = f"95 % of draws of {name}"
            ax.fill_between(table["threshold"], *band, color=colour, alpha=0.2, linewidth=0, label=shade)
    ax.set_xscale("logit")  # most thresholds that matter are near 1
    ticks = [tick for tick in (0.01, 0.1, 0.5, 0.9, 0.99, 0.999) if tick in table["threshold"].to_numpy()]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    ax.set_xticks([], minor=True)
    title = "Precision and recall by threshold, as the model expects"
    ax.set(title=title, xlabel="threshold of the probability of a pair", ylabel="share", ylim=(None, 1.01))
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.2), ncols=2, borderaxespad=0)
    return ax


_CUTS = (0.02, 0.1, 0.5, 0.9, 0.99)


@styled
def pairs_by_probability(probability: Any, linked: Any, ax: Any = None) -> Any:
    """Draw how many pairs have which probability of being one entity, those that are linked and those that are not.

    Parameters
    ----------
    probability : of the pairs; those below the first cut are counted below the axis.
    linked : whether each pair is linked.
    ax : axes to draw into.
    """
    ax = axes_of(ax, 4.2, 3.0)
    place = np.searchsorted(_CUTS, probability, side="right") - 1
    number = [np.bincount(place[(place >= 0) & own], minlength=len(_CUTS)) for own in (~linked, linked)]
    rows = np.arange(len(_CUTS))
    names = [f"{low:g} to {high:g}" for low, high in zip(_CUTS, (*_CUTS[1:], 1), strict=True)]
    ax.barh(rows, number[1], color=BLUE, height=0.7)
    bars = ax.barh(rows, number[0], left=number[1], color=VERMILLION, height=0.7)
    ax.bar_label(bars, [f"{one:,}" for one in number[0] + number[1]], padding=3, fontsize=9)
    ax.set_yticks(rows, names)
    below = int((place < 0).sum())
    left = f" ({below:,} compared pairs below {_CUTS[0]:g} not shown)" * bool(below)
    ax.set(title="Pairs by probability of being one entity", xlabel=f"pairs{left}", ylim=(-0.6, len(_CUTS) - 0.4))
    ax.margins(x=0.14)
    ax.tick_params(axis="y", length=0)
    count_items(ax.xaxis)
    _key(ax, ["linked", "not linked"], [BLUE, VERMILLION])
    return ax


@styled
def calibration_of_pairs(table: Any, ax: Any = None) -> Any:
    """Draw how often pairs are the same entity, by their probability, with 95 % intervals.

    Parameters
    ----------
    table : of ``fit.calibration(labels)``.
    ax : axes to draw into.
    """
    names = {"expected": "certainty", "observed": "right", "lower": "right_lower", "upper": "right_upper"}
    stated, seen = "probability of being one entity", "share that is, as labels say"
    return reliability_curve(table.rename(columns=names), "Calibration of the pairs", stated, seen, ax=ax)


@styled
def pairs_by_key(table: Any, ax: Any = None) -> Any:
    """Draw how many pairs keys make, by how many records share a key.

    Parameters
    ----------
    table : of ``fit.candidates()``.
    ax : axes to draw into.
    """
    ax = axes_of(ax)
    names = [
        f"{row.records:,}" if row.records == row.up_to else f"{row.records:,} to {row.up_to:,}"
        for row in table.itertuples()
    ]
    bars = ax.bar(range(len(names)), table["pairs"], color=BLUE)
    ax.bar_label(bars, [f"{number:,} keys" for number in table["keys"]], padding=2, fontsize=8)
    ax.set(title="How candidates are found", xlabel="records that share a key", ylabel="pairs, for each key")
    ax.set_xticks(range(len(names)), names)
    count_items(ax.yaxis)
    ax.margins(y=0.12)
    return ax
