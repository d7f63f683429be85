"""What models of a crowd with true labels share: how much each annotator annotated, and the tables of labels."""

from __future__ import annotations

import numpy as np

from consilience.arrays import Float
from consilience.data.annotations import Annotations
from consilience.models.interface import Column, Table
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.models.truth import leading
from consilience.models.truth.classes import ClassTruth
from consilience.models.truth.labels import LabelTruth


def annotation_counts(data: Annotations) -> Float[np.ndarray, " annotator"]:
    """Return how many annotations each annotator made, weights summed."""
    return np.bincount(np.asarray(data.annotator), np.asarray(data.weight, float), data.num_annotators)


def annotation_shares(data: Annotations) -> Float[np.ndarray, " annotator"]:
    """Return the part of all annotations that each annotator made, weights summed."""
    count = annotation_counts(data)
    return count / max(count.sum(), np.finfo(float).tiny)


def several_annotators(data: Annotations) -> bool:
    """Return whether there are two annotators who could agree."""
    return bool(np.count_nonzero(annotation_counts(data)) > 1)


def leading_labels(posterior: Posterior, resolved: Resolved, truth: ClassTruth) -> dict[str, np.ndarray]:
    """Return the label of each item with its probability and its certainty, as a table's ``make``."""
    return leading(truth)


def _probabilities(posterior: Posterior, resolved: Resolved, truth: LabelTruth) -> dict[str, np.ndarray]:
    found = truth.label_probabilities()
    return {"item": found.unit, "label": found.code, "probability": found.probability}


INTERVAL = (Column("lower", help="end of the central 95 % interval"), Column("upper", help="its other end"))
LABELS = Table(
    name="labels", help="The most probable label of each item.", make=leading_labels,
    columns=(
        Column("item", "item"), Column("label", "class"), Column("probability", help="of the label"),
        Column("certainty", help="the same: a truth of labels leads with its label"),
    ),
)  # fmt: skip
PROBABILITIES = Table(
    name="probabilities", help="How probable each label of each item is.", make=_probabilities,
    columns=(Column("item", "item"), Column("label", "class"), Column("probability", help="of the label")),
)
"""Of a sampler's fit, it has those labels that were drawn."""
