"""Links outside of the wide graph: how many the fitted model expects, and whether they matter.

The graph is fixed before anything is learned, so that what it leaves out is left out of the interval. The model tells
how much that is: of records of one entity, how probably the pair has log odds below the threshold. Each pair outside is
improbable; together they are worth entities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from consilience.data.records import Records
from consilience.models.block_linkage.gibbs.problem import ALL_PAIRS, State
from consilience.models.block_linkage.hidden_links import found_share
from consilience.models.block_linkage.join import join_rule
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.model import wide_parameters
from consilience.models.block_linkage.parameters import Parameters

__all__ = ["LinksOutside", "links_outside", "outside_warning"]

_DRAWS = 10
_MATTERS = 0.1      # of the standard deviation of the number of entities


class LinksOutside(NamedTuple):
    """What the graph leaves out.

    Parameters
    ----------
    number : of links expected outside of it; NaN where the candidates were given.
    share : of all links, those expected in it.
    """

    number: float
    share: float


def links_outside(draws: Mapping[str, np.ndarray], data: Records, threshold: float) -> LinksOutside:
    """Return what the graph leaves out, on average over some of the draws.

    A link outside is counted as one entity too many, which it is unless a third record connects the two.

    Parameters
    ----------
    draws : of the sites, ``(draw, …)``.
    threshold : of the graph.
    """
    if data.candidate is not None:
        return LinksOutside(np.nan, np.nan)
    wide, likelihood = wide_parameters(data), LIKELIHOODS["hit-miss"]
    rule = None if data.num_records <= ALL_PAIRS else join_rule(data, wide, likelihood, threshold=threshold, exact=True)
    numbers, shares = [], []
    chosen = np.unique(np.linspace(0, len(draws["intensity"]) - 1, _DRAWS).astype(int))
    for draw in chosen:
        one = {site: np.asarray(draws[site][draw], float) for site in State._fields if site != "cluster"}
        parameters = Parameters(one["value_share"], one["distortion"], float(one["intensity"]), one["size_share"])
        share = found_share(
            parameters, data.first_value, data.value, likelihood, threshold, in_force=wide, rule=rule
        ).share
        size = np.bincount(draws["cluster"][draw])
        linked = float((size * (size - 1) // 2).sum())
        # Of a graph in which nothing can be found, nothing can be said of what it leaves out.
        numbers.append(linked * (1 - share) / share if share > 0 else np.nan)
        shares.append(share)
    return LinksOutside(float(np.mean(numbers)), float(np.mean(shares)))


def outside_warning(outside: LinksOutside, deviation: float, threshold: float) -> list[str]:
    """Return a warning where the links outside may move the number of entities by more than a tenth of its deviation.

    Parameters
    ----------
    deviation : standard deviation of the number of entities over draws.
    threshold : of the graph.
    """
    if not outside.number > _MATTERS * deviation:
        return []
    return [
        f"the model expects {outside.number:,.1f} links among pairs that could not be linked, more than a tenth of the "
        f"standard deviation of the number of entities, {deviation:,.1f}: the number is about as much too high; "
        f"raise the option wide, now {threshold:g}"
    ]
