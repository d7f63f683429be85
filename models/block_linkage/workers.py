"""The pieces of a large task, gone through one after another or by several processes: what comes out is the same.

A piece is a function of arrays that all pieces read, of what is given to all, and of its own. Pieces neither share
memory nor wait for each other, and their answers are taken in their order, so that sums do not depend on how many
processes there are. What they write goes to piles: arrays in memory, or in files of a temporary folder, which is where
Python's `tempfile` makes it (the environment variable TMPDIR).
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from consilience.errors import UnsupportedRequest


class Workers:
    """Goes through pieces, in this process alone or in several others; use it in a ``with``.

    Parameters
    ----------
    number : of processes; 1 is this one.

    Raises
    ------
    UnsupportedRequest : for less than one process.
    """

    def __init__(self, number: int = 1) -> None:
        if number < 1:
            raise UnsupportedRequest(f"processes is {number}; give 1 or more")
        self.number = number
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._processes: ProcessPoolExecutor | None = None
        self._arrays: dict[str, np.ndarray] = {}
        self._files: dict[str, Path] = {}
        self._number_of_files = 0

    def __enter__(self) -> Workers:
        if self.number > 1:
            # Spawned, not forked: JAX has threads, which a fork would leave behind with their locks.
            self._processes = ProcessPoolExecutor(self.number, multiprocessing.get_context("spawn"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._processes is not None:
            self._processes.shutdown(cancel_futures=True)
        if self._folder is not None:
            self._folder.cleanup()

    def share(self, **arrays: np.ndarray) -> None:
        """Give all pieces arrays to read, by name; other processes map them from files."""
        self._arrays |= arrays
        if self._processes is not None:
            for name, values in arrays.items():
                self._files[name] = self._new_file()
                with open(self._files[name], "wb") as file:
                    np.save(file, values)

    def folder(self) -> Path:
        """Return a folder for files of the pieces; it is deleted in the end."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="consilience-")
        return Path(self._folder.name)

    def piles(self, *, in_files: bool = False) -> Piles:
        """Return piles for what pieces find: in memory, where this process is the only one and files are not wanted."""
        return Piles(self._new_file() if in_files or self.number > 1 else None)

    def map(self, function: Callable[..., Any], pieces: Iterable[Any], *given: Any) -> Iterator[Any]:
        """Return ``function(arrays, piece, *given)`` of each piece, in their order.

        Parameters
        ----------
        function : of a module, so that other processes find it.

        Raises
        ------
        UnsupportedRequest : a process ended before its work was done.
        """
        if self._processes is None:
            return (function(self._arrays, piece, *given) for piece in pieces)
        path = self._new_file()
        path.write_bytes(pickle.dumps((function, given)))
        return _complete(self._processes.map(functools.partial(_of_piece, path, tuple(self._files.items())), pieces))

    def _new_file(self) -> Path:
        self._number_of_files += 1
        return self.folder() / str(self._number_of_files)


def _complete(answers: Iterator[Any]) -> Iterator[Any]:
    """Return the answers; say in plain words what is the matter where a process is lost."""
    try:
        yield from answers
    except BrokenProcessPool as problem:
        raise UnsupportedRequest(
            "a process ended before its work was done: for want of memory, or because a script asks for processes= "
            'outside of `if __name__ == "__main__":`, where Python has them start it anew'
        ) from problem


def _of_piece(path: Path, files: tuple[tuple[str, Path], ...], piece: Any) -> Any:
    """Go through one piece, in a process of its own."""
    function, given = _read_given(path)
    return function(_map_arrays(files), piece, *given)


@functools.lru_cache(maxsize=1)
def _read_given(path: Path) -> Any:
    return pickle.loads(path.read_bytes())


@functools.lru_cache(maxsize=1)
def _map_arrays(files: tuple[tuple[str, Path], ...]) -> dict[str, np.ndarray]:
    return {name: np.asarray(np.load(path, mmap_mode="r")) for name, path in files}


class Piles:
    """Arrays of one type under numbers, to which is added and from which is taken, a whole pile at a time.

    Parameters
    ----------
    folder : where files are made; None keeps the arrays in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._arrays = folder, dict[int, list[np.ndarray]]()
        if folder is not None:
            folder.mkdir()

    def add(self, number: int, values: np.ndarray) -> None:
        """Add values to a pile; each process has files of its own."""
        if self._folder is None:
            self._arrays.setdefault(number, []).append(values)
            return
        with open(self._folder / f"{number}-{os.getpid()}", "ab") as file:
            values.tofile(file)

    def take(self, number: int, dtype: Any) -> np.ndarray:
        """Return a pile, in no order, and clear it."""
        if self._folder is None:
            return np.concatenate([np.zeros(0, dtype), *self._arrays.pop(number, [])])
        files = sorted(self._folder.glob(f"{number}-*"))
        values = np.concatenate([np.zeros(0, dtype), *(np.fromfile(file, dtype) for file in files)])
        for file in files:
            file.unlink()
        return values
