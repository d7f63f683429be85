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
from consilience.models.sites import Resolved
from consilience.models.special import finite_log


def draw_data(
    key: Key, resolved: Resolved, sizes: Mapping[str, Any], values: Mapping[str, Any] | None = None
) -> tuple[Annotations, dict[str, np.ndarray]]:
    """Draw class shares and confusion matrices from the prior, and from them true labels and annotations.

    With ``gold="use"`` the true label of every other item is known.

    Parameters
    ----------
    sizes : ``num_items, num_annotators, num_labels``, and ``annotations_per_item``: how many different annotators,
        chosen at random, label each item; None for all of them.
    values : true values as this function returns them: keep their ``prevalence`` and ``confusion``, and draw the rest.

    Returns
    -------
    data : sorted by item.
    values : ``prevalence`` ``(class,)``, ``confusion`` ``(annotator, class, label)``, ``label`` ``(item,)``.

    Raises
    ------
    UnsupportedRequest : more annotations an item than annotators.
    """
    counts = {name: sizes[name] for name in ("num_items", "num_annotators", "num_labels")}
    num_items, num_annotators, num_labels = counts.values()
    size = sizes["annotations_per_item"] or num_annotators
    if size > num_annotators:
        raise UnsupportedRequest(f"{size} annotations of one item need as many annotators, not {num_annotators}")
    key_prevalence, key_confusion, key_who, key_label = jax.random.split(key, 4)
    if values is None:
        prevalence = resolved.prior("prevalence").sample(key_prevalence)
        confusion = resolved.prior("confusion").expand((num_annotators, num_labels)).sample(key_confusion)
    else:
        prevalence, confusion = jnp.asarray(values["prevalence"]), jnp.asarray(values["confusion"])
    item = np.repeat(np.arange(num_items), size)
    annotator = np.asarray(choose_annotators(key_who, num_items, num_annotators, size)).ravel()
    true, label = draw_annotations(key_label, prevalence, confusion, item, annotator, num_items)
    gold = np.where(np.arange(num_items) % 2, true, -1) if resolved.settings.gold == "use" else None
    data = Annotations.from_codes(item, annotator, np.asarray(label), gold=gold, **counts)
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
    true = jax.random.categorical(key_true, finite_log(prevalence), shape=(num_items,))
    return true, jax.random.categorical(key_label, finite_log(confusion)[annotator, true[item]])


def choose_annotators(key: Key, num_items: int, num_annotators: int, size: int) -> Int[np.ndarray, "item annotation"]:
    """Choose different annotators for each item, all sets being as likely (Floyd's algorithm, all items at once)."""
    if size == num_annotators:
        return np.broadcast_to(np.arange(num_annotators), (num_items, size))
    highest = np.arange(num_annotators - size, num_annotators)
    chosen = np.array(jax.random.randint(key, (num_items, size), 0, highest + 1))
    for place, last in enumerate(highest):
        again = (chosen[:, :place] == chosen[:, place, None]).any(axis=1)
        chosen[again, place] = last
    return np.sort(chosen, axis=1)
