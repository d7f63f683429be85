"""Do two ways to compute one posterior agree? Differences of their summaries in units of their Monte Carlo error.

The tables compared are those of ``fit.summary()``: one row for each scalar quantity. A difference of two means is
divided by the combined Monte Carlo standard error, and the bar is that of independent normal errors: below 4 for 99 %
of the quantities (4 has p = 6e-5), none above 5. Of very many quantities one exceeds 5 by chance; the largest
difference allowed is then the one that happens once in a thousand comparisons (Bonferroni), which passes 5 at some
1,700 quantities and is 6.1 for a million.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from consilience.arrays import Float
from consilience.errors import UnsupportedRequest

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
    r_hat : by table, the largest; NaN for one without several chains.
    ess : by table, the smallest, of bulk and tail.
    """

    quantities: np.ndarray
    difference: np.ndarray
    combined_error: np.ndarray
    r_hat: Mapping[str, float]
    ess: Mapping[str, float]

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

    @property
    def agrees(self) -> bool:
        """Whether the differences are within their bars."""
        return self.share_within >= _SHARE_USUAL and self.largest < self.limit

    def mixes(self, name: str) -> bool:
        """Whether the draws behind a table are enough, and of chains that agree, for the other bars to be read."""
        return self.ess[name] > _LEAST_ESS and not self.r_hat[name] >= _MOST_R_HAT

    def findings(self) -> list[dict[str, Any]]:
        """Return one row for each figure: ``figure, value, bar, passed, at``; the last names the worst place."""
        worst = str(self.quantities[np.abs(self.z).argmax()])
        rows = [
            ("share of summaries within 4 Monte Carlo errors", self.share_within, f">= {_SHARE_USUAL}",
             self.share_within >= _SHARE_USUAL, ""),
            ("largest difference in Monte Carlo errors", self.largest, f"< {self.limit:.1f}",
             self.largest < self.limit, worst),
        ]  # fmt: skip
        ess, name = min((value, name) for name, value in self.ess.items())
        rows.append(("smallest effective sample size", ess, f"> {_LEAST_ESS}", ess > _LEAST_ESS, name))
        if chains := [(value, name) for name, value in self.r_hat.items() if np.isfinite(value)]:
            r_hat, name = max(chains)
            rows.append(("largest R-hat", r_hat, f"< {_MOST_R_HAT}", r_hat < _MOST_R_HAT, name))
        return [dict(zip(("figure", "value", "bar", "passed", "at"), row, strict=True)) for row in rows]

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


def compare_summaries(one: Any, other: Any, names: tuple[str, str] = ("one", "other")) -> SummaryComparison:
    """Compare two tables of summaries, as ``fit.summary()`` returns them, over the quantities that both have.

    To compare second moments too, summarise the squares of the draws along with the draws.

    Parameters
    ----------
    one, other : data frames.
    names : what the two are called.

    Raises
    ------
    UnsupportedRequest : they have no quantity in common.
    """
    both = one.merge(other, on="quantity", suffixes=("_one", "_other"))
    if both.empty:
        raise UnsupportedRequest("the two summaries have no quantity in common; compare fits of one model")
    sides = dict(zip(names, ("one", "other"), strict=True))
    return SummaryComparison(
        quantities=both["quantity"].to_numpy(),
        difference=(both["mean_one"] - both["mean_other"]).to_numpy(float),
        combined_error=np.hypot(both["mcse_one"].to_numpy(float), both["mcse_other"].to_numpy(float)),
        r_hat={name: float(both[f"r_hat_{side}"].max()) for name, side in sides.items()},
        ess={
            name: float(both[[f"ess_bulk_{side}", f"ess_tail_{side}"]].min(axis=None)) for name, side in sides.items()
        },
    )
