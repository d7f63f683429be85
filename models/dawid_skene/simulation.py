"""Annotations from the prior predictive of the Dawid-Skene model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models.dawid_skene.priors import Priors, site_priors

__all__ = ["draw_annotations", "simulate"]


def simulate(
    key: Key, priors: Priors | None = None, *, num_items: int = 100, num_annotators: int = 10, num_labels: int = 3,
    annotations_per_item: int | None = None, values: Mapping[str, Any] | None = None, gold: str = "ignore",
) -> tuple[Annotations, dict[str, np.ndarray]]:  # fmt: skip
    """Draw class shares and confusion matrices from the prior, and from them true labels and annotations.

    Parameters
    ----------
    annotations_per_item : how many different annotators, chosen at random, label each item; all of them by default.
    values : true values as this function returns them: keep their ``prevalence`` and ``confusion``, and draw the rest.
    gold : with "use", the true label of every other item is known.

    Returns
    -------
    data : sorted by item.
    values : ``prevalence`` ``(class,)``, ``confusion`` ``(annotator, class, label)``, ``label`` ``(item,)``.

    Raises
    ------
    UnsupportedRequest : more annotations an item than annotators.
    """
    size = num_annotators if annotations_per_item is None else annotations_per_item
    if size > num_annotators:
        raise UnsupportedRequest(f"{size} annotations of one item need as many annotators, not {num_annotators}")
    key_prevalence, key_confusion, key_who, key_label = jax.random.split(key, 4)
    if values is None:
        one = Annotations.from_codes(
            [0], [0], [0], num_items=num_items, num_annotators=num_annotators, num_labels=num_labels
        )
        prevalence_prior, confusion_prior = site_priors(priors or Priors(), one)
        prevalence = prevalence_prior.sample(key_prevalence)
        confusion = confusion_prior.expand((num_annotators, num_labels)).sample(key_confusion)
    else:
        prevalence, confusion = jnp.asarray(values["prevalence"]), jnp.asarray(values["confusion"])
    item = np.repeat(np.arange(num_items), size)
    annotator = np.asarray(_choose(key_who, num_items, num_annotators, size)).ravel()
    true, label = draw_annotations(key_label, prevalence, confusion, item, annotator, num_items)
    data = Annotations.from_codes(
        item, annotator, np.asarray(label), num_items=num_items, num_annotators=num_annotators, num_labels=num_labels,
        gold=np.where(np.arange(num_items) % 2, true, -1) if gold == "use" else None,
    )  # fmt: skip
    values = {"prevalence": prevalence, "confusion": confusion, "label": true}
    return data, {name: np.asarray(value) for name, value in values.items()}


def draw_annotations(
    key: Key,
    prevalence: Float[Array, " class"],
    confusion: Float[Array, "annotator class label"],
    item: Int[Array, " annotation"],
    annotator: Int[Array, " annotation"],
    num_items: int,
) -> tuple[Int[Array, " item"], Int[Array, " annotation"]]:
    """Draw the true label of every item, and what each annotation says."""
    key_true, key_label = jax.random.split(key)
    true = jax.random.categorical(key_true, _log(prevalence), shape=(num_items,))
    return true, jax.random.categorical(key_label, _log(confusion)[annotator, true[item]])


def _log(probability: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    return jnp.log(jnp.maximum(probability, jnp.finfo(probability.dtype).tiny))


def _choose(key: Key, num_items: int, num_annotators: int, size: int) -> Int[np.ndarray, "item annotation"]:
    """Choose different annotators for each item, all sets being as likely (Floyd's algorithm, all items at once)."""
    if size == num_annotators:
        return np.broadcast_to(np.arange(num_annotators), (num_items, size))
    highest = np.arange(num_annotators - size, num_annotators)
    chosen = np.array(jax.random.randint(key, (num_items, size), 0, highest + 1))
    for place, last in enumerate(highest):
        again = (chosen[:, :place] == chosen[:, place, None]).any(axis=1)
        chosen[again, place] = last
    return np.sort(chosen, axis=1)
