"""Long tables of annotations inside the kernels: sums over rows in blocks, and rows divided among devices.

A table is a PyTree of arrays ``(row, …)``.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Int


def block_rows(backend: str | None = None) -> int:
    """Return how many rows are summed at a time.

    On a CPU what a block reads and writes stays in the cache of a core: a sweep of a million annotations takes a
    quarter less time than in one piece, and a sixth of the memory. An NVIDIA H200 is as fast with these blocks as
    with blocks of 2^24, and a quarter slower with 2^17 (Dawid-Skene, 10^8 annotations).
    """
    return 1 << 17 if (backend or jax.default_backend()) == "cpu" else 1 << 20

_pads = contextvars.ContextVar("pads", default=True)


def sum_rows(
    terms: Callable[[Any], tuple[Int[Array, " row"], Array]], rows: Any, shape: tuple[int, ...], dtype: Any
) -> Array:
    """Sum what the rows contribute, block by block where there are many.

    Parameters
    ----------
    terms : ``terms(rows)`` -> (the places ``(row,)`` to which the rows contribute, what they contribute ``(row, …)``).
    rows : the table.
    shape, dtype : of the result ``(place, …)``.
    """
    number, each = len(jax.tree.leaves(rows)[0]), block_rows()
    total: Any = jnp.zeros(shape, dtype)
    if number <= each:
        return _added(total, *terms(rows))

    def of_block(block: Any) -> tuple[Any, Any]:
        """Return places and contributions; the last block overlaps the one before, whose rows it leaves out."""
        begin = jnp.minimum(block * each, number - each)
        place, values = terms(jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, begin, each), rows))
        return jnp.where(begin + jnp.arange(each) >= block * each, place, shape[0]), values

    # A place with very many rows would lose its digits in float32: the 10^7th 0.2 adds nothing to two million. So
    # blocks are summed from zero in groups, of about as many rows as there are places, which costs little; and a group
    # is added one step later, because XLA turns an addition to the total at once into one row after the other.
    num_blocks = -(-number // each)
    size = min(max(-(-total.size // each), 1), num_blocks)

    def of_group(group: Any) -> Any:
        def add(place: Any, part: Any) -> Any:
            return _added(part, *of_block(group * size + place))

        return jax.lax.fori_loop(0, size, add, jnp.zeros_like(total))

    if size == num_blocks:
        return of_group(0)
    total, last = jax.lax.fori_loop(
        0, -(-num_blocks // size), lambda group, sums: (sums[0] + sums[1], of_group(group)), (total, total)
    )
    return total + last


def _added(total: Any, place: Any, values: Any) -> Any:
    """Add to the places; places beyond the end are left out."""
    return total.at[place].add(values, mode="drop")


def is_sorted(codes: Int[np.ndarray, " row"]) -> bool:
    """Return whether no code is less than the one before; on the host."""
    return bool((codes[1:] >= codes[:-1]).all())


def numpy_of(values: Any) -> Any:
    """Return NumPy for arrays on the host, where JAX would compile a program an operation, else JAX's."""
    return np if isinstance(values, np.ndarray) else jnp


def sorted_order(codes: Int[Array, " row"]) -> Int[np.ndarray, " row"]:
    """Return the order that sorts codes from 0, equal ones as they stand; on the host, and twice as fast as argsort."""
    codes = np.asarray(codes)
    if len(codes) > np.iinfo(np.int32).max or (len(codes) and codes.max() > np.iinfo(np.int32).max):
        return np.argsort(codes, kind="stable")
    keys = codes.astype(np.int64)
    keys <<= 32
    keys |= np.arange(len(codes), dtype=np.int32)
    keys.sort()
    keys &= 0xFFFFFFFF
    return keys.astype(np.int32)


def copies(tree: Any, number: int) -> Any:
    """Return arrays with a new first axis of so many equal parts, for what all devices share; on the host."""
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (number, *np.shape(leaf))), tree)


