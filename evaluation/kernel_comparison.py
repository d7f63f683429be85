"""Do two ways to compute one posterior agree? Differences of their summaries in units of their Monte Carlo error.

The tables compared are those of ``fit.summary()``: one row for each scalar quantity. A difference of two means is
divided by the combined Monte Carlo standard error, and the bar is that of independent normal errors: below 4 for 99 %
of the quantities (4 has p = 6e-5), none above 5. Of very many quantities one exceeds 5 by chance; the largest
difference allowed is then the one that happens once in a thousand comparisons (Bonferroni), which passes 5 at some
1,700 quantities and is 6.1 for a million.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from consilience.arrays import Float
from consilience.errors import UnsupportedRequest

__all__ = ["SummaryComparison", "compare_summaries"]

_USUAL, _SHARE_USUAL, _LARGEST = 4.0, 0.99, 5.0
_FALSE_ALARMS = 0.001
_MOST_R_HAT, _LEAST_ESS = 1.01, 400


@dataclass(frozen=True, kw_only=True, eq=False)
class SummaryComparison:
    """Two tables of summaries of one posterior, compared.

    Parameters
    ----------
    quantities : names, of both tables.
    difference, combined_error : float64, shape ``(quantity,)``; of the means, and the Monte Carlo error of that.
    r_hat : largest of both tables; NaN where neither has several chains.
    ess : smallest of both tables, of bulk and tail.
    """

    quantities: np.ndarray
    difference: np.ndarray
    combined_error: np.ndarray
    r_hat: float
    ess: float

    @property
    def z(self) -> Float[np.ndarray, " quantity"]:
        """Differences in combined Monte Carlo errors; infinite where two constants differ, or one is not finite."""
        known = np.isfinite(self.difference) & np.isfinite(self.combined_error)
        equal = known & (self.difference == 0)
        ratio = np.divide(
            self.difference, self.combined_error,
            out=np.full(len(self.difference), np.inf), where=known & (self.combined_error > 0),
        )  # fmt: skip
        return np.where(equal, 0.0, ratio)

    @property
    def largest(self) -> float:
        """Largest |z|."""
        return float(np.abs(self.z).max())

    @property
    def share_within(self) -> float:
        """Share of quantities with |z| below 4."""
        return float(np.mean(np.abs(self.z) < _USUAL))

    @property
    def limit(self) -> float:
        """Largest |z| that is allowed: 5, or more for very many quantities."""
        return max(_LARGEST, float(stats.norm.isf(_FALSE_ALARMS / (2 * len(self.quantities)))))

    def findings(self) -> list[dict[str, Any]]:
        """Return one row for each figure: ``figure, value, bar, passed``."""
        rows = [
            ("share of means within 4 Monte Carlo errors", self.share_within, f">= {_SHARE_USUAL}",
             self.share_within >= _SHARE_USUAL),
            ("largest difference in Monte Carlo errors", self.largest, f"< {self.limit:.1f}",
             self.largest < self.limit),
            ("smallest effective sample size", self.ess, f"> {_LEAST_ESS}", self.ess > _LEAST_ESS),
        ]  # fmt: skip
        if np.isfinite(self.r_hat):
            rows.append(("largest R-hat", self.r_hat, f"< {_MOST_R_HAT}", self.r_hat < _MOST_R_HAT))
        return [dict(zip(("figure", "value", "bar", "passed"), row, strict=True)) for row in rows]

    @property
    def passed(self) -> bool:
        """Whether every figure meets its bar."""
        return all(row["passed"] for row in self.findings())

    @property
    def table(self) -> Any:
        """Data frame with the columns ``quantity, difference, combined_error, z``."""
        import pandas

        columns = {"difference": self.difference, "combined_error": self.combined_error, "z": self.z}
        return pandas.DataFrame({"quantity": self.quantities, **columns})


def compare_summaries(one: Any, other: Any) -> SummaryComparison:
    """Compare two tables of summaries, as ``fit.summary()`` returns them, over the quantities that both have.

    To compare second moments too, summarise the squares of the draws along with the draws.

    Raises
    ------
    UnsupportedRequest : they have no quantity in common.
    """
    both = one.merge(other, on="quantity", suffixes=("_one", "_other"))
    if both.empty:
        raise UnsupportedRequest("the two summaries have no quantity in common; compare fits of one model")
    r_hat = both[["r_hat_one", "r_hat_other"]].max(axis=None)
    ess = both[[f"{name}_{side}" for name in ("ess_bulk", "ess_tail") for side in ("one", "other")]].min(axis=None)
    return SummaryComparison(
        quantities=both["quantity"].to_numpy(),
        difference=(both["mean_one"] - both["mean_other"]).to_numpy(float),
        combined_error=np.hypot(both["mcse_one"].to_numpy(float), both["mcse_other"].to_numpy(float)),
        r_hat=float(r_hat), ess=float(ess),
    )  # fmt: skip
