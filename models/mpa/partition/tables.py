"""What a fit of partitions tells beside its truth; imported without numba, so that every fit can ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from consilience.data.mentions import MENTION_TYPES
from consilience.models.interface import Column, Table
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.notes import Level, Note

HIDDEN = {
    "link": ("chain", "draw", "mention"), "field": ("chain", "draw", "6"), "nearest": ("chain", "draw"),
    "popularity": ("chain", "draw", "2"), "swap_rate": ("chain", "draw"),
}  # fmt: skip
"""Dimensions of what the posterior holds beside the profiles."""

PARAMETERS = ("size", "recency", "new", "new_growth", "nothing", "property")
"""Of the field: a, b, c, s, and the logarithms of the weights of NR and PR."""

_LEAST_RATE = 0.05


def partition_notes(known: Mapping[str, Any]) -> Iterator[Note]:
    """Say what the draws leave out, and where the rungs hardly exchange."""
    yield Note(
        Level.note,
        "how entities grow was estimated while the chains warmed up: no interval holds the doubt about that",
    )
    rate = float(np.mean(np.asarray(known["swap_rate"])[:, -1]))
    if rate < _LEAST_RATE:
        yield Note(
            Level.warning,
            f"neighbouring rungs of the tempered chains exchange with probability {rate:.2f} at worst; groupings may "
            "be incomplete: give more rungs",
        )


def _chains_prior(posterior: Posterior, resolved: Resolved, truth: Any) -> dict[str, np.ndarray]:
    """Return what was learned of entities and errors; nothing of a fit whose posterior is of links."""
    known = posterior.hidden
    if "field" not in known:
        return {"parameter": np.zeros(0, object), "value": np.zeros(0)}
    some = np.isin([MENTION_TYPES.index(name) for name in ("NR", "PR")], np.asarray(resolved.data.type)).tolist()
    value = {name: own for name, own, shown in zip(
        PARAMETERS, np.asarray(known["field"], float).mean(axis=(0, 1)), [True] * 4 + some, strict=True
    ) if shown}  # fmt: skip
    popularity = np.exp(np.log(np.asarray(known["popularity"], float)).mean(axis=(0, 1)))
    value |= {"nearest": np.mean(known["nearest"]), "popularity_new": popularity[0], "popularity_old": popularity[1]}
    return {"parameter": np.array(list(value), object), "value": np.array(list(value.values()), float)}


CHAINS_PRIOR = Table(
    name="chains_prior", help="What a posterior of partitions learned of entities and of errors.", make=_chains_prior,
    columns=(
        Column("parameter", help="size, recency, new, new_growth, nearest, popularity"), Column("value", help="of it"),
    ),
)  # fmt: skip
