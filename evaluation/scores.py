"""What every evaluation returns: a number, how uncertain it is, and the table behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.models.diagnostics import Convergence, convergence
from consilience.models.intervals import ends
from consilience.notebook import html


@dataclass(frozen=True, kw_only=True, eq=False)
class Score:
    """A score under an uncertain truth, averaged over items and draws.

    Parameters
    ----------
    title : str
        What was measured, in words.
    draws : float64, shape ``(draw,)``
        The score of the whole data set under each draw of the truth. One value where the truth is a point, empty where
        the score was computed exactly.
    items : float64, shape ``(item,)``
        The score of each item, averaged over draws. NaN for items that were left out. Of records it is their own B³ F1,
        of documents their own score: a score of all need not be a mean over these.
    exact_sd : float, optional
        Standard deviation over draws in closed form, of a score that was computed without them. A score in which the
        truth has no part, such as the agreement of annotators, has neither.
    exact_interval : callable, optional
        Makes quantiles at two levels, where the distribution of such a score is known.
    point : float, optional
        The score against the point estimate that standard practice takes for the truth; None where there is none.
    columns : dict[str, numpy.ndarray], optional
        Further columns of the table, such as the certain class.
    ids : sequence, optional
        The user's ids of the items.
    groups : dict[str, numpy.ndarray], optional
        Rows of the table ``by_group``, for scores by group of classes.
    label, unit : str
        What the score and the items are called in the table.
    item_mean : bool, default True
        Whether the score is the mean of those of the items.
    num_chains : int, default 1
        That the draws come from, one after another; 1 where draws are independent.
    item_mcse : float64, shape ``(item,)``
        Monte Carlo errors of the scores of items; None where they are not known.
    notes : tuple[str, ...], optional
        What the interval leaves out, in words.
    widening : float, default 1.0
        Factor of ``sd`` and of the interval, where items are wrong together more than draws show.

    Examples
    --------
    >>> import numpy as np
    >>> import consilience as cs
    >>> score = cs.Score(title="accuracy", items=np.array([1.0, 0.5]), draws=np.array([0.5, 1.0]), point=1.0)
    >>> score.value, score.point
    (0.75, 1.0)
    >>> score.table
       item  score
    0     0    1.0
    1     1    0.5
    """

    title: str
    items: np.ndarray
    draws: np.ndarray
    exact_sd: float | None = None
    exact_interval: Callable[[tuple[float, float]], tuple[float, float]] | None = None
    point: float | None = None
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    ids: Any = None
    groups: dict[str, np.ndarray] | None = None
    label: str = "score"
    unit: str = "item"
    item_mean: bool = True
    num_chains: int = 1
    item_mcse: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    widening: float = 1.0

    @property
    def value(self) -> float:
        """Mean over the draws in which the score is defined, of a score without draws over items; NaN without any."""
        if len(self.draws):
            return float(self.draws.mean())
        return float(np.nanmean(self.items)) if self.item_mean else float("nan")

    @property
    def sd(self) -> float:
        """Standard deviation over draws of the truth; the finite number of items is not in it (`compare` has that)."""
        if self.exact_sd is not None:
            return self.exact_sd
        if len(self.draws) == 0:
            return float("nan")
        if not np.isfinite(self.draws).all():
            return float("nan")
        return self.widening * float(np.std(self.draws, ddof=1)) if len(self.draws) > 1 else 0.0

    @property
    def mcse(self) -> float:
        """Monte Carlo standard error of the value; 0 where it is exact, NaN of too few draws."""
        return 0.0 if self.exact_sd is not None else float(monte_carlo_errors(self.draws, self.num_chains)[0])

    @property
    def interval(self) -> tuple[float, float]:
        """Central 95 % of the draws, or of the distribution in closed form; else value ± 1.96 sd."""
        if len(self.draws):
            # Of a log score, draws may be -inf.
            low, high = np.quantile(self.draws, ends()) if np.isfinite(self.draws).all() else (np.nan, np.nan)
            if self.widening != 1:
                low, high = np.clip(self.value + self.widening * (np.array([low, high]) - self.value), 0, 1)
            return float(low), float(high)
        if self.exact_interval is not None:
            return self.exact_interval(ends())
        low, high = self.value - 1.96 * self.sd, self.value + 1.96 * self.sd
        return (low, high) if np.isnan(low) else (max(0.0, low), min(1.0, high))

    @property
    def worst(self) -> float:
        """Score under the draw that is least favourable; NaN without draws."""
        return float(self.draws.min()) if len(self.draws) else float("nan")

    @property
    def best(self) -> float:
        """Score under the draw that is most favourable; NaN without draws."""
        return float(self.draws.max()) if len(self.draws) else float("nan")

    @property
    def table(self) -> Any:
        """Data frame with one row an item: ``item``, the columns of this score, and the score itself."""
        import pandas

        return pandas.DataFrame(self.table_columns)

    @property
    def table_columns(self) -> dict[str, np.ndarray]:
        """The same as arrays, which takes a fraction of the time where items are many."""
        ids = np.arange(len(self.items)) if self.ids is None else np.asarray(self.ids)
        error = {} if self.item_mcse is None else {"mcse": self.item_mcse}
        return {self.unit: ids, **self.columns, self.label: self.items, **error}

    @property
    def by_group(self) -> Any:
        """Data frame with one row a group of classes, or None when none was asked for."""
        import pandas

        return None if self.groups is None else pandas.DataFrame(self.groups)

    def row(self) -> dict[str, Any]:
        """Return the score as one row of a table."""
        low, high = self.interval
        return {
            "score": self.title, "value": self.value, "mcse": self.mcse, "sd": self.sd, "lower": low, "upper": high,
            "worst": self.worst, "best": self.best, "point_estimate": self.point,
            f"{self.unit}s": int((~np.isnan(self.items)).sum()),
        }  # fmt: skip

    def _repr_html_(self) -> str:
        return html(self._in_a_line(), self.notes, self.table_columns, "score.table has all rows")

    def __repr__(self) -> str:
        return "\n".join([self._in_a_line(), *self.notes])

    def _in_a_line(self) -> str:
        text = f"{self.title}: {self.value:.4f}"
        if np.isfinite(self.sd):
            low, high = self.interval
            text += f" ± {self.sd:.4f} over draws of the truth, 95 % in [{low:.4f}, {high:.4f}]"
        point = "" if self.point is None else f"; {self.point:.4f} against the point estimate"
        number = int((~np.isnan(self.items)).sum())
        return f"{text}, {number:,} {self.unit}{'' if number == 1 else 's'}{point}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Count:
    """How many there are of something, over draws; its table says how many, or how probable, there are of each size.

    Parameters
    ----------
    title : what was counted, in words.
    draws : float64, shape ``(draw,)``.
    point : the number in the estimate.
    expected : float64, shape ``(size,)``; of each size from 1 on.
    label, unit : what these and the sizes are called in the table.
    how, pointed : how far the interval holds, and what ``point`` is, in words; its number stands for ``{}``.
    links_alone : whether the draws, and so the interval, hold the doubt about links alone: too narrow, as a rule.
    basis : what the interval rests on, in words; empty where that is said elsewhere.
    doubt : why the interval is not to be trusted, in words; empty where nothing says so.
    no_interval : why no interval may be told, in words: most links are not among those looked at, for example; empty
        where there is one.
    apart : why ``point`` may be outside the interval, in words.
    """

    title: str
    draws: np.ndarray
    point: float
    expected: np.ndarray
    label: str
    unit: str
    how: str
    pointed: str
    links_alone: bool = False
    basis: str = ""
    doubt: str = ""
    no_interval: str = ""
    apart: str = ""

    @property
    def outside(self) -> str:
        """Why the estimate is outside the interval, in words; empty where it is inside."""
        low, high = self.interval
        return "" if low <= self.point <= high else self.apart or "it is one draw, and no mean"

    @property
    def value(self) -> float:
        """Mean over draws."""
        return float(self.draws.mean())

    @property
    def sd(self) -> float:
        """Standard deviation over draws."""
        return float(np.std(self.draws, ddof=1)) if len(self.draws) > 1 else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Central 95 % of the draws."""
        low, high = np.quantile(self.draws, ends())
        return float(low), float(high)

    @property
    def table(self) -> Any:
        """Data frame with one row a size."""
        import pandas

        return pandas.DataFrame({self.unit: np.arange(1, len(self.expected) + 1), self.label: self.expected})

    def __repr__(self) -> str:
        low, high = self.interval
        spread = f"± {self.sd:,.1f}, 95 % in [{low:,.0f}, {high:,.0f}]"
        spread += f"; {self.doubt}" if self.doubt else f" {self.how}"
        if self.no_interval:
            spread = f"without an interval, because {self.no_interval}"
        pointed = self.pointed.format(f"{self.point:,.0f}")
        if self.outside and not self.no_interval:
            pointed += f", outside the interval: {self.outside}"
        return f"{self.title}: {self.value:,.1f} {spread}; {pointed}"


