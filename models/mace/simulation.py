"""Annotations from the prior predictive of MACE: annotators who know the label, or guess."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from consilience.arrays import Key
from consilience.data.annotations import Annotations
from consilience.models.mace.priors import Priors, skill_priors
from consilience.models.mace.skills import guesses

__all__ = ["simulate"]


def simulate(
    key: Key, priors: Priors | None = None, *, num_items: int = 100, num_annotators: int = 10, num_labels: int = 3,
    annotations_per_item: int = 5, values: Mapping[str, Any] | None = None, **options: Any,
) -> tuple[Annotations, dict[str, np.ndarray]]:  # fmt: skip
    """Draw skills and labels from the prior, and annotations from them.

    Options of inference have no part in how annotations arise, and are accepted so that simulations of all members are
    called alike.

    Parameters
    ----------
    annotations_per_item : by different annotators, neighbours in a circle; no more than there are annotators.
    values : true values as this function returns them: keep them, and who labels which item, and draw the annotations
        alone anew.

    Returns
    -------
    data : the annotations, without gold labels.
    values : ``competence`` ``(annotator,)``, ``guess`` ``(annotator, label)``, ``label`` ``(item,)``; ``first``
        ``(item,)``, the first annotator of each item.
    """
    key_values, key_annotations = jax.random.split(key)
    if values is None:
        values = _from_the_prior(key_values, priors or Priors(), num_items, num_annotators, num_labels)
    random = np.random.default_rng(np.asarray(jax.random.key_data(key_annotations)))
    per_item = min(annotations_per_item, num_annotators)
    item, place = np.indices((num_items, per_item)).reshape(2, -1)
    annotator = (values["first"][item] + place) % num_annotators
    knows = random.random(len(item)) < values["competence"][annotator]
    guessed = guesses(random, np.asarray(values["guess"], float), annotator)
    label = np.where(knows, values["label"][item], guessed)
    data = Annotations.from_codes(
        item, annotator, label, num_items=num_items, num_annotators=num_annotators, num_labels=num_labels
    )
    return data, dict(values)


def _from_the_prior(
    key: Key, priors: Priors, num_items: int, num_annotators: int, num_labels: int
) -> dict[str, np.ndarray]:
    key_competence, key_guess, key_label, key_first = jax.random.split(key, 4)
    shape = Annotations.from_codes([0], [0], [0], num_annotators=num_annotators, num_labels=num_labels)
    competence, guess = skill_priors(priors, shape)
    return {
        "competence": np.asarray(competence.sample(key_competence)),
        "guess": np.asarray(guess.sample(key_guess)),
        "label": np.asarray(jax.random.randint(key_label, (num_items,), 0, num_labels)),
        "first": np.asarray(jax.random.randint(key_first, (num_items,), 0, num_annotators)),
    }
