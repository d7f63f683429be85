"""Ratings: one number by one annotator for one item, in a long table."""

from __future__ import annotations

import dataclasses
from typing import Any

from consilience.data.contract import Contract, array, ids, size

__all__ = ["Ratings"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Ratings(Contract):
    """Numbers from a crowd; made by `read_ratings` or `from_codes`.

    Parameters
    ----------
    item, annotator : int32, shape ``(rating,)``; codes into ``items`` and ``annotators``.
    rating : float64, shape ``(rating,)``, finite, in the units of the file.
    num_ratings, num_items, num_annotators : sizes.
    items, annotators : object arrays of the user's own ids, in code order; ``None`` in a copy that went through JAX.
    """

    item: Any = array()
    annotator: Any = array()
    rating: Any = array()
    num_ratings: int = size()
    num_items: int = size()
    num_annotators: int = size()
    items: Any = ids()
    annotators: Any = ids()
