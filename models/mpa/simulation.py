"""Annotations as a crowd would give them, for tests and demonstrations (after Paun et al. 2018, section 5.1).

The model itself decides on each candidate apart, so that an annotator could choose two labels of an item, or none. An
annotation names exactly one. What is simulated is therefore the crowd of the paper's own simulations and not the prior
predictive: a true label per item, annotators who give it with their sensitivity for it, and errors in equal parts.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Key
from consilience.data.annotations import Annotations
from consilience.models.mpa.priors import Priors, site_prior

__all__ = ["simulate"]


def simulate(
    key: Key, priors: Priors | None = None, *, num_items: int = 100, num_annotators: int = 10, num_labels: int = 3,
    annotations_per_item: int | None = None, candidates: str = "observed", gold: str = "ignore",
    hyperparameters: str = "fixed", decisions: str = "separate", author: int = 0,
) -> tuple[Annotations, dict[str, np.ndarray]]:  # fmt: skip
    """Draw true labels and annotations of them.

    Parameters
    ----------
    priors : of the sensitivities, and of how common each label is: a draw of each prevalence, relative to their sum.
    annotations_per_item : how many annotators label an item, each once; all of them by default.
    candidates, gold, hyperparameters, decisions, author : accepted so that simulations of all members are called alike.

    Returns
    -------
    data : with the true labels as gold labels.
    values : ``sensitivity``, shape ``(annotator, class)``, and ``label``, shape ``(item,)``.
    """
    keys = jax.random.split(key, 5)
    priors = priors or Priors()
    sizes: Any = Annotations.from_codes(
        [0], [0], [0], num_items=num_items, num_annotators=num_annotators, num_labels=num_labels
    )
    common = _draw(keys[0], "prevalence", priors, sizes, (num_labels,))
    sensitivity = _draw(keys[1], "sensitivity", priors, sizes, (num_annotators, num_labels))
    label = jax.random.choice(keys[2], num_labels, (num_items,), p=common / common.sum())
    number = min(annotations_per_item or num_annotators, num_annotators)
    order = jax.random.uniform(keys[3], (num_items, num_annotators)).argsort(axis=1)
    annotator = jnp.sort(order[:, :number], axis=1)
    key_right, key_other = jax.random.split(keys[4])
    right = jax.random.bernoulli(key_right, sensitivity[annotator, label[:, None]])
    right = right | (num_labels == 1)
    away = jax.random.randint(key_other, annotator.shape, 1, max(num_labels, 2))
    given = jnp.where(right, label[:, None], (label[:, None] + away) % num_labels)
    data = Annotations.from_codes(
        np.repeat(np.arange(num_items), number), np.asarray(annotator).ravel(), np.asarray(given).ravel(),
        gold=np.asarray(label), num_items=num_items, num_annotators=num_annotators, num_labels=num_labels,
    )  # fmt: skip
    return data, {"sensitivity": np.asarray(sensitivity), "label": np.asarray(label)}


def _draw(key: Key, site: str, priors: Priors, data: Annotations, shape: tuple[int, ...]) -> jax.Array:
    return site_prior(site, priors, data, data.num_labels).expand(shape).sample(key)
