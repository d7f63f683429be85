"""What a fit of partitions tells beside its truth; imported without numba, so that every fit can ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.data.mentions import MENTION_TYPES
from consilience.models.interface import Column, Table
from consilience.models.mpa.candidates import labelled
from consilience.models.mpa.priors import BetaPrior
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.notes import IN_DETAILS, Level, Note, Remedy

HIDDEN = {
    "link": ("chain", "draw", "mention"), "field": ("chain", "draw", "6"), "nearest": ("chain", "draw"),
    "popularity": ("chain", "draw", "2"), "swap_rate": ("chain", "draw"),
}  # fmt: skip
"""Dimensions of what the posterior holds beside the profiles."""

PARAMETERS = ("size", "recency", "new", "new_growth", "nothing", "property")
"""Of the field: a, b, c, s, and the logarithms of the weights of NR and PR."""

_NO_PART = {"candidates": "observed", "hyperparameters": "fixed", "decisions": "separate", "author": 0}
_LEAST_RATE = 0.05
_MOST_R_HAT, _PAIRS_APART = 1.2, 5  # of pairs fewer may be chance


def refused(resolved: Resolved) -> tuple[Any, ...]:
    """Return why there is no posterior of partitions, in words, and what helps; nothing where there is one."""
    if not labelled(resolved.data).is_open:
        return ("a partition is of mentions; read the file by read_mentions",)
    for name, usual in _NO_PART.items():
        if getattr(resolved.settings, name) != usual:
            text = f"{name} has no part in the posterior of partitions; leave out {{{name}}}"
            return text, Remedy(name)
    if resolved.given is None or any(own != BetaPrior() for own in vars(resolved.given).values()):
        return "priors have no part in the posterior of partitions; leave out {priors}", Remedy("priors")
    if not resolved.data.is_whole:
        return ("partitions are drawn where one process has all mentions",)
    return ()


def of_partitions(resolved: Resolved) -> bool:
    """Return whether the posterior is of partitions, where a sampler draws it."""
    asked = resolved.settings.coreference
    return asked == "partition" or (asked == "auto" and not refused(resolved))


def links_note(resolved: Resolved, method: str) -> Iterator[Note]:
    """Say why the posterior is of links where nobody asked for that, and there are chains to speak of."""
    if resolved.settings.coreference == "auto" and labelled(resolved.data).is_open:
        against = refused(resolved)
        text, *remedies = against or (f"{method} draws no partitions; use {{method}}", Remedy("method", "gibbs"))
        yield Note(Level.note, f"links of mentions are taken one by one, and not whole chains: {text}", tuple(remedies))


def partition_notes(known: Mapping[str, Any], sites: Mapping[str, Any]) -> Iterator[Note]:
    """Say what the draws leave out, where the rungs hardly exchange, and where chains disagree.

    Parameters
    ----------
    known, sites : what the posterior holds beside the sites, and these, of each chain.
    """
    text = "how entities grow from mention to mention was learned in the warm-up of the sampler and then held fixed: "
    text += "intervals leave out the doubt about that"
    yield Note(Level.note, text, about=IN_DETAILS)
    chains, draws = np.shape(known["swap_rate"])
    if not draws:
        return
    rate = float(np.mean(np.asarray(known["swap_rate"])[:, -1]))
    if rate < _LEAST_RATE:
        text = f"neighbouring rungs of the tempered chains exchange with probability {rate:.2f} at worst"
        yield Note(Level.warning, f"{text}; groupings may be incomplete: give more rungs")
    if min(chains, draws) < 2:
        return
    total = max(_r_hat(sites[name]) for name in ("num_entities", "log_likelihood"))
    apart = _r_hat(sites["together"]) > _MOST_R_HAT
    if total > _MOST_R_HAT or apart.sum() > _PAIRS_APART:
        text = (
            f"the runs of the sampler differ on entities: R-hat of their number or of the likelihood is {total:.2f}, "
            f"and above {_MOST_R_HAT:g} for {apart.sum()} of the {len(apart)} most doubtful pairs of mentions; give "
            "more sweeps with {warmup}"
        )
        yield Note(Level.warning, text, (Remedy("warmup"),))


def _r_hat(draws: Float[np.ndarray, "chain draw *quantity"]) -> Float[np.ndarray, "*quantity"]:
    """Return the plain R-hat, infinite where chains never move and differ: of what is 0 or 1 ranks say no more."""
    draws = np.asarray(draws, float)
    within, between = draws.var(axis=1, ddof=1).mean(axis=0), draws.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(np.sqrt(1 + between / within), nan=1.0, posinf=np.inf))


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
