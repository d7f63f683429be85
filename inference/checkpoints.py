"""Checkpoints: what a killed run left on the disk, from which it goes on to the bits of a run that was never killed.

A checkpoint is a folder of

* ``draws-<step>.npz``: the rows that the loop collected from that step on, a file for every time that it wrote;
* ``state-<step>.npz``: the state before that step, all that the next step needs;
* ``checkpoint.json``: what is run, the step, and the names and digests of the files that count. It is written last,
  and only what it names exists: a kill at any moment leaves this checkpoint or the one before it;
* ``lock``: held while a process runs, so that no second one writes to the same folder.

The state is stored as its leaves, in order, and put back into the structure of a fresh start: no pickles, and a state
of other shapes or dtypes is refused. Rows are arrays or nested dicts of them. `run_chunks` decides when to write;
docs/developer/contributing.md says what a driver does.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from consilience._version import __version__
from consilience.data.files import digest
from consilience.errors import InvalidCheckpoint
from consilience.inference.durable import text_digest, write_arrays, write_text
from consilience.inference.processes import agreed, fetch, is_first, placed
from consilience.inference.run_folder import CHECKPOINT_TEXT
from consilience.notes import Remedy
from consilience.output import made_for

FORMAT = 1
"""Version of the folder's layout."""

_OURS = re.compile(r"lock|checkpoint\.json|(draws|state)-\d+\.npz")

# The first write is soon, because compilation alone takes seconds; later ones cost at most a fiftieth of the time.
_SECONDS_TO_FIRST = 1.0
_SHARE = 50


class Restored(NamedTuple):
    """Where a run goes on: its state, the steps behind it, whether it had converged, the seconds that it took."""

    state: Any
    steps: int
    converged: bool
    seconds: float


