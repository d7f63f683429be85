"""Runs of several processes, after ``jax.distributed.initialize``: what they must decide and fetch together.

All processes run the same program, on the same data or each on its own items. What depends on a clock or writes a file
is up to the first one, and the others follow: a process that took another turn would wait for the rest forever.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def is_first() -> bool:
    """Return whether this process decides and writes; of a single process always."""
    return jax.process_index() == 0


def agreed(answer: int) -> int:
    """Return the answer of the first process, a number or yes or no; all processes have to ask."""
    if jax.process_count() == 1:
        return answer
    from jax.experimental import multihost_utils

    return type(answer)(multihost_utils.broadcast_one_to_all(np.asarray(answer)))


def fetch(values: Any) -> np.ndarray:
    """Return an array on the host, also where other processes hold parts of it; all processes have to call."""
    if getattr(values, "is_fully_addressable", True) or values.is_fully_replicated:
        return np.asarray(values)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(values, tiled=True))


def own_part(values: Any) -> np.ndarray:
    """Return on the host what this process holds of an array, of a divided one its rows in their order."""
    held = {shard.index[0].start or 0: shard.data for shard in values.addressable_shards}
    return np.concatenate([np.asarray(held[start]) for start in sorted(held)])


def placed_parts(values: np.ndarray, sharding: Any, size: int) -> jax.Array:
    """Put an array on devices of which each process gives the rows of its own; together they have so many."""
    return jax.make_array_from_process_local_data(sharding, values, (size, *values.shape[1:]))


def placed(values: np.ndarray, sharding: Any) -> jax.Array:
    """Put an array on devices, of which each process sees its own; every process gives the whole array."""
    return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])
