r"""What an annotation says of the truth, in two forms: a table of all classes, or a lift of the class that it names.

| form | fields | meaning | cost of an annotation |
|---|---|---|---|
| `Dense` | ``table (annotator, class, label)`` | any confusion matrix | a number for each class |
| `Lifted` | ``base``, ``lift``, each ``(annotator, label)`` | log p(l \| t) = base + 1[l = t] lift | one number |

Inference works in logarithms, or in expected logarithms under coordinate ascent, where the rows need not add up to one.
What is asked of a crowd with known errors (`Dense.agreement` and what follows it) takes the same forms for
probabilities.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.models.crowd.votes import Votes, sum_by_item, sum_votes

# So few labels are counted off one by one, which is faster than a search among the steps of all annotators.
_FEW_LABELS = 32


class Dense(NamedTuple):
    """Logarithms of confusion matrices, ``(annotator, class, label)``."""

    table: Float[Array, "annotator class label"]

    def joint(self, votes: Votes, log_prevalence: Float[Array, " class"]) -> Float[Array, "item class"]:
        """Return the log probability of each class together with the annotations, up to `constant`."""
        by_cell = jnp.swapaxes(self.table, 1, 2).reshape(-1, self.table.shape[1])

        def value(cell: Array, weight: Array) -> Array:
            # What has no weight must not turn the logarithm of zero into a number that is none.
            return jnp.where(weight[:, None] > 0, weight[:, None] * by_cell[cell], 0.0)

        return sum_by_item(value, votes, by_cell.shape[1], by_cell.dtype) + log_prevalence + votes.log_prior

    def constant(self, votes: Votes) -> Float[Array, "annotator label"]:
        """Return what is the same for all classes, by cell: nothing."""
        return jnp.zeros((1, 1), self.table.dtype)

    def constant_by_item(self, votes: Votes) -> Float[Array, " item"]:
        """Return the same by item."""
        return jnp.zeros(votes.num_items, self.table.dtype)

    def statistics(
        self, votes: Votes, probability: Float[Array, "item class"]
    ) -> Float[Array, "annotator class label"]:
        """Return how often each annotator is expected to have given each label to items of each class."""
        num_annotators, num_classes, num_labels = self.table.shape

        def count(item: Array, cell: Array, weight: Array) -> tuple[Array, Array]:
            return cell, weight[:, None] * probability[item]

        counts = sum_votes(count, votes, (num_annotators * num_labels, num_classes), probability.dtype)
        return jnp.swapaxes(counts.reshape(num_annotators, num_labels, num_classes), 1, 2)

    def said(self, annotator: Int[Array, " row"], truth: Int[Array, " row"]) -> Float[Array, "row label"]:
        """Return the log probabilities of what annotators say of items of these classes."""
        return self.table[annotator, truth]

    # ---- of known errors, in probabilities

    def rows(self, annotators: Int[Array, " chosen"] | slice = slice(None)) -> Float[Array, "chosen class label"]:
        """Return the probabilities of labels, by annotator and class; of a table in NumPy on the host."""
        exp = np.exp if isinstance(self.table, np.ndarray) else jnp.exp
        return _normalised(exp(self.table[annotators]))

    def right(self) -> Float[Array, "annotator class"]:
        """Return how probably each annotator is right about each class."""
        return self.rows().diagonal(axis1=1, axis2=2)

    def average(self, share: Float[Array, " annotator"]) -> Float[Array, "class label"]:
        """Return the probabilities of labels of an annotator who is taken by these shares."""
        rows = self.rows()
        return (share @ rows.reshape(len(rows), -1)).reshape(rows.shape[1:])

    def agreement(self, share: Float[Array, " annotator"]) -> Float[Array, " class"]:
        r"""Return how probably two different annotators give an item of each class the same label.

        Annotators are taken in proportion to :math:`s_j`, their parts of all annotations:
        :math:`\sum_l [(\sum_j s_j \Theta_{jtl})^2 - \sum_j s_j^2 \Theta_{jtl}^2] / (1 - \sum_j s_j^2)`.
        """
        rows = self.rows()
        oneself = jnp.tensordot(share**2, (rows**2).sum(axis=-1), 1)
        return ((jnp.tensordot(share, rows, 1) ** 2).sum(axis=-1) - oneself) / (1 - (share**2).sum())

    def annotate(
        self, random: np.random.Generator, annotator: Int[np.ndarray, " row"], truth: Int[np.ndarray, " row"]
    ) -> Int[np.ndarray, " row"]:
        """Draw what annotators say of items of these classes, by the inverse of the distribution functions."""
        rows = np.exp(np.asarray(self.table, float))
        num_classes, num_labels = rows.shape[1:]
        return draw_rows(random, rows.reshape(-1, num_labels), annotator.astype(np.int64) * num_classes + truth)


class Lifted(NamedTuple):
    """Logarithms of what an annotator says whatever the class, and by how much the class itself is more probable."""

    base: Float[Array, "annotator label"]
    lift: Float[Array, "annotator label"]

    def joint(self, votes: Votes, log_prevalence: Float[Array, " class"]) -> Float[Array, "item class"]:
        """Return the log probability of each class together with the annotations, up to `constant`."""
        num_labels = votes.num_labels
        # Without the barrier the table would be computed anew for every annotation.
        lift = jax.lax.optimization_barrier(self.lift).ravel()

        def value(item: Array, cell: Array, weight: Array) -> tuple[Array, Array]:
            return item * num_labels + cell % num_labels, weight * lift[cell]

        evidence = sum_votes(value, votes, (votes.num_items * num_labels,), lift.dtype)
        return evidence.reshape(votes.num_items, num_labels) + log_prevalence + votes.log_prior

    def constant(self, votes: Votes) -> Float[Array, "annotator label"]:
        """Return what is the same for all classes, by cell."""
        return jnp.where(votes.counts > 0, votes.counts * self.base, 0.0)

    def constant_by_item(self, votes: Votes) -> Float[Array, " item"]:
        """Return the same by item."""
        base = self.base.ravel()

        def value(item: Array, cell: Array, weight: Array) -> tuple[Array, Array]:
            return item, jnp.where(weight > 0, weight * base[cell], 0.0)

        return sum_votes(value, votes, (votes.num_items,), base.dtype)

    def statistics(self, votes: Votes, probability: Float[Array, "item class"]) -> Float[Array, "annotator label"]:
        """Return how many of the labels that each annotator gave are expected to be right."""
        flat, num_labels = probability.ravel(), votes.num_labels

        def count(item: Array, cell: Array, weight: Array) -> tuple[Array, Array]:
            return cell, weight * flat[item * num_labels + cell % num_labels]

        return sum_votes(count, votes, (self.base.size,), flat.dtype).reshape(self.base.shape)

    def said(self, annotator: Int[Array, " row"], truth: Int[Array, " row"]) -> Float[Array, "row label"]:
        """Return the log probabilities of what annotators say of items of these classes."""
        lifted = jnp.where(truth[:, None] == jnp.arange(self.lift.shape[1]), self.lift[annotator], 0.0)
        return self.base[annotator] + lifted

    # ---- of known errors, in probabilities

    @property
    def wrong(self) -> Float[Array, "annotator label"]:
        """How probably a label is given to items of other classes."""
        return jnp.exp(self.base)

    @property
    def surplus(self) -> Float[Array, "annotator label"]:
        """How much more probably it is given to items of its own class; negative of those who avoid the truth."""
        return jnp.exp(self.base + self.lift) - jnp.exp(self.base)

    def rows(self, annotators: Int[Array, " chosen"] | slice = slice(None)) -> Float[Array, "chosen class label"]:
        """Return the probabilities of labels, by annotator and class."""
        wrong, surplus = self.wrong[annotators], self.surplus[annotators]
        eye = jnp.eye(wrong.shape[1], dtype=wrong.dtype)
        return _normalised(wrong[:, None, :] + surplus[:, :, None] * eye)

    def right(self) -> Float[Array, "annotator class"]:
        """Return how probably each annotator is right about each class."""
        return self.wrong + self.surplus

    def average(self, share: Float[Array, " annotator"]) -> Float[Array, "class label"]:
        """Return the probabilities of labels of an annotator who is taken by these shares."""
        return share @ self.wrong + jnp.diag(share @ self.surplus)

    def agreement(self, share: Float[Array, " annotator"]) -> Float[Array, " class"]:
        """Return how probably two different annotators give an item of each class the same label; see `Dense`."""
        wrong, surplus = self.wrong, self.surplus
        mean_wrong, mean_surplus = share @ wrong, share @ surplus
        any_two = (mean_wrong**2).sum() + 2 * mean_surplus * mean_wrong + mean_surplus**2
        itself = share**2 @ ((wrong**2).sum(axis=1)[:, None] + 2 * surplus * wrong + surplus**2)
        return (any_two - itself) / (1 - (share**2).sum())

    def annotate(
        self, random: np.random.Generator, annotator: Int[np.ndarray, " row"], truth: Int[np.ndarray, " row"]
    ) -> Int[np.ndarray, " row"]:
        """Draw what annotators say of items of these classes: the class itself, or one of the other labels."""
        wrong = np.exp(np.asarray(self.base, float))
        right = np.exp(np.asarray(self.base, float) + np.asarray(self.lift, float))[annotator, truth]
        says_so = random.random(len(annotator)) < right
        # Of the others: a search in the annotator's distribution from which the class itself is cut out.
        steps = np.cumsum(wrong, axis=1)
        own, before = wrong[annotator, truth], steps[annotator, truth] - wrong[annotator, truth]
        place = random.random(len(annotator)) * (steps[annotator, -1] - own)
        place = np.where(place >= before, place + own, place)
        found = _search(steps, annotator, place)
        # Rounding may lead back to what was cut out.
        found = np.where(found == truth, (truth + 1) % wrong.shape[1], found)
        return np.where(says_so, truth, found)


Evidence = Dense | Lifted


def draw_rows(
    random: np.random.Generator, rows: Float[np.ndarray, "row label"], row: Int[np.ndarray, " draw"]
) -> Int[np.ndarray, " draw"]:
    """Draw a label of each of these rows of probabilities, on the host."""
    below = np.cumsum(rows, axis=-1)
    below /= below[:, -1:]
    if rows.shape[1] <= _FEW_LABELS:
        uniform, given = random.random(len(row)), np.zeros(len(row), np.int64)
        for end in below.T[:-1]:
            given += end[row] <= uniform
        return given
    return _search(below, row, random.random(len(row)))


def _search(
    steps: Float[np.ndarray, "row label"], row: Int[np.ndarray, " draw"], place: Float[np.ndarray, " draw"]
) -> Int[np.ndarray, " draw"]:
    """Return the label whose step holds each place: one search in the distribution functions end to end."""
    highest = steps[:, -1:]
    # The functions one after the other, each one higher than the one before, are one that never decreases.
    ends = (steps / highest + np.arange(len(steps))[:, None]).ravel()
    found = np.searchsorted(ends, row + place / highest[row, 0], side="right") - row * steps.shape[1]
    return np.clip(found, 0, steps.shape[1] - 1)


def _normalised(rows: Float[Array, "*axes label"]) -> Float[Array, "*axes label"]:
    """Let rows add up to one in the digits of the float type."""
    return rows / rows.sum(axis=-1, keepdims=True)
