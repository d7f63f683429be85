"""Draws of the truth: what a member's `truth` returns and all that an evaluation ever sees of a fit.

A truth answers questions for a block of items and all draws at a time: which classes lead (`ranked`), how the mass
falls on groups of classes (`grouped`), and how often two annotators would agree (`agreement`), for which it shows its
`plausibilities`. An array of draws × items × classes is never built: plausibilities are kept for the classes that
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

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
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

__all__ = [
    "Block",
    "Crowd",
    "DirichletTruth",
    "Entries",
    "LabelDraws",
    "LabelProbabilities",
    "LabelTruth",
    "OtherMass",
    "Plausibilities",
    "PlausibilityDraws",
    "PointTruth",
    "TopProbabilities",
    "Truth",
    "block_rows",
    "code_dtype",
    "most_frequent",
    "most_probable",
    "pad",
]

# Numbers that one block of items may hold: 2^18 in float32 are 1 MiB, and some twenty such arrays live at once, which a
# CPU still finds in its cache. Larger blocks were slower and cost memory.
_BLOCK_NUMBERS = 1 << 18

# Draws of the largest shares of the unnamed classes are shared by items. With this many of them, or fewer where so many
# classes would take more gammas than the second number, what the items have in common does not show.
_POOL_DRAWS, _POOL_GAMMAS = 1 << 12, 1 << 26

# Depths up to this one take their shares from the same pool.
_POOL_DEPTH = 3

# Gains of certainty that are sums of rounding errors; they would order the items that nothing could change.
_ROUNDING = 1e-12

# Numbers of streams of random keys.
_SHARES, _RANKED, _GROUPED = range(3)


class Block(NamedTuple):
    """What a truth says of some items.

    ``items`` is the slice of items; ``values`` has shape ``(padded item, draw, …)``, of which the first
    ``len(items)`` are real. Blocks of one pass have one shape, so that code compiled for one serves all.
    """

    items: slice
    values: Array

    @property
    def num_items(self) -> int:
        """How many items of the block are real."""
        return self.items.stop - self.items.start


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


class TopProbabilities(NamedTuple):
    """Exact probabilities that a class leads: ``entry`` per entry, ``unnamed`` per item and class that nobody named."""

    entry: np.ndarray
    unnamed: np.ndarray


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

    @property
    def num_unnamed(self) -> Int[np.ndarray, " item"]:
        """How many classes of each item are not among its entries, shape ``(item,)``."""
        return self.num_classes - np.diff(self.first)

    def blocks(self, numbers_per_entry: int) -> Iterator[tuple[slice, slice, int, int]]:
        """Yield slices of items and entries, and the padded numbers of both, the same for every block."""
        widest = int(np.diff(self.first).max(initial=1))
        most_entries = max(_BLOCK_NUMBERS // numbers_per_entry, widest)
        most_items = max(_BLOCK_NUMBERS // numbers_per_entry, 1)
        starts = [0]
        while starts[-1] < self.num_items:
            by_entries = int(np.searchsorted(self.first, self.first[starts[-1]] + most_entries, side="right")) - 1
            starts.append(min(by_entries, starts[-1] + most_items, self.num_items))
        pairs = [(a, b, int(self.first[a]), int(self.first[b])) for a, b in zip(starts, starts[1:], strict=False)]
        num_items = _round_up(max(b - a for a, b, _, _ in pairs))
        num_entries = _round_up(max(1, max(d - c for _, _, c, d in pairs)))
        for a, b, c, d in pairs:
            yield slice(a, b), slice(c, d), num_items, num_entries


class Truth(ABC):
    """Draws of an unobserved truth about items.

    Attributes
    ----------
    num_items, num_classes, num_draws : sizes.
    classes, items : the user's ids in code order, or ``None``.
    entries : the named classes; a truth of labels has none.
    point : the point estimate that standard practice would take for the truth, or ``None`` where there is none. Where
        it costs time, set a function without arguments, which is called at the first use; a ``functools.partial`` of a
        module's function can be pickled with the truth.
    """

    num_items: int
    num_classes: int
    num_draws: int
    items: Any = None
    classes: Any = None
    entries: Entries
    _point: PointTruth | Callable[[], PointTruth | None] | None = None

    @property
    def point(self) -> PointTruth | None:
        """The point estimate."""
        if callable(self._point):
            self._point = self._point()
        return self._point

    @point.setter
    def point(self, point: PointTruth | Callable[[], PointTruth | None] | None) -> None:
        self._point = point

    @abstractmethod
    def ranked(self, depth: int) -> Iterator[Block]:
        """Yield blocks of int32 class codes ``(item, draw, depth)``, best first, -1 when the classes are used up."""

    @abstractmethod
    def grouped(self, group: Int[np.ndarray, " class"], num_groups: int) -> Iterator[Block]:
        """Yield blocks of the plausibility of each group, ``(item, draw, group)``; ``group`` maps class to group."""

    def plausibilities(self) -> Iterator[Plausibilities]:
        """Yield blocks of the plausibilities, where the truth is made of them; the same at every pass."""
        raise UnsupportedRequest(
            "the truth of this fit is one label per item, which does not say how often annotators agree: that takes "
            "their errors too; use a model of plausibilities, such as dirichlet or plackett-luce"
        )

    def agreement(self) -> Iterator[Block]:
        """Yield blocks of the probability that two annotations of an item agree, ``(item, draw)``.

        A truth of labels that knows the errors of the annotators answers in a way of its own.
        """
        for block in self.plausibilities():
            yield Block(block.items, block.agreement())

    def top_probabilities(self) -> TopProbabilities:
        """Return exact probabilities of leading, where a quadrature exists."""
        raise UnsupportedRequest(
            f"{type(self).__name__} has no exact certainty, only draws; leave out exact=True (or --exact)"
        )

    def gain_of_another_label(self) -> Float[np.ndarray, " item"]:
        """Return how much more certain each item is expected to be after one more annotation, where this is known."""
        raise UnsupportedRequest(
            "this fit does not say how annotators err, so that what another label would tell is not known; "
            "use a model of annotators, such as dawid-skene, mace or mpa"
        )

    def leading(self) -> dict[str, np.ndarray]:
        """Tabulate, per item, the class that leads most often: its mean plausibility and how often it leads.

        Returns
        -------
        Columns ``item, label`` (codes), ``probability`` (mean plausibility of the label) and ``certainty``.
        """
        label, certainty = np.zeros(self.num_items, np.int32), np.zeros(self.num_items)
        for block in self.ranked(1):
            codes = np.asarray(block.values)[: block.num_items, :, 0]
            label[block.items], certainty[block.items] = most_frequent(codes)
        probability = self._mean_plausibility(label, certainty)
        return {"item": np.arange(self.num_items), "label": label, "probability": probability, "certainty": certainty}

    def _mean_plausibility(self, label: np.ndarray, certainty: np.ndarray) -> np.ndarray:
        """Mean plausibility of one class per item; where the truth is a label, how often it is that label."""
        return certainty


class DirichletTruth(Truth):
    """Plausibilities with a Dirichlet posterior, independent between items.

    Parameters
    ----------
    entries : the named classes.
    concentration : float64, shape ``(entry,)``, positive.
    unnamed : concentration of each class of an item that is not among its entries; 0 excludes those classes.
    key, num_draws : the draws are a function of these, so that every pass sees the same ones.
    """

    def __init__(
        self, entries: Entries, concentration: np.ndarray, unnamed: float, *, key: Key, num_draws: int
    ) -> None:
        self.entries, self.concentration, self.unnamed = entries, np.asarray(concentration, float), float(unnamed)
        self.key, self.num_draws = key, num_draws
        self.num_items, self.num_classes = entries.num_items, entries.num_classes

    def ranked(self, depth: int) -> Iterator[Block]:
        """Yield the leading classes; see `Truth.ranked`."""
        quantiles = GammaQuantiles.of(self.unnamed) if self.unnamed > 0 else None
        blocks = self.entries.blocks(self.num_draws)
        for number, (items, slots, num_items, num_entries) in enumerate(blocks):
            padded = _pad_block(self.entries, items, slots, num_items, num_entries)
            concentration = pad(self.concentration[slots], num_entries, 1.0)
            key = jax.random.fold_in(self.key, number)
            yield Block(items, rank_dirichlet(key, concentration, quantiles, padded, self.num_draws, depth))

    def grouped(self, group: Int[np.ndarray, " class"], num_groups: int) -> Iterator[Block]:
        """Yield masses of groups: the mass of a group is Dirichlet too, with the sum of the concentrations."""
        concentration = self.group_concentration(group, num_groups)
        num_rows = block_rows(self.num_items, num_groups * self.num_draws)
        for start in range(0, self.num_items, num_rows):
            items = slice(start, min(start + num_rows, self.num_items))
            key = jax.random.fold_in(jax.random.fold_in(self.key, 1 << 30), start)
            yield Block(items, draw_dirichlet(key, pad(concentration[items], num_rows, 1.0), self.num_draws))

    def plausibilities(self) -> Iterator[Plausibilities]:
        """Yield plausibilities; see `Truth.plausibilities`. They are independent of what `ranked` draws."""
        for number, (items, slots, num_items, num_entries) in enumerate(self.entries.blocks(self.num_draws)):
            padded = _pad_block(self.entries, items, slots, num_items, num_entries)
            concentration = pad(self.concentration[slots], num_entries, 1.0)
            other = self.unnamed * pad(np.asarray(padded.num_unnamed, float), num_items, 0.0)
            key = jax.random.fold_in(jax.random.fold_in(self.key, 1 << 29), number)
            log_weight, log_other = draw_log_weights(key, concentration, other, self.num_draws)
            yield _plausibilities(items, slots, padded, log_weight, log_other, self.unnamed)

    def group_concentration(self, group: Int[np.ndarray, " class"], num_groups: int) -> Float[np.ndarray, "item group"]:
        """Return the Dirichlet concentration of groups of classes, float64 ``(item, group)``."""
        group = np.asarray(group)
        cell = self.entries.item * num_groups + group[self.entries.class_]
        size = self.num_items * num_groups
        named = np.bincount(cell, self.concentration, size).reshape(self.num_items, num_groups)
        if self.unnamed == 0:
            return named
        number_named = np.bincount(cell, minlength=size).reshape(self.num_items, num_groups)
        return named + self.unnamed * (np.bincount(group, minlength=num_groups) - number_named)

    def mean(self) -> Float[np.ndarray, " entry"]:
        """Posterior mean of each entry, shape ``(entry,)``."""
        counts = np.diff(self.entries.first)
        named = np.bincount(self.entries.item, self.concentration, self.num_items)
        total = named + self.unnamed * (self.num_classes - counts)
        return self.concentration / np.repeat(total, counts)

    def top_probabilities(self) -> TopProbabilities:
        """Return the exact probability that each class leads, by one-dimensional quadrature."""
        return TopProbabilities(
            *top_probabilities(self.entries.first, self.concentration, self.unnamed, self.num_classes)
        )

    def leading(self) -> dict[str, np.ndarray]:
        """Tabulate the leading class of each item, exactly; see `Truth.leading`."""
        item, first = self.entries.item, self.entries.first
        probability = self.top_probabilities()
        # The largest concentration leads most often. Of an item without entries every class is alike: the first
        # stands for all.
        order = np.lexsort((self.entries.class_, -self.concentration, item))
        named = np.diff(first) > 0
        best = order[np.minimum(first[:-1], len(order) - 1)] if len(order) else np.zeros(self.num_items, int)
        unnamed_mean = 1 / self.num_classes
        return {
            "item": np.arange(self.num_items),
            "label": np.where(named, self.entries.class_[best], 0) if len(order) else best.astype(np.int32),
            "probability": np.where(named, self.mean()[best], unnamed_mean) if len(order) else best + unnamed_mean,
            "certainty": np.where(named, probability.entry[best], probability.unnamed)
            if len(order)
            else probability.unnamed,
        }


class PlausibilityDraws(Truth):
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
        self._shares: np.ndarray | None = None
        self.num_draws = self.log_weight.shape[0]
        self.num_items, self.num_classes = entries.num_items, entries.num_classes

    @classmethod
    def dense(cls, plausibility: Float[Array, "draw item class"]) -> PlausibilityDraws:
        """Wrap plausibilities of all classes, shape ``(draw, item, class)``."""
        num_draws, num_items, num_classes = plausibility.shape
        with np.errstate(divide="ignore"):
            return cls(Entries.dense(num_items, num_classes), np.log(plausibility).reshape(num_draws, -1))

    def ranked(self, depth: int) -> Iterator[Block]:
        """Yield the leading classes; see `Truth.ranked`."""
        if self.other is None:
            for items, padded, log_weight in self._padded(self.num_draws):
                yield Block(items, rank_weights(log_weight, padded, depth))
            return
        for number, (items, padded, log_weight) in enumerate(self._padded(self.num_draws)):
            log_other, largest = self._padded_other(items, padded), self._largest_shares(padded, depth)
            key = jax.random.fold_in(jax.random.fold_in(self.other.key, _RANKED), number)
            yield Block(items, rank_weights_and_other(key, log_weight, log_other, largest, padded, depth))

    def grouped(self, group: Int[np.ndarray, " class"], num_groups: int) -> Iterator[Block]:
        """Yield the masses of groups; see `Truth.grouped`."""
        for number, (items, padded, log_weight) in enumerate(self._padded(self.num_draws * num_groups)):
            log_other = self._padded_other(items, padded)
            split = self._split(number, padded, np.asarray(group), num_groups)
            yield Block(items, group_weights(log_weight, log_other, split, padded, jnp.asarray(group), num_groups))

    def plausibilities(self) -> Iterator[Plausibilities]:
        """Yield plausibilities; see `Truth.plausibilities`."""
        for items, padded, log_weight in self._padded(self.num_draws):
            slots = slice(int(self.entries.first[items.start]), int(self.entries.first[items.stop]))
            concentration = 1.0 if self.other is None else float(self.other.concentration)
            yield _plausibilities(items, slots, padded, log_weight, self._padded_other(items, padded), concentration)

    def leading(self) -> dict[str, np.ndarray]:
        """Tabulate the leading class of each item; see `Truth.leading`."""
        table = super().leading()
        if self.other is not None:
            # Of an item without entries every class is alike: the first stands for all.
            alike = np.diff(self.entries.first) == 0
            stand_in = {"label": 0, "probability": 1 / self.num_classes, "certainty": 1 / self.num_classes}
            table |= {name: np.where(alike, value, table[name]) for name, value in stand_in.items()}
        return table

    def _mean_plausibility(self, label: np.ndarray, certainty: np.ndarray) -> np.ndarray:
        item, named = self.entries.item, np.flatnonzero(np.diff(self.entries.first))
        is_label = self.entries.class_ == label[item]
        # A label that nobody named has its part of the other mass.
        part = np.where(np.bincount(item, is_label, self.num_items) > 0, 0, 1 / np.maximum(self.entries.num_unnamed, 1))
        result = np.zeros(self.num_items)
        rows = max(1, _BLOCK_NUMBERS // max(1, len(item), self.num_items))
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
            result += np.bincount(item, (weight * is_label * scale[:, item]).sum(0), self.num_items)
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
        if self._shares is None or self._shares.shape[1] < depth:
            num_draws = max(self.num_draws, min(_POOL_DRAWS, _POOL_GAMMAS // max(1, sizes[-1])))
            key = jax.random.fold_in(self.other.key, _SHARES)
            drawn = log_largest_shares(key, float(self.other.concentration), sizes, num_draws, max(depth, _POOL_DEPTH))
            self._shares = pad(drawn, _round_up(len(sizes)), 0.0)
        return LargestShares(self._shares, np.searchsorted(sizes, padded.num_unnamed))

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


class Crowd(NamedTuple):
    """How a crowd labels items whose true label is known, draw by draw.

    Parameters
    ----------
    agreement : shape ``(draw, class)``; the probability that two different annotators give an item of that class the
        same label, annotators taken by how much they annotate.
    annotate : ``annotate(random, draw, label)`` -> labels ``(annotation,)``: the annotations that the annotators of the
        data would give, were ``label``, shape ``(item,)``, the truth and the draw-th draw their errors. ``random`` is a
        NumPy generator.
    """

    agreement: Float[np.ndarray, "draw class"]
    annotate: Callable[[np.random.Generator, int, np.ndarray], np.ndarray]


class LabelTruth(Truth):
    """Labels: only the leading class of an item is known.

    Attributes
    ----------
    crowd : what is known of the annotators' errors, or None. Where it costs time, set a function without arguments, as
        for ``point``.
    mean_confusion : shape ``(class, label)``; the posterior mean of how probably an annotator, taken by how much they
        annotate, gives an item of the class the label. None where this is not known; a function where it costs time.
    """

    _crowd: Crowd | Callable[[], Crowd] | None = None
    _mean_confusion: np.ndarray | Callable[[], np.ndarray] | None = None

    @property
    def crowd(self) -> Crowd | None:
        """What is known of the annotators' errors."""
        if callable(self._crowd):
            self._crowd = self._crowd()
        return self._crowd

    @crowd.setter
    def crowd(self, crowd: Crowd | Callable[[], Crowd] | None) -> None:
        self._crowd = crowd

    @property
    def mean_confusion(self) -> Float[np.ndarray, "class label"] | None:
        """How an annotator, taken by how much they annotate, labels items of each class."""
        if callable(self._mean_confusion):
            self._mean_confusion = self._mean_confusion()
        return self._mean_confusion

    @mean_confusion.setter
    def mean_confusion(self, confusion: np.ndarray | Callable[[], np.ndarray] | None) -> None:
        self._mean_confusion = confusion

    @abstractmethod
    def labels(self) -> Iterator[Block]:
        """Yield labels, ``(item, draw)``."""

    @abstractmethod
    def label_probabilities(self) -> tuple[Entries, Float[np.ndarray, " entry"]]:
        """Return the labels that an item may have, and how probable each of them is."""

    def gain_of_another_label(self) -> Float[np.ndarray, " item"]:
        r"""Return how much more certain each item is expected to be after one more annotation.

        With r the probabilities of an item's labels and :math:`\bar\Theta` the crowd's mean confusion, the label that
        comes in is l with probability :math:`\sum_t r_t \bar\Theta_{tl}`, and the gain is
        :math:`\sum_l \max_t r_t \bar\Theta_{tl} - \max_t r_t`, which is never negative.
        """
        confusion = self.mean_confusion
        if confusion is None:
            return super().gain_of_another_label()
        entries, probability = self.label_probabilities()
        # Rows of float32 add up to one only nearly, and what is missing would look like a gain or a loss.
        confusion = confusion.astype(float)
        confusion /= confusion.sum(axis=1, keepdims=True)
        gain = np.empty(self.num_items)
        for items, slots, *_ in entries.blocks(confusion.shape[1]):
            first = entries.first[items] - slots.start
            joint = probability[slots, None] * confusion[entries.class_[slots]]
            expected = np.maximum.reduceat(joint, first).sum(axis=1)
            gain[items] = expected - np.maximum.reduceat(probability[slots], first)
        return np.where(gain > _ROUNDING, gain, 0.0)

    def ranked(self, depth: int) -> Iterator[Block]:
        """Yield the labels; a depth above one has no answer."""
        if depth > 1:
            raise UnsupportedRequest(
                f"the truth of this fit is one label per item, so the {depth} most plausible classes are not defined; "
                "use top=1 or a metric of the top label (top-k)"
            )
        for block in self.labels():
            yield Block(block.items, block.values[:, :, None])

    def grouped(self, group: Int[np.ndarray, " class"], num_groups: int) -> Iterator[Block]:
        """Yield indicators of the label's group."""
        for block in self.labels():
            yield Block(block.items, jax.nn.one_hot(jnp.asarray(group)[block.values], num_groups))

    def agreement(self) -> Iterator[Block]:
        """Yield how often two annotators agree on an item with each draw's label; see `Truth.agreement`."""
        if self.crowd is None:
            yield from super().agreement()
            return
        by_class = jnp.asarray(self.crowd.agreement)
        for block in self.labels():
            yield Block(block.items, by_class[jnp.arange(self.num_draws), block.values])


