"""Progress of what takes long: a bar on stderr, only where that is a terminal."""

from __future__ import annotations

import sys
from typing import Any


class Steps:
    """A bar of steps.

    Parameters
    ----------
    total : of the steps, at most.
    what : the name before the bar.
    done : of them before.
    unit : what one of them is called.
    shown : whether there is a bar; None where stderr is a terminal.
    """

    def __init__(self, total: int, what: str, *, done: int = 0, unit: str = "step", shown: bool | None = None) -> None:
        self._bar: Any = None
        if shown or (shown is None and sys.stderr.isatty()):
            from tqdm import tqdm

            bytes_ = {"unit_scale": True} if unit == "B" else {}
            self._bar = tqdm(total=total, initial=done, desc=what or None, unit=unit, file=sys.stderr, **bytes_)

    def to(self, done: int) -> None:
        """Say how many steps are done."""
        if self._bar is not None:
            self._bar.update(done - self._bar.n)

    def close(self, *, converged: bool = False) -> None:
        """End the bar, at 100 % where the run converged before its last step."""
        if self._bar is None:
            return
        if converged:
            self._bar.total = self._bar.n
            self._bar.set_postfix_str("converged")
        self._bar.close()
