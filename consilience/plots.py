"""``fit.plot``: figures of a fit, each with ``ax=``, which return the matplotlib axes that they drew into.

What a fit has no table for is refused in the words of the fit. ``trace``, ``rank``, ``posterior`` and ``forest`` have
ArviZ's names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience import annotator_figures, figures, linkage_figures, views_figures
from consilience.drawing import BLUE, INK, axes_of, colours_of, shown_name, styled
from consilience.errors import UnsupportedRequest, no_such
from consilience.models.intervals import ends

if TYPE_CHECKING:
    from consilience.evaluation.leaderboard import Comparison
    from consilience.inference.result import Fit

_MOST_QUANTITIES = 12  # that a figure of draws shows


class Plots:
    """The figures of a fit.

    Parameters
    ----------
    fit : whose they are.

    Examples
    --------
    >>> import consilience as cs
    >>> fit = cs.fit("dirichlet", cs.load("dawid-skene-1979"))
    >>> fit.plot.certainty().get_ylabel()
    'certainty'
    """

    def __init__(self, fit: Fit) -> None:
        self._fit = fit

    def __call__(self, *arguments: Any, **choice: Any) -> Any:
        """Refuse to choose a figure.

        Raises
        ------
        UnsupportedRequest : always, with the names of the figures.
        """
        raise UnsupportedRequest(f"name a figure, such as fit.plot.certainty(); there are {', '.join(dir(self))}")

    def __dir__(self) -> list[str]:
        return [name for name in vars(type(self)) if not name.startswith("_")]

    def _table(self, name: str, *arguments: Any, **choice: Any) -> Any:
        member = self._fit.member
        known = (*member.table_names, *member.measure_names)
        if name not in known:
            raise no_such(f"'{member.name}' has no '{name}' to draw", name, known, f"it has {', '.join(known)}")
        return getattr(self._fit, name)(*arguments, **choice)

    def certainty(self, ax: Any = None) -> Any:
        """Draw the certainty of all units, sorted."""
        from consilience.evaluation.certainties import certainty

        return figures.sorted_certainty(certainty(self._fit), ax)

    def items(self, ax: Any = None) -> Any:
        """Draw how many units have which certainty."""
        from consilience.evaluation.certainties import certainty

        return figures.certainty_histogram(certainty(self._fit), ax)

    def annotators(self, ax: Any = None) -> Any:
        """Draw how often each annotator is right, with intervals and how much each annotated."""
        return annotator_figures.reliability(self._table("annotators"), "Accuracy of each annotator", ax=ax)

    def confusion(self, annotator: Any = None, ax: Any = None) -> Any:
        """Draw how probably each label is given, by the true one: of the crowd as a whole, or of one annotator."""
        if annotator is None:
            title, frame = "The crowd as a whole", self._table("crowd")
        else:
            title, frame = shown_name(annotator), self._table("confusion")
            frame = frame[frame["annotator"].astype(str) == str(annotator)]
            if frame.empty:
                names = list(map(str, self._fit.data.ids["annotator"]))
                raise no_such(f"there is no annotator {annotator!r}", str(annotator), names, f"there are {len(names)}")
        return annotator_figures.probability_matrix(frame, title, amount="annotations", ax=ax)

    def calibration(self, labels: Any = None, ax: Any = None) -> Any:
        """Draw how often what the fit says is right, by its stated probability.

        Parameters
        ----------
        labels : of pairs of records, for a fit of records; labels of items are compared with their gold labels.
        ax : axes to draw into.
        """
        table = self._table("calibration", **({} if labels is None else {"labels": labels}))
        return figures.reliability_curve(table, "Calibration", "stated probability", "share right", ax)

    def leaderboard(self, comparison: Comparison, ax: Any = None) -> Any:
        """Draw the scores of systems, as `consilience.compare` returns them."""
        return figures.leaderboard(comparison, ax)

    def entities(self, ax: Any = None) -> Any:
        """Draw how probable each number of entities is."""
        return linkage_figures.entity_histogram(self._table("num_entities"), None, ax)

    def waterfall(self, record_a: Any, record_b: Any, ax: Any = None) -> Any:
        """Draw what each field adds to the log odds of two records being one entity."""
        return linkage_figures.explained_pair(self._table("explain", record_a, record_b), ax)

    def match_weights(self, ax: Any = None) -> Any:
        """Draw what agreement and disagreement of each field weigh."""
        return linkage_figures.weights_of_fields(self._table("weights"), ax)

    def views(self, ax: Any = None) -> Any:
        """Draw how probable each number of views is."""
        return views_figures.number_of_views(self._table("num_views"), ax)

    # ---- draws

    def trace(self, site: str | None = None, ax: Any = None) -> Any:
        """Draw the draws of each chain in their order; of one site, or of the first."""
        return _lines(list(self._quantities(site)), ax)

    def rank(self, site: str | None = None, ax: Any = None) -> Any:
        """Draw how the ranks of draws among those of all chains are spread in each chain; alike if chains mixed.

        Of Vehtari et al. (2021), figure 1. Without ``site`` of the first site; of one quantity.
        """
        return _ranks(next(self._quantities(site)), ax)

    def posterior(self, site: str | None = None, ax: Any = None) -> Any:
        """Draw histograms of the draws; of one site, or of the first."""
        return _histograms(list(self._quantities(site)), ax)

    def forest(self, site: str | None = None, ax: Any = None) -> Any:
        """Draw the mean and the central 95 % of each quantity; of one site, or of the first."""
        return _forest(list(self._quantities(site)), ax)

    def _quantities(self, site: str | None) -> Iterator[tuple[str, np.ndarray]]:
        """Return the first scalar quantities of a site by name, with their draws ``(chain, draw)``."""
        if self._fit.posterior.form == "estimate":
            raise UnsupportedRequest(f"a fit by {self._fit.method} is one estimate, of which there are no draws")
        samples = self._fit.samples()
        if site is not None and site not in samples:
            raise no_such(f"there is no site '{site}'", site, samples, f"there are {', '.join(samples)}")
        name = site or next(iter(samples))
        for place in list(np.ndindex(samples[name].shape[2:]))[:_MOST_QUANTITIES]:
            at = f"[{', '.join(map(str, place))}]" if place else ""
            yield f"{name}{at}", samples[name][(..., *place)]


Quantities = list[tuple[str, np.ndarray]]


@styled
def _lines(quantities: Quantities, ax: Any) -> Any:
    ax = axes_of(ax, height=1 + 0.35 * len(quantities))
    for row, (_, draws) in enumerate(reversed(quantities)):
        spread = np.ptp(draws) or 1.0
        for chain, colour in zip(draws, colours_of(len(draws)), strict=True):
            ax.plot(row + 0.8 * (chain - draws.min()) / spread, color=colour, linewidth=0.5, alpha=0.8)
    return _named(ax, quantities, "Draws of each chain, each from its lowest to its highest", "draw", 0.4)


@styled
def _ranks(quantity: tuple[str, np.ndarray], ax: Any) -> Any:
    name, draws = quantity
    ax = axes_of(ax)
    ranks = np.argsort(np.argsort(draws, axis=None)).reshape(draws.shape)
    for chain, colour in zip(ranks, colours_of(len(ranks)), strict=True):
        ax.hist(chain, bins=20, range=(0, draws.size), histtype="step", color=colour)
    ax.axhline(draws.shape[1] / 20, color=INK, linewidth=0.7, linestyle=":")
    ax.set(title=f"Ranks of {name} in each chain", xlabel="rank among the draws of all chains", ylabel="draws")
    return ax


@styled
def _histograms(quantities: Quantities, ax: Any) -> Any:
    ax = axes_of(ax)
    for (name, draws), colour in zip(quantities, colours_of(len(quantities)), strict=True):
        ax.hist(draws.ravel(), bins=40, density=True, histtype="step", color=colour, label=name)
    ax.set(title="Posterior", xlabel="value", ylabel="density")
    ax.legend()
    return ax


@styled
def _forest(quantities: Quantities, ax: Any) -> Any:
    ax = axes_of(ax, height=1 + 0.25 * len(quantities))
    for row, (_, draws) in enumerate(reversed(quantities)):
        ax.plot(np.quantile(draws, ends()), [row, row], color=BLUE)
        ax.plot(draws.mean(), row, "o", color=BLUE, markersize=4)
    return _named(ax, quantities, "Mean and central 95 %", "value", 0.0)


def _named(ax: Any, quantities: Quantities, title: str, xlabel: str, above: float) -> Any:
    names = [name for name, _ in reversed(quantities)]
    ax.set(title=title, xlabel=xlabel)
    ax.set_yticks(np.arange(len(names)) + above, names)
    return ax