def divide_items(num_items: int, number: int) -> tuple[Int[np.ndarray, " boundary"], int]:
    """Return where each of ``number`` shares of the items begins and the last ends, and how many the largest has."""
    size = -(-num_items // number)
    return np.minimum(np.arange(number + 1) * size, num_items), size


def divide_rows(rows: Any, first: Int[np.ndarray, " boundary"], fill: Any, length: int | None = None) -> Any:
    """Cut a table into consecutive parts of one padded length, stacked along a new first axis; on the host.

    Parameters
    ----------
    rows : arrays ``(row, …)``.
    first : where each part begins and the last ends, ``(part + 1,)``.
    fill : of the same structure; what a row is that pads.
    length : of the parts; by default that of the longest, at least one.
    """
    length = max(int(np.diff(first).max()), 1) if length is None else length

    def cut(leaf: Any, value: Any) -> np.ndarray:
        leaf = np.asarray(leaf)
        parts = np.empty((len(first) - 1, length, *leaf.shape[1:]), leaf.dtype)
        for part, begin, end in zip(parts, first, first[1:], strict=False):
            part[: end - begin], part[end - begin :] = leaf[begin:end], value
        return parts

    return jax.tree.map(cut, rows, fill)


def padded_size(number: int, least: int = 0, step: int = 1) -> int:
    """Return the size to which an array is padded, so that data of like size share a compiled program.

    There are eight sizes to every doubling, so that at most an eighth is padding; up to 16, sizes stay as they are.

    Parameters
    ----------
    number : of rows.
    least : the smallest size.
    step : between sizes, at least.
    """
    if not _pads.get():
        return int(number)
    number = max(int(number), least)
    step = max(1 << max(number - 1, 0).bit_length() >> 4, step)
    return -(-number // step) * step


@contextlib.contextmanager
def padding(wanted: bool) -> Iterator[None]:
    """Prepare arrays of exact sizes within, or padded ones; for tests that compare the two."""
    token = _pads.set(wanted)
    try:
        yield
    finally:
        _pads.reset(token)


def padded_rows(values: np.ndarray, size: int, fill: Any = 0) -> np.ndarray:
    """Return an array with as many more rows of the fill as make it so long."""
    padded = aligned_zeros((size, *values.shape[1:]), values.dtype)
    padded[: len(values)], padded[len(values) :] = values, fill
    return padded


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return zeros that begin at a multiple of 64 bytes, which JAX takes on a CPU as they are: others are copied."""
    number = math.prod(shape) * np.dtype(dtype).itemsize
    numbers = np.zeros(number + 64, np.uint8)
    begin = -numbers.ctypes.data % 64
    return numbers[begin : begin + number].view(dtype).reshape(shape)


def repeated_rows(values: Any, size: int, axis: int = 0) -> Any:
    """Return an array whose last row along an axis is repeated until there are so many."""
    values = np.asarray(values)
    number = values.shape[axis]
    return values if number == size else values.take(np.minimum(np.arange(size), number - 1), axis)


def row_blocks(number: int, numbers_each: int, most: int) -> Iterator[slice]:
    """Yield so many rows at a time that they hold at most so many numbers, one row at least; on the host."""
    rows = max(most // max(numbers_each, 1), 1)
    return (slice(start, start + rows) for start in range(0, number, rows))


def ranges(lengths: Int[np.ndarray, " run"]) -> Int[np.ndarray, " element"]:
    """Return 0, 1, … up to each length, one run after the other; on the host."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def successive(
    code: Int[np.ndarray, " row"], order: Int[np.ndarray, " row"] | None = None
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the pairs of rows that have one code, from 0, and none between them that has it; on the host.

    Parameters
    ----------
    order : in which the rows stand; that of their numbers by default.
    """
    order = np.argsort(code, kind="stable") if order is None else order[np.argsort(code[order], kind="stable")]
    again = np.flatnonzero((code[order[1:]] == code[order[:-1]]) & (code[order[1:]] >= 0))
    return order[again], order[again + 1]


def equal_pairs(ordered: np.ndarray) -> Iterator[tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]]:
    """Yield the places of all pairs of equal values in a sorted array: neighbours, then those two apart, and so on."""
    place = np.flatnonzero(ordered[1:] == ordered[:-1])
    lag = 1
    while len(place):
        yield place, place + lag
        lag += 1
        place = place[place < len(ordered) - lag]
        place = place[ordered[place] == ordered[place + lag]]
