"""Predictions: what a system says of each item, as an ordered list of classes."""

from __future__ import annotations

import dataclasses
from typing import Any

from consilience.data.contract import Contract, array, ids, size

__all__ = ["Predictions"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Predictions(Contract):
    """Ordered lists of classes, one per item; made by `read_predictions`, `from_scores` or `from_lists`.

    Parameters
    ----------
    ranked : int32, shape ``(item, position)``; class codes, best first, -1 after the end of a shorter list. Scores or ranks that
        are equal are ordered by the lowest class code.
    num_items, num_positions, num_classes : sizes.
    items, classes : object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.
    name : what to call the system in tables.
    """

    ranked: Any = array()
    num_items: int = size()
    num_positions: int = size()
    num_classes: int = size()
    items: Any = ids()
    classes: Any = ids()
    name: Any = ids()
