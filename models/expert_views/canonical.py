r"""Labels of views and clusters: equal partitions bear equal labels.

The model has the same density when views exchange their names (but for the sticks) and when clusters within a view do.
The order that is kept: views by falling numbers of experts, clusters by falling numbers of items, ties by the smallest
expert or item in them, empty ones last. Draws are matched to one another besides: their views by the experts that they
share, then the clusters of matched views by the items that they share, so that means over draws are of the same thing.

The sticks of matched views are those that leave the weight of every view, :math:`\pi_g = \nu_g \prod_{l<g}(1 - \nu_l)`,
as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from consilience.arrays import Float, Int
from consilience.models.expert_views.judgements import judged_items, standard_of, standardised
from consilience.models.expert_views.likelihood import SWAPPED, stick_parameters
from consilience.models.expert_views.prediction import memberships
from consilience.models.expert_views.priors import link_of
from consilience.models.rows import row_blocks
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import first_of_codes

OWN_LINK = "own_link"
"""A site that marks the draws of a fit with a link of one's own, since a saved fit keeps no function."""

_ACCURACIES = tuple(site + end for end in ("", SWAPPED) for site in ("sensitivity", "specificity"))
_DECIMALS = 2          # Sizes that differ by less, as two runs of one ascent may, are equal.
_SAME_PLACE = 1e-6     # What being at the same place counts, in experts or items, where nothing else tells.
_BLOCK = 1 << 24       # Numbers that are held at a time.
_LOOKED_AT = 50        # Answers whose pairs are followed through the draws.


class Labels(NamedTuple):
    """Soft labels.

    Parameters
    ----------
    view_probability : of each expert.
    cluster_probability : of each judged item in each view.
    """

    view_probability: Float[np.ndarray, "expert view"]
    cluster_probability: Float[np.ndarray, "judged view cluster"]


class Matching(NamedTuple):
    """How draws are relabelled.

    Parameters
    ----------
    view : the old number of the view that comes at each place.
    cluster : of the view at each place, the old number of the cluster that comes at each place.
    """

    view: Int[np.ndarray, "draw view"]
    cluster: Int[np.ndarray, "draw view cluster"]


def canonical(samples: Mapping[str, np.ndarray], resolved: Resolved) -> dict[str, np.ndarray]:
    """Relabel the views and clusters of draws, or of what coordinate ascent ended with.

    Parameters
    ----------
    samples : draws of the sites ``(chain, draw, …)``, or of coordinate ascent the fields of its posterior with the same
        two leading axes.
    resolved : of the fit. Clusters keep their numbers under a link of your own, of whose weights nothing is known;
        `match_draws` tells how they would be relabelled. Such draws are marked by the site `OWN_LINK`.
    """
    given = resolved.given
    if "cluster_probability" in samples:
        ended = {name: np.asarray(values)[0, 0] for name, values in samples.items()}
        return {name: values[None, None] for name, values in _relabelled(ended, given.concentration).items()}
    shape = samples["weight"].shape[:2]
    flat = {name: np.asarray(values).reshape(-1, *values.shape[2:]) for name, values in samples.items()}
    known: Any = {} if given.logits is None else {"clusters": ()}
    found = relabel_draws(flat, matched(flat, resolved), **known)
    chains = {name: values.reshape(*shape, *values.shape[1:]) for name, values in found.items()}
    return chains if given.logits is None else {**chains, OWN_LINK: np.ones(shape, bool)}


