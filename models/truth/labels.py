"""Truths that are one label an item: of stored draws, or of known probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.errors import UnsupportedRequest
from consilience.models.keys import folded_key
from consilience.models.ranking import draw_labels
from consilience.models.truth.classes import ClassTruth, Crowd, Lead, marginals, most_probable
from consilience.models.truth.entries import Entries, block_rows, code_dtype, entry_blocks, pad, pad_block
from consilience.models.truth.truth import Agreement, Block, Marginals, Mass, Question, Ranked

# For each entry so many numbers are held when probabilities are normalised.
_NUMBERS = 16


class LabelTruth(ClassTruth):
    """Labels: only the leading class of an item is known.

    Attributes
    ----------
    untempered : of a crowd, ``(item, class)``: the probabilities of the labels as if annotators erred independently.
    """

    untempered: Any = None

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
        self.entries, self.probability = entries, np.array(probability, float)
        for items, slots in entry_blocks(entries.first, _NUMBERS):
            counts = np.diff(entries.first[items.start : items.stop + 1])
            item = np.repeat(np.arange(len(counts)), counts)
            self.probability[slots] /= np.bincount(item, self.probability[slots], len(counts))[item]
        self.key, self.num_draws, self.crowd = key, num_draws, crowd
        self.num_units, self.num_classes = entries.num_items, entries.num_classes

    @classmethod
    def dense(cls, probability: Float[np.ndarray, "item class"], **more: Any) -> LabelProbabilities:
        """Wrap probabilities of all classes, shape ``(item, class)``."""
        return cls(Entries.dense(*probability.shape), np.ravel(probability), **more)

    @classmethod
    def possible(cls, probability: Float[np.ndarray, "item class"], **more: Any) -> LabelProbabilities:
        """Wrap the same, naming classes alone that are not ruled out."""
        item, class_ = np.nonzero(probability)
        return cls(Entries.of(item, class_, *probability.shape), probability[item, class_], **more)

    def labels(self) -> Iterator[Block]:
        """Yield labels, by the inverse of the distribution function."""
        before = np.cumsum(self.probability) - self.probability
        start = before[np.minimum(self.entries.first[:-1], len(before) - 1)]
        counts = np.diff(self.entries.first)
        for number, (items, slots, num_items, num_entries) in enumerate(self.entries.blocks(self.num_draws)):
            padded = pad_block(self.entries, items, slots, num_items, num_entries)
            lowest = pad(before[slots] - np.repeat(start[items], counts[items]), num_entries, 2.0)
            key = folded_key(self.key, number)
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
                return Marginals.dense(total.reshape(self.num_units, num_groups))
        return None

    def _lead(self) -> Lead:
        label, highest = most_probable(self.label_probabilities())
        return Lead(label, highest, highest)

    def mean_shares(self, positions: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the probabilities of some items' labels."""
        slots = [self.entries.slots(position) for position in positions]
        return [(self.entries.class_[own], self.probability[own]) for own in slots]
