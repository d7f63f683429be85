"""Items divided among devices: the mesh, what lies where, and the sums over it.

Every array of a divided problem has a first axis of shards, one a device. Inside a program each device sees its own
shard without that axis, and `total_over` sums what it counted with the others. The devices may belong to several
processes, after ``jax.distributed.initialize``: each process then calls `fit` on the same data, computes for its own
devices, and ends with the whole result. Or each has items of its own (`place_parts`), and ends with what is theirs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from consilience.data.coded import over_processes
from consilience.errors import UnsupportedRequest
from consilience.inference.processes import fetch, own_part, placed, placed_parts

AXIS = "shard"
"""Name of the only axis of the mesh."""


def item_mesh(devices: int) -> Mesh:
    """Return a mesh of so many devices; of all processes' devices where there are several processes.

    Raises
    ------
    UnsupportedRequest : there are fewer, or devices of other processes would be left out.
    """
    found = jax.devices()
    if devices > len(found):
        hint = " (JAX divides a CPU into several devices with the setting jax_num_cpu_devices)"
        raise UnsupportedRequest(
            f"{devices} devices were asked for and JAX sees {len(found)}{hint if found[0].platform == 'cpu' else ''}"
        )
    if jax.process_count() > 1 and devices != len(found):
        raise UnsupportedRequest(
            f"{jax.process_count()} processes have {len(found)} devices together; give devices={len(found)}"
        )
    return jax.make_mesh((devices,), (AXIS,), axis_types=(AxisType.Auto,), devices=found[:devices])


def place(tree: Any, mesh: Mesh) -> Any:
    """Put arrays ``(shard, …)`` on the devices; each process gives all of them and keeps its own."""
    sharding = NamedSharding(mesh, PartitionSpec(AXIS))
    return jax.tree.map(lambda values: placed(np.asarray(values), sharding), tree)


def place_parts(tree: Any, mesh: Mesh) -> Any:
    """Put arrays ``(shard, …)`` of this process's own shards on its devices; all processes have to call.

    The processes agree on the largest of each length, and pad with zeros: of a piece they contribute to no sum.
    """
    sharding, leaves = NamedSharding(mesh, PartitionSpec(AXIS)), [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    longest = over_processes(np.concatenate([leaf.shape for leaf in leaves])).max(axis=0)
    shapes = np.split(longest, np.cumsum([leaf.ndim for leaf in leaves]))
    arrays = []
    for leaf, shape in zip(leaves, shapes, strict=False):
        padding = [(0, int(length) - own) for length, own in zip(shape, leaf.shape, strict=True)]
        arrays.append(placed_parts(np.pad(leaf, padding), sharding, mesh.size))
    return jax.tree.unflatten(jax.tree.structure(tree), arrays)


def total_over(axis: str) -> Callable[[Any], Any]:
    """Return the function that sums a statistic over the shards, inside of a program."""
    return functools.partial(jax.lax.psum, axis_name=axis)


def gathered_over(axis: str) -> Callable[[Any], Any]:
    """Return the function that joins arrays ``(n,)`` of the shards into one ``(shard * n,)``, inside of a program."""
    return functools.partial(jax.lax.all_gather, axis_name=axis, tiled=True)


def largest_over(axis: str) -> Callable[[Any], Any]:
    """Return the function that takes the largest of a number of each shard, inside of a program."""
    return functools.partial(jax.lax.pmax, axis_name=axis)


def on_each(
    function: Callable[..., Any], mesh: Mesh, *, divided: Sequence[bool], results: bool | tuple[bool, ...]
) -> Callable[..., Any]:
    """Compile a function that runs on every device with the device's own shard.

    Parameters
    ----------
    function : of shards without the axis of shards.
    divided : of each argument, whether it has that axis; the others are the same for all.
    results : the same of the result, or of each of a tuple of results.
    """

    def inside(*arguments: Any) -> Any:
        own = (_drop_axis(one) if cut else one for one, cut in zip(arguments, divided, strict=True))
        result = function(*own)
        if isinstance(results, tuple):
            return tuple(_add_axis(one) if cut else one for one, cut in zip(result, results, strict=True))
        return _add_axis(result) if results else result

    spec = {True: PartitionSpec(AXIS), False: PartitionSpec()}
    out = tuple(spec[cut] for cut in results) if isinstance(results, tuple) else spec[results]
    # That undivided results are equal on all devices follows from `total_over`, which the check cannot see through a
    # loop.
    mapped = jax.shard_map(
        inside, mesh=mesh, in_specs=tuple(spec[cut] for cut in divided), out_specs=out, check_vma=False
    )
    return jax.jit(mapped)


def _drop_axis(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[0], tree)


def _add_axis(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[None], tree)


def whole(
    sites: Mapping[str, Any], lengths: Mapping[str, Any], mesh: Mesh | None, *, own: bool = False
) -> dict[str, np.ndarray]:
    """Fetch the sites to the host: what is divided is joined without padding, and of what all have one copy is kept.

    With ``own`` a process has its own shards alone, and no process gets those of another.
    """
    if mesh is None:
        return {site: np.asarray(values) for site, values in sites.items()}
    joined = {}
    for site, values in sites.items():
        parts = own_part(values) if own else fetch(values)
        joined[site] = (
            np.concatenate([part[:length] for part, length in zip(parts, lengths[site], strict=True)])
            if site in lengths
            else parts[0]
        )
    return joined