def label_free(samples: Mapping[str, np.ndarray], resolved: Resolved) -> dict[str, np.ndarray]:
    """Return what does not depend on the numbers of views and clusters, of draws ``(chain, draw, …)`` of all sites.

    That is the accuracy of each expert in his own view, the number of views, whether experts have the same view as the
    one before them, and whether items are together, in the view of an expert, of some pairs that experts judged.
    """
    sites = (*_ACCURACIES, "knowledge", "guess", "log_likelihood")
    accuracies = {site: samples[site] for site in sites if site in samples}
    if "view_of_expert" not in samples:
        probability = samples["view_probability"]
        same = {"same_view": (probability[:, :, 1:] * probability[:, :, :-1]).sum(axis=3)}
        return {**{name: values for name, values in accuracies.items() if values.ndim <= 3}, **same}
    view = np.asarray(samples["view_of_expert"])
    found = {
        name: values if values.ndim <= 3 else np.take_along_axis(values, view[..., None], axis=3)[..., 0]
        for name, values in accuracies.items()
    }
    data = resolved.data
    found["num_views"] = num_distinct(view).astype(float)
    found["same_view"] = (view[:, :, 1:] == view[:, :, :-1]).astype(float)
    number = min(data.num_constraints, _LOOKED_AT)
    answer = np.unique(np.linspace(0, data.num_constraints - 1, number).round().astype(int))
    place = np.cumsum(np.bincount(judged_items(data), minlength=data.num_items)) - 1
    of_expert = view[:, :, np.asarray(data.expert)[answer]]
    a, b = (
        samples["cluster"][
            np.arange(view.shape[0])[:, None, None], np.arange(view.shape[1])[:, None], of_expert,
            place[np.asarray(item)[answer]],
        ]
        for item in (data.item_a, data.item_b)
    )  # fmt: skip
    return {**found, "together": (a == b).astype(float)}


def most_probable(sites: Mapping[str, np.ndarray], resolved: Resolved) -> dict[str, np.ndarray]:
    """Return the most probable view of each expert and cluster of each judged item, given draws of all other sites.

    Parameters
    ----------
    sites : draws ``(draw, …)`` of ``view_probability`` and ``weight``.
    resolved : of the fit.
    """
    values, link = np.asarray(resolved.data.feature), link_of(resolved.given)
    standard = standard_of(values, bool(resolved.settings.standardize))
    feature = standardised(values[judged_items(resolved.data)], standard)
    weight = np.asarray(sites["weight"])
    cluster = np.empty((*weight.shape[:2], len(feature)), np.int8)
    for rows in row_blocks(len(weight), len(feature) * int(resolved.settings.clusters), _BLOCK):
        for view in range(weight.shape[1]):
            cluster[rows, view] = memberships(weight[rows, view], feature, link).argmax(axis=-1)
    return {"view_of_expert": np.asarray(sites["view_probability"]).argmax(axis=2), "cluster": cluster}


# What coordinate ascent ended with ------------------------------------------------------------------------------------


def canonical_labels(labels: Labels) -> tuple[Int[np.ndarray, " view"], Int[np.ndarray, "view cluster"]]:
    """Return which view, and which of its clusters, comes at each place."""
    of_expert, of_item = (np.asarray(one, float) for one in labels)
    size = np.round(of_expert.sum(axis=0), _DECIMALS)
    view = np.lexsort((first_of_codes(of_expert.argmax(axis=1)[None], len(size))[0], -size))
    size = np.round(of_item.sum(axis=0), _DECIMALS)
    first = first_of_codes(of_item.argmax(axis=2).T, size.shape[1])
    return view, np.lexsort((first, -size))[view]


def _relabelled(fields: Mapping[str, np.ndarray], concentration: float) -> dict[str, np.ndarray]:
    """Relabel the fields of a posterior; the parameters of the sticks follow from which experts are in which view."""
    view, cluster = canonical_labels(Labels(fields["view_probability"], fields["cluster_probability"]))
    of_weight = cluster[:, None, :]
    of_expert = fields["view_probability"][:, view]
    found = {
        "view_probability": of_expert,
        "cluster_probability": np.take_along_axis(fields["cluster_probability"][:, view], cluster[None], axis=2),
        "weight_mean": np.take_along_axis(fields["weight_mean"][view], of_weight, axis=2),
        "weight_variance": np.take_along_axis(fields["weight_variance"][view], of_weight, axis=2),
    }
    if not np.array_equal(view, np.arange(len(view))):
        stick = stick_parameters(of_expert.sum(axis=0, dtype=float), concentration)
        found["stick"] = stick.astype(fields["stick"].dtype)
    # Beta parameters by view, (expert, view, 2); those of all views at once stay.
    found |= {site: fields[site][:, view] for site in ("sensitivity", "specificity") if fields[site].ndim == 3}
    return {**fields, **found}


# Draws ----------------------------------------------------------------------------------------------------------------