def monte_carlo_errors(draws: np.ndarray, num_chains: int = 1) -> Float[np.ndarray, " score"]:
    """Return the Monte Carlo standard errors of the means of scores.

    Vehtari et al. (2021), equation 10: sd / sqrt(ESS), as ArviZ has it.

    Parameters
    ----------
    draws : of each score, one chain after another; shape ``(draw,)`` is one score.
    num_chains : that they come from. Draws that cannot be of so many, as some scores are undefined, count as one.

    Returns
    -------
    0 of a single draw, NaN of fewer than four.
    """
    rows = np.atleast_2d(draws)
    return np.zeros(len(rows)) if rows.shape[1] == 1 else np.asarray(_convergence(rows, num_chains).mcse_mean)


def effective_draws(draws: np.ndarray, num_chains: int = 1) -> Float[np.ndarray, " score"]:
    """Return how many independent draws those of each score are worth: the effective sample size of its mean.

    Parameters
    ----------
    draws, num_chains : as for `monte_carlo_errors`.

    Returns
    -------
    NaN of fewer than four draws.
    """
    return np.asarray(_convergence(np.atleast_2d(draws), num_chains).ess_mean)


def _convergence(rows: Float[np.ndarray, "score draw"], num_chains: int) -> Convergence:
    chains = num_chains if rows.shape[1] % num_chains == 0 else 1
    return convergence(rows.T.reshape(chains, rows.shape[1] // chains, len(rows)))


def correlation(first: Score, second: Score) -> float:
    """Return the Pearson correlation of two scores over the items that both have.

    Parameters
    ----------
    first, second : Score
        Scores of the same items; items that one of them leaves out do not count.

    Returns
    -------
    float
        From -1 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> import consilience as cs
    >>> none = np.array([])
    >>> first = cs.Score(title="certainty", items=np.array([0.5, 0.75, 1.0, np.nan]), draws=none)
    >>> second = cs.Score(title="accuracy", items=np.array([0.0, 0.5, 1.0, 1.0]), draws=none)
    >>> print(f"{cs.correlation(first, second):.2f}")
    1.00
    """
    both = np.isfinite(first.items) & np.isfinite(second.items)
    return float(np.corrcoef(first.items[both], second.items[both])[0, 1])


def by_method(title: str, fit: Any) -> str:
    """Return a title with the method of a fit; a truth has none."""
    method = vars(fit).get("method")
    return title if method is None else f"{title}, {method}"
