"""Truths about the classes of items: plausibilities of classes, or one label an item.

They answer for a block of items and all draws at a time: which classes lead (`Ranked`), how the mass falls on groups of
classes (`Mass`), and how often two annotators would agree (`Agreement`), for which those of plausibilities show these
(`Shares`). An array of draws × items × classes is never built: plausibilities are kept for the classes that
somebody named (*entries*, sorted by item and class, the entries of item i at ``first[i]:first[i + 1]``). The classes of
an item that nobody named are exchangeable: only the largest of them are kept, or their sum, and which classes those are
is drawn at random.

Equal values are ordered by the lowest class code. Where an item has fewer classes with positive mass than a ranking
needs, the ranking is filled with the lowest remaining class codes.

| class | truth is | draws come from |
|---|---|---|
| `DirichletTruth` | plausibilities | a Dirichlet posterior per item, drawn anew at each pass, the same each time |
| `PlausibilityDraws` | plausibilities | stored draws, of Gibbs, NUTS or SVI |
| `LabelDraws` | labels | stored draws |
| `LabelProbabilities` | labels | probabilities per item, drawn anew at each pass, the same each time |
| `PointTruth` | plausibilities | a point estimate, one draw |
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.mentions import Mentions
from consilience.errors import UnsupportedRequest
from consilience.models.dirichlet_quadrature import top_probabilities
from consilience.models.random import GammaQuantiles, log_largest_shares
from consilience.models.ranking import (
    LargestShares,
    PaddedBlock,
    agreement_probability,
    draw_dirichlet,
    draw_labels,
    draw_log_weights,
    group_weights,
    normalise_weights,
    pad,
    rank_dirichlet,
    rank_weights,
    rank_weights_and_other,
)
from consilience.models.truth.truth import (
    CHAINS,
    CLASSES,
    PARTITION,
    READINGS,
    Agreement,
    Block,
    Clusters,
    Marginals,
    Mass,
    Question,
    Ranked,
    Shares,
    Truth,
    block_numbers,
)

# Draws of the largest shares of the unnamed classes are shared by items. With this many of them, or fewer where so many
# classes would take more gammas than the second number, what the items have in common does not show.
_POOL_DRAWS, _POOL_GAMMAS = 1 << 12, 1 << 26

# Depths up to this one take their shares from the same pool.
_POOL_DEPTH = 3

# Gains of certainty that are sums of rounding errors; they would order the items that nothing could change.
_ROUNDING = 1e-12

# Entries, times what is held of each, that NumPy works on at a time.
_MOST_ENTRIES = 1 << 22

UNKNOWN_ERRORS = (
    "this fit does not say how annotators err, so that what another label would tell is not known; "
    "use a model of annotators, such as dawid-skene, mace or mpa"
)

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


class Entries(NamedTuple):
    """The classes that were named, item by item.

    Parameters
    ----------
    first : int64, shape ``(item + 1,)``; where the entries of each item start.
    class_ : int32, shape ``(entry,)``, increasing within an item.
    num_classes : how many classes there are in all.
    """

    first: Int[np.ndarray, " boundary"]
    class_: Int[np.ndarray, " entry"]
    num_classes: int

    @classmethod
    def of(
        cls, entry_item: Int[Array, " entry"], entry_class: Int[Array, " entry"], num_items: int, num_classes: int
    ) -> Entries:
        """Build from sorted (item, class) pairs."""
        first = np.searchsorted(np.asarray(entry_item), np.arange(num_items + 1))
        return cls(first, np.asarray(entry_class, np.int32), num_classes)

    @classmethod
    def dense(cls, num_items: int, num_classes: int) -> Entries:
        """Name every class of every item."""
        class_ = np.tile(np.arange(num_classes, dtype=np.int32), num_items)
        return cls(np.arange(num_items + 1) * num_classes, class_, num_classes)

    @property
    def num_items(self) -> int:
        """How many items there are."""
        return len(self.first) - 1

    @property
    def item(self) -> Int[np.ndarray, " entry"]:
        """Item of each entry, int64, shape ``(entry,)``."""
        return np.repeat(np.arange(self.num_items), np.diff(self.first))

    def slots(self, item: int) -> slice:
        """Return where the entries of an item are."""
        return slice(int(self.first[item]), int(self.first[item + 1]))

    @property
    def num_unnamed(self) -> Int[np.ndarray, " item"]:
        """How many classes of each item are not among its entries, shape ``(item,)``."""
        return self.num_classes - np.diff(self.first)

    def blocks(self, numbers_per_entry: int) -> Iterator[tuple[slice, slice, int, int]]:
        """Yield slices of items and entries, and the padded numbers of both, the same for every block."""
        widest = int(np.diff(self.first).max(initial=1))
        most_entries = max(block_numbers() // numbers_per_entry, widest)
        most_items = max(block_numbers() // numbers_per_entry, 1)
        starts = [0]
        while starts[-1] < self.num_items:
            by_entries = int(np.searchsorted(self.first, self.first[starts[-1]] + most_entries, side="right")) - 1
            starts.append(min(by_entries, starts[-1] + most_items, self.num_items))
        pairs = [(a, b, int(self.first[a]), int(self.first[b])) for a, b in zip(starts, starts[1:], strict=False)]
        num_items = _round_up(max(b - a for a, b, _, _ in pairs))
        num_entries = _round_up(max(1, max(d - c for _, _, c, d in pairs)))
        for a, b, c, d in pairs:
            yield slice(a, b), slice(c, d), num_items, num_entries


class Lead(NamedTuple):
    """Of each item the class that leads most often.

    Parameters
    ----------
    label : int32, shape ``(item,)``; its code.
    probability : float64, shape ``(item,)``; its mean plausibility; where the truth is a label, how often it is that.
    certainty : float64, shape ``(item,)``; how often it leads.
    """

    label: Int[np.ndarray, " item"]
    probability: Float[np.ndarray, " item"]
    certainty: Float[np.ndarray, " item"]


class ClassTruth(Truth):
    """Draws of the classes of items.

    Attributes
    ----------
    num_classes : how many there are.
    entries : the named classes; labels whose draws are stored have none.
    point : the point estimate that standard practice would take for the truth, or ``None`` where there is none. Where
        it costs time, set a function without arguments, which is called at the first use; a ``functools.partial`` of a
        module's function can be pickled with the truth.
    crowd : how annotators err, or None where that is not known. A function where it costs time.
    mentions : the mentions whose links the labels are, of a fit of them.
    """

    kind = CLASSES
    systems: tuple[str, ...] = (CLASSES.name,)
    num_classes: int
    entries: Entries
    point: PointTruth | Callable[[], PointTruth | None] | None = None
    crowd: Crowd | None = None
    mentions: Mentions | None = None

    def blocks(self, question: Question) -> Iterator[Block]:
        """Yield draws of the answer; see `Truth.blocks`."""
        match question:
            case Ranked(depth):
                return self._ranked(depth)
            case Mass(group, num_groups):
                return self._masses(np.asarray(group), num_groups)
            case Shares():
                return self._shares()
            case Agreement():
                return self._agreement()
        raise UnsupportedRequest("this truth is a class for each item, which are no clusters of anything")

    def answers(self, question: Question) -> bool:
        """Return whether `blocks` would answer."""
        return not isinstance(question, Clusters)

    def estimate(self) -> Int[np.ndarray, " item"]:
        """Return the class of each item that leads most often."""
        return self.lead.label

    def standard(self) -> PointTruth | None:
        """Return the point estimate."""
        if callable(self.point):
            self.point = self.point()
        return self.point

    def read_as(self, kind: str, **which: Any) -> Truth:
        """Return the same draws as another kind: those of labels of mentions are chains too."""
        if kind == CLASSES.name:
            return self
        if (CLASSES.name, kind) in READINGS:
            return READINGS[CLASSES.name, kind](self)
        if kind == PARTITION.name:
            raise UnsupportedRequest("this asks for the partition of records, which only a fit of records has")
        raise UnsupportedRequest("this asks for the views of experts, which only a fit of constraints has")

    def bound_to(self, data: Any) -> Truth:
        """Say which data this is a truth of; labels of mentions hold their links."""
        if isinstance(data, Mentions):
            self.mentions, self.systems = data, (CHAINS.name, CLASSES.name)
        return super().bound_to(data)

    @functools.cached_property
    def lead(self) -> Lead:
        """Of each item the class that leads most often."""
        return self._lead()

    @abstractmethod
    def _ranked(self, depth: int) -> Iterator[Block]:
        """Yield blocks of the leading classes."""

    @abstractmethod
    def _masses(self, group: Int[np.ndarray, " class"], num_groups: int) -> Iterator[Block]:
        """Yield blocks of the plausibility of each group."""

    def _shares(self) -> Iterator[Block]:
        """Yield blocks of the plausibilities, where the truth is made of them."""
        raise UnsupportedRequest(
            "the truth of this fit is one label per item, which does not say how often annotators agree: that takes "
            "their errors too; use a model of plausibilities, such as dirichlet or plackett-luce"
        )

    def _agreement(self) -> Iterator[Block]:
        """Yield blocks of the probability that two annotations agree: of plausibilities, the sum of their squares."""
        for block in self._shares():
            yield block._replace(values=block.values.agreement())

    def _lead(self) -> Lead:
        label, certainty = np.zeros(self.num_units, np.int32), np.zeros(self.num_units)
        for block in self._ranked(1):
            label[block.units], certainty[block.units] = most_frequent(block.real[:, :, 0])
        return Lead(label, self._mean_plausibility(label, certainty), certainty)

    def _mean_plausibility(self, label: np.ndarray, certainty: np.ndarray) -> np.ndarray:
        """Mean plausibility of one class per item; where the truth is a label, how often it is that label."""
        return certainty

    def _block(self, items: slice, values: Any) -> Block:
        return Block(items, slice(0, self.num_draws), values)

    @abstractmethod
    def drawn_shares(self, positions: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return of some items the codes of the classes that may be true, and their plausibilities ``(draw, class)``.

        What the classes that are not among them have together is a last column without a code.
        """

    def mean_shares(self, positions: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return of some items the codes of the classes that may be true, and their mean plausibilities."""
        return [(codes, draws.mean(axis=0)[: len(codes)]) for codes, draws in self.drawn_shares(positions)]


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

    def _ranked(self, depth: int) -> Iterator[Block]:
        """Yield the leading classes; see `Ranked`."""
        quantiles = GammaQuantiles.of(self.unnamed) if self.unnamed > 0 else None
        blocks = self.entries.blocks(self.num_draws)
        for number, (items, slots, num_items, num_entries) in enumerate(blocks):
            padded = _pad_block(self.entries, items, slots, num_items, num_entries)
            concentration = pad(self.concentration[slots], num_entries, 1.0)
            key = jax.random.fold_in(self.key, number)
            yield self._block(items, rank_dirichlet(key, concentration, quantiles, padded, self.num_draws, depth))

    def _masses(self, group: Int[np.ndarray, " class"], num_groups: int) -> Iterator[Block]:
        """Yield masses of groups: the mass of a group is Dirichlet too, with the sum of the concentrations."""
        concentration = self.group_concentration(group, num_groups)
        num_rows = block_rows(self.num_units, num_groups * self.num_draws)
        for start in range(0, self.num_units, num_rows):
            items = slice(start, min(start + num_rows, self.num_units))
            key = jax.random.fold_in(jax.random.fold_in(self.key, 1 << 30), start)
            yield self._block(items, draw_dirichlet(key, pad(concentration[items], num_rows, 1.0), self.num_draws))

    def _shares(self) -> Iterator[Block]:
        """Yield plausibilities; see `Shares`. They are independent of what `Ranked` draws."""
        for number, (items, slots, num_items, num_entries) in enumerate(self.entries.blocks(self.num_draws)):
            padded = _pad_block(self.entries, items, slots, num_items, num_entries)
            concentration = pad(self.concentration[slots], num_entries, 1.0)
            other = self.unnamed * pad(np.asarray(padded.num_unnamed, float), num_items, 0.0)
            key = jax.random.fold_in(jax.random.fold_in(self.key, 1 << 29), number)
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
            key = jax.random.fold_in(jax.random.fold_in(self.other.key, _RANKED), number)
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
        rows = max(1, block_numbers() // max(1, len(item), self.num_units))
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
            padded = _pad_block(self.entries, items, slots, num_items, num_entries)
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
            key = jax.random.fold_in(self.other.key, _SHARES)
            drawn = log_largest_shares(key, float(self.other.concentration), sizes, num_draws, max(depth, _POOL_DEPTH))
            self._pool = pad(drawn, _round_up(len(sizes)), 0.0)
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
        key = jax.random.fold_in(jax.random.fold_in(self.other.key, _GROUPED), number)
        return draw_dirichlet(key, pad(concentration, len(concentration), 1.0), self.num_draws)


Rows = np.ndarray | slice
"""Which rows of the data: their numbers, or a slice."""


class Crowd:
    """How a crowd labels items whose true label is known; each part is made at its first use.

    Parameters
    ----------
    confusion : makes the posterior mean of how probably an annotator, taken by how much they annotate, gives an item of
        each class each label, ``(class, label)``.
    agreement : makes ``(draw, class)``; the probability that two different annotators give an item of that class the
        same label, annotators taken by how much they annotate. None where there are no two.
    annotate : ``annotate(random, draw, label, rows)`` -> labels ``(annotation,)``: the annotations that the annotators
        of the data would give, were ``label``, shape ``(item,)``, the truth and the draw-th draw their errors; of some
        rows of the data alone, or of all, a slice. ``random`` is a NumPy generator. None where there are no two.
    moments : makes the exact means and variances, ``(class,)`` each, of what ``agreement`` draws, where classes are
        independent. None where draws alone tell them.
    """

    def __init__(
        self, confusion: Callable[[], np.ndarray] | None = None, agreement: Callable[[], np.ndarray] | None = None,
        annotate: Callable[..., np.ndarray] | None = None,
        moments: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None,
    ) -> None:  # fmt: skip
        self._confusion, self._agreement, self._annotate, self.moments = confusion, agreement, annotate, moments

    @property
    def agrees(self) -> bool:
        """Whether there are two annotators who could agree."""
        return self._agreement is not None

    @functools.cached_property
    def agreement(self) -> Float[np.ndarray, "draw class"]:
        """How probably two annotators agree, by draw and class."""
        assert self._agreement is not None
        return np.asarray(self._agreement(), float)

    @functools.cached_property
    def mean_confusion(self) -> Float[np.ndarray, "class label"]:
        """How an annotator, taken by how much they annotate, labels items of each class."""
        assert self._confusion is not None
        # Rows of float32 add up to one only nearly, and what is missing would look like a gain or a loss.
        confusion = np.asarray(self._confusion(), float)
        return confusion / confusion.sum(axis=1, keepdims=True)

    def annotate(
        self, random: np.random.Generator, draw: int, label: np.ndarray, rows: Rows = slice(None)
    ) -> np.ndarray:
        """Label the items of the data anew, or those of some rows alone."""
        assert self._annotate is not None
        return self._annotate(random, draw, label, rows)

    def column(self, item: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Return which column of ``agreement`` is that of an item with a true label: that of the label."""
        return label

    def gain(self, truth: ClassTruth) -> Float[np.ndarray, " item"]:
        r"""Return how much more certain each item is expected to be after one more annotation.

        With r the probabilities of an item's labels and :math:`\bar\Theta` the crowd's mean confusion, the label that
        comes in is l with probability :math:`\sum_t r_t \bar\Theta_{tl}`, and the gain is
        :math:`\sum_l \max_t r_t \bar\Theta_{tl} - \max_t r_t`, which is never negative.
        """
        if self._confusion is None:
            raise UnsupportedRequest(UNKNOWN_ERRORS)
        confusion, (first, code, probability, _) = self.mean_confusion, marginals(truth)
        gain = np.empty(truth.num_units)
        for items, slots in _entry_blocks(first, confusion.shape[1]):
            starts = first[items] - slots.start
            joint = probability[slots, None] * confusion[code[slots]]
            expected = np.maximum.reduceat(joint, starts).sum(axis=1)
            gain[items] = expected - np.maximum.reduceat(probability[slots], starts)
        return np.where(gain > _ROUNDING, gain, 0.0)


def _entry_blocks(first: Int[np.ndarray, " boundary"], numbers_per_entry: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of items and of their entries, few enough at a time for NumPy."""
    most, start, last = max(_MOST_ENTRIES // numbers_per_entry, 1), 0, len(first) - 1
    while start < last:
        stop = max(int(np.searchsorted(first, first[start] + most, side="right")) - 1, start + 1)
        yield slice(start, stop), slice(int(first[start]), int(first[stop]))
        start = stop


class LabelTruth(ClassTruth):
    """Labels: only the leading class of an item is known."""

    @abstractmethod
    def labels(self) -> Iterator[Block]:
        """Yield labels, ``(item, draw)``."""

    @abstractmethod
    def label_probabilities(self) -> Marginals:
        """Return the labels that an item may have, and how probable each of them is, as far as the draws tell."""

    def labels_of(
        self, draws: Int[np.ndarray, " wanted"], items: Int[np.ndarray, " chosen"] | None = None
    ) -> Int[np.ndarray, "wanted item"]:
        """Return the labels of some draws, of all items or of some."""
        found = np.empty((len(draws), self.num_units), np.int32)
        for block in self.labels():
            found[:, block.units] = block.real[:, draws].T
        return found if items is None else found[:, items]

    def answers(self, question: Question) -> bool:
        """Return whether `blocks` would answer."""
        match question:
            case Ranked(depth):
                return depth == 1
            case Agreement():
                return self.crowd is not None and self.crowd.agrees
        return isinstance(question, Mass)

    def _ranked(self, depth: int) -> Iterator[Block]:
        """Yield the labels; a depth above one has no answer."""
        if depth > 1:
            raise UnsupportedRequest(
                f"the truth of this fit is one label per item, so the {depth} most plausible classes are not defined; "
                "use top=1 or a metric of the top label (top-k)"
            )
        for block in self.labels():
            yield block._replace(values=block.values[:, :, None])

    def _masses(self, group: Int[np.ndarray, " class"], num_groups: int) -> Iterator[Block]:
        """Yield indicators of the label's group."""
        for block in self.labels():
            of_label = group[np.asarray(block.values)][:, :, None]
            yield block._replace(values=(of_label == np.arange(num_groups)).astype(np.float32))

    def _agreement(self) -> Iterator[Block]:
        """Yield how often two annotators agree on an item with each draw's label."""
        if self.crowd is None or not self.crowd.agrees:
            yield from super()._agreement()
            return
        draw, items = np.arange(self.num_draws), np.arange(self.num_units)
        for block in self.labels():
            column = self.crowd.column(items[block.units, None], block.real)
            yield block._replace(values=self.crowd.agreement[draw, column])

    def drawn_shares(self, positions: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return draws that are 0 or 1; see `ClassTruth.drawn_shares`."""
        wanted = np.asarray(positions)
        labels = np.zeros((len(wanted), self.num_draws), int)
        for block in self.labels():
            here = (wanted >= block.units.start) & (wanted < block.units.stop)
            labels[here] = block.real[wanted[here] - block.units.start]
        codes = [np.unique(row) for row in labels]
        return [(code, (row[:, None] == code).astype(float)) for code, row in zip(codes, labels, strict=True)]


def leading(truth: ClassTruth) -> dict[str, np.ndarray]:
    """Tabulate, per item, the class that leads most often: its mean plausibility and how often it leads.

    Returns
    -------
    Columns ``item, label`` (codes), ``probability`` (mean plausibility of the label) and ``certainty``.
    """
    return {"item": np.arange(truth.num_units), **truth.lead._asdict()}


def marginals(truth: ClassTruth) -> Marginals:
    """Return how probable each class is to lead: exactly where that is known, else how often it does."""
    found = truth.exact(Ranked(1))
    if found is not None:
        return found
    parts = []
    rows = max(_MOST_ENTRIES // truth.num_classes, 1)
    for block in truth.blocks(Ranked(1)):
        every = block.real[:, :, 0]
        for start in range(0, len(every), rows):
            codes = every[start : start + rows]
            cell = np.arange(len(codes))[:, None] * truth.num_classes + codes
            number = np.bincount(cell.ravel(), minlength=len(codes) * truth.num_classes)
            occurs = np.flatnonzero(number)
            parts.append((occurs + (block.units.start + start) * truth.num_classes, number[occurs]))
    cells, numbers = (np.concatenate(part) for part in zip(*parts, strict=True))
    item, code = np.divmod(cells, truth.num_classes)
    first = np.searchsorted(item, np.arange(truth.num_units + 1))
    return Marginals(first, code.astype(np.int32), numbers / truth.num_draws, np.zeros(truth.num_units))


def most_probable(found: Marginals) -> tuple[Int[np.ndarray, " item"], Float[np.ndarray, " item"]]:
    """Return the most probable named class of each item, of equal ones the lowest code, and its probability."""
    first = found.first
    highest = np.maximum.reduceat(found.probability, first[:-1])
    leads = np.flatnonzero(found.probability == np.repeat(highest, np.diff(first)))
    return found.code[leads[np.searchsorted(leads, first[:-1])]], highest


def code_dtype(num_classes: int) -> np.dtype:
    """Return the smallest signed integer type that holds all codes: draws of a million labels are many numbers."""
    return np.min_scalar_type(-max(num_classes, 1))


class LabelDraws(LabelTruth):
    """Labels of which draws are stored.

    Parameters
    ----------
    label : integer codes, shape ``(draw, item)``; kept in the type of `code_dtype`, a byte each of up to 128 labels.
    num_classes : how many labels there are.
    crowd : how annotators err, in the same draws.
    """

    def __init__(self, label: Array, num_classes: int, crowd: Crowd | None = None) -> None:
        self.draws, self.crowd = np.asarray(label, code_dtype(num_classes)), crowd
        self.num_draws, self.num_units = self.draws.shape
        self.num_classes = num_classes

    def labels(self) -> Iterator[Block]:
        """Yield the stored labels."""
        rows = block_rows(self.num_units, self.num_draws)
        for start in range(0, self.num_units, rows):
            items = slice(start, min(start + rows, self.num_units))
            yield self._block(items, pad(self.draws[:, items].T.astype(np.int32), rows, 0))

    def label_probabilities(self) -> Marginals:
        """Return the labels that were drawn and how often."""
        return marginals(self)


class LabelProbabilities(LabelTruth):
    """Labels with known probabilities, independent between items: what CAVI and EM end with.

    Parameters
    ----------
    entries : the candidates of each item.
    probability : float64, shape ``(entry,)``, not negative; normalised over the candidates of an item.
    key, num_draws : the draws are a function of these, so that every pass sees the same ones.
    crowd : how annotators err, in as many draws.
    """

    independent_items = True

    def __init__(
        self, entries: Entries, probability: np.ndarray, *, key: Key, num_draws: int, crowd: Crowd | None = None
    ) -> None:
        item = entries.item
        total = np.bincount(item, probability, entries.num_items)
        self.entries, self.probability = entries, np.asarray(probability, float) / total[item]
        self.key, self.num_draws, self.crowd = key, num_draws, crowd
        self.num_units, self.num_classes = entries.num_items, entries.num_classes

    @classmethod
    def dense(cls, probability: Float[np.ndarray, "item class"], **more: Any) -> LabelProbabilities:
        """Wrap probabilities of all classes, shape ``(item, class)``."""
        return cls(Entries.dense(*probability.shape), np.ravel(probability), **more)

    def labels(self) -> Iterator[Block]:
        """Yield labels, by the inverse of the distribution function."""
        before = np.cumsum(self.probability) - self.probability
        start = before[np.minimum(self.entries.first[:-1], len(before) - 1)]
        counts = np.diff(self.entries.first)
        for number, (items, slots, num_items, num_entries) in enumerate(self.entries.blocks(self.num_draws)):
            padded = _pad_block(self.entries, items, slots, num_items, num_entries)
            lowest = pad(before[slots] - np.repeat(start[items], counts[items]), num_entries, 2.0)
            key = jax.random.fold_in(self.key, number)
            values = draw_labels(key, jnp.asarray(lowest, jnp.result_type(float)), padded, self.num_draws)
            yield self._block(items, values)

    def labels_of(
        self, draws: Int[np.ndarray, " wanted"], items: Int[np.ndarray, " chosen"] | None = None
    ) -> Int[np.ndarray, "wanted item"]:
        """Return labels of their own for some draws, made on the host: labels are independent of all else."""
        ends, first, last = np.cumsum(self.probability), self.entries.first[:-1], self.entries.first[1:] - 1
        if items is not None:
            first, last = first[items], last[items]
        start = ends[first] - self.probability[first]
        random = np.random.default_rng(np.asarray(jax.random.key_data(self.key)))
        found = np.empty((len(draws), len(first)), np.int32)
        for row in found:
            place = np.searchsorted(ends, start + random.random(len(first)), side="right")
            row[:] = self.entries.class_[np.clip(place, first, last)]
        return found

    def label_probabilities(self) -> Marginals:
        """Return the probabilities themselves."""
        return Marginals(self.entries.first, self.entries.class_, self.probability, np.zeros(self.num_units))

    def exact(self, question: Question) -> Marginals | None:
        """Return the probabilities, of labels or of groups of them."""
        match question:
            case Ranked(1):
                return self.label_probabilities()
            case Mass(group, num_groups):
                cell = self.entries.item * num_groups + np.asarray(group)[self.entries.class_]
                total = np.bincount(cell, self.probability, self.num_units * num_groups)
                codes = np.tile(np.arange(num_groups, dtype=np.int32), self.num_units)
                first = np.arange(self.num_units + 1) * num_groups
                return Marginals(first, codes, total, np.zeros(self.num_units))
        return None

    def _lead(self) -> Lead:
        label, highest = most_probable(self.label_probabilities())
        return Lead(label, highest, highest)

    def mean_shares(self, positions: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the probabilities of some items' labels."""
        slots = [self.entries.slots(position) for position in positions]
        return [(self.entries.class_[own], self.probability[own]) for own in slots]


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


def most_frequent(
    codes: Int[np.ndarray, "item draw"],
) -> tuple[Int[np.ndarray, " item"], Float[np.ndarray, " item"]]:
    """Return the most frequent value of each row and its share; the lowest one where several are.

    Parameters
    ----------
    codes : integers, shape ``(item, draw)``.
    """
    ordered = np.sort(codes, axis=1)
    num_draws = codes.shape[1]
    place = np.arange(num_draws)
    starts = np.ones(codes.shape, bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    run = place - np.maximum.accumulate(np.where(starts, place, 0), axis=1) + 1
    end = run.argmax(axis=1)
    rows = np.arange(len(codes))
    return ordered[rows, end], run[rows, end] / num_draws


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


def block_rows(num_items: int, numbers_per_item: int) -> int:
    """Return how many items a block should hold so that it neither outgrows memory nor compiles for every data set."""
    return _round_up(max(1, min(block_numbers() // numbers_per_item, num_items)))


def _normalised(log_weight: np.ndarray) -> np.ndarray:
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True, initial=-np.inf))
    return weight / weight.sum(axis=1, keepdims=True)


def _round_up(length: int) -> int:
    """Round up to three significant bits, so that data sets of similar size share a compiled program."""
    unit = 1 << max(0, length.bit_length() - 3)
    return -(-length // unit) * unit


def _pad_block(entries: Entries, items: slice, slots: slice, num_items: int, num_entries: int) -> PaddedBlock:
    counts = np.diff(entries.first[items.start : items.stop + 1])
    within = np.arange(slots.stop - slots.start) - np.repeat(entries.first[items] - slots.start, counts)
    return PaddedBlock(
        segment=pad(np.repeat(np.arange(len(counts), dtype=np.int32), counts), num_entries, num_items),
        class_=pad(entries.class_[slots], num_entries, 0),
        position=pad(within.astype(np.int32), num_entries, 0),
        num_named=pad(counts.astype(np.int32), num_items, 0),
        num_unnamed=pad((entries.num_classes - counts).astype(np.int32), num_items, 0),
    )


def _plausibilities(
    items: slice, slots: slice, padded: PaddedBlock, log_weight: Array, log_other: Array, concentration: float
) -> Plausibilities:
    of_each = jnp.asarray(concentration, jnp.result_type(float))
    return Plausibilities(items, slots, padded.segment, *normalise_weights(log_weight, log_other, of_each, padded))
