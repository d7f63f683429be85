"""Chains divided among devices: each device runs its own chains, and nothing passes between devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from consilience.errors import UnsupportedRequest
from consilience.inference.sharding import AXIS, item_mesh

CHAINS, STEPS, ALL = PartitionSpec(AXIS), PartitionSpec(None, AXIS), PartitionSpec()
"""Where arrays have the axis of chains: first, after that of steps, or nowhere: all devices have the same."""


def chain_mesh(devices: int, chains: int) -> Mesh | None:
    """Return the mesh of so many devices; None of a single one.

    Raises
    ------
    UnsupportedRequest : there are fewer, the chains cannot be divided equally, or several processes run together.
    """
    if devices == 1:
        return None
    if jax.process_count() > 1:
        raise UnsupportedRequest("chains are divided among the devices of one process; run this in one, or use cavi")
    if chains % devices:
        raise UnsupportedRequest(
            f"{chains} chains cannot be divided among {devices} devices; give a multiple of {devices} chains"
        )
    return item_mesh(devices)


def put(tree: Any, mesh: Mesh | None, where: PartitionSpec) -> Any:
    """Put arrays on the devices."""
    return jax.device_put(tree, None if mesh is None else NamedSharding(mesh, where))


def on_chains(
    function: Callable[..., Any], mesh: Mesh | None, given: tuple[Any, ...], results: Any,
    options: dict[str, Any] | None = None,
) -> Callable:  # fmt: skip
    """Compile a function of the arrays of all chains, which each device runs with its own.

    Parameters
    ----------
    function : of chains that know nothing of each other.
    given, results : `CHAINS`, `STEPS` or `ALL`, of each argument and of each of the results.
    options : of the compiler.
    """
    if mesh is None:
        return jax.jit(function, compiler_options=options)
    divided = jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=results, check_vma=False)
    return jax.jit(divided, compiler_options=options)
