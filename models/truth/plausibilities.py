"""Truths that are plausibilities of classes: of a Dirichlet posterior, of stored draws, or a point estimate."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy import special

from consilience.arrays import Array, Float, Int, Key
from consilience.models.dirichlet_quadrature import top_probabilities
from consilience.models.keys import folded_key
from consilience.models.random import GammaQuantiles, log_largest_shares
from consilience.models.ranking import (
    LargestShares,
    PaddedBlock,
    agreement_probability,
    draw_dirichlet,
    draw_log_weights,
    group_weights,
    normalise_weights,
    rank_dirichlet,
    rank_weights,
    rank_weights_and_other,
)
from consilience.models.truth.classes import ClassTruth, Lead
from consilience.models.truth.entries import Entries, block_rows, pad, pad_block, round_up
from consilience.models.truth.truth import Block, Marginals, Question, Ranked

# Draws of the largest shares of the unnamed classes are shared by items. With this many of them, or fewer where so many
# classes would take more gammas than the second number, what the items have in common does not show.
_POOL_DRAWS, _POOL_GAMMAS = 1 << 12, 1 << 26

# Depths up to this one take their shares from the same pool.
_POOL_DEPTH = 3

# Nodes of the quadrature over how unnamed classes divide their mass, and an agreement, times their number, that is one
# but for rounding: they have equal shares.
_DIVISION_NODES, _EQUAL = 16, 1e-5

# Numbers of streams of random keys.
_SHARES, _RANKED, _GROUPED = range(3)


class Plausibilities(NamedTuple):
    r"""Plausibilities of the classes of some items in all draws, which sum to one within an item and draw.

    A padded block: the first ``len(items)`` items and ``len(entries)`` entries are real, and blocks of one pass have
    one shape.

    Parameters
    ----------
    items, entries : slices of the items, and of their entries.
    segment : shape ``(entry,)``; the item within the block of each entry, and their padded number at the padding.
    named : shape ``(entry, draw)``; the plausibility of each named class.
    other : shape ``(item, draw)``; that of the item's unnamed classes together.
    other_agreement : shape ``(item, draw)``; the probability that two annotations, both of unnamed classes, are of one
        class. U classes that divide their mass as a symmetric Dirichlet variable of concentration a agree with
        probability :math:`(a + 1) / (U a + 1)`, the expected sum of their squared shares: how that sum varies from draw
        to draw is left out. Where nothing is known of an item it is 1/U.
    """

    items: slice
    entries: slice
    segment: Array
    named: Array
    other: Array
    other_agreement: Array

    def agreement(self) -> Float[Array, "item draw"]:
        r"""Return the probability that two annotations agree, :math:`\sum_c \lambda_{ic}^2`; padded as ``other``."""
        return agreement_probability(self.named, self.other, self.other_agreement, self.segment)

    def division(self, items: slice, num_unnamed: Int[np.ndarray, " item"]) -> Float[np.ndarray, "node 2 item"]:
        r"""Return what share of ``other`` one of an item's unnamed classes has, as nodes and weights of a quadrature.

        It is for expectations of functions f that are 0 at a share s of 0, and exact for polynomials. As s is
        :math:`\mathrm{Beta}(a, (U - 1) a)`, of which ``other_agreement`` tells a, :math:`\mathrm E f(s)` is
        :math:`\mathrm E [f(s) / s] / U` under :math:`\mathrm{Beta}(a + 1, (U - 1) a)`, whose density has no pole at 0.
        Draws in which nothing is known of an item are not divided in another way than the rest. Items are some of the
        block, each with so many unnamed classes.
        """
        agreement = np.asarray(self.other_agreement[items], float).max(axis=1)
        found = [_division(*one) for one in zip(num_unnamed.tolist(), agreement.tolist(), strict=True)]
        return np.transpose(found, (1, 2, 0))


@functools.cache
def _division(number: int, agreement: float) -> Float[np.ndarray, "node 2"]:
    """Return nodes and weights of a share (Gauss-Jacobi); one alone counts where the shares are equal."""
    excess = agreement * number - 1
    if number <= 1 or excess < _EQUAL:
        return np.array([[1 / max(number, 1), 1.0]] + [[0.0, 0.0]] * (_DIVISION_NODES - 1))
    concentration = max(1 - agreement, 0.0) / excess
    node, weight = special.roots_jacobi(_DIVISION_NODES, (number - 1) * concentration - 1, concentration)
    share = (1 + node) / 2
    return np.stack([share, weight / weight.sum() / (number * share)], axis=1)


class OtherMass(NamedTuple):
    """The summed plausibility of the classes of an item that nobody named.

    It divides among those classes as a symmetric Dirichlet variable, which is independent of everything else.

    Parameters
    ----------
    log_weight : shape ``(draw, item)``, on the scale of the named classes' weights; read only where an item has such
        classes.
    concentration : positive, of each class.
    key : of the division, so that every pass sees the same one.
    """

    log_weight: Float[Array, "draw item"]
    concentration: float
    key: Key


class DirichletTruth(ClassTruth):
    """Plausibilities with a Dirichlet posterior, independent between items.

    Parameters
    ----------
    entries : the named classes.
    concentration : float64, shape ``(entry,)``, positive.
    unnamed : concentration of each class of an item that is not among its entries; 0 excludes those classes.
    key, num_draws : the draws are a function of these, so that every pass sees the same ones.
    """

    independent_items = True

    def __init__(
        self, entries: Entries, concentration: np.ndarray, unnamed: float, *, key: Key, num_draws: int
    ) -> None:
        self.entries, self.concentration, self.unnamed = entries, np.asarray(concentration, float), float(unnamed)
        self.key, self.num_draws = key, num_draws
        self.num_units, self.num_classes = entries.num_items, entries.num_classes

    def with_fewer_draws(self, number: int) -> DirichletTruth:
        """Return the same posterior with at most so many draws."""
        fewer = copy.copy(self)
        fewer.num_draws = min(self.num_draws, number)
        return fewer

    def _ranked(self, depth: int) -> Iterator[Block]:
        """Yield the leading classes; see `Ranked`."""
        quantiles = GammaQuantiles.of(self.unnamed) if self.unnamed > 0 else None
        blocks = self.entries.blocks(self.num_draws)
        for number, (items, slots, num_items, num_entries) in enumerate(blocks):
            padded = pad_block(self.entries, items, slots, num_items, num_entries)
            concentration = pad(self.concentration[slots], num_entries, 1.0)
            key = folded_key(self.key, number)
            yield self._block(items, rank_dirichlet(key, concentration, quantiles, padded, self.num_draws, depth))

    def _masses(self, group: Int[np.ndarray, " class"], num_groups: int) -> Iterator[Block]:
        """Yield masses of groups: the mass of a group is Dirichlet too, with the sum of the concentrations."""
        concentration = self.group_concentration(group, num_groups)
        num_rows = block_rows(self.num_units, num_groups * self.num_draws)
        for start in range(0, self.num_units, num_rows):
            items = slice(start, min(start + num_rows, self.num_units))
            key = folded_key(folded_key(self.key, 1 << 30), start)
            yield self._block(items, draw_dirichlet(key, pad(concentration[items], num_rows, 1.0), self.num_draws))

    def _shares(self) -> Iterator[Block]:
        """Yield plausibilities; see `Shares`. They are independent of what `Ranked` draws."""
        for number, (items, slots, num_items, num_entries) in enumerate(self.entries.blocks(self.num_draws)):
            padded = pad_block(self.entries, items, slots, num_items, num_entries)
            concentration = pad(self.concentration[slots], num_entries, 1.0)
            other = self.unnamed * pad(np.asarray(padded.num_unnamed, float), num_items, 0.0)
            key = folded_key(folded_key(self.key, 1 << 29), number)
            log_weight, log_other = draw_log_weights(key, concentration, other, self.num_draws)
            yield self._block(items, _plausibilities(items, slots, padded, log_weight, log_other, self.unnamed))

    def group_concentration(self, group: Int[np.ndarray, " class"], num_groups: int) -> Float[np.ndarray, "item group"]:
        """Return the Dirichlet concentration of groups of classes, float64 ``(item, group)``."""
        group = np.asarray(group)
        cell = self.entries.item * num_groups + group[self.entries.class_]
        size = self.num_units * num_groups
        named = np.bincount(cell, self.concentration, size).reshape(self.num_units, num_groups)
        if self.unnamed == 0:
            return named
        number_named = np.bincount(cell, minlength=size).reshape(self.num_units, num_groups)
        return named + self.unnamed * (np.bincount(group, minlength=num_groups) - number_named)

    def mean(self) -> Float[np.ndarray, " entry"]:
        """Posterior mean of each entry, shape ``(entry,)``."""
        counts = np.diff(self.entries.first)
        named = np.bincount(self.entries.item, self.concentration, self.num_units)
        total = named + self.unnamed * (self.num_classes - counts)
        return self.concentration / np.repeat(total, counts)

    def exact(self, question: Question) -> Marginals | None:
        """Return the probability that each class leads, by one-dimensional quadrature."""
        return self._top if question == Ranked(1) else None

    @functools.cached_property
    def _top(self) -> Marginals:
        entries = self.entries
        found = top_probabilities(entries.first, self.concentration, self.unnamed, self.num_classes)
        return Marginals(entries.first, entries.class_, *found)

    def _lead(self) -> Lead:
        item, first = self.entries.item, self.entries.first
        probability = self._top
        # The largest concentration leads most often. Of an item without entries every class is alike: the first
        # stands for all.
        order = np.lexsort((self.entries.class_, -self.concentration, item))
        named = np.diff(first) > 0
        if not len(order):
            alike = np.zeros(self.num_units, np.int32)
            return Lead(alike, alike + 1 / self.num_classes, probability.unnamed)
        best = order[np.minimum(first[:-1], len(order) - 1)]
        return Lead(
            np.where(named, self.entries.class_[best], 0), np.where(named, self.mean()[best], 1 / self.num_classes),
            np.where(named, probability.probability[best], probability.unnamed),
        )  # fmt: skip

    def drawn_shares(self, positions: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return plausibilities that are made anew; see `ClassTruth.drawn_shares`."""
        return [self._drawn_shares(position) for position in positions]

    def _drawn_shares(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        slots = self.entries.slots(position)
        codes, concentration = self.entries.class_[slots], self.concentration[slots]
        rest = self.unnamed * (self.num_classes - len(codes))
        shapes = np.append(concentration, [rest] if rest > 0 else [])
        random = np.random.default_rng(position)
        # G(a) = G(a + 1) U^(1/a), in logarithms: small concentrations put their draws below the smallest float.
        size = (self.num_draws, len(shapes))
        log_weight = np.log(random.gamma(shapes + 1, size=size)) - random.standard_exponential(size) / shapes
        return codes, _normalised(log_weight)[:, : len(codes)]

    def mean_shares(self, positions: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the mean plausibilities exactly."""
        mean = self.mean()
        slots = [self.entries.slots(position) for position in positions]
        return [(self.entries.class_[own], mean[own]) for own in slots]


class PlausibilityDraws(ClassTruth):
    """Plausibilities of which draws are stored.

    Parameters
    ----------
    entries : the classes that the draws are about.
    log_weight : shape ``(draw, entry)``; logarithms, normalised or not. Where all entries of an item are -inf, or it
        has none, and ``other`` says nothing, nothing is known of it: all classes are equally plausible.
    other : the mass of all other classes; by default they have none.
    """

    def __init__(
        self, entries: Entries, log_weight: Float[Array, "draw entry"], other: OtherMass | None = None
    ) -> None:
        self.entries, self.log_weight, self.other = entries, np.asarray(log_weight), other
        self._pool: np.ndarray | None = None
        self.num_draws = self.log_weight.shape[0]
        self.num_units, self.num_classes = entries.num_items, entries.num_classes

    @classmethod
    def dense(cls, plausibility: Float[Array, "draw item class"]) -> PlausibilityDraws:
        """Wrap plausibilities of all classes, shape ``(draw, item, class)``."""
        num_draws, num_items, num_classes = plausibility.shape
        with np.errstate(divide="ignore"):
            return cls(Entries.dense(num_items, num_classes), np.log(plausibility).reshape(num_draws, -1))

    def _ranked(self, depth: int) -> Iterator[Block]:
        """Yield the leading classes; see `Ranked`."""
        if self.other is None:
            for items, padded, log_weight in self._padded(self.num_draws):
                yield self._block(items, rank_weights(log_weight, padded, depth))
            return
        for number, (items, padded, log_weight) in enumerate(self._padded(self.num_draws)):
            log_other, largest = self._padded_other(items, padded), self._largest_shares(padded, depth)
            key = folded_key(folded_key(self.other.key, _RANKED), number)
            yield self._block(items, rank_weights_and_other(key, log_weight, log_other, largest, padded, depth))

    def _masses(self, group: Int[np.ndarray, " class"], num_groups: int) -> Iterator[Block]:
        """Yield the masses of groups; see `Mass`."""
        for number, (items, padded, log_weight) in enumerate(self._padded(self.num_draws * num_groups)):
            log_other = self._padded_other(items, padded)
            split = self._split(number, padded, np.asarray(group), num_groups)
            masses = group_weights(log_weight, log_other, split, padded, jnp.asarray(group), num_groups)
            yield self._block(items, masses)

    def _shares(self) -> Iterator[Block]:
        """Yield plausibilities; see `Shares`."""
        for items, padded, log_weight in self._padded(self.num_draws):
            slots = slice(int(self.entries.first[items.start]), int(self.entries.first[items.stop]))
            concentration = 1.0 if self.other is None else float(self.other.concentration)
            other = self._padded_other(items, padded)
            shares = _plausibilities(items, slots, padded, log_weight, other, concentration)
            yield self._block(items, shares)

    def _lead(self) -> Lead:
        lead = super()._lead()
        if self.other is None:
            return lead
        # Of an item without entries every class is alike: the first stands for all.
        alike = np.diff(self.entries.first) == 0
        return Lead(*(
            np.where(alike, value, values)
            for values, value in zip(lead, (0, 1 / self.num_classes, 1 / self.num_classes), strict=True)
        ))  # fmt: skip

    def drawn_shares(self, positions: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the stored plausibilities; see `ClassTruth.drawn_shares`."""
        return [self._drawn_shares(position) for position in positions]

    def _drawn_shares(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        slots = self.entries.slots(position)
        codes, log_weight = self.entries.class_[slots], np.asarray(self.log_weight[:, slots], float)
        if self.other is not None and len(codes) < self.num_classes:
            log_weight = np.column_stack([log_weight, self.other.log_weight[:, position]])
        # Without any mass nothing is known of an item: all classes are alike.
        known = np.isfinite(log_weight).any(axis=1, keepdims=True)
        shares = _normalised(np.where(known, log_weight, 0.0))[:, : len(codes)]
        return codes, np.where(known, shares, 1 / self.num_classes)

    def _mean_plausibility(self, label: np.ndarray, certainty: np.ndarray) -> np.ndarray:
        item, named = self.entries.item, np.flatnonzero(np.diff(self.entries.first))
        is_label = self.entries.class_ == label[item]
        # A label that nobody named has its part of the other mass.
        part = np.where(np.bincount(item, is_label, self.num_units) > 0, 0, 1 / np.maximum(self.entries.num_unnamed, 1))
        result = np.zeros(self.num_units)
        rows = block_rows(self.num_draws, max(1, len(item), self.num_units))
        for start in range(0, self.num_draws, rows):
            log_weight, log_other = self.log_weight[start : start + rows], self._log_other(slice(start, start + rows))
            highest = log_other.copy()
            if len(named):
                in_item = np.maximum.reduceat(log_weight, self.entries.first[named], axis=1)
                highest[:, named] = np.maximum(highest[:, named], in_item)
            highest = np.where(np.isfinite(highest), highest, 0.0)
            weight, other = np.exp(log_weight - highest[:, item]), np.exp(log_other - highest)
            total = other.copy()
            if len(named):
                total[:, named] += np.add.reduceat(weight, self.entries.first[named], axis=1)
            scale = 1 / np.where(total > 0, total, 1.0)
            result += np.bincount(item, (weight * is_label * scale[:, item]).sum(0), self.num_units)
            result += part * (other * scale).sum(0) + (total == 0).sum(0) / self.num_classes
        return result / self.num_draws

    def _padded(self, numbers_per_entry: int) -> Iterator[tuple[slice, PaddedBlock, np.ndarray]]:
        for items, slots, num_items, num_entries in self.entries.blocks(numbers_per_entry):
            padded = pad_block(self.entries, items, slots, num_items, num_entries)
            yield items, padded, pad(self.log_weight[:, slots].T, num_entries, 0.0)

    def _log_other(self, draws: slice = slice(None), items: slice = slice(None)) -> np.ndarray:
        """Return the mass of the unnamed classes, ``(draw, item)``; -inf where there are none."""
        unnamed = self.entries.num_unnamed[items] > 0
        if self.other is None:
            return np.full((len(self.log_weight[draws]), len(unnamed)), -np.inf)
        return np.where(unnamed, self.other.log_weight[draws, items], -np.inf)

    def _padded_other(self, items: slice, padded: PaddedBlock) -> np.ndarray:
        return pad(self._log_other(items=items).T, len(padded.num_named), -np.inf)

    def _largest_shares(self, padded: PaddedBlock, depth: int) -> LargestShares:
        """Draw the largest shares for every number of unnamed classes, once, and say which ones a block uses."""
        assert self.other is not None
        sizes = np.unique(self.entries.num_unnamed)
        if self._pool is None or self._pool.shape[1] < depth:
            num_draws = max(self.num_draws, min(_POOL_DRAWS, _POOL_GAMMAS // max(1, sizes[-1])))
            key = folded_key(self.other.key, _SHARES)
            drawn = log_largest_shares(key, float(self.other.concentration), sizes, num_draws, max(depth, _POOL_DEPTH))
            self._pool = pad(drawn, round_up(len(sizes)), 0.0)
        return LargestShares(self._pool, np.searchsorted(sizes, padded.num_unnamed))

    def _split(self, number: int, padded: PaddedBlock, group: np.ndarray, num_groups: int) -> Array:
        """Divide the mass of the unnamed classes among groups, ``(item, draw, group)``."""
        if self.other is None:
            return np.zeros((len(padded.num_named), 1, num_groups), jnp.result_type(float))
        cell = padded.segment * num_groups + group[padded.class_]
        named = np.bincount(cell, minlength=(len(padded.num_named) + 1) * num_groups).reshape(-1, num_groups)[:-1]
        unnamed = np.bincount(group, minlength=num_groups) - named
        # Where every class is named there is nothing to divide.
        concentration = np.where(unnamed.any(1, keepdims=True), self.other.concentration * unnamed, 1.0)
        key = folded_key(folded_key(self.other.key, _GROUPED), number)
        return draw_dirichlet(key, pad(concentration, len(concentration), 1.0), self.num_draws)


class PointTruth(PlausibilityDraws):
    """A point estimate: the truth that standard practice would use, one draw without uncertainty.

    Parameters
    ----------
    entries : the named classes.
    score : float64, shape ``(entry,)``; non-negative. Scores that differ by less than 1e-9 of the item's largest are
        a tie, since sums of fractions such as 1/6 + 1/3 and 1/2 differ in the last bit.
    """

    def __init__(self, entries: Entries, score: Float[Array, " entry"]) -> None:
        self.score = _merge_ties(entries, np.asarray(score, float))
        with np.errstate(divide="ignore"):
            super().__init__(entries, np.log(self.score)[None])

    @property
    def tied(self) -> Int[np.ndarray, " unit"]:
        """The places of the units of which several classes have the largest score."""
        item = self.entries.item
        largest = np.zeros(self.num_units)
        np.maximum.at(largest, item, self.score)
        leads = (self.score == largest[item]) & (self.score > 0)
        return np.flatnonzero(np.bincount(item[leads], minlength=self.num_units) > 1)

    def bucket_orders(self, width: int) -> tuple[Int[np.ndarray, "item width"], Int[np.ndarray, "item width"]]:
        """Return each item's classes best first and the number of their bucket of equal scores.

        Parameters
        ----------
        width : how many positions to return; a bucket that straddles the end is cut, so pass the width that holds
            what you need.

        Returns
        -------
        int32 arrays ``(item, width)``; -1 after the last class with a positive score.
        """
        item, class_ = self.entries.item, self.entries.class_
        order = np.lexsort((class_, -self.score, item))
        positive = order[self.score[order] > 0]
        first = np.searchsorted(item[positive], np.arange(self.num_units))
        position = np.arange(len(positive)) - first[item[positive]]
        new_item = np.diff(item[positive], prepend=-1) > 0
        new_bucket = (np.diff(self.score[positive], prepend=np.nan) != 0) & ~new_item
        bucket = np.cumsum(new_bucket)
        bucket -= bucket[first[item[positive]]] if len(positive) else 0
        keep = position < width
        classes = np.full((self.num_units, width), -1, np.int32)
        buckets = classes.copy()
        classes[item[positive][keep], position[keep]] = class_[positive][keep]
        buckets[item[positive][keep], position[keep]] = bucket[keep]
        return classes, buckets


def _merge_ties(entries: Entries, score: Float[np.ndarray, " entry"]) -> Float[np.ndarray, " entry"]:
    """Set scores that differ by rounding errors only to the lowest of them, so that they do not differ falsely."""
    item = entries.item
    largest = np.zeros(entries.num_items)
    np.maximum.at(largest, item, score)
    order = np.lexsort((score, item))
    rises = np.diff(score[order], prepend=0.0) > 1e-9 * largest[item]
    starts = rises | (np.diff(item, prepend=-1) > 0)
    merged = np.empty_like(score)
    merged[order] = score[order][np.maximum.accumulate(np.where(starts, np.arange(len(score)), 0))]
    return merged


def _normalised(log_weight: np.ndarray) -> np.ndarray:
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True, initial=-np.inf))
    return weight / weight.sum(axis=1, keepdims=True)


def _plausibilities(
    items: slice, slots: slice, padded: PaddedBlock, log_weight: Array, log_other: Array, concentration: float
) -> Plausibilities:
    of_each = jnp.asarray(concentration, jnp.result_type(float))
    return Plausibilities(items, slots, padded.segment, *normalise_weights(log_weight, log_other, of_each, padded))
