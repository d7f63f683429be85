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
import functools
import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from consilience.data.columns import Column
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.notebook import SHOWN, html
from consilience.notes import Remedy
from consilience.piped import STANDARD_INPUT, Piped

_ROWS = ("",)  # stands for the dimension of the contract's rows
_BLOCK = 1 << 18  # rows and ids of a fingerprint at a time

_Read = TypeVar("_Read", bound=Callable[..., Any])


def array(
    *, shape: tuple[str | int, ...] | None = None, codes: str | int = "", missing: bool = False, later: bool = False,
    moves: bool = False, default: Any = dataclasses.MISSING,
) -> Any:  # fmt: skip
    """Declare a field that JAX sees as a leaf.

    Parameters
    ----------
    shape : for each axis the name of a size, such as ``num_items``, or a number; -1 for an axis of any length; None
        where it is not said.
    codes : how many codes there are, as the name of a size or a number; empty where the values are no codes.
    missing : whether -1 stands for a code that is not known.
    later : whether fits were saved before there was this field. Where it is ``None`` the data are those of such a fit,
        and have its fingerprint.
    moves : whether axes and codes are dimensions, along which entries move when data are renamed or reordered; see
        `per`.
    default : ``None`` where the data may lack it.
    """
    metadata = {"kind": "array", "shape": shape, "codes": codes, "missing": missing, "later": later, "moves": moves}
    return dataclasses.field(metadata=metadata, default=default)


def codes(dimension: str, *, missing: bool = False) -> Any:
    """Declare an array with one code into a dimension for each row."""
    return per(*_ROWS, codes=dimension, missing=missing)


def values(*, codes: str | int = "") -> Any:
    """Declare an array with one number for each row."""
    return per(*_ROWS, codes=codes)


def per(
    *dimensions: str | int, codes: str | int = "", missing: bool = False, later: bool = False,
    default: Any = dataclasses.MISSING,
) -> Any:  # fmt: skip
    """Declare an array by its dimensions; its entries move with them.

    Parameters
    ----------
    dimensions : one for each axis, such as ``item``; or a number, as of the shape of `array`.
    codes : the dimension into which the entries are codes, too; those into what has no dimension stay when data are
        renamed.
    missing, later, default : as of `array`.
    """
    return array(shape=dimensions, codes=codes, missing=missing, later=later, moves=True, default=default)


def size(*, derived: bool = False, later: bool = False) -> Any:
    """Declare a static field: part of the compiled program's signature.

    Parameters
    ----------
    derived : whether it counts something that serves computation, and is nothing to tell a user.
    later : as of `array`; it is then ``None`` by default.
    """
    default = None if later else dataclasses.MISSING
    return dataclasses.field(metadata={"kind": "size", "derived": derived, "later": later}, default=default)


def ids(*dimensions: str, later: bool = False) -> Any:
    """Declare a field of the user's own names, which stays on the host.

    Parameters
    ----------
    dimensions : what the names stand for, such as ``item``, in code order. Labels name ``label`` and ``class`` too,
        the true one. None for a name of the whole.
    later : as of `array`.
    """
    return dataclasses.field(metadata={"kind": "ids", "dimensions": dimensions, "later": later}, default=None)


def file_of(source: Any) -> str:
    """Return the path of a source, as lines that read it again need it; empty where it has none.

    Of an absolute path it is the name alone: pages and saved fits go to others, who have other folders.
    """
    if not isinstance(source, str | os.PathLike) or source == STANDARD_INPUT or isinstance(source, Piped):
        return ""
    path = os.fspath(source)
    return os.path.basename(path) if os.path.isabs(path) or "://" in path else path.removeprefix(f".{os.sep}")


def named_after(data: Any, source: Any, name: str = "file") -> Any:
    """Return data that know, by ``name``, the path of the file or the public data that they were read from."""
    if file := file_of(source):
        vars(data)[name] = file
    return data


