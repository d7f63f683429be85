"""What bounds a run, checked once."""

from __future__ import annotations

import dataclasses
import numbers
from dataclasses import dataclass
from typing import Any

from consilience.errors import UnsupportedRequest
from consilience.inference.precision import DTYPES
from consilience.models.interface import Starts

USUAL = {"draws": 1000, "chains": 4, "warmup": 500}
MOST_NUMBERS = 1 << 28
"""Of an array of draws in one piece: in float32 one GiB."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What bounds a run, checked once; None leaves a driver its own default.

    Parameters
    ----------
    draws, chains, warmup, max_steps, tolerance, accelerate, dtype, devices, engine, time_limit : see `fit`.

    Raises
    ------
    UnsupportedRequest : a count is no whole number, or too small; a number is below 0; or floats are to be of another
        type.
    """

    draws: int | None = None
    chains: int | None = None
    warmup: int | None = None
    max_steps: int | None = None
    tolerance: float | None = None
    accelerate: bool = True
    dtype: str | None = None
    devices: int | None = None
    engine: Any = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        for name in ("draws", "chains", "warmup", "devices", "max_steps"):
            value, least = getattr(self, name), 0 if name == "warmup" else 1
            if value is not None and (not isinstance(value, numbers.Integral) or value < least):
                raise UnsupportedRequest(f"{name} is {value!r}; give a whole number, {least} or more")
        if self.tolerance is not None and not self.tolerance >= 0:
            raise UnsupportedRequest(f"tolerance is {self.tolerance!r}; give a number, 0 or more: 0 takes every step")
        if self.dtype not in (None, *DTYPES):
            raise UnsupportedRequest(f"dtype is {self.dtype!r}; give {' or '.join(map(repr, DTYPES))}, or leave it out")

    def filled(self, starts: Starts | None) -> Limits:
        """Return the limits with draws, chains and warm-up of these starts, or the usual ones, where none are given."""
        usual = USUAL if starts is None else {name: getattr(starts, name) for name in USUAL}
        missing: dict[str, Any] = {name: one for name, one in usual.items() if getattr(self, name) is None}
        return dataclasses.replace(self, **missing)

    def of(self, *names: str) -> dict[str, Any]:
        """Return those of these names that were given."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}
