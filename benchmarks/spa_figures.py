"""The figures of the SPA benchmark, numbered as in the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from benchmarks.recording import panels
from consilience.drawing import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILLION, colours_of, styled
from consilience.evaluation.agreement.counts import LabelCounts
from consilience.evaluation.agreement.weighting import SCHEMES, rho, weight_function

# `inv_var` lies on `edge`: drawn on top of it with gaps.
_LINES: dict[str, dict[str, Any]] = {
    "flat": {"color": INK},
    "annotations": {"color": BLUE},
    "annotations_m1": {"color": GREEN},
    "edge": {"color": VERMILLION},
    "inv_var": {"color": SKY, "linestyle": (0, (2, 3)), "linewidth": 2.2},
    "inv_var_class": {"color": PURPLE},
    "exch": {"color": ORANGE, "linestyle": "--"},
}
_FLAT = SCHEMES.index("flat")

# A variance below this share of the largest is what rounding leaves where all orders end in the same annotations.
_ROUNDING = 1e-12


def _viridis(number: int) -> np.ndarray:
    import matplotlib

    return matplotlib.colormaps["viridis"](np.linspace(0, 0.92, number))


def _legend_below(figure: Any, ax: Any, columns: int) -> None:
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=columns)


# ---- weights ----


def _weights(scheme: str, size: np.ndarray, num_labels: int = 2, shares: np.ndarray | None = None) -> np.ndarray:
    """Return the weights of a scheme, the largest being 1."""
    nobody = np.zeros(0, np.int64)
    counts = LabelCounts.of_codes(nobody, nobody, num_items=0, num_labels=num_labels)
    weights = weight_function(scheme, counts, shares)(size)
    return weights / weights.max()


@styled
def figure_4() -> Any:
    """Draw Figure 4: the weights of four schemes; and how those of `inv_var` depend on the number of classes."""
    figure, (axes,) = panels(2, width=3.9, height=2.9)
    size, numbers = np.arange(2.0, 11), range(2, 8)
    for scheme in ("annotations", "annotations_m1", "edge", "inv_var"):
        axes[0].plot(size, _weights(scheme, size), label=scheme, **_LINES[scheme])
    axes[0].set(title="Weights, two classes", xlabel="annotations of the item", ylabel="weight, largest 1")
    axes[0].legend()
    curves = np.stack([_weights("inv_var", size, number) for number in numbers])
    curves -= curves.mean(axis=0)
    # They coincide: each is thinner than the one below it.
    widths = np.linspace(7, 1, len(numbers))
    for number, curve, colour, width in zip(numbers, curves, _viridis(len(numbers)), widths, strict=True):
        axes[1].plot(size, curve, color=colour, linewidth=width, label=f"{number} classes")
    axes[1].set(title="inv_var less its mean over numbers of classes", xlabel="annotations of the item",
                ylim=(-0.011, 0.011))  # fmt: skip
    axes[1].legend(ncols=2, loc="upper center")
    for ax in axes:
        ax.grid(axis="y")
    return figure


class ClassWeights(NamedTuple):
    """Weights of `inv_var_class` for random class distributions.

    Parameters
    ----------
    num_classes : shape ``(distribution,)``.
    weights : shape ``(distribution, size)``, for n = 1 to 10, the largest being 1.
    entropy, ratio : shape ``(distribution,)``; in nats, and ρ.
    """

    num_classes: np.ndarray
    weights: np.ndarray
    entropy: np.ndarray
    ratio: np.ndarray

    @property
    def area(self) -> np.ndarray:
        """The area under each curve of weights."""
        return np.trapezoid(self.weights, dx=1.0, axis=1)

    def rank_correlation(self, with_what: str) -> float:
        """Return Spearman's correlation of the area with the entropy or the ratio."""
        return float(stats.spearmanr(self.area, getattr(self, with_what)).statistic)


def class_weights(number: int, seed: int) -> ClassWeights:
    """Draw class distributions as the paper does: so many for each of 2 to 10 classes, logits uniform in (-2, 4)."""
    random = np.random.default_rng(seed)
    size = np.arange(1.0, 11)
    num_classes = np.repeat(np.arange(2, 11), number)
    shares = [special.softmax(random.uniform(-2, 4, classes)) for classes in num_classes]
    return ClassWeights(
        num_classes,
        np.stack([_weights("inv_var_class", size, len(one), one) for one in shares]),
        np.array([special.entr(one).sum() for one in shares]),
        np.array([rho(one) for one in shares]),
    )


@styled
def figure_5(curves: ClassWeights, studied: ClassWeights) -> Any:
    """Draw Figure 5: weights of `inv_var_class`, and the area under them against the entropy and against ρ."""
    figure, (axes,) = panels(3, width=3.9, height=2.9)
    colours = dict(zip(range(2, 11), _viridis(9), strict=True))
    size = np.arange(1.0, 11)
    for number, weights in zip(curves.num_classes, curves.weights, strict=True):
        axes[0].plot(size, weights, color=colours[number], linewidth=0.7, alpha=0.8)
    for scheme, style in (("annotations", "--"), ("edge", ":")):
        axes[0].plot(size, _weights(scheme, size), color=INK, linestyle=style, linewidth=1.8, label=scheme)
    axes[0].set(title="inv_var_class", xlabel="annotations of the item", ylabel="weight, largest 1")
    axes[0].legend()
    for ax, name, label in ((axes[1], "entropy", "entropy of the classes (nats)"), (axes[2], "ratio", "ρ")):
        for number, colour in colours.items():
            own = studied.num_classes == number
            ax.scatter(
                getattr(studied, name)[own], studied.area[own], s=5, color=colour, linewidth=0, rasterized=True,
                label=str(number),
            )  # fmt: skip
        title = f"Rank correlation {studied.rank_correlation(name):.3f}"
        ax.set(title=title, xlabel=label, ylabel="area under the curve")
    for ax in axes:
        ax.grid(axis="y")
    figure.legend(*axes[1].get_legend_handles_labels(), title="classes", loc="outside right center", markerscale=2.5)
    return figure


