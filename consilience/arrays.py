"""Names for the array and key types of signatures; nothing here computes.

``Float[Array, "item draw"]`` is an array of floats with those axes. The axes are the words of the house: item,
annotator, label, class, entry, draw, chain. Tests can check them with jaxtyping
(see CONTRIBUTING.md); users need not have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Int

    import jax
    import numpy as np

    Array = jax.Array | np.ndarray
    Key = jax.Array
else:
    Array = Key = Any
    try:
        from jaxtyping import Bool, Float, Int
    except ModuleNotFoundError:

        class _Unchecked:
            """Stands in for jaxtyping, which users need not have: an annotation that says nothing."""

            def __class_getitem__(cls, item: Any) -> Any:
                return Any

        Bool = Float = Int = _Unchecked