def matched(sites: Mapping[str, np.ndarray], resolved: Resolved) -> Matching:
    """Match the views and clusters of all draws; where these were summed out, the most probable ones."""
    labels = sites if "cluster" in sites else {**most_probable(sites, resolved), **sites}
    return match_draws(labels, resolved.settings.clusters)


def match_draws(sites: Mapping[str, np.ndarray], clusters: int, reference: Labels | None = None) -> Matching:
    """Match the views and clusters of all draws to a reference.

    Parameters
    ----------
    sites : draws ``(draw, …)``: at least ``view_of_expert`` and ``cluster``.
    clusters : how many there may be in a view.
    reference : of another fit of the same data; by default the mean of the draws, matched to the last of them before.
    """
    expert, cluster = np.asarray(sites["view_of_expert"]), np.asarray(sites["cluster"])
    own = _own_order(sites, clusters)
    if reference is None:
        last = slice(len(expert) - 1, len(expert))
        last_draw = Matching(own.view[last], own.cluster[last])
        first_guess = _match(expert, cluster, own, _mean_labels(expert[last], cluster[last], last_draw))
        mean = _mean_labels(expert, cluster, first_guess)
        view, of_cluster = canonical_labels(mean)
        of_item = np.take_along_axis(mean.cluster_probability[:, view], of_cluster[None], axis=2)
        reference = Labels(mean.view_probability[:, view], of_item)
    return _match(expert, cluster, own, reference)


def relabel_draws(
    sites: Mapping[str, np.ndarray], matching: Matching, *, clusters: tuple[str, ...] = ("cluster", "weight")
) -> dict[str, np.ndarray]:
    """Relabel the sites of all draws, as far as they are there.

    Parameters
    ----------
    sites : draws ``(draw, …)``.
    matching : how.
    clusters : the sites whose clusters are relabelled too.
    """
    view, place = matching
    found = dict(sites)
    if "view_of_expert" in sites:
        found["view_of_expert"] = _renumbered(sites["view_of_expert"], view)
    if "stick" in sites:
        weight = np.take_along_axis(view_weights(sites["stick"]), view, axis=1)
        found["stick"] = sticks(weight).astype(sites["stick"].dtype)
    for site, values in sites.items():
        # Accuracies have views where experts have others in each.
        by_expert = site == "view_probability" or site.startswith(("sensitivity", "specificity", "answers_"))
        axis = 1 if site in ("weight", "cluster") else 2
        if axis == 1 or (by_expert and values.ndim == 3 + site.startswith("answers_")):
            others = tuple(at for at in range(1, values.ndim) if at != axis)
            found[site] = np.take_along_axis(values, np.expand_dims(view, others), axis=axis)
    if "cluster" in clusters and "cluster" in sites:
        found["cluster"] = _renumbered(found["cluster"], place)
    if "weight" in clusters and "weight" in sites:
        found["weight"] = np.take_along_axis(found["weight"], place[:, :, None], axis=3)
    return found


