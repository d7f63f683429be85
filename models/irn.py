r"""Inverse rank normalisation: a point estimate of plausibilities from partial rankings.

Stutz et al. (2023), equations 14 to 16. Every class in the i-th block of an annotator's ranking gets a weight that
falls with i; unranked classes get none. Weights are summed over annotators and normalised once:

.. math::

    \mathrm{IRN}_y \propto \sum_r \sum_i \frac{1[y \in b^r_i]}{i\,|b^r_i|}.

| symbol | name | shape |
|---|---|---|
| i | ``block`` + 1 | (row,) |
| \|b\| | ``block_size`` | (row,) |
| IRN | ``plausibility`` | (entry,), the named (item, class) pairs |

``rank_weights="equation-14"`` is the formula above. The authors' published code gives every class of block i the whole
1/i, without dividing by the size of the block: ``rank_weights="published-code"``. The two differ wherever somebody ties
classes, and only the second reproduces the paper's figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Array, Float, Key
from consilience.data.rankings import Rankings
from consilience.errors import UnsupportedRequest
from consilience.models import settings
from consilience.models.dirichlet import LABELS
from consilience.models.dirichlet import MODEL as DIRICHLET
from consilience.models.interface import Exact, Model
from consilience.models.posterior import Estimate, Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth import Entries, PointTruth
from consilience.models.truth.classes import ClassTruth

__all__ = ["MODEL", "Settings"]


def weights_setting() -> Any:
    """Return the setting, the same for every member that has it."""
    return setting(
        "equation-14", "1/(i |b_i|) as the paper prints it, or 1/i as the published code computes it",
        choices=("equation-14", "published-code"),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `irn`; see the fields."""

    rank_weights: str = weights_setting()


def row_weights(data: Rankings, weights: str) -> Float[Array, " row"]:
    """Return the unnormalised weight of each named class in each report, shape ``(row,)`` (equation 14)."""
    return 1.0 / ((data.block + 1) * (data.block_size if weights == "equation-14" else 1))


def inverse_rank_normalisation(data: Rankings, weights: str = "equation-14") -> Float[np.ndarray, " entry"]:
    """Return the IRN plausibility of each entry, float64, shape ``(entry,)``; the entries of an item sum to one.

    Raises
    ------
    UnsupportedRequest : an item of which nobody ranked any class has no IRN.
    """
    total = np.bincount(data.entry, row_weights(data, weights), data.num_entries)
    per_item = np.bincount(data.entry_item, total, data.num_items)
    empty = np.flatnonzero(per_item == 0)
    if len(empty):
        names = [str(data.items[code] if data.items is not None else code) for code in empty[:10]]
        raise UnsupportedRequest(
            f"{len(empty)} items have no ranked class, so that inverse rank normalisation is not defined for them "
            f"(first: {', '.join(names)}); leave these items out"
        )
    return total / per_item[data.entry_item]


def exact(resolved: Resolved) -> Estimate:
    """Return the point estimate (equations 14 to 16)."""
    return Estimate({"plausibility": inverse_rank_normalisation(resolved.data, resolved.settings.rank_weights)})


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> ClassTruth:
    """Return the point estimate as a truth of one draw: every certainty is one."""
    data = resolved.data
    entries = Entries.of(data.entry_item, data.entry_class, data.num_items, data.num_classes)
    point = PointTruth(entries, posterior.plausibility)
    point.point = point
    return point


MODEL = Model(
    name="irn",
    title="inverse rank normalisation of partial rankings with ties, a point estimate",
    paper=DIRICHLET.paper,
    takes=(Rankings,),
    settings=Settings,
    sites=Sites(Site("plausibility", plates=("entry",))),
    engines=(Exact(solve=exact),),
    truth=truth,
    tables=(LABELS,),
)
