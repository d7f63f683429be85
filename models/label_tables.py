"""Tables of labels, which members share whose truth is classes."""

from __future__ import annotations

import numpy as np

from consilience.models.interface import Column, Table
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.models.truth import leading
from consilience.models.truth.classes import ClassTruth
from consilience.models.truth.labels import LabelTruth

INTERVAL = (
    Column("lower", help="end of the central interval, of 95 % by default"), Column("upper", help="its other end")
)


def leading_labels(posterior: Posterior, resolved: Resolved, truth: ClassTruth) -> dict[str, np.ndarray]:
    """Return the label of each item with its probability and its certainty, as a table's ``make``."""
    return leading(truth)


def _probabilities(
    posterior: Posterior, resolved: Resolved, truth: LabelTruth, wide: bool = False
) -> dict[str, np.ndarray]:
    """Return how probable the labels are, one row for each label of an item, or one column for each label.

    Parameters
    ----------
    wide : whether every label has a column, and every item one row.
    """
    found = truth.label_probabilities()
    if not wide:
        return {"item": found.unit, "label": found.code, "probability": found.probability}
    dense = np.zeros((truth.num_units, truth.num_classes))
    dense[found.unit, found.code] = found.probability
    columns = {str(name): own for name, own in zip(truth.names("class", truth.num_classes), dense.T, strict=True)}
    return {"item": np.arange(truth.num_units), **columns}


LABELS = Table(
    name="labels", help="The most probable label of each item.", make=leading_labels,
    columns=(
        Column("item", "item"), Column("label", "class"), Column("probability", help="of the label"),
        Column("certainty", help="the same: a truth of labels leads with its label"),
    ),
)  # fmt: skip
PROBABILITIES = Table(
    name="probabilities", help="How probable each label of each item is; with wide=True a column for each label.",
    make=_probabilities,
    columns=(Column("item", "item"), Column("label", "class"), Column("probability", help="of the label")),
)  # fmt: skip
"""Of a sampler's fit, it has those labels that were drawn."""
