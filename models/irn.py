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

``weights="equation-14"`` is the formula above. The authors' published code gives every class of block i the whole
1/i, without dividing by the size of the block: ``weights="published-code"``. The two differ wherever somebody ties
classes, and only the second reproduces the paper's figures.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.rankings import Rankings
from consilience.errors import UnsupportedRequest
from consilience.models.dirichlet import MODEL as DIRICHLET
from consilience.models.interface import Model, Option
from consilience.models.truth import Entries, PointTruth, Truth

__all__ = ["MODEL", "WEIGHTS", "Posterior", "exact", "inverse_rank_normalisation", "row_weights", "truth"]

WEIGHTS = Option(
    name="weights", kind=str, default="equation-14", choices=("equation-14", "published-code"),
    help="1/(i |b_i|) as the paper prints it, or 1/i as the published code computes it",
)  # fmt: skip


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


class Posterior(NamedTuple):
    """The point estimate: ``plausibility`` float64 ``(entry,)`` for the entries ``first``, ``entry_class``."""

    first: Int[np.ndarray, " boundary"]
    entry_class: Int[np.ndarray, " entry"]
    plausibility: Float[np.ndarray, " entry"]


def exact(data: Rankings, priors: None = None, *, weights: str) -> Posterior:
    """Return the point estimate (equations 14 to 16)."""
    entries = Entries.of(data.entry_item, data.entry_class, data.num_items, data.num_classes)
    return Posterior(entries.first, entries.class_, inverse_rank_normalisation(data, weights))


def truth(posterior: Posterior, data: Rankings, *, key: Key, num_draws: int, weights: str) -> Truth:
    """Return the point estimate as a truth of one draw: every certainty is one."""
    point = PointTruth(Entries(posterior.first, posterior.entry_class, data.num_classes), posterior.plausibility)
    point.point = point
    return point


def draw(posterior: Posterior, data: Rankings, *, key: Key, num_draws: int, weights: str) -> dict[str, np.ndarray]:
    """Return the plausibilities, ``(1, entry)``."""
    return {"plausibility": posterior.plausibility[None]}


def labels(posterior: Any, data: Rankings, truth: Truth) -> dict[str, np.ndarray]:
    """Table of the most plausible class of each item."""
    return truth.leading()


MODEL = Model(
    name="irn",
    title="inverse rank normalisation of partial rankings with ties, a point estimate",
    citation=DIRICHLET.citation,
    data=Rankings,
    methods=("exact",),
    options=(WEIGHTS,),
    posterior=Posterior,
    exact=exact,
    draw=draw,
    truth=truth,
    tables={"labels": labels},
    dims={"plausibility": ("entry",)},
)
