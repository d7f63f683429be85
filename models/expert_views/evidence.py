"""What the sampler keeps of its ladders: the evidence, by which numbers of clusters are compared.

There are two estimates, and that with the smaller standard error is taken: one by the draws, where the grouping of the
experts is sure (`pinned`), and one by the stepping stones of the ladders. Where the clusters are sure ladders pass a
sudden change, which leaves them rough; where little is sure they are the better ones, and the draws too scattered.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.errors import UnsupportedRequest
from consilience.inference import tempering
from consilience.models.expert_views import gibbs, pinned
from consilience.models.expert_views.canonical import matched, relabel_draws
from consilience.models.expert_views.gibbs import EXPONENT, LADDER, LOG_LIKELIHOOD, REPLICA, SWAPPED
from consilience.models.expert_views.judgements import judged_items
from consilience.models.expert_views.numbers import taken
from consilience.models.interface import Gibbs
from consilience.models.sites import Resolved
from consilience.models.truth.views import pairs_apart, sorting
from consilience.notes import Remedy

_MOST_COMPARED, _CLEARLY = 8, 5.0    # Numbers of clusters, and nats of log evidence.
_AGREE = 2.0    # Standard errors.


def hidden(samples: dict[str, Any], resolved: Resolved) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take what `LADDER` kept out of the samples, and return it in short.

    Returns
    -------
    samples, and ``(ladder, rung)`` ``ladder_exponent``, ``ladder_swap_rate`` of a rung and the next one and
    ``ladder_log_likelihood``, the mean; not a number where there is no rung. ``(ladder,)`` ``ladder_trips``; and
    ``evidence`` ``(1, 3)``: clusters, log evidence and its standard error; none without tempering.
    """
    kept = samples.pop(LADDER)
    exponent = kept[:, -1, :, EXPONENT]
    there = np.where(exponent >= 0, 1.0, np.nan)
    ladders = [of_one[:, : (of_one[-1, :, EXPONENT] >= 0).sum()] for of_one in kept]
    found = {
        "ladder_exponent": exponent * there, "ladder_swap_rate": kept[..., SWAPPED].mean(axis=1) * there,
        "ladder_log_likelihood": kept[..., LOG_LIKELIHOOD].mean(axis=1) * there,
        "ladder_trips": np.array([tempering.round_trips(of_one[..., REPLICA].astype(int)) for of_one in ladders]),
    }  # fmt: skip
    if any(of_one.shape[1] < 2 for of_one in ladders):
        return samples, found | {"evidence": np.zeros((0, 3))}
    row = resolved.settings.clusters, *_log_evidence(samples, ladders, resolved)
    return samples, found | {"evidence": np.array([row], float)}


def _log_evidence(
    samples: dict[str, np.ndarray], ladders: list[Float[np.ndarray, "draw rung 4"]], resolved: Resolved
) -> tuple[float, float]:
    """Return the log evidence and its standard error."""
    problem, number = gibbs.prepare(resolved), len(ladders)
    flat = {name: np.asarray(own).reshape(-1, *np.shape(own)[2:]) for name, own in samples.items()}
    relabelled = relabel_draws(flat, matched(flat, resolved))
    parts = [dict(zip(relabelled, own, strict=True)) for own in zip(
        *(np.split(own, number) for own in relabelled.values()), strict=True
    )]  # fmt: skip
    of_draws = [one for draws in parts if (one := pinned.log_evidence(draws, problem)) is not None]
    stones = [tempering.stepping_stones(of_one[-1, :, EXPONENT], of_one[..., LOG_LIKELIHOOD]) for of_one in ladders]
    found = [_mean(*np.transpose(stones)), *([_highest(*np.transpose(of_draws))] if of_draws else [])]
    return min(found, key=lambda one: one[1])


def _mean(value: Float[np.ndarray, " ladder"], error: Float[np.ndarray, " ladder"]) -> tuple[float, float]:
    """Return the logarithm of the mean: a ladder estimates the evidence without bias, and not its logarithm."""
    number = len(value)
    apart = value.std(ddof=1) / number**0.5 if number > 1 else 0.0
    return np.logaddexp.reduce(value) - np.log(number), max((error**2).sum() ** 0.5 / number, apart)


def _highest(value: Float[np.ndarray, " ladder"], error: Float[np.ndarray, " ladder"]) -> tuple[float, float]:
    """Return the mean of the estimates that agree with the highest one, by their errors.

    Lower ones are of ladders that missed where most of the posterior is.
    """
    if not np.isfinite(value).any():
        return np.nan, np.inf
    most = np.nanargmax(value)
    near = value[most] - value <= _AGREE * np.hypot(error, error[most])
    if np.isinf(error[near]).all():
        return float(value[most]), np.inf
    weight = error[near] ** -2
    return float(np.average(value[near], weights=weight)), float(weight.sum() ** -0.5)


def compared(resolved: Resolved, fitted: Callable[[Resolved], Any]) -> Any:
    """Return the fit of 2, 3, … clusters that is `taken` by their evidence, which holds the evidence of all of them.

    It also holds how the others sort the items, as a share of pairs. No more are tried after two in a row that lie 5
    nats and two standard errors below the best.

    Raises
    ------
    UnsupportedRequest : there is no ladder.
    """
    chosen, fits, rows = resolved.settings, list[Any](), list[np.ndarray]()
    if chosen.clusters != "auto":
        return None
    if chosen.rungs == 1:
        text = "{clusters} compares evidence, which a chain without tempering does not have; leave out {rungs}"
        raise UnsupportedRequest(text, Remedy("clusters", "auto"), Remedy("rungs"))
    number = len(judged_items(resolved.data))
    for clusters in range(2, min(_MOST_COMPARED, number) + 1):
        one = fitted(resolved.replace(settings=dataclasses.replace(chosen, clusters=clusters)))
        if one.is_empty or not len(one.posterior.evidence):
            if not fits:
                return one
            break
        fits.append(one)
        rows.append(one.posterior.evidence[0])
        most = max(rows, key=lambda row: row[1])
        below = [most[1] - row[1] > _CLEARLY + 2 * np.hypot(row[2], most[2]) for row in rows[-2:]]
        if len(below) == 2 and all(below):
            break
    sorted_by = [sorting(one.truth) for one in fits]
    _, value, error = np.transpose(rows)
    place = taken(value, error, sorted_by)
    fits[place].posterior.hidden["evidence"] = np.array(rows)
    fits[place].posterior.hidden["evidence_apart"] = np.array(
        [pairs_apart(other, sorted_by[place]) for other in sorted_by]
    )
    return fits[place]


GIBBS = Gibbs(
    prepare=gibbs.prepare, compares=compared, start=gibbs.start, starts=gibbs.starts, sweep=gibbs.sweep,
    warmed=gibbs.warmed, sites=gibbs.sites, hidden=hidden, at=gibbs.at, redraw=gibbs.redraw, host=True,
)  # fmt: skip
"""The sampler, for the driver."""
