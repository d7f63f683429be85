"""What a fit of partitions tells beside its truth; imported without numba, so that every fit can ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.data.mentions import MENTION_TYPES
from consilience.models.interface import Column, Table
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.notes import Level, Note, Remedy

HIDDEN = {
    "link": ("chain", "draw", "mention"), "field": ("chain", "draw", "6"), "nearest": ("chain", "draw"),
    "popularity": ("chain", "draw", "2"), "swap_rate": ("chain", "draw"),
}  # fmt: skip
"""Dimensions of what the posterior holds beside the profiles."""

PARAMETERS = ("size", "recency", "new", "new_growth", "nothing", "property")
"""Of the field: a, b, c, s, and the logarithms of the weights of NR and PR."""

_LEAST_RATE = 0.05
_MOST_R_HAT, _PAIRS_APART = 1.2, 0.25


def partition_notes(known: Mapping[str, Any], sites: Mapping[str, Any]) -> Iterator[Note]:
    """Say what the draws leave out, where the rungs hardly exchange, and where chains disagree.

    Parameters
    ----------
    known, sites : what the posterior holds beside the sites, and these, of each chain.
    """
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
    if np.shape(sites["num_entities"])[0] < 2 or np.shape(sites["num_entities"])[1] < 2:
        return
    total = max(_r_hat(sites[name]) for name in ("num_entities", "log_likelihood"))
    pairs, most = _r_hat(sites["together"]), f"{_MOST_R_HAT:g}"
    if total > _MOST_R_HAT or (pairs > _MOST_R_HAT).mean() > _PAIRS_APART:
        yield Note(
            Level.warning,
            f"the chains disagree on entities: R-hat of their number or of the likelihood is {total:.2f}, and above "
            f"{most} for {(pairs > _MOST_R_HAT).sum()} of the {len(pairs)} most doubtful pairs of mentions; give more "
            "sweeps with {warmup}",
            (Remedy("warmup"),),
        )


def _r_hat(draws: Float[np.ndarray, "chain draw *quantity"]) -> Float[np.ndarray, "*quantity"]:
    """Return the plain R-hat, infinite where chains never move and differ: of what is 0 or 1 ranks say no more."""
    draws = np.asarray(draws, float)
    within, between = draws.var(axis=1, ddof=1).mean(axis=0), draws.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.sqrt(1 + between / within), nan=1.0, posinf=np.inf)


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
