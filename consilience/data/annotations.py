"""Annotations: one label by one annotator for one item, in a long table."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consilience.data.contract import Contract, array, ids, size

__all__ = ["Annotations"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Annotations(Contract):
    """Labels from a crowd, as codes; made by `read_annotations`, `from_codes` or `from_counts`.

    Parameters
    ----------
    item, label : int32, shape ``(annotation,)``; codes into ``items`` and ``labels``.
    annotator : int32, shape ``(annotation,)``; code into ``annotators``, -1 where only counts are known.
    weight : float64, shape ``(annotation,)``; how many times the row counts. One where the file has no weights.
    gold : int32, shape ``(item,)``, the known label of an item or -1; ``None`` where the input has no such column.
    num_annotations, num_items, num_annotators, num_labels : sizes.
    items, annotators, labels : object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.
    """

    item: Any = array()
    annotator: Any = array()
    label: Any = array()
    weight: Any = array()
    gold: Any = array(default=None)
    num_annotations: int = size()
    num_items: int = size()
    num_annotators: int = size()
    num_labels: int = size()
    items: Any = ids()
    annotators: Any = ids()
    labels: Any = ids()
