"""Links outside of the wide graph: how many the fitted model expects, and whether they matter.

The graph is fixed before anything is learned, so that what it leaves out is left out of the interval. The model tells
how much that is: of records of one entity, how probably the pair has log odds below the threshold. Each pair outside is
improbable; together they are worth entities.

Where records are linked within small groups of candidates alone, pairs that were cut between groups are outside too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from consilience.data.records import Records
from consilience.models.block_linkage.gibbs.problem import ALL_PAIRS
from consilience.models.block_linkage.hidden_links import found_share
from consilience.models.block_linkage.join import join_rule
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.model import Linkable, found_by_wide, wide_parameters
from consilience.models.block_linkage.parameters import Parameters
from consilience.notes import Level, Note, Remedy

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


def links_outside(
    draws: Mapping[str, np.ndarray], data: Records, threshold: float, *, components: Linkable | None = None
) -> LinksOutside:
    """Return what the graph leaves out, on average over some of the draws.

    A link outside is counted as one entity too many, which it is unless a third record connects the two. With error
    classes, where ``class_share`` is among the sites, the links are those of the other records with the head.

    Parameters
    ----------
    draws : of the sites, ``(draw, …)``.
    threshold : of the graph.
    components : the groups of candidates, where only records of one group could be linked. What was cut between groups
        is counted by the worth of each pair under wide values of the hyperparameters.
    """
    if data.candidate is not None:
        return LinksOutside(np.nan, np.nan)
    cut = 0.0 if components is None else float(components.cut[-1])
    numbers, shares = [], []
    chosen = np.unique(np.linspace(0, len(draws["distortion"]) - 1, _DRAWS).astype(int)).tolist()
    for draw in chosen:
        share = _found(draws, draw, data, threshold, whole=components is None)
        size = np.bincount(draws["cluster"][draw])
        linked = float((np.maximum(size - 1, 0) if "class_share" in draws else size * (size - 1) // 2).sum())
        # Of a graph in which nothing can be found, nothing can be said of what it leaves out.
        number = linked * (1 - share) / share + cut if share > 0 else np.nan
        numbers.append(number)
        shares.append(linked / (linked + number) if linked else share)
    return LinksOutside(float(np.mean(numbers)), float(np.mean(shares)))


def _found(draws: Mapping[str, np.ndarray], draw: int, data: Records, threshold: float, *, whole: bool) -> float:
    """Return which share of the links one draw expects among the pairs above the threshold.

    Parameters
    ----------
    whole : whether the graph is that of `wide_pairs`, and not that of the candidates of `linkable`.
    """
    wide, likelihood = wide_parameters(data), LIKELIHOODS["hit-miss"]
    # Numbers of entities, which some priors do not draw, say nothing of what a link looks like.
    share, distortion = (np.asarray(draws[site][draw], float) for site in ("value_share", "distortion"))
    parameters = Parameters(share, distortion, wide.intensity, wide.size_share)
    if "class_share" in draws:
        parameters = parameters._replace(class_share=np.asarray(draws["class_share"][draw], float))
    if not whole:
        return found_by_wide(data, parameters, threshold=threshold)
    rule = None if data.num_records <= ALL_PAIRS else join_rule(data, wide, likelihood, threshold=threshold, exact=True)
    return found_share(
        parameters, data.first_value, data.value, likelihood, threshold, in_force=wide, rule=rule
    ).share


def outside_warning(
    outside: LinksOutside, deviation: float, threshold: float, *, remedy: str = "raise {wide}",
    remedies: tuple[Remedy, ...] = (Remedy("wide"),),
) -> list[Note]:  # fmt: skip
    """Return an error where the links outside may move the number of entities by more than a tenth of its deviation.

    Parameters
    ----------
    deviation : standard deviation of the number of entities over draws.
    threshold : of the graph.
    remedy, remedies : what lowers their number; its words end with the option that is the threshold.
    """
    if not outside.number > _MATTERS * deviation:
        return []
    text = (
        f"the model expects {outside.number:,.1f} links among pairs that could not be linked, more than a tenth of the "
        f"standard deviation of the number of entities, {deviation:,.1f}: the number is about as much too high; "
        f"{remedy}, now {threshold:g}"
    )
    return [Note(Level.error, text, remedies)]


def outside_finding(outside: LinksOutside) -> Note:
    """Return how many links are expected outside, in words."""
    text = f"the model expects {outside.number:,.1f} links among the pairs that could not be linked"
    if np.isnan(outside.number):
        text = "the candidates were given: how many links are not among them is not known"
    return Note(Level.note, text)
