"""Partitions under independent records: what coordinate ascent says of who belongs together, and when it says nothing.

Given the approximation the entities of different records are independent, so that pairs and whole clusters have
probabilities in closed form. It fails in three ways that an answer by the most probable entity would hide:

* **diffuse**: most records belong to all entities about equally. The most probable entity of a record is then noise.
* **frozen**: no record left the entity that it started in. That is what small concentrations do whatever the data;
* **tied**: two records of a dense support each belong half to the entity of the one and half to that of the other. The
  ascent cannot prefer either, and rounding decides whether they are linked.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.errors import DiagnosticWarning
from consilience.models.posterior import Posterior
from consilience.models.truth.partitions import Pairs, PartitionTruth, first_members
from consilience.notes import Level, Note, Remedy

# A record is diffuse when its most probable entity is less than so many times as probable as if all were equally so.
_FLAT = 1.5
# Two entities are tied when their probabilities differ by less.
_TIE = 1e-3
# Pairs that are less probable than this are left out.
_LEAST = 1e-9


class EntityPartition(PartitionTruth):
    """The partition under independent entities of the records.

    Draws are made when they are asked for, each from a key of its own: they are the same at every pass.

    Parameters
    ----------
    posterior : of coordinate ascent; see `consilience.models.dirichlet_entity.cavi.sites` for what it holds.
    key : random key of the draws.
    num_draws : how many there are.
    """

    def __init__(self, posterior: Posterior, *, key: Key, num_draws: int) -> None:
        self.posterior, self.num_draws = posterior, num_draws
        self.num_units = len(posterior.first) - 1
        self.num_entities = int(np.max(posterior.entity, initial=-1)) + 1
        self._key_data = np.asarray(jax.random.key_data(key))

    @property
    def _record(self) -> Int[np.ndarray, " edge"]:
        return np.repeat(np.arange(self.num_units), np.diff(self.posterior.first))

    @property
    def _probability(self) -> Float[np.ndarray, " edge"]:
        probability = np.asarray(self.posterior.probability, float)
        return probability / np.bincount(self._record, probability, self.num_units)[self._record]

    def entities(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw record"]:
        """Return the entity of each record in some draws."""
        numbers = np.arange(self.num_draws, dtype=np.uint32)[draws]
        uniform = np.asarray(_uniforms(self._key_data, numbers, self.num_units), float)
        # The distribution functions of all records end to end: that of record i rises from i to i + 1.
        first = np.asarray(self.posterior.first)
        below = np.cumsum(self._probability)
        start = np.append(0.0, below)[first[:-1]]
        ends = np.minimum(below - start[self._record], 1.0) + self._record
        ends[first[1:] - 1] = np.arange(1, self.num_units + 1)
        place = np.searchsorted(ends, np.arange(self.num_units) + uniform, side="right")
        return np.asarray(self.posterior.entity)[place]

    def clusters(self, draws: slice = slice(None)) -> Int[np.ndarray, "draw record"]:
        """Return the cluster of each record in some draws: the code of the first record in it; the same every time."""
        entity = self.entities(draws)
        first = np.zeros((len(entity), self.num_entities), np.int32)
        # Backwards, so that of the records of one entity the first is written last.
        backwards = np.arange(self.num_units - 1, -1, -1, dtype=np.int32)
        np.put_along_axis(first, entity[:, ::-1], np.broadcast_to(backwards, entity.shape), axis=1)
        return np.take_along_axis(first, entity, axis=1)

    def pairs(self) -> Pairs:
        """Return how probably two records are together: the sum over entities that both of them belong to it."""
        probability = self._probability
        kept = probability > _LEAST
        place = self._record[kept], np.asarray(self.posterior.entity)[kept]
        table = sparse.csr_array((probability[kept], place), shape=(self.num_units, self.num_entities))
        together = sparse.triu(table @ table.T, k=1).tocoo()
        order = np.lexsort((together.col, together.row))
        order = order[together.data[order] > _LEAST]
        first, second = together.row[order].astype(np.int32), together.col[order].astype(np.int32)
        return Pairs(first, second, np.minimum(together.data[order], 1.0))

    def estimate(self) -> Int[np.ndarray, " record"]:
        """Return the partition by the most probable entity of each record; warns where the posterior is diffuse.

        Warns
        -----
        DiagnosticWarning : most records belong to all their entities about equally, and the partition means nothing.
        """
        for note in _diffuse_note(self.posterior):
            warnings.warn(note.words(), DiagnosticWarning, stacklevel=2)
        probability = self._probability
        order = np.lexsort((self.posterior.entity, -probability, self._record))
        leading = np.asarray(self.posterior.entity)[order[np.asarray(self.posterior.first)[:-1]]]
        return first_members(leading)

    def cluster_probability(self, cluster: Int[np.ndarray, " record"]) -> Float[np.ndarray, " record"]:
        """Return how probably each cluster of a partition is a whole one: these records, and no other.

        That is the sum over entities of the probability that all its records belong to it and all others do not.
        """
        # A probability of one would give a logarithm that cannot be taken away again.
        probability = np.clip(self._probability, 1e-300, 1 - 1e-15)
        entity, own = np.asarray(self.posterior.entity), np.asarray(cluster)[self._record]
        absent = np.log1p(-probability)
        nobody = np.bincount(entity, absent, self.num_entities)
        cells, place = np.unique(own.astype(np.int64) * self.num_entities + entity, return_inverse=True)
        cluster_of_cell, entity_of_cell = np.divmod(cells, self.num_entities)
        every = np.bincount(place) == np.bincount(cluster, minlength=self.num_units)[cluster_of_cell]
        log_exactly = np.bincount(place, np.log(probability) - absent) + nobody[entity_of_cell]
        exactly = np.bincount(cluster_of_cell, np.where(every, np.exp(log_exactly), 0.0), self.num_units)
        return np.minimum(exactly, 1.0)[cluster]


@jax.jit(static_argnums=2)
def _uniforms(key_data: Array, draws: Array, num_records: int) -> Float[Array, "draw record"]:
    """Return uniform numbers ``(draw, record)`` of which each draw's depend on its own number alone."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(jax.random.wrap_key_data(jnp.asarray(key_data)), draws)
    return jax.vmap(lambda key: jax.random.uniform(key, (num_records,), "float32"))(keys)