# ---- variances ----


def _thousands(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_major_locator(MaxNLocator(4, integer=True))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _powers(axis: Any) -> None:
    """Label a logarithmic axis, without the mathematics that the style leaves unset."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    axis.set_major_locator(LogLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: "10" + f"{np.log10(value):.0f}".translate(raised)))


def _sets(growths: Mapping[str, Any]) -> tuple[Any, list[tuple[Any, Any]]]:
    """Return a figure with a panel for each data set: the axes and what belongs there."""
    figure, axes = panels(3, -(-len(growths) // 3), width=3.9, height=2.9)
    for ax in axes.flat[len(growths) :]:
        ax.remove()
    chosen = []
    for ax, (name, growth) in zip(axes.flat, growths.items(), strict=False):
        ax.set_title(name)
        _thousands(ax.xaxis)
        ax.grid(axis="y")
        chosen.append((ax, growth))
    for ax in axes[-1]:
        ax.set_xlabel("annotations of usable items")
    return figure, chosen


def _positive(variance: np.ndarray) -> np.ndarray:
    """Blank what is zero but for rounding, which a logarithmic axis would show."""
    return np.where(variance > _ROUNDING * np.nanmax(variance), variance, np.nan)


def _constant(ax: Any, growth: Any) -> None:
    for (number, (budget, values)), colour in zip(growth.constant.items(), _viridis(6), strict=False):
        ax.plot(budget, _positive(values.var(axis=0, ddof=1)), color=colour, label=f"{number} per item")


def _random(ax: Any, growth: Any, **line: Any) -> None:
    ax.plot(growth.usable[growth.on_grid], _positive(growth.variance[:, _FLAT]), **line)


def _own_legend(ax: Any) -> None:
    ax.legend(fontsize=7, handlelength=1.4, borderaxespad=0.2, labelspacing=0.3)


@styled
def figure_6(growths: Mapping[str, Any]) -> Any:
    """Draw Figure 6: variance of flat SPA by the number of annotations, with two ways to add them."""
    figure, chosen = _sets(growths)
    for ax, growth in chosen:
        _constant(ax, growth)
        _random(ax, growth, color=VERMILLION, linestyle="--", label="at random")
        ax.set_ylim(0, 1.05 * max(values.var(axis=0, ddof=1)[0] for _, values in growth.constant.values()))
        ax.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        ax.set_ylabel("variance")
        _own_legend(ax)
    return figure


@styled
def figure_8(growths: Mapping[str, Any]) -> Any:
    """Draw Figure 8: items added with a constant number of annotations, on a logarithmic axis."""
    figure, chosen = _sets(growths)
    for ax, growth in chosen:
        _constant(ax, growth)
        ax.set(yscale="log", ylabel="variance")
        _powers(ax.yaxis)
        _own_legend(ax)
    return figure


@styled
def figure_9(growths: Mapping[str, Any]) -> Any:
    """Draw Figure 9: annotations added at random, on logarithmic axes."""
    figure, ((ax,),) = panels(1, width=5.6, height=3.6)
    for (name, growth), colour in zip(growths.items(), colours_of(len(growths)), strict=True):
        _random(ax, growth, color=colour, label=name)
    ax.set(xscale="log", yscale="log", xlabel="annotations of usable items", ylabel="variance")
    _powers(ax.xaxis)
    _powers(ax.yaxis)
    ax.grid(axis="y")
    _legend_below(figure, ax, 3)
    return figure


def _schemes(
    growths: Mapping[str, Any], transform: Callable[[np.ndarray], np.ndarray], ylabel: str, logarithmic: bool = False
) -> Any:
    """Draw a curve for each scheme, a panel for each data set."""
    figure, chosen = _sets(growths)
    for ax, growth in chosen:
        usable, variance = growth.usable[growth.on_grid], transform(growth.variance)
        for number, scheme in enumerate(SCHEMES):
            ax.plot(usable, variance[:, number], label=scheme, **_LINES[scheme])
        ax.set(ylabel=ylabel)
        if logarithmic:
            ax.set_yscale("log")
            _powers(ax.yaxis)
        else:
            ax.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    _legend_below(figure, chosen[0][0], len(SCHEMES))
    return figure


@styled
def figure_7(growths: Mapping[str, Any]) -> Any:
    """Draw Figure 7: variance less that of `flat`, for each scheme."""
    return _schemes(growths, lambda variance: variance - variance[:, [_FLAT]], "variance - flat's")


@styled
def figure_10(growths: Mapping[str, Any]) -> Any:
    """Draw Figure 10: the variances themselves, on a logarithmic axis."""
    return _schemes(growths, _positive, "variance", logarithmic=True)


@styled
def figure_11(growths: Mapping[str, Any]) -> Any:
    """Draw Figure 11: variance less the mean over the paper's schemes."""
    paper = len(SCHEMES) - 1
    return _schemes(growths, lambda variance: variance - variance[:, :paper].mean(1, keepdims=True), "variance - mean")
