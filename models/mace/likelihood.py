r"""What annotations say under MACE: the probability of an item's annotations for every label that could be true.

.. math::

    \log p(l_i \mid T_i = t) = \sum_{n : i_n = i} w_n \log(\theta_{j_n} 1[l_n = t] + (1 - \theta_{j_n}) \xi_{j_n l_n})
                             = \sum_n w_n \log g_n + \sum_{n : l_n = t} w_n \log(1 + k_n / g_n),

with :math:`k = \theta` and :math:`g = (1 - \theta) \xi`. The second form needs one number of each annotation, the
*lift*, which depends on the annotator and the label given only: a small table. The first sum is the same for all labels
and plays no part in which of them is true. CAVI and EM put other weights k and g in the same formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models.gold import uses_gold
from consilience.models.interface import Shards, Total, unsharded
from consilience.models.rows import copies, divide_items, divide_rows, sorted_order, sum_rows
from consilience.models.sites import Resolved
from consilience.models.special import finite_log


class Tables(NamedTuple):
    """The annotations, sorted by item and label, as the updates read them.

    Parameters
    ----------
    place : shape ``(annotation,)``, sorted; ``item * num_labels + label``.
    cell : shape ``(annotation,)``; ``annotator * num_labels + label``.
    weight : shape ``(annotation,)``.
    counts : shape ``(annotator, label)``; how often an annotator gave a label, weights summed.
    log_prior : shape ``(item, label)``; of the true label, -inf where it is ruled out.
    """

    place: Int[Array, " annotation"]
    cell: Int[Array, " annotation"]
    weight: Float[Array, " annotation"]
    counts: Float[Array, "annotator label"]
    log_prior: Float[Array, "item label"]


class LogWeights(NamedTuple):
    """Logarithms of the weights k of "knows the label" and g of "guesses this label"; they need not add up to one."""

    knows: Float[Array, " annotator"]
    guess: Float[Array, "annotator label"]


class Responsibilities(NamedTuple):
    """What the weights say of items and annotations.

    Parameters
    ----------
    probability : shape ``(item, label)``; of the true label.
    known : shape ``(annotator, label)``; expected number of annotations that were known.
    log_evidence : shape ``(item,)``; log normaliser, up to the first sum of the module's formula.
    log_guessed : shape ``(annotator, label)``; that sum, by who gave which label.
    """

    probability: Float[Array, "item label"]
    known: Float[Array, "annotator label"]
    log_evidence: Float[Array, " item"]
    log_guessed: Float[Array, "annotator label"]


def require_annotators(data: Annotations) -> None:
    """Refuse counts of labels, of which nobody knows who gave them.

    Raises
    ------
    UnsupportedRequest : the data have no annotators.
    """
    if data.num_annotators == 0:
        raise UnsupportedRequest(
            "the data do not say who gave which label, and 'mace' is about annotators; give a column of annotators, or "
            "use a model of the items alone, such as majority-vote or dirichlet"
        )


def tables(resolved: Resolved) -> Tables:
    """Sort the annotations; on the host.

    Raises
    ------
    UnsupportedRequest : the annotators are unknown, or items times labels are too many.
    """
    data = resolved.data
    require_annotators(data)
    item, annotator, label = (np.asarray(column, np.int64) for column in (data.item, data.annotator, data.label))
    largest = max(data.num_items, data.num_annotators) * data.num_labels
    if largest > np.iinfo(np.int32).max:
        raise UnsupportedRequest(
            f"{data.num_items:,} items or {data.num_annotators:,} annotators times {data.num_labels:,} labels are too "
            "many for tables of all pairs; leave out labels that nobody gave"
        )
    place, weight, dtype = item * data.num_labels + label, np.asarray(data.weight, float), jnp.result_type(float)
    order = sorted_order(place)
    cell = annotator * data.num_labels + label
    counts = np.bincount(cell, weight, data.num_annotators * data.num_labels)
    return Tables(
        place=place[order].astype(np.int32),
        cell=cell[order].astype(np.int32),
        weight=weight[order].astype(dtype),
        counts=counts.reshape(data.num_annotators, data.num_labels).astype(dtype),
        log_prior=log_prior(resolved),
    )


def _divide_tables(tables: Tables, number: int) -> tuple[Tables, Int[np.ndarray, " shard"]]:
    """Divide the items, with their annotations, into equal numbers, stacked on a new first axis; on the host.

    What pads a shard is an item of one certain label, without annotations.

    Returns
    -------
    the tables, and how many items of each shard are real.
    """
    log_prior = np.asarray(tables.log_prior)
    num_items, num_labels = log_prior.shape
    first_item, size = divide_items(num_items, number)
    place = np.asarray(tables.place)
    first_row = np.searchsorted(place, first_item * num_labels)
    place, cell, weight = divide_rows((place, tables.cell, tables.weight), first_row, (-1, 0, 0.0))
    last = size * num_labels - 1
    place = np.where(place < 0, last, place - (first_item[:-1, None] * num_labels)).astype(np.int32)
    certain = np.where(np.arange(num_labels) == 0, 0.0, -np.inf)
    parts = divide_rows(log_prior, first_item, certain, length=size)
    return Tables(place, cell, weight, copies(tables.counts, number), parts), np.diff(first_item)


def shard(problem: Any, number: int) -> Shards:
    """Divide the items of a problem of an ascent, which is its ``tables`` and what all shards share; on the host.

    Parameters
    ----------
    problem : NamedTuple with the field ``tables``.
    number : of shards.
    """
    tables, lengths = _divide_tables(problem.tables, number)
    shared = {name: values for name, values in problem._asdict().items() if name != "tables"}
    return Shards(problem._replace(tables=tables, **copies(shared, number)), {"probability": lengths})


def log_prior(resolved: Resolved) -> Float[Array, "item label"]:
    """Return the log prior of every item's true label: all labels alike, -inf where one is ruled out.

    The setting ``gold`` "use" leaves an item whose gold label is known that label alone; ``candidates`` "observed"
    rules out labels that nobody gave the item, unless it has no annotations.
    """
    data, settings = resolved.data, resolved.settings
    return _log_prior(data, uses_gold(data, settings.gold), settings.candidates)


@partial(jax.jit, static_argnames=("use_gold", "candidates"))
def _log_prior(data: Annotations, use_gold: bool, candidates: str) -> Float[Array, "item label"]:
    allowed = jnp.ones((data.num_items, data.num_labels), bool)
    if candidates == "observed":
        given = jnp.zeros_like(allowed).at[data.item, data.label].max(jnp.asarray(data.weight) > 0)
        allowed = given | ~given.any(axis=1, keepdims=True)
    if use_gold:
        gold = jnp.asarray(data.gold)[:, None]
        allowed = jnp.where(gold >= 0, gold == jnp.arange(data.num_labels), allowed)
    return jnp.where(allowed, -jnp.log(allowed.sum(axis=1, keepdims=True)), -jnp.inf)


def label_evidence(weights: LogWeights, tables: Tables) -> Float[Array, "item label"]:
    """Sum the lifts of the annotations that gave each label."""
    # Without the barrier the table would be computed anew for every annotation.
    lift = jax.lax.optimization_barrier(jax.nn.softplus(weights.knows[:, None] - weights.guess)).ravel()

    def look_up(rows: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        place, cell, weight = rows
        return place, weight * lift[cell]

    return sum_rows(look_up, tables[:3], (tables.log_prior.size,), lift.dtype).reshape(tables.log_prior.shape)


def matches(probability: Float[Array, "item label"], tables: Tables) -> Float[Array, "annotator label"]:
    """Count the annotations that gave the true label, by who gave which label."""
    flat = probability.ravel()

    def count(rows: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        place, cell, weight = rows
        return cell, weight * flat[place]

    return sum_rows(count, tables[:3], (tables.counts.size,), flat.dtype).reshape(tables.counts.shape)


def known_share(weights: LogWeights) -> Float[Array, "annotator label"]:
    """Return the probability that an annotation was known, given that it is right: k / (k + g)."""
    return jax.nn.sigmoid(weights.knows[:, None] - weights.guess)


def responsibilities(weights: LogWeights, tables: Tables, total: Total = unsharded) -> Responsibilities:
    """Do the E-step; ``total`` sums over the shards of a divided problem."""
    log_joint = tables.log_prior + label_evidence(weights, tables)
    log_evidence = jax.nn.logsumexp(log_joint, axis=1)
    probability = jnp.exp(log_joint - log_evidence[:, None])
    known = jnp.minimum(known_share(weights) * total(matches(probability, tables)), tables.counts)
    return Responsibilities(probability, known, log_evidence, tables.counts * weights.guess)


def label_log_likelihood(sites: Mapping[str, Any], data: Annotations) -> Float[Array, "item label"]:
    """Return the log probability of each item's annotations for each label that could be true.

    Parameters
    ----------
    sites : ``competence``, shape ``(annotator,)``, and ``guess``, shape ``(annotator, label)``.
    """
    weights = log_weights(sites["competence"], 1 - sites["competence"], sites["guess"])
    lift = jax.nn.softplus(weights.knows[:, None] - weights.guess)
    row = jnp.asarray(data.weight, lift.dtype)
    evidence = jnp.zeros((data.num_items, data.num_labels), lift.dtype)
    evidence = evidence.at[data.item, data.label].add(row * lift[data.annotator, data.label])
    guessed = row * weights.guess[data.annotator, data.label]
    return evidence + jax.ops.segment_sum(guessed, data.item, data.num_items)[:, None]


def log_weights(
    knows: Float[Array, " annotator"], guesses: Float[Array, " annotator"], guess: Float[Array, "annotator label"]
) -> LogWeights:
    """Return the logarithms of probabilities."""
    return LogWeights(finite_log(knows), finite_log(guesses)[:, None] + finite_log(guess))
