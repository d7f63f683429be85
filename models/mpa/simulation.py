"""Annotations as a crowd would give them, for tests and demonstrations (after Paun et al. 2018, section 5.1).

The model itself decides on each candidate apart, so that an annotator could choose two labels of an item, or none. An
annotation names exactly one. What is simulated is therefore the crowd of the paper's own simulations and not the prior
predictive: a true label per item, annotators who give it with their sensitivity for it, and errors in equal parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.models.crowd.density import LEAST_ITEMS, of_size
from consilience.models.rows import padded_size
from consilience.models.sites import Resolved


def draw_data(
    key: Key, resolved: Resolved, sizes: Mapping[str, Any]
) -> tuple[Annotations, dict[str, np.ndarray]]:
    """Draw true labels and annotations of them.

    The prior says how good the annotators are, and how common each label is: a draw of each prevalence, relative to
    their sum.

    Parameters
    ----------
    sizes : ``num_items, num_annotators, num_labels``, and ``annotations_per_item``: how many annotators label an item,
        each once; None for all of them.

    Returns
    -------
    data : with the true labels as gold labels.
    values : ``sensitivity``, shape ``(annotator, class)``, and ``label``, shape ``(item,)``.
    """
    counts = {name: sizes[name] for name in ("num_items", "num_annotators", "num_labels")}
    number = min(sizes["annotations_per_item"] or sizes["num_annotators"], sizes["num_annotators"])
    common, sensitivity = _parameters(key, of_size(resolved, 1))
    size = padded_size(sizes["num_items"], LEAST_ITEMS)
    drawn = _annotations((size, number), key, common, sensitivity)
    label, annotator, given = (np.asarray(part)[: sizes["num_items"]] for part in drawn)
    data = Annotations.from_codes(
        np.indices(given.shape)[0].ravel(), annotator.ravel(), given.ravel(), gold=label, **counts
    )
    return data, {"sensitivity": np.asarray(sensitivity), "label": label}


@jax.jit
def _parameters(key: Key, resolved: Resolved) -> tuple[Float[Array, " class"], Float[Array, "annotator class"]]:
    keys, data = jax.random.split(key, 5), resolved.data
    common = resolved.prior("prevalence").expand((data.num_labels,)).sample(keys[0])
    return common, resolved.prior("sensitivity").expand((data.num_annotators, data.num_labels)).sample(keys[1])


@jax.jit(static_argnums=0)
def _annotations(
    shape: tuple[int, int], key: Key, common: Float[Array, " class"], sensitivity: Float[Array, "annotator class"]
) -> tuple[Int[Array, " item"], Int[Array, "item annotation"], Int[Array, "item annotation"]]:
    """Draw true labels, and of each item who annotates it and with which labels."""
    keys = jax.random.split(key, 5)
    (num_items, number), (num_annotators, num_labels) = shape, sensitivity.shape
    label = jax.random.choice(keys[2], num_labels, (num_items,), p=common / common.sum())
    order = jax.random.uniform(keys[3], (num_items, num_annotators)).argsort(axis=1)
    annotator = jnp.sort(order[:, :number], axis=1)
    key_right, key_other = jax.random.split(keys[4])
    right = jax.random.bernoulli(key_right, sensitivity[annotator, label[:, None]])
    right = right | (num_labels == 1)
    away = jax.random.randint(key_other, annotator.shape, 1, max(num_labels, 2))
    return label, annotator, jnp.where(right, label[:, None], (label[:, None] + away) % num_labels)
