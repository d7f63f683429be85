"""Likelihood of annotations under the mention-pair model, whether a candidate is true summed out.

It is traced, and finds the candidates by itself: as many pairs as annotations have room, of which the last stay empty
where several annotations name one candidate. The kernels read tables made on the host instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float, Int
from consilience.models.mpa.candidates import check_data, labelled
from consilience.models.special import finite_log


class _Pairs(NamedTuple):
    """The pair of each annotation, and the item and class of each pair.

    ``real`` is where somebody named the pair, or gold labels do; ``gold`` where these say that it is true.
    """

    of_row: Int[Array, " annotation"]
    item: Int[Array, " pair"]
    class_: Int[Array, " pair"]
    real: Bool[Array, " pair"]
    gold: Bool[Array, " pair"]


def log_likelihood(
    data: Any,
    prevalence: Float[Array, " class"],
    sensitivity: Float[Array, "annotator class"],
    specificity: Float[Array, "annotator class"],
    candidates: str = "observed",
    gold: str = "ignore",
) -> Float[Array, " item"]:
    """Return the log probability of the decisions on each item's candidates.

    Parameters
    ----------
    data : `Mentions`, or `Annotations` each label of which is a class of its own.
    prevalence, sensitivity, specificity : the sites of the model.
    candidates : "observed" or "closed".
    gold : "ignore" or "use".
    """
    check_data(data, candidates, gold)
    own = labelled(data)
    item, num_items, weight = own.item, own.num_items, jnp.asarray(own.weight, jnp.result_type(float))
    ignored = [jnp.full(num_items, -1)] * len(own.label)
    known, *targets = ignored if gold == "ignore" else map(jnp.asarray, own.gold or ())
    # Items without annotations say nothing of the annotators, and nothing is made of their gold labels.
    known = jnp.where(jax.ops.segment_sum(weight, item, num_items) > 0, known, -1)
    if candidates == "closed":
        pairs = _every_pair(item, own.label[0], known, len(own.classes))
    else:
        pairs = _named_pairs(item, weight, own.label, (known, *targets))
    of_pair = [
        _if(prior, yes[own.annotator], no[own.annotator], item, own.label[0], weight, pairs, num_items)
        for prior, yes, no in (
            (finite_log(prevalence), finite_log(sensitivity), finite_log(1 - sensitivity)),
            (finite_log(1 - prevalence), finite_log(1 - specificity), finite_log(specificity)),
        )
    ]
    settled = jnp.where(pairs.gold, of_pair[0], of_pair[1])
    total = jnp.where(known[pairs.item] < 0, jnp.logaddexp(*of_pair), settled)
    return jax.ops.segment_sum(jnp.where(pairs.real, total, 0.0), pairs.item, num_items)


def _every_pair(item: Array, class_: Array, known: Int[Array, " item"], num_classes: int) -> _Pairs:
    items, classes = jnp.divmod(jnp.arange(len(known) * num_classes), num_classes)
    # Of an item without annotations true and false add up to one, whatever the parameters.
    real = jnp.ones(len(items), bool)
    return _Pairs(item * num_classes + class_, items, classes, real, known[items] == classes)


def _named_pairs(
    item: Array, weight: Float[Array, " annotation"], label: tuple[Array, ...], gold: tuple[Array, ...]
) -> _Pairs:
    """Give codes to the distinct labels of each item, gold labels among them, in sorted order.

    ``label`` and ``gold`` consist of the class and, of mentions, the antecedent.
    """
    known = gold[0]
    columns = [jnp.concatenate(pair) for pair in zip((item, *label), (jnp.arange(len(known)), *gold), strict=True)]
    order = jnp.lexsort(columns[::-1])
    differs = jnp.stack([jnp.diff(column[order]) != 0 for column in columns]).any(axis=0)
    rank = jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(differs)])
    of_row = jnp.zeros(len(rank), rank.dtype).at[order].set(rank)
    items, classes = (jnp.zeros(len(rank), column.dtype).at[of_row].set(column) for column in columns[:2])
    amount = jnp.concatenate([weight, (known >= 0).astype(weight.dtype)])
    real = jax.ops.segment_sum(amount, of_row, len(rank)) > 0
    of_gold = of_row[len(item) :]
    is_gold = jnp.zeros(len(rank), bool).at[of_gold].max(known >= 0)
    return _Pairs(of_row[: len(item)], items, classes, real, is_gold)


def _if(
    prior: Float[Array, " class"], yes: Float[Array, "annotation class"], no: Float[Array, "annotation class"],
    item: Array, class_: Array, weight: Float[Array, " annotation"], pairs: _Pairs, num_items: int,
) -> Float[Array, " pair"]:  # fmt: skip
    """Return the log probability of each pair's decisions, if it is true, or if it is false."""
    asked = jax.ops.segment_sum(weight[:, None] * no, item, num_items)
    row = jnp.arange(len(weight))
    chosen = jax.ops.segment_sum(weight * (yes - no)[row, class_], pairs.of_row, len(pairs.item))
    return prior[pairs.class_] + asked[pairs.item, pairs.class_] + chosen
