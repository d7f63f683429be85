"""Truths about several clusterings of the same items: views. Each is a partition, and so is that of an expert."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.models.truth.partitions import Pairs, PartitionTruth, first_in_rows, first_members
from consilience.models.truth.truth import PARTITION, VIEWS, Block, Question, Truth

# Pairs of all items that are listed when nobody says which; experts whose pairs are looked at.
_MOST_PAIRS, _MOST_COMPARED = 2_000_000, 200

_SEVERAL = (
    "the truth of this fit is several partitions of the items, one for each view; take one of them, "
    "fit.partition(view) or fit.partition_of_expert(expert), in the place of the fit, to score it; how sure it "
    "is that items are together says fit.together(item_a, item_b, view=…)"
)


class Views(Truth):
    """Draws of views; views and clusters have canonical numbers from 0.

    Attributes
    ----------
    most_views, most_clusters : how many views there may be, and clusters in each.
    """

    kind = VIEWS
    systems: tuple[str, ...] = (PARTITION.name,)
    most_views: int
    most_clusters: int

    @property
    @abstractmethod
    def view_probability(self) -> Float[np.ndarray, "expert view"]:
        """How probably each expert has each view."""

    @abstractmethod
    def views_of_experts(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw expert"]:
        """Return the view of each expert in some draws."""

    @abstractmethod
    def num_views(self) -> Int[np.ndarray, " draw"]:
        """Return the number of views that some expert has, of each draw."""

    @abstractmethod
    def used_views(self) -> Int[np.ndarray, " used"]:
        """Return the views that more probably than not have an expert, or the one that has most probably."""

    @abstractmethod
    def clusters(
        self, view: int | Int[np.ndarray, "*draw"], draws: slice = slice(None)
    ) -> Int[np.ndarray, "draw item"]:
        """Return the clusters of all items in one view of some draws."""

    @abstractmethod
    def consensus(self, view: int) -> Int[np.ndarray, " item"]:
        """Return the most probable cluster of each item in a view."""

    @abstractmethod
    def pair_probability(
        self, a: Int[np.ndarray, " pair"], b: Int[np.ndarray, " pair"], expert: Int[np.ndarray, " pair"] | None = None
    ) -> Float[np.ndarray, "pair view"]:
        """Return how probably items, by their codes, are together in each view; of an expert, and it is his."""

    @abstractmethod
    def expert_code(self, expert: Any) -> int:
        """Return the code of an expert, by id or code."""

    def blocks(self, question: Question) -> Iterator[Block]:
        """Refuse: views have several answers to every question."""
        raise UnsupportedRequest(_SEVERAL)

    def answers(self, question: Question) -> bool:
        """Return whether `blocks` would answer: never."""
        return False

    def estimate(self) -> Int[np.ndarray, " item"]:
        """Refuse: views have several estimates."""
        raise UnsupportedRequest(_SEVERAL)

    def read_as(self, kind: str, *, view: int | None = None, expert: Any = None, **which: Any) -> Truth:
        """Return the partition of the items in one view, or the one that an expert has in mind.

        Parameters
        ----------
        kind : of the truth that is wanted.
        view, expert : one of them, for a partition. Of an expert all views that may be his count.

        Raises
        ------
        UnsupportedRequest : it is not said which of the partitions is meant.
        UnknownName : there is no such view or expert.
        """
        if kind == VIEWS.name:
            return self
        if kind != PARTITION.name or (view is None) == (expert is None):
            raise UnsupportedRequest(_SEVERAL)
        if view is not None:
            return ViewPartition(self, view=self.checked_view(view))
        return ViewPartition(self, expert=self.expert_code(expert))

    def checked_view(self, view: int) -> int:
        """Return the number of a view, or raise an error with the numbers that there are."""
        if not 0 <= view < self.most_views:
            raise UnknownName(f"there is no view {view}; the views are 0 to {self.most_views - 1}")
        return int(view)


class ViewPartition(PartitionTruth):
    """The partition of all items in one view, or in the view of an expert, over all that it may be.

    Parameters
    ----------
    views : the draws of all views.
    view, expert : one of them, by its code.
    """

    def __init__(self, views: Views, *, view: int | None = None, expert: int | None = None) -> None:
        self.views, self.view, self.expert = views, view, expert
        self.num_units, self.num_draws = views.num_units, views.num_draws
        self.ids = {"record": views.ids["item"]} if "item" in views.ids else {}

    def clusters(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw record"]:
        """Return the cluster of each item in some draws: the code of the first item in it."""
        views, view = self.views, np.asarray(self.view)
        if self.expert is not None:
            view = views.views_of_experts(draws)[:, self.expert]
        return first_in_rows(views.clusters(view, draws), views.most_clusters)

    def pairs(self) -> Pairs:
        """Return how probably each pair is together; of few enough items."""
        number = self.num_units * (self.num_units - 1) // 2
        if number > _MOST_PAIRS:
            raise UnsupportedRequest(
                f"{self.num_units:,} items have {number:,} pairs; ask for those that you need, by "
                "together(items_a, items_b, view=… or expert=…), or score the partition, which takes no pairs"
            )
        first, second = np.triu_indices(self.num_units, 1)
        if self.expert is None:
            probability = self.views.pair_probability(first, second)[:, self.view]
        else:
            of_views = self.views.pair_probability(first, second, np.full(len(first), self.expert))
            probability = of_views.sum(axis=1)
        return Pairs(first.astype(np.int32), second.astype(np.int32), probability)

    def estimate(self) -> Int[np.ndarray, " record"]:
        """Return the consensus: each item in its most probable cluster, of an expert in his most probable view."""
        view = self.view
        if view is None:
            view = int(self.views.view_probability[self.expert].argmax())
        return first_members(self.views.consensus(view))


class Sorting(NamedTuple):
    """How a truth sorts the items.

    Parameters
    ----------
    view : the most probable one of each expert.
    label : the most probable cluster of each item in each view.
    """

    view: Int[np.ndarray, " expert"]
    label: Int[np.ndarray, "view item"]


def sorting(truth: Views) -> Sorting:
    """Return how a truth sorts the items."""
    labels = [truth.consensus(view) for view in range(truth.most_views)]
    return Sorting(truth.view_probability.argmax(axis=1), np.stack(labels))


def pairs_apart(one: Sorting, other: Sorting) -> float:
    """Return the share of pairs of items that are together in one and apart in the other, in the views of experts.

    It is the mean of the experts, each by the view that is most probably his. Views and clusters may have other
    numbers.

    Parameters
    ----------
    one, other : of the same experts and items.
    """
    views, experts = np.unique([one.view, other.view], axis=1, return_counts=True)
    shares = [_pairs_apart(one.label[of_one], other.label[of_other]) for of_one, of_other in views.T]
    return float(np.average(shares, weights=experts))


def _pairs_apart(label: Int[np.ndarray, " item"], other: Int[np.ndarray, " item"]) -> float:
    number = np.zeros((label.max() + 1, other.max() + 1))
    np.add.at(number, (label, other), 1)
    unlike = sum((number.sum(axis=axis) ** 2).sum() for axis in (0, 1)) - 2 * (number**2).sum()
    return float(unlike / (len(label) * (len(label) - 1)))


def ladders_apart(view: np.ndarray, ladders: int) -> float:
    """Return by how much ladders differ at most on how probably two experts share a view; infinite of a single one."""
    if ladders < 2:
        return np.inf
    one, other = np.triu_indices(min(view.shape[-1], _MOST_COMPARED), 1)
    of_ladder = np.asarray(view).reshape(ladders, -1, view.shape[-1])
    same = np.stack([(own[:, one] == own[:, other]).mean(axis=0) for own in of_ladder])
    return float(np.ptp(same, axis=0).max(initial=0.0))
