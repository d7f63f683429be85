"""Likelihood of annotations under the mention-pair model, whether a candidate is true summed out.

It is traced, and finds the candidates by itself: as many pairs as annotations have room, of which the last stay empty
where several annotations name one candidate. The kernels read tables made on the host instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.mentions import Mentions
from consilience.models.mpa.candidates import check_data, num_classes

__all__ = ["log_likelihood"]


class _Pairs(NamedTuple):
    """The pair of each annotation, and the item and class of each pair; ``real`` where somebody named it."""

    of_row: Int[Array, " annotation"]
    item: Int[Array, " pair"]
    class_: Int[Array, " pair"]
    real: Bool[Array, " pair"]


def log_likelihood(
    data: Any,
    prevalence: Float[Array, " class"],
    sensitivity: Float[Array, "annotator class"],
    specificity: Float[Array, "annotator class"],
    candidates: str = "observed",
) -> Float[Array, " item"]:
    """Return the log probability of the decisions on each item's candidates.

    Parameters
    ----------
    data : `Mentions`, or `Annotations` each label of which is a class of its own.
    prevalence, sensitivity, specificity : the sites of the model.
    candidates : "observed" or "closed".
    """
    check_data(data, candidates)
    mentions = isinstance(data, Mentions)
    item, num_items = (data.mention, data.num_mentions) if mentions else (data.item, data.num_items)
    class_ = data.type if mentions else data.label
    weight = jnp.ones(data.num_annotations) if mentions else jnp.asarray(data.weight, jnp.result_type(float))
    if candidates == "closed":
        pairs = _every_pair(item, class_, num_items, num_classes(data))
    else:
        named = (class_, data.antecedent) if mentions else (class_,)
        pairs = _named_pairs(item, class_, named, weight)
    of_pair = [
        _if(prior, yes[data.annotator], no[data.annotator], item, class_, weight, pairs, num_items)
        for prior, yes, no in (
            (_log(prevalence), _log(sensitivity), _log(1 - sensitivity)),
            (_log(1 - prevalence), _log(1 - specificity), _log(specificity)),
        )
    ]
    return jax.ops.segment_sum(jnp.where(pairs.real, jnp.logaddexp(*of_pair), 0.0), pairs.item, num_items)


def _log(probability: Float[Array, "*cells"]) -> Float[Array, "*cells"]:
    """Take logarithms that stay finite, and so do their gradients, where a draw underflows."""
    return jnp.log(jnp.maximum(probability, jnp.finfo(probability.dtype).tiny))


def _every_pair(item: Array, class_: Array, num_items: int, num_classes: int) -> _Pairs:
    items, classes = jnp.divmod(jnp.arange(num_items * num_classes), num_classes)
    # Of an item without annotations true and false add up to one, whatever the parameters.
    return _Pairs(item * num_classes + class_, items, classes, jnp.ones(num_items * num_classes, bool))


def _named_pairs(item: Array, class_: Array, named: tuple, weight: Float[Array, " annotation"]) -> _Pairs:
    """Give codes to the distinct labels of each item, in sorted order."""
    columns = (item, *named)
    order = jnp.lexsort(columns[::-1])
    differs = jnp.stack([jnp.diff(jnp.asarray(column)[order]) != 0 for column in columns]).any(axis=0)
    rank = jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(differs)])
    of_row = jnp.zeros(len(rank), rank.dtype).at[order].set(rank)
    blank = jnp.zeros(len(rank), jnp.int32)
    real = jax.ops.segment_sum(weight, of_row, len(rank)) > 0
    return _Pairs(of_row, blank.at[of_row].set(item), blank.at[of_row].set(class_), real)


def _if(
    prior: Float[Array, " class"], yes: Float[Array, "annotation class"], no: Float[Array, "annotation class"],
    item: Array, class_: Array, weight: Float[Array, " annotation"], pairs: _Pairs, num_items: int,
) -> Float[Array, " pair"]:  # fmt: skip
    """Return the log probability of each pair's decisions, if it is true, or if it is false."""
    asked = jax.ops.segment_sum(weight[:, None] * no, item, num_items)
    row = jnp.arange(len(weight))
    chosen = jax.ops.segment_sum(weight * (yes - no)[row, class_], pairs.of_row, len(pairs.item))
    return prior[pairs.class_] + asked[pairs.item, pairs.class_] + chosen
