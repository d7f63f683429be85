"""Annotations from the prior predictive of MACE: annotators who know the label, or guess."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from consilience.arrays import Key
from consilience.data.annotations import Annotations
from consilience.models.mace.skills import guesses
from consilience.models.sites import Resolved


def draw_data(
    key: Key, resolved: Resolved, sizes: Mapping[str, Any], values: Mapping[str, Any] | None = None
) -> tuple[Annotations, dict[str, np.ndarray]]:
    """Draw skills and labels from the prior, and annotations from them.

    Parameters
    ----------
    sizes : ``num_items, num_annotators, num_labels``, and ``annotations_per_item``: by different annotators, neighbours
        in a circle; no more than there are annotators.
    values : true values as this function returns them: keep them, and who labels which item, and draw the annotations
        alone anew.

    Returns
    -------
    data : the annotations, without gold labels.
    values : ``competence`` ``(annotator,)``, ``guess`` ``(annotator, label)``, ``label`` ``(item,)``; ``first``
        ``(item,)``, the first annotator of each item.
    """
    counts = {name: sizes[name] for name in ("num_items", "num_annotators", "num_labels")}
    num_items, num_annotators, _ = counts.values()
    key_values, key_annotations = jax.random.split(key)
    if values is None:
        values = _from_the_prior(key_values, resolved, **counts)
    random = np.random.default_rng(np.asarray(jax.random.key_data(key_annotations)))
    per_item = min(sizes["annotations_per_item"], num_annotators)
    item, place = np.indices((num_items, per_item)).reshape(2, -1)
    annotator = (values["first"][item] + place) % num_annotators
    knows = random.random(len(item)) < values["competence"][annotator]
    guessed = guesses(random, np.asarray(values["guess"], float), annotator)
    label = np.where(knows, values["label"][item], guessed)
    return Annotations.from_codes(item, annotator, label, **counts), dict(values)


def _from_the_prior(
    key: Key, resolved: Resolved, num_items: int, num_annotators: int, num_labels: int
) -> dict[str, np.ndarray]:
    key_competence, key_guess, key_label, key_first = jax.random.split(key, 4)
    competence, guess = (resolved.prior(site).expand((num_annotators,)) for site in ("competence", "guess"))
    return {
        "competence": np.asarray(competence.sample(key_competence)),
        "guess": np.asarray(guess.sample(key_guess)),
        "label": np.asarray(jax.random.randint(key_label, (num_items,), 0, num_labels)),
        "first": np.asarray(jax.random.randint(key_first, (num_items,), 0, num_annotators)),
    }