def of_file(read: _Read) -> _Read:
    """Make what the method of a class reads know the name of its file."""

    @functools.wraps(read)
    def reading(cls: type, source: Any, *given: Any, **how: Any) -> Any:
        return named_after(read(cls, source, *given, **how), source)

    return reading  # type: ignore[return-value]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Contract:
    """Base of the data contracts.

    A contract names the columns of its tables in ``columns``, says in ``other_columns`` what those hold that may have
    any name, and in ``reader`` which public function reads it. ``rows`` is the dimension of its reports, in any order,
    and ``unit`` that of the things whose truth is asked. What one asks of a fit first is in ``command``, and in
    ``agreements`` how the agreement of its annotators can be measured: ``left-out``, of each with the others of an
    item, and ``pairs``, of two annotators of an item. ``is_whole`` says that no other process holds more of the data.
    ``file`` is the path of the file that they were read from, where it is known, and ``features_file`` that of their
    features; see `file_of`.
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    other_columns: ClassVar[str] = ""
    reader: ClassVar[str] = ""
    rows: ClassVar[str] = ""
    unit: ClassVar[str] = "item"
    command: ClassVar[str] = "certainty"
    agreements: ClassVar[tuple[str, ...]] = ()
    is_whole: ClassVar[bool] = True
    file: ClassVar[str] = ""
    features_file: ClassVar[str] = ""
    _registered: ClassVar[set[type]] = set()

    def __post_init__(self) -> None:
        _register(type(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy or a pickle is not made by __init__, and may be the first of its kind in another process.
        self.__dict__.update(state)
        _register(type(self))

    @classmethod
    def _fields(cls, kind: str) -> list[dataclasses.Field]:
        """Return the fields of one kind: array, size or ids."""
        return [field for field in dataclasses.fields(cls) if field.metadata.get("kind") == kind]

    @classmethod
    def names(cls, kind: str) -> tuple[str, ...]:
        """Return the names of the fields of one kind: array, size or ids."""
        return tuple(field.name for field in cls._fields(kind))

    @classmethod
    def empty(cls, **sizes: int) -> Self:
        """Return a contract of these sizes without any report, such as priors may look at before there are data.

        Parameters
        ----------
        sizes : such as ``num_items``; those that are left out are zero.
        """
        arrays = [field for field in cls._fields("array") if field.default is dataclasses.MISSING]
        given = {one.name: sizes.get(one.name, None if one.default is None else 0) for one in cls._fields("size")}
        blank = cls(**{field.name: None for field in arrays}, **given)
        return blank.replace(**{field.name: np.zeros(np.maximum(blank._shape(field), 0), np.int32) for field in arrays})

    @property
    def ids(self) -> dict[str, np.ndarray]:
        """The user's ids, in code order, by the dimension that they name, such as ``item``.

        Those that are ``None``, as in a copy that went through JAX, are left out.
        """
        return {
            dimension: getattr(self, field.name)
            for field in self._fields("ids") if getattr(self, field.name) is not None
            for dimension in field.metadata["dimensions"]
        }  # fmt: skip

    @property
    def gold(self) -> Any:
        """The known class of each unit, -1 where it is unknown; ``None`` where no class of any is known."""
        return None

    @property
    def gold_codes(self) -> Any:
        """The known label of each unit as a truth counts labels, which is another one where labels have parts."""
        return self.gold

    def total(self, values: Any) -> Any:
        """Return the sum of what all processes counted that hold some of the data: of one, what it counted."""
        return values

    def coordinates(self) -> dict[str, np.ndarray]:
        """Return the names of what numbers about these data lie along, as texts, by dimension."""
        return {dimension: np.asarray(names, object).astype(str) for dimension, names in self.ids.items()}

    @classmethod
    def recognises(cls, source: Any) -> bool:
        """Return whether a source, which need not be a table, is in a form that this contract alone has."""
        return False

    # ---- symmetries ----

    def renamed(self, dimension: str, permutation: Any) -> Self:
        """Return the same data with other codes in a dimension: thing ``i`` becomes ``permutation[i]``.

        Parameters
        ----------
        dimension : such as ``item``; what is in it keeps its ids and all that is known of it.
        permutation : shape ``(thing,)``; the new code of each.

        Raises
        ------
        UnknownName : for a dimension that the data do not have.
        UnsupportedRequest : for what is no permutation of it.
        """
        dimension = self._declared(dimension)
        order = np.asarray(permutation)
        size = self.size_of(dimension) or 0
        if order.shape != (size,) or not np.array_equal(np.sort(order), np.arange(size)):
            raise UnsupportedRequest(f"the whole numbers from 0 to {size - 1} are expected, each once, for {dimension}")
        return self._moved(dimension, order)._settled()

    def reordered(self, permutation: Any) -> Self:
        """Return the same data with rows in another order: row ``i`` is that which was ``permutation[i]``."""
        return self.renamed(self.rows, np.argsort(permutation))

    def repeated(self, number: int) -> Self:
        """Return the data with every row so many times."""
        changes: dict[str, Any] = {f"num_{self.rows}s": number * (self.size_of(self.rows) or 0)}
        for name, (dimensions, _) in self._axes().items():
            if self.rows in dimensions and getattr(self, name) is not None:
                repeats = [number if dimension == self.rows else 1 for dimension in dimensions]
                changes[name] = np.tile(np.asarray(getattr(self, name)), repeats)
        return self.replace(**changes)

    def _moved(self, dimension: str, permutation: np.ndarray) -> Self:
        """Move what lies along a dimension, and give codes into it their new values."""
        changes: dict[str, Any] = {
            name: moved(np.asarray(getattr(self, name)), dimensions, codes, dimension, permutation)
            for name, (dimensions, codes) in self._axes().items()
            if getattr(self, name) is not None
        }
        own = next((field.name for field in self._fields("ids") if dimension in field.metadata["dimensions"]), None)
        if own is not None and (names := getattr(self, own)) is not None:
            changes[own] = names[np.argsort(permutation)]
        return self.replace(**changes)

    def _settled(self) -> Self:
        """Return the data as a reader leaves them, where what was moved has an order of its own."""
        return self

    @classmethod
    def _axes(cls) -> dict[str, tuple[tuple[str | int, ...], str]]:
        """Return the dimensions of the axes of each array that moves, and that of its codes."""
        return {
            field.name: (tuple(one or cls.rows for one in field.metadata["shape"]), _dimension(field.metadata["codes"]))
            for field in dataclasses.fields(cls)
            if field.metadata.get("moves")
        }

    @classmethod
    def _declared(cls, dimension: str) -> str:
        """Return the name under which arrays are declared: labels are true classes too."""
        for field in cls._fields("ids"):
            if dimension in field.metadata["dimensions"]:
                return field.metadata["dimensions"][0]
        known = {_dimension(one) for dimensions, codes in cls._axes().values() for one in (*dimensions, codes)} - {""}
        if dimension not in known:
            raise UnknownName(f"{cls.__name__} have no dimension {dimension!r}; they have {', '.join(sorted(known))}")
        return dimension

    # ---- sizes and shapes ----

    def size_of(self, named: str | int) -> int | None:
        """Return how much there is of a dimension, or of a size by its name; a number stands for itself.

        It is ``None`` where the data do not say: of what they do not have, or what has no size and no ids now.
        """
        if isinstance(named, int):
            return named
        for field in self._fields("ids"):
            if named in field.metadata["dimensions"]:
                names = getattr(self, field.name)
                return getattr(self, f"num_{field.name}", None if names is None else len(names))
        sizes = {named, f"num_{named}s", f"num_{named[:-1]}ies"}.intersection(self.names("size"))
        return getattr(self, sizes.pop()) if sizes else None

    def _shape(self, field: dataclasses.Field) -> list[int]:
        """Return the declared shape of an array; -1 for an axis, or one of a shape that is not said, of any length."""
        shape = field.metadata["shape"]
        sizes = [None] if shape is None else [self.size_of(one or self.rows) for one in shape]
        return [-1 if size is None else size for size in sizes]

    def problem(self) -> str | None:
        """Return in words what no reader makes: sizes, shapes or codes that do not fit each other; None where all do.

        Readers check what they read; this is for data that come back from a file.
        """
        for field in self._fields("size"):
            size, name = getattr(self, field.name), field.name
            if not (size is field.default is None) and (type(size) is not int or size < 0):
                return f"'{name}' is {size!r}, and no number of things"
        for name in self.names("ids"):
            ids = getattr(self, name)
            if ids is not None and len(ids) != (size := getattr(self, f"num_{name}", len(ids))):
                return f"there are {len(ids):,} {name}, and 'num_{name}' is {size:,}"
        for field in self._fields("array"):
            if found := self._problem_of_array(field):
                return f"'{field.name}' {found}"
        return None

    def _problem_of_array(self, field: dataclasses.Field) -> str | None:
        value = getattr(self, field.name)
        if value is None:
            return None if field.default is None else "is missing"
        values, about = np.asarray(value), field.metadata
        shape = values.shape if about["shape"] is None else self._shape(field)
        if values.ndim != len(shape) or any(a not in (b, -1) for a, b in zip(shape, values.shape, strict=True)):
            return f"has the shape {values.shape}"
        past = None if about["codes"] == "" else self.size_of(about["codes"])
        if past is None or not values.size:
            return None if values.dtype.kind in "biuf" else f"holds {values.dtype}"
        first = -int(about["missing"])
        if values.dtype.kind not in "iu" or values.min() < first or values.max() >= past:
            return f"has codes outside {first} to {past - 1}"
        return None

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
                values = np.atleast_1d(np.asarray(value))
                digest.update(f"{values.dtype}{values.shape}".encode())
                for start in range(0, len(values), _BLOCK):
                    digest.update(np.ascontiguousarray(values[start : start + _BLOCK]).tobytes())
            else:
                texts = np.ravel(value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object))
                for start in range(0, len(texts), _BLOCK):
                    joined = "\x1f".join(map(str, texts[start : start + _BLOCK].tolist()))
                    digest.update(f"\x1f{joined}".encode() if start else joined.encode())
        return digest.hexdigest()

    @property
    def counts(self) -> dict[str, int]:
        """How many items, annotators and other things there are, by what they are."""
        shown = {one.name: getattr(self, one.name) for one in self._fields("size") if not one.metadata["derived"]}
        return {name.removeprefix("num_"): int(number) for name, number in shown.items() if number is not None}

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of several files that the data are of, where these are known."""
        return ()

    @property
    def read_from(self) -> str:
        """How the call of its reader is written, with … for what the user has."""
        return "…"

    @property
    def after_reading(self) -> str:
        """How it is written what was done with the data after they were read, as a call of a method."""
        return ""

    @property
    def changed_in_words(self) -> str:
        """What was done with the data after they were read, as a clause behind their sizes."""
        return ""

    @property
    def reading_flags(self) -> tuple[str, ...]:
        """The flags of the command that do the same where it reads the data."""
        return ()

    def replace(self, **changes: Any) -> Self:
        """Return a copy with the named fields changed."""
        return dataclasses.replace(self, **changes)

    def grouped(self, groups: Mapping[str, str]) -> Self:
        """Return these data with groups of annotators who share a source, where there are annotators who could.

        Raises
        ------
        UnsupportedRequest : of other contracts than annotations.
        """
        text = f"the {type(self).__name__} have no annotators who could share a source; leave out {{annotator_groups}}"
        raise UnsupportedRequest(text, Remedy("annotator_groups"))

    # ---- as a table

    def __len__(self) -> int:
        """How many rows there are in the table of `to_pandas`, or things of which it has several rows."""
        return next(iter(self.counts.values()))

    def to_pandas(self) -> Any:
        """Return the data as a data frame, with the user's ids, in the columns that their reader takes.

        What is not known, such as most gold labels, is None or NaN. Data that went through JAX have codes alone.

        Examples
        --------
        >>> import consilience as cs
        >>> cs.read_annotations({"item": ["a", "a"], "annotator": ["x", "y"], "label": ["no", "yes"]}).to_pandas()
          item annotator label
        0    a         x    no
        1    a         y   yes
        """
        import pandas

        return pandas.DataFrame(self._table())

    def _table(self, rows: slice = slice(None)) -> dict[str, np.ndarray]:
        """Return the columns of `to_pandas`, of some rows."""
        axes, found = self._axes(), {}
        for column in self.columns:
            if (values := getattr(self, column.name, None)) is None:
                continue
            (dimension, *_), codes = axes[column.name]
            at = rows if dimension == self.rows else np.asarray(getattr(self, str(dimension)))[rows]
            found[column.name] = self._called(np.asarray(values)[at], codes)
        return found

    def _called(self, codes: Any, dimension: str) -> np.ndarray:
        """Return codes as the ids of a dimension, None where they are negative; as they are where there are no ids."""
        if (names := self.ids.get(dimension)) is None:
            return np.asarray(codes)
        return np.append(np.asarray(names, object), [None])[np.maximum(codes, -1)]

    def _repr_html_(self) -> str:
        return html(repr(self), (), self._table(slice(SHOWN)), "to_pandas() has all rows")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={count:,}' for name, count in self.counts.items())})"


def _dimension(named: str | int) -> str:
    """Return the dimension that an axis or codes were declared by; none for a number or a size."""
    return "" if isinstance(named, int) or named.startswith("num_") else named


def moved(
    array: np.ndarray, dimensions: tuple[str | int, ...], codes: str, dimension: str, permutation: np.ndarray
) -> np.ndarray:
    """Return an array after thing ``i`` of a dimension became ``permutation[i]``.

    Parameters
    ----------
    array : with these dimensions, and codes into one (or into none, where that is empty).
    dimension, permutation : what moves, and the new code of each thing in it.
    """
    for axis, own in enumerate(dimensions):
        if own == dimension:
            array = np.take(array, np.argsort(permutation), axis=axis)
    if codes == dimension:
        array = np.where(array < 0, array, permutation[array]).astype(array.dtype)
    return array


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
