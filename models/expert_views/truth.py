"""Draws of the views: which view each expert has, and the cluster of each item in each view.

After a coordinate ascent they are drawn from its independent factors, the same ones whenever they are asked for; after
sampling they are the stored draws. All that is said of views follows from draws, but for what the factors tell exactly
(`FactorDraws`). Items that nobody judged are drawn given the weights. How views read as partitions says
`consilience.models.truth.views`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import ndtri

from consilience.arrays import Array, Float, Int, Key
from consilience.data.codes import codes_of
from consilience.data.constraints import Constraints
from consilience.errors import UnsupportedRequest
from consilience.models.expert_views.canonical import OWN_LINK, matched, most_probable, num_distinct, relabel_draws
from consilience.models.expert_views.gibbs import drawn_given, of_all_rungs
from consilience.models.expert_views.judgements import Standard, judged_items, judgements, standard_of, standardised
from consilience.models.expert_views.likelihood import answering, log_view_weight
from consilience.models.expert_views.prediction import memberships
from consilience.models.expert_views.priors import linear, link_of
from consilience.models.posterior import Posterior
from consilience.models.rows import row_blocks
from consilience.models.sites import Resolved
from consilience.models.truth.truth import PARTITION
from consilience.models.truth.views import ViewPartition, Views

_BLOCK = 1 << 22                 # Numbers that are held at a time.
_MOST_DRAWS = 1000               # Over which new items are averaged, evenly spread.
_USED, _ROUNDING = 0.5, 1e-9     # A view is used where it has an expert with more than this probability.
_SWEEPS = 50                     # Of what was summed out: a handful of items forgets its start long before.
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
OfShares = Float[np.ndarray, "draw item cluster"]
"""Probabilities: of pairs in each view, of the clusters of items, and of those in one view of each draw."""


class StoredDraws(NamedTuple):
    """Draws, whose views and clusters are matched to one another.

    Parameters
    ----------
    view_of_expert, cluster : the views, and the clusters of judged items.
    weight, place : the weights as the sampler left them, and under which number the cluster goes at each place of them.
    """

    view_of_expert: Int[np.ndarray, "draw expert"]
    cluster: Int[np.ndarray, "draw view judged"]
    weight: Float[np.ndarray, "draw view ..."]
    place: Int[np.ndarray, "draw view cluster"]


class FactorDraws:
    """The same from what coordinate ascent ended with, each drawn when it is first asked for.

    Parameters
    ----------
    posterior : what it ended with: independent factors, of which all is known exactly.
    key, num_draws : the draws are a function of these.

    Attributes
    ----------
    view_probability, cluster_probability : of each expert's view, and of the clusters of each judged item.
    """

    def __init__(self, posterior: Posterior, key: Key, num_draws: int) -> None:
        self.posterior, self.key, self.draw = posterior, key, np.arange(num_draws)
        self.view_probability: Float[np.ndarray, "expert view"] = _normalised(posterior.view_probability)
        self.cluster_probability: OfItems = _normalised(posterior.cluster_probability)
        _, views, clusters = self.cluster_probability.shape
        self.place = np.broadcast_to(np.arange(clusters), (num_draws, views, clusters))

    @functools.cached_property
    def view_of_expert(self) -> Int[np.ndarray, "draw expert"]:
        """Draw the view of each expert."""
        return _by_inverse(
            self.view_probability, _uniform(self.key, _EXPERTS, self.draw, 0, len(self.view_probability))
        )

    @functools.cached_property
    def cluster(self) -> Int[np.ndarray, "draw view judged"]:
        """Draw the clusters of judged items."""
        judged, views, clusters = self.cluster_probability.shape
        found = np.empty((len(self.draw), views, judged), np.int8)
        for rows in row_blocks(len(self.draw), judged * clusters, _BLOCK):
            for view in range(views):
                noise = _uniform(self.key, _ITEMS, self.draw[rows], view, judged)
                found[rows, view] = _by_inverse(self.cluster_probability[:, view], noise)
        return found

    @functools.cached_property
    def weight(self) -> Float[np.ndarray, "draw view column cluster"]:
        """Draw the weights: each at quantiles of equal steps, so that means over draws are nearly exact."""
        mean, variance = (np.asarray(self.posterior.hidden[f"weight_{name}"], float) for name in ("mean", "variance"))
        noise = np.stack([_uniform(self.key, _WEIGHTS, self.draw, view, mean[0].size) for view in range(len(mean))], 1)
        level = (noise.argsort(axis=0).argsort(axis=0) + 0.5) / len(noise)
        return mean + np.sqrt(variance) * ndtri(level).reshape(-1, *mean.shape)


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
        scaling = Standard(np.asarray(posterior.feature_mean, float), np.asarray(posterior.feature_scale, float))
        return ViewsTruth(FactorDraws(posterior, key, num_draws), data, scaling, key=key)
    sites: dict[str, Any] = posterior.draws()
    link: Callable[[Any, Any], Any] | None = link_of(resolved.given)
    linear_shape = data.num_features + 1, chosen.clusters
    if resolved.given is None and (OWN_LINK in sites or np.shape(sites["weight"])[2:] != linear_shape):
        link = None  # one of the user's own, that was not saved
    if link is None and "cluster" not in sites:
        raise UnsupportedRequest(f"the clusters are not among the draws, and follow from the weights: {_UNKNOWN_LINK}")
    if chosen.cluster == "enumerate":
        sites |= _summed_out(sites, resolved, key)
    elif "view_of_expert" not in sites:
        num_draws, num_experts, _ = sites["view_probability"].shape
        noise = _uniform(key, _EXPERTS, np.arange(num_draws), 0, num_experts)
        sites["view_of_expert"] = _by_inverse(sites["view_probability"], noise)
    matching = matched(sites, resolved)
    own = relabel_draws(sites, matching, clusters=("cluster",))
    # The pair likelihood knows clusters of judgements, and no cluster of an item.
    judged = judged_items(data) if "cluster" in sites else np.arange(0)
    cluster = own.get("cluster", np.zeros((*matching.view.shape, 0), np.int8))
    drawn = StoredDraws(own["view_of_expert"], cluster, own["weight"], matching.cluster)
    scaling = standard_of(np.asarray(data.feature), bool(chosen.standardize))
    return ViewsTruth(drawn, data, scaling, key=key, judged=judged, link=link)


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


@np.errstate(divide="ignore")  # a probability may be so small as to be zero
def _summed_out(sites: dict[str, np.ndarray], resolved: Resolved, key: Key) -> dict[str, np.ndarray]:
    """Draw views and clusters given all other sites; of items few enough to be enumerated."""
    judged, begun = judgements(resolved.data, bool(resolved.settings.standardize))[0], most_probable(sites, resolved)
    values = {name: np.asarray(own, float) for name, own in sites.items()}
    link, stick = link_of(resolved.given), values.get("stick", np.zeros((len(values["weight"]), 0)))
    share = [memberships(of_view, judged.feature, link) for of_view in values["weight"].swapaxes(0, 1)]
    view, cluster = drawn_given(
        np.random.default_rng(np.asarray(jax.random.key_data(key))), begun["view_of_expert"], begun["cluster"],
        answering(values, resolved), log_view_weight(np.log(stick), np.log1p(-stick)),
        np.ascontiguousarray(np.moveaxis(np.log(share), (0, 3), (1, 2))), of_all_rungs(judged), _SWEEPS,
    )  # fmt: skip
    return {"view_of_expert": view, "cluster": cluster}


class ViewsTruth(Views):
    """Draws of views; views and clusters have canonical numbers from 0.

    Parameters
    ----------
    draws : `StoredDraws` or `FactorDraws`.
    data : of the fit.
    scaling : how features are standardised.
    key : of the draws of silent items.
    judged : codes of the items whose clusters are among the draws; by default those that occur in a pair.
    link : from the weights of a view to logits; None where it is not known.

    Attributes
    ----------
    num_experts : how many there are.
    silent : codes of the items that are not judged. Under the pair likelihood all are silent.
    link_known : whether the clusters of silent items can be told from the weights.
    """

    def __init__(
        self, draws: StoredDraws | FactorDraws, data: Constraints, scaling: Standard, *, key: Key,
        judged: Int[np.ndarray, " judged"] | None = None, link: Callable[[Any, Any], Any] | None = linear,
    ) -> None:  # fmt: skip
        self.drawn, self.data, self.scaling, self.key, self.link = draws, data, scaling, key, link
        self.factors = draws if isinstance(draws, FactorDraws) else None
        self.num_draws, self.most_views, self.most_clusters = draws.place.shape
        self.num_units, self.num_experts, self.link_known = data.num_items, data.num_experts, link is not None
        self.bound_to(data)
        self.judged = judged_items(data) if judged is None else judged
        self.silent = np.setdiff1d(np.arange(data.num_items), self.judged)

    def views_of_experts(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw expert"]:
        """Return the view of each expert in some draws."""
        return self.drawn.view_of_expert[draws]

    # ---- probabilities ----

    @functools.cached_property
    def view_probability(self) -> Float[np.ndarray, "expert view"]:
        """How probably each expert has each view."""
        if self.factors is not None:
            return self.factors.view_probability
        view = self.views_of_experts()
        return np.stack([(view == one).mean(axis=0) for one in range(self.most_views)], axis=-1)

    @functools.cached_property
    def used_probability(self) -> Float[np.ndarray, " view"]:
        """How probably each view has an expert."""
        if self.factors is not None:
            return np.asarray(1 - np.prod(1 - self.factors.view_probability, axis=0))
        view = self.views_of_experts()
        return np.array([(view == one).any(axis=1).mean() for one in range(self.most_views)])

    @functools.cached_property
    def judged_probability(self) -> Float[np.ndarray, "judged view cluster"]:
        """How probably each judged item is in each cluster of each view."""
        if self.factors is not None:
            return self.factors.cluster_probability
        share = [(self.drawn.cluster == one).mean(axis=0).T for one in range(self.most_clusters)]
        return np.stack(share, axis=-1)

    def same_view_probability(self, one: Pair, other: Pair) -> Float[np.ndarray, " pair"]:
        """Return how probably two experts, by their codes, have the same view, pair by pair."""
        if self.factors is not None:
            share = self.factors.view_probability
            return np.where(one == other, 1.0, (share[one] * share[other]).sum(axis=1))
        view = self.views_of_experts()
        return np.asarray((view[:, one] == view[:, other]).mean(axis=0))

    @functools.cached_property
    def cluster_probability(self) -> OfItems:
        """How probably each item is in each cluster of each view; of silent items by prediction."""
        found = np.empty((self.num_units, self.most_views, self.most_clusters))
        found[self.judged] = self.judged_probability
        if len(self.silent):
            found[self.silent] = self.memberships(self._silent_feature)
        return found

    def memberships(self, feature: Float[np.ndarray, "item column"]) -> OfItems:
        """Return how probably items that nobody judged are in each cluster, from standardised features."""
        draw = np.unique(np.linspace(0, self.num_draws - 1, min(self.num_draws, _MOST_DRAWS)).round().astype(int))
        total = np.zeros((len(feature), self.most_views, self.most_clusters))
        for rows in row_blocks(len(draw), len(feature) * self.most_clusters, _BLOCK):
            for view in range(self.most_views):
                total[:, view] += self._shares(draw[rows], np.full(len(draw[rows]), view), feature).sum(axis=0)
        return total / len(draw)

    def _shares(self, draw: Draw, view: Draw, feature: Float[np.ndarray, "item column"]) -> OfShares:
        """Return how probable the clusters of one view of each draw are, given its weights."""
        if self.link is None:
            raise UnsupportedRequest(f"items that nobody judged, and new ones, are predicted: {_UNKNOWN_LINK}")
        share = memberships(self.drawn.weight[draw, view], feature, self.link)
        return np.take_along_axis(share, self.drawn.place[draw, view][:, None], axis=2)

    def standardised(self, values: Float[np.ndarray, "item feature"]) -> Float[np.ndarray, "item column"]:
        """Standardise features as those of the fit, with a last column of ones."""
        return standardised(values, self.scaling)

    @functools.cached_property
    def _silent_feature(self) -> Float[np.ndarray, "silent column"]:
        return self.standardised(np.asarray(self.data.feature)[self.silent])

    # ---- views and clusters ----

    def used_views(self) -> Int[np.ndarray, " used"]:
        """Return the views that more probably than not have an expert, or the one that has most probably."""
        used = self.used_probability
        return np.flatnonzero(used > min(_USED, used.max() - _ROUNDING))

    def num_views(self) -> Int[np.ndarray, " draw"]:
        """Return the number of views that some expert has, of each draw."""
        return num_distinct(self.views_of_experts())

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
        found[:, self.judged] = self.drawn.cluster[draw, of_draw]
        if len(self.silent):
            for rows in row_blocks(len(draw), len(self.silent) * self.most_clusters, _BLOCK):
                share = self._shares(draw[rows], of_draw[rows], self._silent_feature)
                noise = _uniform(self.key, _SILENT, draw[rows], of_draw[rows], len(self.silent))
                found[rows, self.silent] = _by_inverse(share, noise)
        return found

    # ---- pairs ----

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
        is_silent = np.ones(self.num_units, bool)
        is_silent[self.judged] = False
        a, b = np.where(is_silent[a], b, a), np.where(is_silent[a], a, b)  # a judged one first
        num_silent = np.where(a == b, -1, 0 + is_silent[a] + is_silent[b])
        found = np.ones((len(a), self.most_views)) if expert is None else self.view_probability[expert]
        for number in range(3):
            rows = np.flatnonzero(num_silent == number)
            for part in row_blocks(len(rows), self.most_views * self.most_clusters, _BLOCK):
                own = rows[part]
                found[own] = self._together(a[own], b[own], None if expert is None else expert[own], number)
        return found

    def _together(self, a: Pair, b: Pair, expert: Pair | None, num_silent: int) -> OfPairs:
        """Return it of different items of which so many are silent, the second one first."""
        if self.factors is not None and num_silent < 2:
            together = (self.cluster_probability[a] * self.cluster_probability[b]).sum(axis=2)
            return np.asarray(together if expert is None else together * self.factors.view_probability[expert])
        place = np.searchsorted(self.judged, [a, b])
        silent, at = np.unique(np.stack([b, a])[:num_silent], return_inverse=True)
        at, feature = at.reshape(num_silent, len(a)), self._silent_feature[np.searchsorted(self.silent, silent)]

        def same(draw: Draw, view: int) -> np.ndarray:
            cluster = self.drawn.cluster[draw, view]
            if num_silent == 0:
                return cluster[:, place[0]] == cluster[:, place[1]]
            share = self._shares(draw, np.full(len(draw), view), feature)
            if num_silent == 1:
                return np.take_along_axis(share[:, at[0]], cluster[:, place[0], None].astype(np.intp), axis=2)[..., 0]
            # Two silent items are together over the same draws of the weights.
            return np.einsum("dpk,dpk->dp", share[:, at[0]], share[:, at[1]])

        def held(draws: slice, view: int) -> Any:
            if expert is None:
                return 1.0
            own = self.views_of_experts(draws)[:, expert] == view
            return own if self.factors is None else self.factors.view_probability[expert, view]

        total = np.zeros((len(a), self.most_views))
        for draws in row_blocks(self.num_draws, (len(silent) + len(a)) * self.most_clusters, _BLOCK):
            for view in range(self.most_views):
                total[:, view] += (same(np.arange(self.num_draws)[draws], view) * held(draws, view)).sum(axis=0)
        return total / self.num_draws

    def _paired_codes(self, asked: Any, other: Any, what: str) -> tuple[Pair, Pair]:
        """Return the codes of both sides of pairs; a single id goes with each of the other side."""
        one, two = (self._codes(side, what) for side in (asked, other))
        if np.ndim(asked) and np.ndim(other) and len(one) != len(two):
            raise UnsupportedRequest(
                f"{len(one)} {what}s and {len(two)} {what}s are no pairs; give two lists of one length, or one {what} "
                "and a list"
            )
        first, second = np.broadcast_arrays(one, two)
        return first, second

    def expert_code(self, expert: Any) -> int:
        """Return the code of an expert, by id or code."""
        return int(self._codes(expert, "expert")[0])

    def _codes(self, asked: Any, what: str) -> Int[np.ndarray, " asked"]:
        size = self.num_units if what == "item" else self.num_experts
        return codes_of(asked, self.ids.get(what), size, what)


# Draws ----------------------------------------------------------------------------------------------------------------


def _normalised(probability: Any) -> np.ndarray:
    """Return probabilities in double precision that add up to one."""
    values = np.asarray(probability, float)
    return np.asarray(values / values.sum(axis=-1, keepdims=True))


def _by_inverse(probability: Float[np.ndarray, "*draw unit class"], noise: Array) -> Int[np.ndarray, "draw unit"]:
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