def _renumbered(code: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Return codes by the places at which their old numbers come."""
    number = np.argsort(old, axis=-1).astype(code.dtype)
    return np.take_along_axis(number, code.astype(np.intp), axis=-1)


def view_weights(stick: Float[np.ndarray, "*draw stick"]) -> Float[np.ndarray, "*draw view"]:
    """Return the weights of the views, the last stick being one."""
    stick = np.asarray(stick, float)
    one = np.ones((*stick.shape[:-1], 1))
    left = np.concatenate([one, np.cumprod(1 - stick, axis=-1)], axis=-1)
    return left * np.concatenate([stick, one], axis=-1)


def sticks(weight: Float[np.ndarray, "*draw view"]) -> Float[np.ndarray, "*draw stick"]:
    """Return the sticks of given weights of views; a half where nothing is left to break."""
    left = weight[..., ::-1].cumsum(axis=-1)[..., ::-1][..., :-1]
    return np.where(left > 0, weight[..., :-1] / np.where(left > 0, left, 1), 0.5)


def _own_order(sites: Mapping[str, np.ndarray], clusters: int) -> Matching:
    """Return the order of each draw by itself: by sizes, then first members; of empty ones by weights that are drawn.

    Nothing in it depends on the labels that the draws came with, and so nothing that is made of it does.
    """
    expert, cluster = np.asarray(sites["view_of_expert"]), np.asarray(sites["cluster"])
    num_draws, num_views, num_judged = cluster.shape
    empty = -view_weights(sites["stick"]) if "stick" in sites else np.zeros((num_draws, num_views))
    place = np.arange(num_draws)[:, None] * num_views + expert
    size = np.bincount(place.ravel(), minlength=num_draws * num_views).reshape(num_draws, num_views)
    view = np.lexsort((empty, first_of_codes(expert, num_views), -size))
    is_one = [cluster == number for number in range(clusters)]
    size = np.stack([one.sum(axis=2) for one in is_one], axis=-1)
    first = np.stack([np.where(one.any(axis=2), one.argmax(axis=2), num_judged) for one in is_one], axis=-1)
    empty = np.zeros(size.shape)
    if "weight" in sites and sites["weight"].ndim == 4 and sites["weight"].shape[-1] == clusters:
        empty = -np.asarray(sites["weight"])[:, :, -1]
    of_view = np.lexsort((empty, first, -size))
    return Matching(view, np.take_along_axis(of_view, view[:, :, None], axis=1))


def _match(
    expert: Int[np.ndarray, "draw expert"], cluster: Int[np.ndarray, "draw view judged"], own: Matching,
    reference: Labels,
) -> Matching:  # fmt: skip
    """Match draws to a reference, their views first."""
    of_expert, of_item = (np.asarray(one, float) for one in reference)
    num_views, num_clusters = of_item.shape[1:]
    number = np.argsort(own.view, axis=1)
    in_own_order = np.take_along_axis(number, expert.astype(np.intp), axis=1)
    shared = np.stack([(in_own_order == view) @ of_expert for view in range(num_views)], axis=1)
    chosen = _assign(shared)
    view = np.take_along_axis(own.view, chosen, axis=1)
    place = np.empty((*view.shape, num_clusters), np.intp)
    for rows in row_blocks(len(view), cluster[0].size * num_clusters, _BLOCK):
        moved = np.take_along_axis(cluster[rows], view[rows, :, None], axis=1)
        order = np.take_along_axis(own.cluster[rows], chosen[rows, :, None], axis=1)
        together = [(moved == one).swapaxes(0, 1) @ of_item.swapaxes(0, 1) for one in range(num_clusters)]
        table = np.stack(together, axis=-2).swapaxes(0, 1)  # (draw, view, cluster of the draw, of the reference)
        table = np.take_along_axis(table, order[..., None], axis=2)
        place[rows] = np.take_along_axis(order, _assign(table), axis=2)
    return Matching(view, place)


def _assign(shared: Float[np.ndarray, "*draw one other"]) -> Int[np.ndarray, "*draw other"]:
    """Return which one goes with each of the other side, so that they share most."""
    near = shared + _SAME_PLACE * np.eye(shared.shape[-1])
    best = np.vectorize(lambda table: linear_sum_assignment(-table.T)[1], signature="(n,n)->(n)")
    return np.asarray(best(near), np.intp)


def _mean_labels(
    expert: Int[np.ndarray, "draw expert"], cluster: Int[np.ndarray, "draw view judged"], matching: Matching
) -> Labels:
    """Return the shares of draws in which experts have each view, and items each cluster, after matching."""
    num_draws, num_views, num_clusters = matching.cluster.shape
    total = np.zeros((cluster.shape[2], num_views, num_clusters)), np.zeros((expert.shape[1], num_views))
    for rows in row_blocks(num_draws, cluster[0].size, _BLOCK):
        part = Matching(matching.view[rows], matching.cluster[rows])
        found = relabel_draws({"view_of_expert": expert[rows], "cluster": cluster[rows]}, part)
        for one in range(num_clusters):
            total[0][..., one] += (found["cluster"] == one).sum(axis=0).T
        for one in range(num_views):
            total[1][:, one] += (found["view_of_expert"] == one).sum(axis=0)
    return Labels(total[1] / num_draws, total[0] / num_draws)


def num_distinct(code: Int[np.ndarray, "*row member"]) -> Int[np.ndarray, "*row"]:
    """Return how many different codes each row has."""
    ordered = np.sort(code, axis=-1)
    return np.asarray(1 + (ordered[..., 1:] != ordered[..., :-1]).sum(axis=-1))
