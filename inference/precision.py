"""In which precision an ascent runs, and what becomes of its float64 numbers where the rest of JAX knows float32 alone.

Near its end an ascent gains so little a step that rounding decides when it stops, and float32 rounds differently on
each number of devices: answers that should be equal were not. So on a CPU it runs in float64, where sums of any order
agree to 1e-15, unless its state is very large.
"""

from __future__ import annotations

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.inference.ascent import state_shapes
from consilience.models.interface import Ascent
from consilience.models.sites import Resolved

DTYPES = ("float32", "float64")
"""What a user may ask for."""

MOST_IN_FLOAT64 = 1 << 24
"""An ascent whose state has more numbers than this runs in float32 unless float64 is asked for: memory would double."""


def in_dtype(dtype: str | None) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which JAX's floats are of a type; None leaves them as they are."""
    return contextlib.nullcontext() if dtype is None else jax.enable_x64(dtype == "float64")


def prepared_ascent(ascent: Ascent, resolved: Resolved, dtype: str | None) -> tuple[Any, str]:
    """Return the problem of an ascent, and the type of the floats in which it is to run.

    Parameters
    ----------
    dtype : asked for; None takes that of JAX where a user has switched to float64, float64 on a CPU, and float32 on an
        accelerator, for large states.

    Raises
    ------
    NotConjugate, UnsupportedRequest : as ``ascent.prepare``.
    """
    own = str(jnp.result_type(float))
    on_cpu = jax.default_backend() == "cpu"
    # Of data that processes share all have to come to the same.
    total = resolved.data.total
    small = total(resolved.data.size_of(resolved.data.unit)) <= MOST_IN_FLOAT64
    chosen = dtype or ("float64" if on_cpu and small else own)
    with in_dtype(chosen):
        problem = ascent.prepare(resolved)
        if dtype is not None or chosen == own or total(_size(ascent, problem)) <= MOST_IN_FLOAT64:
            return problem, chosen
    # As prepared, rounded: to prepare it again would take as long as some runs.
    return jax.tree.map(_narrowed, problem), own


def _size(ascent: Ascent, problem: Any) -> int:
    """Count the numbers in the state of an ascent, without computing it."""
    return sum(leaf.size for leaf in jax.tree.leaves(state_shapes(ascent, problem)))


def _narrowed(leaf: Any) -> Any:
    narrow = {"float64": np.float32, "int64": np.int32, "uint64": np.uint32}
    values = np.asarray(leaf)
    return values.astype(narrow.get(values.dtype.name, values.dtype))
