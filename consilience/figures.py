"""Figures for papers and reports: each function draws one and returns its matplotlib Axes.

Pass ``ax=`` to draw into a figure of your own; otherwise a new one is made, at ``axes.figure``, without pyplot and
hence without a window or any global state. Colours are those of Okabe and Ito, or viridis where many things are
ordered. Names are drawn as they are: a dollar sign in an item's id is not mathematics. Numbers of figures refer to
Stutz et al. (2023).

>>> import consilience as cs
>>> from consilience import figures
>>> fit = cs.fit("dirichlet", cs.load("dawid-skene-1979"))
>>> axes = figures.sorted_certainty({"top-1": cs.certainty(fit)})
>>> axes.figure.savefig("certainty.pdf")  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from consilience.drawing import (
    BLUE,
    GREEN,
    GRID,
    INK,
    MOST_POINTS,
    ORANGE,
    SMALL,
    VERMILLION,
    axes_of,
    colours_of,
    count_items,
    folded,
    inches,
    inked,
    legend_below,
    legend_columns,
    room_for,
    shown_name,
    styled,
)
from consilience.errors import UnknownName
from consilience.evaluation.leaderboard import Comparison
from consilience.evaluation.scores import Score, correlation
from consilience.models.intervals import ends
from consilience.models.truth import CLASSES, Truth, truth_of
from consilience.printing import counted

# Figures of one kind of fit stand in files of their own, and are here too, by names that say of what they are.
_ELSEWHERE = {
    "agreement_figures": {
        name: name for name in
        ("agreement_by_name", "annotator_matrix", "learning_curve", "monitoring", "predictive_check")
    },
    "annotator_figures": {
        "annotator_reliability": "reliability", "sensitivity_scatter": "sensitivity_scatter",
        "probability_matrix": "probability_matrix",
    },
    "linkage_figures": {
        name: name for name in (
            "entity_histogram", "weights_of_fields", "explained_pair", "unlinkable_records", "threshold_curves",
            "calibration_of_pairs", "pairs_by_key",
        )
    },
    "views_figures": {
        "number_of_views": "number_of_views", "restart_bounds": "restart_bounds", "expert_views": "expert_views",
        "expert_reliability": "reliability", "view_clusters": "clusters",
    },
}  # fmt: skip
_HOME = {name: (module, own) for module, names in _ELSEWHERE.items() for name, own in names.items()}

__all__ = [
    "beats_matrix", "certainty_by_agreement", "certainty_by_reliability", "certainty_histogram",
    "expected_risk_histogram", "item_scores", "leaderboard", "plausibility_bars", "reliability_curve",
    "score_histogram", "simplex", "sorted_certainty", *_HOME,
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'consilience.figures' has no attribute '{name}'")
    module, own = _HOME[name]
    return getattr(importlib.import_module(f"consilience.{module}"), own)


# Quantiles that stand for draws of a score in closed form.
_QUANTILES = 1000

# Classes without a row of their own get one together if their mean plausibility is at least this.
_LEAST_REST = 0.005


def _as_mapping(scores: Score | Mapping[str, Score]) -> Mapping[str, Score]:
    return {scores.title: scores} if isinstance(scores, Score) else scores


def _common_title(scores: Mapping[str, Score]) -> str:
    """Return the words that the titles of scores begin with: of several systems none is named."""
    words = zip(*(score.title.split() for score in scores.values()), strict=False)
    common = [same[0] for same in itertools.takewhile(lambda same: len(set(same)) == 1, words)]
    return " ".join(common).removesuffix(" of") or "score"


@styled
def sorted_certainty(scores: Score | Mapping[str, Score], ax: Any = None, unit: str = "item") -> Any:
    """Draw certainties of all items, each curve sorted (Figures 3, 7 left, 8 left and 14).

    Parameters
    ----------
    scores : certainties by label, one curve each.
    ax : axes to draw into.
    unit : what an item is called.
    """
    several = "each curve " * (len(_as_mapping(scores)) > 1)
    return _sorted_curves(scores, ax, f"Certainty of each {unit}, {several}sorted", "certainty", unit)


@styled
def item_scores(scores: Score | Mapping[str, Score], ax: Any = None, title: str | None = None) -> Any:
    """Draw the scores of single items, averaged over draws of the truth, each curve sorted (Figure 7 middle).

    Parameters
    ----------
    scores : scores by label, such as one for each system.
    ax : axes to draw into.
    title : what was measured; the score's own words by default.
    """
    scores = _as_mapping(scores)
    title = title or f"Each item's {_common_title(scores)}, each curve sorted"
    return _sorted_curves(scores, ax, title, "score, averaged over draws")


def _sorted_curves(
    scores: Score | Mapping[str, Score], ax: Any, title: str, ylabel: str, unit: str = "item"
) -> Any:  # fmt: skip
    scores = _as_mapping(scores)
    names = [shown_name(label) for label in scores]
    legend_rows = -(-len(names) // legend_columns(names, 4.6))
    ax = axes_of(ax, height=3.2 + 0.17 * max(0, legend_rows - 1))
    handles, longest = [], 1
    for score, colour in zip(scores.values(), colours_of(len(scores)), strict=True):
        values = np.sort(score.items[np.isfinite(score.items)])
        kept = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_POINTS)).round().astype(int))
        marker = "o" if len(values) <= 30 else ""
        handles += ax.plot(kept + 1, values[kept], color=colour, marker=marker, markersize=4)
        longest = max(longest, len(values))
    ax.set(title=title, xlabel=f"{unit}s, lowest first", ylabel=ylabel, ylim=(-0.02, 1.02))
    ax.set_xlim(1 - 0.02 * longest, longest * 1.02)
    count_items(ax.xaxis)
    ax.grid(axis="y")
    if len(scores) > 1:
        legend_below(ax, handles, names)
    return ax


@styled
def score_histogram(scores: Score | Mapping[str, Score], ax: Any = None, title: str | None = None) -> Any:
    """Draw how the score of a whole data set varies over draws of the truth (Figure 7 right).

    Parameters
    ----------
    scores : one score, or several by label, one row each. The line is the mean over draws, the cross the score
        against the point estimate.
    ax : axes to draw into.
    title : what was measured; the score's own words by default.
    """
    from matplotlib.lines import Line2D

    scores = _as_mapping(scores)
    ax = axes_of(ax, height=1.5 + 0.42 * len(scores) if len(scores) > 1 else 2.6)
    draws = [_spread(score) for score in scores.values()]
    edges = _edges(np.concatenate(draws))
    rows = range(len(scores))[::-1]
    for row, score, drawn, colour in zip(rows, scores.values(), draws, colours_of(len(scores)), strict=True):
        counts, _ = np.histogram(drawn, edges)
        heights = row + 0.8 * counts / max(1, counts.max())
        ax.stairs(heights, edges, baseline=row, fill=True, color=colour, alpha=0.55, linewidth=0)
        ax.plot([score.value] * 2, [row, row + 0.85], color=INK, linewidth=1.2)
        if score.point is not None:
            ax.plot(score.point, row + 0.2, marker="x", color=INK, markersize=6, markeredgewidth=1.6, linestyle="")
    words = _common_title(scores)
    title = title or f"{words[:1].upper()}{words[1:]} over draws of the truth"
    ax.set(title=title, xlabel="score of the data set")
    ax.set_ylim(-0.05, len(scores))
    if len(scores) > 1:
        ax.set_yticks([row + 0.3 for row in rows], [shown_name(label) for label in scores])
        ax.tick_params(axis="y", length=0)
    else:
        ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")
    marks = {"mean over draws": Line2D([], [], color=INK, linewidth=1.2)}
    if any(score.point is not None for score in scores.values()):
        cross = Line2D([], [], color=INK, marker="x", markeredgewidth=1.6, linestyle="")
        marks["against the point estimate"] = cross
    legend_below(ax, list(marks.values()), list(marks))
    return ax


def _spread(score: Score) -> np.ndarray:
    """Return the draws of a score; in closed form as many quantiles of the normal law."""
    if len(score.draws):
        return score.draws
    if not score.exact_sd:
        return np.array([score.value])
    return np.clip(score.value + score.exact_sd * ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES), 0, 1)


def _edges(values: np.ndarray) -> np.ndarray:
    """Return edges of histogram bins that also serve where all values are equal."""
    low, high = float(np.min(values)), float(np.max(values))
    if high - low < 1e-9:
        low, high = low - 0.005, high + 0.005
    distinct = len(np.unique(np.round(values, 12)))
    return np.linspace(low, high, 1 + min(30, max(5, distinct)))


class WithGold(NamedTuple):
    """Scores of systems that gold labels had a part in, which a leaderboard draws first.

    Parameters
    ----------
    label : what they are, in the legend.
    scores : by system, the score and the ends of its interval.
    """

    label: str
    scores: Mapping[str, tuple[float, float, float]]


@styled
def leaderboard(
    comparison: Comparison, ax: Any = None, *, order: Sequence[str] = (), gold: WithGold | None = None,
    interval: str = "",
) -> Any:  # fmt: skip
    """Draw the systems of a comparison, best first, with what is uncertain about their scores and why.

    Parameters
    ----------
    comparison : of `compare`. The thick interval is that of the table; thin ones are its readings, made from the
        annotations or with an own look, or where there is one reading, its sources. The cross is the score against the
        point estimate.
    ax : axes to draw into.
    order : of the systems, where it is another one than that of the table.
    gold : scores that are drawn in the place of the table's, which are then thin and grey: by gold labels too.
    interval : what the thick one is, in words; that of the level by default.
    """
    from matplotlib.lines import Line2D

    systems = list(order) or comparison.table["system"].tolist()
    places = np.array([comparison.systems.index(name) for name in systems])
    table = comparison.table.set_index("system").loc[systems]
    names = [folded(shown_name(name)) for name in systems]
    ax = axes_of(ax, room_for(names), 1.4 + 0.46 * len(systems) + 0.17 * (gold is not None))
    rows = np.arange(len(systems))
    interval = interval or f"{100 * comparison.level:g} % interval"
    if gold is None:
        told = "value" if comparison.own_draws is None else "lowest and highest reading"
        values, lower, upper = comparison.readings.range[:, places], table["lower"], table["upper"]
        labels = [f"{told}, with {interval}"]
    else:
        value, lower, upper = np.array([gold.scores[name] for name in systems]).T
        values, labels = value[None], [gold.label]
    ax.hlines(rows, lower, upper, color=BLUE, linewidth=3.2, alpha=0.55)
    for ends_ in values:
        ax.plot(ends_, rows, "o", color=BLUE, markersize=6)
    handles: list[Any] = [Line2D([], [], color=BLUE, marker="o", markersize=5, linewidth=2)]
    for name, lines in _thin(ax, comparison, places, gold is not None).items():
        handles, labels = [*handles, lines], [*labels, name]
    if comparison.points is not None and gold is None:
        handles += ax.plot(comparison.points[places], rows, "x", color=INK, markersize=6.5, markeredgewidth=1.6)
        labels += ["against the point estimate"]
    ax.set_yticks(rows, names)
    ax.set_ylim(len(systems) - 0.4, -0.5)
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, (low + high) / 2 - 0.01), max(high, (low + high) / 2 + 0.01))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")
    units = counted(comparison.num_items, f"{comparison.unit}s")
    ax.set(title=f"Leaderboard: {comparison.title}, {units}", xlabel=comparison.title)
    legend_below(ax, handles, labels)
    return ax


def _thin(ax: Any, comparison: Comparison, places: np.ndarray, grey: bool) -> dict[str, Any]:
    """Draw what the scores by annotations are made of, under each system, and return the lines by what they are.

    Parameters
    ----------
    ax, comparison : of the leaderboard.
    places : of its systems, in the order of the rows.
    grey : whether these are all of what is drawn of annotations alone, which their names then say.
    """
    alone = comparison.draws is comparison.truth_draws or comparison.truth_draws.shape[1] == 1
    thin: dict[str, np.ndarray] = {}
    if comparison.own_draws is not None:
        of = "annotations alone, " * grey
        names = ("if made from them", "if it saw the items") if grey else (
            "predictions made from the annotations", "system looked at the items itself"
        )  # fmt: skip
        thin = dict(zip((of + name for name in names), (comparison.draws, comparison.own_draws), strict=True))
    elif grey:
        thin = {"annotations alone": comparison.draws}
    # Where the truth is a point, or the thick interval is of these units alone, there is one source, which it shows.
    elif not alone:
        thin = {f"truth of these {comparison.unit}s uncertain": comparison.truth_draws}
        thin |= {f"{comparison.unit}s alone uncertain": comparison.item_draws}
    counts, rows = np.isfinite(comparison.readings.own_range[0, places]), np.arange(len(places))
    colours: list[dict[str, Any]] = [{"color": VERMILLION}, {"color": GREEN}]
    looks = [{"color": INK, "alpha": 0.55}] * 2 if grey else colours
    drawn = {}
    for place, dashes, (name, draws), look in zip((0.2, 0.34), ("-", (0, (2, 1.5))), thin.items(), looks, strict=False):
        found = np.quantile(np.atleast_3d(draws.T).T[:, places], ends(comparison.level), axis=2)
        low, high = np.clip(found, *comparison.limits)  # draws are linear in what is uncertain, and may pass them
        shown = counts if draws is comparison.own_draws else np.ones(len(places), bool)
        drawn[name] = ax.hlines((rows + place)[shown], low.min(axis=0)[shown], high.max(axis=0)[shown], **look)
        drawn[name].set_linewidth(1.4)
        drawn[name].set_linestyle(dashes if grey else "-")
    return drawn


@styled
def beats_matrix(comparison: Comparison, ax: Any = None, *, order: Sequence[str] = ()) -> Any:
    """Draw the probability that one system beats another, for each pair; best first.

    Parameters
    ----------
    comparison : of `compare`. Where readings put a probability far apart there is a range, in the colour of its middle.
    ax : axes to draw into.
    order : of the systems, where it is another one than that of the table.
    """
    systems = list(order) or comparison.table["system"].tolist()
    beats = comparison.beats.loc[systems, systems]
    wins, names = np.full(beats.shape, np.nan), [shown_name(name) for name in beats.index]
    side = 0.75 * len(names)
    ax = axes_of(ax, width=1.2 + side + inches(names), height=1.0 + side + 0.64 * inches(names))
    place = {name: number for number, name in enumerate(beats.index)}
    for pair in comparison.pairs.itertuples():
        low, high = pair.p_a_beats_b_lower, pair.p_a_beats_b_upper
        for row, column, ends_ in ((pair.a, pair.b, (low, high)), (pair.b, pair.a, (1 - high, 1 - low))):
            wins[place[row], place[column]] = sum(ends_) / 2
            middle = (place[column] + 0.5, place[row] + 0.5)
            text = comparison.probability_text(*ends_).replace(" to ", "\nto ")
            ax.text(*middle, text, ha="center", va="center", fontsize=SMALL)
    ax.pcolormesh(inked(2 * wins - 1), edgecolors=GRID, linewidth=0.6)
    places = np.arange(len(names)) + 0.5
    ax.set_xticks(places, names, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_yticks(places, names)
    ax.tick_params(length=0)
    ax.set(title="P(row beats column)", aspect="equal", ylim=(len(names), 0))
    ax.spines[:].set_visible(False)
    return ax


@styled
def certainty_by_agreement(certainty: Score, agreement: Score, ax: Any = None) -> Any:
    """Draw each item's certainty against the agreement of its annotators, with the least-squares line (Figure 13).

    Parameters
    ----------
    certainty : of `consilience.certainty`.
    agreement : of `consilience.annotator_agreement`; items with one annotator have none and are left out.
    ax : axes to draw into.
    """
    ax = axes_of(ax)
    both = np.isfinite(certainty.items) & np.isfinite(agreement.items)
    x, y = agreement.items[both], certainty.items[both]
    # Agreement has few values: a little noise on the drawing, not on the regression, shows how many items are there.
    noise = np.random.default_rng(0).uniform(-0.012, 0.012, len(x))
    size, alpha = (9, 0.35) if len(x) > 200 else (26, 0.6)
    ax.scatter(x + noise, y, s=size, color=BLUE, alpha=alpha, linewidth=0, rasterized=len(x) > MOST_POINTS)
    found = ""
    # Two certainties, as of votes, are on no line.
    if np.ptp(x) > 0 and len(np.unique(y)) > 2:
        slope, intercept = np.polyfit(x, y, 1)
        ends = np.array([x.min(), x.max()])
        ax.plot(ends, intercept + slope * ends, color=VERMILLION)
        found = f", correlation {correlation(certainty, agreement):.2f}"
    ax.set(xlabel=agreement.title, ylabel=certainty.title, title=f"Certainty and agreement, {len(x):,} items{found}")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.02, 1.03))
    ax.grid()
    return ax


@styled
def expected_risk_histogram(score: Score, ax: Any = None) -> Any:
    """Draw the expected risk of the items as a histogram (Figure 8 right).

    Parameters
    ----------
    score : of `consilience.expected_risk`.
    ax : axes to draw into.
    """
    ax = axes_of(ax)
    values = score.items[np.isfinite(score.items)]
    ax.hist(values, bins=_edges(np.append(values, [0.0])), color=BLUE, alpha=0.75)
    ax.set(title=f"Expected risk of {len(values):,} items", xlabel="expected risk", ylabel="items")
    count_items(ax.yaxis)
    ax.grid(axis="y")
    return ax


@styled
def certainty_histogram(score: Score, ax: Any = None, unit: str = "item") -> Any:
    """Draw the certainties of the items as a histogram.

    Parameters
    ----------
    score : of `consilience.certainty`.
    ax : axes to draw into.
    unit : what an item is called.
    """
    ax = axes_of(ax)
    values = score.items[np.isfinite(score.items)]
    ax.hist(values, bins=np.linspace(0, 1, 21), color=BLUE, alpha=0.75)
    ax.set(title=f"{score.title[:1].upper()}{score.title[1:]}", xlabel="certainty", ylabel=f"{unit}s", xlim=(0, 1))
    count_items(ax.yaxis)
    ax.grid(axis="y")
    return ax


@styled
def reliability_curve(table: Any, title: str, stated: str, seen: str, ax: Any = None) -> Any:
    """Draw how often what is stated with each probability is so, with 95 % intervals.

    Parameters
    ----------
    table : data frame of `consilience.evaluation.reliability.reliability_table`, or of ``fit.calibration()``.
    title : of the figure.
    stated, seen : what the axes are, in words.
    ax : axes to draw into.
    """
    ax = axes_of(ax, 3.4, 3.2)
    right = table["right"]
    begins = [np.floor(10 * min(one.min(), 0.9) + 1e-9) / 10 for one in (table["certainty"], table["right_lower"])]
    ax.plot([min(begins), 1], [min(begins), 1], color=GRID, linewidth=1.2)
    # The ends of an interval may miss its share by rounding, where that is 0 or 1.
    bars = [np.maximum(right - table["right_lower"], 0), np.maximum(table["right_upper"] - right, 0)]
    ax.errorbar(table["certainty"], right, yerr=np.asarray(bars), fmt="o", color=BLUE, markersize=5, linewidth=1)
    ax.set(title=title, xlabel=stated, ylabel=seen, aspect="equal")
    ax.set(xlim=(begins[0] - 0.03, 1.03), ylim=(begins[1] - 0.03, 1.03))
    return ax


@styled
def certainty_by_reliability(frame: Any, ax: Any = None) -> Any:
    """Draw how certainty rises with the reliability that is granted to the annotators (Figure 6, first column).

    Parameters
    ----------
    frame : data frame of `consilience.sweep`; the rows of certainties are drawn, with their 95 % intervals.
    ax : axes to draw into.
    """
    from matplotlib.ticker import FuncFormatter, NullLocator

    ax = axes_of(ax)
    frame = frame[(frame["system"] == "") & frame["score"].str.contains("certainty")]
    names = list(dict.fromkeys(frame["score"]))
    handles = []
    for name, colour in zip(names, colours_of(len(names)), strict=True):
        rows = frame[frame["score"] == name].sort_values("reliability")
        handles += ax.plot(rows["reliability"], rows["value"], "o-", color=colour, markersize=4)
        ax.fill_between(rows["reliability"], rows["lower"], rows["upper"], color=colour, alpha=0.2, linewidth=0)
    values = np.unique(frame["reliability"])
    if len(values) > 1 and values[0] > 0 and values[-1] / values[0] >= 8:
        ax.set_xscale("log")
    ax.set_xticks(values)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set(title="Certainty at several reliabilities", xlabel="reliability", ylabel="certainty", ylim=(None, 1.01))
    ax.grid(axis="y")
    legend_below(ax, handles, names)
    return ax


@styled
def simplex(
    draws: np.ndarray, point: np.ndarray | None = None, labels: Sequence[Any] | None = None, ax: Any = None
) -> Any:
    """Draw plausibilities of three classes in their triangle: the toy of Figure 2.

    Parameters
    ----------
    draws : non-negative, shape ``(draw, 3)``; normalised here.
    point : shape ``(3,)``, the point estimate, drawn as a cross.
    labels : names of the three corners.
    ax : axes to draw into.

    Raises
    ------
    ValueError : the draws are not of three classes.
    """
    ax = axes_of(ax, 3.6, 3.4)
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    draws = np.asarray(draws, float)
    if draws.ndim != 2 or draws.shape[1] != 3:
        raise ValueError(f"draws have shape {draws.shape}; give one row a draw and three columns, one a class")
    ax.plot(*corners[[0, 1, 2, 0]].T, color=INK, linewidth=0.8)
    # Where two classes are equally plausible the top class changes: a line from the centre to the middle of an edge.
    for middle in (corners + np.roll(corners, 1, axis=0)) / 2:
        ax.plot(*np.array([corners.mean(axis=0), middle]).T, color=GRID, linewidth=0.9, zorder=0)
    dots = draws / draws.sum(axis=1, keepdims=True) @ corners
    ax.scatter(*dots.T, s=7, color=BLUE, alpha=0.4, linewidth=0, rasterized=len(dots) > MOST_POINTS)
    if point is not None:
        place = np.asarray(point, float) / np.sum(point) @ corners
        ax.plot(*place, "x", color=VERMILLION, markersize=8, markeredgewidth=2)
    names = [shown_name(label) for label in (labels if labels is not None else (1, 2, 3))]
    for corner, name, down in zip(corners, names, (True, True, False), strict=True):
        shift = (0, -6 if down else 6)
        ax.annotate(name, corner, shift, textcoords="offset points", ha="center", va="top" if down else "bottom")
    ax.set(aspect="equal")
    ax.set_axis_off()
    return ax


@styled
def plausibility_bars(fit: Any, item: Any, ax: Any = None, *, most: int = 12, unit: str = "item") -> Any:
    """Draw the plausibilities of the classes of one item (Figures 5 and 15).

    The classes that are not drawn, with those that nobody named, share one row where together they matter.

    Parameters
    ----------
    fit : a fit, or a `Truth`.
    item : the user's id of the item; its position where items have no ids.
    ax : axes to draw into.
    most : how many classes to draw, those with the largest mean first.
    unit : what an item is called.
    """
    from matplotlib.lines import Line2D

    truth: Any = truth_of(fit).read_as(CLASSES.name)
    position = _position(truth, item)
    (codes, draws), *_ = plausibility_draws(truth, [position])
    shown = np.argsort(-draws.mean(axis=0), kind="stable")[:most]
    classes = truth.ids.get("class")
    names = codes if classes is None else np.asarray(classes, object)[codes]
    dots, labels = draws[:, shown], [shown_name(names[place]) for place in shown]
    rest = 1 - dots.sum(axis=1, keepdims=True)
    if rest.mean() >= _LEAST_REST:
        dots, labels = np.hstack([dots, rest]), [*labels, f"all others ({truth.num_classes - len(shown):,})"]
    ax = axes_of(ax, height=1.3 + 0.3 * len(labels))
    rows = np.arange(len(labels))
    handles, kinds = [Line2D([], [], color=BLUE, marker="o", markersize=3, linestyle="")], ["draws of the truth"]
    standard = truth.standard()
    if standard is not None:
        (point_codes, point), *_ = standard.drawn_shares([position])
        heights = dict(zip(point_codes.tolist(), point[0], strict=True))
        widths = np.array([heights.get(int(code), 0.0) for code in codes[shown]])
        widths = np.append(widths, max(0.0, 1 - widths.sum()))[: len(rows)]
        handles += [ax.barh(rows, widths, height=0.72, color=ORANGE, alpha=0.55)]
        kinds += ["point estimate"]
    dots = dots[: min(200, MOST_POINTS // dots.shape[1])]  # few enough for a vector, whose colour follows the page
    noise = np.random.default_rng(0).uniform(-0.26, 0.26, dots.shape)
    ax.scatter(dots, rows + noise, s=4, color=BLUE, alpha=0.5, linewidth=0)
    ax.set_yticks(rows, labels)
    ax.set(title=f"Plausibilities of {unit} {shown_name(item)}", xlabel="plausibility", xlim=(-0.01, 1.01))
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    legend_below(ax, handles, kinds)
    return ax


def _position(truth: Truth, item: Any) -> int:
    ids = truth.names()
    places = [place for place, name in enumerate(ids) if str(name) == str(item)]
    if not places:
        raise UnknownName(f"no item is called {item!r}; the first ones are {', '.join(map(str, ids[:5]))}")
    return places[0]


def plausibility_draws(fit: Any, positions: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return draws of the plausibilities of some items' named classes.

    Where the truth of an item is a label, its draws are 0 or 1. Those of a Dirichlet posterior are made anew. What the
    draws lack to a sum of one belongs to the classes that nobody named.

    Parameters
    ----------
    fit : a fit, or a `Truth`.
    positions : codes of the items.

    Returns
    -------
    For each item: class codes ``(class,)``, and draws ``(draw, class)`` that sum to at most one.
    """
    truth: Any = truth_of(fit).read_as(CLASSES.name)
    return truth.drawn_shares(positions)
