"""Machine code of plain loops over arrays, by numba."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numba


def machine_code(function: Callable) -> Any:
    """Compile at the first call, and keep the code on disk where a folder for it can be written."""
    function = inspect.unwrap(function)  # type checks of the test suite wrap every one; numba wants itself
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        return numba.njit(error_model="numpy")(function)