def most_probable(
    entries: Entries, probability: Float[np.ndarray, " entry"]
) -> tuple[Int[np.ndarray, " item"], Float[np.ndarray, " item"]]:
    """Return the most probable class of each item, of equal ones the lowest code, and its probability."""
    first = entries.first
    highest = np.maximum.reduceat(probability, first[:-1])
    leads = np.flatnonzero(probability == np.repeat(highest, np.diff(first)))
    return entries.class_[leads[np.searchsorted(leads, first[:-1])]], highest


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
    mean_confusion : how they label items of each class; see `LabelTruth`.
    """

    def __init__(
        self, label: Array, num_classes: int, crowd: Crowd | Callable[[], Crowd] | None = None,
        mean_confusion: np.ndarray | Callable[[], np.ndarray] | None = None,
    ) -> None:  # fmt: skip
        self.draws, self.crowd, self.mean_confusion = np.asarray(label, code_dtype(num_classes)), crowd, mean_confusion
        self.num_draws, self.num_items = self.draws.shape
        self.num_classes = num_classes

    def labels(self) -> Iterator[Block]:
        """Yield the stored labels."""
        rows = block_rows(self.num_items, self.num_draws)
        for start in range(0, self.num_items, rows):
            items = slice(start, min(start + rows, self.num_items))
            yield Block(items, jnp.asarray(pad(self.draws[:, items].T.astype(np.int32), rows, 0)))

    def label_probabilities(self) -> tuple[Entries, Float[np.ndarray, " entry"]]:
        """Return the labels that were drawn and how often."""
        parts = []
        rows = block_rows(self.num_items, max(self.num_draws, self.num_classes))
        for start in range(0, self.num_items, rows):
            drawn = self.draws[:, start : start + rows]
            cell = np.arange(drawn.shape[1]) * self.num_classes + drawn
            number = np.bincount(cell.ravel(), minlength=drawn.shape[1] * self.num_classes)
            occurs = np.flatnonzero(number)
            parts.append((occurs + start * self.num_classes, number[occurs]))
        cells, numbers = (np.concatenate(part) for part in zip(*parts, strict=True))
        entries = Entries.of(*np.divmod(cells, self.num_classes), self.num_items, self.num_classes)
        return entries, numbers / self.num_draws


class LabelProbabilities(LabelTruth):
    """Labels with known probabilities, independent between items: what CAVI and EM end with.

    Parameters
    ----------
    entries : the candidates of each item.
    probability : float64, shape ``(entry,)``, not negative; normalised over the candidates of an item.
    key, num_draws : the draws are a function of these, so that every pass sees the same ones.
    crowd : how annotators err, in as many draws.
    mean_confusion : how they label items of each class; see `LabelTruth`.
    """

    def __init__(
        self, entries: Entries, probability: np.ndarray, *, key: Key, num_draws: int,
        crowd: Crowd | Callable[[], Crowd] | None = None,
        mean_confusion: np.ndarray | Callable[[], np.ndarray] | None = None,
    ) -> None:  # fmt: skip
        total = np.bincount(entries.item, probability, entries.num_items)
        self.entries, self.probability = entries, np.asarray(probability, float) / total[entries.item]
        self.key, self.num_draws, self.crowd, self.mean_confusion = key, num_draws, crowd, mean_confusion
        self.num_items, self.num_classes = entries.num_items, entries.num_classes

    @classmethod
    def dense(cls, probability: Float[np.ndarray, "item class"], **more: Any) -> LabelProbabilities:
        """Wrap probabilities of all classes, shape ``(item, class)``."""
        return cls(Entries.dense(*probability.shape), np.ravel(probability), **more)

    def labels(self) -> Iterator[Block]:
        """Yield labels, by the inverse of the distribution function."""
        before = np.cumsum(self.probability) - self.probability
        start = before[np.minimum(self.entries.first[:-1], len(before) - 1)]
        for number, (items, slots, num_items, num_entries) in enumerate(self.entries.blocks(self.num_draws)):
            padded = _pad_block(self.entries, items, slots, num_items, num_entries)
            lowest = pad(before[slots] - start[self.entries.item[slots]], num_entries, 2.0)
            key = jax.random.fold_in(self.key, number)
            yield Block(items, draw_labels(key, jnp.asarray(lowest, jnp.result_type(float)), padded, self.num_draws))

    def label_probabilities(self) -> tuple[Entries, Float[np.ndarray, " entry"]]:
        """Return the probabilities themselves."""
        return self.entries, self.probability

    def top_probabilities(self) -> TopProbabilities:
        """Return the probabilities themselves."""
        return TopProbabilities(self.probability, np.zeros(self.num_items))

    def leading(self) -> dict[str, np.ndarray]:
        """Tabulate the most probable label of each item, exactly; of equal ones the lowest code."""
        label, highest = most_probable(self.entries, self.probability)
        return {"item": np.arange(self.num_items), "label": label, "probability": highest, "certainty": highest}


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
        first = np.searchsorted(item[positive], np.arange(self.num_items))
        position = np.arange(len(positive)) - first[item[positive]]
        new_item = np.diff(item[positive], prepend=-1) > 0
        new_bucket = (np.diff(self.score[positive], prepend=np.nan) != 0) & ~new_item
        bucket = np.cumsum(new_bucket)
        bucket -= bucket[first[item[positive]]] if len(positive) else 0
        keep = position < width
        classes = np.full((self.num_items, width), -1, np.int32)
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
    return _round_up(max(1, min(_BLOCK_NUMBERS // numbers_per_item, num_items)))


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
