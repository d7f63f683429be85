"""Names for the array and key types of signatures; nothing here computes.

Dimension names in the strings are the words of the house: item, annotator, label, class, entry, draw, chain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax
    import numpy as np

    Array = jax.Array | np.ndarray
    Key = jax.Array
else:
    Array = Any
    Key = Any

__all__ = ["Array", "Key"]
