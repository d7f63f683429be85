"""Imputation: labels drawn from what coordinate ascent ended with, and parameters given these labels; on the host.

Of most items the most probable label is drawn nearly always, so that what is counted is counted once for those labels,
and each draw changes it by the annotations of the items whose label is another.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Array, Float, Key
from consilience.data.annotations import Annotations
from consilience.models.crowd.channel import Channel
from consilience.models.crowd.simplices import PREVALENCE, Tree, draw_on_host, expected_logs, padded_tree
from consilience.models.crowd.votes import padded_annotators
from consilience.models.keys import split_key
from consilience.models.rows import repeated_rows


class Imputation:
    """Draws of the parameters of a crowd given labels that were drawn.

    Parameters
    ----------
    channel : of the model.
    concentrations : what coordinate ascent ended with, by site.
    data : the annotations as they were counted.
    probability : of the labels, shape ``(item, class)``.
    is_dense : whether the evidence of the channel is.
    key : of all draws; each has a number, whatever else is drawn with it.
    """

    def __init__(
        self, channel: Channel, concentrations: Mapping[str, np.ndarray], data: Annotations,
        probability: Float[np.ndarray, "item class"], is_dense: bool, key: Key,
    ) -> None:  # fmt: skip
        self.channel, self.data, self.is_dense, self.key = channel, data, is_dense, key
        self.probability = np.array(probability, float)
        self.probability /= self.probability.sum(axis=1, keepdims=True)
        self.concentrations = {site: np.asarray(own, float) for site, own in concentrations.items()}
        cell = np.asarray(data.annotator).astype(np.int64) * data.num_labels + np.asarray(data.label)
        shape = data.num_items, data.num_annotators * data.num_labels
        self.rows = csr_array((np.asarray(data.weight, float), (np.asarray(data.item), cell)), shape)
        # What is said in each cell: the label, or of a dense table the place of the cell for the first class.
        said, cells = np.arange(data.num_labels), np.arange(data.num_annotators)[:, None]
        self._said = np.ravel(cells * (data.num_labels**2 if is_dense else 0) + said)
        self.given = np.asarray(self.rows.sum(axis=0)).reshape(-1, data.num_labels)

    def trees(self, start: int, number: int) -> Tree:
        """Return the logarithms of so many draws from a first one on, ``(draw, …)``, with annotators that pad."""
        numbers, words = np.arange(start, start + number), np.asarray(jax.random.key_data(self.key)).ravel()
        randoms = [np.random.default_rng([*words, place]) for place in numbers]
        # What is counted is drawn where that can be done: of weights that are no whole numbers expected.
        whole = self.channel.whole_weights and np.array_equal(self.given, np.round(self.given))
        keys = split_key(self.key, start + number)[start:] if whole else None
        statistics, of_class = (np.stack(part) for part in zip(*map(self._drawn, randoms), strict=True))
        counts = self._counts(statistics, of_class, keys)
        trees = []
        for place, random in enumerate(randoms):
            concentrations = {site: prior + counts[site][place] for site, prior in self.prior.items()}
            found = draw_on_host(random, concentrations)
            trees.append({site: np.asarray(own, self._dtype) for site, own in found.items()})
        stacked = {site: np.stack([tree[site] for tree in trees]) for site in self.prior}
        return padded_tree(stacked, padded_annotators(self.data), axis=1)

    @functools.cached_property
    def prior(self) -> Tree:
        """Concentrations of the prior: an ascent ends with those plus expected counts.

        Of a loaded fit the prior may be known in words only.
        """
        expected = self._counts(self._statistics(self.probability)[None], self.probability.sum(axis=0)[None], None)
        return {site: np.maximum(own - expected[site][0], 1e-6) for site, own in self.concentrations.items()}

    @property
    def _dtype(self) -> Any:
        return jnp.result_type(float)

    def _counts(self, statistics: np.ndarray, of_class: np.ndarray, keys: Any) -> Tree:
        """Return the outcomes of all simplices, ``(draw, …)``."""
        size, dtype = padded_annotators(self.data), self._dtype
        tree = {site: own.astype(dtype) for site, own in padded_tree(self.concentrations, size).items()}
        given = np.zeros((size, self.data.num_labels), dtype)
        given[: len(self.given)] = self.given
        found = _counted(self.channel, keys, repeated_rows(statistics.astype(dtype), size, axis=1), tree, given)
        found = {site: np.asarray(own, float)[:, : self.data.num_annotators] for site, own in found.items()}
        return found | ({PREVALENCE: of_class} if PREVALENCE in self.concentrations else {})

    def _statistics(self, probability: Float[np.ndarray, "item class"]) -> np.ndarray:
        """Return the statistics of the evidence: see `Channel`."""
        number, rows = self.data.num_labels, self.rows
        if self.is_dense:
            return (rows.T @ probability).reshape(-1, number, number).swapaxes(1, 2)
        item = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        own = rows.data * probability[item, rows.indices % number]
        return np.bincount(rows.indices, own, rows.shape[1]).reshape(-1, number)

    @functools.cached_property
    def _most_probable(self) -> tuple[np.ndarray, ...]:
        """The most probable labels, their probabilities, the steps of the others ``(step, item)``, and what counts."""
        label, highest = self.probability.argmax(axis=1), self.probability.max(axis=1)
        place = np.arange(len(label)), label
        others, certain = self.probability.copy(), np.zeros(self.probability.shape)
        others[place], certain[place] = 0.0, 1.0
        steps = np.ascontiguousarray(others.cumsum(axis=1).T[:-1])
        return label, highest, steps, self._statistics(certain), certain.sum(axis=0)

    def _drawn(self, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw a label of each item, and return the statistics and how many items have each label."""
        label, highest, steps, statistics, of_class = self._most_probable
        number, uniform = self.data.num_labels, random.random(len(label))
        changed = np.flatnonzero(uniform >= highest)
        old, new, beyond = label[changed], np.zeros(len(changed), np.int64), (uniform - highest)[changed]
        for step in steps:
            new += beyond >= step[changed]
        rows, change = self.rows[changed], np.zeros(statistics.size)
        said, lengths = self._said[rows.indices], np.diff(rows.indptr)
        for labels, sign in ((new, 1.0), (old, -1.0)):
            of_row = np.repeat(labels, lengths)
            if self.is_dense:
                counted = np.bincount(said + of_row * number, rows.data, statistics.size)
            else:
                counted = np.bincount(rows.indices, rows.data * (said == of_row), statistics.size)
            change += sign * counted
        classes = np.bincount(new, minlength=number) - np.bincount(old, minlength=number)
        return statistics + np.reshape(change, statistics.shape), of_class + classes


@functools.partial(jax.jit, static_argnums=0)
def _counted(
    channel: Channel, keys: Key | None, statistics: Float[Array, "draw annotator *axes"], tree: Tree,
    given: Float[Array, "annotator label"],
) -> Tree:  # fmt: skip
    logs = expected_logs(tree)
    if keys is None:
        return jax.vmap(lambda own: channel.counts(own, logs, given, None))(statistics)
    return jax.lax.map(lambda own: channel.counts(own[1], logs, given, own[0]), (keys, statistics))
