"""Machine code of numba: compiled at the first call, and kept on disk."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def machine_code(function: Callable, *, called: bool = True, inline: bool = False) -> Any:
    """Compile at the first call, and keep the code on disk where a folder for it can be written.

    Parameters
    ----------
    called : whether Python calls it.
    inline : whether it is compiled into what calls it.
    """
    function = inspect.unwrap(function)  # type checks of the test suite wrap every one; numba wants itself
    _forget_stale(Path(function.__code__.co_filename))
    options: dict[str, Any] = {
        "error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": not called, "forceinline": inline,
    }  # fmt: skip
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)


def _forget_stale(file: Path) -> None:
    """Remove code on disk that is older than any file of its folder: numba would not miss what another one calls."""
    for index in (file.parent / "__pycache__").glob(f"{file.stem}.*.nbi"):
        if index.stat().st_mtime < _newest(file.parent):
            index.unlink(missing_ok=True)


@functools.cache
def _newest(folder: Path) -> float:
    return max(file.stat().st_mtime for file in folder.glob("*.py"))


def inner(function: Callable) -> Any:
    """Compile what only machine code calls: its door for Python would take a fifth of all compilation."""
    return machine_code(function, called=False)


def inlined(function: Callable) -> Any:
    """Compile into what calls it: a call that hands over so many arrays takes as long as what it does."""
    return machine_code(function, called=False, inline=True)
