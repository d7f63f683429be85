"""Answers of the experts, and features of the items that they spoke about, as the kernels read them; on the host.

Only items that occur in a pair, called *judged*, enter: an item that nobody spoke about can be integrated out exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from consilience.arrays import Float, Int
from consilience.models.rows import sorted_order


@jax.tree_util.register_static
@dataclass(frozen=True)
class Answers:
    """Which answers there are, which is part of a program: grades from apart to together, then those that say nothing.

    Parameters
    ----------
    grades, blanks : how many.
    """

    grades: int
    blanks: int


class Judgements(NamedTuple):
    """What the experts said.

    Parameters
    ----------
    item : shape ``(judged,)``; codes of the items that occur in a pair, increasing.
    feature : shape ``(judged, feature + 1)``; standardised, and a last column of ones for the offset.
    first, second : shape ``(pair,)``; places among the judged items, ``first < second``; each pair once.
    answer_expert, answer_pair : shape ``(answer,)``; one row per expert and pair, sorted by expert.
    said : shape ``(answer, kind)``; how often the expert gave each answer to the pair: the answers to pairs that were
        shown in the first way, apart first, then those to pairs that were shown in the second way.
    number : shape ``(expert, kind)``; how often the expert gave each answer at all.
    begin, neighbour, neighbour_pair : lists of the pairs that each item is in, one after the other: where they begin,
        and the last ends, the other ends and the pairs.
    answers : which answers there are.
    """

    item: Int[np.ndarray, " judged"]
    feature: Float[np.ndarray, "judged column"]
    first: Int[np.ndarray, " pair"]
    second: Int[np.ndarray, " pair"]
    answer_expert: Int[np.ndarray, " answer"]
    answer_pair: Int[np.ndarray, " answer"]
    said: Int[np.ndarray, "answer kind"]
    number: Int[np.ndarray, "expert kind"]
    begin: Int[np.ndarray, " judged_and_one"]
    neighbour: Int[np.ndarray, " edge"]
    neighbour_pair: Int[np.ndarray, " edge"]
    answers: Answers

    @property
    def num_experts(self) -> int:
        """Number of experts, which a prior that is a function of the data may ask for."""
        return self.number.shape[-2]

    @property
    def num_orders(self) -> int:
        """In how many ways pairs were shown."""
        return self.number.shape[-1] // self.num_answers

    @property
    def num_answers(self) -> int:
        """How many different answers there may be."""
        return self.answers.grades + self.answers.blanks

    @property
    def scale(self) -> Float[np.ndarray, " answer"]:
        """How much each answer says together; see `Constraints`."""
        return np.append(np.linspace(0, 1, self.answers.grades), [np.nan] * self.answers.blanks)

    def size_of(self, dimension: str) -> int | None:
        """Return how many experts or answers there are, as `Contract.size_of` does; None of what settings decide."""
        return {"expert": self.num_experts, "answer": self.num_answers}.get(dimension)


class Standard(NamedTuple):
    """Mean and standard deviation by which features are standardised, shape ``(feature,)``; 0 of a constant one."""

    mean: Float[np.ndarray, " feature"]
    scale: Float[np.ndarray, " feature"]


def judgements(data: Any, standardize: bool = True) -> tuple[Judgements, Standard]:
    """Return the layout of `Constraints`, and how the features were standardised.

    Parameters
    ----------
    data : `Constraints`.
    standardize : whether features are brought to mean 0 and standard deviation 1 over all items.
    """
    expert, item_a, item_b, answer = (np.asarray(v) for v in (data.expert, data.item_a, data.item_b, data.together))
    item = judged_items(data)
    place = np.zeros(data.num_items, np.int64)
    place[item] = np.arange(len(item))
    pair_key, pair = np.unique(place[item_a] * len(item) + place[item_b], return_inverse=True)
    first, second = (pair_key // len(item)).astype(np.int32), (pair_key % len(item)).astype(np.int32)
    row_key, row = np.unique(expert.astype(np.int64) * len(pair_key) + pair, return_inverse=True)
    kind = answer if data.order is None else answer + data.num_answers * np.asarray(data.order)
    kinds = data.num_answers * data.num_orders

    def counted(owner: np.ndarray, number: int) -> np.ndarray:
        found = np.bincount(owner.astype(np.int64) * kinds + kind, minlength=number * kinds)
        return found.reshape(-1, kinds).astype(np.int32)

    end, other = np.concatenate([first, second]), np.concatenate([second, first])
    by_end = sorted_order(end)
    standard = standard_of(np.asarray(data.feature), standardize)
    found = Judgements(
        item=item.astype(np.int32),
        feature=standardised(np.asarray(data.feature)[item], standard),
        first=first,
        second=second,
        answer_expert=(row_key // len(pair_key)).astype(np.int32),
        answer_pair=(row_key % len(pair_key)).astype(np.int32),
        said=counted(row, len(row_key)),
        number=counted(expert, data.num_experts),
        begin=np.searchsorted(end[by_end], np.arange(len(item) + 1)),
        neighbour=other[by_end],
        neighbour_pair=(by_end % len(first)).astype(np.int32),
        answers=Answers(data.num_grades or 2, data.num_blanks or 0),
    )
    return found, standard


def judged_items(data: Any) -> Int[np.ndarray, " judged"]:
    """Return the codes of the items of `Constraints` that occur in a pair, increasing."""
    occurs = np.zeros(data.num_items, bool)
    occurs[np.asarray(data.item_a)] = occurs[np.asarray(data.item_b)] = True
    return np.flatnonzero(occurs)


def standard_of(feature: Float[np.ndarray, "item feature"], standardize: bool = True) -> Standard:
    """Return mean and standard deviation of the columns, or 0 and 1 where features are to stay as they are.

    A constant column has scale 0 either way.
    """
    if len(feature) == 0:
        return Standard(np.zeros(feature.shape[1]), np.ones(feature.shape[1]))
    constant = np.ptp(feature, axis=0) == 0
    mean, scale = (feature.mean(axis=0), feature.std(axis=0)) if standardize else (0.0, 1.0)
    return Standard(np.where(constant, feature[0], mean), np.where(constant, 0.0, scale))


def standardised(feature: Float[np.ndarray, "item feature"], standard: Standard) -> Float[np.ndarray, "item column"]:
    """Return standardised features, and a last column of ones.

    What was constant becomes zeros, of new items too: of what another value of it means, nothing was learned.
    """
    feature = np.asarray(feature, float) - standard.mean
    feature = np.divide(feature, standard.scale, out=np.zeros_like(feature), where=standard.scale > 0)
    return np.concatenate([feature, np.ones((len(feature), 1))], axis=1)