class Checkpoint:
    """A folder that keeps one run; a context manager between `open` and the end of the run.

    Parameters
    ----------
    folder : made where it does not exist.
    resume : go on from the checkpoint in the folder, where there is one; otherwise one that is there is an error.
    keep : `fit` removes the checkpoint of a complete run, unless the caller keeps it until the result is stored.
    seconds : between two writes.
    shared : whether several processes run together; the first of them writes, and all read, so that the folder must be
        one that all of them see. Set by `fit`.
    """

    def __init__(
        self, folder: str | os.PathLike, *, resume: bool = False, keep: bool = False, seconds: float = 5.0
    ) -> None:
        self.folder, self.resume, self.keep, self.seconds = Path(folder), resume, keep, seconds
        self.shared = False
        self._identity: dict[str, Any] | None = None
        self._stored: dict[str, Any] | None = None
        self._lock: int | None = None
        self._parts: list[dict[str, Any]] = []
        self._pending: list[tuple[Any, int]] = []
        self._written: tuple[int, bool] = (0, False)
        self._next = 0.0

    @property
    def resumed_at(self) -> int | None:
        """The step at which the run goes on; None where it starts afresh."""
        return None if self._stored is None else self._stored["step"]

    @property
    def earlier_seconds(self) -> float:
        """What the run took before it went on."""
        return 0.0 if self._stored is None else self._stored["seconds"]

    # ---- the folder ----

    def open(self, identity: Mapping[str, Any]) -> Self:
        """Take the folder for a run, and read what is there.

        Parameters
        ----------
        identity : all that decides the outcome of the run, by names that a message can show.

        Raises
        ------
        InvalidCheckpoint : the folder is something else or in use, its checkpoint is torn or of another run, or there
            is one and it was not asked to go on from it.
        """
        self._identity = json.loads(json.dumps(dict(identity), default=str))
        if not self._writes:
            if not agreed(False):
                raise InvalidCheckpoint(f"the first process cannot use {self.folder}; its own message says why")
            self._stored = self._read() if (self.folder / CHECKPOINT_TEXT).exists() else None
            own = self.resumed_at or 0
            if (first := agreed(own)) != own:
                raise InvalidCheckpoint(
                    f"the first process goes on from step {first} and this one found step {own} in {self.folder}; "
                    "give a folder that all processes see"
                )
            return self
        if not self.shared:
            self._take_folder()
            return self
        taken = False
        try:
            self._take_folder()
            taken = True
        finally:
            agreed(taken)
        agreed(self.resumed_at or 0)
        return self

    @property
    def _writes(self) -> bool:
        return not self.shared or is_first()

    def _take_folder(self) -> None:
        self._check_folder()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        try:
            if (self.folder / CHECKPOINT_TEXT).exists():
                self._stored = self._read()
            else:
                self._clear()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the folder back; it is removed where nothing was written."""
        if not self._writes:
            return
        if not (self.folder / CHECKPOINT_TEXT).exists():
            self._clear()
            self._remove_folder()
        self._give_lock()

    def remove(self) -> None:
        """Delete the checkpoint, and the folder with it where nothing else is in it; nothing where there is none."""
        if not self._writes or not self.folder.is_dir():
            return
        if self._lock is None:
            self._take_lock()
        # The text first: without it the other files are no checkpoint, whenever the deletion stops.
        (self.folder / CHECKPOINT_TEXT).unlink(missing_ok=True)
        self._clear()
        self._remove_folder()
        self._give_lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_folder(self) -> None:
        """Refuse a folder of something else: files there could be overwritten or removed."""
        if not self.folder.exists():
            return
        if not self.folder.is_dir() or not all(map(_is_ours, self.folder.iterdir())):
            raise InvalidCheckpoint(f"{self.folder} exists and is not a checkpoint; give a new folder")

    def _take_lock(self) -> None:
        if sys.platform == "win32":
            return
        import fcntl

        self._lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR, 0o666)
        try:
            # The system gives the lock back when the process ends, however it ends.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._give_lock()
            raise InvalidCheckpoint(f"{self.folder} is in use by another run; wait for it to end") from None
        except OSError:
            pass  # a file system without locks

    def _give_lock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _clear(self) -> None:
        """Delete what is ours, such as files that were written before a kill came between them and the text."""
        for file in self.folder.glob("*"):
            if _is_ours(file) and file.name != "lock":
                file.unlink()

    def _remove_folder(self) -> None:
        (self.folder / "lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    # ---- reading ----

    def _read(self) -> dict[str, Any]:
        """Read ``checkpoint.json``, and refuse one that is torn or of another run."""
        path, remedy = self.folder / CHECKPOINT_TEXT, f"remove {self.folder} to start again"
        try:
            text = json.loads(path.read_text(encoding="utf-8"))
            version, recorded = text["format"], text.pop("text_sha256")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InvalidCheckpoint(f"{path} is torn or not a checkpoint; {remedy}") from None
        if version != FORMAT:
            raise InvalidCheckpoint(
                f"{self.folder} has format {version}; consilience {__version__} reads format {FORMAT}; {remedy}"
            )
        if recorded != text_digest(text):
            raise InvalidCheckpoint(f"{path} was changed or torn after it was written; {remedy}")
        if not self.resume:
            raise InvalidCheckpoint(
                f"{self.folder} holds the checkpoint of an interrupted run, at step {text['step']}; pass {{resume}} "
                f"to go on from it, or {remedy}", Remedy("resume", True),
            )  # fmt: skip
        if differences := _differences(self._identity or {}, text["identity"]):
            raise InvalidCheckpoint(
                f"{self.folder} is the checkpoint of another run: {'; '.join(differences)}. Ask for the same run to go "
                f"on, or {remedy}"
            )
        return text

    def _load(self, part: Mapping[str, Any]) -> list[np.ndarray]:
        """Return the leaves in a file, once its digest is that which was recorded."""
        path = self.folder / part["name"]
        if not _OURS.fullmatch(part["name"]):
            raise InvalidCheckpoint(f"{self.folder} has no file of the name {part['name']!r}; {self._remedy()}")
        try:
            if digest(path) != part["sha256"]:
                raise InvalidCheckpoint(f"{path} was changed or torn after it was written; {self._remedy()}")
            with np.load(path, allow_pickle=False) as stored:
                # A dtype that NumPy cannot name, such as bfloat16, comes back as bare bytes.
                leaves = [(stored[f"leaf-{n}"], dtype) for n, dtype in enumerate(part["dtypes"])]
                return [leaf if str(leaf.dtype) == own else leaf.view(jnp.dtype(own)) for leaf, own in leaves]
        except FileNotFoundError:
            raise InvalidCheckpoint(f"{path} is missing; {self._remedy()}") from None
        except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as problem:
            raise InvalidCheckpoint(f"{path} cannot be read ({problem!r}); {self._remedy()}") from problem

    def _remedy(self) -> str:
        return f"the run cannot go on from it; remove {self.folder} to start again"

    def restore(self, state: Any, collect: Callable[[Any, int], None] | None = None) -> Restored:
        """Return where the run goes on: at `state` and no step where there is no checkpoint.

        Parameters
        ----------
        state : PyTree before the first step, which gives the structure, shapes, dtypes and devices.
        collect : is given the stored rows again, as `run_chunks` gave them.
        """
        if self._identity is None:
            raise ValueError("a checkpoint has to be opened, with the identity of the run, before the run")
        self._next = time.perf_counter() + min(self.seconds, _SECONDS_TO_FIRST)
        if self._stored is None:
            return Restored(state, 0, False, 0.0)
        stored = self._stored
        state = self._matching(stored["state"], state)
        self._parts, self._written = list(stored["draws"]), (stored["step"], stored["converged"])
        for part in self._parts:
            leaves = self._load(part)
            if collect is not None:
                collect(_nested(part["paths"], leaves), part["start"])
        return Restored(state, stored["step"], stored["converged"], stored["seconds"])

    def _matching(self, part: Mapping[str, Any], like: Any) -> Any:
        """Return the PyTree in a file, which has to be such as `like` is."""
        likes, structure = jax.tree.flatten(like)
        shapes = [jax.eval_shape(_plain, leaf) if isinstance(leaf, jax.Array) else _plain(leaf) for leaf in likes]
        leaves = self._load(part)
        if [(leaf.shape, leaf.dtype) for leaf in leaves] != [(shape.shape, shape.dtype) for shape in shapes]:
            raise InvalidCheckpoint(f"{self.folder / part['name']} is of another program; {self._remedy()}")
        return jax.tree.unflatten(structure, map(_as_leaf, leaves, likes))

    # ---- writing ----

    def add(self, rows: Any, start: int) -> None:
        """Keep rows in memory for the next write.

        Parameters
        ----------
        rows : an array or a nested dict of arrays, ``(step, …)``.
        start : the step of the first row.
        """
        self._pending.append((rows, start))

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.perf_counter() >= self._next

    def write(self, state: Any, steps: int, *, converged: bool, seconds: float) -> None:
        """Write the rows before `steps` that are not yet written, and the state; nothing where there is nothing new."""
        if self._written == (steps, converged):
            return
        began = time.perf_counter()
        # An interrupt may have come between a chunk's rows and its state; the rows are then ahead.
        pending = [(rows, start) for rows, start in self._pending if start < steps]
        leaves = [fetch(_plain(leaf)) for leaf in jax.tree.leaves(state)]
        if not self._writes:
            self._pending, self._written = [], (steps, converged)
            return
        parts = [*self._parts, self._write_rows(pending)] if pending else self._parts
        stored_state = self._write_leaves(f"state-{steps}.npz", leaves)
        text = {
            "format": FORMAT, "library_version": __version__, "identity": self._identity, "step": steps,
            "converged": converged, "seconds": seconds, "state": stored_state, "draws": parts,
        }  # fmt: skip
        write_text(self.folder / CHECKPOINT_TEXT, {**text, "text_sha256": text_digest(text)})
        # One statement, so that an interrupt cannot make the next write store the same rows again.
        self._parts, self._pending, self._written = parts, [], (steps, converged)
        for file in self.folder.glob("state-*.npz"):
            if file.name != stored_state["name"]:
                file.unlink()
        now = time.perf_counter()
        self._next = now + max(self.seconds, _SHARE * (now - began))

    def _write_rows(self, pending: list[tuple[Any, int]]) -> dict[str, Any]:
        chunks = [jax.tree_util.tree_leaves_with_path(rows) for rows, _ in pending]
        paths = [[entry.key for entry in path] for path, _ in chunks[0]]
        leaves = [np.concatenate([leaf for _, leaf in pieces]) for pieces in zip(*chunks, strict=True)]
        start = pending[0][1]
        return {**self._write_leaves(f"draws-{start}.npz", leaves), "start": start, "paths": paths}

    def _write_leaves(self, name: str, leaves: list[np.ndarray]) -> dict[str, Any]:
        arrays = {f"leaf-{number}": leaf for number, leaf in enumerate(leaves)}
        sha256 = write_arrays(self.folder / name, arrays)
        return {"name": name, "sha256": sha256, "dtypes": [str(leaf.dtype) for leaf in leaves]}


def _is_ours(file: Path) -> bool:
    """Return whether a file is one of a checkpoint, or a part of one that a kill left behind."""
    return _OURS.fullmatch(made_for(file.name) or file.name) is not None


def _nested(paths: list[list[str]], leaves: list[np.ndarray]) -> Any:
    """Put leaves back into the nested dict that they came from; the path of a lone array is empty."""
    rows: dict[str, Any] = {}
    for path, leaf in zip(paths, leaves, strict=True):
        if not path:
            return leaf
        place = rows
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = leaf
    return rows


def _differences(here: Mapping[str, Any], stored: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} {_short(here.get(name))} here, {_short(stored.get(name))} in the checkpoint"
        for name in dict.fromkeys([*here, *stored])
        if here.get(name) != stored.get(name)
    ]


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _plain(leaf: Any) -> Any:
    """Return the numbers of a leaf: typed random keys have their own, and those of the host stay as they are."""
    if not isinstance(leaf, jax.Array):
        return np.asarray(leaf)
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def _as_leaf(values: np.ndarray, like: Any) -> Any:
    """Return stored numbers as an array on the device, of the kind and in the place of `like`."""
    if not isinstance(like, jax.Array):  # of a sampler that runs on the host
        return values
    if not getattr(like, "is_fully_addressable", True):
        return placed(values, like.sharding)
    leaf = jax.device_put(values)
    if jnp.issubdtype(jnp.asarray(like).dtype, jax.dtypes.prng_key):
        leaf = jax.random.wrap_key_data(leaf, impl=jax.random.key_impl(like))
    # To commit an array that was free to move, or the other way round, would compile the program again.
    return jax.device_put(leaf, like.sharding) if getattr(like, "committed", False) else leaf