def diffuse(posterior: Posterior) -> Bool[np.ndarray, " choosing"]:
    """Return which of the records with several entities belong to all of them about equally."""
    choices = np.diff(posterior.first)
    # Every record has an edge: that of its own entity, or all.
    highest = np.maximum.reduceat(np.asarray(posterior.probability, float), np.asarray(posterior.first)[:-1])
    several = choices > 1
    return (highest * choices)[several] < _FLAT


def tied(posterior: Posterior) -> Bool[np.ndarray, " choosing"]:
    """Return which of the records with several entities have two most probable ones that are equally so."""
    first, probability = np.asarray(posterior.first), np.asarray(posterior.probability, float)
    record = np.repeat(np.arange(len(first) - 1), np.diff(first))
    ordered = probability[np.lexsort((-probability, record))]
    best = first[:-1][np.diff(first) > 1]
    return ordered[best] - ordered[best + 1] < _TIE


def failures(posterior: Posterior) -> list[Note]:
    """Say in words where the approximation failed: diffuse, tied, or frozen."""
    found = _diffuse_note(posterior)
    if (number := np.count_nonzero(tied(posterior))) and not found:
        text = (
            f"tied: {number:,} records lie exactly between two entities, as two records do of which neither is the "
            "first; whether the estimate links them is rounding. Use {support}"
        )
        found.append(Note(Level.error, text, (Remedy("support", "anchored"),)))
    several = np.diff(posterior.first) > 1
    if not several.any():
        text = "no record resembles another in enough fields to be a candidate: every one stays alone"
        found.append(Note(Level.error, text))
    elif not np.asarray(posterior.moved).any():
        text = (
            "frozen: no record left the entity that it started in. A small concentration has that effect whatever the "
            "data: to leave, a record with one differing field needs about 0.25. This is no evidence that no two "
            "records belong together; use {concentration} with {support}, or block-linkage"
        )
        found.append(Note(Level.error, text, (Remedy("concentration", 0.25), Remedy("support", "anchored"))))
    return found


def _diffuse_note(posterior: Posterior) -> list[Note]:
    flat = diffuse(posterior)
    if 2 * np.count_nonzero(flat) <= len(flat):
        return []
    text = (
        f"diffuse: {np.count_nonzero(flat):,} of {len(flat):,} records that have several possible entities belong to "
        "all of them about equally. The most probable partition means nothing here; take a smaller concentration, or "
        "block-linkage"
    )
    return [Note(Level.error, text)]
