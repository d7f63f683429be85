"""What every evaluation returns: a number, how uncertain it is, and the table behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Score", "correlation"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Score:
    """A score under an uncertain truth, averaged over items and draws.

    Parameters
    ----------
    title : what was measured, in words.
    draws : float64, shape ``(draw,)``; the score of the whole data set under each draw of the truth. One value where
        the truth is a point, empty where the score was computed exactly.
    items : float64, shape ``(item,)``; the score of each item, averaged over draws. NaN for items that were left out.
    exact_sd : standard deviation over draws in closed form, of a score that was computed without them. A score in which
        the truth has no part, such as the agreement of annotators, has neither.
    point : the score against the point estimate that standard practice takes for the truth; None where there is none.
    columns : further columns of the table, such as the certain class.
    ids : the user's ids of the items.
    groups : rows of the table ``by_group``, for scores by group of classes.
    label, unit : what the score and the items are called in the table.
    """

    title: str
    items: np.ndarray
    draws: np.ndarray
    exact_sd: float | None = None
    point: float | None = None
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    ids: Any = None
    groups: dict[str, np.ndarray] | None = None
    label: str = "score"
    unit: str = "item"

    @property
    def value(self) -> float:
        """Mean over items and draws."""
        return float(np.nanmean(self.items))

    @property
    def sd(self) -> float:
        """Standard deviation over draws of the truth; the finite number of items is not in it (`compare` has that)."""
        if self.exact_sd is not None:
            return self.exact_sd
        if len(self.draws) == 0:
            return float("nan")
        return float(np.std(self.draws, ddof=1)) if len(self.draws) > 1 else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Central 95 % of the draws; value ± 1.96 sd where the score was computed without draws."""
        if len(self.draws):
            low, high = np.quantile(self.draws, [0.025, 0.975])
            return float(low), float(high)
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

        ids = np.arange(len(self.items)) if self.ids is None else self.ids
        return pandas.DataFrame({self.unit: ids, **self.columns, self.label: self.items})

    @property
    def by_group(self) -> Any:
        """Data frame with one row a group of classes, or None when none was asked for."""
        import pandas

        return None if self.groups is None else pandas.DataFrame(self.groups)

    def row(self) -> dict[str, Any]:
        """Return the score as one row of a table."""
        low, high = self.interval
        return {
            "score": self.title, "value": self.value, "sd": self.sd, "lower": low, "upper": high,
            "worst": self.worst, "best": self.best, "point_estimate": self.point,
            f"{self.unit}s": int(np.isfinite(self.items).sum()),
        }  # fmt: skip

    def __repr__(self) -> str:
        text = f"{self.title}: {self.value:.4f}"
        if np.isfinite(self.sd):
            low, high = self.interval
            text += f" ± {self.sd:.4f} over draws of the truth, 95 % in [{low:.4f}, {high:.4f}]"
        point = "" if self.point is None else f"; {self.point:.4f} against the point estimate"
        number = int(np.isfinite(self.items).sum())
        return f"{text}, {number:,} {self.unit}{'' if number == 1 else 's'}{point}"


def correlation(first: Score, second: Score) -> float:
    """Return the Pearson correlation of two scores over the items that both have."""
    both = np.isfinite(first.items) & np.isfinite(second.items)
    return float(np.corrcoef(first.items[both], second.items[both])[0, 1])
