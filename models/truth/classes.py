"""Truths about the classes of items: plausibilities of classes, or one label an item.

They answer for a block of items and all draws at a time: which classes lead (`Ranked`), how the mass falls on groups of
classes (`Mass`), and how often two annotators would agree (`Agreement`), for which those of plausibilities show these
(`Shares`). The named classes of item i are its entries ``first[i]:first[i + 1]``, sorted by class. The classes of an
item that nobody named are exchangeable: only the largest of them are kept, or their sum, and which classes those are is
drawn at random.

Equal values are ordered by the lowest class code. Where an item has fewer classes with positive mass than a ranking
needs, the ranking is filled with the lowest remaining class codes.

| class | truth is | draws come from |
|---|---|---|
| `plausibilities.DirichletTruth` | plausibilities | a Dirichlet posterior per item, the same draws at each pass |
| `plausibilities.PlausibilityDraws` | plausibilities | stored draws, of Gibbs, NUTS or SVI |
| `plausibilities.PointTruth` | plausibilities | a point estimate, one draw |
| `labels.LabelDraws` | labels | stored draws |
| `labels.LabelProbabilities` | labels | probabilities per item, the same draws at each pass |
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.mentions import Mentions
from consilience.errors import UnsupportedRequest
from consilience.models.truth.entries import MOST_ENTRIES, Entries, entry_blocks, most_frequent
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
)

# Gains of certainty that are sums of rounding errors; they would order the items that nothing could change.
_ROUNDING = 1e-12

UNKNOWN_ERRORS = (
    "this fit does not say how annotators err, so that what another label would tell is not known; "
    "use a model of annotators, such as dawid-skene, mace or mpa"
)


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
    worth : what an annotation of each item is worth, in independent ones, ``(item,)`` or one number.
    mentions : the mentions whose links the labels are, of a fit of them.
    held_out : probabilities of items with gold in which their own gold had no part, where gold labels taught how
        certain to be; None elsewhere. Entries of other items are not read.
    certainty_if_independent : mean certainty were errors independent; None where that is not another one.
    """

    kind = CLASSES
    systems: tuple[str, ...] = (CLASSES.name,)
    num_classes: int
    entries: Entries
    point: ClassTruth | Callable[[], ClassTruth | None] | None = None
    crowd: Crowd | None = None
    worth: Any = 1.0
    mentions: Mentions | None = None
    held_out: Marginals | None = None
    certainty_if_independent: float | None = None

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

    def standard(self) -> ClassTruth | None:
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

    def with_fewer_draws(self, number: int) -> ClassTruth:
        """Return the truth with so many draws where they are made when they are asked for; others stay as they are."""
        return self

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
        :math:`\gamma (\sum_l \max_t r_t \bar\Theta_{tl} - \max_t r_t)`, which is never negative. :math:`\gamma`
        is what one of the item's annotations is worth, in independent ones: where errors hang together, those of the
        next annotator do too.
        """
        if self._confusion is None:
            raise UnsupportedRequest(UNKNOWN_ERRORS)
        confusion, (first, code, probability, _) = self.mean_confusion, marginals(truth)
        gain = np.empty(truth.num_units)
        for items, slots in entry_blocks(first, confusion.shape[1]):
            starts = first[items] - slots.start
            joint = probability[slots, None] * confusion[code[slots]]
            expected = np.maximum.reduceat(joint, starts).sum(axis=1)
            gain[items] = expected - np.maximum.reduceat(probability[slots], starts)
        return np.where(gain > _ROUNDING, gain * truth.worth, 0.0)


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
    rows = max(MOST_ENTRIES // truth.num_classes, 1)
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


def label_masses(truth: ClassTruth) -> Float[np.ndarray, "item class"]:
    """Return the posterior mean that each class is the label of an item; rows sum to one.

    Of truths of plausibilities a label drawn from these: their means, with equal parts for classes that nobody named.
    """
    if not truth.answers(Shares()):
        found = marginals(truth)
        mass = np.repeat(found.unnamed[:, None], truth.num_classes, axis=1)
        mass[found.unit, found.code] = found.probability
    else:
        mass = np.empty((truth.num_units, truth.num_classes))
        for row, (codes, share) in zip(mass, truth.mean_shares(range(truth.num_units)), strict=True):
            row[:] = max(1 - share.sum(), 0.0) / max(len(row) - len(codes), 1)
            row[codes] = share
    return mass / mass.sum(axis=1, keepdims=True)


def most_probable(found: Marginals) -> tuple[Int[np.ndarray, " item"], Float[np.ndarray, " item"]]:
    """Return the most probable named class of each item, of equal ones the lowest code, and its probability."""
    first = found.first
    highest = np.maximum.reduceat(found.probability, first[:-1])
    leads = np.flatnonzero(found.probability == np.repeat(highest, np.diff(first)))
    return found.code[leads[np.searchsorted(leads, first[:-1])]], highest
