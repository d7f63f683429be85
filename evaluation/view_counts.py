"""How many views experts have of the same items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.errors import UnsupportedRequest
from consilience.evaluation.scores import Score

__all__ = ["ViewCount", "num_views"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ViewCount(Score):
    """The number of views; its table has a row for each number, with its probability."""

    label: str = "probability"
    unit: str = "views"

    @property
    def value(self) -> float:
        """Mean over draws."""
        return float(self.draws.mean())

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"{self.title}: {self.value:.2f} ± {self.sd:.2f}, 95 % in [{low:.0f}, {high:.0f}] as far as the model "
            f"holds; {self.point:.0f} in the estimate"
        )


def num_views(fit: Any) -> ViewCount:
    """Count the views that the experts of a fit have: how many different ones some expert has, over draws.

    Parameters
    ----------
    fit : a fit of constraints, or its truth.

    Returns
    -------
    ViewCount : ``point`` counts the most probable views of all experts.
    """
    truth = fit if hasattr(fit, "views_of_experts") else getattr(fit, "truth", None)
    if not hasattr(truth, "views_of_experts"):
        raise UnsupportedRequest("this asks for the views of experts, which only a fit of constraints has")
    drawn = truth.num_views()
    number = np.unique(drawn)
    how = f", {fit.method}" if hasattr(fit, "method") else ""
    return ViewCount(
        title=f"number of views{how}", items=(drawn == number[:, None]).mean(axis=1), draws=drawn.astype(float),
        point=float(len(np.unique(truth.view_probability.argmax(axis=1)))), ids=number,
    )  # fmt: skip
