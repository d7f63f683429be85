"""Draws of the views: which view each expert has, and the cluster of each item in each view.

After a coordinate ascent they are drawn from its independent factors, a view and an item at a time, and the same ones
whenever they are asked for; after sampling they are the stored draws. Items that nobody judged are drawn given the
weights. How views read as partitions says `consilience.models.truth.views`.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from scipy.special import ndtri

from consilience.arrays import Array, Float, Int, Key
from consilience.data.codes import names_or_codes
from consilience.data.constraints import Constraints
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.models.expert_views.canonical import (
    OWN_LINK,
    match_draws,
    most_probable,
    num_distinct,
    relabel_clusters,
    relabel_draws,
)
from consilience.models.expert_views.judgements import Standard, judged_items, standard_of, standardised
from consilience.models.expert_views.model import gibbs_function
from consilience.models.expert_views.prediction import drawn_memberships, memberships
from consilience.models.expert_views.priors import Priors, linear, link_of
from consilience.models.posterior import Posterior
from consilience.models.rows import row_blocks
from consilience.models.sites import Resolved
from consilience.models.truth.truth import PARTITION
from consilience.models.truth.views import ViewPartition, Views

_BLOCK = 1 << 22                 # Numbers that are held at a time.
_MOST_DRAWS = 1000               # Over which new items are averaged, evenly spread.
_USED, _ROUNDING = 0.5, 1e-9     # A view is used where it has an expert with more than this probability.
_SWEEPS = 50                     # Of what was summed out: a handful of items forgets its start long before.
_TINY = 2.0**-54                 # The least uniform number of which the normal quantile is taken.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)    # Of splitmix64: 2^64 over the golden ratio.
_EXPERTS, _ITEMS, _SILENT, _WEIGHTS = range(4)    # Numbers of streams of random numbers.

_UNKNOWN_LINK = (
    "this fit has a link of your own, which is not saved; ask where the fit was made, before it is saved and loaded"
)

Draw = Int[np.ndarray, " draw"]
Pair = Int[np.ndarray, " pair"]
"""Numbers of draws, and codes or places of one side of pairs."""

OfPairs = Float[np.ndarray, "pair view"]
OfItems = Float[np.ndarray, "item view cluster"]
OfSilent = Float[np.ndarray, "draw silent cluster"]
"""Probabilities: of pairs in each view, of the clusters of items, and of those of silent items in each draw."""


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> ViewsTruth:
    """Return the views of a coordinate ascent, or of draws.

    Where the priors are not known, as after loading, the link is taken to be linear, unless the draws are marked as
    those of a link of your own (`OWN_LINK`).

    Parameters
    ----------
    posterior, resolved : of the fit.
    key, num_draws : of draws that are made.

    Raises
    ------
    UnsupportedRequest : the draws hold no clusters, and the link by which they would be found is not known.
    """
    data, chosen = resolved.data, resolved.settings
    if posterior.form == "closed":
        return ApproximateViews(posterior, data, key=key, num_draws=num_draws)
    sites: dict[str, Any] = posterior.draws()
    link = _known_link(sites, resolved.given, (data.num_features + 1, chosen.clusters))
    if link is None and "cluster" not in sites:
        raise UnsupportedRequest(f"the clusters are not among the draws, and follow from the weights: {_UNKNOWN_LINK}")
    if chosen.cluster == "enumerate":
        sites |= _summed_out(sites, resolved, key)
    elif "view_of_expert" not in sites:
        num_draws, num_experts, _ = sites["view_probability"].shape
        noise = _uniform(key, _EXPERTS, np.arange(num_draws), 0, num_experts)
        sites["view_of_expert"] = _by_inverse(sites["view_probability"], noise)
    return DrawnViews(sites, resolved, key=key, link=link)


def _known_link(
    sites: Mapping[str, np.ndarray], priors: Priors | None, shape: tuple[int, int]
) -> Callable[[Any, Any], Any] | None:
    """Return the link of a fit, or None where it is one of the user's own that was not saved.

    Parameters
    ----------
    shape : of the weights of a view, were the link linear.
    """
    if priors is None and (OWN_LINK in sites or np.shape(sites["weight"])[2:] != shape):
        return None
    return link_of(priors)


def together(fit: Any, item_a: Any, item_b: Any, *, view: int | None = None, expert: Any = None) -> Any:
    """Return how probably two items are together, in a view or in that of an expert; see `ViewsTruth.together`.

    Returns
    -------
    A number for two items, and float64 ``(pair,)`` for many pairs.
    """
    probability = fit.truth.together(item_a, item_b, view=view, expert=expert)
    return float(probability[0]) if np.ndim(item_a) == np.ndim(item_b) == 0 else probability


def partition(fit: Any, view: int) -> ViewPartition:
    """Return the partition of the items in one view, to be evaluated like any other."""
    return fit.truth.read_as(PARTITION.name, view=view)


def partition_of_expert(fit: Any, expert: Any) -> ViewPartition:
    """Return the partition of the items that an expert, by id or code, has in mind; it depends on no labels."""
    return fit.truth.read_as(PARTITION.name, expert=expert)


def _summed_out(sites: dict[str, np.ndarray], resolved: Resolved, key: Key) -> dict[str, np.ndarray]:
    """Draw views and clusters given all other sites, by sweeps over both; of items few enough to be enumerated."""
    step, begun = gibbs_function(resolved), most_probable(sites, resolved)

    def of_draw(key: Key, begun: Mapping[str, Array], others: Mapping[str, Array]) -> Mapping[str, Array]:
        def sweep(number: Any, state: Mapping[str, Array]) -> Mapping[str, Array]:
            return step(jax.random.fold_in(key, number), state, others)

        return jax.lax.fori_loop(0, _SWEEPS, sweep, begun)

    keys = jax.random.split(jax.random.fold_in(key, _SILENT), len(begun["cluster"]))
    found = jax.jit(jax.vmap(of_draw))(keys, begun, sites)
    return {site: np.asarray(values) for site, values in found.items()}


class ViewsTruth(Views):
    """Draws of views; views and clusters have canonical numbers from 0.

    Attributes
    ----------
    num_experts : how many there are.
    judged, silent : codes of the items whose clusters the posterior holds, those that occur in a pair, and of the
        others. Under the pair likelihood all are silent: it knows clusters of judgements, and no cluster of an item.
    scaling : how features are standardised.
    link_known : whether the clusters of silent items can be told from the weights.
    """

    link_known = True
    link: Callable[[Any, Any], Any] | None = staticmethod(linear)

    def __init__(self, data: Constraints, scaling: Standard, *, key: Key, clusters_known: bool = True) -> None:
        self.data, self.key, self.scaling = data, key, scaling
        self.num_units, self.num_experts = data.num_items, data.num_experts
        self.bound_to(data)
        self.judged = judged_items(data) if clusters_known else np.arange(0)
        self.silent = np.setdiff1d(np.arange(data.num_items), self.judged)

    # ---- what the draws are ----

    @abstractmethod
    def _judged_clusters(self, draw: Draw, view: Draw) -> Int[np.ndarray, "draw judged"]:
        """Return the clusters of judged items in one view of each draw."""

    @abstractmethod
    def _weights(self, draw: Draw, view: Draw) -> Float[np.ndarray, "draw ..."]:
        """Return the weights of one view of each draw."""

    @abstractmethod
    def _places(self, draw: Draw, view: Draw) -> Int[np.ndarray, "draw cluster"]:
        """Return of one view of each draw the number under which the cluster goes that comes at each place."""

    # ---- what follows from it; a posterior may know some of it exactly ----

    @functools.cached_property
    def view_probability(self) -> Float[np.ndarray, "expert view"]:
        """How probably each expert has each view."""
        view = self.views_of_experts()
        return np.stack([(view == one).mean(axis=0) for one in range(self.most_views)], axis=-1)

    @functools.cached_property
    def used_probability(self) -> Float[np.ndarray, " view"]:
        """How probably each view has an expert."""
        view = self.views_of_experts()
        return np.array([(view == one).any(axis=1).mean() for one in range(self.most_views)])

    @functools.cached_property
    def judged_probability(self) -> Float[np.ndarray, "judged view cluster"]:
        """How probably each judged item is in each cluster of each view."""
        found = np.zeros((len(self.judged), self.most_views, self.most_clusters))
        for rows in row_blocks(self.num_draws, len(self.judged) * self.most_clusters, _BLOCK):
            draw = np.arange(self.num_draws)[rows]
            for view in range(self.most_views):
                cluster = self._judged_clusters(draw, np.full(len(draw), view))
                for one in range(self.most_clusters):
                    found[:, view, one] += (cluster == one).sum(axis=0)
        return found / self.num_draws

    def same_view_probability(self, one: Pair, other: Pair) -> Float[np.ndarray, " pair"]:
        """Return how probably two experts, by their codes, have the same view, pair by pair."""
        view = self.views_of_experts()
        return np.asarray((view[:, one] == view[:, other]).mean(axis=0))

    def memberships(self, feature: Float[np.ndarray, "item column"]) -> OfItems:
        """Return how probably items that nobody judged are in each cluster, from standardised features."""
        draw = np.unique(np.linspace(0, self.num_draws - 1, min(self.num_draws, _MOST_DRAWS)).round().astype(int))
        found = np.empty((len(feature), self.most_views, self.most_clusters))
        for view in range(self.most_views):
            of_view = np.full(len(draw), view)
            found[:, view] = drawn_memberships(
                self._weights(draw, of_view), self._places(draw, of_view), feature, self._checked_link()
            )
        return found

    def _silent_probability(self, draw: Draw, view: Draw, item: Int[np.ndarray, " silent"]) -> OfSilent:
        """Return how probably some items are in each cluster of one view, given the weights of each draw."""
        probability = memberships(self._weights(draw, view), self._silent_feature[item], self._checked_link())
        return np.take_along_axis(probability, self._places(draw, view)[:, None], axis=2)

    def _has_view(self, draws: slice, view: int, expert: Pair | None) -> Any:
        """Return whether each expert has a view in each draw; 1 where there are no experts."""
        return 1 if expert is None else self.views_of_experts(draws)[:, expert] == view

    def _both_judged(self, a: Pair, b: Pair, expert: Pair | None) -> OfPairs:
        """Return what `pair_probability` does, of two judged items by their places."""

        def same(draw: Draw, view: int) -> np.ndarray:
            of_draws = self._judged_clusters(draw, np.full(len(draw), view))
            return of_draws[:, a] == of_draws[:, b]

        return self._over_draws(same, len(a) * self.most_views, expert, len(a))

    def _one_judged(self, a: Pair, b: Pair, expert: Pair | None) -> OfPairs:
        """Return what `pair_probability` does, of a judged item and a silent one by their places."""
        items, place = np.unique(b, return_inverse=True)

        def same(draw: Draw, view: int) -> np.ndarray:
            of_view = np.full(len(draw), view)
            probability = self._silent_probability(draw, of_view, items)
            own = self._judged_clusters(draw, of_view)[:, a].astype(np.intp)
            return np.take_along_axis(probability[:, place], own[..., None], axis=2)[..., 0]

        return self._over_draws(same, (len(items) + len(a)) * self.most_clusters, expert, len(a))

    def _checked_link(self) -> Callable[[Any, Any], Any]:
        if self.link is None:
            raise UnsupportedRequest(f"items that nobody judged, and new ones, are predicted: {_UNKNOWN_LINK}")
        return self.link

    def standardised(self, values: Float[np.ndarray, "item feature"]) -> Float[np.ndarray, "item column"]:
        """Standardise features as those of the fit, with a last column of ones."""
        return standardised(values, self.scaling)

    def used_views(self) -> Int[np.ndarray, " used"]:
        """Return the views that more probably than not have an expert, or the one that has most probably."""
        used = self.used_probability
        return np.flatnonzero(used > min(_USED, used.max() - _ROUNDING))

    def num_views(self) -> Int[np.ndarray, " draw"]:
        """Return the number of views that some expert has, of each draw."""
        blocks = row_blocks(self.num_draws, self.num_experts, _BLOCK)
        return np.concatenate([num_distinct(self.views_of_experts(rows)) for rows in blocks])

    @functools.cached_property
    def cluster_probability(self) -> OfItems:
        """How probably each item is in each cluster of each view; of silent items by prediction."""
        found = np.empty((self.num_units, self.most_views, self.most_clusters))
        found[self.judged] = self.judged_probability
        if len(self.silent):
            found[self.silent] = self.memberships(self._silent_feature)
        return found

    @functools.cached_property
    def _silent_feature(self) -> Float[np.ndarray, "silent column"]:
        return self.standardised(np.asarray(self.data.feature)[self.silent])

    def consensus(self, view: int) -> Int[np.ndarray, " item"]:
        """Return the most probable cluster of each item in a view."""
        return np.asarray(self.cluster_probability[:, self.checked_view(view)].argmax(axis=1))

    def clusters(
        self, view: int | Int[np.ndarray, "*draw"], draws: slice = slice(None)
    ) -> Int[np.ndarray, "draw item"]:
        """Return the clusters of all items in one view of some draws, int8; the same ones every time.

        Parameters
        ----------
        view : one for all, or one for each of the draws.
        draws : which draws.
        """
        draw = np.arange(self.num_draws)[draws]
        of_draw = np.broadcast_to(np.asarray(view), draw.shape)
        found = np.empty((len(draw), self.num_units), np.int8)
        found[:, self.judged] = self._judged_clusters(draw, of_draw)
        if len(self.silent):
            for rows in row_blocks(len(draw), len(self.silent) * self.most_clusters, _BLOCK):
                probability = self._silent_probability(draw[rows], of_draw[rows], np.arange(len(self.silent)))
                noise = _uniform(self.key, _SILENT, draw[rows], of_draw[rows], len(self.silent))
                found[rows, self.silent] = _by_inverse(probability, noise)
        return found

    def together(
        self, item_a: Any, item_b: Any, *, view: int | None = None, expert: Any = None
    ) -> Float[np.ndarray, " pair"]:
        """Return how probably two items are together, pair by pair, in a view or in that of an expert.

        Parameters
        ----------
        item_a, item_b : ids or codes, one or many; one goes with each of many. Whole numbers are codes, in the order
            of `items`, unless ids are whole numbers themselves.
        view, expert : one of them. Of an expert all views that may be his count, as probably as they are.

        Raises
        ------
        UnknownName : there is no such item, view or expert.
        UnsupportedRequest : neither a view nor an expert is given, or lists have different lengths.
        """
        if (view is None) == (expert is None):
            raise UnsupportedRequest("say in which view two items may be together: give view= or expert=")
        a, b = self._paired_codes(item_a, item_b, "item")
        if view is not None:
            return self.pair_probability(a, b)[:, self.checked_view(view)]
        code = self.expert_code(expert)
        return np.asarray(self.pair_probability(a, b, np.full(len(a), code)).sum(axis=1))

    def same_view(self, expert: Any, other: Any) -> Float[np.ndarray, " pair"]:
        """Return how probably two experts have the same view, pair by pair; ids or codes, as `together` takes them."""
        return self.same_view_probability(*self._paired_codes(expert, other, "expert"))

    def pair_probability(self, a: Pair, b: Pair, expert: Pair | None = None) -> OfPairs:
        """Return how probably items, by their codes, are together in each view.

        Parameters
        ----------
        a, b : the items.
        expert : where it is given, how probably they are together in each view and it is that of this expert; over all
            views these add up to how probably they are together in what he has in mind.
        """
        place = np.zeros(self.num_units, int)
        place[self.judged], place[self.silent] = np.arange(len(self.judged)), np.arange(len(self.silent))
        is_silent = np.zeros(self.num_units, bool)
        is_silent[self.silent] = True
        a, b = np.where(is_silent[a], b, a), np.where(is_silent[a], a, b)  # a judged one first
        found = np.ones((len(a), self.most_views)) if expert is None else self.view_probability[expert]
        for kind, measure in (
            (~is_silent[b], self._both_judged),
            (~is_silent[a] & is_silent[b], self._one_judged),
            (is_silent[a], self._both_silent),
        ):
            rows = np.flatnonzero(kind & (a != b))
            for part in row_blocks(len(rows), self.most_views * self.most_clusters, _BLOCK):
                own = rows[part]
                found[own] = measure(place[a[own]], place[b[own]], None if expert is None else expert[own])
        return found

    def _both_silent(self, a: Pair, b: Pair, expert: Pair | None) -> OfPairs:
        """Return how probably two silent items, by their places, are together: over the same draws of the weights."""
        items, ends = np.unique(np.concatenate([a, b]), return_inverse=True)
        first, second = ends.reshape(2, -1)

        def same(draw: Draw, view: int) -> np.ndarray:
            probability = self._silent_probability(draw, np.full(len(draw), view), items)
            return np.einsum("dpk,dpk->dp", probability[:, first], probability[:, second])

        return self._over_draws(same, (len(items) + len(a)) * self.most_clusters, expert, len(a))

    def _over_draws(
        self, same: Callable[[Draw, int], np.ndarray], width: int, expert: Pair | None, number: int
    ) -> OfPairs:
        """Return the mean over draws of whether pairs are together, and the experts have the view.

        Parameters
        ----------
        same : ``same(draw, view)`` -> whether, or how probably, each pair is together, ``(draw, pair)``.
        width : numbers that are held for one draw.
        number : of pairs.
        """
        total = np.zeros((number, self.most_views))
        for draws in row_blocks(self.num_draws, width, _BLOCK):
            draw = np.arange(self.num_draws)[draws]
            for view in range(self.most_views):
                total[:, view] += (same(draw, view) * self._has_view(draws, view, expert)).sum(axis=0)
        return total / self.num_draws

    def _paired_codes(self, asked: Any, other: Any, what: str) -> tuple[Pair, Pair]:
        """Return the codes of both sides of pairs; a single id goes with each of the other side."""
        number = self.num_units if what == "item" else self.num_experts
        one, two = (_codes(side, self.ids.get(what), number, what) for side in (asked, other))
        if np.ndim(asked) and np.ndim(other) and len(one) != len(two):
            raise UnsupportedRequest(
                f"{len(one)} {what}s and {len(two)} {what}s are no pairs; give two lists of one length, or one {what} "
                "and a list"
            )
        first, second = np.broadcast_arrays(one, two)
        return first, second

    def expert_code(self, expert: Any) -> int:
        """Return the code of an expert, by id or code."""
        return int(_codes(expert, self.ids.get("expert"), self.num_experts, "expert")[0])


class ApproximateViews(ViewsTruth):
    """The views of what coordinate ascent ended with, drawn from its factors; what these tell exactly is exact.

    Parameters
    ----------
    posterior, data : of the fit.
    key, num_draws : the draws are a function of these.
    """

    def __init__(self, posterior: Posterior, data: Constraints, *, key: Key, num_draws: int) -> None:
        scaling = Standard(np.asarray(posterior.feature_mean, float), np.asarray(posterior.feature_scale, float))
        super().__init__(data, scaling, key=key)
        self.posterior, self.num_draws = posterior, num_draws
        self.most_views, self.most_clusters = np.shape(posterior.cluster_probability)[1:]

    @functools.cached_property
    def view_probability(self) -> Float[np.ndarray, "expert view"]:
        """How probably each expert has each view."""
        return _normalised(self.posterior.view_probability)

    @functools.cached_property
    def used_probability(self) -> Float[np.ndarray, " view"]:
        """How probably each view has an expert."""
        return np.asarray(1 - np.prod(1 - self.view_probability, axis=0))

    @functools.cached_property
    def judged_probability(self) -> Float[np.ndarray, "judged view cluster"]:
        """How probably each judged item is in each cluster of each view."""
        return _normalised(self.posterior.cluster_probability)

    def same_view_probability(self, one: Pair, other: Pair) -> Float[np.ndarray, " pair"]:
        """Return how probably two experts have the same view, exactly."""
        probability = (self.view_probability[one] * self.view_probability[other]).sum(axis=1)
        return np.where(one == other, 1.0, probability)

    def views_of_experts(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw expert"]:
        """Draw the view of each expert, independently."""
        draw = np.arange(self.num_draws)[draws]
        noise = _uniform(self.key, _EXPERTS, draw, 0, self.num_experts)
        return _by_inverse(np.broadcast_to(self.view_probability, (len(draw), *self.view_probability.shape)), noise)

    def _both_judged(self, a: Pair, b: Pair, expert: Pair | None) -> OfPairs:
        return self._jointly(self.judged_probability[a], self.judged_probability[b], expert)

    def _one_judged(self, a: Pair, b: Pair, expert: Pair | None) -> OfPairs:
        return self._jointly(self.judged_probability[a], self.cluster_probability[self.silent[b]], expert)

    def _has_view(self, draws: slice, view: int, expert: Pair | None) -> Any:
        return 1.0 if expert is None else self.view_probability[expert, view]

    def _jointly(self, one: Any, other: Any, expert: Pair | None) -> OfPairs:
        """Return how probably two items are together, and experts have each view: independently, as the factors are."""
        together = (one * other).sum(axis=2)
        return np.asarray(together if expert is None else together * self.view_probability[expert])

    def _judged_clusters(self, draw: Draw, view: Draw) -> Int[np.ndarray, "draw judged"]:
        found = np.empty((len(draw), len(self.judged)), np.int8)
        of_view = self.judged_probability.swapaxes(0, 1)
        for rows in row_blocks(len(draw), len(self.judged) * self.most_clusters, _BLOCK):
            noise = _uniform(self.key, _ITEMS, draw[rows], view[rows], len(self.judged))
            found[rows] = _by_inverse(of_view[view[rows]], noise)
        return found

    def _weights(self, draw: Draw, view: Draw) -> Float[np.ndarray, "draw column cluster"]:
        mean, variance = (np.asarray(self.posterior.hidden[f"weight_{name}"], float) for name in ("mean", "variance"))
        noise = ndtri(np.maximum(_uniform(self.key, _WEIGHTS, draw, view, mean[0].size), _TINY))
        return mean[view] + np.sqrt(variance[view]) * noise.reshape(-1, *mean.shape[1:])

    def _places(self, draw: Draw, view: Draw) -> Int[np.ndarray, "draw cluster"]:
        return np.broadcast_to(np.arange(self.most_clusters), (len(draw), self.most_clusters))


class DrawnViews(ViewsTruth):
    """The views of stored draws.

    Parameters
    ----------
    sites : draws ``(draw, …)`` of ``view_of_expert``, ``weight`` and, ``(view, judged)``, ``cluster``, which draws of
        the pair likelihood lack. Views and clusters are matched to one another.
    resolved : of the fit.
    key : of the draws of silent items.
    link : from the weights of a view to logits; None where it is not known.
    """

    def __init__(
        self, sites: Mapping[str, np.ndarray], resolved: Resolved, *, key: Key,
        link: Callable[[Any, Any], Any] | None,
    ) -> None:  # fmt: skip
        known, clusters = "cluster" in sites, resolved.settings.clusters
        scaling = standard_of(np.asarray(resolved.data.feature), bool(resolved.settings.standardize))
        super().__init__(resolved.data, scaling, key=key, clusters_known=known)
        self.link, self.link_known = link, link is not None
        labels = sites if known else {**most_probable(sites, resolved), **sites}
        matching = match_draws(labels, clusters)
        matched = relabel_draws(sites, matching, clusters=False)
        self._expert, self._weight, self._place = matched["view_of_expert"], matched["weight"], matching.cluster
        self.num_draws, self.most_views, self.most_clusters = self._place.shape
        shape = (self.num_draws, self.most_views, len(self.judged))
        self._cluster = np.zeros(shape, np.int8)
        if known:
            flat = matched["cluster"].reshape(-1, shape[2])
            self._cluster = relabel_clusters(flat, self._place.reshape(-1, clusters)).reshape(shape)

    def views_of_experts(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw expert"]:
        """Return the stored views."""
        return self._expert[draws]

    def _judged_clusters(self, draw: Draw, view: Draw) -> Int[np.ndarray, "draw judged"]:
        return self._cluster[draw, view]

    def _weights(self, draw: Draw, view: Draw) -> Float[np.ndarray, "draw ..."]:
        return self._weight[draw, view]

    def _places(self, draw: Draw, view: Draw) -> Int[np.ndarray, "draw cluster"]:
        return self._place[draw, view]


# Ids ------------------------------------------------------------------------------------------------------------------


def _codes(asked: Any, names: Any, number: int, what: str) -> Int[np.ndarray, " asked"]:
    """Return the codes of ids; whole numbers are codes already, unless ids are whole numbers themselves.

    Parameters
    ----------
    names : ids in code order, or None.
    number : of the codes.
    what : which ids they are, for the error.
    """
    given = np.atleast_1d(np.asarray(asked, None if np.asarray(asked).dtype.kind in "iu" else object))
    if given.dtype.kind in "iu" and (names is None or not any(str(name).lstrip("-").isdecimal() for name in names)):
        unknown = given[(given < 0) | (given >= number)].tolist()
        if unknown:
            raise UnknownName(f"there is no {what} {', '.join(map(str, unknown[:10]))}; codes are 0 to {number - 1}")
        return given
    # Ids that are read from a file are texts.
    code = {name: place for place, name in enumerate(names_or_codes(names, number, what))}
    wanted = [str(one) for one in given.tolist()]
    unknown = [one for one, text in zip(given.tolist(), wanted, strict=True) if text not in code]
    if unknown:
        raise UnknownName(f"the data have no {what} {', '.join(map(repr, unknown[:10]))}")
    return np.array([code[text] for text in wanted], int)


# Draws ----------------------------------------------------------------------------------------------------------------


def _normalised(probability: Any) -> np.ndarray:
    """Return probabilities in double precision that add up to one."""
    values = np.asarray(probability, float)
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def _by_inverse(probability: Float[np.ndarray, "draw unit class"], noise: Array) -> Int[np.ndarray, "draw unit"]:
    """Draw classes by the inverse of the distribution function, int8 where they fit."""
    reached = np.cumsum(probability[..., :-1], axis=-1) <= np.asarray(noise, float)[..., None]
    return reached.sum(axis=-1).astype(np.int8 if probability.shape[-1] <= 128 else np.int32)


def _uniform(
    key: Key, stream: int, draw: Int[np.ndarray, " draw"], view: Any, number: int
) -> Float[np.ndarray, "draw unit"]:
    """Return random numbers below one that depend on nothing but the key, the stream, the draw, the view and the unit.

    They are made by a hash of these (splitmix64; Steele, Lea and Flood 2014), on the host: nothing has to be compiled.
    """
    word = np.asarray(jax.random.key_data(key)).astype(np.uint64)
    with np.errstate(over="ignore"):
        state = _mixed(_mixed(word[0]) ^ word[-1]) + np.uint64(stream)
        of_draw = _mixed(_mixed(state + draw.astype(np.uint64)) + np.asarray(view).astype(np.uint64))
        words = _mixed(of_draw[:, None] + np.arange(number, dtype=np.uint64) * _GOLDEN)
    return (words >> np.uint64(11)) * 2.0**-53


def _mixed(word: Any) -> Any:
    """Mix the bits of words."""
    word = word + _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
