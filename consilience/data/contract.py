"""What all data contracts share: arrays are PyTree leaves, sizes are static, ids stay on the host.

A contract is made by a reader (or `from_…` constructor) after validation, and goes as it is into a NumPyro model,
`jax.jit` or `jax.vmap`. Three kinds of fields:

* **arrays** are the leaves that JAX sees: integer codes and numbers;
* **sizes** are static: equal shapes never recompile, and no model computes ``int(x.max()) + 1``;
* **ids** are the user's own names for the codes. They never enter a compiled program, or every new file would
  recompile it. A copy that went through JAX (`jax.tree.map`, `jax.jit`, `jax.vmap`) has codes but no ids: they are
  ``None`` there rather than those of some earlier data set.

JAX is imported when the first record is made, not when a file turns out to be bad.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any, ClassVar, Self

import numpy as np

__all__ = ["Contract", "array", "ids", "size"]


def array(*, later: bool = False, **options: Any) -> Any:
    """Declare a field that JAX sees as a leaf.

    Parameters
    ----------
    later : whether fits were saved before there was this field. Where it is ``None`` the data are those of such a fit,
        and have its fingerprint.
    """
    return dataclasses.field(metadata={"kind": "array", "later": later}, **options)


def size(*, derived: bool = False) -> Any:
    """Declare a static field: part of the compiled program's signature.

    Parameters
    ----------
    derived : whether it counts something that serves computation, and is nothing to tell a user.
    """
    return dataclasses.field(metadata={"kind": "size", "derived": derived})


def ids(**options: Any) -> Any:
    """Declare a field of the user's own names, which stays on the host."""
    return dataclasses.field(metadata={"kind": "ids"}, default=None, **options)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Contract:
    """Base of the data contracts."""

    _registered: ClassVar[set[type]] = set()

    def __post_init__(self) -> None:
        _register(type(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy or a pickle is not made by __init__, and may be the first of its kind in another process.
        self.__dict__.update(state)
        _register(type(self))

    @classmethod
    def names(cls, kind: str) -> tuple[str, ...]:
        """Return the names of the fields of one kind: array, size or ids."""
        return tuple(f.name for f in dataclasses.fields(cls) if f.metadata.get("kind") == kind)

    def fingerprint(self) -> str:
        """Return a SHA-256 of every field, ids included: which data a saved fit belongs to.

        Fields that came later are left out where they are ``None``, so that earlier fits can be loaded.
        """
        digest = hashlib.sha256(type(self).__name__.encode())
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None and field.metadata.get("later"):
                continue
            digest.update(field.name.encode())
            if value is None:
                digest.update(b"none")
            elif field.metadata.get("kind") == "array":
                values = np.ascontiguousarray(np.asarray(value))
                digest.update(f"{values.dtype}{values.shape}".encode())
                digest.update(values.tobytes())
            else:
                digest.update("\x1f".join(map(str, np.ravel(np.asarray(value, dtype=object)))).encode())
        return digest.hexdigest()

    @property
    def counts(self) -> dict[str, int]:
        """How many items, annotators and other things there are, by what they are."""
        shown = [f.name for f in dataclasses.fields(self) if f.metadata.get("derived") is False]
        return {name.removeprefix("num_"): int(getattr(self, name)) for name in shown}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with the named fields changed."""
        return dataclasses.replace(self, **changes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={count:,}' for name, count in self.counts.items())})"


def _register(contract: type[Contract]) -> None:
    """Make the contract a PyTree, once, when JAX is first needed."""
    if contract in Contract._registered:
        return
    import jax

    arrays, sizes = contract.names("array"), contract.names("size")

    def flatten_with_keys(record: Contract) -> tuple[list[tuple[Any, Any]], tuple]:
        children = [(jax.tree_util.GetAttrKey(name), getattr(record, name)) for name in arrays]
        return children, tuple(getattr(record, name) for name in sizes)

    def unflatten(static: tuple, children: Any) -> Contract:
        record = object.__new__(contract)
        for name in contract.names("ids"):
            object.__setattr__(record, name, None)
        for name, value in (*zip(arrays, children, strict=True), *zip(sizes, static, strict=True)):
            object.__setattr__(record, name, value)
        return record

    jax.tree_util.register_pytree_with_keys(contract, flatten_with_keys, unflatten)
    Contract._registered.add(contract)
